"""The claims of chapter 3's sources, each measured by a small function."""

import math
from functools import cache

import torch

from helpers import collapse, models, rope
from helpers.claims import Found, claim, verdict
from helpers.sources import AREFIN, BARBERO, COURSE, VELICKOVIC


@claim(
    source=BARBERO,
    where="Lemma B.1",
    statement="With bounded logits, the weight of the last token falls when a token is inserted, and the change tends to 0",
    reported="for all bounded logits",
    shown="3-representational-collapse/lesson#Softmax with bounded logits behaves like a mean",
)
def last_weight_falls() -> Found:
    generator = torch.Generator().manual_seed(0)
    falls, changes = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        change = before - logits.softmax(1)[:, -1]
        falls &= bool((change > 0).all())
        changes.append(float(change.max()))
    measured = f"falls in all 800 random rows; largest change {changes[0]:.3f} (n = 10), {changes[-1]:.1e} (n = 10,000)"
    return Found(measured, verdict(falls and changes == sorted(changes, reverse=True) and changes[-1] < 1e-5))


@claim(
    source=BARBERO,
    where="Lemma B.2, Figure 9",
    statement="The total variation of two softmaxes decays with length when only the first 200 logits differ",
    reported="decays (no rate given)",
    shown="3-representational-collapse/lesson#Figure 9, with the asymptote that the paper leaves out",
)
def early_noise_is_forgotten() -> Found:
    lengths = [50, 200, 500, 10_000]
    mean = collapse.perturbed_total_variation(lengths).mean(0)
    limit = collapse.perturbation_limit()
    ratio = float(mean[-1]) * lengths[-1] / limit
    monotone = bool((mean[1:] < mean[:-1]).all())
    measured = f"n TV tends to {limit:.3f} (ratio {ratio:.3f} at n = 10,000); flat at {mean[1]:.4f} up to n = 500"
    decays = abs(ratio - 1) <= 0.1
    return Found(measured, verdict(decays and monotone, decays))


@claim(
    source=BARBERO,
    where="Theorem B.3",
    statement="A repeated last token is forgotten when positional information decays with distance",
    reported="distance below any ε for long sequences",
    shown="3-representational-collapse/lesson#Why one would believe it",
)
def decaying_positions_collapse() -> Found:
    found = []
    for n in (10, 1000, 10_000):
        values = collapse.rotating_values("random", n, 0.0)
        found.append([float(x) for x in collapse.repeat_last(lambda r: 3 * torch.exp(-r / 10), values)])
    measured = (
        f"one head, logits 3 exp(-distance/10): total variation {found[0][1]:.3f}, {found[1][1]:.3f}, {found[2][1]:.4f}"
    )
    return Found(measured, verdict(found[2][1] < 0.01 and found[2][0] < 0.01))


@claim(
    source=COURSE,
    where="Theorem B.3 of Barbero et al. (2024), read without its assumption of decay",
    statement="Bounded logits alone force collapse",
    reported="not claimed, often assumed",
    shown="3-representational-collapse/lesson#A head that never collapses",
)
def bounded_logits_suffice() -> Found:
    change, _ = collapse.rotating_counterexample(10_000)
    measured = f"one rotation by pi a token, n = 10,000: the output changes by {change:.4f} (closed form {2 * math.tanh(2):.4f})"
    return Found(measured, verdict(change <= 1))


@claim(
    source=BARBERO,
    where="section 4, doubted in appendix C.4",
    statement="RoPE decays with distance, as Theorem B.3 needs",
    reported="assumed; the appendix concedes it may fail",
    shown="3-representational-collapse/lesson#What the proof leaves open",
)
def rope_decays() -> Found:
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    theta = rope.frequencies(64, 1e4)
    key = rope.rotate(query, torch.tensor([-float(distance)]), theta)
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rope.rotate(key.expand(len(positions), -1), positions, theta) @ query[0]) / 8
    best = int(logits.argmax())
    return Found(f"a key exists whose largest logit is at distance {best:,}", verdict(best != distance))


@claim(
    source=BARBERO,
    where="Proposition B.4",
    statement="The softmaxes of 1010… and 0101… do not approach each other",
    reported="total variation does not tend to 0",
    shown="3-representational-collapse/lesson#A pair that no length can hide",
)
def alternating_sequences_stay_apart() -> Found:
    found = [collapse.alternating_total_variation(n) for n in (2, 100, 10_000)]
    exact = 2 * (math.e - 1) / (math.e + 1)
    measured = f"{found[-1]:.10f} at n = 10,000 (closed form {exact:.10f})"
    return Found(measured, verdict(max(abs(x - exact) for x in found) < 1e-9))


