"""Train five networks on Tree-NeighborsMatch, the over-squashing problem of Alon & Yahav (2021).

All trees of one depth have the same shape, and edges point from child to parent. The network's
answer is read only at the root, all inner nodes start equal, and only the root knows the question.
These facts save most of the work. The hidden state of a node depends only on the leaves below it. A
node of height h has no information about the leaves before layer h, and its state is not needed
after layer h + 1. Trees that differ only in the question share everything except their root.

`Network` computes only the states that matter, in dense arrays. Its outputs, gradients and batch
statistics equal those of the same model on the whole graph.
"""

from course.training.gnn.layers import GAT, GCN, GGNN, GIN, HEADS, LAYERS
from course.training.gnn.networks import (
    KINDS,
    Attention,
    Network,
    Star,
    WholeGraph,
    build,
    on_a_chain,
    on_a_star,
)
from course.training.gnn.task import (
    DEPTHS,
    KEYS,
    Batch,
    TreeNeighborsMatch,
    minimum_width,
    orderings,
)
from course.training.gnn.training import BATCH, Epoch, accuracy, fit, train

__all__ = [
    "BATCH",
    "DEPTHS",
    "GAT",
    "GCN",
    "GGNN",
    "GIN",
    "HEADS",
    "KEYS",
    "KINDS",
    "LAYERS",
    "Attention",
    "Batch",
    "Epoch",
    "Network",
    "Star",
    "TreeNeighborsMatch",
    "WholeGraph",
    "accuracy",
    "build",
    "fit",
    "minimum_width",
    "on_a_chain",
    "on_a_star",
    "orderings",
    "train",
]
