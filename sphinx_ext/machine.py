"""The front page: `{machine}` is the drawing that stays while its text scrolls past, `{stop} 3 Title` the text of one stop
with its still picture for print and for where scripts do not run, `{places}` the table of The answer in four columns."""

import html

from docutils import nodes
from docutils.parsers.rst import Directive

from course import drawing
from helpers import words

COLUMNS = {"place": "Where", "reader": "Lost to whom", "helps": "What helps", "price": "Price"}


def language(directive: Directive) -> str:
    """The language of a page: "zh" in `chapters/zh`."""
    return (
        "zh" if directive.state.document.settings.env.docname.startswith("chapters/zh/") else "en"
    )


def raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


class Machine(Directive):
    has_content = True

    def run(self):
        self.state.document.settings.env.note_reread()
        held = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, held)
        figure = drawing.show("machine", language(self))._repr_html_()
        opening = f'<div class="machine-page"><div class="machine-stays">{figure}</div><div class="machine-stops">'
        return [raw(opening), *held.children, raw("</div></div>")]


class Stop(Directive):
    required_arguments = 2
    final_argument_whitespace = True
    has_content = True

    def run(self):
        number, title = int(self.arguments[0]), self.arguments[1]
        held = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, held)
        still = f'<div class="machine-still">{drawing.picture("machine", number, True, language(self))}</div>'
        heading = f'<h2><a href="#stop-{number}">{number}</a> {html.escape(title)}</h2>'
        return [
            raw(f'<section id="stop-{number}">{heading}'),
            *held.children,
            raw(f"{still}</section>"),
        ]


class Places(Directive):
    def run(self):
        from course.scorecard import answer

        head = "".join(
            f'<th scope="col">{words.translated(name)}</th>' for name in COLUMNS.values()
        )
        rows = "".join(
            f'<tr><th scope="row"><a href="#stop-{row.chapter}">{row.chapter}</a> {html.escape(words.translated(row.place))}</th>'
            + "".join(
                answer.cell(title, getattr(row, name)) for name, title in list(COLUMNS.items())[1:]
            )
            + "</tr>"
            for row in answer.BOTTLENECKS
        )
        return [
            raw(
                f'<table class="answer-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
            )
        ]


def setup(app):
    for name, directive in (("machine", Machine), ("stop", Stop), ("places", Places)):
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
