"""An exercise in a page has the verdict that it has in a notebook: right answers, wrong ones, and every mistake of the tables.

Each answer is judged twice, with torch and with the stand-in of a page, by the same course files, in two processes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import answering
import networkx
import pytest
from conftest import ROOT

from course.exercises import written

pytestmark = pytest.mark.slow
TABLES = ROOT / "src/course/exercises"
NOTEBOOKS = answering.notebooks()
PAGE = tomllib.loads((TABLES / "page.toml").read_text())
NAMES = """
import functools, itertools, math, re
from fractions import Fraction
import numpy as np
from torch import nn
from torch.nn import functional
own = checks
globals().update({name: each for name, each in vars(own).items() if not name.startswith("__")})
checks = own
import answers_NUMBER
globals().update({name: each for name, each in vars(answers_NUMBER).items() if not name.startswith("__")})
"""
MORE = {"4.7": ("", ", 390"), "5.2": ("3, ", "")}  # what a check is given beside the function

# Where the sentences of page and notebook differ, and why. The verdict is the same.
DIFFERENT = {
    "1.5": "the rounding noise of a singular matrix's inverse",
    "2.3": "with 110 tokens the search for a slip takes longer in a page than it may",
    "2.6": "torch adds float32 numbers one by one: its last digits are another order's",
    "3.8": "the sixth digit of float32 numbers",
    "4.1": "the decoders of a page have other random numbers",
    "4.4": "the decoders of a page have other random numbers",
    "4.9": "random codes; which row of a half-precision matrix is furthest from length 1",
    "5.1": "the sixth digit of a float32 number",
    "5.4": "4,000 random queries, and a dictionary of a tensor as Python prints it",
}


def cells(number):
    """The book's own answers, by the name of the check: the code and the line of the check below it."""
    return {
        re.match(r"checks\.(\w+)", text.rstrip().splitlines()[-1])[1]: text.rstrip().rpartition(
            "\n"
        )[::2]
        for text in answering.code_cells(NOTEBOOKS[number])
        if text.startswith("# @title Solution")
    }


def jobs(chapter, data):
    """Each answer of tests/answers and each mistake of the chapter's table, as a learner would write it."""
    rows = tomllib.loads((TABLES / f"chapter{chapter}.toml").read_text())
    tried = tomllib.loads((ROOT / f"tests/answers/chapter{chapter}.toml").read_text())
    names, solutions = (
        {row["number"]: name for name, row in rows.items() if "number" in row},
        cells(chapter),
    )
    shared = {"chapter": str(data), "more": NAMES.replace("NUMBER", str(chapter))}
    for number, name in names.items():
        if number in PAGE["absent"]:
            continue
        row = rows[name]
        guess = f"{row['true']!r}, " if row.get("guesses") else ""
        for kind in ("right", "wrong"):
            for line in filter(None, tried[number].get(kind, "").splitlines()):
                text = line if kind == "right" else line.rpartition(" :: ")[0]
                call = f"checks.{name}({guess}*answer)"
                yield shared | {
                    "number": number,
                    "text": text,
                    "source": f"answer = ({text},)\n",
                    "call": call,
                }
        body, line = solutions[name]
        yield shared | {
            "number": number,
            "text": "the book's",
            "source": body or "\n",
            "call": line or body,
            "book": True,
        }
        before, after = MORE.get(number, ("", ""))
        for made, _ in written.checks._rows(row.get("mistakes", "")):
            inside = row["call"].rstrip(")").partition("(")[2]
            source = f"{solutions[name][0]}\nright = solution\nanswer = lambda {inside}: {made}\n"
            call = f"checks.{name}({guess}{before}answer{after})"
            yield shared | {"number": number, "text": made, "source": source, "call": call}


def judged(kind, tasks, path):
    command = [
        sys.executable,
        *(["-S", "-I"] if kind == "page" else []),
        "tests/in_page.py",
        kind,
        str(path),
    ]
    places = os.pathsep.join([str(path), str(ROOT / "src")])
    done = subprocess.run(
        command,
        input="".join(json.dumps(each) + "\n" for each in tasks),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A folder with what a page unpacks; and one for the notebook's side."""
    page, notebook = tmp_path_factory.mktemp("page"), tmp_path_factory.mktemp("notebook")
    for name, text in written.files().items():
        (page / name).parent.mkdir(parents=True, exist_ok=True)
        (page / name).write_text(text)
    if not hasattr(sys, "monitoring"):  # below Python 3.12 the limits are the notebook's
        shutil.copy(TABLES / "clock.py", page / "course/exercises/clock.py")
    (page / "networkx").symlink_to(Path(networkx.__file__).parent)
    for number in NOTEBOOKS:
        for folder in (page, notebook):
            shutil.copy(ROOT / f"tests/answers/chapter{number}.py", folder / f"answers_{number}.py")
    return page, notebook


@pytest.mark.parametrize("chapter", NOTEBOOKS)
def test_page_and_notebook_give_one_verdict(chapter, shipped, tmp_path):
    path = NOTEBOOKS[chapter]
    data = tmp_path / "data.json"
    data.write_text(
        json.dumps(written.chapter(chapter, answering.setup_cell(path), answering.solutions(path)))
    )
    tasks = list(jobs(chapter, data))
    page, notebook = judged("page", tasks, shipped[0]), judged("notebook", tasks, shipped[1])
    assert len(page) == len(notebook) == len(tasks)
    wrong, lacking, same = [], 0, 0
    books = [
        (task["number"], one) for task, one in zip(tasks, page, strict=True) if task.get("book")
    ]
    assert [each for each in books if each[1]["kind"] != "right"] == []
    for task, one, other in zip(tasks, page, notebook, strict=True):
        further = one["kind"] == "right" and task["number"] in PAGE["further"]
        if (
            one["kind"] == "absent"
        ):  # NumPy, or a name that the stand-in lacks: said, and nothing is judged
            lacking += 1
        elif one["kind"] != other["kind"]:
            wrong.append((task["number"], task["text"], one, other))
        elif one["sentence"] == other["sentence"] or further:
            same += 1
        elif task["number"] not in DIFFERENT:
            wrong.append((task["number"], task["text"], one["sentence"], other["sentence"]))
    print(
        f"chapter {chapter}: {len(tasks)} answers, {same} sentences the same, {lacking} not judged in the page"
    )
    assert not wrong, wrong[:5]
    assert lacking < 0.25 * len(tasks)


def test_each_exercise_is_checked_in_the_page_or_says_why_not():
    numbers = {row["number"] for path in NOTEBOOKS.values() for row in answering.listed(path)}
    assert set(PAGE["absent"]) | set(PAGE["further"]) <= numbers
    assert all(each.endswith((".", "?")) for table in PAGE.values() for each in table.values())


@pytest.mark.parametrize(
    "source",
    ["def mask(n):\n    raise NotImplementedError\n", "def mask(n)\n", "mask = 3\n", "x = 1\n"],
)
def test_an_answer_that_is_none_has_a_sentence(source, shipped, tmp_path):
    data = tmp_path / "data.json"
    data.write_text(
        json.dumps(written.chapter(2, answering.setup_cell(NOTEBOOKS[2]), {"mask": (len,)}))
    )
    (found,) = judged(
        "page", [{"chapter": str(data), "source": source, "call": "checks.mask(mask)"}], shipped[0]
    )
    assert found["kind"] in ("empty", "error", "wrong")
    assert found["sentence"].endswith(".")
