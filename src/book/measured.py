"""Store measurements, so that we measure nothing twice.

A result is reused by another page, in another language, and after a change that does not affect it.
A kernel of the build (`kernels`) stores the results of the functions in `ASKED` in
`_build/measured`. The key contains everything that the function's module reaches (with its tables),
the installed packages, the processor's kernels (`course.build.dependencies`), and the content of
the arguments. A network counts with its weights, and a figure with Matplotlib's settings. The
effect of a function on torch's random numbers is repeated. We store and use nothing in three cases:
if a network has hooks or an attention function other than its own, if an argument is a function of
the course, or if an argument belongs to a class that the key does not cover. When a reader runs a
notebook, everything is measured.
"""

import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import os
import pickle
import sys
import time
import weakref
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.transforms import TransformNode

from course.build import dependencies

ASKED = {
    "helpers.probe": (
        "_after",
        "attention_rows",
        "head_scores",
        "last_representations",
        "loss",
        "sensitivity",
    ),
    "helpers.intervention": ("read",),
    "helpers.widget._picture": ("_made", "_projected"),
    "course.chapter2.interventions": ("contributions", "with_hidden"),
    "course.chapter1.measures": ("fit_few", "fit_on_a_chain", "train_tree"),
    "course.chapter2.measures": ("hiding", "proxies", "sink_table"),
    "course.chapter3.measures": ("controlled", "merging"),
    "course.chapter4.measures": ("counts_to",),
    "course.chapter5.measures": ("heads",),
    "course.runs.asked": ("ask",),
    "course.runs.trained": ("seen",),
}
# the shortest time in seconds and the largest size in bytes of a result that we store
LEAST, MOST = 0.1, 8_000_000
DAYS = 14  # the number of days for which we keep a file that nobody uses
ATTENTION = ("sdpa", "eager")
STRIDE = 997
# all other packages are installed, and their versions are part of each key
OWN = ("__main__", "course", "helpers")


class Unkept(Exception):
    """Raise this if the content of an argument cannot be determined.

    The search for a stored result then stops.
    """


class Content(pickle.Pickler):
    """Serialise arguments by their content.

    Tensors and networks do not depend on their device, and functions of `module` count by their
    names.
    """

    def __init__(self, into: io.BytesIO, module: str, reached: Collection[Path] | None) -> None:
        super().__init__(into, protocol=5)
        self.module, self.reached, self.drawn = module, reached, False

    def _told(self, kind: type) -> None:
        """Raise `Unkept` if the key does not cover the behaviour of a class."""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if (
            self.reached is not None
            and kind.__module__.split(".")[0] in OWN
            and Path(file) not in self.reached
        ):
            raise Unkept

    def reducer_override(self, given: Any) -> Any:
        if isinstance(given, torch.nn.Module):
            for kind in set(map(type, given.modules())):
                self._told(kind)
            return str, (weights(given),)
        if isinstance(given, torch.Tensor):
            flat = given.detach().cpu().contiguous().reshape(-1)
            kind = repr((given.dtype, given.device.type, *given.shape))
            return str, (kind, flat.view(torch.uint8).numpy().tobytes())
        is_ours = (getattr(given, "__module__", None) or "").split(".")[0] in OWN
        if isinstance(given, torch.Generator) or (
            inspect.isroutine(given) and is_ours and given.__module__ != self.module
        ):
            raise Unkept
        if isinstance(given, Figure | TransformNode):
            maker, how, state, *_ = given.__reduce_ex__(5)
            if isinstance(given, Figure):
                self.drawn, state = True, (state, [*dict.items(rcParams)])
            else:
                # objects that depend on it count by their positions
                state = {**state, "_parents": None}
            return maker, how, state
        if isinstance(given, type):
            self._told(given)
            if self.drawn and is_ours:  # it may draw itself with code that is not part of the key
                raise Unkept
        if type(given).__module__.startswith(
            ("transformers", "tokenizers")
        ):  # a tokenizer belongs to its network
            return str, (getattr(given, "name_or_path", type(given).__name__),)
        return NotImplemented


_weighed: "weakref.WeakKeyDictionary[torch.nn.Module, tuple[tuple, str]]" = (
    weakref.WeakKeyDictionary()
)


