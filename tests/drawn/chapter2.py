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
    return {kind: probe.head_scores(model, measures.sequence(model, kind, 24)).sink for kind in ("natural", "repeated")}


def _heads() -> probe.HeadScores:
    model = tiny("llama")
    return probe.head_scores(model, measures.sequence(model, "natural", 24), offsets=(0, 1, 3))


def _hidden() -> dict[str, measures.Hidden]:
    model = tiny("llama")
    text = measures.sequence(model, "natural", measures.AFTER + 8)
    cases = {"nothing hidden": (), "first hidden": (1, 1), "first hidden late": (1, 25)}
    return {name: measures.hiding(model, text, *case) for name, case in cases.items()}


def _sinks() -> pd.DataFrame:
    with mock.patch.object(measures, "TEXTS", ("natural", "repeated")):  # the small vocabulary has no random tokens
        return measures.sink_table(tiny("llama"), 24, (0,))


def _spreads(*controls: float) -> pd.DataFrame:
    """The sink hidden late moves one text 1.5 and the other 3 times as far; the controls move the first as given."""
    rows = [("a", 0, 1, 1.0), ("b", 0, 1, 1.0), ("a", 1, 25, 1.5), ("b", 1, 25, 3.0)]
    for (token, since), spread in zip([(1, 1), (6, 25)], controls, strict=True):
        rows += [("a", token, since, spread), ("b", token, since, 1.0)]
    return pd.DataFrame(rows, columns=["text", "token", "since", "spread"])


RANKS = pd.DataFrame({
    "a": {"rollout": 0.2, "mask alone": 0.1, "untrained": 0.4, "position": -0.2, "shuffled heads": 0.3, "one layer": 0.9},
    "b": {"rollout": -0.1, "mask alone": 0.3, "untrained": 0.5, "position": -0.1, "shuffled heads": 0.0, "one layer": 0.8},
})  # fmt: skip

CALLS = {
    "figures.graph": lambda: figures.graph(WINDOW, 2),
    "figures.graph, to the first token": lambda: figures.graph(WINDOW, heard_token=1),
    "figures.worst_heard": figures.worst_heard,
    "figures.worst_heard, half kept": lambda: figures.worst_heard(0.5),
    "figures.mask": lambda: [figures.mask(name, 12)[-1] for name in figures.MASKS],
    "figures.trap": figures.trap,
    "figures.trap, own": lambda: figures.trap(lambda matrix: float(matrix[-1, 0])),
    "figures.brake": figures.brake,
    "figures.sinks_by_layer": lambda: figures.sinks_by_layer(_scores()),
    "figures.sensitivities": lambda: figures.sensitivities(NORMS, 0.1 * NORMS, WORDS, NORMS.flip(0)),
    "figures.before_and_after": lambda: figures.before_and_after(data.table("sensitivity_smollm2")),
    "figures.proxies": lambda: figures.proxies(RANKS),
    "figures.giants": lambda: figures.giants(_hidden()),
    "figures.hidden_since": lambda: figures.hidden_since(data.table("hiding_smollm2")),
    "figures.taken_apart": lambda: figures.taken_apart(measures.brake_table()),
    "figures.taken_apart_says": lambda: figures.taken_apart_says(measures.brake_table()),
    "figures.brakes": lambda: figures.brakes(data.table("hiding_smollm2")),
    "figures.brakes, the first control further": lambda: figures.brakes(_spreads(2, 1.2)),
    "figures.brakes, the second control further": lambda: figures.brakes(_spreads(1.2, 2)),
    "figures.answer": lambda: figures.answer(
        data.table("sensitivity_smollm2"), {0.5: RANKS, 0.9: RANKS + 0.1}, data.table("hiding_smollm2"), 0.6
    ),
    "measures.sink_table": _sinks,
    "figures.handed_over": lambda: figures.handed_over(tiny("llama"), measures.sequence(tiny("llama"), "natural", 12)),
    "measures.hiding": lambda: {name: found._asdict() for name, found in _hidden().items()},
    "measures.best_heads": lambda: measures.best_heads(_heads(), (0, 1, 3)),
    "measures.compare_connections": measures.compare_connections,
    "measures.readers_of": measures.readers_of,
    "measures.printed_constant": measures.printed_constant,
    "measures.influences": lambda: measures.influences(tiny("llama"), measures.sequence(tiny("llama"), "natural", 12)),
    "measures.value_ratios": lambda: measures.value_ratios(
        tiny("llama"), measures.sequence(tiny("llama"), "natural", 12)
    ),
}
WITHOUT: set[str] = set()
