"""What is behind the exercises of chapter 6."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from IPython.display import HTML
from scipy import stats
from torch import Tensor
from torch.nn import functional

from course import checks, significance
from course.chapter6 import figures, measures
from course.checks import Right, Wrong, drawn, exercise, normal, run, shown
from course.experiments import comparison, race
from course.experiments.entries import BASELINE
from course.experiments.protocol import BUDGET, LEVEL, TRAINED
from helpers import attention, data, differential, models, probe, style

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


progress = partial(checks.progress, globals().values())  # of all exercises of this module
compare = partial(checks.tabled, globals())


def _floats(value: Any) -> Tensor:
    return torch.as_tensor(value).detach().double()


# Two maps ----------------------------------------------------------------------------------------------


@exercise
def subtract(answer: Any, largest: Any) -> Right:
    """The signed row, and the largest lambda at which no weight of it is below 0."""

    def maps(f: Callable) -> Callable:
        return lambda x, y, lam: f(x.softmax(-1), y.softmax(-1), lam)

    compare("difference", answer, differential.difference, maps=maps)

    def ratios(f: Callable) -> Callable:
        return lambda x, y: f(x.softmax(-1), y.softmax(-1))

    compare("largest", largest, ratios(lambda a, b: (a / b).min()), ratios=ratios)

    def picture() -> HTML:
        first, second = (x[0, :24] for x in measures.noisy_logits(3.0, 0.8, 24))
        before, row = first.softmax(-1), _floats(answer(first, second, 0.8))
        ax = style.axes(f"λ = 0.8: {int((row < -1e-12).sum())} of 24 weights are negative", "key", "weight")
        ax.bar(range(24), before.tolist(), 0.9, color="#cccccc", label="first map")
        ax.bar(range(24), row.tolist(), 0.45, color=[RED if w < 0 else BLUE for w in row])
        ax.axhline(0, color=BLACK, lw=1)
        ax.legend()
        bound = float(_floats(largest(first, second)))
        return drawn(ax, f"The row sums to {row.sum():.2f}. No weight is below 0 up to λ = {bound:.3f}.")

    return Right("both functions agree with the solution on all cases. A row sums to 1 - λ.", picture)


@exercise
def shared(answer: Any) -> Right:
    """The cosine of two rows without one key; then over all pairs of heads of the embedded model."""
    compare("shared", answer, _shared)
    cosines, name = _of_all_heads()
    one, other, found = cosines
    yours = float(_floats(run("shared", answer, one, other, 0)))
    return Right(
        f"your function gives {yours:.2f} for two rows of {name}. Over all pairs of heads of one layer, on 64 tokens of prose, the "
        f"mean is {float(found.mean()):.2f}, and {float((found > 0.4).double().mean()):.0%} are above 0.4."
    )


def rows(n: int, seed: int) -> Tensor:
    """A row of attention weights."""
    return normal(n, seed=seed).softmax(-1)


def _other(row: Tensor, key: int) -> Tensor:
    return row[torch.arange(len(row)) != key]


def _without(row: Tensor, key: int) -> Tensor:
    return torch.where(torch.arange(len(row)) == key, 0.0, row)


def _cosine(first: Tensor, second: Tensor) -> Tensor:
    return first @ second / (first.norm() * second.norm())


def _shared(first: Tensor, second: Tensor, key: int) -> Tensor:
    return _cosine(_without(first, key), _without(second, key))


@cache
def _of_all_heads() -> tuple[tuple[Tensor, Tensor, Tensor], str]:
    """Two rows of the embedded model, the cosines of all pairs of heads of one layer without the first token, its name."""
    model = models.default()
    ids = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:64]
    maps = probe.attention_maps(model, ids).double()[:, :, 16:]
    kept = functional.normalize(maps[..., 1:], dim=-1)
    cosines = torch.einsum("lhqk,lgqk->hglq", kept, kept)
    pairs = torch.ones(cosines.shape[:2]).triu(1).bool()
    return (maps[10, 0, -1], maps[10, 1, -1], cosines[pairs]), model.name


@exercise
def noise_left(answer: Any) -> Right:
    """The size of a difference of two patterns."""
    compare("noise_left", answer, lambda c, lam: math.sqrt(1 + lam**2 - 2 * lam * c))

    def picture() -> HTML:
        ax, finding = figures.noise_left()
        places = [k / 20 for k in range(21)]
        ax.plot(places, [float(_floats(answer(c, 0.8))) for c in places], "x", ms=9, mew=2, color=BLACK)
        return drawn(ax, f"Crosses: your function at λ = 0.8. {finding}")

    return Right(
        f"your function gives noise_left(0.5, 1.0) = {float(run('noise_left', answer, 0.5, 1.0)):.3g}.", picture
    )


# From logits to weights --------------------------------------------------------------------------------


@exercise
def off_by_one(answer: Any) -> Right:
    """Softmax with a 1 in the denominator, at logits of any size."""

    def shifted(x: Tensor, one: Callable[[Tensor], Any]) -> Tensor:
        top = x.max(-1, keepdim=True).values
        e = (x - top).exp()
        return e / (one(top) + e.sum(-1, keepdim=True))

    return compare(
        "off_by_one",
        answer,
        attention.softmax_off_by_one,
        picture=lambda: _maps({"softmax": lambda x: x.softmax(-1), "yours": answer}, "nothing found", 64),
        shifted=shifted,
    )


def _naive(x: Tensor) -> Tensor:
    return x.exp() / (1 + x.exp().sum(-1, keepdim=True))


def _maps(ways: dict[str, Callable], content: str, n: int) -> HTML:
    """The weights of each way on the logits of the lesson's panel."""
    logits, places = measures.panel_logits(content, n)
    found = {name: _floats(way(logits.clone())) for name, way in ways.items()}
    ax = style.axes("", "key", "weight")
    for shift, (name, row), colour in zip((0.0, 0.3, 0.6), found.items(), (GREY, BLUE, RED), strict=False):
        ax.vlines(torch.arange(n) + shift, 0, row, color=colour, lw=2.5, label=name)
    ax.axhline(0, color=BLACK, lw=0.8)
    ax.legend()
    said = ", ".join(f"{name} {row[places or slice(None)].sum():.2f}" for name, row in found.items())
    zeros = ", ".join(f"{name} {int((row == 0).sum())}" for name, row in found.items())
    finding = f"The answer among {n} keys gets: {said}. Exact zeros: {zeros}."
    if not places:
        finding = f"Nothing fits the query, and the weights sum to: {said}."
    ax.set_title(f"{content.capitalize()}: {said}")
    return drawn(ax, finding)


