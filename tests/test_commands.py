"""Every command that a reader may copy: benchmarks start at their smallest size, the others are parsed by their own parser."""

import argparse
import functools
import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from tiny_models import save, tiny

COMMAND = re.compile(
    r"\bpython3? (?:-m (?:course|pytest)[\w.]*|(?:tools|benchmarks)/\w+\.py)[^`#|\"\n\\]*"
)
HEADS = [path for kind in ("*.csv", "*/*.csv", "*.toml") for path in (ROOT / "data").glob(kind)]
PLACES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "Makefile",
    *(ROOT / "chapters").rglob("*.md"),
]
PLACES += [*(ROOT / "chapters").rglob("*.ipynb"), *(ROOT / "src/course").rglob("*.toml"), *HEADS]
PLACES += [*(ROOT / "benchmarks").glob("*.py")]
BY_NAME = {"MODEL": "gpt2", "A": "gpt2", "B": "gpt2", "NAME": "race", "FOLDER": ".", "…": ""}
# words that stand for something in a sentence: such a line is no command to be copied
NO_COMMAND = re.compile(r"[<$…]|\bhost\b| (which|and|or|in|for|with|of) ", re.I)


@functools.cache
def commands() -> list[str]:
    """Return the commands that the README, the pages and the heads of the tables name, each once."""
    found = set()
    for path in PLACES:
        text = path.read_text()
        if path.suffix == ".csv":  # a command goes on in the next line of a head
            head = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
            head = [
                line for line in head if "command then:" not in line
            ]  # it says that this one is gone
            text = "\n".join(head)
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        lines = (
            re.split(r"\s{3,}", each.strip())[0] for each in COMMAND.findall(text)
        )  # what follows is a remark
        found |= {each.rstrip(".,;:)”’") for each in lines if not NO_COMMAND.search(each)}
    return sorted(each for each in found if "pytest" not in each)


class Parsed(BaseException):
    """Ends a command as soon as its parser has taken its arguments."""


def parse(command: str, monkeypatch) -> None:
    """Start a command as Python does, up to the moment when its arguments are parsed.

    Raises:
        SystemExit: its parser refuses them.
        FileNotFoundError, ImportError: there is no such script or module.
    """
    words = [BY_NAME.get(word, word) for word in shlex.split(command)][1:]
    own = argparse.ArgumentParser.parse_args

    def parsed(self, *arguments, **named):
        own(self, *arguments, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.setattr(sys, "argv", words[1:] if words[0] == "-m" else words)
    monkeypatch.chdir(ROOT)
    for folder in ("tools", "benchmarks", "sphinx_ext"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def named() -> list[str]:
    return [each for each in commands() if "parse_args" in source(each)]


def source(command: str) -> str:
    """Return the text of the script or of the module's command line."""
    words = command.split()
    if words[1] != "-m":
        path = ROOT / words[1]
        if not path.exists():
            return "parse_args"  # so that a script that is gone is seen
        text = path.read_text()
        module = re.search(r"^from book\.(\w+) import main$", text, re.M)
        return (ROOT / f"src/book/{module[1]}.py").read_text() if module else text
    place = ROOT / "src" / words[2].replace(".", "/")
    files = [place / "__main__.py", place / "line.py", place.with_suffix(".py")]
    return "".join(path.read_text() for path in files if path.exists()) or "parse_args"


def test_many_commands_are_named():
    assert len(named()) > 40


@pytest.mark.parametrize("command", named())
def test_named_command_is_parsed(command, monkeypatch, capsys):
    if "--help" in command:
        with pytest.raises(SystemExit) as ended:
            parse(command, monkeypatch)
        assert ended.value.code == 0
        return
    alone = len(command.split()) == (
        3 if " -m " in command else 2
    )  # the name of a script in a sentence
    with pytest.raises((Parsed, SystemExit) if alone else Parsed):
        parse(command, monkeypatch)


def test_command_of_a_missing_script_is_refused(monkeypatch):
    with pytest.raises(FileNotFoundError):
        parse("python tools/nothing.py --out x", monkeypatch)
    with pytest.raises(SystemExit):
        parse("python -m course.report MODEL --out reports --plan huge", monkeypatch)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["tools/editions.py", "update", "/etc/passwd"], "page must be one of the course's"),
        (["tools/look.py", "zzzz"], "no page or deck has 'zzzz'"),
    ],
)
def test_unknown_page_of_a_tool_is_refused_in_a_sentence(command, words):
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1


SMALLEST = {
    "attention": [
        "--lengths",
        "64",
        "--peer-to",
        "64",
        "--tokens",
        "6",
        "--probes",
        "4",
        "--threads",
        "1",
    ],
    "differential": [
        "--length",
        "32",
        "--heads",
        "2",
        "--width",
        "8",
        "--repeats",
        "1",
        "--threads",
        "1",
    ],
    "gnn": ["--depths", "2", "--kinds", "gcn", "--batch", "8", "--repeats", "1", "--threads", "1"],
    "report": ["--plan", "short"],  # of a tiny model, which the test adds
    "rope": ["--longest", "1024", "--threads", "1"],
    "live": [
        "--help"
    ],  # these two measure the built page in a browser: here they are imported whole
    "phone": ["--help"],
}


def test_every_benchmark_has_a_smallest_size():
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == {*SMALLEST}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_benchmark_runs_at_its_smallest_size(name, tmp_path):
    if name == "gnn" and not importlib.util.find_spec("torch_geometric"):
        pytest.skip("its peer, PyTorch Geometric, is not installed")
    arguments = list(SMALLEST[name])
    if name == "report":
        arguments.append(str(save(tmp_path / "tiny", tiny("llama"))))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, ROOT / f"benchmarks/{name}.py", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_javascript_benchmark_parses_and_starts():
    command = [
        "node",
        "benchmarks/train.mjs",
        "retrieval",
        "0--1",
        "RoPE:0:softmax",
    ]  # no seed, so no training
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("task,entry,design,seed")
