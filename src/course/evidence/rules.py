"""Turn the conditions of a claim into its verdict, its rule as text, and its correction.

A condition is a sentence and a predicate. The sentence is an f-string in which named thresholds are
filled in, so it always agrees with the thresholds that the predicate uses. The predicate takes the
results of the claim's function as arguments. A `Threshold` is a number that records the values with
which it is compared, so that the claim's card can show how near to the threshold the evidence was.
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
# names of the comparisons in a rule that gives a verdict on each case
AGREE, OTHERWISE = "cases that agree", "cases the other way"
LEAST_CASES = 2  # the least number of cases for a rule that gives a verdict on each case
ASKED_FIRST = {
    "enough": LITTLE,
    "fit": UNFIT,
    "able": UNABLE,
    "decided": OPEN,
}  # the weakest evidence first

Numbers = Mapping[str, Any]  # the results of a claim's function, by name, for its rule and its row
Condition = tuple[str, Callable[..., Any]]

_compared: ContextVar[list | None] = ContextVar("compared", default=None)


class Threshold(float):
    """Hold a number, and record the values that a rule compares with it.

    The product or sum of a threshold and a measured number is again a threshold, which records
    values on the original scale. For example, `x > HALF * y` records x / y as compared with HALF.

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

    Attributes:
        condition: the name of the rule's condition that made the comparison.
        asked: the side of the threshold that agrees with the claim, "above" or "below".
        mark: the threshold.
        values: the values that were compared with the threshold.
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
    """Hold the verdict of a rule on some numbers.

    Attributes:
        verdict: one of `VERDICTS`.
        words: the correction, or what is missing for a verdict. It is "" for a claim that holds.
        compared: the comparisons with thresholds that led to the verdict.
    """

    verdict: str
    words: str
    compared: list[Compared]


class Rule(NamedTuple):
    """Decide when a claim holds.

    Each condition is a pair of a sentence and a predicate. A rule has one of two forms. In the
    first form, the claim holds if `holds` is met, and holds with a correction if only `part` is
    met. In the second form, `each` is a condition on separate cases, such as graphs, texts or
    depths, and `weigh` combines the cases into a verdict. Before either form, `enough`, `fit`,
    `able` and `decided` are tested in this order. The first of these four conditions that is not
    met decides the verdict.

    Attributes:
        function: the function that measures the numbers.
        holds: the condition under which the claim holds.
        part: the weaker condition under which the claim holds with a correction.
        each: the condition on each case. Its predicate returns one truth value per case.
        against: the condition under which a case goes the other way, again with one truth value per
            case. Without it, each case that does not agree goes the other way.
        enough: whether there is enough evidence.
        fit: whether the set-up can decide the claim.
        able: whether the model can do the task at least at some length.
        decided: whether the runs went far enough.
        nothing: a null control, as its description and its numbers. The numbers are those that
            differ from the measured ones, or a function that returns them.
        null: why there is no null control, or why the rule may hold for one.
        least: the smallest number of cases for a verdict of the second form. Use 1 if each case is
            already a test over seeds.
        dealt: a null control for claims on committed tables. For each table, it has the column
            whose labels are shuffled among the runs, followed by the columns that define the groups
            for the shuffle.
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
            [f"The claim holds if {sentences['holds']}"]
            if self.holds
            else [f"The claim holds if in every case {sentences['each']}"]
        )
        if self.part:
            parts.append(f"It holds with a correction if {sentences['part']}")
        if self.against:
            parts += [
                "It holds with a correction if more cases agree than a coin would give and no case "
                "goes the other way",
                f"A case goes the other way if {sentences['against']}",
            ]
        words = {
            "enough": "there is too little evidence",
            "fit": "this set-up cannot decide",
            "able": "this model cannot decide",
            "decided": "our runs do not go far enough",
        }
        parts += [
            f"A verdict requires that {sentences[name]}. Otherwise {words[name]}"
            for name in ASKED_FIRST
            if name in sentences
        ]
        return ". ".join(parts)

    def ask(self, condition: str, numbers: Numbers) -> Any:
        """Evaluate the predicate of one condition on the numbers.

        Raises:
            ValueError: if the predicate has an argument that `numbers` does not have.
        """
        predicate = self.conditions[condition][1]
        missing = set(inspect.signature(predicate).parameters) - set(numbers)
        if missing:
            raise ValueError(
                f"numbers must hold {sorted(missing)}, because the condition {condition} "
                f"uses them, but the numbers are {sorted(numbers)}"
            )
        return predicate(
            **{name: numbers[name] for name in inspect.signature(predicate).parameters}
        )

    def decide(self, numbers: Numbers) -> Decision:
        """Return the verdict that follows from the numbers.

        The conditions `enough`, `fit`, `able` and `decided` are tested first.
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
                    verdict,
                    f"a verdict requires that {self.conditions[condition][0]}, and this is not so",
                    joined(comparisons),
                )
        if self.each:
            against = ask("against") if self.against else [not one for one in cells]
            verdict, words = (
                weigh(cells, against, self.least),
                f"in {sum(cells)} of {len(cells)} cases, {self.each[0]}",
            )
            words = "no case was measured" if not cells else "" if verdict == HOLDS else words
            opposed = sum(against)
            if opposed:
                words += f". {opposed} case{'s go' if opposed > 1 else ' goes'} the other way"
            comparisons += (
                Compared(AGREE, "above", stats.binom.isf(0.05, len(cells), 0.5), [sum(cells)]),
                Compared(OTHERWISE, "below", 1, [sum(against)]),
            )
            return Decision(verdict, words, joined(comparisons))
        if ask("holds"):
            return Decision(HOLDS, "", joined(comparisons))
        if self.part and ask("part"):
            words = f"the claim holds in this form: {self.part[0]}"
            return Decision(CORRECTED, words, joined(comparisons))
        missing = (self.part or self.holds)[0]
        return Decision(
            FAILS, f"the claim would hold if {missing}, but this is not so", joined(comparisons)
        )


