"""The claims of chapter 4's sources, each measured by a small function."""

import math
from collections.abc import Iterable
from fractions import Fraction

import pandas as pd

from course import counters, significance
from course.chapter4 import measures
from course.claims import Numbers, called
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


def wide_enough_counts() -> Numbers:
    return {
        "right": [measures.read_right(m, m, "tight", n, trials=5) for m in (8, 64, 128) for n in (16, 512, 4096)],
        "told": counting.mass_on_ones(1, 1) != counting.mass_on_ones(1000, 1000),
    }


def transition_at_the_vocabulary() -> Numbers:
    product = {n: [measures.read_right(64, d, "tight", n) for d in (48, 63, 64)] for n in (16, 4096)}
    solved = [measures.read_right(64, d, "random", 4096, readout="solved") for d in (62, 63)]
    return {"short": product[16], "long": product[4096], "solved": solved}


def merged_tokens_hide_items() -> Numbers:
    merged, separated = measures.hidden_letters()
    return {"merged": merged, "separated": separated, "ones": len(measures.pieces("1" * 100))}


def answers_are_round() -> Numbers:
    rounded, given = measures.round_answers()
    first = measures.answers().dropna().groupby("model", sort=False).answer.first()
    firsts = int((first % 10 == 0).sum())
    return {
        "rounded": rounded,
        "given": given,
        "interval": significance.share_interval(rounded, given),
        "firsts": firsts,
        "models": len(first),
        "alone": significance.share_interval(firsts, len(first))[0],
    }


def separators_help_with_314() -> Numbers:
    counts = {name: measures.against_ones(name) for name in ("comma_separated", "groups_of_five")}
    p = {name: significance.sign_test(better, worse) for name, (better, worse, _) in counts.items()}
    return {"counts": counts, "p": p}


def separators_help_in_training() -> Numbers:
    return {
        "accuracies": data.table("reported/counting_separator_base").accuracy_percent.tolist(),
        "above": {trials: measures.separated(trials) for trials in (100, 1000, 5000)},
        "constant": 100 * measures.best_constant(),
        "numbers": {"accuracy without separators (%)": (measures.PLAIN_ACCURACY, None)},
    }


def base_has_no_rule() -> Numbers:
    rho, p = measures.base_trend()
    best = float(data.table("reported/counting_separator_base").accuracy_percent.max())
    return {"rho": rho, "p": p, "best": best, "constant": 100 * measures.best_constant()}


def read_off(column: str) -> Numbers:
    """The means of what was read off the source's figures, by "task" or by "strategy", NaN where nothing was.

    With them the errors of always saying 100, by task and length.
    """
    given = data.table("reported/counting_figures").dropna(subset=["task", "strategy"])
    mean = given.groupby(column).value.mean()
    names = {"task": counting.TASKS, "strategy": counting.STRATEGIES}[column]
    lengths = measures.PAPER_LENGTHS
    guess = {task: dict(zip(lengths, measures.always(100, lengths, task), strict=True)) for task in counting.TASKS}
    return {"read": len(mean), "error": mean.reindex(names).to_dict(), "guess": guess}


def alike(a: float, b: float) -> bool:
    return max(a, b) <= 1.25 * min(a, b)


# Lab -----------------------------------------------------------------------------------------------------


def _short(runs: dict[str, pd.DataFrame]) -> float:
    """The share of right counts of four or of eight letters, mean of the seeds; the least over kinds of decoders."""
    return min(float(rows[["right_4", "right_8"]].mean().min()) for rows in runs.values())


def counting_error_grows() -> Numbers:
    runs = trained.chosen_runs(data.table("counting_trained"), "position encoding")
    answers = asked.long(data.table("counting_smollm2"))
    few = answers[answers.length <= 10]
    return {
        "errors": {name: [float(rows[f"error_{n}"].mean()) for n in (16, 24, 48)] for name, rows in runs.items()},
        "short": _short(runs),
        "right": int((few.error == 0).sum()),
        "few": len(few),
    }


