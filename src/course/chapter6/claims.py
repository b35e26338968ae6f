"""What the claims of chapter 6 are decided by, each measured by a function; the words and the rules stand in its table."""

from itertools import product

import pandas as pd
import torch

from course import significance
from course.chapter6 import measures
from course.claims import Numbers
from course.experiments import ablations, comparison, entries, protocol
from helpers import attention, data
from helpers.style import number  # noqa: F401  the words of the table call it

SIZE = f"two layers of width 32, trained up to length {protocol.TRAINED}"
LONGEST = protocol.LENGTHS[-1]
RIGHT, HEAD = f"score_{LONGEST}", f"best_{LONGEST}"  # the share right, and on the answer in a question's best head

# The mechanism -----------------------------------------------------------------------------------------


def subtraction_cancels_noise() -> Numbers:
    """By correlation of the noise, what a subtraction multiplies the answer's share of all weight by."""
    gains = {}
    for correlation in (0.0, 0.5, 0.9, 1.0):
        plain, left = (measures.parts(6, correlation, 1024, lam) for lam in (0.0, 0.8))
        gains[correlation] = left["share"] / plain["share"]
    return {"gains": gains}


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


def counted_noise() -> Numbers:
    """The noise of softmax and of a difference of independent maps, and what a source's table leaves out of DIFF's rows."""
    rows = [measures.parts(6, 0, 1024, lam) for lam in (0.0, 0.8)]
    mean = data.table("reported/differential_attention_mass").mean()
    return {
        "signed": [row["signed"] for row in rows],
        "sized": [row["noise"] for row in rows],
        "rest": 1 - mean.answer_diff - mean.noise_diff,
    }


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


def reported(table: str, index: str | list[str]) -> Numbers:
    """What a source's own table says."""
    return {"reported": data.table(f"reported/differential_{table}").set_index(index)}


def more_needles() -> Numbers:
    table = data.table("reported/differential_retrieval").set_index("needles")[["transformer", "diff"]]
    numbers = {f"{name}, {n:g} needles": (float(right), None) for (n, name), right in table.stack().items()}
    return {"ahead": (table["diff"] > table.transformer).sum(), "rows": len(table), "numbers": numbers}


def equal_loss(what: str) -> Numbers:
    """Equal loss for less: of parameters, or of tokens."""
    value = data.table("reported/differential_scaling").set_index("quantity").value
    share = value[f"share of {what}"]
    return {"share": share, "value": value, "numbers": {f"share of {what}": (float(share), None)}}


# The critics, and other maps ---------------------------------------------------------------------------


def negative_attention_reaches_further() -> Numbers:
    plain, half, full = (measures.reach(lam) for lam in (0.0, 0.5, 1.0))
    return {"plain": plain, "half": half, "full": full} | two_plain_heads()


def off_by_one_can_say_nothing() -> Numbers:
    """The sum of a row of low logits by its length, and of one of very low ones."""
    return {
        "low": {n: float(attention.softmax_off_by_one(torch.full((n,), -4.0)).sum()) for n in (16, 256, 4096)},
        "limit": float(attention.softmax_off_by_one(torch.full((4096,), -40.0, dtype=torch.float64)).sum()),
    }


def scalable_softmax_keeps_the_peak() -> Numbers:
    """By its lead, the weight of one key in a short row and in a long one."""
    short, long = (torch.eye(1, n, dtype=torch.float64)[0] for n in (100, 100_000))
    peaks = {lead: [float(attention.scalable_softmax(lead * x)[0]) for x in (short, long)] for lead in (0.5, 2.0)}
    return {"peaks": peaks}


# The race ----------------------------------------------------------------------------------------------


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


def race_differential_retrieves() -> Numbers:
    found = comparison.compare(comparison.table(), against=None).query("task == 'retrieval'").set_index("entry")
    return _judged(found.loc[entries.HYPOTHESES["H4"][1]], "better")


def race_subtraction_raises_signal_over_noise() -> Numbers:
    return {"noises": comparison.noises()}


