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

from helpers import graphs


@st.composite
def connected(draw, most=9):
    nodes = draw(st.integers(2, most))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pairs = list(itertools.combinations(range(nodes), 2))
    return nx.Graph(tree + draw(st.lists(st.sampled_from(pairs), max_size=12)))


BAD = {
    "disconnected": nx.Graph([(0, 1), (2, 3)]),
    "loop": nx.Graph([(0, 1), (1, 1)]),
    "one node": nx.empty_graph(1),
    "no node": nx.Graph(),
    "directed": nx.DiGraph([(0, 1)]),
    "multigraph": nx.MultiGraph([(0, 1)]),
    "no graph": None,
}
FUNCTIONS = [
    graphs.effective_resistance,
    graphs.commute_time,
    graphs.total_resistance,
    graphs.balanced_forman,
    graphs.balanced_forman_as_copied,
    graphs.spectral_gap,
    graphs.cheeger_cut,
    graphs.sweep_cut,
    graphs.far_pair,
    graphs.adjacency,
    lambda graph: graphs.rewire(graph, "gtr", 1),
    lambda graph: graphs.jacobian_norms(graph, 0, 2),
    lambda graph: graphs.receptive_field(graph, 0, 2),
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_refuses_a_graph_it_cannot_treat(function, bad):
    with pytest.raises(ValueError, match="graph must"):
        function(BAD[bad])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: graphs.rewire(g, "magic", 1), "method must be one of sdrf, fosr, gtr, random, not"),
        (lambda g: graphs.rewire(g, "gtr", -1), "edges must be an integer from 0 to 6"),
        (lambda g: graphs.rewire(g, "gtr", 7), "edges must be an integer from 0 to 6"),
        (lambda g: graphs.rewire(g, "gtr", 1.5), "edges must be"),
        (lambda g: graphs.adjacency(g, "column"), "normalisation must be one of none, row, symmetric"),
        (lambda g: graphs.walk_bound(g, 17, 2), "target must be a node of the graph, not 17"),
        (lambda g: graphs.walk_bound(g, 0, 0), "layers must be an integer of at least 1, not 0"),
        (lambda g: graphs.computation_tree(g, 0, -1), "layers must be an integer of at least 0"),
        (lambda g: graphs.jacobian_norms(g, 0, 2, width=0), "width must be"),
        (lambda g: graphs.family("torus"), "name must be one of path, cycle"),
        (lambda g: graphs.family("path", 2), "nodes must be an integer of at least 6"),
        (lambda g: graphs.cheeger_cut(nx.path_graph(21)), "at most 20 nodes, not 21"),
    ],
)
def test_a_bad_argument_is_named_with_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=message):
        call(nx.path_graph(5))


def test_computation_tree_counts_walks_and_receptive_field_counts_nodes():
    tree = nx.balanced_tree(2, 4)
    assert graphs.receptive_field(tree, 0, 4) == [1, 3, 7, 15, 31]
    assert graphs.computation_tree(nx.cycle_graph(7), 0, 70)[-1] == 2**70
    matrix = nx.to_numpy_array(nx.karate_club_graph(), weight=None) + np.eye(34)
    walks = [np.linalg.matrix_power(matrix, steps)[3].sum() for steps in range(6)]
    assert graphs.computation_tree(nx.karate_club_graph(), 3, 5, loops=True) == walks


def test_effective_resistance_is_that_of_networkx():
    for name in graphs.FAMILIES:
        graph = graphs.family(name, 12)
        oracle = nx.resistance_distance(graph)
        ours = graphs.effective_resistance(graph)
        expected = torch.tensor([[oracle[u][v] for v in graph] for u in graph], dtype=torch.float64)
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)
        assert graphs.total_resistance(graph) == pytest.approx(ours.triu().sum().item(), rel=1e-9)
        assert graphs.total_resistance(graph) == pytest.approx(nx.effective_graph_resistance(graph), rel=1e-9)


def test_edge_weights_are_ignored():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 9.0, "weight")
    assert graphs.effective_resistance(graph)[0, 2].item() == pytest.approx(2)
    assert graphs.spectral_gap(graph) == pytest.approx(1)


