"""The claims of chapter 3's sources, each measured by a small function."""

import math
from functools import cache

import pandas as pd
import torch

from course.chapter3 import measures
from course.claims import Found, called, verdict, weigh
from helpers import collapse, data, models, rope, style
from helpers.models import LanguageModel


@cache
def _last_weights() -> tuple[bool, list[float]]:
    """Whether the last token's weight falls when a token is inserted, in random rows; and the largest one by length."""
    generator = torch.Generator().manual_seed(0)
    falls, largest = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        weight = logits.softmax(1)[:, -1]
        falls &= bool((before > weight).all())
        largest.append(float(weight.max()))
    return falls, largest


def last_weight_falls() -> Found:
    falls, _ = _last_weights()
    return Found(
        f"{'falls' if falls else 'does not fall'} in all 800 random rows of 10 to 10,000 logits", verdict(falls)
    )


def last_weight_vanishes() -> Found:
    _, largest = _last_weights()
    measured = f"largest weight in 200 random rows: {largest[0]:.3f} (n = 10), {style.number(largest[-1])} (n = 10,000)"
    return Found(measured, verdict(largest == sorted(largest, reverse=True) and largest[-1] < 1e-2))


def early_noise_is_forgotten() -> Found:
    lengths = [50, 200, 350, 500, 10_000]
    mean = collapse.perturbed_total_variation(lengths).mean(0)
    peak = lengths[int(mean.argmax())]
    limit = collapse.perturbation_limit()
    ratio = float(mean[-1]) * lengths[-1] / limit
    monotone = bool((mean[1:] < mean[:-1]).all())
    measured = (
        f"n TV tends to {limit:.3f} (ratio {ratio:.3f} at n = 10,000); before, it rises from {mean[1]:.4f} at n = 200 "
        f"to a peak of {mean.max():.4f} at n = {peak} (5 seeds)"
    )
    decays = abs(ratio - 1) <= 0.1
    return Found(measured, verdict(decays and monotone, decays))


def decaying_positions_collapse() -> Found:
    found = []
    for n in (10, 1000, 10_000):
        values = collapse.rotating_values("random", n, 0.0)
        found.append([float(x) for x in collapse.repeat_last(lambda r: 3 * torch.exp(-r / 10), values)])
    measured = f"the conclusion, on one head of one layer, logits 3 exp(-distance/10): total variation {found[0][1]:.3f}, {found[1][1]:.3f}, {found[2][1]:.4f}"
    return Found(measured, verdict(found[2][1] < 0.01 and found[2][0] < 0.01))


def proof_is_rough() -> Found:
    lengths = (10, 1000, 10_000)
    rows = [3 * torch.exp(-torch.arange(n, -1, -1, dtype=torch.float64) / 10) for n in lengths]
    last = [float((longer[1:] - longer[:-1])[-1].abs()) for longer in rows]  # of the logits of the two rows
    measured = (
        f"by an example, not a run: with logits 3 exp(-distance/10) the two rows still differ by {last[0]:.3f} in their "
        f"last entry at n = 10 and by "
        f"{last[-1]:.3f} at n = 10,000, so Lemma B.2, which asks for a difference that vanishes along the sequence, "
        "does not apply as printed; indexed by distance it does"
    )
    return Found(measured, verdict(last[-1] > 0.1))


def bounded_logits_suffice() -> Found:
    change, _ = collapse.rotating_counterexample(10_000)
    measured = f"one rotation by pi a token, n = 10,000: the output changes by {change:.4f} (closed form {2 * math.tanh(2):.4f})"
    return Found(measured, verdict(change <= 1))


def rope_decays() -> Found:
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    theta = rope.frequencies(64, 1e4)
    key = rope.rotate(query, torch.tensor([-float(distance)]), theta)
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rope.rotate(key.expand(len(positions), -1), positions, theta) @ query[0]) / 8
    best = int(logits.argmax())
    return Found(f"a key exists whose largest logit is at distance {best:,}", verdict(best != distance))


def alternating_sequences_stay_apart() -> Found:
    found = [collapse.alternating_total_variation(n) for n in (2, 100, 10_000)]
    exact = 2 * (math.e - 1) / (math.e + 1)
    measured = f"{found[-1]:.10f} at n = 10,000 (closed form {exact:.10f})"
    return Found(measured, verdict(max(abs(x - exact) for x in found) < 1e-9))


