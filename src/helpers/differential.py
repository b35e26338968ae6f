"""Differential attention: the difference of two attention maps, Ye et al. (2025), arXiv:2410.05258, and its version 2.

Layers count from 1, as in the paper; the released code counts them from 0. `mask` holds True where a query may see a
key, or numbers that are added to the logits (-inf hides); without one, attention is causal.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from helpers import require, rope

EPSILON = 1e-5  # of the norm of a head, as in the released code
_SPREAD = 0.1  # standard deviation of the vectors that lambda is made of


def _lambda_init(layer: int) -> float:
    """0.8 - 0.6 exp(-0.3 (layer - 1)): where lambda starts, and what fixes the scale of a head. Section 2.1.

    Args:
        layer: from 1; the code of the paper, which counts from 0, has exp(-0.3 layer).

    >>> [round(_lambda_init(layer), 4) for layer in (1, 2, 12)]
    [0.2, 0.3555, 0.7779]
    """
    return 0.8 - 0.6 * math.exp(-0.3 * (require.integer("layer", layer, 1) - 1))


def difference(
    first: Float[Tensor, "... n"], second: Float[Tensor, "... n"], lam: float | Float[Tensor, "..."]
) -> Float[Tensor, "... n"]:
    """softmax(first) - lambda softmax(second) over the last dimension; a row sums to 1 - lambda and may go below 0.

    Args:
        first, second: logits of the same shape.
        lam: one number, or one a row.

    >>> [round(w, 4) for w in difference(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 0.0]), 0.5).tolist()]
    [0.6308, -0.1308]
    """
    require.tensor("first", first, "... n")
    require.tensor("second", second, "... n")
    if first.shape != second.shape:
        raise ValueError(f"second must have the shape of first, {tuple(first.shape)}, not {tuple(second.shape)}")
    lam = _lambda(lam, first)
    return require.finite("lam", first.softmax(-1) - lam[..., None] * second.softmax(-1))


def weights(
    q1: Float[Tensor, "... n d"],
    k1: Float[Tensor, "... m d"],
    q2: Float[Tensor, "... n d"],
    k2: Float[Tensor, "... m d"],
    lam: float | Float[Tensor, "..."],
    mask: Bool[Tensor, "... n m"] | Float[Tensor, "... n m"] | None = None,
) -> Float[Tensor, "... n m"]:
    """softmax(q1 k1' / sqrt(d)) - lambda softmax(q2 k2' / sqrt(d)): the signed map of Eq. 1, in full.

    >>> x = torch.zeros(2, 4)
    >>> weights(x, x, x, x, 0.5).tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    _fit(q1, k1, q2, k2)
    lam, bias = _lambda(lam, q1), _bias(mask, q1, k1)
    maps = [(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias).softmax(-1) for q, k in ((q1, k1), (q2, k2))]
    return require.finite("q1, k1, q2, k2 or lam", maps[0] - lam[..., None] * maps[1])


def attend(
    q1: Float[Tensor, "... n d"],
    k1: Float[Tensor, "... m d"],
    q2: Float[Tensor, "... n d"],
    k2: Float[Tensor, "... m d"],
    v: Float[Tensor, "... m e"],
    lam: float | Float[Tensor, "..."],
    mask: Bool[Tensor, "... n m"] | Float[Tensor, "... n m"] | None = None,
) -> Float[Tensor, "... n e"]:
    """Differential attention without a map in memory: two calls of scaled_dot_product_attention that share the values.

    (A1 - lambda A2) v = A1 v - lambda (A2 v). The fused kernels want queries, keys and values of one width; the
    narrower are filled up with zeros, which changes no score, so that each map is made once and not once for each half
    of the values.

    Args:
        q1, k1, q2, k2: queries and keys of the two maps.
        v: values, usually twice as wide.
        lam: one number, or a tensor that broadcasts to (..., n): one a head, one a token and head.
        mask: what may be seen; causal attention when None.

    Raises:
        ValueError: shapes that do not fit, numbers that are not finite, a mask that hides all keys from a query, or no
            mask although queries and keys are not equally many.

    >>> x = torch.zeros(2, 4)
    >>> attend(x, x, x, x, torch.tensor([[2.0], [4.0]]), 0.5).tolist()
    [[1.0], [1.5]]
    """
    _fit(q1, k1, q2, k2)
    _values(v, k1)
    lam, first = _lambda(lam, q1), q1.shape[:-2]
    _alike(mask, q1, k1)
    bias = None if mask is None else _bias(mask, q1, k1)

    def four(x: Tensor) -> Tensor:  # the fused kernels want four dimensions
        return x if x.ndim == 4 else x.reshape(1, -1, *x.shape[-2:])

    if q1.ndim != 4:
        lam = lam.expand(q1.shape[:-1]).reshape(1, -1, q1.shape[-2])
        if bias is not None and bias.ndim > 2:
            bias = four(bias.expand(*first, *bias.shape[-2:]))
    found = _attend(*map(four, (q1, k1, q2, k2, v)), lam, bias)
    return require.finite("q1, k1, q2, k2, v or lam", found.reshape(*first, *found.shape[-2:]))


