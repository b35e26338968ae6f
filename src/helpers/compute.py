"""Devices, number types, seeds, threads and memory."""

import contextlib
import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from tqdm.auto import tqdm

Result = TypeVar("Result")
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}


def device() -> torch.device:
    """The best device there is: CUDA, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def dtype(name: str | torch.dtype) -> torch.dtype:
    """The torch number type for a short name ("fp32", "fp16", "bf16", "fp64").

    Raises:
        ValueError: the name is none of these.
    """
    if isinstance(name, torch.dtype):
        return name
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name!r}")
    return DTYPES[name]


def seed(value: int) -> torch.Generator:
    """Seed Python, NumPy and torch, and return a CPU generator with the same seed.

    Raises:
        ValueError: the seed is not an integer in [0, 2**32).
    """
    if not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError(f"seed must be an integer in [0, 2**32), not {value!r}")
    random.seed(value)
    np.random.seed(value)  # noqa: NPY002  the global state is what third-party code reads
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Run a block with `count` CPU threads. One is faster than two for tiny models."""
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def progress(items: Iterable | None = None, label: str = "", **options: Any) -> tqdm:
    """A progress bar (over `items`, or to be updated by hand); none in a built page, where it would stay as a dead widget."""
    return tqdm(items, desc=label, leave=False, disable=building(), **options)


def shrink(call: Callable[[int], Result], chunk: int) -> Result:
    """`call(chunk)`, and as often as memory runs out again from the start with half the chunk.

    Raises:
        ValueError: `chunk` is below 1.
        torch.OutOfMemoryError: even a chunk of one does not fit.
    """
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, not {chunk}")
    while True:
        try:
            return call(chunk)
        except torch.OutOfMemoryError:
            if chunk == 1:
                raise
        chunk //= 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def building() -> bool:
    """Whether a page is being built (HELPERS_STILL=1): widgets are then drawn frame by frame."""
    return os.environ.get("HELPERS_STILL") == "1"
