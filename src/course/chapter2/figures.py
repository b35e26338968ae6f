"""What chapter 2 draws: functions that return a figure and the sentence that states its finding."""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from pandas.io.formats.style import Styler
from torch import Tensor

from course import significance
from course.chapter2 import measures
from helpers import attention, probe, require, style
from helpers.models import LanguageModel

_MASKS = {
    "causal": lambda n: attention.uniform(attention.causal_mask(n)),
    "window of 8": lambda n: attention.uniform(attention.window_mask(n, 8)),
    "prefix of 4": lambda n: attention.uniform(attention.prefix_mask(n, 4)),
    "decay 0.3": lambda n: attention.decay(n, 0.3),
    "sink 0.8": lambda n: attention.sink(n, 0.8),
}
MASKS = tuple(_MASKS)
BLUE, RED, GREEN, GREY = (style.COLOURS[name] for name in ("blue", "vermillion", "green", "grey"))


def graph(matrix: Float[Tensor, "n n"], layers: int = 1, heard_token: int = 0) -> tuple[Axes, str]:
    """Attention as a matrix through so many layers and as arcs of one, and who reaches the last token.

    Orange are the arcs of the last token, or those that lead to `heard_token` (1 the first).
    """
    heard = attention.influence([matrix] * layers)
    n, words = len(matrix), f"{layers} layer{'s' * (layers > 1)}"
    left, right = Figure(figsize=(9.0, 4.2)).subplots(1, 2, width_ratios=(1, 1.35))
    _matrix(left, heard)
    left.set_title(words, size=16)
    _arcs(right, matrix, heard[-1], heard_token)
    right.set_title("arcs of one layer", size=16)
    reached, most = int((heard[-1] > 0).sum()), int(heard[-1].argmax())
    return left, (
        f"After {words} the last token hears {reached} of {n}, most of all token {most + 1} ({float(heard[-1, most]):.2f})."
    )


def _matrix(ax: Axes, matrix: Float[Tensor, "n n"]) -> None:
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    ax.set(xlabel="token looked at", ylabel="token that looks")
    for ticks in (ax.set_xticks, ax.set_yticks):
        ticks(range(0, len(matrix), 3), range(1, len(matrix) + 1, 3))
    ax.grid(False)


def _arcs(ax: Axes, matrix: Float[Tensor, "n n"], heard: Float[Tensor, " n"], heard_token: int = 0) -> None:
    """Arcs from the token looked at to the one that looks, as wide as the weight; dots as large as the influence."""
    n = len(matrix)
    for i in range(n):
        for j in range(i):
            if matrix[i, j] > 0:
                colour = RED if (j == heard_token - 1 if heard_token else i == n - 1) else GREY
                width = 0.6 + 3 * float(matrix[i, j])
                ax.add_patch(Arc(((i + j) / 2, 0), i - j, 0.9 * (i - j), theta1=0, theta2=180, lw=width, color=colour))
    ax.scatter(range(n), [0] * n, s=[60 + 700 * float(h) for h in heard], color=BLUE, zorder=3, edgecolors="black")
    ax.set(xlim=(-0.9, n - 0.1), ylim=(-0.9, 0.46 * n + 0.5), yticks=[], xlabel="token")
    ax.set_xticks(range(0, n, 3), range(1, n + 1, 3))
    ax.grid(False)
    ax.spines["left"].set_visible(False)


