"""Check the answers to the exercises of chapter 6.

Call a function with your answer, which is a function or a value as the exercise says. The check
tries the answer on several cases. It returns a verdict and a sentence that says what is right or
wrong.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pandas as pd
import torch
from IPython.display import HTML
from scipy import stats
from torch import Tensor
from torch.nn import functional

from course import exercises as checks
from course.chapter6 import figures, measures
from course.drawing import race_chart
from course.evidence import significance
from course.exercises import Right, Wrong, choice, drawn, exercise, normal, number, run, tensor
from course.maths import normalizers
from course.runs import comparison, race
from course.runs.entries import BASELINE
from course.runs.protocol import BUDGET, LEVEL, TRAINED
from helpers import data, differential, probe, style
from helpers.words import translated

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()

progress = partial(checks.progress, globals().values())  # over all exercises of this module
compare, reason, refuse = (
    partial(each, globals()) for each in (checks.tabled, checks.reason, checks.refuse)
)


# Check two attention matrices ---------------------------------------------------------------------


@exercise
def subtract(answer: Any, largest: Any) -> Right:
    """Check a function for the difference of two attention rows, and one for the largest lambda.

    At the largest lambda, no weight of the difference is below 0.
    """
    compare("difference", answer, differential.difference)
    compare("largest", largest, _of_maps(lambda a, b: (a / b).min()))

    def picture() -> HTML:
        first, second = (x[0, :24] for x in measures.noisy_logits(3.0, 0.8, 24))
        found = {
            "first map": first.softmax(-1),
            "your row": tensor("difference", answer(first, second, 0.8)),
        }
        ax = style.lines(
            pd.DataFrame(found).rename_axis("key"), "weight", form="o", colours=(GREY, BLUE)
        )
        ax.axhline(0, color=BLACK, lw=1)
        ax.set_title(
            f"λ = 0.8: {int((found['your row'] < -1e-12).sum())} of 24 weights are negative"
        )
        bound = float(largest(first, second))
        return drawn(
            ax,
            (
                f"The row sums to {found['your row'].sum():.2f}. No weight is below 0 up to λ = "
                f"{bound:.3f}."
            ),
        )

    return Right(
        "both functions agree with the solution on all cases. A row sums to 1 - λ.", picture
    )


def _of_maps(f: Callable) -> Callable:
    """Turn a function of two attention rows into a function of their logits."""
    return lambda first, second, *lam: f(first.softmax(-1), second.softmax(-1), *lam)


@exercise
def shared(answer: Any) -> Right:
    """Check a function for the cosine between two attention rows, with one key left out.

    The verdict then gives the cosine over all pairs of heads of the embedded model.
    """
    compare("shared", answer, _shared)
    (one, other, found), name = _of_all_heads()
    yours = number("shared", run("shared", answer, one, other, 0))
    return Right(
        f"your function gives {yours:.2f} for two rows of {name}. "
        "Over all pairs of heads of one layer, on 64 tokens of prose, the "
        f"mean is {float(found.mean()):.2f}, and {float((found > 0.4).double().mean()):.0%} "
        "are above 0.4."
    )


def rows(n: int, seed: int) -> Tensor:
    """Draw random rows of attention weights."""
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
    """Return two attention rows of the embedded model, and the cosines between its heads.

    The cosines are over all pairs of heads of one layer, without the first token. The last value is
    the model's name.
    """
    model = checks.model()
    ids = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:64]
    maps = probe.attention_maps(model, ids).double()[:, :, 16:]
    kept = functional.normalize(maps[..., 1:], dim=-1)
    cosines = torch.einsum("lhqk,lgqk->hglq", kept, kept)
    pairs = torch.ones(cosines.shape[:2]).triu(1).bool()
    return (maps[10, 0, -1], maps[10, 1, -1], cosines[pairs]), model.name


@exercise
def noise_left(answer: Any) -> Right:
    """Check a function for the size of the difference of two noise vectors."""
    compare("noise_left", answer, lambda c, lam: math.sqrt(1 + lam**2 - 2 * lam * c))

    def picture() -> HTML:
        ax, finding = figures.noise_left()
        places = [k / 20 for k in range(21)]
        ax.plot(places, [float(answer(c, 0.8)) for c in places], "x", ms=9, mew=2, color=BLACK)
        return drawn(ax, f"Crosses: your function at λ = 0.8. {finding}")

    return Right(
        (
            "your function gives noise_left(0.5, 1.0) = "
            f"{float(run('noise_left', answer, 0.5, 1.0)):.3g}."
        ),
        picture,
    )


# Check functions from logits to weights -----------------------------------------------------------


@exercise
def off_by_one(answer: Any) -> Right:
    """Check a softmax with an additional 1 in its denominator, for logits of any size."""
    return compare(
        "off_by_one",
        answer,
        normalizers.softmax_off_by_one,
        picture=lambda: _maps(
            {"softmax": lambda x: x.softmax(-1), "yours": answer}, "nothing found", 64
        ),
    )


def _naive(x: Tensor) -> Tensor:
    return x.exp() / (1 + x.exp().sum(-1, keepdim=True))


def _maps(ways: dict[str, Callable], content: str, n: int) -> HTML:
    """Draw the attention weights that each normalizer gives to the logits of the lesson's panel."""
    logits, places = measures.panel_logits(content, n)
    found = pd.DataFrame(
        {name: tensor(name, way(logits.clone())) for name, way in ways.items()}
    ).rename_axis("key")
    ax = style.axes("", "key", "weight")
    for shift, (name, row), colour in zip(
        (0.0, 0.3, 0.6), found.items(), (GREY, BLUE, RED), strict=False
    ):
        ax.vlines(found.index + shift, 0, row, color=colour, lw=2.5, label=name)
    ax.axhline(0, color=BLACK, lw=0.8)
    ax.legend()
    said = ", ".join(
        f"{weight:.2f} ({name})" for name, weight in found.iloc[places or slice(None)].sum().items()
    )
    zeros = ", ".join(f"{count} ({name})" for name, count in (found == 0).sum().items())
    finding = (
        f"The answer among {n} keys gets {said}. "
        f"The number of weights that are exactly zero is {zeros}."
    )
    if not places:
        finding = f"No key fits the query, and the weights sum to {said}."
    ax.set_title(f"{content.capitalize()}: {said}")
    return drawn(ax, finding)


