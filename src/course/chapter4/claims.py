"""The claims of chapter 4's sources, each measured by a small function."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import pandas as pd
import torch

from course import counters, significance
from course.chapter4 import measures
from course.claims import Found, Numbers, called, verdict, weigh
from course.experiments import asked, inside, trained
from helpers import counting, data
from helpers.models import LanguageModel


def _change(once: str, more: str, **setting) -> float:
    return float((counting.last_state(once, **setting) - counting.last_state(more, **setting)).abs().max())


def same_ratio_same_state() -> Numbers:
    pairs = [("10", "1100"), ("0111", "0111" * 25), ("1", "1" * 200)]
    return {
        "pairs": len(pairs),
        "largest": max(
            _change(*pair, layers=layers, seed=seed) for pair in pairs for layers in (1, 3) for seed in range(5)
        ),
        "masked": _change("10", "1100", causal=True),
        "other": _change("10", "110"),
    }


def a_first_token_counts() -> Numbers:
    lengths = (1, 2, 5, 10, 50, 200)
    return {
        "without": max(_change("1" * n, "1" * (n + 1)) for n in lengths),
        "within": min(_change("1" * n, "1" * (n + 1), first=True) for n in lengths),
        "read": [1 / Fraction(1, 1 + n) - 1 for n in range(5000)] == list(range(5000)),
    }


def collapse_ends_counting() -> Numbers:
    exact = all(Fraction(1, 1 + n) != Fraction(1, 2 + n) for n in range(5000))
    return {"exact": exact, "limits": {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")}}


def first_token_reach() -> Numbers:
    reach = {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")}
    return {
        "reach": reach,
        "still": [float(Fraction(1, 1 + limit) - Fraction(1, 2 + limit)) for limit in reach.values()],
        "network": {name: measures.misread(name) for name in ("bf16", "fp16")},
        "numbers": {f"largest count, {name}": (None, float(limit)) for name, limit in reach.items()},
    }


def wide_enough_counts() -> Found:
    right = [measures.read_right(m, m, "tight", n, trials=5) for m in (8, 64, 128) for n in (16, 512, 4096)]
    ratio = counting.mass_on_ones(1, 1) == counting.mass_on_ones(1000, 1000)
    measured = (
        f"sum of orthogonal codes, vocabularies 8 to 128, up to 4,096 tokens: {min(right):.0%} of the counts right, if n is "
        f"given: attention alone averages, and {'cannot' if ratio else 'can'} tell 1 of 2 from 1,000 of 2,000"
    )
    return Found(measured, verdict(min(right) == 1 and not ratio, min(right) == 1))


def transition_at_the_vocabulary() -> Found:
    share = {n: [measures.read_right(64, d, "tight", n) for d in (48, 63, 64)] for n in (16, 4096)}
    solved = [measures.read_right(64, d, "random", 4096, readout="solved") for d in (62, 63)]
    measured = (
        f"64 symbols, widths 48, 63, 64, counts right from the product with a code: {_percent(share[16])} with 16 tokens, "
        f"{_percent(share[4096])} with 4,096; always answering 0 gives {(63 / 64) ** 16:.0%} and "
        f"{(63 / 64) ** 4096:.0%}. Solved for the counts, with n known: {_percent(solved)} at widths 62 and 63, so "
        f"the step is at m - 1"
    )
    product = share[4096][1] < 0.5 and share[4096][2] == 1
    return Found(measured, verdict(product and solved[1] < 0.5, product or (solved[0] < 0.9 and solved[1] == 1)))


def _percent(shares: list[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def merged_tokens_hide_items() -> Found:
    (merged, separated), ones = measures.hidden_letters(), len(measures.pieces("1" * 100))
    measured = (
        f"embedded tokenizer, 200 strings of 19 letters x and y: {merged:.0%} of the letters share a token, "
        f"{separated:.0%} with commas. But 100 ones are {ones} tokens: digits are not merged"
    )
    hides = merged > 0.5 and separated == 0
    return Found(measured, verdict(hides and ones < 100, hides))


def answers_are_round() -> Found:
    rounded, given = measures.round_answers()
    low, high = significance.share_interval(rounded, given)
    first = measures.answers().dropna().groupby("model", sort=False).answer.first()
    firsts = int((first % 10 == 0).sum())
    alone = significance.share_interval(firsts, len(first))[0]
    measured = (
        f"{rounded} of {given} answers, 95% interval {low:.0%} to {high:.0%}, against 10% by chance; "
        f"of each model's first answer {firsts} of {len(first)}, from {alone:.0%}"
    )
    return Found(measured, verdict(low > 0.1 and alone > 0.1))


def separators_help_with_314() -> Found:
    found = {name: measures.against_ones(name) for name in ("comma_separated", "groups_of_five")}
    p = {name: significance.sign_test(*each[:2]) for name, each in found.items()}
    listed = "; ".join(
        f"{measures.WRITINGS[name]}: {better} nearer, {worse} farther, {equal} equal (p = {p[name]:.2f})"
        for name, (better, worse, equal) in found.items()
    )
    helps = all(better > worse for better, worse, _ in found.values())
    return Found(f"against 1111…, {listed}", verdict(helps, run=min(p.values()) < 0.05))


def separators_help_in_training() -> Found:
    table = data.table("reported/counting_separator_base")
    lowest, best = float(table.accuracy_percent.min()), float(table.accuracy_percent.max())
    above = {trials: measures.separated(trials) for trials in (100, 1000, 5000)}
    constant = 100 * measures.best_constant()
    listed = ", ".join(f"{k} of {len(table)} with {trials:,}" for trials, k in above.items())
    measured = (
        f"bases whose interval is above that without separators: {listed} strings a point (not reported); best "
        f"{best:.2f}%, while one constant answer gives {constant:.0f}% on such strings if y has probability 0.7"
    )
    return Found(
        measured,
        verdict(lowest > measures.PLAIN_ACCURACY, fit=best > constant),
        {"accuracy without separators (%)": (measures.PLAIN_ACCURACY, None)},
    )


def base_has_no_rule() -> Found:
    rho, p = measures.base_trend()
    best = float(data.table("reported/counting_separator_base").accuracy_percent.max())
    measured = (
        f"rank correlation {rho:+.2f}, p = {p:.2f}, over 10 bases; but no accuracy above {best:.2f}%, "
        "where no rule could show"
    )
    return Found(measured, verdict(p > 0.05, fit=best > 100 * measures.best_constant()))


def order_of_difficulty() -> Found:
    guess = {task: torch.tensor(measures.always(100, measures.PAPER_LENGTHS, task)).mean() for task in counting.TASKS}
    error = _read_off("task")
    listed = ", ".join(f"{mean:.0f} ({task})" for task, mean in guess.items())
    measured = (
        f"the source gives figures without numbers ({len(error)} of 4 tasks read off); always saying 100 has mean "
        f"errors {listed} over lengths 10 to 200, so part of the order needs no difficulty"
    )
    decided = set(error) == set(counting.TASKS)
    ordered = decided and error["zeros and ones"] < min(error["sum"], error["word"])
    ordered = ordered and max(error["sum"], error["word"]) < error["ones"]
    return Found(measured, verdict(ordered and _alike(error["sum"], error["word"]), ordered, run=decided))


def _read_off(column: str) -> dict[str, float]:
    """The mean of what was read off the source's figures, by task or by strategy."""
    given = data.table("reported/counting_figures").dropna(subset=["task", "strategy"])
    return given.groupby(column).value.mean().to_dict()