def all_encodings_collapse() -> Found:
    ratios = _ratios(1.0)
    measured = "one head, residual and layer norm, distance at n = 10,000 over n = 10: " + _named(ratios)
    before, floor = (collapse.alibi_change(n, 2**-8) for n in (1000, 10_000))
    measured += f"; ALiBi falls and then levels off: without residual and norm it keeps {floor:.4f} at every length"
    fall = all(ratios[name] < 0.2 for name in measures.READING)
    return Found(measured, verdict(fall and floor < 0.5 * before, fall))


def encodings_collapse_alike() -> Found:
    ratios = {name: ratio for name, ratio in _ratios(1.0).items() if name in measures.READING}
    spread = max(ratios.values()) / min(ratios.values())
    measured = f"distance at n = 10,000 over n = 10: {_named(ratios)}: {spread:,.0f} times apart"
    return Found(measured, verdict(spread < 10))


def sinusoidal_encodings_collapse() -> Found:
    name, other = "APE on q, k", "APE on q, k, v"
    plain, kept = (measures.layer_means(residual, 1 / 8, 5) for residual in (False, True))
    ratios = {text: float(m[-1] / m[0]) for text, m in (("no residual", plain[name]), ("residual", kept[name]))}
    variant = float(kept[other][-1] / kept[other][0])
    measured = (
        f"distance at n = 10,000 over n = 10, sinusoid on queries and keys: {_named(ratios)}; "
        f"where it also enters the values, with a residual: {variant:.2g}"
    )
    return Found(measured, verdict(all(x < 0.2 for x in ratios.values())))


def _ratios(deviation: float) -> dict[str, float]:
    return {name: float(mean[-1] / mean[0]) for name, mean in measures.layer_means(True, deviation).items()}


def _named(ratios: dict[str, float]) -> str:
    return ", ".join(f"{name} {style.number(ratio)}" for name, ratio in ratios.items())


def low_precision_is_worse(model: LanguageModel | None = None) -> Found:
    own = _errors(model).loc[measures.ERRORS[0]]
    bf16, fp16 = own.loc["bf16"], own.loc["fp16"]
    last = bf16.index[-1]
    at, high = [kind.loc[last] for kind in (bf16, fp16)], int(bf16.high[last])
    measured = (
        f"{called(model)}, n = {last:,} to {high - 1:,} ones: of the exact prompts n and n + 1 the right one is the nearer in "
        f"{at[0].pair:.0%} (bf16) and {at[1].pair:.0%} (fp16), chance 50%; of all prompts in {at[0].nearest:.0%} and "
        f"{at[1].nearest:.0%}. Up to n = {int(bf16.high.iloc[1]) - 1} neither is ever wrong"
    )
    worse = bool((bf16.pair <= fp16.pair).all() and at[0].pair < at[1].pair)
    return Found(measured, verdict(worse and bool((bf16.pair < 0.55).any()), worse))


def _errors(model: LanguageModel | None) -> pd.DataFrame:
    """By kind of error, number type and band: the committed table for the embedded model, for another one measured."""
    embedded = model is None or model.name == models.DEFAULT
    table = data.table("telling_apart") if embedded else measures.telling_apart(model)
    return table.set_index(["errors", "type", "low"]).sort_index()


def direction_of_rounding_decides(model: LanguageModel | None = None) -> Found:
    table = _errors(model)
    late = {errors: table.loc[errors, "bf16"].iloc[-1] for errors in measures.ERRORS}
    own, other, shuffled, isotropic = late.values()
    listed = ", ".join(f"{errors} {row.nearest:.0%}" for errors, row in late.items())
    measured = (
        f"{called(model)}, {own.name:,} to {int(own.high) - 1:,} ones, right one of all prompts by errors: {listed}; of the squared error "
        f"{own.share:.1%} lies along the difference to n + 1, of an isotropic one {isotropic.share:.2%}"
    )
    harmless = bool(isotropic.nearest > 0.95 and own.nearest < 0.7)
    return Found(
        measured, verdict(harmless and shuffled.nearest > 0.95 and abs(own.nearest - other.nearest) < 0.15, harmless)
    )