def worst_heard(kept: float | None = None, n: int = 31) -> tuple[Axes, str]:
    """The share of the worst-heard node in the one that is read, against L (1 - kept), in five graphs.

    Args:
        kept: the share of its state that a token keeps in a layer; None is the one measured, `measures.measured_share`.
    """
    kept = measures.measured_share() if kept is None else kept
    layers = [2**k for k in range(11) if 2**k * (1 - kept) <= 33]
    found, depth = measures.worst_heard(layers, kept, n), measures.LAYERS_READ
    at = {name: shares[0] for name, shares in measures.worst_heard([depth], kept, n).items()}
    tree, causal = at["tree"], at["causal attention"]
    order = "ahead of" if causal > tree else "behind"
    ax = style.axes(
        f"After {depth} layers causal attention is {order} the tree",
        "L (1 − ρ)",
        "least share heard",
        log="xy",
        height=3.0,
    )
    colours = (GREEN, GREY, style.COLOURS["black"], style.COLOURS["purple"], RED)
    for (name, shares), colour in zip(found.items(), colours, strict=True):
        points = [(k * (1 - kept), share) for k, share in zip(layers, shares, strict=True) if share > 0]
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=colour, label=name)
    ax.axhline(1 / n, color="black", lw=1, ls="--")
    ax.axvline(depth * (1 - kept), color=BLUE, lw=1.5, ls=":")
    ax.text(depth * (1 - kept) * 1.06, 3e-10, f"{depth} layers", color=BLUE, size=14)
    ax.set(xlim=(0.04, 40), ylim=(1e-10, 1))
    style.ticks(ax, [0.1, 1, 10])
    style.label(ax)
    behind = measures.falls_behind(kept, n)
    return ax, (
        f"ρ = {kept:g}, {depth} layers: the worst-heard of {n} nodes has {style.number(causal)} under causal attention, "
        f"{style.number(tree)} in the tree. Causal attention is behind from {behind} layers on, "
        f"L (1 − ρ) = {behind * (1 - kept):.1f}."
    )


def mask(name: str, n: int) -> Float[Tensor, "n n"]:
    """Attention that knows one of the `MASKS` and nothing else."""
    return _MASKS[require.choice("name", name, MASKS)](n)


def trap(own: Callable[[Tensor], float] | None = None) -> tuple[Axes, str]:
    """The sink score of uniform attention, which has no sink, against length; beside it another score of maps."""
    lengths = range(2, 65)
    maps = {
        "uniform": lambda n: attention.uniform(attention.causal_mask(n)),
        "sink of 0.3": lambda n: attention.sink(n, 0.3),
    }
    scores = [float(attention.sink_score(maps["uniform"](n))) for n in lengths]
    last = max(n for n, score in zip(lengths, scores, strict=True) if score > attention.STRONG)
    ax = style.axes(
        f"Uniform attention is a “sink” up to {last} tokens",
        "n (tokens)",
        "sink score of the first token",
        height=3.4,
    )
    ax.plot(lengths, scores, color=BLUE, label="uniform")
    for name, make in maps.items() if own else ():
        ax.plot(
            lengths,
            [own(make(n)) for n in lengths],
            ls="--",
            label=f"yours, {name}",
            color=BLUE if name == "uniform" else GREEN,
        )
    ax.axhline(attention.STRONG, color=RED, lw=1.5, ls="--")
    if own:
        style.label(ax)
    else:
        ax.text(40, 0.32, "threshold 0.3", color=RED, size=14)
    ax.set_ylim(-0.05 if own else 0, 0.8)
    return ax, (
        f"Uniform attention scores above 0.3 for every length up to {last}; at 64 tokens it scores {scores[-1]:.3f}."
    )


def brake(kept: float | None = None) -> tuple[Axes, str]:
    """What token 5 adds to the last of 32 tokens after 30 layers, by the share that a sink takes; `kept` as in `worst_heard`."""
    kept, layers = measures.measured_share() if kept is None else kept, measures.LAYERS_READ
    shares = [k / 20 for k in range(20)]
    found = [float(attention.influence([attention.sink(32, p)] * layers, kept)[-1, 4]) for p in shares]
    falls = all(a > b for a, b in itertools.pairwise(found))
    ax = style.axes(
        "A sink keeps other tokens from mixing" if falls else "A sink does not keep others from mixing",
        "share of attention on the first token",
        "influence of token 5",
        log="y",
        height=4.2,
    )
    ax.plot(shares, found, "o-", color=BLUE)
    none, much, most = (style.number(found[k]) for k in (0, 16, 19))
    return ax, (
        f"ρ = {kept:g}, {layers} layers. Without a sink {none}; with a share of 0.8 on the first token {much}; with 0.95, {most}."
    )


# The lab ------------------------------------------------------------------------------------------------


def sinks_by_layer(scores: dict[str, Float[Tensor, "layers heads"]]) -> tuple[Axes, str]:
    """The mean sink score of a layer's heads, by text; layers from 1."""
    means = {name: score.mean(1) for name, score in scores.items()}
    ax = style.axes("", "layer", "mean sink score", height=4.2)
    for name, mean in means.items():
        ax.plot(range(1, len(mean) + 1), mean, label=name)
    ax.set_ylim(0, 1)
    style.label(ax)
    low = min(float(mean.mean()) for mean in means.values())
    lowest = min(means, key=lambda name: float(means[name].mean()))
    ax.set_title(f"No sink in “{lowest}”" if low < 0.1 else "A sink in every text")
    return ax, "Mean sink score: " + ", ".join(f"{name} {float(mean.mean()):.2f}" for name, mean in means.items()) + "."


