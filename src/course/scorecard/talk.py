"""Show claims and sources on the slides of the talk."""

import html
from collections.abc import Mapping, Sequence

from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course import scorecard
from course.evidence.rules import CORRECTED, FAILS
from course.evidence.sources import Source
from course.scorecard.answer import BOTTLENECKS
from helpers import widget, words

QUOTED = ""  # this stands for the claim's words as its source wrote them
# in inches, so that the ticks above a caption and four lines are still 20 pixels high on a slide of
# 1280 x 720
ROOM = 4.05
STYLE = (
    ".talk-claim{margin:.35em 0;font-size:max(22px,.8em);line-height:1.3}"
    ".talk-chip{display:inline-block;padding:0 .5em;border:2px solid "
    "var(--tone);border-radius:1em;font-weight:700;"
    "text-decoration:none;color:inherit;white-space:nowrap}"
    ".talk-remark{border-left:6px solid "
    "#767676;padding-left:.5em}.talk-correction{border-color:#d55e00}"
    '@font-face{font-family:"talk original";src:url("../slides/talk.zh-400.woff")}'
    '.talk-claim [lang=zh]{font-family:"Source Sans 3","Letters","talk '
    'original","Signs",sans-serif;opacity:.85}'
    ".talk-foot{margin-top:.35em;font-size:max(20px,.68em);opacity:.85}.talk-foot a{color:inherit}"
    ".talk-places{border-collapse:collapse}.talk-places "
    ":is(th,td){text-align:left;padding:.25em .6em}"
)


def figure(drawn: tuple[Figure | Axes, str], caption: str = "", alt: str = "") -> HTML:
    """Show a chapter's figure at a height that leaves room on a slide for claims.

    The figure's finding serves as alt text, unless the caller passes another text.
    """
    shown, finding = drawn
    shown.figure.set_figheight(min(shown.figure.get_figheight(), ROOM))
    return widget.show(shown, alt=alt or finding, caption=caption)


def says(rows: Mapping[str, str | Sequence[str]], *sources: Source) -> HTML:
    """Show claims in the talk's words, each with its verdict.

    A verdict links to the claim's row of the scorecard. On a slide the claims come one after the
    other.

    Args:
        rows: for each claim its words, or a pair of words and a remark. If the claim fails or holds
            in part, the remark is marked as the correction. `QUOTED` in place of the words quotes
            the talk or its author's note, with the Chinese original.
        sources: the sources of the slide, shown at its foot.
    """
    lines = []
    for name, row in rows.items():
        text, remark = (row, "") if isinstance(row, str) else row
        verdict, sign, colour, address = scorecard.badge(name)
        corrects = verdict in (FAILS, CORRECTED)
        claim_text = _quoted(name) if text == QUOTED else html.escape(words.translated(text))
        chip = (
            f'<a class="talk-chip" data-claim="{name}" data-verdict="{verdict}" '
            f'style="--tone:{colour}" '
            f'href="{address}">{sign} {html.escape(words.translated(verdict))}</a>'
        )
        if remark:
            label = words.translated("Correction: " if corrects else "Note: ")
            mark = "talk-remark talk-correction" if corrects else "talk-remark"
            remark = (
                f'<br><span class="{mark}">{html.escape(label + words.translated(remark))}</span>'
            )
        later = " fragment" if lines else ""  # on a slide it takes the place of the claim before
        lines.append(f'<p class="talk-claim{later}">{claim_text} {chip}{remark}</p>')
    claims = f'<div class="talk-claims">{"".join(lines)}</div>' if lines else ""
    named = " · ".join(
        f'<a href="{html.escape(source.url)}">{html.escape(words.translated(source.name))}</a>'
        for source in sources
    )
    feet = f'<div class="talk-foot">{named}</div>' if named else ""
    return HTML(f"<style>{STYLE}</style>{claims}{feet}")


def _quoted(name: str) -> str:
    """Quote a claim in the words of its source.

    English pages show a translation with the original, and English slides only the translation.
    Other editions show only the original.
    """
    original, english = scorecard.quotations()[name]
    original, place = (
        original.rsplit(" ", 1) if original.endswith("(note)") else original.rsplit(" (slide", 1)
    )
    lead = "The note of 2025: " if "note" in place else "The talk of 2025: "
    lead_words = words.translated(lead)
    return lead_words + (
        html.escape(english) + f' <span class="talk-original" lang="zh">{original}</span>'
        if lead_words == lead
        else original
    )


def foot(*sources: Source) -> HTML:
    """Show the sources of a slide that makes no claim.

    >>> from course.evidence.sources import ALON
    >>> "Alon &amp; Yahav (2021)" in foot(ALON).data
    True
    """
    return says({}, *sources)


def places() -> HTML:
    """List the six places where information is lost, and what helps.

    On a slide the places appear one after the other.
    """
    head = "".join(
        f'<th scope="col">{html.escape(words.translated(text))}</th>'
        for text in ("Where", "What helps")
    )
    rows = "".join(
        f'<tr class="{"fragment" if k else "at-once"}"><th scope="row">{bottleneck.chapter}. '
        f"{html.escape(words.translated(bottleneck.place))}</th>"
        f"<td>{html.escape(words.translated(bottleneck.helps))}</td></tr>"
        for k, bottleneck in enumerate(BOTTLENECKS)
    )
    return HTML(
        f"<style>{STYLE}</style><table "
        f'class="talk-places"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
