"""The race of chapter 6: one protocol, one criterion, every remedy on the tasks that the course has broken.

python -m helpers.chapter6.race --out data/race.csv                   the table
python -m helpers.chapter6.race --size wide --out data/race_wide.csv  the same at width 256 with 6 layers: for a GPU
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from helpers import attention, collapse, compute, data, differential, require, significance, sweep, tasks, training
from helpers.tasks import Batch
from helpers.training import UNASKED
from helpers.transformer import Block, Decoder


def counted(task: tasks.RunningCount, at_the_end: bool) -> Callable[[torch.Generator], Batch]:
    """Asked after every letter, as in training, or after the last one, as at test.

    Asked at the end alone, none of six decoders of this size learned to count in 1,000 steps (0.81 to 0.90 right).
    """
    return (lambda generator: task.encode(task.strings(generator))) if at_the_end else task


SIZES = {
    "small": {"width": 32, "heads": 4, "layers": 2, "rate": 5e-3, "rows": 32},
    "wide": {"width": 256, "heads": 8, "layers": 6, "rate": 1e-3, "rows": 64},
}
BUDGET = SIZES["small"] | {"steps": 1000, "seeds": 15}
TRAINED, LENGTHS = 16, (16, 32, 64, 128)
LONGER = [f"score_{n}" for n in LENGTHS if n > TRAINED]
LOCAL = 8  # window of the local layers, and keys that a choice of keys keeps
EVERY = 4  # tokens between two separators
BITS = 4
TASKS = {
    "retrieval": lambda n, rows: tasks.Retrieval((n or 4, n or TRAINED), size=rows),
    "last": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("last",), rows),
    "first": lambda n, rows: tasks.Copying((n or 1, n or TRAINED), ("first",), rows),
    "counting": lambda n, rows: counted(
        tasks.RunningCount((n or 1, n or TRAINED), most=TRAINED, size=rows), at_the_end=bool(n)
    ),
}
# without the answer: for a digit the more frequent one, which is right in 3 of 4 strings
CHANCE = {"retrieval": 1 / 4, "last": 3 / 4, "first": 3 / 4, "counting": 1 / (TRAINED + 1)}
TESTED = {"retrieval": 64, "last": 128, "first": 128, "counting": 128}  # rows a length; a row of retrieval asks 4 times
LOOKED = ("retrieval", "last")  # where attention is looked at, too

# Decisions, written down before the runs -----------------------------------------------------------------

LEARNED = 0.98  # right at the trained length, on rows of its own: a run that gets there stops, one that does not has not learned
CELL = 0.8  # of a cell's seeds must have learned, or the cell is "not learned" and compared at no length
CHECKED = 100  # steps between two looks at the criterion
MARGIN = 0.05  # a gap whose 90 % interval lies within this is "equal within"
LEVEL = 0.05  # of a test, after Holm's correction over the remedies of a task
KEPT = 0.9  # right at the longest length
SHARP = 0.5  # of a row's attention on one token is called extreme
VERDICTS = ("better", "worse", f"equal within {MARGIN}", "not told apart", "not learned", "reference not learned")


# Entries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One remedy: what it changes in the decoder or in the data.

    Attributes:
        settings: arguments of `Decoder`.
        block: what makes a layer, see `Decoder`.
        weigh: what makes weights of logits in place of softmax, see `Block`; or a class of such modules, made with the
            number of heads.
        at_test: the same, put in after training.
        separators: a token is put in after every `EVERY` tokens.
        reference: what it must be better than to count as a success: the entry without this remedy.
        control: a control and no remedy; `fails` names the tasks that it must fail.
    """

    settings: dict = field(default_factory=dict)
    block: Callable[..., Block] = Block
    weigh: Callable[[Tensor], Tensor] | None = None
    at_test: Callable[[Tensor], Tensor] | None = None
    separators: bool = False
    reference: str = "RoPE"
    fails: tuple[str, ...] = ()

    @property
    def control(self) -> bool:
        return bool(self.fails)


def local(*parts, layer: int, **more) -> Block:
    """A window of `LOCAL` tokens in odd layers, none in even ones, as in Gemma 2."""
    width, heads, encoding, _, *rest = parts
    return Block(width, heads, encoding, LOCAL if layer % 2 else None, *rest, layer=layer, **more)


