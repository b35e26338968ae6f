"""Draw the figures of chapter 4, and state the finding of each figure in a sentence."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.chapter4 import measures, run_selection
from course.evidence import significance
from course.maths import counting
from course.runs import asked, trained
from course.training import checkpoints
from course.training.checkpoints import Trained
from helpers import collapse, data, style

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Draw the lesson's figures about softmax and the count --------------------------------------------


def copies() -> tuple[Axes, str]:
    """Draw how far one more copy of "10" moves the last hidden state, and fp32's rounding error.

    The decoder is a random Transformer with a causal mask.
    """
    many = [1, 2, 3, 5, 8, 16, 32, 64, 128, 256]

    def moved(k: int, dtype: str) -> torch.Tensor:
        one, more = (
            counting.last_state("10" * n, causal=True, dtype=dtype).double() for n in (k, k + 1)
        )
        return (more - one) / one.norm()

    exact, here = ([moved(k, dtype) for k in many] for dtype in ("fp64", "fp32"))
    frame = pd.DataFrame(
        {
            "k to k + 1": [float(x.norm()) for x in exact],
            "fp32's rounding": [float((x - y).norm()) for x, y in zip(here, exact, strict=True)],
        },
        index=pd.Index(many, name="copies k of 10"),
    )
    change, error = (frame[name] for name in frame)
    assert (error < change / 2).all()  # otherwise fp32 could not show the change
    ax = style.lines(frame, "relative to the state", log="xy", height=4.0, colours=(BLACK, GREY))
    ax.get_lines()[1].set_gid(style.ROUNDING)
    ax.set_ylim(1e-8, 0.1)  # otherwise the axis begins at the smallest rounding error
    assert frame.stack().between(*ax.get_ylim()).all()
    ax.set_title(f"One more copy is seen up to {many[-1]} copies and beyond")
    return ax, (
        "In a random Transformer with a causal mask, the step from 1 to 2 copies of 10 moves the "
        f"state by {style.number(change[1])} of its size. The step from {many[-1]} to "
        f"{many[-1] + 1} copies moves it by {style.number(change[many[-1]])} of its size, which is "
        "more than twice the rounding error of fp32."
    )


def readout() -> tuple[Figure, str]:
    """Draw which counts bf16 cannot distinguish, and how far each format can count.

    The first panel shows the counts around the first two that get the same number in bf16.
    """
    limits = {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")}
    figure = Figure(figsize=(9.0, 3.6))
    near, far = figure.subplots(1, 2, width_ratios=(1.15, 1))
    n = torch.arange(limits["bf16"] - 9, limits["bf16"] + 9, dtype=torch.float64)
    marks = 1 / collapse.round_to(1 / (1 + n), torch.bfloat16) - 1
    for count, mark in zip(n.tolist(), marks.tolist(), strict=True):
        colour = BLUE if round(mark) == count else RED
        near.plot([count, mark], [1, 0], color=colour, lw=1.5)
        near.plot(count, 1, "o", color=colour, ms=7)
        near.plot([mark, mark], [-0.12, 0], color=BLACK, lw=2)
    near.axhline(0, color=BLACK, lw=1)
    near.set(
        ylim=(-0.3, 1.3),
        yticks=[0, 1],
        yticklabels=["bf16", "n"],
        xticks=[180, limits["bf16"], 196],
    )
    far.axvspan(10, 200, color="#EEF4FA", zorder=0)
    for row, (name, limit) in enumerate(limits.items()):
        far.plot([1, limit], [row, row], style.TYPES[name], color=BLACK, lw=4, label=name)
        far.annotate(
            f"{limit:,}", (limit, row), (0, 8), textcoords="offset points", ha="right", size=15
        )
    far.set(
        xscale="log", xlim=(1, 1e8), ylim=(-0.6, 2.7), yticks=range(3), yticklabels=list(limits)
    )
    far.set_xlabel("ones after the first token")
    for ax in (near, far):
        ax.grid(False)
    return figure, (
        "The count read from the first token's weight 1/(1 + n), rounded once, is right up to "
        + ", ".join(f"{limit:,} ({name})" for name, limit in limits.items())
        + "."
    )


def by_bits(reach: Callable[[int], float]) -> tuple[Axes, str]:
    """Draw the largest count that the first token's weight can show, for each number of bits.

    Args:
        reach: a function that returns this count for the number of bits that store the weight.
    """
    bits = range(3, 13)
    limits = [reach(b) for b in bits]
    factor = (limits[-1] / limits[0]) ** (1 / (len(limits) - 1))
    frame = pd.DataFrame({"read right": limits, "2 to the bits": [2**b for b in bits]}, index=bits)
    frame.index.name = "significant bits of the weight"
    ax = style.lines(frame, "largest count", log="y", height=5.0, colours=(BLUE, GREY))
    ax.set_title(f"One more bit counts {factor:.2f} times as far")
    for name, b in (("bf16", 8), ("fp16", 11)):
        look = {"textcoords": "offset points", "weight": "bold"}
        ax.annotate(
            f"{name}: {frame['read right'][b]:,.0f}", (b, frame["read right"][b]), (8, -22), **look
        )
    return ax, (
        f"From {bits[0]} to {bits[-1]} bits the largest count goes from {limits[0]:,.0f} to "
        f"{limits[-1]:,.0f}. Each additional bit makes it {factor:.2f} times as large."
    )


# Draw the lesson's figures about reported answers -------------------------------------------------

# for each way of writing, the marker, the colour, and a shift above the model's row, so that equal
# answers are both visible
WRITTEN = {
    "ones": ("o", BLUE, 0.2),
    "comma_separated": ("s", RED, 0.0),
    "groups_of_five": ("^", GREEN, -0.2),
}


def reported(guess: int) -> tuple[Axes, str]:
    """Draw the talk's answers to 314 ones, and a model that always gives the same number."""
    table = measures.answers()
    ax = style.axes("", "answer", "", height=3.7)
    names = list(dict.fromkeys(table.model))
    for writing, (mark, colour, above) in WRITTEN.items():
        rows = table[table.writing == writing]
        places = [len(names) - 1 - names.index(model) + above for model in rows.model]
        ax.plot(
            rows.answer,
            places,
            mark,
            mfc="none",
            mew=2.5,
            ms=11,
            color=colour,
            label=measures.WRITINGS[writing],
        )
    ax.axvline(measures.ASKED, color=BLACK, lw=2)
    ax.text(measures.ASKED + 3, -0.75, "314, the truth", size=13)
    ax.axvline(guess, color=GREY, lw=2, ls="--")
    side = "right" if guess < measures.ASKED else "left"
    ax.text(
        guess + (3 if side == "left" else -3),
        -0.75,
        f"always {guess}",
        size=13,
        color=GREY,
        ha=side,
    )
    ax.set_yticks(range(len(names)), names[::-1])
    ax.set(ylim=(-1, len(names) - 0.4), xlim=(20, 520))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08))
    given = table.answer.dropna()
    nearer = int(((given - measures.ASKED).abs() < abs(guess - measures.ASKED)).sum())
    ax.set_title(
        f"{nearer} of {len(given)} answers beat always saying {guess}; "
        f"{int(given.eq(314).sum())} are right"
    )
    return ax, (
        f"The mean error of the {len(given)} answers is "
        f"{(given - measures.ASKED).abs().mean():.0f}, and the error of always saying {guess} is "
        f"{abs(guess - measures.ASKED)}. Answers with a smaller error than that: {nearer}."
    )


