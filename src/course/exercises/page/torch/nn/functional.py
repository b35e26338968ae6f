"""Provide those functions of `torch.nn.functional` that need no module."""

import math
from collections.abc import Sequence
from typing import Any

from torch import operations
from torch.numbers import NotInThisPage, dtype, float32, rounded
from torch.operations import (
    gelu,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from torch.tensor import Tensor, finished, result_type

__all__ = [
    "gelu",
    "log_softmax",
    "logsumexp",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Add entries at both ends of the last axes.

    `pad` has two numbers for each axis, beginning with the last axis. Negative numbers remove
    entries.
    """
    if mode != "constant":
        raise NotInThisPage(limit="`pad` works only with the mode “constant”")
    for k in range(len(pad) // 2):
        before, after, dim = pad[2 * k], pad[2 * k + 1], input.ndim - 1 - k
        filling = [value or 0] if input.dtype.kind else [bool(value)]

        def longer(v: list, before: int = before, after: int = after, own: list = filling) -> list:
            v = own * before + v if before > 0 else v[-before:]
            return v + own * after if after > 0 else v[: len(v) + after]

        size = input.shape[dim] + before + after
        from torch.tensor import mapped

        input = mapped(input, dim, longer, length=size)
    return input


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return input / operations.norm(input, p, dim, keepdim=True).clamp(min=eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    sizes = (operations.norm(x, 2, dim).clamp(min=eps) for x in (x1, x2))
    return (x1 * x2).sum(dim) / operations.mul(*sizes)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    dims = list(range(-len(normalized_shape), 0))
    normed = (
        input
        * (
            input.square().mean(dims, keepdim=True)
            + (1.1920928955078125e-07 if eps is None else eps)
        ).rsqrt()
    )
    return normed if weight is None else normed * weight


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    dims = list(range(-len(normalized_shape), 0))
    apart = input - input.mean(dims, keepdim=True)
    normed = apart * (apart.square().mean(dims, keepdim=True) + eps).rsqrt()
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    count = int(tensor.max()) + 1 if num_classes < 0 else num_classes
    return (tensor.unsqueeze(-1) == operations.arange(count)).long()


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = input @ weight.mT
    return result if bias is None else result + bias


def embedding(input: Tensor, weight: Tensor) -> Tensor:
    return weight[input]


def cross_entropy(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    losses = -log_softmax(input, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def mse_loss(input: Tensor, target: Tensor) -> Tensor:
    return (input - target).square().mean()


def l1_loss(input: Tensor, target: Tensor) -> Tensor:
    return (input - target).abs().mean()


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    logits = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = operations.ones(*logits.shape[-2:], dtype=operations.tensor(True).dtype).tril()
    if attn_mask is not None:
        logits = (
            logits.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype.kind == 0
            else logits + attn_mask
        )
    return softmax(logits, -1) @ value


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return operations.where(input > 0, input, negative_slope * input)


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    return operations.where(input > 0, input, alpha * input.expm1())


def logsigmoid(input: Tensor) -> Tensor:
    return -softplus(-input)


def softmin(input: Tensor, dim: int) -> Tensor:
    return softmax(-input, dim)


names = (dtype, float32, rounded, finished, result_type)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.nn.functional.{name}`")
