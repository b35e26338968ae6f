import pandas as pd
import torch

from course.chapter5.measures import BAND_NAMES, LAYERS, Heads
from course.claims import CORRECTED, FAILS, HOLDS


def _bases(at_1024: float):
    """The smallest base that passes for a context of 1,024; the others are not looked at."""
    return lambda: {1024: at_1024}


def _silenced(
    outside: tuple[float, float], inside: tuple[float, float] = (2, 1), control: tuple[float, float] = (1, 2)
):
    """Losses added without the fastest quarter and without each other one, at two thresholds."""
    pairs = {"outside": outside, "inside": inside, "control": control}

    def table(where: str, model: object = None) -> pd.DataFrame:
        fastest, other = pairs[where]
        row = {name: fastest if name == "fastest" else other for name in BAND_NAMES}
        return pd.DataFrame([row, row], index=[0.1, 0.2])

    return table


def _learned(slash=0.9, unseen=0.3, without=0.1, share=0.9, none=0.1, slow=0.1, strong=None):
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


def _parts(low: float, high: float):
    """Trained decoders of which the first two have little in common and the last two, with a vector in the norm, much."""
    rows = pd.DataFrame(
        {"part": "norm", "strength": [0, 0, 1, 1], "slash_unseen": [low, low + 0.01, high, high + 0.01]}
    )
    for name in ("queries", "keys"):
        rows[f"common_{name}_unseen"] = [0.3, 0.4, 0.9, 0.95]
    rows["slash_unseen_without"] = 0.1
    return lambda spectrum="RoPE": rows


def _race(rope: float, alibi: float):
    index = pd.MultiIndex.from_product([("last", "retrieval"), (16, 128)])
    return lambda: pd.DataFrame({"RoPE": rope, "ALiBi": alibi, "NoPE": 0.5}, index=index)


def _random_heads(plain: float, turned: float):
    return lambda turn: torch.tensor([turned if turn else plain], dtype=torch.float64)


def _second_layer(least: float):
    return lambda n, scale: least * torch.eye(n, dtype=torch.float64)


def _special(previous: int, sinks: int, both: int):
    """Heads of a made-up model of ten."""

    def default(seed: int | None = None, text: int = 0) -> Heads:
        slashes, sink = torch.zeros(1, 10, 6), torch.zeros(1, 10)
        slashes[0, :previous, 1] = 1.0
        sink[0, previous - both : previous - both + sinks] = 1.0
        return Heads(slashes, slashes, slashes, sink, slashes, slashes)

    return default


def _layers(fastest: float, other: float):
    """Losses added between the ends without the fastest quarter, and without each other set of pairs."""
    names = [name for name, (_, inside) in LAYERS.items() if not inside]
    row = {name: other for name in (*BAND_NAMES, "random_1", "random_2", "random_3")} | {"fastest": fastest}
    return lambda name: pd.DataFrame([{"heads": each} | row for each in names])


def _sinks(slow: float, slowest: float):
    """Losses added outside the heads of places: what is left of them with the sink's logit kept."""
    plain = dict(zip(BAND_NAMES, (0.5, 0.6, 2.0, 2.0), strict=True))
    left = dict(zip(BAND_NAMES, (1.0, 1.0, slow, slowest), strict=True))
    kept = {name: plain[name] * left[name] for name in BAND_NAMES}
    rows = [{"heads": "outside", "sink": sink} | row for sink, row in (("silenced", plain), ("kept", kept))]
    return lambda name: pd.DataFrame(rows)


EVIDENCE = {
    "no_positions_no_diagonal": {
        HOLDS: {
            "measures.weights_without_positions": _random_heads(0.5, 1),
            "measures.second_layer_without_positions": _second_layer(0.1),
        },
        CORRECTED: {
            "measures.weights_without_positions": _random_heads(0.5, 1),
            "measures.second_layer_without_positions": _second_layer(1),
        },
        FAILS: {
            "measures.weights_without_positions": _random_heads(0.9, 1),
            "measures.second_layer_without_positions": _second_layer(1),
        },
    },
    "base_for_1k": {
        HOLDS: {"measures.smallest_bases": _bases(at_1024=4294.0)},
        FAILS: {"measures.smallest_bases": _bases(at_1024=4000.0)},
        CORRECTED: {"measures.smallest_bases": _bases(at_1024=4294.0), "rope.first_negative": lambda *_: 900},
    },
    "fast_pairs_are_noise": {
        HOLDS: {"_silenced": _silenced((0.05, 1))},
        FAILS: {"_silenced": _silenced((1, 0.3))},
    },
    "fast_pairs_are_noise_between_the_ends": {
        HOLDS: {"data.table": _layers(0.05, 1)},
        CORRECTED: {"data.table": _layers(0.5, 1)},
        FAILS: {"data.table": _layers(1, 0.5)},
    },
    "slow_pairs_carry_the_sink": {
        HOLDS: {"data.table": _sinks(0.6, 0.6)},
        CORRECTED: {"data.table": _sinks(0.6, 0.9)},
        FAILS: {"data.table": _sinks(0.9, 0.9)},
    },
    "previous_token_is_the_sink": {
        HOLDS: {"measures.default": _special(2, 2, 2)},
        CORRECTED: {"measures.default": _special(2, 2, 1)},
        FAILS: {"measures.default": _special(2, 2, 0)},
    },
    "positions_alleviate": {
        HOLDS: {"_scores": _race(0.4, 0.7)},
        FAILS: {"_scores": _race(0.4, 0.5)},
    },
    "trained_slashes_generalise": {
        HOLDS: {"_rows": _learned(unseen=0.95)},
        CORRECTED: {"_rows": _learned(unseen=0.5, strong=0.95, none=0.1)},
        FAILS: {"_rows": _learned(unseen=0.5)},
    },
    "the_condition_is_needed": {
        HOLDS: {"_shared": _parts(0.2, 0.95)},
        CORRECTED: {"_shared": _parts(0.2, 0.3)},
        FAILS: {"_shared": _parts(0.9, 0.95)},
    },
    "training_makes_rank_one": {
        HOLDS: {"_rows": _learned()},
        CORRECTED: {"_rows": _learned(none=0.9)},
        FAILS: {"_rows": _learned(share=0.3)},
    },
}
