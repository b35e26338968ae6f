"""Measure representational collapse, the subject of chapter 3.

A decoder's representations collapse if different prompts lead to the same hidden state at the last
token.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import compute, models, probe, require


def round_to(x: Float[Tensor, "..."], dtype: str | torch.dtype) -> Float[Tensor, "..."]:
    """Round float64 numbers to the nearest values that a floating-point format can hold.

    Call this to see how much precision is lost in a format such as bf16. The results stay in
    float64, so you can compare them exactly. A number halfway between two values goes to the even
    one, and numbers beyond the largest value of the format become infinite. This function rounds
    only once, whereas a cast to bfloat16 may round twice because it goes through float32.

    Args:
        x: the numbers to round, in any floating-point format.
        dtype: "bf16", "fp16", "fp32" or the torch type to round to.

    Returns:
        The rounded numbers, in float64 and in the shape of `x`.

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
    """Measure how much the last token's final hidden state changes if we repeat the sequence's end.

    For each length n we compare two prompts. The first prompt is head + n tokens of the sequence +
    tail. The second prompt also repeats the last `period` of these n tokens, before the tail. We
    return the L1 distance between the final hidden states of the two last tokens. If the distance
    falls to 0, the model can no longer tell the two prompts apart (Barbero et al., 2024, Figures 5
    and 12). All lengths share one forward pass over the longest prefix.

    Args:
        model: a model from `models.load`.
        lengths: the lengths n, counted in tokens of the sequence without head and tail.
        sequence: a text, repeated until it has enough tokens.
        head: the text before the sequence. None puts the token that `probe.first_token` returns
            there. Without any head, a sequence of equal tokens would have equal representations at
            every length.
        tail: the text after the sequence.
        period: how many tokens the second prompt repeats. If a separator follows every digit, use
            2, so that both prompts end with a separator ("1,1," and "1,1,1,").

    Returns:
        One L1 distance per length.

    >>> short, long = last_token_distance(models.default(), [2, 64]).tolist()
    >>> short > long
    True
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    lengths = require.integers("lengths", lengths, 1)
    if require.integer("period", period, 1) > min(lengths):
        raise ValueError(
            f"lengths must be at least as large as period = {period}, but the smallest "
            f"is {min(lengths)}"
        )
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
# the prompts of Barbero et al. (2024), appendix C.1, and the two orders of appendix C.5
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
    """Return the two parts of a prompt that asks a model to copy a digit of a sequence.

    Put the sequence of digits between the two parts. The second part ends where the model must
    write the digit that `place` names.

    Args:
        model: a model from `models.load`.
        prompt: the wording, "sequence first", "type 1" or "type 2". The first wording is from
            Barbero et al. (2024), appendix C.1. The other two are from their appendix C.5.
        place: the digit that the question asks for, "first" or "last".
        hint: whether to add the hint that the digit need not be a 1.

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
    """Encode each digit of a text as a separate token, even if the tokenizer would merge digits."""
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
    """Measure whether a model can copy the first or the last digit of a sequence.

    We place one digit, 0 or 1, at the first or the last position of a sequence and ask for the
    first or the last digit. The margin is the logit of "0" minus the logit of "1" at the answer.
    The effect of the placed digit is the margin with a 0 in its position minus the margin with a 1.

    If the model copies, the effect is large where the question asks for the position of the placed
    digit. The pairs with two different positions are the control, where the effect should be zero.

    Args:
        model: a model from `models.load`.
        prompt, hint: as in `copying_prompt`.
        lengths: the numbers of digits in the sequence, each at least 2. Each digit is one token,
            even if the tokenizer would merge digits.
        pattern: the digits in all other positions: "ones", "alternating" (10) or "repeated" (a 0 in
            every ten).

    Returns:
        A dictionary with four keys. A key is a pair of the position of the placed digit and the
            position that the question asks for, each "first" or "last". Each value is a pair of
            tensors with one margin per length. The placed digit is a 0 for the first tensor and a 1
            for the second.

    >>> list(copying_margins(models.default(), [3]))
    [('first', 'first'), ('first', 'last'), ('last', 'first'), ('last', 'last')]
    """
    require.instance("model", model, models.LanguageModel, probe._A_MODEL)
    require.choice("pattern", pattern, _PATTERNS)
    lengths = require.integers("lengths", lengths, 2)
    filler = (_PATTERNS[pattern] * max(lengths))[: max(lengths) - 1]
    reads: dict[tuple[str, str], list] = {}  # prompts with the same beginning are read in one pass
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
