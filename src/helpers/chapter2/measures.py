"""What chapter 2 measures that is no public mathematics: graphs side by side, a random decoder, a real model.

python -m helpers.chapter2.measures writes data/sensitivity_smollm2.csv: exact Jacobian norms take minutes.
"""

import math
import platform
import time
from collections.abc import Callable, Sequence

import networkx as nx
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.stats import spearmanr
from torch import Tensor

from helpers import attention, compute, data, graphs, models, probe
from helpers.models import LanguageModel
from helpers.widget.atlas import Reading

TEXT = (
    "The old harbour town had two clocks, and they never agreed. The one on the church was set by the priest, who "
    "trusted the sun; the one on the station was set by the guard, who trusted the telegraph. Visitors learned to ask "
    "which clock a person meant, and the baker, who opened at six by both, sold his bread twice. When the line was "
    "closed the guard stayed on and wound the station clock each morning, although no train would come. The priest "
    "asked him why. He said that a clock with nobody to correct it is still a clock, and that somebody had to be late "
    "for the church. In winter the harbour froze and the boats stood still, the fishermen mended their nets in the "
    "waiting room, and the children skated from one clock to the other to see how much time they could gain on the way."
)
TEXTS = ("natural", "random", "repeated")
TOKENS = 48  # of the committed sensitivities


# Graphs side by side ------------------------------------------------------------------------------------


def connections(n: int) -> dict[str, tuple[Float[Tensor, "n n"], int, int]]:
    """Who listens to whom in five graphs of n nodes: row-stochastic matrix, the node that is read, the one far from it.

    Tree and cycle are chapter 1's, each node also hears itself; chain, window and causal attention have a direction.
    """
    found = {}
    for name in ("tree", "cycle"):
        graph = graphs.family(name, n)
        far, read = graphs.far_pair(graph)
        found[name] = graphs.adjacency(graph, "row", loops=True), read, far
    for width in (2, 4):
        name = "previous token" if width == 2 else f"window of {width}"
        found[name] = attention.uniform(attention.window_mask(n, width)), n - 1, 0
    found["causal attention"] = attention.uniform(attention.causal_mask(n)), n - 1, 0
    return found


def compare_connections(n: int = 31, layers: int = 16, width: int = 16) -> pd.DataFrame:
    """Chapter 1's measures from the farthest node to the one that is read; a graph's direction counts where it can.

    Columns: hops; effective resistance of the undirected graph; paths of `layers` steps; influence with a residual
    of 1/2; the Jacobian of chapter 1's random network, as a share of the own input's.
    """
    rows = {}
    for name, (matrix, read, far) in connections(n).items():
        directed = nx.from_numpy_array((matrix > 0).numpy().astype(int), create_using=nx.DiGraph)
        plain = nx.Graph(directed.to_undirected())
        plain.remove_edges_from(nx.selfloop_edges(plain))
        steps = (matrix > 0).double()
        norms = network_norms(matrix, read, layers, width)
        rows[name] = {
            "hops": nx.shortest_path_length(directed, read, far),
            "resistance": graphs.effective_resistance(plain)[read, far].item(),
            "paths": int(torch.linalg.matrix_power(steps, layers)[read, far]),
            "influence": attention.influence([matrix] * layers, 0.5)[read, far].item(),
            "Jacobian, share of own": (norms[far] / norms[read]).item(),
        }
    return pd.DataFrame(rows).T