@settings(max_examples=60)
@given(connected())
def test_resistance_is_a_metric_that_sums_to_n_minus_1_over_the_edges(graph):
    """Foster (1949): the resistances of the edges sum to n - 1."""
    resistance = graphs.effective_resistance(graph)
    place = {node: number for number, node in enumerate(graph)}
    foster = sum(resistance[place[u], place[v]].item() for u, v in graph.edges)
    assert foster == pytest.approx(len(graph) - 1, rel=1e-9)
    assert torch.equal(resistance, resistance.T)
    assert (resistance[~torch.eye(len(graph), dtype=torch.bool)] > 0).all()
    assert (resistance[:, :, None] <= resistance[:, None] + resistance.T[None] + 1e-9).all()


@settings(max_examples=40)
@given(connected(), st.data())
def test_an_added_edge_never_raises_a_resistance(graph, data):
    """Rayleigh's monotonicity. Commute time has |E| in front and may rise."""
    free = list(nx.non_edges(graph))
    if free:
        more = graph.copy()
        more.add_edge(*data.draw(st.sampled_from(free)))
        assert (graphs.effective_resistance(more) <= graphs.effective_resistance(graph) + 1e-9).all()


def test_commute_time_rises_where_an_edge_does_not_help():
    path = nx.path_graph(6)
    more = nx.Graph([*path.edges, (0, 2)])
    assert graphs.commute_time(more)[4, 5].item() == pytest.approx(12)
    assert graphs.commute_time(path)[4, 5].item() == pytest.approx(10)


def test_spectral_gap_of_graphs_with_known_spectra():
    for nodes in (3, 8, 11):
        assert graphs.spectral_gap(nx.cycle_graph(nodes)) == pytest.approx(1 - math.cos(2 * math.pi / nodes))
        assert graphs.spectral_gap(nx.complete_graph(nodes)) == pytest.approx(nodes / (nodes - 1))
    assert graphs.spectral_gap(nx.hypercube_graph(4)) == pytest.approx(2 / 4)


@settings(max_examples=40)
@given(connected())
def test_cheeger_inequality_holds_and_the_sweep_cut_keeps_its_guarantee(graph):
    gap, (h, side), sweep = graphs.spectral_gap(graph), graphs.cheeger_cut(graph), graphs.sweep_cut(graph)[0]
    assert gap / 2 - 1e-9 <= h <= sweep + 1e-9 <= math.sqrt(2 * gap) + 2e-9
    assert h == pytest.approx(nx.conductance(graph, side))
    subsets = (set(s) for size in range(1, len(graph)) for s in itertools.combinations(graph, size))
    assert h == pytest.approx(min(nx.conductance(graph, subset) for subset in subsets))


def _regular_tree(degree):
    """All nodes but the outermost have this degree; edge (0, 1) is well inside."""
    tree = nx.balanced_tree(degree - 1, 4)
    second = nx.relabel_nodes(tree, {0: 1, **{node: f"b{node}" for node in tree if node}})
    first = nx.relabel_nodes(tree, {node: f"a{node}" for node in tree if node})
    graph = nx.compose(first, second)
    graph.add_edge(0, 1)
    return graph


