"""The questions: each answer is worked out in another way, rests on a page, and its marks and its paper add up."""

import itertools
import json
import math
import re
from fractions import Fraction

import examination
import networkx as nx
import numpy as np
import pytest
import scipy.stats
import torch
from conftest import ROOT

from book import editions, families, questions, units

ROWS = questions.load()
FORMS = {
    name: [questions.fill(row, drawn) for drawn in questions.choices(row)]
    for name, row in ROWS.items()
}
WORKED = {}  # by id a function from what was drawn to texts that the answer must have


def works(function):
    WORKED[function.__name__.replace("_", "-")] = function
    return function


def said(value: Fraction) -> str:
    return (
        str(value)
        if value.denominator == 1
        else rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"
    )


def near(text: str, value: float, within: float = 0.006) -> str:
    """The number that a text says nearest to a value, if that is near enough."""
    numbers = {
        found: float(found.replace("{,}", ""))
        for found in re.findall(r"\d+(?:\{,\}\d{3})*(?:\.\d+)?", text)
    }
    found = min(numbers, key=lambda each: abs(numbers[each] - value))
    assert math.isclose(numbers[found], value, rel_tol=within, abs_tol=0.0006), (
        f"{value} is not in: {text}"
    )
    return found


def causal(n: int) -> np.ndarray:
    """Uniform causal attention."""
    return np.tri(n) / np.arange(1, n + 1)[:, None]


# 1. Over-squashing -----------------------------------------------------------------------------------------


@works
def path_factor(n, answer, **_):
    walks, layers = {0: Fraction(1)}, n - 1  # what node 0 gives each node, a layer at a time
    for _layer in range(layers):
        walks = {
            v: sum(walks.get(u, Fraction(0)) for u in (v - 1, v, v + 1) if 0 <= u < n)
            / (2 if v in (0, n - 1) else 3)
            for v in range(n)
        }
    return [said(walks[n - 1]), near(answer, float(walks[n - 1]))]


@works
def tree_leaves(r, **_):
    tree = nx.balanced_tree(2, r)
    return [f"= {sum(degree == 1 for _, degree in tree.degree)}$"]


@works
def arrives_not_told(m, rule, **_):
    act = {"sum": torch.sum, "mean": torch.mean}[rule]
    x = torch.arange(1.0, m + 1, requires_grad=True)
    (slope,) = torch.autograd.grad(act(x), x)
    assert math.isclose(act(x), act(x.flip(0)), rel_tol=1e-6)
    return [f"${'1' if slope[0] == 1 else f'1/{round(1 / float(slope[0]))}'}$"]


@works
def barbell(n, **_):
    graph = nx.barbell_graph(n, 0)
    share = 1 / graph.degree[n - 1]
    return [{3: "Three hops"}[nx.diameter(graph)], rf"\tfrac{{1}}{{{round(1 / share)}}}"]


@works
def resistance_width(m, k, **_):
    graph = nx.Graph()
    for path in range(m):
        nx.add_path(graph, ["a", *((path, step) for step in range(1, k)), "b"])
    value = Fraction(nx.resistance_distance(graph, "a", "b")).limit_denominator(99)
    written = f"{k}/{m}" if math.gcd(k, m) == 1 else f"= {said(value)}"
    assert value == Fraction(k, m)
    return [f"distance is {nx.shortest_path_length(graph, 'a', 'b')},", written]


