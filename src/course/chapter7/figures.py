"""Draw the figures of chapter 7, and state the finding of each figure in a sentence."""

import itertools
from pathlib import Path

import pandas as pd
import torch
from IPython.display import HTML
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.build.templates import template
from course.drawing.race_chart import LONG, NAMES, slopes  # noqa: F401  the lesson draws them
from course.runs import comparison, rates
from course.runs.entries import (
    BASELINE,
    KINDS,
    MIXED,
    MIXED_SCALED,
    NAMED,
    NOT_RUN,
    RANDOM,
    REMEDIES,
    SCALED,
    STICK,
)
from course.runs.protocol import (
    BUDGET,
    CHANCE,
    CHECKED,
    FAR,
    KEPT,
    LEARNED,
    LOOKED,
    PLATEAU,
    TASKS,
    TRAINED,
    vocabulary,
)
from helpers import data, style
from helpers.words import translated

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()
BOTH = ("retrieval", "last")  # the tasks that all entries ran, and in which we look at attention
# the baseline and one or two entries of each kind, for a figure that must be readable from far away
FEW = [
    BASELINE, RANDOM, "sliding window", "differential", "NoPE", SCALED, STICK, MIXED, MIXED_SCALED,
]  # fmt: skip


def _tasks(rows: pd.DataFrame) -> list[str]:
    return [task for task in TASKS if task in set(rows.task)]


def _run(rows: pd.DataFrame) -> list[str]:
    """Return the remedies for which the table has runs."""
    return [name for name in REMEDIES if name in set(rows.entry)]


BOARD = template(Path(__file__).parent / "board.jinja")
DOT = {"retrieval": BLUE, "last": GREEN, "recall": RED, "counting": PURPLE}


