"""The Python side of an exercise in a page: run a learner's answer through the check that a notebook runs.

The page has Python's standard library, the stand-in for torch beside this file, and the course's own files: the
checks of a chapter and what they import. Cases, expected results and mistakes come as data, evaluated with real torch
(`course.checks.written`). A module that is not there (NumPy, matplotlib, the language model) is stood in for by an
`Absent` one, which may be imported and named; to call something of it raises `NotHere`.
"""

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import linecache
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

SECONDS = 20.0  # for the learner's calls in one check, as in a notebook
SEARCH = 8.0  # for the search for a reason
LONGEST_OUTPUT = 4000  # characters of what the learner prints
NAMES = {"np": "NumPy", "numpy": "NumPy", "scipy": "SciPy", "pandas": "pandas", "matplotlib": "matplotlib"}


class NotHere(BaseException):
    """Something that the page does not have. No `except Exception` of a check or of a learner keeps it."""


class AbsentClass(type):
    """A class of a module that is not there: it has no instances."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise NotHere(cls.__module__)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{cls.__module__}.{cls.__name__}.{name}")


class Absent(types.ModuleType):
    """A module that is not there, or something in it: it can be named, and not called."""

    classes = ("ndarray", "integer", "floating", "bool_", "generic", "number")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.classes or (name[:1].isupper() and not name.isupper()):
            found = AbsentClass(name, (), {"__module__": self.__name__})
        else:
            found = Absent(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotHere(self.__name__)

    __float__ = __int__ = __index__ = __iter__ = __len__ = __call__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __neg__ = __call__

    def __getitem__(self, _: Any) -> Any:
        return self

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes `Absent` modules of all that nothing else finds, but for the learner's own slips of the keyboard."""

    outside = ("numpy", "scipy", "pandas", "matplotlib", "networkx", "IPython", "jaxtyping", "mpmath", "tqdm", "transformers")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in (*self.outside, "course", "helpers"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


sys.meta_path.append(Finder())


# data


def decoded(value: Any, names: dict) -> Any:
    """Return a value from the form in which `course.checks.written` writes it."""
    if isinstance(value, list):
        return [decoded(x, names) for x in value]
    if not isinstance(value, dict):
        return value
    (kind, held), *_ = value.items()
    if kind == "tensor":
        name, shape, numbers = held
        type_ = torch.bool if name == "bool" else getattr(torch, name)
        return torch.tensor(numbers, dtype=type_).reshape(shape)
    if kind == "tuple":
        return tuple(decoded(x, names) for x in held)
    if kind == "dtype":
        return getattr(torch, held)
    if kind == "graph":
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(decoded(held[0], names))
        graph.add_edges_from((decoded(u, names), decoded(v, names), more) for u, v, more in held[1])
        return graph
    if kind == "code":
        return eval(held, names)
    return {decoded(name, names): decoded(x, names) for name, x in held}


def key(value: Any) -> Any:
    """Return what tells one argument from another: numbers in it, or the object itself where it is a function."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), tuple(map(repr, value.flat()))
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(key(x) for x in value)
    if hasattr(value, "adj"):
        return tuple(value.nodes), tuple(map(tuple, value.edges))
    return id(value) if callable(value) else (type(value).__name__, repr(value))


class Written:
    """A function that is known by its results on some arguments."""

    def __init__(self, name: str, results: dict):
        self.__name__, self.results = name, results

    def __call__(self, *arguments: Any) -> Any:
        return copied(self.results[key(arguments)])


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else list(value) if isinstance(value, list) else value


class Failed:
    """Stands for the result of a mistake that fails on a case."""


def failing(results: dict) -> Callable:
    def mistaken(*arguments: Any) -> Any:
        found = results[key(arguments)]
        if found is Failed:
            raise ValueError("this mistake fails here")
        return copied(found)

    return mistaken


def read(value: Any, names: dict) -> Any:
    return Failed if value == {"failed": True} else decoded(value, names)


def tabled(names: dict, name: str, answer: Any, solution: Callable, **more: Any) -> Any:
    """`course.checks.tabled` on results that were written with real torch."""
    from course import checks

    row = DATA["tables"][name]
    names = {**names, "checks": types.SimpleNamespace(**names)}
    cases, unseen = (
        [(checks.Case(text, decoded({"tuple": held}, names)), read(wanted, names)) for text, held, wanted in row[kind]]
        for kind in ("cases", "unseen")
    )
    right = {key(case.arguments): wanted for case, wanted in [*cases, *unseen]}
    for one, k, other, wanted in row["swaps"]:
        arguments = list(cases[one][0].arguments)
        arguments[k] = cases[other][0].arguments[k]
        right[key(tuple(arguments))] = read(wanted, names)
    mistaken = []
    for sentence, results in row["mistakes"]:
        held = {key(case.arguments): read(x, names) for (case, _), x in zip(cases, results, strict=True)}
        mistaken.append((failing(held), sentence))
    STATE.name = name
    found = checks.compare(
        names, row["call"], answer, Written(name, right), [case for case, _ in cases], mistaken,
        tolerance=more.get("tolerance", row["tolerance"]), unseen=[case for case, _ in unseen],
    )  # fmt: skip
    STATE.agreed = found.sentence
    return found


# the clock


class Clock:
    """Raises `late` in Python code that runs for too long: asked at each jump and each call."""

    tool = 4

    def __init__(self, late: type[BaseException]):
        self.late, self.ends = late, []
        self.monitoring = getattr(sys, "monitoring", None)

    @contextlib.contextmanager
    def limited(self, seconds: float, patience: float = 1) -> Iterator[None]:
        if not self.monitoring:
            yield
            return
        self.ends.append(time.perf_counter() + seconds)
        if len(self.ends) == 1:
            self.start()
        try:
            yield
        finally:
            self.ends.pop()
            if not self.ends:
                self.stop()

    def start(self) -> None:
        events = self.monitoring.events
        self.monitoring.use_tool_id(self.tool, "clock")
        for event in (events.JUMP, events.PY_START):
            self.monitoring.register_callback(self.tool, event, self.ask)
        self.monitoring.set_events(self.tool, events.JUMP | events.PY_START)

    def stop(self) -> None:
        self.monitoring.set_events(self.tool, 0)
        self.monitoring.free_tool_id(self.tool)

    def ask(self, *_: Any) -> None:
        if self.ends and time.perf_counter() > min(self.ends):
            self.ends[self.ends.index(min(self.ends))] = time.perf_counter() + 1.0  # a bare `except` may catch it
            raise self.late


# one check

STATE = types.SimpleNamespace(name="", agreed="", number="", tell=None, module=None)
DATA: dict = {"tables": {}}


def begin(data: str, tell: Callable[[str], None] | None = None) -> None:
    """Take the data of a chapter and make its checks use them.

    Args:
        data: JSON, as `course.checks.written` makes it.
        tell: called with the first wrong case, before the reason is looked for.
    """
    DATA.clear()
    DATA.update(json.loads(data))
    STATE.tell = tell
    if "networkx" in DATA["needs"]:
        whole_graphs()
    from course import checks

    checks.tabled = tabled
    checks.SECONDS, checks.SEARCH, checks.PICTURES = SECONDS, SEARCH, False
    checks.normal = recorded("normal", checks.normal)
    if not hasattr(time, "thread_time"):
        time.thread_time = time.process_time = time.perf_counter
    if hasattr(sys, "monitoring"):
        checks._limited = Clock(checks._Late).limited
    if not getattr(checks._why, "tells", False):
        checks._why = telling(checks._why)
    for module, held in DATA["constants"].items():
        vars(importlib.import_module(module)).update({key: decoded(x, {}) for key, x in held.items()})
    STATE.module = importlib.import_module(f"course.{DATA['chapter']}.checks")
    if "networkx" in DATA["needs"]:
        from helpers import graphs

        graphs.orthogonal_weights = recorded("orthogonal_weights", graphs.orthogonal_weights)


def whole_graphs() -> None:
    import networkx as nx

    def to_numpy_array(graph: Any, weight: Any = "weight", **_: Any) -> list:
        order = list(graph)
        return [[(graph[u][v].get(weight, 1.0) if weight else 1.0) if graph.has_edge(u, v) else 0.0 for v in order] for u in order]

    nx.to_numpy_array = to_numpy_array


def recorded(name: str, original: Callable) -> Callable:
    """A function whose results were written down; others it gives as the stand-in does."""
    held = DATA.get("recorded", {}).get(name, {})

    def look(*arguments: Any, **named: Any) -> Any:
        wanted = json.dumps([arguments, named])
        return decoded(held[wanted], {}) if wanted in held else original(*arguments, **named)

    return look


def telling(why: Callable) -> Callable:
    """The search for a reason, and before it a word on what is wrong."""

    def search(mistaken: list, tried: list, *more: Any) -> str:
        from course import checks

        first = next(each for each in tried if not each.right)
        if STATE.tell:
            STATE.tell(f"{STATE.name}({first.case.text}) {checks._differing(*first[1:5])}.")
        return why(mistaken, tried, *more)

    search.tells = True
    return search


def check(source: str, call: str) -> str:
    """Run an answer and return what is to be shown, as JSON.

    Args:
        source: what the learner wrote.
        call: the line of the check, such as "checks.mask(mask)".

    Returns:
        kind ("right", "wrong", "empty", "error", "absent"), sentence, printed, guess, true.
    """
    printed = io.StringIO()
    file = f"<answer {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": "__main__", "__builtins__": builtins}
    exercise = getattr(STATE.module, call.partition("(")[0].rpartition(".")[2], None)
    STATE.agreed, STATE.number = "", getattr(exercise, "number", "")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        kind, sentence = judged(source, file, call, names)
    text = printed.getvalue()
    if len(text) > LONGEST_OUTPUT:
        text = f"{text[:LONGEST_OUTPUT]}\n… ({len(text) - LONGEST_OUTPUT:,} more characters)"
    guess = getattr(exercise, "guess", None)
    came_true = None if guess is None else guess == exercise.true
    return json.dumps({"kind": kind, "sentence": sentence, "printed": text, "guess": guess, "true": came_true})


def judged(source: str, file: str, call: str, names: dict) -> tuple[str, str]:
    from course import checks

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
        return "error", f"{error}. The check wants the name that the stub had."
    except NotHere as absent:
        return elsewhere(absent)
    except MemoryError:
        return "wrong", TOO_MUCH
    sentence = verdict.sentence
    if not verdict.right and "NotInThisPage" in sentence:
        return "absent", sentence.replace("NotInThisPage: ", "")
    if "raised MemoryError" in sentence:
        return "wrong", TOO_MUCH
    return ("right" if verdict.right else "empty" if verdict.untried else "wrong"), sentence


TOO_MUCH = "your code asked for more memory than the browser gives. Is a tensor or a list far too large?"


def elsewhere(absent: NotHere) -> tuple[str, str]:
    """The verdict where the check needs something else: right as far as it came, or none."""
    if STATE.agreed and DATA["further"].get(STATE.number):
        return "right", f"{STATE.agreed} {DATA['further'][STATE.number]}"
    what = NAMES.get(str(absent).partition(".")[0], "the language model or other parts of the course")
    return "absent", f"This needs {what}, which the page does not have."


def said(error: Exception, file: str) -> str:
    """What went wrong outside the check, and in which line."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f"Line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"

