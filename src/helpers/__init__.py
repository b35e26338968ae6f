"""The code behind the course: `from helpers import collapse, explore, models, show`."""

import os

# two busy-waiting threads on a shared core are ten times slower than two that sleep; read when torch is first imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from helpers.explore import explore, show

__all__ = ["explore", "show"]
__version__ = "0.1.0"
