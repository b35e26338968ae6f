"""Run the command line `python -m course.report MODEL … --out DIR`."""

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

MOST = 1_024  # the largest number of CPU threads


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command's arguments."""
    line = argparse.ArgumentParser(
        prog="python -m course.report",
        description="Measure a decoder as the chapters do, and write a page about it.",
    )
    which = (
        "a hub id such as org/name, a folder with weights, the embedded model by its name, a "
        "checkpoint of the course (copying, counting, … or its .safetensors file), your "
        "my-decoder.safetensors, or only a config.json"
    )
    line.add_argument("models", nargs="+", metavar="MODEL", help=which)
    where = "the folder for the page and its JSON; a report that was interrupted continues there"
    line.add_argument("--out", type=Path, required=True, metavar="DIR", help=where)
    line.add_argument(
        "--compare",
        action="store_true",
        help="also write a page that shows all models side by side",
    )
    place = (
        "cuda, cpu, mps, or auto, which spreads the layers over all devices; "
        "the default is the best device found"
    )
    line.add_argument("--device", help=place)
    line.add_argument(
        "--dtype",
        default="fp32",
        choices=["fp32", "fp16", "bf16", "fp64"],
        help="floating-point format of the weights (default: fp32)",
    )
    lengths = "how much to measure (full uses the labs' lengths, short and middle take less time)"
    line.add_argument("--plan", choices=[plan.name for plan in PLANS], help=lengths)
    some = f"measure only these sections, chosen from {', '.join(SECTIONS)}"
    line.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=some)
    length = "with only a config.json: the length of the text (default: the model's context)"
    line.add_argument("--tokens", type=int, metavar="N", help=length)
    threads = "CPU threads to use (default: one per core)"
    line.add_argument("--threads", type=int, default=os.cpu_count() or 1, help=threads)
    return line


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the models and write their pages.

    Any error ends the program with one sentence and exit status 2.
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
        line.exit(130, f"{line.prog}: stopped. Run the same command again to continue\n")


def _run(arguments: argparse.Namespace) -> list[Path]:
    """Measure each model and return the paths of the JSON files.

    If there are several models, those that already have a report are skipped.
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
