"""Bad input to every public function: a finite result, or a ValueError (TypeError for a wrong type) naming the argument.

Functions are found, not listed: a new module of `helpers` is tested as soon as it is there. Arguments are made from
the annotations. Where that is not enough, EXAMPLES gives a good call; what cannot be called here stands in EXEMPT.
"""

import collections.abc
import contextlib
import dataclasses
import importlib
import inspect
import itertools
import math
import pkgutil
import re
import types
import typing
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tiny_models import tiny

import helpers
from course.training import checkpoints, gnn
from course.training.tasks import Copying
from helpers import models
from helpers.transformer import Decoder

# what is no mathematics: pages, widgets, claims and exercises have tests of their own
NO_TOOLS = re.compile(r"helpers\.(widget|words|require)")
ALSO = (  # of the course's own
    "maths.bounds", "maths.constructions", "maths.counting", "maths.normalizers", "maths.rewiring", "maths.rope_scaling",
    "training", "training.checkpoints", "training.gnn", "training.tasks", "chapter2.interventions",
    "evidence.significance", "runs.sweep", "build.files",
)  # fmt: skip
EXEMPT = {
    "models.load": "tests/test_models.py gives it every fault that a name, a device and a hub can have",
    "models.embedded": "as models.load",
    "models.blocks": "as models.load",
    "graphs.check": "it is what refuses, for all that take a graph",
    "rope.turn": "rope.rotate without its checks, for the inside of a layer",
    "training.fit": "it changes its model; tests/test_training.py gives it each bad argument",
    "training.fit_together": "as training.fit",
    "training.accuracy": "as training.fit",
}
# may return infinity, and why
INFINITE = {
    "normalizers.forgetting_bias": "-inf hides the keys after the query",
    "collapse.round_to": "beyond the largest number of a type there is infinity, as in IEEE 754",
    "compute.exact": "it gives back the numbers that it is given",
    "compute.shrink": "it gives back what the caller's function returned",
    "significance.interval": "one value has no ends",
    "significance.standard_error": "one value has none",
    "rope_scaling.slash_scale": "no scale is enough where another distance has the same logit, as its docstring says",
}


def lines():
    ax = Figure().subplots()
    ax.plot([0, 1], [0, 1], label="a")
    return ax


