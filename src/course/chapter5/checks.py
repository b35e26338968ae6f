"""What is behind the exercises of chapter 5."""

import functools
import math
import re
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter5 import figures, measures
from course.checks import Right, Wrong, choice, drawn, exercise, normal, number, run, tensor
from helpers import data, intervention, models, probe, rope, style

progress = functools.partial(checks.progress, globals().values())  # of all exercises of this module
compare = functools.partial(checks.tabled, globals())


@exercise
def rotate_pair(answer: Any) -> Right:
    """One pair, turned by position times frequency."""
    return compare("rotate_pair", answer, lambda p, m, t: _turn(p, m * t))


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


FAULTY = 3  # the line of 5.2 that is wrong


@exercise
def rotated(line: Any, answer: Any) -> Right:
    """Which line of a rotation by RoPE is mistaken, and the function without the mistake."""
    named = number("line", line)
    read = {
        1: "what comes in is what the statement says.",
        2: "the width is the last axis.",
        4: "an angle is position times frequency, a row for each token.",
        5: "both are needed.",
        6: "in this layout entry k and entry k + d/2 are a pair.",
        7: "that turns a pair by its angle, and the norm stays.",
    }
    if named != FAULTY:
        said = read.get(named, "the lines are numbered from 1 to 7.")
        raise Wrong(f"line {named:g} is right: {said} What does the code give where you know the result?")

    found = compare("rotated", answer, _rotated)
    slowest = math.tau / rope.frequencies(128, 10_000)[-1]
    return Right(
        f"{found.sentence} At width 128 and base 10,000 the slowest pair turns once in {slowest:,.0f} tokens; with the mistake "
        f"in {math.tau * 10_000 ** (63 / 128):,.0f}, and nothing would have told you: norms, the first pair and position 0 are right."
    )


def _rotated(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return rope.rotate(x, positions, rope.frequencies(x.shape[-1], base))


@exercise
def apart(answer: Any) -> Right:
    """The layout, from what a rotation keeps: of made-up queries, and of the embedded model's."""
    compare("apart", answer, _apart)
    before, after = queries_of_the_model()
    found = run("apart", answer, before, after)
    return Right(
        f"in {models.DEFAULT} your function gives {float(found):g} of {before.shape[-1]}: it has the half layout."
    )


def _apart(before: Tensor, after: Tensor) -> int:
    lengths = [x.unflatten(-1, (2, -1)).norm(dim=-2) for x in (before, after)]
    return before.shape[-1] // 2 if torch.allclose(*lengths, rtol=1e-3) else 1


def turned(n: int, width: int, layout: str, seed: int) -> tuple[Tensor, Tensor]:
    """Random queries at n positions, before and after they are turned."""
    before = normal(n, width, seed=seed)
    return before, rope.rotate(before, torch.arange(n), rope.frequencies(width, 100), layout)


@functools.cache
def queries_of_the_model() -> tuple[Tensor, Tensor]:
    """Queries of the embedded model's first head on eight tokens, before and after the model itself turns them."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    model = models.default()
    before = probe.queries_and_keys(model, probe.encode(model, data.prose())[:8])[0][0][None]
    angles = model.model.model.rotary_emb(before, torch.arange(8)[None])
    after, _ = apply_rotary_pos_emb(before, before, *angles)
    return before[0, 0], after[0, 0]


@exercise
def favourite_key(answer: Any) -> Right:
    """A key whose largest score is at a given distance, and the spread of random scores near and far."""
    theta, m = rope.frequencies(32, 10_000), torch.arange(2000, dtype=torch.float64)
    for seed, distance in ((0, 0), (1, 7), (2, 300), (3, 1999)):
        query = normal(32, seed=seed)
        call = f"favourite_key(checks.normal(32, seed={seed}), {distance}, rope.frequencies(32, 10_000))"
        key = tensor(call, run(call, answer, query, distance, theta))
        if key.shape[1:] == query.shape:
            raise Wrong(f"{call} has the shape {tuple(key.shape)}: return the row alone, of shape (32,).")
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
            if abs(best - distance) == 1:
                turned = " That is one place beside it."
            elif torch.allclose(-key, rope.rotate(query[None], torch.tensor([float(distance)]), theta)[0]):
                turned = " Its sign is changed."
            plain = " That key is the query itself." if torch.equal(key, query) and distance else ""
            raise Wrong(f"with {call} the largest score is at distance {best}, not {distance}.{turned}{plain}")
    one, other = normal(2, 4000, 32, seed=5)
    near, far = (float((rope.rotate(other, torch.full((4000,), -d), theta) * one).sum(-1).std()) for d in (0.0, 1999.0))
    return Right(
        "each of four keys has its largest score at the distance wanted. Of 4,000 random pairs of width 32 the scores spread by "
        f"{near:.2f} at distance 0 and by {far:.2f} at 1,999."
    )


@exercise
def partial(answer: Any) -> Right:
    """The fastest share of the pairs keeps its angle, the others get 0; then in the embedded model."""
    compare("partial", answer, _share)
    theta = probe.rotary_frequencies(models.default()).double()
    fast = tensor("partial(theta, 0.5)", run("partial", answer, theta, 0.5))
    whole, kept, left = (_loss(tuple(each.tolist())) for each in (theta, fast, theta - fast))
    return Right(
        f"in {models.DEFAULT} your function stops the slowest half of the pairs: the loss goes from {whole:.2f} to {kept:.2f} nats. "
        f"With the fastest half stopped it is {left:.2f}."
    )


@functools.cache
def _loss(theta: tuple[float, ...]) -> float:
    """The embedded model's loss on 64 tokens of prose, with these angles a token in all layers."""
    model = models.default()
    ids = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:64]
    turns = torch.polar(
        torch.ones(64, len(theta)).double(), torch.outer(torch.arange(64.0), torch.tensor(theta)).double()
    )
    logits = intervention.read(model, ids, rope=turns).logits
    return float(torch.nn.functional.cross_entropy(logits[:-1], ids[1:]))


