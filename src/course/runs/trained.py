"""Train small decoders to count and to copy, and measure where they fail.

These runs are in `data/counting_trained.csv` and `data/copying_trained.csv`. This module also makes
the checkpoints that the lab loads.
"""

import itertools
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course import training
from course.evidence import significance
from course.runs import sweep
from course.training import checkpoints
from course.training.checkpoints import Trained
from course.training.tasks import PLACES, Copying, Counting, RunningCount
from helpers import require
from helpers.transformer import Decoder

LONGEST = 16  # the longest string in training
# for counters, strings per step, largest rate, and steps to reach it
BATCH, RATE, WARMUP = 16, 3e-3, 100
COUNTING = RunningCount(lengths=(1, LONGEST), most=LONGEST, size=BATCH)
COPYING = Copying(lengths=(1, LONGEST), size=32)
SIZES = {
    "counting": {"width": 64, "heads": 4, "layers": 2},
    "copying": {"width": 32, "heads": 2, "layers": 3},
}
STEPS = {"counting": 640, "copying": 600}
STRINGS = 256  # strings of each length on which a decoder is tested
LEARNED = 0.99  # accuracy at every length, the criterion for having learned to count
LENGTHS = (
    4,
    8,
    12,
    16,
    18,
    20,
    24,
    32,
    48,
    64,
)  # lengths at which counting is tested, where training ends at `LONGEST`
PROBED = (
    12,
    16,
    20,
    28,
    32,
    # lengths at which the probed counters are tested, beyond `LONGEST` with a probe as well
)
BEYOND = range(
    LONGEST + 1, 2 * LONGEST + 1
)  # lengths beyond training, to which a probe is fitted, all of them together
TURNS = (*range(2, 64), *range(64, 513, 16))  # lengths at which copying is tested
PROBED_ENCODINGS = ("RoPE", "NoPE", "ALiBi", "APE")
READ = (16, 32, 64, 128)  # lengths at which a probe reads the copiers' states
NUDGED_LENGTHS = (16, 20, 24, 32)  # lengths at which a counter with one changed weight is tested
NEVER = 0  # in a table, this says that the answer turned wrong at none of `TURNS`

PLAIN = {"encoding": "RoPE", "base": 10_000, "window": 0, "tokens": "characters"}
# of the talk, where a base of 1 gives all pairs the same rotation
BASES = (1.001, 10, 100, 500, 1000, 5000, 10_000, 100_000, 500_000, 1_000_000)


def decoder(
    kind: str, task: Counting | Copying, encoding: str, base: float, window: int, seed: int
) -> Decoder:
    """Build an untrained decoder for a task.

    Args:
        encoding: the position encoding. "0.5-RoPE" rotates only the faster half of the pairs.
        window: the number of tokens that each layer sees, or 0 for all tokens.
    """
    share, _, name = encoding.rpartition("-")
    torch.manual_seed(seed)
    return Decoder(
        len(task.vocabulary),
        **SIZES[kind],
        encoding=name,
        base=base,
        turning=float(share or 1),
        window=window or None,
    )


# Probe the states ---------------------------------------------------------------------------------


@torch.no_grad()
def states(model: Decoder, ids: Int[Tensor, "b n"]) -> list[Float[Tensor, "b d"]]:
    """Return the last token's hidden state after each layer and after the final norm."""
    x, by_layer = model.embed(ids), []
    for block in model.blocks:
        x = block(x)
        by_layer.append(x[:, -1].float())
    return [*by_layer, model.norm(x)[:, -1].float()]


