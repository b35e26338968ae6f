"""What the lessons read inside a Hugging Face decoder: representations, logits and attention rows.

Nothing here holds attention maps of n x n, and logits are computed for the last token alone. Prefixes are read once:
later tokens cannot change what a causal model computed for earlier ones, so one pass serves every length.
"""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import compute
from helpers.models import LanguageModel

CHUNK = 1024  # tokens a pass, which bounds the memory for activations; halved where that is still too much


class Readout(NamedTuple):
    """Final representation (after the last norm) and next-token logits, one row a question."""

    states: Float[Tensor, "m d"]
    logits: Float[Tensor, "m v"]


def encode(model: LanguageModel, text: str) -> Int[Tensor, " n"]:
    """The tokens of a text, with no special token added."""
    return torch.tensor(model.tokenizer(text, add_special_tokens=False)["input_ids"], dtype=torch.long)


def first_token(model: LanguageModel) -> Int[Tensor, " 1"]:
    """The token that opens a sequence: the tokenizer's BOS, else its end-of-text token.

    Raises:
        ValueError: the tokenizer has neither.
    """
    tokenizer = model.tokenizer
    first = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if first is None:
        raise ValueError("the tokenizer has neither a BOS nor an end-of-text token: pass the head of the sequence")
    return torch.tensor([first])


@torch.inference_mode()
def last_representations(model: LanguageModel, ids: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
    """The last token's final representation for every prefix of `ids`, from one pass.

    Row i is what the model would predict the next token from after reading ids[: i + 1].

    Raises:
        ValueError: `ids` is empty.
    """
    _check(ids)

    def rows(chunk: int) -> Tensor:
        cache, found = None, []
        for part in ids.split(chunk):
            out = _forward(model, part, cache, states=True)
            cache = out.past_key_values
            found.append(out.hidden_states[-1][0])
        return torch.cat(found)

    return compute.shrink(rows, CHUNK)


@torch.inference_mode()
def hidden_states(model: LanguageModel, ids: Int[Tensor, " n"]) -> Float[Tensor, "layers d"]:
    """The last token's representation after the embedding and after each layer (the last one after the final norm)."""
    _check(ids)
    cache = compute.shrink(lambda chunk: _read(model, ids[:-1], None, chunk), CHUNK)
    out = _forward(model, ids[-1:], cache, states=True)
    return torch.stack([state[0, -1] for state in out.hidden_states])


@torch.inference_mode()
def after(
    model: LanguageModel, ids: Int[Tensor, " n"], continuations: Sequence[tuple[int, Int[Tensor, " t"]]]
) -> Readout:
    """What the model makes of ids[:n] + tail, for each (n, tail).

    The longest prefix is read once and each tail starts from its keys and values: the cost is
    max(n) + sum(len(tail)) tokens rather than sum(n + len(tail)).

    Args:
        ids: the sequence whose prefixes are read.
        continuations: pairs of a length n in [1, len(ids)] and the tokens that follow, in any order; a tail may be empty.

    Raises:
        ValueError: no continuations, or a length out of range.
    """
    _check(ids)
    if not continuations or not all(1 <= n <= len(ids) for n, _ in continuations):
        raise ValueError(f"lengths must be between 1 and {len(ids)}, not {[n for n, _ in continuations]}")

    def read(chunk: int) -> list[tuple[Tensor, Tensor]]:
        found: dict[int, tuple[Tensor, Tensor]] = {}
        cache, done = None, 0
        for k in sorted(range(len(continuations)), key=lambda k: continuations[k][0]):
            n, tail = continuations[k]
            # the prefix's last token goes with the tail, so that there always is one to read
            cache, done = _read(model, ids[done : n - 1], cache, chunk), n - 1
            out = _forward(model, torch.cat([ids[n - 1 : n], tail]), copy.deepcopy(cache), states=True)
            found[k] = out.hidden_states[-1][0, -1], out.logits[0, -1]
        return [found[k] for k in range(len(continuations))]

    states, logits = zip(*compute.shrink(read, CHUNK), strict=True)
    return Readout(torch.stack(states), torch.stack(logits))


@torch.inference_mode()
def attention_rows(model: LanguageModel, ids: Int[Tensor, " n"]) -> Float[Tensor, "layers heads n"]:
    """The last token's attention weights in every head; a row costs n numbers a head, not n x n.

    In a layer with a sliding window, tokens outside it get 0.

    Raises:
        ValueError: `ids` has fewer than two tokens.
    """
    if len(ids) < 2:
        raise ValueError(f"attention_rows needs at least two tokens, not {len(ids)}")
    cache = compute.shrink(lambda chunk: _read(model, ids[:-1], None, chunk), CHUNK)
    before = model.model.config._attn_implementation
    model.model.set_attn_implementation("eager")
    try:
        out = _forward(model, ids[-1:], cache, attentions=True)
    finally:
        model.model.set_attn_implementation(before)
    rows = [torch.nn.functional.pad(a[0, :, -1], (len(ids) - a.shape[-1], 0)) for a in out.attentions]
    return torch.stack(rows)


def margin(model: LanguageModel, logits: Float[Tensor, "... v"], right: str, wrong: str) -> Float[Tensor, "..."]:
    """Logit of the token `right` minus logit of `wrong`: above 0, the model prefers the right answer.

    Raises:
        ValueError: one of the two is not a single token.
    """
    tokens = []
    for name, text in (("right", right), ("wrong", wrong)):
        ids = encode(model, text)
        if len(ids) != 1:
            raise ValueError(f"{name} must be one token; {text!r} is {len(ids)}")
        tokens.append(int(ids[0]))
    return (logits[..., tokens[0]] - logits[..., tokens[1]]).float()


def _read(model: LanguageModel, ids: Tensor, cache, chunk: int):
    """The cache after reading `ids` on top of `cache`, `chunk` tokens at a time."""
    for part in ids.split(chunk) if len(ids) else ():
        cache = _forward(model, part, cache).past_key_values
    return cache


def _forward(model: LanguageModel, ids: Tensor, cache, states: bool = False, attentions: bool = False):
    return model.model(
        ids[None].to(model.model.device),
        past_key_values=cache,
        use_cache=True,
        output_hidden_states=states,
        output_attentions=attentions,
        logits_to_keep=1,
    )


def _check(ids: Tensor) -> None:
    if ids.ndim != 1 or len(ids) == 0:
        raise ValueError(f"ids must be one sequence of at least one token, not of shape {tuple(ids.shape)}")
