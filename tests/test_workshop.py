"""The checks of the decoder that a reader builds: the page's own lines are right, and each mistake into them is told by name."""

import base64
import contextlib
import io
import json
import re
import runpy
import tomllib
import types

import pytest
import torch
from conftest import ROOT, javascript

from course import exercises, report
from course.exercises import workshop
from course.exercises.workshop import parts
from course.training import tasks

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

YOURS = sorted(ROOT.glob("chapters/*/yours.ipynb"))
PAGES = [*(ROOT / f"chapters/{name}/build.ipynb" for name in ("0-build-it", "7-the-race")), *YOURS]
CELLS = [
    cell
    for page in PAGES
    for cell in json.loads(page.read_text())["cells"]
    if cell["cell_type"] == "code"
]
CODE = {cell["id"]: "".join(cell["source"]) for cell in CELLS}
CALLS = {
    "embedding": ["step-embedding"],
    "attend": ["step-attention"],
    "block": ["step-block"],
    "decoder": ["step-decoder"],
    "training": ["step-training", "step-right"],
    "heard": ["step-heard"],
    "scattered": ["step-suspects"],
    "sharp": ["step-spread"],
    "turned": ["step-rope"],
    "layered": ["step-window"],
    "scaled": ["step-map"],
    "difference": ["step-two-maps"],
    **{
        name: [f"step-{name.replace('_', '-')}"]
        for name in ("steps", "together", "held_out", "spare", "agree")
    },
}
TYPED = {
    "embedding": "ids, embedding, head, logits, loss", "attend": "softmax, attend", "block": "Block", "decoder": "Places, Decoder",
    "training": "train, right", "heard": "heard, first", "scattered": "Scattered", "sharp": "sharp", "turned": "theta, turned",
    "layered": "layered, first, first", **{name: name for name in ("scaled", "difference", "steps", "together", "held_out", "spare", "agree")},
}  # fmt: skip
SLIPS = tomllib.loads((ROOT / "tests/answers/workshop.toml").read_text())


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine is no endless loop."""
    monkeypatch.setattr(exercises, "SECONDS", 300.0)
    monkeypatch.setattr(exercises, "SEARCH", 60.0)


class Oracle(torch.nn.Module):
    """A decoder that is always right: no training in these tests."""

    def __init__(self):
        super().__init__()
        made = workshop.drawn(workshop.Decoder(workshop.Block(), workshop.Block()))
        self.blocks, self.norm, self.head, self.embed = (
            made.blocks,
            made.norm,
            made.head,
            made.embed,
        )

    def forward(self, ids):
        return torch.nn.functional.one_hot(workshop._answers(ids).clamp(min=0), 45).float()


def built(step="", old="", new=""):
    """The names that the workshop's lines bind, what trains left out, with `new` in place of `old` in one step."""
    space = {"first": Oracle()}
    start = "import copy\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\nfrom course.training import tasks\nneedle = tasks.Retrieval()"
    draw = "ids, targets = batch(16, torch.Generator().manual_seed(0))"
    with contextlib.redirect_stdout(io.StringIO()):
        for code in (start, CODE["step-task"], draw):
            exec(code, space)
        for name, cells in CALLS.items():
            code = "\n".join(re.split(r"\n\n+torch\.manual_seed", CODE[cell])[0] for cell in cells)
            if name == step:
                assert old in code, f"{step}: no {old!r}"
                code = code.replace(old, new)
            exec(code, space)
            if name == step:
                return space
    return space


def verdict(step, space):
    return eval(f"checks.{step}({TYPED[step]})", space | {"checks": workshop})


@pytest.mark.parametrize("step", CALLS)
def test_the_lines_of_the_page_are_right(step):
    assert verdict(step, built()), step
    empty = dict.fromkeys(TYPED[step].split(", "), ...)
    assert verdict(step, built() | empty).untried, f"{step} of a handout is no mistake yet"


@pytest.mark.parametrize("step", CALLS)
def test_a_slip_is_seen_and_named(step):
    off = []
    for line in SLIPS[step].strip("\n").splitlines():
        change, _, words = line.rpartition("::")
        old, new = (part.replace("\\n", "\n") for part in change.rstrip(" ").split(" =>", 1))
        new, words = new.removeprefix(" "), words.strip()
        found = verdict(step, built(step, old, new))
        if bool(found) is bool(words) or not re.search(words, found.sentence):
            off.append(f"{line}\n{found}")
    assert not off, "\n".join(off)


CONDITIONS = tomllib.loads((ROOT / "tests/answers/conditions.toml").read_text())
del CONDITIONS["exercises"]  # of which tests/test_exercises.py speaks


