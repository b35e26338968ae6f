"""The scorecard gathers the claims of all chapters, measures each once, and shows them with their verdicts."""

import functools
import html
import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import filelock
from IPython.display import HTML

from helpers import closure, compute, data
from helpers.chapter1 import claims as chapter1
from helpers.chapter2 import claims as chapter2
from helpers.chapter3 import claims as chapter3
from helpers.chapter4 import claims as chapter4
from helpers.chapter5 import claims as chapter5
from helpers.chapter6 import claims as chapter6
from helpers.claims import CLAIMS, CORRECTED, FAILS, HOLDS, LITTLE, OPEN, UNABLE, UNFIT, VERDICTS, Claim, Found

CHAPTERS = (chapter1, chapter2, chapter3, chapter4, chapter5, chapter6)
LOOKS = {  # sign and colour of each verdict, told apart without either by its words
    HOLDS: ("✓", "#00805c"),
    CORRECTED: ("≈", "#0072b2"),
    FAILS: ("✗", "#d55e00"),
    OPEN: ("…", "#767676"),
    LITTLE: ("○", "#767676"),
    UNFIT: ("◊", "#b0518d"),
    UNABLE: ("?", "#b0518d"),
}
KINDS = {
    "claim": "claims of the sources that a measurement could refute",
    "finding": "findings of this course that a measurement could refute",
    "theorem": "theorems and definitions, checked with numbers",
}
STYLE, SCRIPT = ((Path(__file__).parent / name).read_text() for name in ("card.css", "card.js"))


class Badge(NamedTuple):
    """A claim's verdict with the sign and the colour that tell it, and the link to its row."""

    verdict: str
    sign: str
    colour: str
    address: str


def claims(chapter: int | None = None) -> list[Claim]:
    """The claims of a chapter, or all.

    Raises:
        ValueError: no claim belongs to the chapter.
    """
    gathered = {module.__name__ for module in CHAPTERS}
    known = [each for each in CLAIMS.values() if each.measure.__module__ in gathered]
    chosen = [each for each in known if chapter in (None, each.chapter)]
    if not chosen:
        raise ValueError(f"chapter must be one of {sorted({each.chapter for each in known})}, not {chapter!r}")
    return chosen


def found(claim: Claim) -> Found:
    """What the claim's function gives; in the source tree measured once, and again when what it depends on changes."""
    place = _kept(claim)
    if place is None:
        return claim.measure()
    place.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(place.with_suffix(".lock")):
        if place.exists():
            stored = json.loads(place.read_text())
            return Found(stored["measured"], stored["verdict"], {k: tuple(v) for k, v in stored["numbers"].items()})
        new = claim.measure()
        for old in place.parent.glob("*.json"):
            old.unlink()
        data.write(place, json.dumps(new._asdict()), "measurements")
        return new


def badge(name: str) -> Badge:
    """What stands beside a claim on other pages: its verdict, sign and colour, and the address of its row.

    Raises:
        ValueError: there is no claim of this name.

    >>> badge("width_bound").address.endswith("#width_bound")
    True
    """
    if name not in CLAIMS:
        raise ValueError(f"name must be one of the {len(CLAIMS)} claims, not {name!r}")
    verdict = found(CLAIMS[name]).verdict
    page = "scorecard.html" if compute.building() else "scorecard.ipynb"
    return Badge(verdict, *LOOKS[verdict], f"{page}#{name}")


def _kept(claim: Claim) -> Path | None:
    """Where the measurement of a claim is kept: in the source tree only."""
    root = closure.tables().parent
    if not (root / "pyproject.toml").is_file():
        return None
    chapter = claim.measure.__module__.rpartition(".")[0]
    return root / "_build/claims" / claim.name / f"{_key(chapter, closure.pins(root))}.json"


@functools.cache
def quotations() -> dict[str, tuple[str, str]]:
    """The words of the talk, by claim: in Chinese with the slide, and in English. A claim of the talk has its words."""
    rows = data.table("reported/talk_quotations")
    return {row.claim: (f"“{row.chinese}” (slide {row.slide})", f"“{row.english}”") for row in rows.itertuples()}


@functools.cache
def _key(chapter: str, pins: str) -> str:
    """What the measurements of a chapter's claims depend on: read once, since it takes long."""
    return closure.key(f"from {chapter} import claims", pins)


