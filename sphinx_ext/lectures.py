"""The `{lectures}` directive: a table of the decks, from the notebooks' own metadata; and pages in two languages.

A notebook is a lecture when its metadata says `"lecture": {"minutes": …}`. Of one that says `"spoken": true` the page has the
words of its cues under each picture. A page of `chapters/zh` is written from the table of words beside its English page
(`tools/editions.py`), and each of the two leads to the other.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import editions

CUE = re.compile(r"<!-- cue: (\d+(?:\.5)?) min\n(.*?)-->", re.S)


def deck(path: Path) -> str:
    """The file name of a notebook's deck."""
    return f"{path.parent.name}-{path.stem}.html" if path.parent.name[0].isdigit() else f"{path.stem}.html"


def lectures(root: Path) -> list[dict]:
    """Title, minutes, number of slides, source, deck and language of each lecture, in the order of the book.

    An edition in another language, whose table of words stands beside the notebook, is a lecture of its own.
    """
    found = []
    for name in re.findall(r"file: (chapters/\S+)", (root / "_toc.yml").read_text()):
        path = root / f"{name}.ipynb"
        if not path.exists():
            continue
        notebook = json.loads(path.read_text())
        if "lecture" not in notebook["metadata"]:
            continue
        text = "\n".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown")
        kinds = [c["metadata"].get("slideshow", {}).get("slide_type") for c in notebook["cells"]]
        item = {
            "title": next(line[2:] for line in text.splitlines() if line.startswith("# ")),
            "minutes": notebook["metadata"]["lecture"]["minutes"],
            "slides": sum(kind in ("slide", "subslide") for kind in kinds),
            "path": path,
            "chapter": path.parent.name if path.parent.name[0].isdigit() else "",
            "deck": deck(path),
            "language": "en",
            "words": None,
        }
        found.append(item)
        for words in sorted(path.parent.glob(f"{path.stem}.*.json")):
            own = json.loads(words.read_text())["frame"]
            edition = {"title": own["title"], "deck": f"{words.stem}.html", "language": own["language"], "words": words}
            found.append(item | edition)
    return found


class Lectures(Directive):
    def run(self):
        root = Path(self.state.document.settings.env.srcdir)
        rows = "".join(
            f'<tr><td>{item["chapter"][:1] or "The"} {item["path"].stem}</td><td><a href="../slides/{item["deck"]}" lang="{item["language"]}">{item["title"]}</a></td><td>{item["slides"]}</td>'
            f'<td>{item["minutes"]} min</td><td><a href="../slides/{item["deck"]}?print-pdf">print</a></td></tr>'
            for item in lectures(root)
        )
        head = "<tr><th>Chapter</th><th>Lecture</th><th>Slides</th><th>Length</th><th>PDF</th></tr>"
        table = f'<table class="table"><thead>{head}</thead><tbody>{rows}</tbody></table>'
        return [nodes.raw("", table, format="html")]


def switch(source: str, address: str, language: str, words: str) -> str:
    """The page with a link to the same page in the other language below its title."""
    link = f'<p class="edition"><a href="{address}" lang="{language}" hreflang="{language}">{words}</a></p>'
    return re.sub(r"^(# .+)$", lambda title: f"{title[1]}\n\n{link}", source, count=1, flags=re.M)


def in_two_languages(app, name, source):
    """Write a page of `chapters/zh`, put what is said on the page of a spoken lecture, and link the two languages."""
    root = Path(app.srcdir)
    path = root / name
    if path.parent.name == "zh":
        table = path.parents[1] / f"{path.name}.zh.json"
        text = switch(editions.page(table), f"../{path.name}.html", "en", "English")
        fonts = Path(app.outdir) / "fonts"
        fonts.mkdir(parents=True, exist_ok=True)
        for weight in editions.WEIGHTS:
            shutil.copy(root / f"_build/editions/{table.stem}-{weight}.woff", fonts)
        faces = "".join(
            f'@font-face{{font-family:"Edition";font-weight:{weight};src:url("../../fonts/{table.stem}-{weight}.woff")}}'
            for weight in editions.WEIGHTS
        )
        base = "--pst-font-family-base-system"
        style = (
            f'<style>{faces}:root:root{{{base}:-apple-system,"Segoe UI","Helvetica Neue",Arial,"Edition",sans-serif}}'
            f"body,main figcaption,main :is(.talk-claim,.talk-foot){{font-family:var({base})!important}}</style>"
        )
        source[0] = f"{text}\n```{{raw}} html\n{style}\n```\n"
        return
    translated = path.with_name(f"{path.name}.zh.json").exists()
    if Path(app.env.doc2path(name)).suffix == ".md":
        source[0] = switch(source[0], f"zh/{path.name}.html", "zh-CN", "中文") if translated else source[0]
        return
    notebook = json.loads(source[0])
    spoken = notebook["metadata"].get("lecture", {}).get("spoken")
    if not (spoken or translated):
        return
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if spoken and "cue" in cell["metadata"].get("tags", []):
            cell["metadata"]["tags"] = []
            cell["source"] = editions.spoken(text)
        elif translated and cell["cell_type"] == "markdown" and text.startswith("# "):
            cell["source"] = switch(text, f"zh/{path.name}.html", "zh-CN", "中文")
    source[0] = json.dumps(notebook)


def language(app, name, template, context, doctree):
    """A page of `chapters/zh` says that it is in Chinese, to readers' programs and to the search."""
    if "/zh/" in name:
        context["language"] = "zh-CN"


def outdated(app, env, added, changed, removed):
    """The pages of `chapters/zh`: they depend on tables that Sphinx does not watch."""
    return [name for name in env.found_docs if "/zh/" in name]


def note_reread(app, env, added, changed, removed):
    return [name for name in env.found_docs if name.endswith("lectures")]


def setup(app):
    app.add_directive("lectures", Lectures)
    app.connect("env-get-outdated", note_reread)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", in_two_languages, priority=600)  # after the outputs stand in a notebook
    app.connect("html-page-context", language)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