@exercise
def smallest_scale(answer: Any) -> Right:
    """The smallest s of scalable softmax that gives the key that leads a weight."""

    def scale(gap: float, n: int, weight: float) -> float:
        return (math.log(n - 1) + _odds(weight)) / (gap * math.log(n))

    return compare("smallest_scale", answer, scale, picture=lambda: _scales(answer))


def _odds(weight: float) -> float:
    return math.log(weight / (1 - weight))


def _scales(answer: Callable) -> HTML:
    lengths = [2**k for k in range(3, 21)]
    most, least = (float(answer(1.0, n, 0.9)) for n in (lengths[0], lengths[-1]))
    title = f"At gap 1 the scale falls from {most:.2f} to {least:.2f}: one that is fixed will do"
    ax = style.axes(title, "n (tokens)", "smallest s for 0.9", log="x")
    for gap, colour in ((1.0, RED), (2.0, BLUE), (4.0, GREEN)):
        ax.plot(lengths, [answer(gap, n, 0.9) for n in lengths], color=colour, label=f"gap {gap:g}")
        ax.axhline(1 / gap, color=colour, ls=":", lw=1.5)
    style.label(ax)
    return drawn(ax, f"Dotted: 1 / gap. At gap 1 no length from 8 to a million needs more than {most:.2f}.")


# Counting a row ----------------------------------------------------------------------------------------


