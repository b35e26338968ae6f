"""Measure the claims of chapter 6.

Each function belongs to a row of the chapter's table, and this row states the claim in words.
"""

from itertools import product

import pandas as pd
import torch

from course.chapter6 import measures
from course.evidence import significance
from course.evidence.rules import Numbers, Threshold, rule
from course.maths import normalizers
from course.runs import ablations, comparison, entries, protocol
from helpers import data
from helpers.style import number  # noqa: F401  the words of the table call it

SIZE = f"decoders with two layers of width 32, trained up to length {protocol.TRAINED}"
LONGEST = protocol.LENGTHS[-1]
EVEN = Threshold(1)

# Test the mechanism -------------------------------------------------------------------------------


CORRELATED = 0.9


@rule(
    holds=(
        "the answer's share of the weight rises with independent logits in the two maps",
        lambda gains: gains[0.0] > EVEN,
    ),
    part=(
        (
            "the answer's share of the weight rises with a correlation of "
            f"{CORRELATED:g} between the logits of the two maps"
        ),
        lambda gains: gains[CORRELATED] > EVEN,
    ),
    nothing=("a subtraction that changes nothing", {"gains": {0.0: 1.0, CORRELATED: 1.0}}),
    null=(
        "each gain belongs to its correlation, and the mean gain (or the gain of another "
        "correlation) is large because of noise that agrees completely"
    ),
)
def subtraction_cancels_noise() -> Numbers:
    """Return the factor by which a subtraction changes the answer's fraction of all weight.

    The factors are keyed by the correlation of the logits.
    """
    gains = {}
    for correlation in (0.0, 0.5, 0.9, 1.0):
        plain, left = (measures.parts(6, correlation, 1024, lam) for lam in (0.0, 0.8))
        gains[correlation] = left["share"] / plain["share"]
    return {"gains": gains}


MOST, MANY = Threshold(0.95), Threshold(0.8)  # fractions of the settings


@rule(
    holds=(
        f"the threshold predicts in at least {MOST:.0%} of the settings whether the noise falls",
        lambda right, settings: right >= MOST * settings,
    ),
    part=(
        f"the threshold predicts it in at least {MANY:.0%} of the settings",
        lambda right, settings: right >= MANY * settings,
    ),
    nothing=("a coin for each setting", lambda settings: {"right": settings / 2}),
)
def half_of_lambda_is_the_threshold() -> Numbers:
    """Count the settings in which the cosine predicts whether a subtraction lowers the noise.

    Returns:
        `right`: the number of settings in which the threshold λ/2 times the ratio of the sizes
            predicts the change of the noise.
        `plain`: the number of settings in which the threshold λ/2 predicts the change of the noise.
        `settings`: the number of all settings.
    """
    deviations = (0.5, 1.0, 1.5, 2.0)
    settings = product(deviations, deviations, (0.0, 0.5, 0.9), (0.2, 0.5, 0.8))
    found = [
        (lam, measures.simulated_left(r, spread, lam, other=other))
        for spread, other, r, lam in settings
    ]
    return {
        "right": sum(
            (each.left < 1) == (each.cosine > lam / 2 * each.ratio) for lam, each in found
        ),
        "plain": sum((each.left < 1) == (each.cosine > lam / 2) for lam, each in found),
        "settings": len(found),
    }


FIFTH = Threshold(0.2)


@rule(
    "signed_sums_hide_noise",
    holds=(
        (
            f"the sum with signs falls to less than {FIFTH:g} of its value, although the sum of "
            "the absolute values rises"
        ),
        lambda signed, sized: signed[1] < FIFTH * signed[0] and sized[1] > Threshold(sized[0]),
    ),
    nothing=("a subtraction that changes nothing", {"signed": [1.0, 1.0], "sized": [1.0, 1.0]}),
)
def counted_noise() -> Numbers:
    """Measure the noise of softmax and of a difference of independent attention matrices.

    Returns:
        `signed`: for both, the sum of the noise weights with their signs.
        `sized`: for both, the sum of their absolute values.
        `rest`: the weight that a source's table leaves out of the rows of DIFF.
    """
    rows = [measures.parts(6, 0, 1024, lam) for lam in (0.0, 0.8)]
    mean = data.table("reported/differential_attention_mass").mean()
    return {
        "signed": [row["signed"] for row in rows],
        "sized": [row["noise"] for row in rows],
        "rest": 1 - mean.answer_diff - mean.noise_diff,
    }


LEAST, LARGEST = Threshold(0.5), Threshold(2)
FAR_BELOW, FAR_ABOVE = Threshold(0.25), Threshold(4)


