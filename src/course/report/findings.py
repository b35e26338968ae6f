"""Explain the numbers of a report with a figure and sentences.

There is one function per section, named as in `sections.toml`, and it needs only the section's
numbers. Each function draws the figure, and returns the case that applies and the values that the
sentences in the section's row need. The page shows the line of this case under "In short".
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from course.chapter2 import figures as figures2
from course.chapter2 import measures as measures2
from course.chapter3 import figures as figures3
from course.chapter3 import measures as measures3
from course.chapter4 import figures as figures4
from course.chapter5 import figures as figures5
from course.chapter5 import measures as measures5
from course.report import trained
from course.report.measuring import Numbers
from course.runs import asked
from helpers import attention, collapse, style
from helpers.style import number

SINK_TEXTS = {"natural": "text", "random": "random", "repeated": "repeated"}


class Seen(NamedTuple):
    """Hold the figure of a section, the case that applies, and the values for its sentences."""

    figure: Any  # a Matplotlib figure
    alt: str
    case: str  # a line of `short`, which begins with one of `sections.LEVELS`
    values: Numbers


def known(values: list) -> Tensor:
    """Convert a list of numbers back to a tensor. Entries that are not numbers become NaN."""
    return torch.tensor([math.nan if v is None else v for v in values], dtype=torch.float64)


def _of_layers(numbers: Numbers) -> str:
    """Write how many layers have attention, or return "" if all layers have attention."""
    some, every = numbers.get("attending", (0, 0))
    return (
        f" of the {some} layers with attention ({every - some} have none)" if some < every else ""
    )


def sinks(numbers: Numbers, name: str) -> Seen:
    """Draw the mean sink score of each layer, and explain it."""
    layers = {SINK_TEXTS[kind]: known(means) for kind, means in numbers["by_layer"].items()}
    uniform = float(attention.sink_score(attention.uniform(attention.causal_mask(64))))
    text = layers["text"]
    layers["uniform"] = torch.full_like(text, uniform)
    ax, alt = figures2.sinks_by_layer({kind: means[:, None] for kind, means in layers.items()})
    style.whole_ticks(ax)
    ax.set_title(
        f"On text the sink is strongest in layer {int(text.argmax()) + 1}: {float(text.max()):.2f}"
    )
    first, bare = (
        next(
            row
            for row in numbers["table"]
            if (row["text"], row["first token"]) == ("natural", answer)
        )
        for answer in ("yes", "no")
    )
    giant = numbers["giant"] or {}
    times, others = giant.get("times"), numbers.get("otherwise")
    return Seen(
        ax,
        alt,
        "note" if times is not None and times > 50 else "fine",
        {
            "sinks": first["sink heads"],
            "score": first["mean sink score"],
            "bare": bare["sink heads"],
            "uniform": uniform,
            "layers": _of_layers(numbers),
            "opened": numbers.get("opened") or None,
            "unopened": None if numbers.get("opened", "as before") else "Nothing opens the text",
            "otherwise": None
            if others is None
            else ", ".join(f"{share:.0%} ({way})" for way, share in others.items()),
            "values": numbers["values"],
            "heir": giant.get("heir"),
            "times": times,
        },
    )


def heard(numbers: Numbers, name: str) -> Seen:
    """Draw how sensitive the last token is to each token, and explain it."""
    norms, ranks = known(numbers["norms"]), numbers["ranks"]
    ax, alt = figures2.sensitivities(norms, known(numbers["errors"]), numbers["words"])
    ax.get_legend().remove()
    rollout, mask = ranks.get("rollout"), ranks.get("mask alone")
    case = "fine, alone" if rollout is None else "note" if rollout <= mask else "fine"
    return Seen(
        ax,
        alt,
        case,
        {
            "count": len(norms),
            "probes": numbers["probes"],
            "share": float(norms[0] / norms.sum()),
            "equal": 1 / len(norms),
            "why_no_rollout": numbers["why_no_rollout"] if rollout is None else None,
            "rolled": None if rollout is None else numbers["rollout"][0],
            "kept": numbers.get("kept", 0.5),
            "rollout": rollout,
            "mask": mask,
            "with_values": ranks.get("norm-based rollout"),
        },
    )


def hiding(numbers: Numbers, name: str) -> Seen:
    """Draw how a knockout of the first token changes the loss, and explain it."""
    table = pd.DataFrame(numbers["rows"])
    ax, alt = figures2.hidden_since(table)
    whole, control = measures2.hidden_from(table, 0)["loss"], measures2.CONTROL
    added = [
        measures2.hidden_from(table, *which)["loss"] - whole
        for which in ((1, 25), (1, 1), (control, 25))
    ]
    late, early, beside = (float(added_loss.mean()) for added_loss in added)
    texts = f"{len(added[0])} {'text' if len(added[0]) == 1 else 'texts'}"
    return Seen(
        ax,
        alt,
        "note" if late > 0.5 and late > 5 * added[2].max() else "fine",
        {
            "late": late,
            "early": early,
            "beside": beside,
            "control": control,
            "texts": texts,
            "length": measures2.LENGTH,
            "after": measures2.AFTER,
        },
    )


def precision(numbers: Numbers, name: str) -> Seen:
    """Draw the distance between n and n + 1 ones with the rounding errors, and explain it."""
    signal, types = known(numbers["signal"]), numbers["types"]
    shown = next(kind for kind, part in types.items() if "floor" in part)
    ax, alt = figures3.falling(name, signal, known(types[shown]["floor"]), shown)
    count, start = len(signal), min(400, (len(signal) + 1) * 4 // 5)
    sentences, right, wrong = [], {}, []
    for kind, part in types.items():
        if "why" in part:
            sentences.append(f"In {kind} we cannot compare them, because {part['why']}")
            continue
        right[kind], first = part["late"]["right one of all"], part["first_wrong"]
        wrong.append(first or math.inf)
        sentences.append(
            f"In {kind}, {right[kind]:.0%} of the states from n = {start} onwards are nearest to "
            f"the exact state of their own prompt among all {count + 1} exact states, "
            + (
                "and the first state that is nearer to another prompt's exact state "
                f"has n = {first}"
                if first
                else "and so are all states of smaller n"
            )
        )
    blurred = [kind for kind, share in right.items() if share < 0.99]
    out = [kind for kind, part in types.items() if "why" in part]
    return Seen(
        ax,
        alt,
        "trouble, range" if out else "trouble" if blurred else "fine",
        {
            "most": float(signal.max()),
            "late": float(signal[start - 1 :].median()),
            "types": ". ".join(sentences),
            "bf16": None,
            "fp16": None,
            **right,
            "first": types["bf16"].get("first_wrong"),
            "out": " and ".join(out),
            "blurred": " and ".join(blurred),
            "worst": min(wrong),
            "taken": 1 - min(right[kind] for kind in blurred) if blurred else None,
            "start": start,
            "count": count,
        },
    )


def commas(numbers: Numbers, name: str) -> Seen:
    """Draw how far a repeated end moves the last state for several texts, and explain it."""
    grid, curves = (
        numbers["grid"],
        {text: known(curve) for text, curve in numbers["curves"].items()},
    )
    ax, alt = figures3.figure5(name, {"four tokens more": curves}, grid, "four tokens more")
    for text in list(
        ax.texts
    ):  # the curves of a model may end at the same point, so their names are in a legend
        text.remove()
    ax.legend()
    ax.yaxis.set_minor_formatter("")
    left = {text.split()[-1]: float(curve[-1] / curve.max()) for text, curve in curves.items()}
    ax.set_title(
        f"Left at n = {grid[-1]}: "
        + ", ".join(f"{text} {share:.0%}" for text, share in left.items())
    )
    cured = ", cured" * (left["commas"] > 0.5)
    return Seen(
        ax,
        alt,
        f"note{cured}" if left["ones"] < 0.5 else "fine",
        {
            "end": grid[-1],
            "lost": 1 - left["ones"],
            "commas_lose": 1 - left["commas"],
            **left,
        },
    )


def copying(numbers: Numbers, name: str) -> Seen:
    """Draw whether the model copies the first and the last digit, and explain it."""
    digits = numbers["digits"]
    margins = {
        tuple(key.split("|")): tuple(map(known, pair)) for key, pair in numbers["margins"].items()
    }
    ax, alt = figures3.copying(name, {"plain": margins}, digits, "plain")
    title = ax.get_title(loc="left").removeprefix("plain: ")
    ax.set_title(title[0].upper() + title[1:])
    right = {place: measures3.right_both_ways(margins, place).tolist() for place in collapse.PLACES}
    able = {place: rights[0] for place, rights in right.items()}
    lost = {
        place: next((n for n, yes in zip(digits, right[place], strict=True) if not yes), None)
        for place in right
    }
    fails = [
        f"the {place} digit from {n} digits onwards"
        for place, n in lost.items()
        if able[place] and n
    ]
    fails += [
        f"the {place} digit already at {digits[0]} digits" for place in able if not able[place]
    ]
    right_at = {
        place: [str(n) for n, yes in zip(digits, right[place], strict=True) if yes]
        for place in right
    }
    places = ". ".join(
        (
            f"The model copies the {place} digit right, both a 0 and a 1, at "
            f"{', '.join(lengths) + ' digits' if lengths else 'none of these lengths'}"
        )
        for place, lengths in right_at.items()
    )
    effects = {key: float((zero - one)[-1]) for key, (zero, one) in margins.items()}
    shortest, longest = numbers.get("trained_on", (None, None))
    if not any(able.values()):
        state = "trouble, never"
    else:
        state = "trouble" if fails else "fine"
    slots = {
        "lengths": ", ".join(map(str, digits)),
        "places": places,
        "begin": digits[0],
        "end": digits[-1],
        "last": effects["last", "last"],
        "last_unasked": effects["last", "first"],
        "first": effects["first", "first"],
        "first_unasked": effects["first", "last"],
        "shortest": shortest,
        "longest": longest,
        "fails": "; ".join(fails),
        **{f"{place}_to": _longest(digits, right[place]) for place in ("first", "last")},
    }
    return Seen(ax, alt, state, slots)


def _longest(lengths: Sequence[int], right: Iterable[bool]) -> int:
    """Return the length up to which all answers are right, or 0 if the first answer is wrong."""
    longest = 0
    for n, yes in zip(lengths, right, strict=True):
        if not yes:
            break
        longest = n
    return longest


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def counting(numbers: Numbers, name: str) -> Seen:
    """Draw the model's counting errors, and explain them."""
    if "trained_on" in numbers:
        return _trained_to_count(numbers)
    table = (
        pd.DataFrame(numbers["rows"]).assign(task="ones", strategy="no CoT").astype({"cut": bool})
    )
    for column in ("answer", "error"):
        table[column] = pd.array(table[column].tolist(), dtype="Float64").astype("Int64")
    best = max(
        table.line.unique(), key=lambda line: int((table[table.line == line].error == 0).sum())
    )
    ax, alt = figures4.asked_errors(table, "ones", best, name)
    rows = table[table.line == best]
    ax.set_title(
        f"{int((rows.error == 0).sum())} of {len(rows)} right, "
        f"{int(rows.answer.isna().sum())} no number"
    )
    short, numbers_given = table[table.length <= 10], int(table.answer.notna().sum())
    right, few = int((short.error == 0).sum()), len(short)
    return Seen(
        ax,
        alt,
        "trouble" if right < few / 2 else "fine",
        {
            "questions": len(table),
            "shortest": table.length.min(),
            "longest": table.length.max(),
            "given": numbers_given,
            "right": int((table.error == 0).sum()),
            "few_right": right,
            "few": few,
            "few_share": right / few if few else None,
            "nearer": int((table.error < (table["count"] - asked.GUESS).abs()).sum()),
            "guess": asked.GUESS,
            "picture": asked.LINES[best],
            "template": "" if numbers["template"] else " (no chat template)",
            "right_to": max(
                (int(n) for n, rows in table.groupby("length") if (rows.error == 0).any()),
                default=0,
            ),
            "numbers": numbers_given / len(table),
        },
    )