def hybrid(*parts, layer: int, **more) -> Block:
    """RoPE within a window of `LOCAL` tokens in odd layers, all tokens without positions in even ones.

    Yang et al. (2025), RNoPE-SWA.
    """
    width, heads, _, _, *rest = parts
    near = layer % 2 == 1
    return Block(width, heads, "RoPE" if near else "NoPE", LOCAL if near else None, *rest, layer=layer, **more)


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


class AdaptiveEntmax(nn.Module):
    """`attention.adaptive_entmax` with beta (above 0) and gamma learned for each head, delta 1: Vasylenko et al. (2026).

    It starts near entmax 1.5: beta 0.1, gamma 1.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.raw = nn.Parameter(torch.full((heads, 1, 1), math.log(math.expm1(0.1))))  # softplus of it is beta
        self.gamma = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
        return attention.adaptive_entmax(logits, nn.functional.softplus(self.raw), self.gamma)


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
    """`differential.DifferentialAttention` as a layer; version 1 has half the heads, version 2 all of them.

    Args:
        inner: more arguments of `DifferentialAttention`.
    """

    version = 1

    def __init__(self, width: int, heads: int, encoding: str, window: int | None, norm: bool, base: float, turning: float, layer: int, inner: dict | None = None):  # fmt: skip
        more = 0 if self.version == 1 else width * (width + heads)
        super().__init__(width, heads, "NoPE", window, norm, base, turning, layer, hidden=matched(width, more))
        del self.qkv, self.out
        own = heads // 2 if self.version == 1 else heads
        self.inner = differential.DifferentialAttention(
            width, own, layer, self.version, base if encoding == "RoPE" else None, turning, **(inner or {})
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


BASELINE, PLAIN = "RoPE", {"encoding": "NoPE"}
HALF, MIXED = "RoPE, half the heads", "local RoPE, global NoPE"
ENTRIES = {
    BASELINE: Entry(),
    HALF: Entry({"heads": BUDGET["heads"] // 2}),
    "p-RoPE": Entry({"turning": 0.75}),
    "larger base": Entry({"base": 5e5}),
    "ALiBi": Entry({"encoding": "ALiBi"}),
    "NoPE": Entry(PLAIN),
    "sliding window": Entry(block=local),
    MIXED: Entry(block=hybrid),
    "separators": Entry(separators=True),
    "top 8 keys": Entry(weigh=partial(attention.top_k, k=LOCAL)),
    "selective attention": Entry(weigh=attention.selective),
    "scalable softmax": Entry(weigh=ScalableSoftmax),
    "adaptive temperature": Entry(at_test=sharpened),
    "sparse (entmax 1.5)": Entry(weigh=attention.entmax15),
    "NoPE, scalable softmax": Entry(PLAIN, weigh=ScalableSoftmax, reference="NoPE"),
    "NoPE, adaptive entmax": Entry(PLAIN, weigh=AdaptiveEntmax, reference="NoPE"),
    "NoPE, stick-breaking": Entry(PLAIN, weigh=attention.stick_breaking, reference="NoPE"),
    "differential": Entry(block=Differential, reference=HALF),
    "differential, version 2": Entry(block=Differential2),
    "NoPE, differential": Entry(PLAIN, Differential, reference="NoPE"),
    "off-by-one softmax": Entry(weigh=attention.softmax_off_by_one),
    "gated attention": Entry(block=Gated),
    "control: sees 2 back": Entry({"window": 2}, fails=("retrieval", "first", "counting")),
}
REMEDIES = [name for name, entry in ENTRIES.items() if not entry.control]
CONTROLS = [name for name, entry in ENTRIES.items() if entry.control]
POSITIONS = ["p-RoPE", "larger base", "ALiBi"]
PHYSICAL = {
    "windows": ["sliding window", MIXED],
    "inserted tokens": ["separators"],
    "sparsity": ["top 8 keys", "selective attention"],
}
MAPS = REMEDIES[REMEDIES.index("top 8 keys") : REMEDIES.index("gated attention")]
# What each hypothesis of the lesson is about: one success of one entry is enough, for all of them
HYPOTHESES = {
    "H1": ("a position encoding alone is enough", POSITIONS),
    "H2": ("physical intervention is enough", [name for names in PHYSICAL.values() for name in names]),
    "H3": (
        "a sharper map is enough",
        [
            "scalable softmax",
            "adaptive temperature",
            "sparse (entmax 1.5)",
            "NoPE, scalable softmax",
            "NoPE, adaptive entmax",
        ],
    ),
    "H4": ("a difference of two maps is enough", ["differential", "differential, version 2", "NoPE, differential"]),
    "H5": ("saying nothing is enough", ["off-by-one softmax", "gated attention", "NoPE, stick-breaking"]),
}


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


def decoder(entry: Entry, task: str, seed: int, size: str = "small") -> Decoder:
    """The untrained model of an entry."""
    torch.manual_seed(seed)
    sizes = {name: SIZES[size][name] for name in ("width", "heads", "layers")}
    weigh = entry.weigh(sizes["heads"]) if isinstance(entry.weigh, type) else entry.weigh
    block = entry.block if weigh is None else partial(entry.block, attention=weigh)
    settings = entry.settings | ({"heads": sizes["heads"] // 2} if "heads" in entry.settings else {})
    return Decoder(len(vocabulary(task)), **sizes | settings, block=block)


@torch.no_grad()
def score(model: Decoder, ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> float:
    """Share of right answers."""
    return float((model(ids).argmax(-1) == targets)[targets != UNASKED].double().mean())


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
    """Do the noises a and b of a differential layer's two maps agree, and does subtracting help? Of all heads of a layer.

    With noises of any sizes |a - lambda b| is below |a| where their cosine is above (|b| / |a|) lambda / 2.

    Returns:
        for each layer: the mean cosine, what it must be above (`needed`), the share of heads and questions where it is
        (`agree`), the mean of |a - lambda b| over the mean of |a| (`left`), by what signal over noise is multiplied, the
        signal being the mean weight on the answer (`gain`), and that weight in the first map (`signal`).
    """
    answer, keys = roles(task, ids, targets)
    noise = keys.any(-1)  # where a question has noise
    keys, answer = (part[noise].double()[:, None] for part in (keys, answer))  # (questions, 1, n)
    x, found = model.embed(ids), {}
    for number, block in enumerate(model.blocks, 1):
        states = block.norm1(x)
        first, second = (each.transpose(1, 2)[noise].double() for each in block.inner.maps(states))
        heads = block.inner.heads
        lam = block.inner.lam(states).double().expand(len(ids), heads, ids.shape[1]).transpose(1, 2)[noise][..., None]
        a, b, rest = ((each * keys).norm(dim=-1) for each in (first, second, first - lam * second))
        cosine = torch.cosine_similarity(first * keys, second * keys, dim=-1)
        needed = lam[..., 0] / 2 * b / a
        signals = [float((each * answer).sum(-1).mean()) for each in (first, first - lam * second)]
        found |= {
            f"cosine_{number}": float(cosine.mean()),
            f"needed_{number}": float(needed.mean()),
            f"agree_{number}": float((cosine > needed).double().mean()),
            f"left_{number}": float(rest.mean() / a.mean()),
            f"gain_{number}": signals[1] / max(signals[0], 1e-12) * float(a.mean() / rest.mean()),
            f"signal_{number}": signals[0],
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
    ids = ids[:, :n] if task == "retrieval" else ids[:, : n + 1]  # without the question
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


@cache
def criterion(task: str, separators: bool) -> Batch:
    """The rows at the trained length that say whether a model has learned: neither trained nor tested on."""
    entry = Entry(separators=separators)
    parts = [batch(entry, task, torch.Generator().manual_seed(3 * 10**6 + part), TRAINED) for part in range(2)]
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def has_learned(model: Decoder, entry: Entry, task: str) -> bool:
    """Right in `LEARNED` of the questions of `criterion`."""
    place = next(model.parameters()).device
    return score(model, *(part.to(place) for part in criterion(task, entry.separators))) >= LEARNED


def train(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[tuple[Decoder, int, bool]]:
    """The trained models of an entry, their steps, and whether they have learned: side by side, each to the criterion."""
    place = compute.device() if size != "small" else torch.device("cpu")
    models = [decoder(entry, task, seed, size).to(place) for seed in seeds]
    losses = training.fit_together(
        models, partial(batch, entry, task), steps=steps, rate=SIZES[size]["rate"], seeds=seeds,
        until=partial(has_learned, entry=entry, task=task), every=CHECKED,
    )  # fmt: skip
    found = [
        (model.cpu(), len(each), has_learned(model, entry, task)) for model, each in zip(models, losses, strict=True)
    ]
    if entry.at_test is not None:
        for model, *_ in found:
            for block in model.blocks:
                block.weigh = entry.at_test
    return found


def tests_of(entry: Entry, task: str, seed: int) -> dict[int, Batch]:
    """The rows to test on, by length."""
    return {n: batch(entry, task, torch.Generator().manual_seed(10**6 + 1000 * seed + n), n) for n in LENGTHS}


def measure(
    entry: Entry, task: str, seeds: Sequence[int], steps: int, size: str = "small"
) -> list[dict[str, float | None]]:
    """The rows of a cell: train, then all columns of the table."""
    start = time.process_time()
    trained = train(entry, task, seeds, steps, size)
    spent = 1000 * (time.process_time() - start) / sum(taken for _, taken, _ in trained)
    return [
        _short({"learned": int(learned), "steps": taken, "step_ms": spent} | look(model, entry, task, seed))
        for seed, (model, taken, learned) in zip(seeds, trained, strict=True)
    ]


def look(model: Decoder, entry: Entry, task: str, seed: int) -> dict[str, float | None]:
    """What the table says of a trained model: scores, and where attention is looked at all the rest."""
    tests = tests_of(entry, task, seed)
    found: dict[str, float | None] = {"parameters": sum(p.numel() for p in model.parameters())}
    found |= {f"score_{n}": score(model, *test) for n, test in tests.items()}
    looked, two = task in LOOKED, {}
    ends = {n: tuple(part[:32] for part in tests[n]) for n in (TRAINED, LENGTHS[-1])}
    for n, test in ends.items():
        names = [f"{what}_{n}" for what in ("answer", "noise", "best", "sharp", "one")]
        values = (*masses(model, task, *test), *best_heads(model, task, *test)) if looked else [None] * len(names)
        found |= dict(zip(names, values, strict=True))
    ids = ends[LENGTHS[-1]][0]
    if looked and isinstance(model.blocks[0], Differential):
        two = two_noises(model, task, *ends[LENGTHS[-1]])
    kinds = ("cosine", "needed", "agree", "left", "gain", "signal")
    found |= {f"{what}_{number}": two.get(f"{what}_{number}") for number in (1, 2) for what in kinds}
    with torch.no_grad():
        states = model.states(ids) if looked else None
    found |= {
        "outlier_states": outlier(states) if looked else None,
        "outlier_logits": largest_logit(model, ids) if looked else None,
        "quantisation_error": quantisation_error(model, ids) if looked else None,
        "effective_rank": effective_rank(states) if looked else None,
    }
    for n in (TRAINED, LENGTHS[-1]):
        found[f"distance_{n}"] = last_token_distance(model, entry, task, n, 10**6 + seed) if looked else None
    return found


def _short(found: dict[str, float | None]) -> dict[str, float | None]:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in found.items()}


def run(entry: str, task: str, seed: Sequence[int], budget: int, size: str = "small") -> list[dict[str, float | None]]:
    """The rows of a cell of the table, one a seed.

    Raises:
        ValueError: unknown entry, task or size, or a seed or a number of steps out of range.
    """
    require.choice("task", task, TASKS)
    require.choice("size", size, SIZES)
    seeds = require.integers("seed", seed, 0)
    return measure(entry_of(entry), task, seeds, require.integer("budget", budget, 1), size)


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
        chosen: tasks; a run that learns takes a few seconds.
        seeds: 0, 1, … as in the table, so that runs can be paired.
        steps: the most a run may take to the criterion; the race's own number when None.

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
            found = measure(Entry(weigh=weigh), setting["task"], [setting["seed"]], steps)[0]
        row = {"seed": setting["seed"], "entry": name, "task": setting["task"], "budget": steps, "size": "small"}
        rows.append(row | found | {"seconds": round(time.perf_counter() - start, 1)})
    return with_longer(pd.DataFrame(rows))


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


def with_longer(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column `longer`: the mean score at all lengths beyond the trained one."""
    return rows.assign(longer=rows[LONGER].mean(axis=1))


