"""The claims of chapter 6, each a function that measures it here."""

from collections.abc import Iterable

import torch

from course import significance
from course.chapter6 import measures
from course.claims import Found, quoted, verdict, weigh
from course.experiments import ablations, comparison
from course.experiments.entries import (
    BASELINE,
    ENTRIES,
    HALF,
    MAPS,
    MIXED,
    MIXED_SCALED,
    OUTSIDE,
    PHYSICAL,
    POSITIONS,
    RANDOM,
    REMEDIES,
)  # fmt: skip
from course.experiments.protocol import EQUAL, FAR, KEPT, LENGTHS, LEVEL, LOOKED, TRAINED
from helpers import attention, data
from helpers.style import number

# The mechanism -----------------------------------------------------------------------------------------


def subtraction_cancels_noise() -> Found:
    shares = {}
    for correlation in (0.0, 0.5, 0.9, 1.0):
        row = [measures.share(measures.parts(6, correlation, 1024, lam)) for lam in (0.0, 0.8)]
        shares[correlation] = row[1] / row[0]
    measured = "1,024 keys, logit 6, λ = 0.8: the answer's share of all weight is multiplied by " + ", ".join(
        f"{gain:.2f} (correlation {correlation:g})" for correlation, gain in shares.items()
    )
    return Found(measured, verdict(shares[0.0] > 1, shares[0.9] > 1))


def half_of_lambda_is_the_threshold() -> Found:
    right, plain, total = 0, 0, 0
    for spread, other in [(s, o) for s in (0.5, 1.0, 1.5, 2.0) for o in (0.5, 1.0, 1.5, 2.0)]:
        for correlation in (0.0, 0.5, 0.9):
            for lam in (0.2, 0.5, 0.8):
                found = measures.simulated_left(correlation, spread, lam, other=other)
                right += (found.left < 1) == (found.cosine > lam / 2 * found.ratio)
                plain += (found.left < 1) == (found.cosine > lam / 2)
                total += 1
    measured = (
        f"simulated rows of 4,096 keys, deviations 0.5 to 2 for each map: on the right side in {right} of {total} settings; "
        f"with λ/2 alone, which takes both patterns for equally large, in {plain}"
    )
    return Found(measured, verdict(right >= 0.95 * total, right >= 0.8 * total))


def signed_sums_hide_noise() -> Found:
    table = measures.counted()
    plain, independent = table.iloc[0], table.iloc[1]
    signed, sized = "noise, with signs", "noise, by size"
    measured = (
        f"1,024 keys, independent noise, λ = 0.8: with signs {plain[signed]:.2f} → {independent[signed]:.2f}, "
        f"by size {plain[sized]:.2f} → {independent[sized]:.2f}"
    )
    return Found(
        measured, verdict(bool(independent[signed] < 0.2 * plain[signed] and independent[sized] > plain[sized]))
    )


def gradients_stay_aligned() -> Found:
    table = measures.gradient_setups()
    ratios = table["norm and scale"]
    default = ratios[(table.start == "default") & (table["tokens alike"] == 0)]
    near = ratios[(table.start == "Xavier") & (table["tokens alike"] > 0)]
    measured = (
        f"fresh layer 3, gradient of W_Q over a Transformer's at 32 to 512 tokens: {default.min():.1f} to {default.max():.1f} "
        f"(default start, unrelated tokens), {near.min():.1f} to {near.max():.1f} (Xavier, correlated at 0.5), "
        f"{ratios.min():.1f} to {ratios.max():.1f} over six settings: it depends on the start of the weights and on the tokens"
    )
    stays = (ratios < 2) & (ratios > 0.5)
    return Found(measured, weigh(stays, (ratios > 4) | (ratios < 0.25)))


def two_plain_heads() -> Found:
    gap = measures.as_two_heads()
    return Found(f"largest difference of the outputs {gap:.0e} (float64, 2 heads of width 16)", verdict(gap < 1e-12))


# Reported, not repeated at that size -------------------------------------------------------------------


def more_needles() -> Found:
    table = data.table("reported/differential_retrieval")
    ahead = int((table["diff"] > table.transformer).sum())
    measured = (
        f"models of 3B and 4K tokens are not trained here; reported ahead in {ahead} of {len(table)} rows, one run each"
    )
    by = table.set_index("needles")[["transformer", "diff"]].stack()
    numbers = {f"{name}, {n:g} needles": (float(x), None) for (n, name), x in by.items()}
    return Found(measured, quoted(numbers), numbers)


