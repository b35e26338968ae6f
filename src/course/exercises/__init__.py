"""Run the checks of the exercises.

A check calls the learner's function, compares its results with those of the solution, finds the
mistake if it can, and shows a verdict.

The checks of a chapter are functions with the decorator `@exercise`. They return `Right(sentence,
picture)` or raise `Wrong(sentence)`. The learner sees a `Verdict`, which is an output and not an
error, so "Run all" runs to the end.

Each chapter has ten exercises, in `exercises.ipynb`, `course/chapterN/checks.py` and
`course/exercises/chapterN.toml`. Their levels go from easy to research (● easy, ●● moderate, ●●●
demanding, ●●●● hard, ●●●●● research). An exercise that is added later comes last, whatever its
level. Each exercise has these parts: a statement with a line on why it matters, a stub with types
and an example, a check as the last line of the stub's cell, three hints (what to think about, which
function to use, and almost the code), and a solution in words. The solution in code is a cell that
starts with `# @title Solution`, defines only the name `solution`, and ends with
`checks.<name>.solution(solution)`. This cell is folded on the site, on Colab and in JupyterLab. Two
of the ten exercises ask for a prediction. `checks.progress()` ends the page.

The chapter's table, `src/course/exercises/chapterN.toml`, has the number and the title of each
exercise under the name of its check. Most checks call `compare("name", answer, solution)`. For
these checks the table has the `call`, the `cases` and the `mistakes`. The learner sees the text of
a case and can run it. Each common mistake is a line `expression :: sentence`, in which `right`
stands for the solution. Expressions and cases are evaluated with the names of the chapter's
`checks.py`. If an exercise asks for a second function, the table has another entry below for this
function.

If no known mistake returns what the learner's function returns, `compare` looks for a relation that
holds between the results and the expected results on every case. Examples are: transposed, twice as
large, divided by `n`, right except for the diagonal, no change with an argument. These relations
are in `relations.toml`. If no relation holds, `exercises/repair.py` looks for one edit of the
learner's code that makes all cases right. The learner is told the place and the kind of this edit,
but never the edit itself, and only under two conditions. First, the edited function must also agree
with the solution on the calls in `unseen`, which do not affect the verdict. Second, no edit of
another kind may repair the function. If edits of several kinds repair it and all of them are in one
short expression, the learner is told this expression. Finally, `compare` tells the learner what the
arguments of the wrong cases have in common.

So add a known mistake only if its sentence says more than these general methods do. Write the wrong
answer exactly as a learner would, and add a case that distinguishes this mistake from the others. A
test runs every known mistake and expects its sentence.

Some checks reject answers themselves, by a call of `refuse("name", x=x)`. The sentences for this
are in the table as `refused`, one `condition :: sentence` per line. The learner sees the sentence
of the first condition that holds. Conditions, and the braces in sentences, may use the names given
in the call (here `x`) and those of the module. If a check rejects answers at several places, or if
its sentence ends with one of several reasons, the table has further rows. `refuse("name", "rows",
x=x)` uses such rows, and `reason("name", "rows", x=x)` returns the sentence.

For a prediction, the table has `guesses`, each with a sentence that appears once the learner's
function is right, and `true`, the right guess. Any guess is accepted, and the learner's first guess
is kept. The verdict shows this guess next to the result of the learner's function.

The time limit of a check (`SECONDS` of processor time) counts only during the learner's calls
(`run`, or `clocked` for calls of another form), and it never interrupts an import. The search for
the mistake has a separate limit. A check that needs the model calls `checks.model()`, which tells
the learner that loading takes a while. A learner never sees an exception.

`tests/answers/chapterN.toml` has four right answers in different forms for each exercise, and a
wrong answer for each sentence that the check itself contains. A line is what a learner writes
between the brackets of the check, without the prediction. It may use the names of the chapter's
`checks.py`. A function that is not an expression is in `chapterN.py` in the same folder.
"""

import contextlib
import copy
import functools
import html
import inspect
import itertools
import linecache
import math
import numbers
import re
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import networkx as nx
import torch
from IPython import get_ipython
from IPython.display import HTML, display
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from torch import Tensor
from torch.overrides import TorchFunctionMode

from course import worded
from course.exercises import repair
from course.exercises.clock import PATIENCE, Late, limited
from helpers import compute, models, show
from helpers.words import translated

HERE = Path(__file__).parent
# processor seconds for the learner's calls in one check, because a longer run is probably an
# endless loop
SECONDS = 20.0
SEARCH = 2.0  # processor seconds for the whole search for a reason, which then simply ends
# in seconds; if one case was wrong, we do not wait for another case that may take longer
LONG = 1.0
# in seconds, left at the end to say on how many cases the answer is right
LAST = 0.2
ENDLESS = (
    "your code ran for {:.0f} seconds, so we stopped it. Does it contain a loop that never ends? "
    "Look at the condition that should end the loop, and at what changes in each round."
)
# the message if a picture takes too long
SLOW = "it was not finished after {:.0f} seconds, but your answer is right all the same."
# whether to draw the result of a right answer, which a page of the site does not do
PICTURES = True
MOST_NUMBERS = 12  # a tensor with more numbers is shown by its shape
MOST_TO_COMPARE = 6  # if two tensors have more numbers, we show the first entry that differs


class Wrong(Exception):
    """Report in a sentence what the learner's answer does not do yet. A check raises this."""


class Empty(Wrong):
    """Report that the learner has not filled in an answer. A check raises this."""


class Right(NamedTuple):
    """Hold the message of a check for a right answer, and a function that draws the answer.

    The drawing appears once the check has passed.
    """

    sentence: str
    picture: Callable[[], HTML] | None = None


class Case(NamedTuple):
    """Hold the arguments of one call, and the text of the call, which a learner can run."""

    text: str
    arguments: tuple


class Verdict:
    """Show the verdict of a check, "Right" or "Not yet", with a sign, a colour and a sentence.

    In Python, a verdict is true if the answer is right. An `empty` answer is not a mistake, so its
    verdict is grey and says what to do. The verdict on the course's own answer is `quiet`: in a
    notebook it shows nothing if this answer passes, so that "Run all" reveals nothing. On the built
    page it shows everything, because it is inside a fold there.
    """

    def __init__(
        self,
        right: bool,
        sentence: str,
        picture: HTML | None = None,
        quiet: bool = False,
        empty: bool = False,
    ):
        self.right, self.sentence, self.picture, self.untried = (
            right,
            translated(sentence),
            picture,
            empty,
        )
        self.mark = translated("✓ Right:" if right else "✗ Not yet:")
        self.quiet = quiet and right and not compute.building()

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        if self.quiet:
            return ""
        if self.untried:
            building = compute.building()
            return (
                translated("The check runs in the notebook, on your answer.")
                if building
                else f"○ {self.sentence}"
            )
        return f"{self.mark} {self.sentence}"

    def _repr_html_(self) -> str:
        if self.quiet:
            return ""
        if self.untried:
            return f'<p style="opacity:.75">{marked_up(repr(self))}</p>'
        box = (
            f"border-left:.3em solid {'#00805c' if self.right else '#d55e00'};padding:.4em "
            ".8em;margin:.3em 0"
        )
        shown = (
            f'<div style="{box}" role="status"><strong>{self.mark}</strong> '
            f"{marked_up(self.sentence)}</div>"
        )
        return shown + (self.picture.data if self.picture else "")


