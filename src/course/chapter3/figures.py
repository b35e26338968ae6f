"""Draw the figures of chapter 3, and state the finding of each figure in a sentence."""

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from course.chapter3 import measures
from course.maths import constructions, normalizers
from helpers import collapse, data, models, style
from helpers.models import LanguageModel

# Draw the lesson's figures ------------------------------------------------------------------------


def counterexample(values: str, frequency: float, n: int) -> tuple[Axes, str]:
    """Draw how far one repeated token moves the output of a head that rotates, for each length.

    The logits of the head are bounded and do not decay.
    """
    grid = sorted({round(10 ** (k / 15)) for k in range(7, 61)} | {n})
    change, variation = zip(
        *(constructions.rotating_counterexample(k, frequency, values=values) for k in grid),
        strict=True,
    )
    at = grid.index(n)
    moved = f"At n = {n:,} one more token changes the output by {change[at]:.2f}"
    ax = style.axes(moved, "n (tokens)", "change", log="x", height=3.7)
    ax.plot(grid, variation, color=style.COLOURS["grey"], label="attention")
    ax.plot(grid, change, color=style.COLOURS["blue"], label="output")
    ax.plot([n], [change[at]], "o", color=style.COLOURS["vermillion"])
    ax.set_ylim(-0.05, 2.2)
    style.label(ax)
    return (
        ax,
        (
            f"At n = {n:,} the output changes by {change[at]:.4f}, the attention by "
            f"{variation[at]:.4f}."
        ),
    )


def sharpening(temperature: Callable = normalizers.adaptive_temperature) -> tuple[Axes, str]:
    """Draw the attention weight of a token that leads by 3 logits, as a function of length.

    One curve has adaptive temperature, and the other has plain softmax.
    """
    n = [2**k for k in range(2, 15)]
    rows = [torch.tensor([3.0] + [0.0] * (k - 1), dtype=torch.float64) for k in n]
    plain = [float(row.softmax(0)[0]) for row in rows]
    sharp = [float(temperature(row)[0]) for row in rows]
    gain = max(range(len(n)), key=lambda k: sharp[k] - plain[k])
    end = next(n[k] for k in range(gain + 1, len(n)) if sharp[k] - plain[k] < 1e-9)
    title = "Sharpening helps in a middle range of lengths"
    ax = style.axes(title, "n (tokens)", "weight of the leading token", log="x", height=4.0)
    ax.plot(n, sharp, "o-", color=style.COLOURS["green"], label="adaptive temperature")
    ax.plot(n, plain, "o-", color=style.COLOURS["blue"], label="softmax")
    ax.set_ylim(0, 1.25)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.legend(loc="upper right")
    return ax, (
        f"Adaptive temperature helps most at n = {n[gain]:,}, where the weight goes from "
        f"{plain[gain]:.3f} to {sharp[gain]:.3f}. From n = {end:,} on it changes nothing."
    )


PERIODIC = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat(
    2500
)  # the values are + + - - ..., for 10,000 tokens


def head(logits: Float[Tensor, " n"], near: int = 16) -> tuple[Axes, str]:
    """Draw a head's attention and the signs of its values, before and after one more token.

    The x axis is the distance, and the values are `PERIODIC`.
    """
    weights = logits[: len(PERIODIC)].softmax(0)[:near]
    shown = {
        "10,000 tokens": PERIODIC.flip(0),
        "one more": torch.cat([PERIODIC, PERIODIC[-1:]]).flip(0),
    }
    before, after = (float(logits[: len(values)].softmax(0) @ values) for values in shown.values())
    ax = style.axes(
        f"One more token moves the output from {before:+.2f} to {after:+.2f}",
        "distance to the query",
        "attention × value",
    )
    for (name, values), colour, aside in zip(
        shown.items(), ("blue", "vermillion"), (-0.2, 0.2), strict=True
    ):
        signed = weights * values[:near]
        ax.bar(torch.arange(near) + aside, signed, 0.4, color=style.COLOURS[colour], label=name)
    ax.legend(loc="upper right")
    return (
        ax,
        (
            f"The output is {before:.3f} with 10,000 tokens, and {after:.3f} when the last token "
            "is repeated."
        ),
    )


# Draw the lab's figures ---------------------------------------------------------------------------


