"""Check the answers to the exercises of chapter 4.

Call a function with your answer, which is a function or a value as the exercise says. The check
tries the answer on several cases. It returns a verdict and a sentence that says what is right or
wrong.
"""

import functools
import math
import re
import statistics
from collections.abc import Callable
from typing import Any

import torch
from IPython.display import HTML
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from course import exercises as checks
from course.chapter4 import figures
from course.evidence import significance
from course.exercises import Right, Wrong, drawn, exercise, number, run, shown, tensor
from course.maths import counting
from course.runs import asked
from helpers import collapse, data, models

# over all exercises of this module
progress = functools.partial(checks.progress, globals().values())
compare, reason, refuse = (
    functools.partial(each, globals()) for each in (checks.tabled, checks.reason, checks.refuse)
)
normal, binomtest = checks.normal, stats.binomtest  # for the cases in the table


# Check softmax and the count ----------------------------------------------------------------------


def _string(name: str, answer: Any) -> str:
    """Return the answer as a string of zeros and ones.

    The answer may be a string, or digits in any container.
    """
    checks.filled(name, answer)
    try:
        text = (
            str(answer) if isinstance(answer, str) else "".join(str(int(sign)) for sign in answer)
        )
    except (TypeError, ValueError):
        text = None
    refuse("two_strings", "string", name=name, answer=answer, text=text)
    return text


def _apart(one: str, other: str, **setting: Any) -> float:
    """Return how far apart the last hidden states of two strings are in a random Transformer."""
    return float(
        (counting.last_state(one, **setting) - counting.last_state(other, **setting)).abs().max()
    )


ONES = (6, 9)  # the numbers of ones in the two strings


@exercise
def two_strings(first: Any, second: Any) -> Right:
    """Check two strings, with 6 and 9 ones, for which a Transformer gives the same result.

    The Transformer has no causal mask and no position encoding.
    """
    first, second = _string("first", first), _string("second", second)
    (a, b), (c, d) = ((text.count("0"), text.count("1")) for text in (first, second))
    refuse("two_strings", a=a, b=b, c=c, d=d, first=first, second=second)
    without = max(
        _apart(first, second, layers=layers, seed=seed) for layers in (1, 3) for seed in range(3)
    )
    masked = min(_apart(first, second, causal=True, layers=3, seed=seed) for seed in range(3))
    if not without < 1e-12 < masked:
        raise Wrong(
            f"the last states differ by {without:.0e} without a mask and by "
            f"{masked:.0e} with a causal mask. Try other strings."
        )
    return Right(
        f"the strings have {b} and {d} ones, and in six random Transformers the "
        f"last states differ by at most {without:.0e}, which is a rounding error. "
        f"With a causal mask they differ by at least {masked:.2g}."
    )


@exercise
def mass(answer: Any) -> Right:
    """Check a function that returns the total softmax weight of the ones.

    The logit of each one exceeds the logit of each zero by the same amount.
    """
    return compare("mass", answer, counting.mass_on_ones)


@exercise
def baseline(answer: Any) -> Right:
    """Check a function for the constant guess with the smallest mean absolute error.

    The function also returns this error.
    """

    def picture() -> HTML:
        guess, _ = answer(list(range(10, 200, 10)))
        return drawn(
            *figures.always_one_number(round(float(guess))), "With your guess for 10, 20, …, 190. "
        )

    found = compare("baseline", answer, _guessed)
    ways = [rows for _, rows in asked.asked_of().groupby(["task", "strategy", "line"])]
    whole = [rows for rows in ways if rows.answer.notna().all() and len(rows) % 2]
    least = [float(run("baseline", answer, rows["count"].tolist())[1]) for rows in whole]
    better = sum(float(rows.error.mean()) < error for rows, error in zip(whole, least, strict=True))
    return Right(
        f"{found.sentence} {models.DEFAULT} gave a number for every length in "
        f"{len(whole)} ways of asking. In {better} of them, its mean error was "
        "smaller than the error of your constant guess.",
        picture,
    )


