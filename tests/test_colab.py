"""Every notebook from top to bottom in what Colab has, in an empty folder with only the installed package."""

import importlib.metadata
import json
import os
import re
import socket
import subprocess
import time
import tomllib

import pytest
from conftest import ROOT
from playwright.sync_api import Error

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
nbformat.write(notebook, sys.argv[2])
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
def test_notebook_runs_without_an_error_and_with_its_widgets(path, tmp_path):
    done = run(PYTHON, "-c", EXECUTE, str(path), "executed.ipynb", folder=tmp_path)
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((tmp_path / "executed.ipynb").read_text())["cells"]
    assert problems(cells) == []


def problems(cells) -> list[str]:
    """What IPython 7.34 keeps to itself: an error while an output is displayed, which does not fail the run."""
    found = []
    for cell in cells:
        source, outputs = "".join(cell["source"]), cell.get("outputs", [])
        where = source.strip().splitlines()[0] if source.strip() else ""
        if "raises-exception" not in cell["metadata"].get("tags", []):
            found += [f"{where}: {o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"]
        if cell["cell_type"] == "code" and re.search(r"^explore\(", source, re.M):
            views = [o for o in outputs if "application/vnd.jupyter.widget-view+json" in o.get("data", {})]
            found += [f"{where}: no widget"] * (len(views) != 1)
    return found


def test_an_error_that_the_run_hides_is_found(tmp_path):
    """The control: a display that fails does not fail the run, and is seen all the same."""
    sources = [
        "class Bad:\n    def _repr_html_(self):\n        raise RuntimeError('hidden')\nBad()",
        "def explore(n): pass\nexplore(\n1)",
    ]
    cells = [{"cell_type": "code", "id": str(k), "metadata": {}, "source": s, "outputs": [], "execution_count": None} for k, s in enumerate(sources)]  # fmt: skip
    (tmp_path / "bad.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    done = run(PYTHON, "-c", EXECUTE, "bad.ipynb", "executed.ipynb", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert problems(json.loads((tmp_path / "executed.ipynb").read_text())["cells"]) == [
        "class Bad:: RuntimeError: hidden", "def explore(n): pass: no widget",
    ]  # fmt: skip


WIDGET = """from helpers import explore, style
def draw(n):
    ax = style.axes(f"A line to {n}", "x", "y")
    ax.plot([0, 1], [0, n])
    return ax, f"It ends at {n}."
explore(draw, caption="A line", n=[1, 2, 3])"""


@pytest.fixture
def classic(chromium, tmp_path):
    """A page of the classic Notebook 6.5, with ipywidgets 7.7, on a notebook of one widget."""
    cell = {"cell_type": "code", "metadata": {}, "source": WIDGET, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "widget.ipynb").write_text(json.dumps(notebook))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"token": "''", "password": "''", "port": port, "open_browser": False, "allow_root": True}
    environment = {k: v for k, v in os.environ.items() if k not in ("HELPERS_STILL", "PYTHONPATH")}
    environment |= {"JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "PATH": f"{PYTHON.parent}:{environment['PATH']}"}
    server = subprocess.Popen(
        [PYTHON, "-m", "notebook", *(f"--NotebookApp.{name}={value}" for name, value in options.items())],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    page = chromium.new_page(viewport={"width": 1280, "height": 1000})
    try:
        for _ in range(120):
            try:
                page.goto(f"http://127.0.0.1:{port}/notebooks/widget.ipynb")
                break
            except Error:
                time.sleep(0.5)
        page.wait_for_function("window.Jupyter?.notebook?.kernel?.is_connected()", timeout=90_000)
        page.evaluate("Jupyter.notebook.execute_all_cells()")
        page.wait_for_selector(".explore img", timeout=90_000)
        yield page
    finally:
        page.close()
        server.terminate()
        server.wait(timeout=30)


def test_a_slider_moves_the_picture_in_the_classic_notebook(classic):
    """Colab's own page cannot be had here; this is the other one that speaks to ipywidgets 7.7.1."""
    assert classic.locator(".explore img").get_attribute("alt") == "A line. n: 1. It ends at 1."
    classic.locator(".ui-slider-handle").focus()
    for n in (2, 3):
        classic.keyboard.press("ArrowRight")
        classic.wait_for_selector(f'.explore img[alt="A line. n: {n}. It ends at {n}."]')
        assert f"It ends at {n}." in classic.locator(".explore-finding").inner_text()
    classic.locator(".explore-play").click()
    classic.wait_for_selector('.explore-play:has-text("Stop")')
    classic.wait_for_selector('.explore img[alt="A line. n: 2. It ends at 2."]')
    classic.locator(".explore-play").click()
    classic.wait_for_selector('.explore-play:has-text("Play")')
