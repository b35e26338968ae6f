"""Run the experiments that might change the verdicts on the claims of chapter 3.

They use tokens other than 1, other logits and other decays.
"""

import itertools
from functools import cache

import torch

from course.chapter3 import claims, measures, variations
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from course.maths import constructions
from helpers import data, models


@turn(
    "ones_collapse",
    asked="We repeated thirteen other tokens instead of the 1",
    survives=(
        (
            "for twelve of the fourteen the distance falls to a fifth from n = 8 to 16 to n = 400 "
            "to 511"
        ),
        lambda fall: sum(x < claims.FIFTH for x in fall.values()) >= 12,
    ),
    turned=(
        "for two or more it does not fall at all",
        lambda fall: sum(x > 1 for x in fall.values()) >= 2,
    ),
    measured=(
        "The fraction of the distance that is left is {', '.join(f'{x:.2g} ({name!r})' for "
        "name, x in sorted(fall.items(), key=lambda pair: pair[1]))}. It is below a fifth "
        "for {sum(x < claims.FIFTH for x in fall.values())} of {len(fall)} tokens, and above "
        "one for {sum(x > 1 for x in fall.values())}"
    ),
)
def other_tokens() -> Numbers:
    """Return the factor by which the distance falls with the length, for other repeated tokens.

    The factor is the distance between n and n + 1 copies at n = 400 to 511 divided by the distance
    at n = 8 to 16. The result is keyed by the token.
    """
    return {"fall": data.table("fourteen_tokens").set_index("name")["fall"].to_dict()}


@turn(
    "direction_of_rounding_decides",
    asked="We took thirteen other tokens, in 200 to 511 copies in bf16",
    survives=(
        "for each token its own errors leave fewer than shuffled and isotropic ones",
        lambda own, shuffled, isotropic: all(
            a < min(b, c) for a, b, c in zip(own, shuffled, isotropic, strict=True)
        ),
    ),
    turned=(
        "for half of them shuffled or isotropic errors leave as few",
        lambda own, shuffled, isotropic: (
            2 * sum(a >= min(b, c) for a, b, c in zip(own, shuffled, isotropic, strict=True))
            >= len(own)
        ),
    ),
    measured=(
        "The search is right in {min(own):.0%} to {max(own):.0%} of the prompts with their "
        "own errors, in {min(shuffled):.0%} to {max(shuffled):.0%} with shuffled errors and "
        "in {min(isotropic):.0%} to {max(isotropic):.0%} with isotropic errors. It is right "
        "less often with the own errors for {sum(a < min(b, c) for a, b, c in zip(own, "
        "shuffled, isotropic))} of {len(own)} tokens"
    ),
)
def other_tokens_rounded() -> Numbers:
    """Measure how often a state with an error is nearest to its exact state, for other tokens.

    The prompts repeat one token. The result has one list per kind of error, with one fraction per
    token.
    """
    table = data.table("fourteen_tokens")
    return {
        "own": table["nearest"].tolist(),
        "shuffled": table["shuffled"].tolist(),
        "isotropic": table["isotropic"].tolist(),
    }


@turn(
    "the_reader_decides",
    asked=(
        "We took a linear readout with one of four fixed penalties, instead of the penalty "
        "that leaving out each prompt chooses"
    ),
    survives=(
        (
            "with each penalty the readout's median error is largest with isotropic errors, 1.5 "
            "times that with its own"
        ),
        lambda own, isotropic: all(isotropic[k] > 1.5 * own[k] for k in own),
    ),
    turned=(
        "with two penalties or more its own errors do it more harm than isotropic ones",
        lambda own, isotropic: sum(own[k] > isotropic[k] for k in own) >= 2,
    ),
    measured=(
        "The order depends on the penalty of the linear readout. The median error of n with "
        "the format's own errors and with isotropic errors is {', '.join(f'{own[k]:.1f} and "
        "{isotropic[k]:.1f} (penalty {k:g} times the mean eigenvalue)' for k in own)}. With "
        "the penalty chosen by leaving out ({chosen}) it is {left_out[0]:.1f} and "
        "{left_out[1]:.1f}"
    ),
)
def fixed_penalties() -> Numbers:
    """Measure the median error of a linear probe of n at fixed penalties.

    The states have bf16's own errors, or isotropic errors of the same length.
    """
    return variations.fixed_penalties((1e-6, 1e-4, 1e-2, 1.0))


