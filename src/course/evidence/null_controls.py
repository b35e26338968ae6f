"""Test whether a rule would also hold if there were nothing to find.

We make five null controls from the measured numbers: we set the arrays to their mean, shuffle them,
reverse them, swap groups, or remove one case from each array. The sixth control is the rule's own
`nothing`, which has the numbers that, for example, an untrained network, a coin or equal weights
would give. The seventh shuffles labels in the committed table from which the numbers come
(`course.evidence.null_tables`). A rule that holds for such a control is wrong, unless its `null`
says why it may hold. For a language model there is one more control, the same network with random
weights.
"""

import copy
import inspect
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from course.evidence.rules import CORRECTED, FAILS, HOLDS, Numbers, Rule
from helpers import compute, require
from helpers.models import LanguageModel

FLAT, SHUFFLED, REVERSED = "flat at their mean", "shuffled", "reversed"
EXCHANGED, SHORTER = "groups exchanged", "one case less"
SHUFFLES = 9

Change = Callable[[list], list]


def verdicts(rule: Rule, numbers: Numbers) -> dict[str, str]:
    """Return the verdict of the rule on each null control, keyed by the control's description.

    The flat, shuffled and reversed controls are left out if the verdict does not depend on the
    order of the evidence, because they then show nothing.
    """
    usual, compared = rule.decide(numbers).verdict, _asked(rule, numbers)
    outcomes = {}
    if rule.nothing is not None:
        words, made = rule.nothing
        made = (
            made(**{name: numbers[name] for name in inspect.signature(made).parameters})
            if callable(made)
            else made
        )
        outcomes[words] = rule.decide({**numbers, **made}).verdict
    draws = (
        [random.Random(seed) for seed in range(SHUFFLES)] if rule.holds else []
    )  # the cases of `each` have no order
    shuffles = [
        _said(rule, numbers, {name: _walk(x, _shuffle(draw)) for name, x in compared.items()})
        for draw in draws
    ]
    back = _said(
        rule, numbers, {name: _walk(x, lambda values: values[::-1]) for name, x in compared.items()}
    )
    if draws and {*shuffles, back} - {usual, None}:
        outcomes[FLAT] = _said(
            rule, numbers, {name: _walk(x, _flat) for name, x in compared.items()}
        )
        usable = [each for each in shuffles if each]
        outcomes[SHUFFLED] = (
            HOLDS if 2 * usable.count(HOLDS) > len(usable) else FAILS if usable else None
        )
        outcomes[REVERSED] = back
    if (exchanged := _exchanged(compared, inside=rule.holds is not None)) is not None:
        outcomes[EXCHANGED] = _said(rule, numbers, exchanged)
    shorter = _said(
        rule,
        numbers,
        {name: _walk(x, lambda values: values[:-1], whole=True) for name, x in compared.items()},
    )
    if shorter not in (None, usual):
        outcomes[SHORTER] = shorter
    return {words: verdict for words, verdict in outcomes.items() if verdict}


def wrong(found: Mapping[str, str], verdict: str = HOLDS) -> list[str]:
    """Return the names of the null controls for which the rule wrongly holds.

    If the claim itself only holds "with a correction", a control that reaches the same verdict is
    also wrong. The control with one case fewer is not counted, because removing one case does not
    remove the evidence.

    Args:
        found: the verdict of each control by its name, as `verdicts` returns them.
        verdict: the verdict of the claim itself.

    >>> wrong({"a coin": "holds", SHORTER: "holds", REVERSED: "does not hold here"})
    ['a coin']
    >>> wrong({"the same layers without it": "holds with a correction"}, "holds with a correction")
    ['the same layers without it']
    """
    bad = {HOLDS, verdict} & {HOLDS, CORRECTED}
    return [words for words, said in found.items() if said in bad and words != SHORTER]


SCALES = {  # scales of random weights
    "own": "as the model's configuration publishes it",
    "0.02": "standard deviation 0.02, the default of transformers",
    "unit": "as published, with embeddings of N(0, 1)",
}


def untrained(model: LanguageModel, seed: int, scale: str = "own") -> LanguageModel:
    """Return a copy of a model with random weights, as a baseline for the trained model.

    Args:
        seed: the seed of the random weights.
        scale: one of `SCALES`. "own" draws the weights at the scale of the model's configuration
            (`initializer_range`). "0.02" draws them at the scale that transformers uses if a
            configuration has no such value, about half of SmolLM2's scale. "unit" draws the
            embeddings from N(0, 1) and all other weights as "own" does. A statement about the
            attention graph itself should hold at all three scales.

    Raises:
        ValueError: if the scale is unknown.

    >>> from helpers import models
    >>> untrained(models.default(), 0).model.config.initializer_range
    0.041666666666666664
    """
    from transformers import AutoModelForCausalLM

    require.choice("scale", scale, tuple(SCALES))
    config = copy.deepcopy(model.model.config)
    if scale == "0.02":
        config.get_text_config().initializer_range = 0.02
    compute.seed(seed)
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.config._name_or_path = baseline_name(model, seed, scale)
    fresh.eval().requires_grad_(False)
    if scale == "unit":
        embeddings = fresh.get_input_embeddings().weight
        embeddings.normal_(generator=torch.Generator(embeddings.device).manual_seed(seed))
    return LanguageModel(fresh, model.tokenizer)


