"""Run the experiments that might change the verdicts on the claims of chapter 2.

These experiments use, for example, other random weights, clamped states and longer texts.
"""

import itertools
from functools import cache

import torch
from torch import Tensor

from course.chapter2 import claims, measures
from course.evidence import significance
from course.evidence.rules import Numbers, more_than_a_coin
from course.evidence.turns import turn
from course.maths import bounds
from helpers import attention, data, models, probe
from helpers.models import LanguageModel
from helpers.style import number  # noqa: F401  the words of a turn call it


@turn(
    "causal_attention_is_no_bottleneck",
    asked="We took random weights of two other scales: 0.02, and embeddings of N(0, 1)",
    survives=(
        (
            "at each scale, the least influential token has less weight in an average than "
            "the tree's worst node, and with squares it has more than ten times this weight"
        ),
        lambda rows: all(
            each["causal"] < each["tree"] and each["squares"] > 10 * each["causal"]
            for each in rows.values()
        ),
    ),
    turned=(
        (
            "at one scale, it has as much weight in an average as the tree's worst node, or "
            "less weight with squares"
        ),
        lambda rows: any(
            each["causal"] >= each["tree"] or each["squares"] < each["causal"]
            for each in rows.values()
        ),
    ),
    measured=(
        "In an average, the least influential token has {', "
        '\'.join(f\'{number(each["causal"])} ({name}; the tree {number(each["tree"])})\' '
        "for name, each in rows.items())} of the last state, and if squares add, {', "
        "'.join(f'{number(each[\"squares\"])} ({name})' for name, each in rows.items())}. "
        "The layers keep {', '.join(f'{each[\"kept\"]:.2f} of a state and give away "
        '{each["away"]:.1f} in all ({name})\' for name, each in rows.items())}'
    ),
)
def other_scales() -> Numbers:
    """Measure the weakest influence in causal attention and in a tree, for three scales of weights.

    For each scale of the random weights, each layer keeps the fraction of a state that we measured
    at this scale. We compute the influence of the weakest of 31 nodes as the weight in an average,
    and for causal attention also with squares (see `measures.averaged`).
    """
    ways, rows = measures.connections(31), {}
    for scale, name in (
        ("own", "as published"),
        ("0.02", "0.02"),
        ("unit", "embeddings of N(0, 1)"),
    ):
        shares = measures.kept_shares("harbour", measures.network_name(scale))

        def worst(graph: str, squared: bool = False, shares: torch.Tensor = shares) -> float:
            matrix, read = ways[graph]
            return float(measures.averaged(matrix, shares, squared)[read].min())

        rows[name] = {
            "kept": float(shares.mean()),
            "away": float((1 - shares).sum()),
            "causal": worst("causal attention"),
            "tree": worst("tree"),
            "squares": worst("causal attention", True),
        }
    return {"rows": rows}


@turn(
    "primacy_is_topology_recency_is_learned",
    asked=(
        "We multiplied each sensitivity by the norm of its token's embedding, so that it is "
        "the sensitivity to a relative change"
    ),
    survives=(
        (
            "in each text, the sensitivity to tokens 41 to 47 is above an equal share after "
            "training and below it with random weights"
        ),
        lambda trained, fresh: min(trained) > 1 > max(fresh),
    ),
    turned=(
        "after training it is below an equal share in most texts",
        lambda trained: sum(x < 1 for x in trained) > len(trained) / 2,
    ),
    measured=(
        "Relative to an equal share, the sensitivity to tokens 41 to 47 is "
        "{min(trained):.2f} to {max(trained):.2f} in the trained network and "
        "{min(fresh):.2f} to {max(fresh):.2f} with random weights. The sensitivity to the "
        "first token is {min(first):.2f} to {max(first):.2f} in the trained network"
    ),
)
def relative_changes() -> Numbers:
    """Measure the sensitivity to relative changes of each token's embedding, relative to the mean.

    To get it, we multiply the sensitivity to a token by the norm of the token's embedding.

    Returns:
        `trained`, `fresh`: the sensitivity to tokens 41 to 47 in each text, after training and with
            random weights.
        `first`: the sensitivity to the first token in each text, after training.
    """
    model, fresh = models.default(), measures.untrained()
    table, late, first = measures.profiles(model), {"trained": [], "seed 0": []}, []
    for text, tokens in measures.texts(model, measures.TOKENS).items():
        for network, read in (("trained", model), ("seed 0", fresh)):
            sizes = read.model.get_input_embeddings().weight[tokens].norm(dim=-1).double()
            scaled = measures.profile_of(table, text, network) * sizes
            late[network].append(float(scaled[40:47].mean() / scaled.mean()))
            if network == "trained":
                first.append(float(scaled[0] / scaled.mean()))
    return {"trained": late["trained"], "fresh": late["seed 0"], "first": first}


