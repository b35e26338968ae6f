"""Provide the directive `{drawing} name`, which puts an interactive drawing on a page of the book.

Each drawing also has a separate page, `drawings/<name>.html`, for a frame on another site.
"""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from machine import language
from scriptless import explained

from course import drawing


class Shown(Directive):
    """Show an interactive drawing on a page, with the directive `{drawing}`."""

    required_arguments = 1

    def run(self):
        self.state.document.settings.env.note_reread()
        return [
            nodes.raw(
                "", drawing.show(self.arguments[0], language(self))._repr_html_(), format="html"
            )
        ]


def stand_alone(app, error):
    """Write a page for each drawing at the end of a build."""
    folder = Path(app.outdir) / "drawings"
    if error is None:
        folder.mkdir(exist_ok=True)
        for name in drawing.DRAWINGS:
            (folder / f"{name}.html").write_text(explained(drawing.page(name)))


def setup(app):
    app.add_directive("drawing", Shown)
    app.connect("build-finished", stand_alone)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
