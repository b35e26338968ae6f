"""Assignments of a term: handed out without solutions, marked by what a submission computes on cases that no page shows.

python tools/assignments.py make _build/assignments             handouts, and the solutions in a folder of their own
python tools/assignments.py mark 3 FOLDER --seed 2027           marks every notebook in a folder, and keeps what it ran

`chapters/plans/assignments.yml` says which exercises an assignment has, their points, and the cases; the seed makes their
numbers new. Each submission runs in a process of its own, with a limit of time, memory and file size, without network,
new processes, this course's solutions, or files but those of its Python. It hands back numbers alone, which are compared
here with what the solution gives; what it prints is kept and not read.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import yaml
from pages import ROOT

SECONDS, CASE = 120, 10  # for a submission, and for one cell or one case
CHILD = Path(__file__).with_name("assignments_child.py")


def plan(root: Path = ROOT) -> dict[int, list[dict]]:
    """By assignment its exercises: number, points, cases."""
    return yaml.safe_load((root / "chapters/plans/assignments.yml").read_text())["assignments"]


def exercise(root: Path, number: str) -> list[dict]:
    """The cells of an exercise, from its heading to the next one.

    Raises:
        ValueError: there is none of this number.
    """
    found, inside = [], False
    for path in root.glob(f"chapters/{number.split('.')[0]}-*/exercises.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            heading = re.search(r"^## (\d+\.\d+ )?", "".join(cell["source"]), re.M)
            if heading and cell["cell_type"] == "markdown":
                inside = (heading[1] or "").strip() == number
            found += [cell] if inside else []
    if not found:
        raise ValueError(f"number must be that of an exercise, not {number!r}")
    return found


def parts(root: Path, number: str) -> dict[str, str]:
    """Statement, stub and solution of an exercise, and the name of its function, as the notebook has them."""
    cells = exercise(root, number)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    stub, solution = (next(text for text in code if part in text) for part in ("raise NotImplemented", "def solution"))
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
    made = [
        {"cell_type": kind, "id": f"a{k:02d}", "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for k, (kind, text) in enumerate(cells)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def imports(root: Path, chapter: int) -> str:
    """What the chapter's exercises import, but for the checks."""
    (path,) = root.glob(f"chapters/{chapter}-*/exercises.ipynb")
    code = ["".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    return "\n".join(line for line in code[1].splitlines() if "checks" not in line and "course" not in line)


def handout(root: Path, number: int, solved: bool = False) -> str:
    """The notebook of an assignment, with stubs, or with solutions."""
    asked = plan(root)[number]
    rules = (
        f"# Assignment {number}\n\nTen points. Hand in this file, run from the top, under your own name: `name.ipynb`. "
        "Your functions are tried on other numbers than the examples; print what you like, it is not read. What is asked "
        "to be predicted is written down for yourself and has no points."
    )
    cells = [("markdown", rules), ("code", imports(root, number))]
    for each in asked:
        found = parts(root, each["exercise"])
        title = re.sub(r"^## \S+ ", f"## {each['points']} points: ", found["statement"])
        title = title.replace("](../", "](../chapters/")
        cells += [("markdown", title), ("code", found["solution" if solved else "stub"])]
    return notebook(cells)


def handouts(root: Path = ROOT) -> dict[str, str]:
    """What is handed out, by file name: the assignments, and the workshop with the lines of its steps taken out."""
    book = json.loads((root / "chapters/7-the-race/build.ipynb").read_text())
    for cell in book["cells"]:
        if "step" in cell["metadata"].get("tags", []):
            text = "".join(cell["source"])
            names = re.findall(r"^(?:def|class) (\w+)|^(\w+)(?:, \w+)* = ", text, re.M)
            names = ", ".join(dict.fromkeys(first or second for first, second in names))
            cell["source"] = [f"# {len(text.splitlines())} lines or fewer; the check wants: {names}\n", "...\n"]
    workshop = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    return {f"assignment-{n}.ipynb": handout(root, n) for n in plan(root)} | {"workshop.ipynb": workshop}


def make(out: Path, root: Path = ROOT) -> None:
    """Write what is handed out, and the solutions of all of it in a folder of their own."""
    solved = {f"assignment-{n}.ipynb": handout(root, n, solved=True) for n in plan(root)}
    solved["workshop.ipynb"] = (root / "chapters/7-the-race/build.ipynb").read_text()
    for kind, files in (("handouts", handouts(root)), ("solutions", solved)):
        (out / kind).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / kind / name).write_text(text)


