"""Measure the claims of chapter 2's sources.

There is one function for each row of the table of claims.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from functools import cache

import pandas as pd
import torch
from torch import Tensor

from course.chapter2 import measures
from course.evidence import significance
from course.evidence.claims import called
from course.evidence.rules import Numbers, Threshold, more_than_a_coin, rule
from course.maths import bounds, constructions
from helpers import attention, data, models
from helpers.attention import causal_mask, influence, uniform
from helpers.models import LanguageModel
from helpers.style import number  # noqa: F401  the words of the table call it

FOREVER = 400  # this number of layers stands for the limit
EVEN = Threshold(1)  # a ratio that means no difference
ALL = Threshold(1 - 1e-6)  # the fraction of a state that counts as all of it


def _random(mask: Tensor, layers: int = 1, seed: int = 0) -> Tensor:
    """Draw random attention whose logits have standard deviation 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(layers, *mask.shape, generator=generator, dtype=torch.float64)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


# Test the attention graph -------------------------------------------------------------------------


# the fraction of an equal weight from which the page says that tokens have an influence
FELT = Threshold(0.1)


@rule(
    holds=(
        (
            "each token is one hop away, and in an average with the fractions that the layers "
            "keep, the least influential token has more weight than the tree's least influential "
            "node"
        ),
        lambda hops, causal, tree: hops == 1 and causal > Threshold(tree),
    ),
    part=(
        (
            "in an average the least influential token does not have more weight, but in the "
            "Jacobian of the same untrained network each token has over "
            f"{FELT:g} of an equal share of the influence"
        ),
        lambda hops, felt: hops == 1 and min(felt) > FELT,
    ),
    nothing=(
        "layers that keep one half, read in squares",
        lambda half: {"causal": half, "felt": [half * measures.TOKENS]},
    ),
)
def causal_attention_is_no_bottleneck() -> Numbers:
    """Measure the influence of the weakest of 31 nodes, in causal attention and in a tree.

    Each layer keeps the fraction of a hidden state that we measured for it. We compute the
    influence in two ways, as the weight in an average and with squares (see `measures.averaged`).
    """
    shares, ways = measures.kept_shares(), measures.connections(31)

    def worst(name: str, kept: Iterable[float], squared: bool = False) -> float:
        matrix, read = ways[name]
        return float(measures.averaged(matrix, kept, squared)[read].min())

    table = measures.compare_connections(layers=measures.LAYERS_READ, kept=measures.mean_share())
    return {
        "hops": table.loc["causal attention"]["hops"],
        "mean": measures.mean_share(),
        "away": float((1 - shares).sum()),
        "fitted": measures.fitted_share(),
        "causal": worst("causal attention", shares),
        "tree": worst("tree", shares),
        "squares": worst("causal attention", shares, True),
        "tree_squares": worst("tree", shares, True),
        "half": worst("causal attention", [0.5] * len(shares), True),
        "felt": [float(row.min() / row.mean()) for row in _profiles("seed 0")],
        "behind": {kept: measures.falls_behind(kept) for kept in (0.5, 0.8, 0.95)},
    }


def _apart(row: tuple) -> bool:
    tree, causal = (
        [after / before for before, after in itertools.pairwise(shares)] for shares in row[1:]
    )
    return min(tree) > EVEN and max(causal) < EVEN


@rule(
    holds=(
        (
            "with more layers the smallest weight of a node rises in the tree and falls in causal "
            "attention, for every fraction that a layer keeps"
        ),
        lambda rows: all(map(_apart, rows)),
    ),
    part=(
        "this is so for one of the fractions that a layer keeps",
        lambda rows: any(map(_apart, rows)),
    ),
    nothing=(
        "the causal shares for both",
        lambda rows: {"rows": [(kept, causal, causal) for kept, _, causal in rows]},
    ),
)
def two_kinds_of_squashing() -> Numbers:
    """Measure how the weakest influence in a tree and in causal attention changes with more layers.

    Each layer keeps a fraction of a hidden state. We try three values of this fraction.
    """
    rows = []
    for kept in (0.5, measures.mean_share(), 0.95):
        found = measures.worst_heard([round(x / (1 - kept)) for x in (4, 8, 32)], kept)
        rows.append((kept, found["tree"], found["causal attention"]))
    return {"rows": rows}


