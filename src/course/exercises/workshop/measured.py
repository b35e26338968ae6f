"""Measure everything that the pages "Now yours" measure, for any decoder that `parts.mine` reads.

`tests/test_workshop.py` compares the results with those of the pages.
"""

import torch
from torch import Tensor

from course.exercises.workshop import (
    NEEDLE,
    _agree,
    _heard,
    _held_out,
    _spare,
    _steps,
    attention_on_answer,
)
from course.exercises.workshop.parts import Decoder, batch, exchanged, right, train, untrained
from helpers import rope

LENGTHS = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 150, 256, 512, 1024)
PLACED = 150  # the longest length that a table of positions has rows for


def measured(model: Decoder) -> dict[str, dict[str, float]]:
    """Return all numbers that the pages save with `parts.note`, under the same names.

    The numbers are grouped by chapter, from 0 (Build it) to 6. The numbers of chapter 5 come from a
    copy of the decoder that is trained for 50 more steps.
    """
    with torch.no_grad():
        numbers = {
            str(k): measure(model)
            for k, measure in enumerate((_answers, _arriving, _hearing, _parted, _counting))
        }
    numbers["5"] = _sparing(model)
    with torch.no_grad():
        return numbers | {"6": _agreeing(model)}


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _mean(x: Tensor) -> float:
    return float(x.double().mean())


def _below(model: Decoder, ids: Tensor, layer: int) -> Tensor:
    x = model.embed(ids)
    for block in model.blocks[:layer]:
        x = block(x)
    return x


def _answers(model: Decoder) -> dict[str, float]:
    return {f"right at {n}": right(model, n) for n in (16, 64)}


def _arriving(model: Decoder) -> dict[str, float]:
    ids, targets = batch(16, _seeded(1), rows=250)
    far = _steps(torch.ones(20, 20).tril().triu(-5).bool()).flip(0)
    arrives = far[torch.arange(16, 20) - NEEDLE.answers(ids)[:, -4:]] <= len(model.blocks)
    good = exchanged(model, window=6)(ids)[:, 16:].argmax(-1) == targets[:, 16:]
    return {"arrives": _mean(arrives), "right where it arrives": _mean(good[arrives])}


def _hearing(model: Decoder) -> dict[str, float]:
    rows, _ = batch(16, _seeded(6), rows=30)
    of, place = torch.arange(len(rows)), NEEDLE.answers(rows)[:, -1]
    with torch.enable_grad():
        loud = torch.stack([_heard(model, row[None]) for row in rows])
    loud = loud / loud.sum(1, keepdim=True)
    blocks = attention_on_answer(model, rows)[:, :, -1]
    return {
        "influence": _mean(loud[of, place]),
        "influence of itself": _mean(loud[:, -1]),
        "attention": float(blocks.double().mean(1).max()),
    }


def _parted(model: Decoder) -> dict[str, float]:
    bare, value, rows = exchanged(model, where=False), torch.arange(4), []

    def last(of: Decoder, n: int) -> Tensor:
        ids = torch.tensor([[13 + v] + [19] * n + [5] for v in range(4)])
        return of.states(of.embed(ids))[:, -1]

    for n in LENGTHS:
        a, more = last(bare, n), last(bare, n + 1)
        read = a.bfloat16().float()
        row = {"one more b, found": (read - a).norm(dim=1) < (read - more).norm(dim=1)}
        if n <= PLACED:
            a = last(model, n)
            row["own answer right"] = model.head(a).argmax(-1) == 1 + value
            row["search right"] = torch.cdist(a.bfloat16().float(), a).argmin(1) == value
        rows.append(row)
    return {
        name: _mean(torch.stack([row[name] for row in rows if name in row])) for name in rows[0]
    }


def _counting(model: Decoder) -> dict[str, float]:
    torch.manual_seed(0)
    models, g, drawn = {"mine": model, "nothing learned": untrained(model)}, _seeded(0), []
    for n in range(8, 17):
        many = torch.randint(n + 1, (100, 1), generator=g)
        first = torch.rand(100, n, generator=g).argsort(1) < many
        drawn.append(
            (torch.cat([torch.where(first, 13, 18), torch.full((100, 1), 5)], 1), first.double())
        )
    count = torch.cat([first.sum(1) for _, first in drawn])
    order = torch.randperm(len(count), generator=g)
    y = count[order]

    def best(states: list[Tensor]) -> float:
        near = [torch.cdist(X[1::2], X[::2]).argmin(1) for X in states]
        return max(
            *map(float, (_held_out(X, y) for X in states)),
            *(_mean(y[::2][k] == y[1::2]) for k in near),
        )

    accuracies = {}
    for name, of in models.items():
        layers = range(1, len(of.blocks) + 1)
        states = [
            torch.cat([_below(of, ids, k)[:, -1].double() for ids, _ in drawn])[order]
            for k in layers
        ]
        accuracies[name] = best(states)
    return accuracies | {
        "only the fraction": best([torch.cat([first.mean(1) for _, first in drawn])[order, None]])
    }


def _sparing(model: Decoder) -> dict[str, float]:
    theta = rope.frequencies(8, 1e4).float()
    torch.manual_seed(0)
    turning = exchanged(
        model, turn=lambda x: rope.rotate(x, torch.arange(x.shape[-2]), theta), where=False
    )
    roped = train(turning.requires_grad_(), steps=50)
    accuracies = {"all rotate, at 64": right(roped, 64)}
    accuracies["worst pair taken out, at 64"] = min(
        right(_spare(roped, pair), 64) for pair in range(4)
    )
    still = []
    for pair in range(4):
        angle, theta[pair] = float(theta[pair]), 0.0
        still.append(right(roped, 64))
        theta[pair] = angle
    return accuracies | {"best pair not rotated, at 64": max(still)}


def _agreeing(model: Decoder) -> dict[str, float]:
    def cosines(layer: int) -> tuple[float, float]:
        ids, _ = batch(16, _seeded(16), rows=200)
        A, place = (
            model.blocks[layer].weights(_below(model, ids, layer))[0][:, :, -1],
            NEEDLE.answers(ids)[:, -1],
        )
        heads, at = A.shape[1], place.roll(1)[:, None, None].expand(-1, A.shape[1], 1)
        apart = _agree(torch.cat([A, A.roll(1, 0).scatter(-1, at, 0.0)], 1), place)[:heads, heads:]
        is_other_head = ~torch.eye(heads).bool()
        return _mean(_agree(A, place)[is_other_head]), _mean(apart[is_other_head])

    same_row, strange = cosines(len(model.blocks) - 1)
    return {
        "cosine, last block": same_row,
        "with another row": strange,
        "cosine, first block": cosines(0)[0],
    }
