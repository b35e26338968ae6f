"""Provide the functions of the torch replacement. Most of them are also methods of a tensor."""

import bisect
import builtins
import itertools
import math
import operator
import random as python_random
from collections.abc import Callable, Sequence
from typing import Any

from torch import numbers
from torch.numbers import NotInThisPage, dtype, float32, float64, int64, rounded
from torch.tensor import (
    Found,
    Size,
    Tensor,
    axis,
    binary,
    broadcast_shape,
    dims_of,
    finished,
    in_place,
    joined,
    lines,
    mapped,
    reduced,
    result_type,
    sizes,
    tensor,
    unary,
)

METHODS: dict[str, Callable] = {}


def method(function: Callable) -> Callable:
    """Register a function as a method of tensors, too."""
    METHODS[function.__name__.rstrip("_")] = function
    return function


# making


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return tensor(data, dtype)


def from_numpy(array: Any) -> Tensor:
    """Convert nested lists to a float64 tensor.

    The page has no NumPy, so functions that return an array elsewhere return lists here.
    """
    return tensor(array, float64)


def full(size: Sequence[int], fill_value: Any, dtype: dtype | None = None, **_: Any) -> Tensor:
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    entry = tensor(value, dtype)
    return Tensor(entry.storage * math.prod(sizes([size])), sizes([size]), entry.dtype)


def filled_with(value: float) -> tuple[Callable, Callable]:
    def make(*size: Any, dtype: dtype | None = None, **_: Any) -> Tensor:
        if builtins.any(s < 0 for s in sizes(size)):
            raise RuntimeError(
                "Trying to create tensor with negative dimension "
                f"{builtins.min(sizes(size))}: {sizes(size)}"
            )
        return full(sizes(size), value, dtype or float32)

    def like(other: Tensor, dtype: dtype | None = None, **_: Any) -> Tensor:
        return full(other.shape, value, dtype or other.dtype)

    return make, like


zeros, zeros_like = filled_with(0)
ones, ones_like = filled_with(1)
empty, empty_like = zeros, zeros_like


def full_like(other: Tensor, fill_value: float, dtype: dtype | None = None, **_: Any) -> Tensor:
    return full(other.shape, fill_value, dtype or other.dtype)


def new_zeros(self: Tensor, *size: Any, dtype: dtype | None = None) -> Tensor:
    return full(sizes(size), 0, dtype or self.dtype)


def new_ones(self: Tensor, *size: Any, dtype: dtype | None = None) -> Tensor:
    return full(sizes(size), 1, dtype or self.dtype)


def new_tensor(self: Tensor, data: Any) -> Tensor:
    return tensor(data, self.dtype)


def new_full(self: Tensor, size: Sequence[int], fill_value: float) -> Tensor:
    return full(size, fill_value, self.dtype)


Tensor.new_zeros, Tensor.new_ones, Tensor.new_tensor, Tensor.new_full = (
    new_zeros,
    new_ones,
    new_tensor,
    new_full,
)


def arange(
    start: Any, end: Any = None, step: Any = 1, dtype: dtype | None = None, **_: Any
) -> Tensor:
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    count = math.ceil((end - start) / step)
    if count < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype_ = dtype or (
        int64 if builtins.all(isinstance(x, int) for x in (start, end, step)) else float32
    )
    return Tensor(rounded([start + k * step for k in range(count)], dtype_), [count], dtype_)


def linspace(start: float, end: float, steps: int, dtype: dtype | None = None, **_: Any) -> Tensor:
    dtype_, gap = dtype or float32, (end - start) / builtins.max(steps - 1, 1)
    half = steps // 2  # torch computes the values from both ends
    values = [start + k * gap if k < half else end - (steps - 1 - k) * gap for k in range(steps)]
    return Tensor(rounded(values if steps != 1 else [start], dtype_), [steps], dtype_)


def logspace(
    start: float, end: float, steps: int, base: float = 10.0, dtype: dtype | None = None, **_: Any
) -> Tensor:
    exponents = linspace(start, end, steps, float64).flat()
    return Tensor(
        rounded([base**x for x in exponents], dtype or float32), [steps], dtype or float32
    )


def eye(n: int, m: int | None = None, dtype: dtype | None = None, **_: Any) -> Tensor:
    m, dtype_ = n if m is None else m, dtype or float32
    return Tensor(rounded([i == j for i in range(n) for j in range(m)], dtype_), [n, m], dtype_)


def complex_(real: Tensor, imag: Tensor) -> Tensor:
    return binary(
        real,
        binary(imag, 1j, lambda a, b: a * b, to=numbers.complex128),
        lambda a, b: a + b,
        to=numbers.complex128,
    )