@turn(
    "last_weight_vanishes",
    asked=(
        "We took Gaussian logits with a standard deviation of 2 instead of bounded ones, so "
        "that a few keys can be far ahead"
    ),
    survives=(
        (
            "the largest weight of 200 rows still falls with n and ends below "
            f"{float(claims.VANISHED):g}"
        ),
        lambda largest: largest == sorted(largest, reverse=True) and largest[-1] < claims.VANISHED,
    ),
    turned=("at n = 10,000 it is above a tenth", lambda largest: largest[-1] > 0.1),
    measured=(
        "The largest weight of the last token in 200 rows of 10, 100, 1,000 and 10,000 "
        "tokens is {', '.join(f'{x:.2g}' for x in largest)}"
    ),
)
def gaussian_logits() -> Numbers:
    """Measure the largest weight of a last token in rows of Gaussian logits, for each length.

    If this weight falls with the length, the claim does not need bounded logits.
    """
    generator = torch.Generator().manual_seed(0)
    rows = [
        2 * torch.randn(200, n, generator=generator, dtype=torch.float64)
        for n in (10, 100, 1000, 10_000)
    ]
    return {"largest": [float(row.softmax(1)[:, -1].max()) for row in rows]}


DECAYS = {  # how a logit falls with the distance r, faster and slower than in the claim
    "2 exp(-r)": lambda r: 2 * torch.exp(-r),
    "3 exp(-r / 100)": lambda r: 3 * torch.exp(-r / 100),
    "3 / (1 + r)": lambda r: 3 / (1 + r),
    "3 / log(2 + r)": lambda r: 3 / torch.log(2 + r),
}


@turn(
    "decaying_positions_collapse",
    asked="We took positions that decay faster or more slowly than exp(-r / 10)",
    survives=(
        (
            f"with each the two representations are nearer than {float(claims.VANISHED):g} at n = "
            "10,000"
        ),
        lambda distance: max(each[-1] for each in distance.values()) < claims.VANISHED,
    ),
    turned=(
        "with one they are no nearer than at n = 10",
        lambda distance: any(each[-1] >= each[0] for each in distance.values()),
    ),
    measured=(
        "The distance at n = 10 and at n = 10,000 is {'; '.join(' and '.join(f'{x:.2g}' for "
        "x in each) + f' with {name}' for name, each in distance.items())}"
    ),
)
def other_decays() -> Numbers:
    """Measure how far one more token moves the output at n = 10 and 10,000, for other decays.

    The logits fall faster or more slowly with the distance than in the claim.
    """
    distance = {}
    for name, decay in DECAYS.items():
        distance[name] = [
            float(
                constructions.repeat_last(decay, constructions.rotating_values("random", n, 0.0))[0]
            )
            for n in (10, 10_000)
        ]
    return {"distance": distance}


@turn(
    "proof_is_rough",
    asked="We took four other decays of the logits",
    survives=(
        "with each the two rows differ as much in their last entry at n = 10,000 as at n = 10",
        lambda last: all(abs(a - b) < 1e-9 and a > 0 for a, b in last.values()),
    ),
    turned=(
        "with one the difference falls to a tenth",
        lambda last: any(b < 0.1 * a for a, b in last.values()),
    ),
    measured=(
        "The logits differ in their last entry at n = 10 and at n = 10,000 by {'; "
        "'.join(f'{a:.3g} and {b:.3g} with {name}' for name, (a, b) in last.items())}"
    ),
)
def other_rows() -> Numbers:
    """Measure how much the last entries of two rows of logits differ, for other decays.

    The rows are those before and after one more token, at n = 10 and 10,000. A proof assumes that
    this difference vanishes.
    """
    last = {}
    for name, decay in DECAYS.items():
        rows = [decay(torch.arange(n, -1, -1, dtype=torch.float64)) for n in (10, 10_000)]
        last[name] = tuple(float((row[1:] - row[:-1])[-1].abs()) for row in rows)
    return {"last": last}


