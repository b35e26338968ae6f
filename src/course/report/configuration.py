"""What a configuration alone says: `python -m course.report config.json --out reports`, without weights, in a second.

Each row is a quantity, its value and the formula that gives it, with the chapter it belongs to. What needs weights is
listed as unknown. `KNOWN` names ten configurations to start with: the defaults of transformers' own classes, which name
the checkpoint they are like; a released file may differ, so drop that file when it matters.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from course.build.files import writable, write
from course.chapter5 import measures
from course.report import page, store
from helpers import data, require, rope

# by transformers' model type: the checkpoint that its configuration's documentation names
KNOWN = {
    "gpt2": "openai-community/gpt2",
    "gpt_neox": "EleutherAI/gpt-neox-20b",
    "llama": "meta-llama/Llama-2-7b-hf",
    "mistral": "mistralai/Mistral-7B-v0.1",
    "mixtral": "mistralai/Mixtral-8x7B-v0.1",
    "phi3": "microsoft/Phi-3-mini-4k-instruct",
    "gemma2": "google/gemma2-7b",
    "gemma3_text": "google/gemma-3-4b-it",
    "smollm3": "HuggingFaceTB/SmolLM3-3B",
    "gpt_oss": "openai/gpt-oss-20b",
}
UNKNOWN = (
    "which heads are sinks, what they cost, and whether the model copies or counts: these need its weights",
    "which distances its heads use: a base that is too small matters only where they look that far",
    "whether the code does what the file says: the report on the model itself finds out by experiment",
    "how its number type rounds: the file names one, and a server may take another",
)
# families whose code rotates only the layers with a window, as no field of the file says
ROTATE_IN_WINDOWS = ("cohere2", "exaone4")
ASKED = 100_000  # tokens, where the configuration names no context


class Layer(NamedTuple):
    """What a configuration says of a layer."""

    mixes: str  # "attention", or the name that the configuration has for something else
    window: int | None  # tokens that it sees; None is all
    rotates: bool


class Row(NamedTuple):
    """A quantity, its value in words, and where both come from."""

    what: str
    value: str
    formula: str
    chapter: int
    warns: bool = False


def takes(name: str) -> bool:
    """Return whether a name is a file that holds a configuration."""
    path = Path(name).expanduser()
    return path.suffix == ".json" and path.is_file()


def read(path: str | Path) -> dict:
    """Return a configuration, that of the text where a model has several.

    Raises:
        ValueError: the file is no JSON object, or lacks layers, width or heads.
    """
    try:
        found = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ValueError(
            f"{Path(path).name} must be a configuration in JSON, as config.json of a model is"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"{Path(path).name} must hold an object, not {require.brief(found)}")
    return completed(found.get("text_config", found))


def completed(config: Mapping[str, Any]) -> dict:
    """Return a configuration with the fields of its model type that the file leaves out, as transformers fills them in.

    Raises:
        ValueError: the type is unknown and layers, width or heads are missing, or a value is no number.
    """
    import transformers

    kind, found = config.get("model_type"), dict(config)
    if isinstance(kind, str) and kind in transformers.models.auto.configuration_auto.CONFIG_MAPPING:
        own = {
            name: value
            for name, value in config.items()
            if name not in ("architectures", "transformers_version")
        }
        own.pop("model_type")
        try:
            plain = transformers.AutoConfig.for_model(kind, **own)
        except Exception as error:  # each class checks in its own way
            raise ValueError(
                f"transformers refuses this {kind} ({' '.join(str(error).split())[:150]})"
            ) from None
        names = {
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "max_position_embeddings",
            "vocab_size",
        }
        found = plain.to_dict() | {
            name: getattr(plain, name) for name in names if hasattr(plain, name)
        }
        found["layer_types"] = getattr(plain, "layer_types", None)
    for name in ("num_hidden_layers", "hidden_size", "num_attention_heads"):
        if name not in found:
            raise ValueError(
                f"the configuration must say {name}, and its type {kind!r} is not one of transformers'"
            )
        require.integer(name, found[name], 1)
    return found


def layers(config: Mapping[str, Any]) -> list[Layer]:
    """Return what each layer mixes by, how far it sees and whether it rotates."""
    count, kinds = config["num_hidden_layers"], config.get("layer_types")
    window, found = config.get("sliding_window"), []
    if config.get("use_sliding_window") is False:
        window = None
    no_rope, rotates = config.get("no_rope_layers"), bool(_thetas(config))
    for k in range(count):
        kind = (
            kinds[k]
            if kinds and k < len(kinds)
            else "sliding_attention"
            if window
            else "full_attention"
        )
        mixes = (
            "attention" if "attention" in kind and "linear" not in kind else kind.replace("_", " ")
        )
        sees = (
            window
            if "sliding" in kind
            else config.get("attention_chunk_size")
            if "chunked" in kind
            else None
        )
        turns = (
            rotates
            and mixes == "attention"
            and not (no_rope and k < len(no_rope) and not no_rope[k])
        )
        turns = turns and not (config.get("model_type") in ROTATE_IN_WINDOWS and sees is None)
        found.append(Layer(mixes, sees, turns))
    return found


def _head_width(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def _thetas(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the base of each kind of layer; none without rotary positions."""
    settings = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if any(isinstance(value, Mapping) for value in settings.values()):
        return {
            kind.replace("_", " "): float(each["rope_theta"]) for kind, each in settings.items()
        }
    base = settings.get("rope_theta") or config.get("rope_theta")
    return {"all layers": float(base)} if base else {}


