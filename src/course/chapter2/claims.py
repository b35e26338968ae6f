"""What the claims of chapter 2's sources measure: each function returns the numbers that its row of the table names."""

import math
from collections.abc import Callable, Iterable
from functools import cache

import pandas as pd
import torch
from torch import Tensor

from course import significance
from course.chapter2 import measures
from course.claims import Numbers, called
from helpers import attention, models
from helpers.attention import causal_mask, influence, uniform, window_mask
from helpers.models import LanguageModel
from helpers.style import number  # noqa: F401  the words of the table call it

FOREVER = 400  # layers that stand for the limit


def _random(mask: Tensor, layers: int = 1, seed: int = 0) -> Tensor:
    """Random attention with logits of standard deviation 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(layers, *mask.shape, generator=generator, dtype=torch.float64)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


# The graph ------------------------------------------------------------------------------------------


def causal_attention_is_no_bottleneck() -> Numbers:
    fitted = measures.measured_share()
    table = measures.compare_connections(layers=measures.LAYERS_READ, kept=fitted)
    return {
        "fitted": fitted,
        "causal": table.loc["causal attention"],
        "tree": table.loc["tree"],
        "others": table.drop("causal attention")["resistance"].min(),
        "behind": {kept: measures.falls_behind(kept) for kept in (0.5, 0.8, fitted, 0.95)},
    }


def two_kinds_of_squashing() -> Numbers:
    rows = []
    for kept in (0.5, 0.8, measures.measured_share()):
        found = measures.worst_heard([round(x / (1 - kept)) for x in (4, 8, 32)], kept)
        rows.append((kept, found["tree"], found["causal attention"]))
    return {"rows": rows}


@cache
def shares_of_the_bound() -> Numbers:
    """For each random decoder, the largest share of the bound that a token's Jacobian takes."""

    def shares(column: str, scaled: bool = False) -> list[float]:
        tables = [measures.bound_and_truth(s, seed, scaled) for s in (0.0, 1.0, 4.0, 16.0) for seed in range(5)]
        return [float((table[column] / table["bound"]).max()) for table in tables]

    return {
        "plain": shares("attention fixed"),
        "scaled": shares("attention fixed", scaled=True),
        "true": shares("true"),
    }


def printed_constant_bounds() -> Numbers:
    """With the identity for a perceptron, norms and slope 1, the theorem's decoder is v' = 2 (A v + v)."""
    matrix = uniform(causal_mask(5))
    jacobian = torch.linalg.matrix_power(2 * (matrix + torch.eye(5)), 3)[-1]
    printed, proved = measures.printed_path_sum(torch.stack([matrix] * 3)), attention.influence_bound([matrix] * 3)[-1]
    what = "Jacobian of the last token by itself, printed bound against true"
    return {
        "over": (jacobian / printed).tolist(),
        "proved": float((jacobian / proved).max()),
        "numbers": {what: (float(printed[-1]), float(jacobian[-1]))},
    }


def _profiles(network: str, model: LanguageModel | None = None, texts: Iterable[str] = measures.NAMES) -> list[Tensor]:
    table = measures.profiles(model or models.default())
    return [measures.profile_of(table, text, network) for text in texts]


def early_tokens_have_more_influence(model: LanguageModel | None = None) -> Numbers:
    row, position = influence([uniform(causal_mask(48))] * 6)[-1], torch.arange(measures.TOKENS).double()

    def orders(network: str) -> list[float]:
        return [significance.rank_correlation(position, row)[0] for row in _profiles(network, model)]

    return {"falls": bool((row[1:] < row[:-1]).all()), "before": orders("seed 0"), "after": orders("trained")}


def primacy_is_topology_recency_is_learned(model: LanguageModel | None = None) -> Numbers:
    rows = {"random weights": _profiles("seed 0", model), "trained": _profiles("trained", model)}
    return {
        "first": {name: [float(row[0] / row.sum()) for row in each] for name, each in rows.items()},
        "late": {name: [float(row[32:-1].sum() / row.sum()) for row in each] for name, each in rows.items()},
        "least": [int(row[:-1].argmin()) + 1 for row in rows["random weights"]],
    }


def _u(profiles: list[Tensor]) -> Numbers:
    """How many times the least of the tokens between them the lesser end has, and which token has the least."""
    return {
        "lead": [float(min(row[0], row[-1]) / row[1:-1].min()) for row in profiles],
        "least": [int(row[1:-1].argmin()) + 2 for row in profiles],
    }


def untrained_network_has_a_u() -> Numbers:
    return _u([*_profiles("seed 0"), *(row for k in (1, 2) for row in _profiles(f"seed {k}", texts=["harbour"]))])


