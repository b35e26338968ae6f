"""Every page, deck, exercise, claim and report says what `tests/said` has written down.

`python -m pytest tests/test_said.py --redraw` writes it anew, `-m "not site"` what needs no built book; read the
difference before you commit it: each line is a statement that somebody will read.
"""

import json
import re
from pathlib import Path

import chapters
import editions
import execution
import functions
import guess
import lectures
import pytest
import slides
import stills
from conftest import ROOT
from drawn import NUMBER, blocks, compare, same
from said import SOURCES, asserted, facts, outputs, typed, visible
from test_exercises import EXERCISES

from course import drawing, scorecard
from course.report import store
from course.report.sections import SECTIONS


def place(path: Path) -> tuple[str, str]:
    """The file of `tests/said` that holds a source, and the source's name there."""
    if not path.is_relative_to(ROOT / "chapters"):
        return "course", path.relative_to(ROOT).as_posix().removeprefix("src/course/")
    home = path.relative_to(ROOT / "chapters").parts
    return (home[0] if len(home) > 1 and home[0][0].isdigit() else "pages"), "/".join(home)


def save(file: str, shown: dict[str, list[str]]) -> None:
    text = ["\n".join([f"# {name}", *lines]) for name, lines in shown.items()]
    (ROOT / f"tests/said/{file}.txt").write_text("\n\n".join(text) + "\n")


def hold(file: str, part: str, shown: dict[str, list[str]], redraw: bool, loose: float = 0) -> None:
    """Compare what a part says with its blocks of a file, or write these anew; `loose` is how far its numbers may be off."""
    shown = {" ".join(filter(None, (part, name))): lines for name, lines in shown.items()}
    there = blocks(f"../said/{file}")
    old = {name: found for name, found in there.items() if name == part or name.startswith(f"{part} ")}
    if redraw:
        rest = {name: found for name, found in there.items() if name not in old}
        for name in old.keys() & shown.keys():  # where nothing changed but the last digits, the old lines stay
            if loose and len(old[name]) == len(shown[name]) and all(map(same, old[name], shown[name])):
                shown[name] = old[name]
        every = rest | shown
        order = sorted({*map(first, every)})
        save(file, {name: every[name] for key in order for name in every if first(name) == key})
        return
    assert sorted(shown) == sorted(old), (
        f"{part} of tests/said/{file}.txt: what is said, and where (--redraw where it is meant)"
    )
    for name, found in shown.items():
        if loose:
            compare(found, old[name], loose)
        else:
            assert found == old[name], f"{name}: `pytest tests/test_said.py --redraw` where it is meant"


def first(name: str) -> str:
    return " ".join(name.split()[:2])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "-".join(place(path)))
def test_what_is_typed_asserts_what_is_written_down(path, request):
    """The words that make it true or false; another wording of the same passes."""
    file, name = place(path)
    shown = {block: [line] for block, line in typed(path).items()}
    hold(file, f"{name} typed", shown, request.config.getoption("--redraw"))


def test_nothing_is_written_down_that_nobody_says(request):
    there = {place(path) for path in SOURCES}
    for file in sorted({file for file, _ in there}):
        found = blocks(f"../said/{file}")
        gone = [name for name in found if (file, name.split()[0]) not in there]
        if gone and request.config.getoption("--redraw"):
            save(file, {name: lines for name, lines in found.items() if name not in gone})
        else:
            assert not gone, file


COMPUTED = {}


def computed(call):
    COMPUTED[call.__name__] = call
    return call


@computed
def rules():
    """Of each claim the rule as a reader reads it, what is reported, and what stands against chance."""
    return {
        name: [each.rule.text, f"reported: {each.reported}", f"null: {each.rule.null}", f"controls: {scorecard.controls(each)}"]
        for name, each in scorecard.CLAIMS.items()
        if not each.parts
    }  # fmt: skip


@computed
def exercises():
    """What is offered to be guessed, which guess comes true, and how many cases an answer is tried on."""
    from course.checks import tables

    rows = {}
    for module in {each.check.__module__ for each in EXERCISES.values()}:
        names = __import__(module, fromlist=["checks"])
        rows |= {row["number"]: row for row in tables(vars(names)).values() if "number" in row}
    return {
        number: [
            *(f"guess {guess}: {said}" for guess, said in (each.guesses or {}).items()),
            *([f"true: {each.true}"] if each.guesses else []),
            *(f"{kind}: {line}" for kind in ("cases", "unseen") for line in rows.get(number, {}).get(kind, "").split("\n") if line),
        ]
        for number, each in sorted(EXERCISES.items())
    }  # fmt: skip


STATES = {  # of the machine, beside where its stops start
    1: [{"token": 0.2}, {"edges": "causal"}],
    2: [{"kept": 0.5}, {"sink": 0.8}, {"token": 0.3}],
    3: [{"type": "fp16"}, {"n": 40}],
    4: [{"first": False}, {"type": "fp16"}],
    5: [{"swap": True}, {"token": 0.2}],
    6: [{"agree": 0.1}, {"lam": 0.3}],
    7: [{"part": name} for name in ("NoPE", "differential", "local RoPE, global NoPE")],
}


