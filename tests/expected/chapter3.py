import pandas as pd
import torch

from course.chapter3 import measures
from course.claims import CORRECTED, FAILS, HOLDS


def _fixed(value):
    return lambda *_, **__: value


def _named(*values: float, names=("NoPE", "RoPE", "ALiBi 1/256", "APE on q, k")):
    return _fixed(dict(zip(names, values, strict=True)))


def _variation(*means: float):
    return _fixed(torch.tensor([means], dtype=torch.float64))


def _bands(**columns: tuple):
    """A table like data/telling_apart.csv with two bands: for each column, by (errors, type), the last band's value."""
    kinds = [(e, t) for e in measures.ERRORS for t in ("bf16", "fp16")]
    rows = [
        {"errors": e, "type": t, "low": low, "high": low + 9}
        | {name: (1.0 if low == 1 else values[k]) for name, values in columns.items()}
        for k, (e, t) in enumerate(kinds)
        for low in (1, 10)
    ]
    return _fixed(pd.DataFrame(rows).set_index(["errors", "type", "low"]).sort_index())


def _errors(own: float, other: float, shuffled: float, isotropic: float):
    values = [x for each in (own, other, shuffled, isotropic) for x in (each, 1.0)]
    return _bands(nearest=values, pair=values, share=[0.1] * 8)


def _by_length(*distances: float):
    return lambda lengths, **_: list(distances)


def _merged(letter: float, token: float):
    names = ("one letter more", "one token more", "one letter more, unmerged", "letters a token")
    return _fixed(pd.DataFrame([dict(zip(names, (letter, token, 1.0, 4.0), strict=True))] * 3))


def _kept(last: float, period: float, inside: float):
    names = ("last", "period", "ones", "inside", "ones inside")
    return _fixed({name: [1.0, x] for name, x in zip(names, (last, period, 0.1, inside, 0.1), strict=True)})


def _digits(*distances: float):
    """Random digits, by length, of four seeds that hardly differ."""
    runs = torch.tensor(distances) * torch.tensor([[0.999], [1.0], [1.0], [1.001]])
    return _fixed(([9.0], runs))


def _sweep(varied: float, fifty: float):
    return {
        "_varied": _fixed(([9, 5, 4], torch.tensor([[90.0, 90.0, varied]]))),
        "models.default": _fixed(None),
        "measures.ones_at_the_end": _fixed(torch.tensor([90, 50, 20, fifty])),
        "_distance": _by_length(50, 4, 4, 4, 4, 4),
    }


_PROMPT = {"models.default": _fixed(None), "collapse.copying_prompt": _fixed(("", ""))}


def _readers(own: tuple, isotropic_off: float = 6.5):
    """A table like data/rounding_readers.csv: nearest right, read-out's error, variation of the next token."""
    other = {2: (1.0, 2.0, 0.02), 3: (1.0, isotropic_off, 0.02)}
    rows = {measures.ERRORS[k]: row for k, row in ({0: own} | other).items()}
    names = ("nearest", "off", "variation")
    table = [{"type": "bf16", "errors": e} | dict(zip(names, row, strict=True)) for e, row in rows.items()]
    return _fixed(pd.DataFrame(table))


def _recovered(count: int):
    return _fixed(
        pd.DataFrame([dict(layer=1, tokens=20, recovered=count, named=9, candidates=353, own=1e-6, other=0.2)])
    )


