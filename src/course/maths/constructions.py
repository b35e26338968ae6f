"""Build the constructions of the theorems on collapse, with and without position encodings.

Some are sequences whose last hidden states converge. Others show that a theorem fails.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers import attention, collapse, compute, require, rope
from helpers.transformer import sinusoidal

ENCODINGS = ("NoPE", "RoPE", "ALiBi", "APE on q, k", "APE on q, k, v")


VALUES = ("rotation", "random", "constant")


def perturbed_total_variation(
    lengths: Sequence[int], seeds: int = 5, disturbed: int = 200, noise: float = 0.1
) -> Float[Tensor, "seeds lengths"]:
    """Return the total variation between softmax(x) and softmax(x + noise), for each length.

    This is the experiment of Figure 9 of Barbero et al. (2024). The entries of x are uniform on [0,
    1]. The first `disturbed` entries have noise that is uniform on [0, `noise`]. The total
    variation falls with the length.

    Returns:
        One row per seed, and one column per length.

    >>> perturbed_total_variation([1000, 2000], seeds=3).shape
    torch.Size([3, 2])
    """
    lengths = require.integers("lengths", lengths, 1)
    require.integer("seeds", seeds, 1)
    require.integer("disturbed", disturbed, 0)
    require.number("noise", noise, 0)
    rows = []
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(max(lengths), generator=generator, dtype=torch.float64)
        shift = torch.zeros_like(x)
        shift[:disturbed] = noise * torch.rand(
            min(disturbed, len(x)), generator=generator, dtype=torch.float64
        )
        rows.append(
            [total_variation(x[:n].softmax(0), (x + shift)[:n].softmax(0)) for n in lengths]
        )
    return torch.tensor(rows, dtype=torch.float64)


def perturbation_limit(disturbed: int = 200, noise: float = 0.1) -> float:
    """Return the limit of n times the total variation of `perturbed_total_variation`.

    The limit is 2 k (E[e^noise] - 1). Here n is the length, k is the number of disturbed entries,
    and the noise is uniform.

    >>> round(perturbation_limit(), 5)
    20.68367
    """
    require.integer("disturbed", disturbed, 0)
    require.number("noise", noise, 0, 700)
    if noise == 0:
        return 0.0
    return 2 * disturbed * (math.expm1(noise) / noise - 1)


def repeat_last(
    kernel: Callable[[Tensor], Tensor], values: Float[Tensor, " n"]
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Measure how one more copy of the last token changes a head's output and its weights.

    The head's logits depend only on the distance between query and key.

    Args:
        kernel: the logit as a function of the distance (0, 1, 2, …) between query and key.
        values: one number per token. The last one belongs to the token that is repeated.

    Returns:
        |z_n - z*_{n+1}|, and the total variation of the first n attention weights. These are the
            two quantities of Theorem B.3.

    >>> change, _ = repeat_last(torch.zeros_like, torch.tensor([1.0, 0.0]))  # 1/2 becomes 1/3
    >>> round(change.item(), 6)
    0.166667
    """
    require.function("kernel", kernel)
    values = require.tensor("values", values, "n").double()
    n = len(values)
    distance = torch.arange(n, -1, -1, dtype=torch.float64)
    logits = [
        require.tensor("what kernel returns", kernel(gap), "n", n=len(gap))
        for gap in (distance[1:], distance)
    ]
    before, after = (row.double().softmax(0) for row in logits)
    longer = torch.cat([values, values[-1:]])
    return (before @ values - after @ longer).abs(), total_variation(before, after[:-1])


