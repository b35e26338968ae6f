"""The claims of chapter 1's sources, each measured by a small function."""

import math
from functools import cache

import networkx as nx
import pandas as pd
import torch

from helpers import compute, data, gnn, graphs
from helpers.chapter1 import measures
from helpers.claims import Found, claim, verdict
from helpers.sources import ALON, BLACK, COPIED_CODE, COURSE, DI_GIOVANNI, KARHADKAR, TOPPING


@claim(
    source=ALON,
    where="Eq. 5",
    statement="A state of 32 floats can hold the message of a tree up to r = 7, and no more",
    reported="2^(32 d) > (2^r)! / 2^(2^r - 1)",
    shown="1-over-squashing/lesson#What is needed, what is allowed, what is asked",
)
def width_bound() -> Found:
    widths = {r: gnn.minimum_width(r) for r in range(2, 9)}
    measured = "least width for r = 2 to 8: " + ", ".join(map(str, widths.values()))
    return Found(measured, verdict(max(r for r, d in widths.items() if d <= 32) == 7))


@claim(
    source=ALON,
    where="Eq. 5, read as the reason for Figure 3",
    statement="The networks of width 32 fail to fit the training set because the message does not fit into the vector",
    reported="not claimed, often assumed",
    shown="1-over-squashing/lesson#Why the bound does not explain the failures",
)
def width_explains_failures() -> Found:
    reported = data.table("reported/tree_neighbors_match").set_index("model").rename(columns=int)
    first = int(min(r for r in reported.columns if reported[r].max() < 1))
    bits = max(math.log2(len(gnn.TreeNeighborsMatch(r).orders)) for r in gnn.DEPTHS)
    measured = (
        f"all four fail from r = {first}, where the bound asks for d = {gnn.minimum_width(first)}; the released training "
        f"sets hold at most {bits:.1f} bits of order, one float holds 32"
    )
    return Found(measured, verdict(gnn.minimum_width(first) > 32 or bits > 32 * 32))


def _figure_3(kind: str) -> Found:
    """Holds if every depth is within 0.05 of the paper; open if only runs that the clock stopped are below."""
    reported = data.table("reported/tree_neighbors_match").set_index("model").rename(columns=int).loc[kind.upper()]
    runs = measures.grid_runs(kind)
    best = runs["best_train_accuracy"]
    apart = [r for r in best.index if abs(best[r] - reported[r]) > 0.05]
    short = [r for r in apart if best[r] < reported[r] and runs["ended"][r] == "budget"]
    stopped = runs.index[runs["ended"] == "budget"]
    measured = ", ".join(f"{x:.2f}" for x in best)
    if len(stopped):
        measured += f"; the clock stopped r = {stopped[0]} to {stopped[-1]} after {runs['seconds'].max():.0f} s at most"
    return Found(measured, verdict(not apart, decided=not apart or short != apart))


@claim(
    source=ALON,
    where="Figure 3",
    statement="All four networks fit small trees, and their training accuracy falls with the depth",
    reported="from 1.0 (r = 2, 3) to .08 - .16 (r = 8)",
    shown="1-over-squashing/lab#The whole grid, beside the paper",
)
def accuracy_falls_with_depth() -> Found:
    runs = {kind: measures.grid_runs(kind) for kind in ("gcn", "gin", "gat", "ggnn")}
    best = {kind: run["best_train_accuracy"] for kind, run in runs.items()}
    over = {kind: [x * 2**r for r, x in run.items()] for kind, run in best.items()}
    falls = [bool((run.diff().dropna() < 0).all()) and run.iloc[0] > 0.99 for run in best.values()]
    unfit = [run["ended"][3] for run in runs.values() if run["best_train_accuracy"][3] <= 0.99]
    measured = "at most a minute a run, r = 2, 3, 4, 5: " + "; ".join(
        f"{kind.upper()} {', '.join(f'{run[r]:.2f}' for r in (2, 3, 4, 5))}" for kind, run in best.items()
    )
    measured += f"; at r = 5 at most {max(run[3] for run in over.values()):.1f} times chance"
    if not all(falls):
        return Found(measured, verdict(False))
    return Found(measured, verdict(not unfit, part=True, decided=set(unfit) != {"budget"}))


@claim(
    source=ALON,
    where="Figure 3",
    statement="GCN of width 32: training accuracy by r = 2 to 8",
    reported="1, 1, .70, .19, .14, .09, .08",
    shown="1-over-squashing/lab#The whole grid, beside the paper",
)
def figure_3_gcn() -> Found:
    return _figure_3("gcn")


@claim(
    source=ALON,
    where="Figure 3",
    statement="GIN of width 32: training accuracy by r = 2 to 6",
    reported="1, 1, .77, .29, .20",
    shown="1-over-squashing/lab#The whole grid, beside the paper",
)
def figure_3_gin() -> Found:
    return _figure_3("gin")


