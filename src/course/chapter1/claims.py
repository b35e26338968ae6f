"""Measure the claims of chapter 1's sources.

There is one function for each row of the table of claims.
"""

import itertools
import math

import networkx as nx
import pandas as pd
import torch

from course.chapter1 import measures
from course.evidence.rules import Numbers, Threshold, beyond, rule
from course.maths import bounds
from course.training import gnn, threads
from helpers import graphs, style

CUT = {"epochs", "a minute"}  # the ways in which a run ends if its budget stopped it
TWO = Threshold(2)  # in standard errors
EVEN = Threshold(1)  # a gain or a ratio that means no change
NOWHERE = Threshold(0)
EXACT = Threshold(1e-9)  # the allowed rounding error


FLOATS = Threshold(32)  # the largest number of 32-bit numbers that a state may need


@rule(
    holds=(
        f"Eq. 5 asks for at most {FLOATS:g} numbers up to r = 7 and for more from r = 8 onwards",
        lambda widths: max(widths[:-1]) <= FLOATS < widths[-1],
    ),
    nothing=("the width of r = 2 for all", {"widths": [1] * 7}),
)
def width_bound() -> Numbers:
    """Compute the smallest width that can store every order of a tree's leaves.

    The trees have the depths r = 2 to 8, and the width is that of Eq. 5 of Alon & Yahav (2021).
    """
    return {"widths": [gnn.minimum_width(r) for r in range(2, 9)]}


SEVERAL = Threshold(1)  # the number of widths must be larger than this


@rule(
    holds=(
        "an easier question helps the network of equal width in every pair of runs",
        lambda pairs: all(pairs["better"]),
    ),
    enough=("networks of several widths were trained", lambda widths: widths > SEVERAL),
    nothing=("pairs that a coin decides", {"pairs": {"better": [True, False]}, "widths": 2}),
)
def width_explains_failures() -> Numbers:
    """Measure whether networks fail on deep trees because they are too narrow.

    An easier question needs a smaller width and also a simpler function. So if a network fits the
    easier question, there are two possible explanations, and only runs at several widths can tell
    which is right.
    """
    reported = measures.reported()
    return compared(key="everywhere") | {
        "first": min(r for r in reported.columns if reported[r].max() < 1),
        "bits": measures.bits_a_number()["Eq. 5"],
        "widths": measures.runs().groupby(["kind", "depth"])["width"].nunique().max(),
    }


def _from(depth: int, pairs: Numbers) -> list[bool]:
    return [better for r, better in zip(pairs["r"], pairs["better"], strict=True) if r >= depth]


FAR = 5  # the depth r from which on the source gives its number


@rule(
    "question_everywhere_helps",
    each=(
        "the network fits in fewer epochs, or is more accurate after equally many epochs",
        lambda pairs: pairs["better"],
    ),
    against=(
        "it does neither",
        lambda pairs: [not better for better in pairs["better"]],
    ),
    nothing=("pairs that a coin decides", {"pairs": {"better": [True, False]}}),
)
@rule(
    "fully_adjacent_layer_helps",
    each=(
        f"the network with the fully adjacent layer is better, at r = {FAR} or more",
        lambda pairs: _from(FAR, pairs),
    ),
    against=("it is not better", lambda pairs: [not better for better in _from(FAR, pairs)]),
    nothing=("pairs that a coin decides", {"pairs": {"r": [5, 5], "better": [True, False]}}),
)
def compared(**other: bool | str) -> Numbers:
    """Compare every network with a changed version of itself (see `measures.compare`).

    We compare only depths from 3 on, because at depth 2 the unchanged networks make no error, so a
    change could not raise their accuracy.
    """
    return {"pairs": measures.compare(**other)}


def _told(pairs: pd.DataFrame, changed: str) -> str:
    """Describe each network with and without a change (see `measures.compare`)."""
    return "; ".join(
        f"{row.network} at r = {row.r} "
        + (
            f"fits after {row.plain_fits} epochs, and with {changed} after {row.changed_fits}"
            if row.plain_fits and row.changed_fits
            else f"is right in {row.plain:.1%} after {row.epochs} epochs, and with {changed} in "
            f"{row.changed:.1%}"
        )
        for row in pairs.itertuples()
    )


