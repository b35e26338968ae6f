"""Define the dtypes of the torch replacement, and arithmetic that follows torch.

For example, a function returns NaN where Python would raise an error.
"""

import array
import math
import struct
from collections.abc import Callable, Iterable


class NotInThisPage(AttributeError):
    """Report that code needs a part of torch that the replacement does not have.

    Args:
        name: what is missing. The message says that the replacement does not have it.
        limit: instead of a name, a sentence that says what the replacement can do.
    """

    def __init__(self, name: str = "", limit: str = ""):
        lack = f"has no {name}" if name else f"cannot do this: {limit}"
        super().__init__(f"the small stand-in for PyTorch that runs in this page {lack}")


class dtype:
    """Describe a dtype by its name, its kind and its rank within the kind.

    The kinds are 0 for bool, 1 for integers, 2 for real and 3 for complex numbers.
    """

    def __init__(self, name: str, kind: int, rank: int):
        self.name, self.kind, self.rank = name, kind, rank

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __deepcopy__(self, memo: dict) -> "dtype":
        return self

    @property
    def is_floating_point(self) -> bool:
        return self.kind == 2

    @property
    def is_complex(self) -> bool:
        return self.kind == 3


class device(str):
    """Describe the only device, which is the CPU."""

    type = "cpu"


bool_ = dtype("bool", 0, 0)
int8, int16, int32, int64 = (dtype(f"int{bits}", 1, bits) for bits in (8, 16, 32, 64))
float16, bfloat16 = dtype("float16", 2, 16), dtype("bfloat16", 2, 15)
float32, float64 = dtype("float32", 2, 32), dtype("float64", 2, 64)
complex64, complex128 = dtype("complex64", 3, 64), dtype("complex128", 3, 128)


def promoted(one: dtype, other: dtype) -> dtype:
    """Return the dtype that torch would choose to hold numbers of both dtypes."""
    if {one, other} == {float16, bfloat16}:
        return float32
    return max(one, other, key=lambda number_type: (number_type.kind, number_type.rank))


def to_half(x: float) -> float:
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def to_bfloat(x: float) -> float:
    """Round a number to 8 significant bits, ties to even, after rounding it to float32."""
    x = array.array("f", [x])[0]
    if math.isnan(x) or math.isinf(x):
        return x
    (bits,) = struct.unpack("I", struct.pack("f", x))
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]


def wrapped(x: float, bits: int) -> int:
    """Return an integer that fits in `bits` bits. A larger one wraps around, as in C."""
    half = 1 << bits - 1
    if isinstance(x, float) and not math.isfinite(x):
        return -half
    return (int(x) + half) % (2 * half) - half


def rounded(values: Iterable, to: dtype) -> list:
    """Round the values to the precision of a dtype."""
    if to == float64:
        return [float(x) for x in values]
    if to == float32:
        return array.array("f", map(float, values)).tolist()
    if to.kind == 2:
        return list(map(to_half if to == float16 else to_bfloat, map(float, values)))
    if to.kind == 1:
        return [wrapped(x, to.rank) for x in values]
    return [x != 0 for x in values] if to.kind == 0 else [complex(x) for x in values]


def divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    except OverflowError:  # integers too large for a float
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def floor_divide(a: float, b: float) -> float:
    if b == 0:
        if isinstance(a, int) and isinstance(b, int):
            raise RuntimeError("ZeroDivisionError")
        return divide(a, b)
    return a // b


def remainder(a: float, b: float) -> float:
    if b == 0:
        if isinstance(a, int) and isinstance(b, int):
            raise RuntimeError("ZeroDivisionError")
        return math.nan
    if isinstance(a, float) and math.isinf(a):
        return math.nan
    return a % b


def power(a: float, b: float) -> float:
    """Return a to the power of b.

    If both are integers of unlimited size, we compute within 64 bits.
    """
    if isinstance(a, int) and isinstance(b, int):
        return pow(a, b, 1 << 64) if b >= 0 else int(abs(a) == 1) * (a if b % 2 else 1)
    try:
        value = a**b
    except ZeroDivisionError:
        odd = b == int(b) and int(b) % 2 == 1
        return math.copysign(math.inf, a) if odd else math.inf
    except OverflowError:
        odd = a < 0 and b == int(b) and int(b) % 2 == 1
        return -math.inf if odd else math.inf
    return math.nan if isinstance(value, complex) and not isinstance(a, complex) else value