EVIDENCE = {
    "the_reader_decides": {
        HOLDS: {"data.table": _readers((0.6, 3.0, 0.01))},
        CORRECTED: {"data.table": _readers((0.6, 3.0, 0.01), isotropic_off=3.0)},
        FAILS: {"data.table": _readers((0.95, 3.0, 0.01))},
    },
    "prompts_can_be_recovered": {
        HOLDS: {"data.table": _recovered(20)},
        CORRECTED: {"data.table": _recovered(15)},
        FAILS: {"data.table": _recovered(5)},
    },
    "early_noise_is_forgotten": {
        HOLDS: {
            "collapse.perturbed_total_variation": _variation(4, 3, 2, 1, 1e-4),
            "collapse.perturbation_limit": _fixed(1.0),
        },
        CORRECTED: {
            "collapse.perturbed_total_variation": _variation(1, 2, 3, 1, 1e-4),
            "collapse.perturbation_limit": _fixed(1.0),
        },
        FAILS: {
            "collapse.perturbed_total_variation": _variation(4, 3, 2, 1, 1),
            "collapse.perturbation_limit": _fixed(1.0),
        },
    },
    "all_encodings_collapse": {
        HOLDS: {"_ratios": _named(0.1, 0.1, 0.1, 0.1), "collapse.alibi_change": lambda n, slope: 1 / n},
        CORRECTED: {"_ratios": _named(0.1, 0.1, 0.1, 0.1)},
        FAILS: {"_ratios": _named(0.1, 0.9, 0.1, 0.1)},
    },
    "encodings_collapse_alike": {
        HOLDS: {"_ratios": _named(0.1, 0.1, 0.1, 0.2)},
        FAILS: {"_ratios": _named(0.1, 0.1, 0.1, 0.0001)},
    },
    "low_precision_is_worse": {
        HOLDS: {"_errors": _errors(0.5, 1, 1, 1)},
        CORRECTED: {"_errors": _errors(0.8, 1, 1, 1)},
        FAILS: {"_errors": _errors(1.0, 1, 1, 1)},
    },
    "direction_of_rounding_decides": {
        HOLDS: {"_errors": _errors(0.5, 0.5, 1, 1)},
        CORRECTED: {"_errors": _errors(0.5, 0.5, 0.5, 1)},
        FAILS: {"_errors": _errors(0.5, 0.5, 0.5, 0.5)},
    },
    "separators_do_not_follow": {
        HOLDS: {
            "measures.separator_curves": _fixed({f"commas, n to n + {k}": torch.tensor([10.0, 1]) for k in (1, 3)})
        },
        FAILS: {
            "measures.separator_curves": _fixed({f"commas, n to n + {k}": torch.tensor([10.0, 9]) for k in (1, 3)})
        },
    },
    "adaptive_temperature_sharpens": {
        HOLDS: {"collapse.adaptive_temperature": lambda row: (2 * row).softmax(0)},
        CORRECTED: {},
        FAILS: {"collapse.adaptive_temperature": lambda row: row.softmax(0)},
    },
    "ones_collapse": {
        HOLDS: {"_distance": _by_length(9, 8, 7, 3, 2, 1)},
        CORRECTED: {"_distance": _by_length(9, 12, 7, 3, 2, 1)},
        FAILS: {"_distance": _by_length(9, 8, 7, 6, 5, 4)},
    },
    "varied_digits_delay_collapse": {
        HOLDS: _sweep(90.0, 50.0),
        CORRECTED: _sweep(90.0, 5.0),
        FAILS: _sweep(5.0, 5.0),
    },
    "varied_digits_still_fall": {
        HOLDS: {"_varied": _digits(90, 80, 70, 60, 50, 40, 30, 20)},
        CORRECTED: {"_varied": _digits(90, 80, 70, 60, 50, 40, 30, 30)},
        FAILS: {"_varied": _digits(90, 80, 70, 60, 50, 40, 30, 40)},
    },
    "commas_prevent_collapse": {
        HOLDS: {"_commas": _kept(1, 1, 1)},
        CORRECTED: {"_commas": _kept(1, 1, 0.3)},
        FAILS: {"_commas": _kept(0.1, 0.1, 0.1)},
    },
    "merging_alleviates_collapse": {
        HOLDS: {"models.default": _fixed(None), "measures.merging": _merged(2, 2)},
        FAILS: {"models.default": _fixed(None), "measures.merging": _merged(2, 0.5)},
    },
    "collapse_in_type_1": {
        HOLDS: {"_distance": _by_length(9, 8, 7, 1), **_PROMPT},
        CORRECTED: {"_distance": _by_length(9, 3, 7, 1), **_PROMPT},
        FAILS: {"_distance": _by_length(9, 8, 7, 6), **_PROMPT},
    },
}