def marked_up(sentence: str) -> str:
    """Convert a sentence to HTML, with text between backticks as code.

    >>> marked_up("`a < b` is 1")
    '<code>a &lt; b</code> is 1'
    """
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(sentence))


@dataclass(eq=False, repr=False)
class Exercise:
    """Check one exercise when it is called with the learner's answers.

    `solution` runs the check on the course's own answers and leaves no mark in `progress`.

    If there are `guesses`, the first argument is the learner's prediction. Any guess is accepted,
    and the first guess is kept in `guess`. Once the function is right, the verdict shows its result
    next to this guess, with the sentence for this guess.
    """

    number: str
    title: str
    check: Callable[..., Right]
    seconds: float = 0.0
    guesses: Mapping[str, str] | None = None
    true: str = ""
    guess: str | None = None
    last: Verdict | None = None

    def __post_init__(self):
        self.__doc__ = self.check.__doc__

    def __call__(self, *answers: Any) -> Verdict:
        self.last = self._verdict(answers)
        return self.last

    def solution(self, *answers: Any) -> Verdict:
        """Return the verdict on the course's own answers, without a mark in `progress`."""
        return self._verdict(answers, quiet=True)

    def _verdict(self, answers: tuple, quiet: bool = False) -> Verdict:
        _clock.seconds = _clock.left = max(SECONDS, self.seconds)
        picture = None
        try:
            guess, answers, changed = self._predicted(answers, quiet)
            sentence, draw = self.check(*answers)
        except Wrong as wrong:
            return Verdict(False, str(wrong), empty=isinstance(wrong, Empty))
        except Exception as error:
            what = f"the check could not read this answer ({type(error).__name__}: {error})."
            return Verdict(False, f"{what} Is it what the statement asks for?")
        if guess:
            lead = (
                "You predicted"
                if changed is None
                else f"You say “{changed}” now. You first predicted"
            )
            sentence = (
                f"{lead} “{guess}”. {sentence[:1].upper()}{sentence[1:]} {self.guesses[guess]}"
            ).strip()
        _clock.left = _clock.seconds
        try:
            picture = clocked(draw, SLOW) if draw and PICTURES else None
        except Wrong as wrong:
            sentence += f" There is no picture: {wrong}"
        except Exception as error:
            sentence += (
                " There is no picture: on other values your function fails "
                f"({type(error).__name__}: {error})."
            )
        return Verdict(True, sentence, picture, quiet)

    def _predicted(self, answers: tuple, quiet: bool) -> tuple[str, tuple, str | None]:
        """Split the answers into the prediction and the other answers.

        The result has three entries: the learner's first guess, which is the one that counts, the
        other answers, and the current guess if it differs from the first.

        Raises:
            Wrong: if there are too few answers or too many, or the prediction is not one of the
                options.
        """
        names = ["prediction"] * bool(self.guesses) + list(inspect.signature(self.check).parameters)
        names = [self.check.__name__ if name == "answer" else name for name in names]
        if len(answers) != len(names):
            call = f"checks.{self.check.__name__}({', '.join(names)})"
            raise Wrong(
                f"the check is {call}, which takes {_many(len(names), 'answer', 'answers')}, "
                f"not {len(answers)}."
            )
        if not self.guesses:
            return "", answers, None
        guess = latest = choice(
            "prediction",
            answers[0],
            self.guesses,
            f"choose one of {_listed(self.guesses)}. Any of them will do",
        )
        if not quiet:
            self.guess = guess = self.guess or guess
        return guess, answers[1:], latest if latest != guess else None


def exercise(check: Callable[..., Right]) -> Exercise:
    """Turn a check into an exercise.

    The number, the title and the guesses come from the chapter's table, under the name of the
    check.
    """
    row = tables(check.__globals__)[check.__name__]
    keys = ("number", "title", "seconds", "guesses", "true")
    return Exercise(check=check, **{key: row[key] for key in keys if key in row})


def tables(names: Mapping[str, Any]) -> dict[str, dict]:
    """Read the table of exercises for the chapter to which `names` belong.

    The table has the calls, cases, mistakes and guesses.
    """
    room = Path(
        names["__file__"]
    ).parent  # the table of a chapter, or of the workshop, which is in the same folder
    folder = room.parent if room.parent.name == "exercises" else room.parent / "exercises"
    return _read(folder / f"{room.name}.toml")


@functools.cache
def _read(path: Path) -> dict[str, dict]:
    return tomllib.loads(path.read_text())


def _many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _state(verdict: Verdict | None) -> str:
    if verdict is None or verdict.untried:
        return "○ not tried:"
    return "✓ right:" if verdict else "✗ not yet:"


def progress(values: Iterable[Any]) -> HTML:
    """List a chapter's exercises, with those that are right and the one to do next."""
    exercises = [exercise for exercise in values if isinstance(exercise, Exercise)]
    done = translated(
        f"{sum(bool(exercise.last) for exercise in exercises)} of {len(exercises)} right."
    )
    after = next((exercise for exercise in exercises if not exercise.last), None)
    rows = "".join(
        (
            f"<li>{translated(_state(exercise.last))} "
            f"{html.escape(translated(f'{exercise.number} {exercise.title}'))}</li>"
        )
        for exercise in exercises
    )
    following = translated(f"Next: {after.number} {after.title}." if after else "All done.")
    guessed = [exercise.guess == exercise.true for exercise in exercises if exercise.guess]
    if guessed:
        following += " " + translated(
            f"Right at the first guess: {sum(guessed)} of {len(guessed)}."
        )
    return HTML(
        f"<p><strong>{done}</strong> {html.escape(following)}</p><ul "
        f'style="list-style:none">{rows}</ul>'
    )


def drawn(figure: Figure | Artist, finding: str, caption: str = "With your answer. ") -> HTML:
    """Show a picture of the learner's answer, with a sentence about it."""
    return show(figure, alt=finding, caption=f"{caption}{finding}")


