"""Evaluate a trained decoder of the race.

The measures are accuracy, attention on the answer, outliers, rank, and the distance between final
hidden states.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course.runs.entries import Differential, Entry, batch, separated
from course.runs.outliers import few_bits, outlier
from course.runs.protocol import BITS, LENGTHS, LOOKED, SHARP, TASKS, TRAINED, roles, vocabulary
from course.training import UNASKED
from course.training.tasks import Batch
from helpers.transformer import Decoder


@torch.no_grad()
def score(model: Decoder, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> float:
    """Return the fraction of targets that the model predicts correctly."""
    return float((model(ids).argmax(-1) == targets)[targets != UNASKED].double().mean())


def _shares(
    model: Decoder, task: str, ids: Tensor, targets: Tensor
) -> Iterator[Float[Tensor, "2 questions h"]]:
    """Yield for each layer the fractions of attention on the answer and on noise.

    A fraction is the sum of |weight| over these tokens divided by the sum of |weight| over the row.
    We divide by this sum because weights can be negative. So the fraction does not show how much
    weight is missing from a row whose sum is less than 1.
    """
    roles_of, is_asked = torch.stack(roles(task, ids, targets)), targets != UNASKED
    maps = model.attention(ids).abs()
    for layer in maps / maps.sum(-1, keepdim=True).clamp(min=1e-12):
        yield torch.stack(
            [(layer * mask[:, None]).sum(-1).transpose(1, 2)[is_asked] for mask in roles_of]
        )


@torch.no_grad()
def masses(
    model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]
) -> tuple[float, float]:
    """Return the attention on the answer and the attention on noise, as means.

    The means are over questions and heads, in the layer that attends to the answer most. Both are
    fractions of the row's sum of |weight|.
    """
    return tuple(max(layer.mean((1, 2)).tolist() for layer in _shares(model, task, ids, targets)))


@torch.no_grad()
def best_heads(
    model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]
) -> tuple[float, ...]:
    """Measure how well the best head for each question attends to the answer.

    Heads may specialise on different questions, so we take the best head for each question.
    Attention is measured as in `masses`.

    Returns:
        Three numbers, all from the layer in which the first number is largest.
        The attention of the best head, as a mean over questions.
        The fraction of questions for which the attention of a head is above `SHARP`.
        The mean attention over all questions of the single head for which this mean is largest.
    """
    by_layer = []
    for shares, _ in _shares(model, task, ids, targets):
        best = shares.amax(1)
        by_layer.append(
            (float(best.mean()), float((best > SHARP).double().mean()), float(shares.mean(0).max()))
        )
    return max(by_layer)


@torch.no_grad()
def two_noises(
    model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]
) -> dict[str, float]:
    """Measure whether subtracting a differential layer's second attention matrix reduces noise.

    Let a and b be the noise of the first and the second matrix. The subtraction makes the noise
    smaller, |a - lambda b| < |a|, if the cosine of a and b is above (|b| / |a|) lambda / 2.

    Returns:
        The following numbers for each layer, over all heads and questions. The name of each ends
            with the number of the layer, as in `cosine_1`.
        `cosine`: the mean cosine of the two noises.
        `needed`: the mean of the cosine above which the subtraction helps.
        `agree`: the fraction of heads and questions whose cosine is above the needed one.
        `left`: the mean of |a - lambda b| divided by the mean of |a|.
        `gain`: the factor by which the signal-to-noise ratio changes. The signal is the mean weight
            on the answer.
        `signal`: the mean weight on the answer in the first matrix.
    """
    answer, keys = roles(task, ids, targets)
    noise = keys.any(-1)  # the questions that have noise
    # shape (questions, 1, n)
    keys, answer = (part[noise].double()[:, None] for part in (keys, answer))
    x, numbers = model.embed(ids), {}
    for number, block in enumerate(model.blocks, 1):
        states = block.norm1(x)
        first, second = (
            attention.transpose(1, 2)[noise].double() for attention in block.inner.maps(states)
        )
        heads = block.inner.heads
        lam = (
            block.inner.lam(states)
            .double()
            .expand(len(ids), heads, ids.shape[1])
            .transpose(1, 2)[noise][..., None]
        )
        a, b, difference = (
            (attention * keys).norm(dim=-1) for attention in (first, second, first - lam * second)
        )
        cosine = torch.cosine_similarity(first * keys, second * keys, dim=-1)
        needed = lam[..., 0] / 2 * b / a
        signals = [
            float((attention * answer).sum(-1).mean())
            for attention in (first, first - lam * second)
        ]
        numbers |= {
            f"cosine_{number}": float(cosine.mean()),
            f"needed_{number}": float(needed.mean()),
            f"agree_{number}": float((cosine > needed).double().mean()),
            f"left_{number}": float(difference.mean() / a.mean()),
            f"gain_{number}": signals[1]
            / max(signals[0], 1e-12)
            * float(a.mean() / difference.mean()),
            f"signal_{number}": signals[0],
        }
        x = block(x)
    return numbers


NOISE_READERS = ("weights", "output", "varying")


@torch.no_grad()
def noise_readers(
    model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"], layer: int = 1
) -> dict[str, float]:
    """Measure how much subtracting the second matrix improves the signal-to-noise ratio.

    We measure noise in three ways. The norm of the weights matters if the values are independent of
    each other. But a head adds up weight times value, and similar tokens have similar values, so
    their noise may cancel in the sum.

    Returns:
        "weights": the `gain` of `two_noises`
        "output": the factor in the head's output before its norm. Here the signal is the norm of
            the answer's part of the output, and the noise is the norm of the noise's part. The
            factor is a mean over questions and heads
        "varying": the same factor after we subtract the noise's mean over the questions. This mean
            is the same for every question, so training could remove it
    """
    answer, keys = roles(task, ids, targets)
    noise = keys.any(-1)
    keys, answer = (
        part[noise].double()[:, None, :, None] for part in (keys, answer)
    )  # shape (questions, 1, n, 1)
    x = model.embed(ids)
    for block in model.blocks[: layer - 1]:
        x = block(x)
    block = model.blocks[layer - 1]
    states = block.norm1(x)
    first, second = (
        attention.transpose(1, 2)[noise].double() for attention in block.inner.maps(states)
    )  # shape (questions, h, n)
    lam = block.inner.lam(states).double().expand(len(ids), block.inner.heads, ids.shape[1])
    difference = first - lam.transpose(1, 2)[noise][..., None] * second
    rows = torch.arange(len(ids))[:, None].expand(noise.shape)[noise]
    values = block.inner.project(states)[-1][rows].double()  # shape (questions, h, n, w)
    ratios = {}
    for weights in (first, difference):
        column = weights[..., None]
        parts = {"weights": (column * answer, column * keys)}
        parts["output"] = tuple((column * mask * values).sum(2) for mask in (answer, keys))
        parts["varying"] = (parts["output"][0], parts["output"][1] - parts["output"][1].mean(0))
        for name, (signal, noise_part) in parts.items():
            if name == "weights":
                size = signal.sum((2, 3)).mean(), noise_part[..., 0].norm(dim=-1).mean()
            else:
                size = signal.norm(dim=-1).mean(), noise_part.norm(dim=-1).mean()
            ratios.setdefault(name, []).append(float(size[0] / size[1].clamp(min=1e-12)))
    return {name: after / max(before, 1e-12) for name, (before, after) in ratios.items()}


@torch.no_grad()
def quantisation_error(model: Decoder, ids: Int[Tensor, "b n"]) -> float:
    """Return the relative change of the logits if all linear layers get inputs of `BITS` bits."""
    exact = model(ids)
    with few_bits((module for module in model.modules() if isinstance(module, nn.Linear)), BITS):
        rough = model(ids)
    return float((rough - exact).norm() / exact.norm())


def effective_rank(states: Float[Tensor, "b n d"]) -> float:
    """Return the effective rank of the centred states, from 1 to the width.

    The effective rank is the exponential of the entropy of the singular values, each divided by
    their sum.
    """
    flat = states.flatten(0, 1).double()
    shares = torch.linalg.svdvals(flat - flat.mean(0))
    shares = shares / shares.sum().clamp(min=1e-12)
    return float(torch.special.entr(shares).sum().exp())


@torch.no_grad()
def last_token_distance(model: Decoder, entry: Entry, task: str, n: int, seed: int) -> float:
    """Return how far the final hidden state moves if the last token is repeated.

    The result is the L1 distance between the final hidden states of n and of n + 1 tokens, averaged
    over 32 strings. A small distance is a sign of collapse.
    """
    ids, _ = TASKS[task](n, 32)(torch.Generator().manual_seed(seed))
    ids = ids[:, :n] if task == "retrieval" else ids[:, : n + 1]  # without the question's token
    pair = ids, torch.cat([ids, ids[:, -1:]], 1)
    if entry.separators:
        pair = [separated(tokens, len(vocabulary(task)) - 1) for tokens in pair]
    before, after = (model.states(tokens)[:, -1] for tokens in pair)
    return float((before - after).abs().sum(-1).mean())


@torch.no_grad()
def largest_logit(model: Decoder, ids: Int[Tensor, "b n"]) -> float:
    """Return the largest `outlier` of the attention logits over all layers."""
    x, outliers = model.embed(ids), []
    for block in model.blocks:
        logits = block.logits(x)
        outliers.append(outlier(logits[torch.isfinite(logits)]))
        x = block(x)
    return max(outliers)


def tests_of(entry: Entry, task: str, seed: int) -> dict[int, Batch]:
    """Draw the test sequences of an entry, as a dictionary keyed by length.

    The sequences depend only on the seed and the length, so every entry with the same seed gets the
    same questions.
    """
    return {
        n: batch(entry, task, torch.Generator().manual_seed(10**6 + 1000 * seed + n), n)
        for n in LENGTHS
    }


def look(model: Decoder, entry: Entry, task: str, seed: int) -> dict[str, float | None]:
    """Measure a trained model for one row of the table.

    The row has the scores. For the tasks in which we look at attention, the row also has all other
    measures.
    """
    tests = tests_of(entry, task, seed)
    row: dict[str, float | None] = {"parameters": sum(p.numel() for p in model.parameters())}
    row |= {f"score_{n}": score(model, *test) for n, test in tests.items()}
    looked, two = task in LOOKED and entry.model is None, {}
    ends = {
        n: tuple(part[: 32 if task != "recall" else 8] for part in tests[n])
        for n in (TRAINED, LENGTHS[-1])
    }
    for n, test in ends.items():
        names = [f"{what}_{n}" for what in ("answer", "noise", "best", "sharp", "one")]
        values = (
            (*masses(model, task, *test), *best_heads(model, task, *test))
            if looked
            else [None] * len(names)
        )
        row |= dict(zip(names, values, strict=True))
    ids = ends[LENGTHS[-1]][0]
    if looked and isinstance(model.blocks[0], Differential):
        two = two_noises(model, task, *ends[LENGTHS[-1]])
    kinds = ("cosine", "needed", "agree", "left", "gain", "signal")
    row |= {f"{what}_{number}": two.get(f"{what}_{number}") for number in (1, 2) for what in kinds}
    whole = looked and task == "retrieval"  # the lab draws these measures only for this task
    with torch.no_grad():
        states = model.states(ids) if whole else None
    row |= {
        "outlier_states": outlier(states) if whole else None,
        "outlier_logits": largest_logit(model, ids) if whole else None,
        "quantisation_error": quantisation_error(model, ids) if whole else None,
        "effective_rank": effective_rank(states) if whole else None,
    }
    for n in (TRAINED, LENGTHS[-1]):
        row[f"distance_{n}"] = (
            last_token_distance(model, entry, task, n, 10**6 + seed) if whole else None
        )
    return row
