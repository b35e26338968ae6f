"""Compute the numbers of the drawing `barcodes`.

They are the embedded model's last hidden states for n and n + 1 tokens, written in few characters.
`python tools/barcodes.py` writes `numbers/barcodes.json`, which takes two or three minutes on one
CPU core.
"""

import json
import sys
import time
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import models, probe
from helpers.models import LanguageModel

ROOT = Path(__file__).resolve().parents[1]

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
TOKENS = ("ones", "digits")
TYPES = ("fp32", "bf16")
WINDOWS = (0, 32)  # with 0, every token attends to all earlier tokens
SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"


@torch.inference_mode()
def last_states(model: LanguageModel, ids: Int[Tensor, " n"], window: int) -> Float[Tensor, "2 d"]:
    """Compute the final hidden states of the last two tokens under a sliding window.

    Each token sees `window` tokens, including itself, or all tokens if `window` is 0.
    """
    n = len(ids)
    visible = torch.ones(n, n, dtype=torch.bool).tril()
    visible = visible.triu(1 - window) if window else visible
    kind = model.model.dtype
    mask = torch.zeros(n, n, dtype=kind).masked_fill(~visible, torch.finfo(kind).min)
    out = model.model.model(ids[None], attention_mask=mask[None, None], use_cache=False)
    return out.last_hidden_state[0, -2:]


def sequence(model: LanguageModel, tokens: str, n: int, seed: int = 0) -> Int[Tensor, " n+2"]:
    """Return a first token, n tokens, and the last of these n tokens again."""
    digits = torch.cat([probe.encode(model, str(digit)) for digit in range(10)])
    drawn = torch.randint(0, 10, (max(LENGTHS),), generator=torch.Generator().manual_seed(seed))
    body = digits[torch.ones(n, dtype=torch.long) if tokens == "ones" else drawn[:n]]
    return torch.cat([probe.first_token(model), body, body[-1:]])


def shades(state: Float[Tensor, " d"], largest: float) -> str:
    """Encode each number of a hidden state as one character.

    There are 64 steps from -largest to largest, and numbers beyond are cut off.
    """
    steps = ((state.double() / largest).clamp(-1, 1) + 1) * 31.5
    return "".join(SHADES[int(step)] for step in steps.round())


def main(out: Path = ROOT / "src/course/drawing/numbers/barcodes.json") -> None:
    """Compute the numbers of the drawing and write them to a file."""
    start, pairs = time.monotonic(), {}
    for kind in TYPES:
        model = models.load(dtype=kind)
        for tokens in TOKENS:
            for window in WINDOWS:
                for n in LENGTHS:
                    key = f"{tokens} {kind} {window} {n}"
                    pairs[key] = last_states(model, sequence(model, tokens, n), window)
                print(f"{key}: {time.monotonic() - start:.0f} s", flush=True)
    largest = torch.cat(list(pairs.values())).double().abs().quantile(0.98).item()
    barcodes = {}
    for key, (first, second) in pairs.items():
        equal = "".join("1" if same else "0" for same in (first == second).tolist())
        barcodes[key] = {
            "n": shades(first, largest),
            "more": shades(second, largest),
            "equal": f"{int(equal, 2):0{len(equal) // 4}x}",
            "distance": float(f"{(first.double() - second.double()).abs().sum():.4g}"),
        }
    about = (
        f"{models.DEFAULT} (4-bit file, unpacked); python tools/barcodes.py, "
        f"{time.strftime('%Y-%m-%d')}, one CPU "
        f"core, {time.monotonic() - start:.0f} s, Python {sys.version.split()[0]}, torch "
        f"{torch.__version__}"
    )
    out.write_text(
        json.dumps(
            {"about": about, "lengths": LENGTHS, "largest": round(largest, 4), "pairs": barcodes}
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