@turn(
    "early_noise_is_forgotten",
    asked="We took noise of 0.01, 1 and 3 instead of 0.1, ten seeds, and up to 100,000 tokens",
    survives=(
        (
            "for each n times the distance comes to 0.9 to 1.1 of its limit, and it rises before "
            "it falls"
        ),
        lambda ratio, first: (
            all(0.9 <= x <= 1.1 for x in ratio.values()) and max(first.values()) < 1
        ),
    ),
    turned=(
        (
            "for one n times the distance is below 0.5 of its limit, or the distance falls from "
            "50 tokens on"
        ),
        lambda ratio, first: min(ratio.values()) < 0.5 or max(first.values()) > 1,
    ),
    measured=(
        "At n = 100,000, n times the total variation is {', '.join(f'{x:.3f} of its limit "
        "(noise of {k:g})' for k, x in ratio.items())}. The total variation at 50 tokens is "
        "{', '.join(f'{x:.2f}' for x in first.values())} of its largest value"
    ),
)
def other_noise() -> Numbers:
    """Measure the total variation for noise of other sizes.

    Returns:
        `ratio`: n times the total variation divided by its limit, at 100,000 tokens, keyed by the
            size of the noise.
        `first`: the total variation at 50 tokens divided by the largest total variation at a longer
            length.
    """
    lengths, ratio, first = [50, 100, 200, 350, 500, 1000, 10_000, 100_000], {}, {}
    for noise in (0.01, 1.0, 3.0):
        found = constructions.perturbed_total_variation(lengths, seeds=10, noise=noise).mean(0)
        limit = constructions.perturbation_limit(noise=noise)
        ratio[noise] = float(found[-1]) * lengths[-1] / limit
        first[noise] = float(found[0] / found[1:].max())
    return {"ratio": ratio, "first": first}


@cache
def _other_widths() -> dict[int, dict[str, float]]:
    """Measure how much of the distance remains from n = 10 to n = 10,000, for other widths.

    The fractions are keyed by width and position encoding, and are means over ten seeds.
    """

    def left(choice: dict, width: int) -> float:
        runs = [
            constructions.one_layer_distance(
                **choice, lengths=(10, 10_000), residual=True, width=width, seed=seed
            )
            for seed in range(10)
        ]
        near, far = torch.stack(runs).mean(0)
        return float(far / near)

    return {
        width: {name: left(choice, width) for name, choice in measures.READING.items()}
        for width in (16, 128)
    }


_LEFT = (
    "left at n = 10,000 of the distance at 10: {'; '.join(f'width {width} ' + ', '.join(f'{name} "
    "{x:.2g}' for name, x in each.items()) for width, each in left.items())}"
)


@turn(
    "all_encodings_collapse",
    asked="We took heads of width 16 and 128 instead of 64",
    survives=(
        "each encoding leaves less than a fifth at both widths",
        lambda left: max(max(each.values()) for each in left.values()) < claims.FIFTH,
    ),
    turned=(
        "one leaves more than half",
        lambda left: max(max(each.values()) for each in left.values()) > 0.5,
    ),
    measured=(
        "From n = 10 to n = 10,000, the fraction of the distance that is left is {'; "
        "'.join(', '.join(f'{x:.2g} ({name})' for name, x in each.items()) + f' at width "
        "{width}' for width, each in left.items())}"
    ),
)
def other_widths() -> Numbers:
    """Measure how much of the distance between last states remains, for other head widths.

    The result is keyed by "left", then by width, then by position encoding. Each value is the
    distance for one repeated token at n = 10,000 divided by the distance at n = 10.
    """
    return {"left": _other_widths()}


@turn(
    "encodings_collapse_alike",
    asked="We took heads of width 16 and 128 instead of 64",
    survives=(
        "what is left differs by more than a factor of ten at both widths",
        lambda times: min(times) > 10,
    ),
    turned=("at one it is within a factor of ten", lambda times: min(times) <= 10),
    measured=(
        "From n = 10 to n = 10,000, the fraction of the distance that is left is {'; "
        "'.join(', '.join(f'{x:.2g} ({name})' for name, x in each.items()) + f' at width "
        "{width}' for width, each in left.items())}. The fractions differ by a factor of {', "
        "'.join(f'{x:,.0f}' for x in times)}"
    ),
)
def apart_at_other_widths() -> Numbers:
    """Measure by what factor the encodings differ in the remaining distance, for each width."""
    left = _other_widths()
    return {"left": left, "times": [max(e.values()) / min(e.values()) for e in left.values()]}


@turn(
    "low_precision_is_worse",
    asked="We took six other tokens, in 100 to 300 copies",
    survives=(
        "for each token bf16 tells n from n + 1 no more often than fp16, and for most less often",
        lambda bf16, fp16: (
            all(bf16[k] <= fp16[k] for k in bf16)
            and 2 * sum(bf16[k] < fp16[k] for k in bf16) > len(bf16)
        ),
    ),
    turned=(
        "for two tokens or more it does so more often",
        lambda bf16, fp16: sum(bf16[k] > fp16[k] for k in bf16) >= 2,
    ),
    measured=(
        "The right one of two prompts is found in bf16 and in fp16 in {', "
        "'.join(f'{bf16[k]:.0%} and {fp16[k]:.0%} ({k!r})' for k in bf16)}"
    ),
)
def other_tokens_in_fp16() -> Numbers:
    """Measure how often a rounded state is nearer to its own exact state than to the next one.

    The states are those of n copies of a token, and the next state is that of n + 1 copies.
    The result has one dictionary for bf16 and one for fp16, keyed by the token.
    """
    return variations.right_of_two(("0", " the", "x", ",", "a", " dog"), 100, 300)