def _share(theta: Tensor, fraction: float) -> Tensor:
    return torch.where(torch.arange(len(theta)) < round(fraction * len(theta)), theta, 0.0)


@exercise
def lead(answer: Any) -> Right:
    """The mean lead of a similar token: 2 sigma^2 times the sum of cosines."""

    def exact(m: int, d: int, b: float, sigma: float) -> Tensor:
        return 2 * sigma**2 * rope.cosine_sum(m, d, b)

    def picture() -> HTML:
        grid, distances = torch.logspace(0, 4, 200).tolist(), [1, 10, 100, 1000, 4096, 8000]
        first = rope.first_negative(128, 1e4, 10_000)
        title = f"From distance {first:,} on the lead can be negative"
        ax = style.axes(title, "distance Δ (tokens)", "mean lead", log="x", height=3.5)
        for base, colour in ((1e4, "blue"), (5e5, "green")):
            shown = {"color": style.COLOURS[colour]}
            found = [float(answer(m, 128, base, 1.0)) for m in grid]
            ax.plot(grid, found, lw=1.5, label=f"your function, base {base:,.0f}", **shown)
            mean, error = measures.lead(distances, base=base, count=2000)
            ax.errorbar(distances, mean, 2 * error, fmt="o", label="_", **shown)
        ax.axhline(0, color=style.COLOURS["black"], lw=1)
        ax.legend(loc="upper right")
        said = "Points: 2,000 simulated triples each, ± 2 s.e., width 128. First negative sum at base 10,000: "
        return drawn(ax, f"{said}{first:,}.")

    return compare("lead", answer, exact, tolerance=1e-3, picture=picture)


@exercise
def first_negative(answer: Any) -> Right:
    """The first distance below the limit with a negative sum of cosines; the limit where there is none."""

    def exact(d: int, b: float, limit: int) -> int:
        found = rope.first_negative(d, b, limit)
        return limit if found is None else found

    try:
        return compare("first_negative", answer, exact)
    except Wrong as wrong:
        if "128, 10_000, 500" in str(wrong) and re.search("returned nothing|IndexError", str(wrong)):
            said = "is None" if "nothing" in str(wrong) else "takes an entry of an empty list"
            raise Wrong(
                f"first_negative(128, 10_000, 500) {said}. No sum is negative there: the answer is the limit."
            ) from None
        raise


def _first(found: Tensor, limit: int) -> int:
    return int(found.nonzero()[0]) if found.any() else limit


def _negative(width: int, base: float, limit: int) -> float:
    sums = _sums(width, base, limit)
    return float(sums[sums < 0][0]) if (sums < 0).any() else limit


def _sums(d: int, b: float, limit: int) -> Tensor:
    return rope.cosine_sum(torch.arange(limit), d, b)


def _last(d: int, b: float, limit: int) -> int:
    negative = (_sums(d, b, limit) < 0).nonzero()
    return int(negative[-1]) if len(negative) else limit


@exercise
def ntk_base(answer: Any) -> Right:
    """The base at which the slowest pair is divided by the factor."""

    def picture() -> HTML:
        kept = rope.scaled_frequencies("ntk", 128, 1e4, 8, 4096) / rope.frequencies(128, 1e4)
        same = int((kept > 1 - 1e-9).sum())
        title = f"NTK-aware: {same} of 64 pairs keeps its speed"
        ax = style.axes(title, "pair (fast to slow)", "speed kept", height=4.1)
        turned = int((rope.frequencies(128, 1e4) * 4096 > math.tau).sum())
        ax.axvspan(-0.5, turned - 0.5, color="#EEF4FA", zorder=0)
        ax.text(1, 1.06, "at least one turn in 4,096 tokens", color=style.COLOURS["blue"], size=13)
        ax.plot(kept, "o-", ms=5, color=style.COLOURS["vermillion"])
        ax.set(ylim=(-0.05, 1.15), xlim=(-0.5, 63.5))
        return drawn(ax, f"Factor 8, base 10,000: {same} pair unchanged, the slowest at {kept[-1]:.3f} of its speed.")

    return compare("ntk_base", answer, lambda d, b, s: b * s ** (d / (d - 2)), picture=picture)


@exercise
def smallest_scale(answer: Any) -> Right:
    """What one more token costs a diagonal head of one frequency, and the smallest scale for a weight."""
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

    costs = [
        number("smallest_scale", run("smallest_scale", answer, torch.tensor([0.5]).double(), n, 0.99)) for n in (88, 89)
    ]
    return Right(
        f"your function gives {costs[0]:.4g} for 88 tokens and {costs[1]:.4g} for 89: {costs[1] / costs[0]:.3g} times.",
        picture,
    )


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


@exercise
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