def always_one_number(guess: int) -> tuple[Axes, str]:
    """Draw the error of a model that always gives the same number, as a function of length.

    In one task all items are ones. In the other task seven tenths of the items are ones.
    """
    lengths = measures.PAPER_LENGTHS
    lines = {task: measures.always(guess, lengths, task) for task in ("ones", "zeros and ones")}
    means = {task: sum(errors) / len(errors) for task, errors in lines.items()}
    ax = style.axes(
        f"Always {guess}: at most {max(lines['ones']):.0f} off, and best at {guess} ones",
        "length n",
        "absolute error",
        height=4.3,
    )
    for errors, colour, name in zip(
        lines.values(), (BLUE, RED), ("n ones", "0.7 n ones"), strict=True
    ):
        ax.plot(lengths, errors, "o-", color=colour, label=name)
    row = (
        data.table("reported/counting_figures")
        .query("quantity == 'largest absolute error'")
        .iloc[0]
    )
    ax.axhline(row.value, color=BLACK, lw=1.5, ls="--")
    ax.text(12, row.value + 2, f"paper's Figure 3, task 2: up to about {row.value:.0f}", size=13)
    ax.set_ylim(0, max(112, 1.12 * max(lines["ones"])))
    style.label(ax)
    return ax, (
        f"Mean error over n = 10, 20, …, 200: {means['ones']:.1f} for n ones, and "
        f"{means['zeros and ones']:.1f} if seven in ten are ones. The largest error is "
        f"{max(lines['ones']):.0f}."
    )


