"""What squeezes messages in a graph: walks, Jacobians, resistance, cuts, curvature; and rewiring.

A graph is a connected, undirected `networkx.Graph` of two or more nodes without self-loops; edge weights
are ignored. Matrices and vectors are float64 in the order of `graph.nodes`. Every function raises
ValueError for another graph.
"""

import itertools
import math
from collections.abc import Callable, Hashable
from fractions import Fraction

import networkx as nx
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import require

FAMILIES = ("path", "cycle", "tree", "barbell", "grid", "expander", "karate")
NORMALISATIONS = ("none", "row", "symmetric")
METHODS = ("sdrf", "fosr", "gtr", "random")


def _check(graph: nx.Graph, name: str = "graph") -> None:
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise ValueError(f"{name} must be an undirected networkx.Graph, not {type(graph).__name__}")
    if len(graph) < 2:
        raise ValueError(f"{name} must have at least 2 nodes, not {len(graph)}")
    if loops := list(nx.nodes_with_selfloops(graph)):
        raise ValueError(f"{name} must have no self-loops, but there is one at {loops[0]!r}")
    if (parts := nx.number_connected_components(graph)) > 1:
        raise ValueError(f"{name} must be connected, but it has {parts} components")


def _check_node(graph: nx.Graph, name: str, node: Hashable) -> None:
    _check(graph)
    if not isinstance(node, Hashable) or node not in graph:
        raise ValueError(f"{name} must be a node of the graph, not {require.brief(node)}")


def family(name: str, nodes: int = 16, seed: int = 0) -> nx.Graph:
    """A graph of a family, with about this many nodes, numbered from 0.

    Args:
        name: "path", "cycle", "tree" (binary), "barbell" (two cliques and a bridge), "grid" (square),
            "expander" (4-regular, random, certified by its spectral gap) or "karate" (always 34 nodes).
        nodes: a barbell takes the even number below, a grid the nearest square, karate none of it.

    >>> family("cycle", 8).number_of_edges()
    8
    """
    require.choice("name", name, FAMILIES)
    require.integer("nodes", nodes, 6)
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
    """Two nodes at the largest distance: the first such pair in the order of `graph.nodes`.

    >>> far_pair(nx.path_graph(4))
    (0, 3)
    """
    _check(graph)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return max(itertools.combinations(graph, 2), key=lambda pair: lengths[pair[0]][pair[1]])


def receptive_field(graph: nx.Graph, node: Hashable, layers: int) -> list[int]:
    """How many nodes are within 0, 1, ..., `layers` hops: whose inputs that many layers can bring here.

    >>> receptive_field(nx.balanced_tree(2, 3), 0, 3)
    [1, 3, 7, 15]
    """
    _check_node(graph, "node", node)
    require.integer("layers", layers, 0)
    lengths = nx.single_source_shortest_path_length(graph, node, cutoff=layers).values()
    return [sum(length <= hops for length in lengths) for hops in range(layers + 1)]


def computation_tree(graph: nx.Graph, node: Hashable, layers: int, loops: bool = False) -> list[int]:
    """How many walks of 0, 1, ..., `layers` steps start at the node: its computation tree, level by level.

    Args:
        loops: let a node hear itself too, as with self-loops or a self-weight.

    >>> computation_tree(nx.cycle_graph(5), 0, 4)
    [1, 2, 4, 8, 16]
    """
    _check_node(graph, "node", node)
    require.integer("layers", layers, 0)
    require.flag("loops", loops)
    walks, sizes = {node: 1}, [1]
    for _ in range(layers):
        step: dict[Hashable, int] = {}
        for here, count in walks.items():
            for there in [*graph[here], *([here] if loops else [])]:
                step[there] = step.get(there, 0) + count
        walks = step
        sizes.append(sum(walks.values()))
    return sizes