CURVATURES = [
    ("triangle", nx.cycle_graph(3), (0, 1), Fraction(3, 2)),
    ("square", nx.cycle_graph(4), (0, 1), Fraction(1)),
    ("pentagon", nx.cycle_graph(5), (0, 1), Fraction(0)),
    ("long cycle", nx.cycle_graph(9), (0, 1), Fraction(0)),
    *((f"K{n}", nx.complete_graph(n), (0, 1), Fraction(n, n - 1)) for n in (3, 4, 5, 8)),
    ("grid", nx.grid_2d_graph(7, 7), ((3, 3), (3, 4)), Fraction(0)),
    ("3-D grid", nx.grid_graph((5, 5, 5)), ((2, 2, 2), (2, 2, 1)), Fraction(0)),
    *((f"{d}-regular tree", _regular_tree(d), (0, 1), Fraction(4, d) - 2) for d in (3, 4, 5)),
    ("binary tree root", nx.balanced_tree(2, 3), (0, 1), Fraction(-1, 3)),
    ("binary tree leaf", nx.balanced_tree(2, 3), (3, 7), Fraction(0)),
    *((f"barbell {m}", nx.barbell_graph(m, 0), (m - 1, m), Fraction(4, m) - 2) for m in (4, 5, 10)),
    ("K33", nx.complete_bipartite_graph(3, 3), (0, 3), Fraction(0)),
    ("K23", nx.complete_bipartite_graph(2, 3), (0, 2), Fraction(1, 6)),
    ("Petersen", nx.petersen_graph(), (0, 1), Fraction(-2, 3)),
    ("cube", nx.hypercube_graph(3), ((0, 0, 0), (0, 0, 1)), Fraction(2, 3)),
    ("karate", nx.karate_club_graph(), (0, 1), Fraction(1, 8)),
    ("karate least", nx.karate_club_graph(), (0, 31), Fraction(-67, 48)),
    ("karate most", nx.karate_club_graph(), (4, 10), Fraction(1)),
]


@pytest.mark.parametrize(("name", "graph", "edge", "value"), CURVATURES, ids=[row[0] for row in CURVATURES])
def test_balanced_forman_has_its_exact_values(name, graph, edge, value):
    curvature = graphs.balanced_forman(graph)
    assert curvature.get(edge, curvature.get(edge[::-1])) == float(value)
    assert list(curvature) == list(graph.edges)


def test_balanced_forman_of_the_karate_club():
    values = graphs.balanced_forman(nx.karate_club_graph()).values()
    assert (min(values), max(values)) == (float(Fraction(-67, 48)), 1)
    assert sum(values) / 78 == pytest.approx(-0.2210542, abs=1e-7)
    assert sum(value < 0 for value in values) == 54


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
    through = [sum(node in square for square in squares) for node in {n for s in squares for n in s}]
    triangles = len(list(nx.common_neighbors(graph, i, j)))
    small, large = (Fraction(degree) for degree in degrees)
    ric = 2 / small + 2 / large - 2 + 2 * triangles / large + triangles / small
    return ric + (len(through) / (max(through) * large) if through else 0)


@settings(max_examples=80)
@given(connected())
def test_balanced_forman_is_its_definition(graph):
    for edge, value in graphs.balanced_forman(graph).items():
        assert value == pytest.approx(float(_forman_by_listing_cycles(graph, *edge)), abs=1e-12)


def test_the_copied_formula_is_wrong_where_it_is_known_to_be():
    """A control that must fail: the values of the most copied public code."""
    for graph, edge, value in (
        (nx.cycle_graph(5), (0, 1), 1),
        (nx.complete_graph(4), (0, 1), 2),
        (nx.complete_graph(5), (0, 1), 1.75),
        (nx.barbell_graph(5, 0), (4, 5), -0.8),
        (nx.grid_2d_graph(7, 7), ((3, 3), (3, 4)), -0.5),
        (_regular_tree(3), (0, 1), 0),
        (nx.karate_club_graph(), (0, 1), 0.07421875),
    ):
        wrong, right = graphs.balanced_forman_as_copied(graph), graphs.balanced_forman(graph)
        assert wrong[edge] == pytest.approx(value, abs=1e-12)
        assert abs(wrong[edge] - right[edge]) > 0.05


@settings(max_examples=40)
@given(connected())
def test_curvature_bounded_below_bounds_gap_and_cheeger_constant(graph):
    """Proposition 5 of Topping et al. (2022): Ric >= k > 0 on every edge gives gap >= k and h >= k / 2."""
    least = min(graphs.balanced_forman(graph).values())
    if least > 0:
        assert graphs.spectral_gap(graph) >= least - 1e-9
        assert graphs.cheeger_cut(graph)[0] >= least / 2 - 1e-9


