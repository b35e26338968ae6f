"""What is behind the exercises of chapter 3."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from helpers import checks, collapse
from helpers.chapter3 import figures, measures
from helpers.checks import Case, Right, Trap, Wrong, choice, compare, drawn, exercise, normal, number, run

MOST_STEPS = 20_000  # calls of a function of n, before a loop counts as endless


progress = partial(checks.progress, globals().values())  # of all exercises of this module


def probabilities(*shape: int, seed: int) -> Tensor:
    """Random rows that sum to one."""
    return normal(*shape, seed=seed).softmax(-1)


def _cases(*texts: str) -> list[Case]:
    return checks.cases({"checks": sys.modules[__name__], "torch": torch}, *texts)


def _learners(answer: Any, book: Callable) -> Any:
    """The answer, unless it is the book's own function."""
    if answer is book:
        raise Wrong(f"{book.__name__} is the book's own function, and it is right. Now write one that is yours.")
    return answer


@exercise("3.1", "Total variation")
def total_variation(answer: Any) -> Right:
    """The paper's total variation, without the factor 1/2."""
    given = _cases(
        "torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])",
        "checks.probabilities(5, seed=0), checks.probabilities(5, seed=1)",
        "checks.probabilities(3, 4, seed=2), checks.probabilities(3, 4, seed=3)",
    )
    traps = [
        Trap("You halved it: the usual definition has a factor 1/2, the paper's has not.", _halved),
        Trap("You summed over all axes: each row has a total variation of its own.", lambda p, q: (p - q).abs().sum()),
        Trap("You took the mean: the definition adds up.", lambda p, q: (p - q).abs().mean(-1)),
        Trap("You took the largest difference: the definition adds all up.", lambda p, q: (p - q).abs().amax(-1)),
        Trap("You squared the differences: the definition takes their size.", lambda p, q: (p - q).square().sum(-1)),
        Trap("Without absolute values the differences cancel: both rows sum to one.", lambda p, q: (p - q).sum(-1)),
    ]
    return compare(
        "total_variation",
        _learners(answer, collapse.total_variation),
        collapse.total_variation,
        given,
        traps,
    )


def _halved(p: Tensor, q: Tensor) -> Tensor:
    return (p - q).abs().sum(-1) / 2


@exercise("3.2", "ALiBi at its most sensitive")
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


@exercise("3.3", "Windows of different widths")
def first_zero(prediction: Any, answer: Any) -> Right:
    """From which length on layers with windows make the distance exactly zero, on a first token and equal tokens."""
    reasons = {
        "the widest window": "Every layer carries what it has heard to the next: the others add to its reach.",
        "the order of the windows": "A path from the first token to the last one takes a step in each layer. Does it matter "
        "which steps are the long ones?",
        "the sum of the windows": "Predicted: each layer reaches back, and the steps add up in any order.",
    }
    predicted = choice("prediction", prediction, reasons, "the sum of the windows")
    narrow = "A window of w tokens reaches w - 1 back: the token itself is one of them."
    traps = [
        Trap(narrow, sum),
        Trap(narrow, lambda ws: sum(ws) + 1),
        Trap("One too few: of this many ones, the last still hears of the first token.", lambda ws: _reach(ws)),
        Trap("One too many: n counts the ones, not the first token.", lambda ws: _reach(ws) + 2),
        Trap("That is the widest window alone: the other layers reach back, too.", max),
        Trap("That is the last layer alone: the states that it reads have heard from further back.", lambda ws: ws[-1]),
        Trap("That is the first layer alone: later ones carry on what it has heard.", lambda ws: ws[0]),
    ]
    given = _cases("[4]", "[4, 4]", "[8, 2, 5]", "[2, 5, 8]", "[16, 1]", "[1, 1, 1]")
    compare("first_zero", answer, _first_zero, given, traps)
    return predicted


def _reach(windows: Sequence[int]) -> int:
    return sum(w - 1 for w in windows)


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


@exercise("3.4", "Predict: three tokens more")
def commas(prediction: Any) -> Right:
    """Commas after every second and after every fifth 1, three tokens repeated: what is in phase falls faster."""
    reasons = {
        "every second 1": "There three tokens are a whole period: the last 1 has the same neighbours as before, and only the "
        "share of the new tokens is left.",
        "no difference": "The share of the new tokens is the same. But look at the last six tokens of each, before and after.",
        "every fifth 1": "Three tokens are half of its period of six: the last 1 has other neighbours than before, a local "
        "difference, which falls like 1/n and not like 1/n². At 385 tokens in three random layers: 0.052 against 0.0013.",
    }
    return choice("prediction", prediction, reasons, "every fifth 1")


