"""Assignments: every exercise has a place, handouts have no solutions, and a mark is what a submission computes."""

import importlib
import json
import math
import os
import re

import pandas as pd
import pytest
import tables
import yaml
from answers import read

from book import assignments, families, plans
from book import assignments_child as child
from course import exercises


def test_every_exercise_is_in_a_class_an_assignment_or_left_out(root):
    weeks = yaml.safe_load((root / "chapters/plans/term.yml").read_text())["weeks"]
    told = yaml.safe_load((root / "chapters/plans/assignments.yml").read_text())
    classes = [number for week in weeks for number in week["class"].get("exercises", [])]
    marked = [each["exercise"] for asked in told["assignments"].values() for each in asked]
    places = [*classes, *marked, *told["left_out"]]
    assert len(places) == len(set(places)), "one place each"
    pages = root.glob("chapters/*/exercises.ipynb")
    there = {number for page in pages for number in plans.exercises(page)}
    ten = {f"{chapter}.{k}" for chapter in range(1, 7) for k in range(1, 11)}
    assert ten <= set(places) <= there, "an exercise that was added later needs no place"
    listed = (root / "chapters/syllabus.md").read_text()
    assert ", ".join(told["left_out"]) in listed


def test_an_assignment_has_ten_points_and_no_solution(root):
    for number, asked in assignments.plan(root).items():
        assert sum(each["points"] for each in asked) == 10
        given = assignments.handout(root, number)
        cells = ["".join(c["source"]) for c in json.loads(given)["cells"]]
        for each in asked:
            found = assignments.parts(root, each["exercise"])
            assert found["stub"] in cells
            assert "helpers" not in given, "its functions are answers to some of the exercises"
            assert not re.search(r"the check\b|\]\(", "".join(cells)), (
                "a check or a page that is not beside a handout"
            )
            assert found["solution"] not in cells
            assert len(each["cases"]) >= 3
            assert not any(case in found["stub"] for case in each["cases"]), (
                "a case that the page shows"
            )
        assert "@title" not in given
        assert "Hint" not in given


def test_longer_exercises_of_an_assignment_have_no_fewer_points(root):
    for number, entries in assignments.plan(root).items():
        minutes = plans.exercises(plans.part(root, f"{number} exercises"))
        rows = sorted((minutes[each["exercise"]][1], each["points"]) for each in entries)
        assert [points for _, points in rows] == sorted(points for _, points in rows), (
            f"assignment {number}"
        )


@pytest.mark.parametrize("name", assignments.WORKSHOP)
def test_a_page_of_steps_has_the_checks_and_not_the_lines(root, tmp_path, name):
    assignments.make(tmp_path, root)
    given, solved = (
        json.loads((tmp_path / kind / name).read_text()) for kind in ("handouts", "solutions")
    )
    steps = [c for c in solved["cells"] if "step" in c["metadata"].get("tags", [])]
    assert len(steps) >= (1 if name.startswith("yours") else 6)
    text = json.dumps(given)
    assert "this copy has no solutions" in text
    assert "are folded on this page" not in text, "the copy has nothing folded"
    assert all("".join(c["source"]).splitlines()[-1].strip() not in text for c in steps)
    headings = "\n".join("".join(c["source"]) for c in given["cells"])
    numbers, planned = zip(
        *re.findall(r"^### (\d+)\. .+ \((\d+) minutes?\)", headings, re.M), strict=True
    )
    assert [*map(int, numbers)] == [*range(1, len(numbers) + 1)]
    for link in re.findall(r"\]\(([^):#]+\.(?:ipynb|md))", headings):
        page = (root / "chapters/handouts" / link).resolve()
        assert link in assignments.WORKSHOP or page.is_file(), (
            "it lies in chapters/handouts, or leads from there"
        )
        assert not page.with_suffix("").as_posix().endswith((*assignments.WORKSHOP.values(),)), (
            "a page with the lines"
        )
    assert sum(map(int, planned)) == given["metadata"]["workshop"]["minutes"]
    checks = [c["source"] for c in solved["cells"] if "check" in c["metadata"].get("tags", [])]
    assert all(source in [c["source"] for c in given["cells"]] for source in checks)


