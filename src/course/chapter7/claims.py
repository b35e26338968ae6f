"""Measure the claims of chapter 7.

Each function belongs to a row of the chapter's table, and this row states the claim in words.
"""

import math

import numpy as np
import pandas as pd

from course.evidence import significance
from course.evidence.rules import FAILS, Numbers, Threshold, rule
from course.runs import comparison, entries, protocol, rates
from helpers import data
from helpers.style import number  # noqa: F401  the words of the table call it

SIZE = f"decoders with two layers of width 32, trained up to length {protocol.TRAINED}"
LONGEST = protocol.LENGTHS[-1]
CALLED = {  # tasks whose names say too little in a sentence
    "first": "copying the first token",
    "last": "copying the last token",
}
RIGHT, HEAD = (
    f"score_{LONGEST}",
    f"best_{LONGEST}",
)  # the accuracy, and the attention on the answer in a question's best head
KEPT = Threshold(protocol.KEPT)  # accuracy
SUCCEEDS = (
    f"an accuracy of {KEPT:.0%} at length {LONGEST}, and a head with over {protocol.SHARP:.0%} of "
    "its attention on the answer"
)
OPENS = (
    f"to open a task is to reach {SUCCEEDS}, and to be significantly better or right up to a "
    "longer length than the same decoder without the ingredient, or to learn where it does not"
)


@rule(
    holds=(f"no position encoding opens a task ({OPENS})", lambda opened: not opened),
    part=(
        "there is a task that an encoding has learned and that no encoding opens",
        lambda judged: FAILS in judged.values(),
    ),
    enough=(
        "an encoding opens a task, or each task is decided",
        lambda judged, opened: (
            bool(opened) or not any(said.startswith("not decided") for said in judged.values())
        ),
    ),
    nothing=(
        "decoders that did not learn",
        lambda judged: {"judged": dict.fromkeys(judged, "not decided"), "opened": []},
    ),
)
def race_positions_are_not_enough() -> Numbers:
    """Return the verdict on position encodings for each task.

    Returns:
        `judged`: the verdicts (see `comparison.judge`).
        `opened`: the tasks that an encoding opens (see `comparison.successes`).
        `best`: attention on the answer and accuracy of each encoding that has learned, by task.
    """
    rows = comparison.table()
    best = rows[(rows.learned == 1) & rows.entry.isin(entries.POSITIONS)].groupby(["task", "entry"])
    judged = {
        task: said for task, said in comparison.judge(rows)["H1"].items() if said != "not run"
    }
    opened = [task for task, said in judged.items() if said.startswith("holds")]
    return {"judged": judged, "opened": opened, "best": best[[HEAD, RIGHT]].mean()}


@rule(
    holds=(
        (
            "in each of the three readings (windows, inserted tokens and sparsity), each task is "
            f"opened by one of the entries ({OPENS})"
        ),
        lambda opens: all(opens),
    ),
    part=(
        (
            "in one of the three readings, each task is opened by one of the entries, and in no "
            "reading are all entries worse than their references at a task"
        ),
        lambda opens, worse: any(opens) and not any(worse),
    ),
    enough=("one of the entries has learned a task", lambda learned: learned),
    nothing=("entries that open nothing", lambda opens: {"opens": opens & False}),
)
def race_physical_help() -> Numbers:
    """Measure three interpretations of the talk's "physical intervention".

    Returns:
        `won`: the results of the entries (see `comparison.successes`) with their kind.
        `opens`: for each kind, whether each task is opened by one of its entries.
        `worse`: for each kind, whether all its entries are worse than their references at some
            task.
        `learned`: whether any entry has learned.
    """
    won = comparison.successes(comparison.table())
    kinds = {entry: kind for kind, names in entries.PHYSICAL.items() for entry in names}
    won = won[won.entry.isin(kinds) & won.task.isin(protocol.LOOKED)].assign(
        kind=won.entry.map(kinds)
    )
    return {
        "won": won,
        "opens": won.opens.groupby([won.kind, won.task]).any().groupby("kind").all(),
        "worse": (won.verdict == "worse").groupby([won.kind, won.task]).all().groupby("kind").any(),
        "learned": any(won.verdict != "not learned"),
    }