@claim(
    source=ALON,
    where="Figure 3",
    statement="GAT of width 32: training accuracy by r = 2 to 8",
    reported="1, 1, 1, .41, .21, .15, .11",
    shown="1-over-squashing/lab#The whole grid, beside the paper",
)
def figure_3_gat() -> Found:
    return _figure_3("gat")


@claim(
    source=ALON,
    where="Figure 3",
    statement="GGNN of width 32: training accuracy by r = 2 to 8",
    reported="1, 1, 1, .60, .38, .21, .16",
    shown="1-over-squashing/lab#The whole grid, beside the paper",
)
def figure_3_ggnn() -> Found:
    return _figure_3("ggnn")


@claim(
    source=ALON,
    where="section 4.1",
    statement="Distance alone is not the problem: a chain hung on a tree of four leaves is fitted",
    reported="about 100 % for chains of up to 6",
    shown="1-over-squashing/lab#Is it the distance? A control",
)
def chains_are_fitted() -> Found:
    with compute.threads(1):
        runs = [measures.fit_on_a_chain(length, most=1000) for length in (0, 1, 2)]
    tree, fitted = measures.tree_beside_chain(4), pd.DataFrame(runs)
    measured = (
        f"GCN, four leaves at distance 2, 3, 4: at least {fitted['accuracy'].min():.0%} within "
        f"{', '.join(map(str, fitted['chain: steps']))} steps; "
        f"tree of depth 4: {tree['tree: accuracy']:.0%} after {tree['tree: steps']:,}"
    )
    return Found(measured, verdict(all(run["accuracy"] == 1 for run in runs) and tree["tree: accuracy"] < 0.9))


@claim(
    source=ALON,
    where="and issue 3 of its repository",
    statement="A fully adjacent last layer opens the bottleneck",
    reported="r = 5 from memory: GAT about 100 %, others about 92 %",
    shown="1-over-squashing/lab#Did the fully adjacent layer open it?",
)
def fully_adjacent_layer_helps() -> Found:
    gains, four, clock, short = {}, [], {}, []
    for kind in ("gcn", "gin", "gat", "ggnn"):
        plain, star = (measures.grid_runs(kind, fully_adjacent) for fully_adjacent in (False, True))
        gains[kind.upper()] = (plain["best_train_accuracy"][3], star["best_train_accuracy"][3])
        four.append(star["best_train_accuracy"][4])
        clock = {"without": plain["minutes"][3], "with": star["minutes"][3]}
        lost = star["best_train_accuracy"][3] <= plain["best_train_accuracy"][3]
        short += [star["ended"][r] for r, falls in ((3, lost), (4, four[-1] <= 0.9)) if falls]
    measured = (
        f"r = 3, without ({60 * clock['without']:.0f} s) and with ({60 * clock['with']:.0f} s): "
        f"{', '.join(f'{k} {a:.2f}, {b:.2f}' for k, (a, b) in gains.items())}; r = 4: at most {max(four):.2f} with it"
    )
    helps = [after > before for before, after in gains.values()]
    if not short:
        return Found(measured, verdict(True))
    return Found(measured, verdict(False, any(helps), decided=set(short) != {"budget"}))


@claim(
    source=COURSE,
    where="after Alon & Yahav (2021)",
    statement="One attention layer that picks by content fits what r hops do not; without the choice it stays at chance",
    reported="not in the paper",
    shown="1-over-squashing/lab#Attention, and the control that must fail",
)
def attention_picks_the_leaf() -> Found:
    found = {}
    with compute.threads(1):
        for name, change in (("attention", None), ("query fixed at 0", measures.without_choice)):
            run = measures.train_tree("attention", 5, 20, change=change)
            found[name] = run["train_accuracy"].iloc[-1]
    grid = data.table("tree_neighbors_match_measured").query("kind == 'attention' and depth <= 6")
    fitted = int((grid["best_train_accuracy"] > 0.99).sum())
    hops = max(measures.grid_runs(kind)["best_train_accuracy"][5] for kind in ("gcn", "gin", "gat", "ggnn"))
    measured = (
        f"r = 5, 20 epochs: {found['attention']:.0%}, control {found['query fixed at 0']:.1%}, best of four networks after a "
        f"minute {hops:.1%}; r = 2 to 6, three seeds: {fitted} of {len(grid)} fitted"
    )
    works = found["attention"] > 0.99 and max(found["query fixed at 0"], hops) < 0.1
    return Found(measured, verdict(works and fitted == len(grid), works))


