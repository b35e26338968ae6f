"""What a configuration alone says: each formula against a model made of it, the page against Python, bad files in a sentence."""

import json
import math

import live
import pytest
import torch
import transformers
from conftest import ROOT, javascript
from tiny_models import FAMILIES, tiny
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from course.maths import counting
from course.report import configuration, configured, line
from helpers import probe, rope

KINDS = ("llama", "mistral", "gemma3_text", "cohere2", "smollm3", "gpt2", "gemma2")
LISTED = configuration.FAMILIES["families"]
SMALL = {"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
# what a page may be given: hybrids, windows, chunks, no rotary positions, groups, latent vectors, missing fields
ODD = {
    "qwen3_next": {"model_type": "qwen3_next"},
    "interval": {"model_type": "qwen3_next", "full_attention_interval": 3},
    "jamba list": {"model_type": "jamba", "layers_block_type": ["mamba", "attention"] * 16},
    "bamba": {"model_type": "bamba", "attn_layer_indices": [3, 9], "rope_theta": 500.0},
    "falcon_h1": {"model_type": "falcon_h1"},
    "chunks": {"model_type": "llama4_text", "num_hidden_layers": 8, "torch_dtype": "float32"},
    "chunks alone": SMALL | {"layer_types": ["chunked_attention"] * 6, "attention_chunk_size": 4096, "rope_theta": 1e4},
    "window off": {"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": False},
    "window late": {"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 20},
    "narrow": {"model_type": "mistral", "sliding_window": 1},
    "cohere2": {"model_type": "cohere2"},
    "cohere2 whole": {"model_type": "cohere2", "sliding_window": None, "layer_types": ["full_attention"] * 40},
    "gemma3n": {"model_type": "gemma3n_text"},
    "gemma4": {"model_type": "gemma4_text"},
    "gemma3 inside": {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}, "torch_dtype": "bfloat16"},
    "gemma3 local": {"model_type": "gemma3_text", "rope_local_base_freq": 500.0, "rope_theta": 2e6, "sliding_window_pattern": 3},
    "gpt_neo": {"model_type": "gpt_neo"},
    "gptj": {"model_type": "gptj", "n_layer": 3},
    "neox": {"model_type": "gpt_neox", "rotary_pct": 0.25, "rotary_emb_base": 20_000},
    "bloom": {"model_type": "bloom", "n_layer": 4, "n_head": 8, "hidden_size": 256},
    "diffllama": {"model_type": "diffllama"},
    "lfm2": {"model_type": "lfm2", "layer_types": ["conv", "full_attention"] * 16},
    "conv alone": SMALL | {"layer_types": ["conv"] * 6, "conv_L_cache": 4},
    "unknown type": SMALL | {"model_type": "of_my_own", "vocab_size": 1},
    "unknown kind": SMALL | {"layer_types": ["indexed_attention"] * 6, "rope_theta": 1e5},
    "no type": SMALL | {"sliding_window": 16, "rope_theta": 1e5, "num_key_value_heads": 1, "dtype": "torch.float16"},
    "proto": SMALL | {"model_type": "__proto__", "rope_scaling": {"type": "constructor"}, "rope_theta": 1e4},
    "pairs": SMALL | {"head_dim": 14, "rope_theta": 30.0},
    "yarn": {"model_type": "llama", "rope_scaling": YARN | {"beta_fast": 16, "truncate": False}},
    "dynamic": {"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "linear": {"model_type": "llama", "rope_parameters": {"rope_type": "linear", "factor": 3}},
    "longrope": {"model_type": "phi3", "original_max_position_embeddings": 4096, "max_position_embeddings": 131072,
                 "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1 + k / 2 for k in range(48)]}},
    "unknown scaling": {"model_type": "llama", "rope_scaling": {"rope_type": "mine", "factor": 2.0}},
    "half ties": SMALL | {"hidden_size": 80, "num_key_value_heads": 4, "vocab_size": 2, "torch_dtype": "float64"},
    "shared": {"model_type": "gemma3n_text", "num_kv_shared_layers": 35},
    "large": SMALL | {"num_hidden_layers": 2000, "vocab_size": 100_000_000, "rope_theta": 1e14},
}  # fmt: skip
BAD = {
    "": "empty",
    "  \n": "empty",
    "[1]": "object",
    "3": "object",
    "null": "object",
    "not json": "JSON",
    '{"hidden_size": NaN}': "JSON",
    '{"hidden_size": 4,}': "JSON",
    "GGUF\x03\x00\x00\x00": "must be text",
    "\x08\x00\x00\x00": "must be text",
    '{"weight_map": {}, "metadata": {}}': "index",
    '{"tokenizer_class": "X"}': "tokenizer",
    '{"model_type": "nothing"}': "num_hidden_layers",
    '{"model_type": 3}': "num_hidden_layers",
    '{"model_type": "t5", "is_encoder_decoder": true}': "decoder",
    '{"model_type": "bert"}': "decoder",
    '{"model_type": "llama", "num_hidden_layers": -3}': "num_hidden_layers",
    '{"model_type": "llama", "num_hidden_layers": 2.5}': "num_hidden_layers",
    '{"model_type": "llama", "num_hidden_layers": true}': "num_hidden_layers",
    '{"model_type": "llama", "num_hidden_layers": 1e9}': "num_hidden_layers",
    '{"model_type": "llama", "hidden_size": "wide"}': "hidden_size",
    '{"model_type": "llama", "hidden_size": 16}': "hidden_size",
    '{"model_type": "llama", "sliding_window": 0}': "sliding_window",
    '{"model_type": "llama", "rope_theta": "big"}': "rope_theta",
    '{"model_type": "llama", "rope_theta": 1e16}': "rope_theta",
    '{"model_type": "llama", "rope_scaling": 8}': "rope_scaling",
    '{"model_type": "llama", "rope_scaling": {"type": "linear"}}': "factor",
    '{"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": -1}}': "factor",
    '{"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 2.5, "high_freq_factor": 1}}': "high_freq",
    '{"model_type": "llama", "rope_scaling": {"type": "longrope", "short_factor": [1, 2]}}': "_factor",
    '{"model_type": "llama", "layer_types": ["full_attention"]}': "layer_types",
    '{"model_type": "llama", "layer_types": "full_attention"}': "layer_types",
    '{"model_type": "llama", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]}': "sliding_window",
    '{"model_type": "kimi_linear"}': "layer_types",
    "{" * 100_000: "JSON",
}  # fmt: skip


# Against models -------------------------------------------------------------------------------------------------


def of(model) -> dict:
    return configuration.completed(model.model.config.to_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_a_configuration_are_those_of_its_model(kind):
    both = (
        {"layer_types": ["sliding_attention", "full_attention"] * 2}
        if kind == "gemma3_text"
        else {}
    )
    model = tiny(kind, num_hidden_layers=4, **both)
    said, found = configuration.layers(of(model)), probe.layers(model)
    assert [each.mixes for each in said] == [each.mixes for each in found]
    assert [each.window for each in said] == [each.window for each in found]
    assert [each.rotates for each in said] == [each.theta is not None for each in found]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_bytes_of_keys_and_values_are_those_of_the_cache(kind):
    model = tiny(kind)
    out = model.model(torch.arange(1, 41)[None], use_cache=True)
    cache = getattr(out, probe._cache_name(model))
    held = sum(part.numel() * 4 for layer in cache.layers for part in (layer.keys, layer.values))
    assert configuration.cache_bytes(of(model), 40, 4) == held


def test_first_token_reaches_the_last_as_in_the_model():
    """Windows of 16 in three layers: 46 tokens are reached, 47 are not."""
    model = tiny("mistral", num_hidden_layers=3, sliding_window=16)
    config = of(model)
    for n in (16, 31, 32, 46, 47):
        norms = probe.sensitivity(model, torch.arange(1, n + 1)).norms
        assert (norms[0] > 0) == (configuration.layers_to_reach(config, n) is not None), n
    assert [configuration.layers_to_reach(config, n) for n in (16, 17, 46, 47)] == [1, 2, 3, None]


def test_chunks_end_where_the_model_cuts_them():
    config = configuration.completed(
        SMALL | {"layer_types": ["chunked_attention"] * 6, "attention_chunk_size": 8}
    )
    assert configuration.layers_to_reach(config, 8) == 1
    assert configuration.layers_to_reach(config, 9) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k, each in LISTED.items() if "defaults" in each])
def test_defaults_of_a_family_are_those_of_its_class(kind):
    """Layers, rotary settings and sizes that the table fills in, against transformers' class."""
    made = CONFIG_MAPPING[kind]()
    if "irregular" in LISTED[kind] or not {*configuration.NEEDED} <= {*LISTED[kind]["defaults"]}:
        with pytest.raises(configuration.Refused):
            configuration.completed({"model_type": kind})
        return
    found = configuration.completed({"model_type": kind})
    kinds = getattr(made, "layer_types", None) or getattr(made, "layers_block_type", None)
    if kinds and "conv" not in kinds:
        assert found["layer_types"] == list(kinds)[: found["num_hidden_layers"]]
    for name in ("num_hidden_layers", "num_attention_heads", "vocab_size"):
        assert found.get(name) == getattr(made, name, found.get(name))


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 512},
        YARN,
        YARN | {"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.5] * 8, "original_max_position_embeddings": 512},
    ],
    ids=lambda scaling: scaling["rope_type"],
)  # fmt: skip
def test_scaled_frequencies_are_those_of_transformers(scaling):
    parts = SMALL | {"max_position_embeddings": 2048, "rope_parameters": scaling | {"rope_theta": 1e4}}  # fmt: skip
    made = transformers.LlamaConfig(**parts)
    for n in (100, 4096):
        found = configuration.frequencies(configuration.completed(parts), "", n)
        wanted, _ = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](made, "cpu", seq_len=n)
        assert torch.allclose(torch.tensor(found), wanted, rtol=1e-5)