def layers_to_reach(config: Mapping[str, Any], tokens: int) -> int | None:
    """Return in how many layers the first of so many tokens can reach the last one; None where it cannot in all of them."""
    left = tokens - 1
    for count, layer in enumerate(layers(config), 1):
        if layer.mixes != "attention" or layer.window is None:
            return count
        left -= layer.window - 1
        if left <= 0:
            return count
    return None


def cache_bytes(config: Mapping[str, Any], tokens: int, size: int = 2) -> int:
    """Return the bytes of keys and values of so many tokens, `size` bytes a number."""
    groups = config.get("num_key_value_heads") or config["num_attention_heads"]
    width = 2 * groups * _head_width(config)
    if config.get("kv_lora_rank"):
        width = config["kv_lora_rank"] + config.get("qk_rope_head_dim", 0)
    seen = [
        min(tokens, each.window or tokens) for each in layers(config) if each.mixes == "attention"
    ]
    return size * width * sum(seen)


def rows(config: Mapping[str, Any], tokens: int | None = None) -> list[Row]:
    """Return what follows of a configuration for a text of so many tokens, or of its whole context."""
    context = int(config.get("max_position_embeddings") or config.get("n_positions") or ASKED)
    n, each = tokens or context, layers(config)
    found = [_mixing(each), _reach(config, n), _cache(config, n)]
    found += [_base(kind, base, config, each, n) for kind, base in _thetas(config).items()]
    found += [_capacity(config, n), _resolution(n)]
    if n > context:
        found.insert(
            0,
            Row(
                "Context",
                f"{n:,} tokens are asked for, and it was made for {context:,}",
                "",
                5,
                True,
            ),
        )
    return found


def _mixing(each: list[Layer]) -> Row:
    counts: dict[str, int] = {}
    for layer in each:
        sees = f"a window of {layer.window:,}" if layer.window else "all tokens"
        said = f"{layer.mixes} over {sees}, {'rotary' if layer.rotates else 'no rotary'} positions"
        said = said if layer.mixes == "attention" else layer.mixes
        counts[said] = counts.get(said, 0) + 1
    return Row(
        "Layers",
        "; ".join(f"{count} × {said}" for said, count in counts.items()),
        "as the file says",
        2,
    )


def _reach(config: Mapping[str, Any], n: int) -> Row:
    hops = layers_to_reach(config, n)
    value = f"the first of {n:,} tokens reaches the last one in {hops} layer{'s' * (hops != 1)}" if hops else (
        f"no path from the first of {n:,} tokens to the last one in all {config['num_hidden_layers']} layers"
    )  # fmt: skip
    return Row(
        "Who reaches whom",
        value,
        "one hop a layer that sees all, window − 1 places a layer that does not",
        1,
        hops != 1,
    )


