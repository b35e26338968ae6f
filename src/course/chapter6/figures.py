"""What chapter 6 draws: functions that return a figure and the sentence that states its finding."""

import html
import itertools

import pandas as pd
import torch
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.chapter6 import measures
from course.experiments import comparison
from course.experiments.entries import BASELINE, MIXED, MIXED_SCALED, NAMED, RANDOM, REMEDIES, SCALED, STICK
from course.experiments.protocol import BUDGET, CHANCE, FAR, KEPT, LENGTHS, LOOKED, TASKS, TRAINED
from helpers import data, style
from helpers.words import translated

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Lesson ------------------------------------------------------------------------------------------------


def noise_left() -> tuple[Axes, str]:
    """What is left of the noise against the cosine of two equally large patterns: closed form, and simulated rows."""
    cosine = torch.linspace(0, 1, 101, dtype=torch.float64)
    ax = style.axes("", "cosine of the two noise patterns", "noise left", height=3.8)
    for lam, colour in ((0.2, GREEN), (0.5, PURPLE), (0.8, RED)):
        ax.plot(cosine, measures.noise_left(cosine, lam), color=colour, label=f"λ = {lam}")
    ax.plot(cosine, (1 - cosine.square()).sqrt(), color=BLUE, ls="--", label="best λ")
    ax.axhline(1, color=BLACK, lw=1)
    for correlation in (0.0, 0.5, 0.9, 1.0):
        for lam, colour in ((0.8, RED), (None, BLUE)):
            found = measures.simulated_left(correlation, 1.0, lam)
            ax.plot(found.cosine, found.left, "o", mfc="none", mew=2, color=colour)
    ax.set(xlim=(0, 1), ylim=(0, 1.4))
    ax.legend(loc="lower left")
    ax.set_title(f"Equally large noises: λ = 0.8 needs a cosine above {0.8 / 2:.2f}")
    independent, near = (float(measures.noise_left(c, 0.8)) for c in (0.0, 0.9))
    return ax, (
        f"b equally large as a: with λ = 0.8 unrelated noise grows to {independent:.2f} of its size, a cosine of 0.9 leaves "
        f"{near:.2f}. Circles: simulated rows of 4,096 keys."
    )


def panel(content: str, n: int, kind: str) -> tuple[Figure, str]:
    """Six maps from the same logits to weights, on the same axes: those of a kind of `measures.MAPS`."""
    logits, places = measures.panel_logits(content, n)
    figure = Figure(figsize=(11.5, 3.5))
    axes = figure.subplots(2, 3, sharex=True, sharey=True).flatten()
    answers, totals, largest = {}, {}, {}
    for ax, (name, call) in zip(axes, measures.MAPS[kind].items(), strict=True):
        weights = call(logits)
        answers[name] = float(weights[places].sum()) if places else 0.0
        totals[name] = float(weights.sum())
        largest[name] = float(weights.max())
        colours = [BLACK if i in places else RED if w < 0 else BLUE for i, w in enumerate(weights.tolist())]
        ax.vlines(range(n), 0, weights, color=colours, lw=max(1.8, 90 / n))
        for i in places:
            ax.plot(i, weights[i], "o", color=BLACK, ms=7)
        ax.axhline(0, color=BLACK, lw=0.8)
        ax.set_title(name, size=16)
        words = [f"answer {answers[name]:.2f}"] * bool(places) + [f"sum {totals[name]:.2f}"]
        frame = {"fc": "white", "ec": "none", "pad": 1, "alpha": 0.85}
        ax.text(0.97, 0.93, "\n".join(words), transform=ax.transAxes, ha="right", va="top", size=15, bbox=frame)
        ax.set_ylim(-0.25, 1.05)
        ax.tick_params(labelsize=14)
    if places:
        most, least = (pick(answers, key=answers.get) for pick in (max, min))
        title = f"{content.capitalize()}, {n} keys: {answers[least]:.2f} to {answers[most]:.2f} of the weight"
        finding = "The answer gets " if len(places) == 1 else "Both answers together get "
        finding += ", ".join(f"{value:.2f} ({name})" for name, value in answers.items()) + "."
    elif min(totals.values()) > 0.999:
        title = f"{content.capitalize()}, {n} keys: all six hand out all of their 1"
        finding = "The largest weight: " + ", ".join(f"{value:.2f} ({name})" for name, value in largest.items()) + "."
    else:
        silent = [name for name, value in totals.items() if value < 0.1]
        title = f"{content.capitalize()}, {n} keys: {len(silent)} of 6 say{'s' * (len(silent) == 1)} nothing"
        finding = f"Weights that sum to less than 0.1: {', '.join(silent)}."
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, finding


