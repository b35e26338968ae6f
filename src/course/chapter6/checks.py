"""What is behind the exercises of chapter 6."""

import math
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from scipy import stats
from torch import Tensor
from torch.nn import functional

from course import checks, significance
from course.chapter6 import figures, measures
from course.checks import Case, Right, Wrong, compare, drawn, exercise, normal, run, shown
from course.experiments import comparison, race
from course.experiments.entries import BASELINE
from course.experiments.protocol import BUDGET, LEVEL, TRAINED
from helpers import attention, data, differential, models, probe, style

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


progress = partial(checks.progress, globals().values())  # of all exercises of this module


def _cases(*texts: str) -> list[Case]:
    names = {"checks": sys.modules[__name__], "torch": torch, "math": math, "differential": differential}
    return checks.cases(names, *texts)


def _floats(value: Any) -> Tensor:
    return torch.as_tensor(value).detach().double()


# Two maps ----------------------------------------------------------------------------------------------


@exercise("6.1", "Subtract two maps")
def subtract(answer: Any, largest: Any) -> Right:
    """The signed row, and the largest lambda at which no weight of it is below 0."""
    given = _cases(
        "torch.tensor([2.0, 0.0]), torch.tensor([0.0, 0.0]), 0.5",
        "torch.tensor([1.0, 0.0, -1.0]), torch.tensor([0.0, 2.0, 0.0]), 0.8",
        "checks.normal(3, 5, seed=1), checks.normal(3, 5, seed=2), 0.2",
        "torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 0.0",
    )

    def maps(f: Callable) -> Callable:
        return lambda x, y, lam: f(x.softmax(-1), y.softmax(-1), lam)

    mistakes = """
        (first - lam * second).softmax(-1) :: A softmax of the difference is not the difference of the softmaxes.
        first.softmax(-1) - (lam * second).softmax(-1) :: λ stands before the second softmax, not inside: it scales weights, not logits.
        maps(lambda a, b, lam: (1 - lam) * a - lam * b)(first, second, lam) :: The first map keeps its full weight: λ takes nothing of it.
        maps(lambda a, b, lam: lam * a - b)(first, second, lam) :: λ belongs to the second map.
        maps(lambda a, b, lam: a - b)(first, second, lam) :: λ is missing.
        maps(lambda a, b, lam: b - lam * a)(first, second, lam) :: The two maps are exchanged.
        maps(lambda a, b, lam: a + lam * b)(first, second, lam) :: The second map is subtracted, not added.
        maps(lambda a, b, lam: (a - lam * b).relu())(first, second, lam) :: You cut off what is below 0: the weights may be negative.
        maps(lambda a, b, lam: (a - lam * b) / (1 - lam))(first, second, lam) :: You divided by the row's sum: it is not 1 but 1 - λ, and stays so.
        first.softmax(0) - lam * second.softmax(0) :: softmax is over the last axis, the keys: dim=-1.
        first - lam * second :: These are logits: take a softmax of each first.
        first.softmax(-1) - lam * second.softmax(-1) + lam :: You added λ: nothing is added after the subtraction.
        (1 - lam) * first.softmax(-1) + lam * second.softmax(-1) :: That is a mixture: the second map is subtracted, and the first keeps its weight.
        lam * (first - second).softmax(-1) :: A softmax of the difference is not the difference of the softmaxes.
        maps(lambda a, b, lam: lam * (a - b))(first, second, lam) :: λ belongs to the second map alone.
    """
    compare(globals(), "difference(first, second, lam)", answer, differential.difference, given, mistakes, maps=maps)
    rows = _cases(
        "torch.tensor([2.0, 0.0]), torch.tensor([0.0, 0.0])",
        "torch.tensor([1.0, 0.0, -1.0]), torch.tensor([0.0, 2.0, 0.0])",
        "checks.normal(6, seed=3), checks.normal(6, seed=4)",
        "torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 3.0, 0.0])",
        "torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0])",
    )

    def ratios(f: Callable) -> Callable:
        return lambda x, y: f(x.softmax(-1), y.softmax(-1))

    below = """
        ratios(lambda a, b: (a / b).max())(first, second) :: That λ leaves one weight alone above 0: take the key that falls first.
        (first / second).min() :: Divide the weights, not the logits.
        ratios(lambda a, b: a.min() / b.min())(first, second) :: The two smallest weights need not be at one key: divide key by key.
        ratios(lambda a, b: a[a.argmin()] / b[a.argmin()])(first, second) :: The key with the smallest weight is not the first to fall: divide key by key.
        ratios(lambda a, b: a[b.argmax()] / b.max())(first, second) :: The key with the largest second weight is not the first to fall: divide key by key.
        (first - second).min().exp() :: The sums under the two softmaxes are missing.
        ratios(lambda a, b: (a / b).argmin())(first, second) :: That is the key, not the λ.
        ratios(lambda a, b: (b / a).min())(first, second) :: Upside down: first weight over second.
        ratios(lambda a, b: (a - b).min())(first, second) :: Divide the weights, do not subtract them: λ is a factor.
        ratios(lambda a, b: (a / b).mean())(first, second) :: That is the mean of the ratios: one weight falls below 0 before.
        ratios(lambda a, b: (a / b)[-1])(first, second) :: That is the last key alone: take the smallest ratio.
        ratios(lambda a, b: (a / b)[0])(first, second) :: That is the first key alone: take the smallest ratio.
        ratios(lambda a, b: (a / b).sum())(first, second) :: Take the smallest ratio, not their sum.
        ratios(lambda a, b: a.sum() / b.sum())(first, second) :: Both sums are 1: divide key by key.
    """
    compare(
        globals(), "largest(first, second)", largest, ratios(lambda a, b: (a / b).min()), rows, below, ratios=ratios
    )

    def picture() -> HTML:
        first, second = (x[0, :24] for x in measures.noisy_logits(3.0, 0.8, 24))
        before, row = first.softmax(-1), _floats(answer(first, second, 0.8))
        ax = style.axes(f"λ = 0.8: {int((row < -1e-12).sum())} of 24 weights are negative", "key", "weight")
        ax.bar(range(24), before.tolist(), 0.9, color="#cccccc", label="first map")
        ax.bar(range(24), row.tolist(), 0.45, color=[RED if w < 0 else BLUE for w in row])
        ax.axhline(0, color=BLACK, lw=1)
        ax.legend()
        bound = float(_floats(largest(first, second)))
        return drawn(ax, f"The row sums to {row.sum():.2f}. No weight is below 0 up to λ = {bound:.3f}.")

    return Right("both functions agree with the solution on all cases. A row sums to 1 - λ.", picture)