def test_powers_of_the_normalised_adjacency_of_a_binary_tree():
    for depth, row, symmetric in ((2, 1 / 6, 0.1360828), (3, 1 / 18, 0.0453609), (4, 1 / 54, 0.0151203)):
        tree, node = nx.balanced_tree(2, depth + 1), 2**depth - 1
        assert graphs.walk_bound(tree, 0, depth, "row", 0)[node].item() == pytest.approx(row, rel=1e-12)
        value = graphs.walk_bound(tree, 0, depth, "symmetric", 0)[node].item()
        assert value == pytest.approx(symmetric, abs=1e-7)


@pytest.mark.parametrize("activation", [torch.relu, torch.tanh, lambda x: x])
def test_no_jacobian_exceeds_its_bounds(activation):
    """Topping et al. Lemma 1, Di Giovanni et al. Theorem 3.2, Black et al.: a random sweep, no violation."""
    cases = 0
    for seed, name in enumerate(graphs.FAMILIES * 3):
        graph = graphs.family(name, 6 + seed)
        target = list(graph)[seed % len(graph)]
        layers, self_weight = 1 + seed % 5, (0.0, 1.0, 0.5)[seed % 3]
        for normalisation in graphs.NORMALISATIONS:
            norms = graphs.jacobian_norms(graph, target, layers, 5, normalisation, self_weight, activation, seed)
            bound = graphs.walk_bound(graph, target, layers, normalisation, self_weight)
            assert (norms <= bound * (1 + 1e-9) + 1e-12).all()
            cases += len(graph)
        norms = graphs.jacobian_norms(graph, target, layers, 5, activation=activation, seed=seed)
        assert (norms <= graphs.resistance_bound(graph, target, layers) + 1e-9).all()
    assert cases > 900


@settings(max_examples=60)
@given(connected(), st.integers(1, 12))
def test_resistance_bounds_the_sum_of_all_walks(graph, layers):
    """The matrix inequality under Black et al. (2023), also where the graph is bipartite."""
    step = graphs.adjacency(graph, "symmetric")
    walks = sum(torch.linalg.matrix_power(step, length) for length in range(layers + 1))
    for row, target in enumerate(graph):
        bound = graphs.resistance_bound(graph, target, layers) / 2**layers
        assert (walks[row] <= bound + 1e-9).all()
        assert (graphs.walk_bound(graph, target, layers) <= 2**layers * walks[row] + 1e-9).all()


def test_propagate_is_bounded_in_the_entrywise_norm_of_theorem_3_2():
    """Di Giovanni et al. (2023): row sums of |entries| <= (w p)^m (S^m)_vu, w the largest weight, p width."""
    generator = torch.Generator().manual_seed(0)
    graph, width, layers = graphs.family("barbell", 8), 4, 3
    matrix = graphs.adjacency(graph, "symmetric")
    weights = torch.randn(layers, 2, width, width, generator=generator, dtype=torch.float64)
    features = torch.randn(len(graph), width, generator=generator, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: graphs.propagate(x, matrix, weights), features)
    rate = weights.abs().max().item() * width
    bound = torch.linalg.matrix_power(torch.eye(len(graph)) + matrix, layers) * rate**layers
    assert (jacobian.abs().sum(dim=3).amax(dim=1) <= bound + 1e-9).all()


@pytest.mark.parametrize("method", graphs.METHODS)
@pytest.mark.parametrize("name", graphs.FAMILIES)
def test_rewiring_adds_the_edges_one_by_one_and_leaves_the_graph_alone(method, name):
    graph = graphs.family(name, 10)
    before = set(graph.edges)
    two, three = graphs.rewire(graph, method, 2), graphs.rewire(graph, method, 3)
    assert set(graph.edges) == before
    assert set(two.edges) < set(three.edges)
    assert three.number_of_edges() == len(before) + 3
    added = [edge for *edge, mark in three.edges(data="added") if mark == method]
    assert len(added) == 3
    assert graphs.rewire(graph, method, 0).edges == graph.edges
    assert graphs.total_resistance(three) < graphs.total_resistance(graph)


