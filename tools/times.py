"""Measure the time of the two commands in a fresh clone, and write the result into the README.

    python tools/times.py [--runs 3] [book again check test sentence function]

The steps run in this order, each after the one before. `benchmarks/times.csv` keeps a row for each
with the median of the runs, and `make sync` writes the README's table from it. Processor times
count all processes that a step starts. Use an idle machine, because the load before a step is
recorded with its times and shown in the table.
"""

import argparse
import csv
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import joblib

from book.pages import ROOT

TABLE = ROOT / "benchmarks/times.csv"
PAGE, FIGURES = "chapters/glossary.md", "src/course/chapter3/figures.py"


def added(name: str, text: str) -> Callable[[Path], None]:
    """Return a function that changes a file of the clone by adding one line."""

    def change(clone: Path) -> None:
        # files written within one tick of the clock have the same time, and `make` sees no change
        time.sleep(0.1)
        with (clone / name).open("a") as file:
            file.write(text)

    return change


STEPS: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "book": ("`make book` from nothing, its environment included", "book", lambda clone: None),
    "again": ("`make book` again", "book", lambda clone: None),
    "check": ("`make check`", "check", lambda clone: None),
    "test": ("`make test` after a book", "test", lambda clone: None),
    "sentence": ("`make book` after a changed "
                 "sentence", "book", added(PAGE, "\nOne sentence more.\n")),
    "function": ("`make book` after a changed function of chapter "
                 "3", "book", added(FIGURES, "\n\ndef _more():\n    return 1\n")),
}  # fmt: skip


def processor() -> str:
    """Return the name of the processor, as the system reports it."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def timed(clone: Path, target: str) -> tuple[float, float] | None:
    """Measure how many seconds a target takes, on the clock and of the processor.

    The result is None if the target fails.
    """
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["make", f"PYTHON={sys.executable}", target], cwd=clone, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return print(f"make {target} failed: no time is kept for it", flush=True)
    return time.perf_counter() - began, sum(
        getattr(after, x) - getattr(before, x) for x in ("ru_utime", "ru_stime")
    )


def measure(
    steps: list[str], runs: int, times: dict[str, list[tuple[float, float, float]]]
) -> None:
    """Measure each requested step once more.

    We record the seconds on the clock, the seconds of the processor, and the load before the step.
    """
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder) / "course"
            subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
            if "book" not in steps:
                timed(clone, ".venv/.ready" if steps == ["check"] else "book")
            for step in (step for step in STEPS if step in steps):
                _, target, change = STEPS[step]
                change(clone)
                load = os.getloadavg()[0]
                if taken := timed(clone, target):
                    times.setdefault(step, []).append((*taken, load))
                    print(step, *map(round, taken), f"load {load:.1f}", flush=True)
                if step == "book" and taken:
                    shutil.copy(clone / "_build/times.csv", ROOT / "benchmarks/notebooks.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "steps",
        nargs="*",
        choices=[*STEPS, []],
        metavar="step",
        help=f"steps to time (default: all): {', '.join(STEPS)}",
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="runs of each step, whose median is kept (default: 1)"
    )
    options = parser.parse_args()
    rows = {row["step"]: row for row in csv.DictReader(TABLE.open())} if TABLE.is_file() else {}
    times: dict[str, list[tuple[float, float, float]]] = {}
    try:
        measure(options.steps or [*STEPS], options.runs, times)
    finally:  # if the user stops the script, the finished runs are kept
        write(rows, times)
    short = [step for step in options.steps or STEPS if len(times.get(step, ())) < options.runs]
    sys.exit(f"failed at least once: {', '.join(short)}" if short else 0)


def write(rows: dict[str, dict], times: dict[str, list[tuple[float, float, float]]]) -> None:
    """Write the medians into the table and the README."""
    where = {"cores": joblib.cpu_count(), "machine": processor(), "on": time.strftime("%Y-%m-%d")}
    for step, taken in times.items():
        clock, cpu, load = (
            round(statistics.median(column), 1) for column in zip(*taken, strict=True)
        )
        rows[step] = {
            "step": step,
            "what": STEPS[step][0],
            "clock": clock,
            "processor": cpu,
            "load": load,
            "runs": len(taken),
            **where,
        }
    with TABLE.open("w", newline="") as file:
        table = csv.DictWriter(file, ["step", "what", "clock", "processor", "load", "runs", *where])
        table.writeheader()
        table.writerows(rows[step] for step in STEPS if step in rows)
    subprocess.run([sys.executable, ROOT / "tools/sync.py"], check=True)


if __name__ == "__main__":
    main()
