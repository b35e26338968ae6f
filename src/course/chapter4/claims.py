"""Measure the claims of chapter 4's sources.

There is one function for each row of the table of claims.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import pandas as pd

from course.chapter4 import measures, run_selection
from course.evidence import significance
from course.evidence.claims import called
from course.evidence.rules import Numbers, Threshold, rule
from course.maths import counting
from course.runs import asked, inside, trained
from helpers import data
from helpers.models import LanguageModel

EXACT = 1e-13  # the allowed rounding error
LEVEL = Threshold(0.05)  # the level of significance
INSIDE = Threshold(0.9)  # accuracy within the trained lengths


def _change(once: str, more: str, **setting) -> float:
    return float(
        (counting.last_state(once, **setting) - counting.last_state(more, **setting)).abs().max()
    )


DIFFERS = Threshold(0.01)


@rule(
    holds=(
        (
            f"the states of no pair differ by more than {EXACT:g}, and with a mask or another "
            f"ratio they differ by more than {DIFFERS:g}"
        ),
        lambda largest, masked, other: largest <= EXACT and min(masked, other) > DIFFERS,
    ),
    nothing=("a network that hears nothing", {"largest": 0.0, "masked": 0.0, "other": 0.0}),
)
def same_ratio_same_state() -> Numbers:
    """Measure how far apart the last states of strings with equal ratios of zeros and ones are.

    As controls, we add a causal mask, and compare two strings with different ratios.
    """
    pairs = [("10", "1100"), ("0111", "0111" * 25), ("1", "1" * 200)]
    return {
        "pairs": len(pairs),
        "largest": max(
            _change(*pair, layers=layers, seed=seed)
            for pair in pairs
            for layers in (1, 3)
            for seed in range(5)
        ),
        "masked": _change("10", "1100", causal=True),
        "other": _change("10", "110"),
    }


SOMEWHERE = Threshold(2**26)  # the largest length that we search


@rule(
    holds=("the exact weights of n and n + 1 are equal for some n", lambda exact: not exact),
    part=(
        (
            f"the rounded weights of n and n + 1 are equal for some n below {SOMEWHERE:,.0f}, but "
            "the exact weights, however close, are not"
        ),
        lambda limits: max(limits.values()) < SOMEWHERE,
    ),
    nothing=("a number type without end", {"exact": True, "limits": {"exact": math.inf}}),
)
def collapse_ends_counting() -> Numbers:
    """Compute the largest count that can be read from the first token's weight, in each format.

    The result also says whether exact weights differ for all counts below 5,000.
    """
    exact = all(Fraction(1, 1 + n) != Fraction(1, 2 + n) for n in range(5000))
    return {
        "exact": exact,
        "limits": {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")},
    }


REACH = {"bf16": 188, "fp16": 1463, "fp32": 11_864_337}


@rule(
    holds=(
        (
            "the largest right counts are "
            f"{', '.join(f'{n:,} in {kind}' for kind, n in REACH.items())}, and exact weights "
            "differ there"
        ),
        lambda reach, still: reach == REACH and min(still) > 0,
    ),
    nothing=(
        "no token of another kind: no count",
        {"reach": dict.fromkeys(REACH, 0), "still": [0.0]},
    ),
)
def first_token_reach() -> Numbers:
    """Compute the largest count that can be read from the first token's weight, in each format.

    The result also says up to which count n random networks can distinguish n from n - 1 and n + 1.
    """
    reach = {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")}
    return {
        "reach": reach,
        "still": [
            float(Fraction(1, 1 + limit) - Fraction(1, 2 + limit)) for limit in reach.values()
        ],
        "network": {name: measures.counts_to(name) for name in ("bf16", "fp16")},
        "numbers": {
            f"largest count, {name}": (None, float(limit)) for name, limit in reach.items()
        },
    }


@rule(
    holds=(
        (
            "all counts are right if n is given, and attention by itself distinguishes 1 of 2 from "
            "1,000 of 2,000"
        ),
        lambda right, told: min(right) >= Threshold(1) and told,
    ),
    part=(
        "all counts are right if n is given, but attention by itself only averages",
        lambda right: min(right) >= Threshold(1),
    ),
    nothing=("one answer for all", {"right": [0.0] * 9, "told": False}),
)
def wide_enough_counts() -> Numbers:
    """Measure the accuracy of reading counts if the width equals the number of symbols."""
    return {
        "right": [
            measures.read_right(m, m, "tight", n, trials=5)
            for m in (8, 64, 128)
            for n in (16, 512, 4096)
        ],
        "told": counting.mass_on_ones(1, 1) != counting.mass_on_ones(1000, 1000),
    }


def _step(long: list[float]) -> bool:
    return long[1] < MISREADS and long[2] >= 1


READS, MISREADS = Threshold(0.9), Threshold(0.5)


@rule(
    holds=(
        (
            "read by a product, all counts are right at width 64 and under "
            f"{MISREADS:.0%} at width 63, and read by solving, under {MISREADS:.0%} at width 63"
        ),
        lambda long, solved: _step(long) and solved[1] < MISREADS,
    ),
    part=(
        (
            "the step is at the vocabulary if the counts are read by a product, or one below it "
            f"if they are solved for (all right at width 63, and under {READS:.0%} at 62)"
        ),
        lambda long, solved: _step(long) or (solved[0] < READS and solved[1] >= 1),
    ),
    nothing=("a width that changes nothing", {"long": [1.0] * 3, "solved": [1.0] * 2}),
)
def transition_at_the_vocabulary() -> Numbers:
    """Measure how accurately the counts of 64 symbols can be read, at widths up to 64."""
    product = {
        n: [measures.read_right(64, d, "tight", n) for d in (48, 63, 64)] for n in (16, 4096)
    }
    solved = [measures.read_right(64, d, "random", 4096, readout="solved") for d in (62, 63)]
    return {"short": product[16], "long": product[4096], "solved": solved}


SHARE, TOKENS = Threshold(0.5), Threshold(100)


@rule(
    holds=(
        (
            f"over {SHARE:.0%} of the letters share a token, none shares a token with commas, and "
            f"a hundred digits are fewer than {TOKENS:g} tokens"
        ),
        lambda merged, separated, ones: merged > SHARE and separated == 0 and ones < TOKENS,
    ),
    part=(
        (
            f"over {SHARE:.0%} of the letters share a token and none shares a token with commas, "
            f"but a hundred digits are not fewer than {TOKENS:g} tokens"
        ),
        lambda merged, separated: merged > SHARE and separated == 0,
    ),
    nothing=("a token a letter", {"merged": 0.0, "ones": 100}),
)
def merged_tokens_hide_items() -> Numbers:
    """Measure the fraction of letters that share a token, with and without commas."""
    merged, separated = measures.hidden_letters()
    return {"merged": merged, "separated": separated, "ones": len(measures.pieces("1" * 100))}


@rule(
    holds=(
        "the accuracy of every base is above the accuracy without separators",
        lambda accuracies: min(accuracies) > Threshold(measures.PLAIN_ACCURACY),
    ),
    fit=(
        "one accuracy is above that of one constant answer",
        lambda accuracies, constant: max(accuracies) > Threshold(constant),
    ),
    nothing=(
        "one constant answer",
        lambda accuracies, constant: {"accuracies": [constant] * len(accuracies)},
    ),
)
def separators_help_in_training() -> Numbers:
    """Compare the talk's accuracies with separators to its accuracy without separators."""
    return {
        "accuracies": data.table("reported/counting_separator_base").accuracy_percent.tolist(),
        "above": {trials: measures.separated(trials) for trials in (100, 1000, 5000)},
        "constant": 100 * measures.best_constant(),
        "numbers": {"accuracy without separators (%)": (measures.PLAIN_ACCURACY, None)},
    }


