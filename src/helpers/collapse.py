"""Measure representational collapse: how a decoder's last state stops telling prompts apart, which
is the subject of chapter 3.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import compute, models, probe, require


def round_to(x: Float[Tensor, "..."], dtype: str | torch.dtype) -> Float[Tensor, "..."]:
    """Round float64 numbers once to the nearest values that a floating-point format can hold, ties
    to even.

    Call this to see what a format loses, because the results stay in float64 and can be compared
    exactly. A cast to bfloat16 may round twice, by way of float32, but this function rounds once.
    Values beyond the largest one become infinity.

    >>> round_to(torch.tensor([257.0, 70_000.0]).double(), "bf16").tolist()
    [256.0, 70144.0]
    >>> round_to(torch.tensor([70_000.0]).double(), "fp16").tolist()
    [inf]
    """
    x = require.tensor("x", x, "...").double()
    kind = torch.finfo(compute.dtype(dtype))
    _, exponent = torch.frexp(x)
    spacing = torch.ldexp(torch.full_like(x, kind.eps), exponent - 1)
    spacing = spacing.clamp(min=kind.smallest_normal * kind.eps)
    rounded = (x / spacing).round() * spacing
    return torch.where(rounded.abs() > kind.max, rounded.sign() * math.inf, rounded)


def last_token_distance(
    model: models.LanguageModel,
    lengths: Sequence[int],
    *,
    sequence: str = "1",
    head: str | None = None,
    tail: str = "",
    period: int = 1,
) -> Float[Tensor, " lengths"]:
    """Measure how far the last token's final representation moves when the end of the sequence is
    repeated.

    For each length n we compare two prompts by the L1 distance of their last states: head + first n
    tokens + tail, and head + first n tokens + the last `period` of them again + tail. A distance
    that falls to 0 means that the model can no longer tell the two prompts apart (Barbero et al.,
    2024, Figures 5 and 12). One pass over the longest prefix serves all lengths.

    Args:
        model: a model from `models.load`.
        lengths: the lengths n, in tokens of the sequence.
        sequence: a text. If it is too short, we repeat it until it is long enough.
        head: the text before the sequence. None puts the model's first token there (see
            `probe.first_token`), because without it equal tokens have equal representations at
            every length.
        tail: the text after the sequence.
        period: how many tokens are repeated. If a separator follows every digit, 2 keeps the phase
            ("1,1," against "1,1,1,").

    >>> short, long = last_token_distance(models.default(), [2, 64]).tolist()
    >>> short > long
    True
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    lengths = require.integers("lengths", lengths, 1)
    if require.integer("period", period, 1) > min(lengths):
        raise ValueError(f"lengths must be at least the period, {period}, not {min(lengths)}")
    for name, text in (
        ("sequence", sequence),
        ("head", "" if head is None else head),
        ("tail", tail),
    ):
        require.text(name, text)
    unit = probe.encode(model, sequence)
    if len(unit) == 0:
        raise ValueError("sequence must not be empty")
    before = probe.first_token(model) if head is None else probe.encode(model, head)
    body = unit.repeat(-(-max(lengths) // len(unit)))[: max(lengths)]
    ids, ending = torch.cat([before, body]), probe.encode(model, tail)
    stops = [len(before) + n for n in lengths]
    continuations = [(n, ending) for n in stops] + [
        (n, torch.cat([ids[n - period : n], ending])) for n in stops
    ]
    once, twice = probe._after(model, ids, continuations).states.cpu().double().chunk(2)
    return (once - twice).abs().sum(-1)


_FORM = "Please answer exactly as 'The answer to your question is: <ANSWER>'"
_HINT = " Hint: It's not necessarily a 1, check carefully."
# Barbero et al. (2024), appendix C.1, and the two orders of appendix C.5
_PROMPTS = {
    "sequence first": "Consider the following sequence: {sequence}. What is the {place} digit in "
    "this sequence?{hint} {form}",
    "type 1": "What is the {place} digit of the following sequence?{hint} {form}. Here is the "
    "sequence: {sequence}",
    "type 2": "{form}. What is the {place} digit of the following sequence?{hint} {sequence}",
}
_PATTERNS = {"ones": "1", "alternating": "10", "repeated": "1111111110"}
PLACES = ("first", "last")


def copying_prompt(
    model: models.LanguageModel, prompt: str, place: str, hint: bool
) -> tuple[str, str]:
    """Return the text before the sequence and the text after it, up to the point where the model
    has to write the digit.

    Put the sequence between the two to ask a model to copy the first or the last digit.

    >>> before, after = copying_prompt(models.default(), "type 1", "last", hint=False)
    >>> after[-28:]
    'answer to your question is: '
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    require.choice("prompt", prompt, _PROMPTS)
    require.choice("place", place, PLACES)
    require.flag("hint", hint)
    text = _PROMPTS[prompt].format(
        place=place, hint=_HINT if hint else "", form=_FORM, sequence="<SEQUENCE>"
    )
    if model.tokenizer.chat_template:
        text = model.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
    head, tail = (text.rstrip() + "\nThe answer to your question is: ").split("<SEQUENCE>")
    return head, tail


def _digits(model: models.LanguageModel, digits: str) -> Int[Tensor, " n"]:
    """Encode each digit of a text as a separate token, even where the tokenizer would
    merge digits.
    """
    tokens = {digit: probe.encode(model, digit)[-1] for digit in set(digits)}
    return torch.stack([tokens[digit] for digit in digits])


def copying_margins(
    model: models.LanguageModel,
    lengths: Sequence[int],
    *,
    pattern: str = "ones",
    prompt: str = "sequence first",
    hint: bool = False,
) -> dict[tuple[str, str], tuple[Float[Tensor, " lengths"], Float[Tensor, " lengths"]]]:
    """Measure whether a model copies the digit that the question names, as the logit of 0 minus the
    logit of 1.

    There is one entry for each pair of a digit's position and the position that the question names:
    ("first", "first"), ("first", "last"), ("last", "first") and ("last", "last"). It holds two
    margins, with a 0 at the digit's position and with a 1 there. Their difference is the effect of
    that one token. If the model copies, the effect is large where the two positions agree. Where
    they differ it should be zero, so these pairs are the control.

    Args:
        lengths: how many digits the sequence has, at least 2. Each digit is one token, even where
            the tokenizer would merge them.
        pattern: the digits that fill the rest: "ones", "alternating" (10) or "repeated" (a 0 in
            every ten).

    >>> list(copying_margins(models.default(), [3]))
    [('first', 'first'), ('first', 'last'), ('last', 'first'), ('last', 'last')]
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    require.choice("pattern", pattern, _PATTERNS)
    lengths = require.integers("lengths", lengths, 2)
    filler = (_PATTERNS[pattern] * max(lengths))[: max(lengths) - 1]
    reads: dict[tuple[str, str], list] = {}  # what has one beginning is read once
    for asked in PLACES:
        head, tail = copying_prompt(model, prompt, asked, hint)
        start, tail = len(probe.encode(model, head)), probe.encode(model, tail)
        for n, digit in itertools.product(lengths, "01"):
            first, last = (
                reads.setdefault((head, digit + filler), []),
                reads.setdefault((head, filler[::-1] + "1"), []),
            )
            first.append((("first", asked, digit, n), (start + n, tail)))
            last.append(
                (
                    ("last", asked, digit, n),
                    (start + n - 1, torch.cat([_digits(model, digit), tail])),
                )
            )
    margin_of = {}
    for (head, sequence), questions in reads.items():
        ids = torch.cat([probe.encode(model, head), _digits(model, sequence)])
        logits = probe._after(model, ids, [continuation for _, continuation in questions]).logits
        margins = probe._margin(model, logits, "0", "1").cpu()
        margin_of |= {key: margin for (key, _), margin in zip(questions, margins, strict=True)}
    return {
        (place, asked): tuple(
            torch.stack([margin_of[place, asked, digit, n] for n in lengths]) for digit in "01"
        )
        for place, asked in itertools.product(PLACES, PLACES)
    }