def verdict(gap: Sequence[float], p: float) -> str:
    """What is said of paired gaps with a corrected p value, by the decisions above.

    >>> verdict([0.2, 0.21, 0.19], 0.01), verdict([0.01, 0.0, 0.01], 0.5), verdict([0.3, -0.2, 0.1], 0.9)
    ('better', 'equal within 0.05', 'not told apart')
    """
    mean, low, high = significance.interval(gap, 1 - 2 * LEVEL)
    if -MARGIN < low and high < MARGIN:
        return f"equal within {MARGIN}"
    if p < LEVEL:
        return "better" if mean > 0 else "worse"
    return "not told apart"


def compare(
    rows: pd.DataFrame, column: str = "longer", against: str | Mapping[str, str] | None = BASELINE
) -> pd.DataFrame:
    """Every entry against one, task by task, paired over the seeds that learned with both; Holm's correction in a task.

    Args:
        rows: as `table` gives them.
        column: what is compared.
        against: an entry, a mapping from each entry to its own, or None for the reference of each.

    Returns:
        a row for each entry and task: seeds that learned and seeds in all; mean, low, high (95 % interval) of those that
        learned; gap and its own 90 % interval, which the rule for "equal" asks; p (corrected); verdict, one of `VERDICTS`, or "baseline" or "control".

    Raises:
        ValueError: `against` or `column` is not in the table.
    """
    if isinstance(against, str):
        require.choice("against", against, list(rows.entry.unique()))
        against = dict.fromkeys(rows.entry, against)
    elif against is None:
        against = {name: ENTRIES[name].reference if name in ENTRIES else BASELINE for name in rows.entry.unique()}
    require.choice("column", column, list(rows.columns))
    found = []
    for task in [t for t in TASKS if t in set(rows.task)]:
        here = rows[(rows.task == task) & rows[column].notna()]
        names = list(here.entry.unique())
        count = here.groupby("entry").learned.agg(["sum", "size"])
        cells = {name: bool(count["sum"][name] >= CELL * count["size"][name]) for name in names}
        wide = here[here.learned == 1].pivot(index="seed", columns="entry", values=column)
        gaps, part = {}, []
        for name in names:
            other = against[name]
            row = {"task": task, "entry": name, "learned": int(count["sum"][name]), "seeds": int(count["size"][name])}
            row |= (
                dict(zip(("mean", "low", "high"), significance.interval(wide[name].dropna()), strict=True))
                if cells[name]
                else {}
            )
            both = wide[[name, other]].dropna() if cells[name] and cells.get(other) and name != other else []
            if name in CONTROLS:
                row["verdict"] = "control"
            elif not cells[name]:
                row["verdict"] = "not learned"
            elif name == other:
                row["verdict"] = "baseline"
            elif not cells.get(other):
                row["verdict"] = "reference not learned"
            else:
                gaps[name] = (both[name] - both[other]).tolist()
                row |= dict(
                    zip(("gap", "gap_low", "gap_high"), significance.interval(gaps[name], 1 - 2 * LEVEL), strict=True)
                )
                row["p"] = significance.paired(both[name], both[other])
            part.append(row)
        judged = [row for row in part if row["entry"] in gaps]
        for row, p in zip(judged, significance.holm([row["p"] for row in judged]), strict=True):
            row |= {"p": p, "verdict": verdict(gaps[row["entry"]], p)}
        found += part
    columns = ["task", "entry", "learned", "seeds", "mean", "low", "high", "gap", "gap_low", "gap_high", "p", "verdict"]
    return pd.DataFrame(found).reindex(columns=columns)


