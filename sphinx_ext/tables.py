"""Provide the directive `{data-table} name`, which shows a table of `data/`.

The first line of the table's head is above the table, and the rest of the head is folded below.
`{data-list}` lists all tables with their content, command, date, rows and licence, as their heads
state them.
"""

import csv
import html
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive


def shown(path: Path) -> str:
    """Return a table of `data/` as HTML.

    Raises:
        ValueError: if the table has no head that names the source of the numbers, or a row has
            another length.
    """
    lines = path.read_text().splitlines()
    head = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    names, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    if not head or any(len(row) != len(names) for row in rows):
        raise ValueError(f"{path.name} must have a head and rows of one length")

    def cell(text: str) -> str:
        return f"<td>{html.escape(text)}</td>"

    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(cell, cells))}</tr>'
        for name, *cells in rows
    )
    source = "<br>".join(html.escape(line) for line in head[1:])
    return (
        f'<table class="table"><caption>{html.escape(head[0])}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        "<details><summary>Where these numbers come "
        f"from</summary><p><code>{source}</code></p></details>"
    )


class DataTable(Directive):
    """Show a table of `data/` on a page, with the directive `{data-table}`."""

    required_arguments = 1

    def run(self):
        env = self.state.document.settings.env
        path = Path(env.srcdir) / f"data/{self.arguments[0]}.csv"
        env.note_dependency(str(path))
        try:
            return [nodes.raw("", shown(path), format="html")]
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from error


def listed(root: Path) -> str:
    """Return a list of all tables in `data/` as HTML, one per row.

    Numbers that others measured have the licence of their source.
    """
    rows = []
    for path in sorted((root / "data").rglob("*.csv")):
        lines = path.read_text().splitlines()
        head = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
        cut = next((k for k, line in enumerate(head) if line.startswith("command:")), len(head))
        commands = [
            line.removeprefix("command:").strip() for line in head if line.startswith("command:")
        ]
        dates = sorted(set(re.findall(r"\b20\d\d-\d\d-\d\d\b", " ".join(head[cut:]))))
        run_on = [" to ".join(dict.fromkeys((dates[0], dates[-1])))] if dates else []
        reported = path.parent.name == "reported"
        origin = "by hand"
        if reported:
            origin = "quoted from its source"
        elif commands:
            origin = (
                f"<details><summary>{len(commands)} command{'s' * (len(commands) != 1)}</summary>"
                f"<code>{'<br>'.join(map(html.escape, commands))}</code></details>"
            )
        cells = [
            f"<code>{path.relative_to(root / 'data')}</code>",
            html.escape(" ".join(head[:cut]) or f"columns: {lines[len(head)].replace(',', ', ')}"),
            "".join((origin, *(f"<div><small>{day}</small></div>" for day in run_on))),
            f"{len(lines) - len(head) - 1:,}<br>"
            f"<small>{'facts, cited' if reported else 'CC BY 4.0'}</small>",
        ]
        rows.append(
            "<tr><th "
            f'scope="row">{cells[0]}</th>{"".join(f"<td>{name}</td>" for name in cells[1:])}</tr>'
        )
    top = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("file of data/", "what", "made by, and when", "rows, licence")
    )
    return (
        '<table class="table files">'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


class DataList(Directive):
    """Show the list of all tables in `data/`, with the directive `{data-list}`."""

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        return [nodes.raw("", listed(Path(env.srcdir)), format="html")]


def setup(app):
    app.add_directive("data-table", DataTable)
    app.add_directive("data-list", DataList)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
