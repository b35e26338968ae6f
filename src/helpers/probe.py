"""Compute the hidden states, logits and attention weights of a Hugging Face decoder.

The functions for long sequences never store an n x n attention matrix, and they compute logits only
for the last token. One pass over a sequence gives the results for all its prefixes, because later
tokens cannot change what a causal model computed for earlier tokens.
"""

import collections
import contextlib
import copy
import dataclasses
import inspect
import math
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import compute, data, models, require
from helpers.models import mixing

_PASSAGE = 64  # the tokens of each passage on which we compare openings of a text
_CLEAR = 3  # the number of standard errors by which another opening must be better
_OPENED = {
    "nothing": 3.603,
    "<|im_start|>": 3.654,
    "<|im_end|>": 3.656,
}  # the result for the embedded model, which a test checks
# tokens per pass, which limits the memory for activations; we halve this number if memory runs out
_CHUNK = 1024


class _Readout(NamedTuple):
    """Hold, for each prompt, the hidden state after the last norm and the next-token logits."""

    states: Float[Tensor, "m d"]
    logits: Float[Tensor, "m v"]


def encode(model: models.LanguageModel, text: str) -> Int[Tensor, " n"]:
    """Return the tokens of a text as a one-dimensional tensor, without special tokens.

    Args:
        model: a model from `models.load`.
        text: the text to encode, possibly empty.

    Returns:
        One token id per position, in a tensor of dtype torch.long.

    >>> encode(models.default(), "The cat sat").tolist()
    [504, 2644, 2643]
    """
    check(model)
    require.text("text", text)
    return torch.tensor(
        model.tokenizer(text, add_special_tokens=False)["input_ids"], dtype=torch.long
    )


def _tokens(model: models.LanguageModel, tokens: Int[Tensor, " n"] | str) -> Int[Tensor, " n"]:
    """Return tokens as they are, or encode a text and put the model's opening tokens in front."""
    if not isinstance(tokens, str):
        return tokens
    return torch.cat([opening(model).tokens, encode(model, tokens)])


class _Opening(NamedTuple):
    """Hold the result of `opening`, on the tokens with which a model's texts should begin."""

    tokens: Int[Tensor, " _"]
    how: str
    losses: dict[str, float]
    ways: dict[str, list[int]]


_A_MODEL = (
    "what models.load returns "
    "(of a model of transformers in memory, models.load(model, tokenizer=tokenizer))"
)
_POSITIONS = re.compile(
    r"(^|[._])(wpe|embed_positions|position_embeddings?|pos_embed)$"
)  # names of tables with learned positions
_tables: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_openings: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def opening(model: models.LanguageModel) -> _Opening:
    """Return the tokens that a text should begin with for this model, such as its BOS token.

    If the tokenizer itself adds tokens, we return these tokens. If it adds none, its authors may
    have intended this or forgotten the tokens, so we measure which opening fits the model. We
    compare the loss on passages of the course's prose with four openings: nothing, the BOS token,
    the end-of-text token and the first token of the chat template. We choose the BOS token (or
    nothing, if there is no BOS token), unless the loss with another opening is lower by more than 3
    standard errors over the passages. Each model is measured only once, and the result for the
    embedded model is stored.

    The result has four parts. `tokens` is the opening, possibly empty, and `how` says how we found
    it. `losses` has the loss of each opening that we tried, in nats per token of prose, and is
    empty if the tokenizer decides. `ways` has the tokens of all possible openings, keyed by name.

    Args:
        model: a model from `models.load`.

    >>> found = opening(models.default())
    >>> found.how, list(found.ways)
    ('its BOS', ['nothing', '<|im_start|>', '<|im_end|>'])
    """
    check(model)
    tokenizer = model.tokenizer
    known = _openings.setdefault(model.model, {})
    key = (id(tokenizer), tokenizer.bos_token_id, tokenizer.eos_token_id)
    if model.unpacked:
        return _Opening(
            torch.tensor([tokenizer.bos_token_id]), "its BOS", dict(_OPENED), _ways(model)
        )
    if key not in known:
        known[key] = _found_opening(model)
    return known[key]


def _found_opening(model: models.LanguageModel) -> _Opening:
    prefix, ways = _put_in_front(model), _ways(model)
    if prefix:
        return _Opening(torch.tensor(prefix), "the tokenizer puts it there", {}, ways)
    declared = [model.tokenizer.bos_token_id] if model.tokenizer.bos_token_id is not None else []
    reason = "its BOS" if declared else "nothing, as the tokenizer does it"
    try:
        losses = {way: _opened_losses(model, ids) for way, ids in ways.items()}
    except ValueError:  # a tokenizer that cannot encode prose
        return _Opening(torch.tensor(declared, dtype=torch.long), reason, {}, ways)
    usual = losses[next(way for way, ids in ways.items() if ids == declared)]
    clear = {}
    for way, loss in losses.items():
        less = usual - loss
        if float(less.mean()) > _CLEAR * float(less.std()) / len(less) ** 0.5:
            clear[way] = float(loss.mean())
    if clear:
        best = min(clear, key=clear.get)
        declared, reason = ways[best], f"the least loss on prose, where {reason} loses more"
    tokens = torch.tensor(declared, dtype=torch.long)
    return _Opening(tokens, reason, {way: float(loss.mean()) for way, loss in losses.items()}, ways)


def _put_in_front(model: models.LanguageModel) -> list[int]:
    """Return the tokens that the tokenizer itself adds at the start of a text."""
    try:
        alone, whole = (
            model.tokenizer("x", add_special_tokens=each)["input_ids"] for each in (False, True)
        )
    except ValueError:
        return []
    places = (k for k in range(len(whole)) if whole[k : k + len(alone)] == alone)
    return list(whole[: next(places, 0)])


