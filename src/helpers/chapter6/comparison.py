"""The race's table and its statistics: entries compared seed by seed, and verdicts by the protocol's rules."""

from collections.abc import Mapping, Sequence

import pandas as pd

from helpers import data, require, significance
from helpers.chapter6.entries import BASELINE, CONTROLS, ENTRIES, HYPOTHESES, REMEDIES
from helpers.chapter6.protocol import CELL, EQUAL, KEPT, LENGTHS, LEVEL, LONGER, MARGIN, SHARP, TASKS


def table() -> pd.DataFrame:
    """The runs of `data/race.csv`, with the mean score at the longer lengths."""
    return with_longer(data.table("race"))


def with_longer(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column `longer`: the mean score at all lengths beyond the trained one."""
    return rows.assign(longer=rows[LONGER].mean(axis=1))


def verdict(gap: Sequence[float], p: float) -> str:
    """What is said of paired gaps with a corrected p value, by the decisions above.

    >>> verdict([0.2, 0.21, 0.19], 0.01), verdict([0.01, 0.0, 0.01], 0.5), verdict([0.3, -0.2, 0.1], 0.9)
    ('better', 'equal within 0.05', 'not told apart')
    """
    mean, low, high = significance.interval(gap, 1 - 2 * LEVEL)
    if -MARGIN < low and high < MARGIN:
        return EQUAL
    if p < LEVEL:
        return "better" if mean > 0 else "worse"
    return "not told apart"


def able(rows: pd.DataFrame) -> pd.Series:
    """By task and entry, whether the cell has learned: `CELL` of its seeds."""
    learned = rows.groupby(["task", "entry"]).learned
    return learned.sum() >= CELL * learned.size()


def compare(
    rows: pd.DataFrame, column: str = "longer", against: str | Mapping[str, str] | None = BASELINE
) -> pd.DataFrame:
    """Every entry against one, task by task, paired over the seeds that learned with both; Holm's correction in a task.

    Args:
        rows: as `table` gives them.
        column: what is compared.
        against: an entry, a mapping from each entry to its own, or None for the reference of each.

    Returns:
        a row for each entry and task: seeds that learned and seeds in all; mean, low, high (95 % interval) of those that
        learned; gap and its own 90 % interval, which the rule for "equal" asks; p (corrected); verdict, one of `VERDICTS`, or "baseline" or "control".

    Raises:
        ValueError: `against` or `column` is not in the table.
    """
    if isinstance(against, str):
        require.choice("against", against, list(rows.entry.unique()))
        against = dict.fromkeys(rows.entry, against)
    elif against is None:
        against = {name: ENTRIES[name].reference if name in ENTRIES else BASELINE for name in rows.entry.unique()}
    require.choice("column", column, list(rows.columns))
    rows = rows[rows[column].notna()]
    every, found = able(rows), []
    for task in [t for t in TASKS if t in set(rows.task)]:
        here, cells = rows[rows.task == task], every[task]
        names = list(here.entry.unique())
        count = here.groupby("entry").learned.agg(["sum", "size"])
        wide = here[here.learned == 1].pivot(index="seed", columns="entry", values=column)
        gaps, part = {}, []
        for name in names:
            other = against[name]
            row = {"task": task, "entry": name, "learned": int(count["sum"][name]), "seeds": int(count["size"][name])}
            row |= _interval("mean low high", wide[name].dropna()) if cells[name] else {}
            both = wide[[name, other]].dropna() if cells[name] and cells.get(other) and name != other else []
            if name in CONTROLS:
                row["verdict"] = "control"
            elif not cells[name]:
                row["verdict"] = "not learned"
            elif name == other:
                row["verdict"] = "baseline"
            elif not cells.get(other):
                row["verdict"] = "reference not learned"
            else:
                gaps[name] = (both[name] - both[other]).tolist()
                row |= _interval("gap gap_low gap_high", gaps[name], 1 - 2 * LEVEL)
                row["p"] = significance.paired(both[name], both[other])
            part.append(row)
        judged = [row for row in part if row["entry"] in gaps]
        for row, p in zip(judged, significance.holm([row["p"] for row in judged]), strict=True):
            row |= {"p": p, "verdict": verdict(gaps[row["entry"]], p)}
        found += part
    columns = ["task", "entry", "learned", "seeds", "mean", "low", "high", "gap", "gap_low", "gap_high", "p", "verdict"]
    return pd.DataFrame(found).reindex(columns=columns)


def _interval(names: str, values: Sequence[float], confidence: float = 0.95) -> dict[str, float]:
    return dict(zip(names.split(), significance.interval(values, confidence), strict=True))


def successes(rows: pd.DataFrame) -> pd.DataFrame:
    """For each remedy and task: does it keep the task, and does it do so by attention that keeps to the answer?

    A task is kept by a cell that has learned, is right in `KEPT` at the longest length, and is better beyond the trained
    length than the entry without this remedy (or that one has not learned). It is a success if the best head gives the
    answer more than `SHARP` of the attention there, which is known for the tasks of `LOOKED` alone.

    Returns:
        a row for each entry and task: verdict (against the own reference), right, best, kept, success.
    """
    found = compare(rows, against=None)
    found = found[found.entry.isin(REMEDIES)].set_index(["entry", "task"])
    means = rows[rows.learned == 1].groupby(["entry", "task"])[[f"score_{LENGTHS[-1]}", f"best_{LENGTHS[-1]}"]].mean()
    result = found[["verdict"]].join(means.set_axis(["right", "best"], axis=1))
    result["kept"] = result.verdict.isin(["better", "reference not learned"]) & (result.right >= KEPT)
    result["success"] = result.kept & (result.best > SHARP)
    return result.reset_index()


def noises(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """The two noises of the differential entries at retrieval, in the layer whose first map looks at the answer most.

    Returns:
        a row an entry that learned: the layer; cosine, what it needs, the share of heads and questions that have it, what
        the subtraction multiplies by: the noise (left), the answer, and signal over noise (gain) with its 95 % interval
        over seeds (low, high): means over seeds.
    """
    rows = table() if rows is None else rows
    found = {}
    for name in HYPOTHESES["H4"][1]:
        here = rows[(rows.task == "retrieval") & (rows.entry == name) & (rows.learned == 1)]
        if len(here) < 2:
            continue
        layer = 1 if here.signal_1.mean() > here.signal_2.mean() else 2
        means = {what: float(here[f"{what}_{layer}"].mean()) for what in ("cosine", "needed", "agree", "left")}
        means["answer"] = float((here[f"gain_{layer}"] * here[f"left_{layer}"]).mean())
        found[name] = {"layer": layer} | means | _interval("gain low high", here[f"gain_{layer}"])
    return pd.DataFrame(found).T.rename_axis("entry")


def beside(rows: pd.DataFrame, entry: str, other: str, task: str) -> pd.Series:
    """The row of `compare` for an entry at a task, against another one than its own reference."""
    against = dict.fromkeys(rows.entry, BASELINE) | {entry: other}
    return compare(rows[rows.task == task], against=against).set_index("entry").loc[entry]


def rank_correlation(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", without: Sequence[str] = ()
) -> tuple[float, float]:
    """Spearman's, over the remedies, of a share ("answer" or "noise") and the score at the longest length; and its p value.

    The p value takes the entries for independent, and most of them are changes of one baseline: it is too small.

    Raises:
        ValueError: share is neither of the two.
    """
    require.choice("share", share, ["answer", "noise"])
    names = [name for name in REMEDIES if name not in without]
    here = rows[(rows.task == task) & rows.entry.isin(names) & (rows.learned == 1)].groupby("entry")
    means = here[[f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    return significance.rank_correlation(means.iloc[:, 0], means.iloc[:, 1])
