"""Rotate queries and keys according to their positions (RoPE), and study the rotary frequencies.

The functions on frequencies compute sums of cosines, and the base that a given context length
needs.

Su et al. (2021) is RoFormer, Men et al. (2024) is "Base of RoPE Bounds Context Length", and Barbero
et al. (2025) is "Round and Round We Go!". Closed forms run in float64. All angles are in radians
per token.
"""

import math
from collections.abc import Iterator
from typing import Literal

import mpmath
import torch
from jaxtyping import Float, Num
from torch import Tensor

from helpers import compute, require

_LAYOUTS = ("half", "interleaved")  # the layout says which entries of a vector form a pair
# the number of distances whose sums we compute from one start with the angle sum formula
_BLOCK = 1024


def frequencies(width: int, base: float, turning: float = 1.0) -> Float[Tensor, " half"]:
    """Return RoPE's rotation angle per token for each pair, the fastest pair first.

    The angle of pair i is theta_i = base^(-2i/width) (Su et al., 2021, Eq. 15), in radians per
    token.

    Args:
        width: the width of a query or key, an even number.
        base: a number above 1. RoFormer uses 10 000.
        turning: the fraction of the pairs that rotate, counted from the fastest pair and rounded
            down. A fraction below 1 gives the p-RoPE of Barbero et al. (2025), section 6.1. The
            fraction 0 gives no position encoding.

    Returns:
        width / 2 angles in float64, which decrease unless they are 0.

    Example:
        >>> frequencies(8, 10_000).tolist(), frequencies(8, 10_000, 0.5).tolist()
        ([1.0, 0.1, 0.01, 0.001], [1.0, 0.1, 0.0, 0.0])
        >>> frequencies(8, 10_000, 0.7).count_nonzero().item()  # 2.8 pairs, rounded down
        2
    """
    _width(width)
    _base(base)
    require.number("turning", turning, 0, 1)
    theta = float(base) ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    theta[math.floor(turning * len(theta) + 1e-9) :] = 0.0
    return theta


@require.checked
def rotate(
    x: Float[Tensor, "... n d"],
    positions: Num[Tensor, " n"],
    frequencies: Float[Tensor, " half"],
    layout: Literal["half", "interleaved"] = "half",
) -> Float[Tensor, "... n d"]:
    """Rotate pair i of each vector by the angle position x frequency i (RoPE).

    The rotation is Eq. 34 of Su et al. (2021). We compute angles in float64, whatever the dtype of
    `x`, because float32 angles are inexact at large positions.

    Args:
        x: vectors of even width d, one for each position.
        positions: positions of any sign, integers or not.
        frequencies: d/2 angles per token, as `frequencies` returns them. A pair with angle 0 does
            not change.
        layout: "half" pairs entries i and i + d/2 (GPT-NeoX, Llama). "interleaved" pairs 2i and 2i
            + 1 (RoFormer, GPT-J).

    Example:
        >>> quarter = torch.tensor([math.pi / 2])
        >>> turned = rotate(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), quarter, "half")
        >>> turned.round().abs().tolist()
        [[0.0, 1.0]]
    """
    if 2 * len(frequencies) != x.shape[-1]:
        raise ValueError(
            "frequencies must have half as many entries as the width of x, which is "
            f"{x.shape[-1]}, not {len(frequencies)} entries"
        )
    return require.finite("positions, or frequencies,", turn(x, positions, frequencies, layout))