@turn(
    "first_token_is_a_sink",
    asked=(
        "We took a text ten times as long, 640 tokens of the course's prose, and equally "
        "many random tokens"
    ),
    survives=(
        "over half of the heads still give the first token more than 0.3 of their attention",
        lambda share: min(share) > 0.5,
    ),
    turned=("fewer than a fifth of the heads do", lambda share: min(share) < 0.2),
    measured=(
        "On 640 tokens, {share[0]:.0%} of the heads have a sink on prose and {share[1]:.0%} "
        "on random tokens"
    ),
)
def long_text() -> Numbers:
    """Measure the fraction of heads with a sink score above 0.3 on texts of 640 tokens.

    The texts are prose and random tokens.
    """
    model = models.default()
    prose = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:640]
    drawn = measures.sequence(model, "random", 640)
    scores = [probe.head_scores(model, tokens).sink for tokens in (prose, drawn)]
    return {"share": [attention.share_of_strong_heads(each) for each in scores]}


@turn(
    "massive_activations_go_with_the_sink",
    asked=(
        "We changed the activations themselves and set the largest coordinates of the first "
        "token's state to the median"
    ),
    survives=(
        (
            "in each text, the sink score falls below half of its value, whichever way the "
            "coordinates are chosen"
        ),
        lambda fixed, anew: max(*fixed, *anew) < 0.5,
    ),
    turned=(
        (
            "with three fixed coordinates, the score stays above nine tenths of its value in "
            "most texts"
        ),
        lambda fixed: sum(x > 0.9 for x in fixed) > len(fixed) / 2,
    ),
    measured=(
        "Massive activations go with the sink but do not cause it: with the three largest "
        "coordinates at the median the sink keeps {sum(fixed) / len(fixed):.0%} of its "
        "score, with twenty {sum(twenty) / len(twenty):.0%}, with three that are chosen "
        "again after each layer {sum(anew) / len(anew):.0%}, and with the whole state shrunk "
        "{sum(whole) / len(whole):.0%}"
    ),
)
def clamped() -> Numbers:
    """Measure the fraction of the sink score that remains if we clamp activations.

    The function repeats `claims.massive_activations_draw_the_attention`.
    """
    return claims.massive_activations_draw_the_attention()


@turn(
    "untrained_network_has_a_u",
    asked=(
        "We took random weights of scale 0.02 and with embeddings of N(0, 1), each on seven texts"
    ),
    survives=(
        "at each scale, both ends have more than twice the smallest sensitivity",
        lambda lead: min(lead.values()) > 2,
    ),
    turned=("at one scale this is not so", lambda lead: min(lead.values()) < 2),
    measured=(
        "The first and the last token have at least {', '.join(f'{x:.1f} ({name})' for name, "
        "x in lead.items())} times the smallest sensitivity, which is that of token {', "
        "'.join(f'{low} to {high} ({name})' for name, (low, high) in place.items())}"
    ),
)
def u_at_three_scales() -> Numbers:
    """Measure the U shape of the sensitivities at three scales of random weights.

    Returns:
        `lead`: for each scale, the smaller end divided by the smallest value between the ends, in
            the text with the smallest lead.
        `place`: for each scale, the earliest and the latest token that has the smallest value in
            one of the texts.
    """
    found = claims.untrained_network_has_a_u()["by_scale"]
    return {
        "lead": {name: min(each["lead"]) for name, each in found.items()},
        "place": {name: (min(each["least"]), max(each["least"])) for name, each in found.items()},
    }


