"""Run a function for each setting in a table of settings, and never run a setting twice.

The results are a CSV file with one row per run. A row is either complete or missing. The head of
the file (lines that begin with `# `) lists the commands that made it, with their seeds, versions,
machines and times. If a run was killed, start it again with the same call. The finished rows stay,
and the final table is the same. Budgets, in steps or epochs, are part of the settings. Every row
also says how many seconds it took.
"""

import contextlib
import csv
import datetime
import functools
import inspect
import io
import itertools
import math
import os
import pickle
import platform
import re
import shlex
import sys
import tempfile
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from pathlib import Path
from typing import NamedTuple

import filelock
import numpy as np
import pandas as pd
import torch

from course import training
from course.build import files
from helpers import compute, require

Value = str | int | float | bool | None
Setting = dict[str, Value]


class Table(NamedTuple):
    """Hold a table in the form in which it is stored on disk.

    Attributes:
        head: the lines at the top of the file, without their "# ".
        rows: the rows, each as a dictionary from columns to text.
    """

    head: list[str]
    rows: list[dict[str, str]]


class _Run(NamedTuple):
    """Hold one finished run.

    Attributes:
        setting: the setting of the run, as text.
        result: what the function returned, or `None` if it raised an error.
        seconds: how many seconds the run took.
        machine: the machine on which it ran.
        error: the error, or `None` if there was none.
    """

    setting: dict[str, str]
    result: Setting | None
    seconds: float
    machine: str
    error: BaseException | None


_Call = Callable[[list[Setting]], list[_Run]]


def grid(**values: Iterable[Value]) -> list[Setting]:
    """Return all combinations of the values, as settings. The last name changes fastest.

    >>> grid(depth=[2, 3], seed=[0, 1])[:3]
    [{'depth': 2, 'seed': 0}, {'depth': 2, 'seed': 1}, {'depth': 3, 'seed': 0}]
    """
    return [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]


def run(
    function: Callable[..., Setting],
    settings: Sequence[Setting],
    out: str | Path,
    *,
    command: str | None = None,
    notes: Sequence[str] = (),
    jobs: int = 1,
    dask: str | None = None,
    threads: int = 1,
    together: str | None = None,
) -> pd.DataFrame:
    """Call `function(**setting)` for each setting that has no row in `out`, and return the table.

    A row has the setting, the results of the function and the seconds that it took. The rows are in
    the order of the settings, even if the runs end in another order. If a run fails, the other runs
    continue, and the error is raised after them. Several commands may fill one table, one after
    another or at the same time.

    Args:
        settings: names and values of the function's arguments. All settings must have the same
            names.
        command: the command that repeats this run, for the head of the table. `None` stands for the
            present command line.
        notes: lines for the top of the head.
        jobs: the number of processes on this machine.
        dask: the address of a Dask scheduler ("tcp://host:8786"), whose workers run the rows
            instead of this machine. A worker runs one row at a time, so give each worker one
            thread.
        threads: the number of CPU threads of torch for each run.
        together: the name of an argument. Settings that differ only in this argument become one
            call. The call gets a list of the argument's values, and returns one row for each value.
            Its seconds are divided evenly among the rows.

    Raises:
        ValueError: if there are no settings, they are unequal or repeated, a value is neither text
            nor a finite number, the table has other columns, or an argument is out of range.
        OSError: if the disk is full, or the processes are killed again and again. Finished rows are
            kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/squares.csv"
    ...     table = run(lambda n: {"square": n * n}, grid(n=[2, 3]), path, command="none")
    >>> table[["n", "square"]].values.tolist()
    [[2, 4], [3, 9]]
    """
    settings = [
        *require.instance("settings", settings, Sequence | Iterator, "a list of dictionaries")
    ]
    notes = [
        require.text("notes", line)
        for line in require.instance("notes", notes, list | tuple, "a list of lines")
    ]
    command = f"command: {_typed() if command is None else require.text('command', command)}"
    for name, value in (("jobs", jobs), ("threads", threads)):
        require.integer(name, value, 1, MOST)
    if (dask is not None and require.text("dask", dask)) and ("://" not in dask or jobs > 1):
        raise ValueError(
            "dask must be the address of a running scheduler, for example "
            f"tcp://host:8786, and jobs must then be 1, not {dask!r} with jobs {jobs}"
        )
    _check(require.function("function", function), settings)
    out, keys = _place(out), [_as_text(setting) for setting in settings]
    if len({tuple(key.items()) for key in keys}) < len(keys):
        raise ValueError(
            "settings must differ from each other, but two of them are equal. Remove one"
        )
    done_rows = read(out).rows
    _check_rows(done_rows, list(keys[0]), out)
    missing = [
        setting for setting, key in zip(settings, keys, strict=True) if not _find(done_rows, key)
    ]
    calls, failed = _grouped(missing, together), []
    call = functools.partial(_call, function, threads, together)
    runs = _at_once(call, calls, jobs, dask) if dask or jobs > 1 else map(call, calls)
    for done in itertools.chain.from_iterable(compute.progress(runs, "runs", total=len(calls))):
        if done.error is None:
            _append(out, done, keys, command, notes)
        else:
            failed.append(done)
    if failed:
        failed[0].error.add_note(
            f"{len(failed)} of {len(missing)} runs failed, the first with {failed[0].setting}"
        )
        raise failed[0].error
    return pd.read_csv(out, comment="#")


