"""Running a report: an estimate first, each section kept as it is done, memory that runs out met with a smaller piece."""

import datetime
import errno
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from helpers import data, models, require
from helpers.claims import CLAIMS
from helpers.report import page
from helpers.report.sections import SECTIONS, Section
from helpers.report.store import FORMAT, check, committed, slug
from helpers.report.subject import PLANS, SEED, Peak, Plan, Subject, free_memory, seeded, versions

MEASURED, LEFT, SHORT_OF_MEMORY = "measured", "does not apply", "out of memory"
OVERHEAD = 1.6  # what a section takes beside its passes, measured on small models
ROOM = 20_000_000  # bytes that a report may take on the disk


class Files(NamedTuple):
    """Where a report was written."""

    page: Path
    numbers: Path


def seconds(text: str) -> float:
    """A budget in words as seconds.

    Raises:
        ValueError: it is no number of seconds, minutes or hours.

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
    costs = [CLAIM_TOKENS.get(name, 0) for name in section.claims if not (subject.committed and name in COMMITTED)]
    tokens += sum(cost for cost in costs if cost <= plan.claims)
    return 0.3 + OVERHEAD * tokens * second_a_token


# tokens that claims send through the model beside what their section has read, and the longest text that they need
CLAIM_TOKENS = {
    "first_token_is_a_sink": 64 * 18, "repeated_tokens_have_no_sink": 1, "sink_values_are_small": 48 * 14,
    "massive_activations_go_with_the_sink": 128 * 210, "sinks_slow_mixing": 128 * 70, "hiding_the_sink_breaks_the_model": 128 * 70,
    "early_tokens_have_more_influence": 48 * 14 * 30, "primacy_is_topology_recency_is_learned": 9000, "valley_survives_training": 9000,
    "rollout_is_no_jacobian": 9000, "low_precision_is_worse": 3 * 2048, "direction_of_rounding_decides": 6000, "ones_collapse": 550,
    "varied_digits_delay_collapse": 4500, "varied_digits_still_fall": 2500, "merging_alleviates_collapse": 2500,
    "commas_prevent_collapse": 3300, "collapse_in_type_1": 600, "first_digit_is_easier": 2400, "hint_helps": 2600,
    "alternation_helps": 2600, "groups_help": 2600, "prompt_order_matters": 5200, "guesses_are_round": 60_000,
    "first_layers_previous_last_diagonal": 600, "slashes_survive_random_tokens": 1000, "fast_pairs_are_noise": 119 * 13 * 8,
    "fast_pairs_serve_places": 6000, "fast_pairs_make_the_slash": 300,
}  # fmt: skip
# claims whose numbers lie in tables of the course for the embedded model
COMMITTED = {
    "massive_activations_go_with_the_sink", "sinks_slow_mixing", "hiding_the_sink_breaks_the_model",
    "early_tokens_have_more_influence", "primacy_is_topology_recency_is_learned", "valley_survives_training",
    "rollout_is_no_jacobian", "low_precision_is_worse", "direction_of_rounding_decides", "fast_pairs_are_noise",
    "fast_pairs_serve_places", "guesses_are_round",
}  # fmt: skip
LONGEST = {  # tokens
    "ones_collapse": 514, "varied_digits_delay_collapse": 504, "varied_digits_still_fall": 504, "commas_prevent_collapse": 640,
    "collapse_in_type_1": 640, "low_precision_is_worse": 64, "direction_of_rounding_decides": 64,
    "first_digit_is_easier": 430, "hint_helps": 430, "alternation_helps": 430, "groups_help": 430, "prompt_order_matters": 430,
    "merging_alleviates_collapse": 260, "guesses_are_round": 2000, "first_token_is_a_sink": 64, "repeated_tokens_have_no_sink": 64,
    "massive_activations_go_with_the_sink": 128, "sinks_slow_mixing": 128, "hiding_the_sink_breaks_the_model": 128,
    **dict.fromkeys(
        ["sink_values_are_small", "early_tokens_have_more_influence", "primacy_is_topology_recency_is_learned",
         "valley_survives_training", "rollout_is_no_jacobian"], 48,
    ),
}  # fmt: skip
EXACT = {  # distances that are smaller than the rounding of 16 bits
    "ones_collapse", "varied_digits_delay_collapse", "varied_digits_still_fall", "commas_prevent_collapse",
    "merging_alleviates_collapse", "collapse_in_type_1", "low_precision_is_worse", "direction_of_rounding_decides",
}  # fmt: skip
COPIES = {  # bytes a parameter of another copy: in 16 bits, or with random weights
    "low_precision_is_worse": 2, "direction_of_rounding_decides": 2,
    **dict.fromkeys(
        ["early_tokens_have_more_influence", "primacy_is_topology_recency_is_learned", "valley_survives_training",
         "rollout_is_no_jacobian"], 4,
    ),
}  # fmt: skip


def run(
    name: str,
    out: str | Path,
    *,
    device: str | None = None,
    dtype: str = "fp32",
    budget: str | None = None,
    sections: Sequence[str] | None = None,
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
    where = folder(out)
    start = time.perf_counter()
    subject = Subject(name, dtype, device)
    facts, target = subject.facts(), where / slug(subject.short)
    parts = target.with_name(f".{target.name}.parts")
    plan, costs = choose(subject, limit, names, _begun(parts, [budget, dtype]))
    settings = {"plan": plan.name, "budget": budget, "dtype": dtype, "seed": SEED, "sections": names}
    key = hashlib.sha256(json.dumps([FORMAT, facts, plan, versions()], sort_keys=True).encode()).hexdigest()
    kept = {each: found for each in names if (found := _part(parts, each, key))}
    left = [each for each in names if each not in kept]
    say(
        f"{subject.short}: {subject.parameters:,} parameters, plan {plan.name!r}, {len(left)} of {len(names)} sections to do, "
        f"about {spoken(sum(costs[each] for each in left))}"
    )
    if limit and sum(costs.values()) > limit:
        say(f"the shortest plan may take longer than {budget}")
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
        "command": _command(subject, budget, dtype, device),
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
    free = shutil.disk_usage(found).free
    if free < ROOM:
        raise OSError(
            errno.ENOSPC,
            f"the disk has {free / 1e6:.0f} MB free, a report may take {ROOM / 1e6:.0f}: free some, or choose another --out",
        )
    return found


def _command(subject: Subject, budget: str | None, dtype: str, device: str | None) -> str:
    given = [f"--{name} {value}" for name, value in (("budget", budget), ("device", device)) if value]
    given += [f"--dtype {dtype}"] if dtype != "fp32" else []
    return " ".join(["python -m helpers.report", subject.named, *given])


def _begun(parts: Path, asked: list) -> str | None:
    """The plan of a run that was stopped and was asked the same."""
    try:
        before, plan = json.loads((parts / "plan").read_text())
    except (OSError, ValueError):
        return None
    return plan if before == asked else None


def _part(parts: Path, name: str, key: str) -> dict | None:
    """A section that an earlier run kept, if it is of the same model, plan and versions."""
    try:
        found = json.loads((parts / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None
    return found["section"] if found.get("key") == key else None


def _section(section: Section, subject: Subject, plan: Plan) -> dict:
    """A section's numbers, its verdicts, seconds and memory; or why there are none."""
    start, work, smaller = time.perf_counter(), time.process_time(), list(PLANS[: PLANS.index(plan) + 1])
    found: dict[str, Any] = {"chapter": section.chapter, "title": section.title, "shown": section.shown}
    with Peak() as peak:
        while True:
            now = smaller.pop()
            seeded()
            try:
                found |= {"status": MEASURED, "plan": now.name, "why": None, "numbers": section.measure(subject, now)}
            except ValueError as error:
                found |= {"status": LEFT, "plan": now.name, "why": sentence(error), "numbers": None}
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
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
        _told(section, found, subject.short)
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


