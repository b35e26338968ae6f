"""Chapter 3's measures against cases whose answer is known, and its figures and verdicts on models that differ."""

import pytest
import torch
from tiny_models import tiny

from course import scorecard
from course.chapter3 import figures, measures
from course.evidence import rules
from course.training import checkpoints
from helpers import collapse, data, probe

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

VARIED, EQUAL = measures.SEQUENCES


@pytest.mark.parametrize("window", [4, 8])
def test_a_window_makes_the_collapse_of_equal_tokens_exact(window):
    """Beyond L (w - 1) the first token is out of reach, and all values are equal."""
    reach = 3 * (window - 1)
    before, at, after = measures.window_distance(
        EQUAL, window, [reach, reach + 1, 3 * reach], seeds=2
    )
    assert before > 1e-6
    assert max(at, after) < 1e-12
    assert measures.window_distance(EQUAL, None, [3 * reach], seeds=2) > 1e-6
    assert measures.window_distance(VARIED, window, [3 * reach], seeds=2) > 0.1


def test_influence_ends_where_the_windows_end():
    assert (measures.influence(5, n=32, layers=3, seeds=1)[13:] == 0).all()
    assert (measures.influence(5, n=32, layers=3, seeds=1)[:13] > 0).all()


def test_in_phase_commas_change_nothing_in_random_decoders():
    curves = measures.separator_curves()
    ones, commas = (float(curves[f"{name}, n to n + 3"][-1]) for name in ("ones", "commas"))
    assert commas == pytest.approx(ones, rel=0.25)
    assert curves["commas, n to n + 1"][-1] > 10 * curves["ones, n to n + 1"][-1]


def test_three_tokens_more_are_a_period_of_one_row_and_half_a_period_of_the_other():
    """Out of phase the difference falls like 1/n, in phase like 1/n^2."""
    rows = {"second": [0] + [1, 1, 2] * 140, "fifth": [0] + [1, 1, 1, 1, 1, 2] * 70}
    found = {
        name: measures.random_distance(tokens, (97, 385), 3, seeds=2)
        for name, tokens in rows.items()
    }
    assert 3 < found["fifth"][0] / found["fifth"][1] < 5
    assert found["second"][0] / found["second"][1] > 9


def _curve(n=80, d=256):
    return torch.randn(
        n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).cumsum(0)


def test_a_prefix_is_lost_to_its_neighbour_when_the_error_goes_more_than_half_the_way():
    exact = _curve()
    steps = exact.diff(dim=0)
    for part in (0.0, 0.49, 0.51, 1.2):
        found = measures.resolution(exact, exact + torch.cat([part * steps, steps[-1:]]))
        assert torch.allclose(found.along, torch.full_like(found.along, part))
        assert (found.pair == (part < 0.5)).all()
    across = torch.linalg.svd(exact.diff(dim=0))[2][-1]  # at right angles to every difference
    found = measures.resolution(exact, exact + 100 * across)
    assert found.length.min() > 4
    assert found.nearest.all()
    assert found.share.max() < 1e-12


def test_a_prefix_half_way_to_the_next_one_is_not_told_apart():
    exact = torch.arange(6.0, dtype=torch.float64)[:, None]
    assert not measures.resolution(exact, exact + 0.5).pair.any()
    assert measures.resolution(exact, exact + 0.25).pair.all()


