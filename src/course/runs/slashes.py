"""Train decoders of one layer to copy, and watch how a slash head emerges.

These runs are in `data/slash_emergence.csv` and `data/slash_common.csv`.
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course import training
from helpers import require
from helpers.attention import slash_score
from helpers.transformer import Decoder

BAND_NAMES = ("fastest", "fast", "slow", "slowest")  # equal quarters of the rotary pairs
BANDS = len(BAND_NAMES)
TASK = {"vocabulary": 64, "seen": 32, "length": 32, "batch": 16}
QUARTERS = {
    "second quarter": 1,
    "third quarter": 2,
    "slowest quarter": 3,
}  # only the fastest quarter of the pairs rotates, as in 0.25-RoPE
SPECTRA = ("RoPE", "0.75-RoPE", "0.25-RoPE", *QUARTERS, "NoPE")
# where one vector is added before training, which is to all embeddings or to the bias of the layer
# norm
PARTS = ("embeddings", "norm")
# with this base the slowest quarter rotates by one radian over the task's 32 tokens, with base
# 10,000 by 0.03
SHORT_BASE = 100.0


def band(number: int, pairs: int) -> list[int]:
    """Return the rotary pairs of band `number` among `BANDS` equal bands.

    Band 0 has the fastest pairs.
    """
    return list(range(number * pairs // BANDS, (number + 1) * pairs // BANDS))


def concentration(x: Float[Tensor, "n d"]) -> tuple[float, int]:
    """Measure how close a matrix is to rank 1, from its squared singular values.

    The first row is left out.

    Returns:
        The largest squared singular value as a fraction of their sum, and the smallest number of
            squared singular values that have 95% of their sum.
    """
    squares = torch.linalg.svdvals(x[1:]) ** 2
    share = squares / squares.sum()
    return float(share[0]), int((share.cumsum(0) < 0.95).sum()) + 1


def copying(
    generator: torch.Generator,
    *,
    offset: int,
    kind: str = "skewed",
    length: int = TASK["length"],
    batch: int = TASK["batch"],
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]:
    """Draw tokens and targets, where each target is the token `offset` positions earlier.

    Args:
        kind: "skewed" draws tokens with weights 1/rank from the half of the vocabulary that
            training sees. "uniform" draws from the same half with equal weights. "unseen" draws
            from the other half.
    """
    trained_on = TASK["seen"]
    if kind == "skewed":
        weights = 1 / torch.arange(1, trained_on + 1)
        ids = torch.multinomial(
            weights, batch * length, replacement=True, generator=generator
        ).view(batch, length)
    else:
        low, high = (0, trained_on) if kind == "uniform" else (trained_on, TASK["vocabulary"])
        ids = torch.randint(low, high, (batch, length), generator=generator)
    targets = torch.full_like(ids, training.UNASKED)
    targets[:, offset:] = ids[:, : length - offset]
    return ids, targets


def shallow(spectrum: str, seed: int, shared: float = 0.0, base: float = 1e4) -> Decoder:
    """Build a decoder of one layer and two heads, with one of the `SPECTRA` of rotary frequencies.

    The vector `shared_vector(seed, shared)` is added to all embeddings.
    """
    require.choice("spectrum", spectrum, SPECTRA)
    torch.manual_seed(seed)
    share = float(spectrum.split("-")[0]) if spectrum[0] == "0" else 1.0
    encoding = "NoPE" if spectrum == "NoPE" else "RoPE"
    decoder = Decoder(
        TASK["vocabulary"], width=64, heads=2, layers=1, encoding=encoding, turning=share, base=base
    )
    if spectrum in QUARTERS:
        theta = decoder.blocks[0].frequencies
        is_kept = torch.isin(
            torch.arange(len(theta)), torch.tensor(band(QUARTERS[spectrum], len(theta)))
        )
        decoder.blocks[0].frequencies = theta * is_kept
    decoder.embedding.weight.data += shared_vector(seed, shared)
    return decoder


def shared_vector(seed: int, strength: float) -> Float[Tensor, " d"]:
    """Return a Gaussian vector times `strength`.

    At strength 1, this vector is as long as the part of the embeddings that tells the tokens of
    `shallow` apart.
    """
    return strength * torch.randn(64, generator=torch.Generator().manual_seed(1000 + seed))


@torch.no_grad()
def slashes(
    decoder: Decoder, offset: int, kind: str, length: int = TASK["length"]
) -> Float[Tensor, " heads"]:
    """Return the slash score of each head, as the mean over a batch of new sequences."""
    ids, _ = copying(torch.Generator().manual_seed(999), offset=offset, kind=kind, length=length)
    return slash_score(decoder.attention(ids)[0], offset).mean(0)


def slash(decoder: Decoder, offset: int, kind: str, length: int = TASK["length"]) -> float:
    """Return the slash score of the head with the highest score."""
    return float(slashes(decoder, offset, kind, length).max())


@torch.no_grad()
def projected(decoder: Decoder, head: int, kind: str) -> dict[str, Float[Tensor, "n d"]]:
    """Return the queries and keys of a head on a batch of new sequences, before rotation.

    The keys of the dictionary are "queries" and "keys".
    """
    ids, _ = copying(torch.Generator().manual_seed(999), offset=1, kind=kind)
    block = decoder.blocks[0]
    x = block.norm1(decoder.embed(ids)).flatten(0, 1)
    queries, keys, _ = block.qkv(x).view(len(x), 3, block.heads, -1)[:, :, head].unbind(1)
    return {"queries": queries, "keys": keys}


def in_common(x: Float[Tensor, "n d"]) -> float:
    """Return the fraction of the vectors' squared lengths that their mean accounts for.

    The fraction is 1 if all vectors are equal, and 0 if their mean is zero.

    >>> in_common(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    0.5
    """
    return float(x.mean(0).square().sum() / x.square().sum(-1).mean())


def emergence(
    spectrum: str, offset: int, seed: int, steps: int, shared: float, base: float
) -> dict[str, float]:
    """Train one shallow decoder to copy from `offset` positions back, and measure its slash heads.

    Returns:
        One row of the table, with the loss, accuracies, slash scores, and the concentration of
            queries and keys.
    """
    decoder, untrained = (shallow(spectrum, seed, shared, base) for _ in range(2))
    losses = training.fit(decoder, partial(copying, offset=offset), steps=steps, seed=seed)
    right = {
        kind: training.accuracy(decoder, partial(copying, offset=offset, kind=kind))
        for kind in ("skewed", "uniform")
    }
    head = int(slashes(decoder, offset, "skewed").argmax())
    row = {
        "loss": sum(losses[-20:]) / 20,
        "accuracy": right["skewed"],
        "accuracy_uniform": right["uniform"],
        "slash_untrained": slash(untrained, offset, "skewed"),
        "slash": slash(decoder, offset, "skewed"),
        "slash_uniform": slash(decoder, offset, "uniform"),
        "slash_unseen": slash(decoder, offset, "unseen"),
        "slash_longer": slash(decoder, offset, "skewed", 4 * TASK["length"]),
    }
    for name, model, kind in (
        ("untrained", untrained, "uniform"),
        ("uniform", decoder, "uniform"),
        ("unseen", decoder, "unseen"),
    ):
        row |= {
            f"share_{part}_{name}": concentration(x)[0]
            for part, x in projected(model, head, kind).items()
        }
    decoder.embedding.weight.data[TASK["seen"] :] -= shared_vector(seed, shared)
    row["slash_unseen_without"] = slash(decoder, offset, "unseen")
    return {name: round(value, 5) for name, value in row.items()}


def common(
    part: str, strength: float, spectrum: str, offset: int, seed: int, steps: int
) -> dict[str, float]:
    """Train one shallow decoder with an added vector, and measure its attention on unseen tokens.

    Args:
        part: where the vector is added, one of `PARTS`.
        strength: the strength of the vector (see `shared_vector`).

    Returns:
        One row of the table. Its column `slash_unseen_without` is the slash score after the vector
            was removed again, from the embeddings of the unseen tokens or from the layer norm.
    """
    require.choice("part", part, PARTS)
    decoder, vector = (
        shallow(spectrum, seed, strength * (part == "embeddings")),
        shared_vector(seed, strength),
    )
    if part == "norm":
        decoder.blocks[0].norm1.bias.data += vector
    training.fit(decoder, partial(copying, offset=offset), steps=steps, seed=seed)
    head = int(slashes(decoder, offset, "skewed").argmax())
    row = {f"slash_{kind}": slash(decoder, offset, kind) for kind in ("uniform", "unseen")}
    for kind in ("uniform", "unseen"):
        for name, x in projected(decoder, head, kind).items():
            row |= {
                f"share_{name}_{kind}": concentration(x)[0],
                f"common_{name}_{kind}": in_common(x),
            }
    if part == "norm":
        decoder.blocks[0].norm1.bias.data -= vector
    else:
        decoder.embedding.weight.data[TASK["seen"] :] -= vector
    row["slash_unseen_without"] = slash(decoder, offset, "unseen")
    return {name: round(value, 5) for name, value in row.items()}
