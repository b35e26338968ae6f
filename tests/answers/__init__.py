"""For each exercise, right answers of other forms; and wrong ones, with the words of the check that no table of mistakes has.

A mistake of a table is tried by tests/test_exercises.py, and so is what every comparison says (a shape, an error, a loop).

An answer to a check that takes several (a prediction and a function) is a `Several`.
"""

from typing import Any, NamedTuple


class Several(NamedTuple):
    answers: tuple


def several(*answers: Any) -> Several:
    return Several(answers)


def empty(*_: Any) -> None:
    raise NotImplementedError