def _told_by_seed() -> str:
    """Say how many epochs each seed needed until no error, with the question at every node."""
    found = measures.runs().query("key == 'everywhere' and ended == 'fitted'")
    return " and ".join(
        f"after {', '.join(f'{n:.0f}' for n in part['epochs'])} epochs ({kind.upper()}, r = {r})"
        for (kind, r), part in found.groupby(["kind", "depth"])
        if len(part) > 1
    )


APART = Threshold(0.05)  # a difference of accuracy


@rule(
    holds=(
        f"the accuracy of every network at every depth is within {APART:g} of the paper's",
        lambda gaps: all(abs(gap) <= APART for gap in gaps.values()),
    ),
    decided=(
        "all agree, or a run differs that did not stop early (at its limit of epochs or time)",
        lambda gaps, cut: (
            all(abs(gap) <= APART for gap in gaps.values())
            or any(abs(gap) > APART for run, gap in gaps.items() if run not in cut)
        ),
    ),
    nothing=(
        "chance at every depth, no run cut",
        {"gaps": {"GCN, r = 2": -0.75, "GCN, r = 3": -0.88}, "cut": []},
    ),
)
def figure_3_comes_again() -> Numbers:
    """Compare our best accuracies with those in Figure 3 of Alon & Yahav (2021).

    There is one comparison for each network and depth.

    Returns:
        `gaps`: our accuracy minus the paper's, or NaN for a case that we did not run.
        `cut`: the cases that we did not run, and those that we stopped below the paper's value.
            With more epochs, their gap might become smaller.
        `best`: our best accuracies by network.
        `numbers`: the paper's accuracy and ours, or `None` for a case that we did not run.
    """
    gaps, cut, numbers, best = {}, [], {}, {}
    for kind, reported in measures.reported().T.items():
        runs = measures.grid_runs(kind)
        best[kind.upper()] = runs["best_train_accuracy"].tolist()
        for r, paper in reported.dropna().items():
            run, found = f"{kind.upper()}, r = {r}", runs["best_train_accuracy"].get(r, math.nan)
            gaps[run] = found - paper
            numbers[run] = float(paper), None if math.isnan(found) else float(found)
            if math.isnan(found) or (found < paper and runs["ended"][r] in CUT):
                cut.append(run)
    return {"gaps": gaps, "cut": cut, "best": best, "numbers": numbers}


FITTED = Threshold(0.99)


@rule(
    holds=(
        (
            "GAT and GGNN are both more accurate than GCN and GIN at the first depth at which the "
            "paper does not fit all four networks"
        ),
        lambda gcn, gin, gat, ggnn: min(gat, ggnn) > Threshold(max(gcn, gin)),
    ),
    part=(
        "GGNN is more accurate than GCN and GIN at this depth",
        lambda gcn, gin, ggnn: ggnn > Threshold(max(gcn, gin)),
    ),
    decided=(
        (
            "no run stopped early (at its limit of epochs or time), and not all four networks are "
            f"above an accuracy of {FITTED:g}"
        ),
        lambda gcn, gin, gat, ggnn, cut: min(gcn, gin, gat, ggnn) <= FITTED and not cut,
    ),
    nothing=(
        "four networks at chance",
        {"gcn": 1 / 16, "gin": 1 / 16, "gat": 1 / 16, "ggnn": 1 / 16, "cut": []},
    ),
)
def gat_and_ggnn_alleviate() -> Numbers:
    """Compare the networks' best training accuracies at the first depth at which one of them fails.

    Whether a network fails is read from the paper. The result also says which of our runs stopped
    because their budget was used up.
    """
    paper = measures.reported()
    depth = min(r for r in paper.columns if paper[r].min() < 1)
    runs = {kind: measures.grid_runs(kind).loc[depth] for kind in measures.NETWORKS}
    best = {kind: float(run["best_train_accuracy"]) for kind, run in runs.items()}
    return best | {
        "depth": depth,
        "runs": runs,
        "cut": [kind for kind, run in runs.items() if run["ended"] in CUT],
        "numbers": {
            f"{kind.upper()}, r = {depth}": (float(paper[depth][kind]), x)
            for kind, x in best.items()
        },
    }