@claim(
    source=BARBERO,
    where="appendix C.4, Figure 10",
    statement="NoPE, RoPE, ALiBi and absolute encodings all collapse, at similar lengths",
    reported="all collapse at similar lengths",
    shown="3-representational-collapse/lesson#Which encodings collapse?",
)
def all_encodings_collapse() -> Found:
    variants = {name: {"encoding": name} for name in collapse.ENCODINGS if name != "ALiBi"}
    variants |= {f"ALiBi 1/{k}": {"encoding": "ALiBi", "slope": 1 / k} for k in (2, 256)}
    drops = {}
    for name, choice in variants.items():
        runs = [collapse.one_layer_distance(**choice, lengths=[10, 10_000], seed=s, residual=True) for s in range(10)]
        near, far = torch.stack(runs).mean(0)
        drops[name] = float(far / near)
    measured = "with a residual, distance at n = 10,000 over n = 10: " + ", ".join(
        f"{k} {v:.2g}" for k, v in drops.items()
    )
    similar = max(drops.values()) < 10 * min(drops.values())
    return Found(measured, verdict(max(drops.values()) < 0.1 and similar))


@claim(
    source=BARBERO,
    where="appendix C.3, Figure 8",
    statement="Representations converge with sinusoidal encodings",
    reported="converge",
    shown="3-representational-collapse/lesson#Figure 8: sinusoidal encodings, small vectors",
)
def sinusoidal_encodings_collapse() -> Found:
    ratio = {}
    for residual in (False, True):
        runs = [
            collapse.one_layer_distance("APE on q, k, v", [10, 10_000], deviation=1 / 8, seed=s, residual=residual)
            for s in range(5)
        ]
        near, far = torch.stack(runs).mean(0)
        ratio[residual] = float(far / near)
    measured = f"distance at n = 10,000 over n = 10: {ratio[False]:.2g} without a residual, {ratio[True]:.2g} with one"
    shrinks = [value < 0.2 for value in ratio.values()]
    return Found(measured, verdict(all(shrinks), any(shrinks)))


@claim(
    source=BARBERO,
    where="section 4",
    statement="Low precision makes two long prompts indistinguishable sooner",
    reported="sooner in bf16",
    shown="3-representational-collapse/lesson#When is small equal to zero?",
)
def low_precision_collides_sooner() -> Found:
    found = {kind: collapse.first_collision(lambda n: 1 + 1 / n, kind) for kind in ("bf16", "fp16", "fp32")}
    measured = "1 + 1/n first equals its successor at n = " + ", ".join(f"{v:,} ({k})" for k, v in found.items())
    return Found(measured, verdict(found["bf16"] < found["fp16"] < found["fp32"]))


@claim(
    source=BARBERO,
    where="appendix C.6",
    statement="A sliding window stops representational collapse",
    reported="bounds the spread of softmax",
    shown="3-representational-collapse/lesson#Remedy 2: a sliding window",
)
def window_stops_collapse() -> Found:
    def mean(window: int | None) -> torch.Tensor:
        runs = [collapse.one_layer_distance("NoPE", [64, 10_000], window=window, seed=s) for s in range(10)]
        return torch.stack(runs).mean(0)

    free, held = mean(None), mean(64)
    measured = f"NoPE, n = 64 to 10,000: {free[0]:.2g} to {free[1]:.2g} without, {held[0]:.2g} to {held[1]:.2g} with a window of 64"
    return Found(measured, verdict(held[1] > 0.2 * held[0] and free[1] < 0.2 * free[0]))


@claim(
    source=VELICKOVIC,
    statement="Adaptive temperature sharpens a dispersed softmax",
    reported="sharper attention at every length tested",
    shown="3-representational-collapse/lesson#Remedy 1: sharpen the softmax",
)
def adaptive_temperature_sharpens() -> Found:
    gains = {}
    for n in (16, 128, 4096):
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = 3.0
        gains[n] = float(collapse.adaptive_temperature(row)[0] / row.softmax(0)[0])
    measured = "weight of a token that leads by 3 grows by a factor of " + ", ".join(
        f"{g:.2f} (n = {n:,})" for n, g in gains.items()
    )
    helps = [gain > 1.001 for gain in gains.values()]
    return Found(measured, verdict(all(helps), any(helps)))


@claim(
    source=AREFIN,
    statement="The Seq-VCR loss tells collapsed batches from healthy ones",
    reported="used as a training loss",
    shown="3-representational-collapse/lesson#It sees what it should see",
)
def seq_vcr_sees_collapse() -> Found:
    healthy = torch.randn(256, 8, 32, generator=torch.Generator().manual_seed(0))
    losses = [collapse.seq_vcr_loss(x) for x in (healthy, 0.001 * healthy, healthy[..., :1].expand(-1, -1, 32))]
    measured = f"healthy {losses[0]:.3f}, a point {losses[1]:.3f}, a line {losses[2]:.3f}"
    return Found(measured, verdict(losses[0] < 0.5 * min(losses[1:])))


