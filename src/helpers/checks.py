"""What the checks behind the exercises share: run the learner's function, compare, name the mistake, show a verdict.

A chapter's checks are functions under `@exercise`. They return `Right` or raise `Wrong`; the learner sees a `Verdict`,
which is an output and no error, so that "Run all" goes to the end.
"""

import _thread
import contextlib
import copy
import html
import numbers
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import networkx as nx
import torch
from IPython.display import HTML
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from torch import Tensor

from helpers import compute, show

LEVELS = {"●": "easy", "●●": "moderate", "●●●": "demanding", "●●●●": "hard", "●●●●●": "research"}
SECONDS = 20.0  # a check that takes longer is stopped: a loop that does not end
MOST_NUMBERS = 12  # a tensor with more is shown by its shape


class Wrong(Exception):
    """What the learner's answer does not do yet, in a sentence."""


class Guessed(Wrong):
    """What comes instead of what the learner predicted: a guess is no mistake, and is not marked as one."""


class Empty(Wrong):
    """Nothing was filled in."""


class Right(NamedTuple):
    """What the learner's answer does, in a sentence, and what to draw with it (called once the check is through)."""

    sentence: str
    picture: Callable[[], HTML] | None = None


class Trap(NamedTuple):
    """A mistake that is often made: the function that makes it, and the sentence that names it."""

    sentence: str
    function: Callable


class Case(NamedTuple):
    """Arguments of one call, and the text from which a learner can build them again."""

    text: str
    arguments: tuple


class Verdict:
    """What a check shows: "Right" or "Not yet", with a sign, a colour and a sentence; true when right.

    A prediction that does not come true is `guessed`: told, and not marked. One on the book's own answer is `quiet`: it
    says only whether that passes, so that "Run all" gives nothing away; on the built page, where it stands in a fold, it
    says all. There, where nobody can fill anything in, an `empty` answer is `untried`: no mark, and where the check runs.
    """

    def __init__(
        self,
        right: bool,
        sentence: str,
        picture: HTML | None = None,
        quiet: bool = False,
        guessed: bool = False,
        empty: bool = False,
    ):
        self.right, self.sentence, self.picture, self.guessed = right, sentence, picture, guessed
        self.untried = empty and compute.building()
        self.quiet = quiet and right and not compute.building()

    def __bool__(self) -> bool:
        return self.right

    @property
    def mark(self) -> str:
        """The sign and the word for it."""
        return "✓ Right" if self.right else "○ You guessed, and it comes otherwise" if self.guessed else "✗ Not yet"

    def __repr__(self) -> str:
        if self.quiet:
            return "The book's answer passes this check."
        if self.untried:
            return "The check runs in the notebook, on your answer."
        return f"{self.mark}: {self.sentence}"

    def _repr_html_(self) -> str:
        if self.quiet or self.untried:
            return f"<p>{self!r}</p>"
        colour = "#00805c" if self.right else "#767676" if self.guessed else "#d55e00"
        box = f"border-left:.3em solid {colour};padding:.4em .8em;margin:.3em 0"
        shown = f'<div style="{box}" role="status"><strong>{self.mark}:</strong> {html.escape(self.sentence)}</div>'
        return shown + (self.picture.data if self.picture else "")


class Exercise:
    """One check. Call it with the learner's answers; `solution` runs it on the book's and leaves no mark in `progress`."""

    def __init__(self, number: str, title: str, check: Callable[..., Right], seconds: float = 0.0):
        self.number, self.title, self.check, self.seconds = number, title, check, seconds
        self.last: Verdict | None = None
        self.__doc__ = check.__doc__

    def __call__(self, *answers: Any) -> Verdict:
        self.last = self._verdict(answers)
        return self.last

    def solution(self, *answers: Any) -> Verdict:
        """The verdict on the book's answer, without a mark in `progress`."""
        return self._verdict(answers, quiet=True)

    def _verdict(self, answers: tuple, quiet: bool = False) -> Verdict:
        try:
            with _limited(max(SECONDS, self.seconds)):
                right = self.check(*answers)
            return Verdict(True, right.sentence, right.picture() if right.picture else None, quiet)
        except Wrong as wrong:
            return Verdict(False, str(wrong), guessed=isinstance(wrong, Guessed), empty=isinstance(wrong, Empty))


