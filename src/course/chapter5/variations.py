"""Ablate rotary pairs in another way than chapter 5, to test its claims on fast pairs."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from course.chapter5 import measures
from helpers import models, probe

HEADS = ("place heads", "as many others", "all other layers")


def average(
    pairs: Sequence[int], half: int, where: Bool[Tensor, "layers heads"]
) -> Callable[[int, str, Tensor], Tensor]:
    """Return a patch that replaces some rotary pairs of every query by their mean over the tokens.

    The mean is taken before the rotation. `measures.silence` sets the pairs to 0 instead, which
    also removes the part that all tokens have in common.
    """
    chosen = torch.zeros(2 * half, dtype=torch.bool)
    chosen[list(pairs)] = True
    chosen = chosen | chosen.roll(half)

    def alter(layer: int, name: str, x: Tensor) -> Tensor:
        if name != "queries":
            return x
        return torch.where(where[layer, :, None] & chosen, x.mean(1, keepdim=True), x)

    return alter


def averaged(start: int, heads: str) -> dict[str, float]:
    """Measure how much averaging a quarter of the pairs over the tokens raises the loss.

    Args:
        start: the text's first token.
        heads: "place heads" (slash score above `HEAD_SCORE_THRESHOLD` on another text), "as many
            others" (random ones), or "all other layers" (all heads except those of the first and
            the last layer).
    """
    model = models.default()
    found, ids = measures.heads_on_text(model), measures.prose(model, measures.TEXT_TOKENS, start)
    places = {"place heads": "inside", "as many others": "control"}
    if heads in places:
        where = measures.silenced_heads(found, measures.HEAD_SCORE_THRESHOLD, places[heads])
    else:
        where = torch.ones(found.sinks.shape, dtype=torch.bool)
        where[[0, -1]] = False
    half, plain = len(measures.frequencies(model)[0]), probe.loss(model, ids)
    row = {"count": int(where.sum())}
    for k, name in enumerate(measures.BAND_NAMES):
        with probe.patch_queries_and_keys(model, average(measures.band(k, half), half, where)):
            row[name] = round(probe.loss(model, ids) - plain, 4)
    return row
