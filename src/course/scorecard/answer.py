"""Answer the course's question with the claims of all chapters.

The answer says where information is lost, what helps, what it costs, and which claims show this.
"""

import html
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from IPython.display import HTML

from course import scorecard
from course.evidence.claims import CLAIMS
from helpers import compute, words


class Bottleneck(NamedTuple):
    """Hold one place where information is lost, and the names of the claims that measure it."""

    chapter: int
    place: str
    reader: str
    limits: str
    worse: str
    helps: str
    price: str
    evidence: list[str]


class Finding(NamedTuple):
    """Hold what a reader should remember from a claim.

    The sentences are valid for one verdict, which is stored with them.

    Attributes:
        headline: the finding in one short sentence.
        sentence: the observation, with `{0}`, `{1}` … for the numbers that the claim measured.
    """

    claim: str
    verdict: str
    headline: str
    sentence: str


_TABLE = tomllib.loads((Path(__file__).parent / "answer.toml").read_text())
BOTTLENECKS = tuple(Bottleneck(**row) for row in _TABLE["bottlenecks"])
FINDINGS = tuple(Finding(**row) for row in _TABLE["findings"])


def table() -> HTML:
    """Write a table of the six places where information is lost, which a page shows as cards.

    The columns say what is lost, what helps, what it costs, and which claims show it.
    """
    names = (
        *("Where", "Lost to whom", "What it limits", "It gets worse", "What helps", "Price"),
        "What was measured",
    )
    head = "".join(f'<th scope="col">{words.translated(name)}</th>' for name in names)
    rows = "".join(
        (
            f'<tr><th scope="row">{bottleneck.chapter}. '
            f"{html.escape(words.translated(bottleneck.place))}</th>"
        )
        + "".join(map(cell, bottleneck[2:7]))
        + f'<td class="answer-evidence">{_listed(bottleneck.evidence)}</td></tr>'
        for bottleneck in BOTTLENECKS
    )
    return HTML(
        '<table class="answer-table row-cards always">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _listed(names: Sequence[str]) -> str:
    """Write claims with their verdicts, each in its own line."""
    return "".join(f'<div class="answer-claim">{_judged(name)}</div>' for name in names)


def cell(text: str) -> str:
    """Write a table cell in the language of the page."""
    return f"<td>{html.escape(words.translated(text))}</td>"


def findings() -> HTML:
    """List the findings, each with a headline, a sentence and the claim that supports it.

    The verdict on the claim links to the measurement.
    """
    return HTML(f"<ol>{''.join(map(_item, FINDINGS))}</ol>")


def _item(finding: Finding) -> str:
    """Write one finding.

    If the verdict has changed since the sentences were written, we write the claim's own statement
    instead.
    """
    verdict = scorecard.badge(finding.claim).verdict
    claim = CLAIMS[finding.claim]
    measured = scorecard.measure(claim)
    headline, sentence = claim.statement, ""
    if verdict == finding.verdict:
        headline = finding.headline
        sentence = finding.sentence.format(*(number for _, number in measured.numbers.values()))
    where = f"{claim.shown.partition('#')[0]}.{'html' if compute.building() else 'ipynb'}"
    return (
        f"<li><p><b>{html.escape(words.translated(f'{headline}.'))}</b> "
        f"{html.escape(words.translated(sentence))}<br>"
        f"<small>{_judged(finding.claim)} · <a "
        f'href="{where}">{words.translated(f"Chapter {claim.chapter}")}</a></small></p>'
        f"<details><summary>{words.translated('What was measured')}</summary>"
        f"<p>{html.escape(words.translated(scorecard.printed(measured.measured)))}</p>"
        "</details></li>"
    )


def _judged(name: str) -> str:
    """Write a claim's sentence with the mark of its verdict, which links to the claim's row."""
    verdict, sign, colour, address = scorecard.badge(name)
    says = html.escape(words.translated(f"{CLAIMS[name].statement}: "))
    return (
        f'<strong style="color:{colour}">{sign}</strong> {says}<a '
        f'href="{address}">{words.translated(verdict)}</a>'
    )
