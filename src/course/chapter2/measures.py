"""Measure influence and attention on graphs, random decoders and a pretrained model.

Chapter 2 uses these functions. Functions that other chapters need as well are in `helpers` and
`course.maths`.
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
TOKENS = 48  # the length of the texts of the committed sensitivities
LENGTH = 128  # the length of the texts in which a token is knocked out
AFTER = 64  # we replace token 65, and measure losses and changes on the tokens after it
LAST = AFTER + 1
STRETCHES = 6  # pieces of data/prose.txt, in addition to the lab's own text
APART = 120  # the number of tokens from the start of one piece to the start of the next
FEW = 12  # directions for the sensitivities of a model without committed results
SINCE = (1, 9, 17, 25, 33, 49, 65)  # the tokens from which on the first token is knocked out
CONTROL = 6  # in the control, this token is knocked out instead of the first
LATE = 25  # the token from which we remove parts of the sink
LAYERS_READ = 30  # layers of the network whose committed profiles are fitted
KEPT = (
    0.5,
    0.8,
    0.9,
    0.95,
)  # fractions of its state that a token keeps in a layer, the range that is drawn
OFF = 0.2  # the fraction of all heads that are zero-ablated
MORE_OFF = (
    "heads 0.3",
    "heads 0.4",
    "heads 0.5",
    "heads 0.6",
)  # larger fractions, until they cost as much as knocking out the sink


# Graphs side by side ------------------------------------------------------------------------------


def connections(n: int) -> dict[str, tuple[Float[Tensor, "n n"], int]]:
    """Return five graphs of n nodes with the node whose output is read, keyed by name.

    The tree and the cycle are those of chapter 1, with a loop at each node, and the tree is read at
    its root. In the chain, the window and causal attention, the edges have a direction, so these
    graphs are read at the last token.

    Returns:
        For each graph, its row-stochastic matrix and the number of the node that is read.
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
    """Compare five graphs by the measures of chapter 1.

    Each measure is that of the node with the worst value.

    The direction of edges counts in all measures except the resistance.

    Returns:
        One row per graph, with the hops, the effective resistance of the undirected graph, the
            smallest influence of a node when each layer keeps the fraction `kept` of a state, and
            the effective number of nodes (see `heard`).
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
    """Return the influence of the weakest node on the node that is read, for several depths.

    The graphs are those of `connections`. For each graph there is one value per entry of `layers`.
    """
    return {
        name: [float(attention.influence([matrix] * k, kept)[read].min()) for k in layers]
        for name, (matrix, read) in connections(n).items()
    }


def falls_behind(kept: float, n: int = 31) -> int:
    """Return the smallest number of layers with which causal attention is worse than the tree.

    Worse means that the weakest token has less influence than the weakest node of the tree (see
    `worst_heard`).
    """
    found = worst_heard(range(2, 2 + math.ceil(10 / (1 - kept))), kept, n)
    pairs = zip(found["tree"], found["causal attention"], strict=True)
    ahead = [k for k, (tree, causal) in enumerate(pairs, 2) if causal >= tree]
    return ahead[-1] + 1 if ahead else 2


def share_kept(profile: Float[Tensor, " n"], layers: int) -> tuple[float, float]:
    """Fit the fraction of its state that a token keeps in a layer of uniform causal attention.

    The profile has the influence of each token, a positive number. We try the fractions from 0.3 to
    0.995, in steps of 0.005, and choose the fraction for which the influences after `layers` layers
    come nearest to the profile, by least squares of the logarithms.

    Returns:
        The fraction, and the root mean square error of the natural logarithm, which says how good
            the fit is.

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
    """Return the weight of the paths that pass through attention in exactly 0, 1, 2, … layers.

    In each layer, a fraction ρ of the weight bypasses attention, and `shares` has this fraction for
    each layer. So the result has the coefficients of Π (ρ + (1 - ρ) z), or with `squared` those of
    Π (ρ² + (1 - ρ)² z).

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
    """Return the influence of all tokens on all states if all layers have the same attention.

    Row j has the influence of each token on the hidden state of token j. `matrix` is the attention
    matrix, and `shares` has the fraction of its state that a token keeps in each layer.

    Args:
        squared: by default, the influence is the weight in an average. With `squared`, the
            influence is the size of the Jacobian in a network of such layers, whose values are
            independent and have mean zero. Then E |J|² = d Σ c_k (A^k)² with c = `steps(shares,
            squared=True)`, and each row is scaled to a sum of one.
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
    """Measure a network that keeps a known fraction of each state, to calibrate our metrics.

    A layer is x ← ρ x + (1 - ρ) A x W with A uniform.

    Args:
        kept: the fraction ρ.
        mixed: whether W is a random rotation, drawn anew for each layer. Otherwise W is the
            identity.

    Returns:
        The norms of the last token's Jacobian through all layers, and the fraction that each layer
            keeps, measured as in `kept_by_layer` from the norms of this layer's own Jacobian.
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
    """Return the effective number of tokens to which each row of weights attends.

    This number is the exponential of the entropy of the row. It is k for a row that attends equally
    to k tokens.
    """
    return torch.special.entr(weights).sum(-1).exp()


# Compare the bound with a true Jacobian -----------------------------------------------------------


def bound_and_truth(
    sharpness: float, seed: int = 0, scaled: bool = False, n: int = 12, layers: int = 3
) -> pd.DataFrame:
    """Compare Theorem B.5's bound with the norm of the last token's Jacobian in a random decoder.

    The decoder is that of the theorem, with random weights of width 16: z_j = sum_i A_ji v_i /
    norm1 + v_j with A = softmax(sharpness v_j W v_i), v' = slope relu(z / norm2 U) + z with U
    orthogonal, and y = v / norm3.

    Args:
        scaled: whether to draw the norms and slopes from 1/2 to 2. Otherwise they are 1.

    Returns:
        One row per token, with the bound, the Jacobian with attention held fixed, and the true
            Jacobian.
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
            # unit-length queries and keys keep the logits within the sharpness in every layer
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
    """Return the path sum into the last token as Barbero et al. (2024) print it (Eqs. 1 and 4).

    The constant factor is left out. The printed sum runs over i <= k_1 <= ... <= k_L, which is one
    index too many: the product connects only k_1 to k_(L-1), because its last factor belongs to the
    last token and does not contain k_(L-1). So the sum counts paths that do not exist. It is never
    smaller than the product of the matrices A + I, which the proof uses and which
    `bounds.influence_bound` computes with `slope=0`.
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
    """Return n tokens of natural text, of random tokens, or of one repeated token.

    Args:
        first: whether to begin with the model's opening token (see `probe.opening`). If the model's
            texts have no opening token, a different token is still put in front of a repeated
            token.
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
        )  # the first tokens are special or bytes
    else:
        tokens = probe.encode(model, TEXT)[seed].repeat(body)
    return torch.cat([front, tokens])


