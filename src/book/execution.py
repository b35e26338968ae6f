"""Execute the notebooks, several at once, and store their outputs.

We keep the outputs until something changes on which they depend. A notebook's outputs are in
`_build/executed/<its path>/<key>.ipynb`. The key is a hash of the meaning of its code cells, of the
modules and tables that they reach (`course.build.dependencies`), of the version of every installed
package, of the processor's kernels and of anything else that affects the outputs. Text and comments
may change freely. Pages, decks and the table of times read the stored outputs. An error in a cell
fails the build with its traceback.

For example, a change in `course/chapter3/figures.py` makes us execute chapter 3's pages again. A
change of text executes nothing, and a change in `helpers.compute` executes everything. A table
whose name is computed counts as all of `data/`. The set-up cell is not part of the key.
"""

import asyncio
import csv
import hashlib
import os
import re
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import nbformat
import psutil
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from sphinx.errors import ExtensionError

from book import kernels
from course.build import dependencies

CELL_SECONDS = 600  # the longest time that one cell may take
MEMORY = 2.5e9  # bytes of memory for a notebook with a language model
# the number of stored executions per notebook, so that a return to a branch needs no new execution
KEPT = 3
HEAD = re.compile(r"<thead>.*?</thead>", re.S)
CELL = re.compile(r"<th\b[^>]*>.*?</th>", re.S)
EMPTY = re.compile(r"<th\b([^>]*)>(?:\s|&nbsp;)*</th>")


def environment(root: Path) -> dict[str, str]:
    """Return the environment variables for a notebook's kernel.

    The variables select this source tree, make widgets draw frame by frame, and limit the number of
    cores.
    """
    share = max(1, joblib.cpu_count() // at_once())
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")])
        ),
        "HELPERS_STILL": os.environ.get("HELPERS_STILL", "1"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(share)),
        "TQDM_DISABLE": "1",
    }