@turn(
    "two_kinds_of_squashing",
    asked="We let a layer keep a fraction of 0.3 and of 0.99, and took 63 nodes instead of 31",
    survives=(
        (
            "with more layers, the weakest influence rises in the tree and falls in causal "
            "attention, in each set-up"
        ),
        lambda rows: all(
            tree == sorted(tree) and causal == sorted(causal, reverse=True)
            for tree, causal in rows.values()
        ),
    ),
    turned=(
        "in most set-ups this is not so",
        lambda rows: (
            2 * sum(tree[-1] > tree[0] and causal[-1] < causal[0] for tree, causal in rows.values())
            < len(rows)
        ),
    ),
    measured=(
        "The smallest weight of a node, for three numbers of layers, is {'; '.join(', "
        "'.join(map(number, tree)) + ' in the tree and ' + ', '.join(map(number, causal)) + "
        "f' in causal attention ({name})' for name, (tree, causal) in rows.items())}"
    ),
)
def other_shares() -> Numbers:
    """Measure how more layers change the weakest influence in a tree and under the causal mask.

    We try another number of nodes and other fractions of a state that a layer keeps.
    """
    rows = {}
    for nodes, kept in ((31, 0.3), (31, 0.99), (63, 0.5), (63, 0.95)):
        layers = [round(x / (1 - kept)) for x in (4, 8, 32)]
        found = measures.worst_heard(layers, kept, nodes)
        rows[f"{nodes} nodes, {kept:g} kept"] = (found["tree"], found["causal attention"])
    return {"rows": rows}


@turn(
    "bound_with_attention_fixed",
    asked=(
        "We took 24 tokens and six layers instead of 12 and three, with three seeds at four "
        "degrees of sharpness"
    ),
    survives=("no Jacobian exceeds the bound", lambda fixed: max(fixed) <= 1),
    turned=("one does", lambda fixed: max(fixed) > 1),
    measured=("The Jacobian is at most {max(fixed):.2f} of the bound"),
)
def deeper_with_attention_fixed() -> Numbers:
    """Measure the largest ratio of the Jacobian to the bound in each of twelve deeper decoders.

    Attention is held fixed when we differentiate. A ratio above 1 would refute the bound.
    """
    return {"fixed": _deeper("attention fixed")}


@turn(
    "true_jacobian_exceeds_the_bound",
    asked=(
        "We took 24 tokens and six layers instead of 12 and three, with three seeds at four "
        "degrees of sharpness"
    ),
    survives=("the Jacobian of one decoder exceeds the path sum", lambda true: max(true) > 1),
    turned=("no Jacobian exceeds the path sum", lambda true: max(true) <= 1),
    measured=(
        "The Jacobian exceeds the path sum in {sum(x > 1 for x in true)} of {len(true)} "
        "decoders, by a factor of {max(true):.1f} at most"
    ),
)
def deeper_with_attention_free() -> Numbers:
    """Measure the largest ratio of the Jacobian to the path sum in each of twelve deeper decoders.

    Attention is not held fixed when we differentiate.
    """
    return {"true": _deeper("true")}


def _deeper(column: str) -> list[float]:
    tables = [
        measures.bound_and_truth(sharpness, seed, n=24, layers=6)
        for sharpness in (0.0, 1.0, 4.0, 16.0)
        for seed in range(3)
    ]
    return [float((table[column] / table["bound"]).max()) for table in tables]


