"""Define the claims of the sources and of this course, and measure them.

A claim consists of a function that measures its numbers, a rule in Python, and a row of text. The
rule says when the claim holds, and the row contains the words of the claim. The rule and the row
are in two files, and no fact is in both. The function and the rule are in `course.chapterN.claims`:

    CHANCE = Threshold(0.55)  # the sentence and the predicate both use this name

    @rule(
        holds=(f"below {CHANCE:.0%} in one band, and nowhere above fp16", lambda bf16, fp16: …),
        part=("nowhere above fp16", lambda bf16, fp16: …),
        nothing=("two types that are one", lambda bf16: {"fp16": bf16}),
    )
    def low_precision_is_worse() -> Numbers:
        return {"bf16": […], "fp16": […]}

The row is in the chapter's table in the folder of `course.scorecard`, under the same name:

    [low_precision_is_worse]
    source = "BARBERO"
    where = "section 4"
    statement = "Lower machine precision makes prompts indistinguishable at shorter lengths"
    shown = "3-representational-collapse/lab#Can a floating-point format tell n from n + 1?"
    ruler = "right of two"
    measured = "bf16 {bf16[-1]:.0%}, fp16 {fp16[-1]:.0%}"

The arguments of a predicate are results of the function, under the same names. The verdict, the
rule as text and the correction follow from the conditions. `course.evidence.rules.Rule` explains
which conditions there are, and `course.evidence.null_controls` which controls each rule must pass.
If a claim is about several cases, such as graphs, texts or depths, use `each` and `against` instead
of `holds` and `part`. `nothing` is a null control, given by a description and its numbers. The rule
must not hold for these numbers. If the rule may hold for them, or if there is no such control,
`null` says why. `ruler` names rows of data/rulers.csv, which show what the metric gives when the
answer is known.

Some conditions are tested before all others. `enough` asks whether there was enough evidence, `fit`
whether the set-up could decide the claim, `able` whether the model can do the task at least at some
length, and `decided` whether the runs went far enough. Decide before you know the numbers what
would count against the claim. A predicate may use functions of helpers, loops and
`zip(strict=True)`, and `ruff` checks it.

`measured` is an f-string that reports the numbers. It may use the names that the function returns
and those of its module, and `{model}` is the name of the model. `assumes` says which assumptions
nobody has tested by a measurement, and `would_change_if` says what could change the verdict. If the
source also gives numbers, the function returns pairs of the reported and the measured value under
`numbers`. A function that measures several claims has one `@rule("name", …)` for each claim, and
the entry `given` in the table has the arguments of the function. Claims that one set-up measures
can be the `parts` of a row, which has a statement but no rule. Such a row holds if each part does.
It holds with a correction if most parts hold and none fails.

A claim draws no figure and imports no figures. A number that a page also shows is measured only
once, in `measures`. Set `theorem = true` for a theorem, a definition or a formula, which no run
could refute. Set `reading = true` for a statement that no source makes but that a reader might
infer. Each kind is counted separately.

At most 120 claims are measured, so a new claim replaces a claim that tells us less. Three controls
are considered for every claim: random labels, random weights and another readout.
`data/controls.csv` records which of them were run, why the others do not apply, and which kind of
evidence a claim about trained networks has. The words of a claim of the talk are in
`data/sources.csv`.

In `tests/expected/chapterN.toml`, say which verdicts the claim may have, and why. Give only one
verdict if a closed form or a committed table decides the claim. The entry `evidence` has made-up
numbers for each of these verdicts, so that a test can find rules that never reach one of them.

A claim about a language model takes the model as an argument, `model: LanguageModel | None = None`,
where None is the embedded model. List the claim in a section of `course.report`, which measures it
on any model. If the claim cannot be decided with a model, the function raises a ValueError that
says so. Never tune a set-up until it agrees with a paper, because a claim that does not hold here
is a result.

Null controls show which verdict the rule gives when there is nothing to find.
`course.evidence.null_controls` applies each rule to changed numbers: set to their mean, shuffled,
reversed, with groups swapped, or with one case removed. `dealt` names a label in a committed table,
which is shuffled among the runs before the claim is measured again. `nothing` adds a control that
depends on the claim, such as an untrained network, random labels, equal weights or a coin. No
control may hold, unless `null` says why it may ("the claim is that nothing changes"). For claims
about a language model, `python -m course.runs twins` measures a network with random weights
(data/twins.csv).

If possible, we also run an experiment that could refute the claim. The field `would_change_if` says
in words which evidence could change the verdict. If we can run this experiment, it is a function
with `@turn` in `course.chapterN.turns` (see `course.evidence.turns`), and the claim's card shows
its outcome (survived, turned or undecided) as a second sign.

Metrics are calibrated on cases with a known answer. `ruler` names rows of `data/rulers.csv`, which
`python -m course.runs rulers` writes. To add a metric, write a function in
`course.scorecard.rulers`. For example, a readout is first tested on the node's own input, a score
on uniform attention of the same length, and a fraction on a network whose fraction is known.

This module does not import any chapter. `course.scorecard` collects the claims of all chapters.
"""

