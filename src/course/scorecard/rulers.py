"""Calibrate the claims' metrics on cases whose answer is known.

`python -m course.runs rulers` fills data/rulers.csv. We try a metric on cases whose answer follows
from their construction, for example uniform attention for a score, hidden states that are
identical, random labels, or an untrained network. A case is a function that returns the metric's
value. The decorator above it names the metric, describes the case, and gives the true value.

The module also has the most important null control, which is what each rule about a language model
gives for the same network with random weights (data/twins.csv).
"""

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import networkx as nx
import numpy as np
import torch

from course.chapter1 import measures as squashing
from course.chapter2 import measures as causal
from course.chapter3 import measures as rounding
from course.chapter4 import measures as counts
from course.chapter5 import measures as places
from course.chapter6 import measures as maps
from course.evidence import claims, null_controls, significance
from course.maths import bounds, constructions, counting, rewiring, rope_scaling
from course.runs import trained
from course.runs.entries import decoder, entry_of
from course.runs.evaluation import best_heads, tests_of
from course.training import tasks
from helpers import attention, collapse, graphs, models, probe, rope

KNOWN: dict[
    tuple[str, str], tuple[float, Callable[[], float]]
] = {}  # the true value of each case and the function that measures it, keyed by metric and case


def known(
    ruler: str, case: str, truth: float
) -> Callable[[Callable[[], float]], Callable[[], float]]:
    """Register a case whose true value is known.

    The decorated function measures the metric in this case.
    """

    def add(function: Callable[[], float]) -> Callable[[], float]:
        if (ruler, case) in KNOWN:
            raise ValueError(f"case must be new for {ruler}, but it already has a case {case!r}")
        KNOWN[ruler, case] = truth, function
        return function

    return add


def cases() -> list[dict[str, str]]:
    """Return the cases of data/rulers.csv, without measured values."""
    return [{"ruler": ruler, "case": case} for ruler, case in KNOWN]


CASES: list[dict[str, str]] = []  # the result of `cases`, filled in below


def read(ruler: str, case: str) -> dict[str, float]:
    """Measure one case, and return the true value and the metric's value."""
    truth, function = KNOWN[ruler, case]
    return {"truth": truth, "reads": round(float(function()), 6)}


# Graphs and trees ---------------------------------------------------------------------------------

PATH = nx.path_graph(9)


@known("far Jacobian", "beyond the reach of the layers", 0.0)
def _() -> float:
    return graphs.jacobian_norms(PATH, 8, 4)[0]


@known("far Jacobian", "one straight layer of orthogonal weights, a node by itself", 1.0)
def _() -> float:
    return graphs.jacobian_norms(PATH, 0, 1, normalisation="none", activation=lambda x: x)[0]


@known("gain of new edges", "no new edge", 1.0)
def _() -> float:
    far = squashing.hops(PATH) > 4
    before, after = (
        squashing.all_jacobians(graph, 8)[far].mean()
        for graph in (PATH, rewiring.rewire(PATH, "gtr", 0))
    )
    return after / before


@known("rank correlation", "40 pairs in one order", 1.0)
def _() -> float:
    return significance.rank_correlation(range(40), [x**3 for x in range(40)])[0]


@known("rank correlation", "40 pairs in no order, mean of 400 draws", 0.0)
def _() -> float:
    draw = np.random.default_rng(0)
    return np.mean(
        [significance.rank_correlation(range(40), draw.permutation(40))[0] for _ in range(400)]
    )


@known(
    "epochs until no error",
    "labels at random, 76 examples: least times as long as true ones, 2 if leaves were read",
    2.0,
)
def _() -> float:
    runs = squashing.few_examples()
    mean = runs.groupby(["control", "permuted", runs[["depth", "distance"]].max(axis=1)])[
        "steps"
    ].mean()
    return (mean.xs(True, level="permuted") / mean.xs(False, level="permuted")).dropna().min()


@known(
    "epochs until no error",
    "an attention layer that cannot choose, r = 5: right of 32 leaves",
    1 / 32,
)
def _() -> float:
    return squashing.train_tree("attention", 5, 5, change=squashing.without_choice)[
        "train_accuracy"
    ].max()


@known("reach of layers", "a path of 129, six layers: nodes", 13)
def _() -> float:
    return bounds.receptive_field(nx.path_graph(129), 64, 6)[-1]


@known(
    "average over layers", "one layer of uniform attention over 31 tokens: the worst heard", 1 / 31
)
def _() -> float:
    return causal.compare_connections(1, 0.0)["worst heard"]["causal attention"]


