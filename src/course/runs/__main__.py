"""Run the experiments behind a table of `data/`, and add the rows that are missing.

For example, `python -m course.runs race` makes the runs that `data/race.csv` does not have yet.
Each setting of a row is an option that selects runs of the table. If the table has no run with all
the given values, we use these values instead of the table's, as in `race --task last --entry NoPE
--seed 20 21`.
"""

import argparse
import ast
import importlib
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from course.runs import sweep
from helpers import data

TABLES = tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8"))


def table(name: str) -> dict:
    """Read an entry of `tables.toml`.

    If the entry is `like` another entry, it inherits all values that it does not set itself.

    >>> table("race_counting")["together"]
    'seed'
    """
    like = TABLES[name].get("like")
    return (table(like) if like else {}) | TABLES[name]


def named(place: str) -> object:
    """Import an object by its path, such as `course.runs.race:run`."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def grids(entry: Mapping) -> list[dict[str, list[sweep.Value]]]:
    """Return the grids of a table, each as a dictionary from settings to lists of values.

    The table has one run for each combination of values within a grid. A table that is written by
    one function has no grid.
    """
    settings, changes = entry.get("settings", {}), entry.get("changes", [{}])
    if "from" in settings:
        settings, changes = {}, named(settings["from"])
    rows = [settings | change for change in changes]
    return [{name: _values(value) for name, value in row.items()} for row in rows if row]


def _values(value: sweep.Value | list | dict) -> list[sweep.Value]:
    if isinstance(value, dict):
        return [*named(value["from"])]
    return value if isinstance(value, list) else [value]


def products(own: Sequence[Mapping], first: str | None = None) -> list[sweep.Setting]:
    """Return all combinations of settings within the grids, each combination once.

    Args:
        own: the grids, as `grids` returns them.
        first: the name of a setting. Combinations with the same value of this setting come one
            after another.
    """
    cells = list(
        {tuple(cell.items()): cell for grid in own for cell in sweep.grid(**grid)}.values()
    )
    order = list(dict.fromkeys(cell.get(first) for cell in cells))
    return sorted(cells, key=lambda cell: order.index(cell.get(first)))


def asked(entry: Mapping, chosen: Mapping[str, list[sweep.Value]]) -> list[sweep.Setting]:
    """Return the settings of a table that match the values given on the command line.

    If no run of the table has all the given values, they replace those of the table.

    Args:
        entry: the entry of the table in `tables.toml`.
        chosen: for each setting that was given on the command line, its values.
    """
    choices, first = grids(entry), entry.get("first")
    cells = [
        cell
        for cell in products(choices, first)
        if all(cell[name] in chosen[name] for name in chosen)
    ]
    if all(any(cell[name] == value for cell in cells) for name in chosen for value in chosen[name]):
        return cells
    return products([grid | chosen for grid in choices], first)


def options(parser: argparse.ArgumentParser, own: Sequence[Mapping]) -> None:
    """Add a command-line option for each setting of the grids, with the type of its values."""
    for name in own[0]:
        values = list(dict.fromkeys(value for grid in own for value in grid[name]))
        plain = len({type(value) for value in values}) == 1 and not isinstance(values[0], bool)
        listed = ", ".join(map(str, values)).replace("%", "%%")
        kind = type(values[0]) if plain else ast.literal_eval
        parser.add_argument(
            f"--{name}",
            nargs="+",
            type=kind,
            default=[],
            metavar="VALUE",
            help=f"values in the table: {listed}",
        )


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m course.runs", description=__doc__)
    parser.add_argument(
        "table", choices=TABLES, metavar="TABLE", help=f"one of {', '.join(TABLES)}"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="write to this file instead of the one in data/ (rows in the file are not run again)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="how many runs to make at the same time, each in a separate process (default: 1)",
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of the Dask scheduler at this address"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads for each run (default: 1)"
    )
    name = next((word for word in arguments if word in TABLES), "")
    entry = table(name) if name else {}
    choices = grids(entry)
    if choices:
        options(parser, choices)
    parsed = vars(parser.parse_args(arguments))
    function, out = (
        named(entry["function"]),
        parsed["out"] or data.folder() / entry.get("out", f"{name}.csv"),
    )
    if not choices:
        return function(out)
    try:
        sweep.run(
            partial(function, **entry.get("given", {})),
            asked(entry, {name: parsed[name] for name in choices[0] if parsed[name]}),
            out,
            command=f"{parser.prog} {shlex.join(arguments)}",
            notes=entry.get("notes", "").format(**function.__globals__).splitlines(),
            together=entry.get("together"),
            **{name: parsed[name] for name in ("jobs", "dask", "threads")},
        )
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