def test_partial_rotary_factor_leaves_fewer_pairs():
    plain = configuration.facts(configuration.completed({"model_type": "gpt_neox"}), 2048)
    assert plain["rope"][0]["pairs"] == 12  # a quarter of 96
    whole = {"model_type": "gpt_neox", "rotary_pct": 1.0}
    assert configuration.facts(configuration.completed(whole), 2048)["rope"][0]["pairs"] == 48


def test_smallest_bases_hold_and_the_next_smaller_ones_fail():
    table = configuration._bases()
    for pairs, n in ((64, 4096), (32, 8192), (128, 1024)):
        base = configuration.smallest_base(pairs, n)
        assert rope.first_negative(2 * pairs, base, n) is None
        step = 10.0 ** (math.floor(math.log10(base)) - 1)
        for k in range(1, 6):
            assert rope.first_negative(2 * pairs, base - k * step, n) is not None
    assert {16, 32, 40, 48, 64, 128} <= {*table}


def test_counts_of_number_types_are_those_of_chapter_four():
    for _, name, limit in configuration.FORMATS.values():
        if limit is not None:
            assert limit == counting.first_token_limit(name)
        elif name == "fp32":
            assert counting.first_token_limit(name) > configuration.TOKENS


def test_base_of_a_known_model_is_the_chapters():
    found = configuration.facts(configuration.known("llama-2-7b"))
    assert found["rope"][0]["first_negative"] == rope.first_negative(128, 10_000, 4096) == 1707
    assert found["rope"][0]["smallest_base"] == 29_000


