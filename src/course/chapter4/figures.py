"""What chapter 4 draws: functions that return a figure and the sentence that states its finding."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course import counters, significance
from course.chapter4 import measures
from course.experiments import asked, inside, trained
from helpers import checkpoints, collapse, counting, data, style
from helpers.checkpoints import Trained
from helpers.tasks import PLACES

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Lesson: softmax and the count ---------------------------------------------------------------------------

UNITS = {"only ones": "1", "1 zero, 1 one": "01", "1 zero, 3 ones": "0111"}


def copies(setup: str, unit: str, dtype: str) -> tuple[Axes, str]:
    """How far the last state moves when one more copy of a string is written."""
    found = measures.steps(UNITS[unit], setup, dtype)
    floor = 1e-17
    last = max((k for k, seen in zip(found.copies, found.seen(), strict=True) if seen), default=0)
    if last == 0:
        title = "One more copy changes nothing but rounding"
    elif last == found.copies[-1]:
        title = f"One more copy is seen up to {last} copies and beyond"
    else:
        title = f"One more copy is lost in rounding after {last} cop{'y' if last == 1 else 'ies'}"
    ax = style.axes(title, "copies k of the string", "relative to the state", log="xy", height=4.0)
    changes = list(zip(found.copies, found.change, found.seen(), strict=True))
    shown = [(k, change) for k, change, seen in changes if seen]
    lost = [(k, max(change, floor)) for k, change, seen in changes if not seen]
    look = {"color": style.TYPES[dtype], "marker": "o"}
    ax.plot([k for k, _ in shown], [change for _, change in shown], **look)
    ax.plot([k for k, _ in lost], [change for _, change in lost], **look, mfc="white", gid=style.ROUNDING)
    ax.plot(found.copies, [max(x, floor) for x in found.error], "--", color=GREY, gid=style.ROUNDING)
    ax.set_ylim(floor / 3, 1e5)
    label = "— change from k to k + 1 copies (open: rounding)"
    ax.text(0.02, 0.95, label, color=style.TYPES[dtype], transform=ax.transAxes, va="top")
    ax.text(0.02, 0.87, "- - its rounding error", color=GREY, transform=ax.transAxes, va="top")
    if not shown:
        return ax, f"{setup}, {unit}, {dtype}: no change of the state is larger than its rounding error."
    ends = dict([shown[0], shown[-1]])
    moves = " and ".join(f"from {k} to {k + 1} copies by {style.number(change)}" for k, change in ends.items())
    beyond = "" if last == found.copies[-1] else " Beyond, the change is no larger than its rounding error."
    return ax, f"{setup}, {unit}, {dtype}: the state moves {moves} of its size.{beyond}"


def readout() -> tuple[Figure, str]:
    """Rulers of a number type: the counts around the first that share a mark in bf16, and how far each type counts."""
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
    near.set(ylim=(-0.3, 1.3), yticks=[0, 1], yticklabels=["bf16", "n"], xticks=[180, limits["bf16"], 196])
    far.axvspan(10, 200, color="#EEF4FA", zorder=0)
    for row, (name, limit) in enumerate(limits.items()):
        far.plot([1, limit], [row, row], color=style.TYPES[name], lw=6, solid_capstyle="butt")
        far.annotate(
            f"{limit:,}", (limit, row), (0, 8), textcoords="offset points", ha="right", size=15, color=style.TYPES[name]
        )
    far.set(xscale="log", xlim=(1, 1e8), ylim=(-0.6, 2.7), yticks=range(3), yticklabels=list(limits))
    far.set_xlabel("ones after the first token")
    for ax in (near, far):
        ax.grid(False)
    return figure, (
        "The count read from the first token's weight 1/(1 + n), rounded once, is right up to "
        + ", ".join(f"{limit:,} ({name})" for name, limit in limits.items())
        + "."
    )


def by_bits(reach: Callable[[int], float]) -> tuple[Axes, str]:
    """How far the first token's weight counts, by the bits in which it is stored: `reach` tells it."""
    bits = range(3, 13)
    limits = [reach(b) for b in bits]
    factor = (limits[-1] / limits[0]) ** (1 / (len(limits) - 1))
    ax = style.axes(f"One bit more counts {factor:.2f} times as far", "significant bits of the weight", "largest count")
    ax.set_yscale("log")
    ax.plot(bits, limits, "o-", color=BLUE, label="read right")
    ax.plot(bits, [2**b for b in bits], "--", color=GREY, label="2 to the bits")
    for name, b in (("bf16", 8), ("fp16", 11)):
        limit = limits[b - bits[0]]
        ax.annotate(
            f"{name}: {limit:,.0f}",
            (b, limit),
            (8, -22),
            textcoords="offset points",
            color=style.TYPES[name],
            weight="bold",
        )
    style.label(ax)
    return ax, (
        f"From {bits[0]} to {bits[-1]} bits the largest count goes from {limits[0]:,.0f} to {limits[-1]:,.0f}, "
        f"{factor:.2f} times as far for each bit."
    )


