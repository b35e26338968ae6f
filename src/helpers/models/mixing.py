"""What mixes the tokens of each layer of a decoder, found by letting it read and not by its name alone.

Every layer's attention is given one vector at all places. Its queries then differ by what turns them and by nothing else, so
that layout, share and frequencies of rotary positions can be read off them.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from helpers import rope

_NAME = "helpers_listening"  # under which transformers knows the attention below
_TOKENS = 16  # that are read
_ATTENTION, _DIFFERENCE = "attention", "the difference of two attention maps"
_OTHERS = {  # parts of class names, and what such a part mixes tokens by
    "rwkv": "a state space", "mamba": "a state space", "recurrent": "a state space",
    "lstm": "a state space", "deltanet": "linear attention", "linearattention": "linear attention",
    "lightning": "linear attention", "shortconv": "a convolution",
}  # fmt: skip


class _Layer(NamedTuple):
    """What mixes the tokens of a layer; `probe.layers` says what each attribute is."""

    mixes: str
    read: bool
    latent: bool = False
    theta: Tensor | None = None
    layout: str | None = None
    share: float = 0.0
    window: int | None = None
    sinks: bool = False
    softcap: float | None = None


_heard: list[dict[int, dict[str, Any]]] = []


def _listen(module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, **rest):
    """Uniform attention in transformers' signature, which keeps what it is given."""
    _heard[-1][module.layer_idx] = {
        "query": query[0].detach().cpu().double(),
        "softcap": softcap,
        "sinks": s_aux is not None,
        "window": rest.get("sliding_window"),
    }
    mixed = value.cumsum(2) / torch.arange(1, value.shape[2] + 1, device=value.device)[:, None]
    heads = query.shape[1] // value.shape[1]
    return mixed.to(value.dtype).repeat_interleave(heads, 1).transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def _attending(network: "transformers.PreTrainedModel", name: str, function: Callable | None = None) -> Iterator[None]:
    """Run a block with another attention in every layer: one that transformers knows, or `function` under this name.

    >>> from helpers import models
    >>> network = models.default().model
    >>> with _attending(network, "eager"):
    ...     network.config._attn_implementation
    'eager'
    """
    if function is not None:
        import transformers

        transformers.AttentionInterface.register(name, function)
        transformers.AttentionMaskInterface.register(name, transformers.masking_utils.sdpa_mask)
    before = network.config._attn_implementation
    try:
        network.set_attn_implementation(name)
        yield
    finally:
        network.set_attn_implementation(before)


def _layers(network: "transformers.PreTrainedModel") -> tuple[_Layer, ...]:
    """What mixes the tokens of each layer.

    Raises:
        ValueError: the network has no list of layers.

    >>> from helpers import models
    >>> _layers(models.default().model)[0].mixes == _ATTENTION
    True
    """
    blocks = _blocks(network)
    heard, sets, tolerance = _calls(network, blocks), frequencies(network), 1e-3
    if next(network.parameters()).dtype not in (torch.float32, torch.float64):
        tolerance = 0.04
    found = []
    for number, block in enumerate(blocks):
        kinds = [type(part).__name__.lower() for part in block.modules()]
        others = [words for part, words in _OTHERS.items() if any(part in kind for kind in kinds)]
        latent = any(hasattr(part, "kv_b_proj") for part in block.modules())
        call = heard.get(number)
        if any("diffllama" in kind for kind in kinds):
            found.append(_Layer(_DIFFERENCE, False, False, next(iter(sets.values()), None)))
            continue
        if call is None:
            mixes = (
                others[0] if others else _ATTENTION if any("attention" in kind for kind in kinds) else "something else"
            )
            turned = sets if mixes == _ATTENTION else {}
            found.append(_Layer(mixes, False, latent, next(iter(turned.values()), None)))
            continue
        mixes = f"attention and {others[0]}" if others else _ATTENTION
        theta, layout, share = _turned(call["query"], list(sets.values()), tolerance)
        window = call["window"] or _window(network, number)
        found.append(_Layer(mixes, True, latent, theta, layout, share, window, call["sinks"], call["softcap"]))
    return tuple(found)