def _alike(a: float, b: float) -> bool:
    return max(a, b) <= 1.25 * min(a, b)


def order_of_strategies() -> Found:
    error = _read_off("strategy")
    measured = (
        f"numbers of {len(error)} of {len(counting.STRATEGIES)} strategies could be read off the source's figures"
    )
    decided = set(error) == set(counting.STRATEGIES)
    plain, steps, few = (error.get(name, 0.0) for name in counting.STRATEGIES)
    same = _alike(plain, steps)
    return Found(measured, verdict(same and not _alike(plain, few) and not _alike(steps, few), same, run=decided))


# Lab -----------------------------------------------------------------------------------------------------


def _by_encoding() -> dict[str, pd.DataFrame]:
    """The trained decoders that count, by position encoding; five of them, the seeds of each."""
    return trained.chosen_runs(data.table("counting_trained"), "position encoding")


def _able(runs: Iterable[pd.DataFrame]) -> bool:
    """Whether decoders of each kind can count strings of four and of eight letters: right in 90%, mean of the seeds."""
    return all(float(rows[["right_4", "right_8"]].mean().min()) >= 0.9 for rows in runs)


def counting_error_grows() -> Found:
    runs, lengths = _by_encoding(), trained.LENGTHS
    errors = {name: [float(rows[f"error_{n}"].mean()) for n in lengths] for name, rows in runs.items()}
    chosen = [lengths.index(n) for n in (16, 24, 48)]
    grows = {name: all(e[a] < e[b] for a, b in pairwise(chosen)) for name, e in errors.items()}
    asked_ = asked.long(data.table("counting_smollm2"))
    short = asked_[asked_.length <= 10]
    measured = (
        "decoders trained on 1 to 16 letters, mean error at 16, 24, 48: "
        + "; ".join(f"{name} " + ", ".join(f"{e[k]:.2f}" for k in chosen) for name, e in errors.items())
        + f". SmolLM2-135M cannot decide: right in {int((short.error == 0).sum())} of {len(short)} with at most 10 items"
    )
    both = all(grows.values()) and int((short.error == 0).sum()) >= len(short) / 2
    return Found(measured, verdict(both, all(grows.values()), able=_able(runs.values())))