import functools
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from course import worded
from course.evidence import null_controls, null_tables, sources
from course.evidence.rules import (  # noqa: F401  whoever reads a claim finds its verdicts here
    CORRECTED,
    FAILS,
    HOLDS,
    LITTLE,
    OPEN,
    RULES,
    UNABLE,
    UNFIT,
    VERDICTS,
    Numbers,
    Rule,
)
from course.evidence.sources import COURSE, Source


class Found(NamedTuple):
    """Hold the result of measuring a claim.

    Attributes:
        measured: the measured numbers, in one or two sentences or as a list, together with the size
            of the set-up.
        verdict: one of `VERDICTS`, as the claim's rule decides.
        numbers: a pair (reported value, measured value) for each number, keyed by the name of the
            number. The reported value is `None` if the source does not give this number.
        words: the correction, or the reason why there is no verdict. For a claim that holds, this
            is "".
        compared: for each threshold, a tuple of the name of the condition, the side of the
            threshold that agrees with the claim, the threshold, and the values that were compared
            with it.
        nulls: the verdict of the rule on each null control, keyed by the description of the
            control.
    """

    measured: str
    verdict: str
    numbers: Mapping[str, tuple[float | None, float | None]] = {}
    words: str = ""
    compared: Sequence[tuple[str, str, float, list[float]]] = ()
    nulls: Mapping[str, str] = {}


class Claim(NamedTuple):
    """Describe one claim, which is a row of the scorecard or a part of a row.

    Attributes:
        name: the name of the claim in its chapter's table.
        statement: what the source says, one statement per claim.
        shown: the page and the heading where the course shows the result, as in
            "3-representational-collapse/lesson#The theorem".
        source: the source that makes the claim.
        where: the place in the source, as in "Theorem B.3".
        reported: the value in the source, or "" if the source gives none.
        varied: what was varied and what was not, as in "lengths and five seeds; not the width".
        assumes: what the verdict takes for granted, although nobody has tested it by a measurement.
        would_change_if: other evidence, not measured for this claim, that would change the verdict.
        ruler: the rows of data/rulers.csv that show what the metric gives when the answer is known.
        theorem: whether the claim is a theorem or a definition, which a run can check with numbers
            but cannot refute.
        reading: whether no source makes the claim, although a reader might infer it.
        measured: the result in words, as an f-string that may use the function's numbers and the
            names of its module.
        parts: for a row of several claims that one set-up measures, the names of these claims.
            Their verdicts make the verdict of the row.
        function: the function that measures the numbers, or `None` for a row of parts.
    """

    name: str
    statement: str
    shown: str
    source: Source = COURSE
    where: str = ""
    reported: str = ""
    varied: str = ""
    assumes: str = ""
    would_change_if: str = ""
    ruler: str = ""
    theorem: bool = False
    reading: bool = False
    measured: str = ""
    parts: tuple[str, ...] = ()
    function: Callable[..., Numbers] | None = None

    @property
    def chapter(self) -> int:
        return int(self.shown.split("-")[0])

    @property
    def own(self) -> bool:
        """Return whether the claim is this course's own finding and not that of a source.

        The course's own findings are counted separately from the claims of the sources.
        """
        return self.source is COURSE

    @property
    def rule(self) -> Rule:
        """Return the rule that decides when the claim holds.

        A row of parts has no rule of its own.
        """
        return RULES[self.name]

    @property
    def module(self) -> str:
        """Return the name of the module that defines the claim's function."""
        return self.rule.function.__module__

    @property
    def asks_a_model(self) -> bool:
        """Return whether the claim is about language models and can be measured on any of them."""
        return "model" in inspect.signature(self.function).parameters

    def measure(self, *model: Any) -> Found:
        """Measure the claim and return what was found.

        Args:
            *model: for a claim about a language model, the model to measure. If it is left out, the
                embedded model is measured.
        """
        numbers = self.function(*model)
        sentence = worded(
            self.measured, {**vars(sys.modules[self.module]), "model": called(*model), **numbers}
        )
        verdict, words, compared = self.rule.decide(numbers)
        of_nothing = null_controls.verdicts(self.rule, numbers)
        if not model:  # the committed tables are about the embedded model
            of_nothing |= null_tables.of_tables(self.rule, self.function)
        return Found(
            sentence,
            verdict,
            numbers.get("numbers", {}),
            words,
            [tuple(one) for one in compared],
            of_nothing,
        )


