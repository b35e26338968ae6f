"""Test two causes of attention sinks that papers of 2026 propose.

Kiya et al. (arXiv:2609.09085) say that the causal mask lets the first token attend only to itself,
so its value is not mixed with any other value. Lampert et al. (arXiv:2605.08453) say that a sink
costs less to represent than a diagonal. We have read only the abstracts of both papers.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from course.chapter2 import measures
from helpers import attention, models, require
from helpers.models import LanguageModel

CHANGES = (
    "nothing",
    "first sees 8",
    "first sees all",
    "first sees 8, without itself",
    "token 40 sees itself",
    "token 40 sees token 39",
    "token 40 sees the last 2",
    "token 40 sees the last 4",
)
TOKEN = 40  # the position of the other token, counted from 0
PATTERNS = ("sink", "diagonal")
COPIES = 64  # the number of sequences in which a pattern must appear
WEIGHT = 0.9  # the weight of the wanted token, as a mean over all rows
RATES = torch.logspace(-8, 4, 37, dtype=torch.float64).tolist()  # the penalties for a squared norm


def changed_mask(n: int, change: str) -> Bool[Tensor, "n n"]:
    """Return the causal mask after one of `CHANGES` to the row of one token.

    Every layer and head uses the same mask.
    """
    require.choice("change", change, CHANGES)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    if change.startswith("first sees"):
        mask[0, : n if "all" in change else 8] = True
        mask[0, 0] = "without itself" not in change
    elif change.startswith("token"):
        mask[TOKEN, : TOKEN + 1] = False
        last = {"itself": 1, "token 39": 2, "last 2": 2, "last 4": 4}
        many = next(each for words, each in last.items() if change.endswith(words))
        mask[TOKEN, TOKEN + 1 - many : TOKEN + 1] = True
        mask[TOKEN, TOKEN] = "token 39" not in change
    return mask


@torch.inference_mode()
def passes(
    model: LanguageModel, tokens: Int[Tensor, " n"], mask: Bool[Tensor, "n n"]
) -> tuple[Float[Tensor, "layers heads n n"], Float[Tensor, "layers n"]]:
    """Return all attention matrices under a mask, and the norms of the tokens' hidden states.

    The norms are those after each layer except the last one.
    """
    hidden = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    before = model.model.config._attn_implementation
    # this implementation returns its attention matrices
    model.model.set_attn_implementation("eager")
    try:
        out = model.model(
            tokens[None],
            attention_mask=hidden[None, None],
            use_cache=False,
            output_attentions=True,
            output_hidden_states=True,
            logits_to_keep=1,
        )
    finally:
        model.model.set_attn_implementation(before)
    states = torch.stack([each[0].float() for each in out.hidden_states[1:-1]])
    return torch.stack([each[0].float() for each in out.attentions]), states.norm(dim=-1)


def masked_row(text: str, change: str) -> dict[str, float]:
    """Measure the attention that the first token and token 40 receive under a changed mask.

    The model is the embedded one, and the change is one of `CHANGES`.

    Returns:
        first, other: the mean attention from the tokens after 40, over layers 13 to 30 and their
            heads, on the first token and on token 40
        heads_first, heads_other: the fraction of these heads in which this attention is above
            `HEAD_SCORE_THRESHOLD`
        norm_first, norm_other: the norm of the token's state after layer 12, divided by the median
            of all tokens
    """
    model = models.default()
    tokens = measures.texts(model, measures.LENGTH)[text]
    maps, norms = passes(model, tokens, changed_mask(len(tokens), change))
    received = maps[measures.GIANT :, :, TOKEN + 1 :].mean(2)
    size = norms[measures.GIANT - 1] / norms[measures.GIANT - 1].median()
    found = {}
    for name, place in (("first", 0), ("other", TOKEN)):
        scores = received[..., place]
        strong = attention.share_of_strong_heads(scores)
        found |= {
            name: round(float(scores.mean()), 4),
            f"heads_{name}": round(strong, 4),
            f"norm_{name}": round(float(size[place]), 2),
        }
    return found


# Measure the cost of a pattern --------------------------------------------------------------------


def sequences(shared: float, width: int, length: int, seed: int) -> Float[Tensor, "s n d"]:
    """Draw sequences of Gaussian tokens that share a common vector and begin with the same token.

    The mean squared coordinate is 1.

    Args:
        shared: the strength of the vector that all tokens except the first share. With 1, this
            vector is as long as the part in which the tokens differ.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    tokens, common, first = draw(COPIES, length, width), draw(width), draw(width)
    tokens = (tokens + shared * common) / math.sqrt(1 + shared**2)
    tokens[:, 0] = first
    return tokens


def cost(pattern: str, shared: float, width: int, length: int, seed: int) -> dict[str, float]:
    """Find out how small a query-key matrix M can be if its head has a given attention pattern.

    The logit is x_i M x_j / √d. In each row, one token should get the attention: the first token
    for a sink, or the token itself for a diagonal. For several values of a penalty, we minimise a
    sum of two terms, which is convex in M. The first term is the mean negative logarithm of this
    token's weight, over all rows except the first. The second term is the penalty times |M|². We
    report M for the penalty at which the mean weight is `WEIGHT`.

    Returns:
        norm: the Frobenius norm of M, or `None` if no penalty reaches the weight
        rank: |M|² divided by the largest squared singular value
        reached: the largest mean weight
    """
    require.choice("pattern", pattern, PATTERNS)
    x = sequences(shared, width, length, seed)
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    wanted = torch.zeros(length, dtype=torch.long) if pattern == "sink" else torch.arange(length)
    matrix = torch.zeros(width, width, dtype=torch.float64, requires_grad=True)

    def weights() -> Tensor:
        logits = torch.einsum("sid,de,sje->sij", x, matrix, x) / math.sqrt(width)
        return logits.masked_fill(~causal, -torch.inf).log_softmax(-1)[:, 1:]

    path = []
    for price in reversed(RATES):
        optimiser = torch.optim.LBFGS([matrix], max_iter=60, line_search_fn="strong_wolfe")

        def closure(price: float = price, optimiser: torch.optim.Optimizer = optimiser) -> Tensor:
            optimiser.zero_grad()
            target = wanted[1:].expand(COPIES, -1)
            loss = (
                F.nll_loss(weights().flatten(0, 1), target.flatten())
                + price * matrix.square().sum()
            )
            loss.backward()
            return loss

        optimiser.step(closure)
        with torch.no_grad():
            each = weights().exp().gather(2, wanted[1:].expand(COPIES, -1)[..., None])
            squares = torch.linalg.svdvals(matrix).square()
        path.append(
            (float(each.mean()), float(matrix.detach().norm()), float(squares.sum() / squares[0]))
        )
        if path[-1][0] > WEIGHT:
            break
    reached = path[-1][0]
    norm = rank = None
    if reached > WEIGHT:
        (low, small, _), (high, large, rank) = path[-2:]
        norm = small + (large - small) * (WEIGHT - low) / (high - low)
    if norm is not None:
        norm, rank = round(norm, 3), round(rank, 2)
    return {"norm": norm, "rank": rank, "reached": round(reached, 4)}
