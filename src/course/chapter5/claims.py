"""The claims of chapter 5's sources, each measured by a small function."""

import math

import pandas as pd
import torch

from course.chapter5 import measures
from course.claims import Found, called, verdict, weigh
from course.experiments import protocol, slashes
from helpers import attention, data, models, probe, rope
from helpers.models import LanguageModel

RANDOM = ["random_1", "random_2", "random_3"]
FAR = [1, 10, 100, 1000, 10_000, 100_000]


def bound_decays() -> Found:
    bound = rope.decay_bound(torch.tensor([0, *FAR]), 128, 1e4)
    rises = int((rope.decay_bound(torch.arange(251), 128, 1e4).diff() > 0).sum())
    falls = bool(bound[4] < 0.2 * bound[0])
    listed = ", ".join(f"{value:.1f}" for value in bound.tolist())
    measured = (
        f"mean |S| at 0, {', '.join(f'{m:,}' for m in FAR)}: {listed}; it rises at {rises} of the first 250 steps"
    )
    return Found(measured, verdict(falls and not rises and bool((bound.diff() < 0).all()), falls))


def gaussian_scores_do_not_decay() -> Found:
    spread = measures.gaussian_scores(FAR, 20_000).std(0).tolist()
    measured = (
        f"standard deviation over √d at {', '.join(f'{m:,}' for m in FAR)}: {', '.join(f'{x:.2f}' for x in spread)}"
    )
    return Found(measured, verdict(min(spread) > 0.9 and max(spread) < 1.1))


