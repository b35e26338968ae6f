"""Read the title, the question and the minutes of a chapter from its notebooks."""

import html
import json
import re
from pathlib import Path

import yaml

from book import editions, reading


def listed(root: Path) -> list[Path]:
    """Return the paths of the lessons of all chapters, in the order of the book."""
    parts = yaml.safe_load((root / "_toc.yml").read_text())["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    return [
        path
        for name in files
        if name.endswith("/lesson") and (path := root / f"{name}.ipynb").exists()
    ]


def markdown(path: Path) -> str:
    """Return the text of a notebook's Markdown cells."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def said(text: str, word: str) -> str:
    """Return the text after `> **word.**` in a page, as HTML."""
    match = re.search(rf"^> \*\*{word}[.。]\*\* (.+?)(?:\n(?!>)|\Z)", text, re.M | re.S)
    plain = html.escape(re.sub(r"\n> ?", " ", match[1]).strip()) if match else ""
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", plain)
    plain = re.sub(r"\*\*(.+?)\*\*|\*(.+?)\*", lambda m: f"<em>{m[1] or m[2]}</em>", plain)
    return re.sub(
        r"\$(.+?)\$", r'<span class="math notranslate nohighlight">\\(\1\\)</span>', plain
    )


def question(path: Path) -> str:
    """Return the question of a page, in the language of the page."""
    home, in_chinese, name = path.with_suffix(".zh.po").as_posix().rpartition("/chapters/zh/")
    if in_chinese:
        return said(next(iter(editions.texts(Path(home, "chapters", name)).values())), "问题")
    text = path.read_text() if path.suffix == ".md" else markdown(path)
    return said(text, "Question")


def minutes(path: Path) -> int:
    """Return the minutes of a lesson or lab as a lecture, or of a chapter's exercises in total."""
    metadata = json.loads(path.read_text())["metadata"]
    for kind in ("lecture", "workshop"):
        if kind in metadata:
            return metadata[kind]["minutes"]
    return sum(int(m) for m in re.findall(r"^●+ .*?(\d+) minutes$", markdown(path), re.M))


def to_read(path: Path) -> int:
    """Return how many minutes it takes to read a part of a chapter.

    For a lesson or lab we compute the minutes from the page. Other parts state the minutes
    themselves.
    """
    return reading.minutes(path) if path.stem in ("lesson", "sinks", "lab") else minutes(path)
