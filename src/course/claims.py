"""Claims of the sources, each a function that measures it here; and the one rule that turns evidence into a verdict.

Nothing here knows a chapter: `course.chapter1.claims` and its like register theirs, `course.scorecard` gathers them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from course.sources import COURSE, Source

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "does not hold here"
OPEN = "not run far enough"
LITTLE = "too little evidence"
UNFIT = "this set-up cannot decide"
UNABLE = "this model cannot decide"
VERDICTS = (HOLDS, CORRECTED, FAILS, OPEN, LITTLE, UNFIT, UNABLE)


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
    """What a source says, where it says it, where the book shows it, and the function that measures it."""

    name: str
    source: Source
    where: str  # the place in the source: "Theorem B.3"
    statement: str  # as the source makes it; one statement, one claim
    reported: str  # what the source gives for it; "" where it gives nothing
    shown: str  # "3-representational-collapse/lesson#The theorem": page and heading
    measure: Callable[..., Found]
    theorem: bool = False  # a theorem or a definition: a run can check it with numbers, not refute it
    varied: str = ""  # what was varied, and what was not: "lengths and five seeds; not the width"

    @property
    def chapter(self) -> int:
        return int(self.shown.split("-")[0])

    @property
    def own(self) -> bool:
        """Whether the claim is a finding of this course, counted apart from those of the sources."""
        return self.source is COURSE


CLAIMS: dict[str, Claim] = {}
EMBEDDED = "SmolLM2-135M"  # how claims call the embedded model


def called(model: Any = None) -> str:
    """How a claim calls the model that it was measured on; None is the embedded one."""
    return EMBEDDED if model is None or model.short.startswith(EMBEDDED) else model.short


def claim(
    *,
    statement: str,
    shown: str,
    source: Source = COURSE,
    reported: str = "",
    where: str = "",
    theorem: bool = False,
    varied: str = "",
) -> Callable:
    """Register the decorated function, which returns a `Found`, under its own name; see `Claim` for the arguments.

    Without a source it is a finding of this course.

    Raises:
        ValueError: another claim has this name, or `shown` names no page and heading.
    """
    if not shown[:1].isdigit() or not shown.partition("#")[2]:
        raise ValueError(f"shown must be '<chapter>/<page>#<heading>', not {shown!r}")

    def register(measure: Callable[[], Found]) -> Callable[[], Found]:
        name = measure.__name__
        if name in CLAIMS and CLAIMS[name].measure.__module__ != measure.__module__:
            raise ValueError(f"measure must have a name of its own; {name!r} is a claim of another chapter")
        CLAIMS[name] = Claim(name, source, where, statement, reported, shown, measure, theorem, varied)
        return measure

    return register


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


def quoted(said: str, numbers: Mapping[str, tuple[float | None, None]] | None = None) -> Found:
    """A row that repeats what a source reports, where nothing was run here that bears on it.

    Raises:
        ValueError: a number was measured here; then it is to be compared with what the source reports.

    >>> quoted("not trained at 3B here").verdict
    'too little evidence'
    """
    measured = {name for name, (_, here) in (numbers or {}).items() if here is not None}
    if measured:
        raise ValueError(f"numbers must be the source's alone, but {sorted(measured)} were measured here")
    return Found(said, verdict(False, run=bool(measured)), numbers or {})


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
