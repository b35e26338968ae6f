"""Measure the claims of chapter 5.

Each function belongs to a row of the chapter's table, and this row states the claim in words.
"""

import itertools
import math
from collections.abc import Sequence

import pandas as pd
import torch

from course.chapter5 import measures
from course.evidence import null_controls
from course.evidence.claims import called
from course.evidence.rules import Numbers, Threshold, beyond, rule
from course.maths import rope_scaling
from course.runs import protocol, slashes
from helpers import attention, data, models, probe, rope
from helpers.models import LanguageModel

FAR = [1, 10, 100, 1000, 10_000, 100_000]
QUARTERS = list(measures.BAND_NAMES)
EVEN = Threshold(1)
NONE = Threshold(0)

# Test closed forms --------------------------------------------------------------------------------


FIFTH = Threshold(0.2)


@rule(
    holds=(
        ("the bound falls at every step of the first 250, and from each distance to the next"),
        lambda bound, rises: (
            bound[4] < FIFTH * bound[0]
            and not rises
            and all(a > b for a, b in itertools.pairwise(bound))
        ),
    ),
    part=(
        (
            f"the bound falls below {FIFTH:g} of its value from distance 0 to 1,000, but not at "
            "every step"
        ),
        lambda bound: bound[4] < FIFTH * bound[0],
    ),
    nothing=("a bound that stays", lambda bound: {"bound": [bound[0]] * len(bound)}),
)
def bound_decays() -> Numbers:
    """Measure RoFormer's bound at distance 0 and at the distances in `FAR`.

    The result also counts the steps of one token, among the first 250 distances, at which the
    bound rises.
    """
    steps = rope_scaling.decay_bound(torch.arange(251), 128, 1e4).diff()
    return {
        "bound": rope_scaling.decay_bound(torch.tensor([0, *FAR]), 128, 1e4).tolist(),
        "rises": int((steps > 0).sum()),
    }


ERRORS, LOW, HIGH = Threshold(4), Threshold(0.9), Threshold(1.1)


@rule(
    "gaussian_scores_do_not_decay",
    holds=(
        (
            f"every mean score is within {ERRORS:g} standard errors of 0, and the standard "
            f"deviation of the scores stays between {LOW:g} and {HIGH:g} of √d up to a distance of "
            "100,000"
        ),
        lambda errors, spread: errors < ERRORS and min(spread) > LOW and max(spread) < HIGH,
    ),
    nothing=("scores that decay, by a tenth each tenfold", {"spread": [0.9**k for k in range(6)]}),
)
def gaussian_scores() -> Numbers:
    """Measure how much the scores of random queries and keys vary, at the distances in `FAR`.

    Returns:
        `spread`: the standard deviation of the scores divided by √d, for each distance.
        `mean`: the largest absolute mean of the scores.
        `errors`: this mean in standard errors.
    """
    scores = measures.gaussian_scores(FAR, 20_000)
    means, spread = scores.mean(0).abs(), scores.std(0)
    errors = float((means / spread).max()) * math.sqrt(len(scores))
    return {
        "spread": spread.tolist(),
        "mean": float(means.max()) * math.sqrt(128),
        "errors": errors,
    }


NAT = Threshold(1)  # the number of nats by which a logit falls
MOST_HEADS, FEW_HEADS = Threshold(0.5), Threshold(0.05)  # fractions of the heads


