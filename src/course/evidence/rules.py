"""The rule of a claim, written once: from its conditions come the verdict, the rule that a reader
reads, and the correction.

A condition is a sentence and a predicate. The sentence is an f-string over named thresholds, so
that it cannot name another one than the predicate asks; the predicate takes, by name, what the
claim's function returns. A threshold is a `Threshold`, a number that remembers what was compared
with it: so the card draws how near the evidence came.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from course.evidence import significance

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "does not hold here"
OPEN = "not run far enough"
LITTLE = "too little evidence"
UNFIT = "this set-up cannot decide"
UNABLE = "this model cannot decide"
VERDICTS = (HOLDS, CORRECTED, FAILS, OPEN, LITTLE, UNFIT, UNABLE)
AGREE, OTHERWISE = "cases that agree", "cases the other way"  # what is compared of a rule by case
LEAST_CASES = 2  # of a rule by case
ASKED_FIRST = {
    "enough": LITTLE,
    "fit": UNFIT,
    "able": UNABLE,
    "decided": OPEN,
}  # weakest evidence first

Numbers = Mapping[
    str, Any
]  # what a claim's function gives: what its rule asks and its row tells, under their names
Condition = tuple[str, Callable[..., Any]]

_compared: ContextVar[list | None] = ContextVar("compared", default=None)


class Threshold(float):
    """A threshold: a number that remembers, while a rule is asked, what was compared with it.

    Marks that are multiplied or shifted by measured numbers stay marks: `x > HALF * y` compares x /
    y with HALF.

    >>> HALF = Threshold(0.5)
    >>> with compared() as seen:
    ...     _ = 0.3 > HALF, 4.0 < HALF * 10
    >>> [(each.asked, each.mark, each.values) for each in seen]
    [('above', 0.5, [0.3]), ('below', 0.5, [0.4])]
    """

    __array_ufunc__ = None  # an array leaves the comparison to the mark

    def __new__(cls, value: float, scale: float = 1.0, shift: float = 0.0):
        self = super().__new__(cls, scale * value + shift)
        self.of, self.scale, self.shift = float(value), float(scale), float(shift)
        return self

    def __mul__(self, other: Any) -> Any:
        return (
            Threshold(self.of, self.scale * other, self.shift * other)
            if np.isscalar(other)
            else NotImplemented
        )

    def __add__(self, other: Any) -> Any:
        return (
            Threshold(self.of, self.scale, self.shift + other)
            if np.isscalar(other)
            else NotImplemented
        )

    __rmul__, __radd__ = __mul__, __add__

    def __neg__(self) -> "Threshold":
        return Threshold(-self.of, self.scale, -self.shift)

    def __sub__(self, other: float) -> "Threshold":
        return self + -other

    def __rsub__(self, other: float) -> "Threshold":
        return -self + other

    def _compare(self, other: Any, name: str, asked: str) -> Any:
        comparisons = _compared.get()
        if comparisons is not None and self.scale:
            values = np.asarray(other, dtype=float).reshape(-1)
            asked = asked if self.scale > 0 else {"above": "below", "below": "above"}[asked]
            comparisons.append(
                Compared("", asked, self.of, ((values - self.shift) / self.scale).tolist())
            )
        plain = float(self)
        if isinstance(other, float | int):
            return getattr(float, name)(plain, float(other))
        return getattr(np.asarray(plain), name)(np.asarray(other))

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__", "above")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__", "above")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__", "below")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__", "below")

    __hash__, __eq__ = float.__hash__, float.__eq__


class Compared(NamedTuple):
    """Hold what was compared with one threshold: `condition` names the condition of the rule,
    `asked` the side that agrees.
    """

    condition: str
    asked: str
    mark: float
    values: list[float]


@contextmanager
def compared() -> Iterator[list[Compared]]:
    """Collect what is compared with marks inside."""
    comparisons: list[Compared] = []
    token = _compared.set(comparisons)
    try:
        yield comparisons
    finally:
        _compared.reset(token)


class Decision(NamedTuple):
    """Hold what a rule says of some numbers: the verdict, the words for it, and what was compared
    with which threshold.
    """

    verdict: str
    words: str  # the correction, or what is missing for a verdict; "" for a claim that holds
    compared: list[Compared]


class Rule(NamedTuple):
    """When a claim holds. Each condition is a sentence and a predicate over the numbers, and two
    forms there are.

    `holds`, and in part `part`: one predicate each. Or `each`: a predicate that gives an answer by
    case (graph, text, depth); it holds where all agree, and with a correction where more do than a
    coin would give and none goes the other way, which `against` says by case; without it every case
    that does not agree goes the other way. Undecided cases with none the other way are too little
    evidence. Before either is asked, `enough`, `fit`, `able` and `decided` say what the evidence
    must be like; the first that is not so decides.

    `nothing` is a null: what nothing is, in words, and its numbers (those that differ from the
    measured ones, or a function of them). `null` says why there is none, or why a null may hold.
    `least` cases are needed for a verdict by case; 1 is for rules whose cases are tests over seeds.

    `dealt` is a null of committed tables: by table the column whose labels are dealt out anew among
    the runs, and after it the columns that make the groups inside which this is done.
    """

    function: Callable[..., Numbers]
    holds: Condition | None = None
    part: Condition | None = None
    each: Condition | None = None
    against: Condition | None = None
    enough: Condition | None = None
    fit: Condition | None = None
    able: Condition | None = None
    decided: Condition | None = None
    nothing: tuple[str, Mapping[str, Any] | Callable[..., Mapping[str, Any]]] | None = None
    null: str = ""
    least: int = LEAST_CASES
    dealt: Mapping[str, tuple[str, ...]] = {}

    @property
    def conditions(self) -> dict[str, Condition]:
        names = ("holds", "part", "each", "against", *ASKED_FIRST)
        return {name: condition for name in names if (condition := getattr(self, name)) is not None}

    @property
    def text(self) -> str:
        """Return the rule as a reader reads it."""
        sentences = {name: sentence for name, (sentence, _) in self.conditions.items()}
        parts = (
            [f"holds if {sentences['holds']}"]
            if self.holds
            else [f"holds if in every case {sentences['each']}"]
        )
        if self.part:
            parts.append(f"in part, if {sentences['part']}")
        if self.against:
            parts.append(
                f"with a correction, if in more cases than a coin gives and in none this: "
                f"{sentences['against']}"
            )
        words = {
            "enough": "too little evidence",
            "fit": "cannot decide",
            "able": "this model cannot decide",
            "decided": "open",
        }
        parts += [
            f"{words[name]} unless {sentences[name]}" for name in ASKED_FIRST if name in sentences
        ]
        return "; ".join(parts)

    def ask(self, condition: str, numbers: Numbers) -> Any:
        """Return what a condition's predicate says of the numbers that it names."""
        predicate = self.conditions[condition][1]
        missing = set(inspect.signature(predicate).parameters) - set(numbers)
        if missing:
            raise ValueError(
                f"numbers must hold {sorted(missing)}, which {condition} asks; they are "
                f"{sorted(numbers)}"
            )
        return predicate(
            **{name: numbers[name] for name in inspect.signature(predicate).parameters}
        )

    def decide(self, numbers: Numbers) -> Decision:
        """Return the verdict that follows from these numbers, weakest evidence first."""
        comparisons: list[Compared] = []

        def ask(condition: str) -> Any:
            with compared() as here:
                answer = self.ask(condition, numbers)
                answer = (
                    bool(answer)
                    if condition not in ("each", "against")
                    else [bool(one) for one in answer]
                )
            comparisons.extend(one._replace(condition=condition) for one in here)
            return answer

        cells = ask("each") if self.each else []
        for condition, verdict in ASKED_FIRST.items():
            if condition in self.conditions and not ask(condition):
                return Decision(
                    verdict, f"not so: {self.conditions[condition][0]}", joined(comparisons)
                )
        if self.each:
            against = ask("against") if self.against else [not one for one in cells]
            verdict, words = (
                weigh(cells, against, self.least),
                f"in {sum(cells)} of {len(cells)} cases {self.each[0]}",
            )
            words = "no case was measured" if not cells else "" if verdict == HOLDS else words
            words += f"; the other way in {sum(against)}" if sum(against) else ""
            comparisons += (
                Compared(AGREE, "above", stats.binom.isf(0.05, len(cells), 0.5), [sum(cells)]),
                Compared(OTHERWISE, "below", 1, [sum(against)]),
            )
            return Decision(verdict, words, joined(comparisons))
        if ask("holds"):
            return Decision(HOLDS, "", joined(comparisons))
        if self.part and ask("part"):
            return Decision(CORRECTED, f"only this: {self.part[0]}", joined(comparisons))
        return Decision(FAILS, f"not so: {(self.part or self.holds)[0]}", joined(comparisons))


