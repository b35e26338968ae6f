"""Fill pages with the outputs of their notebooks, which `book.execution` runs.

The directive `{times}` lists how long each notebook took.
"""

import re
import zlib
from pathlib import Path

import joblib
import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive

from book import kernels
from book.execution import at_once, environment, execute, executed, kept, key, times
from helpers.widget import SLIDES

HEAD = re.compile(r"<thead>.*?</thead>", re.S)
CELL = re.compile(r"<th\b[^>]*>.*?</th>", re.S)
EMPTY = re.compile(r"<th\b([^>]*)>(?:\s|&nbsp;)*</th>")


def _notebooks(env, names) -> list[Path]:
    paths = (Path(env.doc2path(name)) for name in sorted(names))
    return [path for path in paths if path.suffix == ".ipynb"]


def outdated(app, env, added, changed, removed):
    """Return the pages whose notebooks have new outputs since the page was made."""
    root, before = Path(app.srcdir), getattr(env, "execution_keys", {})
    env.execution_keys = {}
    for path in _notebooks(env, env.found_docs):
        env.execution_keys[path] = key(path, root)
        if not kept(path, root).exists():
            kernels.begin(environment(root), root)
    new = {path for path, current in env.execution_keys.items() if before.get(path) != current}
    return [name for name in env.found_docs if Path(env.doc2path(name)) in new]


def fill(app, env, names):
    """Execute the notebooks of the pages that Sphinx is about to read."""
    more = [path for paths in app.emit("executing", names) for path in paths]
    execute(_notebooks(env, env.found_docs) + more, Path(app.srcdir))
    for name in app.extensions.keys() & {"sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"}:
        # these extensions act after all pages are read, but do not say that they are parallel-safe
        app.extensions[name].parallel_read_safe = True


def one_head(table: str) -> str:
    """Return the HTML of an output with a single head row in each of its tables.

    pandas writes the name of a frame's index into a second head row, below an empty cell. We move
    the name into the first row. A cell that stays empty names no column, so it becomes a `td`.

    >>> one_head("<thead><tr><th></th><th>a</th></tr><tr><th>n</th><th></th></tr></thead>")
    '<thead><tr><th>n</th><th>a</th></tr></thead>'
    >>> one_head("<thead><tr><th></th><th>a</th></tr></thead>")
    '<thead><tr><td></td><th>a</th></tr></thead>'
    """
    return HEAD.sub(lambda match: EMPTY.sub(r"<td\1></td>", _joined(match[0])), table)


def _joined(head: str) -> str:
    rows = [CELL.findall(row) for row in re.findall(r"<tr.*?</tr>", head, re.S)]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]) or "span=" in head:
        return head
    pairs = list(zip(*rows, strict=True))
    empty = [[bool(EMPTY.fullmatch(cell)) for cell in pair] for pair in pairs]
    if any(above == below for above, below in empty):
        return head
    cells = "".join(pair[is_empty] for pair, (is_empty, _) in zip(pairs, empty, strict=True))
    opening = re.search(r"<tr[^>]*>", head)[0]
    return f"<thead>{opening}{cells}</tr></thead>"


def swap(app, name, source):
    """Replace the source of a page by its executed notebook."""
    path = Path(app.env.doc2path(name))
    if path.suffix == ".ipynb":
        notebook = executed(path, Path(app.srcdir))
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                data.pop(SLIDES, None)  # only decks use these drawings
                if "text/html" in data:
                    data["text/html"] = one_head(data["text/html"])
        source[0] = nbformat.writes(notebook)


class Times(Directive):
    """Show a table of the notebooks' measured times, with the directive `{times}`."""

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        rows = times(_notebooks(env, env.found_docs), Path(env.srcdir))
        cells = "".join(
            f"<tr><td>{name}</td><td>{seconds:.0f} s</td><td>{on}</td></tr>"
            for name, seconds, on in rows
        )
        note = (
            f"{joblib.cpu_count()} CPU cores, {at_once()} notebooks at once: "
            f"{sum(r[1] for r in rows) / 60:.1f} minutes"
        )
        head = "<tr><th>Notebook</th><th>Time</th><th>Executed on</th></tr>"
        table = (
            f'<table class="table"><caption>{note}</caption>'
            f"<thead>{head}</thead><tbody>{cells}</tbody></table>"
        )
        return [nodes.raw("", table, format="html")]


def setup(app):
    app.add_directive("times", Times)
    app.add_event(
        "executing"
    )  # the pages that are read tell us which notebooks to execute in addition to the book's
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", fill)
    app.connect("source-read", swap)
    app.parallel = (
        at_once()
    )  # pages are read and written in this many processes, for which Jupyter Book has no option
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return {
        "version": "2",
        "env_version": zlib.crc32(sources),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
