import pandas as pd
import torch

from course.chapter3 import measures


def fixed(value):
    return lambda *_, **__: value


def named(*values: float, names=("NoPE", "RoPE", "ALiBi 1/256", "APE on q, k")):
    return fixed(dict(zip(names, values, strict=True)))


def variation(*means: float):
    return fixed(torch.tensor([means], dtype=torch.float64))


def bands(**columns: tuple):
    """A table like data/telling_apart.csv with two bands: for each column, by (errors, type), the last band's value."""
    kinds = [(e, t) for e in measures.ERRORS for t in ("bf16", "fp16")]
    rows = [
        {"errors": e, "type": t, "low": low, "high": low + 9}
        | {name: (1.0 if low == 1 else values[k]) for name, values in columns.items()}
        for k, (e, t) in enumerate(kinds)
        for low in (1, 10)
    ]
    return fixed(pd.DataFrame(rows).set_index(["errors", "type", "low"]).sort_index())


def errors(own: float, other: float, shuffled: float, isotropic: float):
    values = [x for each in (own, other, shuffled, isotropic) for x in (each, 1.0)]
    return bands(nearest=values, pair=values, share=[0.1] * 8)


def by_length(*distances: float):
    return lambda lengths, **_: list(distances)


def merged(letter: float, token: float):
    names = ("one letter more", "one token more", "one letter more, unmerged", "letters a token")
    return fixed(pd.DataFrame([dict(zip(names, (letter, token, 1.0, 4.0), strict=True))] * 3))


def kept(last: float, period: float, inside: float):
    names = ("last", "period", "ones", "inside", "ones inside")
    return fixed({name: [1.0, x] for name, x in zip(names, (last, period, 0.1, inside, 0.1), strict=True)})


def digits(*distances: float):
    """Random digits, by length, of four seeds that hardly differ."""
    runs = torch.tensor(distances) * torch.tensor([[0.999], [1.0], [1.0], [1.001]])
    return fixed(([9.0], runs))


def sweep(varied: float, fifty: float):
    return {
        "_varied": fixed(([9, 5, 4], torch.tensor([[90.0, 90.0, varied]]))),
        "models.default": fixed(None),
        "measures.ones_at_the_end": fixed(torch.tensor([90, 50, 20, fifty])),
        "_distance": by_length(50, 4, 4, 4, 4, 4),
    }


PROMPT = {"models.default": fixed(None), "collapse.copying_prompt": fixed(("", ""))}


def readers(own: tuple, isotropic_off: float = 6.5):
    """A table like data/rounding_readers.csv: nearest right, read-out's error, variation of the next token."""
    other = {2: (1.0, 2.0, 0.02), 3: (1.0, isotropic_off, 0.02)}
    rows = {measures.ERRORS[k]: row for k, row in ({0: own} | other).items()}
    names = ("nearest", "off", "variation")
    table = [{"type": "bf16", "errors": e} | dict(zip(names, row, strict=True)) for e, row in rows.items()]
    return fixed(pd.DataFrame(table))


def recovered(count: int):
    return fixed(
        pd.DataFrame([dict(layer=1, tokens=20, recovered=count, named=9, candidates=353, own=1e-6, other=0.2)])
    )