def _ways(model: models.LanguageModel) -> dict[str, list[int]]:
    """Return the possible openings of a text, as a dictionary of tokens keyed by name.

    The openings are nothing, the BOS token, the end-of-text token, and the first token of the chat
    template.
    """
    tokenizer = model.tokenizer
    tokens = [tokenizer.bos_token_id, tokenizer.eos_token_id]
    with contextlib.suppress(Exception):  # a chat template may use any variable and raise any error
        if tokenizer.chat_template:
            written = tokenizer.apply_chat_template(
                [{"role": "user", "content": "x"}], tokenize=False
            )
            tokens.append(int(encode(model, written)[0]))
    openings = [int(token) for token in dict.fromkeys(tokens) if token is not None]
    return {"nothing": [], **{tokenizer.decode([token]): [token] for token in openings}}


@torch.inference_mode()
def _opened_losses(model: models.LanguageModel, front: Sequence[int]) -> Float[Tensor, " passages"]:
    """Return the loss of each passage of prose if the tokens `front` come before it.

    The loss of the first token of each passage is left out.
    """
    passages = [encode(model, part) for part in data.prose().split("\n") if part.strip()]
    config = model.model.config.get_text_config()
    room = (getattr(config, "max_position_embeddings", None) or _PASSAGE + 1) - 1
    length = min(_PASSAGE, room, *map(len, passages))
    ids = torch.stack([each[:length] for each in passages]).to(model.model.device)
    before = torch.tensor(front, dtype=torch.long, device=ids.device).expand(len(ids), -1)
    logits = (
        model.model(torch.cat([before, ids], 1), use_cache=False).logits[:, len(front) : -1].float()
    )
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), ids[:, 1:].to(logits.device), reduction="none"
    )
    return losses.mean(1).cpu().double()


def first_token(model: models.LanguageModel) -> Int[Tensor, " 1"]:
    """Return a token that can be put before a sequence of equal tokens, to set it apart from them.

    If the model's texts begin with an opening token, we return this token (see `opening`).
    Otherwise we return whichever of the BOS token, the end-of-text token and the first token of the
    chat template gives prose the lowest loss.

    Args:
        model: a model from `models.load`.

    Returns:
        A tensor with the id of this one token.

    Raises:
        ValueError: if the tokenizer has none of these tokens.

    >>> model = models.default()
    >>> model.tokenizer.decode(first_token(model))
    '<|im_start|>'
    """
    front = opening(model)
    if len(front.tokens):
        return front.tokens[:1]
    tokens = {way: ids for way, ids in front.ways.items() if ids}
    if not tokens:
        raise ValueError(
            "the tokenizer has neither a BOS nor an end-of-text token. Pass the text "
            "before the sequence yourself (head)"
        )
    return torch.tensor(tokens[min(tokens, key=lambda way: front.losses.get(way, 0.0))])


_mixing: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def layers(model: models.LanguageModel) -> tuple[mixing._Layer, ...]:
    """Return a description of what mixes tokens in each layer, measured once per model.

    Call this before you read attention from an unknown model, because some layers have no attention
    and others rotate only a part of each head.

    Each layer has:
        mixes: "attention" (one softmax per head over the token itself and earlier ones), or a
            description of another mechanism.
        read: whether we can read and replace the attention weights.
        latent: whether keys and values are computed from a narrower vector that all heads share.
        theta: the angles per token of the rotary pairs, or None if queries and keys do not rotate
            or we cannot find out.
        layout: the layout of the pairs, "half" or "interleaved", or None if there are no pairs.
        share: the fraction of a head's dimensions that RoPE rotates.
        window: how many tokens each token can attend to, or None for all earlier tokens.
        sinks: whether the layer has learned sinks in addition to the tokens.
        softcap: the soft cap on the attention logits, or None.

    Args:
        model: a model from `models.load`.

    Raises:
        ValueError: if the network has no list of layers.

    >>> len(layers(models.default()))
    30
    """
    check(model)
    if model.model not in _mixing:
        _mixing[model.model] = mixing._layers(model.model)
    return _mixing[model.model]


def mixed_otherwise(model: models.LanguageModel) -> str | None:
    """Return the reason why attention matrices do not show all flow between tokens, or None.

    The reason is a clause for an error message. None means that the attention matrices show
    everything that passes between tokens.

    Args:
        model: a model from `models.load`.

    >>> mixed_otherwise(models.default()) is None
    True
    """
    described = layers(model)
    others = [each.mixes for each in described if each.mixes != mixing._ATTENTION]
    if any(each.sinks for each in described):
        return (
            "the model has learned sinks in addition to its tokens, so the weights of a row do not "
            "sum to 1"
        )
    if not others:
        return None
    share = (
        "its layers"
        if len(others) == len(described)
        else f"{len(others)} of its {len(described)} layers"
    )
    return f"{share} mix tokens by {' and by '.join(dict.fromkeys(others))}"


def _unread(model: models.LanguageModel) -> str:
    """Return an error message that says why this model's attention weights cannot be read."""
    why = mixed_otherwise(model) or "its attention cannot be replaced in every layer"
    return f"{model.short} does not let its attention be replaced ({why}): choose another model"


def _recurs(model: models.LanguageModel) -> bool:
    """Return whether the layers carry more than keys and values from token to token.

    If they do, there is a recurrent state, which our cache can neither cut nor copy.
    """
    return any(each.mixes not in (mixing._ATTENTION, mixing._DIFFERENCE) for each in layers(model))


