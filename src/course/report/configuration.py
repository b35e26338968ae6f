"""Derive facts about a model from its configuration alone, for a text of n tokens.

The facts say for each layer which tokens it can attend to and whether it rotates queries and keys,
and they include the numbers that follow, such as the size of the cache.

`python -m course.report config.json --out reports` writes the facts as a page (`configured.py`)
without loading weights, and `frontend/live/configuration.js` computes the same facts in the
reader's browser. `tests/test_configuration.py` compares the two number by number. If a file leaves
fields out, we take them from `families.json`, the defaults of transformers' classes by model type,
which `tools/configurations.py` writes.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from helpers import data

FOLDER = Path(__file__).parent
FAMILIES = json.loads((FOLDER / "families.json").read_text(encoding="utf-8"))
WORDS = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
NEEDED = ("num_hidden_layers", "hidden_size", "num_attention_heads")
LIMITS = FAMILIES["limits"]  # the least and the largest integer that we read, keyed by field
TOKENS = 2**20  # the longest text for which we compute facts
LARGEST = 2_000_000  # the largest number of characters in a file
ASKED = 100_000  # the number of tokens if the configuration names no context
# a configuration of several models has the text model's configuration under one of these names
PARTS = ("text_config", "language_config", "llm_config")
# keyed by the format's name in the file: bytes of a number, the course's name, and how far one
# weight counts (`course.maths.counting.first_token_limit`, or None if no text that we compute is
# longer)
FORMATS = {
    "bfloat16": (2, "bf16", 188),
    "float16": (2, "fp16", 1_463),
    "float32": (4, "fp32", None),
    "float64": (8, "fp64", None),
}
SCALINGS = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
DOUBT = 1e-9  # we do not call a sum of cosines negative if it is nearer to 0 than this


class Layer(NamedTuple):
    """Hold what a configuration says about a layer."""

    mixes: str  # "attention", or the configuration's name for something else
    window: int | None  # the number of tokens in the window or the chunk, or None for all tokens
    rotates: bool
    chunked: bool = False
    kind: str = "full_attention"  # the name of the layer's kind in layer_types


class Refused(ValueError):
    """Raise this error if a configuration cannot be read.

    The message is the sentence `WORDS["refused"][key]`. The sentence contains names in braces, and
    `slots` gives the value that replaces each name.
    """

    def __init__(self, key: str, **slots: object) -> None:
        super().__init__(WORDS["refused"][key]["en"].format(**slots))
        self.key, self.slots = key, slots


def takes(name: str) -> bool:
    """Return whether a name is the path of a configuration file."""
    path = Path(name).expanduser()
    return path.suffix == ".json" and path.is_file()


def read(path: str | Path) -> dict:
    """Read a configuration file, and fill in the fields that it leaves out.

    If the model has several parts, return the configuration of the part for text.

    Raises:
        ValueError: if the file is not a JSON object, or lacks layers, width or heads.
    """
    try:
        return parsed(Path(path).expanduser().read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        raise Refused("binary") from None


def parsed(text: str) -> dict:
    """Parse the JSON text of a configuration, and fill in the fields that it leaves out.

    Raises:
        ValueError: if the text is not a JSON object, or lacks the number of layers, the width or
            the number of heads.

    >>> found = parsed('{"model_type": "llama", "num_hidden_layers": 2}')
    >>> found["hidden_size"], found["layer_types"]
    (4096, ['full_attention', 'full_attention'])
    """
    if not text.strip():
        raise Refused("empty")
    if any(ord(c) < 9 or c == "\ufffd" for c in text[:1000]):
        raise Refused("binary")
    if len(text) > LARGEST:
        raise Refused("large", most=LARGEST)
    try:
        config = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused("json") from None
    if not isinstance(config, dict):
        raise Refused("object")
    return completed(_of_text(config))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _of_text(config: dict) -> dict:
    """Return the part of a configuration that describes the text model.

    We refuse the other JSON files of a model's folder, such as those of a tokenizer, and name the
    file in the message.
    """
    if "model_type" not in config and "num_hidden_layers" not in config:
        if "weight_map" in config:
            raise Refused("index")
        if "tokenizer_class" in config or "added_tokens" in config:
            raise Refused("tokenizer")
    for name in PARTS:
        if isinstance(config.get(name), dict):
            outer = {k: config[k] for k in ("dtype", "torch_dtype", "_name_or_path") if k in config}
            return outer | config[name]
    return config


def completed(config: Mapping[str, Any]) -> dict:
    """Fill in the fields of a configuration that its file leaves to the defaults of its model type.

    Args:
        config: the object in the file. Old names of a field (n_embd) are replaced by the current
            ones (hidden_size).

    Raises:
        ValueError: if layers, width or heads are missing and the type is unknown, or a value is not
            allowed.
    """
    kind = config.get("model_type")
    family = FAMILIES["families"].get(kind, {}) if isinstance(kind, str) else {}
    if config.get("is_encoder_decoder") is True or family.get("encoder"):
        raise Refused("encoder", kind=str(kind))
    filled = dict(config)
    for old, new in {**FAMILIES["aliases"], **family.get("aliases", {})}.items():
        if filled.get(new) is None and config.get(old) is not None:
            filled[new] = config[old]
    stated = dict(filled)
    for name, value in family.get("defaults", {}).items():
        if name not in filled or (filled[name] is None and name in NEEDED):
            filled[name] = value
    for name in NEEDED:
        if filled.get(name) is None:
            raise Refused("missing", name=name, kind=kind if isinstance(kind, str) else "?")
    for name, (least, most) in LIMITS.items():
        if filled.get(name) is not None and not _number(filled[name], least, most, whole=True):
            raise Refused("number", name=name, least=least, most=most)
    if not filled.get("head_dim") and filled["hidden_size"] < filled["num_attention_heads"]:
        raise Refused("divided")
    filled["rope"] = _rope(stated, family)
    filled["layer_types"] = _kinds(filled, family)
    filled["no_rope_layers"] = _unrotated(filled, family)
    return filled


def _number(value: object, least: float, most: float, whole: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most and (not whole or value == int(value))


def _kinds(config: Mapping[str, Any], family: Mapping[str, Any]) -> list[str]:
    """Return the kind of each layer, from a list in the file or by the rule of the family."""
    count = int(config["num_hidden_layers"])
    for name in ("layer_types", "layers_block_type", "block_types"):
        listed = config.get(name)
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(isinstance(kind, str) for kind in listed):
            raise Refused("kinds")
        if name == "block_types" and listed:
            listed = listed * -(-count // len(listed))
        if len(listed) < count:
            raise Refused("types", layers=count, have=len(listed))
        return listed[:count]
    if family.get("irregular"):
        raise Refused("layout", kind=str(config["model_type"]))
    period, offset = config.get("attn_layer_period"), config.get("attn_layer_offset")
    if period:
        return [
            "full_attention" if k % period == (offset or 0) else "linear_attention"
            for k in range(count)
        ]
    if isinstance(indices := config.get("attn_layer_indices"), list):
        return ["full_attention" if k in indices else "linear_attention" for k in range(count)]
    cycle = family.get("layers")
    if family.get("interval") and (every := config.get(family["interval"])):
        cycle = [cycle[0]] * (int(every) - 1) + ["full_attention"]
    if cycle:
        return [cycle[k % len(cycle)] for k in range(count)]
    window = config.get("sliding_window") and config.get("use_sliding_window") is not False
    first = int(config.get("max_window_layers") or 0)
    return [
        "sliding_attention" if window and k >= first else "full_attention" for k in range(count)
    ]


def _unrotated(config: Mapping[str, Any], family: Mapping[str, Any]) -> list[int] | None:
    """Return a list with 0 for each layer without rotary positions and 1 for each other layer.

    The list is None if the file leaves no layer without rotary positions.
    """
    listed, count = config.get("no_rope_layers"), int(config["num_hidden_layers"])
    if isinstance(listed, list) and len(listed) >= count:
        return [int(bool(flag)) for flag in listed[:count]]
    every = config.get("no_rope_layer_interval")
    if every and family.get("unrotated"):
        return [int((k + 1) % int(every) != 0) for k in range(count)]
    return None


def _rope(config: Mapping[str, Any], family: Mapping[str, Any]) -> dict[str, dict]:
    """Return the settings of RoPE as a dictionary keyed by kind of layer.

    The key "" stands for all layers. The dictionary is empty if no layer rotates queries and keys.
    """
    plain = family.get("rope")
    if family and plain is None:
        return {}
    for name in ("rope_parameters", "rope_scaling"):
        if config.get(name) is not None and not isinstance(config[name], Mapping):
            raise Refused("rope")
    parameters = config.get("rope_parameters")
    nested = None
    if _nested(parameters):
        nested = parameters
    elif not parameters and _nested(plain):
        nested = plain
    if nested is not None:
        by_kind = {
            kind: dict(settings) for kind, settings in nested.items() if settings is not None
        }
        if not parameters:
            by_kind = _legacy(config, by_kind)
    else:
        scaling = parameters or config.get("rope_scaling") or {}
        flat = {} if plain is None or _nested(plain) else plain
        # in this case the family's own scaling does not count
        if parameters or "rope_scaling" in config:
            flat = {k: flat[k] for k in ("rope_theta", "partial_rotary_factor") if k in flat}
        for name in ("rope_theta", "partial_rotary_factor"):
            if config.get(name) is not None:
                flat = flat | {name: config[name]}
        by_kind = {"": flat | dict(scaling)} if flat.get("rope_theta") or scaling else {}
    return {kind: _settings(settings, config) for kind, settings in by_kind.items()}


def _nested(settings: object) -> bool:
    return isinstance(settings, Mapping) and any(
        isinstance(part, Mapping) for part in settings.values()
    )


def _legacy(config: Mapping[str, Any], by_kind: dict[str, dict]) -> dict[str, dict]:
    """Add older fields of a configuration to the RoPE settings in `by_kind`.

    `by_kind` is keyed by kind of layer. The older fields are the base for local layers, the base
    for global layers, and the scaling for global layers.
    """
    local, base = config.get("rope_local_base_freq"), config.get("rope_theta")
    for kind, theta in (("sliding_attention", local), ("full_attention", base)):
        if kind in by_kind and theta is not None:
            by_kind[kind]["rope_theta"] = theta
    if isinstance(config.get("rope_scaling"), Mapping) and "full_attention" in by_kind:
        by_kind["full_attention"] |= config["rope_scaling"]
    return by_kind


def _settings(settings: Mapping[str, Any], config: Mapping[str, Any]) -> dict:
    """Check the settings of RoPE and return them under names that are the same for all models."""
    kind = settings.get("rope_type") or settings.get("type") or "default"
    kind = {"su": "longrope", "mrope": "default", "ntk": "dynamic"}.get(str(kind), str(kind))
    base = settings.get("rope_theta", 10_000)
    if not _number(base, 1.000001, 1e15):
        raise Refused("base")
    checked = {"type": kind, "base": float(base)}
    for name, plain, least, most in FAMILIES["scaling"]:
        value = settings.get(name)
        value = config.get(name) if value is None and name in FAMILIES["outside"] else value
        value = plain if value is None else value
        if value is None and name == "factor" and kind in ("linear", "dynamic", "yarn", "llama3"):
            raise Refused("scaling", name=name, least=least, most=most)
        if value is not None and not _number(value, least, most):
            raise Refused("scaling", name=name, least=least, most=most)
        checked[name] = value
    checked["truncate"] = settings.get("truncate") is not False
    for name in ("short_factor", "long_factor"):
        checked[name] = settings.get(name)
    return checked


def layers(config: Mapping[str, Any]) -> list[Layer]:
    """Return for each layer what mixes its tokens, its attention window and whether it rotates.

    >>> layers(known("smollm3-3b"))[2:4]  # doctest: +NORMALIZE_WHITESPACE
    [Layer(mixes='attention', window=None, rotates=True, chunked=False, kind='full_attention'),
     Layer(mixes='attention', window=None, rotates=False, chunked=False, kind='full_attention')]
    """
    windows = config.get("use_sliding_window") is not False
    unrotated = config["no_rope_layers"]
    kinds = []
    for k, kind in enumerate(config["layer_types"]):
        sees, chunked = None, "chunked" in kind
        if "sliding" in kind and windows:
            sees = _size(config, "sliding_window")
        elif chunked:
            sees = _size(config, "attention_chunk_size")
        elif kind == "conv":
            sees = int(config.get("conv_L_cache") or 3)
        mixes = _mixes(kind)
        rotates = mixes.startswith("attention") and _group(config, kind) is not None
        rotates = rotates and not (unrotated and not unrotated[k])
        if config.get("model_type") in FAMILIES["rotate_in_windows"] and config.get(
            "sliding_window"
        ):
            rotates = rotates and sees is not None
        kinds.append(Layer(mixes, sees, rotates, chunked, kind))
    return kinds


def _size(config: Mapping[str, Any], name: str) -> int:
    if config.get(name) is None:
        raise Refused("window", name=name)
    return int(config[name])


def _mixes(kind: str) -> str:
    """Return "attention" for a kind of layer with attention, and otherwise the kind itself."""
    if kind.startswith("hybrid"):
        return "attention and a state space"
    return "attention" if "attention" in kind and "linear" not in kind else kind.replace("_", " ")


def _group(config: Mapping[str, Any], kind: str) -> str | None:
    """Return the key under which `config["rope"]` has the settings of a kind of layer, or None."""
    if kind in config["rope"]:
        return kind
    return "" if "" in config["rope"] else None


def head_width(config: Mapping[str, Any], kind: str = "") -> int:
    """Return the width of the keys of one head."""
    if kind == "full_attention" and config.get("global_head_dim"):
        return int(config["global_head_dim"])
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def frequencies(config: Mapping[str, Any], group: str, tokens: int) -> list[float]:
    """Return the angle of each rotary pair in radians per token.

    The angles include the scaling that the file names.

    Args:
        config: a configuration from `completed`.
        group: a key of `config["rope"]`.
        tokens: the length of the text, on which the scalings "dynamic" and "longrope" depend.
    """
    rope = config["rope"][group]
    kind, base, factor = rope["type"], rope["base"], rope["factor"] or 1.0
    width = rotary_width(config, group)
    context = config.get("max_position_embeddings") or ASKED
    original = rope["original_max_position_embeddings"] or config.get(
        "original_max_position_embeddings"
    )
    if kind == "dynamic" and width > 2:
        grown = factor * max(tokens, context) / context - (factor - 1)
        base *= grown ** (width / (width - 2))
    theta = [base ** (-2 * i / width) for i in range(width // 2)]
    if kind == "linear":
        return [angle / factor for angle in theta]
    if kind == "proportional":
        turning = int(rope["partial_rotary_factor"] * width // 2)
        return [angle / factor if i < turning else 0.0 for i, angle in enumerate(theta)]
    if kind == "llama3":
        return [_llama3(angle, rope, factor, original or context) for angle in theta]
    if kind == "yarn":
        return _yarn(theta, rope, factor, original or context, width)
    if kind == "longrope":
        name = "long_factor" if tokens > (original or context) else "short_factor"
        by = rope[name]
        if (
            not isinstance(by, list)
            or len(by) != len(theta)
            or not all(_number(f, 1e-9, 1e9) for f in by)
        ):
            raise Refused("factors", pairs=len(theta), name=name)
        return [angle / f for angle, f in zip(theta, by, strict=True)]
    return theta


def rotary_width(config: Mapping[str, Any], group: str) -> int:
    """Return the number of entries of each query that rotate, which is even."""
    rope = config["rope"][group]
    if config.get("kv_lora_rank") and config.get("qk_rope_head_dim"):
        return max(2, 2 * (int(config["qk_rope_head_dim"]) // 2))
    if config.get("rotary_dim"):
        return max(2, 2 * (int(config["rotary_dim"]) // 2))
    share = 1 if rope["type"] == "proportional" else rope["partial_rotary_factor"]
    return max(2, 2 * (int(head_width(config, group) * share) // 2))


def _llama3(theta: float, rope: Mapping[str, Any], factor: float, original: float) -> float:
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    if high <= low:
        raise Refused("scaling", name="high_freq_factor", least=low, most=1_000_000_000)
    unscaled = min(1.0, max(0.0, (original * theta / math.tau - low) / (high - low)))
    return unscaled * theta + (1 - unscaled) * theta / factor


def _yarn(
    theta: list[float], rope: Mapping[str, Any], factor: float, original: float, width: int
) -> list[float]:
    """Return the rotary frequencies after YaRN scaling, computed as in released code.

    Released code uses a ramp over the indices of the pairs.
    """
    ends = [
        width * math.log(original / (turns * math.tau)) / (2 * math.log(rope["base"]))
        for turns in (rope["beta_fast"], rope["beta_slow"])
    ]
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if rope["truncate"] else ends
    low, high = max(low, 0), min(high, width - 1)
    high = high + 0.001 if low == high else high
    scaled = []
    for i, angle in enumerate(theta):
        moved = min(1.0, max(0.0, (i - low) / (high - low)))
        scaled.append(angle / factor * moved + angle * (1 - moved))
    return scaled


def first_negative(theta: list[float], limit: int) -> int:
    """Return the first distance below `limit` at which the sum of cosines is negative, or 0.

    0 means that no such distance exists.

    >>> first_negative([10_000 ** (-i / 64) for i in range(64)], 4096)
    1707
    """
    return _first_negative(tuple(theta), limit)


@cache
def _first_negative(theta: tuple[float, ...], limit: int) -> int:
    angles, start, size = torch.tensor(theta, dtype=torch.float64), 1, 1024
    while start < limit:
        distances = torch.arange(start, min(limit, start + size), dtype=torch.float64)
        below = ((distances[:, None] * angles).cos().sum(-1) < -DOUBT).nonzero()
        if len(below):
            return start + int(below[0])
        start, size = start + size, min(2 * size, 2**14)
    return 0


def smallest_base(pairs: int, limit: int) -> float:
    """Return the smallest two-digit base in a table for which no sum of cosines is negative.

    The condition is for distances below `limit`. The result is 0 if no base in the table meets it.

    >>> smallest_base(64, 4096)
    29000.0
    """
    table = _bases().get(pairs, [])
    return next((base for base, holds in table if holds >= limit), 0.0)


@cache
def _bases() -> dict[int, list[tuple[float, int]]]:
    """Return tabulated bases of RoPE, as a dictionary keyed by the number of rotary pairs.

    Each entry is a list of (base, context). The bases have two significant digits, and each works
    for a longer context than any smaller base.
    """
    bases: dict[int, list[tuple[float, int]]] = {}
    for row in data.table("rope_smallest_bases").itertuples():
        bases.setdefault(int(row.pairs), []).append((float(row.base), int(row.holds_below)))
    return bases


def arrivals(config: Mapping[str, Any], tokens: int) -> list[int]:
    """Return the position that the first token's message can have reached after each layer.

    Positions count from 0 to tokens − 1.

    >>> arrivals(known("mistral-7b-v0.1"), 10_000)[:3]
    [4095, 8190, 9999]
    """
    place, places = 0, []
    for layer in layers(config):
        if layer.window is None:
            place = tokens - 1
        elif layer.chunked:
            place = place // layer.window * layer.window + layer.window - 1
        else:
            place += layer.window - 1
        place = min(place, tokens - 1)
        places.append(place)
    return places


def layers_to_reach(config: Mapping[str, Any], tokens: int) -> int | None:
    """Return how many layers the first token's message needs to reach the last of n tokens.

    The result is None if the message never reaches the last token.
    """
    for count, place in enumerate(arrivals(config, tokens), 1):
        if place >= tokens - 1:
            return count
    return None


def cache_width(config: Mapping[str, Any], kind: str = "") -> int:
    """Return how many numbers a layer caches per token (keys and values, or a latent vector)."""
    if config.get("kv_lora_rank"):
        return int(config["kv_lora_rank"] + (config.get("qk_rope_head_dim") or 0))
    groups = config.get("num_key_value_heads") or config["num_attention_heads"]
    if kind == "full_attention" and config.get("num_global_key_value_heads"):
        groups = config["num_global_key_value_heads"]
    return int(2 * groups * head_width(config, kind))


def cache_bytes(config: Mapping[str, Any], tokens: int, size: int = 2) -> int:
    """Return how many bytes the cached keys and values of n tokens need.

    Each number takes `size` bytes.
    """
    keeping = layers(config)[: _keeping(config)]
    return size * sum(
        cache_width(config, layer.kind) * min(tokens, layer.window or tokens)
        for layer in keeping
        if layer.mixes.startswith("attention")
    )


def _keeping(config: Mapping[str, Any]) -> int:
    """Return how many layers cache separate keys and values instead of sharing them."""
    return max(0, int(config["num_hidden_layers"] - (config.get("num_kv_shared_layers") or 0)))


def context_of(config: Mapping[str, Any]) -> int | None:
    """Return the context length in tokens that a configuration states, or None."""
    context = config.get("max_position_embeddings")
    return int(context) if context else None


def number_type(config: Mapping[str, Any]) -> tuple[int, str, int | None, bool]:
    """Describe the floating-point format of the weights.

    Returns four values: the bytes per number, the name of the format, the largest number of tokens
    that one attention weight in this format can count (None if no such limit is known here), and
    whether the file names the format.
    """
    name = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    return (*FORMATS.get(name, FORMATS["bfloat16"]), name in FORMATS)


def facts(config: Mapping[str, Any], tokens: int | None = None) -> dict:
    """Return all numbers that follow from a configuration for a text of n tokens.

    If `tokens` is None, n is the model's context length.

    Raises:
        ValueError: if `tokens` is not from 2 to `TOKENS`, or a required field is missing.

    >>> facts(known("llama-2-7b"), 4096)["rope"][0]["first_negative"]
    1707
    """
    context = context_of(config)
    n = min(context or ASKED, TOKENS) if tokens is None else tokens
    if not _number(n, 2, TOKENS, whole=True):
        raise Refused("tokens", most=TOKENS)
    stack, places, (size, kind, counts, kind_said) = (
        layers(config),
        arrivals(config, n),
        number_type(config),
    )
    spans = [min(n, x.window or n) for x in stack if x.mixes.startswith("attention")]
    reached = layers_to_reach(config, n) or 0
    keeping = [x for x in stack[: _keeping(config)] if x.mixes.startswith("attention")]
    growing = [x for x in keeping if (x.window or n + 1) > n]
    near = any(x.rotates and x.window for x in stack)
    far = any(x.mixes == "attention" and not x.window and not x.rotates for x in stack)
    vocabulary = config.get("vocab_size")
    windows = [x.window for x in stack if x.window and x.mixes.startswith("attention")]
    return {
        "kind": str(config.get("model_type") or ""),
        "tokens": n,
        "context": context,
        "original": _original(config),
        "layers": [list(x) for x in stack],
        "arrives": places,
        "reached": reached,
        "sees_all": sum(x.window is None and x.mixes.startswith("attention") for x in stack),
        "states": sum(not x.mixes.startswith("attention") and x.window is None for x in stack),
        "rope": [_turning(config, group, stack, n) for group in config["rope"]],
        "format": kind,
        "format_said": kind_said,
        "bytes": size,
        "counts": counts,
        "cache": cache_bytes(config, n, size),
        "cache_each": size * sum(cache_width(config, x.kind) for x in growing),
        "latent": cache_width(config) if config.get("kv_lora_rank") else 0,
        "bits": 8 * size * int(config["hidden_size"]),
        "bits_each": math.log2(vocabulary) if vocabulary and vocabulary > 1 else None,
        "span": max(spans, default=0),
        "window": min(windows, default=None),
        "lead": math.log(max(spans) - 1) if max(spans, default=0) > 1 else None,
        "local": near and far,
        "position": FAMILIES["families"].get(config.get("model_type"), {}).get("position", ""),
    }


def _original(config: Mapping[str, Any]) -> int | None:
    """Return the context length before the positions were stretched, or None if unknown."""
    contexts = [rope["original_max_position_embeddings"] for rope in config["rope"].values()]
    contexts.append(config.get("original_max_position_embeddings"))
    return next((int(context) for context in contexts if context), None)


def _turning(config: Mapping[str, Any], group: str, stack: list[Layer], n: int) -> dict:
    """Return what RoPE's settings for one kind of layer imply within the window of these layers."""
    rope = config["rope"][group]
    mine = [x for x in stack if x.rotates and _group(config, x.kind) == group]
    limit = max((min(n, x.window or n) for x in mine), default=0)
    theta, known = frequencies(config, group, n), rope["type"] in SCALINGS
    turning = [x for x in theta if x > 0]
    return {
        "kind": group,
        "type": rope["type"],
        "known": known,
        "base": rope["base"],
        "pairs": len(theta),
        "layers": len(mine),
        "limit": limit,
        "first_negative": first_negative(theta, limit) if known and limit else 0,
        "slow": sum(x * limit < math.tau for x in theta),
        "still": len(theta) - len(turning),
        "period": math.tau / min(turning) if turning else None,
        "smallest_base": smallest_base(len(theta), limit) if limit else 0.0,
    }


@cache
def names() -> dict[str, dict]:
    """Return the well-known configurations in `data/configurations`, keyed by name.

    Each has a title, a source and its fields.
    """
    paths = sorted((data.folder() / "configurations").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def known(name: str) -> dict:
    """Return one of the well-known configurations, with its missing fields filled in.

    >>> [layers_to_reach(known(name), 32_768) for name in ("mistral-7b-v0.1", "llama-2-7b")]
    [9, 1]
    """
    if name not in names():
        raise ValueError(f"name must be one of {', '.join(names())}, not {name!r}")
    return completed(names()[name]["config"])
