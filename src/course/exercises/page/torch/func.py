"""Provide those functions of `torch.func` that the exercises need."""

from collections.abc import Callable
from typing import Any

from torch.autograd.functional import jacobian
from torch.numbers import NotInThisPage
from torch.operations import vmap

__all__ = ["jacfwd", "jacrev", "vmap"]


def jacrev(func: Callable, argnums: int = 0) -> Callable:
    if argnums != 0:
        raise NotInThisPage(
            limit="`torch.func.jacrev` and `torch.func.jacfwd` differentiate only with respect to "
            "the first argument"
        )
    return lambda x, *more: jacobian(lambda y: func(y, *more), x)


jacfwd = jacrev


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.func.{name}`")
