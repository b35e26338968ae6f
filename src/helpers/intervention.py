"""Change a decoder's positions, mask or heads by hand, and see what the decoder then computes.

    from helpers import attention, intervention, models, probe
    model = models.load()
    ids = probe.encode(model, "The cat sat on the mat. The cat")
    windowed = intervention.read(model, ids, mask=attention.window_mask(len(ids), 4))

Changes that last for a `with` block are in `helpers.probe`: `attention_knockout` hides a token from
later ones, and `patch_queries_and_keys` replaces queries and keys.

The page "Try it" does in a browser what `read` does here, on the graph that `book.export` writes.
Our tests compare the two.
"""

import contextlib
import dataclasses
import html
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from helpers import models, probe, require
from helpers.models import mixing
from helpers.words import translated

_NAME = "helpers_intervention"  # the name under which transformers knows the attention below


class _Reading(NamedTuple):
    """Hold the logits, attention matrices and hidden states that `read` returns."""

    logits: Float[Tensor, "n v"]
    attentions: Float[Tensor, "layers heads n n"]
    states: Float[Tensor, "layers_and_one n d"]


def turns(
    model: models.LanguageModel,
    positions: Sequence[float] | int,
    base: float | None = None,
    still: Sequence[int] = (),
    silent: Sequence[int] = (),
) -> Complex[Tensor, "n pairs"]:
    """Return RoPE's rotations as complex numbers, which you can change by hand and pass to `read`.

    There is one number per token and rotary pair, exp(i · position · frequency). The argument of
    `read` for the changed numbers is `rope`.

    Args:
        model: a model with rotary position encoding.
        positions: the positions of the tokens, or the number of tokens for positions 0, 1, 2, ….
        base: a base to use instead of the base with which the model was trained.
        still: indices of pairs that do not rotate, as in p-RoPE. Their complex number is 1.
        silent: indices of pairs that add nothing to any logit. Their complex number is 0.

    Returns:
        One complex number per token and rotary pair.

    Raises:
        ValueError: if the model has no rotary encoding, a position is not finite, the base is not
            above 1, or a pair does not exist.

    >>> turns(models.default(), 3).shape
    torch.Size([3, 32])
    """
    frequencies = probe.rotary_frequencies(model)
    if not isinstance(positions, Sequence | Tensor):
        positions = range(require.integer("positions", positions, 1, probe.MOST))
    try:
        places = torch.as_tensor(list(positions), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"positions must hold numbers, not {require.brief(positions)}") from None
    require.tensor("positions", places, "n")
    half = len(frequencies)
    if base is not None:
        require.number("base", base, above=1)
        frequencies = float(base) ** (-torch.arange(half, dtype=torch.float64) / half)
    rotations = torch.polar(
        torch.ones(len(places), half, dtype=torch.float64), places[:, None] * frequencies
    )
    for name, pairs, value in (("still", still, 1), ("silent", silent, 0)):
        if not isinstance(pairs, Sequence) or len(pairs):
            rotations[:, require.integers(name, pairs, 0, half - 1)] = value
    return rotations