# The race ----------------------------------------------------------------------------------------------

NAMES = {
    "retrieval": "retrieval",
    "last": "last copy",
    "recall": "recall",
    "first": "first copy",
    "counting": "counting",
}
LONG = LENGTHS[-1]
BOTH = ("retrieval", "last")  # the tasks that all entries ran and where attention is looked at
FEW = [  # for a picture that is read from far away: the baseline, and of each kind of remedy one or two
    BASELINE, RANDOM, "sliding window", "differential", "NoPE", SCALED, STICK, MIXED, MIXED_SCALED,
]  # fmt: skip


def _tasks(rows: pd.DataFrame) -> list[str]:
    return [task for task in TASKS if task in set(rows.task)]


def _run(rows: pd.DataFrame) -> list[str]:
    """The remedies that the table has."""
    return [name for name in REMEDIES if name in set(rows.entry)]


# The seventh act ---------------------------------------------------------------------------------------

SLOPES = """<style>
.slopes { width: 100%; height: auto; font-size: 21px; fill: currentColor; background: var(--pst-color-background, none); }
.slopes path { fill: none; stroke: #999; stroke-width: 1.5; }
.slopes .hit { stroke: transparent; stroke-width: 13; }
.slopes .named path:not(.hit) { stroke: var(--tone); stroke-width: 3; }
.slopes .bold path:not(.hit) { stroke-width: 6; }
.slopes text { paint-order: stroke; stroke: var(--pst-color-background, #fff); stroke-width: 5px; }
.slopes .end { font-size: 18px; fill: color-mix(in srgb, var(--tone) 70%, currentColor); }
.slopes .said { visibility: hidden; font-weight: bold; }
.slopes .thread:hover path:not(.hit) { stroke: #c2500a; stroke-width: 6; }
.slopes .thread:hover .said { visibility: visible; }
.slopes .grid { stroke: #999; stroke-width: .7; }
</style>"""


