"""Measurements of over-squashing: what a far input moves, on graphs and on Tree-NeighborsMatch."""

import math
import time
from collections.abc import Callable, Hashable

import networkx as nx
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import compute, data, gnn, graphs

METHODS = {"SDRF": "sdrf", "FoSR": "fosr", "GTR": "gtr"}
REWIRED = ("path", "tree", "barbell", "grid", "karate")


def examples() -> dict[str, nx.Graph]:
    """The graphs of chapter 1, by name: 16 nodes each, but a full tree of 15 and the karate club's 34."""
    return {name: graphs.family(name, 15 if name == "tree" else 16) for name in graphs.FAMILIES}


def hops(graph: nx.Graph) -> Int[Tensor, "n n"]:
    """Distances of all pairs, in the order of `graph.nodes`."""
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return torch.tensor([[lengths[u][v] for v in graph] for u in graph])


def all_jacobians(graph: nx.Graph, layers: int, width: int = 16) -> Float[Tensor, "n n"]:
    """`graphs.jacobian_norms` of every target, as rows, by one call of autograd."""
    matrix, weights = graphs.adjacency(graph, "symmetric"), graphs.orthogonal_weights(layers, width)
    features = torch.randn(len(graph), width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: graphs.propagate(x, matrix, weights), features, vectorize=True
    )
    return torch.linalg.matrix_norm(jacobian.transpose(1, 2), ord=2)


def geometry(graph: nx.Graph) -> dict[str, float]:
    """Diameter, resistances and cuts; beyond 20 nodes h is that of the best cut along the second eigenvector."""
    gap, cut = graphs.spectral_gap(graph), graphs.cheeger_cut if len(graph) <= 20 else graphs.sweep_cut
    return {
        "diameter": nx.diameter(graph),
        "largest R": graphs.effective_resistance(graph).max().item(),
        "R total": graphs.total_resistance(graph),
        "gap / 2": gap / 2,
        "h": cut(graph)[0],
        "sqrt(2 gap)": math.sqrt(2 * gap),
    }


def predictors(graph: nx.Graph) -> dict[str, float]:
    """Rank correlation of the Jacobian with its bound, hops and resistance, over all pairs; and bound / measured.

    Spearman's; layers = diameter + 2, symmetric normalisation, residual 1. More hops, or more resistance,
    count as less.
    """
    layers, pairs = nx.diameter(graph) + 2, ~torch.eye(len(graph), dtype=torch.bool)
    measured = all_jacobians(graph, layers)
    walks = torch.stack([graphs.walk_bound(graph, node, layers) for node in graph])
    columns = {"walks (bound)": walks, "hops": -hops(graph), "resistance": -graphs.effective_resistance(graph)}
    table = pd.DataFrame({name: values[pairs].double() for name, values in (columns | {"measured": measured}).items()})
    ranks = table.corr("spearman")["measured"].iloc[:3].to_dict()
    return {"L": layers} | ranks | {"bound / measured": (walks / measured)[pairs].median().item()}


def far_numbers(graph: nx.Graph, pair: tuple[Hashable, Hashable], layers: int, seeds: int = 5) -> dict[str, float]:
    """Resistance, commute time and Jacobian (mean over seeds) of one pair, and the gap of the graph."""
    i, j = (list(graph).index(node) for node in pair)
    return {
        "edges": graph.number_of_edges(),
        "R": graphs.effective_resistance(graph)[i, j].item(),
        "commute time": graphs.commute_time(graph)[i, j].item(),
        "gap": graphs.spectral_gap(graph),
        "far Jacobian": far_jacobian(graph, pair, layers, seeds),
    }


def far_jacobian(
    graph: nx.Graph, pair: tuple[Hashable, Hashable], layers: int, seeds: int = 5, last: nx.Graph | None = None
) -> float:
    """How much the second node hears of the first, mean over seeds; `last` is the graph of the last layer."""
    source = list(graph).index(pair[0])
    runs = [graphs.jacobian_norms(graph, pair[1], layers, seed=seed, last=last)[source] for seed in range(seeds)]
    return torch.stack(runs).mean().item()


def rewiring_gains(graph: nx.Graph, edges: int = 4, seeds: int | None = None) -> dict[str, float]:
    """Factor by which a method's edges multiply the mean Jacobian of all far pairs; random edges as the control.

    Far: more than half the diameter apart, before. Layers: the diameter. `seeds` draws of random edges (40,
    or 12 beyond 20 nodes), with the standard error of their mean.
    """
    seeds = seeds or (40 if len(graph) <= 20 else 12)
    layers, far = nx.diameter(graph), hops(graph) > nx.diameter(graph) / 2

    def gain(method: str, seed: int = 0) -> float:
        return _mean_over(far, graphs.rewire(graph, method, edges, seed), layers) / start

    start = _mean_over(far, graph, layers)
    random = torch.tensor([gain("random", seed) for seed in range(seeds)])
    gains = {name: gain(method) for name, method in METHODS.items()}
    error = random.std().item() / math.sqrt(seeds)
    return gains | {"random (mean)": random.mean().item(), "s.e.": error, "random (best)": random.max().item()}


