"""A look at every result, as torch's modes have it."""

from collections.abc import Sequence
from typing import Any

from torch.tensor import watchers


class TorchFunctionMode:
    """While it lasts `__torch_function__` sees each operation; here the result is there already."""

    def __enter__(self) -> "TorchFunctionMode":
        self.busy = False
        watchers.append(self.see)
        return self

    def __exit__(self, *_: Any) -> None:
        watchers.remove(self.see)

    def see(self, result: Any, given: Sequence) -> None:
        if self.busy:
            return
        self.busy = True
        try:
            self.__torch_function__(lambda *_, **__: result, (), given)
        finally:
            self.busy = False