@exercise
def smallest_scale(answer: Any) -> Right:
    """Check a function for the smallest s with which scalable softmax gives a key enough weight.

    The key is the one with the largest logit, and the wanted weight is an argument.
    """

    def scale(gap: float, n: int, weight: float) -> float:
        return (math.log(n - 1) + _odds(weight)) / (gap * math.log(n))

    def picture() -> HTML:
        gaps, lengths = (1.0, 2.0, 4.0), pd.Index([2**k for k in range(3, 21)], name="n (tokens)")
        found = pd.DataFrame(
            {f"gap {gap:g}": [float(answer(gap, n, 0.9)) for n in lengths] for gap in gaps}, lengths
        )
        ax = style.lines(found, "smallest s for 0.9", log="x", form="-")
        for gap, line in zip(gaps, ax.get_lines(), strict=True):
            ax.axhline(1 / gap, color=line.get_color(), ls=":", lw=1.5)
        most, *_, least = found["gap 1"]
        ax.set_title(
            f"At gap 1 the scale falls from {most:.2f} to {least:.2f}: so a fixed scale is enough"
        )
        return drawn(
            ax,
            "The dotted lines are 1 / gap. At gap 1, no length from 8 to a million needs a scale "
            f"above {most:.2f}.",
        )

    return compare("smallest_scale", answer, scale, picture=picture)


def _odds(weight: float) -> float:
    return math.log(weight / (1 - weight))


# Check measures of a row --------------------------------------------------------------------------