def read(out: str | Path) -> Table:
    """Read a table from disk, with every value as text.

    If there is no file, the table is empty.

    Raises:
        ValueError: if a row has more or fewer values than there are columns.

    >>> read("a table that is not there").rows
    []
    """
    require.instance("out", out, str | Path, "a path")
    try:
        lines = Path(out).read_text(encoding="utf-8").splitlines() if Path(out).is_file() else []
    except ValueError:
        raise ValueError(f"out must be a table, but {out} is not a text file") from None
    content = [line for line in lines if not line.startswith("#")]
    if any("\0" in line for line in lines) or (len(content) == 1 and "," not in content[0]):
        raise ValueError(
            f"out must be a table, but {out} is another kind of file. It has not been "
            "changed. Choose another path"
        )
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise ValueError(
                f"out must be a complete table, but row {number} of {out} has too many or "
                "too few values"
            )
    if lines and not rows:
        raise ValueError(
            f"out must be a table, but {out} has no row. It has not been changed. "
            "Choose another path"
        )
    return Table([line[2:] for line in lines if line.startswith("#")], rows)


MOST = 1_024  # processes, or threads of one process
ANSWERS = 10  # seconds within which a scheduler must answer


def _check(function: Callable, settings: list[Setting]) -> None:
    """Raise an error if the function does not accept one of the settings."""
    if not settings or not all(isinstance(setting, dict) and setting for setting in settings):
        raise ValueError("settings must hold at least one row, each a dictionary of arguments")
    names = list(settings[0])
    if unequal := next((setting for setting in settings if list(setting) != names), None):
        raise ValueError(f"settings must all have the names {names}, not {list(unequal)}")
    try:
        inspect.signature(function).bind(**settings[0])
    except TypeError as error:
        raise ValueError(f"function must take the settings {', '.join(names)}: {error}") from None


def _place(out: str | Path) -> Path:
    """Check that a table can be written to this path, and return the path."""
    out = Path(require.instance("out", out, str | Path, "a path"))
    if (out.exists() and not out.is_file()) or not out.parent.is_dir():
        raise ValueError(
            f"out must name a regular file, or a new file in an existing folder, not {str(out)!r}"
        )
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            return out
    except OSError as error:
        where = f"{str(out.parent)!r} cannot: {error.strerror}"
        raise ValueError(f"out must be in a folder that we can write to, but {where}") from None


