"""Run what might have turned the claims of chapter 5, run: trained keys, heads matched in loss, one dose at a time."""

import itertools

import torch

from course.chapter5 import claims, measures
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from course.maths import rope_scaling
from helpers import data, models, rope


@turn(
    "gaussian_scores_do_not_decay",
    asked="queries and keys of a trained model in the place of Gaussian ones, as they are and with the keys shuffled among the tokens",
    survives=("under a tenth of the heads fall by a nat", lambda share: max(share.values()) < 0.1),
    turned=("over half of them do", lambda share: min(share.values()) > 0.5),
    measured="of the encoding it is true, of trained heads it is not: SmolLM2-135M, 270 heads, from distances of 1 to 8 to 180 to 249 the mean logit falls by a median of {median['prose']:.1f} nats on prose, {median['keys shuffled']:.1f} with shuffled keys, {median['random tokens']:.1f} on random tokens; by over a nat in {', '.join(f'{x:.0%}' for x in share.values())} of the heads, with random weights in {blank:.0%}",
)
def trained_keys() -> Numbers:
    """How far the logits of trained heads fall with the distance."""
    return claims.trained_heads_decay()


@turn(
    "rope_decays",
    asked="trained heads: is there decay in a model, though RoPE itself need not have any?",
    survives=("under a tenth of the heads fall by a nat", lambda share: max(share.values()) < 0.1),
    turned=("over half of them do", lambda share: min(share.values()) > 0.5),
    measured="for any distance a key can be built that is heard best there, and training does not build it: by over a nat over 250 tokens fall {', '.join(f'{x:.0%}' for x in share.values())} of the heads (prose, shuffled keys, random tokens), with random weights {blank:.0%}",
)
def trained_heads() -> Numbers:
    """How far the logits of trained heads fall with the distance."""
    return claims.trained_heads_decay()


@turn(
    "trained_heads_decay",
    asked="another stretch of the prose, each head's fall on it",
    survives=("over half of the heads fall by a nat there, too", lambda share: share > 0.5),
    turned=("under a tenth do", lambda share: share < 0.1),
    measured="another 256 tokens: median {median:.1f} nats, by over a nat in {share:.0%} of the heads",
)
def another_text() -> Numbers:
    """The fall of the mean logits on the next 256 tokens of the prose."""
    model = models.default()
    falls = measures.fall(measures.logits_by_distance(model, measures.prose(model, start=255)))
    return {"share": float((falls > 1).double().mean()), "median": float(falls.median())}


@turn(
    "fast_pairs_serve_places",
    asked="as a control other heads, drawn, so many that losing all their pairs costs as much",
    survives=(
        "in every text and draw the fastest quarter costs them less than the place heads",
        lambda pairs: all(other < own for own, other in pairs),
    ),
    turned=(
        "in half of them it costs as much",
        lambda pairs: 2 * sum(other >= own for own, other in pairs) >= len(pairs),
    ),
    measured="place heads ({count:.0f}), by quarter, fastest first: {', '.join(f'{x:.2f}' for x in own)} nats; {low:.0f} to {high:.0f} other heads at the same loss: {', '.join(f'{x:.2f}' for x in others)}; less for the fastest in {sum(b < a for a, b in pairs)} of {len(pairs)} cases",
)
def matched_in_loss() -> Numbers:
    """Measure the cost of each quarter in positional heads and in other heads matched in loss, and of pairs of the fastest."""
    table, quarters = data.table("silenced_matched"), list(measures.BAND_NAMES)
    inside, others = table[table["draw"] < 0].set_index("start"), table[table["draw"] >= 0]
    pairs = [(float(inside.fastest[each.start]), each.fastest) for each in others.itertuples()]
    return {
        "pairs": pairs,
        "own": inside[quarters].mean().tolist(),
        "others": others[quarters].mean().tolist(),
        "count": inside["heads"].iloc[0],
        "low": others["heads"].min(),
        "high": others["heads"].max(),
    }


