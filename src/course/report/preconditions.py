"""Check whether a model can decide a claim, so that a verdict on the claim means something.

For example, an untrained model in which nothing happens agrees with every claim that nothing
happens. So we give a verdict only if the model has learned something, has the parts that the claim
is about, and has enough layers. If the claim agrees with the model, we also apply the claim's rule
to the numbers of a null control. If one of these checks fails, the verdict is "this model cannot
decide", with the reason.
"""

import functools
import math
from typing import TYPE_CHECKING

from course.report.subject import Subject, prose
from course.scorecard import CLAIMS
from helpers import attention, probe

if TYPE_CHECKING:
    from course.report.sections import Need

TOKENS = 128  # the number of tokens of prose on which we measure the loss
LEARNT = 0.9  # as a fraction of the loss of guessing among all tokens
SINKS = 0.05  # the fraction of heads below which we say that a model has no sinks
AGREES = ("holds", "holds with a correction")  # the stronger verdict first


@functools.cache
def loss_on_prose(subject: Subject) -> float:
    """Return the model's loss on the course's prose, in nats per token."""
    return probe.loss(subject.model, prose(subject.model, min(TOKENS, subject.context)))


@functools.cache
def heads_with_a_sink(subject: Subject) -> float:
    """Return the fraction of heads with an attention sink.

    A head has a sink if its sink score on 64 tokens of prose exceeds the course's threshold.
    """
    tokens = prose(subject.model, min(64, subject.context))
    return attention.share_of_strong_heads(probe.head_scores(subject.model, tokens).sink)


def unable(need: "Need", subject: Subject) -> str | None:
    """Return the reason why a model cannot decide a claim, or None if it can.

    Raises:
        ValueError: if the loss or the sinks cannot be measured.
    """
    layers = len(probe.layers(subject.model))
    if layers < need.layers:
        return f"this needs {need.layers} layers, and the model has {layers}"
    if not need.untrained:
        loss, guess = loss_on_prose(subject), math.log(subject.config.vocab_size)
        if loss > LEARNT * guess:
            return (
                f"the model has not learnt: its loss on prose is {loss:.1f} nats, and a guess "
                f"among all tokens costs {guess:.1f}"
            )
    if need.sinks:
        share = heads_with_a_sink(subject)
        if share < SINKS:
            return f"this is about sinks, and {share:.0%} of the heads have one"
    return None


def agrees_with_nothing(name: str, verdict: str, of_nothing: dict[str, str]) -> str | None:
    """Return why a verdict of "holds" proves nothing for this model, or None otherwise.

    The reason is that the claim's rule gives the same verdict for the claim's null control, with
    this model's numbers.

    >>> name = "uniform attention: no head"
    >>> agrees_with_nothing("first_token_is_a_sink", "holds", {name: "holds"})
    'the rule says the same of nothing (uniform attention: no head)'
    >>> agrees_with_nothing("first_token_is_a_sink", "holds", {name: "does not hold here"})
    """
    rule = CLAIMS[name].rule
    if verdict not in AGREES or rule.nothing is None:
        return None
    words = rule.nothing[0]
    as_strong = AGREES[: AGREES.index(verdict) + 1]
    return (
        f"the rule says the same of nothing ({words})"
        if of_nothing.get(words) in as_strong
        else None
    )
