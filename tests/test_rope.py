"""Rotary encoding against transformers' own layers, closed forms in float64 and published numbers."""

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gptj import modeling_gptj
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from helpers import attention, rope

WIDTHS = some.integers(1, 16).map(lambda pairs: 2 * pairs)
BASES = some.floats(1.5, 1e7)
COUNT = torch.arange(1.0, 9.0, dtype=torch.float64)[None]


def vectors(width, n=1, seed=0):
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def at(*positions):
    return torch.tensor(positions, dtype=torch.float64)


# The rotation


def test_half_layout_is_what_llama_does():
    x = torch.randn(1, 2, 12, 16, generator=torch.Generator().manual_seed(0))
    config = LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16, rope_theta=1e4)
    cos, sin = LlamaRotaryEmbedding(config)(x, torch.arange(12)[None])
    expected, _ = apply_rotary_pos_emb(x, x, cos, sin)
    found = rope.rotate(x, torch.arange(12), rope.frequencies(16, 1e4), "half")
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_interleaved_layout_is_what_gpt_j_does():
    x = torch.randn(1, 12, 2, 16, generator=torch.Generator().manual_seed(0))
    sin, cos = modeling_gptj.create_sinusoidal_positions(12, 16)[None].chunk(2, dim=-1)
    expected = modeling_gptj.apply_rotary_pos_emb(x, sin, cos).transpose(1, 2)
    found = rope.rotate(x.transpose(1, 2), torch.arange(12), rope.frequencies(16, 1e4), "interleaved")
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_both_layouts_by_the_numbers_of_the_closed_form():
    theta = rope.frequencies(8, 1e4)
    angle = [3 * 1e4 ** (-2 * i / 8) for i in range(4)]
    for layout, pairs in (("interleaved", [(0, 1), (2, 3), (4, 5), (6, 7)]), ("half", [(i, i + 4) for i in range(4)])):
        found = rope.rotate(COUNT, at(3), theta, layout)[0]
        for (a, b), t in zip(pairs, angle, strict=True):
            assert found[a].item() == pytest.approx((a + 1) * math.cos(t) - (b + 1) * math.sin(t), rel=1e-12)
            assert found[b].item() == pytest.approx((a + 1) * math.sin(t) + (b + 1) * math.cos(t), rel=1e-12)
    assert found[0].item() == pytest.approx(-1.6955925369, abs=1e-9)
    assert rope.rotate(COUNT, at(3), theta, "interleaved")[0, 0].item() == pytest.approx(-1.2722325127, abs=1e-9)


def test_the_wrong_layout_gives_another_score():
    theta = rope.frequencies(8, 1e4)
    found = {
        layout: (rope.rotate(COUNT, at(5), theta, layout) @ rope.rotate(COUNT.flip(1), at(2), theta, layout).T).item()
        for layout in rope.LAYOUTS
    }
    assert found == {"half": pytest.approx(45.9295672520), "interleaved": pytest.approx(70.2790325503)}


@given(WIDTHS, BASES, some.integers(0, 3000))
def test_the_permutation_turns_one_layout_into_the_other(width, base, position):
    x, theta, order = vectors(width), rope.frequencies(width, base), rope.layout_order(width)
    half = rope.rotate(x[:, order], at(position), theta, "half")
    torch.testing.assert_close(half, rope.rotate(x, at(position), theta, "interleaved")[:, order])


@given(
    WIDTHS,
    BASES,
    some.sampled_from(rope.LAYOUTS),
    some.integers(-500, 500),
    some.integers(0, 500),
    some.integers(0, 999),
)
def test_scores_depend_on_relative_position_alone(width, base, layout, m, n, shift):
    q, k = vectors(width), vectors(width, seed=1)
    theta = rope.frequencies(width, base)

    def score(i, j):
        return rope.rotate(q, at(i), theta, layout) @ rope.rotate(k, at(j), theta, layout).T

    torch.testing.assert_close(score(m, n), score(m + shift, n + shift), rtol=1e-9, atol=1e-9)