@exercise
def counted(answer: Any) -> Right:
    """Check a function that finds lambda and the fractions of answer and noise in a row of weights.

    We test fractions of the row's sum, and fractions of the sum of absolute values.
    """
    compare("counted", answer, _of_row(_five))

    def picture() -> HTML:
        found = {}
        for name, correlation in (("independent", 0.0), ("correlated 0.9", 0.9)):
            first, second = (x[0] for x in measures.noisy_logits(6.0, correlation, 1024))
            five = tensor("counted", answer(differential.difference(first, second, 0.8), 0))
            found[name] = five[[2, 4]].tolist()
        frame = pd.DataFrame(found, index=["with signs", "by size"]).T
        ax = style.dots(frame, "noise's share of the row", numbers=True)
        (signed, sizes), (one, two) = found.values()
        ax.set_title(f"Independent noise: {signed:.2f} of the row with signs, {sizes:.2f} by size")
        return drawn(
            ax,
            "One row of 1,024 keys with λ = 0.8. Counted with signs, the noise is "
            f"{signed:.2f} of the row for independent logits and {one:.2f} for correlated "
            f"logits. Counted by size, it is {sizes:.2f} and {two:.2f}.",
        )

    _, share, noise, *_ = tensor(
        "counted", run("counted", answer, torch.tensor([0.35, 0.05, -0.1, -0.1]), 0)
    ).tolist()
    return Right(
        f"your function gives the answer {share:.3g} of that row, and the noise {noise:.3g}.",
        picture,
    )


def _of_row(f: Callable) -> Callable:
    """Adapt a function of a row and a position to a function of row, answer and other weights."""
    return lambda row, place: torch.stack([*f(row, row[place], _other(row, place))])


def _five(row: Tensor, a: Tensor, noise: Tensor, lam: Tensor | None = None) -> tuple:
    total, sizes = row.sum(), row.abs().sum()
    return (
        1 - total if lam is None else lam,
        a / total,
        noise.sum() / total,
        a.abs() / sizes,
        noise.abs().sum() / sizes,
    )


@exercise
def entmax(answer: Any) -> Right:
    """Check a function for the threshold with which sparsemax and entmax weights sum to 1."""
    return compare("entmax", answer, _entmax, picture=lambda: _maps(
        {"softmax": lambda x: x.softmax(-1), "α = 1.5": lambda x: answer(x, 1.5), "α = 2": lambda x:
        answer(x, 2.0)}, "one answer", 64
    ))  # fmt: skip


def _bisected(x: Tensor, power: float, astray: bool = False) -> Tensor:
    """Return max(x - tau, 0) ** power, with the tau for which each row sums to 1.

    We find tau by bisection.
    """
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


# Check a head and a table of seeds ----------------------------------------------------------------


@exercise
def head(answer: Any) -> Right:
    """Check a function that computes a differential head with its norm and its fixed scale."""
    compare("head", answer, _head)

    def size(head: Callable, n: int, lam: float) -> float:
        q, k, v = (normal(n, width, seed=seed) for seed, width in ((1, 8), (2, 8), (3, 16)))
        return float(
            tensor("head", run("head", head, q, k, q, k, v, lam, 0.2)).square().mean().sqrt()
        )

    def picture() -> HTML:
        ways = {
            "your head": answer,
            "norm left out": partial(_head, norm=lambda x, start: (1 - start) * x),
        }
        lams = pd.Index([k / 20 for k in range(20)], name="λ")
        found = pd.DataFrame(
            {name: [size(way, 16, lam) for lam in lams] for name, way in ways.items()}, lams
        )
        ax = style.lines(found, "size", form="-")
        ax.set_ylim(0)
        normed, plain = (
            f"{sizes.iloc[0]:.2f} to {sizes.iloc[-1]:.2f}" for _, sizes in found.items()
        )
        ax.set_title(f"λ from 0 to 0.95: size {normed} with the norm")
        return drawn(
            ax,
            "If two equal maps have λ from 0 to 0.95, the size of the output goes from "
            f"{normed} with the norm, and from {plain} without it.",
        )

    one, two = (size(answer, 8, lam) for lam in (0.2, 0.6))
    return Right(
        f"with two equal maps your head has the size {one:.3g} at λ = 0.2, and {two:.3g} at 0.6.",
        picture,
    )