def bases(trials: int) -> tuple[Axes, str]:
    """Draw the talk's accuracies for each base, with intervals as for `trials` strings."""
    table, (low, high) = measures.base_intervals(trials), measures.plain_interval(trials)
    above = measures.separated(trials)
    ax = style.axes(
        f"With {trials:,} strings: {above} of {len(table)} intervals above the plain string",
        "base of RoPE",
        "accuracy (%)",
        log="x",
        height=4.0,
    )
    ax.axhspan(low, high, color="#F7DCC8", zorder=0)
    ax.axhline(measures.PLAIN_ACCURACY, color=RED, lw=2)
    ax.text(1.0, measures.PLAIN_ACCURACY, "without separators", color=RED, size=13, va="bottom")
    errors = [table.accuracy_percent - table.low, table.high - table.accuracy_percent]
    ax.errorbar(
        table.base,
        table.accuracy_percent,
        errors,
        fmt="o",
        mfc="white",
        mew=2,
        color=BLUE,
        capsize=4,
    )
    ax.text(0.02, 0.93, "with separators", color=BLUE, size=13, transform=ax.transAxes)
    ax.set_ylim(0, max(2.2, 1.3 * float(table.high.max())))
    rho, p = measures.base_trend()
    return ax, (
        f"Had each point {trials:,} strings, 95% intervals of {above} of {len(table)} bases "
        "lie above that without "
        f"separators. Rank correlation with the base {rho:+.2f} (p = {p:.2f})."
    )


# Draw the lab's figures about a language model ----------------------------------------------------

MARKS = {"no CoT": ("o", BLUE), "CoT zero-shot": ("s", GREEN), "CoT few-shot": ("^", RED)}


def asked_errors(answers: pd.DataFrame, task: str, line: str, name: str) -> tuple[Axes, str]:
    """Draw the absolute error of each strategy's counts, as a function of length.

    For comparison, we draw a model that always says 100. Answers that are not numbers are at the
    top.
    """
    chosen = answers[(answers.task == task) & (answers.line == line)]
    given, exact = chosen.dropna(subset="answer"), int((chosen.error == 0).sum())
    ax = style.axes(
        f"{task}: {exact} of {len(chosen)} answers right, {len(chosen) - len(given)} no number",
        "items in the sequence",
        "absolute error + 1",
        log="xy",
    )
    top = 1e3 * max(200.0, float(given.error.max()) if len(given) else 0.0)
    ax.set_ylim(0.7, 8 * top)
    ax.axhline(top / 8, color=GREY, lw=1)
    ax.text(3, 2.5 * top, "no number on the answer line", color=GREY, size=13, va="center")
    for strategy, rows in chosen.groupby("strategy", sort=False):
        marker, colour = MARKS[strategy]
        missing = rows[rows.answer.isna()]
        ax.plot(
            rows.length,
            rows.error.astype(float) + 1,
            marker,
            color=colour,
            label=strategy,
            alpha=0.7,
        )
        ax.plot(missing.length, [top / 3] * len(missing), marker, mfc="none", mew=1.5, color=colour)
    n = sorted(chosen.length.unique())
    ax.plot(
        n,
        [error + 1 for error in measures.always(asked.GUESS, n, task)],
        "--",
        color=BLACK,
        label="always 100",
    )
    style.ticks(ax, n)
    ax.figure.legend(loc="outside lower center", ncols=4, fontsize=13)
    return ax, (
        f"{name}, {task}, {asked.LINES[line]}: {len(given)} of {len(chosen)} answers are "
        f"numbers, {exact} are right, "
        f"and {int((given.error < abs(given['count'] - asked.GUESS)).sum())} are nearer than "
        "100 is."
    )


