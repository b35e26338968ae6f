"""The race's table and its statistics: entries compared seed by seed, and verdicts by the
protocol's rules.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from course.evidence import significance
from course.runs.entries import BASELINE, CONTROLS, ENTRIES, HYPOTHESES, NAMED, OUTSIDE, REMEDIES
from course.runs.protocol import (
    ASKED,
    BUDGET,
    CELL,
    EQUAL,
    FAR,
    KEPT,
    LENGTHS,
    LEVEL,
    LONGER,
    LOOKED,
    MARGIN,
    NO_ROOM,
    SHARP,
    STILL,
    TASKS,
)
from helpers import data, require, style


def table() -> pd.DataFrame:
    """Read the runs of `data/race.csv`, with the mean score and the mean log odds at the longer
    lengths.
    """
    return with_longer(data.table("race"))


def own_entries(folder: str | Path = ".") -> pd.DataFrame | None:
    """Read rows of `race.enter` that were kept as `my-*.json` in a folder, for the pictures; None
    where there are none.
    """
    tables = [
        pd.read_json(path)
        for path in sorted(Path(folder).glob("my-*.json"))
        if path.name != "my-notes.json"
    ]
    return with_longer(pd.concat(tables)) if tables else None


def with_longer(rows: pd.DataFrame) -> pd.DataFrame:
    """Add columns `longer` and `odds`: the mean score, and the mean log odds of a right answer,
    beyond the trained length.

    Log odds of k right of n: log((k + 1/2) / (n - k + 1/2)), finite where all are right.
    """
    questions = rows.task.map(ASKED)
    odds = [
        np.log((rows[column] * questions + 0.5) / ((1 - rows[column]) * questions + 0.5))
        for column in LONGER
        if column in rows
    ]
    return rows.assign(longer=rows[LONGER].mean(axis=1), odds=sum(odds) / len(odds))


def ceiling(task: str) -> float:
    """Return the log odds of an entry that makes no mistake.

    >>> round(ceiling("retrieval"), 2)
    6.24
    """
    return math.log(2 * ASKED[task] + 1)


def verdict(gap: Sequence[float], p: float, room: float = math.inf) -> str:
    """Say what paired gaps with a corrected p value show, by the protocol's decisions.

    Args:
        room: how far the reference is from an entry that makes no mistake.

    >>> runs = [2.0, 2.1, 1.9], [0.1, 0.0, 0.1], [3.0, -2.0, 1.0]
    >>> tuple(map(verdict, runs, (0.01, 0.5, 0.9)))
    ('better', 'equal within 1.25', 'not told apart')
    >>> verdict([0.1, 0.0, 0.1], 0.5, room=0.1)
    'no room'
    """
    mean, low, high = significance.interval(gap, 1 - 2 * LEVEL)
    if -MARGIN < low and high < MARGIN:
        return EQUAL if room >= MARGIN else NO_ROOM
    if p < LEVEL:
        return "better" if mean > 0 else "worse"
    return "not told apart" if room >= MARGIN else NO_ROOM


def able(rows: pd.DataFrame) -> pd.Series:
    """Return, by task and entry, whether the cell has learned: `CELL` of its seeds."""
    learned = rows.groupby(["task", "entry"]).learned
    return learned.sum() >= CELL * learned.size()


def compare(
    rows: pd.DataFrame, column: str = "odds", against: str | Mapping[str, str] | None = BASELINE
) -> pd.DataFrame:
    """Compare every entry with one, task by task, paired over the seeds that learned with both;
    with Holm's correction in a task.

    Args:
        rows: as `table` gives them.
        column: what is compared.
        against: an entry, a mapping from each entry to its own, or None for the reference of each.

    Returns:
        a row for each entry and task: seeds that learned and seeds in all; mean, low, high (95 %
        interval) of those that learned, in the share right; gap of the column and its own 90 %
        interval, which the rule for "equal" asks; p (corrected); verdict, one of `VERDICTS`, or
        "baseline", "control" or "outside".

    Raises:
        ValueError: `against` or `column` is not in the table.
    """
    if isinstance(against, str):
        require.choice("against", against, list(rows.entry.unique()))
        against = dict.fromkeys(rows.entry, against)
    elif against is None:
        against = {
            name: ENTRIES[name].reference if name in ENTRIES else BASELINE
            for name in rows.entry.unique()
        }
    require.choice("column", column, list(rows.columns))
    rows = rows[rows[column].notna()]
    every, compared = able(rows), []
    for task in [t for t in TASKS if t in set(rows.task)]:
        runs_of_task, cells = rows[rows.task == task], every[task]
        names = list(runs_of_task.entry.unique())
        count = runs_of_task.groupby("entry").learned.agg(["sum", "size"])
        wide = runs_of_task[runs_of_task.learned == 1].pivot(
            index="seed", columns="entry", values=column
        )
        share = runs_of_task[runs_of_task.learned == 1].pivot(
            index="seed", columns="entry", values="longer" if column == "odds" else column
        )
        gaps, rooms, part = {}, {}, []
        for name in names:
            reference = against[name]
            row = {
                "task": task,
                "entry": name,
                "learned": int(count["sum"][name]),
                "seeds": int(count["size"][name]),
            }
            row |= _interval("mean low high", share[name].dropna()) if cells[name] else {}
            both = (
                wide[[name, reference]].dropna()
                if cells[name] and cells.get(reference) and name != reference
                else []
            )
            if name in CONTROLS or name in OUTSIDE:
                row["verdict"] = "control" if name in CONTROLS else "outside"
            elif not cells[name]:
                row["verdict"] = "not learned"
            elif name == reference:
                row["verdict"] = "baseline"
            elif reference not in cells:
                row["verdict"] = "reference not run"
            elif not cells[reference]:
                row["verdict"] = "reference not learned"
            else:
                gaps[name] = (both[name] - both[reference]).tolist()
                rooms[name] = (
                    ceiling(task) - both[reference].mean() if column == "odds" else math.inf
                )
                row |= _interval("gap gap_low gap_high", gaps[name], 1 - 2 * LEVEL)
                row["p"] = significance.paired(both[name], both[reference])
            part.append(row)
        judged = [row for row in part if row["entry"] in gaps]
        for row, p in zip(judged, significance.holm([row["p"] for row in judged]), strict=True):
            row |= {"p": p, "verdict": verdict(gaps[row["entry"]], p, rooms[row["entry"]])}
        compared += part
    columns = [
        "task",
        "entry",
        "learned",
        "seeds",
        "mean",
        "low",
        "high",
        "gap",
        "gap_low",
        "gap_high",
        "p",
        "verdict",
    ]
    return pd.DataFrame(compared).reindex(columns=columns)


def _interval(names: str, values: Sequence[float], confidence: float = 0.95) -> dict[str, float]:
    return dict(zip(names.split(), significance.interval(values, confidence), strict=True))


def successes(rows: pd.DataFrame) -> pd.DataFrame:
    """Answer two questions for each remedy and task: is it right there, and is it better than what
    it is made of?

    Returns:
        a row for each entry and task that was run: verdict against RoPE (rope) and against the
        decoder without the one ingredient (verdict); share right at the longest length with its 95
        % interval (right, low, high), and the best head's; kept: learned and right in `KEPT`;
        success: kept by attention that keeps to the answer, which is known for the tasks of
        `LOOKED` alone; to: the longest length kept (`reach`); opens: a success that is better than
        the decoder without the ingredient, or keeps the task to a longer length. A page asks it of
        one table many times: it is answered once.
    """
    key = (*rows.columns, hashlib.sha256(pd.util.hash_pandas_object(rows).to_numpy()).digest())
    if key not in _ANSWERED:
        _ANSWERED[key] = _successes(rows)
    return _ANSWERED[key].copy()


_ANSWERED: dict[tuple, pd.DataFrame] = {}


def _successes(rows: pd.DataFrame) -> pd.DataFrame:
    compared = compare(rows, against=None)
    compared = compared[compared.entry.isin(REMEDIES)].set_index(["entry", "task"])
    rope = compare(rows).set_index(["entry", "task"]).verdict.rename("rope")
    learned = rows[rows.learned == 1].groupby(["entry", "task"])
    right = (
        learned[f"score_{LENGTHS[-1]}"]
        .apply(lambda part: pd.Series(_interval("right low high", part)))
        .unstack()
    )
    best = learned[f"best_{LENGTHS[-1]}"].mean().rename("best")
    result = compared[["verdict", "learned", "seeds"]].join(rope).join(right).join(best)
    result["kept"] = (result.verdict != "not learned") & (result.right >= KEPT)
    result["success"] = result.kept & (result.best > SHARP)
    result["to"] = [reach(rows, name, task) for name, task in result.index]
    theirs = {key: ENTRIES[key[0]].reference for key in result.index}
    result["longer"] = [
        result.to[key] > result.to.get((theirs[key], key[1]), math.inf) for key in result.index
    ]
    gains = result.verdict.isin(["better", "reference not learned"]) | (result.kept & result.longer)
    result["opens"] = result.success & gains
    return result.reset_index()


@cache
def _further() -> pd.DataFrame:
    return data.table("race_far")


def reach(rows: pd.DataFrame, entry: str, task: str) -> int:
    """Return the longest tested length up to which the runs that learned are right in `KEPT` of the
    answers, on average.

    Lengths beyond the longest of `LENGTHS` come from `data/race_far.csv`, for the entries that it
    has. 0 means that an entry is not right even at the trained length.
    """
    reached = 0
    for table, lengths in ((rows, LENGTHS), (_further(), FAR)):
        runs = table[(table.task == task) & (table.entry == entry) & (table.learned == 1)]
        for n in lengths:
            if not runs[f"score_{n}"].mean() >= KEPT:
                return reached
            reached = n
    return reached


def stays(values: Sequence[float]) -> str:
    """Say whether runs stay right, by the protocol: in the mean and at the low end of its 95 %
    interval, or in the mean alone.

    >>> stays([0.99, 1.0, 0.98]), stays([0.8, 1.0, 0.95]), stays([0.5, 0.9])
    ('stays right', 'at the bound', 'falls')
    """
    mean, low, _ = significance.interval(values)
    if mean < KEPT:
        return "falls"
    return "stays right" if low >= KEPT else "at the bound"


def plateaus(rate: float = BUDGET["rate"]) -> pd.DataFrame:
    """Average the cells of `data/race_plateau.csv` at a learning rate: right at the first touch,
    and after all steps.

    Both stops are told of one population, the runs that touched the criterion. A run that never
    learned says nothing of what a design keeps, and would make a cell that only rises look as if it
    fell.

    Returns:
        by task and entry: runs, how many touched the criterion (learned) and after how many steps
        on average; price, the mean steps with all of the budget for a run that has not; state:
        "plateau", "still rising" or "not told", at the trained length and at the longest of
        `LENGTHS`, by the last two thirds of the steps; stays: `stays` after all steps, at the
        longest length that was asked; first_n and score_n of the runs that learned, none where not
        all of these were asked: means.

    >>> plateaus().loc[("recall", "NoPE, stick-breaking"), ["runs", "learned"]].tolist()
    [8, 5]
    """
    summaries, table = {}, data.table("race_plateau")
    for cell, runs in table[table.rate == rate].groupby(["task", "entry"], sort=False):
        able = runs[runs.learned == 1]
        summaries[cell] = {
            "runs": len(runs),
            "learned": len(able),
            "steps": able.steps.mean(),
            "price": runs.steps.mean(),
        }
        summaries[cell] |= {
            "state": _state(able if len(able) > 1 else runs),
            "stays": "not learned",
        }
        scores = able.filter(regex="^score_")
        if len(able):
            summaries[cell]["stays"] = stays(scores.dropna(axis=1).iloc[:, -1])
        for part in (scores, able.filter(regex="^first_")):
            summaries[cell] |= part.mean(skipna=False).to_dict()
    return pd.DataFrame(summaries).T.infer_objects().rename_axis(["task", "entry"])


def _state(runs: pd.DataFrame) -> str:
    """Say whether right answers still rise over the last two thirds of the steps, at the trained
    length or beyond.
    """
    moves = [
        (runs[f"{at}_5"] + runs[f"{at}_6"] - runs[f"{at}_3"] - runs[f"{at}_4"]) / 2
        for at in ("inside", "out")
    ]
    ends = [significance.interval(move, 1 - 2 * LEVEL)[1:] for move in moves]
    if all(-STILL < low and high < STILL for low, high in ends):
        return "plateau"
    return "still rising" if any(low > STILL for low, _ in ends) else "not told"


def all_kept(rows: pd.DataFrame, tasks: Sequence[str] = LOOKED) -> list[str]:
    """List the remedies that succeed at all of some tasks, the one with fewest mistakes first."""
    won = successes(rows)
    won = won[won.task.isin(tasks)].groupby("entry").agg({"success": ["sum"], "right": ["mean"]})
    won.columns = ["tasks", "right"]
    return list(won[won.tasks == len(tasks)].sort_values("right", ascending=False).index)


def noises(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare the two noises of the differential entries at retrieval, in layer 1, whose first map
    looks at the answer most in all.

    Returns:
        a row an entry that learned: the layer; cosine, what it needs, the share of heads and
        questions that have it, what the subtraction multiplies by: the noise (left), the answer,
        and signal over noise (gain) with its 95 % interval over seeds (low, high): means over
        seeds.
    """
    rows = table() if rows is None else rows
    by_entry = {}
    for name in HYPOTHESES["H4"][1]:
        runs = rows[(rows.task == "retrieval") & (rows.entry == name) & (rows.learned == 1)]
        if len(runs) < 2:
            continue
        means = {
            what: float(runs[f"{what}_1"].mean()) for what in ("cosine", "needed", "agree", "left")
        }
        means["answer"] = float((runs.gain_1 * runs.left_1).mean())
        by_entry[name] = {"layer": 1} | means | _interval("gain low high", runs.gain_1)
    return pd.DataFrame(by_entry).T.rename_axis("entry")


