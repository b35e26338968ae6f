"""What a report measures, chapter by chapter: each section a function from a model and a plan to numbers, and from these a story.

`measure(subject, plan)` uses the measures of the labs, so that with the full plan its numbers are theirs. It returns what
JSON can hold. `tell(numbers, name)` needs these numbers alone, so a page can be drawn from a file. What does not apply to
a model is a ValueError, whose sentence the report shows.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from course import significance
from course.chapter2 import figures as figures2
from course.chapter2 import measures as measures2
from course.chapter3 import figures as figures3
from course.chapter3 import measures as measures3
from course.chapter4 import figures as figures4
from course.chapter5 import figures as figures5
from course.chapter5 import measures as measures5
from course.chapter6 import figures as figures6
from course.chapter6 import measures as measures6
from course.experiments import asked
from course.report import trained
from course.report.subject import Plan, Subject, prose
from helpers import attention, checkpoints, collapse, counting, data, probe, style, tasks
from helpers.models import LanguageModel, mixing
from helpers.style import number

SINK_TEXTS = {"natural": "text", "random": "random", "repeated": "repeated"}
FINE, NOTE, TROUBLE = "fine", "note", "trouble"
LEVELS = (FINE, NOTE, TROUBLE)
Numbers = dict[str, Any]


class Told(NamedTuple):
    """What a section's numbers say."""

    figure: Any  # of Matplotlib
    alt: str
    sentence: str  # no more than was measured
    headline: Mapping[str, float | None]  # what is put beside other models
    level: str  # one of `LEVELS`: whether someone who builds models should look
    short: str  # in a line


class Section(NamedTuple):
    """One section of the report."""

    name: str
    chapter: int
    title: str
    shown: str  # page and heading of the chapter
    measure: Callable[[Subject, Plan], Numbers]
    tell: Callable[[Numbers, str], Told]
    cost: Callable[[Plan, Subject], float]  # tokens that go through the model, about
    claims: tuple[str, ...] = ()


SECTIONS: dict[str, Section] = {}


def section(name: str, chapter: int, title: str, shown: str, cost: Callable, claims: tuple[str, ...] = ()) -> Callable:
    """Register a function that returns the section's `measure` and `tell`."""

    def register(make: Callable[[], tuple[Callable, Callable]]) -> Callable:
        SECTIONS[name] = Section(name, chapter, title, shown, *make(), cost, claims)
        return make

    return register


def plain(value: Any, digits: int = 6) -> Any:
    """What JSON can hold: tensors as lists of numbers of so many digits, what is no number as None.

    >>> plain({"x": torch.tensor([1 / 3, math.nan])})
    {'x': [0.333333, None]}
    """
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(v, digits) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, digits) for v in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    value = float(value)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def known(values: list) -> Tensor:
    """A list of `plain` as a tensor again."""
    return torch.tensor([math.nan if v is None else v for v in values], dtype=torch.float64)


