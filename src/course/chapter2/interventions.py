"""Change a model's heads for chapter 2: a token hidden from all, heads switched off, what each
token hands over.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import probe, require
from helpers.models import LanguageModel


@torch.inference_mode()
def with_hidden(
    model: LanguageModel, tokens: Int[Tensor, " n"], hide: int | None = None, since: int = 0
) -> tuple[Float[Tensor, "layers n d"], Float[Tensor, " t"]]:
    """Return representations after the embedding and each layer, and the loss of each next token,
    with one token hidden.

    No later token can look at the hidden one, in any layer and head; it still sees itself. Hidden
    from all, the first token is as good as absent, and the second becomes the first.

    Args:
        hide: the position of the hidden token; None hides none.
        since: tokens before this position see it all the same.

    Returns:
        States (layers + 1, n, d), the last one after the final norm, and n - 1 losses in nats.

    Raises:
        ValueError: fewer than two tokens or more than `probe.MOST`, a position that is not in the
            sequence, or an architecture whose attention cannot be replaced.
    """
    probe.check(model, tokens=tokens)
    if not 2 <= len(tokens) <= probe.MOST:
        raise ValueError(f"tokens must be 2 to {probe.MOST}, not {len(tokens)}")
    if hide is not None:
        require.integer("hide", hide, 0, len(tokens) - 1)
    require.integer("since", since, 0, len(tokens) - 1)
    if why := probe.mixed_otherwise(model):
        raise ValueError(f"a token hidden from attention is not hidden from all: {why}")
    with probe.attention_knockout(model, hide, since):
        out = _read(model, tokens)
    losses = torch.nn.functional.cross_entropy(
        out.logits[0, :-1].float(), tokens[1:].to(out.logits.device), reduction="none"
    )
    return torch.cat(out.hidden_states).float().cpu(), losses.cpu()


class Contributions(NamedTuple):
    """How large what the tokens hand over is, in fp32 on the CPU."""

    values: Float[Tensor, "layers heads n"]
    shares: Float[Tensor, "layers n n"]


@torch.inference_mode()
def contributions(model: LanguageModel, tokens: Int[Tensor, " n"]) -> Contributions:
    """Return norms of what each token hands over in each head, and each token's share in what an
    attention block writes.

    In head h token j hands over f_h(j), its value after the output matrix: `values` are the norms
    of these. Token i then holds c_ij = sum_h A_h,ij f_h(j) from token j, and its own state besides;
    `shares` are the norms of the c_ij, divided by their sum over j. This is norm-based analysis
    with the residual (Kobayashi et al., 2021) for a decoder that normalises before attention, so
    that the norm is inside f.

    Args:
        tokens: at most `probe.MOST`.

    Raises:
        ValueError: no tokens or too many, or the model's layers have no `self_attn.v_proj` and
            `o_proj` (or `dense`, as Phi).
    """
    probe.check(model, tokens=tokens)
    maps = probe.attention_maps(model, tokens)
    if not probe.reads_projections(model):
        raise ValueError(
            "its heads have no values of their own (self_attn.v_proj), which this takes"
        )
    blocks = probe.blocks(model)
    kept: dict[int, Tensor] = {}
    with contextlib.ExitStack() as hooks:
        for layer, block in enumerate(blocks):
            keep = functools.partial(
                lambda layer, module, arguments, out: kept.update({layer: out[0]}), layer
            )
            hooks.enter_context(block.self_attn.v_proj.register_forward_hook(keep))
        states = _read(model, tokens).hidden_states
    sizes, shares = [], []
    for layer, (block, attention) in enumerate(zip(blocks, maps, strict=True)):
        heads, n, _ = attention.shape
        width = block.self_attn.head_dim
        values = kept[layer].view(n, -1, width).transpose(0, 1)
        values = values.repeat_interleave(heads // len(values), 0)
        mixing = _output(block.self_attn).weight.T.view(heads, width, -1)
        handed = (values @ mixing).float().cpu()
        total = torch.einsum("hij,hjd->ijd", attention, handed)
        total.diagonal(dim1=0, dim2=1).add_(states[layer][0].float().cpu().T)
        norms = total.norm(dim=-1)
        norms += (
            (norms.sum(-1) == 0).float().diag()
        )  # a state of 0 that hears of nothing keeps itself
        sizes.append(handed.norm(dim=-1))
        shares.append(norms / norms.sum(-1, keepdim=True))
    return Contributions(torch.stack(sizes), torch.stack(shares))


@contextlib.contextmanager
def scaled(model: LanguageModel, heads: Float[Tensor, "layers heads"]) -> Iterator[None]:
    """Inside, each head's output is multiplied by its number: 0 turns it off, and what it looks at
    stays as it is.

    Raises:
        ValueError: the model has no `self_attn.o_proj` or `dense`, or `heads` is not a number for
            each of its heads.
    """
    probe.check(model)
    config = model.model.config.get_text_config()
    require.tensor(
        "heads",
        heads,
        "layers heads",
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
    )
    with contextlib.ExitStack() as hooks:
        for block, gain in zip(probe.blocks(model), heads, strict=True):
            gain = gain.repeat_interleave(block.self_attn.head_dim).to(
                model.model.device, model.model.dtype
            )
            scale = functools.partial(
                lambda gain, module, arguments: (arguments[0] * gain, *arguments[1:]), gain
            )
            hooks.enter_context(_output(block.self_attn).register_forward_pre_hook(scale))
        yield


def _read(model: LanguageModel, tokens: Tensor):
    return model.model(
        tokens[None].to(model.model.device), use_cache=False, output_hidden_states=True
    )


def _output(mixer: torch.nn.Module) -> torch.nn.Linear:
    names = ("o_proj", "dense", "out_proj")
    for name in names:
        if hasattr(mixer, name):
            return getattr(mixer, name)
    raise ValueError(
        f"its attention has no output matrix under a known name ({', '.join(names)}), which "
        "this takes"
    )
