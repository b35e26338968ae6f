"""What chapter 1 draws: functions that return a figure, or a table, and the sentence that states its finding."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from course.chapter1 import measures
from helpers import gnn, graphs, style

FORMATS = {
    "R": "{:.3f}", "bits in the weights": "{:,.0f}", "bits needed": "{:,.1f}", "bits to name one": "{:.1f}",
    "commute time": "{:.1f}", "edges": "{:.0f}", "gap / 2": "{:.3f}", "largest R": "{:.2f}", "R total": "{:.0f}",
    "pairs with longer commute": "{:.0%}", "√(2 gap)": "{:.3f}", "total resistance": lambda x: f"{x:+.0%}".replace("-", "−"),
}  # fmt: skip


def table(rows: Sequence[Mapping] | Mapping[str, Mapping], first: str = "graph", **formats: str) -> Styler:
    """Rows as a table, each column in its usual format or by `style.number`; a mapping's keys become the column `first`."""
    if isinstance(rows, Mapping):
        rows = [{first: name} | dict(row) for name, row in rows.items()]
    frame = pd.DataFrame(rows)
    numbers = {name: style.number for name in frame.select_dtypes("number")}
    known = {name: text for name, text in (numbers | FORMATS | formats).items() if name in frame}
    return frame.style.hide().format(known, na_rep="–")


def places(name: str, graph: nx.Graph) -> dict:
    """Where the nodes of an example stand in a drawing."""
    if name in ("cycle", "expander"):
        return nx.circular_layout(graph)
    if name == "tree":
        return nx.bfs_layout(graph, 0, align="horizontal", scale=-1)
    if name in ("path", "grid"):
        return {node: divmod(node, 4 if name == "grid" else 1) for node in graph}
    return nx.kamada_kawai_layout(graph)


@cache
def _family() -> dict[str, tuple[nx.Graph, dict]]:
    return {name: (graph, places(name, graph)) for name, graph in measures.examples().items()}


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


def _pair(height: float) -> tuple[Axes, Axes]:
    left, right = Figure(figsize=(8, height)).subplots(1, 2)
    return left, right


def field(name: str, layers: int) -> tuple[Axes, str]:
    """What one node has heard after so many layers, beside the growth of field and computation tree."""
    graph, where = _family()[name]
    red, blue, white = style.COLOURS["vermillion"], style.COLOURS["blue"], "#ffffff"
    hops = nx.single_source_shortest_path_length(graph, 0)
    nodes, walks = graphs.receptive_field(graph, 0, 8), graphs.computation_tree(graph, 0, 8, loops=True)
    left, right = _pair(3.6)
    draw(left, graph, where, [red if node == 0 else blue if hops[node] <= layers else white for node in graph])
    right.semilogy(walks, "o-", color=style.COLOURS["green"], label="walks")
    right.semilogy(nodes, "o-", color=style.COLOURS["blue"], label="nodes")
    right.axvline(layers, color=style.COLOURS["grey"], lw=1)
    right.set(xlabel="layers", ylim=(0.7, 1e8))
    right.set_title(f"{walks[layers]:,} walks from {nodes[layers]} nodes", size=16)
    style.whole_ticks(right)
    style.label(right)
    return left, f"After {layers} layers: {nodes[layers]} of {len(graph)} nodes, {walks[layers]:,} walks, one vector."


def widths(least: Callable[[int, int], int]) -> tuple[Axes, str]:
    """The least width that a function gives for Eq. 5, with numbers of 32 bits and of one, beside Figure 4."""
    paper = measures.bits_a_number()["width"]
    mine = {bits: [int(least(r, bits)) for r in paper.index] for bits in (32, 1)}
    off = {bits: max(max(x / y, y / x) for x, y in zip(paper, mine[bits], strict=True)) for bits in mine}
    title = f"Figure 4 is within × {off[1]:.1f} of Eq. 5 at 1 bit; at 32 bits, × {off[32]:.0f}"
    ax = style.axes(title, "r (depth of the tree)", "width", log="y")
    ax.plot(paper, "o", mfc="none", ms=12, color=style.COLOURS["grey"], label="Figure 4")
    for bits, colour in ((32, "blue"), (1, "vermillion")):
        ax.plot(
            paper.index, mine[bits], "o-", color=style.COLOURS[colour], label=f"{bits} bits" if bits > 1 else "1 bit"
        )
    style.whole_ticks(ax)
    style.label(ax)
    return ax, "Least width by r: " + "; ".join(
        f"{bits} bit{'s' * (bits > 1)} per number {', '.join(map(str, line))}" for bits, line in mine.items()
    ) + f"; Figure 4 {', '.join(map(str, paper))}."


