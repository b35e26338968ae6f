"""How many pairs does a state of fixed size hold? The runs behind `data/race_states.csv`."""

from collections.abc import Callable, Sequence

import torch

from course import training
from course.experiments import sweep
from course.experiments.entries import DELTA, ENTRIES, LINEAR
from course.tasks import Batch
from helpers import require
from helpers.transformer import Decoder

DESIGNS = ("NoPE", LINEAR, DELTA)
PAIRS, KEYS, VALUES, ASKED = (4, 8, 12, 16, 24, 32), 32, 4, 4
RATE, ROWS = 5e-3, 32
VOCABULARY = VALUES + KEYS + KEYS * VALUES


def recalled(count: int | None = None, size: int = ROWS) -> Callable[[torch.Generator], Batch]:
    """Pairs of key and value, a token each, every key once; then `ASKED` of the keys, whose values are asked for.

    Tokens: the values, a question for each key, a token for each pair. `count` None: drawn for a batch, up to `KEYS`.
    """

    def drawn(generator: torch.Generator) -> Batch:
        pairs = count or int(torch.randint(PAIRS[0], KEYS + 1, (), generator=generator))
        keys = torch.rand(size, KEYS, generator=generator).argsort(1)[:, :pairs]
        values = torch.randint(VALUES, (size, pairs), generator=generator)
        asked = torch.rand(size, pairs, generator=generator).argsort(1)[:, :ASKED]
        tokens = torch.cat([VALUES + KEYS + VALUES * keys + values, VALUES + keys.gather(1, asked)], 1)
        return tokens, torch.cat([torch.full_like(keys, training.UNASKED), values.gather(1, asked)], 1)

    return drawn


def run(design: str, width: int, steps: int, seed: Sequence[int]) -> list[sweep.Setting]:
    """Train one layer of one head, whose state has width x width numbers (NoPE: as many pairs as there are); a row a seed."""
    block = ENTRIES[require.choice("design", design, DESIGNS)].block
    models = []
    for each in seed:
        torch.manual_seed(each)
        models.append(Decoder(VOCABULARY, width, 1, 1, encoding="NoPE", block=block))
    losses = training.fit_together(models, recalled(), steps=steps, rate=RATE, seeds=seed)
    return [
        {"loss": round(sum(loss[-20:]) / len(loss[-20:]), 5)}
        | {f"right_{n}": round(training.accuracy(model, recalled(n, 64)), 5) for n in PAIRS}
        for model, loss in zip(models, losses, strict=True)
    ]


WIDTH = 64


def keys(design: str, key: int, steps: int, seed: Sequence[int]) -> list[sweep.Setting]:
    """As `run`, with the model's width fixed and the keys' varied; a look at each third of the steps; a row a seed."""
    block = ENTRIES[require.choice("design", design, DESIGNS)].block
    models, looks = [], {}
    for each in seed:
        torch.manual_seed(each)
        models.append(Decoder(VOCABULARY, WIDTH, WIDTH // key, 1, encoding="NoPE", block=block))

    def watch(model: Decoder) -> bool:
        looks.setdefault(id(model), []).append(training.accuracy(model.eval(), recalled(KEYS, 64)))
        return False

    training.fit_together(models, recalled(), steps=steps, rate=RATE, seeds=seed, until=watch, every=steps // 3)
    for model in models:
        watch(model)
    return [
        {f"third_{k}": round(found, 5) for k, found in enumerate(looks[id(model)], 1)}
        | {f"right_{n}": round(training.accuracy(model, recalled(n, 64)), 5) for n in PAIRS}
        for model in models
    ]