@rule(
    "gradients_stay_aligned",
    each=(
        f"the ratio of the two gradients is between {LEAST:g} and {LARGEST:g}",
        lambda ratios: [LEAST < ratio < LARGEST for ratio in ratios],
    ),
    against=(
        f"the ratio is below {FAR_BELOW:g} or above {FAR_ABOVE:g}",
        lambda ratios: [ratio > FAR_ABOVE or ratio < FAR_BELOW for ratio in ratios],
    ),
    nothing=("gradients of one size", {"ratios": [1.0] * 8}),
    null="the claim is that nothing changes",
)
def gradients() -> Numbers:
    """Measure the gradient of W_Q in a Differential Transformer relative to that in a Transformer.

    Returns:
        `ratios`: the ratio in all settings.
        `default`: the ratio with PyTorch's initialisation and unrelated tokens.
        `near`: the ratios in settings near the setting of the proof.
    """
    table = measures.gradient_setups()
    ratios = table["norm and scale"]
    return {
        "ratios": ratios,
        "default": ratios[(table.start == "default") & (table["tokens alike"] == 0)],
        "near": ratios[(table.start == "Xavier") & (table["tokens alike"] > 0)],
    }


def two_plain_heads() -> Numbers:
    """Measure how much a differential layer without head norm differs from two plain heads."""
    return {"gap": measures.as_two_heads()}


# Report results that are not repeated at that size ------------------------------------------------


# Test the critics, and other normalizers ----------------------------------------------------------


WHOLE = Threshold(0.99)
EXACT = Threshold(1e-12)


@rule(
    holds=(
        (
            f"a differential head reaches a cosine of {WHOLE:g}, and neither softmax nor two "
            "plain heads with shared values can"
        ),
        lambda full, plain, gap: full > WHOLE > plain and gap >= EXACT,
    ),
    part=(
        (
            f"a differential head reaches a cosine of {WHOLE:g} and softmax does not, but two "
            "plain heads with shared values reach it, too"
        ),
        lambda full, plain: full > WHOLE > plain,
    ),
    nothing=("softmax for it", lambda plain: {"full": plain}),
)
def negative_attention_reaches_further() -> Numbers:
    """Measure how close one head's output comes to a difference of values, for three lambdas."""
    plain, half, full = (measures.reach(lam) for lam in (0.0, 0.5, 1.0))
    return {"plain": plain, "half": half, "full": full} | two_plain_heads()


@rule(
    holds=(
        (
            "the leading key has at least as much weight among 100,000 keys as among 100, for "
            "both gaps"
        ),
        lambda peaks: all(long >= Threshold(short) for short, long in peaks.values()),
    ),
    part=(
        "with the larger gap the key keeps its weight, but with a gap below 1/s it does not",
        lambda peaks: peaks[2.0][1] >= Threshold(peaks[2.0][0]),
    ),
    nothing=("plain softmax, which fades", {"peaks": {0.5: [0.01, 1e-5], 2.0: [0.07, 7e-5]}}),
    null="a weight that is the same at both lengths is kept by definition",
)
def scalable_softmax_keeps_the_peak() -> Numbers:
    """Measure one key's attention weight among 100 keys and among 100,000 keys, for two leads.

    The lead is the key's logit minus the logit of the other keys. If the lead is large enough,
    scalable softmax should keep the weight.
    """
    short, long = (torch.eye(1, n, dtype=torch.float64)[0] for n in (100, 100_000))
    peaks = {
        lead: [float(normalizers.scalable_softmax(lead * x)[0]) for x in (short, long)]
        for lead in (0.5, 2.0)
    }
    return {"peaks": peaks}


# Test the race ------------------------------------------------------------------------------------


SURE = (
    f"the paired test finds a significant difference (p below {protocol.LEVEL:g} after the "
    "correction for the number of tests)"
)
NOT_SURE = {
    "against": ("the test finds another result that is significant", lambda against: against),
    "enough": (SURE, lambda agree, against: any([*agree, *against])),
    "nothing": (
        "gaps of which the test is not sure",
        lambda agree: {"agree": agree & False, "against": agree & False},
    ),
}


@rule(
    "race_differential_attends_to_the_answer",
    "race_differential_has_smaller_outliers",
    each=(
        "the number differs significantly in the direction that the claim says",
        lambda agree: agree,
    ),
    **NOT_SURE,
)
def differential_gaps(columns: dict[str, str], less: str = "") -> Numbers:
    """Compare differential attention on retrieval with softmax attention that has half the heads.

    Args:
        columns: the columns to compare, with their names in the result.
        less: the beginning of the names that should be smaller with differential attention. All
            others should be larger.

    Returns:
        `gaps`: for each column, the two means and a p value, corrected for the number of columns.
        `agree`, `against`: the columns with a significant difference in the expected and in the
            opposite direction.
    """
    rows = comparison.table().query("task == 'retrieval' and learned == 1")
    found = {}
    for column, name in columns.items():
        wide = rows.pivot(index="seed", columns="entry", values=column)[
            [entries.HALF, "differential"]
        ].dropna()
        found[name] = [*wide.mean(), significance.paired(wide["differential"], wide[entries.HALF])]
    gaps = pd.DataFrame(found, index=["half", "differential", "p"]).T
    gaps["p"] = significance.holm(gaps.p.tolist())
    sure, wished = (
        gaps.p < protocol.LEVEL,
        (gaps.differential > gaps.half) != gaps.index.str.startswith(less),
    )
    return {"gaps": gaps, "agree": sure & wished, "against": sure & ~wished}


