"""Draw the figures of chapter 2, and state the finding of each figure in a sentence."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from torch import Tensor

from course.chapter2 import measures
from course.maths import constructions
from helpers import attention, style

BLUE, RED, GREEN, GREY = (style.COLOURS[name] for name in ("blue", "vermillion", "green", "grey"))


def graph(matrix: Float[Tensor, "n n"], layers: int = 1, heard_token: int = 0) -> tuple[Axes, str]:
    """Draw attention as a matrix and as arcs, to show which tokens influence the last token.

    Args:
        matrix: the attention matrix of one layer.
        layers: the number of layers for which the matrix is drawn. The arcs are always those of one
            layer.
        heard_token: the token, counted from 1, whose arcs are orange. With 0, these are the arcs of
            the last token.
    """
    heard = attention.influence([matrix] * layers)
    n, words = len(matrix), f"{layers} layer{'s' * (layers > 1)}"
    left, right = Figure(figsize=(9.0, 4.2)).subplots(1, 2, width_ratios=(1, 1.35))
    left.imshow(heard, cmap="Blues", vmin=0, vmax=1)
    left.set(xlabel="token looked at", ylabel="token that looks")
    for ticks in (left.set_xticks, left.set_yticks):
        ticks(range(0, n, 3), range(1, n + 1, 3))
    left.grid(False)
    left.set_title(words, size=16)
    _arcs(right, matrix, heard[-1], heard_token)
    right.set_title("arcs of one layer", size=16)
    reached, most = int((heard[-1] > 0).sum()), int(heard[-1].argmax())
    return left, (
        f"After {words}, {reached} of {n} tokens influence the last token. Token {most + 1} "
        f"influences it most ({float(heard[-1, most]):.2f})."
    )


def _arcs(
    ax: Axes, matrix: Float[Tensor, "n n"], heard: Float[Tensor, " n"], heard_token: int = 0
) -> None:
    """Draw an arc from each token to every token that attends to it, with the weight as width.

    The size of a dot shows the token's influence.
    """
    n = len(matrix)
    for i in range(n):
        for j in range(i):
            if matrix[i, j] > 0:
                colour = RED if (j == heard_token - 1 if heard_token else i == n - 1) else GREY
                width = 0.6 + 3 * float(matrix[i, j])
                ax.add_patch(
                    Arc(
                        ((i + j) / 2, 0),
                        i - j,
                        0.9 * (i - j),
                        theta1=0,
                        theta2=180,
                        lw=width,
                        color=colour,
                    )
                )
    ax.scatter(
        range(n),
        [0] * n,
        s=[60 + 700 * float(h) for h in heard],
        color=BLUE,
        zorder=3,
        edgecolors="black",
    )
    ax.set(xlim=(-0.9, n - 0.1), ylim=(-0.9, 0.46 * n + 0.5), yticks=[], xlabel="token")
    ax.set_xticks(range(0, n, 3), range(1, n + 1, 3))
    ax.grid(False)
    ax.spines["left"].set_visible(False)


def worst_heard(kept: float | None = None, n: int = 31) -> tuple[Axes, str]:
    """Draw the influence of the weakest node in five graphs, as a function of L (1 - kept).

    L is the number of layers. We draw the influence on the node whose output is read (see
    `measures.connections`).

    Args:
        kept: the fraction of its state that a token keeps in a layer. `None` uses the measured
            fraction, `measures.mean_share`.
    """
    kept = measures.mean_share() if kept is None else kept
    layers = [2**k for k in range(11) if 2**k * (1 - kept) <= 33]
    found, depth = measures.worst_heard(layers, kept, n), measures.LAYERS_READ
    at = {name: shares[0] for name, shares in measures.worst_heard([depth], kept, n).items()}
    tree, causal = at["tree"], at["causal attention"]
    order = "ahead of" if causal > tree else "behind"
    ax = style.axes(
        f"After {depth} layers causal attention is {order} the tree",
        "L (1 − ρ)",
        "least weight of a node",
        log="xy",
        height=3.0,
    )
    floor = -10  # the exponent of the smallest value on the axis
    colours = (GREEN, GREY, RED, style.COLOURS["purple"], style.NAMED["causal attention"])
    for (name, shares), colour in zip(found.items(), colours, strict=True):
        points = [
            (k * (1 - kept), share) for k, share in zip(layers, shares, strict=True) if share > 0
        ]
        x, y = np.log10(points).T
        dots, along = 10**x, np.linspace(x[0], x[-1], 500)
        line = np.interp(along, x, y)
        ax.plot(dots[y >= floor], 10 ** y[y >= floor], "o", color=colour)
        if (line >= floor).any():  # lines are drawn down to the end of the axis
            ax.plot(10 ** along[line >= floor], 10 ** line[line >= floor], color=colour, label=name)
    ax.axhline(1 / n, color="black", lw=1, ls="--")
    ax.text(0.045, 1.6 / n, "an equal share", size=14)
    ax.axvline(depth * (1 - kept), color=BLUE, lw=1.5, ls=":")
    ax.text(depth * (1 - kept) * 0.94, 3e-10, f"{depth} layers", color=BLUE, size=14, ha="right")
    ax.set(xlim=(0.04, 40), ylim=(10**floor, 1))
    style.ticks(ax, [0.1, 1, 10])
    style.label(ax)
    behind = measures.falls_behind(kept, n)
    return ax, (
        f"With ρ = {kept:g} and {depth} layers, the weakest of {n} nodes has an influence of "
        f"{style.number(causal)} under causal attention and of {style.number(tree)} in the tree. "
        f"Causal attention is behind the tree from {behind} layers on, where L (1 − ρ) = "
        f"{behind * (1 - kept):.1f}."
    )


def trap(own: Callable[[Tensor], float]) -> tuple[Axes, str]:
    """Draw two sink scores as functions of the text's length, to show that one can mislead.

    The plain score is drawn for uniform attention, which has no sink but scores high in short
    texts. The corrected score `own` is drawn for two attention matrices.
    """
    maps = {
        "uniform": lambda n: attention.uniform(attention.causal_mask(n)),
        "sink of 0.3": lambda n: constructions.sink(n, 0.3),
    }
    index = pd.RangeIndex(2, 65, name="n (tokens)")
    found = {"uniform": [float(attention.sink_score(maps["uniform"](n))) for n in index]}
    found |= {f"yours, {name}": [float(own(make(n))) for n in index] for name, make in maps.items()}
    frame = pd.DataFrame(found, index)
    last = frame.index[frame["uniform"] > attention.HEAD_SCORE_THRESHOLD].max()
    ax = style.lines(
        frame, "sink score of the first token", height=3.4, colours=[BLUE, BLUE, GREEN], form="-"
    )
    ax.set_title(f"Uniform attention is a “sink” up to {last} tokens")
    for line in ax.get_lines()[1:]:
        line.set_linestyle("--")
    ax.axhline(attention.HEAD_SCORE_THRESHOLD, color=RED, lw=1.5, ls="--")
    ax.set_ylim(-0.05, 0.8)
    return ax, (
        f"Uniform attention scores above 0.3 at every length up to {last}, but at 64 tokens it "
        f"scores only {frame['uniform'][64]:.3f}."
    )


def brake(kept: float | None = None) -> tuple[Axes, str]:
    """Draw how the influence of token 5 on the last of 32 tokens depends on attention to a sink.

    There are 30 layers. For `kept`, see `worst_heard`.
    """
    kept, layers = measures.mean_share() if kept is None else kept, measures.LAYERS_READ
    shares = [k / 20 for k in range(20)]
    found = [
        float(attention.influence([constructions.sink(32, p)] * layers, kept)[-1, 4])
        for p in shares
    ]
    assert found == sorted(found, reverse=True)  # the title says so
    ax = style.axes(
        "In this average, a sink slows mixing",
        "attention on the first token",
        "influence of token 5",
        log="y",
        height=4.2,
    )
    ax.plot(shares, found, "o-", color=BLUE)
    none, much, most = (style.number(found[k]) for k in (0, 16, 19))
    return ax, (
        f"With ρ = {kept:g} and {layers} layers, the influence without a sink is {none}. If the "
        f"first token takes 0.8 of the attention, the influence is {much}. If it takes 0.95, the "
        f"influence is {most}."
    )


# Draw the lab's figures ---------------------------------------------------------------------------


def sinks_by_layer(scores: dict[str, Float[Tensor, "layers heads"]]) -> tuple[Axes, str]:
    """Draw the mean sink score of the heads in each layer, with one line per text.

    Layers are counted from 1.
    """
    ax, means = style.axes("", "layer", "mean sink score", height=4.2), {}
    for name, score in scores.items():
        look = {"color": style.COLOURS["grey"]} if name == "random weights" else {}
        ax.plot(range(1, len(score) + 1), score.mean(1), label=name, **look)
        means[name] = float(score.mean())
    ax.set_ylim(0, 1)
    style.label(ax)
    least = min(set(means) - {"uniform", "random weights"}, key=means.get)
    ax.set_title(f"No sink in “{least}”" if means[least] < 0.1 else "A sink in every text")
    return ax, "Mean sink score: " + ", ".join(
        f"{name} {mean:.2f}" for name, mean in means.items()
    ) + "."


def sensitivities(
    norms: Tensor, errors: Tensor, words: Sequence[str], exact: Tensor | None = None
) -> tuple[Axes, str]:
    """Draw estimated Jacobian norms with error bars of two standard errors.

    The words with the largest norms are labelled. If exact norms are given, they are drawn, too.
    """
    truth = norms if exact is None else exact
    n = len(norms)
    share = float(truth[0] / truth.sum())
    place = 1 + int((truth > truth[0]).sum())
    ax = style.axes(
        f"In this text the first token has {share:.0%} of the sensitivity",
        "token",
        "norm of the Jacobian",
        height=4.4,
    )
    ax.errorbar(range(1, n + 1), norms, 2 * errors, fmt="o", ms=5, color=BLUE, label="randomised")
    if exact is not None:
        ax.plot(range(1, n + 1), exact, "_", ms=11, mew=3, color="black", label="exact")
    ax.legend(loc="upper center")
    loud: list[int] = []
    for k in truth.argsort(descending=True).tolist():
        if (
            3 < k < n - 6
            and words[k].strip().isalpha()
            and all(abs(k - other) > 3 for other in loud)
            and len(loud) < 5
        ):
            loud.append(k)
    for k in loud:
        ax.annotate(
            words[k].strip(),
            (k + 1, float(truth[k])),
            (0, 8),
            textcoords="offset points",
            ha="center",
            size=13,
        )
    ax.set_ylim(0, 1.05 * float((norms + 2 * errors).max()))
    named = ", ".join(words[k].strip() for k in sorted(loud))
    text = f"By its norm the first token is number {place} of {n}." + (
        f" In the middle, the words with the largest norms are {named}." if named else ""
    )
    if exact is not None:
        off = float((norms / exact - 1).square().mean().sqrt())
        inside = float(((norms - exact).abs() <= 2 * errors).double().mean())
        text += (
            f" The randomised norms have a root mean square error of {off:.1%}. The exact norms "
            f"are within the error bars for {inside:.0%} of the tokens."
        )
    return ax, text


def before_and_after(table: pd.DataFrame) -> tuple[Axes, str]:
    """Draw each token's fraction of the total sensitivity, before and after training.

    The fractions are multiplied by the length, so an equal part is 1. Lines show means over the
    texts, and bands show the range from the smallest to the largest value.
    """
    ax = style.axes("", "token", "fraction of the sensitivity × n", log="y", height=4.4)
    means = {}
    for network, name, colour in (("seed 0", "random weights", GREY), ("trained", "trained", BLUE)):
        rows = torch.stack([measures.profile_of(table, text, network) for text in measures.NAMES])
        rows = rows / rows.sum(1, keepdim=True) * rows.shape[1]
        means[name] = rows.mean(0)
        places = range(1, rows.shape[1] + 1)
        ax.fill_between(places, rows.amin(0), rows.amax(0), color=colour, alpha=0.2, lw=0)
        ax.plot(places, means[name], color=colour, label=name)
    before, after = means.values()
    n = len(before)
    ax.axhline(1, color="black", lw=1, ls="--")
    style.ticks(ax, [0.2, 0.5, 1, 2, 5], x=False)
    style.label(ax)
    least = int(before[:-1].argmin()) + 1
    late = [float(mean[2 * n // 3 : -1].sum()) / n for mean in (before, after)]
    lifted = late[1] > late[0]  # this need not be so in another model
    ax.set_title(
        "Training lifts the late tokens" if lifted else "Training does not lift the late tokens"
    )
    return ax, (
        f"Mean of {len(measures.NAMES)} texts. With random weights the first token has "
        f"{float(before[0]) / n:.1%} of the sensitivity, token {least} has the least, and tokens "
        f"{2 * n // 3 + 1} to {n - 1} have {late[0]:.0%} together. After training the first token "
        f"has {float(after[0]) / n:.1%}, and these late tokens have {late[1]:.0%}. The dashed line "
        "is an equal part."
    )


def hidden_since(table: pd.DataFrame, untrained: pd.DataFrame | None = None) -> tuple[Axes, str]:
    """Draw how much the loss on later tokens rises if attention to the first token is knocked out.

    The x axis shows the first position that can no longer attend to the first token. There is one
    line per text, and if `untrained` is given, a line for its mean.
    """
    plain = measures.hidden_from(table, 0)["loss"]
    rows = (
        table[table["token"] == 1]
        .pivot(index="text", columns="since", values="loss")
        .sub(plain, axis=0)
    )
    other = (
        table[table["token"] > 1]
        .pivot(index="text", columns="since", values="loss")
        .sub(plain, axis=0)
    )
    worst = rows.max(axis=1)
    ax = style.axes(
        (
            f"Hidden late, the first token is missed in {int((worst > 0.5).sum())} of {len(rows)} "
            "texts"
        ),
        "first token hidden from this token on",
        "loss, above nothing hidden (nats)",
        height=4.4,
    )
    for _, row in rows.iterrows():
        ax.plot(row.index, row, color=RED, lw=1, alpha=0.5)
    ax.plot(rows.columns, rows.mean(), "o-", color=RED, label="first token, mean")
    control = int(table["token"].max())
    ax.plot(other.columns, other.mean(), "s-", color=BLUE, label=f"token {control}")
    blank = ""
    if untrained is not None:
        nothing = measures.hidden_from(untrained, 0)["loss"]
        alike = untrained[untrained["token"] == 1].pivot(
            index="text", columns="since", values="loss"
        )
        mean = alike.sub(nothing, axis=0).mean()
        ax.plot(mean, "^-", color=GREY)
        ax.annotate(
            "random weights",
            (mean.index[-1], 0),
            (0, -18),
            textcoords="offset points",
            ha="right",
            size=14,
        )
        ax.set_ylim(bottom=-0.35)
        blank = (
            f" With random weights the mean change is {style.number(float(mean.min()))} to "
            f"{style.number(float(mean.max()))}."
        )
    ax.axhline(0, color="black", lw=1)
    style.label(ax)
    late = rows[25]
    return ax, (
        f"{len(rows)} texts. If the first token is hidden from all, the loss changes by "
        f"{style.number(float(rows[1].min()))} to {style.number(float(rows[1].max()))} nats. If it "
        f"is hidden from token 9 on, the loss changes by {style.number(float(rows[9].min()))} to "
        f"{style.number(float(rows[9].max()))}, and from token 25 on, by "
        f"{style.number(float(late.min()))} to {style.number(float(late.max()))}. "
        f"If token {control} is hidden from token 25 on, the loss rises by "
        f"{style.number(float(other[25].max()))} at most.{blank}"
    )