@rule(
    "bound_with_attention_fixed",
    holds=("no Jacobian exceeds the bound", lambda plain, scaled: max(plain + scaled) <= EVEN),
    nothing=("Jacobian and bound exchanged", lambda plain: {"plain": [1 / x for x in plain]}),
    null=(
        "the rule treats both kinds of decoders in the same way, so it gives the same "
        "verdict if we swap them"
    ),
)
@rule(
    "true_jacobian_exceeds_the_bound",
    holds=("the Jacobian of one decoder exceeds the path sum", lambda true: max(true) > EVEN),
    nothing=("attention held fixed", lambda plain: {"true": plain}),
)
@cache
def shares_of_the_bound() -> Numbers:
    """Measure how close the Jacobians of random decoders come to the bound of Theorem B.5.

    Returns:
        For each kind of decoder, one number per decoder, which is the largest ratio of the Jacobian
            to the bound.
    """

    def shares(column: str, scaled: bool = False) -> list[float]:
        tables = [
            measures.bound_and_truth(s, seed, scaled)
            for s in (0.0, 1.0, 4.0, 16.0)
            for seed in range(5)
        ]
        return [float((table[column] / table["bound"]).max()) for table in tables]

    return {
        "plain": shares("attention fixed"),
        "scaled": shares("attention fixed", scaled=True),
        "true": shares("true"),
    }


@rule(
    holds=("no token's Jacobian exceeds the printed bound", lambda over: max(over) <= EVEN),
    nothing=("Jacobian and bound exchanged", lambda over: {"over": [1 / x for x in over]}),
    null=(
        "a bound that some tokens exceed and others do not is also exceeded if we swap the "
        "Jacobian and the bound"
    ),
)
def printed_constant_bounds() -> Numbers:
    """Compare an exact Jacobian with the bound that the paper prints and the bound that it proves.

    The MLP is the identity, and all norms and slopes are 1. In this case the theorem's decoder is
    v' = 2 (A v + v), and its Jacobian has a closed form.
    """
    matrix = uniform(causal_mask(5))
    jacobian = torch.linalg.matrix_power(2 * (matrix + torch.eye(5)), 3)[-1]
    printed, proved = (
        measures.printed_path_sum(torch.stack([matrix] * 3)),
        bounds.influence_bound([matrix] * 3)[-1],
    )
    what = "Jacobian of the last token by itself, printed bound against true"
    return {
        "over": (jacobian / printed).tolist(),
        "proved": float((jacobian / proved).max()),
        "numbers": {what: (float(printed[-1]), float(jacobian[-1]))},
    }


SCALES = {
    "random weights as published": "own",
    "random weights of scale 0.02": "0.02",
    "random weights and unit embeddings": "unit",
}  # by their names in this chapter


def _at_scales(model: LanguageModel | None = None) -> dict[str, list[Tensor]]:
    """Return the sensitivities to each token in networks with random weights, keyed by scale.

    There are three scales of the weights for the embedded model, and one for another model.
    """
    embedded = model is None or model.name == models.DEFAULT
    names = SCALES if embedded else {"random weights": "own"}
    return {name: _profiles(measures.network_name(scale), model) for name, scale in names.items()}


def _profiles(
    network: str, model: LanguageModel | None = None, texts: Iterable[str] = measures.NAMES
) -> list[Tensor]:
    table = measures.profiles(model or models.default())
    return [measures.profile_of(table, text, network) for text in texts]


FALLS = Threshold(-0.5)  # a threshold for the rank correlation with the position
THREE = Threshold(3)  # the smallest number of texts for a verdict