# Lesson: reported answers --------------------------------------------------------------------------------

# of each way of writing: mark, colour, and how far above its model's row, so that equal answers are both seen
WRITTEN = {"ones": ("o", BLUE, 0.2), "comma_separated": ("s", RED, 0.0), "groups_of_five": ("^", GREEN, -0.2)}


def reported(guess: int) -> tuple[Axes, str]:
    """The talk's answers to 314 ones, beside a model that always names one number."""
    table = measures.answers()
    ax = style.axes("", "answer", "", height=3.7)
    names = list(dict.fromkeys(table.model))
    for writing, (mark, colour, above) in WRITTEN.items():
        rows = table[table.writing == writing]
        places = [len(names) - 1 - names.index(model) + above for model in rows.model]
        ax.plot(rows.answer, places, mark, mfc="none", mew=2.5, ms=11, color=colour, label=measures.WRITINGS[writing])
    ax.axvline(measures.ASKED, color=BLACK, lw=2)
    ax.text(measures.ASKED + 3, -0.75, "314, the truth", size=13)
    ax.axvline(guess, color=GREY, lw=2, ls="--")
    side = "right" if guess < measures.ASKED else "left"
    ax.text(guess + (3 if side == "left" else -3), -0.75, f"always {guess}", size=13, color=GREY, ha=side)
    ax.set_yticks(range(len(names)), names[::-1])
    ax.set(ylim=(-1, len(names) - 0.4), xlim=(20, 520))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08))
    given = table.answer.dropna()
    nearer = int(((given - measures.ASKED).abs() < abs(guess - measures.ASKED)).sum())
    ax.set_title(f"{nearer} of {len(given)} answers beat always saying {guess}; {int(given.eq(314).sum())} are right")
    return ax, (
        f"Mean error of the {len(given)} answers {(given - measures.ASKED).abs().mean():.0f}, of always saying {guess} "
        f"{abs(guess - measures.ASKED)}; nearer than that: {nearer}."
    )


def always_one_number(guess: int) -> tuple[Axes, str]:
    """The error by length of a model that always names one number, in tasks with all and with seven tenths ones."""
    lengths = measures.PAPER_LENGTHS
    lines = {task: measures.always(guess, lengths, task) for task in ("ones", "zeros and ones")}
    means = {task: sum(errors) / len(errors) for task, errors in lines.items()}
    ax = style.axes(
        f"Always {guess}: at most {max(lines['ones']):.0f} off, and best at {guess} ones",
        "length n",
        "absolute error",
        height=4.3,
    )
    for errors, colour, name in zip(lines.values(), (BLUE, RED), ("n ones", "0.7 n ones"), strict=True):
        ax.plot(lengths, errors, "o-", color=colour, label=name)
    row = data.table("reported/counting_figures").query("quantity == 'largest absolute error'").iloc[0]
    ax.axhline(row.value, color=BLACK, lw=1.5, ls="--")
    ax.text(12, row.value + 2, f"largest error in the paper's Figure 3, task 2: about {row.value:.0f}", size=13)
    ax.set_ylim(0, max(112, 1.12 * max(lines["ones"])))
    style.label(ax)
    return ax, (
        f"Mean error over n = 10, 20, …, 200: {means['ones']:.1f} for n ones, {means['zeros and ones']:.1f} where seven in "
        f"ten are ones; largest {max(lines['ones']):.0f}."
    )


