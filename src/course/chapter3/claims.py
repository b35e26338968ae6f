"""Measure the claims of chapter 3's sources.

There is one function for each row of the table of claims.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache

import torch

from course.chapter3 import measures
from course.evidence.rules import Numbers, Threshold, beyond, rule
from course.maths import constructions
from helpers import collapse, data, models, rope, style
from helpers.models import LanguageModel

FIFTH = Threshold(0.2)  # a fraction of the distance
TWICE = Threshold(2)
NONE = Threshold(0)


def _never_rises(values: Sequence[float]) -> bool:
    return all(after <= before for before, after in itertools.pairwise(values))


VANISHED = Threshold(0.01)  # a fraction of the weight or of a distance


@rule(
    "last_weight_vanishes",
    holds=(
        (
            "an added token lowers the last token's weight in every row, and the largest of these "
            f"weights falls with n and ends below {VANISHED:g}"
        ),
        lambda falls, largest: falls and _never_rises(largest) and largest[-1] < VANISHED,
    ),
    nothing=("a weight that no length wears down", lambda largest: {"largest": largest[:1] * 4}),
)
def last_weights() -> Numbers:
    """Measure the last token's weight in rows of random bounded logits.

    Returns:
        `falls`: whether this weight falls in every row when a token is inserted before the last
            one.
        `largest`: the largest weight of a last token, for 10, 100, 1,000 and 10,000 tokens.
    """
    generator = torch.Generator().manual_seed(0)
    falls, largest = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        weight = logits.softmax(1)[:, -1]
        falls &= bool((before > weight).all())
        largest.append(float(weight.max()))
    return {"falls": falls, "largest": largest}


LOW, HIGH = Threshold(0.9), Threshold(1.1)  # as fractions of the limit


@rule(
    holds=(
        (
            f"n times the total variation reaches {LOW:g} to {HIGH:g} of its limit, and the total "
            "variation falls from each length to the next"
        ),
        lambda ratio, variation: (
            LOW <= ratio <= HIGH
            and all(before > after for before, after in itertools.pairwise(variation))
        ),
    ),
    part=(
        (
            f"n times the total variation reaches {LOW:g} to {HIGH:g} of its limit, but the total "
            "variation does not fall from each length to the next"
        ),
        lambda ratio: LOW <= ratio <= HIGH,
    ),
    nothing=("noise that is not forgotten: a distance that stays", {"ratio": 200.0}),
)
def early_noise_is_forgotten() -> Numbers:
    """Measure how the total variation from noise on the first tokens falls with the length.

    We also compare n times this total variation with its limit, where n is the length.
    """
    lengths, limit = [50, 200, 350, 500, 10_000], constructions.perturbation_limit()
    variation = constructions.perturbed_total_variation(lengths).mean(0)
    return {
        "limit": limit,
        "ratio": float(variation[-1]) * lengths[-1] / limit,
        "variation": variation.tolist(),
        "peak": lengths[int(variation.argmax())],
    }


@rule(
    holds=(
        (
            "the distance of the outputs and the total variation of the weights are below "
            f"{VANISHED:g} at n = 10,000"
        ),
        lambda variation, distance: variation[-1] < VANISHED and distance < VANISHED,
    ),
    nothing=(
        "rows that do not come nearer",
        lambda variation: {"variation": variation[:1] * 3, "distance": 1.0},
    ),
)
def decaying_positions_collapse() -> Numbers:
    """Measure how far one repeated token moves a head whose logits decay with the distance."""
    changes = [
        constructions.repeat_last(
            lambda r: 3 * torch.exp(-r / 10), constructions.rotating_values("random", n, 0.0)
        )
        for n in (10, 1000, 10_000)
    ]
    return {
        "distance": float(changes[-1][0]),
        "variation": [float(variation) for _, variation in changes],
    }


STILL = Threshold(0.1)


@rule(
    holds=(
        (
            f"the two rows still differ by {STILL:g} in their last entry at n = 10,000, which "
            "Lemma B.2 excludes"
        ),
        lambda last: last[1] > STILL,
    ),
    nothing=("equal rows", {"last": [0.0, 0.0]}),
)
def proof_is_rough() -> Numbers:
    """Measure a difference of logits that the proof of Theorem B.3 assumes to vanish.

    The proof compares a row of logits with the row after one more token, entry by entry. The
    result is the absolute difference between their last entries, for n = 10 and n = 10,000.
    """
    rows = [3 * torch.exp(-torch.arange(n, -1, -1, dtype=torch.float64) / 10) for n in (10, 10_000)]
    return {
        "last": [float((row[1:] - row[:-1])[-1].abs()) for row in rows]
    }  # the difference of the two rows of logits


@rule(
    holds=(
        "we find no key whose largest logit is far away",
        lambda best, distance: abs(best - distance) > NONE,
    ),
    nothing=("a key turned by nothing, heard best beside the query", {"distance": 0, "best": 0}),
)
def rope_decays() -> Numbers:
    """Find the distance at which RoPE gives a query and a key their largest logit.

    The key is made from the query so that the largest logit is at a distance of 5,000 tokens.
    """
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    theta = rope.frequencies(64, 1e4)
    key = rope.rotate(query, torch.tensor([-float(distance)]), theta)
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rope.rotate(key.expand(len(positions), -1), positions, theta) @ query[0]) / 8
    return {"distance": distance, "best": int(logits.argmax())}


LEVELS = Threshold(0.5)
TENFOLD = Threshold(10)


@rule(
    "all_encodings_collapse",
    holds=(
        (
            "from n = 10 to 10,000 the distance falls below "
            f"{FIFTH:g} of its value with all four encodings, and in ALiBi's closed form it falls "
            f"further from 1,000 to 10,000, below {LEVELS:g} of its value"
        ),
        lambda left, alibi: max(left.values()) < FIFTH and alibi[1] < LEVELS * alibi[0],
    ),
    part=(
        (
            f"the distance falls below {FIFTH:g} of its value with all four encodings, but in "
            "ALiBi's closed form it then stops falling"
        ),
        lambda left: max(left.values()) < FIFTH,
    ),
    nothing=(
        "a distance that stays",
        {"left": dict.fromkeys(("NoPE", "RoPE", "ALiBi", "APE"), 1.0)},
    ),
    null="if we swap the four encodings, they are still the same four",
)
@rule(
    "encodings_collapse_alike",
    holds=(
        (
            "the fractions of the distance that are left with the four encodings are within a "
            f"factor of {TENFOLD:g}"
        ),
        lambda left: max(left.values()) < TENFOLD * min(left.values()),
    ),
    nothing=(
        "four encodings that are one",
        {"left": dict.fromkeys(("NoPE", "RoPE", "ALiBi", "APE"), 0.5)},
    ),
    null="the claim is that the encodings are alike",
)
def encodings() -> Numbers:
    """Measure what fraction of a distance remains at 10,000 tokens, for each position encoding.

    The distance is how far one repeated token moves a layer's output. For ALiBi with equal content,
    the result also has the distance itself at n = 1,000 and 10,000.
    """
    means = measures.layer_means(True)
    left = {name: _left(means[name]) for name in measures.READING}
    variants = {name: _left(means[name]) for name in measures.VARIANTS}
    return {
        "left": left,
        "variants": variants,
        "alibi": [constructions.alibi_change(n, 2**-8) for n in (1000, 10_000)],
    }


def _left(distances: torch.Tensor) -> float:
    return float(distances[-1] / distances[0])


def named(shares: dict[str, float]) -> str:
    """Format fractions with their names as one line of text."""
    return ", ".join(f"{name} {style.number(share)}" for name, share in shares.items())


def _worse(bf16: list[float], fp16: list[float]) -> bool:
    return all(b <= f for b, f in zip(bf16, fp16, strict=True)) and bf16[-1] < Threshold(fp16[-1])


def _pointed(nearest: dict[str, float]) -> bool:
    return nearest["isotropic"] > HARMLESS and nearest["its own"] < OWN


CHANCE = Threshold(0.55)  # for two prompts, a little more than the 0.5 of guessing
OWN, SAME, HARMLESS = Threshold(0.7), Threshold(0.15), Threshold(0.95)  # fractions of all prompts


@rule(
    "low_precision_is_worse",
    holds=(
        (
            "bf16 distinguishes n from n + 1 no more often than fp16 in any range of lengths, less "
            f"often in the last range, and in less than {CHANCE:.0%} of the prompts in one range "
            "(chance is 50%)"
        ),
        lambda bf16, fp16: _worse(bf16, fp16) and min(bf16) < CHANCE,
    ),
    part=(
        (
            "bf16 distinguishes n from n + 1 no more often than fp16 in any range of lengths, and "
            "less often in the last range"
        ),
        lambda bf16, fp16: _worse(bf16, fp16),
    ),
    able=("the model's hidden states stay within the range of fp16", lambda inside: inside),
    nothing=("two types that are one", lambda bf16: {"fp16": bf16}),
    null=(
        "if each format is set to its mean, the two formats still differ, because the weaker "
        "condition compares their levels"
    ),
)
@rule(
    "direction_of_rounding_decides",
    holds=(
        (
            f"the search finds under {OWN:.0%} of the prompts with their own rounding errors, a "
            f"fraction within {SAME:g} of this with another prompt's errors, and over "
            f"{HARMLESS:.0%} with shuffled or isotropic errors"
        ),
        lambda nearest: (
            _pointed(nearest)
            and nearest["with shuffled coordinates"] > HARMLESS
            and abs(nearest["its own"] - nearest["of another prompt"]) < SAME
        ),
    ),
    part=(
        (
            f"the search finds under {OWN:.0%} of the prompts with their own rounding errors, and "
            f"over {HARMLESS:.0%} with isotropic errors"
        ),
        lambda nearest: _pointed(nearest),
    ),
    nothing=(
        "errors of which none does more than another",
        lambda nearest: {"nearest": dict.fromkeys(nearest, 0.7)},
    ),
)
def telling_apart(model: LanguageModel | None = None) -> Numbers:
    """Measure how often a hidden state with rounding errors is nearest to its own exact state.

    Returns:
        `bf16`, `fp16`: the fraction of prompts that are nearer to their own state than to the next
            prompt's state, for each band of lengths.
        `nearest`: the fraction of prompts to which their own state is nearest among all states, in
            the longest band in bf16, keyed by the kind of error. `nearest_fp16` is the same for the
            errors of fp16.
        `share`: the fraction of the error's squared length that lies along the difference to the
            next prompt, in the same band and keyed in the same way.
        `low`, `high`, `sure`: the first and the last length of the longest band, and the last
            length of the second band.
        `inside`: whether all states are finite in fp16.
    """
    embedded = model is None or model.name == models.DEFAULT
    table = data.table("telling_apart") if embedded else measures.telling_apart(model)
    table = table.set_index(["errors", "type", "low"]).sort_index()
    bf16, fp16 = (table.loc[measures.ERRORS[0], kind] for kind in ("bf16", "fp16"))
    late = {errors: table.loc[errors, "bf16"].iloc[-1] for errors in measures.ERRORS}
    return {
        "low": int(bf16.index[-1]),
        "high": int(bf16.high.iloc[-1]) - 1,
        "sure": int(bf16.high.iloc[1]) - 1,  # the last length of the second band
        "bf16": bf16.pair.tolist(),
        "fp16": fp16.pair.tolist(),
        "inside": all(map(math.isfinite, fp16.floor)),
        "nearest_fp16": fp16.nearest.iloc[-1],
        "nearest": {errors: row.nearest for errors, row in late.items()},
        "share": {errors: row.share for errors, row in late.items()},
    }


FEWER, FURTHER = Threshold(0.2), Threshold(1.5)


@rule(
    holds=(
        (
            "the search is worst with the format's own errors, by more than "
            f"{FEWER:.0%} of the prompts, the linear readout is worst with isotropic errors (over "
            f"{FURTHER:g} times as far off), and the next token changes most with errors that are "
            "not the format's own"
        ),
        lambda nearest, off, variation: (
            min(nearest[1:]) - nearest[0] > FEWER
            and off[2] > FURTHER * off[0]
            and variation[0] < Threshold(min(variation[1:]))
        ),
    ),
    part=(
        (
            f"the search is worst with the format's own errors, by more than {FEWER:.0%} of the "
            "prompts, and one of the two other readouts is not"
        ),
        lambda nearest, off, variation: (
            min(nearest[1:]) - nearest[0] > FEWER
            and (off[2] > FURTHER * off[0] or variation[0] < Threshold(min(variation[1:])))
        ),
    ),
    nothing=(
        "errors that do the same to each reader",
        {"nearest": [0.9] * 3, "off": [2.0] * 3, "variation": [0.1] * 3},
    ),
    dealt={"rounding_readers": ("errors", "type")},
)
def the_reader_decides() -> Numbers:
    """Measure what three readouts recover from rounded hidden states, for each kind of error."""
    rows = data.table("rounding_readers").query("type == 'bf16'")
    mean = rows.groupby("errors")[["nearest", "off", "variation"]].mean()
    found = {name: [column[measures.ERRORS[k]] for k in (0, 2, 3)] for name, column in mean.items()}
    changed = mean.nearest[["with signs flipped", "without its constant part"]]
    return found | dict(zip(("flipped", "free"), changed, strict=True))


EVERY, OVER_HALF = Threshold(1), Threshold(0.5)


@rule(
    holds=("every token is recovered after each layer", lambda shares: min(shares) >= EVERY),
    part=(
        f"over {OVER_HALF:.0%} of the tokens are recovered",
        lambda shares: sum(shares) / len(shares) > OVER_HALF,
    ),
    nothing=(
        "a token drawn among the candidates",
        lambda candidates: {"shares": [1 / candidates] * 2},
    ),
)
def prompts_can_be_recovered() -> Numbers:
    """Measure how many tokens of a prompt can be recovered from hidden states, for each layer."""
    rows = data.table("recovered")
    return {
        "candidates": rows.candidates.max(),
        "layers": rows.groupby("layer")[["recovered", "tokens", "named"]].sum().to_dict("index"),
        "own": rows.own.max(),
        "other": rows.other.min(),
        "shares": (rows.recovered / rows.tokens).tolist(),
    }


@rule(
    each=(
        (
            f"with a window of 8 more than {FIFTH:g} of the distance remains from n = 5 to 100 "
            "(one case each for equal and for varied tokens)"
        ),
        lambda held: [long > FIFTH * short for short, long in held.values()],
    ),
    against=(
        "less of the distance remains than without a window",
        lambda held, free: [long < Threshold(free[kind]) for kind, (_, long) in held.items()],
    ),
    nothing=(
        "no window",
        lambda held, free: {
            "held": {kind: [short, free[kind]] for kind, (short, _) in held.items()}
        },
    ),
    null=(
        "varied tokens keep their distance without a window, too, and half of the cases are "
        "not enough for a correction"
    ),
)
def window_stops_collapse() -> Numbers:
    """Measure how far a repeated token moves the last hidden state with and without a window."""

    def distances(kind: str, window: int | None) -> list[float]:
        return measures.window_distance(kind, window, [5, 100], seeds=3).tolist()

    return {
        "free": {kind: distances(kind, None)[1] for kind in measures.SEQUENCES},
        "held": {kind: distances(kind, 8) for kind in measures.SEQUENCES},
    }


GAIN = Threshold(1)


@rule(
    holds=(
        "the nearest tokens gain influence and no far token loses influence",
        lambda near, far, least: near > GAIN and far > Threshold(least),
    ),
    part=(
        "the nearest tokens gain influence, but a far token loses influence",
        lambda near: near > GAIN,
    ),
    nothing=("no window", lambda least: {"near": 1.0, "far": least}),
)
def window_stops_over_squashing() -> Numbers:
    """Measure how a window changes the influence of near and of distant tokens."""
    free, held = measures.influence(None), measures.influence(8)
    return {
        "near": float(held[1:8].mean() / free[1:8].mean()),
        "far": float(held[29:].max()),
        "free": float(free[29:].mean()),
        "least": float(free[29:].min()),
    }


FIVEFOLD = Threshold(5)


@rule(
    holds=(
        (
            f"with commas, too, the distance falls by a factor of more than {FIVEFOLD:g}, for one "
            "more token and for one more period"
        ),
        lambda falls: min(falls) > FIVEFOLD,
    ),
    nothing=("a distance that stays", {"falls": [1.0, 1.0]}),
)
def separators_do_not_follow() -> Numbers:
    """Measure the factor by which the distance between last states falls with n, with commas."""
    curves = measures.separator_curves()
    return {"falls": [1 / _left(curves[f"commas, n to n + {step}"]) for step in (1, 3)]}


# Test language models -----------------------------------------------------------------------------


def _distance(
    model: LanguageModel | None, lengths: Sequence[int], prompt: str = "", **setting
) -> list[float]:
    """Measure how far the last hidden state moves if the last digit is repeated.

    Args:
        lengths: the numbers of digits.
        prompt: text that comes before the digits, such as a copying prompt.
    """
    model = model or models.default()
    head, tail = (
        collapse.copying_prompt(model, prompt, "last", hint=False) if prompt else (None, "")
    )
    return collapse.last_token_distance(model, lengths, head=head, tail=tail, **setting).tolist()


@rule(
    "ones_collapse",
    holds=(
        f"the distance falls below {FIFTH:g} of its first value and rises at no length",
        lambda distances: distances[-1] < FIFTH * distances[0] and _never_rises(distances),
    ),
    part=(
        f"the distance falls below {FIFTH:g} of its first value, but it first rises",
        lambda distances: distances[-1] < FIFTH * distances[0],
    ),
    nothing=(
        "a distance that stays",
        lambda distances: {"distances": [distances[0]] * len(distances)},
    ),
    null="random weights meet the rule, because averages collapse without any training",
)
def one_more(
    model: LanguageModel | None = None, lengths: Sequence[int] = (), prompt: str = ""
) -> Numbers:
    """Measure how far one more token moves the last hidden state, for each length."""
    return {"lengths": lengths, "distances": _distance(model, lengths, prompt)}


PLACES = [
    2,
    22,
    52,
    102,
    202,
    302,
    402,
    502,
]  # lengths at which the last of varied digits is repeated


@cache
def _varied(model: LanguageModel | None) -> torch.Tensor:
    """Measure how far the last hidden state moves for random digits.

    The result has one row per seed and one column for each length of `PLACES`.
    """
    digits = [measures.random_digits(502, PLACES, seed) for seed in range(4)]
    return torch.tensor([_distance(model, PLACES, sequence=each) for each in digits])


@rule(
    holds=(
        (
            f"varied digits keep more than {TWICE:g} times the distance of ones, also with 50 ones "
            "at their end"
        ),
        lambda varied, ones, ends, alone: varied > TWICE * ones and ends[-1] > TWICE * alone,
    ),
    part=(
        (
            f"varied digits keep more than {TWICE:g} times the distance of ones if the sequence "
            "does not end in ones"
        ),
        lambda varied, ones: varied > TWICE * ones,
    ),
    nothing=("ones for varied digits", lambda ones, alone: {"varied": ones, "ends": [alone]}),
    null=(
        "with random weights, too, the distance is smaller for ones, and also if the runs of "
        "ones are in another order"
    ),
)
def varied_digits_delay_collapse(model: LanguageModel | None = None) -> Numbers:
    """Measure how far a repeated digit moves the last state, for random digits and for ones."""
    fifty, *near, last = _distance(model, [50, *range(192, 213, 5), 502])
    return {
        "varied": float(_varied(model).mean(0)[-1]),
        "ones": last,
        "ends": measures.ones_at_the_end(
            model or models.default()
        ).tolist(),  # on 1, 5, 20 and 50 ones
        "alone": float(torch.tensor(near).median()),
        "fifty": fifty,
    }


ERRORS = Threshold(2)  # in standard errors


@rule(
    each=(
        (
            f"from n = {PLACES[1]} onwards the distance falls significantly to the next length "
            "(Holm's correction over all steps)"
        ),
        lambda steps, seeds: beyond([-step for step in steps], freedom=seeds - 1),
    ),
    against=(
        "the distance rises significantly",
        lambda steps, seeds: beyond(steps, freedom=seeds - 1),
    ),
    nothing=("no trend", {"steps": [0.0] * 6}),
    null="with random weights the distance falls in each step",
)
def varied_digits_still_fall(model: LanguageModel | None = None) -> Numbers:
    """Measure whether the distance between last states falls with the length if digits vary.

    The trend is measured from n = 22 on, because shorter sequences are too close to the beginning.

    Returns:
        `means`: the mean distance, keyed by length.
        `steps`: for each step from one length to the next, the mean change of the log distance in
            standard errors.
        `seeds`: the number of seeds.
    """
    runs = _varied(model)
    steps = runs[:, 1:].log().diff(dim=1)
    return {
        "seeds": len(runs),
        "means": dict(zip(PLACES, runs.mean(0).tolist(), strict=True)),
        "steps": (steps.mean(0) / (steps.std(0) / len(runs) ** 0.5)).tolist(),  # in standard errors
    }


HALF = Threshold(0.5)


@rule(
    each=(
        (
            f"more than {HALF:.0%} of the distance is left at 502 tokens (the cases: the last 1 "
            "repeated, a whole period repeated, and a sequence inside a prompt)"
        ),
        lambda last, period, inside: [
            long > HALF * short for short, long in (last, period, inside)
        ],
    ),
    against=(
        f"less than {FIFTH:.0%} of the distance is left",
        lambda last, period, inside: [
            long < FIFTH * short for short, long in (last, period, inside)
        ],
    ),
    nothing=(
        "no commas",
        lambda ones, ones_inside: {"last": ones, "period": ones, "inside": ones_inside},
    ),
)
def commas_prevent_collapse(model: LanguageModel | None = None) -> Numbers:
    """Measure how far a repeated end moves the last hidden state, with and without commas."""
    lengths, commas, inside = [6, 502], {"sequence": "111,"}, {"prompt": "sequence first"}
    return {
        "last": _distance(model, lengths, **commas),
        "period": _distance(model, lengths, **commas, period=4),
        "ones": _distance(model, lengths, period=4),
        "inside": _distance(model, lengths, **commas, **inside),
        "ones_inside": _distance(model, lengths, **inside),
    }


MOST, FEW = Threshold(0.9), Threshold(0.5)  # fractions of the runs


@rule(
    each=(
        (
            f"in at least {MOST:.0%} of the runs one more letter (or one more token) changes the "
            "state more than one more letter without merging"
        ),
        lambda wins, runs: [count >= MOST * runs for count in wins],
    ),
    against=(
        f"this is so in under {FEW:.0%} of the runs",
        lambda wins, runs: [count < FEW * runs for count in wins],
    ),
    nothing=(
        "merging that changes nothing: half of the runs",
        lambda wins, runs: {"wins": [runs / 2] * len(wins)},
    ),
    null="random weights meet the rule, because the tokenizer makes the longer tokens",
)
def merging_alleviates_collapse(model: LanguageModel | None = None) -> Numbers:
    """Count how often one more letter moves the last state further if letters are merged."""
    table = measures.merging(model or models.default())
    more = table[["one letter more", "one token more"]].gt(
        table["one letter more, unmerged"], axis=0
    )
    sizes = table["letters a token"]
    return {
        "runs": len(table),
        "wins": more.sum().tolist(),
        "least": sizes.min(),
        "most": sizes.max(),
    }


@cache
def _copying(model: LanguageModel | None, **setting) -> Numbers:
    """Measure whether a model copies a digit in sequences of 5 and of 300 digits.

    Returns:
        `right`: for each position that the question asks for, whether the model is right at each
            length.
        `able`: whether the model is right at 5 digits for all positions.
        `effect`: the effect of a digit on the logits at 300 digits, keyed by the position of the
            digit and the position that the question asks for.
        `margin`: the logit margin at 300 digits if the last digit is a 0 and is asked for.
    """
    margins = collapse.copying_margins(model or models.default(), [5, 300], **setting)
    right = {place: measures.right_both_ways(margins, place).tolist() for place in collapse.PLACES}
    return {
        "able": all(
            at[0] for at in right.values()
        ),  # if a model is wrong at 5 digits, its answers at 300 tell us nothing
        "right": right,
        "effect": {places: float((zero - one)[-1]) for places, (zero, one) in margins.items()},
        "margin": float(margins["last", "last"][0][-1]),
    }


@rule(
    "first_digit_is_easier",
    holds=(
        "the model copies the first digit right at more lengths than the last digit",
        lambda plain: sum(plain["right"]["first"]) > Threshold(sum(plain["right"]["last"])),
    ),
    able=("the model copies right with five digits", lambda plain: plain["able"]),
    nothing=(
        "an answer that looks at no digit",
        {"plain": {"able": True, "right": {"first": [0, 0], "last": [0, 0]}}},
    ),
)
@rule(
    "groups_help",
    holds=(
        "the model copies the last digit right at more lengths with the groups",
        lambda plain, helped: sum(helped["right"]["last"]) > Threshold(sum(plain["right"]["last"])),
    ),
    able=(
        "the model copies right with five digits and a plain prompt",
        lambda plain: plain["able"],
    ),
    nothing=(
        "a prompt that changes nothing",
        lambda plain: {"plain": {**plain, "able": True}, "helped": plain},
    ),
)
@rule(
    "hints_help",
    each=(
        (
            "the model copies the last digit right at more lengths with the help (a hint, or "
            "alternating ones and zeros)"
        ),
        lambda plain, helped: [
            sum(one["right"]["last"]) > Threshold(sum(plain["right"]["last"]))
            for one in helped.values()
        ],
    ),
    against=(
        "the model copies the last digit right at fewer lengths with the help",
        lambda plain, helped: [
            sum(one["right"]["last"]) < sum(plain["right"]["last"]) for one in helped.values()
        ],
    ),
    able=(
        "the model copies right with five digits and a plain prompt",
        lambda plain: plain["able"],
    ),
    nothing=(
        "prompts that change nothing",
        lambda plain, helped: {
            "plain": {**plain, "able": True},
            "helped": dict.fromkeys(helped, plain),
        },
    ),
)
@rule(
    "prompt_order_matters",
    holds=(
        "the two orders give different results, and both fail at 300 digits",
        lambda first, second: (
            first["right"]["last"] != second["right"]["last"]
            and not (first["right"]["last"][-1] or second["right"]["last"][-1])
        ),
    ),
    able=(
        "the model copies right with five digits in the first order",
        lambda first: first["able"],
    ),
    nothing=(
        "two orders that are one",
        lambda first: {"first": {**first, "able": True}, "second": first},
    ),
)
def copying(model: LanguageModel | None = None, **prompts: dict) -> Numbers:
    """Measure copying in one setting, or in each setting of `prompts`."""

    def read(setting: dict) -> Numbers:
        if any(isinstance(one, dict) for one in setting.values()):
            return {name: read(one) for name, one in setting.items()}
        return _copying(model, **setting)

    return read(prompts)