def sensitivities(norms: Tensor, errors: Tensor, words: Sequence[str], exact: Tensor | None = None) -> tuple[Axes, str]:
    """Randomised Jacobian norms with twice their standard errors, the exact ones where there are, and the loudest words."""
    truth = norms if exact is None else exact
    n = len(norms)
    share = float(truth[0] / truth.sum())
    place = 1 + int((truth > truth[0]).sum())
    ax = style.axes(
        f"In this text the first token has {share:.0%} of the sensitivity", "token", "norm of the Jacobian", height=4.4
    )
    ax.errorbar(range(1, n + 1), norms, 2 * errors, fmt="o", ms=5, color=BLUE, label="randomised")
    if exact is not None:
        ax.plot(range(1, n + 1), exact, "_", ms=11, mew=3, color="black", label="exact")
    ax.legend(loc="upper center")
    loud: list[int] = []
    for k in truth.argsort(descending=True).tolist():
        if 3 < k < n - 6 and words[k].strip().isalpha() and all(abs(k - other) > 3 for other in loud) and len(loud) < 5:
            loud.append(k)
    for k in loud:
        ax.annotate(
            words[k].strip(), (k + 1, float(truth[k])), (0, 8), textcoords="offset points", ha="center", size=13
        )
    ax.set_ylim(0, 1.05 * float((norms + 2 * errors).max()))
    named = ", ".join(words[k].strip() for k in sorted(loud))
    text = f"The first token is number {place} of {n}" + (
        f"; in the middle the loudest words are {named}." if named else "."
    )
    if exact is not None:
        off = float((norms / exact - 1).square().mean().sqrt())
        inside = float(((norms - exact).abs() <= 2 * errors).double().mean())
        text += f" Root mean square error of the randomised norms {off:.1%}; {inside:.0%} of the exact ones within two error bars."
    return ax, text


def before_and_after(table: pd.DataFrame) -> tuple[Axes, str]:
    """Each token's share of the sensitivity, times the length, with random weights and trained: means and ranges over texts."""
    ax = style.axes("", "token", "share of the sensitivity × n", log="y", height=4.4)
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
    turned = float(before[0]) > float(after[0]) and late[1] > late[0]
    ax.set_title("Training turns the ear to the late tokens" if turned else "Training keeps the order of the tokens")
    return ax, (
        f"Mean of {len(measures.NAMES)} texts. Random weights: the first token has {float(before[0]) / n:.1%}, the least is "
        f"token {least}, tokens {2 * n // 3 + 1} to {n - 1} have {late[0]:.0%} together. Trained: {float(after[0]) / n:.1%} and "
        f"{late[1]:.0%}. Dashed: equal shares."
    )


def proxies(table: pd.DataFrame, kept: float = 0.5) -> tuple[Axes, str]:
    """Rank correlations with the Jacobian's norms of what is used in its place: a dot a text, a bar for the mean.

    Args:
        kept: the share of a state that each layer keeps in rollout and its controls, for the title.
    """
    below = int((table.loc["rollout"] <= table.loc["mask alone"]).sum())
    ax = style.axes(
        f"ρ = {kept:g}: rollout is at or below the mask alone in {below} of {table.shape[1]} texts",
        "rank correlation with the Jacobian's norms",
        "",
        height=3.5,
    )
    controls = ("position", "shuffled heads", "mask alone", "untrained")
    order = table.mean(axis=1).sort_values().index
    for k, name in enumerate(order):
        colour = GREY if name in controls else BLUE
        ax.plot(table.loc[name], [k] * table.shape[1], "o", ms=8, mfc="none", mew=1.8, color=colour)
        ax.plot([table.loc[name].mean()], [k], "|", ms=24, mew=4, color=colour)
    ax.set_yticks(range(len(order)), order)
    ax.axvline(0, color="black", lw=1)
    ax.set_xlim(-1, 1)
    means = ", ".join(f"{name} {style.number(float(table.loc[name].mean()))}" for name in reversed(order))
    return ax, f"ρ = {kept:g}. Mean over {table.shape[1]} texts: {means}."


