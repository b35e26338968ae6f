"""Running a report: an estimate first, each section kept as it is done, memory that runs out met with a smaller piece."""

import datetime
import errno
import hashlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course.report import page
from course.report.sections import SECTIONS, Section
from course.report.store import FORMAT, check, committed, slug
from course.report.subject import PLANS, SEED, Peak, Plan, Subject, free_memory, seeded, versions
from course.scorecard import CLAIMS
from helpers import data, models, require

MAPS = ("sinks", "hiding", "heads", "frequencies", "silenced")  # sections that read attention head by head
MEASURED, LEFT, SHORT_OF_MEMORY, FAILED = "measured", "does not apply", "out of memory", "failed"
OVERHEAD = 1.6  # what a section takes beside its passes, measured on small models
ROOM = 20_000_000  # bytes that a report may take on the disk


class Files(NamedTuple):
    """Where a report was written."""

    page: Path
    numbers: Path


def seconds(text: str) -> float:
    """A budget in words as seconds.

    >>> seconds("10m"), seconds("90s"), seconds("1.5h")
    (600.0, 90.0, 5400.0)
    """
    require.text("budget", text)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if not found or float(found[1]) == 0:
        raise ValueError(f"budget must be a time such as 90s, 10m or 1h, not {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def choose(
    subject: Subject, budget: float | None, names: Sequence[str] = tuple(SECTIONS), begun: str | None = None
) -> tuple[Plan, dict[str, float]]:
    """The largest plan whose estimate fits the budget, or the one that was begun; and its estimate by section in seconds."""
    each = subject.second_a_token()
    known = {plan.name: {name: estimate(SECTIONS[name], plan, subject, each) for name in names} for plan in PLANS}
    fit = [plan for plan in PLANS if budget is None or sum(known[plan.name].values()) <= budget]
    plan = next((plan for plan in PLANS if plan.name == begun), [PLANS[0], *fit][-1])
    return plan, known[plan.name]


def estimate(section: Section, plan: Plan, subject: Subject, second_a_token: float) -> float:
    """About how many seconds a section takes."""
    tokens = section.cost(plan, subject)
    needs = [NEEDS.get(name, Need()) for name in section.claims]
    costs = [need.tokens for need in needs if not (subject.committed and need.committed)]
    tokens += sum(cost for cost in costs if cost <= plan.claims)
    return 0.3 + OVERHEAD * tokens * second_a_token


class Need(NamedTuple):
    """What a claim needs of a model beside what its section has read."""

    tokens: int = 0  # that it sends through the model
    longest: int = 256  # tokens of its longest text
    committed: bool = False  # its numbers lie in a table of the course for the embedded model
    exact: bool = False  # it measures distances that are smaller than the rounding of 16 bits
    copy: int = 0  # bytes a parameter of another copy: in 16 bits, or with random weights


NEEDS = {
    "first_token_is_a_sink": Need(tokens=64 * 18, longest=64),
    "repeated_tokens_have_no_sink": Need(tokens=1, longest=64),
    "sink_values_are_small": Need(tokens=48 * 14, longest=48),
    "massive_activations_go_with_the_sink": Need(tokens=128 * 210, longest=128, committed=True),
    "early_tokens_have_more_influence": Need(tokens=48 * 14 * 30, longest=48, committed=True, copy=4),
    "primacy_is_topology_recency_is_learned": Need(tokens=9000, longest=48, committed=True, copy=4),
    "valley_survives_training": Need(tokens=9000, longest=48, committed=True, copy=4),
    "rollout_is_no_jacobian": Need(tokens=9000, longest=48, committed=True, copy=4),
    "sinks_slow_mixing": Need(tokens=128 * 70, longest=128, committed=True),
    "hiding_the_sink_breaks_the_model": Need(tokens=128 * 70, longest=128, committed=True),
    "low_precision_is_worse": Need(tokens=3 * 2048, longest=64, committed=True, exact=True, copy=2),
    "direction_of_rounding_decides": Need(tokens=6000, longest=64, committed=True, exact=True, copy=2),
    "ones_collapse": Need(tokens=550, longest=514, exact=True),
    "varied_digits_delay_collapse": Need(tokens=4500, longest=504, exact=True),
    "varied_digits_still_fall": Need(tokens=2500, longest=504, exact=True),
    "commas_prevent_collapse": Need(tokens=3300, longest=640, exact=True),
    "merging_alleviates_collapse": Need(tokens=2500, longest=260, exact=True),
    "collapse_in_type_1": Need(tokens=600, longest=640, exact=True),
    "first_digit_is_easier": Need(tokens=2400, longest=430),
    "hint_helps": Need(tokens=2600, longest=430),
    "alternation_helps": Need(tokens=2600, longest=430),
    "groups_help": Need(tokens=2600, longest=430),
    "prompt_order_matters": Need(tokens=5200, longest=430),
    "guesses_are_round": Need(tokens=60_000, longest=2000, committed=True),
    "first_layers_previous_last_diagonal": Need(tokens=600),
    "slashes_survive_random_tokens": Need(tokens=1000),
    "fast_pairs_make_the_slash": Need(tokens=300),
    "fast_pairs_are_noise": Need(tokens=119 * 13 * 8, committed=True),
    "fast_pairs_serve_places": Need(tokens=6000, committed=True),
    "other_heads_need_fast_pairs_least": Need(tokens=6000, committed=True),
}


