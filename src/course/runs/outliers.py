"""Outliers, and activations in few bits: what enters a model's linear layers, rounded with one
scale a tensor.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn


def outlier(x: Tensor) -> float:
    """Divide the largest size by the median size."""
    sizes = x.float().abs().flatten()
    return float(sizes.max() / sizes.median().clamp(min=1e-12))


def rounded(x: Tensor, bits: int) -> Tensor:
    """Round to as many bits, with one scale for the whole tensor, set by its largest size."""
    step = x.abs().max() / (2 ** (bits - 1) - 1)
    return (x / step).round() * step if step > 0 else x


@contextmanager
def few_bits(layers: Iterable[nn.Module], bits: int, spare_first: bool = False) -> Iterator[None]:
    """Let all that enters these layers be `rounded`, or all but the first token of each sequence,
    which then sets no scale.
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
