"""Differential attention and other maps from logits to weights, against direct formulas, transformers and entmax."""

import math

import entmax
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch.autograd import gradcheck
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import (
    DiffLlamaAttention,
    DiffLlamaRotaryEmbedding,
    lambda_init_fn,
)

from course.maths import normalizers
from helpers import differential

MAPS = {
    "softmax_off_by_one": normalizers.softmax_off_by_one,
    "softpick": normalizers.softpick,
    "sparsemax": normalizers.sparsemax,
    "entmax15": normalizers.entmax15,
    "scalable_softmax": normalizers.scalable_softmax,
    "sigmoid_weights": normalizers.sigmoid_weights,
}


def draw(*shape, seed=0, scale=1.0):
    return scale * torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def parts(n=7, d=4, e=8, first=(2, 3)):
    """q1, k1, q2, k2, v"""
    return [draw(*first, n, width, seed=i) for i, width in enumerate((d, d, d, d, e))]


def loops(q1, k1, q2, k2, v, lam):
    """Eq. 1 for one head, number by number."""
    out = torch.zeros(len(q1), v.shape[1], dtype=torch.float64)
    for i in range(len(q1)):
        rows = []
        for q, k in ((q1, k1), (q2, k2)):
            e = [math.exp(float(q[i] @ k[j]) / math.sqrt(q.shape[1])) for j in range(i + 1)]
            rows.append([x / sum(e) for x in e])
        for j in range(i + 1):
            out[i] += (rows[0][j] - lam * rows[1][j]) * v[j]
    return out


# lambda


def test_lambda_starts_at_the_papers_values_counted_from_layer_1():
    """Section 2.1 of Ye et al. (2025); the released code writes 0.8 - 0.6 exp(-0.3 depth) with depth from 0."""
    assert all(differential.lambda_init(i + 1) == lambda_init_fn(i) for i in range(40))


# the operator


def directly(q1, k1, q2, k2, v, lam):
    """Eq. 1 as it is written: both maps in full, their difference, times the values."""
    hidden = torch.ones(q1.shape[-2], k1.shape[-2], dtype=torch.bool).triu(1)
    logits = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) for q, k in ((q1, k1), (q2, k2)))
    first, second = (each.masked_fill(hidden, -math.inf).softmax(-1) for each in logits)
    return (first - lam[..., None] * second) @ v


@pytest.mark.parametrize("call", [differential._attend, directly])
def test_the_operator_is_equation_1(call):
    heads = parts()
    found = call(*heads, torch.tensor(0.37, dtype=torch.float64))
    for b in range(2):
        for h in range(3):
            torch.testing.assert_close(
                found[b, h], loops(*(x[b, h] for x in heads), 0.37), rtol=1e-12, atol=1e-12
            )


@settings(max_examples=60)
@given(
    some.integers(1, 20), some.integers(1, 6), some.integers(1, 9), some.sampled_from([(1, 1), (2, 3)]),
    some.sampled_from(["number", "head", "token"]), some.integers(0, 99),
)  # fmt: skip
def test_the_fast_form_is_the_direct_formula(n, d, e, first, kind, seed):
    heads = [x + 0.1 * seed for x in parts(n, d, e, first)]
    lam = {"number": torch.tensor(0.5), "head": draw(*first, 1), "token": draw(*first, n)}[kind]
    fast, slow = (f(*heads, lam) for f in (differential._attend, directly))
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-9)


def test_no_map_is_made():
    """No kernel that holds the map: the fused kernels must take these shapes."""
    heads = [x.float() for x in parts(64, 16, 32)]
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.FLASH_ATTENTION]):
        differential._attend(*heads, torch.tensor(0.5))


def test_gradients_are_right():
    heads = [x.requires_grad_() for x in parts(4, 2, 4, (1, 2))]
    lam = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(differential._attend, (*heads, lam))
    each = draw(1, 2, 4).requires_grad_()
    assert gradcheck(differential._attend, (*heads, each))


# the layer