def _normed(x: Tensor, start: float) -> Tensor:
    return (1 - start) * functional.rms_norm(x, x.shape[-1:], eps=differential.EPSILON)


def _head(q1, k1, q2, k2, v, lam, start, *, norm=_normed) -> Tensor:
    return norm(_seeing_all(q1, k1, q2, k2, lam, -math.inf) @ v, start)


def _seeing_all(q1, k1, q2, k2, lam, later=0.0) -> Tensor:
    scale, bias = q1.shape[-1] ** -0.5, torch.full((len(q1), len(k1)), later).triu(1)
    return (scale * q1 @ k1.T + bias).softmax(-1) - lam * (scale * q2 @ k2.T + bias).softmax(-1)


@exercise
def p_values(answer: Any) -> Right:
    """Check a function for p values of paired t tests over seeds, with Holm's correction."""
    right = compare("p_values", answer, lambda x, y: _corrected(_single(x, y)))
    compare("unchanged_p_values", answer, lambda x, y: _corrected(_single(x, y)))
    sentence, picture = _race_tested(answer)
    return Right(f"{right.sentence} {sentence}", picture)


def _single(scores: Tensor, baseline: Tensor) -> list[float]:
    return [significance.paired(row.tolist(), baseline.tolist()) for row in scores]


def _t(gaps: Tensor, ddof: int, freedom: int) -> float:
    t = float(gaps.mean() / (gaps.std(correction=ddof) / math.sqrt(len(gaps))))
    return float(2 * stats.t.sf(abs(t), freedom))


def _corrected(
    p: list[float],
    factors: Callable[[Tensor], Tensor] = lambda down: down,
    running: Callable[[Tensor], Tensor] = lambda sizes: sizes.cummax(0).values,
    most: float = 1.0,
) -> Tensor:
    """Return p values after Holm's correction, or after a variant of it with a mistake.

    A variant has other factors than m, …, 2, 1, or another step than the running maximum.
    """
    p = torch.tensor(p, dtype=torch.float64)
    order = p.argsort()
    return running(factors(torch.arange(len(p), 0, -1)) * p[order]).clamp(max=most)[order.argsort()]


def _race_tested(answer: Callable) -> tuple[str, Callable[[], HTML]]:
    """Test the remedies of the race against the baseline with the learner's p values.

    Each task is a separate family of tests.
    """
    rows = comparison.table()
    found = comparison.compare(rows)
    verdicts = found.pivot(index="entry", columns="task", values="verdict")
    alone, corrected, every = 0, 0, 0
    for task, names in found[found.gap.notna()].groupby("task", sort=False).entry:
        wide = rows[(rows.task == task) & (rows.learned == 1)].pivot(
            index="seed", columns="entry", values="odds"
        )
        wide = wide.loc[: FEW - 1, [*names, BASELINE]].dropna(
            axis=1
        )  # keep the seeds that all entries have, and the entries that learned in each of them
        baseline = torch.tensor(wide.pop(BASELINE).to_numpy())
        scores = torch.tensor(wide.to_numpy().T)
        call = f"p_values(the race's scores at {race_chart.NAMES[task]}, RoPE's)"
        p = tensor(call, run(call, answer, scores, baseline))
        alone += sum(each < LEVEL for each in _single(scores, baseline))
        corrected += int((p < LEVEL).sum())
        gaps = (scores - baseline).tolist()
        verdicts.loc[wide.columns, task] = list(map(comparison.verdict, gaps, p.tolist()))
        every += len(gaps)
    said = (
        f"In the race, {alone} of {every} comparisons are significant on their own, "
        f"and {corrected} after your correction."
    )
    shown = (
        verdicts.rename(columns=race_chart.NAMES)
        .fillna("")
        .map(translated)
        .rename(index=translated, columns=translated)
    )
    return said, lambda: HTML(
        shown.rename_axis(index=translated, columns=translated).to_html(border=0)
    )