# elementwise

for _name, _function in numbers.UNARY.items():
    exec(
        f"def {_name}(input, **_): return unary(input, _functions['{_name}'], True)",
        {"unary": unary, "_functions": numbers.UNARY},
        globals(),
    )
    METHODS[_name] = globals()[_name]
for _name, _function in (numbers.SAME_TYPE | numbers.TRUTH).items():
    _to = numbers.bool_ if _name in numbers.TRUTH else None
    exec(
        f"def {_name}(input): return unary(input, _functions['{_name}'], False, _to)",
        {"unary": unary, "_functions": numbers.SAME_TYPE | numbers.TRUTH, "_to": _to},
        globals(),
    )
    METHODS[_name] = globals()[_name]


@method
def abs(input: Tensor) -> Tensor:
    real = {numbers.complex128: float64, numbers.complex64: float32}.get(input.dtype)
    return (
        unary(
            input,
            lambda x: (
                x if x > 0 or (x == 0 and not isinstance(x, float)) else -x if x < 0 else x * x
            ),
            to=real,
        )
        if real is None
        else unary(input, lambda z: math.hypot(z.real, z.imag), to=real)
    )


@method
def square(input: Tensor) -> Tensor:
    return input * input if input.dtype.kind else input.to(int64)


@method
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    if input.dtype.kind < 2:
        return input.clone()
    scale = 10.0**decimals
    return unary(
        input,
        lambda x: (
            numbers.SAME_TYPE["round"](x * scale) / scale
            if decimals
            else numbers.SAME_TYPE["round"](x)
        ),
    )


absolute, negative = abs, globals()["neg"]
METHODS |= {"absolute": abs, "negative": negative, "fix": globals()["trunc"]}
for _name, _function, _floats, _to in (
    ("mul", lambda a, b: a * b, False, None),
    ("multiply", lambda a, b: a * b, False, None),
    ("pow", numbers.power, False, None),
    ("remainder", numbers.remainder, False, None),
    ("floor_divide", numbers.floor_divide, False, None),
    ("maximum", numbers.larger, False, None),
    ("minimum", numbers.smaller, False, None),
    ("fmax", lambda a, b: b if a != a else a if b != b else builtins.max(a, b), False, None),
    ("fmin", lambda a, b: b if a != a else a if b != b else builtins.min(a, b), False, None),
    ("atan2", math.atan2, True, None),
    ("hypot", math.hypot, True, None),
    ("copysign", math.copysign, True, None),
    ("eq", lambda a, b: a == b, False, numbers.bool_),
    ("ne", lambda a, b: a != b, False, numbers.bool_),
    ("lt", lambda a, b: a < b, False, numbers.bool_),
    ("le", lambda a, b: a <= b, False, numbers.bool_),
    ("gt", lambda a, b: a > b, False, numbers.bool_),
    ("ge", lambda a, b: a >= b, False, numbers.bool_),
    ("logical_and", lambda a, b: bool(a) and bool(b), False, numbers.bool_),
    ("logical_or", lambda a, b: bool(a) or bool(b), False, numbers.bool_),
    ("logical_xor", lambda a, b: bool(a) != bool(b), False, numbers.bool_),
    ("bitwise_and", lambda a, b: a & b, False, None),
    ("bitwise_or", lambda a, b: a | b, False, None),
    ("bitwise_xor", lambda a, b: a ^ b, False, None),
    (
        "ldexp",
        lambda a, b: numbers.guarded(lambda x: math.ldexp(x, int(b)), math.inf)(a),
        True,
        None,
    ),
    ("heaviside", lambda a, b: b if a == 0 else float(a > 0), False, None),
    ("xlogy", lambda a, b: 0.0 if a == 0 and b == b else a * numbers.UNARY["log"](b), True, None),
    (
        "logaddexp",
        lambda a, b: (
            builtins.max(a, b)
            if a == b and math.isinf(a)
            else builtins.max(a, b) + math.log1p(math.exp(-math.fabs(a - b)))
        ),
        True,
        None,
    ),
):
    exec(
        f"def {_name}(input, other): return binary(input, other, _f, floats=_floats, to=_to)",
        {"binary": binary, "_f": _function, "_floats": _floats, "_to": _to},
        globals(),
    )
    METHODS[_name] = globals()[_name]
not_equal, greater, less = globals()["ne"], globals()["gt"], globals()["lt"]
greater_equal, less_equal = globals()["ge"], globals()["le"]
arctan2 = globals()["atan2"]


def _times(x: Any, alpha: float) -> Any:
    if alpha == 1:
        return x
    return binary(x, alpha, lambda a, b: a * b) if isinstance(x, Tensor) else x * alpha


