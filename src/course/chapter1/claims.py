"""The claims of chapter 1's sources, each measured by a small function."""

import itertools
import math

import networkx as nx
import pandas as pd
import torch

from course.chapter1 import measures
from course.claims import Found, verdict, weigh
from helpers import compute, gnn, graphs, style

CUT = {"epochs", "a minute"}  # how a run ends that its budget stopped


def width_bound() -> Found:
    widths = {r: gnn.minimum_width(r) for r in range(2, 9)}
    measured = "least width for r = 2 to 8: " + ", ".join(map(str, widths.values()))
    return Found(measured, verdict(max(r for r, d in widths.items() if d <= 32) == 7))


def one_bit_a_number() -> Found:
    """Widths are powers of two, so bits a number may differ by a factor of two where they are really constant."""
    bits = measures.bits_a_number()
    spread = {name: float(bits[name].max() / bits[name].min()) for name in ("orders", "Eq. 5")}
    measured = "bits a number, all orders of the leaves over the width of Figure 4: " + ", ".join(
        f"{x:.2f}" for x in bits["orders"]
    )
    measured += "; by Eq. 5: " + ", ".join(f"{x:.2f}" for x in bits["Eq. 5"])
    measured += (
        f". Largest over smallest: {spread['orders']:.2f} (orders), {spread['Eq. 5']:.1f} (Eq. 5). Leaves a number: "
    )
    measured += ", ".join(f"{x:.2g}" for x in bits["leaves"]) + ", so four numbers a leaf fit as well from r = 4 on"
    near = all(0.25 <= x <= 2 for name in spread for x in bits[name])
    return Found(measured, verdict(near and max(spread.values()) <= 2, near))


def width_explains_failures() -> Found:
    """An easier question also makes a simpler function; only runs of several widths can tell."""
    reported, pairs = measures.reported(), measures.compare(key="everywhere")
    first = min(r for r in reported.columns if reported[r].max() < 1)
    bits = measures.bits_a_number()["Eq. 5"]
    measured = (
        f"Eq. 5 asks for d = {gnn.minimum_width(first)} at r = {first} if all 32 bits of a number can be used, and for "
        f"{gnn.minimum_width(first, 1)} if one can; the widths of Figure 4 use {bits.min():.2f} to {bits.max():.2f}. With the "
        f"question at every node one leaf is all that must pass: {measures.sentence(pairs, 'it')}"
    )
    widths = measures.runs().groupby(["kind", "depth"]).width.nunique()
    measured += f" Every network was trained at {widths.max()} width, and an easier question is a simpler function too"
    return Found(measured, verdict(all(pairs["better"]), run=bool((widths > 1).any())))


def question_everywhere_helps() -> Found:
    pairs = measures.compare(key="everywhere")
    measured = f"{measures.sentence(pairs, 'it')} {measures.everywhere_seeds()}"
    return Found(measured, weigh(pairs["better"], (not better for better in pairs["better"])))


def figure_3(kind: str) -> Found:
    """Holds if every depth is within 0.05 of the paper; open if runs that their budget stopped are below, or missing."""
    reported, runs = measures.reported().loc[kind].dropna(), measures.grid_runs(kind)
    best = runs["best_train_accuracy"]
    numbers = {f"r = {r}": (float(reported[r]), float(best[r]) if r in best else None) for r in reported.index}
    apart = [
        r
        for r, (paper, here) in zip(reported.index, numbers.values(), strict=True)
        if here is None or abs(here - paper) > 0.05
    ]
    open_ = [r for r in apart if r not in best or (best[r] < reported[r] and runs["ended"][r] in CUT)]
    measured = ", ".join(f"r = {r} {x:.2f} ({runs['epochs'][r]:,} epochs, {runs['ended'][r]})" for r, x in best.items())
    if missing := [str(r) for r in reported.index if r not in best]:
        measured += f"; not run: r = {', '.join(missing)}"
    return Found(measured, verdict(not apart, decided=not apart or open_ != apart), numbers)