@torch.inference_mode()
def last_representations(
    model: models.LanguageModel, ids: Int[Tensor, " n"] | str
) -> Float[Tensor, "n d"]:
    """Compute the last token's final hidden state for every prefix of `ids`, in one pass.

    Row i of the result is the hidden state from which the model predicts the next token after
    reading ids[: i + 1]. The distance between two rows shows how well the model can tell the two
    prefixes apart.

    Args:
        model: a model from `models.load`.
        ids: n tokens, or a text, which we encode after the model's opening tokens.

    Returns:
        One row of width d per prefix, the shortest prefix first.

    >>> model = models.default()
    >>> last_representations(model, encode(model, "The cat sat")).shape
    torch.Size([3, 576])
    """
    ids = _tokens(model, ids)
    check(model, ids=ids)
    if _recurs(model):
        return _whole(model, ids[None]).hidden_states[-1][0]

    def rows(chunk: int) -> Tensor:
        cache, states = None, []
        for part in ids.split(chunk):
            out = _forward(model, part, cache, states=True)
            cache = _cache_of(model, out)
            states.append(out.hidden_states[-1][0])
        return torch.cat(states)

    return compute.shrink(rows, _CHUNK)


@torch.inference_mode()
def _after(
    model: models.LanguageModel,
    ids: Int[Tensor, " n"],
    continuations: Sequence[tuple[int, Int[Tensor, " _"]]],
) -> _Readout:
    """Compute the final hidden state and logits after ids[:n] + tail, for each pair (n, tail).

    We read the longest prefix once, and continue with each tail from the keys and values of its
    prefix. So we read max(n) + sum(len(tail)) tokens instead of sum(n + len(tail)). Tails of equal
    length after the same prefix share one forward pass.

    Args:
        ids: the sequence whose prefixes are read.
        continuations: pairs of a length n in [1, len(ids)] and the tokens that follow, in any
            order. A tail may be empty.
    """
    check(model, ids=ids)
    try:
        continuations = [(n, tail) for n, tail in continuations]
    except (TypeError, ValueError):
        raise ValueError(
            "continuations must be pairs of a length and the tokens that follow"
        ) from None
    if not continuations:
        raise ValueError(
            "continuations must hold at least one pair of a length and the tokens that follow"
        )
    for n, tail in continuations:
        require.integer("the length in continuations", n, 1, len(ids))
        check(model, 0, **{"the tail in continuations": tail})

    if _recurs(model):
        outs = [_whole(model, torch.cat([ids[:n], tail])[None]) for n, tail in continuations]
        states = torch.stack([out.hidden_states[-1][0, -1] for out in outs])
        return _Readout(states, torch.stack([out.logits[0, -1] for out in outs]))

    def read(chunk: int) -> list[tuple[Tensor, Tensor]]:
        readouts: dict[int, tuple[Tensor, Tensor]] = {}
        cache, done = None, 0
        alike = collections.defaultdict(
            list
        )  # tails of equal length after the same prefix go through the model together
        for k, (n, tail) in enumerate(continuations):
            alike[n, len(tail)].append(k)
        for (n, length), which in sorted(alike.items()):
            # the prefix's last token is read with the tail, so that there is always a token to read
            cache, done = _read(model, ids[done : n - 1], cache, chunk), n - 1
            rows = max(1, chunk // (n + length))
            for some in (which[i : i + rows] for i in range(0, len(which), rows)):
                tails = torch.stack(
                    [torch.cat([ids[n - 1 : n], continuations[k][1]]) for k in some]
                )
                copied = copy.deepcopy(cache)
                if copied is not None and len(some) > 1:
                    copied.batch_repeat_interleave(len(some))
                out = _forward(model, tails, copied, states=True)
                readouts |= dict(
                    zip(
                        some,
                        zip(out.hidden_states[-1][:, -1], out.logits[:, -1], strict=True),
                        strict=True,
                    )
                )
        return [readouts[k] for k in range(len(continuations))]

    states, logits = zip(*compute.shrink(read, _CHUNK), strict=True)
    return _Readout(torch.stack(states), torch.stack(logits))


@torch.inference_mode()
def attention_rows(
    model: models.LanguageModel, ids: Int[Tensor, " n"] | str
) -> Float[Tensor, "layers heads n"]:
    """Compute the attention weights that the last token gives to all tokens, in every head.

    The result is the last row of each attention matrix. A row needs n numbers per head instead of n
    x n, so this function works for long sequences. In a layer with a sliding window, tokens outside
    the window get 0.

    Args:
        model: a model from `models.load`.
        ids: n tokens, or a text, which we encode after the model's opening tokens.

    Returns:
        The weights of each layer and head, which sum to 1 over the n tokens.

    >>> model = models.default()
    >>> attention_rows(model, encode(model, "The cat sat")).shape
    torch.Size([30, 9, 3])
    """
    ids = _tokens(model, ids)
    check(model, 2, ids=ids)
    if why := mixed_otherwise(model):
        raise ValueError(
            f"attention rows do not show everything that influences a token, because {why}"
        )
    cache = compute.shrink(lambda chunk: _read(model, ids[:-1], None, chunk), _CHUNK)
    with mixing._attending(model.model, "eager"):
        out = _forward(model, ids[-1:], cache, attentions=True)
    rows = [
        torch.nn.functional.pad(a[0, :, -1], (len(ids) - a.shape[-1], 0)) for a in out.attentions
    ]
    return torch.stack(rows)


def _margin(
    model: models.LanguageModel, logits: Float[Tensor, "... v"], right: str, wrong: str
) -> Float[Tensor, "..."]:
    """Return the logit of the token `right` minus the logit of the token `wrong`.

    If this margin is above 0, the model prefers the right answer.
    """
    check(model)
    require.tensor("logits", logits, "... v")
    tokens = []
    for name, text in (("right", right), ("wrong", wrong)):
        ids = encode(model, require.text(name, text))
        if len(ids) != 1:
            raise ValueError(f"{name} must be a single token, but {text!r} is {len(ids)} tokens")
        if ids[0] >= logits.shape[-1]:
            raise ValueError(
                "logits must have one number for each token of the model, not shape "
                f"{tuple(logits.shape)}"
            )
        tokens.append(int(ids[0]))
    return (logits[..., tokens[0]] - logits[..., tokens[1]]).float()


def _read(model: models.LanguageModel, ids: Tensor, cache, chunk: int):
    """Read `ids` into `cache`, `chunk` tokens at a time, and return the new cache."""
    for part in ids.split(chunk) if len(ids) else ():
        cache = _cache_of(model, _forward(model, part, cache))
    return cache


def _whole(model: models.LanguageModel, ids: Int[Tensor, "b n"]):
    """Run one forward pass over all tokens, without a cache."""
    return model.model(ids.to(model.model.device), use_cache=False, output_hidden_states=True)


def _forward(
    model: models.LanguageModel, ids: Tensor, cache, states: bool = False, attentions: bool = False
):
    return model.model(
        torch.atleast_2d(ids).to(model.model.device),
        **{_cache_name(model): cache},
        use_cache=True,
        output_hidden_states=states,
        output_attentions=attentions,
        logits_to_keep=1,
    )


def _cache_name(model: models.LanguageModel) -> str:
    """Return the name of the cache argument in the installed version of transformers.

    The argument takes the cache of keys and values. From release 5.24 on it is called "cache" in
    the model families that have an argument of this name.
    """
    return (
        "cache"
        if "cache" in inspect.signature(model.model.forward).parameters
        else "past_key_values"
    )


def _cache_of(model: models.LanguageModel, out):
    return getattr(out, _cache_name(model))


def check(model: models.LanguageModel, least: int = 1, **sequences: Int[Tensor, " n"]) -> None:
    """Raise an error unless `model` comes from `models.load` and the sequences are valid for it.

    A sequence is invalid if it has fewer than `least` tokens, contains tokens that the model does
    not know, or is longer than the model's table of positions. Pass each sequence as a keyword with
    the name of your own argument, so that the error message can mention the argument.

    Args:
        model: the value to check, which must be a model from `models.load`.
        least: the smallest allowed number of tokens in a sequence.
        sequences: the sequences, keyed by the names of your arguments.

    >>> check(models.default(), tokens=torch.tensor([-1]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: tokens must be one sequence of at least one token from 0 to 49151, ...
    """
    require.instance("model", model, models.LanguageModel, _A_MODEL)
    require.integer("least", least, 0, 2)
    for name, ids in sequences.items():
        count = ("no tokens", "one token", "two tokens")[least]
        allowed = f"{name} must be one sequence of at least {count}"
        if (
            not isinstance(ids, Tensor)
            or ids.ndim != 1
            or ids.dtype != torch.long
            or len(ids) < least
        ):
            raise ValueError(f"{allowed}, with dtype torch.long, not {require.brief(ids)}")
        size = model.model.config.get_text_config().vocab_size
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < size:
            raise ValueError(f"{allowed} from 0 to {size - 1}, the tokens of the model")
        if len(ids) > (table := _position_table(model)):
            raise ValueError(
                f"{name} must have at most {table} tokens, because {model.short} has no "
                f"more positions, not {len(ids)}"
            )


def _position_table(model: models.LanguageModel) -> float:
    """Return the number of positions for which a model has learned position vectors.

    The result is infinity for a model without such vectors (rotary positions, ALiBi or no
    positions).
    """
    if model.model not in _tables:
        tables = {
            part.num_embeddings
            for name, part in model.model.named_modules()
            if isinstance(part, torch.nn.Embedding) and _POSITIONS.search(name)
        }
        config = model.model.config.get_text_config()
        context = getattr(config, "max_position_embeddings", None) or getattr(
            config, "n_positions", None
        )
        _tables[model.model] = min([context or math.inf, *tables]) if tables else math.inf
    return _tables[model.model]


class _HeadScores(NamedTuple):
    """Hold the sink and slash scores that `head_scores` returns for every head."""

    sink: Float[Tensor, "layers heads"]
    slash: Float[Tensor, "layers heads offsets"]


@dataclasses.dataclass
class _Streamed:
    """Hold what one pass with `_stream` must compute, and collect the scores of the layers."""

    position: int = 0
    offsets: tuple[int, ...] = ()
    rows: int = 256
    hide: int | None = None
    since: int = 0
    sink: list[Tensor] = dataclasses.field(default_factory=list)
    slash: list[Tensor] = dataclasses.field(default_factory=list)


_STREAMING = "helpers_streaming"  # the name under which transformers knows the attention below
_BLOCK = 256  # rows of an attention matrix that are in memory at the same time
_PROBES = 8  # directions in one backward pass
MOST = 512  # the largest number of tokens for which we return whole attention matrices
_streamed: list[_Streamed] = []


@torch.inference_mode()
def head_scores(
    model: models.LanguageModel,
    tokens: Int[Tensor, " n"] | str,
    position: int = 0,
    offsets: Sequence[int] = (0, 1),
    hide: int | None = None,
    since: int = 0,
) -> _HeadScores:
    """Measure the sink score and the slash scores of every attention head, in one pass.

    The scores are those of `attention.sink_score` and `attention.slash_score`. The result has
    `sink` (layers, heads) and `slash` (layers, heads, offsets), in fp32 on the CPU. Only layers
    with attention have a row (see `layers`), because other layers have no attention weights.

    We never store a whole attention matrix. So memory grows only with n, whereas with
    `output_attentions` it would grow with n squared in every head and layer. On the CPU, one call
    of the fused kernel per layer gives the output and the logsumexp L_i of each row i. The
    attention weight of token i on token j is exp(q_i k_j − L_i), so a score needs one dot product
    per token. If there is a mask, a soft cap or a hidden token, or on an accelerator, we add up the
    scores of blocks of rows instead.

    Args:
        model: a model from `models.load`.
        tokens: tokens, or a text. Before a text we put the model's opening tokens (see `opening`).
        position: the token whose received attention is scored.
        offsets: the distance, in positions, of each slash score. A head with a high score at
            distance 0 is a diagonal head, and one with a high score at distance 1 is a
            previous-token head.
        hide, since: the position of a token that we hide from all tokens at position `since` or
            later, as in `attention_knockout`.

    Raises:
        ValueError: if there are no tokens, if a position or offset is not in the sequence, or if
            the attention of this architecture cannot be replaced.

    >>> model = models.default()
    >>> head_scores(model, "The cat sat on the mat.").sink.shape
    torch.Size([30, 9])
    """
    tokens = _tokens(model, tokens)
    check(model, tokens=tokens)
    offsets = tuple(require.integers("offsets", offsets, 0))
    hidden = () if hide is None else (("hide", hide),)
    for name, value in (
        ("position", position),
        ("since", since),
        *hidden,
        *(("offsets", each) for each in offsets),
    ):
        _check_position(name, value, len(tokens))

    def read(rows: int) -> _HeadScores:
        with _streaming(
            model, position=position, offsets=offsets, rows=rows, hide=hide, since=since
        ) as task:
            model.model(tokens[None].to(model.model.device), use_cache=False, logits_to_keep=1)
        if not task.sink or len(task.sink) != sum(
            each.mixes.startswith(mixing._ATTENTION) for each in layers(model)
        ):
            raise ValueError(_unread(model))
        return _HeadScores(torch.stack(task.sink).cpu(), torch.stack(task.slash).cpu())

    return compute.shrink(read, _BLOCK)


@torch.inference_mode()
def attention_maps(
    model: models.LanguageModel, tokens: Int[Tensor, " n"] | str
) -> Float[Tensor, "layers heads n n"]:
    """Return the attention matrix of every head, for a short sequence.

    For long sequences, use `head_scores`, which stores no attention matrix.

    Args:
        model: a model from `models.load`.
        tokens: 1 to `MOST` tokens, or a text, which we encode after the model's opening tokens.

    Returns:
        One row-stochastic n x n matrix per layer and head, in fp32 on the CPU.

    Raises:
        ValueError: if there are no tokens, or more than `MOST`. The matrices of more tokens would
            not fit into the memory of a small computer.

    >>> model = models.default()
    >>> attention_maps(model, encode(model, "The cat sat")).shape
    torch.Size([30, 9, 3, 3])
    """
    tokens = _tokens(model, tokens)
    check(model, tokens=tokens)
    if len(tokens) > MOST:
        raise ValueError(
            f"tokens must have at most {MOST} tokens, not {len(tokens)}. For longer "
            "sequences use head_scores, which stores no attention matrices"
        )
    if why := mixed_otherwise(model):
        raise ValueError(
            f"attention matrices do not show everything that influences a token, because {why}"
        )
    with mixing._attending(model.model, "eager"):
        out = model.model(
            tokens[None].to(model.model.device),
            use_cache=False,
            output_attentions=True,
            logits_to_keep=1,
        )
    return torch.stack([each[0].float().cpu() for each in out.attentions])


def _stream(
    module: torch.nn.Module,
    query: Float[Tensor, "1 heads n d"],
    key: Float[Tensor, "1 groups n d"],
    value: Float[Tensor, "1 groups n e"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_,
) -> tuple[Tensor, None]:
    """Compute attention in a form that transformers can call, and add the scores of this layer."""
    if s_aux is not None:
        raise ValueError(
            "the model has learned sinks in addition to its tokens, and these scores "
            "do not cover such sinks. Choose another model"
        )
    task, scaling = _streamed[-1], query.shape[-1] ** -0.5 if scaling is None else scaling
    if task.hide is not None and task.hide >= key.shape[2]:
        raise ValueError(
            f"place must be the position of one of the {key.shape[2]} tokens that the model reads, "
            f"from 0 to {key.shape[2] - 1}, not {task.hide}"
        )
    heads = query.shape[1] // key.shape[1]
    plain = attention_mask is None and task.hide is None and softcap is None
    alone = (
        query.shape[2] == key.shape[2]
        and query.shape[-1] == value.shape[-1]
        and not query.requires_grad
    )
    if plain and alone and query.device.type == "cpu":
        keys, values = (x.repeat_interleave(heads, 1) for x in (key, value))
        return _by_logsumexp(task, query, keys, values, scaling), None
    return _by_rows(task, query[0], key[0], value[0], attention_mask, scaling, softcap), None


def _by_logsumexp(
    task: _Streamed,
    query: Float[Tensor, "1 heads n d"],
    key: Float[Tensor, "1 heads n d"],
    value: Float[Tensor, "1 heads n d"],
    scaling: float,
) -> Float[Tensor, "1 n heads d"]:
    """Compute attention and its scores with the fused kernel, without any attention matrix.

    The kernel returns the output and the logsumexp L_i of each row i. The attention weight of token
    i on token j is exp(q_i k_j − L_i), so a sink or slash score needs one dot product per token.
    """
    output, rows = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, True, scale=scaling
    )
    q, k, rows = scaling * query[0].float(), key[0].float(), rows[0].float()
    n, at = q.shape[1], task.position
    task.sink.append(((q[:, at:] @ k[:, at, :, None])[..., 0] - rows[:, at:]).exp().mean(-1))
    back = [(q[:, m:] * k[:, : n - m]).sum(-1) - rows[:, m:] for m in task.offsets]
    slashes = [logits.exp().mean(-1) for logits in back]
    task.slash.append(torch.stack(slashes, -1) if slashes else rows.new_empty(len(rows), 0))
    return output.transpose(1, 2)


def _by_rows(
    task: _Streamed,
    query: Float[Tensor, "heads n d"],
    key: Float[Tensor, "groups n d"],
    values: Float[Tensor, "groups n e"],
    attention_mask: Tensor | None,
    scaling: float,
    softcap: float | None,
) -> Float[Tensor, "1 n heads e"]:
    """Compute attention in blocks of rows, and add up the scores of the blocks.

    We need this if there is a mask, a soft cap or a hidden token, and on an accelerator.
    """
    keys = key.transpose(-1, -2)
    heads, n, width = query.shape
    received = torch.zeros(heads, device=query.device)
    slashes = torch.zeros(heads, len(task.offsets), device=query.device)
    output = query.new_empty(n, heads, values.shape[-1])
    for start in range(0, n, task.rows):
        stop = min(start + task.rows, n)
        # the heads of a group share their keys, so we compute one product for all of them
        part = (query[:, start:stop] * scaling).reshape(len(values), -1, width)
        logits = (part @ keys[..., :stop]).view(heads, stop - start, stop)
        if softcap is not None:
            logits = softcap * torch.tanh(logits / softcap)
        logits.masked_fill_(_unseen(task, attention_mask, start, stop, query.device), -torch.inf)
        weights = logits.softmax(-1, dtype=torch.float32)
        if task.position < stop:
            received += weights[:, max(task.position - start, 0) :, task.position].sum(-1)
        for k, offset in enumerate(task.offsets):
            if offset < stop:
                slashes[:, k] += weights.diagonal(start - offset, -2, -1).sum(-1)
        mixed = weights.to(values.dtype).view(len(values), -1, stop) @ values[:, :stop]
        output[start:stop] = mixed.view(heads, stop - start, -1).transpose(0, 1)
    task.sink.append(received / (n - task.position))
    task.slash.append(
        slashes / torch.tensor([n - offset for offset in task.offsets], device=query.device)
    )
    return output[None]


def _unseen(
    task: _Streamed, mask: Tensor | None, start: int, stop: int, device: torch.device
) -> Tensor:
    """Return a mask that is True for the tokens that rows `start` to `stop` must not attend to.

    If `mask` is None, each row may attend to all earlier tokens and itself.
    """
    if mask is None:
        unseen = torch.ones(stop - start, stop, dtype=torch.bool, device=device).triu(start + 1)
    else:
        unseen = ~mask[0, 0, start:stop, :stop]
    if task.hide is not None and task.hide < stop:
        unseen[max(task.hide + 1 - start, task.since - start, 0) :, task.hide] = True
    return unseen


@contextlib.contextmanager
def _streaming(model: models.LanguageModel, **options) -> Iterator[_Streamed]:
    """Use `_stream` as the attention of every layer while the block runs."""
    task = _Streamed(**options)
    _streamed.append(task)
    try:
        with mixing._attending(model.model, _STREAMING, _stream):
            yield task
    finally:
        _streamed.pop()


@contextlib.contextmanager
def attention_knockout(
    model: models.LanguageModel, place: int | None, since: int = 0
) -> Iterator[None]:
    """Stop later tokens from attending to the token at position `place`, while the block runs.

    The knockout applies to all tokens from position `since` on, in every layer and head. The token
    at `place` still attends to itself. If `place` is None, no token is hidden. Compare the model's
    output with and without the block to see what depends on direct attention to this token.

    Args:
        model: a model from `models.load`.
        place: the position of the token that is hidden, counted from 0, or None.
        since: the first position whose token can no longer attend to the hidden token.

    Raises:
        ValueError: if attention cannot be replaced, or if something other than attention mixes
            tokens, so that the hidden token would still have influence. Inside the block, a call of
            the model raises the error if the text has no token at `place`.

    >>> model = models.default()
    >>> ids = encode(model, "The cat sat")
    >>> with attention_knockout(model, 0):
    ...     loss(model, ids) > 1
    True
    """
    check(model)
    require.integer("since", since, 0)
    if place is not None:
        require.integer("place", place, 0)
    if not all(each.read for each in layers(model)):
        raise ValueError(_unread(model))
    if place is not None and _recurs(model):
        raise ValueError(
            "a token that is hidden from attention still has influence, because "
            f"{mixed_otherwise(model)}"
        )
    with _streaming(model, hide=place, since=since):
        yield


class _Sensitivity(NamedTuple):
    """Hold how sensitive the last token is to each token, as `sensitivity` returns it."""

    norms: Float[Tensor, " n"]
    errors: Float[Tensor, " n"]


def sensitivity(
    model: models.LanguageModel,
    tokens: Int[Tensor, " n"] | str,
    probes: int | None = None,
    seed: int = 0,
) -> _Sensitivity:
    """Measure how sensitive the last token's final hidden state is to each token's embedding.

    The sensitivity to a token is the Frobenius norm of the Jacobian J of the hidden state with
    respect to the token's embedding. The exact norm needs one backward pass for each of the d
    coordinates of the hidden state. With `probes` we need only that many passes, because d |J^T
    q|^2 equals |J|^2 on average over random directions q. The directions are orthogonal, so the
    error falls faster than with independent directions, and with d directions the result is exact.

    The result has `norms`, one per token, and `errors`, the standard errors of the norms (0 if
    exact).

    Args:
        model: a model from `models.load`.
        tokens: tokens, or a text, which we encode after the model's opening tokens.
        probes: how many random directions to use, from 2 to d. None computes the exact norm.
        seed: the seed of the directions.

    >>> model = models.default()
    >>> sensitivity(model, encode(model, "The cat sat"), probes=2).norms.shape
    torch.Size([3])
    """
    tokens = _tokens(model, tokens)
    check(model, tokens=tokens)
    network = model.model.base_model
    d = model.model.config.get_text_config().hidden_size
    if probes is not None and (
        isinstance(probes, bool) or not isinstance(probes, int) or not 2 <= probes <= d
    ):
        raise ValueError(
            f"probes must be an integer from 2 to {d} (the width of the hidden state), "
            f"not {probes!r}"
        )
    require.seed(seed)
    directions = torch.eye(d) if probes is None else _frame(d, probes, seed)
    directions = directions.to(model.model.device, next(model.model.parameters()).dtype)
    with torch.enable_grad():
        embedded = model.model.get_input_embeddings()(tokens[None].to(model.model.device))
        inputs = embedded.detach().clone().requires_grad_()
        out = network(inputs_embeds=inputs, use_cache=False, output_hidden_states=True)
        state = (out.hidden_states[-1] if network is model.model else out.last_hidden_state)[0, -1]

        def squares(chunk: int) -> Float[Tensor, "probes n"]:
            sums = []
            for part in directions.split(chunk):
                (gradient,) = torch.autograd.grad(
                    state, inputs, part, retain_graph=True, is_grads_batched=True
                )
                sums.append(gradient[:, 0].cpu().double().square().sum(-1))
            return torch.cat(sums)

        squared = compute.shrink(squares, _PROBES)
    if probes is None:
        return _Sensitivity(squared.sum(0).sqrt(), torch.zeros(len(tokens), dtype=torch.float64))
    norms = (d * squared.mean(0)).sqrt()
    # the directions are drawn without replacement, so with d directions there is no error
    errors = d * squared.std(0) * ((1 - probes / d) / probes) ** 0.5
    return _Sensitivity(norms, torch.where(norms > 0, errors / (2 * norms), 0.0))


def _frame(d: int, count: int, seed: int) -> Float[Tensor, "count d"]:
    """Draw random orthonormal rows, uniformly among all sets of such rows."""
    normal = torch.randn(
        d, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return torch.linalg.qr(normal).Q.T.contiguous()


def _check_position(name: str, value: int, n: int) -> None:
    try:
        require.integer(name, value, 0, n - 1)
    except ValueError as error:
        raise ValueError(f"{error}, because it is a position in tokens") from None


def rotary_frequencies(model: models.LanguageModel) -> Float[Tensor, " half"]:
    """Return the angle, in radians per token, by which the model rotates each rotary pair.

    We read the angles from the running model. So if a model scales its frequencies, the result has
    the scaled frequencies.

    Args:
        model: a model from `models.load`.

    Returns:
        One angle per rotary pair, in the order of the model's pairs.

    Raises:
        ValueError: if the model has no rotary positions, or uses different frequencies in different
            layers.

    >>> float(rotary_frequencies(models.default())[0])
    1.0
    """
    check(model)
    described = layers(model)
    turned = [each for each in described if each.theta is not None]
    if not turned:
        raise ValueError(f"{model.short} has no rotary positions")
    sets = mixing.frequencies(model.model)
    if len(sets) > 1:
        raise ValueError(
            f"its layers have {len(sets)} sets of rotary frequencies ({', '.join(sets)}), and "
            f"this measure needs a single set"
        )
    if len(turned) < len(described):
        still = f"{len(described) - len(turned)} of its {len(described)} layers"
        raise ValueError(
            f"{still} do not rotate queries and keys, but this measure needs rotary "
            "positions in all of "
            f"them"
        )
    return turned[0].theta.clone()


@contextlib.contextmanager
def patch_queries_and_keys(
    model: models.LanguageModel, alter: Callable[[int, str, Tensor], Tensor]
) -> Iterator[None]:
    """Replace the queries and keys of each layer before their rotation, while the block runs.

    The function `alter` computes the new queries and keys. In its input, the two entries of a
    rotary pair are always half a head apart, even if the model interleaves its pairs.

    Args:
        model: a decoder whose layers have `self_attn.q_proj` and `k_proj` (Llama, Mistral, Qwen,
            Gemma, …).
        alter: a function of three arguments: the layer's number, "queries" or "keys", and the
            tensor of shape (batch, n, heads, d). It returns the new tensor.

    Raises:
        ValueError: if the layers of the model do not have these projections.

    >>> model = models.default()
    >>> # without queries and keys, no token is told from another
    >>> with patch_queries_and_keys(model, lambda layer, name, x: 0 * x):
    ...     attention_rows(model, encode(model, "The cat sat on"))[0, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    check(model)
    require.function("alter", alter)
    kinds = layers(model)
    with contextlib.ExitStack() as hooks:
        for layer, block in enumerate(blocks(model)):
            apart = kinds[layer].layout == "interleaved" and kinds[layer].share == 1
            for name, short in (("queries", "q"), ("keys", "k")):
                projection, width = (
                    getattr(block.self_attn, f"{short}_proj"),
                    block.self_attn.head_dim,
                )
                part = getattr(block.self_attn, f"{short}_norm", None) or projection
                heads = projection.out_features // width
                hooks.enter_context(
                    part.register_forward_hook(_hook(alter, layer, name, width, heads, apart))
                )
        yield


def _hook(alter: Callable, layer: int, name: str, width: int, heads: int, apart: bool) -> Callable:
    def hook(module, arguments, out: Tensor) -> Tensor:
        if (
            out.dim() == 4
            and out.shape[1] == heads
            and (out.shape[2] != heads or out.stride(1) < out.stride(2))
        ):
            return changed(out.transpose(1, 2)).transpose(
                1, 2
            )  # Gemma 3 normalises (batch, heads, n, d)
        return changed(out)

    def changed(out: Tensor) -> Tensor:
        x = out.reshape(*out.shape[:2], -1, width)
        if not apart:
            return alter(layer, name, x).reshape(out.shape)
        order = (
            torch.arange(width, device=x.device).view(-1, 2).T.flatten()
        )  # first all even entries, then all odd ones
        return alter(layer, name, x[..., order])[..., order.argsort()].reshape(out.shape)

    return hook


def reads_projections(model: models.LanguageModel) -> bool:
    """Return whether a model's queries, keys and values can be read separately.

    They can be read if the layers have `self_attn.q_proj`, as in Llama or Gemma.

    Args:
        model: a model from `models.load`.

    >>> reads_projections(models.default())
    True
    """
    check(model)
    try:
        has_values = all(hasattr(block.self_attn, "v_proj") for block in blocks(model))
        return has_values and not any(each.latent for each in layers(model))
    except ValueError:
        return False


def blocks(model: models.LanguageModel) -> list[torch.nn.Module]:
    """Return the layers of a model, which must compute queries and keys in separate projections.

    Args:
        model: a model from `models.load`.

    Returns:
        The layers as torch modules, the first layer first.

    Raises:
        ValueError: if the layers have no `self_attn.q_proj`.

    >>> len(blocks(models.default()))
    30
    """
    check(model)
    for name, part in model.model.named_modules():
        if name.endswith("layers") and all(
            hasattr(getattr(b, "self_attn", None), "q_proj") for b in part
        ):
            return list(part)
    raise ValueError(
        f"{model.name} must have layers with self_attn.q_proj and k_proj, as models "
        "of the Llama, Qwen and Gemma families have"
    )


@torch.inference_mode()
def queries_and_keys(
    model: models.LanguageModel, ids: Int[Tensor, " n"] | str
) -> list[tuple[Float[Tensor, "heads n d"], Float[Tensor, "heads n d"]]]:
    """Return the queries and keys of every layer before rotation, each of shape (heads, n, d).

    If several heads share keys, we repeat the keys for each of these heads.

    Args:
        model: a model from `models.load`.
        ids: n tokens, or a text, which we encode after the model's opening tokens.

    Returns:
        For each layer, a pair of the queries and the keys.

    Raises:
        ValueError: if `ids` is empty, or the model does not compute queries and keys separately
            (see `patch_queries_and_keys`).

    >>> model = models.default()
    >>> [tuple(x.shape) for x in queries_and_keys(model, encode(model, "The cat sat"))[0]]
    [(9, 3, 64), (9, 3, 64)]
    """
    ids = _tokens(model, ids)
    check(model, ids=ids)
    vectors: dict[tuple[int, str], Tensor] = {}

    def keep(layer: int, name: str, x: Tensor) -> Tensor:
        vectors[layer, name] = x[0].transpose(0, 1).float().cpu()
        return x

    with patch_queries_and_keys(model, keep):
        _forward(model, ids, None)
    pairs = []
    for layer in range(len(blocks(model))):
        q, k = vectors[layer, "queries"], vectors[layer, "keys"]
        pairs.append((q, k.repeat_interleave(len(q) // len(k), 0)))
    return pairs


class _FrequencyUse(NamedTuple):
    """Hold how strongly each head uses each rotary frequency, as `frequency_use` returns it."""

    frequencies: Float[Tensor, " half"]
    queries: Float[Tensor, "layers heads half"]
    keys: Float[Tensor, "layers heads half"]


def frequency_use(model: models.LanguageModel, tokens: Int[Tensor, " n"] | str) -> _FrequencyUse:
    """Measure how strongly each head of a model uses each rotary frequency.

    The measure is the mean norm of each rotary pair of the queries and of the keys, as in Barbero
    et al. (2025), section 4. We leave the first token out, because it is often an attention sink
    with unusual keys and queries. If several heads share their keys, the same norms appear for each
    of these heads.

    Args:
        model: a model from `models.load`.
        tokens: at least two tokens, or a text. Before a text we put the model's opening tokens (see
            `opening`).

    Returns:
        `frequencies` has the angle of each rotary pair, in radians per token. `queries` and `keys`
            have the mean norm of each pair for every layer and head.

    Raises:
        ValueError: if the model has no rotary positions, uses several sets of frequencies, or
            rotates only a part of each head.

    >>> found = frequency_use(models.default(), "The cat sat on the mat.")
    >>> found.frequencies.shape, found.queries.shape
    (torch.Size([32]), torch.Size([30, 9, 32]))
    """
    tokens = _tokens(model, tokens)
    check(model, 2, tokens=tokens)
    theta, norms = rotary_frequencies(model), []
    for parts in zip(*queries_and_keys(model, tokens), strict=True):
        x = torch.stack(parts)[:, :, 1:]
        if x.shape[-1] != 2 * len(theta):
            raise ValueError(
                f"{model.short} rotates only {2 * len(theta)} of {x.shape[-1]} "
                "dimensions of a head, but this measure needs all of them"
            )
        norms.append(torch.stack(x.chunk(2, -1)).square().sum(0).sqrt().mean(2))
    return _FrequencyUse(theta, *norms)


@torch.inference_mode()
def loss(model: models.LanguageModel, ids: Int[Tensor, " n"] | str) -> float:
    """Measure the mean cross-entropy in nats per token of a text.

    Each token from the second on is predicted from the tokens before it. A lower loss means that
    the model predicts the text better. Compare the loss before and after an intervention to see how
    much the intervention hurts.

    Args:
        model: a model from `models.load`.
        ids: at least two tokens, or a text, which we encode after the model's opening tokens.

    Returns:
        The loss as a float, averaged over all tokens except the first one.

    >>> model = models.default()
    >>> loss(model, "The cat sat on the mat.") < loss(model, "mat. the on sat cat The")
    True
    """
    ids = _tokens(model, ids)
    check(model, 2, ids=ids)
    logits = model.model(ids[None].to(model.model.device), use_cache=False).logits[0, :-1]
    return float(torch.nn.functional.cross_entropy(logits.float(), ids[1:].to(logits.device)))