@method
def add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    return binary(input, _times(other, alpha), lambda a, b: a + b)


@method
def sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    return binary(input, _times(other, alpha), lambda a, b: a - b)


@method
def rsub(input: Any, other: Any) -> Tensor:
    return binary(other, input, lambda a, b: a - b)


@method
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode == "floor":
        return binary(input, other, numbers.floor_divide)
    if rounding_mode == "trunc":
        return binary(input, other, lambda a, b: math.trunc(a / b))
    return binary(input, other, numbers.divide, floats=True)


subtract, divide, true_divide = sub, div, div
METHODS |= {"subtract": sub, "divide": div, "true_divide": div}


@method
def addcmul(input: Tensor, one: Tensor, other: Tensor, *, value: float = 1) -> Tensor:
    return input + value * one * other


@method
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    return input + weight * (end - input)


@method
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None:
        input = binary(input, min, numbers.larger)
    return input if max is None else binary(input, max, numbers.smaller)


clip = clamp
METHODS |= {
    "clip": clamp,
    "clamp_min": lambda x, min: clamp(x, min),
    "clamp_max": lambda x, max: clamp(x, None, max),
}


@method
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    most = {
        float64: 1.7976931348623157e308,
        float32: 3.4028234663852886e38,
        numbers.float16: 65504.0,
    }.get(input.dtype, 3.3895313892515355e38)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    return unary(
        input, lambda x: nan if x != x else high if x == math.inf else low if x == -math.inf else x
    )


@method
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    if input is None:
        return condition.nonzero(as_tuple=True)
    dtype_ = result_type(input, other)
    parts = [x if isinstance(x, Tensor) else tensor(x) for x in (condition, input, other)]
    shape = broadcast_shape(*(x.shape for x in parts))
    values = [
        a if so else b for so, a, b in zip(*(x.expand(shape).flat() for x in parts), strict=True)
    ]
    return finished(Tensor(rounded(values, dtype_), shape, dtype_), condition, input, other)


Tensor.where = lambda self, condition, other: where(condition, self, other)
del METHODS["where"]


@method
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    if mask.dtype.kind:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}"
        )
    value = value.item() if isinstance(value, Tensor) else value
    shape = broadcast_shape(input.shape, mask.shape)
    values = [
        value if so else x
        for so, x in zip(mask.expand(shape).flat(), input.expand(shape).flat(), strict=True)
    ]
    return finished(Tensor(rounded(values, input.dtype), shape, input.dtype), input, mask)


def sinc(input: Tensor) -> Tensor:
    return unary(input, lambda x: 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x), True)


@method
def frexp(input: Tensor) -> tuple:
    pairs = [math.frexp(x) for x in input.flat()]
    return Tensor([a for a, _ in pairs], input.shape, input.dtype), Tensor(
        [b for _, b in pairs], input.shape, numbers.int32
    )


# reductions


def whole(x: Tensor) -> dtype:
    return int64 if x.dtype.kind < 2 else x.dtype


@method
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    axis: Any = None,
) -> Tensor:
    return reduced(
        input, dim if axis is None else axis, keepdim, builtins.sum, dtype or whole(input)
    )


def real_only(x: Tensor, name: str) -> None:
    if x.dtype.kind < 2:
        names = {int64: "Long", numbers.bool_: "Bool", numbers.int32: "Int"}
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating "
            "point or complex dtype. "
            f"Got: {names.get(x.dtype, x.dtype)}"
        )


def float_sum(values: Sequence) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@method
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    axis: Any = None,
) -> Tensor:
    if dtype is not None:
        input = input.to(dtype)
    real_only(input, "mean")

    def of(values: Sequence) -> float:
        if builtins.all(isinstance(x, float) and math.isfinite(x) for x in values) and values:
            return math.fsum(values) / len(values)
        return numbers.divide(float_sum(values), len(values))

    return reduced(input, dim if axis is None else axis, keepdim, of)


@method
def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, dtype: dtype | None = None
) -> Tensor:
    return reduced(input, dim, keepdim, math.prod, dtype or whole(input))


def spread(values: Sequence, correction: float) -> float:
    middle = float_sum(values) / len(values)
    return numbers.divide(
        math.fsum((x - middle) ** 2 for x in values)
        if middle == middle and math.isfinite(middle)
        else math.nan,
        builtins.max(len(values) - correction, 0),
    )


@method
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = correction if unbiased is None else int(unbiased)
    return reduced(input, dim, keepdim, lambda values: spread(values, correction))


@method
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    return globals()["sqrt"](var(input, dim, unbiased, keepdim, correction=correction))