def weights(network: torch.nn.Module) -> str:
    """Compute a hash of a network from its type, its configuration and everything that it contains.

    We compute the hash again after a tensor was written to. A write through `.data` leaves no
    trace, so each time we also compare one number in `STRIDE` of each tensor.
    """
    parts = [*network.named_parameters(), *network.named_buffers()]
    config = getattr(network, "config", None)
    attention = getattr(config, "_attn_implementation", ATTENTION[0])
    hooks = (
        h
        for m in network.modules()
        for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())
    )
    if any(
        not (hook.__module__ or "").startswith("transformers") for hook in hooks
    ):  # the function sets some hooks to read hidden states
        raise Unkept
    if attention not in ATTENTION:
        raise Unkept
    some = (
        torch.stack(
            [part.detach().reshape(-1)[::STRIDE].double().sum() for _, part in parts]
        ).tolist()
        if parts
        else []
    )
    state = (
        [(part.data_ptr(), part._version) for _, part in parts],
        some,
        f"{network.training} {attention} {config}",
    )
    if _weighed.get(network, ("",))[0] != state:
        digest = hashlib.sha256(f"{type(network)} {state[2]}".encode())
        for name, part in parts:
            flat = part.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(f"{name} {part.dtype} {part.device.type} {tuple(part.shape)}".encode())
            digest.update(flat.numpy())
        _weighed[network] = state, digest.hexdigest()
    return _weighed[network][1]


def content(
    function: Callable, given: tuple, named: dict, reached: Collection[Path] | None = None
) -> str:
    """Compute a hash of a function's arguments, however they were passed.

    `reached` lists the files that the function's key covers.

    Raises:
        Unkept: if the content of an argument cannot be determined.
    """
    bound = inspect.signature(function).bind(*given, **named)
    bound.apply_defaults()
    into = io.BytesIO()
    try:
        Content(into, function.__module__, reached).dump(
            (torch.get_default_dtype(), [*bound.arguments.items()])
        )
    except (Unkept, pickle.PicklingError, AttributeError, TypeError):
        raise Unkept from None
    return hashlib.sha256(into.getvalue()).hexdigest()[:24]


def kept(
    function: Callable, place: Path, code: str, reached: Collection[Path] | None = None
) -> Callable:
    """Wrap a function so that it looks for a stored result before it computes one.

    `place` is the folder of the stored results, and `code` is the key of the function's module.
    """

    @functools.wraps(function)
    def asked(*given: Any, **named: Any) -> Any:
        try:
            file = place / f"{code}-{content(function, given, named, reached)}"
        except Unkept:
            return function(*given, **named)
        before = torch.get_rng_state()
        if file.exists():
            drawn_from, drawn, result = torch.load(file, weights_only=False)
            if drawn_from is None or torch.equal(drawn_from, before):
                os.utime(file)
                note(place.parent, "taken")
                if drawn is not None:
                    torch.set_rng_state(drawn)
                return result
        start, result = time.perf_counter(), function(*given, **named)
        seconds, after = time.perf_counter() - start, torch.get_rng_state()
        still = torch.equal(before, after)
        if seconds >= LEAST:
            store(file, (None, None, result) if still else (before, after, result))
            note(place.parent, "measured")
        return result

    return asked


def store(file: Path, result: tuple) -> None:
    """Write a result to a file completely or not at all.

    Nothing is written if the result is too large or a file cannot represent it.
    """
    into = io.BytesIO()
    with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
        torch.save(result, into)
        if into.tell() <= MOST:
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_bytes(into.getvalue())
            partial.replace(file)


def code(module: str, root: Path) -> str:
    """Return a key that changes whenever something changes on which a module's functions depend."""
    return dependencies.key(
        f"import {module}", dependencies.pins(root), dependencies.machine(), source=root / "src"
    )


def keep(root: Path) -> None:
    """Make the functions of this process look for stored results first.

    We also delete the results that were not used for `DAYS` days.
    """
    place = root / "_build/measured"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*/*"):
        if time.time() - old.stat().st_mtime > DAYS * 86400:
            old.unlink()
    for name, functions in ASKED.items():
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(name)
            key, reached = code(name, root), {*dependencies.files(f"import {name}", root / "src")}
            for function in functions:
                folder = place / f"{name}.{function}"
                folder.mkdir(exist_ok=True)
                setattr(module, function, kept(getattr(module, function), folder, key, reached))


def note(place: Path, what: str) -> None:
    """Append one byte to a file, to count a stored result that was used or a new measurement."""
    with (place / what).open("a") as file:
        file.write("x")
