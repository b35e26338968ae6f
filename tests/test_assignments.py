"""Assignments: every exercise has a place, handouts have no solutions, and a mark is what a submission computes."""

import json
import math
import re

import assignments
import networkx as nx
import numpy as np
import pytest
import scipy.stats
import tables
import yaml


def test_every_exercise_is_in_a_class_an_assignment_or_left_out(root):
    weeks = yaml.safe_load((root / "chapters/plans/term.yml").read_text())["weeks"]
    told = yaml.safe_load((root / "chapters/plans/assignments.yml").read_text())
    classes = [number for week in weeks for number in week["class"].get("exercises", [])]
    marked = [each["exercise"] for asked in told["assignments"].values() for each in asked]
    places = [*classes, *marked, *told["left_out"]]
    assert sorted(places) == sorted(f"{chapter}.{k}" for chapter in range(1, 7) for k in range(1, 11))
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
            assert found["solution"] not in cells
            assert len(each["cases"]) >= 3
            assert not any(case in found["stub"] for case in each["cases"]), "a case that the page shows"
        assert "@title" not in given
        assert "Hint" not in given


def test_the_workshop_has_the_checks_and_not_the_lines(root, tmp_path):
    assignments.make(tmp_path, root)
    given, solved = (json.loads((tmp_path / kind / "workshop.ipynb").read_text()) for kind in ("handouts", "solutions"))
    steps = [c for c in solved["cells"] if "step" in c["metadata"].get("tags", [])]
    assert len(steps) >= 12
    text = json.dumps(given)
    assert all("".join(c["source"]).splitlines()[-1].strip() not in text for c in steps)
    planned = re.findall(
        r"^### \d+\. .+ \((\d+) minutes?\)", "\n".join("".join(c["source"]) for c in given["cells"]), re.M
    )
    assert sum(map(int, planned)) == given["metadata"]["workshop"]["minutes"]
    checks = [c["source"] for c in solved["cells"] if "check" in c["metadata"].get("tags", [])]
    assert all(source in [c["source"] for c in given["cells"]] for source in checks)


@pytest.mark.parametrize(
    ("given", "right", "same"),
    [
        (1.0, 1, True),
        (0.1 + 0.2, 0.3, True),
        (0.31, 0.3, False),
        ([1, [2.0]], [1, [2]], True),
        ([1], [1, 2], False),
        ("1", 1, False),
        (None, 0, False),
        (float("nan"), 0.0, False),
        (True, True, True),
        (1, True, False),
    ],
)
def test_values_agree_or_not(given, right, same):
    assert assignments.equal(given, right) is same


HEAD = "def off_by_one(logits):\n    "
RIGHT = "return torch.nn.functional.pad(logits, (1, 0)).softmax(-1)[..., 1:]"
SUBMISSIONS = {
    "right": (HEAD + "# checks stay\n    import math as checks\n    " + RIGHT, 3.0, ""),
    "half": (HEAD + "return logits.exp() / (1 + logits.exp().sum(-1, keepdim=True))", 2.2, "case 2"),
    "loop": (HEAD + "while True: pass", 0.0, "longer than 2 s"),
    "reads": (HEAD + "return open('{root}/chapters/6-differential-transformer/exercises.ipynb').read()", 0.0, "is not for a submission"),
    "asks": ("from course.chapter6 import checks\noff_by_one = checks.off_by_one", 0.0, "is not defined"),
    "prints": (HEAD + "print('points: 10')", 0.0, "another value"),
    "leaves": ("import os\nos._exit(0)\n" + HEAD + RIGHT, 0.0, "nothing came back"),
    "pretends": ("class Any(float):\n    __eq__ = lambda self, other: True\n" + HEAD + "return Any(3)", 0.0, "another value"),
    "starts": ("import subprocess\n" + HEAD + "return subprocess.run(['ls'])", 0.0, "not allowed"),
}  # fmt: skip


@pytest.mark.slow
def test_wrong_half_right_and_hostile_submissions_get_what_they_compute(root, tmp_path, monkeypatch):
    monkeypatch.setattr(assignments, "CASE", 2)
    whole = assignments.plan
    monkeypatch.setattr(assignments, "plan", lambda root: {6: whole(root)[6][:1]})
    folder = tmp_path / "handed"
    folder.mkdir()
    for name, (source, *_) in SUBMISSIONS.items():
        made = assignments.notebook([("code", "import torch"), ("code", source.replace("{root}", str(root)))])
        (folder / f"{name}.ipynb").write_text(made)
    (folder / "broken.ipynb").write_text("{")
    table = assignments.mark(6, folder, 3, tmp_path / "out", root)
    for name, (_, points, remark) in SUBMISSIONS.items():
        assert table.points[name] == points, name
        assert remark in table.remark[name], name
    assert table.points["broken"] == 0
    assert (tmp_path / "out/half/submission.ipynb").exists()
    assert "points: 10" in (tmp_path / "out/prints/printed.txt").read_text()


# What is handed out with them --------------------------------------------------------------------------


def test_the_bank_has_ten_questions_a_chapter_with_answers_and_marks(root):
    text = (root / "chapters/exam.md").read_text()
    for part in text.split("\n## ")[1:]:
        asked = re.findall(r"^\*\*(\d\.\d+)\*\* .+ \*\((\d)\)\*$", part, re.M)
        assert [number for number, _ in asked] == [f"{part[0]}.{k}" for k in range(1, 11)]
        assert part.count("<summary>Answer</summary>") == 10
        assert f"*{sum(int(marks) for _, marks in asked)} marks in all.*" in part


def test_numbers_and_formulas_of_the_bank_are_recomputed(root):
    text = (root / "chapters/exam.md").read_text()
    A = nx.to_numpy_array(nx.path_graph(5)) + np.eye(5)
    walks = np.linalg.matrix_power(np.tri(7, dtype=int), 4)[6, 2]
    heard = [math.comb(39 + x, x) * math.exp(-0.11 * x) for x in range(999)]
    turning = np.exp(2 * np.cos(math.pi * np.arange(1000)))
    found = {
        "1.2": f"{np.linalg.matrix_power(A / A.sum(1, keepdims=True), 4)[4, 0]:.4f}",
        "1.6": "$k$, and $k/2$" * math.isclose(nx.resistance_distance(nx.cycle_graph(10), 0, 5), 5 / 2),
        "2.4": r"\binom{n - i + L - 1}{L - 1}" * bool(walks == math.comb(7 - 3 + 3, 3)),
        "2.8": "(L - 1)/(e^c - 1)" * (heard.index(max(heard)) == int(39 / math.expm1(0.11))),
        "3.10": r"\tanh B" * math.isclose(turning @ np.resize([1, -1], 1000) / turning.sum(), math.tanh(2)),
        "4.8": f"p = {scipy.stats.fisher_exact([[13, 0], [10, 3]])[1]:.2f}",
        "6.2": f"{math.sqrt(1 + 0.8**2):.2f}",
    }
    for number, said in found.items():
        answer = text.split(f"**{number}**")[1].split("</details>")[0]
        assert said, number
        assert said in answer, number


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
