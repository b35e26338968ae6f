"""Calls of chapter 3's figures and tables, each with its cheapest arguments."""

import math
from types import SimpleNamespace
from unittest import mock

import pandas as pd
import torch
from tiny_models import tiny

from course.chapter3 import figures, measures
from helpers import probe

GRID = [6, 22, 50]
CURVES = {
    "one more 1": {
        "random digits": torch.tensor([3.0, 2.5, 2.4]),
        "commas": torch.tensor([2.0, 1.0, 0.7]),
    }
}
ZERO, ONE = torch.tensor([2.0, 1.0]), torch.tensor([-1.0, -0.5])
MARGINS = {
    "plain": {
        ("first", "first"): (ZERO, ONE),
        ("first", "last"): (0.5 * ZERO, 0.4 * ZERO),
        ("last", "first"): (0.3 * ONE, 0.2 * ONE),
        ("last", "last"): (ZERO + 1, -ONE),
    }
}


def _prefixes() -> dict[str, dict[str, measures.Resolution]]:
    """Representations that converge, and the same with an error of two parts, as a number type makes it."""
    generator = torch.Generator().manual_seed(0)
    base, way, other = torch.randn(3, 32, generator=generator, dtype=torch.float64)
    n = torch.arange(1, 513, dtype=torch.float64)[:, None]
    exact = base + way / n + 0.1 * other / n.sqrt()
    error = 2e-4 * torch.randn(exact.shape, generator=generator, dtype=torch.float64)
    return {
        kind: measures.controlled(exact, exact + size * error)
        for kind, size in (("bf16", 1), ("fp16", 0.1))
    }


def _falling():
    found = _prefixes()["bf16"]["its own"]
    return figures.falling("a model", found.signal[1:], found.floor[1:])


def _merging() -> pd.DataFrame:
    """With a tokenizer that makes one token of four letters."""
    fours = lambda model, text: torch.tensor([7] * (len(text) // 4) + [5] * (len(text) % 4))  # noqa: E731
    with mock.patch.object(probe, "encode", fours):
        return measures.merging(tiny("llama"), "a", (8, 12))


CALLS = {
    "figures.counterexample": lambda: figures.counterexample("rotation", math.pi, 1000),
    "figures.counterexample, coins": lambda: figures.counterexample("random", 1.0, 100),
    "measures.layer_means": lambda: measures.layer_means(True, 1.0, 2),
    "measures.separator_curves": measures.separator_curves,
    "figures.sharpening": figures.sharpening,
    "figures.head": lambda: figures.head(
        2 * torch.cos(math.pi / 2 * torch.arange(10_001).double())
    ),
    "figures.falling": _falling,
    **{
        f"figures.told_apart, {what}": lambda what=what: figures.told_apart(
            SimpleNamespace(name="a model", short="a model"), _prefixes(), "bf16", what
        )
        for what in figures.WHAT
    },
    "figures.told_apart, measured": lambda: figures.told_apart(
        SimpleNamespace(name=figures.MEASURED, short="the default model"),
        _prefixes(),
        "fp16",
        next(iter(figures.WHAT)),
    ),
    "figures.nearest_by_error": figures.nearest_by_error,
    "figures.nearest_by_error, nearest": lambda: figures.nearest_by_error(column="nearest"),
    "figures.figure5": lambda: figures.figure5("a model", CURVES, GRID, "one more 1"),
    "figures.copying": lambda: figures.copying("a model", MARGINS, [5, 300], "plain"),
    "measures.in_bands": lambda: measures.in_bands(
        _prefixes()["bf16"]["its own"], [2, 30, 200, 500]
    ),
    "measures.resolution_from": lambda: measures.resolution_from(_prefixes()["bf16"]["its own"]),
    "measures.merging": _merging,
    "measures.ones_at_the_end": lambda: measures.ones_at_the_end(tiny("llama"), (1, 5), 20, 1),
    "measures.random_digits": lambda: measures.random_digits(12, [3, 12]),
}
WITHOUT: set[str] = set()
