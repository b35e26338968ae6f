"""Replace torch by pure Python code, for exercises that run in a web page.

The module has only the names that the course's exercises need. It computes with Python lists and
rounds each result to its dtype as torch does. It has no modules, no devices and no NumPy, and it
computes derivatives only in `torch.autograd.functional.jacobian`, by differences. If code uses a
name that is missing here, it gets the error `NotInThisPage`, whose message says so.
tests/test_page_torch.py compares each function with that of torch.
"""

import math
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from torch import numbers, operations
from torch.numbers import (
    NotInThisPage,
    bfloat16,
    bool_,
    complex64,
    complex128,
    device,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
)
from torch.tensor import Size, Tensor, promoted, tensor, watchers

inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
half, double, long, cdouble = float16, float64, int64, complex128
strided = "strided"

for _name, _value in vars(operations).items():
    if callable(_value) and not _name.startswith("_") and _name not in ("Found", "NotInThisPage"):
        globals().setdefault(_name, _value)
globals().update(
    bool=bool_, float=float32, int=int32, short=int16, complex=operations.complex_,
    promote_types=promoted, scalar_tensor=tensor, asarray=operations.as_tensor,
)  # fmt: skip


class _Quiet(nullcontext):
    """Do nothing, in place of `torch.no_grad`, because there are no gradients to switch off."""

    def __call__(self, function: Any) -> Any:
        return function


def no_grad() -> _Quiet:
    return _Quiet()


inference_mode = enable_grad = no_grad
OutOfMemoryError = MemoryError


def set_num_threads(count: int) -> None:
    """Ignore the number of threads, because there is only one."""


def get_default_dtype() -> dtype:
    return float32


class finfo:
    """Hold the limits of a dtype."""

    def __init__(self, of: dtype = float32):
        bits, most, least = {
            "float64": (52, 1.7976931348623157e308, 2.2250738585072014e-308),
            "float32": (23, 3.4028234663852886e38, 1.1754943508222875e-38),
            "float16": (10, 65504.0, 6.103515625e-05),
            "bfloat16": (7, 3.3895313892515355e38, 1.1754943508222875e-38),
        }[of.name]
        self.eps, self.max, self.min, self.tiny, self.bits, self.dtype = (
            2.0**-bits,
            most,
            -most,
            least,
            of.rank,
            of.name,
        )
        self.smallest_normal = least


class _Still:
    """Turn off all watchers of results while the block runs."""

    def __enter__(self) -> None:
        self.kept = watchers[:]
        watchers.clear()

    def __exit__(self, *_: Any) -> None:
        watchers[:] = self.kept


_C = SimpleNamespace(
    DisableTorchFunction=_Still, _functorch=SimpleNamespace(is_batchedtensor=lambda _: False)
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.{name}`")


from torch import autograd, func, linalg, nn, overrides, random, special  # noqa: E402

erf, erfc = operations.erf, operations.erfc
__all__ = [
    "Size", "Tensor", "autograd", "bfloat16", "complex64", "device", "func", "int8", "linalg", "nn",
    "numbers", "overrides", "random", "special", "tensor",
]  # fmt: skip
