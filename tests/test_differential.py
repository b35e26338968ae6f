"""Differential attention and other maps from logits to weights, against direct formulas, transformers and entmax."""

import math

import entmax
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch.autograd import gradcheck
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention, DiffLlamaRotaryEmbedding

from helpers import attention, differential

MAPS = {
    "softmax_off_by_one": attention.softmax_off_by_one,
    "softpick": attention.softpick,
    "sparsemax": attention.sparsemax,
    "entmax15": attention.entmax15,
    "scalable_softmax": attention.scalable_softmax,
    "sigmoid_weights": attention.sigmoid_weights,
}
ONE = torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64)


def draw(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


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
    known = {1: 0.2, 2: 0.3555090676, 3: 0.4707130183, 4: 0.5560582042, 6: 0.6661219039, 12: 0.7778700996}
    assert {layer: round(differential.lambda_init(layer), 10) for layer in known} == known
    assert differential.lambda_init(28) == pytest.approx(0.7998178765, abs=1e-10)
    from transformers.models.diffllama.modeling_diffllama import lambda_init_fn

    assert all(differential.lambda_init(i + 1) == lambda_init_fn(i) for i in range(40))


@pytest.mark.parametrize("layer", [0, -1, 1.0, True, None, "1"])
def test_layers_count_from_1(layer):
    with pytest.raises(ValueError, match="layer must be an integer of at least 1"):
        differential.lambda_init(layer)


# the operator


def directly(q1, k1, q2, k2, v, lam, mask=None):
    """Eq. 1 as it is written: both maps in full, their difference, times the values."""
    return differential.weights(q1, k1, q2, k2, lam, mask) @ v


@pytest.mark.parametrize("call", [differential.attend, directly])
def test_the_operator_is_equation_1(call):
    heads = parts()
    found = call(*heads, 0.37)
    for b in range(2):
        for h in range(3):
            torch.testing.assert_close(found[b, h], loops(*(x[b, h] for x in heads), 0.37), rtol=1e-12, atol=1e-12)


@settings(max_examples=60)
@given(
    some.integers(1, 20), some.integers(1, 6), some.integers(1, 9), some.sampled_from([(), (3,), (2, 3), (2, 1, 2)]),
    some.sampled_from(["number", "head", "token"]), some.sampled_from([None, "window", "added"]), some.integers(0, 99),
)  # fmt: skip
def test_the_fast_form_is_the_direct_formula(n, d, e, first, kind, mask, seed):
    heads = [x + 0.1 * seed for x in parts(n, d, e, first)]
    lam = {"number": 0.5, "head": draw(*first, 1), "token": draw(*first, n)}[kind]
    if mask == "window":
        mask = attention.window_mask(n, 2)
    elif mask == "added":
        mask = draw(*first, n, n, seed=9)
    fast, slow = (f(*heads, lam, mask) for f in (differential.attend, directly))
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-9)


def test_in_float32_they_agree_to_a_hundred_thousandth():
    heads = [x.float() for x in parts(512, 32, 64, (1, 2))]
    fast, slow = (f(*heads, 0.7) for f in (differential.attend, directly))
    assert float((fast - slow).abs().max()) < 1e-5


def test_no_map_is_made(monkeypatch):
    """Neither the direct formula nor a kernel that holds the map: the fused kernels must take these shapes."""
    monkeypatch.setattr(differential, "weights", None)
    heads = [x.float() for x in parts(64, 16, 32)]
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.FLASH_ATTENTION]):
        differential.attend(*heads, 0.5)


def test_rows_sum_to_1_minus_lambda_and_may_be_negative():
    q1, k1, q2, k2, _ = parts(30)
    maps = differential.weights(q1, k1, 3 * q2, k2, 0.8)
    torch.testing.assert_close(maps.sum(-1), torch.full((2, 3, 30), 0.2, dtype=torch.float64))
    assert maps.min() < 0
    assert bool((maps.triu(1) == 0).all())
    row = differential.difference(ONE, -ONE, 0.8)
    assert float(row.sum()) == pytest.approx(0.2)
    assert row.min() < 0