def standing(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a table of all entries with their accuracies and their training cost.

    Args:
        rows: the runs of the race.
        own: your own rows of `race.enter`, if any.

    Returns:
        One row per entry, the best ones first. It has the accuracy at the longest length for each
            task, which is missing if the entry has not learned the task or was not run. It also has
            the longest length at which retrieval and the last copy are still solved, the mean
            number of steps until retrieval is learned, and the milliseconds per step.
    """
    every = rows if own is None else pd.concat([rows, own])
    names = [*_run(rows), *([] if own is None else own.entry.unique())]
    means = {
        t: comparison.learned(every, t).groupby("entry")[f"score_{LONG}"].mean()
        for t in DOT
        if t in set(every.task)
    }
    here = every[(every.task == "retrieval") & (every.learned == 1)].groupby("entry")
    table = pd.DataFrame(means).reindex(names).rename(columns=NAMES)
    table["retrieval kept to"] = [
        comparison.reach(every, name, "retrieval") or float("nan") for name in names
    ]
    table["last copy kept to"] = [
        comparison.reach(every, name, "last") or float("nan") for name in names
    ]
    table["steps"], table["ms a step"] = here.steps.mean(), every.groupby("entry").step_ms.median()
    kept = (table["retrieval kept to"] >= LONG).astype(int) + (table["last copy kept to"] >= LONG)
    return (
        table.assign(kept=kept)
        .sort_values(["kept", "retrieval"], ascending=False)
        .drop(columns="kept")
        .rename_axis("entry")
    )


def board(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> HTML:
    """Draw the results of all entries as a table that readers sort by clicking a heading.

    Accuracies are dots on one scale from 0 to 1. The numbers are those of `standing`.
    """
    table = standing(rows, own)
    tasks = {NAMES[task]: colour for task, colour in DOT.items() if NAMES[task] in table}
    body, far = [], data.table("race_far").groupby(["task", "entry"]).groups
    for name, row in table.iterrows():
        untested = {
            f"{NAMES[t]} kept to"
            for t in BOTH
            if row[f"{NAMES[t]} kept to"] == LONG and (t, name) not in far
        }
        dots = [
            (f"{8 + 74 * row[t]:.0f}", c, f"{translated(t)} {row[t]:.2f}")
            for t, c in tasks.items()
            if row[t] == row[t]
        ]
        cells = []
        for key, value in row.items():
            whole = f"{'≥ ' * (key in untested)}{value:,.0f}"
            none = value != value
            cells.append((-1, "–") if none else (value, f"{value:.2f}" if key in tasks else whole))
        body.append((translated(name), f"{row[list(tasks)].mean():.3f}", dots, cells))
    heads = map(translated, ("entry", f"right at {LONG}", *table))
    return HTML(
        BOARD.render(
            heads=heads, rows=body, name=translated("Every entry"), sort=translated("Sort by this")
        )
    )


def both_kept(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> tuple[Figure, str]:
    """Draw accuracy at copying the last token as a function of accuracy at retrieval.

    Entries that are good at both tasks are named.

    Args:
        own: your own rows of `race.enter`. An entry that has learned both tasks is named and drawn
            with the others.
    """
    means = {
        task: comparison.learned(rows, task).groupby("entry")[f"score_{LONG}"].mean()
        for task in BOTH
    }
    points = pd.DataFrame(means).reindex(_run(rows)).dropna()
    both = comparison.all_kept(rows, BOTH)
    corner = points.loc[both].sort_values(list(BOTH))
    if own is not None:
        yours = (
            own[own.learned == 1]
            .pivot_table(f"score_{LONG}", "entry", "task")
            .reindex(columns=BOTH)
            .dropna()
        )
        corner = pd.concat([corner, yours])
    ax = style.axes(
        "", f"retrieval, accuracy at {LONG}", f"last copy, accuracy at {LONG}", height=4.8
    )
    ax.fill_between([KEPT, 1.02], KEPT, 1.02, color="#DCEBE2", lw=0)
    ax.plot(points[BOTH[0]], points[BOTH[1]], "o", ms=9, color=GREY)
    ax.plot(*points.loc[BASELINE], "o", ms=13, color=style.NAMED[BASELINE])
    for name, at in {
        BASELINE: (52, 8),
        "NoPE": (-14, -8),
        "sliding window": (0, -26),
        RANDOM: (-16, -8),
    }.items():
        tone = style.NAMED.get(name, GREY)
        side = "left" if at[0] > 0 else "right" if at[0] else "center"
        ax.annotate(
            name, points.loc[name], at, textcoords="offset points", size=15, color=tone, ha=side
        )
    for k, (name, x, y) in enumerate(corner.itertuples()):
        tone = style.NAMED.get(name, GREEN if name in both else PURPLE)
        ax.plot(x, y, "o", ms=13, color=tone)
        arrow = {"arrowstyle": "-", "color": tone, "shrinkB": 7, "relpos": (1, 0.5)}
        ax.annotate(
            name,
            (x, y),
            (KEPT - 0.02, 1.07 + 0.055 * k),
            va="center",
            ha="right",
            size=15,
            color=tone,
            weight="bold",
            arrowprops=arrow,
        )
    ax.set(xlim=(0.35, 1.02), ylim=(0.55, 1.09 + 0.055 * len(corner)))
    style.ticks(ax, [0.6, 0.7, 0.8, 0.9, 1], ["0.6", "0.7", "0.8", "0.9", "1"], x=False)
    said = "; ".join(f"{name} ({x:.2f}, {y:.2f})" for name, x, y in corner[::-1].itertuples())
    rope = ", ".join(f"{share:.2f}" for share in points.loc[BASELINE])
    return (
        ax.figure,
        (
            f"At {LONG}, retrieval and last copy: {BASELINE} ({rope}). "
            f"At least {KEPT} right on both, by attention on the answer: {said}."
        ),
    )


def tasks_kept(rows: pd.DataFrame) -> tuple[Figure, str]:
    """Draw which entry solves which task, as accuracy at the longest length.

    The entries are those in `FEW`. Successes and open cases are marked.
    """
    able, won = comparison.able(rows), comparison.successes(rows).set_index(["entry", "task"])
    tasks, means = (
        _tasks(rows),
        rows[rows.learned == 1].groupby(["entry", "task"])[f"score_{LONG}"].mean(),
    )
    shown = [task for task in LOOKED if task in tasks]
    here = [name for name in _run(rows) if name in FEW]
    order = sorted(
        here,
        key=lambda name: -sum(means.get((name, t), 0) * able.get((t, name), False) for t in shown),
    )
    figure = Figure(figsize=(11.5, 4.65))  # this size fits a slide
    ax = figure.subplots()
    for (y, name), (x, task) in itertools.product(enumerate(order), enumerate(tasks)):
        learned, run = able.get((task, name), False), (name, task) in won.index
        value = means.get((name, task), 0.0)
        shade = 0.95 - 0.6 * max(0.0, value - CHANCE[task]) / (1 - CHANCE[task])
        ax.add_patch(
            Rectangle(
                (x - 0.5, y - 0.5), 1, 1, fc=(shade, shade, 1.0) if learned else "white", ec="white"
            )
        )
        mark = ""
        if run:
            cell = won.loc[name, task]
            mark = " ✓" if cell.success else " (✓)" if cell.kept and task not in LOOKED else ""
            mark += "+" if cell.opens else ""
        words = f"{value:.2f}{mark}" if learned else "not learned" if run else "–"
        ax.text(
            x,
            y,
            words,
            ha="center",
            va="center",
            size=16 if learned else 14,
            weight="bold" if mark else "normal",
            color=BLACK if learned else GREY,
        )
    ax.set(xlim=(-0.5, len(tasks) - 0.5), ylim=(len(order) - 0.5, -0.5))
    ax.set_xticks(range(len(tasks)), [NAMES[task] for task in tasks], size=16)
    ax.set_yticks(range(len(order)), order, size=14)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    both, every = (comparison.all_kept(rows, names) for names in (BOTH, shown))
    title = (
        f"{_number_of(both, 'design')} stayed right at {' and '.join(NAMES[task] for task in BOTH)}"
    )
    if len(shown) > len(BOTH):
        title += f", {_number_of(every, '').strip().lower()} at recall, too"
    figure.suptitle(title, size=18, weight="bold", x=0.01, ha="left")
    one = {
        task: [name for name in REMEDIES if (name, task) in won.index and won.success[name, task]]
        for task in shown
    }
    more = [f"{NAMES[task]}: {_kept(won, task)}" for task in tasks if task not in LOOKED]
    kept = f" Attention not looked at, {', '.join(more)}." if more else ""
    return figure, (
f"Right by attention on the answer at {LONG} tokens (✓; "
"+ also better than without the ingredient): "
) + ", ".join(
        f"{NAMES[task]}: {'; '.join(names) or 'none'}" for task, names in one.items()
    ) + "." + kept + " The darker a cell is, the more is right; – was not run."  # fmt: skip


def _number_of(names: list[str], what: str) -> str:
    """Write in words how many names there are, with a capital letter."""
    words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]
    count = words[len(names)] if len(names) < len(words) else str(len(names))
    return f"{count} {what}{'s' * (len(names) != 1 and bool(what))}"


def _kept(won: pd.DataFrame, task: str) -> str:
    """Return the names of the entries that solve a task which the baseline does not solve.

    If the baseline solves the task, the result says that no remedy is needed.
    """
    if won.right[BASELINE, task] >= KEPT:
        return f"no remedy is needed ({BASELINE} {won.right[BASELINE, task]:.2f})"
    names = [name for name in REMEDIES if (name, task) in won.index]
    return "; ".join(name for name in names if won.kept[name, task]) or "none"


# Can C-RASP express the task without positions? This is our interpretation of Huang et al. (2025).
EXPECTED = {
    "retrieval": (True, "is there a pair of this key with this value: a count above 0"),
    "last": (False, "the token before the question: a neighbour"),
    "recall": (False, "the token after a key: a neighbour"),
    "first": (True, "the digit at which one digit was counted"),
    "counting": (True, "a count, compared with 0 to 16"),
}
LOST = {
    "counting": ("4", "how many", "**counting**: the letters y"),
    "last": ("5", "a position near the end", "**last copy**: the last digit"),
    "retrieval": ("6", "one among many", "**retrieval**: the value of a key"),
    "recall": ("5, 6", "both at once", "**recall**: key and value are two tokens"),
    "first": (
        "(2)",
        "nothing: a control",
        "**first copy**: the first digit, which each later token sees",
    ),
}


def tasks_asked(rows: pd.DataFrame) -> str:
    """Write a table of the five tasks, with an example and what is lost in each task.

    The table also says what theory expects of NoPE, next to the measured result of NoPE.
    """
    right = rows[rows.entry == "NoPE"].groupby("task")[f"score_{LONG}"].mean()
    heads = (
        "chapters",
        "what is lost",
        "the task",
        "one row, and its answer",
        "should NoPE generalise?",
        f"NoPE at {LONG}",
    )
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for task, told in LOST.items():
        ids, targets = TASKS[task](8, 1)(torch.Generator().manual_seed(1))
        words = vocabulary(task)
        row, named = (
            " ".join(words[k] for k in part.tolist() if k)
            for part in (ids[0], targets[0][targets[0] >= 0])
        )
        yes, why = EXPECTED[task]
        lines.append(
            f"| {' | '.join(told)} | `{row}`: `{named}` | {'yes' if yes else 'no'}: "
            f"{why} | {right[task]:.2f} |"
        )
    return "\n".join(lines)


def entrants(rows: pd.DataFrame) -> str:
    """Write a table of the entries, grouped by what they change.

    Entries that were not run come last, with the reason.
    """
    there, lines = set(rows.entry), ["| what changes | entries |", "|---|---|"]
    for kind, names in KINDS.items():
        lines.append(f"| {kind} | {'; '.join(name for name in names if name in there)} |")
    absent = [f"{name} ({reason})" for name, reason in NOT_RUN.items() if name not in there]
    return "\n".join(lines) + (
        f"\n\nWithout a row in the table: {'; '.join(absent)}." if absent else ""
    )


def speed(cells: pd.DataFrame) -> tuple[Figure, str]:
    """Draw the mean number of steps until an entry learns, at each learning rate.

    There is one line of dots for each entry and task with two or more rates. Lines whose runs all
    meet the criterion at the first check are left out, because they show no difference.
    """
    price = cells.price[cells.runs >= rates.ENOUGH_SEEDS].unstack()
    price = price[price.notna().sum(axis=1) >= rates.ENOUGH_RATES]
    price = price[(price > CHECKED).any(axis=1)]
    price = price.sort_index(
        key=lambda names: names.map(list(NAMES).index) if set(names) <= set(NAMES) else names
    )
    shown = price.set_axis([f"{NAMES[task]}: {name}" for task, name in price.index])
    shown.columns = [f"rate {rate}" for rate in shown]
    tasks = [task for task, _ in price.index]
    first = [k for k, task in enumerate(tasks) if task not in tasks[:k]]  # rows that name the task
    names = [
        label if k in first else name
        for k, (label, (_, name)) in enumerate(zip(shown.index, price.index, strict=True))
    ]
    ax = style.dots(
        shown.set_axis(names),
        "steps to the criterion (all steps if not learned)",
        log="x",
        height=min(1.4 + 0.35 * len(shown), 4.9),  # this height fits a slide
    )
    for row in first[1:]:
        ax.axhline(row - 0.5, color=BLACK, lw=0.8)
    ax.legend(loc="upper right")
    least, most = float(price.min().min()), float(price.max().max())
    style.ticks(ax, [steps for steps in (100, 200, 500, 1000, 2000) if least <= steps <= most])
    said = "; ".join(
        f"{name} "
        + ", ".join(
            f"{row[rate]:,.0f} at {rate.removeprefix('rate ')}"
            for rate in shown
            if row[rate] == row[rate]
        )
        for name, row in shown.iterrows()
    )
    return ax, f"Mean steps until {LEARNED} are right at {TRAINED}, by learning rate: {said}."


def stops(cells: pd.DataFrame) -> pd.DataFrame:
    """Return how many steps entries took to learn at their best rate, and their accuracies.

    The accuracies are those at the step at which they learned, and at the end of training.

    Only entries and tasks with a best rate are included. The last two columns have the accuracy at
    the end at the other rates, which shows whether a conclusion depends on the rate.
    """
    order = {task: place for place, task in enumerate(NAMES)}
    best, far = rates.best(cells), FAR[-1]
    best = best.sort_index(
        key=lambda names: names.map(order) if set(names) <= set(order) else names
    )
    table = pd.DataFrame({
        "best rate": best.rate.map("{:g}".format),
        "learned": [f"{row.learned:.0f} of {row.runs:.0f}" for row in best.itertuples()],
        "steps": best.steps,
        f"{LONG}: criterion": best[f"first_{LONG}"],
        f"{LONG}: end": best[f"score_{LONG}"],
        f"{far:,}: end": best[f"score_{far}"],
    })  # fmt: skip
    for n in (LONG, far):
        others = []
        for task, entry in best.index:
            ends = cells[f"score_{n}"].loc[(task, entry)].drop(best.rate[task, entry])
            others.append(
                "; ".join(
                    f"{value:.2f} at {rate}" for rate, value in ends.items() if value == value
                )
            )
        table[f"{n:,}: end, other rates"] = others
    table.index = [f"{NAMES[task]}: {entry}" for task, entry in table.index]
    return table.rename_axis("task: entry")


def lengths_learned(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many steps training on more pairs at once takes, at the better learning rate.

    Returns:
        One row per entry. It has the accuracy at the longest length after training on 16 pairs. For
            each trained length it has "steps (learned)", the number of steps and of runs that
            learned, with the rate if this is not the rate of the table.
    """
    price = rates.price()
    here = (
        rows[(rows.task == "retrieval") & (rows.learned == 1)]
        .groupby("entry")[f"score_{LONG}"]
        .mean()
    )
    table = pd.DataFrame(
        {f"trained on {TRAINED}: right at {LONG}": here.reindex(price.index.unique("entry"))}
    )
    for n in sorted(price.index.unique("trained")):
        cells = price.xs(n, level="trained")
        told = {
            name: (f"{row.steps:,.0f} " if row.steps == row.steps else "")
            + f"({row.learned})"
            + f" at {row['used']}" * (row["used"] != BUDGET["rate"])
            for name, row in cells.iterrows()
        }
        table[f"steps to learn {n}"] = pd.Series(told)
    return table.rename_axis("entry")


def prices(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the training cost and the accuracy of the designs that the text compares.

    Returns:
        One row per design, with four columns: the mean number of steps until it learns retrieval at
            the rate of the table, the number of steps until it learns the largest number of pairs
            that was run (at the better rate), and the accuracy at the longest length in retrieval
            and in counting.
    """
    here = rows[(rows.task == "retrieval") & (rows.learned == 1)].groupby("entry")
    names = [name for name in NAMED if name in here.groups]
    count = rows[rows.task == "counting"].groupby("entry")[f"score_{LONG}"].mean()
    price = rates.price().xs(LONG, level="trained")
    long = {
        name: f"{row.steps:,.0f} at {row['used']}"
        if row.steps == row.steps
        else f"not learned at {row['used']}"
        for name, row in price.iterrows()
    }
    table = pd.DataFrame({
        f"steps to learn {TRAINED} pairs": here.steps.mean(),
        f"steps to learn {LONG} pairs, at rate": pd.Series(long),
        f"retrieval, right at {LONG}": here[f"score_{LONG}"].mean(),
        f"counting, right at {LONG}": count,
    })  # fmt: skip
    return (
        table.reindex(names)
        .rename(index=translated, columns=translated)
        .rename_axis(translated("entry"))
    )


def late_pairs(name: str = MIXED) -> str:
    """Write at which rates a design learned the longest sequences, and how many steps RoPE took."""
    told = []
    cell = rates.price().loc[(name, LONG)]
    for rate in (0.005, 0.002):
        steps = cell.get(f"steps at {rate}")
        if f"learned at {rate}" in cell:
            more = (
                f", in {steps:,.0f} steps on average"
                if steps == steps
                else f" in {PLATEAU:,} steps"
            )
            told.append(f"in {cell[f'learned at {rate}']} runs at a learning rate of {rate}{more}")
    rope = rates.price().loc[(BASELINE, LONG)]
    return (
        f"Trained on {LONG} pairs at once, {_plain(name)} learned them {', and '.join(told)}. "
        f"RoPE took {rope.steps:,.0f} steps at {rope.used}."
    )


def _plain(name: str) -> str:
    """Return the name of an entry without commas, for use in a list."""
    return (
        name.replace("RoPE, global", "RoPE / global")
        .replace("below, NoPE", "below / NoPE")
        .replace(", ", " + ")
    )


def closing_answer(rows: pd.DataFrame) -> str:
    """Write the answer to the course's question in words.

    The text says which designs stay right, what training they need, and where they fail.
    """
    every, steps = comparison.all_kept(rows, BOTH), prices(rows).iloc[:, 0]
    won = comparison.successes(rows).set_index(["entry", "task"])
    far = (
        data.table("race_far")
        .query("task == 'retrieval' and learned == 1")
        .groupby("entry")[f"score_{FAR[-1]}"]
    )
    stopped, late = far.mean(), comparison.plateaus().loc["retrieval"][f"score_{FAR[-1]}"].dropna()

    def named(name: str) -> str:
        kept = [f"{of[name]:.2f}" if name in of else "–" for of in (stopped, late)]
        return f"**{translated(_plain(name))}**" + (
            f" ({', '.join(kept)})" if name in stopped else ""
        )

    said = translated(
        
f"Trained on up to {TRAINED} tokens and tested at {LONG}, these designs reach an accuracy of "
f"{KEPT} in retrieval and in copying the last digit, with their attention on the answer: "

    ) + ("; ".join(map(named, every)) or "**none**") + "."  # fmt: skip
    if set(every) & set(stopped.index):
        said += translated(
            f" The first number in brackets is the accuracy in retrieval at {FAR[-1]:,} tokens "
            f"when training stopped at the criterion (mean of {far.count().min()} runs), and the "
            f"second is the accuracy after {PLATEAU:,} steps, both at a learning rate of "
            f"{BUDGET['rate']}."
        )
    if taken := [steps[translated(name)] for name in every if translated(name) in steps]:
        said += translated(
            f" These designs took {min(taken):.0f} to {max(taken):.0f} steps to learn retrieval, "
            f"while NoPE took {steps['NoPE']:.0f}."
        )
        said += " " + translated(late_pairs())
    if (count := _kept(won, "counting")) == "none":
        return said + translated(
            f" Averaged over its runs, **no remedy** keeps the count at {LONG}."
        )
    return said + translated(f" The count at {LONG} is kept by:") + f" **{count}**."