@rule(
    holds=(
        (
            f"in over {MOST_HEADS:.0%} of the heads the mean logit at distances of 180 to 249 is "
            f"lower by more than {NAT:g} nat than at 1 to 8, on prose, with shuffled keys and on "
            f"random tokens, and with random weights in under {FEW_HEADS:.0%} of the heads"
        ),
        lambda share, blank: min(share.values()) > MOST_HEADS and blank < FEW_HEADS,
    ),
    part=(
        (
            f"the mean logit falls so in over {MOST_HEADS:.0%} of the heads on prose, but not with "
            "shuffled keys or random tokens, or with random weights, too"
        ),
        lambda share: share["prose"] > MOST_HEADS,
    ),
    nothing=(
        "the same network with random weights",
        lambda share, blank: {"share": dict.fromkeys(share, blank)},
    ),
    null=(
        "prose, shuffled keys and random tokens are cases that all agree, so swapping them "
        "changes nothing"
    ),
)
def trained_heads_decay(model: LanguageModel | None = None) -> Numbers:
    """Measure by how many nats a head's mean logit falls over a distance of 250 tokens.

    Returns:
        `median`: the median over the heads, for the prose and for each control.
        `share`: the fraction of heads whose mean logit falls by more than `NAT`, for the prose and
            each control except random weights.
        `blank`: the same fraction for random weights.
        `heads`: the number of heads.
    """
    falls = {
        name: measures.fall(each)
        for name, each in measures.falling_logits(model or models.default()).items()
    }
    share = {name: float((fall > float(NAT)).double().mean()) for name, fall in falls.items()}
    return {
        "median": {name: float(fall.median()) for name, fall in falls.items()},
        "blank": share.pop("random weights"),
        "share": share,
        "heads": len(falls["prose"]),
    }


SHARED, OWN = Threshold(0.5), Threshold(0.9)  # fractions of the weight
EXACT = 1e-9  # the allowed rounding error


@rule(
    holds=(
        (
            f"in a first and in a second layer, no head without positions gives more than "
            f"{SHARED:g} of its weight to its position, and heads with RoPE give over {OWN:g}"
        ),
        lambda plain, turned, second: plain <= SHARED + EXACT and turned > OWN and second <= SHARED,
    ),
    part=(
        (
            f"in a first layer, no head without positions gives more than {SHARED:g} of its weight "
            f"to its position, and heads with RoPE give over {OWN:g}, but in a second layer a head "
            "without positions can"
        ),
        lambda plain, turned: plain <= SHARED + EXACT and turned > OWN,
    ),
    nothing=(
        "heads that look nowhere, turned or not",
        {"plain": 0.1, "turned": 0.1, "second": 0.1},
    ),
)
def no_positions_no_diagonal() -> Numbers:
    """Measure a token's attention weight on itself without positions, in the first two layers.

    Returns:
        `plain`, `turned`: the largest weight in a first layer, over `heads` random heads without
            positions and with RoPE.
        `second`: the smallest weight in a second layer, for the head that the lesson constructs.
    """
    plain, turned = (measures.weights_without_positions(turn=turn) for turn in (False, True))
    second = measures.second_layer_without_positions(64, 8 * 64**2).diagonal()
    return {
        "heads": len(plain),
        "plain": float(plain.max()),
        "turned": float(turned.max()),
        "second": float(second.min()),
    }


WHOLE = Threshold(0.99)  # a fraction of the weight


@rule(
    holds=(
        f"both heads reach a weight of {WHOLE:g} at every position",
        lambda reached: min(reached) > WHOLE - EXACT,
    ),
    nothing=("uniform attention over 1,024 tokens", {"reached": [1 / 1024] * 2}),
)
def rope_makes_places() -> Numbers:
    """Measure the query-key scale that a diagonal head and a previous-token head need.

    Returns:
        `scales`: the two scales, for a context of 4,096 tokens.
        `reached`: the smallest weight that each scale gives to the head's position, over 1,024
            tokens.
        `one`: the scale of a diagonal head with a single frequency.
    """
    theta = rope.frequencies(128, 1e4)
    scales = [rope_scaling.slash_scale(theta, 4096, offset=offset) for offset in (0, 1)]
    reached = [
        float(rope_scaling.slash_attention(theta, 1024, k, scale).diagonal(-k).min())
        for k, scale in enumerate(scales)
    ]
    return {
        "scales": scales,
        "reached": reached,
        "one": rope_scaling.slash_scale(torch.ones(1), 4096),
    }


