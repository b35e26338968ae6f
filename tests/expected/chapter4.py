import pandas as pd

from course.experiments import trained
from helpers import counting, data


def tables(**changed: pd.DataFrame):
    plain = data.table
    return {"data.table": lambda name: changed[name] if name in changed else plain(name)}


def changed(name: str, **values) -> dict:
    """A committed table with other values in some columns."""
    return tables(**{name: data.table(name).assign(**values)})


def codes(below: float, solved: float):
    """Counts right by the product at full width, `below` it else; `solved` is that of the second read-out at 63."""
    return lambda m, d, *rest, readout="product", **kw: (
        (solved if d == 63 else 0.5) if readout == "solved" else 1.0 if d >= m else below
    )


def hidden(merged: float, ones: int) -> dict:
    return {"measures.hidden_letters": lambda: (merged, 0.0), "measures.pieces": lambda text: ["1"] * ones}


def against(better: int, worse: int) -> dict:
    return {"measures.against_ones": lambda name: (better, worse, 0)}


def read(tasks: tuple = (1, 1, 1, 1), strategies: tuple = (1, 1, 1)) -> dict:
    """Errors read off the source's figures: a task's times a strategy's."""
    rows = [
        (t, s, a * b)
        for t, a in zip(counting.TASKS, tasks, strict=False)
        for s, b in zip(counting.STRATEGIES, strategies, strict=False)
    ]
    return tables(**{"reported/counting_figures": pd.DataFrame(rows, columns=["task", "strategy", "value"])})


def by_base(*accuracies: float) -> dict:
    table = pd.DataFrame({"base": [10**k for k in range(10)], "accuracy_percent": accuracies})
    return tables(**{"reported/counting_separator_base": table})


def turned(first: float, last: float) -> dict:
    """Copiers that lose the first digit and the last one at these lengths."""
    turns = {"first": first, "last": last}
    return changed("copying_trained", **{f"turn_{place}_{digit}": at for place, at in turns.items() for digit in "01"})


def asked(right: bool, answer: int) -> dict:
    rows = [{"length": n, "answer": answer, "error": 0 if right else 9, "strategy": "no CoT"} for n in (3, 5, 100)]
    return {
        "asked.long": lambda table: pd.DataFrame(rows * 20),
        "asked.from_examples": lambda answers: (0, 1),
        "asked.without_examples": lambda answers: (0, 0, 1),
    }


def errors(growing: bool) -> dict:
    return changed("counting_trained", **{f"error_{n}": n if growing else 0.0 for n in trained.LENGTHS})


def commas(*gaps: tuple[float, float], plain: float = 0.5) -> dict:
    """Intervals of the four comparisons, in the order in which they are made; the fifth, beyond the training, is told only."""
    left = iter(gaps)
    table = pd.DataFrame({"tokens": ["characters"], "inside": [plain]})
    found = {
        "trained.commas": lambda *_: trained.Gap(sum(pair) / 2, *pair, 15) if (pair := next(left, (0.1, 0.2))) else None
    }
    return tables(counting_commas=table) | found


def trend(rho: float, p: float) -> dict:
    return {"significance.rank_correlation": lambda *_: (rho, p), "_able": lambda runs: True}


def chunks(plain: float, twos: float, fours: float, short: float = 1.0) -> dict:
    def rows(right: float) -> pd.DataFrame:
        return pd.DataFrame([{"right_4": short, "right_8": short, "right_12": right, "right_16": right}] * 3)

    names = {"characters": plain, "chunks of 2": twos, "chunks of 4": fours}
    return {"trained.chosen_runs": lambda *_: {name: rows(right) for name, right in names.items()}}


def lost(*earlier: tuple[int, int], pairs: int = 6) -> dict:
    rows = [{"encoding": "RoPE", "pairs": pairs, "first earlier": a, "last earlier": b, "p": 0.5} for a, b in earlier]
    return {"counters.first_against_last": lambda table: pd.DataFrame(rows)}


def copiers(right: float, probe: float, shuffled: float = 0.5) -> dict:
    kinds = {"right": right, "probe": probe, "shuffled": shuffled}
    columns = {f"{k}_{place}_{n}": x for k, x in kinds.items() for place in trained.PLACES for n in trained.READ}
    return changed("copying_probed", **columns)


def turn_at(last: list[float], first: list[float]) -> dict:
    return {"_turns": lambda rows, place: last if place == "last" else first}


def within(others: dict | None = None, **cells) -> dict:
    """Decoders at N = 16 and 64, three encodings, widths 16 and 64; `cells` gives a column from N, encoding and width."""
    rows = []
    for longest, width in ((16, 64), (64, 64), (64, 16), (64, 32), (64, 128)):
        for encoding in ("NoPE", "ALiBi", "RoPE"):
            for seed in range(3):
                row = {"encoding": encoding, "width": width, "longest": longest, "steps": 40 * longest, "seed": seed}
                row |= {"right_3": 1.0, "right_4": 1.0, "bf16_right_4": 1.0, "gap": 10 / longest, "spread": 0.1}
                rows.append(row | {name: value(len(rows), row) for name, value in cells.items()})
    return tables(counting_inside=pd.DataFrame(rows), **(others or {}))


def by_encoding(others: float, rope: float):
    return lambda k, row: rope if row["encoding"] == "RoPE" else others


def rising(k: int, row: dict) -> float:
    return k / 100


def states(right: float, read: tuple[float, float, float], shuffled: float = 0.05, ratio: float = 0.2) -> dict:
    shares = {"right": right, "untrained_left_out": 0.4, "shuffled": shuffled, "ratio": ratio}
    shares |= {"along": 0.8, "own": 1.0, "random": 0.0, "against": 0.0}
    rows = [
        {"encoding": name}
        | {f"{kind}_{n}": x for kind, x in (shares | {"left_out": own}).items() for n in (20, 28, 32)}
        for name, own in zip(("NoPE", "ALiBi", "RoPE"), read, strict=True)
    ]
    return tables(counting_probed=pd.DataFrame(rows))


def ends(short: float, long: float) -> dict:
    """Decoders that learn, asked after every letter; asked at the end alone, right so often after few and many steps."""
    rows = [
        {"encoding": "RoPE", "asked": "the end", "steps": k, "right_16": x} for k, x in ((640, short), (2560, long))
    ]
    return {"counting_asked": pd.DataFrame(rows)}


def symbols(right) -> dict:
    rows = [{"symbols": v, "width": d, "right": right(v, d)} for v in (8, 32) for d in (8, 16, 32)]
    return tables(counting_symbols=pd.DataFrame(rows))
