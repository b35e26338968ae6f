"""Compute derivatives by differences."""

from typing import Any

from torch.autograd import functional
from torch.numbers import NotInThisPage

__all__ = ["functional"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.autograd.{name}`")
