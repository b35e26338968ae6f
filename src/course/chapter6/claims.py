"""What the claims of chapter 6 are decided by, each measured by a function; the words and the rules stand in its table."""

from itertools import product

import numpy as np
import pandas as pd
import torch

from course import significance
from course.chapter6 import measures
from course.experiments import ablations, comparison, entries, protocol
from course.rules import FAILS, Mark, Numbers, rule
from helpers import attention, data
from helpers.style import number  # noqa: F401  the words of the table call it

SIZE = f"two layers of width 32, trained up to length {protocol.TRAINED}"
LONGEST = protocol.LENGTHS[-1]
RIGHT, HEAD = f"score_{LONGEST}", f"best_{LONGEST}"  # the share right, and on the answer in a question's best head
EVEN = Mark(1)
KEPT = Mark(protocol.KEPT)  # right

# The mechanism -----------------------------------------------------------------------------------------


CORRELATED = 0.9


@rule(
    holds=("the answer's share rises with unrelated noise", lambda gains: gains[0.0] > EVEN),
    part=(
        f"it rises with noise correlated at {CORRELATED:g}, where the two agree",
        lambda gains: gains[CORRELATED] > EVEN,
    ),
    nothing=("a subtraction that changes nothing", {"gains": {0.0: 1.0, CORRELATED: 1.0}}),
    null="each gain belongs to its correlation: the mean, or another's, is led by noise that agrees wholly",
)
def subtraction_cancels_noise() -> Numbers:
    """By correlation of the noise, what a subtraction multiplies the answer's share of all weight by."""
    gains = {}
    for correlation in (0.0, 0.5, 0.9, 1.0):
        plain, left = (measures.parts(6, correlation, 1024, lam) for lam in (0.0, 0.8))
        gains[correlation] = left["share"] / plain["share"]
    return {"gains": gains}


MOST, MANY = Mark(0.95), Mark(0.8)  # of the settings


@rule(
    holds=(f"{MOST:.0%} of the settings are on the right side", lambda right, settings: right >= MOST * settings),
    part=(f"{MANY:.0%} are", lambda right, settings: right >= MANY * settings),
    nothing=("a coin for each setting", lambda settings: {"right": settings / 2}),
)
def half_of_lambda_is_the_threshold() -> Numbers:
    """On how many settings the cosine tells whether noise falls, by λ/2 times the ratio of the sizes, and by λ/2."""
    deviations = (0.5, 1.0, 1.5, 2.0)
    settings = product(deviations, deviations, (0.0, 0.5, 0.9), (0.2, 0.5, 0.8))
    found = [(lam, measures.simulated_left(r, spread, lam, other=other)) for spread, other, r, lam in settings]
    return {
        "right": sum((each.left < 1) == (each.cosine > lam / 2 * each.ratio) for lam, each in found),
        "plain": sum((each.left < 1) == (each.cosine > lam / 2) for lam, each in found),
        "settings": len(found),
    }


FIFTH = Mark(0.2)


@rule(
    "signed_sums_hide_noise",
    holds=(
        f"the signed sum falls below {FIFTH:g} while the sum by size rises",
        lambda signed, sized: signed[1] < FIFTH * signed[0] and sized[1] > Mark(sized[0]),
    ),
    nothing=("a subtraction that changes nothing", {"signed": [1.0, 1.0], "sized": [1.0, 1.0]}),
)
def counted_noise() -> Numbers:
    """The noise of softmax and of a difference of independent maps, and what a source's table leaves out of DIFF's rows."""
    rows = [measures.parts(6, 0, 1024, lam) for lam in (0.0, 0.8)]
    mean = data.table("reported/differential_attention_mass").mean()
    return {
        "signed": [row["signed"] for row in rows],
        "sized": [row["noise"] for row in rows],
        "rest": 1 - mean.answer_diff - mean.noise_diff,
    }


LEAST, LARGEST = Mark(0.5), Mark(2)
FAR_BELOW, FAR_ABOVE = Mark(0.25), Mark(4)