def joined(seen: Iterable[Compared]) -> list[Compared]:
    """Join all comparisons of one condition with one threshold.

    Infinite values and NaN are left out.
    """
    found: dict[tuple, list[float]] = {}
    for one in seen:
        found.setdefault(one[:3], []).extend(x for x in one.values if math.isfinite(x))
    return [Compared(*key, values) for key, values in found.items() if values]


def weigh(agree: Iterable[bool], against: Iterable[bool], least: int = LEAST_CASES) -> str:
    """Combine the results for several cases (graphs, depths, encodings, texts) into a verdict.

    With fewer than `least` cases, there is too little evidence, whatever the cases show. Otherwise
    the claim fails if any case goes the other way, and holds if every case agrees. A case that
    neither agrees nor goes the other way is undecided, which is not evidence against the claim. If
    some cases are undecided and none goes the other way, the claim holds with a correction if more
    cases agree than a coin would give (`more_than_a_coin`). If fewer agree, there is too little
    evidence.

    Args:
        agree: for each case, whether it agrees with the claim.
        against: for each case, whether it contradicts the claim by more than its error.
        least: the smallest number of cases for a verdict.

    Raises:
        ValueError: if a case both agrees and goes the other way, or `agree` and `against` have
            different lengths.

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
    """Return whether significantly more cases agree than a fair coin would give.

    The result is true if a coin would give at least `agreeing` of `cases` with a probability below
    `level`.

    >>> more_than_a_coin(4, 7), more_than_a_coin(7, 8)
    (False, True)
    """
    return bool(stats.binom.sf(agreeing - 1, cases, 0.5) < level)


def beyond(errors: Iterable[float], freedom: float = math.inf, level: float = 0.05) -> list[bool]:
    """Return for each case whether its value is significantly above 0.

    We correct for testing all cases together. If there is no effect in any case, the probability
    that at least one case is called significant stays below `level`, however many cases there are.
    The tests are one-sided and corrected by Holm's method (1979).

    Args:
        errors: for each case, its value divided by its standard error. To test whether values are
            below 0, give the negative values.
        freedom: the degrees of freedom of the standard errors, for example 3 if each comes from
            four seeds.

    >>> beyond([2.0]), beyond([2.0], freedom=3), beyond([2.0] + [0.0] * 62)[0]
    ([True], [False], False)
    """
    values = [float(x) for x in errors]
    return [p < level for p in significance.holm([float(stats.t.sf(x, freedom)) for x in values])]


RULES: dict[str, Rule] = {}  # the rules, keyed by the name of the claim


def rule(
    *names: str, **conditions: Any
) -> Callable[[Callable[..., Numbers]], Callable[..., Numbers]]:
    """Register the rule of each claim that the decorated function measures.

    Args:
        *names: the names of the claims. Without a name, the claim has the function's name. If one
            function measures several claims with different rules, use several `@rule` decorators.
        **conditions: the fields of `Rule`, except `function`.

    Raises:
        ValueError: if a claim of this name already has a rule, or if `conditions` has both `holds`
            and `each`, or neither.
    """

    def register(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
        new = Rule(function, **conditions)
        if (new.holds is None) == (new.each is None) or (new.part and new.each):
            raise ValueError(
                f"the rule of {names or function.__name__} must have either the condition "
                "holds (and optionally part), or the condition each"
            )
        for name in names or (function.__name__,):
            if name in RULES:
                raise ValueError(f"{name} must have one rule, but it has two")
            RULES[name] = new
        return function

    return register
