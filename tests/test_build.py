"""The build: what is executed again after a change, and that a failing cell or a warning fails it."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import ROOT
from nbformat import v4

from book.execution import at_once, environment, execute, executed, kept, key, longest_first, times
from book.pages import notebooks as book
from book.pages import pages

pytestmark = pytest.mark.slow
COUNT = """\
import pathlib
pathlib.Path("../runs-" + NAME).touch()
"""
ALPHA = f"NAME = 'alpha'\nfrom course.chapter1 import figures\n{COUNT}print(figures.x)"
BETA = (
    f"NAME = 'beta'\nfrom helpers import data, tool\nn = data.table('seen')\n{COUNT}print(tool.x)"
)


def copy(source, target):
    """Copy a folder without what Python compiles there meanwhile."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def clone(tmp_path):
    """A book of two notebooks, alpha and beta, with the real configuration and extensions."""
    for name in "sphinx_ext tools src/book _static _config.yml pyproject.toml references.bib requirements.txt constraints.txt".split():
        source, target = ROOT / name, tmp_path / name
        copy(source, target) if source.is_dir() else shutil.copy(source, target)
    for folder in (
        "src/course/chapter1",
        "src/course/build",
        "data",
        "chapters/plans",
        "frontend/dist",
    ):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "chapters/plans/families.toml", tmp_path / "chapters/plans")
    kernels = (
        tmp_path / "src/book/kernels.py"
    )  # its notebooks need nothing of what most pages import
    kernels.write_text(
        re.sub(r"^IMPORTED = \(.*?\)", "IMPORTED = ()", kernels.read_text(), flags=re.M | re.S)
    )
    (tmp_path / "src/helpers").mkdir()
    copy(ROOT / "src/helpers/fonts", tmp_path / "src/helpers/fonts")
    shutil.copy(ROOT / "src/course/build/dependencies.py", tmp_path / "src/course/build")
    copy(ROOT / "src/course/editions", tmp_path / "src/course/editions")
    sources = {
        **dict.fromkeys(
            (
                "helpers/__init__.py",
                "helpers/require.py",
                "helpers/unused.py",
                "course/__init__.py",
                "course/chapter1/__init__.py",
            ),
            "",
        ),
        "course/build/__init__.py": "",
        "course/build/files.py": "def writable(path): pass\n",
        "course/drawing.py": "DRAWINGS = ()\ndef stop_of(room): pass\n",
        "helpers/style.py": "READERS = FATES = ()\n",
        "helpers/words.py": "_missing = []\ndef use(table): pass\n",
        "helpers/widget.py": "SLIDES = 'drawings for slides'\n",
        "helpers/tool.py": "x = 1\n",
        "helpers/base.py": "x = 2\n",
        "helpers/data.py": "def table(name): return name\n",
        "course/chapter1/figures.py": "from helpers.base import x\n",
        "course/chapter1/player.js": "play()\n",
    }
    for name, text in sources.items():
        (tmp_path / "src" / name).write_text(text)
    for name in ("seen", "other"):
        (tmp_path / f"data/{name}.csv").write_text("x\n1\n")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: chapters/alpha\nchapters:\n- file: chapters/beta\n- file: chapters/about\n"
    )
    (tmp_path / "chapters/about.md").write_text("# About\n\n```{times}\n```\n")
    write(tmp_path, "alpha", ALPHA)
    write(tmp_path, "beta", BETA)
    return tmp_path


def write(clone, name, code, text="# Page", tags=()):
    cells = [
        v4.new_markdown_cell(text, id="a"),
        v4.new_code_cell(code, id="b", metadata={"tags": [*tags]}),
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), clone / f"chapters/{name}.ipynb")