def _cache(config: Mapping[str, Any], n: int) -> Row:
    size = cache_bytes(config, n) / 2**30
    formula = "2 bytes × 2 × key-value heads × head width × tokens, summed over the layers (a window holds its width)"
    return Row("Keys and values", f"{size:.3g} GiB for {n:,} tokens in 16 bits", formula, 2)


def _base(kind: str, base: float, config: Mapping[str, Any], each: list[Layer], n: int) -> Row:
    sliding = "sliding" in kind
    windows = [layer.window for layer in each if layer.rotates and (not sliding or layer.window)]
    furthest = n if None in windows or not windows else min(n, max(windows))
    share = (
        (config.get("rope_parameters") or {}).get("partial_rotary_factor")
        or config.get("partial_rotary_factor")
        or 1
    )
    width = max(2, 2 * int(_head_width(config) * share // 2))
    first = measures.sums_over_context(rope.frequencies(width, base), furthest)["first_negative"]
    table = data.table("reported/rope_base_bound")
    least = table[table.context >= furthest].published
    value = f"base {base:,.0f}: the sum of cos(Δθ) over {width // 2} pairs is "
    value += (
        f"first negative at distance {first:,}"
        if first
        else f"nowhere negative below {furthest:,} tokens"
    )
    if len(least) and furthest > 512:
        value += f"; published least base for heads of width 128: {least.iloc[0]:,.0f}"
    name = "Base of RoPE" if kind == "all layers" else f"Base of RoPE, {kind}"
    return Row(
        name,
        value,
        "Men et al. (2024), Theorem 1; scaling such as YaRN is not counted",
        5,
        bool(first),
    )


def _capacity(config: Mapping[str, Any], n: int) -> Row:
    bits = 16 * config["hidden_size"]
    needed = n * math.log2(config.get("vocab_size") or 2)
    value = f"at most {bits:,} bits in a state of 16-bit numbers; {n:,} tokens can take {needed:,.0f} bits"
    return Row(
        "Bits a position can carry",
        value,
        "16 × width, and tokens × log₂(vocabulary)",
        4,
        needed > bits,
    )


def _resolution(n: int) -> Row:
    value = (
        f"a mean over {n:,} tokens moves by 1/{n:,} with one of them; bf16 resolves 1/256 beside 1"
    )
    return Row("Rounding", value, "|1/n − 1/(n + 1)| against half a step of bf16, 2⁻⁹", 3, n > 256)


def run(name: str, where: Path, say: Callable[[str], None]) -> tuple[Path, Path]:
    """Write the page and the JSON of a configuration into a folder, and tell its rows.

    Raises:
        ValueError: the file is no configuration, or another file is in the way.
    """
    config, path = read(name), Path(name).expanduser()
    title = str(config.get("_name_or_path") or config.get("model_type") or path.parent.name)
    found = rows(config)
    stem = store.slug(f"{title} configuration")
    files = [writable(where / f"{stem}.{kind}") for kind in ("html", "json")]
    for row in found:
        say(f"{'!' if row.warns else ' '} {row.what}: {row.value}")
    made = {
        "what": "a configuration",
        "name": title,
        "rows": [row._asdict() for row in found],
        "unknown": UNKNOWN,
    }
    write(files[1], json.dumps(made, indent=1, ensure_ascii=False) + "\n", "rows")
    write(files[0], html(title, found), "rows")
    return files[0], files[1]


def html(title: str, found: list[Row]) -> str:
    """Return the page of a configuration."""
    table = [
        (row.what, [("! " if row.warns else "") + row.value, row.formula, f"chapter {row.chapter}"])
        for row in found
    ]
    body = page.HTML.table(
        ["what follows", "formula", "where"], table, "What the configuration says"
    )
    unknown = Markup("").join(Markup("<li>{}</li>").format(each) for each in UNKNOWN)
    body += Markup("<h2>What it cannot say</h2><ul>{}</ul>").format(unknown)
    return page.HTML.document(f"{title}: its configuration", body, page.STYLE).lstrip()


def known(name: str) -> dict:
    """Return one of `KNOWN`: the defaults of transformers' class.

    >>> layers_to_reach(known("mistral"), 32_768), layers_to_reach(known("llama"), 32_768)
    (9, 1)
    """
    require.choice("name", name, KNOWN)
    return completed({"model_type": name})
