"""Train all seeds of an entry together until they meet the criterion, and measure each of them."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial

import torch

from course import training
from course.runs.entries import Differential, Entry, batch, decoder, entry_of
from course.runs.evaluation import NOISE_READERS, best_heads, look, noise_readers, score, tests_of
from course.runs.protocol import (
    CHECKED,
    FAR,
    FAR_ROWS,
    FINER,
    KEPT,
    LEARNED,
    LENGTHS,
    LOOKED,
    PARTS,
    RIVALS,
    SIZES,
    TRAINED,
)
from course.training.tasks import Batch
from helpers import compute, require
from helpers.transformer import Decoder


@cache
def criterion(task: str, separators: bool, n: int = TRAINED) -> Batch:
    """Return the sequences of length n on which we decide whether a model has learned.

    We use these sequences neither for training nor for testing.
    """
    entry = Entry(separators=separators)
    parts = [
        batch(entry, task, torch.Generator().manual_seed(3 * 10**6 + part), n) for part in range(2)
    ]
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def inside(model: Decoder, entry: Entry, task: str) -> float:
    """Return a model's accuracy on the sequences of `criterion`."""
    place = next(model.parameters()).device
    rows = criterion(task, entry.separators, entry.seen)
    return score(model.eval(), *(part.to(place) for part in rows))


def has_learned(model: Decoder, entry: Entry, task: str) -> bool:
    """Return whether the accuracy on the sequences of `criterion` is at least `LEARNED`."""
    return inside(model, entry, task) >= LEARNED


def train(
    entry: Entry,
    task: str,
    seeds: Sequence[int],
    steps: int,
    size: str = "small",
    rate: float | None = None,
) -> list[tuple[Decoder, int, bool]]:
    """Train the models of an entry together, and stop each model when it meets the criterion.

    Args:
        rate: the learning rate. `None` stands for the learning rate that `SIZES` has for this size.

    Returns:
        For each seed, the model, the number of steps that it took, and whether it has learned.
    """
    place = compute.device() if size != "small" else torch.device("cpu")
    models = [decoder(entry, task, seed, size).to(place) for seed in seeds]
    rate = SIZES[size]["rate"] if rate is None else rate
    taken = _to_the_criterion(entry, task, models, seeds, steps, rate)
    if entry.dropped:
        for model in models:
            for block in model.blocks:
                block.frequencies = None
        more = _to_the_criterion(entry, task, models, seeds, steps, rate)
        taken = [before + after for before, after in zip(taken, more, strict=True)]
    found = [
        (model.cpu(), count, has_learned(model, entry, task))
        for model, count in zip(models, taken, strict=True)
    ]
    if entry.at_test is not None:
        for model, *_ in found:
            for block in model.blocks:
                block.weigh = entry.at_test
    return found


def _to_the_criterion(
    entry: Entry, task: str, models: list[Decoder], seeds: Sequence[int], steps: int, rate: float
) -> list[int]:
    """Train each model to the criterion, and return the number of steps that each took.

    Recurrent networks are trained one after another, because `torch.vmap` cannot run them.
    """
    groups = [[k] for k in range(len(models))] if entry.model else [range(len(models))]
    taken, begun = {}, copy.deepcopy([model.state_dict() for model in models])
    for group in groups:
        try:
            losses = training.fit_together(
                [models[k] for k in group], partial(batch, entry, task), steps=steps, rate=rate,
                seeds=[seeds[k] for k in group], until=partial(has_learned, entry=entry, task=task),
                every=CHECKED,
            )  # fmt: skip
        except ValueError as error:
            if (
                "loss was" not in str(error) or len(models) == 1
            ):  # a single model may be a learner's own, and the learner should see the reason
                raise
            if len(group) > 1:  # one of them has diverged, so train each separately
                groups += [[k] for k in group]
                for k in group:
                    models[k].load_state_dict(begun[k])
                continue
            losses = [[0.0] * steps]  # this model has not learned
        taken |= dict(zip(group, map(len, losses), strict=True))
    return [taken[k] for k in range(len(models))]


