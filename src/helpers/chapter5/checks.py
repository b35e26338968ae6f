"""What is behind the exercises of chapter 5."""

import functools
import math
import re
import sys
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from helpers import checks, rope
from helpers.chapter5 import figures
from helpers.checks import Case, Right, Trap, Wrong, choice, compare, drawn, exercise, normal, number, run, tensor

progress = functools.partial(checks.progress, globals().values())  # of all exercises of this module


def _cases(*texts: str) -> list[Case]:
    return checks.cases({"checks": sys.modules[__name__], "torch": torch, "rope": rope}, *texts)


@exercise("5.1", "Rotate one pair")
def rotate_pair(answer: Any) -> Right:
    """One pair, turned by position times frequency."""
    given = _cases(
        "torch.tensor([1.0, 0.0]), 1, 0.5",
        "torch.tensor([0.3, -2.0]), 7, 0.1",
        "torch.tensor([1.0, 2.0]), -3, 1.0",
        "torch.tensor([1.0, 1.0]), 5, 0.0",
    )
    traps = [
        Trap("It turns the wrong way: the first entry is x cos - y sin.", lambda p, m, t: _turn(p, -m * t)),
        Trap("Angles are in radians, not in degrees.", lambda p, m, t: _turn(p, math.radians(m * t))),
        Trap("The position is missing: the angle is position times frequency.", lambda p, m, t: _turn(p, t)),
        Trap("The frequency is missing: the angle is position times frequency.", lambda p, m, t: _turn(p, m)),
        Trap("Sine and cosine are exchanged.", lambda p, m, t: _turn(p, math.pi / 2 - m * t)),
        Trap("Both sines have a plus: one of them has a minus.", _stretched),
        Trap("That is a reflection: the minus belongs to the sine in the first entry.", _reflected),
        Trap("x was overwritten before y was computed: the old x is needed twice.", _overwritten),
    ]
    return compare("rotate_pair", answer, lambda p, m, t: _turn(p, m * t), given, traps)


def _turn(pair: Tensor, angle: float) -> Tensor:
    x, y = pair
    return torch.stack([x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)])


def _stretched(pair: Tensor, position: float, frequency: float) -> Tensor:
    (x, y), angle = pair, position * frequency
    return torch.stack([x * math.cos(angle) + y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)])


def _reflected(pair: Tensor, position: float, frequency: float) -> Tensor:
    (x, y), angle = pair, position * frequency
    return torch.stack([x * math.cos(angle) + y * math.sin(angle), x * math.sin(angle) - y * math.cos(angle)])


def _overwritten(pair: Tensor, position: float, frequency: float) -> Tensor:
    (x, y), angle = pair, position * frequency
    x = x * math.cos(angle) - y * math.sin(angle)
    return torch.stack([x, x * math.sin(angle) + y * math.cos(angle)])