def _check_rows(rows: list[dict[str, str]], names: list[str], out: Path) -> None:
    """Raise an error if the existing rows of a table do not fit the settings.

    Each setting may occur only once, because a second row would count twice in every mean. Numbers
    must be decimal.
    """
    if rows and list(rows[0])[: len(names)] != names:
        raise ValueError(
            f"out must be a table of {names}, but the columns of {out} are {list(rows[0])}"
        )
    first: dict[tuple, int] = {}
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+", value):
                raise ValueError(
                    f"out must hold decimal numbers, but {name} in row {number} of {out} is "
                    f"{value!r}"
                )
        earlier = first.setdefault(tuple(row[name] for name in names), number)
        if earlier < number:
            raise ValueError(
                f"out must hold each setting only once, but rows {earlier} and {number} of "
                f"{out} have the same setting"
            )


def _as_text(values: Setting) -> dict[str, str]:
    """Convert the values to text for the table.

    Raises:
        ValueError: if a value is not one line of text, a finite number or a truth value.
    """
    for name, value in values.items():
        fine = value is None or isinstance(value, str | bool | int)
        fine = fine or (isinstance(value, float) and math.isfinite(value))
        if not fine or (isinstance(value, str) and (set(value) & set("#\r\n"))):
            raise ValueError(
                f"{name} must be one line of text without '#', or a finite number, not {value!r}"
            )
    return {name: "" if value is None else str(value) for name, value in values.items()}


def _find(rows: list[dict[str, str]], key: dict[str, str]) -> dict[str, str] | None:
    return next(
        (row for row in rows if all(row[name] == value for name, value in key.items())), None
    )


def _typed() -> str:
    program, *arguments = sys.orig_argv
    return shlex.join([Path(program).name, *arguments])


_ONE_AT_A_TIME = (
    threading.Lock()
)  # seeds and threads belong to the process, but a Dask worker may have several threads


def _grouped(settings: list[Setting], together: str | None) -> list[list[Setting]]:
    """Group the settings so that each group is one call of the function.

    Without `together`, each setting is one call. Otherwise all settings that differ only in
    `together` are one call.
    """
    if together is None:
        return [[setting] for setting in settings]
    if settings:
        require.choice("together", together, list(settings[0]))
    groups: dict[tuple, list[Setting]] = {}
    for setting in settings:
        groups.setdefault(tuple((k, v) for k, v in setting.items() if k != together), []).append(
            setting
        )
    return list(groups.values())


