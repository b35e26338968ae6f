"""Measure for chapter 2 that is no public mathematics: graphs side by side, a random decoder, a
real model.
"""

import contextlib
import functools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from course.chapter2 import interventions
from course.drawing.atlas import Reading
from course.evidence import null_controls, significance
from course.maths import bounds, rewiring
from course.runs import sweep
from helpers import attention, data, graphs, models, probe, require
from helpers.models import LanguageModel
from helpers.words import translated

TEXT = (
    "The old harbour town had two clocks, and they never agreed. "
    "The one on the church was set by the priest, who "
    "trusted the sun; the one on the station was set by the guard, who trusted the telegraph. "
    "Visitors learned to ask "
    "which clock a person meant, and the baker, who opened at six by both, sold his bread "
    "twice. When the line was "
    "closed the guard stayed on and wound the station clock each morning, although no train "
    "would come. The priest "
    "asked him why. He said that a clock with nobody to correct it is still a clock, and that "
    "somebody had to be late "
    "for the church. In winter the harbour froze and the boats stood still, the fishermen "
    "mended their nets in the "
    "waiting room, and the children skated from one clock to the other to see how much time "
    "they could gain on the way."
)
TEXTS = ("natural", "random", "repeated")
TOKENS = 48  # of the committed sensitivities
LENGTH = 128  # tokens of the texts in which a token is hidden
AFTER = 64  # token 65 is replaced; later losses and changes are those of the tokens after it
LAST = AFTER + 1
STRETCHES = 6  # of data/prose.txt, beside the lab's own text
APART = 120  # tokens from the start of one stretch to the next
FEW = 12  # directions of the sensitivities of another model, measured on the spot
SINCE = (1, 9, 17, 25, 33, 49, 65)  # the token from which on the first one is hidden
CONTROL = 6  # the token that is hidden instead
LATE = 25  # the token from which on the brake is taken apart
LAYERS_READ = 30  # of the network whose committed profiles are read
KEPT = (
    0.5,
    0.8,
    0.9,
    0.95,
)  # shares of its own state that a token keeps in a layer: the range that is drawn
OFF = 0.2  # share of all heads that are turned off
MORE_OFF = (
    "heads 0.3",
    "heads 0.4",
    "heads 0.5",
    "heads 0.6",
)  # until they cost as much as the hidden sink


# Graphs side by side ------------------------------------------------------------------------------


def connections(n: int) -> dict[str, tuple[Float[Tensor, "n n"], int]]:
    """Who listens to whom in five graphs of n nodes: the row-stochastic matrix, and the node that
    is read.

    Tree and cycle are chapter 1's, each node also hears itself, and the tree is read at its root;
    chain, window and causal attention have a direction and are read at the last token.
    """
    found = {
        name: (graphs.adjacency(graphs.family(name, n), "row", loops=True), 0)
        for name in ("tree", "cycle")
    }
    for width in (2, 4):
        name = "previous token" if width == 2 else f"window of {width}"
        found[name] = attention.uniform(attention.window_mask(n, width)), n - 1
    found["causal attention"] = attention.uniform(attention.causal_mask(n)), n - 1
    return found


def compare_connections(layers: int, kept: float, n: int = 31) -> pd.DataFrame:
    """Chapter 1's measures on five graphs, each at the node for which it is worst; a direction
    counts where it can.

    Columns: hops; effective resistance of the undirected graph; influence of the worst-heard node
    when each layer keeps the share `kept` of a state, and as if how many nodes were heard equally.
    """
    rows = {}
    for name, (matrix, read) in connections(n).items():
        directed = nx.from_numpy_array((matrix > 0).numpy().astype(int), create_using=nx.DiGraph)
        plain = nx.Graph(directed.to_undirected())
        plain.remove_edges_from(nx.selfloop_edges(plain))
        row = attention.influence([matrix] * layers, kept)[read]
        rows[name] = {
            "hops": max(nx.shortest_path_length(directed, read).values()),
            "resistance": rewiring.effective_resistance(plain)[read].max().item(),
            "worst heard": row.min().item(),
            "heard, as if": heard(row).item(),
        }
    return pd.DataFrame(rows).T


def worst_heard(layers: Sequence[int], kept: float, n: int = 31) -> dict[str, list[float]]:
    """Return the share of the worst-heard node in the one that is read, by number of layers, in the
    five graphs.
    """
    return {
        name: [float(attention.influence([matrix] * k, kept)[read].min()) for k in layers]
        for name, (matrix, read) in connections(n).items()
    }