# The page against Python ---------------------------------------------------------------------------------------


def cases() -> list[dict]:
    known = [json.dumps(each["config"]) for each in configuration.names().values()]
    odd = [json.dumps(each) for each in ODD.values()]
    lengths = (None, 2, 3, 1_000, 4_097, 9_001)
    return [
        *({"text": text, "tokens": n} for text in known for n in (*lengths, 100_000)),
        *({"text": text, "tokens": n} for text in odd for n in lengths),
        *({"text": text, "tokens": None} for text in BAD),
        *({"text": known[0], "tokens": n} for n in (0, 1, 2.5, -4, 2**20 + 1)),
    ]


def of_python(text: str, tokens: int | None) -> dict:
    try:
        facts = configuration.facts(configuration.parsed(text), tokens)
    except configuration.Refused as refused:
        words = configuration.WORDS["refused"][refused.key]
        return {
            "refused": refused.key,
            "said": {name: each.format(**refused.slots) for name, each in words.items()},
        }
    said = {
        name: [row._asdict() for row in configured.Writer(facts, name).rows()]
        for name in ("en", "zh")
    }
    short = configured.short(configured.Writer(facts).rows(), facts["tokens"])
    return {"facts": facts, "said": said, "short": short}


def compare(found: object, wanted: object, where: str) -> None:
    """Fail where two nested values differ, numbers by more than rounding."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for name, value in wanted.items():
            compare(found[name], value, f"{where}, {name}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for k, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
            compare(mine, theirs, f"{where}[{k}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12), where
    else:
        assert found == wanted, where


@pytest.fixture(scope="module")
def shipped():
    return live.configurations()


def test_page_and_python_agree_number_by_number(shipped):
    """Ten known configurations, odd ones and bad ones, at several lengths, in both languages."""
    given = cases()
    for case, found in zip(given, javascript("configured", {"shipped": shipped, "cases": given}), strict=True):  # fmt: skip
        wanted = of_python(**case)
        compare(found, json.loads(json.dumps(wanted)), f"{case['text'][:90]} at {case['tokens']}")


def test_formats_that_the_page_knows_are_those_of_python(shipped):
    for name, (size, kind, counts) in configuration.FORMATS.items():
        text = json.dumps(SMALL | {"torch_dtype": name})
        (found,) = javascript("configured", {"shipped": shipped, "cases": [{"text": text, "tokens": 9}]})  # fmt: skip
        facts = found["facts"]
        assert (facts["bytes"], facts["format"], facts["counts"]) == (size, kind, counts)


# Bad input and the command ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_text_that_is_no_configuration_is_refused(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are asked below
        configuration.facts(configuration.parsed(text))
    assert BAD[text] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00\x01")
    for path in (tmp_path / "config.json", tmp_path / "absent.json"):
        with pytest.raises(ValueError, match=r"Drop the config\.json"):
            configuration.read(path)


@pytest.mark.parametrize("name", configuration.names())
def test_known_configurations_name_their_source(name):
    entry = configuration.names()[name]
    assert entry["source"].startswith("https://")
    assert entry["title"]
    rows = configured.rows(configuration.known(name), 100_000)
    assert {"length", "reach", "capacity", "cache", "layers"} <= {row.key for row in rows}


def test_command_writes_the_page_of_a_configuration(tmp_path, capsys):
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "mistral"} | FAMILIES["mistral"])
    )
    line.main([str(tmp_path / "config.json"), "--out", str(tmp_path / "out"), "--tokens", "400"])
    text = (tmp_path / "out/mistral-configuration.html").read_text()
    assert "Who reaches whom" in text
    assert "What it cannot say" in text
    assert "At 400 tokens" in capsys.readouterr().err
    numbers = json.loads((tmp_path / "out/mistral-configuration.json").read_text())
    assert numbers["facts"]["tokens"] == 400


def test_tokens_without_a_configuration_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        line.main(["copying", "--out", str(tmp_path), "--tokens", "400"])
    assert "--tokens" in capsys.readouterr().err


def test_tables_that_ship_are_the_tools():
    import configurations

    assert configuration.FAMILIES["command"] == "python tools/configurations.py families"
    assert (ROOT / "data/rope_smallest_bases.csv").read_text().count("tools/configurations.py")
    assert configurations.staircase(8)[:40] == configuration._bases()[8][:40]
