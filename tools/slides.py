"""Make a reveal.js deck of every lecture, from the outputs that the book's execution cache already holds."""

import re
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from nbclient import NotebookClient
from nbconvert import SlidesExporter
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sphinx_ext"))
from callouts import KINDS  # noqa: E402
from execution import key  # noqa: E402
from lectures import lectures  # noqa: E402

OPENING = re.compile(r"<blockquote>(\s*<p><strong>(\w+))")


def callout(match: re.Match) -> str:
    """Give a blockquote the class of its first bold word, as `sphinx_ext/callouts.py` does."""
    kind = match[2].lower()
    return f'<blockquote class="callout {kind}">{match[1]}' if kind in KINDS else match[0]


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs: from the cache that the book fills, else by running it."""
    notebook = nbformat.read(path, as_version=4)
    try:
        return get_cache(ROOT / "_build/.execution" / key(ROOT)).merge_match_into_notebook(notebook)[1]
    except KeyError:
        print(f"executing {path.relative_to(ROOT)}")
        return NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()


def main() -> None:
    out = ROOT / "_build/html/slides"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.html"):
        old.unlink()
    style = (ROOT / "slides/lecture/lecture.css").read_text() + HtmlFormatter().get_style_defs(".highlight")
    exporter = SlidesExporter(template_name="lecture", extra_template_basedirs=[str(ROOT / "slides")])
    for item in lectures(ROOT):
        notebook = executed(item["path"])
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        page, _ = exporter.from_notebook_node(notebook, {"style": style, "title": item["title"]})
        (out / item["deck"]).write_text(OPENING.sub(callout, page))
        print(f"slides/{item['deck']}: {item['slides']} slides, {len(page) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