def came(key, answer):
    """What a function gives on the cases, as a submission's process hands it back."""
    return [
        child.within(60, lambda c=case: child.told(answer(*exercises._copied(c.arguments))))
        for case in key.given
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("assignment", "number"),
    [(n, e["exercise"]) for n, asked in assignments.plan().items() for e in asked],
)
@pytest.mark.parametrize("seed", [0, 2027])
def test_a_mark_agrees_with_the_check(root, assignment, number, seed):
    """Each mistake of the exercise's table costs points and is named; each right answer of another form costs none."""
    asked = next(each for each in assignments.plan(root)[assignment] if each["exercise"] == number)
    key = assignments.Key(root, asked, seed)
    modules = [
        importlib.import_module(f"{name}{number[0]}{of}")
        for name, of in (("course.chapter", ".checks"), ("answers.chapter", ""))
    ]
    answers = read(root / f"tests/answers/chapter{number[0]}.toml", *modules)[number]
    for case in answers.right:
        assert key.mark(came(key, case.arguments[-1])) == (key.points, ""), case.text
    for case, _ in answers.wrong:
        assert key.mark(came(key, case.arguments[-1]))[0] < key.points, case.text
    parameters = key.row.get("call", "()").rstrip(")").partition("(")[2]
    names = {**key.names, "right": key.solution}
    table = exercises._functions(key.row.get("mistakes", ""), parameters, names)
    for mistake, sentence in table:
        points, remark = key.mark(came(key, mistake))
        assert points < key.points, sentence
        assert remark.endswith(tuple(said for _, said in table)), (
            remark
        )  # a busy machine may not run all cases


def test_what_comes_back_is_no_number_or_a_huge_one(root):
    key = assignments.Key(root, assignments.plan(root)[2][0], 0)
    for value, said in (
        (10**400, "must return"),
        ("\ud800", "must return"),
        (None, "returned nothing"),
        (math.nan, "NaN"),
    ):
        points, remark = key.mark(came(key, lambda *_, value=value: value))
        assert points == 0
        assert said in remark


def test_a_cell_is_read_as_a_notebook_reads_it():
    ran = {}
    shell = child.shell(ran)
    ran["get_ipython"] = lambda: shell
    for cell in (
        "x = (17\n     % 5)",
        "%matplotlib inline\ny = 3",
        "!rm -r /\nfiles = !ls\nz = 4",
        "%%time\nw = 5",
        "checks.f(\n    f)\nfrom course.chapter6 import checks\nv = 6",
        "def f():\n    import math as checks\n    return checks.floor(7.5)\nu = f()",
    ):
        exec(compile(child.read(cell), "", "exec"), ran)
    assert [ran[name] for name in "xyzwvu"] == [2, 3, 4, 5, 6, 7]


