"""Define the sections of a report.

Each section is a row of `sections.toml` with one function that measures and one that explains.
`measure(subject, plan)` returns numbers that JSON can store. `tell(numbers, name)` needs only these
numbers, so a page can be drawn from a file. The sentences are in the table, and they claim no more
than was measured.
"""

import functools
import math
import string
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from course.report import findings, measuring
from course.report.measuring import Numbers
from course.report.subject import Plan, Subject
from helpers import style

LEVELS = FINE, NOTE, TROUBLE = ("fine", "note", "trouble")


class Told(NamedTuple):
    """Hold the explanation of a section's numbers, as a figure, sentences and headline numbers."""

    figure: Any  # a Matplotlib figure
    alt: str
    sentence: str
    headline: Mapping[str, float | None]  # the numbers that are compared with those of other models
    level: str  # one of `LEVELS`, which says whether a builder of models should look at this
    short: str  # the finding in one line


class Need(NamedTuple):
    """Hold what a model must have before a claim is measured on it.

    These needs come in addition to what the claim's section reads.
    """

    tokens: int = 0  # the number of tokens that the claim sends through the model
    longest: int = 256  # the number of tokens in its longest text
    committed: bool = False  # a table of the course has the claim's numbers for the embedded model
    exact: bool = False  # the claim measures distances smaller than the rounding errors of 16 bits
    copy: int = 0  # bytes per parameter of another copy, in 16 bits or with random weights
    layers: int = 1  # a model with fewer layers cannot decide
    sinks: bool = False  # the claim is about sinks, so a model without any cannot decide
    untrained: str = ""  # why an untrained model may decide, or "" if it may not
    null: str = ""  # why the rule may hold for a null control


class Section(NamedTuple):
    """Hold one section of the report with its two functions and its claims."""

    name: str
    chapter: int
    title: str
    shown: str  # page and heading of the chapter that shows this section
    measure: Callable[[Subject, Plan], Numbers]
    tell: Callable[[Numbers, str], Told]
    claims: Mapping[str, Need]
    maps: bool = False  # whether the section reads attention head by head


def plain(value: Any, digits: int = 6) -> Any:
    """Convert a value to one that JSON can store.

    Tensors become lists of rounded numbers, and NaN and infinity become None.

    >>> plain({"x": [1 / 3, math.nan]})
    {'x': [0.333333, None]}
    """
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(v, digits) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, digits) for v in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    value = float(value)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


class Words(string.Formatter):
    """Format the sentences of the table.

    A number is written as the course prints it, or with a given number of digits. A "−" before a
    format asks for a true minus sign.
    """

    def format_field(self, value: Any, spec: str) -> str:
        if spec.startswith("−"):
            return format(value, spec[1:]).replace("-", "−")
        if spec.isdigit() or (not spec and isinstance(value, float)):
            return style.number(value, int(spec or 2))
        return format(value, spec)

    def joined(self, parts: Sequence[str], values: Numbers) -> str:
        """Format the parts and join them, without those that contain a missing value.

        >>> Words().joined(["{a:.0%} of {b}", ", {c} more"], {"a": 0.25, "b": 1.5, "c": None})
        '25% of 1.5'
        """
        names = [[name for _, name, *_ in self.parse(part) if name] for part in parts]
        present = [
            part
            for part, named in zip(parts, names, strict=True)
            if all(values[name] is not None for name in named)
        ]
        return "".join(self.vformat(part, (), values) for part in present)


def _measured(name: str, digits: int, subject: Subject, plan: Plan) -> Numbers:
    return plain(getattr(measuring, name)(subject, plan), digits)


def _told(row: Mapping[str, Any], name: str, numbers: Numbers, model: str) -> Told:
    figure, alt, case, values = getattr(findings, name)(numbers, model)
    row = row["trained"] if "trained" in row and "trained_on" in numbers else row
    words, headline = Words(), {}
    for label, of in row["headline"].items():
        value = values[of]
        if value is not None and not math.isfinite(value):
            value = None
        if value is not None and "(%)" in label:
            value = float(f"{100 * value:.3g}")
        headline[words.vformat(label, (), values)] = value
    sentence, short = (
        words.joined(row["sentence"], values),
        words.vformat(row["short"][case], (), values),
    )
    return Told(figure, alt, sentence, headline, case.partition(",")[0], short)


def _section(name: str, row: Mapping[str, Any]) -> Section:
    claims = {claim: Need(**needs) for claim, needs in row.get("claims", {}).items()}
    measure = functools.partial(_measured, name, row.get("digits", 6))
    tell = functools.partial(_told, row, name)
    return Section(
        name,
        row["chapter"],
        row["title"],
        row["shown"],
        measure,
        tell,
        claims,
        row.get("maps", False),
    )


_TABLE = tomllib.loads((Path(__file__).parent / "sections.toml").read_text())
SECTIONS = {name: _section(name, row) for name, row in _TABLE.items()}
