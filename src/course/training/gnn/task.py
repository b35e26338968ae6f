"""Build the trees and examples of Tree-NeighborsMatch.

Two functions also bound the width that a hidden state needs.
"""

import itertools
import math
import random
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from helpers import require

DEPTHS = range(2, 9)
KEYS = ("root", "everywhere")


def _check_depth(depth: int, allowed: range) -> None:
    if isinstance(depth, bool) or not isinstance(depth, int) or depth not in allowed:
        raise ValueError(
            f"depth must be an integer from {allowed[0]} to {allowed[-1]}, not {depth!r}"
        )


def _check_key(key: str) -> None:
    require.choice("key", key, KEYS)


def orderings(depth: int) -> int:
    """Count the messages that the root must distinguish, (2^r)! / 2^(2^r - 1) for trees of depth r.

    The number is the left side of Eq. 5 of Alon & Yahav (2021). It counts the orders of the leaves,
    where swapping two siblings makes no difference. The number is always odd.

    >>> orderings(2)  # 4! / 2^3
    3
    """
    _check_depth(depth, range(1, 17))
    leaves = 2**depth
    return math.factorial(leaves) >> (leaves - 1)


def minimum_width(depth: int, bits: int = 32) -> int:
    """Return the smallest width of a hidden state that can store every order of the leaves.

    The width is the smallest d with 2^(bits d) > (2^depth)! / 2^(2^depth - 1), which is Eq. 5 of
    Alon & Yahav (2021), computed in exact integers. The bound counts every order of the leaves. The
    released training sets have at most 1000 orders, so the bound does not limit the training
    accuracy.

    >>> [minimum_width(depth) for depth in (3, 5, 8)]
    [1, 3, 45]
    """
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 1:
        raise ValueError(f"bits must be a positive integer, not {bits!r}")
    return -(-orderings(depth).bit_length() // bits)


class Batch(NamedTuple):
    """Hold a batch of examples, in which examples with the same leaves share one copy of them.

    Example b asks for the key `key[b]` among the leaves `values[row[b]]`.

    Attributes:
        key: the key that each example asks for.
        values: one row of leaf values for each distinct order of the leaves.
        row: for each example, the row of `values` that holds its leaves.
        label: the right answer of each example.
    """

    key: Int[Tensor, " examples"]
    values: Int[Tensor, "orders leaves"]
    row: Int[Tensor, " examples"]
    label: Int[Tensor, " examples"]

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(part.to(device) for part in self))


class TreeNeighborsMatch:
    """Generate the dataset of Alon & Yahav (2021), section 4.1, as their code does.

    The graph is a complete binary tree with `depth` levels below the root. The i-th leaf (from 1)
    carries its number and a value, the root carries (key, 0), and inner nodes carry (0, 0). The
    label is the value of the leaf whose number equals the key, so chance is 1 / leaves. Example e
    has the order `e // leaves` of the leaves and the key `e % leaves + 1`.

    The orders are those of the released code at its seed, 11. The 80/20 split is stratified by
    label as in the released code, but another generator draws it.

    Attributes:
        nodes, leaves: 2^(depth + 1) - 1 and 2^depth.
        edges: child and parent of each edge, then one loop per node, (2, 2 nodes - 1). Nodes are
            numbered in depth-first pre-order, so the root is 0.
        leaf_nodes: the numbers of the leaves from left to right, (leaves,).
        orders: the values 1 to leaves in each order, (orders, leaves).
        train, test: the numbers of the examples in each part.

    Raises:
        ValueError: if depth is not an integer from 2 to 8, or seed is not a valid seed.

    >>> task = TreeNeighborsMatch(2)
    >>> task.nodes, len(task.train), len(task.test)
    (7, 76, 20)
    """

    def __init__(self, depth: int, seed: int = 11):
        _check_depth(depth, DEPTHS)
        seed = require.seed(seed)
        self.depth, self.leaves, self.nodes = depth, 2**depth, 2 ** (depth + 1) - 1
        self.edges, self.leaf_nodes = _tree(depth)
        count = min(1000, math.factorial(self.leaves), 32000 // self.leaves if depth > 3 else 1000)
        if depth > 3:
            state = np.random.RandomState(seed)
            orders = [state.permutation(range(1, self.leaves + 1)) for _ in range(count)]
        else:
            orders = random.Random(seed).sample(
                [*itertools.permutations(range(1, self.leaves + 1))], count
            )
        self.orders = torch.as_tensor(np.array(orders))
        examples = torch.arange(count * self.leaves)
        by_label = examples[self.batch(examples).label.argsort(stable=True)].view(
            self.leaves, count
        )
        generator = torch.Generator().manual_seed(seed)
        by_label = torch.stack(
            [row[torch.randperm(count, generator=generator)] for row in by_label]
        )
        self.train, self.test = (
            part.flatten() for part in by_label.tensor_split([count * 4 // 5], dim=1)
        )

    def batch(self, examples: Int[Tensor, " examples"]) -> Batch:
        """Return the examples with these numbers, with each order of the leaves stored once."""
        key, order = examples % self.leaves + 1, examples // self.leaves
        used, row = order.unique(return_inverse=True)
        return Batch(key, self.orders[used], row, self.orders[order, key - 1])

    def features(
        self, examples: Int[Tensor, " examples"], key: str = "root"
    ) -> Int[Tensor, "examples nodes parts"]:
        """Return the features of every node, in the form that a general graph library needs.

        A node has (number, value), and the root has the key as its number. If `key` is
        "everywhere", a node has (number, value, key), so every node carries the key, and the root
        and inner nodes are (0, 0, key).
        """
        _check_key(key)
        batch = self.batch(examples)
        features = torch.zeros(
            len(examples), self.nodes, 2 if key == "root" else 3, dtype=torch.long
        )
        features[:, self.leaf_nodes, 0] = torch.arange(1, self.leaves + 1)
        features[:, self.leaf_nodes, 1] = batch.values[batch.row]
        if key == "root":
            features[:, 0, 0] = batch.key
        else:
            features[:, :, 2] = batch.key[:, None]
        return features


def _tree(depth: int) -> tuple[Int[Tensor, "2 edges"], Int[Tensor, " leaves"]]:
    edges, leaves, stack = [], [], [(0, depth)]
    while stack:
        node, height = stack.pop()
        if height == 0:
            leaves.append(node)
            continue
        left, right = node + 1, node + 2**height
        edges += [(left, node), (right, node)]
        stack += [(right, height - 1), (left, height - 1)]
    loops = [(node, node) for node in range(2 ** (depth + 1) - 1)]
    return torch.tensor(edges + loops).T.contiguous(), torch.tensor(leaves)
