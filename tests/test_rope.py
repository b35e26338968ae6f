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

from course.maths import rope_scaling
from helpers import rope

WIDTHS = some.integers(1, 16).map(lambda pairs: 2 * pairs)
BASES = some.floats(1.5, 1e7)


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
    found = rope.rotate(
        x.transpose(1, 2), torch.arange(12), rope.frequencies(16, 1e4), "interleaved"
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@given(WIDTHS, BASES, some.integers(0, 3000))
def test_the_permutation_turns_one_layout_into_the_other(width, base, position):
    x, theta, order = (
        vectors(width),
        rope.frequencies(width, base),
        torch.arange(width).view(-1, 2).T.flatten(),
    )
    half = rope.rotate(x[:, order], at(position), theta, "half")
    torch.testing.assert_close(half, rope.rotate(x, at(position), theta, "interleaved")[:, order])


def test_angles_are_exact_far_away_also_in_half_precision():
    """Angles made in bf16 would be off by hundreds of turns at position 100 000."""
    x = torch.zeros(1, 2, dtype=torch.bfloat16)
    x[0, 0] = 1
    found = rope.rotate(x, at(100_000), rope.frequencies(2, 1e4), "half")
    assert found[0, 0].item() == pytest.approx(math.cos(100_000), abs=4e-3)


# Frequencies


def config(kind, base, factor, length, **more):
    parameters = {
        "rope_type": kind,
        "rope_theta": base,
        "factor": factor,
        "original_max_position_embeddings": length,
    }
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
    found = rope_scaling.scaled_frequencies(method, 128, base, factor, length)
    torch.testing.assert_close(found.float(), expected.float(), rtol=2e-5, atol=1e-12)


def test_ntk_is_transformers_dynamic_form():
    """Dynamic NTK at s times the trained length with factor 1 is NTK-aware scaling by s."""
    plain = config("dynamic", 1e4, 1.0, 4096)
    for factor in (2, 16):
        expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](plain, "cpu", seq_len=factor * 4096)
        found = rope_scaling.scaled_frequencies("ntk", 128, 1e4, factor)
        torch.testing.assert_close(found.float(), expected.float(), rtol=2e-5, atol=1e-12)


def test_yarn_as_printed_mixes_by_turns_and_not_by_the_number_of_the_pair():
    paper, theta = (
        rope_scaling.scaled_frequencies("yarn-paper", 128, 1e4, 8, 4096),
        rope.frequencies(128, 1e4),
    )
    assert paper.sum().item() == pytest.approx(7.307067018)
    kept, divided = paper == theta, (paper - theta / 8).abs() < 1e-15
    assert (int(kept.sum()), int((~kept & ~divided).sum()), int(divided.sum())) == (21, 25, 18)


def test_the_turning_pairs_are_the_fastest_and_their_number_is_rounded_down():
    theta, found = rope.frequencies(256, 1e4), rope.frequencies(256, 1e4, 0.75)
    assert torch.equal(found, theta * (torch.arange(128) < 96))
    assert [int(rope.frequencies(200, 1e4, p / 100).count_nonzero()) for p in range(101)] == list(
        range(101)
    )


# Sums of cosines


def test_cosine_sum_by_the_definition_with_fifty_digits():
    with mpmath.workdps(50):
        for m in (1, 100, 4096, 10_000):
            exact = sum(
                mpmath.cos(m * mpmath.mpf(10_000) ** (mpmath.mpf(-2 * i) / 128)) for i in range(64)
            )
            assert rope.cosine_sum(m, 128, 1e4).item() == pytest.approx(float(exact), rel=1e-11)


def test_decay_bound_is_the_published_mean_and_is_not_monotone():
    distance = at(0, 1, 16, 64, 128, 256, 1000, 4096, 1e5)
    expected = [
        32.5,
        31.5381661,
        15.7749515,
        10.0899415,
        9.2729027,
        6.5430973,
        4.4707610,
        4.8827922,
        6.8879816,
    ]
    assert rope_scaling.decay_bound(distance, 128, 1e4).tolist() == pytest.approx(
        expected, abs=1e-6
    )
    assert (rope_scaling.decay_bound(torch.arange(3000), 128, 1e4).diff() > 0).any()


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
    base = next(
        b
        for b in range(4200, 4400)
        if 0 < rope.cosine_sum(torch.arange(1024), 128, b).abs().min() < 1e-3
    )
    expected = (rope.cosine_sum(torch.arange(1024), 128, base) < 0).nonzero().flatten()
    assert rope.first_negative(128, base, 1024) == (int(expected[0]) if len(expected) else None)
    assert asked


@pytest.mark.parametrize(
    ("width", "length", "step"), [(16, 200, 0.5), (32, 300, 1), (64, 512, 3), (128, 256, 0.25)]
)
def test_smallest_base_is_equal_to_the_direct_search_at_every_base(width, length, step):
    m, base = torch.arange(length), 1.5
    while (rope.cosine_sum(m, width, base) < 0).any():
        base += step
    assert rope.smallest_base(length, width, step, 1.5) == pytest.approx(base)


# Heads


@given(some.integers(2, 60), some.integers(0, 59), some.floats(0.2, 0.999))
def test_the_scale_reaches_its_weight_and_no_smaller_one_does(n, offset, weight):
    offset = min(offset, n - 1)
    theta = rope.frequencies(32, 100)
    scale = rope_scaling.slash_scale(theta, n, weight, offset)
    weights = rope_scaling.slash_attention(theta, n, offset, scale)
    assert weights.diagonal(-offset).min().item() >= weight - 1e-9
    if scale > 1e-9:
        assert (
            rope_scaling.slash_attention(theta, n, offset, 0.99 * scale)
            .diagonal(-offset)
            .min()
            .item()
            < weight
        )


def test_slash_attention_is_rotated_dot_products():
    theta = rope.frequencies(8, 100)
    q = torch.tensor([[1.0] * 4 + [0.0] * 4], dtype=torch.float64).expand(12, -1)
    positions = torch.arange(12).double()
    keys = rope.rotate(q, positions + 2, theta, "half")
    logits = 3 * rope.rotate(q, positions, theta, "half") @ keys.T
    expected = logits.masked_fill(torch.ones(12, 12).triu(1).bool(), -math.inf).softmax(-1)
    torch.testing.assert_close(rope_scaling.slash_attention(theta, 12, 2, 3.0), expected)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rope_scaling.scaled_frequencies("ntk", 2, 1e4, 2.0), "width"),
        (lambda: rope_scaling.scaled_frequencies("yarn", 8, 1e4, 2.0), "length"),
        (lambda: rope_scaling.slash_attention(torch.ones(2), 4, 4), "offset"),
        (lambda: rope.smallest_base(10, 2, 1, 2, 50), "no base"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
