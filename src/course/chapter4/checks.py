"""What is behind the exercises of chapter 4."""

import math
import operator
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from IPython.display import HTML
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from course import checks, significance
from course.chapter4 import figures
from course.checks import Right, Wrong, drawn, exercise, number, run, shown, tensor
from course.experiments import asked
from helpers import collapse, counting, data, models

progress = partial(checks.progress, globals().values())  # of all exercises of this module
compare, refuse = (partial(each, globals()) for each in (checks.tabled, checks.refuse))
normal = checks.normal  # the table's cases call it


# Softmax and the count -----------------------------------------------------------------------------------


def _string(name: str, answer: Any) -> str:
    """A string of zeros and ones, from a string or from the signs in any container."""
    checks.filled(name, answer)
    try:
        text = str(answer) if isinstance(answer, str) else "".join(str(int(sign)) for sign in answer)
    except (TypeError, ValueError):
        raise Wrong(f"{name} must be a string such as '0110', not {shown(answer)}.") from None
    if not text or set(text) - {"0", "1"}:
        raise Wrong(f"{name} must hold zeros and ones and nothing else, not {shown(answer)}.")
    if len(text) > 200:
        raise Wrong(f"{name} has {len(text)} signs: a few are enough.")
    return text


ONES = (6, 9)  # of the two strings


@exercise
def two_strings(first: Any, second: Any) -> Right:
    """Two strings with 6 and 9 ones that a Transformer without mask and positions takes for one."""
    first, second = _string("first", first), _string("second", second)
    (a, b), (c, d) = ((text.count("0"), text.count("1")) for text in (first, second))
    refuse("two_strings", a=a, b=b, c=c, d=d, first=first, second=second)

    def apart(**setting: Any) -> float:
        states = [counting.last_state(text, **setting) for text in (first, second)]
        return float((states[0] - states[1]).abs().max())

    without = max(apart(layers=layers, seed=seed) for layers in (1, 3) for seed in range(3))
    masked = min(apart(causal=True, layers=3, seed=seed) for seed in range(3))
    if not without < 1e-12 < masked:
        raise Wrong(f"the last states differ by {without:.0e} without a mask and by {masked:.0e} with one. Try others.")
    return Right(
        f"{b} and {d} ones, and in six random Transformers the last states differ by {without:.0e} at most, which is "
        f"rounding. With a causal mask it is at least {masked:.2g}."
    )


@exercise
def mass(answer: Any) -> Right:
    """The softmax weight of all ones together, where each leads each zero."""
    return compare("mass", answer, counting.mass_on_ones)


def _sum(zeros: int, ones: int, lead: float) -> float:
    return zeros + ones * math.exp(lead)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@exercise
def baseline(answer: Any) -> Right:
    """The number with the smallest mean absolute error, and that error."""

    def picture() -> HTML:
        guess, _ = answer(list(range(10, 200, 10)))
        return drawn(*figures.always_one_number(round(float(guess))), "With your guess for 10, 20, …, 190. ")

    found = compare("baseline", answer, _least)
    asked_ = asked.asked_of()
    whole = [
        rows for _, rows in asked_.groupby(["task", "strategy", "line"]) if rows.answer.notna().all() and len(rows) % 2
    ]
    better = 0
    for rows in whole:
        _, least = run("baseline", answer, rows["count"].tolist())
        better += float(rows.error.mean()) < float(least)
    return Right(
        f"{found.sentence} {models.DEFAULT} named a number for every length in {len(whole)} "
        f"ways of asking, and in {better} of them it was nearer than your machine that always says one number.",
        picture,
    )


def _said(guess: Any) -> Any:
    return lambda counts: (guess(counts), statistics.mean(abs(guess(counts) - count) for count in counts))


_least = _said(statistics.median)