def summary() -> HTML:
    """How many claims have which verdict, as a picture, and chips that choose verdict and chapter without a kernel."""
    rows = [(each, found(each).verdict) for each in claims()]
    all_kinds = Counter(verdict for _, verdict in rows)
    bars = "".join(
        _bar(name, Counter(verdict for each, verdict in rows if kind(each) == key)) for key, name in KINDS.items()
    )
    verdicts = "".join(_chip("verdict", v, f"{LOOKS[v][0]} {v}", all_kinds[v], LOOKS[v][1]) for v in VERDICTS)
    kinds = Counter(kind(each) for each, _ in rows)
    sorts = "".join(_chip("kind", key, name, kinds[key], "currentColor") for key, name in KINDS.items())
    numbers = Counter(each.chapter for each, _ in rows)
    chapters = "".join(_chip("chapter", str(k), f"chapter {k}", n, "currentColor") for k, n in sorted(numbers.items()))
    return HTML(
        f'<div class="card-summary"><style>{STYLE}</style>{bars}'
        f'<div class="card-chips" role="group" aria-label="Show only these verdicts">{verdicts}</div>'
        f'<div class="card-chips" role="group" aria-label="Show only these kinds">{sorts}</div>'
        f'<div class="card-chips" role="group" aria-label="Show only these chapters">{chapters}</div>'
        f'<p class="card-shown" aria-live="polite">All {len(rows)} are shown. Choose verdicts, kinds or chapters to see fewer.</p>'
        f"<script>{SCRIPT}</script></div>"
    )


def kind(claim: Claim) -> str:
    """One of `KINDS`: what a measurement could refute is counted apart from what is proved or defined."""
    return "theorem" if claim.theorem else "finding" if claim.own else "claim"


def _bar(name: str, count: Counter) -> str:
    total = count.total()
    if not total:
        return ""
    words = ", ".join(f"{v} {count[v]}" for v in VERDICTS if count[v])
    parts = "".join(
        f'<span style="flex:{count[v]};background:{LOOKS[v][1]}" title="{v}">{LOOKS[v][0]} {count[v]}</span>'
        for v in VERDICTS
        if count[v]
    )
    label = f"{total} {name}: {words}"
    return f'<div class="card-bar" role="img" aria-label="{label}">{parts}</div><p class="card-words">{label}.</p>'


def _chip(kind: str, value: str, words: str, count: int, colour: str) -> str:
    return (
        f'<button type="button" aria-pressed="false" data-kind="{kind}" data-value="{value}" style="--tone:{colour}">'
        f"{words} <b>{count}</b></button>"
    )


def table(chapter: int) -> HTML:
    """The claims of a chapter, a row each: verdict, claim with its source, reported, measured.

    Raises:
        ValueError: no claim belongs to the chapter.
    """
    rows = "".join(_row(each, found(each)) for each in compute.progress(claims(chapter), "claims"))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Verdict", "Claim", "Reported", "Measured"))
    return HTML(f'<table class="card-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>')


def _row(claim: Claim, found: Found) -> str:
    text = html.escape
    sign, colour = LOOKS[found.verdict]
    source = f'<a href="{text(claim.source.url)}">{text(claim.source.name)}</a>{text(f", {claim.where}" if claim.where else "")}'
    if claim.own:
        source = f"A finding of this course{text(f', {claim.where}' if claim.where else '')}"
    if claim.theorem:
        source = f"Theorem or definition, checked with numbers; {source}"
    reported, measured = text(claim.reported), text(found.measured)
    if found.numbers:
        measured = f"{_numbers(found)}<details><summary>in words</summary>{measured}</details>"
    if claim.varied:
        measured += f"<br><small>Varied: {text(claim.varied)}.</small>"
    return (
        f'<tr id="{claim.name}" data-verdict="{found.verdict}" data-kind="{kind(claim)}" data-chapter="{claim.chapter}">'
        f'<td data-name="Verdict"><strong style="--tone:{colour}" class="card-verdict">{sign} {found.verdict}</strong></td>'
        f'<td data-name="Claim">{text(claim.statement)} <a class="card-link" href="#{claim.name}" '
        f'aria-label="Link to this claim">#</a><br><small>{source}; <a href="{shown(claim)}">shown here</a></small></td>'
        f'<td data-name="Reported">{reported}</td><td data-name="Measured">{measured}</td></tr>'
    )


def _numbers(found: Found) -> str:
    """Reported and measured side by side."""

    def cell(value: float | None) -> str:
        return "–" if value is None else f"{value:,.4g}"

    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{cell(a)}</td><td>{cell(b)}</td></tr>'
        for name, (a, b) in found.numbers.items()
    )
    head = '<tr><td></td><th scope="col">reported</th><th scope="col">measured</th></tr>'
    return f'<table class="card-numbers"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def shown(claim: Claim) -> str:
    """The address of the section that shows a claim: a page of the site while the book is built, else the notebook."""
    page, _, heading = claim.shown.partition("#")
    return f"{page}.html#{slug(heading)}" if compute.building() else f"{page}.ipynb#{heading.replace(' ', '-')}"


def slug(heading: str) -> str:
    """The id that the site gives to a heading, as docutils does.

    >>> slug("What predicts the sensitivity?")
    'what-predicts-the-sensitivity'
    """
    plain = unicodedata.normalize("NFKD", heading.replace("$", "")).encode("ascii", "ignore").decode().lower()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))
