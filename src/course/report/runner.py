"""Running a report: each section kept as it is done, memory that runs out met with a smaller piece."""

import datetime
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course.report import page
from course.report.sections import SECTIONS, Need, Section
from course.report.store import FORMAT, check, committed, slug
from course.report.subject import PLANS, SEED, Plan, Subject, free_memory, seeded, versions, watched
from course.scorecard import CLAIMS
from helpers import data, models, require

MEASURED, REFUSED, SHORT_OF_MEMORY, FAILED = "measured", "does not apply", "out of memory", "failed"


class Files(NamedTuple):
    """Where a report was written."""

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
    say: Callable[[str], None] = lambda text: None,
) -> Files:
    """Measure a model and write its report: one page and one JSON in the folder `out`.

    A report that was stopped goes on where it stopped: each section is kept as it is done.

    Args:
        name: a hub id, a folder, or the embedded default, as `models.load` takes it; or a checkpoint of the course, by its
            name or by its .safetensors file.
        device, dtype: as `models.load` takes them.
        plan: a name of `PLANS`, which says lengths, texts and claims; None is the last, with the labs' settings.
        sections: names of `SECTIONS`; None is all.
        again: also where the report of just this is there already.
        say: is told what is done, a line each.

    Raises:
        ValueError: the model cannot be used, or an argument is wrong; the message says what to do.
        OSError: network, hub or disk refuse.
    """
    names = [require.choice("the name in sections", each, list(SECTIONS)) for each in sections or SECTIONS]
    plans = {each.name: each for each in PLANS}
    chosen = PLANS[-1] if plan is None else plans[require.choice("plan", plan, list(plans))]
    where = folder(out)
    start = time.perf_counter()
    subject = Subject(name, dtype, device)
    facts, target = subject.facts(), where / slug(subject.short)
    files = Files(target.with_name(f"{target.name}.html"), target.with_name(f"{target.name}.json"))
    settings = {
        "plan": chosen.name,
        "dtype": dtype,
        "seed": SEED,
        "threads": torch.get_num_threads(),
        "sections": names,
    }
    made = {"format": FORMAT, "model": facts, "settings": settings, "versions": versions()}
    there = _stored(files.numbers) or {}
    _check_target(target, there, facts)
    if not again and files.page.exists() and {key: there.get(key) for key in made} == json.loads(json.dumps(made)):
        return files
    parts = target.with_name(f".{target.name}.parts")
    key = hashlib.sha256(json.dumps([FORMAT, facts, chosen, versions()], sort_keys=True).encode()).hexdigest()
    done = {each: found for each in names if (found := _part(parts, each, key))}
    left = [each for each in names if each not in done]
    say(
        f"{subject.short}: {subject.parameters:,} parameters, plan {chosen.name!r}, {len(left)} of {len(names)} sections to do"
    )
    for count, each in enumerate(left, len(done) + 1):
        say(f"[{count}/{len(names)}] {SECTIONS[each].title}")
        done[each] = _section(SECTIONS[each], subject, chosen)
        parts.mkdir(exist_ok=True)
        data.write(parts / f"{each}.json", json.dumps({"key": key, "section": done[each]}), "sections")
    report = made | {
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": _command(subject, names, dtype, device, plan),
        "seconds": round(sum(each["seconds"] for each in done.values()), 1),
        "load_and_estimate_seconds": round(
            time.perf_counter() - start - sum(done[each]["seconds"] for each in left), 1
        ),
        "peak_bytes": max(each["bytes"] for each in done.values()),
        "sections": {each: done[each] for each in names},
    }
    data.write(files.numbers, json.dumps(check(report), indent=1, ensure_ascii=False) + "\n", "sections")
    data.write(files.page, page.html([report, *beside(report)]), "sections")
    shutil.rmtree(parts, ignore_errors=True)
    say(f"{files.page}: {spoken(report['seconds'])}, at most {report['peak_bytes'] / 1e9:.1f} GB")
    return files


def beside(report: dict) -> list[dict]:
    """The embedded default's report, which stands beside every other one."""
    default = models.DEFAULT
    return [] if report["model"]["name"] == default else [r for r in committed() if r["model"]["name"] == default]


def folder(out: str | Path) -> Path:
    """The folder for reports, made if it is not there.

    Raises:
        ValueError: it is a file.
        OSError: it cannot be made or written.
    """
    require.instance("out", out, str | Path, "a path")
    found = Path(out).expanduser()
    if found.exists() and not found.is_dir():
        raise ValueError(f"out must be a folder, and {str(out)!r} is a file")
    try:
        doing = "made"
        found.mkdir(parents=True, exist_ok=True)
        doing = "written"
        with tempfile.TemporaryFile(dir=found):
            pass
    except OSError as error:
        why = f"the folder {str(out)!r} cannot be {doing} ({error.strerror}): choose another --out"
        raise OSError(error.errno, why) from None
    return found


def _check_target(target: Path, there: dict, facts: dict) -> None:
    """Nothing, where a report of this model overwrites none of another.

    Raises:
        ValueError: there is a report of another model under this name.
    """
    known = there.get("model")
    if isinstance(known, dict) and known.get("configuration_sha256") != facts["configuration_sha256"]:
        raise ValueError(
            f"{target.name}.json is the report of another model ({known.get('architecture')}): choose another --out"
        )