def tensor(call: str, answer: Any, kind: str = "be numbers in a tensor") -> Tensor:
    """Return the learner's answer as a float64 tensor.

    Raises:
        Wrong: if the answer does not consist of real numbers. The sentence begins with `call` and
            says that it must `kind`.
    """
    try:
        listed = _floats(
            answer
        )  # in float64 from the start, because float32 would round integers beyond 2**24
        values = torch.as_tensor(
            listed, dtype=torch.float64 if isinstance(listed, float | list) else None
        ).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        lengths = (
            {len(x) if isinstance(x, list | tuple) else 0 for x in answer}
            if isinstance(answer, list | tuple)
            else {}
        )
        ragged = (
            f" Its rows differ in length: {', '.join(map(str, sorted(lengths)))}."
            if len(lengths) > 1
            else ""
        )
        raise Wrong(f"{call} must {kind}, not {shown(answer)}.{ragged}") from None
    if values.is_complex() and bool(values.imag.any()):
        raise Wrong(f"{call} must be real, not complex: {shown(values)}.")
    return (values.real if values.is_complex() else values).double()


def _floats(value: Any) -> Any:
    """Convert numbers that torch does not support, such as fractions, to floats."""
    if isinstance(value, numbers.Real):
        return float(value)
    if str(getattr(value, "dtype", "")) == "object":
        return value.astype(float)
    if isinstance(value, list | tuple):
        return [_floats(x.tolist() if isinstance(x, Tensor) else x) for x in value]
    return value


@functools.cache
def model() -> models.LanguageModel:
    """Load the embedded model for a check.

    The first call tells the learner that the model is being loaded, because this takes longer than
    anything else in a check.

    Raises:
        Wrong: if the model could not be loaded. The sentence says that this is not the learner's
            mistake.
    """
    if not compute.building():
        print(translated("Loading the model. This happens only once and may take a minute."))
    try:
        return models.default()
    except Exception as error:
        raise Wrong(
            f"{models.DEFAULT} could not be loaded ({error}). This is not your answer's fault, "
            "so run the check again."
        ) from None


def cases(names: Mapping[str, Any], *texts: str) -> list[Case]:
    """Evaluate the texts of calls, as the learner sees them, and return the arguments of each call.

    >>> cases({"torch": torch}, "torch.ones(2), 3")[0].text
    'torch.ones(2), 3'
    """
    return [Case(text, eval(f"({text},)", dict(names))) for text in texts]


def given(names: Mapping[str, Any], name: str, rows: str = "cases") -> list[Case]:
    """Read the cases of an exercise from the chapter's table.

    As on the learner's page, the name `checks` in a case stands for the chapter's module.
    """
    return cases(
        {**names, "checks": SimpleNamespace(**names)}, *tables(names)[name][rows].splitlines()
    )


def normal(*shape: int, seed: int) -> Tensor:
    """Return standard normal numbers in float64 that are the same at every call.

    The numbers serve as inputs for a learner's answer.

    >>> normal(2, 3, seed=0).shape
    torch.Size([2, 3])
    """
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Tried(NamedTuple):
    """Hold the outcome of a case: the learner's result and the expected result.

    Both results are kept as they are, and also in float64. A result is None if the call failed.
    """

    case: Case
    got: Any
    wanted: Any
    value: Tensor | None
    target: Tensor
    allowed: float
    took: float = 0.0

    @property
    def right(self) -> bool:
        """Return whether the result equals the expected one.

        Integers must agree to their last digit.
        """
        if not _equal(self.value, self.target, self.allowed):
            return False
        whole = self.target.isfinite().all() and torch.equal(self.target, self.target.round())
        return (
            not whole
            or not self.target.numel()
            or float((self.value - self.target).abs().max()) < 0.5
        )


def compare(
    names: Mapping[str, Any],
    signature: str,
    answer: Any,
    solution: Callable,
    given: Sequence[Case],
    mistakes: str = "",
    tolerance: float = 1e-6,
    picture: Callable[[], HTML] | None = None,
    unseen: Sequence[Case] = (),
    **more: Any,
) -> Right:
    """Compare the learner's function with the solution on each case, and look for the mistake.

    Args:
        names: the names that the expressions of mistakes may use, usually the module's `globals()`.
            `more` adds further names.
        signature: name and arguments, such as `"share(mask)"`.
        mistakes: one line `expression :: sentence` per mistake. The expression may use the
            arguments by their names, and `right` for the solution.
        unseen: further cases that do not decide the verdict. Only a repair of the learner's code
            must be right on them, too.
        tolerance: the allowed error of an entry, relative to this entry. In addition, a tenth of
            `tolerance` is allowed relative to the largest entry. For float32 answers, the tolerance
            is at least 1e-5.

    Raises:
        Wrong: if a result differs from the expected one. The sentence has the first such case, both
            results, and the reason if we find it, which is most often a known mistake with the same
            results, or a relation between the results and the expected ones.
    """
    name, _, inside = signature.rstrip(")").partition("(")
    tried: list[Tried] = []
    while len(tried) < len(given) and (not tried or tried[-1].right):
        tried.append(_try(name, answer, solution, given[len(tried)], tolerance))
    first = tried[-1]
    if first.right:
        return Right(f"{name} agrees with the solution on {len(given)} cases.", picture)
    differs = f"{name}({first.case.text}) {_differing(*first[1:5])}."
    with _looking(differs):
        end = time.thread_time() + SEARCH
        tried += _rest(name, answer, solution, given[len(tried) :], tolerance)
        written = isinstance(mistakes, list)  # a page already has functions
        mistaken = (
            mistakes
            if written
            else _functions(mistakes, inside, {**names, "right": solution, **more})
        )
        parameters = [part.strip() for part in inside.split(",")]
        why = _why(mistaken, tried, max(tolerance, 1e-5), parameters, answer, solution, unseen, end)
    raise Wrong(f"{differs} {why}".strip())


def _try(name: str, answer: Any, solution: Callable, case: Case, tolerance: float) -> Tried:
    """Run the learner's function and the solution on a case.

    Raises:
        Wrong: if the answer fails on the case.
    """
    call, began = f"{name}({case.text})", time.thread_time()
    expected = solution(*_copied(case.arguments))
    got = run(call, answer, *case.arguments)
    return _compared(call, case, got, expected, tolerance)._replace(took=time.thread_time() - began)


def _compared(call: str, case: Case, got: Any, expected: Any, tolerance: float) -> Tried:
    allowed = max(tolerance, 1e-5) if "float32" in str(getattr(got, "dtype", "")) else tolerance
    return Tried(case, got, expected, _numbers(call, got), _numbers(call, expected), allowed)