# the fields that each row must have, except a row of parts, as explained at the top of this file
ASKED = ("statement", "ruler", "assumes", "would_change_if", "measured")
CLAIMS: dict[str, Claim] = {}  # rows and parts of rows by name, which `course.scorecard` fills in
EMBEDDED = "SmolLM2-135M"  # the name of the embedded model in claims


def called(model: Any = None) -> str:
    """Return the name of a model, or of the embedded model if `model` is `None`."""
    return EMBEDDED if model is None or model.short.startswith(EMBEDDED) else model.short


def read(table: Path, module: ModuleType) -> dict[str, Claim]:
    """Read the claims of a chapter from its table.

    Args:
        table: the TOML file with the words of the claims. Its entry `given` has arguments of the
            function that measures the claim.
        module: the module of the chapter that registers the rules of the claims.

    Raises:
        ValueError: if `shown` is not a page with a heading, if a row lacks one of the entries in
            `ASKED`, if a part is not a claim of the table, if a row has no rule, or if a rule has
            no row.
    """
    claims_of = {}
    for name, row in tomllib.loads(table.read_text()).items():
        row["source"] = getattr(sources, row.get("source", "COURSE"))
        row["parts"] = tuple(row.get("parts", ()))
        wording = row.pop("given", {})
        if not row["shown"][:1].isdigit() or not row["shown"].partition("#")[2]:
            raise ValueError(f"shown must be '<chapter>/<page>#<heading>', not {row['shown']!r}")
        if not row["parts"]:
            if name not in RULES or RULES[name].function.__module__ != module.__name__:
                raise ValueError(f"{name} must have a rule in {module.__name__}, but there is none")
            if missing := [key for key in ASKED if not row.get(key)]:
                raise ValueError(
                    f"{name} in {table.name} must have {', '.join(missing)}. The docstring of "
                    "course/evidence/claims.py explains these entries"
                )
            function = RULES[name].function
            row["function"] = functools.partial(function, **wording) if wording else function
        claims_of[name] = Claim(name=name, **row)
    for each in claims_of.values():
        if missing := set(each.parts) - set(claims_of):
            raise ValueError(
                f"parts of {each.name} must be claims of {table.name}, not {sorted(missing)}"
            )
    if idle := {
        name for name, each in RULES.items() if each.function.__module__ == module.__name__
    } - set(claims_of):
        raise ValueError(
            f"rules of {module.__name__} must have rows in {table.name}: {sorted(idle)}"
        )
    return claims_of


def together(verdicts: Iterable[str]) -> str:
    """Combine the verdicts on the parts of a row into the verdict on the row.

    The row holds if all parts hold, and fails if any part fails. Otherwise, it holds with a
    correction if most parts hold (with or without a correction), and is undecided if not.

    >>> together(["holds", "holds with a correction"]), together(["holds", "does not hold here"])
    ('holds with a correction', 'does not hold here')
    """
    known = list(verdicts)
    if FAILS in known or {*known} == {HOLDS}:
        return FAILS if FAILS in known else HOLDS
    undecided = [each for each in known if each not in (HOLDS, CORRECTED)]
    return CORRECTED if 2 * len(undecided) < len(known) else max(undecided, key=undecided.count)
