"""The one list of the book's notebooks and pages."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {
    ".ipynb_checkpoints",
    "handouts",
}  # pages of whoever works here; Makefile and _config.yml leave them out, too


def pages() -> list[Path]:
    """Every page of the book, notebook or Markdown, in the order of their names."""
    found = (ROOT / "chapters").rglob("*")
    return sorted(p for p in found if p.suffix in (".ipynb", ".md") and not LEFT_OUT & {*p.parts})


def notebooks() -> list[Path]:
    return [path for path in pages() if path.suffix == ".ipynb"]
