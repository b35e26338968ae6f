"""Measure what chapter 5 needs, such as frequencies and slash heads in a pretrained decoder.

The module also has the closed forms and simulations of the lesson.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course.evidence import null_controls
from course.runs import sweep
from course.runs.slashes import BAND_NAMES, BANDS, band, concentration
from helpers import compute, data, models, probe, require, rope
from helpers.attention import HEAD_SCORE_THRESHOLD
from helpers.models import LanguageModel

# the heads to ablate: those that attend to a fixed position, all others, or as many random others
PLACES = ("inside", "outside", "control")
THRESHOLDS = (0.1, 0.15, 0.2, HEAD_SCORE_THRESHOLD)
TEXT_TOKENS = 119
TEXTS = (
    255,
    373,
    491,
    609,
)  # first tokens of four texts after the 256 tokens on which heads are chosen
OFFSETS = 6  # we look for slash heads at distances 0 … 5
# sets of heads by their layers, with the number of layers at each end, and whether these layers or
# the others are ablated
LAYERS = {
    "first and last layer": (1, True),
    "all other layers": (1, False),
    "first and last three layers": (3, True),
    "all but three at each end": (3, False),
}
CONTEXTS = tuple(1024 << k for k in range(11))  # context lengths of the published bases
# relative steps of the search for a base, and how many are tried before the step grows
FINE, TRIES = 1e-6, 100_000
OUTSIDE = 0.15  # heads with a slash score below this are ablated, with and without the sink's logit


class Heads(NamedTuple):
    """Hold the scores of every head of a model, measured in one forward pass.

    Scores that were not requested are empty tensors.

    Attributes:
        queries, keys: the mean norm of each rotary pair over all tokens except the first, with
            shape (layers, heads, pairs).
        slashes: the mean attention weight at each distance from 0 to OFFSETS - 1, with shape
            (layers, heads, OFFSETS).
        sinks: the mean attention weight on the first token, without the first token's own row, with
            shape (layers, heads).
        concentration: the largest squared singular value of queries and of keys, as a fraction of
            the sum of all, with shape (layers, heads, 2).
        rank: the smallest number of squared singular values that have 95% of the sum, with shape
            (layers, heads, 2).
    """

    queries: Tensor = torch.empty(0)
    keys: Tensor = torch.empty(0)
    slashes: Tensor = torch.empty(0)
    sinks: Tensor = torch.empty(0)
    concentration: Tensor = torch.empty(0)
    rank: Tensor = torch.empty(0)


def readable(model: LanguageModel) -> tuple[LanguageModel, str]:
    """Return the model if its rotary pairs can be read, and otherwise the embedded model.

    Returns:
        The model, and a sentence that gives the reason for taking the embedded model, or "" if the
            given model is returned.
    """
    why = ""
    try:
        theta = probe.rotary_frequencies(model)
        (q, _), *_ = probe.queries_and_keys(model, probe.first_token(model))
        if q.shape[-1] != 2 * len(theta):
            why = (
                f"{model.short} turns {2 * len(theta)} of {q.shape[-1]} coordinates of a head, "
                "and not all"
            )
    except ValueError as error:
        why = str(error).replace(model.name, model.short)
    return (
        (models.default(), f"{why}; so what follows is measured in {models.DEFAULT}. ")
        if why
        else (model, "")
    )


def prose(model: LanguageModel, tokens: int = 256, start: int = 0) -> Int[Tensor, " n"]:
    """Return `tokens` tokens of the course's own prose, including the model's opening token.

    The text is `data/prose.txt`, and `start` skips tokens at its beginning.
    """
    ids, front = probe.encode(model, data.prose()), probe.opening(model).tokens
    return torch.cat([front, ids[start : start + tokens - len(front)]])


def random_tokens(model: LanguageModel, tokens: int = 256, seed: int = 0) -> Int[Tensor, " n"]:
    """Draw random tokens that follow the model's opening token.

    Each token is drawn uniformly from the model's vocabulary.

    Random tokens are a control, because such a text has no meaning that a head could use.
    """
    front, generator = probe.opening(model).tokens, torch.Generator().manual_seed(seed)
    size = model.model.config.get_text_config().vocab_size
    return torch.cat([front, torch.randint(0, size, (tokens - len(front),), generator=generator)])


def causal(logits: Float[Tensor, "... n n"]) -> Float[Tensor, "... n n"]:
    """Apply the causal softmax to logits, where each row covers tokens up to its position."""
    return logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1).bool(), -math.inf).softmax(-1)


def weights(
    q: Float[Tensor, "h n d"],
    k: Float[Tensor, "h n d"],
    theta: Float[Tensor, " half"],
    pairs: Sequence[int] | None = None,
) -> Float[Tensor, "h n n"]:
    """Compute attention weights from queries and keys that are not yet rotated.

    With `pairs`, the logits only contain the contribution of these rotary pairs.
    """
    positions, half = torch.arange(q.shape[-2]), len(theta)
    q, k = (rope.rotate(x, positions, theta, "half") for x in (q, k))
    if pairs is not None:
        keep = torch.zeros(2 * half)
        keep[list(pairs)] = 1
        q = q * (keep + keep.roll(half))
    return causal(q @ k.transpose(-1, -2) / math.sqrt(2 * half))


def pair_norms(x: Float[Tensor, "h n d"]) -> Float[Tensor, "h half"]:
    """Return the mean norm of each rotary pair over the tokens after the first one.

    The first token is left out because its keys and queries belong to the sink.
    """
    first, second = x[:, 1:].chunk(2, -1)
    return (first**2 + second**2).sqrt().mean(1)


def frequencies(model: LanguageModel) -> list[Float[Tensor, " half"]]:
    """Return the angles per token by which each layer rotates its pairs.

    There is one tensor per layer, because local and global layers may use different angles.

    Raises:
        ValueError: if a layer rotates nothing, or the layers rotate different numbers of pairs.
    """
    found = [each.theta for each in probe.layers(model)]
    one = any(theta is None for theta in found) or len({len(theta) for theta in found}) > 1
    return (
        [probe.rotary_frequencies(model)] * len(found) if one else found
    )  # this call raises the error that says what is wrong


def heads(model: LanguageModel, ids: Int[Tensor, " n"], rank: bool = True) -> Heads:
    """Measure the frequencies, slash scores and ranks of every head on one sequence.

    Args:
        rank: compute `concentration` and `rank` too. Otherwise these two fields stay empty, which
            saves time.
    """
    found = ([], [], [], [], [], [])
    for (q, k), theta in zip(probe.queries_and_keys(model, ids), frequencies(model), strict=True):
        maps = weights(q, k, theta)
        found[0].append(pair_norms(q))
        found[1].append(pair_norms(k))
        found[2].append(
            torch.stack([maps.diagonal(-offset, -2, -1).mean(-1) for offset in range(OFFSETS)], -1)
        )
        found[3].append(maps[:, 1:, 0].mean(-1))
        pairs = (
            [(concentration(a), concentration(b)) for a, b in zip(q, k, strict=True)]
            if rank
            else []
        )
        found[4].append(torch.tensor([[a[0], b[0]] for a, b in pairs]))
        found[5].append(torch.tensor([[a[1], b[1]] for a, b in pairs]))
    return Heads(*(torch.stack(part) for part in found))


def silence(
    pairs: Sequence[int], half: int, where: Bool[Tensor, "layers heads"] | None = None
) -> Callable[[int, str, Tensor], Tensor]:
    """Return a patch that sets some rotary pairs of every query to 0.

    Pass it to `probe.patch_queries_and_keys`.

    Args:
        pairs: the rotary pairs.
        half: the number of rotary pairs in a head.
        where: which heads to patch, or `None` for all heads.
    """
    keep = torch.ones(2 * half)
    keep[list(pairs)] = 0
    keep = keep * keep.roll(half)

    def alter(layer: int, name: str, x: Tensor) -> Tensor:
        if name != "queries":
            return x
        mask = keep if where is None else torch.where(where[layer, :, None], keep, 1.0)
        return x * mask.to(x)

    return alter


def quarters_of_pairs(half: int, controls: int = 3) -> dict[str, list[int]]:
    """Return the rotary pairs of each quarter of the frequencies, keyed by name.

    As a control, the result also has `controls` random sets of as many pairs, named "random 1",
    "random 2" and so on.
    """
    chosen = {name: band(number, half) for number, name in enumerate(BAND_NAMES)}
    for seed in range(controls):
        mixed = torch.randperm(half, generator=torch.Generator().manual_seed(seed)).tolist()
        chosen[f"random {seed + 1}"] = mixed[: half // BANDS]
    return chosen


def ablations(model: LanguageModel, ids: Int[Tensor, " n"], controls: int = 3) -> dict[str, float]:
    """Return the model's loss after ablating each quarter of the pairs in all heads.

    For comparison, we also ablate `controls` random sets of as many pairs.
    """
    half, losses = len(probe.rotary_frequencies(model)), {}
    for name, pairs in compute.progress(quarters_of_pairs(half, controls).items(), "ablations"):
        with probe.patch_queries_and_keys(model, silence(pairs, half)):
            losses[name] = probe.loss(model, ids)
    return losses


def rank_table(found: Heads) -> pd.DataFrame:
    """Compare how concentrated queries and keys are in slash heads and in other heads.

    The columns give the number of heads, the largest squared singular value as a fraction of the
    sum, and the number of squared singular values that make up 95% of the sum. The last two are
    given for queries and for keys.
    """
    chosen = found.slashes.max(-1).values > HEAD_SCORE_THRESHOLD
    rows = {}
    for name, mask in (("slash heads", chosen), ("other heads", ~chosen)):
        if not mask.any():
            continue
        share, rank = found.concentration[mask].mean(0), found.rank[mask].double().mean(0)
        rows[name] = [int(mask.sum()), *share.tolist(), *rank.tolist()]
    columns = [
        "heads",
        "share, queries",
        "share, keys",
        "values for 95%, queries",
        "values for 95%, keys",
    ]
    return pd.DataFrame(rows, index=columns).T


@cache
def heads_on_text(model: LanguageModel, seed: int | None = None, text: int = 0) -> Heads:
    """Measure every head of a model on the prose, or on random tokens if a seed is given.

    Raises:
        ValueError: if the heads cannot be read (see `heads`), or the model rotates only a part of
            each head.
    """
    ids = prose(model, start=255 * text) if seed is None else random_tokens(model, seed=seed)
    return heads(model, ids, rank=seed is None and not text)


# Test whether trained logits fall with the distance -----------------------------------------------

STRETCHES = (
    (1, 8),
    (9, 16),
    (17, 32),
    (33, 64),
    (65, 128),
    (129, 179),
    (180, 249),
)  # distances, including both ends
SOURCES = ("prose", "keys shuffled", "random tokens", "random weights")


def logits_by_distance(
    model: LanguageModel, ids: Int[Tensor, " n"], shuffled: bool = False
) -> Float[Tensor, "layers heads stretches"]:
    """Return the mean logit of every head at each of `STRETCHES`, in nats, without the first token.

    Args:
        ids: at least 250 tokens.
        shuffled: give each position the key of another token before the rotation, with one shuffle
            for all heads. This is a control. If the logits still fall with the distance, the fall
            does not come from which tokens are near each other.
    """
    require.integer("the length of ids", len(ids), STRETCHES[-1][1] + 1)
    places = torch.arange(len(ids))
    distance = places[:, None] - places
    seen = (distance > 0) & (places > 0)  # pairs with an earlier token, other than the first
    order = 1 + torch.randperm(len(ids) - 1, generator=torch.Generator().manual_seed(0))
    order = torch.cat([places[:1], order])
    found = []
    for (q, k), theta in zip(probe.queries_and_keys(model, ids), frequencies(model), strict=True):
        k = k[:, order] if shuffled else k
        q, k = (rope.rotate(x, places, theta, "half") for x in (q, k))
        logits = q @ k.mT / math.sqrt(q.shape[-1])
        means = [logits[:, seen & (distance >= a) & (distance <= b)].mean(1) for a, b in STRETCHES]
        found.append(torch.stack(means, -1))
    return torch.stack(found)


@cache
def falling_logits(model: LanguageModel) -> dict[str, Float[Tensor, "layers heads stretches"]]:
    """Measure the mean logits by distance, for the text and for each control.

    The keys are `SOURCES`, and the values are those of `logits_by_distance`.
    """
    text = prose(model)
    return {
        "prose": logits_by_distance(model, text),
        "keys shuffled": logits_by_distance(model, text, shuffled=True),
        "random tokens": logits_by_distance(model, random_tokens(model)),
        "random weights": logits_by_distance(null_controls.untrained(model, 0), text),
    }


def fall(logits: Float[Tensor, "layers heads stretches"]) -> Float[Tensor, " heads"]:
    """Return by how many nats each head's mean logit falls from near to far distances."""
    return (logits[..., 0] - logits[..., -1]).flatten()