@turn(
    "prompts_can_be_recovered",
    asked=(
        "We took the states of the model in bf16, and the search compared them with exact states"
    ),
    survives=(
        "after each layer the nearest candidate of every token is the right one",
        lambda missed: not any(missed.values()),
    ),
    turned=("after one layer a token is missed", lambda missed: any(missed.values())),
    measured=(
        "Of 20 tokens with {candidates} candidates each, the search misses {', "
        "'.join(f'{count} after layer {layer}' for layer, count in missed.items())}. The "
        "right state is at most {own:.2g} of its length away, and another state at least "
        "{other:.2g}"
    ),
)
def seen_in_bf16() -> Numbers:
    """Count the tokens that are not recovered from states in bf16, for each layer.

    A token is not recovered if its nearest candidate is a wrong one. The prompt has 20 tokens.
    """
    return variations.recovered_from_bf16()


@turn(
    "window_stops_collapse",
    asked=(
        "We took windows of 4, 16 and 32, three and six layers, and rows of 400 ones instead of 100"
    ),
    survives=(
        "in each set-up equal tokens keep less than a fifth from n = 5 on",
        lambda kept: max(kept.values()) < claims.FIFTH,
    ),
    turned=("in one they keep more", lambda kept: max(kept.values()) > claims.FIFTH),
    measured=(
        "For equal tokens, the distance at n = 400, divided by the distance at n = 5, is {', "
        "'.join(f'{x:.2g} ({layers} layers, window {window})' for (layers, window), x in "
        "kept.items())}"
    ),
)
def other_windows() -> Numbers:
    """Measure how much of the distance between last states remains, for other windows.

    The tokens are equal. The fraction that remains is the distance at n = 400 divided by the
    distance at n = 5. It is keyed by the number of layers and the number of tokens in the window.
    If the fraction stays near 1, the window stops collapse.
    """
    kept = {}
    for layers, window in itertools.product((3, 6), (4, 16, 32)):
        near, far = measures.window_distance(
            measures.SEQUENCES[1], window, [5, 400], layers=layers, seeds=3
        )
        kept[layers, window] = float(far / near)
    return {"kept": kept}


@turn(
    "window_stops_over_squashing",
    asked=(
        "We took 9, 12 and 16 layers instead of 4, so that all 64 tokens are within reach of "
        "a window of 8"
    ),
    survives=(
        "at each depth the nearest tokens gain and a far one loses",
        lambda near, far: min(near.values()) > 1 and min(far.values()) < 1,
    ),
    turned=(
        "at each depth no far token loses, or at one the nearest do not gain",
        lambda near, far: min(far.values()) >= 1 or min(near.values()) <= 1,
    ),
    measured=(
        "The window multiplies the influence of the nearest tokens by {', "
        "'.join(f'{near[layers]:.2f} ({layers} layers)' for layers in near)}. Among the "
        "tokens from distance 29 onwards, the smallest factor is {', "
        "'.join(f'{far[layers]:.2g} ({layers} layers)' for layers in near)}"
    ),
)
def deeper_windows() -> Numbers:
    """Measure how a window changes the influence of near and far tokens in deeper decoders.

    Returns:
        `near`: for each number of layers, the factor by which the window changes the mean influence
            of the nearest tokens.
        `far`: for each number of layers, the smallest factor for a far token.
    """
    near, far = {}, {}
    for layers in (9, 12, 16):
        free, held = (measures.influence(window, layers=layers) for window in (None, 8))
        near[layers] = float(held[1:8].mean() / free[1:8].mean())
        far[layers] = float((held[29:] / free[29:]).min())
    return {"near": near, "far": far}


