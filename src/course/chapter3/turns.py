"""Run what might have turned the claims of chapter 3, run: other tokens than the 1, other logits, other decays."""

import torch

from course.chapter3 import claims
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from course.maths import constructions
from helpers import data


@turn(
    "ones_collapse",
    asked="thirteen other tokens, repeated as the 1 is",
    survives=(
        "for twelve of the fourteen the distance falls to a fifth from n = 8 to 16 to n = 400 to 511",
        lambda fall: sum(x < claims.FIFTH for x in fall.values()) >= 12,
    ),
    turned=(
        "for two or more it does not fall at all",
        lambda fall: sum(x > 1 for x in fall.values()) >= 2,
    ),
    measured="far over near: {', '.join(f'{name!r} {x:.2g}' for name, x in sorted(fall.items(), key=lambda pair: pair[1]))}; below a fifth {sum(x < claims.FIFTH for x in fall.values())} of {len(fall)}, above one {sum(x > 1 for x in fall.values())}",
)
def other_tokens() -> Numbers:
    """By repeated token, the distance of n and n + 1 copies at 400 to 511 over that at 8 to 16."""
    return {"fall": data.table("fourteen_tokens").set_index("name")["fall"].to_dict()}


@turn(
    "direction_of_rounding_decides",
    asked="thirteen other tokens, 200 to 511 copies in bf16",
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
    measured="right with its own errors {min(own):.0%} to {max(own):.0%}, shuffled {min(shuffled):.0%} to {max(shuffled):.0%}, isotropic {min(isotropic):.0%} to {max(isotropic):.0%}; fewer with its own in {sum(a < min(b, c) for a, b, c in zip(own, shuffled, isotropic))} of {len(own)} tokens",
)
def other_tokens_rounded() -> Numbers:
    """By repeated token, how often the nearest exact state is the right one, by kind of error."""
    table = data.table("fourteen_tokens")
    return {
        "own": table["nearest"].tolist(),
        "shuffled": table["shuffled"].tolist(),
        "isotropic": table["isotropic"].tolist(),
    }


@turn(
    "the_reader_decides",
    asked="a search that has the right codebook: it compares the rounded state with rounded ones, for fourteen tokens",
    survives=("it loses no prompt of any token", lambda apart: min(apart) == 1),
    turned=(
        "it loses as many as the search among exact states",
        lambda apart, nearest: min(apart) <= min(nearest),
    ),
    measured="right in {min(apart):.0%} to {max(apart):.0%} of the prompts by token; a search among exact states in {min(nearest):.0%} to {max(nearest):.0%}",
)
def right_codebook() -> Numbers:
    """By repeated token, the share of rounded states that no other equals, and that whose exact state is the nearest."""
    table = data.table("fourteen_tokens")
    return {"apart": table["apart"].tolist(), "nearest": table["nearest"].tolist()}


@turn(
    "last_weight_vanishes",
    asked="logits of a Gaussian of standard deviation 2 in the place of bounded ones, so that a few keys can be far ahead",
    survives=(
        f"the largest weight of 200 rows still falls with n and ends below {float(claims.VANISHED):g}",
        lambda largest: largest == sorted(largest, reverse=True) and largest[-1] < claims.VANISHED,
    ),
    turned=("at n = 10,000 it is above a tenth", lambda largest: largest[-1] > 0.1),
    measured="largest weight of the last token in 200 rows of 10, 100, 1,000 and 10,000: {', '.join(f'{x:.2g}' for x in largest)}",
)
def gaussian_logits() -> Numbers:
    """The largest weight of the last token in rows of Gaussian logits, by length."""
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
    asked="positions that decay faster or more slowly than exp(-r / 10)",
    survives=(
        f"with each the two representations are nearer than {float(claims.VANISHED):g} at n = 10,000",
        lambda distance: max(each[-1] for each in distance.values()) < claims.VANISHED,
    ),
    turned=(
        "with one they are no nearer than at n = 10",
        lambda distance: any(each[-1] >= each[0] for each in distance.values()),
    ),
    measured="distance at n = 10 and 10,000: {'; '.join(name + ' ' + ', '.join(f'{x:.2g}' for x in each) for name, each in distance.items())}",
)
def other_decays() -> Numbers:
    """By decay, the distance of the last representations at n = 10 and n = 10,000."""
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
    asked="four other decays of the logits",
    survives=(
        "with each the two rows differ as much in their last entry at n = 10,000 as at n = 10",
        lambda last: all(abs(a - b) < 1e-9 and a > 0 for a, b in last.values()),
    ),
    turned=(
        "with one the difference falls to a tenth",
        lambda last: any(b < 0.1 * a for a, b in last.values()),
    ),
    measured="difference of the logits in the last entry at n = 10 and 10,000: {'; '.join(f'{name} {a:.3g}, {b:.3g}' for name, (a, b) in last.items())}",
)
def other_rows() -> Numbers:
    """By decay, how far the logits of the two rows differ in their last entry, at n = 10 and 10,000."""
    last = {}
    for name, decay in DECAYS.items():
        rows = [decay(torch.arange(n, -1, -1, dtype=torch.float64)) for n in (10, 10_000)]
        last[name] = tuple(float((row[1:] - row[:-1])[-1].abs()) for row in rows)
    return {"last": last}