def sentence(error: Exception) -> str:
    """The first line of an error.

    >>> sentence(ValueError("one\\ntwo"))
    'one'
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def left_out(name: str, subject: Subject, plan: Plan) -> str | None:
    """Why a claim is not measured on this model, or None."""
    free, longest = subject.committed and name in COMMITTED, LONGEST.get(name, 256)
    if not free and CLAIM_TOKENS.get(name, 0) > plan.claims:
        return "left out for the budget"
    if subject.trained:
        return "this is about language models, and the model is a checkpoint of the course, which has the tokens of its task"
    if longest > subject.context:
        return f"this takes a text of {longest:,} tokens, and the context is {subject.context:,}"
    if CLAIMS[name].chapter == 5 and (why := subject.hides):
        return why
    if name in EXACT and subject.dtype not in ("fp32", "fp64"):
        return f"this takes exact states, and the model is in {subject.dtype}: its rounding would be measured"
    if name in COPIES and not free:
        needed = subject.parameters * COPIES[name]
        here = subject.model.model.device if name in EXACT else torch.device("cpu")
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
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            why = "the memory does not hold the lengths that this takes"
    return found | {"verdict": None, "measured": None, "why": why}


def spoken(spent: float) -> str:
    """A time in words.

    >>> spoken(12.3), spoken(200)
    ('12 s', '3 min 20 s')
    """
    whole = max(1, round(spent))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
