"""The race's runs: the seeds of a cell trained side by side to the criterion, and the rows that they give."""

import time
from collections.abc import Sequence
from functools import cache, partial

import torch

from helpers import compute, training
from helpers.chapter6.entries import Entry, batch, decoder
from helpers.chapter6.evaluation import look, score
from helpers.chapter6.protocol import CHECKED, LEARNED, SIZES, TRAINED
from helpers.tasks import Batch
from helpers.transformer import Decoder


@cache
def criterion(task: str, separators: bool) -> Batch:
    """The rows at the trained length that say whether a model has learned: neither trained nor tested on."""
    entry = Entry(separators=separators)
    parts = [batch(entry, task, torch.Generator().manual_seed(3 * 10**6 + part), TRAINED) for part in range(2)]
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def has_learned(model: Decoder, entry: Entry, task: str) -> bool:
    """Right in `LEARNED` of the questions of `criterion`."""
    place = next(model.parameters()).device
    return score(model, *(part.to(place) for part in criterion(task, entry.separators))) >= LEARNED


def train(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[tuple[Decoder, int, bool]]:
    """The trained models of an entry, their steps, and whether they have learned: side by side, each to the criterion."""
    place = compute.device() if size != "small" else torch.device("cpu")
    models = [decoder(entry, task, seed, size).to(place) for seed in seeds]
    losses = training.fit_together(
        models, partial(batch, entry, task), steps=steps, rate=SIZES[size]["rate"], seeds=seeds,
        until=partial(has_learned, entry=entry, task=task), every=CHECKED,
    )  # fmt: skip
    found = [
        (model.cpu(), len(each), has_learned(model, entry, task)) for model, each in zip(models, losses, strict=True)
    ]
    if entry.at_test is not None:
        for model, *_ in found:
            for block in model.blocks:
                block.weigh = entry.at_test
    return found


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


def _short(found: dict[str, float | None]) -> dict[str, float | None]:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in found.items()}
