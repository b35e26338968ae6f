"""The benchmark at three learning rates: what each cell says at each rate, and at its best one.

The rules stand in `protocol.py` (RATES), written down before the runs. The best rate of a cell is
chosen on the trained length only, so that the scores at longer lengths stay a test.
"""

import math

import pandas as pd

from course.runs import comparison
from course.runs.protocol import BUDGET, CELL, KEPT, LENGTHS, RATES, STILL
from helpers import data

ENOUGH_SEEDS, ENOUGH_RATES = 3, 2  # a cell with fewer has no best rate
LONGEST = f"score_{LENGTHS[-1]}"


def by_rate() -> pd.DataFrame:
    """Return the cells of `data/race_plateau.csv`, by task, entry and rate, with the columns of
    `comparison.plateaus`.
    """
    rates = sorted(data.table("race_plateau").rate.unique())
    cells = pd.concat({rate: comparison.plateaus(rate) for rate in rates}, names=["rate"])
    return cells.reorder_levels(["task", "entry", "rate"]).sort_index()


def best(cells: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return each task's and entry's cell at its best rate, with the columns `rate` and `rates`
    (how many were run).

    The best rate has the largest fraction of runs that learned, then the fewest steps to the first
    touch, where a run that has not learned counts all of its steps. A cell with fewer than
    `ENOUGH_RATES` rates of `ENOUGH_SEEDS` seeds is left out: what is said of it holds at one
    learning rate.

    Args:
        cells: as `by_rate` gives them.
    """
    cells = by_rate() if cells is None else cells
    cells = cells[cells.runs >= ENOUGH_SEEDS].reset_index()
    cells["rates"] = cells.groupby(["task", "entry"]).rate.transform("nunique")
    cells = cells[cells.rates >= ENOUGH_RATES].assign(fraction=cells.learned / cells.runs)
    cells["other"] = cells.rate != BUDGET["rate"]
    order = cells.sort_values(["fraction", "price", "other"], ascending=[False, True, True])
    return order.groupby(["task", "entry"], sort=False).first().drop(columns=["fraction", "other"])


def learns(task: str, entry: str, cells: pd.DataFrame | None = None) -> str:
    """Say whether an entry learns a task, by the protocol: at its best rate, at none of all rates,
    or not known.

    Returns:
        "learns", "does not learn" (all of `RATES` were run), or "not learned at" with the rates
        that were run.
    """
    cells = by_rate() if cells is None else cells
    of_entry = cells.loc[(task, entry)]
    if (of_entry.learned >= CELL * of_entry.runs).any():
        return "learns"
    if set(RATES) <= set(of_entry.index):
        return "does not learn"
    return f"not learned at {', '.join(map(str, of_entry.index))}"


def order(task: str, entry: str, other: str, cells: pd.DataFrame | None = None) -> str:
    """Say whether an entry is more often right at the longest length than another, at each rate
    that both ran.

    Returns:
        "stands at every rate", "hangs on the rate", or "not told apart", by the protocol; "not run"
        without two rates.
    """
    cells = by_rate() if cells is None else cells
    right = cells[LONGEST].sort_index()
    pair = pd.DataFrame({name: right.loc[(task, name)] for name in (entry, other)}).dropna()
    gaps = (pair[entry] - pair[other]).tolist()
    if len(gaps) < ENOUGH_RATES:
        return "not run"
    if all(gap >= STILL for gap in gaps) or all(gap <= -STILL for gap in gaps):
        return "stands at every rate"
    return "hangs on the rate" if min(gaps) <= -STILL and max(gaps) >= STILL else "not told apart"


def goes_far(task: str, entry: str, cells: pd.DataFrame | None = None) -> str:
    """Say whether an entry is right in `KEPT` at the longest length at its best rate: "yes", "no",
    or at which stop only.
    """
    cell = best(cells).loc[(task, entry)]
    touch, end = (bool(cell[f"{when}_{LENGTHS[-1]}"] >= KEPT) for when in ("first", "score"))
    if touch == end:
        return "yes" if touch else "no"
    return "at the first touch only" if touch else "at the end only"


def price() -> pd.DataFrame:
    """Return what it takes to learn retrieval with so many pairs, at each rate and at the better
    one.

    Returns:
        by entry and trained length (128 pairs from `data/race_seen.csv`, too): at each rate "steps
        at" (the mean of the runs that learned, none without one) and "learned at" ("2 of 3"); rate,
        the better one by the rule of `best`, none where one was run; used, the one that steps and
        learned are of.
    """
    long = data.table("race_seen").assign(trained=LENGTHS[-1], rate=BUDGET["rate"])
    long["entry"] = long.entry.str.removesuffix(f", trained to {LENGTHS[-1]}")
    runs = pd.concat([data.table("race_price"), long])
    runs = runs.drop_duplicates(["entry", "trained", "rate", "seed"])  # of two the longer run
    by_cell = {}
    for cell, runs_of_cell in runs.groupby(["entry", "trained"], sort=False):
        row, ranked = {}, []
        for rate, part in runs_of_cell.groupby("rate"):
            steps = part.steps[part.learned == 1].mean()
            row[f"steps at {rate}"] = steps
            row[f"learned at {rate}"] = f"{part.learned.sum()} of {len(part)}"
            ranked.append((-part.learned.mean(), part.steps.mean(), rate, steps))
        _, _, rate, steps = min(ranked)
        better = rate if len(ranked) >= ENOUGH_RATES else math.nan
        by_cell[cell] = row | {
            "rate": better,
            "used": rate,
            "steps": steps,
            "learned": row[f"learned at {rate}"],
        }
    return pd.DataFrame(by_cell).T.rename_axis(["entry", "trained"])