@works
def deeper_wider(**_):
    """A mean with self-loops: the far input's part rises until it is as large as all others; a wider network hears more."""
    A = nx.to_numpy_array(nx.path_graph(5)) + np.eye(5)
    A /= A.sum(1, keepdims=True)
    far = [np.linalg.matrix_power(A, layers)[4, 0] for layers in (4, 8, 16, 400)]
    assert far == sorted(far)
    last = np.linalg.matrix_power(A, 400)
    assert np.allclose(last, last[0]), "nothing is told apart"
    neighbours = np.array([1, 2, 2, 2, 1]) + 1
    assert np.allclose(last[0], neighbours / neighbours.sum()), "inputs do not count alike"
    heard = {}
    for width in (16, 128):
        norms = []
        for seed in range(5):
            torch.manual_seed(seed)
            draws = [torch.randn(width, width).double() * width**-0.5 for _ in range(4)]

            def run(x, draws=draws):
                for W in draws:
                    x = torch.tanh(torch.tensor(A) @ x @ W)
                return x[4]

            J = torch.autograd.functional.jacobian(run, torch.randn(5, width).double() * 0.3)
            norms.append((float(J[:, 0].norm()), float(J[:, 4].norm())))
        heard[width] = np.mean(norms, axis=0)
    assert (heard[128] > heard[16]).all(), "wider: more of the far input, and more of every one"
    return [
        "More layers raise the effect",
        "neighbours plus one",
        "every input has a larger effect",
    ]


@works
def normalisation(a, b, answer, **_):
    rng = np.random.default_rng(0)
    graph = nx.random_labeled_tree(40, seed=1)
    degree = dict(graph.degree)
    for _walk in range(20):
        walk = [int(rng.integers(40))]
        for _step in range(9):
            walk.append(int(rng.choice(list(graph[walk[-1]]))))
        row = math.prod(1 / degree[u] for u in walk[:-1])
        symmetric = math.prod((degree[u] * degree[v]) ** -0.5 for u, v in itertools.pairwise(walk))
        assert math.isclose(symmetric / row, math.sqrt(degree[walk[0]] / degree[walk[-1]]))
    near(answer, (a / b) ** 0.5)
    return [f"$1/{a}$", rf"\sqrt{{{a * b}}}", r"\sqrt{d_u/d_v}"]


@works
def one_hop(**_):
    assert np.allclose(causal(50)[-1], 1 / 50)
    assert np.linalg.matrix_power(causal(50), 30)[-1, 0] > 0.99
    return ["$1/n$", "the first token takes nearly all"]


# 2. Causal attention ---------------------------------------------------------------------------------------


@works
def uniform_two_layers(n, **_):
    A = [[Fraction(int(i <= j), j + 1) for i in range(n)] for j in range(n)]
    return [said(A[-1][0]), said(sum(A[-1][k] * A[k][0] for k in range(n)))]


@works
def limit_of_a_mask(mask, **_):
    n = 12
    i, j = np.arange(n), np.arange(n)[:, None]
    seen = i <= j
    if "window" in mask:
        seen &= j - i < 4
    if "first 3" in mask:
        seen |= (i < 3) & (j < 3)
    end = np.linalg.matrix_power(seen / seen.sum(1, keepdims=True), 5000)[-1]
    left = [int(k) for k in np.flatnonzero(end > 1e-9)]
    assert left in ([0], [0, 1, 2])
    return ["Only the first token" if left == [0] else "The first three tokens, which share it"]


@works
def window_reach(w, L, **_):
    n = 60
    graph = nx.DiGraph((j, i) for j in range(n) for i in range(max(0, j - w + 1), j + 1))
    reached = nx.single_source_shortest_path_length(graph, n - 1, cutoff=L)
    return [f"= {n - 1 - min(reached)}$"]


@works
def paths(L, i, n, **_):
    count = np.linalg.matrix_power(np.tri(n, dtype=int), L)[n - 1, i - 1]
    return [r"\binom{n - i + L - 1}{L - 1}", f"here {count}."]


