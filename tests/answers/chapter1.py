import functools
import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import torch

from answers import several
from course.chapter1 import checks as own
from helpers import gnn, graphs

CAN, ALWAYS = "can rise", "always falls"
GOOD = [(0, 6), (2, 10), (5, 14)]


def _walks_by_recursion(graph, u, v, steps):
    return int(u == v) if steps == 0 else sum(_walks_by_recursion(graph, u, w, steps - 1) for w in graph[v])


def _walks_in_numpy(graph, u, v, steps):
    order = list(graph)
    power = np.linalg.matrix_power(nx.to_numpy_array(graph, weight=None), steps)
    return power[order.index(u), order.index(v)]


def _resistance_with_numpy(graph, u, v):
    inverse = np.linalg.pinv(nx.laplacian_matrix(graph, weight=None).toarray())
    step = np.array([float(node == u) - float(node == v) for node in graph])
    return step @ inverse @ step


def _resistance_in_float32(graph, u, v):
    laplacian = own._laplacian(graph).float()
    inverse = torch.linalg.pinv(laplacian, hermitian=True)
    i, j = own._places(graph, u, v)
    return inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]


def _resistance_by_solving(graph, u, v):
    laplacian = own._laplacian(graph) + 1 / len(graph)
    i, j = own._places(graph, u, v)
    step = torch.zeros(len(graph), dtype=torch.float64)
    step[i] += 1
    step[j] -= 1
    return step @ torch.linalg.solve(laplacian, step)


def _best_edge(graph):
    def total(edge):
        wired = graph.copy()
        wired.add_edge(*edge)
        return graphs.total_resistance(wired)

    return min(nx.non_edges(graph), key=total)


def _best_by_formula(graph):
    order, laplacian = list(graph), own._laplacian(graph)
    inverse = torch.linalg.pinv(laplacian, hermitian=True)

    def gain(edge):
        i, j = (order.index(node) for node in edge)
        step = inverse[i] - inverse[j]
        return float(step @ step / (1 + step[i] - step[j]))

    return max(nx.non_edges(graph), key=gain)


def _furthest(graph):
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return max(itertools.combinations(graph, 2), key=lambda edge: lengths[edge[0]][edge[1]])


def _first_missing(graph):
    return next(iter(nx.non_edges(graph)))


def _by_backward(network, x, target, source):
    x = x.clone().requires_grad_()
    out = network(x)[target]
    rows = [torch.autograd.grad(out[k], x, retain_graph=True)[0][source] for k in range(len(out))]
    return torch.linalg.svdvals(torch.stack(rows))[0]


def _by_finite_differences(network, x, target, source):
    columns = []
    for k in range(x.shape[1]):
        step = torch.zeros_like(x)
        step[source, k] = 1e-6
        columns.append((network(x + step)[target] - network(x - step)[target]) / 2e-6)
    return float(torch.linalg.matrix_norm(torch.stack(columns, 1), ord=2))


def _forman(graph, i, j):
    around_i, around_j = set(graph[i]), set(graph[j])
    small, large = sorted((len(around_i), len(around_j)))
    if small == 1:
        return Fraction(0)
    t = len(around_i & around_j)
    near, far = around_i - around_j - {j}, around_j - around_i - {i}
    counts = [len(set(graph[k]) & far) for k in near] + [len(set(graph[w]) & near) for w in far]
    counts = [count for count in counts if count]
    squares = Fraction(len(counts), max(counts) * large) if counts else 0
    return Fraction(2, small) + Fraction(2, large) - 2 + Fraction(2 * t, large) + Fraction(t, small) + squares


def _star(form=tuple, leaves=4):
    return lambda: form([nx.star_graph(leaves), (1, 2)])