# Match heads in loss ------------------------------------------------------------------------------


def matched_row(start: int, draw: int) -> dict[str, float]:
    """Measure how much ablating a quarter of the pairs in one kind of heads raises the loss.

    The heads either attend to a fixed position (slash score above `HEAD_SCORE_THRESHOLD`), or are
    drawn at random from all others. We draw so many that ablating all pairs raises the loss by the
    same amount in both kinds. A head without its pairs attends uniformly.

    Args:
        start: the text's first token.
        draw: the seed for drawing the other heads, or -1 to measure the heads that attend to a
            fixed position.
    """
    model = models.default()
    ids, half = prose(model, TEXT_TOKENS, start), len(frequencies(model)[0])
    inside = silenced_heads(heads_on_text(model), HEAD_SCORE_THRESHOLD, "inside")
    plain = probe.loss(model, ids)

    def cost(where: Bool[Tensor, "layers heads"], pairs: Sequence[int]) -> float:
        return silenced_loss(model, ids, pairs, where, False) - plain

    wanted, where = cost(inside, range(half)), inside
    if draw >= 0:
        others = (~inside).flatten().nonzero().flatten()
        order = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(draw))]

        def first(count: int) -> Bool[Tensor, "layers heads"]:
            chosen = torch.zeros(inside.numel(), dtype=torch.bool)
            chosen[order[:count]] = True
            return chosen.view(inside.shape)

        low, high = 1, len(order)
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if cost(first(middle), range(half)) >= wanted else (middle + 1, high)
            )
        where = first(low)
    quarters = {name: round(cost(where, band(k, half)), 4) for k, name in enumerate(BAND_NAMES)}
    return {"heads": int(where.sum()), "all_pairs": round(cost(where, range(half)), 4), **quarters}


