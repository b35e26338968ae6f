"""Measure the claims of all chapters, and show them with their verdicts as the scorecard."""

import functools
import json
import re
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import filelock
from IPython.display import HTML
from markupsafe import Markup

from course.build import dependencies, files
from course.build.templates import template
from course.chapter1 import claims as chapter1
from course.chapter1 import turns as _turns1  # noqa: F401  registers what might turn its claims
from course.chapter2 import claims as chapter2
from course.chapter2 import turns as _turns2  # noqa: F401
from course.chapter3 import claims as chapter3
from course.chapter3 import turns as _turns3  # noqa: F401
from course.chapter4 import claims as chapter4
from course.chapter5 import claims as chapter5
from course.chapter5 import turns as _turns5  # noqa: F401
from course.chapter6 import claims as chapter6
from course.chapter7 import claims as chapter7
from course.evidence import turns
from course.evidence.claims import CLAIMS, Claim, Found, read, together
from course.evidence.null_controls import SHORTER
from course.evidence.rules import (
    AGREE,
    ASKED_FIRST,
    CORRECTED,
    FAILS,
    HOLDS,
    LITTLE,
    OPEN,
    OTHERWISE,
    UNABLE,
    UNFIT,
    VERDICTS,
)
from course.evidence.sources import NOTE, TALK
from helpers import compute, data, require, style

TURNED = list(turns.TURNS)  # claims with an experiment that might refute them
CHAPTERS = (chapter1, chapter2, chapter3, chapter4, chapter5, chapter6, chapter7)
READ_INTO_THE_TALK = (
    "race_physical_help",
)  # interpretations of the source's last sentence, which this course tests
HERE = Path(__file__).parent
for _module in CHAPTERS:
    CLAIMS.update(read(HERE / f"{_module.__name__.split('.')[1]}.toml", _module))
LOOKS = {  # the sign and the colour of each verdict, whose words distinguish it without either
    HOLDS: ("✓", "#00805c"),
    CORRECTED: ("≈", "#0072b2"),
    FAILS: ("✗", "#d55e00"),
    OPEN: ("…", "#767676"),
    LITTLE: ("○", "#767676"),
    UNFIT: ("◊", "#b0518d"),
    UNABLE: ("?", "#b0518d"),
}
KINDS = {
    "claim": "claim{s} of the sources that a measurement could refute",
    "finding": "finding{s} of this course that a measurement could refute",
    "theorem": "theorem{s} or definition{s}, checked with numbers",
    "reading": "reading{s}: what somebody might read into the sources",
}
OPEN_VERDICTS = (UNFIT, UNABLE, OPEN, LITTLE)
STYLE, SCRIPT = ((HERE / name).read_text() for name in ("card.css", "card.js"))
CARD = template(HERE / "card.jinja", looks=LOOKS).module


class Badge(NamedTuple):
    """Hold a claim's verdict, the sign and colour for it, and the link to the claim's row."""

    verdict: str
    sign: str
    colour: str
    address: str


def claims(chapter: int | None = None) -> list[Claim]:
    """Return the claims of a chapter, or of all chapters, that have a measurement.

    A row that gathers several claims as parts is left out, because its parts are measured.
    """
    chosen = [
        claim for claim in CLAIMS.values() if not claim.parts and chapter in (None, claim.chapter)
    ]
    if not chosen:
        raise ValueError(
            f"chapter must be one of {sorted({claim.chapter for claim in CLAIMS.values()})}, "
            f"not {chapter!r}"
        )
    return chosen


def rows() -> list[Claim]:
    """Return the rows of the scorecard.

    A row is one claim, or it gathers several claims of one set-up as parts.
    """
    inside = {part for claim in CLAIMS.values() for part in claim.parts}
    return [claim for name, claim in CLAIMS.items() if name not in inside]


NOT_TURNED = "we did not run the experiment that would most likely refute this claim"


def measure(claim: Claim) -> Found:
    """Return what the claim's function measures, with a verdict.

    There is no verdict if the experiment that might refute the claim (its "turn") was not run. In a
    chapter with such experiments, a claim without one was measured only once, under the choices of
    its set-up, so it is not decided. In other chapters, verdicts rest on single measurements.
    """
    found = _measured(claim)
    if (
        claim.parts
        or found.verdict in OPEN_VERDICTS
        or claim.chapter not in chapters_with_turns()
        or turns.of(claim.name).outcome != turns.NOT_RUN
    ):
        return found
    return found._replace(verdict=LITTLE, words=NOT_TURNED)


