"""Probes against plain forward passes, on every supported architecture, with and without grouped keys."""

import types

import pytest
import torch
from devices import LittleMemory
from tiny_models import KINDS, VOCABULARY, byte_tokenizer, tiny
from tokenizers import processors

from course.chapter2 import interventions
from helpers import attention, data, models, probe


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
    monkeypatch.setattr(probe, "_CHUNK", 16)
    rows = probe.last_representations(model, ids)
    for n in (1, 7, 16, 17, 40):
        expected = plain(model, ids[:n]).hidden_states[-1][0, -1]
        torch.testing.assert_close(rows[n - 1], expected, rtol=1e-4, atol=1e-5)


def test_after_agrees_with_whole_sequences(model, ids, monkeypatch):
    monkeypatch.setattr(probe, "_CHUNK", 16)
    tails = [torch.tensor([5, 6, 7]), ids[:0], torch.tensor([9])]
    continuations = [(30, tails[0]), (5, tails[1]), (30, tails[2]), (1, tails[0]), (40, tails[1])]
    out = probe._after(model, ids, continuations)
    for row, (n, tail) in enumerate(continuations):
        whole = plain(model, torch.cat([ids[:n], tail]))
        torch.testing.assert_close(
            out.states[row], whole.hidden_states[-1][0, -1], rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(out.logits[row], whole.logits[0, -1], rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_read_in_smaller_chunks(model, ids, monkeypatch):
    """A pass of more than 10 tokens runs out of memory half-way through the layers."""
    forward = probe._forward

    def small(model, part, *arguments, **options):
        out = forward(model, part, *arguments, **options)
        if len(part) > 10:
            raise torch.OutOfMemoryError("too large")
        return out

    expected = (
        probe.last_representations(model, ids),
        probe._after(model, ids, [(40, ids[:3]), (20, ids[:0])]).states,
    )
    monkeypatch.setattr(probe, "_forward", small)
    torch.testing.assert_close(
        probe.last_representations(model, ids), expected[0], rtol=1e-4, atol=1e-5
    )
    found = probe._after(model, ids, [(40, ids[:3]), (20, ids[:0])]).states
    torch.testing.assert_close(found, expected[1], rtol=1e-4, atol=1e-5)


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


def test_margin_is_the_difference_of_two_logits(model):
    zero, one = (int(probe.encode(model, digit)[0]) for digit in "01")
    logits = torch.zeros(2, 300)
    logits[0, zero], logits[1, one] = 3.0, 5.0
    assert probe._margin(model, logits, "0", "1").tolist() == [3.0, -5.0]


def test_a_length_beyond_the_sequence_and_a_map_that_is_too_large_are_named(model, ids):
    with pytest.raises(ValueError, match="from 1 to 40"):
        probe._after(model, ids, [(41, ids[:1])])
    with pytest.raises(ValueError, match=r"at most 512.*not 800"):
        probe.attention_maps(model, ids.repeat(20))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_probes_agree_between_gpu_and_cpu(ids):
    cpu, gpu = models.load(device="cpu"), models.load(device="cuda")
    expected, found = (
        probe.last_representations(cpu, ids),
        probe.last_representations(gpu, ids).cpu(),
    )
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


# Heads ------------------------------------------------------------------------------------------------


OFFSETS = (0, 1, 5, 39)


@torch.inference_mode()
def full_maps(kind, ids):
    """All maps as transformers returns them: (layers, heads, n, n)."""
    maps = tiny(kind, attention="eager").model(ids[None], output_attentions=True).attentions
    return torch.stack([each[0] for each in maps])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [0, 3, 39])
def test_streamed_scores_equal_those_of_full_maps(kind, position, ids, monkeypatch):
    """Blocks of 16 rows do not divide 40 tokens; "gemma2" has windows of 8 in every second layer."""
    monkeypatch.setattr(probe, "_BLOCK", 16)
    model, maps = tiny(kind), full_maps(kind, ids)
    before = model.model.config._attn_implementation
    found = probe.head_scores(model, ids, position, OFFSETS)
    assert model.model.config._attn_implementation == before
    torch.testing.assert_close(
        found.sink.double(), attention.sink_score(maps, position), rtol=0, atol=1e-5
    )
    slashes = torch.stack([attention.slash_score(maps, offset) for offset in OFFSETS], -1)
    torch.testing.assert_close(found.slash.double(), slashes, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_computes_what_the_model_computes(kind, ids):
    model = tiny(kind)
    states, losses = interventions.with_hidden(model, ids)
    expected = plain(model, ids)
    torch.testing.assert_close(states, torch.cat(expected.hidden_states), rtol=1e-4, atol=1e-5)
    likely = expected.logits[0].log_softmax(-1)
    torch.testing.assert_close(
        losses, -likely[:-1].gather(1, ids[1:, None])[:, 0], rtol=1e-4, atol=1e-5
    )


def test_no_pass_holds_a_whole_map(ids, monkeypatch):
    """The largest tensor that softmax sees has BLOCK rows."""
    seen = []
    softmax = torch.Tensor.softmax
    monkeypatch.setattr(
        torch.Tensor, "softmax", lambda x, *a, **k: seen.append(x.shape) or softmax(x, *a, **k)
    )
    monkeypatch.setattr(probe, "_BLOCK", 8)
    probe.head_scores(tiny("llama"), ids, hide=39, since=39)  # hidden from nobody, and so by rows
    assert {rows for _, rows, _ in seen} == {8}


def test_scores_that_do_not_fit_are_read_in_smaller_blocks(ids, monkeypatch):
    expected = probe.head_scores(tiny("llama"), ids)
    unseen = probe._unseen

    def small(task, mask, start, stop, device):
        if stop - start > 10:
            raise torch.OutOfMemoryError("too large")
        return unseen(task, mask, start, stop, device)

    monkeypatch.setattr(probe, "_unseen", small)
    torch.testing.assert_close(probe.head_scores(tiny("llama"), ids).sink, expected.sink)


def test_maps_of_a_short_sequence(model, ids):
    found = probe.attention_maps(model, ids[:12])
    assert found.shape == (3, 4, 12, 12)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 4, 12))
    torch.testing.assert_close(found[:, :, -1], probe.attention_rows(model, ids[:12]))