@rule(
    each=(f"on the task the design has {SUCCEEDS}", lambda won: won.success),
    against=("the design is significantly worse than RoPE", lambda won: won.rope == "worse"),
    nothing=(
        "RoPE in each layer",
        lambda won: {"won": won.assign(success=False, rope="inconclusive")},
    ),
)
def race_local_and_global_opens_both() -> Numbers:
    rows, tasks = comparison.table(), ["retrieval", "last"]
    won = comparison.successes(rows).set_index(["entry", "task"]).loc[entries.MIXED]
    return {
        "won": won.loc[tasks],
        "others": [name for name in comparison.all_kept(rows, tasks) if name != entries.MIXED],
        "rates": {task: rates.by_rate().loc[(task, entries.MIXED)] for task in tasks},
    }


@rule(
    holds=(
        (
            f"with scalable softmax the 95% interval of the accuracy at 2,048 is above {KEPT:.0%}, "
            "and without it the mean is below"
        ),
        lambda low, plain: low >= KEPT > plain,
    ),
    part=(
        (
            f"with scalable softmax the mean accuracy at 2,048 is at least {KEPT:.0%}, but its "
            "interval reaches below, or the design reaches it without scalable softmax after more "
            "steps"
        ),
        lambda sharper: sharper >= KEPT,
    ),
    nothing=(
        "the same layers without it, at the same stop",
        lambda touched: {"sharper": touched, "low": touched},
    ),
)
def race_sharper_map_reaches_further() -> Numbers:
    """Measure retrieval accuracy at each length, with and without a sharper global layer.

    The two designs are compared at the longest length.
    """
    table = data.table("race_far").query("task == 'retrieval' and learned == 1").groupby("entry")
    means = table[[f"score_{n}" for n in (LONGEST, *protocol.FAR)]].mean()
    last = means.iloc[:, -1]
    late = comparison.plateaus().loc["retrieval"]
    cells = rates.by_rate()[f"score_{protocol.FAR[-1]}"].loc["retrieval"]
    return {
        "means": means,
        "seeds": table.size().min(),
        "sharper": last[entries.MIXED_SCALED],
        "low": significance.interval(
            table.get_group(entries.MIXED_SCALED)[f"score_{protocol.FAR[-1]}"]
        )[1],
        "touched": last[entries.MIXED],
        "rates": {
            name: cells.loc[name].dropna()
            for name in (entries.MIXED_SCALED, entries.SCALED, entries.MIXED)
        },
        "plain": max(last[entries.MIXED], late[f"score_{protocol.FAR[-1]}"][entries.MIXED]),
        "late": late,
    }