def _judged(found: pd.DataFrame, claimed: str) -> Numbers:
    """Compare the verdicts that we found with the claimed verdict.

    Returns:
        `found`: the verdicts.
        `agree`: whether each verdict is the claimed one.
        `against`: whether each verdict differs from the claimed one with a significant test.
    """
    sure = found.verdict.isin(["better", "worse", protocol.EQUAL])
    return {
        "found": found,
        "agree": found.verdict == claimed,
        "against": sure & (found.verdict != claimed),
    }


@rule(
    each=(
        "the decoder is significantly better than the same decoder with plain attention",
        lambda agree: agree,
    ),
    against=(
        f"it is significantly worse, or significantly {protocol.EQUAL} in the odds",
        lambda against: against,
    ),
    enough=(SURE, lambda agree, against: any([*agree, *against])),
    nothing=(
        "gaps of which the test is not sure",
        lambda agree: {"agree": agree & False, "against": agree & False},
    ),
)
def race_differential_retrieves() -> Numbers:
    """Compare the differential entries with softmax at retrieval in the race."""
    found = (
        comparison.compare(comparison.table(), against=None)
        .query("task == 'retrieval'")
        .set_index("entry")
    )
    right = (
        data.table("race_pairs")
        .query("rate == 0.005")
        .groupby("entry")[["first_score_128", "end_score_128"]]
        .mean()
    )
    names = {"differential": "differential", "half": entries.HALF}
    stops = {short: right.loc[name].tolist() for short, name in names.items()}
    return _judged(found.loc[entries.HYPOTHESES["H4"][1]], "better") | {"stops": stops}


@rule(
    each=(
        "the 95% interval of the factor is above 1",
        lambda noises: noises.low > EVEN,
    ),
    against=("the interval is below 1", lambda noises: noises.high < EVEN),
    enough=(
        "one of the intervals does not include 1",
        lambda noises: any((noises.low > EVEN) | (noises.high < EVEN)),
    ),
    nothing=("intervals around 1", lambda noises: {"noises": noises.assign(low=0.9, high=1.1)}),
)
def race_subtraction_raises_signal_over_noise() -> Numbers:
    """Measure the factor by which the subtraction changes the signal-to-noise ratio in the race."""
    pairs = data.table("race_pairs").query("entry == 'differential' and rate == 0.005")
    output = pairs[["first_output", "end_output"]]
    return {"noises": comparison.noises(), "output": output.mean().tolist(), "runs": len(pairs)}


@rule(
    holds=(
        (
            "the rank correlation over the remedies is above 95% of the rank correlations over "
            "groups of runs that we drew from all remedies"
        ),
        lambda rho, shuffled: rho > shuffled[1],
    ),
    part=(
        (
            "over the runs of one remedy the two go together (the interval is above 0), but over "
            "the remedies they go together no more than over random groups of runs"
        ),
        lambda low: low > Threshold(0),
    ),
    nothing=("no correlation", {"rho": 0.0, "low": 0.0}),
)
def race_share_goes_with_right_answers() -> Numbers:
    """Measure rank correlations between attention on the answer and accuracy.

    Returns:
        `rho`: the correlation over the remedies.
        `shuffled`: the median and the 95% quantile over shuffled groups.
        `within`, `low`, `high`: the mean correlation within one remedy, with its 95% interval.
        `correlations`: these results in a sentence.
    """
    rows = comparison.table()
    within, low, high = comparison.correlation_of_runs(rows)
    return {
        "rho": comparison.rank_correlation(rows)[0],
        "shuffled": comparison.shuffled_correlations(rows),
        "within": within,
        "low": low,
        "high": high,
        "correlations": comparison.correlations(rows),
    }


# Test the paper's ablations in the race's decoders ------------------------------------------------


@rule(
    "small_head_norm_matters",
    "small_start_of_lambda_hardly_matters",
    each=("the test gives the verdict of the claim (worse, or equal)", lambda agree: agree),
    least=1,  # a case is a test over seeds
    **NOT_SURE,
)
def ablated(names: list[str], claimed: str) -> Numbers:
    """Compare some rows of the paper's ablations with their references.

    Args:
        names: the rows.
        claimed: the verdict that agrees with the claim.
    """
    return _judged(ablations.judged().loc[names], claimed)