def _rest(
    name: str, answer: Any, solution: Callable, remaining: Sequence[Case], tolerance: float
) -> list[Tried]:
    """Run the cases after the first wrong one, the smallest first, as long as there is time.

    We need these cases only to find the reason, for which a learner should not have to wait long.
    """
    waiting, tried, spent = sorted(remaining, key=_size), [], 0.0
    while waiting and spent < SEARCH / 2:
        case, began, limit = waiting.pop(0), time.thread_time(), None
        try:
            with limited(SEARCH / 2 - spent, PATIENCE) as limit:
                tried.append(_try(name, answer, solution, case, tolerance))
        except Wrong:
            target = _numbers(name, solution(*_copied(case.arguments)))
            tried.append(Tried(case, None, None, None, target, tolerance))
        except Late as late:
            if late.limit is not limit:
                raise
            break
        took = time.thread_time() - began
        grows = _size(waiting[0]) / _size(case) if waiting else 0
        if took * grows > LONG and (took > 0.02 or grows > 10_000):
            break
        spent += took
    return tried


@contextlib.contextmanager
def _looking(differs: str) -> Iterator[None]:
    """Show in a notebook how the answer differs, while we look for the reason.

    The verdict then replaces this message.
    """
    shell = get_ipython()
    if getattr(shell, "kernel", None) is None or compute.building():
        yield
        return
    verdict = Verdict(False, differs)
    verdict.sentence += f" {translated('Looking for the mistake …')}"
    shown = display(verdict, display_id=True)
    try:
        yield
    finally:
        shown.update(HTML(""))


def _size(case: Case) -> float:
    """Estimate the computing time of a case, up to a constant factor."""

    def size(x: Any) -> float:
        if isinstance(x, numbers.Real):
            return abs(x)
        return x.numel() if isinstance(x, Tensor) else 1

    return math.prod(max(float(size(x)), 1.0) for x in case.arguments)


def tabled(
    names: Mapping[str, Any], name: str, answer: Any, solution: Callable, **more: Any
) -> Right:
    """Run `compare` with the call, the cases and the mistakes of an exercise.

    All three come from the chapter's table, under `name`.
    """
    row = tables(names)[name]
    more = {"tolerance": row["tolerance"]} | more if "tolerance" in row else more
    more |= {"unseen": given(names, name, "unseen")} if "unseen" in row else {}
    return compare(
        names, row["call"], answer, solution, given(names, name), row["mistakes"], **more
    )


def reason(names: Mapping[str, Any], name: str, rows: str, /, **found: Any) -> str:
    """Return the first sentence in a table whose condition holds, or "" if no condition holds.

    The lines are in the chapter's table, under `name` and `rows`. Each line is `condition ::
    sentence`. The condition and the braces in the sentence are evaluated with the names of the
    module and those in `found`.
    """
    names = {**names, **found}
    for condition, sentence in _rows(tables(names)[name][rows]):
        if eval(condition, names):
            return worded(sentence, names)
    return ""


def refuse(names: Mapping[str, Any], name: str, rows: str = "refused", /, **found: Any) -> None:
    """Raise `Wrong` if one of the conditions in a table holds (see `reason`).

    Raises:
        Wrong: with the sentence of the first condition that holds.
    """
    if sentence := reason(names, name, rows, **found):
        raise Wrong(sentence.strip())


def filled(name: str, answer: Any, todo: str = "fill it in, then run this cell again") -> None:
    """Raise `Empty` if the learner has not filled in an answer."""
    if answer is ...:
        raise Empty(f"{name} is still empty: {todo}.")


def run(call: str, answer: Any, *arguments: Any, nothing: bool = False) -> Any:
    """Call the learner's function with copies of the arguments, and return its result.

    `call` is the call as the learner would write it.

    Raises:
        Wrong: if the answer is not a function, if it is still empty, or if its call raises an
            error, changes an argument, or returns nothing (unless `nothing` allows this).
    """
    name = call.partition("(")[0]
    filled(name, answer)
    if not callable(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")
    mine = _copied(arguments)
    try:
        result = clocked(lambda: answer(*mine))
    except Wrong:  # raised by a function that the check passed in
        raise
    except Exception as error:
        where, stub = _own_line(answer, error)
        if (
            isinstance(error, NotImplementedError) and not error.args and stub
        ):  # torch raises this error, too
            raise Empty(f"{name} is still empty: write it, then run this cell again.") from None
        raise Wrong(f"{call} raised {type(error).__name__}: {error}{where}") from None
    if result is None and not nothing:
        raise Wrong(f"{call} returned nothing. Is there a return statement?")
    if not all(map(_unchanged, arguments, mine)):
        raise Wrong(
            f"{call} changes its argument. Work on a copy, because the caller may still "
            "need the original."
        )
    return result


def number(name: str, answer: Any) -> float:
    """Return the learner's answer as a finite number."""
    filled(name, answer)
    try:
        value = float(answer if not isinstance(answer, str) else "no number")
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise Wrong(f"{name} must be a number, not {shown(answer)}.") from None
    if not abs(value) < float("inf"):
        raise Wrong(f"{name} must be finite, not {value}.")
    return value


def choice(name: str, answer: Any, options: Iterable[str], *todo: str) -> str:
    """Return the learner's answer if it is one of the options.

    Raises:
        Wrong: if the answer is empty or not one of the options.
    """
    filled(name, answer, *todo)
    if not isinstance(answer, str) or answer not in options:
        raise Wrong(f"{name} must be one of {_listed(options)}, not {shown(answer)}.")
    return answer


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(repr, options))


def edges(name: str, answer: Any, count: int) -> list[tuple]:
    """Return the learner's answer as a list of `count` pairs of nodes, from any container."""
    filled(name, answer)
    what, theirs = (
        ("a pair of nodes", answer[0]) if count == 1 else (f"{count} pairs of nodes", answer)
    )
    try:
        pairs = [tuple(pair.tolist() if hasattr(pair, "tolist") else pair)[:3] for pair in answer]
    except TypeError:
        raise Wrong(f"{name} must be {what}, not {shown(theirs)}.") from None
    pairs = [pair[:2] if len(pair) == 3 and isinstance(pair[2], dict) else pair for pair in pairs]
    if len(pairs) != count or any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
        raise Wrong(f"{name} must be {what}, each of two different nodes, not {shown(theirs)}.")
    return pairs


def edge(name: str, answer: Any) -> tuple:
    """Return the learner's answer as one pair of nodes, from any container."""
    return edges(name, answer if answer is ... else [answer], 1)[0]