@works
def residual_own(r, n, L, answer, **_):
    row = np.linalg.matrix_power((1 - r) * causal(n) + r * np.eye(n), L)[-1]
    assert row[n // 2] < min(row[0], row[-1]), "a U"
    return [near(answer, row[-1])]


@works
def sink_score(n, answer, **_):
    score = causal(n)[:, 0].mean()
    assert score > 0.35
    return [near(answer, score)]


@works
def decay_peak(c, L, answer, **_):
    weights = [math.comb(L - 1 + x, x) * math.exp(-c * x) for x in range(2000)]
    best = weights.index(max(weights))
    peak = int(re.search(r"approx (\d+)\$", answer)[1])
    assert abs(best - peak) <= 1
    return [str(peak)]


# 3. Representational collapse ------------------------------------------------------------------------------


@works
def theorem_repeated(**_):
    """A head with bounded logits whose position term decays: one more of the last token moves less and less."""
    torch.manual_seed(0)
    vectors = torch.randn(2000, 4).double()
    moved = []
    for n in (50, 200, 1000):
        row = torch.cat([vectors[: n // 2], vectors[n // 2].expand(n // 2, 4)])
        states = []
        for values in (row, torch.cat([row, row[-1:]])):
            distance = torch.arange(len(values) - 1, -1, -1)
            weights = (values @ values[-1] / 4 + 1 / (1 + distance)).softmax(0)
            states.append(weights @ values)
        moved.append(float((states[0] - states[1]).abs().sum()))
    assert moved[0] > 2 * moved[1] > 4 * moved[2] > 0
    return ["goes to 0", "need not be equal"]


@works
def largest_weight(B, n, answer, **_):
    logits = torch.full((n,), -float(B)).double()
    logits[0] = B
    best = float(logits.softmax(0)[0])
    assert best <= math.exp(2 * B) / n
    return [near(answer, best)]


@works
def window_exact(L, w, **_):
    def last(n: int) -> float:
        x = np.array([0.0] + [1.0] * n)
        for layer in range(L):
            weight = [Fraction(2 + layer + gap) for gap in range(w)]  # of the distance alone
            x = [
                sum(weight[g] * x[j - g] for g in range(min(w, j + 1)))
                / sum(weight[: min(w, j + 1)])
                for j in range(n + 1)
            ]
        return x[-1]

    states = [last(n) for n in range(1, 40)]
    first = next(
        n for n, state in enumerate(states, 1) if all(each == state for each in states[n:])
    )
    return [f"from $n = {first}$ on"]


@works
def bf16_steps(a, **_):
    bits = torch.tensor([float(a)]).bfloat16()
    step = float((bits.view(torch.int16) + 1).view(torch.bfloat16)) - float(bits)
    apart = float(torch.tensor(float(a)).bfloat16()) != float(torch.tensor(a + 1.0).bfloat16())
    return [f"it is {step:g}. {'Yes' if apart else 'No'}"]


def to_bits(x: float, p: int) -> float:
    fraction, power = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, p)), power - p)


@works
def bits_mean(p, answer, **_):
    below = 1 - 2.0**-p
    assert to_bits(below, p) == below
    assert to_bits(1 - 2.0 ** -(p + 1) * 1.01, p) == below
    assert to_bits(1 - 2.0 ** -(p + 1) * 0.99, p) == 1
    first = next(
        n for n in range(1, 999) if to_bits(n / (n + 1), p) == to_bits((n + 1) / (n + 2), p)
    )
    about = int(re.search(r"approx (\d+)\$", answer)[1])
    assert 0.5 < first / about < 2
    later = range(first, 2 ** (p + 1))
    told = [n for n in later if to_bits(n / (n + 1), p) != to_bits((n + 1) / (n + 2), p)]
    assert 0 < len(told) < len(later) / 4, "a few later pairs are told apart"
    return [f"$2^{{-{p}}}$", f"$n = {first}$"]


@works
def error_direction(**_):
    generator = torch.Generator().manual_seed(0)
    line = torch.nn.functional.normalize(torch.randn(512, generator=generator), dim=0)
    errors = torch.nn.functional.normalize(torch.randn(1000, 512, generator=generator), dim=1)
    assert ((errors @ line) > 0.5).sum() == 0, (
        "as long as the distance, in any direction: never half of the way"
    )
    return ["more than half of their distance"]


@works
def three_readouts(**_):
    one, other = torch.tensor([0.0, 0.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])
    weights, cut = torch.tensor([1.0, 3.0, 0.0]), 0.5
    search = {name: (one + e - one).norm() < (one + e - other).norm() for name, e in ERRORS.items()}
    readout = {name: (one + e) @ weights < cut for name, e in ERRORS.items()}
    assert not search["along"]
    assert search["aside"]
    assert not readout["aside"], "the same error: harmless to the search, and not to the readout"
    assert readout["elsewhere"]
    return ["there is no one order"]


ERRORS = {
    "along": torch.tensor([0.6, 0.0, 0.0]),
    "aside": torch.tensor([0.0, 0.6, 0.0]),
    "elsewhere": torch.tensor([0.0, 0.0, 0.6]),
}


@works
def lost_to_whom(readout, **_):
    return [{"a s": "search", "a l": "accuracy", "the": "predictions"}[readout[:3]]]


@works
def total_variation(p, answer, **_):
    distance = np.abs(np.array([1, 0]) - np.array([p, 1 - p])).sum()
    return [near(answer, distance), near(answer, distance / 2)]


@works
def never_collapses(B, answer, **_):
    outputs = []
    for repeats in (0, 1):
        values = np.array([(-1.0) ** k for k in range(1000)])
        values = np.append(values, [values[-1]] * repeats)
        distance = np.arange(len(values))[::-1]
        weights = np.exp(B * np.cos(math.pi * distance))
        outputs.append(float(weights @ values / weights.sum()) * values[-1])
        assert math.isclose(weights @ np.ones_like(values) / weights.sum(), 1)
    assert abs(outputs[0] - math.tanh(B)) < 0.01
    assert abs(outputs[1] + math.tanh(B)) < 0.01 * math.exp(2 * B)
    return [near(answer, math.tanh(B))]


# 4. Counting -----------------------------------------------------------------------------------------------


@works
def same_ratio(one, two, **_):
    def weight(text: str) -> float:
        logits = np.array([1.7 if letter == "1" else 0.3 for letter in text])
        return float(np.exp(logits[logits > 1]).sum() / np.exp(logits).sum())

    assert math.isclose(weight(one), weight(two))
    return ["only on the ratio"]


@works
def odd_token(n, numbers, **_):
    weight = float(torch.zeros(n + 1).softmax(0)[0])
    assert math.isclose(weight, float(numbers["w"]), rel_tol=1e-5)
    return [f"= {round(1 / weight - 1)}$"]


@works
def bits_count(p, **_):
    kinds = {8: torch.bfloat16, 11: torch.float16}
    n = torch.arange(1, 2 ** (p + 1)).double()
    weights = 1 / (1 + n)
    rounded = (
        weights.to(kinds[p]).double()
        if p in kinds
        else torch.tensor([to_bits(float(x), p) for x in weights])
    )
    first = int(n[:-1][rounded[:-1] == rounded[1:]][0])
    assert 2 ** (p - 1) <= first <= 2**p
    return [f"$n = {first}$", f"between {2 ** (p - 1)} and {2**p}"]


@works
def few_answers(m, right, **_):
    p = scipy.stats.fisher_exact([[m, 0], [right, m - right]])[1]
    assert p > 0.05
    return [rf"\approx {p:.2f}"]


@works
def share(y, x, **_):
    outputs = {
        text: Fraction(text.count("y"), len(text))
        for text in ("^" + "y" * y + "x" * x, "y" * y + "x" * x, "yyxx")
    }
    first, without, _ = outputs.values()
    twice = Fraction(2 * y, 2 * y + 2 * x)
    assert without == twice
    return [
        f"${first.numerator}/{first.denominator}$"
        if math.gcd(y, 1 + x + y) == 1
        else f"${y}/{1 + x + y}$",
        f"{2 * y} y and {2 * x} x",
    ]


# 5. RoPE frequencies ---------------------------------------------------------------------------------------


def turned(vector: np.ndarray, position: int, theta: np.ndarray) -> np.ndarray:
    """A rotation as a matrix does it, pair by pair."""
    x, y = vector.reshape(-1, 2).T
    cos, sin = np.cos(position * theta), np.sin(position * theta)
    return np.stack([x * cos - y * sin, x * sin + y * cos], 1).reshape(-1)


THETA = 10_000.0 ** (-np.arange(16) / 16)


@works
def distance_only(**_):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 32))
    scores = [turned(q, 5 + far, THETA) @ turned(k, 2 + far, THETA) for far in (0, 10, 1000)]
    assert np.allclose(scores, scores[0])
    return ["(j - i)"]