HEAD = "def off_by_one(logits):\n    "
RIGHT = "return torch.nn.functional.pad(logits, (1, 0)).softmax(-1)[..., 1:]"
# three ways to the published answer that Python's own events do not see, and the packages that hold it
CHEATS = """
import numpy as np
found = []
def tries(act):
    try:
        found.append(act())
    except BaseException as error:
        print(type(error).__name__, error)
def helper():
    from helpers.attention import softmax_off_by_one
    return softmax_off_by_one
def file():
    size = {size}
    text = bytes(torch.from_file("{path}", size=size, dtype=torch.uint8).tolist())
    assert b"def solution" in text
def shell():
    import _posixsubprocess
    raise SystemExit(_posixsubprocess.__name__)
tries(helper)
tries(file)
tries(shell)
def off_by_one(logits):
    return torch.nn.functional.pad(logits, (1, 0)).softmax(-1)[..., 1:] if len(found) > 0 else "nothing found"
"""
SUBMISSIONS = {
    "right": (HEAD + "# checks stay\n    import math as checks\n    " + RIGHT, 3.0, ""),
    "half": (HEAD + "return logits.exp() / (1 + logits.exp().sum(-1, keepdim=True))", 1.8, "Subtract the largest logit first"),
    "loop": (HEAD + "while True: pass", 0.0, "longer than 2 s"),
    "reads": (HEAD + "return open('{root}/chapters/6-differential-transformer/exercises.ipynb').read()", 0.0, "must not read the file"),
    "asks": ("from course.chapter6 import checks\noff_by_one = checks.off_by_one", 0.0, "is not defined"),
    "prints": (HEAD + "print('points: 10')", 0.0, "returned nothing"),
    "leaves": ("import os\nos._exit(0)\n" + HEAD + RIGHT, 0.0, "nothing came back"),
    "huge": (HEAD + "return 10**400", 0.0, "must return"),
    "text": (HEAD + "raise ValueError('\\ud800')", 0.0, "ValueError"),
    "talks": ("for step in range(40_000):\n    print('step', step, 'of forty thousand')\n" + HEAD + RIGHT, 3.0, ""),
    "writes": ("for k in range(300):\n    open(f'{k}.bin', 'wb').write(bytes(1_000_000))\n" + HEAD + RIGHT, 0.0, "may open at most 64 files"),
    "forks": ("import sys\n" + HEAD + "return sys.modules['subprocess']._fork_exec()", 0.0, "PermissionError"),
    "starts": ("import subprocess\n" + HEAD + "return subprocess.run(['ls'])", 0.0, "not allowed"),
    "cheats": (CHEATS, 0.0, "nothing found"),
}  # fmt: skip


@pytest.fixture
def handed(root, tmp_path, monkeypatch):
    """A folder of submissions to one exercise, and a limit of two seconds."""
    monkeypatch.setattr(assignments, "CASE", 2)
    whole = assignments.plan
    monkeypatch.setattr(assignments, "plan", lambda root: {6: whole(root)[6][:1]})
    book = root / "chapters/6-differential-transformer/exercises.ipynb"

    def hand(*names):
        folder = tmp_path / "handed"
        folder.mkdir()
        for name in names:
            source = SUBMISSIONS[name][0].replace("{root}", str(root)).replace("{path}", str(book))
            source = source.replace("{size}", str(book.stat().st_size))
            (folder / f"{name}.ipynb").write_text(
                assignments.notebook([("code", "import torch"), ("code", source)])
            )
        return folder

    return hand


@pytest.mark.slow
def test_wrong_half_right_and_hostile_submissions_get_what_they_compute(root, tmp_path, handed):
    folder = handed(*SUBMISSIONS)
    (folder / "broken.ipynb").write_text("{")
    (folder / "afolder.ipynb").mkdir()
    (folder / "alink.ipynb").symlink_to("nowhere")
    table = assignments.mark(6, folder, 3, tmp_path / "out", root)
    full = assignments.plan(root)[6][0]["points"]
    for name, (_, points, remark) in SUBMISSIONS.items():
        assert table.points[name] == round(points / 3 * full, 1), name
        assert remark in table.remark[name], name
    assert set(table.points[["broken", "afolder", "alink"]]) == {0}
    assert table.remark.afolder.startswith("not marked: IsADirectoryError")
    assert pd.read_csv(tmp_path / "out/marks.csv", index_col="who").points.equals(table.points)
    assert (tmp_path / "out/half/submission.ipynb").exists()
    assert "points: 10" in (tmp_path / "out/prints/printed.txt").read_text()
    printed = (tmp_path / "out/talks/printed.txt").read_text()
    assert printed.startswith("step 0 of")
    assert assignments.PRINTED <= len(printed) < assignments.PRINTED + 100
    assert "(the first 100,000 bytes)" in printed


