"""The geometry of bottlenecks against networkx, exact fractions, autograd and the theorems themselves."""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course.maths import bounds, rewiring
from helpers import graphs


@st.composite
def connected(draw, most=9):
    nodes = draw(st.integers(2, most))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pairs = list(itertools.combinations(range(nodes), 2))
    return nx.Graph(tree + draw(st.lists(st.sampled_from(pairs), max_size=12)))


def test_computation_tree_counts_walks_and_receptive_field_counts_nodes():
    assert bounds.receptive_field(nx.karate_club_graph(), 0, 3) == [1, 17, 26, 34]
    assert bounds.computation_tree(nx.cycle_graph(7), 0, 70)[-1] == 2**70
    matrix = nx.to_numpy_array(nx.karate_club_graph(), weight=None) + np.eye(34)
    walks = [np.linalg.matrix_power(matrix, steps)[3].sum() for steps in range(6)]
    assert bounds.computation_tree(nx.karate_club_graph(), 3, 5, loops=True) == walks


@settings(max_examples=60)
@given(connected())
def test_resistance_is_that_of_networkx(graph):
    oracle = nx.resistance_distance(graph)
    expected = torch.tensor([[oracle[u][v] for v in graph] for u in graph], dtype=torch.float64)
    torch.testing.assert_close(
        rewiring.effective_resistance(graph), expected, rtol=1e-9, atol=1e-12
    )
    assert graphs.total_resistance(graph) == pytest.approx(
        nx.effective_graph_resistance(graph), rel=1e-9
    )


def test_edge_weights_are_ignored():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 9.0, "weight")
    assert rewiring.effective_resistance(graph)[0, 2].item() == pytest.approx(2)
    assert rewiring.spectral_gap(graph) == pytest.approx(1)


@settings(max_examples=40)
@given(connected())
def test_cheeger_inequality_holds(graph):
    """gap / 2 <= h <= sqrt(2 gap), h the least conductance of all cuts."""
    gap = rewiring.spectral_gap(graph)
    subsets = (set(s) for size in range(1, len(graph)) for s in itertools.combinations(graph, size))
    h = min(nx.conductance(graph, subset) for subset in subsets)
    assert gap / 2 - 1e-9 <= h <= math.sqrt(2 * gap) + 1e-9


CURVATURES = [
    (nx.cycle_graph(3), (0, 1), Fraction(3, 2)),
    (nx.grid_2d_graph(7, 7), ((3, 3), (3, 4)), Fraction(0)),
    (nx.barbell_graph(5, 0), (4, 5), Fraction(-6, 5)),
    (nx.balanced_tree(2, 3), (3, 7), Fraction(0)),
    (nx.petersen_graph(), (0, 1), Fraction(-2, 3)),
    (nx.karate_club_graph(), (0, 31), Fraction(-67, 48)),
]


@pytest.mark.parametrize(("graph", "edge", "value"), CURVATURES)
def test_balanced_forman_has_its_exact_values(graph, edge, value):
    curvature = rewiring.balanced_forman(graph)
    assert curvature[edge] == float(value)
    assert list(curvature) == list(graph.edges)


def _forman_by_listing_cycles(graph, i, j):
    """The definition, from networkx's list of all 4-cycles instead of neighbour sets."""
    degrees = sorted((graph.degree[i], graph.degree[j]))
    if degrees[0] == 1:
        return Fraction(0)
    squares = []
    for k, w in itertools.permutations(set(graph) - {i, j}, 2):
        path = graph.has_edge(i, k) and graph.has_edge(k, w) and graph.has_edge(w, j)
        if path and not graph.has_edge(i, w) and not graph.has_edge(k, j):
            squares.append((k, w))
    through = [
        sum(node in square for square in squares) for node in {n for s in squares for n in s}
    ]
    triangles = len(list(nx.common_neighbors(graph, i, j)))
    small, large = (Fraction(degree) for degree in degrees)
    ric = 2 / small + 2 / large - 2 + 2 * triangles / large + triangles / small
    return ric + (len(through) / (max(through) * large) if through else 0)


@settings(max_examples=80)
@given(connected())
def test_balanced_forman_is_its_definition(graph):
    for edge, value in rewiring.balanced_forman(graph).items():
        assert value == pytest.approx(float(_forman_by_listing_cycles(graph, *edge)), abs=1e-12)


def test_the_copied_formula_is_wrong_where_it_is_known_to_be():
    """A control that must fail: the values of the most copied public code, and the right ones."""
    for graph, edge, wrong, right in (
        (nx.complete_graph(4), (0, 1), 2, 4 / 3),
        (nx.barbell_graph(5, 0), (4, 5), -0.8, -1.2),
        (nx.karate_club_graph(), (0, 1), 0.07421875, 0.125),
    ):
        assert rewiring.balanced_forman_as_copied(graph)[edge] == pytest.approx(wrong, abs=1e-12)
        assert rewiring.balanced_forman(graph)[edge] == pytest.approx(right, abs=1e-12)