@rule(
    holds=(f"the rank correlation has p above {LEVEL:g}", lambda p: p > LEVEL),
    fit=(
        "the accuracy of one base is above that of one constant answer",
        lambda best, constant: best > Threshold(constant),
    ),
    nothing=("bases that all give one accuracy", {"p": 1.0}),
    null="the claim is that no rule is visible, so it needs accuracies that could show one",
)
def base_has_no_rule() -> Numbers:
    """Measure the rank correlation between the talk's accuracy and the base of RoPE."""
    rho, p = measures.base_trend()
    best = float(data.table("reported/counting_separator_base").accuracy_percent.max())
    return {"rho": rho, "p": p, "best": best, "constant": 100 * measures.best_constant()}


ALIKE = Threshold(1.25)


def _ordered(error: dict[str, float]) -> bool:
    low, high = sorted((error["sum"], error["word"]))
    return error["zeros and ones"] < low and high < error["ones"]


@rule(
    "order_of_difficulty",
    holds=(
        (
            "the four errors are in this order, and those of sum and word are within a factor of "
            f"{ALIKE:g}"
        ),
        lambda error: _ordered(error) and alike(error["sum"], error["word"]),
    ),
    part=("the four errors are in this order", lambda error: _ordered(error)),
    enough=("all four errors could be read off the figure", lambda read, error: read == len(error)),
    nothing=("one error for all four", {"read": 4, "error": dict.fromkeys(counting.TASKS, 1.0)}),
)
def read_off(column: str) -> Numbers:
    """Return the mean errors that we read off the source's figures.

    Errors that could not be read are NaN. The result also has the errors of a model that always
    says 100, keyed by task and length.

    Args:
        column: "task" or "strategy", by which the errors are grouped.
    """
    given = data.table("reported/counting_figures").dropna(subset=["task", "strategy"])
    mean = given.groupby(column).value.mean()
    names = {"task": counting.TASKS, "strategy": counting.STRATEGIES}[column]
    lengths = measures.PAPER_LENGTHS
    guess = {
        task: dict(zip(lengths, measures.always(100, lengths, task), strict=True))
        for task in counting.TASKS
    }
    return {"read": len(mean), "error": mean.reindex(names).to_dict(), "guess": guess}


