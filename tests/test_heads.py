"""The head of each table in `data/` names commands that exist, and its rows are the runs that they ask for."""

import itertools
import re
import shlex
from unittest import mock

import pytest
from conftest import ROOT

from course.runs import sweep
from course.runs.__main__ import TABLES, grids, main, named, table

HEADS = {path.stem: sweep.read(path) for path in sorted((ROOT / "data").glob("*.csv"))}
COMMANDS = {
    name: [line[9:] for line in head.head if line.startswith("command: ")]
    for name, head in HEADS.items()
}
SWEPT = [name for name in TABLES if grids(table(name))]  # not made by one pass


def asked_for(command: str) -> tuple[list[dict[str, str]], list[str]]:
    """The settings that a command line hands to `sweep.run`, and the notes for the head of its table."""
    start, arguments = ["python", "-m", "course.runs"], shlex.split(command)[3:]
    with mock.patch.object(sweep, "run") as run:
        main(arguments)
    (function, settings, out), more = run.call_args
    assert (out.stem, more["command"], command) == (
        arguments[0],
        command,
        shlex.join([*start, *arguments]),
    )
    sweep._check(function, settings)
    return [sweep._as_text(setting) for setting in settings], more["notes"]


@pytest.mark.parametrize("name", [name for name in HEADS if COMMANDS[name] and name in SWEPT])
def test_rows_are_what_the_commands_ask_for(name):
    written, wanted = HEADS[name], []
    for command in COMMANDS[name]:
        here, notes = asked_for(command)
        there = sum(sweep._find(written.rows, setting) is not None for setting in here)
        after = written.head[written.head.index(f"command: {command}") + 1 :]
        own = itertools.takewhile(lambda line: line.startswith("  "), after)
        told = [line.strip() for line in own if re.fullmatch(r"  \d+ of \d+ rows", line)]
        assert told == ([f"{there} of {len(here)} rows"] if there < len(here) else []), (
            f"{name}: {command}"
        )
        assert set(notes) <= set(written.head), f"{name}: its head has other notes than tables.toml"
        wanted += here
    for row in written.rows:
        asked = any(sweep._find([row], setting) for setting in wanted)
        assert asked, (
            f"{name}: no command of its head asks for the row {dict(list(row.items())[:7])}"
        )


@pytest.mark.parametrize("name", SWEPT)
def test_a_table_asks_for_runs_that_its_function_makes(name):
    settings, _ = asked_for(f"python -m course.runs {name}")
    assert len({tuple(setting.values()) for setting in settings}) == len(settings) > 1
    assert not HEADS.get(name) or list(HEADS[name].rows[0])[: len(settings[0])] == list(settings[0])


def test_every_command_of_a_head_is_one_of_a_table():
    tools = {name for name, commands in COMMANDS.items() if "python tools/" in " ".join(commands)}
    written = {name for name in COMMANDS if COMMANDS[name]} - tools
    assert written == set(TABLES) - {"checkpoints", "race_wide"}
    assert all(callable(named(table(name)["function"])) for name in TABLES)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "slash_emergence --spectrum NoPE --seed 0 --offset 4",
            {"shared": "0.0 1.0", "base": "10000.0"},
        ),
        (
            "slash_emergence --base 100 --seed 0 --offset 4",
            {"spectrum": "0.25-RoPE slowest quarter", "base": "100.0"},
        ),
        (
            "counting_inside --longest 128 --seed 0",
            {"encoding": "NoPE RoPE", "width": "64", "steps": "5120"},
        ),
        (
            "race_far --task last --entry NoPE",
            {"task": "last", "entry": "NoPE", "seed": "0 1 2"},
        ),  # not in the table
        (
            "stars --kind gcn --seed 0 7",
            {"kind": "gcn", "seed": "0 7", "epochs_allowed": "400 500"},
        ),
        ("ranks_by_depth --graph path --skip True --times 2 16", {"skip": "True", "times": "2 16"}),
    ],
)
def test_options_choose_among_the_runs_of_a_table_or_take_the_place_of_its_own_values(line, values):
    settings, _ = asked_for(f"python -m course.runs {line}")
    found = {
        name: " ".join(dict.fromkeys(setting[name] for setting in settings)) for name in values
    }
    assert found == values


def test_a_command_writes_a_row_for_each_run(tmp_path):
    line = "tree_neighbors_match_one_leaf --depth 2 --seed 0 1 --epochs_allowed 5 --out"
    main([*line.split(), str(tmp_path / "runs.csv")])
    rows = sweep.read(tmp_path / "runs.csv").rows
    assert [(row["kind"], row["seed"]) for row in rows] == [("attention", "0"), ("attention", "1")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rac", "invalid choice: 'rac'"),
        ("race --entries RoPE", "unrecognized arguments: --entries RoPE"),
        ("race --seed x", "--seed: invalid int value: 'x'"),
        ("ranks_by_depth --skip yes", "--skip: invalid"),
        ("race --task first --seed 0 --entry dreams", "entry must be one of "),
        ("stars --kind attention --key everywhere", "key must be 'root' for kind 'attention'"),
        ("stars --jobs 0", "jobs must be an integer from 1"),
    ],
)
def test_a_command_line_that_asks_for_no_run_ends_with_a_sentence(tmp_path, capsys, line, message):
    with pytest.raises(SystemExit, match="2"):
        main([*line.split(), "--out", str(tmp_path / "runs.csv")])
    said = capsys.readouterr().err.partition("python -m course.runs: error: ")[2]
    assert message in said


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
