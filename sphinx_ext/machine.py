"""Show the drawing of the machine on the front page.

The directive `{machine}` is the drawing that remains visible while the text scrolls. `{stop} 3
Title` is the text of one stop, with a still picture for print and for browsers without scripts.
`{places}` is the table of The answer in four columns. Each stop is one part of a film.
`course/drawing/film.toml` has a state of the drawing for each sentence, and `machine.js` plays them
as the reader scrolls.
"""

import html
import json
import re
from pathlib import Path

from chapters import byline, row
from docutils import nodes
from docutils.parsers.rst import Directive

from course import drawing
from helpers import words

# the machine needs the whole width, so the list of pages is hidden behind ☰
WITHOUT_MENU = """<script>
document.addEventListener("DOMContentLoaded", () =>
  document.getElementById("pst-primary-sidebar")?.classList.add("pst-sidebar-hidden"));
</script>"""
COLUMNS = {"place": "Where", "reader": "Lost to whom", "helps": "What helps", "price": "Price"}


def language(directive: Directive) -> str:
    """Return the language of a page, which is "zh" in `chapters/zh`."""
    return (
        "zh" if directive.state.document.settings.env.docname.startswith("chapters/zh/") else "en"
    )


def raw(text: str) -> nodes.raw:
    """Return a node that contains HTML."""
    return nodes.raw("", text, format="html")


class Machine(Directive):
    """Show the machine on a page, with the directive `{machine}`."""

    has_content = True

    def run(self):
        self.state.document.settings.env.note_reread()
        stops = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, stops)
        figure = drawing.show("machine", language(self))._repr_html_()
        opening = (
            f'<div class="machine-page"><div class="machine-stays">{figure}</div><div '
            'class="machine-stops">'
        )
        return [raw(WITHOUT_MENU + opening), *stops.children, raw("</div></div>")]


# a sentence ends here; in Chinese there is no space between two sentences
END = re.compile(r"(?<=[.?!])\s+|(?<=[。？！])(?![”’）])")


def sentences(paragraph: nodes.paragraph) -> list[list[nodes.Node]]:
    """Split a paragraph into sentences.

    We split only outside bold text, links and formulas. The space after a sentence belongs to the
    sentence before it.
    """
    spans: list[list[nodes.Node]] = [[]]
    for child in paragraph.children:
        if not isinstance(child, nodes.Text):
            spans[-1].append(child)
            continue
        text, start = str(child), 0
        for end in END.finditer(text):
            spans[-1].append(nodes.Text(text[start : end.end()]))
            spans.append([])
            start = end.end()
        spans[-1].append(nodes.Text(text[start:]))
    return [span for span in spans if "".join(node.astext() for node in span).strip()]


def filmed(paragraph: nodes.paragraph, stop: int, language: str) -> None:
    """Mark each sentence of a stop's paragraph with the state of the drawing that belongs to it.

    Raises:
        ValueError: if the paragraph does not have as many sentences as the film has states.
    """
    spans, states = sentences(paragraph), drawing.film(stop)
    if len(spans) != len(states):
        raise ValueError(
            f"film.toml must have a state for each sentence of stop {stop}, but the text "
            f"({language}) has {len(spans)} sentences and the film {len(states)} states"
        )
    paragraph.children = []
    for span, state in zip(spans, states, strict=True):
        opening = f'<span class="film-step" data-state="{html.escape(json.dumps(state))}">'
        paragraph += [raw(opening), *span, raw("</span>")]


class Stop(Directive):
    """Show the text of one stop of the machine, with the directive `{stop}`."""

    required_arguments = 2
    final_argument_whitespace = True
    has_content = True

    def run(self):
        number, title = int(self.arguments[0]), self.arguments[1]
        content = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, content)
        if number == 0:
            self.introduce(content)
        if drawing.film(number):
            filmed(next(content.findall(nodes.paragraph)), number, language(self))
        picture = drawing.picture("machine", number, True, language(self))
        still = f'<div class="machine-still">{picture}</div>'
        heading = f'<h2><a href="#stop-{number}">{number}</a> {html.escape(title)}</h2>'
        return [
            raw(f'<section id="stop-{number}"><div class="stop-text">{heading}'),
            *content.children,
            raw(f"</div>{still}</section>"),
        ]

    def introduce(self, content: nodes.container) -> None:
        """Say after the guess for whom the course is, and name the chapters after the text."""
        root = Path(self.state.document.settings.env.srcdir)
        content.insert(1, raw(byline(root)))
        content += raw(row(root, "../" * (language(self) == "zh")))


class Places(Directive):
    """Show the places where information is lost as a table, with the directive `{places}`."""

    def run(self):
        from course.scorecard import answer

        head = "".join(
            f'<th scope="col">{words.translated(name)}</th>' for name in COLUMNS.values()
        )
        rows = "".join(
            (
                f'<tr><th scope="row"><a href="#stop-{row.chapter}">{row.chapter}</a> '
                f"{html.escape(words.translated(row.place))}</th>"
            )
            + "".join(answer.cell(getattr(row, name)) for name in list(COLUMNS)[1:])
            + "</tr>"
            for row in answer.BOTTLENECKS
        )
        return [
            raw(
                "<table "
                f'class="answer-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
            )
        ]


def setup(app):
    for name, directive in (("machine", Machine), ("stop", Stop), ("places", Places)):
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
