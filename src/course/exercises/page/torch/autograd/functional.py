"""Compute Jacobians by central differences with two step sizes.

For smooth functions in float64 the result is exact to about ten digits.
"""

from collections.abc import Callable
from typing import Any

from torch import operations
from torch.numbers import NotInThisPage, float64
from torch.tensor import Tensor

STEP = 2e-3


def jacobian(
    func: Callable, inputs: Any, create_graph: bool = False, vectorize: bool = False, **_: Any
) -> Tensor:
    """Return the derivatives of all entries of a function's result by all entries of its input.

    The first axes belong to the result, and the last axes belong to the input.
    """
    if not isinstance(inputs, Tensor):
        raise NotInThisPage(
            limit="`torch.autograd.functional.jacobian` differentiates only with respect to a "
            "single tensor"
        )
    x = inputs.to(float64)
    columns = []
    for k in range(x.numel()):
        one, two = (slope(func, x, k, step) for step in (STEP, STEP / 2))
        columns.append((4 * two - one) / 3)
    shape = columns[0].shape
    derivatives = operations.stack([column.flatten() for column in columns], -1)
    return derivatives.reshape(*shape, *x.shape).to(inputs.dtype)


def slope(func: Callable, x: Tensor, k: int, step: float) -> Tensor:
    ends = []
    for sign in (1, -1):
        moved = x.clone()
        moved.storage[k] += sign * step
        ends.append(func(moved).to(float64))
    return (ends[0] - ends[1]) / (2 * step)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.autograd.functional.{name}`")
