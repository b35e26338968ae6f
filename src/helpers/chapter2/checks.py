"""What is behind the exercises of chapter 2."""

import itertools
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from helpers import attention, checks, show
from helpers.attention import causal_mask
from helpers.chapter2 import figures
from helpers.checks import Case, Right, Trap, Wrong, choice, compare, exercise, normal, run

progress = partial(checks.progress, globals().values())  # of all exercises of this module


def random_attention(*shape: int, seed: int) -> Tensor:
    """Random causal attention: (…, n, n), rows that sum to one."""
    return normal(*shape, seed=seed).masked_fill(~causal_mask(shape[-1]), -math.inf).softmax(-1)


def _cases(*texts: str) -> list[Case]:
    names = {"checks": sys.modules[__name__], "torch": torch, "attention": attention}
    return checks.cases(names, *texts)


@exercise("2.1", "The causal mask")
def mask(answer: Any) -> Right:
    """Which tokens each token may see."""
    given = _cases("1", "2", "3", "6")
    traps = [
        Trap("You hide each token from itself: the first one would see nothing.", lambda n: torch.ones(n, n).tril(-1)),
        Trap(
            "It is transposed: row j is the token that looks, column i the one looked at.",
            lambda n: torch.ones(n, n).triu(),
        ),
        Trap("Nothing is hidden: no token may see a later one.", lambda n: torch.ones(n, n)),
        Trap("Each token sees itself alone: it may see all earlier ones, too.", torch.eye),
        Trap("That is what is added to the logits. Asked is the mask: true where a token is seen.", _additive),
        Trap(
            "It is the other way round: true where a token is hidden, as torch.nn.MultiheadAttention has it.",
            lambda n: torch.ones(n, n).triu(1),
        ),
    ]

    def drawn() -> HTML:
        ax, finding = figures.graph(attention.uniform(causal_mask(10)))
        return show(ax, alt=finding, caption="Your mask, shared out equally.")

    return compare("mask", answer, lambda n: causal_mask(n).double(), given, traps, picture=drawn)


def _additive(n: int) -> Tensor:
    return torch.zeros(n, n).masked_fill(~causal_mask(n), -math.inf)


@exercise("2.2", "Share it out")
def share(answer: Any) -> Right:
    """Uniform attention from a mask."""
    given = _cases("attention.causal_mask(4)", "attention.window_mask(6, 3)", "attention.prefix_mask(5, 2)")
    traps = [
        Trap(
            "You divided by the number of tokens: divide each row by the number that it sees.",
            lambda m: m.double() / len(m),
        ),
        Trap(
            "You made the columns sum to one: each row shares out its attention.",
            lambda m: m.double() / m.double().sum(0),
        ),
        Trap(
            "The counts lie along the columns: `sum(1, keepdim=True)` keeps them as a column, one for each row.",
            lambda m: m.double() / m.double().sum(1),
        ),
        Trap("The softmax of zeros and ones gives hidden tokens a share, too.", lambda m: m.double().softmax(-1)),
        Trap("That is the mask: the rows must sum to one.", lambda m: m.double()),
    ]
    return compare("share", answer, attention.uniform, given, traps)


