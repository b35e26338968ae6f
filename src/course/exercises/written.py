"""Compute, with real torch, the data that a web page needs to check the exercises.

`chapter(3)` returns the data for all exercises of a chapter. For each comparison with a table,
these are the cases with their arguments, the expected results, the results of each known mistake,
and the unseen calls. There are also the results with one argument taken from another case, with
which the check finds arguments that have no effect. Functions among the arguments are stored as
code. `course.exercises.page.desk` reads all this without torch.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import itertools
import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from course import exercises as checks
from helpers import graphs

PLAIN = (bool, int, float, str, type(None))
# the files of the course in a page, in addition to those of `page` and the tables of the checks
SHIPPED = [
    "course/__init__.py", "course/evidence/significance.py", "course/exercises/__init__.py",
    "course/exercises/repair.py", "course/maths/__init__.py", "course/maths/bounds.py",
    "course/maths/constructions.py", "course/maths/counting.py", "course/maths/normalizers.py",
    "course/maths/rewiring.py", "course/maths/rope_scaling.py", "course/training/gnn/task.py",
    "helpers/__init__.py", "helpers/attention.py", "helpers/collapse.py", "helpers/compute.py",
    "helpers/differential.py", "helpers/graphs.py", "helpers/require.py", "helpers/rope.py",
    "helpers/words.py", *(f"course/chapter{k}/checks.py" for k in range(1, 7)),
]  # fmt: skip
SOURCES = Path(__file__).parents[2]


def encoded(value: Any, code: str = "") -> Any:
    """Convert a value to a form that JSON can store.

    A function becomes the code that makes it.

    Raises:
        TypeError: if JSON cannot store the value.
    """
    if isinstance(value, Tensor):
        flat = value.detach().flatten().tolist()
        return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), flat]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return encoded(torch.as_tensor(value))
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, tuple):
        return {"tuple": [encoded(x) for x in value]}
    if isinstance(value, list):
        return [encoded(x) for x in value]
    if isinstance(value, dict):
        return {"dict": [[encoded(name), encoded(x)] for name, x in value.items()]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, nx.Graph):
        return {
            "graph": [
                list(map(encoded, value.nodes)),
                [[encoded(u), encoded(v), more] for u, v, more in value.edges(data=True)],
            ]
        }
    if callable(value) and code:
        return {"code": code}
    raise TypeError(f"a {type(value).__name__} cannot be written as data")


def arguments(case: checks.Case) -> list:
    """Return the arguments of a case in encoded form.

    The code of each argument is its part of the case's text.
    """
    parts = ast.parse(f"f({case.text})", mode="eval").body.args
    codes = [ast.unparse(part) for part in parts]
    if any(
        isinstance(part, ast.Starred) for part in parts
    ):  # one piece of code gives several arguments, none of which is a function
        codes = [""] * len(case.arguments)
    return [encoded(x, code) for x, code in zip(case.arguments, codes, strict=True)]


def tried(function: Callable, arguments: tuple) -> Any:
    """Call a function and return its result in encoded form, or the sign for a failure."""
    try:
        return encoded(function(*checks._copied(arguments)))
    except Exception:
        return {"failed": True}


def shortened(value: Any) -> Any:
    """Round a mistake's result to twelve digits. At most seven digits are ever compared."""
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else value
    if isinstance(value, list):
        return [shortened(x) for x in value]
    return {key: shortened(x) for key, x in value.items()} if isinstance(value, dict) else value


def table(
    names: dict, row: dict, solution: Callable, more: dict, cases: list, unseen: list
) -> dict:
    """Return the data of one comparison."""
    inside = row["call"].rstrip(")").partition("(")[2]
    mistaken = checks._functions(row["mistakes"], inside, {**names, "right": solution, **more})
    swaps = []
    for (first, a), (second, b) in itertools.permutations(enumerate(cases), 2):
        for k in range(len(a.arguments)):
            if checks._alike(a.arguments[k], b.arguments[k]):
                moved = (*a.arguments[:k], b.arguments[k], *a.arguments[k + 1 :])
                swaps.append([first, k, second, tried(solution, moved)])
    return {
        "call": row["call"],
        "tolerance": row.get("tolerance", 1e-6),
        "cases": [[case.text, arguments(case), tried(solution, case.arguments)] for case in cases],
        "unseen": [
            [case.text, arguments(case), tried(solution, case.arguments)] for case in unseen
        ],
        "swaps": swaps,
        "mistakes": [
            [sentence, [shortened(tried(function, case.arguments)) for case in cases]]
            for function, sentence in mistaken
        ],
    }


class Enough(Exception):
    """Stop a check once all its comparisons are recorded."""