@exercise("3.5", "The first collision")
def first_collision(answer: Any) -> Right:
    """The first length at which a number type cannot tell f(n) from f(n + 1)."""
    traps = [
        Trap("You started at n = 2: n = 1 is a length, too.", lambda f, d: _collision(f, d, start=2)),
        Trap("You returned n + 1: asked is the smaller of the two lengths.", lambda f, d: _collision(f, d) + 1),
        Trap("`isclose` allows differences that the type can tell: ask for equality.", _close),
        Trap("You rounded to bfloat16 whatever the type.", lambda f, d: _collision(f, torch.bfloat16)),
    ]
    return compare("first_collision", _learners(answer, collapse.first_collision), _collision, FUNCTIONS, traps)


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
                f"first_collision called its function with n > {MOST_STEPS:,}, and the first equal pair is earlier: do you "
                "round both values to the type, and compare the rounded ones?"
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
def _close(function: Callable, dtype: torch.dtype) -> int:
    return _first_equal(function, dtype, 1, torch.isclose)


def _first_equal(function: Callable, dtype: torch.dtype, start: int, equal: Callable) -> int:
    n = start
    while not equal(_rounded(function(n), dtype), _rounded(function(n + 1), dtype)):
        n += 1
    return n


def _rounded(value: float, dtype: torch.dtype) -> Tensor:
    return collapse.round_to(torch.tensor(value, dtype=torch.float64), dtype).to(dtype)


@exercise("3.6", "Between two neighbours")
def stays_nearest(answer: Any) -> Right:
    """How often a prompt with an error stays the nearest of all on a straight line of prompts."""
    given = _cases("1.0, 1.0", "2.0, 0.1", "0.5, 0.25", "5.0, 1 / 576", "0.2, 0.09")

    def either(tail: Callable[[float], float], root=0.5, half=0.5) -> Callable:
        return lambda length, share: tail(half / (length * share**root))

    traps = [
        Trap("That is one side: the prompt also has a neighbour behind it.", measures.right_of_two),
        Trap("That is how often it is lost.", either(lambda x: math.erfc(x / math.sqrt(2)))),
        Trap("The share is one of squares: its square root is one of lengths.", either(_within, root=1.0)),
        Trap("The share does not enter: the whole length is taken to lie along the line.", either(_within, root=0.0)),
        Trap("It is lost from half the way on, not from the whole.", either(_within, half=1.0)),
        Trap(
            "erf has a root of 2 in it: a standard normal is within x with probability erf(x / √2).", either(math.erf)
        ),
        Trap("That is one tail: both are lost.", either(lambda x: 0.5 * math.erf(x / math.sqrt(2)))),
    ]
    return compare(
        "stays_nearest", answer, _stays_nearest, given, traps, picture=lambda: drawn(*figures.along(answer, "nearest"))
    )


def _within(x: float) -> float:
    """How often a standard normal number is within x of 0."""
    return math.erf(x / math.sqrt(2))


def _stays_nearest(length: float, share: float) -> float:
    return _within(0.5 / (length * math.sqrt(share)))


@exercise("3.7", "Build a head that does not collapse")
def kernel(answer: Any) -> Right:
    """Bounded logits, a function of distance, whose head keeps changing by at least 1."""
    distance = torch.arange(10_001, dtype=torch.float64)
    logits = run("kernel(torch.arange(10_001).double())", answer, distance)
    try:
        logits = torch.as_tensor(logits).double()
    except (TypeError, ValueError, RuntimeError):
        logits = torch.tensor(math.nan)
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