def falls_behind(kept: float, n: int = 31) -> int:
    """From how many layers on causal attention's worst-heard token has a smaller share than the
    tree's worst-heard node.
    """
    found = worst_heard(range(2, 2 + math.ceil(10 / (1 - kept))), kept, n)
    pairs = zip(found["tree"], found["causal attention"], strict=True)
    ahead = [k for k, (tree, causal) in enumerate(pairs, 2) if causal >= tree]
    return ahead[-1] + 1 if ahead else 2


def share_kept(profile: Float[Tensor, " n"], layers: int) -> tuple[float, float]:
    """Return the share of a state that each layer of uniform causal attention must keep to give a
    positive profile, and how far off.

    Least squares of log shares, over shares kept from 0.3 to 0.995 in steps of 0.005; with it the
    root mean square error of the natural logarithm.

    >>> layers = [attention.uniform(attention.causal_mask(8))] * 6
    >>> share_kept(attention.influence(layers, 0.9)[-1], 6)[0]
    0.9
    """
    require.tensor("profile", profile, "n")
    require.integer("layers", layers, 1)
    target, flat = (
        (profile.double() / profile.double().sum()).log(),
        attention.uniform(attention.causal_mask(len(profile))),
    )
    own, errors = torch.eye(len(profile), dtype=torch.float64), {}
    for kept in (k / 200 for k in range(60, 200)):
        row = torch.linalg.matrix_power((1 - kept) * flat + kept * own, layers)[-1]
        errors[kept] = float((row.log() - target).square().mean().sqrt())
    best = min(errors, key=errors.get)
    return best, errors[best]


