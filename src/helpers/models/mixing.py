"""Find out what mixes tokens in each layer of a decoder, by running the decoder.

The names of classes would not be reliable evidence. Instead we make two experiments on random
input, once per model.

In the first experiment the attention of every layer receives the same vector at all positions. The
queries of the layer can then differ only by their rotation. They therefore show the frequencies of
the rotary positions, the layout of the pairs, and the fraction of dimensions that rotate. The mask
shows how many earlier tokens the layer sees.

In the second experiment the attention of every layer returns zeros, and we change the first input
of the layer. If the last output changes, something other than attention mixes tokens in this layer.
We use the names of classes only to give this other mechanism a name.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from helpers import rope

_NAME = "helpers_listening"  # the name under which transformers knows the attention below
_TOKENS = 16  # the number of tokens that we let the network read
_SIZE = 0.01  # the standard deviation of the vectors that we give to layers
_CONTEXT, _LONGEST = (
    1 << 17,
    1 << 20,
)  # the context if a configuration names none, and the positions for which we compute a mask
_ATTENTION, _DIFFERENCE = "attention", "the difference of two attention maps"
_UNKNOWN = "something else"
_NAMES = {  # parts of class names, and the mechanism for mixing tokens that each part stands for
    "deltaattention": "linear attention", "gateddelta": "linear attention",
    "rwkv": "a state space", "mamba": "a state space", "recurrent": "a state space",
    "lstm": "a state space", "deltanet": "linear attention", "linearattention": "linear attention",
    "bambamixer": "a state space", "h1mixer": "a state space",
    "lightning": "linear attention", "shortconv": "a convolution", "rglru": "a state space",
}  # fmt: skip


class _Layer(NamedTuple):
    """Describe how a layer mixes the states of its tokens.

    `probe.layers` explains each attribute.
    """

    mixes: str
    read: bool
    latent: bool = False
    theta: Tensor | None = None
    layout: str | None = None
    share: float = 0.0
    window: int | None = None
    sinks: bool = False
    softcap: float | None = None


class _Heard:
    """Hold the arguments of each layer's attention, and the masks, while a network runs.

    `_listen` records the arguments, and `_mask` records the masks.
    """

    def __init__(self):
        self.layers: dict[int, dict[str, Any]] = {}
        self.masks: list[tuple[Tensor, Callable]] = []

    def function(self, mask: Tensor | None) -> Callable | None:
        """Return the function of two positions from which a mask was made.

        The result is None if `_mask` did not make the mask.
        """
        if mask is None:
            return None
        place = mask.untyped_storage().data_ptr()
        return next(
            (made for known, made in self.masks if known.untyped_storage().data_ptr() == place),
            None,
        )


_heard: list[_Heard] = []


def _listen(
    module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, **rest
):
    """Compute uniform attention in a form that transformers can call, and record the arguments."""
    heard = _heard[-1]
    heard.layers[module.layer_idx] = {
        "again": module.layer_idx
        in heard.layers,  # the head has several attention matrices, so no single one describes it
        "query": query[0].detach().cpu().double(),
        "softcap": softcap,
        "sinks": s_aux is not None,
        "mask": attention_mask,
        "sees": heard.function(attention_mask),
    }
    mixed = value.cumsum(2) / torch.arange(1, value.shape[2] + 1, device=value.device)[:, None]
    heads = query.shape[1] // value.shape[1]
    return mixed.to(value.dtype).repeat_interleave(heads, 1).transpose(1, 2).contiguous(), None


def _mask(*arguments, **named) -> Tensor:
    """Build the attention mask of transformers, and record the function of positions behind it.

    By itself, transformers sometimes leaves the mask out. Here the mask is always built.
    """
    import transformers

    mask = transformers.masking_utils.sdpa_mask(
        *arguments, **named | {"allow_is_causal_skip": False}
    )
    if _heard:
        _heard[-1].masks.append(
            (mask, named.get("mask_function", transformers.masking_utils.causal_mask_function))
        )
    return mask


def _nothing(module, query, key, value, attention_mask, **rest):
    """Return zeros in place of the output of attention, in a form that transformers can call."""
    batch, heads, n, _ = query.shape
    return query.new_zeros(batch, n, heads, value.shape[-1]), None


@contextlib.contextmanager
def _attending(
    network: "transformers.PreTrainedModel", name: str, function: Callable | None = None
) -> Iterator[None]:
    """Use another attention implementation in every layer while the block runs.

    The implementation is `function`, which we register with transformers under `name`. Without a
    function, it is the implementation that transformers already has under this name.

    >>> from helpers import models
    >>> network = models.default().model
    >>> with _attending(network, "eager"):
    ...     network.config._attn_implementation
    'eager'
    """
    if function is not None:
        import transformers

        transformers.AttentionInterface.register(name, function)
        mask_function = _mask if function is _listen else transformers.masking_utils.sdpa_mask
        transformers.AttentionMaskInterface.register(name, mask_function)
    before = network.config._attn_implementation
    try:
        network.set_attn_implementation(name)
        yield
    finally:
        network.set_attn_implementation(before)


def _layers(network: "transformers.PreTrainedModel") -> tuple[_Layer, ...]:
    """Return a description of what mixes tokens in each layer.

    Raises:
        ValueError: if the network has no list of layers.

    >>> from helpers import models
    >>> _layers(models.default().model)[0].mixes == _ATTENTION
    True
    """
    blocks = _blocks(network)
    heard, sets, tolerance = _calls(network, blocks), frequencies(network), 1e-3
    if next(network.parameters()).dtype not in (torch.float32, torch.float64):
        tolerance = 0.04
    others = _mixes_otherwise(network, blocks, tolerance) if heard else {}
    means = {} if len(heard) == len(blocks) else _takes_means(network, blocks, tolerance)
    context = getattr(network.config.get_text_config(), "max_position_embeddings", None) or _CONTEXT
    described = []
    for number, block in enumerate(blocks):
        latent = any(hasattr(part, "kv_b_proj") for part in block.modules())
        call = heard.get(number)
        if call is None or call["again"] or _is_a_difference(block):
            described.append(_unheard(block, means.get(number, False), latent, sets))
            continue
        mixes = f"{_ATTENTION} and {_named(block)}" if others.get(number) else _ATTENTION
        theta, layout, share = _turned(call["query"], list(sets.values()), tolerance)
        window = _window(call["sees"], call["mask"], int(context))
        described.append(
            _Layer(
                mixes, True, latent, theta, layout, share, window, call["sinks"], call["softcap"]
            )
        )
    return tuple(described)


def _named(block: torch.nn.Module) -> str:
    """Return a name for the mechanism besides attention that mixes tokens in a layer.

    We choose the name from the names of the layer's classes.
    """
    kinds = [type(part).__name__.lower() for part in block.modules()]
    return next(
        (words for part, words in _NAMES.items() if any(part in kind for kind in kinds)), _UNKNOWN
    )


def _is_a_difference(block: torch.nn.Module) -> bool:
    return any("diffllama" in type(part).__name__.lower() for part in block.modules())


def _unheard(
    block: torch.nn.Module, takes_means: bool, latent: bool, sets: dict[str, Tensor]
) -> _Layer:
    """Describe a layer whose attention we cannot replace.

    We leave out every measurement that would need the layer's attention weights.
    """
    if _is_a_difference(block):
        return _Layer(_DIFFERENCE, False, False, next(iter(sets.values()), None))
    if takes_means:
        return _Layer(_ATTENTION, False, latent, next(iter(sets.values()), None))
    return _Layer(_named(block), False, latent)


def _takes_means(
    network: "transformers.PreTrainedModel", blocks: list[torch.nn.Module], tolerance: float
) -> dict[int, bool]:
    """Return for each layer whether equal inputs at all positions give equal outputs there.

    Attention passes this test with any weights, because the weighted mean of equal values is again
    this value. A recurrent state that builds up over the text fails the test, and so does a
    convolution, because it sees fewer tokens at the start of the text.
    """
    added = _added(network, blocks, lambda drawn: drawn[:, :1].expand_as(drawn))
    return {
        number: not _differ(each, each[:1].expand_as(each), tolerance)
        for number, each in added.items()
    }


def _mixes_otherwise(
    network: "transformers.PreTrainedModel", blocks: list[torch.nn.Module], tolerance: float
) -> dict[int, bool]:
    """Return for each layer whether tokens still influence later tokens if all attention is zero.

    If something outside the layers mixes tokens, only the output of the whole network changes. In
    this case the result is true for every layer.
    """
    with _attending(network, "helpers_nothing", _nothing):
        before, after = (
            _added(network, blocks, lambda drawn: drawn),
            _added(network, blocks, _another_first),
        )
        differs = {
            number: _differ(before[number][1:], after[number][1:], tolerance / 100)
            for number in before
        }
        if any(differs.values()):
            return differs
        with torch.inference_mode():
            one, other = (
                network(_ids(network, first), use_cache=False).logits[0, 1:] for first in (0, 1)
            )
    return dict.fromkeys(range(len(blocks)), _differ(one, other, tolerance))


@torch.inference_mode()
def _added(
    network: "transformers.PreTrainedModel",
    blocks: list[torch.nn.Module],
    change: Callable[[Tensor], Tensor],
) -> dict[int, Tensor]:
    """Return what each layer adds to its input if this input consists of random vectors (n, d).

    Layers with an unusual input or output are left out.
    """
    inputs, outputs = {}, {}

    def give(number: int) -> Callable:
        def hook(module: torch.nn.Module, arguments: tuple, named: dict) -> tuple[tuple, dict]:
            def instead(states: Tensor) -> Tensor:
                # the vectors are small, so that what a layer adds to them is not rounded away;
                # layers normalise their input
                drawn = _SIZE * torch.randn(
                    states.shape, generator=torch.Generator().manual_seed(0)
                ).to(states)
                inputs[number] = change(drawn).contiguous()
                return inputs[number]

            return _instead(arguments, named, instead)

        return hook

    def keep(number: int) -> Callable:
        def hook(module: torch.nn.Module, arguments: tuple, out: Any) -> None:
            states = out[0] if isinstance(out, tuple) else out
            if (
                number in inputs
                and isinstance(states, Tensor)
                and states.shape == inputs[number].shape
            ):
                outputs[number] = (states - inputs[number])[0]

        return hook

    with contextlib.ExitStack() as hooks:
        for number, block in enumerate(blocks):
            hooks.enter_context(block.register_forward_pre_hook(give(number), with_kwargs=True))
            hooks.enter_context(block.register_forward_hook(keep(number)))
        network(_ids(network), use_cache=False)
    return outputs


def _another_first(drawn: Tensor) -> Tensor:
    """Replace the vector at the first position by another random vector.

    We cannot use the negative of the vector. If a layer multiplies two linear maps of the vector,
    the two signs would cancel and hide the change.
    """
    changed = drawn.clone()
    changed[:, 0] = drawn[:, 0].flip(-1)
    return changed


def _ids(network: "transformers.PreTrainedModel", first: int = 0) -> Tensor:
    """Return a short sequence of one repeated token.

    The id of the first token is increased by `first`, so with 1 the first token differs from all
    others.
    """
    vocabulary = network.config.get_text_config().vocab_size
    ids = torch.full((1, _TOKENS), vocabulary // 2, device=network.device)
    ids[0, 0] += first
    return ids


def _differ(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Return whether two outputs differ by more than a tolerance or by more than rounding error.

    The limit is the larger of a tenth of the tolerance, relative to the largest entry, and the
    rounding error of the random input vectors.
    """
    scale = float(one.float().abs().max())
    rounding = 4 * _SIZE * torch.finfo(one.dtype).eps
    return float((one - other).float().abs().max()) > max(tolerance / 10 * scale, rounding)


