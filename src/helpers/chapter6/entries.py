"""The race's entries: what each remedy changes in the decoder or in the data, and what each hypothesis is about."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from helpers import attention, collapse, differential, require
from helpers.chapter6.protocol import BUDGET, EVERY, LOCAL, SIZES, TASKS, TESTED, TRAINED, vocabulary
from helpers.tasks import Batch
from helpers.training import UNASKED
from helpers.transformer import Block, Decoder


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


# What an entry is trained and tested on ---------------------------------------------------------------


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


def decoder(entry: Entry, task: str, seed: int, size: str = "small") -> Decoder:
    """The untrained model of an entry."""
    torch.manual_seed(seed)
    sizes = {name: SIZES[size][name] for name in ("width", "heads", "layers")}
    weigh = entry.weigh(sizes["heads"]) if isinstance(entry.weigh, type) else entry.weigh
    block = entry.block if weigh is None else partial(entry.block, attention=weigh)
    settings = entry.settings | ({"heads": sizes["heads"] // 2} if "heads" in entry.settings else {})
    return Decoder(len(vocabulary(task)), **sizes | settings, block=block)
