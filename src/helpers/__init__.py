"""The code behind the course: `from helpers import collapse, explore, models, show`."""

import os

# a thread that waits a while before it sleeps: one that spins is ten times slower on a shared core, one that sleeps at
# once is twice as slow on small steps; read when torch is first imported
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

from helpers.widget import explore, show

__all__ = ["explore", "show"]
__version__ = "0.1.0"
