"""Tree-NeighborsMatch and its networks, against PyTorch Geometric on the whole graph."""

import math
import runpy
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from course.runs import sweep
from course.training import gnn
from helpers import data

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "gnn.py"
MESSAGE_PASSING = ("gcn", "gin", "gat", "ggnn")


@pytest.fixture(scope="module")
def pyg():
    """The names of the benchmark script, which holds the PyTorch Geometric model."""
    pytest.importorskip("torch_geometric")
    return runpy.run_path(str(BENCHMARK))


@pytest.mark.parametrize("bits", [1, 3, 16, 32, 64])
def test_minimum_width_is_the_smallest_that_satisfies_the_strict_inequality(bits):
    for depth in range(1, 9):
        width, leaves = gnn.minimum_width(depth, bits), 2**depth
        needed = Fraction(math.factorial(leaves), 2 ** (leaves - 1))
        assert 2 ** (bits * width) > needed >= 2 ** (bits * (width - 1))


def test_released_edges_leaves_and_sizes():
    """Numbers read in the released code and its data set."""
    task = gnn.TreeNeighborsMatch(2)
    arrows = {tuple(edge) for edge in task.edges.T.tolist()}
    assert arrows == {(2, 1), (3, 1), (1, 0), (5, 4), (6, 4), (4, 0)} | {(n, n) for n in range(7)}
    assert task.leaf_nodes.tolist() == [2, 3, 5, 6]
    assert gnn.TreeNeighborsMatch(3).leaf_nodes.tolist() == [3, 4, 6, 7, 10, 11, 13, 14]
    for depth, orders in zip(range(2, 9), (24, 1000, 1000, 1000, 500, 250, 125), strict=True):
        task = gnn.TreeNeighborsMatch(depth)
        assert task.orders.shape == (orders, 2**depth)
        assert len(task.train) == int(0.8 * orders) * 2**depth
        assert task.edges.shape == (2, 2 * task.nodes - 1)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_label_is_the_value_of_the_leaf_the_root_asks_for(depth):
    task = gnn.TreeNeighborsMatch(depth)
    examples = torch.cat([task.train[:50], task.test[:50]])
    batch, features = task.batch(examples), task.features(examples)
    for example in range(len(examples)):
        key = features[example, 0, 0].item()
        leaf = task.leaf_nodes[key - 1]
        assert features[example, leaf].tolist() == [key, batch.label[example].item()]
    assert features[:, :, 0].count_nonzero(1).eq(task.leaves + 1).all()
    assert features[:, task.leaf_nodes, 1].sort(1).values.eq(torch.arange(1, task.leaves + 1)).all()


@pytest.mark.parametrize("depth", [2, 4])
def test_the_split_is_disjoint_complete_and_stratified_and_repeats(depth):
    task, again = gnn.TreeNeighborsMatch(depth), gnn.TreeNeighborsMatch(depth)
    assert torch.equal(task.train, again.train)
    assert torch.equal(task.orders, again.orders)
    assert torch.cat([task.train, task.test]).sort().values.equal(torch.arange(task.orders.numel()))
    for part in (task.train, task.test):
        counts = task.batch(part).label.bincount()[1:]
        assert counts.eq(counts[0]).all()


def _perturbed(kind, depth, fully_adjacent, key, dtype):
    torch.manual_seed(depth)
    network = gnn.build(kind, depth, 16, fully_adjacent, key).to(dtype)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


def _grads(model):
    """Gradients in one order and shape for both models."""
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    return sorted((tuple(sorted(g.squeeze().shape)), g.norm().item()) for g in found.values())


