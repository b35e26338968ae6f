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
    """Build the parser of the command line."""
    line = argparse.ArgumentParser(
        prog="python -m course.report", description="The course's measures on any decoder."
    )
    which = (
        "a hub id, a folder, the embedded default by its name, a checkpoint of the course "
        "(copying, counting, …, or a .safetensors file), my-decoder.safetensors, or a config.json "
        "alone"
    )
    line.add_argument("models", nargs="+", metavar="MODEL", help=which)
    where = (
        "the folder for pages and JSON; a report that was stopped goes on, one that is there grows"
    )
    line.add_argument("--out", type=Path, required=True, metavar="DIR", help=where)
    line.add_argument(
        "--compare", action="store_true", help="one more page with all models side by side"
    )
    place = (
        "cuda, cpu, mps, or auto: the layers shared out over all devices; "
        "the best there is if left out"
    )
    line.add_argument("--device", help=place)
    line.add_argument(
        "--dtype",
        default="fp32",
        choices=["fp32", "fp16", "bf16", "fp64"],
        help="number type of the weights",
    )
    lengths = "shorter lengths, fewer texts and claims than the labs'"
    line.add_argument("--plan", choices=[plan.name for plan in PLANS], help=lengths)
    some = f"some of: {', '.join(SECTIONS)}"
    line.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=some)
    length = "the length of the text, for a config.json alone; its context if left out"
    line.add_argument("--tokens", type=int, metavar="N", help=length)
    threads = "CPU threads; as many as there are cores if left out"
    line.add_argument("--threads", type=int, default=os.cpu_count() or 1, help=threads)
    return line


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models and write their pages; whatever is wrong ends it with one sentence and
    status 2.
    """
    line = parser()
    options = line.parse_args(arguments)
    try:
        reports = _run(options)
        if options.compare:
            target = options.out / f"{store.COMPARED}.html"
            files.write(target, page.html([store.read(path) for path in reports]), "sections")
            _say(f"{target}: {len(reports)} models")
    except (ValueError, OSError) as error:
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, OSError) and error.filename:
            message = f"{message} ({error.filename})"
        line.exit(2, f"{line.prog}: {message.splitlines()[0]}\n")
    except KeyboardInterrupt:
        line.exit(130, f"{line.prog}: stopped; the same command goes on where it was\n")


def _run(arguments: argparse.Namespace) -> list[Path]:
    """Measure each model and return the JSON of its report; of several models, those that are there
    already are not made again.
    """
    if len(arguments.models) > page.MOST and arguments.compare:
        raise ValueError(f"--compare takes at most {page.MOST} models, not {len(arguments.models)}")
    require.integer("--threads", arguments.threads, 1, MOST)
    names = list(dict.fromkeys(arguments.models))
    own.alone(
        names,
        arguments.compare
        or arguments.device
        or arguments.dtype != "fp32"
        or arguments.plan
        or arguments.only,
    )
    options = {
        "device": arguments.device,
        "dtype": arguments.dtype,
        "plan": arguments.plan,
        "sections": arguments.only,
        "tokens": arguments.tokens,
    }
    with threads(arguments.threads):
        reports = [
            runner.run(name, arguments.out, **options, again=len(names) == 1, say=_say).numbers
            for name in names
        ]
    return list(dict.fromkeys(reports))
