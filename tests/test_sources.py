"""The table of the sources: each row is worded as its source, leads to a place that exists, and says how far it is answered."""

import json
import re

import pytest
import quotations
import sourced
from conftest import ROOT, in_words

from book import editions, units
from course import scorecard
from course.evidence.claims import CLAIMS
from helpers import data

ROWS = sourced.rows()
QUOTE = re.compile("“([^“”]*[一-鿿][^“”]*)”")


def test_a_spliced_quotation_is_refused():
    """Two places of one slide are not one sentence, whatever stands between them."""
    slide = (
        "- 猜想: 过大的旋转角度会导致对应维度所得结果趋于噪声\n- Exception: First and Last Layers"
    )
    assert quotations.contains(slide, "猜想: 过大的旋转角度会导致对应维度所得结果趋于噪声")
    assert not quotations.contains(slide, "所得结果趋于噪声 (Exception: First and Last Layers)")


def test_tex_is_set_aside_and_words_are_not():
    slide = (
        r"难度: $\textcircled{\small 3} < \textcircled{\small 1} \approx \textcircled{\small 4}$"
    )
    assert quotations.contains(slide, "难度: ③ < ① ≈ ④")
    assert not quotations.contains(slide, "难度: ③ ≈ ① < ④")


def test_each_quotation_was_found_in_its_source():
    """`python tools/quotations.py` seals what it finds; whoever changes a quotation has to run it again."""
    changed = [
        row["quotation"] for row in quotations.read()[1] if row["check"] != quotations.seal(row)
    ]
    assert changed == []


def test_a_changed_quotation_loses_its_seal():
    row = quotations.read()[1][0]
    assert row["check"] != quotations.seal(row | {"quotation": row["quotation"] + "!"})


def test_each_row_says_how_far_it_is_answered():
    for row in ROWS.itertuples():
        assert row.document in sourced.DOCUMENTS
        assert row.answered in sourced.ANSWERED, row.quotation
        assert row.why or row.answered == "full", (
            f"say why it is not answered in full: {row.quotation}"
        )
        assert bool(row.why) == bool(row.why_zh), f"say why in both languages: {row.quotation}"
        assert (sourced.answering(row) != "") or row.answered == "not here", (
            f"say where: {row.quotation}"
        )
        assert row.english or sourced.LANGUAGE[row.document] == "en", f"translate: {row.quotation}"


def test_each_row_leads_to_a_heading_and_a_claim_that_exist():
    for row in ROWS.itertuples():
        assert not row.claim or row.claim in CLAIMS, f"{row.quotation}: no claim {row.claim}"
        if where := sourced.answering(row):
            page, _, heading = where.partition("#")
            assert not heading or heading in sourced.headings(page, "en"), (
                f"{row.quotation}: no heading {where}"
            )


def test_every_slide_figure_and_theorem_has_a_row():
    talk, paper = (" ".join(ROWS[ROWS.document == name].place) for name in ("talk", "paper"))
    assert {int(number) for number in re.findall(r"slide (\d+)", talk)} == {*range(1, 24)}
    figures = {
        int(number)
        for group in re.findall(r"Figures? ([\da-d, ]+)", paper)
        for number in re.findall(r"\d+", group)
    }
    assert figures == {*range(1, 13)}
    stated = (
        "Lemma 4.1,Theorem 4.2,Theorem 5.1,Proposition 5.2,Proposition 6.1,Corollary 6.2".split(",")
    )
    stated += "Lemma B.1,Lemma B.2,Theorem B.3,Proposition B.4,Theorem B.5,Lemma B.6,Lemma B.7,Proposition B.8".split(
        ","
    )
    assert [
        name for name in [*stated, "Proposition B.9", "Corollary B.10"] if name not in paper
    ] == []


def test_quoted_claims_are_booked_to_their_source():
    """The conjecture that holds was once booked to this course, the one that fails to its author."""
    for name in set(scorecard.quotations()) - set(scorecard.READ_INTO_THE_TALK):
        assert not CLAIMS[name].own, name


def test_the_talk_quotes_contiguous_pieces_of_its_source():
    """Chinese in quotation marks on the English slides and pages; in Chinese, quotations of six characters and more."""
    held = [quotations.plain(text) for text in ROWS[ROWS.document.isin(["talk", "note"])].quotation]
    cells = json.loads((ROOT / "chapters/talk.ipynb").read_text())["cells"]
    said = [quote for cell in cells for quote in QUOTE.findall("".join(cell["source"]))]
    chinese = " ".join(entry.other for entry in units.read(ROOT / "chapters/talk.zh.po"))
    said += re.findall("“([^“”]*[一-鿿]{6,}[^“”]*)”", chinese)
    assert said, "the page of the strategies quotes"
    assert [
        quote for quote in said if not any(quotations.plain(quote) in text for text in held)
    ] == []


def test_chain_of_thought_is_answered_as_measured():
    """With a window of eight, who writes the count stays right at eight times the length; with RoPE over all, not."""
    wrote = data.table("counting_written").query(
        "asked == 'every letter, and reads its answers' and encoding == 'RoPE'"
    )
    assert wrote[wrote.window == 8].low_128.min() == 1
    assert wrote[wrote.window == 0].low_128.max() < 0.5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_the_sources_shows_every_row(language, monkeypatch):
    monkeypatch.setattr(
        scorecard, "badge", lambda name: scorecard.Badge("holds", "✓", "#00805c", "")
    )
    table = editions.words(ROOT / "chapters/sources.zh.po") if language == "zh" else {}
    with in_words(table):
        page = [
            sourced.entry(row, number, language) for number, row in enumerate(ROWS.itertuples(), 1)
        ]
    assert len(page) == len(ROWS)
    assert all(
        f'data-document="{row.document}"' in text
        for row, text in zip(ROWS.itertuples(), page, strict=True)
    )
    first = page[0]
    assert ("slide 1" in first) == (language == "en")
    assert ("../" in "".join(page)) == (language == "zh"), (
        "from a Chinese page to what is English only"
    )


def test_a_filter_shows_one_document_without_a_script():
    said = sourced.choice("document", sourced.DOCUMENTS, ROWS.document.value_counts().to_dict())
    assert f"all ({len(ROWS)})" in said
    assert said.count('type="radio"') == 1 + len(sourced.DOCUMENTS)
    assert ":has(#source-document-talk:checked)" in said


def test_a_table_keeps_a_sign_that_begins_comments():
    """A `#` within a row is no comment: the sections of pages are written with it."""
    assert data.table("sources")["where"].str.contains("#").sum() > 30


def test_words_of_the_filter_are_words_of_the_edition():
    known = {entry.text for entry in units.read(ROOT / "chapters/sources.zh.po") if entry.other}
    assert {*sourced.DOCUMENTS.values(), *sourced.ANSWERED.values(), *ROWS.kind} <= known