def bases(trials: int) -> tuple[Axes, str]:
    """The talk's accuracies by base, with the intervals they would have for a number of strings."""
    table, (low, high) = measures.base_intervals(trials), measures.plain_interval(trials)
    above = measures.separated(trials)
    ax = style.axes(
        f"With {trials:,} strings: {above} of {len(table)} bases above the plain string",
        "base of RoPE",
        "accuracy (%)",
        log="x",
        height=4.0,
    )
    ax.axhspan(low, high, color="#F7DCC8", zorder=0)
    ax.axhline(measures.PLAIN_ACCURACY, color=RED, lw=2)
    ax.text(1.0, measures.PLAIN_ACCURACY, "without separators", color=RED, size=13, va="bottom")
    errors = [table.accuracy_percent - table.low, table.high - table.accuracy_percent]
    ax.errorbar(table.base, table.accuracy_percent, errors, fmt="o", mfc="white", mew=2, color=BLUE, capsize=4)
    ax.text(0.02, 0.93, "with separators", color=BLUE, size=13, transform=ax.transAxes)
    ax.set_ylim(0, max(2.2, 1.3 * float(table.high.max())))
    rho, p = measures.base_trend()
    return ax, (
        f"Had each point {trials:,} strings, 95% intervals of {above} of {len(table)} bases lie above that without "
        f"separators. Rank correlation with the base {rho:+.2f} (p = {p:.2f})."
    )


# Lab: a language model is asked ----------------------------------------------------------------------------

MARKS = {"no CoT": ("o", BLUE), "CoT zero-shot": ("s", GREEN), "CoT few-shot": ("^", RED)}


def asked_errors(answers: pd.DataFrame, task: str, line: str, name: str) -> tuple[Axes, str]:
    """|answer - count| against the length for each strategy, beside always saying 100; what is no number stands on top."""
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
        ax.plot(rows.length, rows.error.astype(float) + 1, marker, color=colour, label=strategy, alpha=0.7)
        ax.plot(missing.length, [top / 3] * len(missing), marker, mfc="none", mew=1.5, color=colour)
    n = sorted(chosen.length.unique())
    ax.plot(n, [error + 1 for error in measures.always(asked.GUESS, n, task)], "--", color=BLACK, label="always 100")
    style.ticks(ax, n)
    ax.figure.legend(loc="outside lower center", ncols=4, fontsize=13)
    return ax, (
        f"{name}, {task}, {asked.LINES[line]}: {len(given)} of {len(chosen)} answers are numbers, {exact} are right, "
        f"and {int((given.error < abs(given['count'] - asked.GUESS)).sum())} are nearer than 100 is."
    )


def asked_histogram(answers: pd.DataFrame, name: str) -> tuple[Axes, str]:
    """The numbers that come most often among all answers, and how often 100 does."""
    given = answers.dropna(subset="answer").answer.astype("int64")
    if given.empty:
        ax = style.axes("No answer is a number", "answers", "", height=4.6)
        ax.set(xticks=[], yticks=[])
        return ax, f"{name}: none of {len(answers)} answers has a number on its answer line."
    often = given.value_counts().head(8)
    hundred = int((given == asked.GUESS).sum())
    shown = [*often.index, *([] if asked.GUESS in often.index else [asked.GUESS])]
    counts = [int((given == number).sum()) for number in shown]
    title = f"{_short(shown[0])} comes most often, 100 in {hundred} of {len(given)} numbers"
    ax = style.axes(title, "answers", "", height=4.6)
    ax.barh([_short(number) for number in shown], counts, color=[RED if x == asked.GUESS else BLUE for x in shown])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    style.whole_ticks(ax)
    tens = int((given % 10 == 0).sum())
    low, high = significance.share_interval(tens, len(given))
    copied, shown_examples = asked.from_examples(answers)
    back, tens_alone, alone = asked.without_examples(answers)
    return ax, (
        f"{name}: {len(given)} answers are numbers: {hundred} of them 100, {tens} of them multiples of ten (95% interval {low:.0%} to "
        f"{high:.0%}; chance 10%). Of {shown_examples} numbers after examples {copied} are the answer of one of the examples; of {alone} "
        f"without, {back} are the string written back, and {tens_alone} are multiples of ten."
    )


def _short(number: int) -> str:
    return f"{number:,}" if number < 10_000 else f"{str(number)[:4]}… ({len(str(number))} digits)"


# Lab: decoders that can count ------------------------------------------------------------------------------

FIVE = (BLUE, RED, GREEN, PURPLE, BLACK)


