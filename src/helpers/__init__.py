"""Provide the code behind the course for its notebooks: `from helpers import explore, models`."""

__all__ = ["explore", "show"]
__version__ = "0.1.0"


def __getattr__(name: str):
    """Import `explore` and `show` only when a program uses them.

    These two functions need ipywidgets and matplotlib, whose import takes time. A program that only
    computes therefore starts as fast as torch does.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helpers import widget

    return getattr(widget, name)