def _command(subject: Subject, names: list[str], dtype: str, device: str | None, plan: str | None) -> str:
    options = [("device", device, None), ("plan", plan, None), ("dtype", dtype, "fp32")]
    options.append(("only", " ".join(names), " ".join(SECTIONS)))
    given = [f"--{name} {value}" for name, value, usual in options if value != usual]
    return " ".join(["python -m course.report", subject.named, *given])


def _part(parts: Path, name: str, key: str) -> dict | None:
    """A section that an earlier run kept, if it is of the same model, plan and versions."""
    found = _stored(parts / f"{name}.json")
    return found["section"] if found and found.get("key") == key else None


def _stored(path: Path) -> dict | None:
    """What an earlier run left in a file, or None."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _section(section: Section, subject: Subject, plan: Plan) -> dict:
    """A section's numbers, its verdicts, seconds and memory; or why there are none."""
    start, work = time.perf_counter(), time.process_time()
    found: dict[str, Any] = {"chapter": section.chapter, "title": section.title, "shown": section.shown}
    with watched() as peak:
        found |= _measured(section, subject, plan)
        found["claims"] = [_verdict(name, need, subject, plan) for name, need in section.claims.items()]
    if found["numbers"] is not None:
        try:
            told = section.tell(found["numbers"], subject.short)
            found |= {"sentence": told.sentence, "headline": told.headline, "level": told.level, "short": told.short}
        except Exception as error:
            found |= {"status": FAILED, "why": failed(error), "numbers": None}
    spent, work = time.perf_counter() - start, time.process_time() - work
    return found | peak | {"seconds": round(spent, 2), "processor_seconds": round(work, 2)}


def _measured(section: Section, subject: Subject, plan: Plan) -> dict:
    """A section's numbers, of shorter lengths where the memory runs out; or why there are none."""
    for now in reversed(PLANS[: PLANS.index(plan) + 1]):
        seeded()
        found = {"plan": now.name, "why": None, "numbers": None}
        try:
            if subject.unread and section.maps:
                raise ValueError(subject.unread)
            return found | {"status": MEASURED, "numbers": section.measure(subject, now)}
        except ValueError as error:
            return found | {"status": REFUSED, "why": sentence(error)}
        except Exception as error:  # whatever an architecture that nobody tried may raise
            if not out_of_memory(error):
                return found | {"status": FAILED, "why": failed(error)}
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    why = "the memory does not hold even the shortest lengths: take a smaller number type, or --device auto"
    return found | {"status": SHORT_OF_MEMORY, "why": why}


def out_of_memory(error: Exception) -> bool:
    """Whether an error is about memory: that of an accelerator, of Python, or of torch on the CPU.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def failed(error: Exception) -> str:
    """What stands on the page for an error that nobody foresaw.

    >>> failed(AttributeError("no v_proj"))
    'it could not be measured, AttributeError: no v_proj (a fault of the course: please report it)'
    """
    return f"it could not be measured, {type(error).__name__}: {sentence(error)[:200]} (a fault of the course: please report it)"


def sentence(error: Exception) -> str:
    """The first line of an error.

    >>> sentence(ValueError("one\\ntwo"))
    'one'
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def left_out(name: str, need: Need, subject: Subject, plan: Plan) -> str | None:
    """Why a claim is not measured on this model, or None."""
    free = subject.committed and need.committed
    if not free and need.tokens > plan.claims:
        return "left out by this plan"
    if subject.trained:
        return "this is about language models, and the model is a checkpoint of the course, which has the tokens of its task"
    if need.longest > subject.context:
        return f"this takes a text of {need.longest:,} tokens, and the context is {subject.context:,}"
    if CLAIMS[name].chapter == 5 and (why := subject.hides):
        return why
    if need.exact and subject.dtype not in ("fp32", "fp64"):
        return f"this takes exact states, and the model is in {subject.dtype}: its rounding would be measured"
    if need.copy and not free:
        needed = subject.parameters * need.copy
        here = subject.model.model.device if need.exact else torch.device("cpu")
        if needed > free_memory(here):
            return f"this takes another copy of the model, {needed / 1e9:.1f} GB of memory, and there is less"
    return None


def _verdict(name: str, need: Need, subject: Subject, plan: Plan) -> dict:
    """A claim of the course about language models, measured on this one; or why it was not."""
    claim = CLAIMS[name]
    found = {
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
            measured = claim.measure(subject.model)
            return found | {"verdict": measured.verdict, "measured": measured.measured, "why": None}
        except ValueError as error:
            why = sentence(error)
        except Exception as error:
            short = "the memory does not hold the lengths that this takes"
            why = short if out_of_memory(error) else failed(error)
    return found | {"verdict": None, "measured": None, "why": why}


def spoken(spent: float) -> str:
    """A time in words.

    >>> spoken(12.3), spoken(200)
    ('12 s', '3 min 20 s')
    """
    whole = max(1, round(spent))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
