"""Chapter 3's numerics against closed forms, exact fractions and independent implementations."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy as scipy_entropy
from tiny_models import tiny

from helpers import collapse, probe


def test_total_variation_has_no_factor_one_half():
    assert collapse.total_variation(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])) == 2


@given(st.integers(1, 30), st.integers(0, 1000))
@settings(max_examples=50)
def test_total_variation_is_a_metric(n, seed):
    p, q, r = torch.randn(3, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)
    tv = collapse.total_variation
    assert tv(p, p) == 0
    assert tv(p, q) == tv(q, p)
    assert tv(p, r) <= tv(p, q) + tv(q, r) + 1e-12
    assert 0 <= tv(p, q) <= 2 + 1e-12


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (torch.ones(2) / 2, torch.ones(3) / 3),
        (torch.tensor([1.5, -0.5]), torch.tensor([0.5, 0.5])),
        (torch.tensor([math.nan, 1.0]), torch.tensor([0.5, 0.5])),
        (torch.tensor([2.0, 3.0]), torch.tensor([0.5, 0.5])),
        (torch.tensor(1.0), torch.tensor(1.0)),
    ],
)
def test_total_variation_refuses_what_is_no_distribution(p, q):
    with pytest.raises(ValueError, match=r"same shape|probabilities|finite numbers|of shape"):
        collapse.total_variation(p, q)


def test_figure_9_tends_to_its_closed_form():
    """n TV -> 2 k (E[e^u] - 1) = 20.68367 for k = 200, u uniform on [0, 0.1]."""
    assert collapse.perturbation_limit() == pytest.approx(400 * ((math.exp(0.1) - 1) / 0.1 - 1), rel=1e-12)
    mean = collapse.perturbed_total_variation([100_000], seeds=5).mean()
    assert 100_000 * mean == pytest.approx(collapse.perturbation_limit(), rel=0.03)


@pytest.mark.parametrize("k", [1, 3, 9, 99])
def test_a_repeated_token_moves_a_mean_by_an_exact_fraction(k):
    values = torch.cat([torch.ones(1), torch.zeros(k)]).double()
    change, _ = collapse.repeat_last(torch.zeros_like, values)
    assert float(change) == pytest.approx(float(Fraction(1, (k + 1) * (k + 2))), rel=1e-12)


@given(st.floats(0.2, 3), st.integers(2000, 4000))
@settings(max_examples=20)
def test_the_counterexample_tends_to_two_tanh(scale, n):
    change, variation = collapse.rotating_counterexample(n, scale=scale)
    assert change == pytest.approx(2 * math.tanh(scale), abs=20 * math.exp(scale) / n)
    assert variation == pytest.approx(2 * math.tanh(scale), abs=20 * math.exp(scale) / n)


def test_rope_fastest_frequency_keeps_the_attention_apart_but_coins_collapse():
    change, variation = collapse.rotating_counterexample(10_000, frequency=1.0, values="random")
    assert variation == pytest.approx(0.9322, abs=1e-3)
    assert change < 0.02
    aligned = [collapse.rotating_counterexample(n, frequency=1.0)[0] for n in range(9000, 9100)]
    assert np.mean(aligned) == pytest.approx(0.524, abs=0.01)


def test_equal_values_never_change_the_output():
    """The control: with equal values the output is that value for every kernel, so nothing can change."""
    change, variation = collapse.rotating_counterexample(1000, values="constant")
    assert change < 1e-12
    assert variation > 1.9


@pytest.mark.parametrize("slope", [2**-8, 0.1, 0.5, 1.0])
def test_alibi_keeps_a_change_of_its_closed_form(slope):
    assert collapse.alibi_change(20_000, slope) == pytest.approx(2 * math.exp(-slope) * -math.expm1(-slope), abs=1e-10)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_proposition_b4_holds_at_every_even_length(n):
    assert collapse.alternating_total_variation(n) == pytest.approx(0.9242343145200196, abs=1e-12)


def test_one_layer_distance_agrees_with_full_attention():
    """The last row alone gives what torch's attention over all rows gives."""
    n, width = 40, 64
    q, k, v = torch.randn(3, n, width, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    longer = [torch.cat([x, x[-1:]]) for x in (q, k, v)]
    attend = torch.nn.functional.scaled_dot_product_attention
    expected = attend(q[None], k[None], v[None], is_causal=True)[0, -1]
    expected = expected - attend(*(x[None] for x in longer), is_causal=True)[0, -1]
    assert collapse.one_layer_distance("NoPE", [n], seed=3)[0] == pytest.approx(float(expected.abs().sum()), rel=1e-9)


def test_windows_and_encodings_change_what_collapses():
    lengths = [64, 5000]

    def mean(encoding, **options):
        return torch.stack([collapse.one_layer_distance(encoding, lengths, seed=s, **options) for s in range(8)]).mean(
            0
        )

    assert mean("NoPE")[1] < 0.1 * mean("NoPE")[0]
    assert mean("ALiBi")[1] > 0.5 * mean("ALiBi")[0]
    assert mean("APE on q, k, v", residual=True)[1] > 0.5 * mean("APE on q, k, v", residual=True)[0]
    assert mean("NoPE", window=64)[1] > 0.5 * mean("NoPE", window=64)[0]


# exact spacing of the types: bf16 8, fp16 11, fp32 24 bits of precision
COLLISIONS = {
    "n": (lambda n: n, {"bf16": 256, "fp16": 2048, "fp32": 16_777_216}),
    "1/n": (lambda n: 1 / n, {"bf16": 190, "fp16": 1464, "fp32": 11_864_338}),
    "1 + 1/n": (lambda n: 1 + 1 / n, {"bf16": 14, "fp16": 36, "fp32": 2947}),
    "n/(n + 1)": (lambda n: n / (n + 1), {"bf16": 18, "fp16": 51, "fp32": 4140}),
}


@pytest.mark.parametrize("name", COLLISIONS)
@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
def test_first_collision(name, kind):
    function, expected = COLLISIONS[name]
    assert collapse.first_collision(function, kind) == expected[kind]


def test_first_collision_accepts_torch_types_and_refuses_the_rest():
    assert collapse.first_collision(lambda n: n, torch.bfloat16) == 256
    with pytest.raises(ValueError, match="dtype"):
        collapse.first_collision(lambda n: n, "int8")
    with pytest.raises(ValueError, match="every n up to limit = 100"):
        collapse.first_collision(lambda n: n, "bf16", limit=100)
    with pytest.raises(ValueError, match="same shape"):
        collapse.first_collision(lambda n: 1.0, "bf16")


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@settings(max_examples=300)
def test_round_to_agrees_with_torch_and_numpy(x):
    """Where a single cast is exact (from fp32), rounding equals torch's and NumPy's casts."""
    value = torch.tensor(x, dtype=torch.float64)
    assert collapse.round_to(value, "bf16") == torch.tensor(x, dtype=torch.float32).to(torch.bfloat16).double()
    with np.errstate(over="ignore"):
        assert float(collapse.round_to(value, "fp16")) == float(np.float16(x))


def test_adaptive_temperature_matches_the_published_polynomial():
    """Values of the polynomial by numpy.polyval; entropy by scipy."""
    for n in (8, 16, 64, 256):
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = 0.3
        entropy = scipy_entropy(scipy_softmax(row.numpy()))
        expected = max(1.0, np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], entropy))
        assert float(collapse.inverse_temperature(row)) == pytest.approx(expected, rel=1e-12)
    row = torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0]).double()
    assert float(collapse.adaptive_temperature(row)[0]) == pytest.approx(0.7963787, abs=1e-7)


