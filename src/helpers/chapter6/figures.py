"""What chapter 6 draws: functions that return a figure and the sentence that states its finding."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import data, differential, style
from helpers.chapter6 import measures

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Lesson ------------------------------------------------------------------------------------------------


def cancel(signal: float, correlation: float, n: int) -> tuple[Figure, str]:
    """One signed row at lambda 0.8, and answer, noise and the answer's share against lambda."""
    first, second = measures.noisy_logits(signal, correlation, n, draws=40)
    a, b = first.softmax(-1), second.softmax(-1)
    lams = torch.linspace(0, 1, 21)
    rows = [a - lam * b for lam in lams]
    answer = torch.stack([row[:, 0].mean() for row in rows])
    noise = torch.stack([row[:, 1:].abs().sum(-1).mean() for row in rows])
    share = answer / (answer + noise)
    best = int(share.argmax())
    row = rows[16][0]
    below = float((rows[16][:, 1:] < 0).double().mean())
    figure = Figure(figsize=(10.0, 4.6))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    heavy = torch.cat([each[0, 1:].topk(15).indices + 1 for each in (a, b)])
    places = torch.tensor([*range(15), *range(16, 31)])
    left.bar(places, a[0, heavy], 0.9, color="#cccccc")
    left.bar(places, row[heavy], 0.45, color=[RED if w < 0 else BLUE for w in row[heavy]])
    left.axhline(0, color=BLACK, lw=1)
    left.set(ylabel="weight", title="Before (grey) and at λ = 0.8")
    left.set_xticks([7, 23], ["heaviest keys\nof map 1", "of map 2"])
    left.grid(axis="x", visible=False)
    right.plot(lams, share, color=BLUE, label="answer's share")
    right.plot(lams, answer, color=BLACK, ls="--", label="answer")
    right.plot(lams, noise, color=RED, ls=":", label="noise")
    right.plot(lams[best], share[best], "o", color=BLUE)
    right.set(xlabel="λ", ylabel="weight", ylim=(0, 1.6), title=f"Share {share[0]:.2f} → {share[best]:.2f}")
    right.legend(loc="upper left", ncols=3, fontsize=12, handlelength=1.3, columnspacing=0.9)
    gain = float(share[best] / share[0])
    figure.suptitle(
        f"Correlation {correlation:g}: {'nothing gained' if gain < 1.05 else f'{gain:.1f} times the share'} at the best λ",
        x=0.01, ha="left", weight="bold",
    )  # fmt: skip
    return figure, (
        f"Answer's share {share[0]:.2f} at λ = 0, best {share[best]:.2f} at λ = {lams[best]:.2f}, {share[16]:.2f} at "
        f"λ = 0.8, where {below:.0%} of the noise weights are negative."
    )


def noise_left() -> tuple[Axes, str]:
    """What is left of the noise against the cosine of the two patterns: closed form, and simulated rows."""
    cosine = torch.linspace(0, 1, 101, dtype=torch.float64)
    ax = style.axes("λ = 0.8 helps only where the noises agree by more than 0.40", "cosine of the two noise patterns", "noise left")  # fmt: skip
    for lam, colour in ((0.2, GREEN), (0.5, PURPLE), (0.8, RED)):
        ax.plot(cosine, measures.left(cosine, lam), color=colour, label=f"λ = {lam}")
    ax.plot(cosine, (1 - cosine.square()).sqrt(), color=BLUE, ls="--", label="best λ")
    ax.axhline(1, color=BLACK, lw=1)
    worst = 0.0
    for spread in (1.0, 1.5, 2.0):
        for correlation in (0.0, 0.5, 0.9):
            for lam, colour in ((0.8, RED), (None, BLUE)):
                x, y = measures.simulated_left(correlation, spread, lam)
                exact = float(measures.left(x, x if lam is None else lam))
                worst = max(worst, abs(y - exact))
                ax.plot(x, y, "o", mfc="none", mew=2, color=colour)
    ax.set(xlim=(0, 1), ylim=(0, 1.4))
    ax.legend(loc="lower left")
    even = 0.8 / 2
    ax.set_title(f"λ = 0.8 helps only where the noises agree by more than {even:.2f}")
    independent = float(measures.left(0.0, 0.8))
    return ax, (
        f"With λ = 0.8 unrelated noise grows to {independent:.2f} of its size; patterns with a cosine of 0.9 leave "
        f"{float(measures.left(0.9, 0.8)):.2f}. Circles: simulated rows of 4,096 keys, within {worst:.2f} of the curves."
    )