# Share kept, sensitivity, sinks -------------------------------------------------------------------

for _kept in (0.5, 0.75, 0.9):

    @known("share kept, by an average", f"30 layers of random rotations that keep {_kept:g}", _kept)
    def _(kept: float = _kept) -> float:
        return causal.share_kept(causal.of_known_share(kept)[0], causal.LAYERS_READ)[0]

    @known("share kept, by an average", f"30 layers without rotations that keep {_kept:g}", _kept)
    def _(kept: float = _kept) -> float:
        return causal.share_kept(causal.of_known_share(kept, mixed=False)[0], causal.LAYERS_READ)[0]


@known(
    "bound and Jacobian",
    "one layer of uniform attention, values and perceptron the identity: bound / Jacobian",
    1.0,
)
def _() -> float:
    matrix = attention.uniform(attention.causal_mask(8))
    return (bounds.influence_bound([matrix])[-1] / (2 * (matrix + torch.eye(8)))[-1]).max()


def _sensitivity(probes: int | None) -> float:
    tokens = causal.texts(models.default(), causal.TOKENS)["harbour"][:8]
    return probe.sensitivity(models.default(), tokens, probes).norms[0]


@known("sensitivity", "12 directions over all 576, first of 8 tokens", 1.0)
def _() -> float:
    return _sensitivity(12) / _sensitivity(None)


@known(
    "sensitivity",
    "untrained, the share of the last 15 tokens but one, beside an equal share",
    15 / 48,
)
def _() -> float:
    row = causal.profile_of(causal.profiles(models.default()), causal.NAMES[0], "seed 0")
    return row[32:-1].sum() / row.sum()


@known("sink score", "uniform attention over 64 tokens", 0.0)
def _() -> float:
    return attention.sink_score(attention.uniform(attention.causal_mask(64)))


@known("sink score", "a planted sink of weight .8 over 64 tokens", 0.8)
def _() -> float:
    return attention.sink_score(constructions.sink(64, 0.8))


@known("sink score", "random weights, 48 tokens: share of heads above the threshold", 0.0)
def _() -> float:
    tokens = causal.texts(models.default(), 48)["harbour"]
    scores = attention.sink_score(probe.attention_maps(_twin(), tokens))
    return attention.share_of_strong_heads(scores)


@known("norm of values", "random weights: what the first token hands over, beside the others", 1.0)
def _() -> float:
    return causal.value_ratios(_twin(), causal.texts(models.default(), 48)["harbour"]).median()