@computed
def drawings():
    """The sentence of each drawing, and of the machine at each stop and in other states, in each language."""
    shown = {}
    for name in drawing.DRAWINGS:
        languages = ["en", *(path.name.split(".")[1] for path in sorted(drawing.HERE.glob(f"words/{name}.*")))]
        states = (
            [{}]
            if name != "machine"
            else [{"at": k, **more} for k in range(drawing.STOPS) for more in ({}, *STATES.get(k, ()))]
        )
        for language in languages:
            told = stills.drawn(name, states, language)[0]
            shown[f"{name}.{language}"] = [
                f"{json.dumps(state)} {said}" for state, (_, picture, said) in zip(states, told, strict=True)
            ]
            shown[f"{name}.{language} picture"] = [
                " / ".join(re.findall(r">([^<>]+)<", picture)) for _, picture, _ in told
            ]
    return shown


@computed
def reports():
    """Headline numbers and sentences of each section of the reports that are there."""
    return {
        f"{path.stem} {name}": visible(f"<p>{told.short}<p>{told.sentence}")
        + [f"{label}: {value}" for label, value in told.headline.items()]
        for path in sorted((ROOT / "data/reports").glob("*.json"))
        for name, found in store.read(path)["sections"].items()
        if found["numbers"] is not None
        for told in [SECTIONS[name].tell(found["numbers"], path.stem)]
    }


@computed
def directives():
    """What the book's own directives count: minutes, slides, answers that are right, the functions that are listed."""
    pages = sorted((ROOT / "chapters").glob("[0-9]*/*.ipynb"))
    listed = re.search(r"```{functions} (.+)", (ROOT / "chapters/functions.md").read_text())[1].split()
    home = ROOT / "src/helpers"
    module = {
        name: next(p for p in (home / f"{name}.py", home / name / "__init__.py") if p.exists()) for name in listed
    }
    import ast

    return {
        "minutes": [f"{page.parent.name}/{page.stem}: {chapters.minutes(page)}" for page in pages],
        "lectures": [f"{each['deck']}: {each['title']}, {each['slides']} slides, {each['minutes']} min" for each in lectures.lectures(ROOT)],
        "guess": visible(guess.Guess.run(None)[0].astext()),
        "functions": [f"{name}: {' '.join(node.name for node in functions.public(ast.parse(path.read_text())))}" for name, path in module.items()],
    }  # fmt: skip


@computed
def cues():
    """What the speaker is told, part by part: the label of each and what it asserts."""
    shown = {}
    for path in sorted((ROOT / "chapters").rglob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if cue := slides.CUE.fullmatch("".join(cell["source"]).strip()):
                parts = slides.parts(cue[2])
                shown[f"{path.parent.name}/{path.stem} {cell['id']}"] = [
                    f"{cue[1]} min " + " ".join(f"[{kind}: {label}] {facts(text)}" for kind, label, text in parts)
                ]
    return shown  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_is_what_is_written_down(name, request):
    shown = {key: [" ".join(line.split()) for line in lines if line.strip()] for key, lines in COMPUTED[name]().items()}
    assert shown
    hold(name, name, shown, request.config.getoption("--redraw"))


# cells whose rounding, answers of the language model or decoder trained on the page differ from processor to processor
VARIES = {"c0b-26", "c3bits03", "c3tell05", "c4l00006", "c4l00009b", "c7b-53", "c7b-56"}
PAGES = [path for path in SOURCES if path.suffix == ".ipynb" and path.stem != "scorecard"]
TIMED = re.compile("seconds|page took")


@pytest.mark.site
@pytest.mark.parametrize("path", PAGES, ids=lambda path: "-".join(place(path)))
def test_what_a_page_says_is_what_is_written_down(path, request):
    """Text, Markdown, tables and the sentences of figures in the outputs of the executed cells."""
    file, name = place(path)
    said = {key: lines for key, lines in outputs(execution.executed(path, ROOT)).items() if key not in VARIES}
    timed = [key for key, lines in said.items() if any(map(TIMED.search, lines))]  # the machine's numbers
    said |= {key: [NUMBER.sub("·", line) for line in said[key]] for key in timed}
    hold(file, f"{name} says", said, request.config.getoption("--redraw"), 0.1)


@pytest.mark.site
@pytest.mark.parametrize(
    "path", [path for path in PAGES if editions.tables(path)], ids=lambda path: "-".join(place(path))
)
def test_a_chinese_page_gives_the_numbers_and_the_names_of_its_english_page(path):
    """In each output; "ones" are many 1 in Chinese, so that a 1 or a 0 may be more there."""
    other = ROOT / f"_build/editions/{editions.stem(path.with_suffix('.zh.po'))}.ipynb"
    here, there = (outputs(execution.executed(each, ROOT), drawn=False) for each in (path, other))
    assert here.keys() == there.keys() - {"words", "missing"}
    for cell in here.keys() - VARIES:
        if not any(map(TIMED.search, here[cell])):
            (numbers, names), (more, also) = asserted(here[cell]), asserted(there[cell])
            assert names <= also, cell
            assert not numbers - more, cell
            assert set(more - numbers) <= {"0", "1"}, cell


@pytest.mark.site
def test_each_claim_says_what_is_written_down(site, request):
    rows = json.loads((ROOT / "_build/html/claims.json").read_text())
    shown = {
        row["name"]: [row["verdict"], row["measured"], row["correction"] or "-", json.dumps(row["numbers"])]
        for row in rows
    }
    hold("claims", "claims", shown, request.config.getoption("--redraw"), 0.01)