def guesses_are_round(model: LanguageModel | None = None) -> Numbers:
    answers = asked.asked_of(model)
    given, few = answers.answer.dropna(), answers[answers.length <= 10]
    if not len(given):
        raise ValueError(f"{called(model)} named no number, so it cannot decide")
    tens = int((given % 10 == 0).sum())
    copied, after = asked.from_examples(answers)
    back, rounded, alone = asked.without_examples(answers)
    return {
        "answers": len(answers),
        "given": len(given),
        "tens": tens,
        "low": significance.share_interval(tens, len(given))[0],
        "hundred": int((given == asked.GUESS).sum()),
        "top": given.value_counts().idxmax(),
        "copied": copied,
        "after": after,
        "back": back,
        "rounded": rounded,
        "alone": alone,
        "right": int((few.error == 0).sum()),
        "few": len(few),
    }


MARGIN = 0.02  # of accuracy: what counts as no help


def commas_do_not_help_from_scratch() -> Numbers:
    table = data.table("counting_commas")
    return {
        "gaps": trained.comma_gaps(table),
        "plain": table[table.tokens == "characters"].inside.mean(),
        "beyond": trained.commas(table, "RoPE", "equal steps", "right_18"),
    }


def base_in_trained_decoders() -> Numbers:
    runs = trained.chosen_runs(data.table("counting_trained"), "base of RoPE")
    seeds = len(next(iter(runs.values())))
    bases = [base for base in trained.BASES for _ in range(seeds)]
    table = pd.concat(runs.values())
    ranks = {n: significance.rank_correlation(bases, table[f"right_{n}"]) for n in (18, 20, 24, 32)}
    return {
        "seeds": seeds,
        "inside": [float(rows.inside.mean()) for rows in runs.values()],
        "ranks": ranks,
        "p": [p for _, p in ranks.values()],
        "wide": max(significance.rank_interval(abs(rho), len(bases))[1] for rho, _ in ranks.values()),
        "short": _short(runs),
    }


def chunks_in_trained_decoders() -> Numbers:
    runs = trained.chosen_runs(data.table("counting_trained"), "tokens")
    inside = {name: rows[[f"right_{n}" for n in (4, 8, 12, 16)]].mean(axis=1).tolist() for name, rows in runs.items()}
    return {
        "plain": inside["characters"],
        "chunks": [inside[name] for name in ("chunks of 2", "chunks of 4")],
        "means": {name: sum(shares) / len(shares) for name, shares in inside.items()},
        "short": _short(runs),
    }


def last_token_is_lost_first() -> Numbers:
    table = data.table("copying_trained")
    controls = [f"control_{place}_{digit}" for place in trained.PLACES for digit in "01"]
    columns = ["encoding", "pairs", "first earlier", "last earlier", "p"]
    return {
        "lost": counters.first_against_last(table)[columns].values.tolist(),
        "steady": float((table[controls] == trained.NEVER).mean().mean()),
    }


def copying_fails_at_collapse() -> Numbers:
    table = data.table("copying_probed")
    right, read, control = (
        pd.concat([table[f"{kind}_{place}_{n}"] for place in trained.PLACES for n in trained.READ[1:]])
        for kind in ("right", "probe", "shuffled")
    )
    lost = read[right < 0.9]
    return {
        "cells": len(right),
        "lost": len(lost),
        "falls": int((lost < 0.95).sum()),
        "gone": int((lost < 0.75).sum()),
        "least": float(lost.min()),
        "control": float(control.mean()),
    }


def window_keeps_the_last() -> Numbers:
    table = data.table("copying_trained")
    rows, turns = table[table.window == 8], {}
    for place in trained.PLACES:  # of those that are right at all lengths of training
        at = [rows.loc[rows[f"short_{place}_{digit}"], f"turn_{place}_{digit}"] for digit in "01"]
        turns[place] = pd.concat(at).replace(trained.NEVER, math.inf).tolist()
    return {"reach": trained.SIZES["copying"]["layers"] * 7} | turns


