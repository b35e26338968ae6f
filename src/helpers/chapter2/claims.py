"""The claims of chapter 2's sources, each measured by a small function."""

import math
from functools import cache

import torch

from helpers import attention, models
from helpers.attention import causal_mask, influence, uniform, window_mask
from helpers.chapter2 import measures
from helpers.claims import Found, claim, verdict
from helpers.sources import BARBERO, BARBERO_SINK, COURSE, GU, TALK, WU, XIAO

LESSON, LAB = "2-causal-attention/lesson#", "2-causal-attention/lab#"
FOREVER = 400  # layers that stand for the limit


def _random(n: int, layers: int, seed: int = 0, width: int | None = None) -> torch.Tensor:
    """Random attention with logits of standard deviation 1."""
    logits = torch.randn(layers, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mask = causal_mask(n) if width is None else window_mask(n, width)
    return logits.masked_fill(~mask, -math.inf).softmax(-1)


@cache
def _model() -> models.LanguageModel:
    return models.load()


# The graph ------------------------------------------------------------------------------------------


@claim(
    source=TALK,
    where="slide “Over-Squashing in Graph Neural Networks”, notes",
    statement="The bottleneck of causal attention is not severe",
    reported="graph learning would recommend it; no numbers",
    shown=LESSON + "Five graphs, one ruler",
)
def causal_attention_is_no_bottleneck() -> Found:
    table = measures.compare_connections()
    causal, others = table.loc["causal attention"], table.drop("causal attention")
    reaches = causal["hops"] == 1 and causal["resistance"] < others["resistance"].min()
    reaches = reaches and causal["influence"] > others["influence"].max()
    heard = [float(measures.heard(influence([uniform(causal_mask(31))] * k)[-1])) for k in (1, 4, 16)]
    measured = (
        f"31 tokens: 1 hop, resistance {causal['resistance']:.3f} (tree {table.loc['tree', 'resistance']:.0f}), one of "
        f"{causal['paths']:.2g} paths; but after 1, 4 and 16 uniform layers the last token hears as if "
        f"{heard[0]:.0f}, {heard[1]:.1f} and {heard[2]:.1f} tokens"
    )
    return Found(measured, verdict(reaches and heard[2] > 15, reaches))


@claim(
    source=TALK,
    where="slide “Over-Squashing in Large Language Models”, notes",
    statement="Over-squashing in graphs and in language models are not the same",
    reported="must not be conflated; no numbers",
    shown=LESSON + "Five graphs, one ruler",
)
def two_kinds_of_squashing() -> Found:
    connections = measures.connections(31)
    shares = {}
    for name in ("tree", "causal attention"):
        matrix, read, far = connections[name]
        rows = [influence([matrix] * k, 0.5)[read] for k in (8, 16, 32)]
        shares[name] = [(float(row[far]), float(row[read])) for row in rows]
    causal, tree = shares["causal attention"], shares["tree"]
    measured = "influence of the farthest node and of the own state after 8, 16, 32 layers: " + "; ".join(
        f"{name} " + ", ".join(f"{f:.2g} and {o:.2g}" for f, o in pairs)
        for name, pairs in (("tree", tree), ("causal attention, first token", causal))
    )
    return Found(measured, verdict(all(f < o for f, o in tree) and all(f > o for f, o in causal)))


@claim(
    source=BARBERO,
    where="Theorem B.5, as its proof supports it",
    statement="The path sum bounds the Jacobian of the value path, attention held fixed",
    reported="C times the product of A / β₁ + I",
    shown=LESSON + "The bound beside the Jacobian",
)
def bound_with_attention_fixed() -> Found:
    ratios = _ratios("attention fixed")
    measured = (
        f"random decoders of 3 layers, 12 tokens, 4 sharpnesses × 5 seeds: at most {max(ratios):.2f} of the bound"
    )
    return Found(measured, verdict(max(ratios) <= 1))


@claim(
    source=COURSE,
    where="Theorem 5.1 of Barbero et al. (2024), read without “attention held fixed”",
    statement="The path sum bounds the true Jacobian of a decoder",
    reported="not claimed: the authors treat attention as constant",
    shown=LESSON + "The bound beside the Jacobian",
)
def bound_of_the_true_jacobian() -> Found:
    ratios = _ratios("true")
    over = sum(ratio > 1 for ratio in ratios)
    measured = (
        f"the same decoders: exceeded in {over} of {len(ratios)}, by up to {max(ratios):.1f} times (sharp attention)"
    )
    return Found(measured, verdict(over == 0))


def _ratios(column: str) -> list[float]:
    """For each random decoder, the largest share of the bound that a token's Jacobian takes."""
    tables = [measures.bound_and_truth(s, seed=seed) for s in (0.0, 1.0, 4.0, 16.0) for seed in range(5)]
    return [float((table[column] / table["bound"]).max()) for table in tables]


@claim(
    source=BARBERO,
    where="Eqs. 1 and 4",
    statement="The influence of a token is the sum over i ≤ k₁ ≤ … ≤ k_L as printed",
    reported="L indices for L layers",
    shown=LESSON + "The printed sum counts paths that do not exist",
)
def printed_sum_is_the_product() -> Found:
    maps = [uniform(causal_mask(5))] * 3
    printed, product = attention.printed_path_sum(maps), attention.influence_bound(maps, slope=0.0)[-1]
    measured = f"n = 5, 3 layers, first token: printed {printed[0]:.4f}, product {product[0]:.4f}"
    numbers = {"first token, printed sum against product": (float(printed[0]), float(product[0]))}
    return Found(measured, verdict(torch.allclose(printed, product)), numbers)


@claim(
    source=BARBERO,
    where="Theorem 5.1 and Figure 1",
    statement="Tokens that come earlier have more influence on the last one",
    reported="more paths lead from early tokens",
    shown=LAB + "What the last state feels",
)
def early_tokens_have_more_influence() -> Found:
    row = influence([uniform(causal_mask(48))] * 6)[-1]
    monotone = bool((row[1:] < row[:-1]).all())
    exact = torch.tensor(measures.exact_sensitivities()["norm"].to_numpy())
    thirds = [float(part.mean()) for part in exact.split(16)]
    order = measures.rank_correlation(torch.arange(48).double(), exact)
    measured = (
        f"uniform attention: falls with every position; SmolLM2-135M, 48 tokens, exact Jacobian: mean norm "
        f"{thirds[0]:.1f}, {thirds[1]:.1f}, {thirds[2]:.1f} by thirds, {float(exact[-1]):.0f} for the last token "
        f"(rank correlation with position {order:.2f})"
    )
    whole = monotone and thirds[0] > thirds[1] > thirds[2] and float(exact.argmax()) == 0
    return Found(measured, verdict(whole, monotone and order < 0))


# In the limit -----------------------------------------------------------------------------------------


@claim(
    source=BARBERO,
    where="Lemma B.6",
    statement="A row-stochastic triangular matrix has largest eigenvalue 1, and only one if rows but the first have two entries",
    reported="for all such matrices",
    shown=LESSON + "In the limit, one token",
)
def largest_eigenvalue_is_one() -> Found:
    seconds = []
    for seed in range(50):
        values = _random(12, 1, seed, width=2 if seed % 2 else None)[0].diagonal().sort(descending=True).values
        seconds.append(float(values[1]) if abs(float(values[0]) - 1) < 1e-12 else 2.0)
    measured = f"50 random matrices of 12 tokens: largest 1 in all, second at most {max(seconds):.4f}"
    return Found(measured, verdict(max(seconds) < 1))


@claim(
    source=BARBERO,
    where="Lemma B.7",
    statement="Products of row-stochastic triangular matrices are row-stochastic and triangular",
    reported="for all such matrices",
    shown=LESSON + "In the limit, one token",
)
def products_stay_stochastic() -> Found:
    worst = 0.0
    for seed in range(50):
        product = influence(_random(12, 8, seed), 0.25)
        worst = max(worst, float((product.sum(1) - 1).abs().max()), float(product.triu(1).abs().max()))
    return Found(f"50 products of 8 layers: largest deviation {worst:.0e}", verdict(worst < 1e-12))


@claim(
    source=BARBERO,
    where="Proposition B.8",
    statement="With norms of one, the bound tends to a matrix whose first column is 1",
    reported="(½ (Λ + I))^L for L → ∞",
    shown=LESSON + "In the limit, one token",
)
def bound_tends_to_the_first_token() -> Found:
    worst = min(
        float(influence([_random(12, 1, seed, width)[0]] * 5 * FOREVER, 0.5)[:, 0].min())
        for seed in range(10)
        for width in (None, 2)
    )
    measured = f"20 random matrices of 12 tokens, {5 * FOREVER} layers: the first token's share is at least {worst:.6f}"
    return Found(measured, verdict(worst > 1 - 1e-6))


@claim(
    source=BARBERO,
    where="proof of Proposition B.8",
    statement="The product is diagonalizable",
    reported="used in the proof",
    shown=LESSON + "In the limit, one token",
)
def product_is_diagonalizable() -> Found:
    matrix = uniform(window_mask(5, 2))
    eigenvectors = 5 - int(torch.linalg.matrix_rank(matrix - 0.5 * torch.eye(5, dtype=torch.float64)))
    times = int((matrix.diagonal() == 0.5).sum())
    measured = (
        f"window of 2, 5 tokens: eigenvalue 1/2 stands {times} times on the diagonal and has {eigenvectors} eigenvector"
    )
    return Found(measured, verdict(eigenvectors == times))


def _decays(rates: dict[int, float], matrix: torch.Tensor, slack: float = 1e-9) -> float:
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
                worst = max(worst, allowed / (reference[j] + slack * reference[j]))
    return worst


@claim(
    source=WU,
    where="Theorem 4.1",
    statement="Under the causal mask the first token takes all, and token j (from 1) decays at least like (1 - (j - 1) ε)^t",
    reported="P(z_i = j) ≤ C (1 - (j - 1) ε)^t",
    shown=LESSON + "Masks decide where it ends",
)
def causal_mask_ends_at_the_first_token() -> Found:
    worst, first = 0.0, 1.0
    for seed in range(10):
        matrix = _random(12, 1, seed)[0]
        least = float(matrix[causal_mask(12)].min())
        worst = max(worst, _decays({j: 1 - j * least for j in range(1, 12)}, matrix))
        first = min(first, float(influence([matrix] * FOREVER)[:, 0].min()))
    measured = f"10 random matrices of 12 tokens: first token at least {first:.6f} after {FOREVER} layers; over the claimed rate {worst:.2f} at most"
    return Found(measured, verdict(first > 1 - 1e-6 and worst <= 1, first > 1 - 1e-6))


@claim(
    source=WU,
    where="Theorem 4.2",
    statement="A sliding window has the same limit, only more slowly",
    reported="P ≤ C (1 - (j - 1) ε^k)^(t / 2k), k = ⌈(N - 1)/(w - 1)⌉",
    shown=LESSON + "Masks decide where it ends",
)
def window_has_the_same_limit() -> Found:
    first = min(float(influence([_random(12, 1, seed, width=3)[0]] * FOREVER)[:, 0].min()) for seed in range(10))
    layers = {
        name: next(k for k in range(1, 999) if float(influence([matrix] * k)[-1, 0]) > 0.5)
        for name, matrix in (("window", uniform(window_mask(32, 4))), ("causal", uniform(causal_mask(32))))
    }
    measured = (
        f"windows of 3: first token at least {first:.6f} after {FOREVER} layers; uniform, 32 tokens: it has half after "
        f"{layers['causal']} layers, with a window of 4 after {layers['window']}"
    )
    return Found(measured, verdict(first > 1 - 1e-6 and layers["window"] > layers["causal"]))


@claim(
    source=WU,
    where="Theorem 4.3",
    statement="Under a prefix mask the prefix takes all, and each of its tokens keeps a share",
    reported="P(z_i ∈ [K]) → 1, lim inf P(z_i = k) ≥ κ > 0",
    shown=LESSON + "Masks decide where it ends",
)
def prefix_takes_all() -> Found:
    mask = attention.prefix_mask(12, 4)
    logits = torch.randn(10, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    limits = [influence([m] * FOREVER) for m in logits.masked_fill(~mask, -math.inf).softmax(-1)]
    total, least = (min(float(f(m[:, :4])) for m in limits) for f in (lambda p: p.sum(1).min(), torch.min))
    measured = f"prefix of 4, 10 random matrices: together at least {total:.6f}, each at least {least:.3f}"
    return Found(measured, verdict(total > 1 - 1e-6 and least > 0.01))


@claim(
    source=WU,
    where="Theorem 4.5",
    statement="Under a decay mask the most influential token is about t / (e^m - 1) away",
    reported="x* = t / (e^m - 1)",
    shown=LESSON + "Decay moves the peak, and does not keep it",
)
def critical_distance_of_decay() -> Found:
    numbers = {}
    for layers, rate in ((12, 0.1), (12, 0.5), (12, 1.0), (32, 1.0)):
        row = influence([attention.decay(400, rate)] * (layers + 1))[-1].flip(0)
        formula = attention.critical_distance(layers, rate)
        numbers[f"t = {layers}, m = {rate:g}"] = (formula, float(row[:399].argmax()))
    measured = "400 tokens, distance of the largest influence: " + ", ".join(
        f"{found:.0f} at {name} (formula {formula:.2f})" for name, (formula, found) in numbers.items()
    )
    return Found(measured, verdict(all(abs(a - b) <= 1 for a, b in numbers.values())), numbers)


@claim(
    source=WU,
    where="Theorem 4.6",
    statement="Two-dimensional RoPE with a slow rotation makes attention decay with distance",
    reported="like exp(-c x² θ²), while the angles stay below π",
    shown=LESSON + "Masks decide where it ends",
)
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


@claim(
    source=COURSE,
    where="Wu et al. (2025), with a residual",
    statement="Mask and residual alone give a U: the first and the last token lead",
    reported="the theorems have no residual, hence no recency",
    shown=LESSON + "A residual turns it into a U",
)
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


@claim(
    source=GU,
    where="section 3, and the talk",
    statement="Language models give the first token much attention",
    reported="sink heads: 77 to 99 % on text",
    shown=LAB + "The sink, by text",
)
def first_token_is_a_sink() -> Found:
    table = _sinks()
    share = float(table.loc[("natural", "yes"), "sink heads"])
    numbers = {"sink heads on text, Llama2-7B against SmolLM2-135M (%)": (92.47, round(100 * share, 1))}
    measured = (
        f"SmolLM2-135M, 64 tokens: sink score above 0.3 in {share:.0%} of heads on text with a first token, "
        f"{table.loc[('natural', 'no'), 'sink heads']:.0%} without one; mean {table.loc[('natural', 'yes'), 'mean score']:.2f} (uniform 0.07)"
    )
    return Found(measured, verdict(share > 0.5, share > 0.2), numbers)


@claim(
    source=GU,
    where="Table 1",
    statement="Without a special first token, repeated tokens have no sink",
    reported="Mistral and Llama 0 %, GPT-2 62 %",
    shown=LAB + "The sink, by text",
)
def repeated_tokens_have_no_sink() -> Found:
    table = _sinks()
    without, with_first = (float(table.loc[("repeated", first), "sink heads"]) for first in ("no", "yes"))
    measured = (
        f"SmolLM2-135M, 64 equal tokens: {without:.1%} of heads; with the model's first token in front {with_first:.0%}"
    )
    numbers = {"sink heads, repeated tokens, Llama2-7B against SmolLM2-135M (%)": (0.0, round(100 * without, 1))}
    return Found(measured, verdict(without < 0.05), numbers)


@cache
def _sinks():
    return measures.sink_table(_model()).set_index(["text", "first token"])


@claim(
    source=BARBERO_SINK,
    where="section 3",
    statement="A sink slows the mixing of tokens",
    reported="a changed token spreads further without one",
    shown=LAB + "A brake on mixing",
)
def sinks_slow_mixing() -> Found:
    (_, plain), (_, hidden), (_, control) = (_without(hide) for hide in (None, 0, 5))
    wider, other = (hidden[-1] / plain[-1]).item(), (control[-1] / plain[-1]).item()
    toy = [float(influence([attention.sink(32, p)] * 8, 0.5)[-1, 4]) for p in (0, 0.8)]
    measured = (
        f"SmolLM2-135M, 128 tokens, sink hidden from position 24 on: one changed token moves later states {wider:.2f} times "
        f"as far (token 5 hidden: {other:.2f}); toy: influence {toy[0]:.3f} without a sink, {toy[1]:.4f} with a share of 0.8"
    )
    return Found(measured, verdict(wider > 1.1 > other and toy[1] < toy[0]))


@claim(
    source=XIAO,
    where="Tables 1 and 2",
    statement="Removing the first tokens from view breaks the model",
    reported="Llama-2-13B: perplexity 5158 instead of 5.40",
    shown=LAB + "Hide it early, hide it late",
)
def hiding_the_sink_breaks_the_model() -> Found:
    plain, late, early, control = (_without(*which)[0] for which in ((None,), (0,), (0, 1), (5,)))
    measured = (
        f"SmolLM2-135M, loss after token 32: {plain:.2f}; first token hidden from position 24 on {late:.2f} (token 5: "
        f"{control:.2f}), hidden from all {early:.2f}: then the second token is the sink"
    )
    numbers = {"perplexity ratio, Llama-2-13B against SmolLM2-135M": (5158.07 / 5.40, math.exp(late - plain))}
    breaks = late > plain + 1 and control < plain + 0.1
    return Found(measured, verdict(breaks and early > plain + 1, breaks), numbers)


@cache
def _without(hide: int | None, since: int = 24):
    return measures.without_sink(_model(), hide, since)