@claim(
    source=DI_GIOVANNI,
    where="Theorem 3.2, and Topping et al. (2022), Lemma 1",
    statement="Powers of the normalised adjacency bound the Jacobian",
    reported="Topping: pairs exactly L hops apart; Di Giovanni: all pairs",
    shown="1-over-squashing/lesson#Measured, and bounded",
)
def walks_bound_the_jacobian() -> Found:
    worst, pairs, shares = 0.0, 0, []
    for seed, graph in enumerate(measures.examples().values()):
        layers, target = nx.diameter(graph), graphs.far_pair(graph)[1]
        for normalisation in graphs.NORMALISATIONS:
            for residual in (0.0, 1.0):
                norms = graphs.jacobian_norms(graph, target, layers, 8, normalisation, residual, seed=seed)
                bound = graphs.walk_bound(graph, target, layers, normalisation, residual)
                reached = bound > 1e-12
                shares += (norms / bound)[reached].tolist()
                pairs += len(graph)
                worst = max(worst, float((norms - bound)[~reached].abs().max()) if bool((~reached).any()) else 0.0)
    measured = f"{pairs} pairs, 7 graphs, 3 normalisations: at most {max(shares):.2f} of the bound, median {pd.Series(shares).median():.3f}"
    return Found(measured, verdict(max(shares) <= 1 + 1e-9 and worst < 1e-9))


@claim(
    source=TOPPING,
    where="section 2",
    statement="On the binary tree the bound is 2^-1 3^-r at distance r + 1",
    reported="for the normalised adjacency",
    shown="1-over-squashing/lesson#Say which normalisation a bound is for",
)
def tree_closed_form() -> Found:
    tree, node, depth = nx.balanced_tree(2, 5), 7, 3
    found = {
        f"{kind}{', loops' if loops else ''}": torch.linalg.matrix_power(graphs.adjacency(tree, kind, loops), depth)[
            0, node
        ].item()
        for kind in ("row", "symmetric")
        for loops in (False, True)
    }
    right = [abs(value - 0.5 / 9) < 1e-12 for value in found.values()]
    measured = f"distance 3, 1/18 = {1 / 18:.4f}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    return Found(measured, verdict(all(right), any(right)))


@claim(
    source=BLACK,
    where="Theorem 4.1",
    statement="Effective resistance bounds the Jacobian",
    reported="for every pair of nodes",
    shown="1-over-squashing/lesson#Effective resistance and commute time",
)
def resistance_bounds_the_jacobian() -> Found:
    shares = []
    for graph in measures.examples().values():
        for target in list(graph)[::3]:
            for layers in (2, 5, 9):
                norms = graphs.jacobian_norms(graph, target, layers, 4)
                shares += (norms / graphs.resistance_bound(graph, target, layers)).tolist()
    measured = f"{len(shares)} cases: at most {max(shares):.2g} of the bound, median {pd.Series(shares).median():.1g}"
    return Found(measured, verdict(max(shares) <= 1 and min(shares) >= 0))


@claim(
    source=COURSE,
    where="after Di Giovanni et al. (2023) and Black et al. (2023)",
    statement="Resistance (commute time) orders the pairs by how much they hear of each other, better than hops do",
    reported="not claimed; Di Giovanni's theorem on commute time is about a symmetric obstruction",
    shown="1-over-squashing/lesson#What predicts the sensitivity?",
)
def resistance_beats_hops() -> Found:
    found = [measures.predictors(graph) for graph in measures.examples().values()]
    better = sum(ranks["resistance"] > ranks["hops"] for ranks in found)
    low = min(ranks["resistance"] for ranks in found)
    measured = (
        f"rank correlation with resistance at least {low:.2f}; higher than with hops on {better} of {len(found)} graphs"
    )
    return Found(measured, verdict(better == len(found), low > 0.5))


@claim(
    source=DI_GIOVANNI,
    where="Theorem 3.2",
    statement="A wider vector lets more of a far input through, though topology decides",
    reported="the bound grows with the width (here: orthogonal weights, the bound does not move)",
    shown="1-over-squashing/lesson#Measured, and bounded",
)
def width_helps() -> Found:
    wider, fall = {}, {}
    for name, graph in measures.examples().items():
        source, target = (list(graph).index(node) for node in graphs.far_pair(graph))
        narrow, wide = (
            torch.stack([graphs.jacobian_norms(graph, list(graph)[target], 16, width, seed=s) for s in range(5)]).mean(
                0
            )
            for width in (4, 32)
        )
        wider[name] = float(wide[source] / narrow[source]) ** (1 / nx.diameter(graph))
        fall[name] = float(wide[target] / wide[source]) ** (1 / nx.diameter(graph))
    measured = (
        f"far Jacobian at 16 layers, factors per hop: d = 32 over d = 4 {min(wider.values()):.2f} to "
        f"{max(wider.values()):.2f}; own over far at d = 32 {min(fall.values()):.2f} ({min(fall, key=fall.get)}) to "
        f"{max(fall.values()):.2f} ({max(fall, key=fall.get)})"
    )
    topology = max(fall.values()) / min(fall.values()) > max(wider.values())
    wider_helps = min(wider.values()) > 1
    return Found(measured, verdict(wider_helps and topology, wider_helps))


