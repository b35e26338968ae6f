"""Draw the figures of chapter 6, and state the finding of each figure in a sentence."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.chapter6 import measures
from helpers import style

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Draw the lesson's figures ------------------------------------------------------------------------


def noise_left() -> tuple[Axes, str]:
    """Draw the fraction of noise that a subtraction leaves, as a function of the cosine.

    The cosine is between two noise vectors of equal size. The lines are closed forms, and the
    points are simulated rows.
    """
    cosine = torch.linspace(0, 1, 101, dtype=torch.float64)
    ax = style.axes("", "cosine of the two noise patterns", "noise left", height=3.8)
    for lam, colour in ((0.2, GREEN), (0.5, PURPLE), (0.8, RED)):
        ax.plot(cosine, measures.noise_left(cosine, lam), color=colour, label=f"λ = {lam}")
    ax.plot(cosine, (1 - cosine.square()).sqrt(), color=BLUE, ls="--", label="best λ")
    ax.axhline(1, color=BLACK, lw=1)
    for correlation in (0.0, 0.5, 0.9, 1.0):
        for lam, colour in ((0.8, RED), (None, BLUE)):
            found = measures.simulated_left(correlation, 1.0, lam)
            ax.plot(found.cosine, found.left, "o", mfc="none", mew=2, color=colour)
    ax.set(xlim=(0, 1), ylim=(0, 1.4))
    style.label(ax)
    ax.set_title(f"Equally large noises: λ = 0.8 needs a cosine above {0.8 / 2:.2f}")
    independent, near = (float(measures.noise_left(c, 0.8)) for c in (0.0, 0.9))
    return ax, (
        f"Both noises have equal size. With λ = 0.8, the noise grows to {independent:.2f} of its "
        f"size at cosine 0, and shrinks to {near:.2f} at cosine 0.9. Circles: simulated rows of "
        "4,096 keys."
    )


def panel(content: str, n: int, kind: str) -> tuple[Figure, str]:
    """Draw the weights that six normalizers give to the same logits, on the same axes.

    Args:
        kind: the kind of normalizers, a key of `measures.MAPS`.
    """
    logits, places = measures.panel_logits(content, n)
    figure = Figure(figsize=(11.5, 3.5))
    axes = figure.subplots(2, 3, sharex=True, sharey=True).flatten()
    answers, totals, largest = {}, {}, {}
    for ax, (name, call) in zip(axes, measures.MAPS[kind].items(), strict=True):
        weights = call(logits)
        answers[name] = float(weights[places].sum()) if places else 0.0
        totals[name] = float(weights.sum())
        largest[name] = float(weights.max())
        colours = [
            BLACK if i in places else RED if w < 0 else BLUE for i, w in enumerate(weights.tolist())
        ]
        ax.vlines(range(n), 0, weights, color=colours, lw=max(1.8, 90 / n))
        for i in places:
            ax.plot(i, weights[i], "o", color=BLACK, ms=7)
        ax.axhline(0, color=BLACK, lw=0.8)
        ax.set_title(name, size=16)
        words = [f"answer {answers[name]:.2f}"] * bool(places) + [f"sum {totals[name]:.2f}"]
        frame = {"fc": "white", "ec": "none", "pad": 1, "alpha": 0.85}
        ax.text(
            0.97,
            0.93,
            "\n".join(words),
            transform=ax.transAxes,
            ha="right",
            va="top",
            size=15,
            bbox=frame,
        )
        ax.set_ylim(-0.25, 1.05)
        ax.tick_params(labelsize=14)
    if places:
        most, least = (pick(answers, key=answers.get) for pick in (max, min))
        title = (
            f"{content.capitalize()}, {n} keys: {answers[least]:.2f} to {answers[most]:.2f} of "
            "the weight"
        )
        finding = "The answer gets " if len(places) == 1 else "Both answers together get "
        finding += ", ".join(f"{value:.2f} ({name})" for name, value in answers.items()) + "."
    elif min(totals.values()) > 0.999:
        title = f"{content.capitalize()}, {n} keys: all six rows sum to 1"
        finding = (
            "The largest weight: "
            + ", ".join(f"{value:.2f} ({name})" for name, value in largest.items())
            + "."
        )
    else:
        silent = [name for name, value in totals.items() if value < 0.1]
        title = (
            f"{content.capitalize()}, {n} keys: {len(silent)} of 6 say{'s' * (len(silent) == 1)} "
            "nothing"
        )
        finding = f"Weights that sum to less than 0.1: {', '.join(silent)}."
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, finding
