"""What is behind the exercises of chapter 5."""

import functools
import math
import re
import sys
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter5 import figures
from course.checks import Case, Right, Wrong, choice, compare, drawn, exercise, normal, number, run, tensor
from helpers import data, intervention, models, probe, rope

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
    mistakes = """
        _turn(pair, -position * frequency) :: It turns the wrong way: the first entry is x cos - y sin.
        _turn(pair, math.radians(position * frequency)) :: Angles are in radians, not in degrees.
        _turn(pair, frequency) :: The position is missing: the angle is position times frequency.
        _turn(pair, position) :: The frequency is missing: the angle is position times frequency.
        _turn(pair, math.pi / 2 - position * frequency) :: Sine and cosine are exchanged.
        _stretched(pair, position, frequency) :: Both sines have a plus: one of them has a minus.
        _reflected(pair, position, frequency) :: That is a reflection: the minus belongs to the sine in the first entry.
        _overwritten(pair, position, frequency) :: x was overwritten before y was computed: the old x is needed twice.
        _turn(pair, math.tau * position * frequency) :: The angle is position times frequency: the frequency is in radians a position, not in turns.
        _turn(pair, position + frequency) :: The angle is the product of position and frequency, not their sum.
        _turn(pair, position / frequency if frequency else 0.0) :: The angle is the product of position and frequency, not their quotient.
        pair * math.cos(position * frequency) :: Only the cosines are there: each entry takes a sine times the other entry, too.
        torch.stack([pair[0] * math.cos(position * frequency), pair[1] * math.sin(position * frequency)]) :: Each new entry takes both old ones: x cos - y sin, and x sin + y cos.
        _turn(pair, abs(position * frequency)) :: A negative position turns backwards.
        _turn(pair, position**frequency) :: The angle is the product of position and frequency, not a power.
        _turn(pair, position * frequency).flip(0) :: The two new entries are exchanged.
    """
    return compare(
        globals(), "rotate_pair(pair, position, frequency)", answer, lambda p, m, t: _turn(p, m * t), given, mistakes
    )


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


@exercise("5.2", "A line of RoPE is wrong")
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
    mistakes = """
        rope.rotate(x, positions, base ** (-torch.arange(x.shape[-1] // 2).double() / x.shape[-1])) :: That is the code as it stands: at base 10,000 and width 4 the second angle should be 0.01.
        rope.rotate(x, positions, base ** (-2 * torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])[: x.shape[-1] // 2]) :: The 2 is there twice: `arange(0, d, 2)` steps by 2 already.
        rope.rotate(x, positions, base ** (2 * torch.arange(x.shape[-1] // 2).double() / x.shape[-1])) :: The sign of the exponent: later pairs are slower.
        rope.rotate(x, positions, rope.frequencies(x.shape[-1], base).flip(0)) :: Fastest first: yours begin with the slowest.
        rope.rotate(x, positions, rope.frequencies(x.shape[-1], base) * base ** (-2 / x.shape[-1])) :: The first pair is number 0, with an angle of 1.
        rope.rotate(x, positions, base ** (-2 * torch.arange(x.shape[-1] // 2).double() / (x.shape[-1] - 2))) :: The exponent is divided by d, not by d - 2.
        rope.rotate(x, positions, rope.frequencies(x.shape[-1], base) * math.tau) :: The angles are in radians: there was no 2 pi.
        rope.rotate(x, positions, rope.frequencies(x.shape[-1], 10_000)) :: The base is an argument: yours is always 10,000.
        rope.rotate(x, -positions, rope.frequencies(x.shape[-1], base)) :: Line 3 is mended, but the signs of line 7 were right.
        rope.rotate(x, positions, rope.frequencies(x.shape[-1], base), "interleaved") :: Line 3 is mended, but the pairs of line 6 were right.
        rope.rotate(x, positions + 1, rope.frequencies(x.shape[-1], base)) :: Line 3 is mended, but the positions of line 4 were right.
    """
    given = _cases(
        "torch.ones(2, 4).double(), torch.tensor([0.0, 1.0]), 10_000",
        "checks.normal(5, 8, seed=1), torch.arange(5.0), 500",
        "checks.normal(3, 16, seed=2), torch.tensor([2.0, 100.0, -7.0]), 10_000",
    )
    found = compare(globals(), "rotated(x, positions, base)", answer, _rotated, given, mistakes)
    slowest = math.tau / rope.frequencies(128, 10_000)[-1]
    return Right(
        f"{found.sentence} At width 128 and base 10,000 the slowest pair turns once in {slowest:,.0f} tokens; with the mistake "
        f"in {math.tau * 10_000 ** (63 / 128):,.0f}, and nothing would have told you: norms, the first pair and position 0 are right."
    )


