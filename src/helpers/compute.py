"""Choose devices and floating-point formats, set seeds, and handle limited memory."""

import errno
import os
import random
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from helpers import require

FULL = (errno.ENOSPC, errno.EDQUOT)  # error numbers of the operating system for a full disk
_Result = TypeVar("Result")
# what torch says without a special error class, for cuBLAS, MPS and the CPU
_FULL_MEMORY = (
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "out of memory",
    "can't allocate memory",
)
_WITHOUT_FLOAT64 = {"mps"}  # types of devices without float64
_DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp64": torch.float64,
}


def device(name: str | torch.device | None = None) -> torch.device:
    """Return the torch device with this name, or the best available device if no name is given.

    CUDA is preferred, then Apple's MPS, then the CPU.

    Args:
        name: the name of a torch device, such as "cpu" or "cuda:0", or None.

    >>> device().type in ("cuda", "mps", "cpu"), device("cpu").type
    (True, 'cpu')
    """
    if name is not None:
        try:
            probe = torch.zeros(1, device=name)
            probe.item()  # a tensor on the device "meta" has no numbers
            return probe.device
        except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError):
            raise ValueError(
                f"device {name!r} is not available here. Give the name of another device, "
                f"or None for {device()}"
            ) from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def dtype(name: str | torch.dtype) -> torch.dtype:
    """Return the torch dtype for a short name ("fp32", "fp16", "bf16" or "fp64").

    Args:
        name: a short name, or a torch dtype, which is returned as it is.

    >>> dtype("bf16")
    torch.bfloat16
    """
    if isinstance(name, torch.dtype):
        if not name.is_floating_point:
            raise ValueError(f"dtype must be a floating-point type, not {name}")
        return name
    return _DTYPES[require.choice("the name of the dtype", name, _DTYPES)]


def exact(x: Tensor) -> Tensor:
    """Convert a tensor to float64, so that later sums and differences lose little precision.

    The tensor stays on its device if the device supports float64. Apple's MPS does not, so tensors
    on MPS move to the CPU.

    Args:
        x: a tensor of any dtype and shape.

    >>> exact(torch.ones(2)).dtype
    torch.float64
    """
    require.instance("x", x, Tensor, "a tensor")
    return (x.cpu() if x.device.type in _WITHOUT_FLOAT64 else x).double()


def seed(value: int) -> torch.Generator:
    """Seed the random generators of Python, NumPy and torch, and return a CPU generator.

    Call this once at the start of a notebook to make its random numbers repeatable. The returned
    torch generator has the same seed.

    Args:
        value: the seed, an integer from 0 to 2**32 - 1.

    Returns:
        A torch generator on the CPU that starts at this seed.

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
    """Show a progress bar while a loop runs over `items`.

    Without `items`, return a bar that the caller updates by hand. No bar is shown while a page of
    the book is built, because on the finished page it would be a widget that no longer works.

    Args:
        items: the items of the loop.
        label: the text in front of the bar.
        options: further arguments of `tqdm`.

    >>> sum(progress(range(4), "numbers"))
    6
    """
    require.text("label", label)
    if items is not None:
        require.instance("items", items, Iterable, "something to iterate over")
        if getattr(items, "ndim", 1) == 0:
            raise ValueError(f"items must be something to iterate over, not {require.brief(items)}")
    return tqdm(
        items,
        desc=label,
        leave=False,
        disable=building() or bool(os.environ.get("TQDM_DISABLE")),
        **options,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception was raised because memory ran out.

    The memory may be that of an accelerator, of Python, or of torch on the CPU.

    Args:
        error: the exception that was caught.

    >>> cublas = RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling …")
    >>> is_out_of_memory(MemoryError()), is_out_of_memory(cublas)
    (True, True)
    >>> is_out_of_memory(RuntimeError("shapes differ"))
    False
    """
    require.instance("error", error, BaseException, "an exception")
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _FULL_MEMORY)


def shrink(call: Callable[[int], _Result], chunk: int) -> _Result:
    """Call `call(chunk)`, and halve the chunk and call again whenever memory runs out.

    Use this for work that can be cut into chunks, so that the same code runs on devices with much
    memory and on devices with little. The result is that of the first call that succeeds.

    Args:
        call: a function of the size of a chunk, which does the whole work in chunks of this size.
        chunk: the size to try first.

    Raises:
        ValueError: if `chunk` is below 1.
        torch.OutOfMemoryError, MemoryError, RuntimeError: if even a chunk of one does not fit.

    >>> shrink(lambda chunk: list(torch.arange(6).split(chunk))[0].tolist(), 4)
    [0, 1, 2, 3]
    """
    require.function("call", call)
    chunk = require.integer("chunk", chunk, 1)
    while True:
        try:
            return call(chunk)
        except (RuntimeError, MemoryError) as error:
            if chunk == 1 or not is_out_of_memory(error):
                raise
        chunk //= 2
        empty_cache()


def empty_cache() -> None:
    """Release the accelerator memory that torch has reserved but that no tensor uses.

    >>> empty_cache()
    """
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def building() -> bool:
    """Return whether a page of the book is being built, where widgets are drawn frame by frame.

    A build sets the environment variable HELPERS_STILL to 1.

    >>> building() in (True, False)
    True
    """
    return os.environ.get("HELPERS_STILL") == "1"
