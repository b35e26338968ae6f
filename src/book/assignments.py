"""Make the assignments of a term without solutions, and mark submissions on hidden cases.

    python tools/assignments.py make _build/assignments          handouts and solutions
    python tools/assignments.py mark 3 FOLDER --seed 2027        mark every notebook in a folder
    python tools/assignments.py draw 2027 _build/term            an assignment and an examination
    python tools/assignments.py mark drawn FOLDER --seed 2027    mark that assignment

`chapters/plans/assignments.yml` lists the exercises of an assignment, their points, and the cases,
whose numbers depend on the seed. Each submission runs in a separate process, with limits of time,
memory and file size. If `bwrap` is installed (Debian's package is bubblewrap), the process sees no
network and no files but Python's and an empty folder. Otherwise, hooks on Python's audit events
forbid the network and other files. These hooks stop accidents, but not a submission that is meant
to cheat. The process returns only values, and we compare these values here with the solution, as
the exercise's check does. We keep the first 100 kB of the printed output, but do not read it.

A case is the arguments of one call, in Python, with `seed` for numbers that change with the term.
Statement, stub and solution come from the exercise itself. `tests/test_assignments.py` requires
that every exercise is in a class, in an assignment or in the list of those left out, and it tries
wrong, half-right and hostile submissions. A step of the workshop
(`chapters/7-the-race/build.ipynb`) is a cell tagged `step`, whose lines are removed from the
handout, and a cell tagged `check`. `make exercise` writes neither, so the text must name everything
that the check asks for, with its shapes, and its minutes must add up.
"""

import argparse
import contextlib
import csv
import functools
import importlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import yaml

from book import families, questions
from book.pages import ROOT
from course.build.files import writable

SECONDS, CASE = (
    300,
    30,
)  # seconds for a submission with the import of torch, and for one cell or one case
# the number of bytes of a submission's output that we keep; the rest is read and discarded
PRINTED = 100_000
# the number of bytes in all files that a submission writes, if bubblewrap can limit them
ROOM = 64 << 20
CHILD = Path(__file__).with_name("assignments_child.py")


def plan(root: Path = ROOT) -> dict[int, list[dict]]:
    """Read the plan of the assignments, keyed by the number of the assignment.

    Each entry lists its exercises with their numbers, points and cases.
    """
    return yaml.safe_load((root / "chapters/plans/assignments.yml").read_text())["assignments"]


def entries(root: Path, number: int | str, seed: int) -> list[dict]:
    """Return the questions of an assignment.

    For the assignment "drawn" they are drawn from the seed.
    """
    return families.asked(seed) if number == "drawn" else plan(root)[number]


