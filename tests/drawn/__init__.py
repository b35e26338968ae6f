"""What the figures and tables of the pages show, written down: `chapterN.txt` holds the lines of each call in `chapterN.py`.

A change of a figure changes lines of the text, so that whoever reads the change sees it. `tests/test_drawn.py` compares.
"""

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from helpers.widget import _drawn as drawn

HERE = Path(__file__).parent


def lines(result: object) -> list[str]:
    """What a call gave, in lines of text: a figure with its finding, a table, a sentence, numbers."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Axes | Figure):
        return [
            *drawn.lines(result[0] if isinstance(result[0], Figure) else result[0].figure),
            f"finding: {result[1]}",
        ]
    if isinstance(result, Styler):
        return result.to_string(delimiter=" | ").strip().splitlines()
    if isinstance(result, pd.DataFrame | pd.Series):
        table = result.to_frame() if isinstance(result, pd.Series) else result
        table = table if isinstance(table.index, pd.RangeIndex) else table.reset_index()
        return [
            " | ".join(map(str, table)),
            *(" | ".join(map(_word, row)) for row in table.itertuples(index=False)),
        ]
    if isinstance(result, torch.Tensor | np.ndarray | float | int):
        return [drawn._numbers(result)]
    if isinstance(result, Mapping):
        return [f"{name}: {line}" for name, value in result.items() for line in lines(value)]
    if isinstance(result, str):
        return result.splitlines()
    if isinstance(result, Iterable):
        return [line for value in result for line in lines(value)]
    return [str(result)]


def same(first: str, second: str, part: float = 0.01) -> bool:
    """Whether two lines say the same: equal words, and numbers equal to one in a hundred or to the last digit printed.

    Whole numbers without a per cent sign must be equal up to a hundred. `part` is larger for what a page trains or rounds.
    """
    words, numbers = zip(*(_parts(line) for line in (first, second)), strict=True)
    # a figure, whose labels stand by height: a processor may swap two of them
    figure = first.startswith("[") and sorted(words[0]) == sorted(words[1])
    if not (words[0] == words[1] or figure) or len(numbers[0]) != len(numbers[1]):
        return False
    around = part / 5 * max((abs(a) for a, _ in numbers[0]), default=0) if part > 0.01 else 0
    return all(
        abs(a - b) <= max(part * abs(a), around, unit_a, unit_b, drawn._ROUNDING)
        for (a, unit_a), (b, unit_b) in zip(*numbers, strict=True)
    )


POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|e[-+]?\d+)?%?")


def _parts(line: str) -> tuple[str, list[tuple[float, float]]]:
    """The words of a line, and its numbers with the size of their last digit."""
    found = []
    for text in NUMBER.findall(line):
        plain = (
            text.rstrip("%").rstrip(",").replace(",", "").translate(POWERS).replace(" × 10", "e")
        )
        mantissa, _, power = plain.partition("e")
        digits = len(mantissa.partition(".")[2])
        loose = digits or text.endswith("%") or power
        found.append((float(plain), 1.01 * 10.0 ** (int(power or 0) - digits) if loose else 0.0))
    return NUMBER.sub("#", line), found


def _word(value: object) -> str:
    return drawn._numbers(value) if isinstance(value, float) else str(value)


def blocks(name: str) -> dict[str, list[str]]:
    """What is written down in a file of this folder, or of one beside it, by call or cell."""
    file = HERE / f"{name}.txt"
    found: dict[str, list[str]] = {}
    for line in file.read_text().splitlines() if file.is_file() else ():
        if line.startswith("# "):
            found[line[2:]] = here = []
        elif line:
            here.append(line)
    return found


def write(file: str, shown: dict[str, list[str]]) -> None:
    """Write down what is shown; where nothing changed but the last digits, the old lines stay."""
    old = {
        name: found
        for name, found in blocks(file).items()
        if len(found) == len(shown.get(name, ()))
    }
    kept = {name: found for name, found in old.items() if all(map(same, found, shown[name]))}
    text = "\n\n".join("\n".join([f"# {name}", *found]) for name, found in (shown | kept).items())
    (HERE / f"{file}.txt").write_text(text + "\n")


def _settled(lines: list[str]) -> list[str]:
    """Sort the labels of each figure, which stand by height: a processor may swap two of them."""
    runs = itertools.groupby(lines, key=lambda line: line.startswith("  text "))
    return [line for label, run in runs for line in (sorted(run) if label else run)]


def compare(shown: list[str], written: list[str], part: float = 0.01) -> None:
    here = "if it is meant, `python -m pytest tests/test_drawn.py tests/test_said.py --redraw` writes it down"
    changed = [
        f"- {old}\n+ {new}"
        for old, new in zip(_settled(written), _settled(shown), strict=False)
        if not same(old, new, part)
    ]
    assert not changed, "\n".join([here, *changed])
    assert len(shown) == len(written), f"{here}: {len(written)} lines, now {len(shown)}"
