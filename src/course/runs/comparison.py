"""Compare the entries of the race seed by seed, and give verdicts according to the protocol."""

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
    """Read the runs of `data/race.csv` and add the columns of `with_longer`."""
    return with_longer(data.table("race"))


def own_entries(folder: str | Path = ".") -> pd.DataFrame | None:
    """Read the rows of your own entries (`race.enter`) from the files `my-*.json` of a folder.

    The result is `None` if there are no such files.
    """
    tables = [
        pd.read_json(path)
        for path in sorted(Path(folder).glob("my-*.json"))
        if path.name != "my-notes.json"
    ]
    return with_longer(pd.concat(tables)) if tables else None


def with_longer(rows: pd.DataFrame) -> pd.DataFrame:
    """Add columns for the results beyond the trained length.

    The columns are the mean score (`longer`) and the mean log odds (`odds`). The log odds of k
    right answers among n are log((k + 1/2) / (n - k + 1/2)), which is finite even if all answers
    are right.
    """
    questions = rows.task.map(ASKED)
    odds = [
        np.log((rows[column] * questions + 0.5) / ((1 - rows[column]) * questions + 0.5))
        for column in LONGER
        if column in rows
    ]
    return rows.assign(longer=rows[LONGER].mean(axis=1), odds=sum(odds) / len(odds))


def ceiling(task: str) -> float:
    """Return the largest possible log odds in a task, which are those without any mistake.

    >>> round(ceiling("retrieval"), 2)
    6.24
    """
    return math.log(2 * ASKED[task] + 1)


def verdict(gap: Sequence[float], p: float, room: float = math.inf) -> str:
    """Decide what the paired gaps between an entry and its reference show.

    The rules are those of the protocol.

    Args:
        gap: for each seed, the value of the entry minus the value of its reference.
        p: the corrected p value of the comparison.
        room: the distance between the reference and an entry that makes no mistake. If it is too
            small for an improvement, the verdict is "no room".

    >>> runs = [2.0, 2.1, 1.9], [0.1, 0.0, 0.1], [3.0, -2.0, 1.0]
    >>> tuple(map(verdict, runs, (0.01, 0.5, 0.9)))
    ('better', 'equal within 1.25', 'inconclusive')
    >>> verdict([0.1, 0.0, 0.1], 0.5, room=0.1)
    'no room'
    """
    mean, low, high = significance.interval(gap, 1 - 2 * LEVEL)
    if -MARGIN < low and high < MARGIN:
        return EQUAL if room >= MARGIN else NO_ROOM
    if p < LEVEL:
        return "better" if mean > 0 else "worse"
    return "inconclusive" if room >= MARGIN else NO_ROOM


def able(rows: pd.DataFrame) -> pd.Series:
    """Return for each task and entry whether enough seeds learned the task.

    Enough means at least a fraction `CELL` of the seeds. If too few seeds learned, we do not
    compare the entry at any length.
    """
    learned = rows.groupby(["task", "entry"]).learned
    return learned.sum() >= CELL * learned.size()


