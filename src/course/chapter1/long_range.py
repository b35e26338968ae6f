"""Test whether a task needs k hops, with the best predictor that sees only a part of the graph.

Hernandez Caralt et al. (arXiv:2610.03556) require four properties of such a task: predictability,
tightness, strictly k-range, and topology invariance. We read only the abstract, which lists these
names without definitions, so the tests here are our interpretation of the names.
"""

import itertools
import math
from collections import Counter, defaultdict

import torch

from helpers import require

SHAPES = ("tree", "star", "relay")


def distances(leaves: int, shape: str) -> list[int]:
    """Return the number of hops from the root to each leaf.

    The distance is log2 of the number of leaves in a tree, 2 on a star, and 3 on a star with a
    relay.
    """
    require.choice("shape", shape, SHAPES)
    return [{"tree": int(math.log2(leaves)), "star": 2, "relay": 3}[shape]] * leaves


def known_from(
    shape: str, leaves: int, radius: int, seen: int = 0, seed: int = 0
) -> dict[str, float]:
    """Return the best accuracy that a predictor can have if it sees only the nearest leaves.

    The predictor sees the question and the leaves up to `radius` hops away. The answer is the value
    of the leaf whose key is the question at the root. All orders of the values on the leaves are
    equally likely.

    Args:
        seen: the number of different orders of the values in the examples, drawn with `seed`, or 0
            for all orders.

    Returns:
        accuracy: the accuracy of the best predictor
        chance: the accuracy of the best predictor that sees nothing
        hops: the distance of the farthest leaf
    """
    far = distances(leaves, shape)
    orders = list(itertools.permutations(range(leaves)))
    if seen:
        drawn = torch.randperm(len(orders), generator=torch.Generator().manual_seed(seed))[:seen]
        orders = [orders[k] for k in drawn.tolist()]
    views, answers = defaultdict(Counter), Counter()
    for order in orders:
        visible = tuple(value for value, hops in zip(order, far, strict=True) if hops <= radius)
        for question in range(leaves):
            views[question, visible][order[question]] += 1
            answers[order[question]] += 1
    cases = len(orders) * leaves
    return {
        "accuracy": round(sum(max(each.values()) for each in views.values()) / cases, 4),
        "chance": round(max(answers.values()) / cases, 4),
        "hops": max(far),
    }