def _steps() -> pd.DataFrame:
    """Summarise the training steps of the runs on few examples (smallest, largest and mean).

    There is one row for each combination of a control, random or true labels, and r. For a chain, r
    is the number of hops, and for the other graphs it is the depth.
    """
    runs = measures.few_examples()
    r = runs[["depth", "distance"]].max(axis=1)
    return runs.groupby(["control", "permuted", r])["steps"].agg(["min", "max", "mean"])


def _longer_at_random(control: str) -> list[float]:
    """Return the factor by which random labels lengthen the training, for each r.

    If the network answers by reading a leaf, this factor should be 2 or more.
    """
    mean = _steps()["mean"][control]
    return (mean[True] / mean[False]).dropna().tolist()


LONGER = Threshold(2)  # the factor by which random labels lengthen the training
HOPS = Threshold(8)


@rule(
    holds=(
        f"every run at up to {HOPS:g} hops fits",
        lambda found: all(found["fitted"] == found["runs"]),
    ),
    fit=(
        f"random labels take more than {LONGER:g} times as long to fit",
        lambda longer: min(longer) > LONGER,
    ),
    decided=(
        f"every run fits, and we ran {HOPS:g} hops",
        lambda found: all(found["fitted"] == found["runs"]) and max(found["distance"]) >= HOPS,
    ),
    nothing=("labels at random, fitted as fast", {"longer": [1.0]}),
)
def chains_are_fitted() -> Numbers:
    """Measure the training accuracy on chains for each number of hops.

    The result also says how much longer the training with random labels takes.
    """
    found = measures.chains()
    return {
        "found": found,
        "longer": _longer_at_random("chain"),
        "numbers": {f"{row.distance} hops": (1.0, row.accuracy) for row in found.itertuples()},
    }


UNSEEN = Threshold(0.9)  # the fraction of unseen examples that are answered correctly


@rule(
    holds=(
        (
            "every run at two hops, with three or four layers, fits before every run at three "
            "hops, where a relay merges the leaves at once or the tree merges them in pairs"
        ),
        lambda star, deeper, relay, tree: max(star + deeper) < Threshold(min(relay + tree)),
    ),
    part=(
        "every run on a star fits before every run on a tree",
        lambda star, tree: max(star) < Threshold(min(tree)),
    ),
    fit=(
        f"more than {UNSEEN:.0%} of unseen examples are right in all runs that fit",
        lambda right: right > UNSEEN,
    ),
    nothing=("one speed for all", lambda tree: {"star": tree, "deeper": tree, "relay": tree}),
    dealt={"stars": ("kind",)},
)
def two_hops_are_faster_where_leaves_are_read() -> Numbers:
    """Measure how many epochs a network needs until no error, for leaves two or three hops away.

    A run that used up its budget counts as infinity. The networks differ in the number of hops, in
    the number of layers, and in how they merge the leaves, so we can see which of these differences
    matters.
    """
    runs = measures.stars()
    fitted = runs["ended"] == "fitted"
    epochs = runs["epochs"].where(fitted, math.inf).groupby(runs["kind"]).agg(list)
    kinds = {
        "star": "star",
        "deeper": "star, a layer more",
        "relay": "star, a relay",
        "tree": "gcn",
    }
    right = runs["end_test_accuracy"].astype(float)[fitted].min()
    return {name: epochs[kind] for name, kind in kinds.items()} | {
        "right": right,
        "most": int(runs["epochs"].max()),
    }


def _epochs(found: list[float], most: int) -> str:
    return ", ".join(f"{x:.0f}" if x < math.inf else f"more than {most}" for x in found)


CHOOSES = Threshold(0.1)  # the largest accuracy without a choice