@rule(
    holds=(
        "every score is negative at some distance within half a rotation",
        lambda first: all(
            max(found) <= Threshold(math.pi / theta) + 1 for theta, found in first.items()
        ),
    ),
    nothing=("no rotation: some score never turns", {"first": {1.0: [math.inf]}}),
)
def one_frequency_loses_content() -> Numbers:
    """Return the first distance at which the score of a query and a key is negative, for 64 angles.

    The angle is the one between query and key. From this distance on, a token with a score of 0 may
    score higher than the key. The result is keyed by frequency, and a distance is infinite if the
    score is never negative.
    """
    around = torch.arange(64, dtype=torch.float64) * 2 * math.pi / 64
    keys, query = (
        torch.stack([around.cos(), around.sin()], 1),
        torch.tensor([[1.0, 0.0]], dtype=torch.float64),
    )
    first = {}
    for theta in (1.0, 0.01, 1e-4):
        m = torch.arange(math.ceil(2 * math.pi / theta) + 2)
        negative = rope.rotate(query.expand(len(m), -1), m, torch.tensor([theta])) @ keys.T < 0
        first[theta] = torch.where(
            negative.any(0), negative.int().argmax(0).double(), math.inf
        ).tolist()
    return {"first": first}


@rule(
    each=(
        (
            "the published base agrees to two digits with the smallest base without a negative "
            "sum, and has no negative sum itself"
        ),
        lambda same, fails: [one and not fails[context] for context, one in same.items()],
    ),
    against=(
        "the smallest base without a negative sum differs from it in the first two digits",
        lambda same: [not one for one in same.values()],
    ),
    nothing=("a base of ten times the context", lambda same: {"same": dict.fromkeys(same, False)}),
)
def base_for_a_context() -> Numbers:
    """Compare the published bases with the smallest bases that are large enough for each context.

    Returns:
        `same`: whether the two bases agree to two digits.
        `fails`: whether the published base itself is too small.
        `numbers`: the published base and the smallest base.
    """
    published, found = (
        data.table("reported/rope_base_bound").set_index("context").published,
        measures.smallest_bases(),
    )
    return {
        "same": {
            context: f"{found[context]:.1e}" == f"{base:.1e}" for context, base in published.items()
        },
        "fails": {
            context: bool(rope.first_negative(128, float(base), context))
            for context, base in published.items()
        },
        "numbers": {
            f"{context:,} tokens": (float(base), float(found[context]))
            for context, base in published.items()
        },
    }


@rule(
    holds=(
        (
            "the first negative sum moves to a larger distance with every tenfold base, and also "
            "from base 4,300 to 4,350"
        ),
        lambda tenfold, close: _rises(tenfold) and close[1] > Threshold(close[0]),
    ),
    part=(
        (
            "the first negative sum moves to a larger distance with every tenfold base, but not "
            "with every larger base in between"
        ),
        lambda tenfold: _rises(tenfold),
    ),
    nothing=("bases in no order", lambda tenfold: {"tenfold": tenfold[::-1]}),
)
def larger_base_reaches_further() -> Numbers:
    """Measure the first distance with a negative sum of cosines, for increasing bases.

    A larger base should increase this distance. This is so for powers of ten, but not for two bases
    that are close to each other.
    """
    bases = {"tenfold": [1e2, 1e3, 1e4, 1e5, 1e6], "close": [4300.0, 4350.0]}
    return {
        name: [rope.first_negative(128, base, 1 << 20) for base in each]
        for name, each in bases.items()
    }


def _rises(values: list[int]) -> bool:
    return all(after > before for before, after in itertools.pairwise(values))


# Test language models -----------------------------------------------------------------------------


def _heads(model: LanguageModel | None, seed: int | None = None, text: int = 0) -> measures.Heads:
    """Measure every head of the model on the prose, or on random tokens if a seed is given."""
    return measures.heads_on_text(model or models.default(), seed, text)


def _none(model: LanguageModel | None) -> ValueError:
    name = called(model)
    return ValueError(f"no head of {name} attends to a fixed distance, so it cannot decide")


SMALL = Threshold(0.9)  # a fraction of the layer's mean


