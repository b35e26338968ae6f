"""Calls of chapter 7's figures and tables, each with its cheapest arguments."""

from course.chapter7 import figures
from course.runs import comparison, rates

CALLS = {
    **{
        f"figures.slopes, {task}": lambda task=task: figures.slopes(comparison.table(), task)[1]
        for task in comparison.table().task.unique()
    },
    "figures.standing": lambda: figures.standing(comparison.table()),
    "figures.board": lambda: (
        figures.board(comparison.table().query("entry in ['RoPE', 'NoPE']")).data
    ),
    "comparison.correlations": lambda: comparison.correlations(comparison.table()),
    "figures.both_kept": lambda: figures.both_kept(comparison.table()),
    "figures.tasks_kept": lambda: figures.tasks_kept(comparison.table()),
    "comparison.judge": lambda: [
        str(found) for found in comparison.judge(comparison.table()).values()
    ],
    "figures.closing_answer": lambda: figures.closing_answer(comparison.table()),
    "figures.tasks_asked": lambda: figures.tasks_asked(comparison.table()),
    "figures.entrants": lambda: figures.entrants(comparison.table()),
    "figures.speed": lambda: figures.speed(rates.by_rate()),
    "figures.stops": lambda: figures.stops(rates.by_rate()),
    "figures.lengths_learned": lambda: figures.lengths_learned(comparison.table()),
    "figures.late_pairs": figures.late_pairs,
    "figures.prices": lambda: figures.prices(comparison.table()),
    "comparison.all_positions_seen": lambda: comparison.all_positions_seen(comparison.table()),
    "comparison.compare": lambda: comparison.compare(comparison.table()),
    "comparison.noises": lambda: comparison.noises(comparison.table()),
    "comparison.successes": lambda: comparison.successes(comparison.table()),
}
WITHOUT: set[str] = set()