def turn(
    x: Float[Tensor, "... n d"],
    positions: Num[Tensor, " n"],
    frequencies: Float[Tensor, " half"],
    layout: str,
) -> Float[Tensor, "... n d"]:
    """Rotate vectors as `rotate` does, but without checking the arguments.

    Layers call this faster function at every training step.

    Args:
        x, positions, frequencies, layout: as in `rotate`.

    Returns:
        The rotated vectors, in the shape and dtype of `x`.

    >>> quarter = torch.tensor([math.pi / 2])
    >>> turned = turn(torch.tensor([[1.0, 0.0]]), torch.tensor([2]), quarter, "half")
    >>> turned.round().abs().tolist()
    [[1.0, 0.0]]
    """
    angles = _angles(positions, frequencies)
    cos, sin = (part.to(x.dtype).to(x.device) for part in (angles.cos(), angles.sin()))
    first, second = _pairs(x, layout)
    turned = first * cos - second * sin, first * sin + second * cos
    if layout == "interleaved":
        return torch.stack(turned, dim=-1).flatten(-2)
    return torch.cat(turned, dim=-1)


def _angles(
    positions: Num[Tensor, " n"], frequencies: Float[Tensor, " half"]
) -> Float[Tensor, "n half"]:
    """Multiply each position by each frequency in float64, on the device of the positions."""
    positions = compute.exact(positions)
    return positions[:, None] * compute.exact(frequencies).to(positions.device)


def _pairs(x: Float[Tensor, "... d"], layout: str) -> tuple[Tensor, Tensor]:
    """Split vectors into the first entries and the second entries of their pairs."""
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    return x.chunk(2, dim=-1)


def cosine_sum(
    distance: float | Num[Tensor, "..."], width: int, base: float
) -> Float[Tensor, "..."]:
    """Return B(m) = sum over the pairs i of cos(m theta_i), at the distance m.

    B(m) is the attention logit at distance m of two equal vectors that have a unit vector in each
    pair. According to Men et al. (2024), Eq. 9, the logit of a similar token exceeds the logit of a
    random token by 2 sigma^2 B(m) on average. If B(m) is negative, attention at distance m prefers
    random tokens.

    Args:
        distance: one distance m or a tensor of distances, in tokens.
        width: the width of a query or key, an even number.
        base: the base of RoPE.

    Returns:
        One sum per distance, at most width / 2.

    Example:
        >>> cosine_sum(0, 128, 10_000).item()
        64.0
    """
    distance = _distance(distance)
    return (distance[..., None] * frequencies(width, base)).cos().sum(-1)


def first_negative(width: int, base: float, limit: int) -> int | None:
    """Return the first distance m < `limit` at which `cosine_sum` is negative, or None.

    We compute the sums in blocks of 1024 distances that start at M. The identity cos(M + j) = cos M
    cos j - sin M sin j turns each block into a matrix product. If a sum is too close to 0 for
    float64, we compute it with 50 digits.

    Args:
        width: the width of a query or key, an even number.
        base: the base of RoPE.
        limit: the distance in tokens at which the search stops.

    Returns:
        The distance in tokens, or None if no sum below `limit` is negative.

    Example:
        >>> first_negative(128, 10_000, 4096)
        1707
    """
    _length(limit, "limit")
    _width(width)
    _base(base)
    theta = frequencies(width, base)
    for start, sums in _sums(theta, limit):
        distance = _first(start, sums, theta, base, limit)
        if distance is not None:
            return distance
    return None