def frequencies(network: "transformers.PreTrainedModel") -> dict[str, Tensor]:
    """The rotary frequencies of a network by kind of layer, as it uses them; none for one without.

    >>> from helpers import models
    >>> {kind: len(found) for kind, found in frequencies(models.default().model).items()}
    {'all layers': 32}
    """
    found: dict[str, Tensor] = {}
    for module in network.modules():
        for name, value in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name and value.numel():
                kind = name.removesuffix("inv_freq").rstrip("_").replace("_", " ") or "all layers"
                value = value.detach().cpu().double()
                if kind in found and not torch.equal(found[kind], value):
                    kind = f"{kind} ({len(found) + 1})"
                found[kind] = value
    width = getattr(network.config.get_text_config(), "rotary_dim", None)
    if not found and width:  # GPT-J and CodeGen keep sines and cosines alone
        found["all layers"] = rope.frequencies(int(width), 1e4)
    return found


def _blocks(network: "transformers.PreTrainedModel") -> list[torch.nn.Module]:
    count = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    for part in network.modules():
        if isinstance(part, torch.nn.ModuleList) and len(part) and count in (None, len(part)):
            return list(part)
    raise ValueError("the model has no list of layers")


@torch.inference_mode()
def _calls(network: "transformers.PreTrainedModel", blocks: list[torch.nn.Module]) -> dict[int, dict[str, Any]]:
    """What each layer's attention is given when one vector stands at all places; none where it cannot be replaced."""
    vocabulary = network.config.get_text_config().vocab_size
    ids = torch.full((1, _TOKENS), vocabulary // 2, device=network.device)
    _heard.append({})
    try:
        with contextlib.ExitStack() as hooks:
            for block in blocks:
                for part in block.modules():
                    if "attention" in type(part).__name__.lower():
                        hooks.enter_context(part.register_forward_pre_hook(_alike, with_kwargs=True))
            hooks.enter_context(_attending(network, _NAME, _listen))
            network(ids, use_cache=False)
    except (ValueError, AttributeError):  # an architecture of its own make
        return {}
    finally:
        heard = _heard.pop()
    return heard


def _alike(module: torch.nn.Module, arguments: tuple, named: dict) -> tuple[tuple, dict]:
    """The first place's state at all places."""
    if "hidden_states" in named:
        named = named | {"hidden_states": named["hidden_states"][:, :1].expand_as(named["hidden_states"])}
    elif arguments and isinstance(arguments[0], Tensor) and arguments[0].ndim == 3:
        arguments = (arguments[0][:, :1].expand_as(arguments[0]), *arguments[1:])
    return arguments, named


def _turned(query: Tensor, sets: list[Tensor], tolerance: float) -> tuple[Tensor | None, str | None, float]:
    """Frequencies, layout and share of the dimensions by which the queries (heads, n, d) are turned from place to place."""
    first, width = query[:, :1].expand_as(query), query.shape[-1]
    scale = float(query.abs().max()) or 1.0

    def off(expected: Tensor) -> float:
        return float((expected - query).abs().max()) / scale

    if off(first) < tolerance / 100:
        return None, None, 0.0
    best: tuple[float, Any] = (off(first), None)
    for theta, start, layout in _candidates(sets, width):
        turned, stop = first.clone(), start + 2 * len(theta)
        turned[..., start:stop] = rope.rotate(first[..., start:stop], torch.arange(query.shape[1]), theta, layout)
        best = min(best, (off(turned), (theta, layout, 2 * len(theta) / width)), key=lambda each: each[0])
    return best[1] if best[1] is not None and best[0] < tolerance else (None, None, 0.0)


def _candidates(sets: list[Tensor], width: int) -> Iterator[tuple[Tensor, int, str]]:
    for theta in sets:
        if 2 * len(theta) <= width:
            for start in sorted({0, width - 2 * len(theta)}):
                for layout in rope._LAYOUTS:
                    yield theta, start, layout


def _window(network: "transformers.PreTrainedModel", number: int) -> int | None:
    config = network.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or []
    kind = kinds[number] if number < len(kinds) else ""
    if "chunked" in kind:
        return getattr(config, "attention_chunk_size", None)
    return getattr(config, "sliding_window", None) if "sliding" in kind else None