def frequencies(network: "transformers.PreTrainedModel") -> dict[str, Tensor]:
    """Return the rotary frequencies that a network uses, as a dictionary keyed by kind of layer.

    The dictionary is empty if the network has no rotary positions.

    >>> from helpers import models
    >>> {kind: len(found) for kind, found in frequencies(models.default().model).items()}
    {'all layers': 32}
    """
    by_kind: dict[str, Tensor] = {}
    for module in network.modules():
        for name, value in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name and value.numel():
                kind = name.removesuffix("inv_freq").rstrip("_").replace("_", " ") or "all layers"
                value = value.detach().cpu().double()
                if kind in by_kind and not torch.equal(by_kind[kind], value):
                    kind = f"{kind} ({len(by_kind) + 1})"
                by_kind[kind] = value
    width = getattr(network.config.get_text_config(), "rotary_dim", None)
    if not by_kind and width:  # GPT-J and CodeGen store only sines and cosines
        by_kind["all layers"] = rope.frequencies(int(width), 1e4)
    return by_kind


def _blocks(network: "transformers.PreTrainedModel") -> list[torch.nn.Module]:
    count = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    for part in network.modules():
        if isinstance(part, torch.nn.ModuleList) and len(part) and count in (None, len(part)):
            return list(part)
    raise ValueError("the model has no list of layers")