@exercise(
    "6.2",
    "Do two heads share their noise?",
    guesses={
        "nearly 0": "The heads of a layer read the same text, and near tokens get more from all of them.",
        "about a half": "A difference with λ makes noise smaller where the cosine is above λ / 2.",
        "nearly 1": "Heads look at different things: a second head is no copy of the first.",
    },
    true="about a half",
)
def shared(answer: Any) -> Right:
    """The cosine of two rows without one key; then over all pairs of heads of the embedded model."""
    given = _cases(
        "torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.8, 0.1, 0.1]), 0",
        "checks.rows(6, seed=1), checks.rows(6, seed=2), 0",
        "checks.rows(9, seed=3), checks.rows(9, seed=4), 5",
    )
    mistakes = """
        _cosine(first, second) :: The key that is left out is still there: a sink makes all heads alike.
        _cosine(_without(first, left_out), second) :: The key is left out of the first row alone, and still in the length of the second.
        _without(first, left_out) @ _without(second, left_out) :: That is the product: divide by both lengths.
        _without(first, left_out) @ _without(second, left_out) / (_without(first, left_out).sum() * _without(second, left_out).sum()) :: You divided by the sums: a length is the root of the sum of squares.
        _without(first, left_out) @ _without(second, left_out) / _without(first, left_out).norm() ** 2 :: That is the part of the second row along the first: divide by both lengths.
        _without(first, left_out) @ _without(second, left_out) / (first.norm() * second.norm()) :: The lengths are those of the whole rows: leave the key out of them, too.
        _cosine(_other(first, left_out) - _other(first, left_out).mean(), _other(second, left_out) - _other(second, left_out).mean()) :: That is the correlation: a cosine takes no mean off.
        right(first, second, 0) :: You always leave out the first key: the number is an argument.
        _cosine(first[: left_out + 1], second[: left_out + 1]) :: You kept the keys up to that one: all others stay.
        _cosine(first[left_out + 1 :], second[left_out + 1 :]) :: You dropped all keys up to that one: it alone is left out.
        right(first, second, left_out).acos() :: That is the angle: asked is its cosine.
        right(first, second, left_out).square() :: That is the square of the cosine.
    """
    compare(globals(), "shared(first, second, left_out)", answer, _shared, given, mistakes)
    cosines, name = _of_all_heads()
    one, other, found = cosines
    yours = float(_floats(run("shared", answer, one, other, 0)))
    return Right(
        f"your function gives {yours:.2f} for two rows of {name}. Over all pairs of heads of one layer, on 64 tokens of prose, the "
        f"mean is {float(found.mean()):.2f}, and {float((found > 0.4).double().mean()):.0%} are above 0.4."
    )


def rows(n: int, seed: int) -> Tensor:
    """A row of attention weights."""
    return normal(n, seed=seed).softmax(-1)


def _other(row: Tensor, key: int) -> Tensor:
    return row[torch.arange(len(row)) != key]


def _without(row: Tensor, key: int) -> Tensor:
    return torch.where(torch.arange(len(row)) == key, 0.0, row)


def _cosine(first: Tensor, second: Tensor) -> Tensor:
    return first @ second / (first.norm() * second.norm())


def _shared(first: Tensor, second: Tensor, key: int) -> Tensor:
    return _cosine(_without(first, key), _without(second, key))


@cache
def _of_all_heads() -> tuple[tuple[Tensor, Tensor, Tensor], str]:
    """Two rows of the embedded model, the cosines of all pairs of heads of one layer without the first token, its name."""
    model = models.default()
    ids = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:64]
    maps = probe.attention_maps(model, ids).double()[:, :, 16:]
    kept = functional.normalize(maps[..., 1:], dim=-1)
    cosines = torch.einsum("lhqk,lgqk->hglq", kept, kept)
    pairs = torch.ones(cosines.shape[:2]).triu(1).bool()
    return (maps[10, 0, -1], maps[10, 1, -1], cosines[pairs]), model.name


SHRINKS, LEAVES, GROWS = "a part of it goes", "it stays the same", "it grows"


@exercise(
    "6.3",
    "Noise that two maps share",
    guesses={
        SHRINKS: "Half of the second pattern lies along the first and takes half of it away; the other part adds as much again.",
        LEAVES: "Two arrows of one length at 60 degrees: the third side of an equilateral triangle is as long as they are.",
        GROWS: "At right angles it would. Here the patterns agree in part: two arrows, 60 degrees apart.",
    },
    true=LEAVES,
)
def noise_left(answer: Any) -> Right:
    """The size of a difference of two patterns."""
    given = _cases("0.0, 0.8", "1.0, 0.8", "0.9, 0.8", "0.4, 0.8", "0.5, 0.2")
    mistakes = """
        1 - lam :: That holds only where both patterns are the same, at a cosine of 1.
        1 - lam * cosine :: That subtracts the shared part alone: the second pattern brings the rest along.
        1 + lam ** 2 - 2 * lam * cosine :: That is the square of the size: take the root.
        math.sqrt(1 + lam ** 2 + 2 * lam * cosine) :: The sign: a difference gets smaller as the patterns agree.
        math.sqrt(1 - cosine ** 2) :: That is what the best λ leaves, λ = c: here λ is given.
        math.sqrt(1 + lam ** 2) :: The cosine is missing: that is true of independent patterns.
        math.sqrt(1 + lam ** 2 - lam * cosine) :: The factor 2 is missing: the mixed product comes twice.
        math.sqrt(max(0.0, 1 + lam ** 2 - 2 * cosine)) :: λ stands in the mixed product, too.
        math.sqrt(1 + lam - 2 * lam * cosine) :: λ is squared where it stands alone.
        math.sqrt(2 - 2 * cosine) :: That is for λ = 1: here λ is given.
        math.sqrt(max(0.0, 1 - 2 * lam * cosine)) :: λ² is missing: the second pattern has a size of its own.
        math.sqrt(1 + lam**2 - 2 * lam * math.cos(cosine)) :: It is the cosine already: take no cosine of it.
        math.sqrt((1 - cosine) * (1 + lam**2)) :: The mixed product has λ once: 2 λ times the cosine.
        abs(1 - lam * cosine) :: That subtracts the shared part alone: the second pattern brings the rest along.
    """
    compare(
        globals(),
        "noise_left(cosine, lam)",
        answer,
        lambda c, lam: math.sqrt(1 + lam**2 - 2 * lam * c),
        given,
        mistakes,
    )

    def picture() -> HTML:
        ax, finding = figures.noise_left()
        places = [k / 20 for k in range(21)]
        ax.plot(places, [float(_floats(answer(c, 0.8))) for c in places], "x", ms=9, mew=2, color=BLACK)
        return drawn(ax, f"Crosses: your function at λ = 0.8. {finding}")

    return Right(
        f"your function gives noise_left(0.5, 1.0) = {float(run('noise_left', answer, 0.5, 1.0)):.3g}.", picture
    )


