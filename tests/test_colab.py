"""Every notebook from top to bottom in what Colab has, in an empty folder with only the installed package."""

import importlib.metadata
import json
import os
import subprocess
import tomllib

import pytest
from conftest import ROOT

PYTHON = ROOT / ".venv-colab/bin/python"
NOTEBOOKS = sorted(p for p in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
PRESENT = ("numpy", "matplotlib", "ipywidgets", "ipython", "transformers")
pytestmark = pytest.mark.colab
EXECUTE = """
import sys, time, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
start = time.time()
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
print(f"executed in {time.time() - start:.0f} s")
"""


def run(*command, folder):
    environment = {k: v for k, v in os.environ.items() if k not in ("HELPERS_STILL", "PYTHONPATH")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def pins() -> dict[str, str]:
    lines = (ROOT / "tests/colab-constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def test_the_environment_is_colab_like_and_the_package_is_installed_not_linked(tmp_path):
    code = "import importlib.metadata as m, helpers, json; print(json.dumps([{n: m.version(n) for n in %r}, helpers.__file__]))"
    versions, path = json.loads(run(PYTHON, "-c", code % (PRESENT,), folder=tmp_path).stdout)
    assert versions == {name: pins()[name] for name in PRESENT}
    assert ".venv-colab" in path


def test_installing_the_package_there_touches_nothing_that_colab_has(tmp_path):
    """A second installation, as the set-up cell does it, would install the package and nothing else."""
    done = run(
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--dry-run",
        "--report",
        "-",
        "--force-reinstall",
        "--no-deps",
        str(ROOT),
        folder=tmp_path,
    )
    assert [item["metadata"]["name"] for item in json.loads(done.stdout)["install"]] == ["connection-bottlenecks"]
    missing = run(PYTHON, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", str(ROOT), folder=tmp_path)
    assert {item["metadata"]["name"] for item in json.loads(missing.stdout)["install"]} <= {"connection-bottlenecks"}


def test_requirements_are_loose_lower_bounds_that_colab_and_the_pins_meet():
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        name, bound = line.split(">=")
        here = pins().get(name) or importlib.metadata.version(name)
        assert [int(x) for x in here.split("+")[0].split(".")[:2]] >= [int(x) for x in bound.split(".")[:2]], line


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_notebook_runs(path, tmp_path):
    done = run(PYTHON, "-c", EXECUTE, str(path), folder=tmp_path)
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-3000:]