def chapters_with_turns() -> set[int]:
    """Return the chapters whose claims have experiments that might refute them."""
    return {CLAIMS[name].chapter for name in turns.TURNS}


def _measured(claim: Claim) -> Found:
    """Measure a claim, or in the source tree read the stored measurement.

    The stored measurement is valid until something changes on which it depends. The verdict of a
    row with parts follows from the verdicts of its parts.
    """
    if claim.parts:
        verdicts = {part: measure(CLAIMS[part]).verdict for part in claim.parts}
        counts = Counter(verdicts.values())
        tally = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
        missing = "; ".join(CLAIMS[part].statement for part, v in verdicts.items() if v != HOLDS)
        words = f"these parts do not hold in full: {missing}" if missing else ""
        return Found(f"{len(verdicts)} parts: {tally}", together(verdicts.values()), words=words)
    place = _kept(claim)
    if place is None:
        return claim.measure()
    place.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(place.with_suffix(".lock")):
        if place.exists():
            stored = json.loads(place.read_text())
            stored["numbers"] = {name: tuple(pair) for name, pair in stored["numbers"].items()}
            return Found(**{name: value for name, value in stored.items() if name in Found._fields})
        began = time.perf_counter()
        new = claim.measure()
        taken = round(time.perf_counter() - began, 1)
        for old in place.parent.glob("*.json"):
            old.unlink()
        files.write(place, json.dumps(new._asdict() | {"seconds": taken}), "measurements")
        return new


def badge(name: str) -> Badge:
    """Return what other pages show next to a claim.

    The badge has the claim's verdict with sign and colour, and the address of the claim's row.

    >>> badge("width_bound").address.endswith("#width_bound")
    True
    """
    if name not in CLAIMS:
        raise ValueError(f"name must be one of the {len(CLAIMS)} claims, not {name!r}")
    verdict = measure(CLAIMS[name]).verdict
    page = "scorecard.html" if compute.building() else "scorecard.ipynb"
    return Badge(verdict, *LOOKS[verdict], f"{page}#{name}")


def _kept(claim: Claim) -> Path | None:
    """Return the file in which the measurement of a claim is stored.

    The result is None outside the source tree.
    """
    root = dependencies.tables().parent
    if not (root / "constraints.txt").is_file():
        return None
    chapter = claim.module.rpartition(".")[0]
    words = zlib.crc32(claim.measured.encode())
    return (
        root
        / "_build/claims"
        / claim.name
        / f"{_key(chapter, dependencies.pins(root))}-{words:08x}.json"
    )


def _seconds(claim: Claim) -> float | None:
    """Return how many seconds the stored measurement took, or None without one."""
    if claim.parts:
        return sum(_seconds(CLAIMS[part]) or 0 for part in claim.parts) or None
    place = _kept(claim)
    return json.loads(place.read_text()).get("seconds") if place and place.exists() else None


@functools.cache
def quotations() -> dict[str, tuple[str, str]]:
    """Return for each claim the words of the talk or of its author's note.

    The words are given in Chinese with the slide, and in English. They come from the row of
    data/sources.csv that the claim's section answers.
    """
    quoted = {}
    for row in data.table("sources").fillna("").itertuples():
        claim = CLAIMS.get(row.claim)
        source = {"talk": TALK, "note": NOTE}.get(row.document)
        is_asked_for = claim is not None and (
            claim.source is source or claim.name in READ_INTO_THE_TALK
        )
        if source and is_asked_for and not row.where and row.claim not in quoted:
            place = row.place.partition(",")[0] if row.document == "talk" else "note"
            quoted[row.claim] = (f"“{row.quotation}” ({place})", f"“{row.english}”")
    return quoted


@functools.cache
def _key(chapter: str, pins: str) -> str:
    """Return a hash of everything on which the measurements of a chapter's claims depend.

    The hash is computed only once, because that takes long.
    """
    return dependencies.key(f"from {chapter} import claims", pins, dependencies.machine())