ATTENTION = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], dtype=torch.float64)
EYE, GATES = torch.eye(3, dtype=torch.float64), torch.tensor([0.5, 1.0, 0.9], dtype=torch.float64)
FRAME = pd.DataFrame({"distance": [1.0, 0.5]}, index=pd.Index([1, 2], name="n"))
COPIER = Decoder(len(Copying().vocabulary), width=8)
# a good call of a function: its arguments by name, each a value or, where it has to be new each time, a function
# named in MAKE. Arguments left out are made from their annotation, or have a default.
torch.manual_seed(0)  # which bad values are taken must not hang on chance
EXAMPLES = {
    "graphs.family": {"name": "path"},
    "rewiring.rewire": {"method": "gtr", "edges": 1},
    "graphs.propagate": {
        "features": torch.randn(5, 4, dtype=torch.float64),
        "matrix": torch.eye(5, dtype=torch.float64),
        "weights": torch.randn(2, 2, 4, 4, dtype=torch.float64),
    },
    "constructions.total_variation": {
        "p": torch.tensor([0.5, 0.5]),
        "q": torch.tensor([0.25, 0.75]),
    },
    "constructions.rotating_values": {"kind": "random"},
    "constructions.one_layer_distance": {"encoding": "RoPE"},
    "constructions.first_collision": {"limit": 2000, "function": lambda n: n, "dtype": "bf16"},
    "collapse.copying_prompt": {"prompt": "type 1", "place": "first"},
    "counting.make": {"task": "word"},
    "counting.prompt": {"task": "sum", "strategy": "no CoT"},
    "transformer.sinusoidal": {"width": 4},
    "constructions.prefix_mask": {"prefix": 2},
    "attention.uniform": {"mask": torch.ones(3, 3, dtype=torch.bool).tril()},
    "attention.influence": {"attentions": torch.stack([ATTENTION] * 2)},
    "bounds.influence_bound": {"attentions": torch.stack([ATTENTION] * 2)},
    "attention.sink_score": {"attention": ATTENTION},
    "attention.slash_score": {"attention": ATTENTION},
    "normalizers.forgetting_bias": {"gates": GATES},
    "normalizers.delta_rule": {"q": EYE, "k": EYE, "rate": GATES, "gates": GATES},
    "differential.DifferentialAttention": {"width": 16, "heads": 2, "layer": 1},
    "intervention.read": {"mask": torch.ones(3, 3, dtype=torch.bool).tril()},
    "probe.head_scores": {"offsets": [0, 1]},
    "rope_scaling.scaled_frequencies": {"method": "yarn", "length": 64, "factor": 2},
    "rope.rotate": {
        "x": torch.randn(3, 4),
        "positions": torch.arange(3),
        "frequencies": torch.tensor([1.0, 0.1]),
    },
    "rope.smallest_base": {"width": 8, "step": 1, "start": 2, "tries": 50},
    "compute.dtype": {"name": "fp32"},
    "compute.exact": {"x": torch.ones(3)},
    "compute.is_out_of_memory": {"error": MemoryError()},
    "compute.shrink": {"call": lambda chunk: chunk},
    "files.weights": {"path": "new.safetensors"},
    "data.table": {"name": "reported/rope_models"},
    "probe.patch_queries_and_keys": {"alter": lambda layer, name, x: x},
    "gnn.build": {"kind": "gcn", "depth": 2},
    "gnn.accuracy": {"examples": torch.arange(8)},
    "gnn.train": {"epochs": 1},
    "gnn.fit": {"kind": "gcn", "key": "root", "epochs_allowed": 1},
    "checkpoints.load": {"name": "copying"},
    "checkpoints.copying": {"trained": checkpoints.load("copying"), "place": "last", "digit": "0"},
    "checkpoints.save": {
        "path": "new.safetensors",
        "model": COPIER,
        "task": Copying(),
        "decoder": {"width": 8},
    },
    "tasks.batch": {
        "vocabulary": ["<pad>", "a", "b"],
        "rows": [["a"], ["b", "a"]],
        "answers": ["b", "a"],
    },
    "significance.holm": {"p": [0.01, 0.04]},
    "significance.share_interval": {"successes": 1, "trials": 3},
    "style.colours_of": {"names": ["mean", "RoPE"]},
    "style.dots": {"frame": FRAME, "log": "x", "height": 3.0, "colours": ["#767676"]},
    "style.lines": {"frame": FRAME, "log": "x", "colours": ["#767676"]},
    "style.readout_table": {"rows": [("an average", "n", 0.5, "kept")]},
    "style.ticks": {"places": [1, 2], "names": ["one", "two"]},
    "sweep.run": {
        "function": lambda n: {"square": n * n},
        "settings": [{"n": 2}],
        "command": "none",
    },
}
MAKE = {
    nx.Graph: lambda: nx.path_graph(5),
    models.LanguageModel: lambda: LANGUAGE_MODEL,
    gnn.TreeNeighborsMatch: lambda: gnn.TreeNeighborsMatch(2),
    torch.nn.Module: lambda: gnn.build("gcn", 2, 4),
    Axes: lines,
    Path: lambda: table(),
}
BY_NAME = {
    "node": 0, "target": 0, "seed": 0, "layers": 2, "depth": 2, "width": 4, "dtype": "fp32", "length": 8, "offset": 0, "base": 10_000, "rate": 0.5, "i": 2, "j": 1, "out": lambda: FOLDER / "table.csv",
}  # fmt: skip
LANGUAGE_MODEL = tiny("llama")
FOLDER = Path()  # set by a fixture


@pytest.fixture(autouse=True)
def folder(tmp_path):
    global FOLDER
    FOLDER = tmp_path
    table()
    with contextlib.chdir(FOLDER):  # "nonsense" is the name of a file, too
        yield


def table() -> Path:
    """A file that can be read, written anew: whoever was called before may have left something else in it."""
    path = FOLDER / "file"
    path.write_text("n,square,seconds\n3,9,0.1\n")
    return path


def tools() -> list[str]:
    found = [f"helpers.{module.name}" for module in pkgutil.iter_modules(helpers.__path__)]
    return [
        *(name for name in found if not NO_TOOLS.fullmatch(name)),
        *(f"course.{name}" for name in ALSO),
    ]