@rule(
    holds=(
        f"every run fits, and the control without a choice is under {CHOOSES:.0%}",
        lambda control, fitted: control < CHOOSES and all(map(all, fitted)),
    ),
    part=(
        f"at each depth at least one run fits, and the control is under {CHOOSES:.0%}",
        lambda control, fitted: control < CHOOSES and all(map(any, fitted)),
    ),
    nothing=("a control that fits as well", {"control": 1.0}),
)
def attention_picks_the_leaf() -> Numbers:
    """Measure whether one attention layer from the root fits the trees up to depth 6.

    As a control, we also train attention that gives all leaves the same weight.
    """
    with threads(1):
        control = measures.train_tree("attention", 5, 20, change=measures.without_choice)[
            "train_accuracy"
        ].max()
    grid = measures.runs().query("kind == 'attention' and depth <= 6")
    fitted = grid["ended"] == "fitted"
    return {
        "control": control,
        "grid": grid,
        "missed": grid[~fitted],
        "fitted": fitted.groupby(grid["depth"]).agg(list).tolist(),
    }


@rule(
    holds=(
        "no Jacobian exceeds the bound, and none is above 0 where the bound is 0",
        lambda shares, beyond: max(shares) <= EVEN + EXACT and max(beyond) < EXACT,
    ),
    nothing=(
        "Jacobian and bound exchanged",
        lambda shares: {"shares": [1 / max(x, EXACT) for x in shares]},
    ),
)
def walks_bound_the_jacobian() -> Numbers:
    """Compute the Jacobian norms as fractions of the bound that counts walks.

    We compute them on every example graph, for three normalisations and with or without a
    self-weight. Where the bound is zero, the norm itself must be zero up to rounding errors.
    """
    shares, beyond = [], []
    for seed, graph in enumerate(measures.examples().values()):
        layers, target = nx.diameter(graph), graphs.far_pair(graph)[1]
        for normalisation, self_weight in itertools.product(
            ("none", "row", "symmetric"), (0.0, 1.0)
        ):
            norms = graphs.jacobian_norms(
                graph, target, layers, 8, normalisation, self_weight, seed=seed
            )
            bound = graphs.walk_bound(graph, target, layers, normalisation, self_weight)
            reached = bound > 1e-12
            shares += (norms / bound)[reached].tolist()
            beyond += (norms - bound)[~reached].abs().tolist()
    return {"shares": pd.Series(shares), "beyond": beyond}


HERE = Threshold(1 / 18)


@rule(
    holds=(
        "all four normalisations of the adjacency matrix give 1/18",
        lambda found: all(abs(value - HERE) < EXACT for value in found.values()),
    ),
    part=(
        "normalisation by rows, without self-loops, gives 1/18",
        lambda found: abs(found["row"] - HERE) < EXACT,
    ),
    nothing=("the equal share of 63 nodes", {"found": {"row": 1 / 63, "symmetric": 1 / 63}}),
)
def tree_closed_form() -> Numbers:
    """Compute one entry of a power of a tree's adjacency matrix, for each normalisation.

    The entry belongs to the root and a node at depth 3. We compute it with and without self-loops.
    """
    tree, node, depth = nx.balanced_tree(2, 5), 7, 3
    kinds = itertools.product(("row", "symmetric"), (False, True))
    matrices = {
        f"{kind}{', loops' * loops}": graphs.adjacency(tree, kind, loops) for kind, loops in kinds
    }
    power = torch.linalg.matrix_power
    return {
        "found": {name: power(matrix, depth)[0, node].item() for name, matrix in matrices.items()}
    }


OVER_ALL = Threshold(0.5)  # a threshold for a rank correlation


@rule(
    each=(
        (
            "the rank correlation is high enough (significantly above 0 among pairs at equal "
            f"hops, with Holm's correction, and above {OVER_ALL:g} over all pairs on every graph "
            "at that depth)"
        ),
        lambda z, by_depth: [*beyond(z), *(x > OVER_ALL for x in by_depth)],
    ),
    against=(
        "the correlation is significantly below 0, or over all pairs it is below 0 on a graph",
        lambda z, by_depth: [*beyond([-x for x in z]), *(x < NOWHERE for x in by_depth)],
    ),
    nothing=("no correlation", {"z": [0.0] * 8, "by_depth": [0.0] * 4}),
)
def squashed_at_high_commute_time() -> Numbers:
    """Correlate commute time with sensitivity, over all pairs and over pairs at equal distance.

    Over all pairs, a correlation might come from the number of hops alone. Pairs at equal distance
    show whether the commute time explains anything beyond the number of hops.
    """
    ranks = measures.ranks_by_depth()
    within, over = ranks["within hops"].dropna(), ranks["resistance"]
    return {
        "over_all": over,
        "by_depth": over.groupby("times").min().tolist(),
        "within": within,
        "z": (within / ranks["s.e. of within hops"]).dropna(),
    }


