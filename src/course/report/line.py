"""The command line: `python -m course.report MODEL … --out DIR`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from course.experiments import sweep
from course.report import page, runner, store
from course.report.sections import SECTIONS
from course.report.subject import PLANS
from helpers import compute, data


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    found = argparse.ArgumentParser(prog="python -m course.report", description="The course's measures on any decoder.")
    found.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a hub id, a folder, the embedded default by its name, or a checkpoint of the course (copying, counting, …, or a .safetensors file)",
    )
    found.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="the folder for pages and JSON; a report that was stopped goes on",
    )
    found.add_argument("--compare", action="store_true", help="one more page with all models side by side")
    found.add_argument(
        "--device",
        help="cuda, cpu, mps, or auto: the layers shared out over all devices; the best there is if left out",
    )
    found.add_argument("--dtype", default="fp32", choices=list(compute.DTYPES), help="number type of the weights")
    found.add_argument(
        "--budget", metavar="TIME", help="a time such as 2m, which chooses lengths; left out, the labs' lengths"
    )
    found.add_argument(
        "--plan", choices=[each.name for each in PLANS], help="these lengths, whatever the time: the same report twice"
    )
    found.add_argument(
        "--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=f"some of: {', '.join(SECTIONS)}"
    )
    found.add_argument("--jobs", type=int, default=1, help="models at the same time, in processes of this machine")
    found.add_argument("--dask", metavar="ADDRESS", help="on the workers of this Dask scheduler instead")
    found.add_argument(
        "--threads", type=int, default=0, help="CPU threads of each model; as many as there are cores if left out"
    )
    return found


def one(model: str, out: str, device: str, dtype: str, budget: str, plan: str, only: str) -> sweep.Setting:
    """A report as a run of `course.experiments.sweep`: where it lies, and how long it took."""
    whose = Path(model).name
    files = runner.run(
        model,
        out,
        sections=only.split() or None,
        say=lambda said: _say(f"{whose}: {said}"),
        **_chosen(device, dtype, budget, plan),
    )
    report = store.read(files.numbers)
    return {"page": files.page.name, "peak_gb": round(report["peak_bytes"] / 1e9, 2)}


def _chosen(device: str | None, dtype: str, budget: str | None, plan: str | None) -> dict:
    return {"device": device or None, "dtype": dtype, "budget": budget or None, "plan": plan or None}


def _say(said: str) -> None:
    print(said, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models and write their pages; whatever is wrong ends it with one sentence and status 2."""
    line = parser()
    given = line.parse_args(arguments)
    try:
        made = _run(given)
        if given.compare:
            reports = [store.read(each) for each in made]
            target = given.out / "compare.html"
            data.write(target, page.html(reports), "sections")
            _say(f"{target}: {len(reports)} models")
    except (ValueError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, OSError) and error.filename:
            said = f"{said} ({error.filename})"
        line.exit(2, f"{line.prog}: {said.splitlines()[0]}\n")
    except KeyboardInterrupt:
        line.exit(130, f"{line.prog}: stopped; the same command goes on where it was\n")


def _distinct(models: Sequence[str]) -> None:
    """Nothing, where no two models write the same files."""
    files: dict[str, str] = {}
    for model in dict.fromkeys(models):
        file = store.slug(Path(model).name)
        if file in files:
            raise ValueError(
                f"{files[file]!r} and {model!r} would both be {file}.json: rename one, or give each its own --out"
            )
        files[file] = model


def _run(given: argparse.Namespace) -> list[Path]:
    chosen = _chosen(given.device, given.dtype, given.budget, given.plan)
    if len(given.models) > page.MOST and given.compare:
        raise ValueError(f"--compare takes at most {page.MOST} models, not {len(given.models)}")
    for name, value, least in (("jobs", given.jobs, 1), ("threads", given.threads, 0)):
        if value < least:
            raise ValueError(f"--{name} must be {least} or more, not {value}")
    if given.budget:
        runner.seconds(given.budget)
    threads = given.threads or max(1, (os.cpu_count() or 1) // given.jobs)
    _distinct(given.models)
    if len(given.models) == 1 and not given.dask:
        with compute.threads(threads):
            return [runner.run(given.models[0], given.out, sections=given.only, say=_say, **chosen).numbers]
    folder = runner.folder(given.out).resolve()
    settings = [
        {
            "model": model,
            "out": str(folder),
            **{k: v or "" for k, v in chosen.items()},
            "only": " ".join(given.only or []),
        }
        for model in dict.fromkeys(given.models)
    ]
    table = sweep.run(
        one, settings, folder / "runs.csv", jobs=given.jobs, dask=given.dask, threads=threads,
        notes=["Reports of course.report, a row a model; page and JSON lie beside this table"],
    )  # fmt: skip
    pages = table[table["model"].isin(given.models)]["page"]
    return [folder / Path(name).with_suffix(".json") for name in pages]