# From logits to weights --------------------------------------------------------------------------------


@exercise("6.4", "Off by one")
def off_by_one(answer: Any) -> Right:
    """Softmax with a 1 in the denominator, at logits of any size."""
    given = _cases(
        "torch.tensor([2.0, 1.0, 0.0, -1.0])",
        "torch.zeros(4)",
        "checks.normal(2, 3, 6, seed=1)",
        "torch.tensor([-1000.0, -1000.0])",
        "torch.tensor([0.0, -math.inf])",
        "torch.tensor([1000.0, 0.0])",
        "torch.tensor([1000.0, 999.0]).double()",
    )

    def shifted(x: Tensor, one: Callable[[Tensor], Any]) -> Tensor:
        top = x.max(-1, keepdim=True).values
        e = (x - top).exp()
        return e / (one(top) + e.sum(-1, keepdim=True))

    mistakes = """
        _naive(logits) :: exp(1000) is infinite: subtract the largest logit first, and think of the 1.
        _naive(logits.clamp(max=50)) :: A logit that is cut off no longer says by how much it leads: subtract the largest one from all.
        _naive(logits).nan_to_num(1.0) :: Infinity over infinity is no number, and 1 is a guess: subtract the largest logit first.
        _naive(logits).nan_to_num(0.0) :: Infinity over infinity is no number, and 0 is a guess: subtract the largest logit first.
        shifted(logits, lambda top: 1) :: After subtracting the largest logit the 1 has to shrink as well: it is exp(-largest).
        logits.softmax(-1) :: That is softmax: the 1 in the denominator is missing.
        logits.exp() / (logits.exp() + 1).sum(-1, keepdim=True) :: One 1 in all, not one for each key.
        functional.pad(logits, (1, 0)).softmax(-1) :: There is one weight too many: cut off the one of the extra logit.
        functional.pad(logits, (1, 0)).softmax(-1)[..., :-1] :: You cut off a key and kept the extra logit: it came first.
        functional.pad(logits, (1, 0), value=1.0).softmax(-1)[..., 1:] :: The extra logit is 0, so that it adds exp(0) = 1; yours is 1.
        logits.exp() / (1 + logits.exp().sum()) :: The sum is over the last axis, the keys: each row has its own.
        attention.softpick(logits) :: That is softpick: here nothing is taken off the numerators.
        logits.sigmoid() :: That is a sigmoid: each key by itself.
        logits.softmax(-1) / 2 :: Half of softmax is right for one case only: the 1 stands in the denominator.
        logits.softmax(-1) * logits.shape[-1] / (logits.shape[-1] + 1) :: That is right for logits of 0 only: the 1 stands beside the exponentials.
        (logits.exp() - 1) / logits.exp().sum(-1, keepdim=True) :: The 1 is added below, not taken off above.
    """
    return compare(
        globals(),
        "off_by_one(logits)",
        answer,
        attention.softmax_off_by_one,
        given,
        mistakes,
        picture=lambda: _maps({"softmax": lambda x: x.softmax(-1), "yours": answer}, "nothing found", 64),
        shifted=shifted,
    )


def _naive(x: Tensor) -> Tensor:
    return x.exp() / (1 + x.exp().sum(-1, keepdim=True))


def _maps(ways: dict[str, Callable], content: str, n: int) -> HTML:
    """The weights of each way on the logits of the lesson's panel."""
    logits, places = measures.panel_logits(content, n)
    found = {name: _floats(way(logits.clone())) for name, way in ways.items()}
    ax = style.axes("", "key", "weight")
    for shift, (name, row), colour in zip((0.0, 0.3, 0.6), found.items(), (GREY, BLUE, RED), strict=False):
        ax.vlines(torch.arange(n) + shift, 0, row, color=colour, lw=2.5, label=name)
    ax.axhline(0, color=BLACK, lw=0.8)
    ax.legend()
    if places:
        said = ", ".join(f"{name} {row[places].sum():.2f}" for name, row in found.items())
        zeros = ", ".join(f"{name} {int((row == 0).sum())}" for name, row in found.items())
        finding = f"The answer among {n} keys gets: {said}. Exact zeros: {zeros}."
    else:
        said = ", ".join(f"{name} {row.sum():.2f}" for name, row in found.items())
        finding = f"Nothing fits the query, and the weights sum to: {said}."
    ax.set_title(f"{content.capitalize()}: {said}")
    return drawn(ax, finding)


@exercise("6.5", "A scale that outlives the context")
def smallest_scale(answer: Any) -> Right:
    """The smallest s of scalable softmax that gives the key that leads a weight."""
    given = _cases("1.0, 100, 0.5", "2.0, 4096, 0.9", "6.0, 16, 0.99", "0.5, 10, 0.4")

    def scale(gap: float, n: int, weight: float) -> float:
        return (math.log(n - 1) + _odds(weight)) / (gap * math.log(n))

    mistakes = """
        right(gap, n, weight) * math.log(n) :: That multiplies the logits of plain softmax: scalable softmax brings ln n along itself.
        (math.log(n) + _odds(weight)) / (gap * math.log(n)) :: The key that leads has n - 1 rivals, not n.
        (math.log(n - 1) + _odds(weight)) / (gap * math.log(n - 1)) :: The factor is s ln n, with all n keys; the n - 1 rivals stand in the sum alone.
        right(gap, n, weight) * gap ** 2 :: A larger gap needs a smaller scale: divide by it.
        right(gap, n, weight) * gap :: The gap is missing.
        right(gap, n, 0.5) :: That gives a weight of one half: the odds of the weight are missing.
        (math.log(n - 1) + math.log(weight)) / (gap * math.log(n)) :: Odds are weight over 1 - weight, not the weight.
        right(gap, n, 1 - weight) :: Odds are weight over 1 - weight; yours are upside down.
        1 / gap :: That is the limit for n → ∞; here n is given.
        right(gap, n, weight) * math.log(2) :: The length enters as a natural logarithm.
        _odds(weight) / (gap * math.log(n)) :: The rivals are missing: without them any scale would do.
        weight * (n - 1) / (gap * math.log(n)) :: The logarithm is missing: the weight's odds and the rivals stand under one.
        (math.log(n - 1) + _odds(weight)) / (gap * n) :: The factor is s ln n, not s n.
        (math.log(n) + math.log(weight)) / (gap * math.log(n)) :: The key that leads has n - 1 rivals, and odds are weight over 1 - weight.
    """
    return compare(
        globals(), "smallest_scale(gap, n, weight)", answer, scale, given, mistakes, picture=lambda: _scales(answer)
    )


def _odds(weight: float) -> float:
    return math.log(weight / (1 - weight))