@rule(
    holds=(
        (
            "between the first and the last layer the norm of the fastest quarter is below "
            f"{SMALL:g} of the layer's mean, and in the first and the last layer it is above the "
            "mean"
        ),
        lambda between, first, last: between < SMALL and min(first, last) > EVEN,
    ),
    part=(
        (
            "between the first and the last layer the norm of the fastest quarter is below "
            f"{SMALL:g} of the layer's mean, but in the first or the last layer it is small, too"
        ),
        lambda between: between < SMALL,
    ),
    nothing=("pairs of one size", {"first": 1.0, "between": 1.0, "last": 1.0}),
)
def fast_pairs_are_small_but_at_the_ends(model: LanguageModel | None = None) -> Numbers:
    """Measure the mean norm of the fastest quarter of the pairs, relative to the layer's mean.

    The result has one value for the first layer, one for the last layer, and the mean over the
    layers between them.
    """
    found = _heads(model)
    norms = torch.stack([found.queries.mean(1), found.keys.mean(1)])
    share = (norms / norms.mean(-1, keepdim=True))[..., : norms.shape[-1] // 4].mean(-1)
    first, last = share[:, [0, -1]].mean(0).tolist()
    return {"first": first, "last": last, "between": float(share[:, 1:-1].mean())}


@rule(
    each=(
        (
            "the best previous-token head of a layer has a significantly higher score than the "
            "best diagonal head in the first third of the layers (or a lower one in the last third)"
        ),
        lambda errors, third: beyond(errors, freedom=third - 1),
    ),
    against=(
        "the scores differ significantly in the other direction",
        lambda errors, third: beyond([-x for x in errors], freedom=third - 1),
    ),
    nothing=("layers that lean nowhere", {"errors": [0.0, 0.0]}),
)
def first_layers_previous_last_diagonal(model: LanguageModel | None = None) -> Numbers:
    """Measure in which layers previous-token heads and diagonal heads are strongest.

    A layer's lean is its best previous-token score minus its best diagonal score, as a mean over
    three texts.

    Returns:
        `lean`: the mean lean of the first third of the layers, and minus the mean lean of the last
            third.
        `errors`: these two numbers in standard errors over the layers of the third. The texts are
            not used as replicates, because what varies is the layer.
        `ends`: for each text, the mean best scores of the first third and of the last third.
        `strongest`: the layers with the best previous-token and the best diagonal head, on the
            prose.
        `layers`, `third`: the number of layers, and the number in a third.

    Raises:
        ValueError: if the model has fewer than six layers, because a third of the layers would then
            have no standard error.
    """
    if (layers := len(_heads(model).sinks)) < 6:
        raise ValueError(f"{called(model)} has {layers} layers, but each third needs two or more")
    ends, strongest, best = {}, {}, []
    for text, found in {
        "prose": _heads(model),
        "another text": _heads(model, text=1),
        "random tokens": _heads(model, 0),
    }.items():
        best.append(found.slashes[:, :, :2].max(1).values)
        third = len(best[-1]) // 3
        early, late = best[-1][:third].mean(0).tolist(), best[-1][-third:].mean(0).tolist()
        ends[text], strongest[text] = (*early, *late), (best[-1].argmax(0) + 1).tolist()
    # previous-token score minus diagonal score, for each layer
    ahead = torch.stack(best).mean(0).diff(dim=1)[:, 0]
    leans = [ahead[:third], -ahead[-third:]]
    errors = [float(lean.mean() / (lean.std() / math.sqrt(third))) for lean in leans]
    return {
        "errors": errors,
        "lean": [float(lean.mean()) for lean in leans],
        "ends": ends,
        "strongest": strongest["prose"],
        "layers": layers,
        "third": third,
    }


COSTS = Threshold(0.1)  # in nats
ALIKE = Threshold(0.1)  # in nats, between two quarters that count as equal


def _least(quarters: pd.DataFrame) -> bool:
    """Return whether ablating the fastest quarter raises the loss least, beyond the margin."""
    others = quarters.drop(columns="fastest").min(axis=1)
    return all(others - quarters.fastest > ALIKE)


@rule(
    holds=(
        (
            "the loss rises by less than "
            f"{COSTS:g} nats if we set the fastest quarter to zero, in both sets of layers"
        ),
        lambda quarters: all(quarters.fastest < COSTS),
    ),
    part=(
        (
            f"the loss rises by at least {ALIKE:g} nats less without the fastest quarter than "
            "without each other quarter"
        ),
        lambda quarters: _least(quarters),
    ),
    nothing=(
        "four quarters that cost alike",
        lambda quarters: {"quarters": quarters * 0 + quarters.mean().mean()},
    ),
    null=(
        "with random weights no quarter raises the loss, and the report says that such a "
        "model cannot decide"
    ),
)
def fast_pairs_are_noise_between_the_ends(model: LanguageModel | None = None) -> Numbers:
    """Measure how much ablating a quarter of the pairs raises the loss, between the ends.

    "Between the ends" means in all layers except the first and the last ones.

    Returns:
        `quarters`: the added loss for each quarter, in nats.
        `least`, `most`: the smallest and the largest added loss for as many random pairs.
    """
    rows = measures.between_the_ends(model).groupby("heads", sort=False).mean(numeric_only=True)
    random = rows.filter(like="random")
    return {"quarters": rows[QUARTERS], "least": random.min(axis=1), "most": random.max(axis=1)}


@rule(
    "fast_pairs_serve_places",
    holds=(
        (
            "at each of four thresholds the loss rises by at least "
            f"{ALIKE:g} nats more without the fastest quarter of these heads than without each "
            "other quarter, and in equally many other heads it does not"
        ),
        lambda inside, control: (
            min(inside.fastest - inside.most) >= ALIKE
            and max(control.fastest - control.most) < ALIKE
        ),
    ),
    nothing=("as many other heads", lambda control: {"inside": control}),
    null=(
        "the rule tests each threshold by itself, so the order and the mean of the "
        "thresholds do not matter"
    ),
)
def silenced_quarters(
    model: LanguageModel | None = None, where: Sequence[str] = ("outside",)
) -> Numbers:
    """Measure how much ablating a quarter of the pairs in some heads raises the loss.

    Returns:
        For each kind of heads in `where`, a table with one row per threshold. Its columns are the
            added loss for each quarter in nats, as a mean over the texts, and its smallest and
            largest value over all quarters except the fastest (`least`, `most`).
    """
    table, found = measures.silenced_table(model), {}
    for place in where:
        rows = table[(table["where"] == place) & (table.threshold > 0) & (table.heads > 0)]
        if rows.empty:
            raise _none(model)
        rows = rows.groupby("threshold")[QUARTERS].mean()
        found[place] = rows.assign(
            least=rows[QUARTERS[1:]].min(axis=1), most=rows[QUARTERS[1:]].max(axis=1)
        )
    return found


@rule(
    holds=(
        "every previous-token head is a sink head",
        lambda both, previous: both >= Threshold(previous),
    ),
    part=(
        "more previous-token heads are sink heads than expected by chance",
        lambda both, chance: both > Threshold(chance),
    ),
    nothing=("two kinds that know nothing of each other", lambda chance: {"both": chance}),
)
def previous_token_is_the_sink(model: LanguageModel | None = None) -> Numbers:
    found = _heads(model)
    previous, sinks = (
        found.slashes[..., 1] > attention.HEAD_SCORE_THRESHOLD,
        found.sinks > attention.HEAD_SCORE_THRESHOLD,
    )
    if not bool(previous.any()):
        raise _none(model)
    return {
        "previous": int(previous.sum()),
        "sinks": int(sinks.sum()),
        "both": int((previous & sinks).sum()),
        "chance": float(previous.sum() * sinks.double().mean()),
        "weight": float(found.sinks[previous].mean()),
    }


STAY, OVER_HALF = Threshold(0.9), Threshold(0.5)  # fractions of the heads


@rule(
    holds=(
        f"{STAY:.0%} of the slash heads remain slash heads on another text and on random tokens",
        lambda share: min(share) >= STAY,
    ),
    part=(
        f"over {OVER_HALF:.0%} of the slash heads remain so on another text and on random tokens",
        lambda share: min(share) > OVER_HALF,
    ),
    nothing=("uniform attention: none above the threshold", {"share": [0.0, 0.0]}),
)
def slashes_survive_random_tokens(model: LanguageModel | None = None) -> Numbers:
    """Measure which slash heads remain slash heads on another text and on random tokens.

    Returns:
        `stay`: for each text and kind of head (previous-token or diagonal), whether each head
            remains one.
        `share`: for each text, the fraction of all these heads that do.
    """
    natural, stay = _heads(model), {}
    for text, other in {
        "another text": _heads(model, text=1),
        "random tokens": _heads(model, seed=0),
    }.items():
        stay[text] = {
            kind: [
                float(other.slashes[head]) > attention.HEAD_SCORE_THRESHOLD
                for head in measures.slash_heads(natural, offset)
            ]
            for kind, offset in (("previous-token", 1), ("diagonal", 0))
        }
    every = [[*itertools.chain(*kinds.values())] for kinds in stay.values()]
    if not every[0]:
        raise _none(model)
    return {"stay": stay, "share": [sum(kept) / len(kept) for kept in every]}


RANK_ONE, OTHERS = Threshold(0.8), Threshold(0.5)  # as fractions of the squared singular values
APART_BY = Threshold(1)  # twice the error, divided by the distance from the threshold


@rule(
    holds=(
        (
            "the largest squared singular value is more than "
            f"{RANK_ONE:g} of the sum in slash heads, and less than {OTHERS:g} in other heads and "
            "with random weights of every scale"
        ),
        lambda slashes, others, blank: slashes > RANK_ONE and max(others, *blank.values()) < OTHERS,
    ),
    part=(
        (
            "the largest squared singular value is more than "
            f"{RANK_ONE:g} of the sum in slash heads, but it is not below {OTHERS:g} in other "
            "heads or with random weights of some scale"
        ),
        lambda slashes: slashes > RANK_ONE,
    ),
    enough=(
        (
            "the fraction in slash heads differs from the threshold by more than twice its "
            "standard error over heads"
        ),
        lambda error: error < APART_BY,
    ),
    nothing=(
        "heads like any other, of no rank",
        {"slashes": 0.2, "others": 0.2, "blank": {"own": 0.2}, "error": 0.0},
    ),
    null=(
        "if we swap the scales of the weights, random weights of one scale are as "
        "concentrated as trained weights"
    ),
)
def slash_heads_are_rank_one(model: LanguageModel | None = None) -> Numbers:
    """Measure how concentrated queries and keys are in slash heads, and in two controls.

    The controls are other heads and random weights. The concentration is the largest squared
    singular value as a fraction of the sum of all.
    """
    found = _heads(model)
    table = measures.rank_table(found)
    if not table.heads.get("slash heads"):
        raise _none(model)
    share = table[["share, queries", "share, keys"]].mean(axis=1)
    each = found.concentration[found.slashes.max(-1).values > attention.HEAD_SCORE_THRESHOLD].mean(
        -1
    )
    error = float(each.std() / math.sqrt(len(each))) if len(each) > 1 else math.inf
    if model is None or model.name == models.DEFAULT:
        rows = (
            data.table("concentration_random").set_index("scale")[["queries", "keys"]].mean(axis=1)
        )
        blank = rows.to_dict()
    else:
        blank = {"own": float(_heads(null_controls.untrained(model, 0)).concentration.mean())}
    return {
        "slashes": share["slash heads"],
        "others": share["other heads"],
        "blank": blank,
        "error": 2 * error / max(abs(share["slash heads"] - RANK_ONE), 1e-9),
        "heads": table.heads["slash heads"],
    }


@rule(
    holds=(
        (
            "the slash score is lower without either of the two fast quarters than without either "
            "of the two slow quarters"
        ),
        lambda left: (
            max(left["fastest"], left["fast"]) < Threshold(min(left["slow"], left["slowest"]))
        ),
    ),
    part=(
        "the slash score is lowest without one of the two fast quarters",
        lambda left: min(left, key=left.get) in ("fastest", "fast"),
    ),
    nothing=(
        "slow quarters for fast ones",
        lambda left: {"left": dict(zip(left, [*left.values()][::-1], strict=True))},
    ),
)
def fast_pairs_make_the_slash(model: LanguageModel | None = None) -> Numbers:
    """Measure the previous-token heads' mean slash score without one quarter of the pairs.

    The result also has the mean slash score with all pairs.
    """
    read, heads = model or models.default(), measures.slash_heads(_heads(model), 1)
    if not heads:
        raise _none(model)
    theta, parts = measures.frequencies(read), probe.queries_and_keys(read, measures.prose(read))

    def score(pairs: set[int]) -> float:
        one = [
            (*(x[head : head + 1] for x in parts[layer]), theta[layer]) for layer, head, _ in heads
        ]
        return sum(
            float(measures.weights(*each, pairs)[0].diagonal(-1).mean()) for each in one
        ) / len(one)

    every = set(range(len(theta[0])))
    left = {
        name: score(every - set(measures.band(k, len(every)))) for k, name in enumerate(QUARTERS)
    }
    return {"whole": score(every), "left": left}


# Test trained decoders ----------------------------------------------------------------------------


def _rows(spectrum: str, shared: float = 0.0) -> pd.DataFrame:
    """Return the runs of decoders with one spectrum and one strength of the shared vector.

    Their base is 10,000.
    """
    rows = data.table("slash_emergence")
    return rows[(rows.spectrum == spectrum) & (rows.shared == shared) & (rows.base == 1e4)]


LEARNED, NOT_LEARNED = Threshold(0.8), Threshold(0.2)  # slash scores


@rule(
    "training_makes_slashes",
    holds=(
        (
            f"with RoPE the slash score exceeds {LEARNED:g}, and without positions it stays below "
            f"{NOT_LEARNED:g}"
        ),
        lambda means: means["RoPE"] > LEARNED and means["NoPE"] < NOT_LEARNED,
    ),
    nothing=("no positions for RoPE", lambda means: {"means": {**means, "RoPE": means["NoPE"]}}),
    dealt={"slash_emergence": ("spectrum", "offset", "shared", "base")},
)
def learned_slashes(offsets: Sequence[int] = (1, 4)) -> Numbers:
    """Measure the mean slash score after training, for each spectrum of rotary frequencies.

    Args:
        offsets: the offsets to average over.

    Returns:
        `means`: the scores with base 10,000.
        `short`: the scores with the short base.
    """
    rows = data.table("slash_emergence").query("shared == 0")
    means = rows[rows.offset.isin(offsets)].groupby(["base", "spectrum"]).slash.mean()
    return {"means": means[1e4], "short": means[slashes.SHORT_BASE]}


QUARTER_TURN = Threshold(math.pi / 2)


@rule(
    holds=("the slash score is higher with 0.75-RoPE than with RoPE", lambda gain: gain > NONE),
    fit=(
        "RoPE rotates the quarter that 0.75-RoPE leaves out by more than a quarter of a circle",
        lambda turn: turn > QUARTER_TURN,
    ),
    nothing=("a quarter that changes nothing", {"turn": 4.0, "gain": 0.0}),
)
def partial_rotation_helps() -> Numbers:
    """Measure how much 0.75-RoPE raises the slash score over RoPE.

    The result also says how far RoPE rotates the pairs that 0.75-RoPE does not rotate.

    Returns:
        `turn`: the largest angle by which RoPE rotates these pairs, in radians.
        `gain`: the mean slash score of 0.75-RoPE minus the mean slash score of RoPE.
    """
    means = learned_slashes()["means"]
    return {
        "turn": 31 * float(rope.frequencies(32, 1e4)[12]),
        "gain": means["0.75-RoPE"] - means["RoPE"],
    }


TENTH = Threshold(0.1)  # accuracy


@rule(
    holds=(
        (
            f"RoPE or ALiBi is more accurate by over {TENTH:g} than no encoding, on one task at "
            "one length (one case suffices, because the claim says “may”)"
        ),
        lambda better: max(better) > TENTH,
    ),
    nothing=("encodings that change nothing", {"better": [0.0] * 4}),
    dealt={"race": ("entry", "task", "seed")},
)
def positions_alleviate() -> Numbers:
    """Measure how much position encodings improve accuracy, by task and length.

    Returns:
        `right`: the accuracies with RoPE, with ALiBi and without positions.
        `better`, `worse`: the accuracy with the better encoding and with the worse encoding, each
            minus the accuracy without positions.
        `chance`: the accuracy of guessing.
        `seeds`: the number of seeds.
    """
    race, columns = data.table("race"), {f"score_{n}": n for n in (16, 128)}
    right = (
        race.groupby(["task", "entry"])[list(columns)]
        .mean()
        .rename(columns=columns)
        .stack()
        .unstack("entry")
    )
    right = right.loc[["last", "retrieval"], ["RoPE", "ALiBi", "NoPE"]]
    gains = right[["RoPE", "ALiBi"]].sub(right.NoPE, axis=0)
    return {
        "right": right,
        "better": gains.max(axis=1),
        "worse": gains.min(axis=1),
        "chance": {task: protocol.CHANCE[task] for task in ("last", "retrieval")},
        "seeds": race.seed.nunique(),
    }


@rule(
    holds=(
        (
            f"on unseen tokens every run exceeds a slash score of {LEARNED:g}, and without "
            f"positions the score stays below {NOT_LEARNED:g}"
        ),
        lambda unseen, none: min(unseen) > LEARNED and none < NOT_LEARNED,
    ),
    part=(
        (
            "on unseen tokens every run whose shared vector is three times as large exceeds a "
            f"slash score of {LEARNED:g}, and without positions the score stays below "
            f"{NOT_LEARNED:g}"
        ),
        lambda strong, none: min(strong) > LEARNED and none < NOT_LEARNED,
    ),
    nothing=("no positions", lambda none: {"unseen": [none] * 3, "strong": [none] * 3}),
    null="runs with a stronger vector, instead of the others, exceed the threshold, too",
    dealt={"slash_emergence": ("spectrum", "offset", "base")},
)
def trained_slashes_generalise() -> Numbers:
    """Measure slash scores on tokens that were not in training, with and without a shared vector.

    Returns:
        `unseen`: the score of each decoder with the shared vector.
        `strong`: the score of each decoder with a vector three times as strong.
        `without`: the mean score after the vector was removed from the trained decoder.
        `plain`: the mean score of decoders that were trained without the vector.
        `none`: the mean score of decoders with the vector but without positions.
    """
    rows = _rows("RoPE", 1.0)
    return {
        "unseen": rows.slash_unseen.tolist(),
        "strong": _rows("RoPE", 3.0).slash_unseen.tolist(),
        "without": rows.slash_unseen_without.mean(),
        "plain": _rows("RoPE").slash_unseen.mean(),
        "none": _rows("NoPE", 1.0).slash_unseen.mean(),
    }


ORDERS, APART = Threshold(0.9), Threshold(0.5)
LITTLE_SHARED, MUCH_SHARED = 0.6, 0.8  # the fraction of queries and keys that is one shared vector


@rule(
    holds=(
        (
            "the rank correlation between the common part and the slash score is above "
            f"{ORDERS:g}, all decoders with a common part below {LITTLE_SHARED:g} have a score "
            f"under {APART:g}, and all with a common part above {MUCH_SHARED:g} a score over it"
        ),
        lambda order, low, taken, high: order > ORDERS and max(low, taken) < APART < high,
    ),
    part=(
        (
            f"all decoders with a common part below {LITTLE_SHARED:g} have a slash score under "
            f"{APART:g}"
        ),
        lambda low, taken: max(low, taken) < APART,
    ),
    nothing=("slashes that no part in common orders", {"order": 0.0, "low": 0.9, "high": 0.1}),
    dealt={"slash_common": ("slash_unseen",)},
)
def the_condition_is_needed() -> Numbers:
    """Correlate the common part of queries and keys with the slash score on unseen tokens.

    The decoders have a vector in the embeddings, a vector in the layer norm, or no vector. All were
    trained for the same number of steps.

    Returns:
        `order`: the rank correlation over the `runs` decoders.
        `low`: the largest score of a decoder whose common part is small.
        `high`: the smallest score of a decoder whose common part is large.
        `taken`: the largest score after the vector was removed.
    """
    rows = data.table("slash_common")
    rows = rows[(rows.spectrum == "RoPE") & (rows.steps == rows.steps.min())]
    part, slash = (
        rows[["common_queries_unseen", "common_keys_unseen"]].min(axis=1),
        rows.slash_unseen,
    )
    return {
        "runs": len(rows),
        "order": float(part.corr(slash, method="spearman")),
        "low": slash[part < LITTLE_SHARED].max(),
        "high": slash[part > MUCH_SHARED].min(),
        "taken": rows[rows.strength == 1].slash_unseen_without.max(),
    }