def _attend(q1: Tensor, k1: Tensor, q2: Tensor, k2: Tensor, v: Tensor, lam: Tensor, bias: Tensor | None) -> Tensor:
    """`attend` without a look at its arguments, for layers that call it at every step of training."""
    own, wide = v.shape[-1], max(q1.shape[-1], v.shape[-1])
    scale = 1 / math.sqrt(q1.shape[-1])

    def filled(x: Tensor) -> Tensor:
        return x if x.shape[-1] == wide else functional.pad(x, (0, wide - x.shape[-1]))

    def call(q: Tensor, k: Tensor) -> Tensor:
        settings = {"is_causal": True} if bias is None else {"attn_mask": bias}
        found = functional.scaled_dot_product_attention(filled(q), filled(k), filled(v), scale=scale, **settings)
        return found[..., :own]

    return call(q1, k1) - lam[..., None] * call(q2, k2)


class DifferentialAttention(nn.Module):
    """Causal differential attention over x (batch, n, width), with its projections.

    Version 1 (Eqs. 1 to 3 of the paper): the queries and keys of a head have width d = width / (2 heads), its values
    2 d. Each head is normalised by its root mean square and multiplied by 1 - lambda_init(layer), and all heads share
        lambda = exp(l_q1 . l_k1) - exp(l_q2 . l_k2) + lambda_init(layer).
    Version 2 (the authors' code of 2026): d = width / heads; two queries a head share its keys and values; lambda =
    sigmoid(x W) for each token and head; no norm of the heads and no scale. It has width x (width + heads) more weights.

    Args:
        width: of the model.
        heads: differential heads, each of two maps.
        layer: from 1; sets lambda_init, which version 2 does without.
        version: 1 or 2.
        base: RoPE's base; None for no rotation.
        turning: the share of RoPE's pairs that turn, fastest first.
        norm: False leaves out the norm of the heads and the scale that goes with it, as in the paper's ablation.
        start: another start of lambda than lambda_init(layer), as in the paper's ablation; it sets the scale, too.
        gain: the norm of the heads has a learned gain of width 2 d, one for all heads, as in the released code.

    Raises:
        ValueError: a width that the heads do not divide as said above (with a rotation: into pairs), layer 0, another
            version, a base that is not above 1, or a share or start outside [0, 1]; when it runs, an x that is not of
            shape (batch, n, width) or not finite.

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
        initial = _lambda_init(layer)
        maps, pair = (2 if version == 1 else 1), (1 if base is None else 2)
        if width % (maps * heads * pair):
            parts = " x ".join(["2"] * (maps == 2) + ["heads"] + ["2 (RoPE's pairs)"] * (pair == 2))
            raise ValueError(f"width must be a multiple of {parts} = {maps * heads * pair}, not {width}")
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
        frequencies = None if base is None else rope.partial_frequencies(d, base, turning)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.queries = nn.Linear(width, 2 * heads * d, bias=False)
        self.keys = nn.Linear(width, maps * heads * d, bias=False)
        self.values = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gain = nn.Parameter(torch.ones(2 * d)) if gain and self.normed else None
        if version == 1:
            self.lambdas = nn.Parameter(_SPREAD * torch.randn(2, 2, d))  # (first or second, query or key, d)
        else:
            self.gate = nn.Linear(width, heads, bias=False)

    def lam(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b #h #n"]:
        """Lambda of each head and token; in version 1 one number for all."""
        if self.version == 2:
            return self.gate(x).sigmoid().transpose(1, 2)
        first, second = self.lambdas.prod(1).sum(-1).exp()
        return (first - second + self.start).expand(len(x), 1, 1)

    def project(self, x: Float[Tensor, "b n width"]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """q1, k1, q2, k2 (turned) and v, each (b, heads, n, d); maps 2h and 2h + 1 of the projections are head h's."""
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

    def maps(self, x: Float[Tensor, "b n width"]) -> tuple[Float[Tensor, "b h n n"], Float[Tensor, "b h n n"]]:
        """Both maps of every head, for looking at: `attention` is first - lam second."""
        q1, k1, q2, k2, _ = self.project(self._checked(x))
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scale = 1 / math.sqrt(q1.shape[-1])
        first, second = (
            (scale * q @ k.transpose(-1, -2)).masked_fill(hidden, -math.inf).softmax(-1)
            for q, k in ((q1, k1), (q2, k2))
        )
        return first, second

    def attention(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b h n n"]:
        """The signed map of every head, whose rows sum to 1 - lambda."""
        first, second = self.maps(x)
        return first - self.lam(x)[..., None] * second

    def forward(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b n width"]:
        heads = _attend(*self.project(self._checked(x)), self.lam(x), None)
        if self.normed:
            heads = functional.rms_norm(heads, heads.shape[-1:], self.gain, EPSILON) * (1 - self.start)
        return self.out(heads.transpose(1, 2).flatten(2))

    def _checked(self, x: Tensor) -> Tensor:
        return require.tensor("x", x, "b n width", width=self.values.in_features)


def _fit(q1: Tensor, k1: Tensor, q2: Tensor, k2: Tensor) -> None:
    require.tensor("q1", q1, "... n d")
    n, d = q1.shape[-2:]
    require.tensor("k1", k1, "... m d", d=d)
    require.tensor("q2", q2, "... n d", n=n, d=d)
    require.tensor("k2", k2, "... m d", m=k1.shape[-2], d=d)
    for name, other in (("k1", k1), ("q2", q2), ("k2", k2)):
        _like(name, other, q1)


def _values(v: Tensor, k1: Tensor) -> None:
    require.tensor("k1", k1, "... m d")
    require.tensor("v", v, "... m e", m=k1.shape[-2])
    _like("v", v, k1, "k1")


def _like(name: str, value: Tensor, model: Tensor, called: str = "q1") -> None:
    """The same first dimensions and the same type of number."""
    if value.shape[:-2] != model.shape[:-2]:
        shapes = f"{tuple(model.shape)} and {tuple(value.shape)}"
        raise ValueError(f"{name} must have the first dimensions of {called}, but their shapes are {shapes}")
    if value.dtype != model.dtype:
        raise ValueError(f"{name} must hold {model.dtype} as {called} does, not {value.dtype}")


def _lambda(lam: float | Tensor, rows: Tensor) -> Tensor:
    """Lambda as a tensor that broadcasts to all dimensions of `rows` but the last."""
    if not isinstance(lam, Tensor):
        return torch.as_tensor(require.number("lam", lam), dtype=rows.dtype, device=rows.device)
    require.tensor("lam", lam, "...")
    try:
        fits = torch.broadcast_shapes(lam.shape, rows.shape[:-1]) == rows.shape[:-1]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"lam must be one number or fit the shape {tuple(rows.shape[:-1])}, not {tuple(lam.shape)}")
    return lam.to(rows)


def _alike(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    n, m = q.shape[-2], k.shape[-2]
    if mask is None and n != m:
        raise ValueError(f"mask must be given where queries and keys are not equally many, but {n} and {m}")


def _bias(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor:
    """What is added to the logits."""
    _alike(mask, q, k)
    n, m = q.shape[-2], k.shape[-2]
    if mask is None:
        mask = torch.ones(n, m, dtype=torch.bool, device=q.device).tril()
    elif not isinstance(mask, Tensor) or not (mask.dtype == torch.bool or mask.is_floating_point()):
        raise ValueError(f"mask must be a tensor of true and false, or of numbers to add, not {require.brief(mask)}")
    shape = (*q.shape[:-2], n, m)
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == shape and mask.ndim >= 2
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"mask must fit the shape {shape} of the logits, not {tuple(mask.shape)}")
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -math.inf)
    elif bool(torch.isnan(mask).any()) or bool((mask == math.inf).any()):
        raise ValueError("mask must hold finite numbers and -inf alone")
    if bool((mask == -math.inf).all(-1).any()):
        raise ValueError("mask must let every query see one key at least")
    return mask.to(q)