def curvature(name: str, formula: Callable[[nx.Graph], dict]) -> tuple[Axes, str]:
    """Every edge in the colour of its curvature."""
    graph, where = _family()[name]
    ric, right, shades = formula(graph), graphs.balanced_forman(graph), plt.get_cmap("coolwarm_r")
    figure = Figure(figsize=(9, 3.8))
    ax = figure.subplots()
    draw(ax, graph, where, edges=[shades(0.5 + ric[edge] / 4) for edge in graph.edges], width=5, size=60)
    bar = figure.colorbar(plt.cm.ScalarMappable(plt.Normalize(-2, 2), shades), ax=ax, shrink=0.8)
    bar.set_label("curvature")
    least, negative = min(ric, key=ric.get), sum(value < -1e-9 for value in ric.values())
    found = (
        f"From {style.number(round(float(ric[least]), 9))} to {style.number(float(max(ric.values())))}, "
        f"{negative} of {len(ric)} edges negative."
    )
    wrong = sum(abs(ric[edge] - right[edge]) > 1e-9 for edge in right)
    return ax, found + (f" It is wrong on {wrong} of {len(right)} edges." if wrong else "")


def same_word(nodes: int = 64) -> tuple[Axes, str]:
    """The first input's share in the last output: averaging along a path, and in causal attention."""
    layers = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    shares = pd.DataFrame([measures.averages(count, nodes) for count in layers], index=layers)
    at = shares.loc[8]
    title = f"First of {nodes}, 8 layers: causal {at['causal attention']:.0%}, path {at['path']:.0%}"
    ax = style.axes(title, "layers", "share of the first input", log="x", height=3.8)
    ax.plot(shares["causal attention"], "o-", color=style.NETWORKS["attention"], label="causal attention")
    ax.plot(shares["path"], "o-", color=style.COLOURS["blue"], label="path")
    ax.axhline(1 / nodes, ls=":", color=style.COLOURS["grey"])
    ax.text(24, 1 / nodes + 0.03, "an equal share", size=13, color=style.COLOURS["grey"])
    style.ticks(ax, layers)
    ax.set_ylim(-0.03, 1.05)
    style.label(ax)
    return ax, (
        f"The share of the first of {nodes} inputs in the last output against the number of layers. Causal attention: "
        + ", ".join(f"{shares['causal attention'][n]:.3f} at {n}" for n in (1, 8, 256))
        + "; on a path: "
        + ", ".join(f"{shares['path'][n]:.3f} at {n}" for n in (1, 8, 256))
        + "."
    )


def example(task: gnn.TreeNeighborsMatch, height: float = 3.6) -> tuple[Axes, str]:
    """The first training example of a task: its tree, with what each node carries."""
    batch, features = task.batch(task.train[:1]), task.features(task.train[:1])[0]
    key, value = features.T.tolist()
    tree = nx.DiGraph([edge for edge in task.edges.T.tolist() if edge[0] != edge[1]])
    where = nx.bfs_layout(tree.reverse(), 0, align="horizontal", scale=-1)
    ax = Figure(figsize=(9, height)).subplots()
    texts = {node: f"{key[node]}, {value[node] or '?'}" if key[node] else "" for node in tree}
    hues = ["#f3c6b0" if node == 0 else "#b9d6ec" if key[node] else "#eeeeee" for node in tree]
    look = {"edgecolors": "#1a1a1a", "node_size": 2300, "font_size": 15, "arrowsize": 20}
    nx.draw(tree, where, ax=ax, labels=texts, node_color=hues, **look)
    ax.margins(0.12)
    label = int(batch.label)
    return ax, (
        f"A binary tree with {task.leaves} leaves that carry number and value. The root asks for number {key[0]}; the leaf "
        f"with number {key[0]} has value {label}, which is the label."
    )