@exercise("3.8", "Adaptive temperature")
def adaptive_temperature(answer: Any) -> Right:
    """Adaptive temperature, as Veličković et al. (2024) define it."""
    given = _cases(
        "torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0])",
        "torch.tensor([9.0, 0, 0])",
        "torch.cat([torch.tensor([3.0]), torch.zeros(599)])",
        "checks.normal(3, 12, seed=0)",
        "torch.tensor([2.0, 1, 0, 0, 0, -2000])",
    )
    traps = [
        Trap("That is the plain softmax.", lambda x: x.softmax(-1)),
        Trap("The coefficients are the wrong way round: the highest power comes first.", _adaptive(reverse=True)),
        Trap("Your entropy is in bits: the polynomial was fitted to nats.", _adaptive(unit=math.log(2))),
        Trap("The factor must not fall below 1: take max(1, polynomial).", _adaptive(least=-math.inf)),
        Trap("You divided by the factor: it is an inverse temperature, so multiply.", _adaptive(power=-1)),
        Trap("One entropy for the whole tensor: every row has its own.", _adaptive(rows=False)),
        Trap(
            "One entropy for the whole tensor: every row has its own. And 0 log 0 is NaN: use entr.",
            _adaptive(rows=False, naive=True),
        ),
        Trap(
            "0 log 0 is NaN in floating point, and the row falls back to a factor of 1: use entr.",
            _adaptive(naive=True),
        ),
    ]

    def picture() -> HTML:
        return drawn(*figures.sharpening(3, answer))

    return compare(
        "adaptive_temperature",
        _learners(answer, collapse.adaptive_temperature),
        collapse.adaptive_temperature,
        given,
        traps,
        picture=picture,
    )


def _adaptive(reverse=False, unit=1.0, least=1.0, power=1, rows=True, naive=False) -> Callable:
    def adaptive(x: Tensor) -> Tensor:
        p = x.softmax(-1)
        terms = -p * p.log() if naive else torch.special.entr(p)
        entropy = (terms.sum(-1, keepdim=True) if rows else terms.sum()) / unit
        factor = torch.zeros_like(entropy)
        coefficients = (-0.037, 0.481, -2.3, 4.917, -1.791)
        for coefficient in reversed(coefficients) if reverse else coefficients:
            factor = factor * entropy + coefficient
        factor = torch.where(entropy > 0.5, factor.clamp(min=least), 1.0)
        return (factor**power * x).softmax(-1)

    return adaptive


@exercise("3.9", "Seq-VCR")
def seq_vcr_loss(answer: Any) -> Right:
    """The Seq-VCR loss."""
    given = _cases(
        "checks.normal(4, 1, 3, seed=4)", "checks.normal(8, 3, 5, seed=8)", "0.1 * checks.normal(8, 3, 5, seed=8)"
    )
    traps = [
        Trap("Your covariance is biased: divide by batch - 1, not by batch.", _seq_vcr(biased=True)),
        Trap("You counted each pair of coordinates once: the sum runs over k and l, both orders.", _seq_vcr(pairs=0.5)),
        Trap("The diagonal is in your second sum: it runs over l other than k.", _seq_vcr(diagonal=True)),
        Trap("You pooled the positions: each has a covariance of its own.", _seq_vcr(pooled=True)),
        Trap("You did not divide by n d.", lambda x: _seq_vcr()(x) * x.shape[1] * x.shape[2]),
        Trap("You divided by n only: d is missing.", lambda x: _seq_vcr()(x) * x.shape[2]),
        Trap("You divided by d only: n is missing.", lambda x: _seq_vcr()(x) * x.shape[1]),
        Trap("The square root is missing: standard deviation, not variance.", _seq_vcr(root=1.0)),
        Trap("eta is missing under the root.", _seq_vcr(eta=0.0)),
        Trap("The two weights are exchanged.", _seq_vcr(weights=(0.004, 1.0))),
    ]
    return compare("seq_vcr_loss", _learners(answer, collapse.seq_vcr_loss), collapse.seq_vcr_loss, given, traps)


def _seq_vcr(
    biased=False, pairs=1.0, diagonal=False, pooled=False, root=0.5, eta=0.001, weights=(1.0, 0.004)
) -> Callable:
    def loss(x: Tensor) -> Tensor:
        positions, width = x.shape[1], x.shape[2]
        total = torch.zeros((), dtype=x.dtype)
        for i in range(positions):
            rows = x.flatten(0, 1) if pooled else x[:, i]
            c = torch.cov(rows.T, correction=0 if biased else 1)
            variance = c.diagonal()
            off = c.square().sum() - (0 if diagonal else variance.square().sum())
            total += weights[0] * (1 - (variance + eta) ** root).clamp(min=0).sum() + weights[1] * pairs * off
        return total / (positions * width)

    return loss


@exercise("3.10", "Repair the theorem")
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
                f"{call} = {n:,.0f} is too few: at {'this' if worst == n else f'the longer {worst:,.0f}'} tokens the rows of near "
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