@exercise
def counted(answer: Any) -> Right:
    """Lambda, and the shares of answer and noise: of the row's sum, and of the sum of sizes."""

    def other(f: Callable[[Tensor, Tensor, Tensor], Any]) -> Callable:
        def trap(row: Tensor, place: int) -> Any:
            rest = torch.cat([row[:place], row[place + 1 :]])
            return torch.stack([_floats(x) for x in f(row, row[place], rest)])

        return trap

    compare("counted", answer, other(_five), other=other)

    def picture() -> HTML:
        found = {}
        for name, correlation in (("independent", 0.0), ("correlated 0.9", 0.9)):
            first, second = (x[0] for x in measures.noisy_logits(6.0, correlation, 1024))
            found[name] = _floats(answer(differential.difference(first, second, 0.8), 0))
        ax = style.axes("", "noise's share …", "share of the row")
        for shift, (name, values), colour in zip((-0.2, 0.2), found.items(), (RED, BLUE), strict=True):
            bars = ax.bar([shift, 1 + shift], values[[2, 4]].tolist(), 0.38, color=colour, label=name)
            ax.bar_label(bars, fmt="%.2f")
        ax.set_xticks(range(2), ["with signs", "by size"])
        ax.axhline(0, color=BLACK, lw=1)
        ax.set_ylim(0, 1.15)
        ax.legend()
        one, two = found.values()
        ax.set_title(f"Independent noise: {one[2]:.2f} of the row with signs, {one[4]:.2f} by size")
        return drawn(
            ax,
            f"One row of 1,024 keys, λ = 0.8. With signs the noise is {one[2]:.2f} (independent) and {two[2]:.2f} "
            f"(correlated) of the row; by size {one[4]:.2f} and {two[4]:.2f}.",
        )

    _, share, noise, *_ = _floats(run("counted", answer, torch.tensor([0.35, 0.05, -0.1, -0.1]), 0)).tolist()
    return Right(f"your function gives the answer {share:.3g} of that row, and the noise {noise:.3g}.", picture)


def _five(row: Tensor, a: Tensor, noise: Tensor, lam: Tensor | None = None) -> tuple:
    total, sizes = row.sum(), row.abs().sum()
    return 1 - total if lam is None else lam, a / total, noise.sum() / total, a.abs() / sizes, noise.abs().sum() / sizes


@exercise
def entmax(answer: Any) -> Right:
    """Weights with a threshold that makes them sum to 1: one function for sparsemax and entmax."""
    return compare("entmax", answer, _entmax, tolerance=1e-5, picture=lambda: _maps(
        {"softmax": lambda x: x.softmax(-1), "α = 1.5": lambda x: answer(x, 1.5), "α = 2": lambda x: answer(x, 2.0)}, "one answer", 64
    ))  # fmt: skip


def _bisected(x: Tensor, power: float, astray: bool = False) -> Tensor:
    """max(x - tau, 0) ** power with a sum of 1 in each row."""
    x = x.double()
    high = x.max(-1, keepdim=True).values
    low = high - 1
    for _ in range(60):
        tau = (low + high) / 2
        much = (((x - tau).relu() ** power).sum(-1, keepdim=True) > 1) ^ astray
        low, high = torch.where(much, tau, low), torch.where(much, high, tau)
    return (x - low).relu() ** power


def _entmax(x: Tensor, alpha: float) -> Tensor:
    return _bisected((alpha - 1) * x, 1 / (alpha - 1))


# A head, and a table of seeds --------------------------------------------------------------------------


