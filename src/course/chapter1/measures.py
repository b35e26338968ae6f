"""Measure over-squashing on graphs and trees.

Over-squashing means that an output hardly changes with a distant input.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

import networkx as nx
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course.evidence import significance
from course.maths import rewiring
from course.training import gnn
from helpers import attention, compute, data, graphs, require

METHODS = {"SDRF": "sdrf", "FoSR": "fosr", "GTR": "gtr"}
# "gain s.e." belongs to the gain, "s.e." to the lead over random edges
GAINED = ("gain", "gain s.e.", "ahead", "s.e.")
NETWORKS = ("gcn", "gin", "gat", "ggnn")
SEEDS = 8
FEW = 76  # examples of the chain control
BLOCK = 10  # epochs per value of a run's curve


FAMILIES = ("path", "cycle", "tree", "barbell", "grid", "expander", "karate")


def examples() -> dict[str, nx.Graph]:
    """Return the example graphs of chapter 1, keyed by name.

    The graphs have 16 nodes each, except the full tree with 15 and the karate club with 34.
    """
    return {name: graphs.family(name, 15 if name == "tree" else 16) for name in FAMILIES}


def hops(graph: nx.Graph) -> Int[Tensor, "n n"]:
    """Return the number of hops between each pair of nodes, in the order of `graph.nodes`."""
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return torch.tensor([[lengths[u][v] for v in graph] for u in graph])


def all_jacobians(
    graph: nx.Graph, layers: int, width: int = 16, seed: int = 0, skip: bool = False
) -> Float[Tensor, "n n"]:
    """Return the norm of each node's Jacobian with respect to each node's input.

    There is one row per target node. A row has the values of `graphs.jacobian_norms`, but here one
    call of autograd computes all rows.

    Args:
        skip: use the network with skip connections of `ends`.
    """
    matrix, weights = (
        graphs.adjacency(graph, "symmetric"),
        graphs.orthogonal_weights(layers, width, seed),
    )
    generator = torch.Generator().manual_seed(seed + 1)
    features = torch.randn(len(graph), width, generator=generator, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: graphs.propagate(x, matrix, weights, 0.0 if skip else 1.0, skip=skip),
        features,
        vectorize=True,
    )
    return torch.linalg.matrix_norm(jacobian.transpose(1, 2), ord=2)


def predictors(
    graph: nx.Graph, times: int = 1, seeds: int = SEEDS, skip: bool = False
) -> dict[str, float]:
    """Measure how well hops, resistance and a bound predict the Jacobian.

    We compute rank correlations over all pairs of nodes. More hops and more resistance should mean
    less influence, so we negate both. Values are divided by the largest value and rounded to nine
    decimals, so that values that differ only by rounding errors count as equal.

    Args:
        times: the number of layers, as a multiple of the graph's diameter.
        seeds: the number of draws of the weights.
        skip: use the network with skip connections of `ends`.

    Returns:
        The following numbers, as means over the seeds.
        `walks`, `hops`, `resistance`: Spearman's correlation of each with the norms of the
            Jacobian.
        `R - hops`: the correlation with the resistance minus the correlation with the hops.
        `within hops`: the correlation of the resistance over pairs of equal distance
            (`correlation_within`).
        `bound / measured`: the median of the bound divided by the measured norm.
        `s.e. of ...`: the standard errors of `R - hops` and `within hops` over the seeds.
    """
    layers, pairs = times * nx.diameter(graph), ~torch.eye(len(graph), dtype=torch.bool)
    walks = torch.stack([graphs.walk_bound(graph, node, layers) for node in graph])
    known = {
        "walks": walks,
        "hops": -hops(graph),
        "resistance": -rewiring.effective_resistance(graph),
    }
    rows = []
    for seed in range(seeds):
        heard = all_jacobians(graph, layers, seed=seed, skip=skip)
        table = pd.DataFrame(
            {name: values[pairs].double() for name, values in (known | {"heard": heard}).items()}
        )
        table = (table / table.abs().max()).round(9)
        row = {
            name: significance.rank_correlation(table[name], table["heard"])[0] for name in known
        }
        row |= {
            "R - hops": row["resistance"] - row["hops"],
            "within hops": correlation_within(table, "hops"),
        }
        rows.append(row | {"bound / measured": (walks / heard)[pairs].median().item()})
    rows = pd.DataFrame(rows)
    errors = {
        f"s.e. of {name}": significance.standard_error(rows[name])
        if rows[name].notna().all()
        else math.nan
        for name in ("R - hops", "within hops")
    }
    return {"layers": layers} | rows.mean().to_dict() | errors


def correlation_within(table: pd.DataFrame, group: str) -> float:
    """Return the rank correlation of "resistance" and "heard", with ranks within each group.

    If each group has the pairs at one distance, the result shows what resistance adds to the number
    of hops. The result is NaN if one of the columns has equal values within each group.
    """
    columns = ["resistance", "heard"]
    ranks = table.groupby(group)[columns].rank()
    ranks -= ranks.groupby(table[group]).transform("mean")
    spread = ranks.pow(2).sum().prod() ** 0.5
    return (ranks["resistance"] * ranks["heard"]).sum() / spread if spread > 1e-9 else math.nan


def resistance_can_differ(graph: nx.Graph) -> bool:
    """Return whether resistance can order pairs of nodes differently from the number of hops.

    On trees and cycles it cannot, so these graphs do not show which of the two predicts better.
    """
    return graph.number_of_edges() >= len(graph) and max(degree for _, degree in graph.degree) > 2


@cache
def ends(width: int = 16, layers: int = 0, times: int = 1, skip: bool = False) -> pd.DataFrame:
    """Measure how sensitive one end of the longest path is to the other end and to itself.

    The values are `graphs.jacobian_norms`, averaged over `SEEDS` draws of the weights. A layer is
    relu(H W_own + A H W_heard) with A symmetric.

    Args:
        layers: the number of layers. If it is 0, the number of layers is `times` times the
            diameter.
        skip: use layers H + relu(A H W_heard) instead.

    Returns:
        One row per example graph, with the columns "far" (the other end) and "own" (the same end).
    """
    layer, rows = {"self_weight": 0.0, "skip": True} if skip else {}, {}
    for name, graph in examples().items():
        far, own = graphs.far_pair(graph)
        count = layers or times * nx.diameter(graph)
        runs = [
            graphs.jacobian_norms(graph, own, count, width, seed=k, **layer) for k in range(SEEDS)
        ]
        rows[name] = (
            torch.stack(runs).mean(0)[[list(graph).index(node) for node in (far, own)]].tolist()
        )
    return pd.DataFrame(rows, index=["far", "own"]).T


def rewiring_gains(
    graph: nx.Graph, edges: int = 4, times: int = 1, seeds: int = SEEDS, draws: int = 4
) -> pd.DataFrame:
    """Return the factor by which each method's new edges increase the Jacobian of distant pairs.

    We average over all pairs that are more than half the diameter apart before rewiring. The number
    of layers is `times` times this diameter.

    Returns:
        One row per seed of the weights and one column per method. The column "random" is the
            control. It has the mean over `draws` draws of random edges, which are drawn anew for
            every seed.
    """
    layers, far = times * nx.diameter(graph), hops(graph) > nx.diameter(graph) / 2
    wired = {name: rewiring.rewire(graph, method, edges) for name, method in METHODS.items()}

    def heard(graph: nx.Graph, seed: int) -> float:
        return all_jacobians(graph, layers, seed=seed)[far].mean().item()

    def gains(seed: int) -> dict[str, float]:
        start = heard(graph, seed)
        other = [
            rewiring.rewire(graph, "random", edges, seed * draws + draw) for draw in range(draws)
        ]
        chosen = {name: heard(graph, seed) / start for name, graph in wired.items()}
        return chosen | {"random": sum(heard(graph, seed) for graph in other) / draws / start}

    return pd.DataFrame([gains(seed) for seed in range(seeds)])


def against_random(gains: pd.DataFrame) -> pd.DataFrame:
    """Compare each rewiring method with random edges.

    The comparison is paired: each row of `gains` belongs to one draw of the weights, with which
    both the method and the random edges were measured.

    Returns:
        For each method, the mean gain and the mean lead over random edges, each with its standard
            error.
    """
    ahead = gains[[*METHODS]].sub(gains["random"], axis=0)
    error = ahead.apply(significance.standard_error)
    own = gains[[*METHODS]].apply(significance.standard_error)
    return pd.DataFrame(
        {"gain": gains[[*METHODS]].mean(), "gain s.e.": own, "ahead": ahead.mean(), "s.e.": error}
    )


def ranks(graph: str, times: int, seeds: int, skip: bool) -> dict[str, float]:
    found = predictors(examples()[graph], times, seeds, skip)
    return {name: "" if math.isnan(value) else f"{value:.6g}" for name, value in found.items()}


def gains(graph: str, times: int, edges: int, seeds: int, draws: int) -> dict[str, float]:
    drawn = rewiring_gains(examples()[graph], edges, times, seeds, draws)
    found = against_random(drawn)
    row = {
        f"{name} {column}": f"{found[column][name]:.6g}" for name in METHODS for column in GAINED
    }
    return {
        "layers": times * nx.diameter(examples()[graph]),
        "random": f"{drawn['random'].mean():.6g}",
    } | row


@cache
def ranks_by_depth(skip: bool = False) -> pd.DataFrame:
    """Read the committed results of `predictors` for every example graph.

    There is one row per graph and number of diameters. If `skip` is true, the networks have skip
    connections. Otherwise they have a self-weight.
    """
    table = data.table("ranks_by_depth")
    return table[table["skip"] == skip].set_index(["graph", "times"])


@cache
def gains_by_depth() -> pd.DataFrame:
    """Read the committed results of `against_random` for every example graph.

    There is one row per graph, number of diameters and method.
    """
    table = data.table("gains_by_depth").set_index(["graph", "times"])
    parts = {
        method: table[[f"{method} {column}" for column in GAINED]].set_axis([*GAINED], axis=1)
        for method in METHODS
    }
    return (
        pd.concat(parts, names=["method"])
        .reorder_levels(["graph", "times", "method"])
        .join(table["random"])
    )


@cache
def bits_a_number() -> pd.DataFrame:
    """Return how many bits each number of a hidden state must store at the smallest possible width.

    The smallest width is that of Figure 4 of Alon & Yahav (2021). There is one row per depth r.

    Returns:
        `width`: the smallest width.
        `orders`: log2((2^r)!) divided by the width.
        `Eq. 5`: log2 of `gnn.orderings` divided by the width.
        `leaves`: 2^r divided by the width, a control that counts no orders.
    """
    table = data.table("reported/tree_neighbors_match_width").set_index("r")
    bits = {
        "orders": [math.log2(math.factorial(2**r)) for r in table.index],
        "Eq. 5": [math.log2(gnn.orderings(r)) for r in table.index],
        "leaves": [2**r for r in table.index],
    }
    return table.join(pd.DataFrame(bits, index=table.index).div(table["width"], axis=0))


def averages(layers: int, nodes: int = 64) -> dict[str, float]:
    """Return the weight of the first input in the last of `nodes` outputs after plain averaging.

    We compare a path with self-loops and causal attention that weights all earlier tokens equally.
    """
    causal = attention.uniform(attention.causal_mask(nodes))
    path = graphs.adjacency(nx.path_graph(nodes), "row", loops=True)
    power = torch.linalg.matrix_power
    return {
        "path": power(path, layers)[-1, 0].item(),
        "causal attention": power(causal, layers)[-1, 0].item(),
    }


def train_tree(
    kind: str, depth: int, epochs: int, change: Callable[[nn.Module], None] | None = None
) -> pd.DataFrame:
    """Train a network on Tree-NeighborsMatch, and return one row per epoch.

    Args:
        change: a function that changes the network before the training.
    """
    compute.seed(0)
    task, network = gnn.TreeNeighborsMatch(depth), gnn.build(kind, depth)
    if change:
        change(network)
    return pd.DataFrame(gnn.train(network, task, epochs=epochs))


def without_choice(attention: gnn.Attention) -> None:
    """Fix the query at zero, so that attention gives all leaves the same weight (a control)."""
    attention.query.data.zero_()
    attention.query.requires_grad_(False)


def fit_on_a_chain(length: int, seed: int = 0, most: int = 1500) -> dict[str, float]:
    """Train a GCN on four leaves at 2 + `length` hops from the root until it makes no error.

    All examples are in one batch. The number of leaves stays the same, while their distance and the
    number of layers grow.
    """
    compute.seed(seed)
    task = gnn.TreeNeighborsMatch(2)
    features, edges = gnn.on_a_chain(task, length)
    features, label = features[task.train], task.batch(task.train).label
    network = gnn.WholeGraph(edges, 3 + length, task.leaves + 1)
    return {"distance": 2 + length} | _until_no_error(network, features, label, most)


def fit_few(
    graph: str,
    depth: int,
    examples: int,
    whole_orders: bool = False,
    permuted: bool = False,
    length: int = 0,
    seed: int = 0,
    most: int = 6000,
) -> dict[str, float]:
    """Train a GCN on a few examples until it makes no error, and test it on new examples.

    All training examples are in one batch.

    Args:
        graph: the "tree", the same leaves on a "star" (`gnn.on_a_star`), or a tree at the end of a
            "chain" of `length` edges.
        whole_orders: take as few orders of the leaves as possible and all questions about them,
            instead of drawing examples at random.
        permuted: give each example the label of another example, as a control. The label then does
            not depend on the right leaf, so a network can fit it only by memorising the examples.

    >>> fit_few("tree", 2, 4)["best_train_accuracy"]
    1.0
    """
    require.choice("graph", graph, ("tree", "star", "chain"))
    require.integer("most", most, 1)
    if length and graph != "chain":
        raise ValueError(f"length must be 0 for the graph {graph!r}, not {length!r}")
    compute.seed(seed)
    task = gnn.TreeNeighborsMatch(depth)
    chosen = _few(task, examples, whole_orders, seed)
    distance = {"tree": depth, "star": 2, "chain": depth + length}[graph]
    if graph == "tree":
        network, inputs = gnn.build("gcn", depth), task.batch
    else:
        features, edges = gnn.on_a_star(task) if graph == "star" else gnn.on_a_chain(task, length)
        network, inputs = gnn.WholeGraph(edges, distance + 1, task.leaves + 1), features.__getitem__
    label, held = task.batch(chosen).label, task.batch(task.test).label
    if permuted:
        label = label[torch.randperm(len(label), generator=torch.Generator().manual_seed(seed))]
    row = _until_no_error(network, inputs(chosen), label, most)
    with torch.no_grad():
        right = (network(inputs(task.test)).argmax(1) == held).double().mean().item()
    orders = len(task.batch(chosen).values)
    return {"distance": distance, "orders": orders} | row | {"test_accuracy": round(right, 4)}


def _few(
    task: gnn.TreeNeighborsMatch, examples: int, whole_orders: bool, seed: int
) -> Int[Tensor, " examples"]:
    require.integer("examples", examples, 1, len(task.train))
    require.flag("whole_orders", whole_orders)
    generator = torch.Generator().manual_seed(require.seed(seed))
    if not whole_orders:
        return task.train[torch.randperm(len(task.train), generator=generator)[:examples]]
    place = torch.randperm(len(task.orders), generator=generator)[task.train // task.leaves]
    return task.train[place.argsort(stable=True)[:examples]]


def _until_no_error(
    network: nn.Module, inputs: Tensor | gnn.Batch, label: Tensor, most: int
) -> dict[str, float]:
    optimizer, best, steps = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True), 0.0, 0
    while best < 1 and steps < most:
        logits = network(inputs)
        optimizer.zero_grad()
        F.cross_entropy(logits, label).backward()
        optimizer.step()
        best, steps = max(best, (logits.argmax(1) == label).double().mean().item()), steps + 1
    return {"steps": steps, "best_train_accuracy": best}


def reported() -> pd.DataFrame:
    """Read the training accuracies in Figure 3 of Alon & Yahav (2021), by network and depth."""
    table = data.table("reported/tree_neighbors_match").rename(columns=str.lower).set_index("model")
    return table.rename(index=str.lower, columns=int)


def independent() -> pd.DataFrame:
    """Read the accuracies that another user measured with the scripts of the released code.

    The accuracies are those at the end of each run. Rows and columns are as in `reported`.
    """
    table = (
        data.table("reported/tree_neighbors_match_independent")
        .rename(columns=str.lower)
        .set_index("model")
    )
    return table.rename(index=str.lower, columns=int).reindex(columns=reported().columns)


@cache
def runs() -> pd.DataFrame:
    """Return all training runs on Tree-NeighborsMatch in the course's data, one row per run.

    Budgets are in epochs. Use `learning_curve` to read the column `curve`. Some runs were limited
    to one minute. They have no curve.
    """
    tables = [data.table("tree_neighbors_match_runs"), data.table("tree_neighbors_match_one_leaf")]
    timed = data.table("tree_neighbors_match_measured")
    timed = timed[(timed["kind"] != "attention") & (timed["depth"] > 2)]
    batches = {
        r: math.ceil(len(gnn.TreeNeighborsMatch(r).train) / gnn.BATCH[r])
        for r in timed["depth"].unique().tolist()
    }
    steps = timed["epochs"] * timed["depth"].map(batches)
    timed = timed.assign(
        epochs_allowed=timed["epochs"],
        key="root",
        curve="",
        steps=steps,
        ended=timed["ended"].replace("budget", "a minute"),
    )
    return pd.concat(
        [*tables, timed.drop(columns=["minutes", "threads", "torch"])], ignore_index=True
    )


def grid_runs(kind: str, fully_adjacent: bool = False, key: str = "root") -> pd.DataFrame:
    """Return the best run of a network at each depth.

    A run with a learning curve is preferred to a run without one.
    """
    table = (
        runs()
        .sort_values("best_train_accuracy", kind="stable")
        .sort_values("curve", key=lambda c: c != "", kind="stable")
    )
    chosen = (
        (table["kind"] == kind)
        & (table["fully_adjacent"] == fully_adjacent)
        & (table["key"] == key)
    )
    return table[chosen].groupby("depth").last()


def learning_curve(run: pd.Series) -> pd.Series:
    """Return the mean training accuracy of each block of ten epochs, indexed by its last epoch."""
    values = [float(value) for value in run["curve"].split()]
    ends = [min(BLOCK * (place + 1), run["epochs"]) for place in range(len(values))]
    return pd.Series(values, ends, name=run["kind"], dtype=float)


def reached(run: pd.Series, epochs: int) -> float:
    """Return the mean training accuracy of the last ten-epoch block that ends by epoch `epochs`.

    The result is 1 if the run had an epoch without an error by then. For a run without a curve, we
    take the accuracy of its best epoch, which favours this run.
    """
    if run["ended"] == "fitted" and run["epochs"] <= epochs:
        return 1.0
    if not run["curve"]:
        return float(run["best_train_accuracy"])
    return float(learning_curve(run).loc[:epochs].iloc[-1])


def compare(**other: bool | str) -> pd.DataFrame:
    """Compare every network with a changed version of itself, at equal epochs.

    The change is `fully_adjacent=True` or `key="everywhere"`. Only trees of depth 3 and more are
    compared, because at depth 2 every network makes no error. We compare the accuracies at the end
    of the shorter run. If one of the two runs reached zero errors, it keeps its accuracy after its
    end, and we compare at the end of the other run. A pair is left out if one run has no curve and
    is more than a tenth longer than the other run.

    Returns:
        One row per network and depth r.
        `epochs`: the number of epochs after which we compare.
        `plain`, `changed`: the accuracies of the network and of its changed version.
        `plain_fits`, `changed_fits`: the epochs until no error, or `None` if the run still made
            errors at its end.
        `better`: whether the changed network needs fewer epochs until no error. If one of the two
            networks still made errors, whether the changed network has the higher accuracy.
    """
    rows = []
    for kind in NETWORKS:
        plain, changed = grid_runs(kind), grid_runs(kind, **other)
        for depth in sorted(r for r in {*plain.index} & {*changed.index} if r > 2):
            pair = plain.loc[depth], changed.loc[depth]
            unfitted = [run["epochs"] for run in pair if run["ended"] != "fitted"]
            epochs = int(min(unfitted or [min(run["epochs"] for run in pair)]))
            if any(not run["curve"] and run["epochs"] > 1.1 * epochs for run in pair):
                continue
            before, after = (reached(run, epochs) for run in pair)
            fits = [int(run["epochs"]) if run["ended"] == "fitted" else None for run in pair]
            row = {
                "network": kind.upper(),
                "r": depth,
                "epochs": epochs,
                "plain": before,
                "changed": after,
            }
            better = fits[1] < fits[0] if all(fits) else after > before
            rows.append(row | {"plain_fits": fits[0], "changed_fits": fits[1], "better": better})
    names = ["network", "r", "epochs", "plain", "changed", "plain_fits", "changed_fits", "better"]
    return pd.DataFrame(rows, columns=names, dtype=object)  # dtype=object, so that None stays None


def chains() -> pd.DataFrame:
    """Return the results on chains, with one row per distance.

    The columns are the number of runs, the number of runs that reached zero errors, and the mean of
    the runs' best accuracies.
    """
    best = data.table("chains_measured").set_index("distance")["best_train_accuracy"]
    fitted = (best == 1).groupby("distance").sum()
    by = best.groupby("distance")
    return pd.DataFrame({"runs": by.size(), "fitted": fitted, "accuracy": by.mean()}).reset_index()


@cache
def few_examples() -> pd.DataFrame:
    """Return the runs on few examples, one per row.

    The columns have the steps until no error and the accuracy on new examples.

    `control` is "chain" (all questions about 24 orders of the leaves), "tree" or "star" (questions
    at random), or "tree, all questions" or "star, all questions" (all questions about as few orders
    as possible). If `permuted` is true, each example had the label of another example.
    """
    table = data.table("few_examples")
    whole = table["whole_orders"].map({False: "", True: ", all questions"})
    return table.assign(control=table["graph"] + whole)


@cache
def stars() -> pd.DataFrame:
    """Return runs with all released examples at r = 3, on the tree ("gcn") and on a star."""
    tree = runs().query(
        "kind == 'gcn' and depth == 3 and key == 'root' and not fully_adjacent and curve != ''"
    )
    return pd.concat([tree, data.table("stars")], ignore_index=True).sort_values(
        ["kind", "seed"], ignore_index=True
    )


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence, such as "a, b and c".

    Without words, the result is "none".
    """
    *others, last = words or ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def sentence(pairs: pd.DataFrame, changed: str) -> str:
    """Describe the result of `compare` in a sentence for the lab.

    If both networks reached zero errors, the sentence says how many epochs they needed. Otherwise
    it compares their accuracies after equally many epochs.
    """
    said = []
    for row in pairs.itertuples():
        start = f"{row.network} at r = {row.r}"
        if row.plain_fits and row.changed_fits:
            said.append(
                f"{start} fits after {row.plain_fits} epochs, and after {row.changed_fits} with "
                f"{changed}."
            )
        else:
            said.append(
                f"For {start}, the accuracy after {row.epochs} epochs is {row.plain:.1%}, and "
                f"{row.changed:.1%} with {changed}."
            )
    return " ".join(said)


def everywhere_seeds() -> str:
    """Describe how many epochs each seed needed until no error, with the key at every node.

    The text has one part for each network.
    """
    found = runs().query("key == 'everywhere' and ended == 'fitted'")
    said = [
        f"the seeds of {kind.upper()} at r = {r} need "
        f"{listed([f'{n:.0f}' for n in part['epochs']])} epochs"
        for (kind, r), part in found.groupby(["kind", "depth"])
        if len(part) > 1
    ]
    return f"With the key everywhere, {', and '.join(said)}."
