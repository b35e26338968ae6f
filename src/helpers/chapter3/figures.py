"""What chapter 3 draws: functions that return a figure and the sentence that states its finding."""

import torch
from matplotlib.axes import Axes

from helpers import collapse, style


def sharpening(lead: float) -> tuple[Axes, str]:
    """The weight of a token that leads by `lead` logits against length, with and without adaptive temperature."""
    n = [2**k for k in range(2, 15)]
    rows = [torch.cat([torch.full((1,), float(lead)), torch.zeros(k - 1)]).double() for k in n]
    plain = [float(row.softmax(0)[0]) for row in rows]
    sharp = [float(collapse.adaptive_temperature(row)[0]) for row in rows]
    gain = max(range(len(n)), key=lambda k: sharp[k] - plain[k])
    end = next((k for k in range(gain + 1, len(n)) if sharp[k] - plain[k] < 1e-9), None)
    rest = "" if end is None else f"; at n = {n[end]:,} and beyond it does nothing"
    title = "Sharpening helps at every length here" if end is None else "Sharpening helps in a middle range of lengths"
    ax = style.axes(title, "n (tokens)", "weight of the leading token", log="x")
    ax.plot(n, sharp, "o-", color=style.COLOURS["green"], label="adaptive temperature")
    ax.plot(n, plain, "o-", color=style.COLOURS["blue"], label="softmax")
    ax.set_ylim(0, 1.05)
    ax.legend(loc="upper right")
    return ax, f"Most help at n = {n[gain]:,}: {plain[gain]:.3f} becomes {sharp[gain]:.3f}{rest}."