def any_distance_can_be_the_favourite() -> Found:
    """For each distance a random query, and its key turned by that distance: where the largest of 10,000 logits is."""
    wanted, best = [0, 1, 50, 700, 5000, 9999], []
    theta, m = rope.frequencies(64, 1e4), torch.arange(10_000).double()
    queries = torch.randn(len(wanted), 1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for query, distance in zip(queries, wanted, strict=True):
        key = rope.rotate(query, torch.tensor([float(distance)]), theta)
        best.append(int((rope.rotate(key.expand(len(m), -1), -m, theta) @ query[0]).argmax()))
    return Found(f"wanted {wanted}, found {best}, among 10,000 distances", verdict(best == wanted))


def gaussian_scores_have_mean_zero() -> Found:
    scores = measures.gaussian_scores(FAR, 20_000) * math.sqrt(128)
    means = scores.mean(0).abs()
    worst = float((means / (scores.std(0) / math.sqrt(len(scores)))).max())
    measured = f"largest of {len(FAR)} means: {float(means.max()):.3f} (d = 128), {worst:.1f} standard errors from 0"
    return Found(measured, verdict(worst < 4))


def no_positions_no_diagonal() -> Found:
    plain, turned = (measures.weights_without_positions(turn=turn) for turn in (False, True))
    second = measures.second_layer_without_positions(64, 8 * 64**2)
    least = float(second.diagonal().min())
    measured = (
        f"first layer, {len(plain):,} random heads on (BOS, x, x): largest weight {float(plain.max()):.6f} (turned: "
        f"{float(turned.max()):.6f}); a head of the second layer on (BOS, x, …, x), 64 tokens: at least {least:.4f} on itself"
    )
    first = bool(plain.max() <= 0.5 + 1e-9 and turned.max() > 0.9)
    return Found(measured, verdict(first and least <= 0.5, first))


def rope_makes_places() -> Found:
    theta = rope.frequencies(128, 1e4)
    scales = {offset: rope.slash_scale(theta, 4096, offset=offset) for offset in (0, 1)}
    reached = [float(rope.slash_attention(theta, 1024, k, scale).diagonal(-k).min()) for k, scale in scales.items()]
    measured = (
        f"d = 128, 4,096 tokens, weight 0.99: scale {scales[0]:.2f} (diagonal), {scales[1]:.2f} (previous); "
        f"one frequency of 1 needs {rope.slash_scale(torch.ones(1), 4096):.1e}"
    )
    return Found(measured, verdict(min(reached) > 0.99 - 1e-9))


def one_frequency_loses_content() -> Found:
    """Whatever the angle between query and key, the score turns negative: a token with no score at all then leads."""
    found = {theta: _first_below(theta) for theta in (1.0, 0.01, 1e-4)}
    turned = [max(first) <= math.pi / theta + 1 for theta, first in found.items()]
    listed = ", ".join(f"{first[0]:,.0f} and {max(first):,.0f} ({theta:g})" for theta, first in found.items())
    measured = (
        "64 angles between query and key: every score is negative at some distance, for a key equal to the query first at, "
        f"for all angles at the latest by (frequency): {listed}"
    )
    return Found(measured, verdict(all(turned)))


def _first_below(theta: float, angles: int = 64) -> list[float]:
    """The first distance at which a query scores a key of each angle negatively, infinity where it never does."""
    around = torch.arange(angles, dtype=torch.float64) * 2 * math.pi / angles
    keys = torch.stack([around.cos(), around.sin()], 1)
    m = torch.arange(math.ceil(2 * math.pi / theta) + 2)
    turning = rope.rotate(torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(len(m), -1), m, torch.tensor([theta]))
    negative = turning @ keys.T < 0
    first = negative.int().argmax(0)
    return torch.where(negative.any(0), first.double(), math.inf).tolist()


def lead_is_the_cosine_sum() -> Found:
    distances = [1, 100, 1000, 4096]
    mean, error = measures.lead(distances)
    exact = 2 * rope.cosine_sum(torch.tensor(distances), 128, 1e4)
    worst = float(((mean - exact) / error).abs().max())
    pairs = ", ".join(f"{a:.1f} ({b:.1f})" for a, b in zip(mean.tolist(), exact.tolist(), strict=True))
    return Found(f"simulated (closed form) at {distances}: {pairs}; within {worst:.1f} s.e.", verdict(worst < 4))


def base_for(context: int) -> Found:
    published = data.table("reported/rope_base_bound").set_index("context").published[context]
    found = measures.smallest_bases()[context]
    fails = rope.first_negative(128, float(published), context)
    same = f"{found:.1e}" == f"{published:.1e}"
    facts = (
        f"smallest that passes on the grid: {found:,.0f}",
        f"a smaller one passes: {'no, to two digits' if same else 'yes' if found < published else 'no'}",
        f"{published:,.0f} itself {'passes' if fails is None else f'fails at distance {fails:,}'}",
    )
    return Found("; ".join(facts), verdict(same and fails is None, same), {"base": (float(published), found)})


def larger_bases_pass() -> Found:
    again = []
    for context, name in ((1024, "1k"), (4096, "4k"), (16384, "16k")):
        first = measures.smallest_bases()[context]
        bases = [first * (1 + k / 200) for k in range(1, 200)]
        failed = [base for base in bases if rope.first_negative(128, base, context) is not None]
        again.append((name, len(failed), max(failed, default=0.0)))
    listed = "; ".join(f"{name}: {count} of 199, the largest {last:,.0f}" for name, count, last in again)
    return Found(
        f"bases up to twice the smallest that fail: {listed}", verdict(not any(count for _, count, _ in again))
    )


def shipped_models_obey() -> Found:
    rows = data.table("reported/rope_models")
    negative = [row.model for row in rows.itertuples() if rope.first_negative(row.width, float(row.base), row.context)]
    return Found(
        f"{len(negative)} of {len(rows)} shipped models have a negative sum within their context: {', '.join(negative)}",
        verdict(not negative),
    )


def larger_base_reaches_further() -> Found:
    bases = [1e2, 1e3, 1e4, 1e5, 1e6]
    first = [rope.first_negative(128, base, 1 << 20) for base in bases]
    close = [rope.first_negative(128, base, 1 << 20) for base in (4300.0, 4350.0)]
    tenfold = first == sorted(first)
    measured = (
        f"first negative sum at {first} for bases 1e2 to 1e6; but {close[0]:,} at 4,300 and {close[1]:,} at 4,350"
    )
    return Found(measured, verdict(tenfold and close[1] >= close[0], tenfold))


def partial_rotation_helps() -> Found:
    turn = 31 * float(rope.frequencies(32, 1e4)[12])
    slopes = _rows("0.75-RoPE").slash.mean() - _rows("RoPE").slash.mean()
    measured = (
        "no model of this size is trained here, and in the decoders that are (32 tokens) the quarter that p-RoPE stops turns "
        f"by {turn:.2f} radian at most, so that 0.75-RoPE and RoPE are nearly the same (slash {slopes:+.2f}); Khan et al. (2026), arXiv "
        "2603.11611, report that turning about 10% of the dimensions reaches the loss of turning all"
    )
    return Found(measured, verdict(slopes > 0, fit=turn > math.pi / 2))


def fast_pairs_are_small_but_at_the_ends(model: LanguageModel | None = None) -> Found:
    found = _heads(model)
    norms = torch.stack([found.queries.mean(1), found.keys.mean(1)])
    share = (norms / norms.mean(-1, keepdim=True))[..., : norms.shape[-1] // 4].mean(-1)
    inner, ends = float(share[:, 1:-1].mean()), share[:, [0, -1]].mean(0).tolist()
    measured = (
        f"{called(model)}, fastest quarter over the layer's mean (queries and keys): first layer {ends[0]:.2f}, "
        f"last {ends[1]:.2f}, between {inner:.2f}"
    )
    return Found(measured, verdict(inner < 0.9 and min(ends) > 1, inner < 0.9))


def first_layers_previous_last_diagonal(model: LanguageModel | None = None) -> Found:
    best = _heads(model).slashes[:, :, :2].max(1).values
    third = len(best) // 3
    early, late = best[:third].mean(0), best[-third:].mean(0)
    tops = [int(best[:, k].argmax()) + 1 for k in (0, 1)]
    measured = (
        f"{called(model)}, best head a layer, (diagonal, previous): first third ({early[0]:.2f}, {early[1]:.2f}), last third "
        f"({late[0]:.2f}, {late[1]:.2f}); the strongest are in layers {tops[0]} and {tops[1]} of {len(best)}"
    )
    agree = [early[1] > early[0], late[0] > late[1], tops[1] <= third, tops[0] > len(best) - third]
    return Found(measured, weigh(agree, (not each for each in agree)))


def fast_pairs_are_noise_between_the_ends() -> Found:
    rows = data.table("silenced_layers").groupby("heads")[[*measures.BAND_NAMES, *RANDOM]].mean()
    between = rows.loc[[name for name, (_, inside) in measures.LAYERS.items() if not inside]]
    measured = "loss added without the fastest quarter (fast, slow, slowest; three random quarters): " + "; ".join(
        f"{name} {row.fastest:.2f} ({row.fast:.2f}, {row.slow:.2f}, {row.slowest:.2f}; {min(row[RANDOM]):.2f} to "
        f"{max(row[RANDOM]):.2f})"
        for name, row in between.iterrows()
    )
    least = between[list(measures.BAND_NAMES)].idxmin(axis=1) == "fastest"
    return Found(measured, verdict(bool((between.fastest < 0.1).all()), bool(least.all())))


def fast_pairs_are_noise(model: LanguageModel | None = None) -> Found:
    outside = _silenced("outside", model)
    measured = f"{called(model)}, loss added in the other heads without the fastest quarter (fast, slow, slowest), by threshold: "
    measured += "; ".join(
        f"{threshold:g}: {row.fastest:.2f} ({row.fast:.2f}, {row.slow:.2f}, {row.slowest:.2f})"
        for threshold, row in outside.iterrows()
    )
    dear = outside.fastest > 1.05 * outside.drop(columns="fastest").min(axis=1)
    return Found(measured, weigh(outside.fastest < 0.1, dear & (outside.fastest >= 0.1)))


def slow_pairs_carry_the_sink() -> Found:
    rows = data.table("silenced_layers").query("heads == 'outside'").groupby("sink")[list(measures.BAND_NAMES)].mean()
    left = rows.loc["kept"] / rows.loc["silenced"]
    measured = "loss added without a quarter, and with the logits on the first token kept: " + ", ".join(
        f"{name} {rows.loc['silenced', name]:.2f} and {rows.loc['kept', name]:.2f}" for name in measures.BAND_NAMES
    )
    fast = bool((left[["fastest", "fast"]] > 0.9).all()) and rows.loc["kept"].idxmin() == "fastest"
    return Found(
        measured, verdict(fast and bool((left[["slow", "slowest"]] < 0.8).all()), fast and bool(left.slow < 0.8))
    )


def fast_pairs_serve_places(model: LanguageModel | None = None) -> Found:
    inside, control = (_silenced(where, model) for where in ("inside", "control"))
    most = (inside.idxmax(axis=1) == "fastest") & (control.idxmax(axis=1) != "fastest")
    measured = "; ".join(
        f"above {t:g}: {inside.fastest[t]:.2f} (the next {inside.drop(columns='fastest').loc[t].max():.2f}), in as many "
        f"others {control.fastest[t]:.2f}"
        for t in most.index
    )
    return Found(f"{called(model)}, loss added without the fastest quarter, {measured}", weigh(most, ~most))


def other_heads_need_fast_pairs_least(model: LanguageModel | None = None) -> Found:
    outside = _silenced("outside", model)
    next_least = outside.drop(columns="fastest").min(axis=1)
    least = outside.fastest < 0.95 * next_least
    measured = "; ".join(
        f"above {t:g}: {outside.fastest[t]:.2f} (the least of the others {next_least[t]:.2f})" for t in least.index
    )
    return Found(
        f"{called(model)}, loss added without the fastest quarter, {measured}",
        weigh(least, outside.fastest > 1.05 * next_least),
    )


def _none(model: LanguageModel | None) -> str:
    return f"no head of {called(model)} looks at one distance, so it cannot decide"


def _heads(model: LanguageModel | None, seed: int | None = None, text: int = 0) -> measures.Heads:
    """Every head of the model on a stretch of the prose, or on random tokens of a seed."""
    return measures.seen(model or models.default(), seed, text)


def _silenced(where: str, model: LanguageModel | None) -> pd.DataFrame:
    """Loss added by silencing each quarter of the pairs in these heads, mean of the texts, by threshold."""
    rows = measures.silenced_table(model)
    rows = rows[(rows["where"] == where) & (rows.threshold > 0) & (rows.heads > 0)]
    if rows.empty:
        raise ValueError(_none(model))
    return rows.groupby("threshold")[list(measures.BAND_NAMES)].mean()


def previous_token_is_the_sink(model: LanguageModel | None = None) -> Found:
    found = _heads(model)
    previous, sinks = found.slashes[..., 1] > attention.STRONG, found.sinks > attention.STRONG
    if not bool(previous.any()):
        raise ValueError(_none(model))
    both, chance = int((previous & sinks).sum()), float(previous.sum() * sinks.double().mean())
    measured = (
        f"{called(model)}, heads above 0.3: {int(previous.sum())} previous-token, {int(sinks.sum())} sink, {both} both "
        f"({chance:.1f} by chance); mean weight of the previous-token heads on the first token "
        f"{float(found.sinks[previous].mean()):.2f}"
    )
    return Found(measured, verdict(both == int(previous.sum()), both > chance))


def positions_alleviate() -> Found:
    scores, names = _scores(), ("RoPE", "ALiBi", "NoPE")
    gains = {(task, n): scores.loc[task, n] for task in ("last", "retrieval") for n in (16, 128)}
    listed = (
        f"{task} (chance {protocol.CHANCE[task]:g}) "
        + ", ".join(f"{name} {gains[task, 16][name]:.2f} {gains[task, 128][name]:.2f}" for name in names)
        for task in ("last", "retrieval")
    )
    seeds = data.table("race").seed.nunique()
    measured = f"decoders trained on up to 16 tokens, {seeds} seeds, accuracy at 16 and 128: " + "; ".join(listed)
    better = {place: max(row[e] - row.NoPE for e in ("RoPE", "ALiBi")) for place, row in gains.items()}
    places = ", ".join(f"{task} at {n}" for (task, n), gain in better.items() if gain > 0.1)
    worse = ", ".join(f"{task} at {n}" for (task, n), row in gains.items() if min(row.RoPE, row.ALiBi) < row.NoPE - 0.1)
    measured += f". One of the two is better than none by more than 0.1: {places or 'nowhere'}; one is worse: {worse or 'nowhere'}"
    return Found(measured, verdict(max(better.values()) > 0.1))


def _scores() -> pd.DataFrame:
    """Accuracy by question and length (rows) and encoding (columns), mean of the seeds."""
    rows = data.table("race").melt(["task", "entry"], [f"score_{n}" for n in (16, 128)], "n", "score")
    rows["n"] = rows.n.str.removeprefix("score_").astype(int)
    return rows.groupby(["task", "n", "entry"]).score.mean().unstack()


def slashes_survive_random_tokens(model: LanguageModel | None = None) -> Found:
    natural, listed, total = _heads(model), [], [0, 0]
    for other, name in ((_heads(model, text=1), "another text"), (_heads(model, seed=0), "random tokens")):
        shares = {}
        for offset, kind in ((1, "previous-token"), (0, "diagonal")):
            places = measures.slash_heads(natural, offset)
            shares[kind] = (sum(float(other.slashes[place]) > attention.STRONG for place in places), len(places))
        listed.append(f"on {name} " + ", ".join(f"{kept} of {count} {kind}" for kind, (kept, count) in shares.items()))
        total = [sum(pair[k] for pair in shares.values()) for k in (0, 1)]
    kept, count = total
    if not count:
        raise ValueError(_none(model))
    return Found(
        f"{called(model)}, heads above 0.3 on prose that stay so: {'; '.join(listed)}",
        verdict(kept >= 0.9 * count, kept > count / 2),
    )


def slash_heads_are_rank_one(model: LanguageModel | None = None) -> Found:
    table = measures.rank_table(_heads(model))
    if not table.heads.get("slash heads"):
        raise ValueError(_none(model))
    share = table[["share, queries", "share, keys"]].mean(axis=1)
    measured = (
        f"{called(model)}, share of the largest squared singular value: {share['slash heads']:.2f} in "
        f"{table.heads['slash heads']:.0f} slash heads, {share['other heads']:.2f} in all others"
    )
    near = share["slash heads"] > 0.8
    return Found(measured, verdict(bool(near and share["other heads"] < 0.5), bool(near)))


def fast_pairs_make_the_slash(model: LanguageModel | None = None) -> Found:
    """The mean slash score of the previous-token heads with one quarter of the pairs left out of their logits."""
    read, heads = model or models.default(), measures.slash_heads(_heads(model), 1)
    if not heads:
        raise ValueError(_none(model))
    theta, parts = probe.rotary_frequencies(read), probe.queries_and_keys(read, measures.prose(read))

    def score(pairs: set[int]) -> float:
        one = [[x[head : head + 1] for x in parts[layer]] for layer, head, _ in heads]
        return sum(float(measures.weights(*each, theta, pairs)[0].diagonal(-1).mean()) for each in one) / len(one)

    every = set(range(len(theta)))
    left = pd.Series({
        name: score(every - set(measures.band(k, len(theta)))) for k, name in enumerate(measures.BAND_NAMES)
    })  # fmt: skip
    needed = bool(left[["fastest", "fast"]].max() < left[["slow", "slowest"]].min())
    listed = ", ".join(f"{name} {value:.2f}" for name, value in left.items())
    measured = f"{called(model)}, previous-token heads: score {score(every):.2f}; without a quarter: {listed}"
    return Found(measured, verdict(needed, left.idxmin() in ("fastest", "fast")))


def training_makes_slashes() -> Found:
    means = {name: _rows(name).slash.mean() for name in slashes.SPECTRA}
    listed = ", ".join(f"{name} {value:.2f}" for name, value in means.items())
    measured = f"one layer, 300 steps, mean of five seeds and two distances: {listed}"
    return Found(measured, verdict(means["RoPE"] > 0.8 and means["NoPE"] < 0.2))


def trained_slashes_generalise() -> Found:
    rows = _rows("RoPE", 1.0)
    unseen, without = rows.slash_unseen, rows.slash_unseen_without.mean()
    plain, none = _rows("RoPE").slash_unseen.mean(), _rows("NoPE", 1.0).slash_unseen.mean()
    measured = (
        f"one layer with RoPE, {len(rows)} runs, tokens never seen, embeddings that share a vector: {unseen.min():.2f} to "
        f"{unseen.max():.2f}; vector taken from these tokens {without:.2f}; none shared {plain:.2f}; no positions {none:.2f}"
    )
    holds = unseen.min() > 0.8 and none < 0.2
    return Found(measured, verdict(bool(holds), bool(_rows("RoPE", 3.0).slash_unseen.min() > 0.8 and none < 0.2)))


def the_condition_is_needed() -> Found:
    rows = _shared()
    part, slash = rows[["common_queries_unseen", "common_keys_unseen"]].min(axis=1), rows.slash_unseen
    order = float(part.corr(slash, method="spearman"))
    low, high, taken = slash[part < 0.6], slash[part > 0.8], rows[rows.strength == 1].slash_unseen_without
    measured = (
        f"{len(rows)} decoders, unseen tokens: rank correlation of the part in common with the slash {order:.2f}; part below "
        f"0.6: slash at most {low.max():.2f}; above 0.8: at least {high.min():.2f}; the vector taken away after training: at "
        f"most {taken.max():.2f}"
    )
    ordered = bool(order > 0.9 and max(low.max(), taken.max()) < 0.5 < high.min())
    return Found(measured, verdict(ordered, bool(max(low.max(), taken.max()) < 0.5)))


def _shared(spectrum: str = "RoPE") -> pd.DataFrame:
    """The decoders with a vector in the embeddings, in the layer norm, or nowhere, trained equally long."""
    rows = data.table("slash_common")
    return rows[(rows.spectrum == spectrum) & (rows.steps == rows.steps.min())]


def training_makes_rank_one() -> Found:
    rows, none = _rows("RoPE"), _rows("NoPE")
    means = {
        kind: (rows[f"share_queries_{kind}"].mean(), rows[f"share_keys_{kind}"].mean())
        for kind in ("untrained", "uniform", "unseen")
    }
    control = none.share_queries_uniform.mean()
    measured = "share of the largest squared singular value, (queries, keys): " + "; ".join(
        f"{name} ({means[kind][0]:.2f}, {means[kind][1]:.2f})"
        for kind, name in (("untrained", "before"), ("uniform", "after"), ("unseen", "after, unseen tokens"))
    )
    measured += f"; without positions, which learn no slash, queries {control:.2f}"
    raised = min(means["uniform"]) > 0.8 > 0.5 > max(means["untrained"])
    return Found(measured, verdict(bool(raised and control < 0.5), bool(raised)))


def slow_pairs_do_not_learn_it() -> Found:
    turning, still = (_rows("slowest quarter", base=base, offset=4).slash for base in (slashes.SHORT_BASE, 1e4))
    third = _rows("third quarter", offset=4).slash
    fast = min(_rows("0.25-RoPE", base=base, offset=4).slash.mean() for base in (slashes.SHORT_BASE, 1e4))
    measured = (
        f"slowest quarter alone: {turning.mean():.2f} where it turns by 1 radian over the text (base 100), "
        f"{still.mean():.2f} where it hardly turns; third quarter {third.mean():.2f}; fastest at least {fast:.2f}"
    )
    slow = max(turning.mean(), third.mean())
    return Found(measured, verdict(bool(slow < 0.2 and fast > 0.8), bool(third.mean() < 0.2 and fast > 0.8)))


def medium_pairs_learn_a_near_slash() -> Found:
    names = ("0.25-RoPE", *slashes.QUARTERS)  # from the fastest to the slowest
    means = {name: _rows(name, offset=1).slash.mean() for name in (*names, "NoPE")}
    measured = "fastest to slowest quarter alone, five seeds: " + ", ".join(f"{means[name]:.2f}" for name in names)
    learned = [means[name] > means["NoPE"] + 0.2 for name in names]
    return Found(measured, verdict(all(learned[:3]) and not learned[3], all(learned[:2])))


def _rows(spectrum: str, shared: float = 0.0, base: float = 1e4, offset: int | None = None) -> pd.DataFrame:
    """The trained decoders of one spectrum."""
    rows = data.table("slash_emergence")
    rows = rows[(rows.spectrum == spectrum) & (rows.shared == shared) & (rows.base == base)]
    return rows if offset is None else rows[rows.offset == offset]
