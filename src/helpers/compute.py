"""Devices, number types, seeds, memory and disks."""

import errno
import os
import random
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from tqdm.auto import tqdm

from helpers import require

FULL = (errno.ENOSPC, errno.EDQUOT)  # what an operating system says of a disk that is full
_Result = TypeVar("Result")
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}


def device(name: str | torch.device | None = None) -> torch.device:
    """The device of this name; without one the best there is: CUDA, else Apple's MPS, else the CPU.

    >>> device().type in ("cuda", "mps", "cpu"), device("cpu").type
    (True, 'cpu')
    """
    if name is not None:
        try:
            found = torch.zeros(1, device=name)
            found.item()  # the device "meta" holds no numbers
            return found.device
        except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError):
            raise ValueError(
                f"device {name!r} is not available here: give another name, or none to get {device()}"
            ) from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def dtype(name: str | torch.dtype) -> torch.dtype:
    """The torch number type for a short name ("fp32", "fp16", "bf16", "fp64").

    >>> dtype("bf16")
    torch.bfloat16
    """
    if isinstance(name, torch.dtype):
        return name
    return _DTYPES[require.choice("the name of the dtype", name, _DTYPES)]


def seed(value: int) -> torch.Generator:
    """Seed Python, NumPy and torch, and return a CPU generator with the same seed.

    >>> first = torch.rand(2, generator=seed(5))
    >>> torch.equal(first, torch.rand(2, generator=seed(5)))
    True
    """
    value = require.seed(value, "the value of the seed")
    random.seed(value)
    np.random.seed(value)  # noqa: NPY002  the global state is what third-party code reads
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value)


def progress(items: Iterable | None = None, label: str = "", **options: Any) -> tqdm:
    """A progress bar (over `items`, or to be updated by hand); none in a built page, where it would stay as a dead widget.

    >>> sum(progress(range(4), "numbers"))
    6
    """
    require.text("label", label)
    if items is not None:
        require.instance("items", items, Iterable, "something to iterate over")
        if getattr(items, "ndim", 1) == 0:
            raise ValueError(f"items must be something to iterate over, not {require.brief(items)}")
    return tqdm(items, desc=label, leave=False, disable=building() or bool(os.environ.get("TQDM_DISABLE")), **options)


def shrink(call: Callable[[int], _Result], chunk: int) -> _Result:
    """`call(chunk)`, and as often as memory runs out again from the start with half the chunk.

    Raises:
        ValueError: `chunk` is below 1.
        torch.OutOfMemoryError: even a chunk of one does not fit.

    >>> shrink(lambda chunk: list(torch.arange(6).split(chunk))[0].tolist(), 4)
    [0, 1, 2, 3]
    """
    require.function("call", call)
    chunk = require.integer("chunk", chunk, 1)
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
    """Whether a page is being built (HELPERS_STILL=1): widgets are then drawn frame by frame.

    >>> building() in (True, False)
    True
    """
    return os.environ.get("HELPERS_STILL") == "1"