@works
def refute_decay(r, **_):
    q = np.random.default_rng(1).standard_normal(32)
    key = turned(q, r, THETA)
    scores = [turned(q, far, THETA) @ key for far in range(2 * r + 1)]
    assert int(np.argmax(scores)) == r
    return [f"\\Delta = {r}$"]


@works
def what_decays(**_):
    rng = np.random.default_rng(2)
    sums = [np.cos(far * THETA).sum() for far in range(4)]
    assert sums == sorted(sums, reverse=True)
    q, k = rng.standard_normal((2, 20_000, 32))
    far = np.mean([turned(a, 7, THETA) @ b for a, b in zip(q[:4000], k[:4000], strict=True)])
    assert abs(far) < 4 * math.sqrt(32 / 4000)
    return [r"\sum_k \cos(\Delta\,\theta_k)", "the mean is 0"]


@works
def fast_slow(m, fast, slow, answer, **_):
    return [near(answer, sum([fast] * m)), near(answer, sum([slow] * m))]


@works
def one_frequency(theta, **_):
    gaps = {far: abs((far * theta + math.pi) % (2 * math.pi) - math.pi) for far in range(1, 31)}
    # a key rotated by two steps has the score of distance 0 at 4, so the question has to say that the two are equal
    other = {far: abs(math.cos((far - 2) * theta) - math.cos(2 * theta)) for far in range(1, 31)}
    assert min(gaps, key=gaps.get) != min(other, key=other.get)
    return [f"Distance {min(gaps, key=gaps.get)},"]


