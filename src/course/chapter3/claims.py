"""The claims of chapter 3's sources, each measured by a small function."""

import math
from collections.abc import Sequence
from functools import cache

import torch

from course.chapter3 import measures
from course.claims import Numbers
from helpers import collapse, data, models, rope, style
from helpers.models import LanguageModel


def last_weights() -> Numbers:
    """Whether the last token's weight falls when a token is inserted, in random rows; and the largest one by length."""
    generator = torch.Generator().manual_seed(0)
    falls, largest = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        weight = logits.softmax(1)[:, -1]
        falls &= bool((before > weight).all())
        largest.append(float(weight.max()))
    return {"falls": falls, "largest": largest}


def early_noise_is_forgotten() -> Numbers:
    lengths, limit = [50, 200, 350, 500, 10_000], collapse.perturbation_limit()
    variation = collapse.perturbed_total_variation(lengths).mean(0)
    return {
        "limit": limit,
        "ratio": float(variation[-1]) * lengths[-1] / limit,
        "variation": variation.tolist(),
        "peak": lengths[int(variation.argmax())],
    }


def decaying_positions_collapse() -> Numbers:
    changes = [
        collapse.repeat_last(lambda r: 3 * torch.exp(-r / 10), collapse.rotating_values("random", n, 0.0))
        for n in (10, 1000, 10_000)
    ]
    return {"distance": float(changes[-1][0]), "variation": [float(variation) for _, variation in changes]}


def proof_is_rough() -> Numbers:
    rows = [3 * torch.exp(-torch.arange(n, -1, -1, dtype=torch.float64) / 10) for n in (10, 10_000)]
    return {"last": [float((row[1:] - row[:-1])[-1].abs()) for row in rows]}  # of the logits of the two rows


def bounded_logits_suffice() -> Numbers:
    change, _ = collapse.rotating_counterexample(10_000)
    return {"change": change, "exact": 2 * math.tanh(2)}


def rope_decays() -> Numbers:
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    theta = rope.frequencies(64, 1e4)
    key = rope.rotate(query, torch.tensor([-float(distance)]), theta)
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rope.rotate(key.expand(len(positions), -1), positions, theta) @ query[0]) / 8
    return {"distance": distance, "best": int(logits.argmax())}


def alternating_sequences_stay_apart() -> Numbers:
    variation = [collapse.alternating_total_variation(n) for n in (2, 100, 10_000)]
    return {"variation": variation, "exact": 2 * (math.e - 1) / (math.e + 1)}


def encodings() -> Numbers:
    """What is left of the distance at n = 10,000, by encoding; and what ALiBi alone keeps at n = 1,000 and 10,000."""
    means = measures.layer_means(True)
    left = {name: _left(means[name]) for name in measures.READING}
    variants = {name: _left(means[name]) for name in measures.VARIANTS}
    return {"left": left, "variants": variants, "alibi": [collapse.alibi_change(n, 2**-8) for n in (1000, 10_000)]}


def _left(distances: torch.Tensor) -> float:
    return float(distances[-1] / distances[0])