def _guessed(
    counts: list[int], guess: float | None = None, score: Callable[[list], float] = statistics.mean
) -> tuple[float, float]:
    """Return a constant guess and the mean of its absolute errors.

    Args:
        guess: the guess, or `None` for the median.
        score: a function of the absolute errors to return instead of their mean.
    """
    guess = statistics.median(counts) if guess is None else guess
    return guess, score([abs(guess - count) for count in counts])


@exercise
def averages(answer: Any) -> Right:
    """Check a function that computes the last token after layers of uniform causal attention."""
    compare("averages", answer, lambda x, k: _averaged(x, k)[-1])
    strings = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    ends = [
        " and ".join(f"{float(run('averages', answer, x, k)):.3g}" for x in strings) for k in (1, 2)
    ]
    network = [_apart("10", "1100", causal=True, layers=layers) for layers in (1, 2)]
    assert network[0] < 1e-9  # if the means are equal, only rounding errors remain
    return Right(
        f"your function maps 10 and 1100 to {ends[0]} with one layer, and to "
        f"{ends[1]} with two. In a random Transformer the last states of the two "
        f"strings are equal up to rounding with one layer, and {network[1]:.2f} "
        "apart with two.",
        lambda: drawn(*figures.copies(), ""),
    )


def _averaged(
    values: Tensor, layers: int, seen: Callable = lambda n: torch.arange(1, n + 1)
) -> Tensor:
    """Return all tokens after some layers of averaging over earlier tokens.

    Args:
        seen: the divisors of the sums, as a function of the number of tokens.
    """
    for _ in range(layers):
        values = values.cumsum(0) / seen(len(values))
    return values


# Check answers, tokens and evidence ---------------------------------------------------------------

LINE = "The final answer to your maths question is:"
PROMPT = counting.prompt("ones", "no CoT", "1111")
TEXTS = {  # possible texts of an answer, each with the rule that it tests
    text.replace("LINE", LINE).replace("PROMPT", PROMPT): rule
    for text, rule in checks.tables(globals())["parse"]["texts"].items()
}


@exercise
def parse(answer: Any) -> Right:
    """Check a function that reads the integer in the answer line of a text, or returns `None`."""
    for text, rule in TEXTS.items():
        call, wanted = f"parse({text!r})", counting.parse_answer(text)
        got = run(call, answer, text, nothing=True)
        kind = "Return a number or None. " if isinstance(got, str | bool) else ""
        if kind or (got if got is None else number(call, got)) != wanted:
            raise Wrong(f"{call} is {shown(got)}; expected {wanted}. {kind}{rule}")
    unread = sum(counting.parse_answer(text) is None for text in TEXTS)
    return Right(
        f"your function reads all {len(TEXTS)} texts correctly, and {unread} of "
        "them contain no answer. Report this fraction, too."
    )


@exercise
def letters(answer: Any) -> Right:
    """Check a function that returns the number of letters in each token after byte-pair merges."""
    found = compare("letters", answer, _lengths)
    merges = checks.given(globals(), "letters")[3].arguments[1]
    same = [
        n for n in range(1, 25) if len(run(f"letters('y' * {n}, …)", answer, "y" * n, merges)) == 3
    ]
    return Right(
        f"{found.sentence} With the merges of the fourth case, "
        f"{', '.join(map(str, same[:-1]))} and {same[-1]} letters y all make three "
        "tokens. To count letters, a model must know which letters each token "
        "contains."
    )


def _merged(row: str, pair: tuple[str, str], most: int = 0) -> str:
    """Return tokens, separated by spaces, after merging a pair of tokens from left to right.

    Args:
        row: the tokens before the merges, separated by spaces.
        most: the largest number of merges, or 0 for all merges.
    """
    return re.sub(rf"\b{pair[0]} {pair[1]}\b", "".join(pair), row, count=most)


def _lengths(text: str, merges: list[tuple[str, str]], merged: Callable = _merged) -> list[int]:
    return [len(token) for token in functools.reduce(merged, merges, " ".join(text)).split()]


Z = 1.959963984540054  # 5 per cent of a normal distribution is beyond this on both sides together