def summary() -> HTML:
    """Show as a picture how many claims have each verdict.

    Its buttons filter the claims by verdict and chapter, without a kernel.
    """
    listed = [(kind(claim), claim.chapter, measure(claim).verdict) for claim in rows()]
    kinds, chapters, verdicts = (Counter(column) for column in zip(*listed, strict=True))
    bars = [
        _bar(name, Counter(v for key_, _, v in listed if key_ == key))
        for key, name in KINDS.items()
    ]
    chips = {
        "verdict": [(v, f"{LOOKS[v][0]} {v}", verdicts[v], LOOKS[v][1]) for v in VERDICTS],
        "kind": [
            (key, re.split(" that|[,:]", name.format(s="s"))[0], kinds[key], "currentColor")
            for key, name in KINDS.items()
        ],
        "chapter": [
            (k, f"chapter {k}", count, "currentColor") for k, count in sorted(chapters.items())
        ],
    }
    return HTML(CARD.summary(STYLE, SCRIPT, bars, chips, len(listed)))


def kind(claim: Claim) -> str:
    """Return the kind of a claim, one of `KINDS`.

    We count claims that a measurement could refute separately from claims that are proved or
    defined.
    """
    if claim.theorem:
        return "theorem"
    if claim.reading:
        return "reading"
    return "finding" if claim.own else "claim"


def _bar(name: str, count: Counter) -> tuple[str, list[tuple[str, int]]]:
    """Return one bar of the summary, as a description of the whole bar and a list of its parts.

    >>> _bar("reading{s}: what is read into it", Counter({"holds": 1}))[0]
    '1 reading: what is read into it: holds 1'
    """
    present = [(v, count[v]) for v in VERDICTS if count[v]]
    label = name.format(s="s" * (count.total() != 1))
    return f"{count.total()} {label}: {', '.join(f'{v} {n}' for v, n in present)}", present


def papers() -> HTML:
    """List all claims grouped by paper, each on one line with its details folded.

    Claims that do not hold come first. Claims that our measurements do not decide come at the end,
    without a paper.
    """
    groups: dict[str, list[Claim]] = {}
    for claim in rows():
        name = f"This course, chapter {claim.chapter}" if claim.own else claim.source.name
        groups.setdefault(
            UNDECIDED if measure(claim).verdict in OPEN_VERDICTS else name, []
        ).append(claim)
    if UNDECIDED in groups:
        groups[UNDECIDED] = groups.pop(UNDECIDED)  # undecided claims come last
    order = [FAILS, CORRECTED, HOLDS, UNFIT, UNABLE, OPEN, LITTLE]
    parts = []
    for name, group in compute.progress(groups.items(), "papers"):
        judged = sorted(
            ((claim, measure(claim)) for claim in group),
            key=lambda row: order.index(row[1].verdict),
        )
        counts = Counter(measured.verdict for _, measured in judged)
        listed = Markup("").join(_row(claim, measured) for claim, measured in judged)
        address = "" if group[0].own or name == UNDECIDED else group[0].source.url
        parts.append(
            CARD.paper(name, address, [(v, counts[v]) for v in order if counts[v]], listed)
        )
    every = json.dumps(records(), ensure_ascii=False).replace("</", "<\\/")
    return HTML(
        f'<div class="card-papers">{CARD.legend(turns.SIGNS)}{"".join(parts)}</div>'
        f'<script type="application/json" id="claims">{every}</script>'
    )


UNDECIDED = "Not decided here"


def records() -> list[dict]:
    """Return all rows and their parts as plain data, in the form of the site's `claims.json`."""
    listed = []
    for claim in CLAIMS.values():
        measured = measure(claim)
        row = (
            claim._asdict()
            | measured._asdict()
            | {"source": claim.source.name, "url": claim.source.url}
        )
        row |= {
            "kind": kind(claim),
            "address": f"chapters/scorecard.html#{claim.name}",
            "controls": controls(claim),
        }
        row |= {
            "models": models_of(claim.name),
            "seconds": _seconds(claim),
            "chapter": claim.chapter,
        }
        row |= {
            "quotation": list(quotations().get(claim.name, ())) or None,
            "correction": correction(measured),
        }
        if not claim.parts:
            row |= {
                "rule": claim.rule.text,
                "null": claim.rule.null,
                "calibration": calibration(claim),
            }
            row |= {"turn": turns.of(claim.name)._asdict(), "nothing": of_nothing(claim, measured)}
        listed.append(
            {
                key: value
                for key, value in row.items()
                if key not in ("function", "theorem", "reading")
            }
        )
    return listed


