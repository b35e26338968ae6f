"""What the book computes and says is what `tests/said` has written down: outputs of pages, drawings, reports, claims.

`python -m pytest tests/test_said.py --redraw` writes it anew, `-m "not site"` what needs no built book; read the
difference before you commit it, because each line is a statement that somebody will read. What an author types is not
held, since git shows how it changed. A page or a claim that is new is held from its first `--redraw` on.
"""

import json
import re
from pathlib import Path

import pytest
import stills
from conftest import ROOT
from drawn import NUMBER, blocks, compare, same
from said import asserted, outputs, visible

from book import editions, execution
from book.pages import notebooks
from course import drawing
from course.report import store
from course.report.sections import SECTIONS

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


def place(path: Path) -> tuple[str, str]:
    """The file of `tests/said` that holds a notebook, and the notebook's name there."""
    home = path.relative_to(ROOT / "chapters").parts
    return (home[0] if len(home) > 1 and home[0][0].isdigit() else "pages"), "/".join(home)


def save(file: str, shown: dict[str, list[str]]) -> None:
    text = ["\n".join([f"# {name}", *lines]) for name, lines in shown.items()]
    (ROOT / f"tests/said/{file}.txt").write_text("\n\n".join(text) + "\n")


def hold(file: str, part: str, shown: dict[str, list[str]], redraw: bool, loose: float = 0) -> None:
    """Compare what a part says with its blocks of a file, or write these anew; `loose` is how far its numbers may be off."""
    shown = {" ".join(filter(None, (part, name))): lines for name, lines in shown.items()}
    there = blocks(f"../said/{file}")
    old = {
        name: found for name, found in there.items() if name == part or name.startswith(f"{part} ")
    }
    if redraw:
        rest = {name: found for name, found in there.items() if name not in old}
        for name in (
            old.keys() & shown.keys()
        ):  # where nothing changed but the last digits, the old lines stay
            if (
                loose
                and len(old[name]) == len(shown[name])
                and all(map(same, old[name], shown[name]))
            ):
                shown[name] = old[name]
        every = rest | shown
        order = sorted({*map(first, every)})
        save(file, {name: every[name] for key in order for name in every if first(name) == key})
        return
    for name in sorted(shown.keys() & old.keys()):
        found = shown[name]
        if loose:
            compare(found, old[name], loose)
        else:
            assert found == old[name], (
                f"{name}: `pytest tests/test_said.py --redraw` where it is meant"
            )


def first(name: str) -> str:
    return " ".join(name.split()[:2])


COMPUTED = {}


def computed(call):
    COMPUTED[call.__name__] = call
    return call


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
        languages = [
            "en",
            *(path.name.split(".")[1] for path in sorted(drawing.HERE.glob(f"words/{name}.*"))),
        ]
        states = (
            [{}]
            if name != "machine"
            else [
                {"at": k, **more} for k in range(drawing.STOPS) for more in ({}, *STATES.get(k, ()))
            ]
        )
        for language in languages:
            told = stills.drawn(name, states, language)[0]
            shown[f"{name}.{language}"] = [
                f"{json.dumps(state)} {said}"
                for state, (_, picture, said) in zip(states, told, strict=True)
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


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_is_what_is_written_down(name, request):
    shown = {
        key: [" ".join(line.split()) for line in lines if line.strip()]
        for key, lines in COMPUTED[name]().items()
    }
    assert shown
    hold(name, name, shown, request.config.getoption("--redraw"))


# cells whose rounding, answers of the language model or decoder trained on the page differ from processor to processor
VARIES = {"c0b-26", "c0b-31", "c3bits03", "c3tell05", "c4l00006", "c4l00009b", "c7b-53", "c7b-56"}
PAGES = [path for path in notebooks() if path.stem != "scorecard"]
TIMED = re.compile("seconds|page took")


@pytest.mark.site
@pytest.mark.parametrize("path", PAGES, ids=lambda path: "-".join(place(path)))
def test_what_a_page_says_is_what_is_written_down(path, request):
    """Text, Markdown, tables and the sentences of figures in the outputs of the executed cells."""
    file, name = place(path)
    said = {
        key: lines
        for key, lines in outputs(execution.executed(path, ROOT)).items()
        if key not in VARIES
    }
    timed = [
        key for key, lines in said.items() if any(map(TIMED.search, lines))
    ]  # the machine's numbers
    said |= {key: [NUMBER.sub("·", line) for line in said[key]] for key in timed}
    hold(file, f"{name} says", said, request.config.getoption("--redraw"), 0.1)


@pytest.mark.site
@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if editions.tables(path)],
    ids=lambda path: "-".join(place(path)),
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
        row["name"]: [
            row["verdict"],
            row["measured"],
            row["correction"] or "-",
            json.dumps(row["numbers"]),
        ]
        for row in rows
    }
    hold("claims", "claims", shown, request.config.getoption("--redraw"), 0.01)
