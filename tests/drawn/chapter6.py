"""Calls of chapter 6's figures and tables, each with its cheapest arguments."""

import torch

from course.chapter6 import figures, measures
from course.experiments import ablations, comparison

CALLS = {
    "figures.noise_left": figures.noise_left,
    "figures.noise_left, twice": lambda: figures.noise_left(2.0),
    **{
        f"figures.panel, {content}, {kind}": lambda content=content, kind=kind: figures.panel(content, 16, kind)
        for content in measures.CONTENTS
        for kind in measures.KINDS_OF_MAPS
    },
    **{
        f"figures.slopes, {task}": lambda task=task: figures.slopes(comparison.table(), task)[1]
        for task in comparison.table().task.unique()
    },
    "figures.locks": lambda: figures.locks(comparison.table()),
    "figures.standing": lambda: figures.standing(comparison.table()),
    "figures.board": lambda: figures.board(comparison.table().query("entry in ['RoPE', 'NoPE']")).data,
    "comparison.correlations": lambda: comparison.correlations(comparison.table()),
    "figures.opens": lambda: figures.opens(comparison.table()),
    "figures.opens, few": lambda: figures.opens(comparison.table(), few=True),
    "figures.protocol": lambda: figures.protocol(comparison.table()),
    "figures.decisions": figures.decisions,
    "figures.examples": lambda: figures.examples(comparison.table()),
    "figures.more_steps": figures.more_steps,
    "figures.hypotheses": lambda: figures.hypotheses(comparison.table()),
    "comparison.judge": lambda: [str(found) for found in comparison.judge(comparison.table()).values()],
    "figures.answer": lambda: figures.answer(comparison.table()),
    "figures.prices": lambda: figures.prices(comparison.table()),
    "figures.further": lambda: figures.further("retrieval"),
    "comparison.seen": lambda: comparison.seen(comparison.table()),
    "ablations.judged": ablations.judged,
    "comparison.compare": lambda: comparison.compare(comparison.table()),
    "comparison.noises": lambda: comparison.noises(comparison.table()),
    "comparison.successes": lambda: comparison.successes(comparison.table()),
    "measures.counted": measures.counted,
    "figures.state_outliers": lambda: figures.state_outliers(torch.tensor([2.0, 30.0]), torch.tensor([2.0, 5.0])),
}
WITHOUT: set[str] = set()