@exercise
def interval(answer: Any, strings: Any) -> Right:
    """Check a function for Wilson's interval of a proportion, and a number of strings.

    If each proportion is measured on this number of strings, the intervals of two given proportions
    must not overlap.
    """

    def ends(right: int, asked: int) -> tuple[float, ...]:
        return tuple(map(float, run(f"interval({right}, {asked})", answer, right, asked)))

    def picture() -> HTML:
        runs = data.table("counting_trained")
        return drawn(
            *figures.counting_by_length(runs, "position encoding", ends),
            "The lab's figure with your intervals. ",
        )

    found = compare("interval", answer, significance.share_interval)
    n = number("strings", strings)
    refuse("interval", n=n)
    return Right(
        f"{found.sentence} If two accuracies differ by ten percentage points, their "
        f"intervals are apart only with {n:,.0f} strings each. This is stricter "
        "than a test of the difference, and far more than one answer per cell.",
        picture,
    )


def _ends(n: float) -> tuple[float, float]:
    """Return the lower end of the interval for 0.6 and the upper end for 0.5, with n strings."""
    (_, high), (low, _) = (
        significance.share_interval(round(share * n), int(n)) for share in (0.5, 0.6)
    )
    return low, high


def _wilson(
    right: float, n: float, z: float = Z, two: float = 2, four: float = 4, power: float = 2, root:
    float = 0.5, moved: bool = True, divided: bool = True,
) -> tuple[float, float]:  # fmt: skip
    """Return Wilson's interval, or a variant with a mistake in one part of it."""
    p, below = right / n, 1 + z**power / n if divided else 1
    centre = p + z**power / (two * n) if moved else p * below
    half = z * (p * (1 - p) / n + z * z / (four * n * n)) ** root
    return (centre - half) / below, (centre + half) / below


_plain = functools.partial(_wilson, four=math.inf, moved=False, divided=False)


# Check how far a counter counts -------------------------------------------------------------------


def rounded(x: float | Float[Tensor, "..."], bits: int) -> Float[Tensor, "..."]:
    """Return the nearest number with `bits` significant bits.

    The formats bf16, fp16 and fp32 have 8, 11 and 24.

    >>> rounded(257.0, 8).item(), rounded(257.0, 11).item()
    (256.0, 257.0)
    """
    mantissa, exponent = torch.frexp(torch.as_tensor(x, dtype=torch.float64))
    return torch.ldexp((mantissa * 2.0**bits).round(), exponent - bits)


@exercise
def reach(answer: Any) -> Right:
    """Check a function for the largest count that can be read from the first token's weight.

    The weight is stored with few bits.
    """
    compare("reach", answer, _reach)
    got = [int(run(f"reach({bits})", answer, bits)) for bits in (8, 9, 11)]
    return Right(
        f"your function gives {got[0]} with 8 bits (bf16), {got[1]} with 9 and "
        f"{got[2]:,} with 11 (fp16). The ninth bit makes the count "
        f"{got[1] / got[0]:.2f} times as large.",
        lambda: drawn(
            *figures.by_bits(lambda bits: number("reach", run(f"reach({bits})", answer, bits)))
        ),
    )


def _first(bits: int, wrong: Callable[[Tensor, Tensor], Tensor]) -> int:
    """Return the smallest count for which `wrong` is true.

    `wrong` takes two tensors. One has all counts up to well above the expected limit, and the other
    has the numbers that are read from the first token's weight, not rounded to integers.
    """
    n = torch.arange(2 ** (bits + 2), dtype=torch.float64)
    return int(wrong(n, 1 / rounded(1 / (1 + n), bits) - 1).nonzero()[0])


def _reach(bits: int, wide: float = 0.5) -> int:
    return _first(bits, lambda n, read: (read - n).abs() >= wide) - 1


