"""The claims of chapter 2's sources, each measured by a small function."""

import math
from functools import cache

import torch

from course import significance
from course.chapter2 import measures
from course.claims import Found, called, verdict
from helpers import attention, models
from helpers.attention import causal_mask, influence, uniform, window_mask
from helpers.models import LanguageModel
from helpers.style import number

FOREVER = 400  # layers that stand for the limit


def _random(n: int, layers: int, seed: int = 0, width: int | None = None) -> torch.Tensor:
    """Random attention with logits of standard deviation 1."""
    logits = torch.randn(layers, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mask = causal_mask(n) if width is None else window_mask(n, width)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


# The graph ------------------------------------------------------------------------------------------


def causal_attention_is_no_bottleneck() -> Found:
    """Reached in one hop, and ahead of the tree at every share kept and depth; in part, at the share and depth of a network."""
    fitted, depth = measures.measured_share(), measures.LAYERS_READ
    table = measures.compare_connections(layers=depth, kept=fitted)
    causal, tree = table.loc["causal attention"], table.loc["tree"]
    reaches = causal["hops"] == 1 and causal["resistance"] < table.drop("causal attention")["resistance"].min()
    behind = {kept: measures.falls_behind(kept) for kept in (0.5, 0.8, fitted, 0.95)}
    measured = (
        f"31 nodes: 1 hop, resistance {causal['resistance']:.3f} (tree {tree['resistance']:.0f}). At the share kept that fits "
        f"an untrained network, {fitted:g}, and its {depth} layers the worst-heard token has {number(causal['worst heard'])} of "
        f"the last state, the worst-heard node of the tree {number(tree['worst heard'])} of its root's; heard as if "
        f"{causal['heard, as if']:.0f} and {tree['heard, as if']:.0f} nodes. Behind the tree from "
        + ", ".join(f"{layers} layers at {kept:g}" for kept, layers in behind.items())
        + f" on: L (1 − ρ) = {min(k * (1 - r) for r, k in behind.items()):.1f} to {max(k * (1 - r) for r, k in behind.items()):.1f}"
    )
    always = all(layers > 64 for layers in behind.values())
    return Found(
        measured, verdict(bool(reaches and always), bool(reaches and causal["worst heard"] >= tree["worst heard"]))
    )


def two_kinds_of_squashing() -> Found:
    said, apart = [], []
    for kept in (0.5, 0.8, measures.measured_share()):
        found = measures.worst_heard([round(x / (1 - kept)) for x in (4, 8, 32)], kept)
        tree, causal = found["tree"], found["causal attention"]
        apart.append(tree[0] < tree[1] < tree[2] and causal[0] > causal[1] > causal[2])
        said.append(f"ρ = {kept:g}: tree {', '.join(map(number, tree))}, causal {', '.join(map(number, causal))}")
    measured = f"the worst-heard node's share at L (1 − ρ) = 4, 8, 32: {'; '.join(said)}"
    return Found(measured, verdict(all(apart), any(apart)))


def bound_with_attention_fixed() -> Found:
    plain, scaled = _ratios("attention fixed"), _ratios("attention fixed", scaled=True)
    measured = (
        f"random decoders of 3 layers, 12 tokens, 4 sharpnesses × 5 seeds: at most {max(plain):.2f} of the bound with "
        f"norms and slopes of one, {max(scaled):.2f} with random ones"
    )
    return Found(measured, verdict(max(plain + scaled) <= 1))


def true_jacobian_exceeds_the_bound() -> Found:
    ratios = _ratios("true")
    over = sum(ratio > 1 for ratio in ratios)
    measured = (
        f"the same decoders: exceeded in {over} of {len(ratios)}, by up to {max(ratios):.1f} times (sharp attention)"
    )
    return Found(measured, verdict(over > 0))


def _ratios(column: str, scaled: bool = False) -> list[float]:
    """For each random decoder, the largest share of the bound that a token's Jacobian takes."""
    tables = [measures.bound_and_truth(s, seed, scaled) for s in (0.0, 1.0, 4.0, 16.0) for seed in range(5)]
    return [float((table[column] / table["bound"]).max()) for table in tables]


def printed_constant_bounds() -> Found:
    """With the identity for a perceptron, norms and slope 1, the theorem's decoder is v' = 2 (A v + v)."""
    matrix = uniform(causal_mask(5))
    jacobian = torch.linalg.matrix_power(2 * (matrix + torch.eye(5)), 3)[-1]
    printed, proved = measures.printed_path_sum(torch.stack([matrix] * 3)), attention.influence_bound([matrix] * 3)[-1]
    over = jacobian / printed
    measured = (
        f"n = 5, L = 3: exceeded at {int((over > 1).sum())} of {len(over)} tokens, by up to {over.max():.1f} times; the "
        f"constant of the proof holds ({(jacobian / proved).max():.2f} of it at most)"
    )
    numbers = {
        "Jacobian of the last token by itself, printed bound against true": (float(printed[-1]), float(jacobian[-1]))
    }
    return Found(measured, verdict(bool((over <= 1).all())), numbers)


def early_tokens_have_more_influence(model: LanguageModel | None = None) -> Found:
    row = influence([uniform(causal_mask(48))] * 6)[-1]
    monotone = bool((row[1:] < row[:-1]).all())
    before, after = _orders("seed 0", model), _orders("trained", model)
    measured = (
        f"rank correlation of a token's sensitivity with its position, 7 texts: {called(model)} with random weights "
        f"{min(before):.2f} to {max(before):.2f}, trained {min(after):.2f} to {max(after):.2f}; uniform attention "
        f"{'falls with every position' if monotone else 'does not fall'}"
    )
    return Found(measured, verdict(monotone and max(after) < -0.5, monotone and max(before) < -0.5))


def _orders(network: str, model: LanguageModel | None) -> list[float]:
    position = torch.arange(measures.TOKENS).double()
    return [significance.rank_correlation(position, _profile(text, network, model))[0] for text in measures.NAMES]


def _profile(text: str, network: str = "trained", model: LanguageModel | None = None) -> torch.Tensor:
    return measures.profile_of(measures.profiles(model or models.default()), text, network)


def primacy_is_topology_recency_is_learned(model: LanguageModel | None = None) -> Found:
    rows = {network: [_profile(text, network, model) for text in measures.NAMES] for network in ("seed 0", "trained")}
    first = {network: [float(row[0] / row.sum()) for row in each] for network, each in rows.items()}
    late = {network: [float(row[32:-1].sum() / row.sum()) for row in each] for network, each in rows.items()}
    least = [int(row[:-1].argmin()) + 1 for row in rows["seed 0"]]
    texts = len(measures.NAMES)
    measured = f"{called(model)}, means over {texts} texts: " + "; ".join(
        f"{name}, the first token has {sum(first[network]) / texts:.1%} of the sensitivity and tokens 33 to 47 "
        f"{sum(late[network]) / texts:.1%} together"
        for name, network in (("random weights", "seed 0"), ("trained", "trained"))
    )
    topology = min(first["seed 0"]) > 3 / 48 and min(least) > 32
    learned = all(after > before for before, after in zip(late["seed 0"], late["trained"], strict=True))
    return Found(measured, verdict(topology and learned, topology))


def untrained_network_has_a_u() -> Found:
    rows = [_profile(text, "seed 0") for text in measures.NAMES]
    rows += [_profile("harbour", f"seed {k}") for k in (1, 2)]
    lead = [min(float(row[0]), float(row[-1])) / float(row[1:-1].min()) for row in rows]
    last = [int(row[1:-1].argmin()) + 2 for row in rows]
    measured = (
        f"SmolLM2-135M's network with random weights, 48 tokens, 9 profiles: the first and the last token have at least "
        f"{min(lead):.1f} times the least sensitivity, which is that of token {min(last)} to {max(last)}"
    )
    u = min(lead) > 2
    return Found(measured, verdict(u and min(last) >= 40, u))


def valley_survives_training(model: LanguageModel | None = None) -> Found:
    """A U, both ends twice the least, and its valley beside the last token: which of the two does training leave?"""
    rows = {network: [_profile(text, network, model) for text in measures.NAMES] for network in ("seed 0", "trained")}
    least = {network: [int(row[1:-1].argmin()) + 2 for row in each] for network, each in rows.items()}
    lead = [min(float(row[0]), float(row[-1])) / float(row[1:-1].min()) for row in rows["trained"]]
    stays = [place >= 40 for place in least["trained"]]
    measured = (
        f"{called(model)}, {measures.TOKENS} tokens, {len(lead)} texts: trained, the first and the last token have at least "
        f"{min(lead):.1f} times the least sensitivity, so there is a U; its least is at token {min(least['trained'])} to "
        f"{max(least['trained'])}, with random weights at token {min(least['seed 0'])} to {max(least['seed 0'])}"
    )
    u = [each > 2 for each in lead]
    return Found(measured, verdict(all(u) and all(stays), all(u)))


def rollout_is_no_jacobian(model: LanguageModel | None = None) -> Found:
    """A share at which rollout beats the mask in most texts goes the other way."""
    said, below = [], []
    for kept in measures.KEPT:
        table = _proxies(model, kept)
        lost = table.loc["rollout"] <= table.loc["mask alone"]
        below.append(lost.mean())
        said.append(
            f"ρ = {kept:g} {table.loc['rollout'].mean():.2f} (mask {table.loc['mask alone'].mean():.2f}), at or below the mask "
            f"in {int(lost.sum())} of {len(lost)} texts"
        )
    measured = (
        f"{called(model)}, rank correlation of rollout with the Jacobian's norms, mean over texts: {'; '.join(said)}; "
        f"norm-based rollout {table.loc['norm-based rollout'].mean():.2f}"
    )
    most = 2 * sum(x > 0.5 for x in below) > len(below) and min(below) > 0.5
    return Found(measured, verdict(min(below) == 1, most))


def _proxies(model: LanguageModel | None, kept: float):
    return measures.proxies(model or models.default(), kept)


# In the limit -----------------------------------------------------------------------------------------


def largest_eigenvalue_is_one() -> Found:
    seconds = []
    for seed in range(50):
        values = _random(12, 1, seed, width=2 if seed % 2 else None)[0].diagonal().sort(descending=True).values
        seconds.append(float(values[1]) if abs(float(values[0]) - 1) < 1e-12 else 2.0)
    measured = f"50 random matrices of 12 tokens: largest 1 in all, second at most {max(seconds):.4f}"
    return Found(measured, verdict(max(seconds) < 1))


def products_stay_stochastic() -> Found:
    worst = 0.0
    for seed in range(50):
        product = influence(_random(12, 8, seed), 0.25)
        worst = max(worst, float((product.sum(1) - 1).abs().max()), float(product.triu(1).abs().max()))
    return Found(f"50 products of 8 layers: largest deviation {worst:.0e}", verdict(worst < 1e-12))


def bound_tends_to_the_first_token() -> Found:
    worst = min(
        float(influence([_random(12, 1, seed, width)[0]] * 5 * FOREVER, 0.5)[:, 0].min())
        for seed in range(10)
        for width in (None, 2)
    )
    measured = f"20 random matrices of 12 tokens, {5 * FOREVER} layers: the first token's share is at least {worst:.6f}"
    return Found(measured, verdict(worst > 1 - 1e-6))


def product_is_diagonalizable() -> Found:
    matrix = uniform(window_mask(5, 2))
    eigenvectors = 5 - int(torch.linalg.matrix_rank(matrix - 0.5 * torch.eye(5, dtype=torch.float64)))
    times = int((matrix.diagonal() == 0.5).sum())
    measured = (
        f"window of 2, 5 tokens: eigenvalue 1/2 stands {times} times on the diagonal and has {eigenvectors} eigenvector"
    )
    return Found(measured, verdict(eigenvectors == times))


def _decays(rates: dict[int, float], matrix: torch.Tensor) -> float:
    """The largest share of token j > 0 in the last row, over what the claimed rate allows, from the middle of the run on."""
    worst, power = 0.0, matrix
    reference = {}
    for t in range(2, 121):
        power = matrix @ power
        for j, rate in rates.items():
            allowed = float(power[-1, j]) / max(rate**t, 1e-300)
            if t == 60:
                reference[j] = allowed
            elif t > 60 and float(power[-1, j]) > 1e-250:
                worst = max(worst, allowed / (reference[j] * (1 + 1e-9)))
    return worst


def causal_mask_ends_at_the_first_token() -> Found:
    worst, first = 0.0, 1.0
    for seed in range(10):
        matrix = _random(12, 1, seed)[0]
        least = float(matrix[causal_mask(12)].min())
        worst = max(worst, _decays({j: 1 - j * least for j in range(1, 12)}, matrix))
        first = min(first, float(influence([matrix] * FOREVER)[:, 0].min()))
    measured = f"10 random matrices of 12 tokens: first token at least {first:.6f} after {FOREVER} layers; a share over what the claimed rate allows: {worst:.2f} at most"
    return Found(measured, verdict(first > 1 - 1e-6 and worst <= 1, first > 1 - 1e-6))


def window_has_the_same_limit() -> Found:
    first, worst, width, n = 1.0, 0.0, 3, 12
    reach = math.ceil((n - 1) / (width - 1))
    for seed in range(10):
        matrix = _random(n, 1, seed, width)[0]
        least = float(matrix[window_mask(n, width)].min())
        rates = {j: (1 - j * least**reach) ** (1 / (2 * reach)) for j in range(1, n)}
        worst = max(worst, _decays(rates, matrix))
        first = min(first, float(influence([matrix] * FOREVER)[:, 0].min()))
    layers = {
        name: next(k for k in range(1, 999) if float(influence([matrix] * k)[-1, 0]) > 0.5)
        for name, matrix in (("window", uniform(window_mask(32, 4))), ("causal", uniform(causal_mask(32))))
    }
    measured = (
        f"windows of 3: first token at least {first:.6f} after {FOREVER} layers, a share over what the claimed rate allows: {worst:.2f} at most; "
        f"uniform, 32 tokens: it has half after {layers['causal']} layers, with a window of 4 after {layers['window']}"
    )
    limit = first > 1 - 1e-6 and layers["window"] > layers["causal"]
    return Found(measured, verdict(limit and worst <= 1, limit))


def prefix_takes_all() -> Found:
    mask, prefix = attention.prefix_mask(12, 4), 4
    logits = torch.randn(10, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    maps = logits.masked_fill(~mask, -math.inf).softmax(-1)
    limits = [influence([m] * FOREVER) for m in maps]
    total, least = (min(float(f(m[:, :prefix])) for m in limits) for f in (lambda p: p.sum(1).min(), torch.min))
    worst = max(_decays({j: 1 - (j + 1 - prefix) * float(m[mask].min()) for j in range(prefix, 12)}, m) for m in maps)
    measured = (
        f"prefix of 4, 10 random matrices: together at least {total:.6f}, each at least {least:.3f}; a share over what the claimed rate allows: "
        f"{worst:.2f} at most"
    )
    limit = total > 1 - 1e-6 and least > 0.01
    return Found(measured, verdict(limit and worst <= 1, limit))


def decay_mask_decays() -> Found:
    position, mask, rate = torch.arange(64.0, dtype=torch.float64), causal_mask(64), 0.3
    distance = (position[:, None] - position).clamp(min=0)
    logits = torch.rand(10, 64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    maps = (logits - rate * distance).masked_fill(~mask, -math.inf).softmax(-1)
    constants = (maps * (rate * distance).exp())[:, mask]
    low, high = float(constants.min()), float(constants.max())
    measured = f"weight times e^(0.3 Δ) between {low:.3f} and {high:.3f}, up to Δ = 63"
    # a row's sum is between e^-1 and e / (1 - e^-c); logits within 1 of 0
    return Found(measured, verdict(low >= (1 - math.exp(-rate)) * math.exp(-2) and high <= math.exp(2)))


def critical_distance_of_decay() -> Found:
    numbers = {}
    for layers, rate in ((12, 0.1), (12, 0.5), (12, 1.0), (32, 1.0)):
        row = influence([attention.decay(400, rate)] * (layers + 1))[-1].flip(0)
        formula = attention.critical_distance(layers, rate)
        numbers[f"t = {layers}, c = {rate:g}"] = (formula, float(row[:399].argmax()))
    measured = "400 tokens, distance of the largest influence: " + ", ".join(
        f"{found:.0f} at {name} (formula {formula:.2f})" for name, (formula, found) in numbers.items()
    )
    return Found(measured, verdict(all(abs(a - b) <= 1 for a, b in numbers.values())), numbers)


def slow_rotation_decays() -> Found:
    distance = torch.arange(64, dtype=torch.float64)

    def row(theta: float) -> torch.Tensor:
        return (4 * torch.cos(theta * distance)).softmax(0)

    slow, fast = row(math.pi / 64), row(1.0)
    falls = bool((slow[1:] < slow[:-1]).all())
    # of log(p(0) / p(x)) / x^2: bounded above and below is Gaussian-like
    rates = (slow[0] / slow[1:]).log() / (distance[1:] * math.pi / 64) ** 2
    back = int(fast[1:].argmax()) + 1
    measured = (
        f"64 tokens, θ = π/64: falls at every step, log-ratio over x²θ² between {float(rates.min()):.2f} and "
        f"{float(rates.max()):.2f}; with θ = 1, outside the theorem, distance {back} has {float(fast[back] / fast[0]):.2f} of the own weight"
    )
    return Found(measured, verdict(falls and float(rates.min()) > 0.5))


def residual_gives_a_u() -> Found:
    rows = {share: influence([uniform(causal_mask(32))] * 8, share)[-1] for share in (0.0, 0.8)}
    u, plain = rows[0.8], rows[0.0]
    is_u = min(float(u[0]), float(u[-1])) > 2 * float(u[16])
    measured = (
        f"32 tokens, 8 uniform layers: residual 0.8 first {float(u[0]):.3f}, middle {float(u[16]):.4f}, last {float(u[-1]):.3f}; "
        f"without, first {float(plain[0]):.3f}, last {float(plain[-1]):.1g}"
    )
    return Found(measured, verdict(is_u and float(plain[-1]) < float(plain[16])))


# Sinks ---------------------------------------------------------------------------------------------


def first_token_is_a_sink(model: LanguageModel | None = None) -> Found:
    table = _sinks(model)
    share = float(table.loc[("natural", "yes"), "sink heads"])
    numbers = {f"sink heads on text, Llama2-7B against {called(model)} (%)": (92.47, round(100 * share, 1))}
    measured = (
        f"{called(model)}, 64 tokens: sink score above 0.3 in {share:.0%} of heads on text with a first token, "
        f"{table.loc[('natural', 'no'), 'sink heads']:.0%} without one; mean {table.loc[('natural', 'yes'), 'mean sink score']:.2f} (uniform 0.07)"
    )
    return Found(measured, verdict(share > 0.5, share > 0.2), numbers)


def repeated_tokens_have_no_sink(model: LanguageModel | None = None) -> Found:
    table = _sinks(model)
    without, with_first = (float(table.loc[("repeated", first), "sink heads"]) for first in ("no", "yes"))
    measured = f"{called(model)}, 64 equal tokens: {without:.1%} of heads; with the model's first token in front {with_first:.0%}"
    numbers = {f"sink heads, repeated tokens, Llama2-7B against {called(model)} (%)": (0.0, round(100 * without, 1))}
    return Found(measured, verdict(without < 0.05), numbers)


@cache
def _sinks(model: LanguageModel | None):
    return measures.sink_table(model or models.default()).set_index(["text", "first token"])


def massive_activations_go_with_the_sink(model: LanguageModel | None = None) -> Found:
    plain, early, late = (_hiding(*which, model) for which in ((0, 1), (1, 1), (1, 25)))
    measured = (
        f"{called(model)}, 7 texts, half depth: the state of token 1 is {plain['times'].min():.0f} to "
        f"{plain['times'].max():.0f} times the median and gets {plain['attention'].mean():.0%} of the attention; hidden "
        f"from the start, token {' or '.join(map(str, sorted(set(early['heir']))))} is {early['times'].min():.0f} to "
        f"{early['times'].max():.0f} times the median and gets {early['attention'].mean():.0%}; hidden from token 25 on, "
        f"the largest other state is {late['times'].min():.1f} to {late['times'].max():.1f} times the median and gets "
        f"{late['attention'].mean():.1%}"
    )
    moves = early["times"].min() > 50 and early["attention"].min() > 0.2
    stays_away = late["times"].max() < 10 and late["attention"].max() < 0.1
    return Found(measured, verdict(bool(moves and stays_away), bool(moves)))


def _hiding(token: int, since: int, model: LanguageModel | None):
    """The rows of one experiment, one a text."""
    return measures.case(measures.hiding_table(model or models.default()), token, since)


def sink_values_are_small(model: LanguageModel | None = None) -> Found:
    ratios = torch.stack(
        [_value_ratio(tokens, model) for tokens in measures.texts(model or models.default(), measures.TOKENS).values()]
    )
    middle, small = float(ratios.median()), float((ratios < 0.5).double().mean())
    measured = (
        f"{called(model)}: what token 1 hands over in a head is {middle:.2f} of the other tokens' mean norm (median over "
        f"heads and texts), below one half in {small:.0%} of them"
    )
    return Found(measured, verdict(middle < 0.5 and small > 0.9, middle < 1))


def _value_ratio(tokens: torch.Tensor, model: LanguageModel | None) -> torch.Tensor:
    return measures.value_ratios(model or models.default(), tokens)


def sinks_slow_mixing(model: LanguageModel | None = None) -> Found:
    plain = _hiding(0, 1, model)["spread"]
    late, early, control = (
        _hiding(*which, model)["spread"] / plain for which in ((1, 25), (1, 1), (measures.CONTROL, 25))
    )
    kept = measures.measured_share()
    toy = [float(influence([attention.sink(32, p)] * measures.LAYERS_READ, kept)[-1, 4]) for p in (0, 0.8)]
    measured = (
        f"{called(model)}, 7 texts: with the sink hidden from token 25 on a replaced token moves later states "
        f"{late.min():.2f} to {late.max():.2f} times as far; hidden from the start, when token 2 takes its place, "
        f"{early.min():.2f} to {early.max():.2f}; token 6 hidden {control.min():.2f} to {control.max():.2f}; toy: "
        f"influence {toy[0]:.3f} without a sink, {number(toy[1])} with a share of 0.8"
    )
    further = toy[1] < toy[0] and late.mean() > max(early.mean(), control.mean())
    apart = late.min() > max(early.max(), control.max())
    if model is None:  # taken apart for the embedded model alone
        parts = _parts()
        spread, loss = (parts[name].groupby("change").mean() for name in ("spread", "loss"))
        measured += (
            f"; its value alone zeroed {spread['value']:.2f} (loss {loss['value']:+.2f} nats, hidden {loss['mass']:+.2f}), a "
            f"fifth of the heads off {spread['heads']:.2f} ({loss['heads']:+.2f})"
        )
        controls = parts.loc[["value", "heads"]]["spread"].groupby("text").max()
        further &= spread["mass"] > max(spread["value"], spread["heads"])
        apart &= bool((parts.loc["mass"]["spread"] > controls).all())
    return Found(measured, verdict(bool(further and apart), bool(further)))


def _parts():
    return measures.brake_table()


def hiding_the_sink_breaks_the_model(model: LanguageModel | None = None) -> Found:
    plain = _hiding(0, 1, model)["loss"]
    late, early, control = (
        _hiding(*which, model)["loss"] - plain for which in ((1, 25), (1, 1), (measures.CONTROL, 25))
    )
    measured = (
        f"{called(model)}, 7 texts, loss after token 64: hidden from token 25 on {late.min():+.2f} to {late.max():+.2f} nats "
        f"(token 6: {control.max():+.2f} at most), hidden from all {early.min():+.2f} to {early.max():+.2f}: then the "
        f"second token is the sink"
    )
    numbers = {
        f"perplexity ratio, Llama-2-13B against {called(model)}": (5158.07 / 5.40, round(math.exp(late.mean()), 1))
    }
    breaks = late.min() > max(0.5, 5 * control.max())
    return Found(measured, verdict(bool(breaks and early.min() > 0.5), bool(breaks)), numbers)