def compare(
    rows: pd.DataFrame, column: str = "odds", against: str | Mapping[str, str] | None = BASELINE
) -> pd.DataFrame:
    """Compare every entry with its reference on each task.

    We use only the seeds with which both the entry and its reference learned the task. The
    comparison is paired by seed, and Holm's correction covers all entries on a task.

    Args:
        rows: the runs, as `table` returns them.
        column: the column to compare.
        against: an entry, a mapping from each entry to its own reference, or `None` for the
            reference that each entry names.

    Returns:
        One row for each entry and task. It has the number of seeds that learned and the number of
            all seeds. Over the seeds that learned, it has the mean accuracy with its 95% interval
            (low, high), and the gap in `column` with its 90% interval, which the rule for "equal"
            uses. It also has the corrected p value, and the verdict, which is one of `VERDICTS`,
            "baseline", "control" or "not ranked".

    Raises:
        ValueError: if `against` or `column` is not in the table.
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
                row["verdict"] = "control" if name in CONTROLS else "not ranked"
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
    """Return which remedies solve which tasks, and which are better than their reference.

    A gain alone is not a success. So we ask whether the remedy solves the task beyond the trained
    length, and whether it is better than its reference, the decoder without the remedy's one
    ingredient. The results are cached, because pages use them many times.

    Returns:
        One row for each entry and task that was run, with these columns.
        `verdict`: the verdict against the reference.
        `rope`: the verdict against RoPE.
        `right`, `low`, `high`: the accuracy at the longest length with its 95% interval.
        `best`: the attention weight of the best head on the answer at the longest length.
        `kept`: whether the entry learned, and at least a fraction `KEPT` of its answers at the
            longest length is right.
        `success`: whether `kept` is true and `best` is above `SHARP`. This is known
            only for the tasks in `LOOKED`.
        `to`: the longest length that is solved (`reach`).
        `opens`: whether `success` is true and the entry is better than its reference or solves the
            task at a longer length.
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
    """Return the longest tested length at which an entry still solves a task.

    Only runs that learned count. A length is solved if at least a fraction `KEPT` of the answers is
    right on average, at this length and at all shorter ones. Lengths beyond the longest of
    `LENGTHS` come from `data/race_far.csv`, for the entries in this table. The result is 0 if an
    entry does not solve even the trained length.
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
    """Decide whether the accuracies of several runs stay above the protocol's bound.

    The answer is "stays right" if both the mean and the low end of its 95% interval are above the
    bound, "at the bound" if only the mean is above it, and otherwise "falls".

    >>> stays([0.99, 1.0, 0.98]), stays([0.8, 1.0, 0.95]), stays([0.5, 0.9])
    ('stays right', 'at the bound', 'falls')
    """
    mean, low, _ = significance.interval(values)
    if mean < KEPT:
        return "falls"
    return "stays right" if low >= KEPT else "at the bound"


def plateaus(rate: float = BUDGET["rate"]) -> pd.DataFrame:
    """Summarise the runs of `data/race_plateau.csv` at the criterion and after all steps.

    We average only the runs that met the criterion, so that both moments describe the same runs. A
    run that never learned tells us nothing about how far a design generalises.

    Args:
        rate: the learning rate of the runs to average.

    Returns:
        One row per task and entry, with these columns.
        `runs`, `learned`: the number of runs, and the number of those that met the criterion.
        `steps`: the mean number of steps to the criterion.
        `price`: the mean number of steps, where a run that has not learned counts with its whole
            budget.
        `state`: "plateau", "still rising" or "not told", from the accuracies at the trained length
            and at the longest of `LENGTHS` over the last two thirds of the steps.
        `stays`: the result of the function `stays` after all steps, at the longest tested length.
        `first_n`, `score_n`: the mean accuracy on n tokens at the criterion and after all steps, or
            missing if some of the runs were not tested on n tokens.

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
    """Return in one or two words whether accuracy still rises in the last two thirds of the steps.

    We test both the accuracy at the trained length and the accuracy at the longest length.
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
    """List the remedies that succeed at all given tasks, those with the fewest mistakes first."""
    won = successes(rows)
    won = won[won.task.isin(tasks)].groupby("entry").agg({"success": ["sum"], "right": ["mean"]})
    won.columns = ["tasks", "right"]
    return list(won[won.tasks == len(tasks)].sort_values("right", ascending=False).index)


def noises(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compare the noise of the two attention matrices in each differential entry, on retrieval.

    We look at layer 1, because its first matrix attends to the answer most in all of these entries.

    Returns:
        One row per entry that learned, with means over the seeds.
        `layer`: the layer.
        `cosine`, `needed`: the cosine of the two noises, and the cosine above which a subtraction
            helps.
        `agree`: the fraction of heads and questions whose cosine is above the needed one.
        `left`, `answer`, `gain`: the factors by which the subtraction changes the noise, the answer
            and the signal-to-noise ratio.
        `low`, `high`: the 95% interval of `gain` over the seeds.
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
    """Correlate attention weight with accuracy at the longest length, over the remedies.

    Args:
        share: the attention weight to correlate, on the "answer" or on "noise".
        without: the remedies to leave out.

    Returns:
        Spearman's rank correlation and its p value. The p value is too small, because it assumes
            independent entries, while most entries are changes of one baseline.

    Raises:
        ValueError: if `share` is neither "answer" nor "noise".
    """
    require.choice("share", share, ["answer", "noise"])
    names = [name for name in REMEDIES if name not in without]
    by_entry = rows[(rows.task == task) & rows.entry.isin(names) & (rows.learned == 1)].groupby(
        "entry"
    )
    means = by_entry[[f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    return significance.rank_correlation(means.iloc[:, 0], means.iloc[:, 1])


def _looked_at(rows: pd.DataFrame, task: str, share: str) -> pd.DataFrame:
    """Return the runs of remedies that learned a task, with their attention and their accuracy.

    Both columns are measured at the longest length.
    """
    runs = rows[(rows.task == task) & rows.entry.isin(REMEDIES) & (rows.learned == 1)]
    return runs[["entry", f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].set_axis(
        ["entry", "share", "right"], axis=1
    )


def shuffled_correlations(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", draws: int = 200
) -> tuple[float, float]:
    """Return quantiles of `rank_correlation` after shuffling the runs, as a null control.

    Shuffling replaces the remedies by random groups of runs, so the groups do not differ
    systematically. A correlation that remains comes from the runs, and not from the remedies.

    Returns:
        The median and the 95% quantile over `draws` shuffles.
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
    """Correlate attention with accuracy over the seeds of each remedy, and average the results.

    The correlation is a rank correlation. Remedies with fewer than five runs are left out.

    Returns:
        The mean, and the low and the high end of its 95% interval over the remedies.
    """
    runs = _looked_at(rows, task, share).groupby("entry").filter(lambda part: len(part) >= 5)
    by_remedy = [
        significance.rank_correlation(part.share, part.right)[0]
        for _, part in runs.groupby("entry")
    ]
    return significance.interval(by_remedy)


def learned(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the runs that learned a task, for each remedy with enough such runs.

    Controls are left out. `able` says how many runs are enough.
    """
    able_entries = able(rows)[task]
    names = set(able_entries.index[able_entries]) - set(CONTROLS)
    return rows[(rows.task == task) & (rows.learned == 1) & rows.entry.isin(names)]


def correlations(rows: pd.DataFrame, task: str = "retrieval") -> str:
    """Describe in one sentence how attention correlates with accuracy at the longest length.

    The sentence is for the lab's text. It covers attention on the answer, attention on the answer
    without the two best entries, and attention on noise.
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
    """Return a verdict on each hypothesis for each task.

    A verdict is "holds" or "right" with the names of the entries, "does not hold here", "not
    decided" or "not run". A hypothesis holds on a task if one of its entries opens the task (see
    `successes`). The verdict is only "right" if an entry solves the task and the entry's reference
    solves it too or was not run.
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
    """Compare retrieval after training on 16 pairs and after training on 128 pairs.

    A decoder trained on 128 pairs has seen all positions of the test. So unseen positions cannot
    explain the mistakes that it still makes.

    Returns:
        One row per entry, with the accuracy at 128 pairs and the best head's attention weight on
            the answer there, after training on 16 and on 128 pairs. The last column says how many
            of the runs on 128 pairs learned.
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
    """Return an entry's name, and after it the second thing that the entry changes, if any."""
    two = ENTRIES[name].two
    return f"{name} (also {two})" if two else name
