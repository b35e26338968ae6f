"""The graphs that run in a browser, against torch: as trained, and under each intervention."""

import random

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import ROOT
from test_try import CHANGES, unseen
from tiny_models import tiny

from book import export
from course.chapter2 import interventions
from helpers import attention, intervention, models, probe
from helpers.transformer import Block, Decoder

LAYERS, HEADS = 30, 9
CLOSE = {"logits": 1e-3, "attentions": 1e-4, "states": 0.2}  # states reach 2e4
# An intervention can leave rows of attention nearly tied, which enlarges rounding: ten times that
ALTERED = {name: 10 * value for name, value in CLOSE.items()}


def session(graph) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options)


def run(found, **inputs) -> dict[str, np.ndarray]:
    names = [output.name for output in found.get_outputs()]
    typed = {
        name: np.asarray(x, np.int64 if name in ("ids", "rows") else np.float32)
        for name, x in inputs.items()
    }
    return dict(zip(names, found.run(names, typed), strict=True))


@pytest.fixture(scope="module")
def graph():
    return session(export.language_model(models.blocks()))


def read(found, model, ids, rope=None, mask=None, heads=None, temperature=1.0, past=None):
    """The graph's outputs, with what `intervention.read` takes written as the graph's inputs."""
    n, p = len(ids), 0 if past is None else past.shape[-2]
    turns = intervention.turns(model, range(p, p + n)) if rope is None else rope
    seen = attention.causal_mask(p + n)[p:] if mask is None else mask
    half = turns / temperature**0.5  # queries and keys both
    return run(
        found,
        ids=ids,
        rows=range(n),
        cos=torch.cat([half.real] * 2, -1),
        sin=torch.cat([half.imag] * 2, -1),
        bias=torch.zeros(seen.shape).masked_fill(~seen, -torch.inf),
        gain=torch.ones(LAYERS, HEADS) if heads is None else heads,
        past=torch.zeros(LAYERS, 2, 3, 1, 0, 64) if past is None else past,
    )


def differences(found: dict, wanted: intervention._Reading) -> dict[str, float]:
    return {
        name: float(np.abs(found[name] - getattr(wanted, name).numpy()).max()) for name in CLOSE
    }


def assert_equal(found, wanted, tolerances):
    for name, most in tolerances.items():
        assert differences(found, wanted)[name] < most, differences(found, wanted)
    assert (found["logits"].argmax(-1) == wanted.logits.argmax(-1).numpy()).all(), (
        "another likeliest token"
    )


def prompts(count: int, longest: int = 256) -> list[str]:
    """Pieces of prose of any length, and what is not prose."""
    prose, draw = (ROOT / "data/prose.txt").read_text(), random.Random(0)
    odd = [
        "1",
        "<|im_start|>" + "1" * 40,
        "<|im_start|>1 + 12 =\n\n  3.14",
        "😀👩‍👩‍👧 שלום עולم مرحبا 你好",
        "def f(x):\n\treturn x\n",
    ]
    starts = [draw.randrange(len(prose) - 2000) for _ in range(count)]
    return (odd + [prose[k : k + draw.randrange(1, 5 * longest)] for k in starts])[:count]


@pytest.mark.slow
def test_the_graph_is_the_model(graph, smollm2):
    for text in prompts(8, 64):
        ids = probe.encode(smollm2, text)[:256]
        assert_equal(read(graph, smollm2, ids), intervention.read(smollm2, ids), CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "as trained"])
def test_an_intervention_is_the_same_in_the_graph_and_in_torch(graph, smollm2, name):
    ids = probe.encode(smollm2, prompts(9, 64)[-1])[:40]
    change = CHANGES[name][1](smollm2, len(ids))
    wanted = intervention.read(smollm2, ids, **change)
    assert_equal(read(graph, smollm2, ids, **change), wanted, ALTERED)
    plain = intervention.read(smollm2, ids)
    assert (plain.logits - wanted.logits).abs().max() > 0.1, "the intervention does something"


@pytest.mark.slow
def test_a_prompt_in_two_pieces_is_the_prompt(graph, smollm2):
    ids = probe.encode(smollm2, prompts(9, 64)[-1])[:30]
    wanted, first = intervention.read(smollm2, ids), read(graph, smollm2, ids[:17])
    second = read(graph, smollm2, ids[17:], past=first["present"])
    assert np.abs(second["logits"] - wanted.logits[17:].numpy()).max() < CLOSE["logits"]
    assert (
        np.abs(second["attentions"] - wanted.attentions[:, :, 17:].numpy()).max()
        < CLOSE["attentions"]
    )
    assert second["present"].shape[-2] == 30


@pytest.mark.slow
def test_reading_without_an_intervention_is_the_model(smollm2):
    ids = probe.encode(smollm2, prompts(9, 64)[-1])[:40]
    wanted = smollm2.model(ids[None], output_hidden_states=True)
    found = intervention.read(smollm2, ids)
    assert torch.allclose(found.logits, wanted.logits[0], atol=1e-3)
    assert torch.allclose(found.states, torch.cat(wanted.hidden_states), atol=0.1)
    assert torch.allclose(found.attentions, probe.attention_maps(smollm2, ids), atol=1e-5)
    states, _ = interventions.with_hidden(smollm2, ids, hide=0)
    assert torch.allclose(
        intervention.read(smollm2, ids, mask=unseen(40, 0)).states, states, atol=0.1
    )


def test_a_decoder_of_another_make_is_refused():
    for options in (
        {"encoding": "APE"},
        {"block": lambda *a, layer: Block(*a, layer=layer, attention=torch.relu)},
    ):
        with pytest.raises(ValueError, match="model must have RoPE, ALiBi or no encoding"):
            export.course_decoder(Decoder(7, 16, 2, 2, **options))


def test_a_file_that_holds_no_such_model_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_text("no model")
    for source in (tmp_path / "model.gguf", tmp_path / "none.gguf", tmp_path, 3):
        with pytest.raises(ValueError, match="source must be"):
            export.language_model(source)


@pytest.mark.parametrize(
    "change",
    [{"heads": torch.ones(2, 9)}, {"heads": torch.full((3, 4), torch.nan)}, {"rope": torch.ones(4, 8)},
     {"rope": torch.full((4, 8), torch.nan, dtype=torch.complex64)}],
)  # fmt: skip
def test_an_intervention_that_makes_no_sense_is_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        intervention.read(tiny("llama"), torch.tensor([1, 2, 3, 4]), **change)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma", "gemma2"])
def test_interventions_reach_other_architectures(kind):
    model, ids = tiny(kind, attention="eager"), torch.arange(12)
    plain = intervention.read(model, ids)
    still = intervention.read(model, ids, rope=intervention.turns(model, 12, still=range(8)))
    assert (plain.logits - still.logits).abs().max() > 1e-4
    off = intervention.read(model, ids, heads=torch.zeros(3, 4))
    assert (plain.logits - off.logits).abs().max() > 1e-4
