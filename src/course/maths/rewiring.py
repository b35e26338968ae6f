"""Find the bottlenecks of a graph, and add edges that widen them.

The module computes effective resistance, spectral gap and curvature, and provides methods that add
edges to improve these measures.
"""

import itertools
import math
from collections.abc import Hashable
from fractions import Fraction

import networkx as nx
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import require
from helpers.graphs import adjacency, check

METHODS = ("sdrf", "fosr", "gtr", "random")


def effective_resistance(graph: nx.Graph) -> Float[Tensor, "n n"]:
    """Return the effective resistance between each pair of nodes, if every edge is one ohm.

    The resistance is R_uv = (e_u - e_v)^T L^+ (e_u - e_v), where L^+ is the pseudoinverse of the
    Laplacian. Many parallel paths make the resistance small, while the number of hops depends only
    on the shortest path.

    >>> effective_resistance(nx.path_graph(4))[0].round(decimals=6).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    matrix = adjacency(graph)
    inverse = torch.linalg.inv(
        torch.diag(matrix.sum(1)) - matrix + 1
    )  # L^+ and a constant, which cancels
    diagonal = inverse.diagonal()
    return (diagonal[:, None] + diagonal - inverse - inverse.T).fill_diagonal_(0)


def spectral_gap(graph: nx.Graph) -> float:
    """Return the spectral gap, the second smallest eigenvalue of the normalised Laplacian.

    The normalised Laplacian is I - D^-1/2 A D^-1/2. A small gap means that the graph has a
    bottleneck.

    >>> round(spectral_gap(nx.complete_graph(5)), 6)
    1.25
    """
    check(graph)
    return float(
        np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph, weight=None).toarray())[1]
    )


def balanced_forman(graph: nx.Graph) -> dict[tuple, float]:
    """Compute the balanced Forman curvature of every edge (Topping et al., 2022, Definition 1).

    An edge with a very negative curvature is a bottleneck. The curvature is Ric(i, j) = 2/d_i +
    2/d_j - 2 + 2 t / max(d_i, d_j) + t / min(d_i, d_j) + (s_i + s_j) / (g max(d_i, d_j)), or 0 if
    one degree is 1. Here t counts common neighbours, s_i counts the neighbours of i that start a
    4-cycle i-k-w-j without diagonals, and g is the largest number of such 4-cycles through one
    neighbour.

    >>> round(balanced_forman(nx.barbell_graph(5, 0))[4, 5], 6)
    -1.2
    """
    check(graph)
    neighbours = {node: set(graph[node]) for node in graph}
    return {(u, v): float(_forman(neighbours, u, v)) for u, v in graph.edges}


def _forman(neighbours: dict[Hashable, set], i: Hashable, j: Hashable) -> Fraction:
    small, large = sorted((len(neighbours[i]), len(neighbours[j])))
    if small == 1:
        return Fraction(0)
    triangles = len(neighbours[i] & neighbours[j])
    only_i, only_j = neighbours[i] - neighbours[j] - {j}, neighbours[j] - neighbours[i] - {i}
    squares = [len(neighbours[k] & only_j) for k in only_i] + [
        len(neighbours[k] & only_i) for k in only_j
    ]
    starts = sum(count > 0 for count in squares)
    ric = Fraction(2 + triangles, small) + Fraction(2 + 2 * triangles, large) - 2
    return ric + Fraction(starts, max(squares) * large) if starts else ric


def balanced_forman_as_copied(graph: nx.Graph) -> dict[tuple, float]:
    """Return a WRONG balanced Forman curvature, as the most copied public code computes it.

    This function is only for display. For 4-cycles, the code takes all k with A_kj (A^2 - A)_ik > 0
    or A_ik (A^2 - A)_kj > 0. So it also takes i, j and nodes that close a triangle, and counts too
    many cycles through each of these nodes. For example, each edge of the pentagon gets a curvature
    of 1 instead of 0.

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
    """Return a copy of the graph with `edges` new edges, which are marked `added=method`.

    The edges are added one after another. Each edge is chosen in the graph that already contains
    the earlier new edges.

    Args:
        method: "sdrf" finds the edge of smallest balanced Forman curvature, and adds the new edge
            around it that raises this curvature most (Topping et al., 2022, with tau infinite and
            nothing removed). "fosr" adds the pair with the smallest product of entries of x /
            sqrt(d + 1), where x is the second eigenvector of D^-1/2 A D^-1/2, computed exactly and
            not by power iteration (Karhadkar et al., 2023). "gtr" adds the pair that lowers the
            total resistance most (Black et al., 2023). "random" adds any pair, as a control.
        seed: the seed of "random".

    >>> list(rewire(nx.path_graph(5), "gtr", 1).edges(data="added"))
    [(0, 1, None), (0, 4, 'gtr'), (1, 2, None), (2, 3, None), (3, 4, None)]
    """
    check(graph)
    require.choice("method", method, METHODS)
    room = math.comb(len(graph), 2) - graph.number_of_edges()
    try:
        require.integer("edges", edges, 0, room)
    except ValueError as error:
        raise ValueError(f"{error}, because graph has {room} pairs without an edge") from None
    copy, generator = graph.copy(), np.random.default_rng(require.seed(seed))
    choose = {"sdrf": _sdrf, "fosr": _fosr, "gtr": _gtr, "random": _random}[method]
    for _ in range(edges):
        copy.add_edge(*choose(copy, generator), added=method)
    return copy


def _least(graph: nx.Graph, score: Tensor) -> tuple:
    """Return the pair of nodes without an edge that has the smallest score.

    In a tie, the first such pair is returned.
    """
    free = torch.triu(adjacency(graph) == 0, diagonal=1).nonzero()
    values = score[free[:, 0], free[:, 1]]
    first = (values <= values.min() + 1e-9 * score.abs().max()).nonzero()[0, 0]
    nodes = list(graph)
    return tuple(nodes[i] for i in free[first])


def _gtr(graph: nx.Graph, generator: np.random.Generator) -> tuple:
    """Return the new edge that lowers the total resistance most.

    By the Sherman-Morrison formula, a new edge uv lowers R_tot by n |L^+ (e_u - e_v)|^2 / (1 +
    R_uv).
    """
    resistance = effective_resistance(graph)
    inverse = (
        resistance.mean(0) + resistance.mean(0)[:, None] - resistance - resistance.mean()
    )  # twice L^+
    squared = (inverse @ inverse) / 4
    diagonal = squared.diagonal()
    return _least(graph, -(diagonal[:, None] + diagonal - 2 * squared) / (1 + resistance))


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
        around = itertools.product(
            *(sorted(neighbours[node] | {node}, key=order.get) for node in (i, j))
        )
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