def slopes(rows: pd.DataFrame, task: str, own: pd.DataFrame | None = None) -> tuple[HTML, str]:
    """Share right against length, a thread an entry that learned: RoPE bold, three named, all by name under the finger.

    Args:
        own: rows of `race.enter`, named and drawn with the others.

    Returns:
        vector graphics, and the sentence that says what is seen.
    """
    every = rows if own is None else pd.concat([rows, own])
    mine = [] if own is None else list(own.entry.unique())
    scores = [f"score_{n}" for n in LENGTHS]
    means = comparison.learned(every, task).groupby("entry", sort=False)[scores].mean()
    order = means.iloc[:, -1].sort_values(ascending=False, kind="stable")
    if not len(order):
        return HTML("<p>No entry has learned it.</p>"), f"{NAMES[task]}: no entry has learned it."
    top = order[order > order.iloc[0] - 0.005].index
    named = {order.index[-1]: GREY, top[0]: RED, "NoPE": "currentColor", MIXED: GREEN, STICK: PURPLE}
    named |= dict.fromkeys(mine, PURPLE) | {BASELINE: BLUE}
    named = {name: colour for name, colour in named.items() if name in means.index}
    x, y = dict(zip(LENGTHS, (60, 252, 444, 636), strict=True)), lambda share: 410 - 350 * share
    more = {top[0]: f" and {len(top) - 1} more" if len(top) > 1 else ""}
    ends = [(order[name], f"{name}{more.get(name, '')} {order[name]:.2f}", named[name]) for name in named]
    ends = sorted([*ends, (CHANCE[task], "guessing", GREY)], reverse=True)
    labels, place = [], 0.0
    for value, words, tone in ends:  # names keep their distance
        place = max(y(value) + 7, place + 27)
        labels.append(f'<text class="end" x="662" y="{place:.0f}" style="--tone: {tone}">{html.escape(words)}</text>')
    parts = [f'<path class="grid" d="M60 {y(v):.0f}H636"/><text x="50" y="{y(v) + 7:.0f}" text-anchor="end">{v:g}</text>' for v in (0, 0.5, 1)]  # fmt: skip
    parts += [f'<text x="{at}" y="442" text-anchor="middle">{n}</text>' for n, at in x.items()]
    parts += [f'<path class="grid" stroke-dasharray="6 6" d="M60 {y(CHANCE[task]):.0f}H636"/>', *labels]
    for name in sorted(means.index, key=lambda name: name in named):
        line = "M" + "L".join(f"{x[n]} {y(v):.1f}" for n, v in zip(LENGTHS, means.loc[name], strict=True))
        said = f"{html.escape(name)}: {', '.join(f'{v:.2f}' for v in means.loc[name])}"
        tone = f' style="--tone: {named[name]}"' if name in named else ""
        kind = f"thread{' named' if tone else ''}{' bold' if name == BASELINE else ''}"
        parts.append(f'<g class="{kind}"{tone}><title>{said}</title><path d="{line}"/><path class="hit" d="{line}"/><text class="said" x="60" y="26">{said}</text></g>')  # fmt: skip
    missing = every[every.task == task].entry.nunique() - len(means)
    finding = (
        f"{NAMES[task].capitalize()}, share right at {', '.join(map(str, LENGTHS))}, mean of the runs that learned: "
        + "; ".join(f"{name} {order[name]:.2f} at {LONG}" for name in sorted(named, key=lambda name: -order[name]))
        + f". {len(means)} entries; not learned, or a control: {missing}."
    )
    picture = f'<svg class="slopes" viewBox="0 0 1000 452" role="img" aria-label="{html.escape(finding)}">{"".join(parts)}</svg>'
    said = f"Share right by length. Each thread is one entry, named under the finger; dashed: guessing. Entries not learned, or controls: {missing}."
    return HTML(f'<figure class="still">{SLOPES}{picture}<figcaption>{said}</figcaption></figure>'), finding


SORT = """<style>.board { font-size: .78rem; } .board th, .board td { padding: .2rem .3rem !important; }</style>
<script>document.querySelectorAll('table.board th').forEach((head, k) => head.onclick = () => {
  const body = head.closest('table').tBodies[0], at = head.cellIndex, up = head.dataset.up !== '1';
  const key = row => row.cells[at].dataset.value ?? row.cells[at].textContent, sign = up ? 1 : -1;
  const less = (a, b) => sign * (isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b));
  head.dataset.up = up ? '1' : ''; [...body.rows].sort(less).forEach(row => body.append(row)); });</script>"""
DOT = {"retrieval": BLUE, "last": GREEN, "recall": RED, "counting": PURPLE}