def the_reader_decides() -> Found:
    rows = data.table("rounding_readers").query("type == 'bf16'")
    mean = rows.groupby("errors")[["nearest", "off", "variation"]].mean()
    own, shuffled, isotropic = (mean.loc[measures.ERRORS[k]] for k in (0, 2, 3))
    measured = (
        "400 to 1,023 ones, errors of bf16, shuffled, isotropic: nearest exact state right in "
        f"{own.nearest:.0%}, {shuffled.nearest:.0%}, {isotropic.nearest:.0%}; linear read-out of n off by {own.off:.1f}, "
        f"{shuffled.off:.1f}, {isotropic.off:.1f}; next token, total variation {own.variation:.3f}, "
        f"{shuffled.variation:.3f}, {isotropic.variation:.3f}"
    )
    search = bool(own.nearest + 0.2 < min(shuffled.nearest, isotropic.nearest))
    others = bool(isotropic.off > 1.5 * own.off), bool(own.variation < min(shuffled.variation, isotropic.variation))
    return Found(measured, verdict(search and all(others), search and any(others)))


def prompts_can_be_recovered() -> Found:
    rows = data.table("recovered")
    told = "; ".join(
        f"layer {layer}: {part.recovered.sum()} of {part.tokens.sum()} (a linear read-out names {part.named.sum()})"
        for layer, part in rows.groupby("layer")
    )
    measured = (
        f"among {rows.candidates.max()} candidates, {told}; right states within {rows.own.max():.0e} of the one seen, "
        f"all others at least {rows.other.min():.2f} of its length away"
    )
    share = rows.recovered / rows.tokens
    return Found(measured, verdict(bool((share == 1).all()), bool(share.mean() > 0.5)))


def window_stops_collapse() -> Found:
    found = {
        (kind, w): [float(x) for x in measures.window_distance(kind, w, [5, 100], seeds=3)]
        for kind in measures.SEQUENCES
        for w in (None, 8)
    }
    varied, equal = measures.SEQUENCES
    ends = ", ".join(
        f"{kind} {found[kind, None][1]:.2g} without, {max(0, round(found[kind, 8][1], 10)):.2g} with a window of 8"
        for kind in measures.SEQUENCES
    )
    holds = [found[kind, 8][1] > 0.2 * found[kind, 8][0] for kind in (varied, equal)]
    worse = [found[kind, 8][1] < found[kind, None][1] for kind in (varied, equal)]
    return Found(f"3 random layers, NoPE, n = 100: {ends}", weigh(holds, worse))


def window_stops_over_squashing() -> Found:
    free, held = measures.influence(None), measures.influence(8)
    near, far = float(held[1:8].mean() / free[1:8].mean()), float(held[29:].max())
    measured = (
        f"4 random layers, 64 tokens: with a window of 8 the 7 nearest tokens have {near:.1f} times the influence, those "
        f"from distance 29 on {far:.0f} (without a window {float(free[29:].mean()):.2f})"
    )
    return Found(measured, verdict(near > 1 and far > float(free[29:].min()), near > 1))


def separators_do_not_follow() -> Found:
    curves = measures.separator_curves()
    one, three = (curves[f"commas, n to n + {step}"] for step in (1, 3))
    falls = [float(curve[0] / curve[-1]) for curve in (one, three)]
    measured = (
        f"3 random layers, NoPE, which Theorem B.3 covers with commas as without: from n = 13 to 385 the distance falls "
        f"{falls[0]:.0f}-fold (one token more) and {falls[1]:.0f}-fold (a period of three more)"
    )
    return Found(measured, verdict(min(falls) > 5))


def adaptive_temperature_sharpens() -> Found:
    gains = {}
    for n in (16, 128, 4096):
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = 3.0
        gains[n] = float(collapse.adaptive_temperature(row)[0] / row.softmax(0)[0])
    measured = "weight of a token that leads by 3 grows by a factor of " + ", ".join(
        f"{g:.2f} (n = {n:,})" for n, g in gains.items()
    )
    return Found(measured, weigh((gain > 1.001 for gain in gains.values()), (gain < 0.999 for gain in gains.values())))