def sizes() -> Styler:
    """The released data by depth."""
    tasks = [gnn.TreeNeighborsMatch(r) for r in gnn.DEPTHS]
    rows = [
        {"r": t.depth, "nodes": t.nodes, "leaves": t.leaves, "orders": len(t.orders), "train": len(t.train)}
        | {"test": len(t.test), "batch": gnn.BATCH[t.depth], "chance": 1 / t.leaves}
        for t in tasks
    ]
    return table(rows, chance="{:.1%}", train="{:,}", test="{:,}")


def end_of_run(log: pd.DataFrame) -> dict[str, float]:
    """How a training run ended: epochs, seconds, best training accuracy, last test accuracy."""
    last = log.iloc[-1]
    best = log["train_accuracy"].max()
    return {"epochs": len(log), "seconds": last["seconds"], "train": best, "test": last["test_accuracy"]}


def fits(
    logs: Mapping[str | int, pd.DataFrame], first: str, control: Mapping[int, pd.DataFrame] | None = None
) -> Styler:
    """A row for each training run; with a control, its best training accuracy and chance beside it.

    Epochs to one digit and shares to a hundredth: one training says no more, and another processor changes the rest.
    """
    rows = {str(name).upper(): end_of_run(log) for name, log in logs.items()}
    for row in rows.values():
        row["epochs"] = int(float(f"{row['epochs']:.0e}"))
    for r in logs if control is not None else ():
        best = control[r]["train_accuracy"].max() if r in control else None
        rows[str(r)] |= {"control (train)": best, "chance": 0.5**r}
    shares = dict.fromkeys(("train", "test", "control (train)", "chance"), "{:.0%}")
    return table(rows, first=first, seconds="{:.1f}", **shares)


def stars() -> tuple[Axes, str]:
    """Training accuracy by epoch with all examples of eight leaves: through the tree, and on a star two hops from the root."""
    runs = measures.stars()
    best = {kind: part["epochs"].min() for kind, part in runs.groupby("kind")}
    ax = style.axes(
        f"Eight leaves: at two hops fitted from epoch {best['star']} on, through the tree from {best['gcn']}",
        "epoch",
        "training accuracy",
    )
    looks = {"gcn": ("vermillion", "tree, three hops"), "star": ("blue", "star, two hops")}
    for kind, part in runs.groupby("kind"):
        for k, (_, run) in enumerate(part.iterrows()):
            colour, label = looks[kind]
            ax.plot(measures.learning_curve(run), color=style.COLOURS[colour], label=label if k == 0 else "_")
    ax.axhline(1 / 8, ls=":", color=style.COLOURS["grey"])
    ax.set_ylim(0, 1.03)
    ax.legend(loc="lower right")  # both lines end at 1: labels there would lie on each other
    return ax, "GCN of width 32, 6,400 examples, by seed: " + "; ".join(
        f"{looks[row.kind][1]}, seed {row.seed}: {row.ended} after {row.epochs} epochs, best {float(row.best_train_accuracy):.3f}, "
        f"unseen examples {float(row.end_test_accuracy):.3f}"
        for row in runs.itertuples()
    ) + "."


