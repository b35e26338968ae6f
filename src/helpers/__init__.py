"""The code behind the course: `from helpers import collapse, explore, models, show`."""

from helpers.widget import explore, show

__all__ = ["explore", "show"]
__version__ = "0.1.0"