def at_once() -> int:
    """Return how many notebooks run at the same time.

    The number is one per core, as long as there is memory for them.
    """
    return max(1, min(joblib.cpu_count(), int(psutil.virtual_memory().total // MEMORY)))


def key(path: Path, root: Path) -> str:
    """Compute a hash of everything on which the outputs of the notebook at `path` depend.

    The key is stored with the outputs, and we read it from there as long as no file was touched.
    """
    note, touched = _folder(path, root) / ".key", _touched(path, root)
    if note.exists() and (noted := note.read_text().split())[0] == touched:
        return noted[1]
    digest = _key(path, root)
    note.parent.mkdir(parents=True, exist_ok=True)
    partial = note.with_name(f".key.{os.getpid()}")
    partial.write_text(f"{touched} {digest}")
    partial.replace(note)
    return digest


def _touched(path: Path, root: Path) -> str:
    """Compute a hash of all other inputs of the key, and of the state of the files.

    The state is the names, sizes and times of all files that may matter.
    """
    walked = (walk for folder in ("src", "data") for walk in os.walk(root / folder))
    every = [
        os.path.join(folder, name)
        for folder, _, names in walked
        # other processes write into these folders all the time
        if os.path.basename(folder) != "__pycache__"
        for name in names
    ]
    every += [__file__, path, *(root / name for name in ("requirements.txt", "constraints.txt"))]
    stats = ((p, os.stat(p)) for p in every)
    lines = sorted(f"{p} {s.st_ino} {s.st_size} {s.st_mtime_ns}" for p, s in stats)
    around = dependencies.machine(), environment(root)["HELPERS_STILL"], dependencies.__file__
    return hashlib.sha256("\n".join([*lines, *around]).encode()).hexdigest()[:16]


def _key(path: Path, root: Path) -> str:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    cells = [
        cell for cell in cells if "google.colab" not in cell.source
    ]  # the set-up cell does nothing in a build
    code = "\n".join(cell.source for cell in cells)
    may_fail = ["raises-exception" in cell.metadata.get("tags", []) for cell in cells]
    shows_lines = (
        any(may_fail) or "checks" in code
    )  # tracebacks and checks show the lines of the code, including comments
    return dependencies.key(
        code,
        *(cell.source if shows_lines else dependencies.meaning(cell.source) for cell in cells),
        *map(str, may_fail),
        dependencies.pins(root),
        dependencies.machine(),
        f"HELPERS_STILL={environment(root)['HELPERS_STILL']}",
        source=root / "src",
    )


def kept(path: Path, root: Path) -> Path:
    """Return the path of the executed notebook, whether or not the file exists yet."""
    return _folder(path, root) / f"{key(path, root)}.ipynb"


def _folder(path: Path, root: Path) -> Path:
    return root / "_build/executed" / path.relative_to(root).with_suffix("")


def executed(path: Path, root: Path) -> nbformat.NotebookNode:
    """Return the present notebook, with the stored outputs of its code."""
    notebook = nbformat.read(path, as_version=4)
    outputs = nbformat.read(kept(path, root), as_version=4)
    for kind in (notebook, outputs):
        kind.code = [cell for cell in kind.cells if cell.cell_type == "code"]
    for cell, done in zip(notebook.pop("code"), outputs.pop("code"), strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = one_head(output.data["text/html"])
    return notebook


def one_head(table: str) -> str:
    """Return the HTML of an output with a single head row in each of its tables.

    pandas writes the name of a frame's index into a second head row, below an empty cell. We move
    the name into the first row. A cell that stays empty names no column, so it becomes a `td`.

    >>> one_head("<thead><tr><th></th><th>a</th></tr><tr><th>n</th><th></th></tr></thead>")
    '<thead><tr><th>n</th><th>a</th></tr></thead>'
    >>> one_head("<thead><tr><th></th><th>a</th></tr></thead>")
    '<thead><tr><td></td><th>a</th></tr></thead>'
    """
    return HEAD.sub(lambda match: EMPTY.sub(r"<td\1></td>", _joined(match[0])), table)


def _joined(head: str) -> str:
    rows = [CELL.findall(row) for row in re.findall(r"<tr.*?</tr>", head, re.S)]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]) or "span=" in head:
        return head
    pairs = list(zip(*rows, strict=True))
    empty = [[bool(EMPTY.fullmatch(cell)) for cell in pair] for pair in pairs]
    if any(above == below for above, below in empty):
        return head
    cells = "".join(pair[is_empty] for pair, (is_empty, _) in zip(pairs, empty, strict=True))
    opening = re.search(r"<tr[^>]*>", head)[0]
    return f"<thead>{opening}{cells}</tr></thead>"


def execute(paths: list[Path], root: Path) -> None:
    """Execute the notebooks whose stored outputs are out of date, several at once.

    The longest ones start first.

    Raises:
        ExtensionError: if a cell raised an error. The message contains its traceback, and no
            further notebook is started.
    """
    waiting = [path for path in paths if not kept(path, root).exists()]
    print(
        f"{len(paths) - len(waiting)} of {len(paths)} notebooks are as they were executed",
        flush=True,
    )
    if not waiting:
        return
    waiting = longest_first(waiting, root)
    print(f"executing {len(waiting)}, {at_once()} at once", flush=True)
    start = time.time()
    kernels.counted(root)
    errors = finished(_all(waiting, root))
    if errors:
        raise ExtensionError("\n\n".join(errors))
    rows = times([*paths], root)
    with (root / "_build/times.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("notebook", "seconds", "executed"), *rows])
    print("\n".join(f"{seconds:7.0f} s  {name}" for name, seconds, _ in rows))
    print(
        f"{time.time() - start:7.0f} s  by the clock, for the {len(waiting)} that were executed "
        f"now",
        flush=True,
    )
    taken, anew = kernels.counted(root)
    print(f"{taken} of {taken + anew} measurements were taken as they were kept", flush=True)


def longest_first(paths: list[Path], root: Path) -> list[Path]:
    """Sort notebooks by the time that their last execution took, the longest first.

    Without an earlier execution here, we use the times of `make times`. If a long notebook started
    last, the build would wait for it alone. Editions come after all English pages, because they
    reuse their measurements.
    """
    table = root / "benchmarks/notebooks.csv"
    rows = csv.DictReader(table.read_text().splitlines()) if table.is_file() else ()
    known = {row["notebook"]: float(row["seconds"]) for row in rows}
    last = {
        path: max(
            (e["seconds"] for e in earlier(path, root)), default=known.get(_name(path, root), 1e9)
        )
        for path in paths
    }
    return sorted(
        paths, key=lambda path: (path.is_relative_to(root / "_build/editions"), -last[path])
    )


def finished(work: Coroutine[None, None, Any]) -> Any:
    """Run a coroutine and return its result.

    If this thread already runs an event loop, we use a new loop in another thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _all(paths: list[Path], root: Path) -> list[str]:
    errors: list[str] = []
    places = asyncio.Semaphore(at_once())

    async def one(path: Path, manager: type[AsyncKernelManager]) -> None:
        async with places:
            if errors:
                return
            start, name, done = time.time(), path.relative_to(root).with_suffix(""), "failed"
            try:
                await run(path, root, manager)
                done = "executed"
            except CellExecutionError as error:
                plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
                errors.append(f"{name} failed after {time.time() - start:.0f} s\n{plain}")
            except Exception as error:  # a kernel died, or a cell took too long
                errors.append(
                    f"{name} failed after {time.time() - start:.0f} s: {type(error).__name__}: "
                    f"{error}"
                )
            print(f"{done} {name} in {time.time() - start:.0f} s", flush=True)

    if len(paths) > 1:
        kernels.begin(environment(root), root)
    with kernels.copies() as manager:
        await asyncio.gather(*(one(path, manager) for path in paths))
    return errors


async def run(path: Path, root: Path, manager: type[AsyncKernelManager]) -> None:
    notebook = nbformat.read(path, as_version=4)
    target, start = kept(path, root), time.time()
    place = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        record_timing=False,
        resources=place,
        kernel_manager_class=manager,
    )
    client.extra_arguments = [
        "--IPKernelApp.log_level=ERROR"
    ]  # otherwise each kernel warns that TCP is not encrypted
    await client.async_execute(env=environment(root))
    notebook.metadata["executed"] = {
        "seconds": round(time.time() - start, 1),
        "on": time.strftime("%Y-%m-%d"),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    nbformat.write(notebook, partial)
    partial.replace(target)
    for old in sorted(target.parent.glob("*.ipynb"), key=lambda p: -p.stat().st_mtime)[KEPT:]:
        old.unlink()


def earlier(path: Path, root: Path) -> list[dict]:
    """Return the date and the duration of each stored execution of a notebook."""
    return [
        nbformat.read(p, as_version=4).metadata["executed"]
        for p in _folder(path, root).glob("*.ipynb")
    ]


def times(paths: list[Path], root: Path) -> list[tuple[str, float, str]]:
    """Return the name, the seconds and the day of each notebook's last execution.

    Only notebooks that were executed in their present form are included.
    """
    done = [(path, place) for path in sorted(paths) if (place := kept(path, root)).exists()]
    notes = [
        (path, nbformat.read(place, as_version=4).metadata["executed"]) for path, place in done
    ]
    return [(_name(path, root), n["seconds"], n["on"]) for path, n in notes]


def _name(path: Path, root: Path) -> str:
    home = root / "chapters"
    return str(
        path.relative_to(home if path.is_relative_to(home) else root / "_build").with_suffix("")
    )
