"""What a configuration alone says: each formula against a model made of it, and bad files in a sentence."""

import json

import pytest
import torch
from tiny_models import FAMILIES, tiny

from course.report import configuration, line
from helpers import probe

KINDS = ("llama", "mistral", "gemma3_text", "cohere2", "smollm3", "gpt2", "gemma2")


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_a_configuration_are_those_of_its_model(kind):
    both = (
        {"layer_types": ["sliding_attention", "full_attention"] * 2}
        if kind == "gemma3_text"
        else {}
    )
    model = tiny(kind, num_hidden_layers=4, **both)
    said = configuration.layers(configuration.completed(model.model.config.to_dict()))
    found = probe.layers(model)
    assert [each.mixes for each in said] == [each.mixes for each in found]
    assert [each.window for each in said] == [each.window for each in found]
    assert [each.rotates for each in said] == [each.theta is not None for each in found]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_bytes_of_keys_and_values_are_those_of_the_cache(kind):
    model = tiny(kind)
    out = model.model(torch.arange(1, 41)[None], use_cache=True)
    cache = getattr(out, probe._cache_name(model))
    held = sum(part.numel() * 4 for layer in cache.layers for part in (layer.keys, layer.values))
    assert (
        configuration.cache_bytes(configuration.completed(model.model.config.to_dict()), 40, 4)
        == held
    )


def test_first_token_reaches_the_last_as_in_the_model():
    """Windows of 16 in three layers: 46 tokens are reached, 47 are not."""
    model = tiny("mistral", num_hidden_layers=3, sliding_window=16)
    config = configuration.completed(model.model.config.to_dict())
    for n in (16, 31, 32, 46, 47):
        norms = probe.sensitivity(model, torch.arange(1, n + 1)).norms
        assert (norms[0] > 0) == (configuration.layers_to_reach(config, n) is not None), n
    assert [configuration.layers_to_reach(config, n) for n in (16, 17, 46, 47)] == [1, 2, 3, None]


def test_base_of_a_known_model_is_the_chapters():
    rows = {row.what: row for row in configuration.rows(configuration.known("llama"))}
    assert "first negative at distance 1,707" in rows["Base of RoPE"].value
    assert rows["Base of RoPE"].warns


@pytest.mark.parametrize("name", configuration.KNOWN)
def test_known_configurations_have_rows_at_100_000_tokens(name):
    rows = configuration.rows(configuration.known(name), 100_000)
    assert {"Layers", "Who reaches whom", "Keys and values", "Rounding"} <= {
        row.what for row in rows
    }
    assert all(row.value for row in rows)


def test_command_writes_the_page_of_a_configuration(tmp_path, capsys):
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "mistral"} | FAMILIES["mistral"])
    )
    line.main([str(tmp_path / "config.json"), "--out", str(tmp_path / "out")])
    text = (tmp_path / "out/mistral-configuration.html").read_text()
    assert "Who reaches whom" in text
    assert "What it cannot say" in text
    assert "Keys and values" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "object"),
        ("not json", "JSON"),
        ('{"model_type": "nothing"}', "num_hidden_layers"),
        ('{"model_type": "llama", "num_hidden_layers": -3}', "num_hidden_layers"),
        ('{"model_type": "llama", "hidden_size": "wide"}', "hidden_size"),
    ],
)
def test_file_that_is_no_configuration_is_refused(text, words, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are asked below
        configuration.read(tmp_path / "config.json")
    assert words in str(caught.value)
