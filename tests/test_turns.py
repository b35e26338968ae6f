"""What a claim has survived: each turn is of a claim, decides by its numbers, and says on the card how it ended."""

import pytest

from course import scorecard
from course.evidence import turns
from course.evidence.claims import CLAIMS, Found
from course.evidence.rules import HOLDS, LITTLE
from helpers import data

OF_TABLES = (  # those that read committed tables alone: measured again at once
    "question_everywhere_helps",
    "causal_attention_is_no_bottleneck",
    "massive_activations_go_with_the_sink",
    "untrained_network_has_a_u",
    "ones_collapse",
    "direction_of_rounding_decides",
    "fast_pairs_serve_places",
    "the_condition_is_needed",
    "two_hops_are_faster_where_leaves_are_read",
    "attention_picks_the_leaf",
    "resistance_beats_hops",
    "new_edges_open",
    "gtr_beats_random_edges",
    "fosr_beats_random_edges",
    "sdrf_beats_random_edges",
    "training_makes_slashes",
    "positions_alleviate",
)


def test_each_turn_is_of_a_claim_and_has_an_outcome():
    table = data.table("turns").set_index("claim")
    assert set(table.index) == set(turns.TURNS) <= set(CLAIMS)
    assert set(table.outcome) <= {turns.SURVIVED, turns.TURNED, turns.UNDECIDED}


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_turn_of_committed_tables_ends_as_written(name):
    assert turns.row(name)["outcome"] == turns.of(name).outcome


@pytest.mark.parametrize("name", ["ones_collapse", "fast_pairs_serve_places"])
def test_the_card_shows_what_a_claim_survived(name):
    outcome = turns.of(name)
    row = scorecard._row(CLAIMS[name], Found("1", HOLDS))
    assert f'class="card-turn" title="{outcome.outcome}: ' in row
    assert f"<dt>{outcome.outcome.capitalize()}</dt>" in row
    assert "Could change the verdict, not run" not in row


def test_a_claim_without_a_turn_says_not_run():
    name = next(
        name for name, claim in CLAIMS.items() if name not in turns.TURNS and not claim.parts
    )
    assert turns.of(name).outcome == turns.NOT_RUN
    assert "Could change the verdict, not run" in scorecard._row(CLAIMS[name], Found("1", HOLDS))


def test_a_claim_whose_turn_was_not_run_carries_no_verdict(monkeypatch):
    """In a chapter with turns; in others, and where nothing was decided, the verdict is the measured one."""
    measured = Found("1", HOLDS)
    monkeypatch.setattr(scorecard, "_measured", lambda claim: measured)
    turned, other = CLAIMS["ones_collapse"], CLAIMS["same_ratio_same_state"]
    assert scorecard.measure(turned) == measured
    assert other.chapter not in scorecard.chapters_with_turns()
    assert scorecard.measure(other) == measured
    monkeypatch.setattr(turns, "of", lambda name: turns.Outcome(turns.NOT_RUN, "", ""))
    assert scorecard.measure(turned).verdict == LITTLE
    assert scorecard.measure(turned).words == scorecard.NOT_TURNED
    assert scorecard.measure(other) == measured


def test_outcomes_are_told_apart_by_their_conditions():
    found = turns.TURNS["ones_collapse"]
    falls = {str(k): 0.1 for k in range(14)}
    assert found.outcome({"fall": falls}) == turns.SURVIVED
    assert found.outcome({"fall": falls | {"0": 2.0, "1": 2.0}}) == turns.TURNED
    assert found.outcome({"fall": falls | {str(k): 0.5 for k in range(5)}}) == turns.UNDECIDED


def test_undecided_claims_are_a_list_at_the_end(monkeypatch):
    monkeypatch.setattr(
        scorecard, "measure", lambda claim: Found("1", "too little evidence", words="why")
    )
    page = scorecard.papers().data
    assert page.count("<section") == 1
    assert scorecard.UNDECIDED in page