def diff_llama(ours, layer, width, heads, n, x):
    """transformers' layer with our weights: there the heads of the first map come first, and a value's two halves apart."""
    config = DiffLlamaConfig(
        hidden_size=width, num_attention_heads=2 * heads, num_key_value_heads=2 * heads, head_dim=width // (2 * heads),
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1e4}, attn_implementation="eager",
    )  # fmt: skip
    theirs = DiffLlamaAttention(config, layer_idx=layer - 1).double()
    order = torch.cat([torch.arange(0, 2 * heads, 2), torch.arange(1, 2 * heads, 2)])

    def moved(weight):
        return weight.view(2 * heads, -1, width)[order].reshape(width, width)

    with torch.no_grad():
        theirs.q_proj.weight.copy_(moved(ours.queries.weight))
        theirs.k_proj.weight.copy_(moved(ours.keys.weight))
        theirs.v_proj.weight.copy_(
            moved(ours.values.weight)
        )  # a head's two halves are our maps' two places
        theirs.o_proj.weight.copy_(ours.out.weight)
        for name, vector in zip(("q1", "k1", "q2", "k2"), ours.lambdas.flatten(0, 1), strict=True):
            getattr(theirs, f"lambda_{name}").copy_(vector)
    places = DiffLlamaRotaryEmbedding(config).double()(x, torch.arange(n)[None])
    bias = torch.full((n, n), -math.inf, dtype=torch.float64).triu(1)[None, None]
    return theirs(x, places, bias)[0]


@pytest.mark.parametrize("layer", [1, 2, 9])
def test_version_1_is_transformers_layer_with_the_same_weights(layer):
    torch.manual_seed(layer)
    ours = differential.DifferentialAttention(24, 3, layer).double()
    with torch.no_grad():
        ours.lambdas.mul_(5)  # so that a wrong lambda would show
    x = draw(2, 11, 24, seed=layer)
    # turned angles are float32 there
    torch.testing.assert_close(ours(x), diff_llama(ours, layer, 24, 3, 11, x), rtol=1e-5, atol=1e-6)


def test_the_vectors_that_lambda_is_made_of_start_as_published():
    torch.manual_seed(0)
    wide = differential.DifferentialAttention(
        512, 1, 1
    ).lambdas  # 1,024 numbers, of deviation 0.1 as published
    assert wide.std().item() == pytest.approx(0.1, abs=0.01)


def test_without_the_norm_the_layer_is_the_operator():
    torch.manual_seed(0)
    layer = differential.DifferentialAttention(16, 2, 2, norm=False).double()
    x = draw(1, 5, 16)
    heads = differential._attend(*layer.project(x), layer.lam(x))
    torch.testing.assert_close(layer(x), layer.out(heads.transpose(1, 2).reshape(1, 5, 16)))
    torch.testing.assert_close(layer.attention(x) @ layer.project(x)[-1], heads)


def test_the_gain_multiplies_the_normed_heads_alike():
    """RMSNorm(elementwise_affine=True) of the released code: one gain of the width of a head's values for all heads."""
    plain, gained = (
        differential.DifferentialAttention(16, 2, 2, gain=gain).double() for gain in (False, True)
    )
    assert (plain.gain, gained.gain.shape) == (None, (8,))
    gained.load_state_dict(plain.state_dict(), strict=False)
    x = draw(2, 5, 16)
    torch.testing.assert_close(gained(x), plain(x))
    factors = draw(8, seed=1)
    gained.gain.data = factors
    plain.out.weight.data = plain.out.weight.data * factors.repeat(2)  # the same, put into W_O
    torch.testing.assert_close(gained(x), plain(x))
    assert differential.DifferentialAttention(16, 2, 2, norm=False, gain=True).gain is None


def test_version_2_has_a_lambda_for_each_token_and_head_and_shared_keys():
    torch.manual_seed(0)
    layer = differential.DifferentialAttention(16, 2, 1, version=2).double()
    x = draw(3, 5, 16)
    q1, k1, q2, k2, v = layer.project(x)
    lam = torch.sigmoid(x @ layer.gate.weight.T).transpose(1, 2)
    assert torch.equal(k1, k2)
    assert not torch.equal(q1, q2)
    assert lam.shape == (3, 2, 5)
    torch.testing.assert_close(layer.attention(x).sum(-1), 1 - lam)
    heads = directly(q1, k1, q2, k2, v, lam)
    torch.testing.assert_close(layer(x), layer.out(heads.transpose(1, 2).reshape(3, 5, 16)))
    count = sum(p.numel() for p in layer.parameters())
    assert count == 5 * 16 * 16 + 2 * 16


@pytest.mark.parametrize("version", [1, 2])
def test_the_order_of_the_heads_does_not_matter(version):
    """Heads moved in every projection alike, pairs kept together: the same output. Halves of a pair swapped: another."""
    torch.manual_seed(0)
    order = [2, 0, 1]
    layer = differential.DifferentialAttention(24, 3, 2, version).double()
    x = draw(2, 6, 24)
    before = layer(x)
    with torch.no_grad():
        for linear in (layer.queries, layer.keys, layer.values):
            rows = linear.weight.view(3, -1, 24)
            linear.weight.copy_(rows[order].reshape_as(linear.weight))
        layer.out.weight.copy_(layer.out.weight.view(24, 3, -1)[:, order].reshape(24, 24))
        if version == 2:
            layer.gate.weight.copy_(layer.gate.weight[order])
    torch.testing.assert_close(layer(x), before)
    with torch.no_grad():
        pairs = layer.queries.weight.view(3, 2, -1, 24)
        layer.queries.weight.copy_(pairs.flip(1).reshape_as(layer.queries.weight))
    assert float((layer(x) - before).abs().max().detach()) > 1e-3


