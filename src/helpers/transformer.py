"""Build small decoders whose design is set by arguments.

You can choose the position encoding, the attention window, the normalisation and the type of layer.
"""

import copy
import math
from collections.abc import Callable
from functools import lru_cache

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from helpers import require, rope

_ENCODINGS = ("NoPE", "RoPE", "ALiBi", "APE")


def sinusoidal(positions: Num[Tensor, " n"], width: int) -> Float[Tensor, "n {width}"]:
    """Return the sinusoidal position encoding of Vaswani et al. (2017), section 3.5.

    Sines and cosines are interleaved. The result has one row of `width` numbers per position.

    Args:
        positions: the positions of n tokens.
        width: the width of the model, an even number.

    Returns:
        Numbers from -1 to 1, in float64.

    >>> sinusoidal(torch.tensor([0]), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    require.tensor("positions", positions, "n", "real")
    if require.integer("width", width, 2) % 2:
        raise ValueError(f"width must be even, not {width}")
    theta = 1e4 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions[:, None].double() * theta
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _alibi_slopes(heads: int) -> Float[Tensor, " h"]:
    """Return the slopes of ALiBi for h heads (Press et al., 2022).

    The slopes are the geometric sequence 2^(-8/h), 2^(-16/h), …, 2^-8.

    >>> _alibi_slopes(8).tolist()[:3]
    [0.5, 0.25, 0.125]
    """
    require.integer("heads", heads, 1)
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


@lru_cache(maxsize=32)  # the bias is the same at every step of training
def _bias(
    n: int, window: int | None, slopes: int | None, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "#h n n"]:
    gap = (torch.arange(n)[:, None] - torch.arange(n)).to(device, dtype)
    hidden = (gap < 0) if window is None else (gap < 0) | (gap >= window)
    bias = torch.zeros_like(gap)[None]
    if slopes is not None:
        bias = -_alibi_slopes(slopes).to(gap)[:, None, None] * gap
    return bias.masked_fill(hidden, -math.inf)


class Block(nn.Module):
    """Apply one layer of a decoder, which is causal self-attention followed by a two-layer MLP.

    The self-attention and the MLP each have a norm before them and a residual connection.

    Args:
        width, heads, encoding, window, norm, base, turning: as in `Decoder`.
        layer: the number of the layer, from 1.
        attention: a replacement for softmax, as a function from logits (b, h, n, n) to attention
            weights of the same shape. The logits are minus infinity where a token must not attend.
            If the replacement is a module, every layer gets its own copy.
        hidden: the width of the MLP, or None for 4 x width.

    >>> Block(16, 2, "RoPE", None, True, 1e4, 1.0)(torch.zeros(1, 3, 16)).shape
    torch.Size([1, 3, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        encoding: str,
        window: int | None,
        norm: bool,
        base: float,
        turning: float,
        layer: int = 1,
        attention: Callable[[Tensor], Tensor] | None = None,
        hidden: int | None = None,
    ):
        super().__init__()
        self.heads, self.encoding, self.window, self.layer = heads, encoding, window, layer
        self.frequencies = (
            rope.frequencies(width // heads, base, turning) if encoding == "RoPE" else None
        )
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        hidden = 4 * width if hidden is None else hidden
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.norm1, self.norm2 = (nn.LayerNorm(width) if norm else nn.Identity() for _ in range(2))
        self.weigh = copy.deepcopy(attention) if isinstance(attention, nn.Module) else attention

    def bias(self, n: int, like: Tensor) -> Float[Tensor, "#h n n"]:
        """Return the bias of the logits, which contains the causal mask, the window and ALiBi.

        Args:
            n: the number of tokens.
            like: a tensor whose dtype and device the bias gets.
        """
        slopes = self.heads if self.encoding == "ALiBi" else None
        return _bias(n, self.window, slopes, like.dtype, like.device)

    def project(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "3 b h n w"]:
        """Compute the queries, keys and values of every head.

        Queries and keys are already rotated if the encoding is RoPE.

        Args:
            x: the hidden states before the layer, of shape (b, n, d).
        """
        batch, n, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.frequencies is None:
            return parts.contiguous()
        return torch.cat(
            [rope.turn(parts[:2], torch.arange(n), self.frequencies, "half"), parts[2:]]
        )

    def logits(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        """Return the input of the softmax, which is the sum of the scores and the bias.

        Args:
            x: the hidden states before the layer, of shape (b, n, d).
        """
        q, k, _ = self.project(x)
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.bias(x.shape[1], q)

    def attention(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        """Return the full attention matrices, for inspection. Training does not need them.

        Args:
            x: the hidden states before the layer, of shape (b, n, d).
        """
        logits = self.logits(x)
        return logits.softmax(-1) if self.weigh is None else self.weigh(logits)

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        """Return the output of every head at every token (attention weights times values).

        Args:
            x: the hidden states before the layer, of shape (b, n, d).
        """
        q, k, v = self.project(x)
        bias = self.bias(x.shape[1], q)
        if self.weigh is None:
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.weigh(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias) @ v

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        x = x + self.out(self.mix(x).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """Predict the next token with a small decoder-only Transformer.

    A call maps tokens (b, n) to logits (b, n, vocabulary), and `states` returns the final hidden
    states.

    Args:
        vocabulary: the number of tokens.
        width, heads, layers: the sizes of the model.
        encoding: "NoPE", "RoPE", "ALiBi" or "APE" (sinusoidal, added to the embedding).
        window: the width of a sliding window. Each token attends to itself and to the `window` - 1
            tokens before it. None lets each token attend to all earlier tokens.
        norm: whether there is a LayerNorm before each sublayer and at the end.
        base: the base of RoPE.
        turning: the fraction of RoPE's pairs that rotate, counted from the fastest pair. A fraction
            below 1 gives p-RoPE.
        block: a function that makes a layer, for example `Block`, a subclass of it, or
            `functools.partial(Block, attention=…)`.

    Raises:
        ValueError: if the encoding is unknown, a size or window is below 1, the width is not a
            multiple of 2 x heads, the base is not above 1, or `turning` is outside [0, 1]. A call
            of the decoder raises it if the tokens do not have shape (b, n) or are not in the
            vocabulary.

    >>> decoder = Decoder(vocabulary=10, width=16, heads=2, layers=1)
    >>> decoder(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 64,
        heads: int = 4,
        layers: int = 3,
        encoding: str = "RoPE",
        window: int | None = None,
        norm: bool = True,
        base: float = 1e4,
        turning: float = 1.0,
        block: Callable[..., Block] = Block,
    ):
        for name, size in (
            ("vocabulary", vocabulary),
            ("width", width),
            ("heads", heads),
            ("layers", layers),
        ):
            require.integer(name, size, 1)
        require.choice("encoding", encoding, _ENCODINGS)
        if window is not None:
            require.integer("window", window, 1)
        require.number("base", base, above=1)
        require.number("turning", turning, 0, 1)
        require.flag("norm", norm)
        require.function("block", block)
        if width % (2 * heads):
            raise ValueError(f"width must be a multiple of 2 x heads = {2 * heads}, not {width}")
        super().__init__()
        self.encoding = encoding
        self.embedding = nn.Embedding(vocabulary, width)
        parts = (width, heads, encoding, window, norm, base, turning)
        try:
            blocks = [block(*parts, layer=number) for number in range(1, layers + 1)]
        except TypeError as error:
            raise ValueError(
                "block must be a function that takes the arguments of Block, but calling "
                f"it failed: {error}"
            ) from error
        for each in blocks:
            require.instance("what block returns", each, Block, "a Block")
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, vocabulary, bias=False)

    def embed(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """Return the input of the first layer (embeddings, plus the encoding if it is APE).

        Args:
            ids: tokens of the vocabulary, of shape (b, n), with one row per sequence.
        """
        require.tensor("ids", ids, "b n", "whole")
        if require.readable(ids) and (ids.min() < 0 or ids.max() >= self.embedding.num_embeddings):
            raise ValueError(
                "ids must be tokens of the vocabulary, from 0 to "
                f"{self.embedding.num_embeddings - 1}, not {int(ids.min())} to "
                f"{int(ids.max())}"
            )
        x = self.embedding(ids)
        return (
            x + sinusoidal(torch.arange(ids.shape[1]), x.shape[-1]).to(x)
            if self.encoding == "APE"
            else x
        )

    def states(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """Return the hidden state of every token after the last layer and the final norm.

        Args:
            ids: tokens of the vocabulary, of shape (b, n), with one row per sequence.
        """
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    @torch.no_grad()
    def attention(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "layers b h n n"]:
        """Return the attention matrices of all layers and heads.

        Args:
            ids: tokens of the vocabulary, of shape (b, n), with one row per sequence.
        """
        x, maps = self.embed(ids), []
        for block in self.blocks:
            maps.append(block.attention(x))
            x = block(x)
        return torch.stack(maps)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n v"]:
        return self.head(self.states(ids))