def counting_by_length(
    table: pd.DataFrame, group: str, interval: Callable[[int, int], tuple[float, float]] | None = None
) -> tuple[Axes, str]:
    """Share of right counts by length, mean and range over the seeds, inside and beyond the lengths of training.

    `interval` gives the ends of a bar for each point from the right ones of all its strings, and how many they are.
    """
    runs, lengths = trained.chosen_runs(table, group), list(trained.LENGTHS)
    ax = style.axes("", "letters in the string", "share of right counts", log="x", height=4.0)
    ax.axvspan(min(lengths), trained.LONGEST, color="#EEF4FA", zorder=0)
    ax.text(trained.LONGEST * 0.97, 0.03, "training", color=BLUE, ha="right", size=14)
    shades = FIVE if len(runs) <= len(FIVE) else [colormaps["viridis"](k / len(runs)) for k in range(len(runs))]
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
    style.ticks(ax, lengths, ["" if n == 18 else str(n) for n in lengths])  # no room between 16 and 20
    ax.set_ylim(-0.02, 1.04)
    style.label(ax)
    falls = {
        name: next((n for n, share in zip(lengths, mean, strict=True) if share < trained.LEARNED), None)
        for name, mean in means.items()
    }
    first, last = min(at or 10**6 for at in falls.values()), max(at or 10**6 for at in falls.values())
    ax.set_title(f"The fall starts at {first} letters" + (f" to {last}" if last != first else ""))
    far, seeds = lengths.index(2 * trained.LONGEST), len(next(iter(runs.values())))
    low, high = (choose(means, key=lambda name: means[name][far]) for choose in (min, max))
    bars = f"; bars: intervals for {trained.STRINGS * seeds} strings" if interval else ""
    return ax, (
        f"At {lengths[far]} letters right in {means[low][far]:.0%} ({low}) to {means[high][far]:.0%} ({high}), always naming "
        f"one number in {one[far]:.0%}. Means of {seeds} seeds, band: their range{bars}."
    )


def letters_noticed(table: pd.DataFrame) -> pd.DataFrame:
    """How often the answer rises by one when the first or the last letter turns from x to y, and strings of one letter."""
    columns = {
        "first letter, 12": "first_12",
        "last letter, 12": "last_12",
        "first letter, 24": "first_24",
        "last letter, 24": "last_24",
        "y alone, 1 to 16": "all_y",
        "x alone, 20 to 64": "all_x_longer",
    }
    runs = trained.chosen_runs(table, "position encoding") | {
        "RoPE, window 8": trained.chosen_runs(table, "window")["window 8"]
    }
    return pd.DataFrame({name: rows[list(columns.values())].mean() for name, rows in runs.items()}).T.set_axis(
        list(columns), axis=1
    )