def steps(shares: Sequence[float], squared: bool = False) -> Float[Tensor, " steps"]:
    """Return how much weight goes through 0, 1, 2, … layers by attention and past the others:
    coefficients of Π (ρ + (1 - ρ) z).

    With `squared` of Π (ρ² + (1 - ρ)² z).

    >>> steps([0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    power, found = 1 + squared, torch.ones(1, dtype=torch.float64)
    for share in shares:
        past, through = found * share**power, found * (1 - share) ** power
        found = torch.nn.functional.pad(past, (0, 1)) + torch.nn.functional.pad(through, (1, 0))
    return found


def averaged(
    matrix: Float[Tensor, "n n"], shares: Sequence[float], squared: bool = False
) -> Float[Tensor, "n n"]:
    """Return everyone's share in every state after layers of one map that keep these shares: row j
    is who makes up token j.

    By an average; with `squared` as the Jacobian of a network with such layers feels it, whose
    values are independent and of mean zero: E |J|² = d Σ c_k (A^k)² with c = `steps(shares,
    squared=True)`, each row then brought to a sum of one.
    """
    power, found = (
        torch.eye(len(matrix), dtype=torch.float64),
        torch.zeros(len(matrix), len(matrix), dtype=torch.float64),
    )
    for weight in steps(shares, squared):
        found += weight * power ** (1 + squared)
        power = matrix @ power
    found = found.sqrt() if squared else found
    return found / found.sum(1, keepdim=True)


def of_known_share(
    kept: float,
    mixed: bool = True,
    layers: int = LAYERS_READ,
    n: int = TOKENS,
    width: int = 64,
    seed: int = 0,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " layers"]]:
    """Return known cases for the metrics: norms of the last token's Jacobian through layers x ← ρ x
    + (1 - ρ) A x W, and their own shares.

    A is uniform, W a random rotation, another one in each layer; without `mixed` the identity. The
    second result is read as `kept_by_layer` reads it: by the norms of each layer's own Jacobian.
    """
    generator, own = torch.Generator().manual_seed(seed), torch.eye(width, dtype=torch.float64)
    matrix = attention.uniform(attention.causal_mask(n))
    jacobian = torch.zeros(n, width, width, dtype=torch.float64)
    jacobian[-1], read = own, []
    for _ in range(layers):
        rotation, triangle = torch.linalg.qr(
            torch.randn(width, width, generator=generator, dtype=torch.float64)
        )
        values = (
            rotation * triangle.diagonal().sign() if mixed else own
        )  # without the signs its mean is not zero
        single = (1 - kept) * matrix[-1, :, None, None] * values
        single[-1] += kept * own
        norms = torch.linalg.matrix_norm(single)
        read.append(norms[-1] / norms.sum())
        jacobian = kept * jacobian + (1 - kept) * torch.einsum(
            "ji,jab,bc->iac", matrix, jacobian, values
        )
    return torch.linalg.matrix_norm(jacobian), torch.stack(read)


def heard(weights: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows"]:
    """Count how many tokens a row hears, as if equally: the exponential of its entropy."""
    return torch.special.entr(weights).sum(-1).exp()


# The bound beside a true Jacobian -----------------------------------------------------------------


def bound_and_truth(
    sharpness: float, seed: int = 0, scaled: bool = False, n: int = 12, layers: int = 3
) -> pd.DataFrame:
    """Theorem B.5's bound beside the norm of the last token's Jacobian, with attention held fixed
    and without.

    The decoder of the theorem with random weights of width 16: z_j = sum_i A_ji v_i / norm1 + v_j
    with A = softmax(sharpness v_j W v_i), v' = slope relu(z / norm2 U) + z with U orthogonal, and y
    = v / norm3. Norms and slopes are 1, or drawn between 1/2 and 2 where `scaled`.
    """
    generator, width = torch.Generator().manual_seed(seed), 16
    mixing = torch.randn(layers, width, width, generator=generator, dtype=torch.float64) / width
    perceptron = torch.linalg.qr(
        torch.randn(layers, width, width, generator=generator, dtype=torch.float64)
    ).Q
    inputs = torch.randn(n, width, generator=generator, dtype=torch.float64)
    drawn = torch.rand(
        3, layers + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    drawn = 2 ** (2 * drawn - 1) if scaled else torch.ones_like(drawn)
    (first, second, slope), last = drawn[:, :layers].tolist(), float(drawn[0, -1])
    hidden = ~attention.causal_mask(n)

    def run(v: Tensor, frozen: bool) -> tuple[Tensor, list[Tensor]]:
        maps = []
        for w, u, beta1, beta2, steep in zip(mixing, perceptron, first, second, slope, strict=True):
            # unit-length queries and keys keep the logits within the sharpness, whatever the layer
            unit = torch.nn.functional.normalize(v, dim=-1)
            logits = sharpness * (unit @ w @ unit.T) * math.sqrt(width)
            weights = logits.masked_fill(hidden, -math.inf).softmax(-1)
            weights = weights.detach() if frozen else weights
            maps.append(weights.detach())
            z = weights @ v / beta1 + v
            v = steep * torch.relu(z / beta2 @ u) + z
        return v[-1] / last, maps

    bound = bounds.influence_bound(
        run(inputs, True)[1], norm1=first, norm2=second, slope=slope, norm3=last
    )[-1]
    columns = {"bound": bound.numpy()}
    for name, frozen in (("attention fixed", True), ("true", False)):
        state = functools.partial(lambda frozen, v: run(v, frozen)[0], frozen)
        jacobian = torch.autograd.functional.jacobian(state, inputs, vectorize=True)
        columns[name] = torch.linalg.matrix_norm(jacobian.movedim(1, 0), ord=2).numpy()
    return pd.DataFrame(columns)


def printed_path_sum(attentions: Float[Tensor, "layers n n"]) -> Float[Tensor, " n"]:
    """Return the path sum into the last token as Barbero et al. (2024) print it (Eqs. 1 and 4),
    without its constant.

    It runs over one index too many, i <= k_1 <= ... <= k_L, of which the product links only k_1 to
    k_(L-1): the last one is tied to the last token and not to k_(L-1), so that paths are counted
    that do not exist, and the sum is never below the product of the A + I, which the proof uses:
    `bounds.influence_bound` with `slope=0`.
    """
    weights = attentions + torch.eye(attentions.shape[-1], dtype=torch.float64)
    product = weights[0]
    for matrix in weights[1:-1]:
        product = matrix @ product
    free = weights[-1, -1].flip(0).cumsum(0).flip(0)  # over all k_L from k_(L-1) on
    return free @ product


# A real model -------------------------------------------------------------------------------------


def sequence(
    model: LanguageModel, kind: str, n: int, first: bool = True, seed: int = 0
) -> Int[Tensor, " n"]:
    """n tokens of natural text, drawn at random, or one repeated; opened as the model's texts are,
    or not.

    Where these are opened by nothing (`probe.opening`), a repeated token still has a first token in
    front.
    """
    require.choice("kind", kind, TEXTS)
    front = torch.empty(0, dtype=torch.long)
    if first:
        front = probe.first_token(model) if kind == "repeated" else probe.opening(model).tokens
    body = n - len(front)
    if kind == "natural":
        tokens = probe.encode(model, TEXT)
        if body > len(tokens) or seed > len(tokens) - body:
            raise ValueError(
                f"n must be at most {len(tokens) + len(front)} minus the seed {seed}, not {n}"
            )
        tokens = tokens[seed : seed + body]
    elif kind == "random":
        generator = torch.Generator().manual_seed(seed)
        size = len(model.tokenizer)
        tokens = torch.randint(
            min(1000, size // 2), size, (body,), generator=generator
        )  # the first are special or bytes
    else:
        tokens = probe.encode(model, TEXT)[seed].repeat(body)
    return torch.cat([front, tokens])


def texts(model: LanguageModel, n: int) -> dict[str, Int[Tensor, " n"]]:
    """Seven texts of n tokens, what opens them included: the lab's own and six stretches of the
    course's prose.

    The stretches begin `APART` tokens from each other, or less where a tokenizer makes few of the
    prose.
    """
    prose, front = probe.encode(model, data.prose()), probe.opening(model).tokens
    apart = min(APART, (len(prose) - n + len(front)) // (STRETCHES - 1))
    if apart < 1:
        raise ValueError(f"n must be at most {len(prose) + len(front) + 1 - STRETCHES}, not {n}")
    found = {"harbour": sequence(model, "natural", n)}
    for k in range(STRETCHES):
        found[f"prose {k + 1}"] = torch.cat([front, prose[k * apart : k * apart + n - len(front)]])
    return found


def sink_table(
    model: LanguageModel, n: int = 64, seeds: Sequence[int] = (0, 20, 40)
) -> pd.DataFrame:
    """Share of heads with a score above `HEAD_SCORE_THRESHOLD`, by text, with and without a first
    token, and uniform attention's scores.

    "sink heads" is Gu et al.'s metric; "diagonal" and "previous" count heads that look at
    themselves or one back.
    """
    rows = []
    for kind in TEXTS:
        for first in (True, False):
            scores = [
                probe.head_scores(model, sequence(model, kind, n, first, seed)) for seed in seeds
            ]
            sink, slash = (
                torch.stack([s.sink for s in scores]),
                torch.stack([s.slash for s in scores]),
            )
            shares = {
                "sink heads": sink,
                "diagonal heads": slash[..., 0],
                "previous-token heads": slash[..., 1],
            }
            rows.append(
                {"text": kind, "first token": "yes" if first else "no"}
                | {name: attention.share_of_strong_heads(score) for name, score in shares.items()}
                | {"mean sink score": float(sink.mean())}
            )
    return pd.DataFrame(rows)


def reader(model: LanguageModel) -> Callable[[str], Reading]:
    """Return a function that reads prompts for the head atlas, with the model's opening token in
    front.
    """

    def read(prompt: str) -> Reading:
        front, body = probe.opening(model).tokens, probe.encode(model, prompt)
        words = [translated("(first)")] * len(front) + [
            model.tokenizer.decode([token]) for token in body.tolist()
        ]
        tokens = torch.cat([front, body])
        return Reading(words, probe.attention_maps(model, tokens))

    return read


class Hidden(NamedTuple):
    """Hold the loss and the states of a text when one token is hidden from later ones."""

    loss: float  # nats, mean over the tokens after the replaced one, token `AFTER` + 1
    spread: Float[
        Tensor, " layers"
    ]  # relative change of the states after a replaced token, by layer
    norms: Float[Tensor, "layers n"]  # of all states, by layer
    heir: int  # the token, from 1, with the largest state at half depth, the hidden one left out
    times: float  # its norm over the median
    attention: float  # the mean attention that it gets from later tokens, all heads


def hiding(
    model: LanguageModel, tokens: Int[Tensor, " n"], token: int | None = None, since: int = 1
) -> Hidden:
    """Hide one token, counted from 1, from all later ones from the token `since` on; for the spread
    replace `AFTER`.

    Raises:
        ValueError: fewer tokens than `AFTER` and two, or a token that is not in the text.
    """
    require.integer("the length of tokens", len(tokens), AFTER + 2)
    hide = None if token is None else require.integer("token", token, 1, len(tokens)) - 1
    other = tokens.clone()
    other[AFTER] = probe.encode(model, " green")[0]
    states, losses = interventions.with_hidden(model, tokens, hide, since - 1)
    moved, _ = interventions.with_hidden(model, other, hide, since - 1)
    spread = ((moved - states).norm(dim=-1) / states.norm(dim=-1))[:, AFTER + 1 :].mean(1)
    norms = states.norm(dim=-1)
    middle = norms[len(norms) // 2].clone()
    if hide is not None:
        middle[hide] = 0
    heir = int(middle.argmax())
    scores = probe.head_scores(model, tokens, heir, (0,), hide, since - 1)
    times = float(middle[heir] / middle.median())
    return Hidden(
        float(losses[AFTER:].mean()), spread, norms, heir + 1, times, float(scores.sink.mean())
    )


def influences(
    model: LanguageModel, tokens: Int[Tensor, " n"], kept: float = 0.5
) -> dict[str, Float[Tensor, " n"]]:
    """Return the measures that people use in place of a Jacobian, for the last token, from one
    pass: row n of each.

    "rollout" multiplies the layers' mean maps, each state keeping the share `kept`; with 1/2 it is
    Abnar & Zuidema's, which ranks as Theorem B.5's bound with norms of one does. "norm-based
    rollout" multiplies `interventions.contributions`, where they can be read; "last row" is the
    last token's own attention, averaged; "mask alone" is uniform attention, "shuffled heads" has
    each head's maps put into another layer.
    """
    mean, shuffled, norm_based = _passes(model, tuple(tokens.tolist()))
    flat = [attention.uniform(attention.causal_mask(len(tokens)))] * len(mean)
    rows = {
        "position": torch.arange(len(tokens)).double(),
        "shuffled heads": attention.influence(shuffled, kept)[-1],
        "mask alone": attention.influence(flat, kept)[-1],
        "rollout": attention.influence(mean, kept)[-1],
        "last row": mean[:, -1].mean(0),
    }
    return rows if norm_based is None else rows | {"norm-based rollout": norm_based}


@functools.lru_cache(maxsize=8)
def _passes(model: LanguageModel, tokens: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor | None]:
    """Of one text what the share kept does not change: maps averaged over heads, over shuffled
    heads, norm-based rollout.
    """
    ids = torch.tensor(tokens)
    maps = probe.attention_maps(model, ids).double()
    order = torch.randperm(
        maps.shape[0] * maps.shape[1], generator=torch.Generator().manual_seed(0)
    )
    shuffled = maps.flatten(0, 1)[order].view(maps.shape).mean(1)
    reads = probe.reads_projections(model)
    return (
        maps.mean(1),
        shuffled,
        attention.influence(interventions.contributions(model, ids).shares)[-1] if reads else None,
    )


def value_ratios(model: LanguageModel, tokens: Int[Tensor, " n"]) -> Float[Tensor, "layers heads"]:
    """Return the norm of the first token's value in each head over the mean norm of the other
    values.
    """
    values = interventions.contributions(model, tokens).values
    return values[..., 0] / values[..., 1:].mean(-1)


def proxies(model: LanguageModel, kept: float = 0.5) -> pd.DataFrame:
    """Rank correlations of each stand-in with the sensitivities, one column a text; `kept` as in
    `influences`.

    "untrained" is the sensitivity of the same network with random weights.
    """
    found = profiles(model)
    columns = {}
    for text, tokens in texts(model, TOKENS).items():
        truth = profile_of(found, text)
        stand_ins = influences(model, tokens, kept) | {
            "untrained": profile_of(found, text, "seed 0")
        }
        columns[text] = {
            name: significance.rank_correlation(row, truth)[0] for name, row in stand_ins.items()
        }
    return pd.DataFrame(columns)


def brake(
    model: LanguageModel, tokens: Int[Tensor, " n"], change: str, draw: int = 0
) -> tuple[float, float]:
    """Return loss after token `AFTER` + 1 and the spread of its replacement, with one thing changed
    from token `LATE` on.

    "nothing"; "mass": the first token is hidden; "value": the first token keeps the attention that
    it gets, and hands over zero; "heads": a share `OFF` of all heads, drawn, hands over zero, and
    the sink is left as it is, or one of `MORE_OFF`.

    Raises:
        ValueError: another change, fewer tokens than `AFTER` and two, or a model whose output
            matrices are not read.
    """
    require.choice("change", change, ("nothing", "mass", "value", "heads", *MORE_OFF))
    require.integer("the length of tokens", len(tokens), AFTER + 2)
    other = tokens.clone()
    other[AFTER] = probe.encode(model, " green")[0]
    (states, losses), (moved, _) = (_braked(model, ids, change, draw) for ids in (tokens, other))
    late = AFTER + 1 - (LATE - 1)
    spread = ((moved - states).norm(dim=-1) / states.norm(dim=-1))[late:].mean()
    return float(losses[AFTER - (LATE - 1) :].mean()), float(spread)


@torch.inference_mode()
def _braked(
    model: LanguageModel, ids: Int[Tensor, " n"], change: str, draw: int
) -> tuple[Tensor, Tensor]:
    """Final states and losses from token `LATE` on, the earlier tokens read as trained."""
    from transformers import DynamicCache

    ids, first = ids.to(model.model.device)[None], LATE - 1
    config = model.model.config.get_text_config()
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    cache, seen = DynamicCache(), torch.ones_like(ids)
    model.model(ids[:, :first], past_key_values=cache, use_cache=True, logits_to_keep=1)
    if change == "value":
        for layer in cache.layers:
            layer.values[:, :, 0] = 0
    if change == "mass":
        seen[0, 0] = 0
    gain = torch.ones(layers * heads)
    if change.startswith("heads"):
        drawn = torch.randperm(layers * heads, generator=torch.Generator().manual_seed(draw))
        gain[drawn[: round(float(change[5:] or OFF) * layers * heads)]] = 0
    with interventions.scaled(model, gain.view(layers, heads)):
        out = model.model(
            ids[:, first:], past_key_values=cache, attention_mask=seen, output_hidden_states=True
        )
    losses = torch.nn.functional.cross_entropy(
        out.logits[0, :-1].float(), ids[0, first + 1 :], reduction="none"
    )
    return out.hidden_states[-1][0].float().cpu(), losses.cpu()


CLAMPS = ("nothing", "3 largest", "20 largest", "3 largest anew", "6 drawn", "whole state")
GIANT = 12  # the layer after which the embedded model's first token has its giant state


@contextlib.contextmanager
def clamping(
    model: LanguageModel, change: str, since: int = GIANT, seed: int = 0
) -> Iterator[None]:
    """Change the first token's state after each layer from `since` on, while the block runs.

    Args:
        change: one of `CLAMPS`. "3 largest" and "20 largest" set so many coordinates, those of
            largest size after layer `since`, to what the median of the other tokens has there; "3
            largest anew" chooses three after each layer; "6 drawn" sets six random ones; "whole
            state" shrinks the state to the median norm, in its direction.
        since: a layer, counted from 1.
        seed: of the coordinates that are drawn.

    Raises:
        ValueError: another change, or a network without a list of layers.
    """
    require.choice("change", change, CLAMPS)
    layers = probe.blocks(model)
    width = model.model.config.get_text_config().hidden_size
    drawn = torch.randperm(width, generator=torch.Generator().manual_seed(seed))[:6]
    chosen = {"places": drawn if change == "6 drawn" else None}

    def clamp(_: torch.nn.Module, arguments: tuple, out: Tensor | tuple) -> Tensor | tuple:
        states = (out[0] if isinstance(out, tuple) else out).clone()
        first, others = states[:, 0], states[:, 1:]
        if change == "whole state":
            first *= others.norm(dim=-1).median() / first.norm(dim=-1)
        else:
            if chosen["places"] is None or change == "3 largest anew":
                chosen["places"] = first[0].abs().topk(int(change.split()[0])).indices
            places = chosen["places"]
            first[:, places] = others.median(dim=1).values[:, places]
        return (states, *out[1:]) if isinstance(out, tuple) else states

    hooks = (
        [layer.register_forward_hook(clamp) for layer in layers[since - 1 :]]
        if change != "nothing"
        else []
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def clamped_row(text: str, change: str) -> dict[str, float]:
    """Return what one of `CLAMPS` does to the sink of the embedded model, in the layers after
    `GIANT`.

    Returns:
        sink: mean sink score of the heads of layers 13 to 30; heads: the share of them above
            `HEAD_SCORE_THRESHOLD`; loss: nats, mean
        over the text.
    """
    model = models.default()
    tokens = texts(model, LENGTH)[text]
    with clamping(model, change):
        sink = probe.head_scores(model, tokens).sink[GIANT:]
        loss = probe.loss(model, tokens)
    strong = attention.share_of_strong_heads(sink)
    return {"sink": round(float(sink.mean()), 4), "heads": round(strong, 4), "loss": round(loss, 4)}


# Tables: committed for the embedded model, measured for any other
# ------------------------------------------


def network_name(scale: str = "own", seed: int = 0) -> str:
    """Return how the tables call a random-weights baseline.

    >>> network_name(), network_name("unit")
    ('seed 0', 'seed 0, unit')
    """
    return f"seed {seed}" if scale == "own" else f"seed {seed}, {scale}"


def network_of(model: LanguageModel, network: str) -> LanguageModel:
    """Return the model itself for "trained", or its random-weights baseline for "seed 0" or "seed
    0, 0.02".

    >>> network_of(models.default(), "trained") is models.default()
    True
    """
    if network == "trained":
        return model
    seed, _, scale = network.removeprefix("seed ").partition(", ")
    return null_controls.untrained(model, int(seed), scale or "own")


def sensitivity(
    text: str, network: str, directions: int, model: LanguageModel | None = None
) -> dict[str, float]:
    """Return norms of the Jacobian of the last state by each token of one of the `texts`, for the
    trained or a fresh network.
    """
    model = model or models.default()
    tokens = texts(model, TOKENS)[text]
    read = network_of(model, network)
    width = model.model.config.get_text_config().hidden_size
    norms = probe.sensitivity(read, tokens, None if directions == width else directions).norms
    return {f"token {i}": float(f"{x:.6g}") for i, x in enumerate(norms.tolist(), 1)}


def kept_by_layer(
    model: LanguageModel, tokens: Int[Tensor, " n"], directions: int = 32, seed: int = 0
) -> Float[Tensor, " layers"]:
    """Measure which fraction of the last token's state each layer keeps: of the norms of that
    layer's own Jacobian, the own one's.

    Frobenius norms of d h_n^(l + 1) / d h_i^(l), one layer at a time, from so many orthogonal
    directions.

    Raises:
        ValueError: a network without a list of layers.
    """
    network, inputs = model.model.base_model, []
    if not hasattr(network, "layers"):
        raise ValueError(f"model must have its layers in a list, not {model.short}")

    def keep(_: torch.nn.Module, arguments: tuple, more: dict) -> None:
        inputs.append((arguments, more))

    hooks = [layer.register_forward_pre_hook(keep, with_kwargs=True) for layer in network.layers]
    try:
        with torch.no_grad():
            network(input_ids=tokens[None].to(model.model.device), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    normal = torch.randn(
        model.model.config.hidden_size, directions, generator=torch.Generator().manual_seed(seed)
    )
    frame, shares = torch.linalg.qr(normal).Q.T, []
    for layer, ((state, *others), more) in zip(network.layers, inputs, strict=True):
        with torch.enable_grad():
            before = state.detach().requires_grad_()
            after = layer(before, *others, **more)
            after = after[0] if isinstance(after, tuple) else after
            (found,) = torch.autograd.grad(
                after[0, -1], before, frame.to(before), is_grads_batched=True
            )
        norms = found[:, 0].cpu().double().square().sum((0, -1)).sqrt()
        shares.append(norms[-1] / norms.sum())
    return torch.stack(shares)


def kept_row(text: str, network: str) -> dict[str, float]:
    """Return `kept_by_layer` on one of the `texts`, of the embedded model or of fresh random
    weights, as numbers.
    """
    model = models.default()
    read = network_of(model, network)
    shares = kept_by_layer(read, texts(model, TOKENS)[text]).tolist()
    return {f"layer {k}": round(share, 4) for k, share in enumerate(shares, 1)}


def hiding_in(
    text: str, token: int, since: int, model: LanguageModel | None = None
) -> dict[str, float]:
    """Return `hiding` on one of the `texts`, as numbers; token 0 hides none."""
    model = model or models.default()
    found = hiding(model, texts(model, LENGTH)[text], token or None, since)
    return {
        "loss": round(found.loss, 4),
        "spread": float(f"{float(found.spread[-1]):.5g}"),
        "heir": found.heir,
        "times": float(f"{found.times:.5g}"),
        "attention": float(f"{found.attention:.5g}"),
    }


def hiding_untrained(text: str, token: int, since: int) -> dict[str, float]:
    """Return `hiding_in` the embedded model's random-weights baseline."""
    return hiding_in(text, token, since, untrained())


