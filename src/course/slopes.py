"""The threads of the race: who stays right how far, as chapter 7 draws it and the last exercise of chapter 6."""

import html

import pandas as pd
from IPython.display import HTML

from course.experiments import comparison
from course.experiments.entries import BASELINE, MIXED, STICK
from course.experiments.protocol import CHANCE, LENGTHS
from helpers import style
from helpers.words import translated

BLUE, RED, GREEN, PURPLE, _, GREY = style.COLOURS.values()
NAMES = {
    "retrieval": "retrieval",
    "last": "last copy",
    "recall": "recall",
    "first": "first copy",
    "counting": "counting",
}
LONG = LENGTHS[-1]
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
        return HTML(f"<p>{translated('No entry has learned it.')}</p>"), f"{NAMES[task]}: no entry has learned it."
    top = order[order > order.iloc[0] - 0.005].index
    named = {order.index[-1]: GREY, top[0]: RED, "NoPE": "currentColor", MIXED: GREEN, STICK: PURPLE}
    named |= dict.fromkeys(mine, PURPLE) | {BASELINE: BLUE}
    named = {name: colour for name, colour in named.items() if name in means.index}
    x, y = dict(zip(LENGTHS, (60, 228, 396, 564), strict=True)), lambda share: 410 - 350 * share
    more = {top[0]: f" {translated(f'and {len(top) - 1} more')}" if len(top) > 1 else ""}
    ends = [(order[name], f"{translated(name)}{more.get(name, '')} {order[name]:.2f}", named[name]) for name in named]
    ends = sorted([*ends, (CHANCE[task], translated("guessing"), GREY)], reverse=True)
    labels, place = [], 0.0
    for value, words, tone in ends:  # names keep their distance
        place = max(y(value) + 7, place + 27)
        labels.append(f'<text class="end" x="590" y="{place:.0f}" style="--tone: {tone}">{html.escape(words)}</text>')
    parts = [f'<path class="grid" d="M60 {y(v):.0f}H564"/><text x="50" y="{y(v) + 7:.0f}" text-anchor="end">{v:g}</text>' for v in (0, 0.5, 1)]  # fmt: skip
    parts += [f'<text x="{at}" y="442" text-anchor="middle">{n}</text>' for n, at in x.items()]
    parts += [f'<path class="grid" stroke-dasharray="6 6" d="M60 {y(CHANCE[task]):.0f}H564"/>', *labels]
    for name in sorted(means.index, key=lambda name: name in named):
        line = "M" + "L".join(f"{x[n]} {y(v):.1f}" for n, v in zip(LENGTHS, means.loc[name], strict=True))
        said = f"{html.escape(translated(name))}: {', '.join(f'{v:.2f}' for v in means.loc[name])}"
        tone = f' style="--tone: {named[name]}"' if name in named else ""
        kind = f"thread{' named' if tone else ''}{' bold' if name == BASELINE else ''}"
        parts.append(f'<g class="{kind}"{tone}><title>{said}</title><path d="{line}"/><path class="hit" d="{line}"/><text class="said" x="60" y="26">{said}</text></g>')  # fmt: skip
    missing = every[every.task == task].entry.nunique() - len(means)
    lengths = ", ".join(map(str, LENGTHS))
    told = [f"{NAMES[task].capitalize()}, share right at {lengths}, mean of the runs that learned:"]
    told += [
        f"{translated(name)} {translated(f'{order[name]:.2f} at {LONG}')}"
        for name in sorted(named, key=lambda name: -order[name])
    ]
    told[1:] = ["; ".join(told[1:]) + ".", f"{len(means)} entries; not learned, or a control: {missing}."]
    finding = " ".join([translated(told[0]), told[1], translated(told[2])])
    picture = f'<svg class="slopes" viewBox="0 0 1000 452" role="img" aria-label="{html.escape(finding)}">{"".join(parts)}</svg>'
    said = f"Share right by length. Each thread is one entry, named under the finger; dashed: guessing. Entries not learned, or controls: {missing}."
    return HTML(f'<figure class="still">{SLOPES}{picture}<figcaption>{translated(said)}</figcaption></figure>'), finding
