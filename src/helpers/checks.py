"""The checks behind the exercises: they run the learner's function beside ours and say what is wrong.

A check prints one sentence when all is right, and raises `Wrong` with one that says what is not.
"""

import inspect
import numbers
from collections.abc import Callable
from typing import Any

import networkx as nx
import torch


class Wrong(AssertionError):
    """What the learner's function does not do yet; displayed without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


def same(name: str, answer: Callable, solution: Callable, cases: list[tuple], tolerance: float = 1e-6) -> None:
    """Compare the learner's function with the solution on each case.

    Raises:
        Wrong: the first case that differs, with its arguments, both results, and what kind of difference it is.
    """
    if not callable(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")
    for case in cases:
        call = f"{name}({', '.join(shown(value) for value in case)})"
        try:
            got = answer(*(_copy(value) for value in case))
        except NotImplementedError:
            raise Wrong(f"{name} is still empty: write it, then run the check again.") from None
        except Exception as error:
            raise Wrong(f"{call} raised {type(error).__name__}: {error}") from None
        _compare(call, got, solution(*case), tolerance)
    print(f"Right: {name} agrees with the solution on {len(cases)} cases.")


def _compare(call: str, got: Any, wanted: Any, tolerance: float) -> None:
    if got is None:
        raise Wrong(f"{call} returned nothing. Is there a return statement?")
    try:
        got, wanted = (float(x) if isinstance(x, numbers.Real) else x for x in (got, wanted))
        value, target = (torch.as_tensor(x).detach().double() for x in (got, wanted))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Wrong(f"{call} must return a number or a tensor, not {type(got).__name__}.") from None
    if value.shape != target.shape:
        raise Wrong(f"{call} has shape {tuple(value.shape)}; expected {tuple(target.shape)}.")
    if torch.isnan(value).any():
        raise Wrong(f"{call} contains NaN.")
    gap = float((value - target).abs().max()) if value.numel() else 0.0
    if gap <= tolerance * max(1.0, float(target.abs().max())):
        return
    for factor, reason in ((2.0, "twice"), (0.5, "half")):
        if torch.allclose(value, factor * target, rtol=1e-6):
            raise Wrong(f"{call} is {reason} what is expected: {shown(value)} instead of {shown(target)}.")
    if torch.allclose(value, -target, rtol=1e-6):
        raise Wrong(f"{call} has the wrong sign: {shown(value)} instead of {shown(target)}.")
    raise Wrong(f"{call} is {shown(value)}; expected {shown(target)} (largest difference {gap:.2g}).")


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, nx.Graph) else value


def shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return (
            f"{float(value):.6g}"
            if value.ndim == 0
            else f"tensor of shape {tuple(value.shape)}"
            if value.numel() > 6
            else str([round(x, 6) for x in value.flatten().tolist()])
        )
    if isinstance(value, nx.Graph):
        return f"graph of {len(value)} nodes, {value.number_of_edges()} edges"
    if callable(value):
        return getattr(value, "__name__", "function")
    return repr(value)


def number(name: str, answer: Any, accept: Callable[[float], bool], otherwise: str) -> None:
    if isinstance(answer, type(...)):
        raise Wrong(f"{name} is still empty: fill it in, then run the check again.")
    try:
        value = float(answer)
    except (TypeError, ValueError):
        raise Wrong(f"{name} must be a number, not {answer!r}.") from None
    if not accept(value):
        raise Wrong(f"{name} = {value:g} is not right. {otherwise}")
    print(f"Right: {name} = {value:g}.")


def function(name: str, answer: Any) -> None:
    if not inspect.isfunction(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")


def run(name: str, answer: Callable, *arguments: Any) -> Any:
    try:
        return answer(*arguments)
    except NotImplementedError:
        raise Wrong(f"{name} is still empty: write it, then run the check again.") from None
    except Exception as error:
        raise Wrong(f"{name} raised {type(error).__name__}: {error}") from None