@method
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, builtins.all, numbers.bool_)


@method
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, builtins.any, numbers.bool_)


@method
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    return sum(input != 0, dim)


def largest_place(values: Sequence) -> int:
    best = 0
    for k, x in enumerate(values):
        if x != x:
            return k
        if x > values[best]:
            best = k
    return best


def smallest_place(values: Sequence) -> int:
    best = 0
    for k, x in enumerate(values):
        if x != x:
            return k
        if x < values[best]:
            best = k
    return best


def extreme(place: Callable, elementwise: Callable, name: str) -> Callable:
    def find(input: Tensor, dim: Any = None, keepdim: bool = False, axis: Any = None) -> Any:
        dim = dim if axis is None else axis
        if isinstance(dim, Tensor):
            return elementwise(input, dim)
        if not input.numel():
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        if dim is None:
            return reduced(input, None, False, lambda v: v[place(v)])
        return Found(
            reduced(input, dim, keepdim, lambda v: v[place(v)]),
            reduced(input, dim, keepdim, place, int64),
        )

    return find


max = extreme(largest_place, lambda a, b: binary(a, b, numbers.larger), "max")
min = extreme(smallest_place, lambda a, b: binary(a, b, numbers.smaller), "min")
METHODS |= {"max": max, "min": min}


@method
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, largest_place, int64)


@method
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, smallest_place, int64)


@method
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, lambda v: v[largest_place(v)])


@method
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return reduced(input, dim, keepdim, lambda v: v[smallest_place(v)])


def aminmax(input: Tensor) -> tuple:
    return amin(input), amax(input)


def ordered(values: Sequence, descending: bool = False) -> list[int]:
    """Return the positions of the values in sorted order.

    The smallest value is first, NaN is last, and equal values keep their order.
    """
    return (
        sorted(range(len(values)), key=lambda k: (values[k] != values[k], values[k]), reverse=False)
        if not descending
        else sorted(
            range(len(values)),
            key=lambda k: (values[k] == values[k], -values[k] if values[k] == values[k] else 0),
        )
    )


@method
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Found:
    values = mapped(input, dim, lambda v: [v[k] for k in ordered(v, descending)])
    return Found(values, mapped(input, dim, lambda v: ordered(v, descending), int64))


@method
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    return sort(input, dim, descending).indices


@method
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Found:
    in_order = sort(input, dim, descending=largest)
    return Found(*(part.narrow(dim, 0, k) for part in in_order))


@method
def kthvalue(input: Tensor, k: int, dim: int = -1) -> Found:
    return Found(*(part.select(dim, k - 1) for part in sort(input, dim)))