@rule(
    "gradients_stay_aligned",
    each=(
        f"the ratio of a setting is between {LEAST:g} and {LARGEST:g}",
        lambda ratios: [LEAST < ratio < LARGEST for ratio in ratios],
    ),
    against=(
        f"it is beyond {FAR_BELOW:g} or {FAR_ABOVE:g}",
        lambda ratios: [ratio > FAR_ABOVE or ratio < FAR_BELOW for ratio in ratios],
    ),
    nothing=("gradients of one size", {"ratios": [1.0] * 8}),
    null="that nothing changes is what is claimed",
)
def gradients() -> Numbers:
    """Gradients of W_Q over a Transformer's: in all settings, at PyTorch's start with unrelated tokens, and near the proof's."""
    table = measures.gradient_setups()
    ratios = table["norm and scale"]
    return {
        "ratios": ratios,
        "default": ratios[(table.start == "default") & (table["tokens alike"] == 0)],
        "near": ratios[(table.start == "Xavier") & (table["tokens alike"] > 0)],
    }


def two_plain_heads() -> Numbers:
    return {"gap": measures.as_two_heads()}


# Reported, not repeated at that size -------------------------------------------------------------------


# The critics, and other maps ---------------------------------------------------------------------------


WHOLE = Mark(0.99)
EXACT = Mark(1e-12)


@rule(
    holds=(
        f"it reaches {WHOLE:g} where softmax does not, and two plain heads cannot either",
        lambda full, plain, gap: full > WHOLE > plain and gap >= EXACT,
    ),
    part=(
        f"it reaches {WHOLE:g} where softmax does not; two plain heads that share values reach it too",
        lambda full, plain: full > WHOLE > plain,
    ),
    nothing=("softmax for it", lambda plain: {"full": plain}),
)
def negative_attention_reaches_further() -> Numbers:
    plain, half, full = (measures.reach(lam) for lam in (0.0, 0.5, 1.0))
    return {"plain": plain, "half": half, "full": full} | two_plain_heads()


@rule(
    holds=(
        "the peak is kept from 100 to 100,000 keys with both leads",
        lambda peaks: all(long >= Mark(short) for short, long in peaks.values()),
    ),
    part=("it is with the larger lead; one below 1/s still fades", lambda peaks: peaks[2.0][1] >= Mark(peaks[2.0][0])),
    nothing=("plain softmax, which fades", {"peaks": {0.5: [0.01, 1e-5], 2.0: [0.07, 7e-5]}}),
    null="a weight that is the same at both lengths is kept, by definition",
)
def scalable_softmax_keeps_the_peak() -> Numbers:
    """By its lead, the weight of one key in a short row and in a long one."""
    short, long = (torch.eye(1, n, dtype=torch.float64)[0] for n in (100, 100_000))
    peaks = {lead: [float(attention.scalable_softmax(lead * x)[0]) for x in (short, long)] for lead in (0.5, 2.0)}
    return {"peaks": peaks}


# The race ----------------------------------------------------------------------------------------------


SURE = "the test is sure of something"
NOT_SURE = {
    "against": ("it is sure of something else", lambda against: against),
    "enough": (SURE, lambda agree, against: any([*agree, *against])),
    "nothing": ("gaps of which the test is not sure", lambda agree: {"agree": agree & False, "against": agree & False}),
}


@rule(
    "race_differential_attends_to_the_answer",
    "race_differential_has_smaller_outliers",
    each=("the test is sure that the number moves as the claim says", lambda agree: agree),
    **NOT_SURE,
)
def differential_gaps(columns: dict[str, str], less: str = "") -> Numbers:
    """Some columns at retrieval, by what they are called: means with half the heads and with differential attention, and p.

    The p values are corrected for their number. `agree` and `against`: of which the test is sure, if those that begin
    with `less` are to be smaller with differential attention, and the others larger.
    """
    rows = comparison.table().query("task == 'retrieval' and learned == 1")
    found = {}
    for column, name in columns.items():
        wide = rows.pivot(index="seed", columns="entry", values=column)[[entries.HALF, "differential"]].dropna()
        found[name] = [*wide.mean(), significance.paired(wide["differential"], wide[entries.HALF])]
    gaps = pd.DataFrame(found, index=["half", "differential", "p"]).T
    gaps["p"] = significance.holm(gaps.p.tolist())
    sure, wished = gaps.p < protocol.LEVEL, (gaps.differential > gaps.half) != gaps.index.str.startswith(less)
    return {"gaps": gaps, "agree": sure & wished, "against": sure & ~wished}


