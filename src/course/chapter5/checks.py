"""Check the answers to the exercises of chapter 5.

Call a function with your answer, which is a function or a value as the exercise says. The check
tries the answer on several cases. It returns a verdict and a sentence that says what is right or
wrong.
"""

import functools
import math
from typing import Any

import pandas as pd
import torch
from IPython.display import HTML
from torch import Tensor

from course import exercises as checks
from course.chapter5 import figures, measures
from course.exercises import Right, Wrong, choice, drawn, exercise, normal, number, run, tensor
from course.maths import rope_scaling
from helpers import data, intervention, models, probe, rope, style

# over all exercises of this module
progress = functools.partial(checks.progress, globals().values())
compare, reason, refuse = (
    functools.partial(each, globals()) for each in (checks.tabled, checks.reason, checks.refuse)
)


@exercise
def rotate_pair(answer: Any) -> Right:
    """Check a function that rotates a pair by the angle position times frequency."""
    return compare("rotate_pair", answer, lambda p, m, t: _turn(p, m * t))


def _turn(pair: Tensor, angle: float) -> Tensor:
    x, y = pair
    return torch.stack(
        [x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)]
    )


@exercise
def rotated(line: Any, answer: Any) -> Right:
    """Check the line that a reader calls wrong in a RoPE rotation, and their corrected function."""
    named = number("line", line)
    refuse("rotated", line=named)
    if why := reason("rotated", "read", line=named):
        raise Wrong(
            f"line {named:g} is right: {why} Try the code on an input whose result you know."
        )
    found = compare("rotated", answer, _rotated)
    slowest = math.tau / rope.frequencies(128, 10_000)[-1]
    return Right(
        f"{found.sentence} At width 128 and base 10,000 the slowest pair needs "
        f"{slowest:,.0f} tokens for a full rotation. With the mistake it needs "
        f"{math.tau * 10000 ** (63 / 128):,.0f}, and you would not notice, because "
        "norms, the first pair and position 0 are right."
    )


