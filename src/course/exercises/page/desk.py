"""Check a learner's answer in a web page, with the same check as in a notebook.

The page has Python's standard library, a replacement for torch (in this folder), the checks of a
chapter, and the modules of the course that these checks import. Cases, expected results and the
results of mistakes are data that we computed with real torch (`course.exercises.written`). An
`Absent` module replaces each module that the page lacks (such as NumPy, matplotlib or the language
model). It can be imported, but a call of anything in it raises `NotHere`.
"""

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import linecache
import statistics
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

SECONDS = 20.0  # seconds for the learner's calls in one check, as in a notebook
SEARCH = 8.0  # seconds for the search for a reason
LONGEST_OUTPUT = 4000  # the largest number of characters of the learner's output
NAMES = {
    "np": "NumPy",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "pandas": "pandas",
    "matplotlib": "matplotlib",
}


for _clock in ("thread_time", "process_time"):  # the browser has only one clock
    if not hasattr(time, _clock):
        setattr(time, _clock, time.perf_counter)


HOMES = {
    "course.training.gnn": "course.training.gnn.task"
}  # packages of which the page has only one module


class NotHere(BaseException):
    """Report that a check needs something that the page does not have.

    An `except Exception` in a check or in a learner's code does not catch this.
    """


class AbsentClass(type):
    """Replace a class of a missing module. It has no instances."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise NotHere(cls.__module__)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{cls.__module__}.{cls.__name__}.{name}")


class Absent(types.ModuleType):
    """Replace a missing module, or an object in it that code may mention but not call."""

    classes = ("ndarray", "integer", "floating", "bool_", "generic", "number")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        inside = f"{self.__name__}.{name}"
        spec = importlib.machinery.PathFinder.find_spec(inside, self.__dict__.get("__path__") or [])
        if spec and spec.loader:  # the page has this module
            return importlib.import_module(inside)
        if name in self.classes or (name[:1].isupper() and not name.isupper()):
            absent = AbsentClass(name, (), {"__module__": self.__name__})
        else:
            absent = Absent(f"{self.__name__}.{name}")
        setattr(self, name, absent)
        return absent

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotHere(self.__name__)

    __float__ = __int__ = __index__ = __iter__ = __len__ = __call__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        __pow__
    ) = __neg__ = __call__

    def __getitem__(self, _: Any) -> Any:
        return self

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Create `Absent` modules for what the page lacks, when code imports it.

    These are well-known packages and parts of the course.
    """

    outside = (
        "numpy",
        "scipy",
        "pandas",
        "matplotlib",
        "networkx",
        "IPython",
        "jaxtyping",
        "mpmath",
        "tqdm",
        "transformers",
    )
    course = ("course", "helpers")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in (*self.outside, *self.course):
            return None
        found_spec = importlib.machinery.PathFinder.find_spec(name, path)
        if found_spec and found_spec.loader:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = (
            list(found_spec.submodule_search_locations) if found_spec else []
        )
        return spec

    def create_module(self, spec: Any) -> types.ModuleType:
        return Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave the module empty, as Python's import system requires this method."""


sys.meta_path.insert(0, Finder())


# data


def decoded(value: Any, names: dict) -> Any:
    """Decode a value that `course.exercises.written` encoded."""
    if isinstance(value, list):
        return [decoded(x, names) for x in value]
    if not isinstance(value, dict):
        return value
    (kind, content), *_ = value.items()
    if kind == "tensor":
        name, shape, numbers = content
        type_ = torch.bool if name == "bool" else getattr(torch, name)
        return torch.tensor(numbers, dtype=type_).reshape(shape)
    if kind == "tuple":
        return tuple(decoded(x, names) for x in content)
    if kind == "dtype":
        return getattr(torch, content)
    if kind == "graph":
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(decoded(content[0], names))
        graph.add_edges_from(
            (decoded(u, names), decoded(v, names), more) for u, v, more in content[1]
        )
        return graph
    if kind == "code":
        return eval(content, names)
    return {decoded(name, names): decoded(x, names) for name, x in content}


def key(value: Any) -> Any:
    """Return a key under which we can look up an argument.

    The key is made of the numbers in the argument. For a function, it is the function itself.
    """
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), tuple(map(repr, value.flat()))
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(key(x) for x in value)
    if hasattr(value, "adj"):
        return tuple(value.nodes), tuple(map(tuple, value.edges))
    return id(value) if callable(value) else (type(value).__name__, repr(value))


class Written:
    """Replace a function whose results are known only for some arguments."""

    def __init__(self, name: str, results: dict):
        self.__name__, self.results = name, results

    def __call__(self, *arguments: Any) -> Any:
        return copied(self.results[key(arguments)])


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return list(value) if isinstance(value, list) else value


class Failed:
    """Replace the result of a mistake that fails on a case."""


def failing(results: dict) -> Callable:
    def mistaken(*arguments: Any) -> Any:
        result = results[key(arguments)]
        if result is Failed:
            raise ValueError("this mistake fails here")
        return copied(result)

    return mistaken