@pytest.mark.parametrize("key", gnn.KEYS)
@pytest.mark.parametrize("fully_adjacent", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", MESSAGE_PASSING)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_network_is_pytorch_geometric_on_the_whole_graph(
    pyg, kind, depth, fully_adjacent, key, dtype, tolerance
):
    """Outputs, gradients and batch statistics, in training and evaluation; with gcn_norm and loops."""
    network = _perturbed(kind, depth, fully_adjacent, key, dtype)
    reference = pyg["Reference"](network, kind)
    task = gnn.TreeNeighborsMatch(depth)
    for size in (3, 60):
        examples = task.train[torch.randperm(len(task.train))[:size]]
        batch, inputs = (
            task.batch(examples),
            (task.features(examples, key), pyg["edges"](task, size)),
        )
        for training in (True, False):
            for model in (network, reference):
                model.train(training)
                model.zero_grad()
            ours, theirs = network(batch), reference(*inputs)
            F.cross_entropy(ours, batch.label).backward()
            F.cross_entropy(theirs, batch.label).backward()
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=10 * tolerance)
            for name in (
                "keys",
                "values",
                "readout",
                *(["questions"] if key == "everywhere" else []),
            ):
                pair = (getattr(model, name).weight.grad for model in (network, reference))
                torch.testing.assert_close(*pair, rtol=tolerance, atol=tolerance)
            for layer, convolution in zip(network.layers, reference.convolutions, strict=True):
                pairs = zip(_grads(layer), _grads(convolution), strict=True)
                for (shape, norm), (their_shape, their_norm) in pairs:
                    assert shape == their_shape
                    assert norm == pytest.approx(their_norm, rel=50 * tolerance, abs=20 * tolerance)
            for (_, norm), (_, their_norm) in zip(
                _grads(network.norms), _grads(reference.norms), strict=True
            ):
                assert norm == pytest.approx(their_norm, rel=50 * tolerance, abs=20 * tolerance)
    if kind == "gin":
        for layer, convolution in zip(network.layers, reference.convolutions, strict=True):
            for norm, place in zip(layer.batch_norms, (1, 4), strict=True):
                for name, ours in norm.state_dict().items():
                    theirs = convolution.nn[place].state_dict()[name]
                    torch.testing.assert_close(
                        ours, theirs, rtol=10 * tolerance, atol=10 * tolerance
                    )


