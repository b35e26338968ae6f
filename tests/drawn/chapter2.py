"""Calls of chapter 2's figures and tables, each with its cheapest arguments."""

from unittest import mock

import pandas as pd
import torch
from tiny_models import tiny

from course.chapter2 import figures, measures
from helpers import attention, data, probe

WINDOW = attention.uniform(attention.window_mask(10, 4))
NORMS = torch.linspace(2, 6, 30, dtype=torch.float64) + torch.tensor([10.0] + [0.0] * 29)
WORDS = ["(first)", *(f"word{chr(97 + k % 26)}" for k in range(29))]


def _scores() -> dict[str, torch.Tensor]:
    model = tiny("llama")
    return {
        kind: probe.head_scores(model, measures.sequence(model, kind, 24)).sink
        for kind in ("natural", "repeated")
    }


def _hidden() -> dict[str, measures.Hidden]:
    model = tiny("llama")
    text = measures.sequence(model, "natural", measures.AFTER + 8)
    cases = {"nothing hidden": (), "first hidden": (1, 1), "first hidden late": (1, 25)}
    return {name: measures.hiding(model, text, *case) for name, case in cases.items()}


def _sinks() -> pd.DataFrame:
    with mock.patch.object(
        measures, "TEXTS", ("natural", "repeated")
    ):  # the small vocabulary has no random tokens
        return measures.sink_table(tiny("llama"), 24, (0,))


CALLS = {
    "figures.graph": lambda: figures.graph(WINDOW, 2),
    "figures.graph, to the first token": lambda: figures.graph(WINDOW, heard_token=1),
    "figures.worst_heard": figures.worst_heard,
    "figures.worst_heard, half kept": lambda: figures.worst_heard(0.5),
    "figures.trap, own": lambda: figures.trap(lambda matrix: float(matrix[-1, 0])),
    "figures.brake": figures.brake,
    "figures.sinks_by_layer": lambda: figures.sinks_by_layer(_scores()),
    "figures.sensitivities": lambda: figures.sensitivities(
        NORMS, 0.1 * NORMS, WORDS, NORMS.flip(0)
    ),
    "figures.before_and_after": lambda: figures.before_and_after(data.table("sensitivity_smollm2")),
    "figures.hidden_since": lambda: figures.hidden_since(
        data.table("hiding_smollm2"), data.table("hiding_untrained")
    ),
    "measures.sink_table": _sinks,
    "measures.hiding": lambda: {name: found._asdict() for name, found in _hidden().items()},
    "measures.compare_connections": lambda: measures.compare_connections(16, 0.5),
    "measures.influences": lambda: measures.influences(
        tiny("llama"), measures.sequence(tiny("llama"), "natural", 12)
    ),
    "measures.value_ratios": lambda: measures.value_ratios(
        tiny("llama"), measures.sequence(tiny("llama"), "natural", 12)
    ),
}
WITHOUT: set[str] = set()