def separators(table: pd.DataFrame) -> tuple[Axes, str]:
    """What commas change inside the lengths of training: the mean gap and its interval, by encoding and budget."""
    ax = style.axes("", "accuracy with commas minus without", "", height=4.2)
    gaps, said = trained.comma_gaps(table), []
    for row, (name, gap) in enumerate(gaps.items()):
        colour = style.ENCODINGS[name.split(",")[0]]
        ax.plot([gap.low, gap.high], [row, row], color=colour, lw=4)
        ax.plot([gap.mean], [row], "o", color=colour, ms=11)
        said.append(f"{name} {100 * gap.mean:+.0f} ({100 * gap.low:+.0f} to {100 * gap.high:+.0f})")
    ax.axvline(0, color=BLACK, lw=1.5)
    ax.set_yticks(range(len(gaps)), gaps)
    ax.set_ylim(len(gaps) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    helps, hurts = sum(gap.low > 0 for gap in gaps.values()), sum(gap.high < 0 for gap in gaps.values())
    ax.set_title(f"Commas: better in {helps} of {len(gaps)} comparisons, worse in {hurts}")
    listed = "; ".join(said).replace("-", "−")
    return ax, f"Points of accuracy with commas minus without, mean and 95% interval over {gap.seeds} seeds: {listed}."


def number_types(found: pd.DataFrame) -> tuple[Axes, str]:
    """Share of right counts of one decoder in each number type, by length."""
    ax = style.axes("", "letters in the string", "share of right counts", log="x")
    lengths = sorted(found.length.unique())
    right = found.pivot(index="length", columns="type", values="right")
    for name, mark in (("fp32", "o-"), ("fp16", "s--"), ("bf16", "^:")):
        ax.plot(right.index, right[name], mark, color=style.TYPES[name], label=name, ms=11 if name == "fp32" else 7)
    ax.axvspan(min(lengths), trained.LONGEST, color="#EEF4FA", zorder=0)
    style.ticks(ax, lengths)
    ax.set_ylim(-0.02, 1.04)
    ax.legend(loc="lower left")
    gap = float(right.sub(right.fp32, axis=0).abs().max().max())
    fall = right.fp32[trained.LONGEST] - right.fp32[2 * trained.LONGEST]
    changed = 1 - found.groupby("type").same.min()
    ax.set_title(f"Rounding costs {gap:.0%} at most, twice the length {fall:.0%}")
    return ax, (
        f"Largest loss by rounding {gap:.1%}; from {trained.LONGEST} to {2 * trained.LONGEST} letters fp32 loses {fall:.1%}. "
        f"At the worst length {changed['bf16']:.1%} of the answers are others in bf16, {changed['fp16']:.1%} in fp16."
    )


# Lab: from collapse to failure ------------------------------------------------------------------------------


def copying_link(model: Trained, place: str, digit: str, name: str) -> tuple[Figure, str]:
    """Distance of the last representations, margin and effect by length, in one picture, with the length of the turn."""
    lengths = [*range(2, 81), *range(88, 257, 8)]
    seen = checkpoints.copying(model, lengths, place, digit)
    at, short = trained.turn(lengths, seen["margin"]), lengths.index(trained.LONGEST)
    here = lengths.index(at) if at else len(lengths) - 1
    effect = seen["margin"] - seen["control"]
    figure = Figure(figsize=(11.7, 3.5))
    left, right = panels = figure.subplots(1, 2, width_ratios=(1, 1.3))
    left.plot(lengths, seen["distance"], color=BLUE, label="asked digit changed")
    left.plot(lengths, seen["repeated"], "--", color=GREY, label="last digit repeated")
    left.set(yscale="log", title="distance of states (L1)")
    right.plot(lengths, effect, color=GREEN, label="the asked digit adds")
    right.plot(lengths, -seen["control"], ":", color=BLACK, label="needed to turn the others")
    right.plot(lengths, seen["swapped"], "--", color=GREY, label="other place asked")
    right.set(title="effect on the answer (logits)")
    for ax in panels:
        ax.axvspan(lengths[0], trained.LONGEST, color="#EEF4FA", zorder=0)
        if at:
            ax.axvline(at, color=RED, lw=2, ls="--")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("digits in the string")
        ax.legend(loc="center left", bbox_to_anchor=(0.0, 0.62 if ax is left else 0.28), fontsize=13)
        style.ticks(ax, [2, 4, 16, 64, 256])
    kept = float(effect[here] / effect[short])
    by_itself = float(-seen["control"][short] / effect[short])
    where = f"turns at {at} digits" if at else f"does not turn up to {lengths[-1]}"
    title = f"{name}: {where}, with {kept:.0%} of the effect" + (f"; {by_itself:.0%} is enough" if at else "")
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, (
        f"{place} digit, a {digit} among others: the answer {where}, where the digit adds {effect[here]:.1f} logits, "
        f"{kept:.0%} of what it adds at {trained.LONGEST} digits."
    )


def copying_turns(table: pd.DataFrame, place: str) -> tuple[Axes, str]:
    """The lengths at which the answers of the trained decoders turn: a point a decoder and digit."""
    points = {}
    for name, rows in counters.copiers(table).items():
        able = {digit: rows[rows[f"short_{place}_{digit}"]] for digit in "01"}
        points[name] = [at for digit in "01" for at in able[digit][f"turn_{place}_{digit}"]]
    ax = _turns(points)
    kept = {name: sum(at == trained.NEVER for at in turns) for name, turns in points.items()}
    every = sum(map(len, points.values()))
    lost = every - sum(kept.values())
    ax.set_title(f"By {trained.TURNS[-1]} digits {lost} of {every} have lost the {place} one")
    return ax, (
        f"{place} digit: {lost} of {every} pairs of decoder and digit turn by {trained.TURNS[-1]} digits; "
        "never: " + ", ".join(f"{name} {count}" for name, count in kept.items() if count) + "."
    )


def copying_ends(table: pd.DataFrame, names: Sequence[str] = ("RoPE", "APE")) -> tuple[Axes, str]:
    """The lengths at which the first and the last digit turn, by encoding: a point a decoder and digit."""
    points, said = {}, []
    found = counters.first_against_last(table).set_index("encoding")
    for name in names:
        for place in PLACES:
            points[f"{name}, {place} digit"] = counters.turns(table, name)[place]
        row = found.loc[name]
        place = "first" if row["first earlier"] > row["last earlier"] else "last"
        said.append(f"{name} {place} ({int(row[f'{place} earlier'])} of {int(row.pairs)})")
    ax = _turns(points, 0.6 * len(points) + 1.8)
    ax.set_title(f"Lost earlier: {', '.join(said)}")
    return ax, f"Which digit is lost earlier, by pairs of decoder and digit: {', '.join(said)}."


def _turns(points: Mapping[str, Sequence[int]], height: float = 4.2) -> Axes:
    """A row of points for each name: the first length with a wrong answer, or "never"."""
    end = trained.TURNS[-1] * 1.6
    ax = style.axes("", "first length with a wrong answer", "", log="x", height=height)
    for row, (name, turns) in enumerate(points.items()):
        shift = [row + 0.7 * ((k + 0.5) / len(turns) - 0.5) for k in range(len(turns))]
        ax.plot([at or end for at in turns], shift, "o", color=RED if "first" in name else BLUE, alpha=0.7)
    ax.axvspan(10, trained.LONGEST, color="#EEF4FA", zorder=0)
    ax.set_yticks(range(len(points)), list(points))
    ticks = [16, 32, 64, 128, 256, 512]
    style.ticks(ax, [*ticks, end], [*map(str, ticks), "never"])
    ax.set_xlim(10, end * 1.25)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    return ax


def copiers_read(table: pd.DataFrame) -> tuple[Figure, str]:
    """How often copiers name the digit asked for, and how often a linear read-out of the state does, by length."""
    names, lengths = list(dict.fromkeys(table.encoding)), list(trained.READ)
    figure = Figure(figsize=(11.0, 4.8))
    panels = figure.subplots(1, len(PLACES), sharey=True)
    kinds = {"probe": ("s-", "read-out"), "right": ("o--", "decoder"), "shuffled": (":", "shuffled")}
    means = {}
    for place, ax in zip(PLACES, panels, strict=True):
        for name in names:
            rows = table[table.encoding == name]
            for kind, (look, label) in kinds.items():
                means[name, place, kind] = [float(rows[f"{kind}_{place}_{n}"].mean()) for n in lengths]
                colour = GREY if kind == "shuffled" else style.ENCODINGS[name]
                shown = f"{name}, {label}" if kind != "shuffled" else label if name == names[0] else "_"
                ax.plot(lengths, means[name, place, kind], look, color=colour, label=shown)
        ax.set_xscale("log", base=2)
        style.ticks(ax, lengths)
        ax.set(ylim=(0.35, 1.03), title=f"{place} digit", xlabel="digits in the string")
    panels[0].set_ylabel("share of right answers")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    cells = [(name, place) for name in names for place in PLACES]
    there = sum(means[cell[0], cell[1], "probe"][-1] >= 0.95 for cell in cells)
    title = f"{lengths[-1]} digits: the read-out names the digit in {there} of {len(cells)} cases"
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    chance = [share for (_, _, kind), shares in means.items() if kind == "shuffled" for share in shares]
    right, read = ([means[name, place, kind][-1] for name, place in cells] for kind in ("right", "probe"))
    return figure, (
        f"Random strings of {lengths[-1]} digits: decoders name {min(right):.0%} to {max(right):.0%} of the digits, linear "
        f"read-outs of their states {min(read):.0%} to {max(read):.0%}. Fitted to shuffled digits, all lengths: "
        f"{min(chance):.0%} to {max(chance):.0%}, {sum(chance) / len(chance):.0%} on average."
    )


# Lab: is the count still there? -----------------------------------------------------------------------------


def counters_read(table: pd.DataFrame, encoding: str) -> tuple[Axes, str]:
    """How often a counter is right, what a linear read-out of its state names, and what controls do, by length."""
    rows, lengths = table[table.encoding == encoding], list(trained.PROBED)
    beyond = [n for n in lengths if n > trained.LONGEST]
    lines = {
        "read-out, or the decoder": ("read", BLUE, "s-"),
        "length never seen": ("left_out", GREEN, "^-"),
        "before training": ("untrained_left_out", PURPLE, "v--"),
        "share of y alone": ("ratio", BLACK, "x--"),
        "shuffled counts": ("shuffled", GREY, ":"),
    }
    ax = style.axes("", "letters in the string", "share of right counts", log="x", height=3.2)
    ax.axvspan(min(lengths), trained.LONGEST, color="#EEF4FA", zorder=0)
    right = rows[[f"right_{n}" for n in lengths]]
    ax.plot(lengths, right.mean(), "o-", color=RED, label="the decoder")
    means = {"right": dict(zip(lengths, right.mean(), strict=True))}
    for name, (column, colour, look) in lines.items():
        values = rows[[f"{column}_{n}" for n in beyond]].to_numpy()
        if column == "read":  # the decoder's own head is a linear read-out, too
            values = values.clip(rows[[f"right_{n}" for n in beyond]].to_numpy())
        ax.plot(beyond, values.mean(0), look, color=colour, label=name)
        means[column] = dict(zip(beyond, values.mean(0), strict=True))
    style.ticks(ax, lengths)
    ax.set_ylim(-0.02, 1.04)
    style.label(ax)
    said = {name: f"{means[name][20]:.0%}" for name in ("right", "left_out", "untrained_left_out", "ratio", "shuffled")}
    ax.set_title(f"{encoding}, 20 letters: {said['right']} right, {said['left_out']} read")
    seeds = f"Means of {len(rows)} seeds" if len(rows) > 1 else "One seed"
    return ax, (
        f"{encoding}, 20 letters: the decoder names {said['right']} of the counts; a read-out of its state that saw no string "
        f"of 20 letters {said['left_out']}, before the training {said['untrained_left_out']}; one of the share of y alone "
        f"{said['ratio']}, one fitted to shuffled counts {said['shuffled']}. {seeds}."
    )


def counters_moved(table: pd.DataFrame) -> tuple[Axes, str]:
    """How often the answer rises by one when the state is moved to that of one y more, with its controls."""
    beyond = [n for n in trained.PROBED if n > trained.LONGEST]
    names = list(dict.fromkeys(table.encoding))
    kinds = {
        "head's own rows": ("own", GREY, "D"),
        "to one y more": ("along", BLUE, "o"),
        "backwards": ("against", BLACK, "_"),
        "at random": ("random", RED, "x"),
    }
    ax = style.axes("", "answers that rise by exactly one", "", height=3.8)
    means = {}
    for name, (kind, colour, mark) in kinds.items():
        for row, encoding in enumerate(names):
            rows = table[table.encoding == encoding]
            values = [float(rows[f"{kind}_{n}"].mean()) for n in beyond]
            means[encoding, kind] = sum(values) / len(values)
            ax.plot(values, [row] * len(values), mark, color=colour, ms=10, label=name if row == 0 else "_")
    inside = float(table[f"along_{trained.LONGEST}"].min())
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(-0.03, 1.05))
    ax.grid(axis="y", visible=False)
    ax.figure.legend(loc="outside lower center", ncols=4, fontsize=13)
    followed = {encoding: f"{means[encoding, 'along']:.0%}" for encoding in names}
    most, least = (choose(names, key=lambda name: means[name, "along"]) for choose in (max, min))
    ax.set_title(f"The answer follows in {followed[most]} ({most}) to {followed[least]} ({least})")
    return ax, (
        f"Mean of {', '.join(map(str, beyond))} letters: answers that rise by one when the state is moved by the difference of "
        "two neighbouring counts: "
        + ", ".join(f"{name} {share}" for name, share in followed.items())
        + "; as far in a random "
        f"direction at most {max(means[name, 'random'] for name in names):.0%}. At {trained.LONGEST} letters, within the "
        f"training, at least {inside:.0%} do."
    )


