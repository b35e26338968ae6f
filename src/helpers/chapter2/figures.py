"""What chapter 2 draws: functions that return a figure and the sentence that states its finding."""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc
from torch import Tensor

from helpers import attention, data, style
from helpers.chapter2 import measures

N = 10  # tokens of a drawn pattern
PATTERNS = ("causal", "window of 4", "previous token", "diagonal", "slash, offset 3", "sink", "blocks of 4")
MASKS = ("causal", "window of 8", "prefix of 4", "decay 0.3", "sink 0.8")
BLUE, RED, GREEN, GREY = (style.COLOURS[name] for name in ("blue", "vermillion", "green", "grey"))


def pattern(name: str, n: int = N) -> Float[Tensor, "n n"]:
    """A row-stochastic matrix of one of the `PATTERNS`; what would look before the text looks at the first token.

    Raises:
        ValueError: another name.
    """
    position = torch.arange(n)
    gap = position[:, None] - position
    back = {"previous token": 1, "diagonal": 0, "slash, offset 3": 3}
    if name in back:
        return torch.nn.functional.one_hot((position - back[name]).clamp(min=0), n).double()
    if name == "sink":
        return attention.sink(n, 0.8)
    masks = {
        "causal": gap >= 0,
        "window of 4": attention.window_mask(n, 4),
        "blocks of 4": (gap >= 0) & (position[:, None] // 4 == position // 4),
    }
    if name not in masks:
        raise ValueError(f"name must be one of {', '.join(PATTERNS)}, not {name!r}")
    return attention.uniform(masks[name])


def graph(name: str, layers: int) -> tuple[Axes, str]:
    """A pattern as a matrix and as arcs, and who reaches the last token in so many layers."""
    matrix = pattern(name)
    heard = attention.influence([matrix] * layers)
    left, right = Figure(figsize=(9.0, 4.2)).subplots(1, 2, width_ratios=(1, 1.35))
    _matrix(left, heard)
    left.set_title(f"{layers} layer{'s' * (layers > 1)}", size=16)
    reached = int((heard[-1] > 0).sum())
    _arcs(right, matrix, heard[-1])
    right.set_title("arcs of one layer", size=16)
    most = int(heard[-1].argmax())
    text = f"After {layers} layer{'s' * (layers > 1)} the last token hears {reached} of {N}, most of all token {most} ({heard[-1, most]:.2f})."
    return left, text


def _matrix(ax: Axes, matrix: Float[Tensor, "n n"]) -> None:
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    ax.set(
        xlabel="token looked at",
        ylabel="token that looks",
        xticks=range(0, len(matrix), 3),
        yticks=range(0, len(matrix), 3),
    )
    ax.grid(False)


def _arcs(ax: Axes, matrix: Float[Tensor, "n n"], heard: Float[Tensor, " n"]) -> None:
    """Arcs from the token looked at to the one that looks, as wide as the weight; dots as large as the influence."""
    n = len(matrix)
    for i in range(n):
        for j in range(i):
            if matrix[i, j] > 0:
                colour = RED if i == n - 1 else GREY
                width = 0.6 + 3 * float(matrix[i, j])
                ax.add_patch(Arc(((i + j) / 2, 0), i - j, 0.9 * (i - j), theta1=0, theta2=180, lw=width, color=colour))
    ax.scatter(range(n), [0] * n, s=[60 + 700 * float(h) for h in heard], color=BLUE, zorder=3, edgecolors="black")
    ax.set(xlim=(-0.9, n - 0.1), ylim=(-0.9, 0.46 * n + 0.5), xticks=range(0, n, 3), yticks=[], xlabel="token")
    ax.grid(False)
    ax.spines["left"].set_visible(False)


def mask(name: str, n: int) -> Float[Tensor, "n n"]:
    """Attention that knows one of the `MASKS` and nothing else.

    Raises:
        ValueError: another name.
    """
    make = {
        "causal": lambda: attention.uniform(attention.causal_mask(n)),
        "window of 8": lambda: attention.uniform(attention.window_mask(n, 8)),
        "prefix of 4": lambda: attention.uniform(attention.prefix_mask(n, 4)),
        "decay 0.3": lambda: attention.decay(n, 0.3),
        "sink 0.8": lambda: attention.sink(n, 0.8),
    }
    if name not in make:
        raise ValueError(f"name must be one of {', '.join(MASKS)}, not {name!r}")
    return make[name]()


def landscape(name: str, layers: int, residual: float, lengths: Sequence[int] = (16, 32, 64)) -> tuple[Axes, str]:
    """The influence of every token on the last one, through layers of one mask."""
    rows = {n: attention.influence([mask(name, n)] * layers, residual)[-1] for n in lengths}
    ax = style.axes(shape(rows[32]), "position, from first to last", "influence × n", height=4.2)
    for (n, row), colour in zip(rows.items(), (GREEN, BLUE, RED), strict=True):
        ax.plot(torch.linspace(0, 1, n), n * row, "o-", ms=4, lw=2, color=colour, label=f"n = {n}")
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_ylim(-0.002, 100)
    ax.set_yticks([0, 0.01, 0.1, 1, 10], ["0", "0.01", "0.1", "1", "10"])
    ax.set_xticks([0, 0.5, 1], ["first", "middle", "last"])
    ax.legend(loc="upper center", ncols=3)
    row = rows[32]
    text = f"n = 32: first token {float(row[0]):.3f}, token 16 {float(row[16]):.2g}, last {float(row[-1]):.3f}; as if {measures.heard(row):.1f} tokens were heard."
    return ax, text


def shape(row: Float[Tensor, " n"]) -> str:
    """What a profile of influence looks like, in words that its numbers give."""
    first, middle, last = float(row[0]), float(row[1:-1].min()), float(row[-1])
    if float(row.max() - row.min()) < 1e-6:
        return "Every token has the same influence"
    if first > 2 * middle and last > 2 * middle:
        return "A U: first and last above the middle"
    if first > 0.99:
        return "The first token takes all"
    return "Early tokens lead" if first > last else "Late tokens lead"


def bound(sharpness: float) -> tuple[Axes, str]:
    """Theorem B.5's bound beside the Jacobian of a random decoder, with attention held fixed and without."""
    table = measures.bound_and_truth(sharpness)
    over = int((table["true"] > table["bound"]).sum())
    title = (
        f"The true Jacobian exceeds the bound at {over} of {len(table)} tokens"
        if over
        else "The bound holds for both Jacobians here"
    )
    ax = style.axes(title, "token", "norm of the Jacobian", log="y", height=4.2)
    ax.plot(table["bound"], "_", ms=20, mew=3, color=GREY, label="bound")
    ax.plot(table["true"], "o", color=RED, label="true")
    ax.plot(table["attention fixed"], "s", ms=6, color=BLUE, label="attention fixed")
    ax.set_ylim(0.003, 60)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    ratio = table.div(table["bound"], axis=0)
    return ax, (
        f"Largest share of the bound: {ratio['attention fixed'].max():.2f} with attention fixed, {ratio['true'].max():.2f} without."
    )


def distances() -> tuple[Axes, str]:
    """The influence of a token by its distance under decay masks, and the critical distance of Wu et al."""
    settings, n = ((12, 0.1), (12, 0.3), (12, 1.0)), 400
    ax = style.axes("", "distance to the last token", "influence", height=4.2)
    parts = []
    for (layers, rate), colour in zip(settings, (BLUE, GREEN, RED), strict=True):
        # t + 1 factors: the theorem counts layers from 0
        row = attention.influence([attention.decay(n, rate)] * (layers + 1))[-1].flip(0)[:200]
        best, formula = int(row[1:].argmax()) + 1, attention.critical_distance(layers, rate)
        ax.plot(row, color=colour, label=f"m = {rate:g}")
        ax.axvline(formula, color=colour, lw=1, ls="--")
        parts.append(f"{best} (formula {formula:.1f}) at m = {rate:g}")
    apart = all(0 < int(line.get_ydata().argmax()) < n - 1 for line in ax.get_lines() if len(line.get_ydata()) > 2)
    ax.set_title(
        "The most influential token is neither first nor last" if apart else "The most influential token is an end"
    )
    style.label(ax)
    return ax, f"Largest influence at distance {', '.join(parts)}."


def trap() -> tuple[Axes, str]:
    """The sink score of uniform attention, which has no sink, against length."""
    lengths = range(2, 65)
    scores = [float(attention.sink_score(attention.uniform(attention.causal_mask(n)))) for n in lengths]
    last = max(n for n, score in zip(lengths, scores, strict=True) if score > 0.3)
    ax = style.axes(
        f"Uniform attention is a “sink” up to {last} tokens", "n (tokens)", "sink score of token 0", height=4.2
    )
    ax.plot(lengths, scores, color=BLUE, label="uniform")
    ax.axhline(0.3, color=RED, lw=1.5, ls="--")
    ax.text(40, 0.32, "threshold 0.3", color=RED, size=14)
    ax.set_ylim(0, 0.8)
    return (
        ax,
        f"Uniform attention scores above 0.3 for every length up to {last}; at 64 tokens it scores {scores[-1]:.3f}.",
    )


def brake() -> tuple[Axes, str]:
    """What token 4 adds to the last of 32 tokens after 8 layers, by the share that a sink takes."""
    shares = [k / 20 for k in range(20)]
    found = [float(attention.influence([attention.sink(32, p)] * 8, 0.5)[-1, 4]) for p in shares]
    falls = all(a > b for a, b in itertools.pairwise(found))
    ax = style.axes(
        "A sink keeps other tokens from mixing" if falls else "A sink does not keep others from mixing",
        "share of attention on token 0",
        "influence of token 4",
        log="y",
        height=4.2,
    )
    ax.plot(shares, found, "o-", color=BLUE)
    return (
        ax,
        f"Without a sink {found[0]:.4f}; with a share of 0.8 on token 0, {found[16]:.5f}; with 0.95, {found[19]:.1e}.",
    )


def middle() -> tuple[Axes, str]:
    """Reported accuracy by the place of the answer, beside the influence that mask and residual alone give."""
    table = data.table("reported/lost_in_the_middle")
    row = attention.influence([attention.uniform(attention.causal_mask(20))] * 6, 0.8)[-1]
    lowest, least = int(table["place"][table["accuracy"].idxmin()]), int(row.argmin()) + 1
    title = f"Lowest at place {lowest} as reported, at {least} in the graph"
    ax = style.axes(title, "place of the document with the answer", "accuracy (%)", height=4.2)
    ax.plot(table["place"], table["accuracy"], "o", mfc="white", mew=2.5, color=BLUE)
    ax.axhline(56.1, color=GREY, lw=1.5, ls="--")
    ax.text(12, 57, "without documents", color=GREY, size=14)
    ax.set_ylim(50, 80)
    other = ax.twinx()
    other.plot(range(1, 21), row, color=RED)
    other.set(ylim=(0, float(row.max()) * 1.1), ylabel="influence in the graph")
    other.yaxis.label.set_color(RED)
    other.grid(False)
    ax.set_xticks([1, 5, 10, 15, 20])
    return ax, (
        f"Reported accuracy is lowest at place {lowest} of those tried, the graph's influence at place {least}; "
        f"reported first {table['accuracy'].iloc[0]}, last {table['accuracy'].iloc[-1]}."
    )


# The lab ------------------------------------------------------------------------------------------------


def sinks_by_layer(scores: dict[str, Float[Tensor, "layers heads"]]) -> tuple[Axes, str]:
    """The mean sink score of a layer's heads, by text."""
    means = {name: score.mean(1) for name, score in scores.items()}
    ax = style.axes("", "layer", "mean sink score", height=4.2)
    for name, mean in means.items():
        ax.plot(mean, label=name)
    ax.set_ylim(0, 1)
    style.label(ax)
    low = min(float(mean.mean()) for mean in means.values())
    lowest = min(means, key=lambda name: float(means[name].mean()))
    ax.set_title(f"No sink in “{lowest}”" if low < 0.1 else "A sink in every text")
    return ax, "Mean sink score: " + ", ".join(f"{name} {float(mean.mean()):.2f}" for name, mean in means.items()) + "."


def sensitivities(exact: Tensor, norms: Tensor, errors: Tensor) -> tuple[Axes, str]:
    """Exact Jacobian norms, and the randomised ones with twice their standard errors."""
    inside = float(((norms - exact).abs() <= 2 * errors).double().mean())
    off = float((norms / exact - 1).square().mean().sqrt())
    ax = style.axes(f"Root mean square error {off:.1%}", "token", "norm of the Jacobian", log="y", height=4.2)
    ax.plot(exact, "_", ms=11, mew=3, color="black", label="exact")
    ax.errorbar(range(len(norms)), norms, 2 * errors, fmt="o", ms=5, color=BLUE, label="randomised")
    ax.legend()
    share = float(exact[0] / exact.sum())
    return (
        ax,
        f"Root mean square error {off:.1%}; {inside:.0%} of the exact norms within two error bars; the first token has {share:.0%} of all.",
    )


def proxies(found: dict[str, float]) -> tuple[Axes, str]:
    """Rank correlations of what is used in place of a Jacobian with the exact one."""
    over = found["rollout"] > max(found["uniform"], found["shuffled heads"])
    title = "Rollout tells more than its controls" if over else "Rollout tells no more than its controls"
    ax = style.axes(title, "rank correlation with the exact norms", "", height=4.2)
    names = sorted(found, key=found.get)
    colours = [GREY if name in ("uniform", "shuffled heads", "position") else BLUE for name in names]
    ax.barh(names, [found[name] for name in names], color=colours)
    ax.axvline(0, color="black", lw=1)
    ax.set_xlim(-1, 1)
    return ax, "Rank correlations: " + ", ".join(f"{name} {found[name]:.2f}" for name in reversed(names)) + "."


def hidden_since(found: dict[int, float], plain: float, control: dict[int, float]) -> tuple[Axes, str]:
    """The later loss when the first token is hidden from a position on, beside another token hidden likewise."""
    worst = max(found, key=found.get)
    ax = style.axes(
        f"Hidden late, the first token is missed: up to {found[worst] - plain:+.1f} nats",
        "token hidden from this position on",
        "loss (nats)",
        height=4.2,
    )
    ax.plot(list(found), list(found.values()), "o-", color=RED, label="first token")
    ax.plot(list(control), list(control.values()), "o-", color=BLUE, label="token 5")
    ax.axhline(plain, color=GREY, lw=1.5, ls="--")
    style.label(ax)
    text = ", ".join(f"{since}: {loss:.2f}" for since, loss in found.items())
    return ax, f"Loss with nothing hidden {plain:.2f}. First token hidden from position {text}; worst at {worst}."


def spreading(plain: Tensor, without: Tensor, control: Tensor) -> tuple[Axes, str]:
    """By layer, how far one changed token moves the states of later ones."""
    ratio = float((without[1:] / plain[1:]).max())
    ax = style.axes(
        f"Without the sink a change spreads up to {ratio:.1f} times further",
        "layer",
        "relative change of later states",
        height=4.2,
    )
    for values, name, colour in (
        (without, "sink hidden", RED),
        (plain, "nothing hidden", GREY),
        (control, "token 5 hidden", BLUE),
    ):
        ax.plot(values, color=colour, label=name, ls="--" if name == "token 5 hidden" else "-")
    ax.legend()
    k = int((without[1:] / plain[1:]).argmax()) + 1
    return (
        ax,
        f"Largest ratio {ratio:.2f} in layer {k}: {float(plain[k]):.3f} becomes {float(without[k]):.3f}; with token 5 hidden it is {float(control[k]):.3f}.",
    )
