"""Save and restore the state of the random generator."""

import contextlib
from collections.abc import Iterator

from torch.operations import default_generator, manual_seed

__all__ = ["manual_seed"]


@contextlib.contextmanager
def fork_rng() -> Iterator[None]:
    """Restore the state of the random generator at the end of the block."""
    state = default_generator.random.getstate()
    try:
        yield
    finally:
        default_generator.random.setstate(state)