def test_lambda_0_is_plain_attention():
    q1, k1, q2, k2, v = parts()
    plain = torch.nn.functional.scaled_dot_product_attention(q1, k1, v, is_causal=True)
    torch.testing.assert_close(differential.attend(q1, k1, q2, k2, v, 0.0), plain, rtol=1e-12, atol=1e-12)


def test_equal_maps_cancel_to_1_minus_lambda():
    q1, k1, _, _, v = parts()
    plain = differential.attend(q1, k1, q1, k1, v, 0.0)
    torch.testing.assert_close(differential.attend(q1, k1, q1, k1, v, 0.75), 0.25 * plain)


def test_gradients_are_right():
    heads = [x.requires_grad_() for x in parts(4, 2, 4, (1, 2))]
    lam = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(differential.attend, (*heads, lam))
    each = draw(1, 2, 4).requires_grad_()
    assert gradcheck(differential.attend, (*heads, each))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k1": draw(2, 3, 7, 5)}, "k1 must be a tensor of shape"),
        ({"q2": draw(2, 3, 6, 4)}, "q2 must be a tensor of shape"),
        ({"v": draw(2, 3, 6, 8)}, "v must be a tensor of shape"),
        ({"v": draw(2, 2, 7, 8)}, "v must have the first dimensions of k1"),
        ({"k2": draw(2, 3, 7, 4).float()}, "k2 must hold torch.float64 as q1 does"),
        ({"k1": draw(2, 3, 8, 4), "k2": draw(2, 3, 8, 4), "v": draw(2, 3, 8, 8)}, "mask must be given"),
        ({"lam": math.nan}, "lam must be a finite number"),
        ({"lam": torch.ones(5)}, "lam must be one number or fit the shape"),
        ({"mask": torch.zeros(7, 7, dtype=torch.bool)}, "mask must let every query see one key at least"),
        ({"mask": torch.ones(6, 7, dtype=torch.bool)}, "mask must fit the shape"),
        ({"mask": torch.full((7, 7), math.nan)}, "mask must hold finite numbers and -inf alone"),
    ],
)
def test_what_does_not_fit_is_named(change, said):
    arguments = dict(zip(("q1", "k1", "q2", "k2", "v"), parts(), strict=True)) | {"lam": 0.5}
    with pytest.raises(ValueError, match=said):
        differential.attend(**arguments | change)


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
        theirs.v_proj.weight.copy_(moved(ours.values.weight))  # a head's two halves are our maps' two places
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


def test_lambda_is_made_of_four_vectors_and_starts_near_its_start():
    torch.manual_seed(0)
    layer = differential.DifferentialAttention(32, 2, 3).double()
    (q1, k1), (q2, k2) = layer.lambdas
    by_hand = torch.exp(q1 @ k1) - torch.exp(q2 @ k2) + differential.lambda_init(3)
    assert layer.lam(torch.zeros(1, 1, 32)).item() == pytest.approx(by_hand.item())
    assert abs(by_hand.item() - differential.lambda_init(3)) < 0.3
    wide = differential.DifferentialAttention(512, 1, 1).lambdas  # 1,024 numbers, of deviation 0.1 as published
    assert wide.std().item() == pytest.approx(0.1, abs=0.01)


def test_a_head_is_normalised_and_scaled_by_1_minus_lambda_init():
    torch.manual_seed(0)
    layer = differential.DifferentialAttention(16, 2, 2).double()
    torch.nn.init.eye_(layer.out.weight)
    heads = layer(draw(1, 5, 16)).view(1, 5, 2, 8)
    size = heads.square().mean(-1).sqrt()
    torch.testing.assert_close(size, torch.full_like(size, 1 - differential.lambda_init(2)), rtol=1e-3, atol=1e-3)


def test_without_the_norm_the_layer_is_the_operator():
    torch.manual_seed(0)
    layer = differential.DifferentialAttention(16, 2, 2, norm=False).double()
    x = draw(1, 5, 16)
    heads = differential.attend(*layer.project(x), layer.lam(x))
    torch.testing.assert_close(layer(x), layer.out(heads.transpose(1, 2).reshape(1, 5, 16)))
    torch.testing.assert_close(layer.attention(x) @ layer.project(x)[-1], heads)


