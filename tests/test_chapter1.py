"""What chapter 1 adds: the whole-graph baseline, the chain control and its measurements."""

import math

import networkx as nx
import pandas as pd
import pytest
import scipy.stats
import torch

from course import scorecard
from course.chapter1 import claims, figures, measures
from course.evidence.rules import FAILS, HOLDS, OPEN
from course.maths import rewiring
from course.training import gnn
from helpers import data, graphs

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


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
    with pytest.raises(ValueError, match="length must be an integer of at least 0"):
        gnn.on_a_chain(task, -1)


@pytest.mark.parametrize("name", ["path", "barbell"])
def test_all_jacobians_are_those_of_every_target(name):
    graph = graphs.family(name, 8)
    rows = torch.stack([graphs.jacobian_norms(graph, node, 4) for node in graph])
    torch.testing.assert_close(measures.all_jacobians(graph, 4), rows)


def test_no_edges_gain_nothing():
    gains = measures.rewiring_gains(graphs.family("grid", 9), edges=0, seeds=2, draws=1)
    assert gains.to_numpy() == pytest.approx(1, rel=1e-6)
    found = measures.against_random(gains)
    assert (found["ahead"] <= 2 * found["s.e."]).all()


def test_a_gain_is_the_mean_over_far_pairs_with_the_same_weights():
    """By hand: a path of six, four edges of GTR, one target at a time."""
    path = nx.path_graph(6)
    wired = rewiring.rewire(path, "gtr", 4)

    def heard(graph, seed):
        rows = {v: graphs.jacobian_norms(graph, v, 5, seed=seed) for v in path}
        far = [rows[v][u].item() for u in path for v in path if abs(u - v) > 2.5]
        return sum(far) / len(far)

    gains = measures.rewiring_gains(path, seeds=2, draws=1)
    for seed in (0, 1):
        assert gains["GTR"][seed] == pytest.approx(heard(wired, seed) / heard(path, seed))
        random = rewiring.rewire(path, "random", 4, seed)
        assert gains["random"][seed] == pytest.approx(heard(random, seed) / heard(path, seed))


def test_a_method_beats_random_edges_by_two_standard_errors_of_the_paired_difference():
    """Against scipy's paired t: the weights' spread, which both share, does not count."""
    shared = pd.Series([1.0, 5.0, 9.0, 13.0])
    noise = pd.Series([0.1, -0.1, 0.1, -0.1])
    gains = pd.DataFrame(
        {"SDRF": shared - 1, "FoSR": shared + 0.1 + noise, "GTR": shared + 1 + noise}
    )
    found = measures.against_random(gains.assign(random=shared))
    for method in ("FoSR", "GTR"):
        t = scipy.stats.ttest_rel(gains[method], shared).statistic
        assert found["ahead"][method] / found["s.e."][method] == pytest.approx(t)
    assert (found["ahead"] > 2 * found["s.e."]).to_dict() == {
        "SDRF": False,
        "FoSR": False,
        "GTR": True,
    }
    assert found["gain"]["GTR"] == pytest.approx(8)
    assert found["gain s.e."].to_dict() == pytest.approx(gains.sem().to_dict()), (
        "of the gain, not of its lead"
    )
    rows = claims.four_edges_of_each()
    told = rows["rows"]
    assert rows["error"].equals(told["gain s.e."]), "a gain is judged by its own error"
    alone = claims.four_edges("GTR")
    assert alone["z"].equals(alone["rows"]["ahead"] / alone["rows"]["s.e."]), "a lead by its own"


@pytest.mark.parametrize("name", ["path", "cycle", "tree"])
def test_where_resistance_is_hops_the_two_tie(name):
    """On trees resistance is the distance, on a cycle d (n - d) / n rises with it: equal ranks, so equal correlation."""
    graph = graphs.family(name, 9)
    assert not measures.resistance_can_differ(graph)
    found = measures.predictors(graph, seeds=2)
    assert found["R - hops"] == found["s.e. of R - hops"] == 0
    assert math.isnan(found["within hops"])