def _trained_to_count(numbers: Numbers) -> Seen:
    """Draw how accurately a decoder trained to count answers on strings of other lengths."""
    table, (low, high) = pd.DataFrame(numbers["rows"]), numbers["trained_on"]
    right = (table["answer"] == table["count"]).groupby(table["length"]).mean()
    inside, beyond = (
        float(right[rows].mean()) for rows in (right.index <= high, right.index > high)
    )
    title = f"Right at {low} to {high} letters: {inside:.0%}, beyond: {beyond:.0%}"
    ax = style.axes(title, "letters", "fraction of right counts", log="x", height=4.2)
    ax.axvspan(low, high, color=figures5.GREY, alpha=0.25, label="lengths of training")
    ax.plot(right.index, right, "o-", color=style.COLOURS["blue"], label="right")
    style.ticks(ax, right.index)
    ax.set_ylim(-0.05, 1.05)
    ax.legend()
    listed = ", ".join(f"{share:.0%} at {n}" for n, share in right.items())
    alt = f"Fraction of right counts per number of letters: {listed}. Trained on {low} to {high}."
    return Seen(
        ax,
        alt,
        "trouble" if inside < 0.9 else "note" if beyond < 0.9 else "fine",
        {
            "low": low,
            "high": high,
            "strings": trained.STRINGS,
            "most": numbers["most"],
            "listed": listed,
            "inside": inside,
            "beyond": beyond,
            "right_to": float(right.index[right == 1].max()) if (right == 1).any() else 0.0,
        },
    )