@functools.cache
def untrained() -> LanguageModel:
    """Return the embedded model's random-weights baseline, seed 0, made once."""
    return null_controls.untrained(models.default(), 0)


def brake_row(text: str, change: str, draw: int) -> dict[str, float]:
    """Return `brake` on one of the `texts` in the embedded model, as numbers."""
    model = models.default()
    loss, spread = brake(model, texts(model, LENGTH)[text], change, draw)
    return {"loss": round(loss, 4), "spread": float(f"{spread:.5g}")}


NAMES = ("harbour", *(f"prose {k + 1}" for k in range(STRETCHES)))
HIDDEN = [
    {"text": text, "token": token, "since": since}
    for text in NAMES
    for token, since in ((0, 1), *((1, since) for since in SINCE), (CONTROL, 1), (CONTROL, 25))
]
# every place in three texts, and the cases that claims ask about in all of them
HIDDEN_UNTRAINED = [
    row
    for row in HIDDEN
    if row["text"] in NAMES[:3]
    or (row["token"], row["since"]) in ((0, 1), (1, 1), (1, LATE), (CONTROL, LATE))
]


@functools.cache
def profiles(model: LanguageModel) -> pd.DataFrame:
    """Return sensitivities of every token by text and network: the committed table if the model is
    the embedded one.

    Of its random-weights baseline, asked as if it were trained, the table holds both networks: they
    are one.
    """
    if model.name == models.DEFAULT:
        return data.table("sensitivity_smollm2")
    for scale in null_controls.SCALES:
        if model.name == null_controls.baseline_name(models.default(), scale=scale):
            table = data.table("sensitivity_smollm2")
            rows = table[table["network"] == network_name(scale)]
            return pd.concat([rows.assign(network=name) for name in ("trained", "seed 0")])
    settings = sweep.grid(network=["trained", "seed 0"], text=NAMES, directions=[FEW])
    return pd.DataFrame([s | sensitivity(**s, model=model) for s in settings])