def test_the_gain_multiplies_the_normed_heads_alike():
    """RMSNorm(elementwise_affine=True) of the released code: one gain of the width of a head's values for all heads."""
    plain, gained = (differential.DifferentialAttention(16, 2, 2, gain=gain).double() for gain in (False, True))
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
@settings(max_examples=10)
@given(order=some.permutations(range(3)))
def test_the_order_of_the_heads_does_not_matter(version, order):
    """Heads moved in every projection alike, pairs kept together: the same output. Halves of a pair swapped: another."""
    torch.manual_seed(0)
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


@pytest.mark.parametrize("version", [1, 2])
def test_no_token_sees_a_later_one(version):
    layer = differential.DifferentialAttention(16, 2, 1, version).double()
    x = draw(1, 6, 16)
    changed = x.clone()
    changed[:, 4:] += 1
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])


def test_only_distances_count_with_rope_and_order_not_at_all_without():
    torch.manual_seed(0)
    x = draw(1, 6, 16)
    for base, same in ((1e4, False), (None, True)):
        layer = differential.DifferentialAttention(16, 2, 1, base=base).double()
        swapped = layer(x[:, [1, 0, 2, 3, 4, 5]])[:, 5]
        assert torch.allclose(swapped, layer(x)[:, 5]) == same


def test_the_gradients_of_a_layer_are_right():
    torch.manual_seed(0)
    for version in (1, 2):
        layer = differential.DifferentialAttention(8, 2, 1, version).double()
        assert gradcheck(lambda *_, layer=layer: layer(draw(1, 3, 8)), tuple(layer.parameters()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"width": 15}, r"width must be a multiple of 2 x heads x 2 \(RoPE's pairs\) = 8, not 15"),
        ({"width": 20}, "width must be a multiple"),
        ({"width": 18, "base": None}, "width must be a multiple of 2 x heads = 4, not 18"),
        ({"width": 15, "version": 2, "base": None}, "width must be a multiple of heads = 2, not 15"),
        ({"heads": 0}, "heads must be an integer of at least 1"),
        ({"layer": 0}, "layer must be an integer of at least 1"),
        ({"version": 3}, "version must be an integer from 1 to 2"),
        ({"base": 1.0}, "base must be a finite number above 1"),
        ({"start": 1.5}, "start must be a finite number from 0 to 1"),
        ({"norm": 1}, "norm must be True or False"),
    ],
)
def test_a_layer_that_cannot_be_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        differential.DifferentialAttention(**{"width": 16, "heads": 2, "layer": 1} | change)


def test_a_layer_refuses_an_input_of_another_shape():
    layer = differential.DifferentialAttention(16, 2, 1)
    with pytest.raises(ValueError, match="x must be a tensor of shape"):
        layer(torch.zeros(1, 3, 12))


# other maps


def test_the_maps_by_the_numbers_of_the_closed_forms():
    known = {
        "softmax_off_by_one": [0.5922987857, 0.2178945463, 0.0801589239, 0.0294888201],
        "softpick": [0.7310585786, 0.1966119332, 0, 0],
        "sparsemax": [1, 0, 0, 0],
        "entmax15": [0.8307189139, 0.1692810861, 0, 0],
    }
    for name, row in known.items():
        assert MAPS[name](ONE).tolist() == pytest.approx(row, abs=1e-10), name
    zeros = torch.zeros(4, dtype=torch.float64)
    assert [float(MAPS[name](zeros)[0]) for name in known] == pytest.approx([0.2, 0, 0.25, 0.25])


@given(some.integers(1, 40), some.floats(0.01, 30), some.integers(0, 999))
def test_sparsemax_and_entmax_are_the_entmax_packages(n, scale, seed):
    x = draw(3, n, seed=seed, scale=scale)
    torch.testing.assert_close(attention.sparsemax(x), entmax.sparsemax(x, -1), rtol=0, atol=1e-6)
    torch.testing.assert_close(attention.entmax15(x), entmax.entmax15(x, -1), rtol=0, atol=1e-6)


