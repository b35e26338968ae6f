"""Measure what the lesson of chapter 6 needs about differential attention.

The module simulates noise in two attention matrices, compares ways to measure it, and measures
gradients at initialisation.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from course.maths import normalizers
from course.runs.outliers import few_bits, outlier
from helpers import differential, probe
from helpers.models import LanguageModel

SPREAD = 1.5  # standard deviation of the noise in the logits
KINDS = ("Transformer", "DIFF", "DIFF, norm left out")


# Simulate two attention matrices and their noise --------------------------------------------------


def noisy_logits(
    signal: float,
    correlation: float,
    n: int,
    spread: float = SPREAD,
    draws: int = 100,
    seed: int = 0,
    other: float | None = None,
) -> tuple[Float[Tensor, "draws n"], Float[Tensor, "draws n"]]:
    """Draw logits for two attention matrices whose noise has the given correlation.

    Key 0 is the answer, and only the first matrix has the logit `signal` there.

    Args:
        spread: the standard deviation of the Gaussian noise in the first matrix.
        other: the standard deviation in the second matrix, or `None` for the same as in the first.
    """
    generator = torch.Generator().manual_seed(seed)
    other = spread if other is None else other
    first, own = torch.randn(2, draws, n, generator=generator, dtype=torch.float64)
    second = other * (correlation * first + math.sqrt(1 - correlation**2) * own)
    first = spread * first
    first[:, 0] = signal
    second[:, 0] = other * torch.randn(draws, generator=generator, dtype=torch.float64)
    return first, second


def parts(
    signal: float, correlation: float, n: int, lam: float, **settings: float
) -> dict[str, float]:
    """Return answer and noise in softmax(first) - lam softmax(second), averaged over the draws.

    Returns:
        "answer": the weight of the answer
        "noise": the sum of the absolute values of all other weights
        "signed": the sum of all other weights with their signs
        "share": the answer's fraction of the sum of all absolute weights
    """
    first, second = noisy_logits(signal, correlation, n, **settings)
    row = differential.difference(first, second, lam)
    answer, noise = float(row[:, 0].mean()), float(row[:, 1:].abs().sum(-1).mean())
    share = abs(answer) / (abs(answer) + noise)
    return {
        "answer": answer,
        "noise": noise,
        "signed": float(row[:, 1:].sum(-1).mean()),
        "share": share,
    }


def noise_left(cosine: float | Tensor, lam: float | Tensor, ratio: float = 1.0) -> Tensor:
    """Return |a - lam b| / |a|, the fraction of the noise that remains after the subtraction.

    For noise vectors a and b with |b| / |a| = ratio, this fraction is sqrt(1 + (lam ratio)^2 - 2
    lam ratio cosine) by the law of cosines. The subtraction lowers the noise only if the cosine is
    large enough.
    """
    cosine, lam = (
        torch.as_tensor(cosine, dtype=torch.float64),
        ratio * torch.as_tensor(lam, dtype=torch.float64),
    )
    return (1 + lam.square() - 2 * lam * cosine).clamp(min=0).sqrt()


class Left(NamedTuple):
    """Hold the comparison of two noise vectors.

    Attributes:
        cosine: the cosine of the two vectors.
        ratio: the size of the second vector divided by the size of the first.
        left: the fraction of the first vector that remains after the subtraction.
    """

    cosine: float
    ratio: float
    left: float


def simulated_left(
    correlation: float,
    spread: float,
    lam: float | None,
    n: int = 4096,
    draws: int = 20,
    other: float | None = None,
) -> Left:
    """Simulate how much noise remains after subtracting one softmax row from another.

    The logits are Gaussian, and the results are means over the draws.

    Args:
        spread, other: the standard deviations of the logits of the first and the second row.
        lam: the factor of the second row, or `None` for the best factor.
    """
    first, second = noisy_logits(0.0, correlation, n, spread, draws, other=other)
    a, b = (x[:, 1:].softmax(-1) for x in (first, second))
    best = (
        (a * b).sum(-1) / b.square().sum(-1)
        if lam is None
        else torch.full((draws,), lam, dtype=torch.float64)
    )
    one, two, rest = (x.norm(dim=-1) for x in (a, b, a - best[:, None] * b))
    cosine = torch.cosine_similarity(a, b, dim=-1)
    return Left(float(cosine.mean()), float((two / one).mean()), float((rest / one).mean()))


# Measure gradients at initialisation --------------------------------------------------------------


def gradient(
    kind: str, n: int, seed: int, start: str = "default", correlation: float = 0.0
) -> float:
    """Return the norm of the gradient of W_Q in a new third layer of width 128.

    All `KINDS` start with the same weights, so their gradients can be compared.

    Args:
        start: the initialisation of the weights, one of `STARTS`.
        correlation: the correlation of the Gaussian tokens with one another.
    """
    torch.manual_seed(seed)
    model = differential.DifferentialAttention(128, 4, 3, norm=kind != KINDS[2])
    STARTS[start](model)
    x, direction = torch.randn(2, 2, n, 128)
    x = math.sqrt(1 - correlation) * x + math.sqrt(correlation) * torch.randn(2, 1, 128)
    if (
        kind == "Transformer"
    ):  # the same matrices as separate heads, each with its half of the values
        q1, k1, q2, k2, v = model.project(x)
        pairs = zip((q1, q2), (k1, k2), v.chunk(2, -1), strict=True)
        out = torch.cat(
            [scaled_dot_product_attention(q, k, half, is_causal=True) for q, k, half in pairs], -1
        )
        out = model.out(out.transpose(1, 2).flatten(2))
    else:
        out = model(x)
    (out * direction).sum().backward()
    return model.queries.weight.grad.norm().item()


def _draw(model: torch.nn.Module, draw: Callable[[Tensor], Tensor]) -> None:
    for layer in (model.queries, model.keys, model.values, model.out):
        draw(layer.weight)


STARTS = {
    "default": lambda model: None,
    "Xavier": partial(_draw, draw=torch.nn.init.xavier_uniform_),
    "deviation 0.02": partial(_draw, draw=partial(torch.nn.init.normal_, std=0.02)),
}


@cache
def gradient_setups(lengths: tuple[int, ...] = (32, 128, 512)) -> pd.DataFrame:
    """Measure the factor by which head norm and scale change the gradient of W_Q.

    There is one row per initialisation, correlation of the tokens, and length. The factor is the
    geometric mean over three seeds of the ratio to the Transformer's gradient.
    """
    rows = []
    for start, correlation, n in itertools.product(STARTS, (0.0, 0.5), lengths):
        norms = [
            [gradient(kind, n, seed, start, correlation) for seed in range(3)] for kind in KINDS[:2]
        ]
        ratio = torch.tensor(norms, dtype=torch.float64).log().diff(dim=0).mean().exp()
        rows.append(
            {"start": start, "tokens alike": correlation, "n": n, "norm and scale": float(ratio)}
        )
    return pd.DataFrame(rows)


def as_two_heads() -> float:
    """Return how much a layer without head norm differs from a layer of twice as many plain heads.

    The plain heads share their values and have the output matrices W_O and -lambda W_O. If the
    distance is 0 up to rounding, the two layers compute the same.
    """
    torch.manual_seed(0)
    model = differential.DifferentialAttention(16, 2, 2, norm=False).double()
    x = torch.randn(2, 12, 16, dtype=torch.float64)
    q1, k1, q2, k2, v = model.project(x)
    plain = torch.cat(
        [scaled_dot_product_attention(q, k, v, is_causal=True) for q, k in ((q1, k1), (q2, k2))], 1
    )
    lam = model.lam(x)[0, 0, 0]
    matrix = torch.cat([model.out.weight, -lam * model.out.weight], 1)
    out = plain.transpose(1, 2).flatten(2) @ matrix.T
    return float((out - model(x)).abs().max().detach())


def reach(lam: float, tries: int = 400) -> float:
    """Return how close the output of one head can come to the direction v_0 - v_1, from 0 to 1.

    The values v_0, v_1 and v_2 are orthogonal, and the output may be scaled. The result is the
    largest cosine between the output and v_0 - v_1, over random attention rows and the corners of
    the simplex. With lambda 0, the head is plain softmax.
    """
    maps = torch.randn(tries, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    corners = torch.eye(3, dtype=torch.float64)
    first = torch.cat([(3 * maps[:, 0]).softmax(-1), corners.repeat_interleave(3, 0)])
    second = torch.cat([(3 * maps[:, 1]).softmax(-1), corners.repeat(3, 1)])
    wanted = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    rows = first - lam * second
    return float(torch.cosine_similarity(rows[rows.norm(dim=-1) > 1e-9], wanted, dim=-1).max())


# Compute the panel of normalizers -----------------------------------------------------------------


def _difference(logits: Tensor) -> Tensor:
    """Return softmax weights minus 0.8 times a second row with almost the same noise.

    The second row does not contain the answer.
    """
    generator = torch.Generator().manual_seed(5)
    other = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
    second = 0.9 * logits.where(logits < 4, 0) + math.sqrt(1 - 0.9**2) * other
    return differential.difference(logits, second, 0.8)


def _sink(logits: Tensor) -> Tensor:
    """Add one more key, with a large logit and a value of zero, as a sink."""
    return torch.nn.functional.pad(logits, (1, 0), value=4.0).softmax(-1)[1:]


def _forgetting(logits: Tensor) -> Tensor:
    return (logits + normalizers.forgetting_bias(torch.full_like(logits, 0.9))[-1]).softmax(-1)


def _window(logits: Tensor) -> Tensor:
    hidden = torch.arange(len(logits)) < len(logits) - 8
    return logits.masked_fill(hidden, -math.inf).softmax(-1)


# normalizers that do or do not have to sum to 1, from the last token's logits to its weights
MAPS = {
    "sum to 1": {
        "softmax": lambda x: x.softmax(-1),
        "scalable softmax": normalizers.scalable_softmax,
        "entmax 1.5": normalizers.entmax15,
        "sparsemax": normalizers.sparsemax,
        "forgetting, 0.9": _forgetting,
        "window of 8": _window,
    },
    "need not sum to 1": {
        "off by one": normalizers.softmax_off_by_one,
        "sink, logit 4": _sink,
        "gate 0.5": lambda x: 0.5 * x.softmax(-1),
        "softpick": normalizers.softpick,
        "sigmoid − ln n": normalizers.sigmoid_weights,
        "differential, 0.8": _difference,
    },
}
CONTENTS = ("one answer", "two answers", "nothing found", "all equal")
LOUD = 5.0  # the logit of an answer


def panel_logits(content: str, n: int) -> tuple[Float[Tensor, " n"], list[int]]:
    """Return the last token's logits and the positions of the answers.

    The noise has standard deviation 1. Its mean is 0, or -4 if there is no answer to be found.
    """
    logits = torch.randn(n, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    places = {"one answer": [n // 3], "two answers": [n // 3, n - 3]}.get(content, [])
    logits[places] = LOUD
    if content == "nothing found":
        logits = logits.clamp(max=2) - 4
    return (torch.zeros_like(logits) if content == "all equal" else logits), places


# Test a language model ----------------------------------------------------------------------------


@torch.inference_mode()
def loss_in_few_bits(
    model: LanguageModel, ids: Int[Tensor, " n"], bits: tuple[int, ...] = (8, 4)
) -> dict:
    """Measure outliers in a model's hidden states, and the loss with activations in few bits.

    All inputs of linear layers are rounded by `outliers.few_bits`, except the unembedding. Large
    outliers matter here because they make the steps of the rounding coarse.

    Returns:
        "states": for the embedding and each layer, the largest entry of the hidden states divided
            by the median
        "states_without_first": the same without the first token
        "plain": the loss in nats without rounding
        "losses": the loss in nats for each number of bits, as in "8". In "8, first token exact",
            the first token is left exact, and the scale is set by the other tokens.
    """
    from transformers.pytorch_utils import Conv1D

    out = model.model(
        ids[None].to(model.model.device),
        use_cache=False,
        output_hidden_states=True,
        logits_to_keep=1,
    )
    kinds = (torch.nn.Linear, Conv1D)
    linear = [each for each in model.model.base_model.modules() if isinstance(each, kinds)]
    losses = {}
    for count in bits:
        for name, spare in ((str(count), False), (f"{count}, first token exact", True)):
            with few_bits(linear, count, spare):
                losses[name] = probe.loss(model, ids)
    return {
        "states": [outlier(states[0]) for states in out.hidden_states],
        "states_without_first": [outlier(states[0, 1:]) for states in out.hidden_states],
        "plain": probe.loss(model, ids),
        "losses": losses,
    }
