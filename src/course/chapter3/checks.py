"""Check the answers to the exercises of chapter 3.

Call a function with your answer, which is a function or a value as the exercise says. The check
tries the answer on several cases. It returns a verdict and a sentence that says what is right or
wrong.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from course import exercises as checks
from course import training
from course.chapter3 import figures
from course.exercises import Case, Right, Wrong, drawn, exercise, normal, number, run, tensor
from course.maths import constructions, normalizers
from helpers import collapse, models, probe
from helpers.transformer import Decoder

MOST_STEPS = 20_000  # the number of calls of a function of n from which a loop counts as endless


progress = partial(checks.progress, globals().values())  # over all exercises of this module
compare, reason, refuse = (
    partial(each, globals()) for each in (checks.tabled, checks.reason, checks.refuse)
)


def probabilities(*shape: int, seed: int) -> Tensor:
    """Draw random rows that sum to one."""
    return normal(*shape, seed=seed).softmax(-1)


def _learners(answer: Any, book: Callable) -> Any:
    """Return the answer, or raise an error if it is the course's own function."""
    if answer is book:
        raise Wrong(
            f"{book.__name__} is the course's function, which is right. Write a "
            "function of your own."
        )
    return answer


@exercise
def total_variation(answer: Any) -> Right:
    """Check a function for the total variation of Barbero et al. (2024), without the factor 1/2."""
    return compare(
        "total_variation",
        _learners(answer, constructions.total_variation),
        constructions.total_variation,
    )


@exercise
def slope(answer: Any) -> Right:
    """Check the slope of ALiBi for which one more token changes the output most."""
    value = number("slope", answer)
    refuse("slope", value=value)
    change = 2 * math.exp(-value) * (1 - math.exp(-value))
    refuse("slope", "less", value=value, change=change, why=reason("slope", "why", value=value))
    return Right(
        f"the slope is ln 2 = {math.log(2):.4f}, because the last token then has "
        f"half of the attention. One more token changes the output by {change:.3f}."
    )


@exercise
def first_zero(answer: Any) -> Right:
    """Check a function for the length from which one more token does not move the last state.

    From this length on, the distance between the two states is exactly zero. The layers have
    windows, and the sequence is a first token followed by equal tokens.
    """
    compare("first_zero", answer, _first_zero)
    few, one, other = (run(f"first_zero({w})", answer, w) for w in ([16, 1], [8, 2, 5], [2, 5, 8]))
    return Right(
        f"your function gives {one} for [8, 2, 5], {other} for [2, 5, 8], in another order, "
        f"and {few} for [16, 1], whose widest "
        "window is twice as wide."
    )


def _first_zero(windows: Sequence[int]) -> int:
    """Return the length at which the first token no longer influences the last one.

    The function walks back from the last token through the windows of all layers.
    """
    back = {0}
    for window in windows:
        back = {far + step for far in back for step in range(window)}
    return max(back) + 1


@exercise
def moved(answer: Any) -> Right:
    """Check a function that measures how far the last hidden state moves if k tokens are repeated.

    The verdict gives the L1 distance for two sequences, in a random decoder and in the embedded
    model. The repeated tokens are the last k ones.
    """
    compare("moved", answer, _moved)
    second, fifth = [0] + 128 * [1, 1, 2] + [1, 1], [0] + 64 * [1, 1, 1, 1, 1, 2] + 5 * [1]
    unit, comma = (probe.encode(checks.model(), text)[-1:].tolist() for text in ("1", "1,"))
    first = probe.opening(checks.model()).tokens.tolist()
    read = (
        first + 16 * [*unit, *unit, *comma] + 2 * unit,
        first + 8 * [*5 * unit, *comma] + 5 * unit,
    )
    random = [
        float(run("moved", answer, random_states(0, layers=3), row, 3)) for row in (second, fifth)
    ]
    there = [float(run("moved", answer, states_of_the_model, row, 3)) for row in read]
    return Right(
        f"at {len(second)} tokens in three random layers your function gives {random[0]:.2g} "
        "with a comma after "
        f"every second 1, and {random[1]:.2g} after every fifth. "
        f"In {models.DEFAULT}, at {len(read[0])} and "
        f"{len(read[1])} tokens, it gives {there[0]:.2g} and {there[1]:.2g}."
    )


