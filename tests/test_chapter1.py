"""What chapter 1 adds to the tree networks: the whole-graph baseline and the chain control."""

import pytest
import torch

from helpers import gnn


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
