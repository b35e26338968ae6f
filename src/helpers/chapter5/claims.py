"""The claims of chapter 5's sources, each measured by a small function."""

import math

import pandas as pd
import torch

from helpers import data, rope
from helpers.chapter5 import measures
from helpers.claims import Found, claim, verdict
from helpers.sources import CHENG, COURSE, MEN, ROUND, SU, TALK

LESSON, LAB = "5-rope-frequencies/lesson#", "5-rope-frequencies/lab#"
FAR = [1, 10, 100, 1000, 10_000, 100_000]
CONTEXTS = {1 << k: f"{1 << (k - 10)}k" if k < 20 else "1M" for k in range(10, 21)}


@claim(
    source=SU,
    where="section 3.4.3, Eq. 35 to 37",
    statement="The upper bound of the score decays as the distance grows",
    reported="falls from 0 to 250 in the figure",
    shown=LESSON + '"RoPE decays with distance"',
)
def bound_decays() -> Found:
    bound = rope.decay_bound(torch.tensor([0, *FAR]), 128, 1e4)
    rises = int((rope.decay_bound(torch.arange(251), 128, 1e4).diff() > 0).sum())
    falls = bool(bound[4] < 0.2 * bound[0])
    listed = ", ".join(f"{value:.1f}" for value in bound.tolist())
    measured = (
        f"mean |S| at 0, {', '.join(f'{m:,}' for m in FAR)}: {listed}; it rises at {rises} of the first 250 steps"
    )
    return Found(measured, verdict(falls and not rises and bool((bound.diff() < 0).all()), falls))


@claim(
    source=TALK,
    where="slide on the decay of RoPE",
    statement="Under RoPE the attention of Gaussian vectors does not decay, up to a distance of 100,000",
    reported="no decay in a figure",
    shown=LESSON + "Three kinds of vectors, one bound",
)
def gaussian_scores_do_not_decay() -> Found:
    spread = measures.gaussian_spread(FAR)
    measured = (
        f"standard deviation over √d at {', '.join(f'{m:,}' for m in FAR)}: {', '.join(f'{x:.2f}' for x in spread)}"
    )
    return Found(measured, verdict(min(spread) > 0.9 and max(spread) < 1.1))


@claim(
    source=ROUND,
    where="Proposition 3.1",
    statement="For any query and any distance there is a key whose largest weight is at that distance",
    reported="for all non-zero queries",
    shown=LESSON + "Any distance can be the favourite",
)
def any_distance_can_be_the_favourite() -> Found:
    wanted = [0, 1, 50, 700, 5000, 9999]
    best = measures.favourites(wanted)
    return Found(f"wanted {wanted}, found {best}, among 10,000 distances", verdict(best == wanted))


@claim(
    source=ROUND,
    where="Proposition 3.2",
    statement="For Gaussian queries and keys the expected score is 0 at every distance",
    reported="0 for all distances",
    shown=LESSON + "Any distance can be the favourite",
)
def gaussian_scores_have_mean_zero() -> Found:
    means, errors = measures.gaussian_mean(FAR)
    worst = max(abs(m) / e for m, e in zip(means, errors, strict=True))
    measured = f"largest of {len(FAR)} means: {max(map(abs, means)):.3f} (d = 128), {worst:.1f} standard errors from 0"
    return Found(measured, verdict(worst < 4))


@claim(
    source=ROUND,
    where="Proposition 5.2; the talk",
    statement="Without position encoding no head is diagonal or previous-token on sequences with repeated tokens",
    reported="weight at most 1/2 on (BOS, x, x)",
    shown=LESSON + "A search that fails",
)
def no_positions_no_diagonal() -> Found:
    plain, turned = (measures.weights_without_positions(turn=turn) for turn in (False, True))
    measured = (
        f"{len(plain):,} random heads on (BOS, x, x): largest weight {float(plain.max()):.6f}; with their queries and keys "
        f"turned {float(turned.max()):.6f}, above one half in {float((turned > 0.5).double().mean()):.0%}"
    )
    return Found(measured, verdict(bool(plain.max() <= 0.5 + 1e-9 and turned.max() > 0.9)))


