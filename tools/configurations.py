"""Write the data of the page "Read a config.json".

The data are the defaults of transformers' classes by model type, and the smallest bases of RoPE.

    python tools/configurations.py families    src/course/report/families.json, in a few seconds
    python tools/configurations.py bases       data/rope_smallest_bases.csv, in about five minutes
    on one core

The entry of a family has the fields that its class fills in if a file leaves them out, older names
of fields, RoPE's settings and the cycle of its layers. `tests/test_configuration.py` compares each
entry with the class.
"""

import argparse
import json
import platform
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
OUT = ROOT / "src/course/report/families.json"
TABLE = ROOT / "data/rope_smallest_bases.csv"

LIMITS = {
    "num_hidden_layers": (1, 2_000),
    "hidden_size": (1, 1_000_000),
    "num_attention_heads": (1, 10_000),
    "num_key_value_heads": (1, 10_000),
    "num_global_key_value_heads": (1, 10_000),
    "head_dim": (1, 100_000),
    "global_head_dim": (1, 100_000),
    "vocab_size": (1, 100_000_000),
    "max_position_embeddings": (1, 2**40),
    "original_max_position_embeddings": (1, 2**40),
    "sliding_window": (1, 2**40),
    "attention_chunk_size": (1, 2**40),
    "kv_lora_rank": (1, 1_000_000),
    "qk_rope_head_dim": (1, 100_000),
    "rotary_dim": (1, 100_000),
    "num_kv_shared_layers": (0, 2_000),
    "max_window_layers": (0, 2_000),
    "attn_layer_period": (1, 2_000),
    "attn_layer_offset": (0, 2_000),
    "no_rope_layer_interval": (1, 2_000),
    "sliding_window_pattern": (1, 2_000),
    "full_attention_interval": (1, 2_000),
    "global_attn_every_n_layers": (1, 2_000),
    "conv_L_cache": (1, 10_000),
}
INTERVALS = (
    "sliding_window_pattern",
    "full_attention_interval",
    "global_attn_every_n_layers",
    "no_rope_layer_interval",
)
FIELDS = (*LIMITS, "use_sliding_window")
# keyed by name: the default value in the code, the least and the largest value
SCALING = (
    ("factor", None, 1, 1_000_000),
    ("partial_rotary_factor", 1.0, 0, 1),
    ("original_max_position_embeddings", None, 1, 2**40),
    ("low_freq_factor", 1.0, 0.001, 1_000_000_000),
    ("high_freq_factor", 4.0, 0.001, 1_000_000_000),
    ("beta_fast", 32.0, 0.001, 1_000_000_000),
    ("beta_slow", 1.0, 0.001, 1_000_000_000),
)
# older names of fields, for every model type
ALIASES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "n_ctx": "max_position_embeddings",
    "max_seq_len": "max_position_embeddings",
    "seq_length": "max_position_embeddings",
    "model_max_length": "max_position_embeddings",
    "rotary_pct": "partial_rotary_factor",
    "rotary_emb_base": "rope_theta",
    "sliding_window_size": "sliding_window",
    "num_kv_heads": "num_key_value_heads",
    "_sliding_window_pattern": "sliding_window_pattern",
}
# families whose code rotates only layers with a window, which no field of the file says
ROTATE_IN_WINDOWS = ("afmoe", "cohere2", "exaone4", "exaone_moe", "flint", "kolibri1")
POSITIONS = {"bloom": "alibi", "mpt": "alibi"} | dict.fromkeys(
    ("gpt2", "gpt_neo", "gpt_bigcode", "opt", "biogpt"), "learned"
)
MORE = {
    "gpt_neo": {
        "layers": ["full_attention", "sliding_attention"],
        "aliases": {"window_size": "sliding_window"},
    }
}