def _scales(answer: Callable) -> HTML:
    lengths = [2**k for k in range(3, 21)]
    most, least = (float(answer(1.0, n, 0.9)) for n in (lengths[0], lengths[-1]))
    title = f"At gap 1 the scale falls from {most:.2f} to {least:.2f}: one that is fixed will do"
    ax = style.axes(title, "n (tokens)", "smallest s for 0.9", log="x")
    for gap, colour in ((1.0, RED), (2.0, BLUE), (4.0, GREEN)):
        ax.plot(lengths, [answer(gap, n, 0.9) for n in lengths], color=colour, label=f"gap {gap:g}")
        ax.axhline(1 / gap, color=colour, ls=":", lw=1.5)
    style.label(ax)
    return drawn(ax, f"Dotted: 1 / gap. At gap 1 no length from 8 to a million needs more than {most:.2f}.")


# Counting a row ----------------------------------------------------------------------------------------

HALF, MOST, ABOVE = "less than a half", "from a half to 1", "more than 1"


@exercise(
    "6.6",
    "Two ways to count a row",
    guesses={
        HALF: "The row, added up with its signs, is 0.2, and 0.35 divided by that is 1.75.",
        MOST: "Of all weight by size it is between a half and 1. But the row is divided by its sum, with signs.",
        ABOVE: "The row sums to 0.2, so the answer's share is 1.75 and the noise's -0.75: signed shares are no shares.",
    },
    true=ABOVE,
)
def counted(answer: Any) -> Right:
    """Lambda, and the shares of answer and noise: of the row's sum, and of the sum of sizes."""
    given = _cases(
        "torch.tensor([0.35, 0.05, -0.1, -0.1]), 0",
        "torch.tensor([0.3, 0.5, 0.0, 0.0]), 1",
        "differential.difference(checks.normal(8, seed=1), checks.normal(8, seed=2), 0.8), 2",
        "differential.difference(checks.normal(50, seed=3), checks.normal(50, seed=4), 0.5), 49",
    )

    def other(f: Callable[[Tensor, Tensor, Tensor], Any]) -> Callable:
        def trap(row: Tensor, place: int) -> Any:
            rest = torch.cat([row[:place], row[place + 1 :]])
            return torch.stack([_floats(x) for x in f(row, row[place], rest)])

        return trap

    mistakes = """
        other(lambda r, a, n: _five(r, a, n, lam=r.sum()))(row, answer) :: The row sums to 1 - λ, so λ is 1 minus the sum.
        other(lambda r, a, n: (1 - r.sum(), *2 * (a.abs() / r.abs().sum(), n.abs().sum() / r.abs().sum())))(row, answer) :: The first pair of shares is counted with signs, and divided by the row's sum.
        other(lambda r, a, n: (1 - r.sum(), *2 * (a / r.sum(), n.sum() / r.sum())))(row, answer) :: The second pair of shares is counted by size, each weight by itself.
        other(lambda r, a, n: (*_five(r, a, n)[:4], n.sum().abs() / r.abs().sum()))(row, answer) :: By size: take the size of each weight first, then the sum; yours cancel before.
        other(lambda r, a, n: (*_five(r, a, n)[:4], n.sum() / r.abs().sum()))(row, answer) :: By size the noise has no sign: each weight's size is added.
        other(lambda r, a, n: (*_five(r, a, n)[:3], a.abs() / r.sum(), n.abs().sum() / r.sum()))(row, answer) :: By size the row is divided by the sum of sizes, not by its signed sum.
        other(lambda r, a, n: (1 - r.sum(), a, n.sum(), a.abs(), n.abs().sum()))(row, answer) :: Shares are missing: divide by the row's sum, and by the sum of sizes.
        other(lambda r, a, n: _five(r, a, r))(row, answer) :: The noise is all other weights: yours holds the answer, too.
        other(lambda r, a, n: (_five(r, a, n)[k] for k in (0, 2, 1, 4, 3)))(row, answer) :: The order is λ, then answer and noise with signs, then by size: yours has the noise first.
        other(lambda r, a, n: (_five(r, a, n)[k] for k in (0, 3, 4, 1, 2)))(row, answer) :: The order is λ, then with signs, then by size.
        other(lambda r, a, n: (1 - r.sum(), a, n.sum(), *_five(r, a, n)[3:]))(row, answer) :: The shares with signs are not divided: divide by the row's sum.
        other(lambda r, a, n: (*_five(r, a, n)[:3], a.abs(), n.abs().sum()))(row, answer) :: The shares by size are not divided: divide by the sum of sizes.
        other(lambda r, a, n: _five(r, r[0], r[1:]))(row, answer) :: You took the first key: the answer stands at `answer`.
        other(lambda r, a, n: (1 - r.sum(), a / r.abs().sum(), n.sum() / r.abs().sum(), *_five(r, a, n)[3:]))(row, answer) :: With signs the row is divided by its signed sum, not by the sum of sizes.
        other(lambda r, a, n: (*_five(r, a, n)[:2], n.mean() / r.sum(), _five(r, a, n)[3], n.abs().mean() / r.abs().sum()))(row, answer) :: The noise is the sum of the other weights, not their mean.
        other(lambda r, a, n: _five(r, a, n, lam=1 - r.abs().sum()))(row, answer) :: λ is 1 minus the signed sum of the row, not minus its sum of sizes.
        other(lambda r, a, n: (_five(r, a, n)[0], *(100 * x for x in _five(r, a, n)[1:])))(row, answer) :: Shares, not per cent.
    """
    compare(globals(), "counted(row, answer)", answer, other(_five), given, mistakes, other=other)

    def picture() -> HTML:
        found = {}
        for name, correlation in (("independent", 0.0), ("correlated 0.9", 0.9)):
            first, second = (x[0] for x in measures.noisy_logits(6.0, correlation, 1024))
            found[name] = _floats(answer(differential.difference(first, second, 0.8), 0))
        ax = style.axes("", "noise's share …", "share of the row")
        for shift, (name, values), colour in zip((-0.2, 0.2), found.items(), (RED, BLUE), strict=True):
            bars = ax.bar([shift, 1 + shift], values[[2, 4]].tolist(), 0.38, color=colour, label=name)
            ax.bar_label(bars, fmt="%.2f")
        ax.set_xticks(range(2), ["with signs", "by size"])
        ax.axhline(0, color=BLACK, lw=1)
        ax.set_ylim(0, 1.15)
        ax.legend()
        one, two = found.values()
        ax.set_title(f"Independent noise: {one[2]:.2f} of the row with signs, {one[4]:.2f} by size")
        return drawn(
            ax,
            f"One row of 1,024 keys, λ = 0.8. With signs the noise is {one[2]:.2f} (independent) and {two[2]:.2f} "
            f"(correlated) of the row; by size {one[4]:.2f} and {two[4]:.2f}.",
        )

    _, share, noise, *_ = _floats(run("counted", answer, *given[0].arguments)).tolist()
    return Right(f"your function gives the answer {share:.3g} of that row, and the noise {noise:.3g}.", picture)