def test_a_hidden_token_is_not_seen_by_later_ones(model, ids):
    """Changing what is hidden changes its own state and no other."""
    changed = ids.clone()
    changed[4] = (ids[4] + 1) % 100
    before, _ = interventions.with_hidden(model, ids, hide=4)
    after, _ = interventions.with_hidden(model, changed, hide=4)
    others = torch.arange(len(ids)) != 4
    torch.testing.assert_close(after[:, others], before[:, others])
    assert not torch.allclose(after[:, 4], before[:, 4])
    seen, _ = interventions.with_hidden(model, ids)
    assert not torch.allclose(seen[-1, 5:], before[-1, 5:], atol=1e-4)
    torch.testing.assert_close(seen[:, :5], before[:, :5])  # it still sees itself


def test_a_token_hidden_from_a_position_on_is_seen_before_it(model, ids):
    seen, _ = interventions.with_hidden(model, ids)
    part, _ = interventions.with_hidden(model, ids, hide=0, since=20)
    torch.testing.assert_close(part[:, :20], seen[:, :20])
    assert not torch.allclose(part[-1, 20], seen[-1, 20], atol=1e-4)


def test_an_attention_that_cannot_be_replaced_is_named(ids, monkeypatch):
    model = tiny("llama")
    monkeypatch.setattr(type(model.model), "set_attn_implementation", lambda *a: None)
    with pytest.raises(ValueError, match="does not let its attention be replaced"):
        probe.head_scores(model, ids)


# Sensitivity ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_exact_sensitivity_is_the_norm_of_the_jacobian(kind, ids):
    model, short = tiny(kind), ids[:6]
    embedded = model.model.get_input_embeddings()(short[None])

    def last(x):
        return model.model.base_model(inputs_embeds=x, use_cache=False).last_hidden_state[0, -1]

    jacobian = torch.autograd.functional.jacobian(last, embedded)[:, 0]  # (d, n, d)
    found = probe.sensitivity(model, short)
    torch.testing.assert_close(
        found.norms.float(), torch.linalg.vector_norm(jacobian, dim=(0, 2)), rtol=1e-4, atol=1e-5
    )
    assert (found.errors == 0).all()


def test_random_directions_are_right_on_average_and_say_how_far_off_they_are(ids):
    model, short = tiny("llama"), ids[:10]
    exact = probe.sensitivity(model, short).norms
    runs = [probe.sensitivity(model, short, probes=8, seed=seed) for seed in range(60)]
    squares = torch.stack([run.norms.square() for run in runs])
    torch.testing.assert_close(
        squares.mean(0), exact.square(), rtol=0.08, atol=0
    )  # the norm's square is unbiased
    told = torch.stack([run.errors for run in runs]).square().mean(0).sqrt()
    seen = torch.stack([run.norms - exact for run in runs]).square().mean(0).sqrt()
    assert ((told / seen) > 0.7).all()
    assert ((told / seen) < 1.4).all()


def test_all_directions_are_exact(ids):
    model, short = tiny("gpt2"), ids[:5]
    found = probe.sensitivity(model, short, probes=64)
    torch.testing.assert_close(
        found.norms, probe.sensitivity(model, short).norms, rtol=1e-4, atol=1e-6
    )
    assert (found.errors < 1e-6).all()


# What opens a text ---------------------------------------------------------------------------------------


