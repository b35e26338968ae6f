"""Draw the figures of chapter 5, and state the finding of each figure in a sentence."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.chapter5 import measures
from course.maths import rope_scaling
from helpers import attention, data, probe, rope, style
from helpers.models import LanguageModel

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Draw the lesson's figures ------------------------------------------------------------------------


def decay(base: float = 1e4, far: int = 100_000) -> tuple[Axes, str]:
    """Draw how scores of Gaussian queries and keys depend on their distance, and RoFormer's bound.

    The standard deviation of the scores does not fall, although the bound does.
    """
    m = torch.unique(torch.logspace(0, math.log10(far), 300).round())
    scores = measures.gaussian_scores(m, base=base)
    spread, mean = scores.std(0), scores.mean(0)
    bound = rope_scaling.decay_bound(m, 128, base) / rope_scaling.decay_bound(0, 128, base)
    ax = style.axes(
        "Gaussian vectors do not decay at all",
        "distance Δ (tokens)",
        "relative size",
        log="x",
        height=3.9,
    )
    ax.plot(m, bound, "--", color=GREY, label="the bound's factor / its value at 0")
    ax.plot(m, spread, color=BLUE, label="standard deviation of the score / √d")
    ax.axhline(0, color=BLACK, lw=1)
    ax.set_ylim(-0.4, 2.4)
    ax.legend(loc="upper right")
    return ax, (
        f"Standard deviation {spread.min():.2f} to {spread.max():.2f} at every distance; "
        "mean between "
        f"{mean.min():+.2f} and {mean.max():+.2f} ({len(scores):,} pairs of vectors, d = 128)."
    )


def second_layer(n: int = 64) -> tuple[Axes, str]:
    """Draw each token's attention weight on itself in (BOS, x, …, x), without positions.

    The figure shows a first layer, a second layer, and a control.
    """
    sharp, soft, unmarked = (
        measures.second_layer_without_positions(n, scale * n**2, marked).diagonal()
        for scale, marked in ((8, True), (2, True), (8, False))
    )
    ax = style.axes(
        f"Without positions: at least {style.number(float(sharp.min()), 4)} on itself in layer 2",
        "token",
        "weight on itself",
        height=3.1,
    )
    tokens = range(1, n + 1)
    ax.plot(tokens, sharp, color=BLUE, lw=3, label="second layer, c = 8n²")
    ax.plot(tokens, soft, color=GREEN, lw=2, ls="--", label="second layer, c = 2n²")
    ax.plot(
        tokens[2:],
        [1 / (i - 1) for i in tokens[2:]],
        color=RED,
        lw=2.5,
        label="first layer, at most",
    )
    ax.plot(tokens, unmarked, color=GREY, lw=2, ls=":", label="second layer, BOS not marked")
    ax.set_ylim(0, 1.05)
    style.label(ax)
    return ax, (
        f"{n} tokens (BOS, x, …, x). Least weight on itself: "
        f"{style.number(float(sharp.min()), 4)} (c = 8n²), "
        f"{style.number(float(soft.min()))} (c = 2n²). A first layer shares its weight among "
        "equal tokens: at most "
        f"{style.number(1 / (n - 1))} at the last. BOS not marked: "
        f"{style.number(float(unmarked.min()))}."
    )


def norm_cost(fastest: int, offset: int) -> tuple[Axes, str]:
    """Draw the query-key scale that a diagonal head needs, as a function of the context length.

    There is one curve for each number of rotary pairs, which are the fastest ones of 64 pairs.

    Args:
        fastest: the number of pairs whose curve is highlighted.
        offset: the distance at which the head looks.
    """
    theta, lengths = rope.frequencies(128, 1e4), [2**k for k in range(5, 13)]
    ax = style.axes("", "n (tokens)", "scale for a weight of 0.99", log="xy", height=4.1)
    found = {}
    for count in (1, 2, 4, 8, 64):
        found[count] = [rope_scaling.slash_scale(theta[:count], n, offset=offset) for n in lengths]
        chosen = count == fastest
        ax.plot(
            lengths,
            found[count],
            color=RED if chosen else "#bbbbbb",
            lw=3 if chosen else 1.5,
            zorder=3 if chosen else 2,
        )
        lift = {8: 2.8, 64: 1 / 2.8}.get(count, 1)  # because their lines nearly meet
        name = "all 64" if count == 64 else f"{count} pair{'s' * (count > 1)}"
        ax.text(
            4600, lift * found[count][-1], name, color=RED if chosen else GREY, size=14, va="center"
        )
    cost = found[fastest][-1]
    cheap = cost < 10 * found[64][-1]
    ax.set_title(
        f"{fastest} pair{'s' * (fastest > 1)}: "
        f"{'cheap at all lengths drawn' if cheap else 'expensive in long contexts'}"
    )
    ax.set_ylim(0.3, 1e11)
    what = "diagonal" if offset == 0 else f"{offset} back"
    return (
        ax,
        (
            f"For 4,096 tokens, a head ({what}) needs a scale of {style.number(cost)} with the "
            f"{fastest} fastest of 64 pairs, and {style.number(found[64][-1])} with all pairs."
        ),
    )


def feasible(length: int, points: int = 500) -> tuple[Axes, str]:
    """Draw which bases are large enough for a context, around the published bound.

    The grid goes from half the bound to 2.5 times the bound.
    """
    row = data.table("reported/rope_base_bound").set_index("context").loc[length]
    bases = torch.linspace(0.5 * row.published, 2.5 * row.published, points).double()
    lowest = torch.tensor(
        [float(rope.cosine_sum(torch.arange(length), 128, float(base)).min()) for base in bases]
    )
    good = lowest >= 0
    first = float(bases[good][0])
    again = int((good[:-1] & ~good[1:]).sum())
    how = "passing and failing alternate" if again else "one threshold on this grid"
    ax = style.axes(f"{length:,} tokens: {how}", "base", "smallest sum", height=3.6)
    ax.plot(bases, lowest, color=GREY, lw=1)
    ax.plot(bases[good], lowest[good], "o", ms=4, color=BLUE)
    ax.plot(bases[~good], lowest[~good], "o", ms=4, color=RED)
    ax.axhline(0, color=BLACK, lw=1)
    ax.axvline(row.published, color=GREEN, lw=2, ls="--")
    low, high = float(lowest.min()), float(lowest.max())
    room = 0.3 * (high - low)  # for the names, above and below all points
    ax.set_ylim(low - room, high + room)
    ax.text(bases[0], low - 0.9 * room, "fails", color=RED, va="bottom")
    ax.text(1.02 * row.published, low - 0.9 * room, "published bound", color=GREEN, va="bottom")
    ax.text(bases[-1], high + 0.9 * room, "passes", color=BLUE, va="top", ha="right")
    state = "passes" if rope.first_negative(128, float(row.published), length) is None else "fails"
    return (
        ax,
        (
            f"On this grid the first pass is at {first:,.0f}, and after a pass it fails again "
            f"{again} times. The published {row.published:,.0f} {state}."
        ),
    )


def context_sums(kinds: Mapping[str, Mapping]) -> tuple[Axes, str]:
    """Draw the mean of cos(distance * theta) over a model's pairs, as a function of distance.

    The distances are those within the model's context. There is one curve for each set of
    frequencies that the model has.
    """
    negative = {kind: found["first_negative"] for kind, found in kinds.items()}
    first = min((m for m in negative.values() if m is not None), default=None)
    ax = style.axes(
        "No negative sum within the context" if first is None else
        f"First negative sum at distance {first:,}", "distance (tokens)",
        "mean of cos(distance × θ)", log="x",
    )  # fmt: skip
    for (kind, found), colour in zip(kinds.items(), (BLUE, RED, GREEN, PURPLE), strict=False):
        # the sums change faster than the figure is wide, so draw the extremes of each interval
        ax.plot(
            found["distances"],
            found["least"],
            color=colour,
            lw=1.8,
            label=kind if len(kinds) > 1 else "least",
        )
        ax.fill_between(
            found["distances"], found["least"], found["largest"], color=colour, alpha=0.25, lw=0
        )
        if negative[kind] is not None:
            ax.axvline(negative[kind], color=colour, lw=1.5, ls="--")
    ax.axhline(0, color=BLACK, lw=1)
    style.label(ax)
    said = "; ".join(
        f"{kind}: "
        + ("no negative sum" if m is None else f"first negative at {m:,}")
        + (
            f" below {kinds[kind]['limit']:,} tokens, least value "
            f"{style.number(min(kinds[kind]['least']))}"
        )
        for kind, m in negative.items()
    )
    return (
        ax,
        (
            "The mean cosine of the pairs against the distance, from the least to the largest of "
            f"each stretch. {said}."
        ),
    )


def line_and_column(model: LanguageModel, tokens: int = 40) -> tuple[Figure, str]:
    """Draw the attention matrices of two heads of a model on prose.

    One head attends most to the previous token, and the other one attends most to the first token.
    """
    ids = measures.prose(model, tokens)
    found, theta = measures.heads(model, ids, rank=False), probe.rotary_frequencies(model)
    figure = Figure(figsize=(10.0, 4.6))
    named, said = {"one token back": found.slashes[..., 1], "the first token": found.sinks}, []
    parts = list(probe.queries_and_keys(model, ids))
    for ax, (what, scores) in zip(figure.subplots(1, 2), named.items(), strict=True):
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        share = float(scores[layer, head])
        ax.imshow(measures.weights(*parts[layer], theta)[head], cmap="Blues", vmin=0, vmax=1)
        ax.set_title(f"{share:.0%} on {what}", size=18)
        ax.set(xlabel="token looked at", ylabel="token that looks")
        for ticks in (ax.set_xticks, ax.set_yticks):
            ticks(range(0, tokens, 13), range(1, tokens + 1, 13))
        ax.grid(False)
        said.append(f"layer {layer + 1}, head {head + 1}, {share:.0%} on {what}")
    return figure, f"Two heads, {tokens} tokens of prose: {'; '.join(said)}."


# Draw the lab's figures ---------------------------------------------------------------------------


def usage(what: str, found: measures.Heads) -> tuple[Axes, str]:
    """Draw how strongly queries or keys use each rotary pair, layer by layer.

    The value is the mean norm of the pair divided by the layer's mean.
    """
    norms = (found.queries if what == "queries" else found.keys).mean(1)
    share = norms / norms.mean(-1, keepdim=True)
    quarter = share.shape[1] // 4
    fast = share[:, :quarter].mean(1)
    rank = fast.argsort(descending=True)[:3] + 1
    ax = style.axes(
        f"{what.capitalize()}: fastest quarter at {fast.mean():.2f} of the mean",
        "pair (fast to slow)",
        "layer",
        height=2.9,
    )
    image = ax.imshow(
        share,
        aspect="auto",
        cmap="cividis",
        origin="lower",
        extent=(-0.5, share.shape[1] - 0.5, 0.5, len(share) + 0.5),
        vmax=2.5,
    )
    ax.grid(False)
    ax.figure.colorbar(image, label="norm / mean of the layer")
    between = f", {fast[1:-1].mean():.2f} between" if len(fast) > 2 else ""
    return ax, (
        f"Values of the fastest quarter: {fast[0]:.2f} in the first layer, {fast[-1]:.2f} in the "
        f"last{between}. They are largest in layers {', '.join(str(int(r)) for r in rank)}."
    )


def special_heads(found: measures.Heads) -> tuple[Axes, str]:
    """Draw the scores of the strongest diagonal head and previous-token head in each layer."""
    best = found.slashes[:, :, :2].max(1).values
    layers = range(1, len(best) + 1)
    tops = [int(best[:, k].argmax()) + 1 for k in (0, 1)]
    strong = f"Strongest: diagonal in layer {tops[0]}, previous-token in layer {tops[1]}"
    ax = style.axes(
        strong
        if best.max() > attention.HEAD_SCORE_THRESHOLD
        else "No head is diagonal or looks at the previous token",
        "layer",
        "slash score of the best head",
        height=3.7,
    )
    ax.plot(layers, best[:, 1], "o-", color=BLUE, label="previous token")
    ax.plot(layers, best[:, 0], "s-", color=RED, label="diagonal")
    ax.set_ylim(0, 1)
    ax.legend(loc="upper right")
    counts = [
        (found.slashes[:, :, k] > attention.HEAD_SCORE_THRESHOLD).nonzero()[:, 0] + 1
        for k in (0, 1)
    ]
    where = [", ".join(str(int(x)) for x in sorted(set(c.tolist()))) for c in counts]
    listed = [
        f"{len(c)} (layers {layers})" if layers else "none"
        for c, layers in zip(counts, where, strict=True)
    ]
    return ax, f"Heads above 0.3: diagonal {listed[0]}, previous-token {listed[1]}."


def ablation(
    runs: Mapping[str, float], plain: float, blank: Sequence[float] = ()
) -> tuple[Axes, str]:
    """Draw how much ablating each quarter of the pairs raises the loss.

    As a control, we ablate random sets of as many pairs.

    Args:
        runs: the loss, keyed by the ablated pairs.
        plain: the loss without ablation.
        blank: the added losses for random weights.
    """
    added = {name: value - plain for name, value in runs.items()}
    control = [value for name, value in added.items() if name.startswith("random")]
    bands = {name: value for name, value in added.items() if not name.startswith("random")}
    worst = max(bands, key=bands.get)
    inside = [name for name, value in bands.items() if min(control) <= value <= max(control)]
    ax = style.axes(
        f"Ablating the {worst} quarter costs most",
        "quarter of the pairs",
        "added loss (nats)",
        height=4.1,
    )
    ax.plot(range(len(bands)), list(bands.values()), "o", ms=13, color=BLUE)
    ax.set_xticks(range(len(bands)), list(bands))
    for k, value in enumerate(bands.values()):
        ax.annotate(
            f"{value:+.2f}", (k, value), (12, 0), textcoords="offset points", va="center", size=15
        )
    if blank:
        ax.plot(range(len(blank)), blank, "_-", ms=22, mew=3, color=GREY)
        ax.text(
            len(blank) - 0.5,
            max(blank),
            "random weights",
            size=13,
            color=BLACK,
            va="bottom",
            ha="right",
        )
    ax.set_xlim(-0.5, len(bands) - 0.5)
    ax.axhspan(min(control), max(control), color=GREY, alpha=0.35, zorder=0)
    ax.text(
        -0.45,
        max(control),
        f"grey: {len(control)} random quarters",
        size=13,
        color=BLACK,
        va="bottom",
    )
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in bands.items())
    return (
        ax,
        (
            f"Without a quarter, the loss rises by these amounts: {listed}. Without a random "
            f"quarter it rises by {min(control):+.2f} to {max(control):+.2f}. Within this range: "
            f"{', '.join(inside) or 'none'}."
        )
        + (
            f" With random weights it changes by at most {max(map(abs, blank)):.3f}."
            if blank
            else ""
        ),
    )


def dissociation(
    rows: pd.DataFrame, threshold: float, blank: Sequence[float] = ()
) -> tuple[Axes, str]:
    """Draw how much ablating each quarter of the pairs raises the loss, in three sets of heads.

    The first set has the heads that attend to a fixed position, and the second set has all other
    heads. The third set has random heads of the second set, as many as the first set has.

    Args:
        blank: the added losses for random weights.
    """
    rows = rows[rows.threshold == threshold]
    heads = rows.groupby("where").heads.first()
    quarters = list(measures.BAND_NAMES)
    ax = style.axes("", "quarter of the pairs that is ablated", "added loss (nats)", height=3.0)
    shown = (
        ("inside", f"{heads.inside} positional heads", RED, "o"),
        ("outside", f"the other {heads.outside}", BLUE, "s"),
        ("control", f"{heads.control} of the others", GREY, "^"),
    )
    means = {}
    for k, (where, name, colour, mark) in enumerate(shown):
        here = rows[rows["where"] == where]
        means[where] = here[quarters].mean()
        for i, quarter in enumerate(quarters):
            ax.plot(
                [i + (k - 1) * 0.14] * len(here),
                here[quarter],
                mark,
                ms=7,
                alpha=0.45,
                color=colour,
            )
        ax.plot(
            [i + (k - 1) * 0.14 for i in range(4)],
            means[where],
            mark + "-",
            ms=10,
            color=colour,
            label=name,
        )
    if blank:
        ax.plot(range(4), blank, ":", lw=3, color=GREY, label="random weights")
    ax.set_xticks(range(4), quarters)
    ax.set_ylim(top=1.6 * ax.get_ylim()[1])
    ax.legend(loc="upper left", ncols=2)
    if not heads.inside:
        ax.set_title(f"No head has a slash score above {threshold:g}")
        return (
            ax,
            (
                f"No head has a slash score above {threshold:g} at a distance up to "
                f"{measures.OFFSETS - 1}."
            ),
        )
    ax.set_title(f"Positional heads need the {means['inside'].idxmax()} pairs most")
    random = rows[rows["where"] == "outside"][
        [name for name in rows if name.startswith("random")]
    ].mean()
    texts = rows.start.nunique()
    return ax, (
        "If we ablate the fastest quarter, the loss changes by "
        f"{means['inside'].fastest:+.2f} nats "
        f"in the heads with a slash score above {threshold:g}, by {means['outside'].fastest:+.2f} "
        f"in all others (random quarters there: {random.min():+.2f} to {random.max():+.2f}), and "
        f"by {means['control'].fastest:+.2f} in {heads.control} of the others. "
        f"{f'Mean of {texts} texts' if texts > 1 else 'One text'}."
    ).replace("-", "−")
