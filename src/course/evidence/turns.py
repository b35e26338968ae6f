"""Record what a claim has survived: the experiment that would most likely refute it, run, with its
outcome.

A claim says in `would_change_if` what other evidence could turn its verdict. A turn is that
experiment, or the nearest to it that this course can run:

    @turn(
        "fast_pairs_serve_places", asked="other heads, so many that losing all their pairs costs as
        much", survives=("in each draw the fastest quarter costs them less than the place heads",
        lambda inside, others: …), turned=("it costs them as much", lambda inside, others: …),
        measured="place heads {inside:.2f} nats, others {low:.2f} to {high:.2f}",
    )
    def matched_in_loss() -> Numbers: …

`python -m course.runs turns` runs them and writes data/turns.csv, and the card of a claim shows the
outcome as a second sign. The conditions are written before the numbers are known, as those of a
rule are.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from course import worded
from course.evidence.rules import Condition, Numbers
from helpers import data

SURVIVED, TURNED, UNDECIDED, NOT_RUN = "survived", "turned", "undecided", "not run"
SIGNS = {SURVIVED: "●", TURNED: "↻", UNDECIDED: "◐", NOT_RUN: "–"}


class Turn(NamedTuple):
    """An experiment that might refute a claim, and when it does.

    Attributes:
        claim: the name of the claim.
        asked: the experiment, in words.
        survives: a sentence and a condition over the numbers: so the claim survives.
        turned: a sentence and a condition: so it does not. Where neither is so the experiment
            decides nothing.
        measured: what was found, an f-string over the numbers.
        function: what measures them.
    """

    claim: str
    asked: str
    survives: Condition
    turned: Condition
    measured: str
    function: Callable[[], Numbers]

    def outcome(self, numbers: Numbers) -> str:
        """Return "survived", "turned" or "undecided"."""
        for verdict, (_, condition) in ((TURNED, self.turned), (SURVIVED, self.survives)):
            if condition(
                **{name: numbers[name] for name in inspect.signature(condition).parameters}
            ):
                return verdict
        return UNDECIDED


class Outcome(NamedTuple):
    """How the experiment of a claim ended: one of the keys of `SIGNS`, what was asked, and what was
    measured.
    """

    outcome: str
    asked: str
    measured: str

    @property
    def sign(self) -> str:
        return SIGNS[self.outcome]


TURNS: dict[str, Turn] = {}  # by the name of the claim


def turn(claim: str, **parts: Any) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
    """Register the experiment that the function below measures as the turn of a claim.

    Raises:
        ValueError: the claim has a turn already.
    """

    def register(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
        if claim in TURNS:
            raise ValueError(f"{claim} must have one turn, and has two")
        TURNS[claim] = Turn(claim, function=function, **parts)
        return function

    return register


def row(claim: str) -> dict[str, str]:
    """Return one row of data/turns.csv: the outcome of a claim's turn and what was measured."""
    chosen = TURNS[claim]
    numbers = chosen.function()
    names = vars(sys.modules[chosen.function.__module__])
    return {
        "outcome": chosen.outcome(numbers),
        "measured": worded(chosen.measured, {**names, **numbers}),
    }


@functools.cache
def _table() -> dict[str, tuple[str, str]]:
    return {each.claim: (each.outcome, each.measured) for each in data.table("turns").itertuples()}


def of(claim: str) -> Outcome:
    """Return how the turn of a claim ended; "not run" where it has none.

    >>> of("no such claim").outcome
    'not run'
    """
    if claim not in TURNS or claim not in _table():
        return Outcome(NOT_RUN, "", "")
    return Outcome(_table()[claim][0], TURNS[claim].asked, _table()[claim][1])