@given(some.integers(1, 40), some.floats(0.01, 30), some.integers(0, 999))
def test_sparsemax_and_entmax_meet_their_conditions_in_float64(n, scale, seed):
    """One threshold for all that get weight, none of the others above it, and a sum of 1."""
    x = draw(n, seed=seed, scale=scale)
    for weights, excess in (
        (attention.sparsemax(x), lambda w: x - w),
        (attention.entmax15(x), lambda w: x / 2 - w.sqrt()),
    ):
        tau, inside = excess(weights), weights > 0
        assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
        assert float(tau[inside].max() - tau[inside].min()) < 1e-9
        assert float(tau.max()) <= float(tau[inside].max()) + 1e-9


def test_their_gradients_are_the_entmax_packages():
    for ours, theirs in ((attention.sparsemax, entmax.sparsemax), (attention.entmax15, entmax.entmax15)):
        for scale in (0.1, 1.0, 5.0):
            x, weight = draw(5, 12, scale=scale), draw(5, 12, seed=1)
            found = []
            for call in (ours, lambda z, theirs=theirs: theirs(z, -1)):
                z = x.clone().requires_grad_()
                (call(z) * weight).sum().backward()
                found.append(z.grad)
            torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)


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


@given(some.integers(1, 30), some.floats(0, 20), some.integers(0, 99))
def test_what_a_row_may_sum_to(n, scale, seed):
    x = draw(n, seed=seed, scale=scale)
    sums = {name: float(call(x).sum()) for name, call in MAPS.items()}
    for name in ("sparsemax", "entmax15", "scalable_softmax"):
        assert sums[name] == pytest.approx(1), name
    assert 0 <= sums["softmax_off_by_one"] < 1 + 1e-12
    assert 0 <= sums["softpick"] <= 1 + 1e-12
    assert 0 <= sums["sigmoid_weights"] <= n


def test_off_by_one_is_a_softmax_over_one_more_key():
    x = draw(5, 7)
    by_hand = x.exp() / (1 + x.exp().sum(-1, keepdim=True))
    torch.testing.assert_close(attention.softmax_off_by_one(x), by_hand)
    assert float(attention.softmax_off_by_one(torch.full((4,), -20.0)).sum()) < 1e-7


def test_softpick_by_its_formula_and_silent_on_low_logits():
    x = draw(5, 7)
    e = x.exp() - 1
    torch.testing.assert_close(attention.softpick(x), e.clamp(min=0) / e.abs().sum(-1, keepdim=True))
    assert float(attention.softpick(-x.abs()).sum()) == 0


def test_scalable_softmax_keeps_its_weight_in_long_contexts_and_softmax_does_not():
    found = {}
    for n in (100, 10_000):
        x = torch.zeros(n, dtype=torch.float64)
        x[0] = 2
        found[n] = [float(w[0]) for w in (attention.scalable_softmax(x), x.softmax(0))]
    assert found[10_000][0] > found[100][0] > 0.98
    assert found[10_000][1] < 0.001 < found[100][1]


def test_forgetting_in_half_precision_is_a_number():
    bias = attention.forgetting_bias(torch.full((5000,), 6e-8).half())  # the logarithms add up to 83,000, beyond fp16
    assert not bias.isnan().any()
    assert bias.dtype == torch.float16
    assert float(bias[1, 0]) == pytest.approx(-16.64, rel=1e-3)


def test_forgetting_with_equal_gates_is_alibi():
    bias = attention.forgetting_bias(torch.full((5,), math.exp(-0.5), dtype=torch.float64))
    gap = torch.arange(5.0, dtype=torch.float64)[:, None] - torch.arange(5.0, dtype=torch.float64)
    torch.testing.assert_close(bias.tril(), (-0.5 * gap).tril())
    torch.testing.assert_close(bias.softmax(-1), attention.decay(5, 0.5))


def test_a_row_without_keys_is_refused():
    x = torch.tensor([[1.0, 0.0], [-math.inf, -math.inf]])
    for call in MAPS.values():
        with pytest.raises(ValueError, match="logits must leave one key"):
            call(x)
        with pytest.raises(ValueError, match="logits must hold finite numbers"):
            call(torch.tensor([math.nan, 1.0]))


def test_gates_outside_0_and_1_are_refused():
    for value in (0.0, 1.1, -1.0):
        with pytest.raises(ValueError, match="gates must be above 0 and at most 1"):
            attention.forgetting_bias(torch.tensor([0.5, value]))
