import pandas as pd

from course.claims import CORRECTED, FAILS, HOLDS, LITTLE, UNABLE, UNFIT
from course.experiments import trained
from helpers import counting, data


def _tables(**changed: pd.DataFrame):
    plain = data.table
    return {"data.table": lambda name: changed[name] if name in changed else plain(name)}


def _changed(name: str, **values) -> dict:
    """A committed table with other values in some columns."""
    return _tables(**{name: data.table(name).assign(**values)})


def _codes(below: float, solved: float):
    """Counts right by the product at full width, `below` it else; `solved` is that of the second read-out at 63."""
    return lambda m, d, *rest, readout="product", **kw: (
        (solved if d == 63 else 0.5) if readout == "solved" else 1.0 if d >= m else below
    )


def _hidden(merged: float, ones: int) -> dict:
    return {"measures.hidden_letters": lambda: (merged, 0.0), "measures.pieces": lambda text: ["1"] * ones}


def _against(better: int, worse: int) -> dict:
    return {"measures.against_ones": lambda name: (better, worse, 0)}


def _read(*errors: float, of=counting.TASKS) -> dict:
    return {"_read_off": lambda column: dict(zip(of, errors, strict=True)) if errors else {}}


def _asked(right: bool, answer: int) -> dict:
    rows = [{"length": n, "answer": answer, "error": 0 if right else 9, "strategy": "no CoT"} for n in (3, 5, 100)]
    return {
        "asked.long": lambda table: pd.DataFrame(rows * 20),
        "asked.from_examples": lambda answers: (0, 1),
        "asked.without_examples": lambda answers: (0, 0, 1),
    }


def _errors(growing: bool) -> dict:
    return _changed("counting_trained", **{f"error_{n}": n if growing else 0.0 for n in trained.LENGTHS})


def _commas(*gaps: tuple[float, float], plain: float = 0.5) -> dict:
    """Intervals of the four comparisons, in the order in which they are made; the fifth, beyond the training, is told only."""
    left = iter(gaps)
    table = pd.DataFrame({"tokens": ["characters"], "inside": [plain]})
    found = {
        "trained.commas": lambda *_: trained.Gap(sum(pair) / 2, *pair, 15) if (pair := next(left, (0.1, 0.2))) else None
    }
    return _tables(counting_commas=table) | found


def _trend(rho: float, p: float) -> dict:
    return {"significance.rank_correlation": lambda *_: (rho, p), "_able": lambda runs: True}


def _chunks(plain: float, twos: float, fours: float, short: float = 1.0) -> dict:
    def rows(right: float) -> pd.DataFrame:
        return pd.DataFrame([{"right_4": short, "right_8": short, "right_12": right, "right_16": right}] * 3)

    names = {"characters": plain, "chunks of 2": twos, "chunks of 4": fours}
    return {"trained.chosen_runs": lambda *_: {name: rows(right) for name, right in names.items()}}


def _lost(*earlier: tuple[int, int], pairs: int = 6) -> dict:
    rows = [{"encoding": "RoPE", "pairs": pairs, "first earlier": a, "last earlier": b, "p": 0.5} for a, b in earlier]
    return {"counters.first_against_last": lambda table: pd.DataFrame(rows)}


def _copiers(right: float, probe: float, shuffled: float = 0.5) -> dict:
    kinds = {"right": right, "probe": probe, "shuffled": shuffled}
    columns = {f"{k}_{place}_{n}": x for k, x in kinds.items() for place in trained.PLACES for n in trained.READ}
    return _changed("copying_probed", **columns)


def _turn_at(last: list[float], first: list[float]) -> dict:
    return {"_turns": lambda rows, place: last if place == "last" else first}


def _within(others: dict | None = None, **cells) -> dict:
    """Decoders at N = 16 and 64, three encodings, widths 16 and 64; `cells` gives a column from N, encoding and width."""
    rows = []
    for longest, width in ((16, 64), (64, 64), (64, 16), (64, 32), (64, 128)):
        for encoding in ("NoPE", "ALiBi", "RoPE"):
            for seed in range(3):
                row = {"encoding": encoding, "width": width, "longest": longest, "steps": 40 * longest, "seed": seed}
                row |= {"right_3": 1.0, "right_4": 1.0, "bf16_right_4": 1.0, "gap": 10 / longest, "spread": 0.1}
                rows.append(row | {name: value(len(rows), row) for name, value in cells.items()})
    return _tables(counting_inside=pd.DataFrame(rows), **(others or {}))


def _by_encoding(others: float, rope: float):
    return lambda k, row: rope if row["encoding"] == "RoPE" else others


def _rising(k: int, row: dict) -> float:
    return k / 100


