"""Claims of the sources and of this course: each a rule in Python, beside the function that
measures it, and a row of words.

A row is written in two places, and nothing in both. In `course.chapterN.claims` the numbers and
when the claim holds:

    CHANCE = Threshold(0.55)  # its name stands in the sentence and in the predicate

    @rule(
        holds=(f"below {CHANCE:.0%} in one band, and nowhere above fp16", lambda bf16, fp16: …),
        part=("nowhere above fp16", lambda bf16, fp16: …),
        nothing=("two types that are one", lambda bf16: {"fp16": bf16}),
    )
    def low_precision_is_worse() -> Numbers:
        return {"bf16": […], "fp16": […]}

and in the chapter's table beside `course.scorecard` the words, under the same name:

    [low_precision_is_worse]
    source = "BARBERO"
    where = "section 4"
    statement = "Lower machine precision makes prompts indistinguishable at shorter lengths"
    shown = "3-representational-collapse/lab#Can a floating-point format tell n from n + 1?"
    ruler = "right of two"
    measured = "bf16 {bf16[-1]:.0%}, fp16 {fp16[-1]:.0%}"

A predicate takes by name what the function returns. From the conditions come the verdict, the rule
as a reader reads it and the correction; `course.evidence.rules.Rule` says which conditions there
are, `course.evidence.null_controls` what each rule says of nothing. Where several cases are asked
(graphs, texts, depths), `each` and `against` stand in the place of `holds` and `part`. `nothing` is
a null: its words and its numbers. It must not hold; where it may, or there is none, `null` says
why. `ruler` names rows of data/rulers.csv: what the measurement read where the answer is known.

`enough`, `fit`, `able` and `decided` are asked first: was there enough evidence, could the set-up
tell, does the model do the task at some length, did the runs go far enough. What counts as the
other way is set before the numbers are known. Functions of helpers, loops and `zip(strict=True)`
are welcome in a predicate; `ruff` reads it.

`measured` tells the numbers, an f-string among the function's names and those of its module;
`{model}` is how a claim calls the model that it was asked of. `assumes` and `would_change_if` say
what nobody measured, and what would turn the verdict. Where the source gives numbers, too, the
function returns them under `numbers`: what they are of, with the reported one and the measured one.
A function that measures several claims has a `@rule("name", …)` for each; `given` in the table are
its arguments. Claims that one set-up measures are the `parts` of a row, which has a statement and
no rule: it holds if each part does, with a correction if most do and none fails.

A claim draws nothing and imports no figures: what a page tells, too, is measured once, in
`measures`. `theorem = true` is for a theorem, a definition or a formula, which no run could refute,
`reading = true` for what somebody might read into the sources and nobody said: each kind is counted
apart.

At most 120 claims are measured: a new one takes the place of one that decides less. Three controls
are asked of every claim: random labels, random weights, another reader. `data/controls.csv` holds
what was run, why one cannot be asked, and what kind of evidence a claim of trained networks rests
on. A claim of the talk has its words in `data/sources.csv`.

In `tests/expected/chapterN.toml` say which verdicts the claim may have, and why; where a closed
form or a committed table decides, just one. `evidence` there gives the rule made-up numbers for
each verdict that it may have, in each way; one that cannot reach one of them is found by the test.

A claim about a language model takes it as an argument, `model: LanguageModel | None = None`, where
None is the embedded one; it is listed in a section of `course.report`, which measures it on any
model. Where a model cannot decide, it raises a ValueError that says so. Never tune a set-up until
it agrees with a paper: a claim that does not hold here is a result.

What nothing would have said. `course.evidence.null_controls` asks each rule of the measured numbers
flat, shuffled, reversed, with their groups exchanged, and with a case less; `dealt` names the label
of a committed table that is dealt out anew among its runs before the claim is measured again;
`nothing` adds the null that only you know, words and numbers: an untrained network, labels at
random, an equal share, a coin. No null may hold, unless `null` says why it may ("that nothing
changes is what is claimed"). Of a claim about a language model `python -m course.runs twins` asks
the same network with random weights (data/twins.csv).

What would refute it, run. `would_change_if` says in words what evidence could turn the verdict.
Where that experiment can be run, `course.chapterN.turns` holds it as a function with `@turn` above
it (`course.evidence.turns`), and the card shows its outcome as a second sign: survived, turned,
undecided.

What the ruler reads where the answer is known. `ruler` names rows of `data/rulers.csv`, which
`python -m course.runs rulers` writes; a new ruler is a function in `course.scorecard.rulers`. A
read-out is tried on the node's own input first, a score on uniform attention at that length, a
share on a network whose share is known.

Nothing here knows a chapter: `course.scorecard` gathers them.
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
    """Hold what a claim's function found.

    Attributes:
        measured: one or two sentences or a list of numbers, with the size of the set-up.
        verdict: one of `VERDICTS`, from the claim's rule.
        numbers: where the source gives numbers: what they are of, with the reported one (None where
            it gives none for this) and the measured one.
        words: what must be added to the verdict: the correction, or what is missing; "" for a claim
            that holds.
        compared: which condition of the rule compared what with which threshold: condition, side
            that agrees, threshold, values.
        nulls: what the rule says of each kind of nothing, by its words.
    """

    measured: str
    verdict: str
    numbers: Mapping[str, tuple[float | None, float | None]] = {}
    words: str = ""
    compared: Sequence[tuple[str, str, float, list[float]]] = ()
    nulls: Mapping[str, str] = {}


class Claim(NamedTuple):
    """A row of the scorecard, or a part of one: what a source says, where, and the function that
    measures it.
    """

    name: str
    statement: str  # as the source makes it; one statement, one claim
    shown: str  # "3-representational-collapse/lesson#The theorem": page and heading
    source: Source = COURSE
    where: str = ""  # the place in the source: "Theorem B.3"
    reported: str = ""  # what the source gives for it; "" where it gives nothing
    varied: str = ""  # what was varied, and what was not: "lengths and five seeds; not the width"
    assumes: str = ""  # what must be so besides, and nobody measured
    would_change_if: str = ""  # what other evidence, not run here, would turn the verdict
    # the rows of data/rulers.csv that say what the measurement reads where the answer is known
    ruler: str = ""
    theorem: bool = (
        False  # a theorem or a definition: a run can check it with numbers, not refute it
    )
    reading: bool = False  # what somebody might read into the sources, and nobody said
    # what was found, in words: an f-string over the function's numbers and the names of its module
    measured: str = ""
    parts: tuple[
        str, ...
    ] = ()  # the claims that are measured in one set-up; their verdicts make the row's
    function: Callable[..., Numbers] | None = (
        None  # what measures its numbers; None for a row of parts
    )

    @property
    def chapter(self) -> int:
        return int(self.shown.split("-")[0])

    @property
    def own(self) -> bool:
        """Tell whether the claim is a finding of this course, counted apart from those of the
        sources.
        """
        return self.source is COURSE

    @property
    def rule(self) -> Rule:
        """Say when it holds; a row of parts has none."""
        return RULES[self.name]

    @property
    def module(self) -> str:
        """Return where its function stands."""
        return self.rule.function.__module__

    @property
    def asks_a_model(self) -> bool:
        """Tell whether it is about language models: then it can be measured on any."""
        return "model" in inspect.signature(self.function).parameters

    def measure(self, *model: Any) -> Found:
        """Measure what the function finds, in a language model or the embedded one where the claim
        is about one.
        """
        numbers = self.function(*model)
        sentence = worded(
            self.measured, {**vars(sys.modules[self.module]), "model": called(*model), **numbers}
        )
        verdict, words, compared = self.rule.decide(numbers)
        of_nothing = null_controls.verdicts(self.rule, numbers)
        if not model:  # the committed tables are of the embedded one
            of_nothing |= null_tables.of_tables(self.rule, self.function)
        return Found(
            sentence,
            verdict,
            numbers.get("numbers", {}),
            words,
            [tuple(one) for one in compared],
            of_nothing,
        )


# what each row must say, if it is no row of parts; the head of this file explains them
ASKED = ("statement", "ruler", "assumes", "would_change_if", "measured")
CLAIMS: dict[str, Claim] = {}  # rows and parts of rows, by name; `course.scorecard` fills it
EMBEDDED = "SmolLM2-135M"  # how claims call the embedded model


def called(model: Any = None) -> str:
    """Say how a claim calls the model that it was measured on; None is the embedded one."""
    return EMBEDDED if model is None or model.short.startswith(EMBEDDED) else model.short


def read(table: Path, module: ModuleType) -> dict[str, Claim]:
    """Read the claims of a chapter's table, whose rules stand in its module; `given` are arguments
    of the function.

    Raises:
        ValueError: `shown` names no page and heading, a part is no claim of the table, a row lacks
            one of `ASKED`, or a row has no rule, or a rule of the module no row.
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
                raise ValueError(f"{name} must have a rule in {module.__name__}, and there is none")
            if missing := [key for key in ASKED if not row.get(key)]:
                raise ValueError(
                    f"{name} in {table.name} must have {', '.join(missing)}, which the head of "
                    f"course/evidence/claims.py explains"
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
    """Return the verdict on a row of parts: it holds if all do, and with a correction if most do,
    in whole or in part, and none fails.

    A part that fails makes the row fail. Where most parts are undecided and none fails, the row is
    undecided as they are.

    >>> together(["holds", "holds with a correction"]), together(["holds", "does not hold here"])
    ('holds with a correction', 'does not hold here')
    """
    known = list(verdicts)
    if FAILS in known or {*known} == {HOLDS}:
        return FAILS if FAILS in known else HOLDS
    undecided = [each for each in known if each not in (HOLDS, CORRECTED)]
    return CORRECTED if 2 * len(undecided) < len(known) else max(undecided, key=undecided.count)