@claim(
    source=ROUND,
    where="Proposition 5.3; the talk",
    statement="With RoPE a head can be diagonal or previous-token on any sequence",
    reported="weight above 1 - ε for every ε and length",
    shown=LESSON + "RoPE can, for any sequence: at what price?",
)
def rope_makes_places() -> Found:
    theta = rope.frequencies(128, 1e4)
    scales = {offset: rope.slash_scale(theta, 4096, offset=offset) for offset in (0, 1)}
    reached = [float(rope.slash_attention(theta, 1024, k, scale).diagonal(-k).min()) for k, scale in scales.items()]
    measured = (
        f"d = 128, 4,096 tokens, weight 0.99: scale {scales[0]:.2f} (diagonal), {scales[1]:.2f} (previous); "
        f"one frequency of 1 needs {rope.slash_scale(torch.ones(1), 4096):.1e}"
    )
    return Found(measured, verdict(min(reached) > 0.99 - 1e-9))


@claim(
    source=ROUND,
    where="Proposition 6.1",
    statement="With one frequency no head attends to a content at every distance in long contexts",
    reported="for long enough sequences",
    shown=LESSON + "Low frequencies: similar against random",
)
def one_frequency_loses_content() -> Found:
    found = {theta: _first_below(theta) for theta in (1.0, 0.01, 1e-4)}
    turned = all(first is not None and abs(first - math.pi / 2 / theta) <= 1 for theta, first in found.items())
    listed = ", ".join(f"{first} (frequency {theta:g})" for theta, first in found.items())
    measured = f"only for a key equal to the query: it scores below an orthogonal one first at distance {listed}"
    return Found(measured, verdict(False, turned))


def _first_below(theta: float, far: int = 100_000) -> int | None:
    """The first distance below `far` at which a pair of equal vectors has a negative score."""
    query = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    m = torch.arange(far)
    scores = rope.rotate(query.expand(far, -1), m, torch.tensor([theta])) @ query[0]
    return next(iter((scores < 0).nonzero().flatten().tolist()), None)


@claim(
    source=MEN,
    where="Theorem 1",
    statement="A similar token leads a random one by 2 σ² Σ cos(m θ_i) on average",
    reported="closed form",
    shown=LESSON + "Low frequencies: similar against random",
)
def lead_is_the_cosine_sum() -> Found:
    distances = [1, 100, 1000, 4096]
    mean, error = measures.lead(distances)
    exact = 2 * rope.cosine_sum(torch.tensor(distances), 128, 1e4)
    worst = float(((mean - exact) / error).abs().max())
    pairs = ", ".join(f"{a:.1f} ({b:.1f})" for a, b in zip(mean.tolist(), exact.tolist(), strict=True))
    return Found(f"simulated (closed form) at {distances}: {pairs}; within {worst:.1f} s.e.", verdict(worst < 4))


def _bound_claim(context: int, name: str) -> None:
    """One published value, one claim."""
    published = data.table("reported/rope_base_bound").set_index("context").published[context]

    def measure() -> Found:
        found = measures.smallest_bases()[context]
        fails = rope.first_negative(128, float(published), context)
        same, near = f"{found:.1e}" == f"{published:.1e}", abs(found / published - 1) <= 0.4
        state = "passes" if fails is None else f"fails at distance {fails:,}"
        measured = f"smallest on the grid {found:,.0f} (d = 128); {published:,.0f} itself {state}"
        return Found(measured, verdict(same, near), {"base": (float(published), found)})

    measure.__name__ = f"base_for_{name}"
    claim(
        source=MEN,
        where="Table 2",
        statement=f"A context of {context:,} tokens needs a base of at least {published:.1e}",
        reported=f"{published:.1e}",
        shown=LESSON + "The base bounds the context",
    )(measure)


for _context, _name in CONTEXTS.items():
    _bound_claim(_context, _name)


@claim(
    source=MEN,
    where="Theorem 1, read as an interval",
    statement="Every base above the lower bound passes",
    reported='"a lower bound"; not stated as an interval',
    shown=LESSON + "The bases that pass are not an interval",
)
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


@claim(
    source=MEN,
    where="Table 1, read as a condition",
    statement="A shipped model has no negative sum within its context",
    reported="necessary for the context; Llama 2 is below the bound, Mistral's 1e6 above it",
    shown=LESSON + "Shipped models",
)
def shipped_models_obey() -> Found:
    rows = data.table("reported/rope_models")
    negative = [row.model for row in rows.itertuples() if rope.first_negative(row.width, float(row.base), row.context)]
    return Found(
        f"{len(negative)} of {len(rows)} shipped models have a negative sum within their context: {', '.join(negative)}",
        verdict(not negative),
    )