@method
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    def middle(v: Sequence) -> int:
        return (
            ordered(v)[(len(v) - 1) // 2]
            if all_numbers(v)
            else next(k for k, x in enumerate(v) if x != x)
        )

    if dim is None:
        return reduced(input, None, False, lambda v: v[middle(v)])
    return Found(
        reduced(input, dim, keepdim, lambda v: v[middle(v)]),
        reduced(input, dim, keepdim, middle, int64),
    )


def all_numbers(values: Sequence) -> bool:
    return not [x for x in values if x != x]


@method
def quantile(input: Tensor, q: float, dim: int | None = None, keepdim: bool = False) -> Tensor:
    def of(values: Sequence) -> float:
        values, at = sorted(values), float(q) * (len(values) - 1)
        low, high = values[math.floor(at)], values[math.ceil(at)]
        return low + (high - low) * (at - math.floor(at))

    return reduced(input, dim, keepdim, of)


@method
def unique(input: Tensor, sorted: bool = True, return_counts: bool = False) -> Any:
    values = sort(input.flatten()).values.flat()
    first_places = [k for k, x in enumerate(values) if k == 0 or x != values[k - 1]]
    values_once = Tensor([values[k] for k in first_places], [len(first_places)], input.dtype)
    counts = [b - a for a, b in itertools.pairwise([*first_places, len(values)])]
    return (values_once, Tensor(counts, [len(counts)], int64)) if return_counts else values_once


@method
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    values = input.flat()
    weight_of = weights.flat() if weights is not None else [1] * len(values)
    counts = [0] * (1 + values[largest_place(values)] if values else 0)
    counts += [0] * (minlength - len(counts))
    for value, weight in zip(values, weight_of, strict=True):
        counts[value] += weight
    dtype_ = int64 if weights is None else float64
    return Tensor(rounded(counts, dtype_), [len(counts)], dtype_)


def searchsorted(sorted_sequence: Tensor, values: Any, right: bool = False) -> Tensor:
    find = bisect.bisect_right if right else bisect.bisect_left
    return unary(
        values if isinstance(values, Tensor) else tensor(values),
        lambda x: find(sorted_sequence.flat(), x),
        to=int64,
    )


# along an axis


def accumulated(function: Callable) -> Callable:
    def along(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
        return mapped(
            input, dim, lambda v: list(itertools.accumulate(v, function)), dtype or whole(input)
        )

    return along


cumsum, cumprod = accumulated(lambda a, b: a + b), accumulated(lambda a, b: a * b)
METHODS |= {"cumsum": cumsum, "cumprod": cumprod}


def running(better: Callable) -> Callable:
    def along(input: Tensor, dim: int) -> Found:
        def places(v: Sequence) -> list[int]:
            return list(
                itertools.accumulate(range(len(v)), lambda a, b: b if better(v[b], v[a]) else a)
            )

        return Found(
            mapped(input, dim, lambda v: [v[k] for k in places(v)]),
            mapped(input, dim, places, int64),
        )

    return along


cummax, cummin = running(lambda a, b: a >= b or a != a), running(lambda a, b: a <= b or a != a)
METHODS |= {"cummax": cummax, "cummin": cummin}


@method
def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    k = axis(input, dim)
    for _ in range(n):
        size = input.shape[k]
        input = input.narrow(k, 1, size - 1) - input.narrow(k, 0, size - 1)
    return input


def soft(values: Sequence) -> list:
    top = values[largest_place(values)] if values else 0.0
    if not math.isfinite(top):
        if top == -math.inf or top != top:
            return [math.nan] * len(values)
        return [math.nan if x == math.inf else 0.0 for x in values] if top == math.inf else values
    terms = [math.exp(x - top) for x in values]
    total = math.fsum(terms)
    return [x / total for x in terms]


def needs_real(input: Tensor, name: str) -> None:
    if input.dtype.kind < 2:
        kind = {int64: "Long", numbers.bool_: "Bool", numbers.int32: "Int"}.get(
            input.dtype, input.dtype
        )
        raise RuntimeError(f"\"{name}\" not implemented for '{kind}'")


@method
def softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    input = input if dtype is None else input.to(dtype)
    needs_real(input, "softmax_lastdim_kernel_impl")
    return mapped(input, dim, soft)


@method
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    def of(values: Sequence) -> float:
        top = values[largest_place(values)]
        return (
            top
            if not math.isfinite(top)
            else top + math.log(math.fsum(math.exp(x - top) for x in values))
        )

    return reduced(input if input.dtype.kind > 1 else input.to(float32), dim, keepdim, of)


@method
def log_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    input = input if dtype is None else input.to(dtype)
    needs_real(input, "log_softmax_lastdim_kernel_impl")
    return input - logsumexp(input, dim, keepdim=True)


@method
def flip(input: Tensor, *dims: Any) -> Tensor:
    for dim in sizes(dims):
        input = mapped(input, dim, lambda v: v[::-1])
    return input


def fliplr(input: Tensor) -> Tensor:
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    return flip(input, 0)


@method
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    if dims is None:
        return roll(input.flatten(), shifts, 0).reshape(input.shape)
    pairs = [(shifts, dims)] if isinstance(shifts, int) else zip(shifts, dims, strict=True)
    for shift, dim in pairs:
        input = mapped(input, dim, lambda v, s=shift: v[-s % len(v) :] + v[: -s % len(v)])
    return input


# matrices


def dot_product(one: Sequence, other: Sequence) -> float:
    return builtins.sum(map(operator.mul, one, other))


dot_product = getattr(math, "sumprod", dot_product)  # Python 3.12 and later


@method
def matmul(input: Tensor, other: Tensor) -> Tensor:
    a, b = input, other
    if not isinstance(b, Tensor) or not isinstance(a, Tensor):
        raise TypeError(
            f"matmul(): argument 'other' (position 2) must be Tensor, not {type(b).__name__}"
        )
    if a.dtype != b.dtype:
        names = {
            int64: "long int",
            float32: "float",
            float64: "double",
            numbers.bool_: "bool",
            numbers.float16: "c10::Half",
            numbers.bfloat16: "c10::BFloat16",
        }
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{names.get(a.dtype)} != {names.get(b.dtype)}"
        )
    if not a.ndim or not b.ndim:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D"
        )
    if a.ndim == 1 and b.ndim == 1:
        if len(a) != len(b):
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{len(a)}] and src [{len(b)}] to "
                f"have the same number of elements, but got {len(a)} and {len(b)} elements "
                "respectively"
            )
        return finished(
            Tensor(rounded([dot_product(a.flat(), b.flat())], a.dtype), [], a.dtype), a, b
        )
    one, two = a.ndim == 1, b.ndim == 1
    a, b = a.unsqueeze(0) if one else a, b.unsqueeze(1) if two else b
    (n, k), (k2, m) = a.shape[-2:], b.shape[-2:]
    if k != k2:
        if a.ndim == 2 and b.ndim == 2 and two:
            raise RuntimeError(f"size mismatch, got input ({n}), mat ({n}x{k}), vec ({k2})")
        if a.ndim == 2 and b.ndim == 2:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {k2}x{m})")
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {k}] but got: [{b.shape[0]}, {k2}]."
        )
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    left, right = a.expand([*batch, n, k]).flat(), b.transpose(-1, -2).expand([*batch, m, k]).flat()
    values = []
    for at in range(math.prod(batch)):
        columns = [right[(at * m + j) * k : (at * m + j + 1) * k] for j in range(m)]
        for i in range(n):
            row = left[(at * n + i) * k : (at * n + i + 1) * k]
            values += [dot_product(row, column) for column in columns]
    shape = [*batch, *([] if one else [n]), *([] if two else [m])]
    return finished(Tensor(rounded(values, a.dtype), shape, a.dtype), input, other)


