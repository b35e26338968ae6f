"""Measure a trained decoder for the race: right answers, attention, outliers, rank and
distance.
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
    """Compute the share of right answers."""
    return float((model(ids).argmax(-1) == targets)[targets != UNASKED].double().mean())


def _shares(
    model: Decoder, task: str, ids: Tensor, targets: Tensor
) -> Iterator[Float[Tensor, "2 questions h"]]:
    """Yield, for each layer, the shares of the attention on answer and on noise, |weight| over the
    row's sum of |weights|.

    Signed maps make the normalisation necessary; it hides how much a row that sums to less than 1
    leaves out.
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
    """Average the shares of the attention on answer and on noise over questions and heads, in the
    layer that gives the answer most.
    """
    return tuple(max(layer.mean((1, 2)).tolist() for layer in _shares(model, task, ids, targets)))


@torch.no_grad()
def best_heads(
    model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]
) -> tuple[float, ...]:
    """Compute the answer's share, as in `masses`, in the head that gives it most, question by
    question: heads may share them out.

    Returns:
        mean over questions, share of the questions with a head above `SHARP`, and the largest mean
        of one head for all questions, in the layer where the first of them is largest.
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
    """Test whether the noises a and b of a differential layer's two maps agree, and whether
    subtracting helps.

    Of all heads of a layer.

    With noises of any sizes |a - lambda b| is below |a| where their cosine is above (|b| / |a|)
    lambda / 2.

    Returns:
        for each layer: the mean cosine, what it must be above (`needed`), the share of heads and
        questions where it is (`agree`), the mean of |a - lambda b| over the mean of |a| (`left`),
        by what signal over noise is multiplied, the signal being the mean weight on the answer
        (`gain`), and that weight in the first map (`signal`).
    """
    answer, keys = roles(task, ids, targets)
    noise = keys.any(-1)  # where a question has noise
    keys, answer = (part[noise].double()[:, None] for part in (keys, answer))  # (questions, 1, n)
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
    """Compute by what subtracting the second map multiplies signal over noise, read in the weights
    and in a head's output.

    The norm of the weights is what values feel that are independent of each other. A head adds up
    weight times value, and tokens that are alike have alike values, so that their noise may cancel
    in the sum.

    Returns:
        "weights": as `gain` of `two_noises`. "output": signal and noise are the norms of the
        answer's and of the noise's part of the head's output (before its norm), the mean over
        questions and heads. "varying": the same, with the noise's part taken less its mean over
        questions, which is the same for every question and could be learned away.
    """
    answer, keys = roles(task, ids, targets)
    noise = keys.any(-1)
    keys, answer = (
        part[noise].double()[:, None, :, None] for part in (keys, answer)
    )  # (questions, 1, n, 1)
    x = model.embed(ids)
    for block in model.blocks[: layer - 1]:
        x = block(x)
    block = model.blocks[layer - 1]
    states = block.norm1(x)
    first, second = (
        attention.transpose(1, 2)[noise].double() for attention in block.inner.maps(states)
    )  # (questions, h, n)
    lam = block.inner.lam(states).double().expand(len(ids), block.inner.heads, ids.shape[1])
    difference = first - lam.transpose(1, 2)[noise][..., None] * second
    rows = torch.arange(len(ids))[:, None].expand(noise.shape)[noise]
    values = block.inner.project(states)[-1][rows].double()  # (questions, h, n, w)
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
    """Compute the relative change of the logits when all that enters a linear layer is rounded to
    `BITS` bits.
    """
    exact = model(ids)
    with few_bits((module for module in model.modules() if isinstance(module, nn.Linear)), BITS):
        rough = model(ids)
    return float((rough - exact).norm() / exact.norm())


def effective_rank(states: Float[Tensor, "b n d"]) -> float:
    """Compute exp(entropy of the singular values' shares) of all centred states: from 1 to the
    width.
    """
    flat = states.flatten(0, 1).double()
    shares = torch.linalg.svdvals(flat - flat.mean(0))
    shares = shares / shares.sum().clamp(min=1e-12)
    return float(torch.special.entr(shares).sum().exp())


@torch.no_grad()
def last_token_distance(model: Decoder, entry: Entry, task: str, n: int, seed: int) -> float:
    """Average the L1 distance of the last states of n tokens and of n + 1, the last one repeated,
    over 32 strings.
    """
    ids, _ = TASKS[task](n, 32)(torch.Generator().manual_seed(seed))
    ids = ids[:, :n] if task == "retrieval" else ids[:, : n + 1]  # without the question
    pair = ids, torch.cat([ids, ids[:, -1:]], 1)
    if entry.separators:
        pair = [separated(tokens, len(vocabulary(task)) - 1) for tokens in pair]
    before, after = (model.states(tokens)[:, -1] for tokens in pair)
    return float((before - after).abs().sum(-1).mean())


@torch.no_grad()
def largest_logit(model: Decoder, ids: Int[Tensor, "b n"]) -> float:
    """Compute `outlier` of the attention logits, the larger one of the layers."""
    x, outliers = model.embed(ids), []
    for block in model.blocks:
        logits = block.logits(x)
        outliers.append(outlier(logits[torch.isfinite(logits)]))
        x = block(x)
    return max(outliers)


def tests_of(entry: Entry, task: str, seed: int) -> dict[int, Batch]:
    """Return the rows to test on, by length."""
    return {
        n: batch(entry, task, torch.Generator().manual_seed(10**6 + 1000 * seed + n), n)
        for n in LENGTHS
    }


def look(model: Decoder, entry: Entry, task: str, seed: int) -> dict[str, float | None]:
    """Measure what the table says of a trained model: scores, and where attention is looked at all
    the rest.
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
    whole = looked and task == "retrieval"  # where the lab draws these
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
