"""Intervene in a model for chapter 2, with attention knockout or scaled heads.

Another function measures how much each token contributes to the hidden states of others.
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
    """Return a model's hidden states and losses while later tokens cannot attend to one token.

    The attention is knocked out in every layer and head, but the token still attends to itself. If
    the first token is knocked out for all later tokens, it has no influence on them, so the second
    token is then the first one that they see.

    Args:
        hide: the position of the token that is knocked out, or `None` for none.
        since: the first position whose token can no longer attend to the hidden token.

    Returns:
        A pair of tensors. The first has the hidden states (layers + 1, n, d) after the embedding
            and after each layer, where the states of the last layer have passed through the final
            norm. The second has the n - 1 losses on the next tokens, in nats.

    Raises:
        ValueError: if there are fewer than two tokens or more than `probe.MOST`, if a position is
            not in the sequence, or if the architecture's attention cannot be replaced.
    """
    probe.check(model, tokens=tokens)
    if not 2 <= len(tokens) <= probe.MOST:
        raise ValueError(f"tokens must have 2 to {probe.MOST} tokens, not {len(tokens)}")
    if hide is not None:
        require.integer("hide", hide, 0, len(tokens) - 1)
    require.integer("since", since, 0, len(tokens) - 1)
    if why := probe.mixed_otherwise(model):
        raise ValueError(
            f"a token that is hidden from attention still has influence, because {why}"
        )
    with probe.attention_knockout(model, hide, since):
        out = _read(model, tokens)
    losses = torch.nn.functional.cross_entropy(
        out.logits[0, :-1].float(), tokens[1:].to(out.logits.device), reduction="none"
    )
    return torch.cat(out.hidden_states).float().cpu(), losses.cpu()


class Contributions(NamedTuple):
    """Hold the size of each token's contributions to others, in fp32 on the CPU.

    Attributes:
        values: for each layer, head and token, the norm of the vector that the token contributes in
            this head.
        shares: for each layer, the fraction that comes from token j (column) among all
            contributions that token i (row) receives.
    """

    values: Float[Tensor, "layers heads n"]
    shares: Float[Tensor, "layers n n"]


@torch.inference_mode()
def contributions(model: LanguageModel, tokens: Int[Tensor, " n"]) -> Contributions:
    """Measure how much each token contributes to the hidden states of others.

    The method is norm-based analysis with the residual connection (Kobayashi et al., 2021). In head
    h, token j contributes f_h(j), which is its value multiplied by the output matrix. Token i
    receives c_ij = sum_h A_h,ij f_h(j) from token j, and it also keeps its own state. The result
    has the norms of the f_h(j) as `values`, and the norms of the c_ij, divided by their sum over j,
    as `shares`. The decoder normalises a state before attention reads it, so f includes this norm.

    Args:
        tokens: at most `probe.MOST` tokens.

    Raises:
        ValueError: if there are no tokens or too many, or the model's layers have no
            `self_attn.v_proj` and `o_proj` (or `dense`, as in Phi).
    """
    probe.check(model, tokens=tokens)
    maps = probe.attention_maps(model, tokens)
    if not probe.reads_projections(model):
        raise ValueError(
            "its heads have no separate values (self_attn.v_proj), but this measure needs them"
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
        )  # a state of 0 that receives nothing keeps itself
        sizes.append(handed.norm(dim=-1))
        shares.append(norms / norms.sum(-1, keepdim=True))
    return Contributions(torch.stack(sizes), torch.stack(shares))


@contextlib.contextmanager
def scaled(model: LanguageModel, heads: Float[Tensor, "layers heads"]) -> Iterator[None]:
    """Multiply the output of each head by a number, while the block runs.

    The factor 0 ablates a head. The attention weights of the head do not change.

    Args:
        heads: one number for each head.

    Raises:
        ValueError: if the layers have no output matrix under a name that we know (such as
            `self_attn.o_proj` or `dense`), or if `heads` does not have one number for each head.
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
        "its attention has no output matrix under a known name "
        f"({', '.join(names)}), but this measure needs the output matrix"
    )