# Draw the lab's figures about decoders that can count ---------------------------------------------

FIVE = (BLUE, RED, GREEN, PURPLE, BLACK)


def counting_by_length(
    table: pd.DataFrame,
    group: str,
    interval: Callable[[int, int], tuple[float, float]] | None = None,
) -> tuple[Axes, str]:
    """Draw accuracy as a function of length, within and beyond the trained lengths.

    Lines are means over the seeds, and bands are ranges.

    Args:
        group: one of the groups of decoders to compare.
        interval: a function that adds a bar to each point. It takes the number of right answers
            over all strings and the number of strings, and returns the two ends of the bar.
    """
    runs, lengths = trained.chosen_runs(table, group), list(trained.LENGTHS)
    ax = style.axes("", "letters in the string", "fraction of right counts", log="x", height=4.0)
    ax.axvspan(min(lengths), trained.LONGEST, color="#EEF4FA", zorder=0)
    ax.text(trained.LONGEST * 0.97, 0.03, "training", color=BLUE, ha="right", size=14)
    shades = (
        FIVE
        if len(runs) <= len(FIVE)
        else [colormaps["viridis"](k / len(runs)) for k in range(len(runs))]
    )
    means = {}
    for (name, rows), colour in zip(runs.items(), shades, strict=False):
        colour = style.ENCODINGS.get(name.replace("0.5-RoPE", "p-RoPE"), colour)
        right = rows[[f"right_{n}" for n in lengths]]
        means[name] = right.mean().tolist()
        ax.fill_between(lengths, right.min(), right.max(), color=colour, alpha=0.12, lw=0)
        ax.plot(lengths, means[name], "o-", color=colour, label=name)
        if interval:
            strings = trained.STRINGS * len(rows)
            bars = [interval(round(share * strings), strings) for share in means[name]]
            ax.vlines(lengths, *zip(*bars, strict=True), color=colour, lw=7, alpha=0.6)
    one = [trained.one_number(n) for n in lengths]
    ax.plot(lengths, one, ":", color=GREY, lw=2, label="one number")
    style.ticks(
        ax, lengths, ["" if n == 18 else str(n) for n in lengths]
    )  # labels between 16 and 20 would overlap
    ax.set_ylim(-0.02, 1.04)
    style.label(ax)
    falls = [
        next(n for n, share in zip(lengths, mean, strict=True) if share < trained.LEARNED)
        for mean in means.values()
    ]
    ax.set_title(
        f"The accuracy begins to fall at {min(falls)} "
        + (f"to {max(falls)} letters" if len({*falls}) > 1 else "letters")
    )
    far, seeds = lengths.index(2 * trained.LONGEST), len(next(iter(runs.values())))
    low, high = (choose(means, key=lambda name: means[name][far]) for choose in (min, max))
    bars = f" Bars are intervals for {trained.STRINGS * seeds} strings." if interval else ""
    return ax, (
        f"At {lengths[far]} letters, {means[low][far]:.0%} ({low}) to {means[high][far]:.0%} "
        f"({high}) of the counts are right. Always giving the same number is right for "
        f"{one[far]:.0%}. Lines are means of {seeds} seeds, and bands are their range.{bars}"
    )


# Draw the lab's figures about collapse and failure ------------------------------------------------