def span(values: Iterable[float], form: str = "") -> str:
    """The least and the largest, or the one that there is."""
    low, high = (format(end, form) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _seeds(table: pd.DataFrame) -> list[int]:
    return table.groupby(["encoding", "longest", "width", "steps"]).seed.nunique().tolist()


def _nested(values: pd.Series) -> dict:
    """By the first level of the index, what the second one gives."""
    return {key: values[key].to_dict() for key in values.index.unique(0)}


def counting_is_hard_to_learn() -> Numbers:
    table, asked_ = counters.chosen(data.table("counting_inside")), data.table("counting_asked")
    means = table.groupby(["longest", "encoding"]).right_4.mean()
    ends = asked_[asked_.asked == "the end"].groupby(["steps", "encoding"]).right_16.mean()
    return {
        "seeds": _seeds(table),
        "means": _nested(means),
        "ends": _nested(ends),
        "learned": [*means, *ends[ends.index.max()[0]]],
    }


def counting_holds_within_training() -> Numbers:
    table = counters.chosen(data.table("counting_inside"))
    means = table.groupby(["encoding", "longest"])[["right_3", "right_4"]].mean()
    edge = data.table("counting_edge").groupby(["longest", "steps"])[["before_0", "before_16"]].mean()
    short, long = inside.STEPS_A_LETTER * 32, inside.STEPS_A_LETTER * 48
    names = table.encoding.unique()
    return {
        "seeds": _seeds(table),
        "before": {name: means.right_3[name].to_dict() for name in names},
        "last": {name: means.right_4[name].to_dict() for name in names},
        "edge": [edge.before_0[32, short], edge.before_0[32, 2 * short], edge.before_16[48, long]],
    }


def neighbours_come_nearer() -> Numbers:
    table = counters.chosen(data.table("counting_inside"))
    means = table.groupby(["encoding", "longest"]).gap.mean()
    ends = {name: [*means[name].iloc[[0, -1]].items()] for name in table.encoding.unique()}
    return {"seeds": _seeds(table), "ends": ends}


def scatter_decides() -> Numbers:
    table = counters.chosen(data.table("counting_inside"), "gap")

    def rank(column: str, rows: pd.DataFrame = table) -> float:
        return significance.rank_correlation(rows[column], rows.right_4)[0]

    return {
        "decoders": len(table),
        "scatter": (rank("spread"), *significance.rank_interval(rank("spread"), len(table))),
        "distance": (rank("gap"), *significance.rank_interval(rank("gap"), len(table))),
        "within": {name: rank("spread", rows) for name, rows in table.groupby("encoding")},
    }


def few_dimensions_tell_many_counts() -> Numbers:
    table = counters.chosen(data.table("counting_inside"), "width")
    least = table.groupby(["encoding", "width"])[["right_4", "bf16_right_4"]].min()
    return {
        "seeds": _seeds(table),
        "least": [*least.itertuples(name=None)],
        "narrow": table[table.width == table.width.min()].right_4.tolist(),
    }


def vocabulary_against_width() -> Numbers:
    table = data.table("counting_symbols").set_index(["symbols", "width"]).right
    return {
        "shares": _nested(table),
        "wide": [share for (symbols, width), share in table.items() if width >= symbols],
        "narrow": [share for (symbols, width), share in table.items() if width < symbols],
        "changes": table.sort_index().groupby("width").diff().dropna().tolist(),  # with more symbols
    }


READ = {"decoder": "right", "read-out": "left_out", "untrained": "untrained_left_out", "answer follows": "along"}


def the_count_is_there() -> Numbers:
    table, lengths = data.table("counting_probed"), [n for n in trained.PROBED if n > trained.LONGEST]
    means = table.groupby("encoding", sort=False).mean(numeric_only=True)

    def at(kind: str) -> list[str]:
        return [f"{kind}_{n}" for n in lengths]

    return {
        "lengths": lengths,
        "found": {name: {who: row[at(kind)].tolist() for who, kind in READ.items()} for name, row in means.iterrows()},
        "ratio": table[at("ratio")].max().tolist(),
        "shuffled": table[at("shuffled")].max().tolist(),
        "still": float(means[at("random") + at("against")].max().max()),
    }
