"""Small decoders that learn to count and to copy, and where they break: the runs behind `data/counting_trained.csv`
and `data/copying_trained.csv`, and the checkpoints of the lab.
"""

import argparse
import copy
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import checkpoints, compute, sweep, training
from helpers.checkpoints import Trained
from helpers.tasks import PLACES, Copying, Counting
from helpers.transformer import Decoder

LONGEST = 16  # the longest string of training
COUNTING = Counting(lengths=(1, LONGEST), most=LONGEST, size=32)
COPYING = Copying(lengths=(1, LONGEST), size=32)
SIZES = {"counting": {"width": 64, "heads": 4, "layers": 2}, "copying": {"width": 32, "heads": 2, "layers": 3}}
STEPS = {"counting": 800, "copying": 600}
LENGTHS = (4, 8, 12, 16, 20, 24, 32, 48, 64)  # at which counting is tested; training ends at `LONGEST`
TURNS = (*range(2, 64), *range(64, 513, 16))  # lengths at which copying is tested
NEVER = 0  # in a table: no turn up to the last of `TURNS`

PLAIN = {"encoding": "RoPE", "base": 10_000, "window": 0, "tokens": "characters"}
ENCODINGS = [
    PLAIN,
    *(PLAIN | {"encoding": name} for name in ("0.5-RoPE", "NoPE", "APE", "ALiBi")),
    PLAIN | {"window": 8},
    *(PLAIN | {"base": base} for base in (10, 100, 1_000_000)),
]
TOKENISED = [
    *(PLAIN | {"tokens": tokens} for tokens in ("separated", "chunks of 2", "chunks of 4")),
    PLAIN | {"encoding": "NoPE", "tokens": "separated"},
]


def decoder(kind: str, task: Counting | Copying, encoding: str, base: float, window: int, seed: int) -> Decoder:
    """A new decoder for a task; "0.5-RoPE" turns the faster half of the pairs, window 0 is none."""
    share, _, name = encoding.rpartition("-")
    torch.manual_seed(seed)
    return Decoder(
        len(task.vocabulary), **SIZES[kind], encoding=name, base=base, turning=float(share or 1), window=window or None
    )


# Counting ------------------------------------------------------------------------------------------------


def answers(model: Decoder, task: Counting, strings: Sequence[str]) -> Int[Tensor, " m"]:
    """The number that the decoder names for each string, or -1 where it names no number."""
    tokens, targets = task.encode(strings)
    with torch.no_grad():
        named = model(tokens).argmax(-1)[targets != training.UNASKED]
    first = task.vocabulary.index("0")
    return torch.where((named >= first) & (named <= first + task.most), named - first, -1)


def errors(model: Decoder, task: Counting, n: int, count: int = 128, seed: int = 0) -> Int[Tensor, " count"]:
    """|answer - number of y| for strings of length n, with at most `task.most` y; no number counts as an answer of 0."""
    drawn, right = _questions(task, n, count, seed)
    return (answers(model, task, drawn).clamp(min=0) - right).abs()


def likeliest(n: int, most: int = LONGEST, count: int = 128, seed: int = 0) -> float:
    """The share of right answers to the same strings of whoever always names their most frequent count."""
    _, right = _questions(Counting(most=most), n, count, seed)
    return int(right.bincount().max()) / count


def _questions(task: Counting, n: int, count: int, seed: int) -> tuple[list[str], Int[Tensor, " count"]]:
    drawn = replace(task, lengths=(n, n), size=count).strings(torch.Generator().manual_seed(1_000 + seed))
    return drawn, torch.tensor([string.count("y") for string in drawn])


def noticed(model: Decoder, task: Counting, n: int, place: int, count: int = 128) -> float:
    """How often the answer rises by exactly one when the letter at `place` is changed from x to y."""
    task = replace(task, lengths=(n, n), size=count)
    drawn = task.strings(torch.Generator().manual_seed(2_000))
    drawn = [string for string in drawn if string.count("y") < task.most - 1]
    place = place % n
    pair = [[string[:place] + letter + string[place + 1 :] for string in drawn] for letter in "xy"]
    before, after = (answers(model, task, strings) for strings in pair)
    return float((after == before + 1).double().mean())


