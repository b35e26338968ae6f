"""Study causal attention as a weighted, directed graph.

With these functions we build masks, follow the influence of one token on another through the
layers, and score heads.

A mask is True in row j and column i if token j may attend to token i. An attention matrix is
row-stochastic: row j holds the weights that token j gives to all tokens, and each row sums to 1.
Positions are counted from 0, and results are in float64.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers import compute, require

_MOST = 1 << 15  # the largest number of tokens of a mask, which then takes 1 GB
_TOLERANCE = 4e-3  # the allowed error of a row's sum, half a bf16 step


def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Return the n x n mask that lets each token attend to itself and to all earlier tokens.

    Args:
        n: the number of tokens.

    Returns:
        A boolean matrix, True in row j and column i if i is at most j.

    >>> causal_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    require.integer("n", n, 1, _MOST)
    return torch.ones(n, n, dtype=torch.bool).tril()


def window_mask(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Return the n x n mask of a sliding window of `width` tokens.

    Each token may attend to itself and to the `width` - 1 tokens before it.

    Args:
        n: the number of tokens.
        width: the number of tokens to which a token may attend, itself included.

    Returns:
        A boolean matrix, True in row j and column i if 0 <= j - i < width.

    >>> window_mask(3, 2).int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    require.integer("n", n, 1)
    require.integer("width", width, 1)
    return causal_mask(n).triu(1 - width)


def uniform(mask: Bool[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """Return the attention matrix that spreads attention equally over the tokens a mask allows.

    A head with this matrix prefers no token, so it serves as a baseline for other heads.

    Args:
        mask: a boolean matrix, True in row j and column i if token j may attend to token i.

    Returns:
        A row-stochastic matrix of the same shape in float64.

    Raises:
        ValueError: if the mask is not square or not boolean, or if there is a token that may not
            attend to any token.

    >>> uniform(causal_mask(2)).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    _check_square("mask", mask)
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError("mask must be boolean (or contain only 0 and 1)")
    allowed = compute.exact(mask)
    count = allowed.sum(1, keepdim=True)
    if (count == 0).any():
        raise ValueError(
            "mask must let every token attend to at least one token, but row "
            f"{int(count[:, 0].argmin())} is empty"
        )
    return allowed / count