def accuracy_falls_with_depth() -> Found:
    runs = {kind: measures.grid_runs(kind) for kind in measures.NETWORKS}
    best = {kind: run["best_train_accuracy"] for kind, run in runs.items()}
    falls = all(bool((line.diff().dropna() <= 0).all()) and line.iloc[0] > 0.99 for line in best.values())
    undecided = [kind for kind, run in runs.items() if max(run.index) < 5 or set(run["ended"]) == {"fitted"}]
    cut = [kind for kind, run in runs.items() if CUT & {*run["ended"]}]
    measured = "r = 2, 3, 4, 5, best epoch: " + "; ".join(
        f"{kind.upper()} {', '.join(f'{x:.2f}' for x in line.loc[:5])}" for kind, line in best.items()
    )
    measured += f"; stopped by their budget: {measures.names([kind.upper() for kind in cut])}"
    return Found(measured, verdict(falls, decided=not falls or not (undecided or cut)))


def gat_and_ggnn_alleviate() -> Found:
    runs = {kind: measures.grid_runs(kind) for kind in measures.NETWORKS}
    paper = measures.reported()
    depth = min(r for r in paper.columns if paper[r].min() < 1)
    at = {kind: run.loc[depth] for kind, run in runs.items()}
    best = {kind: float(run["best_train_accuracy"]) for kind, run in at.items()}
    measured = f"r = {depth}: " + ", ".join(
        f"{kind.upper()} {x:.2f} ({at[kind]['epochs']:,} epochs, {at[kind]['ended']})" for kind, x in best.items()
    )
    helps = min(best["gat"], best["ggnn"]) > max(best["gcn"], best["gin"])
    fits = all(x > 0.99 for x in best.values())
    decided = not fits and all(run["ended"] not in CUT for run in at.values())
    numbers = {f"{kind.upper()}, r = {depth}": (float(paper[depth][kind]), x) for kind, x in best.items()}
    return Found(measured, verdict(helps, best["ggnn"] > max(best["gcn"], best["gin"]), decided=decided), numbers)


def chains_are_fitted() -> Found:
    found = measures.chains()
    far = found["distance"].max()
    every = bool((found["fitted"] == found["runs"]).all())
    measured = "GCN, four leaves, runs fitted within 6,000 steps: " + ", ".join(
        f"{row.fitted} of {row.runs} at {row.distance} hops" for row in found.itertuples()
    )
    if far < 8:
        measured += "; 8 hops were not run"
    longer = _longer_at_random("chain")
    measured += f". With labels at random they take {min(longer):.2f} to {max(longer):.2f} times as long"
    numbers = {f"{row.distance} hops": (1.0, row.accuracy) for row in found.itertuples()}
    return Found(measured, verdict(every, decided=every and far >= 8, fit=min(longer) > 2), numbers)


def _steps(control: str, permuted: bool = False, **where: int) -> tuple[int, int]:
    """Fastest and slowest run of a control with the chain's number of examples."""
    runs = measures.few_examples()
    runs = runs[(runs["control"] == control) & (runs["permuted"] == permuted)]
    for column, value in where.items():
        runs = runs[runs[column] == value]
    return int(runs["steps"].min()), int(runs["steps"].max())


def _longer_at_random(control: str) -> list[float]:
    """How many times as long labels at random take, by depth and distance: twice or more where a leaf has to be read."""
    runs = measures.few_examples()
    mean = runs[runs["control"] == control].groupby(["permuted", "depth", "distance"])["steps"].mean()
    return (mean[True] / mean[False]).dropna().tolist()


def _is_read(control: str) -> bool:
    return min(_longer_at_random(control)) > 2


def few_examples_are_fitted() -> Found:
    """A set-up that fits labels at random as fast reads no leaf, and cannot tell one graph from another."""
    said, easier = [], []
    for control in ("tree", "tree, all questions"):
        for r in (3, 4, 5):
            chain, tree, drawn = _steps("chain", distance=r), _steps(control, depth=r), _steps(control, True, depth=r)
            said.append(
                f"{control}, r = {r}: {tree[0]} to {tree[1]}, labels at random {drawn[0]} to {drawn[1]} "
                f"(chain {chain[0]:,} to {chain[1]:,})"
            )
            easier.append(tree[1] <= chain[1])
    measured = f"steps until no error, {measures.FEW} examples, GCN: {'; '.join(said)}"
    read = _is_read("tree") and _is_read("chain")
    return Found(measured, verdict(all(easier), fit=read))


