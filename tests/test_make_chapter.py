"""The page *Make a chapter*, followed step by step in a clone by somebody who knows nothing else."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from chapter import begin
from conftest import ROOT

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

PAGE = (ROOT / "chapters/make-a-chapter.md").read_text()
GIVEN = re.search(r"`make chapter NUMBER=(\S+) NAME=(\S+) TITLE=(\"[^\"]+\")`", PAGE)
NUMBER, NAME, TITLE = (shlex.split(word)[0] for word in GIVEN.groups())
TAKEN = ("benchmarks", "chapters", "data", "frontend/live", "slides", "sphinx_ext", "src", "tests", "tools", "_static")
# what the page's step 9 says of this chapter; the whole of it takes minutes
CHECKED = [f"tests/test_{name}.py" for name in ("house", "notebooks", "claims", "drawn")]
CHOSEN = (
    f"circle or rooms or floor or sync or {NUMBER}-{NAME} or {NAME.replace('-', '_')}_first_share or chapter{NUMBER}"
)
PAGE_RUNS = f"""
import json
from pathlib import Path
cells = json.loads(Path("chapters/{NUMBER}-{NAME}/draft.ipynb").read_text())["cells"]
names, found = {{}}, []
for cell in cells:
    if cell["cell_type"] == "code" and "google.colab" not in "".join(cell["source"]):
        *body, last = "".join(cell["source"]).splitlines()
        exec("\\n".join(body), names)
        if last.startswith("checks."):
            found.append(eval(last, names).sentence)
        else:
            exec(last, names)
check = names["checks"].first_share
print(found, [bool(check(f)) for f in (lambda n: sum(1 / k for k in range(1, n + 1)) / n, lambda n: 1 / n)], check(lambda n: 1 / n).sentence)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    for name in TAKEN:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    return root


def run(root, *command):
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    return subprocess.run(
        [sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_stranger_follows_the_page_and_the_checks_pass(clone):
    steps = re.findall(r"^\d+\. .*?`(make|\.venv/bin/python) ([^`]+)`", PAGE, re.M)
    assert [" ".join(step).split(" -")[0].split(" NUMBER")[0] for step in steps] == [
        "make chapter",
        "make sync",
        ".venv/bin/python",
        "make lab",
        "make check",
        "make book",
    ]
    written = run(clone, "tools/chapter.py", NUMBER, NAME, TITLE)
    assert written.returncode == 0, written.stderr
    named = re.findall(r"`((?:src|tests|chapters)/[^`]+)`", PAGE)
    assert len(named) > 6
    synced = run(clone, "tools/sync.py")
    assert synced.returncode == 0, synced.stderr
    redrawn = run(clone, *shlex.split(steps[2][1]))
    assert redrawn.returncode == 0, redrawn.stdout
    assert [name for name in named if not (clone / name).exists()] == []
    done = run(clone, "-c", PAGE_RUNS)
    assert "still empty" in done.stdout, done.stderr
    assert "[True, False]" in done.stdout
    assert "last row alone" in done.stdout
    done = run(clone, "-m", "pytest", "-q", "-n", "0", "-m", "not site", *CHECKED, "-k", CHOSEN)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("3", "first-token", "T"), "NUMBER must be"),
        ((NUMBER, "First", "T"), "NAME must be"),
        ((NUMBER, "first-token", ' "'), "TITLE must be"),
    ],
)
def test_what_cannot_be_a_chapter_is_told_in_a_sentence(given, why):
    with pytest.raises(ValueError, match=why):
        begin(*given)