def influence(
    attentions: Sequence[Float[Tensor, "n n"]] | Float[Tensor, "layers n n"], residual: float = 0.0
) -> Float[Tensor, "n n"]:
    """Compute how much each token influences every other token after all layers.

    Entry (j, i) of the result is the influence of token i on token j. The result is the product of
    the matrices (1 - residual) A + residual I over the layers, with the first layer applied first.
    With `residual` = 0 it is the matrix of Wu et al. (2025), section 3. With `residual` = 1/2 it is
    the attention rollout of Abnar & Zuidema (2020).

    Args:
        attentions: one row-stochastic matrix per layer, the first layer first.
        residual: a weight in [0, 1] for the residual connection, through which each token keeps its
            own hidden state in each layer.

    Raises:
        ValueError: if there are no layers, the matrices differ in size, one of them is not
            row-stochastic, or the residual is out of range.

    >>> influence([uniform(causal_mask(2))] * 2).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    matrices = _layers(attentions)
    require.number("residual", residual, 0.0, 1.0)
    identity = torch.eye(matrices.shape[-1], dtype=torch.float64, device=matrices.device)
    product = identity
    for matrix in matrices:
        product = ((1 - residual) * matrix + residual * identity) @ product
    return product


HEAD_SCORE_THRESHOLD = (
    0.3  # a head with a larger sink or slash score counts as a sink or a slash head
)


def sink_score(
    attention: Float[Tensor, "*heads n n"], position: int = 0
) -> Float[Tensor, "*heads"]:
    """Return the mean attention weight that a position receives from itself and all later tokens.

    A high score marks an attention sink (Gu et al., 2025, section 3). Compare only scores of
    sequences of equal length, because the score of uniform attention over n tokens depends on n: it
    is H_n / n for position 0, where H_n is the n-th harmonic number, and exceeds 0.3 up to n = 9.

    Args:
        attention: one or more causal, row-stochastic attention matrices.
        position: the position whose received attention is measured, counted from 0.

    Returns:
        One score per attention matrix.

    >>> round(float(sink_score(uniform(causal_mask(64)))), 6)
    0.074123
    """
    matrices = _stochastic("attention", attention, causal=True)
    n = matrices.shape[-1]
    require.integer("position", position, 0, n - 1)
    return matrices[..., position:, position].mean(-1)


def share_of_strong_heads(scores: Float[Tensor, "*heads"]) -> float:
    """Return the fraction of heads, from 0 to 1, whose score exceeds `HEAD_SCORE_THRESHOLD`.

    Papers report this fraction for attention sinks, because a mean over all heads would not show
    whether a few heads have a strong sink or all heads have a weak one.

    Args:
        scores: sink scores or slash scores, one per head, in a tensor of any shape.

    Raises:
        ValueError: if `scores` is empty or has entries that are not finite real numbers.

    >>> share_of_strong_heads(torch.tensor([[0.9, 0.4], [0.1, 0.3]]))
    0.5
    """
    strong = require.tensor("scores", scores, "...", "real") > HEAD_SCORE_THRESHOLD
    return float(strong.double().mean())


def slash_score(attention: Float[Tensor, "*heads n n"], offset: int) -> Float[Tensor, "*heads"]:
    """Return the mean attention weight that tokens give to the token `offset` positions back.

    The mean is over all tokens that have such an earlier token. A head with a high score attends
    along one diagonal of its attention matrix. At offset 0 each token attends to itself. At offset
    1 the head is a previous-token head.

    Args:
        attention: one or more causal, row-stochastic attention matrices.
        offset: the distance to the earlier token, in positions.

    Returns:
        One score per attention matrix.

    >>> float(slash_score(uniform(window_mask(4, 2)), 1))
    0.5
    """
    matrices = _stochastic("attention", attention, causal=True)
    n = matrices.shape[-1]
    require.integer("offset", offset, 0, n - 1)
    return matrices.diagonal(-offset, -2, -1).mean(-1)


def _layers(attentions: Sequence[Tensor] | Tensor, causal: bool = False) -> Tensor:
    """Check the attention matrices of all layers and stack them into one tensor (layers, n, n)."""
    if isinstance(attentions, Tensor):
        if attentions.ndim != 3:
            raise ValueError(
                f"attentions must be one matrix per layer, not a tensor of shape "
                f"{tuple(attentions.shape)}"
            )
        matrices = attentions
    else:
        if not isinstance(attentions, Sequence) or not all(
            isinstance(matrix, Tensor) for matrix in attentions
        ):
            raise ValueError(
                f"attentions must be a list of tensors, one per layer, not "
                f"{require.brief(attentions)}"
            )
        if len({matrix.shape for matrix in attentions}) > 1:
            shapes = ", ".join(str(tuple(matrix.shape)) for matrix in attentions)
            raise ValueError(f"attentions must all have the same shape, not {shapes}")
        if any(matrix.ndim != 2 for matrix in attentions):
            raise ValueError(
                "attentions must be one matrix per layer, not a tensor of shape "
                f"{tuple(attentions[0].shape)}"
            )
        matrices = torch.stack(list(attentions)) if len(attentions) else torch.empty(0, 0, 0)
    if len(matrices) == 0:
        raise ValueError("attentions must hold at least one layer, but it is empty")
    return _stochastic("attentions", matrices, causal)


def _stochastic(name: str, matrices: Tensor, causal: bool) -> Tensor:
    """Return the matrices in float64 if each of their rows is a probability distribution."""
    _check_square(name, matrices)
    matrices = compute.exact(matrices)
    if not torch.isfinite(matrices).all():
        raise ValueError(f"{name} must hold finite numbers, but some are infinite or NaN")
    if (matrices < 0).any():
        raise ValueError(
            f"{name} must be row-stochastic, so no weight may be below 0, but the "
            f"smallest weight is {float(matrices.min()):.4g}"
        )
    sums = matrices.sum(-1)
    if ((sums - 1).abs() > _TOLERANCE).any():
        worst = sums.flatten()[(sums - 1).abs().flatten().argmax()]
        raise ValueError(
            f"{name} must be row-stochastic, so each row must sum to 1, but one row "
            f"sums to {float(worst):.4g}"
        )
    if causal and (matrices.triu(1) != 0).any():
        row, column = (
            (matrices.flatten(0, -3).sum(0) if matrices.ndim > 2 else matrices)
            .triu(1)
            .nonzero()[0]
            .tolist()
        )
        raise ValueError(
            f"{name} must be causal, so no token may attend to a later token, but token "
            f"{row} attends to token {column}"
        )
    return matrices


def _check_square(name: str, matrix: Tensor) -> None:
    if not isinstance(matrix, Tensor):
        raise ValueError(f"{name} must be a tensor, not {require.brief(matrix)}")
    require.dense(name, matrix)
    if matrix.is_complex():
        raise ValueError(f"{name} must hold real numbers, not complex ones")
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.numel() == 0:
        raise ValueError(
            f"{name} must be square matrices (n, n) with n at least 1, not of shape "
            f"{tuple(matrix.shape)}"
        )
