"""The code behind the course: `from helpers import collapse, explore, models, show`."""

__all__ = ["explore", "show"]
__version__ = "0.1.0"


def __getattr__(name: str):
    """Import what needs ipywidgets and matplotlib when it is asked for: mathematics alone starts as
    fast as torch.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helpers import widget

    return getattr(widget, name)