@rule(
    holds=(
        (
            f"the mixture still has an accuracy of {KEPT:.0%} at length {LONGEST}, and RoPE and "
            "NoPE have learned the task and do not have it"
        ),
        lambda mixed, alone, both: mixed and both and not alone,
    ),
    part=(
        (
            f"the mixture still has an accuracy of {KEPT:.0%} at length {LONGEST}, and neither "
            "RoPE nor NoPE has it, but one of these two has not learned the task at all"
        ),
        lambda mixed, alone: mixed and not alone,
    ),
    decided=(
        (
            "RoPE and NoPE, if they learn the task, were trained for at least as many steps after "
            "they first met the criterion as before"
        ),
        lambda plain: all(2 * touch <= steps for touch, steps in plain.values()),
    ),
    nothing=("layers of one kind", lambda alone: {"mixed": alone}),
)
def race_recall_takes_both() -> Numbers:
    """Find which entries still solve recall at the longest length.

    For RoPE and NoPE, the result also has the mean number of steps until they learned, and the
    number of steps that they were trained for.
    """
    won = comparison.successes(comparison.table()).query("task == 'recall'").set_index("entry")
    late = comparison.plateaus().loc["recall"]
    kept = {*won.index[won.kept], *late.index[late[RIGHT] >= protocol.KEPT]}
    able = {
        *won.index[won.verdict != "not learned"],
        *late.index[late.learned >= protocol.CELL * late.runs],
    }
    plain = {entries.BASELINE, "NoPE"}
    rows = comparison.table().query("task == 'recall' and learned == 1")
    touched = {
        name: (part.steps.mean(), part.steps.mean())
        for name, part in rows.groupby("entry")
        if name in plain
    }
    touched |= {
        name: (late.steps[name], protocol.PLATEAU)
        for name in plain & {*late.index[late.learned > 0]}
    }
    return {
        "won": won,
        "rates": rates.by_rate().loc["recall"],
        "mixed": entries.MIXED in kept,
        "alone": bool(kept & plain),
        "both": plain <= able,
        "plain": touched,
    }


@rule(
    holds=(
        (
            f"after training on equally many keys, at least {KEPT:.0%} of the answers are right "
            "with random positions, and fewer with plain RoPE"
        ),
        lambda short, random: random >= KEPT > short,
    ),
    part=(
        "random positions undo most of the loss",
        lambda short, random: random - short > Threshold(1 - random),
    ),
    nothing=("positions that change nothing", lambda short: {"random": short}),
)
def race_positions_are_unseen() -> Numbers:
    """Measure RoPE's accuracy and best head at 128 pairs after three kinds of training.

    The training is on 16 pairs, on 128 pairs, or at random positions. If one of the last two helps,
    this suggests that unseen positions are the problem.
    """
    rows = comparison.table()
    short, short_head, long, long_head, _ = comparison.all_positions_seen(rows).loc[
        entries.BASELINE
    ]
    random = rows.query(f"task == 'retrieval' and entry == {entries.RANDOM!r} and learned == 1")[
        [RIGHT, HEAD]
    ].mean()
    return {
        "short": short,
        "short_head": short_head,
        "long": long,
        "long_head": long_head,
        "random": random[RIGHT],
        "random_head": random[HEAD],
    }


DRAWS = 400  # of the seeds, with replacement


def _difference(groups: dict[str, pd.DataFrame], without: str = "") -> tuple[float, float]:
    """Return the 95% interval for how much more encodings change accuracy than normalizers do.

    The difference is the largest gap among encodings minus the largest gap among normalizers, as a
    mean over the tasks.
    """
    rows, draw, differences = comparison.table().query("learned == 1"), np.random.default_rng(0), []
    for task, here in rows.groupby("task"):
        odds = here.pivot(index="seed", columns="entry", values="odds")
        gaps = odds.sub(odds[entries.BASELINE], axis=0)
        largest = {}
        for name, cells in groups.items():
            names = [entry for entry in cells.entry[cells.task == task] if entry != without]
            paired = [gaps[entry].dropna().to_numpy() for entry in names]
            drawn = [
                values[draw.integers(len(values), size=(DRAWS, len(values)))].mean(1)
                for values in paired
            ]
            largest[name] = np.abs(drawn).max(0) if drawn else None
        if all(part is not None for part in largest.values()):
            differences.append(largest["encodings"] - largest["maps"])
    low, high = np.quantile(np.mean(differences, axis=0), [0.025, 0.975])
    return float(low), float(high)


