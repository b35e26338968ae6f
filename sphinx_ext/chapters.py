"""Show on pages what the notebooks say about their chapters.

The directive `{chapters}` draws a card for each chapter, and `row` writes a line of links to the
lessons. Links to the previous and the next page name the question of that page.
"""

import html
import re
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

from book.chapters import listed, markdown, question, to_read
from course import drawing
from helpers import words

SAID = {
    "lesson": "reading",
    "build": "workshop",
    "yours": "now yours",
    "own": "your page",
}  # the names of the parts on a card


def title(path: Path) -> str:
    """Return the title of a chapter's lesson as HTML, in the language of the page."""
    return html.escape(words.translated(re.search(r"^# (.+)$", markdown(path), re.M)[1]))


def row(root: Path, up: str) -> str:
    """Return one line of links to the lessons of all chapters. `up` is as in `Chapters.card`."""
    links = "".join(
        f'<a href="{up * (not path.with_suffix(".zh.po").exists())}{path.parent.name}/lesson.html">'
        f"{path.parent.name[0]} {title(path)}</a>"
        for path in listed(root)
    )
    name = words.translated("Chapters")
    return f'<nav class="chapter-row" aria-label="{name}"><strong>{name}</strong>{links}</nav>'


def byline(root: Path) -> str:
    """Return a line that says for whom the course is, where it comes from, and how old it is."""
    released = yaml.safe_load((root / "CITATION.cff").read_text())["date-released"]
    said = words.translated(
        "For graduate students, engineers who build language models, and lecturers. "
        "Begun as a talk by MTandHJ. Free to read, copy and change."
    )
    return f'<p class="byline">{said} <time>{released}</time></p>'


class Chapters(Directive):
    """Show a card for each chapter, with the directive `{chapters}`."""

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        root = Path(env.srcdir)
        up = "../" * Path(env.docname).parent.name.startswith("zh")
        cards = "".join(self.card(path, root, up) for path in listed(root))
        return [nodes.raw("", f'<div class="chapter-cards">{cards}</div>', format="html")]

    def card(self, path: Path, root: Path, up: str) -> str:
        """Return the HTML card of a chapter.

        `up` leads to the English pages from a page of editions, where cards lead to editions if
        there are some.
        """
        folder = path.parent.name
        parts = [
            (name, path.parent / f"{name}.ipynb")
            for name in ("lesson", "sinks", "lab", "exercises", "yours", "build", "own")
            if (path.parent / f"{name}.ipynb").exists()
        ]

        def there(part: Path) -> str:
            return f"{up * (not part.with_suffix('.zh.po').exists())}{folder}/{part.stem}.html"

        links = " · ".join(
            (
                f'<a href="{there(part)}">{words.translated(SAID.get(name, name))}</a> '
                f"{words.translated(f'{to_read(part)} min')}"
            )
            for name, part in parts
        )
        asked = question(root / "chapters/zh" / path.relative_to(root / "chapters") if up else path)
        return (
            f'<article class="chapter-card"><h3><a href="{there(path)}">{folder[0]}. '
            f"{title(path)}</a></h3>"
            f'<p class="chapter-question">{asked}</p>'
            f"{drawing.emblem(folder, 'zh' if up else 'en')}"
            f"<p><small>{links}</small></p></article>"
        )


def name_questions(app, pagename, templatename, context, doctree):
    """Add to the links to the previous and next page the question of that page."""
    pages = {app.builder.get_relative_uri(pagename, name): name for name in app.env.found_docs}
    for side in ("prev", "next"):
        if (link := context.get(side)) and (name := pages.get(link["link"])):
            headline = question(Path(app.env.doc2path(name)))
            link["title"] = link["title"] + (
                f'<br><small class="asked">{headline}</small>' if headline else ""
            )


def setup(app):
    app.add_directive("chapters", Chapters)
    app.connect("html-page-context", name_questions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