def guesses_are_round(model: LanguageModel | None = None) -> Found:
    answers = asked.asked_of(model)
    given, short = answers.dropna(subset="answer"), answers[answers.length <= 10]
    if not len(given):
        raise ValueError(f"{called(model)} named no number, so it cannot decide")
    tens, hundred = int((given.answer % 10 == 0).sum()), int((given.answer == asked.GUESS).sum())
    low, _ = significance.share_interval(tens, len(given))
    top = given.answer.value_counts().idxmax()
    right, (copied, after) = int((short.error == 0).sum()), asked.from_examples(answers)
    back, round_, alone = asked.without_examples(answers)
    measured = (
        f"{called(model)}, {len(given)} numbers in {len(answers)} answers: {tens} multiples of ten (from {low:.0%}; chance "
        f"10%), {hundred} times 100, most often {top}; {copied} of {after} numbers after examples are an example's; "
        f"of {alone} without, {back} are the string and {round_} multiples of ten; right in {right} of {len(short)} with at most 10 items"
    )
    return Found(measured, verdict(low > 0.1 and top == asked.GUESS, low > 0.1, able=right >= len(short) / 2))


MARGIN = 0.02  # of accuracy: what counts as no help


def commas_do_not_help_from_scratch() -> Found:
    table = data.table("counting_commas")
    gaps = trained.comma_gaps(table)
    listed = "; ".join(f"{name} {gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})" for name, gap in gaps.items())
    plain = table[table.tokens == "characters"].inside.mean()
    beyond = trained.commas(table, "RoPE", "equal steps", "right_18")
    measured = (
        f"accuracy on 1 to {trained.LONGEST} letters with commas minus without, {next(iter(gaps.values())).seeds} seeds, 95% "
        f"interval: {listed}; without commas {plain:.2f}, so there was room; help of more than {MARGIN} counts; beyond the "
        f"training, at 18 letters: RoPE, equal steps {beyond.mean:+.3f} ({beyond.low:+.3f} to {beyond.high:+.3f})"
    )
    none = [gap.high < MARGIN for gap in gaps.values()]
    helped = [gap.low > MARGIN for gap in gaps.values()]
    return Found(measured, weigh(none, helped, run=any(none) or any(helped), fit=0.1 < plain < 0.98))


def base_in_trained_decoders() -> Found:
    runs = trained.chosen_runs(data.table("counting_trained"), "base of RoPE")
    lengths, seeds = (18, 20, 24, 32), len(next(iter(runs.values())))
    bases = [base for base in trained.BASES for _ in range(seeds)]
    inside = {name: float(rows.inside.mean()) for name, rows in runs.items()}
    ranks = {
        n: significance.rank_correlation(bases, [x for rows in runs.values() for x in rows[f"right_{n}"]])
        for n in lengths
    }
    listed = ", ".join(f"{n} letters {rho:+.2f} (p = {p:.2g})" for n, (rho, p) in ranks.items())
    measured = (
        f"ten bases, {seeds} seeds each: right on 1 to 16 letters {min(inside.values()):.2f} to {max(inside.values()):.2f}, "
        f"where no rule could show; rank correlation with the base beyond, at {listed}; a rule counts from p = .05 over "
        f"{len(lengths)} lengths on, no rule if all intervals stay within .5"
    )
    rule = min(p for _, p in ranks.values()) < 0.05 / len(lengths)
    wide = max(significance.rank_interval(abs(rho), len(bases))[1] for rho, _ in ranks.values())
    return Found(measured, verdict(not rule, run=rule or wide < 0.5, able=_able(runs.values())))


