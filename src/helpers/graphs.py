"""Build graphs, and measure how strongly they squeeze the messages that pass through them.

The measures are the norm of the Jacobian, an upper bound for this norm that counts walks, and the
effective resistance.

A graph is a connected, undirected `networkx.Graph` with at least two nodes and no self-loops. For
any other graph, every function raises a ValueError. Edge weights are ignored. Matrices and vectors
are in float64, and their entries follow the order of `graph.nodes`.
"""

import itertools
import math
from collections.abc import Callable, Hashable

import networkx as nx
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import require

_FAMILIES = ("path", "cycle", "tree", "barbell", "grid", "expander", "karate")
_NORMALISATIONS = ("none", "row", "symmetric")


def check(graph: nx.Graph, name: str = "graph", **nodes: Hashable) -> None:
    """Raise ValueError for a graph or a node that the functions of this module cannot use.

    A graph must be undirected, connected and without self-loops, and it must contain the nodes.
    Pass each node as a keyword with the name of your own argument, so that the error message can
    mention the argument.

    Args:
        graph: the graph to check.
        name: the name of your argument that holds the graph.
        nodes: the nodes to check, keyed by the names of your arguments.

    >>> check(nx.path_graph(3), target=3)
    Traceback (most recent call last):
    ValueError: target must be a node of the graph, not 3
    """
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise ValueError(f"{name} must be an undirected networkx.Graph, not {type(graph).__name__}")
    if len(graph) < 2:
        raise ValueError(f"{name} must have at least 2 nodes, not {len(graph)}")
    if loops := list(nx.nodes_with_selfloops(graph)):
        raise ValueError(f"{name} must have no self-loops, but there is one at {loops[0]!r}")
    if (parts := nx.number_connected_components(graph)) > 1:
        raise ValueError(f"{name} must be connected, but it has {parts} components")
    for called, node in nodes.items():
        if not isinstance(node, Hashable) or node not in graph:
            raise ValueError(f"{called} must be a node of the graph, not {require.brief(node)}")


_MOST = {
    "barbell": 2_000,
    "expander": 10_000,
}  # the largest number of nodes, for families whose edges or whose spectral gap take long


def family(name: str, nodes: int = 16, seed: int = 0) -> nx.Graph:
    """Build a graph of a named family with about `nodes` nodes, numbered from 0.

    Args:
        name: "path", "cycle", "tree" (binary), "barbell" (two cliques and a bridge), "grid"
            (square), "expander" (random, 4-regular, accepted only if its spectral gap is large
            enough) or "karate" (always 34 nodes).
        nodes: the number of nodes that you want. A barbell has this number rounded down to an even
            one, a grid has the nearest square number, and "karate" ignores the argument.

    Returns:
        A connected graph whose nodes are the integers from 0.

    >>> family("cycle", 8).number_of_edges()
    8
    """
    require.choice("name", name, _FAMILIES)
    require.integer("nodes", nodes, 6, _MOST.get(name, 100_000))
    seed = require.seed(seed)
    side = round(math.sqrt(nodes))
    make = {
        "path": lambda: nx.path_graph(nodes),
        "cycle": lambda: nx.cycle_graph(nodes),
        "tree": lambda: nx.full_rary_tree(2, nodes),
        "barbell": lambda: nx.barbell_graph(nodes // 2, 0),
        "grid": lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side)),
        "expander": lambda: nx.random_regular_expander_graph(nodes, 4, seed=seed),
        "karate": nx.karate_club_graph,
    }
    return make[name]()


def far_pair(graph: nx.Graph) -> tuple[Hashable, Hashable]:
    """Return two nodes that are as far apart as possible in the graph.

    If there are several such pairs, we return the first one in the order of `graph.nodes`.

    Args:
        graph: a graph with at least two nodes.

    Returns:
        The two nodes, at the largest distance in hops.

    >>> far_pair(nx.path_graph(4))
    (0, 3)
    """
    check(graph)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return max(itertools.combinations(graph, 2), key=lambda pair: lengths[pair[0]][pair[1]])


