"""Make a reveal.js deck of every lecture, from the outputs that the build of the book already holds."""

import re
import sys
from pathlib import Path

from nbconvert import SlidesExporter
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sphinx_ext"))
from callouts import KINDS  # noqa: E402
from execution import execute, executed  # noqa: E402
from lectures import lectures  # noqa: E402

OPENING = re.compile(r"<blockquote>(\s*<p><strong>(\w+))")


def callout(match: re.Match) -> str:
    """Give a blockquote the class of its first bold word, as `sphinx_ext/callouts.py` does."""
    kind = match[2].lower()
    return f'<blockquote class="callout {kind}">{match[1]}' if kind in KINDS else match[0]


def main() -> None:
    out = ROOT / "_build/html/slides"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.html"):
        old.unlink()
    style = (ROOT / "slides/lecture/lecture.css").read_text() + HtmlFormatter().get_style_defs(".highlight")
    exporter = SlidesExporter(template_name="lecture", extra_template_basedirs=[str(ROOT / "slides")])
    found = lectures(ROOT)
    execute([item["path"] for item in found], ROOT)
    for item in found:
        notebook = executed(item["path"], ROOT)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        page, _ = exporter.from_notebook_node(notebook, {"style": style, "title": item["title"]})
        (out / item["deck"]).write_text(OPENING.sub(callout, page))
        print(f"slides/{item['deck']}: {item['slides']} slides, {len(page) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
