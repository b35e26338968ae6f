"""The race of chapter 6: one protocol, one budget, every remedy on the tasks that the course has broken.

python -m helpers.chapter6.race --out data/race.csv                   the table
python -m helpers.chapter6.race --heads --out data/race_heads.csv     the same runs, looked at head by head
"""

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy import stats
from torch import Tensor, nn

from helpers import attention, collapse, compute, data, differential, require, sweep, tasks, training
from helpers.tasks import Batch
from helpers.training import UNASKED
from helpers.transformer import Block, Decoder

BUDGET = {"width": 32, "heads": 4, "layers": 2, "steps": 200, "rate": 5e-3, "rows": 32}
TRAINED, LENGTHS = 16, (16, 32, 64, 128)
LONGER = [f"score_{n}" for n in LENGTHS if n > TRAINED]
LOCAL = 8  # window of the local layers
EVERY = 4  # tokens between two separators
BITS = 4
SHARP = 0.5  # of a row's attention on one token is called extreme here
TASKS = {
    "retrieval": lambda n, rows: tasks.Retrieval((n or 4, n or TRAINED), size=rows),
    "first": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("first",), rows),
    "last": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("last",), rows),
    "counting": lambda n, rows: tasks.Counting((n or 1, n or TRAINED), most=TRAINED, size=rows),
    "language": lambda n, rows: tasks.Language((n or TRAINED,) * 2, "held out" if n else "training", rows),
}


def letter_loss() -> float:
    """Loss on the held-out text, in nats, of the training text's frequencies of characters (each counted once more)."""
    counts = Counter(tasks.Language().characters)
    total = counts.total() + len(tasks.Language().vocabulary) - 1
    held = tasks.Language(part="held out").characters
    return -sum(math.log((counts[character] + 1) / total) for character in held) / len(held)


# without the answer: for a digit the more frequent one, which is right in 3 of 4 strings; for language the frequencies
CHANCE = {"retrieval": 1 / 4, "first": 3 / 4, "last": 3 / 4, "counting": 1 / (TRAINED + 1), "language": letter_loss()}
TESTED = {"retrieval": 32, "first": 64, "last": 64, "counting": 64, "language": 32}  # rows a length


