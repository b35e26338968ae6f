"""What the six chapters say together: where something is lost, what helps, at what price, and the claims that show it."""

import html
from typing import NamedTuple

from IPython.display import HTML

from helpers import compute, scorecard
from helpers.claims import CLAIMS


class Bottleneck(NamedTuple):
    """One place where information is lost, and the names of the claims that measure it."""

    chapter: int
    place: str
    limits: str
    grows: str
    helps: str
    price: str
    evidence: tuple[str, ...]


BOTTLENECKS = (
    Bottleneck(
        1,
        "a narrow graph",
        "how much far nodes hear of each other",
        "with hops and with every node on the way; with how many cases must be told apart",
        "an edge in the right place, or one that attention chooses by content",
        "each edge mixes more into all other messages; all pairs cost n² edges",
        ("one_bit_a_number", "few_examples_are_fitted", "attention_picks_the_leaf"),
    ),
    Bottleneck(
        2,
        "the causal mask",
        "who is heard by the last token",
        "with layers: averages of averages end at the first token",
        "residual connections; a sink, on which a head can rest",
        "a sink takes attention that carries nothing",
        ("causal_mask_ends_at_the_first_token", "untrained_network_has_a_u", "sinks_slow_mixing"),
    ),
    Bottleneck(
        3,
        "one vector",
        "whether two prompts end in two states",
        "with n, if attention spreads: one token in n changes a mean by 1/n",
        "sharper maps, more bits; a window for what is near",
        "a window makes what lies behind it exactly equal; sharper maps must be learned or set",
        ("last_weight_vanishes", "direction_of_rounding_decides", "window_stops_collapse"),
    ),
    Bottleneck(
        4,
        "a count in a share",
        "how many there were",
        "with n: 1/n and 1/(n + 1) must stay apart in the number type",
        "one token of another kind; width for many kinds; training on the lengths that are asked",
        "width, and steps that grow with the length",
        ("first_token_reach", "wide_enough_counts", "the_count_is_there"),
    ),
    Bottleneck(
        5,
        "positions",
        "which place is meant, and how far a content can be found",
        "with the distance, where all pairs turn",
        "fast pairs for places, slow or no rotation for content",
        "fast pairs blur content far away; slow ones cannot tell neighbours apart",
        ("rope_makes_places", "fast_pairs_serve_places", "one_frequency_loses_content"),
    ),
    Bottleneck(
        6,
        "the noise of the others",
        "how much of one answer is left among n tokens",
        "with n: a fixed lead is worn down",
        "a map with a choice, a lead that grows with ln n, two kinds of layers",
        "a second map and what it must learn; most remedies helped at one of two tasks only",
        ("half_of_lambda_is_the_threshold", "race_positions_are_not_enough", "race_local_and_global_opens_both"),
    ),
)


def table() -> HTML:
    """The six places, a row each: what is lost, what helps, what it costs, and the claims that show it.

    Raises:
        ValueError: a claim is named that there is not.
    """
    names = ("Where", "What it limits", "It grows", "What helps", "Price")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{each.chapter}. {html.escape(each.place)}</th>'
        + "".join(f"<td>{html.escape(text)}</td>" for text in each[2:6])
        + f'</tr><tr class="answer-evidence"><td colspan="5">{" · ".join(_link(name) for name in each.evidence)}</td></tr>'
        for each in BOTTLENECKS
    )
    return HTML(f'<table class="answer-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>')


def findings(names: list[str]) -> HTML:
    """Claims one after the other: verdict, statement, what was measured, each with its link.

    Raises:
        ValueError: a claim is named that there is not.
    """
    items = "".join(
        f"<li><p><b>{html.escape(_claim(name).statement)}.</b> {_link(name, verdict=True)}<br>"
        f"<details><summary>what was measured</summary><small>{html.escape(scorecard.found(_claim(name)).measured)}</small></details></p></li>"
        for name in names
    )
    return HTML(f"<ol>{items}</ol>")


def _claim(name: str):
    if name not in CLAIMS:
        raise ValueError(f"name must be one of the {len(CLAIMS)} claims, not {name!r}")
    return CLAIMS[name]


def _link(name: str, verdict: bool = False) -> str:
    claim = _claim(name)
    found = scorecard.found(claim).verdict
    sign, colour = scorecard.LOOKS[found]
    page = "scorecard.html" if compute.building() else "scorecard.ipynb"
    words = found if verdict else claim.statement
    return f'<a href="{page}#{name}"><strong style="color:{colour}">{sign}</strong> {html.escape(words)}</a>'
