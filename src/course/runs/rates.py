"""Compare the entries of the race at three learning rates, and at the best rate of each entry.

The rules are in `protocol.py` (RATES). We wrote them down before the runs. The best rate is chosen
at the trained length only, so that the scores at longer lengths remain a test.
"""

import math

import pandas as pd

from course.runs import comparison
from course.runs.protocol import BUDGET, CELL, KEPT, LENGTHS, RATES, STILL
from helpers import data

ENOUGH_SEEDS, ENOUGH_RATES = 3, 2  # with fewer, there is no best rate
LONGEST = f"score_{LENGTHS[-1]}"


def by_rate() -> pd.DataFrame:
    """Summarise the runs of `data/race_plateau.csv` for each task, entry and learning rate.

    The columns are those of `comparison.plateaus`.
    """
    rates = sorted(data.table("race_plateau").rate.unique())
    cells = pd.concat({rate: comparison.plateaus(rate) for rate in rates}, names=["rate"])
    return cells.reorder_levels(["task", "entry", "rate"]).sort_index()


def best(cells: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the results of each entry on each task at its best learning rate.

    The best rate is the one at which the largest fraction of runs learned. In a tie, it is the rate
    with the fewest steps to the criterion, where a run that has not learned counts with all of its
    steps. Only entries with at least `ENOUGH_RATES` rates of `ENOUGH_SEEDS` seeds are returned,
    because the results of other entries hold at one learning rate only.

    Args:
        cells: the results by rate, as `by_rate` returns them.

    Returns:
        One row per task and entry, with the columns of `cells`, the best rate, and the number of
            rates that were run (`rates`).
    """
    cells = by_rate() if cells is None else cells
    cells = cells[cells.runs >= ENOUGH_SEEDS].reset_index()
    cells["rates"] = cells.groupby(["task", "entry"]).rate.transform("nunique")
    cells = cells[cells.rates >= ENOUGH_RATES].assign(fraction=cells.learned / cells.runs)
    cells["other"] = cells.rate != BUDGET["rate"]
    order = cells.sort_values(["fraction", "price", "other"], ascending=[False, True, True])
    return order.groupby(["task", "entry"], sort=False).first().drop(columns=["fraction", "other"])


def learns(task: str, entry: str, cells: pd.DataFrame | None = None) -> str:
    """Decide whether an entry learns a task, by the rules of the protocol.

    Returns:
        "learns", "does not learn" (if all of `RATES` were run), or "not learned at" with the rates
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
    """Decide whether the ranking of two entries depends on the learning rate.

    We compare the accuracies of the two entries at the longest length, at each rate that was run
    for both.

    Returns:
        "stands at every rate", "depends on the rate" or "inconclusive", by the rules of the
            protocol, or "not run" if fewer than two rates were run for both.
    """
    cells = by_rate() if cells is None else cells
    right = cells[LONGEST].sort_index()
    pair = pd.DataFrame({name: right.loc[(task, name)] for name in (entry, other)}).dropna()
    gaps = (pair[entry] - pair[other]).tolist()
    if len(gaps) < ENOUGH_RATES:
        return "not run"
    if all(gap >= STILL for gap in gaps) or all(gap <= -STILL for gap in gaps):
        return "stands at every rate"
    return "depends on the rate" if min(gaps) <= -STILL and max(gaps) >= STILL else "inconclusive"


def goes_far(task: str, entry: str, cells: pd.DataFrame | None = None) -> str:
    """Decide whether an entry still solves a task at the longest length, at its best rate.

    The task is solved if at least a fraction `KEPT` of the answers is right.

    Returns:
        "yes" or "no" if the answer is the same when the runs first meet the criterion and at the
            end of the training, and otherwise "at the first touch only" or "at the end only".
    """
    cell = best(cells).loc[(task, entry)]
    touch, end = (bool(cell[f"{when}_{LENGTHS[-1]}"] >= KEPT) for when in ("first", "score"))
    if touch == end:
        return "yes" if touch else "no"
    return "at the first touch only" if touch else "at the end only"


def price() -> pd.DataFrame:
    """Return how many steps retrieval takes to learn, for each number of pairs and learning rate.

    Returns:
        One row per entry and trained number of pairs. The rows for 128 pairs also use
            `data/race_seen.csv`.
        "steps at" with a rate: the mean number of steps over the runs that learned, or missing if
            none did.
        "learned at" with a rate: how many runs learned, for example "2 of 3".
        `rate`: the better rate by the rule of `best`, or missing if only one rate was run.
        `used`: the rate to which the columns `steps` and `learned` belong.
    """
    long = data.table("race_seen").assign(trained=LENGTHS[-1], rate=BUDGET["rate"])
    long["entry"] = long.entry.str.removesuffix(f", trained to {LENGTHS[-1]}")
    runs = pd.concat([data.table("race_price"), long])
    # of two equal runs, keep the longer one
    runs = runs.drop_duplicates(["entry", "trained", "rate", "seed"])
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