def texts(model: LanguageModel, n: int) -> dict[str, Int[Tensor, " n"]]:
    """Return seven texts of n tokens, keyed by name.

    The texts are the lab's own text and six pieces of the course's prose. The n tokens include the
    model's opening token. The starts of neighbouring pieces are `APART` tokens apart, or fewer if
    the tokenizer splits the prose into too few tokens.
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
    """Return the fractions of heads that attend to the first, the same or the previous token.

    A head counts if its score is above `HEAD_SCORE_THRESHOLD`.

    Returns:
        One row per text, with and without an opening token, and a row for uniform attention. The
            columns are fractions of all heads. "sink heads" is the metric of Gu et al. "diagonal"
            and "previous" count the heads in which a token attends to itself and to the token
            before it.
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
    """Return a function that computes a prompt's attention matrices, for the head atlas.

    The function puts the model's opening token in front of the prompt.
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
    """Hold losses and hidden states of a text in which later tokens cannot attend to one token.

    Attributes:
        loss: the mean loss in nats over the tokens after the replaced token, which is token `AFTER`
            + 1.
        spread: for each layer, the relative change of the hidden states after the replaced token.
        norms: the norms of all hidden states, layer by layer.
        heir: the token, counted from 1, with the largest hidden state at half depth. The
            knocked-out token does not count.
        times: the norm of this token's state divided by the median norm.
        attention: the mean attention that this token receives from later tokens, over all heads.
    """

    loss: float
    spread: Float[Tensor, " layers"]
    norms: Float[Tensor, "layers n"]
    heir: int
    times: float
    attention: float


def hiding(
    model: LanguageModel, tokens: Int[Tensor, " n"], token: int | None = None, since: int = 1
) -> Hidden:
    """Knock out attention to one token, and measure how losses and hidden states change.

    To measure how far a change spreads, we replace the token after token `AFTER`.

    Args:
        token: the token, counted from 1, that later tokens can no longer attend to. `None` knocks
            out no token.
        since: the first token that can no longer attend to the hidden token, counted from 1.

    Raises:
        ValueError: if the text has fewer than `AFTER` + 2 tokens, or has no token at a given
            position.
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
    """Compute measures of each token's influence on the last token that need no Jacobian.

    These measures are cheap substitutes for a Jacobian, because one forward pass gives all of them.
    Each has one number per token.

    Args:
        kept: the fraction of its state that a token keeps in a layer.

    Returns:
        "rollout": the product of the layers' mean attention matrices, where each state keeps the
            fraction `kept`. With 1/2 the product is the rollout of Abnar & Zuidema, and ranks the
            tokens in the same order as Theorem B.5's bound with norms of one.
        "norm-based rollout": the product of `interventions.contributions`, if we can read the
            contributions of the model.
        "last row": the last token's own attention, averaged over layers and heads.
        "mask alone": the rollout of uniform attention, as a control.
        "shuffled heads": the rollout after each head's matrix was moved to another layer, as a
            control.
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
    """Compute the parts of `influences` that do not depend on `kept`, once per text.

    Returns:
        Three parts: the attention matrices averaged over heads, these averages after heads were
            shuffled between layers, and the norm-based rollout. The last part is `None` if we
            cannot read the contributions of the model.
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
    """Return the norm of the first token's value divided by the mean norm of the others.

    There is one ratio for each head. If the ratio is small, attention to the first token hardly
    changes the hidden states of the tokens that attend to it.
    """
    values = interventions.contributions(model, tokens).values
    return values[..., 0] / values[..., 1:].mean(-1)


