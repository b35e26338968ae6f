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
from course.checks import Case, Right, Wrong, compare, drawn, exercise, number, run
from helpers import gnn, graphs

LETTERS = 'nx.Graph([("c", "a"), ("a", "b"), ("b", "d")])'


progress = partial(checks.progress, globals().values())  # of all exercises of this module


def _cases(*texts: str) -> list[Case]:
    return checks.cases({"nx": nx, "graphs": graphs}, *texts)


def _places(graph: nx.Graph, *nodes: Any) -> list[int]:
    return [list(graph).index(node) for node in nodes]


@exercise("1.1", "Count the walks")
def walks(answer: Any) -> Right:
    """How many walks of this many steps lead from u to v."""
    given = _cases(
        "nx.path_graph(4), 0, 2, 2",
        "nx.path_graph(4), 3, 0, 2",
        "nx.cycle_graph(5), 0, 1, 5",
        "nx.complete_graph(4), 1, 1, 3",
        f'{LETTERS}, "c", "b", 2',
        'graphs.family("karate"), 0, 33, 4',
        'graphs.family("karate"), 5, 5, 0',
    )
    mistakes = """
        _paths(graph, u, v, steps) :: Those are paths: a walk may use a node and an edge again.
        _paths_up_to(graph, u, v, steps) :: Those are paths, of up to that many steps: a walk may use a node again.
        sum(right(graph, u, v, k) for k in range(steps + 1)) :: You count walks of up to that many steps: asked is exactly that many.
        _staying(graph, u, v, steps) :: You let a walk stay where it is: without loops, every step uses an edge.
        _weighted(graph, u, v, steps) :: The karate club has edge weights: count edges, with weight=None.
        _labels_as_places(graph, u, v, steps) :: Nodes are names, not places: where is u in list(graph)?
        torch.linalg.matrix_power(graphs.adjacency(graph), steps + 1)[tuple(_places(graph, u, v))] :: One step too many.
        torch.linalg.matrix_power(graphs.adjacency(graph), max(steps - 1, 0))[tuple(_places(graph, u, v))] :: One step too few.
        (graphs.adjacency(graph) ** steps)[tuple(_places(graph, u, v))] :: `A**k` takes the power of each entry: `matrix_power` multiplies the matrices.
        steps * graphs.adjacency(graph)[tuple(_places(graph, u, v))] :: k times A is no power of A: multiply A by itself, k times.
        torch.linalg.matrix_power(graphs.adjacency(graph), steps)[_places(graph, u)[0]].sum() :: Those are the walks from u to anywhere: take v's entry.
    """
    return compare(globals(), "walks(graph, u, v, steps)", answer, _walks, given, mistakes)


def _walks(graph: nx.Graph, u: Any, v: Any, steps: int) -> Tensor:
    i, j = _places(graph, u, v)
    return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[i, j]


def _paths(graph: nx.Graph, u: Any, v: Any, steps: int) -> int:
    return len([path for path in nx.all_simple_paths(graph, u, v, steps) if len(path) == steps + 1])


def _paths_up_to(graph: nx.Graph, u: Any, v: Any, steps: int) -> int:
    return len(list(nx.all_simple_paths(graph, u, v, steps)))


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


