"""The command line: `python -m course.report MODEL … --out DIR`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from course.build import files
from course.report import own, page, runner, store
from course.report.sections import SECTIONS
from course.report.subject import PLANS
from course.training import threads
from helpers import require

MOST = 1_024  # CPU threads


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    found = argparse.ArgumentParser(
        prog="python -m course.report", description="The course's measures on any decoder."
    )
    which = (
        "a hub id, a folder, the embedded default by its name, a checkpoint of the course "
        "(copying, counting, …, or a .safetensors file), my-decoder.safetensors, or a config.json "
        "alone"
    )
    found.add_argument("models", nargs="+", metavar="MODEL", help=which)
    where = (
        "the folder for pages and JSON; a report that was stopped goes on, one that is there grows"
    )
    found.add_argument("--out", type=Path, required=True, metavar="DIR", help=where)
    found.add_argument(
        "--compare", action="store_true", help="one more page with all models side by side"
    )
    place = (
        "cuda, cpu, mps, or auto: the layers shared out over all devices; "
        "the best there is if left out"
    )
    found.add_argument("--device", help=place)
    found.add_argument(
        "--dtype",
        default="fp32",
        choices=["fp32", "fp16", "bf16", "fp64"],
        help="number type of the weights",
    )
    lengths = "shorter lengths, fewer texts and claims than the labs'"
    found.add_argument("--plan", choices=[each.name for each in PLANS], help=lengths)
    some = f"some of: {', '.join(SECTIONS)}"
    found.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=some)
    length = "the length of the text, for a config.json alone; its context if left out"
    found.add_argument("--tokens", type=int, metavar="N", help=length)
    threads = "CPU threads; as many as there are cores if left out"
    found.add_argument("--threads", type=int, default=os.cpu_count() or 1, help=threads)
    return found


def _say(said: str) -> None:
    print(said, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models and write their pages; whatever is wrong ends it with one sentence and
    status 2.
    """
    line = parser()
    given = line.parse_args(arguments)
    try:
        made = _run(given)
        if given.compare:
            target = given.out / f"{store.COMPARED}.html"
            files.write(target, page.html([store.read(each) for each in made]), "sections")
            _say(f"{target}: {len(made)} models")
    except (ValueError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, OSError) and error.filename:
            said = f"{said} ({error.filename})"
        line.exit(2, f"{line.prog}: {said.splitlines()[0]}\n")
    except KeyboardInterrupt:
        line.exit(130, f"{line.prog}: stopped; the same command goes on where it was\n")


def _run(given: argparse.Namespace) -> list[Path]:
    """The JSON of each model's report; of several, those that are there already are not made
    again.
    """
    if len(given.models) > page.MOST and given.compare:
        raise ValueError(f"--compare takes at most {page.MOST} models, not {len(given.models)}")
    require.integer("--threads", given.threads, 1, MOST)
    names = list(dict.fromkeys(given.models))
    own.alone(
        names, given.compare or given.device or given.dtype != "fp32" or given.plan or given.only
    )
    options = {
        "device": given.device,
        "dtype": given.dtype,
        "plan": given.plan,
        "sections": given.only,
        "tokens": given.tokens,
    }
    with threads(given.threads):
        made = [
            runner.run(name, given.out, **options, again=len(names) == 1, say=_say).numbers
            for name in names
        ]
    return list(dict.fromkeys(made))
