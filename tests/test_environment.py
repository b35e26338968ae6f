"""The set-up: a wrong Python is told at once, and uv installs from where pip would."""

import os
import re
import shutil
import stat
import subprocess
from importlib import metadata

import environment
import pytest
from conftest import ROOT


@pytest.fixture
def clone(tmp_path):
    for name in ("Makefile", "requirements.txt", "constraints.txt", "pyproject.toml", "tools"):
        source = ROOT / name
        if source.is_dir():
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tmp_path / name, ignore=compiled)
        else:
            shutil.copy(source, tmp_path / name)
    for name in ("chapters", "src", "data"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def old_python(folder, version="Python 3.10.9"):
    """Something that answers as an old Python does."""
    path = folder / "python-old"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit 0\nexit 1\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make(clone, *words):
    """Run make as from a shell, although a make may run these tests."""
    around = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        ["make", *words],
        cwd=clone,
        env=around,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.mark.parametrize("target", ["book", "test", "check", "lab"])
def test_a_wrong_python_is_told_in_one_sentence_before_anything_is_made(clone, target):
    before = sorted(clone.rglob("*"))
    python = old_python(clone)
    done = make(clone, target, f"PYTHON={python}")
    assert done.returncode != 0
    assert done.stdout.strip() == (
        f"This needs Python 3.11 to 3.14, and {python} is Python 3.10.9: name one, as in 'make PYTHON=python3.12 book'."
    )
    assert sorted(clone.rglob("*")) == sorted([*before, python])


def test_a_python_that_is_not_there_is_told_too(clone):
    done = make(clone, "book", "PYTHON=python9")
    assert "and python9 is not there: name one" in done.stdout


def test_an_unfinished_environment_or_one_of_another_python_is_made_afresh(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(environment.subprocess, "run", lambda command, **_: made.append(command))
    versions = {str(tmp_path / "bin/python"): "3.12", "python3.12": "3.12", "python3.11": "3.11"}
    monkeypatch.setattr(environment, "says", lambda name, *_: versions[str(name)])
    environment.prepared(tmp_path, "python3.12")
    assert made.pop() == ["python3.12", "-m", "venv", "--clear", tmp_path]
    (tmp_path / ".ready").touch()
    environment.prepared(tmp_path, "python3.12")
    assert made == []
    environment.prepared(tmp_path, "python3.11")
    assert made == [["python3.11", "-m", "venv", "--clear", tmp_path]]


# what `pip config list` says
PIP = r"""
:env:.find-links='/wheels /more'
:env:.timeout='180'
global.find-links='/old'
global.cert='/bundle.crt'
global.extra-index-url='https://one.example/simple\nhttps://two.example/simple'
global.index-url='https://mirror.example/simple'
"""


def test_uv_is_told_what_pip_knows():
    settings = environment.uv_settings(PIP)
    assert settings["UV_FIND_LINKS"] == "/wheels,/more"
    assert settings["SSL_CERT_FILE"] == "/bundle.crt"
    assert settings["UV_INDEX"] == "https://one.example/simple https://two.example/simple"
    assert settings["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"


def test_an_index_that_cannot_be_reached_is_not_used():
    assert not environment.reached("http://127.0.0.1:9")


def pins(name):
    """The versions that a file of requirements allows, by distribution."""
    found = {}
    for line in (ROOT / name).read_text().splitlines():
        if pin := re.match(r"([\w.-]+)==([\w.+]+)", line):
            found.setdefault(re.sub(r"[-_.]+", "-", pin[1]).lower(), set()).add(pin[2])
    return found


def test_everything_that_is_installed_is_locked():
    locked, wrong = pins("constraints.txt"), []
    own = re.compile(
        r"(torch|triton|nvidia-.+|cuda-.+|uv|pip|setuptools|wheel|connection-bottlenecks)"
    )
    for each in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()
        if not own.fullmatch(name) and each.version not in locked.get(name, ()):
            wrong.append(f"{name} {each.version}, locked {locked.get(name)}")
    assert not wrong, (
        f"`python tools/environment.py lock` after a change of requirements.txt: {wrong}"
    )


def test_the_lock_keeps_the_pins_and_names_no_address():
    locked = pins("constraints.txt")
    assert {
        name: found for name, found in pins("requirements.txt").items() if found != locked.get(name)
    }.keys() == {
        "torch",
        "uv",
    }
    assert not re.search(r"://|@|index", (ROOT / "constraints.txt").read_text())
