"""What the claims of chapter 1's sources measure: each function returns the numbers that its row of the table names."""

import itertools
import math

import networkx as nx
import pandas as pd
import torch

from course.chapter1 import measures
from course.claims import Numbers
from helpers import compute, gnn, graphs, style

CUT = {"epochs", "a minute"}  # how a run ends that its budget stopped


def width_bound() -> Numbers:
    return {"widths": [gnn.minimum_width(r) for r in range(2, 9)]}


def one_bit_a_number() -> Numbers:
    """Widths are powers of two, so bits a number may differ by a factor of two where they are really constant."""
    return measures.bits_a_number().rename(columns={"Eq. 5": "equation"}).to_dict("list")


def width_explains_failures() -> Numbers:
    """An easier question also makes a simpler function; only runs of several widths can tell."""
    reported = measures.reported()
    return compared(key="everywhere") | {
        "first": min(r for r in reported.columns if reported[r].max() < 1),
        "bits": measures.bits_a_number()["Eq. 5"],
        "widths": measures.runs().groupby(["kind", "depth"])["width"].nunique().max(),
    }


def compared(**other: bool | str) -> Numbers:
    """Networks as they are beside changed ones; at r = 3 those fit, too, so that nothing is opened there."""
    return {"pairs": measures.compare(**other)}


def figure_3(kind: str) -> Numbers:
    """The depths more than 0.05 apart from the paper, and those that may come nearer: cut by a budget below it, or not run."""
    reported, runs = measures.reported().loc[kind].dropna(), measures.grid_runs(kind)
    best = runs["best_train_accuracy"]
    apart = [r for r, paper in reported.items() if r not in best or abs(best[r] - paper) > 0.05]
    return {
        "runs": runs,
        "missing": [r for r in reported.index if r not in best],
        "apart": apart,
        "cut": [r for r in apart if r not in best or (best[r] < reported[r] and runs["ended"][r] in CUT)],
        "numbers": {f"r = {r}": (float(x), float(best[r]) if r in best else None) for r, x in reported.items()},
    }


def accuracy_falls_with_depth() -> Numbers:
    runs = {kind.upper(): measures.grid_runs(kind) for kind in measures.NETWORKS}
    return {
        "best": {kind: run["best_train_accuracy"].tolist() for kind, run in runs.items()},
        "short": [kind for kind, run in runs.items() if max(run.index) < 5 or set(run["ended"]) == {"fitted"}],
        "cut": [kind for kind, run in runs.items() if CUT & {*run["ended"]}],
    }


def gat_and_ggnn_alleviate() -> Numbers:
    paper = measures.reported()
    depth = min(r for r in paper.columns if paper[r].min() < 1)
    runs = {kind: measures.grid_runs(kind).loc[depth] for kind in measures.NETWORKS}
    best = {kind: float(run["best_train_accuracy"]) for kind, run in runs.items()}
    return best | {
        "depth": depth,
        "runs": runs,
        "cut": [kind for kind, run in runs.items() if run["ended"] in CUT],
        "numbers": {f"{kind.upper()}, r = {depth}": (float(paper[depth][kind]), x) for kind, x in best.items()},
    }


def _steps() -> pd.DataFrame:
    """Fewest, most and mean steps with few examples, by control, whether labels are at random, and r: hops of a chain, else depth."""
    runs = measures.few_examples()
    r = runs[["depth", "distance"]].max(axis=1)
    return runs.groupby(["control", "permuted", r])["steps"].agg(["min", "max", "mean"])


def _longer_at_random(control: str) -> list[float]:
    """How many times as long labels at random take, by r: twice or more where a leaf has to be read."""
    mean = _steps()["mean"][control]
    return (mean[True] / mean[False]).dropna().tolist()


def chains_are_fitted() -> Numbers:
    found = measures.chains()
    return {
        "found": found,
        "longer": _longer_at_random("chain"),
        "numbers": {f"{row.distance} hops": (1.0, row.accuracy) for row in found.itertuples()},
    }