@rule(
    holds=(
        (
            "in each task the largest gap to RoPE is larger among the position encodings than "
            "among the alternatives to softmax, and on average significantly so"
        ),
        lambda gaps, low: all(gaps > Threshold(0)) and low > Threshold(0),
    ),
    part=(
        (
            "on average the largest gap to RoPE is significantly larger among the position "
            "encodings, but not in each task"
        ),
        lambda low: low > Threshold(0),
    ),
    fit=(
        "the interval stays on the same side of 0 if we leave out any one of the encodings",
        lambda low, without: all((each > 0) == (low > 0) for each in without.values()),
    ),
    nothing=("maps for encodings", lambda gaps: {"gaps": 0 * gaps, "low": 0.0, "without": {}}),
)
def race_positions_decide() -> Numbers:
    """Compare position encodings and normalizers by their largest gap to RoPE, task by task.

    The interval (`low`, `high`) of the mean difference is from the 2.5% to the 97.5% quantile of
    `DRAWS` bootstrap draws of the seeds. It does not cover the choice of the encodings. So
    `without` has the low end after one encoding was left out, keyed by this encoding.
    """
    found = comparison.compare(comparison.table()).dropna(subset="gap")
    groups = {
        "encodings": found[found.entry.isin(entries.POSITIONS)],
        "maps": found[found.entry.isin(entries.MAPS) & ~found.entry.str.contains("NoPE")],
    }
    largest = {name: cells.gap.abs().groupby(cells.task).max() for name, cells in groups.items()}
    low, high = _difference(groups)
    without = {
        name: _difference(groups, without=name)[0] for name in groups["encodings"].entry.unique()
    }
    return largest | {
        "gaps": (largest["encodings"] - largest["maps"]).dropna(),
        "low": low,
        "high": high,
        "without": without,
        "apart": {
            name: cells.verdict.isin(["better", "worse"]).tolist() for name, cells in groups.items()
        },
    }


@rule(
    holds=(
        f"every remedy has learned to count, and none has {KEPT:.0%} right at 128",
        lambda learned, missed: not any(learned.kept) and not len(missed),
    ),
    part=(
        f"none of the remedies that have learned has {KEPT:.0%} right at 128, but some have not "
        "learned",
        lambda learned: not any(learned.kept),
    ),
    enough=("one of the remedies has learned to count", lambda learned: len(learned) > 0),
    nothing=("decoders that did not learn", lambda learned: {"learned": learned.iloc[:0]}),
)
def race_nothing_keeps_the_count() -> Numbers:
    """Find which remedies learned to count, and their accuracy at the longest length.

    Returns:
        `learned`: the remedies that learned, with the accuracy of the runs that learned. For
            remedies that only learned with more steps, the results are those after more steps.
        `missed`: the remedies that have not learned.
        `outside`: the entries that are not remedies, with all their runs and the number of runs
            that learned.
        `rope`: the mean accuracy of RoPE.
        `rates`: the results by learning rate.
    """
    rows = comparison.table().query("task == 'counting'")
    won = comparison.successes(comparison.table()).query("task == 'counting'")
    late = comparison.plateaus().query("task == 'counting'").droplevel("task")
    # judge an entry by the runs with more steps if more of those runs learned, because a single run
    # that learned early shows less than eight
    larger = late.index[(late.learned >= protocol.CELL * late.runs)]
    larger = [
        name
        for name in larger
        if late.learned[name] > won.set_index("entry").learned.get(name, math.inf)
    ]
    able = (won.verdict != "not learned") & ~won.entry.isin(larger)
    more = late.loc[larger].reset_index()
    more = more.assign(right=more[RIGHT], kept=more[RIGHT] >= protocol.KEPT)
    every = rows.groupby("entry").agg(
        right=(RIGHT, "mean"), learned=("learned", "sum"), seeds=("learned", "size")
    )
    return {
        "learned": pd.concat([won[able], more]).sort_values("right"),
        "rates": rates.by_rate().loc["counting"],
        "missed": every.loc[won.entry[~able & ~won.entry.isin(larger)]],
        "outside": every[every.index.isin(entries.OUTSIDE)],
        "rope": every.right[entries.BASELINE],
    }
