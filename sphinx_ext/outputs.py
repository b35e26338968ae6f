"""Fill pages with the outputs of their notebooks, which `book.execution` runs.

The directive `{times}` lists how long each notebook took.
"""

import zlib
from pathlib import Path

import joblib
import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive

from book import kernels
from book.execution import at_once, environment, execute, executed, kept, key, times
from helpers.widget import SLIDES


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


def swap(app, name, source):
    """Replace the source of a page by its executed notebook."""
    path = Path(app.env.doc2path(name))
    if path.suffix == ".ipynb":
        notebook = executed(path, Path(app.srcdir))
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                output.get("data", {}).pop(SLIDES, None)  # only decks use these drawings
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