@exercise
def codes(answer: Any) -> Right:
    """Check a function for d + 1 unit vectors in d dimensions that are as orthogonal as possible.

    Welch's bound says how small their largest inner product can be.
    """
    for width in (1, 2, 3, 8, 63):
        call = f"codes({width})"
        vectors = tensor(call, run(call, answer, width))
        found = {"call": call, "width": width, "vectors": vectors}
        refuse("codes", **found)
        lengths, products = vectors.norm(dim=1), (vectors @ vectors.T).fill_diagonal_(0).abs()
        worst = int((lengths - 1).abs().argmax())
        found |= {
            "worst": worst,
            "length": lengths[worst],
            "best": counting.welch_bound(width + 1, width),
        }
        found |= {"products": products, "largest": products.max()}
        refuse("codes", "measured", **found, why=reason("codes", "leaning", **found))
    sure = counting.longest_counted(counting.welch_bound(64, 63))
    return Right(
        "for five widths, no product is larger in absolute value than 1/width, "
        "which is Welch's bound. With 64 symbols in 63 dimensions, the sum of the "
        f"codes is guaranteed to give the counts up to {sure} tokens, and in 64 "
        "dimensions at every length."
    )


HEAD = ("embedding", "query", "key", "value")
FAR = 4000  # the largest count up to which we test a counter


@exercise
def counter(answer: Any, n: Any) -> Right:
    """Check the weights of one head and a readout that count ones among zeros.

    The check also finds up to which number they count correctly in bf16.
    """
    call = "counter()"
    found = run(call, answer)
    refuse("counter", found=found)
    head, read = (
        {name: tensor(f"the {name}", weight) for name, weight in zip(HEAD, found, strict=False)},
        found[4],
    )
    for name, weight in head.items():
        refuse("counter", "matrix", name=name, weight=weight)
    refuse("counter", "head", **head, width=head["embedding"].shape[1], read=read)
    for _, (text,) in checks.given(globals(), "counter"):
        asked = (
            f"the string {text!r}"
            if len(text) < 9
            else f"a string of {len(text)} symbols that starts with {text[:4]}"
        )
        value = number(
            f"read(the state of {asked})",
            run(f"read(the state of {asked})", read, _state(head, text)),
        )
        seen = {
            "text": text,
            "asked": asked,
            "value": value,
            "zeros": text.count("0"),
            "ones": text.count("1"),
        }
        refuse(
            "counter", "misread", **seen, why=reason("counter", "why", **seen, logits=_logits(head))
        )
    far = checks.clocked(lambda: _far(head, read))
    if far < 100:
        why = reason(
            "counter", "coarse", head=head, read=read, logits=_logits(head)[1], values=_values(head)
        )
        raise Wrong(
            f"your head counts in float64, but in bf16 it counts only up to {far}. You "
            f"can reach 100. {why}"
        )
    refuse("counter", "claimed", far=far, claimed=number("n", n))
    more = "at least " if far == FAR else ""
    return Right(
        "your head counts eleven strings exactly, and with a state in bf16 it "
        f"counts every string of ones up to {more}{far:,}."
    )


def _logits(head: dict[str, Tensor]) -> Tensor:
    """Return the logits of each kind of query token (rows) for each kind of key token (columns)."""
    return (head["embedding"] @ head["query"]) @ (head["embedding"] @ head["key"]).T


def _values(head: dict[str, Tensor]) -> Tensor:
    return head["embedding"] @ head["value"]


def _state(head: dict[str, Tensor], text: str) -> Tensor:
    tokens = torch.tensor([2, *map(int, text)])
    return _logits(head)[tokens[-1]][tokens].softmax(0) @ _values(head)[tokens]


def _far(head: dict[str, Tensor], read: Any, below: float = 0.5) -> int:
    """Return the largest n for which the head counts all strings of up to n ones correctly in bf16.

    The readout may be at most `below` too low.
    """
    logits, values = _logits(head)[1], _values(head)
    for n in range(1, FAR + 1):
        weights = torch.stack([logits[1] + math.log(n), logits[2]]).softmax(0)
        state = collapse.round_to(weights @ values[1:], "bf16")
        try:
            right = -below <= float(read(state.clone())) - n < 0.5
        except (ArithmeticError, RuntimeError, TypeError, ValueError):
            right = False
        if not right:
            return n - 1
    return FAR