def joined(seen: Iterable[Compared]) -> list[Compared]:
    """Join comparisons with one threshold in one half, their values without those that are no
    number.
    """
    found: dict[tuple, list[float]] = {}
    for one in seen:
        found.setdefault(one[:3], []).extend(x for x in one.values if math.isfinite(x))
    return [Compared(*key, values) for key, values in found.items() if values]


def weigh(agree: Iterable[bool], against: Iterable[bool], least: int = LEAST_CASES) -> str:
    """Return the verdict on a claim that is measured in several cases (graphs, depths, encodings,
    texts).

    Fewer cases than `least` are too little evidence, whichever way they go. Of several, one that
    goes the other way makes the claim fail. It holds where every case agrees. Where some are
    undecided and none goes the other way, it holds with a correction if more cases agree than a
    coin would give (`more_than_a_coin`), and else the evidence is too little: undecided cases are
    no evidence against a claim.

    Args:
        agree: by case, whether it agrees with the claim.
        against: by case, whether it goes the other way, beyond its error.
        least: cases without which the evidence is too little.

    Raises:
        ValueError: a case both agrees and goes the other way, or the two do not have the same
            cases.

    >>> weigh([True] * 7 + [False], [False] * 8), weigh([True, False], [False, True])
    ('holds with a correction', 'does not hold here')
    >>> weigh([True, False], [False, False])
    'too little evidence'
    >>> weigh([True], [False]), weigh([False], [True])
    ('too little evidence', 'too little evidence')
    """
    cells = [(bool(a), bool(b)) for a, b in zip(agree, against, strict=True)]
    if (True, True) in cells:
        raise ValueError("against must not hold for a case that agrees")
    if len(cells) < least:
        return LITTLE
    if any(b for _, b in cells):
        return FAILS
    agreeing = sum(a for a, _ in cells)
    if agreeing == len(cells):
        return HOLDS
    return CORRECTED if more_than_a_coin(agreeing, len(cells)) else LITTLE