@known("size of states", "random weights, half depth: the first token's state over the median", 1.0)
def _() -> float:
    tokens = causal.texts(models.default(), causal.LENGTH)["harbour"]
    norms = causal.hiding(_twin(), tokens).norms
    row = norms[len(norms) // 2]
    return row[0] / row.median()


@known("copied digit", "random weights, five digits: right both ways, of first and last", 0.0)
def _() -> float:
    margins = collapse.copying_margins(_twin(), [5])
    return sum(float(rounding.right_both_ways(margins, place)[0]) for place in collapse.PLACES) / 2


@known("named number", "17, as the prompt asks for it", 17)
def _() -> float:
    return counting.parse_answer("The final answer to your maths question is: 17")


@known("hidden token", "nothing hidden: nats added", 0.0)
def _() -> float:
    tokens = causal.texts(models.default(), causal.LENGTH)["harbour"]
    read_ = models.default()
    return causal.hiding(read_, tokens).loss - causal.hiding(read_, tokens, None, causal.LATE).loss


# States and types ---------------------------------------------------------------------------------


@known("distance of states", "the same prompt twice", 0.0)
def _() -> float:
    ids = causal.texts(models.default(), 24)["harbour"]
    once, twice = (probe.last_representations(models.default(), ids)[-1] for _ in range(2))
    return (once - twice).abs().sum()


@known(
    "distance of states", "an equal token more, no positions, no first token: the same mean", 0.0
)
def _() -> float:
    return (
        (counting.last_state("1" * 20, causal=True) - counting.last_state("1" * 21, causal=True))
        .abs()
        .max()
    )


@known("distance of rows", "the same row twice", 0.0)
def _() -> float:
    row = torch.full((10,), 0.1, dtype=torch.float64)
    return constructions.total_variation(row, row)


@known("distance of rows", "two rows that share no key", 2.0)
def _() -> float:
    first, second = torch.eye(2, dtype=torch.float64)
    return constructions.total_variation(first, second)


def _walk(error: float) -> float:
    """Measure how often a state with an error is nearer to itself than to its neighbour.

    The exact states are one step apart on a line, and the errors are `error` steps long.
    """
    exact = torch.arange(400.0)[:, None] * torch.ones(1, 64) / 8
    noise = torch.randn(exact.shape, generator=torch.Generator().manual_seed(0))
    return rounding.resolution(exact, exact + error * noise).pair.double().mean()


@known("right of two", "exact states", 1.0)
def _() -> float:
    return _walk(0.0)


@known("right of two", "errors with a deviation of one step: Φ(1/2)", 0.6915)
def _() -> float:
    return _walk(1.0)


@known("right of two", "errors a thousand steps long", 0.5)
def _() -> float:
    return _walk(1000.0)


@known("largest count", "bf16, one by one", 0.0)
def _() -> float:
    limit = counting.first_token_limit("bf16")
    weights = [torch.tensor(1.0) / (1 + n) for n in range(limit + 3)]
    near = [
        round(float(1 / weight.bfloat16().double() - 1)) == n for n, weight in enumerate(weights)
    ]
    return limit - (near.index(False) - 1)


@known("codes", "as wide as the vocabulary: share of counts right", 1.0)
def _() -> float:
    return counts.read_right(16, 16, "tight", 512)


@known("codes", "16 symbols in one dimension, 512 tokens: share of counts right", 0.0)
def _() -> float:
    return counts.read_right(16, 1, "random", 512)


@known("tokens of letters", "commas between the letters: share in one token with another", 0.0)
def _() -> float:
    return counts.hidden_letters()[1]


# Read-outs and decoders ---------------------------------------------------------------------------


def _read_out(direction: float, shuffle: bool = False) -> float:
    """Fit a linear readout to states of width 32 that contain 8 labels, and return its accuracy.

    The states contain the labels along planted directions, or along none.
    """
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 8, (4096,), generator=draw)
    states = direction * torch.eye(32)[labels] + torch.randn(4096, 32, generator=draw)
    labels_shown = trained.shuffled(labels[:2048], 0) if shuffle else labels[:2048]
    return trained.share(
        trained.linear_probe(states[:2048], labels_shown), states[2048:], labels[2048:]
    )


@known("read-out", "planted directions, ten deviations long", 1.0)
def _() -> float:
    return _read_out(10.0)


@known("read-out", "nothing planted: chance", 1 / 8)
def _() -> float:
    return _read_out(0.0)


@known("read-out", "planted directions, labels at random", 1 / 8)
def _() -> float:
    return _read_out(10.0, shuffle=True)


@known("share right", "an untrained decoder counts letters up to 16: always one number", 1 / 17)
def _() -> float:
    task = tasks.Counting((4, trained.LONGEST))
    return trained.share_right(
        trained.decoder("counting", task, "NoPE", 1e4, 0, 0), task, trained.LONGEST
    )


@known("attention on the answer", "the last of 128 digits, stick-breaking, untrained", 1 / 128)
def _() -> float:
    entry = entry_of("NoPE, stick-breaking")
    rows = tests_of(entry, "last", 0)[128]
    return best_heads(decoder(entry, "last", 0).eval(), "last", *rows)[0]


def _paired(shift: float) -> float:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(1000, 2, 8))
    return np.mean(
        [
            significance.paired((before + shift).tolist(), after.tolist()) < 0.05
            for before, after in rows
        ]
    )


@known("paired test", "eight seeds without a difference: sure at .05", 0.05)
def _() -> float:
    return _paired(0.0)


@known("paired test", "eight seeds, three deviations apart: sure at .05", 1.0)
def _() -> float:
    return _paired(3.0)


@known("interval of a share", "3 of 10 in truth, 60 tries: covered by 95%", 0.95)
def _() -> float:
    draw = np.random.default_rng(0).binomial(60, 0.3, 1000)
    return np.mean(
        [
            low <= 0.3 <= high
            for low, high in (significance.share_interval(int(k), 60) for k in draw)
        ]
    )


# Positions ----------------------------------------------------------------------------------------


@known("slash score", "uniform attention over 256 tokens, one back", 0.0)
def _() -> float:
    return attention.slash_score(attention.uniform(attention.causal_mask(256)), 1)


@known("slash score", "uniform attention over 20 tokens, one back", 0.0)
def _() -> float:
    return attention.slash_score(attention.uniform(attention.causal_mask(20)), 1)


