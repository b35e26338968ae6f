"""`make sync` and the set-up cell that it writes: nothing of a contributor's is lost, and failure is one sentence."""

import json
import os
import subprocess
import sys

import pytest
import sync


def notebook(path, *cells):
    """A notebook of (kind, source) cells."""
    empty = {"code": {"outputs": [], "execution_count": None}, "markdown": {}}
    found = [{"cell_type": kind, "metadata": {}, "source": source, **empty[kind]} for kind, source in cells]
    path.write_text(json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    return path


def written(path):
    path.write_text(sync.cleaned(path))
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


SETUP = sync.SETUP.format(url=sync.repository())


def test_the_set_up_cell_is_added_and_nothing_is_overwritten(tmp_path):
    path = notebook(tmp_path / "new.ipynb", ("markdown", "# New"), ("code", "import torch"))
    assert written(path) == [SETUP, "# New", "import torch"]
    assert written(path) == [SETUP, "# New", "import torch"], "a second time nothing changes"


def test_an_older_set_up_cell_is_replaced_where_it_stands(tmp_path):
    old = 'import sys\nif "google.colab" in sys.modules: ...'
    path = notebook(tmp_path / "old.ipynb", ("markdown", "# Old"), ("code", old), ("code", "x = 1"))
    assert written(path) == ["# Old", SETUP, "x = 1"]


def test_a_notebook_without_code_gets_a_set_up_cell(tmp_path):
    assert written(notebook(tmp_path / "text.ipynb", ("markdown", "# Text"))) == [SETUP, "# Text"]


@pytest.fixture
def cell(tmp_path):
    """Run the set-up cell in a Python of its own that has the standard library and nothing else."""

    def run(colab, installed):
        if installed:
            (tmp_path / "helpers").mkdir()
            (tmp_path / "helpers/__init__.py").write_text("import torch")
        before = "import sys\nclass Shell:\n    def system(self, command): print(command)\nget_ipython = Shell\n"
        pretend = 'sys.modules["google.colab"] = sys\n' if colab else ""
        after = '\nprint([m for m in ("torch", "numpy", "matplotlib", "IPython", "ipywidgets") if m in sys.modules])'
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [sys.executable, "-S", "-c", before + pretend + SETUP + after]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_elsewhere_the_set_up_cell_installs_nothing(cell):
    assert cell(colab=False, installed=True).stdout.strip() == "[]"


def test_on_colab_it_gets_the_newest_commit_and_imports_nothing_that_pip_may_replace(cell):
    first, last = cell(colab=True, installed=True).stdout.strip().splitlines()
    assert "--force-reinstall" in first, "the version stays, so pip would keep an older commit"
    assert "--no-deps" in first, "what Colab has is not replaced"
    assert last == "[]"


@pytest.mark.parametrize("colab", [True, False])
def test_where_it_cannot_be_installed_one_sentence_says_so(cell, colab):
    done = cell(colab, installed=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: the course is not here; with a network: pip install git+{sync.repository()}"


def test_the_set_up_cell_is_short():
    assert len(SETUP.splitlines()) <= 7
    assert all(len(line) <= 88 for line in SETUP.splitlines())


def test_the_address_of_repository_and_site_is_written_in_one_place(tmp_path, monkeypatch):
    page = tmp_path / "README.md"
    page.write_text("https://github.com/a/b, [read](https://a.github.io/b/), a/b")
    monkeypatch.setattr(sync, "repository", lambda: "https://github.com/new/course")
    expected = "https://github.com/new/course, [read](https://new.github.io/course/), new/course"
    assert sync.addressed(page, "https://github.com/a/b") == expected


def test_readme_lists_the_chapters_that_are_there(root):
    listed = (root / "README.md").read_text()
    for path in (root / "chapters").glob("*/lesson.ipynb"):
        assert f"{path.parent.name[0]}. " in sync.contents()
    assert sync.contents() in listed, "run `make sync`: README lists the chapters that are there"