def seq_vcr_sees_collapse() -> Found:
    healthy = torch.randn(256, 8, 32, generator=torch.Generator().manual_seed(0))
    losses = [collapse.seq_vcr_loss(x) for x in (healthy, 0.001 * healthy, healthy[..., :1].expand(-1, -1, 32))]
    measured = f"healthy {losses[0]:.3f}, a point {losses[1]:.3f}, a line {losses[2]:.3f}"
    return Found(measured, verdict(losses[0] < 0.5 * min(losses[1:])))


def _distance(lengths: list[int], model: LanguageModel | None = None, **setting) -> list[float]:
    return [float(x) for x in collapse.last_token_distance(model or models.default(), lengths, **setting)]


def ones_collapse(model: LanguageModel | None = None) -> Found:
    found = _distance([8, 16, 32, 128, 256, 512], model=model)
    measured = f"{called(model)}: {found[0]:.0f} at n = 8, {max(found):.0f} at most, {found[-1]:.1f} at n = 512"
    falls = found[-1] < 0.2 * found[0]
    return Found(measured, verdict(falls and found == sorted(found, reverse=True), falls))


PLACES = [2, 22, 52, 102, 202, 302, 402, 502]  # lengths at which the last digit of varied ones is repeated


@cache
def _varied(model: LanguageModel | None) -> tuple[list[float], torch.Tensor]:
    """Distances at `PLACES` with ones, and with random digits by seed."""
    runs = [_distance(PLACES, model=model, sequence=measures.random_digits(502, PLACES, seed)) for seed in range(4)]
    return _distance(PLACES, model=model), torch.tensor(runs)


def varied_digits_delay_collapse(model: LanguageModel | None = None) -> Found:
    ones, digits = _varied(model)
    varied = digits.mean(0).tolist()
    runs, (fifty, *near) = (
        measures.ones_at_the_end(model or models.default()),
        _distance([50, *range(192, 213, 5)], model=model),
    )
    alone = float(torch.tensor(near).median())
    measured = (
        f"{called(model)}, n = 502: random digits with a last 1 repeated {varied[-1]:.0f} (4 seeds), ones {ones[-1]:.1f}. n = 202, "
        f"ending on 1, 5, 20, 50 ones: {', '.join(f'{x:.3g}' for x in runs.tolist())} (2 seeds); ones alone {alone:.3g} (median "
        f"of n = 192 to 212), and 50 ones alone {fifty:.3g}: with ones at its end the whole length counts, varied or not"
    )
    delayed = varied[-1] > 2 * ones[-1]
    return Found(measured, verdict(delayed and float(runs[-1]) > 2 * alone, delayed))


def varied_digits_still_fall(model: LanguageModel | None = None) -> Found:
    """The trend from n = 22 on: before, the sequence is still starting."""
    _, runs = _varied(model)
    steps = runs.log().diff(dim=1)
    mean, error = steps.mean(0), steps.std(0) / len(runs) ** 0.5
    listed = ", ".join(f"{x:.0f} (n = {n})" for n, x in zip(PLACES, runs.mean(0).tolist(), strict=True))
    falls, rises = mean < -2 * error, mean > 2 * error
    measured = (
        f"{called(model)}, random digits, mean of {len(runs)} seeds: {listed}; of {len(mean)} steps {int(falls.sum())} fall "
        f"and {int(rises.sum())} rise, by two standard errors"
    )
    return Found(measured, weigh(falls, rises))


@cache
def _commas(model: LanguageModel | None) -> dict[str, list[float]]:
    head, tail = collapse.copying_prompt(model or models.default(), "sequence first", "last", hint=False)
    inside = {"head": head, "tail": tail}
    return {
        "last": _distance([6, 502], model=model, sequence="111,"),
        "period": _distance([6, 502], model=model, sequence="111,", period=4),
        "ones": _distance([6, 502], model=model, period=4),
        "inside": _distance([6, 502], model=model, sequence="111,", **inside),
        "ones inside": _distance([6, 502], model=model, **inside),
    }


def commas_prevent_collapse(model: LanguageModel | None = None) -> Found:
    found = _commas(model)
    at = {name: curve[-1] for name, curve in found.items()}
    measured = (
        f"{called(model)}, 502 tokens: last 1 repeated {at['last']:.0f}; four tokens (a period) repeated {at['period']:.0f}, "
        f"four ones without commas {at['ones']:.0f}; in the copying prompt {at['inside']:.0f} with commas, "
        f"{at['ones inside']:.0f} without"
    )
    left = [found[name][-1] / found[name][0] for name in ("last", "period", "inside")]
    return Found(measured, weigh((share > 0.5 for share in left), (share < 0.2 for share in left)))