def chunks_in_trained_decoders() -> Found:
    runs = trained.chosen_runs(data.table("counting_trained"), "tokens")
    lengths = [f"right_{n}" for n in (4, 8, 12, 16)]
    inside = {name: rows[lengths].mean(axis=1).tolist() for name, rows in runs.items()}
    plain, chunks = inside["characters"], [inside[name] for name in ("chunks of 2", "chunks of 4")]
    listed = ", ".join(f"{name} {sum(x) / len(x):.3f}" for name, x in inside.items())
    worse = [max(each) < min(plain) - MARGIN for each in chunks]
    room = min(sum(x) / len(x) for x in inside.values()) < 1 - MARGIN
    measured = (
        f"RoPE, right at 4, 8, 12 and 16 letters at equal steps, mean of {len(plain)} seeds: {listed}; a loss of more than "
        f"{MARGIN} counts" + ("" if room else "; all are at the ceiling, where no loss could show")
    )
    better = [min(each) > max(plain) + MARGIN for each in chunks]
    return Found(measured, weigh(worse, better, able=_able(runs.values()), fit=room))


def _turns(rows: pd.DataFrame, place: str) -> list[float]:
    """The length at which each answer turns, infinity where it never does, if it is right at all lengths of training."""
    at = [turn for digit in "01" for turn in rows.loc[rows[f"short_{place}_{digit}"], f"turn_{place}_{digit}"]]
    return [float("inf") if turn == trained.NEVER else turn for turn in at]


def last_token_is_lost_first() -> Found:
    table = data.table("copying_trained")
    found = counters.first_against_last(table)
    listed = "; ".join(
        f"{row['encoding']} first earlier {row['first earlier']}, last earlier {row['last earlier']} of {row['pairs']} "
        f"(p = {row['p']:.3f})"
        for _, row in found.iterrows()
    )
    controls = [f"control_{place}_{digit}" for place in trained.PLACES for digit in "01"]
    steady = float((table[controls] == trained.NEVER).mean().mean())
    measured = f"which of the two is lost earlier, by encoding: {listed}; control, digits all alike: {steady:.0%} right"
    last = found["last earlier"] > found["first earlier"]
    first = ~last & (found["p"] < 0.05)
    return Found(measured, weigh(last, first, able=steady > 0.9 and int(found.pairs.min()) > 0))


def copying_fails_at_collapse() -> Found:
    table = data.table("copying_probed")
    right, read, control = (
        pd.concat([table[f"{kind}_{place}_{n}"] for place in trained.PLACES for n in trained.READ[1:]])
        for kind in ("right", "probe", "shuffled")
    )
    lost = right < 0.9
    there, falls, gone = (int(x.sum()) for x in (read[lost] >= 0.95, read[lost] < 0.95, read[lost] < 0.75))
    measured = (
        f"{int(lost.sum())} of {len(right)} cells (encoding, place, length 32, 64 or 128) have fewer than 90% right: in "
        f"{there} of them a linear read-out of the same state names the digit in 95% or more, in {falls} it falls as well, to "
        f"{read[lost].min():.0%} at the least, below 75% in {gone}; fitted to shuffled digits {control.mean():.0%}"
    )
    return Found(
        measured,
        verdict(
            gone > 0.9 * lost.sum(), falls > 0.5 * lost.sum(), run=lost.sum() >= 5, fit=bool(control.mean() < 0.65)
        ),
    )


def window_keeps_the_last() -> Found:
    table = data.table("copying_trained")
    rows = table[table.window == 8]
    reach = trained.SIZES["copying"]["layers"] * 7
    last, first = _turns(rows, "last"), _turns(rows, "first")
    kept, lost = sum(map(math.isinf, last)), sum(at <= reach + 1 for at in first)
    measured = (
        f"three layers with a window of 8 reach {reach} tokens back: the last digit is kept up to {trained.TURNS[-1]} in "
        f"{kept} of {len(last)}, the first is lost by {reach + 1} digits in {lost} of {len(first)} (at "
        f"{min(first, default=0):.0f} to {max(first, default=0):.0f})"
    )
    able = bool(last and first)
    return Found(measured, verdict(kept == len(last) and lost == len(first), kept > len(last) / 2, able=able))


def _seeds(table: pd.DataFrame) -> str:
    counts = table.groupby(["encoding", "longest", "width", "steps"]).seed.nunique()
    low, high = int(counts.min()), int(counts.max())
    return f"{low} seed{'s' * (low > 1)}" if low == high else f"{low} to {high} seeds"


