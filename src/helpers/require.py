"""Check the arguments of public functions, and explain a wrong argument in one sentence.

Each check returns the argument in the form that the function needs, or raises a ValueError whose
message says which argument is wrong, what is allowed and what was given. A user who passes a wrong
argument therefore gets this message, and not NaN or an error from deep inside the code.
"""

import functools
import inspect
import math
import operator
import types
from collections.abc import Callable, Collection
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np
import torch
from torch import Tensor

_Result = TypeVar("Result")
_Function = TypeVar("Function", bound=Callable)


def brief(value: Any) -> str:
    """Describe a value in a few words, on one line, for an error message.

    >>> brief("x"), brief(torch.zeros(2, 3)), brief(list(range(100)))
    ("'x'", 'a tensor of shape (2, 3)', '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1 …')
    """
    if isinstance(value, Tensor) and value.ndim:
        return f"a tensor of shape {tuple(value.shape)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:40]} …"


def integer(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """Return `value` if it is an integer from `least` to `most` that fits in 64 bits.

    True, 2.0 and an array with one element are rejected, because they usually come from a mistake.

    >>> integer("n", 3, least=1)
    3
    >>> integer("n", 0, least=1)
    Traceback (most recent call last):
    ValueError: n must be an integer of at least 1, not 0
    """
    try:
        number = None if isinstance(value, bool | Tensor | np.ndarray) else operator.index(value)
    except TypeError:
        number = None
    huge = number is not None and not -(2**63) <= number < 2**63
    if (
        number is None
        or huge
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        limit = " below 2**63" if huge and most is None else ""
        raise ValueError(
            f"{name} must be an integer{_range(least, most)}{limit}, not {brief(value)}"
        )
    return number


def number(
    name: str,
    value: object,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
) -> float:
    """Return `value` as a float if it is a finite number within the given limits.

    The values `least` and `most` are allowed themselves, whereas the number must be strictly larger
    than `above`. Python, NumPy and torch numbers are accepted.

    >>> number("scale", 2, above=0)
    2.0
    >>> number("scale", math.nan, above=0)
    Traceback (most recent call last):
    ValueError: scale must be a finite number above 0, not nan
    """
    try:
        plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(
            value, bool
        )
        tensor = isinstance(value, Tensor) and value.ndim == 0 and value.dtype != torch.bool
        plain_number = float(value) if plain or tensor else math.nan
    except (TypeError, ValueError, OverflowError, RuntimeError):
        plain_number = math.nan
    low, high = least is not None and plain_number < least, most is not None and plain_number > most
    if (
        not math.isfinite(plain_number)
        or low
        or high
        or (above is not None and plain_number <= above)
    ):
        bounds = _range(least, most) if above is None else f" above {above}"
        raise ValueError(f"{name} must be a finite number{bounds}, not {brief(value)}")
    return plain_number


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    return (
        f" of at least {least}"
        if least is not None
        else f" of at most {most}"
        if most is not None
        else ""
    )


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False. NumPy's booleans are accepted, too.

    >>> flag("loops", "no")
    Traceback (most recent call last):
    ValueError: loops must be True or False, not 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {brief(value)}")
    return bool(value)


def integers(
    name: str, values: object, least: int | None = None, most: int | None = None
) -> list[int]:
    """Return `values` as a list if they are one or more integers from `least` to `most`.

    >>> integers("lengths", range(1, 4), least=1)
    [1, 2, 3]
    >>> integers("lengths", [4, 0], least=1)
    Traceback (most recent call last):
    ValueError: lengths must hold one or more integers of at least 1, not [4, 0]
    """
    try:
        numbers = (
            []
            if isinstance(values, str | bytes)
            else [integer(name, value, least, most) for value in values]
        )
    except (TypeError, ValueError):
        numbers = []
    if not numbers:
        raise ValueError(
            f"{name} must hold one or more integers{_range(least, most)}, not {brief(values)}"
        )
    return numbers


def seed(value: object, name: str = "seed") -> int:
    """Return `value` if it is a seed that Python, NumPy and torch all accept.

    >>> seed(-1)
    Traceback (most recent call last):
    ValueError: seed must be an integer in [0, 2**32), not -1
    """
    try:
        return integer(name, value, 0, 2**32 - 1)
    except ValueError:
        raise ValueError(f"{name} must be an integer in [0, 2**32), not {brief(value)}") from None


def choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of the names in `choices`.

    >>> choice("encoding", "rope", ("NoPE", "RoPE"))
    Traceback (most recent call last):
    ValueError: encoding must be one of NoPE, RoPE, not 'rope'
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(str, choices))}, not {brief(value)}"
        )
    return value


