"""Draw how well each entry of the race generalises to longer sequences.

Chapter 7 and the last exercise of chapter 6 show this chart.
"""

import textwrap
import unicodedata
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from course.build.templates import template
from course.runs import comparison
from course.runs.entries import BASELINE, MIXED, STICK
from course.runs.protocol import CHANCE, LENGTHS
from helpers import style
from helpers.words import translated

_, RED, _, PURPLE, _, GREY = style.COLOURS.values()
NAMES = {
    "retrieval": "retrieval",
    "last": "last copy",
    "recall": "recall",
    "first": "first copy",
    "counting": "counting",
}
LONG = LENGTHS[-1]
# The letters of a name in one line, the height of a line, and the lowest place of a name.
LETTERS, LINE, LOWEST = 28, 20, 446
PICTURE = template(Path(__file__).parent / "race_chart.jinja")


def slopes(rows: pd.DataFrame, task: str, own: pd.DataFrame | None = None) -> tuple[HTML, str]:
    """Draw accuracy as a function of length, with one line for each entry that learned the task.

    The line of RoPE is bold, and three entries have their names next to their lines. The name of
    any other entry appears when the mouse pointer is on its line.

    Args:
        own: rows for your own entry, as `race.enter` returns them. Its line is drawn with its name,
            together with the other entries.

    Returns:
        The figure as vector graphics, and a sentence that states its finding.
    """
    every = rows if own is None else pd.concat([rows, own])
    mine = [] if own is None else list(own.entry.unique())
    scores = [f"score_{n}" for n in LENGTHS]
    means = comparison.learned(every, task).groupby("entry", sort=False)[scores].mean()
    order = means.iloc[:, -1].sort_values(ascending=False, kind="stable")
    if not len(order):
        return HTML(
            f"<p>{translated('No entry has learned it.')}</p>"
        ), f"{NAMES[task]}: no entry has learned it."
    top = order[order > order.iloc[0] - 0.005].index
    named = {order.index[-1]: GREY, top[0]: RED, "NoPE": "", MIXED: "", STICK: ""}
    named |= dict.fromkeys(mine, PURPLE) | {BASELINE: ""}
    # black on a light page and white on a dark page
    own_colours = style.NAMED | {"NoPE": "currentColor"}
    named = {name: own_colours.get(name, colour) for name, colour in named.items()}
    named = {name: colour for name, colour in named.items() if name in means.index}
    x, y = dict(zip(LENGTHS, (60, 276, 492, 708), strict=True)), lambda share: 410 - 350 * share
    more = {top[0]: f" {translated(f'and {len(top) - 1} more')}" if len(top) > 1 else ""}
    ends = [
        (order[name], f"{translated(name)}{more.get(name, '')} {order[name]:.2f}", named[name])
        for name in named
    ]
    ends = sorted([*ends, (CHANCE[task], translated("guessing"), GREY)], reverse=True)
    heights = [y(value) + 7 for value, _, _ in ends]
    names = [lines(words) for _, words, _ in ends]
    labels = list(zip(apart(heights, names), names, [tone for *_, tone in ends], strict=True))
    threads = []
    for name in sorted(means.index, key=lambda name: name in named):
        line = "M" + "L".join(
            f"{x[n]} {y(v):.1f}" for n, v in zip(LENGTHS, means.loc[name], strict=True)
        )
        shares = ", ".join(f"{v:.2f}" for v in means.loc[name])
        threads.append((line, translated(name), shares, named.get(name), name == BASELINE))
    missing = every[every.task == task].entry.nunique() - len(means)
    lengths = ", ".join(map(str, LENGTHS))
    told = [f"{NAMES[task].capitalize()}, accuracy at {lengths}, mean of the runs that learned:"]
    told += [
        f"{translated(name)} {translated(f'{order[name]:.2f} at {LONG}')}"
        for name in sorted(named, key=lambda name: -order[name])
    ]
    told[1:] = [
        "; ".join(told[1:]) + ".",
        f"{len(means)} entries are drawn. Not learned, or a control: {missing}.",
    ]
    finding = " ".join([translated(told[0]), told[1], translated(told[2])])
    said = (
        "Accuracy by length. Each line is one entry, and you can point at a line to see its name. "
        "The dashed line is guessing. "
        f"Entries not drawn (not learned, or a control): {missing}."
    )
    picture = PICTURE.render(
        finding=finding,
        levels=[(share, round(y(share))) for share in (0, 0.5, 1)],
        lengths=x,
        chance=round(y(CHANCE[task])),
        ends=labels,
        line=LINE,
        threads=threads,
        caption=translated(said),
    )
    return HTML(picture), finding


def lines(name: str) -> list[str]:
    """Break a name into lines that fit beside the chart. A Chinese character takes two letters.

    >>> lines("local RoPE, global NoPE 0.94")
    ['local RoPE, global NoPE 0.94']
    >>> lines("局部 RoPE、全局 NoPE，另有 7 个 1.00")
    ['局部 RoPE、全局 NoPE，', '另有 7 个 1.00']
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in name)
    if len(name) + wide <= LETTERS:
        return [name]
    head, comma, tail = name.rpartition("，")
    return [head + comma, tail] if comma else textwrap.wrap(name, LETTERS - wide)


def apart(heights: list[float], names: list[list[str]]) -> list[int]:
    """Move names of one or more lines apart, so that they neither overlap nor leave the picture.

    Returns:
        The height of the first line of each name, from the top of the picture down.
    """
    high = [LINE * (len(lines) - 1) for lines in names]
    places, free = [], 0.0
    for height, more in zip(heights, high, strict=True):
        places.append(max(height, free))
        free = places[-1] + more + 27
    free = LOWEST + 27
    for k in reversed(range(len(places))):
        places[k] = free = min(places[k], free - high[k] - 27)
    return [round(place) for place in places]