@torch.inference_mode()
def _calls(
    network: "transformers.PreTrainedModel", blocks: list[torch.nn.Module]
) -> dict[int, dict[str, Any]]:
    """Return the arguments of each layer's attention if all positions have the same vector.

    Layers whose attention we cannot replace are left out.
    """
    _heard.append(_Heard())
    try:
        with contextlib.ExitStack() as hooks:
            for block in blocks:
                for part in block.modules():
                    if "attention" in type(part).__name__.lower():
                        hooks.enter_context(
                            part.register_forward_pre_hook(_alike, with_kwargs=True)
                        )
            hooks.enter_context(_attending(network, _NAME, _listen))
            network(_ids(network), use_cache=False)
    except (ValueError, AttributeError):  # an unusual architecture
        return {}
    finally:
        heard = _heard.pop()
    return heard.layers


def _alike(module: torch.nn.Module, arguments: tuple, named: dict) -> tuple[tuple, dict]:
    """Copy the hidden state of the first position to all positions."""
    return _instead(arguments, named, lambda states: states[:, :1].expand_as(states))


def _instead(
    arguments: tuple, named: dict, change: Callable[[Tensor], Tensor]
) -> tuple[tuple, dict]:
    """Return a module's arguments after applying `change` to the hidden states among them."""
    if isinstance(named.get("hidden_states"), Tensor):
        named = named | {"hidden_states": change(named["hidden_states"])}
    elif arguments and isinstance(arguments[0], Tensor) and arguments[0].ndim == 3:
        arguments = (change(arguments[0]), *arguments[1:])
    return arguments, named