def standing(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> pd.DataFrame:
    """One row an entry: share right at the longest length by task (none where not learned or not run), reach and price."""
    every = rows if own is None else pd.concat([rows, own])
    names = [*_run(rows), *([] if own is None else own.entry.unique())]
    means = {
        t: comparison.learned(every, t).groupby("entry")[f"score_{LONG}"].mean() for t in DOT if t in set(every.task)
    }
    here = every[(every.task == "retrieval") & (every.learned == 1)].groupby("entry")
    table = pd.DataFrame(means).reindex(names).rename(columns=NAMES)
    table["retrieval kept to"] = [comparison.reach(every, name, "retrieval") or float("nan") for name in names]
    table["last copy kept to"] = [comparison.reach(every, name, "last") or float("nan") for name in names]
    table["steps"], table["ms a step"] = here.steps.mean(), every.groupby("entry").step_ms.median()
    kept = (table["retrieval kept to"] >= LONG).astype(int) + (table["last copy kept to"] >= LONG)
    return table.assign(kept=kept).sort_values(["kept", "retrieval"], ascending=False).drop(columns="kept").rename_axis("entry")  # fmt: skip


def board(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> HTML:
    """`standing` as a table that is sorted by a click on a head, with the shares as dots on one scale from 0 to 1."""
    table = standing(rows, own)
    tasks = {NAMES[task]: colour for task, colour in DOT.items() if NAMES[task] in table}
    heads = "".join(f'<th scope="col" style="cursor: pointer" title="Sort by this">{head}</th>' for head in ("entry", f"right at {LONG}", *table))  # fmt: skip
    body, far = [], data.table("race_far").groupby(["task", "entry"]).groups
    for name, row in table.iterrows():
        untested = {f"{NAMES[t]} kept to" for t in BOTH if row[f"{NAMES[t]} kept to"] == LONG and (t, name) not in far}
        dots = "".join(f'<circle cx="{8 + 74 * row[t]:.0f}" cy="9" r="5" fill="{c}"><title>{t} {row[t]:.2f}</title></circle>' for t, c in tasks.items() if row[t] == row[t])  # fmt: skip
        strip = f'<td data-value="{row[list(tasks)].mean():.3f}"><svg width="90" height="18" aria-hidden="true"><path d="M8 9H82" stroke="#bbb"/>{dots}</svg></td>'
        cells = "".join(f'<td data-value="{-1 if v != v else v}">{"–" if v != v else f"{v:.2f}" if k in tasks else "≥ " * (k in untested) + f"{v:,.0f}"}</td>' for k, v in row.items())  # fmt: skip
        body.append(f'<tr><th scope="row">{html.escape(name)}</th>{strip}{cells}</tr>')
    return HTML(
        f'<div style="overflow-x: auto" tabindex="0" role="region" aria-label="Every entry"><table class="table board"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div>{SORT}'
    )


def tasks_kept(rows: pd.DataFrame) -> tuple[Figure, str]:
    """What keeps which task: share right of `FEW` at the longest length, successes and openings marked."""
    able, won = comparison.able(rows), comparison.successes(rows).set_index(["entry", "task"])
    tasks, means = _tasks(rows), rows[rows.learned == 1].groupby(["entry", "task"])[f"score_{LONG}"].mean()
    shown = [task for task in LOOKED if task in tasks]
    here = [name for name in _run(rows) if name in FEW]
    order = sorted(here, key=lambda name: -sum(means.get((name, t), 0) * able.get((t, name), False) for t in shown))
    figure = Figure(figsize=(11.5, 4.65))  # of a slide
    ax = figure.subplots()
    for (y, name), (x, task) in itertools.product(enumerate(order), enumerate(tasks)):
        learned, run = able.get((task, name), False), (name, task) in won.index
        value = means.get((name, task), 0.0)
        shade = 0.95 - 0.6 * max(0.0, value - CHANCE[task]) / (1 - CHANCE[task])
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc=(shade, shade, 1.0) if learned else "white", ec="white"))
        mark = ""
        if run:
            cell = won.loc[name, task]
            mark = " ✓" if cell.success else " (✓)" if cell.kept and task not in LOOKED else ""
            mark += "+" if cell.opens else ""
        words = f"{value:.2f}{mark}" if learned else "not learned" if run else "–"
        ax.text(x, y, words, ha="center", va="center", size=16 if learned else 13, weight="bold" if mark else "normal", color=BLACK if learned else GREY)  # fmt: skip
    ax.set(xlim=(-0.5, len(tasks) - 0.5), ylim=(len(order) - 0.5, -0.5))
    ax.set_xticks(range(len(tasks)), [NAMES[task] for task in tasks], size=16)
    ax.set_yticks(range(len(order)), order, size=14)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    both, every = (comparison.all_kept(rows, names) for names in (BOTH, shown))
    title = f"{_number_of(both, 'design')} stayed right at {' and '.join(NAMES[task] for task in BOTH)}"
    if len(shown) > len(BOTH):
        title += f", {_number_of(every, '').strip().lower()} at recall, too"
    figure.suptitle(title, size=18, weight="bold", x=0.01, ha="left")
    one = {task: [name for name in REMEDIES if (name, task) in won.index and won.success[name, task]] for task in shown}
    more = [f"{NAMES[task]}: {_kept(won, task)}" for task in tasks if task not in LOOKED]
    kept = f" Attention not looked at, {', '.join(more)}." if more else ""
    return figure, f"Right by attention on the answer at {LONG} tokens (✓; + also better than without the ingredient): " + ", ".join(
        f"{NAMES[task]}: {'; '.join(names) or 'none'}" for task, names in one.items()
    ) + "." + kept + " The darker, the more is right; – was not run."  # fmt: skip


