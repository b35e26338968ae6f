"""The race's runs: the seeds of a cell trained side by side to the criterion, and the rows that they give."""

import copy
import math
import time
from collections.abc import Sequence
from functools import cache, partial

import torch

from course.experiments.entries import Entry, batch, decoder
from course.experiments.evaluation import best_heads, look, score, tests_of
from course.experiments.protocol import CHECKED, FAR, FAR_ROWS, FINER, LEARNED, LENGTHS, SIZES, TRAINED
from helpers import compute, training
from helpers.tasks import Batch
from helpers.transformer import Decoder


@cache
def criterion(task: str, separators: bool, n: int = TRAINED) -> Batch:
    """The rows at the trained length n that say whether a model has learned: neither trained nor tested on."""
    entry = Entry(separators=separators)
    parts = [batch(entry, task, torch.Generator().manual_seed(3 * 10**6 + part), n) for part in range(2)]
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def has_learned(model: Decoder, entry: Entry, task: str) -> bool:
    """Right in `LEARNED` of the questions of `criterion`."""
    place = next(model.parameters()).device
    rows = criterion(task, entry.separators, entry.seen)
    return score(model.eval(), *(part.to(place) for part in rows)) >= LEARNED


def train(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[tuple[Decoder, int, bool]]:
    """The trained models of an entry, their steps, and whether they have learned: side by side, each to the criterion."""
    place = compute.device() if size != "small" else torch.device("cpu")
    models = [decoder(entry, task, seed, size).to(place) for seed in seeds]
    taken = _to_the_criterion(entry, task, models, seeds, steps, size)
    if entry.dropped:
        for model in models:
            for block in model.blocks:
                block.frequencies = None
        more = _to_the_criterion(entry, task, models, seeds, steps, size)
        taken = [before + after for before, after in zip(taken, more, strict=True)]
    found = [(model.cpu(), count, has_learned(model, entry, task)) for model, count in zip(models, taken, strict=True)]
    if entry.at_test is not None:
        for model, *_ in found:
            for block in model.blocks:
                block.weigh = entry.at_test
    return found


def _to_the_criterion(
    entry: Entry, task: str, models: list[Decoder], seeds: Sequence[int], steps: int, size: str
) -> list[int]:
    """How many steps each model took; recurrent networks one after another, which `torch.vmap` cannot run."""
    groups = [[k] for k in range(len(models))] if entry.model else [range(len(models))]
    taken, begun = {}, copy.deepcopy([model.state_dict() for model in models])
    for group in groups:
        try:
            losses = training.fit_together(
                [models[k] for k in group], partial(batch, entry, task), steps=steps, rate=SIZES[size]["rate"],
                seeds=[seeds[k] for k in group], until=partial(has_learned, entry=entry, task=task), every=CHECKED,
            )  # fmt: skip
        except ValueError as error:
            if "loss was" not in str(error) or len(models) == 1:  # one alone is a learner's own: told why
                raise
            if len(group) > 1:  # one has diverged: each by itself
                groups += [[k] for k in group]
                for k in group:
                    models[k].load_state_dict(begun[k])
                continue
            losses = [[0.0] * steps]  # it has not learned
        taken |= dict(zip(group, map(len, losses), strict=True))
    return [taken[k] for k in range(len(models))]


def measure(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[dict[str, float | None]]:
    """The rows of a cell: train, then all columns of the table."""
    start = time.process_time()
    trained = train(entry, task, seeds, steps, size)
    spent = 1000 * (time.process_time() - start) / sum(taken for _, taken, _ in trained)
    return [
        _short({"learned": int(learned), "steps": taken, "step_ms": spent} | look(model, entry, task, seed))
        for seed, (model, taken, learned) in zip(seeds, trained, strict=True)
    ]


def fixed(entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small") -> list[dict[str, float]]:
    """Rows at a fixed budget, the same for all: the steps to the criterion, looked at every 10, and the scores at the end."""
    models, first = [decoder(entry, task, seed, size) for seed in seeds], {}
    number = {id(model): k for k, model in enumerate(models)}
    count = [0] * len(models)

    def watch(model: Decoder) -> bool:
        k = number[id(model)]
        count[k] += FINER
        if k not in first and has_learned(model, entry, task):
            first[k] = count[k]
        return False

    training.fit_together(
        models, partial(batch, entry, task), steps=steps, rate=SIZES[size]["rate"], seeds=seeds, until=watch, every=FINER
    )  # fmt: skip
    rows = []
    for k, (model, seed) in enumerate(zip(models, seeds, strict=True)):
        tests = tests_of(entry, task, seed)
        best, *_ = best_heads(model.eval(), task, *(part[:32] for part in tests[LENGTHS[-1]]))
        rows.append(
            _short(
                {"learned": int(k in first), "steps": first.get(k, steps)}
                | {f"score_{n}": score(model, *test) for n, test in tests.items()}
                | {f"best_{LENGTHS[-1]}": best}
            )
        )
    return rows


def far(entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small") -> list[dict[str, float]]:
    """Rows of runs trained as for the table, on more tokens than it has; two tokens a pair at recall."""
    rows = []
    for seed, (model, taken, learned) in zip(seeds, train(entry, task, seeds, steps, size), strict=True):
        row = {"learned": int(learned), "steps": taken}
        for tokens in (LENGTHS[-1], *FAR):
            n = tokens // 2 if task == "recall" else tokens
            ids, targets = batch(entry, task, torch.Generator().manual_seed(2 * 10**6 + 10_000 * seed + n), n)
            parts = [score(model.eval(), ids[k : k + 1], targets[k : k + 1]) for k in range(FAR_ROWS)]
            row[f"score_{tokens}"] = sum(parts) / FAR_ROWS
        rows.append(_short(row))
    return rows


def _short(found: dict[str, float | None]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in found.items()}


def _number(value: float | None) -> float | None:
    """For a table: a model that has diverged has no finite ones."""
    if isinstance(value, float):
        return round(value, 5) if math.isfinite(value) else None
    return value