def few_examples(graph: str, beside: str) -> Numbers:
    """Steps on a graph, by kind of questions and r, with labels at random, and on the chain or tree beside it.

    A set-up that fits labels at random as fast reads no leaf, and cannot tell one graph from another.
    """
    span, rows = _steps()[["min", "max"]].apply(tuple, axis=1), []
    for kind, r in itertools.product(("", ", all questions"), (3, 4, 5)):
        other = beside + kind * (beside == "tree")
        runs = (graph + kind, False, r), (graph + kind, True, r), (other, False, r)
        rows.append((kind, r, *(span[run] for run in runs)))
    return {"rows": rows, "longer": _longer_at_random(graph) + _longer_at_random(beside)}


def two_hops_are_faster_where_leaves_are_read() -> Numbers:
    runs = measures.stars()
    epochs = runs.groupby("kind")["epochs"].agg(list)
    return {"star": epochs["star"], "tree": epochs["gcn"], "right": runs["end_test_accuracy"].astype(float).min()}


def attention_picks_the_leaf() -> Numbers:
    with compute.threads(1):
        control = measures.train_tree("attention", 5, 20, change=measures.without_choice)["train_accuracy"].max()
    grid = measures.runs().query("kind == 'attention' and depth <= 6")
    fitted = grid["ended"] == "fitted"
    return {
        "control": control,
        "grid": grid,
        "missed": grid[~fitted],
        "fitted": fitted.groupby(grid["depth"]).agg(list).tolist(),
    }


def walks_bound_the_jacobian() -> Numbers:
    shares, beyond = [], []
    for seed, graph in enumerate(measures.examples().values()):
        layers, target = nx.diameter(graph), graphs.far_pair(graph)[1]
        for normalisation, self_weight in itertools.product(graphs.NORMALISATIONS, (0.0, 1.0)):
            norms = graphs.jacobian_norms(graph, target, layers, 8, normalisation, self_weight, seed=seed)
            bound = graphs.walk_bound(graph, target, layers, normalisation, self_weight)
            reached = bound > 1e-12
            shares += (norms / bound)[reached].tolist()
            beyond += (norms - bound)[~reached].abs().tolist()
    return {"shares": pd.Series(shares), "beyond": beyond}


def tree_closed_form() -> Numbers:
    tree, node, depth = nx.balanced_tree(2, 5), 7, 3
    kinds = itertools.product(("row", "symmetric"), (False, True))
    matrices = {f"{kind}{', loops' * loops}": graphs.adjacency(tree, kind, loops) for kind, loops in kinds}
    power = torch.linalg.matrix_power
    return {"found": {name: power(matrix, depth)[0, node].item() for name, matrix in matrices.items()}}


def resistance_bounds_the_jacobian() -> Numbers:
    shares = []
    for graph in measures.examples().values():
        for target, layers in itertools.product(list(graph)[::3], (2, 5, 9)):
            norms = graphs.jacobian_norms(graph, target, layers, 4)
            shares += (norms / graphs.resistance_bound(graph, target, layers)).tolist()
    return {"shares": pd.Series(shares)}


def squashed_at_high_commute_time() -> Numbers:
    """Over all pairs distance alone would do it too; at equal hops it has to be the commute time."""
    ranks = measures.ranks_by_depth()
    within = ranks["within hops"].dropna()
    return {"over_all": ranks["resistance"], "within": within, "z": (within / ranks["s.e. of within hops"]).dropna()}


def resistance_beats_hops() -> Numbers:
    can = [name for name, graph in measures.examples().items() if measures.resistance_can_differ(graph)]
    rows, skipped = (measures.ranks_by_depth(skip).loc[can] for skip in (False, True))
    lead, times = rows["R - hops"], rows.index.levels[1]
    return {
        "lead": lead,
        "z": lead / rows["s.e. of R - hops"],
        "skip": skipped["R - hops"].xs(times[-1], level="times"),
    }