def _number_of(names: list[str], what: str) -> str:
    """How many there are in words, as a sentence begins."""
    words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]
    count = words[len(names)] if len(names) < len(words) else str(len(names))
    return f"{count} {what}{'s' * (len(names) != 1 and bool(what))}"


def _kept(won: pd.DataFrame, task: str) -> str:
    """Who keeps a task that the baseline loses; where the baseline keeps it, there is nothing to open."""
    if won.right[BASELINE, task] >= KEPT:
        return f"no remedy is needed ({BASELINE} {won.right[BASELINE, task]:.2f})"
    names = [name for name in REMEDIES if (name, task) in won.index]
    return "; ".join(name for name in names if won.kept[name, task]) or "none"


def prices(rows: pd.DataFrame) -> pd.DataFrame:
    """The designs that sentences name, and what they are made of: price, reach and failure.

    Returns:
        by entry: mean steps to the criterion at retrieval; right at the longest length there with its 95% interval over
        seeds, and after the fixed budget
        of `data/race_fixed.csv` where it has the entry; the longest length kept; counting right at the longest length.
    """
    fixed = data.table("race_fixed").groupby("entry")[f"score_{LONG}"].mean()
    here = rows[(rows.task == "retrieval") & (rows.learned == 1)].groupby("entry")
    names = [name for name in NAMED if name in here.groups]
    count = rows[rows.task == "counting"].groupby("entry")[f"score_{LONG}"].mean()
    won = comparison.successes(rows).query("task == 'retrieval'").set_index("entry")
    table = pd.DataFrame({
        "steps, retrieval": here.steps.mean(),
        f"right at {LONG}": here[f"score_{LONG}"].mean(),
        "from": won.low, "to": won.high,
        f"after {BUDGET['steps']:,} steps": fixed,
        "retrieval kept to": {name: comparison.reach(rows, name, "retrieval") for name in names},
        "last copy kept to": {name: comparison.reach(rows, name, "last") for name in names},
        f"counting at {LONG}": count,
    })  # fmt: skip
    return table.reindex(names).rename(index=translated, columns=translated).rename_axis(translated("entry"))


def _plain(name: str) -> str:
    """The name of an entry for a list: without a comma."""
    return name.replace("RoPE, global", "RoPE / global").replace("below, NoPE", "below / NoPE").replace(", ", " + ")


def closing_answer(rows: pd.DataFrame) -> str:
    """The answer to the course's question: what stays right, at what price, and where it fails."""
    every, steps = comparison.all_kept(rows, BOTH), prices(rows).iloc[:, 0]
    won = comparison.successes(rows).set_index(["entry", "task"])
    far = data.table("race_far").query("task == 'retrieval' and learned == 1").groupby("entry")[f"score_{FAR[-1]}"]
    further = "; ".join(f"{translated(_plain(name))} {far.get_group(name).mean():.2f}" for name in every if name in far.groups)  # fmt: skip
    further = translated(f" Retrieval at {FAR[-1]:,}, mean of {far.count().min()} runs:") + f" {further}." if further else ""  # fmt: skip
    taken = [steps[translated(name)] for name in every if translated(name) in steps]
    price = translated(f" They took {min(taken):.0f} to {max(taken):.0f} steps to learn retrieval, NoPE {steps['NoPE']:.0f}.") if taken else ""  # fmt: skip
    return (
        translated(
            f"Trained up to {TRAINED}, right in {KEPT} at {LONG} by attention on the answer, at retrieval and last copy: "
        )
        + ("; ".join(f"**{translated(_plain(name))}**" for name in every) or "**none**")
        + f".{further}{price}{translated(f' Counting at {LONG}:')} **{translated(_kept(won, 'counting'))}**."
    )