def adjacency(graph: nx.Graph, normalisation: str = "none", loops: bool = False) -> Float[Tensor, "n n"]:
    """A, D^-1 A ("row") or D^-1/2 A D^-1/2 ("symmetric"), with A + I for A if `loops`.

    >>> adjacency(nx.path_graph(3), "row").tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    _check(graph)
    require.choice("normalisation", normalisation, NORMALISATIONS)
    require.flag("loops", loops)
    matrix = torch.from_numpy(nx.to_numpy_array(graph, weight=None))
    if loops:
        matrix += torch.eye(len(matrix))
    degree = matrix.sum(1)
    if normalisation == "row":
        return matrix / degree[:, None]
    return matrix * torch.outer(degree, degree).rsqrt() if normalisation == "symmetric" else matrix


def orthogonal_weights(layers: int, width: int, seed: int = 0) -> Float[Tensor, "layers 2 width width"]:
    """Random orthogonal matrices for `propagate`: only graph and activation shrink a message.

    >>> weights = orthogonal_weights(layers=2, width=3)
    >>> bool(torch.allclose(weights @ weights.mT, torch.eye(3).double()))
    True
    """
    require.integer("layers", layers, 1)
    require.integer("width", width, 1)
    generator = torch.Generator().manual_seed(require.seed(seed))
    return torch.linalg.qr(torch.randn(layers, 2, width, width, generator=generator, dtype=torch.float64)).Q


def propagate(
    features: Float[Tensor, "n width"],
    matrix: Float[Tensor, "n n"],
    weights: Float[Tensor, "layers 2 width width"],
    self_weight: float = 1.0,
    activation: Callable[[Tensor], Tensor] = torch.relu,
    skip: bool = False,
) -> Float[Tensor, "n width"]:
    """H <- activation(self_weight H W_own + matrix H W_heard), once a layer (Di Giovanni et al., 2023).

    Args:
        self_weight: c_r in the paper, what a node hears of itself inside the activation.
        skip: add H itself outside the activation, as a residual network does.

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
    result = _propagate(features.double(), matrix.double(), weights.double(), self_weight, activation, skip)
    return require.finite("self_weight, or what activation, features, matrix or weights hold,", result)


def _propagate(
    x: Tensor, matrix: Tensor, weights: Tensor, self_weight: float, activation: Callable, skip: bool
) -> Tensor:
    for own, heard in weights:
        new = activation(self_weight * x @ own + matrix @ x @ heard)
        if not isinstance(new, Tensor) or new.shape != (len(matrix), weights.shape[-1]) or new.dtype != matrix.dtype:
            raise ValueError(
                f"activation must return a tensor of the shape and type it is given, not {require.brief(new)}"
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
    """Largest singular value of d h_target^(layers) / d x_s for every node s, by autograd.

    The network is `propagate` with `orthogonal_weights`, the input standard normal.

    Args:
        last: the graph of the last layer, if it is another one on the same nodes in the same order.
        skip: as in `propagate`; the bound is then `walk_bound` with a `self_weight` that is larger by one.

    >>> norms = jacobian_norms(nx.path_graph(5), target=4, layers=3)
    >>> (norms > 0).tolist()  # three layers do not reach four hops
    [False, True, True, True, True]
    """
    _check_node(graph, "target", target)
    require.integer("layers", layers, 1)
    require.integer("width", width, 1)
    require.number("self_weight", self_weight)
    require.function("activation", activation)
    require.flag("skip", skip)
    if last is not None:
        _check(last, "last")
        if list(last) != list(graph):
            raise ValueError("last must have the nodes of graph, in the same order")
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
    graph: nx.Graph, target: Hashable, layers: int, normalisation: str = "symmetric", self_weight: float = 1.0
) -> Float[Tensor, " n"]:
    """((self_weight I + A)^layers)_{target, s}, which bounds `jacobian_norms` with the same arguments.

    Theorem 3.2 of Di Giovanni et al. (2023); Lemma 1 of Topping et al. (2022) is for an s exactly `layers`
    hops away, where the node's own state cannot contribute and self_weight drops out. Both here for weights of
    spectral norm 1 and an activation of slope at most 1.

    >>> walk_bound(nx.path_graph(3), 2, 2, "none").tolist()
    [1.0, 2.0, 2.0]
    """
    _check_node(graph, "target", target)
    require.integer("layers", layers, 1)
    require.number("self_weight", self_weight)
    matrix = adjacency(graph, normalisation)
    step = self_weight * torch.eye(len(matrix)) + matrix
    walks = torch.linalg.matrix_power(step, layers)
    return require.finite("layers, or self_weight,", walks)[list(graph).index(target)]