def adjacency(
    graph: nx.Graph, normalisation: str = "none", loops: bool = False
) -> Float[Tensor, "n n"]:
    """Return the adjacency matrix of a graph, optionally normalised, for use in a layer.

    A message-passing layer multiplies the features by this matrix. With the adjacency matrix A and
    the diagonal matrix D of the degrees, it is A ("none"), D^-1 A ("row") or D^-1/2 A D^-1/2
    ("symmetric"). If `loops` is true, every node gets a self-loop first, so A + I replaces A.

    Args:
        graph: a graph with n nodes.
        normalisation: "none", "row" or "symmetric".
        loops: whether every node gets a self-loop before the normalisation.

    Returns:
        The matrix, with rows and columns in the order of `graph.nodes`.

    >>> adjacency(nx.path_graph(3), "row").tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    check(graph)
    require.choice("normalisation", normalisation, _NORMALISATIONS)
    require.flag("loops", loops)
    matrix = torch.from_numpy(nx.to_numpy_array(graph, weight=None))
    if loops:
        matrix += torch.eye(len(matrix))
    degree = matrix.sum(1)
    if normalisation == "row":
        return matrix / degree[:, None]
    return matrix * torch.outer(degree, degree).rsqrt() if normalisation == "symmetric" else matrix


def orthogonal_weights(
    layers: int, width: int, seed: int = 0
) -> Float[Tensor, "layers 2 width width"]:
    """Draw random orthogonal weight matrices for `propagate`.

    Orthogonal matrices keep the length of every vector. If a message shrinks, the cause is
    therefore the graph or the activation and not the weights.

    Args:
        layers: the number of layers, each of which gets two matrices.
        width: the number of rows and columns of a matrix.
        seed: the seed of the random generator.

    Returns:
        One pair of matrices W_own and W_heard for each layer.

    >>> weights = orthogonal_weights(layers=2, width=3)
    >>> bool(torch.allclose(weights @ weights.mT, torch.eye(3).double()))
    True
    """
    require.integer("layers", layers, 1)
    require.integer("width", width, 1)
    generator = torch.Generator().manual_seed(require.seed(seed))
    return torch.linalg.qr(
        torch.randn(layers, 2, width, width, generator=generator, dtype=torch.float64)
    ).Q


def propagate(
    features: Float[Tensor, "n width"],
    matrix: Float[Tensor, "n n"],
    weights: Float[Tensor, "layers 2 width width"],
    self_weight: float = 1.0,
    activation: Callable[[Tensor], Tensor] = torch.relu,
    skip: bool = False,
) -> Float[Tensor, "n width"]:
    """Run message passing on node features and return the features after the last layer.

    In each layer the features H become activation(self_weight H W_own + matrix H W_heard), where
    W_own and W_heard are the layer's two weight matrices (Di Giovanni et al., 2023).

    Args:
        features: the features H of n nodes before the first layer.
        matrix: the matrix of the graph, as `adjacency` returns it.
        weights: W_own and W_heard of each layer.
        activation: a function that is applied to each entry.
        self_weight: the weight of a node's own state inside the activation, c_r in the paper.
        skip: whether to add H outside the activation, as a residual network does.

    Returns:
        The features of each node after the last layer.

    >>> graph, weights = nx.path_graph(3), torch.eye(1).double().expand(2, 2, 1, 1)
    >>> propagate(torch.tensor([[1.0], [0.0], [0.0]]), adjacency(graph), weights).flatten().tolist()
    [2.0, 2.0, 1.0]
    """
    require.tensor("features", features, "n width")
    n, width = features.shape
    require.tensor("matrix", matrix, "n n", n=n)
    require.tensor("weights", weights, "layers 2 width width", width=width)
    require.number("self_weight", self_weight)
    require.function("activation", activation)
    require.flag("skip", skip)
    result = _propagate(
        features.double(), matrix.double(), weights.double(), self_weight, activation, skip
    )
    return require.finite(
        "self_weight, or what activation, features, matrix or weights hold,", result
    )


def _propagate(
    x: Tensor, matrix: Tensor, weights: Tensor, self_weight: float, activation: Callable, skip: bool
) -> Tensor:
    for on_self, on_neighbours in weights:
        new = activation(self_weight * x @ on_self + matrix @ x @ on_neighbours)
        if (
            not isinstance(new, Tensor)
            or new.shape != (len(matrix), weights.shape[-1])
            or new.dtype != matrix.dtype
        ):
            raise ValueError(
                f"activation must return a tensor of the shape and dtype of its input, not "
                f"{require.brief(new)}"
            )
        x = x + new if skip else new
    return x


def jacobian_norms(
    graph: nx.Graph,
    target: Hashable,
    layers: int,
    width: int = 16,
    normalisation: str = "symmetric",
    self_weight: float = 1.0,
    activation: Callable[[Tensor], Tensor] = torch.relu,
    seed: int = 0,
    last: nx.Graph | None = None,
    skip: bool = False,
) -> Float[Tensor, " n"]:
    """Compute how sensitive the target node's final state is to the input of each node.

    For every node s we return the largest singular value of the Jacobian d h_target^(layers) / d
    x_s. We differentiate `propagate`, with weights from `orthogonal_weights`, by autograd at an
    input of standard normal features.

    Args:
        graph: a graph with n nodes.
        target: the node whose final state is differentiated.
        layers, width: the number of layers and the number of features per node.
        normalisation: as in `adjacency`.
        self_weight, activation: as in `propagate`.
        seed: the seed of the weights and of the input.
        last: another graph for the last layer, with the same nodes in the same order. None uses
            `graph` in all layers.
        skip: as in `propagate`. If it is true, the norms are bounded by `walk_bound` with a
            `self_weight` that is larger by one.

    Returns:
        One norm per node, in the order of `graph.nodes`.

    >>> norms = jacobian_norms(nx.path_graph(5), target=4, layers=3)
    >>> (norms > 0).tolist()  # three layers do not reach four hops
    [False, True, True, True, True]
    """
    check(graph, target=target)
    require.integer("layers", layers, 1, 1_000)
    require.integer("width", width, 1, 1_024)
    require.number("self_weight", self_weight)
    require.function("activation", activation)
    require.flag("skip", skip)
    if last is not None:
        check(last, "last")
        if list(last) != list(graph):
            raise ValueError("last must have the same nodes as graph, in the same order")
    matrix, weights = adjacency(graph, normalisation), orthogonal_weights(layers, width, seed)
    generator = torch.Generator().manual_seed(int(seed) + 1)
    features = torch.randn(len(graph), width, generator=generator, dtype=torch.float64)
    position = list(graph).index(target)
    final = matrix if last is None else adjacency(last, normalisation)

    def state(x):
        x = _propagate(x, matrix, weights[:-1], self_weight, activation, skip)
        return _propagate(x, final, weights[-1:], self_weight, activation, skip)[position]

    jacobian = torch.autograd.functional.jacobian(state, features, vectorize=True)
    require.finite("self_weight, or what activation returns,", jacobian)
    return torch.linalg.matrix_norm(jacobian.movedim(1, 0), ord=2)


def walk_bound(
    graph: nx.Graph,
    target: Hashable,
    layers: int,
    normalisation: str = "symmetric",
    self_weight: float = 1.0,
) -> Float[Tensor, " n"]:
    """Return upper bounds for `jacobian_norms` that count weighted walks in the graph.

    The bound for node s is ((self_weight I + A)^layers)_{target, s}, where A is the normalised
    adjacency matrix. Call this function with the same arguments as `jacobian_norms`. The bound
    holds for weights of spectral norm 1 and an activation whose derivative is at most 1.

    The bound is Theorem 3.2 of Di Giovanni et al. (2023). Lemma 1 of Topping et al. (2022) is the
    case of a node s exactly `layers` hops away. In this case no step can be spent on staying at a
    node, so the bound does not depend on `self_weight`.

    Args:
        graph: a graph with n nodes.
        target: the node whose final state is bounded.
        layers: the number of layers, which is the number of steps of each walk.
        normalisation: as in `adjacency`.
        self_weight: as in `propagate`.

    Returns:
        One bound per node, in the order of `graph.nodes`.

    >>> walk_bound(nx.path_graph(3), 2, 2, "none").tolist()
    [1.0, 2.0, 2.0]
    """
    check(graph, target=target)
    require.integer("layers", layers, 1)
    require.number("self_weight", self_weight)
    matrix = adjacency(graph, normalisation)
    step = self_weight * torch.eye(len(matrix)) + matrix
    walks = torch.linalg.matrix_power(step, layers)
    return require.finite("layers, or self_weight,", walks)[list(graph).index(target)]


def total_resistance(graph: nx.Graph) -> float:
    """Return the total effective resistance of a graph, summed over all pairs of nodes.

    The total resistance is R_tot = n tr(L^+), where L^+ is the pseudoinverse of the graph
    Laplacian. R_tot is small if many short paths connect the nodes, so it measures how well
    messages travel in the graph as a whole.

    Args:
        graph: a graph with n nodes. Each edge counts as a resistor of 1 ohm.

    Returns:
        The sum of the effective resistances of all pairs of nodes, in ohms.

    >>> round(total_resistance(nx.path_graph(3)), 6)
    4.0
    """
    matrix = adjacency(graph)
    mean = torch.full_like(matrix, 1 / len(matrix))
    inverse = torch.linalg.inv(torch.diag(matrix.sum(1)) - matrix + mean) - mean
    return inverse.trace().item() * len(graph)