def run(
    name: str,
    out: str | Path,
    *,
    device: str | None = None,
    dtype: str = "fp32",
    budget: str | None = None,
    sections: Sequence[str] | None = None,
    plan: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Files:
    """Measure a model and write its report: one page and one JSON in the folder `out`.

    A report that was stopped goes on where it stopped: each section is kept as it is done.

    Args:
        name: a hub id, a folder, or the embedded default, as `models.load` takes it; or a checkpoint of the course, by its
            name or by its .safetensors file.
        device, dtype: as `models.load` takes them.
        budget: a time such as "10m", which chooses lengths; None runs everything with the labs' settings.
        sections: names of `SECTIONS`; None is all.
        plan: a name of `PLANS`, whose lengths are then taken whatever the budget.
        say: is told what is done, a line each.

    Raises:
        ValueError: the model cannot be used, or an argument is wrong; the message says what to do.
        OSError: network, hub or disk refuse.
    """
    limit = None if budget is None else seconds(budget)
    names = (
        list(SECTIONS)
        if sections is None
        else [require.choice("the name in sections", s, list(SECTIONS)) for s in sections]
    )
    asked = None if plan is None else require.choice("plan", plan, [each.name for each in PLANS])
    where = folder(out)
    start = time.perf_counter()
    subject = Subject(name, dtype, device)
    facts, target = subject.facts(), where / slug(subject.short)
    _check_target(target, facts)
    parts = target.with_name(f".{target.name}.parts")
    plan, costs = choose(subject, limit, names, asked or _begun(parts, [budget, dtype]))
    settings = {
        "plan": plan.name,
        "budget": budget,
        "dtype": dtype,
        "seed": SEED,
        "threads": torch.get_num_threads(),
        "sections": names,
    }
    key = hashlib.sha256(json.dumps([FORMAT, facts, plan, versions()], sort_keys=True).encode()).hexdigest()
    kept = {each: found for each in names if (found := _part(parts, each, key))}
    left = [each for each in names if each not in kept]
    say(
        f"{subject.short}: {subject.parameters:,} parameters, plan {plan.name!r}, {len(left)} of {len(names)} sections to do, "
        f"about {spoken(sum(costs[each] for each in left))}"
    )
    if limit and sum(costs.values()) > limit:
        say(f"this plan may take longer than {budget}" + _advice())
    done: dict[str, dict] = {}
    for count, each in enumerate(names, 1):
        if each in kept:
            done[each] = kept[each]
            continue
        say(f"[{count}/{len(names)}] {SECTIONS[each].title}, about {spoken(costs[each])}")
        done[each] = _section(SECTIONS[each], subject, plan)
        parts.mkdir(exist_ok=True)
        data.write(parts / "plan", json.dumps([[budget, dtype], plan.name]), "sections")
        data.write(parts / f"{each}.json", json.dumps({"key": key, "section": done[each]}), "sections")
    report = {
        "format": FORMAT,
        "model": facts,
        "settings": settings,
        "versions": versions(),
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": _command(subject, budget, dtype, device, asked),
        "seconds": round(sum(each["seconds"] for each in done.values()), 1),
        "load_and_estimate_seconds": round(
            time.perf_counter() - start - sum(done[each]["seconds"] for each in left), 1
        ),
        "peak_bytes": max(each["bytes"] for each in done.values()),
        "sections": done,
    }
    files = Files(target.with_name(f"{target.name}.html"), target.with_name(f"{target.name}.json"))
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
        OSError: it cannot be made, or its disk is too full for a report.
    """
    require.instance("out", out, str | Path, "a path")
    found = Path(out).expanduser()
    if found.exists() and not found.is_dir():
        raise ValueError(f"out must be a folder, and {str(out)!r} is a file")
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"the folder {str(out)!r} cannot be made ({error.strerror}): choose another --out"
        ) from None
    try:
        with tempfile.TemporaryFile(dir=found):
            pass
    except OSError as error:
        raise OSError(
            error.errno, f"the folder {str(out)!r} cannot be written ({error.strerror}): choose another --out"
        ) from None
    free = shutil.disk_usage(found).free
    if free < ROOM:
        raise OSError(
            errno.ENOSPC,
            f"the disk has {free / 1e6:.0f} MB free, a report may take {ROOM / 1e6:.0f}: free some, or choose another --out",
        )
    return found


def _advice() -> str:
    return (
        "; threads that wait for each other on busy cores are slow: try --threads 1"
        if torch.get_num_threads() > 1
        else ""
    )


def _check_target(target: Path, facts: dict) -> None:
    """Nothing, where a report of this model overwrites none of another.

    Raises:
        ValueError: there is a report of another model under this name.
    """
    there = _left(target.with_name(f"{target.name}.json"))
    known = there.get("model") if isinstance(there, dict) else None
    if isinstance(known, dict) and known.get("configuration_sha256") != facts["configuration_sha256"]:
        raise ValueError(
            f"{target.name}.json is the report of another model ({known.get('architecture')}): choose another --out"
        )


def _command(subject: Subject, budget: str | None, dtype: str, device: str | None, plan: str | None) -> str:
    options = (("budget", budget), ("device", device), ("plan", plan))
    given = [f"--{name} {value}" for name, value in options if value]
    given += [f"--dtype {dtype}"] if dtype != "fp32" else []
    return " ".join(["python -m course.report", subject.named, *given])


def _begun(parts: Path, asked: list) -> str | None:
    """The plan of a run that was stopped and was asked the same."""
    found = _left(parts / "plan")
    return found[1] if found and found[0] == asked else None


def _part(parts: Path, name: str, key: str) -> dict | None:
    """A section that an earlier run kept, if it is of the same model, plan and versions."""
    found = _left(parts / f"{name}.json")
    return found["section"] if found and found.get("key") == key else None


def _left(path: Path) -> Any:
    """What an earlier run left in a file, or None."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _section(section: Section, subject: Subject, plan: Plan) -> dict:
    """A section's numbers, its verdicts, seconds and memory; or why there are none."""
    start, work, smaller = time.perf_counter(), time.process_time(), list(PLANS[: PLANS.index(plan) + 1])
    found: dict[str, Any] = {"chapter": section.chapter, "title": section.title, "shown": section.shown}
    with Peak() as peak:
        while True:
            now = smaller.pop()
            seeded()
            try:
                if subject.unread and section.name in MAPS:
                    raise ValueError(subject.unread)
                found |= {"status": MEASURED, "plan": now.name, "why": None, "numbers": section.measure(subject, now)}
            except ValueError as error:
                found |= {"status": LEFT, "plan": now.name, "why": sentence(error), "numbers": None}
            except Exception as error:  # whatever an architecture that nobody tried may raise
                if not out_of_memory(error):
                    found |= {"status": FAILED, "plan": now.name, "why": failed(error), "numbers": None}
                    break
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                if smaller:
                    continue
                found |= {
                    "status": SHORT_OF_MEMORY, "plan": now.name, "numbers": None,
                    "why": "the memory does not hold even the shortest lengths: take a smaller number type, or --device auto",
                }  # fmt: skip
            break
        found["claims"] = [_verdict(name, subject, plan) for name in section.claims]
    if found["numbers"] is not None:
        try:
            _told(section, found, subject.short)
        except Exception as error:
            found |= {"status": FAILED, "why": failed(error), "numbers": None}
    spent = time.perf_counter() - start
    work = time.process_time() - work
    return found | {
        "seconds": round(spent, 2),
        "processor_seconds": round(work, 2),
        "bytes": peak.accelerator or peak.bytes,
        "process_bytes": peak.bytes,
    }


def _told(section: Section, found: dict, name: str) -> None:
    told = section.tell(found["numbers"], name)
    found |= {"sentence": told.sentence, "headline": dict(told.headline), "level": told.level, "short": told.short}


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


def left_out(name: str, subject: Subject, plan: Plan) -> str | None:
    """Why a claim is not measured on this model, or None."""
    need = NEEDS.get(name, Need())
    free = subject.committed and need.committed
    if not free and need.tokens > plan.claims:
        return "left out for the budget"
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


def _verdict(name: str, subject: Subject, plan: Plan) -> dict:
    """A claim of the course about language models, measured on this one; or why it was not."""
    claim = CLAIMS[name]
    found = {
        "name": name,
        "statement": claim.statement,
        "source": claim.source.name,
        "where": claim.where,
        "shown": claim.shown,
    }
    why = left_out(name, subject, plan)
    if why is None:
        seeded()
        try:
            measured = claim.measure(subject.model)
            return found | {"verdict": measured.verdict, "measured": measured.measured, "why": None}
        except ValueError as error:
            why = sentence(error)
        except Exception as error:
            memory = out_of_memory(error)
            why = "the memory does not hold the lengths that this takes" if memory else failed(error)
    return found | {"verdict": None, "measured": None, "why": why}


def spoken(spent: float) -> str:
    """A time in words.

    >>> spoken(12.3), spoken(200)
    ('12 s', '3 min 20 s')
    """
    whole = max(1, round(spent))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
