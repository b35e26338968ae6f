"""Measurements of over-squashing: what a far input moves, on graphs and on Tree-NeighborsMatch."""

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
GAINED = ("gain", "gain s.e.", "ahead", "s.e.")  # the second is of the gain, the last of the lead
NETWORKS = ("gcn", "gin", "gat", "ggnn")
SEEDS = 8
FEW = 76  # examples of the chain control
BLOCK = 10  # epochs a value of a run's curve


FAMILIES = ("path", "cycle", "tree", "barbell", "grid", "expander", "karate")


def examples() -> dict[str, nx.Graph]:
    """Return the graphs of chapter 1, by name: 16 nodes each, but a full tree of 15 and the karate
    club's 34.
    """
    return {name: graphs.family(name, 15 if name == "tree" else 16) for name in FAMILIES}


def hops(graph: nx.Graph) -> Int[Tensor, "n n"]:
    """Return distances of all pairs, in the order of `graph.nodes`."""
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    return torch.tensor([[lengths[u][v] for v in graph] for u in graph])


def all_jacobians(
    graph: nx.Graph, layers: int, width: int = 16, seed: int = 0, skip: bool = False
) -> Float[Tensor, "n n"]:
    """Return `graphs.jacobian_norms` of every target, as rows, by one call of autograd; with `skip`
    as in `ends`.
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
    """Rank correlation of the Jacobian with its bound, hops and resistance, over all pairs; mean
    over weight seeds.

    Spearman's; layers = `times` the diameter. More hops, or more resistance, count as less. Values
    are rounded to nine decimals of the largest first: what is equal up to rounding ties. "R - hops"
    is how much better resistance ranks, "within hops" how resistance ranks pairs of equal distance
    (`within`), each with its standard error over the seeds. With `skip` the network is the residual
    one of `ends`.
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
    """Return the rank correlation of "resistance" and "heard", with ranks taken inside each group.
    It is NaN if all values of a group are equal.
    """
    columns = ["resistance", "heard"]
    ranks = table.groupby(group)[columns].rank()
    ranks -= ranks.groupby(table[group]).transform("mean")
    spread = ranks.pow(2).sum().prod() ** 0.5
    return (ranks["resistance"] * ranks["heard"]).sum() / spread if spread > 1e-9 else math.nan


def resistance_can_differ(graph: nx.Graph) -> bool:
    """Return whether resistance can order pairs in another way than hops: not on trees and
    cycles.
    """
    return graph.number_of_edges() >= len(graph) and max(degree for _, degree in graph.degree) > 2


@cache
def ends(width: int = 16, layers: int = 0, times: int = 1, skip: bool = False) -> pd.DataFrame:
    """Measure the sensitivity of one end of the longest path to the other end ("far") and to itself
    ("own"), for each example.

    `graphs.jacobian_norms`, mean over `SEEDS` draws of the weights, at so many layers or at `times`
    the diameter. The layer is relu(H W_own + A H W_heard), A symmetric; with `skip` it is H +
    relu(A H W_heard).
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
    """Factor by which a method's edges multiply the mean Jacobian of all far pairs: a row for each
    weight seed.

    Far: more than half the diameter apart, before. Layers: `times` the diameter before. "random" is
    the control: the mean of so many draws of random edges, other ones for every seed.
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
    """For each method: its mean gain and that one's standard error, how much more than random edges
    gain, and the error of that.

    Paired: every row of `gains` is one draw of the weights, which the method and its control share.
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
    """Return `predictors` of every example by (graph, diameters), with a self-weight or a skip
    connection, from data/.
    """
    table = data.table("ranks_by_depth")
    return table[table["skip"] == skip].set_index(["graph", "times"])


@cache
def gains_by_depth() -> pd.DataFrame:
    """Return `against_random` by (graph, diameters, method), from data/."""
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
    """Return bits over the least width of Figure 4 of Alon & Yahav (2021), by r: of all orders, of
    Eq. 5, and of the leaves.

    "orders": log2 (2^r)!; "Eq. 5": log2 of `gnn.orderings`; "leaves": 2^r, the control that counts
    no orders.
    """
    table = data.table("reported/tree_neighbors_match_width").set_index("r")
    bits = {
        "orders": [math.log2(math.factorial(2**r)) for r in table.index],
        "Eq. 5": [math.log2(gnn.orderings(r)) for r in table.index],
        "leaves": [2**r for r in table.index],
    }
    return table.join(pd.DataFrame(bits, index=table.index).div(table["width"], axis=0))


def averages(layers: int, nodes: int = 64) -> dict[str, float]:
    """Return the share of the first of `nodes` inputs in the last, after so many layers of plain
    averaging.

    On a path with self-loops, and in causal attention that weights all earlier tokens alike.
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
    """Train a network on Tree-NeighborsMatch after applying `change` to it, and return its
    epochs.
    """
    compute.seed(0)
    task, network = gnn.TreeNeighborsMatch(depth), gnn.build(kind, depth)
    if change:
        change(network)
    return pd.DataFrame(gnn.train(network, task, epochs=epochs))


def without_choice(attention: gnn.Attention) -> None:
    """Fix the query at zero, so that all leaves get the same weight: the control."""
    attention.query.data.zero_()
    attention.query.requires_grad_(False)


