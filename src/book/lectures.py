"""List the lectures of the book and their decks.

A lecture is a notebook whose metadata has `"lecture": {"minutes": …}`.
"""

import json
import re
from pathlib import Path

from book import editions


def deck(path: Path) -> str:
    """Return the file name of a notebook's deck."""
    return (
        f"{path.parent.name}-{path.stem}.html"
        if path.parent.name[0].isdigit()
        else f"{path.stem}.html"
    )


def lectures(root: Path) -> list[dict]:
    """Return the lectures of the book in order.

    Each has its title, minutes, number of slides, source, deck and language. An edition in another
    language is a separate lecture if its PO file contains the cues.
    """
    items = []
    for name in re.findall(r"file: (chapters/\S+)", (root / "_toc.yml").read_text()):
        path = root / f"{name}.ipynb"
        if not path.exists():
            continue
        notebook = json.loads(path.read_text())
        if "lecture" not in notebook["metadata"]:
            continue
        text = "\n".join(
            "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"
        )
        kinds = [c["metadata"].get("slideshow", {}).get("slide_type") for c in notebook["cells"]]
        item = {
            "title": next(line[2:] for line in text.splitlines() if line.startswith("# ")),
            "minutes": notebook["metadata"]["lecture"]["minutes"],
            "questions": notebook["metadata"]["lecture"].get("questions", 0),
            "slides": sum(kind in ("slide", "subslide") for kind in kinds),
            "path": path,
            "chapter": path.parent.name if path.parent.name[0].isdigit() else "",
            "deck": deck(path),
            "language": "en",
            "words": None,
        }
        items.append(item)
        for table in editions.tables(path):
            if editions.spoken_too(table):
                title = re.search("^# (.+)", "\n".join(editions.texts(table).values()), re.M)[1]
                edition = {
                    "title": title,
                    "deck": f"{editions.stem(table)}.html",
                    "language": "zh-CN",
                }
                items.append(item | edition | {"words": table})
    return items
