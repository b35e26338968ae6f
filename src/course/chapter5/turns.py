"""What might have turned the claims of chapter 5, run: trained keys, heads matched in loss, one dose at a time."""

from course.chapter5 import claims, measures
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from helpers import data, models


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
    """What each quarter costs heads that look at a place and other heads matched in loss; pairs of the fastest."""
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