def copying_link(model: Trained, place: str, digit: str, name: str) -> tuple[Figure, str]:
    """Draw how the distance between last states, and its effect on the answer, fall with length.

    The first length with a wrong answer is marked.
    """
    lengths = [*range(2, 81), *range(88, 257, 8)]
    seen = checkpoints.copying(model, lengths, place, digit)
    at, short = trained.turn(lengths, seen["margin"]), lengths.index(trained.LONGEST)
    here = lengths.index(at) if at else len(lengths) - 1
    effect = seen["margin"] - seen["control"]
    figure = Figure(figsize=(11.2, 3.4))
    left, right = panels = figure.subplots(1, 2, width_ratios=(1, 1.3))
    left.plot(lengths, seen["distance"], color=BLUE, label="asked digit\nchanged")
    left.plot(lengths, seen["repeated"], "--", color=GREY, label="last digit\nrepeated")
    left.set(yscale="log", title="distance of states (L1)")
    right.plot(lengths, effect, color=GREEN, label="the asked\ndigit adds")
    right.plot(lengths, -seen["control"], ":", color=BLACK, label="needed to turn\nthe others")
    right.plot(lengths, seen["swapped"], "--", color=GREY, label="other place\nasked")
    right.set(title="effect on the answer (logits)")
    for ax in panels:
        ax.axvspan(lengths[0], trained.LONGEST, color="#EEF4FA", zorder=0)
        if at:
            ax.axvline(at, color=RED, lw=2, ls="--")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("digits in the string")
        style.ticks(ax, [2, 4, 16, 64, 256])
        style.label(ax)
    kept = float(effect[here] / effect[short])
    by_itself = float(-seen["control"][short] / effect[short])
    where = f"first wrong at {at} digits" if at else f"right up to {lengths[-1]} digits"
    title = f"{name}: {where}, with {kept:.0%} of the effect left" + (
        f" ({by_itself:.0%} needed)" if at else ""
    )
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, (
        f"{place} digit, a {digit} among others: the answer is {where}, where the digit adds "
        f"{effect[here]:.1f} logits, "
        f"{kept:.0%} of what it adds at {trained.LONGEST} digits."
    )


def copying_turns(table: pd.DataFrame, place: str) -> tuple[Axes, str]:
    """Draw the lengths from which decoders lose a digit, one point per decoder and digit."""
    points = {}
    for name, rows in run_selection.copiers(table).items():
        able = {digit: rows[rows[f"short_{place}_{digit}"]] for digit in "01"}
        points[name] = [at for digit in "01" for at in able[digit][f"turn_{place}_{digit}"]]
    ax = _turns(points)
    kept = {name: sum(at == trained.NEVER for at in turns) for name, turns in points.items()}
    every = sum(map(len, points.values()))
    lost = every - sum(kept.values())
    ax.set_title(f"By {trained.TURNS[-1]} digits {lost} of {every} have lost the {place} one")
    return ax, (
        f"{place} digit: {lost} of {every} pairs of decoder and digit turn by "
        f"{trained.TURNS[-1]} digits; "
        "never: " + ", ".join(f"{name} {count}" for name, count in kept.items() if count) + "."
    )


def copying_ends(table: pd.DataFrame) -> tuple[Axes, str]:
    """Draw the lengths from which the first and the last digit are lost, with RoPE and with APE.

    There is one point per decoder and digit.
    """
    points, said = {}, []
    found = run_selection.first_against_last(table).set_index("encoding")
    for name in ("RoPE", "APE"):
        points |= {
            f"{name}, {place} digit": turns
            for place, turns in run_selection.turns(table, name).items()
        }
        row = found.loc[name]
        place = "first" if row["first earlier"] > row["last earlier"] else "last"
        said.append(f"{name} {place} ({int(row[f'{place} earlier'])} of {int(row.pairs)})")
    ax = _turns(points, 0.6 * len(points) + 1.8)
    ax.set_title(f"Lost earlier: {', '.join(said)}")
    return ax, f"Which digit is lost earlier, by pairs of decoder and digit: {', '.join(said)}."


def _turns(points: Mapping[str, Sequence[int]], height: float = 4.2) -> Axes:
    """Draw one row of points for each name.

    A point is at the first length with a wrong answer, or at "never".
    """
    end = trained.TURNS[-1] * 2.1
    ax = style.axes("", "first length with a wrong answer", "", log="x", height=height)
    for row, (name, turns) in enumerate(points.items()):
        shift = [row + 0.7 * ((k + 0.5) / len(turns) - 0.5) for k in range(len(turns))]
        ax.plot(
            [at or end for at in turns],
            shift,
            "o",
            color=RED if "first" in name else BLUE,
            alpha=0.7,
        )
    ax.axvspan(10, trained.LONGEST, color="#EEF4FA", zorder=0)
    ax.set_yticks(range(len(points)), list(points))
    ticks = [16, 32, 64, 128, 256, 512]
    style.ticks(ax, [*ticks, end], [*map(str, ticks), "never"])
    ax.set_xlim(10, end * 1.25)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    return ax


# Draw the lab's figures about what is left of the count -------------------------------------------


