"""What chapter 1 adds: the whole-graph baseline, the chain control and its measurements."""

import networkx as nx
import pytest
import torch

from helpers import gnn, graphs
from helpers.chapter1 import figures, measures


@pytest.mark.parametrize("depth", [2, 3])
def test_the_whole_graph_gives_what_the_root_network_gives(depth):
    task = gnn.TreeNeighborsMatch(depth)
    network = gnn.build("gcn", depth, 16).double()
    whole = gnn.WholeGraph(task.edges, depth + 1, task.leaves + 1, 16).double()
    whole.load_state_dict(network.state_dict())
    examples = task.train[:50]
    torch.testing.assert_close(whole(task.features(examples)), network(task.batch(examples)))


def test_a_chain_moves_the_question_away_from_the_leaves():
    task = gnn.TreeNeighborsMatch(2)
    features, edges = gnn.on_a_chain(task, 3)
    assert features.shape == (96, 10, 2)
    assert edges.shape == (2, 2 * 10 - 1)
    assert features[5, 0].tolist() == [2, 0]
    assert not features[:, 1:5].any()
    assert features[:, 5:7, 0].unique().tolist() == [1, 2]
    reached = {0}
    for hops in range(1, 6):
        reached |= {source for source, target in edges.T.tolist() if target in reached}
        leaves = {5, 6, 8, 9} & reached
        assert len(leaves) == (4 if hops == 5 else 0)
    plain, _ = gnn.on_a_chain(task, 0)
    assert torch.equal(plain, task.features(torch.arange(96)))
    with pytest.raises(ValueError, match="length must not be negative"):
        gnn.on_a_chain(task, -1)


@pytest.mark.parametrize("name", ["path", "barbell"])
def test_all_jacobians_are_those_of_every_target(name):
    graph = graphs.family(name, 8)
    rows = torch.stack([graphs.jacobian_norms(graph, node, 4) for node in graph])
    torch.testing.assert_close(measures.all_jacobians(graph, 4), rows)


def test_the_last_layer_can_have_a_graph_of_its_own():
    path = nx.path_graph(5)
    everywhere = graphs.fully_adjacent(path)
    assert measures.far_jacobian(path, (0, 4), 2, seeds=1) == 0
    assert measures.far_jacobian(path, (0, 4), 2, seeds=1, last=everywhere) > 0
    same = measures.far_jacobian(path, (0, 4), 4, seeds=1, last=path)
    assert same == pytest.approx(measures.far_jacobian(path, (0, 4), 4, seeds=1))


def test_geometry_of_a_cycle_is_known():
    found = measures.geometry(nx.cycle_graph(8))
    assert found["largest R"] == pytest.approx(2)
    assert found["R total"] == pytest.approx(42)
    assert found["h"] == pytest.approx(2 / 8)


def test_hops_and_far_numbers_follow_the_order_of_the_nodes():
    path = nx.relabel_nodes(nx.path_graph(4), {0: "d", 1: "a", 2: "c", 3: "b"})
    assert measures.hops(path)[0].tolist() == [0, 1, 2, 3]
    found = measures.far_numbers(path, ("d", "b"), 3, seeds=1)
    assert found["R"] == pytest.approx(3)
    assert found["commute time"] == pytest.approx(18)
    assert found["far Jacobian"] == pytest.approx(graphs.jacobian_norms(path, "b", 3)[0].item())


def test_no_edges_gain_nothing():
    gains = measures.rewiring_gains(graphs.family("grid", 9), edges=0, seeds=2)
    assert gains.pop("s.e.") == pytest.approx(0)
    assert all(gain == pytest.approx(1, rel=1e-6) for gain in gains.values())


def test_commute_times_rise_where_the_best_edge_does_not_serve():
    found = measures.longer_commutes(nx.karate_club_graph())
    assert found["total resistance"] < 0 < found["pairs with longer commute"] < 1


def test_hops_rank_what_is_heard_on_a_path():
    found = measures.predictors(nx.path_graph(7))
    assert found["hops"] > 0.9
    assert found["bound / measured"] > 1


def test_every_example_has_a_place_for_every_node():
    for name, graph in measures.examples().items():
        assert set(figures.places(name, graph)) == set(graph)


def test_attention_without_choice_gives_every_leaf_the_same_weight():
    task, network = gnn.TreeNeighborsMatch(2), gnn.build("attention", 2)
    measures.without_choice(network)
    batch = task.batch(torch.tensor([0, 4]))  # two orders of the leaves, the same question
    torch.testing.assert_close(*network(batch))


def test_a_chain_of_no_length_is_fitted():
    found = measures.fit_on_a_chain(0)
    assert found["accuracy"] == 1
    assert found["chain: steps"] < 1500


def test_both_ways_of_computing_agree_when_timed():
    assert measures.speed(2, size=32, repeats=1)["largest difference"] < 1e-5