def alike(a: float, b: float) -> bool:
    """Return whether two numbers differ by at most a factor of `ALIKE`."""
    return max(a, b) <= ALIKE * min(a, b)


# Test the lab's results ---------------------------------------------------------------------------


def _short(runs: dict[str, pd.DataFrame]) -> float:
    """Return the smallest mean accuracy at four or eight letters among all kinds of decoders.

    The means are over the seeds.
    """
    return min(float(rows[["right_4", "right_8"]].mean().min()) for rows in runs.values())


def _grow(errors: dict[str, list[float]]) -> bool:
    return all(a < b < c for a, b, c in errors.values())


TEN = Threshold(0.5)  # a fraction of the short questions


@rule(
    holds=(
        (
            "the error grows from 16 to 24 to 48 letters with each encoding, and the language "
            f"model counts {TEN:.0%} of the short strings right"
        ),
        lambda errors, right, few: _grow(errors) and right >= TEN * few,
    ),
    part=(
        (
            "the error grows in decoders that were trained to count, but the language model cannot "
            "decide"
        ),
        lambda errors: _grow(errors),
    ),
    able=(
        f"the decoders count four and eight letters right in {INSIDE:.0%} of the strings",
        lambda short: short >= INSIDE,
    ),
    nothing=("an error that no length changes", {"errors": {"NoPE": [1.0] * 3, "RoPE": [1.0] * 3}}),
)
def counting_error_grows() -> Numbers:
    """Measure how the counting error of trained decoders grows with the number of letters.

    The result also says how often a language model counts up to ten items correctly.
    """
    runs = trained.chosen_runs(data.table("counting_trained"), "position encoding")
    answers = asked.long(data.table("counting_smollm2"))
    few = answers[answers.length <= 10]
    return {
        "errors": {
            name: [float(rows[f"error_{n}"].mean()) for n in (16, 24, 48)]
            for name, rows in runs.items()
        },
        "short": _short(runs),
        "right": int((few.error == 0).sum()),
        "few": len(few),
    }