def read(value: Any, names: dict) -> Any:
    return Failed if value == {"failed": True} else decoded(value, names)


def tabled(names: dict, name: str, answer: Any, solution: Callable, **more: Any) -> Any:
    """Run `course.exercises.tabled` with results that real torch computed earlier."""
    from course import exercises as checks

    row = DATA["tables"][name]
    names = {**names, "checks": types.SimpleNamespace(**names)}
    cases, unseen = (
        [
            (checks.Case(text, decoded({"tuple": arguments}, names)), read(target, names))
            for text, arguments, target in row[kind]
        ]
        for kind in ("cases", "unseen")
    )
    right = {key(case.arguments): target for case, target in [*cases, *unseen]}
    for one, k, swapped, target in row["swaps"]:
        arguments = list(cases[one][0].arguments)
        arguments[k] = cases[swapped][0].arguments[k]
        right[key(tuple(arguments))] = read(target, names)
    mistaken = []
    for sentence, results in row["mistakes"]:
        recorded_results = {
            key(case.arguments): read(x, names) for (case, _), x in zip(cases, results, strict=True)
        }
        mistaken.append((failing(recorded_results), sentence))
    STATE.name = name
    verdict = checks.compare(
        names, row["call"], answer, Written(name, right), [case for case, _ in cases], mistaken,
        tolerance=more.get("tolerance", row["tolerance"]), unseen=[case for case, _ in unseen],
    )  # fmt: skip
    STATE.agreed = verdict.sentence
    return verdict


# one check

STATE = types.SimpleNamespace(name="", agreed="", number="", tell=None, module=None)
DATA: dict = {"tables": {}}


def begin(data: str, tell: Callable[[str], None] | None = None) -> None:
    """Load the data of a chapter and make its checks use them.

    Args:
        data: JSON from `course.exercises.written`.
        tell: a function that is called with the first wrong case, before we look for the reason.
    """
    DATA.clear()
    DATA.update(json.loads(data))
    STATE.tell = tell
    importlib.import_module("scipy.stats").binomtest = Binomial
    if "networkx" in DATA["needs"]:
        whole_graphs()
    from course import exercises as checks

    checks.tabled = tabled
    checks.SECONDS, checks.SEARCH, checks.PICTURES = SECONDS, SEARCH, False
    checks.normal = recorded("normal", checks.normal)
    checks._looking = looking
    for module, values in DATA["constants"].items():
        vars(importlib.import_module(module)).update(
            {key: decoded(x, {}) for key, x in values.items()}
        )
    for module, home in HOMES.items():
        vars(importlib.import_module(module)).update(vars(importlib.import_module(home)))
    STATE.module = importlib.import_module(f"course.{DATA['chapter']}.checks")
    if "networkx" in DATA["needs"]:
        from helpers import graphs

        graphs.orthogonal_weights = recorded("orthogonal_weights", graphs.orthogonal_weights)


class Matrix(list):
    """Hold rows of numbers, in place of a NumPy or SciPy array."""

    def toarray(self) -> "Matrix":
        return self


def adjacency(graph: Any, weight: Any = "weight", **_: Any) -> Matrix:
    """Compute `networkx.to_numpy_array` without NumPy."""
    order = list(graph)

    def entry(u: Any, v: Any) -> float:
        return (
            float(graph[u][v].get(weight, 1.0) if weight else 1.0) if graph.has_edge(u, v) else 0.0
        )

    return Matrix([entry(u, v) for v in order] for u in order)


def laplacian(graph: Any, nodelist: Any = None, weight: Any = "weight") -> Matrix:
    rows = adjacency(graph, weight)
    return Matrix(
        [(sum(row) if i == j else 0.0) - x for j, x in enumerate(row)] for i, row in enumerate(rows)
    )


def normalized_laplacian(graph: Any, nodelist: Any = None, weight: Any = "weight") -> Matrix:
    rows = adjacency(graph, weight)
    root = [sum(row) ** 0.5 for row in rows]
    return Matrix(
        [float(i == j) - x / root[i] / root[j] for j, x in enumerate(row)]
        for i, row in enumerate(rows)
    )


def resistance_distance(
    graph: Any, nodeA: Any = None, nodeB: Any = None, weight: Any = None, **_: Any
) -> float:
    """Compute `networkx.resistance_distance` between two nodes without SciPy."""
    if nodeA is None or nodeB is None or weight is not None:
        raise NotHere("scipy")
    inverse = torch.linalg.pinv(torch.tensor(laplacian(graph, weight=None), dtype=torch.float64))
    i, j = (list(graph).index(node) for node in (nodeA, nodeB))
    return float(inverse[i, i] + inverse[j, j] - 2 * inverse[i, j])


