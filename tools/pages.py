"""The one list of the book's notebooks and pages."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
# names of what `_config.yml` leaves out of the book; the Makefile reads them there, too
LEFT_OUT = {
    Path(name).name
    for name in yaml.safe_load((ROOT / "_config.yml").read_text())["exclude_patterns"]
}


def pages(*more: str) -> list[Path]:
    """Every page of the book, notebook or Markdown, in the order of their names; `more` are other endings to take."""
    found = (p for p in (ROOT / "chapters").rglob("*") if p.suffix in (".ipynb", ".md", *more))
    return sorted(p for p in found if not LEFT_OUT & {*p.relative_to(ROOT).parts})


def notebooks() -> list[Path]:
    return [path for path in pages() if path.suffix == ".ipynb"]
