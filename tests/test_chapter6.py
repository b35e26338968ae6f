"""Chapter 6: what cancels, what only looks so, gradients at the start, and verdicts that can change."""

import math

import pytest
import torch

from course.chapter6 import measures
from helpers import data

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


def test_independent_noise_gains_nothing_and_correlated_noise_does():
    """science: a differential amplifier needs the same hum on both wires."""
    shares = {
        (correlation, lam): measures.parts(6, correlation, 1024, lam)["share"]
        for correlation in (0.0, 0.9, 1.0)
        for lam in (0.0, 0.8)
    }
    assert shares[0.0, 0.8] < shares[0.0, 0.0]
    assert shares[0.9, 0.8] > 1.5 * shares[0.9, 0.0]
    assert shares[1.0, 0.8] > 3 * shares[1.0, 0.0]


def test_the_toy_has_the_correlation_that_was_asked_for():
    for correlation in (-0.5, 0.0, 0.7, 1.0):
        first, second = measures.noisy_logits(6, correlation, 4000, draws=5)
        found = torch.corrcoef(torch.stack([first[:, 1:].flatten(), second[:, 1:].flatten()]))[0, 1]
        assert float(found) == pytest.approx(correlation, abs=0.02)
        assert bool((first[:, 0] == 6).all())


def test_a_uniform_second_map_takes_most_of_a_uniform_noise_away():
    """science 6.4: N = 4096, s = 6, lambda 0.8."""
    row = measures.parts(6, 1.0, 4096, 0.8, spread=0.0, draws=1)
    assert row["answer"] == pytest.approx(0.0894868437, abs=1e-9)
    assert row["noise"] == pytest.approx(0.1105131563, abs=1e-9)
    assert row["share"] == pytest.approx(0.4474342183, abs=1e-9)


def test_a_row_of_parts_sums_to_1_minus_lambda():
    for lam in (0.0, 0.5, 1.0):
        row = measures.parts(4, 0.3, 256, lam)
        assert row["answer"] + row["signed"] == pytest.approx(1 - lam)
        assert row["noise"] >= abs(row["signed"])


