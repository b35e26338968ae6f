"""What chapter 3 measures in random decoders and in a pretrained one, beside the public mathematics of `collapse`.

`python -m helpers.chapter3.measures` writes how well two number types tell n from n + 1, for lengths up to 2,048.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers import models, probe
from helpers.models import LanguageModel
from helpers.transformer import Decoder

BANDS = [2, 10, 30, 100, 200, 400, 800, 1200, 1600, 2047]  # lengths, from one to the next
SEQUENCES = ("varied tokens", "first token, then equal ones")

# Random decoders ----------------------------------------------------------------------------------------


def random_distance(
    tokens: Sequence[int], lengths: Sequence[int], step: int = 1, seeds: int = 5
) -> Float[Tensor, " lengths"]:
    """L1 distance of the last states of tokens[: n + 1] and tokens[: n + 1 + step]: 3 random layers without positions."""
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        decoder = Decoder(3, encoding="NoPE").double()
        with torch.no_grad():
            states = decoder.states(torch.tensor([tokens]))[0]
        runs.append(torch.stack([(states[n + step] - states[n]).abs().sum() for n in lengths]))
    return torch.stack(runs).mean(0)


def window_distance(
    sequence: str, window: int | None, lengths: Sequence[int], layers: int = 3, seeds: int = 5
) -> Float[Tensor, " lengths"]:
    """L1 distance of the last states with n tokens after the first one and with the last repeated, in random decoders.

    Args:
        sequence: one of `SEQUENCES`: nine random tokens, or one token n times, after a first token of its own.
        window: each layer sees this many tokens; None sees all.

    Raises:
        ValueError: the sequence is none of these.
    """
    if sequence not in SEQUENCES:
        raise ValueError(f"sequence must be one of {', '.join(SEQUENCES)}, not {sequence!r}")
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        decoder = Decoder(10, layers=layers, encoding="NoPE", window=window).double()
        body = torch.randint(1, 10, (max(lengths),)) if sequence == SEQUENCES[0] else torch.ones(max(lengths)).long()
        ids = torch.cat([torch.zeros(1).long(), body])
        with torch.no_grad():
            states = [decoder.states(torch.cat([ids[: n + 1], ids[n : n + 1]])[None])[0, -2:] for n in lengths]
        runs.append(torch.stack([(after - before).abs().sum() for before, after in states]))
    return torch.stack(runs).mean(0)


def influence(window: int | None, n: int = 64, layers: int = 4, seeds: int = 5) -> Float[Tensor, " n"]:
    """Gradient norm of the last state with respect to each embedding, by distance from the last token.

    Random decoders; the mean over seeds.
    """
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        ids, decoder = torch.randint(0, 10, (1, n)), Decoder(10, layers=layers, window=window).double()
        start = h = decoder.embedding(ids).detach().requires_grad_()
        for block in decoder.blocks:
            h = block(h)
        direction = torch.randn(h.shape[-1], dtype=torch.float64)
        (gradient,) = torch.autograd.grad(decoder.norm(h)[0, -1] @ direction, start)
        runs.append(gradient[0].norm(dim=-1).flip(0))
    return torch.stack(runs).mean(0)


# Can a number type tell n from n + 1? -------------------------------------------------------------------


class Resolution(NamedTuple):
    """How well rounded representations tell neighbouring prefixes apart; row n is about the prefixes of n and n + 1 tokens after the first."""

    signal: Float[Tensor, " n"]  # L1 distance of the two in the finer type
    floor: Float[Tensor, " n"]  # L1 distance of one prefix between the two types
    error: Float[Tensor, " n"]  # L1 distance of the two *differences*
    cosine: Float[Tensor, " n"]  # of the two differences
    control: Float[Tensor, " n"]  # cosine with the difference at another length, which must be about 0
    nearest: Bool[Tensor, " n"]  # among all prefixes in the finer type, the same one is the nearest (L1)


def resolution(exact: Float[Tensor, "n d"], rounded: Float[Tensor, "n d"], seed: int = 0) -> Resolution:
    """Compare the representations of all prefixes in two number types."""
    exact, rounded = exact.double().cpu(), rounded.double().cpu()
    true, seen = exact.diff(dim=0), rounded.diff(dim=0)
    other = true[torch.randperm(len(true), generator=torch.Generator().manual_seed(seed))]
    nearest = torch.cdist(rounded, exact, p=1).argmin(1) == torch.arange(len(exact))
    cosine = torch.nn.functional.cosine_similarity
    return Resolution(
        signal=true.abs().sum(-1),
        floor=(rounded - exact).abs().sum(-1)[:-1],
        error=(seen - true).abs().sum(-1),
        cosine=cosine(seen, true, dim=-1),
        control=cosine(seen, other, dim=-1),
        nearest=nearest[:-1],
    )


def in_bands(found: Resolution, bands: Sequence[int] = BANDS) -> pd.DataFrame:
    """Medians of a resolution by length (ones after the first token), and the shares of right answers."""
    rows = []
    for low, high in itertools.pairwise(bands):
        if high > len(found.signal):
            break
        part = Resolution(*(field[low:high] for field in found))
        rows.append(
            {
                "low": low,
                "high": high,
                "signal": float(part.signal.median()),
                "floor": float(part.floor.median()),
                "error": float(part.error.median()),
                "cosine": float(part.cosine.median()),
                "control": float(part.control.median()),
                "right_direction": float((part.cosine > 0).double().mean()),
                "nearest": float(part.nearest.double().mean()),
            }
        )
    return pd.DataFrame(rows)


def rounded_weights(model: LanguageModel, dtype: torch.dtype = torch.bfloat16) -> LanguageModel:
    """The model with its weights rounded to a type, in place; it still computes as before."""
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.copy_(weight.to(dtype).to(weight.dtype))
    return model


def levels(model: LanguageModel, block: int = 32) -> int:
    """The most different values in a block of 32 weights of a middle layer: 16 or fewer tell of a 4-bit file."""
    matrices = [w for name, w in model.model.named_parameters() if w.ndim == 2 and "embed" not in name]
    blocks = matrices[len(matrices) // 2].detach().float().reshape(-1)
    blocks = blocks[: len(blocks) // block * block].view(-1, block).sort(dim=1).values
    return int((blocks.diff(dim=1) != 0).sum(1).max()) + 1


# Sequences ---------------------------------------------------------------------------------------------


def prefix_distance(states: Float[Tensor, "n d"], lengths: Sequence[int], step: int = 1) -> Float[Tensor, " lengths"]:
    """L1 distance of the prefixes of n and of n + step tokens after the first one."""
    return torch.stack([(states[n + step] - states[n]).abs().sum() for n in lengths]).double().cpu()


def random_digits(n: int, ones: Sequence[int], seed: int = 0) -> str:
    """Digits drawn uniformly, with a 1 at the given places (counted from 1): Figure 5b ends its sequences on a 1."""
    digits = torch.randint(0, 10, (n,), generator=torch.Generator().manual_seed(seed)).tolist()
    return "".join("1" if place in ones else str(digit) for place, digit in enumerate(digits, start=1))


def merged_and_single(model: LanguageModel, letters: int = 256) -> dict[str, float]:
    """The distance between n and n + 1 equal letters as the tokenizer cuts them, with a whole token more, and unmerged."""
    first = probe.first_token(model)

    def states(ids: Tensor) -> Tensor:
        return probe.last_representations(model, torch.cat([first, ids])).double()

    def text(letters: int) -> Tensor:
        return states(probe.encode(model, "a" * letters))[-1]

    cut, alone = probe.encode(model, "a" * letters), probe.encode(model, "a")
    size = letters // len(cut)
    base, apart = states(cut)[-1], states(alone.repeat(letters + 1))
    return {
        "letters a token": letters / len(cut),
        "one letter more": float((text(letters + 1) - base).abs().sum()),
        "one token more": float((text(letters + size) - base).abs().sum()),
        "one letter alone more": float((apart[-1] - apart[-2]).abs().sum()),
    }


def right(margins: dict, place: str) -> Bool[Tensor, " lengths"]:
    """Where a model answers both ways: 0 where a 0 stands at the place asked for, and 1 where a 1 stands there."""
    zero, one = margins[place, place]
    return (zero > 0) & (one < 0)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    start, states = time.monotonic(), {}
    for kind in ("fp32", "bf16", "fp16"):
        model = models.load(dtype=kind)
        ids = torch.cat([probe.first_token(model), probe.encode(model, "1" * given.tokens)])
        states[kind] = probe.last_representations(model, ids)
    write(states, given.out, model.name, time.monotonic() - start)


def write(states: dict[str, Tensor], out: Path, name: str, seconds: float) -> None:
    """The table by type and band, with the command that makes it."""
    tables = [in_bands(resolution(states["fp32"], states[k])).assign(type=k) for k in ("bf16", "fp16")]
    lines = (
        f"# {name} (4-bit file, unpacked), ones after the first token; medians and shares for low <= n < high",
        f"# command: python -m helpers.chapter3.measures --tokens {len(states['fp32']) - 1} --out data/{out.name}",
        f"#   {time.strftime('%Y-%m-%d')}, 2 CPU cores, {seconds:.0f} s, Python {sys.version.split()[0]}, "
        f"torch {torch.__version__}",
    )
    out.write_text("\n".join(lines) + "\n" + pd.concat(tables).to_csv(index=False, float_format="%.4f"))


if __name__ == "__main__":
    _main()
