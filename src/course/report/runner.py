"""Run a report, section by section.

Each section is stored as soon as it is measured. If memory runs out, we measure a section again at
a smaller size.
"""

import datetime
import hashlib
import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course.build.files import stored, writable, write
from course.evidence.rules import UNABLE
from course.report import configuration, configured, own, page, preconditions, store
from course.report.sections import SECTIONS, Need, Section
from course.report.store import FORMAT, HASHES, check, committed, slug
from course.report.subject import (
    PLANS,
    SEED,
    Plan,
    Subject,
    free_memory,
    seeded,
    sentence,
    versions,
    watched,
)
from course.scorecard import CLAIMS
from helpers import compute, models, require

BESIDE = 6  # the largest number of reports on the page of one model
MEASURED, REFUSED, SHORT_OF_MEMORY, FAILED = "measured", "does not apply", "out of memory", "failed"


class Files(NamedTuple):
    """Hold the paths of a report's page and JSON file."""

    page: Path
    numbers: Path


def run(
    name: str,
    out: str | Path,
    *,
    device: str | None = None,
    dtype: str = "fp32",
    plan: str | None = None,
    sections: Sequence[str] | None = None,
    again: bool = True,
    tokens: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Files:
    """Measure a model and write its report, one page and one JSON file, into the folder `out`.

    A report that was interrupted continues where it stopped, because each section is stored when it
    is complete. If the report already exists, new sections are added, and old ones are kept or
    measured again. With other weights, another plan, another floating-point format or other
    versions, we write a separate report in the same folder.

    Args:
        name: the model to measure. This is a hub id, a folder or the embedded default, as in
            `models.load`, or a checkpoint of the course, as its name or its .safetensors file. It
            can also be the .safetensors file of a reader's own decoder, which has only one plan, or
            a config.json, whose page shows what follows without weights.
        device, dtype: as in `models.load`.
        plan: a name in `PLANS`, which fixes lengths, texts and claims. None selects the last plan,
            which has the labs' settings.
        sections: names in `SECTIONS`, or None for all.
        again: whether to measure sections again that the report already has.
        tokens: the length of the text, only for a config.json. None selects its context length.
        say: a function that is called with each line about the progress.

    Raises:
        ValueError: if the model cannot be used, an argument is wrong, or another file is in the
            way. The message says what to do.
        OSError: if a file cannot be downloaded or written.
    """
    names = [
        require.choice("the name in sections", section, list(SECTIONS))
        for section in sections or SECTIONS
    ]
    plans = {section.name: section for section in PLANS}
    chosen = PLANS[-1] if plan is None else plans[require.choice("plan", plan, list(plans))]
    where = folder(out)
    if tokens is not None and not configuration.takes(name):
        raise ValueError("tokens applies only to a config.json. Leave out --tokens")
    if configuration.takes(name):
        return Files(*configured.run(name, where, say, tokens))
    own.alone([name], device or dtype != "fp32" or plan or sections)
    if own.takes(name):
        return Files(*own.run(name, where, say))
    start = time.perf_counter()
    subject = Subject(name, dtype, device)
    settings = {"plan": chosen.name, "dtype": dtype, "seed": SEED}
    report_head: dict[str, Any] = {
        "format": FORMAT,
        "model": subject.facts(),
        "settings": settings,
        "versions": versions(),
    }
    numbers, earlier = store.place(where, report_head)
    files = Files(writable(where / f"{slug(subject.short)}.html"), numbers)
    known = earlier["sections"] if earlier else {}
    if not again and files.page.exists() and {*names} <= {*known}:
        return files
    of = [
        report_head["format"],
        *(report_head["model"][section] for section in HASHES),
        chosen,
        settings,
        report_head["versions"],
    ]
    key = hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()
    parts = where / f".{slug(subject.short)}-{key[:12]}.parts"
    done = {section: part for section in names if (part := stored(parts / f"{section}.json"))}
    left = [section for section in names if section not in done]
    say(
        f"{subject.short}: {subject.parameters:,} parameters, plan {chosen.name!r}, "
        f"{len(left)} of {len(names)} sections to do"
    )
    how = {
        "command": _command(subject, names, dtype, device, plan),
        "on": report_head["model"]["device"],
    }
    how["on"] += f", {torch.get_num_threads()} thread" + (
        "s" if torch.get_num_threads() > 1 else ""
    )
    for count, section in enumerate(left, len(done) + 1):
        say(f"[{count}/{len(names)}] {SECTIONS[section].title}")
        done[section] = _section(SECTIONS[section], subject, chosen) | how | {"made": _now()}
        parts.mkdir(exist_ok=True)
        write(parts / f"{section}.json", json.dumps(done[section]), "sections")
    loading = round(
        time.perf_counter() - start - sum(done[section]["seconds"] for section in left), 1
    )
    both = known | done
    report = report_head | {
        "made": _now(),
        "seconds": round(sum(section["seconds"] for section in both.values()), 1),
        "load_and_estimate_seconds": loading,
        "peak_bytes": max(section["bytes"] for section in both.values()),
        "sections": {section: both[section] for section in SECTIONS if section in both},
    }
    write(files.numbers, json.dumps(check(report), indent=1, ensure_ascii=False) + "\n", "sections")
    write(files.page, page.html(_shown(where, report)), "sections")
    shutil.rmtree(parts, ignore_errors=True)
    say(f"{files.page}: {spoken(report['seconds'])}, at most {report['peak_bytes'] / 1e9:.1f} GB")
    return files


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _shown(where: Path, report: dict) -> list[dict]:
    """Return the reports to show on one page, with the given report first.

    The others are the reports in the same folder on a model of this name, and the report on the
    embedded default.
    """
    name = report["model"]["name"]
    shown = [
        report,
        *(
            report_
            for report_ in store.beside(where, name).values()
            if store.apart(report_, [report])
        ),
    ]
    default = (
        []
        if name == models.DEFAULT
        else [report_ for report_ in committed() if report_["model"]["name"] == models.DEFAULT]
    )
    return shown[: BESIDE - len(default)] + default


def folder(out: str | Path) -> Path:
    """Create the folder for reports if it does not exist, and return its path.

    Raises:
        ValueError: if it is a file.
        OSError: if it cannot be created or written.
    """
    require.instance("out", out, str | Path, "a path")
    path = Path(out).expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError(f"out must be a folder, but {str(out)!r} is a file")
    try:
        doing = "made"
        path.mkdir(parents=True, exist_ok=True)
        doing = "written"
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        why = f"the folder {str(out)!r} cannot be {doing} ({error.strerror}): choose another --out"
        raise OSError(error.errno, why) from None
    return path


def _command(
    subject: Subject, names: list[str], dtype: str, device: str | None, plan: str | None
) -> str:
    options = [("device", device, None), ("plan", plan, None), ("dtype", dtype, "fp32")]
    options.append(("only", " ".join(names), " ".join(SECTIONS)))
    flags = [f"--{name} {value}" for name, value, usual in options if value != usual]
    return " ".join(["python -m course.report", subject.named, *flags])


def _section(section: Section, subject: Subject, plan: Plan) -> dict:
    """Measure one section with its verdicts, and record the time and memory that it took.

    If the section cannot be measured, record the reason.
    """
    start, work = time.perf_counter(), time.process_time()
    result: dict[str, Any] = {
        "chapter": section.chapter,
        "title": section.title,
        "shown": section.shown,
    }
    with watched() as peak:
        result |= _measured(section, subject, plan)
        result["claims"] = [
            _verdict(name, need, subject, plan) for name, need in section.claims.items()
        ]
    if result["numbers"] is not None:
        try:
            tale = section.tell(result["numbers"], subject.short)
            result |= {
                "sentence": tale.sentence,
                "headline": tale.headline,
                "level": tale.level,
                "short": tale.short,
            }
        except Exception as error:
            result |= {"status": FAILED, "why": failed(error), "numbers": None}
    spent, work = time.perf_counter() - start, time.process_time() - work
    return result | peak | {"seconds": round(spent, 2), "processor_seconds": round(work, 2)}


def _measured(section: Section, subject: Subject, plan: Plan) -> dict:
    """Measure the numbers of one section, or return the reason why there are none.

    If memory runs out, we try again with shorter texts.
    """
    for shorter in reversed(PLANS[: PLANS.index(plan) + 1]):
        seeded()
        result = {"plan": shorter.name, "why": None, "numbers": None}
        try:
            if subject.unread and section.maps:
                raise ValueError(subject.unread)
            return result | {"status": MEASURED, "numbers": section.measure(subject, shorter)}
        except ValueError as error:
            return result | {"status": REFUSED, "why": refusal(error)}
        except Exception as error:  # an untested architecture may raise any error
            if not compute.is_out_of_memory(error):
                return result | {"status": FAILED, "why": failed(error)}
            compute.empty_cache()
    why = (
        "the memory does not hold even the shortest lengths: choose a smaller dtype, or --device "
        "auto"
    )
    return result | {"status": SHORT_OF_MEMORY, "why": why}


def failed(error: Exception) -> str:
    """Write a sentence for the page about an unexpected error.

    >>> failed(AttributeError("no v_proj"))
    'it could not be measured, AttributeError: no v_proj (a fault of the course: please report it)'
    """
    return (
        f"it could not be measured, {type(error).__name__}: {sentence(error)[:200]} (a fault of "
        "the course: please report it)"
    )


def refusal(error: ValueError) -> str:
    """Write why a measure does not apply to a model.

    The sentence is that of the course, or that of the model's code with a note that says so.
    """
    raised = traceback.extract_tb(error.__traceback__)[-1:]
    is_ours = all(
        {"course", "helpers", "tests"} & {*Path(frame.filename).parts} for frame in raised
    )
    return (
        sentence(error)
        if is_ours
        else f"the model's code in transformers does not do this ({sentence(error)})"
    )


def left_out(name: str, need: Need, subject: Subject, plan: Plan) -> str | None:
    """Return why a claim is not measured on this model, or None if it is measured."""
    free = subject.committed and need.committed
    if not free and need.tokens > plan.claims:
        return "left out by this plan"
    if subject.trained:
        return (
            "this is about language models, and the model is a checkpoint of the course, which "
            "has the tokens of its task"
        )
    if need.longest > subject.context:
        return (
            f"this section needs a text of {need.longest:,} tokens, but the context is "
            f"{subject.context:,}"
        )
    if CLAIMS[name].chapter == 5 and (why := subject.hides):
        return why
    if need.exact and subject.dtype not in ("fp32", "fp64"):
        return (
            f"this takes exact states, and the model is in {subject.dtype}: "
            "its rounding would be measured"
        )
    if need.copy and not free:
        needed = subject.parameters * need.copy
        device = subject.model.model.device if need.exact else torch.device("cpu")
        if needed > free_memory(device):
            return (
                f"this needs another copy of the model, {needed / 1e9:.1f} GB of memory, but "
                "there is less"
            )
    return None


def _verdict(name: str, need: Need, subject: Subject, plan: Plan) -> dict:
    """Measure one of the course's claims about language models on this model.

    If the claim cannot be measured, return the reason instead of a verdict.
    """
    claim = CLAIMS[name]
    result = {
        "name": name,
        "statement": claim.statement,
        "source": claim.source.name,
        "where": claim.where,
        "shown": claim.shown,
    }
    why = left_out(name, need, subject, plan)
    if why is None:
        seeded()
        try:
            if reason := preconditions.unable(need, subject):
                return result | {"verdict": UNABLE, "measured": reason, "why": None}
            measured = claim.measure(subject.model)
            reason = (
                None
                if need.null
                else preconditions.agrees_with_nothing(name, measured.verdict, measured.nulls)
            )
            if reason:
                return result | {
                    "verdict": UNABLE,
                    "measured": f"{measured.measured}; {reason}",
                    "why": None,
                }
            return result | {
                "verdict": measured.verdict,
                "measured": measured.measured,
                "why": None,
            }
        except ValueError as error:
            why = refusal(error)
        except Exception as error:
            short = "the memory does not hold the lengths that this takes"
            why = short if compute.is_out_of_memory(error) else failed(error)
    return result | {"verdict": None, "measured": None, "why": why}


def spoken(spent: float) -> str:
    """Write a time in seconds as words.

    >>> spoken(12.3), spoken(200)
    ('12 s', '3 min 20 s')
    """
    whole = max(1, round(spent))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