@exercise("1.2", "Who has been heard?")
def heard(answer: Any) -> Right:
    """How many nodes a node has heard from, itself included."""
    given = _cases(
        'graphs.family("tree", 15), 0, 2',
        'graphs.family("tree", 15), 7, 3',
        'graphs.family("grid", 25), 12, 1',
        'graphs.family("grid", 25), 0, 4',
        'graphs.family("grid", 25), 3, 0',
        f'{LETTERS}, "c", 2',
        'graphs.family("karate"), 16, 2',
    )
    mistakes = """
        right(graph, node, layers) - 1 :: The node hears itself, too.
        _walked(graph, node, layers) :: You count walks, not nodes: a node that is reached twice is one node.
        _ring(graph, node, layers) :: You count the nodes at that very distance: nearer ones were heard before.
        _frontier(graph, node, layers) :: Those are the nodes at the end of a walk of that many steps: keep those heard before, too.
        right(graph, node, layers + 1) :: One layer more than asked.
        right(graph, node, max(layers - 1, 0)) :: One layer less than asked.
        graph.degree[node] + 1 :: That is one layer: hear what the neighbours have heard.
        sum(_walks(graph, node, other, layers) for other in graph) :: You count walks of that length, not nodes.
        graph.degree[node] ** layers :: The degree to the power of the layers counts ways, and other nodes have other degrees.
        len(graph) :: Those are all nodes: only those within so many hops are heard.
    """
    return compare(
        globals(),
        "heard(graph, node, layers)",
        answer,
        lambda g, u, n: graphs.receptive_field(g, u, n)[-1],
        given,
        mistakes,
    )


def _walked(graph: nx.Graph, node: Any, layers: int) -> int:
    return sum(graphs.computation_tree(graph, node, layers))


def _frontier(graph: nx.Graph, node: Any, layers: int) -> int:
    reached = {node}
    for _ in range(layers):
        reached = {neighbour for member in reached for neighbour in graph[member]}
    return len(reached)


def _ring(graph: nx.Graph, node: Any, layers: int) -> int:
    return list(nx.single_source_shortest_path_length(graph, node).values()).count(layers)


@exercise("1.3", "The width that is needed")
def least_width(answer: Any) -> Right:
    """Eq. 5 of Alon & Yahav (2021)."""
    given = _cases("5, 32", "2, 32", "1, 32", "3, 1", "5, 1", "7, 32", "8, 16", "11, 32")
    mistakes = """
        gnn.orderings(depth).bit_length() // bits :: You rounded down: that many numbers are not enough.
        _one_more(depth, bits) :: One too many where the bits divide exactly: you rounded down and added one, or took 2^r - 2 inner nodes for 2^r - 1.
        _without_symmetry(depth, bits) :: Siblings may be swapped: divide by 2 for each of the 2^r - 1 inner nodes.
        _needed(gnn.orderings(depth) / 2, bits) :: There are 2^r - 1 inner nodes, not 2^r.
        _needed(gnn.orderings(depth), 1) :: That is the number of bits: each number holds `bits` of them.
        math.ceil(math.log2(gnn.orderings(depth)) / bits) :: Eq. 5 is strict, 2^(width bits) > orders: at an exact power of two, such as 1, one bit more is needed.
        gnn.orderings(depth).bit_length() / bits :: Round up: a width is a whole number.
        round(gnn.orderings(depth).bit_length() / bits) :: You rounded to the nearest: round up.
        math.ceil(2**depth / bits) :: That is a bit for each leaf: count the orders of the leaves.
        math.ceil(math.log(gnn.orderings(depth)) / bits) :: Bits are logarithms to base 2, not natural ones.
        math.ceil(gnn.orderings(depth) / 2**bits) :: `width` numbers of `bits` bits hold 2^(width bits) states: compare exponents.
    """
    return compare(
        globals(),
        "least_width(depth, bits)",
        answer,
        gnn.minimum_width,
        given,
        mistakes,
        picture=lambda: drawn(*figures.widths(answer)),
    )


def _needed(orders: float, bits: int) -> int:
    return math.ceil(int(orders).bit_length() / bits)


def _one_more(depth: int, bits: int) -> int:
    return gnn.orderings(depth).bit_length() // bits + 1


def _without_symmetry(depth: int, bits: int) -> int:
    return _needed(math.factorial(2**depth), bits)