@turn(
    "printed_constant_bounds",
    asked=(
        "We took 3 to 20 tokens and 2 to 6 layers instead of 5 and 3, with uniform and "
        "random attention"
    ),
    survives=(
        "in each set-up the Jacobian of a token exceeds the printed bound",
        lambda over: min(over.values()) > 1,
    ),
    turned=(
        "in most set-ups no token's Jacobian exceeds it",
        lambda over: 2 * sum(x <= 1 for x in over.values()) > len(over),
    ),
    measured=(
        "In {len(over)} set-ups, the Jacobian is {min(over.values()):.2g} ({min(over, "
        "key=over.get)}) to {max(over.values()):.3g} ({max(over, key=over.get)}) times the "
        "printed bound. It is at most {proved:.2f} of the bound of the proof"
    ),
)
def other_sizes() -> Numbers:
    """Measure the largest ratio of the Jacobian to the printed bound, for decoders of other sizes.

    Returns:
        `over`: this ratio, keyed by set-up.
        `proved`: the largest ratio of the Jacobian to the bound of the proof, among all set-ups.
    """
    over, proved = {}, []
    for n, layers, kind in itertools.product((3, 8, 20), (2, 4, 6), ("uniform", "random")):
        mask = attention.causal_mask(n)
        maps = attention.uniform(mask).expand(layers, n, n)
        maps = claims._random(mask, layers) if kind == "random" else maps
        jacobian = torch.eye(n, dtype=torch.float64)
        for matrix in maps:
            jacobian = 2 * (matrix + torch.eye(n)) @ jacobian
        printed = measures.printed_path_sum(maps)
        over[f"{n} tokens, {layers} layers, {kind}"] = float((jacobian[-1] / printed).max())
        proved.append(float((jacobian[-1] / bounds.influence_bound([*maps])[-1]).max()))
    return {"over": over, "proved": max(proved)}


LONG, FEW_DIRECTIONS = 256, 12  # tokens of a longer text, and directions for its sensitivities


@cache
def _long_profiles() -> list[Tensor]:
    """Measure the sensitivities of the trained model's last state to each of 256 tokens.

    The texts are three pieces of the course's prose.
    """
    model = models.default()
    front, prose = probe.opening(model).tokens, probe.encode(model, data.prose())
    texts = [
        torch.cat([front, prose[start : start + LONG - len(front)]]) for start in (0, 230, 460)
    ]
    return [probe.sensitivity(model, text, FEW_DIRECTIONS).norms.double() for text in texts]


@turn(
    "early_tokens_have_more_influence",
    asked="We took texts of 256 tokens instead of 48 in the trained network",
    survives=(
        "in each text the rank correlation of sensitivity and position stays above -0.5",
        lambda order: min(order) > -0.5,
    ),
    turned=("in each text it is below -0.5", lambda order: max(order) < -0.5),
    measured=(
        "On three texts of 256 tokens, the rank correlation of the sensitivity with the "
        "position is {', '.join(f'{x:.2f}' for x in order)}"
    ),
)
def longer_texts() -> Numbers:
    """Measure the rank correlation between sensitivity and position in texts of 256 tokens."""
    position = torch.arange(LONG).double()
    return {"order": [significance.rank_correlation(position, row)[0] for row in _long_profiles()]}


@turn(
    "valley_survives_training",
    asked="We took texts of 256 tokens instead of 48 in the trained network",
    survives=(
        (
            "in each text, both ends have more than twice the smallest sensitivity, and the "
            "token with the smallest is not in the last sixth"
        ),
        lambda lead, least: min(lead) > 2 and max(least) < LONG * 5 / 6,
    ),
    turned=(
        (
            "in each text, one end has less than twice the smallest sensitivity, or the token"
            " with the smallest is in the last sixth"
        ),
        lambda lead, least: max(lead) < 2 or min(least) >= LONG * 5 / 6,
    ),
    measured=(
        "On three texts of 256 tokens, the first and the last token have at least {', "
        "'.join(f'{x:.1f}' for x in lead)} times the smallest sensitivity, which is that of "
        "token {', '.join(map(str, least))}"
    ),
)
def valley_of_longer_texts() -> Numbers:
    """Measure the U shape of the sensitivities in texts of 256 tokens (see `claims._u`)."""
    return claims._u(_long_profiles())


def _replaced(model: LanguageModel, tokens: Tensor, draws: int = 1) -> Tensor:
    """Return how far the last hidden state moves if we replace one token of a text, for each token.

    Each token is replaced by `draws` random tokens in turn, and the result is the mean over them.
    """
    others = probe.encode(model, data.prose()).unique()
    generator = torch.Generator().manual_seed(0)
    moved = []
    with torch.inference_mode():
        plain = model.model.base_model(input_ids=tokens[None]).last_hidden_state[0, -1]
        for _ in range(draws):
            rows = tokens.repeat(len(tokens), 1)
            drawn = others[torch.randint(len(others), (len(tokens),), generator=generator)]
            rows[torch.arange(len(tokens)), torch.arange(len(tokens))] = drawn
            states = model.model.base_model(input_ids=rows).last_hidden_state[:, -1]
            moved.append((states - plain).norm(dim=-1).double())
    return torch.stack(moved).mean(0)


