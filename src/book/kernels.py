"""Start kernels as copies of one process that has already imported what most pages import.

Importing torch, transformers and Matplotlib takes five seconds of processor time, and a build
starts about sixty kernels. Run as a module, this is the process that is copied. It reads one line
per kernel and answers with the number of the new process. It also holds the language model, which
the first caller in each kernel gets.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

IMPORTED = (
    "torch", "transformers.models.llama.modeling_llama", "pandas.io.formats.style", "scipy.stats",
    "networkx", "matplotlib.figure", "matplotlib.font_manager", "matplotlib.backends.backend_agg",
    "IPython", "ipykernel.kernelapp", "ipykernel.debugger",
)  # fmt: skip
# the setting that a kernel would make before it imports Matplotlib
INLINE = "module://matplotlib_inline.backend_inline"


def serve(root: Path) -> None:
    """Import all packages, and then fork a kernel for each line of the standard input."""
    from book import measured

    del sys.path[0]  # the folder in which this module was started
    for name in IMPORTED:
        importlib.import_module(name)
    measured.keep(root)
    parse_once()
    with contextlib.suppress(ImportError):  # a book without models lacks this package
        if (
            os.environ["OMP_NUM_THREADS"] == "1"
        ):  # threads that have worked are not copied, and the copy would wait for them
            load_once()
    gc.collect()
    gc.freeze()  # so that the garbage collector does not visit these objects again in each kernel
    signal.signal(signal.SIGCHLD, gone)
    for line in sys.stdin:
        kernel = os.fork()
        if not kernel:
            become(**json.loads(line))
        print(kernel, flush=True)


def parse_once() -> None:
    """Cache the parsing of TeX in figures.

    Matplotlib remembers only fifty texts, and forgets them with each figure.
    """
    from matplotlib.mathtext import MathTextParser

    parsers = {parser._output_type: parser for parser in map(MathTextParser, ("path", "agg"))}
    parse = MathTextParser._parse_cached.__wrapped__
    parsed = functools.lru_cache(4096)(lambda kind, *given: parse(parsers[kind], *given))
    MathTextParser._parse_cached = lambda self, *given: parsed(self._output_type, *given)


def load_once() -> None:
    """Load the language model once for all kernels.

    The first caller in a kernel that asks for it with these settings on the CPU gets this model.
    """
    import torch

    from book import measured
    from helpers import compute, models

    load, state, ready = models.load, torch.get_rng_state(), []
    # without the model, its first user gets the error
    with contextlib.suppress(OSError, ValueError):
        ready.append(load(device="cpu"))
        measured.weights(ready[0].model)
    torch.set_rng_state(state)

    @functools.wraps(load)
    def loaded(*given: Any, **named: Any) -> models.LanguageModel:
        bound = inspect.signature(load).bind(*given, **named)
        bound.apply_defaults()
        of = bound.arguments
        plain = (of["name"], of["dtype"], of["attention"], of["tokenizer"])
        usual, device = plain == (models.DEFAULT, "fp32", "sdpa", None), of["device"]
        return (
            ready.pop()
            if ready and usual and compute.device(device).type == "cpu"
            else load(*given, **named)
        )

    models.load = loaded


def gone(*_: object) -> None:
    """Clean up after a kernel that has ended, and add its processor time to ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """Turn this process into a kernel with these arguments, in this folder and environment.

    We run what `python -m ipykernel_launcher` runs.
    """
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv[1:] = [
        *arguments,
        f"--IPKernelApp.parent_handle={os.getppid()}",
    ]  # our process ends together with that process
    try:
        runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
    finally:
        os._exit(0)


class Copy:
    """Represent a kernel process to its manager, although the process is not our child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        with contextlib.suppress(ProcessLookupError):
            return os.kill(self.pid, 0)  # None says that the process is still running
        return 0

    wait = poll  # called once the process has ended

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


_begun: list[subprocess.Popen] = []


def begin(env: dict[str, str], root: Path) -> None:
    """Start the process that `copies` will use.

    The process imports its packages while the caller continues.
    """
    if (
        not _begun and sys.platform == "linux"
    ):  # on other systems a copy of a process may not use the screen
        more = {"MPLBACKEND": INLINE, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        _begun.append(
            subprocess.Popen(
                [sys.executable, "-m", "book.kernels", str(root)], env=env | more, **pipes
            )
        )


@contextlib.contextmanager
def copies() -> Iterator[type[AsyncKernelManager]]:
    """Yield a manager of kernels that are copies of the process that `begin` started.

    The process ends with the block. If `begin` was not called, we yield an ordinary manager.
    """
    if not _begun:
        yield AsyncKernelManager
        return
    with _begun.pop() as server:

        class Provisioner(LocalProvisioner):
            async def launch_kernel(self, cmd, **given):
                request = {"arguments": cmd[3:], "cwd": str(given["cwd"]), "env": given["env"]}
                print(json.dumps(request), file=server.stdin, flush=True)
                self.process = Copy(int(server.stdout.readline()))
                self.pid = self.pgid = self.process.pid
                self.cwd = given["cwd"]
                return self.connection_info

        class Manager(AsyncKernelManager):
            async def _async_pre_start_kernel(self, **given):
                self.provisioner = Provisioner(kernel_spec=self.kernel_spec, parent=self)
                return await super()._async_pre_start_kernel(**given)

        yield Manager
        server.stdin.close()


def counted(root: Path) -> tuple[int, int]:
    """Return how often the kernels used a stored result and how often they measured one.

    We count since the last call of this function (see `measured`).
    """
    files = [root / "_build/measured" / what for what in ("taken", "measured")]
    sizes = [file.stat().st_size if file.exists() else 0 for file in files]
    for file in files:
        file.unlink(missing_ok=True)
    return sizes[0], sizes[1]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