TENTH = Threshold(0.1)


@rule(
    holds=(
        (
            f"significantly more than {TENTH:.0%} of the answers are multiples of ten (by the low "
            f"end of the 95% interval), and {asked.GUESS} is the most frequent answer"
        ),
        lambda low, top: low > TENTH and top == asked.GUESS,
    ),
    part=(
        f"significantly more than {TENTH:.0%} of the answers are multiples of ten",
        lambda low: low > TENTH,
    ),
    able=(
        f"the model counts {TEN:.0%} of the strings with at most ten items right",
        lambda right, few: right >= TEN * few,
    ),
    nothing=("numbers drawn evenly: one in ten", {"low": 0.05, "right": 1, "few": 1}),
)
def guesses_are_round(model: LanguageModel | None = None) -> Numbers:
    """Measure how many of a model's counts end in zero."""
    answers = asked.asked_of(model)
    given, few = answers.answer.dropna(), answers[answers.length <= 10]
    if not len(given):
        raise ValueError(f"{called(model)} gave no number, so it cannot decide this claim")
    tens = int((given % 10 == 0).sum())
    copied, after = asked.from_examples(answers)
    back, rounded, alone = asked.without_examples(answers)
    return {
        "answers": len(answers),
        "given": len(given),
        "tens": tens,
        "low": significance.share_interval(tens, len(given))[0],
        "hundred": int((given == asked.GUESS).sum()),
        "top": given.value_counts().idxmax(),
        "copied": copied,
        "after": after,
        "back": back,
        "rounded": rounded,
        "alone": alone,
        "right": int((few.error == 0).sum()),
        "few": len(few),
    }


MARGIN = Threshold(0.02)  # if a change raises accuracy by less than this, it does not help
# there is room for an improvement between these accuracies
FLOOR, CEILING = Threshold(0.1), Threshold(0.98)


@rule(
    each=(
        f"the 95% interval of the accuracy that commas add is below {MARGIN:g}",
        lambda gaps: [high < MARGIN for _, _, high, _ in gaps.values()],
    ),
    against=(
        f"the interval is above {MARGIN:g}",
        lambda gaps: [low > MARGIN for _, low, _, _ in gaps.values()],
    ),
    enough=(
        f"one of the intervals does not include {MARGIN:g}",
        lambda gaps: any(high < MARGIN or low > MARGIN for _, low, high, _ in gaps.values()),
    ),
    fit=(
        f"the accuracy without commas is between {FLOOR:g} and {CEILING:g}",
        lambda plain: FLOOR < plain < CEILING,
    ),
    nothing=("commas that help by a tenth", {"gaps": {"RoPE": trained.Gap(0.1, 0.08, 0.12, 9)}}),
)
def commas_do_not_help_from_scratch() -> Numbers:
    """Measure how much commas raise the accuracy of decoders that are trained to count."""
    table = data.table("counting_commas")
    return {
        "gaps": trained.comma_gaps(table),
        "plain": table[table.tokens == "characters"].inside.mean(),
        "beyond": trained.commas(table, "RoPE", "equal steps", "right_18"),
    }


@rule(
    each=(
        f"every seed with chunks is worse by {MARGIN:g} than every seed with single letters",
        lambda chunks, plain: [max(each) < min(plain) - MARGIN for each in chunks],
    ),
    against=(
        f"every seed with chunks is better by {MARGIN:g}",
        lambda chunks, plain: [min(each) > max(plain) + MARGIN for each in chunks],
    ),
    fit=("one kind of token is below the ceiling", lambda means: min(means.values()) < 1 - MARGIN),
    able=(
        f"the decoders count four and eight letters right in {INSIDE:.0%} of the strings",
        lambda short: short >= INSIDE,
    ),
    nothing=(
        "chunks that change nothing",
        lambda plain, chunks: {"chunks": [plain for _ in chunks]},
    ),
)
def chunks_in_trained_decoders() -> Numbers:
    """Compare the accuracy of counting with one letter per token and with several."""
    runs = trained.chosen_runs(data.table("counting_trained"), "tokens")
    inside = {
        name: rows[[f"right_{n}" for n in (4, 8, 12, 16)]].mean(axis=1).tolist()
        for name, rows in runs.items()
    }
    return {
        "plain": inside["characters"],
        "chunks": [inside[name] for name in ("chunks of 2", "chunks of 4")],
        "means": {name: sum(shares) / len(shares) for name, shares in inside.items()},
        "short": _short(runs),
    }