def _states(right: float, read: tuple[float, float, float], shuffled: float = 0.05, ratio: float = 0.2) -> dict:
    shares = {"right": right, "untrained_left_out": 0.4, "shuffled": shuffled, "ratio": ratio}
    shares |= {"along": 0.8, "own": 1.0, "random": 0.0, "against": 0.0}
    rows = [
        {"encoding": name}
        | {f"{kind}_{n}": x for kind, x in (shares | {"left_out": own}).items() for n in (20, 28, 32)}
        for name, own in zip(("NoPE", "ALiBi", "RoPE"), read, strict=True)
    ]
    return _tables(counting_probed=pd.DataFrame(rows))


def _ends(short: float, long: float) -> dict:
    """Decoders that learn, asked after every letter; asked at the end alone, right so often after few and many steps."""
    rows = [
        {"encoding": "RoPE", "asked": "the end", "steps": k, "right_16": x} for k, x in ((640, short), (2560, long))
    ]
    return {"counting_asked": pd.DataFrame(rows)}


def _symbols(right) -> dict:
    rows = [{"symbols": v, "width": d, "right": right(v, d)} for v in (8, 32) for d in (8, 16, 32)]
    return _tables(counting_symbols=pd.DataFrame(rows))


EVIDENCE = {
    "same_ratio_same_state": {
        HOLDS: {"_change": lambda a, b, causal=False, **rest: 0.1 if causal or b == "110" else 0.0},
        FAILS: {"_change": lambda a, b, **rest: 0.1},
    },
    "a_first_token_counts": {
        HOLDS: {"_change": lambda a, b, first=False: 0.1 * first},
        FAILS: {"_change": lambda a, b, first=False: 0.0},
    },
    "collapse_ends_counting": {
        HOLDS: {"Fraction": lambda a, b: 0, "counting.first_token_limit": lambda name: 188},
        CORRECTED: {"counting.first_token_limit": lambda name: 188},
        FAILS: {"counting.first_token_limit": lambda name: 2**27},
    },
    "first_token_reach": {
        HOLDS: {
            "counting.first_token_limit": {"bf16": 188, "fp16": 1463, "fp32": 11_864_337}.get,
            "measures.misread": lambda name: "16",
        },
        FAILS: {"counting.first_token_limit": lambda name: 256, "measures.misread": lambda name: "16"},
    },
    "wide_enough_counts": {
        HOLDS: {"measures.read_right": lambda *_, **kw: 1.0, "counting.mass_on_ones": lambda zeros, ones: zeros},
        CORRECTED: {"measures.read_right": lambda *_, **kw: 1.0},
        FAILS: {"measures.read_right": lambda *_, **kw: 0.9},
    },
    "transition_at_the_vocabulary": {
        HOLDS: {"measures.read_right": _codes(0.2, 0.2)},
        CORRECTED: {"measures.read_right": _codes(0.2, 1.0)},
        FAILS: {"measures.read_right": _codes(0.9, 0.5)},
    },
    "merged_tokens_hide_items": {HOLDS: _hidden(0.9, 50), CORRECTED: _hidden(0.9, 100), FAILS: _hidden(0.1, 50)},
    "answers_are_round": {
        HOLDS: {"measures.round_answers": lambda: (11, 12)},
        FAILS: {"measures.round_answers": lambda: (2, 12)},
    },
    "separators_help_with_314": {
        HOLDS: _against(8, 0),
        FAILS: _against(0, 8),
        LITTLE: _against(2, 1),
    },
    "separators_help_in_training": {
        HOLDS: {"measures.best_constant": lambda **kw: 0.0},
        FAILS: {"measures.best_constant": lambda **kw: 0.0, "measures.PLAIN_ACCURACY": 2.0},
        UNFIT: {"measures.best_constant": lambda **kw: 0.2},
    },
    "base_has_no_rule": {
        HOLDS: {"measures.base_trend": lambda: (0.1, 0.8), "measures.best_constant": lambda: 0.0},
        UNFIT: {"measures.base_trend": lambda: (0.1, 0.8), "measures.best_constant": lambda: 0.2},
        FAILS: {"measures.base_trend": lambda: (0.9, 0.001), "measures.best_constant": lambda: 0.0},
    },
    "order_of_difficulty": {
        HOLDS: _read(5, 9, 1, 5),
        CORRECTED: _read(2, 9, 1, 5),
        FAILS: _read(5, 1, 9, 5),
        LITTLE: _read(),
    },
    "order_of_strategies": {
        HOLDS: _read(5, 5, 9, of=counting.STRATEGIES),
        CORRECTED: _read(5, 5, 5, of=counting.STRATEGIES),
        FAILS: _read(5, 9, 1, of=counting.STRATEGIES),
        LITTLE: _read(),
    },
    "lower_near_a_hundred": {
        HOLDS: _read(1, 1, 1, 1),
        FAILS: _read(1, 1, 1, 1) | {"measures.always": lambda guess, lengths, task: [float(task == "ones")] * 100},
        LITTLE: _read(),
    },
    "counting_error_grows": {
        HOLDS: _asked(True, 3) | _errors(True),
        CORRECTED: _asked(False, 3) | _errors(True),
        FAILS: _asked(True, 3) | _errors(False),
        UNABLE: _asked(True, 3) | _changed("counting_trained", right_4=0.2, right_8=0.2),
    },
    "guesses_are_round": {
        HOLDS: _asked(True, 100),
        CORRECTED: _asked(True, 10),
        FAILS: _asked(True, 7),
        UNABLE: _asked(False, 100),
    },
    "commas_do_not_help_from_scratch": {
        HOLDS: _commas(*[(-0.1, 0.0)] * 4),
        CORRECTED: _commas((-0.1, 0.1), *[(-0.1, 0.0)] * 3),
        FAILS: _commas(*[(0.1, 0.2)] * 4),
        LITTLE: _commas(*[(-0.1, 0.1)] * 4),
        UNFIT: _commas(*[(-0.1, 0.0)] * 4, plain=1.0),
    },
    "base_in_trained_decoders": {
        HOLDS: _trend(0.0, 0.9),
        FAILS: _trend(0.6, 0.001),
        LITTLE: _trend(0.3, 0.1),
        UNABLE: _trend(0.0, 0.9) | {"_able": lambda runs: False},
    },
    "chunks_in_trained_decoders": {
        HOLDS: _chunks(1.0, 0.5, 0.5),
        FAILS: _chunks(0.9, 0.9, 0.9),
        UNFIT: _chunks(1.0, 1.0, 1.0),
        UNABLE: _chunks(1.0, 0.5, 0.5, short=0.2),
    },
    "last_token_is_lost_first": {
        HOLDS: _lost((0, 6), (1, 5)),
        CORRECTED: _lost((0, 6), (0, 6), (1, 1)),
        FAILS: _lost((6, 0), (5, 1)),
        UNABLE: _lost((0, 6), pairs=0),
    },
    "copying_fails_at_collapse": {
        HOLDS: _copiers(0.5, 0.5),
        CORRECTED: _copiers(0.5, 0.85),
        FAILS: _copiers(0.5, 1.0),
        LITTLE: _copiers(1.0, 1.0),
        UNFIT: _copiers(0.5, 0.5, shuffled=0.9),
    },
    "window_keeps_the_last": {
        HOLDS: _turn_at([float("inf")] * 3, [22, 22, 20]),
        CORRECTED: _turn_at([float("inf")] * 3, [22, 60, 20]),
        FAILS: _turn_at([40, 50, 60], [22, 22, 20]),
        UNABLE: _turn_at([], []),
    },
    "counting_is_hard_to_learn": {
        HOLDS: _within(_ends(0.1, 0.2), right_4=lambda k, row: 0.3),
        CORRECTED: _within(_ends(0.1, 0.2), right_4=_by_encoding(0.3, 0.7)),
        FAILS: _within(_ends(0.8, 1.0)),
    },
    "counting_holds_within_training": {
        HOLDS: _within(),
        CORRECTED: _within(right_4=_by_encoding(1.0, 0.9)),
        FAILS: _within(right_3=lambda k, row: 0.9, right_4=lambda k, row: 0.9),
    },
    "neighbours_come_nearer": {
        HOLDS: _within(),
        CORRECTED: _within(gap=lambda k, row: 0.5 if row["encoding"] == "RoPE" else 1 / row["longest"]),
        FAILS: _within(gap=lambda k, row: 0.5),
    },
    "scatter_decides": {
        HOLDS: _within(right_4=lambda k, row: 1 - k / 100, spread=_rising, gap=_rising),
        CORRECTED: _within(
            right_4=lambda k, row: 1 - k / 100, spread=_rising, gap=lambda k, row: 0.1 * (k % 4 - 1.5) - k / 200
        ),
        FAILS: _within(right_4=_rising, spread=_rising, gap=_rising),
    },
    "few_dimensions_tell_many_counts": {
        HOLDS: _within(),
        CORRECTED: _within(right_4=_by_encoding(1.0, 0.7)),
        FAILS: _within(right_4=lambda k, row: 0.3),
    },
    "vocabulary_against_width": {
        HOLDS: _symbols(lambda v, d: (1.0 if d >= v else 0.3) - v / 1000),
        CORRECTED: _symbols(lambda v, d: 1.0 - v / (10 * d) / 10),
        FAILS: _symbols(lambda v, d: 1.0),
        UNABLE: _symbols(lambda v, d: 0.2),
    },
    "the_count_is_there": {
        HOLDS: _states(0.2, (0.99, 0.99, 0.99)),
        CORRECTED: _states(0.2, (0.99, 0.99, 0.5)),
        FAILS: _states(0.2, (0.99, 0.99, 0.3)),
        UNFIT: _states(0.2, (0.99, 0.99, 0.99), ratio=1.0),
    },
}
