"""Repeat chapter 1's experiments with another width, learning rate or graph.

We want to know whether the verdicts on the claims change under these conditions.
"""

import math
from collections.abc import Callable

import networkx as nx
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course.chapter1 import measures
from course.evidence import significance
from course.maths import rewiring
from course.training import gnn
from helpers import compute, data, graphs, require

BLOCK = 10  # epochs per value of the curve


def fit_varied(
    depth: int, kind: str, key: str, width: int, rate: float, seed: int, epochs_allowed: int
) -> dict[str, str | int]:
    """Train a network on Tree-NeighborsMatch at another width and learning rate.

    Training ends when there is no error, or after `epochs_allowed` epochs.

    Args:
        depth, kind, key, width: as in `gnn.build`.
        rate: the learning rate of Adam, which is 1e-3 in the released code.

    Returns:
        One row of data/stars_varied.csv. It has the number of epochs until no error (or all epochs
            if the run still made errors), how the run ended, the best training accuracy, and under
            `curve` the mean training accuracy of each block of ten epochs.
    """
    compute.seed(seed)
    task = gnn.TreeNeighborsMatch(depth)
    network = gnn.build(kind, depth, width, False, key)
    run = pd.DataFrame(gnn.train(network, task, epochs=epochs_allowed, seed=seed, rate=rate))
    accuracy = run["train_accuracy"]
    blocks = accuracy.groupby((run["epoch"] - 1) // BLOCK).mean()
    return {
        "epochs": len(run),
        "steps": len(run) * math.ceil(len(task.train) / gnn.BATCH[depth]),
        "ended": "fitted" if accuracy.iloc[-1] == 1 else "epochs",
        "best_train_accuracy": f"{accuracy.max():.4f}",
        "test_accuracy": f"{run['test_accuracy'].iloc[-1]:.4f}",
        "curve": " ".join(f"{x:.3f}" for x in blocks),
    }


def geometric(nodes: int, radius: float, seed: int = 0) -> nx.Graph:
    """Draw random points in a square, and connect those closer than `radius`.

    The first seed that gives a connected graph is used.
    """
    return next(
        graph
        for k in range(100)
        if nx.is_connected(graph := nx.random_geometric_graph(nodes, radius, seed=100 * seed + k))
    )


def _crowds(seed: int) -> nx.Graph:
    """Build two random 3-regular graphs of 16 nodes each, connected by one edge."""
    halves = [nx.random_regular_graph(3, 16, seed=seed + k) for k in range(2)]
    graph = nx.disjoint_union(*halves)
    graph.add_edge(0, 16)
    return graph


OTHERS = {  # graphs of about 32 nodes on which no claim of the chapter was measured
    "geometric 0": lambda: geometric(32, 0.28, 0),
    "geometric 1": lambda: geometric(32, 0.28, 1),
    "geometric 2": lambda: geometric(32, 0.28, 2),
    "two crowds": lambda: _crowds(0),
    "ring of cliques": lambda: nx.ring_of_cliques(6, 5),
    "lollipop": lambda: nx.lollipop_graph(24, 8),
}


def _graph(name: str) -> nx.Graph:
    known = {**measures.examples(), **{other: make() for other, make in OTHERS.items()}}
    require.choice("graph", name, tuple(known))
    return known[name]


def ranks_elsewhere(graph: str, times: int, seeds: int) -> dict[str, float | str]:
    """Measure how well hops and resistance predict the Jacobian on another graph.

    The graph is one of `OTHERS`, and the result is one row of data/ranks_elsewhere.csv (see
    `measures.predictors`).
    """
    found = measures.predictors(_graph(graph), times, seeds)
    return {name: "" if math.isnan(value) else f"{value:.6g}" for name, value in found.items()}


def gains_elsewhere(
    graph: str, times: int, edges: int, seeds: int, draws: int
) -> dict[str, float | str]:
    """Measure the gain of each rewiring method on one of `OTHERS`, or with more edges.

    The result is one row of data/gains_elsewhere.csv.
    """
    drawn = measures.rewiring_gains(_graph(graph), edges, times, seeds, draws)
    found = measures.against_random(drawn)
    return {"random": f"{drawn['random'].mean():.6g}"} | {
        f"{name} {column}": f"{found[column][name]:.6g}"
        for name in measures.METHODS
        for column in measures.GAINED
    }


def gains_long() -> pd.DataFrame:
    """Return data/gains_elsewhere.csv with one row per method.

    The columns are graph, times, edges, method and `measures.GAINED`.
    """
    table, parts = data.table("gains_elsewhere"), []
    for method in measures.METHODS:
        names = {f"{method} {column}": column for column in measures.GAINED}
        part = table[["graph", "times", "edges", *names]].rename(columns=names)
        parts.append(part.assign(method=method))
    return pd.concat(parts, ignore_index=True)


def sensitivities(
    network: Callable[[Tensor], Tensor], features: Float[Tensor, "n width"], target: int
) -> Float[Tensor, " n"]:
    """Return the norm of d network(features)[target] / d features[s] for each node s.

    The norm is the largest singular value.
    """
    jacobian = torch.autograd.functional.jacobian(
        lambda x: network(x)[target], features, vectorize=True
    )
    return torch.linalg.matrix_norm(jacobian.movedim(1, 0), ord=2)


def _ends(make: Callable[[nx.Graph, int], Callable], width: int, seeds: int) -> pd.DataFrame:
    """Measure how sensitive one end of the longest path is to the other end and to itself.

    There is one row per graph, and the values are means over draws of the network.
    """
    rows = {}
    for name, graph in measures.examples().items():
        far, own = (list(graph).index(node) for node in graphs.far_pair(graph))
        felt = []
        for seed in range(seeds):
            generator = torch.Generator().manual_seed(seed + 1)
            x = torch.randn(len(graph), width, generator=generator, dtype=torch.float64)
            felt.append(sensitivities(make(graph, seed), x, own)[[far, own]])
        rows[name] = torch.stack(felt).mean(0).tolist()
    return pd.DataFrame(rows, index=["far", "own"]).T


def ends_gaussian(width: int, layers: int, seeds: int) -> pd.DataFrame:
    """Measure sensitivities at the ends of the longest path, with Gaussian weights.

    The function does the same as `measures.ends`, with weights of variance 1 / width instead of
    orthogonal weights.
    """

    def make(graph: nx.Graph, seed: int) -> Callable[[Tensor], Tensor]:
        generator = torch.Generator().manual_seed(seed)
        shape = (layers, 2, width, width)
        weights = torch.randn(shape, generator=generator, dtype=torch.float64) / math.sqrt(width)
        matrix = graphs.adjacency(graph, "symmetric")
        return lambda x: graphs.propagate(x, matrix, weights)

    return _ends(make, width, seeds)


def ends_with_norms(times: int, width: int = 16, seeds: int = measures.SEEDS) -> pd.DataFrame:
    """Measure sensitivities at the ends of the longest path, in networks with norms.

    The function does the same as `measures.ends`, with layers H + relu(A norm(H) W). The number of
    layers is `times` times the diameter.
    """

    def make(graph: nx.Graph, seed: int) -> Callable[[Tensor], Tensor]:
        weights = graphs.orthogonal_weights(times * nx.diameter(graph), width, seed)[:, 0]
        matrix = graphs.adjacency(graph, "symmetric")

        def network(h: Tensor) -> Tensor:
            for weight in weights:
                h = h + torch.relu(matrix @ nn.functional.layer_norm(h, (width,)) @ weight)
            return h

        return network

    return _ends(make, width, seeds)


def trained_ranks(
    graph: nx.Graph, seed: int, times: int = 2, width: int = 16, steps: int = 100
) -> dict[str, float]:
    """Train a GCN to average all inputs at each node, and correlate its Jacobian with distances.

    The right answer depends equally on all nodes, near and distant. The network has `times` D
    layers H + relu(A H W), where D is the diameter, and a linear map before and after these layers.
    Adam takes `steps` steps on 32 draws of the inputs.

    Returns:
        error: the squared error at the end, divided by the squared error of always answering zero
        over: the rank correlation of the Jacobian with minus the commute time, over all pairs
        within: the same correlation over pairs of equal distance (NaN if all values are equal)
    """
    compute.seed(seed)
    matrix, nodes = graphs.adjacency(graph, "symmetric").float(), len(graph)
    layers = times * nx.diameter(graph)
    weights = nn.Parameter(torch.randn(layers, width, width) / math.sqrt(width * layers))
    lift, read = nn.Linear(1, width), nn.Linear(width, 1)

    def network(x: Float[Tensor, "*batch n 1"]) -> Float[Tensor, "*batch n 1"]:
        h = lift(x)
        for weight in weights:
            h = h + torch.relu(matrix @ h @ weight)
        return read(h)

    optimiser = torch.optim.Adam([weights, *lift.parameters(), *read.parameters()], lr=0.005)
    errors = []
    for _ in range(steps):
        x = torch.randn(32, nodes, 1)
        wanted = x.mean(1, keepdim=True).expand_as(x)
        loss = (network(x) - wanted).square().mean() / wanted.square().mean()
        errors.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    felt = torch.stack(
        [
            torch.autograd.functional.jacobian(network, torch.randn(nodes, 1), vectorize=True)
            for _ in range(4)
        ]
    )
    pairs = ~torch.eye(nodes, dtype=torch.bool)
    table = pd.DataFrame(
        {
            "heard": felt[:, :, 0, :, 0].abs().mean(0)[pairs].double(),
            "resistance": -rewiring.effective_resistance(graph)[pairs],
            "hops": measures.hops(graph)[pairs],
        }
    ).round(9)
    return {
        "error": sum(errors[-10:]) / 10,
        "over": significance.rank_correlation(table["resistance"], table["heard"])[0],
        "within": float(measures.correlation_within(table, "hops")),
    }
