"""Run the experiment that would most likely refute a claim, and record how it ended.

A claim says in `would_change_if` which other evidence could change its verdict. The *turn* of a
claim is the experiment that would give this evidence, or the experiment nearest to it that this
course can run:

    @turn(
        "fast_pairs_serve_places", asked="other heads, so many that losing all their pairs costs as
        much", survives=("in each draw the fastest quarter costs them less than the place heads",
        lambda inside, others: …), turned=("it costs them as much", lambda inside, others: …),
        measured="place heads {inside:.2f} nats, others {low:.2f} to {high:.2f}",
    )
    def matched_in_loss() -> Numbers: …

`python -m course.runs turns` runs the experiments and writes data/turns.csv. The card of a claim
shows the outcome as a second sign. As for a rule, we write the conditions of a turn before we know
the numbers.
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
    """Describe an experiment that might refute a claim, which we call the claim's turn.

    Attributes:
        claim: the name of the claim.
        asked: the experiment in words.
        survives: a sentence and a predicate on the numbers. If the predicate is true, the claim
            survives.
        turned: a sentence and a predicate on the numbers. If the predicate is true, the claim does
            not survive. If neither predicate is true, the experiment decides nothing.
        measured: the result in words, as an f-string that may use the numbers.
        function: the function that measures the numbers.
    """

    claim: str
    asked: str
    survives: Condition
    turned: Condition
    measured: str
    function: Callable[[], Numbers]

    def outcome(self, numbers: Numbers) -> str:
        """Return the outcome for measured numbers, "survived", "turned" or "undecided"."""
        for verdict, (_, condition) in ((TURNED, self.turned), (SURVIVED, self.survives)):
            if condition(
                **{name: numbers[name] for name in inspect.signature(condition).parameters}
            ):
                return verdict
        return UNDECIDED


class Outcome(NamedTuple):
    """Hold the outcome of the experiment that might refute a claim.

    Attributes:
        outcome: how the experiment ended, one of the keys of `SIGNS`.
        asked: the experiment in words.
        measured: the result in words.
    """

    outcome: str
    asked: str
    measured: str

    @property
    def sign(self) -> str:
        return SIGNS[self.outcome]


TURNS: dict[str, Turn] = {}  # the experiments, keyed by the name of the claim


def turn(claim: str, **parts: Any) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
    """Register the decorated function as the experiment that might refute a claim.

    Args:
        claim: the name of the claim.
        **parts: the other fields of `Turn`, except `function`.

    Raises:
        ValueError: if the claim already has such an experiment.
    """

    def register(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
        if claim in TURNS:
            raise ValueError(f"{claim} must have one turn, but it has two")
        TURNS[claim] = Turn(claim, function=function, **parts)
        return function

    return register


def row(claim: str) -> dict[str, str]:
    """Run the experiment that might refute a claim, and return its row of data/turns.csv.

    The row has the outcome of the experiment and its result in words.
    """
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
    """Return the recorded outcome of the experiment that might refute a claim (its turn).

    If the claim has no such experiment, or if it was not run, the outcome is "not run".

    >>> of("no such claim").outcome
    'not run'
    """
    if claim not in TURNS or claim not in _table():
        return Outcome(NOT_RUN, "", "")
    return Outcome(_table()[claim][0], TURNS[claim].asked, _table()[claim][1])