def linear_probe(
    known: Float[Tensor, "m d"],
    labels: Int[Tensor, " m"],
    penalty: float = 1e-3,
    iterations: int = 100,
) -> Callable[[Float[Tensor, "k d"]], Int[Tensor, " k"]]:
    """Fit a linear probe by multinomial regression, and return it as a function.

    The function maps hidden states to labels.
    """
    middle, spread = known.mean(0), known.std(0).clamp(min=1e-6)
    layer = nn.Linear(known.shape[1], int(labels.max()) + 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser = torch.optim.LBFGS(
        layer.parameters(), max_iter=iterations, line_search_fn="strong_wolfe"
    )
    inputs = (known - middle) / spread

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = (
            nn.functional.cross_entropy(layer(inputs), labels)
            + penalty * layer.weight.square().sum() / 2
        )
        value.backward()
        return value

    optimiser.step(loss)
    return torch.no_grad()(lambda new: layer((new - middle) / spread).argmax(-1))


def share(
    probe: Callable[[Tensor], Tensor], new: Float[Tensor, "k d"], right: Int[Tensor, " k"]
) -> float:
    """Return the fraction of hidden states for which a probe predicts the right label."""
    return float((probe(new) == right).double().mean())


def shuffled(labels: Int[Tensor, " m"], seed: int) -> Int[Tensor, " m"]:
    """Return the labels in random order, as a null control for a probe.

    A probe that is fitted to shuffled labels must fail.
    """
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


# Train and test counters --------------------------------------------------------------------------


def train(
    model: Decoder,
    task: Callable,
    steps: int,
    seed: int,
    weights: Float[Tensor, " v"] | None = None,
) -> list[float]:
    """Train a counter with equal weight for every answer, and return the loss of every step.

    The learning rate falls along half a cosine.
    """
    weights = task.weights if weights is None else weights
    return training.fit(
        model, task, steps=steps, rate=RATE, warmup=WARMUP, cosine=True, weights=weights, seed=seed
    )


def answers(model: Decoder, task: Counting, strings: Sequence[str]) -> Int[Tensor, " m"]:
    """Return the decoder's answer to each string, or -1 if its answer is not a number."""
    tokens, targets = task.encode(strings)
    with torch.no_grad():
        named = model(tokens).argmax(-1)[targets != training.UNASKED]
    first = task.vocabulary.index("0")
    return torch.where((named >= first) & (named <= first + task.most), named - first, -1)


def errors(model: Decoder, task: Counting, n: int, count: int = 128) -> Int[Tensor, " count"]:
    """Return the absolute error of the decoder's answer to each of `count` strings of n letters.

    A string has from 0 to n letters y, but at most `task.most`, and each of these numbers occurs
    equally often. An answer that is not a number counts as 0.
    """
    drawn, right = _questions(task, n, count, 1_000)
    return (answers(model, task, drawn).clamp(min=0) - right).abs()


def share_right(model: Decoder, task: Counting, n: int, count: int = 256) -> float:
    """Return the fraction of right answers on `count` strings of n letters."""
    return float((errors(model, task, n, count) == 0).double().mean())


def one_number(n: int, most: int = LONGEST) -> float:
    """Return the accuracy of a decoder that always gives the same number.

    The right answers are the counts from 0 to the smaller of n and `most`, and all are equally
    likely. A decoder that counts must be more accurate than this.
    """
    return 1 / (min(n, most) + 1)


def _questions(
    task: Counting, n: int, count: int, seed: int
) -> tuple[list[str], Int[Tensor, " count"]]:
    drawn = replace(task, lengths=(n, n), size=count).strings(torch.Generator().manual_seed(seed))
    return drawn, torch.tensor([string.count("y") for string in drawn])


def noticed(model: Decoder, task: Counting, n: int, place: int) -> float:
    """Return how often the answer rises by exactly one if one letter changes from x to y.

    If a decoder ignores the changed letter, the result is low.

    Args:
        n: the number of letters.
        place: the position of the letter that changes.
    """
    strings, counts = _questions(task, n, 128, 2_000)
    drawn = [
        string for string, y in zip(strings, counts.tolist(), strict=True) if y < task.most - 1
    ]
    place = place % n
    pair = [[string[:place] + letter + string[place + 1 :] for string in drawn] for letter in "xy"]
    before, after = (answers(model, task, strings) for strings in pair)
    return float((after == before + 1).double().mean())


class Seen(NamedTuple):
    """Hold the final hidden states of strings of several lengths.

    Attributes:
        states: the last state of each string.
        counts: the number of y in each string.
        lengths: the number of letters of each string.
    """

    states: Float[Tensor, "m d"]
    counts: Int[Tensor, " m"]
    lengths: Int[Tensor, " m"]


def seen(model: Decoder, task: Counting, lengths: Sequence[int], count: int, seed: int) -> Seen:
    """Return the final hidden states of `count` strings of each length.

    Every count occurs equally often. The same seed draws the same strings.
    """
    parts = []
    for n in lengths:
        strings, counts = _questions(task, n, count, seed + n)
        parts.append((states(model, task.encode(strings)[0])[-1], counts, torch.full((count,), n)))
    return Seen(*(torch.cat(part) for part in zip(*parts, strict=True)))


def least_squares(
    known: Float[Tensor, "m d"], labels: Int[Tensor, " m"], penalty: float = 0.0
) -> tuple[Float[Tensor, " d"], Callable[[Float[Tensor, "k d"]], Int[Tensor, " k"]]]:
    """Fit a linear probe of a count by least squares in fp64.

    The fit minimises the mean squared error plus `penalty` times the squares of the weights, after
    each coordinate was scaled to mean 0 and standard deviation 1.

    Returns:
        The weights, and a function that returns the count of each state, rounded to an integer.
    """
    known, middle, spread = (
        known.double(),
        known.double().mean(0),
        known.double().std(0).clamp(min=1e-6),
    )
    inputs, mean = (known - middle) / spread, labels.double().mean()
    if penalty:
        square = inputs.mT @ inputs / len(inputs) + penalty * torch.eye(
            inputs.shape[1], dtype=inputs.dtype
        )
        solution = torch.linalg.solve(square, inputs.mT @ (labels - mean) / len(inputs))
    else:
        solution = torch.linalg.lstsq(inputs, (labels - mean)[:, None], driver="gelsd").solution[
            :, 0
        ]
    weights = solution / spread
    return weights, lambda new: ((new.double() - middle) @ weights + mean).round().long()


READERS = ("least squares", "multinomial")
ASKED_BEYOND = (20, 24)  # lengths beyond training at which the probes are compared


def from_training_lengths(
    model: Decoder, task: RunningCount, penalties: Sequence[float], known: int, new: int
) -> list[dict[str, float]]:
    """Fit a linear probe on strings of trained lengths only, and test it on longer strings.

    The trained lengths are 1 to `LONGEST` letters.

    Returns:
        One row for each penalty.
        `within`: the accuracy on other strings of the trained lengths, by which the penalty is
            chosen.
        `from_16_n`: the accuracy on strings of n letters.
    """
    lengths = range(1, LONGEST + 1)
    old, held_out = seen(model, task, lengths, known, 3_000), seen(model, task, lengths, new, 5_000)
    beyond = {n: seen(model, task, [n], new, 7_000) for n in ASKED_BEYOND}
    rows = []
    for penalty in penalties:
        _, read = least_squares(old.states, old.counts, penalty)
        row = {"within": share(read, held_out.states, held_out.counts)}
        row |= {
            f"from_16_{n}": share(read, strings.states, strings.counts)
            for n, strings in beyond.items()
        }
        rows.append(row)
    return rows


@cache
def _counters(encoding: str, seed: int, steps: int) -> dict[str, Decoder]:
    models = {
        name: decoder("counting", COUNTING, encoding, 1e4, 0, seed)
        for name in ("untrained", "trained")
    }
    train(models["trained"], COUNTING, steps, seed)
    return models


def readers_run(
    encoding: str,
    seed: int,
    steps: int,
    reader: str,
    penalty: Sequence[float],
    known: int = 400,
    new: int = 256,
) -> list[dict[str, float | None]]:
    """Measure how often linear probes recover the count of 20 letters, with one row per penalty.

    There are two kinds of probes, which are fitted on strings of different lengths. The first kind
    is fitted on `known` strings of each length of `BEYOND` except 20. With "least squares", there
    is also a second kind, which is fitted on strings of the trained lengths, 1 to `LONGEST`
    letters.

    Args:
        reader: "least squares", or "multinomial", which fits in 2,000 iterations.
        penalty: the penalties of the probes.

    Returns:
        One row per penalty. "multinomial" has only the first two columns.
        `trained`, `untrained`: the accuracy on the last states of the decoder after and before
            training.
        `trained_bf16`, `untrained_bf16`: the accuracy on the same states rounded to bf16.
        `trained_shuffled`, `untrained_shuffled`: the accuracy after a fit to shuffled counts.
        `ratio`: the accuracy of a probe that only gets the fraction of y.
        `trained_within`, `untrained_from_16_n` and so on: the results of the second kind of probe
            (see `from_training_lengths`).
        `own_n`: how often the trained decoder itself gives the right count of n letters.
        The other columns are the results of the function `used` for the trained decoder.

    Raises:
        ValueError: if the reader is unknown.
    """
    require.choice("reader", reader, READERS)
    rows: list[dict[str, float | None]] = [{} for _ in penalty]
    models, n = _counters(encoding, seed, steps), 20
    for name, model in models.items():
        if reader == "least squares":
            by_penalty = from_training_lengths(model, COUNTING, penalty, known, new)
            of_head = (
                {f"own_{m}": share_right(model, COUNTING, m) for m in ASKED_BEYOND}
                if name == "trained"
                else {}
            )
            for row, part in zip(rows, by_penalty, strict=True):
                row |= {f"{name}_{what}": value for what, value in part.items()} | of_head
        old, fresh = (
            seen(model, COUNTING, [m for m in BEYOND if m != n], known, 3_000),
            seen(model, COUNTING, [n], new, 7_000),
        )
        wrong = shuffled(old.counts, seed)
        cases = {name: (old.states, fresh.states, old.counts)}
        if reader == "least squares":
            rounded = (states.to(torch.bfloat16).float() for states in (old.states, fresh.states))
            cases |= {
                f"{name}_bf16": (*rounded, old.counts),
                f"{name}_shuffled": (old.states, fresh.states, wrong),
            }
            if name == "trained":
                shares = ((strings.counts / strings.lengths)[:, None] for strings in (old, fresh))
                cases["ratio"] = (*shares, old.counts)
        for row, strength in zip(rows, penalty, strict=True):
            for case, (known_, tested, labels) in cases.items():
                if reader == "least squares":
                    weights, read = least_squares(known_, labels, strength)
                    if case == "trained":
                        row |= used(model, COUNTING, weights, read, old, fresh)
                else:
                    read = linear_probe(known_, labels, strength, 2_000)
                row[case] = share(read, tested, fresh.counts)
    return [{name: round(value, 4) for name, value in row.items()} for row in rows]


def used(
    model: Decoder,
    task: RunningCount,
    weights: Float[Tensor, " d"],
    read: Callable,
    old: Seen,
    tested: Seen,
) -> dict[str, float]:
    """Test whether a decoder uses the same part of the hidden state that a probe reads.

    The decoder's answer depends only on one subspace. This is the space that the unembedding rows
    of the numbers span (around their mean).

    Returns:
        `in_head`: the fraction of the probe's squared length that lies in this space.
        `random_in_head`: the 95% quantile of the same fraction for 1,000 random directions.
        `up_readout`: how often the answer rises by exactly one when the last state takes the
            shortest step that adds one to the probe.
        `up_random`: how often the answer rises by exactly one after a random step of the same
            length.
        `up_along`: how often it does so after a step from the mean state of one count to the mean
            state of the next count.
        `up_without`: how often it does so after this step without the part that the probe can see.
        `read_own`: how often the probe rises by exactly one when the state moves as far as in
            `up_along`, but along the difference between the unembedding rows of the next number and
            of the answer.
    """
    first, generator = task.vocabulary.index("0"), torch.Generator().manual_seed(0)
    rows = model.head.weight[first : first + task.most + 1].detach().double()
    basis = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
    basis = basis.Vh[basis.S > 1e-6 * basis.S[0]]

    def inside(directions: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        return (directions @ basis.mT).square().sum(1) / directions.square().sum(1)

    def named(states: Float[Tensor, "m d"]) -> Int[Tensor, " m"]:
        return (states @ rows.mT).argmax(-1)

    means = torch.stack(
        [old.states[old.counts == c].double().mean(0) for c in range(task.most + 1)]
    )
    states = tested.states.double()
    room = (tested.counts < task.most) & (named(states) < task.most)
    states, counts = states[room], tested.counts[room]
    before, along = named(states), means[counts + 1] - means[counts]
    shortest = (weights / weights.square().sum()).expand_as(states)
    at_random = torch.randn(states.shape, generator=generator, dtype=states.dtype)
    at_random = at_random / at_random.norm(dim=1, keepdim=True) * shortest.norm(dim=1, keepdim=True)
    steps = {"readout": shortest, "random": at_random, "along": along}
    steps["without"] = along - (along @ weights / weights.square().sum())[:, None] * weights
    toward_next = rows[before + 1] - rows[before]
    toward_next = (
        toward_next / toward_next.norm(dim=1, keepdim=True) * along.norm(dim=1, keepdim=True)
    )
    drawn = torch.randn(1_000, states.shape[1], generator=generator, dtype=states.dtype)
    return {
        "in_head": float(inside(weights[None])),
        "random_in_head": float(inside(drawn).quantile(0.95)),
        "read_own": float((read(states + toward_next) == read(states) + 1).double().mean()),
    } | {
        f"up_{name}": float((named(states + step) == before + 1).double().mean())
        for name, step in steps.items()
    }


@torch.no_grad()
def moved(model: Decoder, task: RunningCount, known: int = 400, new: int = 256) -> dict[str, float]:
    """Return how often the answer rises by exactly one if we move the final hidden state.

    Each move is as long as the difference between the mean states of the string's count and of the
    next count. The means are taken from other strings, with the lengths in `BEYOND`, or with 9 to
    16 letters if the test is within the trained lengths.

    Returns:
        The following fractions for each tested length n.
        `along_n`: the state moves along this difference.
        `against_n`: the state moves in the opposite direction.
        `random_n`: the state moves in a random direction.
        `own_n`: the state moves along the difference between the unembedding rows of the next
            number and of its answer.
    """
    first, generator = task.vocabulary.index("0"), torch.Generator().manual_seed(0)

    def named(states: Tensor) -> Int[Tensor, " m"]:
        return model.head(states)[:, first : first + task.most + 1].argmax(-1)

    rises = {}
    for n in (n for n in PROBED if n >= LONGEST):
        old = seen(
            model,
            task,
            BEYOND if n > LONGEST else range(LONGEST // 2 + 1, LONGEST + 1),
            known,
            3_000,
        )
        means = torch.stack([old.states[old.counts == c].mean(0) for c in range(task.most + 1)])
        tested = seen(model, task, [n], new, 7_000)
        before = named(tested.states)
        room = (tested.counts < task.most) & (before < task.most)
        states, counts, before = tested.states[room], tested.counts[room], before[room]
        along = means[counts + 1] - means[counts]
        rows = model.head.weight[first + before + 1] - model.head.weight[first + before]
        steps = {"along": along, "against": -along}
        steps |= {"random": torch.randn(along.shape, generator=generator), "own": rows}
        for name, step in steps.items():
            step = step / step.norm(dim=1, keepdim=True) * along.norm(dim=1, keepdim=True)
            rises[f"{name}_{n}"] = float((named(states + step) == before + 1).double().mean())
    return rises


def count_run(
    encoding: str, base: float, window: int, tokens: str, seed: int, steps: int
) -> sweep.Setting:
    """Train one decoder to count, test it within and beyond training, and probe its states."""
    task = replace(COUNTING, tokens=tokens)
    model = decoder("counting", task, encoding, base, window, seed)
    losses, row = train(model, task, steps, seed), {}
    row["loss"] = sum(losses[-20:]) / 20
    row["inside"] = sum(share_right(model, task, n, 64) for n in range(1, 17)) / 16
    row["least"] = min(share_right(model, task, n) for n in (12, 13, 14, 15, 16))
    for n in LENGTHS:
        wrong = errors(model, task, n, STRINGS)
        row[f"right_{n}"] = float((wrong == 0).double().mean())
        row[f"error_{n}"] = float(wrong.double().mean())
    alone = {
        "all_y": ["y" * n for n in range(1, LONGEST + 1)],
        "all_x_longer": ["x" * n for n in LENGTHS[5:]],
    }
    for name, strings in alone.items():
        counts = torch.tensor([string.count("y") for string in strings])
        row[name] = float((answers(model, task, strings) == counts).double().mean())
    for name, place in (("first", 0), ("last", -1)):
        row |= {f"{name}_{n}": noticed(model, task, n, place) for n in (12, 24)}
    return {name: round(value, 4) for name, value in row.items()}


def counter_run(encoding: str, seed: int, steps: int) -> sweep.Setting:
    """Train one decoder to count, and test whether its answer follows its hidden state.

    `moved` defines the test. The row also has the accuracy beyond the trained lengths.
    """
    model = _counters(encoding, seed, steps)["trained"]
    row = {f"right_{n}": share_right(model, COUNTING, n) for n in PROBED} | moved(model, COUNTING)
    return {name: round(value, 4) for name, value in row.items()}


def comma_run(encoding: str, tokens: str, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder to count with or without commas, and test it within and beyond training."""
    task = replace(COUNTING, tokens=tokens)
    model = decoder("counting", task, encoding, 1e4, 0, seed)
    train(model, task, steps, seed)
    row = {"read": steps * BATCH * task(torch.Generator())[0].shape[1]}
    by_length = [share_right(model, task, n, 128) for n in range(1, LONGEST + 1)]
    row |= {"inside": sum(by_length) / LONGEST, "longest": by_length[-1]}
    return row | {f"right_{n}": share_right(model, task, n) for n in (18, 20, 24)}


def nudged_run(encoding: str, seed: int, nudge: float, steps: int) -> sweep.Setting:
    """Train one counter after adding `nudge` to one initial weight, to see the role of chance."""
    model = decoder("counting", COUNTING, encoding, 1e4, 0, seed)
    with torch.no_grad():
        model.head.weight[0, 0] += nudge
    losses = train(model, COUNTING, steps, seed)
    found = {"loss_100": losses[99], "loss": sum(losses[-20:]) / 20}
    found |= {f"right_{n}": share_right(model, COUNTING, n) for n in NUDGED_LENGTHS}
    return {name: round(value, 5) for name, value in found.items()}


COMMA_STEPS = 120  # few steps, so that there is room for a difference within the trained lengths
FEWER = (
    COMMA_STEPS * (LONGEST + 1) // (2 * LONGEST)
)  # steps in which a decoder with commas reads as many tokens


# Train and test copiers ---------------------------------------------------------------------------


def turn(lengths: Sequence[int], margin: Float[Tensor, " lengths"]) -> int:
    """Return the first length at which the answer is wrong, or `NEVER` if there is none.

    >>> turn([2, 4, 8], torch.tensor([1.0, -0.5, 2.0]))
    4
    """
    wrong = (margin <= 0).nonzero()
    return int(lengths[int(wrong[0])]) if len(wrong) else NEVER


def copier_run(encoding: str, seed: int, steps: int, strings: int = 4_096) -> sweep.Setting:
    """Train a copier, and test whether probes recover the digit to copy from its hidden states.

    Returns:
        One row with the following accuracies for each position in the string and each length.
        `right`: the decoder itself.
        `probe`: the better one of a multinomial and a least-squares probe.
        `untrained`: the better probe on the states before training.
        `shuffled`: the better of two probes that are fitted to shuffled digits.
        `majority`: always predicting the more frequent digit.
    """
    models = {
        name: decoder("copying", COPYING, encoding, 1e4, 0, seed) for name in ("untrained", "probe")
    }
    training.fit(models["probe"], COPYING, steps=steps, seed=seed)
    zero, one = (COPYING.vocabulary.index(digit) for digit in "01")
    row = {}
    for n in READ:
        for place in PLACES:
            drawn = []
            for part, size in ((1, strings), (2, strings // 4)):
                task = replace(COPYING, lengths=(n, n), places=(place,), size=size)
                ids, targets = task(torch.Generator().manual_seed(6_000 + 10 * n + part))
                drawn.append((ids, (targets[:, -1] == one).long()))
            (old, labels), (new, right) = drawn
            ones, zeros = ((new == digit).sum(1) for digit in (one, zero))
            guess = torch.where(ones == zeros, torch.arange(len(new)) % 2, (ones > zeros).long())
            cases = {"majority": float((guess == right).double().mean())}
            for name, model in models.items():
                known, fresh = (states(model, ids)[-1] for ids in (old, new))
                cases[name] = _either(known, labels, fresh, right)
                if name == "probe":
                    with torch.no_grad():
                        logits = model.head(fresh)
                    cases["right"] = float(
                        ((logits[:, one] > logits[:, zero]).long() == right).double().mean()
                    )
                    cases["shuffled"] = _either(known, shuffled(labels, n), fresh, right)
            row |= {f"{name}_{place}_{n}": value for name, value in cases.items()}
    return {name: round(value, 4) for name, value in row.items()}


def _either(known: Tensor, labels: Tensor, new: Tensor, right: Tensor) -> float:
    """Return the accuracy of the better one of two linear probes for a digit."""
    fitted, (_, line) = linear_probe(known, labels, 1e-4, 300), least_squares(known, labels)
    return max(
        share(fitted, new, right), share(lambda unseen: line(unseen).clamp(0, 1), new, right)
    )


def copy_run(encoding: str, base: float, window: int, seed: int, steps: int) -> sweep.Setting:
    """Train one decoder to copy, and find the lengths from which its answers are wrong.

    Returns:
        One row with the loss and the accuracies, and the following columns for each position and
            digit.
        `turn`: the first length with a wrong answer.
        `short`: whether all answers up to `LONGEST` digits are right.
        `control`: the first length with a wrong answer to the control string.
        `distance`: the distance between hidden states at the first wrong answer, or at the longest
            length if all answers are right, divided by the distance at `LONGEST` digits.
        `effect`: the same ratio for the digit's effect on the logits.
    """
    model = decoder("copying", COPYING, encoding, base, window, seed)
    losses = training.fit(model, COPYING, steps=steps, seed=seed)
    trained = Trained(model, COPYING, {})
    row = {
        "loss": sum(losses[-20:]) / 20,
        "inside": training.accuracy(model, replace(COPYING, size=256), count=2),
        "longer": training.accuracy(
            model, replace(COPYING, lengths=(2 * LONGEST, 2 * LONGEST), size=256), count=2
        ),
    }
    for place in PLACES:
        for digit in "01":
            measured = checkpoints.copying(trained, TURNS, place, digit)
            at, effect = turn(TURNS, measured["margin"]), measured["margin"] - measured["control"]
            index = TURNS.index(at) if at else len(TURNS) - 1
            short, end = TURNS.index(LONGEST), f"{place}_{digit}"
            row |= {
                f"turn_{end}": at,
                f"short_{end}": bool((measured["margin"][: short + 1] > 0).all()),
                f"control_{end}": turn(TURNS, -measured["control"]),
                f"distance_{end}": float(measured["distance"][index] / measured["distance"][short]),
                f"effect_{end}": float(effect[index] / effect[short]),
            }
    return {
        name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()
    }


# Read the tables ----------------------------------------------------------------------------------


GROUPS = {
    "position encoding": ("encoding", ["NoPE", "ALiBi", "RoPE", "0.5-RoPE", "APE"]),
    "base of RoPE": ("base", list(BASES)),
    "tokens": ("tokens", ["characters", "separated", "chunks of 2", "chunks of 4"]),
    "window": ("window", [0, 8]),
}


def chosen_runs(table: pd.DataFrame, group: str) -> dict[str, pd.DataFrame]:
    """Return the runs to compare within one group of `GROUPS`, with one key for each member.

    All settings except the compared one are those of the plain decoder, which has RoPE with base
    10,000 and reads characters.
    """
    column, members = GROUPS[group]
    by_member = {}
    for member in members:
        settings = PLAIN | {column: member}
        rows = table[(table[list(settings)] == pd.Series(settings)).all(axis=1)]
        name = {
            "base": f"base {member:,}" if column == "base" else "",
            "window": "whole" if member == 0 else "window 8",
        }
        by_member[name.get(column) or str(member)] = rows
    return by_member


class Gap(NamedTuple):
    """Hold the gain in accuracy from commas, with its interval.

    Attributes:
        mean: the mean gain over the seeds.
        low, high: the ends of its 95% interval.
        seeds: the number of seeds.
    """

    mean: float
    low: float
    high: float
    seeds: int


def commas(table: pd.DataFrame, encoding: str, budget: str, where: str = "inside") -> Gap:
    """Return how much commas between the letters raise the accuracy, paired by seed.

    Args:
        budget: "equal steps" or "equal tokens", which is what the decoders with and without commas
            have in common.
        where: the column of the table with the accuracy.

    Raises:
        ValueError: if the table has fewer than two seeds with and without commas.
    """
    rows = table[table.encoding == encoding].set_index("seed")
    plain = rows[rows.tokens == "characters"][where]
    steps = COMMA_STEPS if budget == "equal steps" else FEWER
    gaps = (rows[(rows.tokens == "separated") & (rows.steps == steps)][where] - plain).dropna()
    if len(gaps) < 2:
        raise ValueError(
            "table must have at least two seeds with and without commas for "
            f"{encoding}, not {len(gaps)}"
        )
    return Gap(*significance.interval(gaps), len(gaps))


def comma_gaps(table: pd.DataFrame) -> dict[str, Gap]:
    """Return how much commas raise the accuracy, keyed by encoding and budget."""
    pairs = itertools.product(("RoPE", "NoPE"), ("equal steps", "equal tokens"))
    return {", ".join(pair): commas(table, *pair) for pair in pairs}


# Make the checkpoints -----------------------------------------------------------------------------

CHECKPOINTS = {
    "counting": ("counting", COUNTING, {"encoding": "RoPE"}, STEPS["counting"]),
    "copying": ("copying", COPYING, {"encoding": "RoPE"}, STEPS["copying"]),
    "copying_nope": ("copying", COPYING, {"encoding": "NoPE"}, STEPS["copying"]),
}


def make_checkpoints(folder: Path, seed: int = 0) -> None:
    """Train the decoders of `CHECKPOINTS` again, and write them to a folder.

    On the same machine, the weights are the same as before.
    """
    for name, (kind, task, chosen, steps) in CHECKPOINTS.items():
        arguments = SIZES[kind] | {"window": None, "base": 1e4, "turning": 1.0} | chosen
        model = decoder(kind, task, chosen["encoding"], 1e4, 0, seed)
        if kind == "counting":
            losses = train(model, task, steps, seed)
            rates = f"AdamW, rate {RATE}, falling along a cosine; every answer weighs the same"
            lengths = (*range(1, LONGEST + 1), *LENGTHS[LENGTHS.index(LONGEST) + 1 :])
            accuracies = {n: share_right(model, task, n) for n in lengths}
            results = {
                "accuracy at the worst length of training": min(
                    accuracies[n] for n in range(1, LONGEST + 1)
                )
            }
            results |= {
                f"accuracy at length {n}": accuracies[n] for n in (LONGEST, *lengths[LONGEST:])
            }
        else:
            losses = training.fit(model, task, steps=steps, seed=seed)
            rates = "AdamW, rate 3e-3"
            results = {
                f"accuracy at length {n}": training.accuracy(
                    model, replace(task, lengths=(n, n), size=256), count=1
                )
                for n in (LONGEST, 2 * LONGEST, 4 * LONGEST)
            }
        inside = training.accuracy(model, replace(task, size=256), count=4)
        checkpoints.save(
            folder / f"{name}.safetensors",
            model,
            task,
            arguments,
            what=(
                f"A decoder of the course's own, trained for the toy task {kind}; "
                "nothing else was in its training."
            ),
            trained={
                "steps": steps,
                "seed": seed,
                "optimiser": rates,
                "last loss": round(losses[-1], 5),
            },
            results={"accuracy at the lengths of training": inside} | results,
            limits=(
                f"Strings of 1 to {LONGEST} letters; on longer ones it breaks, which is what it "
                "is for."
            ),
            command="python -m course.runs checkpoints",
            made_with=f"Python {platform.python_version()}, torch {torch.__version__}",
            licence="as the course's code",
        )
