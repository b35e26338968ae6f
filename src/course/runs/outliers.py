"""Measure outliers, and run a model whose activations are rounded to few bits.

We round the inputs of linear layers, with one scale per tensor.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn


def outlier(x: Tensor) -> float:
    """Return the largest absolute value of a tensor divided by the median absolute value."""
    sizes = x.float().abs().flatten()
    return float(sizes.max() / sizes.median().clamp(min=1e-12))


def rounded(x: Tensor, bits: int) -> Tensor:
    """Round a tensor to `bits` bits, with one scale set by its largest absolute value."""
    step = x.abs().max() / (2 ** (bits - 1) - 1)
    return (x / step).round() * step if step > 0 else x


@contextmanager
def few_bits(layers: Iterable[nn.Module], bits: int, spare_first: bool = False) -> Iterator[None]:
    """Round the inputs of these layers to `bits` bits while the block runs (see `rounded`).

    Args:
        spare_first: leave the first token of each sequence exact, and set the scale without it.
    """

    def change(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
        x = inputs[0]
        if spare_first and x.ndim == 3:
            return (torch.cat([x[:, :1], rounded(x[:, 1:], bits)], 1),)
        return (rounded(x, bits),)

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_pre_hook(change))
        yield