@works
def slowest_turn(b, d, answer, **_):
    angles = [1.0]
    for _pair in range(d // 2 - 1):
        angles.append(angles[-1] / b ** (2 / d))
    return [near(answer, 2 * math.pi / angles[-1], within=0.05)]


@works
def equal_tokens(n, answer, **_):
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    return [near(answer, float((k.expand(n, 8) @ q).softmax(0)[-1]))]


@works
def ntk_base(s, d, answer, **_):
    before, after = (
        (10_000.0 * factor) ** (-2 * np.arange(d // 2) / d) for factor in (1, s ** (d / (d - 2)))
    )
    assert math.isclose(before[-1] / after[-1], s)
    assert before[0] == after[0]
    return [near(answer, s ** (d / (d - 2)))]


@works
def p_rope(p, d, **_):
    turning = sum(k < p * (d / 2) for k in range(d // 2))
    return [f"The {turning} fastest", f"the {d // 2 - turning} slowest"]


# 6. The Differential Transformer ---------------------------------------------------------------------------


def noises(c: float, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    return np.array([1.0, 0.0]), size * np.array([c, math.sqrt(1 - c * c)])


@works
def cosine_rule(lam, q, answer, **_):
    cut = lam * q / 2
    for c, smaller in ((cut + 0.01, True), (cut - 0.01, False)):
        a, b = noises(c, q)
        assert (np.linalg.norm(a - lam * b) < 1) == smaller
    return [near(answer, cut)]


@works
def unrelated_noises(lam, answer, **_):
    a, b = np.random.default_rng(0).standard_normal((2, 200_000))
    return [near(answer, np.linalg.norm(a - lam * b) / np.linalg.norm(a), within=0.01)]


@works
def noise_falls_ratio_falls(lam, c, q, answer, **_):
    a, b = noises(c)
    noise, kept = np.linalg.norm(a - lam * b), 1 - lam * q
    assert noise < 1
    assert kept / noise < 1
    return [near(answer, noise), near(answer, kept), near(answer, kept / noise)]


@works
def half_heads(**_):
    wide, width = 64, 8

    def weights(heads: int, query: int, value: int) -> int:
        return heads * (2 * wide * query + 2 * wide * value)  # queries and keys, values and outputs

    assert weights(8, width, width) == weights(4, 2 * width, 2 * width), (
        "the plain one, and that with half the heads"
    )
    return ["half as many heads"]


@works
def signed_sum(lam, a, answer, **_):
    rng = np.random.default_rng(0)
    for _row in range(5):
        first, second = (np.exp(3 * rng.standard_normal(9)) for _ in range(2))
        row = first / first.sum() - lam * second / second.sum()
        assert math.isclose(row[1:].sum(), 1 - lam - row[0])
        assert np.abs(row[1:]).sum() > row[1:].sum()
    return [near(answer, 1 - lam - a)]


@works
def off_by_one(n, x, answer, **_):
    row = torch.cat([torch.zeros(1), torch.full((n,), float(x))]).softmax(0)[
        1:
    ]  # a key of logit 0 that is not there
    return [near(answer, float(row.sum()))]


@works
def best_lambda(c, answer, **_):
    a, b = noises(c)
    sizes = {lam / 1000: np.linalg.norm(a - lam / 1000 * b) for lam in range(1001)}
    best = min(sizes, key=sizes.get)
    return [f"= {best:g}$", near(answer, sizes[best])]


@works
def two_plain_heads(**_):
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 5, 5, generator=generator).softmax(-1)
    values, out = torch.randn(5, 4, generator=generator), torch.randn(4, 6, generator=generator)
    torch.testing.assert_close((first - 0.7 * second) @ values @ out, first @ values @ out + second @ values @ (-0.7 * out))  # fmt: skip
    return [r"$W_O$ and $-\lambda W_O$"]


@works
def lead_and_length(g, answer, **_):
    n = next(n for n in range(1, 9999) if math.exp(g) / (math.exp(g) + n) < 0.5)
    for longer in (n, 100 * n):
        scaled = g * math.log(longer) / math.log(n)
        assert math.exp(scaled) / (math.exp(scaled) + longer) > 0.49
    return [near(answer, n, within=0.05)]


# 7. The race -----------------------------------------------------------------------------------------------


@works
def control_that_fails(w, L, m, **_):
    return [f"{L * w - L} tokens back", said(Fraction(1, m))]


@works
def interval_rule(mean, sd, runs, t, **_):
    assert math.isclose(t, scipy.stats.t.ppf(0.975, runs - 1), abs_tol=0.006)
    low = scipy.stats.t.interval(0.95, runs - 1, loc=mean, scale=sd / math.sqrt(runs))[0]
    assert abs(low - 0.9) > 0.001, "by a margin"
    return [f"is {low:.3f}", "so it is right" if low >= 0.9 else "so it is not right"]


@works
def paired_difference(d, s, **_):
    sample = np.random.default_rng(0).standard_normal(10)
    sample = d + s * (sample - sample.mean()) / sample.std(ddof=1)
    wide, narrow = (
        scipy.stats.ttest_1samp(sample, 0).confidence_interval(level) for level in (0.95, 0.9)
    )
    if wide.low > 0:
        return ["So it is better"]
    return [
        "So it is equal within 0.05" if max(map(abs, narrow)) <= 0.05 else "So it is inconclusive"
    ]


@works
def stick_breaking(b, k, **_):
    left, weights = Fraction(1), []
    for _key in range(k):
        weights.append(left / b)
        left -= weights[-1]
    return [", ".join(map(said, weights)), f"${said(left)}$ is left"]


@works
def many_entries(m, p1, p2, **_):
    kept, verdicts = True, []
    for k, p in enumerate((p1, p2)):
        kept = kept and p <= 0.05 / (m - k)
        verdicts.append("rejected" if kept else "not rejected")
    return [f": {verdicts[0]}. The next", f"): {verdicts[1]}. Without"]


# whose answers are words alone: what holds them is the page that they quote
WORDS = {
    *("squashing-defined", "random-edges", "attention-not-influence", "sink-brake", "rollout-omits", "mask-and-training"),
    *("rope-outside", "comma", "one-answer", "causes", "probe-reads", "probe-controls", "tokens-letters"),
    *("vocabulary-ends", "silence-control", "base-bound", "two-explanations", "two-questions", "both-tasks", "toy-scale"),
    *("four-questions", "first-copy"),
}  # fmt: skip


def test_every_question_is_worked_or_is_words_alone():
    assert {*WORKED} | WORDS == {*ROWS}
    assert not {*WORKED} & WORDS
    computed = {name for name, row in ROWS.items() if row["kind"] == "compute"}
    assert computed <= {*WORKED}


@pytest.mark.parametrize("name", WORKED)
def test_answer_worked_in_another_way_is_the_same(name):
    for form in FORMS[name]:
        given = {key: value for key, value in form["numbers"].items() if key != "answer"}
        for text in WORKED[name](**given, numbers=form["numbers"], answer=form["answer"]):
            assert text in form["answer"], f"{form['numbers']}: {form['answer']}"


# What the answers rest on ----------------------------------------------------------------------------------


def written(root, page: str) -> str:
    path = root / f"{page}.ipynb"
    if not path.exists():
        return path.with_suffix(".md").read_text()
    return "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])


@pytest.mark.parametrize("name", ROWS)
def test_a_quoted_sentence_still_stands_on_its_page(root, name):
    """If this fails, the page says something else now: does the answer still agree with it?"""
    row = ROWS[name]
    assert len(row["quote"].split()) >= 3 or "\\" in row["quote"]
    assert questions.plain(row["quote"]) in questions.plain(written(root, row["page"])), (
        f"{row['page']} no longer says: {row['quote']}"
    )


@pytest.mark.parametrize("chapter", questions.CHAPTERS)
def test_a_lessons_question_has_a_place_in_its_lesson(root, chapter):
    """If this fails, name with `near` other words of the section in which the question is to be asked."""
    (path,) = root.glob(f"chapters/{chapter}-*/lesson.ipynb")
    lesson = str(path.relative_to(root).with_suffix(""))
    for row in questions.bank(root, chapter):
        if row["lesson"]:
            assert "near" in row or row["page"] == lesson, row["id"]
            words = questions.plain(row.get("near", row["quote"]))
            assert words in questions.plain(written(root, lesson)), row["id"]


# Marks, papers, pages --------------------------------------------------------------------------------------


def test_two_marks_in_one_part_say_how_one_is_earned():
    """A marker who may give 0, 1 or 2 has to read when; else two markers differ."""
    for name, row in ROWS.items():
        for points, what in row["marks"]:
            assert points == 1 or re.search(r"\b1 (each|if)\b", what), f"{name}: {what}"


def test_marks_of_a_question_are_two_to_four_and_say_what_for():
    for name, row in ROWS.items():
        parts = row["marks"]
        assert 2 <= sum(points for points, _ in parts) <= 4, name
        assert all(points >= 1 and what for points, what in parts), name


def test_every_chapter_has_five_questions_to_draw_and_four_for_its_lesson(root):
    for chapter in range(1, 8):
        assert len(questions.drawable(root, chapter)) >= 5
        assert sum(row["lesson"] for row in questions.bank(root, chapter)) == 4


def test_drawn_forms_differ_and_leave_nothing_to_fill():
    for name, forms in FORMS.items():
        assert len({form["ask"] for form in forms}) == len(forms), name
        assert ("draw" in ROWS[name]) == (len(forms) > 1), name
    with pytest.raises(ValueError, match="the text has <k>, but the question neither draws"):
        questions.fill({"id": "x", "ask": "<k>", "answer": "", "marks": []}, {})


@pytest.mark.parametrize("seed", [0, 7, 2027, 2028, 2029, 2030, 2031, 2032, 2033, 2034])
def test_a_paper_fills_its_minutes_with_all_chapters(root, seed):
    rows = questions.drawn(seed, root)
    assert sum(row["marks"] for row in rows) * questions.A_MARK == questions.MINUTES
    chapters = [row["chapter"] for row in rows]
    assert {*chapters} == {*range(1, 8)}
    assert max(map(chapters.count, chapters)) <= 2
    assert rows == questions.drawn(seed, root)
    asked, key = questions.paper(seed, root).values()
    assert all(
        row["ask"] in asked and row["answer"] not in asked and row["answer"] in key for row in rows
    )


def test_papers_of_ten_terms_have_few_questions_in_common(root):
    papers = [{row["id"] for row in questions.drawn(seed, root)} for seed in range(10)]
    shared = [len(one & other) / len(one) for k, one in enumerate(papers) for other in papers[:k]]
    assert np.mean(shared) < 0.4
    assert len(set.union(*papers)) > 35
    assert families.asked(0) != families.asked(1)


def test_a_chinese_question_has_the_numbers_and_formulas_of_the_english_one():
    """Those of today's English: what is not translated yet stands in English and says so."""
    rows = zip(questions.bank(), questions.bank(words=editions.of_questions()), strict=True)
    for here, there in ((a, b) for a, b in rows if a["lesson"]):
        for part in ("ask", "answer"):
            assert units.differing(here[part], there[part]) == [], here["id"]
            assert not re.search(r"<\w+>", there[part]), here["id"]
    moved = ROWS["path-factor"] | {"ask": "How many walks are there?"}
    assert questions.fill(moved, {"n": 5}, {"other": "别的"})["ask"] == "How many walks are there?"


@pytest.mark.parametrize("chapter", range(1, 8))
def test_a_chinese_lesson_asks_where_its_english_page_does(chapter):
    """In the section of the same number: the words that say where are English."""
    (lesson,) = (ROOT / "chapters").glob(f"{chapter}-*/lesson.ipynb")
    markdown = "\n\n".join(editions.cells(lesson, slides=False).values())
    heads = [head[0] for head in examination.HEADING.finditer(markdown)]
    for row in questions.bank(chapter=chapter):
        if row["lesson"]:
            words = questions.plain(row.get("near", row["quote"]))
            number = examination.numbered_section(markdown, words)
            if number is None:
                assert not examination.words_in(markdown, words), row["id"]
            else:
                start = markdown.index(heads[number])
                assert examination.words_in(markdown[start:], words), row["id"]


def test_chinese_questions_come_back_on_chinese_pages(visit):
    page = visit("chapters/zh/1-over-squashing/lesson.html")
    shown = page.locator(".question-here details")
    ids = {row["id"] for row in questions.bank(ROOT, 1) if row["lesson"]}
    assert {shown.nth(k).get_attribute("data-question") for k in range(shown.count())} == ids
    shown.first.locator("summary").click()
    shown.first.get_by_text("我知道").click()
    page.goto(page.url.replace("1-over-squashing", "2-causal-attention"))
    page.evaluate("""() => {
        const kept = "course-progress";
        localStorage[kept] = localStorage[kept].replace(/"seen":\\d+/g, '"seen":0');
    }""")
    page.reload()
    box = page.locator(".answer-cards")
    box.wait_for()
    assert re.search("[一-鿿]", box.locator(".question").inner_text())
    assert not re.search(r"(?:[A-Za-z]{2,} ){3}", box.inner_text())


def test_a_lesson_asks_its_four_where_they_matter_and_the_bank_shows_all(root, visit):
    page = visit("chapters/1-over-squashing/lesson.html")
    shown = page.locator(".question-here details")
    ids = {row["id"] for row in questions.bank(root, 1) if row["lesson"]}
    assert {shown.nth(k).get_attribute("data-question") for k in range(shown.count())} == ids
    random = page.locator("section:has(> .question-here [data-question=random-edges])")
    assert "four edges drawn at random are nearly as good" in random.inner_text()
    page = visit("chapters/exam.html")
    assert page.locator("details summary", has_text="Answer").count() == len(ROWS)
    assert page.locator("#chapter-7").count() == 1
    assert f"The bank has {len(ROWS)} questions" in page.locator("article").inner_text()