@given(WIDTHS, BASES, some.sampled_from(rope.LAYOUTS), some.integers(-999, 999), some.integers(-999, 999))
def test_rotations_keep_the_norm_and_add_up(width, base, layout, m, n):
    x, theta = vectors(width), rope.frequencies(width, base)
    once = rope.rotate(x, at(m), theta, layout)
    torch.testing.assert_close(once.norm(), x.norm())
    twice = rope.rotate(once, at(n), theta, layout)
    torch.testing.assert_close(twice, rope.rotate(x, at(m + n), theta, layout), rtol=1e-9, atol=1e-9)


def test_angles_are_exact_far_away_also_in_half_precision():
    """Angles made in bf16 would be off by hundreds of turns at position 100 000."""
    x = torch.zeros(1, 2, dtype=torch.bfloat16)
    x[0, 0] = 1
    found = rope.rotate(x, at(100_000), rope.frequencies(2, 1e4), "half")
    assert found[0, 0].item() == pytest.approx(math.cos(100_000), abs=4e-3)


# Frequencies


def test_frequencies_by_their_formula():
    theta = rope.frequencies(128, 5e5)
    assert theta.dtype == torch.float64
    assert theta.tolist() == [pytest.approx(5e5 ** (-2 * i / 128), rel=1e-14) for i in range(64)]


def config(kind, base, factor, length, **more):
    parameters = {"rope_type": kind, "rope_theta": base, "factor": factor, "original_max_position_embeddings": length}
    return LlamaConfig(
        hidden_size=256, num_attention_heads=2, head_dim=128, max_position_embeddings=int(factor * length),
        rope_parameters={**parameters, **more},
    )  # fmt: skip


@pytest.mark.parametrize("factor", [1.0, 2.0, 8.0, 32.0])
@pytest.mark.parametrize(("base", "length"), [(1e4, 4096), (5e5, 8192), (1e6, 32768)])
@pytest.mark.parametrize("method", ["linear", "yarn", "llama3"])
def test_scaling_is_what_transformers_computes(method, base, length, factor):
    more = {"low_freq_factor": 1.0, "high_freq_factor": 4.0} if method == "llama3" else {}
    expected, _ = ROPE_INIT_FUNCTIONS[method](config(method, base, factor, length, **more), "cpu")
    found = rope.scaled_frequencies(method, 128, base, factor, length)
    torch.testing.assert_close(found.float(), expected.float(), rtol=2e-5, atol=1e-12)


def test_ntk_by_its_formula_and_by_transformers_dynamic_form():
    """Dynamic NTK at s times the trained length with factor 1 is NTK-aware scaling by s."""
    for factor, base in ((2, 20221.26), (4, 40889.94), (8, 82684.62), (16, 167198.74)):
        found = rope.scaled_frequencies("ntk", 128, 1e4, factor)
        torch.testing.assert_close(found, rope.frequencies(128, base), rtol=1e-6, atol=0)
        plain = LlamaConfig(
            hidden_size=256, num_attention_heads=2, head_dim=128, max_position_embeddings=4096,
            rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 1.0},
        )  # fmt: skip
        expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](plain, "cpu", seq_len=factor * 4096)
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-5, atol=1e-12)
    assert found[-1].item() == pytest.approx(rope.frequencies(128, 1e4)[-1].item() / 16)
    assert found[0] == 1


def test_scaling_by_the_numbers_that_the_papers_formulas_give():
    paper = rope.scaled_frequencies("yarn-paper", 128, 1e4, 8, 4096)
    assert paper.sum().item() == pytest.approx(7.307067018)
    theta = rope.frequencies(128, 1e4)
    for found in (paper, rope.scaled_frequencies("yarn", 128, 1e4, 8, 4096)):
        kept, divided = found == theta, (found - theta / 8).abs() < 1e-15
        assert (int(kept.sum()), int((~kept & ~divided).sum()), int(divided.sum())) == (21, 25, 18)
    llama = rope.scaled_frequencies("llama3", 128, 5e5, 8, 8192)
    assert llama[[29, 34, 63]].tolist() == pytest.approx([0.0021665708, 0.0001785078, 3.068926e-7])
    assert llama.sum().item() == pytest.approx(5.3860582007)


