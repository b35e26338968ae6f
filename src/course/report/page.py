"""A report as one page: everything inside, light and dark, to be printed; or as a part of the book.

A page is drawn from reports' JSON alone, and takes one model or several side by side.
"""

import html as text
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from course import scorecard
from course.report.sections import FINE, NOTE, SECTIONS, TROUBLE, Section
from helpers import models
from helpers.style import number
from helpers.widget import picture

STYLE = (Path(__file__).parent / "page.css").read_text()
SIGNS = {
    FINE: ("✓", "nothing that stands out"),
    NOTE: ("●", "worth knowing"),
    TROUBLE: ("▲", "trouble"),
    None: ("–", "not measured"),
}
CHAPTERS = {
    2: "Causal attention", 3: "Representational collapse", 4: "Counting", 5: "RoPE frequencies", 6: "The Differential Transformer",
}  # fmt: skip
MOST = 6  # models on one page
MINUS = re.compile(r"(?<![\w.])-(?=\d)")


def html(reports: Sequence[dict], book: str | None = None) -> str:
    """The page of one model, or of several, the first one being what it is about.

    Args:
        reports: as `store.read` gives them, at most `MOST`.
        book: address of the course's site, for links to its chapters; the one in the package's metadata when None.
    """
    if not 1 <= len(reports) <= MOST:
        raise ValueError(f"reports must be one to {MOST}, not {len(reports)}")
    names = [each["model"]["name"] for each in reports]
    title = (
        f"{names[0]}: what the course measures"
        if len(names) == 1 or names[1:] == [models.DEFAULT]
        else ", ".join(names)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body class=\"report\">\n<main>\n"
        f"<h1>{text.escape(title)}</h1>\n{body(reports, linked(_book() if book is None else book))}\n</main>\n</body>\n</html>\n"
    )  # fmt: skip


def inside(part: str) -> str:
    """A part of a report as it stands in a page of the book: with its style, under the book's own headings."""
    lower = part.replace("<h3", "<h4").replace("</h3>", "</h4>").replace("<h2", "<h3").replace("</h2>", "</h3>")
    return f'<div class="report"><style>{STYLE}{picture.STYLE}</style>{lower}</div>'


def linked(book: str) -> Callable[[str, str], str]:
    """A function from a place in the course ("2-causal-attention/lab#Heading") and words to a link, or to words without an address."""

    def link(shown: str, words: str) -> str:
        place, _, heading = shown.partition("#")
        if not book:
            return f'<span title="{text.escape(place)}: {text.escape(heading)}">{text.escape(words)}</span>'
        return (
            f'<a href="{text.escape(book.rstrip("/"))}/{place}.html#{scorecard.slug(heading)}">{text.escape(words)}</a>'
        )

    return link


def _book() -> str:
    """The address of the course's site that the installed package names, or nothing."""
    try:
        urls = metadata.metadata("connection-bottlenecks").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    named = dict(each.split(", ", 1) for each in urls)
    return f"{named['Documentation'].rstrip('/')}/chapters" if "Documentation" in named else ""


def body(reports: Sequence[dict], link: Callable[[str, str], str]) -> str:
    """What stands under the page's title."""
    return "\n".join([_facts(reports), _short(reports), *_chapters(reports, link), _foot(reports)])


def _facts(reports: Sequence[dict]) -> str:
    rows = {
        "architecture": lambda m: f"{m['architecture']}",
        "parameters": lambda m: number(m["parameters"]),
        "layers, heads (groups)": lambda m: f"{m['layers']}, {m['heads']} ({m['groups']})" if m["heads"] else f"{m['layers']}, none",
        "what mixes tokens": lambda m: m.get("mixes", "attention"),
        "width, context": lambda m: f"{number(m['width'])}, {number(m['context']) if m['context'] else 'no limit given'}",
        "first token": _opened,
        "chat template": lambda m: "yes" if m["chat_template"] else "no: prompts are given as they are",
        "fifty ones": lambda m: "50 tokens, one a digit" if m.get("tokens_of_50_ones") == 50
        else f"{m['tokens_of_50_ones']} tokens: digits are not one token each" if m.get("tokens_of_50_ones")
        else "not among its tokens",
        "number type": lambda m: m["dtype"] + (" (weights of a 4-bit file)" if m.get("unpacked_4_bit") else ""),
    }  # fmt: skip
    cells = [(name, [text.escape(show(each["model"])) for each in reports]) for name, show in rows.items()]
    cells.append(("measured", [text.escape(f"{r['settings']['plan']} plan, {r['made']}") for r in reports]))
    return _table("The model" if len(reports) == 1 else "The models", [r["model"]["name"] for r in reports], cells)


