"""The build: what the execution cache depends on, and that a failing cell or a warning fails it."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import ROOT
from execution import key


@pytest.fixture
def clone(tmp_path):
    """A book of one notebook, with the real configuration and extensions."""
    for name in ("sphinx_ext", "_static", "_config.yml", "references.bib", "requirements.txt"):
        source, target = ROOT / name, tmp_path / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    for folder in ("src/helpers", "data", "chapters", "frontend/dist"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/helpers/a.py").write_text("x = 1\n")
    (tmp_path / "data/a.csv").write_text("x\n1\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/page\n")
    write(tmp_path, "print(1 + 1)")
    return tmp_path


def write(clone, code, text="# Page"):
    notebook = {
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text},
            {"cell_type": "code", "id": "b", "metadata": {}, "source": code, "outputs": [], "execution_count": None},
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (clone / "chapters/page.ipynb").write_text(json.dumps(notebook))


def build(clone):
    command = [
        sys.executable,
        "-m",
        "jupyter_book.cli.main",
        "build",
        ".",
        "-W",
        "-n",
        "--keep-going",
        "--path-output",
        ".",
    ]
    command = (
        [str(ROOT / ".venv/bin/jupyter-book"), *command[3:]] if (ROOT / ".venv/bin/jupyter-book").exists() else command
    )
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_key_follows_helpers_data_and_pins_and_nothing_else(clone):
    before = key(clone)
    write(clone, "print(3)", "# Other text")
    (clone / "README.md").write_text("new")
    (clone / "src/helpers/__pycache__").mkdir()
    (clone / "src/helpers/__pycache__/a.pyc").write_bytes(b"0")
    assert key(clone) == before
    for name in ("src/helpers/a.py", "data/a.csv", "requirements.txt"):
        with (clone / name).open("a") as file:
            file.write("# changed\n")
        assert key(clone) != before
        before = key(clone)


def test_executed_again_only_when_something_it_depends_on_changed(clone):
    executed = "Executing notebook"
    count = "import pathlib; p = pathlib.Path('../runs'); p.write_text((p.read_text() if p.exists() else '') + 'x')"
    write(clone, count)

    def runs():
        code, log = build(clone)
        assert code == 0, log
        return len((clone / "runs").read_text()), executed in log

    assert runs() == (1, True)
    assert runs() == (1, False)
    write(clone, count, "# Another title")
    assert runs() == (1, False)
    assert "Another title" in (clone / "_build/html/chapters/page.html").read_text()
    for n, name in enumerate(("src/helpers/a.py", "data/a.csv"), start=2):
        with (clone / name).open("a") as file:
            file.write("# changed\n")
        assert runs() == (n, True)
    write(clone, count + " # edited")
    assert runs() == (4, True)


@pytest.mark.parametrize(
    ("code", "text"), [("1 / 0", "# Page"), ("1", "# Page\n\n[gone](nowhere.md)")], ids=["cell", "link"]
)
def test_an_error_or_a_warning_fails_the_build(clone, code, text):
    write(clone, code, text)
    assert build(clone)[0] != 0


def test_every_page_of_the_toc_exists_and_every_page_is_in_it():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = {toc["root"]}
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            listed |= {chapter["file"], *(section["file"] for section in chapter.get("sections", []))}
    pages = [
        p
        for p in (ROOT / "chapters").rglob("*")
        if p.suffix in (".md", ".ipynb") and ".ipynb_checkpoints" not in p.parts
    ]
    assert listed == {p.relative_to(ROOT).with_suffix("").as_posix() for p in pages}
