"""What is behind the exercises of chapter 3."""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter3 import figures
from course.checks import Case, Right, Wrong, drawn, exercise, normal, number, run, tensor
from helpers import collapse, models, probe
from helpers.transformer import Decoder

MOST_STEPS = 20_000  # calls of a function of n, before a loop counts as endless


progress = partial(checks.progress, globals().values())  # of all exercises of this module
compare = partial(checks.tabled, globals())


def probabilities(*shape: int, seed: int) -> Tensor:
    """Random rows that sum to one."""
    return normal(*shape, seed=seed).softmax(-1)


def _learners(answer: Any, book: Callable) -> Any:
    """The answer, unless it is the book's own function."""
    if answer is book:
        raise Wrong(f"{book.__name__} is the book's own function, and it is right. Now write one that is yours.")
    return answer


@exercise
def total_variation(answer: Any) -> Right:
    """The paper's total variation, without the factor 1/2."""
    return compare("total_variation", _learners(answer, collapse.total_variation), collapse.total_variation)


@exercise
def slope(answer: Any) -> Right:
    """The slope at which one more token changes the output most."""
    value = number("slope", answer)
    if not value > 0:
        raise Wrong(f"slope must be positive, not {value:g}: then the head prefers near tokens.")
    change = 2 * math.exp(-value) * (1 - math.exp(-value))
    if abs(value - math.log(2)) > 1e-3:
        found = f"slope = {value:g} gives a change of {change:.6f} for long sequences; the largest is larger."
        if abs(value - 0.5) < 1e-3:
            found += " Is 1/2 your x = e^-s? Then solve for the slope s."
        elif abs(value - math.log(2)) < 0.02:
            found = f"slope = {value:g} is near: give it to three decimals."
        elif abs(value - 1) < 1e-3:
            found += " It is not where the last two weights are in the ratio e: write the change as a function of e^-s."
        else:
            found += " Write x = e^-s: the change is a parabola in x."
        raise Wrong(found)
    return Right(
        f"slope = ln 2 = {math.log(2):.4f}, where the last token has half of the attention; change {change:.3f}."
    )


@exercise
def first_zero(answer: Any) -> Right:
    """From which length on layers with windows make the distance exactly zero, on a first token and equal tokens."""
    compare("first_zero", answer, _first_zero)
    few, one, other = (run(f"first_zero({w})", answer, w) for w in ([16, 1], [8, 2, 5], [2, 5, 8]))
    return Right(
        f"your function gives {one} for [8, 2, 5], {other} for [2, 5, 8], in another order, and {few} for [16, 1], whose widest "
        "window is twice as wide."
    )


def _first_zero(windows: Sequence[int]) -> int:
    """By walking: the first number of ones of which the last has not heard of the first token, number 0."""
    n = 1
    while True:
        heard = {n}
        for window in windows:
            heard = {j for i in heard for j in range(max(0, i - window + 1), i + 1)}
        if 0 not in heard:
            return n
        n += 1


@exercise
def moved(answer: Any) -> Right:
    """The L1 distance of two last states, after the last k tokens are repeated; then of two rows: in a random decoder, and in the embedded model."""
    compare("moved", answer, _moved)
    states = random_states(0, layers=3)
    rows = {"second": [0] + 128 * [1, 1, 2] + [1, 1], "fifth": [0] + 64 * [1, 1, 1, 1, 1, 2] + 5 * [1]}
    found = {name: float(run("moved", answer, states, row, 3)) for name, row in rows.items()}
    unit, comma = (probe.encode(models.default(), text)[-1:].tolist() for text in ("1", "1,"))
    first = probe.opening(models.default()).tokens.tolist()
    read = {
        "second": first + 16 * [*unit, *unit, *comma] + 2 * unit,
        "fifth": first + 8 * [*5 * unit, *comma] + 5 * unit,
    }
    there = {name: float(run("moved", answer, states_of_the_model, row, 3)) for name, row in read.items()}
    return Right(
        f"at {len(rows['second'])} tokens in three random layers your function gives {found['second']:.2g} with a comma after "
        f"every second 1, and {found['fifth']:.2g} after every fifth. In {models.DEFAULT}, at {len(read['second'])} and "
        f"{len(read['fifth'])} tokens, it gives {there['second']:.2g} and {there['fifth']:.2g}."
    )


def _moved(states: Callable, tokens: list[int], k: int) -> Tensor:
    return (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).abs().sum()


def states_of_the_model(tokens: list[int]) -> Tensor:
    """The embedded model's final states (n, d) of these tokens."""
    with torch.inference_mode():
        return models.default().model.model(torch.tensor([tokens])).last_hidden_state[0].double()