def _opened(model: Mapping) -> str:
    """What stands in front of each text, why, and the losses that decided it."""
    first = model["first_token"] if model["first_token"] is not None else "none"
    found = model.get("opening", {"how": "", "losses": {}})
    losses = ", ".join(f"{loss:.2f} ({way})" for way, loss in found["losses"].items())
    return (
        first + (f": {found['how']}" if found["how"] else "") + (f"; nats a token of prose: {losses}" if losses else "")
    )


def _short(reports: Sequence[dict]) -> str:
    """One line a section, what needs a look first: a list for each model."""
    legend = ", ".join(f"{sign} {words}" for sign, words in SIGNS.values())
    heads = [f"<h3>{text.escape(each['model']['name'])}</h3>\n" if len(reports) > 1 else "" for each in reports]
    lists = "\n".join(f"<div>{head}{_lines(each)}</div>" for head, each in zip(heads, reports, strict=True))
    return (
        f'<h2 id="short">In short</h2>\n<p class="legend">{legend}. What is measured at one size and on a few texts: leads to '
        f'confirm, not judgements.</p>\n<div class="pictures">{lists}</div>'
    )  # fmt: skip


def _lines(report: dict) -> str:
    lines, order = [], {TROUBLE: 0, NOTE: 1, FINE: 2, None: 3}
    for name, found in sorted(report["sections"].items(), key=lambda item: order[item[1].get("level")]):
        sign, words = SIGNS[found.get("level")]
        said = found["short"] if found["numbers"] is not None else f"not measured: {found['why']}"
        lines.append(
            f'<li class="{found.get("level") or "none"}"><span class="sign" role="img" aria-label="{words}">{sign}</span> '
            f'<a href="#{name}">{text.escape(found["title"])}</a>: {text.escape(said)}.</li>'
        )
    return f'<ul class="short">\n{chr(10).join(lines)}\n</ul>'


def _chapters(reports: Sequence[dict], link: Callable[[str, str], str]) -> list[str]:
    chapter, parts = 0, []
    for name, each in SECTIONS.items():
        if name not in reports[0]["sections"]:
            continue
        if each.chapter != chapter:
            chapter = each.chapter
            parts.append(f"<h2>Chapter {chapter}. {CHAPTERS[chapter]}</h2>")
        parts.append(_section(each, reports, link))
    return parts


def _section(section: Section, reports: Sequence[dict], link: Callable[[str, str], str]) -> str:
    found = [(each["model"]["name"], each["sections"].get(section.name)) for each in reports]
    pictures: list[str] = []
    headlines: list[Mapping] = []
    for name, part in found:
        whose = f"<strong>{text.escape(name)}.</strong> " if len(found) > 1 else ""
        if part is None or part["numbers"] is None:
            why = part["why"] if part else "not in this report"
            pictures.append(f'<p class="why">{whose}Not measured: {text.escape(why)}.</p>')
            headlines.append({})
            continue
        told = section.tell(part["numbers"], name)
        pictures.append(
            f'<figure class="still">{picture.image(told.figure, told.alt)}<figcaption>{whose}{text.escape(told.sentence)}</figcaption></figure>'
        )
        headlines.append(told.headline)
    rows = _beside(headlines)
    table = _table("", [name for name, _ in found], rows, section.title) if rows else ""
    return (
        f'<section id="{section.name}"><h3>{text.escape(section.title)}</h3>\n<div class="pictures">{"".join(pictures)}</div>\n{table}\n'
        f'{_claims(found, link)}\n<p class="more">{link(section.shown, f"Chapter {section.chapter}: {section.shown.partition(chr(35))[2]}")}</p></section>'
    )


