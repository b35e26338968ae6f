"""Test whether a language model copies the first or the last token of a sequence better.

We also vary the position of the question.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from helpers import models, probe, require

PLACES = ("first", "last")
WORDINGS = ("question after", "question before")
SEQUENCES, SHOTS = 20, 2  # sequences per row, and solved examples in front of each sequence


def _digits(length: int, generator: torch.Generator) -> str:
    return "".join(map(str, torch.randint(10, (length,), generator=generator).tolist()))


def _spaced(digits: str) -> str:
    return "".join(f" {digit}" for digit in digits)


def copied_row(place: str, length: int, seed: int) -> dict[str, float]:
    """Return how often the embedded model ranks the right digit first among the ten digits.

    Guessing is right in a tenth of the cases. Two solved examples of the same length come before
    each sequence.

    Args:
        place: "first" or "last".
        length: the number of digits in a sequence.
    """
    require.choice("place", place, PLACES)
    require.integer("length", length, 1)
    model, generator = models.default(), torch.Generator().manual_seed(seed)
    names = torch.cat([probe.encode(model, str(digit)) for digit in range(10)])
    right = 0
    for _ in range(SEQUENCES):
        text = ""
        for shot in range(SHOTS + 1):
            digits = _digits(length, generator)
            wanted = digits[0] if place == "first" else digits[-1]
            text += f"Sequence:{_spaced(digits)}\nThe {place} digit is "
            text += f"{wanted}\n" if shot < SHOTS else ""
        tokens = torch.cat([probe.opening(model).tokens, probe.encode(model, text)])
        with torch.inference_mode():
            logits = model.model(tokens[None], use_cache=False, logits_to_keep=1).logits[0, -1]
        right += int(logits[names].argmax()) == int(wanted)
    return {"right": right / SEQUENCES}


def asked(
    digits: str, place: str, wording: str
) -> tuple[Int[Tensor, " n"], Int[Tensor, " digits"]]:
    """Return the tokens of a prompt about one digit, and the positions of its digits."""
    require.choice("wording", wording, WORDINGS)
    model, question = models.default(), f"The {place} digit of the sequence"
    before = f"{question} is wanted. Sequence:" if wording == "question before" else "Sequence:"
    front = torch.cat([probe.opening(model).tokens, probe.encode(model, before)])
    middle = probe.encode(model, _spaced(digits))
    step = len(middle) // len(digits)  # a digit is the last of its tokens
    places = len(front) + step * torch.arange(1, len(digits) + 1) - 1
    return torch.cat([front, middle, probe.encode(model, f"\n{question} is ")]), places


def attended_row(place: str, wording: str, length: int, seed: int) -> dict[str, float]:
    """Measure the last token's attention to the right digit, relative to the mean for all digits.

    The attention is averaged over layers and heads.
    """
    digits = _digits(length, torch.Generator().manual_seed(seed))
    tokens, places = asked(digits, place, wording)
    seen = probe.attention_maps(models.default(), tokens)[:, :, -1].mean((0, 1))[places]
    return {
        "ratio": round(float(seen[0 if place == "first" else -1] / seen.mean()), 3),
        "first_over_last": round(float(seen[0] / seen[-1]), 3),
    }
