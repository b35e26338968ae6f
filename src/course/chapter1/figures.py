"""Draw the figures of chapter 1, and state the finding of each figure in a sentence."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.chapter1 import measures
from course.maths import bounds, rewiring
from helpers import style


def layout(graph: nx.Graph) -> dict:
    """Return the coordinates of a graph's nodes in a drawing.

    A tree is drawn with the root at the top, and any other graph as if its edges were springs.
    """
    if nx.is_tree(graph):
        return nx.bfs_layout(graph, 0, align="horizontal", scale=-1)
    return nx.kamada_kawai_layout(graph)


def draw(
    ax: Axes, graph: nx.Graph, positions: dict, nodes="#dddddd", edges="#999999", width=2, size=160
) -> None:
    """Draw a graph, with one colour or a list of colours for its nodes and edges."""
    nx.draw_networkx_edges(graph, positions, ax=ax, edge_color=edges, width=width)
    look = {"node_color": nodes, "node_size": size, "edgecolors": "#1a1a1a", "linewidths": 1}
    nx.draw_networkx_nodes(graph, positions, ax=ax, **look)
    ax.set_axis_off()


def wired(graph: nx.Graph, rewired: nx.Graph, pair: tuple) -> tuple[Axes, str]:
    """Draw a tree with its new edges, and mark a pair of nodes."""
    ax = style.axes("Your edges, and the pair that loses influence", "", "")
    new = [edge for edge in rewired.edges if not graph.has_edge(*edge)]
    colours = [
        style.COLOURS["vermillion"] if edge in new else style.COLOURS["grey"]
        for edge in rewired.edges
    ]
    nodes = [style.COLOURS["blue"] if node in pair else "#dddddd" for node in rewired]
    draw(ax, rewired, layout(graph), nodes, colours)
    names = ", ".join(f"{u}-{v}" for u, v in new)
    return (
        ax,
        (
            f"The new edges {names} in the tree of {len(graph)} nodes. "
            f"Nodes {pair[0]} and {pair[1]} are marked."
        ),
    )


def field(name: str, layers: int) -> tuple[Axes, str]:
    """Draw which nodes can influence one node after a given number of layers.

    A second panel shows the growth of this node's receptive field and computation tree.
    """
    graph = measures.examples()[name]
    red, blue, white = style.COLOURS["vermillion"], style.COLOURS["blue"], "#ffffff"
    hops = nx.single_source_shortest_path_length(graph, 0)
    nodes, walks = (
        bounds.receptive_field(graph, 0, 8),
        bounds.computation_tree(graph, 0, 8, loops=True),
    )
    left, right = Figure(figsize=(8, 3.6)).subplots(1, 2)
    draw(
        left,
        graph,
        layout(graph),
        [red if node == 0 else blue if hops[node] <= layers else white for node in graph],
    )
    right.semilogy(walks, "o-", color=style.COLOURS["green"], label="walks")
    right.semilogy(nodes, "o-", color=style.COLOURS["blue"], label="nodes")
    right.axvline(layers, color=style.COLOURS["grey"], lw=1)
    right.set(xlabel="layers", ylim=(0.7, 1e8))
    right.set_title(f"{walks[layers]:,} walks from {nodes[layers]} nodes", size=16)
    style.whole_ticks(right)
    style.label(right)
    return (
        left,
        (
            f"After {layers} layers: {nodes[layers]} of {len(graph)} nodes, {walks[layers]:,} "
            "walks, one vector."
        ),
    )


def widths(least: Callable[[int, int], int]) -> tuple[Axes, str]:
    """Draw the smallest width that `least` computes, next to Figure 4 of Alon & Yahav (2021).

    One curve is for numbers of 32 bits, and one is for numbers of 1 bit.
    """
    paper = measures.bits_a_number()["width"]
    mine = {
        name: [int(least(r, bits)) for r in paper.index]
        for name, bits in (("32 bits", 32), ("1 bit", 1))
    }
    off = {
        name: max(max(x / y, y / x) for x, y in zip(paper, line, strict=True))
        for name, line in mine.items()
    }
    title = (
        f"Figure 4 is within × {off['1 bit']:.1f} of Eq. 5 at 1 bit; "
        f"at 32 bits, × {off['32 bits']:.0f}"
    )
    ax = style.axes(title, "r (depth of the tree)", "width", log="y")
    ax.plot(paper, "o", mfc="none", ms=12, color=style.COLOURS["grey"], label="Figure 4")
    for (name, line), colour, kind in zip(
        mine.items(), ("blue", "vermillion"), ("fp32", "fewer bits"), strict=True
    ):
        ax.plot(paper.index, line, f"o{style.TYPES[kind]}", color=style.COLOURS[colour], label=name)
    style.whole_ticks(ax)
    style.label(ax)
    listed = [f"{name} per number {', '.join(map(str, line))}" for name, line in mine.items()]
    return (
        ax,
        f"Smallest width for each r: {'; '.join(listed)}; Figure 4 {', '.join(map(str, paper))}.",
    )


def curvature(name: str, formula: Callable[[nx.Graph], dict]) -> tuple[Axes, str]:
    """Draw a graph with each edge in the colour of its curvature."""
    graph = measures.examples()[name]
    ric, right, shades = formula(graph), rewiring.balanced_forman(graph), plt.get_cmap("coolwarm_r")
    figure = Figure(figsize=(9, 3.8))
    ax = figure.subplots()
    draw(
        ax,
        graph,
        layout(graph),
        edges=[shades(0.5 + ric[edge] / 4) for edge in graph.edges],
        width=5,
        size=60,
    )
    bar = figure.colorbar(plt.cm.ScalarMappable(plt.Normalize(-2, 2), shades), ax=ax, shrink=0.8)
    bar.set_label("curvature")
    least, negative = min(ric, key=ric.get), sum(value < -1e-9 for value in ric.values())
    found = (
        f"The curvature goes from {style.number(round(float(ric[least]), 9))} to "
        f"{style.number(float(max(ric.values())))}, and {negative} of {len(ric)} edges are "
        "negative."
    )
    wrong = sum(abs(ric[edge] - right[edge]) > 1e-9 for edge in right)
    return ax, found + (f" It is wrong on {wrong} of {len(right)} edges." if wrong else "")


def same_word(nodes: int = 64) -> tuple[Axes, str]:
    """Draw how fast repeated averaging loses the first input, on a path and in causal attention.

    The curves show the weight of the first input in the last output.
    """
    layers = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    rows = [measures.averages(count, nodes) for count in layers]
    shares = pd.DataFrame(rows, pd.Index(layers, name="layers"), ["causal attention", "path"])
    at = shares.loc[8]
    title = (
        f"First of {nodes}, 8 layers: causal {at['causal attention']:.0%}, path {at['path']:.0%}"
    )
    hues = [style.NAMED["causal attention"], style.COLOURS["blue"]]
    ax = style.lines(shares, "share of the first input", log="x", height=3.8, colours=hues)
    ax.set_title(title)
    ax.axhline(1 / nodes, ls=":", color=style.COLOURS["grey"])
    ax.text(24, 1 / nodes + 0.03, "an equal share", size=13, color=style.COLOURS["grey"])
    style.ticks(ax, layers)
    return ax, (
        (
            f"The share of the first of {nodes} inputs in the last output against the number of "
            "layers. Causal attention: "
        )
        + "; on a path: ".join(
            ", ".join(f"{shares[name][n]:.3f} at {n}" for n in (1, 8, 256)) for name in shares
        )
        + "."
    )


STARS = {  # hops and layers of the runs that `stars` draws, and how their leaves are merged
    "star": "2 hops, 3 layers, at once",
    "star, a layer more": "2 hops, 4 layers, at once",
    "star, a relay": "3 hops, 4 layers, at once",
    "gcn": "3 hops, 4 layers, in pairs (tree)",
}


def stars() -> tuple[Axes, str]:
    """Draw how many epochs a network needs until no error, before and after each of three changes.

    We change one thing at a time: the number of hops, the number of layers, or how the leaves are
    merged.

    All runs train on all examples with eight leaves.
    """
    runs = measures.stars()
    near = runs["kind"].isin(["star", "star, a layer more"])
    ax = style.axes(
        (
            f"At two hops fitted by epoch {runs[near]['epochs'].max()}, at three from "
            f"{runs[~near]['epochs'].min()} on"
        ),
        "epochs until no error",
        "",
        height=3.4,
    )
    for k, kind in enumerate(STARS):
        colour = style.COLOURS["vermillion" if kind in ("gcn", "star, a relay") else "blue"]
        for ended, part in runs[runs["kind"] == kind].groupby("ended"):
            look = {"mfc": colour} if ended == "fitted" else {"mfc": "none"}
            ax.plot(
                part["epochs"],
                [-k] * len(part),
                "o" if ended == "fitted" else ">",
                ms=11,
                mec=colour,
                mew=2,
                **look,
            )
    ax.set_yticks(range(0, -len(STARS), -1), STARS.values())
    ax.set(xlim=(0, 530), ylim=(0.5 - len(STARS), 0.5))
    return ax, "GCN of width 32, 6,400 examples, by seed: " + "; ".join(
        f"{STARS[row.kind]}, seed {row.seed}: "
        f"{'stopped' if row.ended == 'epochs' else row.ended} after {row.epochs} epochs, best "
        f"{float(row.best_train_accuracy):.3f}, "
        f"unseen examples {float(row.end_test_accuracy):.3f}"
        for row in runs.itertuples()
    ) + "."
