"""Random decoders of the families that transformers has: what mixes their tokens is found, and nothing is read that is not so."""

import json

import model_families
import pytest
import torch
from tiny_models import tiny

from course.chapter5 import measures as measures5
from course.report import runner
from course.report.sections import SECTIONS
from course.report.subject import PLANS, Subject
from helpers import intervention, models, probe
from helpers.models import mixing

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

IDS = torch.randint(1, 250, (20,), generator=torch.Generator().manual_seed(0))
HALF, INTERLEAVED, UNTURNED = (
    ("attention", layout, float(layout is not None)) for layout in ("half", "interleaved", None)
)
# what mixes the tokens, each kind once; sections that are refused, with a word of the reason
FAMILIES = {
    "cohere": ({INTERLEAVED}, {}),
    "cohere2": (
        {INTERLEAVED, UNTURNED},
        {"frequencies": "do not rotate queries", "silenced": "do not rotate queries"},
    ),
    **dict.fromkeys(
        ("mistral", "qwen2", "qwen3", "olmo2", "granite", "starcoder2", "gemma2"), ({HALF}, {})
    ),
    "gpt_neox": ({("attention", "half", 0.25)}, {"frequencies": "4 of 16 dimensions"}),
    "smollm3": (
        {HALF, UNTURNED},
        {"frequencies": "1 of its 4 layers", "silenced": "1 of its 4 layers"},
    ),
    "glm": ({("attention", "interleaved", 0.5)}, {"frequencies": "8 of 16 dimensions"}),
    "gpt_oss": ({HALF}, dict.fromkeys(("sinks", "hiding", "heads"), "learned sinks")),
    "diffllama": (
        {("the difference of two attention maps", None, 0.0)},
        dict.fromkeys(("sinks", "hiding", "heads", "frequencies", "silenced"), "difference of two"),
    ),
    "lfm2": (
        {("a convolution", None, 0.0), HALF},
        {
            "hiding": "2 of its 4 layers mix tokens by a convolution",
            "frequencies": "do not rotate queries",
        },
    ),
    "gptj": (
        {UNTURNED},
        {
            "sinks": "does not let its attention be replaced",
            "frequencies": "cannot be read at the point where they are rotated",
        },
    ),
    "mamba": (
        {("a state space", None, 0.0)},
        {"sinks": "state space", "hiding": "state space", "base": "no rotary positions"},
    ),
}


def family(kind: str) -> models.LanguageModel:
    """A random decoder of a family, named after it."""
    found = tiny(kind, num_hidden_layers=4)
    found.model.config._name_or_path = kind
    return found


def subject(monkeypatch, model: models.LanguageModel) -> Subject:
    monkeypatch.setattr(Subject, "_load", lambda self, dtype: model)
    return Subject(model.name)


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_mixes_the_tokens_is_found(kind):
    found = probe.layers(family(kind))
    assert len(found) == 4
    assert {(each.mixes, each.layout, each.share) for each in found} == FAMILIES[kind][0]


@pytest.mark.parametrize("kind", FAMILIES)
def test_without_an_intervention_a_reading_is_the_models_own_or_is_refused(kind):
    """Also with the model's own turns, in its own layout."""
    model = family(kind)
    if kind in ("gpt_oss", "diffllama", "lfm2", "gptj", "mamba"):
        with pytest.raises(ValueError, match=r"mixes tokens|does not let its attention"):
            intervention.read(model, IDS)
        return
    found = intervention.read(model, IDS)
    torch.testing.assert_close(found.logits, model.model(IDS[None]).logits[0], rtol=1e-4, atol=1e-5)
    if all(each.theta is not None for each in probe.layers(model)):
        again = intervention.read(model, IDS, rope=intervention.turns(model, len(IDS)))
        torch.testing.assert_close(again.logits, found.logits, rtol=1e-4, atol=1e-5)


OFTEN = ("cohere2", "gpt_oss", "mamba")


@pytest.mark.parametrize(
    "kind", [k if k in OFTEN else pytest.param(k, marks=pytest.mark.slow) for k in FAMILIES]
)
def test_no_section_ends_a_report_and_a_refusal_says_why(kind, short, monkeypatch):
    about = subject(monkeypatch, family(kind))
    assert about.facts()["layers"] == 4
    for name in ("sinks", "heard", "hiding", "copying", "heads", "frequencies", "silenced", "base"):
        found = runner._section(SECTIONS[name]._replace(claims={}), about, short)
        wanted = FAMILIES[kind][1].get(name)
        if wanted is None:
            assert found["status"] in ("measured", "does not apply"), f"{name}: {found['why']}"
        else:
            assert found["status"] == "does not apply", name
            assert wanted in found["why"]