@turn(
    "rollout_is_no_jacobian",
    asked=(
        "We took another reference instead of the Jacobian: we replaced each token by a "
        "random one and measured how far the last state moves"
    ),
    survives=(
        (
            "if a layer keeps 0.9 or 0.95, rollout ranks the tokens better than the mask in "
            "more texts than a coin would give"
        ),
        lambda above: any(more_than_a_coin(above[kept], 7) for kept in (0.9, 0.95)),
    ),
    turned=(
        (
            "for every kept fraction, rollout is no better than the mask in more texts than a"
            " coin would give"
        ),
        lambda above: all(more_than_a_coin(7 - count, 7) for count in above.values()),
    ),
    measured=(
        "The mean rank correlation with the effect of replaced tokens over 7 texts is {'; "
        "'.join(f'{rollout[kept]:.2f} for rollout and {mask[kept]:.2f} for the mask if a "
        "layer keeps {kept:g} (rollout is higher in {above[kept]} texts)' for kept in "
        "above)}. The Jacobian has a correlation of {jacobian:.2f}"
    ),
)
def replaced_tokens() -> Numbers:
    """Measure how well rollout, the mask and the Jacobian predict the effect of replacing a token.

    Returns:
        `above`: for each fraction that a state keeps, the number of texts in which rollout predicts
            the effect better than the mask.
        `rollout`, `mask`: for each of these fractions, the mean rank correlation with the effect.
        `jacobian`: the mean rank correlation of the Jacobian with the effect.
    """
    model, found, order = models.default(), measures.profiles(models.default()), {}
    for text, tokens in measures.texts(model, measures.TOKENS).items():
        moved = _replaced(model, tokens)
        order["jacobian", text] = significance.rank_correlation(
            measures.profile_of(found, text), moved
        )[0]
        for kept in measures.KEPT:
            rows = measures.influences(model, tokens, kept)
            for name in ("rollout", "mask alone"):
                order[name, kept, text] = significance.rank_correlation(rows[name], moved)[0]

    def mean(*which: str | float) -> float:
        values = [order[*which, text] for text in measures.NAMES]
        return sum(values) / len(values)

    return {
        "above": {
            kept: sum(
                order["rollout", kept, text] > order["mask alone", kept, text]
                for text in measures.NAMES
            )
            for kept in measures.KEPT
        },
        "rollout": {kept: mean("rollout", kept) for kept in measures.KEPT},
        "mask": {kept: mean("mask alone", kept) for kept in measures.KEPT},
        "jacobian": mean("jacobian"),
    }


@turn(
    "causal_mask_ends_at_the_first_token",
    asked="We took a new random matrix in each layer instead of one, for 12 and 40 tokens",
    survives=(
        (
            "after 400 layers, the first token has all the weight up to 1e-6, and no other "
            "weight is above the product of the allowed factors"
        ),
        lambda first, over: min(first) > 1 - 1e-6 and max(over) <= 1 + 1e-9,
    ),
    turned=(
        "the first token has less, or another weight is above this product",
        lambda first, over: min(first) <= 1 - 1e-6 or max(over) > 1 + 1e-9,
    ),
    measured=(
        "In {len(first)} runs, the first token has a weight of at least {min(first):.6f} "
        "after 400 layers. Another weight is at most {max(over):.2f} of the product of (1 − "
        "(i − 1) ε)"
    ),
)
def a_new_matrix_each_layer() -> Numbers:
    """Measure the first token's weight in the last hidden state, with a new matrix in each layer.

    Returns:
        `first`: for each run, the first token's weight after all layers.
        `over`: for each run and layer, the largest ratio of a later token's weight to the product
            of the factors that the claim allows.
    """
    first, over = [], []
    for n, seed in itertools.product((12, 40), range(5)):
        mask = attention.causal_mask(n)
        later = torch.arange(n, dtype=torch.float64)
        state, allowed = torch.eye(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64)
        for matrix in claims._random(mask, claims.FOREVER, seed):
            state = matrix @ state
            allowed = allowed * (1 - later * float(matrix[mask].min()))
            told = allowed > 1e-250
            over.append(float((state[-1] / allowed)[1:][told[1:]].max()) if told[1:].any() else 0.0)
        first.append(float(state[-1, 0]))
    return {"first": first, "over": over}