def _or_why(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a call gives, or the sentence that says why it does not apply to this model."""
    try:
        return call(), None
    except ValueError as error:
        return None, str(error)


def _percent(share: float | None) -> float | None:
    return None if share is None else float(f"{100 * share:.3g}")


def _share(share: float) -> str:
    """A share in words: small ones with two digits.

    >>> _share(0.614), _share(0.00123)
    ('61%', '0.12%')
    """
    return f"{share:.0%}" if share >= 0.1 else f"{float(f'{100 * share:.2g}'):g}%"


# Chapter 2 -----------------------------------------------------------------------------------------------


@section(
    "sinks", 2, "Most attention may go to the first token", "2-causal-attention/lab#The sink, by layer",
    lambda plan, _: 64 * (6 * len(plan.seeds) + 6) + 400,
    ("first_token_is_a_sink", "repeated_tokens_have_no_sink", "sink_values_are_small", "massive_activations_go_with_the_sink"),
)  # fmt: skip
def _sinks():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(measures2.LENGTH)
        model = subject.model
        texts = {"natural": True, "random": True, "repeated": False}
        scores = {
            k: probe.head_scores(model, measures2.sequence(model, k, 64, first)).sink for k, first in texts.items()
        }
        table = measures2.sink_table(model, seeds=plan.seeds)
        values, why = _or_why(
            lambda: measures2.value_ratios(model, measures2.texts(model, measures2.TOKENS)["harbour"])
        )
        giant, no_giant = _or_why(lambda: measures2.hiding(model, measures2.texts(model, measures2.LENGTH)["harbour"]))
        found = {
            "table": table.to_dict("records"),
            "by_layer": {kind: score.mean(1) for kind, score in scores.items()},
            "values": None if values is None else float(values.median()),
            "why_no_values": why,
            "giant": None if giant is None else giant._asdict() | {"norms": None, "spread": None},
            "why_no_giant": no_giant,
        }
        found |= _sinks_by_opening(model) | {"attending": _attending(model)}
        return plain(found)

    def tell(numbers: Numbers, name: str) -> Told:
        layers = {SINK_TEXTS[kind]: known(means) for kind, means in numbers["by_layer"].items()}
        uniform = float(attention.sink_score(attention.uniform(attention.causal_mask(64))))
        text = layers["text"]
        layers["uniform"] = torch.full_like(text, uniform)
        ax, alt = figures2.sinks_by_layer({kind: means[:, None] for kind, means in layers.items()})
        style.whole_ticks(ax)
        ax.set_title(f"On text the sink is strongest in layer {int(text.argmax()) + 1}: {float(text.max()):.2f}")
        row = next(r for r in numbers["table"] if r["text"] == "natural" and r["first token"] == "yes")
        bare = next(r for r in numbers["table"] if r["text"] == "natural" and r["first token"] == "no")
        values, giant = numbers["values"], numbers["giant"]
        times = giant["times"] if giant else None
        said = (
            f"On 64 tokens of text (beside: random tokens, one repeated, uniform attention) the first token has a sink score (the mean weight that the tokens give it) above 0.3 in "
            f"{row['sink heads']:.0%} of the heads{_of_layers(numbers)}; the mean score is {row['mean sink score']:.2f}, that of uniform attention "
            f"{uniform:.2f}."
        )
        if "opened" in numbers:
            opened, others = numbers["opened"], numbers["otherwise"]
            said += (
                f" The first token opens the text: {opened}."
                if opened
                else " Nothing opens the text: the first token is its own."
            )
            said += " Opened otherwise: " + ", ".join(f"{share:.0%} ({way})" for way, share in others.items()) + "."
        if values is not None:
            said += f" What the first token hands over has {number(values)} times the others' mean norm (median of the heads)."
        if giant:
            said += (
                f" At half depth the largest state is that of token {giant['heir']}, {number(times)} times the median."
            )
        large = times is not None and times > 50
        return Told(
            ax, alt, said,
            {"heads with a sink, text (%)": _percent(row["sink heads"]), "heads with a sink, nothing in front (%)": _percent(bare["sink heads"]),
             "mean sink score": row["mean sink score"], "norm that the first token hands over, others = 1": values, "largest state at half depth, median = 1": times},
            NOTE if large else FINE,
            f"a state {number(times)} times the median at half depth: a massive activation" if large
            else f"a sink in {row['sink heads']:.0%} of the heads",
        )  # fmt: skip

    return measure, tell


def _attending(model: LanguageModel) -> list[int]:
    """How many layers have attention, and how many there are."""
    layers = probe.layers(model)
    return [sum(each.mixes.startswith(mixing.ATTENTION) for each in layers), len(layers)]


def _of_layers(numbers: Numbers) -> str:
    """Words for a restriction to the layers that have attention, where others have none."""
    some, every = numbers.get("attending", (0, 0))
    return f" of the {some} layers with attention ({every - some} have none)" if some < every else ""


def _sinks_by_opening(model: LanguageModel) -> Numbers:
    """What opens a text, and the share of heads with a sink where another token does, or none."""
    front, text = probe.opening(model).tokens, probe.encode(model, measures2.TEXT)
    others = {}
    for way, ids in probe.ways(model).items():
        if ids != front.tolist():
            tokens = torch.cat([torch.tensor(ids, dtype=torch.long), text[: 64 - len(ids)]])
            others[way] = float((probe.head_scores(model, tokens).sink > attention.STRONG).double().mean())
    return {"opened": model.tokenizer.decode(front) if len(front) else None, "otherwise": others}


@section(
    "heard", 2, "Who is heard", "2-causal-attention/lab#What the last state feels",
    lambda plan, _: 48 * (2.5 * plan.probes + 4),
    ("early_tokens_have_more_influence", "primacy_is_topology_recency_is_learned", "valley_survives_training", "rollout_is_no_jacobian"),
)  # fmt: skip
def _heard():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(measures2.TOKENS)
        model = subject.model
        tokens = measures2.texts(model, measures2.TOKENS)["harbour"]
        norms, errors = probe.sensitivity(model, tokens, min(plan.probes, subject.config.hidden_size))
        kept, _ = measures2.share_kept(norms.clamp(min=1e-12), len(probe.layers(model)))  # fits uniform attention
        stand_ins, why = _or_why(lambda: measures2.influences(model, tokens, kept))
        stand_ins = stand_ins or {}
        found = {
            "norms": norms,
            "errors": errors,
            "words": [model.tokenizer.decode([token]) for token in tokens.tolist()],
            "probes": min(plan.probes, subject.config.hidden_size),
            "ranks": {name: significance.rank_correlation(row, norms)[0] for name, row in stand_ins.items()},
            "rollout": stand_ins.get("rollout"),
            "kept": kept,
            "why_no_rollout": why,
        }
        return plain(found)

    def tell(numbers: Numbers, name: str) -> Told:
        norms, errors, ranks = known(numbers["norms"]), known(numbers["errors"]), numbers["ranks"]
        ax, alt = figures2.sensitivities(norms, errors, numbers["words"])
        ax.get_legend().remove()
        share = float(norms[0] / norms.sum())
        rollout, mask = ranks.get("rollout"), ranks.get("mask alone")
        said = (
            f"How far the last state moves with each of {len(norms)} tokens: the norm of its Jacobian, estimated in "
            f"{numbers['probes']} directions, with two standard errors. The first token has {share:.1%} of the sum (an equal "
            f"share: {1 / len(norms):.1%})"
        )
        if rollout is None:
            said += f". Attention rollout is not compared: {numbers['why_no_rollout']}."
        else:
            said += (
                f", and {known(numbers['rollout'])[0]:.1%} of attention rollout. Rank correlation with "
                f"these norms, on this one text, where each layer keeps the share that fits them, {numbers.get('kept', 0.5):g}: "
                f"rollout {number(rollout)}, the causal mask alone {number(mask)}"
            )
            values = ranks.get("norm-based rollout")
            said += "." if values is None else f", rollout with values {number(values)}."
        worse = rollout is not None and rollout <= mask
        return Told(
            ax, alt, said,
            {"sensitivity to the first token (%)": _percent(share), "rank correlation, rollout": rollout,
             "rank correlation, the mask alone": mask,
             "rank correlation, rollout with values": ranks.get("norm-based rollout")},
            NOTE if worse else FINE,
            f"the first token has {share:.1%} of the sum of the norms" if rollout is None
            else "on this text attention rollout ranks the tokens no better than the causal mask alone" if worse
            else f"attention rollout ranks the tokens with a correlation of {number(rollout)}, the causal mask alone with "
            f"{number(ranks['mask alone'])}",
        )  # fmt: skip

    return measure, tell


@section(
    "hiding", 2, "What the first token is worth", "2-causal-attention/lab#Hide it early, hide it late",
    lambda plan, subject: 0 if subject.committed else 3 * 128 * (10 * 7 if plan.texts >= 7 else 5 * plan.texts),
    ("sinks_slow_mixing", "hiding_the_sink_breaks_the_model"),
)  # fmt: skip
def _hiding():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(measures2.LENGTH)
        names = measures2.NAMES[: plan.texts]
        if subject.committed:
            table = measures2.hiding_table(subject.model)
        else:
            few = [(0, 1), (1, 1), (1, 9), (1, 25), (measures2.CONTROL, 25)]
            table = _hidden_rows(subject, names, None if names == measures2.NAMES else few)
        return plain(
            {"rows": table.to_dict("records"), "from": "data/hiding_smollm2.csv" if subject.committed else None}
        )

    def tell(numbers: Numbers, name: str) -> Told:
        table = pd.DataFrame(numbers["rows"])
        ax, alt = figures2.hidden_since(table)
        plain_loss = measures2.case(table, 0)["loss"]
        late, early, control = (
            measures2.case(table, *which)["loss"] - plain_loss for which in ((1, 25), (1, 1), (measures2.CONTROL, 25))
        )
        leans = late.mean() > 0.5 and late.mean() > 5 * control.max()
        said = (
            f"Mean of {len(late)} {'text' if len(late) == 1 else 'texts'} of {measures2.LENGTH} tokens: with the first token hidden "
            f"from token 25 on, the loss after token {measures2.AFTER} rises by {number(float(late.mean()))} nats, hidden from the "
            f"start by {number(float(early.mean()))}; with token {measures2.CONTROL} hidden from token 25 on, by "
            f"{number(float(control.mean()))}."
        )
        return Told(
            ax, alt, said,
            {"first token hidden from token 25 on (nats)": float(late.mean()),
             "first token hidden from the start (nats)": float(early.mean()),
             f"token {measures2.CONTROL} hidden from token 25 on (nats)": float(control.mean())},
            NOTE if leans else FINE,
            f"its first token taken out of view at token 25 costs {number(float(late.mean()))} nats: a cache that drops old tokens "
            "must keep it" if leans
            else f"its first token taken out of view at token 25 changes the loss by {number(float(late.mean()))} nats",
        )  # fmt: skip

    return measure, tell


def _hidden_rows(subject: Subject, names: tuple[str, ...], cases: list[tuple[int, int]] | None) -> pd.DataFrame:
    settings = [
        s for s in measures2.HIDDEN if s["text"] in names and (cases is None or (s["token"], s["since"]) in cases)
    ]
    return pd.DataFrame([s | measures2.hidden(subject.model, **s) for s in settings])


# Chapter 3 -----------------------------------------------------------------------------------------------


@section(
    "precision", 3, "From which length number types blur", "3-representational-collapse/lab#Can a number type tell n from n + 1?",
    lambda plan, _: 3 * plan.ones + 400,
    ("low_precision_is_worse", "direction_of_rounding_decides", "ones_collapse"),
)  # fmt: skip
def _precision():
    kinds = ("bf16", "fp16")

    def measure(subject: Subject, plan: Plan) -> Numbers:
        n = min(plan.ones, subject.readable - 1)
        subject.needs(32)
        with subject.copy("fp32") as exact:
            ids = measures3.ones(exact, n)
            states = probe.last_representations(exact, ids).float().cpu()
        found: Numbers = {"tokens": n, "types": {}}
        for kind in kinds:
            with subject.copy(kind) as coarse:
                rounded = probe.last_representations(coarse, ids).float().cpu()
            if not bool(rounded.isfinite().all()):
                found["types"][kind] = {"why": "the states leave the range of the type"}
                continue
            part = measures3.resolution(states, rounded)
            wrong = (~part.nearest[1:]).nonzero().flatten()
            found["types"][kind] = {
                "floor": part.floor[1:],
                "nearest": part.nearest[1:].double().mean(),
                "first_wrong": int(wrong[0]) + 1 if len(wrong) else None,
                "late": measures3.late(part, min(400, len(part.signal) * 4 // 5)),
            }
            found["signal"] = part.signal[1:]
        if "signal" not in found:
            raise ValueError("the states leave the range of both number types")
        return plain(found)

    def tell(numbers: Numbers, name: str) -> Told:
        signal, types = known(numbers["signal"]), numbers["types"]
        shown = next(kind for kind in kinds if "floor" in types[kind])
        ax, alt = figures3.falling(name, signal, known(types[shown]["floor"]), shown)
        start = min(400, (len(signal) + 1) * 4 // 5)
        parts, worst = [], None
        for kind, part in types.items():
            if "why" in part:
                parts.append(f"{kind}: {part['why']}")
                continue
            first = part["first_wrong"]
            worst = first if worst is None or (first or math.inf) < worst else worst
            parts.append(
                f"in {kind} a state is nearest to its own prompt's, among all {len(signal) + 1}, in "
                f"{part['late']['right one of all']:.0%} of the cases from n = {start} on, "
                + (f"and first not at n = {first}" if first else "and always before")
            )
        blurred = [k for k, p in types.items() if "late" in p and p["late"]["right one of all"] < 0.99]
        out = [k for k, p in types.items() if "why" in p]
        said = (
            f"After a first token, n and n + 1 ones move the last state by {number(float(signal.max()))} at most and by "
            f"{number(float(signal[start - 1 :].median()))} from n = {start} on (L1, median). Against the states in fp32: "
            f"{'; '.join(parts)}."
        )
        first = types["bf16"].get("first_wrong")
        late = {kind: types[kind].get("late", {}).get("right one of all") for kind in kinds}
        return Told(
            ax, alt, said,
            {"n to n + 1 ones, late (L1)": float(signal[start - 1 :].median()),
             **{f"nearest to its own prompt, {kind} (%)": _percent(late[kind]) for kind in kinds},
             "first n that bf16 takes for another": first},
            TROUBLE if blurred or out else FINE,
            f"the states leave the range of {' and '.join(out)}" if out
            else f"in {' and '.join(blurred)} n ones are taken for another n, first at n = {worst}, "
            f"and in {1 - min(late[kind] for kind in blurred):.0%} of the cases from n = {start} to {len(signal)}"
            if blurred else f"bf16 and fp16 tell n from n + 1 ones up to {len(signal)}",
        )  # fmt: skip

    return measure, tell


@section(
    "commas", 3, "Repeated tokens, with commas and without", "3-representational-collapse/lab#Figure 5: what is repeated, and after what",
    lambda plan, _: 3 * plan.grid[-1] + 15 * len(plan.grid),
    ("varied_digits_delay_collapse", "varied_digits_still_fall", "commas_prevent_collapse", "merging_alleviates_collapse", "collapse_in_type_1"),
)  # fmt: skip
def _commas():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        grid = subject.within(plan.grid, 6)
        texts = {
            "ones": {"period": 4},
            "commas": {"sequence": "111,", "period": 4},
            "random digits": {"sequence": measures3.random_digits(max(plan.grid), grid)},
        }
        with subject.copy("fp32") as exact:
            curves = {text: collapse.last_token_distance(exact, grid, **setting) for text, setting in texts.items()}
        return plain({"grid": grid, "curves": curves})

    def tell(numbers: Numbers, name: str) -> Told:
        grid, curves = numbers["grid"], {text: known(curve) for text, curve in numbers["curves"].items()}
        ax, alt = figures3.figure5(name, {"four tokens more": curves}, grid, "four tokens more")
        left = {text: float(curve[-1] / curve.max()) for text, curve in curves.items()}
        ax.set_title(
            f"Left at n = {grid[-1]}: " + ", ".join(f"{text.split()[-1]} {share:.0%}" for text, share in left.items())
        )
        said = (
            f"How far the last state moves when the end is repeated, at n = {grid[-1]}, of the most at these lengths: "
            f"{left['ones']:.0%} with ones and four more of them, {left['commas']:.0%} with a comma after every third one and a "
            f"whole period more, {left['random digits']:.0%} with random digits and a last 1 twice."
        )
        cure = left["commas"] > 0.5 > left["ones"]
        return Told(
            ax, alt, said,
            {f"distance left, {text} (%)": _percent(share) for text, share in left.items()},
            NOTE if left["ones"] < 0.5 else FINE,
            f"repeated ones lose {1 - left['ones']:.0%} of their distance by n = {grid[-1]}"
            + (", with commas less than half" if cure else f", with commas {1 - left['commas']:.0%}"),
        )  # fmt: skip

    return measure, tell


@section(
    "copying", 3, "Does it copy, and from which length not?", "3-representational-collapse/lab#Figures 2 and 11, with the question swapped",
    lambda plan, _: 4 * (plan.copied[-1] + 60) + 16 * len(plan.copied) * 40,
    ("first_digit_is_easier", "hint_helps", "alternation_helps", "groups_help", "prompt_order_matters"),
)  # fmt: skip
def _copying():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        if subject.trained:
            task = _trained_for(subject.trained, tasks.Copying)
            lengths = sorted({*plan.copied, task.lengths[1]})
            found = trained.copying_margins(subject.model, task, lengths)
            return plain({"digits": lengths, "margins": _joined(found), "trained_on": task.lengths})
        around = sum(
            len(probe.encode(subject.model, text))
            for text in collapse.copying_prompt(subject.model, "sequence first", "first", False)
        )
        lengths = subject.within(plan.copied, around)
        found = collapse.copying_margins(subject.model, lengths)
        return plain({"digits": lengths, "margins": _joined(found)})

    def tell(numbers: Numbers, name: str) -> Told:
        digits = numbers["digits"]
        found = {tuple(k.split("|")): tuple(map(known, pair)) for k, pair in numbers["margins"].items()}
        ax, alt = figures3.copying(name, {"plain": found}, digits, "plain")
        title = ax.get_title(loc="left").removeprefix("plain: ")
        ax.set_title(title[0].upper() + title[1:])
        right = {place: measures3.right(found, place).tolist() for place in collapse.PLACES}
        effects = {key: float((zero - one)[-1]) for key, (zero, one) in found.items()}
        able = {place: rights[0] for place, rights in right.items()}
        lost = {p: next((n for n, yes in zip(digits, right[p], strict=True) if not yes), None) for p in right}
        where = "; ".join(
            f"the {place} digit: right both with a 0 and with a 1 at {', '.join(str(n) for n, yes in zip(digits, right[place], strict=True) if yes) or 'none of these lengths'}"
            for place in right
        )
        said = (
            f"{', '.join(map(str, digits))} digits, all 1 but perhaps the first or the last. {where[0].upper() + where[1:]}. At {digits[-1]} a "
            f"last 0 moves the answer by {effects['last', 'last']:.2f} logits when asked for and by {effects['last', 'first']:.2f} "
            f"when not; a first 0 by {effects['first', 'first']:.2f} and {effects['first', 'last']:.2f}."
        ).replace("-", "−") + (
            f" It was trained on {numbers['trained_on'][0]} to {numbers['trained_on'][1]} digits."
            if "trained_on" in numbers
            else ""
        )
        fails = [f"the {place} digit from {n} digits on" for place, n in lost.items() if able[place] and n]
        return Told(
            ax, alt, said,
            {"first digit right up to (digits)": _longest(digits, right["first"]),
             "last digit right up to (digits)": _longest(digits, right["last"]), f"effect of a last 0 at {digits[-1]} (logits)": effects["last", "last"]},
            TROUBLE if not all(able.values()) or fails else FINE,
            f"it does not copy even {digits[0]} digits, so it cannot tell about length" if not any(able.values())
            else f"it copies wrongly: {'; '.join([*fails, *(f'the {p} digit at {digits[0]} already' for p in able if not able[p])])}"
            if fails or not all(able.values()) else f"it copies up to {digits[-1]} digits",
        )  # fmt: skip

    return measure, tell


def _trained_for(checkpoint: checkpoints.Trained, kind: type) -> Any:
    if not isinstance(checkpoint.task, kind):
        raise ValueError(f"it was trained for another task, {type(checkpoint.task).__name__}")
    return checkpoint.task


def _joined(margins: Mapping[tuple[str, str], Any]) -> Numbers:
    return {"|".join(key): pair for key, pair in margins.items()}


def _longest(lengths: list[int], right: list[bool]) -> int:
    """The length up to which all are right, 0 where the first is wrong."""
    longest = 0
    for n, yes in zip(lengths, right, strict=True):
        if not yes:
            break
        longest = n
    return longest


# Chapter 4 -----------------------------------------------------------------------------------------------


@section(
    "counting", 4, "Does it count?", "4-counting/lab#A pretrained model is asked",
    lambda plan, subject: 0 if subject.committed
    else sum(30 * (asked.NEW_BEGUN if line == "begun" else asked.NEW["no CoT"]) for line in plan.lines) * len(plan.counted) / 3,
    ("guesses_are_round",),
)  # fmt: skip
def _counting():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        if subject.trained:
            task = _trained_for(subject.trained, tasks.Counting)
            lengths = sorted({*plan.counted, task.lengths[1]})
            rows = trained.answers(subject.model, task, lengths)
            return plain({"rows": rows, "from": None, "trained_on": task.lengths, "most": task.most})
        if subject.committed:
            answers, source = asked.long(data.table("counting_smollm2")), "data/counting_smollm2.csv (bf16)"
            answers = answers[(answers.task == "ones") & (answers.strategy == "no CoT")]
            answers = answers[answers.line.isin(plan.lines)]
        else:
            around = len(probe.encode(subject.model, counting.prompt("ones", "no CoT", "1"))) + 60 + asked.NEW["no CoT"]
            lengths, source = subject.within(plan.counted, around), None
            answers = pd.concat([asked.questions(subject.model, "ones", line, tuple(lengths)) for line in plan.lines])
        rows = (
            answers[["line", "length", "count", "answer", "cut", "error"]].astype(object).where(answers.notna(), None)
        )
        rows = [
            {k: v if isinstance(v, str | bool) or v is None else int(v) for k, v in r.items()}
            for r in rows.to_dict("records")
        ]
        return plain({"rows": rows, "from": source, "template": bool(subject.model.tokenizer.chat_template)})

    def tell(numbers: Numbers, name: str) -> Told:
        if "trained_on" in numbers:
            return _counted(numbers, name)
        table = pd.DataFrame(numbers["rows"]).assign(task="ones", strategy="no CoT")
        for column in ("answer", "error"):
            table[column] = pd.array(table[column].tolist(), dtype="Float64").astype("Int64")
        table["cut"] = table["cut"].astype(bool)
        best = max(table.line.unique(), key=lambda line: int((table[table.line == line].error == 0).sum()))
        ax, alt = figures4.asked_errors(table, "ones", best, name)
        rows = table[table.line == best]
        ax.set_title(f"{int((rows.error == 0).sum())} of {len(rows)} right, {int(rows.answer.isna().sum())} no number")
        short = table[table.length <= 10]
        right, asked_for = int((short.error == 0).sum()), len(short)
        given = int(table.answer.notna().sum())
        nearer = int((table.error < (table["count"] - asked.GUESS).abs()).sum())
        longest = max((int(n) for n, rows in table.groupby("length") if (rows.error == 0).any()), default=0)
        said = (
            f"Asked to count ones, {len(table)} questions of {table.length.min()} to {table.length.max()} ones: {given} answers are "
            f"numbers, {int((table.error == 0).sum())} are right ({right} of {asked_for} with at most 10), {nearer} are nearer "
            f"than always saying {asked.GUESS}. The picture: {asked.LINES[best]}."
        )
        return Told(
            ax, alt, said,
            {"right, at most 10 ones (%)": _percent(right / asked_for if asked_for else None),
             "longest row counted right": longest, "answers that are numbers (%)": _percent(given / len(table))},
            TROUBLE if right < asked_for / 2 else FINE,
            f"it counts {right} of {asked_for} short rows of ones right" + ("" if numbers["template"] else " (no chat template)"),
        )  # fmt: skip

    return measure, tell


def _counted(numbers: Numbers, name: str) -> Told:
    """What a decoder that was trained to count makes of strings of other lengths."""
    table, (low, high) = pd.DataFrame(numbers["rows"]), numbers["trained_on"]
    right = (table["answer"] == table["count"]).groupby(table["length"]).mean()
    inside, beyond = right[right.index <= high], right[right.index > high]
    whole = right[right == 1]
    ax = style.axes(
        f"Right at {low} to {high} letters: {inside.mean():.0%}, beyond: {beyond.mean():.0%}",
        "letters",
        "share of right counts",
        log="x",
        height=4.2,
    )
    ax.axvspan(low, high, color=figures5.GREY, alpha=0.25, label="lengths of training")
    ax.plot(right.index, right, "o-", color=style.COLOURS["blue"], label="right")
    style.ticks(ax, right.index)
    ax.set_ylim(-0.05, 1.05)
    ax.legend()
    listed = ", ".join(f"{share:.0%} at {n}" for n, share in right.items())
    return Told(
        ax, f"Share of right counts by the number of letters: {listed}. Trained on {low} to {high}.",
        f"Trained to say how many of {low} to {high} letters are y, asked about {trained.STRINGS} strings of each length, with at most "
        f"{numbers['most']} y: right {listed}.",
        {"right at the lengths of training (%)": _percent(float(inside.mean())), "right beyond (%)": _percent(float(beyond.mean())),
         "all right up to (letters)": float(whole.index.max()) if len(whole) else 0.0},
        TROUBLE if inside.mean() < 0.9 else NOTE if beyond.mean() < 0.9 else FINE,
        f"it counts {inside.mean():.0%} of the strings of its training's lengths right, and {beyond.mean():.0%} of longer ones",
    )  # fmt: skip


# Chapter 5 -----------------------------------------------------------------------------------------------


@section(
    "heads", 5, "Heads that look at a place", "5-rope-frequencies/lab#Diagonal and previous-token heads",
    lambda plan, _: 3 * plan.prose,
    ("first_layers_previous_last_diagonal", "previous_token_is_the_sink", "slashes_survive_random_tokens"),
)  # fmt: skip
def _heads():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(plan.prose)
        model, offsets = subject.model, tuple(range(measures5.OFFSETS))
        texts = {
            "prose": prose(model, plan.prose),
            "random tokens": measures5.random_tokens(model, plan.prose),
            "other prose": measures5.prose(model, plan.prose, start=plan.prose - 1),
        }
        slashes = {name: probe.head_scores(model, ids, offsets=offsets).slash for name, ids in texts.items()}
        return plain({"tokens": plan.prose, "slashes": slashes, "attending": _attending(model)}, 4)

    def tell(numbers: Numbers, name: str) -> Told:
        heads = {text: measures5.Heads(slashes=torch.tensor(slashes)) for text, slashes in numbers["slashes"].items()}
        found, drawn = heads["prose"], heads["random tokens"]
        ax, alt = figures5.special_heads(found)
        ax.axhline(attention.STRONG, color=figures5.GREY, lw=1, ls="--")
        counts = {k: int((found.slashes[..., k] > attention.STRONG).sum()) for k in (0, 1)}
        best, where = found.slashes.max(-1)
        chosen = best > attention.STRONG
        kept = chosen & (measures5.at(where, drawn) > attention.STRONG)
        total, stay = int(chosen.sum()), int(kept.sum())
        said = (
            f"On {numbers['tokens']} tokens of prose {counts[1]} of {chosen.numel()} heads{_of_layers(numbers)} look at the token before (mean weight above "
            f"0.3), {counts[0]} at themselves, {total} at one fixed distance up to {found.slashes.shape[-1] - 1}; of these {stay} "
            f"do so on random tokens as well."
        )
        return Told(
            ax, alt, said,
            {"previous-token heads": counts[1], "diagonal heads": counts[0],
             "slash heads kept on random tokens (%)": _percent(stay / total) if total else None},
            NOTE if total == 0 else FINE,
            "no head looks at a fixed distance" if total == 0
            else f"{counts[1]} previous-token and {counts[0]} diagonal heads; {stay} of {total} stay on random tokens",
        )  # fmt: skip

    return measure, tell


@section(
    "frequencies", 5, "Which rotary pairs are used", "5-rope-frequencies/lab#The fast pairs are small in most layers",
    lambda plan, _: 2 * plan.prose,
    ("fast_pairs_are_small_but_at_the_ends", "slash_heads_are_rank_one", "fast_pairs_make_the_slash"),
)  # fmt: skip
def _frequencies():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(plan.prose)
        model = subject.model
        ids = prose(model, plan.prose)
        theta = rotating(subject)
        found = measures5.heads(model, ids)
        seen = probe.head_scores(model, ids, offsets=tuple(range(measures5.OFFSETS))).slash
        # which heads look at a place is read off the model itself: a window or a soft cap is not in the queries and keys
        found = found._replace(slashes=seen)
        ranks = measures5.rank_table(found) if bool((seen.max(-1).values > attention.STRONG).any()) else None
        return plain({
            "queries": found.queries.mean(1), "keys": found.keys.mean(1), "fastest": theta[0], "slowest": theta[-1],
            "rank": None if ranks is None else ranks[["share, queries", "share, keys"]].mean(axis=1).to_dict(),
        }, 4)  # fmt: skip

    def tell(numbers: Numbers, name: str) -> Told:
        queries, keys = (torch.tensor(numbers[what])[:, None] for what in ("queries", "keys"))
        ax, alt = figures5.usage("queries", measures5.Heads(queries, keys))
        share = {what: _quarters(x[:, 0]) for what, x in (("queries", queries), ("keys", keys))}
        turn = 2 * math.pi / numbers["slowest"] if numbers["slowest"] else math.inf
        rank = numbers["rank"]
        said = (
            f"The fastest quarter of the pairs has {number(share['queries'][0])} of a layer's mean norm in the queries and "
            f"{number(share['keys'][0])} in the keys, the slowest {number(share['queries'][3])} and {number(share['keys'][3])} (means of "
            f"the layers). The slowest pair needs {number(turn, 3)} tokens for a turn."
        )
        if rank:
            said += (
                f" Of the squared singular values of queries and of keys the largest holds {rank['slash heads']:.0%} in heads "
                f"that look at a place, {rank['other heads']:.0%} in the others."
            )
        even = max(abs(x - 1) for x in share["queries"]) < 0.05
        return Told(
            ax, alt, said,
            {"fastest quarter of the queries, mean = 1": share["queries"][0],
             "slowest quarter of the queries, mean = 1": share["queries"][3],
             "tokens for the slowest turn": turn if math.isfinite(turn) else None},
            NOTE if even else FINE,
            "all pairs are used alike, as with random weights" if even
            else f"the fastest quarter of the queries has {number(share['queries'][0])} of the mean norm, the slowest "
            f"{number(share['queries'][3])}",
        )  # fmt: skip

    return measure, tell


def _quarters(norms: Tensor) -> list[float]:
    share = norms / norms.mean(-1, keepdim=True)
    return [float(share[:, measures5.band(k, share.shape[1])].mean()) for k in range(measures5.BANDS)]


def rotating(subject: Subject) -> Tensor:
    """The model's rotary frequencies, where one set turns whole heads in all layers.

    Raises:
        ValueError: there are none, several, or they turn a part of each head.
    """
    theta = probe.rotary_frequencies(subject.model)
    kinds = probe.layers(subject.model)
    if any(each.latent for each in kinds):
        raise ValueError("its queries and keys come of a latent state, and this measure takes those of single heads")
    if any(each.mixes != mixing.ATTENTION for each in kinds):
        raise ValueError(f"{probe.mixed_otherwise(subject.model)}, and this measure takes attention")
    share = kinds[0].share
    if share < 1 and share:
        width = round(2 * len(theta) / share)
        raise ValueError(
            f"rotary positions turn {2 * len(theta)} of {width} dimensions of a head, and this measure takes whole heads"
        )
    if not share:
        raise ValueError("its queries and keys cannot be seen where they are turned")
    return theta


@section(
    "silenced", 5, "What each quarter of the pairs is worth", "5-rope-frequencies/lab#Fast pairs matter where heads look at a place",
    lambda plan, subject: (6 + plan.controls) * plan.prose + (0 if subject.committed else min(plan.texts, 4) * 119 * 3 * 5),
    ("fast_pairs_are_noise", "fast_pairs_serve_places", "other_heads_need_fast_pairs_least"),
)  # fmt: skip
def _silenced():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(plan.prose)
        model = subject.model
        rotating(subject)
        ids = prose(model, plan.prose)
        found = {
            "plain": probe.loss(model, ids),
            "losses": measures5.ablations(model, ids, plan.controls),
            "tokens": plan.prose,
        }
        if subject.committed:
            rows = data.table("silenced_pairs")
            rows = rows[rows.threshold == 0.15]
            means = rows.groupby("where")[list(measures5.BAND_NAMES)].mean()
            found |= {
                "where": means.T.to_dict(),
                "heads": rows.groupby("where").heads.first().to_dict(),
                "from": "data/silenced_pairs.csv",
            }
        else:
            seen = probe.head_scores(model, ids, offsets=tuple(range(measures5.OFFSETS))).slash
            found |= _inside_and_outside(model, measures5.Heads(slashes=seen), measures5.TEXTS[: plan.texts])
        return plain(found)

    def tell(numbers: Numbers, name: str) -> Told:
        ax, alt = figures5.ablation(numbers["losses"], numbers["plain"])
        every = {k: v - numbers["plain"] for k, v in numbers["losses"].items()}
        added = {k: v for k, v in every.items() if not k.startswith("random")}
        drawn = sorted(v for k, v in every.items() if k.startswith("random"))
        control = number(drawn[0]) if len(drawn) == 1 else f"{number(drawn[0])} to {number(drawn[-1])}"
        worst = max(added, key=added.get)
        said = (
            f"On {numbers['tokens']} tokens (loss {number(numbers['plain'], 3)} nats) silencing a quarter of the pairs in all heads adds "
            + ", ".join(f"{number(value)} ({name})" for name, value in added.items())
            + f"; as many random pairs, {'once' if len(drawn) == 1 else f'{len(drawn)} times'}, {control}."
        )  # fmt: skip
        where = numbers["where"]
        if where:
            said += (
                f" The fastest quarter alone, on other tokens: {number(where['inside']['fastest'])} in the "
                f"{numbers['heads']['inside']} heads with a slash score above 0.15, {number(where['outside']['fastest'])} in the "
                f"others, {number(where['control']['fastest'])} in as many of the others."
            )
        weak = max(added.values()) < 0.05
        return Told(
            ax, alt, said,
            {**{f"{name} quarter silenced (nats)": value for name, value in added.items()},
             "most for as many random pairs (nats)": drawn[-1],
             "fastest silenced in heads that look at a place (nats)": where["inside"]["fastest"] if where else None,
             "fastest silenced in the others (nats)": where["outside"]["fastest"] if where else None},
            NOTE if weak else FINE,
            "no quarter of the pairs costs 0.05 nats" if weak
            else f"the {worst} quarter costs most, {number(added[worst])} nats; as many random pairs {control}",
        )  # fmt: skip

    return measure, tell


def _inside_and_outside(model, heads: measures5.Heads, starts: tuple[int, ...]) -> Numbers:
    """Loss added by silencing each quarter in heads that look at a place, in the others, and in as many of these."""
    if not bool(measures5.silenced_heads(heads, 0.15, "inside").any()):
        return {"where": None, "heads": {"inside": 0}, "from": None}
    added, counts = {}, {}
    for where in measures5.PLACES:
        rows = pd.DataFrame([measures5.silenced_in(model, heads, start, 0.15, where, controls=0) for start in starts])
        added[where] = rows[list(measures5.BAND_NAMES)].mean().to_dict()
        counts[where] = int(rows["heads"][0])
    return {"where": added, "heads": counts, "from": None}


@section(
    "base", 5, "Does the base fit the context?", "5-rope-frequencies/lesson#Does every base above the bound pass?", lambda *_: 0,
)  # fmt: skip
def _base():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        bases, layers = mixing.frequencies(subject.model.model), probe.layers(subject.model)
        turned = sum(each.theta is not None for each in layers)
        if not turned:
            raise ValueError("the model has no rotary positions")
        kinds, window = {}, getattr(subject.config, "sliding_window", None)
        for kind, theta in bases.items():
            limit = min(subject.context, 1 << 20)
            if "sliding" in kind and window:
                limit = min(limit, int(window))
            kinds[kind] = measures5.sums_over_context(theta, limit) | {
                "pairs": len(theta),
                "theta_ratio": float(theta[0] / theta[-1]),
            }
        rope_settings = getattr(subject.config, "rope_parameters", None) or {}
        base = rope_settings.get("rope_theta") or getattr(subject.config, "rope_theta", None)
        published = data.table("reported/rope_base_bound").set_index("context").published
        bound = float(published[subject.context]) if subject.context in published.index else None
        return plain(
            {
                "kinds": kinds,
                "base": base,
                "scaling": rope_settings.get("rope_type"),
                "context": subject.context,
                "bound": bound,
                "turned": [turned, len(layers)],
            }
        )

    def tell(numbers: Numbers, name: str) -> Told:
        kinds = numbers["kinds"]
        ax, alt = figures5.context_sums(kinds)
        parts = [
            f"{kind + ': ' if len(kinds) > 1 else ''}the sum of cos(Δθ) over {each['pairs']} pairs "
            + (f"is first negative at distance {each['first_negative']:,}, and at {_share(each['negative'])} of the distances"
               if each["first_negative"] else "is nowhere negative") + f" below {each['limit']:,} tokens"
            for kind, each in kinds.items()
        ]  # fmt: skip
        said = f"{'; '.join(parts)}."
        said = said[0].upper() + said[1:]
        turned, layers = numbers.get("turned", [0, 0])
        if turned < layers:
            said += f" So it is in {turned} of {layers} layers; the others turn nothing."
        base, bound = numbers["base"], numbers["bound"]
        if base:
            said += f" Its base is {number(base, 3)}."
        if base and bound:
            said += f" Men et al. (2024) publish {number(bound, 2)} as the least base for {numbers['context']:,} tokens and heads of width 128."
        negative = [k for k, each in kinds.items() if each["first_negative"]]
        first = next((kinds[k]["first_negative"] for k in negative), None)
        return Told(
            ax, alt, said,
            {"context (tokens)": numbers["context"], "base": base, "first negative sum (tokens)": first,
             "distances with a negative sum (%)": _percent(max(each["negative"] for each in kinds.values()))},
            NOTE if negative else FINE,
            f"the sum over the pairs is first negative at distance {first:,}, within the context: there a similar token may score "
            "below another" if negative else "no negative sum within the context",
        )  # fmt: skip

    return measure, tell


# Chapter 6 -----------------------------------------------------------------------------------------------


@section(
    "outliers", 6, "Outliers, and what they cost in few bits", "6-differential-transformer/lab#Outliers and four bits",
    lambda plan, _: 5 * 128,
)  # fmt: skip
def _outliers():
    def measure(subject: Subject, plan: Plan) -> Numbers:
        subject.needs(measures2.LENGTH)
        ids = prose(subject.model, measures2.LENGTH)
        return plain(measures6.loss_in_few_bits(subject.model, ids) | {"tokens": len(ids)})

    def tell(numbers: Numbers, name: str) -> Told:
        states, without = known(numbers["states"]), known(numbers["states_without_first"])
        ax, alt = figures6.state_outliers(states, without)
        plain_loss, rough = numbers["plain"], numbers["losses"]
        eight, spared = rough["8"] - plain_loss, rough["8, first token exact"] - plain_loss
        said = (
            f"On {numbers['tokens']} tokens the largest entry of a layer's states is up to {number(float(states.max()))} times the median "
            f"one, without the first token up to {number(float(without.max()))}. With all that enters a linear layer rounded with one "
            f"scale a tensor, the loss of {number(plain_loss, 3)} nats rises by {number(eight)} in 8 bits (first token left exact: "
            f"{number(spared)}) and by {number(rough['4'] - plain_loss)} in 4."
        )
        bad = eight > 0.1
        return Told(
            ax, alt, said,
            {"largest entry, median = 1": float(states.max()), "largest entry without the first token, median = 1": float(without.max()),
             "8-bit activations (nats)": eight, "8-bit activations, first token exact (nats)": spared,
             "4-bit activations (nats)": rough["4"] - plain_loss},
            TROUBLE if bad else FINE,
            f"8-bit activations with one scale a tensor cost {number(eight)} nats" + (
                ", most of it by the first token" if spared < eight / 2 else "") if bad
            else f"8-bit activations cost {number(eight)} nats",
        )  # fmt: skip

    return measure, tell