def test_fast_pairs_of_an_interleaved_model_are_found_fast():
    """All but the two fastest pairs of a Cohere made small: these hold the norm, and silencing the others costs nothing."""
    model = family("cohere")
    with torch.no_grad():
        for block in model.model.model.layers:
            for part in (block.self_attn.q_proj, block.self_attn.k_proj):
                part.weight.view(-1, 16, 64)[:, 4:] *= 0.01
    (q, _), *_ = probe.queries_and_keys(model, IDS)
    norms = measures5.pair_norms(q).mean(0)
    shares = norms.view(4, 2).mean(1) / norms.mean()
    assert shares[0] > 3.8
    assert shares[1:].max() < 0.1


def test_a_model_whose_reading_gives_other_logits_is_not_read_head_by_head(short, monkeypatch):
    assert subject(monkeypatch, family("cohere")).unread is None
    plain = intervention.read
    monkeypatch.setattr(
        intervention,
        "read",
        lambda *given: (found := plain(*given))._replace(logits=found.logits * 1.05),
    )
    about = subject(monkeypatch, family("cohere"))
    found = runner._section(SECTIONS["sinks"]._replace(claims={}), about, short)
    assert found["status"] == "does not apply"
    assert "off its own" in found["why"]
    assert runner._section(SECTIONS["base"], about, short)["status"] == "measured"


def test_weights_that_are_not_finite_are_found_at_loading(monkeypatch):
    model = family("cohere")
    model.model.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        subject(monkeypatch, model)


def test_an_encoder_and_decoder_and_a_list_as_a_configuration_are_one_sentence(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    for text, words in (
        ({"model_type": "t5", "is_encoder_decoder": True}, "an encoder-decoder"),
        ([1], "an object"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(text))
        with pytest.raises(ValueError, match=words):
            models.load(tmp_path)


def hybrid(kind: str) -> models.LanguageModel:
    return model_families.make(kind)


@pytest.mark.parametrize(
    ("kind", "mixes"),
    [
        ("falcon_h1", ["attention and a state space"] * 4),
        ("kimi_linear", ["linear attention", "attention"] * 2),
        ("jamba", ["a state space", "attention"] * 2),
        ("bamba", ["a state space", "attention"] * 2),
        ("recurrent_gemma", ["a state space", "attention"] * 2),
    ],
)
def test_mixers_of_a_hybrid_are_found_by_behaviour(kind, mixes):
    model = hybrid(kind)
    assert [each.mixes for each in probe.layers(model)] == mixes
    assert model_families.compared(model) == []
    with (
        pytest.raises(ValueError, match=r"still has influence|does not let"),
        probe.attention_knockout(model, 0),
    ):
        pass


def test_mixers_are_found_without_their_names(monkeypatch):
    """An unknown state space beside attention is something else, and no attention."""
    monkeypatch.setattr(mixing, "_NAMES", {})
    assert {each.mixes for each in probe.layers(hybrid("falcon_h1"))} == {
        "attention and something else"
    }
    assert {each.mixes for each in probe.layers(hybrid("jamba"))} == {"something else", "attention"}


@pytest.mark.parametrize(
    ("kind", "windows"),
    [("mistral", [16] * 4), ("phi3", [16] * 4), ("llama4_text", [16, None] * 2)],
)
def test_windows_of_the_base_are_those_of_its_layers(kind, windows, monkeypatch):
    model = model_families.make(kind)
    if kind == "phi3" and model.model.config.sliding_window is None:
        model.model.config.sliding_window = 16
    assert [each.window for each in probe.layers(model)] == windows
    about = subject(monkeypatch, model)
    numbers = SECTIONS["base"].measure(about, PLANS[0])
    assert {each["limit"] for each in numbers["kinds"].values()} == {16}
    told = SECTIONS["base"].tell(numbers, kind)
    assert (
        "no layer sees further" in told.short.replace("No", "no")
        or "within the window of 16" in told.short
    )