Tensor.__matmul__ = lambda self, other: (
    matmul(self, other) if isinstance(other, Tensor) else NotImplemented
)
mm, bmm, mv = matmul, matmul, matmul
METHODS |= {"mm": matmul, "bmm": matmul, "mv": matmul}


@method
def dot(input: Tensor, other: Tensor) -> Tensor:
    if input.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {other.ndim}D tensors")
    return matmul(input, other)


inner = dot
METHODS["inner"] = dot


@method
def outer(input: Tensor, other: Tensor) -> Tensor:
    return input.unsqueeze(1) * other.unsqueeze(0)


@method
def kron(input: Tensor, other: Tensor) -> Tensor:
    n, m = input.shape
    p, q = other.shape
    return (input[:, None, :, None] * other[None, :, None, :]).reshape(n * p, m * q)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Multiply operands entry by entry, and sum over the letters that the result does not have."""
    operands = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    )
    left, arrow, right = equation.replace(" ", "").partition("->")
    if "..." in equation:
        raise NotInThisPage(limit="`einsum` does not support an ellipsis (“...”)")
    terms = left.split(",")
    letters = "".join(terms)
    if not arrow:
        right = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    sizes_of = {
        x: size
        for term, operand in zip(terms, operands, strict=True)
        for x, size in zip(term, operand.shape, strict=True)
    }
    order = right + "".join(dict.fromkeys(x for x in letters if x not in right))
    product = None
    for term, operand in zip(terms, operands, strict=True):
        steps = [0] * len(order)
        for x, step in zip(term, operand.steps, strict=True):
            steps[order.index(x)] += step
        spread_out = operand.view_of([sizes_of[x] for x in order], steps)
        product = spread_out if product is None else product * spread_out
    summed = list(range(len(right), len(order)))
    return sum(product, summed) if summed else product.clone()


def triangle(keep: Callable) -> Callable:
    def cut(input: Tensor, diagonal: int = 0) -> Tensor:
        n, m = input.shape[-2:]
        inside = [keep(i, j, diagonal) for i in range(n) for j in range(m)] * math.prod(
            input.shape[:-2]
        )
        zero = rounded([0], input.dtype)[0]
        return finished(
            Tensor(
                [x if so else zero for x, so in zip(input.flat(), inside, strict=True)],
                input.shape,
                input.dtype,
            ),
            input,
        )

    return cut


tril, triu = triangle(lambda i, j, k: j - i <= k), triangle(lambda i, j, k: j - i >= k)
METHODS |= {"tril": tril, "triu": triu}


def indices(keep: Callable) -> Callable:
    def find(row: int, col: int, offset: int = 0) -> Tensor:
        places = [(i, j) for i in range(row) for j in range(col) if keep(i, j, offset)]
        return Tensor([i for i, _ in places] + [j for _, j in places], [2, len(places)], int64)

    return find


tril_indices, triu_indices = (
    indices(lambda i, j, k: j - i <= k),
    indices(lambda i, j, k: j - i >= k),
)


@method
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    return input.diagonal(diagonal).clone() if input.ndim == 2 else diag_embed(input, diagonal)


@method
def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    size = input.shape[-1] + math.fabs(offset).__trunc__()
    matrix = full([*input.shape[:-1], size, size], 0, input.dtype)
    matrix.diagonal(offset, -2, -1).put(input.flat())
    return matrix


@method
def trace(input: Tensor) -> Tensor:
    return sum(input.diagonal())


def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    input = input.to(float32) if input.dtype.kind < 2 else input
    rows = input if input.ndim > 1 else input.unsqueeze(0)
    apart = rows - mean(rows, 1, keepdim=True)
    covariance = matmul(apart, apart.T) / (rows.shape[1] - correction)
    return covariance if input.ndim > 1 else covariance.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    covariance = cov(input)
    deviations = globals()["sqrt"](covariance.diagonal())
    return covariance / outer(deviations, deviations)


METHODS |= {"cov": cov, "corrcoef": corrcoef}


def cdist(one: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    return norm(one.unsqueeze(-2) - other.unsqueeze(-3), p, -1)


@method
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    if input.dtype.kind < 2:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {'Long' if input.dtype == int64 else input.dtype}"
        )
    p = 2.0 if p in ("fro", None) else float(p)

    def length(values: Sequence) -> float:
        values = (
            [math.fabs(x) for x in values]
            if input.dtype.kind < 3
            else [math.hypot(x.real, x.imag) for x in values]
        )
        if p in (math.inf, -math.inf):
            return (largest if p > 0 else smallest)(values)
        if p == 0:
            return float(len([x for x in values if x]))
        if p == 1:
            return float_sum(values)
        if p == 2:
            return math.sqrt(float_sum([x * x for x in values]))
        return float_sum([x**p for x in values]) ** (1 / p)

    return reduced(
        input, dim, keepdim, length, float64 if input.dtype == numbers.complex128 else None
    )


def largest(values: Sequence) -> float:
    return values[largest_place(values)]


def smallest(values: Sequence) -> float:
    return values[smallest_place(values)]


@method
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    return norm(input - other, p)


# joining and comparing


def cat(tensors: Sequence, dim: int = 0, axis: int | None = None) -> Tensor:
    return joined(tensors, dim if axis is None else axis)


concat = concatenate = cat


def stack(tensors: Sequence, dim: int = 0) -> Tensor:
    parts = list(tensors)
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    for k, x in enumerate(parts):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {k} in argument 0, but got {type(x).__name__}"
            )
        if x.shape != parts[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(parts[0].shape)} "
                f"at entry 0 and {list(x.shape)} at entry {k}"
            )
    return joined([x.unsqueeze(dim) for x in parts], dim)


def hstack(tensors: Sequence) -> Tensor:
    return joined(tensors, 0 if next(iter(tensors)).ndim == 1 else 1)


def vstack(tensors: Sequence) -> Tensor:
    return joined([x if x.ndim > 1 else x.unsqueeze(0) for x in tensors], 0)


def column_stack(tensors: Sequence) -> Tensor:
    return joined([x if x.ndim > 1 else x.unsqueeze(1) for x in tensors], 1)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    shape = [len(x) for x in tensors]
    grids = tuple(
        x.reshape([len(x) if j == k else 1 for j in range(len(shape))]).expand(shape)
        for k, x in enumerate(tensors)
    )
    return tuple(x.transpose(0, 1) for x in grids) if indexing == "xy" else grids


def cartesian_prod(*tensors: Tensor) -> Tensor:
    return stack([x.flatten() for x in meshgrid(*tensors)], 1)


def combinations(input: Tensor, r: int = 2) -> Tensor:
    return stack([stack(chosen) for chosen in itertools.combinations(list(input), r)])


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    return input.expand(shape)


def broadcast_tensors(*tensors: Tensor) -> tuple:
    shape = broadcast_shape(*(x.shape for x in tensors))
    return tuple(x.expand(shape) for x in tensors)


def close(a: float, b: float, rtol: float, atol: float, equal_nan: bool) -> bool:
    if a != a or b != b:
        return equal_nan and a != a and b != b
    if a == b:
        return True
    return math.isfinite(a) and math.isfinite(b) and math.fabs(a - b) <= atol + rtol * math.fabs(b)


@method
def isclose(
    input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    if isinstance(other, Tensor) and input.dtype != other.dtype:
        raise RuntimeError(f"{nice(input)} did not match {nice(other)}")
    return binary(input, other, lambda a, b: close(a, b, rtol, atol, equal_nan), to=numbers.bool_)


def nice(x: Tensor) -> str:
    return {float32: "Float", float64: "Double", int64: "Long", numbers.bool_: "Bool"}.get(
        x.dtype, str(x.dtype)
    )


@method
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(all(isclose(input, other, rtol, atol, equal_nan)))


@method
def equal(input: Tensor, other: Tensor) -> bool:
    return input.shape == other.shape and input.flat() == other.flat()


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def numel(input: Tensor) -> int:
    return input.numel()


def vmap(function: Callable, in_dims: Any = 0, out_dims: int = 0) -> Callable:
    if in_dims != 0 or out_dims != 0:
        raise NotInThisPage(limit="`vmap` works only along the first axis")
    return lambda *given: stack([function(*arguments) for arguments in zip(*given, strict=True)])


# complex numbers


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return binary(
        abs,
        angle,
        lambda r, t: complex(r * math.cos(t), r * math.sin(t)),
        to=numbers.complex128 if abs.dtype == float64 else numbers.complex64,
    )


def view_as_complex(input: Tensor) -> Tensor:
    values = input.flat()
    dtype_ = numbers.complex128 if input.dtype == float64 else numbers.complex64
    return Tensor(
        [complex(a, b) for a, b in zip(values[::2], values[1::2], strict=True)],
        input.shape[:-1],
        dtype_,
    )


def view_as_real(input: Tensor) -> Tensor:
    dtype_ = float64 if input.dtype == numbers.complex128 else float32
    return Tensor([x for z in input.flat() for x in (z.real, z.imag)], [*input.shape, 2], dtype_)


def angle(input: Tensor) -> Tensor:
    return unary(
        input,
        lambda z: math.atan2(z.imag, z.real),
        to=float64 if input.dtype == numbers.complex128 else float32,
    )


METHODS |= {"angle": angle, "conj": lambda x: unary(x, lambda z: z.conjugate())}


# chance


class Generator:
    """Generate random numbers. They differ from those that torch would generate."""

    def __init__(self, device: Any = None):
        self.random = python_random.Random(0)

    def manual_seed(self, seed: int) -> "Generator":
        self.random.seed(seed)
        return self


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    return default_generator.manual_seed(seed)


def drawn(draw: Callable) -> Callable:
    def make(
        *size: Any, generator: Generator | None = None, dtype: dtype | None = None, **_: Any
    ) -> Tensor:
        shape, source = sizes(size), (generator or default_generator).random
        return Tensor(
            rounded([draw(source) for _ in range(math.prod(shape))], dtype or float32),
            shape,
            dtype or float32,
        )

    return make


randn, rand = drawn(lambda source: source.gauss(0, 1)), drawn(lambda source: source.random())


def randn_like(input: Tensor, dtype: dtype | None = None) -> Tensor:
    return randn(input.shape, dtype=dtype or input.dtype)


def rand_like(input: Tensor, dtype: dtype | None = None) -> Tensor:
    return rand(input.shape, dtype=dtype or input.dtype)


def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    **_: Any,
) -> Tensor:
    if size is None:
        low, high, size = 0, low, high
    source = (generator or default_generator).random
    return Tensor(
        [source.randrange(low, high) for _ in range(math.prod(sizes([size])))],
        sizes([size]),
        dtype or int64,
    )


def randperm(n: int, generator: Generator | None = None, **_: Any) -> Tensor:
    order = list(range(n))
    (generator or default_generator).random.shuffle(order)
    return Tensor(order, [n], int64)


# methods of tensors, in place too

for _name, _function in METHODS.items():
    if not hasattr(Tensor, _name) or _name in ("round",):
        setattr(Tensor, _name, _function)
IN_PLACE = [
    *numbers.UNARY, *numbers.SAME_TYPE, "add", "sub", "mul", "div", "pow", "clamp", "masked_fill",
    "tril", "triu", "cumsum", "nan_to_num", "remainder",
]  # fmt: skip
for _name in IN_PLACE:
    setattr(
        Tensor,
        f"{_name}_",
        lambda self, *a, _function=METHODS[_name], **k: in_place(self, _function(self, *a, **k)),
    )


def _conversion(to: dtype) -> Callable:
    return lambda self: self.to(to)


for _name, _to in (
    ("double", float64), ("float", float32), ("half", numbers.float16), ("bfloat16",
    numbers.bfloat16), ("long", int64), ("int", numbers.int32), ("short", numbers.int16), ("bool",
    numbers.bool_), ("cdouble", numbers.complex128),
):  # fmt: skip
    setattr(Tensor, _name, _conversion(_to))


def _missing(self: Tensor, name: str) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`Tensor.{name}`")


Tensor.__getattr__ = _missing
SHAPES = (
    "flatten", "unflatten", "permute", "transpose", "movedim", "unsqueeze", "squeeze", "reshape",
    "unbind", "select", "narrow", "split", "chunk", "diagonal", "index_select", "gather", "nonzero",
    "masked_select", "repeat_interleave", "tile", "ravel", "t", "swapaxes", "clone", "is_complex",
    "is_floating_point",
)  # fmt: skip
for _name in SHAPES:
    globals()[_name] = getattr(Tensor, _name)
_ = (Size, dims_of, lines)  # names that other modules import from here