@torch.inference_mode()
def read(
    model: models.LanguageModel,
    ids: Int[Tensor, " n"],
    rope: Complex[Tensor, "n pairs"] | None = None,
    mask: Bool[Tensor, "n n"] | None = None,
    heads: Float[Tensor, "layers heads"] | None = None,
    temperature: float = 1.0,
) -> _Reading:
    """Run the model on `ids` with interventions in all layers, and return what it computes.

    Without interventions the model runs as it was trained. The result has three tensors. `logits`
    has shape (n, v) and predicts the token that follows each position, `attentions` has shape
    (layers, heads, n, n), and `states` has shape (layers + 1, n, d) and holds the hidden states
    after the embedding and after each layer. The last layer's states have passed through the final
    norm.

    Args:
        model: a model from `models.load`.
        ids: 1 to `probe.MOST` tokens.
        rope: the rotations of queries and keys, as `turns` returns them.
        mask: True in entry (i, j) if token i may attend to token j. None uses the model's own mask.
        heads: a factor for the output of each head. The factor 0 ablates a head, and 1 leaves it as
            it is.
        temperature: the number that divides all attention logits before the softmax.

    Raises:
        ValueError: if there are no tokens or more than `probe.MOST`, if an intervention has the
            wrong shape, if the mask lets a token attend to a later token or to no token at all, or
            if the attention or the rotary encoding of this architecture cannot be replaced.

    >>> from helpers import attention
    >>> model = models.default()
    >>> ids = probe.encode(model, "The cat sat")
    >>> read(model, ids, mask=attention.window_mask(3, 1)).attentions[0, 0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    if (
        not isinstance(ids, Tensor)
        or ids.ndim != 1
        or ids.dtype != torch.long
        or not 1 <= len(ids) <= probe.MOST
    ):
        raise ValueError(
            f"ids must be a one-dimensional tensor of 1 to {probe.MOST} tokens with "
            f"dtype torch.long, not {require.brief(ids)}"
        )
    probe.check(model, ids=ids)
    config = model.model.config.get_text_config()
    n, device = len(ids), model.model.device
    if mask is not None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (n, n):
            raise ValueError(
                f"mask must be a bool tensor of shape ({n}, {n}), not {require.brief(mask)}"
            )
        if mask.triu(1).any() or not mask.any(-1).all():
            raise ValueError(
                "mask must let each token attend to itself or to an earlier token, and "
                "never to a later one"
            )
    if heads is not None:
        require.tensor(
            "heads",
            heads,
            "layers heads",
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
        )
        if not heads.float().isfinite().all():
            raise ValueError(
                f"heads must hold numbers that float32 can represent, not {require.brief(heads)}"
            )
    change = _Change(mask, heads, require.number("temperature", temperature, 1e-6))
    if why := probe.mixed_otherwise(model):
        raise ValueError(
            "an intervention on attention does not reach everything that mixes tokens, because "
            f"{why}"
        )
    with _rotated(model, rope, n), _changed(model, change):
        out = model.model(ids[None].to(device), use_cache=False, output_hidden_states=True)
    maps = torch.stack([change.maps[layer] for layer in sorted(change.maps)])
    return _Reading(out.logits[0].float().cpu(), maps, torch.cat(out.hidden_states).float().cpu())


@dataclasses.dataclass
class _Change:
    mask: Tensor | None
    heads: Tensor | None
    temperature: float
    maps: dict[int, Tensor] = dataclasses.field(default_factory=dict)


_changes: list[_Change] = []


def _attend(
    module: torch.nn.Module,
    query: Float[Tensor, "1 heads n d"],
    key: Float[Tensor, "1 groups n d"],
    value: Float[Tensor, "1 groups n e"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_,
) -> tuple[Tensor, None]:
    """Compute attention with the current intervention, in a form that transformers can call."""
    if s_aux is not None:
        raise ValueError(
            "model must not have learned sinks in addition to its tokens, because no "
            "intervention here covers these sinks. Choose another model"
        )
    change = _changes[-1]
    heads, n, width = query.shape[1:]
    keys, values = (x[0].repeat_interleave(heads // x.shape[1], 0) for x in (key, value))
    logits = (
        query[0]
        @ keys.transpose(-1, -2)
        * (width**-0.5 if scaling is None else scaling)
        / change.temperature
    )
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    is_visible = (
        torch.ones(n, n, dtype=torch.bool).tril()
        if attention_mask is None
        else attention_mask[0, 0, :, :n]
    )
    is_visible = is_visible if change.mask is None else change.mask
    weights = logits.masked_fill(~is_visible.to(logits.device), -torch.inf).softmax(
        -1, dtype=torch.float32
    )
    change.maps[module.layer_idx] = weights.cpu()
    mixed = weights.to(values.dtype) @ values
    if change.heads is not None:
        mixed = mixed * change.heads[module.layer_idx].to(mixed)[:, None, None]
    return mixed.transpose(0, 1)[None], None


@contextlib.contextmanager
def _changed(model: models.LanguageModel, change: _Change) -> Iterator[None]:
    _changes.append(change)
    try:
        with mixing._attending(model.model, _NAME, _attend):
            yield
    finally:
        _changes.pop()
    if len(change.maps) != model.model.config.get_text_config().num_hidden_layers:
        raise ValueError(
            f"model {model.name} does not let its attention be replaced in every layer "
            f"({probe.mixed_otherwise(model) or 'its code is unusual'}). Choose another "
            "model"
        )


@contextlib.contextmanager
def _rotated(model: models.LanguageModel, rope: Tensor | None, n: int) -> Iterator[None]:
    """Make the model's rotary embedding use the given rotations while the block runs."""
    if rope is None:
        yield
        return
    pairs = len(probe.rotary_frequencies(model))
    if not isinstance(rope, Tensor) or not rope.is_complex() or rope.shape != (n, pairs):
        raise ValueError(
            f"rope must be a complex tensor of shape ({n}, {pairs}), not {require.brief(rope)}"
        )
    if not torch.isfinite(torch.view_as_real(rope)).all():
        raise ValueError("rope must hold finite numbers")

    def tables(module, arguments, out):
        scale = getattr(module, "attention_scaling", 1.0)
        if isinstance(out, Tensor):  # the rotations are complex numbers, as they are here
            return (rope * scale)[None].to(out)
        return tuple(
            _twice(part * scale, out[0])[None].to(out[0]) for part in (rope.real, rope.imag)
        )

    with contextlib.ExitStack() as hooks:
        for each in model.model.modules():
            if isinstance(getattr(each, "inv_freq", None), Tensor):
                hooks.enter_context(each.register_forward_hook(tables))
        yield