def exercise(root: Path, number: str) -> list[dict]:
    """Return the cells of an exercise in its notebook, from its heading to the next heading.

    Raises:
        ValueError: if there is no exercise with this number.
    """
    cells, inside = [], False
    for path in root.glob(f"chapters/{number.split('.')[0]}-*/exercises.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            heading = re.search(r"^## (\d+\.\d+ )?", "".join(cell["source"]), re.M)
            if heading and cell["cell_type"] == "markdown":
                inside = (heading[1] or "").strip() == number
            cells += [cell] if inside else []
    if not cells:
        raise ValueError(f"number must name an exercise such as 2.1, not {number!r}")
    return cells


def parts(root: Path, number: str, seed: int = 0) -> dict[str, str]:
    """Return the statement, the stub and the solution of an exercise, and its function's name.

    All four come from the notebook, or are drawn from the seed.
    """
    if not number[0].isdigit():
        return families.parts(number, seed)
    cells = exercise(root, number)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    stub, solution = (
        next(text for text in code if part in text)
        for part in ("raise NotImplemented", "def solution")
    )
    stub = stub[stub.index("def ") :] if stub.startswith("prediction") else stub
    name = re.search(r"^def (\w+)", stub, re.M)[1]
    body = solution[solution.index("def solution") :].split("\n\n\nchecks.")[0]
    return {
        "statement": "".join(cells[0]["source"]),
        "stub": stub,
        "name": name,
        "solution": body.replace("def solution(", f"def {name}(", 1),
    }


def notebook(cells: list[tuple[str, str]]) -> str:
    """Return a notebook with the given cells as text."""
    built = [
        {
            "cell_type": kind,
            "id": f"a{k:02d}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for k, (kind, text) in enumerate(cells)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps(
            {"cells": built, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1
        )
        + "\n"
    )


def imports(root: Path, chapter: int, solved: bool) -> str:
    """Return the code that imports what a chapter's exercises need, without the checks.

    Without solutions we also leave out the course, because it contains answers.
    """
    if not chapter:
        return "import math\n\nimport networkx as nx\nimport numpy as np\nimport torch"
    (path,) = root.glob(f"chapters/{chapter}-*/exercises.ipynb")
    code = [
        "".join(c["source"])
        for c in json.loads(path.read_text())["cells"]
        if c["cell_type"] == "code"
    ]
    without = ("checks", "course") if solved else ("checks", "course", "helpers")
    return "\n".join(
        line for line in code[1].splitlines() if not any(word in line for word in without)
    ).strip()


def asked_for(statement: str) -> str:
    """Remove from a statement the sentences about a check and the links into the book.

    The handout has neither.
    """
    sentences = re.split(r"(?<=[.?]) (?=[A-Z])", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", statement))
    return " ".join(sentence for sentence in sentences if "the check" not in sentence.lower())


def handout(root: Path, number: int | str, solved: bool = False, seed: int = 0) -> str:
    """Return the notebook of an assignment as text, with stubs or with solutions."""
    tasks, drawn = entries(root, number, seed), number == "drawn"
    rules = (
        f"# {'The assignment of this term' if drawn else f'Assignment {number}'}\n\nThis "
        "assignment has ten points. Run the notebook from the top, and hand in the file under your "
        "own name: `name.ipynb`. We test your functions on other numbers than those of the "
        "examples. They may use PyTorch, NumPy, SciPy and networkx, but not the packages of this "
        "course. You may print what you like, because printed text does not count. "
    )
    rules += (
        "For a guess, the right option gets one point, and the reason gets another point."
        if drawn
        else "If a task asks for a prediction, write it down for yourself. It gets no points."
    )
    cells = [("markdown", rules), ("code", imports(root, 0 if drawn else number, solved))]
    for task in tasks:
        pieces = parts(root, task["exercise"], seed)
        title = re.sub(
            r"^## \S+ ",
            f"## {task['points']} point{'s' * (task['points'] > 1)}: ",
            asked_for(pieces["statement"]),
        )
        cells += [("markdown", title)]
        cells += [("code", pieces["solution" if solved else "stub"])]
    return notebook(cells)


# pages of steps, which are handed out without the code of their steps
WORKSHOP = {
    "build-it.ipynb": "0-build-it/build",
    **{
        f"yours-{path.parent.name[0]}.ipynb": f"{path.parent.name}/yours"
        for path in sorted(ROOT.glob("chapters/*/yours.ipynb"))
    },
    "workshop.ipynb": "7-the-race/build",
}


# what a page says about its copy without solutions, which the copy itself need not say
ABOUT_COPIES = re.compile(
    r"(?<![^ ])[A-Z][^.]* are folded .*?\[list of handouts\]\([^)]*\)\."
    r"(?: The copy leaves out all solutions except that of (step \d+)[^.]*\.)?"
)


def about_this_copy(match: re.Match) -> str:
    """Return what a copy without solutions says about itself.

    >>> page = "The solutions are folded on this page. See the [list of handouts](a.md)."
    >>> ABOUT_COPIES.sub(about_this_copy, page)
    'Write your lines here, because this copy has no solutions.'
    """
    rest = f" However, it has the solution of {match[1]}." if match[1] else ""
    return f"Write your lines here, because this copy has no solutions.{rest}"


def stripped(text: str, folder: str) -> str:
    """Remove from a page the code that readers write themselves, which is the code of its steps.

    The remaining code of a step sets the names that its check needs to `...`. A link to a page
    becomes a link to the page's handout, if there is one.
    """
    book, beside = json.loads(text), {f"{page}.ipynb": name for name, page in WORKSHOP.items()}

    def leads(link: re.Match) -> str:
        page = os.path.normpath(f"{folder}/../{link[1]}")
        return f"]({beside.get(page, f'../{page}')}"

    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = [
                re.sub(
                    r"\]\(([^):#]+\.(?:ipynb|md))",
                    leads,
                    ABOUT_COPIES.sub(about_this_copy, line),
                )
                for line in cell["source"]
            ]
        if "step" in cell["metadata"].get("tags", []):
            text = "".join(cell["source"])
            names = re.findall(r"^(?:def|class) (\w+)|^(\w+(?:, \w+)*) = ", text, re.M)
            names = dict.fromkeys(", ".join(first or second for first, second in names).split(", "))
            cell["source"] = [
                f"# {len(text.splitlines())} lines or fewer\n",
                f"{' = '.join(names)} = ...\n",
            ]
            cell["metadata"] = {"tags": ["step"]}  # there is nothing to fold
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def folder_of(root: Path, number: float | str) -> str:
    """Return the name of the folder of an exercise's chapter."""
    (path,) = root.glob(f"chapters/{str(number).split('.')[0]}-*/exercises.ipynb")
    return path.parent.name


def without_solutions(root: Path, number: str) -> list[dict]:
    """Return the cells of an exercise as a learner gets them.

    The cells are the chapter's imports, the statement, the stub, the check and the hints.
    """
    folder = folder_of(root, number)
    book = json.loads((root / f"chapters/{folder}/exercises.ipynb").read_text())["cells"]
    code = [cell for cell in book if cell["cell_type"] == "code"]
    start = {
        **code[1],
        "id": f"imports-{number.replace('.', '-')}",
    }  # other pages of the evening have a module `checks`, too
    cells = [
        cell
        for cell in exercise(root, number)
        if not "".join(cell["source"]).startswith("# @title Solution")
    ]
    cells = [cell for cell in cells if "checks.progress()" not in "".join(cell["source"])]
    hidden = re.compile(r"<details>\s*<summary>Solution in words.*?</details>", re.S)
    for cell in cells:
        text = (
            hidden.sub("", "".join(cell["source"]))
            if cell["cell_type"] == "markdown"
            else "".join(cell["source"])
        )
        cell["source"] = text.splitlines(keepends=True)
    return [cells[0], start, *cells[1:]]


def to_do(root: Path, part: dict) -> str:
    """Return a line that says what to do in a part of an evening, and where to stop reading."""
    if "do" in part:
        return f"{part['do']}."
    if "exercises" in part:
        return f"Solve {' and '.join(f'exercise {each}' for each in part['exercises'])} below."
    cells = json.loads((root / f"chapters/{part['page']}.ipynb").read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    title = re.search(r"^# (.+)$", text, re.M)[1]
    if "sections" in part:
        last = re.findall(r"^## (.+)$", text, re.M)[part["sections"] - 1]
        return f"Read “{title}” on the site, up to the end of “{last}”."
    steps = part.get("steps")
    return f"Work through “{title}” below" + (f", steps 1 to {steps[-1]}." if steps else ".")


def evening(root: Path, number: int) -> str:
    """Return the notebook of one of the five evenings as text.

    The notebook has a list of what to do, the pages of steps without the code of the steps, and the
    exercises without solutions.
    """
    row = yaml.safe_load((root / "chapters/plans/evenings.yml").read_text())["five"][number - 1]
    book = json.loads((root / "chapters/0-build-it/build.ipynb").read_text())
    pages = {page: name for name, page in WORKSHOP.items()}
    about = f"# Evening {number}: {row['name']}\n\nTonight you learn {row['learn']}.\n\n"
    about += "\n".join(f"{k}. {to_do(root, part)}" for k, part in enumerate(row["parts"], 1))
    title = {
        "cell_type": "markdown",
        "id": f"evening-{number}",
        "metadata": {},
        "source": about.splitlines(keepends=True),
    }
    cells = [book["cells"][0], title]
    for part in row["parts"]:
        for task in part.get("exercises", ()):
            cells += without_solutions(root, f"{task}")
        if (page := part.get("page")) in pages:
            cells += _steps(
                json.loads(stripped((root / f"chapters/{page}.ipynb").read_text(), page))["cells"][
                    1:
                ],
                part.get("steps"),
            )
        elif page and page.endswith("/own"):
            cells += json.loads((root / f"chapters/{page}.ipynb").read_text())["cells"][1:]
    for cell in cells:
        if cell["cell_type"] == "markdown":  # next to a handout there are no pages of the book
            cell["source"] = [
                re.sub(r"\[([^\]]+)\]\([^):#]+\.(?:ipynb|md)[^)]*\)", r"\1", line)
                for line in cell["source"]
            ]
    return json.dumps(book | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


def _steps(cells: list[dict], numbers: list[int] | None) -> list[dict]:
    """Return the cells of the given steps, with all cells that stand before step 1.

    Without numbers, return all cells.
    """
    chosen, inside = [], True
    for cell in cells:
        heading = (
            re.search(r"^### (\d+)\. ", "".join(cell["source"]), re.M)
            if cell["cell_type"] == "markdown"
            else None
        )
        inside = int(heading[1]) in numbers if heading and numbers else inside
        chosen += [cell] if inside else []
    return chosen


def handouts(root: Path = ROOT) -> dict[str, str]:
    """Return the texts of all handouts, keyed by file name.

    The handouts are the assignments, the pages that readers program step by step (without the code
    of the steps), and the notebooks of the five evenings.
    """
    steps = {
        name: stripped((root / f"chapters/{folder}.ipynb").read_text(), folder)
        for name, folder in WORKSHOP.items()
    }
    evenings = {f"evening-{k}.ipynb": evening(root, k) for k in range(1, 6)}
    return {f"assignment-{n}.ipynb": handout(root, n) for n in plan(root)} | steps | evenings


def make(out: Path, root: Path = ROOT) -> None:
    """Write all handouts, and their solutions in a separate folder."""
    solved = {f"assignment-{n}.ipynb": handout(root, n, solved=True) for n in plan(root)}
    solved |= {
        name: (root / f"chapters/{folder}.ipynb").read_text() for name, folder in WORKSHOP.items()
    }
    for kind, files in (("handouts", handouts(root)), ("solutions", solved)):
        (out / kind).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / kind / name).write_text(text)


def draw(
    seed: int, out: Path, root: Path = ROOT, chapters: Sequence[int] = questions.CHAPTERS
) -> None:
    """Write the assignment and the examination that a term's seed gives, with the answers.

    `chapters` are the chapters of the examination.
    """
    out.mkdir(parents=True, exist_ok=True)
    books = {
        f"drawn{end}.ipynb": handout(root, "drawn", solved, seed)
        for end, solved in (("", False), ("-solved", True))
    }
    for name, text in (books | questions.paper(seed, root, chapters)).items():
        (out / name).write_text(text, encoding="utf-8")


# Marking ------------------------------------------------------------------------------------------


@functools.cache
def door() -> bool:
    """Return whether bubblewrap is installed and allowed to isolate a process."""
    known = shutil.which("bwrap")
    return (
        bool(known) and not subprocess.run([*walls("/tmp"), "true"], capture_output=True).returncode
    )


@functools.cache
def sized() -> bool:
    """Return whether the installed bubblewrap can limit the size of a folder (0.9 and later)."""
    known = shutil.which("bwrap")
    return (
        bool(known)
        and "--size" in subprocess.run([known, "--help"], capture_output=True, text=True).stdout
    )


def walls(room: str) -> list[str]:
    """Return the command that runs a process in isolation.

    The process has no network and sees no other processes. It can read only Python's files and
    write only into one folder.
    """
    python = {os.path.realpath(root) for root in (sys.prefix, sys.base_prefix)} - {"/usr"}
    mounts = [
        f"--ro-bind-try {root} {root}"
        for root in ("/usr", "/bin", "/lib", "/lib64", *sorted(python), str(CHILD))
    ]
    options = (
        "--unshare-all --die-with-parent --new-session --cap-drop ALL --proc /proc --dev /dev "
        "--tmpfs /tmp"
    )
    folder = ["--size", str(ROOM), "--tmpfs", room] if sized() else ["--bind", room, room]
    return ["bwrap", *options.split(), *" ".join(mounts).split(), *folder, "--chdir", room]


def keep_first(pipe: BinaryIO, file: BinaryIO, most: int = PRINTED) -> None:
    """Copy the first bytes of a pipe into a file, and discard the rest.

    We read until the pipe is closed.
    """
    left = most
    while chunk := pipe.read1(1 << 16):
        file.write(chunk[:left])
        left -= len(chunk[:left])
    if not left:
        file.write(f"\n(the first {most:,} bytes)\n".encode())
    file.flush()


def run(
    source: str, number: int | str, seed: int, keep: Path, root: Path = ROOT
) -> dict[str, list]:
    """Run a notebook's functions on the cases of each exercise.

    The result of a case is a value, or a sentence that says why there is no value.

    Args:
        keep: a folder for the notebook, its printed output, and the returned values.
    """
    keep.mkdir(parents=True, exist_ok=True)
    (keep / "submission.ipynb").write_text(source)
    jobs = [
        {"name": parts(root, e["exercise"], seed)["name"], "cases": e["cases"]}
        for e in entries(root, number, seed)
    ]
    clean = {"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as room, (keep / "printed.txt").open("wb") as printed:
        with (keep / "returned.jsonl").open("wb") as back:
            command = [
                *(walls(room) if door() else ()),
                sys.executable,
                "-u",
                str(CHILD),
                str(back.fileno()),
            ]
            process = subprocess.Popen(
                command, cwd=room, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True, env=clean | {"HOME": room},
                pass_fds=[back.fileno()],
            )  # fmt: skip
            reader = threading.Thread(
                target=keep_first, args=(process.stdout, printed), daemon=True
            )
            reader.start()
            try:
                job = {
                    "asked": jobs,
                    "seed": seed,
                    "seconds": CASE,
                    "room": room,
                    "source": source,
                }
                # the process ended before it had read its job
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(job).encode())
                    process.stdin.close()
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(
                    ProcessLookupError
                ):  # a process that the submission started may hold the pipe open
                    os.killpg(process.pid, 9)
                process.wait()
                reader.join(5)
    return returned(keep / "returned.jsonl", jobs)


def returned(path: Path, jobs: list[dict]) -> dict[str, list]:
    """Read the results that a submission wrote to a file, with one JSON list on each line.

    The returned dictionary has one list per job, with a pair (problem, value) for each case. A line
    that fits no case is skipped. A case without a line gets the problem "nothing came back".
    """
    answers = {job["name"]: [("nothing came back", None)] * len(job["cases"]) for job in jobs}
    for line in path.read_text(errors="replace").splitlines():
        try:
            name, case, problem, value = json.loads(line)
            answers[name][case] = (str(problem), value)
        except (ValueError, KeyError, IndexError, TypeError):
            continue  # the submission wrote this line itself
    return answers


class Key:
    """Hold the right answer to an exercise, as its cases and the comparison of its check.

    A key exists only in memory and is never written to disk.
    """

    def __init__(self, root: Path, task: dict, seed: int):
        import networkx
        import scipy.stats
        import torch

        from course import exercises

        pieces, self.number, self.points, self.checks = (
            parts(root, task["exercise"], seed),
            task["exercise"],
            task["points"],
            exercises,
        )
        drawn = "call" in pieces
        names = (
            families.KNOWN
            if drawn
            else vars(importlib.import_module(f"course.chapter{self.number[0]}.checks"))
        )
        self.names = names | {"solved": {}}
        exec(
            imports(root, 0 if drawn else int(self.number[0]), True) + "\n" + pieces["solution"],
            self.names["solved"],
        )
        self.name, self.solution = pieces["name"], self.names["solved"][pieces["name"]]
        book = {} if drawn else exercises.tables(names)
        self.row = (
            pieces
            if drawn
            else next(row for row in book.values() if row.get("number") == self.number)
        )
        self.given = []
        for k, text in enumerate(task["cases"]):
            torch.manual_seed(seed + k)
            known = {
                "torch": torch,
                "math": math,
                "nx": networkx,
                "stats": scipy.stats,
                "seed": seed + k,
            }
            self.given += exercises.cases(known, text)

    def compare(self, answer: Callable, cases: list, mistakes: str = "") -> str:
        """Compare a function with the solution on the cases.

        The result is "" if all values are right, and otherwise the check's sentence about the first
        mistake.
        """
        try:
            call = self.row.get("call", f"{self.name}()")
            self.checks.compare(
                self.names,
                call,
                answer,
                self.solution,
                cases,
                mistakes,
                tolerance=self.row.get("tolerance", 1e-6),
            )
        except self.checks.Wrong as wrong:
            return str(wrong)
        return ""

    def mark(self, given: list) -> tuple[float, str]:
        """Return the points for the returned values, case by case, and the first mistake."""
        good = [
            not self.compare(Given(self, [case], [value]), [case])
            for case, value in zip(self.given, given, strict=True)
        ]
        share = round(self.points * sum(good) / len(good), 1)
        return share, "" if all(good) else self.compare(
            Given(self, self.given, given), self.given, self.row.get("mistakes", "")
        )


class Given:
    """Present the returned values of a submission as a function.

    For the arguments of a case, the function returns the value that the submission returned.
    """

    def __init__(self, key: Key, cases: list, values: list):
        self.key, self.known = key, list(zip(cases, values, strict=True))

    def __call__(self, *arguments: object) -> object:
        import torch

        for case, (problem, value) in self.known:
            if all(map(self.same, case.arguments, arguments)):
                if problem:
                    raise self.key.checks.Wrong(f"{self.key.name}({case.text}): {problem}")
                kind, value = json.loads(value)
                return (
                    torch.tensor(value, dtype=getattr(torch, kind))
                    if kind.startswith(("float", "bfloat"))
                    else value
                )
        raise KeyError("no case has these arguments")

    def same(self, first: object, second: object) -> bool:
        if callable(first) or getattr(first, "dtype", None) != getattr(second, "dtype", None):
            return first is second
        return self.key.checks._unchanged(first, second)


def folders(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a distinct folder name for each submission.

    The names consist of letters, digits and underscores.

    >>> list(folders([Path("A b.ipynb"), Path("a_b.ipynb"), Path("...ipynb")]).values())
    ['A_b', 'a_b_2', '__']
    """
    names: dict[Path, str] = {}
    for path in paths:
        name = re.sub(r"\W", "_", path.name.removesuffix(".ipynb"))
        taken, k = {other_name.casefold() for other_name in names.values()}, 2
        names[path] = name
        while names[path].casefold() in taken:
            names[path], k = f"{name}_{k}", k + 1
    return names


def harmless(text: str) -> str:
    """Change a text so that a table can contain it safely.

    A spreadsheet will not compute the text as a formula, and characters that cannot be written are
    removed.

    >>> harmless("=HYPERLINK(1)"), harmless("a = b")
    ("'=HYPERLINK(1)", 'a = b')
    """
    text = text.encode("utf-8", "replace").decode()
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def mark(number: int | str, folder: Path, seed: int, out: Path, root: Path = ROOT) -> pd.DataFrame:
    """Mark all submissions in a folder, and write a table with one row per submission.

    A row has the points for each exercise, their sum, and the first mistake. We write a row as soon
    as its submission has ended. A submission that ends in an error gets no points, and its row
    names the error.

    Raises:
        ValueError: if the assignment does not exist, or the folder contains no notebook.
    """
    if number not in [*plan(root), "drawn"]:
        raise ValueError(
            f"number must be one of {', '.join(map(str, plan(root)))} or drawn, not {number!r}"
        )
    submissions = sorted(folder.glob("*.ipynb"))
    if not submissions:
        raise ValueError(f"folder must contain notebooks, but {folder} has none")
    keys = [Key(root, task, seed) for task in entries(root, number, seed)]
    assert not [
        key.number for key in keys for case in key.given if key.compare(key.solution, [case])
    ]
    rows, heads = (
        [],
        [
            "who",
            *(key.number for key in keys),
            "points",
            "remark",
            *(["reasons"] if number == "drawn" else []),
        ],
    )
    out.mkdir(parents=True, exist_ok=True)
    with writable(out / "marks.csv").open("w", newline="", errors="replace") as file:
        table = csv.DictWriter(file, heads)
        table.writeheader()
        for path, subfolder in folders(submissions).items():
            row = {"who": path.name.removesuffix(".ipynb")} | {key.number: 0.0 for key in keys}
            try:
                came = run(path.read_text(errors="replace"), number, seed, out / subfolder, root)
                marks = {key.number: key.mark(came[key.name]) for key in keys}
                row |= {exercise_number: points for exercise_number, (points, _) in marks.items()}
                row["remark"] = next((remark for _, remark in marks.values() if remark), "")
                if number == "drawn":
                    row["reasons"] = families.reasons(path.read_text(errors="replace"))
            except Exception as error:  # whatever happens in this submission, we mark the next one
                row["remark"] = f"not marked: {type(error).__name__}: {error}"
            row["points"] = round(sum(row[key.number] for key in keys), 1)
            row |= {key: harmless(row[key]) for key in ("who", "remark", "reasons") if key in row}
            rows.append(row)
            table.writerow(row)
            file.flush()
    return pd.DataFrame(rows, columns=heads).set_index("who")


DOOR = """
No `bwrap` may make its walls here: submissions are shut in by Python's own events alone. \
That keeps mischief out, not
intent. Install bubblewrap, or run this in a container that holds nothing but this course.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write the handouts and, apart, their solutions")
    marking = commands.add_parser("mark", help="mark every notebook in a folder")
    drawing = commands.add_parser("draw", help="draw the assignment and the examination of a term")
    making.add_argument("out", type=Path, help="folder to write to")
    drawing.add_argument("seed", type=int, help="number of the term, such as 2027")
    drawing.add_argument("out", type=Path, help="folder to write to")
    drawing.add_argument(
        "--chapters",
        type=int,
        nargs="+",
        choices=questions.CHAPTERS,
        default=[*questions.CHAPTERS],
        help="chapters to draw from (default: all)",
    )
    marking.add_argument(
        "number",
        type=lambda text: int(text) if text.isdigit() else text,
        choices=[*plan(), "drawn"],
        help="number of the assignment, or drawn for the one of the term",
    )
    marking.add_argument("folder", type=Path, help="folder with the submitted notebooks")
    marking.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the cases, for other numbers in another term (default: 0)",
    )
    marking.add_argument(
        "--out", type=Path, default=ROOT / "_build/marks", help="folder for the marks"
    )
    chosen = parser.parse_args()
    try:
        if chosen.command == "make":
            make(chosen.out)
        elif chosen.command == "draw":
            draw(chosen.seed, chosen.out, chapters=sorted({*chosen.chapters}))
        else:
            if not door():
                print(DOOR.strip(), file=sys.stderr)
            print(mark(chosen.number, chosen.folder, chosen.seed, chosen.out).to_string())
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
