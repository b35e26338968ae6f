"""Machines that are not here: an accelerator without float64 (Apple's MPS), and one whose memory runs out.

with WithoutFloat64(model.model):
    probe.head_scores(model, ids)  # raises where a tensor of the model becomes float64 before it is on the CPU
"""

import weakref

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_TO_CPU = (Tensor.cpu, Tensor.to, Tensor.tolist, Tensor.item, Tensor.numpy)


class WithoutFloat64(TorchFunctionMode):
    """Inside, what is computed from a network's weights counts as lying on a device that has no float64.

    `x.cpu()` and `x.to("cpu")` bring a tensor back. What the device cannot do raises the TypeError that MPS raises.
    """

    def __init__(self, *networks: torch.nn.Module):
        super().__init__()
        self.paused = False
        self.ids: dict[int, weakref.ref] = {}
        for network in networks:
            for tensor in (*network.parameters(), *network.buffers()):
                self._put(tensor)

    def _put(self, tensor: Tensor) -> None:
        number = id(tensor)
        self.ids[number] = weakref.ref(tensor, lambda _: self.ids.pop(number, None))

    def _is_there(self, value: object) -> bool:
        found = self.ids.get(id(value))
        return found is not None and found() is value

    def _tensors(self, value: object):
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            for each in value:
                yield from self._tensors(each)
        elif isinstance(value, dict):
            yield from self._tensors(list(value.values()))

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if self.paused:
            return function(*arguments, **named)
        device = any(self._is_there(each) for each in self._tensors((list(arguments), named)))
        result = function(*arguments, **named)
        if not device:
            return result
        if function in _TO_CPU and _brings_back(function, arguments[1:], named):
            return result.view_as(result) if isinstance(result, Tensor) else result
        for each in self._tensors(result):
            if each.dtype in (torch.float64, torch.complex128):
                raise TypeError(
                    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
                    "Please use float32 instead."
                )
            self._put(each)
        return result


def _brings_back(function, arguments: tuple, named: dict) -> bool:
    """Whether a call moves a tensor to the CPU."""
    if function is not Tensor.to:
        return True
    asked = [*arguments, named.get("device")]
    return any(
        str(each) == "cpu" or each == torch.device("cpu")
        for each in asked
        if isinstance(each, str | torch.device)
    )


class LittleMemory(TorchFunctionMode):
    """Inside, a tensor of more than `most` bytes cannot be made: the second machine."""

    def __init__(self, most: int):
        super().__init__()
        self.most, self.refused = most, 0

    def __torch_function__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        if isinstance(result, Tensor) and result.numel() * result.element_size() > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError(
                f"out of memory: tried to allocate {result.numel()} numbers"
            )
        return result


def load_without_float64(patch=setattr) -> WithoutFloat64:
    """Let every model that `models.load` returns lie on a device without float64, until this process ends."""
    from helpers import compute, models

    mode, load = WithoutFloat64(), models.load

    def load_there(*arguments, **named):
        mode.paused = True  # weights are read on the CPU first
        try:
            found = load(*arguments, **named)
        finally:
            mode.paused = False
        for tensor in (*found.model.parameters(), *found.model.buffers()):
            mode._put(tensor)
        return found

    patch(compute, "_WITHOUT_FLOAT64", {"mps", "cpu"})
    patch(models, "load", load_there)
    return mode
