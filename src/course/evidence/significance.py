"""Compute intervals, tests and rank correlations, to decide what measured numbers support.

All chapters use the same conventions. Intervals are two-sided at 95% unless stated otherwise, and
tests are two-sided. If the numbers do not vary, there is no evidence, and the p value is 1. The
computations use SciPy.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from helpers import require

LARGEST = 1e150  # its square is still finite


def _numbers(name: str, values: object, least: int = 1) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        array = np.empty((0, 0))
    bad = array.ndim != 1 or len(array) < least or not np.isfinite(array).all()
    if bad or np.abs(array).max(initial=0) > LARGEST:
        raise ValueError(
            f"{name} must be a list of at least {least} finite numbers, not {require.brief(values)}"
        )
    return array


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of the values with Student's interval.

    Returns:
        The mean, the low end and the high end. The two ends are NaN if there is only one value.

    >>> [round(x, 3) for x in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    sample = _numbers("values", values)
    if not 0 < require.number("level", level) < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
    mean, error = float(sample.mean()), standard_error(sample)
    if len(sample) < 2:
        return mean, math.nan, math.nan
    half = error * float(stats.t.ppf((1 + level) / 2, len(sample) - 1))
    return mean, mean - half, mean + half


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean, or NaN if there is only one value.

    >>> round(standard_error([1.0, 2.0, 3.0]), 4)
    0.5774
    """
    sample = _numbers("values", values)
    return float(sample.std(ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan


def share_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a proportion of `successes` among `trials`.

    >>> low, high = share_interval(0, 13)
    >>> round(low, 3), round(high, 3)
    (0.0, 0.228)
    """
    require.integer("trials", trials, 1)
    if require.integer("successes", successes, 0) > trials:
        raise ValueError(
            f"successes must be an integer from 0 to trials = {trials}, not {successes}"
        )
    if not 0 < require.number("confidence", confidence) < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    bounds = stats.binomtest(successes, trials).proportion_ci(confidence, "wilson")
    return float(bounds.low), float(bounds.high)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p value of a paired t test.

    The result is 1 if all differences are 0 or if there is only one pair. If all differences are
    equal but not 0, a t test would always find them significant, however small they are. In this
    case we use the sign test, whose p value is 2^(1 - pairs).

    >>> paired([1.0, 1.0], [1.0, 1.0]), round(paired([1.0, 2.0, 4.0], [0.0, 1.5, 2.0]), 3)
    (1.0, 0.118)
    """
    left, right = _numbers("ours", ours), _numbers("theirs", theirs)
    if len(left) != len(right):
        raise ValueError(
            f"theirs must have as many numbers as ours, which has {len(left)}, not {len(right)}"
        )
    gaps = left - right
    if len(gaps) < 2 or not gaps.any():
        return 1.0
    if np.ptp(gaps) < 1e-12:
        return 2.0 ** (1 - len(gaps))
    return float(stats.ttest_rel(left, right).pvalue)


def sign_test(better: int, worse: int) -> float:
    """Return the p value of a sign test, which leaves out cases that are neither better nor worse.

    If no case remains, the result is 1.

    >>> sign_test(6, 0), sign_test(0, 0)
    (0.03125, 1.0)
    """
    trials = require.integer("better", better, 0, 10**6) + require.integer("worse", worse, 0, 10**6)
    return float(stats.binomtest(better, trials).pvalue) if trials else 1.0


def holm(p: Sequence[float]) -> list[float]:
    """Return p values after Holm's correction (1979) for several tests.

    If the corrected p values are compared with a level, the probability of one or more false alarms
    stays below this level.

    >>> [round(x, 3) for x in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    values = _numbers("p", p, 0)
    if ((values < 0) | (values > 1)).any():
        raise ValueError(f"p must hold numbers from 0 to 1, not {require.brief(p)}")
    order, adjusted, worst = np.argsort(values), [1.0] * len(values), 0.0
    for rank, place in enumerate(order):
        worst = max(worst, min(1.0, (len(values) - rank) * float(values[place])))
        adjusted[place] = worst
    return adjusted


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return Spearman's rank correlation and its p value.

    The result is (0, 1) if all values of x, or all values of y, are equal. Values that agree in
    nine significant digits count as equal, so that rounding errors do not break ties. The p value
    assumes that the pairs are independent.

    >>> rank_correlation([1, 2, 3, 4], [1, 8, 27, 64])[0], rank_correlation([1, 2, 3], [5, 5, 5])
    (1.0, (0.0, 1.0))
    """
    left, right = (_numbers(name, values) for name, values in (("x", x), ("y", y)))
    if len(left) != len(right):
        raise ValueError(
            f"y must have as many numbers as x, which has {len(left)}, not {len(right)}"
        )
    left, right = (np.array([float(f"{value:.9g}") for value in side]) for side in (left, right))
    if len(set(left)) < 2 or len(set(right)) < 2:
        return 0.0, 1.0
    correlation = stats.spearmanr(left, right)
    return float(correlation.statistic), float(correlation.pvalue) if len(left) > 2 else 1.0