CONTROLS = ("random labels", "random weights", "another reader")
REFUSED = {  # why a kind of evidence needs no null control, or None if it needs one
    "theorem": (
        "nothing is learned",
        "holds for all weights, by proof",
        "the statement names its reader",
    ),
    "formula": ("nothing is learned", "nothing is trained", "the statement names its reader"),
    "quoted": ("nothing was run here",) * 3,
    "model": ("no labels here", None, None),
    "trained": (None, None, None),
}


_REFUSALS = {why for whys in REFUSED.values() for why in whys if why}


@functools.cache
def _controlled() -> dict[str, dict[str, str]]:
    rows = data.table("controls").fillna("").set_index("claim")
    return {str(name): dict(row) for name, row in rows.iterrows()}


def evidence(claim: Claim) -> str:
    """Return the kind of evidence for a claim, one of `REFUSED`.

    The kind comes from `data/controls.csv` or from the arguments of the claim's function.
    """
    named = _controlled().get(claim.name, {}).get("evidence")
    if named:
        return named
    if claim.theorem:
        return "theorem"
    return "model" if claim.asks_a_model else "formula"


def controls(claim: Claim) -> dict[str, str]:
    """Return the state of each null control in `CONTROLS` for a claim.

    The state says what was run, or why the control is not needed, or "not run".
    """
    if claim.parts:
        of_parts = [controls(CLAIMS[part]) for part in claim.parts]
        return {
            name: "; ".join(dict.fromkeys(of_part[name] for of_part in of_parts))
            for name in CONTROLS
        }
    done, refused = (
        _controlled().get(claim.name, {}),
        dict(zip(CONTROLS, REFUSED[evidence(claim)], strict=True)),
    )
    return {name: done.get(name) or refused[name] or "not run" for name in CONTROLS}


def correction(measured: Found) -> str:
    """Return the correction with which a claim holds, as its rule states it.

    The result is "" for a claim that needs no correction.
    """
    return measured.words if measured.verdict == CORRECTED else ""


@functools.cache
def _reported() -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """Read from `data/reports` the verdict on each claim for each model.

    If a report has no verdict on a claim, we return the reason.
    """
    verdicts = {}
    for path in sorted((data.folder() / "reports").glob("*.json")):
        report = json.loads(path.read_text())
        plan = report["settings"]["plan"]
        verdicts[report["model"]["name"] + ("" if plan == "full" else f" ({plan} plan)")] = {
            row["name"]: (row["verdict"], row["why"])
            for part in report["sections"].values()
            for row in part.get("claims") or []
        }
    return verdicts


def models_of(name: str) -> dict[str, str]:
    """Return the verdicts on a claim in `data/reports`, keyed by model."""
    return {
        model: verdicts[name][0]
        for model, verdicts in _reported().items()
        if name in verdicts and verdicts[name][0]
    }


def unasked(claim: Claim) -> dict[str, str]:
    """Return why some models in `data/reports` gave no verdict on a claim about language models.

    The reasons are keyed by model.

    >>> unasked(CLAIMS["first_token_is_a_sink"])
    {}
    """
    if claim.parts or not claim.asks_a_model:
        return {}
    missing = (None, "its report has not this section")
    answers = {model: verdicts.get(claim.name, missing) for model, verdicts in _reported().items()}
    return {model: why for model, (verdict, why) in answers.items() if not verdict}


YES_OR_NO = (
    "the rule asks a yes-or-no question, so no number says how near the evidence was to a threshold"
)
CONDITIONS = {  # what is decided by a number that is compared with a threshold
    "holds": "for the claim to hold",
    "part": "for the claim to hold with a correction",
    "each": "for a case to agree",
    "against": "for a case to go the other way",
} | dict.fromkeys(ASKED_FIRST, "for a verdict")


def _row(claim: Claim, measured: Found) -> Markup:
    """Write a claim's row on one line, with its measurement folded and a line for each part."""
    inner = Markup("").join(_row(CLAIMS[part], measure(CLAIMS[part])) for part in claim.parts)
    place = "part" if any(claim.name in row.parts for row in CLAIMS.values()) else "row"
    short, turned = _short(claim, measured), turns.of(claim.name)
    facts = _facts(claim, measured)
    more = _more(claim, measured)
    return CARD.row(claim, measured.verdict, kind(claim), place, short, inner, facts, more, turned)


