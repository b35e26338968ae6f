"""The state of chance."""

import contextlib
from collections.abc import Iterator

from torch.operations import default_generator, manual_seed

__all__ = ["manual_seed"]


@contextlib.contextmanager
def fork_rng() -> Iterator[None]:
    """Put the state back at the end."""
    state = default_generator.random.getstate()
    try:
        yield
    finally:
        default_generator.random.setstate(state)
