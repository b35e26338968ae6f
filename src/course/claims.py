"""Claims of the sources, each a function that measures it here; and the one rule that turns evidence into a verdict.

Nothing here knows a chapter: the functions stand in `course.chapter1.claims` and its like, what is said about them in a
table a chapter beside `course.scorecard`, which gathers them.
"""

import functools
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from course import sources, worded
from course.sources import COURSE, Source

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "does not hold here"
OPEN = "not run far enough"
LITTLE = "too little evidence"
UNFIT = "this set-up cannot decide"
UNABLE = "this model cannot decide"
VERDICTS = (HOLDS, CORRECTED, FAILS, OPEN, LITTLE, UNFIT, UNABLE)

Numbers = Mapping[
    str, Any
]  # what a claim's function gives: what its row of the table tells and decides by, under its names


class Found(NamedTuple):
    """What a claim's function found.

    Attributes:
        measured: one or two sentences or a list of numbers, with the size of the set-up.
        verdict: one of `VERDICTS`, from `verdict`.
        numbers: where the source gives numbers: what they are of, with the reported one (None where it gives
            none for this) and the measured one.
    """

    measured: str
    verdict: str
    numbers: Mapping[str, tuple[float | None, float | None]] = {}


class Claim(NamedTuple):
    """A row of the scorecard, or a part of one: what a source says, where, and the function that measures it."""

    name: str
    statement: str  # as the source makes it; one statement, one claim
    shown: str  # "3-representational-collapse/lesson#The theorem": page and heading
    rule: str = ""  # "holds if …", as a reader can check it against the numbers
    source: Source = COURSE
    where: str = ""  # the place in the source: "Theorem B.3"
    reported: str = ""  # what the source gives for it; "" where it gives nothing
    varied: str = ""  # what was varied, and what was not: "lengths and five seeds; not the width"
    correction: str = ""  # what the correction is, where a claim holds with one
    theorem: bool = False  # a theorem or a definition: a run can check it with numbers, not refute it
    measured: str = ""  # what was found, in words: an f-string over the function's numbers and the names of its module
    verdict: str = ""  # what follows from them: an expression over the same names, with `verdict`, `weigh` and `quoted`
    parts: tuple[str, ...] = ()  # the claims that are measured in one set-up; their verdicts make the row's
    module: str = ""  # where its function stands
    function: Callable[..., Numbers] | None = None  # what measures its numbers; None for a row of parts

    @property
    def chapter(self) -> int:
        return int(self.shown.split("-")[0])

    @property
    def own(self) -> bool:
        """Whether the claim is a finding of this course, counted apart from those of the sources."""
        return self.source is COURSE

    @property
    def asks_a_model(self) -> bool:
        """Whether it is about language models: then it can be measured on any."""
        return "model" in inspect.signature(self.function).parameters

    def decide(self, numbers: Numbers) -> str:
        """The verdict that follows from these numbers."""
        return eval(self.verdict, {**vars(sys.modules[self.module]), **RULES, **numbers})

    def measure(self, *model: Any) -> Found:
        """What the function finds, in a language model or the embedded one where the claim is about one."""
        numbers = self.function(*model)
        told = worded(self.measured, {**vars(sys.modules[self.module]), "model": called(*model), **numbers})
        return Found(told, self.decide(numbers), numbers.get("numbers", {}))


CLAIMS: dict[str, Claim] = {}  # rows and parts of rows, by name; `course.scorecard` fills it
EMBEDDED = "SmolLM2-135M"  # how claims call the embedded model


def called(model: Any = None) -> str:
    """How a claim calls the model that it was measured on; None is the embedded one."""
    return EMBEDDED if model is None or model.short.startswith(EMBEDDED) else model.short