def random_states(seed: int, layers: int = 1) -> Callable[[list[int]], Tensor]:
    """From tokens to the states (n, d) of a random decoder of causal layers, without positions."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        decoder = Decoder(3, layers=layers, encoding="NoPE").double()

    def states(tokens: list[int]) -> Tensor:
        with torch.no_grad():
            return decoder.states(torch.as_tensor([tokens]))[0]

    return states


@exercise
def first_collision(answer: Any) -> Right:
    """The first length at which a number type cannot tell f(n) from f(n + 1)."""
    learners, row = _learners(answer, collapse.first_collision), checks.tables(globals())["first_collision"]
    return checks.compare(globals(), row["call"], learners, _collision, FUNCTIONS, row["mistakes"])


def _guarded(function: Callable) -> Callable:
    """The function, with a sentence for a loop that walks past the answer, and for a length in a coarse type."""

    def guarded(n):
        if isinstance(n, Tensor) and n.is_floating_point() and n.dtype != torch.float64:
            raise Wrong(
                f"first_collision called its function with a {str(n.dtype).removeprefix('torch.')}: compute f(n) exactly, "
                "for a whole number n, and round the result."
            )
        if float(torch.as_tensor(n).max()) > MOST_STEPS:
            raise Wrong(
                f"first_collision called its function with n > {MOST_STEPS:,}, and the first equal pair is earlier: go "
                "up from n = 1, and compare the rounded f(n) with the rounded f(n + 1)."
            )
        return function(n)

    return guarded


FUNCTIONS = [
    Case(f"{text}, torch.{kind}", (_guarded(function), getattr(torch, kind)))
    for text, function, kinds in (
        ("lambda n: 1 / n", lambda n: 1 / n, ("bfloat16", "float16")),
        ("lambda n: 2 + 1 / n", lambda n: 2 + 1 / n, ("bfloat16", "float16", "float32")),
        ("lambda n: 1000 + 1 / n", lambda n: 1000 + 1 / n, ("bfloat16", "float16")),
    )
    for kind in kinds
]


@cache  # a check compares an answer with it, and with three mistakes
def _collision(function: Callable, dtype: torch.dtype, start: int = 1) -> int:
    return _first_equal(function, dtype, start, torch.equal)


@cache
def _near(function: Callable, dtype: torch.dtype, least: float = 1e-3) -> int:
    return _first_equal(function, dtype, 1, lambda x, y: bool((x.double() - y.double()).abs() <= least))


@cache
def _close(function: Callable, dtype: torch.dtype) -> int:
    return _first_equal(function, dtype, 1, torch.isclose)


def _first_equal(function: Callable, dtype: torch.dtype, start: int, equal: Callable) -> int:
    n = start
    while not equal(_rounded(function(n), dtype), _rounded(function(n + 1), dtype)):
        n += 1
    return n


def _rounded(value: float, dtype: torch.dtype) -> Tensor:
    return collapse.round_to(torch.tensor(value, dtype=torch.float64), dtype).to(dtype)


@exercise
def stays_nearest(answer: Any) -> Right:
    """How often a prompt with an error stays the nearest of all on a straight line of prompts."""

    def either(tail: Callable[[float], float], root=0.5, half=0.5) -> Callable:
        return lambda length, share: tail(half / (length * share**root))

    return compare(
        "stays_nearest", answer, _stays_nearest, picture=lambda: drawn(*figures.along(answer, "nearest")), either=either
    )


def _within(x: float) -> float:
    """How often a standard normal number is within x of 0."""
    return math.erf(x / math.sqrt(2))


def _stays_nearest(length: float, share: float) -> float:
    return _within(0.5 / (length * math.sqrt(share)))


@exercise
def kernel(answer: Any) -> Right:
    """Bounded logits, a function of distance, whose head keeps changing by at least 1."""
    distance = torch.arange(10_001, dtype=torch.float64)
    logits = run("kernel(torch.arange(10_001).double())", answer, distance)
    logits = tensor("kernel(torch.arange(10_001).double())", logits)
    if logits.shape != distance.shape:
        raise Wrong("kernel must take a tensor of distances and return logits of the same shape.")
    if not torch.isfinite(logits).all() or logits.abs().max() > 3:
        raise Wrong(f"the logits must stay within [-3, 3]; the largest size is {float(logits.abs().max()):.4g}.")
    if bool((logits == logits[0]).all()):
        raise Wrong("all logits are equal: then the head takes the mean, which collapses.")
    change = float(collapse.repeat_last(lambda gap: logits[: len(gap)].flip(0), figures.PERIODIC)[0])
    if change < 1:
        why = "the far logits hardly vary, so the head is a mean there" if float(logits[5000:].std()) < 0.1 else ""
        if not why and float(logits.abs().max()) < 2:
            why = f"the contrast is weak: logits within ±{float(logits.abs().max()):.2g} hardly prefer one token to another"
        why = why or "after a shift by one the head should read values of the other sign; yours reads too many of both"
        raise Wrong(f"repeating the last of 10,000 tokens changes the output by {change:.3g}, less than 1: {why}.")
    bound = float(logits.abs().max())
    return Right(
        f"bounded by {bound:.2f}, and one token changes the output by {change:.3f}.",
        lambda: drawn(*figures.head(logits)),
    )


@exercise
def adaptive_temperature(answer: Any) -> Right:
    """Adaptive temperature, as Veličković et al. (2024) define it."""

    def picture() -> HTML:
        return drawn(*figures.sharpening(3, answer))

    return compare(
        "adaptive_temperature",
        _learners(answer, collapse.adaptive_temperature),
        collapse.adaptive_temperature,
        picture=picture,
    )


def _adaptive(reverse=False, unit=1.0, least=1.0, power=1, rows=True, naive=False, from_=0.5) -> Callable:
    def adaptive(x: Tensor) -> Tensor:
        p = x.softmax(-1)
        terms = -p * p.log() if naive else torch.special.entr(p)
        entropy = (terms.sum(-1, keepdim=True) if rows else terms.sum()) / unit
        factor = torch.zeros_like(entropy)
        coefficients = (-0.037, 0.481, -2.3, 4.917, -1.791)
        for coefficient in reversed(coefficients) if reverse else coefficients:
            factor = factor * entropy + coefficient
        factor = torch.where(entropy > from_, factor.clamp(min=least), 1.0)
        return (factor**power * x).softmax(-1)

    return adaptive


@exercise
def seq_vcr_loss(answer: Any) -> Right:
    """The Seq-VCR loss."""
    return compare("seq_vcr_loss", _learners(answer, collapse.seq_vcr_loss), collapse.seq_vcr_loss)


def _seq_vcr(
    biased=False, pairs=1.0, diagonal=False, pooled=False, root=0.5, eta=0.001, weights=(1.0, 0.004), centred=True,
    cut=True, outside=False, absolute=False,
) -> Callable:  # fmt: skip
    def loss(x: Tensor) -> Tensor:
        positions, width = x.shape[1], x.shape[2]
        total = torch.zeros((), dtype=x.dtype)
        for i in range(positions):
            rows = x.flatten(0, 1) if pooled else x[:, i]
            c = torch.cov(rows.T, correction=0 if biased else 1) if centred else rows.T @ rows / (len(rows) - 1)
            variance, size = c.diagonal(), c.abs() if absolute else c.square()
            off = size.sum() - (0 if diagonal else size.diagonal().sum())
            short = 1 - (variance.sqrt() + eta if outside else (variance + eta) ** root)
            total += weights[0] * (short.clamp(min=0) if cut else short).sum() + weights[1] * pairs * off
        return total / (positions * width)

    return loss


@exercise
def enough_tokens(answer: Any) -> Right:
    """A length after which the total variation stays below epsilon, from n0 and B; within a factor of 8 of the least."""
    for n0, bound, epsilon in ((5, 0.5, 0.1), (20, 1.0, 0.05), (1, 6.0, 0.001), (300, 1.0, 0.1)):
        call = f"enough_tokens({n0}, {bound}, {epsilon})"
        n = number(call, run(call, answer, n0, bound, epsilon))
        least = _least_length(n0, bound, epsilon)
        if not n >= n0:
            raise Wrong(f"{call} must be a length of at least n0, not {n:g}.")
        if n < least:
            worst = max(n, _peak(n0, bound))
            raise Wrong(
                f"{call} = {n:,.0f} is too few: at {'that many' if worst == n else f'{worst:,.0f}'} tokens the rows of near "
                f"logits +B and -B differ by {_variation(worst, n0, bound):.4g}, more than {epsilon}."
            )
        if n > 8 * least:
            raise Wrong(
                f"{call} = {n:,.0f} is wasteful: {least:,} tokens are enough for these rows, and yours are "
                f"{n / least:,.0f} times as many. How does your length depend on n0, on B, on epsilon?"
            )
    return Right("your length is enough for the worst rows that are tried, and within a factor of 8 of the least.")


def _variation(n: float, n0: int, bound: float) -> float:
    near = n0 * math.exp(2 * bound)  # near logits B against -B, all far logits -B
    return 2 * (near / (near + n - n0) - n0 / n)


def _peak(n0: int, bound: float) -> float:
    """The length at which `_variation` is largest: it rises before it falls."""
    return n0 * (1 + math.exp(bound))


def _least_length(n0: int, bound: float, epsilon: float) -> int:
    """The first length beyond the peak of `_variation` with at most epsilon, by bisection."""
    low, high = 2 * n0, 2 * n0 + math.ceil(4 * n0 * math.exp(2 * bound) / epsilon)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _variation(middle, n0, bound) <= epsilon else (middle, high)
    return high