def more_answer_less_noise() -> Found:
    mean = data.table("reported/differential_attention_mass").mean()
    rest = 1 - mean.answer_diff - mean.noise_diff
    independent = measures.counted().iloc[1]
    measured = (
        f"not trained at 3B here; the table leaves {rest:.0%} of DIFF's attention out and does not say how signed rows "
        f"are normalised: independent noise sums to {independent['noise, with signs']:.2f} with signs, to "
        f"{independent['noise, by size']:.2f} by size"
    )
    return Found(measured, quoted())


def fewer_outliers() -> Found:
    table = data.table("reported/differential_outliers").pivot(index="activation", columns="model", values="largest")
    ratio = table["Transformer"] / table["DIFF Transformer"]
    listed = ", ".join(f"{name} {value:.1f} times" for name, value in ratio.items())
    return Found(f"models of 3B are not trained here; reported smaller: {listed}", quoted())


def start_of_lambda_hardly_matters() -> Found:
    loss = data.table("reported/differential_ablations").set_index("model").loss
    own = loss["DIFF Transformer"]
    gaps = [loss[f"DIFF, λ starts at {start}"] - own for start in (0.8, 0.5)]
    measured = (
        f"not trained at that size here; reported gaps {gaps[0]:.3f} and {gaps[1]:.3f}, one run each, no interval"
    )
    return Found(measured, quoted())


def head_norm_matters() -> Found:
    loss = data.table("reported/differential_ablations").set_index("model").loss
    cost, gain = (loss[name] - loss["DIFF Transformer"] for name in ("DIFF, no head norm", "Transformer"))
    halved, normed = (loss[f"Transformer, half the heads{more}"] for more in ("", ", head norm"))
    measured = (
        f"not trained at that size here; reported: without the norm {cost:.3f} worse, which is more than the whole gain "
        f"over a Transformer, {gain:.3f}; a Transformer with half the heads has {halved:.3f}, and {normed:.3f} with the norm"
    )
    return Found(measured, quoted())


def equal_loss(what: str) -> Found:
    """Equal loss for less: of parameters, or of tokens."""
    value = data.table("reported/differential_scaling").set_index("quantity").value
    share = value[f"share of {what}"]
    measured = f"curves of loss up to billions of parameters are not run here; reported {share:.1%}, one run a point"
    if what == "tokens":
        time = [share / value[f"throughput at {end}"] for end in ("most", "least")]
        measured += f"; at the lower throughput that is reported, {time[0]:.0%} to {time[1]:.0%} of the time"
    numbers = {f"share of {what}": (float(share), None)}
    return Found(measured, quoted(numbers), numbers)


# The critics, and other maps ---------------------------------------------------------------------------


def negative_attention_reaches_further() -> Found:
    plain, half, full = (measures.reach(lam) for lam in (0.0, 0.5, 1.0))
    two = measures.as_two_heads() < 1e-12
    measured = (
        f"cosine of a head's row with v0 - v1: at most {plain:.2f} (softmax), {half:.2f} (λ = 0.5), {full:.2f} (λ = 1); "
        "but two plain heads that share values make the same output"
    )
    return Found(measured, verdict(full > 0.99 > plain and not two, full > 0.99 > plain))


def learning_rather_than_noise() -> Found:
    own = measures.gradient_setups()["norm and scale"]
    measured = (
        "no models large enough are trained here; one difference at the start is there: gradients of W_Q are "
        f"{own.min():.1f} to {own.max():.1f} times a Transformer's"
    )
    return Found(measured, quoted())


def off_by_one_can_say_nothing() -> Found:
    low = {n: float(attention.softmax_off_by_one(torch.full((n,), -4.0)).sum()) for n in (16, 256, 4096)}
    limit = float(attention.softmax_off_by_one(torch.full((4096,), -40.0, dtype=torch.float64)).sum())
    listed = ", ".join(f"{total:.2f} over {n:,} keys" for n, total in low.items())
    measured = f"all logits -4: a row sums to {listed}; all -40: {limit:.0e} over 4,096"
    return Found(measured, verdict(limit < 1e-9 and max(low.values()) < 0.1, limit < 1e-9))