def _place(counts: list[int], shift: int) -> int:
    """An entry beside the middle of the sorted list."""
    return sorted(counts)[(len(counts) // 2 + shift) % len(counts)]


def _scored(score: Any) -> Any:
    return lambda x: (statistics.median(x), score([abs(statistics.median(x) - count) for count in x]))


@exercise
def averages(answer: Any) -> Right:
    """The last token after some layers of uniform causal attention."""

    def picture() -> HTML:
        return drawn(*figures.copies(), "")

    compare("averages", answer, lambda x, k: _averaged(x, k)[-1])
    strings = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    ends = [" and ".join(f"{float(run('averages', answer, x, k)):.3g}" for x in strings) for k in (1, 2)]
    network = [
        float((counting.last_state("10", **setting) - counting.last_state("1100", **setting)).abs().max())
        for setting in ({"causal": True, "layers": 1}, {"causal": True, "layers": 2})
    ]
    assert network[0] < 1e-9  # the same means: what is left is rounding
    return Right(
        f"your function sends 10 and 1100 to {ends[0]} with one layer, and to {ends[1]} with two. In a random Transformer they "
        f"are equal up to rounding with one layer, and {network[1]:.2f} apart with two.",
        picture,
    )


def _averaged(values: Tensor, layers: int, seen: Callable = lambda n: torch.arange(1, n + 1)) -> Tensor:
    """All tokens after some layers; `seen` tells by how many each sum is divided."""
    for _ in range(layers):
        values = values.cumsum(0) / seen(len(values))
    return values


def _before(values: Tensor, layers: int) -> Tensor:
    for _ in range(layers):
        values = torch.stack([values[: max(i, 1)].mean() for i in range(len(values))])
    return values[-1]


# Answers, tokens, evidence -------------------------------------------------------------------------------

LINE = "The final answer to your maths question is:"
PROMPT = counting.prompt("ones", "no CoT", "1111")
TEXTS = {  # what an answer may be, and the rule that it tells
    text.replace("LINE", LINE).replace("PROMPT", PROMPT): rule
    for text, rule in checks.tables(globals())["parse"]["texts"].items()
}


class _Told:
    """An answer whose result may be None: it comes in a tuple, which `run` does not take for nothing."""

    def __init__(self, answer: Any):
        self.answer, self.__code__ = answer, getattr(answer, "__code__", None)

    def __call__(self, text: str) -> tuple:
        return (self.answer(text),)


@exercise
def parse(answer: Any) -> Right:
    """The whole number on the answer line, or None."""
    for text, rule in TEXTS.items():
        call, wanted = f"parse({text!r})", counting.parse_answer(text)
        (got,) = run(call, _Told(answer) if callable(answer) else answer, text)
        if got is None and wanted is None:
            continue
        if got is None or isinstance(got, str | bool):
            raise Wrong(f"{call} is {shown(got)}; expected {wanted}. {'' if got is None else _KIND}{rule}")
        value = number(call, got)
        if wanted is None or value != wanted:
            raise Wrong(f"{call} is {shown(got)}; expected {wanted}. {rule}")
    unread = sum(counting.parse_answer(text) is None for text in TEXTS)
    return Right(
        f"{len(TEXTS)} texts are read as they should be, {unread} of them as no answer: report that share too."
    )


_KIND = "Return a number or None. "


@exercise
def letters(answer: Any) -> Right:
    """How many letters each token holds after byte-pair merges."""
    found = compare("letters", answer, _lengths)
    merges = checks.given(globals(), "letters")[3].arguments[1]
    same = [n for n in range(1, 25) if len(run(f"letters('y' * {n}, …)", answer, "y" * n, merges)) == 3]
    return Right(
        f"{found.sentence} With the merges of the fourth case {', '.join(map(str, same[:-1]))} and {same[-1]} letters y "
        "are all three tokens: who counts must know what is in each."
    )


def _lengths(text: str, merges: list[tuple[str, str]]) -> list[int]:
    return _merges(_merged)(text, merges)


def _merges(step: Any) -> Any:
    def lengths(text: str, merges: list[tuple[str, str]]) -> list[int]:
        pieces = list(text)
        for pair in merges:
            pieces = step(pieces, pair)
        return [len(piece) for piece in pieces]

    return lengths


def _merged(pieces: Sequence[str], pair: tuple[str, str], alike: Callable = operator.eq) -> list[str]:
    done, k = [], 0
    while k < len(pieces):
        hit = alike(tuple(pieces[k : k + 2]), tuple(pair))
        done.append("".join(pieces[k : k + 2]) if hit else pieces[k])
        k += 1 + hit
    return done


def _once(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    hits = [k for k in range(len(pieces) - 1) if (pieces[k], pieces[k + 1]) == pair]
    return [*pieces[: hits[0]], "".join(pair), *pieces[hits[0] + 2 :]] if hits else pieces


def _backwards(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    mirrored = _merged([piece[::-1] for piece in pieces[::-1]], tuple(piece[::-1] for piece in pair[::-1]))
    return [piece[::-1] for piece in mirrored[::-1]]


def _overlapping(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    done, covered = [], False
    for k, piece in enumerate(pieces):
        hit = (piece, *pieces[k + 1 : k + 2]) == tuple(pair)
        if hit or not covered:
            done.append("".join(pair) if hit else piece)
        covered = hit
    return done


def _longest(text: str, merges: list[tuple[str, str]]) -> list[int]:
    vocabulary, lengths = {"".join(pair) for pair in merges} | set(text), []
    while text:
        lengths.append(max(len(word) for word in vocabulary if text.startswith(word)))
        text = text[lengths[-1] :]
    return lengths


Z = 1.959963984540054  # half of a normal distribution's 5 per cent lies beyond, on each side
PAIR = (0.5, 0.6)


@exercise
def interval(answer: Any, strings: Any) -> Right:
    """Wilson's interval of a share, and the strings from which on two shares have intervals apart."""

    def picture() -> HTML:
        def ends(right: int, asked: int) -> tuple[float, float]:
            low, high = run(f"interval({right}, {asked})", answer, right, asked)
            return float(low), float(high)

        runs = data.table("counting_trained")
        return drawn(*figures.counting_by_length(runs, "position encoding", ends), "The lab's figure, your intervals. ")

    found = compare("interval", answer, significance.share_interval, tolerance=1e-4)
    n = number("strings", strings)
    if n != int(n) or n < 10 or n % 10 or n > 1_000_000:
        raise Wrong(
            f"strings must be a multiple of ten from 10 to 1,000,000, so that both shares are whole, not {n:g}."
        )
    low, high = _ends(int(n))
    if low <= high:
        raise Wrong(f"with {n:,.0f} strings each, half goes up to {high:.5f} and 0.6 down to {low:.5f}: they overlap.")
    low, high = _ends(int(n) - 10)
    if n > 10 and low > high:
        raise Wrong(f"{n:,.0f} strings are enough, and so are {n - 10:,.0f}: the smallest number is asked for.")
    return Right(
        f"{found.sentence} Ten points of a hundred between two shares take {n:,.0f} strings each until their intervals "
        "are apart. That is stricter than a test of the difference, and far beyond one answer a cell.",
        picture,
    )


def _ends(n: int) -> tuple[float, float]:
    """The lower end of the larger share and the upper end of the smaller, n strings each."""
    (_, high), (low, _) = (significance.share_interval(round(share * n), n) for share in PAIR)
    return low, high


def _exact(k: int, n: int) -> tuple[float, float]:
    low, high = stats.beta.ppf(0.025, k, n - k + 1), stats.beta.ppf(0.975, k + 1, n - k)
    return (float(low) if k else 0.0, float(high) if k < n else 1.0)


def _wilson(
    right: float, n: float, z: float = Z, two: float = 2, four: float = 4, power: float = 2, root: float = 0.5,
    moved: bool = True, divided: bool = True,
) -> tuple[float, float]:  # fmt: skip
    """Wilson's interval, or with something else in the place of a part of it."""
    p, below = right / n, 1 + z**power / n if divided else 1
    centre = p + z**power / (two * n) if moved else p * below
    half = z * (p * (1 - p) / n + z * z / (four * n * n)) ** root
    return (centre - half) / below, (centre + half) / below


_plain = partial(_wilson, four=math.inf, moved=False, divided=False)


# How far a counter counts --------------------------------------------------------------------------------


def rounded(x: float | Float[Tensor, "..."], bits: int) -> Float[Tensor, "..."]:
    """The nearest number with so many significant bits: bf16 has 8, fp16 11, fp32 24.

    >>> rounded(257.0, 8).item(), rounded(257.0, 11).item()
    (256.0, 257.0)
    """
    mantissa, exponent = torch.frexp(torch.as_tensor(x, dtype=torch.float64))
    return torch.ldexp((mantissa * 2.0**bits).round(), exponent - bits)


@exercise
def reach(answer: Any) -> Right:
    """How far the first token's weight counts when it is stored with so many bits."""
    compare("reach", answer, _reach)

    got = [int(run(f"reach({bits})", answer, bits)) for bits in (8, 9, 11)]

    def picture() -> HTML:
        return drawn(*figures.by_bits(lambda bits: number("reach", run(f"reach({bits})", answer, bits))))

    return Right(
        f"your function gives {got[0]} with 8 bits (bf16), {got[1]} with 9 and {got[2]:,} with 11 (fp16): {got[1] / got[0]:.2f} "
        "times as far for one bit.",
        picture,
    )


def _first(bits: int, wrong: Callable[[Tensor, Tensor], Tensor]) -> int:
    """The first of all counts to far beyond the reach for which this is so, of the count and what is read unrounded."""
    n = torch.arange(2 ** (bits + 2), dtype=torch.float64)
    return int(wrong(n, 1 / rounded(1 / (1 + n), bits) - 1).nonzero()[0])


def _reach(bits: int, wide: float = 0.5) -> int:
    return _first(bits, lambda n, read: (read - n).abs() >= wide) - 1


def _equal_weights(bits: int) -> int:
    return _first(bits, lambda n, read: read[1:] == read[:-1])


@exercise
def codes(answer: Any) -> Right:
    """One more unit vector than there are dimensions, as nearly orthogonal as Welch allows."""
    for width in (1, 2, 3, 8, 63):
        call, best = f"codes({width})", counting.welch_bound(width + 1, width)
        vectors = tensor(call, run(call, answer, width))
        why = {
            (
                width + 1,
                width + 1,
            ): f"has {width + 1} columns. These may lie in fewer dimensions: write them in {width}.",
            (width, width + 1): f"stands on its side: a vector is a row, so the shape is ({width + 1}, {width}).",
            (width, width): "has as many vectors as dimensions. One more symbol wants to be counted.",
        }
        if vectors.shape != (width + 1, width):
            other = f"must have the shape ({width + 1}, {width}), not {tuple(vectors.shape)}."
            raise Wrong(f"{call} {why.get(tuple(vectors.shape), other)}")
        if not torch.isfinite(vectors).all():
            raise Wrong(f"{call} must be finite, and yours is not: {shown(vectors)}.")
        norms = vectors.norm(dim=1)
        if (norms - 1).abs().max() > 1e-4:
            worst = int((norms - 1).abs().argmax())
            length = f"{call}[{worst}] has length {norms[worst]:.6g}."
            if norms[worst] < 1e-9:
                raise Wrong(f"{length} A zero vector has no direction, and counts nothing.")
            if (norms - 1).abs().max() < 2e-3:
                raise Wrong(f"{length} That is 1 in half precision only: compute in float32 or float64.")
            raise Wrong(f"{length} The vectors must have length 1: divide by it.")
        products = (vectors @ vectors.T).fill_diagonal_(0)
        largest = float(products.abs().max())
        if largest > best + 1e-5:
            raise Wrong(
                f"in {call} two vectors have a product of {largest:.4g} in size; {best:.4g} can be reached. "
                f"{_leaning(products, width)}"
            )
    sure = counting.longest_counted(counting.welch_bound(64, 63))
    return Right(
        "for five widths no product is larger in size than 1/width, which is Welch's bound. With 64 symbols in 63 dimensions "
        f"the sum of the codes is sure up to {sure} tokens, and in 64 dimensions for ever."
    )


def _leaning(products: Tensor, width: int) -> str:
    if products.abs().max() > 1 - 1e-6:
        return "Two of your vectors are on one line: the one is counted for the other."
    if int((products.abs() < 1e-6).sum()) - len(products) >= width * (width - 1):
        return "Some are orthogonal, and one pays for all: let every pair share the error."
    return "All pairs should have the same product. What does symmetry suggest?"


HEAD = ("embedding", "query", "key", "value")
COUNTED = [
    "1",
    "0",
    "11",
    "0110",
    "1100",
    "1" * 60,
    "0" * 300,
    "0" * 500 + "1",
    "0" * 999 + "1",
    "10" * 300,
    "0111" * 250,
]
FAR = 4000  # how far the reach of a counter is followed


@exercise
def counter(answer: Any, n: Any) -> Right:
    """Weights of one head and a read-out that count ones among zeros, and how far they count in bf16."""
    call = "counter()"
    found = run(call, answer)
    if not isinstance(found, tuple | list) or len(found) != 5:
        given = f"{len(found)} of them" if isinstance(found, tuple | list) else shown(found)
        raise Wrong(f"{call} must be five things, embedding, query, key, value and read, not {given}.")
    head, read = [tensor(f"the {name}", weight) for name, weight in zip(HEAD, found, strict=False)], found[4]
    _check_head(head, read)
    for text in COUNTED:
        asked = f"the string {text!r}" if len(text) < 9 else f"a string of {len(text)} signs that starts {text[:4]}"
        value = _counted(read, _state(head, text), asked)
        if abs(value - text.count("1")) >= 0.5:
            raise Wrong(
                f"in float64 {asked} is read as {value:.6g}, and it has {text.count('1')} ones. {_why(head, text, value)}"
            )
    far = _far(head, read)
    if far < 100:
        raise Wrong(f"in float64 it counts, in bf16 only up to {far}, and 100 can be reached. {_coarse(head, read)}")
    claimed = number("n", n)
    if claimed > far:
        raise Wrong(f"n is smaller than {claimed:g}: with a state in bf16 your counter misreads {far + 1:,} ones.")
    if claimed < far:
        raise Wrong(f"n is larger than {claimed:g}: your counter reads {math.floor(claimed) + 1:,} ones right, too.")
    more = "at least " if far == FAR else ""
    return Right(
        f"eleven strings are counted exactly, and with a state in bf16 every string of ones up to {more}{far:,}."
    )


def _check_head(head: list[Tensor], read: Any) -> None:
    for name, weight in zip(HEAD, head, strict=True):
        if weight.ndim != 2 or not torch.isfinite(weight).all():
            raise Wrong(f"the {name} must be a matrix of finite numbers, not {shown(weight)}.")
    embedding, query, key, value = head
    width = embedding.shape[1]
    if len(embedding) != 3:
        raise Wrong(f"the embedding has a row for 0, for 1 and for the first token: three, not {len(embedding)}.")
    for name, weight in (("query", query), ("key", key), ("value", value)):
        if len(weight) != width:
            raise Wrong(f"the {name} takes embeddings of width {width}, so it has {width} rows, not {len(weight)}.")
    if query.shape[1] != key.shape[1]:
        raise Wrong(f"query and key must have as many columns, not {query.shape[1]} and {key.shape[1]}.")
    if not callable(read):
        raise Wrong(f"read must be a function of the state, not {shown(read)}.")


def _logits(head: list[Tensor]) -> Tensor:
    """Of each kind of token (row: it asks) on each kind (column)."""
    embedding, query, key, _ = head
    return (embedding @ query) @ (embedding @ key).T


def _state(head: list[Tensor], text: str) -> Tensor:
    tokens = torch.tensor([2, *map(int, text)])
    return _logits(head)[tokens[-1]][tokens].softmax(0) @ (head[0] @ head[3])[tokens]


def _counted(read: Any, state: Tensor, asked: str) -> float:
    return number(f"read(the state of {asked})", run(f"read(the state of {asked})", read, state))


def _why(head: list[Tensor], text: str, value: float) -> str:
    logits = _logits(head)[int(text[-1])]
    zeros, ones = (text.count(sign) for sign in "01")
    kinds = torch.tensor([zeros, ones, 1]).log() + logits
    if text[-1] == "0" and (_logits(head)[0] - _logits(head)[1]).abs().max() > 1e-9:
        return "A string may end in 0: let every token ask the same."
    if abs(value - len(text)) < 0.5:
        return "That is its length: zeros must get no weight."
    if ones and logits[2] < logits[1] - 20:
        return "The first token gets no weight beside the ones, so there is nothing to compare them with."
    if kinds.softmax(0)[0] > 1e-6:
        return "The zeros take weight: make their logit far smaller."
    if abs(value - ones - 1) < 0.5:
        return "One too many: is the first token counted?"
    return "What does your state hold for n ones? Write it as a formula in n, and solve it for n: that is read."


def _coarse(head: list[Tensor], read: Any) -> str:
    """Why a counter that is exact in float64 does not reach far in bf16."""
    if _far(head, read, below=1.0) >= 100:
        return "Is the count that is read cut to a whole number? Round it to the nearest."
    logits, values = _logits(head)[1], head[0] @ head[3]
    if logits[2] > logits[1] + 0.5:
        return "The first token's logit is above that of the ones: its weight stays near 1, where 8 bits are coarse."
    if values.shape[1] == 1 and abs(float(values[1])) > abs(float(values[2])):
        return "Your state is the weight of the ones, which is near 1, where 8 bits are coarse. Take the first token's."
    return "A state has 8 bits: they tell small numbers apart more finely than numbers near 1."


def _far(head: list[Tensor], read: Any, below: float = 0.5) -> int:
    """The largest n up to which each string of ones is read right, its state rounded to bf16; at most `below` too low."""
    logits, values = _logits(head)[1], head[0] @ head[3]
    for n in range(1, FAR + 1):
        weights = torch.stack([logits[1] + math.log(n), logits[2]]).softmax(0)
        state = collapse.round_to(weights @ values[1:], "bf16")
        try:
            value = float(read(state.clone()))
        except (ArithmeticError, RuntimeError, TypeError, ValueError):
            return n - 1
        if not -below <= value - n < 0.5:
            return n - 1
    return FAR
