"""Measure the lead with which one token keeps half of the attention among N distractors.

The distractors have random logits. Ghaffari et al. (2609.22101, abstract read) bound the lead from
below by √log N. The worst case needs 4 log N.
"""

import math

import numpy as np
import torch

from helpers import data, models, probe, require, rope

SHARE, CONFIDENCE, DRAWS = 0.5, 0.9, 400  # half of the attention, in nine of ten draws
CHUNK = 2**20  # the number of logits that we draw at once
TOKENS = 128


def lead(distractors: int, spread: float, seed: int) -> dict[str, float]:
    """Find the smallest lead that gives one token half of the attention in nine of ten draws.

    The lead is the token's logit minus the distractors' mean logit.

    Args:
        distractors: the number N of distractors.
        spread: the standard deviation of their Gaussian logits.

    Returns:
        softmax: the lead that softmax needs
        largest: the lead over the largest distractor, which a hard maximum needs
        root: spread √(2 log N)
        log: log N + spread²/2, the logarithm of the expected sum of exponentials
    """
    require.integer("distractors", distractors, 1)
    require.number("spread", spread, above=0)
    generator = np.random.default_rng([seed, distractors])
    sums, largest = np.empty(DRAWS), np.empty(DRAWS)
    for k in range(DRAWS):
        total, most = 0.0, -math.inf
        for start in range(0, distractors, CHUNK):
            logits = spread * generator.standard_normal(min(CHUNK, distractors - start))
            total += float(np.exp(logits).sum())
            most = max(most, float(logits.max()))
        sums[k], largest[k] = math.log(total), most
    odds = math.log(SHARE / (1 - SHARE))
    return {
        "softmax": round(float(np.quantile(sums, CONFIDENCE)) + odds, 4),
        "largest": round(float(np.quantile(largest, CONFIDENCE)), 4),
        "root": round(spread * math.sqrt(2 * math.log(distractors)), 4),
        "log": round(math.log(distractors) + spread**2 / 2, 4),
    }


def model_spread(start: int) -> dict[str, float]:
    """Measure how widely the attention logits of one row vary in the embedded model.

    For each head, we take the standard deviation over the keys of a row, without the first token's
    key, and average it over the rows from token 33 on. The text has 128 tokens, which are the
    opening token and the course's prose from token `start` on.

    Returns:
        Quartiles of this average over the heads.
    """
    model = models.default()
    front = probe.opening(model).tokens
    prose = probe.encode(model, data.prose())
    tokens = torch.cat([front, prose[start : start + TOKENS - len(front)]])
    places, spreads = torch.arange(len(tokens)), []
    layers = zip(probe.queries_and_keys(model, tokens), probe.layers(model), strict=True)
    for (q, k), layer in layers:
        q, k = (rope.rotate(x, places, layer.theta, "half") for x in (q, k))
        logits = q @ k.mT / math.sqrt(q.shape[-1])
        rows = [logits[:, i, 1 : i + 1].std(-1) for i in range(32, len(tokens))]
        spreads.append(torch.stack(rows).mean(0))
    low, middle, high = np.quantile(torch.cat(spreads).numpy(), (0.25, 0.5, 0.75))
    return {"low": round(low, 3), "median": round(middle, 3), "high": round(high, 3)}
