"""List the book's notebooks and pages in one place.

`make sync` reads this module without any package installed.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# patterns of what `_config.yml` leaves out of the book, which the Makefile reads there, too
PATTERNS = re.search(r"^exclude_patterns: *\[(.*)\]", (ROOT / "_config.yml").read_text(), re.M)[1]
LEFT_OUT = {Path(name.strip(" \"'")).name for name in PATTERNS.split(",")}


def pages(*more: str) -> list[Path]:
    """Return every page of the book, notebook or Markdown, sorted by name.

    `more` adds other endings.
    """
    paths = (p for p in (ROOT / "chapters").rglob("*") if p.suffix in (".ipynb", ".md", *more))
    return sorted(p for p in paths if not LEFT_OUT & {*p.relative_to(ROOT).parts})


def notebooks() -> list[Path]:
    """Return the paths of all notebooks of the book."""
    return [path for path in pages() if path.suffix == ".ipynb"]
