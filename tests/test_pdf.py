"""The book as a PDF: what stands in it, and what a reader finds at its end."""

import io
import re

import pdf
import pytest
from pypdf import PdfReader


def text(sheets):
    return "\n".join(sheet.extract_text() for sheet in sheets)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_edition_is_of_one_language_and_has_its_chapters_in_order(language):
    names = [name for name, _ in pdf.pages(language)]
    assert {name.startswith(pdf.ZH) for name in names} == {language == "zh"}
    lessons = [name for name in names if name.endswith("/lesson")]
    assert len(lessons) == 7
    assert lessons == sorted(lessons)
    assert not any(name.endswith(("functions", "scorecard")) for name in names)


@pytest.fixture(scope="module")
def part(chromium, site):
    names = ("welcome", "3-representational-collapse/exercises")
    return [pdf.printed(chromium, f"{site}/chapters/{name}.html", 0) for name in names]


def test_solutions_and_answers_of_guesses_come_at_the_end(part):
    said = [["What five language models"], ["Hint 1", "Hint 2", "Hint 3", "Solution in words"]]
    for (body, end), each in zip(part, said, strict=True):
        for words in each:
            assert words not in text(body.sheets.pages)
            assert words in text(end.sheets.pages)


def test_signs_in_the_answer_of_a_guess_stay_in_its_line(part):
    """Without the style of the guess, each sign fills a sheet."""
    _, end = part[0]
    sheet = end.sheets.pages[0].extract_text()
    assert {"1111…", "1,1,1,…"} <= {word.strip(";.") for word in sheet.split()}
    assert len(end.sheets.pages) == 1


def test_the_contents_name_the_sheet_on_which_a_page_begins(chromium, site, part):
    bodies, ends = [body for body, _ in part], [end for _, end in part]
    writer = pdf.bound(chromium, site, bodies, ends, "en")
    sheets = [sheet.extract_text() for sheet in writer.pages]
    assert [sheet.split()[-1] for sheet in sheets] == [f"{k + 1}" for k in range(len(sheets))]
    rows = re.findall(r"^([^\d\n]+) (\d+)$", sheets[0], re.M)
    assert len(rows) == len(bodies) + 1 + len(ends)
    for title, number in rows:
        if title != pdf.WORDS["en"][2]:
            assert title in " ".join(sheets[int(number) - 1].split())


def test_chinese_contents_bring_their_type(chromium, site):
    """Where a machine has no type for Chinese, each character would else be an empty box."""
    title, heading, later = pdf.WORDS["zh"]
    found = pdf.contents(chromium, site, title, heading, [(later, 0, 2)])
    page = PdfReader(io.BytesIO(found)).pages[0]
    fonts = [
        str(each.get_object().get("/BaseFont")) for each in page["/Resources"]["/Font"].values()
    ]
    assert heading in page.extract_text()
    assert any("NotoSansSC" in font for font in fonts), fonts


def test_the_machine_is_one_sheet_of_stills(part):
    welcome, _ = part[0]
    sheets = [" ".join(sheet.extract_text().split()) for sheet in welcome.sheets.pages]
    first, last = "The row becomes tokens", "It leaves the count (4) dark"
    assert [sheet for sheet in sheets if first in sheet and last in sheet], "stops 0 and 7"