def _signal_and_noise(n: int, **setting) -> tuple[float, float]:
    """The fp32 distance at n tokens, and the distance between the fp32 and the bf16 representation of one prompt."""
    (once, twice), (coarse, _) = (collapse.repeated_states(m, [n], **setting) for m in _small_model())
    return float((once - twice).abs().sum()), float((once - coarse).abs().sum())


@cache
def _small_model() -> tuple[models.LanguageModel, models.LanguageModel]:
    return models.load(dtype="fp32"), models.load(dtype="bf16")


@claim(
    source=BARBERO,
    where="Figure 5a",
    statement="The last representations of n and n + 1 ones approach each other in a language model",
    reported="Gemma 7B: falls to the bf16 noise",
    shown="3-representational-collapse/lab#Five comparisons, two number types, one noise floor",
)
def ones_collapse() -> Found:
    found = collapse.last_token_distance(_small_model()[0], [8, 16, 32, 128, 256, 512])
    _, noise = _signal_and_noise(512)
    measured = f"SmolLM2-135M: {found.max():.0f} at most, {found[-1]:.1f} at n = 512; bf16 noise {noise:.1f}"
    falls = found[-1] < 0.2 * found[0]
    monotone = bool((found[1:] < found[:-1]).all())
    return Found(measured, verdict(falls and monotone, falls))


@claim(
    source=BARBERO,
    where="Figure 5d",
    statement="Commas keep the representations apart",
    reported="the distance does not fall",
    shown="3-representational-collapse/lab#Five comparisons, two number types, one noise floor",
)
def commas_prevent_collapse() -> Found:
    plain, _ = _signal_and_noise(513)
    next_token, _ = _signal_and_noise(513, sequence="1,")  # an odd length ends on a digit, as ones do
    in_phase, noise = _signal_and_noise(513, sequence="1,", period=2)
    short, _ = _signal_and_noise(17, sequence="1,", period=2)
    measured = (
        f"SmolLM2-135M, 513 tokens: ones {plain:.1f}; commas, last 1 repeated {next_token:.0f}, a period repeated "
        f"{in_phase:.1f} ({short:.1f} at 17 tokens); bf16 noise {noise:.1f}"
    )
    return Found(measured, verdict(in_phase > max(noise, 0.5 * short), in_phase > plain))


@cache
def _copying_effects(hint: bool = False, pattern: str = "ones") -> dict[str, torch.Tensor]:
    found = {}
    for place in ("first", "last"):
        zero, one = collapse.copying_margins(_small_model()[0], [10, 100], place, hint=hint, pattern=pattern)
        found[place] = torch.stack([zero, zero - one])
    return found


def _compare_effects(plain: torch.Tensor, changed: torch.Tensor, name: str) -> Found:
    """An effect counts as larger from a tenth of a logit on, which changes the odds by a tenth."""
    larger = (changed > plain + 0.1).tolist()
    measured = (
        f"SmolLM2-135M, effect of a last 0 (logits) at 10 and 100 digits: {plain[0]:.2f}, {plain[1]:.2f}; "
        f"{name} {changed[0]:.2f}, {changed[1]:.2f}"
    )
    return Found(measured, verdict(all(larger), any(larger)))


@claim(
    source=BARBERO,
    where="Figure 2a",
    statement="Copying the first digit is easier than copying the last one",
    reported="Gemini 1.5: last digit fails from about 300, first does not",
    shown="3-representational-collapse/lab#Figures 2 and 11, as effects",
)
def first_digit_is_easier() -> Found:
    found = _copying_effects()
    first, last = found["first"][1], found["last"][1]
    solved = bool((found["first"][0] > 0).any() or (found["last"][0] > 0).any())
    measured = f"SmolLM2-135M, effect of the one 0 (logits) at 10 and 100 digits: first {first[0]:.2f}, {first[1]:.2f}; last {last[0]:.2f}, {last[1]:.2f}"
    measured += "" if solved else "; it never answers 0, so no transition is seen"
    return Found(measured, verdict(bool((first > last).all()), able=solved))


@claim(
    source=BARBERO,
    where="Figure 2b",
    statement="A hint that the digit need not be a 1 helps with the last digit",
    reported="Gemini 1.5: fixed by the hint",
    shown="3-representational-collapse/lab#Figures 2 and 11, as effects",
)
def hint_helps() -> Found:
    plain, hinted = _copying_effects()["last"][1], _copying_effects(hint=True)["last"][1]
    return _compare_effects(plain, hinted, "with the hint")


@claim(
    source=BARBERO,
    where="Figure 2c",
    statement="Alternating digits instead of ones help with the last digit",
    reported="Gemini 1.5: right at all lengths",
    shown="3-representational-collapse/lab#Figures 2 and 11, as effects",
)
def alternation_helps() -> Found:
    plain, mixed = _copying_effects()["last"][1], _copying_effects(pattern="alternating")["last"][1]
    return _compare_effects(plain, mixed, "alternating")
