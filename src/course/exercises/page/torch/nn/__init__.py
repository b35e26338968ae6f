"""Provide the functions of `torch.nn`, but no modules."""

from typing import Any

from torch.nn import functional
from torch.numbers import NotInThisPage

__all__ = ["functional"]


class Module:
    """Replace `torch.nn.Module` in code that only mentions this class."""

    def __init__(self, *_: Any, **__: Any):
        raise NotInThisPage("modules (`torch.nn.Module`)")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.nn.{name}`")
