"""Every claim on the scorecard runs and says what it found."""

import pytest

from helpers import claims


@pytest.mark.parametrize("name", claims.CLAIMS)
def test_claim_measures_and_judges(name):
    measured, verdict = claims.CLAIMS[name].measure()
    assert any(character.isdigit() for character in measured)
    assert verdict in claims.VERDICTS


# What closed forms and exact arithmetic decide cannot change with the machine.
SETTLED = {
    "width_bound": claims.HOLDS,
    "width_explains_failures": claims.FAILS,
    "walks_bound_the_jacobian": claims.HOLDS,
    "resistance_bounds_the_jacobian": claims.HOLDS,
    "tree_closed_form": claims.CORRECTED,
    "copied_code_computes_curvature": claims.FAILS,
    "gap_brackets_the_cut": claims.HOLDS,
    "rewiring_lowers_commute_time": claims.CORRECTED,
    "last_weight_falls": claims.HOLDS,
    "early_noise_is_forgotten": claims.CORRECTED,
    "decaying_positions_collapse": claims.HOLDS,
    "bounded_logits_suffice": claims.FAILS,
    "rope_decays": claims.FAILS,
    "alternating_sequences_stay_apart": claims.HOLDS,
    "all_encodings_collapse": claims.FAILS,
    "low_precision_collides_sooner": claims.HOLDS,
    "adaptive_temperature_sharpens": claims.CORRECTED,
}


@pytest.mark.parametrize("name", SETTLED)
def test_settled_verdicts_stay(name):
    assert claims.CLAIMS[name].measure()[1] == SETTLED[name]


def test_every_claim_points_to_a_page_that_exists(root):
    for each in claims.CLAIMS.values():
        assert (root / "chapters" / f"{each.page}.ipynb").is_file()
        assert each.url.startswith(("https://arxiv.org/abs/", "https://github.com/"))


def test_unknown_chapter_is_named():
    with pytest.raises(ValueError, match="chapter must be one of"):
        claims.scorecard(99)
