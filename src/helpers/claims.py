"""Claims of the sources, each a function that measures it here and says whether it holds.

The scorecard page and a test run them all. A verdict is computed, never written down.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pandas as pd
import torch

from helpers import collapse, compute, models
from helpers.transformer import rotate

HOLDS = "holds"
CORRECTED = "holds with a correction"
FAILS = "does not hold here"
VERDICTS = (HOLDS, CORRECTED, FAILS)


class Claim(NamedTuple):
    """What a source says, where it says it, where the book shows it, and the function that measures it."""

    chapter: int
    source: str
    url: str
    statement: str
    reported: str
    page: str
    measure: Callable[[], tuple[str, str]]  # what was measured, and one of VERDICTS


CLAIMS: dict[str, Claim] = {}


def claim(chapter: int, source: str, url: str, statement: str, reported: str, page: str) -> Callable:
    """Register the decorated function under its own name."""

    def register(measure: Callable[[], tuple[str, str]]) -> Callable[[], tuple[str, str]]:
        CLAIMS[measure.__name__] = Claim(chapter, source, url, statement, reported, page, measure)
        return measure

    return register


def scorecard(chapter: int | None = None) -> pd.DataFrame:
    """Measure the claims of a chapter (or all) and return one row each.

    Raises:
        ValueError: no claim belongs to the chapter.
    """
    chosen = [c for c in CLAIMS.values() if chapter in (None, c.chapter)]
    if not chosen:
        raise ValueError(f"chapter must be one of {sorted({c.chapter for c in CLAIMS.values()})}, not {chapter}")
    rows = []
    for each in compute.progress(chosen, "claims"):
        measured, verdict = each.measure()
        rows.append(
            {
                "chapter": each.chapter,
                "claim": each.statement,
                "source": f'<a href="{each.url}">{each.source}</a>',
                "reported": each.reported,
                "measured": measured,
                "verdict": verdict,
                "shown in": f'<a href="{each.page}.html">{each.page.split("/")[-1]}</a>',
            }
        )
    return pd.DataFrame(rows)


GLASSES = "https://arxiv.org/abs/2406.04267"
LESSON3, LAB3 = "3-representational-collapse/lesson", "3-representational-collapse/lab"


@claim(
    3, "Barbero et al. (2024), Lemma B.1", GLASSES,
    "With bounded logits, the weight of the last token falls when a token is inserted, and the change tends to 0",
    "for all bounded logits", LESSON3,
)  # fmt: skip
def last_weight_falls() -> tuple[str, str]:
    generator = torch.Generator().manual_seed(0)
    falls, changes = True, []
    for n in (10, 100, 1000, 10_000):
        logits = 4 * torch.rand(200, n, generator=generator, dtype=torch.float64) - 2
        before = torch.cat([logits[:, :-2], logits[:, -1:]], 1).softmax(1)[:, -1]
        change = before - logits.softmax(1)[:, -1]
        falls &= bool((change > 0).all())
        changes.append(float(change.max()))
    measured = f"falls in all 800 random rows; largest change {changes[0]:.3f} (n = 10), {changes[-1]:.1e} (n = 10,000)"
    return measured, HOLDS if falls and changes == sorted(changes, reverse=True) and changes[-1] < 1e-5 else FAILS


@claim(
    3, "Barbero et al. (2024), Lemma B.2, Figure 9", GLASSES,
    "The total variation of two softmaxes decays with length when only the first 200 logits differ",
    "decays (no rate given)", LESSON3,
)  # fmt: skip
def early_noise_is_forgotten() -> tuple[str, str]:
    lengths = [50, 200, 500, 10_000]
    mean = collapse.perturbed_total_variation(lengths).mean(0)
    limit = collapse.perturbation_limit()
    ratio = float(mean[-1]) * lengths[-1] / limit
    monotone = bool((mean[1:] < mean[:-1]).all())
    measured = f"n TV tends to {limit:.3f} (ratio {ratio:.3f} at n = 10,000); flat at {mean[1]:.4f} up to n = 500"
    return measured, FAILS if abs(ratio - 1) > 0.1 else HOLDS if monotone else CORRECTED


@claim(
    3, "Barbero et al. (2024), Theorem B.3", GLASSES,
    "A repeated last token is forgotten when positional information decays with distance",
    "distance below any ε for long sequences", LESSON3,
)  # fmt: skip
def decaying_positions_collapse() -> tuple[str, str]:
    found = []
    for n in (10, 1000, 10_000):
        values = collapse.rotating_values("random", n, 0.0)
        found.append([float(x) for x in collapse.repeat_last(lambda r: 3 * torch.exp(-r / 10), values)])
    measured = (
        f"one head, logits 3 exp(-distance/10): total variation {found[0][1]:.3f}, {found[1][1]:.3f}, {found[2][1]:.4f}"
    )
    return measured, HOLDS if found[2][1] < 0.01 and found[2][0] < 0.01 else FAILS


@claim(
    3, "Barbero et al. (2024), Theorem B.3, read without its assumption of decay", GLASSES,
    "Bounded logits alone force collapse",
    "not claimed, often assumed", LESSON3,
)  # fmt: skip
def bounded_logits_suffice() -> tuple[str, str]:
    change, _ = collapse.rotating_counterexample(10_000)
    return (
        f"one RoPE frequency, n = 10,000: the output changes by {change:.4f} (closed form {2 * math.tanh(2):.4f})",
        FAILS if change > 1 else HOLDS,
    )


@claim(
    3, "Barbero et al. (2024), section 4, doubted in appendix C.4", GLASSES,
    "RoPE decays with distance, as Theorem B.3 needs",
    "assumed; the appendix concedes it may fail", LESSON3,
)  # fmt: skip
def rope_decays() -> tuple[str, str]:
    query = torch.randn(1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distance = 5000
    key = rotate(query, torch.tensor([-float(distance)]))
    positions = torch.arange(10_000, dtype=torch.float64)
    logits = (rotate(key.expand(len(positions), -1), positions) @ query[0]) / 8
    best = int(logits.argmax())
    return f"a key exists whose largest logit is at distance {best:,}", FAILS if best == distance else HOLDS


@claim(
    3, "Barbero et al. (2024), Proposition B.4", GLASSES,
    "The softmaxes of 1010… and 0101… do not approach each other",
    "total variation does not tend to 0", LESSON3,
)  # fmt: skip
def alternating_sequences_stay_apart() -> tuple[str, str]:
    found = [collapse.alternating_total_variation(n) for n in (2, 100, 10_000)]
    exact = 2 * (math.e - 1) / (math.e + 1)
    return f"{found[-1]:.10f} at n = 10,000 (closed form {exact:.10f})", (
        HOLDS if max(abs(x - exact) for x in found) < 1e-9 else FAILS
    )


@claim(
    3, "Barbero et al. (2024), appendix C.4, Figure 10", GLASSES,
    "NoPE, RoPE, ALiBi and absolute encodings all collapse, at similar lengths",
    "all collapse at similar lengths", LESSON3,
)  # fmt: skip
def all_encodings_collapse() -> tuple[str, str]:
    drops = {}
    for encoding in collapse.ENCODINGS:
        runs = [collapse.one_layer_distance(encoding, [10, 10_000], seed=s, residual=True) for s in range(10)]
        near, far = torch.stack(runs).mean(0)
        drops[encoding] = float(far / near)
    measured = "distance at n = 10,000 over n = 10: " + ", ".join(f"{k} {v:.2g}" for k, v in drops.items())
    similar = max(drops.values()) < 10 * min(drops.values())
    return measured, HOLDS if max(drops.values()) < 0.1 and similar else FAILS


@claim(
    3, "Barbero et al. (2024), appendix C.3, Figure 8", GLASSES,
    "Representations converge with sinusoidal encodings",
    "converge", LESSON3,
)  # fmt: skip
def sinusoidal_encodings_collapse() -> tuple[str, str]:
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
    return measured, HOLDS if all(shrinks) else CORRECTED if any(shrinks) else FAILS


@claim(
    3, "Barbero et al. (2024), section 4", GLASSES,
    "Low precision makes two long prompts indistinguishable sooner",
    "sooner in bf16", LESSON3,
)  # fmt: skip
def low_precision_collides_sooner() -> tuple[str, str]:
    found = {kind: collapse.first_collision(lambda n: 1 + 1 / n, kind) for kind in ("bf16", "fp16", "fp32")}
    measured = "1 + 1/n equals its successor from n = " + ", ".join(f"{v:,} ({k})" for k, v in found.items())
    return measured, HOLDS if found["bf16"] < found["fp16"] < found["fp32"] else FAILS


@claim(
    3, "Barbero et al. (2024), appendix C.6", GLASSES,
    "A sliding window stops representational collapse",
    "bounds the spread of softmax", LESSON3,
)  # fmt: skip
def window_stops_collapse() -> tuple[str, str]:
    def mean(window: int | None) -> torch.Tensor:
        runs = [collapse.one_layer_distance("NoPE", [64, 10_000], window=window, seed=s) for s in range(10)]
        return torch.stack(runs).mean(0)

    free, held = mean(None), mean(64)
    measured = f"NoPE, n = 64 to 10,000: {free[0]:.2g} to {free[1]:.2g} without, {held[0]:.2g} to {held[1]:.2g} with a window of 64"
    return measured, HOLDS if held[1] > 0.2 * held[0] and free[1] < 0.2 * free[0] else FAILS


@claim(
    3, "Veličković et al. (2024)", "https://arxiv.org/abs/2410.01104",
    "Adaptive temperature sharpens a dispersed softmax",
    "sharper attention at every length tested", LESSON3,
)  # fmt: skip
def adaptive_temperature_sharpens() -> tuple[str, str]:
    gains = {}
    for n in (16, 128, 4096):
        row = torch.zeros(n, dtype=torch.float64)
        row[0] = 3.0
        gains[n] = float(collapse.adaptive_temperature(row)[0] / row.softmax(0)[0])
    measured = "weight of a token that leads by 3 grows by a factor of " + ", ".join(
        f"{g:.2f} (n = {n:,})" for n, g in gains.items()
    )
    helps = [gain > 1.001 for gain in gains.values()]
    return measured, HOLDS if all(helps) else CORRECTED if any(helps) else FAILS


@claim(
    3, "Arefin et al. (2025)", "https://arxiv.org/abs/2411.02344",
    "The Seq-VCR loss tells collapsed batches from healthy ones",
    "used as a training loss", LESSON3,
)  # fmt: skip
def seq_vcr_sees_collapse() -> tuple[str, str]:
    healthy = torch.randn(256, 8, 32, generator=torch.Generator().manual_seed(0))
    losses = [collapse.seq_vcr_loss(x) for x in (healthy, 0.001 * healthy, healthy[..., :1].expand(-1, -1, 32))]
    measured = f"healthy {losses[0]:.3f}, a point {losses[1]:.3f}, a line {losses[2]:.3f}"
    return measured, HOLDS if losses[0] < 0.5 * min(losses[1:]) else FAILS


def _signal_and_noise(n: int, **setting) -> tuple[float, float]:
    """The fp32 distance at n tokens, and the distance between the fp32 and the bf16 representation of one prompt."""
    (once, twice), (coarse, _) = (collapse.repeated_states(m, [n], **setting) for m in _small_model())
    return float((once - twice).abs().sum()), float((once - coarse).abs().sum())


@cache
def _small_model() -> tuple[models.LanguageModel, models.LanguageModel]:
    return models.load(dtype="fp32"), models.load(dtype="bf16")


@claim(
    3, "Barbero et al. (2024), Figure 5a", GLASSES,
    "The last representations of n and n + 1 ones approach each other in a language model",
    "Gemma 7B: falls to the bf16 noise", LAB3,
)  # fmt: skip
def ones_collapse() -> tuple[str, str]:
    found = collapse.last_token_distance(_small_model()[0], [8, 16, 32, 128, 256, 512])
    _, noise = _signal_and_noise(512)
    measured = f"SmolLM2-135M: {found.max():.0f} at most, {found[-1]:.1f} at n = 512; bf16 noise {noise:.1f}"
    falls = found[-1] < 0.2 * found[0]
    monotone = bool((found[1:] < found[:-1]).all())
    return measured, FAILS if not falls else HOLDS if monotone else CORRECTED


@claim(
    3, "Barbero et al. (2024), Figure 5d", GLASSES,
    "Commas keep the representations apart",
    "the distance does not fall", LAB3,
)  # fmt: skip
def commas_prevent_collapse() -> tuple[str, str]:
    plain, _ = _signal_and_noise(512)
    next_token, noise = _signal_and_noise(512, sequence="1,")
    short, _ = _signal_and_noise(16, sequence="1,", period=2)
    in_phase, _ = _signal_and_noise(512, sequence="1,", period=2)
    measured = (
        f"SmolLM2-135M, 512 tokens: ones {plain:.1f}, commas {next_token:.0f}, commas in phase {in_phase:.1f} "
        f"({short:.1f} at 16 tokens); bf16 noise {noise:.1f}"
    )
    return measured, HOLDS if in_phase > max(noise, 0.5 * short) else CORRECTED if in_phase > plain else FAILS


@cache
def _copying_effects(hint: bool = False, pattern: str = "ones") -> dict[str, torch.Tensor]:
    found = {}
    for place in ("first", "last"):
        zero, one = collapse.copying_margins(_small_model()[0], [10, 100], place, hint=hint, pattern=pattern)
        found[place] = torch.stack([zero, zero - one])
    return found


def _compare_effects(plain: torch.Tensor, changed: torch.Tensor, name: str) -> tuple[str, str]:
    """An effect counts as larger from a tenth of a logit on, which changes the odds by a tenth."""
    larger = (changed > plain + 0.1).tolist()
    measured = (
        f"SmolLM2-135M, effect of a last 0 (logits) at 10 and 100 digits: {plain[0]:.2f}, {plain[1]:.2f}; "
        f"{name} {changed[0]:.2f}, {changed[1]:.2f}"
    )
    return measured, HOLDS if all(larger) else CORRECTED if any(larger) else FAILS


@claim(
    3, "Barbero et al. (2024), Figure 2a", GLASSES,
    "Copying the first digit is easier than copying the last one",
    "Gemini 1.5: last digit fails from about 300, first does not", LAB3,
)  # fmt: skip
def first_digit_is_easier() -> tuple[str, str]:
    found = _copying_effects()
    first, last = found["first"][1], found["last"][1]
    solved = bool((found["first"][0] > 0).any() or (found["last"][0] > 0).any())
    measured = f"SmolLM2-135M, effect of the one 0 (logits) at 10 and 100 digits: first {first[0]:.2f}, {first[1]:.2f}; last {last[0]:.2f}, {last[1]:.2f}"
    measured += "" if solved else "; it never answers 0, so no transition is seen"
    return measured, FAILS if not bool((first > last).all()) else HOLDS if solved else CORRECTED


@claim(
    3, "Barbero et al. (2024), Figure 2b", GLASSES,
    "A hint that the digit need not be a 1 helps with the last digit",
    "Gemini 1.5: fixed by the hint", LAB3,
)  # fmt: skip
def hint_helps() -> tuple[str, str]:
    plain, hinted = _copying_effects()["last"][1], _copying_effects(hint=True)["last"][1]
    return _compare_effects(plain, hinted, "with the hint")


@claim(
    3, "Barbero et al. (2024), Figure 2c", GLASSES,
    "Alternating digits instead of ones help with the last digit",
    "Gemini 1.5: right at all lengths", LAB3,
)  # fmt: skip
def alternation_helps() -> tuple[str, str]:
    plain, mixed = _copying_effects()["last"][1], _copying_effects(pattern="alternating")["last"][1]
    return _compare_effects(plain, mixed, "alternating")