def test_noise_left_is_the_law_of_cosines():
    a, b = torch.randn(2, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    b = b * a.norm() / b.norm()
    cosine = torch.cosine_similarity(a, b, dim=0)
    for lam in (0.2, 0.8):
        by_hand = (a - lam * b).norm() / a.norm()
        torch.testing.assert_close(measures.noise_left(cosine, lam), by_hand)
        assert float(measures.noise_left(lam / 2, lam)) == pytest.approx(1)
    assert float(measures.noise_left(0.6, 0.6)) == pytest.approx(math.sqrt(1 - 0.36))


def test_simulated_rows_follow_the_closed_forms():
    for correlation, spread in ((0.0, 1.0), (0.5, 1.0), (0.9, 1.5)):
        cosine, ratio, rest = measures.simulated_left(correlation, spread, None)
        assert ratio == pytest.approx(1, abs=0.05)
        assert cosine == pytest.approx(
            math.exp(-(1 - correlation) * spread**2), abs=0.03
        )  # of two long rows
        assert rest == pytest.approx(math.sqrt(1 - cosine**2), abs=0.03)


def test_signed_sums_do_not_see_the_correlation_and_sizes_do():
    plain, independent, alike = (
        measures.parts(6, r, 1024, lam) for r, lam in ((0, 0.0), (0, 0.8), (0.9, 0.8))
    )
    assert independent["signed"] == pytest.approx(alike["signed"], abs=0.01)
    assert independent["noise"] > plain["noise"] > 1.5 * alike["noise"]


def test_the_norm_and_not_the_difference_changes_the_gradients():
    plain, own, bare = (measures.gradient(kind, 128, 0) for kind in measures.KINDS)
    assert 0.5 < bare / plain < 2 < own / plain


def test_one_softmax_head_stays_among_its_values():
    """The best cosine of a point of the simplex with e_0 - e_1 is sqrt(1/2), at the corner e_0."""
    assert measures.reach(0.0) == pytest.approx(math.sqrt(0.5))
    assert measures.reach(1.0) == pytest.approx(1.0)
    assert measures.as_two_heads() < 1e-12


def test_the_panel_gives_every_map_the_same_logits():
    logits, places = measures.panel_logits("one answer", 64)
    weights = {name: call(logits) for kind in measures.MAPS.values() for name, call in kind.items()}
    assert len(weights) == 12
    assert all(bool(torch.isfinite(w).all()) and w.shape == (64,) for w in weights.values())
    assert float(weights["differential, 0.8"].sum()) == pytest.approx(0.2)
    assert float(weights["sparsemax"][places[0]]) == pytest.approx(1)
    assert float(weights["window of 8"][places[0]]) == 0
    assert weights["window of 8"].nonzero()[:, 0].tolist() == list(range(56, 64))


def test_only_maps_that_need_not_sum_to_1_can_say_nothing():
    logits, places = measures.panel_logits("nothing found", 64)
    assert places == []
    silent = {
        kind: {name for name, call in ways.items() if float(call(logits).sum()) < 0.1}
        for kind, ways in measures.MAPS.items()
    }
    assert not silent["sum to 1"]
    assert {"softpick", "sigmoid − ln n"} <= silent["need not sum to 1"]


def test_reported_tables_are_as_printed():
    """Ye et al. (2025), Tables 2, 3, 5, 6."""
    printed = {
        ("retrieval", "diff"): [1.0, 0.92, 0.84, 0.85],
        ("attention_mass", "answer_diff"): [0.27, 0.30, 0.31, 0.32, 0.40],
        ("outliers", "largest"): [318.0, 38.8, 3608.6, 1688.2],
        ("ablations", "loss"): [3.087, 3.088, 3.086, 3.062, 3.122, 3.065, 3.066],
        ("scaling", "value"): [0.622, 0.637, 0.88, 0.95],
    }
    found = {
        (name, column): data.table(f"reported/differential_{name}")[column].tolist()
        for name, column in printed
    }
    assert found == printed


def test_the_committed_speeds_meet_the_goal():
    """At least 1.5 times faster and under half the memory of the direct formula, equal to 1e-5; n = 2048."""
    table = data.table("differential_speed").set_index(["part", "name"])
    for part, own in (("operator", "attend"), ("layer", "DifferentialAttention")):
        ours, direct = table.loc[part, own], table.loc[part, "direct formula"]
        assert direct.forward + direct.backward >= 1.5 * (ours.forward + ours.backward)
        assert ours.megabytes < 0.5 * direct.megabytes
        assert direct.error < 1e-5
    assert float(table.error.max()) < 1e-5


def test_each_map_stands_beside_those_whose_rows_sum_to_one_or_those_whose_rows_need_not():
    logits = [
        measures.panel_logits(content, n)[0] for content in measures.CONTENTS for n in (16, 64)
    ]
    for kind, ways in measures.MAPS.items():
        for name, call in ways.items():
            sums = torch.stack([call(given).sum() for given in logits])
            assert bool((sums - 1).abs().max() < 1e-6) == (kind == "sum to 1"), name


def test_independent_noise_is_reduced_where_rows_are_nearly_flat():
    """What is common to both maps is the flat part; with deviation 1.5 peaks of its own remain."""
    left = [measures.simulated_left(0.0, spread, 0.8).left for spread in (0.3, 0.75, 1.25)]
    assert left[0] < 0.5 < left[1] < 1 < left[2]


def test_sizes_of_the_noises_move_the_threshold():
    for ratio, other in ((0.5, 0.93), (2.0, 2.0)):
        found = measures.simulated_left(0.5, 1.5, 0.8, other=other)
        assert (found.left < 1) == (found.cosine > 0.4 * found.ratio)
        assert float(measures.noise_left(0.4 * ratio, 0.8, ratio)) == pytest.approx(1)