def attention_by_epoch(logs: Mapping[int, pd.DataFrame], control: Mapping[int, pd.DataFrame]) -> tuple[Axes, str]:
    """Training accuracy of the attention layer by epoch, and of the control that cannot choose."""
    best = {r: log["train_accuracy"].max() for r, log in logs.items()}
    without = {r: log["train_accuracy"].max() for r, log in control.items()}
    deep = max(r for r in best if best[r] > 0.99)
    title = f"With choice {2**deep} leaves are fitted; without, at most {max(without.values()):.0%}"
    ax = style.axes(title, "epoch", "training accuracy", log="x", height=4.3)
    hues = dict(zip(logs, ("grey", "blue", "green", "purple", "vermillion"), strict=False))
    for r, log in logs.items():
        ax.plot(log["epoch"], log["train_accuracy"], color=style.COLOURS[hues[r]], label=f"r = {r}")
    for r, log in control.items():
        ax.plot(log["epoch"], log["train_accuracy"], ":", color=style.COLOURS[hues[r]], label=f"r = {r}, no choice")
    ax.set_ylim(0, 1.02)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax, (
        "Training accuracy by epoch, logarithmic axis. Best accuracy of the attention layer: "
        + ", ".join(f"r = {r} {x:.3f}" for r, x in best.items())
        + ". Without choice: "
        + ", ".join(f"r = {r} {x:.3f}" for r, x in without.items())
        + "."
    )


def whole_grid() -> tuple[Axes, str]:
    """Best training accuracy by depth: measured here, in the paper, and by another user of the released code."""
    paper, user = measures.reported(), measures.independent()
    best = {kind: measures.grid_runs(kind)["best_train_accuracy"] for kind in (*measures.NETWORKS, "attention")}
    done = {kind: _went_far(kind) for kind in best}
    title = f"Up to r = {min(max(best[k].index[done[k]]) for k in measures.NETWORKS)} the runs here went far; triangles were stopped"
    ax = style.axes(title, "r (depth of the tree)", "best training accuracy")
    for kind, line in best.items():
        colour = style.NETWORKS[kind]
        ax.plot(line[done[kind]], "o-", color=colour, label=kind if kind == "attention" else kind.upper())
        ax.plot(line[~done[kind]], "^", mfc="none", color=colour)
        if kind in paper.index:
            ax.plot(paper.loc[kind], "o", mfc="none", ms=12, color=colour)
            ax.plot(user.loc[kind].dropna(), "x", ms=9, mew=2, color=colour)
    depths = [*gnn.DEPTHS]
    ax.plot([], [], "o", mfc="none", ms=12, color=style.COLOURS["grey"], label="Figure 3")
    ax.plot([], [], "x", ms=9, mew=2, color=style.COLOURS["grey"], label="a user's run")
    ax.plot([], [], "^", mfc="none", color=style.COLOURS["grey"], label="stopped early:\na lower bound")
    ax.plot(depths, [0.5**r for r in depths], ":", color=style.COLOURS["grey"], label="chance")
    ax.set_ylim(-0.02, 1.05)
    style.whole_ticks(ax)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax, "Best training accuracy against r. Measured here: " + "; ".join(
        f"{kind} {', '.join(f'{x:.2f} at r = {r}' for r, x in line.items())}" for kind, line in best.items()
    )


def _went_far(kind: str) -> pd.Series:
    """By depth, whether the best run made no error or came within one per cent of that; others are lower bounds."""
    return measures.grid_runs(kind)["best_train_accuracy"] > 0.99


def grid_numbers() -> Styler:
    """Figure 3, another user's run, and the runs here with their epochs, r = 3 to 5."""
    paper, user, rows = measures.reported(), measures.independent(), []
    for kind in measures.NETWORKS:
        for r, run in measures.grid_runs(kind).loc[3:5].iterrows():
            rows.append(
                {"network": kind.upper(), "r": r, "Figure 3": paper[r].get(kind), "a user's run": user[r].get(kind)}
                | {"here": run["best_train_accuracy"], "epochs": run["epochs"], "ended": run["ended"]}
            )
    digits = dict.fromkeys(("Figure 3", "a user's run"), "{:.2f}") | {"here": "{:.3f}"}
    return table(sorted(rows, key=lambda row: row["r"]), epochs="{:,}", **digits)


