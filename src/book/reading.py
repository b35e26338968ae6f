"""How long a page takes to read, computed from what stands open on it.

    python -m book.reading [PAGE …]     minutes of each page, or of each section of the pages that are named

A minute has 150 words of mathematical prose; a line of open code takes 8 seconds, a formula 10, a
control or a guess 30. All of it is multiplied by PACE, for pictures, outputs and second looks. PACE
was set once, by the times that one careful reader of lessons 1 to 3 wrote down (40, 75 to 90 and 55
to 60 minutes). What is folded is not counted.
"""

import argparse
import json
import re
from pathlib import Path

from book.pages import ROOT

WORDS, LINE, FORMULA, CONTROL, PACE = 150, 8 / 60, 10 / 60, 0.5, 2.2
FOLDED = {"hide-input", "hide-cell", "remove-cell", "cue"}
HIDDEN = re.compile(r"<details.*?</details>|<!--.*?-->", re.S)
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.S)
PANEL = re.compile(r"\b(explore|guess\w*|drawing|choice)\(")


def minutes_of_text(text: str) -> float:
    """Return the minutes of a Markdown text: its words, and its formulas."""
    text = HIDDEN.sub(" ", text)
    formulas = MATHS.findall(text)
    words = re.findall(r"[^\W_]{2,}", re.sub(r"\]\([^)]*\)|<[^>]+>", " ", MATHS.sub(" ", text)))
    return len(words) / WORDS + FORMULA * len(formulas)


def minutes_of_cell(cell: dict) -> float:
    """Return the minutes of a cell of a notebook; a folded cell has only its controls."""
    source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
    if "cue" in tags or "remove-cell" in tags:
        return 0.0
    if cell["cell_type"] == "markdown":
        return minutes_of_text(source)
    lines = [
        line for line in source.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    return CONTROL * len(PANEL.findall(source)) + (0 if tags & FOLDED else LINE * len(lines))


def sections(path: Path) -> dict[str, float]:
    """Return the minutes of a page by section (second-level headings; the first part has the page's
    title).
    """
    if path.suffix == ".md":
        parts = re.split(r"^#{1,2} (.+)$", path.read_text(), flags=re.M)
        return {
            title: minutes_of_text(text)
            for title, text in zip(parts[1::2], parts[2::2], strict=True)
        }
    found, title = {}, ""
    for cell in json.loads(path.read_text())["cells"]:
        heading = (
            re.search(r"^#{1,2} (.+)$", "".join(cell["source"]), re.M)
            if cell["cell_type"] == "markdown"
            else None
        )
        title = heading[1] if heading else title
        if title:
            found[title] = found.get(title, 0.0) + minutes_of_cell(cell)
    return found


def minutes(path: Path, first: int = 0) -> int:
    """Return the minutes of a page, to the next five, or of its title and its first so many
    sections, to the next one.
    """
    every = [PACE * each for each in sections(path).values()]
    return round(sum(every[: first + 1])) if first else max(5 * round(sum(every) / 5), 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pages", nargs="*", type=Path)
    chosen = parser.parse_args()
    for path in chosen.pages or sorted(ROOT.glob("chapters/[1-7]-*/l*.ipynb")):
        print(f"{minutes(path):4} min  {path}")
        for title, each in sections(path).items() if chosen.pages else ():
            print(f"     {PACE * each:5.1f}  {title}")


if __name__ == "__main__":
    main()