def rotating_values(kind: str, n: int, frequency: float, seed: int = 0) -> Float[Tensor, " n"]:
    """Draw values in {-1, 1} that follow a rotation, are random, or are constant.

    `kind` is "rotation", "random" or "constant".

    >>> rotating_values("rotation", 4, math.pi).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    require.choice("kind", kind, VALUES)
    require.integer("n", n, 1)
    require.number("frequency", frequency)
    seed = require.seed(seed)
    if kind == "rotation":
        signs = torch.cos(
            require.finite("frequency", frequency * torch.arange(1, n + 1, dtype=torch.float64))
        )
        return torch.where(signs < 0, -1.0, 1.0).double()
    if kind == "random":
        return (
            torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed)).double() * 2
            - 1
        )
    return torch.ones(n, dtype=torch.float64)


def rotating_counterexample(
    n: int, frequency: float = math.pi, scale: float = 2.0, values: str = "rotation", seed: int = 0
) -> tuple[float, float]:
    """Measure how one more token changes a head with bounded logits that do not decay.

    The logits are scale * cos(frequency * distance). The head violates the conclusion of Theorem
    B.3 of Barbero et al. (2024). With frequency pi and values in step with the rotation, both
    numbers tend to 2 tanh(scale) instead of zero.

    Returns:
        |z_n - z*_{n+1}| and the total variation.

    >>> change, _ = rotating_counterexample(10_000, scale=2.0)
    >>> round(change, 2), round(2 * math.tanh(2.0), 2)
    (1.93, 1.93)
    """
    require.integer("n", n, 1)
    require.finite("frequency", require.number("frequency", frequency) * n)
    require.number("scale", scale)
    require.choice("values", values, VALUES)
    change, variation = repeat_last(
        lambda distance: scale * torch.cos(frequency * distance),
        rotating_values(values, n, frequency, seed),
    )
    return float(change), float(variation)


def alibi_change(n: int, slope: float) -> float:
    """Return |z_n - z*_{n+1}| under ALiBi with equal content, which tends to 2 e^-m (1 - e^-m).

    The values are -1, except for a +1 on the last token, and m is the slope. Because the limit is
    not zero, one more token changes the output at every length of the sequence.

    >>> round(alibi_change(1000, slope=0.5), 6)
    0.477302
    """
    require.integer("n", n, 1)
    require.finite("slope", require.number("slope", slope) * n)
    values = -torch.ones(n, dtype=torch.float64)
    values[-1] = 1.0
    return float(repeat_last(lambda distance: -slope * distance, values)[0])


@lru_cache(maxsize=2)  # cached because the encodings are compared on the same vectors
def _gaussian(n: int, width: int, seed: int) -> Float[Tensor, "3 n width"]:
    return torch.randn(
        3, n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def one_layer_distance(
    encoding: str,
    lengths: Sequence[int],
    *,
    width: int = 64,
    deviation: float = 1.0,
    residual: bool = False,
    slope: float = 0.5,
    window: int | None = None,
    seed: int = 0,
) -> Float[Tensor, " lengths"]:
    """Measure how far a random head's last output moves if the last of n tokens is repeated.

    The head is causal. The distance is the L1 distance between the outputs for n and for n + 1
    tokens. The settings are those of Barbero et al. (2024), appendices C.3 (Figure 8, with
    `deviation` 1/sqrt(width) and APE) and C.4 (Figure 10). We compute only the last row of the
    attention matrix, which takes n d operations.

    Args:
        encoding: one of `ENCODINGS`. "APE on q, k" adds the sinusoid after the projections of
            queries and keys. "APE on q, k, v" also adds the sinusoid to the values, as if it were
            added to the embedding.
        deviation: the standard deviation of the Gaussian queries, keys and values.
        residual: add the token's value to the output, and layer-normalise the sum.
        window: the number of tokens that the query sees, or `None` for all tokens.

    >>> near, far = one_layer_distance("NoPE", [64, 5000]).tolist()
    >>> far < near
    True
    """
    require.choice("encoding", encoding, ENCODINGS)
    lengths = require.integers("lengths", lengths, 1)
    require.integer("width", width, 1)
    if width % 2 and encoding not in ("NoPE", "ALiBi"):
        raise ValueError(f"width must be even for {encoding}, not {width}")
    require.number("deviation", deviation, 0)
    require.number("slope", slope)
    require.flag("residual", residual)
    if window is not None:
        require.integer("window", window, 1)
    q, k, v = deviation * _gaussian(max(lengths), width, require.seed(seed))

    def output(tokens: Tensor) -> Tensor:
        n = len(tokens)
        positions = torch.arange(n, dtype=torch.float64)
        query, keys, values = q[tokens[-1:]], k[tokens], v[tokens]
        if encoding == "RoPE":
            theta = rope.frequencies(width, 1e4)
            query, keys = (
                rope.rotate(query, positions[-1:], theta),
                rope.rotate(keys, positions, theta),
            )
        elif encoding.startswith("APE"):
            absolute = sinusoidal(positions, width)
            query, keys = query + absolute[-1:], keys + absolute
            values = values + absolute if encoding.endswith("v") else values
        logits = (keys @ query[0]) / math.sqrt(width)
        if encoding == "ALiBi":
            logits = logits - slope * positions.flip(0)
        start = 0 if window is None else max(0, n - window)
        z = logits[start:].softmax(0) @ values[start:]
        return torch.nn.functional.layer_norm(z + values[-1], (width,)) if residual else z

    distances = []
    for n in lengths:
        tokens = torch.arange(n)
        distances.append((output(tokens) - output(torch.cat([tokens, tokens[-1:]]))).abs().sum())
    return require.finite("deviation, or slope,", torch.stack(distances))


def total_variation(p: Float[Tensor, "... n"], q: Float[Tensor, "... n"]) -> Float[Tensor, "..."]:
    """Return the total variation of two distributions, without the usual factor 1/2.

    The total variation is sum |p - q| over the last axis, computed in float64, as Barbero et al.
    (2024) define it. Rows may sum to less than one, because Theorem B.3 compares the first n
    entries of a longer row.

    Raises:
        ValueError: if the shapes differ, an entry is negative or not finite, or a row sums to more
            than one.

    >>> total_variation(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])).item()
    2.0
    """
    for name, row in (("p", p), ("q", q)):
        require.tensor(name, row, "... n", "real")
        if (row < 0).any() or (row.double().sum(-1) > 1.01).any():
            raise ValueError(
                f"{name} must hold probabilities, which are not negative and sum to at most "
                "1 in each row"
            )
    if p.shape != q.shape:
        raise ValueError(
            f"p and q must have the same shape, not {tuple(p.shape)} and {tuple(q.shape)}"
        )
    return (p.double() - q.double()).abs().sum(-1)


def prefix_mask(n: int, prefix: int) -> Bool[Tensor, "n n"]:
    """Return a mask in which the first `prefix` tokens attend to one another.

    This is the prefix mask of Wu et al. (2025), Theorem 4.3. Every other token attends to itself
    and to all earlier tokens. The mask is not causal.

    >>> prefix_mask(3, 2).int().tolist()
    [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    """
    mask = attention.causal_mask(n)
    require.integer("prefix", prefix, 1)
    if prefix > n:
        raise ValueError(f"prefix must be at most n = {n}, not {prefix}")
    mask[:prefix, :prefix] = True
    return mask


def sink(n: int, weight: float) -> Float[Tensor, "n n"]:
    """Build a causal attention matrix with a sink.

    Every token gives `weight` to token 0, and spreads the rest uniformly over itself and all
    earlier tokens.

    >>> sink(2, 0.5).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    require.number("weight", weight, 0.0, 1.0)
    matrix = (1 - weight) * attention.uniform(attention.causal_mask(n))
    matrix[:, 0] += weight
    return matrix


def first_collision(
    function: Callable[[Tensor], Tensor], dtype: str | torch.dtype, limit: int = 2**26
) -> int:
    """Find the smallest n for which function(n) and function(n + 1) are equal after rounding.

    From this n >= 1 on, the floating-point format can no longer distinguish all lengths.

    Args:
        function: takes a float64 tensor of lengths and returns a tensor of the same shape.
        dtype: "bf16", "fp16", "fp32" or the torch type to round to.

    Raises:
        ValueError: if there is no such n up to `limit`, or the function does not return one number
            per length.

    >>> first_collision(lambda n: 1 / n, "bf16")
    190
    """
    require.function("function", function)
    require.integer("limit", limit, 1)
    compute.dtype(dtype)
    start, size = 1, 1024
    while start <= limit:
        n = torch.arange(start, min(start + size, limit) + 1, dtype=torch.float64)
        values = function(n)
        if not isinstance(values, Tensor) or values.shape != n.shape:
            raise ValueError(
                "function must take a tensor of lengths and return a tensor of the same shape"
            )
        require.tensor("what function returns", values, "n", "real")
        rounded = collapse.round_to(values.double(), dtype)
        equal = (rounded[1:] == rounded[:-1]).nonzero()
        if len(equal):
            return start + int(equal[0])
        start, size = start + size, min(2 * size, 2**20)
    raise ValueError(
        "limit must be larger, because function(n) and function(n + 1) differ in "
        f"{dtype} for every n up to limit = {limit}"
    )