@exercise("1.4", "A closed form on the binary tree")
def tree_entry(answer: Any) -> Right:
    """From the root of a binary tree to an inner node at this depth, symmetric normalisation, no loops."""
    mistakes = """
        0.5 * 3.0 ** (1 - depth) :: That is the row normalisation, A_ij / d_i: here each edge counts 1 / sqrt(d_i d_j).
        3.0 ** (1 - depth) / 6 :: The first edge counts 1 / sqrt(2 · 3), not 1 / 6.
        6 ** (-0.5) * 3.0 ** (-depth) :: One edge too many: after the first there are k - 1.
        3.0 ** (-depth) :: The root has degree 2, not 3.
        2 ** (-0.5) * 3.0 ** (1 - depth) :: A leaf has degree 1: asked is an inner node.
        3 ** (-0.5) * 4.0 ** (0.5 - depth) :: With loops the degrees are 3 and 4: asked is the tree without.
        2.0**-depth :: Half goes to each child at the root alone: an inner node has degree 3.
        6**-0.5 * 3.0 ** (1 - depth) * 2**depth :: One node is asked for, not all of that depth.
        6**-0.5 * 3.0 ** ((1 - depth) / 2) :: Between two inner nodes an edge counts 1 / sqrt(3 · 3) = 1/3.
    """
    return compare(globals(), "tree_entry(depth)", answer, _tree_entry, _cases("1", "2", "3", "5", "7"), mistakes, 1e-7)


def _tree_entry(depth: int) -> Tensor:
    return graphs.walk_bound(nx.balanced_tree(2, depth + 1), 0, depth, "symmetric", 0.0)[2**depth - 1]


@exercise("1.5", "Effective resistance")
def resistance(answer: Any) -> Right:
    """Effective resistance between two nodes."""
    given = _cases(
        "nx.path_graph(5), 0, 4",
        "nx.path_graph(4), 2, 2",
        "nx.cycle_graph(6), 0, 3",
        "nx.complete_graph(7), 1, 4",
        'graphs.family("barbell", 10), 0, 9',
        'graphs.family("karate"), 0, 33',
    )
    mistakes = """
        nx.shortest_path_length(graph, u, v) :: Those are hops: two ways in parallel have less resistance than one.
        2 * graph.number_of_edges() * right(graph, u, v) :: That is the commute time, 2 |E| R.
        _normalised(graph, u, v) :: You took the normalised Laplacian: use D - A.
        _weighted_resistance(graph, u, v) :: The karate club has edge weights: every edge is one ohm here, weight=None.
        _mixed_once(graph, u, v) :: The mixed term counts twice: (e_u - e_v) stands on both sides.
        _mixed_added(graph, u, v) :: You added the mixed term: e_u and e_v have opposite signs.
        _quadratic(_laplacian(graph), *_places(graph, u, v), mixed=0.0) :: The mixed terms are missing: (e_u - e_v) on both sides gives L_uu + L_vv - 2 L_uv.
        torch.linalg.pinv(_laplacian(graph))[tuple(_places(graph, u, v))] :: That is one entry of the pseudo-inverse: resistance needs three.
        1 / right(graph, u, v).clamp(min=1e-12) :: That is the conductance, one over the resistance.
        _quadratic(graphs.adjacency(graph), *_places(graph, u, v)) :: You inverted the adjacency matrix: the Laplacian is D - A.
        _quadratic(_laplacian(graph) + 2 * graphs.adjacency(graph), *_places(graph, u, v)) :: The Laplacian is D - A, not D + A.
        _laplacian(graph)[tuple(2 * _places(graph, u, v)[:1])] + _laplacian(graph)[tuple(2 * _places(graph, u, v)[1:])] - 2 * _laplacian(graph)[tuple(_places(graph, u, v))] :: You took the Laplacian itself: its pseudo-inverse is needed.
    """
    return compare(globals(), "resistance(graph, u, v)", answer, _resistance, given, mistakes, 1e-5)


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