def edges(table: pd.DataFrame) -> tuple[Axes, str]:
    """How often decoders are right within the lengths of training, a quarter after the other, for each N."""
    rows = counters.chosen(table)
    ax = style.axes("", "letters n / longest string of training N", "wrong counts, per 1,000", height=4.0)
    quarters, marks = [1, 2, 3, 4], {16: "o", 32: "s", 64: "^", 128: "D"}
    wrong = {}
    for encoding in dict.fromkeys(rows.encoding):
        for longest, cells in rows[rows.encoding == encoding].groupby("longest"):
            mean = [1000 * (1 - float(cells[f"right_{q}"].mean())) for q in quarters]
            wrong[encoding, longest] = mean
            label = f"{encoding}, N = {longest}" if max(mean) > 5 else "_"
            ax.plot([q / 4 for q in quarters], mean, f"{marks[longest]}-", color=style.ENCODINGS[encoding], label=label)
    style.ticks(ax, [q / 4 for q in quarters], ["1/4", "1/2", "3/4", "1"])
    style.label(ax)
    third, last = (max(each[k] for each in wrong.values()) for k in (2, 3))
    ax.set_title(f"Up to 3/4 of N at most {style.number(third)} wrong, at N up to {style.number(last)}")
    return ax, (
        f"Wrong counts per 1,000, means of the seeds: at three quarters of N at most {style.number(third)}, at N up to "
        f"{style.number(last)}, for N = 16 to {int(rows.longest.max())}."
    )