def scalable_softmax_keeps_the_peak() -> Found:
    found = {}
    for gap in (0.5, 2.0):
        for n in (100, 100_000):
            logits = torch.zeros(n, dtype=torch.float64)
            logits[0] = gap
            found[gap, n] = float(attention.scalable_softmax(logits)[0])
    kept = {gap: found[gap, 100_000] >= found[gap, 100] for gap in (0.5, 2.0)}
    listed = ", ".join(f"gap {gap:g}: {found[gap, 100]:.3f} → {found[gap, 100_000]:.3f}" for gap in kept)
    return Found(f"s = 1, from 100 to 100,000 keys, {listed}", verdict(all(kept.values()), kept[2.0]))


# The race ----------------------------------------------------------------------------------------------

SIZE = f"two layers of width 32, trained up to length {TRAINED}"


def _tested(agree: Iterable[bool], count: int) -> str:
    """The verdict on `count` comparisons, of which those that the test is sure of agree with the claim or do not."""
    sure = list(agree)
    unsure = [False] * (count - len(sure))
    return weigh(sure + unsure, [not each for each in sure] + unsure, run=bool(sure))


def _each_gap(entry: str, against: str, columns: dict[str, str]) -> tuple[str, dict[str, tuple[float, float]]]:
    """All gaps of some columns at retrieval in words, and by column the difference and its p value, corrected for their number."""
    rows = comparison.table()
    rows = rows[(rows.task == "retrieval") & (rows.learned == 1)]
    found = {}
    for column in columns:
        wide = rows.pivot(index="seed", columns="entry", values=column)[[against, entry]].dropna()
        found[column] = (*wide.mean(), significance.paired(wide[entry], wide[against]))
    p = dict(zip(found, significance.holm([row[2] for row in found.values()]), strict=True))
    words = ", ".join(
        f"{columns[c]} {number(theirs)} → {number(ours)} (p = {number(p[c])})" for c, (theirs, ours, _) in found.items()
    )
    return words, {c: (ours - theirs, p[c]) for c, (theirs, ours, _) in found.items()}


def race_differential_attends_to_the_answer() -> Found:
    columns = {
        f"{what}_{n}": f"{said} at {n}" for n in (16, 128) for what, said in (("answer", "answer"), ("noise", "noise"))
    }
    columns |= {"best_16": "answer in a question's best head at 16", "best_128": "the same at 128"}
    words, gaps = _each_gap("differential", HALF, columns)
    sure = {name: (gap > 0) != name.startswith("noise") for name, (gap, p) in gaps.items() if p < LEVEL}
    return Found(
        f"{SIZE}, retrieval, RoPE with half the heads → differential (as many heads), by size: {words}",
        _tested(sure.values(), len(gaps)),
    )


def race_differential_retrieves() -> Found:
    names = ["differential", "differential, version 2", "NoPE, differential"]
    found = (
        comparison.compare(comparison.table(), against=None).query("task == 'retrieval'").set_index("entry").loc[names]
    )
    listed = ", ".join(
        f"{name} against {ENTRIES[name].reference}: "
        + (row.verdict if row.gap != row.gap else f"{number(row.gap)} ({row.verdict}, p = {number(row.p)})")
        for name, row in found.iterrows()
    )
    sure = [row.verdict == "better" for _, row in found.iterrows() if row.verdict in ("better", "worse", EQUAL)]
    return Found(f"{SIZE}, log odds of a right answer at 32 to 128, gap: {listed}", _tested(sure, len(found)))


def race_differential_has_smaller_outliers() -> Found:
    words, gaps = _each_gap(
        "differential",
        HALF,
        {"outlier_logits": "logits", "outlier_states": "states", "quantisation_error": "error in 4 bits"},
    )
    sure = [gap < 0 for gap, p in gaps.values() if p < LEVEL]
    return Found(
        f"{SIZE}, largest over median, RoPE with half the heads → differential: {words}", _tested(sure, len(gaps))
    )


def race_subtraction_raises_signal_over_noise() -> Found:
    table = comparison.noises()
    listed = "; ".join(
        f"{name}: times {number(row.gain)} ({number(row.low)} to {number(row.high)})" for name, row in table.iterrows()
    )
    return Found(
        f"{SIZE}, retrieval at {LENGTHS[-1]}, in the layer that looks at the answer most, mean and 95% interval over "
        f"seeds: {listed}",
        _tested([row.low > 1 for _, row in table.iterrows() if row.low > 1 or row.high < 1], len(table)),
    )