def proxies(model: LanguageModel, kept: float = 0.5) -> pd.DataFrame:
    """Return how well each cheap measure of influence ranks the tokens by their influence.

    The score is the rank correlation with the Jacobian. There is one row per measure of
    `influences` and one column per text. In the row "untrained", the measure is the Jacobian of the
    same network with random weights.

    Args:
        kept: the fraction of its state that a token keeps in a layer, as in `influences`.
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
    """Measure the loss and the spread of a change after removing one part of the attention sink.

    The spread is the relative change of the hidden states after a replaced token, token `AFTER` +
    1. The loss is the mean over the tokens after it, in nats.

    Args:
        change: what is removed from token `LATE` on. "nothing" is the baseline. "mass" knocks out
            the attention to the first token. "value" keeps this attention but sets the first
            token's value to zero. "heads" leaves the sink as it is and ablates a random fraction
            `OFF` of all heads, and `MORE_OFF` ablates larger fractions.
        draw: the seed of the random heads.

    Raises:
        ValueError: if the change is unknown, the text has fewer than `AFTER` + 2 tokens, or the
            model's output matrices cannot be read.
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
    """Return the final hidden states and losses from token `LATE` on, without one part of the sink.

    The part is removed only for token `LATE` and later tokens. Earlier tokens are computed without
    the change.
    """
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
    """Change the first token's hidden state after layer `since` and all later layers, for a block.

    This tests which part of the very large state makes the first token a sink.

    Args:
        change: one of `CLAMPS`. "3 largest" and "20 largest" choose the coordinates that are
            largest after layer `since`, and set them to the median over the other tokens. "3
            largest anew" chooses the three largest coordinates again after each layer. "6 drawn"
            chooses six random coordinates. "whole state" shrinks the state to the median norm and
            keeps its direction.
        since: a layer, counted from 1.
        seed: the seed of the random coordinates.

    Raises:
        ValueError: if the change is unknown, or the network has no list of layers.
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
    """Measure how one of `CLAMPS`, from layer `GIANT` on, affects the embedded model's sink.

    Returns:
        sink: the mean sink score of the heads of layers 13 to 30
        heads: the fraction of these heads above `HEAD_SCORE_THRESHOLD`
        loss: the mean loss over the text in nats
    """
    model = models.default()
    tokens = texts(model, LENGTH)[text]
    with clamping(model, change):
        sink = probe.head_scores(model, tokens).sink[GIANT:]
        loss = probe.loss(model, tokens)
    strong = attention.share_of_strong_heads(sink)
    return {"sink": round(float(sink.mean()), 4), "heads": round(strong, 4), "loss": round(loss, 4)}


# Return tables that are committed for the embedded model and measured for any other ---------------


def network_name(scale: str = "own", seed: int = 0) -> str:
    """Return the name of a random-weights baseline in the tables.

    >>> network_name(), network_name("unit")
    ('seed 0', 'seed 0, unit')
    """
    return f"seed {seed}" if scale == "own" else f"seed {seed}, {scale}"


def network_of(model: LanguageModel, network: str) -> LanguageModel:
    """Return the model itself, or its random-weights baseline, by the name used in the tables.

    Args:
        network: "trained", or the name of a baseline (see `network_name`), which may include the
            scale of the weights, as in "seed 0, 0.02".

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
    """Measure the Jacobian norms of the last hidden state with respect to each token.

    Args:
        text: one of the `texts`.
        network: the trained network or a random-weights baseline (see `network_of`).
        directions: the number of random directions from which the norms are estimated.
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
    """Measure the fraction of the last token's hidden state that each layer keeps.

    For each layer, we take the Frobenius norms of d h_n^(l + 1) / d h_i^(l) for all tokens i, and
    divide the norm for i = n by their sum. The Jacobian is estimated from `directions` orthogonal
    directions.

    Raises:
        ValueError: if the network has no list of layers.
    """
    network, inputs = model.model.base_model, []
    if not hasattr(network, "layers"):
        raise ValueError(f"model must be a model whose layers are in a list, not {model.short}")

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
    """Measure which fraction of a hidden state each layer keeps, as a row of the committed table.

    The text is one of the `texts`, and the network is the embedded model or its random-weights
    baseline (see `kept_by_layer`).
    """
    model = models.default()
    read = network_of(model, network)
    shares = kept_by_layer(read, texts(model, TOKENS)[text]).tolist()
    return {f"layer {k}": round(share, 4) for k, share in enumerate(shares, 1)}


def hiding_in(
    text: str, token: int, since: int, model: LanguageModel | None = None
) -> dict[str, float]:
    """Measure the effect of an attention knockout on one of the `texts`, as a row of a table.

    Token 0 means that no token is knocked out (see `hiding`).
    """
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
    """Measure the effect of an attention knockout on the random-weights baseline."""
    return hiding_in(text, token, since, untrained())


@functools.cache
def untrained() -> LanguageModel:
    """Return the random-weights baseline (seed 0) of the embedded model, made only once."""
    return null_controls.untrained(models.default(), 0)


def brake_row(text: str, change: str, draw: int) -> dict[str, float]:
    """Measure the effect of removing one part of the sink, as a row of the committed table.

    The model is the embedded one, and the text is one of the `texts` (see `brake`).
    """
    model = models.default()
    loss, spread = brake(model, texts(model, LENGTH)[text], change, draw)
    return {"loss": round(loss, 4), "spread": float(f"{spread:.5g}")}


NAMES = ("harbour", *(f"prose {k + 1}" for k in range(STRETCHES)))
HIDDEN = [
    {"text": text, "token": token, "since": since}
    for text in NAMES
    for token, since in ((0, 1), *((1, since) for since in SINCE), (CONTROL, 1), (CONTROL, 25))
]
# every position in three texts, and in all texts the cases that claims need
HIDDEN_UNTRAINED = [
    row
    for row in HIDDEN
    if row["text"] in NAMES[:3]
    or (row["token"], row["since"]) in ((0, 1), (1, 1), (1, LATE), (CONTROL, LATE))
]


@functools.cache
def profiles(model: LanguageModel) -> pd.DataFrame:
    """Return the sensitivity to every token, with one row per text and network.

    For the embedded model, the sensitivities come from the committed table. Any other model is
    measured here. If the model is the random-weights baseline of the embedded model, its
    sensitivities appear under both networks of the table, the trained and the untrained one.
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
    """Return the effect of knocking out attention to a token, for each text.

    For the embedded model and its baseline, the results come from a committed table. Any other
    model is measured here.
    """
    if model.name == models.DEFAULT:
        return data.table("hiding_smollm2")
    if model.name == null_controls.baseline_name(models.default()):
        return data.table("hiding_untrained")
    return pd.DataFrame([s | hiding_in(**s, model=model) for s in HIDDEN])