def beats_random(gains: pd.DataFrame, method: str) -> pd.Series:
    """Whether a method gains more than the mean of random edges, beyond two standard errors."""
    return gains[method] > gains["random (mean)"] + 2 * gains["s.e."]


def _mean_over(pairs: Bool[Tensor, "n n"], graph: nx.Graph, layers: int) -> float:
    return all_jacobians(graph, layers)[pairs].mean().item()


def longer_commutes(graph: nx.Graph) -> dict[str, float]:
    """What the best single edge (GTR) does to total resistance, and the share of pairs whose commute time rises."""
    wired = graphs.rewire(graph, "gtr", 1)
    change = graphs.commute_time(wired) - graphs.commute_time(graph)
    pairs = torch.triu(torch.ones_like(change), 1).bool()
    fall = graphs.total_resistance(wired) / graphs.total_resistance(graph) - 1
    return {"total resistance": fall, "pairs with longer commute": (change > 1e-9)[pairs].double().mean().item()}


def train_tree(
    kind: str,
    depth: int,
    epochs: int,
    seed: int = 0,
    fully_adjacent: bool = False,
    change: Callable[[nn.Module], None] | None = None,
) -> pd.DataFrame:
    """Train a network on Tree-NeighborsMatch, `change`d first, and return its epochs."""
    compute.seed(seed)
    task, network = gnn.TreeNeighborsMatch(depth), gnn.build(kind, depth, fully_adjacent=fully_adjacent)
    if change:
        change(network)
    return pd.DataFrame(gnn.train(network, task, epochs=epochs, seed=seed))


def without_choice(attention: gnn.Attention) -> None:
    """Fix the query at zero, so that all leaves get the same weight: the control."""
    attention.query.data.zero_()
    attention.query.requires_grad_(False)


def fit_on_a_chain(length: int, most: int = 1500) -> dict[str, float]:
    """Train a GCN on four leaves that are 2 + length hops away, all examples at once, until it makes no error."""
    compute.seed(0)
    task, start = gnn.TreeNeighborsMatch(2), time.perf_counter()
    features, edges = gnn.on_a_chain(task, length)
    features, label = features[task.train], task.batch(task.train).label
    network = gnn.WholeGraph(edges, 3 + length, task.leaves + 1)
    optimizer, best, steps = torch.optim.Adam(network.parameters(), lr=1e-3), 0.0, 0
    while best < 1 and steps < most:
        logits = network(features)
        optimizer.zero_grad()
        F.cross_entropy(logits, label).backward()
        optimizer.step()
        best, steps = max(best, (logits.argmax(1) == label).double().mean().item()), steps + 1
    return {"distance": 2 + length, "chain: steps": steps, "seconds": time.perf_counter() - start, "accuracy": best}


def grid_runs(kind: str, fully_adjacent: bool = False) -> pd.DataFrame:
    """The best run of a network at each depth, from the grid in data/."""
    runs = data.table("tree_neighbors_match_measured")
    runs = runs[(runs["kind"] == kind) & (runs["fully_adjacent"] == fully_adjacent)]
    return runs.sort_values("best_train_accuracy").groupby("depth").last()


def tree_beside_chain(depth: int) -> dict[str, float]:
    """What the grid's GCN reached on a tree of this depth, and in how many steps."""
    run = grid_runs("gcn").loc[depth]
    batches = math.ceil(len(gnn.TreeNeighborsMatch(depth).train) / gnn.BATCH[depth])
    steps = int(run["epochs"]) * batches
    return {"tree: leaves": 2**depth, "tree: steps": steps, "tree: accuracy": run["best_train_accuracy"]}


def speed(depth: int, size: int = 1024, repeats: int = 5) -> dict[str, float]:
    """Median seconds of a training step of GCN, all nodes against what reaches the root; same weights, same batch."""
    compute.seed(0)
    task = gnn.TreeNeighborsMatch(depth)
    ours, whole = gnn.build("gcn", depth), gnn.WholeGraph(task.edges, depth + 1, task.leaves + 1)
    whole.load_state_dict(ours.state_dict())
    chosen = task.train[torch.randperm(len(task.train))[:size]]
    features, label = task.features(chosen), task.batch(chosen).label
    with torch.no_grad():
        gap = (ours(task.batch(chosen)) - whole(features)).abs().max().item()
    here = _seconds_a_step(ours, lambda: ours(task.batch(chosen)), label, repeats)
    there = _seconds_a_step(whole, lambda: whole(features), label, repeats)
    return {"r": depth, "largest difference": gap, "here": here, "all nodes": there, "ratio": there / here}


def _seconds_a_step(network: nn.Module, forward: Callable[[], Tensor], label: Tensor, repeats: int) -> float:
    optimizer, times = torch.optim.Adam(network.parameters(), lr=1e-3), []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(forward(), label).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[repeats // 2]
