"""Ask for a guess at the top of a page, and show it at the end next to the answer.

On a built page the browser stores the guess, and in a notebook the kernel does. A guess is never
marked as right or wrong.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets
from IPython.display import HTML

from helpers import compute, words
from helpers.widget import bundle

SCRIPT = (Path(__file__).parent / "predict.js").read_text()
FIRST = "Guess first."
STAYS = "Your guess stays in your browser. At the end of the page it appears next to the answer."


class Asked(NamedTuple):
    """Hold a question with its options and its unit. Without options, it asks for a number."""

    question: str
    options: tuple[str, ...]
    unit: str


_asked: dict[str, Asked] = {}
_guesses: dict[str, str] = {}


class Question:
    """Show a question with inputs for a guess.

    A built page has native inputs, and a notebook with a kernel has ipywidgets (7.7 and 8).
    """

    def __init__(self, key: str, asked: Asked):
        self.key, self.asked = key, asked

    def page(self) -> str:
        """Write the question as HTML, with the script that keeps the guess.

        The HTML has no id, so two builds give equal pages.
        """
        question, options, unit = self.asked
        key, question = html.escape(self.key, quote=True), html.escape(words.translated(question))
        if options:
            rows = "".join(
                f'<label><input type="radio" name="prediction-{key}" '
                f'value="{html.escape(option, quote=True)}" '
                f'autocomplete="off"> {html.escape(words.translated(option))}</label>'
                for option in options
            )
            inner = f"<fieldset><legend>{question}</legend>{rows}</fieldset>"
        else:
            field = '<input type="number" step="any" autocomplete="off">'
            inner = f"<label>{question} {field} {html.escape(unit)}</label>"
        return (
            '<div class="prediction" '
            f'data-asks="{key}"><strong>{words.translated(FIRST)}</strong> {inner}'
            '<p class="prediction-kept" aria-live="polite" '
            f"hidden>{words.translated(STAYS)}</p></div><script>{SCRIPT}</script>"
        )

    def live(self) -> ipywidgets.VBox:
        """Build the question with ipywidgets. The kernel keeps the chosen value."""
        wide = ipywidgets.Layout(width="max-content", max_width="100%")
        guess = _guesses.get(self.key)
        if self.asked.options:
            box = ipywidgets.RadioButtons(options=self.asked.options, value=guess, layout=wide)
        else:
            box = ipywidgets.Text(
                value=guess or "", placeholder=self.asked.unit, continuous_update=False
            )
        box.observe(lambda change: _guesses.update({self.key: change["new"] or ""}), names="value")
        text = f"<strong>{FIRST}</strong> {html.escape(self.asked.question)}"
        return ipywidgets.VBox([ipywidgets.HTML(text), box])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self.page, self.live, self.asked.question)


def ask(key: str, question: str, options: Sequence[str] = (), unit: str = "") -> Question:
    """Ask the reader for a guess, and keep it under `key`.

    The guess is one of the options. Without options it is a number.

    Raises:
        ValueError: if the key or the question is empty, or there is only one option.

    >>> ask("coins", "How many of ten fair coins show heads?", unit="coins").asked.unit
    'coins'
    """
    if not key.strip() or not question.strip():
        raise ValueError(f"key and question must not be empty: {key!r}, {question!r}")
    if len(set(options)) != len(options) or len(options) == 1:
        raise ValueError(
            f"options must be empty, or hold at least two different options, not {list(options)!r}"
        )
    _asked[key] = Asked(question, tuple(options), unit)
    return Question(key, _asked[key])


def answer(key: str, found: str, because: str) -> HTML:
    """Show the guess that is kept under `key` next to the result, with a sentence that says why.

    If the reader has not guessed, the result appears without a guess.

    Raises:
        ValueError: if `ask` was not called with this key.

    >>> asked = ask("heads", "How many of ten fair coins show heads?")
    >>> "Found: <strong>5</strong>" in answer("heads", "5", "On average.").data
    True
    """
    if key not in _asked:
        raise ValueError(
            "key must be the key of a prediction above "
            f"({', '.join(_asked) or 'none yet'}), not {key!r}"
        )
    question, options, unit = _asked[key]
    unit = f" {words.translated(unit)}" if unit else ""
    guess_text = f"{_guesses[key]}{unit}" if _guesses.get(key) else ""
    option_words = html.escape(
        json.dumps({name: words.translated(name) for name in options}, ensure_ascii=False)
    )
    mine = f'class="prediction-mine"{"" if guess_text else " hidden"}'
    guess = f'<strong class="prediction-guess">{html.escape(guess_text)}</strong>'
    guessed = guess.join(words.translated("Guessed: @. ").split("@"))
    found = words.translated("Found: #. ").replace(
        "#", f"<strong>{html.escape(words.translated(found))}</strong>"
    )
    script = f"<script>{SCRIPT}</script>" if compute.building() else ""
    return HTML(
        f'<div class="prediction" data-answers="{html.escape(key, quote=True)}" '
        f'data-unit="{html.escape(unit, quote=True)}" data-says="{option_words}">'
        f"<p><strong {mine}>{words.translated('Your guess, again.')} "
        f"</strong>{html.escape(words.translated(question))}</p>"
        "<p><span "
        f"{mine}>{guessed}</span>{found}{html.escape(words.translated(because))}</p></div>{script}"
    )
