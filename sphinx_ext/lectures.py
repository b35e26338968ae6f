"""The `{lectures}` directive: a table of the decks, from the notebooks' own metadata.

A notebook is a lecture when its metadata says `"lecture": {"minutes": …}`.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive


def lectures(root: Path) -> list[dict]:
    """Title, minutes, number of slides, source and deck name of each lecture, in the order of the book."""
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
        found.append(
            {
                "title": next(line[2:] for line in text.splitlines() if line.startswith("# ")),
                "minutes": notebook["metadata"]["lecture"]["minutes"],
                "slides": sum(kind in ("slide", "subslide") for kind in kinds),
                "path": path,
                "deck": f"{path.parent.name}-{path.stem}.html",
            }
        )
    return found


class Lectures(Directive):
    def run(self):
        root = Path(self.state.document.settings.env.srcdir)
        rows = "".join(
            f'<tr><td>{item["path"].parent.name[0]} {item["path"].stem}</td><td><a href="../slides/{item["deck"]}">{item["title"]}</a></td><td>{item["slides"]}</td>'
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
