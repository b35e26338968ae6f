"""What is behind the exercises of chapter 2."""

import itertools
import math
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter2 import figures
from course.checks import Case, Right, Wrong, compare, exercise, normal, run
from helpers import attention, data, models, probe, show
from helpers.attention import causal_mask

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
    mistakes = """
        torch.ones(n, n).tril(-1) :: You hide each token from itself: the first one would see nothing.
        torch.ones(n, n).triu() :: It is transposed: row j is the token that looks, column i the one looked at.
        torch.ones(n, n) :: Nothing is hidden: no token may see a later one.
        torch.eye(n) :: Each token sees itself alone: it may see all earlier ones, too.
        torch.zeros(n, n).masked_fill(~causal_mask(n), -math.inf) :: That is what is added to the logits. Asked is the mask: true where a token is seen.
        torch.ones(n, n).triu(1) :: It is the other way round: true where a token is hidden, as torch.nn.MultiheadAttention has it.
        torch.zeros(n, n).masked_fill(~causal_mask(n), -1e9) :: That is what is added to the logits. Asked is the mask: true where a token is seen.
        torch.ones(n, n).triu(1) * -1e9 :: That is what is added to the logits. Asked is the mask: true where a token is seen.
        torch.arange(n)[:, None] - torch.arange(n) :: Those are distances: a token is seen where the distance is 0 or more.
        torch.ones(n, n).tril(1) :: Each token sees the next one, too: `tril(1)` goes one diagonal too far.
    """

    def drawn() -> HTML:
        ax, finding = figures.graph(attention.uniform(causal_mask(10)))
        return show(ax, alt=finding, caption="Your mask, shared out equally.")

    return compare(globals(), "mask(n)", answer, lambda n: causal_mask(n).double(), given, mistakes, picture=drawn)


@exercise("2.2", "Share it out")
def share(answer: Any) -> Right:
    """Uniform attention from a mask."""
    given = _cases("attention.causal_mask(4)", "attention.window_mask(6, 3)", "attention.prefix_mask(5, 2)")
    mistakes = """
        mask.double() / len(mask) :: You divided by the number of tokens: divide each row by the number that it sees.
        mask.double() / mask.double().sum(0) :: You made the columns sum to one: each row shares out its attention.
        mask.double() / mask.double().sum(1) :: The counts lie along the columns: `sum(1, keepdim=True)` keeps them as a column, one for each row.
        mask.double().softmax(-1) :: The softmax of zeros and ones gives hidden tokens a share, too.
        mask.double() :: That is the mask: the rows must sum to one.
        torch.nn.functional.normalize(mask.double(), dim=-1) :: You divided by the length of the row, not by its sum: `normalize` takes the square root of a sum of squares, unless p=1.
        mask.double() / mask.sum() :: You divided by all that is seen in the mask: divide each row by what it sees.
        mask.double().softmax(0) :: The softmax of zeros and ones gives hidden tokens a share, too, and yours goes down the columns.
    """
    return compare(globals(), "share(mask)", answer, attention.uniform, given, mistakes)


WINDOW = "The first token must come within reach, then grow: the window sets the speed, not the end."


@exercise(
    "2.3",
    "A window, in the limit",
    guesses={
        "about as many": f"Each layer looks back three tokens, not thirty-one. {WINDOW}",
        "about four times as many": WINDOW,
        "more than twenty times as many": f"Once within reach, it grows with every layer. {WINDOW}",
    },
    true="about four times as many",
)
def half(answer: Any) -> Right:
    """How many layers it takes until the first token has half, with a window and without."""
    mistakes = """
        right(n, width) + 1 :: One layer too many: count the first layer as 1.
        right(n, width) - 1 :: One layer too few: count the first layer as 1.
        right(n, n) :: That is the full causal mask: the width plays no part in it.
        right(n, width + 1) :: Your window is one too wide: the token itself is one of its tokens.
        -(-(n - 1) // (width - 1)) :: That is when the first token is first heard at all.
        _half_above(n, width) :: You stop when it has more than half: at least half is enough.
        _half(n, width, residual=0.5) :: There is no residual here: yours keeps half of each token's own state.
        _half(n, width, 0.9) :: Half of the state is asked for, 0.5.
        _half(n, width, 0.25) :: Half of the state is asked for, 0.5.
        -(-n // width) :: Layers reach width - 1 places back, and in reach is not half.
        n // width :: Layers reach width - 1 places back, and in reach is not half.
    """
    given = _cases("8, 8", "8, 3", "16, 4", "32, 4", "12, 2", "2, 2")
    compare(globals(), "half(n, width)", answer, _half, given, mistakes)
    full, narrow = (int(run(f"half(32, {w})", answer, 32, w)) for w in (32, 4))
    return Right(
        f"your function gives half(32, 32) = {full} and half(32, 4) = {narrow}: {narrow / full:.1f} times as many."
    )


