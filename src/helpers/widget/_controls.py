"""Describe one control of a widget with its values and their names."""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from helpers.words import translated


class Control(NamedTuple):
    """Describe one control by its values, their names, and the index of the initial value."""

    kind: str  # "range", "choice" or "switch"
    label: str
    names: list[str]
    values: list[Any]
    start: int


def control(
    name: str, values: Iterable, labels: Mapping[str, str], start: Mapping[str, Any]
) -> Control:
    """Make a control of the kind that fits its values.

    Numbers give a slider, `[False, True]` gives a switch, and strings or a mapping from label to
    value give a choice.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of values, not {values!r}")
    names, values = (
        (list(values), list(values.values()))
        if isinstance(values, Mapping)
        else (None, list(values))
    )
    if not values:
        raise ValueError(f"{name} must have at least one value")
    kind = "choice"
    if all(isinstance(value, bool) for value in values):
        if values != [False, True]:
            raise ValueError(f"{name} must be [False, True] for an on/off switch, not {values}")
        kind, names = "switch", ["off", "on"]
    elif names is None and all(isinstance(value, numbers.Real) for value in values):
        kind, names = "range", [_number(value) for value in values]
    initial = start.get(name, values[0])
    if initial not in values:
        raise ValueError(f"start for {name} must be one of {values}, not {initial!r}")
    names = [translated(str(text)) for text in names or values]
    label = translated(labels.get(name, name))
    return Control(kind, label, names, values, values.index(initial))


def _number(value: numbers.Real) -> str:
    return f"{value:,}" if isinstance(value, numbers.Integral) else f"{float(value):.4g}"