def _five(row: Tensor, a: Tensor, noise: Tensor, lam: Tensor | None = None) -> tuple:
    total, sizes = row.sum(), row.abs().sum()
    return 1 - total if lam is None else lam, a / total, noise.sum() / total, a.abs() / sizes, noise.abs().sum() / sizes


@exercise("6.7", "Sparsemax and entmax")
def entmax(answer: Any) -> Right:
    """Weights with a threshold that makes them sum to 1: one function for sparsemax and entmax."""
    given = _cases(
        "torch.tensor([2.0, 1.0, 0.0, -1.0]), 2.0",
        "torch.tensor([2.0, 1.0, 0.0, -1.0]), 1.5",
        "torch.tensor([2.0, 1.5, -1.0]), 2.0",
        "torch.zeros(4), 1.5",
        "checks.normal(2, 3, 6, seed=1), 1.25",
        "checks.normal(5, seed=2), 3.0",
        "torch.tensor([100.0, 99.5, 0.0]), 1.5",
    )

    mistakes = """
        logits.softmax(-1) :: That is softmax, which has no zeros.
        _entmax((alpha - 1) * logits, 2.0) :: The power 1 / (α - 1) is missing: without it you have sparsemax.
        _bisected((alpha - 1) * logits, alpha - 1) :: The power is 1 / (α - 1); yours is upside down.
        _bisected(logits, 1 / (alpha - 1)) :: The factor α - 1 before the logits is missing.
        _bisected((alpha - 1) * logits, 1 / (alpha - 1), astray=True) :: The bisection goes the wrong way: where the sum is above 1, τ is too low and has to rise.
        _divided(((alpha - 1) * logits).relu() ** (1 / (alpha - 1))) :: You cut at 0 and divided by the sum: τ is subtracted, so that the sum is 1 by itself.
        (logits - (logits.sum(-1, keepdim=True) - 1) / logits.shape[-1]).relu() :: τ from all keys is too low where some get nothing: only the keys that keep weight count.
        _entmax(logits.flatten(), alpha).view_as(logits) :: τ is one number for each row: rows of the last axis, each with a sum of 1.
        attention.sparsemax(logits) :: That is sparsemax at every α.
        attention.entmax15(logits) :: That is entmax with α = 1.5 at every α.
        functional.one_hot(logits.argmax(-1), logits.shape[-1]).double() :: The largest key alone: close keys share the weight.
        right(logits, alpha) ** (alpha - 1) :: The power 1 / (α - 1) is missing at the end.
        (alpha * logits).softmax(-1) :: α is no factor before a softmax: the weights have a threshold.
        right(logits.mT, alpha).mT if logits.ndim > 1 else right(logits, alpha) :: τ belongs to each row of the last axis; yours goes down the columns.
        right(-logits, alpha) :: The sign: the largest logit gets the most.
        logits.relu() / logits.relu().sum(-1, keepdim=True) :: You cut at 0 and divided by the sum: τ is subtracted, so that the sum is 1 by itself.
    """
    return compare(globals(), "entmax(logits, alpha)", answer, _entmax, given, mistakes, 1e-5, lambda: _maps(
        {"softmax": lambda x: x.softmax(-1), "α = 1.5": lambda x: answer(x, 1.5), "α = 2": lambda x: answer(x, 2.0)}, "one answer", 64
    ))  # fmt: skip


def _divided(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True)


def _bisected(x: Tensor, power: float, astray: bool = False) -> Tensor:
    """max(x - tau, 0) ** power with a sum of 1 in each row."""
    x = x.double()
    high = x.max(-1, keepdim=True).values
    low = high - 1
    for _ in range(60):
        tau = (low + high) / 2
        much = (((x - tau).relu() ** power).sum(-1, keepdim=True) > 1) ^ astray
        low, high = torch.where(much, tau, low), torch.where(much, high, tau)
    return (x - low).relu() ** power


def _entmax(x: Tensor, alpha: float) -> Tensor:
    return _bisected((alpha - 1) * x, 1 / (alpha - 1))


# A head, and a table of seeds --------------------------------------------------------------------------

STAYS, HALVES, TURNS = "it stays the same", "it is halved", "it changes its sign"