@exercise
def head(answer: Any) -> Right:
    """Causal difference, values, the norm of a head and its fixed scale."""
    norms = {
        "whole": lambda x, s: (1 - s) * x / (x.square().mean() + 1e-5).sqrt(),
        "layer": lambda x, s: (1 - s) * functional.layer_norm(x, x.shape[-1:]),
        "length": lambda x, s: (1 - s) * functional.normalize(x, dim=-1),
        "exact": lambda x, s: (1 - s) * x / x.square().mean(-1, keepdim=True).sqrt(),
        "outside": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-5),
        "tokens": lambda x, s: (1 - s) * x / (x.square().mean(0, keepdim=True) + 1e-5).sqrt(),
        "unscaled": lambda x, s: _normed(x, 0.0),
        "none": lambda x, s: (1 - s) * x,
        "rough": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt(),
        "square": lambda x, s: (1 - s) * x / (x.square().mean(-1, keepdim=True) + 1e-5),
        "standard": lambda x, s: (1 - s) * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
    }

    compare("head", answer, _head, norms=norms)

    def picture() -> HTML:
        lams = [k / 20 for k in range(20)]
        q, k, v = (normal(16, width, seed=seed) for seed, width in ((1, 8), (2, 8), (3, 16)))
        sizes = [_floats(answer(q, k, q, k, v, lam, 0.2)).square().mean().sqrt() for lam in lams]
        plain = [_head(q, k, q, k, v, lam, 0.2, norm=norms["none"]).square().mean().sqrt() for lam in lams]
        ax = style.axes(f"λ from 0 to 0.95: size {sizes[0]:.2f} → {sizes[-1]:.2f} with the norm", "λ", "size")
        ax.plot(lams, sizes, color=BLUE, label="your head")
        ax.plot(lams, plain, "--", color=RED, label="norm left out")
        ax.set_ylim(0)
        style.label(ax)
        return drawn(ax, f"Two equal maps, λ from 0 to 0.95: {sizes[0]:.2f} to {sizes[-1]:.2f} with the norm, "
                      f"{plain[0]:.2f} to {plain[-1]:.2f} without it.")  # fmt: skip

    q, k, v = (normal(8, width, seed=seed) for seed, width in ((1, 8), (2, 8), (3, 16)))
    one, two = (
        float(_floats(run("head", answer, q, k, q, k, v, lam, 0.2)).square().mean().sqrt()) for lam in (0.2, 0.6)
    )
    return Right(f"with two equal maps your head has the size {one:.3g} at λ = 0.2, and {two:.3g} at 0.6.", picture)


def _normed(x: Tensor, start: float) -> Tensor:
    return (1 - start) * functional.rms_norm(x, x.shape[-1:], eps=differential.EPSILON)


def _head(q1, k1, q2, k2, v, lam, start, *, norm=_normed, causal=True, width=float) -> Tensor:
    factor = math.sqrt(q1.shape[-1] / width(q1.shape[-1]))
    mask = torch.ones(len(q1), len(k1), dtype=torch.bool)
    if causal == "zero":
        seen = mask.tril().to(q1) / math.sqrt(q1.shape[-1])
        rows = differential.difference(*(q @ k.mT * seen for q, k in ((q1, k1), (q2, k2))), lam)
    else:
        rows = differential.weights(factor * q1, k1, factor * q2, k2, lam, mask.tril() if causal is True else mask)
    return norm((rows.tril() if causal == "after" else rows) @ v, start)


def _normed_before(q1, k1, q2, k2, v, lam, start) -> Tensor:
    first, second = (_head(q, k, q, k, v, 0.0, 0.0) for q, k in ((q1, k1), (q2, k2)))
    return (1 - start) * (first - lam * second)


@exercise
def p_values(answer: Any) -> Right:
    """Paired t tests over seeds, with Holm's correction."""
    right = compare("p_values", answer, lambda x, y: _corrected(_single(x, y)))

    compare("unchanged_p_values", answer, lambda x, y: _corrected(_single(x, y)))
    sentence, picture = _race_tested(answer)
    return Right(f"{right.sentence} {sentence}", picture)


def _single(scores: Tensor, baseline: Tensor) -> list[float]:
    return [significance.paired(row.tolist(), baseline.tolist()) for row in scores]


def _undone(scores: Tensor, baseline: Tensor, p: float) -> Tensor:
    """The p values, with another one for entries that equal the baseline; not a number stays behind all others."""
    same = (scores == baseline).all(-1)
    if math.isnan(p):
        return _corrected(_single(scores, baseline)).masked_fill(same, p)
    return _corrected([p if equal else each for each, equal in zip(_single(scores, baseline), same, strict=True)])


def _hochberg(p: list[float]) -> Tensor:
    found, least = [0.0] * len(p), 1.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda k: -p[k])):
        least = min(least, (rank + 1) * p[place])
        found[place] = least
    return torch.tensor(found, dtype=torch.float64)


def _t(gaps: Tensor, ddof: int, freedom: int) -> float:
    t = float(gaps.mean() / (gaps.std(correction=ddof) / math.sqrt(len(gaps))))
    return float(2 * stats.t.sf(abs(t), freedom))


def _corrected(
    p: list[float], ordered: bool = True, most: float = 1.0, backwards: bool = False, less: int = 0
) -> Tensor:
    found, worst = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        each = (rank + 1 if backwards else len(p) - rank - less) * p[place]
        worst = max(worst, each) if ordered else each
        found[place] = min(most, worst)
    return torch.tensor(found, dtype=torch.float64)


