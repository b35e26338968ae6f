"""Compute how long it takes to study a page, from the parts that are visible on it.

    python -m book.reading [PAGE …]     minutes of each page, or of each section of the named pages

The rates are for a graduate student who reads English as a second language and understands each
step once. Adults read English prose at about 240 words a minute in their first language (Brysbaert,
2019) and at two thirds of that in a second one. A page with mathematics is read more than twice, so
we count about 70 words a minute. A line of open code takes 15 seconds, a symbol or formula in a
sentence 8, a displayed formula 40, a picture, table or printed output 60, and a control or a guess
80.

We set the rates twice. The first ones (90 words a minute, 12 seconds a line, 6, 30, 45 and 60) came
from two reviews, which had counted 289 minutes for lessons 1 to 6. They gave 45 to 50 minutes for
most lessons, but readers with fresh eyes took 50 to 90. So everything takes about a third longer
now, and the lessons have 50 to 75 minutes. No group of students was timed. Folded parts do not
count, because most readers leave them closed.
"""

import argparse
import ast
import json
import re
from pathlib import Path

from book.pages import ROOT

WORDS = 70  # words per minute
# in minutes each
LINE, SYMBOL, FORMULA, OUTPUT, CONTROL = 15 / 60, 8 / 60, 40 / 60, 60 / 60, 80 / 60
FOLDED = {"hide-input", "hide-cell", "remove-cell", "cue"}
HIDDEN = re.compile(r"<details.*?</details>|<!--.*?-->", re.S)
DISPLAYED = re.compile(r"\$\$.+?\$\$", re.S)
INLINE = re.compile(r"\$[^$\n]+\$")
TABLE = re.compile(r"^(?:> )?\|[-: |]+\|$", re.M)
PANEL = re.compile(r"\b(drawing\.show|explore|predict\.ask|Atlas)\(")


def minutes_of_text(text: str) -> float:
    """Return how many minutes it takes to study a Markdown text with its formulas and tables."""
    text, displayed = DISPLAYED.subn(" ", HIDDEN.sub(" ", text))
    text, symbols = INLINE.subn(" ", text)
    words = re.findall(r"[^\W_]{2,}", re.sub(r"\]\([^)]*\)|<[^>]+>", " ", text))
    extras = FORMULA * displayed + SYMBOL * symbols + OUTPUT * len(TABLE.findall(text))
    return len(words) / WORDS + extras


def minutes_of_cell(cell: dict) -> float:
    """Return how many minutes it takes to study a cell.

    We count the text, or the code lines that are not folded and the visible outputs.
    """
    source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
    if tags & {"cue", "remove-cell"}:
        return 0.0
    if cell["cell_type"] == "markdown":
        return minutes_of_text(source)
    lines = [
        line for line in source.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    body = ast.parse(source).body
    shown = bool(body) and isinstance(body[-1], ast.Expr)
    panels = len(PANEL.findall(source))
    extras = CONTROL * panels if panels else OUTPUT * shown
    return extras + (0 if tags & FOLDED else LINE * len(lines))


def sections(path: Path) -> dict[str, float]:
    """Return the minutes of each section of a page.

    Sections begin at second-level headings. The first part is named after the page's title.
    """
    if path.suffix == ".md":
        parts = re.split(r"^#{1,2} (.+)$", path.read_text(), flags=re.M)
        return {
            title: minutes_of_text(text)
            for title, text in zip(parts[1::2], parts[2::2], strict=True)
        }
    by_title, title = {}, ""
    for cell in json.loads(path.read_text())["cells"]:
        heading = (
            re.search(r"^#{1,2} (.+)$", "".join(cell["source"]), re.M)
            if cell["cell_type"] == "markdown"
            else None
        )
        title = heading[1] if heading else title
        if title:
            by_title[title] = by_title.get(title, 0.0) + minutes_of_cell(cell)
    return by_title


def minutes(path: Path, first: int = 0) -> int:
    """Return the minutes of a page, rounded up to the next five.

    With `first`, return those of its title and its first `first` sections, rounded up to the next
    minute.
    """
    every = [*sections(path).values()]
    return round(sum(every[: first + 1])) if first else max(5 * round(sum(every) / 5), 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "pages",
        nargs="*",
        type=Path,
        help="notebooks or Markdown pages, shown by section (default: all lessons and labs)",
    )
    chosen = parser.parse_args()
    for path in chosen.pages or sorted(ROOT.glob("chapters/[1-7]-*/l*.ipynb")):
        print(f"{minutes(path):4} min  {path}")
        for title, spent in sections(path).items() if chosen.pages else ():
            print(f"     {spent:5.1f}  {title}")


if __name__ == "__main__":
    main()
