"""Write a report as one self-contained HTML page, or as a part of the book.

The page has a light and a dark theme and can be printed. It is drawn only from the JSON of reports,
and shows one model or several side by side. Its HTML is in `page.jinja`.
"""

import itertools
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from course import scorecard
from course.build.templates import template
from course.report.sections import FINE, NOTE, SECTIONS, TROUBLE, Section, Told
from course.report.store import apart
from helpers import models, widget
from helpers.style import number

FOLDER = Path(__file__).parent
STYLE = (FOLDER / "page.css").read_text()
SIGNS = {  # the levels that need attention come first
    TROUBLE: ("▲", "trouble"),
    NOTE: ("●", "worth knowing"),
    FINE: ("✓", "nothing that stands out"),
    None: ("–", "not measured"),
}
JUDGEMENTS = {  # each verdict of a claim as a sentence about a model
    "holds": "The claim holds for this model.",
    "holds with a correction": "The claim holds for this model with a correction.",
    "does not hold here": "The claim does not hold for this model.",
    "not run far enough": "Our runs stopped too early to decide.",
    "too little evidence": "There is too little evidence to decide.",
    "this set-up cannot decide": "This set-up cannot decide the claim.",
    "this model cannot decide": "This model cannot decide the claim.",
}
CHAPTERS = {
    2: "Causal attention",
    3: "Representational collapse",
    4: "Counting",
    5: "RoPE frequencies",
    6: "The Differential Transformer",
}
MOST = 12  # the largest number of models on one page
MINUS = re.compile(r"(?<![\w.])-(?=\d)")


def _sentence(text: str) -> str:
    """Return a text with a capital letter at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _runs(report: dict) -> list[tuple[str, str, list[dict]]]:
    """Group the sections of a report by the command that measured them and by the machine."""
    by_command: dict[tuple[str, str], list[dict]] = {}
    for section in report["sections"].values():
        by_command.setdefault((section["command"], section["on"]), []).append(section)
    return [(*how, sections) for how, sections in by_command.items()]


HTML = template(
    FOLDER / "page.jinja",
    {
        "slug": scorecard.slug,
        "minus": lambda text: MINUS.sub("−", text),
        "sentence": _sentence,
        "runs": _runs,
    },
    signs=SIGNS,
    titles=CHAPTERS,
    looks=scorecard.LOOKS,
    judgements=JUDGEMENTS,
).module


def html(reports: Sequence[dict], book: str | None = None) -> str:
    """Write the HTML page of the reports on one model or on several.

    The first report is the subject of the page.

    Args:
        reports: reports from `store.read`, at most `MOST`.
        book: the address of the course's site, for links to its chapters. None uses the address in
            the package's metadata.
    """
    if not 1 <= len(reports) <= MOST:
        raise ValueError(f"reports must be one to {MOST}, not {len(reports)}")
    names = list(dict.fromkeys(report["model"]["name"] for report in reports))
    title = (
        f"{names[0]}: what the course measures"
        if {*names[1:]} <= {models.DEFAULT}
        else ", ".join(names)
    )
    return HTML.document(title, body(reports, _book() if book is None else book), STYLE).lstrip()


def inside(part: str) -> str:
    """Adapt a part of a report for a page of the book.

    The part gets its style sheet, and its headings move one level down, below the book's own.
    """
    lower = (
        str(part)
        .replace("<h3", "<h4")
        .replace("</h3>", "</h4>")
        .replace("<h2", "<h3")
        .replace("</h2>", "</h3>")
    )
    return HTML.inside(Markup(lower), STYLE + widget.STYLE)


def _book() -> str:
    """Return the address of the course's site from the metadata of the installed package, or ""."""
    try:
        urls = metadata.metadata("connection-bottlenecks").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return f"{named['Documentation'].rstrip('/')}/chapters" if "Documentation" in named else ""


def body(reports: Sequence[dict], book: str) -> str:
    """Write the HTML of the page below its title.

    Links lead to chapters at the address `book`. If `book` is empty, the page has no such links.
    """
    reports = told_apart(reports)
    present = [
        section
        for name, section in SECTIONS.items()
        if any(name in report["sections"] for report in reports)
    ]
    chapters = [
        (chapter, [_section(section, reports) for section in sections])
        for chapter, sections in itertools.groupby(present, key=lambda section: section.chapter)
    ]
    short = [(report, in_short(report)) for report in reports]
    return HTML.body(reports, _facts(reports), short, chapters, book, _course(reports))


def told_apart(reports: Sequence[dict]) -> list[dict]:
    """Return the reports with distinct model names.

    If several reports have the same model name, we add to each name what distinguishes its report.
    """
    renamed = []
    for report in reports:
        model = report["model"]
        same = [rival for rival in reports if rival["model"]["name"] == model["name"]]
        renamed.append(
            report | {"model": model | {"name": ", ".join([model["name"], *apart(report, same)])}}
        )
    return renamed


