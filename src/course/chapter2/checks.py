"""Check the answers to the exercises of chapter 2.

Call a check with your answer, which is a function or a value, depending on the exercise. The check
tries the answer on several cases. It returns a verdict with a sentence that says what is right or
wrong.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from course import exercises as checks
from course.chapter2 import figures
from course.exercises import Right, Wrong, drawn, exercise, normal, run
from course.maths import bounds, constructions  # noqa: F401  the words of the table call it
from helpers import attention, data, probe
from helpers.attention import causal_mask

progress = partial(checks.progress, globals().values())  # over all exercises of this module
compare, reason, refuse = (
    partial(each, globals()) for each in (checks.tabled, checks.reason, checks.refuse)
)


def random_attention(*shape: int, seed: int) -> Tensor:
    """Draw random causal attention (…, n, n), with rows that sum to one."""
    return normal(*shape, seed=seed).masked_fill(~causal_mask(shape[-1]), -math.inf).softmax(-1)


@exercise
def mask(answer: Any) -> Right:
    """Check a function that returns a mask of the tokens to which each token may attend."""
    shared, caption = attention.uniform(causal_mask(10)), "Your mask with equal weights per row. "
    return compare(
        "mask", answer, causal_mask, picture=lambda: drawn(*figures.graph(shared), caption)
    )


@exercise
def share(answer: Any) -> Right:
    """Check a function that turns a mask into uniform attention."""
    return compare("share", answer, attention.uniform)


@exercise
def half(answer: Any) -> Right:
    """Check a function that counts the layers until the first token has half of all weight.

    The verdict compares the result for a window with the result for the full causal mask.
    """
    compare("half", answer, _half)
    full, narrow = (int(run(f"half(32, {w})", answer, 32, w)) for w in (32, 4))
    return Right(
        f"your function gives half(32, 32) = {full} and half(32, 4) = {narrow}, "
        f"which is {narrow / full:.1f} times as many layers."
    )


def _half(n: int, width: int, enough: float = 0.5, residual: float = 0.0) -> int:
    matrix = attention.uniform(attention.window_mask(n, width))
    matrix = (1 - residual) * matrix + residual * torch.eye(n)
    layers, row = 1, matrix[-1]
    while row[0] < enough:
        layers, row = layers + 1, row @ matrix
    return layers


COPIED = 64  # the second position of the special first token


@exercise
def received(answer: Any) -> Right:
    """Check a function that computes the attention one token receives from later tokens.

    The first cases are random attention matrices. The last cases are a model's first token and a
    copy of it in the middle of the text.
    """
    compare("received", answer, _received)
    maps, name = _with_a_copy()
    first, copied, beside = (
        float(run("received", answer, maps, place)) for place in (0, COPIED, COPIED - 1)
    )
    return Right(
        f"in {name} your function gives the first token {first:.0%} of the "
        f"attention of later tokens, its copy (token {COPIED + 1}) {copied:.1%}, "
        f"and the word before the copy {beside:.1%}."
    )


def _received(attention: Tensor, place: int) -> Tensor:
    return attention[..., place + 1 :, place].mean()


@cache
def _with_a_copy() -> tuple[Tensor, str]:
    """Return a model's attention on prose with a copy of the first token in the middle.

    The text has 128 tokens, and the model is the embedded one. We also return the model's name.
    """
    model = checks.model()
    tokens = torch.cat([probe.first_token(model), probe.encode(model, data.prose())[:127]])
    tokens[COPIED] = tokens[0]
    return probe.attention_maps(model, tokens), model.name


@exercise
def influence(answer: Any) -> Right:
    """Check a function that multiplies attention over the layers, with a residual connection."""
    return compare("influence", answer, attention.influence)


@exercise
def paths(answer: Any) -> Right:
    """Check a function that counts the paths from each token to the last one."""
    return compare("paths", answer, bounds.path_count)


@exercise
def sink_score(answer: Any) -> Right:
    """Check a function for a sink score that is 0 for uniform attention and at most 1."""

    def above_uniform(matrix: Tensor) -> Tensor:
        return (attention.sink_score(matrix) - _flat(len(matrix))) / (1 - _flat(len(matrix)))

    caption = "The plain score and your score for uniform attention and for a sink. "
    return compare(
        "sink_score", answer, above_uniform, picture=lambda: drawn(*figures.trap(answer), caption)
    )


def _flat(n: int) -> float:
    return float(attention.sink_score(attention.uniform(causal_mask(n))))


@exercise
def peak(answer: Any) -> Right:
    """Check a function for the distance at which a decay mask gives the largest influence.

    The distance is an integer.
    """
    return compare("peak", answer, _peak)


def _peak(t: int, rate: float) -> int:
    """Find the distance of the largest influence by trying all distances.

    Except for ties and rounding errors, this distance is the formula's value, rounded down.
    """
    return next(x for x in itertools.count() if (t + x + 1) / (x + 1) * math.exp(-rate) <= 1)


@exercise
def norms(answer: Any) -> Right:
    """Check a function that estimates Frobenius norms of Jacobians from random directions."""
    right = compare("norms", answer, _norms)
    return Right(
        right.sentence + " If there are d directions, the estimate is exact, as in the last case."
    )


def _norms(back: Callable, rows: Tensor) -> Tensor:
    squares = torch.stack([back(row).square().sum(-1) for row in rows])
    return (rows.shape[1] * squares.mean(0)).sqrt()


def backward(seed: int, width: int) -> Callable[[Tensor], Tensor]:
    """Return a function that computes the backward pass of a linear network on 4 tokens.

    It takes a direction of shape (d,) and returns gradients of shape (4, 3).
    """
    jacobian = normal(4, 3, width, seed=seed)
    return lambda direction: jacobian @ torch.as_tensor(direction).double()


def directions(count: int, width: int, seed: int) -> Tensor:
    """Draw orthonormal rows, for use as random directions."""
    return torch.linalg.qr(normal(width, count, seed=seed + 100)).Q.T.contiguous()


@exercise
def masks(answer: Any) -> Right:
    """Check a list of masks, one per layer, that let all tokens influence the last one equally.

    A mask may have at most two tokens per row.
    """
    for layers in (1, 2, 3, 5):
        n, call = 2**layers, f"masks({layers})"
        given = run(call, answer, layers)
        try:
            each = [checks.tensor(f"each mask of {call}", m) for m in given]
        except TypeError:
            raise Wrong(f"{call} must return a list of masks, not {checks.shown(given)}.") from None
        refuse("masks", "shape", call=call, layers=layers, n=n, each=each)
        for k, m in enumerate(each, 1):
            refuse("masks", "mask", m=m, seen=m.sum(1), where=f"{call}, layer {k}")
        row = attention.influence([attention.uniform(m.bool()) for m in each])[-1]
        found = {
            "n": n,
            "heard": int((row > 0).sum()),
            "each": each,
        }  # if all tokens are reached, each is reached by one path
        refuse("masks", call=call, row=row, why=reason("masks", "why", **found), **found)
    return Right(
        "with 2, 4, 8 and 32 tokens, each token has the same share of the last "
        "token's hidden state."
    )