def heads(numbers: Numbers, name: str) -> Seen:
    """Draw the slash scores of the strongest heads in each layer, and explain them."""
    seen_heads, drawn = (
        measures5.Heads(slashes=torch.tensor(numbers["slashes"][k]))
        for k in ("prose", "random tokens")
    )
    ax, alt = figures5.special_heads(seen_heads)
    ax.axhline(attention.HEAD_SCORE_THRESHOLD, color=figures5.GREY, lw=1, ls="--")
    to_itself, before = (
        int((seen_heads.slashes[..., k] > attention.HEAD_SCORE_THRESHOLD).sum()) for k in (0, 1)
    )
    best, where = seen_heads.slashes.max(-1)
    chosen = best > attention.HEAD_SCORE_THRESHOLD
    total, stay = (
        int(chosen.sum()),
        int((chosen & (measures5.slashes_at(where, drawn) > attention.HEAD_SCORE_THRESHOLD)).sum()),
    )
    return Seen(
        ax,
        alt,
        "fine" if total else "note",
        {
            "tokens": numbers["tokens"],
            "own": to_itself,
            "before": before,
            "heads": chosen.numel(),
            "layers": _of_layers(numbers),
            "total": total,
            "stay": stay,
            "kept": stay / total if total else None,
            "furthest": seen_heads.slashes.shape[-1] - 1,
        },
    )