def _course(reports: Sequence[dict]) -> Markup | str:
    """Draw how the headline numbers change over the checkpoints of one training run.

    The result is empty if the reports are not about checkpoints with one configuration.
    """
    first, rows = reports[0], []
    if len({report["model"]["configuration_sha256"] for report in reports}) > 1:
        return ""
    if len({report["model"]["weights_sha256"] for report in reports}) < max(3, len(reports)):
        return ""
    for name in SECTIONS:
        headlines = [report["sections"].get(name, {}).get("headline", {}) for report in reports]
        known = [label for label in dict.fromkeys(itertools.chain(*headlines))]
        lines = {label: [headline.get(label) for headline in headlines] for label in known}
        rows += [(label, line) for label, line in lines.items() if len({*line} - {None}) > 1]
    if not rows:
        return ""
    figure = Figure(figsize=(12, 2.2 * math.ceil(len(rows) / 3)), layout="constrained")
    for ax, (label, line) in zip(
        figure.subplots(math.ceil(len(rows) / 3), 3, squeeze=False).flat, rows, strict=False
    ):
        ax.plot(
            range(1, len(line) + 1), [math.nan if value is None else value for value in line], "o-"
        )
        ax.set_title(textwrap.fill(label, 42), fontsize=10)
        ax.set_xticks(range(1, len(line) + 1))
        ax.tick_params(labelsize=9)
    for ax in figure.axes[len(rows) :]:
        ax.remove()
    order = ", ".join(f"{k} {report['model']['name']}" for k, report in enumerate(reports, 1))
    alt = (
        f"{len(rows)} headline numbers that change over {len(reports)} checkpoints of "
        f"{first['model']['architecture']}."
    )
    caption = f"The headline numbers that differ, in the order of the columns: {order}."
    return HTML.figure("Over the checkpoints", Markup(widget.image(figure, alt)), caption)


NOT_ONE_EACH = "digits are not one token each"
UNPACKED = " (weights of a 4-bit file)"


def _heads(model: Mapping) -> str:
    return f"{model['heads']} ({model['groups']})" if model["heads"] else "none"


def _context(model: Mapping) -> str:
    return number(model["context"]) if model["context"] else "no limit given"


def _template(model: Mapping) -> str:
    return "yes" if model["chat_template"] else "no: prompts are given as they are"


def _fifty_ones(model: Mapping) -> str:
    tokens = model.get("tokens_of_50_ones")
    if not tokens:
        return "not among its tokens"
    return "50 tokens, one a digit" if tokens == 50 else f"{tokens} tokens: {NOT_ONE_EACH}"


def _facts(reports: Sequence[dict]) -> list[tuple[str, list[str]]]:
    rows = {
        "architecture": lambda m: f"{m['architecture']}",
        "parameters": lambda m: number(m["parameters"]),
        "layers, heads (groups)": lambda m: f"{m['layers']}, {_heads(m)}",
        "what mixes tokens": lambda m: m.get("mixes", "attention"),
        "width, context": lambda m: f"{number(m['width'])}, {_context(m)}",
        "first token": _opened,
        "chat template": _template,
        "fifty ones": _fifty_ones,
        "number type": lambda m: m["dtype"] + UNPACKED * bool(m.get("unpacked_4_bit")),
    }
    cells = [(name, [show(report["model"]) for report in reports]) for name, show in rows.items()]
    return [
        *cells,
        (
            "measured",
            [(f"{report['settings']['plan']} plan, {report['made']}") for report in reports],
        ),
    ]


def _opened(model: Mapping) -> str:
    """Say in words which tokens open each text and why.

    The text also gives the losses on prose that decided this choice, one for each possible opening.
    """
    first = model["first_token"] if model["first_token"] is not None else "none"
    opening = model.get("opening", {"how": "", "losses": {}})
    losses = ", ".join(f"{loss:.2f} ({way})" for way, loss in opening["losses"].items())
    return (
        first
        + (f": {opening['how']}" if opening["how"] else "")
        + (f"; nats a token of prose: {losses}" if losses else "")
    )


def in_short(report: dict) -> list[tuple[str, dict]]:
    """Return the sections with their names, sorted so that those that need attention come first."""
    order = list(SIGNS)
    return sorted(report["sections"].items(), key=lambda item: order.index(item[1].get("level")))


def _section(section: Section, reports: Sequence[dict]) -> tuple[Section, list[tuple], list]:
    """Return a section with its findings and figure for each model, and its headline numbers.

    The headline numbers are arranged side by side.
    """
    parts: list[tuple[str, dict | None, Told | None, Markup | None]] = []
    for report in reports:
        name, measured = report["model"]["name"], report["sections"].get(section.name)
        part = (
            section.tell(measured["numbers"], name)
            if measured and measured["numbers"] is not None
            else None
        )
        parts.append((name, measured, part, part and Markup(widget.image(part.figure, part.alt))))
    return section, parts, _beside([part.headline if part else {} for *_, part, _ in parts])


def _beside(headlines: Sequence[Mapping]) -> list[tuple[str, list[str]]]:
    """Arrange the headline numbers of several models as table rows, one row per label."""
    labels = dict.fromkeys(label for headline in headlines for label in headline)
    return [(label, [_value(headline.get(label)) for headline in headlines]) for label in labels]


def _value(value: float | None) -> str:
    if value is None:
        return "–"
    return number(int(value) if float(value).is_integer() else value, 3 if abs(value) >= 10 else 2)


def comparison(reports: Sequence[dict]) -> str:
    """Write one table with the headline numbers of all reports, one row per report.

    Numbers that need attention are marked.
    """
    reports = told_apart(reports)
    rows: list[tuple[str, list[str]]] = [
        ("plan", [report["settings"]["plan"] for report in reports])
    ]
    for name, section in SECTIONS.items():
        parts = [report["sections"].get(name) or {} for report in reports]
        rows.append((section.title, [HTML.sign(part.get("level")) for part in parts]))
        rows += _beside([part.get("headline", {}) for part in parts])
    return HTML.table(
        [report["model"]["name"] for report in reports], rows, "The models side by side"
    )
