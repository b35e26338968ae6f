"""Both packages as they are shipped: each wheel is built, unpacked alone into an empty folder, and runs its examples.

No source folder is importable meanwhile, so a module, a table or a font that a wheel lacks is an error here.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

WHEELS = {"helpers": ROOT / "src/helpers", "course": ROOT}
HOLD = {"helpers": {"helpers"}, "course": {"helpers", "course"}}  # the packages in each wheel

# Runs every docstring example of some packages, without what the source folder offers; prints where and how many.
EXAMPLES = r"""
import contextlib, doctest, importlib, inspect, io, os, pkgutil, sys
place, *packages = sys.argv[1:]
sys.path[:] = [place] + [each for each in sys.path if not each.rstrip("/").endswith("/src")]
if "course" not in packages:
    sys.modules["course"] = None
import matplotlib
matplotlib.use("agg")
options, done, finder = doctest.NORMALIZE_WHITESPACE, 0, doctest.DocTestFinder(exclude_empty=True)
for package in map(importlib.import_module, packages):
    assert package.__file__.startswith(place), package.__file__
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.endswith("__main__"):
            continue
        there = importlib.import_module(module.name)
        for inner, value in vars(there).items():
            if getattr(value, "__module__", None) == module.name and callable(value):
                for test in finder.find(inspect.unwrap(value), f"{module.name}.{inner}", there, vars(there)):
                    result = doctest.DocTestRunner(optionflags=options).run(test, clear_globs=False)
                    assert not result.failed, test.name
                    done += bool(test.examples)
print(done)
"""


def unpack(name: str, folder: Path) -> Path:
    """Build the wheel of a package and unpack it: what `pip install --no-deps --target` does."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    subprocess.run([*command, "--wheel-dir", folder, WHEELS[name]], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    place = folder / "installed"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(place)
    return place


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, Path]:
    return {name: unpack(name, tmp_path_factory.mktemp(name)) for name in WHEELS}


@pytest.mark.parametrize("name", WHEELS)
def test_wheel_holds_its_packages_and_all_data(places, name):
    place = places[name]
    assert {each.name for each in place.iterdir() if each.suffix != ".dist-info"} == HOLD[name]
    tables = {
        each.relative_to(ROOT / "data") for each in (ROOT / "data").rglob("*") if each.is_file()
    }
    shipped = {
        each.relative_to(place / "helpers/_data") for each in (place / "helpers/_data").rglob("*")
    }
    assert tables <= shipped, sorted(tables - shipped)[:5]
    ours = {
        each.relative_to(ROOT / "src")
        for kind in HOLD[name]
        for each in (ROOT / "src" / kind).rglob("*.py")
    }
    missing = [each for each in ours if not (place / each).exists()]
    assert not missing, missing


CHINESE = """
import sys
sys.path[:] = [sys.argv[1]] + [each for each in sys.path if not each.rstrip("/").endswith("/src")]
from course import editions
from helpers import words
assert editions.__file__.startswith(sys.argv[1]), editions.__file__
editions.use("zh", page="3-representational-collapse/lesson")
print(words.translated("n (tokens)"), *words._faces)
"""


def test_a_translated_notebook_has_its_words_and_its_type_from_the_wheel(places, tmp_path):
    """As on Colab and offline: nothing of the source tree is there."""
    tables = {path.relative_to(ROOT / "chapters") for path in ROOT.glob("chapters/**/*.po")}
    folder = places["course"] / "course/editions/_pages"
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == tables
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", CHINESE, str(places["course"])]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("n（token 数）")
    assert "Noto Sans SC" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", WHEELS)
def test_wheel_alone_runs_every_example(places, name, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "OMP_NUM_THREADS": "1"
    }
    command = [sys.executable, "-c", EXAMPLES, str(places[name]), name]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    assert int(done.stdout.split()[-1]) > 90