def successes(rows: pd.DataFrame) -> pd.DataFrame:
    """For each remedy and task: does it keep the task, and does it do so by attention that keeps to the answer?

    A task is kept by a cell that has learned, is right in `KEPT` at the longest length, and is better beyond the trained
    length than the entry without this remedy (or that one has not learned). It is a success if the best head gives the
    answer more than `SHARP` of the attention there, which is known for the tasks of `LOOKED` alone.

    Returns:
        a row for each entry and task: verdict (against the own reference), right, best, kept, success.
    """
    found = compare(rows, against=None)
    found = found[found.entry.isin(REMEDIES)].set_index(["entry", "task"])
    means = rows[rows.learned == 1].groupby(["entry", "task"])[[f"score_{LENGTHS[-1]}", f"best_{LENGTHS[-1]}"]].mean()
    result = found[["verdict"]].join(means.set_axis(["right", "best"], axis=1))
    result["kept"] = result.verdict.isin(["better", "reference not learned"]) & (result.right >= KEPT)
    result["success"] = result.kept & (result.best > SHARP)
    return result.reset_index()


def noises(rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """The two noises of the differential entries at retrieval, in the layer whose first map looks at the answer most.

    Returns:
        a row an entry that learned: the layer; cosine, what it needs, the share of heads and questions that have it, what
        signal over noise is multiplied by (gain) with its 95 % interval over seeds (low, high): means over seeds.
    """
    rows = table() if rows is None else rows
    found = {}
    for name in HYPOTHESES["H4"][1]:
        here = rows[(rows.task == "retrieval") & (rows.entry == name) & (rows.learned == 1)]
        if len(here) < 2:
            continue
        layer = 1 if here.signal_1.mean() > here.signal_2.mean() else 2
        means = {what: float(here[f"{what}_{layer}"].mean()) for what in ("cosine", "needed", "agree")}
        found[name] = (
            {"layer": layer}
            | means
            | dict(zip(("gain", "low", "high"), significance.interval(here[f"gain_{layer}"]), strict=True))
        )
    return pd.DataFrame(found).T.rename_axis("entry")


def rank_correlation(
    rows: pd.DataFrame, task: str = "retrieval", share: str = "answer", without: Sequence[str] = ()
) -> tuple[float, float]:
    """Spearman's, over the remedies, of a share ("answer" or "noise") and the score at the longest length; and its p value.

    The p value takes the entries for independent, and most of them are changes of one baseline: it is too small.
    """
    require.choice("share", share, ["answer", "noise"])
    names = [name for name in REMEDIES if name not in without]
    here = rows[(rows.task == task) & rows.entry.isin(names) & (rows.learned == 1)].groupby("entry")
    means = here[[f"{share}_{LENGTHS[-1]}", f"score_{LENGTHS[-1]}"]].mean()
    return significance.rank_correlation(means.iloc[:, 0], means.iloc[:, 1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m helpers.chapter6.race", description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--entries", nargs="+", metavar="ENTRY")
    parser.add_argument("--tasks", nargs="+", metavar="TASK")
    parser.add_argument("--seeds", type=int, default=BUDGET["seeds"])
    parser.add_argument("--steps", type=int, default=BUDGET["steps"], help="the most a run may take to the criterion")
    sweep.options(parser)
    chosen = parser.parse_args(arguments)
    entries, each, size = chosen.entries or list(ENTRIES), chosen.tasks or list(TASKS), SIZES[chosen.size]
    for named, given, allowed in (("entry", entries, ENTRIES), ("task", each, TASKS)):
        for name in given:
            if name not in allowed:
                parser.error(f"{named} must be one of {', '.join(allowed)}, not {name!r}")
    settings = sweep.grid(task=each, entry=entries, seed=range(chosen.seeds), budget=[chosen.steps], size=[chosen.size])
    longest = LENGTHS[-1]
    notes = [
        f"Decoders of width {size['width']}, {size['heads']} heads, {size['layers']} layers; AdamW, rate {size['rate']}, "
        f"{size['rows']} rows a step of up to {TRAINED} tokens; the same for all entries",
        f"steps: to {LEARNED} right at length {TRAINED} on rows of its own (learned), looked at every {CHECKED} steps, or the "
        "whole budget; step_ms: processor time of a training step of one model, the seeds of a cell trained side by side",
        f"score_n: share right on n tokens; {BITS}-bit quantisation error; best_n: the answer's share in the head that gives "
        f"it most, mean over questions, in the layer where it is largest; sharp_n: share of the questions with a head above {SHARP}; "
        f"one_n: as best_n, one head for all; the noises of two maps on {longest} tokens, by layer: cosine, what it needs, "
        "share that has it (agree), size left, signal over noise times (gain), first map's weight on the answer (signal)",
    ]
    sweep.run_line(parser, arguments, run, settings, notes, together="seed")


if __name__ == "__main__":
    main()
