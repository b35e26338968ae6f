"""Chapter 4 measures what it says: against hand-made texts, tables and counts."""

import json
import math
import re

import pytest
from tiny_models import tiny

from course.chapter4 import checks, measures
from course.evidence import significance
from course.maths import counting

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

# Lesson --------------------------------------------------------------------------------------------------


def test_a_misread_state_is_nearer_to_a_neighbour():
    n = measures.first_misread("bf16")
    exact = {k: counting.last_state("1" * k, first=True, causal=True) for k in (n - 1, n, n + 1)}
    here = counting.last_state("1" * n, first=True, causal=True, dtype="bf16").double()
    assert (exact[n] - here).norm() > min((exact[k] - here).norm() for k in (n - 1, n + 1))
    assert measures.first_misread("fp64", 20) is None
    assert measures.counts_to("fp64", 2, 20) == "20 or more"


def test_codes_count_all_at_the_vocabulary_and_fewer_below():
    assert measures.read_right(32, 32, "tight", 4096) == 1
    assert (
        measures.read_right(32, 24, "tight", 4096) < 0.1 < measures.read_right(32, 24, "tight", 8)
    )
    assert measures.read_right(32, 32, "random", 4096) < 0.1


@pytest.mark.parametrize("kind", ["random", "tight"])
def test_with_n_known_one_dimension_fewer_than_symbols_is_enough(kind):
    assert measures.read_right(32, 31, "random", 4096, readout="solved") == 1
    assert measures.read_right(32, 30, kind, 4096, readout="solved") < 0.9
    assert measures.read_right(32, 31, kind, 4096) < 0.5, "the plain product needs all"


def test_pieces_put_together_are_the_text():
    model = tiny("llama")
    for text in ("1,1,1", "yxyy", "How many?"):
        assert "".join(measures.pieces(text, model)) == text


def test_merged_letters_are_counted_by_hand():
    assert measures._merged([["y", "xy", "yy", "x"]]) == 4 / 6
    assert measures._merged([["y", ",", "x"]]) == 0


def test_reported_answers_are_the_talks():
    table = measures.answers()
    assert len(table) == 15
    assert table.answer.notna().sum() == 12
    cell = table.set_index(["model", "writing"]).answer
    assert cell["GPT-4o", "groups_of_five"] == 340
    assert math.isnan(cell["Llama-3.3-70B", "ones"])


def test_intervals_separate_with_enough_strings_and_only_then():
    assert measures.separated(100) == 0
    assert measures.separated(5000) == measures.separated(10**6) == 10
    low, high = measures.plain_interval(5000)
    assert low < measures.PLAIN_ACCURACY < high
    assert (low / 100, high / 100) == pytest.approx(significance.share_interval(8, 5000))


def test_one_constant_answer_by_enumeration():
    share = sum(math.comb(19, k) * 0.7**k * 0.3 ** (19 - k) for k in (13,))
    assert measures.best_constant() == pytest.approx(share)


def test_always_one_number():
    assert measures.always(100, [10, 100, 200]) == [90, 0, 100]
    assert measures.always(100, [100], "zeros and ones") == pytest.approx([30])


@pytest.mark.parametrize(
    "answer",
    ["37", "1,204", "**37**.", "36,37", "10,11,12", "1,204,5", "-5", "37th", "5 + 3 = 8", "xxxx"],
)
def test_the_printed_reader_of_answers_reads_as_the_course_does(answer, root):
    """Exercise 4.5: also where no text of the check asks it."""
    cells = json.loads((root / "chapters/4-counting/exercises.ipynb").read_text())["cells"]
    printed = next(
        "".join(c["source"]) for c in cells if "checks.parse.solution(" in "".join(c["source"])
    )
    names = {"re": re}
    exec(printed.partition("checks.parse")[0], names)
    text = f"{checks.LINE} {answer}"
    assert names["solution"](text) == counting.parse_answer(text)
