"""Differential attention, forward and backward: time, peak memory and agreement, in one run.

python benchmarks/differential.py --length 2048 --threads 1

"operator": `differential._attend`, the direct formula (both maps in full) and the values cut in two
halves, on the same queries, keys and values. "layer": `DifferentialAttention`, the same with the
direct formula inside, and transformers' DiffLlama attention with the same weights, on the maps in
full (eager) and on the fused kernel (sdpa). Each runs in a process of its own; memory is the peak
that the operating system tells, less what was in use before the call. Times are the best of some
runs, of the processor, so that a busy machine does not count.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import (
    DiffLlamaAttention,
    DiffLlamaRotaryEmbedding,
)

from helpers import differential

PARTS = {
    "operator": ("attend", "direct formula", "values in halves"),
    "layer": ("DifferentialAttention", "direct formula", "DiffLlama, eager", "DiffLlama, sdpa"),
}
LAYER = 3


def direct(q1: Tensor, k1: Tensor, q2: Tensor, k2: Tensor, v: Tensor, lam: Tensor) -> Tensor:
    """Eq. 1 as anyone would write it first."""
    n, scale = q1.shape[-2], 1 / math.sqrt(q1.shape[-1])
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
    first, second = (
        (scale * q @ k.transpose(-1, -2)).masked_fill(hidden, -math.inf).softmax(-1)
        for q, k in ((q1, k1), (q2, k2))
    )
    return (first - lam[..., None] * second) @ v


def halves(q1: Tensor, k1: Tensor, q2: Tensor, k2: Tensor, v: Tensor, lam: Tensor) -> Tensor:
    """The fused kernel four times, each map twice: what the paper's code does with kernels of
    one width.
    """
    calls = [
        scaled_dot_product_attention(q1, k1, half, is_causal=True)
        - lam[..., None] * scaled_dot_product_attention(q2, k2, half, is_causal=True)
        for half in v.chunk(2, -1)
    ]
    return torch.cat(calls, -1)


def operator(name: str, n: int, heads: int, d: int) -> tuple[Callable[[], Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, heads, n, width) for width in (d, d, d, d, 2 * d)]
    leaves = [torch.randn(*shape, generator=generator).requires_grad_() for shape in shapes]
    leaves.append(torch.tensor(0.6, requires_grad=True))
    call = {"attend": differential._attend, "direct formula": direct, "values in halves": halves}[
        name
    ]
    return lambda: call(*leaves), leaves


def layer(name: str, n: int, heads: int, d: int) -> tuple[Callable[[], Tensor], list[Tensor]]:
    torch.manual_seed(0)
    ours, width = differential.DifferentialAttention(2 * heads * d, heads, LAYER), 2 * heads * d
    x = torch.randn(1, n, width, generator=torch.Generator().manual_seed(1)).requires_grad_()
    if not name.startswith("DiffLlama"):
        if name == "direct formula":
            differential._attend = direct
        return lambda: ours(x), [x, *ours.parameters()]
    config = DiffLlamaConfig(
        hidden_size=width,
        num_attention_heads=2 * heads,
        num_key_value_heads=2 * heads,
        head_dim=d,
        rms_norm_eps=differential.EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        attn_implementation=name.split(", ")[1],
    )
    theirs = DiffLlamaAttention(config, layer_idx=LAYER - 1)
    order = torch.cat(
        [torch.arange(0, 2 * heads, 2), torch.arange(1, 2 * heads, 2)]
    )  # the first maps come first there
    with torch.no_grad():
        for own, other in (("queries", "q_proj"), ("keys", "k_proj"), ("values", "v_proj")):
            moved = getattr(ours, own).weight.view(2 * heads, d, width)[order]
            getattr(theirs, other).weight.copy_(moved.reshape(width, width))
        theirs.o_proj.weight.copy_(ours.out.weight)
        for each, vector in zip(("q1", "k1", "q2", "k2"), ours.lambdas.flatten(0, 1), strict=True):
            getattr(theirs, f"lambda_{each}").copy_(vector)
    places = DiffLlamaRotaryEmbedding(config)(x, torch.arange(n)[None])
    # without a mask its fused kernel is told that attention is causal, as in the model
    bias = (
        torch.full((n, n), -math.inf).triu(1)[None, None]
        if config._attn_implementation == "eager"
        else None
    )
    return lambda: theirs(x, places, bias)[0], [x, *theirs.parameters()]


def measure(part: str, name: str, n: int, heads: int, d: int, repeats: int) -> dict:
    """Seconds, extra bytes at the peak, and a sample of the output and of the gradients."""
    call, leaves = {"operator": operator, "layer": layer}[part](name, n, heads, d)
    small, _ = {"operator": operator, "layer": layer}[part](name, 16, heads, d)
    small().sum().backward()  # warm up
    before = psutil.Process().memory_info().rss
    forward, backward, weight = [], [], None
    for _ in range(repeats):
        for leaf in leaves:
            leaf.grad = None
        start = time.process_time()
        out = call()
        forward.append(time.process_time() - start)
        if weight is None:
            weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
        middle = time.process_time()
        (out * weight).sum().backward()
        backward.append(time.process_time() - middle)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return {
        "forward": min(forward),
        "backward": min(backward),
        "total": min(a + b for a, b in zip(forward, backward, strict=True)),
        "megabytes": peak / 1e6,
        "out": out.detach().flatten()[:: max(1, out.numel() // 20_000)].tolist(),
        "grad": leaves[0].grad.flatten()[:: max(1, leaves[0].numel() // 20_000)].tolist(),
    }


def apart(part: str, name: str, options: argparse.Namespace) -> dict:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", part, name]
    for key in ("length", "heads", "width", "repeats", "threads"):
        command += [f"--{key}", str(getattr(options, key))]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=4, help="differential heads, each of two maps")
    parser.add_argument(
        "--width", type=int, default=64, help="of a query; values are twice as wide"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", help="write the table here, as CSV")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.measure:
        part, name = options.measure
        print(
            json.dumps(
                measure(part, name, options.length, options.heads, options.width, options.repeats)
            )
        )
        return
    print(
        f"n = {options.length}, {options.heads} heads, d = {options.width}, float32, "
        f"{options.threads} threads, torch {torch.__version__}"
    )
    print(
        "                                forward  backward   total   peak MB   times slower   "
        "times memory   largest error"
    )
    rows = []
    for part, names in PARTS.items():
        found = {name: apart(part, name, options) for name in names}
        ours = found[names[0]]
        for name, each in found.items():
            errors = [
                max(abs(a - b) for a, b in zip(ours[key], each[key], strict=True))
                / max(map(abs, ours[key]))
                for key in ("out", "grad")
            ]
            rows.append(
                f'{part},"{name}",{each["forward"]:.3f},{each["backward"]:.3f},'
                f"{each['megabytes']:.0f},{errors[0]:.1e}"
            )
            print(
                f"{part:9} {name:21} {each['forward']:7.2f} s {each['backward']:7.2f} s "
                f"{each['total']:7.2f} s "
                f"{each['megabytes']:7.0f} {each['total'] / ours['total']:12.2f} "
                f"{each['megabytes'] / ours['megabytes']:14.2f}   out {errors[0]:.0e}, gradient "
                f"{errors[1]:.0e}",
                flush=True,
            )
    if options.out:
        head = [
            f"# Differential attention, forward and backward, float32: n = {options.length}, "
            f"{options.heads} heads, d = {options.width}",
            f"# made by benchmarks/differential.py --threads {options.threads}, torch "
            f"{torch.__version__}; processor seconds, best of {options.repeats}",
            "# megabytes: peak less what was in use before; error: largest, of the output, "
            "relative, against the first of its part",
            "part,name,forward,backward,megabytes,error",
        ]
        Path(options.out).write_text("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    main()
