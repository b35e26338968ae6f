"""A verdict knows its preconditions: every claim that takes a model is asked of three in which little or nothing happens."""

import pytest
import torch
from tiny_models import prose_tokenizer, save, tiny

from course.report import preconditions, runner
from course.report.sections import SECTIONS, Need
from course.report.subject import PLANS, Subject
from helpers import data, models, probe

AGREES = ("holds", "holds with a correction")
CLAIMS = {name: need for section in SECTIONS.values() for name, need in section.claims.items()}
LAYERS = {"untrained": 9, "sinkless": 4, "two layers": 2}
# what a control may agree with, and why that is true of it
ANYWHERE = {
    "early_tokens_have_more_influence": "the claim asks the same network with random weights, too",
    "ones_collapse": "it is a theorem about softmax attention over equal tokens",
    "primacy_is_topology_recency_is_learned": "it is measured against the model's own random weights",
    "valley_survives_training": "the U of the mask is there, and the model is trained",
    "varied_digits_delay_collapse": "sequences that differ end in states that differ, in any trained decoder",
    "varied_digits_still_fall": "averages over longer texts differ less, in any trained decoder",
    "low_precision_is_worse": "it is about number types",
    "direction_of_rounding_decides": "it is about number types",
    "fast_pairs_are_small_but_at_the_ends": "the norms of a trained model's pairs",
    "commas_prevent_collapse": "distances between states that a trained model keeps apart",
    "merging_alleviates_collapse": "longer tokens are the tokenizer's doing",
    "slashes_survive_random_tokens": "it is asked only of heads that look at one distance",
    "slash_heads_are_rank_one": "it is asked only of heads that look at one distance",
    "fast_pairs_make_the_slash": "it is asked only of heads that look at one distance",
}
MAY_AGREE = {
    "untrained": {"early_tokens_have_more_influence", "ones_collapse"},
    "sinkless": {*ANYWHERE},
    "two layers": {*ANYWHERE} - {"fast_pairs_are_small_but_at_the_ends"},
}


def train(model: models.LanguageModel, steps: int = 100) -> models.LanguageModel:
    """Train on the course's prose, too briefly for sinks."""
    network, ids = model.model.train().requires_grad_(True), probe.encode(model, data.prose())
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        starts = torch.randint(0, len(ids) - 65, (8,), generator=generator).tolist()
        batch = torch.stack([ids[start : start + 64] for start in starts])
        batch[:, 0] = model.tokenizer.bos_token_id
        loss = network(batch, labels=batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.eval().requires_grad_(False)
    return model


@pytest.fixture(scope="module")
def controls(tmp_path_factory) -> dict[str, Subject]:
    found = {}
    for name, layers in LAYERS.items():
        model = tiny(
            "llama",
            tokenizer=prose_tokenizer(False),
            num_hidden_layers=layers,
            max_position_embeddings=4096,
        )
        if name != "untrained":
            train(model)
        found[name] = Subject(
            str(save(tmp_path_factory.mktemp("controls") / name.replace(" ", "-"), model))
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("control", LAYERS)
def test_claims_of_a_control_model_do_not_hold(controls, control):
    subject, told = controls[control], {}
    for name, need in CLAIMS.items():
        need = need._replace(committed=False) if need.tokens < 50_000 else need
        told[name] = runner._verdict(name, need, subject, PLANS[0]._replace(claims=50_000))
    agrees = {name for name, each in told.items() if each["verdict"] in AGREES}
    assert agrees <= MAY_AGREE[control], {
        name: told[name]["measured"] for name in agrees - MAY_AGREE[control]
    }
    failed = {
        name: each["why"]
        for name, each in told.items()
        if "fault of the course" in str(each["why"])
    }
    assert not failed


@pytest.mark.slow
def test_controls_are_what_they_are_called(controls):
    assert preconditions.heads_with_a_sink(controls["sinkless"]) < preconditions.SINKS
    assert "has not learnt" in preconditions.unable(Need(), controls["untrained"])
    assert preconditions.unable(Need(), controls["sinkless"]) is None
    assert "needs 8 layers" in preconditions.unable(Need(layers=8), controls["two layers"])
    assert "is about sinks" in preconditions.unable(Need(sinks=True), controls["sinkless"])


def test_a_claim_that_holds_of_nothing_is_undecided():
    nothing = "four quarters that cost alike"
    name = "fast_pairs_are_noise_between_the_ends"
    assert preconditions.agrees_with_nothing(name, "holds", {nothing: "holds"})
    assert preconditions.agrees_with_nothing(name, "holds with a correction", {nothing: "holds"})
    assert (
        preconditions.agrees_with_nothing(name, "holds", {nothing: "holds with a correction"})
        is None
    )
    assert preconditions.agrees_with_nothing(name, "does not hold here", {nothing: "holds"}) is None