def _facts(claim: Claim, measured: Found) -> dict[str, str]:
    """Return the facts that an opened row shows, keyed by their names.

    The facts are the correction, a short form of the measurement, what the claim survived, and
    where to look.
    """
    facts = {}
    if measured.words:
        name = "Correction" if measured.verdict == CORRECTED else "Why"
        facts[name] = _sentence(printed(measured.words))
    if not claim.parts:
        side = [(name, _digits(a), _digits(b)) for name, (a, b) in measured.numbers.items()]
        clauses = brief(measured.measured)
        facts["Measured"] = (CARD.numbers(side) if side else Markup("")) + _sentence(
            printed(clauses)
        )
        turned = turns.of(claim.name)
        if turned.outcome != turns.NOT_RUN:
            said = printed(f"{turned.asked}. {turned.measured}")
            facts[turned.outcome.capitalize()] = _sentence(said)
    facts["See"] = CARD.places(claim, section(claim), colab(claim))
    return facts


def _sentence(text: str) -> str:
    """Return a text with a capital letter at its beginning and a full stop at its end.

    >>> _sentence("in 3 of 4 cases, the gain is positive")
    'In 3 of 4 cases, the gain is positive.'
    """
    return text[:1].upper() + text[1:].rstrip(".") + "."


MOST_WORDS = 32  # the number of words of a measurement that an opened row shows at once


def brief(text: str, most: int = MOST_WORDS) -> str:
    """Shorten a measurement to its first clauses, at least one, within a limit of words.

    >>> brief("two of three fit; the third stands at 0.9; chance is 0.5", 8)
    'two of three fit'
    """
    clauses = re.split(r"(?<=;) |(?<=\.) (?=[A-Z])", text)
    chosen = clauses[:1]
    for clause in clauses[1:]:
        if len(" ".join([*chosen, clause]).split()) > most:
            break
        chosen.append(clause)
    return " ".join(chosen).rstrip(";")


def _more(claim: Claim, measured: Found) -> dict[str, str]:
    """Return what an opened row shows on request.

    The result has the whole measurement, the rule, and each null control that did not behave as
    expected. Everything else (all null controls, the calibration) is in `claims.json`.
    """
    kinds = {
        "theorem": "Theorem or definition, checked with numbers",
        "finding": "A finding of this course",
        "reading": "A reading that no source claims",
    }
    source = printed(", ".join(filter(None, ("" if claim.own else claim.source.name, claim.where))))
    facts = {"Source": "; ".join(filter(None, (kinds.get(kind(claim), ""), source)))}
    if claim.name in quotations():
        facts["In its author's words"] = CARD.quoted(*map(printed, quotations()[claim.name]))
    facts["Repeat it"] = CARD.again(claim, _minutes(claim))
    if claim.parts:
        return facts
    if brief(measured.measured) != measured.measured:
        facts["All numbers"] = printed(measured.measured)
    facts |= {"Rule": printed(claim.rule.text), "Reported": printed(claim.reported)}
    facts["Distance to the thresholds"] = (
        Markup("").join(_line(*one) for one in measured.compared) or YES_OR_NO
    )
    if any(verdict == measured.verdict for verdict in measured.nulls.values()):
        facts["If there were no effect"] = printed(of_nothing(claim, measured))
    if miscalibrated(claim):
        facts["Calibration of the metric"] = printed(calibration(claim))
    facts["Varied"] = printed(claim.varied)
    facts["Assumes"] = printed(claim.assumes)
    if turns.of(claim.name).outcome == turns.NOT_RUN:
        facts["Could change the verdict, not run"] = printed(claim.would_change_if)
    ran = {
        name: outcome
        for name, outcome in controls(claim).items()
        if outcome != "not run" and outcome not in _REFUSALS
    }
    facts["Controls"] = printed("; ".join(f"{name}: {said}" for name, said in ran.items()))
    verdicts, left = models_of(claim.name), unasked(claim)
    lines = (
        [f"{_held(verdicts)}: " + "; ".join(f"{m}, {v}" for m, v in verdicts.items())]
        if verdicts
        else []
    )
    lines += [f"no verdict for {model}: {why}" for model, why in left.items()]
    facts["Models"] = printed("; ".join(lines))
    return facts


def _minutes(claim: Claim) -> str:
    """Write how long the measurement takes, if it takes more than a few seconds."""
    seconds = _seconds(claim)
    return f", {seconds / 60:.1f} minutes" if seconds and seconds > 6 else ""