@rule(
    holds=(
        (
            "the path sum falls with the position, and so do the sensitivities of the trained "
            f"network (rank correlation below {FALLS:g} in each text)"
        ),
        lambda falls, after: falls and max(after) < FALLS,
    ),
    part=(
        (
            "the sensitivities fall with random weights (rank correlation below "
            f"{FALLS:g} in each text, at every scale of the weights), but not in the trained "
            "network"
        ),
        lambda falls, before: falls and max(map(max, before.values())) < FALLS,
    ),
    enough=(f"at least {THREE:g} texts were measured", lambda after: len(after) >= THREE),
    nothing=("no order", {"before": {"random weights": [0.0] * 7}, "after": [0.0] * 7}),
    null="random weights of a small scale, instead of trained weights, meet the rule",
)
def early_tokens_have_more_influence(model: LanguageModel | None = None) -> Numbers:
    """Measure the rank correlation between sensitivity and position in each text.

    Returns:
        `falls`: whether the path sum of the theorem falls with the position.
        `before`: the same correlations in networks with random weights, keyed by the scale of the
            weights.
        `after`: the correlations in the trained network.
    """
    row, position = (
        influence([uniform(causal_mask(48))] * 6)[-1],
        torch.arange(measures.TOKENS).double(),
    )

    def orders(rows: list[Tensor]) -> list[float]:
        return [significance.rank_correlation(position, row)[0] for row in rows]

    before = {name: orders(rows) for name, rows in _at_scales(model).items()}
    return {
        "falls": bool((row[1:] < row[:-1]).all()),
        "before": before,
        "after": orders(_profiles("trained", model)),
    }


PRIMACY = Threshold(3)  # as a multiple of an equal fraction
EQUAL = Threshold(1)  # an equal fraction


def _untrained(found: dict) -> list[float]:
    """Return the values for all scales of random weights in one list."""
    return [x for name, values in found.items() if name != "trained" for x in values]


def _recency(middle: dict, late: dict) -> bool:
    """Return whether the model has learned to be sensitive to the last tokens.

    Two conditions must be met. With random weights of every scale, the sensitivity to the last
    tokens is below the mean over all tokens. After training, it is above this mean, and also above
    the sensitivity to the middle tokens.
    """
    return (
        max(_untrained(late)) < EQUAL
        and min(late["trained"]) > EQUAL
        and all(x > Threshold(m) for x, m in zip(late["trained"], middle["trained"], strict=True))
    )


@rule(
    holds=(
        (
            f"with random weights of every scale the first token has more than {PRIMACY:g} times "
            f"an equal share of the sensitivity and tokens 41 to 47 less than {EQUAL:g} times, and "
            f"training lifts tokens 41 to 47 above {EQUAL:g} and above tokens 9 to 32, in each text"
        ),
        lambda first, middle, late: min(_untrained(first)) > PRIMACY and _recency(middle, late),
    ),
    part=(
        (
            "the lead of the last tokens is learned, but the lead of the first token before "
            "training depends on the scale of the weights"
        ),
        lambda middle, late: _recency(middle, late),
    ),
    enough=(
        f"at least {THREE:g} texts were measured",
        lambda first: len(first["trained"]) >= THREE,
    ),
    nothing=(
        "equal shares",
        {
            name: {"random weights": [1.0] * 7, "trained": [1.0] * 7}
            for name in ("first", "middle", "late")
        },
    ),
)
def primacy_is_topology_recency_is_learned(model: LanguageModel | None = None) -> Numbers:
    """Measure the sensitivity to the first, middle and last tokens, relative to the mean.

    The four ranges are token 1, tokens 9 to 32, tokens 33 to 40 and tokens 41 to 47. The mean is
    over all tokens.

    Returns:
        One value per text, for each of these ranges and each network.
    """
    rows = _at_scales(model) | {"trained": _profiles("trained", model)}
    places = {
        "first": slice(0, 1),
        "middle": slice(8, 32),
        "next": slice(32, 40),
        "late": slice(40, 47),
    }
    return {
        name: {
            network: [float(row[place].mean() / row.mean()) for row in each]
            for network, each in rows.items()
        }
        for name, place in places.items()
    }