@exercise("5.2", "The frequencies")
def frequencies(answer: Any) -> Right:
    """All angles a token of a head."""
    given = _cases("8, 10_000", "2, 500", "128, 500_000")
    traps = [
        Trap("The exponent is -2i/d: you left out the 2.", lambda d, b: b ** (-torch.arange(d // 2).double() / d)),
        Trap("The sign of the exponent: later pairs are slower.", lambda d, b: 1 / rope.frequencies(d, b)),
        Trap("One angle a pair, not one an entry: d/2 of them.", lambda d, b: rope.frequencies(d, b).repeat(2)),
        Trap("Fastest first: yours begin with the slowest.", lambda d, b: rope.frequencies(d, b).flip(0)),
        Trap("The first pair is number 0, with an angle of 1.", lambda d, b: rope.frequencies(d, b) * b ** (-2 / d)),
        Trap("The exponent is divided by d, not by d - 2: the last angle is a little above 1/b.", _to_the_end),
        Trap("These are wavelengths: 2 pi over the angle.", lambda d, b: math.tau / rope.frequencies(d, b)),
    ]
    return compare("frequencies", answer, rope.frequencies, given, traps)


def _to_the_end(width: int, base: float) -> Tensor:
    return base ** (-2 * torch.arange(width // 2).double() / max(width - 2, 1))


@exercise("5.3", "From one layout to the other")
def to_half(answer: Any) -> Right:
    """Reorder entries so that the half layout does what the interleaved one did."""
    given = _cases("torch.arange(8.0)", "checks.normal(6, seed=1)", "checks.normal(2, 3, 12, seed=2)")
    traps = [
        Trap(
            "That is the way back, from half to interleaved.",
            lambda x: x[..., rope.layout_order(x.shape[-1]).argsort()],
        ),
        Trap("Nothing has moved.", lambda x: x),
        Trap("The odd entries come last, not first.", lambda x: torch.cat([x[..., 1::2], x[..., ::2]], -1)),
        Trap("You exchanged the two halves.", lambda x: x.roll(x.shape[-1] // 2, -1)),
        Trap("You reversed the entries.", lambda x: x.flip(-1)),
    ]
    return compare("to_half", answer, lambda x: x[..., rope.layout_order(x.shape[-1])], given, traps)


SAME, SMALLER, LARGER = "about the same", "smaller", "larger"


@exercise("5.4", "Any distance can be the favourite")
def favourite_key(prediction: Any, answer: Any) -> Right:
    """The spread of random scores far away, and a key whose largest score is at a given distance."""
    reasons = {
        SMALLER: "The bound gets smaller. A Gaussian vector of which some pairs are rotated is still Gaussian: what is its product with another?",
        LARGER: "A rotation keeps the norm, so nothing can grow with distance.",
        SAME: "The rotated vector is Gaussian again, so the distance cannot matter.",
    }
    choice("prediction", prediction, reasons, SAME)
    theta, m = rope.frequencies(32, 10_000), torch.arange(2000, dtype=torch.float64)
    for seed, distance in ((0, 0), (1, 7), (2, 300), (3, 1999)):
        query = normal(32, seed=seed)
        call = f"favourite_key(checks.normal(32, seed={seed}), {distance}, rope.frequencies(32, 10_000))"
        key = tensor(call, run(call, answer, query, distance, theta))
        if key.shape != query.shape:
            raise Wrong(f"{call} must be one key of shape (32,), not {tuple(key.shape)}.")
        if not torch.isfinite(key).all() or not key.norm() > 1e-9:
            raise Wrong(f"{call} must be a key that is finite and not zero.")
        scores = rope.rotate(key.expand(len(m), -1), -m, theta) @ query  # the key stands m places back
        best = int(scores.argmax())
        if best != distance:
            other = rope.rotate(query[None], torch.tensor([-float(distance)]), theta)[0]
            beside = rope.rotate(query[None], torch.tensor([float(distance)]), theta, "interleaved")[0]
            turned = ""
            if distance and torch.allclose(key, other):
                turned = " You turned it the other way: the key stands behind the query."
            elif distance and torch.allclose(key, beside):
                turned = " You turned neighbouring entries: here entries k and k + d/2 are a pair."
            plain = " That key is the query itself." if torch.equal(key, query) and distance else ""
            raise Wrong(f"with {call} the largest score is at distance {best}, not {distance}.{turned}{plain}")
    return Right(f"each of four keys has its largest score at the distance wanted. {reasons[SAME]}")


@exercise("5.5", "p-RoPE")
def partial(answer: Any) -> Right:
    """The fastest share of the pairs keeps its angle, the others get 0."""
    given = _cases(
        "rope.frequencies(8, 10_000), 0.5",
        "rope.frequencies(16, 500), 0.75",
        "rope.frequencies(16, 500), 0.0",
        "rope.frequencies(16, 500), 1.0",
    )
    traps = [
        Trap("You kept the slowest pairs: p-RoPE keeps the fastest.", lambda f, p: _share(f.flip(0), p).flip(0)),
        Trap("You stopped the share p: p is the share that turns.", lambda f, p: _share(f, 1 - p)),
        Trap("The result keeps its length: stopped pairs have an angle of 0.", lambda f, p: f[: int(p * len(f))]),
        Trap("You multiplied all angles by p: that is linear scaling.", lambda f, p: f * p),
        Trap("One pair too many turns.", lambda f, p: _share(f, p + 1 / len(f))),
        Trap("One pair too few turns.", lambda f, p: _share(f, p - 1 / len(f))),
        Trap("You stopped the fast pairs and kept the slow ones.", lambda f, p: f - _share(f, p)),
        Trap("Nothing stopped.", lambda f, p: f),
        Trap("An angle of 1 is the fastest pair's; a pair that stands still has 0.", _ones),
    ]
    return compare("partial", answer, _share, given, traps)


def _share(theta: Tensor, fraction: float) -> Tensor:
    return torch.where(torch.arange(len(theta)) < round(fraction * len(theta)), theta, 0.0)


def _ones(theta: Tensor, fraction: float) -> Tensor:
    return torch.where(torch.arange(len(theta)) < round(fraction * len(theta)), theta, 1.0)


@exercise("5.6", "Similar against random")
def lead(answer: Any) -> Right:
    """The mean lead of a similar token: 2 sigma^2 times the sum of cosines."""
    given = _cases("0, 128, 10_000, 1.0", "1000, 128, 10_000, 0.5", "59, 128, 100, 1.0", "5000, 64, 500_000, 2.0")

    def exact(m: int, d: int, b: float, sigma: float) -> Tensor:
        return 2 * sigma**2 * rope.cosine_sum(m, d, b)

    traps = [
        Trap("The variance is sigma squared.", lambda m, d, b, s: 2 * s * rope.cosine_sum(m, d, b)),
        Trap("sigma is missing: the lead grows with the variance.", lambda m, d, b, s: 2 * rope.cosine_sum(m, d, b)),
        Trap("The factor 2 is missing: a pair has two entries.", lambda m, d, b, s: s**2 * rope.cosine_sum(m, d, b)),
        Trap(
            "The sum of cosines alone: the variance of both entries of a pair is missing.",
            lambda m, d, b, s: rope.cosine_sum(m, d, b),
        ),
        Trap("The lead can be negative: that is the point.", lambda m, d, b, s: exact(m, d, b, s).abs()),
        Trap("A mean over the pairs is not their sum.", lambda m, d, b, s: exact(m, d, b, s) / (d // 2)),
        Trap("Sines instead of cosines.", lambda m, d, b, s: 2 * s**2 * (m * rope.frequencies(d, b)).sin().sum()),
        Trap("The logit's division by the root of d is not asked for.", lambda m, d, b, s: exact(m, d, b, s) / d**0.5),
    ]

    def picture() -> HTML:
        return drawn(*figures.leads(lambda m, b: float(answer(m, 128, b, 1.0))))

    return compare("lead", answer, exact, given, traps, picture=picture)


@exercise("5.7", "The first negative sum")
def first_negative(answer: Any) -> Right:
    """The first distance below the limit with a negative sum of cosines; the limit where there is none."""
    given = _cases("128, 100, 1000", "64, 10_000, 2000", "128, 500_000, 20_000", "128, 10_000, 500", "2, 10_000, 10")

    def exact(d: int, b: float, limit: int) -> int:
        found = rope.first_negative(d, b, limit)
        return limit if found is None else found

    traps = [
        Trap("You counted from 1: the first distance is 0.", lambda d, b, limit: exact(d, b, limit) + 1),
        Trap("You give the last distance before it.", lambda d, b, limit: exact(d, b, limit) - 1),
        Trap(
            "One too small: the first entry of a list that begins at distance 1 is distance 1.",
            lambda d, b, limit: (lambda found: found - 1 if found < limit else found)(exact(d, b, limit)),
        ),
        Trap(
            "Without a negative sum the answer is the limit, not -1.",
            lambda d, b, limit: exact(d, b, limit) if exact(d, b, limit) < limit else -1,
        ),
        Trap("That is the distance of the smallest sum, not of the first negative one.", _smallest),
        Trap("That is the last negative one: stop at the first.", _last),
        Trap("That is how many are negative, not where the first is.", _count),
        Trap("Without a negative sum the answer is the limit.", lambda d, b, limit: exact(d, b, limit) % limit),
    ]

    try:
        return compare("first_negative", answer, exact, given, traps)
    except Wrong as wrong:
        if "128, 10_000, 500" in str(wrong) and re.search("returned nothing|IndexError", str(wrong)):
            said = "is None" if "nothing" in str(wrong) else "takes an entry of an empty list"
            raise Wrong(
                f"first_negative(128, 10_000, 500) {said}. No sum is negative there: the answer is the limit."
            ) from None
        raise


def _sums(d: int, b: float, limit: int) -> Tensor:
    return rope.cosine_sum(torch.arange(limit), d, b)


def _smallest(d: int, b: float, limit: int) -> int:
    return int(_sums(d, b, limit).argmin())


def _last(d: int, b: float, limit: int) -> int:
    negative = (_sums(d, b, limit) < 0).nonzero()
    return int(negative[-1]) if len(negative) else limit


def _count(d: int, b: float, limit: int) -> int:
    return int((_sums(d, b, limit) < 0).sum())


@exercise("5.8", "NTK-aware scaling")
def ntk_base(answer: Any) -> Right:
    """The base at which the slowest pair is divided by the factor."""
    given = _cases("128, 10_000, 8", "64, 500_000, 4", "4, 100, 2", "128, 10_000, 1")
    traps = [
        Trap("That divides more than the last pair needs: it has exponent 2(d/2 - 1)/d, not 1.", lambda d, b, s: b * s),
        Trap("The exponent is upside down.", lambda d, b, s: b * s ** ((d - 2) / d)),
        Trap("The base must grow: a larger base is slower.", lambda d, b, s: b / s ** (d / (d - 2))),
        Trap("The exponent is d/(d-2): solve for the last pair's angle.", lambda d, b, s: b * s ** (d / 2)),
        Trap("The exponent is d/(d-2): solve for the last pair's angle.", lambda d, b, s: b * s ** (2 / d)),
        Trap("Multiply the base; only the factor has the exponent.", lambda d, b, s: (b * s) ** (d / (d - 2))),
        Trap("The last pair is number d/2 - 1, counted from 0.", lambda d, b, s: b * s ** (d / (d - 1))),
        Trap(
            "That is the frequency of the slowest pair, not the base.", lambda d, b, s: rope.frequencies(d, b)[-1] / s
        ),
    ]

    def picture() -> HTML:
        return drawn(*figures.scaling("ntk", 8))

    return compare("ntk_base", answer, lambda d, b, s: b * s ** (d / (d - 2)), given, traps, picture=picture)


JUMPS = ("hardly at all", "about twice", "about 50 times")


@exercise("5.9", "The price of a diagonal")
def smallest_scale(prediction: Any, answer: Any) -> Right:
    """What one more token costs a diagonal head of one frequency, and the smallest scale for a weight."""
    reasons = {
        JUMPS[0]: "One token more is a small step in length. But what are 88 steps of half a radian, counted in turns?",
        JUMPS[1]: "Compute cos(44). How far is it from cos(0), and how far was the nearest before it?",
        JUMPS[
            2
        ]: "88 steps of half a radian are 44 radians, nearly seven whole turns, so distance 88 looks like distance 0.",
    }
    choice("prediction", prediction, reasons, JUMPS[2])
    for text, n, weight in (
        ("torch.tensor([1.0])", 20, 0.99),
        ("torch.tensor([1.0])", 44, 0.99),
        ("torch.tensor([1.0])", 45, 0.99),
        ("torch.tensor([1.0, 0.1])", 100, 0.9),
        ("torch.tensor([0.05])", 60, 0.5),
        ("torch.tensor([1.0, 0.5, 0.25])", 64, 0.999),
    ):
        theta = eval(text, {"torch": torch}).double()
        call = f"smallest_scale({text}.double(), {n}, {weight})"
        scale, exact = number(call, run(call, answer, theta, n, weight)), rope.slash_scale(theta, n, weight)
        reached = float(rope.slash_attention(theta, n, 0, max(scale, 0.0)).diagonal().min())
        if scale < exact * (1 - 1e-3):
            raise Wrong(f"{call} = {scale:.6g} gives the last token only {reached:.4f} on itself, less than {weight}.")
        if scale > exact * (1 + 1e-3):
            raise Wrong(
                f"{call} = {scale:.6g} is more than needed, {scale / exact:.4g} times {exact:.6g}. "
                f"{_too_much(scale, exact, theta, n, weight)}".strip()
            )

    def picture() -> HTML:
        return drawn(*figures.norm_cost(2, 0))

    return Right(f"the scale is the smallest one on six cases. {reasons[JUMPS[2]]}", picture)


def _too_much(scale: float, exact: float, theta: Tensor, n: int, weight: float) -> str:
    """What may have made a scale too large."""
    made = {
        "That is the scale for one token more.": rope.slash_scale(theta, n + 1, weight),
        "It is the next power of two: bisect between the last two scales.": 2.0 ** math.ceil(math.log2(exact)),
        "It is rounded up to a whole number.": math.ceil(exact),
        "The logit is the sum over the frequencies, not their mean.": exact * len(theta),
        "No division by a root is asked for.": exact * math.sqrt(2 * len(theta)),
    }
    return next((sentence for sentence, value in made.items() if math.isclose(scale, value, rel_tol=2e-3)), "")


REASONS = {
    "the sum jumps": "Right: the medium pairs move with the base, and at some distance many point the wrong way at once.",
    "rounding": "The sum is off by whole units, far more than float64 loses.",
    "fast pairs change": "The first pair turns by 1 at every base, and the fast ones hardly notice it.",
    "the slow pairs speed up": "A larger base slows every pair but the first.",
}


LEAST_CONTEXT, LEAST_RATIO = 2048, 1.5


@exercise("5.10", "A larger base that is worse")
def worse_base(smaller: Any, larger: Any, context: Any, why: Any) -> Right:
    """Two bases for width 128 and a context, far apart: the smaller passes, the larger fails; and the reason."""
    low, high, length = (number(n, x) for n, x in (("smaller", smaller), ("larger", larger), ("context", context)))
    if length != int(length) or not LEAST_CONTEXT <= length <= 65_536:
        raise Wrong(f"context must be a whole number from {LEAST_CONTEXT:,} to 65,536, not {length:g}.")
    if not 1 < low < high:
        raise Wrong(f"the bases must be 1 < smaller < larger, not {low:g} and {high:g}.")
    if high < LEAST_RATIO * low:
        raise Wrong(f"the larger base must be at least {LEAST_RATIO:g} times the smaller, not {high / low:.3g} times.")
    first = {name: rope.first_negative(128, base, int(length)) for name, base in (("smaller", low), ("larger", high))}
    if first["smaller"] is not None:
        raise Wrong(f"the smaller base {low:g} fails too: its sum is negative at distance {first['smaller']:,}.")
    if first["larger"] is None:
        raise Wrong(f"the larger base {high:g} passes: no sum below {length:g} is negative. Try others from there.")
    choice("why", why, {**REASONS, "the sum jumps": ""}, "the sum jumps")
    return Right(
        f"for {length:,.0f} tokens {low:g} passes, and {high:g}, {high / low:.2f} times as large, fails at distance "
        f"{first['larger']:,}. {REASONS['the sum jumps'].removeprefix('Right: ').capitalize()}"
    )
