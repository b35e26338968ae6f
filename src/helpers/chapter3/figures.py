"""What chapter 3 draws: functions that return a figure and the sentence that states its finding."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from helpers import collapse, style


def sharpening(lead: float, temperature: Callable = collapse.adaptive_temperature) -> tuple[Axes, str]:
    """The weight of a token that leads by `lead` logits against length, with and without adaptive temperature."""
    n = [2**k for k in range(2, 15)]
    rows = [torch.cat([torch.full((1,), float(lead)), torch.zeros(k - 1)]).double() for k in n]
    plain = [float(row.softmax(0)[0]) for row in rows]
    sharp = [float(temperature(row)[0]) for row in rows]
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


PERIODIC = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat(2500)  # values + + - - ..., 10,000 tokens


def head(logits: Float[Tensor, " n"], near: int = 16) -> tuple[Axes, str]:
    """Attention by distance of a head over `PERIODIC`, and the sign of the value there, before and after one more token."""
    weights = logits[: len(PERIODIC)].softmax(0)[:near]
    longer = torch.cat([PERIODIC, PERIODIC[-1:]]).flip(0)
    outputs = [float(weights_ @ values) for weights_, values in _shifted(logits)]
    ax = style.axes(
        f"One more token moves the output from {outputs[0]:+.2f} to {outputs[1]:+.2f}",
        "distance to the query",
        "attention",
    )
    for k, (values, name, colour) in enumerate(
        ((PERIODIC.flip(0), "10,000 tokens", "blue"), (longer, "one more", "vermillion"))
    ):
        signed = weights * values[:near]
        ax.bar(torch.arange(near) + 0.4 * k - 0.2, signed, 0.4, color=style.COLOURS[colour], label=name)
    ax.set_ylabel("attention × value")
    ax.legend(loc="upper right")
    return ax, f"The output is {outputs[0]:.3f} with 10,000 tokens, and {outputs[1]:.3f} when the last is repeated."


def _shifted(logits: Float[Tensor, " n"]) -> list[tuple[Tensor, Tensor]]:
    longer = torch.cat([PERIODIC, PERIODIC[-1:]])
    return [(logits[: len(values)].softmax(0), values.flip(0)) for values in (PERIODIC, longer)]