def type_accuracy(trained: Trained, lengths: Sequence[int] = (8, 12, 16, 20, 24, 32), count: int = 128) -> pd.DataFrame:
    """One decoder in three number types, by length: share of right counts, and of answers that are those of fp32."""
    rows, exact = [], {}
    for name in ("fp32", "fp16", "bf16"):
        model = copy.deepcopy(trained.model).to(compute.dtype(name))
        for n in lengths:
            drawn = replace(trained.task, lengths=(n, n), size=count).strings(torch.Generator().manual_seed(1_000))
            given = answers(model, trained.task, drawn)
            right = given == torch.tensor([string.count("y") for string in drawn])
            same = given == exact.setdefault(n, given)
            shares = {"right": float(right.double().mean()), "same": float(same.double().mean())}
            rows.append({"type": name, "length": n} | shares)
    return pd.DataFrame(rows)


def count_run(encoding: str, base: float, window: int, tokens: str, seed: int, steps: int) -> sweep.Setting:
    """Train one decoder to count; test it inside and beyond the lengths of training."""
    task = replace(COUNTING, tokens=tokens)
    model = decoder("counting", task, encoding, base, window, seed)
    found, spent, read = {}, 0.0, 0
    began = time.process_time()

    def batches(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        nonlocal read
        drawn = task(generator)
        read += int((drawn[0] != 0).sum())
        return drawn

    def watch(step: int, model: Decoder) -> None:
        nonlocal spent, began
        spent += time.process_time() - began
        if step:
            quarter = 4 * step // steps
            found.update({f"cpu_{quarter}": round(spent, 1), f"tokens_{quarter}": read})
            found[f"inside_{quarter}"] = training.accuracy(model, replace(task, size=256), count=2)
        began = time.process_time()

    training.fit(model, batches, steps=steps, seed=seed, watch=watch, every=steps // 4)
    for n in LENGTHS:
        wrong = errors(model, task, n)
        found[f"right_{n}"] = float((wrong == 0).double().mean())
        found[f"error_{n}"] = float(wrong.double().mean())
    alone = {"all_y": ["y" * n for n in range(1, LONGEST + 1)], "all_x_longer": ["x" * n for n in LENGTHS[4:]]}
    for name, strings in alone.items():
        right = torch.tensor([string.count("y") for string in strings])
        found[name] = float((answers(model, task, strings) == right).double().mean())
    for name, place in (("first", 0), ("last", -1)):
        found |= {f"{name}_{n}": noticed(model, task, n, place) for n in (12, 24)}
    return {name: round(value, 4) for name, value in found.items()}


# Copying -------------------------------------------------------------------------------------------------


def turn(lengths: Sequence[int], margin: Float[Tensor, " lengths"]) -> int:
    """The first length at which the answer is wrong, `NEVER` if there is none.

    >>> turn([2, 4, 8], torch.tensor([1.0, -0.5, 2.0]))
    4
    """
    wrong = (margin <= 0).nonzero()
    return int(lengths[int(wrong[0])]) if len(wrong) else NEVER


def copy_run(encoding: str, base: float, window: int, seed: int, steps: int) -> sweep.Setting:
    """Train one decoder to copy; find the lengths at which its answers turn, and what the representations are then."""
    model = decoder("copying", COPYING, encoding, base, window, seed)
    losses = training.fit(model, COPYING, steps=steps, seed=seed)
    trained = Trained(model, COPYING, {})
    found = {
        "loss": sum(losses[-20:]) / 20,
        "inside": training.accuracy(model, replace(COPYING, size=256), count=2),
        "longer": training.accuracy(model, replace(COPYING, lengths=(2 * LONGEST, 2 * LONGEST), size=256), count=2),
    }
    for place in PLACES:
        for digit in "01":
            seen = checkpoints.copying(trained, TURNS, place, digit)
            at, effect = turn(TURNS, seen["margin"]), seen["margin"] - seen["control"]
            here = TURNS.index(at) if at else len(TURNS) - 1
            short, end = TURNS.index(LONGEST), f"{place}_{digit}"
            found |= {
                f"turn_{end}": at,
                f"short_{end}": bool((seen["margin"][: short + 1] > 0).all()),
                f"control_{end}": turn(TURNS, -seen["control"]),
                f"distance_{end}": float(seen["distance"][here] / seen["distance"][short]),
                f"effect_{end}": float(effect[here] / effect[short]),
            }
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}


# What the tables say ------------------------------------------------------------------------------------


GROUPS = {
    "position encoding": ("encoding", ["NoPE", "ALiBi", "RoPE", "0.5-RoPE", "APE"]),
    "base of RoPE": ("base", [10, 100, 10_000, 1_000_000]),
    "tokens": ("tokens", ["characters", "separated", "chunks of 2", "chunks of 4"]),
    "window": ("window", [0, 8]),
}


def chosen_runs(table: pd.DataFrame, group: str) -> dict[str, pd.DataFrame]:
    """The rows for each member of one of `GROUPS`, all else as in the plain decoder: RoPE, base 10,000, characters."""
    column, members = GROUPS[group]
    found = {}
    for member in members:
        wanted = PLAIN | {column: member}
        rows = table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
        name = {
            "base": f"base {member:,}" if column == "base" else "",
            "window": "whole" if member == 0 else "window 8",
        }
        found[name.get(column) or str(member)] = rows
    return found


COPIERS = ["RoPE", "0.5-RoPE", "NoPE", "APE", "ALiBi", "RoPE, window 8"]
COPIERS += [f"RoPE, base {base:,}" for base in (10, 100, 1_000_000)]


def copiers(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each copying decoder by its name."""
    names = table.encoding.where(table.window == 0, table.encoding + ", window 8")
    other = (table.base != 10_000) & (table.window == 0)
    names = names.where(~other, table.encoding + table.base.map(", base {:,}".format))
    return {name: table[names == name] for name in COPIERS}


def by_budget(table: pd.DataFrame, encoding: str = "RoPE") -> dict[str, list[dict[str, float]]]:
    """For each seed the accuracy without commas at the end, and with commas after as many steps, seconds and tokens."""
    rows = table[(table.encoding == encoding) & (table.base == 10_000) & (table.window == 0)]
    found = {"equal steps": [], "equal time": [], "equal tokens": []}
    for _, pair in rows.groupby("seed"):
        pair = pair.set_index("tokens")
        plain, commas = pair.loc["characters"], pair.loc["separated"]
        curve = [float(commas[f"inside_{q}"]) for q in range(1, 5)]
        for name, unit in (("equal steps", None), ("equal time", "cpu"), ("equal tokens", "tokens")):
            if unit is None:
                reached = curve[-1]
            else:
                spent = [float(commas[f"{unit}_{q}"]) for q in range(1, 5)]
                reached = float(np.interp(float(plain[f"{unit}_4"]), spent, curve))
            found[name].append({"plain": float(plain.inside_4), "separated": reached})
    return found


def distance_left(table: pd.DataFrame) -> pd.Series:
    """For every answer that turns, right at all lengths of training: the distance left, relative to 16 digits."""
    parts = []
    for end in (f"{place}_{digit}" for place in PLACES for digit in "01"):
        rows = table[table[f"short_{end}"] & (table[f"turn_{end}"] != NEVER)]
        parts.append(rows[f"distance_{end}"])
    return pd.concat(parts)


# Command line --------------------------------------------------------------------------------------------

NOTES = {
    "counting": [
        "Decoders trained to say how many letters of a string of x and y are y: 800 steps of 32 strings of 1 to 16 letters",
        "two layers, four heads, width 64; an answer is one token, 0 to 16, so longer strings too have at most 16 y",
        "right_n, error_n: 128 strings of n letters; inside_q, cpu_q, tokens_q: accuracy on lengths 1 to 16, seconds of",
        "CPU and tokens read after each quarter q of the steps; all_y: right on y, yy, … of 1 to 16; all_x_longer: on x",
        "alone, 20 to 64; first_n, last_n: how often the answer rises by one when that letter turns from x to y",
    ],
    "copying": [
        "Decoders trained to name the first or the last digit of a string of 0 and 1: 600 steps of 32 strings of 1 to 16",
        "three layers, two heads, width 32; questions: n digits all alike but the one asked for (last_0: 1…10, last?)",
        "turn: first length with a wrong answer (0: none up to 512); short: right at every length up to 16; control: the",
        "same where all digits are alike; distance, effect: between question and control at the turn (at 512 without",
        "one), over their value at 16: L1 of the representations, and difference of the margins",
    ],
}
CHECKPOINTS = {
    "counting": ("counting", COUNTING, {"encoding": "RoPE"}, STEPS["counting"]),
    "copying": ("copying", COPYING, {"encoding": "RoPE"}, STEPS["copying"]),
    "copying_nope": ("copying", COPYING, {"encoding": "NoPE"}, STEPS["copying"]),
}


def make_checkpoints(folder: Path, seed: int = 0) -> None:
    """Train the decoders of `CHECKPOINTS` again; the same weights on the same machine."""
    for name, (kind, task, chosen, steps) in CHECKPOINTS.items():
        arguments = SIZES[kind] | {"window": None, "base": 1e4, "turning": 1.0} | chosen
        model = decoder(kind, task, chosen["encoding"], 1e4, 0, seed)
        losses = training.fit(model, task, steps=steps, seed=seed)
        inside = training.accuracy(model, replace(task, size=256), count=4)
        outside = {
            f"accuracy at length {n}": training.accuracy(model, replace(task, lengths=(n, n), size=256), count=1)
            for n in (LONGEST, 2 * LONGEST, 4 * LONGEST)
        }
        checkpoints.save(
            folder / f"{name}.safetensors", model, task, arguments,
            what=f"A decoder of the course's own, trained for the toy task {kind}; nothing else was in its training.",
            trained={"steps": steps, "seed": seed, "optimiser": "AdamW, rate 3e-3", "last loss": round(losses[-1], 5)},
            results={"accuracy at the lengths of training": inside, **outside},
            limits=f"Strings of 1 to {LONGEST} letters; on longer ones it breaks, which is what it is for.",
            command="python -m helpers.chapter4.trained checkpoints --folder data/checkpoints",
            made_with=f"Python {platform.python_version()}, torch {torch.__version__}",
            licence="as the course's code",
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    name = "python -m helpers.chapter4.trained"
    if arguments[:1] == ["checkpoints"]:
        parser = argparse.ArgumentParser(prog=f"{name} checkpoints", description=make_checkpoints.__doc__)
        parser.add_argument("--folder", type=Path, required=True, help="where weights and cards go")
        make_checkpoints(parser.parse_args(arguments[1:]).folder)
        return
    runs = {"counting": (count_run, [*ENCODINGS, *TOKENISED]), "copying": (copy_run, ENCODINGS)}
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=runs)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    sweep.options(parser)
    chosen = parser.parse_args(arguments)
    function, configurations = runs[chosen.task]
    if chosen.task == "copying":
        configurations = [{k: v for k, v in each.items() if k != "tokens"} for each in configurations]
    steps = STEPS[chosen.task]
    settings = [each | {"seed": seed, "steps": steps} for seed in chosen.seeds for each in configurations]
    sweep.run_line(parser, arguments, function, settings, NOTES[chosen.task])


if __name__ == "__main__":
    main()
