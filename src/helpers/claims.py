"""Claims of the sources, each a function that measures it here and says whether it holds.

The scorecard page and a test run them all. A verdict is computed, never written down.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import networkx as nx
import pandas as pd
import torch

from helpers import collapse, compute, data, gnn, graphs, models, squashing
from helpers.transformer import rotate

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "does not hold here"
OPEN = "not run far enough"
VERDICTS = (HOLDS, CORRECTED, FAILS, OPEN)


class Claim(NamedTuple):
    """What a source says, where it says it, where the book shows it, and the function that measures it."""

    chapter: int
    source: str
    url: str
    statement: str
    reported: str
    page: str
    measure: Callable[[], tuple[str, str]]  # what was measured, and one of VERDICTS


CLAIMS: dict[str, Claim] = {}


def claim(chapter: int, source: str, url: str, statement: str, reported: str, page: str) -> Callable:
    """Register the decorated function under its own name."""

    def register(measure: Callable[[], tuple[str, str]]) -> Callable[[], tuple[str, str]]:
        CLAIMS[measure.__name__] = Claim(chapter, source, url, statement, reported, page, measure)
        return measure

    return register


def scorecard(chapter: int | None = None) -> pd.DataFrame:
    """Measure the claims of a chapter (or all) and return one row each, as HTML: verdict, claim, reported, measured.

    Raises:
        ValueError: no claim belongs to the chapter.
    """
    chosen = [c for c in CLAIMS.values() if chapter in (None, c.chapter)]
    if not chosen:
        raise ValueError(f"chapter must be one of {sorted({c.chapter for c in CLAIMS.values()})}, not {chapter}")
    rows = []
    for each in compute.progress(chosen, "claims"):
        measured, verdict = each.measure()
        shown = f'<a href="{each.page}.html">{each.page.split("/")[-1]}</a>'
        source = f'<a href="{each.url}">{each.source}</a>'
        rows.append(
            {
                "chapter": each.chapter,
                "verdict": verdict,
                "claim": f"{each.statement}<br><small>{source}; shown in the {shown}</small>",
                "reported": each.reported,
                "measured": measured,
            }
        )
    return pd.DataFrame(rows)


BOTTLENECK, CURVATURE = "https://arxiv.org/abs/2006.05205", "https://arxiv.org/abs/2111.14522"
WIDTH, RESISTANCE = "https://arxiv.org/abs/2302.02941", "https://arxiv.org/abs/2302.06835"
LESSON1, LAB1 = "1-over-squashing/lesson", "1-over-squashing/lab"


@claim(
    1, "Alon & Yahav (2021), Eq. 5", BOTTLENECK,
    "A state of 32 floats can hold the message of a tree up to r = 7, and no more",
    "2^(32 d) > (2^r)! / 2^(2^r - 1)", LESSON1,
)  # fmt: skip
def width_bound() -> tuple[str, str]:
    widths = {r: gnn.minimum_width(r) for r in range(2, 9)}
    measured = "least width for r = 2 to 8: " + ", ".join(map(str, widths.values()))
    return measured, HOLDS if max(r for r, d in widths.items() if d <= 32) == 7 else FAILS


@claim(
    1, "Alon & Yahav (2021), Eq. 5, read as the reason for Figure 3", BOTTLENECK,
    "The networks of width 32 fail to fit the training set because the message does not fit into the vector",
    "not claimed, often assumed", LESSON1,
)  # fmt: skip
def width_explains_failures() -> tuple[str, str]:
    reported = data.table("reported/tree_neighbors_match").set_index("model").rename(columns=int)
    first = int(min(r for r in reported.columns if reported[r].max() < 1))
    bits = max(math.log2(len(gnn.TreeNeighborsMatch(r).orders)) for r in gnn.DEPTHS)
    measured = (
        f"all four fail from r = {first}, where the bound asks for d = {gnn.minimum_width(first)}; the released training "
        f"sets hold at most {bits:.1f} bits of order, one float holds 32"
    )
    return measured, HOLDS if gnn.minimum_width(first) > 32 or bits > 32 * 32 else FAILS


def _figure_3(kind: str) -> tuple[str, str]:
    """Holds if every depth is within 0.05 of the paper; open if only runs that the clock stopped are below."""
    reported = data.table("reported/tree_neighbors_match").set_index("model").rename(columns=int).loc[kind.upper()]
    runs = squashing.grid_runs(kind)
    best = runs["best_train_accuracy"]
    apart = [r for r in best.index if abs(best[r] - reported[r]) > 0.05]
    short = [r for r in apart if best[r] < reported[r] and runs["ended"][r] == "budget"]
    stopped = runs.index[runs["ended"] == "budget"]
    measured = ", ".join(f"{x:.2f}" for x in best)
    if len(stopped):
        measured += f"; the clock stopped r = {stopped[0]} to {stopped[-1]} after {runs['seconds'].max():.0f} s at most"
    return measured, HOLDS if not apart else OPEN if short == apart else FAILS


@claim(
    1, "Alon & Yahav (2021), Figure 3", BOTTLENECK,
    "All four networks fit small trees, and their training accuracy falls with the depth",
    "from 1.0 (r = 2, 3) to .08 - .16 (r = 8)", LAB1,
)  # fmt: skip
def accuracy_falls_with_depth() -> tuple[str, str]:
    runs = {kind: squashing.grid_runs(kind) for kind in ("gcn", "gin", "gat", "ggnn")}
    best = {kind: run["best_train_accuracy"] for kind, run in runs.items()}
    over = {kind: [x * 2**r for r, x in run.items()] for kind, run in best.items()}
    falls = [bool((run.diff().dropna() < 0).all()) and run.iloc[0] > 0.99 for run in best.values()]
    unfit = [run["ended"][3] for run in runs.values() if run["best_train_accuracy"][3] <= 0.99]
    measured = "at most a minute a run, r = 2, 3, 4, 5: " + "; ".join(
        f"{kind.upper()} {', '.join(f'{run[r]:.2f}' for r in (2, 3, 4, 5))}" for kind, run in best.items()
    )
    measured += f"; at r = 5 at most {max(run[3] for run in over.values()):.1f} times chance"
    if not all(falls):
        return measured, FAILS
    return measured, HOLDS if not unfit else OPEN if set(unfit) == {"budget"} else CORRECTED


@claim(
    1, "Alon & Yahav (2021), Figure 3", BOTTLENECK,
    "GCN of width 32: training accuracy by r = 2 to 8", "1, 1, .70, .19, .14, .09, .08", LAB1,
)  # fmt: skip
def figure_3_gcn() -> tuple[str, str]:
    return _figure_3("gcn")


@claim(
    1, "Alon & Yahav (2021), Figure 3", BOTTLENECK,
    "GIN of width 32: training accuracy by r = 2 to 6", "1, 1, .77, .29, .20", LAB1,
)  # fmt: skip
def figure_3_gin() -> tuple[str, str]:
    return _figure_3("gin")


@claim(
    1, "Alon & Yahav (2021), Figure 3", BOTTLENECK,
    "GAT of width 32: training accuracy by r = 2 to 8", "1, 1, 1, .41, .21, .15, .11", LAB1,
)  # fmt: skip
def figure_3_gat() -> tuple[str, str]:
    return _figure_3("gat")


@claim(
    1, "Alon & Yahav (2021), Figure 3", BOTTLENECK,
    "GGNN of width 32: training accuracy by r = 2 to 8", "1, 1, 1, .60, .38, .21, .16", LAB1,
)  # fmt: skip
def figure_3_ggnn() -> tuple[str, str]:
    return _figure_3("ggnn")


@claim(
    1, "Alon & Yahav (2021), section 4.1", BOTTLENECK,
    "Distance alone is not the problem: a chain hung on a tree of four leaves is fitted",
    "about 100 % for chains of up to 6", LAB1,
)  # fmt: skip
def chains_are_fitted() -> tuple[str, str]:
    with compute.threads(1):
        runs = [squashing.fit_on_a_chain(length, most=1000) for length in (0, 1, 2)]
    tree, fitted = squashing.tree_beside_chain(4), pd.DataFrame(runs)
    measured = (
        f"GCN, four leaves at distance 2, 3, 4: at least {fitted['accuracy'].min():.0%} within "
        f"{', '.join(map(str, fitted['chain: steps']))} steps; "
        f"tree of depth 4: {tree['tree: accuracy']:.0%} after {tree['tree: steps']:,}"
    )
    return measured, HOLDS if all(run["accuracy"] == 1 for run in runs) and tree["tree: accuracy"] < 0.9 else FAILS


@claim(
    1, "Alon & Yahav (2021), and issue 3 of its repository", BOTTLENECK,
    "A fully adjacent last layer opens the bottleneck",
    "r = 5 from memory: GAT about 100 %, others about 92 %", LAB1,
)  # fmt: skip
def fully_adjacent_layer_helps() -> tuple[str, str]:
    gains, four, clock, short = {}, [], {}, []
    for kind in ("gcn", "gin", "gat", "ggnn"):
        plain, star = (squashing.grid_runs(kind, fully_adjacent) for fully_adjacent in (False, True))
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
        return measured, HOLDS
    return measured, OPEN if set(short) == {"budget"} else CORRECTED if any(helps) else FAILS


@claim(
    1, "This course, after Alon & Yahav (2021)", BOTTLENECK,
    "One attention layer that picks by content fits what r hops do not; without the choice it stays at chance",
    "not in the paper", LAB1,
)  # fmt: skip
def attention_picks_the_leaf() -> tuple[str, str]:
    found = {}
    with compute.threads(1):
        for name, change in (("attention", None), ("query fixed at 0", squashing.without_choice)):
            run = squashing.train_tree("attention", 5, 20, change=change)
            found[name] = run["train_accuracy"].iloc[-1]
    grid = data.table("tree_neighbors_match_measured").query("kind == 'attention' and depth <= 6")
    fitted = int((grid["best_train_accuracy"] > 0.99).sum())
    hops = max(squashing.grid_runs(kind)["best_train_accuracy"][5] for kind in ("gcn", "gin", "gat", "ggnn"))
    measured = (
        f"r = 5, 20 epochs: {found['attention']:.0%}, control {found['query fixed at 0']:.1%}, best of four networks after a "
        f"minute {hops:.1%}; r = 2 to 6, three seeds: {fitted} of {len(grid)} fitted"
    )
    works = found["attention"] > 0.99 and max(found["query fixed at 0"], hops) < 0.1
    return measured, FAILS if not works else HOLDS if fitted == len(grid) else CORRECTED


@claim(
    1, "Topping et al. (2022), Lemma 1; Di Giovanni et al. (2023), Theorem 3.2", WIDTH,
    "Powers of the normalised adjacency bound the Jacobian",
    "Topping: pairs exactly L hops apart; Di Giovanni: all pairs", LESSON1,
)  # fmt: skip
def walks_bound_the_jacobian() -> tuple[str, str]:
    worst, pairs, shares = 0.0, 0, []
    for seed, graph in enumerate(squashing.examples().values()):
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
    return measured, HOLDS if max(shares) <= 1 + 1e-9 and worst < 1e-9 else FAILS


@claim(
    1, "Topping et al. (2022)", CURVATURE,
    "On the binary tree the bound is 2^-1 3^-r at distance r + 1",
    "for the normalised adjacency", LESSON1,
)  # fmt: skip
def tree_closed_form() -> tuple[str, str]:
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
    return measured, HOLDS if all(right) else CORRECTED if any(right) else FAILS


@claim(
    1, "Black et al. (2023)", RESISTANCE,
    "Effective resistance bounds the Jacobian",
    "for every pair of nodes", LESSON1,
)  # fmt: skip
def resistance_bounds_the_jacobian() -> tuple[str, str]:
    shares = []
    for graph in squashing.examples().values():
        for target in list(graph)[::3]:
            for layers in (2, 5, 9):
                norms = graphs.jacobian_norms(graph, target, layers, 4)
                shares += (norms / graphs.resistance_bound(graph, target, layers)).tolist()
    measured = f"{len(shares)} cases: at most {max(shares):.2g} of the bound, median {pd.Series(shares).median():.1g}"
    return measured, HOLDS if max(shares) <= 1 and min(shares) >= 0 else FAILS


@claim(
    1, "Read into Di Giovanni et al. (2023); Black et al. (2023)", RESISTANCE,
    "Resistance (commute time) orders the pairs by how much they hear of each other, better than hops do",
    "not claimed; Di Giovanni's theorem on commute time is about a symmetric obstruction", LESSON1,
)  # fmt: skip
def resistance_beats_hops() -> tuple[str, str]:
    found = [squashing.predictors(graph) for graph in squashing.examples().values()]
    better = sum(ranks["resistance"] > ranks["hops"] for ranks in found)
    low = min(ranks["resistance"] for ranks in found)
    measured = (
        f"rank correlation with resistance at least {low:.2f}; higher than with hops on {better} of {len(found)} graphs"
    )
    return measured, HOLDS if better == len(found) else CORRECTED if low > 0.5 else FAILS


@claim(
    1, "Di Giovanni et al. (2023)", WIDTH,
    "A wider vector lets more of a far input through, though topology decides",
    "the bound grows with the width (here: orthogonal weights, the bound does not move)", LESSON1,
)  # fmt: skip
def width_helps() -> tuple[str, str]:
    wider, fall = {}, {}
    for name, graph in squashing.examples().items():
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
    return measured, FAILS if min(wider.values()) <= 1 else HOLDS if topology else CORRECTED


@claim(
    1, "jctops/understanding-oversquashing", "https://github.com/jctops/understanding-oversquashing",
    "The code computes balanced Forman curvature, Definition 1 of Topping et al. (2022)",
    "pentagon 0, K4 4/3, bridge of two K5 -6/5", LESSON1,
)  # fmt: skip
def copied_code_computes_curvature() -> tuple[str, str]:
    cases = {
        "pentagon": (nx.cycle_graph(5), (0, 1)),
        "K4": (nx.complete_graph(4), (0, 1)),
        "bridge": (nx.barbell_graph(5, 0), (4, 5)),
    }
    wrong = {name: graphs.balanced_forman_as_copied(graph)[edge] for name, (graph, edge) in cases.items()}
    right = {name: graphs.balanced_forman(graph)[edge] for name, (graph, edge) in cases.items()}
    measured = "its formula: " + ", ".join(f"{name} {value:.2f}" for name, value in wrong.items())
    measured += "; the definition: " + ", ".join(f"{name} {value:.2f}" for name, value in right.items())
    return measured, HOLDS if all(abs(wrong[name] - right[name]) < 1e-9 for name in cases) else FAILS


@claim(
    1, "Topping et al. (2022); Cheeger's inequality", CURVATURE,
    "The spectral gap brackets the bottleneck: gap / 2 ≤ h ≤ sqrt(2 gap)",
    "for every graph", LESSON1,
)  # fmt: skip
def gap_brackets_the_cut() -> tuple[str, str]:
    found = []
    for name, graph in squashing.examples().items():
        if len(graph) <= 20:
            gap, h = graphs.spectral_gap(graph), graphs.cheeger_cut(graph)[0]
            found.append((name, gap / 2 / h, h / math.sqrt(2 * gap)))
    worst = max(max(low, high) for _, low, high in found)
    tight = max(found, key=lambda row: row[1])
    measured = (
        f"{len(found)} graphs, all cuts tried: no violation; closest on the {tight[0]}, gap / 2 = {tight[1]:.2f} h"
    )
    return measured, HOLDS if worst <= 1 + 1e-9 else FAILS


@cache
def _rewiring_gains() -> pd.DataFrame:
    graph = squashing.examples()
    return pd.DataFrame({name: squashing.rewiring_gains(graph[name]) for name in squashing.REWIRED}).T


def _beats_random(method: str) -> tuple[str, str]:
    gains = _rewiring_gains()
    better = squashing.beats_random(gains, method)
    measured = "four edges, mean of far pairs, times (random ± s.e.): " + ", ".join(
        f"{name} {row[method]:.1f} ({row['random (mean)']:.1f} ± {row['s.e.']:.1g})" for name, row in gains.iterrows()
    )
    measured += f"; better by 2 s.e. on {better.sum()} of {len(gains)}"
    return measured, HOLDS if better.all() else CORRECTED if bool((gains[method] > 1).all()) else FAILS


@claim(
    1, "Topping et al. (2022)", CURVATURE,
    "Edges around the most negative curvature (SDRF) raise the far Jacobian, more than random edges do",
    "judged by accuracy of trained networks", LESSON1,
)  # fmt: skip
def sdrf_opens() -> tuple[str, str]:
    return _beats_random("SDRF")


@claim(
    1, "Karhadkar et al. (2023)", "https://arxiv.org/abs/2210.11790",
    "Edges that raise the spectral gap (FoSR) raise the far Jacobian, more than random edges do",
    "judged by accuracy of trained networks", LESSON1,
)  # fmt: skip
def fosr_opens() -> tuple[str, str]:
    return _beats_random("FoSR")


@claim(
    1, "Black et al. (2023)", RESISTANCE,
    "Edges that lower total resistance most (GTR) raise the far Jacobian, more than random edges do",
    "judged by accuracy of trained networks", LESSON1,
)  # fmt: skip
def gtr_opens() -> tuple[str, str]:
    return _beats_random("GTR")


@claim(
    1, "Black et al. (2023); Di Giovanni et al. (2023)", RESISTANCE,
    "A new edge that lowers total resistance lowers commute times",
    "not claimed, often assumed", LESSON1,
)  # fmt: skip
def rewiring_lowers_commute_time() -> tuple[str, str]:
    found = {name: squashing.longer_commutes(graph) for name, graph in squashing.examples().items()}
    risen = {name: row["pairs with longer commute"] for name, row in found.items()}
    least, most = min(risen, key=risen.get), max(risen, key=risen.get)
    measured = f"best single edge: commute time rises for {risen[least]:.0%} ({least}) to {risen[most]:.0%} ({most}) of all pairs"
    return measured, HOLDS if max(risen.values()) == 0 else CORRECTED if max(risen.values()) < 1 else FAILS


GLASSES = "https://arxiv.org/abs/2406.04267"
LESSON3, LAB3 = "3-representational-collapse/lesson", "3-representational-collapse/lab"


@claim(
    3, "Barbero et al. (2024), Lemma B.1", GLASSES,
    "With bounded logits, the weight of the last token falls when a token is inserted, and the change tends to 0",
    "for all bounded logits", LESSON3,
)  # fmt: skip
def last_weight_falls() -> tuple[str, str]:
    generator = torch.Generator().manual_seed(0)
    falls, changes = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        change = before - logits.softmax(1)[:, -1]
        falls &= bool((change > 0).all())
        changes.append(float(change.max()))
    measured = f"falls in all 800 random rows; largest change {changes[0]:.3f} (n = 10), {changes[-1]:.1e} (n = 10,000)"
    return measured, HOLDS if falls and changes == sorted(changes, reverse=True) and changes[-1] < 1e-5 else FAILS


@claim(
    3, "Barbero et al. (2024), Lemma B.2, Figure 9", GLASSES,
    "The total variation of two softmaxes decays with length when only the first 200 logits differ",
    "decays (no rate given)", LESSON3,
)  # fmt: skip
def early_noise_is_forgotten() -> tuple[str, str]:
    lengths = [50, 200, 500, 10_000]
    mean = collapse.perturbed_total_variation(lengths).mean(0)
    limit = collapse.perturbation_limit()
    ratio = float(mean[-1]) * lengths[-1] / limit
    monotone = bool((mean[1:] < mean[:-1]).all())
    measured = f"n TV tends to {limit:.3f} (ratio {ratio:.3f} at n = 10,000); flat at {mean[1]:.4f} up to n = 500"
    return measured, FAILS if abs(ratio - 1) > 0.1 else HOLDS if monotone else CORRECTED


@claim(
    3, "Barbero et al. (2024), Theorem B.3", GLASSES,
    "A repeated last token is forgotten when positional information decays with distance",
    "distance below any ε for long sequences", LESSON3,
)  # fmt: skip
def decaying_positions_collapse() -> tuple[str, str]:
    found = []
    for n in (10, 1000, 10_000):
        values = collapse.rotating_values("random", n, 0.0)
        found.append([float(x) for x in collapse.repeat_last(lambda r: 3 * torch.exp(-r / 10), values)])
    measured = (
        f"one head, logits 3 exp(-distance/10): total variation {found[0][1]:.3f}, {found[1][1]:.3f}, {found[2][1]:.4f}"
    )
    return measured, HOLDS if found[2][1] < 0.01 and found[2][0] < 0.01 else FAILS


@claim(
    3, "Barbero et al. (2024), Theorem B.3, read without its assumption of decay", GLASSES,
    "Bounded logits alone force collapse",
    "not claimed, often assumed", LESSON3,
)  # fmt: skip
def bounded_logits_suffice() -> tuple[str, str]:
    change, _ = collapse.rotating_counterexample(10_000)
    return (
        f"one rotation by pi a token, n = 10,000: the output changes by {change:.4f} (closed form {2 * math.tanh(2):.4f})",
        FAILS if change > 1 else HOLDS,
    )


@claim(
    3, "Barbero et al. (2024), section 4, doubted in appendix C.4", GLASSES,
    "RoPE decays with distance, as Theorem B.3 needs",
    "assumed; the appendix concedes it may fail", LESSON3,
)  # fmt: skip
def rope_decays() -> tuple[str, str]:
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    key = rotate(query, torch.tensor([-float(distance)]))
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rotate(key.expand(len(positions), -1), positions) @ query[0]) / 8
    best = int(logits.argmax())
    return f"a key exists whose largest logit is at distance {best:,}", FAILS if best == distance else HOLDS


@claim(
    3, "Barbero et al. (2024), Proposition B.4", GLASSES,
    "The softmaxes of 1010… and 0101… do not approach each other",
    "total variation does not tend to 0", LESSON3,
)  # fmt: skip
def alternating_sequences_stay_apart() -> tuple[str, str]:
    found = [collapse.alternating_total_variation(n) for n in (2, 100, 10_000)]
    exact = 2 * (math.e - 1) / (math.e + 1)
    return f"{found[-1]:.10f} at n = 10,000 (closed form {exact:.10f})", (
        HOLDS if max(abs(x - exact) for x in found) < 1e-9 else FAILS
    )


@claim(
    3, "Barbero et al. (2024), appendix C.4, Figure 10", GLASSES,
    "NoPE, RoPE, ALiBi and absolute encodings all collapse, at similar lengths",
    "all collapse at similar lengths", LESSON3,
)  # fmt: skip
def all_encodings_collapse() -> tuple[str, str]:
    variants = {name: {"encoding": name} for name in collapse.ENCODINGS if name != "ALiBi"}
    variants |= {f"ALiBi 1/{k}": {"encoding": "ALiBi", "slope": 1 / k} for k in (2, 256)}
    drops = {}
    for name, choice in variants.items():
        runs = [collapse.one_layer_distance(**choice, lengths=[10, 10_000], seed=s, residual=True) for s in range(10)]
        near, far = torch.stack(runs).mean(0)
        drops[name] = float(far / near)
    measured = "with a residual, distance at n = 10,000 over n = 10: " + ", ".join(
        f"{k} {v:.2g}" for k, v in drops.items()
    )
    similar = max(drops.values()) < 10 * min(drops.values())
    return measured, HOLDS if max(drops.values()) < 0.1 and similar else FAILS


@claim(
    3, "Barbero et al. (2024), appendix C.3, Figure 8", GLASSES,
    "Representations converge with sinusoidal encodings",
    "converge", LESSON3,
)  # fmt: skip
def sinusoidal_encodings_collapse() -> tuple[str, str]:
    ratio = {}
    for residual in (False, True):
        runs = [
            collapse.one_layer_distance("APE on q, k, v", [10, 10_000], deviation=1 / 8, seed=s, residual=residual)
            for s in range(5)
        ]
        near, far = torch.stack(runs).mean(0)
        ratio[residual] = float(far / near)
    measured = f"distance at n = 10,000 over n = 10: {ratio[False]:.2g} without a residual, {ratio[True]:.2g} with one"
    shrinks = [value < 0.2 for value in ratio.values()]
    return measured, HOLDS if all(shrinks) else CORRECTED if any(shrinks) else FAILS


@claim(
    3, "Barbero et al. (2024), section 4", GLASSES,
    "Low precision makes two long prompts indistinguishable sooner",
    "sooner in bf16", LESSON3,
)  # fmt: skip
def low_precision_collides_sooner() -> tuple[str, str]:
    found = {kind: collapse.first_collision(lambda n: 1 + 1 / n, kind) for kind in ("bf16", "fp16", "fp32")}
    measured = "1 + 1/n first equals its successor at n = " + ", ".join(f"{v:,} ({k})" for k, v in found.items())
    return measured, HOLDS if found["bf16"] < found["fp16"] < found["fp32"] else FAILS


@claim(
    3, "Barbero et al. (2024), appendix C.6", GLASSES,
    "A sliding window stops representational collapse",
    "bounds the spread of softmax", LESSON3,
)  # fmt: skip
def window_stops_collapse() -> tuple[str, str]:
    def mean(window: int | None) -> torch.Tensor:
        runs = [collapse.one_layer_distance("NoPE", [64, 10_000], window=window, seed=s) for s in range(10)]
        return torch.stack(runs).mean(0)

    free, held = mean(None), mean(64)
    measured = f"NoPE, n = 64 to 10,000: {free[0]:.2g} to {free[1]:.2g} without, {held[0]:.2g} to {held[1]:.2g} with a window of 64"
    return measured, HOLDS if held[1] > 0.2 * held[0] and free[1] < 0.2 * free[0] else FAILS


@claim(
    3, "Veličković et al. (2024)", "https://arxiv.org/abs/2410.01104",
    "Adaptive temperature sharpens a dispersed softmax",
    "sharper attention at every length tested", LESSON3,
)  # fmt: skip
def adaptive_temperature_sharpens() -> tuple[str, str]:
    gains = {}
    for n in (16, 128, 4096):
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = 3.0
        gains[n] = float(collapse.adaptive_temperature(row)[0] / row.softmax(0)[0])
    measured = "weight of a token that leads by 3 grows by a factor of " + ", ".join(
        f"{g:.2f} (n = {n:,})" for n, g in gains.items()
    )
    helps = [gain > 1.001 for gain in gains.values()]
    return measured, HOLDS if all(helps) else CORRECTED if any(helps) else FAILS


@claim(
    3, "Arefin et al. (2025)", "https://arxiv.org/abs/2411.02344",
    "The Seq-VCR loss tells collapsed batches from healthy ones",
    "used as a training loss", LESSON3,
)  # fmt: skip
def seq_vcr_sees_collapse() -> tuple[str, str]:
    healthy = torch.randn(256, 8, 32, generator=torch.Generator().manual_seed(0))
    losses = [collapse.seq_vcr_loss(x) for x in (healthy, 0.001 * healthy, healthy[..., :1].expand(-1, -1, 32))]
    measured = f"healthy {losses[0]:.3f}, a point {losses[1]:.3f}, a line {losses[2]:.3f}"
    return measured, HOLDS if losses[0] < 0.5 * min(losses[1:]) else FAILS


def _signal_and_noise(n: int, **setting) -> tuple[float, float]:
    """The fp32 distance at n tokens, and the distance between the fp32 and the bf16 representation of one prompt."""
    (once, twice), (coarse, _) = (collapse.repeated_states(m, [n], **setting) for m in _small_model())
    return float((once - twice).abs().sum()), float((once - coarse).abs().sum())


@cache
def _small_model() -> tuple[models.LanguageModel, models.LanguageModel]:
    return models.load(dtype="fp32"), models.load(dtype="bf16")


@claim(
    3, "Barbero et al. (2024), Figure 5a", GLASSES,
    "The last representations of n and n + 1 ones approach each other in a language model",
    "Gemma 7B: falls to the bf16 noise", LAB3,
)  # fmt: skip
def ones_collapse() -> tuple[str, str]:
    found = collapse.last_token_distance(_small_model()[0], [8, 16, 32, 128, 256, 512])
    _, noise = _signal_and_noise(512)
    measured = f"SmolLM2-135M: {found.max():.0f} at most, {found[-1]:.1f} at n = 512; bf16 noise {noise:.1f}"
    falls = found[-1] < 0.2 * found[0]
    monotone = bool((found[1:] < found[:-1]).all())
    return measured, FAILS if not falls else HOLDS if monotone else CORRECTED


@claim(
    3, "Barbero et al. (2024), Figure 5d", GLASSES,
    "Commas keep the representations apart",
    "the distance does not fall", LAB3,
)  # fmt: skip
def commas_prevent_collapse() -> tuple[str, str]:
    plain, _ = _signal_and_noise(513)
    next_token, _ = _signal_and_noise(513, sequence="1,")  # an odd length ends on a digit, as ones do
    in_phase, noise = _signal_and_noise(513, sequence="1,", period=2)
    short, _ = _signal_and_noise(17, sequence="1,", period=2)
    measured = (
        f"SmolLM2-135M, 513 tokens: ones {plain:.1f}; commas, last 1 repeated {next_token:.0f}, a period repeated "
        f"{in_phase:.1f} ({short:.1f} at 17 tokens); bf16 noise {noise:.1f}"
    )
    return measured, HOLDS if in_phase > max(noise, 0.5 * short) else CORRECTED if in_phase > plain else FAILS


@cache
def _copying_effects(hint: bool = False, pattern: str = "ones") -> dict[str, torch.Tensor]:
    found = {}
    for place in ("first", "last"):
        zero, one = collapse.copying_margins(_small_model()[0], [10, 100], place, hint=hint, pattern=pattern)
        found[place] = torch.stack([zero, zero - one])
    return found


def _compare_effects(plain: torch.Tensor, changed: torch.Tensor, name: str) -> tuple[str, str]:
    """An effect counts as larger from a tenth of a logit on, which changes the odds by a tenth."""
    larger = (changed > plain + 0.1).tolist()
    measured = (
        f"SmolLM2-135M, effect of a last 0 (logits) at 10 and 100 digits: {plain[0]:.2f}, {plain[1]:.2f}; "
        f"{name} {changed[0]:.2f}, {changed[1]:.2f}"
    )
    return measured, HOLDS if all(larger) else CORRECTED if any(larger) else FAILS


@claim(
    3, "Barbero et al. (2024), Figure 2a", GLASSES,
    "Copying the first digit is easier than copying the last one",
    "Gemini 1.5: last digit fails from about 300, first does not", LAB3,
)  # fmt: skip
def first_digit_is_easier() -> tuple[str, str]:
    found = _copying_effects()
    first, last = found["first"][1], found["last"][1]
    solved = bool((found["first"][0] > 0).any() or (found["last"][0] > 0).any())
    measured = f"SmolLM2-135M, effect of the one 0 (logits) at 10 and 100 digits: first {first[0]:.2f}, {first[1]:.2f}; last {last[0]:.2f}, {last[1]:.2f}"
    measured += "" if solved else "; it never answers 0, so no transition is seen"
    return measured, FAILS if not bool((first > last).all()) else HOLDS if solved else CORRECTED


@claim(
    3, "Barbero et al. (2024), Figure 2b", GLASSES,
    "A hint that the digit need not be a 1 helps with the last digit",
    "Gemini 1.5: fixed by the hint", LAB3,
)  # fmt: skip
def hint_helps() -> tuple[str, str]:
    plain, hinted = _copying_effects()["last"][1], _copying_effects(hint=True)["last"][1]
    return _compare_effects(plain, hinted, "with the hint")


@claim(
    3, "Barbero et al. (2024), Figure 2c", GLASSES,
    "Alternating digits instead of ones help with the last digit",
    "Gemini 1.5: right at all lengths", LAB3,
)  # fmt: skip
def alternation_helps() -> tuple[str, str]:
    plain, mixed = _copying_effects()["last"][1], _copying_effects(pattern="alternating")["last"][1]
    return _compare_effects(plain, mixed, "alternating")