def smallest_base(
    length: int, width: int, step: float, start: float, tries: int = 1_000_000
) -> float:
    """Return the smallest base on a grid for which `cosine_sum` is never negative below `length`.

    The grid is start + k step for k = 0, 1, …. The condition is that of Men et al. (2024), Theorem
    1. The bases that meet the condition do not form an interval, so the answer depends on the grid.
    If a base fails, it nearly always fails near a distance at which an earlier base failed. So we
    test these distances first, and we test all distances only if the base passes there.

    Args:
        length: the context in tokens.
        width: the width of a head.
        step: the step of the grid, above 0.
        start: the first base, above 1.
        tries: how many bases to try at most.

    Raises:
        ValueError: if an argument is out of range, or if none of the first `tries` bases meets the
            condition.

    Example:
        >>> smallest_base(1024, 128, 1, 2)
        4294.0
    """
    _length(length)
    _width(width)
    _base(start, "start")
    step = require.number("step", step, above=0)
    require.integer("tries", tries, 1)
    witness, k, size = None, 0, 1
    while k < tries:
        bases = start + step * torch.arange(k, min(k + size, tries), dtype=torch.float64)
        failed = 0
        if witness is not None:  # the bases that certainly fail near the last distance
            reach = 4 + min(int(length * step / bases[0]), 500)
            failed, witness = _near(bases, width, witness, reach, length)
        if failed == len(bases):
            k, size = k + failed, min(2 * size, 1 + 2000 // reach)
            continue
        base = float(bases[failed])
        witness = first_negative(width, base, length)
        if witness is None:
            return base
        k, size = k + failed + 1, max(1, failed // 2)
    raise ValueError(
        f"no base meets the condition for length {length} and width {width} from "
        f"start {start} in steps of {step}. Raise step or tries (now {tries})"
    )


def _sums(theta: Tensor, limit: int) -> Iterator[tuple[int, Tensor]]:
    """Yield `cosine_sum` at the distances 0 … limit - 1, in blocks that grow.

    Each block is a pair (first distance, sums).
    """
    offsets = torch.arange(min(_BLOCK, limit), dtype=torch.float64) * theta[:, None]
    offsets = torch.cat([offsets.cos(), -offsets.sin()])
    start, blocks = 0, 1
    while start < limit:
        starts = (
            torch.arange(start, min(start + blocks * _BLOCK, limit), _BLOCK, dtype=torch.float64)[
                :, None
            ]
            * theta
        )
        sums = (torch.cat([starts.cos(), starts.sin()], dim=1) @ offsets).flatten()
        yield start, sums[: limit - start]
        start, blocks = start + blocks * _BLOCK, min(2 * blocks, 64)


def _first(start: int, sums: Tensor, theta: Tensor, base: float, limit: int) -> int | None:
    doubt = _doubt(len(theta), limit)
    for place in (sums < doubt).nonzero().flatten().tolist():
        if sums[place] < -doubt or _exact(start + place, 2 * len(theta), base) < 0:
            return start + place
    return None


def _near(bases: Tensor, width: int, witness: int, reach: int, limit: int) -> tuple[int, int]:
    """Count how many bases at the start of the list fail near one distance.

    A base fails if its cosine sum is clearly negative at some distance within `reach` of `witness`.
    The function returns the count, and the distance at which the last of the counted bases has its
    lowest sum.
    """
    theta = bases[:, None] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    first = max(0, witness - reach)
    distances = torch.arange(first, min(limit, witness + reach + 1), dtype=torch.float64)
    lowest = (distances[:, None] * theta[:, None]).cos_().sum(-1).min(-1)
    sure = lowest.values < -_doubt(width // 2, limit)
    failed = int(sure.long().cumprod(0).sum())
    return failed, first + int(lowest.indices[failed - 1]) if failed else witness


def _doubt(pairs: int, limit: int) -> float:
    """Return a bound on the rounding error of a cosine sum.

    The error grows with the distance, because each angle has a relative error of a few parts in
    10^16.
    """
    return 1e-14 * (pairs + 10.0 * limit)


def _exact(distance: int, width: int, base: float) -> float:
    with mpmath.workdps(50):
        root = mpmath.mpf(base) ** (mpmath.mpf(-2) / width)
        return float(mpmath.fsum(mpmath.cos(distance * root**i) for i in range(width // 2)))


def _width(width: int) -> None:
    if require.integer("width", width, 2) % 2:
        raise ValueError(f"width must be an even integer of at least 2, not {width}")


def _base(base: float, name: str = "base") -> None:
    require.number(name, base, above=1)


def _length(length: int, name: str = "length") -> None:
    require.integer(name, length, 1)


def _distance(distance: float | Tensor) -> Tensor:
    if isinstance(distance, Tensor):
        return compute.exact(require.tensor("distance", distance, "...", "real"))
    return torch.tensor(require.number("distance", distance), dtype=torch.float64)