def counting_is_hard_to_learn() -> Found:
    table, asked_ = counters.chosen(data.table("counting_inside")), data.table("counting_asked")
    means = table.groupby(["longest", "encoding"]).right_4.mean().unstack()
    listed = "; ".join(
        f"N = {n}: " + ", ".join(f"{name} {x:.3f}" for name, x in means.loc[n].dropna().items()) for n in means.index
    )
    ends = asked_[asked_.asked == "the end"].groupby(["steps", "encoding"]).right_16.mean().unstack()
    alone = "; ".join(f"{_span(ends.loc[steps])} after {steps:,} steps" for steps in ends.index)
    measured = (
        f"causal decoders, trained on strings of up to N letters with {inside.STEPS_A_LETTER} N steps of 16 strings and asked "
        f"after every letter, right at N letters, {_seeds(table)}: {listed}. Asked at the end alone, N = 16: {alone}"
    )
    learned = pd.Series([*means.stack().dropna(), *ends.loc[ends.index.max()]])
    return Found(measured, weigh(learned < 0.5, learned > 0.9))


def _span(shares: pd.Series) -> str:
    low, high = f"{shares.min():.3f}", f"{shares.max():.3f}"
    return low if low == high else f"{low} to {high}"


def counting_holds_within_training() -> Found:
    table, edge = counters.chosen(data.table("counting_inside")), data.table("counting_edge")
    means = table.groupby(["encoding", "longest"])[["right_3", "right_4"]].mean()
    names = list(dict.fromkeys(table.encoding))
    listed = "; ".join(
        f"{name} "
        + ", ".join(f"{row.right_3:.3f} and {row.right_4:.3f} ({n})" for n, row in means.loc[name].iterrows())
        for name in names
    )
    mean = edge.groupby(["longest", "steps"])[["before_0", "before_16"]].mean()
    short, long = inside.STEPS_A_LETTER * 32, inside.STEPS_A_LETTER * 48
    measured = (
        f"right at 3 N/4 and at N letters, N in brackets, {_seeds(table)}: {listed}; {trained.LEARNED} is held. RoPE at 32 "
        f"letters: {mean.before_0[32, short]:.4f} where training ends there, {mean.before_0[32, 2 * short]:.4f} with twice the "
        f"steps, {mean.before_16[48, long]:.4f} where it ends at 48, so that what fails is the last places of the range"
    )
    third = {name: float(means.loc[name].right_3.min()) for name in names}
    held = [
        third[name] >= trained.LEARNED and float(means.loc[name].right_4.iloc[-1]) >= trained.LEARNED for name in names
    ]
    return Found(measured, weigh(held, [share < trained.LEARNED for share in third.values()]))


def neighbours_come_nearer() -> Found:
    table = counters.chosen(data.table("counting_inside"))
    means = table.groupby(["encoding", "longest"]).gap.mean()
    names = list(dict.fromkeys(table.encoding))
    ends = {name: means.loc[name].iloc[[0, -1]] for name in names}
    measured = f"distance over the size of a state, {_seeds(table)}: " + "; ".join(
        f"{name} {end.iloc[0]:.2f} at {end.index[0]} letters, {end.iloc[1]:.2f} at {end.index[1]}"
        for name, end in ends.items()
    )
    nearer = [float(end.iloc[1]) < 0.8 * float(end.iloc[0]) for end in ends.values()]
    farther = [float(end.iloc[1]) > float(end.iloc[0]) for end in ends.values()]
    return Found(measured, weigh(nearer, farther))


def scatter_decides() -> Found:
    table = counters.chosen(data.table("counting_inside"), "gap")
    ranks = {name: significance.rank_correlation(table[name], table.right_4)[0] for name in ("spread", "gap")}
    ends = {name: significance.rank_interval(rho, len(table)) for name, rho in ranks.items()}
    listed = ", ".join(
        f"with the {said} {ranks[name]:+.2f} ({ends[name][0]:+.2f} to {ends[name][1]:+.2f})"
        for name, said in (("spread", "scatter over the distance"), ("gap", "distance"))
    )
    within = {
        name: significance.rank_correlation(rows.spread, rows.right_4)[0] for name, rows in table.groupby("encoding")
    }
    inner = ", ".join(f"{name} {rho:+.2f}" for name, rho in within.items())
    measured = (
        f"{len(table)} decoders trained up to 64 letters, rank correlation of right answers at 64, 95% interval: {listed}; with "
        f"the scatter within one encoding: {inner}, so that it tells encodings apart rather than decoders of one"
    )
    scatter, near = ends["spread"][1] < -0.3, ends["gap"][0] > 0.3
    each = scatter and max(within.values()) < -0.5
    return Found(measured, verdict(each and ends["gap"][1] < 0.3, scatter and not near))


