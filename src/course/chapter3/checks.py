"""What is behind the exercises of chapter 3."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter3 import figures
from course.checks import Case, Right, Wrong, compare, drawn, exercise, normal, number, run, tensor
from helpers import collapse, models, probe
from helpers.transformer import Decoder

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
    mistakes = """
        right(p, q) / 2 :: You halved it: the usual definition has a factor 1/2, the paper's has not.
        (p - q).abs().sum() :: You summed over all axes: each row has a total variation of its own.
        (p - q).abs().mean(-1) :: You took the mean: the definition adds up.
        (p - q).abs().amax(-1) :: You took the largest difference: the definition adds all up.
        (p - q).square().sum(-1) :: You squared the differences: the definition takes their size.
        (p - q).sum(-1) :: Without absolute values the differences cancel: both rows sum to one.
        (p - q).norm(dim=-1) :: You took the Euclidean length: the definition adds up absolute values.
        (p * (p / q).log()).sum(-1) :: That is the Kullback-Leibler divergence.
        (p - q).abs().sum(-1, keepdim=True) :: One number a row, without an axis of length 1: leave keepdim out.
        (p + q).abs().sum(-1) :: The distance is that of a difference, p - q.
        (p - q).abs().sum(0) :: You summed over the rows: each row has a total variation of its own, over the last axis.
    """
    return compare(
        globals(),
        "total_variation(p, q)",
        _learners(answer, collapse.total_variation),
        collapse.total_variation,
        given,
        mistakes,
    )


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


@exercise(
    "3.3",
    "Windows of different widths",
    guesses={
        "the widest window": "Every layer carries what it has heard to the next: the others add to its reach.",
        "the order of the windows": "A path takes a step in each layer, and it does not matter which steps are the long ones.",
        "the sum of the windows": "Each layer reaches back, and the steps add up in any order.",
    },
    true="the sum of the windows",
)
def first_zero(answer: Any) -> Right:
    """From which length on layers with windows make the distance exactly zero, on a first token and equal tokens."""
    mistakes = """
        sum(windows) :: A window of w tokens reaches w - 1 back: the token itself is one of them.
        sum(windows) + 1 :: A window of w tokens reaches w - 1 back: the token itself is one of them.
        right(windows) - 1 :: One too few: of this many ones, the last still hears of the first token.
        right(windows) + 1 :: One too many: n counts the ones, not the first token.
        max(windows) :: That is the widest window alone: the other layers reach back, too.
        windows[-1] :: That is the last layer alone: the states that it reads have heard from further back.
        windows[0] :: That is the first layer alone: later ones carry on what it has heard.
        math.prod(windows) :: Each layer adds to the reach, it does not multiply it.
        len(windows) * max(windows) :: The layers have windows of their own: the widest does not hold for all.
        sum(windows) - 1 :: Each layer loses one, not all together: a window of w tokens reaches w - 1 back.
        min(windows) :: That is the narrowest window alone: the others reach back, too.
        sum(windows[:-1]) + 1 :: The last layer reaches back, too.
        len(windows) :: That is how many layers there are: it is the widths that count.
    """
    given = _cases("[4]", "[4, 4]", "[8, 2, 5]", "[2, 5, 8]", "[16, 1]", "[1, 1, 1]")
    compare(globals(), "first_zero(windows)", answer, _first_zero, given, mistakes)
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


@exercise(
    "3.4",
    "Three tokens more",
    guesses={
        "every second 1": "There three tokens are a whole period: the last 1 has the same neighbours as before, and only the "
        "share of the new tokens is left.",
        "no difference": "The share of the new tokens is the same, but the last six tokens are others after a fifth 1.",
        "every fifth 1": "Three tokens are half of its period of six: the last 1 has other neighbours than before, a local "
        "difference, which falls like 1/n and not like 1/n².",
    },
    true="every fifth 1",
)
def moved(answer: Any) -> Right:
    """The L1 distance of two last states, after the last k tokens are repeated; then of two rows: in a random decoder, and in the embedded model."""
    mistakes = """
        (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).square().sum().sqrt() :: That is the Euclidean distance: add up the sizes of the differences.
        (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).abs().mean() :: That is the mean over the entries: add them up.
        (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).abs().max() :: That is the largest difference: add them up.
        (states(tokens + tokens[-k:])[-1] - states(tokens)[-1]).sum() :: Without absolute values the differences cancel.
        (states(tokens + tokens[:k])[-1] - states(tokens)[-1]).abs().sum() :: You repeated the first k tokens, not the last.
        (states(tokens + k * tokens[-1:])[-1] - states(tokens)[-1]).abs().sum() :: You repeated the last token k times, not the last k tokens.
        (states(tokens + tokens[-1:])[-1] - states(tokens)[-1]).abs().sum() :: You repeated one token, whatever k is.
        (states(tokens[:-k])[-1] - states(tokens)[-1]).abs().sum() :: You left the last k tokens out: they are to come once more.
        (states(tokens + tokens[-k:]).mean(0) - states(tokens).mean(0)).abs().sum() :: You took the mean of all states: asked is the last token's.
        states(tokens + tokens[-k:])[-1].abs().sum() - states(tokens)[-1].abs().sum() :: That is a difference of sizes: subtract first.
    """
    given = [
        Case(f"checks.random_states(seed={seed}), {tokens}, {k}", (random_states(seed), tokens, k))
        for seed, tokens, k in ((0, [0, 1, 2, 1], 1), (1, [0, 1, 1, 2, 1, 2, 2], 3), (2, [0, 2, 1, 2, 2, 1], 2))
    ]
    compare(globals(), "moved(states, tokens, k)", answer, _moved, given, mistakes)
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


@exercise("3.5", "The first collision")
def first_collision(answer: Any) -> Right:
    """The first length at which a number type cannot tell f(n) from f(n + 1)."""
    mistakes = """
        _collision(function, dtype, start=2) :: You started at n = 2: n = 1 is a length, too.
        _collision(function, dtype) + 1 :: You returned n + 1: asked is the smaller of the two lengths.
        _close(function, dtype) :: `isclose` allows differences that the type can tell: ask for equality.
        _collision(function, torch.bfloat16) :: You rounded to bfloat16 whatever the type.
        _collision(function, dtype, start=3) :: You started at n = 3: n = 1 is a length, too.
        _collision(function, dtype) - 1 :: One too few: that n is still told from the next.
        _near(function, dtype, torch.finfo(dtype).eps) :: You allowed a difference of eps, which is the step at 1: ask for equality after rounding.
        _near(function, dtype) :: You allowed a difference of 1e-3: ask for equality after rounding.
    """
    return compare(
        globals(),
        "first_collision(function, dtype)",
        _learners(answer, collapse.first_collision),
        _collision,
        FUNCTIONS,
        mistakes,
    )


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


@exercise("3.6", "Between two neighbours")
def stays_nearest(answer: Any) -> Right:
    """How often a prompt with an error stays the nearest of all on a straight line of prompts."""
    given = _cases("1.0, 1.0", "2.0, 0.1", "0.5, 0.25", "5.0, 1 / 576", "0.2, 0.09")

    def either(tail: Callable[[float], float], root=0.5, half=0.5) -> Callable:
        return lambda length, share: tail(half / (length * share**root))

    mistakes = """
        (1 + right(length, share)) / 2 :: That is one side: the prompt also has a neighbour behind it.
        either(lambda x: math.erfc(x / math.sqrt(2)))(length, share) :: That is how often it is lost.
        either(_within, root=1.0)(length, share) :: The share is one of squares: its square root is one of lengths.
        either(_within, root=0.0)(length, share) :: The share does not enter: the whole length is taken to lie along the line.
        either(_within, half=1.0)(length, share) :: It is lost from half the way on, not from the whole.
        either(math.erf)(length, share) :: erf has a root of 2 in it: a standard normal is within x with probability erf(x / √2).
        either(lambda x: 0.5 * math.erf(x / math.sqrt(2)))(length, share) :: That is one tail: both are lost.
        2 * either(_within)(length, share) - 1 :: erf counts both sides already: `2 erf - 1` belongs to the cumulative distribution.
        math.erf(0.5 * length / math.sqrt(share) / math.sqrt(2)) :: A longer error is worse: divide by its length.
        math.exp(-((0.5 / (length * math.sqrt(share))) ** 2) / 2) :: That is the height of the curve, not the area under it.
        either(_within)(length**2, share) :: The length is squared where it should not be: only the share is one of squares.
        math.erf(0.5 * math.sqrt(share) / length / math.sqrt(2)) :: A larger share is worse: it stands below, as a root.
        either(_within)(1.0, share) :: The length is missing.
        1 - math.erfc(1.0 / (length * math.sqrt(share)) / math.sqrt(2)) :: It is lost from half the way on, not from the whole.
    """
    return compare(
        globals(),
        "stays_nearest(length, share)",
        answer,
        _stays_nearest,
        given,
        mistakes,
        picture=lambda: drawn(*figures.along(answer, "nearest")),
        either=either,
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


@exercise("3.8", "Adaptive temperature")
def adaptive_temperature(answer: Any) -> Right:
    """Adaptive temperature, as Veličković et al. (2024) define it."""
    given = _cases(
        "torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0])",
        "torch.tensor([9.0, 0, 0])",
        "torch.tensor([1.0, 0, 0])",
        "torch.cat([torch.tensor([3.0]), torch.zeros(599)])",
        "checks.normal(3, 12, seed=0)",
        "torch.tensor([2.0, 1, 0, 0, 0, -2000])",
    )
    mistakes = """
        logits.softmax(-1) :: That is the plain softmax.
        _adaptive(reverse=True)(logits) :: The coefficients are the wrong way round: the highest power comes first.
        _adaptive(unit=math.log(2))(logits) :: Your entropy is in bits: the polynomial was fitted to nats.
        _adaptive(least=-math.inf)(logits) :: The factor must not fall below 1: take max(1, polynomial).
        _adaptive(power=-1)(logits) :: You divided by the factor: it is an inverse temperature, so multiply.
        _adaptive(rows=False)(logits) :: One entropy for the whole tensor: every row has its own.
        _adaptive(rows=False, naive=True)(logits) :: One entropy for the whole tensor: every row has its own. And 0 log 0 is NaN: use entr.
        _adaptive(naive=True)(logits) :: 0 log 0 is NaN in floating point, and the row falls back to a factor of 1: use entr.
        (2 * logits).softmax(-1) :: A fixed factor of 2: it is to follow from each row's entropy.
        logits.softmax(0) :: That is the plain softmax, down the columns.
        (logits * torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True)).softmax(-1) :: You multiplied by the entropy itself: put it into the polynomial.
        (logits / torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True).clamp(min=1)).softmax(-1) :: You divided by the entropy: put it into the polynomial, and multiply by that.
        _adaptive(least=0.0)(logits) :: The factor must not fall below 1: take max(1, polynomial).
        _adaptive(from_=1.5)(logits) :: Your factor sets in at an entropy of 1.5: it is 0.5.
        _adaptive(from_=1.0)(logits) :: Your factor sets in at an entropy of 1: it is 0.5.
    """

    def picture() -> HTML:
        return drawn(*figures.sharpening(3, answer))

    return compare(
        globals(),
        "adaptive_temperature(logits)",
        _learners(answer, collapse.adaptive_temperature),
        collapse.adaptive_temperature,
        given,
        mistakes,
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


@exercise("3.9", "Seq-VCR")
def seq_vcr_loss(answer: Any) -> Right:
    """The Seq-VCR loss."""
    given = _cases(
        "checks.normal(4, 1, 3, seed=4)", "checks.normal(8, 3, 5, seed=8)", "0.1 * checks.normal(8, 3, 5, seed=8)"
    )
    mistakes = """
        _seq_vcr(biased=True)(x) :: Your covariance is biased: divide by batch - 1, not by batch.
        _seq_vcr(pairs=0.5)(x) :: You counted each pair of coordinates once: the sum runs over k and l, both orders.
        _seq_vcr(diagonal=True)(x) :: The diagonal is in your second sum: it runs over l other than k.
        _seq_vcr(pooled=True)(x) :: You pooled the positions: each has a covariance of its own.
        _seq_vcr()(x) * x.shape[1] * x.shape[2] :: You did not divide by n d.
        _seq_vcr()(x) * x.shape[2] :: You divided by n only: d is missing.
        _seq_vcr()(x) * x.shape[1] :: You divided by d only: n is missing.
        _seq_vcr(root=1.0)(x) :: The square root is missing: standard deviation, not variance.
        _seq_vcr(eta=0.0)(x) :: eta is missing under the root.
        _seq_vcr(weights=(0.004, 1.0))(x) :: The two weights are exchanged.
        _seq_vcr(centred=False)(x) :: The mean is not taken off: a covariance is that of what is left without it.
        _seq_vcr(cut=False)(x) :: The max(0, ·) is missing: a standard deviation above 1 costs nothing.
        _seq_vcr(outside=True)(x) :: eta stands under the root, not behind it.
        _seq_vcr(weights=(1.0, 0.0))(x) :: The second term is missing: the covariances of two coordinates.
        _seq_vcr(weights=(0.0, 0.004))(x) :: The first term is missing: the standard deviations.
        _seq_vcr(absolute=True)(x) :: The covariances are squared; you took their size.
        _seq_vcr(weights=(1.0, 1.0))(x) :: The second term has the weight 0.004; yours has 1.
        _seq_vcr(weights=(1.0, 0.04))(x) :: The second term has the weight 0.004; yours has 0.04.
        _seq_vcr(eta=0.1)(x) :: eta is 0.001; yours is 0.1.
        _seq_vcr(eta=1e-5)(x) :: eta is 0.001; yours is 0.00001.
    """
    return compare(
        globals(), "seq_vcr_loss(x)", _learners(answer, collapse.seq_vcr_loss), collapse.seq_vcr_loss, given, mistakes
    )


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