# as a fraction of the true value, or of 1 if the true value is smaller; we show metrics with a
# larger error
OFF = 0.1


def miscalibrated(claim: Claim) -> bool:
    """Return whether the claim's metric fails its calibration.

    The metric fails if its value is far from the true value on a case whose answer is known.
    """
    return any(abs(reads - truth) > OFF * max(1, abs(truth)) for _, truth, reads in _cases(claim))


def _held(verdicts: Mapping[str, str]) -> str:
    """Write as a phrase how many models reached each verdict.

    >>> _held({"a": HOLDS, "b": HOLDS, "c": FAILS})
    'of 3 models: holds in 2, does not hold here in 1'
    >>> _held({"a": UNABLE})
    'of 1 model: this model cannot decide in 1'
    """
    counts = Counter(verdicts.values())
    tally = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    return f"of {len(verdicts)} model{'s' * (len(verdicts) > 1)}: {tally}"


def _short(claim: Claim, measured: Found) -> str:
    """Return the one number that stands for the measurement on a row's line.

    That is the reported number with the measured one if there are both, or the number of cases that
    agree, or the number that was compared with the deciding threshold. It is "" if the rule asks a
    yes-or-no question.
    """
    pairs = [pair for pair in measured.numbers.values() if None not in pair]
    if pairs:
        return " → ".join(map(_digits, pairs[0]))
    if measured.verdict in OPEN_VERDICTS:
        return ""
    if cases := re.search(r"\d+ of \d+ cases", measured.words):
        return cases[0]
    return _deciding(measured)


def _deciding(measured: Found) -> str:
    """Describe the comparison that decided the verdict.

    The description names the case nearest to its threshold, and the threshold.
    """
    conditions = [one for one in measured.compared if one[0] not in (AGREE, OTHERWISE)]
    agreed = next((values for half, _, _, values in measured.compared if half == AGREE), None)
    if agreed:
        return f"all {agreed[0]:.0f} cases"
    decided = {HOLDS: "holds", CORRECTED: "part"}.get(measured.verdict)
    deciding = [one for one in conditions if one[0] == decided] or conditions
    near = [
        (min(values, key=lambda value: abs(value - mark)), side, mark)
        for _, side, mark, values in deciding
    ]
    missed = [one for one in near if (one[0] > one[2]) != (one[1] == "above")]
    chosen = (missed if measured.verdict == FAILS else []) or near
    if not chosen:
        return ""
    value, side, mark = chosen[0]
    return f"{_digits(value)} (required {'>' if side == 'above' else '<'} {_digits(mark)})"


def of_nothing(claim: Claim, measured: Found) -> str:
    """Describe what the claim's rule gives for null controls.

    The text has each verdict with its controls, and says why a control may be allowed to agree.
    """
    nothing = {words: verdict for words, verdict in measured.nulls.items() if words != SHORTER}
    lines = [
        f"{verdict}: {', '.join(words for words in nothing if nothing[words] == verdict)}"
        for verdict in dict.fromkeys(nothing.values())
    ]
    hangs = [f"with one case less: {measured.nulls[SHORTER]}"] if SHORTER in measured.nulls else []
    twin = (
        [": ".join(("the same network with random weights", *twins()[claim.name]))]
        if claim.name in twins()
        else []
    )
    return "; ".join([*lines, *hangs, *twin]) + (f" ({claim.rule.null})" if claim.rule.null else "")


@functools.cache
def twins() -> dict[str, tuple[str, str]]:
    """Return what the rules give for a language model with random weights.

    The model is the random-weights baseline of the embedded model. For each claim about language
    models, we return the verdict and what was measured.
    """
    rows = data.table("twins").query("scale == 'own'")
    return {row.claim: (row.verdict, row.measured) for row in rows.itertuples()}


@functools.cache
def _rulers() -> dict[str, list[tuple[str, float, float]]]:
    """Read the calibration cases of each metric from data/rulers.csv.

    Each case has a description, the true value, and the metric's value.
    """
    rows = data.table("rulers")
    return {
        name: [*part[["case", "truth", "reads"]].itertuples(index=False)]
        for name, part in rows.groupby("ruler")
    }


def _cases(claim: Claim) -> list[tuple[str, float, float]]:
    """Return the calibration cases of a claim's metric.

    Raises:
        ValueError: if data/rulers.csv does not have this metric.
    """
    return _rulers()[require.choice(f"ruler of {claim.name}", claim.ruler, _rulers())]