@exercise("2.3", "A window, in the limit")
def half(prediction: Any, answer: Any) -> Right:
    """How much slower a window is, and how many layers it takes until the first token has half."""
    reasons = {
        "about as many": "Each layer can look back three tokens, not thirty-one. How long until the first is in reach at all?",
        "about four times as many": "Predicted: 21 layers against 5. The first token must come within reach, then grow.",
        "more than twenty times as many": "It must come within reach first, ten layers or so. After that it grows with "
        "every layer. Compute it.",
    }
    choice("prediction", prediction, reasons, "about four times as many")
    traps = [
        Trap("One layer too many: count the first layer as 1.", lambda n, w: _half(n, w) + 1),
        Trap("One layer too few: count the first layer as 1.", lambda n, w: _half(n, w) - 1),
        Trap("That is the full causal mask: the width plays no part in it.", lambda n, w: _half(n, n)),
        Trap("Your window is one too wide: the token itself is one of its tokens.", lambda n, w: _half(n, w + 1)),
        Trap("That is when the first token is first heard at all.", lambda n, w: -(-(n - 1) // (w - 1))),
        Trap("You stop when it has more than half: at least half is enough.", _half_above),
    ]
    given = _cases("8, 8", "8, 3", "16, 4", "32, 4", "12, 2", "2, 2")
    compare("half", answer, _half, given, traps)
    return Right(f"{reasons[prediction]} The window sets the speed, not the end.")


def _half(n: int, width: int, enough: float = 0.5) -> int:
    matrix = attention.uniform(attention.window_mask(n, width))
    row = matrix[-1]
    for layers in itertools.count(1):
        if row[0] >= enough:
            return layers
        row = row @ matrix
    raise AssertionError


def _half_above(n: int, width: int) -> int:
    return _half(n, width, math.nextafter(0.5, 1))


@exercise("2.4", "Predict: a second first token")
def second(prediction: Any) -> Right:
    """How much attention the model's special first token gets when it stands in the middle, too."""
    reasons = {
        "as much as the first": "Whatever comes first becomes a sink. What tells this one that it is first?",
        "about half as much": "It has the same embedding, but it sees tokens before it. Does its state grow?",
        "hardly any": "A sink is made by the place, not by the token: only the first sees itself alone.",
    }
    return choice("prediction", prediction, reasons, "hardly any")


@exercise("2.5", "Influence through the layers")
def influence(answer: Any) -> Right:
    """The product over the layers, with a residual."""
    given = _cases(
        "torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75]]]), 0.0",
        "checks.random_attention(3, 4, 4, seed=0), 0.0",
        "checks.random_attention(2, 5, 5, seed=1), 0.5",
        "checks.random_attention(4, 5, 5, seed=2), 0.8",
    )
    traps = [
        Trap(
            "The order is reversed: the first layer is applied first, so it stands on the right.",
            lambda a, r: attention.influence(a.flip(0), r),
        ),
        Trap(
            "You swapped the shares: `residual` is that of the own state.", lambda a, r: attention.influence(a, 1 - r)
        ),
        Trap("You left the residual out.", lambda a, r: attention.influence(a)),
        Trap(
            "That is (A + I) / 2, the rollout of the literature: here the residual's share is an argument.",
            lambda a, r: attention.influence(a, 0.5),
        ),
        Trap(
            "It is transposed: row j holds the influence of all tokens on token j.",
            lambda a, r: attention.influence(a, r).T,
        ),
        Trap("You added residual times I without taking as much from A: the rows must sum to one.", _added),
        Trap(
            "You added the residual once, at the end: every layer has it.",
            lambda a, r: (1 - r) * attention.influence(a) + r * torch.eye(len(a[0])),
        ),
        Trap("You added the layers up: what one layer mixes, the next one mixes again.", lambda a, r: a.mean(0)),
        Trap("`*` multiplies entry by entry: matrices are multiplied with `@`.", _entrywise),
    ]
    return compare("influence", answer, lambda a, r: attention.influence(a, r), given, traps)


def _added(attentions: Tensor, residual: float) -> Tensor:
    product = torch.eye(len(attentions[0]), dtype=torch.float64)
    for matrix in attentions:
        product = (matrix.double() + residual * torch.eye(len(matrix))) @ product
    return product


def _entrywise(attentions: Tensor, residual: float) -> Tensor:
    product = torch.ones_like(attentions[0]).double()
    for matrix in attentions:
        product = ((1 - residual) * matrix + residual * torch.eye(len(matrix))) * product
    return product


@exercise("2.6", "Count the paths")
def paths(answer: Any) -> Right:
    """Paths into the last token, by where they start."""
    given = _cases("5, 1", "5, 2", "5, 3", "1, 4", "20, 6", "100, 12")
    traps = [
        Trap(
            "One step too many: a path of L steps has L - 1 free stops, since it must end at the last token.",
            lambda n, k: _binomials(n, k + 1),
        ),
        Trap(
            "One step too few: with one step there is one path from each token.",
            lambda n, k: _binomials(n, max(k - 1, 1)),
        ),
        Trap(
            "You do not let a path stay: a token sees itself, too.",
            lambda n, k: [math.comb(n - 2 - j, k - 1) if j < n - 1 else 0 for j in range(n)],
        ),
        Trap(
            "Your stops all differ: a path may stay for several steps.",
            lambda n, k: [math.comb(n - 1 - j, k - 1) for j in range(n)],
        ),
        Trap(
            "One too many: from token i (from 0) there are n - 1 - i steps forward to the last.",
            lambda n, k: [math.comb(n - j + k - 1, k - 1) for j in range(n)],
        ),
        Trap(
            "It is in the wrong order: the first entry is for the first token, which has most.",
            lambda n, k: _binomials(n, k)[::-1],
        ),
        Trap("You count stops in any order: a step never leads to an earlier token.", lambda n, k: [n ** (k - 1)] * n),
    ]
    return compare("paths", answer, attention.path_count, given, traps)


def _binomials(n: int, layers: int) -> list[int]:
    return attention.path_count(n, layers)


@exercise("2.7", "A sink score without the trap")
def sink_score(answer: Any) -> Right:
    """How far above uniform attention the first token's score is, as a share of what is possible."""
    given = _cases(
        "torch.tensor([[1.0, 0.0], [0.25, 0.75]])",
        "attention.uniform(attention.causal_mask(5))",
        "attention.sink(8, 0.5)",
        "checks.random_attention(6, 6, seed=0)",
        "attention.sink(64, 1.0)",
    )
    traps = [
        Trap("That is the plain score: uniform attention must get 0.", attention.sink_score),
        Trap(
            "Divide by what is possible above uniform attention, so that 1 is the most.",
            lambda a: attention.sink_score(a) - _flat(len(a)),
        ),
        Trap(
            "You took 1/n for the score of uniform attention: early rows see fewer tokens and give the first one more.",
            lambda a: (attention.sink_score(a) - 1 / len(a)) / (1 - 1 / len(a)),
        ),
        Trap(
            "You took the row: that is what the first token looks at. Asked is who looks at it.",
            lambda a: (a[0].mean() - _flat(len(a))) / (1 - _flat(len(a))),
        ),
        Trap("That is the ratio to uniform attention, which has no upper end.", lambda a: _plain(a) / _flat(len(a))),
        Trap(
            "You used the last row alone: the score is the mean over all rows.",
            lambda a: (a[-1, 0] - 1 / len(a)) / (1 - 1 / len(a)),
        ),
    ]

    def drawn() -> HTML:
        ax, finding = figures.trap(lambda matrix: float(run("sink_score", answer, matrix)))
        return show(ax, alt=finding, caption="The plain score and yours, of uniform attention and of a sink.")

    return compare("sink_score", answer, _above_uniform, given, traps, picture=drawn)


def _plain(matrix: Tensor) -> Tensor:
    return attention.sink_score(matrix)


def _flat(n: int) -> float:
    return float(attention.sink_score(attention.uniform(causal_mask(n))))


def _above_uniform(matrix: Tensor) -> Tensor:
    return (_plain(matrix) - _flat(len(matrix))) / (1 - _flat(len(matrix)))


@exercise("2.8", "Where decay looks")
def peak(answer: Any) -> Right:
    """The distance of the largest influence under a decay mask, as a whole number."""
    given = _cases("12, 0.1", "12, 0.5", "12, 1.0", "32, 1.0", "1, 5.0", "100, 0.05")
    traps = [
        Trap("You rounded to the nearest: ask when the next step still gains.", lambda t, m: round(t / math.expm1(m))),
        Trap(
            "You rounded up: at the next whole number the weight is smaller already.",
            lambda t, m: math.ceil(t / math.expm1(m)),
        ),
        Trap("e^c - 1 is close to c for a small rate only.", lambda t, m: math.floor(t / m)),
        Trap("That is not rounded: distances are whole numbers.", lambda t, m: t / math.expm1(m)),
        Trap(
            "You left out the paths: e^(-c x) alone is largest at distance 0, the number of paths grows with x.",
            lambda t, m: 0,
        ),
        Trap("You divided by e^c: subtract 1 first.", lambda t, m: math.floor(t / math.exp(m))),
        Trap(
            "You counted one layer less: t is the number that stands in the binomial.",
            lambda t, m: math.floor((t - 1) / math.expm1(m)),
        ),
    ]
    return compare("peak", answer, _peak, given, traps)


def _peak(layers: int, rate: float) -> int:
    """By looking: ties and rounding aside, the floor of the formula."""
    x = 0
    while (layers + x + 1) / (x + 1) * math.exp(-rate) > 1:
        x += 1
    return x


@exercise("2.9", "A Jacobian from a few directions")
def norms(answer: Any) -> Right:
    """Frobenius norms of Jacobians from products with random directions."""
    given = [
        Case(
            f"checks.backward(seed={seed}), checks.directions({count}, {width}, seed={seed})",
            (backward(seed, width), directions(count, width, seed)),
        )
        for seed, count, width in ((0, 2, 6), (1, 3, 8), (2, 5, 5))
    ]
    traps = [
        Trap(
            "You left out the width d: a direction of length one sees one d-th of the square.",
            lambda f, q: _norms(f, q) / q.shape[1] ** 0.5,
        ),
        Trap(
            "You added the squares up: take their mean over the directions.", lambda f, q: _norms(f, q) * len(q) ** 0.5
        ),
        Trap("That is the square of the norm.", lambda f, q: _norms(f, q) ** 2),
        Trap(
            "You averaged the norms: the squares are right on average, their roots are not.",
            lambda f, q: q.shape[1] ** 0.5 * torch.stack([f(r).norm(dim=-1) for r in q]).mean(0),
        ),
        Trap(
            "You averaged before squaring: the signs of the directions cancel.",
            lambda f, q: q.shape[1] ** 0.5 * torch.stack([f(r) for r in q]).mean(0).norm(dim=-1),
        ),
        Trap(
            "You summed over all tokens: each one has a norm of its own.",
            lambda f, q: _norms(f, q).square().sum().sqrt(),
        ),
        Trap("The width goes under the root, too.", lambda f, q: _norms(f, q) * q.shape[1] ** 0.5),
        Trap(
            "You took the number of directions for the width d.",
            lambda f, q: _norms(f, q) * (len(q) / q.shape[1]) ** 0.5,
        ),
        Trap("You used the first direction alone.", lambda f, q: q.shape[1] ** 0.5 * f(q[0]).norm(dim=-1)),
    ]
    right = compare("norms", answer, _norms, given, traps)
    return Right(right.sentence + " With as many directions as the width it is exact: the last case was.")


def _norms(back: Callable, rows: Tensor) -> Tensor:
    squares = torch.stack([back(row).square().sum(-1) for row in rows])
    return (rows.shape[1] * squares.mean(0)).sqrt()


def backward(seed: int, width: int = 6) -> Callable[[Tensor], Tensor]:
    """The backward pass of a linear network of 4 tokens: from a direction (d,) to gradients (4, 3)."""
    jacobian = normal(4, 3, width, seed=seed)
    return lambda direction: jacobian @ torch.as_tensor(direction).double()


def directions(count: int, width: int, seed: int) -> Tensor:
    """Orthonormal rows."""
    return torch.linalg.qr(normal(width, count, seed=seed + 100)).Q.T.contiguous()


@exercise("2.10", "Masks that hear all alike")
def masks(answer: Any) -> Right:
    """Masks, one a layer, of at most two tokens a row, after which the last token hears all equally."""
    for layers in (1, 2, 3, 5):
        n, call = 2**layers, f"masks({layers})"
        found = run(call, answer, layers)
        try:
            each = [torch.as_tensor(m).double() for m in found]
        except (TypeError, ValueError, RuntimeError):
            raise Wrong(f"{call} must return a list of masks, not {checks.shown(found)}.") from None
        if len(each) != layers or any(m.shape != (n, n) for m in each):
            raise Wrong(f"{call} must return {layers} masks of {n} x {n}, one for each layer.")
        for k, m in enumerate(each, 1):
            where = f"{call}, layer {k}"
            if not ((m == 0) | (m == 1)).all():
                raise Wrong(
                    f"{where}: a mask holds true and false (or 1 and 0) alone; what is seen is shared out equally."
                )
            if (m.triu(1) != 0).any():
                raise Wrong(f"{where}: a token sees a later one. Is the mask transposed?")
            if (m.sum(1) == 0).any():
                raise Wrong(f"{where}: token {int(m.sum(1).argmin())} sees nothing. Let it see itself.")
            if (m.sum(1) > 2).any():
                raise Wrong(
                    f"{where}: token {int(m.sum(1).argmax())} sees {int(m.sum(1).max())} tokens; two are allowed."
                )
        row = attention.influence([attention.uniform(m.bool()) for m in each])[-1]
        if (row - 1 / n).abs().max() > 1e-9:
            raise Wrong(_unequal(call, row, each))
    return Right("each of 2, 4, 8 and 32 tokens has the same share of the last one's state.")


def _unequal(call: str, row: Tensor, each: list[Tensor]) -> str:
    """Why a profile is not flat."""
    n, heard = len(row), int((row > 0).sum())
    shares = checks.shown(row)
    if 1 < heard < n and all(torch.equal(m, each[0]) for m in each):
        why = "Steps of equal length meet again and again: L layers of the same mask reach few tokens. Let the steps grow."
    elif heard < n:
        why = f"Only {heard} of {n} tokens are heard at all: with two tokens a row the paths must never meet."
    else:
        why = "All are heard, some by more paths: each token must be reached by exactly one path."
    return f"{call}: the shares of the last token's state are {shares}. {why}"