def _moved(states: Callable, tokens: list[int], k: int) -> Tensor:
    return (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).abs().sum()


def states_of_the_model(tokens: list[int]) -> Tensor:
    """Return the embedded model's final hidden states (n, d) of these tokens."""
    with torch.inference_mode():
        return checks.model().model.model(torch.tensor([tokens])).last_hidden_state[0].double()


def random_states(seed: int, layers: int = 1) -> Callable[[list[int]], Tensor]:
    """Return a function from tokens to the states (n, d) of a random decoder without positions."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        decoder = Decoder(3, layers=layers, encoding="NoPE").double()

    def states(tokens: list[int]) -> Tensor:
        with torch.no_grad():
            return decoder.states(torch.as_tensor([tokens]))[0]

    return states


@exercise
def first_collision(answer: Any) -> Right:
    """Check a function for the first length n at which a format cannot tell f(n) from f(n + 1)."""
    learners, row = (
        _learners(answer, constructions.first_collision),
        checks.tables(globals())["first_collision"],
    )
    unseen = checks.given(globals(), "first_collision", "unseen")
    return checks.compare(
        globals(), row["call"], learners, _collision, FUNCTIONS, row["mistakes"], unseen=unseen
    )


def _guarded(function: Callable) -> Callable:
    """Return the function with checks on the lengths with which it is called.

    A call raises `Wrong` if a loop goes past the answer, or if the length has a coarse
    floating-point format.
    """

    def guarded(n):
        coarse = isinstance(n, Tensor) and n.is_floating_point() and n.dtype != torch.float64
        if coarse or float(torch.as_tensor(n).max()) > MOST_STEPS:
            refuse("first_collision", "called", n=n, coarse=coarse)
        return function(n)

    return guarded


FUNCTIONS = [
    Case(text, (_guarded(function), dtype))
    for text, (function, dtype) in checks.given(globals(), "first_collision")
]


@cache  # a check compares an answer with this value and with its mistakes
def _collision(
    function: Callable, dtype: torch.dtype, start: int = 1, rtol: float = 0.0, atol: float = 0.0
) -> int:
    """Return the first length n at which f(n) and f(n + 1) are equal or close in the format."""

    def rounded(n: int) -> Tensor:
        return collapse.round_to(torch.tensor(function(n), dtype=torch.float64), dtype)

    steps = itertools.count(start)
    return next(n for n in steps if torch.isclose(rounded(n), rounded(n + 1), rtol=rtol, atol=atol))


@exercise
def stays_nearest(answer: Any) -> Right:
    """Check a function for how often a state with an error is nearest to its own exact state.

    The exact states of the prompts lie on a straight line.
    """
    return compare(
        "stays_nearest",
        answer,
        _stays_nearest,
        picture=lambda: drawn(*figures.nearest_by_error(answer, "nearest")),
    )


def _stays_nearest(length: float, share: float) -> float:
    return math.erf(0.5 / (length * math.sqrt(share)) / math.sqrt(2))


@exercise
def kernel(answer: Any) -> Right:
    """Check a function that returns bounded attention logits, one for each distance.

    With these logits, one more token must always change the head's output by at least 1.
    """
    call = "kernel(torch.arange(10_001).double())"
    logits = tensor(call, run(call, answer, torch.arange(10_001, dtype=torch.float64)))
    refuse("kernel", logits=logits)
    change = float(
        constructions.repeat_last(lambda gap: logits[: len(gap)].flip(0), figures.PERIODIC)[0]
    )
    refuse("kernel", "still", change=change, why=reason("kernel", "why", logits=logits))
    return Right(
        (
            f"your logits are bounded by {float(logits.abs().max()):.2f}, and one token "
            f"changes the output by {change:.3f}."
        ),
        lambda: drawn(*figures.head(logits)),
    )


@exercise
def adaptive_temperature(answer: Any) -> Right:
    """Check a function for the adaptive temperature, as Veličković et al. (2024) define it."""
    learners = _learners(answer, normalizers.adaptive_temperature)
    return compare(
        "adaptive_temperature",
        learners,
        normalizers.adaptive_temperature,
        picture=lambda: drawn(*figures.sharpening(learners)),
    )


def _adaptive(
    x: Tensor, unit=1.0, least=1.0, power=1, rows=True, naive=False, from_=0.5, step=1
) -> Tensor:
    p = x.softmax(-1)
    terms = -p * p.log() if naive else torch.special.entr(p)
    entropy = (terms.sum(-1, keepdim=True) if rows else terms.sum()) / unit
    factor = torch.zeros_like(entropy)
    for coefficient in (-0.037, 0.481, -2.3, 4.917, -1.791)[::step]:
        factor = factor * entropy + coefficient
    factor = torch.where(entropy > from_, factor.clamp(min=least), 1.0)
    return (factor**power * x).softmax(-1)


@exercise
def seq_vcr_loss(answer: Any) -> Right:
    """Check a function for the regulariser Seq-VCR against its definition."""
    return compare("seq_vcr_loss", _learners(answer, training.seq_vcr_loss), training.seq_vcr_loss)


def _seq_vcr(
    x: Tensor, biased=False, diagonal=False, pooled=False, root=0.5, eta=0.001, weights=(1.0,
    0.004), centred=True, cut=True, outside=False, absolute=False,
) -> Tensor:  # fmt: skip
    total = torch.zeros((), dtype=x.dtype)
    for position in x.unbind(1):
        rows = x.flatten(0, 1) if pooled else position
        c = (
            torch.cov(rows.T, correction=0 if biased else 1)
            if centred
            else rows.T @ rows / (len(rows) - 1)
        )
        variance, size = c.diagonal(), c.abs() if absolute else c.square()
        off = size.sum() - (0 if diagonal else size.diagonal().sum())
        short = 1 - (variance.sqrt() + eta if outside else (variance + eta) ** root)
        total += weights[0] * (short.clamp(min=0) if cut else short).sum() + weights[1] * off
    return total / x[0].numel()


@exercise
def enough_tokens(answer: Any) -> Right:
    """Check a function for a length after which the total variation stays below epsilon.

    The function takes n0, B and epsilon. The length must be within a factor of 8 of the smallest
    such length.
    """
    for n0, bound, epsilon in ((5, 0.5, 0.1), (20, 1.0, 0.05), (1, 6.0, 0.001), (300, 1.0, 0.1)):
        call = f"enough_tokens({n0}, {bound}, {epsilon})"
        n = number(call, run(call, answer, n0, bound, epsilon))
        least = _least_length(n0, bound, epsilon)
        # the variation rises up to this length, and then it falls
        worst = max(n, n0 * (1 + math.exp(bound)))
        refuse(
            "enough_tokens",
            call=call,
            n=n,
            n0=n0,
            bound=bound,
            epsilon=epsilon,
            least=least,
            worst=worst,
        )
    return Right(
        "your length is enough for the worst rows that we tried, and it is at most "
        "8 times the smallest such length."
    )


def _variation(n: float, n0: int, bound: float) -> float:
    near = n0 * math.exp(2 * bound)  # near logits are B, all far logits are -B
    return 2 * (near / (near + n - n0) - n0 / n)


def _least_length(n0: int, bound: float, epsilon: float) -> int:
    """Return the first length whose total variation is at most epsilon, after the maximum."""
    lengths = range(2 * n0 + 1, 2 * n0 + math.ceil(4 * n0 * math.exp(2 * bound) / epsilon))
    return lengths[0] + bisect.bisect_left(
        lengths, -epsilon, key=lambda n: -_variation(n, n0, bound)
    )
