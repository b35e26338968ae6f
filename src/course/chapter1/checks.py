"""What is behind the exercises of chapter 1."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import torch
from IPython.display import HTML
from torch import Tensor

from course import checks
from course.chapter1 import figures
from course.checks import Right, Wrong, drawn, exercise, number, run
from helpers import gnn, graphs

progress = partial(checks.progress, globals().values())  # of all exercises of this module
compare = partial(checks.tabled, globals())
normal = checks.normal  # the table's cases call it


def _places(graph: nx.Graph, *nodes: Any) -> list[int]:
    return [list(graph).index(node) for node in nodes]


@exercise
def walks(answer: Any) -> Right:
    """How many walks of this many steps lead from u to v."""
    return compare("walks", answer, _walks)


def _walks(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    i, j = _places(graph, u, v)
    return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[i, j]


def _staying(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    i, j = _places(graph, u, v)
    loops = graphs.adjacency(graph) + torch.eye(len(graph), dtype=torch.float64)
    return torch.linalg.matrix_power(loops, steps)[i, j]


def _weighted(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    i, j = _places(graph, u, v)
    return torch.linalg.matrix_power(torch.tensor(nx.to_numpy_array(graph)), steps)[i, j]


def _labels_as_places(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    sorted_nodes = sorted(graph)
    i, j = (sorted_nodes.index(node) for node in (u, v))
    return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[i, j]


@exercise
def heard(answer: Any) -> Right:
    """How many nodes a node has heard from, itself included."""
    return compare("heard", answer, lambda g, u, n: graphs.receptive_field(g, u, n)[-1])


def _frontier(graph: nx.Graph, node: Any, layers: int) -> int:
    reached = {node}
    for _ in range(layers):
        reached = {neighbour for member in reached for neighbour in graph[member]}
    return len(reached)


@exercise
def least_width(answer: Any) -> Right:
    """Eq. 5 of Alon & Yahav (2021)."""
    return compare("least_width", answer, gnn.minimum_width, picture=lambda: drawn(*figures.widths(answer)))


def _needed(orders: float, bits: int) -> int:
    return math.ceil(int(orders).bit_length() / bits)


@exercise
def tree_entry(answer: Any) -> Right:
    """From the root of a binary tree to an inner node at this depth, symmetric normalisation, no loops."""
    return compare("tree_entry", answer, _tree_entry, tolerance=1e-7)


def _tree_entry(depth: int) -> Tensor:
    return graphs.walk_bound(nx.balanced_tree(2, depth + 1), 0, depth, "symmetric", 0.0)[2**depth - 1]


@exercise
def resistance(answer: Any) -> Right:
    """Effective resistance between two nodes."""
    return compare("resistance", answer, _resistance, tolerance=1e-5)


def _resistance(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    i, j = _places(graph, u, v)
    return graphs.effective_resistance(graph)[i, j]


def _quadratic(laplacian: Tensor, i: int, j: int, mixed: float = 2.0) -> Tensor:
    inverse = torch.linalg.pinv(laplacian, hermitian=True)
    return inverse[i, i] + inverse[j, j] - mixed * inverse[i, j]


def _laplacian(graph: nx.Graph, weight: str | None = None) -> Tensor:
    return torch.tensor(nx.laplacian_matrix(graph, weight=weight).toarray()).double()


def _normalised(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    laplacian = torch.tensor(nx.normalized_laplacian_matrix(graph, weight=None).toarray())
    return _quadratic(laplacian, *_places(graph, u, v))


@exercise
def best_edge(answer: Any) -> Right:
    """The new edge that lowers total resistance most; of equally good ones any will do."""
    for text, (graph,) in checks.given(globals(), "best_edge"):
        call = f"best_edge({text})"
        edge = checks.edge(call, run(call, answer, graph))
        before, total = graphs.total_resistance(graph), graphs.total_resistance(_with_edges(call, graph, [edge]))
        best = graphs.total_resistance(graphs.rewire(graph, "gtr", 1))
        if total > best * (1 + 1e-9):
            u, v = edge
            why = f"{call} is {edge}, which brings total resistance from {before:.3f} to {total:.3f}; {best:.3f} is possible."
            if math.isclose(
                float(_resistance(graph, u, v)), float(graphs.effective_resistance(graph).max()), rel_tol=1e-9
            ):
                why += " You joined the pair with the largest resistance: that helps this pair most, not all pairs."
            elif nx.shortest_path_length(graph, u, v) == nx.diameter(graph):
                why += " You joined the ends of the longest way: try all pairs, and add up over all pairs."
            elif math.isclose(total, _total_with(graph, _best_gap(graph)), rel_tol=1e-9):
                why += " That is the edge that raises the spectral gap most, the choice of FoSR."
            raise Wrong(why)
    return Right("on all six graphs no other edge lowers total resistance more.")


def _total_with(graph: nx.Graph, edge: tuple) -> float:
    return graphs.total_resistance(_with_edges("edge", graph, [edge]))


def _best_gap(graph: nx.Graph) -> tuple:
    return max(nx.non_edges(graph), key=lambda edge: graphs.spectral_gap(_with_edges("edge", graph, [edge])))


@exercise
def slower(answer: Any) -> Right:
    """A graph whose largest commute time rises when the pair with the largest resistance is joined."""
    result = run("slower()", answer)
    if not (isinstance(result, tuple | list) and len(result) == 2 and isinstance(result[0], nx.Graph)):
        raise Wrong("slower must return a pair: a networkx graph, and an edge (u, v) that it does not have yet.")
    graph, edge = result[0], checks.edge("the edge", result[1])
    if not 2 <= len(graph) <= 12:
        raise Wrong(f"the graph must be connected and have 2 to 12 nodes; it has {len(graph)}.")
    try:
        largest = float(graphs.effective_resistance(graph).max())
        before, after = (graphs.commute_time(g).max().item() for g in (graph, _with_edges("slower", graph, [edge])))
    except (ValueError, nx.NetworkXException) as error:
        raise Wrong(f"the graph must be connected, simple and undirected: {error}.") from None
    here = float(_resistance(graph, *edge))
    if here < largest - 1e-9:
        raise Wrong(f"the edge must join a pair with the largest resistance, {largest:.3f}; this pair has {here:.3f}.")
    if after <= before + 1e-9:
        raise Wrong(
            f"with the edge the largest commute time is {after:.3f}, and it was {before:.3f}: it must go up. Some other pair "
            "must stay as far apart as before."
        )
    return Right(
        f"with your graph it rises: joining the pair that is furthest apart raises the largest commute time by {after / before - 1:.0%}, from "
        f"{before:.2f} to {after:.2f}."
    )


@exercise
def sensitivity(answer: Any) -> Right:
    """The spectral norm of the derivative of one node's state by another node's input."""
    return compare("sensitivity", answer, _sensitivity, tolerance=1e-5)


def tanh_layers(layers: int, name: str) -> Callable[[Tensor], Tensor]:
    """That many layers on a family of graphs, of 9 nodes."""
    matrix, weights = graphs.adjacency(graphs.family(name, 9), "symmetric"), graphs.orthogonal_weights(layers, 4)
    return lambda x: graphs.propagate(x, matrix, weights, activation=torch.tanh)


def _jacobian(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.autograd.functional.jacobian(lambda y: f(y)[target], x)[:, source]


def _sensitivity(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.linalg.matrix_norm(_jacobian(f, x, target, source), ord=2)


def _norm_of(kind: str) -> Callable:
    def norm(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
        jacobian = _jacobian(f, x, target, source)
        return jacobian.abs().max() if kind == "entry" else torch.linalg.matrix_norm(jacobian, ord=kind)

    return norm


def _by_all(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    whole = torch.autograd.functional.jacobian(lambda y: f(y)[target], x)
    return torch.linalg.matrix_norm(whole.flatten(1), ord=2)


@exercise
def forman(answer: Any) -> Right:
    """Balanced Forman curvature of one edge, by the definition."""

    def picture() -> HTML:
        def yours(graph: nx.Graph) -> dict:
            return {edge: float(answer(graph, *edge)) for edge in graph.edges}

        return drawn(*figures.curvature("barbell", yours))

    return compare("forman", answer, _forman, picture=picture)


def _forman(graph: nx.Graph, i: Any, j: Any) -> float:
    return graphs.balanced_forman(graph)[i, j]


def _degrees(graph: nx.Graph, i: Any, j: Any) -> tuple[int, int, int]:
    """The smaller degree, the larger one, and the triangles."""
    small, large = sorted((graph.degree[i], graph.degree[j]))
    return small, large, len(list(nx.common_neighbors(graph, i, j)))


def _counts(graph: nx.Graph, i: Any, j: Any, diagonals: bool = False) -> tuple[list[int], list[int]]:
    """4-cycles through each neighbour of i, and of j, where there are any."""
    both = set() if diagonals else set(graph[i]) & set(graph[j])
    near, far = set(graph[i]) - both - {j}, set(graph[j]) - both - {i}
    through = [len((set(graph[k]) & far) - {k}) for k in near], [len((set(graph[k]) & near) - {k}) for k in far]
    return tuple([count for count in counts if count] for counts in through)


def _with_squares(term: Callable[[list[int], list[int], int, int], float], diagonals: bool = False) -> Callable:
    """The curvature with another last term, made from the counts at both ends and the smaller and larger degree."""

    def curvature(graph: nx.Graph, i: Any, j: Any) -> float:
        small, large, _ = _degrees(graph, i, j)
        counts = _counts(graph, i, j, diagonals)
        squares = term(*counts, small, large) if any(counts) else 0.0
        return 0.0 if small == 1 else _without_four_cycles(graph, i, j) + squares

    return curvature


def _gamma_by(taken: Callable) -> Callable:
    return _with_squares(lambda at_i, at_j, small, large: len(at_i + at_j) / (taken(at_i + at_j) * large))


_one_end = _with_squares(lambda at_i, at_j, small, large: len(at_i) / (max(at_i + at_j) * large))
_cycles_for_neighbours = _with_squares(lambda at_i, at_j, small, large: sum(at_i + at_j) / (max(at_i + at_j) * large))
_min_for_max = _with_squares(lambda at_i, at_j, small, large: len(at_i + at_j) / (max(at_i + at_j) * small))
_with_diagonals = _with_squares(
    lambda at_i, at_j, small, large: len(at_i + at_j) / (max(at_i + at_j) * large), diagonals=True
)


def _without_four_cycles(graph: nx.Graph, i: Any, j: Any) -> float:
    small, large, triangles = _degrees(graph, i, j)
    return 0.0 if small == 1 else 2 / small + 2 / large - 2 + 2 * triangles / large + triangles / small


def _two_over_min(graph: nx.Graph, i: Any, j: Any) -> float:
    small, _, triangles = _degrees(graph, i, j)
    return _forman(graph, i, j) + triangles / small


def _without_triangles(graph: nx.Graph, i: Any, j: Any) -> float:
    small, large, triangles = _degrees(graph, i, j)
    return _forman(graph, i, j) - 2 * triangles / large - triangles / small


def _leaf_not_zero(graph: nx.Graph, i: Any, j: Any) -> float:
    small, large, _ = _degrees(graph, i, j)
    return 2 / small + 2 / large - 2 if small == 1 else _forman(graph, i, j)


@exercise
def rewiring(prediction: Any, edges: Any) -> Right:
    """Three edges for the tree of 15 nodes: much less total resistance, and a worse far Jacobian."""
    tree = graphs.family("tree", 15)
    checks.filled("prediction", prediction, "predict first, by what factor the walk bound of the pair falls")
    guess = number("prediction", prediction)
    if not 0 <= guess <= 1:
        raise Wrong(
            f"prediction must be a factor from 0 to 1, not {guess:g}: new edges raise degrees, so the bound falls."
        )
    wired = _with_edges("edges", tree, checks.edges("edges", edges, 3))
    resistance = graphs.total_resistance(wired) / graphs.total_resistance(tree)
    before, after = (
        sum(graphs.jacobian_norms(graph, 11, 6, seed=seed)[7].item() for seed in range(5)) for graph in (tree, wired)
    )
    bound = float(graphs.walk_bound(wired, 11, 6)[7] / graphs.walk_bound(tree, 11, 6)[7])
    found = (
        f"total resistance is {resistance:.1%} and the Jacobian between 7 and 11 {after / before:.0%} of what it was"
    )
    if resistance > 0.65:
        raise Wrong(f"{found}: the resistance must fall to 65% or less.")
    if after > 0.35 * before:
        raise Wrong(f"{found}: the Jacobian must fall to 35% or less. Which degrees stand on the way from 7 to 11?")
    return Right(
        f"{found}. You predicted that the walk bound falls to {guess:.0%}; it falls to {bound:.0%}. Ours: 63% and 31%.",
        lambda: drawn(*figures.wired(tree, wired, (7, 11))),
    )


def _with_edges(name: str, graph: nx.Graph, edges: list[tuple]) -> nx.Graph:
    wired = graph.copy()
    for edge in edges:
        try:
            new = set(edge) <= set(graph) and not wired.has_edge(*edge)
        except TypeError:
            new = False
        if not new:
            raise Wrong(f"{name}: {edge} must join two nodes of the graph that have no edge yet.")
        wired.add_edge(*edge)
    return wired
