import itertools

import networkx as nx
import torch

from helpers import graphs

GOOD = [(0, 6), (2, 10), (5, 14)]


def least_total(graph):
    return min(
        nx.non_edges(graph),
        key=lambda edge: graphs.total_resistance(nx.Graph([*graph.edges, edge])),
    )


def furthest(graph):
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return max(itertools.combinations(graph, 2), key=lambda edge: lengths[edge[0]][edge[1]])


def differences(network, x, source):
    """What a small change of each entry of one node's input does to all states."""
    steps = 1e-6 * torch.eye(x.numel()).double().view(*x.shape, *x.shape)[source]
    return torch.stack([(network(x + step) - network(x - step)) / 2e-6 for step in steps])