def guarded(function: Callable, over: float = math.nan, wrong: float = math.nan) -> Callable:
    """Wrap a function of a float so that it never raises an error, as in torch.

    The wrapped function returns `over` if the result is too large, and `wrong` if there is no
    result.
    """

    def safe(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return over
        except ValueError:
            return wrong

    return safe


def logarithm(function: Callable) -> Callable:

    def guarded_log(x: float) -> float:
        if x == 0:
            return -math.inf
        return math.nan if x < 0 or x != x else function(x)

    return guarded_log


def logit(x: float) -> float:
    if 0 < x < 1:
        return math.log(x / (1 - x))
    return math.copysign(math.inf, x - 0.5) if x in (0, 1) else math.nan


def log1p(x: float) -> float:
    if x == -1:
        return -math.inf
    return math.nan if x < -1 or x != x else math.log1p(x)


def entropy_term(x: float) -> float:
    if x == 0:
        return 0.0
    if x > 0:
        return -x * math.log(x)
    return -math.inf if x < 0 else math.nan


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else (lambda e: e / (1 + e))(math.exp(x))


def softplus(x: float) -> float:
    return x if x > 20 else math.log1p(math.exp(x))


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def to_integer(function: Callable) -> Callable:
    """Wrap a rounding function so that NaN and infinity do not change and zero keeps its sign."""

    def rounded_float(x: float) -> float:
        if isinstance(x, int) or not math.isfinite(x):
            return x
        return math.copysign(function(x), x)

    return rounded_float


def sign(x: float) -> float:
    return x if x != x else (x > 0) - (x < 0)


def larger(a: float, b: float) -> float:
    return math.nan if a != a or b != b else max(a, b)


def smaller(a: float, b: float) -> float:
    return math.nan if a != a or b != b else min(a, b)


UNARY = {  # name: a function of a float with a real result
    "exp": guarded(math.exp, math.inf),
    "exp2": guarded(lambda x: 2.0**x, math.inf),
    "expm1": guarded(math.expm1, math.inf),
    "log": logarithm(math.log),
    "log2": logarithm(math.log2),
    "log10": logarithm(math.log10),
    "log1p": log1p,
    "sqrt": guarded(math.sqrt),
    "rsqrt": guarded(lambda x: divide(1.0, math.sqrt(x))),
    "sin": guarded(math.sin),
    "cos": guarded(math.cos),
    "tan": guarded(math.tan),
    "sinh": guarded(math.sinh, math.inf),
    "cosh": guarded(math.cosh, math.inf),
    "tanh": math.tanh,
    "asin": guarded(math.asin),
    "acos": guarded(math.acos),
    "atan": math.atan,
    "erf": math.erf,
    "erfc": math.erfc,
    "lgamma": guarded(math.lgamma, math.inf, math.inf),
    "sigmoid": sigmoid,
    "logit": logit,
    "reciprocal": lambda x: divide(1.0, x),
    "entr": entropy_term,
    "softplus": softplus,
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
}
SAME_TYPE = {  # name: a function of a number whose result has the tensor's dtype
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "relu": lambda x: x if x != x or x > 0 else abs(x) * 0,
    "sign": sign,
    "floor": to_integer(math.floor),
    "ceil": to_integer(math.ceil),
    "trunc": to_integer(math.trunc),
    "round": to_integer(round),
    "frac": lambda x: x - math.trunc(x),
    "deg2rad": math.radians,
}
TRUTH = {  # name: a yes-or-no question about one number
    "isnan": lambda x: x != x,
    "isinf": lambda x: x in (math.inf, -math.inf),
    "isposinf": lambda x: x == math.inf,
    "isneginf": lambda x: x == -math.inf,
    "isfinite": lambda x: x == x and x not in (math.inf, -math.inf),
    "logical_not": lambda x: not x,
}