def named(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {style.number(share)}" for name, share in shares.items())


def sinusoidal_encodings_collapse() -> Numbers:
    plain, kept = (measures.layer_means(residual, 1 / 8, 5) for residual in (False, True))
    left = {"no residual": _left(plain["APE on q, k"]), "residual": _left(kept["APE on q, k"])}
    return {"left": left, "variant": _left(kept["APE on q, k, v"])}


def telling_apart(model: LanguageModel | None = None) -> Numbers:
    """Right answers of two in every band of lengths, by number type; of all prompts in the last band, by kind of error."""
    embedded = model is None or model.name == models.DEFAULT
    table = data.table("telling_apart") if embedded else measures.telling_apart(model)
    table = table.set_index(["errors", "type", "low"]).sort_index()
    bf16, fp16 = (table.loc[measures.ERRORS[0], kind] for kind in ("bf16", "fp16"))
    late = {errors: table.loc[errors, "bf16"].iloc[-1] for errors in measures.ERRORS}
    return {
        "low": int(bf16.index[-1]),
        "high": int(bf16.high.iloc[-1]) - 1,
        "sure": int(bf16.high.iloc[1]) - 1,  # the end of the second band
        "bf16": bf16.pair.tolist(),
        "fp16": fp16.pair.tolist(),
        "nearest_fp16": fp16.nearest.iloc[-1],
        "nearest": {errors: row.nearest for errors, row in late.items()},
        "share": {errors: row.share for errors, row in late.items()},
    }


def the_reader_decides() -> Numbers:
    rows = data.table("rounding_readers").query("type == 'bf16'")
    mean = rows.groupby("errors")[["nearest", "off", "variation"]].mean()
    return {name: [column[measures.ERRORS[k]] for k in (0, 2, 3)] for name, column in mean.items()}


def prompts_can_be_recovered() -> Numbers:
    rows = data.table("recovered")
    return {
        "candidates": rows.candidates.max(),
        "layers": rows.groupby("layer")[["recovered", "tokens", "named"]].sum().to_dict("index"),
        "own": rows.own.max(),
        "other": rows.other.min(),
        "shares": (rows.recovered / rows.tokens).tolist(),
    }


def window_stops_collapse() -> Numbers:
    def distances(kind: str, window: int | None) -> list[float]:
        return measures.window_distance(kind, window, [5, 100], seeds=3).tolist()

    return {
        "free": {kind: distances(kind, None)[1] for kind in measures.SEQUENCES},
        "held": {kind: distances(kind, 8) for kind in measures.SEQUENCES},
    }


def window_stops_over_squashing() -> Numbers:
    free, held = measures.influence(None), measures.influence(8)
    return {
        "near": float(held[1:8].mean() / free[1:8].mean()),
        "far": float(held[29:].max()),
        "free": float(free[29:].mean()),
        "least": float(free[29:].min()),
    }


def separators_do_not_follow() -> Numbers:
    curves = measures.separator_curves()
    return {"falls": [1 / _left(curves[f"commas, n to n + {step}"]) for step in (1, 3)]}


def adaptive_temperature_sharpens() -> Numbers:
    rows = {n: torch.tensor([3.0] + [0.0] * (n - 1), dtype=torch.float64) for n in (16, 128, 4096)}
    return {"gains": {n: float(collapse.adaptive_temperature(row)[0] / row.softmax(0)[0]) for n, row in rows.items()}}


def seq_vcr_sees_collapse() -> Numbers:
    healthy = torch.randn(256, 8, 32, generator=torch.Generator().manual_seed(0))
    batches = {"healthy": healthy, "point": 0.001 * healthy, "line": healthy[..., :1].expand(-1, -1, 32)}
    return {name: collapse.seq_vcr_loss(batch) for name, batch in batches.items()}


# Language models -----------------------------------------------------------------------------------------


def _distance(model: LanguageModel | None, lengths: Sequence[int], prompt: str = "", **setting) -> list[float]:
    """What a repeated last digit changes; inside one of the copying prompts, where one is named."""
    model = model or models.default()
    head, tail = collapse.copying_prompt(model, prompt, "last", hint=False) if prompt else (None, "")
    return collapse.last_token_distance(model, lengths, head=head, tail=tail, **setting).tolist()


def one_more(model: LanguageModel | None = None, lengths: Sequence[int] = (), prompt: str = "") -> Numbers:
    return {"lengths": lengths, "distances": _distance(model, lengths, prompt)}


PLACES = [2, 22, 52, 102, 202, 302, 402, 502]  # lengths at which the last digit of varied ones is repeated


@cache
def _varied(model: LanguageModel | None) -> torch.Tensor:
    """Distances at `PLACES` with random digits, by seed."""
    digits = [measures.random_digits(502, PLACES, seed) for seed in range(4)]
    return torch.tensor([_distance(model, PLACES, sequence=each) for each in digits])


def varied_digits_delay_collapse(model: LanguageModel | None = None) -> Numbers:
    fifty, *near, last = _distance(model, [50, *range(192, 213, 5), 502])
    return {
        "varied": float(_varied(model).mean(0)[-1]),
        "ones": last,
        "ends": measures.ones_at_the_end(model or models.default()).tolist(),  # on 1, 5, 20 and 50 ones
        "alone": float(torch.tensor(near).median()),
        "fifty": fifty,
    }


def varied_digits_still_fall(model: LanguageModel | None = None) -> Numbers:
    """The trend from n = 22 on: before, the sequence is still starting."""
    runs = _varied(model)
    steps = runs.log().diff(dim=1)
    return {
        "seeds": len(runs),
        "means": dict(zip(PLACES, runs.mean(0).tolist(), strict=True)),
        "steps": (steps.mean(0) / (steps.std(0) / len(runs) ** 0.5)).tolist(),  # in standard errors
    }


def commas_prevent_collapse(model: LanguageModel | None = None) -> Numbers:
    lengths, commas, inside = [6, 502], {"sequence": "111,"}, {"prompt": "sequence first"}
    return {
        "last": _distance(model, lengths, **commas),
        "period": _distance(model, lengths, **commas, period=4),
        "ones": _distance(model, lengths, period=4),
        "inside": _distance(model, lengths, **commas, **inside),
        "ones_inside": _distance(model, lengths, **inside),
    }


def merging_alleviates_collapse(model: LanguageModel | None = None) -> Numbers:
    table = measures.merging(model or models.default())
    more = table[["one letter more", "one token more"]].gt(table["one letter more, unmerged"], axis=0)
    sizes = table["letters a token"]
    return {"runs": len(table), "wins": more.sum().tolist(), "least": sizes.min(), "most": sizes.max()}


@cache
def _copying(model: LanguageModel | None, **setting) -> Numbers:
    """At 5 and 300 digits where a place's digit is answered right; at 300 its effect, by place and the one asked for."""
    margins = collapse.copying_margins(model or models.default(), [5, 300], **setting)
    right = {place: measures.right_both_ways(margins, place).tolist() for place in collapse.PLACES}
    return {
        "able": all(at[0] for at in right.values()),  # who is wrong at five digits tells nothing about three hundred
        "right": right,
        "effect": {places: float((zero - one)[-1]) for places, (zero, one) in margins.items()},
        "margin": float(margins["last", "last"][0][-1]),
    }


def copying(model: LanguageModel | None = None, **prompts: dict[str, str | bool]) -> Numbers:
    return {name: _copying(model, **setting) for name, setting in prompts.items()}