@exercise(
    "6.8",
    "A whole head",
    guesses={
        STAYS: "Both rows are scaled by 1 - λ, and the norm divides by their size: the scale of λ drops out.",
        HALVES: "Before the norm it is: 1 - λ falls from 0.8 to 0.4. Then the norm divides by the size.",
        TURNS: "1 - λ stays above 0, and the norm divides by the size.",
    },
    true=STAYS,
)
def head(answer: Any) -> Right:
    """Causal difference, values, the norm of a head and its fixed scale."""

    def call(n: int, d: int, seed: int) -> str:
        queries = ", ".join(f"checks.normal({n}, {d}, seed={seed + k})" for k in range(4))
        return f"{queries}, checks.normal({n}, {2 * d}, seed={seed + 4})"

    given = _cases(
        f"{call(1, 2, 0)}, 0.5, 0.2", f"{call(4, 2, 10)}, 0.5, 0.2", f"{call(6, 8, 20)}, 0.8, 0.78",
        f"{call(5, 4, 30)}, 1.3, 0.35",
    )  # fmt: skip
    norms = {
        "whole": lambda x, s: (1 - s) * x / (x.square().mean() + 1e-5).sqrt(),
        "layer": lambda x, s: (1 - s) * functional.layer_norm(x, x.shape[-1:]),
        "length": lambda x, s: (1 - s) * functional.normalize(x, dim=-1),
        "exact": lambda x, s: (1 - s) * x / x.square().mean(-1, keepdim=True).sqrt(),
        "outside": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-5),
        "tokens": lambda x, s: (1 - s) * x / (x.square().mean(0, keepdim=True) + 1e-5).sqrt(),
        "unscaled": lambda x, s: _normed(x, 0.0),
        "none": lambda x, s: (1 - s) * x,
        "rough": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt(),
        "square": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True) + 1e-5),
        "standard": lambda x, s: (1 - s) * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
    }
    mistakes = """
        (lambda *x: _head(*x[:6], x[5]))(q1, k1, q2, k2, v, lam, start) :: The scale is 1 - lambda_init, fixed; yours is 1 - λ, which is learned.
        partial(_head, norm=norms['unscaled'])(q1, k1, q2, k2, v, lam, start) :: The factor 1 - lambda_init is missing.
        (lambda *x: _head(*x[:6], 1 - x[6]))(q1, k1, q2, k2, v, lam, start) :: The factor is 1 - lambda_init, not lambda_init.
        partial(_head, norm=norms['none'])(q1, k1, q2, k2, v, lam, start) :: The norm is missing.
        partial(_head, norm=norms['layer'])(q1, k1, q2, k2, v, lam, start) :: RMSNorm takes off no mean: that is LayerNorm.
        partial(_head, norm=norms['length'])(q1, k1, q2, k2, v, lam, start) :: A root mean square: divide the squares by their number, the width.
        partial(_head, norm=norms['whole'])(q1, k1, q2, k2, v, lam, start) :: Each token has its own norm: over the last axis, not over the whole head.
        partial(_head, norm=norms['exact'])(q1, k1, q2, k2, v, lam, start) :: ε = 1e-5 is missing: it stands under the root, beside the mean of the squares.
        partial(_head, norm=norms['outside'])(q1, k1, q2, k2, v, lam, start) :: ε stands under the root, beside the mean of the squares; yours is added behind the root.
        partial(_head, norm=norms['tokens'])(q1, k1, q2, k2, v, lam, start) :: A token is normalised over its own entries, the last axis; yours goes over the tokens.
        partial(_head, causal='after')(q1, k1, q2, k2, v, lam, start) :: The mask belongs before the softmax: a row whose later weights are cut off no longer sums to 1.
        partial(_head, causal='zero')(q1, k1, q2, k2, v, lam, start) :: A hidden key needs a logit of minus infinity: a logit of 0 is seen.
        partial(_head, width=lambda d: d * d)(q1, k1, q2, k2, v, lam, start) :: Logits are divided by the root of d, not by d.
        partial(_head, causal=False)(q1, k1, q2, k2, v, lam, start) :: A token looks ahead: hide the later keys before the softmax.
        partial(_head, width=lambda d: 1.0)(q1, k1, q2, k2, v, lam, start) :: Logits are divided by the root of d, the width of the queries.
        partial(_head, width=lambda d: 2.0 * d)(q1, k1, q2, k2, v, lam, start) :: Logits are divided by the root of d, the width of the queries, not of the values.
        (lambda *x: _head(*x[:5], -x[5], x[6]))(q1, k1, q2, k2, v, lam, start) :: The second map is subtracted.
        (lambda *x: _head(*x[:5], 1.0, x[6]))(q1, k1, q2, k2, v, lam, start) :: λ is missing.
        _normed_before(q1, k1, q2, k2, v, lam, start) :: The norm comes after the difference, not before it.
        _head(q2, k2, q1, k1, v, lam, start) :: The two maps are exchanged.
        _head(q1, k2, q2, k1, v, lam, start) :: The keys are exchanged: each map has its own queries and keys.
        _head(q1, k1, q1, k1, v, lam, start) :: Both of your maps come from the first queries and keys.
        _head(q1, k1, q2, k2, v, lam, start, norm=norms["rough"]) :: ε is 1e-5; yours is 1e-3.
        _head(q1, k1, q2, k2, v, lam, start, norm=norms["standard"]) :: RMSNorm takes off no mean: that divides by a standard deviation.
        _head(q1, k1, q2, k2, v, lam, start, norm=norms["square"]) :: The root is missing: divide by the root of the mean square.
    """
    compare(globals(), "head(q1, k1, q2, k2, v, lam, start)", answer, _head, given, mistakes, norms=norms)

    def picture() -> HTML:
        lams = [k / 20 for k in range(20)]
        q, k, v = (normal(16, width, seed=seed) for seed, width in ((1, 8), (2, 8), (3, 16)))
        sizes = [_floats(answer(q, k, q, k, v, lam, 0.2)).square().mean().sqrt() for lam in lams]
        plain = [_head(q, k, q, k, v, lam, 0.2, norm=norms["none"]).square().mean().sqrt() for lam in lams]
        ax = style.axes(f"λ from 0 to 0.95: size {sizes[0]:.2f} → {sizes[-1]:.2f} with the norm", "λ", "size")
        ax.plot(lams, sizes, color=BLUE, label="your head")
        ax.plot(lams, plain, "--", color=RED, label="norm left out")
        ax.set_ylim(0)
        style.label(ax)
        return drawn(ax, f"Two equal maps, λ from 0 to 0.95: {sizes[0]:.2f} to {sizes[-1]:.2f} with the norm, "
                      f"{plain[0]:.2f} to {plain[-1]:.2f} without it.")  # fmt: skip

    q, k, v = (normal(8, width, seed=seed) for seed, width in ((1, 8), (2, 8), (3, 16)))
    one, two = (
        float(_floats(run("head", answer, q, k, q, k, v, lam, 0.2)).square().mean().sqrt()) for lam in (0.2, 0.6)
    )
    return Right(f"with two equal maps your head has the size {one:.3g} at λ = 0.2, and {two:.3g} at 0.6.", picture)


def _normed(x: Tensor, start: float) -> Tensor:
    return (1 - start) * functional.rms_norm(x, x.shape[-1:], eps=differential.EPSILON)


def _head(q1, k1, q2, k2, v, lam, start, *, norm=_normed, causal=True, width=float) -> Tensor:
    factor = math.sqrt(q1.shape[-1] / width(q1.shape[-1]))
    mask = torch.ones(len(q1), len(k1), dtype=torch.bool)
    if causal == "zero":
        seen = mask.tril().to(q1) / math.sqrt(q1.shape[-1])
        rows = differential.difference(*(q @ k.mT * seen for q, k in ((q1, k1), (q2, k2))), lam)
    else:
        rows = differential.weights(factor * q1, k1, factor * q2, k2, lam, mask.tril() if causal is True else mask)
    return norm((rows.tril() if causal == "after" else rows) @ v, start)


def _normed_before(q1, k1, q2, k2, v, lam, start) -> Tensor:
    first, second = (_head(q, k, q, k, v, 0.0, 0.0) for q, k in ((q1, k1), (q2, k2)))
    return (1 - start) * (first - lam * second)


