"""What chapter 1 draws: functions that return a figure and the sentence that states its finding."""

import networkx as nx
from matplotlib.axes import Axes


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