def families() -> dict[str, dict]:
    """Return the defaults of all model types, keyed by model type.

    We include each type that has a causal language model or is the text part of another type.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kinds = {
        *MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *(k for k in CONFIG_MAPPING_NAMES if k.endswith("_text")),
    }
    entries = {}
    for kind in sorted(kinds):
        try:
            instance = CONFIG_MAPPING[kind]()
            alone = instance.get_text_config() is instance
        # a few classes need arguments or have several text models, so they get no entry
        except Exception:
            continue
        if alone:
            entries[kind] = entry(kind, type(instance))
    return entries


def entry(kind: str, configuration: type) -> dict[str, Any]:
    """Return the fields that a configuration class fills in."""
    plain = configuration()
    if plain.is_encoder_decoder or hasattr(plain, "type_vocab_size"):
        return {"encoder": True}
    fields: dict[str, Any] = {"defaults": {}}
    for name in FIELDS:
        value = _field(plain, name)
        least, most = LIMITS.get(name, (0, 1))
        if (
            isinstance(value, int | bool)
            and least <= value <= most
            and not _derived(configuration, plain, name)
        ):
            fields["defaults"][name] = value
    aliases = {old: new for new, old in plain.attribute_map.items() if new in FIELDS}
    fields["aliases"] = aliases | MORE.get(kind, {}).get("aliases", {})
    rotary = getattr(plain, "rope_parameters", None) or {}
    fields["rope"] = rotary or ({"rope_theta": 10_000.0} if hasattr(plain, "rotary_dim") else None)
    fields["position"] = POSITIONS.get(kind, "")
    fields |= _layers(configuration) | {
        k: v for k, v in MORE.get(kind, {}).items() if k != "aliases"
    }
    if _wrong(plain, fields):
        fields |= {"layers": None, "interval": None, "irregular": True}
    fields["unrotated"] = getattr(plain, "no_rope_layers", None) is not None
    return {name: value for name, value in fields.items() if value or name in ("rope", "defaults")}


def _field(plain: Any, name: str) -> object:
    """Return a field of a configuration, or its value in the first layer if layers differ."""
    try:
        return getattr(plain, name, None)
    except Exception:
        return getattr(plain.per_layer_config[0], name, None)


def _wrong(plain: Any, fields: dict[str, Any]) -> bool:
    """Return whether an entry gives a different order of layers than the class."""
    from course.report import configuration

    listed = getattr(plain, "layer_types", None) or getattr(plain, "layers_block_type", None)
    if not listed or fields.get("irregular") or "num_hidden_layers" not in fields["defaults"]:
        return False
    mine = configuration._kinds(fields["defaults"], fields)
    return mine != list(listed)[: len(mine)]


def _derived(configuration: type, plain: Any, name: str) -> bool:
    """Return whether a class computes a field from the width or from the number of heads."""
    for source in ("hidden_size", "num_attention_heads"):
        size = _field(plain, source)
        if name == source or not isinstance(size, int):
            continue
        try:
            changed = configuration(**{source: 2 * size})
        except Exception:
            continue
        if _field(changed, name) != _field(plain, name):
            return True
    return False


def _kinds(configuration: type, **arguments: object) -> list[str] | None:
    """Return the kinds of layers that a configuration class fills in for a given depth."""
    try:
        plain = configuration(**arguments)
    except Exception:
        return None
    listed = getattr(plain, "layer_types", None) or getattr(plain, "layers_block_type", None)
    return list(listed) if listed else None


def _layers(configuration: type) -> dict[str, Any]:
    """Return the pattern in which a class arranges its layers, and the field for its length."""
    plain = configuration()
    listed = _kinds(configuration, num_hidden_layers=36)
    if (
        not listed
        or getattr(plain, "max_window_layers", None) is not None
        or getattr(plain, "attn_layer_period", None)
    ):
        return {}
    cycle = None
    for whole in (
        len(listed),
        len(listed) - 6,
    ):  # the last layers may differ, so we look for a pattern that repeats before them
        for p in range(1, whole // 2 + 1):
            if cycle is None and all(listed[k] == listed[k % p] for k in range(whole)):
                cycle = listed[:p]
    if cycle is None:
        return {"irregular": True}
    layout: dict[str, Any] = {"layers": cycle}
    every = len(cycle) + 1
    one_cycle = [cycle[0]] * (every - 1) + ["full_attention"]
    for name in INTERVALS if cycle == [cycle[0]] * (len(cycle) - 1) + ["full_attention"] else ():
        made_so = _kinds(configuration, num_hidden_layers=36, **{name: every}) or []
        if len(cycle) > 1 and made_so[:every] == one_cycle:
            layout["interval"] = name
    return layout


def write_families() -> None:
    """Write the table of defaults to its file."""
    import transformers

    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    facts = {
        "what": "Defaults of transformers' configuration classes by model type",
        "command": "python tools/configurations.py families",
        "transformers": transformers.__version__,
        "limits": LIMITS,
        "scaling": SCALING,
        "outside": ["partial_rotary_factor"],
        "aliases": ALIASES,
        "rotate_in_windows": ROTATE_IN_WINDOWS,
    }
    lines = ",\n".join(f'  "{k}": {json.dumps(v)}' for k, v in families().items())
    head = ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in facts.items())
    OUT.write_text(f'{{\n{head},\n "families": {{\n{lines}\n }}\n}}\n')


PAIRS = (8, 10, 12, 16, 20, 24, 32, 36, 40, 44, 48, 52, 56, 60, 64, 80, 96, 128, 256)
LIMIT = 2**20


def staircase(pairs: int) -> list[tuple[float, int]]:
    """Return the two-digit bases of RoPE that work for more tokens than any smaller base.

    The list ends at a base of 1.1 · 10¹² or at `LIMIT` tokens.
    """
    from helpers import rope

    best, stairs = 0, []
    for base in (float(f"{m}e{k - 1}") for k in range(13) for m in range(10, 100)):
        if base <= 1 or (best and rope.first_negative(2 * pairs, base, best + 1) is not None):
            continue
        first = rope.first_negative(2 * pairs, base, LIMIT)
        best = first or LIMIT
        stairs.append((base, best))
        if first is None:
            break
    return stairs


def write_bases() -> None:
    """Write the table of smallest bases to its file."""
    import torch

    start = time.time()
    torch.set_num_threads(1)
    rows = [f"{pairs},{base:g},{holds}" for pairs in PAIRS for base, holds in staircase(pairs)]
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = [
        (
            "Bases of RoPE of two digits whose sums of cosines are nowhere negative below more "
            "tokens than with any smaller one of"
        ),
        (
            "them, by the number of rotary pairs; holds_below: the first distance with a "
            f"negative sum, or {LIMIT} where there is none below it"
        ),
        "command: python tools/configurations.py bases",
        (
            f"  {date}, seed none, 1 CPU core ({platform.machine()}), Python "
            f"{platform.python_version()}, torch {torch.__version__}, {time.time() - start:.0f} s"
        ),
    ]
    TABLE.write_text(
        "\n".join([*(f"# {line}" for line in head), "pairs,base,holds_below", *rows]) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "what",
        choices=["families", "bases"],
        help="defaults of each model type, or the smallest bases of RoPE",
    )
    {"families": write_families, "bases": write_bases}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