def resistance_bound(graph: nx.Graph, target: Hashable, layers: int) -> Float[Tensor, " n"]:
    """A bound on `jacobian_norms` (symmetric, self_weight 1) by effective resistance, after Black et al. (2023).

    2^L d_max / 2 ((2 / d_min) (L + 1 + m) - R), L layers, m = max(0, max_k lambda_k^(L+1) / (1 - lambda_k))
    over the eigenvalues of D^-1/2 A D^-1/2 but the first. The paper's mu^(L+1) / (1 - mu), mu = max_k
    |lambda_k|, is larger and infinite on bipartite graphs. `commute_time` is 2|E| R: far in resistance is
    hard to reach.

    >>> [round(x, 6) for x in resistance_bound(nx.path_graph(3), 2, 2).tolist()]
    [16.0, 20.0, 24.0]
    """
    _check_node(graph, "target", target)
    require.integer("layers", layers, 1)
    eigenvalues = torch.linalg.eigvalsh(adjacency(graph, "symmetric"))[:-1]
    remainder = (eigenvalues ** (layers + 1) / (1 - eigenvalues)).max().clamp(min=0)
    degrees = [degree for _, degree in graph.degree]
    resistance = effective_resistance(graph)[list(graph).index(target)]
    largest = torch.tensor(2.0, dtype=torch.float64) ** layers * max(degrees) / 2
    return require.finite("layers", largest * (2 / min(degrees) * (layers + 1 + remainder) - resistance))


def _pseudoinverse(graph: nx.Graph) -> Float[Tensor, "n n"]:
    """L^+, the inverse of the Laplacian on the vectors of sum zero."""
    matrix = adjacency(graph)
    mean = torch.full_like(matrix, 1 / len(matrix))
    inverse = torch.linalg.inv(torch.diag(matrix.sum(1)) - matrix + mean) - mean
    return (inverse + inverse.T) / 2