def _half(n: int, width: int, enough: float = 0.5, residual: float = 0.0) -> int:
    matrix = attention.uniform(attention.window_mask(n, width))
    matrix = (1 - residual) * matrix + residual * torch.eye(n)
    row = matrix[-1]
    for layers in itertools.count(1):
        if row[0] >= enough:
            return layers
        row = row @ matrix
    raise AssertionError


def _half_above(n: int, width: int) -> int:
    return _half(n, width, math.nextafter(0.5, 1))


COPIED = 64  # where the special first token stands a second time


@exercise(
    "2.4",
    "A second first token",
    guesses={
        "as much as the first": "Whatever comes first becomes a sink; nothing tells the copy that it is first.",
        "about half as much": "It has the same embedding, but it sees tokens before it, and its state does not grow.",
        "hardly any": "A sink is made by the place, not by the token: only the first sees itself alone.",
    },
    true="hardly any",
)
def received(answer: Any) -> Right:
    """How much attention later tokens give to one: on random maps, then the model's first token and its copy."""
    mistakes = """
        attention[..., place:, place].mean() :: The token's own row is in your mean: only the tokens after it count.
        attention[..., place].mean() :: The rows before the token are in your mean, which cannot see it: begin behind the place.
        attention[..., place + 1 :, place].sum() :: That is a sum: take the mean over layers, heads and later tokens.
        attention[..., place + 1 :, place].sum(-1).mean() :: You added up over the later tokens: take their mean.
        attention[..., place, :].mean() :: You took the token's row: that is what it looks at. Asked is who looks at it.
        attention[..., place, place + 1 :].mean() :: You took the token's row: that is what it looks at. Asked is who looks at it.
        attention[..., place + 1, place].mean() :: That is the next token alone: all later ones count.
        attention[..., -1, place].mean() :: That is the last token alone: all later ones count.
        attention[..., place + 1 :, place].max() :: That is the largest share: take the mean.
        attention[-1, ..., place + 1 :, place].mean() :: That is the last layer alone.
        attention[:, 0, place + 1 :, place].mean() :: That is the first head alone.
    """
    given = _cases(
        "checks.random_attention(2, 3, 6, 6, seed=0), 0",
        "checks.random_attention(2, 3, 6, 6, seed=1), 3",
        "checks.random_attention(4, 2, 9, 9, seed=2), 1",
    )
    compare(globals(), "received(attention, place)", answer, _received, given, mistakes)
    maps, name = _with_a_copy()
    first, copied, beside = (float(run("received", answer, maps, place)) for place in (0, COPIED, COPIED - 1))
    return Right(
        f"in {name} your function gives the first token {first:.0%} of the attention of later ones, its copy at place {COPIED} "
        f"{copied:.1%}, and the word before that {beside:.1%}."
    )


def _received(attention: Tensor, place: int) -> Tensor:
    return attention[..., place + 1 :, place].mean()


@cache
def _with_a_copy() -> tuple[Tensor, str]:
    """The embedded model's maps on 128 tokens of prose, with its special first token in the middle, too; its name."""
    model = models.default()
    tokens = torch.cat([probe.first_token(model), probe.encode(model, data.prose())[:127]])
    tokens[COPIED] = tokens[0]
    return probe.attention_maps(model, tokens), model.name


