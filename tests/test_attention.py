"""Causal attention as a graph: against exact fractions, autograd, enumeration and the sources' numbers."""

import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course.chapter2 import measures
from course.maths import bounds, constructions
from helpers import attention
from helpers.attention import causal_mask, influence, uniform, window_mask

CAUSAL5 = uniform(causal_mask(5))


def random_attention(n: int, layers: int, seed: int, width: int | None = None) -> torch.Tensor:
    logits = 2 * torch.randn(
        layers, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    mask = causal_mask(n) if width is None else window_mask(n, width)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


def exact_power(n: int, layers: int) -> list[list[Fraction]]:
    """Powers of the uniform causal matrix by multiplication, in fractions."""
    matrix = [[Fraction(j <= i, i + 1) for j in range(n)] for i in range(n)]
    power = [[Fraction(i == j) for j in range(n)] for i in range(n)]
    for _ in range(layers):
        power = [
            [sum(matrix[i][k] * power[k][j] for k in range(n)) for j in range(n)] for i in range(n)
        ]
    return power


# Masks ---------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 15))
def test_a_window_is_what_its_definition_says(n, width):
    expected = [[j <= i and i - j < width for j in range(n)] for i in range(n)]
    assert window_mask(n, width).tolist() == expected
    assert causal_mask(n).tolist() == window_mask(n, n).tolist()


# Influence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", range(1, 7))
def test_uniform_influence_in_exact_fractions(layers):
    expected = torch.tensor(
        [[float(x) for x in row] for row in exact_power(8, layers)], dtype=torch.float64
    )
    torch.testing.assert_close(
        influence([uniform(causal_mask(8))] * layers), expected, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5])
def test_influence_is_the_jacobian_of_a_linear_attention_network(residual):
    """Attention alone, weights frozen: what autograd gives is the product."""
    matrices = random_attention(6, 4, seed=2)

    def network(x):
        for matrix in matrices:
            x = (1 - residual) * matrix @ x + residual * x
        return x

    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(network, x)  # (6, 3, 6, 3)
    found = influence(matrices, residual)
    for k, m in itertools.product(range(3), repeat=2):
        expected = found if k == m else torch.zeros_like(found)
        torch.testing.assert_close(jacobian[:, k, :, m], expected)


def test_influence_bound_is_the_jacobian_where_every_step_is_tight():
    """Norms that divide by constants, a perceptron of slope sigma: the bound is reached on one channel."""
    matrices = random_attention(5, 3, seed=3)
    beta1, beta2, beta3, sigma = [1.5, 0.7, 2.0], [1.2, 0.8, 1.1], 1.7, [0.5, 2.0, 1.0]

    def network(v):
        for matrix, b1, b2, slope in zip(matrices, beta1, beta2, sigma, strict=True):
            z = matrix @ (v / b1) + v
            v = slope * (z / b2) + z
        return v / beta3

    v = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(network, v)
    torch.testing.assert_close(
        bounds.influence_bound(matrices, beta1, beta2, beta3, sigma), jacobian
    )


def test_the_printed_path_sum_is_over_the_printed_indices():
    weights = CAUSAL5 + torch.eye(5)
    literal = [
        sum(
            float(weights[4, last] * weights[second, first] * weights[first, i])
            for first, second, last in itertools.combinations_with_replacement(range(i, 5), 3)
        )
        for i in range(5)
    ]
    assert measures.printed_path_sum(torch.stack([CAUSAL5] * 3)).tolist() == pytest.approx(literal)


def test_sinks_shut_out_a_middle_token():
    """A toy with a closed form: half own state, a share p on token 0, the rest uniform."""
    found = [
        float(influence([constructions.sink(32, p)] * 8, 0.5)[-1, 4]) for p in (0, 0.5, 0.8, 0.95)
    ]
    assert found == pytest.approx([0.0416505, 0.0049172, 0.0005994, 6.753e-5], rel=1e-4)


# Paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "layers"), [(1, 1), (4, 1), (5, 3), (6, 4)])
def test_paths_one_by_one(n, layers):
    inner = itertools.product(range(n), repeat=layers - 1)
    counts = [0] * n
    for path in inner:
        for start in range(n):
            whole = (start, *path, n - 1)
            counts[start] += all(a <= b for a, b in itertools.pairwise(whole))
    assert bounds.path_count(n, layers) == counts


# Scores --------------------------------------------------------------------------------------------


def test_sink_score_follows_its_definition_at_any_position():
    maps = random_attention(7, 3, seed=5)
    for position in range(7):
        expected = [
            sum(float(a[i, position]) for i in range(position, 7)) / (7 - position) for a in maps
        ]
        assert attention.sink_score(maps, position).tolist() == pytest.approx(expected)


def test_slash_score_follows_its_definition_at_any_offset():
    maps = random_attention(7, 3, seed=6)
    for offset in range(7):
        expected = [
            sum(float(a[i, i - offset]) for i in range(offset, 7)) / (7 - offset) for a in maps
        ]
        assert attention.slash_score(maps, offset).tolist() == pytest.approx(expected)
    assert float(attention.slash_score(uniform(causal_mask(64)), 5)) == pytest.approx(0.0417043656)
