"""Draw the figures of chapter NUMBER, and state the finding of each figure in a sentence.

Each function returns the axes and this sentence.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from helpers import attention, style


def first_token(lengths: Sequence[int] = (2, 4, 8, 16, 32, 64)) -> tuple[Axes, str]:
    """Plot the mean attention that the first token receives if attention is uniform."""
    found = [
        float(attention.sink_score(attention.uniform(attention.causal_mask(n)))) for n in lengths
    ]
    ax = style.axes(
        "The first token gets less in a longer sequence",
        "n (tokens)",
        "mean attention to token 0",
        log="x",
    )
    ax.plot(lengths, found, "o-")
    return ax, f"On average, the first of {lengths[-1]} tokens gets the weight {found[-1]:.2f}."