def _claims(found: Sequence[tuple[str, dict | None]], link: Callable[[str, str], str]) -> str:
    """The verdicts of the claims that speak of models, for each model."""
    first = next((part for _, part in found if part is not None and part["claims"]), None)
    if first is None:
        return ""
    rows = []
    for k, claim in enumerate(first["claims"]):
        cells = "".join(
            _verdict(part["claims"][k] if part and k < len(part["claims"]) else None, name, len(found) > 1)
            for name, part in found
        )
        where = f", {claim['where']}" if claim.get("where") else ""
        rows.append(
            f'<li><span class="claim">{text.escape(claim["statement"])}</span> '
            f"<small>({link(claim['shown'], claim['source'] + where)})</small>{cells}</li>"
        )
    return f'<details class="claims" open><summary>Verdicts of the claims for {"this model" if len(found) == 1 else "these models"}</summary><ul>{"".join(rows)}</ul></details>'


def _verdict(claim: dict | None, name: str, named: bool) -> str:
    whose = f"{text.escape(name)}: " if named else ""
    if claim is None or claim["verdict"] is None:
        why = claim["why"] if claim else "not in this report"
        return f'<div class="verdict">{whose}– <small>{text.escape(why)}</small></div>'
    sign, colour = scorecard.LOOKS[claim["verdict"]]
    return (
        f'<div class="verdict" style="--tone:{colour}">{whose}<b>{sign} {claim["verdict"]}</b> '
        f"<small>{text.escape(MINUS.sub('−', claim['measured']))}</small></div>"
    )


def _beside(headlines: Sequence[Mapping]) -> list[tuple[str, list[str]]]:
    """The headline numbers of several models: a row for each label that one of them has."""
    labels = dict.fromkeys(label for headline in headlines for label in headline)
    return [(label, [_value(headline.get(label)) for headline in headlines]) for label in labels]


def _value(value: float | None) -> str:
    if value is None:
        return "–"
    return number(int(value) if float(value).is_integer() else value, 3 if abs(value) >= 10 else 2)


def _table(caption: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], about: str = "") -> str:
    head = "".join(f'<th scope="col">{text.escape(name)}</th>' for name in names)
    lines = "".join(
        f'<tr><th scope="row">{text.escape(label)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for label, cells in rows
    )
    title = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text.escape(caption or f"Numbers: {about}")}"><table>{title}<thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _foot(reports: Sequence[dict]) -> str:
    parts = []
    for each in reports:
        model, versions = each["model"], ", ".join(f"{k} {v}" for k, v in each["versions"].items())
        spent = "; ".join(f"{found['title']} {found['seconds']:.0f} s" for found in each["sections"].values())
        parts.append(
            f"<p><strong>{text.escape(model['name'])}</strong>: <code>{text.escape(each['command'])}</code>, {text.escape(each['made'])}, "
            f"{each['seconds']:.0f} s, at most {each['peak_bytes'] / 1e9:.1f} GB, on {text.escape(model['device'])}{_threads(each)}; seed "
            f"{each['settings']['seed']}; {text.escape(versions)}. SHA-256 of the configuration {model['configuration_sha256'][:16]}…, of the "
            f"weights' sums {model['weights_sha256'][:16]}…. <small>{text.escape(spent)}.</small></p>"
        )
    return f'<h2 id="made">How it was made</h2>\n{"".join(parts)}\n<p>All numbers are in the JSON of the report.</p>'


def _threads(report: dict) -> str:
    """How many threads: the last bits of sums depend on it, and in few bits more than these."""
    count = report["settings"].get("threads")
    return f", {count} thread{'s' * (count > 1)}" if count else ""


def comparison(reports: Sequence[dict]) -> str:
    """The headline numbers of all reports in one table, a row each, with what needs a look marked."""
    rows: list[tuple[str, list[str]]] = [("plan", [text.escape(each["settings"]["plan"]) for each in reports])]
    for name, section in SECTIONS.items():
        parts = [each["sections"].get(name) or {} for each in reports]
        marks = [SIGNS[part.get("level")] for part in parts]
        rows.append((section.title, [f'<span role="img" aria-label="{words}">{sign}</span>' for sign, words in marks]))
        rows += _beside([part.get("headline", {}) for part in parts])
    return _table("The models side by side", [each["model"]["name"] for each in reports], rows)