@turn(
    "the_condition_is_needed",
    asked="one dose at a time: does the part in common order the slashes of decoders that were given the same?",
    survives=(
        "the rank correlation is above 0.5 within each dose",
        lambda within: min(within) > 0.5,
    ),
    turned=(
        "it is below 0 within most doses",
        lambda within: sum(x < 0 for x in within) > len(within) / 2,
    ),
    measured="{doses} doses: rank correlation within a dose {min(within):.2f} to {max(within):.2f} ({least} to {most} decoders each); of the doses' means {between:.2f}",
)
def within_a_dose() -> Numbers:
    """Rank correlation of the part in common with the slash on unseen tokens, within each dose and of their means."""
    rows = data.table("slash_common")
    rows = rows[(rows.spectrum == "RoPE") & (rows.steps == rows.steps.min())]
    rows = rows.assign(common=rows[["common_queries_unseen", "common_keys_unseen"]].min(axis=1))
    groups = rows.groupby(["part", "strength"])
    means = groups[["common", "slash_unseen"]].mean()
    within = [
        float(each["common"].corr(each["slash_unseen"], method="spearman")) for _, each in groups
    ]
    return {
        "doses": len(groups),
        "within": within,
        "between": float(means["common"].corr(means["slash_unseen"], method="spearman")),
        "least": int(groups.size().min()),
        "most": int(groups.size().max()),
    }


BASES, WIDTHS = (100.0, 200.0, 500.0), (32, 64, 256)


@turn(
    "larger_base_reaches_further",
    asked="heads of 32, 64 and 256 numbers in the place of 128, and tenfold steps from 100, 200 and 500",
    survives=(
        "the first negative sum moves out with every tenfold base",
        lambda first: all(a < b for each in first.values() for a, b in itertools.pairwise(each)),
    ),
    turned=(
        "in a head it does not",
        lambda first: any(a >= b for each in first.values() for a, b in itertools.pairwise(each)),
    ),
    measured="first negative sum, four tenfold bases from 100: {'; '.join(f'{width} numbers ' + ', '.join(f'{x:,}' for x in first[width, BASES[0]]) for width in WIDTHS)}; it moves out at {sum(a < b for each in first.values() for a, b in itertools.pairwise(each))} of {3 * len(first)} steps",
)
def other_heads() -> Numbers:
    """By head width and first base, the first negative sum of four tenfold bases."""
    return {
        "first": {
            (width, start): [rope.first_negative(width, start * 10**k, 1 << 18) for k in range(4)]
            for width in WIDTHS
            for start in BASES
        }
    }


@turn(
    "bound_decays",
    asked="heads of 64 and 256 numbers, bases of 100 and 500,000",
    survives=(
        "the bound falls below a fifth from a distance of 0 to 1,000, and not at every step",
        lambda falls, rises: max(falls.values()) < claims.FIFTH and min(rises.values()) > 0,
    ),
    turned=(
        "it does not fall below a fifth, or falls at every step",
        lambda falls, rises: max(falls.values()) >= claims.FIFTH or min(rises.values()) == 0,
    ),
    measured="at 1,000 over 0, and steps of the first 250 at which it rises: {'; '.join(f'{width} numbers, base {base:,.0f} {x:.2f}, {rises[width, base]}' for (width, base), x in falls.items())}",
)
def other_bounds() -> Numbers:
    """By head width and base, the bound at 1,000 over that at 0, and at how many of the first 250 steps it rises."""
    falls, rises = {}, {}
    for width, base in itertools.product((64, 256), (100.0, 500_000.0)):
        ends = rope_scaling.decay_bound(torch.tensor([0, 1000]), width, base)
        falls[width, base] = float(ends[1] / ends[0])
        steps = rope_scaling.decay_bound(torch.arange(251), width, base).diff()
        rises[width, base] = int((steps > 0).sum())
    return {"falls": falls, "rises": rises}