@claim(
    source=TALK,
    where="slide on low frequencies, as a question",
    statement="A larger base means more long-context ability",
    reported="asked, with an arrow up",
    shown=LESSON + "The bases that pass are not an interval",
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


@claim(
    source=ROUND,
    where="Table 2",
    statement="0.75-RoPE has a lower perplexity than RoPE and NoPE at two billion parameters",
    reported="wiki 4.4414 against 4.4627 (RoPE) and 4.8594 (NoPE)",
    shown=LESSON + "Stretching a model: changes to the spectrum",
)
def partial_rotation_helps() -> Found:
    rows = data.table("slash_emergence")
    loss = rows.groupby("spectrum").loss.mean()
    measured = (
        "not run at that size; in one layer that copies from 1 and 4 back (five seeds) the loss is "
        f"{loss['0.75-RoPE']:.4f} (0.75-RoPE), {loss['RoPE']:.4f} (RoPE), {loss['NoPE']:.2f} (NoPE)"
    )
    return Found(measured, verdict(False, decided=False))


@claim(
    source=TALK,
    where="slide on high frequencies",
    statement="High frequencies get small norms, but in the first and last layers",
    reported="a figure of Gemma 7B, from Barbero et al. (2025)",
    shown=LAB + "Which frequencies carry the norm?",
)
def fast_pairs_are_small_but_at_the_ends() -> Found:
    found = measures.default()
    norms = torch.stack([found.queries.mean(1), found.keys.mean(1)])
    share = (norms / norms.mean(-1, keepdim=True))[..., : norms.shape[-1] // 4].mean(-1)
    inner, ends = float(share[:, 1:-1].mean()), share[:, [0, -1]].mean(0).tolist()
    measured = (
        f"SmolLM2-135M, fastest quarter over the layer's mean (queries and keys): first layer {ends[0]:.2f}, "
        f"last {ends[1]:.2f}, between {inner:.2f}"
    )
    return Found(measured, verdict(inner < 0.9 and min(ends) > 1, inner < 0.9))


@claim(
    source=TALK,
    where="slide on high frequencies",
    statement="The first layers lean to previous-token heads, the last ones to diagonal heads",
    reported="layers 2 (of 28) and 28 of Gemma 7B in a figure",
    shown=LAB + "Diagonal and previous-token heads",
)
def first_layers_previous_last_diagonal() -> Found:
    best = measures.default().slashes[:, :, :2].max(1).values
    third = len(best) // 3
    early, late = best[:third].mean(0), best[-third:].mean(0)
    tops = [int(best[:, k].argmax()) + 1 for k in (0, 1)]
    measured = (
        f"SmolLM2-135M, best head a layer, (diagonal, previous): first third ({early[0]:.2f}, {early[1]:.2f}), last third "
        f"({late[0]:.2f}, {late[1]:.2f}); the strongest are in layers {tops[0]} and {tops[1]} of {len(best)}"
    )
    leans = bool(early[1] > early[0]) and bool(late[0] > late[1])
    return Found(measured, verdict(leans and tops[1] <= third and tops[0] > len(best) - third, leans))


@claim(
    source=TALK,
    where="slide on high frequencies, a conjecture",
    statement="Large rotations turn the scores of their pairs into noise",
    reported="conjectured",
    shown=LAB + "Silence a band",
)
def fast_pairs_are_noise() -> Found:
    model = measures.model_in_use()
    ids = measures.prose(model)
    plain = measures.probe.loss(model, ids)
    half = len(measures.probe.rotary_frequencies(model))
    with measures.probe.altered(model, measures.silence(measures.band(0, half), half)):
        without = measures.probe.loss(model, ids)
    measured = f"SmolLM2-135M, 256 tokens: loss {plain:.2f}, without the fastest quarter of the pairs {without:.2f}"
    return Found(measured, verdict(without - plain < 0.1))


@claim(
    source=CHENG,
    where="abstract",
    statement="Slash-dominant heads generalise to random tokens",
    reported="in open-source models",
    shown=LAB + "Do slash heads survive on random tokens?",
)
def slashes_survive_random_tokens() -> Found:
    natural, drawn = measures.default(), measures.default(0)
    shares = {}
    for offset, kind in ((1, "previous-token"), (0, "diagonal")):
        places = measures.slash_heads(natural, offset)
        kept = [place for place in places if float(drawn.slashes[place]) > 0.3]
        shares[kind] = (len(kept), len(places))
    measured = "SmolLM2-135M, heads above 0.3 on prose that stay so: " + ", ".join(
        f"{kept} of {count} {kind}" for kind, (kept, count) in shares.items()
    )
    kept, count = (sum(pair[k] for pair in shares.values()) for k in (0, 1))
    return Found(f"{measured}; {kept} of {count} in all", verdict(kept >= 0.9 * count, kept > count / 2))


@claim(
    source=CHENG,
    where="abstract, condition 1",
    statement="Queries and keys of slash-dominant heads are almost rank one",
    reported="in open-source models",
    shown=LAB + "Are their queries and keys nearly rank one?",
)
def slash_heads_are_rank_one() -> Found:
    table = measures.rank_table(measures.default())
    share = table[["share, queries", "share, keys"]].mean(axis=1)
    measured = (
        f"SmolLM2-135M, share of the largest squared singular value: {share['slash heads']:.2f} in "
        f"{table.heads['slash heads']:.0f} slash heads, {share['other heads']:.2f} in all others"
    )
    near = share["slash heads"] > 0.8
    return Found(measured, verdict(bool(near and share["other heads"] < 0.5), bool(near)))


@claim(
    source=CHENG,
    where="abstract, condition 2",
    statement="Medium and high frequencies make the slash",
    reported="in open-source models",
    shown=LAB + "Which frequencies make the slash?",
)
def fast_pairs_make_the_slash() -> Found:
    model, found = measures.model_in_use(), measures.default()
    table = measures.quarters(model, measures.prose(model), measures.slash_heads(found, 1))
    left = table["left out"]
    needed = bool(left[["fastest", "fast"]].max() < left[["slow", "slowest"]].min())
    some = bool(left.idxmin() in ("fastest", "fast"))
    listed = ", ".join(f"{name} {value:.2f}" for name, value in left.items())
    measured = f"SmolLM2-135M, previous-token heads: score {table.attrs['whole']:.2f}; without a quarter: {listed}"
    return Found(measured, verdict(needed, some))


@claim(
    source=CHENG,
    where="abstract, theorem",
    statement="Gradient descent on a shallow decoder with RoPE makes slash heads",
    reported="proved under the two conditions",
    shown=LAB + "A slash from nothing",
)
def training_makes_slashes() -> Found:
    means = _emerged("slash")
    measured = "one layer, 300 steps, mean of five seeds and two distances: " + _listed(means)
    return Found(measured, verdict(means["RoPE"] > 0.8 and means["NoPE"] < 0.2))


@claim(
    source=CHENG,
    where="abstract, last sentence",
    statement="Slash heads made by training generalise out of distribution",
    reported="proved under the two conditions",
    shown=LAB + "Five seeds, two distances, other tokens",
)
def trained_slashes_generalise() -> Found:
    uniform, unseen = (_emerged(column)["RoPE"] for column in ("slash_uniform", "slash_unseen"))
    measured = (
        f"one layer with RoPE, ten runs: {_emerged('slash')['RoPE']:.2f} as in training, {uniform:.2f} on uniform "
        f"tokens, {unseen:.2f} on tokens never seen"
    )
    return Found(measured, verdict(uniform > 0.8 and unseen > 0.8, uniform > 0.8))


@claim(
    source=COURSE,
    statement="Slow pairs alone do not learn a head at a distance of 4 in 300 steps",
    reported="expected from the lesson's toy",
    shown=LAB + "Five seeds, two distances, other tokens",
)
def slow_pairs_do_not_learn_it() -> Found:
    means, measured = _by_quarter(4)
    slow = max(means["third quarter"], means["slowest quarter"])
    return Found(measured, verdict(bool(slow < 0.2 and means["0.25-RoPE"] > 0.8)))


@claim(
    source=COURSE,
    where="Cheng et al. (2026), abstract, condition 2, from nothing",
    statement="Each quarter of the pairs but the slowest learns, alone, a head at a distance of 1 in 300 steps",
    reported="medium and high frequencies",
    shown=LAB + "Five seeds, two distances, other tokens",
)
def medium_pairs_learn_a_near_slash() -> Found:
    means, measured = _by_quarter(1)
    *faster, slowest = QUARTERS
    learned = all(means[name] > means["NoPE"] + 0.2 for name in faster)
    return Found(measured, verdict(bool(learned and means[slowest] < means["NoPE"] + 0.05)))


QUARTERS = ("0.25-RoPE", *measures.QUARTERS)  # from the fastest to the slowest


def _by_quarter(offset: int) -> tuple[pd.Series, str]:
    """Mean slash score at a distance by spectrum, and that of the quarters alone in words."""
    means = data.table("slash_emergence").query("offset == @offset").groupby("spectrum").slash.mean()
    return means, "fastest to slowest quarter alone, five seeds: " + ", ".join(
        f"{means[name]:.2f}" for name in QUARTERS
    )


def _emerged(column: str) -> dict[str, float]:
    return data.table("slash_emergence").groupby("spectrum", sort=False)[column].mean().to_dict()


def _listed(means: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in means.items())
