"""Notebooks from top to bottom in what Colab has, in an empty folder with only the installed package.

One page of each kind, a Chinese one as its page's button gives it, and the imports of all; with `COLAB_PAGES=all`, once a week,
every page.
"""

import ast
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tomllib

import pytest
from conftest import ROOT
from test_wheels import EXAMPLES

from book import assignments, editions
from book.execution import key
from book.pages import notebooks

PYTHON = ROOT / ".venv-colab/bin/python"
CHOSEN = (
    "1-over-squashing/lesson",
    "6-differential-transformer/lab",
    "2-causal-attention/exercises",
    "0-build-it/build",
)
WHOLE = os.environ.get("COLAB_PAGES") == "all"
NOTEBOOKS = [path for path in notebooks() if WHOLE or f"{path.parent.name}/{path.stem}" in CHOSEN]
NOTEBOOKS += [
    ROOT / f"_build/html/_sources/{editions.stem(path.with_suffix('.zh.po'))}.ipynb"
    for path in notebooks()
    if editions.tables(path)
    and (WHOLE or (path.parent.name == "3-representational-collapse" and path.stem == "lesson"))
]
PRESENT = ("numpy", "matplotlib", "ipywidgets", "ipython", "torch", "transformers")
pytestmark = pytest.mark.colab
EXECUTE = """
import sys, time, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
start = time.time()
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
print(f"executed in {time.time() - start:.0f} s")
nbformat.write(notebook, sys.argv[2])
"""


def run(*command, folder):
    environment = {k: v for k, v in os.environ.items() if k not in ("HELPERS_STILL", "PYTHONPATH")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def pins() -> dict[str, str]:
    lines = (ROOT / "tests/colab-constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def test_the_environment_is_colab_like_and_the_package_is_installed_not_linked(tmp_path):
    code = "import importlib.metadata as m, helpers, json; print(json.dumps([{n: m.version(n) for n in %r}, helpers.__file__]))"
    versions, path = json.loads(run(PYTHON, "-c", code % (PRESENT,), folder=tmp_path).stdout)
    assert {name: version.split("+")[0] for name, version in versions.items()} == {
        name: pins()[name] for name in PRESENT
    }
    assert ".venv-colab" in path


def test_installing_the_package_there_touches_nothing_that_colab_has(tmp_path):
    """A second installation, as the set-up cell does it, would install the package and nothing else."""
    ask = (PYTHON, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", str(ROOT))
    done = run(*ask, "--force-reinstall", "--no-deps", folder=tmp_path)
    assert [item["metadata"]["name"] for item in json.loads(done.stdout)["install"]] == [
        "connection-bottlenecks"
    ]
    missing = run(*ask, folder=tmp_path)
    assert {item["metadata"]["name"] for item in json.loads(missing.stdout)["install"]} <= {
        "connection-bottlenecks"
    }


def test_helpers_alone_are_installed_and_run_without_the_course(tmp_path):
    run(
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        tmp_path,
        ROOT / "src/helpers",
        folder=tmp_path,
    )
    assert not (tmp_path / "course").exists()
    done = run(PYTHON, "-c", EXAMPLES, str(tmp_path), "helpers", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    assert int(done.stdout.split()[-1]) > 90


def test_requirements_are_loose_lower_bounds_that_colab_and_the_pins_meet():
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        name, bound = line.split(">=")
        here = pins().get(name) or importlib.metadata.version(name)
        assert [int(x) for x in here.split("+")[0].split(".")[:2]] >= [
            int(x) for x in bound.split(".")[:2]
        ], line


def kept(path):
    """Where a notebook lies that ran well in this environment; nothing that it depends on has changed since."""
    words = [
        (ROOT / name).read_text() for name in ("tests/colab-constraints.txt", "pyproject.toml")
    ]
    place = hashlib.sha256(
        "".join([key(path, ROOT), *words, str(PYTHON.resolve())]).encode()
    ).hexdigest()[:16]
    return ROOT / "_build/colab" / path.relative_to(ROOT).with_suffix("") / f"{place}.ipynb"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_notebook_runs_without_an_error_and_with_its_widgets(path, tmp_path):
    done, place = tmp_path / "executed.ipynb", kept(path)
    if not place.exists():
        ran = run(PYTHON, "-c", EXECUTE, str(path), done.name, folder=tmp_path)
        print(ran.stdout)
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert problems(json.loads(done.read_text())["cells"]) == []
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir(parents=True)
        shutil.copy(done, place)
    assert problems(json.loads(place.read_text())["cells"]) == []


def test_every_import_of_every_page_works_there_and_each_kind_of_cell_is_on_a_page_that_is_executed(
    tmp_path,
):
    code = {path: "\n".join(plain(path)) for path in notebooks()}
    nodes = {path: ast.walk(ast.parse(text)) for path, text in code.items()}
    lines = {
        ast.unparse(n)
        for found in nodes.values()
        for n in found
        if isinstance(n, ast.Import | ast.ImportFrom)
    }
    assert len(lines) > 50
    done = run(PYTHON, "-c", "\n".join(sorted(lines)), folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    chosen = "\n".join(
        text for path, text in code.items() if f"{path.parent.name}/{path.stem}" in CHOSEN
    )
    for kind in ("explore(", "show(", "drawing.show(", "Markdown(", "models.load(", ".solution("):
        assert kind in chosen, kind


def plain(path) -> list[str]:
    """The Python of a page, without the set-up cell."""
    cells = json.loads(path.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [
        re.sub(r"^[%!].*", "", text, flags=re.M) for text in sources if "google.colab" not in text
    ]


def problems(cells) -> list[str]:
    """What IPython 7.34 keeps to itself: an error while an output is displayed, which does not fail the run."""
    found = []
    for cell in cells:
        source, outputs = "".join(cell["source"]), cell.get("outputs", [])
        where = source.strip().splitlines()[0] if source.strip() else ""
        if "raises-exception" not in cell["metadata"].get("tags", []):
            found += [
                f"{where}: {o['ename']}: {o['evalue']}"
                for o in outputs
                if o["output_type"] == "error"
            ]
        if cell["cell_type"] == "code" and re.search(r"^explore\(", source, re.M):
            views = [
                o
                for o in outputs
                if "application/vnd.jupyter.widget-view+json" in o.get("data", {})
            ]
            found += [f"{where}: no widget"] * (len(views) != 1)
    return found


def test_an_error_that_the_run_hides_is_found(tmp_path):
    """The control: a display that fails does not fail the run, and is seen all the same."""
    sources = [
        "class Bad:\n    def _repr_html_(self):\n        raise RuntimeError('hidden')\nBad()",
        "def explore(n): pass\nexplore(\n1)",
    ]
    (tmp_path / "bad.ipynb").write_text(
        assignments.notebook([("code", source) for source in sources])
    )
    done = run(PYTHON, "-c", EXECUTE, "bad.ipynb", "executed.ipynb", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert problems(json.loads((tmp_path / "executed.ipynb").read_text())["cells"]) == [
        "class Bad:: RuntimeError: hidden", "def explore(n): pass: no widget",
    ]  # fmt: skip