def _judged(found: pd.DataFrame, claimed: str) -> Numbers:
    """Comparisons, which of them have the verdict that a claim says, and which another one of which the test is sure."""
    sure = found.verdict.isin(["better", "worse", protocol.EQUAL])
    return {"found": found, "agree": found.verdict == claimed, "against": sure & (found.verdict != claimed)}


@rule(
    each=("it is better than the same decoder without, by the test", lambda agree: agree),
    against=("the test is sure of something else", lambda against: against),
    enough=(SURE, lambda agree, against: any([*agree, *against])),
    nothing=("gaps of which the test is not sure", lambda agree: {"agree": agree & False, "against": agree & False}),
)
def race_differential_retrieves() -> Numbers:
    found = comparison.compare(comparison.table(), against=None).query("task == 'retrieval'").set_index("entry")
    return _judged(found.loc[entries.HYPOTHESES["H4"][1]], "better")


@rule(
    each=("the version's 95% interval is above 1", lambda noises: noises.low > EVEN),
    against=("it is below 1", lambda noises: noises.high < EVEN),
    enough=("one interval is on one side", lambda noises: any((noises.low > EVEN) | (noises.high < EVEN))),
    nothing=("intervals around 1", lambda noises: {"noises": noises.assign(low=0.9, high=1.1)}),
)
def race_subtraction_raises_signal_over_noise() -> Numbers:
    return {"noises": comparison.noises()}


GOES = Mark(0.5)


@rule(
    holds=(f"the rank correlation is above {GOES:g}", lambda rho: rho > GOES),
    nothing=("no correlation", {"rho": 0.0}),
)
def race_share_goes_with_right_answers() -> Numbers:
    rows = comparison.table()
    return {"rho": comparison.rank_correlation(rows)[0], "correlations": comparison.correlations(rows)}


@rule(
    holds=("no position encoding opens a task", lambda opened: not opened),
    part=(
        "none opens some of the tasks at which one has learned",
        lambda judged: FAILS in judged.values(),
    ),
    enough=(
        "one opens a task, or each task is decided",
        lambda judged, opened: bool(opened) or not any(said.startswith("not decided") for said in judged.values()),
    ),
    nothing=(
        "decoders that did not learn",
        lambda judged: {"judged": dict.fromkeys(judged, "not decided"), "opened": []},
    ),
)
def race_positions_are_not_enough() -> Numbers:
    """What is judged of position encodings alone by task, and the share on the answer and right of each that has learned."""
    rows = comparison.table()
    best = rows[(rows.learned == 1) & rows.entry.isin(entries.POSITIONS)].groupby(["task", "entry"])
    judged = {task: said for task, said in comparison.judge(rows)["H1"].items() if said != "not run"}
    opened = [task for task, said in judged.items() if said.startswith("holds")]
    return {"judged": judged, "opened": opened, "best": best[[HEAD, RIGHT]].mean()}


@rule(
    holds=(
        "read in each way, as windows, inserted tokens and sparsity, one of its entries opens each task",
        lambda opens: all(opens),
    ),
    part=(
        "read in one of these ways, one of its entries opens each task, and in no way are all worse at a task",
        lambda opens, worse: any(opens) and not any(worse),
    ),
    enough=("one has learned", lambda learned: learned),
    nothing=("entries that open nothing", lambda opens: {"opens": opens & False}),
)
def race_physical_help() -> Numbers:
    """Three ways to read the talk's physical intervention: an entry of the kind opens each task that it ran."""
    won = comparison.successes(comparison.table())
    kinds = {entry: kind for kind, names in entries.PHYSICAL.items() for entry in names}
    won = won[won.entry.isin(kinds) & won.task.isin(protocol.LOOKED)].assign(kind=won.entry.map(kinds))
    return {
        "won": won,
        "opens": won.opens.groupby([won.kind, won.task]).any().groupby("kind").all(),
        "worse": (won.verdict == "worse").groupby([won.kind, won.task]).all().groupby("kind").any(),
        "learned": any(won.verdict != "not learned"),
    }