STEADY = Threshold(0.9)


@rule(
    each=(
        "with the encoding, the last digit is lost earlier more often than the first digit",
        lambda lost: [last > first for _, _, first, last, _ in lost],
    ),
    against=(
        f"the first digit is lost earlier more often, with p < {LEVEL:g}",
        lambda lost: [last <= first and p < LEVEL for _, _, first, last, p in lost],
    ),
    able=(
        (
            f"over {STEADY:.0%} of the controls are right, and with each encoding there is a pair "
            "of digits that are lost at different lengths"
        ),
        lambda steady, lost: steady > STEADY and min(pairs for _, pairs, *_ in lost) > 0,
    ),
    nothing=(
        "a coin",
        lambda lost: {
            "lost": [(name, pairs, pairs / 2, pairs / 2, 1.0) for name, pairs, *_ in lost]
        },
    ),
)
def last_token_is_lost_first() -> Numbers:
    """Count how often the last digit is lost at a shorter length than the first one."""
    table = data.table("copying_trained")
    controls = [f"control_{place}_{digit}" for place in trained.PLACES for digit in "01"]
    columns = ["encoding", "pairs", "first earlier", "last earlier", "p"]
    return {
        "lost": run_selection.first_against_last(table)[columns].values.tolist(),
        "steady": float((table[controls] == trained.NEVER).mean().mean()),
    }


GONE, FALLS, NEAR, CELLS, GUESS = (
    Threshold(0.9),
    Threshold(0.5),
    0.05,
    Threshold(5),
    Threshold(0.65),
)
READ = 0.95  # the accuracy from which a probe can read the count


@rule(
    holds=(
        (
            f"in over {GONE:.0%} of the cells that fail, the best linear readout is within "
            f"{NEAR:g} of always naming the more frequent digit"
        ),
        lambda gone, lost: gone > GONE * lost,
    ),
    part=(
        (
            f"in over {FALLS:.0%} of the cells that fail, the accuracy of the best linear readout "
            f"is below {READ:.0%}, but not always near that of the guess"
        ),
        lambda falls, lost: falls > FALLS * lost,
    ),
    enough=(f"at least {CELLS:g} cells fail", lambda lost: lost >= CELLS),
    fit=(
        f"a readout that is fitted to shuffled digits is below {GUESS:.0%}",
        lambda control: control < GUESS,
    ),
    nothing=("a read-out that falls nowhere", {"gone": 0, "falls": 0}),
)
def copying_fails_at_collapse() -> Numbers:
    """Measure whether probes still recover the digit to copy where a trained copier fails."""
    table = data.table("copying_probed").set_index(["encoding", "seed"])
    right, read, guess, control = (
        table[
            [f"{kind}_{place}_{n}" for place in trained.PLACES for n in trained.READ[1:]]
        ].set_axis([f"{place} {n}" for place in trained.PLACES for n in trained.READ[1:]], axis=1)
        for kind in ("right", "probe", "majority", "shuffled")
    )
    lost = right < 0.9
    ends = [
        [f"{kind}_{place}_{trained.READ[-1]}" for place in trained.PLACES]
        for kind in ("probe", "untrained")
    ]
    return {
        "cells": int(lost.size),
        "lost": int(lost.sum().sum()),
        "falls": int((lost & (read < READ)).sum().sum()),
        "gone": int((lost & (read <= guess + NEAR)).sum().sum()),
        "least": float(read[lost].min().min()),
        "guess": float(guess.mean().mean()),
        "control": float(control.mean().mean()),
        "after": table[ends[0]].groupby("encoding", sort=False).mean(),
        "before": table[ends[1]].groupby("encoding", sort=False).mean(),
    }


