"""Tree-NeighborsMatch, the problem of Alon & Yahav (2021), and five networks that try to solve it.

All trees of one depth share one topology, edges point from child to parent, only the root is read, inner
nodes start equal and only the root sees the question. So a state is a function of the leaves below it, a
node of height h knows nothing before layer h and is not read after layer h + 1, and trees that differ in
the question alone share everything but their root. `Network` computes just those states, in dense arrays,
and is equal to the same model on the whole graph: outputs, gradients and batch statistics.
"""

import argparse
import csv
import datetime
import io
import itertools
import math
import os
import platform
import random
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from helpers import compute

DEPTHS = range(2, 9)
KINDS = ("gcn", "gin", "gat", "ggnn", "attention")
BATCH = {2: 64, 3: 64, 4: 1024, 5: 1024, 6: 1024, 7: 2048, 8: 2048}
HEADS = 4


def _check_depth(depth: int, allowed: range) -> None:
    if isinstance(depth, bool) or not isinstance(depth, int) or depth not in allowed:
        raise ValueError(f"depth must be an integer from {allowed[0]} to {allowed[-1]}, not {depth!r}")


def orderings(depth: int) -> int:
    """How many messages the root must tell apart: (2^r)! / 2^(2^r - 1), r the depth. It is odd.

    The left side of Eq. 5 of Alon & Yahav (2021): orders of the leaves, up to swapping siblings.

    Raises:
        ValueError: depth is not an integer from 1 to 16.
    """
    _check_depth(depth, range(1, 17))
    leaves = 2**depth
    return math.factorial(leaves) >> (leaves - 1)


def minimum_width(depth: int, bits: int = 32) -> int:
    """Smallest width d with 2^(bits d) > (2^depth)! / 2^(2^depth - 1), in exact integers.

    Eq. 5 of Alon & Yahav (2021): fewer numbers of `bits` bits cannot hold what one state must hold. It
    counts every order of the leaves; the released training sets hold at most 1000, so it does not bind on
    training accuracy.

    Raises:
        ValueError: depth is not an integer from 1 to 16, or bits is not a positive integer.
    """
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 1:
        raise ValueError(f"bits must be a positive integer, not {bits!r}")
    return -(-orderings(depth).bit_length() // bits)


class Batch(NamedTuple):
    """Examples, with the leaves they share written once: example b asks `key[b]` of `values[row[b]]`."""

    key: Int[Tensor, " examples"]
    values: Int[Tensor, "orders leaves"]
    row: Int[Tensor, " examples"]
    label: Int[Tensor, " examples"]

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(part.to(device) for part in self))


