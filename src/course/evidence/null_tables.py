"""Apply a rule again after shuffling the labels of its committed table among the runs.

The field `dealt` of the rule names the label. This module is separate from `null_controls` because
it may read any table, so a page that imports it is built again whenever a table changes.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pandas as pd

from course.evidence.rules import Numbers, Rule
from helpers import data

DEALT = "labels dealt out anew among the runs"
DEALS = 5


def of_tables(rule: Rule, function: Callable[[], Numbers]) -> dict[str, str]:
    """Return the most frequent verdict on a claim after shuffling the labels of its table.

    Returns:
        A dictionary with one entry, from the name of this control to the verdict. It is empty if
            the rule's `dealt` names no labels, or if no shuffle leaves a case that the rule can
            decide.
    """
    if not rule.dealt:
        return {}
    verdicts_ = []
    for seed in range(DEALS):
        with dealt(rule.dealt, seed, function):
            try:
                verdicts_.append(rule.decide(function()).verdict)
            except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
                continue
    return {DEALT: Counter(verdicts_).most_common(1)[0][0]} if verdicts_ else {}


@contextmanager
def dealt(
    tables: Mapping[str, Sequence[str]], seed: int, function: Callable | None = None
) -> Iterator[None]:
    """Make `data.table` return some tables with one column shuffled, while the block runs.

    The column is shuffled within groups of rows.

    Args:
        tables: for each table, the column to shuffle, followed by the columns whose values make the
            groups.
        seed: the seed of the shuffle.
        function: the function that reads the tables. While the block runs, the caches of this
            function's module and of the chapter's measures are not used.

    >>> with dealt({"clamped_smollm2": ("change", "text")}, 0):
    ...     mixed = data.table("clamped_smollm2")
    >>> plain = data.table("clamped_smollm2")
    >>> mixed.sink.equals(plain.sink), mixed.change.equals(plain.change)
    (True, False)
    """
    real = data.table

    def table(name: str) -> pd.DataFrame:
        frame = real(name)
        if name not in tables:
            return frame
        column, *within = tables[name]
        draw = np.random.default_rng(seed)
        groups = frame.groupby(within, dropna=False)[column] if within else None
        mixed = (
            groups.transform(lambda part: draw.permutation(part.to_numpy()))
            if within
            else draw.permutation(frame[column].to_numpy())
        )
        return frame.assign(**{column: mixed})

    with mock.patch.object(data, "table", table), _without_memory(function):
        yield


@contextmanager
def _without_memory(function: Callable | None) -> Iterator[None]:
    """Bypass the caches of a function's module and of its chapter's measures for a `with` block."""
    home = getattr(inspect.unwrap(getattr(function, "func", function)), "__module__", None)
    names = {home, f"{home.rpartition('.')[0]}.measures"} if home else set()
    caches = []
    for module in filter(None, map(sys.modules.get, names)):
        for name, value in vars(module).items():
            if hasattr(value, "cache_clear"):
                caches.append((module, name, value))
    for module, name, value in caches:
        setattr(module, name, value.__wrapped__)
    try:
        yield
    finally:
        for module, name, value in caches:
            setattr(module, name, value)