def _call(
    function: Callable, threads: int, together: str | None, group: list[Setting]
) -> list[_Run]:
    """Run one call in this process, and return the finished runs.

    An error is stored in the run and not raised.
    """
    with _ONE_AT_A_TIME, training.threads(threads):
        start = time.perf_counter()
        try:
            values = (
                {} if together is None else {together: [setting[together] for setting in group]}
            )
            returned, error = function(**group[0] | values), None
            results = [returned] if together is None else returned
            if not isinstance(results, list) or not all(
                isinstance(row, dict) and row for row in results
            ):
                raise ValueError(f"function must return a dictionary of results, not {returned!r}")
            if len(results) != len(group):
                raise ValueError(f"function must return {len(group)} rows, not {len(results)}")
            for result in results:
                if same := sorted({*result, "seconds"} & {*group[0]}):
                    raise ValueError(
                        f"settings must not have the same names as results, but both have {same}"
                    )
                _as_text(result)
        except Exception as caught:
            results, error = [None] * len(group), _portable(caught)
        spent, machine = (time.perf_counter() - start) / len(group), _machine()
        return [
            _Run(_as_text(s), r, spent, machine, error) for s, r in zip(group, results, strict=True)
        ]


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent between processes, with its traceback as text."""
    error.add_note("".join(traceback.format_tb(error.__traceback__)))
    try:
        pickle.loads(pickle.dumps(error))
        return error.with_traceback(None)
    except Exception:  # this error cannot be built again from its arguments
        return RuntimeError(f"{type(error).__name__}: {error}")


def _machine() -> str:
    names = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    names.append(f"{os.cpu_count()} CPU cores ({platform.machine()})")
    versions = (
        f"Python {platform.python_version()}, torch {torch.__version__}, NumPy {np.__version__}"
    )
    return f"{', '.join(names)}, {versions}"


@contextlib.contextmanager
def _workers(jobs: int, dask: str | None) -> Iterator[tuple[Executor, type[Exception]]]:
    """Provide an executor with processes on this machine or on a Dask cluster.

    Yields:
        The executor, and the type of error that it raises if its processes were killed.
    """
    try:
        if not dask:
            from joblib.externals.loky import ProcessPoolExecutor

            with ProcessPoolExecutor(jobs) as pool:
                yield pool, BrokenExecutor
            return
        import distributed
    except ImportError as error:
        raise ValueError(
            "jobs must be 1 and dask must be None, unless these packages are "
            "installed: pip install joblib dask distributed"
        ) from error
    try:
        client = distributed.Client(dask, timeout=ANSWERS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"dask must be the address of a running scheduler, not {dask!r}"
        ) from error
    with client:
        yield client.get_executor(pure=False), distributed.KilledWorker


def _at_once(
    call: _Call, groups: list[list[Setting]], jobs: int, dask: str | None
) -> Iterator[list[_Run]]:
    """Yield the finished runs of each call, in the order in which the calls end.

    If a process is killed, the missing runs start again, unless no run has ended since the last
    start.
    """
    while groups:
        before, futures = len(groups), {}
        with _workers(min(jobs, len(groups)), dask) as (pool, killed):
            try:
                futures = {pool.submit(call, group): group for group in groups}
                for future in as_completed(futures):
                    yield future.result()
                    groups.remove(futures[future])
            except killed as error:
                if len(groups) == before:
                    advice = "use fewer jobs if memory ran out, or start the same command again"
                    raise OSError(
                        f"the processes were killed before any run ended: {advice}"
                    ) from error
            finally:
                for future in futures:
                    future.cancel()


def _append(
    out: Path, done: _Run, keys: list[dict[str, str]], command: str, notes: Sequence[str]
) -> None:
    """Add a row to the table, or replace the old row of the same setting.

    The new file replaces the old one in one step, so no row is ever cut off.
    """
    row = done.setting | _as_text(done.result | {"seconds": round(done.seconds, 1)})
    name = f"sweep-{zlib.crc32(os.fsencode(out.resolve())):08x}.lock"
    with filelock.FileLock(Path(tempfile.gettempdir()) / name):
        head, rows = read(out)
        if rows and list(rows[0]) != list(row):
            raise ValueError(
                f"out must be a table of {list(row)}, but the columns of {out} are {list(rows[0])}"
            )
        order = {tuple(key.items()): place for place, key in enumerate(keys)}
        rows = [old for old in rows if not _find([old], done.setting)] + [row]
        rows.sort(key=lambda old: order.get(tuple((name, old[name]) for name in done.setting), -1))
        present = sum(bool(_find(rows, key)) for key in keys)
        head = [*(note for note in notes if note not in head), *head]
        _replace(out, _with_command(head, command, done.machine, keys, present), rows)


def _with_command(
    head: list[str], command: str, machine: str, keys: list[dict], present: int
) -> list[str]:
    """Return the head of a table with this command added.

    The machine is added below the command if it is new. While rows are missing, the head also says
    how many rows the table has.
    """
    start = head.index(command) if command in head else len(head)
    end = next((k for k in range(start + 1, len(head)) if not head[k].startswith("  ")), len(head))
    lines = [line for line in head[start + 1 : end] if not re.fullmatch(r"  \d+ of \d+ rows", line)]
    if not any(line.endswith(machine) for line in lines):
        seeds = list(dict.fromkeys(key["seed"] for key in keys)) if "seed" in keys[0] else ["none"]
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        lines.append(f"  {date}, seed {' '.join(seeds)}, {machine}")
    if present < len(keys):
        lines.append(f"  {present} of {len(keys)} rows")
    return [*head[:start], command, *lines, *head[end:]]


def _replace(out: Path, head: list[str], rows: list[dict[str, str]]) -> None:
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in head)
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write(out, text.getvalue())
