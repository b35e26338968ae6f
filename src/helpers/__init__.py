"""The code behind the course, for notebooks: `from helpers import collapse, explore,
models, show`.
"""

__all__ = ["explore", "show"]
__version__ = "0.1.0"


def __getattr__(name: str):
    """Import the parts that need ipywidgets and matplotlib only when somebody uses them, so that a
    program that only computes starts as fast as torch.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from helpers import widget

    return getattr(widget, name)