def schedule() -> tuple[Axes, str]:
    """Where lambda starts in each layer, and the scale of a head."""
    layers = range(1, 29)
    start = [differential.lambda_init(layer) for layer in layers]
    ax = style.axes(f"From {start[0]:.1f} in layer 1 to {start[-1]:.2f} in layer 28", "layer (from 1)", "value")
    ax.plot(layers, start, "o-", ms=5, color=BLUE, label="λ_init")
    ax.plot(layers, [1 - x for x in start], "s--", ms=5, color=RED, label="1 − λ_init")
    ax.set_ylim(0, 1)
    style.label(ax)
    return ax, f"λ_init is {start[0]:.2f} in layer 1, {start[3]:.2f} in layer 4 and {start[-1]:.3f} in layer 28."


def gradient_ratio() -> tuple[Axes, str]:
    """Gradient of the query weights over a plain Transformer's, at the start of training, by length."""
    table = measures.gradient_table()
    chosen = table[table.layer == 3].pivot(index="n", columns="kind", values="queries")
    ax = style.axes("", "n (tokens)", "gradient of W_Q / Transformer's", log="xy")
    for kind, colour in zip(measures.KINDS[1:], (BLUE, GREEN, RED), strict=True):
        ax.plot(chosen.index, chosen[kind], "o-", color=colour, label=kind)
    ax.axhline(1, color=BLACK, lw=1)
    ax.set_xticks(list(chosen.index), [str(n) for n in chosen.index])
    ax.minorticks_off()
    style.label(ax)
    low, high = chosen["DIFF"].iloc[[0, -1]]
    plain = chosen[measures.KINDS[3]]
    ax.set_title(f"At the start the norm makes gradients {low:.0f} to {high:.0f} times larger")
    return ax, (
        f"Layer 3, fresh weights: with norm and scale {low:.1f} to {high:.1f} times the Transformer's gradient; without "
        f"them {plain.min():.1f} to {plain.max():.1f} times. Geometric mean of three seeds."
    )


def retrieval() -> tuple[Axes, str]:
    """Table 2 of Ye et al."""
    table = data.table("reported/differential_retrieval")
    last = table.iloc[-1]
    ax = style.axes(
        f"Reported: {last.transformer:.2f} against {last['diff']:.2f} with six needles", "needles", "accuracy"
    )
    ax.plot(table.needles, table["diff"], "o--", mfc="white", mew=2, color=BLUE, label="DIFF")
    ax.plot(table.needles, table.transformer, "s--", mfc="white", mew=2, color=RED, label="Transformer")
    ax.set(ylim=(0, 1.05), xticks=list(table.needles))
    style.label(ax)
    return ax, "Needles and accuracy, Transformer and DIFF: " + "; ".join(
        f"{int(row.needles)}: {row.transformer:.2f}, {row.diff_:.2f}" for row in table.rename(columns={"diff": "diff_"}).itertuples()
    )  # fmt: skip


def answer_mass() -> tuple[Axes, str]:
    """Table 3 of Ye et al."""
    table = data.table("reported/differential_attention_mass")
    mean = table.mean()
    rest = [1 - mean[f"answer_{who}"] - mean[f"noise_{who}"] for who in ("transformer", "diff")]
    ax = style.axes(
        f"Reported: noise {mean.noise_transformer:.2f} → {mean.noise_diff:.2f}, and {rest[1]:.0%} is neither",
        "depth of the answer (% of the context)", "normalised attention",
    )  # fmt: skip
    for column, colour, mark, label in (
        ("noise_transformer", RED, "s", "noise, Transformer"),
        ("answer_diff", BLUE, "o", "answer, DIFF"),
        ("answer_transformer", RED, "o", "answer, Transformer"),
        ("noise_diff", BLUE, "s", "noise, DIFF"),
    ):
        ax.plot(table.depth, table[column], mark + ("-" if "answer" in column else "--"), mfc="white", mew=2, color=colour, label=label)  # fmt: skip
    ax.set_ylim(-0.02, 0.7)
    style.label(ax)
    return ax, (
        f"Mean over depths: answer {mean.answer_transformer:.2f} (Transformer) and {mean.answer_diff:.2f} (DIFF), noise "
        f"{mean.noise_transformer:.2f} and {mean.noise_diff:.2f}; {rest[0]:.0%} and {rest[1]:.0%} are in neither column."
    )


