"""Arguments that would fill a machine, end in an error from deep below, or be taken without a word."""

import types

import pytest
import torch
import transformers
from tiny_models import tiny

from course.report.subject import Subject
from helpers import (
    attention,
    collapse,
    compute,
    graphs,
    intervention,
    models,
    probe,
    require,
    words,
)
from helpers.models import _package

MODEL = tiny("llama")
REFUSED = {
    "graphs of a billion nodes": (lambda: graphs.family("path", 10**9), "nodes"),
    "a million layers": (lambda: graphs.jacobian_norms(graphs.family("path"), 0, 10**6), "layers"),
    "a mask of a terabyte": (lambda: attention.causal_mask(2**40), "n must"),
    "a sparse tensor": (lambda: attention.sink_score(torch.eye(3).to_sparse()), "dense"),
    "a tensor without numbers": (
        lambda: collapse.round_to(torch.ones(2, device="meta"), "bf16"),
        "meta",
    ),
    "an array": (lambda: attention.sink_score(torch.eye(3).numpy()), "must be a tensor"),
    "half a letter": (lambda: probe.encode(MODEL, "\ud800"), "surrogate"),
    "rounding to integers": (
        lambda: collapse.round_to(torch.ones(2), torch.int8),
        "floating-point",
    ),
    "weights of integers": (lambda: compute.dtype(torch.int64), "floating-point"),
    "a number for a model": (lambda: models.load(3), "a hub id, a folder or a decoder"),
    "nothing for a model": (lambda: models.load(None), "a hub id, a folder or a decoder"),
    "a report on nothing": (lambda: Subject(""), "not empty"),
    "a model without its tokenizer": (lambda: models.load(MODEL.model), "tokenizer"),
    "a model of transformers": (
        lambda: probe.head_scores(MODEL.model, "x"),
        "models.load(model, tokenizer=tokenizer)",
    ),
    "a text past the positions": (
        lambda: probe.loss(tiny("gpt2"), torch.arange(600) % 100),
        "at most 512 tokens",
    ),
    "interventions past the positions": (
        lambda: intervention.read(tiny("gpt2", max_position_embeddings=64), torch.arange(80)),
        "at most 64 tokens",
    ),
    "words in a list": (lambda: words.use([1]), "table must be a mapping"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_a_sentence(name):
    call, expected = REFUSED[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are asked below
        call()
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rope_model_reads_past_its_context():
    assert probe.loss(MODEL, torch.arange(600) % 100) > 0


def test_model_in_memory_equals_a_loaded_one():
    network, tokenizer = MODEL
    own = models.load(network, tokenizer=tokenizer)
    assert own.model is network
    ids = torch.cat([probe.opening(own).tokens, probe.encode(own, "The cat sat.")])
    text, tokens = probe.head_scores(own, "The cat sat."), probe.head_scores(own, ids)
    assert torch.equal(text.sink, tokens.sink)
    assert torch.equal(text.slash, tokens.slash)


def test_encoder_in_memory_is_refused():
    config = transformers.BertConfig(
        vocab_size=257,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    network = transformers.BertLMHeadModel(config)
    with pytest.raises(ValueError, match="encoder"):
        models.load(network, tokenizer=MODEL.tokenizer)


def test_frequency_use_equals_queries_by_hand():
    found = probe.frequency_use(MODEL, "The cat sat on the mat.")
    ids = torch.cat([probe.opening(MODEL).tokens, probe.encode(MODEL, "The cat sat on the mat.")])
    queries, keys = probe.queries_and_keys(MODEL, ids)[1]
    for norms, x in ((found.queries[1], queries), (found.keys[1], keys)):
        expected = torch.stack(
            [torch.hypot(x[:, 1:, i], x[:, 1:, i + 8]).mean(1) for i in range(8)], 1
        )
        torch.testing.assert_close(norms, expected)


@pytest.mark.parametrize("manifest", ["[]", "null", "3", '{"format": 1}'])
def test_broken_manifest_is_no_cache(manifest, tmp_path):
    (tmp_path / "manifest.json").write_text(manifest)
    assert not _package._intact(tmp_path, _package.SMOLLM2)


def test_cache_that_is_a_file_names_the_way_out(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(OSError, match="HELPERS_CACHE"):
        _package._make_writable(tmp_path / "cache/models")


def test_keys_and_values_have_the_name_of_the_release():
    """transformers calls them `cache` from 5.24 on, and takes `past_key_values` away in 5.40."""

    class Network:
        def forward(self, input_ids, cache=None):
            return None

    new = models.LanguageModel(Network(), None)
    assert probe._cache_name(new) == "cache"
    assert probe._cache_of(new, types.SimpleNamespace(cache=3)) == 3
    assert probe._cache_name(MODEL) in ("cache", "past_key_values")


def test_dense_tensor_is_returned():
    x = torch.ones(2)
    assert require.dense("x", x) is x