def at_equal_epochs(changed: str, **other: bool | str) -> tuple[Axes, str]:
    """Training accuracy by epoch of the networks as they are, and changed."""
    pairs = measures.compare(**other)
    depths = sorted(set(pairs["r"]))
    panels = Figure(figsize=(9, 4.2)).subplots(1, len(depths), sharey=True, squeeze=False)[0]
    for ax, depth in zip(panels, depths, strict=True):
        here = pairs[pairs["r"] == depth]
        for kind in (name.lower() for name in here["network"]):
            for look, run in (("-", measures.grid_runs(kind)), ("--", measures.grid_runs(kind, **other))):
                curve = measures.learning_curve(run.loc[depth])
                if curve.empty:
                    ax.plot(
                        run.loc[depth]["epochs"], run.loc[depth]["best_train_accuracy"], "s", color=style.NETWORKS[kind]
                    )
                ax.plot(curve, look, color=style.NETWORKS[kind], label=kind.upper() if look == "-" else "_")
        ax.axhline(0.5**depth, ls=":", color=style.COLOURS["grey"])
        helped = [row.network for row in here.itertuples() if measures.better(row)]
        ax.set(xlabel="epoch", ylim=(0, 1.05))
        rest = [row.network for row in here.itertuples() if not measures.better(row)]
        worse = f"\nworse: {measures.names(rest)}" if rest else ""
        ax.set_title(f"r = {depth}, with {changed}\nbetter: {measures.names(helped)}{worse}", size=15)
        style.whole_ticks(ax)
        ax.legend(loc="lower right", bbox_to_anchor=(1, 0.14))
    panels[0].set_ylabel("training accuracy")
    return panels[0], measures.sentence(pairs, changed)


def speed_table(rows: Sequence[Mapping[str, float]]) -> Styler:
    """`measures.speed` by depth."""
    digits = {"largest difference": "{:.0e}", "here": "{:.1e}", "all nodes": "{:.1e}", "ratio": "{:.1f}"}
    return table(rows, **digits).set_caption("GCN, batch 1024, width 32: seconds a training step")


def freed() -> list[str]:
    """Networks that get further with the key at every node than the paper's do with the key at the root."""
    paper, found = measures.reported(), []
    for kind in measures.NETWORKS:
        for r, run in measures.grid_runs(kind, key="everywhere").iterrows():
            best = run["best_train_accuracy"]
            if best > paper[r].get(kind, 1) + 0.05:
                found.append(
                    f"{kind.upper()}, r = {r}, reaches {best:.2f} after {run['epochs']} epochs; the paper's reached "
                    f"{paper[r][kind]:.2f} with the key at the root"
                )
    return found


def one_leaf() -> str:
    """What the key at every node changes, run by run."""
    pairs = measures.compare(key="everywhere")
    helped = sum(measures.better(row) for row in pairs.itertuples())
    text = f"Better in **{helped} of {len(pairs)}** pairs of runs. {measures.sentence(pairs, 'the key everywhere')}"
    further = f" Higher than the paper's networks in up to 50,000 epochs: {'; '.join(freed())}." if freed() else ""
    return f"{text} {measures.everywhere_seeds()}{further}"


def attention_seeds() -> str:
    """How the attention layer's runs of three seeds ended."""
    runs = measures.runs().query("kind == 'attention'")
    rows = [
        f"r = {r}: {int((part['ended'] == 'fitted').sum())} of {len(part)} within {part['epochs_allowed'].max():,} epochs"
        for r, part in runs.groupby("depth")
    ]
    return f"It depends on the seed too. Runs that fitted: {'; '.join(rows)}."


def few_table() -> Styler:
    """Epochs until no error on few examples, with their labels and with labels at random, and accuracy on unseen examples."""
    runs, rows = measures.few_examples(), []
    for (control, depth, distance), part in runs.groupby(["control", "depth", "distance"]):
        own, drawn = (part[part["permuted"] == permuted] for permuted in (False, True))
        rows.append(
            {"control": control, "leaves": 2**depth, "hops": distance, "orders": round(part["orders"].mean())}
            | {"their labels": _epochs(own), "labels at random": _epochs(drawn)}
            | {"unseen examples right": f"{own['test_accuracy'].mean():.0%}", "chance": f"{0.5**depth:.0%}"}
        )
    return table(rows).set_caption(
        f"Epochs until no error on {measures.FEW} examples, fastest and slowest of three seeds"
    )