def _weighted_resistance(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    return _quadratic(_laplacian(graph, "weight"), *_places(graph, u, v))


def _mixed_once(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    return _quadratic(_laplacian(graph), *_places(graph, u, v), mixed=1.0)


def _mixed_added(graph: nx.Graph, u: Any, v: Any) -> Tensor:
    return _quadratic(_laplacian(graph), *_places(graph, u, v), mixed=-2.0)


@exercise("1.6", "The best single edge")
def best_edge(answer: Any) -> Right:
    """The new edge that lowers total resistance most; of equally good ones any will do."""
    for text in (
        'graphs.family("path", 12)', 'graphs.family("tree", 15)', 'graphs.family("barbell", 12)',
        'graphs.family("grid", 16)', LETTERS, "nx.gnp_random_graph(9, 0.3, seed=20)",
    ):  # fmt: skip
        (case,) = _cases(text)
        graph = case.arguments[0]
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


@exercise(
    "1.7",
    "An edge that slows everybody down",
    guesses={
        "always falls": "Resistance always falls; commute time is 2 |E| R, and |E| grows by one.",
        "can rise": "The new edge lowers R for some pairs, and raises 2 |E| for all.",
    },
    true="can rise",
)
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


@exercise("1.8", "Sensitivity by autograd")
def sensitivity(answer: Any) -> Right:
    """The spectral norm of the derivative of one node's state by another node's input."""
    features = checks.normal(9, 4, seed=0)

    def network(name: str, layers: int) -> Callable[[Tensor], Tensor]:
        matrix, weights = graphs.adjacency(graphs.family(name, 9), "symmetric"), graphs.orthogonal_weights(layers, 4)
        return lambda x: graphs.propagate(x, matrix, weights, activation=torch.tanh)

    given = [
        Case(f"{layers} tanh layers on a {name} of 9 nodes, x, {target}, {source}", (f, features, target, source))
        for name, layers, target, source in (("path", 3, 0, 2), ("path", 3, 0, 5), ("grid", 4, 4, 8), ("grid", 4, 8, 1))
        for f in [network(name, layers)]
    ]
    given.append(Case("lambda x: x**2, x, 3, 3", (lambda x: x**2, features, 3, 3)))
    mistakes = """
        _norm_of('fro')(network, features, target, source) :: That is the Frobenius norm: asked is the spectral norm, the largest singular value.
        _norm_of('nuc')(network, features, target, source) :: That is the sum of singular values: asked is the largest.
        _norm_of('entry')(network, features, target, source) :: That is the largest entry: asked is the spectral norm.
        right(network, features, source, target) :: Target and source are exchanged: whose state, by whose input?
        torch.linalg.matrix_norm(torch.autograd.functional.jacobian(network, features)[target, source], ord=2) :: The Jacobian has the axes (n, d, n, d): J[t, s] is one entry of the state of t. Take J[t, :, s, :].
        _of_sum(network, features, target, source) :: You differentiated the sum of the state's entries: that is one row, not the whole Jacobian.
        _by_all(network, features, target, source) :: That is the norm by all inputs: asked is one node's.
        torch.linalg.matrix_norm(_jacobian(network, features, target, source), ord=1) :: That is the largest column sum: the spectral norm is the largest singular value, ord=2.
        torch.linalg.eigvals(_jacobian(network, features, target, source)).abs().max() :: That is the largest eigenvalue: a Jacobian is not symmetric, so take singular values.
        torch.linalg.svdvals(_jacobian(network, features, target, source)).min() :: That is the smallest singular value: asked is the largest.
        _jacobian(network, features, target, source).norm(dim=1).max() :: That is the longest row: asked is the largest singular value.
        _jacobian(network, features, target, source).norm(dim=0).max() :: That is the longest column: asked is the largest singular value.
    """
    return compare(
        globals(), "sensitivity(network, features, target, source)", answer, _sensitivity, given, mistakes, 1e-5
    )


def _jacobian(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.autograd.functional.jacobian(lambda y: f(y)[target], x)[:, source]


def _sensitivity(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return torch.linalg.matrix_norm(_jacobian(f, x, target, source), ord=2)


def _norm_of(kind: str) -> Callable:
    def norm(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
        jacobian = _jacobian(f, x, target, source)
        return jacobian.abs().max() if kind == "entry" else torch.linalg.matrix_norm(jacobian, ord=kind)

    return norm


def _of_sum(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    return _jacobian(f, x, target, source).sum(0).norm()


def _by_all(f: Callable, x: Tensor, target: int, source: int) -> Tensor:
    whole = torch.autograd.functional.jacobian(lambda y: f(y)[target], x)
    return torch.linalg.matrix_norm(whole.flatten(1), ord=2)


@exercise("1.9", "Balanced Forman curvature")
def forman(answer: Any) -> Right:
    """Balanced Forman curvature of one edge, by the definition."""
    given = _cases(
        "nx.cycle_graph(3), 0, 1", "nx.cycle_graph(4), 0, 1", "nx.cycle_graph(5), 0, 1", "nx.path_graph(3), 0, 1",
        "nx.complete_graph(4), 0, 1", "nx.complete_bipartite_graph(2, 3), 0, 2", "nx.barbell_graph(5, 0), 4, 5",
        "nx.petersen_graph(), 0, 1", "nx.complete_bipartite_graph(3, 3), 0, 3", *(f'graphs.family("karate"), {i}, {j}' for i, j in ((0, 1), (0, 31), (4, 10), (2, 32))),
    )  # fmt: skip
    mistakes = """
        graphs.balanced_forman_as_copied(graph)[i, j] :: That is what the most copied public code gives: a 4-cycle must have no diagonal, and its nodes are neither i nor j.
        _without_four_cycles(graph, i, j) :: The 4-cycles are missing.
        _two_over_min(graph, i, j) :: Triangles count 2 / max + 1 / min, not 2 / max + 2 / min.
        _without_triangles(graph, i, j) :: The triangles are missing.
        _leaf_not_zero(graph, i, j) :: An edge with a leaf has curvature 0, by definition.
        _gamma_by(min)(graph, i, j) :: gamma is the largest count of 4-cycles through one of these neighbours, not the smallest.
        _gamma_by(sum)(graph, i, j) :: gamma is the largest count of 4-cycles through one of these neighbours, not their sum.
        _one_end(graph, i, j) :: Both ends count: s_i + s_j, the neighbours of i and those of j.
        _cycles_for_neighbours(graph, i, j) :: s_i counts neighbours that start a 4-cycle, not the cycles.
        _min_for_max(graph, i, j) :: The 4-cycles are divided by the larger degree, not by the smaller.
        _with_diagonals(graph, i, j) :: A 4-cycle with a diagonal does not count: leave out common neighbours of i and j.
        right(graph, i, j) + 2 :: The two constants are missing: 2 / d_i + 2 / d_j - 2.
        4 - graph.degree[i] - graph.degree[j] :: That is Forman's curvature: the balanced one has 2 / d_i + 2 / d_j - 2, triangles and 4-cycles.
        0.0 if min(graph.degree[i], graph.degree[j]) == 1 else 2 / graph.degree[i] + 2 / graph.degree[j] - 2 :: Triangles and 4-cycles are missing.
        2 / graph.degree[i] + 2 / graph.degree[j] - 2 :: Triangles and 4-cycles are missing.
        2 / graph.degree[i] + 2 / graph.degree[j] - 2 + 3 * len(list(nx.common_neighbors(graph, i, j))) / max(graph.degree[i], graph.degree[j]) :: The 4-cycles are missing, and a triangle counts 2 / max + 1 / min, not 3 / max.
        _gamma_by(lambda counts: 1)(graph, i, j) :: gamma is missing: the 4-cycles are divided by it, too.
    """

    def picture() -> HTML:
        def yours(graph: nx.Graph) -> dict:
            return {edge: float(answer(graph, *edge)) for edge in graph.edges}

        return drawn(*figures.curvature("barbell", yours))

    return compare(globals(), "forman(graph, i, j)", answer, _forman, given, mistakes, picture=picture)


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


@exercise("1.10", "Less resistance, worse hearing")
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
