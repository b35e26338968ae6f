"""A guess at the head of a page, and again at its foot."""

import ipywidgets
import pytest

from course.exercises import predict
from helpers.widget import _VIEW

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(predict, "_asked", {})
    monkeypatch.setattr(predict, "_guesses", {})


def test_a_kernel_keeps_the_guess_and_shows_it_again():
    asked = predict.ask("share", "Which share?", ["a half", "a tenth"])
    box = asked.live().children[1]
    assert box.value is None, "nothing is chosen for the reader"
    assert predict.answer("share", "a tenth", "So it is.").data.count(" hidden>") == 2, (
        "the question, and what was found"
    )
    box.value = "a half"
    assert ">a half</strong>" in (foot := predict.answer("share", "a tenth", "So it is.").data)
    assert " hidden>" not in foot
    assert asked.live().children[1].value == "a half", (
        "run again, the question shows what was guessed"
    )


def test_without_options_a_number_is_asked_for():
    box = predict.ask("n", "How many?", unit="ones").live().children[1]
    assert isinstance(box, ipywidgets.Text)
    box.value = "300"
    assert ">300 ones</strong>" in predict.answer("n", "188 ones", "So it is.").data


def test_a_built_page_has_native_inputs_and_no_widget(monkeypatch):
    asked = predict.ask("share", "Is 1 < 2?", ['a "half"', "a tenth"])
    assert _VIEW in asked._repr_mimebundle_()
    monkeypatch.setenv("HELPERS_STILL", "1")
    page = asked._repr_mimebundle_()["text/html"]
    assert page.count('type="radio"') == 2
    assert "<legend>Is 1 &lt; 2?</legend>" in page
    assert 'value="a &quot;half&quot;"' in page
    assert " id=" not in page
    assert "<script>" in predict.answer("share", "a tenth", "So it is.").data


def test_what_cannot_be_asked_or_answered_is_said():
    with pytest.raises(ValueError, match="key and question must not be empty"):
        predict.ask("", "Which?")
    with pytest.raises(ValueError, match="options must be empty, or hold at least two"):
        predict.ask("k", "Which?", ["one"])
    with pytest.raises(ValueError, match="key must be the key of a prediction above"):
        predict.answer("unasked", "1", "So it is.")