@exercise("6.9", "A difference, or none")
def p_values(answer: Any) -> Right:
    """Paired t tests over seeds, with Holm's correction."""
    given = _cases(
        "torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([0.0, 0.0, 1.0])",
        "checks.normal(3, 5, seed=7) + torch.tensor([[2.0], [0.0], [1.0]]), checks.normal(5, seed=8)",
        "checks.normal(6, 5, seed=2), checks.normal(5, seed=3)",
        "torch.arange(3.0)[:, None] + 0.2 * checks.normal(3, 4, seed=9), 0.2 * checks.normal(4, seed=10)",
    )
    mistakes = """
        _corrected([stats.ttest_ind(row, baseline).pvalue for row in scores]) :: The runs are paired by their seeds: test the differences, seed by seed.
        _corrected([stats.ttest_ind(row, baseline, equal_var=False).pvalue for row in scores]) :: The runs are paired by their seeds: test the differences, seed by seed. Welch's test pairs nothing.
        _hochberg(_single(scores, baseline)) :: That is Hochberg's correction, which goes from the largest p value down: begin with the smallest.
        _corrected(_single(scores, baseline), less=1) :: The smallest p value is multiplied by the number of entries m, not by m - 1.
        torch.tensor(_single(scores, baseline)) :: The correction is missing: with many entries some win by luck.
        (len(scores) * torch.tensor(_single(scores, baseline))).clamp(max=1) :: That is Bonferroni's correction: Holm's multiplies the second smallest by one less.
        _corrected(_single(scores, baseline), ordered=False) :: None is below the one before it: Holm's correction keeps the order.
        _corrected(_single(scores, baseline), most=math.inf) :: A chance is at most 1.
        _corrected(_single(scores, baseline)).sort().values :: In the order of the entries, not sorted.
        _corrected(_single(scores, baseline), backwards=True) :: The smallest p value gets the largest factor; yours gets the smallest.
        _corrected([stats.ttest_rel(row, baseline, alternative='greater').pvalue for row in scores]) :: Two-sided: an entry may be worse as well.
        _corrected([_t(row - baseline, 0, len(baseline) - 1) for row in scores]) :: The variance divides by seeds - 1.
        _corrected([_t(row - baseline, 1, 10 ** 9) for row in scores]) :: Student's t has seeds - 1 degrees of freedom; with few seeds the normal curve is too sure.
        _corrected([_t(row - baseline, 1, len(baseline)) for row in scores]) :: Student's t has seeds - 1 degrees of freedom.
        stats.false_discovery_control(_single(scores, baseline)) :: That is Benjamini and Hochberg's correction, which counts something else.
        _corrected([stats.wilcoxon(row, baseline).pvalue for row in scores]) :: That is Wilcoxon's test: with five seeds it cannot go below 0.06.
        [min(1.0, (len(scores) - k) * p) for k, p in enumerate(_single(scores, baseline))] :: The factor goes by the rank of the p value, not by the place of the entry.
        _corrected([_t(row - baseline.mean(), 1, len(row) - 1) for row in scores]) :: The runs are paired by their seeds: subtract the baseline seed by seed, not its mean.
        [min(1.0, len(baseline) * p) for p in _single(scores, baseline)] :: The factor counts the entries, not the seeds.
        [p < 0.05 for p in right(scores, baseline)] :: Return the p values, not whether they are small.
        _corrected([p / 2 for p in _single(scores, baseline)]) :: Two-sided: an entry may be worse as well. You halved the p values.
        _corrected([min(1.0, 2 * p) for p in _single(scores, baseline)]) :: The tests are two-sided already: do not double their p values.
        [float((row - baseline).mean() / ((row - baseline).std() / math.sqrt(len(row)))) for row in scores] :: Those are t values: look up their p values.
    """
    right = compare(
        globals(), "p_values(scores, baseline)", answer, lambda x, y: _corrected(_single(x, y)), given, mistakes
    )
    unchanged = _cases("torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 1.0]]), torch.tensor([0.0, 0.0, 1.0])")
    undone = """
        _undone(scores, baseline, 0.0) :: The second entry equals the baseline on every seed: 0 divided by 0 says nothing, and its p value is 1, the largest, not 0, the smallest.
        _undone(scores, baseline, math.nan) :: The second entry equals the baseline on every seed: 0 divided by 0 says nothing, and its p value is 1.
    """
    compare(globals(), "p_values(scores, baseline)", answer, lambda x, y: _corrected(_single(x, y)), unchanged, undone)
    sentence, picture = _race_tested(answer)
    return Right(f"{right.sentence} {sentence}", picture)


def _single(scores: Tensor, baseline: Tensor) -> list[float]:
    return [significance.paired(row.tolist(), baseline.tolist()) for row in scores]


def _undone(scores: Tensor, baseline: Tensor, p: float) -> Tensor:
    """The p values, with another one for entries that equal the baseline; not a number stays behind all others."""
    same = (scores == baseline).all(-1)
    if math.isnan(p):
        return _corrected(_single(scores, baseline)).masked_fill(same, p)
    return _corrected([p if equal else each for each, equal in zip(_single(scores, baseline), same, strict=True)])


def _hochberg(p: list[float]) -> Tensor:
    found, least = [0.0] * len(p), 1.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda k: -p[k])):
        least = min(least, (rank + 1) * p[place])
        found[place] = least
    return torch.tensor(found, dtype=torch.float64)


def _t(gaps: Tensor, ddof: int, freedom: int) -> float:
    t = float(gaps.mean() / (gaps.std(correction=ddof) / math.sqrt(len(gaps))))
    return float(2 * stats.t.sf(abs(t), freedom))


def _corrected(
    p: list[float], ordered: bool = True, most: float = 1.0, backwards: bool = False, less: int = 0
) -> Tensor:
    found, worst = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        each = (rank + 1 if backwards else len(p) - rank - less) * p[place]
        worst = max(worst, each) if ordered else each
        found[place] = min(most, worst)
    return torch.tensor(found, dtype=torch.float64)


def _race_tested(answer: Callable) -> tuple[str, Callable[[], HTML]]:
    """The race with the learner's p values: every remedy against the baseline, a family for each task."""
    rows = comparison.table()
    found = comparison.compare(rows).set_index(["task", "entry"])
    alone, corrected = 0, 0
    for task in found.index.unique("task"):
        names = list(found.loc[task].index[found.loc[task].gap.notna()])
        wide = rows[(rows.task == task) & (rows.learned == 1)].pivot(index="seed", columns="entry", values="odds")
        wide = wide[[*names, BASELINE]].dropna()  # the seeds that have learned with all of them
        scores = torch.tensor(wide[names].to_numpy().T)
        baseline = torch.tensor(wide[BASELINE].to_numpy())
        p = _floats(run(f"p_values(the race's scores at {figures.NAMES[task]}, RoPE's)", answer, scores, baseline))
        alone += sum(each < LEVEL for each in _single(scores, baseline))
        corrected += int((p < LEVEL).sum())
        for name, row, each in zip(names, scores, p.tolist(), strict=True):
            found.loc[(task, name), ["p", "verdict"]] = [each, comparison.verdict((row - baseline).tolist(), each)]
    total = int(found.gap.notna().sum())

    def picture() -> HTML:
        by_task = (
            found.reset_index().pivot(index="entry", columns="task", values="verdict").rename(columns=figures.NAMES)
        )
        return HTML(by_task.fillna("").to_html(border=0))

    return f"In the race {alone} of {total} comparisons pass alone, {corrected} after your correction.", picture


# The race ----------------------------------------------------------------------------------------------