def rank_correlation(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", without: Sequence[str] = ()
) -> tuple[float, float]:
    """Compute Spearman's correlation, over the remedies, of a share ("answer" or "noise") and the
    score at the longest length; and its p value.

    The p value takes the entries for independent, and most of them are changes of one baseline: it
    is too small.

    Raises:
        ValueError: share is neither of the two.
    """
    require.choice("share", share, ["answer", "noise"])
    names = [name for name in REMEDIES if name not in without]
    by_entry = rows[(rows.task == task) & rows.entry.isin(names) & (rows.learned == 1)].groupby(
        "entry"
    )
    means = by_entry[[f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    return significance.rank_correlation(means.iloc[:, 0], means.iloc[:, 1])


def _looked_at(rows: pd.DataFrame, task: str, share: str) -> pd.DataFrame:
    """Return the runs of remedies that learned a task: entry, a share of the attention, and right
    at the longest length.
    """
    runs = rows[(rows.task == task) & rows.entry.isin(REMEDIES) & (rows.learned == 1)]
    return runs[["entry", f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].set_axis(
        ["entry", "share", "right"], axis=1
    )


def shuffled_correlations(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", draws: int = 200
) -> tuple[float, float]:
    """Return the median and the 95% quantile of `rank_correlation` where runs are shuffled over the
    remedies.

    In such groups no remedy differs from another. Whatever correlation their means have is one of
    runs.
    """
    runs, generator, coefficients = _looked_at(rows, task, share), np.random.default_rng(0), []
    for _ in range(draws):
        means = (
            runs.assign(entry=generator.permutation(runs.entry))
            .groupby("entry")[["share", "right"]]
            .mean()
        )
        coefficients.append(significance.rank_correlation(means.share, means.right)[0])
    return tuple(float(x) for x in np.quantile(coefficients, [0.5, 0.95]))


def correlation_of_runs(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer"
) -> tuple[float, float, float]:
    """Return the rank correlation over the seeds of one remedy: the mean over remedies, with its
    95% interval.
    """
    runs = _looked_at(rows, task, share).groupby("entry").filter(lambda part: len(part) >= 5)
    by_remedy = [
        significance.rank_correlation(part.share, part.right)[0]
        for _, part in runs.groupby("entry")
    ]
    return significance.interval(by_remedy)


def learned(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the runs of a task that learned, of the entries that did and are no controls."""
    able_entries = able(rows)[task]
    names = set(able_entries.index[able_entries]) - set(CONTROLS)
    return rows[(rows.task == task) & (rows.learned == 1) & rows.entry.isin(names)]


def correlations(rows: pd.DataFrame, task: str = "retrieval") -> str:
    """Say how the shares go with accuracy at the longest length: on the answer, without the two
    best entries, on noise.
    """
    best = learned(rows, task).groupby("entry")[f"score_{LENGTHS[-1]}"]
    two = best.mean().nlargest(2).index
    by_label = {
        f"share on the answer, {best.ngroups} remedies": rank_correlation(rows, task),
        f"without {two[0]} and {two[1]}": rank_correlation(rows, task, without=two),
        "share on noise": rank_correlation(rows, task, "noise"),
    }
    return ", ".join(
        f"{name} {style.number(rho)} (p = {style.number(p)})" for name, (rho, p) in by_label.items()
    )


def judge(rows: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Return, for each hypothesis and task, "holds" with the entries that open it, "does not hold
    here", or "not decided".
    """
    won = successes(rows).set_index(["task", "entry"])
    tasks = [task for task in LOOKED if task in set(rows.task)]
    return {
        key: {task: _held(won, task, names) for task in tasks}
        for key, (_, names) in HYPOTHESES.items()
    }


def _held(won: pd.DataFrame, task: str, names: list[str]) -> str:
    judged = won.loc[[(task, name) for name in names if (task, name) in won.index]].droplevel(
        "task"
    )
    if not len(judged):
        return "not run"
    if judged.opens.any():
        return f"holds: {'; '.join(map(_named, judged.index[judged.opens]))}"
    if judged.success.any():
        missing = (judged.verdict[judged.success] == "reference not run").all()
        ingredients = "what it is made of was not run" if missing else "so is what it is made of"
        return f"right, and {ingredients}: {'; '.join(map(_named, judged.index[judged.success]))}"
    absent = [name for name in names if name not in judged.index]
    if (judged.verdict == "not learned").all():
        return "not decided: none has learned" + (
            f"; not run: {'; '.join(absent)}" if absent else ""
        )
    return "does not hold here"


def all_positions_seen(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare retrieval of decoders trained to 16 pairs and to 128: what is left when all positions
    have been seen.

    Returns:
        by entry: right at 128 and the best head's share there, trained to 16 and to 128.
    """
    table = data.table("race_seen")
    names = [
        name
        for name in NAMED
        if any(entry_name.startswith(f"{name}, trained") for entry_name in table.entry)
    ]
    by_entry = {}
    for name in names:
        short = rows[(rows.task == "retrieval") & (rows.entry == name) & (rows.learned == 1)]
        long = table[(table.entry == f"{name}, trained to {LENGTHS[-1]}")]
        columns = [f"score_{LENGTHS[-1]}", f"best_{LENGTHS[-1]}"]
        by_entry[name] = [
            *short[columns].mean(),
            *long[columns].mean(),
            f"{long.learned.sum()} of {len(long)}",
        ]
    heads = [
        "right, trained to 16",
        "best head",
        f"right, trained to {LENGTHS[-1]}",
        "best head ",
        "learned",
    ]
    return pd.DataFrame.from_dict(by_entry, "index", columns=heads).rename_axis("entry")


def _named(name: str) -> str:
    """Name an entry, and what else it changes."""
    two = ENTRIES[name].two
    return f"{name} (also {two})" if two else name