@turn(
    "base_for_a_context",
    asked="one digit of the base in the place of two",
    survives=(
        "in most contexts the smallest base that passes is another one, too",
        lambda same: 2 * sum(same) < len(same),
    ),
    turned=("in most it is the same", lambda same: 2 * sum(same) > len(same)),
    measured="to one digit the smallest base that passes is the published one in {sum(same)} of {len(same)} contexts; the largest ratio of the two is {ratio:.1f}",
)
def one_digit() -> Numbers:
    """By context, whether the smallest base that passes is the published one to one digit; and the largest ratio."""
    pairs = list(claims.base_for_a_context()["numbers"].values())
    return {
        "same": [f"{a:.0e}" == f"{b:.0e}" for a, b in pairs],
        "ratio": max(max(a / b, b / a) for a, b in pairs),
    }


@turn(
    "rope_makes_places",
    asked="other bases and widths of the head: 100, 10,000 and 500,000 at 64 and 128 numbers",
    survives=(
        "both heads reach a weight of 0.99 at every place up to 1,024",
        lambda reached: min(reached.values()) > 0.99 - 1e-9,
    ),
    turned=("one stays below a half", lambda reached: min(reached.values()) < 0.5),
    measured="least weight on the token itself or the one before, with the least scale for 4,096 tokens: {'; '.join(f'{width} numbers, base {base:,.0f} {x:.3f} (scales {scale[width, base]})' for (width, base), x in reached.items())}",
)
def other_frequencies() -> Numbers:
    """By width and base, the least weight that a diagonal and a previous-token head reach, and the scales that they take."""
    reached, scale = {}, {}
    for width, base in itertools.product((64, 128), (100.0, 10_000.0, 500_000.0)):
        theta = rope.frequencies(width, base)
        scales = [rope_scaling.slash_scale(theta, 4096, offset=offset) for offset in (0, 1)]
        weights = [
            rope_scaling.slash_attention(theta, 1024, k, each).diagonal(-k).min()
            for k, each in enumerate(scales)
        ]
        reached[width, base] = float(min(weights))
        scale[width, base] = " and ".join(f"{x:.2g}" for x in scales)
    return {"reached": reached, "scale": scale}


@turn(
    "training_makes_slashes",
    asked="each seed and offset by itself, and as a control decoders with the slowest quarter of the frequencies only, which hardly turn over 32 tokens",
    survives=(
        "each RoPE decoder is above 0.8, each one without positions and each control below 0.2",
        lambda slash: (
            min(slash["RoPE"]) > 0.8 and max(slash["NoPE"] + slash["slowest quarter"]) < 0.2
        ),
    ),
    turned=(
        "a RoPE decoder is below 0.2, or one without positions above 0.8",
        lambda slash: min(slash["RoPE"]) < 0.2 or max(slash["NoPE"]) > 0.8,
    ),
    measured="offsets 1 and 4, five seeds: {'; '.join(f'{name} {min(each):.2f} to {max(each):.2f}' for name, each in slash.items())}",
)
def each_seed() -> Numbers:
    """By spectrum, the slash of each decoder that was trained on offset 1 or 4 with the base 10,000."""
    rows = data.table("slash_emergence").query("shared == 0 and base == 10_000")
    names = ("RoPE", "NoPE", "slowest quarter")
    return {"slash": {name: rows[rows.spectrum == name].slash.tolist() for name in names}}


@turn(
    "fast_pairs_are_noise_between_the_ends",
    asked="three layers at each end left out in the place of one",
    survives=(
        "without the fastest quarter the layers between lose over half a nat in each text",
        lambda cost: min(cost) > 0.5,
    ),
    turned=(
        "they lose under a tenth of a nat in most texts",
        lambda cost: sorted(cost)[len(cost) // 2] < 0.1,
    ),
    measured="the layers but three at each end lose {min(cost):.2f} to {max(cost):.2f} nats without the fastest quarter of their pairs ({len(cost)} texts)",
)
def three_at_each_end() -> Numbers:
    """Measure the cost of ablating the fastest quarter in all layers but three at each end, by text."""
    rows = data.table("silenced_layers").query("heads == 'all but three at each end'")
    return {"cost": rows[rows.sink == "silenced"].fastest.tolist()}