def two_hops_are_no_easier() -> Found:
    """As easy where no run on the star is faster than all those in the tree."""
    said, same, controls = [], [], {*measures.few_examples()["control"]}
    for kind in ("", ", all questions") if "star, all questions" in controls else ("",):
        for r in (3, 4, 5):
            star, drawn = (_steps(f"star{kind}", permuted, depth=r) for permuted in (False, True))
            tree = _steps(f"tree{kind}", depth=r)
            said.append(
                f"r = {r}{kind}: {star[0]} to {star[1]}, labels at random {drawn[0]} to {drawn[1]} (tree {tree[0]} to {tree[1]})"
            )
            same.append(star[0] >= tree[0])
    text = f"steps until no error, {measures.FEW} examples, GCN, all leaves two hops away: {'; '.join(said)}"
    return Found(text, verdict(all(same), fit=_is_read("tree") and _is_read("star")))


def two_hops_are_faster_where_leaves_are_read() -> Found:
    runs = measures.stars()
    epochs = {kind: part["epochs"].tolist() for kind, part in runs.groupby("kind")}
    test = runs["end_test_accuracy"].astype(float).min()
    measured = (
        f"8 leaves, 6,400 examples, epochs until no error: star {', '.join(map(str, epochs['star']))}, tree "
        f"{', '.join(map(str, epochs['gcn']))}; at least {test:.1%} of unseen examples right (chance 12.5%)"
    )
    faster = max(epochs["star"]) < min(epochs["gcn"])
    return Found(measured, verdict(faster, min(epochs["star"]) < min(epochs["gcn"]), fit=bool(test > 0.9)))


def fully_adjacent_layer_helps() -> Found:
    """At r = 3 the plain networks fit too, so nothing is opened there; only r = 5 can decide."""
    pairs = measures.compare(fully_adjacent=True)
    helped = pairs[pairs["r"] >= 5]["better"]
    measured = f"at equal epochs: {measures.sentence(pairs, 'it')}"
    return Found(measured, weigh(helped, (not better for better in helped)))


def attention_picks_the_leaf() -> Found:
    with compute.threads(1):
        run = measures.train_tree("attention", 5, 20, change=measures.without_choice)
    control = run["train_accuracy"].max()
    grid = measures.runs().query("kind == 'attention' and depth <= 6")
    fitted = grid["ended"] == "fitted"
    missed = ", ".join(f"r = {row.depth} {row.best_train_accuracy:.2f}" for row in grid[~fitted].itertuples())
    measured = (
        f"r = {grid['depth'].min()} to 6, three seeds, at most {grid['epochs_allowed'].max():,.0f} epochs: "
        f"{fitted.sum()} of {len(grid)} fitted (not: {missed or 'none'}); control at r = 5 {control:.1%}, chance {1 / 32:.1%}"
    )
    works = control < 0.1 and bool(fitted.groupby(grid["depth"]).any().all())
    return Found(measured, verdict(works and bool(fitted.all()), works))


def walks_bound_the_jacobian() -> Found:
    worst, pairs, shares = 0.0, 0, []
    for seed, graph in enumerate(measures.examples().values()):
        layers, target = nx.diameter(graph), graphs.far_pair(graph)[1]
        for normalisation in graphs.NORMALISATIONS:
            for self_weight in (0.0, 1.0):
                norms = graphs.jacobian_norms(graph, target, layers, 8, normalisation, self_weight, seed=seed)
                bound = graphs.walk_bound(graph, target, layers, normalisation, self_weight)
                reached = bound > 1e-12
                shares += (norms / bound)[reached].tolist()
                pairs += len(graph)
                worst = max(worst, float((norms - bound)[~reached].abs().max()) if bool((~reached).any()) else 0.0)
    measured = f"{pairs} pairs, 7 graphs, 3 normalisations: at most {max(shares):.2f} of the bound, median {pd.Series(shares).median():.3f}"
    return Found(measured, verdict(max(shares) <= 1 + 1e-9 and worst < 1e-9))


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


def resistance_bounds_the_jacobian() -> Found:
    shares = []
    for graph in measures.examples().values():
        for target in list(graph)[::3]:
            for layers in (2, 5, 9):
                norms = graphs.jacobian_norms(graph, target, layers, 4)
                shares += (norms / graphs.resistance_bound(graph, target, layers)).tolist()
    measured = f"{len(shares)} cases: at most {max(shares):.2g} of the bound, median {pd.Series(shares).median():.1g}"
    return Found(measured, verdict(max(shares) <= 1 and min(shares) >= 0))