def concentration_row(scale: str) -> dict[str, float]:
    """Measure how concentrated queries and keys are in a random-weights baseline.

    The result is the mean over all heads. The concentration is the largest squared singular value
    of queries and of keys, as a fraction of the sum of all.
    """
    found = heads_on_text(null_controls.untrained(models.default(), 0, scale)).concentration
    queries, keys = found.mean((0, 1)).tolist()
    return {"queries": round(queries, 4), "keys": round(keys, 4)}


# Compute the closed forms and simulations of the lesson -------------------------------------------


def lead(
    distances: Sequence[int], width: int = 128, base: float = 1e4, count: int = 20_000
) -> tuple[Float[Tensor, " m"], Float[Tensor, " m"]]:
    """Simulate by how much a noisy copy of the query scores higher than a random key.

    The lead at a distance is q'R(q + e) - q'Rk, where R is the rotation at this distance. The
    vectors q, k and e are independent, and their entries have mean 0 and variance 1.

    Returns:
        The mean lead at each distance, and its standard error.
    """
    generator, theta = torch.Generator().manual_seed(0), rope.frequencies(width, base)
    q, k, noise = torch.randn(3, count, 1, width, generator=generator, dtype=torch.float64)
    found = []
    for m in distances:
        turned = rope.rotate(q + noise - k, torch.tensor([float(m)]), theta)
        found.append((q * turned).sum(-1).flatten())
    leads = torch.stack(found)
    return leads.mean(1), leads.std(1) / math.sqrt(count)