def _race_tested(answer: Callable) -> tuple[str, Callable[[], HTML]]:
    """The race with the learner's p values: every remedy against the baseline, a family for each task."""
    rows = comparison.table()
    found = comparison.compare(rows).set_index(["task", "entry"])
    alone, corrected = 0, 0
    for task in found.index.unique("task"):
        names = list(found.loc[task].index[found.loc[task].gap.notna()])
        wide = rows[(rows.task == task) & (rows.learned == 1)].pivot(index="seed", columns="entry", values="odds")
        wide = wide[[*names, BASELINE]].dropna()  # the seeds that have learned with all of them
        scores = torch.tensor(wide[names].to_numpy().T)
        baseline = torch.tensor(wide[BASELINE].to_numpy())
        p = _floats(run(f"p_values(the race's scores at {figures.NAMES[task]}, RoPE's)", answer, scores, baseline))
        alone += sum(each < LEVEL for each in _single(scores, baseline))
        corrected += int((p < LEVEL).sum())
        for name, row, each in zip(names, scores, p.tolist(), strict=True):
            found.loc[(task, name), ["p", "verdict"]] = [each, comparison.verdict((row - baseline).tolist(), each)]
    total = int(found.gap.notna().sum())

    def picture() -> HTML:
        by_task = (
            found.reset_index().pivot(index="entry", columns="task", values="verdict").rename(columns=figures.NAMES)
        )
        return HTML(by_task.fillna("").to_html(border=0))

    return f"In the race {alone} of {total} comparisons pass alone, {corrected} after your correction.", picture


# The race ----------------------------------------------------------------------------------------------

BETTER, SAME, WORSE = "better", "not told apart", "worse"
FEW = 3  # seeds: a p value over two depends on the processor


@exercise
def enter_race(name: Any, weigh: Any, prediction: Any, seeds: Any) -> Right:
    """Any causal function from logits to weights, trained as all entries are; any honest prediction."""
    _check_weigh(weigh)
    for what, value in (("name", name), ("prediction", prediction), ("seeds", seeds)):
        checks.filled(what, value)
    if not isinstance(prediction, str) or prediction not in (BETTER, SAME, WORSE):
        raise Wrong(f"prediction must be one of '{BETTER}', '{SAME}', '{WORSE}', not {shown(prediction)}.")
    table = comparison.table()
    baseline = table[(table.task == "retrieval") & (table.entry == BASELINE)].set_index("seed")
    count = checks.number("seeds", seeds)
    if count not in range(1, len(baseline) + 1):
        raise Wrong(f"seeds must be a whole number from 1 to {len(baseline)}, as many as the race has, not {count:g}.")
    try:
        entered = race.enter(name, weigh, seeds=int(count))
    except Exception as error:  # a learner's function may fail at any step
        if "the loss was" in str(error):
            raise Wrong(
                f"training broke off: the {str(error).partition('the ')[2]}. Do the weights overflow once the logits grow? "
                "Subtract a row's largest logit before an exponential."
            ) from None
        raise Wrong(f"{error}.") from None
    ours = entered[entered.learned == 1]
    if not len(ours):
        return Right(
            f"{name} is entered, and has not learned retrieval at {TRAINED} pairs in {BUDGET['steps']:,} steps "
            f"({entered.score_16.mean():.2f} right): it is compared at no length. That is a result, too.",
            lambda: figures.slopes(table, "retrieval", entered)[0],
        )
    theirs = baseline.loc[ours.seed.tolist()]
    gap, p = float(ours.odds.mean() - theirs.odds.mean()), significance.paired(ours.odds, theirs.odds)
    found = SAME if p >= LEVEL or len(ours) < FEW else BETTER if gap > 0 else WORSE
    how = (
        f"fewer than {FEW} seeds cannot tell more"
        if len(ours) < FEW
        else f"paired over {len(ours)} seeds, p {'at least' if p >= LEVEL else 'below'} {LEVEL}, for one entry: with more, correct it"
    )
    held = "as you predicted" if found == prediction else f"you predicted “{prediction}”, and that is a result, too"
    sentence = (
        f"{name} is entered and has learned with {len(ours)} of {len(entered)} seeds. Retrieval beyond the trained length: {ours.longer.mean():.2f}, {BASELINE} "
        f"{theirs.longer.mean():.2f} with the same seeds. Verdict: {found} ({how}); {held}."
    )
    return Right(sentence, lambda: figures.slopes(table, "retrieval", entered)[0])