def span(values: Iterable[float], form: str = "") -> str:
    """Format the smallest and the largest value as text, or one value if they are equal."""
    low, high = (format(end, form) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _seeds(table: pd.DataFrame) -> list[int]:
    return table.groupby(["encoding", "longest", "width", "steps"]).seed.nunique().tolist()


def _nested(values: pd.Series) -> dict:
    """Turn a series with two index levels into a dictionary of dictionaries."""
    return {key: values[key].to_dict() for key in values.index.unique(0)}


HARD_TO, EASY_TO = Threshold(0.5), Threshold(0.9)


@rule(
    each=(
        f"with the encoding, under {HARD_TO:.0%} of the counts are right at N letters",
        lambda learned: [share < HARD_TO for share in learned],
    ),
    against=(
        f"over {EASY_TO:.0%} of the counts are right",
        lambda learned: [share > EASY_TO for share in learned],
    ),
    nothing=("one answer of 17 for all", lambda learned: {"learned": [1 / 17] * len(learned)}),
    null="the claim is that a network learns nothing",
)
def counting_is_hard_to_learn() -> Numbers:
    """Measure the accuracy of counting at the trained lengths, for each position encoding."""
    table, asked_ = (
        run_selection.chosen(data.table("counting_inside")),
        data.table("counting_asked"),
    )
    means = table.groupby(["longest", "encoding"]).right_4.mean()
    ends = asked_[asked_.asked == "the end"].groupby(["steps", "encoding"]).right_16.mean()
    return {
        "seeds": _seeds(table),
        "means": _nested(means),
        "ends": _nested(ends),
        "learned": [*means, *ends[ends.index.max()[0]]],
    }


LEARNED = Threshold(trained.LEARNED)
THREE = Threshold(3)  # if a length has fewer seeds, it is reported but decides nothing


@rule(
    each=(
        (
            f"with the encoding, at least {LEARNED:.0%} of the counts are right at 3 N/4 and at N "
            "letters, measured by the low end of the 95% interval over seeds, for each N with "
            f"{THREE:g} or more seeds"
        ),
        lambda ends: [min(each["low"], each["last_low"]) >= LEARNED for each in ends.values()],
    ),
    against=(
        "even by the high end of such an interval fewer counts are right at 3 N/4 letters",
        lambda ends: [each["high"] < LEARNED for each in ends.values()],
    ),
    nothing=(
        "one answer of 17 for all",
        lambda ends: {
            "ends": {name: dict.fromkeys(("low", "high", "last_low"), 1 / 17) for name in ends}
        },
    ),
)
def counting_holds_within_training() -> Numbers:
    """Measure whether decoders count correctly at all trained lengths, for each encoding.

    An encoding is a position encoding. The decoders were trained on up to N letters. Lengths N with
    too few seeds are left out.

    Returns:
        `ends` has three numbers for each position encoding, which come from the intervals of the
            accuracy. "low" is the smallest lower end at 3 N/4 letters, and "high" is the smallest
            upper end at 3 N/4 letters. "last_low" is the smallest lower end at N letters.
    """
    table = run_selection.chosen(data.table("counting_inside"))
    cells = table.groupby(["encoding", "longest"], sort=False)
    ends: dict[str, dict[str, float]] = {}
    for (name, _), runs in cells:
        if len(runs) < THREE:
            continue
        _, low, high = significance.interval(runs.right_3)
        found = {"low": low, "high": high, "last_low": significance.interval(runs.right_4)[1]}
        ends[name] = {end: min(found[end], ends.get(name, found)[end]) for end in found}
    means, seeds = cells[["right_3", "right_4"]].mean(), cells.size()
    edge = (
        data.table("counting_edge").groupby(["longest", "steps"])[["before_0", "before_16"]].mean()
    )
    short, long = inside.STEPS_A_LETTER * 32, inside.STEPS_A_LETTER * 48
    return {
        "seeds": seeds[seeds >= THREE].tolist(),
        "ends": ends,
        "before": {name: means.right_3[name].to_dict() for name in ends},
        "last": {name: means.right_4[name].to_dict() for name in ends},
        "alone": sorted(seeds[seeds < THREE].index.unique("longest")),
        "edge": [edge.before_0[32, short], edge.before_0[32, 2 * short], edge.before_16[48, long]],
    }


WORSE, GAP = Threshold(0), Threshold(0.1)


@rule(
    holds=(
        (
            "more symbols lower the accuracy in every seed, and the accuracy drops by more than "
            f"{GAP:g} at the point where the width falls below the number of symbols"
        ),
        lambda changes, wide, narrow: max(changes) < WORSE and min(wide) > max(narrow) + GAP,
    ),
    part=(
        "more symbols lower the accuracy in every seed, but without a step at the width",
        lambda changes: max(changes) < WORSE,
    ),
    able=(
        f"an accuracy exceeds {INSIDE:.0%} if the width reaches the number of symbols",
        lambda wide: max(wide) > INSIDE,
    ),
    nothing=(
        "a number of symbols that changes nothing",
        lambda changes: {"changes": [0.0] * len(changes)},
    ),
)
def vocabulary_against_width() -> Numbers:
    """Measure how accuracy depends on the number of symbols, to see if it drops at the width.

    `changes` in the result says how more symbols change the accuracy, seed by seed.
    """
    table = data.table("counting_symbols").set_index(["seed", "symbols", "width"]).right
    means = table.groupby(["symbols", "width"])
    return {
        "shares": _nested(means.mean()),
        "wide": [share for (symbols, width), share in means.mean().items() if width >= symbols],
        "narrow": [share for (symbols, width), share in means.mean().items() if width < symbols],
        "changes": table.sort_index().groupby(["seed", "width"]).diff().dropna().tolist(),
        "seeds": table.index.unique("seed").size,
        "apart": (means.max() - means.min()).max(),
    }


MORE, AHEAD = Threshold(0.2), Threshold(0.05)
SHUFFLED, RATIO = Threshold(0.3), Threshold(0.5)


@rule(
    each=(
        (
            "at 20 letters the accuracy of a linear probe that is told no more than the decoder "
            f"was (counts of 1 to 16 letters) is higher by more than {MORE:g} than that of the "
            "decoder's own answers"
        ),
        lambda found: [each["findable"] - each["used"] > MORE for each in found.values()],
    ),
    against=(
        (
            f"the accuracy of the probe is higher by at most {AHEAD:g} than that of the decoder's "
            "own answers"
        ),
        lambda found: [each["findable"] - each["used"] <= AHEAD for each in found.values()],
    ),
    fit=(
        (
            f"readouts that are fitted to shuffled counts are below {SHUFFLED:g}, and readouts "
            f"that see only the ratio are below {RATIO:g}"
        ),
        lambda shuffled, ratio: max(shuffled) < SHUFFLED and max(ratio) < RATIO,
    ),
    nothing=(
        "the decoder's own answers in place of the line's",
        lambda found: {
            "found": {name: {**each, "findable": each["used"]} for name, each in found.items()}
        },
    ),
)
def the_count_is_there() -> Numbers:
    """Measure how often three readouts recover the count of 20 letters, for each position encoding.

    The readouts are the best linear probe, a linear probe that is fitted on the lengths of the
    decoder's training, and the decoder itself.
    """
    table, moved = data.table("counting_readers"), data.table("counting_moved")
    answers = moved.groupby("encoding").mean(numeric_only=True)
    return {
        "found": run_selection.fates(table).to_dict("index"),
        "follows": answers.along_20.to_dict(),
        "ratio": [table.ratio.max()],
        "shuffled": table[["trained_shuffled", "untrained_shuffled"]].max().tolist(),
        "still": float(
            answers[[f"{kind}_{n}" for kind in ("random", "against") for n in (20, 28, 32)]]
            .max()
            .max()
        ),
        "seeds": table.groupby("encoding").seed.nunique().min(),
    }