@pytest.mark.slow
def test_without_walls_the_packages_and_the_plain_ways_are_shut_all_the_same(
    root, tmp_path, handed, monkeypatch
):
    monkeypatch.setattr(assignments, "door", lambda: False)
    table = assignments.mark(6, handed("cheats"), 3, tmp_path / "out", root)
    assert table.remark.cheats.endswith("not 'nothing found'."), (
        tmp_path / "out/cheats/printed.txt"
    ).read_text()


@pytest.mark.parametrize("name", ["...", "=HYPERLINK(1)", "+1", "a\tb"])
def test_a_submission_of_a_strange_name_stays_in_its_folder(
    root, tmp_path, handed, monkeypatch, name
):
    """Nothing is written beside `--out`, and no cell of the table is one that a spreadsheet computes."""
    folder, kept = handed("right"), []
    (folder / "right.ipynb").rename(folder / f"{name}.ipynb")

    def ran(source, number, seed, keep, root):
        kept.append(keep)
        raise RuntimeError("=1+1")

    monkeypatch.setattr(assignments, "run", ran)
    assignments.mark(6, folder, 3, tmp_path / "out", root)
    assert [each.parent for each in kept] == [tmp_path / "out"]
    row = (tmp_path / "out/marks.csv").read_text().splitlines()[1]
    assert not row.startswith(("=", "+", "-", "@", "\t"))


@pytest.mark.parametrize(
    "spelled",
    ["'It is a mean.'", '"""It is\n    a mean."""', "'It is ' + 'a mean.'", "('It '\n        'is a mean.')", "f'It is a mean.'",
     "r'It is a mean.'", "'It is a mean.'.strip()", "str('It is a mean.')"],
)  # fmt: skip
def test_a_reason_is_read_in_any_spelling_of_a_string(spelled):
    code = f"def guess_one(_=None):\n    reason = {spelled}\n    return 2"
    other = "def guess_two(_=None):\n    reason = None\n    return 1"
    book = json.dumps({"cells": [{"cell_type": "code", "source": each} for each in (code, other)]})
    assert families.reasons(book) == f"It is a mean. | {families.NO_REASON}"


def test_a_submission_without_a_reason_says_so():
    assert (
        families.reasons(json.dumps({"cells": [{"cell_type": "code", "source": "x = 1"}]}))
        == "no reason found"
    )
    assert (
        families.reasons(json.dumps({"cells": [{"cell_type": "code", "source": "def guess_("}]}))
        == "no reason found"
    )


def test_no_key_is_on_the_disk_while_submissions_run(root, tmp_path, handed, monkeypatch):
    def looked(source, number, seed, keep, root):
        assert [p.name for p in (tmp_path / "out").rglob("*")] == ["marks.csv"]
        raise RuntimeError("seen")

    monkeypatch.setattr(assignments, "run", looked)
    assert (
        assignments.mark(6, handed("right"), 3, tmp_path / "out", root).remark.right
        == "not marked: RuntimeError: seen"
    )


@pytest.mark.parametrize(
    "line", [["mark", "3", "{empty}"], ["mark", "3", "{empty}/none"], ["make", "/proc/x"]]
)
def test_a_wrong_line_of_the_command_is_told_in_a_sentence(line, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["assignments.py", *(each.replace("{empty}", str(tmp_path)) for each in line)]
    )
    monkeypatch.setattr(assignments, "door", lambda: True)
    with pytest.raises(SystemExit) as ended:
        assignments.main()
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_marks_are_written_into_a_regular_file_alone(root, tmp_path):
    (tmp_path / "handed").mkdir()
    (tmp_path / "handed/a.ipynb").write_text("{}")
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out/marks.csv")
    with pytest.raises(ValueError, match="regular file"):
        assignments.mark(3, tmp_path / "handed", 2027, tmp_path / "out", root)