class Recorder:
    """Record the results of a function for the arguments of each call."""

    def __init__(self, function: Callable):
        self.function, self.results = function, {}

    def __call__(self, *given: Any, **named: Any) -> Any:
        result = self.function(*given, **named)
        self.results[json.dumps([given, named])] = encoded(result)
        return result


def recording(module: ModuleType) -> dict[str, Recorder]:
    """Make the random functions of a module record what they return."""
    notes = {
        "normal": Recorder(checks.normal),
        "orthogonal_weights": Recorder(graphs.orthogonal_weights),
    }
    checks.normal, graphs.orthogonal_weights = notes["normal"], notes["orthogonal_weights"]
    if hasattr(module, "normal"):
        module.normal = notes["normal"]
    return notes


def restore(module: ModuleType, notes: dict[str, Recorder]) -> None:
    checks.normal, graphs.orthogonal_weights = (
        notes["normal"].function,
        notes["orthogonal_weights"].function,
    )
    if hasattr(module, "normal"):
        module.normal = notes["normal"].function


def comparisons(exercise: checks.Exercise) -> int:
    """Return how many of an exercise's functions are compared through the chapter's table."""
    return inspect.getsource(exercise.check).count(" compare(")


def constants(module: ModuleType) -> dict[str, dict]:
    """Return constants for a chapter's checks, from modules that a page does not have.

    The constants are numbers, texts and lists.
    """
    plain = {}
    for part in vars(module).values():
        if (
            isinstance(part, ModuleType)
            and part.__name__.partition(".")[0] in ("course", "helpers")
            and not shipped(part.__name__)
        ):
            plain[part.__name__] = {
                name: encoded(x) for name, x in vars(part).items() if name.isupper() and is_plain(x)
            }
    return plain


def is_plain(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    if isinstance(value, dict):
        return all(isinstance(k, str) and is_plain(x) for k, x in value.items())
    return (
        all(map(is_plain, value)) if isinstance(value, list | tuple) else isinstance(value, PLAIN)
    )


def shipped(name: str) -> bool:
    """Return whether a web page contains this module."""
    return (
        f"{name.replace('.', '/')}.py" in SHIPPED
        or f"{name.replace('.', '/')}/__init__.py" in SHIPPED
    )


def chapter(number: int, setup: str, answers: dict[str, tuple]) -> dict:
    """Return the data with which a page checks the exercises of a chapter.

    Args:
        setup: the imports with which the exercises' page begins.
        answers: the course's own answers, keyed by the name of the exercise. Each check runs once
            with its answers.
    """
    module = importlib.import_module(f"course.chapter{number}.checks")
    rows, tables, notes = checks.tables(vars(module)), {}, recording(module)
    original, left = checks.tabled, [0]

    def noted(names: dict, name: str, answer: Any, solution: Callable, **more: Any) -> checks.Right:
        more = {key: x for key, x in more.items() if key not in ("picture", "unseen", "tolerance")}
        row = rows[name]
        cases = checks.given(names, name)
        unseen = checks.given(names, name, "unseen") if "unseen" in row else []
        # we write a table twice, because a function among the arguments differs each time
        tables[name] = table(
            {**names, "checks": SimpleNamespace(**names)}, row, solution, more, cases, unseen
        )
        left[0] -= 1
        if not left[0]:
            raise Enough
        return checks.Right("noted")

    compare = module.compare
    module.compare = functools.partial(noted, vars(module))
    checks.tabled = noted
    try:
        for name, row in rows.items():
            if "cases" in row:
                checks.given(vars(module), name)  # this records the random numbers
        for name, arguments in answers.items():
            exercise = getattr(module, name)
            left[0] = comparisons(exercise)
            if left[0]:
                with contextlib.suppress(Enough):
                    exercise.check(*arguments)
    finally:
        module.compare, checks.tabled = compare, original
        restore(module, notes)
    return {
        "chapter": f"chapter{number}",
        "constants": constants(module),
        "further": tomllib.loads((Path(__file__).parent / "page.toml").read_text())["further"],
        "setup": setup,
        "needs": ["networkx"] if number == 1 else [],
        "tables": tables,
        "recorded": {name: recorder.results for name, recorder in notes.items()},
    }


def files() -> dict[str, str]:
    """Return the files that the worker of a page needs, as a dictionary from path to text."""
    folder = SOURCES / "course/exercises"
    texts = {name: (SOURCES / name).read_text() for name in SHIPPED}
    texts |= {
        f"course/exercises/{path.name}": path.read_text() for path in sorted(folder.glob("*.toml"))
    }
    texts |= {
        path.relative_to(folder / "page").as_posix(): path.read_text()
        for path in sorted((folder / "page").glob("**/*.py"))
    }
    texts["course/exercises/clock.py"] = texts.pop("clock.py")
    return texts