def _epochs(part: pd.DataFrame) -> str:
    return f"{part['steps'].min():,} to {part['steps'].max():,}" if len(part) else "–"


def by_heart() -> str:
    """What labels at random say about the runs with few examples."""
    runs = measures.few_examples()
    own, drawn = (
        runs[runs["permuted"] == permuted].groupby(["control", "depth", "distance"]) for permuted in (False, True)
    )
    ratio = (drawn["steps"].mean() / own["steps"].mean()).dropna()
    chance = 0.5 ** own["test_accuracy"].mean().index.get_level_values("depth")
    return (
        f"With labels at random, so that no leaf has to be read, the same networks take {ratio.min():.2f} to {ratio.max():.2f} "
        f"times as many epochs (mean of three seeds, {len(ratio)} set-ups), and with their own labels they are right on unseen "
        f"examples up to {max(own['test_accuracy'].mean() - chance):+.0%} beyond chance. So these examples are learned by "
        "heart, on the chain as on tree and star."
    )


def _spans(kind: str) -> str:
    """The epochs that the runs of `measures.stars` took to be fitted, in order; those that were not, took more."""
    runs = measures.stars()
    runs = runs[runs["kind"] == kind].sort_values("epochs")
    return measures.names(
        [f"{'' if row.ended == 'fitted' else 'more than '}{row.epochs:,}" for row in runs.itertuples()]
    )


def excluded() -> str:
    """What the lab's runs support, and what they leave open, as a list."""
    pairs = measures.compare(key="everywhere")
    helped = sum(measures.better(row) for row in pairs.itertuples())
    return "\n".join(
        [
            f"- **Distance, with the merging in pairs**: supported. Where the leaves are read, at two hops eight leaves are "
            f"fitted after {_spans('star')} epochs, through the tree after {_spans('gcn')}. A star also merges at once what the "
            "tree merges in pairs, and has one layer less: these runs do not separate the three.",
            f"- **What has to be passed on**: supported, and more. With the question at every node, better in {helped} of "
            f"{len(pairs)} pairs of runs; the function is simpler too, and these runs do not separate the two.",
            f"- **Small training sets** ({measures.FEW} examples): they cannot decide, for labels at random are fitted as fast. "
            "That holds for the paper's chain too.",
            "- **The count of Eq. 5**: excluded with 32 bits a number. With one bit a number it is near Figure 4, and so is "
            "any count that grows like the leaves.",
            "- **Open**: whether the vector is too small. For that one would train each width to the end.",
        ]
    )


def lab_answer() -> str:
    """The lab's answer in a sentence, from its runs."""
    pairs = measures.compare(key="everywhere")
    fitted = [row for row in pairs.itertuples() if row.plain_fits and row.changed_fits]
    most = max(fitted, key=lambda row: row.plain_fits / row.changed_fits)
    far = [f"{kind}, r = {r}" for kind, r in _freed()]
    return (
        f"Both. Brought from three hops to two, eight leaves are fitted after **{_spans('star')}** epochs in place of "
        f"**{_spans('gcn')}**. What has to be passed on with the leaf counts more: {most.network} at r = {most.r} takes "
        f"**{most.plain_fits}** epochs if the root alone knows the question, and **{most.changed_fits}** if every node does"
        + (
            f"; with it {measures.names(far)} got further than the paper's networks in up to 50,000 epochs"
            if far
            else ""
        )
        + ". That the vector is too small does not follow: the function to be learned is simpler too."
    )


def _freed() -> list[tuple[str, int]]:
    """Networks and depths of `freed`."""
    paper = measures.reported()
    return [
        (kind.upper(), r)
        for kind in measures.NETWORKS
        for r, run in measures.grid_runs(kind, key="everywhere").iterrows()
        if run["best_train_accuracy"] > paper[r].get(kind, 1) + 0.05
    ]