@settings(max_examples=30)
@given(connected(7))
def test_gtr_takes_the_edge_that_lowers_total_resistance_most(graph):
    free = list(nx.non_edges(graph))
    if free:
        best = min(graphs.total_resistance(nx.Graph([*graph.edges, edge])) for edge in free)
        chosen = graphs.total_resistance(graphs.rewire(graph, "gtr", 1))
        assert chosen == pytest.approx(best, rel=1e-8)


def test_every_method_can_fill_the_graph():
    for method in graphs.METHODS:
        full = graphs.rewire(nx.path_graph(6), method, 10)
        assert full.number_of_edges() == 15


def test_sdrf_supports_the_bridge():
    barbell = nx.barbell_graph(5, 0)
    wired = graphs.rewire(barbell, "sdrf", 1)
    assert graphs.balanced_forman(wired)[4, 5] > graphs.balanced_forman(barbell)[4, 5]


def _fosr_by_the_paper(graph, weight):
    """Karhadkar et al. (2023), Section 4: the pair without an edge of least x_u x_v / sqrt((1 + d_u) (1 + d_v)).

    x is the second eigenvector of D^-1/2 A D^-1/2, from networkx's Laplacian; None where it is not unique.
    """
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph, weight=None).toarray())
    if len(graph) < 3 or values[2] - values[1] < 1e-6:
        return None
    x = dict(zip(graph, vectors[:, 1], strict=True))
    return {(u, v): x[u] * x[v] * weight((1 + graph.degree[u]) * (1 + graph.degree[v])) for u, v in nx.non_edges(graph)}


def test_fosr_takes_the_pair_of_the_papers_formula():
    """On graphs whose degrees differ, so that other weights of the degrees (the controls) take other pairs."""
    different, tried = 0, 0
    wrong = (math.sqrt, lambda product: 1.0, lambda product: 1 / product)
    for seed in range(40):
        graph = nx.powerlaw_cluster_graph(12, 2, 0.3, seed=seed)
        scores = _fosr_by_the_paper(graph, lambda product: 1 / math.sqrt(product))
        if scores is None:
            continue
        edge = next(tuple(pair) for *pair, mark in graphs.rewire(graph, "fosr", 1).edges(data="added") if mark)
        chosen = scores[edge] if edge in scores else scores[edge[::-1]]
        assert chosen == pytest.approx(min(scores.values()), abs=1e-9)
        others = [_fosr_by_the_paper(graph, weight) for weight in wrong]
        picks = {frozenset(min(other, key=other.get)) for other in others}
        different += any(pick != frozenset(edge) for pick in picks)
        tried += 1
    assert tried > 30
    assert different > 10


def test_sdrf_takes_the_edge_that_raises_the_least_curvature_most():
    """Topping et al. (2022), Algorithm 1 with tau infinite, on the curvature that lists all cycles."""
    for graph in (nx.barbell_graph(4, 1), nx.lollipop_graph(4, 3), nx.karate_club_graph()):
        before = {edge: _forman_by_listing_cycles(graph, *edge) for edge in graph.edges}
        least = min(before.values())
        wired = graphs.rewire(graph, "sdrf", 1)
        added = {frozenset(pair) for *pair, mark in wired.edges(data="added") if mark}
        best = []
        for (i, j), value in before.items():
            around = itertools.product({*graph[i], i}, {*graph[j], j})
            pairs = {frozenset(pair) for pair in around if len(set(pair)) == 2 and not graph.has_edge(*pair)}
            if value == least and pairs:
                gains = {
                    pair: _forman_by_listing_cycles(nx.Graph([*graph.edges, pair]), i, j) - value for pair in pairs
                }
                best.append({pair for pair, gain in gains.items() if gain == max(gains.values())})
        assert any(added <= pairs for pairs in best)


def test_fosr_raises_the_gap_of_a_barbell_more_than_random_edges_do():
    barbell = graphs.family("barbell", 16)
    gaps = [graphs.spectral_gap(graphs.rewire(barbell, "random", 3, seed=seed)) for seed in range(10)]
    assert graphs.spectral_gap(graphs.rewire(barbell, "fosr", 3)) > sum(gaps) / len(gaps)