def test_adaptive_temperature_is_inert_on_sharp_and_on_long_uniform_rows():
    sharp = torch.tensor([9.0, 0.0, 0.0]).double()
    assert torch.equal(collapse.adaptive_temperature(sharp), sharp.softmax(0))
    assert float(collapse.inverse_temperature(torch.zeros(381).double())) > 1
    assert float(collapse.inverse_temperature(torch.zeros(382).double())) == 1
    with pytest.raises(ValueError, match="finite"):
        collapse.adaptive_temperature(torch.tensor([1.0, -math.inf]))


def test_seq_vcr_by_torch_cov():
    x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total = 0.0
    for i in range(3):
        c = torch.cov(x[:, i].T)
        total += (1 - (c.diagonal() + 0.001).sqrt()).clamp(min=0).sum()
        total += 0.004 * (c - c.diagonal().diag()).square().sum()
    assert float(collapse.seq_vcr_loss(x)) == pytest.approx(float(total) / 12, rel=1e-12)


def test_seq_vcr_is_large_on_collapsed_batches_and_trains_away():
    healthy = torch.randn(256, 4, 16, generator=torch.Generator().manual_seed(0))
    assert collapse.seq_vcr_loss(0.001 * healthy) > 10 * collapse.seq_vcr_loss(healthy)
    x = (0.01 * healthy).requires_grad_()
    before = collapse.seq_vcr_loss(x)
    (gradient,) = torch.autograd.grad(before, x)
    assert collapse.seq_vcr_loss(x - 100 * gradient) < before
    with pytest.raises(ValueError, match="batch >= 2"):
        collapse.seq_vcr_loss(healthy[:1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: collapse.rotating_counterexample(0), "n must be"),
        (lambda: collapse.rotating_values("sine", 5, 1.0), "kind must be"),
        (lambda: collapse.one_layer_distance("rope", [5]), "encoding must be"),
        (lambda: collapse.one_layer_distance("RoPE", [0]), "lengths must hold"),
        (lambda: collapse.one_layer_distance("RoPE", [5], window=0), "window must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The real model ------------------------------------------------------------------------------------------


def test_equal_tokens_with_nothing_before_them_are_zero_by_construction(smollm2):
    control = collapse.last_token_distance(smollm2, [1, 8, 64], head="")
    signal = collapse.last_token_distance(smollm2, [1, 8, 64])
    assert control.max() < 0.05
    assert signal.min() > 100 * control.max()


def test_ones_collapse_in_the_real_model(smollm2):
    """Within 1% of the distances found with plain forward passes of each sequence."""
    found = collapse.last_token_distance(smollm2, [8, 128])
    for n, distance in zip((8, 128), found, strict=True):
        states = []
        for k in (n, n + 1):
            ids = torch.tensor([[1] + smollm2.tokenizer("1" * k, add_special_tokens=False)["input_ids"]])
            with torch.inference_mode():
                states.append(smollm2.model.base_model(ids.to(smollm2.model.device)).last_hidden_state[0, -1])
        assert float(distance) == pytest.approx(float((states[0] - states[1]).abs().sum()), rel=0.01)
    assert found[1] < 0.3 * found[0]


def test_the_first_digit_moves_the_answer_whatever_is_asked(smollm2):
    """What a small model does with the first digit is no copying: the swapped question moves by about as much."""
    margins = collapse.copying_margins(smollm2, [20])
    effects = {places: float(zero - one) for places, (zero, one) in margins.items()}
    assert effects["first", "first"] > effects["last", "last"]
    assert effects["first", "last"] > 5 * effects["last", "last"]


@pytest.mark.parametrize("pattern", collapse.PATTERNS)
def test_copying_margins_read_the_sequences_they_say(pattern):
    """Against one forward pass a sequence."""
    model = tiny("llama", seed=3)
    found = collapse.copying_margins(model, [2, 7], pattern=pattern, prompt="type 2")
    filler = (collapse.PATTERNS[pattern] * 7)[:6]
    for (place, asked), pair in found.items():
        head, tail = collapse.copying_prompt(model, "type 2", asked, hint=False)
        for digit, margins in zip("01", pair, strict=True):
            for n, margin in zip((2, 7), margins, strict=True):
                sequence = digit + filler[: n - 1] if place == "first" else filler[::-1][: n - 1] + digit
                text = head + sequence + tail
                logits = model.model(probe.encode(model, text)[None]).logits[0, -1]
                expected = probe.margin(model, logits, "0", "1")
                assert float(margin) == pytest.approx(float(expected), abs=1e-4)


def test_copying_asks_what_it_says(smollm2):
    head, tail = collapse.copying_prompt(smollm2, "type 1", "last", hint=True)
    assert "What is the last digit" in head
    assert "Hint" in head
    assert tail.endswith("The answer to your question is: ")
    for call, message in (
        (lambda: collapse.copying_prompt(smollm2, "x", "last", False), "prompt must be"),
        (lambda: collapse.copying_prompt(smollm2, "type 1", "middle", False), "place must be"),
        (lambda: collapse.copying_margins(smollm2, [1]), "at least 2"),
        (lambda: collapse.copying_margins(smollm2, [5], pattern="x"), "pattern must be"),
        (lambda: collapse.last_token_distance(smollm2, []), "lengths must hold"),
        (lambda: collapse.last_token_distance(smollm2, [3], sequence=""), "sequence must not"),
        (lambda: collapse.last_token_distance(smollm2, [3], period=4), "period"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