def gaussian_scores(
    distances: Sequence[float] | Tensor, count: int = 2000, base: float = 1e4
) -> Float[Tensor, "count m"]:
    """Return the scores of Gaussian queries and keys at each distance, divided by sqrt(d).

    Their width d is 128. The same vectors are used for all distances, so only the rotation changes
    with the distance.
    """
    width, generator = 128, torch.Generator().manual_seed(0)
    q, k = (
        torch.randn(count, width // 2, 2, generator=generator, dtype=torch.float64)
        for _ in range(2)
    )
    product = torch.view_as_complex(q) * torch.view_as_complex(k).conj()
    angles = rope.frequencies(width, base)[:, None] * torch.as_tensor(distances).double()
    return (product @ torch.polar(torch.ones_like(angles), angles)).real / math.sqrt(width)


def weights_without_positions(
    tries: int = 100_000, width: int = 8, seed: int = 0, turn: bool = False
) -> Float[Tensor, " tries"]:
    """Return the attention weight of the last x on itself in (BOS, x, x), for random heads.

    Without positions, the two copies of x always get the same weight.

    Args:
        turn: use RoPE. Otherwise the heads have no positions.
    """
    generator = torch.Generator().manual_seed(seed)
    bos, x = torch.randn(2, tries, width, generator=generator, dtype=torch.float64)
    maps = torch.randn(2, tries, width, width, generator=generator, dtype=torch.float64)
    q, k = (torch.stack([bos, x, x], 1) @ w for w in maps)
    if turn:
        q, k = (rope.rotate(v, torch.arange(3), rope.frequencies(width, 1e4)) for v in (q, k))
    return ((q[:, -1:] @ k.mT)[:, 0] / math.sqrt(width)).softmax(-1)[:, -1]


def second_layer_without_positions(
    n: int, scale: float, marked: bool = True
) -> Float[Tensor, "n n"]:
    """Return the attention weights of a second-layer head that needs no position encoding.

    The sequence is any `n` tokens that start with BOS. The head of the first layer attends
    uniformly and copies the mark of BOS, so token i (counted from 1) stores 1/i. The second layer
    uses this value as its key, and -`scale` as every query, so the latest token gets the largest
    weight. If BOS is not `marked`, all states are alike and attention is uniform.
    """
    mark = torch.zeros(n, dtype=torch.float64)
    mark[0] = float(marked)
    share = causal(torch.zeros(n, n, dtype=torch.float64)) @ mark
    return causal(-scale * share.expand(n, n))


def sums_over_context(theta: Float[Tensor, " half"], limit: int, points: int = 200) -> dict:
    """Return the sum of cos(distance * theta) over a model's frequencies, below `limit` tokens.

    If this sum is negative at a distance, a query prefers a random key to its noisy copy there (Men
    et al., 2024, Theorem 1).

    Returns:
        "first_negative": the first distance with a negative sum, or `None`
        "negative": the fraction of distances with a negative sum
        "distances": the beginnings of about `points` intervals of distances, evenly spaced on a log
            scale
        "least" and "largest": the extremes of the sum in each interval, divided by the number of
            pairs
        "limit": the limit that was used
    """
    theta, limit = theta.double(), max(limit, 2)
    pieces = torch.arange(1, limit, dtype=torch.float64).split(1 << 14)
    means = torch.cat([(piece[:, None] * theta).cos().mean(-1) for piece in pieces])
    below = (means < 0).nonzero()
    starts = torch.unique(
        torch.logspace(0, math.log10(max(limit - 1, 1)), points, dtype=torch.float64).round()
    ).long()
    parts = means.tensor_split((starts[1:] - 1).tolist())
    return {
        "first_negative": 1 + int(below[0]) if len(below) else None,
        "negative": len(below) / len(means),
        "limit": limit,
        "distances": starts.tolist(),
        "least": [float(part.min()) for part in parts],
        "largest": [float(part.max()) for part in parts],
    }


@cache
def least_base(context: int) -> float:
    """Find the smallest base for which no cosine sum is negative within a context, at width 128.

    The search goes in steps of at most a millionth of the base. A base that is large enough for a
    context is also large enough for half of this context. So the search begins at the smallest base
    for half of the context.
    """
    start = least_base(context // 2) if context > CONTEXTS[0] else 2.0
    while True:
        try:
            return rope.smallest_base(context, 128, FINE * start, start, TRIES)
        except ValueError:  # no base in this range is large enough
            start *= 1 + FINE * TRIES


def base_row(context: int) -> dict[str, float]:
    """Return the row of the committed table for one context, with its smallest base.

    The row also has the smallest sum of cosines at this base, and the distance of this sum (see
    `least_base`).
    """
    base = least_base(context)
    sums = rope.cosine_sum(torch.arange(context), 128, base)
    return {
        "base": round(base, 4),
        "least": float(f"{float(sums.min()):.5g}"),
        "distance": int(sums.argmin()),
    }


@cache
def smallest_bases() -> dict[int, float]:
    """Return the committed smallest base for each of the eleven contexts."""
    return data.table("rope_bases").set_index("context")["base"].to_dict()


def slash_heads(found: Heads, offset: int | None = None) -> list[tuple[int, int, int]]:
    """Return the heads that attend to a fixed distance as (layer, head, offset), strongest first.

    A head is in the list if its best slash score is above `HEAD_SCORE_THRESHOLD`.

    Args:
        offset: return only the heads that attend to this distance.
    """
    best, where = found.slashes.max(-1)
    chosen = [
        (float(best[i, j]), int(i), int(j), int(where[i, j]))
        for i, j in (best > HEAD_SCORE_THRESHOLD).nonzero()
    ]
    return [each[1:] for each in sorted(chosen, reverse=True) if offset in (None, each[3])]


def slashes_at(offsets: Int[Tensor, "layers heads"], found: Heads) -> Float[Tensor, "layers heads"]:
    """Return the slash score of every head at the head's own offset.

    `offsets` contains one offset for each head.
    """
    return found.slashes.gather(-1, offsets[..., None])[..., 0]


def silenced_heads(found: Heads, threshold: float, where: str) -> Bool[Tensor, "layers heads"]:
    """Select the heads to ablate, by their slash scores or as a control.

    Args:
        threshold: the slash score that separates the heads.
        where: "inside" for the heads above the threshold, "outside" for all other heads, or
            "control" for random heads among the others, as many as there are heads above the
            threshold.
    """
    inside = found.slashes.max(-1).values > threshold
    if require.choice("where", where, PLACES) == "inside":
        return inside
    if where == "outside":
        return ~inside
    others = (~inside).flatten().nonzero().flatten()
    mixed = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(0))]
    control = torch.zeros(inside.numel(), dtype=torch.bool)
    control[mixed[: int(inside.sum())]] = True
    return control.view(inside.shape)