class TreeNeighborsMatch:
    """The dataset of Alon & Yahav (2021), section 4.1, as their code generates it.

    A complete binary tree of `depth` levels below the root. The i-th leaf (from 1) carries (i, a value);
    the root carries (key, 0), inner nodes (0, 0). The label is the value of the leaf whose number is the
    key. Example e is order `e // leaves` of the leaves, asked for key `e % leaves + 1`. Chance is 1 /
    leaves.

    The orders are those of the released code at its seed, 11; the 80/20 split is stratified by label like
    theirs but drawn by another generator.

    Attributes:
        nodes, leaves: 2^(depth + 1) - 1 and 2^depth.
        edges: (2, 2 nodes - 1), child to parent, then one loop a node; numbers in depth-first pre-order,
        root 0.
        leaf_nodes: (leaves,), the numbers of the leaves from left to right.
        orders: (orders, leaves), values 1..leaves.
        train, test: example numbers.

    Raises:
        ValueError: depth is not an integer from 2 to 8.
    """

    def __init__(self, depth: int, seed: int = 11):
        _check_depth(depth, DEPTHS)
        self.depth, self.leaves, self.nodes = depth, 2**depth, 2 ** (depth + 1) - 1
        self.edges, self.leaf_nodes = _tree(depth)
        count = min(1000, math.factorial(self.leaves), 32000 // self.leaves if depth > 3 else 1000)
        if depth > 3:
            state = np.random.RandomState(seed)
            orders = [state.permutation(range(1, self.leaves + 1)) for _ in range(count)]
        else:
            orders = random.Random(seed).sample([*itertools.permutations(range(1, self.leaves + 1))], count)
        self.orders = torch.as_tensor(np.array(orders))
        examples = torch.arange(count * self.leaves)
        by_label = examples[self.batch(examples).label.argsort(stable=True)].view(self.leaves, count)
        generator = torch.Generator().manual_seed(seed)
        by_label = torch.stack([row[torch.randperm(count, generator=generator)] for row in by_label])
        self.train, self.test = (part.flatten() for part in by_label.tensor_split([count * 4 // 5], dim=1))

    def batch(self, examples: Int[Tensor, " examples"]) -> Batch:
        """The examples with these numbers, each order of the leaves written once."""
        key, order = examples % self.leaves + 1, examples // self.leaves
        used, row = order.unique(return_inverse=True)
        return Batch(key, self.orders[used], row, self.orders[order, key - 1])

    def features(self, examples: Int[Tensor, " examples"]) -> Int[Tensor, "examples nodes 2"]:
        """The (key, value) of every node: what a general graph library reads."""
        batch = self.batch(examples)
        features = torch.zeros(len(examples), self.nodes, 2, dtype=torch.long)
        features[:, 0, 0] = batch.key
        features[:, self.leaf_nodes, 0] = torch.arange(1, self.leaves + 1)
        features[:, self.leaf_nodes, 1] = batch.values[batch.row]
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


def _glorot(*shape: int) -> nn.Parameter:
    bound = math.sqrt(6 / (shape[-1] + shape[-2]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class GCN(nn.Module):
    """x_i' = b + sum_j x_j W / sqrt(deg_i deg_j), over the children j and i itself (Kipf & Welling, 2017).

    `deg` counts incoming edges and the loop. Messages are in units of 1 / sqrt(3), so that those of inner
    nodes, of in-degree 3, need no scaling.
    """

    additive, activation, residual, layer_norm = True, True, True, True

    def __init__(self, width: int):
        super().__init__()
        self.weight, self.bias = _glorot(width, width), nn.Parameter(torch.zeros(width))

    def messages(self, states: list, degrees: list) -> list:
        pairs = zip(states, degrees, strict=True)
        return [x if x is None or degree == 3 else x * math.sqrt(3 / degree) for x, degree in pairs]

    def receive(self, own: Tensor, loop: Tensor, heard: Tensor | None, degree: int) -> Tensor:
        return F.linear(_sum(loop, heard), self.weight.T / math.sqrt(3 * degree), self.bias)


class GIN(nn.Module):
    """x_i' = MLP(x_i + x_i + sum_j x_j) (Xu et al., 2019); the second x_i is the data's loop.

    The MLP is the released one: twice linear, batch normalisation, ReLU. Its statistics run over every node
    of every tree, so in training all states must be known, not only those that reach the root. At depth 5
    and batch 1024 these are 110 000 rows a step, against 41 000 for the other kinds and 387 000 for all
    nodes: the cost of batch normalisation on a tree.
    """

    additive, activation, residual, layer_norm = True, False, True, True

    def __init__(self, width: int):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.batch_norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(2))

    def messages(self, states: list, degrees: list) -> list:
        return states

    def receive(self, own: Tensor, loop: Tensor, heard: Tensor | None, degree: int) -> Tensor:
        return own + _sum(loop, heard)

    def mlp(self, x: Float[Tensor, "*rows width"], count: Float[Tensor, " rows"] | None = None) -> Tensor:
        """The MLP; in training row k stands for `count[k]` equal rows of the batch."""
        for linear, norm in zip(self.linears, self.batch_norms, strict=True):
            if not self.training:
                x = F.relu(norm(linear(x).flatten(0, -2)).view(x.shape))
                continue
            size = count.sum()
            parameters = (*linear.parameters(), *norm.parameters())
            x, mean, variance = _NormalisedLinear.apply(x, count / size, *parameters, norm.eps)
            with torch.no_grad():
                norm.num_batches_tracked += 1
                norm.running_mean.lerp_(mean, norm.momentum)
                norm.running_var.lerp_(variance * size / (size - 1), norm.momentum)
        return x


class _NormalisedLinear(torch.autograd.Function):
    """Linear, batch normalisation and ReLU where row k is `share[k]` of the batch; its mean and variance.

    In one function to work in place: what these layers cost is the memory they go through. The mean takes
    the bias away again, so the bias gets no gradient.
    """

    @staticmethod
    def forward(ctx, x, share, weight, bias, gain, shift, eps):
        hidden = x @ weight.T
        mean = share @ hidden
        hidden -= mean
        variance = share @ hidden.square()
        scale = (variance + eps).rsqrt()
        new = torch.addcmul(shift, hidden, scale * gain).relu_()
        ctx.save_for_backward(x, share, weight, gain, hidden, scale, new)
        mean = mean + bias
        ctx.mark_non_differentiable(mean, variance)
        return new, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, *_):
        x, share, weight, gain, hidden, scale, new = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward(grad, new, 0)
        by_shift, by_gain = grad.sum(0), (grad * hidden).sum(0) * scale
        grad -= torch.addcmul(by_shift, hidden, scale * by_gain).mul_(share[:, None])
        scale = (scale * gain)[:, None]
        return grad @ (scale * weight), None, scale * (grad.T @ x), torch.zeros_like(gain), by_gain, by_shift, None


class GAT(nn.Module):
    """x_i' = b + sum_j a_ij x_j W, a_ij = softmax_j LeakyReLU(s . x_j W + t . x_i W).

    Velickovic et al. (2018), four heads side by side. A message is, head by head, x W, s . x W and t . x W.
    """

    additive, activation, residual, layer_norm = False, False, True, True

    def __init__(self, width: int):
        super().__init__()
        self.weight, self.bias = _glorot(width, width), nn.Parameter(torch.zeros(width))
        self.source, self.target = _glorot(1, HEADS, width // HEADS), _glorot(1, HEADS, width // HEADS)

    def messages(self, states: list, degrees: list) -> list:
        weight = self.weight.unflatten(1, (HEADS, -1))
        scores = [(weight * x).sum(-1, keepdim=True) for x in (self.source, self.target)]
        weight = torch.cat([weight, *scores], dim=-1).flatten(1)
        return [x if x is None else x @ weight for x in states]

    def receive(self, own: Tensor, loop: Tensor, heard: Tensor | None, degree: int) -> Tensor:
        loop, bias = loop.unflatten(-1, (HEADS, -1)), self.bias.view(HEADS, -1)
        if heard is None:
            return (loop[..., :-2] + bias).flatten(-2)
        return _Attend.apply(loop, heard.unflatten(-1, (HEADS, -1)), bias).flatten(-2)


class _Attend(torch.autograd.Function):
    """b + sum_j a_j v_j, a = softmax_j LeakyReLU(s_j + t_0), of messages (v_j, s_j, t_j), the own one j = 0.

    With g the gradient, a_j gets g . v_j and v_j gets a_j g. In one function to work in place and to keep
    one a_j a head, not a copy for every channel.
    """

    @staticmethod
    def forward(ctx, own, heard, bias):
        sources = own[..., -2:-1].expand_as(heard[:1, ..., -1:]), heard[..., -2:-1]
        scores = F.leaky_relu_(torch.cat(sources).add_(own[..., -1:]), 0.2)
        attention = scores.softmax(0)
        ctx.save_for_backward(own, heard, scores, attention)
        total = torch.addcmul(bias, attention[0], own[..., :-2])
        for weight, message in zip(attention[1:], heard, strict=True):
            total.addcmul_(weight, message[..., :-2])
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        own, heard, scores, attention = ctx.saved_tensors
        by_attention = [(grad * x[..., :-2]).sum(-1, keepdim=True) for x in (own[None], heard)]
        by_scores = torch.cat(by_attention).mul_(attention)
        by_scores.addcmul_(attention, by_scores.sum(0), value=-1)
        by_scores = torch.ops.aten.leaky_relu_backward(by_scores, scores, 0.2, True)
        by_own, by_heard = grad.new_empty(heard.shape[1:]), torch.empty_like(heard)
        for new, weight, by_score in ((by_own, attention[0], by_scores[0]), (by_heard, attention[1:], by_scores[1:])):
            torch.mul(grad, weight, out=new[..., :-2])
            new[..., -2:-1] = by_score
        by_own[..., -1:] = by_scores.sum(0)
        by_heard[..., -1:] = 0
        return by_own.sum_to_size(own.shape), by_heard, grad.sum_to_size(grad.shape[-2:])


class GGNN(nn.Module):
    """x_i' = GRU(x_i W + sum_j x_j W, x_i) (Li et al., 2016)."""

    additive, activation, residual, layer_norm = True, False, False, False

    def __init__(self, width: int):
        super().__init__()
        bound = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(width, width).uniform_(-bound, bound))
        self.gru = nn.GRUCell(width, width)

    def messages(self, states: list, degrees: list) -> list:
        return states

    def receive(self, own: Tensor, loop: Tensor, heard: Tensor | None, degree: int) -> Tensor:
        gru, heard = self.gru, _sum(loop, heard)
        to_gates, own_to_gates = (gru.weight_ih @ self.weight.T).chunk(3), gru.weight_hh.chunk(3)
        bias, own_bias = gru.bias_ih.chunk(3), gru.bias_hh.chunk(3)
        reset, update = (
            torch.sigmoid(heard @ to_gates[k].T + F.linear(own, own_to_gates[k], bias[k] + own_bias[k]))
            for k in range(2)
        )
        new = F.linear(heard, to_gates[2], bias[2]) + reset * F.linear(own, own_to_gates[2], own_bias[2])
        return torch.lerp(torch.tanh(new), own, update)


def _sum(loop: Tensor, heard: Tensor | None) -> Tensor:
    return loop if heard is None else loop + heard


def _on_trees(leaves: Tensor, place: Tensor | None) -> Tensor:
    """The leaves of every tree, out of a table of all that there can be."""
    if place is None:
        return leaves
    return leaves.flatten(0, 1).index_select(0, place.flatten()).unflatten(0, place.shape)


LAYERS = {"gcn": GCN, "gin": GIN, "gat": GAT, "ggnn": GGNN}


class Network(nn.Module):
    """depth + 1 layers of one kind and a linear readout of the root, computing only what the root depends on.

    Layer l changes what is read at heights l - 1 and l only. Above, all inner nodes are still equal, and a
    node whose leaves are still unheard is a row of the `trunk`, which has one row a key (0 for inner
    nodes). Below, nothing is read any more, except by a fully adjacent last layer (edges from all nodes to
    the root, as in the released code) and by the batch normalisation of GIN: then all heights are kept up
    to date.

    States of one height are (nodes, orders, width). Nodes are in the order of their reversed bits, so that
    left children come first, then their siblings: what siblings share is computed on two halves.
    """

    def __init__(self, kind: str, depth: int, width: int, fully_adjacent: bool):
        super().__init__()
        self.depth, self.nodes, self.fully_adjacent = depth, 2 ** (depth + 1) - 1, fully_adjacent
        size = 2**depth + 1
        self.keys, self.values = nn.Embedding(size, width), nn.Embedding(size, width)
        self.layers = nn.ModuleList(LAYERS[kind](width) for _ in range(depth + 1))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range((depth + 1) * LAYERS[kind].layer_norm))
        self.readout = nn.Linear(width, size, bias=False)
        left_to_right = torch.arange(2**depth).view([2] * depth)
        self.register_buffer("leaves", left_to_right.permute(*range(depth)[::-1]).flatten(), persistent=False)

    def forward(self, batch: Batch) -> Float[Tensor, "examples labels"]:
        """Logits of the labels 0..2^depth (0 never occurs, as in the released code)."""
        keys, values = self.keys.weight, self.values.weight
        trunk, leaf_keys = keys + values[0], keys[1 + self.leaves, None]
        held = batch.values.T.index_select(0, self.leaves)
        if len(self.leaves) < len(batch.values):
            states = [leaf_keys + values[1:]]
            place = torch.arange(len(held), device=held.device)[:, None] * len(held) + held - 1
        else:
            states, place = [leaf_keys + F.embedding(held, values)], None
        for number in range(1, self.depth + 2):
            trunk, states = self._layer(number, trunk, states, batch, place)
        return self.readout(states[-1])

    def _layer(self, number: int, trunk: Tensor, states: list, batch: Batch, place: Tensor | None):
        """The trunk and the states by height after layer `number`, None where they are not read any more."""
        layer, star = self.layers[number - 1], self.fully_adjacent and number > self.depth
        counted = isinstance(layer, GIN) and self.training
        own = list(states)
        if number == self.depth:
            own.append(trunk.index_select(0, batch.key))
        elif number < self.depth:
            own.append(trunk[:1, None])
        heights = range(0 if counted or (self.fully_adjacent and not star) else number - 1, len(own))
        degrees = [self._degree(height, star) for height in range(len(own))]
        *messages, trunk_message = layer.messages([*own, trunk], [*degrees, 3])
        if star:
            heard = self._all(layer, messages, batch.row, place)
            new = [layer.receive(x, torch.zeros_like(x), None, 1) for x in own[:-1]] if counted else []
            new.append(layer.receive(own[-1], messages[-1], heard, self.nodes))
        else:
            heard = [self._children(layer, messages, height, batch.row, place) for height in heights]
            pairs = zip(heights, heard, strict=True)
            new = [layer.receive(own[h], messages[h], pair, degrees[h]) for h, pair in pairs]
        old = [own[height] for height in heights]
        if number < self.depth:
            pair = trunk_message[:1].expand(2, len(trunk), -1)
            pair = pair.sum(0) if layer.additive else pair
            new.append(layer.receive(trunk, trunk_message, pair, 3))
            old.append(trunk)
        new = self._mlp(layer, new, number, batch, place) if isinstance(layer, GIN) else new
        if number > self.depth:  # nothing reads the others any more
            new, old, heights = new[-1:], old[-1:], range(self.depth, self.depth + 1)
        new = [self._finish(layer, number, x, before) for x, before in zip(new, old, strict=True)]
        trunk = new.pop() if number < self.depth else None
        return trunk, [None] * heights.start + new

    def _children(self, layer: nn.Module, messages: list, height: int, row: Tensor, place: Tensor | None):
        """What nodes of this height hear: the sum of their children's messages, or both if it is no sum."""
        if height == 0:
            return None
        below = messages[height - 1]
        if height == 1:
            below = _on_trees(below, place)
        pairs = below.unflatten(0, (2, -1))
        pairs = torch.add(*pairs) if layer.additive else pairs
        return pairs.squeeze(-3).index_select(-2, row) if height == self.depth else pairs

    def _all(self, layer: nn.Module, messages: list, row: Tensor, place: Tensor | None):
        """What the root hears in a fully adjacent layer: all other nodes, summed or not as in `_children`."""
        others = torch.cat([_on_trees(messages[0], place), *messages[1 : self.depth]])
        others = others.sum(0) if layer.additive else others
        return others.index_select(-2, row)

    def _finish(self, layer: nn.Module, number: int, new: Tensor, old: Tensor) -> Tensor:
        new = F.relu(new) if layer.activation else new
        new = old + new if layer.residual else new
        return self.norms[number - 1](new) if layer.layer_norm else new

    def _mlp(self, layer: GIN, states: list, number: int, batch: Batch, place: Tensor | None) -> list:
        if not self.training:
            return [layer.mlp(x) for x in states]
        orders = batch.row.bincount(minlength=len(batch.values)).to(states[0].dtype)
        leaves = orders.expand(len(self.leaves), -1)
        if place is not None:
            leaves = place.flatten().bincount(leaves.flatten(), len(self.leaves) ** 2).to(orders)
        inner = states[1 : min(number + 1, self.depth)]
        counts = [leaves, *(orders.expand(len(x), -1) for x in inner)]
        if number < self.depth:
            trunk = batch.key.bincount(minlength=len(states[-1])).to(orders)
            trunk[0] = len(batch.key) * (2 ** (self.depth - number) - 2)
            counts.append(trunk)
        else:
            counts.append(torch.ones_like(batch.key, dtype=orders.dtype))
        rows = [x.flatten(0, -2) for x in states]
        after = layer.mlp(torch.cat(rows), torch.cat([count.flatten() for count in counts]))
        return [x.view(old.shape) for x, old in zip(after.split([*map(len, rows)]), states, strict=True)]

    def _degree(self, height: int, star: bool) -> int:
        if star:
            return self.nodes if height == self.depth else 1
        return 1 if height == 0 else 3


class WholeGraph(nn.Module):
    """The GCN of `Network` on all nodes of any graph, as a general library computes it; node 0 is read.

    The baseline for speed, and what chains need. It takes a GCN's `Network.state_dict()`.

    Args:
        edges: (2, edges), source and target, with one loop a node.
        size: rows of the embeddings and of the readout.
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

    def forward(self, features: Int[Tensor, "examples nodes 2"]) -> Float[Tensor, "examples labels"]:
        x = self.keys(features[..., 0]) + self.values(features[..., 1])
        for layer, norm in zip(self.layers, self.norms, strict=True):
            messages = (x @ layer.weight)[:, self.source] * self.scale
            heard = torch.zeros_like(x).index_add(1, self.target, messages)
            x = norm(x + F.relu(heard + layer.bias))
        return self.readout(x[:, 0])


def on_a_chain(task: TreeNeighborsMatch, length: int) -> tuple[Tensor, Tensor]:
    """All examples of a task and its edges with the question `length` hops above the root of the tree.

    The control of Alon & Yahav (2021): the leaves get farther away, their number stays.

    Raises:
        ValueError: length is negative.
    """
    if length < 0:
        raise ValueError(f"length must not be negative, it is {length}")
    tree = task.features(torch.arange(len(task.orders) * task.leaves))
    features = torch.cat([torch.zeros_like(tree[:, :1]).expand(-1, length, -1), tree], dim=1)
    features[:, length, 0] = 0
    features[:, 0, 0] = tree[:, 0, 0]
    chain = torch.arange(length)
    edges = [torch.stack([chain + 1, chain]), task.edges + length, torch.stack([chain, chain])]
    return features, torch.cat(edges, dim=1)


class Attention(nn.Module):
    """One dot-product attention from the root to the leaves: root + softmax(q K^T / sqrt(width)) V.

    Keys and values are linear in the embeddings, so no leaf's state is ever formed: a score is the sum of
    one by the leaf's number and one by its value.
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


def build(kind: str, depth: int, width: int = 32, fully_adjacent: bool = False) -> nn.Module:
    """An untrained network for trees of this depth: `network(batch)` gives logits, (examples, 2^depth + 1).

    Args:
        kind: "gcn", "gin", "gat", "ggnn" (depth + 1 layers, as released) or "attention" (one layer, root to
        leaves).
        fully_adjacent: the last layer hears all nodes instead of the children; not for "attention".

    Raises:
        ValueError: an unknown kind, a depth outside 2..8, a width that is not positive (for "gat": a
            multiple of 4), or a fully adjacent "attention".
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    _check_depth(depth, DEPTHS)
    step = HEADS if kind == "gat" else 1
    if isinstance(width, bool) or not isinstance(width, int) or width < 1 or width % step:
        raise ValueError(f"width must be a positive multiple of {step} for {kind!r}, not {width!r}")
    if kind == "attention" and fully_adjacent:
        raise ValueError("fully_adjacent must be False for kind 'attention': its root hears all leaves")
    return Attention(depth, width) if kind == "attention" else Network(kind, depth, width, fully_adjacent)


class Epoch(NamedTuple):
    """One pass over the training set: loss and train accuracy on the way, as released; then test accuracy."""

    epoch: int
    seconds: float
    loss: float
    train_accuracy: float
    test_accuracy: float


def accuracy(network: nn.Module, task: TreeNeighborsMatch, examples: Int[Tensor, " examples"]) -> float:
    """Share of these examples that the network, in evaluation mode, answers correctly."""
    training, device = network.training, network.readout.weight.device
    network.eval()
    with torch.no_grad():
        batches = [task.batch(part).to(device) for part in examples.split(4096)]
        correct = sum((network(batch).argmax(1) == batch.label).sum().item() for batch in batches)
    network.train(training)
    return correct / len(examples)


def train(
    network: nn.Module,
    task: TreeNeighborsMatch,
    seconds: float = math.inf,
    epochs: int = 50_000,
    seed: int = 0,
) -> Iterator[Epoch]:
    """Train as released and yield every epoch: `pandas.DataFrame(train(network, task, seconds=60))`.

    Adam at 1e-3, batches of `BATCH[depth]`; every 100 epochs (1000 at depth 2) the mean training accuracy
    since decides whether the rate is halved (10 times no better) or training ends (20 times). It ends too
    after an epoch without an error and at the first epoch past `seconds` or `epochs`. Effective batches of
    2048 are taken whole, where the released scripts accumulate gradients over parts: the same but for GIN's
    batch statistics.

    Raises:
        ValueError: epochs or seconds is not positive, or the network was built for another depth.
    """
    for name, value in (("seconds", seconds), ("epochs", epochs)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, not {value!r}")
    if network.readout.out_features != task.leaves + 1:
        raise ValueError(f"network must be built for depth {task.depth}, the depth of the task")
    return _epochs(network, task, seconds, epochs, torch.Generator().manual_seed(seed))


def _epochs(network, task, seconds, epochs, generator) -> Iterator[Epoch]:
    device = network.readout.weight.device
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=device.type in ("cpu", "cuda"))
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", 0.5, 10, threshold_mode="abs")
    period, recent, best, waited = 1000 if task.depth == 2 else 100, [], 0.0, 0
    start = time.perf_counter()
    for number in compute.progress(range(1, epochs + 1), f"depth {task.depth}"):
        network.train()
        order = task.train[torch.randperm(len(task.train), generator=generator)]
        total, correct = 0.0, 0
        for examples in order.split(BATCH[task.depth]):
            batch = task.batch(examples).to(device)
            logits = network(batch)
            loss = F.cross_entropy(logits, batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(examples)
            correct += (logits.detach().argmax(1) == batch.label).sum()
        recent.append(float(correct) / len(order))
        elapsed = time.perf_counter() - start
        test = accuracy(network, task, task.test)
        yield Epoch(number, elapsed, float(total) / len(order), recent[-1], test)
        if recent[-1] == 1 or elapsed > seconds:
            return
        if len(recent) == period:
            mean, recent = sum(recent) / period, []
            scheduler.step(mean)
            best, waited = (mean, 0) if mean > best + 1e-4 else (best, waited + 1)
            if waited == 20:
                return


def _row(kind: str, depth: int, seed: int, options: argparse.Namespace) -> dict:
    """Train one network and describe how it ended."""
    compute.seed(seed)
    task = TreeNeighborsMatch(depth)
    network = build(kind, depth, options.width, options.fully_adjacent).to(options.device)
    budget = 60 * options.minutes_per_run
    run = list(train(network, task, budget, seed=seed))
    last, best = run[-1], max(epoch.train_accuracy for epoch in run)
    return {
        "best_train_accuracy": f"{best:.4f}",
        "end_train_accuracy": f"{accuracy(network, task, task.train):.4f}",
        "end_test_accuracy": f"{last.test_accuracy:.4f}",
        "chance": f"{1 / task.leaves:.4f}",
        "epochs": last.epoch,
        "seconds": f"{last.seconds:.1f}",
        "ended": "fitted" if last.train_accuracy == 1 else "budget" if last.seconds > budget else "stalled",
        "device": torch.cuda.get_device_name() if options.device == "cuda" else options.device,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _write(path: Path, header: list[str], rows: list[dict]) -> None:
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in header)
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text.getvalue())
    os.replace(part, path)


def main(arguments: list[str] | None = None) -> None:
    """Fill a table of training runs, one row a run; rows that are there already are not run again."""
    parser = argparse.ArgumentParser(prog="python -m helpers.gnn", description=main.__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[*DEPTHS], choices=DEPTHS)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS], choices=KINDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--fully-adjacent", action="store_true")
    parser.add_argument("--minutes-per-run", type=float, default=1)
    parser.add_argument("--threads", type=int, default=1, help="more than one is slower for the small trees")
    parser.add_argument("--device", default=compute.device().type)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    lines = options.out.read_text().splitlines() if options.out.is_file() else []
    header = [line[2:] for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    command = f"command: python -m helpers.gnn {shlex.join(arguments or sys.argv[1:])}"
    if command not in header:
        machine = torch.cuda.get_device_name() if options.device == "cuda" else f"{os.cpu_count()} CPU cores"
        versions = f"Python {platform.python_version()}, torch {torch.__version__}"
        header += [command, f"  {datetime.date.today()}, {machine}, {versions}"]
    wanted = itertools.product(options.seeds, options.depths, options.kinds)
    for seed, depth, kind in compute.progress([*wanted], "runs"):
        key = {"kind": kind, "depth": depth, "seed": seed, "width": options.width}
        key |= {"fully_adjacent": options.fully_adjacent, "minutes": options.minutes_per_run}
        key = {name: str(value) for name, value in key.items()}
        done = any(all(row[name] == value for name, value in key.items()) for row in rows)
        if done or (kind == "attention" and options.fully_adjacent):
            continue
        rows.append(key | _row(kind, depth, seed, options))
        _write(options.out, header, rows)


if __name__ == "__main__":
    main()