def effective_resistance(graph: nx.Graph) -> Float[Tensor, "n n"]:
    """R_uv = (e_u - e_v)^T L^+ (e_u - e_v): ohms between u and v when every edge is one ohm.

    >>> effective_resistance(nx.path_graph(4))[0].round(decimals=6).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    inverse = _pseudoinverse(graph)
    diagonal = inverse.diagonal()
    resistance = diagonal[:, None] + diagonal - 2 * inverse
    return resistance.fill_diagonal_(0)


def commute_time(graph: nx.Graph) -> Float[Tensor, "n n"]:
    """Expected steps of a random walk from u to v and back: 2 |E| R_uv (Chandra et al., 1989).

    >>> round(commute_time(nx.path_graph(4))[0, 3].item(), 6)
    18.0
    """
    return effective_resistance(graph) * 2 * graph.number_of_edges()


def total_resistance(graph: nx.Graph) -> float:
    """R_tot = n tr(L^+), the sum of the effective resistances of all pairs.

    >>> round(total_resistance(nx.path_graph(3)), 6)
    4.0
    """
    return _pseudoinverse(graph).trace().item() * len(graph)


def spectral_gap(graph: nx.Graph) -> float:
    """Second smallest eigenvalue of the normalised Laplacian I - D^-1/2 A D^-1/2.

    >>> round(spectral_gap(nx.complete_graph(5)), 6)
    1.25
    """
    _check(graph)
    return float(np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph, weight=None).toarray())[1])


def cheeger_cut(graph: nx.Graph) -> tuple[float, set]:
    """The Cheeger constant h = min_S cut(S) / min(vol S, vol rest) and a set S that attains it: tries all.

    Cheeger's inequality: gap / 2 <= h <= sqrt(2 gap), gap = `spectral_gap(graph)`.

    Raises:
        ValueError: the graph has more than 20 nodes.

    >>> h, side = cheeger_cut(nx.barbell_graph(4, 0))
    >>> round(h, 6), side in ({0, 1, 2, 3}, {4, 5, 6, 7})
    (0.076923, True)
    """
    _check(graph)
    nodes, degrees = list(graph), np.array([degree for _, degree in graph.degree])
    if len(nodes) > 20:
        raise ValueError(f"graph must have at most 20 nodes, not {len(nodes)}; see sweep_cut")
    inside = (np.arange(1, 2 ** (len(nodes) - 1))[:, None] >> np.arange(len(nodes))) & 1
    return _best_cut(graph, nodes, degrees, inside.astype(bool))


def sweep_cut(graph: nx.Graph) -> tuple[float, set]:
    """The best cut along the second eigenvector: its ratio, from h to sqrt(2 `spectral_gap`), and the set.

    >>> round(sweep_cut(nx.barbell_graph(4, 0))[0], 6)
    0.076923
    """
    _check(graph)
    nodes, degrees = list(graph), np.array([degree for _, degree in graph.degree])
    vector = np.linalg.eigh(nx.normalized_laplacian_matrix(graph, weight=None).toarray())[1][:, 1]
    order = np.argsort(vector / np.sqrt(degrees))
    inside = np.zeros((len(nodes) - 1, len(nodes)), bool)
    for size in range(1, len(nodes)):
        inside[size - 1, order[:size]] = True
    return _best_cut(graph, nodes, degrees, inside)


def _best_cut(graph: nx.Graph, nodes: list, degrees: np.ndarray, inside: np.ndarray) -> tuple[float, set]:
    place = {node: number for number, node in enumerate(nodes)}
    cut = sum((inside[:, place[u]] != inside[:, place[v]]).astype(int) for u, v in graph.edges)
    volume = inside @ degrees
    ratio = cut / np.minimum(volume, degrees.sum() - volume)
    best = ratio.argmin()
    return float(ratio[best]), {nodes[i] for i in np.flatnonzero(inside[best])}


def balanced_forman(graph: nx.Graph) -> dict[tuple, float]:
    """Balanced Forman curvature of every edge, Definition 1 of Topping et al. (2022).

    Ric(i, j) = 2/d_i + 2/d_j - 2 + 2 t / max(d_i, d_j) + t / min(d_i, d_j) + (s_i + s_j) / (g max(d_i,
    d_j)), or 0 if one degree is 1. t counts common neighbours; s_i the neighbours of i that start a 4-cycle
    i-k-w-j without diagonals; g is the largest number of such 4-cycles through one of them.

    >>> round(balanced_forman(nx.barbell_graph(5, 0))[4, 5], 6)
    -1.2
    """
    _check(graph)
    neighbours = {node: set(graph[node]) for node in graph}
    return {(u, v): float(_forman(neighbours, u, v)) for u, v in graph.edges}


def _forman(neighbours: dict[Hashable, set], i: Hashable, j: Hashable) -> Fraction:
    small, large = sorted((len(neighbours[i]), len(neighbours[j])))
    if small == 1:
        return Fraction(0)
    triangles = len(neighbours[i] & neighbours[j])
    only_i, only_j = neighbours[i] - neighbours[j] - {j}, neighbours[j] - neighbours[i] - {i}
    squares = [len(neighbours[k] & only_j) for k in only_i] + [len(neighbours[k] & only_i) for k in only_j]
    starts = sum(count > 0 for count in squares)
    ric = Fraction(2 + triangles, small) + Fraction(2 + 2 * triangles, large) - 2
    return ric + Fraction(starts, max(squares) * large) if starts else ric


def balanced_forman_as_copied(graph: nx.Graph) -> dict[tuple, float]:
    """A WRONG balanced Forman curvature, for display only: what the most copied public code computes.

    It takes for 4-cycles all k with A_kj (A^2 - A)_ik > 0 or A_ik (A^2 - A)_kj > 0, so also i, j and nodes
    that close a triangle, and counts too many cycles through each. The pentagon gets 1 in place of 0.

    >>> balanced_forman_as_copied(nx.cycle_graph(5))[0, 1], balanced_forman(nx.cycle_graph(5))[0, 1]
    (1.0, 0.0)
    """
    a = adjacency(graph)
    squared, degree, place = a @ a, a.sum(1), {node: number for number, node in enumerate(graph)}
    curvature = {}
    for edge in graph.edges:
        i, j = (place[node] for node in edge)
        large, small = degree[[i, j]].max(), degree[[i, j]].min()
        counts = torch.cat([a[j] * (squared[i] - a[i]), a[i] * (squared[j] - a[j])])
        ric = 2 / large + 2 / small - 2 + (2 / large + 1 / small) * squared[i, j]
        curvature[edge] = (ric + (counts > 0).sum() / (large * counts.max().clamp(min=1))).item()
    return curvature


def rewire(graph: nx.Graph, method: str, edges: int, seed: int = 0) -> nx.Graph:
    """A copy with `edges` more edges, marked `added=method`, each chosen in the graph the last one made.

    Args:
        method: "sdrf": around the edge of least balanced Forman curvature, the edge that raises it most
            (Topping et al., 2022, with tau infinite and nothing removed). "fosr": the pair with the least
            product of entries of x / sqrt(d + 1), x the second eigenvector of D^-1/2 A D^-1/2, here exact and
            not by power iteration (Karhadkar et al., 2023). "gtr": the pair that lowers total resistance most
            (Black et al., 2023). "random": any pair, the control.
        seed: of "random".

    >>> list(rewire(nx.path_graph(5), "gtr", 1).edges(data="added"))
    [(0, 1, None), (0, 4, 'gtr'), (1, 2, None), (2, 3, None), (3, 4, None)]
    """
    _check(graph)
    require.choice("method", method, METHODS)
    room = math.comb(len(graph), 2) - graph.number_of_edges()
    try:
        require.integer("edges", edges, 0, room)
    except ValueError as error:
        raise ValueError(f"{error}; graph has {room} pairs without an edge") from None
    copy, generator = graph.copy(), np.random.default_rng(require.seed(seed))
    choose = {"sdrf": _sdrf, "fosr": _fosr, "gtr": _gtr, "random": _random}[method]
    for _ in range(edges):
        copy.add_edge(*choose(copy, generator), added=method)
    return copy


def _least(graph: nx.Graph, score: Tensor) -> tuple:
    """The pair without an edge of least score; ties up to rounding go to the first."""
    free = torch.triu(adjacency(graph) == 0, diagonal=1).nonzero()
    values = score[free[:, 0], free[:, 1]]
    first = (values <= values.min() + 1e-9 * score.abs().max()).nonzero()[0, 0]
    nodes = list(graph)
    return tuple(nodes[i] for i in free[first])


def _gtr(graph: nx.Graph, generator: np.random.Generator) -> tuple:
    """A new edge uv lowers R_tot by n |L^+ (e_u - e_v)|^2 / (1 + R_uv) (Sherman & Morrison)."""
    squared = torch.linalg.matrix_power(_pseudoinverse(graph), 2)
    diagonal = squared.diagonal()
    return _least(graph, -(diagonal[:, None] + diagonal - 2 * squared) / (1 + effective_resistance(graph)))


def _fosr(graph: nx.Graph, generator: np.random.Generator) -> tuple:
    second = torch.linalg.eigh(adjacency(graph, "symmetric")).eigenvectors[:, -2]
    y = second / (adjacency(graph).sum(1) + 1).sqrt()
    return _least(graph, torch.outer(y, y))


def _random(graph: nx.Graph, generator: np.random.Generator) -> tuple:
    free = list(nx.non_edges(graph))
    return free[generator.integers(len(free))]


def _sdrf(graph: nx.Graph, generator: np.random.Generator) -> tuple:
    neighbours = {node: set(graph[node]) for node in graph}
    order = {node: number for number, node in enumerate(graph)}
    for i, j in sorted(graph.edges, key=lambda edge: _forman(neighbours, *edge)):
        around = itertools.product(*(sorted(neighbours[node] | {node}, key=order.get) for node in (i, j)))
        candidates = [(k, m) for k, m in around if k != m and m not in neighbours[k]]
        if candidates:
            break
    before, gains = _forman(neighbours, i, j), []
    for k, m in candidates:
        neighbours[k].add(m)
        neighbours[m].add(k)
        gains.append(float(_forman(neighbours, i, j) - before))
        neighbours[k].remove(m)
        neighbours[m].remove(k)
    return candidates[int(np.argmax(gains))]
