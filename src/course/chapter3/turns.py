"""What might have turned the claims of chapter 3, run: other tokens than the 1."""

from course.chapter3 import claims
from course.evidence.rules import Numbers
from course.evidence.turns import turn
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
