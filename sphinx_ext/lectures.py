"""The `{lectures}` directive: a table of the decks, from the notebooks' own metadata.

A notebook is a lecture when its metadata says `"lecture": {"minutes": …}`.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

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


def note_reread(app, env, added, changed, removed):
    return [name for name in env.found_docs if name.endswith("lectures")]


def setup(app):
    app.add_directive("lectures", Lectures)
    app.connect("env-get-outdated", note_reread)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
