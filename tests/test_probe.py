"""Probes against plain forward passes, on every supported architecture, with and without grouped keys."""

import pytest
import torch
from tiny_models import tiny

from helpers import probe

KINDS = ["llama", "qwen2", "gemma", "gemma2", "gpt2"]


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return tiny(request.param)


@pytest.fixture(scope="module")
def ids():
    return torch.randint(0, 100, (40,), generator=torch.Generator().manual_seed(0))


@torch.inference_mode()
def plain(model, ids):
    return model.model(ids[None], output_hidden_states=True)


def test_one_pass_gives_every_prefix(model, ids, monkeypatch):
    monkeypatch.setattr(probe, "CHUNK", 16)
    rows = probe.last_representations(model, ids)
    for n in (1, 7, 16, 17, 40):
        expected = plain(model, ids[:n]).hidden_states[-1][0, -1]
        torch.testing.assert_close(rows[n - 1], expected, rtol=1e-4, atol=1e-5)


def test_after_agrees_with_whole_sequences(model, ids, monkeypatch):
    monkeypatch.setattr(probe, "CHUNK", 16)
    tails = [torch.tensor([5, 6, 7]), ids[:0], torch.tensor([9])]
    continuations = [(30, tails[0]), (5, tails[1]), (30, tails[2]), (1, tails[0]), (40, tails[1])]
    out = probe.after(model, ids, continuations)
    for row, (n, tail) in enumerate(continuations):
        whole = plain(model, torch.cat([ids[:n], tail]))
        torch.testing.assert_close(out.states[row], whole.hidden_states[-1][0, -1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(out.logits[row], whole.logits[0, -1], rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_read_in_smaller_chunks(model, ids, monkeypatch):
    """A pass of more than 10 tokens runs out of memory half-way through the layers."""
    forward = probe._forward

    def small(model, part, *arguments, **options):
        out = forward(model, part, *arguments, **options)
        if len(part) > 10:
            raise torch.OutOfMemoryError("too large")
        return out

    expected = probe.last_representations(model, ids), probe.after(model, ids, [(40, ids[:3]), (20, ids[:0])]).states
    monkeypatch.setattr(probe, "_forward", small)
    torch.testing.assert_close(probe.last_representations(model, ids), expected[0], rtol=1e-4, atol=1e-5)
    found = probe.after(model, ids, [(40, ids[:3]), (20, ids[:0])]).states
    torch.testing.assert_close(found, expected[1], rtol=1e-4, atol=1e-5)


def test_hidden_states_by_layer(model, ids):
    found = probe.hidden_states(model, ids)
    expected = torch.stack([state[0, -1] for state in plain(model, ids).hidden_states])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_attention_rows_are_the_last_row_of_the_full_map(kind, ids):
    model, full = tiny(kind), tiny(kind, attention="eager")
    rows = probe.attention_rows(model, ids)
    with torch.inference_mode():
        maps = full.model(ids[None], output_attentions=True).attentions
    torch.testing.assert_close(rows, torch.stack([a[0, :, -1] for a in maps]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:2]))
    before = model.model.config._attn_implementation
    probe.attention_rows(model, ids)
    assert model.model.config._attn_implementation == before


def test_grouped_and_ungrouped_keys_both_work(ids):
    for heads in (1, 2, 4):
        model = tiny("llama", num_key_value_heads=heads)
        expected = plain(model, ids).hidden_states[-1][0]
        torch.testing.assert_close(probe.last_representations(model, ids), expected, rtol=1e-4, atol=1e-5)


def test_margin_is_the_difference_of_two_logits(model):
    zero, one = (int(probe.encode(model, digit)[0]) for digit in "01")
    logits = torch.zeros(2, 300)
    logits[0, zero], logits[1, one] = 3.0, 5.0
    assert probe.margin(model, logits, "0", "1").tolist() == [3.0, -5.0]


def test_bad_input_is_named(model, ids):
    for call, message in (
        (lambda: probe.last_representations(model, ids[:0]), "at least one token"),
        (lambda: probe.after(model, ids, []), "lengths must be between"),
        (lambda: probe.after(model, ids, [(41, ids[:1])]), "between 1 and 40"),
        (lambda: probe.attention_rows(model, ids[:1]), "at least two tokens"),
        (lambda: probe.margin(model, torch.zeros(300), "00", "1"), "right must be one token"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_probes_agree_between_gpu_and_cpu(ids):
    from helpers import models

    cpu, gpu = models.load(device="cpu"), models.load(device="cuda")
    expected, found = probe.last_representations(cpu, ids), probe.last_representations(gpu, ids).cpu()
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