def counters_read(table: pd.DataFrame, moved: pd.DataFrame, encoding: str) -> tuple[Axes, str]:
    """Draw how often linear probes recover the count of 20 letters, before and after training.

    The x axis is the probe's penalty, and the states are exact or rounded. The figure also shows
    the decoder's own answers and two lower limits. One limit is a probe that gets only the fraction
    of y, and the other is a probe of wrong counts. The bands are ranges over the seeds.
    """
    rows = table[(table.encoding == encoding) & (table.reader == "least squares")]
    own = moved[moved.encoding == encoding].right_20.mean()
    means = rows.groupby("penalty").mean(numeric_only=True)
    range_, places = rows.groupby("penalty"), range(len(means))
    ax = style.axes("", "penalty of the readout", "accuracy at 20 letters", height=3.0)
    for name, column, colour, mark, kind in (
        ("before training", "untrained", PURPLE, "v", "fp32"),
        ("before, in bf16", "untrained_bf16", PURPLE, "v", "bf16"),
        ("trained", "trained", BLUE, "s", "fp32"),
        ("trained, in bf16", "trained_bf16", BLUE, "s", "bf16"),
        ("fraction of y", "ratio", BLACK, "x", "fp32"),
        ("wrong counts", "trained_shuffled", GREY, "", "fp32"),
    ):
        if column in ("untrained", "trained"):
            ax.fill_between(
                places, range_[column].min(), range_[column].max(), color=colour, alpha=0.12, lw=0
            )
        look = mark + style.TYPES[kind]
        ax.plot(
            places,
            means[column],
            look,
            color=colour,
            label=name,
            mfc="none" if kind == "bf16" else None,
        )
    ax.axhline(own, color=RED, label="the decoder")
    style.ticks(
        ax,
        [*places],
        ["none" if x == 0 else style.number(x, 1).removeprefix("1 × ") for x in means.index[:-1]]
        + ["1"],
    )
    ax.set_ylim(-0.02, 1.04)
    style.label(ax)
    best = run_selection.best_read(table).loc[encoding]
    ax.set_title(
        f"{encoding}: {best.untrained:.0%} readable before training, {best.trained:.0%} after"
    )
    return ax, (
        f"{encoding}, 20 letters. Accuracy of the best linear probe: {best.untrained:.0%} before "
        f"training ({best.untrained_bf16:.0%} with states in bf16), and {best.trained:.0%} after "
        f"training ({best.trained_bf16:.0%} in bf16). The decoder itself has {own:.0%}, a probe of "
        f"the fraction of y has {best.ratio:.0%}, and a probe fitted to wrong counts has at most "
        f"{rows.trained_shuffled.max():.0%}."
    )


READOUTS = {  # what the figure draws of `run_selection.fates`, as name: (column, colour, filled)
    "there: linear readout fitted to 17 to 32 letters": ("there", BLUE, True),
    "there, before training": ("there_before", BLUE, False),
    "findable: linear readout fitted to 1 to 16 letters": ("findable", GREEN, True),
    "findable, before training": ("findable_before", GREEN, False),
    "used: the decoder's own head": ("used", RED, True),
}


def three_readouts(table: pd.DataFrame) -> tuple[Axes, str]:
    """Draw how often three readouts recover the count of 20 letters, for each position encoding.

    The readouts are the best linear probe, a linear probe that is fitted on the decoder's own
    training lengths, and the decoder itself.
    """
    found = run_selection.fates(table)
    ax = style.axes("", "accuracy for strings of 20 letters", "", height=4.6)
    for name, (column, colour, filled) in READOUTS.items():
        places = [
            place + (0.14 if column.endswith("before") else -0.14) for place in range(len(found))
        ]
        ax.plot(
            found[column],
            places,
            "o",
            ms=11,
            mew=2,
            color=colour,
            mfc=colour if filled else "none",
            label=name if filled else f"_{name}",
        )
    ax.set_yticks(range(len(found)), found.index)
    ax.set(ylim=(len(found) - 0.4, -0.6), xlim=(-0.04, 1.04))
    ax.grid(visible=False, axis="y")
    ax.plot([], [], "o", ms=11, mew=2, color=GREY, mfc="none", label="before training")
    ax.figure.legend(loc="outside lower left", ncols=2, fontsize=14)
    said = "; ".join(
        f"{name}: there {row.there:.2f} (before training {row.there_before:.2f}), findable "
        f"{row.findable:.2f} "
        f"({row.findable_before:.2f}), used {row.used:.2f}"
        for name, row in found.iterrows()
    )
    return ax, f"Accuracy of each readout for the count of 20 letters. {said}."