def calibration(claim: Claim) -> str:
    """Describe what the claim's metric gives on cases whose answer is known.

    >>> calibration(CLAIMS["first_token_is_a_sink"])[:76]
    'sink score: uniform attention over 64 tokens: gives 0.07412, but 0 is true; '
    """
    read_ = (
        f"{case}: gives {_digits(reads)}, but {_digits(truth)} is true"
        for case, truth, reads in _cases(claim)
    )
    return f"{claim.ruler}: {'; '.join(read_)}"


def _line(half: str, side: str, mark: float, values: Sequence[float], width: int = 260) -> Markup:
    """Draw one threshold and the number that was compared with it.

    The thick side agrees with the claim. A number on the other side of the threshold changes the
    verdict on this condition of the rule.
    """
    low, high = min(*values, mark), max(*values, mark)
    room = (high - low or abs(mark) or 1) * 0.12

    def at(value: float) -> float:
        return round(width * (value - low + room) / (high - low + 2 * room), 1)

    nearest = min(values, key=lambda value: abs(value - mark))
    nearest_words = (
        f"we found {_digits(nearest)}"
        if len(values) == 1
        else f"of {len(values)} values the nearest is {_digits(nearest)}"
    )
    agrees = (at(mark), width) if side == "above" else (0, at(mark))
    half += ", for a correction (to hold, all must agree)" * (half == AGREE)
    asked = CONDITIONS.get(half, half)
    label = f"{asked}: a value {side} {_digits(mark)} is required; {nearest_words}"
    return CARD.line(label, width, sorted({at(value) for value in values}), agrees, at(mark))


def _digits(value: float | None) -> str:
    """Format a number with four significant digits, or in full.

    Integers are written in full, and so are other numbers from 10,000 to below 10^9.
    """
    whole = value is not None and (float(value).is_integer() or 1e4 <= abs(value) < 1e9)
    return "–" if value is None else printed(f"{value:,.0f}" if whole else f"{value:,.4g}")


def section(claim: Claim) -> str:
    """Return the address of the section that shows a claim.

    The address is a page of the site while the book is built, and otherwise the notebook.
    """
    page, _, heading = claim.shown.partition("#")
    return (
        f"{page}.html#{slug(heading)}"
        if compute.building()
        else f"{page}.ipynb#{heading.replace(' ', '-')}"
    )


def colab(claim: Claim) -> str:
    """Return the address at which Colab opens the claim's page at its section.

    The result is "" in a copy of the course that names no repository.
    """
    root = dependencies.tables().parent
    config, notebook = (
        root / "_config.yml",
        root / f"chapters/{claim.shown.partition('#')[0]}.ipynb",
    )
    settings = config.read_text() if config.is_file() else ""
    where = re.search(
        r"^repository:\n  url: https://github.com/(\S+)\n  branch: (\S+)", settings, re.M
    )
    if not where or not notebook.is_file():
        return ""
    heading = re.compile(rf"^#+ {re.escape(claim.shown.partition('#')[2])}$", re.M)
    cells = json.loads(notebook.read_text())["cells"]
    cell = next((cell_["id"] for cell_ in cells if heading.search("".join(cell_["source"]))), "")
    place = f"{where[1]}/blob/{where[2]}/chapters/{notebook.relative_to(root / 'chapters')}"
    return f"https://colab.research.google.com/github/{place}#scrollTo={cell}"


def slug(heading: str) -> str:
    """Return the id that the site gives to a heading, computed as docutils does it.

    >>> slug("What predicts the sensitivity?")
    'what-predicts-the-sensitivity'
    """
    plain = (
        unicodedata.normalize("NFKD", heading.replace("$", ""))
        .encode("ascii", "ignore")
        .decode()
        .lower()
    )
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))


def printed(text: str) -> str:
    """Rewrite the numbers in a sentence as `number` formats them, with true minus signs.

    >>> printed("gap -0.3, at most 2e-15, in 24-bit floats")
    'gap −0.3, at most 2 × 10⁻¹⁵, in 24-bit floats'
    """
    require.text("text", text)
    text = re.sub(
        r"\b\d(\.\d+)?e[-+]\d+\b",
        lambda match: style.number(float(match[0]), len(match[1] or "1")),
        text,
    )
    return re.sub(r"(?<![\w.,)\]-])-(?=\d)", "−", text)