def baseline_name(model: LanguageModel, seed: int = 0, scale: str = "own") -> str:
    """Return the name of a random-weights baseline.

    Because this name differs from the model's own name, the committed tables of the model are not
    used for the baseline.

    >>> from helpers import models
    >>> baseline_name(models.default())
    'random weights of SmolLM2-135M-Instruct'
    """
    more = [f"seed {seed}"] * (seed != 0) + [scale] * (scale != "own")
    return ", ".join([f"random weights of {model.short}", *more])


def _asked(rule: Rule, numbers: Numbers) -> dict[str, Any]:
    names = {
        name
        for _, predicate in rule.conditions.values()
        for name in inspect.signature(predicate).parameters
    }
    return {name: numbers[name] for name in numbers if name in names}


def _said(rule: Rule, numbers: Numbers, changed: Numbers) -> str | None:
    """Return the rule's verdict on numbers in which some were changed.

    The result is `None` if the rule cannot be applied to the changed numbers.
    """
    try:
        return rule.decide({**numbers, **changed}).verdict
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        return None


def _shuffle(draw: random.Random) -> Change:
    return lambda values: draw.sample(values, len(values))


def _flat(values: list) -> list:
    return [sum(values) / len(values)] * len(values)


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _walk(value: Any, change: Change, whole: bool = False) -> Any:
    """Return a copy of a nested value in which every array of numbers is changed.

    Args:
        value: numbers, lists, tuples, dictionaries and pandas objects, nested in any way.
        change: the function that changes one array.
        whole: whether to change arrays of any content, and not only arrays of numbers. If arrays
            are nested, only the outermost one is then changed.
    """
    if isinstance(value, pd.DataFrame):
        if whole:
            return value.iloc[: len(change(list(range(len(value)))))]
        return value.assign(
            **{name: _walk(value[name], change) for name in value.select_dtypes("number")}
        )
    if isinstance(value, pd.Series):
        changed = change(value.tolist()) if whole or value.dtype.kind in "iuf" else value.tolist()
        return pd.Series(changed, index=value.index[: len(changed)])
    if isinstance(value, list) and len(value) > 1 and (whole or all(map(_number, value))):
        return change(value)
    if type(value) in (
        list,
        tuple,
    ):  # a tuple is a record, so its entries may change but not their order
        return type(value)(_walk(each, change) for each in value)
    if (
        isinstance(value, dict)
        and not whole
        and len(value) > 1
        and all(map(_number, value.values()))
    ):
        return dict(zip(value, change(list(value.values())), strict=True))
    if isinstance(value, dict):
        return {key: _walk(each, change, whole) for key, each in value.items()}
    return value


def _form(value: Any) -> Any:
    """Return the type and the length of a value, which we call its form.

    Two values may be swapped only if their forms are equal.
    """
    if _number(value):
        return "number"
    return (
        (type(value), len(value))
        if isinstance(value, list | tuple | dict | pd.Series | pd.DataFrame)
        else value
    )


def _exchanged(asked: Numbers, inside: bool) -> Numbers | None:
    """Return the numbers after swapping the values of equal form between their names.

    The values are assigned to the names in reverse order. The names `agree` and `against` are never
    swapped, because this would turn the rule into its opposite.

    Args:
        asked: the numbers that the rule asks for, by name.
        inside: whether to swap the groups inside each dictionary, too.

    Returns:
        The swapped numbers by name, or `None` if there is nothing to swap.
    """
    forms: dict[str, list[str]] = {}
    for name, value in asked.items():
        if isinstance(value, list | tuple | dict | pd.Series | pd.DataFrame) and name not in (
            "agree",
            "against",
        ):
            forms.setdefault(str(_form(value)), []).append(name)
    groups = [names for names in forms.values() if len(names) > 1]
    swapped = {a: asked[b] for names in groups for a, b in zip(names, names[::-1], strict=True)}
    for name, value in asked.items():
        inner = list(value.values()) if isinstance(value, dict) and inside else []
        if (
            len(inner) > 1
            and name not in swapped
            and len({str(_form(each)) for each in inner}) == 1
        ):
            swapped[name] = dict(zip(value, inner[::-1], strict=True))
    return swapped or None