def merging_alleviates_collapse(model: LanguageModel | None = None) -> Found:
    found = measures.merging(model or models.default())
    alone = found["one letter more, unmerged"]
    wins = [int((found[how] > alone).sum()) for how in ("one letter more", "one token more")]
    measured = (
        f"{called(model)} reads runs of a, b and x in tokens of {found['letters a token'].min():.0f} to "
        f"{found['letters a token'].max():.0f}: of {len(found)} runs of 16 to 256 letters, one letter more (another last token) "
        f"changes more than without merging in {wins[0]}, one whole token more in {wins[1]}"
    )
    most, fewest = ([test(count / len(found)) for count in wins] for test in (lambda x: x >= 0.9, lambda x: x < 0.5))
    return Found(measured, weigh(most, fewest))


def collapse_in_type_1(model: LanguageModel | None = None) -> Found:
    head, tail = collapse.copying_prompt(model or models.default(), "type 1", "last", hint=False)
    lengths = [2, 22, 50, 502]
    found = _distance(lengths, model=model, head=head, tail=tail)
    measured = f"{called(model)}: " + ", ".join(f"{x:.3g} (n = {n})" for n, x in zip(lengths, found, strict=True))
    falls = found[-1] < 0.3 * found[0]
    return Found(measured, verdict(falls and found == sorted(found, reverse=True), falls))


@cache
def _copying(model: LanguageModel | None, **setting) -> dict[tuple[str, str], tuple[torch.Tensor, torch.Tensor]]:
    return collapse.copying_margins(model or models.default(), [5, 300], **setting)


def _copied(more: bool | None, found: dict, numbers: str, model: LanguageModel | None) -> Found:
    """A model that is wrong at five digits tells nothing about three hundred."""
    able = all(bool(measures.right(found, place)[0]) for place in collapse.PLACES)
    measured = f"{called(model)}: {numbers}" + ("" if able else "; wrong at five digits already")
    return Found(measured, verdict(bool(more), able=able))


def _effect(found: dict, place: str, asked: str) -> float:
    zero, one = found[place, asked]
    return float((zero - one)[-1])


def first_digit_is_easier(model: LanguageModel | None = None) -> Found:
    found = _copying(model)
    easier = measures.right(found, "first").sum() > measures.right(found, "last").sum()
    numbers = (
        f"at 300 digits a first 0 moves the answer by {_effect(found, 'first', 'first'):.2f} logits when asked for, and by "
        f"{_effect(found, 'first', 'last'):.2f} when the last digit is; a last 0 by {_effect(found, 'last', 'last'):.2f}"
    )
    return _copied(easier, found, numbers, model)


def last_digit(model: LanguageModel | None = None, **help_: bool | str) -> Found:
    """Whether the last digit is answered better than in the plain prompt, with margins and effects at 300 digits."""
    plain, helped = _copying(model), _copying(model, **help_)
    better = measures.right(helped, "last").sum() > measures.right(plain, "last").sum()
    margin, changed = (float(found["last", "last"][0][-1]) for found in (plain, helped))
    numbers = (
        f"last 0 at 300 digits: margin {margin:+.2f} plain, {changed:+.2f} with help; effect "
        f"{_effect(plain, 'last', 'last'):.2f} and {_effect(helped, 'last', 'last'):.2f}"
    )
    return _copied(better, plain, numbers, model)


def prompt_order_matters(model: LanguageModel | None = None) -> Found:
    found = {prompt: _copying(model, prompt=prompt) for prompt in ("type 1", "type 2")}
    rights = {prompt: measures.right(margins, "last").tolist() for prompt, margins in found.items()}
    differ = rights["type 1"] != rights["type 2"] and not any(right[-1] for right in rights.values())
    numbers = ", ".join(
        f"{prompt}: effect of a last 0 {_effect(margins, 'last', 'last'):.2f} at 300 digits, of a first 0 that nobody asks "
        f"for {_effect(margins, 'first', 'last'):.2f}"
        for prompt, margins in found.items()
    )
    return _copied(differ, found["type 1"], numbers, model)