def taken_apart(table: pd.DataFrame) -> Styler:
    """`measures.brake_table`: what each change costs and how far changes then spread, as means and ranges over the texts."""
    names = {
        "mass": "the first token hidden",
        "value": "its attention kept, its value zeroed",
        "heads": f"{measures.OFF:.0%} of all heads off, drawn (4 draws)",
    }
    rows = [
        {
            "changed from token 25 on": text,
            "loss (nats)": f"{part['loss'].mean():+.2f} ({part['loss'].min():+.2f} to {part['loss'].max():+.2f})",
            "spread": f"× {part['spread'].mean():.2f} ({part['spread'].min():.2f} to {part['spread'].max():.2f})",
        }
        for change, text in names.items()
        for part in [table.xs(change, level="change")]
    ]
    return pd.DataFrame(rows).replace("-", "−", regex=True).style.hide()


def taken_apart_says(table: pd.DataFrame) -> str:
    """What `taken_apart` shows, in a sentence."""
    loss, spread = (table[name].groupby("change").mean() for name in ("loss", "spread"))
    texts = table.loc["mass"].index
    further = {
        name: int((table.loc["mass"]["spread"] > table.loc[name]["spread"]).sum()) for name in ("value", "heads")
    }
    return (
        f"Hiding the first token lets changes spread × **{spread['mass']:.2f}**, further than zeroing its value in "
        f"{further['value']} of {len(texts)} texts and than a fifth of the heads off in {further['heads']}. Its value alone is "
        f"**{loss['value'] / loss['mass']:.0%}** of the loss, and heads off at random, with the sink in place, cost "
        f"{loss['heads'] / loss['mass']:.0%} of it with a spread of × {spread['heads']:.2f}. So most of the brake is where the "
        "attention goes and not what the token says, its value is not nothing, and confusion is a part."
    )


def handed_over(model: LanguageModel, tokens: Int[Tensor, " n"]) -> str:
    """What the first token hands over beside the others, in a sentence."""
    if not probe.reads_projections(model):
        return f"What a token hands over is not read in {model.short}: its layers hold no values apart (`v_proj`)."
    ratio = measures.value_ratios(model, tokens)
    return (
        f"What the first token hands over is **{float(ratio.median()):.2f}** of the others' mean norm (median of "
        f"{ratio.numel()} heads), and below one half in {float((ratio < 0.5).float().mean()):.0%} of the heads."
    )


def giants(found: dict[str, measures.Hidden]) -> tuple[Axes, str]:
    """By layer, the state's norm of the token that is largest at half depth, over the median of all tokens."""
    ax = style.axes("", "layer", "norm over the median", log="y", height=5.0)
    parts = []
    for (name, each), colour in zip(found.items(), (BLUE, RED, GREEN), strict=True):
        ratio = each.norms[:, each.heir - 1] / each.norms.median(1).values
        ax.plot(range(len(ratio)), ratio, color=colour, label=f"token {each.heir}: {name}")
        parts.append(
            f"{name}: token {each.heir}, {style.number(each.times)} times the median, attention {each.attention:.0%}"
        )
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2))
    grown = [name for name, each in found.items() if each.times > 50]
    ax.set_title(f"A giant state in {len(grown)} of {len(found)} cases")
    return ax, "At half depth " + "; ".join(parts) + "."


