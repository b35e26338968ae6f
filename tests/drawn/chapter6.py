"""Calls of chapter 6's figures and tables, each with its cheapest arguments."""

import torch

from helpers.chapter6 import ablations, figures, measures, race

REMEDIES = [*race.POSITIONS, *(name for names in race.PHYSICAL.values() for name in names)]

CALLS = {
    "figures.noise_left": figures.noise_left,
    "figures.noise_left, twice": lambda: figures.noise_left(2.0),
    "figures.gradient_ratio": figures.gradient_ratio,
    "figures.retrieval": figures.retrieval,
    "figures.answer_mass": figures.answer_mass,
    "figures.counting": figures.counting,
    "figures.reported_ablations": figures.reported_ablations,
    **{
        f"figures.panel, {content}": lambda content=content: figures.panel(content, 16) for content in measures.CONTENTS
    },
    "figures.race_table": lambda: figures.race_table(race.table()),
    "figures.race_table, few": lambda: figures.race_table(race.table(), few=True),
    "figures.verdicts": lambda: figures.verdicts(race.table()),
    **{
        f"figures.lengths, {task}": lambda task=task: figures.lengths(race.table(), task)
        for task in race.table().task.unique()
    },
    **{f"figures.masses, {task}": lambda task=task: figures.masses(race.table(), task) for task in race.LOOKED},
    "figures.masses, few": lambda: figures.masses(race.table(), few=True),
    "figures.share_and_score": lambda: figures.share_and_score(race.table()),
    "figures.correlations": lambda: figures.correlations(race.table()),
    "figures.controls": lambda: figures.controls(race.table()),
    "figures.outliers": lambda: figures.outliers(race.table()),
    "figures.ranks": lambda: figures.ranks(race.table()),
    "figures.opens": lambda: figures.opens(race.table()),
    "figures.opens, few": lambda: figures.opens(race.table(), few=True),
    "figures.ablated": figures.ablated,
    "figures.protocol": lambda: figures.protocol(race.table()),
    "figures.decisions": figures.decisions,
    "figures.examples": lambda: figures.examples(race.table()),
    "figures.legend": lambda: figures.legend(race.table()),
    "figures.found_at": lambda: figures.found_at(race.table(), REMEDIES, "retrieval"),
    "figures.hypotheses": lambda: figures.hypotheses(race.table()),
    "figures.judge": lambda: [str(found) for found in figures.judge(race.table()).values()],
    "figures.outcome": lambda: figures.outcome(race.table()),
    "figures.answer": lambda: figures.answer(race.table()),
    "ablations.judged": ablations.judged,
    "race.compare": lambda: race.compare(race.table()),
    "race.noises": lambda: race.noises(race.table()),
    "race.successes": lambda: race.successes(race.table()),
    "measures.counted": measures.counted,
    "figures.state_outliers": lambda: figures.state_outliers(torch.tensor([2.0, 30.0]), torch.tensor([2.0, 5.0])),
}
WITHOUT: set[str] = set()
