"""Change RoPE's frequencies for longer contexts, and measure the consequences.

The module also computes the bound of RoPE's authors, and heads made only of rotations. Su et al.
(2021) is RoFormer, and Barbero et al. (2025) is "Round and Round We Go!". All angles are in radians
per token.
"""

import math

import torch
from jaxtyping import Float, Num
from torch import Tensor

from helpers import require
from helpers.rope import frequencies

METHODS = ("linear", "ntk", "yarn", "yarn-paper", "llama3")
TURNS = {
    "yarn": (1.0, 32.0),
    "yarn-paper": (1.0, 32.0),
    "llama3": (1.0, 4.0),
}  # the published numbers of rotations at which the interpolation starts and ends


def scaled_frequencies(
    method: str,
    width: int,
    base: float,
    factor: float,
    length: int | None = None,
    turns: tuple[float, float] | None = None,
) -> Float[Tensor, " half"]:
    """Return RoPE's frequencies after a method that stretches the context `factor` times.

    "linear" (Chen et al., 2023) divides all frequencies. "ntk" (NTK-aware) raises the base to base
    factor^(d/(d-2)), so it divides only the slowest frequency by the whole factor. "yarn" (Peng et
    al., 2024) and "llama3" (Llama 3.1) divide the frequencies that make few rotations over the
    original context, keep those that make many, and interpolate in between. In "llama3" and
    "yarn-paper" (Peng et al., Eq. 18), the kept fraction is linear in the number of rotations. In
    "yarn" it is linear in the index of the pair, as in the released code.

    Args:
        method: one of `METHODS`.
        width, base: as in `frequencies`.
        factor: how many times longer the context gets, at least 1.
        length: the original context, for all methods except "linear" and "ntk".
        turns: the numbers of rotations where the interpolation starts and stops. If `None`, the
            published values are used.

    Example:
        >>> scaled_frequencies("linear", 4, 10_000, 8).tolist()
        [0.125, 0.00125]
    """
    require.choice("method", method, METHODS)
    require.number("factor", factor, 1)
    theta = frequencies(width, base)
    if method == "linear":
        return theta / factor
    if method == "ntk":
        if width < 4:
            raise ValueError(f"width must be at least 4 for the method 'ntk', not {width}")
        try:
            return frequencies(width, base * factor ** (width / (width - 2)))
        except (OverflowError, ValueError):
            raise ValueError(
                f"factor must be smaller, because with {factor} the base is not a finite number"
            ) from None
    if length is None:
        raise ValueError(
            f"length must be given for the method {method!r}. It is the context of the "
            "original training"
        )
    require.integer("length", length, 1)
    few, many = _turns(TURNS[method] if turns is None else turns)
    if method != "yarn":
        kept = ((theta * length / math.tau - few) / (many - few)).clamp(0, 1)
    else:
        place = [
            width * math.log(length / (t * math.tau)) / (2 * math.log(base)) for t in (many, few)
        ]
        first, last = max(math.floor(place[0]), 0), min(math.ceil(place[1]), width - 1)
        kept = 1 - ((torch.arange(len(theta)).double() - first) / max(last - first, 1e-3)).clamp(
            0, 1
        )
    return theta * kept + theta / factor * (1 - kept)


def _turns(turns: tuple[float, float]) -> tuple[float, float]:
    try:
        few, many = (require.number("turns", value, above=0) for value in turns)
    except (TypeError, ValueError):
        few = many = 0.0
    if not few < many:
        raise ValueError(
            f"turns must be two numbers with 0 < first < second, not {require.brief(turns)}"
        )
    return few, many


def decay_bound(
    distance: float | Num[Tensor, "..."], width: int, base: float
) -> Float[Tensor, "..."]:
    """Return RoFormer's bound on attention logits as a function of the distance.

    The result is the factor that depends on the distance in Eq. 37 of Su et al. (2021), the mean
    over j of |S_j|. S_j is the sum of exp(i m theta) over the j fastest pairs, for j = 1 to
    width/2. The authors use the bound to argue that attention decays with the distance.

    Example:
        >>> decay_bound(0, 128, 10_000).item()
        32.5
    """
    if not isinstance(distance, Tensor):
        distance = torch.tensor(require.number("distance", distance), dtype=torch.float64)
    distance = require.tensor("distance", distance, "...", "real").double()
    angles = distance[..., None] * frequencies(width, base)
    return torch.polar(torch.ones_like(angles), angles).cumsum(-1).abs().mean(-1)


def slash_attention(
    frequencies: Float[Tensor, " half"], length: int, offset: int = 0, scale: float = 1.0
) -> Float[Tensor, "n n"]:
    """Build the causal attention matrix of a head that always attends to one fixed distance.

    All queries are one vector, and all keys are this vector rotated by `offset`. At distance m the
    logit is scale x sum_i cos(theta_i (m - offset)), as in Theorem 5.3 of Barbero et al. (2025),
    where `scale` is |q| |k| / sqrt(d), with the norms of query and key within one pair. Offset 0
    gives a diagonal head, and offset 1 a previous-token head.

    Example:
        >>> slash_attention(torch.tensor([1.0, 0.1]), 3, 1, 20.0).argmax(-1).tolist()
        [0, 0, 1]
    """
    logits = _slash_logits(frequencies, length, offset)
    require.finite("scale", require.number("scale", scale) * logits)
    gap = torch.arange(length)[:, None] - torch.arange(length)
    return (scale * logits[gap.clamp(min=0)]).masked_fill(gap < 0, -math.inf).softmax(-1)


def slash_scale(
    frequencies: Float[Tensor, " half"], length: int, weight: float = 0.99, offset: int = 0
) -> float:
    """Find the smallest scale for which a slash head gives every token the wanted weight.

    The head is that of `slash_attention`, and `weight` is each token's weight at its offset, for
    the tokens from `offset` on. The result is infinite if another distance has the same logit, for
    example if nothing rotates.

    Example:
        >>> round(slash_scale(frequencies(128, 10_000), 4096), 4)
        2.4105
    """
    if not 0 < require.number("weight", weight, 0, 1) < 1:
        raise ValueError(f"weight must be between 0 and 1, not {weight}")
    logits = _slash_logits(frequencies, length, offset)
    lead = logits[offset] - torch.cat([logits[:offset], logits[offset + 1 :]])
    if len(lead) == 0:
        return 0.0
    if float(lead.min()) <= 1e-15 * len(frequencies):
        return math.inf
    # the last token has all distances, so its weight is the smallest
    target = math.log1p(-weight) - math.log(weight)
    low, high = 0.0, (math.log(len(lead)) - target) / float(lead.min())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if float((-middle * lead).logsumexp(0)) > target else (low, middle)
        )
    return max(high, 0.0)


def _slash_logits(theta: Tensor, length: int, offset: int) -> Tensor:
    require.integer("length", length, 1)
    require.tensor("frequencies", theta, "half")
    if require.integer("offset", offset, 0) >= length:
        raise ValueError(f"offset must be between 0 and length - 1 = {length - 1}, not {offset}")
    distance = torch.arange(length, dtype=torch.float64) - offset
    return require.finite("frequencies", (distance[:, None] * theta.double()).cos().sum(-1))
