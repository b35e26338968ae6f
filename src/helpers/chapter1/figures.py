"""What chapter 1 draws: functions that return a figure and the sentence that states its finding."""

import networkx as nx
from matplotlib.axes import Axes

from helpers import style


def places(name: str, graph: nx.Graph) -> dict:
    """Where the nodes of an example stand in a drawing."""
    if name in ("cycle", "expander"):
        return nx.circular_layout(graph)
    if name == "tree":
        return nx.bfs_layout(graph, 0, align="horizontal", scale=-1)
    if name in ("path", "grid"):
        return {node: divmod(node, 4 if name == "grid" else 1) for node in graph}
    return nx.kamada_kawai_layout(graph)


def draw(ax: Axes, graph: nx.Graph, positions: dict, nodes="#dddddd", edges="#999999", width=2, size=160) -> None:
    """The graph, with one colour for all or a list with one for every node and edge."""
    nx.draw_networkx_edges(graph, positions, ax=ax, edge_color=edges, width=width)
    look = {"node_color": nodes, "node_size": size, "edgecolors": "#1a1a1a", "linewidths": 1}
    nx.draw_networkx_nodes(graph, positions, ax=ax, **look)
    ax.set_axis_off()


def wired(graph: nx.Graph, rewired: nx.Graph, pair: tuple) -> tuple[Axes, str]:
    """The tree with its new edges, and a pair of nodes marked."""
    ax = style.axes("Your edges, and the pair that hears less", "", "")
    new = [edge for edge in rewired.edges if not graph.has_edge(*edge)]
    colours = [style.COLOURS["vermillion"] if edge in new else style.COLOURS["grey"] for edge in rewired.edges]
    nodes = [style.COLOURS["blue"] if node in pair else "#dddddd" for node in rewired]
    draw(ax, rewired, places("tree", graph), nodes, colours)
    names = ", ".join(f"{u}-{v}" for u, v in new)
    return ax, f"New edges {names}, on the tree of {len(graph)} nodes; the pair {pair[0]} and {pair[1]} is marked."