def valley_survives_training(model: LanguageModel | None = None) -> Numbers:
    """A U, both ends twice the least, and its valley beside the last token: which of the two does training leave?"""
    return _u(_profiles("trained", model)) | {"before": _u(_profiles("seed 0", model))["least"]}


def rollout_is_no_jacobian(model: LanguageModel | None = None) -> Numbers:
    """In how many texts rollout is at or below the mask, by the share that a token keeps."""
    rows = []
    for kept in measures.KEPT:
        table = measures.proxies(model or models.default(), kept)
        rollout, mask = table.loc["rollout"], table.loc["mask alone"]
        rows.append((kept, rollout.mean(), mask.mean(), int((rollout <= mask).sum())))
    return {"rows": rows, "texts": len(rollout), "norm_based": table.loc["norm-based rollout"].mean()}


# In the limit -----------------------------------------------------------------------------------------


def largest_eigenvalue_is_one() -> Numbers:
    masks = causal_mask(12), window_mask(12, 2)
    values = [_random(masks[seed % 2], seed=seed)[0].diagonal().topk(2).values.tolist() for seed in range(50)]
    return {"largest": [first for first, _ in values], "second": [second for _, second in values]}


def products_stay_stochastic() -> Numbers:
    products = torch.stack([influence(_random(causal_mask(12), 8, seed), 0.25) for seed in range(50)])
    return {"sums": float((products.sum(-1) - 1).abs().max()), "above": float(products.triu(1).abs().max())}


def bound_tends_to_the_first_token() -> Numbers:
    maps = [_random(mask, seed=seed)[0] for seed in range(10) for mask in (causal_mask(12), window_mask(12, 2))]
    return {"first": min(float(influence([matrix] * 5 * FOREVER, 0.5)[:, 0].min()) for matrix in maps)}


def product_is_diagonalizable() -> Numbers:
    matrix = uniform(window_mask(5, 2))
    rank = int(torch.linalg.matrix_rank(matrix - 0.5 * torch.eye(5, dtype=torch.float64)))
    return {"eigenvectors": 5 - rank, "times": int((matrix.diagonal() == 0.5).sum())}


def _limit(maps: Iterable[Tensor], mask: Tensor, rate: Callable[[Tensor, float], Tensor], prefix: int = 1) -> Numbers:
    """Where layers of one map end, over several maps, and how fast.

    "together" and "each": the least that the first `prefix` tokens have of a state after `FOREVER` layers, and one of them;
    "slower": the largest share of a later token in the last state over what the claimed rate allows, from layer 60 to 120.
    """
    later, layers = torch.arange(prefix, len(mask), dtype=torch.float64), torch.arange(1, 121)[:, None]
    first, slower = [], []
    for matrix in maps:
        first.append(influence([matrix] * FOREVER)[:, :prefix])
        shares = torch.stack([torch.linalg.matrix_power(matrix, int(t))[-1, prefix:] for t in layers])
        allowed = shares / (rate(later, float(matrix[mask].min())) ** layers).clamp(min=1e-300)
        told = shares[60:] > 1e-250
        slower.append(float((allowed[60:] / (allowed[59] * (1 + 1e-9)))[told].max()))
    first = torch.stack(first)
    return {"together": float(first.sum(-1).min()), "each": float(first.min()), "slower": max(slower)}


def causal_mask_ends_at_the_first_token() -> Numbers:
    mask = causal_mask(12)
    return _limit([_random(mask, seed=seed)[0] for seed in range(10)], mask, lambda j, least: 1 - j * least)


def window_has_the_same_limit() -> Numbers:
    width, n = 3, 12
    mask, reach = window_mask(n, width), math.ceil((n - 1) / (width - 1))

    def rate(j: Tensor, least: float) -> Tensor:
        return (1 - j * least**reach) ** (1 / (2 * reach))

    def half(mask: Tensor) -> int:
        return next(k for k in range(1, 999) if float(influence([uniform(mask)] * k)[-1, 0]) > 0.5)

    limit = _limit([_random(mask, seed=seed)[0] for seed in range(10)], mask, rate)
    return limit | {"windowed": half(window_mask(32, 4)), "causal": half(causal_mask(32))}


def prefix_takes_all() -> Numbers:
    mask = attention.prefix_mask(12, 4)
    return _limit(_random(mask, 10), mask, lambda j, least: 1 - (j - 3) * least, prefix=4)