def frequencies(numbers: Numbers, name: str) -> Seen:
    """Draw how strongly queries use each rotary frequency, and explain it."""
    queries, keys = (torch.tensor(numbers[what]) for what in ("queries", "keys"))
    ax, alt = figures5.usage("queries", measures5.Heads(queries[:, None], keys[:, None]))
    asking, asked_for = _quarters(queries), _quarters(keys)
    rank = numbers["rank"] or {}
    return Seen(
        ax,
        alt,
        "note" if max(abs(x - 1) for x in asking) < 0.05 else "fine",
        {
            "fastest": asking[0],
            "slowest": asking[3],
            "fastest_keys": asked_for[0],
            "slowest_keys": asked_for[3],
            "turn": 2 * math.pi / numbers["slowest"] if numbers["slowest"] else math.inf,
            "slash": rank.get("slash heads"),
            "other": rank.get("other heads"),
        },
    )


def _quarters(norms: Tensor) -> list[float]:
    """Average the norms in each quarter of the rotary pairs.

    The norms are scaled first so that the mean over the pairs of a layer is 1.
    """
    share = norms / norms.mean(-1, keepdim=True)
    return [
        float(share[:, measures5.band(k, share.shape[1])].mean()) for k in range(measures5.BANDS)
    ]


def silenced(numbers: Numbers, name: str) -> Seen:
    """Draw how much ablating each quarter of the rotary pairs raises the loss, and explain it."""
    ax, alt = figures5.ablation(numbers["losses"], numbers["plain"])
    every = {what: loss - numbers["plain"] for what, loss in numbers["losses"].items()}
    added = {what: value for what, value in every.items() if not what.startswith("random")}
    drawn = sorted(value for what, value in every.items() if what.startswith("random"))
    worst = max(added, key=added.get)
    places = {
        place: numbers_of_place["fastest"]
        for place, numbers_of_place in (numbers["where"] or {}).items()
    }
    return Seen(
        ax,
        alt,
        "note" if added[worst] < 0.05 else "fine",
        {
            "tokens": numbers["tokens"],
            "plain": numbers["plain"],
            **added,
            "most": drawn[-1],
            "added": ", ".join(f"{number(value)} ({what})" for what, value in added.items()),
            "often": "once" if len(drawn) == 1 else f"{len(drawn)} times",
            "worst": worst,
            "cost": added[worst],
            "control": number(drawn[0])
            if len(drawn) == 1
            else f"{number(drawn[0])} to {number(drawn[-1])}",
            "inside": places.get("inside"),
            "outside": places.get("outside"),
            "as_many": places.get("control"),
            "heads": numbers["heads"]["inside"],
        },
    )


