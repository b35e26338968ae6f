"""Repeat the ablations of Table 6 of Ye et al. (2025) with the decoders of the race.

The ablations change the number of heads, the norm of the heads and its gain, and the initial value
of lambda. We made these decisions before the runs. Criterion, budget, seeds, margin and test are
those of the race. Holm's correction covers all rows, and we compare each row with the row that
differs from it in one thing (`AGAINST`).
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from course.runs import comparison, entries, runs
from course.runs.entries import Differential, Entry
from helpers import data, differential, require
from helpers.transformer import Block


class Normed(Block):
    """Apply softmax attention whose head outputs are each divided by their root mean square."""

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        heads = super().mix(x)
        return functional.rms_norm(heads, heads.shape[-1:], eps=differential.EPSILON)


def changed(**inner: object) -> Entry:
    """Return an entry with differential attention, built with these arguments of its layer.

    The arguments are those of `DifferentialAttention`.
    """
    return Entry(block=partial(Differential, inner=inner))


HALF = entries.ENTRIES[entries.HALF]
ROWS = {
    "Transformer": entries.ENTRIES[entries.BASELINE],
    "half the heads": HALF,
    "half the heads, head norm": Entry(HALF.settings, Normed),
    "DIFF": entries.ENTRIES["differential"],
    "DIFF, head norm with gain": changed(gain=True),
    "DIFF, no head norm": changed(norm=False),
    "DIFF, λ starts at 0.8": changed(start=0.8),
    "DIFF, λ starts at 0.5": changed(start=0.5),
}
AGAINST = {name: "DIFF" if "DIFF, " in name else "half the heads" for name in ROWS}
TASK = "retrieval"


def run(row: str, seed: Sequence[int], budget: int) -> list[dict[str, float | None]]:
    """Train one row of the table on the retrieval task, and measure it with `runs.measure`.

    Raises:
        ValueError: if the row is unknown, or a seed or the number of steps is out of range.
    """
    entry = ROWS[require.choice("row", row, ROWS)]
    return runs.measure(
        entry, TASK, require.integers("seed", seed, 0), require.integer("budget", budget, 1)
    )


def table() -> pd.DataFrame:
    """Read the runs of `data/ablations.csv`, with the columns of `comparison.table`."""
    return comparison.with_longer(
        data.table("ablations").rename(columns={"row": "entry"}).assign(task=TASK)
    )


def judged(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare each row of the ablations with its reference (`AGAINST`).

    The result is that of `comparison.compare`, together with the median number of steps to the
    criterion.
    """
    rows = table() if rows is None else rows
    verdicts = comparison.compare(rows, against=AGAINST).set_index("entry")
    return verdicts.assign(steps=rows.groupby("entry").steps.median()).loc[list(ROWS)]