def shown(value: Any) -> str:
    """Format a value for a learner, with six digits per number and small tensors in full."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | int):
        return f"{float(value):.6g}"
    if hasattr(value, "tolist") and "object" not in str(getattr(value, "dtype", "object")):
        tensor = torch.as_tensor(value).detach()
        if tensor.is_complex():
            return f"a complex tensor of shape {tuple(tensor.shape)}"
        if tensor.ndim == 0:
            return f"{tensor.item():.6g}"
        if tensor.numel() > MOST_NUMBERS:
            return (
                f"a tensor of shape {tuple(tensor.shape)} that starts {shown(tensor.flatten()[:4])}"
            )
        return str(_rounded(tensor.tolist()))
    if isinstance(value, nx.Graph):
        return f"a graph of {len(value)} nodes and {value.number_of_edges()} edges"
    if isinstance(value, list | tuple) and value and all(isinstance(x, float) for x in value):
        return (
            str(_rounded([float(x) for x in value]))
            if len(value) <= MOST_NUMBERS
            else f"{len(value)} numbers"
        )
    if isinstance(value, list | tuple) and 0 < len(value) <= MOST_NUMBERS:
        return (
            f"({', '.join(map(shown, value))})"
            if isinstance(value, tuple)
            else f"[{', '.join(map(shown, value))}]"
        )
    if isinstance(value, torch.nn.Module):
        return repr(value).partition("\n")[0]
    if callable(value):
        return f"the function {getattr(value, '__name__', '')}".strip()
    if isinstance(value, int) and abs(value) > 10**200:
        return f"an integer of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _rounded(value: Any) -> Any:
    return [_rounded(x) for x in value] if isinstance(value, list) else float(f"{value:.6g}")


def _differing(got: Any, expected: Any, value: Tensor, target: Tensor) -> str:
    """Describe how a result differs from the expected one.

    The description mentions NaN, the wrong shape, both results, or the first entry that differs,
    with as many digits as the difference needs.
    """
    mine, theirs = shown(got), shown(expected)
    if torch.isnan(value).any():
        return f"contains NaN: {mine}; expected {theirs}"
    if value.shape != target.shape:
        wrong = f"has the wrong shape: {tuple(value.shape)}, expected {tuple(target.shape)}"
        if value.ndim != target.ndim:
            return f"{wrong}. It has {_many(value.ndim, 'axis', 'axes')}, not {target.ndim}"
        k = next(
            k for k, (a, b) in enumerate(zip(value.shape, target.shape, strict=True)) if a != b
        )
        return (
            f"{wrong}. Axis {k} has {_many(value.shape[k], 'entry', 'entries')}, not "
            f"{target.shape[k]}"
        )
    if mine != theirs and value.numel() <= MOST_TO_COMPARE:
        return f"is {mine}; expected {theirs}"
    far = ~torch.isclose(value, target, rtol=1e-5, atol=1e-9, equal_nan=True)
    place = tuple((far if far.any() else value != target).nonzero()[0].tolist())
    a, b = float(value[place]), float(target[place])
    digits = next((k for k in range(6, 17) if f"{a:.{k}g}" != f"{b:.{k}g}"), 17)
    where = f"[{', '.join(map(str, place))}] " if place else ""
    return f"{where}is {a:.{digits}g}; expected {b:.{digits}g}"


def _rows(text: str) -> list[tuple[str, str]]:
    """Split each line of a table, `expression :: words`, into its two parts."""
    return [
        (expression, words)
        for expression, _, words in (row.strip().partition(" :: ") for row in text.splitlines())
        if expression
    ]


def _functions(
    mistakes: str, parameters: str, names: Mapping[str, Any]
) -> list[tuple[Callable, str]]:
    """Turn the lines of a table of mistakes into pairs of a function and a sentence."""
    return [
        (eval(f"lambda {parameters}: {expression}", dict(names)), sentence)
        for expression, sentence in _rows(mistakes)
    ]


def _made(function: Callable, arguments: tuple) -> Tensor | None:
    """Call a function on copies of the arguments, and return the result in float64.

    If the call fails, the result is None.
    """
    try:
        return _numbers("", function(*_copied(arguments)))
    except Exception:
        return None


def _why(
    mistaken: list,
    tried: Sequence[Tried],
    tolerance: float,
    parameters: list,
    answer: Any,
    solution: Any,
    unseen: Any,
    end: float,
) -> str:
    """Return the first reason for a wrong answer that we can find before the time `end`.

    `end` is on the thread's own clock. If we find no reason in time, the result is "".
    """
    result = functools.cache(lambda function, k: _made(function, tried[k].case.arguments))

    def left() -> float:
        return max(end - LAST - time.thread_time(), 0.0)

    def within(seconds: float, *ways: Callable[[], str]) -> str:
        with contextlib.suppress(Late, Exception), limited(max(seconds, LAST), PATIENCE):
            return next(filter(None, (way() for way in ways)), "")
        return ""

    def mends(function: Callable) -> bool:
        """Return whether an edited function is right on all cases, including the unseen ones.

        We begin with the cases that were wrong.
        """
        order = [tried[k] for k in _wrong_first(tried)]
        if not all(
            outcome._replace(value=_made(function, outcome.case.arguments)).right
            for outcome in order
        ):
            return False
        expected = ((case, _made(solution, case.arguments)) for case in unseen)
        return all(
            _equal(_made(function, case.arguments), target, tolerance) for case, target in expected
        )

    def elsewhere() -> Iterator[Tried]:
        for case in unseen:
            value, target = (_made(function, case.arguments) for function in (answer, solution))
            yield Tried(case, None, None, value, target, tried[0].allowed)

    def slip() -> str:
        original, again = (
            getattr(answer, "own", answer),
            getattr(answer, "again", lambda edited: edited),
        )
        longest = 0.2 + 5 * sum(outcome.took for outcome in tried)
        return repair.repaired(original, lambda edited: mends(again(edited)), longest, left())

    cause = within(
        left(),
        lambda: _mistake(mistaken, tried, tolerance, result),
        lambda: _nan(answer, tried),
        lambda: _relation(tried, parameters, answer, solution),
        lambda: _turned(mistaken, tried, tolerance, result),
    )
    if not cause and unseen and left():
        cause = within(left(), slip)
    return cause or within(
        end - time.thread_time(),
        lambda: _nearly(mistaken, tried, tolerance, result),
        lambda: _partly(mistaken, tried, tolerance, result),
        lambda: _common([*tried, *elsewhere()], parameters),
        lambda: _little(tried),
    )


def _mistake(mistaken: list, tried: Sequence[Tried], tolerance: float, result: Callable) -> str:
    """Return the sentence of the known mistake that gives the same results as the learner's answer.

    The mistake must run on every case on which the answer runs. If there is no such mistake, the
    result is "".
    """
    for function, sentence in mistaken:
        if all(_equal(tried[k].value, result(function, k), tolerance) for k in _wrong_first(tried)):
            return sentence
    return ""


def _nearly(mistaken: list, tried: Sequence[Tried], tolerance: float, result: Callable) -> str:
    """Return the sentence of the only mistake that gives the same results on all cases but one.

    On at least three of these cases the results must be wrong. Without this function, a second
    mistake that affects a single case (such as 0 log 0) would hide the first mistake.
    """
    explained = {}
    for function, sentence in mistaken:
        same = [
            _equal(outcome.value, result(function, k), tolerance) for k, outcome in enumerate(tried)
        ]
        off = [
            outcome
            for outcome, so in zip(tried, same, strict=True)
            if so and not outcome.right and outcome.value is not None
        ]
        if (
            same.count(False) == 1
            and len(off) > 2
            and not all(_equal(x.value, off[0].value, tolerance) for x in off)
        ):
            explained[sentence] = tried[same.index(False)].case.text
    return " ".join(
        f"{words} (This is true of all cases except {text}.)" for words, text in explained.items()
    ) * (len(explained) == 1)


def _partly(mistaken: list, tried: Sequence[Tried], tolerance: float, result: Callable) -> str:
    """Return the sentence of a mistake that explains two wrong cases, if only one mistake does.

    One of the two cases must be the first wrong case. We accept such a weak match because the
    answer may contain two mistakes.
    """
    off = [k for k, outcome in enumerate(tried) if not outcome.right and outcome.value is not None]
    explained = {}
    for function, sentence in mistaken:
        if not off or not _equal(tried[off[0]].value, result(function, off[0]), tolerance):
            continue
        same = [k for k in off if _equal(tried[k].value, result(function, k), tolerance)]
        if len(same) > 1 and not all(
            _equal(tried[k].value, tried[same[0]].value, tolerance) for k in same
        ):
            explained[sentence] = len(same)
    if len(explained) != 1:
        return ""
    ((sentence, many),) = explained.items()
    return (
        f"{sentence} (This alone explains {many} of {len(off)} wrong cases, "
        "so there is a second mistake.)"
    )


def _wrong_first(tried: Sequence[Tried]) -> list[int]:
    return sorted(range(len(tried)), key=lambda k: (tried[k].right, _size(tried[k].case)))


def _turned(mistaken: list, tried: Sequence[Tried], tolerance: float, result: Callable) -> str:
    """Return the sentence for two mistakes that together explain the results.

    The first is a mistake of the table. The second is a simple change of its result, such as a
    wrong sign, a factor of one half, or two swapped axes.
    """
    for turn, words in _relations("turned", "t"):
        for function, sentence in mistaken:
            results = (_made(turn, (result(function, k),)) for k in _wrong_first(tried))
            if all(
                _equal(tried[k].value, x, tolerance)
                for k, x in zip(_wrong_first(tried), results, strict=True)
            ):
                values = _values(outcome.value for outcome in tried if outcome.value is not None)
                return f"{sentence} {words}" if len(values) > 2 else ""
    return ""


def _nan(answer: Callable, tried: Sequence[Tried]) -> str:
    """Find the line of the learner's code in which NaN first appears, if no NaN is expected."""
    first = next(outcome for outcome in tried if not outcome.right)
    if first.value is None or not first.value.isnan().any() or first.target.isnan().any():
        return ""
    lines, file = (
        [],
        getattr(getattr(inspect.unwrap(answer), "__code__", None), "co_filename", None),
    )

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            tensors = [x for x in args if isinstance(x, Tensor)]
            fresh = bool(tensors) and not any(
                map(_has_nan, tensors)
            )  # memory that was never written to may contain any number
            result = function(*args, **(kwargs or {}))
            if fresh and not lines and isinstance(result, Tensor) and _has_nan(result):
                frame = sys._getframe(1)
                while frame and frame.f_code.co_filename != file:
                    frame = frame.f_back
                lines.append(linecache.getline(file, frame.f_lineno).strip() if frame else "")
            return result

    with Watch():
        _made(answer, first.case.arguments)
    line = lines[0][:80] if lines else ""
    return (
        (
            f"NaN first appears in your line “{line}”. Is it 0 / 0, 0 times infinity, or infinity "
            "minus infinity?"
        )
        if line
        else ""
    )