# Entries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One remedy: what it changes in the decoder or in the data.

    Attributes:
        settings: arguments of `Decoder`.
        block: what makes a layer, see `Decoder`.
        weigh: what makes weights of logits in place of softmax, see `Block`.
        at_test: the same, put in after training.
        separators: a token is put in after every `EVERY` tokens.
        control: a control and no remedy; `fails` names the tasks that it must fail.
    """

    settings: dict = field(default_factory=dict)
    block: Callable[..., Block] = Block
    weigh: Callable[[Tensor], Tensor] | None = None
    at_test: Callable[[Tensor], Tensor] | None = None
    separators: bool = False
    fails: tuple[str, ...] = ()

    @property
    def control(self) -> bool:
        return bool(self.fails)


def local(*parts, layer: int, **more) -> Block:
    """A window of `LOCAL` tokens in odd layers, none in even ones, as in Gemma 2."""
    width, heads, encoding, _, *rest = parts
    return Block(width, heads, encoding, LOCAL if layer % 2 else None, *rest, layer=layer, **more)


class ScalableSoftmax(nn.Module):
    """softmax(s ln(n) logits), n the keys that a row sees, s learned for each head: Nakanishi (2025).

    It starts with s = 1 / ln(TRAINED): as softmax at the trained length.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.scale = nn.Parameter(torch.full((heads, 1, 1), 1 / math.log(TRAINED)))

    def forward(self, logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
        hidden = torch.isneginf(logits)
        factor = self.scale * (~hidden).sum(-1, keepdim=True).to(logits).log()
        return (logits.masked_fill(hidden, 0) * factor).masked_fill(hidden, -math.inf).softmax(-1)


def sharpened(logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
    """Chapter 3's adaptive temperature, with hidden keys."""
    return collapse.adaptive_temperature(logits.clamp(min=-1e9))


def matched(width: int, more: int) -> int:
    """The perceptron's width that makes up for `more` weights in the attention of a layer."""
    return 4 * width - round(more / (2 * width + 1))


class Gated(Block):
    """Every entry of every head's output times a sigmoid of the token: Qiu et al. (2025), G1."""

    def __init__(self, width: int, *rest, **more):
        super().__init__(width, *rest, **more, hidden=matched(width, width * width))
        self.gate = nn.Linear(width, width, bias=False)

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        gates = self.gate(self.norm1(x)).sigmoid()
        return super().mix(x) * gates.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Differential(Block):
    """`differential.DifferentialAttention` as a layer; version 1 has half the heads, version 2 all of them."""

    version = 1

    def __init__(self, width: int, heads: int, encoding: str, window: int | None, norm: bool, base: float, turning: float, layer: int):  # fmt: skip
        more = 0 if self.version == 1 else width * (width + heads)
        super().__init__(width, heads, "NoPE", window, norm, base, turning, layer, hidden=matched(width, more))
        del self.qkv, self.out
        own = heads // 2 if self.version == 1 else heads
        self.inner = differential.DifferentialAttention(
            width, own, layer, self.version, base if encoding == "RoPE" else None, turning
        )

    def logits(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        """Of both maps."""
        q1, k1, q2, k2, _ = self.inner.project(self.norm1(x))
        bias = self.bias(x.shape[1], q1)
        return torch.cat([q @ k.mT / math.sqrt(q.shape[-1]) + bias for q, k in ((q1, k1), (q2, k2))], 1)

    def attention(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        return self.inner.attention(self.norm1(x))

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        x = x + self.inner(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Differential2(Differential):
    version = 2


BASELINE = "RoPE"
ENTRIES = {
    BASELINE: Entry(),
    "p-RoPE": Entry({"turning": 0.75}),
    "larger base": Entry({"base": 5e5}),
    "NoPE": Entry({"encoding": "NoPE"}),
    "ALiBi": Entry({"encoding": "ALiBi"}),
    "sliding window": Entry(block=local),
    "separators": Entry(separators=True),
    "off-by-one softmax": Entry(weigh=attention.softmax_off_by_one),
    "scalable softmax": Entry(weigh=ScalableSoftmax(BUDGET["heads"])),
    "adaptive temperature": Entry(at_test=sharpened),
    "sparse (entmax 1.5)": Entry(weigh=attention.entmax15),
    "differential": Entry(block=Differential),
    "differential, version 2": Entry(block=Differential2),
    "gated attention": Entry(block=Gated),
    "control: sees 2 back": Entry({"window": 2}, fails=("retrieval", "first", "counting")),
}
REMEDIES = [name for name, entry in ENTRIES.items() if not entry.control]
CONTROLS = [name for name, entry in ENTRIES.items() if entry.control]
POSITIONS = ["p-RoPE", "larger base", "NoPE", "ALiBi"]
MAPS = [
    "off-by-one softmax",
    "scalable softmax",
    "adaptive temperature",
    "sparse (entmax 1.5)",
    "differential",
    "differential, version 2",
]
PHYSICAL = {"windows": "sliding window", "inserted tokens": "separators", "sparsity": "sparse (entmax 1.5)"}
STANDINS = {"sparsity": "a map with zeros; a choice of keys beforehand, as Yuan et al. make it, was not run"}


def entry_of(name: str) -> Entry:
    """The entry of a name.

    Raises:
        ValueError: there is none of this name.

    >>> entry_of("NoPE").settings
    {'encoding': 'NoPE'}
    """
    return ENTRIES[require.choice("entry", name, ENTRIES)]


# Data --------------------------------------------------------------------------------------------------


def vocabulary(task: str) -> tuple[str, ...]:
    """The task's tokens and the separator, which all entries have and one uses."""
    return (*TASKS[require.choice("task", task, TASKS)](None, 1).vocabulary, "|")


def separated(x: Int[Tensor, "b n"], token: int) -> Int[Tensor, "b m"]:
    """With `token` after every `EVERY` tokens, but not at the end.

    >>> separated(torch.arange(1, 7)[None], 0).tolist()
    [[1, 2, 3, 4, 0, 5, 6]]
    """
    n = x.shape[1]
    places = torch.arange(n) + torch.arange(n) // EVERY
    wide = torch.full((len(x), n + (n - 1) // EVERY), token)
    wide[:, places] = x
    return wide


def batch(entry: Entry, task: str, generator: torch.Generator, n: int | None = None) -> Batch:
    """Tokens and targets as the entry gets them: for training, or at length n for a test."""
    rows = TESTED[task] if n else BUDGET["rows"]
    if entry.separators and not n:
        rows = round(rows * EVERY / (EVERY + 1))  # as many tokens a step
    ids, targets = TASKS[task](n, rows)(generator)
    if entry.separators:
        ids, targets = separated(ids, len(vocabulary(task)) - 1), separated(targets, UNASKED)
    return ids, targets


def roles(task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> tuple[Bool[Tensor, "b n n"], ...]:
    """For each token that is asked at and each token: is it the answer, and is it noise?

    Noise is what could have been the answer: other pairs, other digits; the letter x where y is counted.
    """
    words = vocabulary(task)
    number = {word: k for k, word in enumerate(words)}
    asked = (targets != UNASKED)[:, :, None]
    n = ids.shape[1]
    if task == "retrieval":
        pair = ids >= len(words) - 1 - tasks.Retrieval().keys * tasks.Retrieval().values
        content = pair & (ids < len(words) - 1)
        answer = torch.arange(n) == tasks.Retrieval().answers(ids.where(ids < len(words) - 1, 0))[:, :, None]
    elif task == "counting":
        content = (ids == number["x"]) | (ids == number["y"])
        answer = (ids == number["y"])[:, None, :].expand(-1, n, -1)
    else:
        content = (ids == number["0"]) | (ids == number["1"])
        order = content.cumsum(1)
        place = 1 if task == "first" else content.sum(1, keepdim=True)
        answer = (content & (order == place))[:, None, :].expand(-1, n, -1)
    return asked & answer, asked & content[:, None, :] & ~answer


# Training and measuring --------------------------------------------------------------------------------


def decoder(entry: Entry, task: str, seed: int) -> Decoder:
    """The untrained model of an entry."""
    torch.manual_seed(seed)
    block = entry.block if entry.weigh is None else partial(entry.block, attention=entry.weigh)
    sizes = {name: BUDGET[name] for name in ("width", "heads", "layers")}
    return Decoder(len(vocabulary(task)), **sizes, **entry.settings, block=block)


@torch.no_grad()
def score(model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> float:
    """Share of right answers; for language the loss in nats a character."""
    logits, asked = model(ids), targets != UNASKED
    if task == "language":
        return float(nn.functional.cross_entropy(logits[asked], targets[asked]))
    return float((logits.argmax(-1) == targets)[asked].double().mean())


@torch.no_grad()
def masses(model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> tuple[float, float]:
    """Shares of the attention, |weight| over the row's sum of |weights|, on answer and on noise.

    Mean over questions and heads, in the layer that gives the answer most. Signed maps make the normalisation
    necessary; it hides how much a row that sums to less than 1 leaves out.
    """
    answer, noise = roles(task, ids, targets)
    maps = model.attention(ids).abs()
    maps = maps / maps.sum(-1, keepdim=True).clamp(min=1e-12)
    asked = (targets != UNASKED).sum()
    heads = maps.shape[2]
    shares = [[float((layer * mask[:, None]).sum() / asked / heads) for mask in (answer, noise)] for layer in maps]
    return tuple(max(shares))


@torch.no_grad()
def best_heads(model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> tuple[float, ...]:
    """The answer's share, as in `masses`, in the head that gives it most, question by question: heads may share them out.

    Returns:
        mean over questions, share of the questions with a head above `SHARP`, and the largest mean of one head for all
        questions, in the layer where the first of them is largest.
    """
    answer, _ = roles(task, ids, targets)
    maps = model.attention(ids).abs()
    maps = maps / maps.sum(-1, keepdim=True).clamp(min=1e-12)
    asked, found = targets != UNASKED, []
    for layer in maps:
        shares = (layer * answer[:, None]).sum(-1).transpose(1, 2)[asked]  # (questions, heads)
        best = shares.amax(1)
        found.append((float(best.mean()), float((best > SHARP).double().mean()), float(shares.mean(0).max())))
    return max(found)


@torch.no_grad()
def two_noises(model: Decoder, task: str, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> dict[str, float]:
    """Do the noises a and b of a differential layer's two maps agree? Means over questions, of all heads of a layer.

    Returns:
        for each layer: their cosine, lambda / 2 (`half`), the mean of |a - lambda b| over the mean of |a| (`left`), and
        the share of the heads whose mean cosine is above their mean lambda / 2 (`agree`).
    """
    _, keys = roles(task, ids, targets)
    noise = keys.any(-1)  # where a question has noise
    keys = keys[noise].double()[:, None]  # (questions, 1, n)
    x, found = model.embed(ids), {}
    for number, block in enumerate(model.blocks, 1):
        states = block.norm1(x)
        a, b = (each.transpose(1, 2)[noise].double() * keys for each in block.inner.maps(states))
        heads = block.inner.heads
        lam = block.inner.lam(states).double().expand(len(ids), heads, ids.shape[1]).transpose(1, 2)[noise]
        cosine, half = torch.cosine_similarity(a, b, dim=-1).mean(0), lam.mean(0) / 2
        rest = (a - lam[..., None] * b).norm(dim=-1).mean() / a.norm(dim=-1).mean()
        found |= {
            f"cosine_{number}": float(cosine.mean()),
            f"half_{number}": float(half.mean()),
            f"left_{number}": float(rest),
            f"agree_{number}": float((cosine > half).double().mean()),
        }
        x = block(x)
    return found


def outlier(x: Tensor) -> float:
    """The largest size over the median size."""
    sizes = x.abs().flatten()
    return float(sizes.max() / sizes.median().clamp(min=1e-12))


def rounded(x: Tensor) -> Tensor:
    """To `BITS` bits, with one scale for the whole tensor, set by its largest size."""
    step = x.abs().max() / (2 ** (BITS - 1) - 1)
    return (x / step).round() * step if step > 0 else x


@torch.no_grad()
def quantisation_error(model: Decoder, ids: Int[Tensor, "b n"]) -> float:
    """Relative change of the logits when all that enters a linear layer is rounded to `BITS` bits."""
    exact = model(ids)
    linear = [each for each in model.modules() if isinstance(each, nn.Linear)]
    hooks = [each.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]),)) for each in linear]
    try:
        rough = model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return float((rough - exact).norm() / exact.norm())


def effective_rank(states: Float[Tensor, "b n d"]) -> float:
    """exp(entropy of the singular values' shares) of all centred states: from 1 to the width."""
    flat = states.flatten(0, 1).double()
    shares = torch.linalg.svdvals(flat - flat.mean(0))
    shares = shares / shares.sum().clamp(min=1e-12)
    return float(torch.special.entr(shares).sum().exp())


@torch.no_grad()
def last_token_distance(model: Decoder, entry: Entry, task: str, n: int, seed: int) -> float:
    """L1 distance of the last states of n tokens and of n + 1, the last one repeated: mean of 32 strings."""
    ids, _ = TASKS[task](n, 32)(torch.Generator().manual_seed(seed))
    ids = ids[:, :n] if task in ("retrieval", "language") else ids[:, : n + 1]  # without the question
    pair = ids, torch.cat([ids, ids[:, -1:]], 1)
    if entry.separators:
        pair = [separated(each, len(vocabulary(task)) - 1) for each in pair]
    before, after = (model.states(each)[:, -1] for each in pair)
    return float((before - after).abs().sum(-1).mean())


@torch.no_grad()
def largest_logit(model: Decoder, ids: Int[Tensor, "b n"]) -> float:
    """`outlier` of the attention logits, the larger one of the layers."""
    x, found = model.embed(ids), []
    for block in model.blocks:
        logits = block.logits(x)
        found.append(outlier(logits[torch.isfinite(logits)]))
        x = block(x)
    return max(found)


def train(entry: Entry, task: str, seed: int, steps: int) -> tuple[Decoder, list[float]]:
    """A trained model of an entry, ready to be tested."""
    model = decoder(entry, task, seed)
    losses = training.fit(model, partial(batch, entry, task), steps=steps, rate=BUDGET["rate"], seed=seed)
    if entry.at_test is not None:
        for block in model.blocks:
            block.weigh = entry.at_test
    return model, losses


def tests_of(entry: Entry, task: str, seed: int) -> dict[int, Batch]:
    """The rows to test on, by length."""
    return {n: batch(entry, task, torch.Generator().manual_seed(10**6 + 1000 * seed + n), n) for n in LENGTHS}


def measure(entry: Entry, task: str, seed: int, steps: int) -> dict[str, float | None]:
    """One run: train, then all columns of the table."""
    start = time.process_time()
    model, losses = train(entry, task, seed, steps)
    spent = time.process_time() - start
    found: dict[str, float | None] = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_ms": 1000 * spent / steps,
        "loss": sum(losses[-20:]) / len(losses[-20:]),
    }
    tests = tests_of(entry, task, seed)
    found |= {f"score_{n}": score(model, task, *test) for n, test in tests.items()}
    for n in (TRAINED, LENGTHS[-1]):
        shares = (None, None) if task == "language" else masses(model, task, *(part[:32] for part in tests[n]))
        found |= dict(zip((f"answer_{n}", f"noise_{n}"), shares, strict=True))
    ids = tests[LENGTHS[-1]][0][:32]
    with torch.no_grad():
        states = model.states(ids)
    found |= {
        "outlier_states": outlier(states),
        "outlier_logits": largest_logit(model, ids),
        "quantisation_error": quantisation_error(model, ids),
        "effective_rank": effective_rank(states),
    }
    found |= {f"distance_{n}": last_token_distance(model, entry, task, n, 10**6 + seed) for n in (TRAINED, LENGTHS[-1])}
    return _short(found)


def _short(found: dict[str, float | None]) -> dict[str, float | None]:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in found.items()}


def run(entry: str, task: str, seed: int, steps: int) -> dict[str, float | None]:
    """A row of the table.

    Raises:
        ValueError: unknown entry or task, or a seed or a number of steps out of range.
    """
    require.choice("task", task, TASKS)
    return measure(entry_of(entry), task, require.seed(seed), require.integer("steps", steps, 1))


def run_heads(entry: str, task: str, seed: int, steps: int) -> dict[str, float | None]:
    """A row of the second table: the same training and tests as in `run`, looked at head by head.

    Raises:
        ValueError: as `run`, or language, which has no answer to look at.
    """
    require.choice("task", task, [name for name in TASKS if name != "language"])
    chosen, steps = entry_of(entry), require.integer("steps", steps, 1)
    model, _ = train(chosen, task, require.seed(seed), steps)
    tests = tests_of(chosen, task, seed)
    found: dict[str, float | None] = {f"score_{n}": score(model, task, *test) for n, test in tests.items()}
    ends = {n: tuple(part[:32] for part in tests[n]) for n in (TRAINED, LENGTHS[-1])}
    for n, test in ends.items():
        names = (f"best_{n}", f"sharp_{n}", f"one_{n}")
        found |= dict(zip(names, best_heads(model, task, *test), strict=True))
    two = two_noises(model, task, *ends[LENGTHS[-1]]) if isinstance(model.blocks[0], Differential) else {}
    names = [f"{what}_{number}" for number in (1, 2) for what in ("cosine", "half", "left", "agree")]
    return _short(found | {name: two.get(name) for name in names})


# The learner's entry -----------------------------------------------------------------------------------


def enter(
    name: str,
    weigh: Callable[[Float[Tensor, "b h n n"]], Float[Tensor, "b h n n"]],
    chosen: Sequence[str] = ("retrieval",),
    seeds: int = 1,
    steps: int | None = None,
) -> pd.DataFrame:
    """Enter the race with a function of your own: trained as all others are, with rows as `table` has them.

    Args:
        name: for the picture; none that is taken.
        weigh: takes logits (b, h, n, n), minus infinity where a token must not look, and returns as many weights.
        chosen: tasks; one run takes about 3 s, language and counting as well.
        seeds: 0, 1, … as in the table, so that runs can be paired.
        steps: the race's own number when None.

    Raises:
        ValueError: a name that is taken, an unknown task, or a function that returns another shape, numbers that are
            not finite, or weight on a token that must not be seen.

    >>> enter("a copy of softmax", lambda logits: logits.softmax(-1), steps=2)[["entry", "task"]].values.tolist()
    [['a copy of softmax', 'retrieval']]
    """
    require.text("name", name, empty=False)
    if name in ENTRIES:
        raise ValueError(f"name must be new, but {name!r} is an entry of the race")
    check_weights(weigh)
    if isinstance(chosen, str) or not isinstance(chosen, Iterable) or not list(chosen):
        raise ValueError(f"chosen must be a list of tasks, one or more of {', '.join(TASKS)}, not {chosen!r}")
    for task in chosen:
        require.choice("chosen", task, TASKS)
    require.integer("seeds", seeds, 1)
    steps = BUDGET["steps"] if steps is None else require.integer("steps", steps, 1)
    rows = []
    for setting in compute.progress(sweep.grid(seed=range(seeds), task=chosen), "runs"):
        start = time.perf_counter()
        with compute.threads(1):
            found = measure(Entry(weigh=weigh), setting["task"], setting["seed"], steps)
        row = {"seed": setting["seed"], "entry": name, "task": setting["task"], "steps": steps}
        rows.append(row | found | {"seconds": round(time.perf_counter() - start, 1)})
    return pd.DataFrame(rows)


def check_weights(weigh: Callable[[Tensor], Tensor]) -> None:
    """One sentence on what is wrong with a function from logits to weights, before it is trained."""
    require.function("weigh", weigh)
    logits = torch.randn(2, BUDGET["heads"], 5, 5, generator=torch.Generator().manual_seed(0))
    hidden = torch.ones(5, 5).triu(1).bool()
    try:
        found = weigh(logits.masked_fill(hidden, -math.inf))
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(f"weigh must take logits (b, h, n, n), but: {error}") from error
    if not isinstance(found, Tensor) or found.shape != logits.shape:
        raise ValueError(
            f"weigh must return as many weights as logits, {tuple(logits.shape)}, not {require.said(found)}"
        )
    if not torch.isfinite(found).all():
        raise ValueError("weigh must return finite weights, also where the logits are minus infinity")
    if (found[..., hidden] != 0).any():
        raise ValueError("weigh must give no weight to a token that must not be seen (a logit of minus infinity)")


# The table ---------------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    """The runs of `data/race.csv`, with the mean score at the longer lengths."""
    return with_longer(data.table("race"))


def heads_table() -> pd.DataFrame:
    """The runs of `data/race_heads.csv`, see `run_heads`."""
    return data.table("race_heads")


def with_longer(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column `longer`: the mean score at all lengths beyond the trained one."""
    return rows.assign(longer=rows[LONGER].mean(axis=1))


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean, and the ends of Student's interval over seeds; nan ends where there is one seed.

    >>> [round(x, 3) for x in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    values = np.asarray(values, dtype=float)
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return mean, math.nan, math.nan
    half = float(stats.t.ppf((1 + level) / 2, count - 1) * values.std(ddof=1) / math.sqrt(count))
    return mean, mean - half, mean + half


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction (1979): the chance of one false alarm or more among all comparisons stays below the level.

    >>> [round(x, 3) for x in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order, found, worst = np.argsort(p), [1.0] * len(p), 0.0
    for rank, place in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[place]))
        found[place] = worst
    return found


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The p value of a paired t test over seeds, two-sided; 1 where all differences are 0 or there is one seed.

    Where all differences are equal a t test would be sure of anything, and the sign test is asked: 2^(1 - seeds).

    >>> paired([1.0, 1.0], [1.0, 1.0])
    1.0
    """
    gaps = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    if len(gaps) < 2 or not gaps.any():
        return 1.0
    if np.ptp(gaps) < 1e-12:
        return 2.0 ** (1 - len(gaps))
    return float(stats.ttest_rel(ours, theirs).pvalue)


def compare(rows: pd.DataFrame, column: str = "longer", against: str = BASELINE, level: float = 0.05) -> pd.DataFrame:
    """Every entry against one, task by task, paired over seeds, corrected by Holm over all these comparisons.

    Returns:
        a row for each entry and task: mean, low, high (95 % intervals), gap, p (corrected), verdict.

    Raises:
        ValueError: `against` or `column` is not in the table, or an entry has other seeds than it.
    """
    require.choice("against", against, list(rows.entry.unique()))
    require.choice("column", column, list(rows.columns))
    found = []
    for task in [t for t in TASKS if t in set(rows.task)]:
        wide = rows[rows.task == task].pivot(index="seed", columns="entry", values=column)
        for name in rows.entry.unique():
            if name not in wide or wide[name].notna().sum() == 0:
                continue
            both = wide[[name, against]].dropna() if name != against else wide[[name]].dropna()
            mean, low, high = interval(wide[name].dropna())
            theirs = both[against]
            sign = -1 if task == "language" else 1  # a lower loss is better
            found.append({
                "task": task, "entry": name, "mean": mean, "low": low, "high": high, "seeds": len(both),
                "gap": sign * float((both[name] - theirs).mean()), "p": paired(both[name], theirs),
            })  # fmt: skip
    result = pd.DataFrame(found)
    others = result.entry != against
    result.loc[others, "p"] = holm(result.p[others].tolist())
    sure = others & (result.p < level)
    result["verdict"] = np.where(
        ~others, "baseline", np.where(~sure, "no difference", np.where(result.gap > 0, "better", "worse"))
    )
    return result


def rank_correlation(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", without: Sequence[str] = ()
) -> tuple[float, float]:
    """Spearman's, over the remedies, of a share ("answer" or "noise") and the score at the longest length; and its p value.

    The p value takes the entries for independent, and most of them are changes of one baseline: it is too small.
    """
    require.choice("share", share, ["answer", "noise"])
    here = rows[(rows.task == task) & rows.entry.isin([n for n in REMEDIES if n not in without])].groupby("entry")
    means = here[[f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    found = stats.spearmanr(means.iloc[:, 0], means.iloc[:, 1])
    return float(found.statistic), float(found.pvalue)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m helpers.chapter6.race", description=__doc__.splitlines()[0])
    parser.add_argument("--heads", action="store_true", help="the second table: what single heads attend to")
    parser.add_argument("--entries", nargs="+", metavar="ENTRY")
    parser.add_argument("--tasks", nargs="+", metavar="TASK")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=BUDGET["steps"])
    sweep.options(parser)
    chosen = parser.parse_args(arguments)
    entries = chosen.entries or (REMEDIES if chosen.heads else list(ENTRIES))
    for name in entries:
        if name not in ENTRIES:
            parser.error(f"entry must be one of {', '.join(ENTRIES)}, not {name!r}")
    each = chosen.tasks or (["retrieval", "last"] if chosen.heads else list(TASKS))
    settings = sweep.grid(seed=range(chosen.seeds), entry=entries, task=each, steps=[chosen.steps])
    notes = [
        f"Decoders of width {BUDGET['width']}, {BUDGET['heads']} heads, {BUDGET['layers']} layers; AdamW, rate "
        f"{BUDGET['rate']}, {BUDGET['rows']} rows a step of up to {TRAINED} tokens; the same for all entries",
        "best_n: the answer's share in the head that gives it most, mean over questions on n tokens, in the layer where "
        f"it is largest; sharp_n: share of the questions with a head above {SHARP}; one_n: as best_n, one head for all; the noises of two maps on "
        f"{LENGTHS[-1]} tokens, by layer: cosine, lambda / 2 (half), size left, share of the heads that agree"
        if chosen.heads
        else f"score_n: accuracy on n tokens, for language the loss in nats a character; {BITS}-bit quantisation error; "
        "step_ms: processor time of a training step",
    ]
    sweep.run_line(parser, arguments, run_heads if chosen.heads else run, settings, notes)


if __name__ == "__main__":
    main()