@exercise("2.5", "Influence through the layers")
def influence(answer: Any) -> Right:
    """The product over the layers, with a residual."""
    given = _cases(
        "torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75]]]), 0.0",
        "checks.random_attention(3, 4, 4, seed=0), 0.0",
        "checks.random_attention(2, 5, 5, seed=1), 0.5",
        "checks.random_attention(4, 5, 5, seed=2), 0.8",
    )
    mistakes = """
        attention.influence(attentions.flip(0), residual) :: The order is reversed: the first layer is applied first, so it stands on the right.
        attention.influence(attentions, 1 - residual) :: You swapped the shares: `residual` is that of the own state.
        attention.influence(attentions) :: You left the residual out.
        attention.influence(attentions, 0.5) :: That is (A + I) / 2, the rollout of the literature: here the residual's share is an argument.
        attention.influence(attentions, residual).T :: It is transposed: row j holds the influence of all tokens on token j.
        _layers(attentions, residual, lambda a, i, r: a + r * i) :: You added residual times I without taking as much from A: the rows must sum to one.
        (1 - residual) * attention.influence(attentions) + residual * torch.eye(len(attentions[0])) :: You added the residual once, at the end: every layer has it.
        attentions.mean(0) :: You added the layers up: what one layer mixes, the next one mixes again.
        _entrywise(attentions, residual) :: `*` multiplies entry by entry: matrices are multiplied with `@`.
        _layers(attentions, residual, lambda a, i, r: (1 - r) * a + r) :: You added r to every entry: the residual is r times the identity.
        _layers(attentions, residual, lambda a, i, r: (1 - r) * a) :: The residual itself is missing: add r times the identity.
        _layers(attentions, residual, lambda a, i, r: a + i) :: You added A and I with full weight: the shares are 1 - r and r.
        right(attentions[1:], residual) :: You left the first layer out.
        right(attentions[:-1], residual) :: You left the last layer out.
        (1 - residual) * attentions.sum(0) + residual * len(attentions) * torch.eye(len(attentions[0])) :: You added the layers up: what one layer mixes, the next one mixes again.
    """
    return compare(
        globals(), "influence(attentions, residual)", answer, lambda a, r: attention.influence(a, r), given, mistakes
    )