def whole_graphs() -> None:
    """Replace functions of networkx and of the course that use NumPy by code with lists."""
    import networkx as nx
    import numpy as np

    nx.to_numpy_array, nx.laplacian_matrix, nx.normalized_laplacian_matrix = (
        adjacency,
        laplacian,
        normalized_laplacian,
    )
    nx.resistance_distance = resistance_distance
    np.random.default_rng = lambda *_: None
    np.linalg.eigvalsh = lambda rows: torch.linalg.eigvalsh(
        torch.tensor(rows, dtype=torch.float64)
    ).tolist()
    np.argmax = lambda values: max(range(len(values)), key=values.__getitem__)


class Binomial(NamedTuple):
    """Replace `scipy.stats.binomtest`, with Wilson's interval only."""

    k: int
    n: int

    def proportion_ci(self, confidence_level: float = 0.95, method: str = "exact") -> Any:
        if method != "wilson":
            raise NotHere("scipy")
        z = statistics.NormalDist().inv_cdf((1 + confidence_level) / 2)
        p, n = self.k / self.n, self.n
        half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
        below, centre = 1 + z * z / n, p + z * z / (2 * n)
        low, high = (centre - half) / below, (centre + half) / below
        return types.SimpleNamespace(
            low=0.0 if self.k == 0 else low, high=1.0 if self.k == n else high
        )


def recorded(name: str, original: Callable) -> Callable:
    """Return a function that looks up its results if they were recorded.

    All other results are computed with the replacement for torch.
    """
    results = DATA.get("recorded", {}).get(name, {})

    def look(*arguments: Any, **named: Any) -> Any:
        call = json.dumps([arguments, named])
        return decoded(results[call], {}) if call in results else original(*arguments, **named)

    return look


@contextlib.contextmanager
def looking(differs: str) -> Iterator[None]:
    """Show how the answer differs, while we look for the reason."""
    if STATE.tell:
        STATE.tell(differs)
    yield


def check(source: str, call: str) -> str:
    """Run a learner's answer through a check, and return what the page should show, as JSON.

    Args:
        source: the code that the learner wrote.
        call: the line of the check, such as "checks.mask(mask)".

    Returns:
        An object with the keys kind ("right", "wrong", "empty", "error" or "absent"), sentence,
        printed (the learner's output), guess and true.
    """
    printed = io.StringIO()
    file = f"<answer {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": "__main__", "__builtins__": builtins}
    exercise = getattr(STATE.module, call.partition("(")[0].split(".")[1], None)
    STATE.agreed, STATE.number = "", getattr(exercise, "number", "")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        kind, sentence = judged(source, file, call, names)
    text = printed.getvalue()
    if len(text) > LONGEST_OUTPUT:
        text = f"{text[:LONGEST_OUTPUT]}\n… ({len(text) - LONGEST_OUTPUT:,} more characters)"
    guess = getattr(exercise, "guess", None)
    came_true = None if guess is None else guess == exercise.true
    return json.dumps(
        {"kind": kind, "sentence": sentence, "printed": text, "guess": guess, "true": came_true}
    )


def judged(source: str, file: str, call: str, names: dict) -> tuple[str, str]:
    from course import exercises as checks

    try:
        exec(DATA["setup"], names)
        code = compile(source, file, "exec")
        checks._clock.seconds = checks._clock.left = SECONDS
        checks.clocked(lambda: exec(code, names))
    except SyntaxError as error:
        return "error", f"Line {error.lineno}: {error.msg}."
    except checks.Wrong as late:
        return "wrong", f"{late}"
    except NotHere as absent:
        return elsewhere(absent)
    except Exception as error:
        return "error", said(error, file)
    try:
        verdict = eval(call, names)
    except NameError as error:
        return "error", f"{error}. The check needs the name that the stub had."
    except NotHere as absent:
        return elsewhere(absent)
    except MemoryError:
        return "wrong", TOO_MUCH
    sentence = verdict.sentence
    if not verdict.right and "NotInThisPage" in sentence:
        return "absent", sentence.replace("raised NotInThisPage: ", "failed, because ")
    if "raised MemoryError" in sentence or "index-sized integer" in sentence:
        return "wrong", TOO_MUCH
    if verdict.untried:  # a page has no cells
        return "empty", sentence.replace("run this cell again", "press Check again")
    return "right" if verdict.right else "wrong", sentence


TOO_MUCH = (
    "your code needs more memory than the browser gives. Is a tensor or a list far too large?"
)


def elsewhere(absent: NotHere) -> tuple[str, str]:
    """Return the verdict of a check that needs something the page does not have.

    The verdict is "right" if the check passed as far as it could run. Otherwise there is no
    verdict.
    """
    if STATE.agreed and DATA["further"].get(STATE.number):
        return "right", f"{STATE.agreed} {DATA['further'][STATE.number]}"
    what = NAMES.get(
        str(absent).partition(".")[0], "the language model or other parts of the course"
    )
    return "absent", f"This needs {what}, which the page does not have."


def said(error: Exception, file: str) -> str:
    """Describe an error outside the check, and the line in which it occurred."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    where = f"Line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"