def test_powers_of_the_normalised_adjacency_of_a_binary_tree():
    for depth, row, symmetric in (
        (2, 1 / 6, 0.1360828),
        (3, 1 / 18, 0.0453609),
        (4, 1 / 54, 0.0151203),
    ):
        tree, node = nx.balanced_tree(2, depth + 1), 2**depth - 1
        assert graphs.walk_bound(tree, 0, depth, "row", 0)[node].item() == pytest.approx(
            row, rel=1e-12
        )
        value = graphs.walk_bound(tree, 0, depth, "symmetric", 0)[node].item()
        assert value == pytest.approx(symmetric, abs=1e-7)


@pytest.mark.parametrize("activation", [torch.relu, torch.tanh, lambda x: x])
def test_no_jacobian_exceeds_its_bounds(activation):
    """Topping et al. Lemma 1, Di Giovanni et al. Theorem 3.2, Black et al.: a random sweep, no violation."""
    cases = 0
    for seed, name in enumerate(graphs._FAMILIES * 3):
        graph = graphs.family(name, 6 + seed)
        target = list(graph)[seed % len(graph)]
        layers, self_weight = 1 + seed % 5, (0.0, 1.0, 0.5)[seed % 3]
        for normalisation in graphs._NORMALISATIONS:
            norms = graphs.jacobian_norms(
                graph, target, layers, 5, normalisation, self_weight, activation, seed
            )
            bound = graphs.walk_bound(graph, target, layers, normalisation, self_weight)
            assert (norms <= bound * (1 + 1e-9) + 1e-12).all()
            cases += len(graph)
    assert cases > 900


@pytest.mark.parametrize("method", rewiring.METHODS)
@pytest.mark.parametrize("name", graphs._FAMILIES)
def test_rewiring_adds_the_edges_one_by_one_and_leaves_the_graph_alone(method, name):
    graph = graphs.family(name, 10)
    before = set(graph.edges)
    two, three = rewiring.rewire(graph, method, 2), rewiring.rewire(graph, method, 3)
    assert set(graph.edges) == before
    assert set(two.edges) < set(three.edges)
    assert three.number_of_edges() == len(before) + 3
    added = [edge for *edge, mark in three.edges(data="added") if mark == method]
    assert len(added) == 3
    assert rewiring.rewire(graph, method, 0).edges == graph.edges
    assert graphs.total_resistance(three) < graphs.total_resistance(graph)


@settings(max_examples=30)
@given(connected(7))
def test_gtr_takes_the_edge_that_lowers_total_resistance_most(graph):
    free = list(nx.non_edges(graph))
    if free:
        best = min(graphs.total_resistance(nx.Graph([*graph.edges, edge])) for edge in free)
        chosen = graphs.total_resistance(rewiring.rewire(graph, "gtr", 1))
        assert chosen == pytest.approx(best, rel=1e-8)


def test_every_method_can_fill_the_graph():
    for method in rewiring.METHODS:
        full = rewiring.rewire(nx.path_graph(6), method, 10)
        assert full.number_of_edges() == 15


def _fosr_by_the_paper(graph):
    """Karhadkar et al. (2023), Section 4: the pair without an edge of least x_u x_v / sqrt((1 + d_u) (1 + d_v)).

    x is the second eigenvector of D^-1/2 A D^-1/2, from networkx's Laplacian; None where it is not unique.
    """
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph, weight=None).toarray())
    if values[2] - values[1] < 1e-6:
        return None
    y = {
        node: x / math.sqrt(1 + graph.degree[node])
        for node, x in zip(graph, vectors[:, 1], strict=True)
    }
    return {frozenset((u, v)): y[u] * y[v] for u, v in nx.non_edges(graph)}


def test_fosr_takes_the_pair_of_the_papers_formula():
    """On graphs whose degrees differ, where other weights of the degrees take other pairs."""
    tried = 0
    for seed in range(40):
        graph = nx.powerlaw_cluster_graph(12, 2, 0.3, seed=seed)
        if scores := _fosr_by_the_paper(graph):
            (pair,) = (
                {u, v}
                for u, v, mark in rewiring.rewire(graph, "fosr", 1).edges(data="added")
                if mark
            )
            assert scores[frozenset(pair)] == pytest.approx(min(scores.values()), abs=1e-9)
            tried += 1
    assert tried > 30


def test_sdrf_takes_the_edge_that_raises_the_least_curvature_most():
    """Topping et al. (2022), Algorithm 1 with tau infinite, on the curvature that lists all cycles."""
    for graph in (nx.barbell_graph(4, 1), nx.lollipop_graph(4, 3), nx.karate_club_graph()):
        before = {edge: _forman_by_listing_cycles(graph, *edge) for edge in graph.edges}
        least = min(before.values())
        wired = rewiring.rewire(graph, "sdrf", 1)
        added = {frozenset(pair) for *pair, mark in wired.edges(data="added") if mark}
        best = []
        for (i, j), value in before.items():
            around = itertools.product({*graph[i], i}, {*graph[j], j})
            pairs = {
                frozenset(pair)
                for pair in around
                if len(set(pair)) == 2 and not graph.has_edge(*pair)
            }
            if value == least and pairs:
                gains = {
                    pair: _forman_by_listing_cycles(nx.Graph([*graph.edges, pair]), i, j) - value
                    for pair in pairs
                }
                best.append({pair for pair, gain in gains.items() if gain == max(gains.values())})
        assert any(added <= pairs for pairs in best)