@rule(
    each=("it opens the task", lambda won: won.success),
    against=("it is worse than RoPE", lambda won: won.rope == "worse"),
    nothing=("RoPE in each layer", lambda won: {"won": won.assign(success=False, rope="not told apart")}),
)
def race_local_and_global_opens_both() -> Numbers:
    rows, tasks = comparison.table(), ["retrieval", "last"]
    won = comparison.successes(rows).set_index(["entry", "task"]).loc[entries.MIXED]
    return {
        "won": won.loc[tasks],
        "others": [name for name in comparison.all_kept(rows, tasks) if name != entries.MIXED],
    }


@rule(
    holds=(
        f"the 95% interval over seeds is above {KEPT:.0%} right at 2,048, and without it the mean is below",
        lambda low, plain: low >= KEPT > plain,
    ),
    part=(
        f"the mean is {KEPT:.0%} there, and the interval reaches below, or with more steps it is kept without it, too",
        lambda sharper: sharper >= KEPT,
    ),
    nothing=("the same layers without it", lambda plain: {"sharper": plain, "low": plain}),
)
def race_sharper_map_reaches_further() -> Numbers:
    """Right at each length by entry, and at the last one with and without a sharper map in the global layer."""
    table = data.table("race_far").query("task == 'retrieval' and learned == 1").groupby("entry")
    means = table[[f"score_{n}" for n in (LONGEST, *protocol.FAR)]].mean()
    last = means.iloc[:, -1]
    late = data.table("race_plateau").query(f"task == 'retrieval' and entry == {entries.MIXED!r}")[
        f"score_{protocol.FAR[-1]}"
    ]
    return {
        "means": means,
        "seeds": table.size().min(),
        "sharper": last[entries.MIXED_SCALED],
        "low": significance.interval(table.get_group(entries.MIXED_SCALED)[f"score_{protocol.FAR[-1]}"])[1],
        "plain": max(last[entries.MIXED], late.mean()),
        "late": late.mean(),
        "runs": len(late),
    }


@rule(
    holds=(
        "the mixture keeps recall, and RoPE and NoPE have learned it and do not",
        lambda mixed, alone, both: mixed and both and not alone,
    ),
    part=(
        "the mixture keeps recall, and neither of them does, one of which has not learned",
        lambda mixed, alone: mixed and not alone,
    ),
    nothing=("layers of one kind", lambda alone: {"mixed": alone}),
)
def race_recall_takes_both() -> Numbers:
    won = comparison.successes(comparison.table()).query("task == 'recall'").set_index("entry")
    kept = set(won.index[won.kept])
    plain = {entries.BASELINE, "NoPE"}
    return {
        "won": won,
        "mixed": entries.MIXED in kept,
        "alone": bool(kept & plain),
        "both": plain <= set(won.index[won.verdict != "not learned"]),
    }


@rule(
    holds=(
        f"with random positions, trained on as many keys, {KEPT:.0%} are right, and as trained fewer",
        lambda short, random: random >= KEPT > short,
    ),
    part=("most of the loss comes back so", lambda short, random: random - short > Mark(1 - random)),
    nothing=("positions that change nothing", lambda short: {"random": short}),
)
def race_positions_are_unseen() -> Numbers:
    """Right, and in the best head: trained to 16, to 128, and to 16 with random positions."""
    rows = comparison.table()
    short, short_head, long, long_head, _ = comparison.all_positions_seen(rows).loc[entries.BASELINE]
    random = rows.query(f"task == 'retrieval' and entry == {entries.RANDOM!r} and learned == 1")[[RIGHT, HEAD]].mean()
    return {
        "short": short,
        "short_head": short_head,
        "long": long,
        "long_head": long_head,
        "random": random[RIGHT],
        "random_head": random[HEAD],
    }