def hidden_since(table: pd.DataFrame) -> tuple[Axes, str]:
    """How much the later loss rises when the first token is hidden from a place on: a line a text."""
    plain = measures.case(table, 0)["loss"]
    rows = table[table["token"] == 1].pivot(index="text", columns="since", values="loss").sub(plain, axis=0)
    other = table[table["token"] > 1].pivot(index="text", columns="since", values="loss").sub(plain, axis=0)
    worst = rows.max(axis=1)
    ax = style.axes(
        f"Hidden late, the first token is missed in {int((worst > 0.5).sum())} of {len(rows)} texts",
        "first token hidden from this token on",
        "loss, above nothing hidden (nats)",
        height=4.4,
    )
    for _, row in rows.iterrows():
        ax.plot(row.index, row, color=RED, lw=1, alpha=0.5)
    ax.plot(rows.columns, rows.mean(), "o-", color=RED, label="first token, mean")
    control = int(table["token"].max())
    ax.plot(other.columns, other.mean(), "s-", color=BLUE, label=f"token {control}")
    ax.axhline(0, color="black", lw=1)
    style.label(ax)
    late = rows[25]
    return ax, (
        f"{len(rows)} texts. Hidden from all: {style.number(float(rows[1].min()))} to {style.number(float(rows[1].max()))} "
        f"nats; from token 9 on {style.number(float(rows[9].min()))} to {style.number(float(rows[9].max()))}; from token 25 on "
        f"{style.number(float(late.min()))} to {style.number(float(late.max()))}. Token {control} hidden from token 25 on: "
        f"{style.number(float(other[25].max()))} at most."
    )


def brakes(table: pd.DataFrame) -> tuple[Axes, str]:
    """How far a replaced token moves later states when a token is hidden, over the same with nothing hidden."""
    plain = measures.case(table, 0)["spread"]
    cases = {
        "sink hidden late": (1, 25),
        "sink hidden from the start": (1, 1),
        f"token {measures.CONTROL} hidden late": (measures.CONTROL, 25),
    }
    found = {name: measures.case(table, *case)["spread"] / plain for name, case in cases.items()}
    late, *controls = found.values()
    further = int((late > pd.concat(controls).max()).sum())
    ax = style.axes(
        f"Without a sink, changes spread further: {further} of {len(late)}",
        "change of later states, over nothing hidden",
        "",
        height=3.6,
    )
    for k, (name, ratio) in enumerate(reversed(found.items())):
        colour = RED if name == "sink hidden late" else GREY
        ax.plot(ratio, [k] * len(ratio), "o", mfc="none", mew=1.8, color=colour)
        ax.plot([ratio.mean()], [k], "|", ms=24, mew=4, color=colour)
    ax.set_yticks(range(len(found)), list(reversed(found)))
    ax.set_ylim(-0.6, len(found) - 0.4)
    ax.axvline(1, color="black", lw=1)
    return ax, "; ".join(f"{name}: {r.min():.2f} to {r.max():.2f}" for name, r in found.items()) + "."


def _nats(loss: float) -> str:
    return f"{round(loss, 1) + 0:.1f}".replace("-", "−")


def answer(table: pd.DataFrame, ranks: Mapping[float, pd.DataFrame], hidden: pd.DataFrame, attended: float) -> str:
    """The lab's answer, from what was measured on the model alone.

    Args:
        ranks: `measures.proxies` by the share of a state that each layer keeps.
        attended: the attention that the first token gets.
    """
    rows = {
        network: [measures.profile_of(table, text, network) for text in measures.NAMES]
        for network in ("seed 0", "trained")
    }
    shares = {network: statistics.fmean(float(row[0] / row.sum()) for row in each) for network, each in rows.items()}
    fresh = rows["seed 0"]
    falls = all(significance.rank_correlation(torch.arange(len(row) - 1), row[:-1])[0] < -0.9 for row in fresh)
    plain, late, early = (measures.case(hidden, *which)["loss"] for which in ((0, 1), (1, 25), (1, 1)))
    means = {kept: {name: float(each.loc[name].mean()) for name in each.index} for kept, each in ranks.items()}
    said = ", ".join(
        f"**{style.number(row['rollout'])}** at ρ = {kept:g} (the mask alone {style.number(row['mask alone'])})"
        for kept, row in means.items()
    )
    return (
        f"{'Before training, yes' if falls else 'Not even before training'}: with random weights the first "
        f"token has **{shares['seed 0']:.0%}** of the sensitivity{', and ever less falls on later ones' if falls else ''}. "
        f"{'After it, no' if next(iter(means.values()))['untrained'] < 0.5 else 'After it, still'}: the first token gets "
        f"**{attended:.0%}** of all attention and has **{shares['trained']:.0%}** of the sensitivity (mean of the texts; an equal share: "
        f"{1 / measures.TOKENS:.0%}). How well rollout ranks the tokens depends on the share of a state that it takes for kept: "
        f"{said}. Hidden from token 25 on, the first token costs {_nats((late - plain).mean())} nats; hidden from the start, {_nats((early - plain).mean())}."
    )