def test_sizes_that_do_not_go_together_are_named():
    with pytest.raises(ValueError, match="width must be a multiple of 2 x heads = 4, not 18"):
        differential.DifferentialAttention(18, 2, 1, base=None)
    with pytest.raises(ValueError, match="width must be a multiple of heads = 2, not 15"):
        differential.DifferentialAttention(15, 2, 1, version=2, base=None)
    with pytest.raises(ValueError, match="x must be a tensor of shape"):
        differential.DifferentialAttention(16, 2, 1)(torch.zeros(1, 3, 12))


# other maps


@given(some.integers(1, 40), some.floats(0.01, 30), some.integers(0, 999))
def test_sparsemax_and_entmax_are_the_entmax_packages(n, scale, seed):
    x = draw(3, n, seed=seed, scale=scale)
    torch.testing.assert_close(normalizers.sparsemax(x), entmax.sparsemax(x, -1), rtol=0, atol=1e-6)
    torch.testing.assert_close(normalizers.entmax15(x), entmax.entmax15(x, -1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MAPS)
def test_every_map_has_right_gradients(name):
    assert gradcheck(MAPS[name], draw(3, 5, scale=1.5).requires_grad_())


@pytest.mark.parametrize("name", MAPS)
def test_hidden_keys_are_as_if_they_were_not_there(name):
    """-inf at any place, in numbers and in gradients; large logits too."""
    for scale in (1.0, 300.0):
        x = draw(4, 6, scale=scale)
        weight = draw(4, 6, seed=1)
        alone = x.clone().requires_grad_()
        wide = torch.full((4, 9), -math.inf, dtype=torch.float64)
        places = [0, 2, 3, 5, 6, 8]
        wide[:, places] = x
        wide.requires_grad_()
        short, long = MAPS[name](alone), MAPS[name](wide)
        torch.testing.assert_close(long[:, places], short)
        assert long[:, [1, 4, 7]].abs().sum().item() == 0
        (short * weight).sum().backward()
        (long[:, places] * weight).sum().backward()
        torch.testing.assert_close(wide.grad[:, places], alone.grad)
        assert wide.grad[:, [1, 4, 7]].abs().sum().item() == 0


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_map_is_finite_in_every_type(name, dtype):
    for scale in (1e-4, 1.0, 1e3):
        x = draw(3, 300, scale=scale).to(dtype).requires_grad_()
        y = MAPS[name](x)
        y.float().square().sum().backward()
        assert y.dtype == dtype
        assert bool(torch.isfinite(y).all())
        assert bool(torch.isfinite(x.grad).all())


def test_maps_by_their_formulas():
    x = draw(5, 7)
    e = x.exp()
    torch.testing.assert_close(normalizers.softmax_off_by_one(x), e / (1 + e.sum(-1, keepdim=True)))
    less = e - 1
    torch.testing.assert_close(
        normalizers.softpick(x), less.clamp(min=0) / less.abs().sum(-1, keepdim=True)
    )
    torch.testing.assert_close(
        normalizers.scalable_softmax(x, 0.4), (0.4 * math.log(7) * x).softmax(-1)
    )
    torch.testing.assert_close(normalizers.sigmoid_weights(x), 1 / (1 + 7 / e))


def test_forgetting_in_half_precision_is_a_number():
    bias = normalizers.forgetting_bias(
        torch.full((5000,), 6e-8).half()
    )  # the logarithms add up to 83,000, beyond fp16
    assert not bias.isnan().any()
    assert bias.dtype == torch.float16
    assert float(bias[1, 0]) == pytest.approx(-16.64, rel=1e-3)


def test_forgetting_with_equal_gates_is_alibi():
    bias = normalizers.forgetting_bias(torch.full((5,), math.exp(-0.5), dtype=torch.float64))
    gap = torch.arange(5.0, dtype=torch.float64)[:, None] - torch.arange(5.0, dtype=torch.float64)
    torch.testing.assert_close(bias.tril(), (-0.5 * gap).tril())
    assert torch.isneginf(bias.triu(1)[torch.ones(5, 5).triu(1) > 0]).all()