def public(path: str) -> dict:
    """Functions of a module, and its classes that are made by a call of their own `__init__`."""
    room, module = importlib.import_module(path), path.rpartition(".")[2]
    found = {}
    for name, value in vars(room).items():
        home = getattr(value, "__module__", "") or ""
        if name.startswith("_") or not (
            home == room.__name__ or home.startswith(room.__name__ + ".")
        ):
            continue
        made = (
            inspect.isclass(value)
            and "__init__" in vars(value)
            and "Raises:" in (value.__doc__ or "")
        )
        if inspect.isfunction(value) or made:
            found[f"{module}.{name}"] = value
    return found


FUNCTIONS = {name: value for module in tools() for name, value in public(module).items()}
TESTED = {name: value for name, value in FUNCTIONS.items() if name not in EXEMPT}


@dataclasses.dataclass
class Parameter:
    name: str
    kinds: tuple  # the types that the annotation allows
    default: object

    @property
    def optional(self) -> bool:
        return type(None) in self.kinds


def parameters(function) -> list[Parameter]:
    module = vars(importlib.import_module(inspect.unwrap(function).__module__))
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        kind = parameter.annotation
        kind = eval(kind, module) if isinstance(kind, str) else kind
        union = typing.get_origin(kind) in (typing.Union, types.UnionType)
        kinds = typing.get_args(kind) if union else (kind,)
        found.append(Parameter(parameter.name, kinds, parameter.default))
    return found


def is_tensor(kind) -> bool:
    return getattr(kind, "array_type", None) is torch.Tensor


def origin(kind) -> type:
    return typing.get_origin(kind) or kind


def good(function: str, parameter: Parameter):
    """A value that the function should take."""
    known = EXAMPLES.get(function, {})
    if parameter.name in known:
        return known[parameter.name]
    if parameter.default is not inspect.Parameter.empty:
        return parameter.default
    kind = next((kind for kind in parameter.kinds if kind in MAKE), parameter.kinds[0])
    if kind in MAKE:
        return MAKE[kind]()
    if parameter.name in BY_NAME and not any(map(is_tensor, parameter.kinds)):
        value = BY_NAME[parameter.name]
        return value() if inspect.isfunction(value) else value
    if is_tensor(kind):
        axes = [
            int(axis) if axis.isdigit() else 3
            for axis in kind.dim_str.split()
            if axis not in ("...", "*")
        ]
        whole = not any(name.startswith(("float", "bfloat")) for name in kind.dtypes)
        return (
            torch.arange(math.prod(axes)).view(axes)
            if whole
            else torch.randn(axes, dtype=torch.float64)
        )
    simple = {int: 3, float: 0.5, bool: False, str: "1", torch.dtype: torch.float32}
    if kind in simple:
        return simple[kind]
    if origin(kind) is collections.abc.Callable:
        return lambda x: x
    if issubclass(origin(kind), collections.abc.Iterable):
        return [2, 4]
    raise AssertionError(
        f"{function} needs an example of {parameter.name}: add one to EXAMPLES, or a reason to EXEMPT"
    )


NUMBERS = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    1,
    -0.5,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    -(10**6),
    Fraction(1, 3),
)
WRONG_TYPES = (
    None, "nonsense", "", [], {}, object(), 1j, b"x", np.array([]), np.array(["a", None], dtype=object), 10**400,
    np.array("x"), Decimal("nan"), {1, 2}, torch.tensor([]), torch.zeros(1, 1, 1, 1, 1),
)  # fmt: skip
SEQUENCES = (
    [0], [-1], [1.5], [math.nan], [2, None], ["a"], [True], 3, (3, 2), range(0), range(1, 3), torch.tensor([2, 3]), np.array([2, 3]), [(0, torch.tensor([1]))],
    [(1, None)], [(9, None)], [[2]], np.array([2, None], dtype=object), np.ones((2, 2)), torch.ones(2, 2), torch.tensor([2.0, 3.0], dtype=torch.half),
    torch.tensor([True, False]), [10**30], [1e300], [5e-324], {2, 3},
)  # fmt: skip
GRAPHS = {
    "disconnected": nx.Graph([(0, 1), (2, 3)]),
    "with a loop": nx.Graph([(0, 1), (1, 1)]),
    "one node": nx.empty_graph(1),
    "no node": nx.Graph(),
    "directed": nx.DiGraph([(0, 1)]),
    "multigraph": nx.MultiGraph([(0, 1)]),
    "complete": nx.complete_graph(4),
    "two nodes": nx.path_graph(2),
    "too many to try all": nx.path_graph(21),
}