def _u(profiles: list[Tensor]) -> Numbers:
    """Measure how strongly each row of sensitivities has the shape of a U.

    Returns:
        `lead`: for each row, the smaller end of the row divided by the smallest value between its
            ends.
        `least`: for each row, the token with this smallest value, counted from 1.
    """
    return {
        "lead": [float(min(row[0], row[-1]) / row[1:-1].min()) for row in profiles],
        "least": [int(row[1:-1].argmin()) + 2 for row in profiles],
    }


LEADS = Threshold(2)  # as a multiple of the smallest value
# from this token on, a valley counts as close to the last token
VALLEY = Threshold(40)


@rule(
    holds=(
        (
            f"at every scale of the weights the first and the last token have more than {LEADS:g} "
            "times the smallest sensitivity, and the smallest is that of token "
            f"{VALLEY:g} or later"
        ),
        lambda lead, least: min(lead) > LEADS and min(least) >= VALLEY,
    ),
    part=(
        (
            f"at every scale of the weights the first and the last token have more than {LEADS:g} "
            "times the smallest sensitivity, but the smallest is not always next to the last token"
        ),
        lambda lead: min(lead) > LEADS,
    ),
    enough=(
        f"at least {THREE:g} rows of sensitivities were measured",
        lambda lead: len(lead) >= THREE,
    ),
    nothing=("every token alike", {"lead": [1.0] * 9}),
    null=(
        "the rule treats the lead and the position of the smallest value in the same way, so "
        "it gives the same verdict if we swap them"
    ),
)
def untrained_network_has_a_u() -> Numbers:
    """Measure the U shape of the sensitivities at three scales of random weights, in seven texts.

    In one of these texts, we also measure networks with two other seeds.
    """
    seeds = [row for k in (1, 2) for row in _profiles(f"seed {k}", texts=["harbour"])]
    by_scale = _at_scales()
    found = {name: _u(rows) for name, rows in by_scale.items()}
    every = _u([*itertools.chain(*by_scale.values()), *seeds])
    return every | {"by_scale": found}


@rule(
    holds=(
        (
            "after training the first and the last token have more than "
            f"{LEADS:g} times the smallest sensitivity, and the smallest stays at token {VALLEY:g} "
            "or later"
        ),
        lambda lead, least: min(lead) > LEADS and min(least) >= VALLEY,
    ),
    enough=(f"at least {THREE:g} texts were measured", lambda lead: len(lead) >= THREE),
    part=(
        (
            f"the first and the last token have more than {LEADS:g} times the smallest "
            "sensitivity, but the smallest moves away from the last token"
        ),
        lambda lead: min(lead) > LEADS,
    ),
    nothing=("every token alike", {"lead": [1.0] * 7}),
    null=(
        "random weights, treated as if they were trained, keep their U shape, because no "
        "training has changed it"
    ),
)
def valley_survives_training(model: LanguageModel | None = None) -> Numbers:
    """Measure the U shape of the sensitivities and its lowest point, before and after training.

    The sensitivities have a U shape if both ends are at least twice the smallest value. The valley
    is the token with the smallest value.

    Returns:
        `lead`, `least`: the lead of the ends and the valley after training (see `_u`).
        `before`: the valley before training.
    """
    return _u(_profiles("trained", model)) | {"before": _u(_profiles("seed 0", model))["least"]}