@functools.cache
def hiding_table(model: LanguageModel) -> pd.DataFrame:
    """Return the effect of hiding a token, by text: the committed table if the model is the
    embedded one, or its baseline.
    """
    if model.name == models.DEFAULT:
        return data.table("hiding_smollm2")
    if model.name == null_controls.baseline_name(models.default()):
        return data.table("hiding_untrained")
    return pd.DataFrame([s | hiding_in(**s, model=model) for s in HIDDEN])


@functools.cache
def brake_table() -> pd.DataFrame:
    """Return the cost of each change and how much further a replaced token moves later states, one
    row per change and text.

    "loss": nats above nothing changed; "spread": over that of nothing changed; "heads" and
    `MORE_OFF` are means of their draws. "at equal loss": heads off at random until they cost what
    the hidden sink costs, between the shares of heads tried.
    """
    table = data.table("brake_smollm2").groupby(["change", "text"])[["loss", "spread"]].mean()
    plain = table.loc["nothing"]
    loss, spread = (
        table["loss"].sub(plain["loss"], level="text"),
        table["spread"].div(plain["spread"], level="text"),
    )
    found = pd.DataFrame({"loss": loss, "spread": spread})
    return pd.concat([found, pd.concat({"at equal loss": _at_equal_loss(found)}, names=["change"])])