def _rotated(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return rope.rotate(x, positions, rope.frequencies(x.shape[-1], base))


@exercise("5.3", "How far apart is a pair?")
def apart(answer: Any) -> Right:
    """The layout, from what a rotation keeps: of made-up queries, and of the embedded model's."""
    given = _cases(
        "*checks.turned(6, 8, 'half', seed=1)",
        "*checks.turned(6, 8, 'interleaved', seed=2)",
        "*checks.turned(9, 12, 'interleaved', seed=3)",
        "*checks.turned(9, 16, 'half', seed=4)",
        "*checks.queries_of_the_model()",
    )
    mistakes = """
        before.shape[-1] // 2 :: You give half of the width whatever was turned: compare `before` and `after`.
        1 :: You give 1 whatever was turned: compare `before` and `after`.
        1 if right(before, after) > 1 else before.shape[-1] // 2 :: The layouts are exchanged: the half layout keeps the lengths of entries k and k + d/2.
        right(before, after) - 1 :: You counted the entries between the two: neighbours are 1 apart.
        before.shape[-1] // 2 if right(before, after) > 1 else 2 :: Neighbours are 1 apart: 2 is how many a pair has.
        before.shape[-1] if right(before, after) > 1 else 1 :: The second half of a row begins at d/2, not at d.
    """
    compare(globals(), "apart(before, after)", answer, _apart, given, mistakes)
    width = given[-1].arguments[0].shape[-1]
    found = run("apart", answer, *given[-1].arguments)
    return Right(f"in {models.DEFAULT} your function gives {float(found):g} of {width}: it has the half layout.")


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


SAME, SMALLER, LARGER = "about the same", "smaller", "larger"


@exercise(
    "5.4",
    "Any distance can be the favourite",
    guesses={
        SMALLER: "The bound gets smaller; a Gaussian vector of which pairs are rotated is Gaussian still, with the same spread.",
        LARGER: "A rotation keeps the norm, so nothing can grow with distance.",
        SAME: "The rotated vector is Gaussian again, so the distance cannot matter.",
    },
    true=SAME,
)
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


FAST, SLOW = "the fastest half", "the slowest half"


@exercise(
    "5.5",
    "p-RoPE in a model",
    guesses={
        FAST: "Fast pairs tell the token before from its neighbours; the slow ones hardly move within 64 tokens.",
        SLOW: "Slow pairs hardly move within 64 tokens: what they would do on long texts this does not say.",
        SAME: "The fast pairs tell neighbours apart, and that cannot be replaced.",
    },
    true=FAST,
)
def partial(answer: Any) -> Right:
    """The fastest share of the pairs keeps its angle, the others get 0; then in the embedded model."""
    given = _cases(
        "rope.frequencies(8, 10_000), 0.5",
        "rope.frequencies(16, 500), 0.75",
        "rope.frequencies(16, 500), 0.0",
        "rope.frequencies(16, 500), 1.0",
    )
    mistakes = """
        right(theta.flip(0), fraction).flip(0) :: You kept the slowest pairs: p-RoPE keeps the fastest.
        right(theta, 1 - fraction) :: You stopped the share p: p is the share that turns.
        theta[:int(fraction * len(theta))] :: The result keeps its length: stopped pairs have an angle of 0.
        theta * fraction :: You multiplied all angles by p: that is linear scaling.
        right(theta, fraction + 1 / len(theta)) :: One pair too many turns.
        right(theta, fraction - 1 / len(theta)) :: One pair too few turns.
        theta - right(theta, fraction) :: You stopped the fast pairs and kept the slow ones.
        theta :: Nothing stopped.
        torch.where(right(theta, fraction) > 0, theta, 1.0) :: An angle of 1 is the fastest pair's; a pair that stands still has 0.
        right(theta, fraction / 2) :: You took the share of the width: p is a share of the pairs, of which there are half as many.
        right(theta, min(1.0, 2 * fraction)) :: Twice the share turns: theta has one entry a pair.
        torch.where(theta > fraction, theta, 0.0) :: You compared the angle with p: p is a share of the pairs.
        right(theta.flip(0), fraction) :: You reversed the pairs.
        (torch.arange(len(theta)) < fraction * len(theta)).double() :: That is the mask: multiply the angles by it.
    """
    compare(globals(), "partial(theta, fraction)", answer, _share, given, mistakes)
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


@exercise("5.6", "Similar against random")
def lead(answer: Any) -> Right:
    """The mean lead of a similar token: 2 sigma^2 times the sum of cosines."""
    given = _cases("0, 128, 10_000, 1.0", "1000, 128, 10_000, 0.5", "59, 128, 100, 1.0", "5000, 64, 500_000, 2.0")

    def exact(m: int, d: int, b: float, sigma: float) -> Tensor:
        return 2 * sigma**2 * rope.cosine_sum(m, d, b)

    mistakes = """
        2 * sigma * rope.cosine_sum(distance, width, base) :: The variance is sigma squared.
        2 * rope.cosine_sum(distance, width, base) :: sigma is missing: the lead grows with the variance.
        sigma ** 2 * rope.cosine_sum(distance, width, base) :: The factor 2 is missing: a pair has two entries.
        rope.cosine_sum(distance, width, base) :: The sum of cosines alone: the variance of both entries of a pair is missing.
        right(distance, width, base, sigma).abs() :: The lead can be negative: that is the point.
        right(distance, width, base, sigma) / (width // 2) :: A mean over the pairs is not their sum.
        2 * sigma ** 2 * (distance * rope.frequencies(width, base)).sin().sum() :: Sines instead of cosines.
        right(distance, width, base, sigma) / width ** 0.5 :: The logit's division by the root of d is not asked for.
        2 * sigma**2 * rope.cosine_sum(distance, 2 * width, base) :: There are half as many pairs as entries.
        2 * sigma**2 * (distance * rope.frequencies(width, base)).sum() :: The cosine is missing: a rotation by an angle keeps its cosine.
        width * sigma**2 - right(distance, width, base, sigma) :: That is what is lost since distance 0: asked is the lead that is left.
        right(distance + 1, width, base, sigma) :: One place too far.
        right(max(distance - 1, 0), width, base, sigma) :: One place too near.
        2 * sigma**2 * math.cos(distance) :: That is the first pair alone: add up over all pairs.
        2 * sigma**2 * (distance / rope.frequencies(width, base)).cos().sum() :: The angle is distance times frequency, not divided by it.
    """

    def picture() -> HTML:
        return drawn(*figures.leads(lambda m, b: float(answer(m, 128, b, 1.0))))

    return compare(globals(), "lead(distance, width, base, sigma)", answer, exact, given, mistakes, 1e-3, picture)


@exercise("5.7", "The first negative sum")
def first_negative(answer: Any) -> Right:
    """The first distance below the limit with a negative sum of cosines; the limit where there is none."""
    given = _cases("128, 100, 1000", "64, 10_000, 2000", "128, 500_000, 20_000", "128, 10_000, 500", "2, 10_000, 10")

    def exact(d: int, b: float, limit: int) -> int:
        found = rope.first_negative(d, b, limit)
        return limit if found is None else found

    mistakes = """
        right(width, base, limit) + 1 :: You counted from 1: the first distance is 0.
        right(width, base, limit) - 1 :: You give the last distance before it.
        (lambda found: found - 1 if found < limit else found)(right(width, base, limit)) :: One too small: the first entry of a list that begins at distance 1 is distance 1.
        right(width, base, limit) if right(width, base, limit) < limit else -1 :: Without a negative sum the answer is the limit, not -1.
        int(_sums(width, base, limit).argmin()) :: That is the distance of the smallest sum, not of the first negative one.
        _last(width, base, limit) :: That is the last negative one: stop at the first.
        int((_sums(width, base, limit) < 0).sum()) :: That is how many are negative, not where the first is.
        right(width, base, limit) % limit :: Without a negative sum the answer is the limit.
        _first(rope.cosine_sum(torch.arange(limit), width, base).diff() > 0, limit) :: That is the first place where the sum grows again, not where it is negative.
        _first((torch.arange(limit) * 1.0).cos() < 0, limit) :: That is the first pair alone: add up the cosines of all pairs.
        _first(rope.cosine_sum(torch.arange(limit), width, base) < width / 4, limit) :: That is where the sum falls below half of its start: it has to be negative.
        _first((torch.arange(limit)[:, None] * rope.frequencies(width, base)).sin().sum(1) < 0, limit) :: Sines instead of cosines.
        float(_negative(width, base, limit)) :: That is the sum there, not the distance.
        right(width, base, limit) if right(width, base, limit) < limit else limit - 1 :: Without a negative sum the answer is the limit itself.
    """

    try:
        return compare(globals(), "first_negative(width, base, limit)", answer, exact, given, mistakes)
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


@exercise("5.8", "NTK-aware scaling")
def ntk_base(answer: Any) -> Right:
    """The base at which the slowest pair is divided by the factor."""
    given = _cases("128, 10_000, 8", "64, 500_000, 4", "4, 100, 2", "128, 10_000, 1")
    mistakes = """
        base * factor :: That slows the last pair by s^((d-2)/d) only, less than s: the exponent is d/(d-2).
        base * factor ** ((width - 2) / width) :: The exponent is upside down.
        base / factor ** (width / (width - 2)) :: The base must grow: a larger base is slower.
        base * factor ** (width / 2) :: The exponent is d/(d-2): solve for the last pair's angle.
        base * factor ** (2 / width) :: The exponent is d/(d-2): solve for the last pair's angle.
        (base * factor) ** (width / (width - 2)) :: Multiply the base; only the factor has the exponent.
        base * factor ** (width / (width - 1)) :: The last pair is number d/2 - 1, counted from 0.
        rope.frequencies(width, base)[-1] / factor :: That is the frequency of the slowest pair, not the base.
        base ** (width / (width - 2)) * factor :: The exponent belongs to the factor, not to the base.
        base * factor ** (width / (width + 2)) :: The exponent is d/(d-2); yours has a plus.
        base + factor ** (width / (width - 2)) :: Multiply the base by it, do not add it.
    """

    def picture() -> HTML:
        return drawn(*figures.scaling("ntk", 8))

    return compare(
        globals(),
        "ntk_base(width, base, factor)",
        answer,
        lambda d, b, s: b * s ** (d / (d - 2)),
        given,
        mistakes,
        picture=picture,
    )


JUMPS = ("hardly at all", "about twice", "about 14 times")


@exercise(
    "5.9",
    "The price of a diagonal",
    guesses={
        JUMPS[
            0
        ]: "88 steps of half a radian are 44 radians, nearly seven whole turns: distance 88 looks like distance 0.",
        JUMPS[1]: "cos(44) is far nearer to cos(0) than any cosine before it: 44 radians are nearly seven whole turns.",
        JUMPS[
            2
        ]: "88 steps of half a radian are 44 radians, nearly seven whole turns: distance 88 looks like distance 0.",
    },
    true=JUMPS[2],
)
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