# What a term's seed draws --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", families.TABLE["family"])
@pytest.mark.parametrize("seed", [0, 7, 2027])
def test_a_family_marks_what_is_right_and_names_each_of_its_mistakes(root, name, seed):
    made = families.filled(name, seed)
    key = assignments.Key(root, {"exercise": name, "points": 3, "cases": made["cases"]}, seed)
    assert key.mark(came(key, key.solution)) == (3, "")
    table = exercises._functions(key.row["mistakes"], key.row["call"].rstrip(")").partition("(")[2], {**key.names, "right": key.solution})  # fmt: skip
    assert len(table) >= 3
    for mistake, sentence in table:
        points, remark = key.mark(came(key, mistake))
        assert points < 3, sentence
        assert remark.endswith(sentence), remark
    guess = assignments.Key(root, {"exercise": f"{name}?", "points": 1, "cases": ["None"]}, seed)
    assert sorted(guess.mark(came(guess, lambda _, k=k: k))[0] for k in (1, 2, 3)) == [0, 0, 1]
    assert not re.search(r"<[a-z]+>", json.dumps(made)), "nothing is left to be filled"


def test_each_option_of_a_guess_comes_true_in_some_term_by_a_margin():
    for name in families.TABLE["family"]:
        rows = [families.filled(name, seed) for seed in range(12)]
        assert {families.outcome(row) for row in rows} == {(1, True), (2, True), (3, True)}, name
        assert all(
            families.parts(f"{name}?", seed)["solution"][-1] == str(row["option"])
            for seed, row in enumerate(rows)
        )
        assert len({row["statement"] + row["guess"] for row in rows}) > 4, (
            f"{name}: who knows one term knows them all"
        )
    assert families.asked(0) != families.asked(1)


def test_a_drawn_assignment_is_handed_out_without_and_marked_with_its_answers(
    root, tmp_path, monkeypatch
):
    assignments.draw(7, tmp_path, root)
    given, solved = (
        json.loads((tmp_path / f"drawn{end}.ipynb").read_text())["cells"] for end in ("", "-solved")
    )
    stubs = ["".join(c["source"]) for c in given if c["cell_type"] == "code"][1:]
    assert all(
        re.search(r"\.\.\.", each) and not re.search(r"return [1-3(]", each) for each in stubs
    )
    folder = tmp_path / "handed"
    folder.mkdir()
    text = json.dumps({"cells": solved}).replace('reason = \\"\\"', 'reason = \\"It is a mean.\\"')
    (folder / "one.ipynb").write_text(text)

    def ran(source, number, seed, keep, root):  # what a submission's own process does, here
        space, found = {}, {}
        for cell in json.loads(source)["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), space)
        for each in assignments.entries(root, number, seed):
            key = assignments.Key(root, each, seed)
            found[key.name] = came(key, space[key.name])
        return found

    monkeypatch.setattr(assignments, "run", ran)
    table = assignments.mark("drawn", folder, 7, tmp_path / "out", root)
    assert table.points.one == 8
    assert table.reasons.one == "It is a mean. | It is a mean."


# What is handed out with them --------------------------------------------------------------------------


def test_weights_add_up_and_the_test_has_its_answers(root):
    text = (root / "chapters/syllabus.md").read_text()
    assert sum(map(int, re.findall(r"\| (\d+)% \|", text))) == 100
    questions, answers = text.split("## What you need")[1].split("<details>")[:2]
    assert len(re.findall(r"^\d+\. ", questions, re.M)) == 10
    assert len(re.findall(r"(?:^| )\d+: ", answers, re.M)) == 10


def test_the_page_of_data_has_every_table(root):
    page = tables.listed(root)
    for path in (root / "data").rglob("*.csv"):
        assert f"<code>{path.relative_to(root / 'data')}</code>" in page
    assert "<td></td>" not in page