def squashed_at_high_commute_time() -> Found:
    """Over all pairs distance alone would do it too; at equal hops it has to be the commute time."""
    ranks = measures.ranks_by_depth()
    inside, error = ranks["within hops"].dropna(), ranks["s.e. of within hops"].dropna()
    more = inside > 2 * error
    measured = (
        "untrained networks: the more commute time, the smaller the Jacobian, rank correlation over all pairs "
        + "; ".join(f"{_span(part['resistance'])} at {times} D" for times, part in ranks.groupby("times"))
        + ". At equal hops (four graphs): "
        + "; ".join(f"{_span(part)} at {times} D" for times, part in inside.groupby("times"))
        + f"; above 0 by two s.e. in {more.sum()} of {len(more)}"
    )
    over_all = ranks["resistance"].min()
    return Found(measured, weigh([*more, over_all > 0.5], [*(inside < -2 * error), over_all < 0]))


def resistance_beats_hops() -> Found:
    can = [name for name, graph in measures.examples().items() if measures.resistance_can_differ(graph)]
    rows = measures.ranks_by_depth().loc[can]
    ahead = rows["R - hops"] > 2 * rows["s.e. of R - hops"]
    measured = "on trees and cycles both order alike; rank correlation, resistance less hops: " + "; ".join(
        f"{times} D " + ", ".join(f"{name} {x:+.3f}" for (name, _), x in part["R - hops"].items())
        for times, part in rows.groupby("times")
    )
    won = ahead.groupby("times").sum()
    measured += "; ahead by two s.e. on " + ", ".join(f"{n} of {len(can)} at {times} D" for times, n in won.items())
    skip = measures.ranks_by_depth(True).loc[can]["R - hops"].xs(rows.index.levels[1][-1], level="times")
    measured += "; with a skip connection at the largest depth " + ", ".join(
        f"{name} {x:+.3f}" for name, x in skip.items()
    )
    behind = rows["R - hops"] < -2 * rows["s.e. of R - hops"]
    return Found(measured, weigh(ahead, behind))


def _wider() -> pd.DataFrame:
    """Factors from 4 to 32 vectors, at 16 layers, on what a node hears of the far end and of itself."""
    return measures.ends(32, 16) / measures.ends(4, 16)


def _span(values: list[float]) -> str:
    return f"{style.number(float(min(values)))} to {style.number(float(max(values)))}"


def width_helps() -> Found:
    """The claim is about the bound, so it can be told only where the bound moves with the width."""
    far, own = _wider()["far"], _wider()["own"]
    share = far / own
    measured = (
        f"d = 32 over d = 4, 16 layers, 7 graphs, orthogonal weights, for which the bound does not move: the far Jacobian × "
        f"{_span(far)}, the own × {_span(own)}, so the far input's share × {_span(share)}, higher on {(share > 1).sum()}"
    )
    return Found(measured, weigh(share > 1.1, share < 0.9, fit=_bound_moves()))


def _bound_moves() -> bool:
    """Whether the weights of these networks grow with the width, as the bound of Di Giovanni et al. (2023) has it."""
    largest = [float(torch.linalg.matrix_norm(graphs.orthogonal_weights(1, width), 2).max()) for width in (4, 32)]
    return largest[1] > 1.1 * largest[0]


def depth_does_not_help() -> Found:
    kinds = {
        kind: measures.ends(times=4, skip=skip) / measures.ends(skip=skip)
        for kind, skip in (("self-weight", False), ("skip connection", True))
    }
    measured = "from D to 4 D layers, 7 graphs: " + "; ".join(
        f"{kind}: the own Jacobian × {_span(row['own'])}, the far one × {_span(row['far'])}"
        for kind, row in kinds.items()
    )
    falls = [row.to_numpy().max() < 1 for row in kinds.values()]
    return Found(measured, weigh(falls, (row["own"].max() > 1 for row in kinds.values())))