def test_partial_rotation_is_none_at_zero_and_all_at_one():
    theta = rope.frequencies(256, 1e4)
    assert torch.equal(rope.partial_frequencies(256, 1e4, 1), theta)
    assert rope.partial_frequencies(256, 1e4, 0).count_nonzero() == 0
    found = rope.partial_frequencies(256, 1e4, 0.75)
    assert found.shape == theta.shape
    assert found.count_nonzero() == 96
    assert found[95].item() == pytest.approx(0.00107460783)
    assert torch.equal(found[:96], theta[:96])
    assert [int(rope.partial_frequencies(200, 1e4, p / 100).count_nonzero()) for p in range(101)] == list(range(101))


# Sums of cosines


def test_cosine_sum_by_the_definition_with_fifty_digits():
    with mpmath.workdps(50):
        for m, value in ((1, 62.0936838058), (100, 30.5434547015), (4096, -3.3826139245), (10_000, -1.7852019248)):
            exact = sum(mpmath.cos(m * mpmath.mpf(10_000) ** (mpmath.mpf(-2 * i) / 128)) for i in range(64))
            assert rope.cosine_sum(m, 128, 1e4).item() == pytest.approx(float(exact), rel=1e-11)
            assert float(exact) == pytest.approx(value, abs=1e-9)


def test_cosine_sum_is_the_score_of_equal_vectors():
    theta, ones = rope.frequencies(16, 500), torch.ones(1, 16, dtype=torch.float64)
    for m in (0, 3, 70):
        score = rope.rotate(ones, at(m), theta, "half") @ rope.rotate(ones, at(0), theta, "half").T
        assert score.item() == pytest.approx(2 * rope.cosine_sum(m, 16, 500).item())


def test_decay_bound_is_the_published_mean_and_is_not_monotone():
    distance = at(0, 1, 16, 64, 128, 256, 1000, 4096, 1e5)
    expected = [32.5, 31.5381661, 15.7749515, 10.0899415, 9.2729027, 6.5430973, 4.4707610, 4.8827922, 6.8879816]
    assert rope.decay_bound(distance, 128, 1e4).tolist() == pytest.approx(expected, abs=1e-6)
    assert (rope.decay_bound(torch.arange(3000), 128, 1e4).diff() > 0).any()


