"""Measure the numbers of a report.

There is one function per section, named as in `sections.toml`, which measures a model according to
a plan. These functions use the measures of the labs, so with the full plan they give the labs'
numbers. If a measure does not apply to a model, the function raises a ValueError, and the report
shows its message.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from course.chapter2 import measures as measures2
from course.chapter3 import measures as measures3
from course.chapter5 import measures as measures5
from course.chapter6 import measures as measures6
from course.evidence import significance
from course.maths import counting as counts
from course.report import trained
from course.report.subject import Plan, Subject, prose
from course.runs import asked
from course.training import tasks
from helpers import attention, collapse, data, probe
from helpers.models import LanguageModel, mixing

Numbers = dict[str, Any]
EVERY_PLACE = tuple(range(measures5.OFFSETS))


def sinks(subject: Subject, plan: Plan) -> Numbers:
    """Measure sink scores on three kinds of text, and the size of the first token's value."""
    subject.needs(measures2.LENGTH)
    model = subject.model
    texts = {"natural": True, "random": True, "repeated": False}
    scores = {
        k: probe.head_scores(model, measures2.sequence(model, k, 64, opened)).sink
        for k, opened in texts.items()
    }
    values, why = _or_why(
        lambda: measures2.value_ratios(model, measures2.texts(model, measures2.TOKENS)["harbour"])
    )
    giant, no_giant = _or_why(
        lambda: measures2.hiding(model, measures2.texts(model, measures2.LENGTH)["harbour"])
    )
    return {
        "table": measures2.sink_table(model, seeds=plan.seeds).to_dict("records"),
        "by_layer": {kind: score.mean(1) for kind, score in scores.items()},
        "values": None if values is None else float(values.median()),
        "why_no_values": why,
        "giant": None if giant is None else giant._asdict() | {"norms": None, "spread": None},
        "why_no_giant": no_giant,
        **_sinks_by_opening(model),
        "attending": _attending(model),
    }


