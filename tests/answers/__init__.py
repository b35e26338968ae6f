"""For each exercise, right answers of other forms; and wrong ones, with the words of the check that no table of mistakes has.

A mistake of a table is tried by tests/test_exercises.py, and so is what every comparison says (a shape, an error, a loop).

An answer is a line of chapterN.toml, what a learner could write between the brackets of the check, without the prediction;
a wrong one is `arguments :: words`, as in the tables of mistakes. They are evaluated among the names of the chapter's
checks, of chapterN.py, where an answer that is no expression stands, and of this module.
"""

import functools
import itertools
import math
import re
import tomllib
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from course.exercises import Case, cases

__all__ = ["Fraction", "functional", "functools", "itertools", "math", "nn", "np", "re", "torch"]


class Answers(NamedTuple):
    right: list[Case]
    wrong: list[tuple[Case, str]]


def empty(*_: Any) -> None:
    raise NotImplementedError


def read(table: Path, *modules: ModuleType) -> dict[str, Answers]:
    """The answers to the exercises of a chapter, by number."""
    names = dict(globals())
    for module in modules:
        names |= vars(module)
    found = {}
    for number, rows in tomllib.loads(table.read_text()).items():
        right = cases(names, *rows["right"].splitlines())
        wrong = [row.rpartition(" :: ") for row in rows.get("wrong", "").splitlines()]
        found[number] = Answers(right, [(*cases(names, text), words) for text, _, words in wrong])
    return found