def vocabularies(table: pd.DataFrame) -> tuple[Axes, str]:
    """How often decoders count each of several symbols right, by width and vocabulary."""
    ax = style.axes("", "width d", "share of right counts", log="x", height=3.8)
    widths = sorted(table.width.unique())
    for (symbols, rows), colour in zip(table.groupby("symbols"), (BLUE, GREEN, RED), strict=True):
        ax.plot(rows.width, rows.right, "o-", color=colour, label=f"{symbols} symbols")
        if symbols in widths:
            ax.plot(
                symbols, float(rows[rows.width == symbols].right.iloc[0]), "o", mfc="none", mew=2, ms=18, color=colour
            )
    ax.axhline(1 / inside.MOST, color=GREY, ls=":", lw=2)
    style.ticks(ax, widths)
    ax.set_ylim(-0.02, 1.04)
    style.label(ax, [line for line in ax.get_lines() if not line.get_label().startswith("_")])
    widest = {symbols: float(rows.right.iloc[-1]) for symbols, rows in table.groupby("symbols")}
    listed = ", ".join(f"{symbols} symbols {share:.0%}" for symbols, share in widest.items())
    ax.set_title(f"Width {widths[-1]}: {listed}")
    return ax, f"Right counts at width {widths[-1]}: {listed}; ringed: width = vocabulary; dotted: one number."