@turn(
    "separators_do_not_follow",
    asked="We took a comma after every 3rd, 5th and 10th digit, and up to 1,600 tokens",
    survives=(
        "the distance falls five-fold at each spacing, for one token more and for a period more",
        lambda falls: min(min(each) for each in falls.values()) > 5,
    ),
    turned=(
        "in one case it falls less than two-fold",
        lambda falls: min(map(min, falls.values())) < 2,
    ),
    measured=(
        "From the first to the last length, the distance falls by these factors, for one "
        "more token and for one more period: {'; '.join(' and '.join(f'{x:.0f}' for x in "
        "each) + f' with a comma after every {k} digits' for k, each in falls.items())}"
    ),
)
def other_spacings() -> Numbers:
    """Measure the factor by which the distance falls with the length, for other comma spacings.

    The result has two factors for each spacing, for one more token and for one more period of
    digits and comma.
    """
    falls = {}
    for spacing in (3, 5, 10):
        period = spacing + 1
        tokens = [0] + ([1] * spacing + [2]) * (1700 // period)
        lengths = [2 * period + 1, 1600 // period * period + 1]
        falls[spacing] = [
            float(torch.div(*measures.random_distance(tokens, lengths, step, seeds=3)))
            for step in (1, period)
        ]
    return {"falls": falls}


@turn(
    "varied_digits_delay_collapse",
    asked=(
        "We took ten draws of 202 digits instead of four of 502, and four draws that end in 50 ones"
    ),
    survives=(
        "each draw keeps twice the distance of as many ones, and ending on 50 ones under twice",
        lambda varied, ends: min(varied) > 2 and sum(ends) < 2 * len(ends),
    ),
    turned=(
        "half of the draws keep less than twice, or ending on 50 ones they keep twice, too",
        lambda varied, ends: 2 * sum(x < 2 for x in varied) >= len(varied) or min(ends) > 2,
    ),
    measured=(
        "With 202 random digits, the distance is {min(varied):.1f} to {max(varied):.1f} "
        "times that of 202 ones. If the digits end in 50 ones, it is {min(ends):.2f} to "
        "{max(ends):.2f} times that of ones"
    ),
)
def more_draws() -> Numbers:
    """Compare the distance after 202 random digits with the distance after 202 ones.

    The distance is how far one repeated digit moves the last state. There are more draws than in
    the claim. The digits are random ("varied"), or random with 50 ones at the end ("ends").
    """
    ones = torch.tensor(claims._distance(None, range(192, 213, 5))).median()
    varied = [
        claims._distance(None, [202], sequence=measures.random_digits(202, [202], seed))[0]
        for seed in range(10)
    ]
    ends = [
        claims._distance(None, [202], sequence=measures.random_digits(202, range(153, 203), seed))[
            0
        ]
        for seed in range(4)
    ]
    return {"varied": [x / float(ones) for x in varied], "ends": [x / float(ones) for x in ends]}


@turn(
    "commas_prevent_collapse",
    asked=(
        "We took a comma after every digit and after every 2nd, 5th and 10th digit, and "
        "sevens instead of ones"
    ),
    survives=(
        "for no spacing a period more leaves half of the distance at about 500 tokens",
        lambda left: max(left.values()) < 0.5,
    ),
    turned=(
        "for half of them it does",
        lambda left: 2 * sum(x > 0.5 for x in left.values()) >= len(left),
    ),
    measured=(
        "The distance for one more period at about 500 tokens, divided by that at three "
        "periods, is {', '.join(f'{x:.2g} (digit and spacing: {name})' for name, x in "
        "left.items())}"
    ),
)
def other_commas() -> Numbers:
    """Measure how much of the distance remains for other digits and spacings of the commas.

    The sequence grows by one period of digits and comma.
    """
    left = {}
    for digit, spacing in itertools.product("17", (1, 2, 5, 10)):
        period = spacing + 1
        near, far = claims._distance(
            None,
            [3 * period, 500 // period * period],
            sequence=digit * spacing + ",",
            period=period,
        )
        left[f"{digit}, every {spacing}"] = far / near
    return {"left": left}


@turn(
    "merging_alleviates_collapse",
    asked="We took five other characters: e, o, s, = and -",
    survives=(
        "one token more changes more than without merging in under half of the runs",
        lambda token, runs: token < 0.5 * runs,
    ),
    turned=("in nine tenths or more", lambda token, runs: token >= 0.9 * runs),
    measured=(
        "Of {runs} runs of 16 to 256 characters, one more character changes the state more "
        "than without merging in {letter}, and one more whole token in {token}"
    ),
)
def other_letters() -> Numbers:
    """Count how often one more letter changes the last state more with merging than without.

    The letters differ from those in the claim.

    Returns:
        `runs`: the number of runs.
        `letter`, `token`: in how many runs one more letter, or one more token, changes the state
            more than one more letter without merging does.
    """
    table = measures.merging(models.default(), "eos=-")
    more = table[["one letter more", "one token more"]].gt(
        table["one letter more, unmerged"], axis=0
    )
    letter, token = more.sum().tolist()
    return {"runs": len(table), "letter": letter, "token": token}
