"""Check the answers to the exercises of chapter 1.

Call a check with your answer, which is a function or a value, depending on the exercise. The check
tries the answer on several cases. It returns a verdict with a sentence that says what is right or
wrong.
"""

import math  # noqa: F401  the chapter's table calls it
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import torch
from torch import Tensor

from course import exercises as checks
from course.chapter1 import figures
from course.exercises import Right, Wrong, drawn, exercise, number, run
from course.maths import bounds
from course.maths import rewiring as wiring
from course.training import gnn
from helpers import graphs

progress = partial(checks.progress, globals().values())  # over all exercises of this module
compare, refuse = (partial(each, globals()) for each in (checks.tabled, checks.refuse))
normal = checks.normal  # for the cases in the table


def _places(graph: nx.Graph, *nodes: Any) -> tuple[int, ...]:
    return tuple(list(graph).index(node) for node in nodes)


@exercise
def walks(answer: Any) -> Right:
    """Check a function that counts the walks of exactly `length` steps from u to v."""
    return compare("walks", answer, _walks)


def _walks(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[_places(graph, u, v)]


@exercise
def heard(answer: Any) -> Right:
    """Check a function that counts the nodes that can influence a node after some layers."""
    return compare("heard", answer, lambda g, u, n: bounds.receptive_field(g, u, n)[-1])


@exercise
def least_width(answer: Any) -> Right:
    """Check a function for the smallest width that can store every order of a tree's leaves.

    The width is that of Eq. 5 of Alon & Yahav (2021).
    """
    return compare(
        "least_width", answer, gnn.minimum_width, picture=lambda: drawn(*figures.widths(answer))
    )


@exercise
def tree_entry(answer: Any) -> Right:
    """Check a function that computes one entry of a power of a binary tree's adjacency matrix.

    The entry links the root to an inner node, whose depth the exercise gives. The matrix is
    normalised symmetrically and has no loops.
    """

    def entry(depth: int) -> Tensor:
        return graphs.walk_bound(nx.balanced_tree(2, depth + 1), 0, depth, "symmetric", 0.0)[
            2**depth - 1
        ]

    return compare("tree_entry", answer, entry)


@exercise
def resistance(answer: Any) -> Right:
    """Check a function that computes the effective resistance between two nodes."""
    return compare("resistance", answer, _resistance)


def _resistance(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    return wiring.effective_resistance(graph)[_places(graph, u, v)]


def _quadratic(laplacian: Tensor, i: int, j: int, mixed: float = 2.0) -> Tensor:
    inverse = torch.linalg.pinv(laplacian, hermitian=True)
    return inverse[i, i] + inverse[j, j] - mixed * inverse[i, j]


def _laplacian(graph: nx.Graph, weight: str | None = None) -> Tensor:
    return torch.tensor(nx.laplacian_matrix(graph, weight=weight).toarray()).double()


@exercise
def best_edge(answer: Any) -> Right:
    """Check the choice of the new edge that lowers the total resistance most.

    If several edges tie, any of them is right.
    """
    for text, (graph,) in checks.given(globals(), "best_edge"):
        call = f"best_edge({text})"
        edge = checks.edge(call, run(call, answer, graph))
        best = graphs.total_resistance(wiring.rewire(graph, "gtr", 1))
        before, total = graphs.total_resistance(graph), _total_with(graph, edge, call)
        missed = (
            f"{call} is {edge}, which lowers the total resistance from {before:.3f} to "
            f"{total:.3f}, but {best:.3f} is possible."
        )
        if total > best * (1 + 1e-9):
            refuse("best_edge", graph=graph, edge=edge, total=total, missed=missed)
    return Right("on all six graphs no other edge lowers the total resistance more.")


def _total_with(graph: nx.Graph, edge: tuple, name: str = "edge") -> float:
    return graphs.total_resistance(_with_edges(name, graph, [edge]))


def _best_gap(graph: nx.Graph) -> tuple:
    return max(
        nx.non_edges(graph),
        key=lambda edge: wiring.spectral_gap(_with_edges("edge", graph, [edge])),
    )


@exercise
def slower(answer: Any) -> Right:
    """Check a graph in which adding an edge increases the largest commute time.

    The edge must join the pair with the largest resistance.
    """
    result = run("slower()", answer)
    refuse("slower", "pair", result=result)
    graph, edge = result[0], checks.edge("the edge", result[1])
    refuse("slower", "size", graph=graph)
    try:
        largest = float(wiring.effective_resistance(graph).max())
        both = graph, _with_edges("slower", graph, [edge])
        before, after = (
            2 * g.number_of_edges() * wiring.effective_resistance(g).max().item() for g in both
        )
    except (ValueError, nx.NetworkXException) as error:
        raise Wrong(f"the graph must be connected, simple and undirected: {error}.") from None
    refuse(
        "slower", here=float(_resistance(graph, *edge)), largest=largest, before=before, after=after
    )
    return Right(
        "with your graph it rises: joining the pair that is furthest apart raises the "
        f"largest commute time by {after / before - 1:.0%}, from "
        f"{before:.2f} to {after:.2f}."
    )


@exercise
def sensitivity(answer: Any) -> Right:
    """Check a function that computes the spectral norm of the Jacobian between two nodes."""
    return compare("sensitivity", answer, _sensitivity)


def tanh_layers(layers: int, name: str) -> Callable[[Tensor], Tensor]:
    """Return a function that applies `layers` tanh layers to a graph with 9 nodes.

    The graph belongs to the family `name`. We use the function to test Jacobians.
    """
    matrix, weights = (
        graphs.adjacency(graphs.family(name, 9), "symmetric"),
        graphs.orthogonal_weights(layers, 4),
    )
    return lambda x: graphs.propagate(x, matrix, weights, activation=torch.tanh)


def _jacobian(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.autograd.functional.jacobian(lambda y: f(y)[target], x)[:, source]


def _sensitivity(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.linalg.matrix_norm(_jacobian(f, x, target, source), ord=2)


@exercise
def forman(answer: Any) -> Right:
    """Check a function for the balanced Forman curvature of one edge.

    We compare its results with the definition.
    """
    return compare(
        "forman",
        answer,
        _forman,
        picture=lambda: drawn(
            *figures.curvature(
                "barbell", lambda graph: {edge: float(answer(graph, *edge)) for edge in graph.edges}
            )
        ),
    )


def _forman(graph: nx.Graph, i: Any, j: Any) -> float:
    return wiring.balanced_forman(graph)[i, j]


def _with_squares(
    graph: nx.Graph, i: Any, j: Any, term: Callable[..., float], diagonals: bool = False
) -> float:
    """Return an edge's curvature with a wrong last term, to recognise mistakes in this term.

    `term` computes the last term from the numbers of 4-cycles through the neighbours of i and of j
    (zeros are left out) and from both degrees.
    """
    small, large = sorted((graph.degree[i], graph.degree[j]))
    both = set(nx.common_neighbors(graph, i, j))
    near, far = (set(graph[k]) - {i, j} - (set() if diagonals else both) for k in (i, j))
    through = [
        [len((set(graph[k]) & to) - {k}) for k in of] for of, to in ((near, far), (far, near))
    ]
    at_i, at_j = ([count for count in counts if count] for counts in through)
    curvature = 2 / small + 2 / large - 2 + len(both) * (2 / large + 1 / small)
    return (
        0.0 if small == 1 else curvature + (term(at_i, at_j, small, large) if at_i + at_j else 0.0)
    )


@exercise
def rewiring(prediction: Any, edges: Any) -> Right:
    """Check a reader's prediction and three new edges for the tree of 15 nodes.

    The edges must lower the total resistance by a large amount, but also reduce the Jacobian of a
    distant pair of nodes.
    """
    tree = graphs.family("tree", 15)
    checks.filled(
        "prediction", prediction, "predict first by what factor the walk bound of the pair falls"
    )
    guess = number("prediction", prediction)
    refuse("rewiring", "guess", guess=guess)
    wired = _with_edges("edges", tree, checks.edges("edges", edges, 3))
    resistance = graphs.total_resistance(wired) / graphs.total_resistance(tree)
    before, after = (
        sum(graphs.jacobian_norms(graph, 11, 6, seed=seed)[7].item() for seed in range(5))
        for graph in (tree, wired)
    )
    bound = float(graphs.walk_bound(wired, 11, 6)[7] / graphs.walk_bound(tree, 11, 6)[7])
    found = (
        f"the total resistance is {resistance:.1%} of its old value, and the Jacobian between "
        f"nodes 7 and 11 is {after / before:.0%} of its old value"
    )
    refuse("rewiring", found=found, resistance=resistance, before=before, after=after)
    return Right(
        (
            f"{found}. You predicted that the walk bound falls to {guess:.0%}, "
            f"and it falls to {bound:.0%}. Our edges reach 63% and 31%."
        ),
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