@rule(
    holds=(
        (
            "rollout predicts no better than the mask in each text, for every fraction that a "
            "layer keeps"
        ),
        lambda rows, texts: min(below for *_, below in rows) >= Threshold(texts),
    ),
    part=(
        (
            "rollout predicts no better than the mask in more than half of the texts, for every "
            "fraction that a layer keeps"
        ),
        lambda rows, texts: 2 * min(below for *_, below in rows) > Threshold(texts),
    ),
    nothing=(
        "a rollout that beats the mask in half of the texts",
        lambda texts: {"rows": [(0.5, 0, 0, texts // 2)]},
    ),
    null=(
        "random weights meet the rule, because their sensitivities have the order of the "
        "mask, which rollout can only equal"
    ),
)
def rollout_is_no_jacobian(model: LanguageModel | None = None) -> Numbers:
    """Count the texts in which attention rollout predicts the Jacobian no better than the mask.

    The prediction of the mask is the rollout of uniform attention. If the model's own rollout is no
    better, its attention weights do not help to predict the Jacobian.

    Returns:
        `rows`: for each fraction of a state that a layer keeps, a tuple of this fraction, the mean
            rank correlation of rollout, the mean rank correlation of the mask, and the number of
            texts in which rollout is no better than the mask.
        `texts`: the number of all texts.
        `norm_based`: the mean rank correlation of the norm-based rollout.
    """
    rows = []
    for kept in measures.KEPT:
        table = measures.proxies(model or models.default(), kept)
        rollout, mask = table.loc["rollout"], table.loc["mask alone"]
        rows.append((kept, rollout.mean(), mask.mean(), int((rollout <= mask).sum())))
    return {
        "rows": rows,
        "texts": len(rollout),
        "norm_based": table.loc["norm-based rollout"].mean(),
    }


# Test the limit of many layers --------------------------------------------------------------------


def _limit(
    maps: Iterable[Tensor], mask: Tensor, rate: Callable[[Tensor, float], Tensor], prefix: int = 1
) -> Numbers:
    """Measure what happens to the tokens' weights after many layers with one attention matrix.

    Returns:
        Three numbers, each of which is the worst value among all matrices.
        `together`: the smallest weight that the first `prefix` tokens have together in a state
            after `FOREVER` layers.
        `each`: the smallest weight of a single one of these tokens in a state after `FOREVER`
            layers.
        `slower`: the largest factor by which one more layer (from layer 60 to layer 120) changes
            the ratio of a later token's weight in the last state to the claimed rate. If this
            factor is at most 1, no weight decays more slowly than claimed.
    """
    later, layers = (
        torch.arange(prefix, len(mask), dtype=torch.float64),
        torch.arange(1, 121)[:, None],
    )
    first, slower = [], []
    for matrix in maps:
        first.append(influence([matrix] * FOREVER)[:, :prefix])
        shares = torch.stack(
            [torch.linalg.matrix_power(matrix, int(t))[-1, prefix:] for t in layers]
        )
        allowed = shares / (rate(later, float(matrix[mask].min())) ** layers).clamp(min=1e-300)
        told = shares[60:] > 1e-250
        slower.append(float((allowed[60:] / (allowed[59] * (1 + 1e-9)))[told].max()))
    first = torch.stack(first)
    return {
        "together": float(first.sum(-1).min()),
        "each": float(first.min()),
        "slower": max(slower),
    }


@rule(
    holds=(
        (
            "the first token ends up with all the weight up to 1e-6, and no other weight decays "
            "more slowly than the rate allows"
        ),
        lambda together, slower: together > ALL and slower <= EVEN,
    ),
    part=(
        "the first token ends up with all the weight up to 1e-6",
        lambda together: together > ALL,
    ),
    nothing=("an equal share of twelve", {"together": 1 / 12}),
)
def causal_mask_ends_at_the_first_token() -> Numbers:
    """Measure whether many layers of random causal attention keep only the first token's weight."""
    mask = causal_mask(12)
    return _limit(
        [_random(mask, seed=seed)[0] for seed in range(10)], mask, lambda j, least: 1 - j * least
    )


# Test sinks ---------------------------------------------------------------------------------------


@cache
def _sinks(model: LanguageModel | None) -> pd.DataFrame:
    return measures.sink_table(model or models.default()).set_index(["text", "first token"])


MOST, SOME = Threshold(0.5), Threshold(0.2)  # fractions of all heads


@rule(
    holds=(
        (
            f"over {MOST:.0%} of the heads give the first token more than "
            f"{attention.HEAD_SCORE_THRESHOLD:g} of their attention"
        ),
        lambda share: share > MOST,
    ),
    part=(f"over {SOME:.0%} of the heads give it so much", lambda share: share > SOME),
    nothing=("uniform attention: no head", {"share": 0.0}),
)
def first_token_is_a_sink(model: LanguageModel | None = None) -> Numbers:
    """Measure the fraction of heads with an attention sink at the first token of natural text.

    The result also has the fraction in texts without the model's opening token, and the number that
    the paper reports.
    """
    table = _sinks(model).loc["natural"]
    share = float(table["sink heads"]["yes"])
    return {
        "share": share,
        "without": table["sink heads"]["no"],
        "mean": table["mean sink score"]["yes"],
        "numbers": {
            f"sink heads on text, Llama2-7B against {called(model)} (%)": (
                92.47,
                round(100 * share, 1),
            )
        },
    }


NEARLY_NONE = Threshold(0.05)  # a fraction of all heads


@rule(
    holds=(
        f"fewer than {NEARLY_NONE:.0%} of the heads have a sink",
        lambda without: without < NEARLY_NONE,
    ),
    nothing=("uniform attention: no head", {"without": 0.0}),
    null=(
        "the claim is that there is no sink, and the sinks on text show that the score can "
        "find them"
    ),
)
def repeated_tokens_have_no_sink(model: LanguageModel | None = None) -> Numbers:
    """Measure the fraction of heads with a sink if all tokens of the text are equal.

    The fraction is measured with and without a first token that differs from the others.
    """
    heads = _sinks(model).loc["repeated"]["sink heads"]
    what = f"sink heads, repeated tokens, Llama2-7B against {called(model)} (%)"
    without = float(heads["no"])
    return {
        "without": without,
        "with_first": heads["yes"],
        "numbers": {what: (0.0, round(100 * without, 1))},
    }


def _moves(early: pd.DataFrame) -> bool:
    return min(early["times"]) > TIMES and min(early["attention"]) > TAKES


# as a multiple of the median state, and as a fraction of the attention
TIMES, TAKES = Threshold(50), Threshold(0.2)
SMALL_TIMES, SMALL_TAKES = Threshold(10), Threshold(0.1)


@rule(
    "massive_activations_go_with_the_sink",
    holds=(
        (
            "if the first token is hidden from the start, another token gets a hidden state of "
            f"over {TIMES:g} times the median norm and over {TAKES:.0%} of the attention, and if "
            f"it is hidden late, no token gets {SMALL_TIMES:g} times the median or "
            f"{SMALL_TAKES:.0%} of the attention"
        ),
        lambda early, late: (
            _moves(early)
            and max(late["times"]) < SMALL_TIMES
            and max(late["attention"]) < SMALL_TAKES
        ),
    ),
    part=(
        (
            "if the first token is hidden from the start, another token gets a hidden state of "
            f"over {TIMES:g} times the median norm and over {TAKES:.0%} of the attention"
        ),
        lambda early: _moves(early),
    ),
    nothing=("no token moves", lambda late: {"early": late}),
)
def hiding(model: LanguageModel | None = None) -> dict[str, pd.DataFrame]:
    """Return losses and hidden states of each text with and without attention knockout.

    Returns:
        Four tables with one row per text. In "plain" no token is knocked out. In "early" the first
            token is knocked out from the start, and in "late" only for later tokens. In "control"
            another token is knocked out for later tokens.
    """
    table = measures.hiding_table(model or models.default())
    cases = {
        "plain": (0, 1),
        "early": (1, 1),
        "late": (1, measures.LATE),
        "control": (measures.CONTROL, measures.LATE),
    }
    return {name: measures.hidden_from(table, *which) for name, which in cases.items()}


CLAMPED = Threshold(0.5)  # a fraction of the sink score without clamping


@rule(
    holds=(
        (
            "the mean sink score falls below "
            f"{CLAMPED:.0%} of its value in each text if we set the three largest coordinates of "
            "the first token's hidden state to the median, and does not if we set six random "
            "coordinates"
        ),
        lambda fixed, drawn: max(fixed) < CLAMPED and min(drawn) > CLAMPED,
    ),
    fit=(
        (
            "the answer is the same if we choose the three coordinates once and if we choose them "
            "again after each layer"
        ),
        lambda fixed, anew: (max(fixed) < CLAMPED) == (max(anew) < CLAMPED),
    ),
    enough=(f"at least {THREE:g} texts were measured", lambda fixed: len(fixed) >= THREE),
    nothing=("coordinates drawn at random", lambda drawn: {"fixed": drawn, "anew": drawn}),
    dealt={"clamped_smollm2": ("change", "text")},
)
def massive_activations_draw_the_attention() -> Numbers:
    """Measure how much of the mean sink score remains if we clamp large activations.

    The sink score is the mean over layers 13 to 30.

    Returns:
        For each way of clamping, the fraction of the score that remains in each text. `plain` is
            the mean score without clamping. `loss` is the increase of the mean loss by clamping, in
            nats.
    """
    table = data.table("clamped_smollm2").set_index(["change", "text"])
    ratio = table["sink"].div(table.loc["nothing", "sink"], level="text")
    names = dict(
        zip(("fixed", "twenty", "anew", "drawn", "whole"), measures.CLAMPS[1:], strict=True)
    )
    loss = table["loss"].groupby("change").mean()
    found = {name: ratio[change].tolist() for name, change in names.items()}
    return found | {"plain": table.loc["nothing", "sink"].mean(), "loss": loss - loss["nothing"]}


def _second(found: dict[str, pd.DataFrame]) -> Numbers:
    """Count the texts in which token 2 has the largest hidden state if token 1 is knocked out.

    No later token can then attend to token 1.
    """
    return {"second": int((found["early"]["heir"] == 2).sum())}


HALF, NINE = Threshold(0.5), Threshold(0.9)


@rule(
    holds=(
        (
            f"the median ratio of the first token's value to the other values is below {HALF:g}, "
            f"and so is the ratio in over {NINE:.0%} of the heads"
        ),
        lambda middle, small: middle < HALF and small > NINE,
    ),
    part=(
        "the median ratio is below 1, so the sink's value is typically smaller than the others",
        lambda middle: middle < EVEN,
    ),
    nothing=("values of one size", {"middle": 1.0, "small": 0.0}),
)
def sink_values_are_small(model: LanguageModel | None = None) -> Numbers:
    """Measure the norm of the first token's value divided by the mean norm of the other values."""
    read = model or models.default()
    texts = measures.texts(read, measures.TOKENS).values()
    ratios = torch.stack([measures.value_ratios(read, tokens) for tokens in texts])
    return {"middle": float(ratios.median()), "small": float((ratios < 0.5).double().mean())}


def _ahead(ours: list[float], theirs: list[float]) -> bool:
    """Return whether `ours` is larger than `theirs` in more texts than a fair coin would give."""
    return more_than_a_coin(sum(m > h for m, h in zip(ours, theirs, strict=True)), len(ours))


def _further(late: list, early: list, control: list, mass: list, value: list) -> bool:
    return sum(late) > Threshold(max(sum(early), sum(control))) and (
        not mass or sum(mass) > Threshold(sum(value))
    )


@rule(
    holds=(
        (
            "in every text a change spreads further if we hide the sink late than in each control "
            "(another token hidden, only the sink's value set to zero, and random heads ablated at "
            "the same loss)"
        ),
        lambda late, early, control, mass, value, heads: (
            _further(late, early, control, mass, value)
            and min(late) > Threshold(max(*early, *control))
            and all(m > Threshold(max(v, h)) for m, v, h in zip(mass, value, heads, strict=True))
        ),
    ),
    part=(
        (
            "on average a change spreads further if we hide the sink late, and it spreads less far "
            "with random heads ablated at the same loss in more texts than a coin would give"
        ),
        lambda late, early, control, mass, value, heads: (
            _further(late, early, control, mass, value) and (not heads or _ahead(mass, heads))
        ),
    ),
    enough=(
        (
            "at the same loss, hiding the sink and ablating random heads differ: one of the two "
            "spreads a change further in more texts than a coin would give"
        ),
        lambda mass, heads: not heads or _ahead(mass, heads) or _ahead(heads, mass),
    ),
    nothing=("a token like any other", lambda control: {"late": control}),
    null=(
        "if every text is set to the mean over the texts, then a result that holds on "
        "average holds in each text"
    ),
)
def sinks_slow_mixing(model: LanguageModel | None = None) -> Numbers:
    """Measure how much farther a change spreads if attention to a token is knocked out.

    The spread of a change is the relative change of the hidden states after a replaced token,
    averaged over later tokens.

    Returns:
        For each kind of knockout, the spread divided by the spread without a knockout, as one ratio
            per text. For the embedded model there are three more lists. For "mass" we remove the
            attention to the first token, and for "value" only its value. For "heads", the control,
            we ablate so many random heads that the loss is the same as for "mass". A text is left
            out of these three lists if even ablating half of the heads raises the loss less than
            "mass" does.
    """
    found, kept = hiding(model), measures.mean_share()
    spread = {
        name: (each["spread"] / found["plain"]["spread"]).tolist() for name, each in found.items()
    } | _second(found)
    toy = [
        float(influence([constructions.sink(32, p)] * measures.LAYERS_READ, kept)[-1, 4])
        for p in (0, 0.8)
    ]
    if model is not None and model.name != models.DEFAULT:
        return spread | {"mass": [], "value": [], "heads": []} | {"toy": toy}
    table = measures.brake_table()
    names = {"mass": "mass", "value": "value", "heads": "at equal loss"}
    parts = {name: table.loc[change]["spread"] for name, change in names.items()}
    told = parts["heads"].dropna().index  # the texts in which the two losses become equal
    return (
        spread
        | {name: rows[told].tolist() for name, rows in parts.items()}
        | {"toy": toy, "loss": table["loss"].groupby("change").mean()}
    )


BREAKS = Threshold(0.5)  # in nats
FIVE = Threshold(5)  # as a multiple of the control


@rule(
    holds=(
        (
            f"the loss rises by more than {BREAKS:g} nats if the first token is hidden late and if "
            f"it is hidden from the start, and hidden late by more than {FIVE:g} times as much as "
            "in the control"
        ),
        lambda late, early, control: (
            min(late) > BREAKS and min(late) > FIVE * max(control) and min(early) > BREAKS
        ),
    ),
    part=(
        (
            f"the loss rises by more than {BREAKS:g} nats if the first token is hidden late, and "
            f"by more than {FIVE:g} times as much as in the control, but if it is hidden from the "
            "start this is not so in each text"
        ),
        lambda late, control: min(late) > BREAKS and min(late) > FIVE * max(control),
    ),
    nothing=("a token like any other", lambda control: {"late": control, "early": control}),
    null=(
        "if we swap hiding late and hiding from the start, one of the two still "
        "raises the loss by less than the threshold"
    ),
)
def hiding_the_sink_breaks_the_model(model: LanguageModel | None = None) -> Numbers:
    """Measure how much the loss rises if attention to the first token is knocked out.

    As a control, we knock out attention to another token.
    """
    found = hiding(model)
    loss = {name: each["loss"] - found["plain"]["loss"] for name, each in found.items()}
    what = f"perplexity ratio, Llama-2-13B against {called(model)}"
    return (
        loss
        | _second(found)
        | {"numbers": {what: (5158.07 / 5.40, round(math.exp(loss["late"].mean()), 1))}}
    )
