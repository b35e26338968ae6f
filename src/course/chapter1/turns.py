"""Run the experiments that might change the verdicts on the claims of chapter 1.

These experiments vary the seeds, widths, learning rates, graphs, activations and weights.
"""

import itertools
import math

import networkx as nx
import pandas as pd
import torch

from course.chapter1 import claims, measures, variations
from course.evidence.rules import Numbers, beyond, more_than_a_coin
from course.evidence.turns import turn
from course.maths import bounds
from course.training import gnn
from helpers import data, graphs

DEPTH = 3  # the depth for which three seeds were trained
KINDS = ("gcn", "ggnn")


@turn(
    "question_everywhere_helps",
    asked=(
        "We trained three seeds of two networks at r = 3 with the question at every node, "
        "and compared them with the shortest run with the question at the root, which may "
        "have ended without a fit"
    ),
    survives=(
        (
            "with the question at every node, each seed takes fewer epochs than the shortest "
            "other run"
        ),
        lambda everywhere, root: all(max(everywhere[kind]) < root[kind] for kind in root),
    ),
    turned=(
        (
            "in one of the networks most seeds need at least as many epochs as the shortest "
            "other run"
        ),
        lambda everywhere, root: any(
            sum(epochs >= root[kind] for epochs in everywhere[kind]) > len(everywhere[kind]) / 2
            for kind in root
        ),
    ),
    measured=(
        "{' '.join(f'{kind.upper()} needs ' + ', '.join(f'{n:.0f}' for n in "
        "everywhere[kind]) + f' epochs with the question at every node, and at least "
        "{root[kind]:.0f} with the question at the root.' for kind in root)}"
    ),
)
def other_seeds() -> Numbers:
    """Measure how many epochs each seed needs until no error if every node knows the question.

    For each network, we compare this number with the number of epochs of the shortest run in which
    only the root knows the question. That run may have ended without a fit.
    """
    table = pd.concat([measures.runs().query("ended != 'a minute'"), data.table("stars")])
    table = table.query("depth == @DEPTH and not fully_adjacent")
    everywhere, root = {}, {}
    for kind in KINDS:
        each = table[table["kind"] == kind]
        everywhere[kind] = each[each["key"] == "everywhere"]["epochs"].tolist()
        root[kind] = float(each[each["key"] == "root"]["epochs"].min())
    return {"everywhere": everywhere, "root": root}