def text(name: str, value: object, empty: bool = True) -> str:
    """Return `value` if it is a string.

    With `empty=False`, the empty string raises an error, too.

    >>> text("sequence", "", empty=False)
    Traceback (most recent call last):
    ValueError: sequence must be a string that is not empty, not ''
    """
    if not isinstance(value, str) or not (empty or value):
        raise ValueError(
            f"{name} must be a string{'' if empty else ' that is not empty'}, not {brief(value)}"
        )
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(
            f"{name} must be text that UTF-8 can encode, but {brief(value)} contains "
            "half of a surrogate pair"
        )
    return value


def instance(
    name: str, value: object, kind: type | tuple[type, ...] | types.UnionType, what: str
) -> Any:
    """Return `value` if it has the type `kind`.

    Otherwise the error message contains `what`, a description of the expected value.

    >>> instance("model", "gpt2", dict, "what models.load returns")
    Traceback (most recent call last):
    ValueError: model must be what models.load returns, not 'gpt2'
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {what}, not {brief(value)}")
    return value


def function(name: str, value: object) -> Callable:
    """Return `value` if it is callable.

    >>> function("kernel", 3)
    Traceback (most recent call last):
    ValueError: kernel must be a function, not 3
    """
    if not callable(value):
        raise ValueError(f"{name} must be a function, not {brief(value)}")
    return value


def tensor(
    name: str, value: object, axes: str, kind: str = "floating-point", **sizes: int
) -> Tensor:
    """Return `value` if it is a tensor of finite numbers with the given axes, none of them empty.

    Args:
        axes: names and sizes of the axes, written as in a jaxtyping annotation. A "..." at the
            start stands for any number of axes.
        kind: "floating-point", "whole" (an integer type) or "real" (either).
        sizes: the known sizes of named axes.

    >>> tensor("x", torch.ones(2, 3), "n d", d=3).shape
    torch.Size([2, 3])
    >>> tensor("x", torch.ones(2, 3), "n d", d=4)
    Traceback (most recent call last):
    ValueError: x must be a tensor of shape (n, d = 4), not a tensor of shape (2, 3)
    >>> tensor("x", torch.tensor([1.0, math.inf]), "... n")
    Traceback (most recent call last):
    ValueError: x must hold finite numbers, but 1 of 2 are not
    """
    names = axes.split()
    known = [axis for axis in names if axis != "..."]
    sizes |= {axis: int(axis) for axis in known if axis.isdigit()}
    what = ", ".join(
        f"{axis} = {sizes[axis]}" if axis in sizes and not axis.isdigit() else axis
        for axis in names
    )
    shape = f"({what},)" if len(names) == 1 else f"({what})"
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a tensor of shape {shape}, not {brief(value)}")
    dense(name, value)
    fits = value.ndim >= len(known) if "..." in names else value.ndim == len(known)
    last = tuple(value.shape)[value.ndim - len(known) :] if fits else ()
    wrong = any(size != sizes.get(axis, size) for axis, size in zip(known, last, strict=fits))
    if not fits or wrong or value.numel() == 0:
        raise ValueError(
            f"{name} must be a tensor of shape {shape}, not a tensor of shape {tuple(value.shape)}"
        )
    floating, whole = (
        value.is_floating_point(),
        not (value.is_complex() or value.dtype == torch.bool),
    )
    if not {"floating-point": floating, "whole": whole and not floating, "real": whole}[kind]:
        raise ValueError(f"{name} must hold {kind} numbers, not {value.dtype}")
    if readable(value) and (bad := int((~torch.isfinite(value)).sum())):
        raise ValueError(f"{name} must hold finite numbers, but {bad} of {value.numel()} are not")
    return value


def checked(function: _Function) -> _Function:
    """Decorate a function so that its arguments are checked against its annotations.

    The function's body then contains only its formula. A `Literal` annotation lists the choices,
    and a jaxtyping annotation names the axes of a tensor. An axis name that two arguments share
    must have the same size in both, and "..." must stand for the same axes in all arguments.

    >>> from jaxtyping import Float
    >>> @checked
    ... def dot(
    ...     x: Float[Tensor, " n"], y: Float[Tensor, " n"], kind: Literal["sum", "mean"] = "sum"
    ... ) -> Tensor:
    ...     return getattr(x * y, kind)()
    >>> dot(torch.ones(3), torch.ones(3)).item()
    3.0
    >>> dot(torch.ones(3), torch.ones(4))
    Traceback (most recent call last):
    ValueError: y must be a tensor of shape (n = 3,), not a tensor of shape (4,)
    >>> dot(torch.ones(3), torch.ones(3), "max")
    Traceback (most recent call last):
    ValueError: kind must be one of sum, mean, not 'max'
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        sizes: dict[str, int] = {}
        leading: dict[str, tuple[int, ...]] = {}
        for name, value in signature.bind(*positional, **named).arguments.items():
            _fits(name, value, signature.parameters[name].annotation, sizes, leading)
        return function(*positional, **named)

    return call


