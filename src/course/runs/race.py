"""Run the race of chapter 7, in which every remedy gets the same tasks, protocol and criterion.

The tables are:
- `race`, the main table
- `race_fixed`, named entries at a fixed budget
- `race_window`, the same for windows of the winner
- `race_far`, the entries that are right at 128, on up to 2,048 tokens
- `race_plateau`, every run for a fixed 3,000 steps, judged at the criterion and at the end
- `race_twice`, the same at twice the width with 4 layers
- `race_wide`, `race` at width 256 with 6 layers, for a GPU
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course.runs import protocol, sweep
from course.runs.comparison import with_longer
from course.runs.entries import ENTRIES, Entry, entry_of
from course.runs.runs import far, fixed, measure, plateau
from course.training import threads
from helpers import compute, require
from helpers.transformer import Block

WHAT = {"table": measure, "fixed": fixed, "far": far, "plateau": plateau}


def run(
    entry: str,
    task: str,
    seed: Sequence[int],
    budget: int,
    size: str = "small",
    what: str = "table",
    rate: float | None = None,
) -> list[dict[str, float | None]]:
    """Train one entry on one task, and return one row per seed.

    Args:
        what: the table to which the rows belong.
        rate: the learning rate, only for `plateau` and `fixed`. `None` stands for the learning rate
            that `SIZES` has for this size.

    Raises:
        ValueError: if the entry, task or size is unknown, or a seed or the number of steps is out
            of range.
    """
    require.choice("task", task, protocol.EVERY_TASK)
    require.choice("size", size, protocol.SIZES)
    seeds = require.integers("seed", seed, 0)
    rows = WHAT[require.choice("what", what, WHAT)]
    if rate is not None:
        rows = partial(rows, rate=require.number("rate", rate, above=0))
    return rows(entry_of(entry), task, seeds, require.integer("budget", budget, 1), size)


# Enter the race yourself --------------------------------------------------------------------------


def enter(
    name: str,
    weigh: Callable[[Float[Tensor, "b h n n"]], Float[Tensor, "b h n n"]] | type[nn.Module],
    chosen: Sequence[str] = ("retrieval",),
    seeds: int = 1,
    steps: int | None = None,
) -> pd.DataFrame:
    """Enter the race with a function of your own, and return its rows of the results table.

    Your entry is trained like all other entries, and the rows have the form of `table`.

    Args:
        name: a name for the figure that no other entry has.
        weigh: a function that takes logits (b, h, n, n), with minus infinity at masked tokens, and
            returns weights of the same shape. You may also give a class, either your own `Block` or
            a whole model, whose constructor gets the number of tokens. A whole model is measured
            but not ranked.
        chosen: the tasks. A run that learns takes a few seconds.
        seeds: how many seeds to use. They are 0, 1, … as in the table, so that runs can be paired.
        steps: the largest number of steps to the criterion. `None` takes the number that the race
            allows.

    Raises:
        ValueError: if the name is taken, a task is unknown, or the function returns another shape,
            numbers that are not finite, or weight on a masked token.

    >>> rows = enter("a copy of softmax", lambda logits: logits.softmax(-1), steps=2)
    >>> rows[["entry", "task"]].values.tolist()
    [['a copy of softmax', 'retrieval']]
    """
    require.text("name", name, empty=False)
    if name in ENTRIES:
        raise ValueError(f"name must be new, but the race already has an entry {name!r}")
    entry = _own(weigh)
    if isinstance(chosen, str) or not isinstance(chosen, Iterable) or not list(chosen):
        raise ValueError(
            f"chosen must be a list of tasks, one or more of {', '.join(protocol.TASKS)}, not "
            f"{chosen!r}"
        )
    for task in chosen:
        require.choice("chosen", task, protocol.TASKS)
    require.integer("seeds", seeds, 1)
    steps = protocol.BUDGET["steps"] if steps is None else require.integer("steps", steps, 1)
    rows = []
    for setting in compute.progress(sweep.grid(seed=range(seeds), task=chosen), "runs"):
        start = time.perf_counter()
        with threads(1):
            found = measure(entry, setting["task"], [setting["seed"]], steps)[0]
        row = {
            "seed": setting["seed"],
            "entry": name,
            "task": setting["task"],
            "budget": steps,
            "size": "small",
        }
        rows.append(row | found | {"seconds": round(time.perf_counter() - start, 1)})
    return with_longer(pd.DataFrame(rows))


def _own(change: Callable | type[nn.Module]) -> Entry:
    """Turn a learner's function or class into an entry of the race."""
    if isinstance(change, type) and issubclass(change, Block):
        return Entry(block=change)
    if isinstance(change, type) and issubclass(change, nn.Module):
        return Entry(model=change)
    check_weights(change)
    return Entry(weigh=change)


def check_weights(weigh: Callable[[Tensor], Tensor]) -> None:
    """Check a function from logits to weights before training, so that mistakes show early.

    Raises:
        ValueError: if the function fails, or it does not return finite weights of the logits' shape
            that are 0 at masked tokens.
    """
    require.function("weigh", weigh)
    logits = torch.randn(
        2, protocol.BUDGET["heads"], 5, 5, generator=torch.Generator().manual_seed(0)
    )
    hidden = torch.ones(5, 5).triu(1).bool()
    try:
        found = weigh(logits.masked_fill(hidden, -math.inf))
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(f"weigh must take logits (b, h, n, n), but: {error}") from error
    if not isinstance(found, Tensor) or found.shape != logits.shape:
        raise ValueError(
            "weigh must return weights of the same shape as the logits, "
            f"{tuple(logits.shape)}, not {require.brief(found)}"
        )
    if not torch.isfinite(found).all():
        raise ValueError("weigh must return finite weights, even if some logits are minus infinity")
    if (found[..., hidden] != 0).any():
        raise ValueError(
            "weigh must give no weight to a hidden token, whose logit is minus infinity"
        )