@known("slash score", "a head that looks one back, by RoPE, 256 tokens", 1.0)
def _() -> float:
    theta = rope.frequencies(64, 1e4)
    return attention.slash_score(
        rope_scaling.slash_attention(theta, 256, 1, rope_scaling.slash_scale(theta, 256, offset=1)),
        1,
    )


def _largest(matrix: torch.Tensor) -> float:
    return places.concentration(matrix)[0]


@known("rank-one share", "one planted direction", 1.0)
def _() -> float:
    return _largest(torch.outer(torch.arange(1.0, 257), torch.ones(64)))


@known(
    "rank-one share",
    "256 random vectors of 64 numbers: the edge of Marchenko and Pastur",
    (1 + math.sqrt(1 / 4)) ** 2 / 64,
)
def _() -> float:
    return _largest(torch.randn(256, 64, generator=torch.Generator().manual_seed(0)))


@known("silenced pairs", "no pair silenced: nats added", 0.0)
def _() -> float:
    model, ids = models.default(), places.prose(models.default(), 64)
    heads = torch.ones(30, 9, dtype=torch.bool)
    return places.silenced_loss(model, ids, [], heads, False) - probe.loss(model, ids)


@known("norms of pairs", "random queries: fastest quarter over the mean", 1.0)
def _() -> float:
    norms = places.pair_norms(torch.randn(1, 4096, 64, generator=torch.Generator().manual_seed(0)))
    return norms[0, :8].mean() / norms.mean()


@known(
    "sums of cosines",
    "base 10,000, width 128, each distance in numpy: how far off the first negative sum is",
    0.0,
)
def _() -> float:
    theta = 1e4 ** (-np.arange(64) / 64)
    slow = next(m for m in itertools.count() if np.cos(m * theta).sum() < 0)
    return rope.first_negative(128, 1e4, 1 << 16) - slow


@known("score of RoPE", "a vector with itself, at no distance, over its square", 1.0)
def _() -> float:
    x = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turned = rope.rotate(x, torch.tensor([5.0]), rope.frequencies(64, 1e4))
    return (turned @ turned.T).item() / (x @ x.T).item()


# Maps ---------------------------------------------------------------------------------------------


@known("noise of a difference", "two equal maps, all of it subtracted", 0.0)
def _() -> float:
    return maps.parts(0.0, 1.0, 256, 1.0)["noise"]


@known("noise of a difference", "nothing subtracted: the weight of 255 keys of 256", 255 / 256)
def _() -> float:
    return maps.parts(0.0, 0.0, 256, 0.0, spread=0.0)["noise"]


@known("gradient ratio", "a Transformer beside itself", 1.0)
def _() -> float:
    return maps.gradient("Transformer", 32, 0) / maps.gradient("Transformer", 32, 0)


@known("closed form", "exact fractions: the weight of one more of 1,000, in floats", 0.0)
def _() -> float:
    return 1 / 1001 - float(Fraction(1, 1001))


CASES += cases()

# The untrained twin -------------------------------------------------------------------------------

# claims left out: a network that gives no number would write 60,000 tokens, or the measurement
# loads the model again by its name in another format
SPARED = {
    "guesses_are_round",
    "low_precision_is_worse",
    "direction_of_rounding_decides",
}
AT_EACH_SCALE = (  # claims for which pages mention the verdict on random weights
    "early_tokens_have_more_influence",
    "primacy_is_topology_recency_is_learned",
    "valley_survives_training",
    "first_token_is_a_sink",
    "ones_collapse",
)
TWINS = [
    {"claim": name, "scale": scale}
    for scale in null_controls.SCALES
    for name, row in claims.CLAIMS.items()
    if not row.parts
    and row.asks_a_model
    and name not in SPARED
    and (scale == "own" or name in AT_EACH_SCALE)
]


@functools.cache
def _twin(scale: str) -> models.LanguageModel:
    """Return the embedded model with random weights, made only once."""
    return (
        causal.untrained()
        if scale == "own"
        else null_controls.untrained(models.default(), 0, scale)
    )


def twin(claim: str, scale: str) -> dict[str, str]:
    """Apply a claim's rule to the embedded model with random weights.

    We return the verdict and the measurement. If a rule already holds for this model, it proves
    nothing about training.

    Args:
        claim: the name of a claim about language models.
        scale: one of `null_controls.SCALES`.
    """
    try:
        measured = claims.CLAIMS[claim].measure(_twin(scale))
    except ValueError as error:  # for example, if no head attends to a fixed position
        return {"verdict": claims.UNABLE, "measured": str(error)}
    return {"verdict": measured.verdict, "measured": measured.measured}
