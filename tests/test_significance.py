"""Intervals, tests and correlations against their formulas, enumeration, and scipy's other functions."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from course.evidence import significance


def test_an_interval_is_that_of_scipy_and_holds_its_level():
    values = [0.3, 0.1, 0.5, 0.9]
    exact = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert significance.interval(values, 0.9) == pytest.approx((0.45, exact.low, exact.high))
    assert significance.standard_error(values) == pytest.approx(stats.sem(values))
    generator = np.random.default_rng(0)
    ends = [significance.interval(generator.normal(size=5))[1:] for _ in range(2000)]
    assert np.mean([low < 0 < high for low, high in ends]) == pytest.approx(0.95, abs=0.015)


def test_one_value_has_no_ends():
    mean, *ends = significance.interval([0.5])
    assert mean == 0.5
    assert all(map(math.isnan, ends))
    assert math.isnan(significance.standard_error([0.5]))


def test_wilsons_interval_by_its_formula():
    """Wilson (1927): the shares p with |k/n - p| <= z sqrt(p (1 - p) / n)."""
    z = 1.959963984540054
    for k, n in ((0, 13), (8, 5000), (25, 5000), (5, 5)):
        middle, half = (
            (k + z * z / 2) / (n + z * z),
            z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4),
        )
        assert significance.share_interval(k, n) == pytest.approx(
            (middle - half, middle + half), abs=1e-12
        )


def test_the_sign_test_by_enumeration():
    for better, worse in ((6, 0), (5, 2), (3, 3)):
        coins = [sum(coin) for coin in product((0, 1), repeat=better + worse)]
        as_far = [abs(k - (better + worse) / 2) >= abs(better - worse) / 2 for k in coins]
        assert significance.sign_test(better, worse) == pytest.approx(np.mean(as_far))


def test_holm_is_the_textbook_s():
    """Holm (1979): sorted p values times m, m - 1, …, never falling."""
    assert significance.holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert significance.holm([]) == []


def test_the_paired_test_holds_its_level_where_there_is_nothing_to_find():
    generator = np.random.default_rng(1)
    false = [
        significance.paired(generator.normal(size=8), generator.normal(size=8)) < 0.05
        for _ in range(2000)
    ]
    assert np.mean(false) == pytest.approx(0.05, abs=0.015)


def test_pairs_without_a_difference_and_one_pair_are_no_evidence():
    assert significance.paired([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert significance.paired([1.0], [0.5]) == 1.0
    assert significance.paired([0.2] * 5, [0.1] * 5) == pytest.approx(2.0**-4)


def test_rank_correlation_handles_ties_and_rounding():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    assert significance.rank_correlation(x, 2 * x)[0] == pytest.approx(1)
    assert significance.rank_correlation(x, -x)[0] == pytest.approx(-1)
    noise = torch.tensor([0.0, 1e-15, -1e-15, 2e-15], dtype=torch.float64)
    assert significance.rank_correlation(1 + noise, x) == (0, 1)
    rho, p = significance.rank_correlation(torch.tensor([1.0, 1.0, 2.0, 2.0]), x)
    assert rho == pytest.approx(0.894427)
    assert p == pytest.approx(stats.pearsonr([1.5, 1.5, 3.5, 3.5], [1, 2, 3, 4]).pvalue)
    assert significance.rank_correlation([1, 2], [4, 3]) == (pytest.approx(-1), 1)