def bad_tensors(value: torch.Tensor) -> list:
    """Tensors that a function which takes `value` may not be ready for."""
    floating = value.double()
    changed = []
    for number in (math.nan, math.inf, -math.inf, -1.0, 1e300, -1e300, 1e-300, 0.0):
        changed.append(floating.clone().fill_(number))
        changed.append(floating.clone())
        changed[-1].view(-1)[:1] = number
    shapes = [
        floating[..., None],
        floating[None],
        floating.flatten(),
        floating[:0],
        floating[..., :0],
    ]
    shapes += [
        floating[..., :1],
        floating[:1],
        torch.tensor(0.5, dtype=torch.float64),
        torch.zeros(()),
    ]
    kinds = [
        floating.long(),
        -floating.long() - 1,
        floating.long() + 10**6,
        floating.float(),
        floating.half(),
    ]
    kinds += [
        floating > 0,
        floating < -9,
        floating.to(torch.complex128),
        floating.tolist(),
        floating.numpy(),
    ]
    kinds += [floating.to(kind) for kind in (torch.bfloat16, torch.int8, torch.uint8, torch.int32)]
    kinds += [floating.numpy().astype(object), floating.numpy().astype(str)]
    shapes += [floating[(None,) * k] for k in (2, 3)] + [
        floating[0],
        floating.transpose(0, -1),
        floating.flip(0),
    ]
    shapes += [torch.zeros((1,) * rank, dtype=floating.dtype) for rank in range(1, 6)]
    return [*changed, *shapes, *kinds, 0, 1.5, True, 1e300]


def bad_functions() -> list:
    return [
        3,
        lambda x: torch.full_like(x, math.nan) if isinstance(x, torch.Tensor) else math.nan,
        lambda x: x[..., :1] if isinstance(x, torch.Tensor) else x,
        lambda x: None,
        lambda x: "text",
        lambda x: 0.0,
    ]


def bad(function: str, parameter: Parameter) -> list:
    """Values that go wrong in many ways; some of them the function may take."""
    values = [value for value in WRONG_TYPES if value is not None or not parameter.optional]
    for kind in parameter.kinds:
        if is_tensor(kind):
            start = good(function, parameter)
            values += bad_tensors(
                start if isinstance(start, torch.Tensor) and start.ndim else torch.ones(3)
            )
        elif kind in (int, float):
            values += [
                *NUMBERS,
                True,
                1.5,
                7,
                np.int64(2),
                np.float64(0.5),
                torch.tensor(2),
                torch.tensor([1.0, 2.0]),
            ]
            values += [
                np.bool_(True),
                np.array(2),
                np.array(2, dtype=object),
                np.float16(2),
                torch.tensor(True),
                2**63,
            ]
            values += [10**20, 2**64] if parameter.name == "seed" else []
        elif kind is nx.Graph:
            values += list(GRAPHS.values())
        elif kind in (collections.abc.Hashable, typing.Any):
            values += [99, -1, "node", (0, 1), math.nan, frozenset()]
        elif origin(kind) is collections.abc.Callable:
            values += bad_functions()
        elif origin(kind) in (collections.abc.Sequence, list, tuple, collections.abc.Iterable):
            values += [*SEQUENCES, iter([2, 3]), "24"]
        else:
            values += [3, -1, math.nan, "nonsense", ["x"]]
    return values


def finite(value) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(torch.isfinite(value).all()) if not value.is_quantized else True
    if isinstance(value, pd.DataFrame):
        return True  # tables of reported numbers have gaps
    if isinstance(value, float | complex | np.ndarray | np.number):
        return bool(np.isfinite(value).all())
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(finite, value))
    return True


TAKEN = ""  # what `outcome` says of a call that gave a finite result


def outcome(name: str, arguments: dict, faulty: set[str]) -> str | None:
    """None where the call is refused as promised, TAKEN where it is answered, else what went wrong."""
    function = FUNCTIONS[name]
    may_read = "OSError" in (inspect.getdoc(function) or "")
    try:
        with contextlib.ExitStack() as stack:
            value = function(**arguments)
            if isinstance(value, contextlib.AbstractContextManager) and not isinstance(
                value, collections.abc.Sized
            ):
                value = stack.enter_context(value)
            elif isinstance(value, collections.abc.Iterator):
                value = [*itertools.islice(value, 2)]
    except (ValueError, TypeError) as error:
        said = str(error)
        if "\n" in said or len(said) > 600:
            return (
                f"{type(error).__name__} of {len(said)} characters, not one sentence: {said[:80]!r}"
            )
        # of two arguments that do not fit each other either may be meant
        names = set(inspect.signature(function).parameters) if "shape" in said else faulty
        if not any(re.search(rf"\b{word}\b", said) for word in names):
            return (
                f"{type(error).__name__} that does not name {' or '.join(sorted(faulty))}: {said!r}"
            )
        return None
    except OSError as error:
        return None if may_read else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    return TAKEN if finite(value) or name in INFINITE else "a result that is not finite"


