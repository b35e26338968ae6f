"""Table 6 of Ye et al. (2025) in the race's decoders: heads, the norm of the heads and its gain, where lambda starts.

python -m course.experiments.ablations --out data/ablations.csv

Decisions, written down before the runs: the race's criterion, budget, seeds, margin and test; Holm's correction over
the rows; each row against the one that differs in one thing (`AGAINST`).
"""

import argparse
from collections.abc import Sequence
from functools import partial

import pandas as pd
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from course.experiments import comparison, entries, protocol, runs, sweep
from course.experiments.entries import Differential, Entry
from helpers import data, differential, require
from helpers.transformer import Block


class Normed(Block):
    """Softmax heads, each divided by its root mean square."""

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        heads = super().mix(x)
        return functional.rms_norm(heads, heads.shape[-1:], eps=differential.EPSILON)


def changed(**inner: object) -> Entry:
    """Differential attention with other settings of `DifferentialAttention`."""
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
    """What `runs.measure` finds for a row of the table, at retrieval.

    Raises:
        ValueError: unknown row, or a seed or a number of steps out of range.
    """
    entry = ROWS[require.choice("row", row, ROWS)]
    return runs.measure(entry, TASK, require.integers("seed", seed, 0), require.integer("budget", budget, 1))


def table() -> pd.DataFrame:
    """The runs of `data/ablations.csv`, with the columns of `comparison.table`."""
    return comparison.with_longer(data.table("ablations").rename(columns={"row": "entry"}).assign(task=TASK))


def judged(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Each row against its own reference, as `comparison.compare` does, with the median steps to the criterion."""
    rows = table() if rows is None else rows
    found = comparison.compare(rows, against=AGAINST).set_index("entry")
    return found.assign(steps=rows.groupby("entry").steps.median()).loc[list(ROWS)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m course.experiments.ablations", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=protocol.BUDGET["seeds"])
    parser.add_argument(
        "--steps", type=int, default=protocol.BUDGET["steps"], help="the most a run may take to the criterion"
    )
    sweep.options(parser)
    chosen = parser.parse_args(arguments)
    settings = sweep.grid(row=ROWS, seed=range(chosen.seeds), budget=[chosen.steps])
    sweep.run_line(parser, arguments, run, settings, sweep.notes("ablations", TASK=TASK), together="seed")


if __name__ == "__main__":
    main()