def _turned(
    query: Tensor, sets: list[Tensor], tolerance: float
) -> tuple[Tensor | None, str | None, float]:
    """Find the rotation that maps queries (heads, n, d) from each position to the next.

    Returns the frequencies of the rotation, the layout of its pairs, and the fraction of the d
    dimensions that it rotates. The result is (None, None, 0.0) if the queries do not rotate or if
    no frequencies in `sets` fit.
    """
    first, width = query[:, :1].expand_as(query), query.shape[-1]
    scale = float(query.abs().max()) or 1.0

    def off(expected: Tensor) -> float:
        return float((expected - query).abs().max()) / scale

    if off(first) < tolerance / 100:
        return None, None, 0.0
    best: tuple[float, Any] = (off(first), None)
    for theta, start, layout in _candidates(sets, width):
        turned, stop = first.clone(), start + 2 * len(theta)
        turned[..., start:stop] = rope.rotate(
            first[..., start:stop], torch.arange(query.shape[1]), theta, layout
        )
        best = min(
            best, (off(turned), (theta, layout, 2 * len(theta) / width)), key=lambda each: each[0]
        )
    return best[1] if best[1] is not None and best[0] < tolerance else (None, None, 0.0)


def _candidates(sets: list[Tensor], width: int) -> Iterator[tuple[Tensor, int, str]]:
    for theta in sets:
        if 2 * len(theta) <= width:
            for start in sorted({0, width - 2 * len(theta)}):
                for layout in rope._LAYOUTS:
                    yield theta, start, layout


def _window(sees: Callable | None, mask: Tensor | None, context: int) -> int | None:
    """Return the largest number of tokens to which a token may attend, according to a layer's mask.

    The result is None if each token may attend to all tokens up to the context length.
    """
    if sees is None:
        return (
            None
            if mask is None or mask.dtype != torch.bool
            else _widest(lambda q: mask[0, 0, q], mask.shape[-2])
        )

    def row(q: int) -> Tensor:
        zero = torch.tensor(0)
        return sees(zero, zero, torch.tensor(q), torch.arange(q + 1)).expand(q + 1)

    return _widest(row, min(context, _LONGEST))


def _widest(row: Callable[[int], Tensor], n: int) -> int | None:
    """Return the largest number of tokens to which one of two tested tokens may attend.

    We test the last token and an earlier token, because in a chunked mask the last chunk may be
    incomplete. The result is None if the last token may attend to all tokens.
    """
    last = n - 1
    first = int(row(last).int().argmax())
    if first == 0:
        return None
    width = last - first + 1
    return max(width, first - int(row(first - 1)[:first].int().argmax()))