def _twice(
    part: Float[Tensor, "n pairs"], like: Float[Tensor, "1 n width"]
) -> Float[Tensor, "n width"]:
    """Repeat the number of each rotary pair for both dimensions of the pair.

    The dimensions follow the order of the model's own table, `like`.
    """
    first, second = like.chunk(2, -1)
    if like.shape[-1] == part.shape[-1]:
        return part
    return (
        torch.cat([part, part], -1) if torch.equal(first, second) else part.repeat_interleave(2, -1)
    )


class _Link:
    """Show a link to the page "Try it" with a prompt and settings already filled in.

    Where HTML cannot be shown, print the link's text and address.
    """

    def __init__(self, words: str, page: str, state: dict[str, str | int | float | bool]):
        self.words, self.state = words, state
        written = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in state.items()
        }
        self.address = (
            # the path from a page of a chapter
            f"../../live/{page}.html#{urllib.parse.urlencode(written)}"
        )

    def _repr_html_(self) -> str:
        site = html.escape(translated("(on the book's site)"), quote=False)
        return (
            f'<p>▶ <a href="{html.escape(self.address)}">{html.escape(self.words)}</a> {site}</p>'
        )

    def __repr__(self) -> str:
        return f"{self.words} ({self.address.removeprefix('../../')} on the book's site)"


def link(words: str, page: str = "index", **state: str | int | float | bool) -> _Link:
    """Return a link to the page "Try it" with a prompt and settings already filled in.

    Args:
        words: the text of the link.
        page: "index" for the language model, or "small" for the small decoders of the course.
        **state: the prompt and the settings, with the names that the page's own links use, such as
            `prompt="…", view="heads", window=8`.

    >>> link("A window of 8", prompt="a b", window=8)
    A window of 8 (live/index.html#prompt=a+b&window=8 on the book's site)
    """
    return _Link(
        require.text("words", words, empty=False),
        require.choice("page", page, ("index", "small")),
        state,
    )
