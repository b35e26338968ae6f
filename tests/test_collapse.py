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

from course import training
from course.maths import constructions, normalizers
from helpers import collapse, probe


def test_figure_9_tends_to_its_closed_form():
    """n TV -> 2 k (E[e^u] - 1) = 20.68367 for k = 200, u uniform on [0, 0.1]."""
    assert constructions.perturbation_limit() == pytest.approx(
        400 * ((math.exp(0.1) - 1) / 0.1 - 1), rel=1e-12
    )
    mean = constructions.perturbed_total_variation([100_000], seeds=5).mean()
    assert 100_000 * mean == pytest.approx(constructions.perturbation_limit(), rel=0.03)


@pytest.mark.parametrize("k", [1, 3, 9, 99])
def test_a_repeated_token_moves_a_mean_by_an_exact_fraction(k):
    values = torch.cat([torch.ones(1), torch.zeros(k)]).double()
    change, _ = constructions.repeat_last(torch.zeros_like, values)
    assert float(change) == pytest.approx(float(Fraction(1, (k + 1) * (k + 2))), rel=1e-12)


@given(st.floats(0.2, 3), st.integers(2000, 4000))
@settings(max_examples=20)
def test_the_counterexample_tends_to_two_tanh(scale, n):
    change, variation = constructions.rotating_counterexample(n, scale=scale)
    assert change == pytest.approx(2 * math.tanh(scale), abs=20 * math.exp(scale) / n)
    assert variation == pytest.approx(2 * math.tanh(scale), abs=20 * math.exp(scale) / n)


def test_equal_values_never_change_the_output():
    """The control: with equal values the output is that value for every kernel, so nothing can change."""
    change, variation = constructions.rotating_counterexample(1000, values="constant")
    assert change < 1e-12
    assert variation > 1.9


@pytest.mark.parametrize("slope", [2**-8, 0.1, 0.5, 1.0])
def test_alibi_keeps_a_change_of_its_closed_form(slope):
    assert constructions.alibi_change(20_000, slope) == pytest.approx(
        2 * math.exp(-slope) * -math.expm1(-slope), abs=1e-10
    )


def test_one_layer_distance_agrees_with_full_attention():
    """The last row alone gives what torch's attention over all rows gives."""
    n, width = 40, 64
    q, k, v = torch.randn(
        3, n, width, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    longer = [torch.cat([x, x[-1:]]) for x in (q, k, v)]
    attend = torch.nn.functional.scaled_dot_product_attention
    expected = attend(q[None], k[None], v[None], is_causal=True)[0, -1]
    expected = expected - attend(*(x[None] for x in longer), is_causal=True)[0, -1]
    assert constructions.one_layer_distance("NoPE", [n], seed=3)[0] == pytest.approx(
        float(expected.abs().sum()), rel=1e-9
    )


def test_windows_and_encodings_change_what_collapses():
    lengths = [64, 5000]

    def mean(encoding, **options):
        return torch.stack(
            [
                constructions.one_layer_distance(encoding, lengths, seed=s, **options)
                for s in range(8)
            ]
        ).mean(0)

    assert mean("NoPE")[1] < 0.1 * mean("NoPE")[0]
    assert mean("ALiBi")[1] > 0.5 * mean("ALiBi")[0]
    assert mean("APE on q, k, v", residual=True)[1] > 0.5 * mean("APE on q, k, v", residual=True)[0]
    assert mean("NoPE", window=64)[1] > 0.5 * mean("NoPE", window=64)[0]


def test_a_window_of_one_token_keeps_nothing_but_it():
    """The last token alone gives its own value, however often it stands there."""
    distances = constructions.one_layer_distance("NoPE", [2, 9], window=1)
    assert distances.tolist() == [0, 0]
    assert (constructions.one_layer_distance("NoPE", [2, 9], window=2) > 0.1).all()


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
    assert constructions.first_collision(function, kind) == expected[kind]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@settings(max_examples=300)
def test_round_to_agrees_with_torch_and_numpy(x):
    """Where a single cast is exact (from fp32), rounding equals torch's and NumPy's casts."""
    value = torch.tensor(x, dtype=torch.float64)
    assert (
        collapse.round_to(value, "bf16")
        == torch.tensor(x, dtype=torch.float32).to(torch.bfloat16).double()
    )
    with np.errstate(over="ignore"):
        assert float(collapse.round_to(value, "fp16")) == float(np.float16(x))


def test_adaptive_temperature_matches_the_published_polynomial():
    """Values of the polynomial by numpy.polyval; entropy by scipy."""
    for n, lead in (
        (8, 0.3),
        (16, 0.3),
        (64, 0.3),
        (256, 0.3),
        (8, 3.0),
    ):  # the last one's entropy is about 1
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = lead
        entropy = scipy_entropy(scipy_softmax(row.numpy()))
        expected = max(1.0, np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], entropy))
        assert float(normalizers.inverse_temperature(row)) == pytest.approx(expected, rel=1e-12)
    row = torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0]).double()
    assert float(normalizers.adaptive_temperature(row)[0]) == pytest.approx(0.7963787, abs=1e-7)


def test_adaptive_temperature_is_inert_on_sharp_and_on_long_uniform_rows():
    sharp = torch.tensor([9.0, 0.0, 0.0]).double()
    assert torch.equal(normalizers.adaptive_temperature(sharp), sharp.softmax(0))
    assert float(normalizers.inverse_temperature(torch.zeros(381).double())) > 1
    assert float(normalizers.inverse_temperature(torch.zeros(382).double())) == 1


def test_seq_vcr_by_torch_cov():
    x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total = 0.0
    for i in range(3):
        c = torch.cov(x[:, i].T)
        total += (1 - (c.diagonal() + 0.001).sqrt()).clamp(min=0).sum()
        total += 0.004 * (c - c.diagonal().diag()).square().sum()
    assert float(training.seq_vcr_loss(x)) == pytest.approx(float(total) / 12, rel=1e-12)


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
            ids = torch.tensor(
                [[1] + smollm2.tokenizer("1" * k, add_special_tokens=False)["input_ids"]]
            )
            with torch.inference_mode():
                states.append(
                    smollm2.model.base_model(ids.to(smollm2.model.device)).last_hidden_state[0, -1]
                )
        assert float(distance) == pytest.approx(
            float((states[0] - states[1]).abs().sum()), rel=0.01
        )
    assert found[1] < 0.3 * found[0]


@pytest.mark.parametrize("pattern", collapse._PATTERNS)
def test_copying_margins_read_the_sequences_they_say(pattern):
    """Against one forward pass a sequence."""
    model = tiny("llama", seed=3)
    found = collapse.copying_margins(model, [2, 7], pattern=pattern, prompt="type 2")
    filler = (collapse._PATTERNS[pattern] * 7)[:6]
    for (place, asked), pair in found.items():
        head, tail = collapse.copying_prompt(model, "type 2", asked, hint=False)
        for digit, margins in zip("01", pair, strict=True):
            for n, margin in zip((2, 7), margins, strict=True):
                sequence = (
                    digit + filler[: n - 1] if place == "first" else filler[::-1][: n - 1] + digit
                )
                text = head + sequence + tail
                logits = model.model(probe.encode(model, text)[None]).logits[0, -1]
                expected = probe._margin(model, logits, "0", "1")
                assert float(margin) == pytest.approx(float(expected), abs=1e-4)


def test_copying_asks_what_it_says(smollm2):
    head, tail = collapse.copying_prompt(smollm2, "type 1", "last", hint=True)
    assert "What is the last digit" in head
    assert "Hint" in head
    assert tail.endswith("The answer to your question is: ")