def arguments(name: str) -> dict:
    return {parameter.name: good(name, parameter) for parameter in parameters(TESTED[name])}


def shown(value) -> str:
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return re.sub(r" at 0x\w+", "", " ".join(repr(value).split()))[:60]


@pytest.mark.parametrize("name", TESTED)
def test_a_good_call_is_answered(name):
    """Else the refusals below would be worth nothing."""
    assert finite(TESTED[name](**arguments(name))) or name in INFINITE


WRITTEN = (
    Path(__file__).parent / "expected/taken.txt"
)  # each parameter, and which of the bad values it takes


@pytest.mark.parametrize("name", TESTED)
def test_one_bad_argument_is_named_or_harmless(name, request):
    """And none is taken that was refused when `pytest tests/test_bad_input.py --redraw` last wrote them down."""
    torch.manual_seed(0)
    wrong, taken = [], {}
    for parameter in parameters(TESTED[name]):
        found = taken[f"{name} {parameter.name}"] = []
        for value in bad(name, parameter):
            what = shown(value)
            problem = outcome(name, arguments(name) | {parameter.name: value}, {parameter.name})
            if problem == TAKEN:
                found.append(what)
            elif problem:
                wrong.append(f"{parameter.name} = {what}: {problem}")
    assert not wrong, f"{len(wrong)} bad arguments of {name}:\n" + "\n".join(wrong)
    told = dict(line.split(" takes ", 1) for line in WRITTEN.read_text().splitlines())
    now = {
        key: "; ".join(f"{n} x {what}" for what, n in Counter(found).items())
        for key, found in taken.items()
        if found
    }
    if request.config.getoption("--redraw"):
        kept = {key: said for key, said in told.items() if key.split()[0] in TESTED.keys() - {name}}
        WRITTEN.write_text(
            "".join(f"{key} takes {said}\n" for key, said in sorted((kept | now).items()))
        )
    else:
        assert now == {key: said for key, said in told.items() if key.split()[0] == name}, (
            "--redraw where it is meant"
        )


@pytest.mark.parametrize(
    "name", [name for name, function in TESTED.items() if len(parameters(function)) > 1]
)
def test_several_bad_arguments_are_named_or_harmless(name):
    known = parameters(TESTED[name])
    choices = {p.name: [good(name, p), *bad(name, p)] for p in known}
    strategy = st.fixed_dictionaries(
        {p: st.integers(0, len(values) - 1) for p, values in choices.items()}
    )

    @settings(max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def holds(picked):
        call = arguments(name) | {p: choices[p][k] for p, k in picked.items() if k}
        problem = outcome(name, call, {p for p, k in picked.items() if k})
        assert not problem, (
            f"{name}({', '.join(f'{p}={shown(v)}' for p, v in call.items())}): {problem}"
        )

    holds()


def test_exemptions_and_examples_are_of_functions_that_exist():
    assert {*EXEMPT, *EXAMPLES, *INFINITE} <= set(FUNCTIONS), (
        "a name in EXEMPT, EXAMPLES or INFINITE is gone"
    )


def careless(n: int, x: Float[torch.Tensor, " n"], ids: Int[torch.Tensor, " n"], graph: nx.Graph):
    return x[n] / n


def test_this_test_can_fail():
    """A function that checks nothing is caught in each way that there is."""
    FUNCTIONS["careless"] = careless
    try:
        x, graph = torch.ones(4), nx.path_graph(3)
        call = {"n": 2, "x": x, "ids": torch.arange(4), "graph": graph}
        assert outcome("careless", call, {"n"}) == TAKEN
        assert "not finite" in outcome("careless", call | {"x": x * math.nan}, {"x"})
        assert "IndexError" in outcome("careless", call | {"n": 9}, {"n"})
        assert "does not name" in outcome("careless", call | {"x": None}, {"x"})
    finally:
        del FUNCTIONS["careless"]