def _check_weigh(weigh: Any) -> None:
    """What makes a function of logits a causal attention function, one sentence each."""
    if isinstance(weigh, type):
        raise Wrong("weigh is a class: enter an object of it, with brackets behind its name.")
    for n in (5, 1, 16, 140):
        scores = torch.randn(2, BUDGET["heads"], n, n, generator=torch.Generator().manual_seed(n))
        later = torch.ones(n, n).triu(1).bool()
        bias = torch.zeros(n, n).masked_fill(later, -math.inf)
        what = f"weigh(logits), with logits of shape {tuple(scores.shape)} and minus infinity at later keys,"
        found = run(what, weigh, scores + bias)
        _check_numbers(what, found, scores.shape)
        if (found[..., later] != 0).any():
            row, key = (found * later).flatten(0, 1).abs().sum(0).nonzero()[0].tolist()
            size = float((found * later).flatten(0, 1).abs()[:, row, key].max())
            raise Wrong(
                f"{what} looks ahead: token {row} gives token {key} a weight of {size:.3g}. Its logit is minus infinity, "
                "so its weight must be 0."
            )
        if not torch.equal(found, weigh(scores + bias)):
            raise Wrong(
                f"{what} gives other weights at a second call: leave chance out, so that a run can be repeated."
            )
        _check_rows(what, weigh, scores, bias, found)
        scores.requires_grad_()
        found = weigh(scores + bias)
        if found.requires_grad:
            found.square().sum().backward()
            if scores.grad is not None and not torch.isfinite(scores.grad).all():
                raise Wrong(
                    f"{what} has good weights, but a gradient that is not finite. Does a root, a logarithm or a division "
                    "meet a 0 at a hidden key? Put a harmless number there before, not after."
                )


def _check_numbers(what: str, found: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(found, Tensor):
        raise Wrong(f"{what} must return a tensor, not {type(found).__name__}.")
    if found.shape != shape:
        raise Wrong(
            f"{what} must return as many weights as there are logits; yours have the shape {tuple(found.shape)}."
        )
    if found.dtype != torch.float32:
        raise Wrong(f"{what} must return float32 weights, as the logits are; yours are {found.dtype}.")
    if torch.isnan(found).any():
        row = int(torch.isnan(found).any(-1).flatten(0, -2).any(0).nonzero()[0])
        raise Wrong(
            f"{what} contains NaN, first in the row of token {row}. Infinity minus infinity and 0 times infinity are NaN: "
            "what does your function do with a logit of minus infinity?"
        )
    if not torch.isfinite(found).all():
        raise Wrong(f"{what} holds infinite weights: what do you divide by, or what do you return at hidden keys?")


def _check_rows(what: str, weigh: Callable, scores: Tensor, bias: Tensor, found: Tensor) -> None:
    """No row depends on later rows, on how many tokens follow, or on another sequence of the batch."""
    n = scores.shape[-1]
    if n < 3:
        return
    half = n // 2
    moved = scores.clone()
    moved[..., half:, :] += 1 + torch.arange(float(n))
    if not torch.allclose(weigh(moved + bias)[..., :half, :], found[..., :half, :], atol=1e-5):
        raise Wrong(
            f"{what} looks ahead: the rows of the first {half} tokens change when the logits of a later token do. "
            "Is a sum or a maximum over the queries? The keys are the last axis, dim=-1."
        )
    if not torch.allclose(weigh((scores + bias)[..., :half, :half]), found[..., :half, :half], atol=1e-5):
        raise Wrong(
            f"{what} looks ahead: the rows of the first {half} tokens are others when no more tokens follow. Did you use "
            "the whole length? A row may count the keys that it sees: those with a finite logit."
        )
    moved = scores.clone()
    moved[1] += torch.arange(float(n))
    if not torch.allclose(weigh(moved + bias)[0], found[0], atol=1e-5):
        raise Wrong(f"{what} mixes sequences: the first one's weights change when the logits of the second do.")