def conditions(step):
    """The conditions that "Build it" lists before the lines of a step."""
    cells = json.loads((ROOT / "chapters/0-build-it/build.ipynb").read_text())["cells"]
    place = next(k for k, cell in enumerate(cells) if cell["id"] == CALLS[step][0])
    listed = re.findall(r"^- (.+)$", "".join(cells[place - 1]["source"]), re.M)
    assert listed, f"{step} says what its check asks"
    return listed


@pytest.mark.parametrize("step", CONDITIONS)
def test_each_condition_of_a_step_has_an_answer_it_refuses(step):
    listed, rows = conditions(step), CONDITIONS[step]
    assert [words for words in rows if not any(words in each for each in listed)] == [], (
        "no condition has these words"
    )
    assert [each for each in listed if not any(words in each for words in rows)] == [], (
        "nothing is refused by it"
    )
    accepted = []
    for words, slips in rows.items():
        assert slips, words
        for mistake in slips:
            old, _, new = mistake.partition(" => ")
            if verdict(step, built(step, old, new)):
                accepted.append(f"{words}: {mistake}")
    assert accepted == []


def test_each_step_of_build_it_has_conditions():
    cells = json.loads((ROOT / "chapters/0-build-it/build.ipynb").read_text())["cells"]
    steps = {cell["id"] for cell in cells if "step" in cell["metadata"].get("tags", [])}
    assert steps <= {cell for step in CONDITIONS for cell in CALLS[step]}


def test_a_slip_that_no_row_names_is_repaired_and_an_error_tells_the_learners_line(tmp_path):
    code = f"import torch\n\n\n{CODE['step-attention']}\n".replace("q @ k.mT", "k @ k.mT")
    (tmp_path / "attend.py").write_text(code)
    space = runpy.run_path(tmp_path / "attend.py")
    found = workshop.attend(space["softmax"], space["attend"]).sentence
    assert (
        "Look at `k`, because another variable belongs there. It is in your line “logits = k @ k.mT"
        in found
    )
    (tmp_path / "right.py").write_text(
        "import torch\n\n\n@torch.no_grad()\ndef right(x):\n    return x @ 1\n"
    )
    with pytest.raises(exercises.Wrong, match="in your line “return x @ 1”"):
        exercises.run("right(x)", runpy.run_path(tmp_path / "right.py")["right"], 2)


@pytest.mark.parametrize(
    "name", [name for name, row in exercises.tables(vars(workshop)).items() if "mistakes" in row]
)
def test_each_row_of_the_table_is_a_mistake_that_no_other_row_makes(name, monkeypatch):
    """Each runs, is wrong on some case, and is told from all that stand before it."""
    noted, original = [], workshop.compare

    def note(names, call, answer, solution, given, mistakes, **more):
        if mistakes == exercises.tables(vars(workshop))[name]["mistakes"]:
            noted.append((call, solution, given, more))
        return original(names, call, answer, solution, given, mistakes, **more)

    monkeypatch.setattr(workshop, "compare", note)
    step = {"weights": "block", "values": "block", "places": "decoder", "embed": "decoder"}.get(
        name, name
    )
    verdict(step, built())
    (call, solution, given, more), *_ = noted
    table = exercises.tables(vars(workshop))[name]["mistakes"]
    names = vars(workshop) | {"right": solution} | more
    for made, sentence in exercises._functions(table, call.rstrip(")").partition("(")[2], names):
        with pytest.raises(exercises.Wrong) as wrong:
            original(vars(workshop), call, made, solution, given, table, **more)
        assert str(wrong.value).endswith(sentence), f"{sentence}\n{wrong.value}"


