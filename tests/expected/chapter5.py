import pandas as pd
import torch

from course.chapter5.measures import BAND_NAMES, LAYERS, Heads
from helpers import data


def bases(at_1024: float):
    """The smallest base that passes for a context of 1,024; the others are not looked at."""
    return lambda: {1024: at_1024}


def silenced(outside: tuple[float, float], inside: tuple[float, float] = (2, 1), control: tuple[float, float] = (1, 2)):
    """Losses added without the fastest quarter and without each other one, at two thresholds."""
    pairs = {"outside": outside, "inside": inside, "control": control}

    def table(where: str, model: object = None) -> pd.DataFrame:
        fastest, other = pairs[where]
        row = {name: fastest if name == "fastest" else other for name in BAND_NAMES}
        return pd.DataFrame([row, row], index=[0.1, 0.2])

    return table


def learned(slash=0.9, unseen=0.3, without=0.1, share=0.9, none=0.1, slow=0.1, strong=None):
    """Trained decoders: `strong` is the score on unseen tokens with the strongest shared vector."""

    def rows(spectrum: str, shared: float = 0.0, base: float = 1e4, offset: int | None = None) -> pd.DataFrame:
        high = spectrum in ("RoPE", "0.25-RoPE", "second quarter")
        seen = slash if high else slow if "quarter" in spectrum else none
        far = unseen if spectrum == "RoPE" else none
        if shared == 3.0 and strong is not None:
            far = strong
        row = {"slash": seen, "slash_uniform": seen, "slash_unseen": far, "slash_unseen_without": without}
        for part in ("queries", "keys"):
            after = share if spectrum == "RoPE" else none
            row |= {f"share_{part}_untrained": 0.2, f"share_{part}_uniform": after, f"share_{part}_unseen": after}
        return pd.DataFrame([row, row])

    return rows


def parts(low: float, high: float):
    """Trained decoders of which the first two have little in common and the last two, with a vector in the norm, much."""
    rows = pd.DataFrame(
        {"part": "norm", "strength": [0, 0, 1, 1], "slash_unseen": [low, low + 0.01, high, high + 0.01]}
    )
    for name in ("queries", "keys"):
        rows[f"common_{name}_unseen"] = [0.3, 0.4, 0.9, 0.95]
    rows["slash_unseen_without"] = 0.1
    return lambda spectrum="RoPE": rows


def race(rope: float, alibi: float):
    index = pd.MultiIndex.from_product([("last", "retrieval"), (16, 128)])
    return lambda: pd.DataFrame({"RoPE": rope, "ALiBi": alibi, "NoPE": 0.5}, index=index)


def random_heads(plain: float, turned: float):
    return lambda turn: torch.tensor([turned if turn else plain], dtype=torch.float64)


def second_layer(least: float):
    return lambda n, scale: least * torch.eye(n, dtype=torch.float64)


def special(previous: int, sinks: int, both: int):
    """Heads of a made-up model of ten."""

    def seen(model: object, seed: int | None = None, text: int = 0) -> Heads:
        slashes, sink = torch.zeros(1, 10, 6), torch.zeros(1, 10)
        slashes[0, :previous, 1] = 1.0
        sink[0, previous - both : previous - both + sinks] = 1.0
        return Heads(slashes, slashes, slashes, sink, slashes, slashes)

    return seen


def layers(fastest: float, other: float):
    """Losses added between the ends without the fastest quarter, and without each other set of pairs."""
    names = [name for name, (_, inside) in LAYERS.items() if not inside]
    row = {name: other for name in (*BAND_NAMES, "random_1", "random_2", "random_3")} | {"fastest": fastest}
    return lambda name: pd.DataFrame([{"heads": each} | row for each in names])


def sinks(slow: float, slowest: float):
    """Losses added outside the heads of places: what is left of them with the sink's logit kept."""
    plain = dict(zip(BAND_NAMES, (0.5, 0.6, 2.0, 2.0), strict=True))
    left = dict(zip(BAND_NAMES, (1.0, 1.0, slow, slowest), strict=True))
    kept = {name: plain[name] * left[name] for name in BAND_NAMES}
    rows = [{"heads": "outside", "sink": sink} | row for sink, row in (("silenced", plain), ("kept", kept))]
    return lambda name: pd.DataFrame(rows)


def table(name: str, chosen):
    rows = data.table(name)
    rows = rows[rows.apply(chosen, axis=1)]
    return lambda _: rows


def slashes(spectrum: str, slash: float):
    """The committed table of trained decoders, with another score of one spectrum."""
    rows = data.table("slash_emergence")
    rows.loc[rows.spectrum == spectrum, "slash"] = slash
    return {"data.table": lambda _: rows}