def network_norms(
    matrix: Float[Tensor, "n n"], read: int, layers: int, width: int, seeds: int = 5
) -> Float[Tensor, " n"]:
    """Spectral norms of the Jacobian of one node's state by every input, in chapter 1's network; mean over seeds."""

    def norms(seed: int) -> Tensor:
        weights = graphs.orthogonal_weights(layers, width, seed)
        x = torch.randn(len(matrix), width, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(
            lambda h: graphs.propagate(h, matrix, weights)[read], x, vectorize=True
        )
        return torch.linalg.matrix_norm(jacobian.movedim(1, 0), ord=2)

    return torch.stack([norms(seed) for seed in range(seeds)]).mean(0)


def heard(weights: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows"]:
    """How many tokens a row hears, as if equally: the exponential of its entropy."""
    return torch.special.entr(weights).sum(-1).exp()


# The bound beside a true Jacobian --------------------------------------------------------------------------


def decoder(
    n: int = 12, layers: int = 3, width: int = 16, sharpness: float = 1.0, seed: int = 0
) -> tuple[Callable[[Tensor, bool], Tensor], Float[Tensor, "n d"]]:
    """The decoder of Theorem B.5 with random weights, all norms the identity, and an input.

    z_i = sum_j A_ij v_j + v_i with A = softmax(sharpness v_i W v_j), v' = relu(z U) + z with U orthogonal, so that the
    perceptron's Lipschitz constant is 1. The function's second argument keeps A from being differentiated.
    """
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(layers, width, width, generator=generator, dtype=torch.float64) / width
    perceptron = torch.linalg.qr(torch.randn(layers, width, width, generator=generator, dtype=torch.float64)).Q
    inputs = torch.randn(n, width, generator=generator, dtype=torch.float64)
    hidden = ~attention.causal_mask(n)

    def run(v: Tensor, frozen: bool) -> tuple[Tensor, list[Tensor]]:
        maps = []
        for w, u in zip(mixing, perceptron, strict=True):
            # unit-length queries and keys keep the logits within the sharpness, whatever the layer
            unit = torch.nn.functional.normalize(v, dim=-1)
            logits = sharpness * (unit @ w @ unit.T) * math.sqrt(width)
            weights = logits.masked_fill(hidden, -math.inf).softmax(-1)
            weights = weights.detach() if frozen else weights
            maps.append(weights.detach())
            z = weights @ v + v
            v = torch.relu(z @ u) + z
        return v, maps

    return run, inputs


def bound_and_truth(sharpness: float, n: int = 12, layers: int = 3, seed: int = 0) -> pd.DataFrame:
    """Theorem B.5's bound beside the norm of the last token's Jacobian, with attention held fixed and without."""
    run, inputs = decoder(n, layers, sharpness=sharpness, seed=seed)
    _, maps = run(inputs, True)
    columns = {"bound": attention.influence_bound(maps)[-1]}
    for name, frozen in (("attention fixed", True), ("true", False)):
        jacobian = torch.autograd.functional.jacobian(
            lambda v, frozen=frozen: run(v, frozen)[0][-1], inputs, vectorize=True
        )
        columns[name] = torch.linalg.matrix_norm(jacobian.movedim(1, 0), ord=2)
    return pd.DataFrame({name: column.numpy() for name, column in columns.items()})


# A real model ----------------------------------------------------------------------------------------------


def sequence(model: LanguageModel, kind: str, n: int, first: bool = True, seed: int = 0) -> Int[Tensor, " n"]:
    """n tokens of natural text, drawn at random, or one repeated; with or without the model's first token in front.

    Raises:
        ValueError: another kind, or more tokens than the text has.
    """
    if kind not in TEXTS:
        raise ValueError(f"kind must be one of {', '.join(TEXTS)}, not {kind!r}")
    body = n - first
    if kind == "natural":
        tokens = probe.encode(model, TEXT)
        if body > len(tokens) or seed > len(tokens) - body:
            raise ValueError(f"n must be at most {len(tokens) + first} less the seed {seed}, not {n}")
        tokens = tokens[seed : seed + body]
    elif kind == "random":
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(1000, len(model.tokenizer), (body,), generator=generator)
    else:
        tokens = probe.encode(model, TEXT)[seed].repeat(body)
    return torch.cat([probe.first_token(model), tokens]) if first else tokens


def sink_table(model: LanguageModel, n: int = 64, seeds: Sequence[int] = (0, 20, 40)) -> pd.DataFrame:
    """Share of heads with a sink score above 0.3 (Gu et al.'s metric) by text, with and without a first token."""
    rows = []
    for kind in TEXTS:
        for first in (True, False):
            scores = [probe.head_scores(model, sequence(model, kind, n, first, seed)).sink for seed in seeds]
            stacked = torch.stack(scores)
            rows.append(
                {
                    "text": kind,
                    "first token": "yes" if first else "no",
                    "sink heads": float((stacked > 0.3).double().mean()),
                    "mean score": float(stacked.mean()),
                }
            )
    return pd.DataFrame(rows)


def reader(model: LanguageModel) -> Callable[[str], Reading]:
    """What the head atlas reads prompts with: the model's first token in front."""

    def read(prompt: str) -> Reading:
        tokens = torch.cat([probe.first_token(model), probe.encode(model, prompt)])
        words = [model.tokenizer.decode([token]) for token in tokens.tolist()]
        return Reading(["(first)", *words[1:]], probe.attention_maps(model, tokens))

    return read


def late_loss(model: LanguageModel, hide: int | None, since: int = 0, n: int = 128, after: int = 64) -> float:
    """Mean loss (nats) of the tokens from `after` on when one is hidden from position `since` on."""
    _, losses = probe.with_hidden(model, sequence(model, "natural", n), hide, since)
    return float(losses[after - 1 :].mean())


def best_heads(scores: probe.HeadScores, offsets: Sequence[int]) -> pd.DataFrame:
    """For each offset, the head with the highest slash score, its score, and the mean of all heads."""
    rows = []
    for k, offset in enumerate(offsets):
        slash = scores.slash[..., k]
        layer, head = divmod(int(slash.argmax()), slash.shape[1])
        rows.append(
            {
                "offset": offset,
                "layer": layer,
                "head": head,
                "score": float(slash.max()),
                "all heads": float(slash.mean()),
            }
        )
    return pd.DataFrame(rows)


def without_sink(
    model: LanguageModel, hide: int | None, since: int = 24, n: int = 128, changed: int = 32
) -> tuple[float, Float[Tensor, " layers"]]:
    """What hiding one token from position `since` on does: the later loss, and how far one changed token spreads.

    Returns:
        Mean loss (nats) of the tokens after `changed`, and for each layer the mean relative change of their states
        when the token at `changed` is another one.
    """
    tokens = sequence(model, "natural", n)
    other = tokens.clone()
    other[changed] = probe.encode(model, " green")[0]
    states, losses = probe.with_hidden(model, tokens, hide, since)
    moved, _ = probe.with_hidden(model, other, hide, since)
    later = slice(changed + 1, None)
    spread = ((moved - states).norm(dim=-1) / states.norm(dim=-1))[:, later].mean(1)
    return float(losses[changed:].mean()), spread


def influences(model: LanguageModel, tokens: Int[Tensor, " n"]) -> dict[str, Float[Tensor, " n"]]:
    """What is used in place of a Jacobian, for the last token, from one pass: row n of each.

    "rollout" is Abnar & Zuidema's (residual 1/2, heads averaged), "bound" Theorem B.5's, "last row" the last token's own
    attention, averaged; "uniform" knows only the mask, "shuffled heads" has each head's maps put into another layer.
    """
    maps = probe.attention_maps(model, tokens).double()
    layers, heads, n, _ = maps.shape
    mean = maps.mean(1)
    order = torch.randperm(layers * heads, generator=torch.Generator().manual_seed(0))
    shuffled = maps.flatten(0, 1)[order].view(layers, heads, n, n).mean(1)
    flat = [attention.uniform(attention.causal_mask(n))] * layers
    return {
        "rollout": attention.influence(mean, 0.5)[-1],
        "bound": attention.influence_bound(mean)[-1],
        "last row": mean[:, -1].mean(0),
        "shuffled heads": attention.influence(shuffled, 0.5)[-1],
        "uniform": attention.influence(flat, 0.5)[-1],
    }


def rank_correlation(x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> float:
    """Spearman's; values that differ in rounding alone count as equal, 0 where one side has a single value."""
    x, y = (torch.tensor([float(f"{v:.9g}") for v in each.tolist()]) for each in (x, y))
    if x.unique().numel() < 2 or y.unique().numel() < 2:
        return 0.0
    return float(spearmanr(x, y).statistic)


def exact_sensitivities() -> pd.DataFrame:
    """The committed table: exact Jacobian norms of the embedded model on the first tokens of the text."""
    return data.table("sensitivity_smollm2")


def main() -> None:
    compute.seed(0)
    model = models.load(device="cpu")
    tokens = sequence(model, "natural", TOKENS)
    start = time.process_time()
    found = probe.sensitivity(model, tokens)
    seconds = time.process_time() - start
    head = (
        f"# {models.DEFAULT}, fp32, the first {TOKENS} tokens of helpers.chapter2.measures.TEXT with a first token: exact\n"
        "# Frobenius norms of the Jacobian of the last token's final state by each token's embedding\n"
        f"# python -m helpers.chapter2.measures; {seconds:.0f} s of processor time; torch {torch.__version__}, "
        f"Python {platform.python_version()}\n"
    )
    words = [model.tokenizer.decode([token]) for token in tokens]
    table = pd.DataFrame({"position": range(TOKENS), "token": words, "norm": found.norms.numpy()})
    path = data.folder() / "sensitivity_smollm2.csv"
    path.write_text(head + table.to_csv(index=False, float_format="%.6g"))


if __name__ == "__main__":
    main()
