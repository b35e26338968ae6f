"""The `{data-table} name` directive: a table of `data/` as it is, under the first line of its head, with the rest folded below."""

import csv
import html
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive


def shown(path: Path) -> str:
    """The table as HTML.

    Raises:
        ValueError: no head that says where the numbers come from, or a row of another length.
    """
    lines = path.read_text().splitlines()
    head = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    names, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    if not head or any(len(row) != len(names) for row in rows):
        raise ValueError(f"{path.name} must have a head and rows of one length")
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>{"".join(f"<td>{html.escape(each)}</td>" for each in row[1:])}</tr>'
        for row in rows
    )
    source = "<br>".join(html.escape(line) for line in head[1:])
    return (
        f'<table class="table"><caption>{html.escape(head[0])}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        f"<details><summary>Where these numbers come from</summary><p><code>{source}</code></p></details>"
    )


class DataTable(Directive):
    required_arguments = 1

    def run(self):
        env = self.state.document.settings.env
        path = Path(env.srcdir) / f"data/{self.arguments[0]}.csv"
        env.note_dependency(str(path))
        try:
            return [nodes.raw("", shown(path), format="html")]
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from error


def setup(app):
    app.add_directive("data-table", DataTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
