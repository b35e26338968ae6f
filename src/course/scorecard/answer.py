"""What the six chapters say together: where something is lost, what helps, at what price, and the claims that show it."""

import html
from typing import NamedTuple

from IPython.display import HTML

from course import scorecard
from course.claims import CLAIMS, CORRECTED, FAILS, HOLDS
from helpers import compute, words


class Bottleneck(NamedTuple):
    """One place where information is lost, and the names of the claims that measure it."""

    chapter: int
    place: str
    reader: str
    limits: str
    worse: str
    helps: str
    price: str
    evidence: tuple[str, ...]


BOTTLENECKS = (
    Bottleneck(
        1,
        "a narrow graph",
        "to averages, and to networks before training; a trained one reads it, after more steps",
        "how much far nodes hear of each other",
        "with hops and with every node on the way; with how many cases must be told apart",
        "an edge in the right place, or one that attention chooses by content",
        "each edge mixes more into all other messages; all pairs cost n² edges",
        ("two_hops_are_faster_where_leaves_are_read", "question_everywhere_helps", "attention_picks_the_leaf"),
    ),
    Bottleneck(
        2,
        "the causal mask",
        "to an average, in the limit; not to the Jacobian of the model measured",
        "who is heard by the last token",
        "with layers: averages of averages end at the first token",
        "residual connections and a sink slow the averaging",
        "a sink takes attention that then carries nothing",
        ("causal_mask_ends_at_the_first_token", "untrained_network_has_a_u", "sinks_slow_mixing"),
    ),
    Bottleneck(
        3,
        "one vector",
        "to a search among rounded states, and in part to a linear read-out; not to a search in full precision",
        "whether two prompts end in two states",
        "with n, where attention spreads: one token of n moves a mean by at most 1/n of the way",
        "sharper maps, more bits; a window for what is near",
        "a window makes what lies behind it exactly equal; sharper maps must be learned or set",
        ("last_weight_vanishes", "the_reader_decides", "window_stops_collapse"),
    ),
    Bottleneck(
        4,
        "a count in a share",
        "to the decoder's own answer; without positions not to a linear read-out",
        "how many there were",
        "with n: 1/n and 1/(n + 1) must stay apart in the number type",
        "one token of another kind; width for many kinds; training on the lengths that are asked",
        "width; strings longer than what is asked, or more steps, for the last places",
        ("first_token_reach", "wide_enough_counts", "the_count_is_there"),
    ),
    Bottleneck(
        5,
        "positions",
        "to the score of a head, and so to the model where heads look at a place",
        "which place is meant, and how far a content can be found",
        "with the distance, where all pairs turn",
        "fast pairs for places, slow or no rotation for content",
        "fast pairs blur content far away; slow ones cannot tell neighbours apart",
        ("rope_makes_places", "fast_pairs_serve_places", "one_frequency_loses_content"),
    ),
    Bottleneck(
        6,
        "the noise of the others",
        "where many small weights add up; in a sum with signs they cancel, and it does not show",
        "how much of one answer is left among n tokens",
        "with n: a fixed lead is worn down",
        "maps that can pick a few tokens or none, a lead that grows with ln n, two kinds of layers",
        "more training steps; most remedies helped at one task only, and none kept the count",
        ("half_of_lambda_is_the_threshold", "race_local_and_global_opens_both", "race_sharper_map_reaches_further"),
    ),
)


class Finding(NamedTuple):
    """What a reader should take along from a claim, and the verdict for which the sentences were written.

    Attributes:
        headline: the finding in one short sentence.
        sentence: what was seen, with `{0}`, `{1}` … for the numbers that the claim measured.
    """

    claim: str
    verdict: str
    headline: str
    sentence: str