def _at_equal_loss(found: pd.DataFrame) -> pd.DataFrame:
    """By text, the spread of heads off at the loss of "mass": linear between the shares of heads
    tried, NaN beyond them.
    """
    tried, rows = found.loc[["nothing", "heads", *MORE_OFF]], {}
    for text, loss in found.loc["mass", "loss"].items():
        line = tried.xs(text, level="text").sort_values("loss")
        spread = np.interp(loss, line["loss"], line["spread"], right=math.nan)
        rows[text] = {"loss": loss, "spread": float(spread)}
    return pd.DataFrame(rows).T.rename_axis("text")


@functools.cache
def kept_shares(text: str = "harbour", network: str = "seed 0") -> Float[Tensor, " layers"]:
    """Return `kept_by_layer` of the embedded model's network, from data/."""
    table = data.table("kept_smollm2").set_index(["text", "network"])
    return torch.tensor(table.loc[(text, network)].filter(like="layer ").to_numpy(dtype=float))


@functools.cache
def mean_share() -> float:
    """Return the share of its state that a layer of the untrained network keeps: `kept_shares`,
    mean over layers and texts.
    """
    return round(float(torch.stack([kept_shares(text) for text in NAMES]).mean()), 2)


@functools.cache
def fitted_share() -> float:
    """Return the ρ of an average that looks like the untrained Jacobian's norms: `share_kept`,
    median over the texts.

    No share that a layer keeps: values that differ from layer to layer add in quadrature, and the
    fit takes them to add.
    """
    rows = [profile_of(data.table("sensitivity_smollm2"), text, "seed 0") for text in NAMES]
    return statistics.median(share_kept(row, LAYERS_READ)[0] for row in rows)


def hidden_from(table: pd.DataFrame, token: int, since: int = 1) -> pd.DataFrame:
    """Return the rows of `hiding_table` in which this token is hidden from the token `since` on
    (token 0: none), by text.
    """
    return table[(table["token"] == token) & (table["since"] == since)].set_index("text")


def profile_of(
    table: pd.DataFrame, text: str = "harbour", network: str = "trained"
) -> Float[Tensor, " n"]:
    """Return one row of `profiles` as a tensor."""
    row = table[(table["text"] == text) & (table["network"] == network)].iloc[0]
    return torch.tensor(
        [float(row[f"token {i}"]) for i in range(1, TOKENS + 1)], dtype=torch.float64
    )
