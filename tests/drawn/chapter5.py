"""Calls of chapter 5's figures and tables, each with its cheapest arguments."""

import torch
from tiny_models import tiny

from course.chapter5 import figures, measures
from helpers import data

RUNS = {
    "fastest": 3.9,
    "second": 3.2,
    "third": 3.1,
    "slowest": 3.3,
    "random 1": 3.25,
    "random 2": 3.4,
}
SUMS = {
    "global": {
        "first_negative": None,
        "distances": [1, 10, 100],
        "least": [1.0, 0.5, 0.1],
        "largest": [1.0, 0.6, 0.2],
        "limit": 4096,
    },
    "local": {
        "first_negative": 90,
        "distances": [1, 10, 100],
        "least": [0.9, 0.4, -0.1],
        "largest": [0.9, 0.5, 0.1],
        "limit": 512,
    },
}


def _heads(seed: int = 0) -> measures.Heads:
    """Scores of six layers of three heads, some of them slashes."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    slashes = drawn(6, 3, measures.OFFSETS) * 0.2
    slashes[1, 0, 0], slashes[2, 1, 1], slashes[4, 2, 1] = 0.8, 0.9, 0.5 - 0.3 * seed
    return measures.Heads(
        drawn(6, 3, 8), drawn(6, 3, 8), slashes, drawn(6, 3), drawn(6, 3, 2), 1 + 9 * drawn(6, 3, 2)
    )


CALLS = {
    "figures.decay": lambda: figures.decay(far=1000),
    "figures.second_layer": figures.second_layer,
    "figures.norm_cost": lambda: figures.norm_cost(2, 1),
    "figures.context_sums": lambda: figures.context_sums(SUMS),
    "figures.feasible": lambda: figures.feasible(1024, 40),
    "figures.line_and_column": lambda: figures.line_and_column(tiny("llama"), 24),
    "figures.usage": lambda: figures.usage("queries", _heads()),
    "figures.usage, keys": lambda: figures.usage("keys", _heads()),
    "figures.special_heads": lambda: figures.special_heads(_heads()),
    "figures.ablation": lambda: figures.ablation(RUNS, 3.0, [-0.01, 0.0, 0.01, 0.0]),
    "figures.dissociation": lambda: figures.dissociation(data.table("silenced_pairs"), 0.15),
    "measures.rank_table": lambda: measures.rank_table(_heads()),
    "measures.slash_heads": lambda: [str(head) for head in measures.slash_heads(_heads())],
    "measures.ablations": lambda: measures.ablations(
        tiny("llama"), measures.prose(tiny("llama"), 24)
    ),
}
WITHOUT: set[str] = set()