WRONG = {
    "1.3": [
        (lambda r, b: math.ceil(math.log2(math.factorial(2**r) / 2 ** (2**r - 1)) / b), "1, 32"),
    ],
    "1.6": [
        (lambda g: (0, 0), "two different nodes"),
        (lambda g: 5, "a pair of nodes"),
        (lambda g: next(iter(g.edges)), "no edge yet"),
        (lambda g: (99, 100), "no edge yet"),
        (_first_missing, "is possible"),
        (_furthest, "ends of the longest way|largest resistance"),
        (own._best_gap, "FoSR|largest resistance"),
        (lambda g: ([0], [1]), "no edge yet"),
        (lambda g: None, "returned nothing"),
    ],
    "1.7": [
        (several(CAN, lambda: nx.path_graph(3)), "must return a pair"),
        (several(CAN, lambda: (nx.path_graph(4), (0, 3))), "must go up"),
        (several(CAN, lambda: (nx.path_graph(20), (0, 3))), "2 to 12 nodes"),
        (several(CAN, lambda: (nx.cycle_graph(6), (0, 2))), "largest resistance"),
        (several(CAN, lambda: (nx.path_graph(4, nx.DiGraph), (0, 3))), "undirected"),
        (several(CAN, lambda: (nx.path_graph(4, nx.MultiGraph), (0, 3))), "undirected"),
        (several(CAN, lambda: (nx.Graph([(0, 1), (1, 2), (2, 2)]), (0, 2))), "undirected"),
        (several(CAN, lambda: (nx.Graph([(0, 1), (2, 3)]), (0, 2))), "connected"),
        (several(CAN, lambda: (nx.star_graph(4), ({1}, {2}))), "pair of nodes|no edge yet"),
    ],
    "1.10": [
        (several(..., ...), "still empty"),
        (several(2, ...), "factor from 0 to 1"),
        (several("half", ...), "must be a number"),
        (several(0.5, ...), "still empty"),
        (several(0.5, [(0, 6)]), "3 pairs"),
        (several(0.5, [(0, 1), (2, 10), (5, 14)]), "no edge yet"),
        (several(0.5, [(7, 11), (2, 10), (5, 14)]), "Jacobian must fall"),
        (several(0.5, [(7, 8), (11, 12), (13, 14)]), "resistance must fall"),
        (several(0.5, [(3, 9), (5, 13), (0, 10)]), "resistance must fall"),
        (several(0.5, 7), "3 pairs"),
        (several(0.5, [(0, 0), (2, 10), (5, 14)]), "two different nodes"),
        (several(0.5, [([0], [6]), (2, 10), (5, 14)]), "no edge yet"),
    ],
}

RIGHT = {
    "1.1": [_walks_in_numpy, own._walks, _walks_by_recursion, lambda *x: int(_walks_in_numpy(*x))],
    "1.2": [
        lambda g, u, n: len(nx.single_source_shortest_path_length(g, u, n)),
        lambda g, u, n: len(nx.ego_graph(g, u, n)),
        functools.partial(lambda g, u, n: torch.tensor(graphs.receptive_field(g, u, n)[-1])),
        lambda g, u, n: np.int64(len(nx.single_source_shortest_path_length(g, u, n))),
    ],
    "1.3": [
        lambda r, b: -(-(math.factorial(2**r) >> (2**r - 1)).bit_length() // b),
        functools.lru_cache(gnn.minimum_width),
        lambda r, b: next(d for d in itertools.count() if 2 ** (b * d) > math.factorial(2**r) // 2 ** (2**r - 1)),
        lambda r, b: torch.tensor(gnn.minimum_width(r, b)),
    ],
    "1.4": [
        lambda k: 1 / (math.sqrt(6) * 3 ** (k - 1)),
        lambda k: Fraction(1, 3 ** (k - 1)) / math.sqrt(6),
        lambda k: np.float32(6**-0.5 * 3.0 ** (1 - k)),
        lambda k: torch.tensor(6.0).rsqrt().double() * 3.0 ** (1 - k),
        own._tree_entry,
    ],
    "1.5": [
        _resistance_with_numpy,
        _resistance_in_float32,
        _resistance_by_solving,
        lambda g, u, v: 0.0 if u == v else nx.resistance_distance(g, u, v),
        functools.lru_cache(_resistance_with_numpy),
    ],
    "1.6": [
        _best_edge,
        _best_by_formula,
        lambda g: list(_best_edge(g)),
        lambda g: frozenset(_best_edge(g)),
        functools.lru_cache(_best_edge),
    ],
    "1.7": [
        several(CAN, _star()),
        several(CAN, _star(list)),
        several(CAN, lambda: (nx.star_graph(5), {1, 2})),
        several(CAN, lambda: (nx.star_graph(4), np.array([1, 2]))),
        several(CAN, lambda: (nx.star_graph(4), torch.tensor([3, 2]))),
    ],
    "1.8": [_by_backward, _by_finite_differences, own._sensitivity, lambda *x: np.float64(own._sensitivity(*x))],
    "1.9": [_forman, own._forman, functools.partial(_forman), lambda *x: torch.tensor(float(_forman(*x)))],
    "1.10": [
        several(0.375, GOOD),
        several(0, np.array(GOOD)),
        several(1, torch.tensor(GOOD)),
        several(Fraction(3, 8), {frozenset(edge) for edge in GOOD}),
        several(0.4, nx.Graph(GOOD).edges),
        several(0.4, (edge for edge in [*GOOD])),
        several(0.4, nx.Graph(GOOD).edges(data=True)),
    ],
}
