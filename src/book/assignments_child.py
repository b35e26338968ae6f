"""Run one submission in a separate process, for `assignments.py`.

We run the cells of the notebook, and then its functions on the cases of the exercises. The process
returns only values.
"""

import ast
import json
import math
import numbers
import os
import resource
import signal
import sys
from types import SimpleNamespace

import networkx
import numpy
import scipy.stats
import torch
from IPython.core.inputtransformer2 import TransformerManager

MEMORY, FILES = 6 << 30, 1 << 20
WRITES = 64  # files that the submission may open for writing, each with a limited number of bytes
# modules that could start a process or read a file without an audit event, and modules that contain
# answers
HIDDEN = ("_posixsubprocess", "_ctypes", "ctypes", "course", "helpers")


def plain(value: object, depth: int = 0) -> object:
    """Convert a value to one that JSON can store.

    Raises:
        TypeError: if the value is not a number, a text, a tensor, or a list of these.
    """
    if isinstance(value, torch.Tensor | numpy.ndarray | numpy.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, numbers.Complex) and value.imag == 0:
        return float(value.real)
    if isinstance(value, list | tuple) and depth < 8:
        return [plain(entry, depth + 1) for entry in value]
    raise TypeError(f"a {type(value).__name__} is not a number, a tensor or a list")


def told(value: object) -> str:
    """Convert a value to JSON, together with its dtype.

    A check allows a larger error for float32 than for float64.
    """
    return json.dumps([str(getattr(value, "dtype", "")).removeprefix("torch."), plain(value)])


def refused(*_: object, **__: object) -> None:
    """Raise the error for forbidden actions of a submission."""
    raise PermissionError("submissions must not read or write files, nor start processes")


def shut(room: str) -> None:
    """Forbid the process new processes, the network, the solutions and nearly all files.

    The process may still use Python's files and the files of an empty folder.
    """
    allowed = [
        sys.prefix,
        sys.base_prefix,
        os.path.dirname(os.__file__),
        room,
        "/dev/null",
        "/dev/urandom",
    ]
    allowed = [os.path.realpath(path) for path in allowed]
    words = (
        "ctypes.",
        "subprocess",
        "os.system",
        "os.exec",
        "os.fork",
        "os.spawn",
        "os.posix_spawn",
        "os.kill",
        "socket.",
        "pty.",
    )
    listing = (
        "open",
        "os.listdir",
        "os.scandir",
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.chmod",
        "os.truncate",
        "os.symlink",
        "os.link",
        "shutil.",
    )

    written = 0

    def watch(event: str, arguments: tuple) -> None:
        nonlocal written
        if event.startswith(words) or (event == "import" and arguments[0].split(".")[0] in HIDDEN):
            raise PermissionError(f"{event} is not allowed here")
        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            written += 1
            if written > WRITES:
                raise PermissionError(f"a submission may open at most {WRITES} files for writing")
        if event.startswith(listing):
            for argument in arguments[:2]:
                if isinstance(argument, str | bytes | os.PathLike):
                    path = os.path.realpath(os.fsdecode(argument))
                    if event == "open" and argument in ("r", "w", "rb", "wb", "a", "x"):
                        continue
                    if not any(path == root or path.startswith(root + os.sep) for root in allowed):
                        raise PermissionError(f"a submission must not read the file {path}")

    # functions that start a process without an audit event
    for name in ("_fork_exec", "_posixsubprocess"):
        if name in vars(sys.modules.get("subprocess", object)):
            setattr(sys.modules["subprocess"], name, refused)
    for name in [module for module in sys.modules if module.split(".")[0] in HIDDEN]:
        del sys.modules[name]  # a loaded module would be imported without an audit event
    torch.from_file = torch.UntypedStorage.from_file = (
        torch.UntypedStorage._new_shared_filename_cpu
    ) = refused
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # no further process or thread, except for root
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    sys.addaudithook(watch)


class Late(BaseException):
    """Raise this to stop a submission whose time is up.

    No `except Exception` of the submission catches it.
    """


def stop(*_: object) -> None:
    """Raise `Late` when the time limit of a submission runs out."""
    raise Late


def within(seconds: int, act, *arguments: object) -> tuple[str, object]:
    """Run a function with a time limit.

    We return a sentence about what went wrong, or "", and the function's result.
    """
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return "", act(*arguments)
    except Late:
        return f"took longer than {seconds} s", None
    except BaseException as error:
        message = (
            ascii(str(error)[:120])[1:-1] if not str(error).isprintable() else str(error)[:120]
        )
        return f"{type(error).__name__}: {message}", None
    finally:
        signal.alarm(0)


def aside(node: ast.stmt) -> bool:
    """Return whether a statement belongs to the page and not to the answer, such as a check."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(alias.name == "checks" or alias.name.endswith(".checks") for alias in node.names)
    called = (
        node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    )
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "checks"
    )


def read(text: str) -> ast.Module:
    """Parse a cell as Python.

    If that fails, parse it as a notebook does, which allows lines such as `%time` and `!ls`.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        tree = ast.parse(TransformerManager().transform_cell(text))
    tree.body = [node for node in tree.body if not aside(node)]
    return tree


def shell(space: dict) -> SimpleNamespace:
    """Return a replacement for the notebook's shell.

    Its magics do nothing, except that a cell under `%%time` runs.
    """
    runs = {"time", "timeit", "capture", "prun"}
    return SimpleNamespace(
        run_line_magic=lambda *_: None,
        run_cell_magic=lambda name, _, body: exec(body, space) if name in runs else None,
        system=lambda *_: None,
        getoutput=lambda *_: [],
    )


def execute(cell: dict, space: dict) -> None:
    """Run a code cell in a namespace."""
    exec(compile(read("".join(cell.get("source", ""))), "<cell>", "exec"), space)


def main() -> None:
    back = os.fdopen(int(sys.argv[1]), "w")
    job = json.loads(sys.stdin.read())
    space = {"__name__": "__main__"}
    notebook = shell(space)
    space["get_ipython"] = lambda: notebook
    known = {"torch": torch, "math": math, "nx": networkx, "stats": scipy.stats}
    shut(job["room"])
    book: tuple[str, object] = within(job["seconds"], json.loads, job["source"])
    cells = (
        book[1]["cells"]
        if isinstance(book[1], dict) and isinstance(book[1].get("cells"), list)
        else []
    )
    complaint = "" if cells else "no notebook"
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            problem, _ = within(job["seconds"], execute, cell, space)
            complaint = complaint or problem
    for task in job["asked"]:
        for k, case in enumerate(task["cases"]):
            torch.manual_seed(job["seed"] + k)
            arguments = eval(f"({case},)", dict(known, seed=job["seed"] + k))
            act = space.get(task["name"])
            if not callable(act):
                problem, value = complaint or f"no function {task['name']}", None
            else:
                problem, value = within(job["seconds"], lambda act=act, a=arguments: told(act(*a)))
            back.write(json.dumps([task["name"], k, problem, value]) + "\n")
            back.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