@given(WIDTHS, BASES, some.integers(0, 10_000))
def test_decay_bound_bounds_every_score(width, base, m):
    """RoFormer, Eq. 35 to 37, for random queries and keys: h_i = q_i conj(k_i), h_{d/2} = 0."""
    q, k = (torch.view_as_complex(vectors(width, seed=s).view(-1, 2)) for s in (0, 1))
    h = q * k.conj()
    steps = torch.cat([h[1:], torch.zeros(1)]) - h
    score = (h * torch.polar(torch.ones(width // 2).double(), m * rope.frequencies(width, base))).sum().abs()
    assert score <= steps.abs().max() * rope.decay_bound(m, width, base) * (width // 2) * (1 + 1e-9)


FIRST = [
    (128, 1e2, 59), (128, 1e3, 361), (128, 1e4, 1707), (128, 1e5, 7757), (128, 5e5, 18438), (128, 1e6, 27115),
    (64, 1e4, 725), (64, 5e5, 9937), (256, 1e4, 2653),
]  # fmt: skip


@pytest.mark.parametrize(("width", "base", "expected"), FIRST)
def test_first_negative_by_every_sum(width, base, expected):
    sums = rope.cosine_sum(torch.arange(expected + 1), width, base)
    assert (sums[:-1] >= 0).all()
    assert sums[-1] < 0
    assert rope.first_negative(width, base, 100_000) == expected
    assert rope.first_negative(width, base, expected + 1) == expected
    assert rope.first_negative(width, base, expected) is None


@given(some.integers(1, 40).map(lambda pairs: 2 * pairs), BASES, some.integers(1, 5000))
def test_first_negative_agrees_with_every_sum_everywhere(width, base, limit):
    negative = (rope.cosine_sum(torch.arange(limit), width, base) < 0).nonzero().flatten()
    assert rope.first_negative(width, base, limit) == (int(negative[0]) if len(negative) else None)


def test_a_sum_too_near_zero_for_float64_is_decided_with_fifty_digits(monkeypatch):
    """With doubt everywhere each verdict comes from the exact sum, and must be the same."""
    monkeypatch.setattr(rope, "_doubt", lambda pairs, limit: 1e-3)
    asked = []
    exact = rope._exact
    monkeypatch.setattr(rope, "_exact", lambda *a: asked.append(a) or exact(*a))
    base = next(b for b in range(4200, 4400) if 0 < rope.cosine_sum(torch.arange(1024), 128, b).abs().min() < 1e-3)
    expected = (rope.cosine_sum(torch.arange(1024), 128, base) < 0).nonzero().flatten()
    assert rope.first_negative(128, base, 1024) == (int(expected[0]) if len(expected) else None)
    assert asked


@pytest.mark.parametrize(
    ("length", "step", "start", "expected"),
    [(1000, 1, 2, 4207), (1024, 1, 2, 4294), (2000, 2, 2, 11588), (2048, 2, 2, 11588), (4096, 5, 5, 26955)],
)
def test_smallest_base_by_all_sums_at_the_last_bases(length, step, start, expected):
    assert rope.smallest_base(length, 128, step, start) == expected
    m = torch.arange(length)
    assert (rope.cosine_sum(m, 128, expected) >= 0).all()
    for base in range(expected - 20 * step, expected, step):
        assert (rope.cosine_sum(m, 128, base) < 0).any()


@pytest.mark.parametrize(("width", "length", "step"), [(16, 200, 0.5), (32, 300, 1), (64, 512, 3), (128, 256, 0.25)])
def test_smallest_base_is_equal_to_the_direct_search_at_every_base(width, length, step):
    m, base = torch.arange(length), 1.5
    while (rope.cosine_sum(m, width, base) < 0).any():
        base += step
    assert rope.smallest_base(length, width, step, 1.5) == pytest.approx(base)


def test_the_bases_that_pass_are_no_interval():
    passes = [rope.first_negative(128, base, 1024) is None for base in (4300, 4350, 5625, 5650, 6025)]
    assert passes == [True, False, True, False, True]
    assert [rope.first_negative(128, base, 4096) for base in (26955, 27000)] == [None, 4079]
    assert rope.first_negative(128, 310_000, 16384) is not None  # the published bound itself
    assert rope.first_negative(128, 231_700, 16384) is None


# Heads


def test_one_frequency_is_dear_and_the_full_spectrum_is_cheap():
    one = [rope.slash_scale(torch.ones(1), n) for n in (20, 44, 45, 711)]
    assert one == [pytest.approx(x, rel=1e-3) for x in (406.8, 548.1, 29326, 2.53e9)]
    full = [rope.slash_scale(rope.frequencies(d, 1e4), 4096) for d in (64, 128, 256)]
    assert full == pytest.approx([4.2423, 2.4105, 1.2880], abs=1e-4)
    fastest = [rope.slash_scale(rope.frequencies(128, 1e4)[:k], 4096) for k in (2, 4, 8, 16)]
    assert fastest == [pytest.approx(x, rel=1e-3) for x in (1803, 122.7, 3.43, 2.436)]
    assert rope.slash_scale(torch.zeros(4), 10) == math.inf


@given(some.integers(2, 60), some.integers(0, 59), some.floats(0.2, 0.999))
def test_the_scale_reaches_its_weight_and_no_smaller_one_does(n, offset, weight):
    offset = min(offset, n - 1)
    theta = rope.frequencies(32, 100)
    scale = rope.slash_scale(theta, n, weight, offset)
    weights = rope.slash_attention(theta, n, offset, scale)
    assert weights.diagonal(-offset).min().item() >= weight - 1e-9
    if scale > 1e-9:
        assert rope.slash_attention(theta, n, offset, 0.99 * scale).diagonal(-offset).min().item() < weight


def test_slash_attention_is_rotated_dot_products():
    theta = rope.frequencies(8, 100)
    q = torch.tensor([[1.0] * 4 + [0.0] * 4], dtype=torch.float64).expand(12, -1)
    positions = torch.arange(12).double()
    keys = rope.rotate(q, positions + 2, theta, "half")
    logits = 3 * rope.rotate(q, positions, theta, "half") @ keys.T
    expected = logits.masked_fill(torch.ones(12, 12).triu(1).bool(), -math.inf).softmax(-1)
    torch.testing.assert_close(rope.slash_attention(theta, 12, 2, 3.0), expected)


def test_slash_scores_of_the_toy_by_frequency_band():
    theta = rope.frequencies(128, 1e4)
    bands = {"high": theta[:16], "next": theta[16:32], "low": theta[32:], "all": theta}
    found = {name: attention.slash_score(rope.slash_attention(band, 256, 3), 3).item() for name, band in bands.items()}
    expected = {"high": 0.7659556, "next": 0.1054506, "low": 0.0235649, "all": 0.7696655}
    assert found == pytest.approx(expected, abs=1e-6)


# Bad input

X, THETA = torch.ones(3, 4), torch.ones(2)
BAD = [
    (rope.frequencies, (7, 1e4), "width"),
    (rope.frequencies, (0, 1e4), "width"),
    (rope.frequencies, (8.0, 1e4), "width"),
    (rope.frequencies, (8, 1), "base"),
    (rope.frequencies, (8, math.nan), "base"),
    (rope.frequencies, (8, math.inf), "base"),
    (rope.partial_frequencies, (8, 1e4, 1.5), "fraction"),
    (rope.partial_frequencies, (8, 1e4, math.nan), "fraction"),
    (rope.partial_frequencies, (7, 1e4, 0.5), "width"),
    (rope.scaled_frequencies, ("wavelet", 8, 1e4, 2.0), "method"),
    (rope.scaled_frequencies, ("linear", 8, 1e4, 0.5), "factor"),
    (rope.scaled_frequencies, ("ntk", 2, 1e4, 2.0), "width"),
    (rope.scaled_frequencies, ("yarn", 8, 1e4, 2.0), "length"),
    (rope.scaled_frequencies, ("llama3", 8, 1e4, 2.0, -5), "length"),
    (rope.scaled_frequencies, ("llama3", 8, 1e4, 2.0, 64, (4.0, 1.0)), "turns"),
    (rope.rotate, (X, torch.arange(3), THETA, "spiral"), "layout"),
    (rope.rotate, (X, torch.arange(4), THETA), "positions"),
    (rope.rotate, (X, torch.arange(3), torch.ones(3)), "frequencies"),
    (rope.rotate, (torch.ones(4), torch.arange(3), THETA), "x must"),
    (rope.rotate, (X.long(), torch.arange(3), THETA), "x must"),
    (rope.layout_order, (5,), "width"),
    (rope.cosine_sum, (math.nan, 8, 1e4), "distance"),
    (rope.cosine_sum, (1, 9, 1e4), "width"),
    (rope.decay_bound, (math.inf, 8, 1e4), "distance"),
    (rope.first_negative, (8, 1e4, -1), "limit"),
    (rope.first_negative, (8, 0.5, 10), "base"),
    (rope.smallest_base, (-4, 8, 1, 2), "length"),
    (rope.smallest_base, (4, 7, 1, 2), "width"),
    (rope.smallest_base, (4, 8, 0, 2), "step"),
    (rope.smallest_base, (4, 8, 1, 1), "start"),
    (rope.smallest_base, (10, 2, 1, 2, 50), "no base"),
    (rope.slash_attention, (THETA, 0), "length"),
    (rope.slash_attention, (THETA, 4, 4), "offset"),
    (rope.slash_attention, (THETA, 4, 0, math.nan), "scale"),
    (rope.slash_attention, (torch.ones(0), 4), "frequencies"),
    (rope.slash_scale, (THETA, 4, 1.0), "weight"),
]


@pytest.mark.parametrize(("function", "arguments", "named"), BAD)
def test_bad_input_is_named(function, arguments, named):
    with pytest.raises(ValueError, match=named):
        function(*arguments)