def _has_nan(tensor: Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return bool(torch.isnan(tensor).any())


@functools.cache
def _relations(kind: str, parameters: str) -> list[tuple[Callable, str]]:
    """Read the relations of one kind between results and expected results.

    The result is a list of pairs of a function and its description.
    """
    names = {"torch": torch, "math": math, "equal": _equal}
    return _functions(_read(HERE / "relations.toml")[kind], parameters, names)


def _relation(
    tried: Sequence[Tried], parameters: list[str], answer: Callable, solution: Callable
) -> str:
    """Find a relation between the results and the expected results that holds on every case.

    We use only cases on which the answer runs without an error. There must be at least two such
    cases.
    """
    ran = [outcome for outcome in tried if outcome.value is not None]
    if len(ran) < 2 or not all(outcome.value.numel() and outcome.target.numel() for outcome in ran):
        return ""
    same = all(_equal(outcome.value, ran[0].value, 1e-9) for outcome in ran)
    if len(ran) > 2 and same and not ran[0].value.isnan().any():
        named = " or ".join(f"`{name}`" for name in parameters if _is_named(name))
        return f"Your result is the same in every case, so it does not change with {named}."
    off = [outcome for outcome in ran if not outcome.right]
    sentence = (
        (_transformed(ran) or _scaled(ran, parameters) or _region(off) or _inverted(ran))
        if len(off) > 1
        else ""
    )
    few, expected = (
        sorted(_values(x))
        for x in zip(*((outcome.value, outcome.target) for outcome in ran), strict=True)
    )
    if not sentence and len(few) < min(3, len(expected) - 2):
        sentence = (
            f"In every case the result contains only {' and '.join(map(shown, few))}. "
            "Did you cut off the other values, or return a comparison?"
        )
    return sentence or _unused(tried, parameters, answer, solution)


def _common(tried: Sequence[Tried], parameters: list[str]) -> str:
    """Find the one property that the arguments of all wrong cases share.

    If there is none, look for a property that the arguments of all right cases share.
    """
    wrong, right = (
        [outcome.case.arguments for outcome in tried if outcome.right is so] for so in (False, True)
    )
    if condition := _apart(wrong, right, parameters):
        return f"It is wrong only where {condition}, and right everywhere else."
    condition = _apart(right, wrong, parameters)
    return f"It is right only where {condition}, and wrong everywhere else." if condition else ""


def _is_named(parameter: str) -> bool:
    """Return whether a message to the learner may name this argument.

    Arguments that the learner does not know have a leading underscore in the table's call.
    """
    return not parameter.startswith("_")


def _apart(those: Sequence[tuple], others: Sequence[tuple], parameters: list[str]) -> str:
    """Find a property that the arguments of all cases in `those` have, and of no case in `others`.

    The property must be unique, and there must be at least two cases in `others`.
    """
    if not those or len(others) < 2:
        return ""
    conditions = []
    for table, many in (("one", 1), ("two", 2)):
        places = [k for k, name in enumerate(parameters) if _is_named(name)]
        for (holds, words), at in itertools.product(
            _relations(table, "x, y"[: 3 * many - 2]), itertools.combinations(places, many)
        ):
            so = [
                [_true(holds, [arguments[k] for k in at]) for arguments in group]
                for group in (those, others)
            ]
            if all(so[0]) and not any(so[1]):
                conditions.append(words.format(*(f"`{parameters[k]}`" for k in at)))
    for k, name in enumerate([] if conditions else parameters):
        if not _is_named(name):
            continue
        low, high = ([arguments[k] for arguments in group] for group in (those, others))
        if min(len(those), len(others)) > 2 and all(
            isinstance(x, numbers.Real) for x in low + high
        ):
            conditions += [f"`{name}` is {min(low):g} or more"] if min(low) > max(high) else []
            conditions += [f"`{name}` is {max(low):g} or less"] if max(low) < min(high) else []
    return conditions[0] if len(conditions) == 1 else ""


def _true(holds: Callable, arguments: list) -> bool:
    try:
        return bool(holds(*arguments))
    except Exception:
        return False


def _little(tried: Sequence[Tried]) -> str:
    """Say the little that we know, such as how close the results are or how many are right."""
    ran = [outcome for outcome in tried if outcome.value is not None]
    if len(ran) < 2 or not all(
        outcome.value.shape == outcome.target.shape and outcome.value.numel() for outcome in ran
    ):
        return ""
    off = [outcome for outcome in ran if not outcome.right]
    kinds = (
        ("near", "alike")[: len(off)] if len(_values(outcome.value for outcome in ran)) > 2 else ()
    )
    for holds, words in (row for kind in kinds for row in _relations(kind, "v, t")):
        if all(holds(outcome.value, outcome.target) for outcome in ran):
            return words
    far = max(
        float(((x.value - x.target).abs() / x.target.abs().clamp(min=1e-12)).max()) for x in off
    )
    if far < 0.01 and not all(
        torch.equal(outcome.target, outcome.target.round()) for outcome in ran
    ):
        return f"It is close, and at most {100 * far:.2g}% off."
    return f"Right in {len(ran) - len(off)} of {len(ran)} cases." if len(ran) > len(off) else ""


def _transformed(ran: Sequence[Tried]) -> str:
    for kind, fewest in (
        ("results", 2),
        ("rounded", 3),
    ):  # if all cases give the same number, a relation says nothing
        for function, words in _relations(kind, "t"):
            results = [_made(function, (outcome.target,)) for outcome in ran]
            pairs = zip(ran, results, strict=True)
            if all(
                _equal(outcome.value, x, outcome.allowed) and not x.isnan().all()
                for outcome, x in pairs
            ) and (len(_values(results)) >= fewest):
                return (
                    "In every case it is the expected result, "
                    f"{words}{'' if words.endswith('?') else '.'}"
                )
    return ""


def _values(results: Iterable[Tensor]) -> set[float]:
    """Return the set of numbers that occur in some results, up to rounding."""
    return {float(f"{x:.9g}") for result in results for x in result.flatten().tolist()}


def _inverted(ran: Sequence[Tried]) -> str:
    """Find a simple change that turns the learner's results into the expected results.

    `_transformed` looks for a change in the opposite direction.
    """
    for function, words in _relations("results", "t"):
        results = [_made(function, (outcome.value,)) for outcome in ran]
        if all(
            _equal(x, outcome.target, outcome.allowed)
            for outcome, x in zip(ran, results, strict=True)
        ) and (len(_values(outcome.target for outcome in ran)) > 1):
            return f"In every case your result, {words.rstrip('?')}, is the expected result."
    return ""


def _sizes(argument: Any) -> dict[str, float]:
    """Return the numbers that an argument provides, such as its sizes, keyed by a description.

    In a description, `{}` stands for the name of the argument.
    """
    if isinstance(argument, numbers.Real):
        return {} if isinstance(argument, bool) else {"`{}`": argument}
    sizes = {}
    with contextlib.suppress(TypeError):
        sizes["the length of `{}`"] = len(argument)
    if isinstance(argument, Tensor) and argument.ndim > 1:
        sizes |= {
            "the last size of `{}`": argument.shape[-1],
            "the second size of `{}`": argument.shape[1],
        }
    return sizes


def _sizes_of_case(case: Case, parameters: list[str]) -> dict[str, float]:
    """Return the numbers that the arguments of a case provide, and others computed from them."""
    sizes = {}
    for name, argument in zip(parameters, case.arguments, strict=False):
        for of, number in _sizes(argument).items() if _is_named(name) else ():
            for size, text in _relations("sizes", "x"):
                if number > 1 or (number > 0 and "logarithm" not in text):
                    sizes[text.format(of.format(name))] = size(number)
    return sizes


def _scaled(ran: Sequence[Tried], parameters: list[str]) -> str:
    """Find a factor, a difference or a power between the results and the expected ones.

    The factor, difference or power is either constant or given by an argument.
    """
    if any(
        outcome.value.shape != outcome.target.shape or not outcome.value.isfinite().all()
        for outcome in ran
    ):
        return ""
    sizes = [_sizes_of_case(outcome.case, parameters) for outcome in ran]
    for kind, by, words in (
        (
            "factor",
            _factor,
            {"times": lambda size: size, "divided by": lambda size: 1 / size if size else math.nan},
        ),
        ("gap", _gap, {"plus": lambda size: size, "minus": lambda size: -size}),
    ):
        pairs = [
            (by(outcome.value, outcome.target), size)
            for outcome, size in zip(ran, sizes, strict=True)
        ]
        pairs = [(x, size) for x, size in pairs if x is not None]
        known = [x for x, _ in pairs]
        if len(known) < 2 or any(map(math.isnan, known)):
            continue
        if max(known) - min(known) <= 1e-5 * max(map(abs, known)):
            value = sum(known) / len(known)
            if kind == "factor" and math.isclose(value, 1, rel_tol=1e-4):
                continue
            if kind == "gap":
                return (
                    f"In every case it is {abs(value):.6g} {'more' if value > 0 else 'less'} than "
                    "the expected result."
                )
            factors = ((constant(), label) for constant, label in _relations("factors", ""))
            label = next(
                (label for x, label in factors if math.isclose(x, value, rel_tol=1e-5)),
                f"{value:.6g} times",
            )
            return f"In every case it is {label} the expected result."
        for text, (word, apply) in itertools.product(
            pairs[0][1] if len(known) > 2 else (), words.items()
        ):
            values = [size.get(text, math.nan) for _, size in pairs]
            if max(values) - min(values) > 1e-9 and all(
                math.isclose(x, apply(v), rel_tol=1e-5, abs_tol=1e-9)
                for x, v in zip(known, values, strict=True)
            ):
                return f"In every case it is the expected result {word} {text}."
    return ""


def _factor(value: Tensor, target: Tensor) -> float | None:
    """Return the common factor between two results.

    The factor is None if both are 0, and NaN if there is no common factor.
    """
    if not target.any():
        return math.nan if value.any() else None
    factor = float((value * target).sum() / target.square().sum())
    return factor if factor and _equal(value, factor * target, 1e-5) else math.nan


def _gap(value: Tensor, target: Tensor) -> float:
    gap = (value - target).flatten()
    return (
        float(gap.mean())
        if float((gap - gap.mean()).abs().max()) <= 1e-5 * float(gap.abs().max())
        else math.nan
    )


def _region(off: Sequence[Tried]) -> str:
    """Describe the region outside which all results are right, such as the diagonal."""
    if any(
        outcome.value.shape != outcome.target.shape or outcome.value.numel() < 2 for outcome in off
    ):
        return ""
    wrong = [
        ~torch.isclose(outcome.value, outcome.target, rtol=1e-5, atol=1e-7, equal_nan=True)
        for outcome in off
    ]
    if all(x.ndim > 1 for x in wrong):
        axes = [
            (torch.arange(x.shape[-2])[:, None], torch.arange(x.shape[-1]), *x.shape[-2:])
            for x in wrong
        ]
        for region, ordinal in _relations("regions", "i, j, n, m"):
            inside = [region(*indices) for indices in axes]
            if all(not (x & ~y).any() and not y.all() for x, y in zip(wrong, inside, strict=True)):
                return f"Only {ordinal} is wrong in every case, and everything else is right."
    if all(x.ndim == 1 and not x.all() for x in wrong):
        places, last = [x.nonzero().flatten().tolist() for x in wrong], [len(x) - 1 for x in wrong]
        if places[0] and all(p == places[0] for p in places) and len(set(last)) == 1:
            *most, end = map(str, places[0])
            named = (
                f"entries {', '.join(most)} and {end} (counted from 0) are"
                if most
                else f"entry {end} (counted from 0) is"
            )
            return f"Only {named} wrong, in every case."
        for ordinal, at in (("first", [0] * len(last)), ("last", last)):
            if places == [[place] for place in at]:
                return f"Only the {ordinal} entry is wrong, in every case."
    return ""


def _unused(
    tried: Sequence[Tried], parameters: list[str], answer: Callable, solution: Callable
) -> str:
    """Find an argument that should change the result but does not.

    We run at least three cases again, with this argument taken from another case.
    """
    for k, name in enumerate(parameters):
        if not _is_named(name):
            continue
        pairs = [
            (first, second.case.arguments[k])
            for first, second in itertools.permutations(tried, 2)
            if _alike(first.case.arguments[k], second.case.arguments[k]) and first.value is not None
        ]
        stayed = []  # the cases in which the result has to change
        for outcome, replacement in pairs[:24]:
            arguments = (*outcome.case.arguments[:k], replacement, *outcome.case.arguments[k + 1 :])
            value, target = (_made(function, arguments) for function in (answer, solution))
            if (
                value is not None
                and target is not None
                and not _equal(target, outcome.target, 1e-5)
            ):
                stayed.append(_equal(value, outcome.value, 1e-9))
        if len(stayed) > 2 and all(stayed):
            return f"Your result does not change with `{name}`, but it should."
    return ""


def _alike(one: Any, other: Any) -> bool:
    """Return whether two arguments differ but are alike enough that one can replace the other."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and not torch.equal(one, other)
    return (
        type(one) is type(other)
        and isinstance(one, numbers.Real | str | torch.dtype)
        and one != other
    )


def _numbers(call: str, value: Any) -> Tensor:
    return tensor(call, value, "return a number or a tensor")


def _equal(value: Tensor | None, target: Tensor | None, tolerance: float) -> bool:
    """Return whether two results are the same numbers. None stands for a call that failed."""
    if value is None or target is None or value.shape != target.shape:
        return value is target
    scale = float(target.nan_to_num(0, 0, 0).abs().max()) if target.numel() else 0.0
    near = max(tolerance / 10 * (scale or 1.0), 1e-12)
    return torch.allclose(value, target, rtol=tolerance, atol=near, equal_nan=True)


def _copied(arguments: tuple) -> tuple:
    def copied(x: Any) -> Any:
        if callable(x):
            return x
        return x.clone() if isinstance(x, Tensor) else copy.deepcopy(x)

    return tuple(map(copied, arguments))


def _unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return before.shape == after.shape and torch.allclose(
            before, after, rtol=0, atol=0, equal_nan=True
        )
    return (
        nx.utils.graphs_equal(before, after)
        if isinstance(before, nx.Graph)
        else callable(before) or before == after
    )


def _own_line(answer: Callable, error: Exception) -> tuple[str, bool]:
    """Find the line of the learner's code in which an error occurred, as words for a sentence.

    We also return whether this line raised the error itself.
    """
    code, frames = (
        getattr(inspect.unwrap(answer), "__code__", None),
        traceback.extract_tb(error.__traceback__),
    )
    learner_frames = [frame for frame in frames if code and frame.filename == code.co_filename]
    line = learner_frames[-1].line if learner_frames else ""
    where = f" — in your line “{line[:80]}{'…' if len(line) > 80 else ''}”." if line else "."
    return where, bool(learner_frames) and learner_frames[-1] is frames[-1]


def clocked(work: Callable[[], Any], late: str = ENDLESS) -> Any:
    """Run a function under the time limit that all of the learner's calls in one check share.

    If this function is called inside another `clocked`, for example because a picture calls the
    learner's function, the limit that is already running applies.

    Raises:
        Wrong: if the time ran out. Its sentence is `late`, in which braces stand for the seconds.
    """
    if _clock.runs:
        return work()
    began, limit = time.thread_time(), None
    try:
        with limited(_clock.left, PATIENCE) as limit:
            _clock.runs = True
            return work()
    except Late as stopped:
        if limit is not None and stopped.limit is not limit:  # this limit belongs to our caller
            raise
        raise Wrong(late.format(_clock.seconds)) from None
    finally:
        _clock.runs = False
        _clock.left = max(
            _clock.left - (time.thread_time() - began), 1.0
        )  # an import may have taken all the time


_clock = SimpleNamespace(seconds=SECONDS, left=SECONDS, runs=False)