@rule(
    each=(
        "resistance predicts significantly better than hops (Holm's correction)",
        lambda z: beyond(z),
    ),
    against=(
        "resistance predicts significantly worse than hops",
        lambda z: beyond([-x for x in z]),
    ),
    nothing=("no lead", {"z": [0.0] * 15}),
)
def resistance_beats_hops() -> Numbers:
    """Measure how much better resistance predicts the Jacobian than the number of hops does.

    We use only graphs on which the two can differ.
    """
    can = [
        name for name, graph in measures.examples().items() if measures.resistance_can_differ(graph)
    ]
    rows = measures.ranks_by_depth().loc[can]
    lead, times = rows["R - hops"], rows.index.levels[1]
    deep = {
        skip: measures.ranks_by_depth(skip).xs(times[-1], level="times")["resistance"]
        for skip in (False, True)
    }
    return {
        "lead": lead,
        "z": lead / rows["s.e. of R - hops"],
        "plain": deep[False],
        "skip": deep[True],
    }


def _deep(times: int) -> str:
    return f"{times} D layers" if times > 1 else "D layers"


def _span(values: pd.Series) -> str:
    return f"{style.number(float(min(values)))} to {style.number(float(max(values)))}"


MORE, LESS = Threshold(1.1), Threshold(0.9)


@rule(
    "width_helps",
    each=(
        (
            f"eight times the width raises the far Jacobian and a node's own Jacobian by more than "
            f"{MORE - 1:.0%}"
        ),
        lambda times_far, times_own: [
            far > MORE and own > MORE for far, own in zip(times_far, times_own, strict=True)
        ],
    ),
    against=(
        f"the far Jacobian falls by more than {1 - LESS:.0%}",
        lambda times_far: [x < LESS for x in times_far],
    ),
    nothing=("a width that changes nothing", {"times_far": [1.0] * 7, "times_own": [1.0] * 7}),
    null="both Jacobians have to rise, so the rule gives the same verdict if we swap them",
)
@rule(
    "topology_decides",
    holds=(
        "graphs of equal diameter differ by a larger factor than eight times the width makes",
        lambda alike, by_width: alike > Threshold(by_width),
    ),
    part=(
        (
            "the seven graphs differ by a larger factor than eight times the width makes, but "
            "graphs of equal diameter do not"
        ),
        lambda far, by_width: max(far) / min(far) > Threshold(by_width),
    ),
    nothing=("graphs that are all alike", {"far": [1.0] * 7, "alike": 1.0, "by_width": 1.0}),
)
def wider() -> Numbers:
    """Measure the factor by which sensitivities change if the width grows from 4 to 32.

    We measure how sensitive one end of the longest path is to the other end ("far") and to itself
    ("own"), in networks with 16 layers.
    """
    narrow, wide = (measures.ends(width, 16) for width in (4, 32))
    groups = wide["far"].groupby(
        {name: nx.diameter(graph) for name, graph in measures.examples().items()}
    )
    factor = wide / narrow
    return {
        "far": wide["far"],
        "alike": (groups.max() / groups.min()).max(),
        "times_far": factor["far"],
        "times_own": factor["own"],
        "times_share": factor["far"] / factor["own"],
        "by_width": max(factor["far"].max(), 1 / factor["far"].min()),
    }


@rule(
    each=(
        "the far Jacobian and a node's own Jacobian fall on every graph from D to 4 D layers",
        lambda times: [max(*row["own"], *row["far"]) < EVEN for row in times.values()],
    ),
    against=(
        "a node's own Jacobian grows on a graph",
        lambda times: [max(row["own"]) > EVEN for row in times.values()],
    ),
    nothing=(
        "a depth that changes nothing",
        {"times": {kind: {"own": [1.0], "far": [1.0]} for kind in "ab"}},
    ),
)
def depth_does_not_help() -> Numbers:
    """Measure the factor by which the Jacobians change in a network with four times as many layers.

    The networks have a self-weight or a skip connection.
    """
    kinds = {"self-weight": False, "skip connection": True}
    return {
        "times": {
            kind: measures.ends(times=4, skip=skip) / measures.ends(skip=skip)
            for kind, skip in kinds.items()
        }
    }