def _layers(attentions: Tensor, residual: float, layer: Callable) -> Tensor:
    product = identity = torch.eye(len(attentions[0]), dtype=torch.float64)
    for matrix in attentions:
        product = layer(matrix.double(), identity, residual) @ product
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
    mistakes = """
        right(n, layers + 1) :: One step too many: a path of L steps has L - 1 free stops, since it must end at the last token.
        right(n, max(layers - 1, 1)) :: One step too few: with one step there is one path from each token.
        [math.comb(n - 2 - j, layers - 1) if j < n - 1 else 0 for j in range(n)] :: You do not let a path stay: a token sees itself, too.
        [math.comb(n - 1 - j, layers - 1) for j in range(n)] :: Your stops all differ: a path may stay for several steps.
        [math.comb(n - j + layers - 1, layers - 1) for j in range(n)] :: One too many: from token i (from 0) there are n - 1 - i steps forward to the last.
        right(n, layers)[::-1] :: It is in the wrong order: the first entry is for the first token, which has most.
        [n ** (layers - 1)] * n :: You count stops in any order: a step never leads to an earlier token.
        [math.comb(n - 1, layers - 1)] * n :: Your entries are all alike: a path has fewer ways the nearer it starts.
        [layers ** (n - 1 - j) for j in range(n)] :: A power of the layers counts each step by itself: count the free stops, in order, with a binomial.
        [max(n - 1 - j, 1) ** (layers - 1) for j in range(n)] :: Free stops must not go back: they are in order, with repetition.
    """
    return compare(globals(), "paths(n, layers)", answer, attention.path_count, given, mistakes)


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
    mistakes = """
        attention.sink_score(matrix) :: That is the plain score: uniform attention must get 0.
        attention.sink_score(matrix) - _flat(len(matrix)) :: Divide by what is possible above uniform attention, so that 1 is the most.
        (attention.sink_score(matrix) - 1 / len(matrix)) / (1 - 1 / len(matrix)) :: You took 1/n for the score of uniform attention: early rows see fewer tokens and give the first one more.
        (matrix[0].mean() - _flat(len(matrix))) / (1 - _flat(len(matrix))) :: You took the row: that is what the first token looks at. Asked is who looks at it.
        attention.sink_score(matrix) / _flat(len(matrix)) :: That is the ratio to uniform attention, which has no upper end.
        (matrix[-1, 0] - 1 / len(matrix)) / (1 - 1 / len(matrix)) :: You used the last row alone: the score is the mean over all rows.
        (attention.sink_score(matrix) - _flat(len(matrix))) / _flat(len(matrix)) :: You divided by the uniform score: divide by what is possible above it, 1 less that score.
        right(matrix).clamp(min=0) :: You cut off what is below 0: less than uniform attention is negative.
        matrix[:, 0].sum() :: That is a sum over the rows: the score is their mean, set against uniform attention.
        (matrix[:, -1].mean() - _flat(len(matrix))) / (1 - _flat(len(matrix))) :: That is the last column: asked is the first token.
        (matrix[1:, 0].mean() - _flat(len(matrix))) / (1 - _flat(len(matrix))) :: You left the first row out of the mean, and not out of the uniform score.
        (attention.sink_score(matrix) - _flat(len(matrix))) * (1 - _flat(len(matrix))) :: Divide by what is possible above uniform attention; you multiplied.
        attention.sink_score(matrix) * (1 - _flat(len(matrix))) :: Take the uniform score off, and divide by what is left above it.
        attention.sink_score(matrix) / (1 - _flat(len(matrix))) :: The uniform score is to be taken off first.
    """

    def drawn() -> HTML:
        ax, finding = figures.trap(lambda matrix: float(run("sink_score", answer, matrix)))
        return show(ax, alt=finding, caption="The plain score and yours, of uniform attention and of a sink.")

    return compare(globals(), "sink_score(matrix)", answer, _above_uniform, given, mistakes, picture=drawn)


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
    mistakes = """
        round(layers / math.expm1(rate)) :: You rounded to the nearest: ask when the next step still gains.
        math.ceil(layers / math.expm1(rate)) :: You rounded up: at the next whole number the weight is smaller already.
        math.floor(layers / rate) :: e^c - 1 is close to c for a small rate only.
        layers / math.expm1(rate) :: That is not rounded: distances are whole numbers.
        0 :: You left out the paths: e^(-c x) alone is largest at distance 0, the number of paths grows with x.
        math.floor(layers / math.exp(rate)) :: You divided by e^c: subtract 1 first.
        math.floor((layers - 1) / math.expm1(rate)) :: You counted one layer less: t is the number that stands in the binomial.
        math.floor((layers + 1) / math.expm1(rate)) :: You counted one layer more: t is the number that stands in the binomial.
        math.floor(layers / -math.expm1(-rate)) :: The formula has e^c - 1 below; yours has 1 - e^(-c).
        math.floor(layers * math.expm1(rate)) :: You multiplied by e^c - 1: divide.
        max(range(20), key=lambda x: math.comb(layers + x, x) * math.exp(-rate * x)) :: You looked at 20 distances only: the peak may be farther away.
        max(range(50), key=lambda x: math.comb(layers + x, x) * math.exp(-rate * x)) :: You looked at 50 distances only: the peak may be farther away.
        max(range(100), key=lambda x: math.comb(layers + x, x) * math.exp(-rate * x)) :: You looked at 100 distances only: the peak may be farther away.
    """
    return compare(globals(), "peak(layers, rate)", answer, _peak, given, mistakes)


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
    mistakes = """
        right(back, directions) / directions.shape[1] ** 0.5 :: You left out the width d: a direction of length one sees one d-th of the square.
        right(back, directions) * len(directions) ** 0.5 :: You added the squares up: take their mean over the directions.
        right(back, directions) ** 2 :: That is the square of the norm.
        directions.shape[1] ** 0.5 * torch.stack([back(r).norm(dim=-1) for r in directions]).mean(0) :: You averaged the norms: the squares are right on average, their roots are not.
        directions.shape[1] ** 0.5 * torch.stack([back(r) for r in directions]).mean(0).norm(dim=-1) :: You averaged before squaring: the signs of the directions cancel.
        right(back, directions).square().sum().sqrt() :: You summed over all tokens: each one has a norm of its own.
        right(back, directions) * directions.shape[1] ** 0.5 :: The width goes under the root, too.
        right(back, directions) * (len(directions) / directions.shape[1]) ** 0.5 :: You took the number of directions for the width d.
        directions.shape[1] ** 0.5 * back(directions[0]).norm(dim=-1) :: You used the first direction alone.
        (directions.shape[1] * torch.stack([back(r) for r in directions]).square().sum(0).mean(-1)).sqrt() :: You averaged over the entries and added over the directions: it is the other way round.
        (directions.shape[1] * torch.stack([back(r) for r in directions]).square().mean((0, 2))).sqrt() :: You averaged over the entries: add them up, the norm is a sum of squares.
        (back(directions[0]).shape[-1] * torch.stack([back(r) for r in directions]).square().sum(-1).mean(0)).sqrt() :: The factor is the width d of the directions, not that of the inputs.
    """
    right = compare(globals(), "norms(back, directions)", answer, _norms, given, mistakes)
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
            each = [checks.tensor(f"each mask of {call}", m) for m in found]
        except TypeError:
            raise Wrong(f"{call} must return a list of masks, not {checks.shown(found)}.") from None
        if len(each) != layers or any(m.shape != (n, n) for m in each):
            raise Wrong(f"{call} must return {layers} mask{'s' * (layers > 1)} of {n} x {n}, one for each layer.")
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
        why = f"Only {heard} of {n} tokens are heard at all: with two tokens a row, each layer has to double how many."
    else:
        why = "All are heard, some by more paths: each token must be reached by exactly one path."
    return f"{call}: the shares of the last token's state are {shares}. {why}"
