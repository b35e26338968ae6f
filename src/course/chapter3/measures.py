"""Measure collapse for chapter 3, in random decoders and in a pretrained model.

Functions that work with any model are in `helpers.collapse`.
"""

import copy
import itertools
import math
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course.build import files
from course.maths import constructions
from helpers import collapse, compute, data, models, probe, require
from helpers.models import LanguageModel
from helpers.transformer import Decoder

SAME = 1e-3  # two states count as equal if they differ by less than this fraction of their length
BANDS = [2, 10, 30, 100, 200, 400, 800, 1200, 1600, 2047]  # limits of the bands of lengths
SEQUENCES = ("varied tokens", "first token, then equal ones")

# Random decoders ----------------------------------------------------------------------------------


def random_distance(
    tokens: Sequence[int], lengths: Sequence[int], step: int = 1, seeds: int = 5
) -> Float[Tensor, " lengths"]:
    """Measure how far `step` more tokens move the last hidden state of random decoders.

    The L1 distance is that between the last states of tokens[: n + 1] and tokens[: n + 1 + step],
    for each length n. The decoders have 3 layers and no positions, and the result is the mean over
    the seeds.
    """
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        decoder = Decoder(3, encoding="NoPE").double()
        with torch.no_grad():
            states = decoder.states(torch.tensor([tokens]))[0]
        runs.append(prefix_distance(states, lengths, step))
    return torch.stack(runs).mean(0)


def window_distance(
    sequence: str, window: int | None, lengths: Sequence[int], layers: int = 3, seeds: int = 5
) -> Float[Tensor, " lengths"]:
    """Measure how far a repeated last token moves the last hidden state of random decoders.

    The distance is L1, and the result is the mean over the seeds.

    Args:
        sequence: one of `SEQUENCES`, either nine random tokens or one token n times, after a
            separate first token.
        window: the number of tokens to which a token attends in each layer, or `None` for all
            tokens.
        lengths: the numbers of tokens before the repetition.
    """
    require.choice("sequence", sequence, SEQUENCES)
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        decoder = Decoder(10, layers=layers, encoding="NoPE", window=window).double()
        body = (
            torch.randint(1, 10, (max(lengths),))
            if sequence == SEQUENCES[0]
            else torch.ones(max(lengths)).long()
        )
        ids = torch.cat([torch.zeros(1).long(), body])
        with torch.no_grad():
            states = [
                decoder.states(torch.cat([ids[: n + 1], ids[n : n + 1]])[None])[0, -2:]
                for n in lengths
            ]
        runs.append(torch.stack([(after - before).abs().sum() for before, after in states]))
    return torch.stack(runs).mean(0)


def influence(
    window: int | None, n: int = 64, layers: int = 4, seeds: int = 5
) -> Float[Tensor, " n"]:
    """Measure the gradient of the last hidden state with respect to each token's embedding.

    Entry k of the result is the norm for the token k positions before the last one. The decoders
    are random, and the result is the mean over the seeds.
    """
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        ids, decoder = (
            torch.randint(0, 10, (1, n)),
            Decoder(10, layers=layers, window=window).double(),
        )
        start = h = decoder.embedding(ids).detach().requires_grad_()
        for block in decoder.blocks:
            h = block(h)
        direction = torch.randn(h.shape[-1], dtype=torch.float64)
        (gradient,) = torch.autograd.grad(decoder.norm(h)[0, -1] @ direction, start)
        runs.append(gradient[0].norm(dim=-1).flip(0))
    return torch.stack(runs).mean(0)


# Test whether a floating-point format tells n from n + 1 ------------------------------------------


def read_outs(
    x: Float[Tensor, "m d"], y: Float[Tensor, "m e"], asked: Float[Tensor, "k d"]
) -> Float[Tensor, "k e"]:
    """Fit linear probes for several numbers, and apply them to the vectors in `asked`.

    Each probe is fitted as in `read_out`, but the penalty of the ridge regression is 1/1000 of the
    mean eigenvalue.
    """
    x, y, asked = x.double(), y.double(), asked.double()
    rows = x - x.mean(0)
    gram = rows.T @ rows
    gram += 1e-3 * gram.trace() / len(gram) * torch.eye(len(gram), dtype=gram.dtype)
    return (
        (asked - x.mean(0)) @ torch.linalg.solve(gram, rows.T @ (y - y.mean(0))) + y.mean(0)
    ).float()