def test_attention_is_transformer_conv_from_the_leaves_to_the_root(pyg):
    task, network = gnn.TreeNeighborsMatch(3), gnn.build("attention", 3, 16).double()
    examples = task.train[:40]
    convolution = pyg["convolution"]("attention", 16, network)
    features = task.features(examples).flatten(0, 1)
    x = network.keys(features[:, 0]) + network.values(features[:, 1])
    root = torch.arange(40) * task.nodes
    star = torch.stack([(root[:, None] + task.leaf_nodes).flatten(), root.repeat_interleave(8)])
    expected = network.readout((x + convolution(x, star))[root])
    torch.testing.assert_close(network(task.batch(examples)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", gnn.KINDS)
def test_examples_do_not_leak_into_each_other(kind):
    task, network = gnn.TreeNeighborsMatch(3), gnn.build(kind, 3).eval()
    whole = network(task.batch(task.train[:30]))
    alone = torch.cat([network(task.batch(example[None])) for example in task.train[:30]])
    torch.testing.assert_close(whole, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gnn.build("gat", 3, width=30), "width must be a multiple of 4 for 'gat', not 30"),
        (lambda: gnn.build("attention", 3, fully_adjacent=True), "fully_adjacent must be False"),
        (
            lambda: gnn.build("attention", 3, key="everywhere"),
            "key must be 'root' for kind 'attention'",
        ),
        (
            lambda: gnn.TreeNeighborsMatch(2).features(torch.arange(2), "leaf"),
            "key must be one of root",
        ),
        (
            lambda: gnn.train(gnn.build("gcn", 2), gnn.TreeNeighborsMatch(3)),
            "for the depth of the task, which is 3",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_training_ends_after_twenty_periods_that_are_no_better(monkeypatch):
    """As released: of 100 passes each at depth 3. A network without a gradient, which names no leaf, gets no better."""
    task, network = gnn.TreeNeighborsMatch(3), gnn.build("gcn", 3, 4)
    task.train = task.test = task.train[:1]
    wide = network.readout.in_features
    network.forward = lambda batch: network.readout(torch.zeros(len(batch.label), wide))
    monkeypatch.setattr(F, "cross_entropy", lambda logits, label: 0 * logits.sum())
    assert sum(1 for _ in gnn.train(network, task, epochs=3000)) == 2000


def test_a_row_tells_how_a_run_ended_and_how_it_got_there():
    """At depth 2 a pass over 76 examples is two batches; the curve has a value for every ten epochs."""
    short = gnn.fit("gcn", 2, 0, 32, False, "root", epochs_allowed=25)
    assert (short["epochs"], short["steps"], short["ended"]) == (25, 50, "epochs")
    fitted = gnn.fit("gin", 2, 0, 32, True, "everywhere", epochs_allowed=500)
    assert (fitted["ended"], fitted["best_train_accuracy"]) == ("fitted", "1.0000")
    assert fitted["steps"] == 2 * fitted["epochs"] < 1000
    task = gnn.TreeNeighborsMatch(2)
    torch.manual_seed(0)
    seen = [epoch.train_accuracy for epoch in gnn.train(gnn.build("gcn", 2), task, epochs=25)]
    curve = [float(value) for value in short["curve"].split()]
    assert curve == pytest.approx(
        [sum(seen[:10]) / 10, sum(seen[10:20]) / 10, sum(seen[20:]) / 5], abs=6e-4
    )
    assert float(short["best_train_accuracy"]) == pytest.approx(max(seen), abs=6e-5)


def test_the_table_of_runs_is_one_that_the_script_writes():
    """Its budgets are epochs, equal for the runs that are compared, and its head names the commands."""
    table = sweep.read(data.folder() / "tree_neighbors_match_runs.csv")
    assert (
        sum(
            line.startswith("command: python -m course.runs tree_neighbors_match_runs --")
            for line in table.head
        )
        > 0
    )
    budgets = {}
    for row in table.rows:
        epochs, allowed = int(row["epochs"]), int(row["epochs_allowed"])
        assert len(row["curve"].split()) == math.ceil(epochs / 10)
        assert row["ended"] in ("fitted", "epochs")
        assert (row["ended"] == "fitted") == (float(row["best_train_accuracy"]) == 1)
        assert epochs <= allowed
        assert epochs == allowed or row["ended"] == "fitted"
        task = gnn.TreeNeighborsMatch(int(row["depth"]))
        assert int(row["steps"]) == epochs * math.ceil(len(task.train) / gnn.BATCH[task.depth])
        budgets.setdefault((row["depth"], row["kind"]), set()).add(allowed)
    assert all(len(allowed) == 1 for allowed in budgets.values())


def test_with_the_key_everywhere_every_node_knows_it_and_with_the_key_at_the_root_only_the_root():
    task = gnn.TreeNeighborsMatch(3)
    root, everywhere = (task.features(task.train[:20], key) for key in gnn.KEYS)
    key = task.batch(task.train[:20]).key
    assert everywhere[:, :, 2].eq(key[:, None]).all()
    inner = [node for node in range(task.nodes) if node not in task.leaf_nodes.tolist()]
    assert not everywhere[:, inner, :2].any()
    assert not root[:, inner[1:]].any()
    assert torch.equal(root[:, task.leaf_nodes], everywhere[:, task.leaf_nodes, :2])
    assert torch.equal(root[:, 0, 0], key)


def test_the_benchmark_times_both_and_gives_their_ratio(pyg):
    """How large the ratio is, is for `make bench` to say: a timed test would fail on a busy machine."""
    ours, peer = pyg["seconds"](pyg["steps"]("gcn", gnn.TreeNeighborsMatch(3), 64), 3)
    assert len(ours) == len(peer) == 3
    assert pyg["median_ratio"](ours, peer) > 0