# Check an entry of the race -----------------------------------------------------------------------

BETTER, SAME, WORSE = "better", "inconclusive", "worse"
FEW = 3  # the number of seeds, because a p value from two seeds depends on the processor


@exercise
def enter_race(name: Any, weigh: Any, prediction: Any, seeds: Any) -> Right:
    """Check a causal function from logits to weights by entering it in the race.

    The function is trained as all entries are, and any honest prediction is accepted.
    """
    _check_weigh(weigh)
    for what, value in (("name", name), ("prediction", prediction), ("seeds", seeds)):
        checks.filled(what, value)
    choice("prediction", prediction, (BETTER, SAME, WORSE))
    table = comparison.table()
    baseline = table[(table.task == "retrieval") & (table.entry == BASELINE)].set_index("seed")
    count = number("seeds", seeds)
    refuse("enter_race", count=count, most=len(baseline))
    try:
        entered = checks.clocked(lambda: race.enter(name, weigh, seeds=int(count)))
    except Wrong:
        raise
    except Exception as error:  # a learner's function may fail at any step
        raise Wrong(reason("enter_race", "broken", error=str(error))) from None
    ours = entered[entered.learned == 1]
    if not len(ours):
        return Right(
            f"{name} is entered, but it has not learned retrieval at {TRAINED} pairs in "
            f"{BUDGET['steps']:,} steps (accuracy {entered.score_16.mean():.2f}), so we "
            "do not compare it with the baseline. This is a result, too.",
            lambda: race_chart.slopes(table, "retrieval", entered)[0],
        )
    theirs = baseline.loc[ours.seed.tolist()]
    gap, p = (
        float(ours.odds.mean() - theirs.odds.mean()),
        significance.paired(ours.odds, theirs.odds),
    )
    found = SAME if p >= LEVEL or len(ours) < FEW else BETTER if gap > 0 else WORSE
    how = (
        f"as always with fewer than {FEW} seeds"
        if len(ours) < FEW
        else (
            f"paired over {len(ours)} seeds, p {'at least' if p >= LEVEL else 'below'} {LEVEL}, "
            "not corrected for several entries"
        )
    )
    held = (
        "as you predicted"
        if found == prediction
        else f"you predicted “{prediction}”, but this is a result, too"
    )
    sentence = (
        f"{name} is entered and has learned with {len(ours)} of {len(entered)} "
        "seeds. Its accuracy in retrieval beyond the trained length is "
        f"{ours.longer.mean():.2f}, and that of {BASELINE} is "
        f"{theirs.longer.mean():.2f} with the same seeds. Verdict: {found} ({how}); "
        f"{held}."
    )
    return Right(sentence, lambda: race_chart.slopes(table, "retrieval", entered)[0])


def _check_weigh(weigh: Any) -> None:
    """Raise an error if a function does not compute causal attention from its logits."""
    refuse("enter_race", "entered", weigh=weigh)
    for n in (5, 1, 16, 140):
        scores = torch.randn(
            2, BUDGET["heads"], n, n, generator=torch.Generator().manual_seed(n)
        ).requires_grad_()
        later = torch.ones(n, n).triu(1).bool()
        logits = scores.detach().masked_fill(later, -math.inf)
        what = (
            f"weigh(logits), with logits of shape {tuple(scores.shape)} and minus infinity at "
            "later keys,"
        )
        found = run(what, weigh, logits)
        refuse("enter_race", "weights", what=what, found=found, shape=scores.shape)
        ahead = (found * later).flatten(0, 1).abs().amax(0)
        tried = {
            "what": what,
            "weigh": weigh,
            "n": n,
            "half": n // 2,
            "logits": logits,
            "found": found,
        }
        refuse(
            "enter_race",
            "causal",
            **tried,
            ahead=ahead,
            first=ahead.nonzero()[:1].flatten().tolist(),
        )
        again = weigh(scores.masked_fill(later, -math.inf))
        if again.requires_grad:
            again.square().sum().backward()
        refuse("enter_race", "gradient", what=what, gradient=scores.grad)