def _fits(
    name: str,
    value: object,
    annotation: Any,
    sizes: dict[str, int],
    leading: dict[str, tuple[int, ...]],
) -> None:
    """Check one argument against its annotation.

    `sizes` contains the sizes of the named axes in earlier arguments, and `leading` contains the
    sizes of the axes for which "..." stood there. The check adds the axes of this argument to both
    dictionaries.
    """
    if get_origin(annotation) is Literal:
        choice(name, value, get_args(annotation))
    axes = getattr(annotation, "dim_str", None)
    if not isinstance(axes, str):
        return
    kind = "real" if any("int" in dtype for dtype in annotation.dtypes) else "floating-point"
    names = [axis for axis in axes.split() if axis != "..."]
    known = {axis: sizes[axis] for axis in names if axis in sizes}
    shape = tuple(tensor(name, value, axes, kind, **known).shape)
    front, last = shape[: len(shape) - len(names)], shape[len(shape) - len(names) :]
    if "..." in axes and front != leading.setdefault("...", front):
        first = (*leading["..."], *last)
        raise ValueError(f"{name} must be a tensor of shape {first}, not a tensor of shape {shape}")
    sizes |= dict(zip(names, last, strict=True))


def dense(name: str, value: Tensor) -> Tensor:
    """Return `value` if it is a dense tensor that has values.

    Sparse and quantised tensors raise an error, and so do tensors on the device "meta", which have
    no values.

    >>> dense("x", torch.ones(2).to_sparse())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: x must be a dense tensor, not a tensor of layout torch...
    """
    if value.layout != torch.strided:
        raise ValueError(
            f"{name} must be a dense tensor, not a tensor of layout {value.layout}. "
            "x.to_dense() converts it"
        )
    if value.is_meta or value.is_quantized:
        kind = 'on the device "meta"' if value.is_meta else "quantised"
        raise ValueError(f"{name} must hold numbers, but this tensor is {kind}")
    return value


def readable(value: Tensor) -> bool:
    """Return whether code may read the values of a tensor.

    Inside `torch.vmap` this is not possible, because many calls run at once and the tensor has no
    single value.

    >>> readable(torch.zeros(2))
    True
    >>> torch.vmap(lambda row: row * readable(row))(torch.ones(2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return not torch._C._functorch.is_batchedtensor(value)


def finite(name: str, result: _Result) -> _Result:
    """Return a computed number or tensor if it is finite, and otherwise raise an error.

    The error message says that the argument `name` caused the problem.

    >>> finite("layers", torch.tensor(2.0) ** 2000)
    Traceback (most recent call last):
    ValueError: layers must be less extreme, because the result is not a finite number
    """
    if readable(torch.as_tensor(result)) and not bool(
        torch.isfinite(torch.as_tensor(result)).all()
    ):
        raise ValueError(f"{name} must be less extreme, because the result is not a finite number")
    return result
