"""Compute differential attention, the difference of two attention matrices.

The design is that of Ye et al. (2025, arXiv:2410.05258) and of its later version 2. Layers are
counted from 1, as in the paper. The authors' released code counts them from 0.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from helpers import require, rope

EPSILON = 1e-5  # epsilon in the norm of a head, as in the released code
_SPREAD = 0.1  # the initial standard deviation of the vectors that make up lambda


def lambda_init(layer: int) -> float:
    """Return the initial value of lambda in a layer, 0.8 - 0.6 exp(-0.3 (layer - 1)).

    The formula is from section 2.1 of the paper. The factor 1 - lambda_init also scales the output
    of each head.

    Args:
        layer: the number of the layer, counted from 1. The released code counts from 0 and
            therefore uses exp(-0.3 layer).

    >>> [round(lambda_init(layer), 4) for layer in (1, 2, 12)]
    [0.2, 0.3555, 0.7779]
    """
    return 0.8 - 0.6 * math.exp(-0.3 * (require.integer("layer", layer, 1) - 1))


@require.checked
def difference(
    first: Float[Tensor, "... n"], second: Float[Tensor, "... n"], lam: float | Float[Tensor, "..."]
) -> Float[Tensor, "... n"]:
    """Return softmax(first) - lam * softmax(second), taken over the last dimension.

    These are the weights of differential attention. Each row sums to 1 - lam, and some weights may
    be negative.

    Args:
        first, second: logits of the same shape.
        lam: lambda, as one number or as one number per row.

    Returns:
        The signed weights, in the shape of `first`.

    >>> weights = difference(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 0.0]), 0.5)
    >>> [round(weight, 4) for weight in weights.tolist()]
    [0.6308, -0.1308]
    """
    lam = _lambda(lam, first)
    return require.finite("lam", first.softmax(-1) - lam[..., None] * second.softmax(-1))


def _attend(q1: Tensor, k1: Tensor, q2: Tensor, k2: Tensor, v: Tensor, lam: Tensor) -> Tensor:
    """Compute the output (A1 - lambda A2) v of differential attention under a causal mask.

    We compute A1 v - lambda (A2 v) with two calls of scaled_dot_product_attention, so that memory
    never holds an attention matrix. The fused kernels need queries, keys and values of equal width
    and tensors of four dimensions. So we pad the narrower tensors with zeros, which changes no
    score, and each attention matrix is computed once instead of once for each half of the values.
    Lambda broadcasts over all dimensions except the last.
    """
    value_width, wide = v.shape[-1], max(q1.shape[-1], v.shape[-1])
    scale = 1 / math.sqrt(q1.shape[-1])

    def filled(x: Tensor) -> Tensor:
        return x if x.shape[-1] == wide else functional.pad(x, (0, wide - x.shape[-1]))

    def call(q: Tensor, k: Tensor) -> Tensor:
        output = functional.scaled_dot_product_attention(
            filled(q), filled(k), filled(v), scale=scale, is_causal=True
        )
        return output[..., :value_width]

    return call(q1, k1) - lam[..., None] * call(q2, k2)


class DifferentialAttention(nn.Module):
    """Apply causal differential attention with learned projections to x of shape (batch, n, width).

    In version 1 (Eqs. 1 to 3 of the paper) the queries and keys of a head have width d = width / (2
    heads), and its values have width 2 d. The output of each head is divided by its root mean
    square and multiplied by 1 - lambda_init(layer). All heads share one lambda, exp(l_q1 . l_k1) -
    exp(l_q2 . l_k2) + lambda_init(layer).

    In version 2 (the authors' code of 2026) d = width / heads, and the two queries of a head share
    keys and values. Each token and head has a separate lambda, sigmoid(x W). The heads are neither
    normalised nor scaled. Version 2 has width x (width + heads) more weights than version 1.

    Args:
        width: the width of the model.
        heads: the number of differential heads, each with two attention matrices.
        layer: the number of the layer, counted from 1, which sets lambda_init. Version 2 ignores
            it.
        version: 1 or 2.
        base: the base of RoPE, or None for no rotary position encoding.
        turning: the fraction of RoPE's pairs that rotate, the fastest first.
        norm: False leaves out the normalisation of the heads and the factor 1 - lambda_init, as in
            the paper's ablation.
        start: an initial value of lambda instead of lambda_init(layer), as in the paper's ablation.
            The scale of the heads follows this value, too.
        gain: True adds a learned gain of width 2 d to the normalisation, shared by all heads, as in
            the released code.

    Raises:
        ValueError: if the heads do not divide the width as described above (into pairs if RoPE
            rotates them), or if layer, version, base, turning or start is out of range. A call
            raises it if x is not finite or does not have shape (batch, n, width).

    >>> layer = DifferentialAttention(width=16, heads=2, layer=1)
    >>> layer(torch.zeros(1, 3, 16)).shape, round(layer.start, 2)
    (torch.Size([1, 3, 16]), 0.2)
    """

    def __init__(
        self,
        width: int,
        heads: int,
        layer: int,
        version: int = 1,
        base: float | None = 1e4,
        turning: float = 1.0,
        norm: bool = True,
        start: float | None = None,
        gain: bool = False,
    ):
        require.integer("width", width, 1)
        require.integer("heads", heads, 1)
        require.integer("version", version, 1, 2)
        initial = lambda_init(layer)
        maps, pair = (2 if version == 1 else 1), (1 if base is None else 2)
        if width % (maps * heads * pair):
            parts = " x ".join(["2"] * (maps == 2) + ["heads"] + ["2 (RoPE's pairs)"] * (pair == 2))
            raise ValueError(
                f"width must be a multiple of {parts} = {maps * heads * pair}, not {width}"
            )
        if base is not None:
            require.number("base", base, above=1)
        require.number("turning", turning, 0, 1)
        require.flag("norm", norm)
        require.flag("gain", gain)
        if start is not None:
            initial = require.number("start", start, 0, 1)
        super().__init__()
        self.heads, self.version, self.start = heads, version, initial
        self.normed = norm and version == 1
        d = width // (maps * heads)
        frequencies = None if base is None else rope.frequencies(d, base, turning)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.queries = nn.Linear(width, 2 * heads * d, bias=False)
        self.keys = nn.Linear(width, maps * heads * d, bias=False)
        self.values = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gain = nn.Parameter(torch.ones(2 * d)) if gain and self.normed else None
        if version == 1:
            self.lambdas = nn.Parameter(
                _SPREAD * torch.randn(2, 2, d)
            )  # the axes are (first or second, query or key, d)
        else:
            self.gate = nn.Linear(width, heads, bias=False)

    def lam(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b #h #n"]:
        """Return lambda for each head and token.

        In version 1 all heads and tokens share one number.

        Args:
            x: the hidden states before the layer, of shape (batch, n, width).
        """
        if self.version == 2:
            return self.gate(x).sigmoid().transpose(1, 2)
        first, second = self.lambdas.prod(1).sum(-1).exp()
        return (first - second + self.start).expand(len(x), 1, 1)

    def project(
        self, x: Float[Tensor, "b n width"]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Compute the projections q1, k1, q2, k2 and v of the input.

        Each projection has shape (batch, heads, n, d), except that v is twice as wide in version 1.
        Queries and keys are already rotated. Head h uses the maps 2h and 2h + 1 of the queries (and
        in version 1 also of the keys).

        Args:
            x: the hidden states before the layer, of shape (batch, n, width).
        """
        batch, n, _ = x.shape
        q, k, v = (
            layer(x).view(batch, n, parts, -1).transpose(1, 2)
            for layer, parts in (
                (self.queries, 2 * self.heads),
                (self.keys, 2 * self.heads if self.version == 1 else self.heads),
                (self.values, self.heads),
            )
        )
        if self.frequencies is not None:
            positions = torch.arange(n, device=x.device)
            q, k = (rope.turn(t, positions, self.frequencies, "half") for t in (q, k))
        k1, k2 = (k[:, 0::2], k[:, 1::2]) if self.version == 1 else (k, k)
        return q[:, 0::2], k1, q[:, 1::2], k2, v

    def maps(
        self, x: Float[Tensor, "b n width"]
    ) -> tuple[Float[Tensor, "b h n n"], Float[Tensor, "b h n n"]]:
        """Return the two attention matrices of every head, for inspection.

        The signed attention matrix that `attention` returns is the first minus lam times the
        second.

        Args:
            x: the hidden states before the layer, of shape (batch, n, width).
        """
        q1, k1, q2, k2, _ = self.project(self._checked(x))
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scale = 1 / math.sqrt(q1.shape[-1])
        first, second = (
            (scale * q @ k.transpose(-1, -2)).masked_fill(hidden, -math.inf).softmax(-1)
            for q, k in ((q1, k1), (q2, k2))
        )
        return first, second

    def attention(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b h n n"]:
        """Return the signed attention matrix of every head, whose rows sum to 1 - lambda.

        Args:
            x: the hidden states before the layer, of shape (batch, n, width).
        """
        first, second = self.maps(x)
        return first - self.lam(x)[..., None] * second

    def forward(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b n width"]:
        heads = _attend(*self.project(self._checked(x)), self.lam(x))
        if self.normed:
            heads = functional.rms_norm(heads, heads.shape[-1:], self.gain, EPSILON) * (
                1 - self.start
            )
        return self.out(heads.transpose(1, 2).flatten(2))

    def _checked(self, x: Tensor) -> Tensor:
        return require.tensor("x", x, "b n width", width=self.values.in_features)


def _lambda(lam: float | Tensor, rows: Tensor) -> Tensor:
    """Return lambda as a tensor that broadcasts over all dimensions of `rows` except the last."""
    if not isinstance(lam, Tensor):
        return torch.as_tensor(require.number("lam", lam), dtype=rows.dtype, device=rows.device)
    require.tensor("lam", lam, "...")
    try:
        fits = torch.broadcast_shapes(lam.shape, rows.shape[:-1]) == rows.shape[:-1]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            "lam must be one number or a tensor that broadcasts to the shape "
            f"{tuple(rows.shape[:-1])}, not a tensor of shape {tuple(lam.shape)}"
        )
    return lam.to(rows)