def growth(sizes: list[int]) -> float:
    """Return the smallest factor by which one more layer multiplies a size.

    If this factor stays above 1, the growth is exponential.

    Args:
        sizes: the sizes, for example of a receptive field, after 0, 1, 2, … layers.
    """
    return min(after / before for before, after in itertools.pairwise(sizes[1:]))


GROWS = Threshold(1.5)  # the growth factor per layer


@rule(
    holds=(
        f"each layer multiplies the number of nodes by at least {GROWS:g} on path and tree",
        lambda nodes: min(map(growth, nodes.values())) >= GROWS,
    ),
    part=(
        (
            f"each layer multiplies the number of nodes by at least {GROWS:g} on the tree, and "
            "the number of walks on both graphs"
        ),
        lambda nodes, walks: (
            growth(nodes["tree"]) >= GROWS and min(map(growth, walks.values())) >= GROWS
        ),
    ),
    nothing=(
        "a node more a layer",
        {
            "nodes": {"path": [*range(2, 9)], "tree": [*range(2, 9)]},
            "walks": {"path": [*range(2, 9)]},
        },
    ),
    null=(
        "if we count walks instead of nodes, the growth is exponential on both graphs, as "
        "the correction says"
    ),
)
def field_grows_exponentially() -> Numbers:
    """Count the nodes and the walks that reach one node in 0 to 6 layers.

    We count them on a path and on a tree.
    """
    path, tree = (nx.path_graph(129), 64, 6), (nx.balanced_tree(2, 6), 0, 6)
    return {
        "nodes": {"path": bounds.receptive_field(*path), "tree": bounds.receptive_field(*tree)},
        "walks": {
            "path": bounds.computation_tree(*path, True),
            "tree": bounds.computation_tree(*tree, True),
        },
    }


@rule(
    "new_edges_open",
    each=(
        (
            "four edges of SDRF, FoSR or GTR raise the far Jacobian significantly (Holm's "
            "correction)"
        ),
        lambda gain, error: beyond([(x - EVEN) / s for x, s in zip(gain, error, strict=True)]),
    ),
    against=(
        "the far Jacobian falls significantly",
        lambda gain, error: beyond([(EVEN - x) / s for x, s in zip(gain, error, strict=True)]),
    ),
    nothing=("edges that change nothing", {"gain": [1.0] * 4, "error": [0.1] * 4}),
    null="if every gain is set to the mean gain, which is above one, the claim holds, too",
)
def four_edges_of_each() -> Numbers:
    """Measure the factor by which four new edges increase the Jacobian of distant pairs.

    There is one factor for each rewiring method.
    """
    rows = _gains()
    return {"rows": rows, "gain": rows["gain"], "error": rows["gain s.e."]}


def _gains() -> pd.DataFrame:
    rows = measures.gains_by_depth()
    return rows[rows.index.get_level_values("method").isin(["SDRF", "FoSR", "GTR"])]


@rule(
    "sdrf_beats_random_edges",
    "fosr_beats_random_edges",
    "gtr_beats_random_edges",
    each=(
        "the gain is significantly larger than that of random edges (Holm's correction)",
        lambda z: beyond(z),
    ),
    against=("the gain is significantly smaller", lambda z: beyond([-x for x in z])),
    nothing=("random edges themselves", {"z": [0.0] * 21}),
)
def four_edges(method: str) -> Numbers:
    """Compare a rewiring method's four new edges with four random edges.

    Args:
        method: "SDRF", "FoSR" or "GTR".

    Returns:
        The gains, the lead over random edges in standard errors (`z`), and the number of cases in
            which the method is significantly better than random edges and the number in which it is
            significantly worse.
    """
    rows = _gains().xs(method, level="method")
    z = rows["ahead"] / rows["s.e."]
    return {"rows": rows, "z": z, "ahead": sum(beyond(z)), "behind": sum(beyond(-z))}