def race_share_goes_with_right_answers() -> Found:
    rows = comparison.table()
    rho, _ = comparison.rank_correlation(rows)
    measured = (
        f"{SIZE}, retrieval at {LENGTHS[-1]}, rank correlation with the share right: "
        f"{comparison.correlations(rows)}; entries are no independent draws, and none was made to differ in its share alone, so "
        "this goes together and tells no cause"
    )
    return Found(measured, verdict(rho > 0.5))


def race_positions_are_not_enough() -> Found:
    rows = comparison.table()
    judged = {task: said for task, said in comparison.judge(rows)["H1"].items() if said != "not run"}
    best = rows[(rows.learned == 1) & rows.entry.isin(POSITIONS)].groupby(["task", "entry"])
    best = best[[f"best_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    listed = "; ".join(
        f"{task}: " + (", ".join(f"{name} {row.iloc[0]:.2f} ({row.iloc[1]:.2f} right)" for name, row in best.loc[task].iterrows())
        if task in best.index else "none has learned")
        for task in judged
    )  # fmt: skip
    refuted = [task for task in judged if judged[task].startswith("holds")]
    decided = all(not judged[task].startswith("not decided") for task in judged)
    return Found(
        f"{SIZE}, share on the answer at {LENGTHS[-1]} in the best head of each question: {listed}; opened: "
        f"{', '.join(refuted) or 'nothing'}",
        weigh([t not in refuted for t in judged], [t in refuted for t in judged], run=decided or bool(refuted)),
    )


def _than(entry: str, verdict: str) -> str:
    return f"{verdict} than {ENTRIES[entry].reference}" if verdict in ("better", "worse") else verdict


def physical(what: str) -> Found:
    """One way to read the talk's physical intervention: one of its entries opens each task that it ran."""
    won = comparison.successes(comparison.table())
    here = won[won.entry.isin(PHYSICAL[what]) & won.task.isin(LOOKED)]
    listed = "; ".join(
        f"{row.entry} at {row.task}: {_than(row.entry, row.verdict)}"
        + (f", {row.right:.2f} right, best head {row.best:.2f}" if row.verdict != "not learned" else "")
        + (", opened" if row.opens else "")
        for row in here.itertuples()
    )
    parts = [part for _, part in here.groupby("task")]
    helps, harms = [part.opens.any() for part in parts], [(part.verdict == "worse").all() for part in parts]
    run = bool((here.verdict != "not learned").any())
    return Found(f"{SIZE}, at {LENGTHS[-1]}: {listed}", weigh(helps, harms, run=run))


def race_local_and_global_opens_both() -> Found:
    rows = comparison.table()
    won = comparison.successes(rows).set_index(["entry", "task"])
    cells = {task: won.loc[MIXED, task] for task in ("retrieval", "last")}
    listed = ", ".join(
        f"{task} {row.right:.3f} right ({row.low:.3f} to {row.high:.3f}), best head {row.best:.2f}"
        for task, row in cells.items()
    )
    others = [name for name in comparison.all_kept(rows, list(cells)) if name != MIXED]
    return Found(
        f"{SIZE}, at {LENGTHS[-1]}: {listed}; it is not alone: so do {'; '.join(others) or 'none'}",
        weigh((row.success for row in cells.values()), (row.rope == "worse" for row in cells.values())),
    )


def race_sharper_map_reaches_further() -> Found:
    table = data.table("race_far").query("task == 'retrieval' and learned == 1").groupby("entry")
    means = table[[f"score_{n}" for n in (LENGTHS[-1], *FAR)]].mean()
    listed = "; ".join(f"{name} {', '.join(f'{x:.2f}' for x in row)}" for name, row in means.iterrows())
    ours, theirs = means.loc[MIXED_SCALED].iloc[-1], means.loc[MIXED].iloc[-1]
    return Found(
        f"{SIZE}, retrieval, right at {', '.join(map(str, (LENGTHS[-1], *FAR)))} ({table.size().min()} seeds): {listed}",
        verdict(ours >= KEPT > theirs, ours > theirs),
    )


def race_recall_takes_both() -> Found:
    won = comparison.successes(comparison.table()).query("task == 'recall'").set_index("entry")
    listed = "; ".join(
        f"{name} " + (f"{row.right:.2f}, best head {row.best:.2f}" if row.verdict != "not learned" else "not learned") + f" ({row.learned} of {row.seeds} seeds)"
        for name, row in won.iterrows()
    )  # fmt: skip
    parents = won.kept.get(BASELINE, False) or won.kept.get("NoPE", False)
    return Found(
        f"{SIZE}, right at {LENGTHS[-1]} pairs: {listed}",
        verdict(bool(won.kept[MIXED] and not parents), bool(won.kept[MIXED])),
    )


def race_positions_are_unseen() -> Found:
    table = comparison.seen(comparison.table())
    rows = comparison.table().query("task == 'retrieval' and learned == 1").groupby("entry")
    right = rows[[f"score_{LENGTHS[-1]}", f"best_{LENGTHS[-1]}"]].mean()
    (short, short_head, long, long_head, _), (random, head) = table.loc[BASELINE], right.loc[RANDOM]
    return Found(
        f"{SIZE}, retrieval at {LENGTHS[-1]}, right (best head): RoPE {short:.2f} ({short_head:.2f}); trained to {LENGTHS[-1]} "
        f"{long:.2f} ({long_head:.2f}); trained to {TRAINED} with random positions {random:.2f} ({head:.2f})",
        verdict(min(long, random) >= KEPT > short, max(long, random) - short > 1 - max(long, random)),
    )


def race_positions_decide() -> Found:
    found = comparison.compare(comparison.table())
    kinds = {
        "position encodings": POSITIONS,
        "maps on RoPE": [n for n in MAPS if "NoPE" not in n],
    }
    gaps, told, largest = {}, {}, {}
    for kind, names in kinds.items():
        here = found[found.entry.isin(names) & found.gap.notna()]
        largest[kind] = here.groupby("task").gap.apply(lambda gap: gap.abs().max())
        gaps[kind] = largest[kind].mean()
        told[kind] = int(here.verdict.isin(["better", "worse"]).sum()), len(here)
    (first, second), (a, b) = gaps.values(), told.values()
    apart = largest["position encodings"] - largest["maps on RoPE"]  # by task
    listed = ", ".join(
        f"{kind} {number(gaps[kind])} ({told[kind][0]} of {told[kind][1]} cells told apart)" for kind in kinds
    )
    return Found(
        f"{SIZE}: largest gap to RoPE in log odds among them, mean of the tasks: {listed}; NoPE counts for neither, and the "
        "difference of two largest gaps is not tested",
        verdict(bool((apart > 0).all()), first > second and a[0] * b[1] > b[0] * a[1]),
    )


def race_nothing_keeps_the_count() -> Found:
    rows = comparison.table()
    counting = rows[(rows.task == "counting") & rows.entry.isin(REMEDIES)]
    won = comparison.successes(rows)
    learned = won[(won.task == "counting") & (won.verdict != "not learned")]
    longest = f"score_{LENGTHS[-1]}"
    every, best = counting.groupby("entry")[longest].mean().sort_values(), learned.sort_values("right")
    outside = rows[(rows.task == "counting") & rows.entry.isin(OUTSIDE)].groupby("entry")[longest].mean()
    measured = f"{SIZE}: learned by {len(learned)} of {len(every)}"
    if len(learned):
        measured += (
            f"; share right at {LENGTHS[-1]}: RoPE {every[BASELINE]:.2f}, most of these {best.entry.iloc[-1]} "
            f"{best.right.iloc[-1]:.2f}, most of all {every.index[-1]} {every.iloc[-1]:.2f}"
        )
    measured += "".join(f"; outside the ranking {name} {value:.2f}" for name, value in outside.items())
    return Found(
        measured,
        verdict(bool((every < KEPT).all()), not learned.kept.any(), run=len(learned) > 0),
    )


# The paper's ablations, in the race's decoders ---------------------------------------------------------


def ablated(names: list[str], claimed: str) -> Found:
    """Some rows of the paper's ablations against their references: `claimed` is the verdict that agrees with the claim."""
    found = ablations.judged().loc[names]
    listed = "; ".join(
        f"{name} against {ablations.AGAINST[name]}: "
        + f"{row.gap:.3f} ({row.gap_low:.3f} to {row.gap_high:.3f})".replace("-", "−")
        + f", {row.verdict}"
        for name, row in found.iterrows()
    )
    sure = found.verdict[found.verdict.isin(["better", "worse", EQUAL])]
    return Found(
        f"{SIZE}, retrieval, log odds of a right answer at 32 to 128, gap and its 90% interval: {listed}",
        _tested((sure == claimed).tolist(), len(found)),
    )
