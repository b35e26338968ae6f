"""Find the frequency that RoPE should use for dependencies of width W.

We test a single pair, and decoders that choose among all pairs. Wu, Liu and Jadbabaie (2607.07678,
abstract read) say that the best frequency scales as 1/W.
"""

import math
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from course import training
from helpers import require
from helpers.transformer import Decoder

VOCABULARY, BATCH = 32, 16
KERNELS = ("window", "offset")
FINEST, COARSEST, GRID = (
    3.0,
    0.01,
    400,
)  # in radians per token, the range in which we search the best frequency
NEWTON, RIDGE = 60, 1e-3  # the number of steps, and the penalty for a squared amplitude


def wanted(width: int, length: int, kernel: str = "window") -> Float[Tensor, " n"]:
    """Return the attention weight that the task needs at each distance.

    A "window" needs equal weights at distances below `width`, and an "offset" needs all the weight
    at `width` - 1.

    >>> wanted(2, 4).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    require.choice("kernel", kernel, KERNELS)
    require.integer("width", width, 1, length)
    weights = torch.zeros(length, dtype=torch.float64)
    if kernel == "window":
        weights[:width] = 1 / width
    else:
        weights[width - 1] = 1
    return weights


def one_pair_losses(
    theta: Float[Tensor, " t"], weights: Float[Tensor, " n"]
) -> Float[Tensor, " t"]:
    """Return the smallest cross-entropy of attention with one pair of each frequency, in nats.

    The logit at distance m is a cos(θ m) + b sin(θ m). Cross-entropy is convex in a and b, so
    Newton's method finds the best values. A small ridge penalty keeps the amplitudes finite.
    """
    distance = torch.arange(len(weights), dtype=torch.float64)
    angle = theta.double()[:, None] * distance
    basis = torch.stack([angle.cos(), angle.sin()], -1)  # (t, n, 2)
    target, amplitude = weights @ basis, torch.zeros(len(theta), 2, dtype=torch.float64)
    ridge = RIDGE * torch.eye(2, dtype=torch.float64)

    def objective(amplitude: Tensor) -> Tensor:
        logits = (basis @ amplitude[..., None])[..., 0]
        return (
            logits.logsumexp(-1)
            - (amplitude * target).sum(-1)
            + RIDGE / 2 * amplitude.square().sum(-1)
        )

    for _ in range(NEWTON):
        share = (basis @ amplitude[..., None])[..., 0].softmax(-1)
        mean = (share[..., None] * basis).sum(1)
        centred = basis - mean[:, None]
        bend = torch.einsum("tn,tni,tnj->tij", share, centred, centred) + ridge
        step = torch.linalg.solve(bend, mean - target + RIDGE * amplitude)
        before, size = objective(amplitude), torch.ones(len(theta), 1, dtype=torch.float64)
        for _ in range(20):  # halve a step that does not lower the loss
            worse = objective(amplitude - size * step) > before
            size = torch.where(worse[:, None], size / 2, size)
        amplitude = amplitude - size * step
    return objective(amplitude)


def best_frequency(width: int, length: int, kernel: str) -> dict[str, float]:
    """Find the frequency with which a single pair reproduces a kernel best.

    The result also says how much a pair lowers the loss.
    """
    theta = torch.logspace(math.log10(COARSEST), math.log10(FINEST), GRID, dtype=torch.float64)
    losses = one_pair_losses(theta, wanted(width, length, kernel))
    best = int(losses.argmin())
    return {
        "best": round(float(theta[best]), 4),
        "times_width": round(float(theta[best]) * width, 3),
        "gain": round(math.log(length) - float(losses[best]), 4),
    }


def copies(
    generator: torch.Generator, width: int, length: int
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]:
    """Draw tokens and targets, where a target is one of the `width` most recent tokens.

    These are the token itself and the `width` - 1 tokens before it. All of them are equally likely
    to be the target. Only the second half of the sequence has targets, so that the kernel fits from
    the first target on if `width` is at most half of `length`.
    """
    ids = torch.randint(VOCABULARY, (BATCH, length), generator=generator)
    back = torch.randint(width, (BATCH, length), generator=generator)
    targets = ids.gather(1, (torch.arange(length) - back).clamp(min=0))
    targets[:, : length // 2] = training.UNASKED
    return ids, targets


@torch.no_grad()
def used_frequency(decoder: Decoder, width: int, length: int) -> float:
    """Return the mean rotary frequency on which a decoder's attention over distance depends.

    The decoder has one layer and one head. Its mean query and mean key give a logit Σ |q_p| |k_p|
    cos(θ_p m + φ_p). We average log θ, weighted by the squares of these amplitudes, and return the
    exponential.
    """
    block = decoder.blocks[0]
    ids, _ = copies(torch.Generator().manual_seed(999), width, length)
    x = block.norm1(decoder.embed(ids)).flatten(0, 1)
    queries, keys, _ = block.qkv(x).view(len(x), 3, -1).unbind(1)
    sizes = [torch.stack(part.mean(0).chunk(2)).norm(dim=0) for part in (queries, keys)]
    weight = (sizes[0] * sizes[1]).square()
    return float((weight * block.frequencies.log()).sum().div(weight.sum()).exp())


def learned_frequency(width: int, length: int, seed: int, steps: int) -> dict[str, float]:
    """Train a decoder of one layer and one head, and return the frequency that it uses."""
    torch.manual_seed(seed)
    decoder = Decoder(VOCABULARY, width=64, heads=1, layers=1)
    untrained = used_frequency(decoder, width, length)
    losses = training.fit(
        decoder, partial(copies, width=width, length=length), steps=steps, seed=seed
    )
    ids, targets = copies(torch.Generator().manual_seed(998), width, length)
    with torch.no_grad():
        loss = F.cross_entropy(
            decoder(ids).flatten(0, 1), targets.flatten(), ignore_index=training.UNASKED
        )
    used = used_frequency(decoder, width, length)
    return {
        "used": round(used, 4),
        "times_width": round(used * width, 3),
        "untrained": round(untrained, 4),
        "loss": round(float(loss), 4),
        "last_losses": round(sum(losses[-20:]) / 20, 4),
    }