def _or_why(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """Call a function, and return its result and None, or None and the reason for its failure.

    The reason is a sentence that says why the measure does not apply to this model.
    """
    try:
        return call(), None
    except ValueError as error:
        return None, str(error)


def _attending(model: LanguageModel) -> list[int]:
    """Return the number of layers that have attention, and the number of all layers."""
    layers = probe.layers(model)
    return [sum(layer.mixes.startswith("attention") for layer in layers), len(layers)]


def _sinks_by_opening(model: LanguageModel) -> Numbers:
    """Measure the fraction of heads with a sink for several first tokens of a text.

    The result also describes the model's usual opening.
    """
    front, text = probe.opening(model).tokens, probe.encode(model, measures2.TEXT)
    others = {}
    for way, ids in probe.opening(model).ways.items():
        if ids != front.tolist():
            tokens = torch.cat([torch.tensor(ids, dtype=torch.long), text[: 64 - len(ids)]])
            others[way] = attention.share_of_strong_heads(probe.head_scores(model, tokens).sink)
    return {"opened": model.tokenizer.decode(front) if len(front) else None, "otherwise": others}


def heard(subject: Subject, plan: Plan) -> Numbers:
    """Measure how sensitive the last token is to each token.

    The result also says how well cheap measures rank the tokens.
    """
    subject.needs(measures2.TOKENS)
    model, probes = subject.model, min(plan.probes, subject.config.hidden_size)
    tokens = measures2.texts(model, measures2.TOKENS)["harbour"]
    norms, errors = probe.sensitivity(model, tokens, probes)
    residual, _ = measures2.share_kept(
        norms.clamp(min=1e-12), len(probe.layers(model))
    )  # compare with a fit of uniform attention
    influences, why = _or_why(lambda: measures2.influences(model, tokens, residual))
    stand_ins = influences or {}
    return {
        "norms": norms,
        "errors": errors,
        "words": [model.tokenizer.decode([token]) for token in tokens.tolist()],
        "probes": probes,
        "ranks": {
            name: significance.rank_correlation(row, norms)[0] for name, row in stand_ins.items()
        },
        "rollout": stand_ins.get("rollout"),
        "kept": residual,
        "why_no_rollout": why,
    }


def hiding(subject: Subject, plan: Plan) -> Numbers:
    """Measure how the loss changes if later tokens cannot attend to the first token."""
    subject.needs(measures2.LENGTH)
    names, source = (
        measures2.NAMES[: plan.texts],
        "data/hiding_smollm2.csv" if subject.committed else None,
    )
    if source or names == measures2.NAMES:  # the claims need all of it, too
        return {"rows": measures2.hiding_table(subject.model).to_dict("records"), "from": source}
    rows = [
        cell | measures2.hiding_in(**cell, model=subject.model)
        for cell in measures2.HIDDEN
        if cell["text"] in names
        and (cell["token"], cell["since"])
        in [(0, 1), (1, 1), (1, 9), (1, 25), (measures2.CONTROL, 25)]
    ]
    return {"rows": rows, "from": source}


def precision(subject: Subject, plan: Plan) -> Numbers:
    """Measure whether bf16 and fp16 can distinguish the hidden states of n and n + 1 ones."""
    n = min(plan.ones, subject.readable - 1)
    subject.needs(32)
    with subject.copy("fp32") as exact:
        ids = measures3.ones(exact, n)
        states = probe.last_representations(exact, ids).float().cpu()
    numbers_of_types: Numbers = {"tokens": n, "types": {}}
    for kind in ("bf16", "fp16"):
        with subject.copy(kind) as coarse:
            rounded = probe.last_representations(coarse, ids).float().cpu()
        if not bool(rounded.isfinite().all()):
            numbers_of_types["types"][kind] = {"why": "the states leave the range of this format"}
            continue
        part = measures3.resolution(states, rounded)
        wrong = (~part.nearest[1:]).nonzero().flatten()
        numbers_of_types["types"][kind] = {
            "floor": part.floor[1:],
            "nearest": part.nearest[1:].double().mean(),
            "first_wrong": int(wrong[0]) + 1 if len(wrong) else None,
            "late": measures3.resolution_from(part, min(400, len(part.signal) * 4 // 5)),
        }
        numbers_of_types["signal"] = part.signal[1:]
    if "signal" not in numbers_of_types:
        raise ValueError("the hidden states exceed the range of both floating-point formats")
    return numbers_of_types


def commas(subject: Subject, plan: Plan) -> Numbers:
    """Measure how far a repeated end moves the last state, for ones, commas and random digits."""
    grid = subject.within(plan.grid, 6)
    texts = {
        "ones": {"period": 4},
        "commas": {"sequence": "111,", "period": 4},
        "random digits": {"sequence": measures3.random_digits(max(plan.grid), grid)},
    }
    with subject.copy("fp32") as exact:
        curves = {
            text: collapse.last_token_distance(exact, grid, **setting)
            for text, setting in texts.items()
        }
    return {"grid": grid, "curves": curves}


def copying(subject: Subject, plan: Plan) -> Numbers:
    """Measure whether the model copies the first and the last digit of a sequence."""
    if subject.trained:
        task = _trained_for(subject, tasks.Copying)
        lengths = sorted({*plan.copied, task.lengths[1]})
        margins, more = (
            trained.copying_margins(subject.model, task, lengths),
            {"trained_on": task.lengths},
        )
    else:
        prompt = collapse.copying_prompt(subject.model, "sequence first", "first", False)
        lengths = subject.within(
            plan.copied, sum(len(probe.encode(subject.model, text)) for text in prompt)
        )
        margins, more = collapse.copying_margins(subject.model, lengths), {}
    return {
        "digits": lengths,
        "margins": {"|".join(key): pair for key, pair in margins.items()},
    } | more


def _trained_for(subject: Subject, kind: type) -> Any:
    if not isinstance(subject.trained.task, kind):
        raise ValueError(f"it was trained for another task, {type(subject.trained.task).__name__}")
    return subject.trained.task


def counting(subject: Subject, plan: Plan) -> Numbers:
    """Measure the model's answers to counting questions."""
    model = subject.model
    if subject.trained:
        task = _trained_for(subject, tasks.Counting)
        rows = trained.answers(model, task, sorted({*plan.counted, task.lengths[1]}))
        return {"rows": rows, "from": None, "trained_on": task.lengths, "most": task.most}
    if subject.committed:
        answers, source = asked.asked_of(model), "data/counting_smollm2.csv (bf16)"
        answers = answers[
            (answers.task == "ones")
            & (answers.strategy == "no CoT")
            & answers.line.isin(plan.lines)
        ]
    else:
        around = (
            len(probe.encode(model, counts.prompt("ones", "no CoT", "1")))
            + 60
            + asked.NEW["no CoT"]
        )
        lengths, source = tuple(subject.within(plan.counted, around)), None
        answers = pd.concat([asked.questions(model, "ones", line, lengths) for line in plan.lines])
    columns = answers[["line", "length", "count", "answer", "cut", "error"]]
    rows = columns.astype(object).where(columns.notna(), None).to_dict("records")
    whole = [
        {k: v if isinstance(v, str | bool) or v is None else int(v) for k, v in row.items()}
        for row in rows
    ]
    return {"rows": whole, "from": source, "template": bool(model.tokenizer.chat_template)}


def heads(subject: Subject, plan: Plan) -> Numbers:
    """Measure the slash scores of every head on prose and on random tokens."""
    subject.needs(plan.prose)
    model = subject.model
    texts = {
        "prose": prose(model, plan.prose),
        "random tokens": measures5.random_tokens(model, plan.prose),
        "other prose": measures5.prose(model, plan.prose, start=plan.prose - 1),
    }
    slashes = {
        name: probe.head_scores(model, ids, offsets=EVERY_PLACE).slash
        for name, ids in texts.items()
    }
    return {"tokens": plan.prose, "slashes": slashes, "attending": _attending(model)}


def frequencies(subject: Subject, plan: Plan) -> Numbers:
    """Measure how strongly each layer uses each rotary pair."""
    subject.needs(plan.prose)
    model, theta = subject.model, _rotating(subject)
    ids = prose(model, plan.prose)
    # we read from the model itself which heads attend to a fixed position, because queries and keys
    # do not show a window or a soft cap
    slashes = probe.head_scores(model, ids, offsets=EVERY_PLACE).slash
    heads = measures5.heads(model, ids)._replace(slashes=slashes)
    ranks = (
        measures5.rank_table(heads)
        if bool((slashes > attention.HEAD_SCORE_THRESHOLD).any())
        else None
    )
    return {
        "queries": heads.queries.mean(1),
        "keys": heads.keys.mean(1),
        "fastest": theta[0],
        "slowest": theta[-1],
        "rank": None
        if ranks is None
        else ranks[["share, queries", "share, keys"]].mean(axis=1).to_dict(),
    }


def _rotating(subject: Subject) -> Tensor:
    """Return the model's rotary frequencies, if one set of them rotates whole heads in all layers.

    Raises:
        ValueError: if the model has no rotary frequencies or several sets of them, or if they
            rotate only a part of each head.
    """
    theta, kinds = probe.rotary_frequencies(subject.model), probe.layers(subject.model)
    if any(layer.latent for layer in kinds):
        raise ValueError(
            "its queries and keys come from a latent state, but this measure needs those of "
            "single heads"
        )
    if any(layer.mixes != "attention" for layer in kinds):
        raise ValueError(
            f"{probe.mixed_otherwise(subject.model)}, but this measure needs attention"
        )
    share, turned = kinds[0].share, 2 * len(theta)
    if not share:
        raise ValueError("its queries and keys cannot be read at the point where they are rotated")
    if share < 1:
        width = round(turned / share)
        raise ValueError(
            f"rotary positions rotate {turned} of {width} dimensions of a head, but this measure "
            "needs all of them"
        )
    return theta


def silenced(subject: Subject, plan: Plan) -> Numbers:
    """Measure how much ablating each quarter of the rotary pairs raises the loss."""
    subject.needs(plan.prose)
    model = subject.model
    _rotating(subject)
    ids, bands = prose(model, plan.prose), list(measures5.BAND_NAMES)
    numbers = {
        "plain": probe.loss(model, ids),
        "losses": measures5.ablations(model, ids, plan.controls),
        "tokens": plan.prose,
    }
    if subject.committed:
        rows, source = (
            data.table("silenced_pairs").query("threshold == 0.15"),
            "data/silenced_pairs.csv",
        )
    else:
        # the loss that each quarter adds in heads that attend to a fixed position, in the others,
        # and in as many of the others
        heads_ = measures5.Heads(slashes=probe.head_scores(model, ids, offsets=EVERY_PLACE).slash)
        if not bool(measures5.silenced_heads(heads_, 0.15, "inside").any()):
            return numbers | {"where": None, "heads": {"inside": 0}, "from": None}
        cells = [
            (where, start) for where in measures5.PLACES for start in measures5.TEXTS[: plan.texts]
        ]
        rows = [
            {"where": where, **measures5.silenced_in(model, heads_, start, 0.15, where, controls=0)}
            for where, start in cells
        ]
        rows, source = pd.DataFrame(rows), None
    places = rows.groupby("where")
    where, heads = places[bands].mean().T.to_dict(), places.heads.first().to_dict()
    return numbers | {"where": where, "heads": heads, "from": source}


def base(subject: Subject, plan: Plan) -> Numbers:
    """Compute the sums of cosines over the model's rotary frequencies within its context."""
    layers = probe.layers(subject.model)
    turned = sum(layer.theta is not None for layer in layers)
    if not turned:
        raise ValueError("the model has no rotary positions")
    kinds = {}
    for kind, theta in mixing.frequencies(subject.model.model).items():
        limit = min(subject.context, 1 << 20, _furthest(layers, theta))
        more = {"pairs": len(theta), "theta_ratio": float(theta[0] / theta[-1])}
        kinds[kind] = measures5.sums_over_context(theta, limit) | more
    settings = getattr(subject.config, "rope_parameters", None) or {}
    published = data.table("reported/rope_base_bound").set_index("context").published
    limits = [layer["limit"] for layer in kinds.values()]
    return {
        "kinds": kinds,
        "base": settings.get("rope_theta") or getattr(subject.config, "rope_theta", None),
        "scaling": settings.get("rope_type"),
        "context": subject.context,
        "window": max(limits) if max(limits) < min(subject.context, 1 << 20) else None,
        "bound": float(published[subject.context]) if subject.context in published.index else None,
        "turned": [turned, len(layers)],
    }


def _furthest(layers: Sequence[Any], theta: Tensor) -> int:
    """Return the widest window among the layers that rotate with these frequencies.

    Tokens that are further apart never attend to each other in these layers.
    """
    turning = [
        layer for layer in layers if layer.theta is not None and torch.equal(layer.theta, theta)
    ]
    windows = [layer.window for layer in turning]
    return 1 << 20 if not turning or None in windows else max(windows)


def outliers(subject: Subject, plan: Plan) -> Numbers:
    """Measure outliers in the hidden states, and the loss with activations in few bits."""
    subject.needs(measures2.LENGTH)
    ids = prose(subject.model, measures2.LENGTH)
    return measures6.loss_in_few_bits(subject.model, ids) | {"tokens": len(ids)}