def test_a_decoder_goes_out_to_a_file_and_comes_back(tmp_path, monkeypatch, capsys):
    """The page's own lines make it; where a reader has none, the course's own is read, and the page says so."""
    space = built()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebook").mkdir()
    monkeypatch.chdir(tmp_path / "notebook")
    ids, _ = workshop.rows(9)
    course = parts.mine()
    assert "no my-decoder.safetensors" in capsys.readouterr().out
    assert parts.right(course, 16) > 0.9
    theirs = space["Decoder"](space["Block"](), space["Block"](), where=space["Places"]())
    assert parts.keep(theirs) == tmp_path / "my-decoder.safetensors"
    again = parts.mine()
    assert capsys.readouterr().out.splitlines() == [
        f"Saved in {tmp_path / 'my-decoder.safetensors'}.",
        "Your own decoder.",
    ]
    assert torch.allclose(again(ids), theirs(ids), atol=1e-5)
    parts.note("2", "It hears itself.", heard=0.2)
    for gap in ("...", "…", "____"):
        parts.note("3", f"It {gap}")
    said = [
        "Saved. Your sentences so far: 1.",
        *3 * ["Saved, but your sentence is not finished yet."],
    ]
    assert capsys.readouterr().out.splitlines()[-4:] == [
        f"{each} ({tmp_path / 'my-notes.json'})" for each in said
    ]
    assert json.loads((tmp_path / "my-notes.json").read_text())["2"] == {
        "sentence": "It hears itself.",
        "heard": 0.2,
    }
    with pytest.raises(ValueError, match="heard must be a finite number, not inf"):
        parts.note("2", "It hears itself.", heard=float("inf"))
    (tmp_path / "my-notes.json").write_text('{"2": {"heard": Infinity}}')
    with pytest.raises(
        ValueError, match=r"my-notes\.json, chapter 2, 'heard' must be a finite number"
    ):
        parts.note("2", "It hears itself.")
    (tmp_path / "my-notes.json").unlink()
    (tmp_path / "my-notes.json").mkdir()
    with pytest.raises(ValueError, match=r"my-notes\.json must be a file, not a folder"):
        parts.note("2", "It hears itself.")
    (tmp_path / "my-notes.json").rmdir()
    (tmp_path / "my-notes.json").write_text("[]")
    with pytest.raises(ValueError, match="must be an object of JSON"):
        parts.note("2", "It hears itself.")
    (tmp_path / "my-decoder.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="path must be a decoder of “Build it”"):
        parts.mine()
    with pytest.raises(ValueError, match="existing file"):
        parts.mine("no")
    assert not capsys.readouterr().out
    with pytest.raises(ValueError, match=r"path must end in \.safetensors"):
        parts.keep(theirs, tmp_path / "mine.pt")


def test_the_courses_parts_are_the_pages_lines():
    """Loop, rows and the share of right answers, so that the course's own decoder is what the page makes."""
    space = built()
    for n in (4, 16):
        for one, other in zip(
            space["batch"](n, torch.Generator().manual_seed(3)), workshop.rows(n, 3), strict=True
        ):
            assert torch.equal(one, other)
    made = []
    for source in (space, vars(parts)):
        torch.manual_seed(0)
        model = source["Decoder"](source["Block"](), source["Block"](), where=source["Places"]())
        made.append(source["train"](model, steps=2))
    assert parts.right(made[0], 16) == space["right"](made[0], 16)
    for one, other in zip(*(model.state_dict().values() for model in made), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("page", YOURS, ids=lambda page: page.parent.name[0])
def test_each_page_measures_the_courses_own_decoder_as_its_notes_say(
    page, tmp_path, monkeypatch, request
):
    """`pytest tests/test_workshop.py --redraw` writes them."""
    (tmp_path / "notebook").mkdir()
    monkeypatch.chdir(tmp_path / "notebook")
    space, path = {}, ROOT / "data/workshop/notes.json"
    for cell in json.loads(page.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    (chapter, found), *_ = parts.notes(tmp_path / parts.NOTES).items()
    assert chapter == page.parent.name[0]
    assert "..." in found.pop("sentence")
    assert all(0 <= each <= 1 for each in found.values())
    if request.config.getoption("--redraw"):
        path.write_text(
            json.dumps(parts.notes() | {chapter: found}, indent=1, sort_keys=True) + "\n"
        )
    assert parts.notes()[chapter] == pytest.approx(found, abs=0.02)


def test_the_report_of_a_decoder_of_ones_own_has_what_the_pages_measure_on_it(
    tmp_path, monkeypatch
):
    """Of three blocks that turn, saved as the page "Train it here" saves it: no page asks for two blocks and a table."""
    (tmp_path / "notebook").mkdir()
    monkeypatch.chdir(tmp_path / "notebook")
    mine = workshop.drawn(parts.Decoder(*(parts.Block(parts._turned) for _ in range(3))), 4)
    path = parts.keep(mine, design='{"positions": "RoPE"}')
    for page in YOURS:
        space = {}
        for cell in json.loads(page.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), space)
    parts.note("7", "Mine <wins> …", **{"retrieval at 128": 0.9})
    files = report.run(str(path), tmp_path / "out")
    found, kept = json.loads(files.numbers.read_text()), parts.notes(tmp_path / parts.NOTES)
    assert kept.keys() == {*"1234567"}
    for chapter, numbers in kept.items():
        assert found["sentences"][chapter] == numbers.pop("sentence")
        assert found["measured"][chapter] == pytest.approx(numbers, abs=0.01)
    assert found["measured"]["0"]["right at 16"] == pytest.approx(parts.right(mine, 16), abs=1e-3)
    page = files.page.read_text()
    assert "Mine &lt;wins&gt; … (Not finished.)" in page
    assert "This decoder has no row in the race yet" not in page
    measured = parts.notes()
    course = report.run(str(parts.COURSE), tmp_path / "out")
    again = json.loads(course.numbers.read_text())
    assert again["measured"] == {
        chapter: pytest.approx(each, abs=0.02) for chapter, each in measured.items()
    }
    assert again["course"] == measured
    assert "This decoder has no row in the race yet" in course.page.read_text()


def shares_on_page(model, ids):
    """Run the lines of "Now yours 2" on these rows, and return its shares by name."""
    answers = parts.batch(16, torch.Generator(), 1)[1].expand(len(ids), -1)
    space = {"mine": model, "needle": tasks.Retrieval(), "torch": torch}
    space["parts"] = types.SimpleNamespace(batch=lambda *_, **__: (ids, answers))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(CODE["step-heard"], space)
        exec(CODE["c2y-07"], space)
    return space["found"]


def test_attention_is_one_number_on_three_pages():
    """The page of chapter 2, the workshop's `sharp` and the page "Train it here" look at one decoder and one row."""
    model = parts.read(parts.COURSE)
    file = base64.b64encode(parts.COURSE.read_bytes()).decode()
    row = workshop.rows(16, 0, 2)[0]
    given = {
        "file": file,
        "stop": "subtract",
        "value": "0.5",
        "ids": row.flatten().tolist(),
        "n": 20,
        "at": 16,
    }
    found = javascript("acted", given)
    ids = torch.tensor([found["row"]])
    trained = found["shown"]["was"][found["shown"]["source"]]

    blocks = [
        share for name, share in shares_on_page(model, ids).items() if name.startswith("attention")
    ]
    assert len(blocks) == len(model.blocks), "it leaves no block out"
    last_question = CODE["step-spread"].replace("share[:, :, -4:, 0]", "share[:, :, -1:, 0]")
    space = {"torch": torch, "needle": tasks.Retrieval(), "batch": lambda *_: (ids, None)}
    exec(last_question, space)
    assert max(float(share.mean()) for share in blocks) == pytest.approx(trained, abs=1e-5)
    assert space["sharp"](model, 16) == pytest.approx(trained, abs=1e-5)
    assert blocks.index(max(blocks)) == found["shown"]["layer"]


def test_attention_on_answer_is_what_sharp_averages():
    model = parts.read(parts.COURSE)
    ids, _ = workshop.rows(16, 7)
    space = {"torch": torch, "needle": tasks.Retrieval(), "batch": lambda *_: (ids, None)}
    exec(CODE["step-spread"], space)
    attention = workshop.attention_on_answer(model, ids)
    assert attention.shape == (2, 32, 4)
    assert float(attention.mean((1, 2)).max()) == pytest.approx(space["sharp"](model, 16), abs=1e-6)


def test_a_decoder_that_these_pages_cannot_read_is_one_sentence(tmp_path):
    """Another size, another window: told, and not measured as if it were theirs."""
    wide = parts.Decoder(parts.Block(), tokens=7)
    with pytest.raises(
        ValueError, match=r"shape \(7, 32\), but these pages need 45 tokens and width 32"
    ):
        parts.mine(parts.keep(wide, tmp_path / "wide.safetensors", right="{}"))
    course = parts.mine(parts.COURSE)
    for block in course.blocks:
        block.settings = {"window": 2}
    with pytest.raises(
        ValueError,
        match=r"at 16 pairs was 0\.\d\d after training, but it is 1\.00 if we build the decoder",
    ):
        parts.mine(parts.keep(course, tmp_path / "near.safetensors"))


def test_a_page_of_ones_own_has_what_was_measured_and_what_was_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "notebook").mkdir()
    monkeypatch.chdir(tmp_path / "notebook")
    torch.manual_seed(1)
    parts.keep(parts.Decoder(parts.Block(), where=parts.Places()))
    parts.note("4", "It is <gone>.", mine=0.1, other=0.3)
    space = {}
    for cell in json.loads((ROOT / "chapters/7-the-race/own.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    assert space["found"].startswith(
        "We compare 3 of your numbers with the numbers of the course. The largest difference is in “right at 16"
    )
    assert space["frame"].loc["4  other", "yours"] == 0.3
    assert parts.notes()["0"] == pytest.approx(
        {f"right at {n}": parts.right(parts.read(parts.COURSE), n) for n in (16, 64)}, abs=0.01
    )
    page = (tmp_path / "my-page.html").read_text()
    assert "4. It is &lt;gone&gt;." in page
    assert "<img" in page
    assert "not finished: none" in capsys.readouterr().out
