"""What is behind the exercises of chapter 1."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import torch

from helpers import gnn, graphs
from helpers.checks import Wrong, function, run, same, shown


def walks(answer: Callable) -> None:
    """Exercise 1.1: how many walks of this many steps lead from u to v."""

    def solution(graph, u, v, steps):
        place = list(graph).index
        return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[place(u), place(v)]

    karate = graphs.family("karate")
    cases = [(nx.path_graph(4), 0, 2, 2), (nx.cycle_graph(5), 0, 1, 5), (nx.complete_graph(4), 1, 1, 3)]
    same("walks", answer, solution, [*cases, (nx.path_graph(4), 3, 0, 2), (karate, 0, 33, 4), (karate, 5, 5, 0)])


def heard(answer: Callable) -> None:
    """Exercise 1.2: how many nodes a node has heard from, itself included."""
    tree, grid = graphs.family("tree", 15), graphs.family("grid", 25)
    cases = [(tree, 0, 2), (tree, 7, 3), (grid, 12, 1), (grid, 0, 4), (graphs.family("karate"), 16, 2), (grid, 3, 0)]
    same("heard", answer, lambda *case: graphs.receptive_field(*case)[-1], cases)


def least_width(answer: Callable) -> None:
    """Exercise 1.3: Eq. 5 of Alon & Yahav (2021)."""
    cases = [(depth, bits) for depth in (1, 2, 5, 7, 8, 11) for bits in (32, 16)]
    same("least_width", answer, gnn.minimum_width, cases)


def tree_entry(answer: Callable) -> None:
    """Exercise 1.4: from the root of a binary tree to an inner node at this depth, in (D^-1 A)^depth."""

    def solution(depth):
        return graphs.walk_bound(nx.balanced_tree(2, depth + 1), 0, depth, "row", 0.0)[2**depth - 1]

    same("tree_entry", answer, solution, [(depth,) for depth in (1, 2, 3, 5, 7)], 1e-7)


def resistance(answer: Callable) -> None:
    """Exercise 1.5: effective resistance between two nodes."""
    cases = [(nx.path_graph(5), 0, 4), (nx.cycle_graph(6), 0, 3), (nx.complete_graph(7), 1, 4)]
    cases += [(graphs.family("karate"), 0, 33), (graphs.family("barbell", 10), 0, 9)]
    same("resistance", answer, lambda graph, u, v: graphs.effective_resistance(graph)[u, v], cases)


def sensitivity(answer: Callable) -> None:
    """Exercise 1.6: the spectral norm of the derivative of one node's state by another node's input."""

    def solution(network, features, target, source):
        jacobian = torch.autograd.functional.jacobian(lambda x: network(x)[target], features)
        return torch.linalg.matrix_norm(jacobian[:, source], ord=2)

    def network_on(name, layers):
        matrix, weights = graphs.adjacency(graphs.family(name, 9), "symmetric"), graphs.orthogonal_weights(layers, 4)

        def network(x):
            return graphs.propagate(x, matrix, weights, activation=torch.tanh)

        return network

    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cases = [(network_on("path", 3), x, 0, 2), (network_on("path", 3), x, 0, 5), (network_on("grid", 4), x, 4, 8)]
    same("sensitivity", answer, solution, [*cases, (lambda x: x**2, x, 3, 3)])


def forman(answer: Callable) -> None:
    """Exercise 1.7: balanced Forman curvature of one edge, by the definition."""
    cases = [
        (nx.cycle_graph(3), 0, 1), (nx.cycle_graph(4), 0, 1), (nx.cycle_graph(5), 0, 1), (nx.path_graph(3), 0, 1),
        (nx.complete_graph(4), 0, 1), (nx.complete_bipartite_graph(2, 3), 0, 2), (nx.barbell_graph(5, 0), 4, 5),
        (nx.petersen_graph(), 0, 1), *((nx.karate_club_graph(), *edge) for edge in ((0, 1), (0, 31), (4, 10), (2, 32))),
    ]  # fmt: skip
    function("forman", answer)
    copies = 0
    for graph, i, j in cases:
        copied, right = graphs.balanced_forman_as_copied(graph)[i, j], graphs.balanced_forman(graph)[i, j]
        try:
            got = float(run("forman", answer, graph, i, j))
        except (TypeError, ValueError, RuntimeError):
            break  # `same` says what is wrong with it
        copies += abs(got - copied) < 1e-6 < abs(right - copied)
        if copies == 3:
            raise Wrong(
                f"forman({shown(graph)}, {i}, {j}) = {got:g} is what the most copied public code gives; the definition "
                f"gives {right:g}. A 4-cycle must have no diagonal, and its nodes are neither i nor j."
            )
    same("forman", answer, lambda graph, i, j: graphs.balanced_forman(graph)[i, j], cases)


def best_edge(answer: Callable) -> None:
    """Exercise 1.8: the new edge that lowers total resistance most; of equally good ones any will do."""
    function("best_edge", answer)
    for name in ("path", "tree", "barbell", "grid"):
        graph = graphs.family(name, 12)
        edge = run("best_edge", answer, graph.copy())
        total = graphs.total_resistance(_with_edges("best_edge", graph, [edge]))
        best = graphs.total_resistance(graphs.rewire(graph, "gtr", 1))
        if total > best * (1 + 1e-9):
            raise Wrong(f"on the {name}, edge {edge} gives a total resistance of {total:.3f}; {best:.3f} is possible.")
    print("Right: on path, tree, barbell and grid no other edge lowers total resistance more.")


def slower(answer: Callable) -> None:
    """Exercise 1.9: a graph and a new edge that raises its largest commute time."""
    function("slower", answer)
    result = run("slower", answer)
    if not (isinstance(result, tuple | list) and len(result) == 2 and isinstance(result[0], nx.Graph)):
        raise Wrong("slower must return a pair: a networkx graph, and an edge (u, v) that it does not have yet.")
    graph, edge = result
    if not 2 <= len(graph) <= 12:
        raise Wrong(f"the graph must be connected and have 2 to 12 nodes; it has {len(graph)}.")
    try:
        before, after = (graphs.commute_time(g).max().item() for g in (graph, _with_edges("slower", graph, [edge])))
    except (ValueError, nx.NetworkXException) as error:
        raise Wrong(f"the graph must be connected, simple and undirected: {error}.") from None
    if after <= before + 1e-9:
        raise Wrong(f"with the edge the largest commute time is {after:.3f}, and it was {before:.3f}: it must go up.")
    print(f"Right: one more edge, and the largest commute time rises from {before:.2f} to {after:.2f}.")


def rewiring(answer: Any) -> None:
    """Exercise 1.10: three edges for the tree of 15 nodes: much less total resistance, and a worse far Jacobian."""
    if isinstance(answer, type(...)):
        raise Wrong("edges is still empty: fill it in, then run the check again.")
    tree = graphs.family("tree", 15)
    if not isinstance(answer, list | tuple | set) or len(answer) != 3:
        raise Wrong("edges must be a list of three pairs of nodes.")
    wired = _with_edges("edges", tree, list(answer))
    resistance = graphs.total_resistance(wired) / graphs.total_resistance(tree)
    before, after = (
        sum(graphs.jacobian_norms(graph, 11, 6, seed=seed)[7].item() for seed in range(5)) for graph in (tree, wired)
    )
    found = (
        f"total resistance is {resistance:.0%} and the Jacobian between 7 and 11 {after / before:.0%} of what it was"
    )
    if resistance > 0.7:
        raise Wrong(f"{found}: the resistance must fall to 70% or less.")
    if after > 0.5 * before:
        raise Wrong(f"{found}: the Jacobian must fall to 50% or less.")
    print(f"Right: {found}.")


def _with_edges(name: str, graph: nx.Graph, edges: list) -> nx.Graph:
    wired = graph.copy()
    for edge in edges:
        if not isinstance(edge, tuple | list) or len(edge) != 2 or edge[0] == edge[1]:
            raise Wrong(f"{name}: an edge is a pair of two different nodes, not {edge!r}.")
        if not set(edge) <= set(graph) or wired.has_edge(*edge):
            raise Wrong(f"{name}: {tuple(edge)} must join two nodes of the graph that have no edge yet.")
        wired.add_edge(*edge)
    return wired
