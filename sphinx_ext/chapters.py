"""What pages of the book say about the chapters, read from the notebooks themselves.

`{chapters}`: a card for each chapter. Links to the previous and the next page name its question.
"""

import html
import json
import re
import sys
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import editions
import reading

from course import drawing
from helpers import words


def listed(root: Path) -> list[Path]:
    """The lesson of each chapter, in the order of the book."""
    parts = yaml.safe_load((root / "_toc.yml").read_text())["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    return [
        path
        for name in files
        if name.endswith("/lesson") and (path := root / f"{name}.ipynb").exists()
    ]


def markdown(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def said(text: str, word: str) -> str:
    """What stands after `> **word.**`, as HTML."""
    found = re.search(rf"^> \*\*{word}[.。]\*\* (.+?)(?:\n(?!>)|\Z)", text, re.M | re.S)
    plain = html.escape(re.sub(r"\n> ?", " ", found[1]).strip()) if found else ""
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", plain)
    plain = re.sub(r"\*\*(.+?)\*\*|\*(.+?)\*", lambda m: f"<em>{m[1] or m[2]}</em>", plain)
    return re.sub(
        r"\$(.+?)\$", r'<span class="math notranslate nohighlight">\\(\1\\)</span>', plain
    )


def question(path: Path) -> str:
    """What a page asks, in its language."""
    home, here, name = path.with_suffix(".zh.po").as_posix().rpartition("/chapters/zh/")
    if here:
        return said(next(iter(editions.texts(Path(home, "chapters", name)).values())), "问题")
    text = path.read_text() if path.suffix == ".md" else markdown(path)
    return said(text, "Question")


def minutes(path: Path) -> int:
    """How long a lesson or lab takes as a lecture, or the exercises of a chapter take together."""
    metadata = json.loads(path.read_text())["metadata"]
    for kind in ("lecture", "workshop"):
        if kind in metadata:
            return metadata[kind]["minutes"]
    return sum(int(m) for m in re.findall(r"^●+ .*?(\d+) minutes$", markdown(path), re.M))


def to_read(path: Path) -> int:
    """How long a part of a chapter takes alone: a lesson or lab as computed from what stands on it, else as it says."""
    return reading.minutes(path) if path.stem in ("lesson", "lab") else minutes(path)


SAID = {
    "lesson": "reading",
    "build": "workshop",
    "yours": "now yours",
    "own": "your page",
}  # what a card calls a part


class Chapters(Directive):
    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        root = Path(env.srcdir)
        up = "../" * Path(env.docname).parent.name.startswith("zh")
        cards = "".join(self.card(path, up) for path in listed(root))
        return [nodes.raw("", f'<div class="chapter-cards">{cards}</div>', format="html")]

    def card(self, path: Path, up: str) -> str:
        """A card; `up` is the way to the English pages, from a page of editions that leads to editions where there are some."""
        text, folder = markdown(path), path.parent.name
        title = re.search(r"^# (.+)$", text, re.M)[1]
        parts = [
            (name, path.parent / f"{name}.ipynb")
            for name in ("lesson", "lab", "exercises", "yours", "build", "own")
            if (path.parent / f"{name}.ipynb").exists()
        ]

        def there(part: Path) -> str:
            return f"{up * (not part.with_suffix('.zh.po').exists())}{folder}/{part.stem}.html"

        links = " · ".join(
            f'<a href="{there(part)}">{words.translated(SAID.get(name, name))}</a> {words.translated(f"{to_read(part)} min")}'
            for name, part in parts
        )
        return (
            f'<article class="chapter-card"><h3><a href="{there(path)}">{folder[0]}. {html.escape(words.translated(title))}</a></h3>'
            f'<p class="chapter-question">{words.translated(question(path))}</p>{drawing.emblem(folder, "zh" if up else "en")}'
            f"<p><small>{links}</small></p></article>"
        )


def name_questions(app, pagename, templatename, context, doctree):
    """Let the links to the previous and the next page say what these pages ask."""
    pages = {app.builder.get_relative_uri(pagename, name): name for name in app.env.found_docs}
    for side in ("prev", "next"):
        if (link := context.get(side)) and (name := pages.get(link["link"])):
            asked = question(Path(app.env.doc2path(name)))
            link["title"] = link["title"] + (
                f'<br><small class="asked">{asked}</small>' if asked else ""
            )


def setup(app):
    app.add_directive("chapters", Chapters)
    app.connect("html-page-context", name_questions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