@cache
@torch.inference_mode()
def matched(
    start: int, tokens: int
) -> tuple[Float[Tensor, "layers n c"], Bool[Tensor, "n c"], Float[Tensor, "layers n"]]:
    """Compare the hidden states that candidate tokens would give with the state of the right token.

    The prompt is a piece of the prose after the model's first token. The candidates are all
    different tokens of the prose. A candidate is tried at one position at a time, after the right
    earlier tokens.

    Returns:
        Three tensors. The first has the distance between each candidate's state and the state of
            the prompt, divided by the length of the prompt's state, after each layer. The second
            says which candidate is the right one. The third says whether a linear probe of the
            state, fitted on the other tokens, predicts the right token.
    """
    model, prose = models.default(), probe.encode(models.default(), data.prose())
    first, prompt, candidates = (
        probe.first_token(model),
        prose[start : start + tokens],
        prose.unique(),
    )
    table = model.model.get_input_embeddings().weight.detach()

    def states(ids: Tensor, cache=None) -> tuple[Tensor, object]:
        out = model.model(ids, past_key_values=cache, use_cache=True, output_hidden_states=True)
        return torch.stack(out.hidden_states[1:]), out.past_key_values

    others = torch.cat([prose[: max(start - 1, 0)], prose[start + tokens :]])
    others = others[: len(others) // 100 * 100].view(-1, 100)
    rows = states(torch.cat([first.expand(len(others), 1), others], 1))[0][:, :, 1:].flatten(1, 2)
    target = states(torch.cat([first, prompt])[None])[0][:, 0, 1:]
    guesses = torch.stack(
        [
            read_outs(row, table[others.flatten()], seen)
            for row, seen in zip(rows, target, strict=True)
        ]
    )
    named = (
        torch.nn.functional.normalize(guesses, dim=-1)
        @ torch.nn.functional.normalize(table[candidates], dim=-1).T
    )
    cache, distances = states(first[None])[1], []
    for k, token in enumerate(prompt):
        parts = []
        for some in candidates.split(128):
            copied = copy.deepcopy(cache)
            copied.batch_repeat_interleave(len(some))
            parts.append(
                (states(some[:, None], copied)[0][:, :, 0] - target[:, None, k]).norm(dim=-1)
            )
        distances.append(torch.cat(parts, 1) / target[:, k].norm(dim=-1, keepdim=True))
        cache = states(token[None, None], cache)[1]
    right = candidates == prompt[:, None]
    return torch.stack(distances, 1), right, (candidates[named.argmax(-1)] == prompt).float()


def recovered(layer: int, start: int, tokens: int = 20) -> dict[str, float]:
    """Recover a prompt from the embedded model's hidden states after one layer, token by token.

    This follows Nikolaou et al. (2025). All earlier tokens are known when a token is recovered. A
    token is recovered if its candidate gives the state of the prompt, within `SAME`, and no other
    candidate does. We try every candidate, while the authors search the whole vocabulary and are
    guided by gradients.

    Returns:
        tokens: the length of the prompt
        recovered: the number of recovered tokens
        named: the number of tokens that a linear probe of the state predicts correctly
        own: the largest distance between a right token's state and the state of the prompt
        other: the smallest distance between another candidate's state and the state of the prompt
        candidates: the number of candidates
    """
    distances, right, named = matched(start, tokens)
    own, other = (
        distances[layer - 1][right],
        distances[layer - 1].masked_fill(right, math.inf).min(-1).values,
    )
    return {
        "tokens": tokens,
        "recovered": int(((own < SAME) & (other > SAME)).sum()),
        "named": int(named[layer - 1].sum()),
        "own": float(f"{float(own.max()):.2e}"),
        "other": float(f"{float(other.min()):.2e}"),
        "candidates": right.shape[1],
    }


class Resolution(NamedTuple):
    """Hold how well representations with errors can tell neighbouring prefixes apart.

    Entry n is about the prefixes of n and n + 1 tokens after the first one. Let e be the error of
    prefix n, and D the exact difference to prefix n + 1. With its error, the prefix is nearer to n
    + 1 than to n if e goes more than half of the way along D. This means <e, D> > |D|^2 / 2, or
    `along` above one half.

    Attributes:
        signal: the L1 length of D.
        floor: the L1 length of e.
        error: the L1 length of the error of the difference.
        cosine: the cosine between the difference with errors and D.
        control: the cosine between the difference with errors and D at another length, which must
            be about 0.
        length: |e| / |D| (L2).
        share: the fraction of e's squared length along D, on average 1 / d for an isotropic error.
        along: <e, D> / |D|^2.
        pair: whether prefix n with its error is nearer to n than to n + 1 (L2).
        nearest: whether prefix n with its error is nearer to n than to any other prefix (L2).
    """

    signal: Float[Tensor, " n"]
    floor: Float[Tensor, " n"]
    error: Float[Tensor, " n"]
    cosine: Float[Tensor, " n"]
    control: Float[Tensor, " n"]
    length: Float[Tensor, " n"]
    share: Float[Tensor, " n"]
    along: Float[Tensor, " n"]
    pair: Bool[Tensor, " n"]
    nearest: Bool[Tensor, " n"]


def resolution(exact: Float[Tensor, "n d"], rounded: Float[Tensor, "n d"]) -> Resolution:
    """Measure how well representations with errors still identify their prefix, at each length.

    We compare the representations of all prefixes with errors to the exact representations.
    """
    exact, rounded = exact.cpu().double(), rounded.cpu().double()
    true, seen, error = exact.diff(dim=0), rounded.diff(dim=0), (rounded - exact)[:-1]
    other = true[torch.randperm(len(true), generator=torch.Generator().manual_seed(0))]
    along = (error * true).sum(-1)
    distances = torch.cdist(rounded, exact, compute_mode="donot_use_mm_for_euclid_dist")
    cosine = torch.nn.functional.cosine_similarity
    return Resolution(
        signal=true.abs().sum(-1),
        floor=error.abs().sum(-1),
        error=(seen - true).abs().sum(-1),
        cosine=cosine(seen, true, dim=-1),
        control=cosine(seen, other, dim=-1),
        length=error.norm(dim=-1) / true.norm(dim=-1),
        share=cosine(error, true, dim=-1).square(),
        along=along / true.square().sum(-1),
        pair=distances.diagonal()[:-1] < distances.diagonal(1),
        nearest=(distances.argmin(1) == torch.arange(len(exact)))[:-1],
    )


ERRORS = ("its own", "of another prompt", "with shuffled coordinates", "isotropic")
PARTS = ("with signs flipped", "its constant part", "without its constant part")
EXACT = "none"
# the lengths on which several readouts are tested, from the first to below the second
READ = (400, 1024)


def replaced(
    exact: Float[Tensor, "n d"], rounded: Float[Tensor, "n d"], errors: str, seed: int = 0
) -> Float[Tensor, "n d"]:
    """Return the exact representations with other errors of the same L2 lengths, as a control.

    If the other errors make us confuse as many prompts as rounding does, only the size of the error
    matters.

    Args:
        errors: "its own" keeps the errors. "of another prompt" takes the errors of a later prompt,
            which is one sixteenth of the number of prompts away. "with shuffled coordinates"
            applies one permutation to the errors of all prompts. This preserves the size of each
            error, the size of the error of the difference, and what neighbouring errors have in
            common. "isotropic" takes a random direction for each prompt. "with signs flipped" flips
            half of the coordinates, the same ones for all prompts. "its constant part" is only the
            mean error over all prompts, so this error is shorter, and "without its constant part"
            is the rest.
        seed: the seed of the random choices.
    """
    require.choice("errors", errors, ERRORS + PARTS)
    exact = exact.cpu().double()
    own, generator = rounded.cpu().double() - exact, torch.Generator().manual_seed(seed)
    if errors == "of another prompt":
        return exact + own.roll(len(own) // 16, 0)
    if errors == "with shuffled coordinates":
        return exact + own[:, torch.randperm(own.shape[1], generator=generator)]
    if errors == "isotropic":
        noise = torch.randn(own.shape, generator=generator, dtype=torch.float64)
        return exact + noise * (own.norm(dim=1) / noise.norm(dim=1))[:, None]
    if errors == "with signs flipped":
        return exact + own * (2 * torch.randint(0, 2, own.shape[1:], generator=generator) - 1)
    constant = own.mean(0)
    return exact + {PARTS[1]: constant, PARTS[2]: own - constant}.get(errors, own)


def controlled(exact: Float[Tensor, "n d"], rounded: Float[Tensor, "n d"]) -> dict[str, Resolution]:
    """Measure how well prompts can be identified with a format's errors, and with each control.

    The controls are other errors of the same size (`replaced`).
    """
    return {errors: resolution(exact, replaced(exact, rounded, errors)) for errors in ERRORS}


def read_out(
    x: Float[Tensor, "m d"], y: Float[Tensor, " m"], asked: Float[Tensor, "k d"]
) -> Float[Tensor, " k"]:
    """Fit a linear probe of y on x by ridge regression in float64, and apply it to `asked`.

    The penalty is the one with the smallest leave-one-out error on the prompts of the fit, in
    closed form.
    """
    x, y, asked = x.double(), y.double(), asked.double()
    centre, level = x.mean(0), y.mean()
    rows, targets = x - centre, y - level
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    best = (math.inf, targets)
    for penalty in torch.logspace(-9, 1, 21).double() * values.mean():
        inverse = (vectors / (values.clamp(min=0) + penalty)) @ vectors.T
        weights = inverse @ targets
        left_out = (
            penalty * weights / (penalty * inverse.diagonal() - 1 / len(x))
        )  # the mean is left out, too
        best = min(best, (float(left_out.square().mean()), weights), key=lambda pair: pair[0])
    return (asked - centre) @ (rows.T @ best[1]) + level


def readings(
    exact: Float[Tensor, "n d"],
    rounded: Float[Tensor, "n d"],
    start: int,
    unembedding: Float[Tensor, "v d"],
) -> dict[str, float]:
    """Measure what several readouts still recover from rounded hidden states of repeated ones.

    The first row is the state after `start` ones, and each further row is the state after one more.
    We ask whether a readout can still tell the number n of ones.

    Returns:
        nearest: the fraction of prompts whose own exact state is the nearest of all exact states
        apart: the fraction of rounded states that equal no other rounded state
        least: the smallest L2 distance between two rounded states
        neighbour: the fraction of prompts whose nearest other rounded state belongs to n - 1 or n +
            1
        off, read: for a linear probe of n (`read_out`), fitted on even n and tested on odd n, the
            median error and the fraction of answers that round to n
        token: the fraction of prompts whose most likely next token stays the same after rounding
        variation: the mean total variation (half of the L1 distance) between the exact prediction
            and that from the rounded state
        step: the mean total variation between the exact predictions of n and n + 1
    """
    exact, rounded = exact.cpu().double(), rounded.cpu().double()
    n, seen = torch.arange(start, len(exact)), rounded[start:]

    def distances(a: Tensor, b: Tensor) -> Tensor:
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")

    between = distances(seen, seen).fill_diagonal_(math.inf)
    even, odd = n % 2 == 0, n % 2 == 1
    off = (read_out(seen[even], n[even], seen[odd]) - n[odd]).abs()
    before, after = (
        ((x.float() @ unembedding.T.float().cpu()).softmax(-1)) for x in (exact[start:], seen)
    )
    return {
        "nearest": float((distances(seen, exact).argmin(1) == n).double().mean()),
        "apart": float((between.min(1).values > 0).double().mean()),
        "least": float(between.min()),
        "neighbour": float(((between.argmin(1) - torch.arange(len(n))).abs() == 1).double().mean()),
        "off": float(off.median()),
        "read": float((off < 0.5).double().mean()),
        "token": float((before.argmax(-1) == after.argmax(-1)).double().mean()),
        "variation": float((before - after).abs().sum(-1).mean() / 2),
        "step": float(before.diff(dim=0).abs().sum(-1).mean() / 2),
    }


@cache
def passes(tokens: int, model: LanguageModel | None = None) -> dict[str, Float[Tensor, "n d"]]:
    """Return the last hidden states of 1, 2, …, `tokens` ones, keyed by format (fp32, bf16, fp16).

    Args:
        model: the model, or `None` for the embedded model.
    """
    exact = model or models.load(dtype="fp32")

    def states(each: LanguageModel) -> Tensor:
        return probe.last_representations(each, ones(each, tokens)).float().cpu()

    device = exact.model.device
    return {"fp32": states(exact)} | {
        kind: states(models.load(exact.name, dtype=kind, device=device))
        for kind in ("bf16", "fp16")
    }


def rounding(type: str, errors: str, seed: int) -> dict[str, float]:
    """Measure how well several readouts decode rounded hidden states, as a row of a table.

    The table is the committed one. The prompts are `READ` ones in the embedded model. The errors
    `EXACT` are a control without any error (see `readings`).
    """
    start, stop = READ
    states = passes(stop)
    exact = states["fp32"][:stop].cpu().double()
    seen = exact.clone()
    if errors != EXACT:
        seen[start:] = replaced(exact[start:], states[type][start:stop], errors, seed)
    found = readings(
        exact, seen, start, models.default().model.get_output_embeddings().weight.detach()
    )
    error = seen[start:] - exact[start:]
    constant = error.mean(0).square().sum() / error.square().sum(-1).mean().clamp(min=1e-30)
    return {
        name: round(value, 4) for name, value in (found | {"constant": float(constant)}).items()
    }


FOURTEEN = ("1", "0", "7", " the", "b", "x", " one", "()", "e", " and", ",", "\n", "a", " dog")
REPEATED = 513  # the number of copies of each token


def repeated_row(token: int) -> dict[str, float]:
    """Measure what happens in the embedded model if one token is repeated, in fp32 and in bf16.

    Args:
        token: the index of one of `FOURTEEN` tokens.

    Returns:
        name: the token, with a line break written as an escape sequence
        near, far: the median L1 distance between the last states of n and n + 1 copies, for n from
            8 to 16 and from 400 to 511
        fall: far divided by near
        copies: the largest norm of a copy's state at half depth, divided by the median norm for the
            course's prose at the same depth
        first: the norm of the first token's state, divided by the same median norm
        nearest, shuffled, isotropic: the fraction of prompts of 200 to 511 copies whose own exact
            state is the nearest one to the state with an error. The error is that of bf16, the same
            error with shuffled coordinates, or an isotropic one.
        apart: the fraction of rounded states that equal no other rounded state
    """
    exact, rounded = models.default(), _in_bf16()
    name = FOURTEEN[token]
    unit = probe.encode(exact, name)[-1:]
    ids = torch.cat([probe.first_token(exact), unit.repeat(REPEATED)])
    states = probe.last_representations(exact, ids)[1:].cpu().double()
    seen = probe.last_representations(rounded, ids)[1:].cpu().double()
    steps = states.diff(dim=0).abs().sum(-1)  # row n - 1 is the distance between n and n + 1 copies
    near, far = float(steps[7:16].median()), float(steps[399:511].median())
    with torch.inference_mode():
        middle = exact.model(ids[None], output_hidden_states=True, logits_to_keep=1).hidden_states
        text = probe.encode(exact, data.prose())[:REPEATED]
        usual = exact.model(
            torch.cat([ids[:1], text])[None], output_hidden_states=True, logits_to_keep=1
        ).hidden_states
    half = len(middle) // 2
    sizes, median = middle[half][0].norm(dim=-1), float(usual[half][0].norm(dim=-1).median())
    late = slice(199, 511)
    right = {}
    for label, errors in (
        ("nearest", "its own"),
        ("shuffled", "with shuffled coordinates"),
        ("isotropic", "isotropic"),
    ):
        found = replaced(states, seen, errors)
        nearest = torch.cdist(
            found[late], states, compute_mode="donot_use_mm_for_euclid_dist"
        ).argmin(1)
        right[label] = round(float((nearest == torch.arange(199, 511)).double().mean()), 4)
    between = torch.cdist(
        seen[late], seen[late], compute_mode="donot_use_mm_for_euclid_dist"
    ).fill_diagonal_(math.inf)
    return {
        "name": name.replace("\n", "\\n"),
        "near": round(near, 3),
        "far": round(far, 3),
        "fall": round(far / near, 4),
        "copies": round(float(sizes[1:].max()) / median, 2),
        "first": round(float(sizes[0]) / median, 2),
        **right,
        "apart": round(float((between.min(1).values > 0).double().mean()), 4),
    }


@cache
def _in_bf16() -> LanguageModel:
    return models.load(dtype="bf16", device="cpu")


def right_of_two(length: float, share: float) -> float:
    """Return how often a prefix stays nearer to itself than to one neighbour, in closed form.

    Its error is `length` times as long as the difference to the neighbour. On average, `share` of
    the error's squared length is along that difference, and this part is normally distributed. An
    isotropic error in many dimensions d has share 1 / d.

    >>> round(right_of_two(length=2, share=1 / 576), 6), round(right_of_two(length=2, share=0.1), 2)
    (1.0, 0.79)
    """
    return 0.5 * (1 + math.erf(0.5 / (length * math.sqrt(share)) / math.sqrt(2)))


def in_bands(found: Resolution, bands: Sequence[int] = BANDS) -> pd.DataFrame:
    """Average a resolution over bands of lengths.

    A length is the number of ones after the first token. The result has one row for each band. The
    row gives the mean of `share`. For `pair` and `nearest` it gives the fraction of prompts for
    which they are true. For every other field of `Resolution` it gives the median.
    """
    rows = []
    for low, high in itertools.pairwise(band for band in bands if band <= len(found.signal)):
        part = found._replace(along=found.along.abs())._asdict()
        values = {name: field[low:high].double() for name, field in part.items()}
        means = {name: values.pop(name).mean() for name in ("share", "pair", "nearest")}
        medians = {name: field.median() for name, field in values.items()}
        rows.append(
            {"low": low, "high": high} | {name: float(x) for name, x in (medians | means).items()}
        )
    return pd.DataFrame(rows)


def resolution_from(found: Resolution, start: int = 400) -> dict[str, float]:
    """Summarise how well prefixes are distinguished, for all lengths from `start` on.

    The keys of the summary are phrases that readers see.
    """
    part = Resolution(*(field[start:].double() for field in found))
    return {
        "error of one prompt": float(part.floor.median()),
        "error of the difference": float(part.error.median()),
        "fraction of its squared length along the difference": float(part.share.mean()),
        "right one of two": float(part.pair.mean()),
        "right one of all": float(part.nearest.mean()),
    }


# Sequences ----------------------------------------------------------------------------------------


def prefix_distance(
    states: Float[Tensor, "n d"], lengths: Sequence[int], step: int = 1
) -> Float[Tensor, " lengths"]:
    """Return the L1 distance between the last states of the prefixes of n and n + step tokens.

    The first token is not counted.
    """
    return torch.stack([(states[n + step] - states[n]).abs().sum() for n in lengths]).cpu().double()


def ones(model: LanguageModel, count: int = 512) -> Int[Tensor, " n"]:
    """Return the model's first token followed by `count` ones as single tokens.

    The ones stay single even if the tokenizer would merge them.
    """
    return torch.cat([probe.first_token(model), probe.encode(model, "1")[-1:].repeat(count)])


def random_digits(n: int, ones: Sequence[int], seed: int = 0) -> str:
    """Draw random digits, with a 1 at the given positions (counted from 1).

    The sequences in Figure 5b of Barbero et al. (2024) end with a 1.
    """
    digits = torch.randint(0, 10, (n,), generator=torch.Generator().manual_seed(seed)).tolist()
    return "".join(
        "1" if place in ones else str(digit) for place, digit in enumerate(digits, start=1)
    )


def ones_at_the_end(
    model: LanguageModel, runs: Sequence[int] = (1, 5, 20, 50), n: int = 202, seeds: int = 2
) -> Float[Tensor, " runs"]:
    """Measure how far the last hidden state moves if we repeat the last digit, a 1.

    The distance is the L1 distance.

    Args:
        runs: how many of the last digits are ones. The other digits are random.
    """
    found = [
        [
            collapse.last_token_distance(
                model, [n], sequence=random_digits(n, range(n - k + 1, n + 1), seed)
            )
            for k in runs
        ]
        for seed in range(seeds)
    ]
    return torch.tensor(found).double().mean(0)


def merging(
    model: LanguageModel, letters: str = "abx", lengths: Sequence[int] = (16, 64, 256)
) -> pd.DataFrame:
    """Measure how far one more letter moves the last hidden state if the tokenizer merges letters.

    The distance is the L1 distance. We compare three ways to make the text longer. The first adds a
    letter and tokenizes the text again. The second adds a whole token. The third adds a letter to a
    text in which each letter is a separate token, which the tokenizer itself would never write.

    Returns:
        One row per letter and length, with one column for each way.
    """
    first, rows = probe.first_token(model), []

    def states(ids: Tensor) -> Tensor:
        return probe.last_representations(model, torch.cat([first, ids])).cpu().double()

    for letter in letters:
        alone = states(probe.encode(model, letter).repeat(max(lengths) + 1))
        for n in lengths:
            cut = probe.encode(model, letter * n)
            size = max(1, n // len(cut))
            base, one, token = (
                states(probe.encode(model, letter * k))[-1] for k in (n, n + 1, n + size)
            )
            rows.append(
                {
                    "letter": letter,
                    "letters": n,
                    "letters a token": n / len(cut),
                    "one letter more": float((one - base).abs().sum()),
                    "one token more": float((token - base).abs().sum()),
                    "one letter more, unmerged": float((alone[n + 1] - alone[n]).abs().sum()),
                }
            )
    return pd.DataFrame(rows)


def right_both_ways(margins: dict, place: str) -> Bool[Tensor, " lengths"]:
    """Return the lengths at which a model answers correctly for both digits at one position.

    The model must answer 0 if the digit at this position is a 0, and 1 if it is a 1.
    """
    zero, one = margins[place, place]
    return (zero > 0) & (one < 0)


@cache
def telling_apart(model: LanguageModel) -> pd.DataFrame:
    """Measure how well formats distinguish n from n + 1 ones, in a model given by the reader.

    The table has the form of the committed one. The prompts are ones, up to 2,048 tokens or up to
    the model's context.
    """
    return tabled(
        passes(min(2048, model.model.config.get_text_config().max_position_embeddings - 1), model)
    )


def tabled(states: dict[str, Tensor]) -> pd.DataFrame:
    """Return how well prefixes are told apart, with a row per format, error and band of lengths."""
    tables = [
        in_bands(found).assign(type=kind, errors=errors)
        for kind in ("bf16", "fp16")
        for errors, found in controlled(states["fp32"], states[kind]).items()
    ]
    return pd.concat(tables)


def write(out: Path) -> None:
    """Measure how well formats distinguish n from n + 1 ones, and write the committed table.

    The model is the embedded one. The file begins with the command that produces it.
    """
    start, found = time.monotonic(), tabled(passes(2048))
    lines = (
        (
            f"# {models.DEFAULT} (4-bit file, unpacked), ones after the first token; "
            "for low <= n < high medians, and means of share,"
        ),
        (
            "#   pair and nearest; errors: those of the type, and others of the same length "
            "(course.chapter3.measures.replaced)"
        ),
        f"# command: python -m course.runs {out.stem}",
        f"#   {time.strftime('%Y-%m-%d')}, 2 CPU cores, {time.monotonic() - start:.0f} s, "
        f"Python {sys.version.split()[0]}, "
        f"torch {torch.__version__}",
    )
    files.write(out, "\n".join(lines) + "\n" + found.to_csv(index=False, float_format="%.4f"))


# further arguments of `collapse.copying_margins`, in addition to those of the plain prompt
PROMPTS = {
    "hint": {"hint": True},
    "alternating": {"pattern": "alternating"},
    "groups of ten": {"pattern": "repeated"},
    "question first": {"prompt": "type 1"},
    "form first": {"prompt": "type 2"},
}
DIGITS = (5, 300)


def copied(prompt: str) -> dict[str, float]:
    """Measure the copying margins of the embedded model for a row of the committed table.

    The name of a column has the position of the digit, the position that the question asks for, the
    digit (0 or 1), and the length.
    """
    found = collapse.copying_margins(models.default(), DIGITS, **PROMPTS[prompt])
    return {
        f"{place}_{asked}_{digit}_{n}": round(float(margin), 4)
        for (place, asked), pair in found.items()
        for digit, margins in zip("01", pair, strict=True)
        for n, margin in zip(DIGITS, margins, strict=True)
    }


def other_prompts(model: LanguageModel) -> dict[str, dict[tuple[str, str], tuple[Tensor, Tensor]]]:
    """Measure whether a model copies a digit if we change the lab's prompt.

    One of the changed prompts contains a hint, for example. The prompts are `PROMPTS`, and the
    margins are those of `collapse.copying_margins`. For the embedded model they come from the
    committed table.
    """
    if model.name != models.DEFAULT:
        asked = compute.progress(PROMPTS, "copying prompts")
        return {
            prompt: collapse.copying_margins(model, DIGITS, **PROMPTS[prompt]) for prompt in asked
        }
    return {
        row["prompt"]: {
            (place, asked): tuple(
                torch.tensor([row[f"{place}_{asked}_{digit}_{n}"] for n in DIGITS])
                for digit in "01"
            )
            for place, asked in itertools.product(collapse.PLACES, collapse.PLACES)
        }
        for row in data.table("copying_prompts").to_dict("records")
    }


LAYER_LENGTHS = (10, 100, 1000, 10_000)
# as the text of Figure 10 says (with one head, ALiBi's slope is 2^-8), and variants that it does
# not describe
READING = {
    "NoPE": {"encoding": "NoPE"},
    "RoPE": {"encoding": "RoPE"},
    "ALiBi 1/256": {"encoding": "ALiBi", "slope": 1 / 256},
    "APE on q, k": {"encoding": "APE on q, k"},
}
VARIANTS = {
    "ALiBi 1/2": {"encoding": "ALiBi", "slope": 1 / 2},
    "APE on q, k, v": {"encoding": "APE on q, k, v"},
}
SEPARATED = (13, 25, 49, 97, 193, 385)


@cache
def layer_means(residual: bool, deviation: float = 1.0, seeds: int = 10) -> dict[str, Tensor]:
    """Measure how far one repeated token moves a random layer's output, for each encoding.

    The distances are those of Figures 8 and 10 of Barbero et al. (2024) at `LAYER_LENGTHS`, as
    means over the seeds. An encoding is a position encoding.
    """
    setting, means = {"lengths": LAYER_LENGTHS, "residual": residual, "deviation": deviation}, {}
    for name, choice in (READING | VARIANTS).items():
        runs = [
            constructions.one_layer_distance(**choice, **setting, seed=seed)
            for seed in range(seeds)
        ]
        means[name] = torch.stack(runs).mean(0)
    return means


@cache
def separator_curves() -> dict[str, Tensor]:
    """Compare how random decoders collapse on ones, with and without commas between them.

    The sequences are ones, and ones with a comma after every second one. The distances are for
    repeating 1 and 3 tokens.
    """
    ones, commas = [0] + [1] * 400, [0] + [1, 1, 2] * 134
    return {
        f"{name}, n to n + {step}": random_distance(tokens, SEPARATED, step)
        for step in (1, 3)
        for name, tokens in (("ones", ones), ("commas", commas))
    }