def build(clone, **environment):
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        ".",
        "-W",
        "-n",
        "--keep-going",
    ]
    command += ["--path-output", "."]
    around = {**os.environ, "PYTHONPATH": str(clone / "src"), **environment}
    done = subprocess.run(
        command, cwd=clone, env=around, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def runs(clone):
    """Which notebooks were executed since the last call, as "AB", "A", "B" or ""."""
    logs = [clone / "runs-alpha", clone / "runs-beta"]
    ran = "".join(letter for letter, log in zip("AB", logs, strict=True) if log.exists())
    for log in logs:
        log.unlink(missing_ok=True)
    return ran


def notebooks(clone):
    return sorted((clone / "chapters").glob("*.ipynb"))


CHANGES = {
    "a module that alpha reaches through a chapter": ("src/helpers/base.py", "A"),
    "a figure of alpha's chapter": ("src/course/chapter1/figures.py", "A"),
    "a script beside it": ("src/course/chapter1/player.js", "A"),
    "a tool of beta's": ("src/helpers/tool.py", "B"),
    "a table that beta reads": ("data/seen.csv", "B"),
    "a table that nobody reads": ("data/other.csv", ""),
    "a module that nobody reaches": ("src/helpers/unused.py", ""),
    "the pins": ("requirements.txt", "AB"),
    "the pins of what these ask for": ("constraints.txt", "AB"),
    "a new page": ("README.md", ""),
}


@pytest.fixture
def noted(clone, monkeypatch):
    """No kernel is started: which notebooks one would be started for is noted as they note it."""

    async def note(client, env):
        (clone / f"runs-{'beta' if 'beta' in str(client.nb) else 'alpha'}").touch()

    monkeypatch.setattr("book.execution.NotebookClient.async_execute", note)
    monkeypatch.setattr("book.execution.kernels.begin", lambda *given: None)


def test_only_what_depends_on_a_change_is_executed_again(clone, noted):
    execute(notebooks(clone), clone)
    assert runs(clone) == "AB"
    for what, (name, expected) in CHANGES.items():
        place, new = clone / name, "\n" if name.startswith("data") else "x = 3\n"
        old = place.read_text() if place.exists() else ""
        place.write_text(old + new)
        execute(notebooks(clone), clone)
        assert runs(clone) == expected, what
    write(clone, "alpha", ALPHA, "# Another title")
    write(clone, "beta", BETA + "\nedited = 1")
    execute(notebooks(clone), clone)
    assert runs(clone) == "B"
    write(clone, "beta", BETA)
    execute(notebooks(clone), clone)
    write(clone, "alpha", "# a comment\n" + ALPHA, "# Another title")
    for name in ("requirements.txt", "src/helpers/base.py", "src/course/chapter1/figures.py"):
        with (clone / name).open("a") as file:
            file.write("# a comment\n")
    execute(notebooks(clone), clone)
    assert runs(clone) == "", (
        "going back to what was executed before costs nothing, nor does a comment"
    )


def test_the_key_ignores_what_python_compiles_meanwhile(clone):
    path = clone / "chapters/alpha.ipynb"
    before = key(path, clone)
    compiled = clone / "src/helpers/__pycache__"
    compiled.mkdir()
    (compiled / "tool.cpython-311.pyc.1234").symlink_to(compiled / "renamed-since-it-was-listed")
    assert key(path, clone) == before


def test_a_change_of_HELPERS_STILL_or_of_a_tag_that_allows_errors_counts(clone, monkeypatch):
    path = clone / "chapters/alpha.ipynb"
    monkeypatch.delenv("HELPERS_STILL", raising=False)
    before = key(path, clone)
    monkeypatch.setenv("HELPERS_STILL", "1")
    assert key(path, clone) == before, "a build by hand gives what `make book` gives"
    monkeypatch.setenv("HELPERS_STILL", "0")
    assert key(path, clone) != before
    monkeypatch.setenv("HELPERS_STILL", "1")
    with monkeypatch.context() as another:
        another.setenv("ATEN_CPU_CAPABILITY", "another")
        assert key(path, clone) != before, "another kind of kernels"
    for code, tags, counts in (
        (ALPHA, [], False),
        (ALPHA, ["raises-exception"], True),
        (f"{ALPHA}\nchecks", [], True),
    ):
        found = []
        for comment in ("", "# a comment\n"):
            write(clone, "alpha", comment + code, tags=tags)
            found.append(key(path, clone))
        assert (found[0] != found[1]) == counts, (
            "where lines are shown as they stand a comment counts"
        )
        assert (found[0] == before) == (not counts)


def test_a_page_shows_new_outputs_new_text_and_measured_times_and_a_failing_cell_or_a_warning_fails_the_build(
    clone,
):
    code, log = build(clone)
    assert code == 0, log
    assert runs(clone) == "AB"
    page = clone / "_build/html/chapters/alpha.html"
    assert ">2\n" in page.read_text()
    assert "fontawesome.js" not in page.read_text(), "the theme's script of all icons"
    assert 2_000 < (clone / "_build/html/_static/icons.css").stat().st_size < 20_000
    assert "<td>beta</td>" in (clone / "_build/html/chapters/about.html").read_text()
    assert (clone / "_build/times.csv").read_text().count("\n") == 3

    write(clone, "beta", "def inner():\n    return 1 / 0\ninner()")
    code, log = build(clone)
    assert code != 0
    assert "ZeroDivisionError: division by zero" in log
    assert "return 1 / 0" in log
    assert "chapters/beta failed" in log
    with pytest.raises(Exception, match="chapters/beta failed"):  # and again, until it is mended
        execute(notebooks(clone), clone)

    write(clone, "beta", BETA)
    (clone / "src/helpers/base.py").write_text("x = 12345\n")
    code, log = build(clone)
    assert code == 0, log
    assert runs(clone) == "A"
    assert "12345" in page.read_text()

    write(clone, "alpha", ALPHA, "# Another title\n\n[gone](nowhere.md)")
    code, log = build(clone)
    assert code != 0
    assert "nowhere.md" in log
    assert runs(clone) == ""
    assert "Another title" in page.read_text()
    assert "12345" in page.read_text()


def test_notebooks_run_side_by_side_each_with_its_share_of_the_cores_and_where_a_loop_runs_already(
    clone, monkeypatch
):
    async def inside():
        execute(notebooks(clone), clone)

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("book.execution.joblib.cpu_count", lambda: 2)
    meet = "import os, pathlib, time\npathlib.Path('%s').touch()\nwhile not pathlib.Path('%s').exists(): time.sleep(0.05)\n"
    write(
        clone,
        "alpha",
        meet % ("a", "b") + "print(os.environ['OMP_NUM_THREADS'], os.environ['HELPERS_STILL'])",
    )
    write(clone, "beta", meet % ("b", "a"))
    assert at_once() == 2
    start = time.time()
    with ThreadPoolExecutor(1) as other:  # a browser's loop may run in this one
        other.submit(
            asyncio.run, inside()
        ).result()  # each waits for the other: in turn, they would wait for ever
    assert time.time() - start < 100
    assert executed(clone / "chapters/alpha.ipynb", clone).cells[1].outputs[0].text == "1 1\n"
    assert [name for name, _, _ in times(notebooks(clone), clone)] == ["alpha", "beta"]
    monkeypatch.setattr(
        "book.execution.psutil.virtual_memory", lambda: type("memory", (), {"total": 3e9})
    )
    assert at_once() == 1
    assert environment(clone)["OMP_NUM_THREADS"] == "2"


def test_a_fresh_clone_begins_with_the_longest_notebook(clone):
    (clone / "benchmarks").mkdir()
    for seconds in (
        "alpha,1\nbeta,9\n",
        "alpha,9\nbeta,1\n",
        "beta,1\n",
    ):  # what nobody has measured comes first
        (clone / "benchmarks/notebooks.csv").write_text("notebook,seconds\n" + seconds)
        first = longest_first(notebooks(clone), clone)[0].stem
        assert first == ("beta" if "beta,9" in seconds else "alpha")
    known = {
        row.split(",")[0]
        for row in (ROOT / "benchmarks/notebooks.csv").read_text().splitlines()[1:]
    }
    there = {str(p.relative_to(ROOT / "chapters").with_suffix("")) for p in book()}
    there |= {f"editions/{name.replace('/', '-')}.zh" for name in there}
    assert known <= there, "`tools/times.py book` writes them"


def test_a_kernel_that_dies_fails_the_build(clone):
    write(clone, "beta", "import os; os._exit(1)")
    with pytest.raises(Exception, match=r"chapters/beta failed after .* DeadKernelError"):
        execute(notebooks(clone), clone)


def test_kernels_of_many_notebooks_are_copies_that_have_imported_and_are_else_as_one_that_was_started(
    clone, monkeypatch
):
    monkeypatch.setattr("book.execution.at_once", lambda: 1)
    asks = (
        "import os, subprocess, sys\n"
        + "print({}, os.getcwd(), sys.path, os.environ['PYTHONPATH'], {})"
    )
    asks = asks.format(
        "'torch' in sys.modules", "subprocess.run(['false']).returncode, os.environ['MPLBACKEND']"
    )
    write(clone, "alpha", asks)
    write(clone, "beta", asks + "  # a copy")
    alpha, beta = notebooks(clone)
    execute([alpha], clone)
    write(clone, "alpha", asks.replace("import os,", "import  os,") + "\n0")
    execute([alpha, beta], clone)
    (started,) = [
        p
        for p in (clone / "_build/executed/chapters/alpha").glob("*.ipynb")
        if p != kept(alpha, clone)
    ]
    said = [
        nbformat.read(path, as_version=4).cells[1].outputs[0].text
        for path in (started, kept(beta, clone))
    ]
    assert said[1] == said[0].replace("False", "True", 1)
    write(clone, "alpha", "import os; os._exit(1)")
    write(clone, "beta", "import os; os._exit(2)")
    with pytest.raises(Exception, match=r"chapters/beta failed after .* DeadKernelError"):
        execute([alpha, beta], clone)


def test_every_page_of_the_toc_exists_and_every_page_is_in_it():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = {toc["root"]}
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            listed |= {
                chapter["file"],
                *(section["file"] for section in chapter.get("sections", [])),
            }
    there = {p.relative_to(ROOT).with_suffix("").as_posix() for p in pages()}
    assert listed == there, (
        f"each page of chapters/ stands in _toc.yml, and no other: {sorted(listed ^ there)}"
    )