def more_than_a_coin(agreeing: int, cases: int, level: float = 0.05) -> bool:
    """Return whether a fair coin would give so many cases that agree, or more, with a chance below
    `level`.

    >>> more_than_a_coin(4, 7), more_than_a_coin(7, 8)
    (False, True)
    """
    return bool(stats.binom.sf(agreeing - 1, cases, 0.5) < level)


def beyond(errors: Iterable[float], freedom: float = math.inf, level: float = 0.05) -> list[bool]:
    """Return, for each case, whether its value is above 0 beyond its error when all cases are
    tested together.

    The chance that one case or more is called so although nothing is there stays below `level`,
    however many cases there are: tail areas of one side, corrected with Holm's method (1979).

    Args:
        errors: by case, how many standard errors the value lies above 0; -values ask for the other
            side.
        freedom: degrees of freedom of the standard errors; 3 where each is of four seeds.

    >>> beyond([2.0]), beyond([2.0], freedom=3), beyond([2.0] + [0.0] * 62)[0]
    ([True], [False], False)
    """
    values = [float(x) for x in errors]
    return [p < level for p in significance.holm([float(stats.t.sf(x, freedom)) for x in values])]


RULES: dict[str, Rule] = {}  # by the name of the claim


def rule(
    *names: str, **conditions: Any
) -> Callable[[Callable[..., Numbers]], Callable[..., Numbers]]:
    """Say when claims hold that the function below measures: its conditions, `nothing` and `null`,
    as `Rule` names them.

    Args:
        names: of the claims; without one, the function's own name. One function may measure several
            claims, each with a rule of its own: `@rule`s stand above each other.

    Raises:
        ValueError: a name has a rule already, or the conditions are of both forms or of neither.
    """

    def register(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
        new = Rule(function, **conditions)
        if (new.holds is None) == (new.each is None) or (new.part and new.each):
            raise ValueError(
                f"the rule of {names or function.__name__} must have holds, and perhaps part, or "
                f"each"
            )
        for name in names or (function.__name__,):
            if name in RULES:
                raise ValueError(f"{name} must have one rule, and has two")
            RULES[name] = new
        return function

    return register