def exercise(number: str, title: str, seconds: float = 0.0) -> Callable[[Callable[..., Right]], Exercise]:
    """Make an exercise of a check, under its number and title; `seconds` for one that trains and so takes longer."""
    return lambda check: Exercise(number, title, check, seconds)


def _state(verdict: Verdict | None) -> str:
    if verdict is None or verdict.untried:
        return "○ not tried"
    return "✓ right" if verdict else "○ guessed otherwise" if verdict.guessed else "✗ not yet"


def progress(values: Iterable[Any]) -> HTML:
    """The exercises among the values of a chapter's module, which of them are right, and the next one to do."""
    exercises = [each for each in values if isinstance(each, Exercise)]
    done = sum(bool(each.last) for each in exercises)
    after = next((each for each in exercises if not each.last), None)
    rows = "".join(f"<li>{_state(each.last)}: {html.escape(f'{each.number} {each.title}')}</li>" for each in exercises)
    following = f"Next: {after.number} {after.title}." if after else "All done."
    return HTML(
        f"<p><strong>{done} of {len(exercises)} right.</strong> {html.escape(following)}</p>"
        f'<ul style="list-style:none">{rows}</ul>'
    )


def drawn(figure: Figure | Artist, finding: str, caption: str = "With your answer. ") -> HTML:
    """A picture of the learner's answer, with its finding."""
    return show(figure, alt=finding, caption=f"{caption}{finding}")


def tensor(call: str, answer: Any) -> Tensor:
    """The answer in float64.

    Raises:
        Wrong: it is not made of numbers; the sentence begins with `call`.
    """
    try:
        return torch.as_tensor(answer).detach().double()
    except (TypeError, ValueError, RuntimeError):
        raise Wrong(f"{call} must be numbers in a tensor, not {shown(answer)}.") from None


def cases(names: Mapping[str, Any], *texts: str) -> list[Case]:
    """Build the arguments of each call from the text that the learner is shown.

    >>> cases({"torch": torch}, "torch.ones(2), 3")[0].text
    'torch.ones(2), 3'
    """
    return [Case(text, eval(f"({text},)", dict(names))) for text in texts]


def normal(*shape: int, seed: int) -> Tensor:
    """Standard normal numbers in float64, the same at every call: what checks feed to an answer.

    >>> normal(2, 3, seed=0).shape
    torch.Size([2, 3])
    """
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def compare(
    name: str,
    answer: Any,
    solution: Callable,
    given: Sequence[Case],
    traps: Sequence[Trap] = (),
    tolerance: float = 1e-6,
    picture: Callable[[], HTML] | None = None,
) -> Right:
    """Compare the learner's function with the solution case by case; where they differ, look for a known mistake.

    Args:
        tolerance: relative to the largest entry, at least absolute; float32 answers get 1e-5.

    Raises:
        Wrong: the first case that differs, with its arguments, both results, and the trap that it fell into.
    """
    for k, case in enumerate(given):
        call = f"{name}({case.text})"
        got, wanted = run(call, answer, *case.arguments), solution(*_copied(case.arguments))
        value, target = _numbers(call, got), _numbers(call, wanted)
        if _equal(value, target, max(tolerance, 1e-5 if _single(got) else 0.0)):
            continue
        if bool(torch.isnan(value).any()):
            difference = f"{call} contains NaN: {shown(got)}; expected {shown(wanted)}."
        elif value.shape != target.shape:
            shapes = " and ".join(str(tuple(x.shape)) for x in (value, target))
            difference = f"{call} has the wrong shape: yours and the expected one are {shapes}."
        else:
            difference = f"{call} {_differing(got, wanted, value, target)}."
        raise Wrong(f"{difference} {_mistake(answer, solution, given, k, traps, tolerance)}".strip())
    return Right(f"{name} agrees with the solution on {len(given)} cases.", picture)


def filled(name: str, answer: Any, todo: str = "fill it in, then run the check again") -> None:
    """Nothing, where an answer was filled in.

    Raises:
        Empty: it was not.
    """
    if answer is ...:
        raise Empty(f"{name} is still empty: {todo}.")