def silenced(start: int, threshold: float, where: str) -> dict[str, float]:
    """Measure how much ablating quarters of the pairs raises the loss, for one row of a table.

    The model is the embedded one (see `silenced_in`).
    """
    return silenced_in(models.default(), heads_on_text(models.default()), start, threshold, where)


def silenced_table(model: LanguageModel | None = None) -> pd.DataFrame:
    """Return how much ablating quarters of the pairs raises the loss.

    There is one row per text, threshold and kind of heads. For the embedded model, the rows come
    from the committed table. Another model is measured on the first one of the four texts, which
    takes about a hundred forward passes over 119 tokens.
    """
    if model is None or model.name == models.DEFAULT:
        return data.table("silenced_pairs").drop(columns="seconds")
    settings, found = (
        sweep.grid(start=TEXTS[:1], threshold=THRESHOLDS, where=PLACES),
        heads_on_text(model),
    )
    return pd.DataFrame(
        [s | silenced_in(model, found, **s) for s in compute.progress(settings, "silenced pairs")]
    )


def silenced_in(
    model: LanguageModel, found: Heads, start: int, threshold: float, where: str, controls: int = 3
) -> dict[str, float]:
    """Measure how much ablating each quarter of the pairs in some heads raises the loss.

    Args:
        found: the scores of the heads on the prose's first 256 tokens, by which the heads are
            chosen.
        start: the first token of the other text, on which the loss is measured.
        threshold, where: as in `silenced_heads`.
        controls: the number of random sets of pairs.
    """
    heads = silenced_heads(found, threshold, where)
    return {"heads": int(heads.sum())} | _added(
        model, prose(model, TEXT_TOKENS, start), heads, controls
    )


