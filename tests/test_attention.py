"""Causal attention as a graph: against exact fractions, autograd, enumeration and the sources' numbers."""

import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course.chapter2 import measures
from helpers import attention
from helpers.attention import causal_mask, influence, influence_bound, uniform, window_mask

CAUSAL5 = uniform(causal_mask(5))


def random_attention(n: int, layers: int, seed: int, width: int | None = None) -> torch.Tensor:
    logits = 2 * torch.randn(layers, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mask = causal_mask(n) if width is None else window_mask(n, width)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


def exact_power(n: int, layers: int) -> list[list[Fraction]]:
    """Powers of the uniform causal matrix by multiplication, in fractions."""
    matrix = [[Fraction(j <= i, i + 1) for j in range(n)] for i in range(n)]
    power = [[Fraction(i == j) for j in range(n)] for i in range(n)]
    for _ in range(layers):
        power = [[sum(matrix[i][k] * power[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    return power


# Masks ---------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 15))
def test_a_window_is_what_its_definition_says(n, width):
    expected = [[j <= i and i - j < width for j in range(n)] for i in range(n)]
    assert window_mask(n, width).tolist() == expected
    assert causal_mask(n).tolist() == window_mask(n, n).tolist()


def test_a_prefix_sees_itself_in_both_directions():
    mask = attention.prefix_mask(5, 3)
    assert mask[:3, :3].all()
    assert mask[3:].tolist() == causal_mask(5)[3:].tolist()


def test_uniform_attention_shares_out_equally():
    assert uniform(window_mask(3, 2)).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]


def test_decay_without_rate_is_uniform_and_with_a_large_one_diagonal():
    torch.testing.assert_close(attention.decay(6, 0.0), uniform(causal_mask(6)))
    torch.testing.assert_close(attention.decay(6, 60.0), torch.eye(6, dtype=torch.float64))
    ratio = attention.decay(9, 0.3)[8]
    torch.testing.assert_close(ratio[:-1] / ratio[1:], torch.full((8,), math.exp(-0.3), dtype=torch.float64))


# Influence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", range(1, 7))
def test_uniform_influence_in_exact_fractions(layers):
    expected = torch.tensor([[float(x) for x in row] for row in exact_power(8, layers)], dtype=torch.float64)
    torch.testing.assert_close(influence([uniform(causal_mask(8))] * layers), expected, rtol=1e-12, atol=1e-14)


def test_the_first_layer_is_applied_first():
    first, second = random_attention(4, 2, seed=1)
    torch.testing.assert_close(influence([first, second]), second @ first)


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
    torch.testing.assert_close(influence_bound(matrices, beta1, beta2, beta3, sigma), jacobian)


def test_a_steeper_perceptron_or_smaller_norm_loosens_the_bound():
    plain = influence_bound([CAUSAL5] * 2)
    assert (influence_bound([CAUSAL5] * 2, slope=2.0) >= plain).all()
    assert (influence_bound([CAUSAL5] * 2, norm1=0.5) >= plain).all()
    assert (influence_bound([CAUSAL5] * 2, norm3=2.0) * 2 == plain).all()


def test_the_printed_path_sum_overcounts():
    """n = 5, three layers of uniform attention: the printed indices, one by one, and the product."""
    weights = CAUSAL5 + torch.eye(5)
    literal = [
        sum(
            float(weights[4, k3] * weights[k2, k1] * weights[k1, i])
            for k1 in range(i, 5)
            for k2 in range(k1, 5)
            for k3 in range(k2, 5)
        )
        for i in range(5)
    ]
    assert literal == pytest.approx([15.6516, 7.4283, 4.4166, 2.7755, 1.728], abs=5e-5)
    assert measures.printed_path_sum(torch.stack([CAUSAL5] * 3)).tolist() == pytest.approx(literal)
    product = influence_bound([CAUSAL5] * 3, slope=0.0)[-1].tolist()
    assert product == pytest.approx([2.6377, 1.5811, 1.1527, 0.9005, 1.728], abs=5e-5)


def test_the_window_of_two_is_not_diagonalizable_and_still_converges():
    """Proposition B.8's proof calls the product diagonalizable: eigenvalue 1/2 has one eigenvector only."""
    matrix = uniform(window_mask(5, 2))
    half = matrix - 0.5 * torch.eye(5, dtype=torch.float64)
    assert (torch.linalg.eigvals(matrix).real - 0.5).abs().lt(1e-2).sum() == 4  # four times, and …
    assert torch.linalg.matrix_rank(half) == 4  # … one eigenvector
    limit = influence([matrix] * 400)
    torch.testing.assert_close(limit[:, 0], torch.ones(5, dtype=torch.float64))


@given(st.integers(1, 7), st.integers(1, 4), st.integers(0, 99), st.floats(0, 1), st.booleans())
@settings(max_examples=60)
def test_products_stay_stochastic_and_triangular(n, layers, seed, residual, windowed):
    """Lemma B.7."""
    found = influence(random_attention(n, layers, seed, width=2 if windowed else None), residual)
    torch.testing.assert_close(found.sum(-1), torch.ones(n, dtype=torch.float64))
    assert (found >= 0).all()
    assert (found.triu(1) == 0).all()


@given(st.integers(2, 6), st.integers(0, 99), st.sampled_from([0.0, 0.25, 0.5]))
@settings(max_examples=30)
def test_in_the_limit_the_first_token_takes_all(n, seed, residual):
    """Proposition B.8, and Theorem 4.1 of Wu et al.: for attention bounded away from 0."""
    matrix = 0.5 * random_attention(n, 1, seed)[0] + 0.5 * uniform(causal_mask(n))
    torch.testing.assert_close(influence([matrix] * 200, residual)[:, 0], torch.ones(n, dtype=torch.float64))


def test_a_prefix_shares_the_limit():
    """Theorem 4.3 of Wu et al.: the prefix takes all, each of it a share that stays."""
    limit = influence([uniform(attention.prefix_mask(12, 3))] * 300)
    torch.testing.assert_close(limit[:, :3].sum(-1), torch.ones(12, dtype=torch.float64))
    assert limit[:, :3].min() > 0.3


def test_sinks_shut_out_a_middle_token():
    """A toy with a closed form: half own state, a share p on token 0, the rest uniform."""
    found = [float(influence([attention.sink(32, p)] * 8, 0.5)[-1, 4]) for p in (0, 0.5, 0.8, 0.95)]
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
    assert attention.path_count(n, layers) == counts


def test_paths_are_powers_of_the_causal_matrix():
    matrix = causal_mask(20).double()
    expected = torch.linalg.matrix_power(matrix, 6)[-1]
    assert attention.path_count(20, 6) == expected.long().tolist()
    assert attention.path_count(100, 12)[0] == 426342151127100


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_paths_of_a_length_are_as_many_as_the_lesson_says(layers):
    """`layers` steps of 0 or more that add up to a distance, each with the weight exp(-c) a token: lesson 2's table."""
    distances = torch.arange(12)
    one_layer = causal_mask(12) * torch.exp(-0.3 * (distances[:, None] - distances).double())
    found = torch.linalg.matrix_power(one_layer, layers)[:, 0]
    ways = torch.tensor([math.comb(layers - 1 + x, x) for x in range(12)])
    torch.testing.assert_close(found, ways * torch.exp(-0.3 * distances.double()))


@pytest.mark.parametrize(("layers", "rate", "exact"), [(12, 0.1, 114), (12, 0.5, 18), (12, 1, 6), (32, 1, 18)])
def test_critical_distance_is_beside_the_exact_maximum(layers, rate, exact):
    weight = [math.lgamma(layers + x + 1) - math.lgamma(x + 1) - rate * x for x in range(500)]
    assert weight.index(max(weight)) == exact
    assert attention.critical_distance(layers, rate) == pytest.approx(exact, abs=1)


# Scores --------------------------------------------------------------------------------------------


def test_sink_score_of_uniform_attention_is_a_harmonic_number_over_n():
    """The trap of the metric: above 0.3 up to nine tokens, with no sink at all."""
    for n in (1, 9, 10, 64):
        harmonic = float(sum(Fraction(1, k) for k in range(1, n + 1)) / n)
        assert float(attention.sink_score(uniform(causal_mask(n)))) == pytest.approx(harmonic)
        assert (harmonic > 0.3) == (n <= 9)


def test_sink_score_follows_its_definition_at_any_position():
    maps = random_attention(7, 3, seed=5)
    for position in range(7):
        expected = [sum(float(a[i, position]) for i in range(position, 7)) / (7 - position) for a in maps]
        assert attention.sink_score(maps, position).tolist() == pytest.approx(expected)


def test_slash_score_follows_its_definition_at_any_offset():
    maps = random_attention(7, 3, seed=6)
    for offset in range(7):
        expected = [sum(float(a[i, i - offset]) for i in range(offset, 7)) / (7 - offset) for a in maps]
        assert attention.slash_score(maps, offset).tolist() == pytest.approx(expected)
    assert float(attention.slash_score(uniform(causal_mask(64)), 5)) == pytest.approx(0.0417043656)


# Bad input -----------------------------------------------------------------------------------------


STOCHASTIC = "row-stochastic"
BAD = {
    "half": CAUSAL5 / 2,
    "negative": torch.tensor([[1.0, 0.0], [1.5, -0.5]]),
}


@pytest.mark.parametrize("matrix", BAD.values(), ids=BAD)
def test_what_is_not_row_stochastic_is_refused(matrix):
    for call in (
        lambda: influence([matrix]),
        lambda: influence_bound([matrix]),
        lambda: attention.sink_score(matrix),
        lambda: attention.slash_score(matrix, 0),
    ):
        with pytest.raises(ValueError, match=STOCHASTIC):
            call()


def test_what_is_not_causal_is_refused_where_it_must_be():
    ahead = CAUSAL5.T.flip(0, 1).contiguous().flip(1)
    ahead = ahead / ahead.sum(1, keepdim=True)
    for call in (
        lambda: influence_bound([ahead]),
        lambda: attention.sink_score(ahead),
        lambda: attention.slash_score(ahead, 1),
    ):
        with pytest.raises(ValueError, match="causal: no token looks at a later one, but token 0 looks at"):
            call()
    assert influence([ahead]).shape == (5, 5)  # a prefix mask, say, is allowed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: causal_mask(0), "n must be an integer of at least 1, not 0"),
        (lambda: causal_mask(2.0), "n must be an integer"),
        (lambda: window_mask(4, 0), "width must be an integer of at least 1, not 0"),
        (lambda: attention.prefix_mask(4, 5), "prefix must be at most n = 4"),
        (lambda: uniform(torch.zeros(2, 2, dtype=torch.bool)), "row 0 is empty"),
        (lambda: uniform(torch.ones(2, 3, dtype=torch.bool)), "square"),
        (lambda: uniform(2 * torch.ones(2, 2)), "true and false"),
        (lambda: attention.decay(4, -1.0), "rate must be"),
        (lambda: attention.decay(4, math.nan), "rate must be"),
        (lambda: attention.sink(4, 1.5), "weight must be a finite number from 0.0 to 1.0"),
        (lambda: influence([]), "at least one layer"),
        (lambda: influence([CAUSAL5, uniform(causal_mask(4))]), "same shape"),
        (lambda: influence(CAUSAL5), "one matrix a layer"),
        (lambda: influence([CAUSAL5 * math.nan]), "finite"),
        (lambda: influence([CAUSAL5], residual=1.5), "residual must be a finite number from 0.0 to 1.0"),
        (lambda: influence_bound([CAUSAL5], norm1=0.0), "norm1 must be a finite number above 0"),
        (lambda: influence_bound([CAUSAL5], norm2=[1.0, 1.0]), "norm2 must be one number or 1"),
        (lambda: influence_bound([CAUSAL5], slope=-1.0), "slope must be"),
        (lambda: attention.path_count(0, 3), "n must be"),
        (lambda: attention.path_count(3, 0), "layers must be"),
        (lambda: attention.critical_distance(12, 0.0), "rate must be above 0"),
        (lambda: attention.sink_score(CAUSAL5, 5), "position must be an integer from 0 to 4, not 5"),
        (lambda: attention.sink_score(CAUSAL5, -1), "position must be"),
        (lambda: attention.slash_score(CAUSAL5, 5), "offset must be an integer from 0 to 4, not 5"),
        (lambda: attention.sink_score(torch.ones(3)), "square matrices"),
        (lambda: attention.sink_score(torch.empty(0, 0)), "n at least 1"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_wrong_type_is_named():
    for call in (lambda: influence([[1.0]]), lambda: influence(3), lambda: attention.sink_score([[1.0]])):
        with pytest.raises(TypeError, match="attention"):
            call()