@turn(
    "repeated_tokens_have_no_sink",
    asked="We took fourteen other tokens, in 64 and 256 copies",
    survives=(
        "for no token, a twentieth of the heads have a sink",
        lambda sinks: max(sinks) < 0.05,
    ),
    turned=("for one token, a fifth of the heads have a sink", lambda sinks: max(sinks) > 0.2),
    measured=(
        "In {len(sinks)} rows of equal tokens, {min(sinks):.1%} to {max(sinks):.1%} of the "
        "heads have a sink"
    ),
)
def other_repeated_tokens() -> Numbers:
    """Measure the fraction of heads with a sink in sequences of one repeated token.

    There is one value for each token and number of copies.
    """
    model = models.default()
    tokens = probe.encode(model, data.prose()).unique()[::25][:14]
    rows = [token.repeat(copies) for token in tokens for copies in (64, 256)]
    return {
        "sinks": [
            attention.share_of_strong_heads(probe.head_scores(model, row).sink) for row in rows
        ]
    }


@turn(
    "sink_values_are_small",
    asked="We took only the sink heads, text by text",
    survives=(
        (
            "in each text, the median ratio is below 1, and fewer than 90% of the ratios are "
            "below one half"
        ),
        lambda middle, small: max(middle) < 1 and max(small) < 0.9,
    ),
    turned=(
        (
            "in each text, over 90% of the ratios are below one half, or in one text the "
            "median is not below 1"
        ),
        lambda middle, small: min(small) > 0.9 or max(middle) >= 1,
    ),
    measured=(
        "In the sink heads on 7 texts, the median ratio is {min(middle):.2f} to "
        "{max(middle):.2f}, and {min(small):.0%} to {max(small):.0%} of the ratios are below "
        "one half"
    ),
)
def sink_heads_only() -> Numbers:
    """Measure the size of the first token's value in the sink heads of each text.

    Returns:
        `middle`: the median of the norm of this value divided by the mean norm of the other values.
        `small`: the fraction of ratios below one half.
    """
    model, middle, small = models.default(), [], []
    for tokens in measures.texts(model, measures.TOKENS).values():
        sink = probe.head_scores(model, tokens).sink > attention.HEAD_SCORE_THRESHOLD
        ratios = measures.value_ratios(model, tokens)[sink]
        middle.append(float(ratios.median()))
        small.append(float((ratios < 0.5).double().mean()))
    return {"middle": middle, "small": small}


@turn(
    "hiding_the_sink_breaks_the_model",
    asked="We hid the first four tokens from all tokens, as in the source, instead of one",
    survives=("in no text does the loss rise by half a nat", lambda cost: max(cost) < 0.5),
    turned=("in each text the loss rises by half a nat", lambda cost: min(cost) > 0.5),
    measured=(
        "If the first four tokens are hidden from all tokens, the loss after token 64 "
        "changes by {min(cost):+.2f} to {max(cost):+.2f} nats (7 texts)"
    ),
)
def four_hidden() -> Numbers:
    """Measure how the loss after token 64 changes if the first four tokens are removed.

    The other tokens then have earlier positions, which does not matter because RoPE depends only on
    distances.
    """
    model = models.default()

    def loss(tokens: Tensor, after: int) -> float:
        with torch.inference_mode():
            logits = model.model(tokens[None]).logits[0, :-1].float()
        each = torch.nn.functional.cross_entropy(logits, tokens[1:], reduction="none")
        return float(each[after:].mean())

    texts = measures.texts(model, measures.LENGTH).values()
    return {
        "cost": [loss(each[4:], measures.AFTER - 4) - loss(each, measures.AFTER) for each in texts]
    }