def counting() -> tuple[Axes, str]:
    """One row, its noise summed with signs and by size."""
    table = measures.counted()
    ways = list(table.columns[1:])
    ax = style.axes("", "noise summed …", "weight")
    for k, (name, colour) in enumerate(zip(table.index, (GREY, RED, BLUE), strict=True)):
        places = [i + 0.27 * (k - 1) for i in range(2)]
        bars = ax.bar(places, table.loc[name, ways], 0.25, color=colour, label=name)
        ax.bar_label(bars, fmt="%.2f", size=14)
    ax.set_xticks(range(2), ["with signs", "by size"])
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.5)
    ax.legend(loc="upper left")
    signed, sized = (table.loc["difference, independent noise", way] for way in ways)
    ax.set_title(f"The same row has a noise of {signed:.2f} or of {sized:.2f}")
    return ax, (
        f"λ = 0.8, answer {table.answer.iloc[0]:.2f} in all three. With signs the noise falls from {table[ways[0]].iloc[0]:.2f} to "
        f"{signed:.2f} even when it is independent; by size it is {sized:.2f} then, and {table[ways[1]].iloc[2]:.2f} when correlated."
    )


def ablations() -> tuple[Axes, str]:
    """Table 6 of Ye et al."""
    table = data.table("reported/differential_ablations")
    base, own = table.loss[:2]
    ax = style.axes("", "", "")
    names = list(table.model)[::-1]
    gaps = [float(loss - own) for loss in table.loss][::-1]
    ax.barh(names, gaps, color=[RED if g > base - own else BLUE for g in gaps], height=0.6)
    for y, gap in enumerate(gaps):
        ax.text(gap + 0.001, y, f"+{gap:.3f}" if gap else f"{own:.3f}", va="center", size=14)
    ax.set_xlabel("validation loss above DIFF's")
    ax.grid(axis="y", visible=False)
    ax.set_xlim(0, 0.075)
    bare = table.set_index("model").loss["DIFF, no head norm"]
    ax.set_title(f"Reported: no head norm {bare:.3f}, Transformer {base:.3f}")
    return ax, "Reported validation loss: " + "; ".join(
        f"{row.model} {row.loss:.3f}" for row in table.itertuples()
    ) + "."


def panel(content: str, n: int) -> tuple[Figure, str]:
    """Twelve maps from the same logits to weights, on the same axes."""
    logits, places = measures.panel_logits(content, n)
    figure = Figure(figsize=(10.5, 6.4))
    axes = figure.subplots(3, 4, sharex=True, sharey=True).flatten()
    answers, totals = {}, {}
    for ax, way in zip(axes, measures.MAPS, strict=True):
        weights = way.call(logits)
        answers[way.name] = float(weights[places].sum()) if places else 0.0
        totals[way.name] = float(weights.sum())
        colours = [BLACK if i in places else RED if w < 0 else BLUE for i, w in enumerate(weights.tolist())]
        ax.vlines(range(n), 0, weights, color=colours, lw=max(1.4, 90 / n))
        for i in places:
            ax.plot(i, weights[i], "o", color=BLACK, ms=5)
        ax.axhline(0, color=BLACK, lw=0.8)
        ax.set_title(way.name, size=14)
        words = (
            f"answer {answers[way.name]:.2f}\nsum {totals[way.name]:.2f}" if places else f"sum {totals[way.name]:.2f}"
        )
        ax.text(
            0.97,
            0.93,
            words,
            transform=ax.transAxes,
            ha="right",
            va="top",
            size=13,
            bbox={"fc": "white", "ec": "none", "pad": 1, "alpha": 0.85},
        )
        ax.set_ylim(-0.25, 1.05)
        ax.tick_params(labelsize=11)
    if places:
        best = [name for name, value in answers.items() if value > 0.9 * len(places) and totals[name] < 1.5]
        least = min(answers, key=answers.get)
        finding = f"Answer: softmax {answers['softmax']:.2f}; least by {least} ({answers[least]:.2f})."
        title = f"{content.capitalize()} among {n} keys: softmax gives {answers['softmax']:.2f}"
        if len(places) == 1:
            finding += f" Above 0.9: {', '.join(best) or 'none'}."
    else:
        silent = [name for name, value in totals.items() if value < 0.1]
        title = f"{content.capitalize()}, {n} keys: {len(silent)} of 12 say nothing"
        finding = f"Weights that sum to less than 0.1: {', '.join(silent) or 'none'}. Softmax hands out all of its 1."
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, finding
