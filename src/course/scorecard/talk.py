"""What the talk's notebook shows beside the figures of the chapters: claims with their verdicts, corrections, numbers."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence

from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course import scorecard
from course.claims import CORRECTED, FAILS, VERDICTS
from course.scorecard.answer import BOTTLENECKS
from helpers import widget, words

ROOM = 4.05  # inches: above a caption and four lines its ticks are still 20 pixels on a slide of 1280 x 720
_shown: dict[str, str] = {}  # the claims said so far, with their verdicts
STYLE = (
    ".talk-claim{margin:.35em 0;font-size:max(22px,.8em);line-height:1.3}"
    ".talk-chip{display:inline-block;padding:0 .5em;border:2px solid var(--tone);border-radius:1em;font-weight:700;"
    "text-decoration:none;color:inherit;white-space:nowrap}"
    ".talk-remark{border-left:6px solid #767676;padding-left:.5em}.talk-correction{border-color:#d55e00}"
    ".talk-note{font-size:max(22px,.9em)}"
    ".talk-places{border-collapse:collapse}.talk-places :is(th,td){text-align:left;padding:.25em .6em}"
)


def figure(drawn: tuple[Figure | Axes, str], caption: str = "", alt: str = "") -> HTML:
    """A chapter's figure, no higher than a slide with claims has room for.

    Its finding is the text for who does not see it, unless another is given.
    """
    shown, finding = drawn
    shown.figure.set_figheight(min(shown.figure.get_figheight(), ROOM))
    return widget.show(shown, alt=alt or finding, caption=caption)


def says(rows: Mapping[str, str | Sequence[str]]) -> HTML:
    """Claims as the talk makes them, each with its verdict as a chip that leads to its row of the scorecard.

    Args:
        rows: by the name of a claim its words, or a pair of its words and a remark: where the claim fails, or holds
            in part, the remark is marked as the correction.

    Raises:
        ValueError: a claim is named that there is not.
    """
    lines = []
    for name, row in rows.items():
        text, remark = (row, "") if isinstance(row, str) else row
        verdict, sign, colour, address = scorecard.badge(name)
        _shown[name] = verdict
        label = "Correction" if verdict in (FAILS, CORRECTED) else "Note"
        chip = (
            f'<a class="talk-chip" data-claim="{name}" data-verdict="{verdict}" style="--tone:{colour}" '
            f'href="{address}">{sign} {html.escape(words.said(verdict))}</a>'
        )
        mark = "talk-remark talk-correction" if verdict in (FAILS, CORRECTED) else "talk-remark"
        remark = f"{html.escape(words.said(label))}: {html.escape(words.said(remark))}" if remark else ""
        marked = f'<br><span class="{mark}">{remark}</span>' if remark else ""
        lines.append(f'<p class="talk-claim">{html.escape(words.said(text))} {chip}{marked}</p>')
    return HTML(f'<style>{STYLE}</style><div class="talk-claims">{"".join(lines)}</div>')


def note(text: str, **numbers: str) -> HTML:
    """A sentence with numbers that the cell computes, `{name}` for each.

    >>> "4 tokens" in note("Heard by {n} tokens", n="4").data
    True
    """
    return HTML(f'<style>{STYLE}</style><p class="talk-note">{html.escape(words.said(text.format(**numbers)))}</p>')


def tally() -> HTML:
    """How many of the claims said so far have which verdict: of those alone that the talk makes in words."""
    counts = Counter(verdict for name, verdict in _shown.items() if name in scorecard.quotations())
    chips = " ".join(
        f'<span class="talk-chip" style="--tone:{scorecard.LOOKS[verdict][1]}">{scorecard.LOOKS[verdict][0]} '
        f"{html.escape(words.said(verdict))}: {counts[verdict]}</span>"
        for verdict in VERDICTS
        if counts[verdict]
    )
    lead = html.escape(words.said(f"{counts.total()} claims in the words of the talk:"))
    return HTML(f'<style>{STYLE}</style><p class="talk-claim talk-tally">{lead} {chips}</p>')


def places() -> HTML:
    """The six places where something is lost, with what helps: on a slide one after the other."""
    head = "".join(f'<th scope="col">{html.escape(words.said(text))}</th>' for text in ("Where", "What helps"))
    rows = "".join(
        f'<tr class="{"fragment" if k else "at-once"}"><th scope="row">{each.chapter}. {html.escape(words.said(each.place))}</th>'
        f"<td>{html.escape(words.said(each.helps))}</td></tr>"
        for k, each in enumerate(BOTTLENECKS)
    )
    return HTML(
        f'<style>{STYLE}</style><table class="talk-places"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
