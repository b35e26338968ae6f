"""The head of each table in `data/` names commands that exist, and its rows are the runs that they ask for."""

import importlib
import itertools
import re
import shlex
import sys
from unittest import mock

import pytest
from conftest import ROOT

from course.experiments import sweep

TABLES = {path.name: sweep.read(path) for path in sorted((ROOT / "data").glob("*.csv"))}
COMMANDS = {name: [line[9:] for line in table.head if line.startswith("command: ")] for name, table in TABLES.items()}
# made by one pass over the model, not run by run
IN_ONE_PASS = {"telling_apart.csv"}


def asked_for(command: str, name: str) -> list[dict[str, str]]:
    """The settings that a command line hands to `sweep.run` for a table, parsed by its own module and not run."""
    python, flag, module, *arguments = shlex.split(command)
    assert (python, flag) == ("python", "-m"), f"{command}: not python -m"
    found = importlib.import_module(module)
    settings = []

    def take(function, chosen, out, **more):
        if getattr(out, "name", "") == name:
            settings.extend(sweep._as_text(setting) for setting in chosen)

    with mock.patch.object(sweep, "run", take), mock.patch.object(sys, "argv", [module, *arguments]):
        found.main()
    return settings


@pytest.mark.parametrize("name", [name for name in COMMANDS if COMMANDS[name] and name not in IN_ONE_PASS])
def test_rows_are_what_the_commands_ask_for(name):
    table, wanted = TABLES[name], []
    for command in COMMANDS[name]:
        here = asked_for(command, name)
        assert here, f"{name}: {command} asks for nothing"
        there = sum(sweep._find(table.rows, setting) is not None for setting in here)
        after = table.head[table.head.index(f"command: {command}") + 1 :]
        own = itertools.takewhile(lambda line: line.startswith("  "), after)
        told = [line.strip() for line in own if re.fullmatch(r"  \d+ of \d+ rows", line)]
        assert told == ([f"{there} of {len(here)} rows"] if there < len(here) else []), f"{name}: {command}"
        wanted += here
    for row in table.rows:
        asked = any(sweep._find([row], setting) for setting in wanted)
        assert asked, f"{name}: no command of its head asks for the row {dict(list(row.items())[:7])}"


def test_a_head_says_how_many_rows_are_missing(tmp_path):
    out, settings = tmp_path / "squares.csv", sweep.grid(n=[1, 2, 3])

    def square(n):
        if n == 3:
            raise ValueError("too large")
        return {"square": n * n}

    with pytest.raises(ValueError, match="too large"):
        sweep.run(square, settings, out, command="python -m squares")
    assert sweep.read(out).head[2] == "  2 of 3 rows"
    sweep.run(lambda n: {"square": n * n}, settings, out, command="python -m squares")
    assert len(sweep.read(out).head) == 2