FINDINGS = (
    Finding(
        "two_hops_are_faster_where_leaves_are_read",
        HOLDS,
        "A far node is faint, and what is brought nearer is learned faster",
        "Eight leaves at two hops are fitted in less than half the epochs that they take through a tree, at three, and in both "
        "unseen examples are right. With 76 examples such networks fit labels at random as fast: small sets say nothing here.",
    ),
    Finding(
        "causal_attention_is_no_bottleneck",
        CORRECTED,
        "Every token is one hop from the last; depth decides how many are heard",
        "What counts is the number of layers times the share of a state that each gives away. By an average, at the share that "
        "fits an untrained network of 30 layers, nobody is lost yet; in the limit only the first token is left.",
    ),
    Finding(
        "untrained_network_has_a_u",
        HOLDS,
        "A network listens unevenly before it has learned anything",
        "With random weights the last state feels the first and the last token most, and least one of those just before the last.",
    ),
    Finding(
        "the_reader_decides",
        HOLDS,
        "A prompt that rounding loses to one reader is kept by another",
        "In the model measured, a search for the nearest exact state takes about a third of the prompts in bf16 for others, "
        "and none when the same errors are shuffled. A linear read-out is misled nearly as far by both, and the model's own "
        "next token moves further with the shuffled ones.",
    ),
    Finding(
        "rope_decays",
        FAILS,
        "RoPE does not make attention fall with distance",
        "For any distance there is a key that is heard best exactly there. So a theorem that assumes decaying positions does "
        "not cover RoPE.",
    ),
    Finding(
        "first_token_reach",
        HOLDS,
        "Softmax can count, up to a length that the number type sets",
        "One token of another kind is enough: its weight is one over the number of tokens. Stored in bf16 it counts to "
        "{0:,.0f}, in fp16 to {1:,.0f}, in fp32 to {2:,.0f}.",
    ),
    Finding(
        "the_count_is_there",
        FAILS,
        "Whether a wrong count is lost or misread depends on the position encoding",
        "Just beyond the lengths of training a linear read-out that never saw the length finds the count nearly always in "
        "decoders without positions, and the answer follows when the state is moved. With RoPE it finds part of it, and "
        "with absolute positions no more than in a decoder before training.",
    ),
    Finding(
        "fast_pairs_serve_places",
        HOLDS,
        "Heads that look a fixed distance back need RoPE's fast pairs",
        "Silence the fast pairs in these heads, and the loss rises more than in as many other heads. What they cost in all "
        "other heads together depends on where one draws the line between the two kinds.",
    ),
    Finding(
        "the_condition_is_needed",
        HOLDS,
        "A head that learned a distance need not know it for new tokens",
        "It keeps looking there on tokens that it has never seen as far as their queries and keys have a part in common, be "
        "it from the embeddings or from a bias; without one most of its attention goes elsewhere.",
    ),
    Finding(
        "race_local_and_global_opens_both",
        HOLDS,
        "Near by place, far by content: two tasks were kept",
        "In two-layer decoders of width 32, a layer with a window and positions below a full layer without positions stayed "
        "right on retrieval and on naming the last digit at eight times the trained length. It is not alone: so did attention "
        "without positions that goes from the nearest token on.",
    ),
)


def table() -> HTML:
    """The six places, a row each: what is lost, what helps, what it costs, and the claims that show it."""
    names = ("Where", "Lost to whom", "What it limits", "It gets worse", "What helps", "Price")
    head = "".join(f'<th scope="col">{words.translated(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{each.chapter}. {html.escape(words.translated(each.place))}</th>'
        + "".join(f"<td>{html.escape(words.translated(text))}</td>" for text in each[2:7])
        + f'</tr><tr class="answer-evidence"><td colspan="6">{" · ".join(_link(name) for name in each.evidence)}</td></tr>'
        for each in BOTTLENECKS
    )
    return HTML(f'<table class="answer-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>')


def findings() -> HTML:
    """The findings one after the other: headline, sentence, verdict with its link, and what was measured."""
    return HTML(f"<ol>{''.join(map(_item, FINDINGS))}</ol>")


def _item(finding: Finding) -> str:
    """One finding; where the verdict has become another than the one it was written for, the claim's own statement."""
    verdict = scorecard.badge(finding.claim).verdict
    claim = CLAIMS[finding.claim]
    measured = scorecard.measure(claim)
    headline, sentence = claim.statement, ""
    if verdict == finding.verdict:
        headline = finding.headline
        sentence = finding.sentence.format(*(found for _, found in measured.numbers.values()))
    where = f"{claim.shown.partition('#')[0]}.{'html' if compute.building() else 'ipynb'}"
    return (
        f"<li><p><b>{html.escape(words.translated(f'{headline}.'))}</b> {html.escape(words.translated(sentence))} "
        f'(<a href="{where}">{words.translated(f"Chapter {claim.chapter}")}</a>, {_link(finding.claim, verdict=True)}.)</p>'
        f"<details><summary>{words.translated('What was measured')}</summary>"
        f"<p>{html.escape(words.translated(measured.measured))}</p></details></li>"
    )


def _link(name: str, verdict: bool = False) -> str:
    found, sign, colour, address = scorecard.badge(name)
    says = words.translated(found if verdict else CLAIMS[name].statement)
    return f'<a href="{address}"><strong style="color:{colour}">{sign}</strong> {html.escape(says)}</a>'