@functools.cache
def brake_table() -> pd.DataFrame:
    """Return the loss and the spread after each change to the sink, relative to no change.

    There is one row per change and text. The rows of "heads" and `MORE_OFF` are means over random
    draws of the heads. The rows "at equal loss" show the spread if so many random heads are ablated
    that the loss equals that of "mass". This spread is interpolated between the fractions of heads
    that we tried.

    Returns:
        `loss`: the loss minus the loss with no change, in nats.
        `spread`: the spread (see `brake`) divided by the spread with no change.
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
    """Return, for each text, the spread if ablating heads raises the loss as much as "mass" does.

    The spread is interpolated linearly between the fractions of heads that we tried. It is NaN if
    no fraction raises the loss that much.
    """
    tried, rows = found.loc[["nothing", "heads", *MORE_OFF]], {}
    for text, loss in found.loc["mass", "loss"].items():
        line = tried.xs(text, level="text").sort_values("loss")
        spread = np.interp(loss, line["loss"], line["spread"], right=math.nan)
        rows[text] = {"loss": loss, "spread": float(spread)}
    return pd.DataFrame(rows).T.rename_axis("text")


@functools.cache
def kept_shares(text: str = "harbour", network: str = "seed 0") -> Float[Tensor, " layers"]:
    """Return the committed fraction of a hidden state that each layer of a network keeps."""
    table = data.table("kept_smollm2").set_index(["text", "network"])
    return torch.tensor(table.loc[(text, network)].filter(like="layer ").to_numpy(dtype=float))


@functools.cache
def mean_share() -> float:
    """Return the mean fraction of its state that a layer of the untrained network keeps.

    The mean is over the layers and texts of `kept_shares`.
    """
    return round(float(torch.stack([kept_shares(text) for text in NAMES]).mean()), 2)


@functools.cache
def fitted_share() -> float:
    """Return the kept fraction for which uniform attention fits the untrained network best.

    We fit the norms of the untrained network's Jacobians with `share_kept`, and return the median
    over the texts. The result is not the fraction that a layer really keeps, because the fit
    assumes that contributions simply add up. In fact, contributions from different layers add in
    quadrature.
    """
    rows = [profile_of(data.table("sensitivity_smollm2"), text, "seed 0") for text in NAMES]
    return statistics.median(share_kept(row, LAYERS_READ)[0] for row in rows)


def hidden_from(table: pd.DataFrame, token: int, since: int = 1) -> pd.DataFrame:
    """Return the rows of `hiding_table` in which one token is knocked out, indexed by text.

    Args:
        token: the token, counted from 1, or 0 for the rows without a knockout.
        since: the first token that can no longer attend to the hidden token.
    """
    return table[(table["token"] == token) & (table["since"] == since)].set_index("text")


def profile_of(
    table: pd.DataFrame, text: str = "harbour", network: str = "trained"
) -> Float[Tensor, " n"]:
    """Return one row of `profiles` as a tensor with one sensitivity per token."""
    row = table[(table["text"] == text) & (table["network"] == network)].iloc[0]
    return torch.tensor(
        [float(row[f"token {i}"]) for i in range(1, TOKENS + 1)], dtype=torch.float64
    )