def topology_decides() -> Found:
    """As `width_helps`: where the bound does not move with the width, the two cannot be compared."""
    wide = max(_wider()["far"].max(), 1 / _wider()["far"].min())
    far = measures.ends(32, 16)["far"]
    least, most = far.idxmin(), far.idxmax()
    groups = far.groupby({name: nx.diameter(graph) for name, graph in measures.examples().items()})
    same = (groups.max() / groups.min()).max()
    measured = (
        f"far Jacobian, 16 layers, d = 32: from {style.number(far[least])} ({least}) to {style.number(far[most])} ({most}), a "
        f"factor of {style.number(far[most] / far[least])}, but between graphs of one diameter at most {same:.1f}; eight times "
        f"the width changes it by at most {wide:.1f}. The weights are orthogonal, so the bound does not move with the width"
    )
    return Found(measured, verdict(far[most] / far[least] > wide, same > wide, fit=_bound_moves()))


def _exponential(sizes: list[int]) -> bool:
    """Whether every layer multiplies the size by 1.5 or more, from the first on."""
    return all(after >= 1.5 * before for before, after in itertools.pairwise(sizes[1:]))


def field_grows_exponentially() -> Found:
    path, tree = nx.path_graph(129), nx.balanced_tree(2, 6)
    nodes = {"path": graphs.receptive_field(path, 64, 6), "tree": graphs.receptive_field(tree, 0, 6)}
    walks = {"path": graphs.computation_tree(path, 64, 6, True), "tree": graphs.computation_tree(tree, 0, 6, True)}
    field, tree_of_walks = ([_exponential(sizes[name]) for name in sizes] for sizes in (nodes, walks))
    measured = "six layers: " + "; ".join(
        f"{name} {nodes[name][-1]} nodes, {walks[name][-1]:,} walks" for name in nodes
    )
    measured += ". The walks grow exponentially on both, the nodes on the tree only"
    return Found(measured, verdict(all(field), any(field) and all(tree_of_walks)))


def two_meanings_of_squashing() -> Found:
    rows = {layers: measures.averages(layers) for layers in (1, 8, 64)}
    measured = "share of the first of 64 inputs in the last after 1, 8, 64 layers of plain averaging: " + "; ".join(
        f"{name} {', '.join(f'{row[name]:.2g}' for row in rows.values())}" for name in ("path", "causal attention")
    )
    measured += f" (an equal share is {1 / 64:.3f})"
    opposite = rows[64]["path"] < 1 / 64 < rows[8]["causal attention"] < rows[64]["causal attention"]
    return Found(measured, verdict(opposite))


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


def opens(method: str) -> Found:
    rows = measures.gains_by_depth().xs(method, level="method")
    measured = "four edges (random edges), mean of far pairs over 24 draws of the weights: " + "; ".join(
        f"{times} D " + ", ".join(f"{name} × {row.gain:.1f} ({row.random:.1f})" for (name, _), row in part.iterrows())
        for times, part in rows.groupby("times")
    )
    return Found(measured, weigh(rows["gain"] > 1, rows["gain"] < 1 - 2 * rows["s.e."]))


def beats_random(method: str) -> Found:
    rows = measures.gains_by_depth().xs(method, level="method")
    measured = "four edges, gain less that of random edges, ± s.e. over 24 draws of the weights: " + "; ".join(
        f"{times} D "
        + ", ".join(f"{name} {row['ahead']:+.2f} ± {row['s.e.']:.1g}" for (name, _), row in part.iterrows())
        for times, part in rows.groupby("times")
    )
    won = rows["beats random"].groupby("times").agg(["sum", "size"])
    measured += "; ahead by two s.e. on " + ", ".join(
        f"{row['sum']} of {row['size']} at {times} D" for times, row in won.iterrows()
    )
    behind = rows["ahead"] < -2 * rows["s.e."]
    measured += f"; behind by two s.e. in {behind.sum()} of {len(rows)}"
    return Found(measured, weigh(rows["beats random"], behind))


def rewiring_lowers_commute_time() -> Found:
    risen = {}
    for name, graph in measures.examples().items():
        change = graphs.commute_time(graphs.rewire(graph, "gtr", 1)) - graphs.commute_time(graph)
        pairs = torch.triu(torch.ones_like(change), 1).bool()
        risen[name] = (change > 1e-9)[pairs].double().mean().item()
    least, most = min(risen, key=risen.get), max(risen, key=risen.get)
    measured = f"best single edge: commute time rises for {risen[least]:.0%} ({least}) to {risen[most]:.0%} ({most}) of all pairs"
    return Found(measured, verdict(max(risen.values()) == 0, max(risen.values()) < 0.5))