def test_other_errors_keep_their_lengths_and_only_the_shuffled_ones_what_neighbours_share():
    exact = _curve()
    rounded = (
        exact
        + torch.randn(1, 256, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        + 0.1 * exact
    )
    own = rounded - exact
    for errors in measures.ERRORS:
        other = measures.replaced(exact, rounded, errors) - exact
        assert torch.allclose(other.norm(dim=1).sort().values, own.norm(dim=1).sort().values), (
            errors
        )
    found = measures.controlled(exact, rounded)
    assert torch.allclose(found["with shuffled coordinates"].error, found["its own"].error)
    assert found["isotropic"].error.median() > 2 * found["its own"].error.median()
    assert abs(float(found["isotropic"].share.mean()) * 256 - 1) < 0.5
    with pytest.raises(ValueError, match="errors must be one of"):
        measures.replaced(exact, rounded, "none")


@pytest.mark.parametrize(("length", "share"), [(0.6, 1.0), (2.0, 0.1), (8.0, 1 / 256)])
def test_the_closed_form_is_what_drawn_errors_give(length, share):
    generator = torch.Generator().manual_seed(0)
    along = length * share**0.5 * torch.randn(100_000, generator=generator, dtype=torch.float64)
    assert float((along < 0.5).double().mean()) == pytest.approx(
        measures.right_of_two(length, share), abs=0.005
    )


def test_bands_give_medians_and_shares():
    exact = _curve()
    bands = measures.in_bands(measures.resolution(exact, exact + 0.001), [2, 10, 30, 100])
    assert list(bands.high) == [10, 30]
    assert (bands[["pair", "nearest"]] == 1).all(axis=None)


def test_the_table_says_what_the_page_says_of_bf16():
    """Same lengths, same error of the difference, same sharing; only the direction differs, and only it loses prompts."""
    table = data.table("telling_apart").query("type == 'bf16'").set_index("errors")
    own, other, shuffled, isotropic = (table.loc[errors].iloc[-1] for errors in measures.ERRORS)
    assert own.nearest < 0.6
    assert abs(own.nearest - other.nearest) < 0.15
    assert min(shuffled.nearest, isotropic.nearest) > 0.98
    assert shuffled.error == own.error < isotropic.error
    assert own.share > 20 * isotropic.share
    assert own.pair == pytest.approx(measures.right_of_two(own.length, own.share), abs=0.05)


def test_random_digits_have_ones_where_they_must():
    digits = measures.random_digits(50, [1, 7, 50])
    assert len(digits) == 50
    assert [digits[k - 1] for k in (1, 7, 50)] == ["1", "1", "1"]
    assert len(set(digits)) == 10


def _margins(first, last):
    """A model whose margins are these with a 0 at the place asked for; it ignores every other digit."""
    right = {"first": torch.tensor(first), "last": torch.tensor(last)}
    one = torch.tensor([-1.0] * len(first))
    return {
        (p, a): (right[p] if p == a else one, one) for p in collapse.PLACES for a in collapse.PLACES
    }


def test_a_model_that_is_wrong_at_five_digits_cannot_decide(monkeypatch):
    wrong, able = _margins([-1.0, 1.0], [-1.0, -1.0]), _margins([1.0, 1.0], [1.0, -1.0])
    claim = scorecard.CLAIMS["first_digit_is_easier"]
    for margins, verdict in ((wrong, rules.UNABLE), (able, rules.HOLDS)):
        monkeypatch.setattr(collapse, "copying_margins", lambda *_, margins=margins, **__: margins)
        assert claim.rule.decide(claim.function(object())).verdict == verdict
    ax, finding = figures.copying("m", {"plain": wrong}, [5, 300], "plain")
    assert "wrong at 5 digits already (first, last)" in ax.get_title(loc="left")
    ax, finding = figures.copying("m", {"plain": able}, [5, 300], "plain")
    assert "right at 2 (first) and 1 (last)" in ax.get_title(loc="left")
    assert "by +0.00 if we ask for the last" in finding


def test_the_committed_prompts_come_again_and_another_models_are_measured(smollm2):
    for each, prompt in ((tiny("llama"), "alternating"), (smollm2, "question first")):
        wanted = collapse.copying_margins(each, measures.DIGITS, **measures.PROMPTS[prompt])
        found = measures.other_prompts(each)
        assert list(found) == list(measures.PROMPTS)
        assert found[prompt].keys() == wanted.keys()
        for places, pair in wanted.items():
            assert torch.allclose(torch.stack(found[prompt][places]), torch.stack(pair), atol=2e-3)


def test_figures_of_another_model_do_not_claim_what_was_found_in_the_default_one():
    model = tiny("llama")
    ids = torch.cat([probe.first_token(model), probe.encode(model, "1" * 511)])
    states = probe.last_representations(model, ids)
    found = {"bf16": measures.controlled(states, states.bfloat16())}
    _, finding = figures.told_apart(model, found, "bf16", "nearest of all prompts")
    assert "to 509" in finding or "to 510" in finding  # no row of the table, which goes on to 2,046
    for text in (finding, figures.falling(model.name, *found["bf16"]["its own"][:2])[1]):
        assert "SmolLM2" not in text
        assert "2,0" not in text


def test_every_encoding_of_the_reading_falls_and_a_steep_alibi_does_not():
    means = measures.layer_means(True, 1.0, 2)
    for name, mean in means.items():
        assert (mean[-1] < 0.3 * mean[0]) == (name in measures.READING), name


def test_the_copier_turns_before_its_representations_meet():
    """Right at the lengths of training and wrong later, with much of the distance left; ones alone stay right."""
    trained = checkpoints.load("copying")
    seen = checkpoints.copying(trained, [4, 16, 64, 72, 256], "last", "0")
    assert (seen["margin"] > 0).tolist() == [True, True, True, False, False]
    assert (seen["control"] < 0).all()
    assert seen["distance"][3] > 0.4 * seen["distance"][1] > 100 * torch.finfo(torch.bfloat16).eps