def falling(
    name: str,
    signal: Float[Tensor, " n"],
    floor: Float[Tensor, " n"],
    kind: str = "bf16",
    twin: Float[Tensor, " m"] | None = None,
) -> tuple[Axes, str]:
    """Draw the distance between last states after n and n + 1 ones, and a prompt's rounding error.

    Args:
        signal: the distance for each length.
        floor: the rounding error for each length.
        kind: the floating-point format of the error.
        twin: the distance in the same network with random weights, for its first m lengths. It is
            drawn in grey.
    """
    n = range(1, len(signal) + 1)
    first = min(400, len(signal) * 4 // 5)
    late = signal[first - 1 :].median()
    ax = style.axes(
        f"One more token: from {signal.max():.3g} down to {late:.2g}",
        "n (ones after the first token)",
        "L1 distance",
        log="xy",
        height=4.2,
    )
    ax.plot(
        n,
        floor,
        style.TYPES[kind],
        color=style.COLOURS["vermillion"],
        lw=1.5,
        label=f"{kind} error\nof one prompt",
        gid=style.ROUNDING,
    )
    ax.plot(n, signal, style.TYPES["fp32"], color=style.COLOURS["blue"], label="n to n + 1")
    if twin is not None:
        ax.plot(n[: len(twin)], twin, color=style.COLOURS["grey"], label="random weights")
    style.label(ax)
    return ax, (
        f"{name}, fp32: the distance is largest, {signal.max():.3g}, at n = "
        f"{signal.argmax() + 1}. From n = {first} on its median is {late:.2g}, which is "
        f"{signal.max() / late:.3g} times less. At these lengths the rounding error of one "
        f"prompt in {kind} is {floor[first - 1 :].median():.2g} (median)."
    )


MEASURED = models.DEFAULT  # the model of data/telling_apart.csv
# the measures that `told_apart` can draw, each with the column of the table, the label of the axis
# and the words in the title
WHAT = {
    "nearest of all prompts": ("nearest", "fraction that is right", (
"the right one of all prompts in {:.0%}"
)),
    "n against n + 1": ("pair", "fraction that is right", "the right one of n and n + 1 in {:.0%}"),
    "along the difference": ("along", (
"error along the difference,\nover the difference"
), "the error goes {:.2f} of the way"),
    "size of the error": ("floor", "L1 error of one prompt", "an error of {:.2g}"),
}  # fmt: skip
SHORT = dict(
    zip(
        measures.ERRORS[1:],
        ("error of another prompt", "coordinates shuffled", "isotropic"),
        strict=True,
    )
)
ERROR_COLOURS = dict(zip(measures.ERRORS, ("vermillion", "purple", "blue", "grey"), strict=True))


def told_apart(
    model: LanguageModel,
    found: Mapping[str, Mapping[str, measures.Resolution]],
    kind: str,
    what: str,
) -> tuple[Axes, str]:
    """Plot how often a state with rounding errors remains nearest to its own exact state.

    Other errors of the same size are drawn for comparison. Filled markers are measured here. For
    the embedded model, open markers come from the table of longer sequences.

    Args:
        found: the resolutions, keyed by format and kind of error, as `measures.controlled` returns
            them.
        kind: the floating-point format.
        what: one of `WHAT`.
    """
    column, axis, words = WHAT[what]
    table = data.table("telling_apart") if model.name == MEASURED else None
    ax = style.axes(
        "",
        "n (ones after the first token)",
        axis,
        log="xy" if what == "size of the error" else "x",
        height=3.1,
    )
    last = {}
    for errors, part in found[kind].items():
        here = measures.in_bands(part, [*measures.BANDS[:5], len(part.signal)])
        both = here
        if table is not None:
            rows = table[
                (table.type == kind)
                & (table.errors == errors)
                & (table.low >= here.high.max() * 0.75)
            ]
            both = pd.concat([here, rows])
        x, y, colour = (
            (both.low * both.high) ** 0.5,
            both[column],
            style.COLOURS[ERROR_COLOURS[errors]],
        )
        own = errors == measures.ERRORS[0]
        label = kind if own else SHORT[errors]
        ax.plot(x, y, style.TYPES[kind], color=colour, label=label)
        ax.plot(x[: len(here)], y[: len(here)], "o", color=colour)
        ax.plot(x[len(here) :], y[len(here) :], "o", color=colour, mfc="white", mew=2)
        last[errors] = both.iloc[-1]
    own = last[measures.ERRORS[0]]
    span = f"n = {own.low:,.0f} to {own.high - 1:,.0f}"
    if column in ("nearest", "pair"):
        ax.set(ylim=(-0.05, 1.45), yticks=[0, 0.25, 0.5, 0.75, 1])
        chance = 0.5 if column == "pair" else 1 / (own.high + 1)
        ax.axhline(chance, color=style.COLOURS["grey"], lw=1)
    if (
        column == "floor"
    ):  # only whole decades, because Matplotlib would otherwise write numbers over each other
        low, high = map(math.log10, ax.get_ylim())
        ax.set_ylim(10 ** math.floor(low), 10 ** math.ceil(high))
    if column == "along":
        ax.axhline(0.5, color=style.COLOURS["black"], lw=1)
        ax.set_ylim(-0.02, max(0.75, 1.1 * float(ax.dataLim.ymax)))
    ax.set_title(f"{kind}, {span}: {words.format(own[column])}")
    ax.title.set_size(15)
    style.label(ax)
    where = f"{model.short}, {kind}, {span}."
    if column == "floor":
        return ax, f"{where} An error is {own.length:.2g} times as long as the difference."
    if column == "along":
        return ax, (
            f"{where} Of the squared length of an error, {own.share:.1%} is along the difference "
            f"(by chance {last['isotropic'].share:.2%})."
        )
    mine, others, shuffled, isotropic = (
        f"{last[errors].nearest:.0%}" for errors in measures.ERRORS
    )
    return ax, (
        f"{where} A search finds the right one of all prompts in {mine} of the cases with the "
        f"prompt's own error, in {others} with the error of another prompt, in {shuffled} with "
        f"shuffled coordinates and in {isotropic} with an isotropic error."
    )


def nearest_by_error(
    right: Callable[[float, float], float] = measures.right_of_two, column: str = "pair"
) -> tuple[Axes, str]:
    """Plot how often a state with an error is nearest to its exact state, for each error size.

    We draw a closed form as a curve, and the measured bands of lengths as points.

    Args:
        right: the closed form. It takes the length of the error divided by the distance, and the
            fraction of the error's squared length along the distance. It returns a probability.
        column: "pair" if only n and n + 1 are compared, or "nearest" for all prompts.
    """
    table = data.table("telling_apart")
    own, shuffled = (
        table[table.errors == errors] for errors in (measures.ERRORS[0], measures.ERRORS[2])
    )
    width, bf16, fp16 = 576, own[own.type == "bf16"], own[own.type == "fp16"]
    late, last = bf16.iloc[-1], shuffled[shuffled.type == "bf16"]
    least, what = (0.5, "n and n + 1") if column == "pair" else (0.0, "all prompts")
    ax = style.axes(
        "The error's direction matters, not only its length",
        "length of the error / length of the difference",
        "",
        log="x",
        height=3.3,
    )
    ax.set_ylabel(f"right one of {what}")
    lengths = [10 ** (k / 40) for k in range(-70, 61)]
    for share, colour, name in (
        (1 / width, "blue", f"isotropic in\n{width} dimensions"),
        (late.share, "vermillion", f"{late.share:.0%} of its square\nalong the difference"),
        (1.0, "black", "all of it along"),
    ):
        ax.plot(
            lengths,
            [float(right(x, share)) for x in lengths],
            color=style.COLOURS[colour],
            label=name,
        )
    for rows, marker in ((bf16, "o"), (fp16, "s")):
        ax.plot(
            rows.length, rows[column], marker, color=style.COLOURS["vermillion"], mec="white", ms=10
        )
    ax.plot(last.length, last[column], "o", color=style.COLOURS["blue"], mfc="white", mew=2, ms=9)
    for x, y, text, colour in (
        (0.02, 0.84 + 0.16 * least, "fp16", "vermillion"),
        (2.4, 0.85, "bf16", "vermillion"),
        (0.75, 1.08 - 0.08 * least, "bf16, coordinates shuffled", "blue"),
    ):
        ax.annotate(text, (x, y), color=style.COLOURS[colour], size=14)
    ax.set(
        ylim=(least - 0.05, 1.2 - 0.2 * least),
        yticks=[x for x in (0, 0.25, 0.5, 0.75, 1) if x >= least],
    )
    style.label(ax)
    return ax, (
        f"{MEASURED}, n = {late.low:,.0f} to {late.high - 1:,.0f} ones: "
        f"the error of bf16 is {late.length:.1f} times as long as the difference. "
        f"Among {what}, the nearest is the right one in {late[column]:.0%} of the cases, and the "
        f"formula gives {float(right(late.length, late.share)):.0%}. With the coordinates of the "
        f"errors shuffled, it is the right one in {last[column].iloc[-1]:.0%} of the cases. For "
        f"isotropic errors, the formula gives {float(right(late.length, 1 / width)):.0%}."
    )


def figure5(
    name: str, curves: Mapping[str, Mapping[str, Tensor]], grid: Sequence[int], sequence: str
) -> tuple[Axes, str]:
    """Draw how far repeated tokens move the last state, as in Figure 5 of Barbero et al. (2024).

    We draw all curves of `sequence`. The other sequences in `curves` only set the range of the y
    axis, so that several figures can be compared.
    """
    found, middle = curves[sequence], len(grid) // 2
    changes = ", ".join(
        f"{text} {float(curve[-1] / curve[middle]):.0%}" for text, curve in found.items()
    )
    ax = style.axes(
        f"Distance at n = {grid[-1]} over that at {grid[middle]}: {changes}",
        "n (tokens of the sequence)",
        "L1 distance",
        log="xy",
        height=3.9,
    )
    ax.title.set_size(15)
    for (text, curve), colour in zip(found.items(), ("blue", "vermillion", "green"), strict=False):
        ax.plot(grid, curve, "o-", color=style.COLOURS[colour], label=text)
    every = torch.cat([curve for part in curves.values() for curve in part.values()])
    ax.set_ylim(float(every.min()) / 1.5, float(every.max()) * 1.5)
    style.label(ax)
    values = "; ".join(
        f"{text}: " + ", ".join(f"{curve[k]:.3g} at n = {grid[k]}" for k in (0, middle, -1))
        for text, curve in found.items()
    )
    return ax, f"{name}. L1 distance for {values}."


def copying(
    name: str, margins: Mapping[str, dict], digits: Sequence[int], setting: str
) -> tuple[Axes, str]:
    """Draw how a digit 0 changes the logits, for each of its positions and each question.

    If a model copies, the effect is on the diagonal.
    """
    found = margins[setting]
    effects = {places: zero - one for places, (zero, one) in found.items()}
    able = {place: measures.right_both_ways(found, place) for place in collapse.PLACES}
    short = [place for place in collapse.PLACES if not able[place][0]]
    title = (
        f"{setting}: wrong at {digits[0]} digits already ({', '.join(short)})"
        if short
        else (
            f"{setting}: right at {int(able['first'].sum())} (first) and "
            f"{int(able['last'].sum())} (last) of {len(digits)} lengths"
        )
    )
    ax = style.axes(
        title,
        "where the 0 is (digits of the string: effect)",
        "asked for",
        height=1.8 + 0.8 * len(digits),
    )
    ax.title.set_size(15)
    ax.grid(False)
    largest = (
        max(
            float((zero - one).abs().max())
            for pairs in margins.values()
            for zero, one in pairs.values()
        )
        or 1.0
    )
    for (place, asked), effect in effects.items():
        row, column = -collapse.PLACES.index(asked), collapse.PLACES.index(place)
        for k, (n, value) in enumerate(zip(digits, effect.tolist(), strict=True), 1):
            at = column - 0.2, row + 0.5 - k / (len(digits) + 1)
            colour = style.COLOURS["blue" if place == asked else "grey"]
            ax.scatter(*at, s=400 * abs(value) / largest, color=colour)
            text = f"{n}: {value:.2f}".replace("-", "−")
            ax.annotate(text, at, (16, 0), textcoords="offset points", va="center", size=14)
    ax.set(xlim=(-0.5, 1.5), ylim=(-1.5, 0.5), xticks=(0, 1), yticks=(0, -1))
    ax.set_xticklabels(collapse.PLACES)
    ax.set_yticklabels(collapse.PLACES)
    at = {places: float(effect[-1]) for places, effect in effects.items()}
    return ax, (
        f"{name}, {digits[-1]} digits. A 0 as the first digit moves the answer by "
        f"{at['first', 'first']:+.2f} logits if we ask for the first digit, and by "
        f"{at['first', 'last']:+.2f} if we ask for the last. A 0 as the last digit moves it by "
        f"{at['last', 'last']:+.2f} if we ask for the last digit, and by "
        f"{at['last', 'first']:+.2f} if we ask for the first. {_answers(able, digits)}"
    )


def _answers(able: Mapping[str, Tensor], digits: Sequence[int]) -> str:
    """Write a sentence about the lengths at which the model answers both 0 and 1 correctly."""
    right = {
        place: [str(n) for n, yes in zip(digits, able[place].tolist(), strict=True) if yes]
        for place in able
    }
    if not any(right.values()):
        return "At none of these lengths is the model right both with a 0 and with a 1."
    return (
        "The model is right both with a 0 and with a 1 at "
        + ", and at ".join(
            f"{' and '.join(ns) + ' digits' if ns else 'none of these lengths'} ({place})"
            for place, ns in right.items()
        )
        + "."
    )