def read(table: Path, module: ModuleType) -> dict[str, Claim]:
    """The claims of a chapter's table: `call` names another function than the claim's name, `given` are its arguments.

    Raises:
        ValueError: `shown` names no page and heading, a part is no claim of the table, or a row measures nothing.
    """
    found = {}
    for name, row in tomllib.loads(table.read_text()).items():
        row["source"] = getattr(sources, row.get("source", "COURSE"))
        row["parts"] = tuple(row.get("parts", ()))
        call, given = row.pop("call", name), row.pop("given", {})
        if not row["shown"][:1].isdigit() or not row["shown"].partition("#")[2]:
            raise ValueError(f"shown must be '<chapter>/<page>#<heading>', not {row['shown']!r}")
        if not row["parts"]:
            if not hasattr(module, call):
                raise ValueError(f"{name} must have a function in {module.__name__}, and there is no {call}")
            row["function"] = functools.partial(getattr(module, call), **given) if given else getattr(module, call)
        found[name] = Claim(name=name, module=module.__name__, **row)
    for each in found.values():
        if missing := set(each.parts) - set(found):
            raise ValueError(f"parts of {each.name} must be claims of {table.name}, not {sorted(missing)}")
    return found


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a row of parts: it holds if all do, and with a correction if most do, in whole or in part, and none fails.

    A part that fails makes the row fail. Where most parts are undecided and none fails, the row is undecided as they are.

    >>> together(["holds", "holds with a correction"]), together(["holds", "does not hold here"])
    ('holds with a correction', 'does not hold here')
    """
    given = list(verdicts)
    if FAILS in given or {*given} == {HOLDS}:
        return FAILS if FAILS in given else HOLDS
    undecided = [each for each in given if each not in (HOLDS, CORRECTED)]
    return CORRECTED if 2 * len(undecided) < len(given) else max(undecided, key=undecided.count)


def verdict(
    whole: bool, part: bool = False, *, run: bool = True, fit: bool = True, able: bool = True, decided: bool = True
) -> str:
    """The verdict that evidence allows, weakest evidence first.

    Args:
        whole: the measurement agrees with the claim as stated.
        part: it agrees under a condition that the page names, or with a weaker statement. Several cells are `weigh`ed.
        run: something was measured that bears on the claim, and enough of it to tell a difference from chance.
        fit: the set-up could have told, however far it is run; a control that must fail did fail.
        able: the model does the task at some length, so that it can tell something about the others.
        decided: the runs went far enough to decide; more steps or lengths of the same could.

    >>> verdict(whole=False, part=True)
    'holds with a correction'
    >>> verdict(whole=False, fit=False)
    'this set-up cannot decide'
    """
    reasons = {LITTLE: run, UNFIT: fit, UNABLE: able, OPEN: decided}
    missing = next((word for word, there in reasons.items() if not there), None)
    return missing or (HOLDS if whole else CORRECTED if part else FAILS)


def quoted(numbers: Mapping[str, tuple[float | None, None]] | None = None) -> str:
    """The verdict on a row that repeats what a source reports, where nothing was run here that bears on it.

    Raises:
        ValueError: a number was measured here; then it is to be compared with what the source reports.

    >>> quoted()
    'too little evidence'
    """
    measured = {name for name, (_, here) in (numbers or {}).items() if here is not None}
    if measured:
        raise ValueError(f"numbers must be the source's alone, but {sorted(measured)} were measured here")
    return verdict(False, run=bool(measured))


def weigh(agree: Iterable[bool], against: Iterable[bool], **rest: bool) -> str:
    """The verdict on a claim that is measured in several cells (graphs, depths, encodings, texts).

    It holds where every cell agrees, and with a correction where more than half of them do and none goes the other way.

    Args:
        agree: by cell, whether it agrees with the claim.
        against: by cell, whether it goes the other way, beyond its error.
        rest: what `verdict` asks besides; without any cell there is too little evidence.

    Raises:
        ValueError: a cell both agrees and goes the other way, or the two do not have the same cells.

    >>> weigh([True, True, False], [False, False, False]), weigh([True, True, False], [False, False, True])
    ('holds with a correction', 'does not hold here')
    """
    cells = [(bool(a), bool(b)) for a, b in zip(agree, against, strict=True)]
    if (True, True) in cells:
        raise ValueError("against must not hold for a cell that agrees")
    most = 2 * sum(a for a, _ in cells) > len(cells) and not any(b for _, b in cells)
    return verdict(all(a for a, _ in cells), most, **{"run": bool(cells)} | rest)


RULES = {"verdict": verdict, "weigh": weigh, "quoted": quoted}  # what the `verdict` of a table may call