# Marking -----------------------------------------------------------------------------------------------


def run(source: str, number: int, seed: int, keep: Path, root: Path = ROOT) -> dict[str, list]:
    """What a notebook's functions give on the cases, by exercise: a value, or a sentence on why there is none.

    Args:
        keep: a folder for the notebook, what it printed, and what came back.
    """
    keep.mkdir(parents=True, exist_ok=True)
    (keep / "submission.ipynb").write_text(source)
    asked = [{"name": parts(root, e["exercise"])["name"], "cases": e["cases"]} for e in plan(root)[number]]
    job = {"asked": asked, "seed": seed, "seconds": CASE, "helpers": str(root / "src/helpers")}
    clean = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as room, (keep / "printed.txt").open("wb") as printed:
        job["room"], job["source"] = room, source
        process = subprocess.Popen(
            [sys.executable, "-u", str(CHILD), str((keep / "returned.jsonl").resolve())], cwd=room, stdin=subprocess.PIPE,
            stdout=printed, stderr=subprocess.STDOUT, start_new_session=True, env=clean | {"HOME": room},
        )  # fmt: skip
        try:
            process.communicate(json.dumps(job).encode(), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
    return returned(keep / "returned.jsonl", asked)


def returned(path: Path, asked: list[dict]) -> dict[str, list]:
    """The lines that came back, those that fit a case; the rest of the cases have none."""
    found = {each["name"]: [("nothing came back", None)] * len(each["cases"]) for each in asked}
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            name, case, problem, value = json.loads(line)
            found[name][case] = (str(problem), value)
        except (ValueError, KeyError, IndexError, TypeError):
            continue  # what a submission wrote there itself
    return found


def equal(given: object, right: object) -> bool:
    """Whether two values from JSON agree: the same shape, numbers to one in a hundred thousand."""
    if isinstance(right, list):
        return isinstance(given, list) and len(given) == len(right) and all(map(equal, given, right))
    if isinstance(right, bool | str) or right is None or isinstance(given, str | list) or given is None:
        return type(given) is type(right) and given == right
    return abs(given - right) <= 1e-5 * max(1.0, abs(right))


def mark(number: int, folder: Path, seed: int, out: Path, root: Path = ROOT) -> pd.DataFrame:
    """One row a submission: points by exercise, their sum, and the first thing that went wrong.

    Raises:
        ValueError: no such assignment, or no notebook in the folder.
    """
    if number not in plan(root):
        raise ValueError(f"number must be one of {', '.join(map(str, plan(root)))}, not {number!r}")
    submissions = sorted(folder.glob("*.ipynb"))
    if not submissions:
        raise ValueError(f"folder must have notebooks, and {folder} has none")
    right = run(handout(root, number, solved=True), number, seed, out / "solution", root)
    assert not [problem for cases in right.values() for problem, _ in cases if problem], right
    rows = {}
    for path in submissions:
        given = run(path.read_text(errors="replace"), number, seed, out / path.stem, root)
        row, remark = {}, ""
        for each, name in zip(plan(root)[number], right, strict=True):
            good = [not a[0] and equal(a[1], b[1]) for a, b in zip(given[name], right[name], strict=True)]
            row[each["exercise"]] = round(each["points"] * sum(good) / len(good), 1)
            if not all(good) and not remark:
                case = good.index(False)
                remark = f"{name}, case {case + 1}: {given[name][case][0] or 'another value'}"
        rows[path.stem] = row | {"points": sum(row.values()), "remark": remark}
    table = pd.DataFrame.from_dict(rows, "index").rename_axis("who")
    table.to_csv(out / "marks.csv")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making, marking = commands.add_parser("make"), commands.add_parser("mark")
    making.add_argument("out", type=Path)
    marking.add_argument("number", type=int, choices=plan())
    marking.add_argument("folder", type=Path)
    marking.add_argument("--seed", type=int, default=0, help="other numbers for another term")
    marking.add_argument("--out", type=Path, default=ROOT / "_build/marks")
    chosen = parser.parse_args()
    if chosen.command == "make":
        make(chosen.out)
    else:
        print(mark(chosen.number, chosen.folder, chosen.seed, chosen.out).to_string())


if __name__ == "__main__":
    main()