@turn(
    "width_bound",
    asked=(
        "We counted how many orders of the leaves the vector must distinguish in the "
        "released training sets, instead of all possible orders"
    ),
    survives=(
        "at r = 8, 32 numbers of 32 bits cannot distinguish these orders",
        lambda bits: bits > 32 * 32,
    ),
    turned=("one number of 32 bits can distinguish them", lambda bits: bits <= 32),
    measured=(
        "The bound is about unseen orders and not about training accuracy, because the "
        "released sets have at most {most:,} orders, which {bits} bits distinguish at every "
        "r. If we count all orders, without dividing by the tree's symmetries, the widths "
        "for r = 5 to 8 are {', '.join(map(str, whole))}"
    ),
)
def orders_in_the_training_sets() -> Numbers:
    """Count the orders of the leaves in the largest released training set.

    Returns:
        `most`: the number of orders.
        `bits`: how many bits it takes to tell these orders apart.
        `whole`: for r = 5 to 8, the smallest width (in numbers of 32 bits) if all (2^r)! orders of
            the leaves must be told apart, without dividing by the symmetries of the tree.
    """
    most = max(len(gnn.TreeNeighborsMatch(r).orders) for r in range(2, 9))
    whole = [-(-math.factorial(2**r).bit_length() // 32) for r in range(5, 9)]
    return {"most": most, "bits": (most - 1).bit_length(), "whole": whole}


def _until(table: pd.DataFrame) -> list[tuple[float, float]]:
    """Return for each run a pair of its epochs until no error and its missing accuracy.

    The number of epochs is infinite if the run did not reach zero errors. The missing accuracy is 1
    minus the best training accuracy. Sorting these pairs puts better runs first.
    """
    fitted = table["ended"] == "fitted"
    epochs = table["epochs"].where(fitted, math.inf)
    return list(zip(epochs, 1 - table["best_train_accuracy"].astype(float), strict=True))


@turn(
    "two_hops_are_faster_where_leaves_are_read",
    asked=(
        "We trained with width 64 instead of 32 (star, and star with a relay), and with a "
        "learning rate three times as high (also the tree), two seeds each, for 50 epochs"
    ),
    survives=(
        (
            "in both set-ups every run at two hops fits earlier, or ends at a higher "
            "accuracy, than every run at three hops"
        ),
        lambda near, far: all(max(near[name]) < min(far[name]) for name in near),
    ),
    turned=(
        "in one of the set-ups most runs at three hops do as well as some run at two hops",
        lambda near, far: any(
            sum(each <= max(near[name]) for each in far[name]) > len(far[name]) / 2 for name in near
        ),
    ),
    measured=(
        "Each number is the epoch at which a run made no error, or the accuracy (in %) that "
        "it reached: {'; '.join(f'with {name}, ' + ', '.join(f'{kind} {_outcomes(runs)}' for "
        "kind, runs in part.items()) for name, part in every.items())}"
    ),
)
def other_width_and_rate() -> Numbers:
    """Measure the epochs until no error with another width and with another learning rate.

    The leaves are two hops away (star) or three hops away (relay, tree). If two hops are still
    faster, the claim does not depend on width and learning rate.
    """
    near, far, every = {}, {}, {}
    for name, width, rate in (("width 64", 64, 0.001), ("rate 0.003", 32, 0.003)):
        table = data.table("stars_varied")
        table = table[
            (table["width"] == width) & (table["rate"] == rate) & (table["depth"] == DEPTH)
        ]
        kinds = {kind: _until(part) for kind, part in table.groupby("kind", sort=False)}
        near[name] = kinds["star"]
        far[name] = kinds["star, a relay"] + kinds.get("gcn", [])
        every[name] = {("tree" if kind == "gcn" else kind): runs for kind, runs in kinds.items()}
    return {"near": near, "far": far, "every": every}


def _outcomes(runs: list[tuple[float, float]]) -> str:
    """Describe for each run when it first made no error, or which accuracy it reached."""
    said = [f"{epochs:.0f}" if epochs < math.inf else f"{1 - left:.0%}" for epochs, left in runs]
    return "/".join(said)


@turn(
    "attention_picks_the_leaf",
    asked="We trained six seeds at r = 5 with half the learning rate for 50 epochs",
    survives=("most of the runs fit", lambda fitted: 2 * sum(fitted) > len(fitted)),
    turned=("no run fits", lambda fitted: not any(fitted)),
    measured=(
        "{sum(fitted)} of {len(fitted)} runs fit. The others end at an accuracy of {', "
        "'.join(f'{x:.2f}' for x in rest) or 'none'}"
    ),
)
def more_seeds() -> Numbers:
    """Measure which of six attention layers with other seeds reach zero errors at r = 5.

    For layers that do not, the best training accuracy is returned.
    """
    table = data.table("stars_varied").query("kind == 'attention'")
    fitted = table["ended"] == "fitted"
    return {
        "fitted": fitted.tolist(),
        "rest": table["best_train_accuracy"].astype(float)[~fitted].tolist(),
    }


@turn(
    "walks_bound_the_jacobian",
    asked=(
        "We took other activations with a slope of at most one (tanh, |x|, leaky relu, sine) "
        "on thirty random graphs of 12 nodes"
    ),
    survives=("no Jacobian exceeds the bound", lambda most: max(most.values()) <= 1 + 1e-9),
    turned=("one Jacobian exceeds the bound", lambda most: max(most.values()) > 1 + 1e-9),
    measured=(
        "The largest ratio of a Jacobian to its bound is {', '.join(f'{x:.3f} ({name})' for "
        "name, x in most.items())}"
    ),
)
def other_activations() -> Numbers:
    """Measure the largest ratio of a Jacobian to its bound, for each of four other activations.

    The maximum is over random graphs, in networks with three layers of width 6.
    """
    activations = {
        "tanh": torch.tanh,
        "|x|": torch.abs,
        "leaky relu": torch.nn.functional.leaky_relu,
        "sine": torch.sin,
    }
    most = {}
    for name, activation in activations.items():
        shares = []
        for seed in range(30):
            graph = nx.connected_watts_strogatz_graph(12, 4, 0.4, seed=seed)
            norms = graphs.jacobian_norms(graph, 0, 3, 6, activation=activation, seed=seed)
            bound = graphs.walk_bound(graph, 0, 3)
            shares.append(float((norms / bound)[bound > 1e-12].max()))
        most[name] = max(shares)
    return {"most": most}


@turn(
    "tree_closed_form",
    asked=(
        "We took distances of 2 to 5 instead of 3, with an inner node and with a leaf as the "
        "far node"
    ),
    survives=(
        (
            "normalised by rows and without loops, the matrix agrees with the closed form at "
            "each distance for both kinds of nodes, and no other normalisation agrees "
            "anywhere"
        ),
        lambda ratio: all(
            (abs(x - 1) < 1e-9) == (name in ("row", "row, a leaf"))
            for name, each in ratio.items()
            for x in each
        ),
    ),
    turned=(
        (
            "another normalisation agrees with the closed form at each distance, or this one "
            "does not"
        ),
        lambda ratio: any(
            all(abs(x - 1) < 1e-9 for x in each) != (name in ("row", "row, a leaf"))
            for name, each in ratio.items()
        ),
    ),
    measured=(
        "The weight of the far node, divided by 2⁻¹ 3⁻ʳ, at distances 2 to 5 is {'; "
        "'.join(', '.join(f'{x:.3g}' for x in each) + f' ({name})' for name, each in "
        "ratio.items())}"
    ),
)
def other_distances() -> Numbers:
    """Compare the weight of a distant node in the root with the closed form, at distances 2 to 5.

    Returns:
        The ratios of the weight to the closed form, keyed by the normalisation of the matrix and
            the kind of far node (inner node or leaf).
    """
    ratio = {}
    for leaf, kind, loops in itertools.product((False, True), ("row", "symmetric"), (False, True)):
        found = []
        for distance in range(2, 6):
            tree = nx.balanced_tree(2, distance if leaf else distance + 2)
            matrix = graphs.adjacency(tree, kind, loops)
            power = torch.linalg.matrix_power(matrix, distance)
            found.append(float(power[0, 2**distance - 1]) * 2 * 3 ** (distance - 1))
        ratio[f"{kind}{', loops' * loops}{', a leaf' * leaf}"] = found
    return {"ratio": ratio}


@turn(
    "resistance_beats_hops",
    asked=(
        "We took six other graphs of about 32 nodes (three random geometric graphs, two "
        "crowds, a ring of cliques, a lollipop) with as many layers as 1, 2 and 4 diameters"
    ),
    survives=(
        "hops predict significantly better in some case, as on the chapter's own graphs",
        lambda z: any(beyond([-x for x in z], 3)),
    ),
    turned=(
        (
            "resistance predicts significantly better in more cases than a coin would give, "
            "and hops predict significantly better in no case"
        ),
        lambda z: (
            not any(beyond([-x for x in z], 3)) and more_than_a_coin(sum(beyond(z, 3)), len(z))
        ),
    ),
    measured=(
        "Resistance predicts significantly better in {sum(beyond(z, 3))} of {len(z)} cases, "
        "and hops in {sum(beyond([-x for x in z], 3))}. The rank correlation of resistance "
        "minus that of hops is {'; '.join(f'with {times} D layers ' + ', '.join(f'{name} "
        "{x:+.2f}' for name, x in part.items()) for times, part in lead.items())}, where D "
        "is the diameter"
    ),
)
def other_graphs() -> Numbers:
    """Measure how much better resistance ranks pairs of nodes than hops do, on other graphs.

    Returns:
        `z`: the difference of the two rank correlations, divided by its standard error over four
            draws of the weights.
        `lead`: the difference itself, by number of diameters and graph.
    """
    table = data.table("ranks_elsewhere")
    lead = {
        int(times): dict(zip(part["graph"], part["R - hops"], strict=True))
        for times, part in table.groupby("times")
    }
    return {"z": (table["R - hops"] / table["s.e. of R - hops"]).tolist(), "lead": lead}


@turn(
    "width_helps",
    asked=(
        "We took Gaussian weights of variance 1 / width instead of orthogonal weights, and "
        "compared width 4 with 32 and 64"
    ),
    survives=(
        "the far Jacobian and a node's own Jacobian rise on most graphs at both widths",
        lambda far, own: all(
            2 * sum(a > 1.1 and b > 1.1 for a, b in zip(far[w], own[w], strict=True)) > len(far[w])
            for w in far
        ),
    ),
    turned=(
        "the far Jacobian falls on most graphs at one of the widths",
        lambda far: any(2 * sum(x < 0.9 for x in each) > len(each) for each in far.values()),
    ),
    measured=(
        "With 16 layers, {seeds} draws and 7 graphs, {'; '.join(f'width {w} instead of 4 "
        "multiplies the far Jacobian by {min(far[w]):.2g} to {max(far[w]):.2g} and a node’s "
        "own Jacobian by {min(own[w]):.2g} to {max(own[w]):.2g}' for w in far)}"
    ),
)
def gaussian_weights() -> Numbers:
    """Measure how larger widths change the Jacobians on each graph, with Gaussian weights.

    We return factors in comparison with width 4, for the far end ("far") and for the node itself
    ("own").
    """
    seeds, layers = 8, 16
    found = {width: variations.ends_gaussian(width, layers, seeds) for width in (4, 32, 64)}
    over = {width: found[width] / found[4] for width in (32, 64)}
    return {
        "far": {width: each["far"].tolist() for width, each in over.items()},
        "own": {width: each["own"].tolist() for width, each in over.items()},
        "seeds": seeds,
    }


@turn(
    "depth_does_not_help",
    asked=(
        "We put a norm before each layer, as networks of this depth have: H + relu(A norm(H) W)"
    ),
    survives=(
        (
            "from D to 4 D layers a node's own Jacobian grows on some graph, as with a skip "
            "connection"
        ),
        lambda own: max(own) > 1,
    ),
    turned=(
        "the far Jacobian and a node's own Jacobian fall on every graph",
        lambda own, far: max(*own, *far) < 1,
    ),
    measured=(
        "From D to 4 D layers (D is the diameter), on 7 graphs, a node's own Jacobian is "
        "multiplied by {min(own):.2g} to {max(own):.2g} and the far Jacobian by "
        "{min(far):.2g} to {max(far):.2g}"
    ),
)
def with_norms() -> Numbers:
    """Measure how Jacobians change in networks with norms if there are four times as many layers.

    The networks have D and 4 D layers, where D is the diameter of the graph. We return factors for
    a node's own Jacobian and for the far one, keyed by graph.
    """
    times = variations.ends_with_norms(4) / variations.ends_with_norms(1)
    return {"own": times["own"].tolist(), "far": times["far"].tolist()}


@turn(
    "topology_decides",
    asked="We took widths of 4 to 128 instead of 4 and 32",
    survives=(
        "all graphs differ by more than the widths do, and graphs of one diameter differ by less",
        lambda by_graph, by_width, alike: by_graph > by_width > alike,
    ),
    turned=(
        "all graphs differ by less than the widths do, or graphs of one diameter differ by more",
        lambda by_graph, by_width, alike: by_graph < by_width or alike > by_width,
    ),
    measured=(
        "The far Jacobian with 16 layers differs by a factor of {by_graph:,.0f} between "
        "graphs, of {alike:.1f} between graphs of equal diameter, and of {by_width:.1f} "
        "between widths of 4 to 128"
    ),
)
def wider_widths() -> Numbers:
    """Measure the factor by which the far Jacobian differs between graphs and between widths.

    Graphs with the same diameter are also compared with each other.
    """
    far = pd.DataFrame({width: measures.ends(width, 16)["far"] for width in (4, 16, 64, 128)})
    diameters = {name: nx.diameter(graph) for name, graph in measures.examples().items()}
    alike = far[128].groupby(diameters)
    return {
        "by_graph": float(far[128].max() / far[128].min()),
        "alike": float((alike.max() / alike.min()).max()),
        "by_width": float((far.max(axis=1) / far.min(axis=1)).max()),
    }


@turn(
    "field_grows_exponentially",
    asked=(
        "We took four more graphs of 500 nodes or more: a grid, a ring of cliques, a random "
        "geometric graph and a random 3-regular graph"
    ),
    survives=(
        (
            "each layer multiplies the nodes by less than 1.5 on one graph and by more on "
            "another, and the walks by more on all graphs"
        ),
        lambda nodes, walks: (
            min(nodes.values()) < 1.5 < max(nodes.values()) and min(walks.values()) >= 1.5
        ),
    ),
    turned=(
        "the nodes grow that fast on all graphs, or the walks do not",
        lambda nodes, walks: min(nodes.values()) >= 1.5 or min(walks.values()) < 1.5,
    ),
    measured=(
        "Over six layers, one more layer multiplies the number of nodes by at least {', "
        "'.join(f'{nodes[name]:.2f} ({name})' for name in nodes)}, and the number of walks "
        "by at least {', '.join(f'{walks[name]:.2f} ({name})' for name in nodes)}"
    ),
)
def other_fields() -> Numbers:
    """Measure the smallest factor by which one more layer multiplies receptive fields and walks.

    The graphs are not those of the claim. If the factor stays above 1, the growth is exponential.
    """
    made = {
        "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(25, 25)),
        "ring of cliques": nx.ring_of_cliques(100, 5),
        "geometric": variations.geometric(500, 0.07),
        "3-regular": nx.random_regular_graph(3, 600, seed=0),
    }
    middle = {"grid": 312}
    nodes, walks = {}, {}
    for name, graph in made.items():
        place = middle.get(name, next(iter(graph)))
        nodes[name] = claims.growth(bounds.receptive_field(graph, place, 6))
        walks[name] = claims.growth(bounds.computation_tree(graph, place, 6, True))
    return {"nodes": nodes, "walks": walks}


@turn(
    "new_edges_open",
    asked=(
        "We added twenty edges instead of four on the chapter's graphs, and four edges on "
        "six graphs of about 32 nodes"
    ),
    survives=(
        (
            "the far Jacobian rises significantly in more cases than a coin would give, and "
            "falls significantly in no case"
        ),
        lambda z: (
            more_than_a_coin(sum(beyond(z, 11)), len(z)) and not any(beyond([-x for x in z], 11))
        ),
    ),
    turned=(
        "the far Jacobian falls significantly in some case",
        lambda z: any(beyond([-x for x in z], 11)),
    ),
    measured=(
        "The far Jacobian rises significantly in {sum(beyond(z, 11))} of {len(z)} cases and "
        "falls significantly in {sum(beyond([-x for x in z], 11))}{': ' * bool(falls)}{', "
        "'.join(falls)}. The smallest gain is {least}"
    ),
)
def more_edges() -> Numbers:
    """Measure whether far Jacobians also increase with more new edges, or on other graphs.

    Returns:
        `z`: for each method, graph and depth, the gain minus 1 in standard errors, over twelve
            draws of the weights. A gain of 1 means that the new edges change nothing.
        `falls`: the cases in which the gain is significantly below 1.
        `least`: the smallest gain with its case.
    """
    rows = variations.gains_long()
    z = ((rows["gain"] - 1) / rows["gain s.e."]).tolist()
    bad = beyond([-x for x in z], 11)
    names = [f"{each.method}, {each.graph}, {each.edges} edges" for each in rows.itertuples()]
    low = rows["gain"].argmin()
    return {
        "z": z,
        "falls": [
            f"{name} {x:.2f}" for name, x, b in zip(names, rows["gain"], bad, strict=True) if b
        ],
        "least": f"{rows['gain'].iloc[low]:.2f} ({names[low]})",
    }


def _elsewhere(method: str) -> Numbers:
    rows = variations.gains_long().query("method == @method")
    z = (rows["ahead"] / rows["s.e."]).tolist()
    said = [
        f"{each.graph}, {each.times} D, {each.edges} edges {each.ahead:+.2f}"
        for each in rows.itertuples()
    ]
    ahead, behind = beyond(z, 11), beyond([-x for x in z], 11)
    return {
        "z": z,
        "ahead": sum(ahead),
        "behind": sum(behind),
        "lost": [name for name, b in zip(said, behind, strict=True) if b],
    }


_AGAINST_RANDOM = {  # the same for all three rewiring methods
    "asked": (
        "We took six graphs of about 32 nodes with as many layers as 1 and 2 diameters, and "
        "twenty edges on the chapter's seven graphs"
    ),
    "measured": (
        "The gain is significantly larger than with random edges in {ahead} of {len(z)} "
        "cases and significantly smaller in {behind}{': ' * bool(lost)}{'; '.join(lost[:6])}"
    ),
}
_LEADS = (
    (
        "the method is significantly worse in no case, and significantly better in more cases"
        " than a coin would give"
    ),
    lambda z, ahead, behind: behind == 0 and more_than_a_coin(ahead, len(z)),
)
_FALLS_BEHIND = ("the method is significantly worse in some case", lambda behind: behind > 0)


@turn("gtr_beats_random_edges", survives=_LEADS, turned=_FALLS_BEHIND, **_AGAINST_RANDOM)
def gtr_elsewhere() -> Numbers:
    """Compare GTR's edges with random edges on other graphs and with more edges.

    The claim survives if GTR is significantly better in these cases, too.
    """
    return _elsewhere("GTR")


@turn("fosr_beats_random_edges", survives=_LEADS, turned=_FALLS_BEHIND, **_AGAINST_RANDOM)
def fosr_elsewhere() -> Numbers:
    """Compare FoSR's edges with random edges on other graphs and with more edges.

    The claim survives if FoSR is significantly better in these cases, too.
    """
    return _elsewhere("FoSR")


@turn("sdrf_beats_random_edges", survives=_FALLS_BEHIND, turned=_LEADS, **_AGAINST_RANDOM)
def sdrf_elsewhere() -> Numbers:
    """Compare SDRF's edges with random edges on other graphs and with more edges.

    The claim does not survive if SDRF is significantly better in these cases, unlike in the
    chapter.
    """
    return _elsewhere("SDRF")


@turn(
    "squashed_at_high_commute_time",
    asked=(
        "We took trained networks: GCNs with skip connections and as many layers as two "
        "diameters, which learned to give each node the mean of all inputs"
    ),
    survives=(
        (
            "on more graphs than a coin would give, a node is less sensitive to another node "
            "if the commute time between them is longer"
        ),
        lambda over: more_than_a_coin(sum(x > 0 for x in over.values()), len(over)),
    ),
    turned=(
        "on at least half of the graphs this is not so",
        lambda over: 2 * sum(x <= 0 for x in over.values()) >= len(over),
    ),
    measured=(
        "Over three seeds, the rank correlation between a smaller Jacobian and a longer "
        "commute time over all pairs (and among pairs at equal hops) is {', '.join(f'{name} "
        "{x:.2f}' + (f' ({within[name]:.2f})' if within[name] == within[name] else '') for "
        "name, x in over.items())}. The remaining errors are {', '.join(f'{x:.2f}' for x in "
        "error.values())} of the error of the constant answer zero"
    ),
)
def trained_networks() -> Numbers:
    """Correlate commute time with the sensitivities between nodes of trained networks.

    The results are means over three seeds, keyed by graph (see `variations.trained_ranks`).
    """
    rows = {
        name: pd.DataFrame([variations.trained_ranks(graph, seed) for seed in range(3)]).mean()
        for name, graph in measures.examples().items()
    }
    return {
        column: {name: float(row[column]) for name, row in rows.items()}
        for column in ("over", "within", "error")
    }
