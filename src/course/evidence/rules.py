"""Turn the conditions of a claim into its verdict, its rule as text, and its correction.

A condition is a sentence and a predicate. The sentence is an f-string over named thresholds, so it
cannot name another threshold than the predicate uses. The predicate takes the results of the
claim's function by name. A `Threshold` is a number that remembers what was compared with it. So the
card can show how near the evidence came.
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
# names of the comparison if a rule has one verdict per case
AGREE, OTHERWISE = "cases that agree", "cases the other way"
LEAST_CASES = 2  # for a rule with one verdict per case
ASKED_FIRST = {
    "enough": LITTLE,
    "fit": UNFIT,
    "able": UNABLE,
    "decided": OPEN,
}  # weakest evidence first

Numbers = Mapping[str, Any]  # the results of a claim's function, by name, for its rule and its row
Condition = tuple[str, Callable[..., Any]]

_compared: ContextVar[list | None] = ContextVar("compared", default=None)


class Threshold(float):
    """Remember what was compared with a threshold while a rule is applied.

    A threshold that is multiplied or shifted by measured numbers stays a threshold. For example, `x
    > HALF * y` compares x / y with HALF.

    >>> HALF = Threshold(0.5)
    >>> with compared() as seen:
    ...     _ = 0.3 > HALF, 4.0 < HALF * 10
    >>> [(each.asked, each.mark, each.values) for each in seen]
    [('above', 0.5, [0.3]), ('below', 0.5, [0.4])]
    """

    __array_ufunc__ = None  # an array leaves the comparison to the threshold

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
    """Hold the values that were compared with one threshold.

    `condition` names the condition of the rule, and `asked` is the side of the threshold that
    agrees.
    """

    condition: str
    asked: str
    mark: float
    values: list[float]


@contextmanager
def compared() -> Iterator[list[Compared]]:
    """Collect all comparisons with thresholds while the block runs."""
    comparisons: list[Compared] = []
    token = _compared.set(comparisons)
    try:
        yield comparisons
    finally:
        _compared.reset(token)


class Decision(NamedTuple):
    """Hold the verdict of a rule on some numbers, its words, and the comparisons behind it."""

    verdict: str
    words: str  # the correction, or what is missing for a verdict, or "" for a claim that holds
    compared: list[Compared]


class Rule(NamedTuple):
    """Decide when a claim holds, from conditions that are a sentence and a predicate each.

    There are two forms. The first has `holds` and possibly `part`, with one predicate each. The
    second has `each`, whose predicate gives one answer per case (graph, text or depth). It holds if
    all cases agree. It holds with a correction if more cases agree than a coin would give and no
    case goes the other way. `against` says for each case whether it goes the other way, and without
    `against` every case that does not agree does. If too few cases agree and none goes the other
    way, there is too little evidence. Before either form, `enough`, `fit`, `able` and `decided` say
    what the evidence must be like, and the first of them that is not met decides.

    `nothing` is a null control, with a description and its numbers (those that differ from the
    measured ones, or a function of them). `null` says why there is none, or why a control may hold.
    `least` is the number of cases that a verdict by case needs. It is 1 for rules whose cases are
    tests over seeds. `dealt` is a control on committed tables. For each table it names the column
    whose labels are shuffled among the runs, followed by the columns that define the groups for the
    shuffle.
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
        """Return the rule as a sentence for readers."""
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
        """Apply a condition's predicate to the numbers that it names."""
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
        """Return the verdict that follows from these numbers.

        The conditions about weak evidence come first.
        """
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
    """Join the comparisons of a condition with one threshold, without infinite values or NaN."""
    found: dict[tuple, list[float]] = {}
    for one in seen:
        found.setdefault(one[:3], []).extend(x for x in one.values if math.isfinite(x))
    return [Compared(*key, values) for key, values in found.items() if values]


def weigh(agree: Iterable[bool], against: Iterable[bool], least: int = LEAST_CASES) -> str:
    """Combine the answers of several cases (graphs, depths, encodings, texts) into a verdict.

    With fewer than `least` cases, there is too little evidence whichever way they go. Otherwise one
    case that goes the other way makes the claim fail, and the claim holds if every case agrees.
    Undecided cases are no evidence against a claim. So if some cases are undecided and none goes
    the other way, the claim holds with a correction if more cases agree than a coin would give
    (`more_than_a_coin`). If fewer agree, there is too little evidence.

    Args:
        agree: for each case, whether it agrees with the claim.
        against: for each case, whether it goes the other way, beyond its error.
        least: the number of cases below which there is too little evidence.

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
    """Return whether a fair coin would rarely give so many agreeing cases or more.

    "Rarely" means with a probability below `level`.

    >>> more_than_a_coin(4, 7), more_than_a_coin(7, 8)
    (False, True)
    """
    return bool(stats.binom.sf(agreeing - 1, cases, 0.5) < level)


def beyond(errors: Iterable[float], freedom: float = math.inf, level: float = 0.05) -> list[bool]:
    """Return for each case whether its value is above 0 beyond its error.

    All cases are tested together. If there is no effect anywhere, the probability that one case or
    more is called significant stays below `level`, however many cases there are. The tests are
    one-sided and corrected by Holm's method (1979).

    Args:
        errors: for each case, by how many standard errors the value is above 0. Use -values to test
            the other side.
        freedom: degrees of freedom of the standard errors, for example 3 if each comes from four
            seeds.

    >>> beyond([2.0]), beyond([2.0], freedom=3), beyond([2.0] + [0.0] * 62)[0]
    ([True], [False], False)
    """
    values = [float(x) for x in errors]
    return [p < level for p in significance.holm([float(stats.t.sf(x, freedom)) for x in values])]


RULES: dict[str, Rule] = {}  # by the name of the claim


def rule(
    *names: str, **conditions: Any
) -> Callable[[Callable[..., Numbers]], Callable[..., Numbers]]:
    """Register the conditions under which the claims that a function measures hold.

    The conditions have the names of the fields of `Rule`.

    Args:
        names: the names of the claims. Without one, it is the function's own name. If one function
            measures several claims with different rules, use several `@rule` decorators.

    Raises:
        ValueError: a name already has a rule, or the conditions have both forms or neither.
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