DRAWS = 400  # of the seeds, with replacement


@rule(
    holds=(
        "position encodings move further from RoPE than maps in each task, and on average by more than the seeds' chance",
        lambda gaps, low: all(gaps > Mark(0)) and low > Mark(0),
    ),
    part=("on average they do, by more than the seeds' chance; not in each task", lambda low: low > Mark(0)),
    nothing=("maps for encodings", lambda gaps: {"gaps": 0 * gaps, "low": 0.0}),
)
def race_positions_decide() -> Numbers:
    """The largest gap to RoPE by task among position encodings and among maps, and how far their difference is chance.

    The interval of the mean difference is that of 2.5 to 97.5% of `DRAWS` bootstrap draws of the seeds of each cell.
    """
    found = comparison.compare(comparison.table()).dropna(subset="gap")
    groups = {
        "encodings": found[found.entry.isin(entries.POSITIONS)],
        "maps": found[found.entry.isin(entries.MAPS) & ~found.entry.str.contains("NoPE")],
    }
    largest = {name: cells.gap.abs().groupby(cells.task).max() for name, cells in groups.items()}
    rows, draw = comparison.table().query("learned == 1"), np.random.default_rng(0)
    differences = []
    for task, here in rows.groupby("task"):
        odds = here.pivot(index="seed", columns="entry", values="odds")
        gaps = odds.sub(odds[entries.BASELINE], axis=0)
        ends = {}
        for name, cells in groups.items():
            paired = [gaps[entry].dropna().to_numpy() for entry in cells.entry[cells.task == task]]
            drawn = [values[draw.integers(len(values), size=(DRAWS, len(values)))].mean(1) for values in paired]
            ends[name] = np.abs(drawn).max(0) if drawn else None
        if all(part is not None for part in ends.values()):
            differences.append(ends["encodings"] - ends["maps"])
    low, high = np.quantile(np.mean(differences, axis=0), [0.025, 0.975])
    return largest | {
        "gaps": (largest["encodings"] - largest["maps"]).dropna(),
        "low": float(low),
        "high": float(high),
        "apart": {name: cells.verdict.isin(["better", "worse"]).tolist() for name, cells in groups.items()},
    }


@rule(
    holds=(
        f"every remedy has learned it, and none of these has {KEPT:.0%} right at 128",
        lambda learned, missed: not any(learned.kept) and not len(missed),
    ),
    part=("none that has learned keeps it, and some have not learned", lambda learned: not any(learned.kept)),
    enough=("one has learned", lambda learned: len(learned) > 0),
    nothing=("decoders that did not learn", lambda learned: {"learned": learned.iloc[:0]}),
)
def race_nothing_keeps_the_count() -> Numbers:
    """The remedies that learned to count, with the share right at the longest length of the runs that learned; and others.

    missed: the remedies that have not learned, and outside: what is no remedy, with all their runs and how many learned.
    """
    rows = comparison.table().query("task == 'counting'")
    won = comparison.successes(comparison.table()).query("task == 'counting'")
    able = won.verdict != "not learned"
    every = rows.groupby("entry").agg(right=(RIGHT, "mean"), learned=("learned", "sum"), seeds=("learned", "size"))
    return {
        "learned": won[able].sort_values("right"),
        "missed": every.loc[won.entry[~able]],
        "outside": every[every.index.isin(entries.OUTSIDE)],
        "rope": every.right[entries.BASELINE],
    }


# The paper's ablations, in the race's decoders ---------------------------------------------------------


@rule(
    "small_head_norm_matters",
    "small_start_of_lambda_hardly_matters",
    each=("the test says what the claim says: worse, or equal", lambda agree: agree),
    **NOT_SURE,
)
def ablated(names: list[str], claimed: str) -> Numbers:
    """Some rows of the paper's ablations against their references: `claimed` is the verdict that agrees with the claim."""
    return _judged(ablations.judged().loc[names], claimed)