def run(call: str, answer: Any, *arguments: Any) -> Any:
    """The answer's result on copies of the arguments; `call` is how the learner would write it.

    Raises:
        Wrong: the answer is no function, is empty, raises, returns nothing, or changes an argument.
    """
    name = call.partition("(")[0]
    filled(name, answer)
    if not callable(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")
    mine = _copied(arguments)
    try:
        result = answer(*mine)
    except Wrong:  # from a function that the check handed over
        raise
    except Exception as error:
        if isinstance(error, NotImplementedError) and not error.args and _raised_by(answer, error):  # not by torch
            raise Empty(f"{name} is still empty: write it, then run the check again.") from None
        raise Wrong(f"{call} raised {type(error).__name__}: {error}{_own_line(answer, error)}") from None
    if result is None:
        raise Wrong(f"{call} returned nothing. Is there a return statement?")
    for before, after in zip(arguments, mine, strict=True):
        if not _unchanged(before, after):
            raise Wrong(
                f"{call} changes its argument: work on a copy, so that whoever called it can go on with theirs."
            )
    return result


def number(name: str, answer: Any) -> float:
    """The answer as a finite number.

    Raises:
        Wrong: it is empty or no number.
    """
    filled(name, answer)
    try:
        value = float(answer)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise Wrong(f"{name} must be a number, not {shown(answer)}.") from None
    if not abs(value) < float("inf"):
        raise Wrong(f"{name} must be finite, not {value}.")
    return value


def choice(name: str, answer: Any, reasons: Mapping[str, str], right: str) -> Right:
    """A prediction: the answer is one of `reasons`, each with the sentence that says why it is right or wrong.

    Raises:
        Wrong: it is empty, none of these, or not the right one; of a "prediction" that is `Guessed`.
    """
    filled(name, answer, "predict first, then compute")
    if not isinstance(answer, Hashable) or answer not in reasons:
        raise Wrong(f"{name} must be one of {', '.join(map(repr, reasons))}, not {shown(answer)}.")
    if answer != right:
        raise (Guessed if name == "prediction" else Wrong)(reasons[answer])
    return Right(reasons[right])


def edges(name: str, answer: Any, count: int) -> list[tuple]:
    """The answer as `count` pairs of nodes, from whatever container it comes in.

    Raises:
        Wrong: it is empty or not so many pairs.
    """
    filled(name, answer)
    what = "a pair of nodes" if count == 1 else f"{count} pairs of nodes"
    try:
        pairs = [tuple(pair.tolist() if hasattr(pair, "tolist") else pair)[:3] for pair in answer]
    except TypeError:
        raise Wrong(f"{name} must be {what}, not {shown(answer)}.") from None
    pairs = [pair[:2] if len(pair) == 3 and isinstance(pair[2], dict) else pair for pair in pairs]
    if len(pairs) != count or any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
        raise Wrong(f"{name} must be {what}, each of two different nodes, not {shown(answer)}.")
    return pairs


def edge(name: str, answer: Any) -> tuple:
    """The answer as one pair of nodes, from whatever container it comes in.

    Raises:
        Wrong: it is empty or no pair.
    """
    return edges(name, answer if answer is ... else [answer], 1)[0]


def shown(value: Any) -> str:
    """A value as a learner can read it: numbers to six digits, small tensors whole."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | int):
        return f"{float(value):.6g}"
    if isinstance(value, Tensor) or (
        hasattr(value, "tolist") and "object" not in str(getattr(value, "dtype", "object"))
    ):
        tensor = torch.as_tensor(value).detach()
        if tensor.ndim == 0:
            return f"{tensor.item():.6g}"
        if tensor.numel() > MOST_NUMBERS:
            return f"a tensor of shape {tuple(tensor.shape)} that starts {shown(tensor.flatten()[:4])}"
        return str(_rounded(tensor.tolist()))
    if isinstance(value, nx.Graph):
        return f"a graph of {len(value)} nodes and {value.number_of_edges()} edges"
    if isinstance(value, list | tuple) and value and all(isinstance(x, float) for x in value):
        return str(_rounded([float(x) for x in value])) if len(value) <= MOST_NUMBERS else f"{len(value)} numbers"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _rounded(value: Any) -> Any:
    return [_rounded(x) for x in value] if isinstance(value, list) else float(f"{value:.6g}")


def _differing(got: Any, wanted: Any, value: Tensor, target: Tensor) -> str:
    """Both results, or the first entry in which they differ, with as many digits as that takes."""
    mine, theirs = shown(got), shown(wanted)
    if mine != theirs and value.numel() <= MOST_NUMBERS:
        return f"is {mine}; expected {theirs}"
    far = ~torch.isclose(value, target, rtol=1e-5, atol=1e-9, equal_nan=True)
    place = tuple((far if far.any() else value != target).nonzero()[0].tolist())
    a, b = float(value[place]), float(target[place])
    digits = next((k for k in range(6, 17) if f"{a:.{k}g}" != f"{b:.{k}g}"), 17)
    where = f"[{', '.join(map(str, place))}] " if place else ""
    return f"{where}is {a:.{digits}g}; expected {b:.{digits}g}"


def _mistake(
    answer: Any, solution: Callable, given: Sequence[Case], first: int, traps: Sequence[Trap], tolerance: float
) -> str:
    """The sentence of the trap that gives what the answer gives, on every case on which both run; or nothing."""
    known = [
        Trap("On every case it is twice what is expected.", lambda *x: 2 * _numbers("", solution(*x))),
        Trap("On every case it is half of what is expected.", lambda *x: _numbers("", solution(*x)) / 2),
        Trap("On every case it has the wrong sign.", lambda *x: -_numbers("", solution(*x))),
    ]
    for trap in (*traps, *known):
        alike = [_agree(answer, trap.function, case, max(tolerance, 1e-5)) for case in given]
        if alike[first] and False not in alike:
            return trap.sentence
    return ""


def _agree(answer: Callable, trap: Callable, case: Case, tolerance: float) -> bool | None:
    """Whether both give the same on a case; None where one of them does not run."""
    try:
        ours, theirs = (_numbers("", f(*_copied(case.arguments))) for f in (answer, trap))
    except Exception:
        return None
    return _equal(ours, theirs, tolerance)


def _numbers(call: str, value: Any) -> Tensor:
    try:
        if isinstance(value, numbers.Real):
            value = float(value)
        if str(getattr(value, "dtype", "")) == "object":  # numpy's arrays of whole numbers of any size
            value = value.astype(float)
        return torch.as_tensor(value).detach().double()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Wrong(f"{call} must return a number or a tensor, not {shown(value)}.") from None


def _equal(value: Tensor, target: Tensor, tolerance: float) -> bool:
    scale = float(target.nan_to_num(0, 0, 0).abs().max()) if target.numel() else 0.0
    allowed = tolerance * max(1.0, scale)
    return value.shape == target.shape and torch.allclose(value, target, rtol=0, atol=allowed, equal_nan=True)


def _single(value: Any) -> bool:
    return "float32" in str(getattr(value, "dtype", ""))


def _copied(arguments: tuple) -> tuple:
    return tuple(x if callable(x) else x.clone() if isinstance(x, Tensor) else copy.deepcopy(x) for x in arguments)


def _unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return before.shape == after.shape and torch.allclose(before, after, rtol=0, atol=0, equal_nan=True)
    return nx.utils.graphs_equal(before, after) if isinstance(before, nx.Graph) else callable(before) or before == after


def _raised_by(answer: Callable, error: Exception) -> bool:
    """Whether the learner's own code raised it, not what it calls."""
    code, frames = getattr(answer, "__code__", None), traceback.extract_tb(error.__traceback__)
    return code is not None and frames[-1].filename == code.co_filename


def _own_line(answer: Callable, error: Exception) -> str:
    """Where in the learner's own code it happened."""
    code = getattr(answer, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code and frame.filename == code.co_filename]
    return f" — in your line “{own[-1].line}”." if own and own[-1].line else "."


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Stop what takes longer, with a sentence; works where the block runs in the main thread."""
    fired = threading.Event()

    def stop() -> None:
        fired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not fired.is_set():
            raise
        raise Wrong(
            f"your code ran for {seconds:.0f} seconds and was stopped: does a loop in it never end? "
            "Look at the condition that should end it, and at what changes in each round."
        ) from None
    finally:
        timer.cancel()