def _rotated(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return rope.rotate(x, positions, rope.frequencies(x.shape[-1], base))


@exercise
def apart(answer: Any) -> Right:
    """Check a function that finds how far apart the two coordinates of a rotary pair are.

    The function compares vectors before and after a rotation, which keeps the length of each pair.

    We test the function on random queries and on queries of the embedded model.
    """
    compare("apart", answer, _apart)
    before, after = queries_of_the_model()
    found = run("apart", answer, before, after)
    return Right(
        f"in {models.DEFAULT} your function gives {float(found):g} of "
        f"{before.shape[-1]}, so the model has the half layout."
    )


def _apart(before: Tensor, after: Tensor) -> int:
    lengths = [x.unflatten(-1, (2, -1)).norm(dim=-2) for x in (before, after)]
    return before.shape[-1] // 2 if torch.allclose(*lengths, rtol=1e-3) else 1


def turned(n: int, width: int, layout: str, seed: int) -> tuple[Tensor, Tensor]:
    """Draw random queries at n positions, and return them before and after their rotation."""
    before = normal(n, width, seed=seed)
    return before, rope.rotate(before, torch.arange(n), rope.frequencies(width, 100), layout)


@functools.cache
def queries_of_the_model() -> tuple[Tensor, Tensor]:
    """Return queries of the embedded model's first head, before and after the model rotates them.

    The text has eight tokens.
    """
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    model = checks.model()
    before = probe.queries_and_keys(model, probe.encode(model, data.prose())[:8])[0][0][None]
    angles = model.model.model.rotary_emb(before, torch.arange(8)[None])
    after, _ = apply_rotary_pos_emb(before, before, *angles)
    return before[0, 0], after[0, 0]


@exercise
def favourite_key(answer: Any) -> Right:
    """Check a function that returns a key whose score is largest at a given distance.

    The verdict also says how much random scores vary near and far.
    """
    m = torch.arange(2000, dtype=torch.float64)
    for text, (query, distance, theta) in checks.given(globals(), "favourite_key"):
        call = f"favourite_key({text})"
        key = tensor(call, run(call, answer, query, distance, theta))
        found = {"call": call, "key": key, "query": query, "theta": theta, "distance": distance}
        refuse("favourite_key", **found)
        scores = (
            rope.rotate(key.expand(len(m), -1), -m, theta) @ query
        )  # the key is m positions back
        found |= {"best": int(scores.argmax()), "at": torch.tensor([float(distance)])}
        refuse("favourite_key", "misses", **found, why=reason("favourite_key", "turned", **found))
    one, other = normal(2, 4000, 32, seed=5)
    near, far = (
        float((rope.rotate(other, torch.full((4000,), -d), theta) * one).sum(-1).std())
        for d in (0.0, 1999.0)
    )
    return Right(
        "each of the four keys has its largest score at the given distance. The "
        "scores of 4,000 random pairs of width 32 have the standard deviation "
        f"{near:.2f} at distance 0 and {far:.2f} at distance 1,999."
    )


@exercise
def partial(answer: Any) -> Right:
    """Check a function that keeps the fastest frequencies and sets all others to 0.

    A fraction says how many to keep. We also try the returned frequencies in the embedded model.
    """
    compare("partial", answer, _share)
    theta = probe.rotary_frequencies(checks.model()).double()
    fast = tensor("partial(theta, 0.5)", run("partial", answer, theta, 0.5))
    whole, kept, left = (_loss(tuple(each.tolist())) for each in (theta, fast, theta - fast))
    return Right(
        f"in {models.DEFAULT} your function stops the slowest half of the pairs, "
        f"and the loss goes from {whole:.2f} to {kept:.2f} nats. If the fastest "
        f"half stops instead, the loss is {left:.2f}."
    )


@functools.cache
def _loss(theta: tuple[float, ...]) -> float:
    """Return the embedded model's loss on 64 tokens of prose with these rotary frequencies."""
    model = checks.model()
    ids = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:64]
    turns = torch.polar(
        torch.ones(64, len(theta)).double(),
        torch.outer(torch.arange(64.0), torch.tensor(theta)).double(),
    )
    logits = intervention.read(model, ids, rope=turns).logits
    return float(torch.nn.functional.cross_entropy(logits[:-1], ids[1:]))


def _share(theta: Tensor, fraction: float) -> Tensor:
    return torch.where(torch.arange(len(theta)) < round(fraction * len(theta)), theta, 0.0)


@exercise
def lead(answer: Any) -> Right:
    """Check a function for the mean score lead of a similar token over a random token.

    The lead is 2 sigma^2 times the sum of cosines.
    """

    def picture() -> HTML:
        grid, distances = torch.logspace(0, 4, 200).tolist(), [1, 10, 100, 1000, 4096, 8000]
        found = {
            base: [float(answer(m, 128, base, 1.0)) for m in grid] for base in (10_000, 500_000)
        }
        frame = pd.DataFrame(found, index=pd.Index(grid, name="distance Δ (tokens)"))
        ax = style.lines(
            frame.rename(columns="base {:,}".format), "mean lead", log="x", height=3.5, form="-"
        )
        for base, line in zip(found, ax.get_lines(), strict=True):
            mean, error = measures.lead(distances, base=base, count=2000)
            ax.errorbar(distances, mean, 2 * error, fmt="o", color=line.get_color())
        ax.axhline(0, color=style.COLOURS["black"], lw=1)
        first = rope.first_negative(128, 1e4, 10_000)
        ax.set_title(f"From distance {first:,} on the lead can be negative")
        said = (
            "The lines are your function. Each point is the mean of 2,000 simulated triples with "
            "± 2 standard errors, at width 128."
        )
        return drawn(
            ax, f"{said} With base 10,000 the first negative sum is at distance {first:,}."
        )

    def exact(m: int, d: int, b: float, sigma: float) -> Tensor:
        return 2 * sigma**2 * rope.cosine_sum(m, d, b)

    return compare("lead", answer, exact, picture=picture)