BETTER, SAME, WORSE = "better", "not told apart", "worse"
FEW = 3  # seeds: a p value over two depends on the processor


@exercise("6.10", "Enter the race", seconds=300.0)
def enter_race(name: Any, weigh: Any, prediction: Any, seeds: Any) -> Right:
    """Any causal function from logits to weights, trained as all entries are; any honest prediction."""
    _check_weigh(weigh)
    for what, value in (("name", name), ("prediction", prediction), ("seeds", seeds)):
        checks.filled(what, value)
    if not isinstance(prediction, str) or prediction not in (BETTER, SAME, WORSE):
        raise Wrong(f"prediction must be one of '{BETTER}', '{SAME}', '{WORSE}', not {shown(prediction)}.")
    table = comparison.table()
    baseline = table[(table.task == "retrieval") & (table.entry == BASELINE)].set_index("seed")
    count = checks.number("seeds", seeds)
    if count not in range(1, len(baseline) + 1):
        raise Wrong(f"seeds must be a whole number from 1 to {len(baseline)}, as many as the race has, not {count:g}.")
    try:
        entered = race.enter(name, weigh, seeds=int(count))
    except Exception as error:  # a learner's function may fail at any step
        if "the loss was" in str(error):
            raise Wrong(
                f"training broke off: the {str(error).partition('the ')[2]}. Do the weights overflow once the logits grow? "
                "Subtract a row's largest logit before an exponential."
            ) from None
        raise Wrong(f"{error}.") from None
    ours = entered[entered.learned == 1]
    if not len(ours):
        return Right(
            f"{name} is entered, and has not learned retrieval at {TRAINED} pairs in {BUDGET['steps']:,} steps "
            f"({entered.score_16.mean():.2f} right): it is compared at no length. That is a result, too.",
            lambda: figures.slopes(table, "retrieval", entered)[0],
        )
    theirs = baseline.loc[ours.seed.tolist()]
    gap, p = float(ours.odds.mean() - theirs.odds.mean()), significance.paired(ours.odds, theirs.odds)
    found = SAME if p >= LEVEL or len(ours) < FEW else BETTER if gap > 0 else WORSE
    how = (
        f"fewer than {FEW} seeds cannot tell more"
        if len(ours) < FEW
        else f"paired over {len(ours)} seeds, p {'at least' if p >= LEVEL else 'below'} {LEVEL}, for one entry: with more, correct it"
    )
    held = "as you predicted" if found == prediction else f"you predicted “{prediction}”, and that is a result, too"
    sentence = (
        f"{name} is entered and has learned with {len(ours)} of {len(entered)} seeds. Retrieval beyond the trained length: {ours.longer.mean():.2f}, {BASELINE} "
        f"{theirs.longer.mean():.2f} with the same seeds. Verdict: {found} ({how}); {held}."
    )
    return Right(sentence, lambda: figures.slopes(table, "retrieval", entered)[0])


def _check_weigh(weigh: Any) -> None:
    """What makes a function of logits a causal attention function, one sentence each."""
    if isinstance(weigh, type):
        raise Wrong("weigh is a class: enter an object of it, with brackets behind its name.")
    for n in (5, 1, 16, 140):
        scores = torch.randn(2, BUDGET["heads"], n, n, generator=torch.Generator().manual_seed(n))
        later = torch.ones(n, n).triu(1).bool()
        bias = torch.zeros(n, n).masked_fill(later, -math.inf)
        what = f"weigh(logits), with logits of shape {tuple(scores.shape)} and minus infinity at later keys,"
        found = run(what, weigh, scores + bias)
        _check_numbers(what, found, scores.shape)
        if (found[..., later] != 0).any():
            row, key = (found * later).flatten(0, 1).abs().sum(0).nonzero()[0].tolist()
            size = float((found * later).flatten(0, 1).abs()[:, row, key].max())
            raise Wrong(
                f"{what} looks ahead: token {row} gives token {key} a weight of {size:.3g}. Its logit is minus infinity, "
                "so its weight must be 0."
            )
        if not torch.equal(found, weigh(scores + bias)):
            raise Wrong(
                f"{what} gives other weights at a second call: leave chance out, so that a run can be repeated."
            )
        _check_rows(what, weigh, scores, bias, found)
        scores.requires_grad_()
        found = weigh(scores + bias)
        if found.requires_grad:
            found.square().sum().backward()
            if scores.grad is not None and not torch.isfinite(scores.grad).all():
                raise Wrong(
                    f"{what} has good weights, but a gradient that is not finite. Does a root, a logarithm or a division "
                    "meet a 0 at a hidden key? Put a harmless number there before, not after."
                )


def _check_numbers(what: str, found: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(found, Tensor):
        raise Wrong(f"{what} must return a tensor, not {type(found).__name__}.")
    if found.shape != shape:
        raise Wrong(
            f"{what} must return as many weights as there are logits; yours have the shape {tuple(found.shape)}."
        )
    if found.dtype != torch.float32:
        raise Wrong(f"{what} must return float32 weights, as the logits are; yours are {found.dtype}.")
    if torch.isnan(found).any():
        row = int(torch.isnan(found).any(-1).flatten(0, -2).any(0).nonzero()[0])
        raise Wrong(
            f"{what} contains NaN, first in the row of token {row}. Infinity minus infinity and 0 times infinity are NaN: "
            "what does your function do with a logit of minus infinity?"
        )
    if not torch.isfinite(found).all():
        raise Wrong(f"{what} holds infinite weights: what do you divide by, or what do you return at hidden keys?")


def _check_rows(what: str, weigh: Callable, scores: Tensor, bias: Tensor, found: Tensor) -> None:
    """No row depends on later rows, on how many tokens follow, or on another sequence of the batch."""
    n = scores.shape[-1]
    if n < 3:
        return
    half = n // 2
    moved = scores.clone()
    moved[..., half:, :] += 1 + torch.arange(float(n))
    if not torch.allclose(weigh(moved + bias)[..., :half, :], found[..., :half, :], atol=1e-5):
        raise Wrong(
            f"{what} looks ahead: the rows of the first {half} tokens change when the logits of a later token do. "
            "Is a sum or a maximum over the queries? The keys are the last axis, dim=-1."
        )
    if not torch.allclose(weigh((scores + bias)[..., :half, :half]), found[..., :half, :half], atol=1e-5):
        raise Wrong(
            f"{what} looks ahead: the rows of the first {half} tokens are others when no more tokens follow. Did you use "
            "the whole length? A row may count the keys that it sees: those with a finite logit."
        )
    moved = scores.clone()
    moved[1] += torch.arange(float(n))
    if not torch.allclose(weigh(moved + bias)[0], found[0], atol=1e-5):
        raise Wrong(f"{what} mixes sequences: the first one's weights change when the logits of the second do.")