# Lab: within the lengths of training ----------------------------------------------------------------------------


INSIDE = {  # what is drawn against what: name: (across, up, label across, label up)
    "right, by N": ("longest", "right_4", "N, the longest string (letters)", "right at N letters"),
    "distance of neighbours, by N": (
        "longest",
        "gap",
        "N, the longest string (letters)",
        "distance of neighbours / size",
    ),
    "margin, by N": (
        "longest",
        "margin_low_4",
        "N, the longest string (letters)",
        "margin at N, 5% quantile (logits)",
    ),
    "right, by width": ("width", "right_4", "width, N = 64", "right at 64 letters"),
    "right, by distance": ("gap", "right_4", "distance of neighbours / size, N = 64", "right at 64 letters"),
    "right, by scatter": ("spread", "right_4", "scatter of a count's states / distance, N = 64", "right at 64 letters"),
}


def within_training(table: pd.DataFrame, what: str) -> tuple[Axes, str]:
    """Decoders trained on strings of up to N letters, tested at N: a point a seed, a line through the means.

    Where right answers are drawn, an open point is the same decoder in bf16.
    """
    across, up, x, y = INSIDE[what]
    rows = counters.chosen(table, across)
    lines = across in ("longest", "width")
    ax = style.axes("", x, y, log="x" if lines else "", height=4.0)
    means = {}
    for encoding in dict.fromkeys(rows.encoding):
        cells, colour = rows[rows.encoding == encoding], style.ENCODINGS[encoding]
        ax.plot(cells[across], cells[up], "o", color=colour, alpha=0.5, label="_" if lines else encoding)
        if up == "right_4":
            ax.plot(cells[across], cells.bf16_right_4, "o", mfc="none", mew=1.5, color=colour, label="_")
        means[encoding] = cells.groupby(across)[up].mean()
        if lines:
            ax.plot(means[encoding].index, means[encoding], "-", color=colour, label=encoding)
    if up == "right_4":
        floor = float(rows[["right_4", "bf16_right_4"]].min().min())
        ax.set_ylim(0.8 if floor > 0.82 else -0.02, 1.012)
    else:
        ax.set_ylim(0, 1.05 * float(rows[up].max()))
    if not lines:
        ax.legend(loc="best")
        rho, _ = significance.rank_correlation(rows[across], rows[up])
        name = "distance" if across == "gap" else "scatter"
        ax.set_title(f"Right answers against {name}: rank correlation {style.number(rho)}")
        return (
            ax,
            f"{len(rows)} decoders, N = 64, widths {_span(rows.width)}: rank correlation {style.number(rho)}.",
        )
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
    count = f"{seeds.min()} to {seeds.max()} seeds" if seeds.min() < seeds.max() else f"{seeds.min()} seeds"
    listed = ", ".join(
        f"{encoding} {style.number(first[encoding])} to {style.number(last[encoding])}" for encoding in means
    )
    return ax, f"{name}, first to last: {listed} ({count})." + (" Open points: in bf16." if up == "right_4" else "")


def _span(values: pd.Series) -> str:
    return f"{values.min()} to {values.max()}" if values.nunique() > 1 else f"{values.min()}"