# Draw the lab's figures about the trained lengths -------------------------------------------------


LONGEST_STRING, GAP = "N, the longest string (letters)", "distance of neighbours / size"
AT_64, SCATTER = "right at 64 letters", "scatter of a count's states / distance"
INSIDE = {  # what is drawn against what, as name: (x, y, label of x, label of y)
    "right, by N": ("longest", "right_4", LONGEST_STRING, "right at N letters"),
    "distance of neighbours, by N": ("longest", "gap", LONGEST_STRING, GAP),
    "margin, by N": (
        "longest",
        "margin_low_4",
        LONGEST_STRING,
        "margin at N, 5% quantile (logits)",
    ),
    "right, by width": ("width", "right_4", "width, N = 64", AT_64),
    "right, by distance": ("gap", "right_4", f"{GAP}, N = 64", AT_64),
    "right, by scatter": ("spread", "right_4", f"{SCATTER}, N = 64", AT_64),
}


def within_training(table: pd.DataFrame, what: str) -> tuple[Axes, str]:
    """Draw a result of decoders that were trained on up to N letters, for each N.

    The test has N letters. There is one point per seed, and a line through the means. For the
    accuracy, an open point shows the same decoder in bf16.
    """
    across, up, x, y = INSIDE[what]
    rows = run_selection.chosen(table, across)
    lines = across in ("longest", "width")
    ax = style.axes("", x, y, log="x" if lines else "", height=4.0)
    means = {}
    for encoding, cells in rows.groupby("encoding", sort=False):
        colour = style.ENCODINGS[encoding]
        ax.plot(
            cells[across], cells[up], "o", color=colour, alpha=0.5, label="_" if lines else encoding
        )
        if up == "right_4":
            ax.plot(
                cells[across], cells.bf16_right_4, "o", mfc="none", mew=1.5, color=colour, label="_"
            )
        means[encoding] = cells.groupby(across)[up].mean()
        if lines:
            ax.plot(means[encoding].index, means[encoding], "-", color=colour, label=encoding)
    if up == "right_4":
        floor = float(rows[["right_4", "bf16_right_4"]].min().min())
        ax.set_ylim(0.8 if floor > 0.82 else -0.02, 1.012)
    else:
        ax.set_ylim(min(0, 1.4 * float(rows[up].min())), 1.05 * float(rows[up].max()))
        ax.axhline(0, color=BLACK, lw=0.8)
    if not lines:
        ax.legend(loc="best")
        rho = style.number(significance.rank_correlation(rows[across], rows[up])[0])
        ax.set_title(f"Right answers against {what.partition('by ')[2]}: rank correlation {rho}")
        widths = f"{rows.width.min()} to {rows.width.max()}"
        return ax, f"{len(rows)} decoders, N = 64, widths {widths}: rank correlation {rho}."
    style.ticks(ax, sorted(rows[across].unique()))
    style.label(ax)
    first, last = ({name: float(each.iloc[k]) for name, each in means.items()} for k in (0, -1))
    name = what.partition(",")[0].capitalize()
    if up == "right_4":
        where = {"longest": "Longest string", "width": "Widest"}[across]
        ax.set_title(f"{where}: {min(last.values()):.1%} to {max(last.values()):.1%} right")
    else:
        smaller = sum(last[encoding] < first[encoding] for encoding in means)
        ax.set_title(f"{name}: falls in {smaller} of {len(means)} encodings")
    seeds = rows.groupby(["encoding", across]).seed.nunique()
    count = (
        f"{seeds.min()} to {seeds.max()} seeds"
        if seeds.min() < seeds.max()
        else f"{seeds.min()} seeds"
    )
    listed = ", ".join(
        f"{encoding} {style.number(first[encoding])} to {style.number(last[encoding])}"
        for encoding in means
    )
    return ax, f"{name}, from the left end to the right end: {listed} ({count})." + (
        " Open points are in bf16." if up == "right_4" else ""
    )