def few_dimensions_tell_many_counts() -> Found:
    table = counters.chosen(data.table("counting_inside"), "width")
    listed = "; ".join(
        f"{name}, width {width} {rows.right_4.min():.3f} ({rows.bf16_right_4.min():.3f} in bf16)"
        for (name, width), rows in table.groupby(["encoding", "width"])
    )
    narrow = table[table.width == table.width.min()].right_4
    measured = f"right at 64 letters, the worst of {_seeds(table)}: {listed}; one number would give {1 / 65:.3f}"
    return Found(measured, weigh(narrow > 0.9, narrow < 0.5))


def vocabulary_against_width() -> Found:
    table = data.table("counting_symbols").set_index(["symbols", "width"]).right
    listed = "; ".join(
        f"{symbols} symbols " + ", ".join(f"{share:.2f} ({width})" for width, share in table.loc[symbols].items())
        for symbols in table.index.unique("symbols")
    )
    wide = [share for (symbols, width), share in table.items() if width >= symbols]
    narrow = [share for (symbols, width), share in table.items() if width < symbols]
    falls = all((rows.droplevel("width").sort_index().diff().dropna() < 0).all() for _, rows in table.groupby("width"))
    measured = (
        f"share of right counts, width in brackets: {listed}; one number would give {1 / inside.MOST:.2f}. The least where the "
        f"width is enough {min(wide):.2f}, the largest where it is not {max(narrow):.2f}"
    )
    step = min(wide) > max(narrow) + 0.1
    return Found(measured, verdict(falls and step, falls, able=max(wide) > 0.9))


PROBED = tuple(n for n in trained.PROBED if n > trained.LONGEST)


def the_count_is_there() -> Found:
    table = data.table("counting_probed")
    kinds = ("right", "left_out", "untrained_left_out", "along", "random", "against")
    found = {
        name: {kind: [float(row[f"{kind}_{n}"]) for n in PROBED] for kind in kinds}
        for name, row in table.groupby("encoding", sort=False).mean(numeric_only=True).iterrows()
    }
    trivial = {kind: [float(table[f"{kind}_{n}"].max()) for n in PROBED] for kind in ("ratio", "shuffled")}
    said = (
        ("decoder", "right"),
        ("read-out", "left_out"),
        ("untrained", "untrained_left_out"),
        ("answer follows", "along"),
    )
    measured = f"right at {', '.join(map(str, PROBED))} letters: " + "; ".join(
        f"{name} " + ", ".join(f"{word} " + _three(each[kind]) for word, kind in said) for name, each in found.items()
    )
    still = max(x for each in found.values() for kind in ("random", "against") for x in each[kind])
    measured += (
        f". Controls, at most: the share of y alone {_three(trivial['ratio'])}, shuffled counts {_three(trivial['shuffled'])}, "
        f"the state moved at random or backwards {still:.2f}"
    )
    there = [
        each["left_out"][0] >= 0.95
        and each["left_out"][0] > each["untrained_left_out"][0] + 0.2
        and sum(each["right"]) / len(PROBED) < 0.9
        for each in found.values()
    ]
    none = [each["left_out"][0] <= each["untrained_left_out"][0] for each in found.values()]
    fit = max(trivial["shuffled"]) < 0.3 and max(trivial["ratio"]) < 0.5
    return Found(measured, weigh(there, none, fit=fit))


def _three(shares: list[float]) -> str:
    return " ".join(f"{x:.2f}" for x in shares)


def lower_near_a_hundred() -> Found:
    ones, mixed = (measures.always(100, measures.PAPER_LENGTHS, task) for task in ("ones", "zeros and ones"))
    at = measures.PAPER_LENGTHS.index(100)
    measured = (
        f"always saying 100 is off by {ones[at]:.0f} at 100 ones and by {mixed[at]:.0f} at 100 zeros and ones, so a "
        f"fixed answer makes this pattern; the curves have no numbers ({len(_read_off('task'))} of 4 tasks read off)"
    )
    return Found(measured, verdict(ones[at] < mixed[at], run=len(_read_off("task")) == len(counting.TASKS)))