def measure(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[dict[str, float | None]]:
    """Train one entry on one task, and return its rows of the table, one per seed."""
    start = time.process_time()
    trained = train(entry, task, seeds, steps, size)
    spent = 1000 * (time.process_time() - start) / sum(taken for _, taken, _ in trained)
    return [
        _short(
            {"learned": int(learned), "steps": taken, "step_ms": spent}
            | look(model, entry, task, seed)
        )
        for seed, (model, taken, learned) in zip(seeds, trained, strict=True)
    ]


def _first_touch(
    models: Sequence[Decoder],
    entry: Entry,
    task: str,
    every: int,
    look_at: Callable[[Decoder, int], dict] = lambda model, k: {},
) -> tuple[Callable[[Decoder], bool], dict[int, tuple[int, dict]]]:
    """Return a function that records when each model first meets the criterion.

    `training.fit_together` calls this function as its `until`. We also return the record.

    Returns:
        The function, and the dictionary that it fills. For each model that met the criterion, the
            dictionary has the model's index as a key. The value is a pair of the number of steps
            until then, rounded up to a multiple of `every`, and the result of `look_at` for the
            model and its index.
    """
    number, count, first = {id(model): k for k, model in enumerate(models)}, [0] * len(models), {}

    def watch(model: Decoder) -> bool:
        k = number[id(model)]
        count[k] += every
        if k not in first and has_learned(model, entry, task):
            first[k] = count[k], look_at(model, k)
        return False

    return watch, first


def fixed(
    entry: Entry,
    task: str,
    seeds: Sequence[int],
    steps: int,
    size: str = "small",
    rate: float | None = None,
) -> list[dict[str, float]]:
    """Train for a fixed number of steps, and return the steps to the criterion and final scores.

    All entries get the same number of steps, and we check the criterion every 10 steps.

    Args:
        rate: the learning rate. `None` stands for the learning rate that `SIZES` has for this size.
    """
    rate = SIZES[size]["rate"] if rate is None else rate
    models = [decoder(entry, task, seed, size) for seed in seeds]
    watch, first = _first_touch(models, entry, task, FINER)
    training.fit_together(
        models, partial(batch, entry, task), steps=steps, rate=rate, seeds=seeds, until=watch,
        every=FINER
    )  # fmt: skip
    rows = []
    for k, (model, seed) in enumerate(zip(models, seeds, strict=True)):
        tests = tests_of(entry, task, seed)
        best, *_ = best_heads(model.eval(), task, *(part[:32] for part in tests[LENGTHS[-1]]))
        rows.append(
            _short(
                {"learned": int(k in first), "steps": first[k][0] if k in first else steps}
                | {f"score_{n}": score(model, *test) for n, test in tests.items()}
                | {f"best_{LENGTHS[-1]}": best}
            )
        )
    return rows


def far(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[dict[str, float]]:
    """Train as for the main table, and test on longer sequences than the main table has.

    In the recall task, a pair takes two tokens.
    """
    return [
        _short(
            {"learned": int(learned), "steps": taken}
            | {
                f"score_{tokens}": further(model, entry, task, seed, tokens)
                for tokens in (LENGTHS[-1], *FAR)
            }
        )
        for seed, (model, taken, learned) in zip(
            seeds, train(entry, task, seeds, steps, size), strict=True
        )
    ]


def further(model: Decoder, entry: Entry, task: str, seed: int, tokens: int) -> float:
    """Return the accuracy on `FAR_ROWS` sequences of `tokens` tokens, read one at a time."""
    n = tokens // 2 if task == "recall" else tokens
    ids, targets = batch(
        entry, task, torch.Generator().manual_seed(2 * 10**6 + 10_000 * seed + n), n
    )
    return (
        sum(score(model.eval(), ids[k : k + 1], targets[k : k + 1]) for k in range(FAR_ROWS))
        / FAR_ROWS
    )


def plateau(
    entry: Entry,
    task: str,
    seeds: Sequence[int],
    steps: int,
    size: str = "small",
    rate: float | None = None,
) -> list[dict[str, float | None]]:
    """Train for a fixed number of steps, and measure each run at the criterion and at the end.

    Args:
        rate: the learning rate. `None` stands for the learning rate that `SIZES` has for this size.

    Returns:
        One row per seed, with these columns. Numbers k count `PARTS` equal parts of the steps.
        `learned`, `steps`: whether the run met the criterion, and after how many steps.
        `first_n`, `score_n`: the accuracy on n tokens at that time, and after all steps.
        `inside_k`: the mean accuracy on the sequences of `criterion` during part k.
        `out_k`: the accuracy at length `LENGTHS[-1]` at the end of part k.

    Raises:
        ValueError: if the steps are not a multiple of 5 x `PARTS`, or the entry is trained twice.
    """
    if steps % (5 * PARTS) or entry.dropped:
        raise ValueError(
            f"steps must be a multiple of {5 * PARTS}, and the entry must be trained "
            f"only once, not {steps}"
        )
    rate = SIZES[size]["rate"] if rate is None else rate
    alone = partial(plateau, entry, task, steps=steps, size=size, rate=rate)
    if entry.model and len(seeds) > 1:  # `torch.vmap` cannot run it
        return [row for seed in seeds for row in alone([seed])]
    models = [decoder(entry, task, seed, size) for seed in seeds]
    tests = [tests_of(entry, task, seed) for seed in seeds]
    number, every = {id(model): k for k, model in enumerate(models)}, steps // (5 * PARTS)
    within, out, first = [[] for _ in seeds], [[] for _ in seeds], {}

    def watch(model: Decoder) -> bool:
        k = number[id(model)]
        within[k].append(inside(model, entry, task))
        if len(within[k]) % 5 == 0:
            with _changed(model, entry):
                out[k].append(score(model, *tests[k][LENGTHS[-1]]))
        if k not in first and within[k][-1] >= LEARNED:
            first[k] = len(within[k]) * every, copy.deepcopy(model.state_dict())
        return False

    try:
        training.fit_together(
            models,
            partial(batch, entry, task),
            steps=steps,
            rate=rate,
            seeds=seeds,
            until=watch,
            every=every,
        )
    except ValueError as error:
        if "loss was" not in str(error):
            raise
        if len(seeds) > 1:  # one of them has diverged, so train each separately
            return [row for seed in seeds for row in alone([seed])]
        within, out = [[math.nan] * 5 * PARTS], [[math.nan] * PARTS]
    else:
        for model in models:  # after the last step, we must look ourselves
            watch(model.eval())
    rows = []
    for k in range(len(models)):
        row = {"learned": int(k in first), "steps": first[k][0] if k in first else steps}
        for part in range(PARTS):
            row |= {
                f"inside_{part + 1}": sum(within[k][5 * part : 5 * part + 5]) / 5,
                f"out_{part + 1}": out[k][part],
            }
        rows.append(row | {"best": None})
    for when in ("score", "first"):
        those = list(range(len(models))) if when == "score" else list(first)
        columns = {k: dict.fromkeys((*LENGTHS, *FAR)) for k in range(len(models))}
        for k in those:
            if when == "first":
                models[k].load_state_dict(first[k][1])
            with _changed(models[k].eval(), entry):
                columns[k] |= {n: score(models[k], *test) for n, test in tests[k].items()}
                if when == "score" and task in LOOKED and entry.model is None:
                    few = [part[: 8 if task == "recall" else 32] for part in tests[k][LENGTHS[-1]]]
                    rows[k]["best"] = best_heads(models[k], task, *few)[0]
        asked_further = task != RIVALS  # its keys are used up
        if (
            asked_further
            and those
            and sum(columns[k][LENGTHS[-1]] for k in those) / len(those) >= KEPT
        ):
            for k in those:
                with _changed(models[k], entry):
                    columns[k] |= {n: further(models[k], entry, task, seeds[k], n) for n in FAR}
        for k, row in enumerate(rows):
            row |= {f"{when}_{n}": value for n, value in columns[k].items()}
    return [_short(row) for row in rows]


@contextmanager
def _changed(model: Decoder, entry: Entry) -> Iterator[None]:
    """Apply the change that the entry makes after training, while the block runs."""
    if entry.at_test is not None:
        for block in model.blocks:
            block.weigh = entry.at_test
    yield
    if entry.at_test is not None:
        for block in model.blocks:
            block.weigh = None


def pairs(
    entry: str, rate: float, seed: Sequence[int], budget: int
) -> list[dict[str, float | None]]:
    """Train one entry on retrieval, and measure its noise at the criterion and at the end.

    All runs take the same number of steps, so that the two times can be compared.

    Returns:
        One row per seed, which says whether and when the run learned. At that time ("first_") and
            after all steps ("end_"), the row has the accuracy at each of `LENGTHS`, and the results
            of `evaluation.noise_readers` for layer 1 at the longest length. These results are
            missing for entries with one attention matrix, which have no second noise to compare.

    Raises:
        ValueError: if the entry is unknown, or a number is out of range.
    """
    own, task = entry_of(entry), "retrieval"
    models = [decoder(own, task, k) for k in require.integers("seed", seed, 0)]
    steps, rate = require.integer("budget", budget, 1), require.number("rate", rate, above=0)
    two = isinstance(models[0].blocks[0], Differential)

    def looked_at(model: Decoder, k: int) -> dict[str, float | None]:
        tests = tests_of(own, task, k)
        found = {f"score_{n}": score(model.eval(), *test) for n, test in tests.items()}
        few = tuple(part[:32] for part in tests[LENGTHS[-1]])
        return found | (noise_readers(model, task, *few) if two else dict.fromkeys(NOISE_READERS))

    watch, first = _first_touch(
        models, own, task, CHECKED, lambda model, k: looked_at(model, seed[k])
    )
    training.fit_together(
        models,
        partial(batch, own, task),
        steps=steps,
        rate=rate,
        seeds=seed,
        until=watch,
        every=CHECKED,
    )
    for model in models:  # after the last step, we must look ourselves
        watch(model)
    rows = []
    for k, model in enumerate(models):
        end = looked_at(model, seed[k])
        touch = first.get(k, (steps, dict.fromkeys(end)))
        row = {"learned": int(k in first), "steps": touch[0]}
        for when, values in (("first", touch[1]), ("end", end)):
            row |= {f"{when}_{name}": value for name, value in values.items()}
        rows.append(_short(row))
    return rows


def price(
    entry: str, trained: int, rate: float, seed: Sequence[int], budget: int
) -> list[dict[str, float]]:
    """Train on retrieval with a given number of pairs, and return the steps to the criterion.

    The criterion is tested at the trained number of pairs.

    Args:
        trained: the number of pairs, one of `LENGTHS`.

    Returns:
        One row per seed, with whether the run learned, its steps, and the accuracy at 16 pairs and
            at the trained number of pairs.

    Raises:
        ValueError: if the entry is unknown, or a number is out of range.
    """
    if trained not in LENGTHS:
        raise ValueError(f"trained must be one of {LENGTHS}, not {trained!r}")
    own = replace(entry_of(entry), seen=trained)
    return [
        {"learned": int(learned), "steps": taken}
        | {
            f"right_{name}": round(
                score(model.eval(), *criterion("retrieval", own.separators, n)), 5
            )
            for name, n in (("short", TRAINED), ("trained", trained))
        }
        for model, taken, learned in train(
            own,
            "retrieval",
            seed,
            require.integer("budget", budget, 1),
            rate=require.number("rate", rate, above=0),
        )
    ]


def _short(found: dict[str, float | None]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in found.items()}


def _number(value: float | None) -> float | None:
    """Round a number for a table, or return `None` if the model has diverged."""
    if isinstance(value, float):
        return round(value, 5) if math.isfinite(value) else None
    return value