class _Leading(torch.nn.Module):
    """A network that predicts the right token if the sequence begins with one of `fine`, else chooses at random."""

    def __init__(self, fine, size):
        super().__init__()
        self.fine, self.size, self.device = fine, size, torch.device("cpu")
        self.config = tiny("llama").model.config

    def forward(self, ids, **_):
        logits = torch.randn(*ids.shape, self.size, generator=torch.Generator().manual_seed(0)) / 10
        if int(ids[0, 0]) in self.fine:
            logits[:, :-1].scatter_(2, ids[:, 1:, None], 9.0)
        return types.SimpleNamespace(logits=logits)


def _led(fine, bos="<bos>", eos="<bos>"):
    tokenizer = byte_tokenizer()
    tokenizer.bos_token, tokenizer.eos_token = bos, eos
    return models.LanguageModel(_Leading(fine, len(VOCABULARY)), tokenizer)


def test_a_text_is_opened_as_the_tokenizer_opens_it():
    """Also with two tokens; no loss is then compared."""
    model = _led({5})
    whole = model.tokenizer
    whole.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> <bos> $A <bos>", special_tokens=[("<bos>", 0)]
    )
    found = probe.opening(model)
    assert (found.tokens.tolist(), found.losses) == ([0, 0], {})
    assert probe.first_token(model).tolist() == [0]


def test_where_the_tokenizer_adds_nothing_the_loss_decides_and_chance_does_not():
    same = probe.opening(_led(set()))
    assert (same.tokens.tolist(), same.how) == ([0], "its BOS")
    bare = probe.opening(_led({int(probe.encode(_led(set()), data.prose())[0])}))
    assert bare.tokens.tolist() == []
    assert "its BOS loses more" in bare.how
    assert bare.losses["nothing"] < bare.losses["<bos>"] - 3
    ended = probe.opening(_led({VOCABULARY.index("!")}, eos="!"))
    assert ended.tokens.tolist() == [VOCABULARY.index("!")]


def test_a_row_of_equal_tokens_has_another_one_in_front_though_texts_have_none():
    model = _led({int(probe.encode(_led(set()), data.prose())[0])})
    assert len(probe.opening(model).tokens) == 0
    assert probe.first_token(model).tolist() == [0]
    neither = _led(set(), bos=None, eos=None)
    assert len(probe.opening(neither).tokens) == 0
    with pytest.raises(ValueError, match="neither a BOS nor"):
        probe.first_token(neither)


@pytest.mark.slow
def test_the_embedded_model_is_opened_by_its_bos(smollm2):
    """Its tokenizer adds nothing; nothing in front loses less than its BOS, but by less than chance."""
    found = probe._found_opening(smollm2)
    assert (
        found.tokens.tolist()
        == [smollm2.tokenizer.bos_token_id]
        == probe.opening(smollm2).tokens.tolist()
    )
    assert found.losses == pytest.approx(probe._OPENED, abs=2e-3)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral"])
def test_scores_by_logsumexp_equal_maps_to_a_millionth(kind, ids):
    """Large weights, so that heads look somewhere; several positions and offsets."""
    model = tiny(kind, initializer_range=0.3)
    maps = probe.attention_maps(model, ids).double()
    for position, offsets in ((0, (0, 1)), (5, (3, 39))):
        found = probe.head_scores(model, ids, position, offsets)
        torch.testing.assert_close(
            found.sink.double(), maps[..., position:, position].mean(-1), atol=1e-6, rtol=0
        )
        for k, offset in enumerate(offsets):
            expected = maps.diagonal(-offset, -2, -1).mean(-1)
            torch.testing.assert_close(found.slash[..., k].double(), expected, atol=1e-6, rtol=0)


def test_scores_by_logsumexp_need_less_memory_than_one_map():
    ids = torch.arange(400) % 200
    model = tiny("llama", max_position_embeddings=1024)
    probe.layers(model)
    with LittleMemory(4 * len(ids) ** 2 - 1) as memory:
        probe.head_scores(model, ids)
    assert not memory.refused


def test_scores_by_logsumexp_equal_those_by_rows(ids):
    model = tiny("llama", initializer_range=0.3)
    fast, slow = (
        probe.head_scores(model, ids),
        probe.head_scores(model, ids, hide=39, since=39),
    )  # hidden from nobody
    torch.testing.assert_close(fast.sink, slow.sink, atol=1e-6, rtol=0)
    torch.testing.assert_close(fast.slash, slow.slash, atol=1e-6, rtol=0)


def test_a_token_that_no_text_has_is_not_hidden_in_silence():
    model = tiny("llama")
    ids = torch.arange(3)
    with probe.attention_knockout(model, 2):
        probe.loss(model, ids)
    with (
        pytest.raises(
            ValueError, match="one of the 3 tokens that the model reads, from 0 to 2, not 1000000"
        ),
        probe.attention_knockout(model, 10**6),
    ):
        probe.loss(model, ids)