def fit_on_a_chain(length: int, seed: int = 0, most: int = 1500) -> dict[str, float]:
    """Train a GCN on four leaves that are 2 + length hops away, all examples at once, until it
    makes no error.
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
    """Train a GCN on so many examples, all at once, until it makes no error, and ask it the
    examples it never saw.

    Args:
        graph: the "tree", the same leaves on a "star" (`gnn.on_a_star`), or a tree at the end of a
            "chain" of
        `length` edges.
        whole_orders: take all questions about as few orders of the leaves as that takes, not
            examples at random.
        permuted: give each example the label of another one, so that no leaf has to be read: the
            control that says whether the fit is by heart.

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
    """Figure 3 of Alon & Yahav (2021): training accuracy by network (rows) and depth (columns)."""
    table = data.table("reported/tree_neighbors_match").rename(columns=str.lower).set_index("model")
    return table.rename(index=str.lower, columns=int)


def independent() -> pd.DataFrame:
    """Read what a user of the released code got with its scripts, where the run had ended; rows and
    columns as `reported`.
    """
    table = (
        data.table("reported/tree_neighbors_match_independent")
        .rename(columns=str.lower)
        .set_index("model")
    )
    return table.rename(index=str.lower, columns=int).reindex(columns=reported().columns)


@cache
def runs() -> pd.DataFrame:
    """Return all training runs on Tree-NeighborsMatch in data/, a row each; `curve` is what
    `learning_curve` reads.

    Budgets are in epochs. Where there is no such run yet, one of a minute stands in, without a
    curve.
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
    """Return the best run of a network at each depth; one with a curve, where there is one."""
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
    """Mean training accuracy of every ten epochs of a row of `runs`, by the last of these
    epochs.
    """
    values = [float(value) for value in run["curve"].split()]
    ends = [min(BLOCK * (place + 1), run["epochs"]) for place in range(len(values))]
    return pd.Series(values, ends, name=run["kind"], dtype=float)


def reached(run: pd.Series, epochs: int) -> float:
    """Training accuracy, mean of the ten epochs up to this one or before; 1 once an epoch was
    without an error.

    A run without a curve counts with its best epoch, which flatters it.
    """
    if run["ended"] == "fitted" and run["epochs"] <= epochs:
        return 1.0
    if not run["curve"]:
        return float(run["best_train_accuracy"])
    return float(learning_curve(run).loc[:epochs].iloc[-1])


def compare(**other: bool | str) -> pd.DataFrame:
    """Return every graph network that was run plain and with `fully_adjacent=True` or
    `key="everywhere"`, at equal epochs.

    Trees of depth 3 and more: at 2 every network fits. Epochs: the fewer of both runs, where a
    fitted run goes on as it is; a run without a curve that is a tenth longer or more is left out.
    "plain_fits" and "changed_fits" say after how many epochs each was fitted (None if it was not);
    "better": whether the changed network is fitted in fewer, or stands higher at equal ones.
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
    return pd.DataFrame(rows, columns=names, dtype=object)  # so that None stays None


def chains() -> pd.DataFrame:
    """Return the chain control by distance: runs, how many were fitted, and the mean best
    accuracy.
    """
    best = data.table("chains_measured").set_index("distance")["best_train_accuracy"]
    fitted = (best == 1).groupby("distance").sum()
    by = best.groupby("distance")
    return pd.DataFrame({"runs": by.size(), "fitted": fitted, "accuracy": by.mean()}).reset_index()


@cache
def few_examples() -> pd.DataFrame:
    """Return steps until no error with few examples, all in one step, and accuracy on examples
    never seen: a row for each run.

    "control": "chain" (all questions about 24 orders), "tree" and "star" (questions at random),
    "tree, all questions" and "star, all questions" (about as few orders as that takes). "permuted":
    each example had the label of another one.
    """
    table = data.table("few_examples")
    whole = table["whole_orders"].map({False: "", True: ", all questions"})
    return table.assign(control=table["graph"] + whole)


@cache
def stars() -> pd.DataFrame:
    """Return runs with all released examples at r = 3: a GCN on the tree ("gcn") and with its
    leaves on a star, a row each.
    """
    tree = runs().query(
        "kind == 'gcn' and depth == 3 and key == 'root' and not fully_adjacent and curve != ''"
    )
    return pd.concat([tree, data.table("stars")], ignore_index=True).sort_values(
        ["kind", "seed"], ignore_index=True
    )


def listed(words: Sequence[str]) -> str:
    """Return the words as in a sentence: a, b and c; "none" if there are no words."""
    *others, last = words or ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def sentence(pairs: pd.DataFrame, changed: str) -> str:
    """Return `compare` in words: epochs until fitted where both are, else accuracies at equal
    epochs.
    """
    said = []
    for row in pairs.itertuples():
        start = f"{row.network}, r = {row.r}"
        if row.plain_fits and row.changed_fits:
            said.append(
                f"{start}: fitted after {row.plain_fits} epochs, with {changed} after "
                f"{row.changed_fits}"
            )
        else:
            said.append(
                f"{start}, {row.epochs} epochs: {row.plain:.1%}, with {changed} {row.changed:.1%}"
            )
    return "; ".join(said) + "."


def everywhere_seeds() -> str:
    """After how many epochs each seed was fitted with the key at every node, by network."""
    found = runs().query("key == 'everywhere' and ended == 'fitted'")
    said = [
        f"{kind.upper()}, r = {r}: {', '.join(f'{n:.0f}' for n in part['epochs'])}"
        for (kind, r), part in found.groupby(["kind", "depth"])
        if len(part) > 1
    ]
    return f"By seed, with the key everywhere: {'; '.join(said)} epochs."
