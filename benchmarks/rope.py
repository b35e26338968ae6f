"""The smallest base for the contexts of data/rope_bases.csv: `rope.smallest_base` and the direct
evaluation, in one run.

python benchmarks/rope.py --threads 2                   every length to 1M, direct too (about ten
minutes) python benchmarks/rope.py --threads 2 --longest 16384   a short run

"direct" computes every sum below the length at every base tried, vectorised, 2^13 distances at a
time. "with exit" is the same, and leaves a base at the first chunk with a negative sum. Times are
of the processor, so that a busy machine does not count. All three must give the same verdict at
every base.
"""

import argparse
import time

import torch

from helpers import rope
from helpers.data import table

WIDTH = 128
CHUNK = 1 << 13
FAILING = 200  # bases of a grid, a millionth apart, below the one that the table gives


def passes(base: float, length: int, early: bool) -> bool:
    """Whether no sum below the length is negative, from every cosine."""
    theta, good = rope.frequencies(WIDTH, base), True
    for start in range(0, length, CHUNK):
        m = torch.arange(start, min(start + CHUNK, length), dtype=torch.float64)
        good &= bool(((m[:, None] * theta).cos().sum(-1) >= 0).all())
        if early and not good:
            return False
    return good


def direct(bases: list[float], length: int, early: bool) -> tuple[list[bool], float]:
    """The verdict at each base, and the processor seconds it took."""
    start = time.process_time()
    return [passes(base, length, early) for base in bases], time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--longest", type=int, default=1 << 20)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"width {WIDTH}, {options.threads} threads, torch {torch.__version__}")
    print(
        "  length    step  bases       here   seconds  with exit     direct   ratios  same verdicts"
    )
    rope.smallest_base(256, WIDTH, 1, 2)  # warm up
    total = [0.0, 0.0, 0.0]
    for row in table("rope_bases").itertuples():
        if row.context > options.longest:
            break
        step, least = row.base / 1e6, row.base * (1 - FAILING / 1e6)
        start = time.process_time()
        found = rope.smallest_base(row.context, WIDTH, step, least)
        here = time.process_time() - start
        bases = [least + k * step for k in range(round((found - least) / step) + 1)]
        quick, some = direct(bases, row.context, True)
        full, every = direct(bases, row.context, False)
        same = full == quick == [base == found for base in bases]
        total = [a + b for a, b in zip(total, (here, some, every), strict=True)]
        ratios = f"{some / here:4.0f} {every / here:4.0f}"
        times = f"{here:9.2f} {some:10.1f} {every:10.1f}"
        print(
            f"{row.context:8} {step:7.2g} {len(bases):6} {found:10.4g} {times}  {ratios}  {same}",
            flush=True,
        )
    print(
        f"in all {total[0]:.1f} s here, {total[1]:.0f} s with exit, {total[2]:.0f} s direct: "
        f"{total[2] / total[0]:.0f}x"
    )


if __name__ == "__main__":
    main()