def _added(
    model: LanguageModel,
    ids: Int[Tensor, " n"],
    heads: Bool[Tensor, "layers heads"],
    controls: int,
    sink: bool = False,
) -> dict[str, float]:
    plain, row = probe.loss(model, ids), {}
    for name, pairs in quarters_of_pairs(len(frequencies(model)[0]), controls).items():
        row[name.replace(" ", "_")] = round(
            silenced_loss(model, ids, pairs, heads, sink) - plain, 4
        )
    return {"plain": round(plain, 4)} | row


def silenced_loss(
    model: LanguageModel,
    ids: Int[Tensor, " n"],
    pairs: Sequence[int],
    where: Bool[Tensor, "layers heads"],
    sink: bool,
) -> float:
    """Return the loss after ablating some pairs of the queries in some heads.

    Args:
        sink: keep all logits on the first token as they were. To do so, we add the contribution of
            the ablated pairs to these logits, layer by layer. This separates the effect of losing
            the positions from the effect of losing the sink.
    """
    theta = frequencies(model)
    half, n = len(theta[0]), len(ids)
    mute = silence(pairs, half, where)
    if not sink:
        with probe.patch_queries_and_keys(model, mute):
            return probe.loss(model, ids)
    gone, biases = {}, {}
    mask = torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)

    def alter(layer: int, name: str, x: Tensor) -> Tensor:
        if name == "queries":
            gone[layer] = x - mute(layer, name, x)
            return x - gone[layer]
        turned = rope.rotate(gone[layer][0].transpose(0, 1), torch.arange(n), theta[layer], "half")
        first = x[0, 0].repeat_interleave(len(turned) // x.shape[2], 0)  # position 0 is not rotated
        biases[layer][0, :, :, 0] += (turned @ first[..., None])[..., 0] / math.sqrt(2 * half)
        return x

    def own(layer: int) -> Callable:
        def hook(module: torch.nn.Module, arguments: tuple, named: dict) -> tuple[tuple, dict]:
            biases[layer] = mask.expand(1, where.shape[1], n, n).clone()
            return arguments, named | {"attention_mask": biases[layer]}

        return hook

    blocks = [part for name, part in model.model.named_modules() if name.endswith("self_attn")]
    hooks = [
        part.register_forward_pre_hook(own(k), with_kwargs=True) for k, part in enumerate(blocks)
    ]
    try:
        with probe.patch_queries_and_keys(model, alter):
            return probe.loss(model, ids)
    finally:
        for hook in hooks:
            hook.remove()


def silenced_layers(
    start: int, heads: str, sink: str, model: LanguageModel | None = None
) -> dict[str, float]:
    """Measure how much ablating each quarter of the pairs in some of `LAYERS` raises the loss.

    Args:
        start: the text's first token.
        heads: a name of `LAYERS`, or "outside" for all heads with a slash score below `OUTSIDE`.
        sink: "silenced", or "kept" if the logits on the first token stay as they were.
        model: the model, or `None` for the embedded model.
    """
    model = model or models.default()
    where = silenced_heads(heads_on_text(model), OUTSIDE, "outside")
    if heads != "outside":
        ends, inside = LAYERS[heads]
        at_an_end = torch.zeros(len(where), dtype=torch.bool)
        at_an_end[:ends] = at_an_end[-ends:] = True
        where = (at_an_end == inside)[:, None].expand(where.shape)
    costs = _added(model, prose(model, TEXT_TOKENS, start), where, 3, sink == "kept")
    return {"count": int(where.sum())} | costs


def between_the_ends(model: LanguageModel | None = None) -> pd.DataFrame:
    """Return the rows of `silenced_layers` for the layers between the first and last ones.

    For the embedded model, the rows come from the committed table. Another model is measured on the
    first one of the texts.
    """
    inner = [name for name, (_, inside) in LAYERS.items() if not inside]
    if model is None or model.name == models.DEFAULT:
        return data.table("silenced_layers").query("heads in @inner")
    return pd.DataFrame(
        [{"heads": each} | silenced_layers(TEXTS[0], each, "silenced", model) for each in inner]
    )
