"""The paths through the book: an evening fits its hour, has one notebook without solutions, and keeps one sentence."""

import json
import re
from types import SimpleNamespace

import chapters as cards
import evenings
import lectures
import pytest
from conftest import ROOT
from docutils import nodes
from docutils.utils import new_document

from book import assignments, chapters, reading

FIVE, (ENGINEER,) = evenings.plan(ROOT)["five"], evenings.plan(ROOT)["engineer"]


@pytest.mark.parametrize("number", range(1, 6))
def test_an_evening_takes_60_to_75_minutes(number):
    assert 60 <= evenings.total(ROOT, FIVE[number - 1]) <= 75


def test_two_hours_take_two_hours():
    assert abs(evenings.total(ROOT, ENGINEER) - 120) <= 15
    pages = [part.get("page", part.get("link", "")) for part in ENGINEER["parts"]]
    assert sum(page.endswith("/lesson") and page[0] in "123456" for page in pages) == 3
    assert {"reports.html", "7-the-race/lesson"} <= {*pages}


@pytest.mark.parametrize("number", range(1, 6))
def test_the_notebook_of_an_evening_has_no_solutions(number):
    text = assignments.evening(ROOT, number)
    cells = json.loads(text)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert "@title" not in text
    assert "Solution in words" not in text
    assert all(
        "= ..." in "".join(cell["source"])
        for cell in cells
        if cell["metadata"].get("tags") == ["step"]
    )
    for each in (each for part in FIVE[number - 1]["parts"] for each in part.get("exercises", ())):
        solved = ["".join(cell["source"]) for cell in assignments.exercise(ROOT, f"{each}")]
        body = (
            next(cell for cell in solved if cell.startswith("# @title")).partition("\n")[2].strip()
        )
        assert not any(body in cell for cell in code), f"the solution of {each}"
        assert "Hint 3" in text
    ids = [cell["id"] for cell in cells]
    assert len({*ids}) == len(ids)
    assert not re.search(r"\]\([^)#:]+\.(ipynb|md)", text), "a page that does not lie beside it"


@pytest.mark.parametrize("number", range(1, 6))
def test_an_evening_keeps_a_sentence_of_its_own(number):
    chapter = FIVE[number - 1]["keep"]
    assert f'parts.note("{chapter}", sentence' in json.loads(
        json.dumps(assignments.evening(ROOT, number))
    ).replace('\\"', '"')


def test_the_page_names_each_evening_and_each_part_is_there():
    page = (ROOT / "chapters/evenings.md").read_text()
    assert re.findall(r"^```{evening} five (\d)$", page, re.M) == [f"{k}" for k in range(1, 6)]
    assert "```{evening} engineer 1" in page
    for part in (part for evening in [*FIVE, ENGINEER] for part in evening["parts"]):
        assert evenings.named(ROOT, part)
        assert evenings.minutes(ROOT, part) > 0
    assert "(evenings.md)" in (ROOT / "chapters/welcome.md").read_text()


def lesson(name, sections):
    document = new_document(name)
    whole = nodes.section("", nodes.title("", "A lesson"), nodes.paragraph("", "It begins."))
    whole += [nodes.section("", nodes.title("", f"Part {k}")) for k in range(sections)]
    document += whole
    return document


def test_a_lesson_is_marked_where_the_evenings_leave_it():
    app = SimpleNamespace(srcdir=str(ROOT))
    document = lesson("lesson", 7)
    evenings.mark(app, document, "chapters/1-over-squashing/lesson")
    kinds = [type(child).__name__ for child in document[0].children]
    assert kinds == ["title", "paragraph", *["section"] * 3, "raw", *["section"] * 4]
    away = lesson("lab", 2)
    evenings.mark(app, away, "chapters/1-over-squashing/lab")
    assert [type(child).__name__ for child in away[0].children][:2] == ["title", "raw"]
    other = lesson("exercises", 2)
    evenings.mark(app, other, "chapters/1-over-squashing/exercises")
    assert not [*other.findall(nodes.raw)]


# Times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lesson", "lab"])
def test_a_card_has_the_computed_minutes_of_its_page(name):
    for path in chapters.listed(ROOT):
        card, page = cards.Chapters.card(None, path, ROOT, ""), path.with_stem(name)
        if page.exists():
            link = re.escape(f'href="{page.parent.name}/{name}.html">')
            found = re.search(rf"<small>.*{link}[^<]+</a> (\d+) min", card)
            assert int(found[1]) == reading.minutes(page)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("word " * 2 * reading.WORDS, 2), ("$x$ $y$", 2 * reading.SYMBOL),
     ("$$z$$", reading.FORMULA), ("| a | b |\n|---|---|\n", reading.OUTPUT),
     ("<details><summary>Hint</summary>" + "word " * 900 + "</details>", 0),
     ("<!-- cue: 2 min\n" + "word " * 900 + "-->", 0)],
)  # fmt: skip
def test_the_time_of_a_text_is_that_of_what_stands_open(text, minutes):
    assert reading.minutes_of_text(text) == pytest.approx(minutes)


def test_folded_code_takes_no_time():
    cell = {"cell_type": "code", "source": ["x = 1\n"] * 60, "metadata": {}}
    assert reading.minutes_of_cell(cell) == pytest.approx(60 * reading.LINE)
    assert reading.minutes_of_cell(cell | {"metadata": {"tags": ["hide-input"]}}) == 0


# What a page of steps gives -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", assignments.WORKSHOP.values())
def test_the_lines_of_a_step_are_folded_on_its_page(page):
    cells = json.loads((ROOT / f"chapters/{page}.ipynb").read_text())["cells"]
    steps = [cell["metadata"] for cell in cells if "step" in cell["metadata"].get("tags", [])]
    assert steps
    assert all("hide-cell" in step["tags"] for step in steps)
    assert {step["mystnb"]["code_prompt_show"] for step in steps} == {
        "Show the lines, for when you are stuck"
    }


@pytest.mark.parametrize(
    "name", ["chapters/0-build-it/build", "chapters/zh/2-causal-attention/yours"]
)
def test_the_button_gives_the_copy_to_write_in_first(tmp_path, name):
    source = {
        "type": "link",
        "label": "download-source-button",
        "url": "_sources/page.ipynb",
        "text": ".ipynb",
    }
    group = {"buttons": [dict(source), {"label": "download-pdf-button"}]}
    context = {"header_buttons": [group], "pathto": lambda folder, _: f"../{folder}"}
    lectures.handout(SimpleNamespace(outdir=str(tmp_path)), name, "", context, None)
    first, second, *_ = group["buttons"]
    assert (first["text"], second["text"]) == ("to write in", "solved")
    assert second["url"] == source["url"]
    assert first["url"] != source["url"]
    if "zh" in name:
        (file,) = (tmp_path / "_sources").iterdir()
        steps = [
            cell
            for cell in json.loads(file.read_text())["cells"]
            if "step" in cell["metadata"].get("tags", [])
        ]
        assert steps
        assert all("".join(cell["source"]).endswith("= ...\n") for cell in steps)
    else:
        assert first["url"] == "../teaching/build-it.ipynb"


def test_a_page_without_steps_keeps_its_button():
    group = {"buttons": [{"label": "download-source-button", "text": ".ipynb"}]}
    lectures.handout(None, "chapters/answer", "", {"header_buttons": [group]}, None)
    assert group["buttons"] == [{"label": "download-source-button", "text": ".ipynb"}]
