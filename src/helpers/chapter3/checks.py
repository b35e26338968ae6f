"""What is behind the exercises of chapter 3."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers import collapse
from helpers.checks import Wrong, function, number, run, same


def _rows(count: int, n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def total_variation(answer: Callable) -> None:
    """Exercise 3.1: the paper's total variation, without the factor 1/2."""
    cases = [tuple(_rows(2, n, seed)) for seed, n in enumerate((2, 5, 50))]
    batch = _rows(6, 4, seed=3).view(2, 3, 4)
    same("total_variation", answer, collapse.total_variation, [*cases, (batch[0], batch[1])])


def mean_change(answer: Callable) -> None:
    """Exercise 3.2: how far a mean moves when its last value is repeated."""
    draws = [torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (1, 2, 7, 100)]
    same("mean_change", answer, lambda v: (v.mean() - v[-1]).abs() / (len(v) + 1), [(v,) for v in draws])


def half_length(answer: Callable) -> None:
    """Exercise 3.3: the length from which a lead of `gap` gives less than half of the attention."""
    same("half_length", answer, collapse.length_for_half, [(0.5,), (2.0,), (5.0,), (10.0,)])


def alternating(answer: Any) -> None:
    """Exercise 3.4: the limit of Proposition B.4 with logits 0 and t, at t = 3."""
    target = 2 * math.tanh(1.5)
    number(
        "limit", answer, lambda x: abs(x - target) < 5e-5,
        "With logits 0 and t each pair of entries contributes |e^t - 1| twice, over a partition function of 1 + e^t a pair.",
    )  # fmt: skip


def collision(answer: Callable) -> None:
    """Exercise 3.5: the first length at which a number type cannot tell f(n) from f(n + 1)."""

    def harmonic(n):
        return 1 / n

    def shifted(n):
        return 2 + 1 / n

    cases = [(f, kind) for f in (harmonic, shifted) for kind in (torch.bfloat16, torch.float16)]
    same("first_collision", answer, collapse.first_collision, cases)


def kernel(answer: Callable) -> None:
    """Exercise 3.6: bounded logits, a function of distance, whose head keeps changing by at least 1."""
    function("kernel", answer)
    distance = torch.arange(10_001, dtype=torch.float64)
    logits = run("kernel", answer, distance)
    if not isinstance(logits, torch.Tensor) or logits.shape != distance.shape:
        raise Wrong("kernel must take a tensor of distances and return logits of the same shape.")
    if not torch.isfinite(logits).all() or logits.abs().max() > 3:
        raise Wrong(f"the logits must stay within [-3, 3]; the largest size is {float(logits.abs().max()):.3g}.")
    if not logits.any():
        raise Wrong("all logits are 0: then the head takes the mean, which collapses.")
    values = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat(2500)
    change = float(collapse.repeat_last(answer, values)[0])
    if change < 1:
        raise Wrong(
            f"with values + + - - ... and 10,000 tokens the output changes by {change:.3g}; it must be at least 1."
        )
    print(f"Right: bounded by {float(logits.abs().max()):.2f}, and one token changes the output by {change:.3f}.")


def window(answer: Callable) -> None:
    """Exercise 3.7: attention of the last token with a sliding window."""

    def solution(logits, width):
        return torch.cat([torch.zeros_like(logits[:-width]), logits[-width:].softmax(0)])

    draws = [torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (5, 9, 4)]
    same("window_attention", answer, solution, [(draws[0], 2), (draws[1], 4), (draws[2], 4), (draws[0], 8)])


def adaptive(answer: Callable) -> None:
    """Exercise 3.8: adaptive temperature."""
    draws = [
        torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0]),
        torch.tensor([9.0, 0, 0]),
        torch.cat([torch.tensor([3.0]), torch.zeros(599)]),
    ]
    batch = torch.randn(3, 12, generator=torch.Generator().manual_seed(0))
    same("adaptive_temperature", answer, collapse.adaptive_temperature, [(x.double(),) for x in (*draws, batch)])


def seq_vcr(answer: Callable) -> None:
    """Exercise 3.9: the Seq-VCR loss."""
    draws = [
        torch.randn(b, n, d, generator=torch.Generator().manual_seed(b), dtype=torch.float64)
        for b, n, d in ((4, 1, 2), (8, 3, 5))
    ]
    same("seq_vcr_loss", answer, collapse.seq_vcr_loss, [(x,) for x in (*draws, 0.1 * draws[1])])


def uniform_bound(answer: Callable) -> None:
    """Exercise 3.10: a length after which Theorem B.3's total variation stays below a bound, from n0, B and delta.

    Any correct bound passes; it is held against heads whose logits agree up to `delta` from distance `n0` on.
    """
    function("enough_tokens", answer)
    for n0, bound, epsilon in ((5, 0.5, 0.1), (20, 1.0, 0.05), (1, 6.0, 0.001)):
        call = f"enough_tokens({n0}, {bound}, {epsilon})"
        try:
            n = float(run("enough_tokens", answer, n0, bound, epsilon))
        except (TypeError, ValueError):
            raise Wrong(f"{call} must return a number.") from None
        if not n0 <= n < math.inf:
            raise Wrong(f"{call} must be a length of at least n0, not {n:g}.")
        near = n0 * math.exp(2 * bound)  # near logits B against -B, all far logits -B
        variation = 2 * (near / (near + n - n0) - n0 / n)
        if n < 2 * n0 or variation > epsilon:
            raise Wrong(
                f"{call} = {n:,.0f} is too few: near logits of +-B can still give a total variation above {epsilon}."
            )
        if n > 100 * near / epsilon:
            raise Wrong(f"{call} = {n:,.0f} is wasteful: stay within 100 n0 e^(2B) / epsilon.")
    print("Right: your length is enough, and not wasteful.")
