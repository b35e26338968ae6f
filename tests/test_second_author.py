"""What CONTRIBUTING promises a second author: each documented change, followed by the whole `make check`, is green.

All changes are made in one copy of the repository, one check follows. With `AUTHORS=each` in the environment, as CI
runs it each week, a check follows each of them, in a copy of its own.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from chapter import begin, first_free
from conftest import ROOT
from exercise import first_free as free_exercise

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

PAGE = (ROOT / "chapters/make-a-chapter.md").read_text()
RECIPES = (ROOT / "CONTRIBUTING.md").read_text()
CHAPTER = re.search(r"`make chapter (NUMBER=\S+ NAME=\S+ TITLE=\"[^\"]+\")`", PAGE)[1]
EXERCISE = re.search(r"`make exercise (NUMBER=\S+ NAME=\S+ TITLE=\"[^\"]+\")`", RECIPES)[1]
LEFT_OUT = (
    ".git",
    ".venv",
    ".venv-colab",
    "_build",
    "node_modules",
    "dist",
    "__pycache__",
    ".hypothesis",
    ".pytest_cache",
)

CLAIM = '''

EVEN = Threshold(1e-9)


@rule(
    holds=(f"off by less than {EVEN:.0e} at each length", lambda off: max(off) < EVEN),
    nothing=("the first entry in place of the mean", lambda: {"off": [0.2, 0.1, 0.06]}),
)
def mean_of_equal_values() -> Numbers:
    """How far the mean of n equal values is from one of them."""
    return {"off": [abs(sum([1 / 3] * n) / n - 1 / 3) for n in (2, 4, 8)]}
'''
CLAIM_WORDS = """
[mean_of_equal_values]
statement = "The mean of equal values is one of them"
shown = "3-representational-collapse/lesson#{heading}"
ruler = "sink score"
theorem = true
varied = "how many values there are, from 2 to 8"
assumes = "that the values are equal"
would_change_if = "nothing, it is counted"
measured = "the mean is off by {max(off):.1e} at most, of 3 lengths"
"""
CLAIM_EXPECTED = """
[mean_of_equal_values]
may = ["holds"]
why = "a closed form"
[mean_of_equal_values.evidence]
holds = { off = [0.0, 0.0] }
"does not hold here" = { off = [0.0, 0.1] }
"""


def run(root, *command, **environment):
    """Run a command in a copy of the repository; its output where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), **environment}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (
        f"{shlex.join(map(str, command))}\n{(done.stdout + done.stderr)[-6000:]}"
    )
    return done.stdout


def copied(root):
    """Copy what git would hand over; what is installed is shared."""
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name in (".venv", "frontend/node_modules", "frontend/dist"):
        (root / name).symlink_to((ROOT / name).resolve())
    return root


def made(root, target, arguments, number):
    """Run the tool of a make target as the page does, with a number that is still free."""
    _, *values = [word.partition("=")[2] for word in shlex.split(arguments)]
    return run(root, sys.executable, f"tools/{target}.py", number, *values)


def add_a_chapter(root):
    made(root, "chapter", CHAPTER, first_free(root))


def add_an_exercise(root):
    made(
        root,
        "exercise",
        EXERCISE,
        free_exercise("2", next(root.glob("chapters/2-*/exercises.ipynb"))),
    )


def add_a_claim(root):
    lesson = json.loads(next((root / "chapters").glob("3-*/lesson.ipynb")).read_text())
    texts = "\n".join("".join(cell["source"]) for cell in lesson["cells"])
    heading = re.search(r"^## ([\w ,]+)$", texts, re.M)[1]
    for name, text in (
        ("src/course/chapter3/claims.py", CLAIM),
        ("src/course/scorecard/chapter3.toml", CLAIM_WORDS.replace("{heading}", heading)),
        ("tests/expected/chapter3.toml", CLAIM_EXPECTED),
    ):
        path = root / name
        path.write_text(path.read_text().rstrip("\n") + "\n" + text)


def change_a_sentence(root):
    """Add words to the first long paragraph of a lesson that has a Chinese edition."""
    path = next((root / "chapters").glob("3-*/lesson.ipynb"))
    book = json.loads(path.read_text())
    texts = [
        cell
        for cell in book["cells"]
        if cell["cell_type"] == "markdown" and "cue" not in "".join(cell["source"])
    ]
    cell = next(cell for cell in texts if re.match(r"[A-Z][^|<>$]{80,}", "".join(cell["source"])))
    cell["source"] = [
        *cell["source"][:-1],
        cell["source"][-1].rstrip("\n") + " We come back to this at the end.",
    ]
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


def add_an_entry(root):
    """Enter a design in the benchmark, as CONTRIBUTING says, and say that it has not been run."""
    path = root / "src/course/runs/entries.py"
    text = path.read_text()
    for place, line in (
        ("ENTRIES", '"p-RoPE, half": Entry({"turning": 0.5}), '),
        ("NOT_RUN", '"p-RoPE, half": "not run yet", '),
    ):
        start = re.search(rf"^{place}\b[^=]*= \{{", text, re.M)
        assert start, f"{path.name} must have {place}"
        text = text[: start.end()] + line + text[start.end() :]
    row = re.search(r'"p-RoPE",', text[text.index("KINDS") :])[0]
    path.write_text(
        text[: text.index("KINDS")]
        + text[text.index("KINDS") :].replace(row, row + ' "p-RoPE, half",', 1)
    )


CHANGES = (add_a_chapter, add_an_exercise, add_a_claim, change_a_sentence, add_an_entry)
EACH = os.environ.get("AUTHORS") == "each"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "changes",
    [[one] for one in CHANGES] if EACH else [CHANGES],
    ids=lambda some: "+".join(f.__name__ for f in some),
)
def test_a_documented_change_leaves_make_check_green(tmp_path, changes):
    root = copied(tmp_path / "clone")
    for change in changes:
        change(root)
    run(root, sys.executable, "tools/sync.py")
    run(root, root / ".venv/bin/ruff", "format", "-q", ".")
    run(root, "make", "-o", ".venv/.ready", "-o", "frontend/dist/.ready", "check")


def test_a_new_chapter_has_what_its_page_names(tmp_path):
    root = copied(tmp_path / "clone")
    add_a_chapter(root)
    page = re.sub(r"(chapters?/?)8\b", rf"\g<1>{first_free()}", PAGE)
    named = re.findall(r"`((?:src|tests|chapters)/[^`]+\.\w+)`", page)
    assert len(named) > 5
    assert [name for name in named if not (root / name).exists()] == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("3", "first-token", "T"), "NUMBER must be"),
        ((first_free(), "First", "T"), "NAME must be"),
        ((first_free(), "first-token", ' "'), "TITLE must be"),
    ],
)
def test_a_chapter_that_cannot_be_is_refused(given, why):
    with pytest.raises(ValueError, match=why):
        begin(*given)