def race_share_goes_with_right_answers() -> Numbers:
    rows = comparison.table()
    return {"rho": comparison.rank_correlation(rows)[0], "correlations": comparison.correlations(rows)}


def race_positions_are_not_enough() -> Numbers:
    """What is judged of position encodings alone by task, and the share on the answer and right of each that has learned."""
    rows = comparison.table()
    best = rows[(rows.learned == 1) & rows.entry.isin(entries.POSITIONS)].groupby(["task", "entry"])
    judged = {task: said for task, said in comparison.judge(rows)["H1"].items() if said != "not run"}
    opened = [task for task, said in judged.items() if said.startswith("holds")]
    return {"judged": judged, "opened": opened, "best": best[[HEAD, RIGHT]].mean()}


def physical(what: str) -> Numbers:
    """One way to read the talk's physical intervention: one of its entries opens each task that it ran."""
    won = comparison.successes(comparison.table())
    won = won[won.entry.isin(entries.PHYSICAL[what]) & won.task.isin(protocol.LOOKED)]
    return {
        "won": won,
        "opens": won.opens.groupby(won.task).any(),
        "worse": (won.verdict == "worse").groupby(won.task).all(),
        "learned": any(won.verdict != "not learned"),
    }


def race_local_and_global_opens_both() -> Numbers:
    rows, tasks = comparison.table(), ["retrieval", "last"]
    won = comparison.successes(rows).set_index(["entry", "task"]).loc[entries.MIXED]
    return {
        "won": won.loc[tasks],
        "others": [name for name in comparison.all_kept(rows, tasks) if name != entries.MIXED],
    }


def race_sharper_map_reaches_further() -> Numbers:
    """Right at each length by entry, and at the last one with and without a sharper map in the global layer."""
    table = data.table("race_far").query("task == 'retrieval' and learned == 1").groupby("entry")
    means = table[[f"score_{n}" for n in (LONGEST, *protocol.FAR)]].mean()
    last = means.iloc[:, -1]
    return {
        "means": means,
        "seeds": table.size().min(),
        "sharper": last[entries.MIXED_SCALED],
        "plain": last[entries.MIXED],
    }


def race_recall_takes_both() -> Numbers:
    won = comparison.successes(comparison.table()).query("task == 'recall'").set_index("entry")
    kept = set(won.index[won.kept])
    return {"won": won, "mixed": entries.MIXED in kept, "alone": bool(kept & {entries.BASELINE, "NoPE"})}


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


def race_positions_decide() -> Numbers:
    """The largest gap to RoPE by task among position encodings and among maps, and which of their cells are told apart."""
    found = comparison.compare(comparison.table()).dropna(subset="gap")
    encodings = found[found.entry.isin(entries.POSITIONS)]
    maps = found[found.entry.isin(entries.MAPS) & ~found.entry.str.contains("NoPE")]
    return {
        "encodings": encodings.gap.abs().groupby(encodings.task).max(),
        "maps": maps.gap.abs().groupby(maps.task).max(),
        "encodings_apart": encodings.verdict.isin(["better", "worse"]),
        "maps_apart": maps.verdict.isin(["better", "worse"]),
    }


def race_nothing_keeps_the_count() -> Numbers:
    """Right at the longest length: all remedies, those that learned, and what stands outside the ranking."""
    rows = comparison.table()
    right = rows[rows.task == "counting"].groupby("entry")[RIGHT].mean()
    won = comparison.successes(rows).query("task == 'counting' and verdict != 'not learned'")
    return {
        "every": right[right.index.isin(entries.REMEDIES)].sort_values(),
        "learned": won.sort_values("right"),
        "outside": right[right.index.isin(entries.OUTSIDE)],
    }


# The paper's ablations, in the race's decoders ---------------------------------------------------------


def ablated(names: list[str], claimed: str) -> Numbers:
    """Some rows of the paper's ablations against their references: `claimed` is the verdict that agrees with the claim."""
    return _judged(ablations.judged().loc[names], claimed)