def _span(values: pd.Series) -> str:
    return f"{style.number(float(min(values)))} to {style.number(float(max(values)))}"


def wider() -> Numbers:
    """What a node hears of the far end and of itself with 32 numbers a vector, and how many times that of 4; 16 layers.

    The claims are about the bound of Di Giovanni et al. (2023), and can be told only where it moves with the width: where
    the weights of these networks do.
    """
    narrow, wide = (measures.ends(width, 16) for width in (4, 32))
    groups = wide["far"].groupby({name: nx.diameter(graph) for name, graph in measures.examples().items()})
    factor = wide / narrow
    return {
        "far": wide["far"],
        "alike": (groups.max() / groups.min()).max(),
        "times_far": factor["far"],
        "times_own": factor["own"],
        "times_share": factor["far"] / factor["own"],
        "by_width": max(factor["far"].max(), 1 / factor["far"].min()),
        "weights": [float(torch.linalg.matrix_norm(graphs.orthogonal_weights(1, width), 2).max()) for width in (4, 32)],
    }


def depth_does_not_help() -> Numbers:
    kinds = {"self-weight": False, "skip connection": True}
    return {
        "times": {kind: measures.ends(times=4, skip=skip) / measures.ends(skip=skip) for kind, skip in kinds.items()}
    }


def _growth(sizes: list[int]) -> float:
    """The least factor by which a layer multiplies the size, from the first on."""
    return min(after / before for before, after in itertools.pairwise(sizes[1:]))


def field_grows_exponentially() -> Numbers:
    path, tree = (nx.path_graph(129), 64, 6), (nx.balanced_tree(2, 6), 0, 6)
    return {
        "nodes": {"path": graphs.receptive_field(*path), "tree": graphs.receptive_field(*tree)},
        "walks": {"path": graphs.computation_tree(*path, True), "tree": graphs.computation_tree(*tree, True)},
    }


def two_meanings_of_squashing() -> Numbers:
    """The shares after 1, 8 and 64 layers."""
    return {"shares": pd.DataFrame([measures.averages(layers) for layers in (1, 8, 64)]).to_dict("list")}


def copied_code_computes_curvature() -> Numbers:
    cases = {
        "pentagon": (nx.cycle_graph(5), (0, 1)),
        "K4": (nx.complete_graph(4), (0, 1)),
        "bridge": (nx.barbell_graph(5, 0), (4, 5)),
    }
    return {
        "copied": {name: graphs.balanced_forman_as_copied(graph)[edge] for name, (graph, edge) in cases.items()},
        "defined": {name: graphs.balanced_forman(graph)[edge] for name, (graph, edge) in cases.items()},
    }


def gap_brackets_the_cut() -> Numbers:
    """Both sides of the inequality over what they bound, by graph."""
    small = {name: graph for name, graph in measures.examples().items() if len(graph) <= 20}
    cut = {name: graphs.cheeger_cut(graph)[0] for name, graph in small.items()}
    gap = {name: graphs.spectral_gap(graph) for name, graph in small.items()}
    return {
        "low": {name: gap[name] / 2 / cut[name] for name in small},
        "high": {name: cut[name] / math.sqrt(2 * gap[name]) for name in small},
    }


def four_edges(method: str) -> Numbers:
    """What four edges of a method gain, how far that is ahead of random edges, and how many standard errors."""
    rows = measures.gains_by_depth().xs(method, level="method")
    return {"rows": rows, "gain": rows["gain"], "error": rows["s.e."], "z": rows["ahead"] / rows["s.e."]}


def rewiring_lowers_commute_time() -> Numbers:
    risen = {}
    for name, graph in measures.examples().items():
        change = graphs.commute_time(graphs.rewire(graph, "gtr", 1)) - graphs.commute_time(graph)
        pairs = torch.triu(torch.ones_like(change), 1).bool()
        risen[name] = (change > 1e-9)[pairs].double().mean().item()
    return {"risen": risen}