def decay_mask_decays() -> Numbers:
    """A row's sum is between e^-1 and e / (1 - e^-c), where logits are within 1 of 0."""
    position, mask, rate = torch.arange(64.0, dtype=torch.float64), causal_mask(64), 0.3
    distance = (position[:, None] - position).clamp(min=0)
    logits = torch.rand(10, 64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    maps = (logits - rate * distance).masked_fill(~mask, -math.inf).softmax(-1)
    constants = (maps * (rate * distance).exp())[:, mask]
    return {"rate": rate, "low": float(constants.min()), "high": float(constants.max())}


def critical_distance_of_decay() -> Numbers:
    numbers = {}
    for layers, rate in ((12, 0.1), (12, 0.5), (12, 1.0), (32, 1.0)):
        row = influence([attention.decay(400, rate)] * (layers + 1))[-1].flip(0)
        formula = attention.critical_distance(layers, rate)
        numbers[f"t = {layers}, c = {rate:g}"] = (formula, float(row[:399].argmax()))
    return {"numbers": numbers}


def slow_rotation_decays() -> Numbers:
    """What is bounded above and below, log(p(0) / p(x)) / x²θ², is Gaussian-like; "back" is outside the theorem."""
    distance = torch.arange(64, dtype=torch.float64)
    slow, fast = ((4 * torch.cos(theta * distance)).softmax(0) for theta in (math.pi / 64, 1.0))
    back = int(fast[1:].argmax()) + 1
    return {
        "falls": bool((slow[1:] < slow[:-1]).all()),
        "rates": ((slow[0] / slow[1:]).log() / (distance[1:] * math.pi / 64) ** 2).tolist(),
        "back": back,
        "again": float(fast[back] / fast[0]),
    }


def residual_gives_a_u() -> Numbers:
    """The first, the middle and the last token's share, with a residual and plain."""
    residual, plain = (influence([uniform(causal_mask(32))] * 8, kept)[-1, [0, 16, -1]] for kept in (0.8, 0.0))
    return {"residual": residual.tolist(), "plain": plain.tolist()}


# Sinks ---------------------------------------------------------------------------------------------


@cache
def _sinks(model: LanguageModel | None) -> pd.DataFrame:
    return measures.sink_table(model or models.default()).set_index(["text", "first token"])


def first_token_is_a_sink(model: LanguageModel | None = None) -> Numbers:
    table = _sinks(model).loc["natural"]
    share = float(table["sink heads"]["yes"])
    return {
        "share": share,
        "without": table["sink heads"]["no"],
        "mean": table["mean sink score"]["yes"],
        "numbers": {f"sink heads on text, Llama2-7B against {called(model)} (%)": (92.47, round(100 * share, 1))},
    }


def repeated_tokens_have_no_sink(model: LanguageModel | None = None) -> Numbers:
    heads = _sinks(model).loc["repeated"]["sink heads"]
    what = f"sink heads, repeated tokens, Llama2-7B against {called(model)} (%)"
    without = float(heads["no"])
    return {"without": without, "with_first": heads["yes"], "numbers": {what: (0.0, round(100 * without, 1))}}


def hiding(model: LanguageModel | None = None) -> dict[str, pd.DataFrame]:
    """What hiding a token does to each text: none, the first one from the start or late, another one late."""
    table = measures.hiding_table(model or models.default())
    cases = {"plain": (0, 1), "early": (1, 1), "late": (1, measures.LATE), "control": (measures.CONTROL, measures.LATE)}
    return {name: measures.hidden_from(table, *which) for name, which in cases.items()}


def sink_values_are_small(model: LanguageModel | None = None) -> Numbers:
    read = model or models.default()
    texts = measures.texts(read, measures.TOKENS).values()
    ratios = torch.stack([measures.value_ratios(read, tokens) for tokens in texts])
    return {"middle": float(ratios.median()), "small": float((ratios < 0.5).double().mean())}


def sinks_slow_mixing(model: LanguageModel | None = None) -> Numbers:
    """How many times as far a change spreads with a token hidden, by text; for the embedded model also with parts changed."""
    found, kept = hiding(model), measures.measured_share()
    spread = {name: (each["spread"] / found["plain"]["spread"]).tolist() for name, each in found.items()}
    toy = [float(influence([attention.sink(32, p)] * measures.LAYERS_READ, kept)[-1, 4]) for p in (0, 0.8)]
    parts = {"mass": [], "value": [], "heads": []}
    if model is not None:
        return spread | parts | {"toy": toy}
    table = measures.brake_table()
    loss = table["loss"].groupby("change").mean()
    return spread | {name: table.loc[name]["spread"].tolist() for name in parts} | {"toy": toy, "loss": loss}


def hiding_the_sink_breaks_the_model(model: LanguageModel | None = None) -> Numbers:
    """How many nats hiding a token costs, by text."""
    found = hiding(model)
    loss = {name: each["loss"] - found["plain"]["loss"] for name, each in found.items()}
    what = f"perplexity ratio, Llama-2-13B against {called(model)}"
    return loss | {"numbers": {what: (5158.07 / 5.40, round(math.exp(loss["late"].mean()), 1))}}
