"""Tree-NeighborsMatch, the problem of Alon & Yahav (2021), and five networks that try to solve it.

All trees of one depth share one topology, edges point from child to parent, only the root is read,
inner nodes start equal and only the root sees the question. So a state is a function of the leaves
below it, a node of height h knows nothing before layer h and is not read after layer h + 1, and
trees that differ in the question alone share everything but their root. `Network` computes just
those states, in dense arrays, and is equal to the same model on the whole graph: outputs, gradients
and batch statistics.
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