def test_ranks_are_scipys_after_rounding():
    graph = graphs.family("grid", 9)
    found = measures.predictors(graph, times=2, seeds=1)
    pairs = ~torch.eye(9, dtype=torch.bool)
    heard = measures.all_jacobians(graph, 8)[pairs].numpy()
    heard = (heard / heard.max()).round(9)
    rank = scipy.stats.spearmanr(
        -rewiring.effective_resistance(graph)[pairs].numpy().round(9), heard
    ).statistic
    assert found["resistance"] == pytest.approx(rank)
    assert measures.resistance_can_differ(graph)


def test_the_ends_are_means_of_jacobians_over_draws_of_the_weights():
    def heard(layers, width, source):
        draws = [
            graphs.jacobian_norms(nx.path_graph(16), 15, layers, width, seed=s)
            for s in range(measures.SEEDS)
        ]
        return sum(draw[source].item() for draw in draws) / measures.SEEDS

    assert measures.ends(4, 16).loc["path"].tolist() == pytest.approx(
        [heard(16, 4, source) for source in (0, 15)]
    )
    assert measures.ends(4, times=2).loc["path", "own"] == pytest.approx(heard(30, 4, 15))


def test_averages_are_those_of_a_walk():
    """Two layers by hand: on a path of three the ends meet in the middle; the last of three tokens hears 1/3 of each."""
    found = measures.averages(2, 3)
    assert found["path"] == pytest.approx(1 / 2 * 1 / 3)
    assert found["causal attention"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_hops_rank_what_is_heard_on_a_path():
    found = measures.predictors(nx.path_graph(7), times=2)
    assert found["hops"] > 0.8
    assert found["bound / measured"] > 1


def test_at_equal_hops_resistance_is_ranked_inside_each_distance():
    """Two distances that hops tell apart perfectly, and inside each the order by hand: once right, once reversed."""
    table = pd.DataFrame(
        {"hops": [1, 1, 1, 2, 2, 2], "resistance": [1, 2, 3, 4, 5, 6], "heard": [6, 5, 4, 3, 2, 1]}
    )
    assert measures.correlation_within(table, "hops") == pytest.approx(-1)
    assert measures.correlation_within(
        table.assign(heard=[4, 5, 6, 3, 2, 1]), "hops"
    ) == pytest.approx(0)
    assert math.isnan(measures.correlation_within(table.assign(resistance=1), "hops"))


def test_tables_by_depth_are_what_their_command_gives():
    """A row of each is computed again."""
    row = measures.ranks_by_depth().loc[("barbell", 1)]
    found = measures.predictors(measures.examples()["barbell"], 1)
    for name in ("resistance", "R - hops", "within hops", "s.e. of within hops"):
        assert row[name] == pytest.approx(found[name], rel=1e-3)
    seeds = int(data.table("gains_by_depth").seeds[0])
    gains = measures.rewiring_gains(measures.examples()["barbell"], times=1, seeds=seeds)
    here = measures.gains_by_depth().loc[("barbell", 1)]
    for method, again in measures.against_random(gains).iterrows():
        assert here.loc[method, [*again.index]].tolist() == pytest.approx(again.tolist(), rel=1e-3)


def test_a_star_brings_every_leaf_to_two_hops_with_the_same_questions():
    few, star = (measures.fit_few(graph, 3, 20, True, most=1) for graph in ("tree", "star"))
    assert few["orders"] == star["orders"] <= 5
    assert (few["distance"], star["distance"]) == (3, 2)
    assert measures.fit_few("tree", 3, 20, most=1)["orders"] > 10
    with pytest.raises(ValueError, match="examples must be an integer from 1 to 76, not 77"):
        measures.fit_few("tree", 2, 77)
    with pytest.raises(ValueError, match="length must be 0 for the graph 'tree', not 2"):
        measures.fit_few("tree", 2, 20, length=2)


def test_few_examples_are_fitted_with_labels_at_random_and_then_nothing_is_known_of_unseen_ones():
    own, drawn = (measures.fit_few("star", 3, 30, permuted=permuted) for permuted in (False, True))
    assert own["best_train_accuracy"] == drawn["best_train_accuracy"] == 1
    assert 0.5 < drawn["steps"] / own["steps"] < 2
    assert max(own["test_accuracy"], drawn["test_accuracy"]) < 0.25


def test_the_star_as_a_network_is_the_gcn_on_the_stars_graph():
    task, star = gnn.TreeNeighborsMatch(3), gnn.build("star", 3)
    features, edges = gnn.on_a_star(task)
    whole = gnn.WholeGraph(edges, 3, task.leaves + 1)
    whole.load_state_dict(star.state_dict())
    chosen = torch.tensor([0, 9, 77])
    torch.testing.assert_close(star(task.batch(chosen)), whole(features[chosen]))
    assert sorted(nx.Graph(edges.T.tolist()).degree(node) for node in (0, 1)) == [
        3,
        11,
    ]  # a loop counts twice


def test_bits_a_number_are_the_logarithm_of_a_factorial():
    bits = measures.bits_a_number()
    assert bits["orders"][3] == pytest.approx(math.log2(40320) / 16)
    assert bits["Eq. 5"][2] == pytest.approx(math.log2(3) / 4)


def test_a_skip_connection_adds_one_to_the_own_derivative_and_to_the_bound():
    """By hand: a linear layer on two nodes with no self-weight, H + A H W: own 1, other the norm of W, here 1."""
    graph = nx.path_graph(2)
    linear = {"self_weight": 0.0, "activation": lambda x: x, "skip": True}
    assert graphs.jacobian_norms(graph, 0, 1, 4, **linear).tolist() == pytest.approx([1, 1])
    for name in ("tree", "grid"):
        graph = graphs.family(name, 9)
        norms = graphs.jacobian_norms(graph, 0, 5, 4, self_weight=0.0, skip=True)
        assert (norms <= graphs.walk_bound(graph, 0, 5, self_weight=1.0) * (1 + 1e-9)).all()


def test_every_example_has_a_place_for_every_node():
    for graph in measures.examples().values():
        assert set(figures.layout(graph)) == set(graph)


def test_attention_without_choice_gives_every_leaf_the_same_weight():
    task, network = gnn.TreeNeighborsMatch(2), gnn.build("attention", 2)
    measures.without_choice(network)
    batch = task.batch(torch.tensor([0, 4]))  # two orders of the leaves, the same question
    torch.testing.assert_close(*network(batch))


def test_a_chain_of_no_length_is_fitted():
    found = measures.fit_on_a_chain(0)
    assert found["best_train_accuracy"] == 1
    assert found["distance"] == 2
    assert found["steps"] < 1500
    assert measures.fit_on_a_chain(0, most=3)["steps"] == 3


@pytest.mark.parametrize(("depth", "batches"), [(2, 2), (3, 100)])
def test_the_run_of_the_grid_is_the_best_gcn_of_the_table(depth, batches):
    """Steps are epochs times batches: 76 and 6400 examples by 64."""
    plain = "kind == 'gcn' and not fully_adjacent and key == 'root' and depth == @depth"
    runs = data.table("tree_neighbors_match_runs").query(plain)
    best = runs.loc[runs.best_train_accuracy.idxmax()]
    found = measures.grid_runs("gcn").loc[depth]
    assert (found["steps"], found["best_train_accuracy"]) == (
        best.epochs * batches,
        best.best_train_accuracy,
    )


def test_chains_are_counted_as_in_the_table():
    rows = data.table("chains_measured")
    for row in measures.chains().itertuples():
        here = rows[rows.distance == row.distance]
        assert (row.runs, row.fitted) == (len(here), (here.best_train_accuracy == 1).sum())
        assert row.accuracy == pytest.approx(here.best_train_accuracy.mean())


RUN = {
    "seed": 0,
    "width": 32,
    "fully_adjacent": False,
    "key": "root",
    "best_train_accuracy": 0.5,
    "depth": 3,
    "curve": "0.1",
}


def test_runs_are_compared_at_equal_epochs_and_a_fitted_run_stays_fitted(monkeypatch):
    slow = RUN | {"kind": "gcn", "epochs": 40, "ended": "epochs", "curve": "0.1 0.2 0.3 0.4"}
    table = [
        slow,
        slow | {"key": "everywhere", "epochs": 20, "ended": "fitted", "curve": "0.5 0.9"},
        slow | {"fully_adjacent": True, "epochs": 25, "curve": "0.15 0.6 0.1"},
        slow | {"kind": "gin", "epochs": 30, "ended": "fitted"},
        slow
        | {
            "kind": "gin",
            "key": "everywhere",
            "epochs": 50,
            "ended": "fitted",
            "curve": "0.1 0.1 0.1 0.1 0.1",
        },
    ]
    monkeypatch.setattr(measures, "runs", lambda: pd.DataFrame(table))
    gcn, gin = measures.compare(key="everywhere").itertuples()
    assert (gcn.epochs, gcn.plain, gcn.changed, gcn.plain_fits, gcn.changed_fits) == (
        40,
        0.4,
        1,
        None,
        20,
    )
    assert (gin.plain_fits, gin.changed_fits) == (30, 50)
    assert (gcn.better, gin.better) == (True, False)
    (star,) = measures.compare(fully_adjacent=True).itertuples()
    assert (star.epochs, star.plain, star.changed) == (25, 0.2, 0.1)
    assert not star.better
    said = measures.sentence(measures.compare(key="everywhere"), "it")
    assert (
        said == "For GCN at r = 3, the accuracy after 40 epochs is 40.0%, and 100.0% with it. "
        "GIN at r = 3 fits after 30 epochs, and after 50 with it."
    )


def test_a_run_is_read_where_it_was():
    """A run of 23 epochs ended in its third ten."""
    run = pd.Series({"kind": "gcn", "epochs": 23, "ended": "epochs", "curve": "0.1 0.5 0.7"})
    assert measures.learning_curve(run).to_dict() == {10: 0.1, 20: 0.5, 23: 0.7}
    assert [measures.reached(run, epochs) for epochs in (10, 19, 22, 23)] == [0.1, 0.1, 0.5, 0.7]
    assert measures.reached(run.replace("epochs", "fitted"), 23) == 1


def test_figure_3_is_open_where_runs_were_cut_or_not_made(monkeypatch):
    paper = pd.DataFrame({2: [1.0], 3: [1.0], 4: [0.7]}, index=["gcn"])

    def found(*rows):
        table = [
            RUN | {"kind": "gcn", "depth": r, "best_train_accuracy": x, "ended": e, "epochs": 9}
            for r, x, e in rows
        ]
        monkeypatch.setattr(measures, "runs", lambda: pd.DataFrame(table))
        monkeypatch.setattr(measures, "reported", lambda: paper)
        return scorecard.CLAIMS["figure_3_comes_again"].measure()

    fitted = (2, 1.0, "fitted"), (3, 1.0, "fitted")
    assert found(*fitted, (4, 0.68, "stalled")).verdict == HOLDS
    assert found(*fitted).verdict == OPEN
    assert found(*fitted, (4, 0.3, "epochs")).verdict == OPEN
    assert found(*fitted, (4, 0.9, "stalled")).verdict == FAILS
    assert found(*fitted, (4, 0.3, "stalled")).verdict == FAILS
    assert found(*fitted, (4, 0.3, "epochs")).numbers["GCN, r = 4"] == (0.7, 0.3)
