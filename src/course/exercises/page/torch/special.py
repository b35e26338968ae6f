"""Provide those functions of `torch.special` that the exercises need."""

from typing import Any

from torch import operations
from torch.numbers import NotInThisPage
from torch.operations import (
    entr,
    erf,
    erfc,
    expm1,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    sinc,
    softmax,
    xlogy,
)

__all__ = [
    "entr",
    "erf",
    "erfc",
    "expit",
    "expm1",
    "gammaln",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "sinc",
    "softmax",
    "xlogy",
]
expit, gammaln = operations.sigmoid, operations.lgamma


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotInThisPage(f"`torch.special.{name}`")