@claim(
    source=COPIED_CODE,
    statement="The code computes balanced Forman curvature, Definition 1 of Topping et al. (2022)",
    reported="pentagon 0, K4 4/3, bridge of two K5 -6/5",
    shown="1-over-squashing/lesson#The control that must fail: the copied formula",
)
def copied_code_computes_curvature() -> Found:
    cases = {
        "pentagon": (nx.cycle_graph(5), (0, 1)),
        "K4": (nx.complete_graph(4), (0, 1)),
        "bridge": (nx.barbell_graph(5, 0), (4, 5)),
    }
    wrong = {name: graphs.balanced_forman_as_copied(graph)[edge] for name, (graph, edge) in cases.items()}
    right = {name: graphs.balanced_forman(graph)[edge] for name, (graph, edge) in cases.items()}
    measured = "its formula: " + ", ".join(f"{name} {value:.2f}" for name, value in wrong.items())
    measured += "; the definition: " + ", ".join(f"{name} {value:.2f}" for name, value in right.items())
    return Found(measured, verdict(all(abs(wrong[name] - right[name]) < 1e-9 for name in cases)))


@claim(
    source=TOPPING,
    where="Cheeger's inequality",
    statement="The spectral gap brackets the bottleneck: gap / 2 ≤ h ≤ sqrt(2 gap)",
    reported="for every graph",
    shown="1-over-squashing/lesson#Bottlenecks are cuts",
)
def gap_brackets_the_cut() -> Found:
    found = []
    for name, graph in measures.examples().items():
        if len(graph) <= 20:
            gap, h = graphs.spectral_gap(graph), graphs.cheeger_cut(graph)[0]
            found.append((name, gap / 2 / h, h / math.sqrt(2 * gap)))
    worst = max(max(low, high) for _, low, high in found)
    tight = max(found, key=lambda row: row[1])
    measured = (
        f"{len(found)} graphs, all cuts tried: no violation; closest on the {tight[0]}, gap / 2 = {tight[1]:.2f} h"
    )
    return Found(measured, verdict(worst <= 1 + 1e-9))


@cache
def _rewiring_gains() -> pd.DataFrame:
    graph = measures.examples()
    return pd.DataFrame({name: measures.rewiring_gains(graph[name]) for name in measures.REWIRED}).T


def _beats_random(method: str) -> Found:
    gains = _rewiring_gains()
    better = measures.beats_random(gains, method)
    measured = "four edges, mean of far pairs, times (random ± s.e.): " + ", ".join(
        f"{name} {row[method]:.1f} ({row['random (mean)']:.1f} ± {row['s.e.']:.1g})" for name, row in gains.iterrows()
    )
    measured += f"; better by 2 s.e. on {better.sum()} of {len(gains)}"
    return Found(measured, verdict(better.all(), bool((gains[method] > 1).all())))


@claim(
    source=TOPPING,
    where="section 5",
    statement="Edges around the most negative curvature (SDRF) raise the far Jacobian, more than random edges do",
    reported="judged by accuracy of trained networks",
    shown="1-over-squashing/lesson#Against random edges, over all far pairs",
)
def sdrf_opens() -> Found:
    return _beats_random("SDRF")


@claim(
    source=KARHADKAR,
    statement="Edges that raise the spectral gap (FoSR) raise the far Jacobian, more than random edges do",
    reported="judged by accuracy of trained networks",
    shown="1-over-squashing/lesson#Against random edges, over all far pairs",
)
def fosr_opens() -> Found:
    return _beats_random("FoSR")


@claim(
    source=BLACK,
    statement="Edges that lower total resistance most (GTR) raise the far Jacobian, more than random edges do",
    reported="judged by accuracy of trained networks",
    shown="1-over-squashing/lesson#Against random edges, over all far pairs",
)
def gtr_opens() -> Found:
    return _beats_random("GTR")


@claim(
    source=COURSE,
    where="after Black et al. (2023) and Di Giovanni et al. (2023)",
    statement="A new edge that lowers total resistance lowers commute times",
    reported="not claimed, often assumed",
    shown="1-over-squashing/lesson#When commute time goes up",
)
def rewiring_lowers_commute_time() -> Found:
    found = {name: measures.longer_commutes(graph) for name, graph in measures.examples().items()}
    risen = {name: row["pairs with longer commute"] for name, row in found.items()}
    least, most = min(risen, key=risen.get), max(risen, key=risen.get)
    measured = f"best single edge: commute time rises for {risen[least]:.0%} ({least}) to {risen[most]:.0%} ({most}) of all pairs"
    return Found(measured, verdict(max(risen.values()) == 0, max(risen.values()) < 1))
