"""Build networks that try to solve Tree-NeighborsMatch, and an attention layer for comparison."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course.training.gnn.layers import GCN, HEADS, LAYERS, State, _glorot
from course.training.gnn.task import DEPTHS, Batch, TreeNeighborsMatch, _check_depth, _check_key
from helpers import require

STARS = {"star": (0, 3), "star, a layer more": (0, 4), "star, a relay": (1, 4)}  # relays and layers
KINDS = (*LAYERS, "attention", *STARS)


class _Forest(NamedTuple):
    """Hold the trees of a batch, in which examples with the same leaves share one copy of them.

    Each example has a separate root.

    Attributes:
        key: the key that each example asks for.
        row: for each example, which order of the leaves it has.
        orders: the number of orders of the leaves.
        place: for each leaf of each tree, its row in a table of all possible leaves, or `None` if
            the leaves are stored tree by tree.
    """

    key: Int[Tensor, " examples"]
    row: Int[Tensor, " examples"]
    orders: int
    place: Int[Tensor, "leaves orders"] | None

    def leaves(
        self, table: Float[Tensor, "leaves columns *channels"]
    ) -> Float[Tensor, "leaves orders *channels"]:
        """Return the leaves of every tree, looked up in the table if the trees share them."""
        if self.place is None:
            return table
        return (
            table.flatten(0, 1).index_select(0, self.place.flatten()).unflatten(0, self.place.shape)
        )


class Network(nn.Module):
    """Apply depth + 1 layers of one kind, and compute only the states on which the root depends.

    Layer l only changes what is read at heights l - 1 and l. Above these heights, all inner nodes
    are still equal, because no leaf has reached them yet. Such a node is a row of the `trunk`,
    which has one row per key (and key 0 for inner nodes). Below these heights, nothing is read any
    more, with two exceptions. A fully adjacent last layer reads all nodes (edges from all nodes to
    the root, as in the released code), and the batch normalisation of GIN needs them too. In both
    cases all heights are kept up to date.

    The states of one height have shape (nodes, orders, width), the states of the root (examples,
    width), and the trunk (keys, width). Nodes are in the order of their reversed bits, so that all
    left children come first and then their siblings. What siblings share can then be computed on
    two halves.

    With the key "everywhere", every node carries the key in a third embedding. Then no two examples
    share their leaves, and row k of the trunk is any inner node of a tree whose question is k.
    """

    def __init__(self, kind: str, depth: int, width: int, fully_adjacent: bool, key: str = "root"):
        super().__init__()
        self.depth, self.nodes = depth, 2 ** (depth + 1) - 1
        self.fully_adjacent, self.everywhere = fully_adjacent, key == "everywhere"
        size = 2**depth + 1
        self.keys, self.values = nn.Embedding(size, width), nn.Embedding(size, width)
        self.questions = nn.Embedding(size, width) if self.everywhere else None
        self.layers = nn.ModuleList(LAYERS[kind](width) for _ in range(depth + 1))
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) for _ in range((depth + 1) * LAYERS[kind].layer_norm)
        )
        self.readout = nn.Linear(width, size, bias=False)
        left_to_right = torch.arange(2**depth).view([2] * depth)
        self.register_buffer(
            "leaves", left_to_right.permute(*range(depth)[::-1]).flatten(), persistent=False
        )

    def forward(self, batch: Batch) -> Float[Tensor, "examples labels"]:
        """Return the logits (examples, labels) of the labels 0 to 2^depth.

        Label 0 never occurs. It is there because the released code has it too.
        """
        forest, states, trunk = (
            self._embed_everywhere(batch) if self.everywhere else self._embed(batch)
        )
        for number in range(1, self.depth + 1):
            states, trunk = self._layer(number, states, trunk, forest)
        return self.readout(self._last_layer(states, forest))

    def _embed(self, batch: Batch) -> tuple[_Forest, list[State], Float[Tensor, "keys width"]]:
        """Return the forest, its leaves and the trunk before the first layer.

        The leaves have shape (leaves, orders, width). If it is smaller, a table (leaves, values,
        width) of all possible leaves is returned instead.
        """
        keys, values = self.keys.weight, self.values.weight
        leaf_keys, held = keys[1 + self.leaves, None], batch.values.T.index_select(0, self.leaves)
        if len(self.leaves) < len(batch.values):
            leaves = leaf_keys + values[1:]
            place = torch.arange(len(held), device=held.device)[:, None] * len(held) + held - 1
        else:
            leaves, place = leaf_keys + F.embedding(held, values), None
        return _Forest(batch.key, batch.row, len(batch.values), place), [leaves], keys + values[0]

    def _embed_everywhere(
        self, batch: Batch
    ) -> tuple[_Forest, list[State], Float[Tensor, "keys width"]]:
        """Return the forest, its leaves and the trunk for trees in which every node knows the key.

        The leaves have shape (leaves, examples, width), because no two examples share them.
        """
        keys, values, questions = self.keys.weight, self.values.weight, self.questions.weight
        held = batch.values.T.index_select(0, self.leaves).index_select(1, batch.row)
        leaves = (
            keys[1 + self.leaves, None]
            + F.embedding(held, values)
            + F.embedding(batch.key, questions)
        )
        own_row = torch.arange(len(batch.key), device=batch.key.device)
        return (
            _Forest(batch.key, own_row, len(own_row), None),
            [leaves],
            keys[0] + values[0] + questions,
        )

    def _layer(
        self,
        number: int,
        states: list[State | None],
        trunk: Float[Tensor, "keys width"],
        forest: _Forest,
    ) -> tuple[list[State | None], Float[Tensor, "keys width"] | None]:
        """Return the states of each height and the trunk after layer `number` <= depth.

        States that are not read any more are `None`. At this layer, information from the leaves
        reaches the nodes of height `number` for the first time, so these nodes leave the trunk.
        """
        layer, below_root = self.layers[number - 1], number < self.depth
        states = [*states, self._leave(trunk, number, forest)]
        heights = range(
            0 if self.fully_adjacent or self._over_all(layer) else number - 1, number + 1
        )
        *messages, from_trunk = layer.messages([*states, trunk], _degrees(number + 2))
        old = [states[height] for height in heights]
        new = [self._receive(layer, states, messages, height, forest) for height in heights]
        if below_root:
            pair = (from_trunk if self.everywhere else from_trunk[:1]).expand(2, len(trunk), -1)
            old.append(trunk)
            new.append(layer.receive(trunk, from_trunk, pair.sum(0) if layer.additive else pair, 3))
        if layer.over_all:
            new = layer.mix(new, self._counts(number, new, forest) if self.training else None)
        new = [self._finish(number, x, before) for x, before in zip(new, old, strict=True)]
        trunk = new.pop() if below_root else None
        return [None] * heights.start + new, trunk

    def _last_layer(
        self, states: list[State | None], forest: _Forest
    ) -> Float[Tensor, "examples width"]:
        """Return the root's states after the last layer.

        The other nodes are only updated if the layer mixes all nodes, as batch normalisation does.
        """
        layer, root = self.layers[-1], self.depth
        others = range(root if self._over_all(layer) else 0)
        if self.fully_adjacent:
            messages = layer.messages(states, [1] * root + [self.nodes])
            new = [layer.receive(states[h], torch.zeros_like(states[h]), None, 1) for h in others]
            new.append(
                layer.receive(
                    states[root], messages[root], self._all(layer, messages, forest), self.nodes
                )
            )
        else:
            messages = layer.messages(states, _degrees(root + 1))
            new = [self._receive(layer, states, messages, h, forest) for h in (*others, root)]
        if layer.over_all:
            new = layer.mix(new, self._counts(root + 1, new, forest) if self.training else None)
        return self._finish(root + 1, new[-1], states[root])

    def _over_all(self, layer: nn.Module) -> bool:
        return layer.over_all and self.training

    def _leave(self, trunk: Float[Tensor, "keys width"], height: int, forest: _Forest) -> State:
        """Return the states of the nodes at this height in the shape that the trunk uses.

        The shape is (examples, width) for the root, and (1, orders or 1, width) for states that are
        the same for all nodes.
        """
        if height == self.depth:
            return trunk.index_select(0, forest.key)
        return trunk.index_select(0, forest.key)[None] if self.everywhere else trunk[:1, None]

    def _receive(
        self,
        layer: nn.Module,
        states: list[State | None],
        messages: list[Tensor | None],
        height: int,
        forest: _Forest,
    ) -> State:
        """Return the new states of this height, computed from the messages of the children.

        The layer gets the sum of the two children's messages, or both messages if it does not add
        them.
        """
        if height == 0:
            return layer.receive(states[0], messages[0], None, 1)
        below = forest.leaves(messages[0]) if height == 1 else messages[height - 1]
        pairs = below.unflatten(0, (2, -1))
        pairs = torch.add(*pairs) if layer.additive else pairs
        heard = pairs.squeeze(-3).index_select(-2, forest.row) if height == self.depth else pairs
        return layer.receive(states[height], messages[height], heard, 3)

    def _all(self, layer: nn.Module, messages: list[Tensor], forest: _Forest) -> Tensor:
        """Return what the root receives from all other nodes in a fully adjacent layer.

        The result is the sum of the messages if the layer adds them, and otherwise a tensor (nodes
        - 1, examples, channels).
        """
        others = torch.cat([forest.leaves(messages[0]), *messages[1 : self.depth]])
        others = others.sum(0) if layer.additive else others
        return others.index_select(-2, forest.row)

    def _finish(self, number: int, new: State, old: State) -> State:
        """Return the new states after the steps that the released code puts around a layer.

        The steps are an activation, a residual connection and layer normalisation, if the layer has
        them.
        """
        layer = self.layers[number - 1]
        new = F.relu(new) if layer.activation else new
        new = old + new if layer.residual else new
        return self.norms[number - 1](new) if layer.layer_norm else new

    def _counts(
        self, number: int, states: list[State], forest: _Forest
    ) -> list[Float[Tensor, " _"]]:
        """Count how many nodes of the batch each row of the states stands for.

        The rows are those of the leaves, the inner nodes, and the root or the trunk. Batch
        normalisation needs these counts as weights.
        """
        *inner, top = states[1:]
        orders = forest.row.bincount(minlength=forest.orders).to(top.dtype)
        leaves = orders.expand(len(self.leaves), -1)
        if forest.place is not None:
            leaves = (
                forest.place.flatten().bincount(leaves.flatten(), len(self.leaves) ** 2).to(orders)
            )
        counts = [leaves, *(orders.expand(len(x), -1) for x in inner)]
        if number >= self.depth:
            return [
                count.flatten()
                for count in (*counts, torch.ones_like(forest.key, dtype=orders.dtype))
            ]
        trunk, above = (
            forest.key.bincount(minlength=len(top)).to(orders),
            2 ** (self.depth - number) - 1,
        )
        if self.everywhere:
            trunk *= above
        else:
            trunk[0] = len(forest.key) * (above - 1)
        return [count.flatten() for count in (*counts, trunk)]


def _degrees(heights: int) -> list[int]:
    """Return the in-degrees, including the loop, for each height from the leaves up."""
    return [1] + [3] * (heights - 1)


class WholeGraph(nn.Module):
    """Apply the GCN of `Network` to all nodes of any graph, and read the answer at node 0.

    This class computes every node, as a general library does. It is the baseline for speed, and we
    also use it for chains, which `Network` does not cover. It accepts the `state_dict()` of a GCN's
    `Network`.

    Args:
        edges: source and target of each edge, (2, edges), with one loop per node.
        size: the number of rows of the embeddings and of the readout.
    """

    def __init__(self, edges: Int[Tensor, "2 edges"], layers: int, size: int, width: int = 32):
        super().__init__()
        self.keys, self.values = nn.Embedding(size, width), nn.Embedding(size, width)
        self.layers = nn.ModuleList(GCN(width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.readout = nn.Linear(width, size, bias=False)
        degree = edges[1].bincount()
        scale = (degree[edges[0]] * degree[edges[1]]).rsqrt()[:, None]
        for name, value in (("source", edges[0]), ("target", edges[1]), ("scale", scale)):
            self.register_buffer(name, value, persistent=False)

    def forward(
        self, features: Int[Tensor, "examples nodes 2"]
    ) -> Float[Tensor, "examples labels"]:
        x = self.keys(features[..., 0]) + self.values(features[..., 1])
        for layer, norm in zip(self.layers, self.norms, strict=True):
            messages = (x @ layer.weight)[:, self.source] * self.scale
            heard = torch.zeros_like(x).index_add(1, self.target, messages)
            x = norm(x + F.relu(heard + layer.bias))
        return self.readout(x[:, 0])


def on_a_chain(task: TreeNeighborsMatch, length: int) -> tuple[Tensor, Tensor]:
    """Build all examples and the edges of a task whose question is `length` hops above the tree.

    The chain is the control of Alon & Yahav (2021). The distance to the leaves grows, but their
    number stays the same. So we can separate the effect of distance from the effect of the number
    of messages.

    >>> features, edges = on_a_chain(TreeNeighborsMatch(2), 3)
    >>> features.shape, edges.shape
    (torch.Size([96, 10, 2]), torch.Size([2, 19]))
    """
    require.instance("task", task, TreeNeighborsMatch, "a TreeNeighborsMatch")
    require.integer("length", length, 0)
    tree = task.features(torch.arange(len(task.orders) * task.leaves))
    features = torch.cat([torch.zeros_like(tree[:, :1]).expand(-1, length, -1), tree], dim=1)
    features[:, length, 0] = 0
    features[:, 0, 0] = tree[:, 0, 0]
    chain = torch.arange(length)
    edges = [torch.stack([chain + 1, chain]), task.edges + length, torch.stack([chain, chain])]
    return features, torch.cat(edges, dim=1)


def on_a_star(task: TreeNeighborsMatch, relays: int = 0) -> tuple[Tensor, Tensor]:
    """Build all examples and the edges of a task whose leaves are all attached to one hub.

    The root reads the hub directly or through a chain of relays. This is the other half of the
    control, because the number of leaves grows while their distance stays at 2 + `relays` hops.
    Node 0 is the root, the relays follow, and then comes the hub.

    >>> features, edges = on_a_star(TreeNeighborsMatch(3))
    >>> features.shape, edges.shape
    (torch.Size([8000, 10, 2]), torch.Size([2, 19]))
    """
    require.instance("task", task, TreeNeighborsMatch, "a TreeNeighborsMatch")
    hub = require.integer("relays", relays, 0) + 1
    tree = task.features(torch.arange(len(task.orders) * task.leaves))
    inner = torch.zeros_like(tree[:, :1]).expand(-1, hub, -1)
    features = torch.cat([tree[:, :1], inner, tree[:, task.leaf_nodes]], dim=1)
    leaves, loops, chain = (
        torch.arange(task.leaves) + hub + 1,
        torch.arange(task.leaves + hub + 1),
        torch.arange(hub),
    )
    ends = torch.cat([chain + 1, leaves, loops]), torch.cat([chain, leaves * 0 + hub, loops])
    return features, torch.stack(ends)


class Star(WholeGraph):
    """Apply a GCN to a tree's leaves under one hub, to separate distance from shape.

    The graph is that of `on_a_star`, and the input is a `Batch`, as for `Network`.
    """

    def __init__(self, depth: int, width: int, relays: int = 0, layers: int = 3):
        super().__init__(
            on_a_star(TreeNeighborsMatch(depth), relays)[1], layers, 2**depth + 1, width
        )
        self.inner = relays + 1

    def forward(self, batch: Batch) -> Float[Tensor, "examples labels"]:
        held = batch.values[batch.row]
        numbers = torch.arange(1, held.shape[1] + 1, device=held.device).expand_as(held)
        root, inner = (
            torch.stack([batch.key, batch.key * 0], -1)[:, None],
            torch.zeros_like(held)[:, :1, None],
        )
        features = torch.cat(
            [root, inner.expand(-1, self.inner, 2), torch.stack([numbers, held], -1)], dim=1
        )
        return super().forward(features)


class Attention(nn.Module):
    """Apply one dot-product attention from the root to the leaves.

    The result is root + softmax(q K^T / sqrt(width)) V. Keys and values are linear in the
    embeddings. So a score is the sum of one term for the leaf's number and one term for the leaf's
    value, and we never need the hidden state of a leaf.
    """

    def __init__(self, depth: int, width: int):
        super().__init__()
        size = 2**depth + 1
        self.keys, self.values = nn.Embedding(size, width), nn.Embedding(size, width)
        self.query, self.key, self.value = (_glorot(width, width) for _ in range(3))
        self.readout = nn.Linear(width, size, bias=False)

    def forward(self, batch: Batch) -> Float[Tensor, "examples labels"]:
        keys, values = self.keys.weight, self.values.weight
        root = (keys + values[0])[batch.key]
        query = root @ self.query / math.sqrt(root.shape[1])
        held = batch.values[batch.row]
        by_number, by_value = (query @ (table @ self.key).T for table in (keys[1:], values))
        attention = (by_number + by_value.gather(1, held)).softmax(-1)
        on_values = torch.zeros_like(by_value).scatter(1, held, attention)
        return self.readout(root + (attention @ keys[1:] + on_values @ values) @ self.value)


def build(
    kind: str, depth: int, width: int = 32, fully_adjacent: bool = False, key: str = "root"
) -> Network | Attention | Star:
    """Build an untrained network for Tree-NeighborsMatch with trees of this depth.

    Calling `network(batch)` returns logits with shape (examples, 2^depth + 1).

    Args:
        kind: "gcn", "gin", "gat" or "ggnn" have depth + 1 layers, as in the released code.
            "attention" is one layer from the root to the leaves. "star" is a GCN of three layers
            with all leaves under one hub, two hops from the root. "star, a layer more" has a fourth
            layer, and "star, a relay" also puts the hub one hop farther from the root.
        fully_adjacent: let the last layer receive messages from all nodes instead of the children.
            Not for "attention" and the stars.
        key: which nodes know the question. With "root", only the root does, as in the released
            code. With "everywhere", all nodes do, so that only the answer must travel. Not for
            "attention" and the stars.

    Raises:
        ValueError: if the kind or key is unknown, the depth is outside 2 to 8, the width is not
            positive (for "gat", not a multiple of 4), or an "attention" or "star" is fully adjacent
            or has the key everywhere.

    >>> task, network = TreeNeighborsMatch(2), build("gcn", 2)
    >>> network(task.batch(task.train[:10])).shape
    torch.Size([10, 5])
    """
    require.choice("kind", kind, KINDS)
    require.flag("fully_adjacent", fully_adjacent)
    _check_depth(depth, DEPTHS)
    _check_key(key)
    step = HEADS if kind == "gat" else 1
    if require.integer("width", width, 1, 100_000) % step:
        raise ValueError(f"width must be a multiple of {step} for {kind!r}, not {width!r}")
    if kind in LAYERS:
        return Network(kind, depth, width, fully_adjacent, key)
    if fully_adjacent:
        raise ValueError(
            f"fully_adjacent must be False for kind {kind!r}, because it is not a tree"
        )
    if key != "root":
        raise ValueError(
            f"key must be 'root' for kind {kind!r}, because only its root has a question"
        )
    return Attention(depth, width) if kind == "attention" else Star(depth, width, *STARS[kind])