def base(numbers: Numbers, name: str) -> Seen:
    """Draw the sums of cosines within the model's context, and explain them."""
    kinds = numbers["kinds"]
    ax, alt = figures5.context_sums(kinds)
    sums = [
        (
            f"{'in layers with ' + kind + ' ' if len(kinds) > 1 else ''}the sum of cos(Δθ) over "
            f"{sums_of_kind['pairs']} pairs "
        )
        + (
            (
                f"is first negative at distance {sums_of_kind['first_negative']:,}, "
                "and it is negative at "
                f"{_share(sums_of_kind['negative'])} of the distances"
            )
            if sums_of_kind["first_negative"]
            else "is nowhere negative"
        )
        + f" below {sums_of_kind['limit']:,} tokens"
        for kind, sums_of_kind in kinds.items()
    ]
    first = next(
        (
            sums_of_kind["first_negative"]
            for sums_of_kind in kinds.values()
            if sums_of_kind["first_negative"]
        ),
        None,
    )
    turned, layers = numbers.get("turned", (0, 0))
    case = ("note" if first else "fine") + ", window" * bool(numbers.get("window"))
    return Seen(
        ax,
        alt,
        case,
        {
            "sums": _upper("; ".join(sums)),
            "turned": turned if turned < layers else None,
            "layers": layers,
            "context": numbers["context"],
            "tokens": numbers["context"],
            "window": numbers.get("window"),
            "base": numbers["base"],
            "first": first,
            "bound": numbers["bound"] if numbers["base"] and not numbers.get("window") else None,
            "negative": max(sums_of_kind["negative"] for sums_of_kind in kinds.values()),
        },
    )


def _share(share: float) -> str:
    """Format a fraction as a percentage, with two digits if it is small.

    >>> _share(0.614), _share(0.00123)
    ('61%', '0.12%')
    """
    return f"{share:.0%}" if share >= 0.1 else f"{float(f'{100 * share:.2g}'):g}%"


def outliers(numbers: Numbers, name: str) -> Seen:
    """Draw the largest entries of the hidden states in each layer, and explain them."""
    states, without = known(numbers["states"]), known(numbers["states_without_first"])
    frame = pd.DataFrame({"all but the first": without, "all tokens": states}).rename_axis(
        "layer (0: embedding)"
    )
    ax = style.lines(frame, "largest entry over the median", "y")
    ax.set_title(f"An entry {number(float(states.max()))} times the median")
    style.whole_ticks(ax)
    alt = (
        f"Largest entry over the median: {number(float(states.max()))} after layer "
        f"{int(states.argmax())}; without the first token at most {number(float(without.max()))}, "
        f"after layer {int(without.argmax())}."
    )
    whole, losses = numbers["plain"], numbers["losses"]
    eight, spared, four = (losses[bits] - whole for bits in ("8", "8, first token exact", "4"))
    case = "fine" if eight <= 0.1 else "trouble, first" if spared < eight / 2 else "trouble"
    return Seen(
        ax,
        alt,
        case,
        {
            "tokens": numbers["tokens"],
            "largest": float(states.max()),
            "without": float(without.max()),
            "plain": whole,
            "eight": eight,
            "spared": spared,
            "four": four,
        },
    )
