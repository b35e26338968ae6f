"""Run what might have turned the claims of chapter 2, run: other random weights, scaled norms, clamped states."""

import torch

from course.chapter2 import claims, measures
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from helpers import attention, data, models, probe
from helpers.style import number  # noqa: F401  the words of a turn call it


@turn(
    "causal_attention_is_no_bottleneck",
    asked="random weights of two other scales: 0.02, and embeddings of N(0, 1)",
    survives=(
        "with the fractions kept at each scale an average gives the least influential token less than the tree's worst node, and squares keep ten times as much",
        lambda rows: all(
            each["causal"] < each["tree"] and each["squares"] > 10 * each["causal"]
            for each in rows.values()
        ),
    ),
    turned=(
        "at one scale an average does not lose it, or squares do",
        lambda rows: any(
            each["causal"] >= each["tree"] or each["squares"] < each["causal"]
            for each in rows.values()
        ),
    ),
    measured='{\'; \'.join(f\'{name}: the layers keep {each["kept"]:.2f} and give away {each["away"]:.1f}, average {number(each["causal"])} (tree {number(each["tree"])}), squares {number(each["squares"])}\' for name, each in rows.items())}',
)
def other_scales() -> Numbers:
    """By scale of the random weights, the share kept and the share of the worst-heard of 31 nodes, to two readers."""
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
    asked="each sensitivity times the norm of its token's embedding, so that it is of a relative change",
    survives=(
        "tokens 41 to 47 are above an equal share when trained and below it with random weights, in each text",
        lambda trained, fresh: min(trained) > 1 > max(fresh),
    ),
    turned=(
        "when trained they are below it in most texts",
        lambda trained: sum(x < 1 for x in trained) > len(trained) / 2,
    ),
    measured="tokens 41 to 47 over an equal share: trained {min(trained):.2f} to {max(trained):.2f}, with random weights {min(fresh):.2f} to {max(fresh):.2f}; the first token, trained {min(first):.2f} to {max(first):.2f}",
)
def relative_changes() -> Numbers:
    """By text, what tokens 41 to 47 and the first one have over an equal share, each norm times its embedding's."""
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
    asked="a text ten times as long, 640 tokens of the course's prose, and as many random tokens",
    survives=("over half of the heads still give it more than 0.3", lambda share: min(share) > 0.5),
    turned=("under a fifth of them do", lambda share: min(share) < 0.2),
    measured="640 tokens: {share[0]:.0%} of the heads on prose, {share[1]:.0%} on random tokens",
)
def long_text() -> Numbers:
    """The share of heads with a sink score above 0.3 on 640 tokens."""
    model = models.default()
    prose = torch.cat([probe.opening(model).tokens, probe.encode(model, data.prose())])[:640]
    drawn = measures.sequence(model, "random", 640)
    scores = [probe.head_scores(model, tokens).sink for tokens in (prose, drawn)]
    return {
        "share": [float((each > attention.HEAD_SCORE_THRESHOLD).double().mean()) for each in scores]
    }


@turn(
    "massive_activations_go_with_the_sink",
    asked="the activations themselves changed: the largest coordinates of the first token's state set to the median",
    survives=(
        "the sink falls below half of its score in each text, whichever way the coordinates are chosen",
        lambda fixed, anew: max(*fixed, *anew) < 0.5,
    ),
    turned=(
        "three fixed coordinates leave it above nine tenths in most texts",
        lambda fixed: sum(x > 0.9 for x in fixed) > len(fixed) / 2,
    ),
    measured="company, not cause: with the three largest coordinates at the median the sink keeps {sum(fixed) / len(fixed):.0%} of its score, with twenty {sum(twenty) / len(twenty):.0%}, with three chosen anew after each layer {sum(anew) / len(anew):.0%}, with the whole state shrunk {sum(whole) / len(whole):.0%}",
)
def clamped() -> Numbers:
    """Measure the sink score that is left when activations are clamped, by text."""
    return claims.massive_activations_draw_the_attention()


@turn(
    "untrained_network_has_a_u",
    asked="random weights of N(0, 1) embeddings and of 0.02, each on seven texts",
    survives=("both ends have twice the least at each scale", lambda lead: min(lead.values()) > 2),
    turned=("at one scale they have not", lambda lead: min(lead.values()) < 2),
    measured="lead of the lesser end over the least: {', '.join(f'{name} {x:.1f}' for name, x in lead.items())}; the place of the least: {', '.join(f'{name} {low} to {high}' for name, (low, high) in place.items())}",
)
def u_at_three_scales() -> Numbers:
    """By scale, how many times the least sensitivity the lesser end has, and between which tokens the least is."""
    found = claims.untrained_network_has_a_u()["by_scale"]
    return {
        "lead": {name: min(each["lead"]) for name, each in found.items()},
        "place": {name: (min(each["least"]), max(each["least"])) for name, each in found.items()},
    }


@turn(
    "two_kinds_of_squashing",
    asked="shares kept of 0.3 and 0.99, and 63 nodes in the place of 31",
    survives=(
        "with more layers the tree's worst-heard share rises and the causal one falls in each",
        lambda rows: all(
            tree == sorted(tree) and causal == sorted(causal, reverse=True)
            for tree, causal in rows.values()
        ),
    ),
    turned=(
        "in most they do not",
        lambda rows: (
            2 * sum(tree[-1] > tree[0] and causal[-1] < causal[0] for tree, causal in rows.values())
            < len(rows)
        ),
    ),
    measured="worst-heard share by number of layers: {'; '.join(f'{name}: tree ' + ', '.join(map(number, tree)) + ', causal ' + ', '.join(map(number, causal)) for name, (tree, causal) in rows.items())}",
)
def other_shares() -> Numbers:
    """By set-up the worst-heard share in the tree and under the causal mask, with more and more layers."""
    rows = {}
    for nodes, kept in ((31, 0.3), (31, 0.99), (63, 0.5), (63, 0.95)):
        layers = [round(x / (1 - kept)) for x in (4, 8, 32)]
        found = measures.worst_heard(layers, kept, nodes)
        rows[f"{nodes} nodes, {kept:g} kept"] = (found["tree"], found["causal attention"])
    return {"rows": rows}


@turn(
    "bound_with_attention_fixed",
    asked="24 tokens and six layers in the place of 12 and three, three seeds at four sharpnesses",
    survives=("no Jacobian exceeds the bound", lambda fixed: max(fixed) <= 1),
    turned=("one does", lambda fixed: max(fixed) > 1),
    measured="at most {max(fixed):.2f} of the bound",
)
def deeper_with_attention_fixed() -> Numbers:
    """The largest share of the bound, attention held fixed, in each of twelve deeper decoders."""
    return {"fixed": _deeper("attention fixed")}


@turn(
    "true_jacobian_exceeds_the_bound",
    asked="24 tokens and six layers in the place of 12 and three, three seeds at four sharpnesses",
    survives=("one Jacobian exceeds the path sum", lambda true: max(true) > 1),
    turned=("none does", lambda true: max(true) <= 1),
    measured="{sum(x > 1 for x in true)} of {len(true)} exceed it, by a factor of {max(true):.1f} at most",
)
def deeper_with_attention_free() -> Numbers:
    """The largest share of the path sum that the true Jacobian takes in each of twelve deeper decoders."""
    return {"true": _deeper("true")}


def _deeper(column: str) -> list[float]:
    tables = [
        measures.bound_and_truth(sharpness, seed, n=24, layers=6)
        for sharpness in (0.0, 1.0, 4.0, 16.0)
        for seed in range(3)
    ]
    return [float((table[column] / table["bound"]).max()) for table in tables]