@exercise
def first_negative(answer: Any) -> Right:
    """Check a function for the first distance at which the sum of cosines is negative.

    If there is no such distance below a limit, the function returns the limit.
    """
    try:
        return compare(
            "first_negative", answer, lambda d, b, limit: rope.first_negative(d, b, limit) or limit
        )
    except Wrong as wrong:
        refuse("first_negative", said=str(wrong))
        raise


def _first(found: Tensor, limit: int) -> int:
    return int(found.nonzero()[0]) if found.any() else limit


def _sums(d: int, b: float, limit: int) -> Tensor:
    return rope.cosine_sum(torch.arange(limit), d, b)


@exercise
def ntk_base(answer: Any) -> Right:
    """Check a function for the base that divides the slowest frequency by a given factor."""

    def picture() -> HTML:
        theta = rope.frequencies(128, 1e4)
        kept = rope_scaling.scaled_frequencies("ntk", 128, 1e4, 8, 4096) / theta
        ax = style.lines(pd.DataFrame({"": kept}).rename_axis("pair (fast to slow)"), "speed kept")
        ax.axvspan(-0.5, int((theta * 4096 > math.tau).sum()) - 0.5, color="#EEF4FA", zorder=0)
        ax.text(1, 1.06, "at least one turn in 4,096 tokens", color=style.COLOURS["blue"], size=13)
        same = int((kept > 1 - 1e-9).sum())
        ax.set(
            title=f"NTK-aware: {same} of 64 pairs keeps its speed",
            ylim=(-0.05, 1.15),
            xlim=(-0.5, 63.5),
        )
        return drawn(
            ax,
            (
                f"With factor 8 and base 10,000, {same} pair keeps its speed, and the slowest pair "
                f"has {kept[-1]:.3f} of its speed."
            ),
        )

    return compare("ntk_base", answer, lambda d, b, s: b * s ** (d / (d - 2)), picture=picture)


@exercise
def smallest_scale(answer: Any) -> Right:
    """Check a function for the smallest query-key scale that gives a diagonal head some weight.

    The weight is an argument, and the head has one frequency. The verdict also says by how much one
    more token raises the scale.
    """
    near = checks.tables(globals())["smallest_scale"]["tolerance"]
    for text, (theta, n, weight) in checks.given(globals(), "smallest_scale"):
        call = f"smallest_scale({text})"
        found = {
            "tolerance": near,
            "call": call,
            "theta": theta,
            "n": n,
            "weight": weight,
            "exact": rope_scaling.slash_scale(theta, n, weight),
        }
        found["scale"] = number(call, run(call, answer, theta, n, weight))
        refuse("smallest_scale", **found, why=reason("smallest_scale", "much", **found))
    name = "smallest_scale"
    costs = [
        number(name, run(name, answer, torch.tensor([0.5]).double(), n, 0.99)) for n in (88, 89)
    ]
    return Right(
        (
            f"your function gives {costs[0]:.4g} for 88 tokens and {costs[1]:.4g} for "
            f"89, which is {costs[1] / costs[0]:.3g} times as large."
        ),
        lambda: drawn(*figures.norm_cost(2, 0)),
    )


LEAST_CONTEXT, LEAST_RATIO = 2048, 1.5
REASONS = checks.tables(globals())["worse_base"]["reasons"]


@exercise
def worse_base(smaller: Any, larger: Any, context: Any, why: Any) -> Right:
    """Check two bases of which only the smaller one is large enough for a context.

    The head width is 128. The two bases must differ by a large factor, and the check also tests the
    given reason.
    """
    low, high, length = (
        number(n, x) for n, x in (("smaller", smaller), ("larger", larger), ("context", context))
    )
    negative = functools.cache(lambda base: rope.first_negative(128, base, int(length)))
    refuse("worse_base", low=low, high=high, length=length, negative=negative)
    if choice("why", why, REASONS) != "the sum jumps":
        raise Wrong(REASONS[why])
    return Right(
        f"for {length:,.0f} tokens the base {low:g} passes. The base {high:g}, "
        f"which is {high / low:.2f} times as large, fails at distance "
        f"{negative(high):,}. {REASONS[why]}"
    )
