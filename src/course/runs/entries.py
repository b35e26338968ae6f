"""Define the entries of the race, and assign them to hypotheses.

An entry is a remedy, which changes one thing in the decoder or in the data.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import safetensors
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from course.maths import normalizers
from course.runs.protocol import (
    BUDGET,
    EVERY,
    EVERY_TASK,
    LENGTHS,
    LOCAL,
    SIZES,
    TASKS,
    TESTED,
    TRAINED,
    WINDOWS,
    vocabulary,
)
from course.training import UNASKED
from course.training.tasks import Batch
from helpers import differential, require, rope
from helpers.transformer import Block, Decoder


@dataclass(frozen=True)
class Entry:
    """Describe one remedy by what it changes in the decoder or in the data.

    Attributes:
        settings: arguments of `Decoder`.
        block: the function that makes a layer (see `Decoder`).
        weigh: the normalizer that replaces softmax (see `Block`), or a class of such modules, which
            is made with the number of heads.
        at_test: a normalizer that replaces softmax only after training.
        separators: whether an extra token is put after every `EVERY` tokens.
        reference: the decoder without the one ingredient that the entry is about.
        two: what else differs from the reference, if the entry changes two things.
        model: a whole model that replaces the decoder, made with the number of tokens. Such an
            entry is not ranked.
        seen: the length on which the entry is trained and must meet the criterion.
        dropped: whether RoPE is removed when the criterion is met, and the model is trained until
            it meets the criterion again. This is DroPE (Gelberg et al., 2025).
        fails: the tasks that the entry must fail, if it is a control instead of a remedy.
        control: whether the entry is a control.
    """

    settings: dict = field(default_factory=dict)
    block: Callable[..., Block] = Block
    weigh: Callable[[Tensor], Tensor] | None = None
    at_test: Callable[[Tensor], Tensor] | None = None
    separators: bool = False
    reference: str = "RoPE"
    two: str = ""
    model: Callable[[int], nn.Module] | None = None
    seen: int = TRAINED
    dropped: bool = False
    fails: tuple[str, ...] = ()

    @property
    def control(self) -> bool:
        return bool(self.fails)


def local(*parts, layer: int, **more) -> Block:
    """Build a layer that has a window of `LOCAL` tokens if the layer's number is odd.

    Even layers have no window. Gemma 2 alternates its layers in this way.
    """
    width, heads, encoding, _, *rest = parts
    return Block(width, heads, encoding, LOCAL if layer % 2 else None, *rest, layer=layer, **more)


def layered(
    *parts, layer: int, window: int | None = LOCAL, attention: Callable | None = None, **more
) -> Block:
    """Build one layer of RNoPE-SWA (Yang et al., 2025).

    A layer with an odd number has RoPE and a window. A layer with an even number has no position
    encoding and no window.

    Args:
        window: the number of tokens that an odd layer sees. If `None`, odd layers have no window,
            either.
        attention: a normalizer that replaces softmax in the even layers only.
    """
    width, heads, _, _, *rest = parts
    if layer % 2:
        return Block(width, heads, "RoPE", window, *rest, layer=layer, **more)
    return Block(width, heads, "NoPE", None, *rest, layer=layer, attention=attention, **more)


RANGE = 160  # the range from which positions are drawn


class RandomPositions(Block):
    """Apply RoPE at random increasing positions that are the same in all layers.

    This follows Ruoss et al. (2023). Positions are drawn from 0 to `RANGE` - 1, so the decoder sees
    large positions in training although its sequences are short. In the test we draw positions,
    too, but they depend only on the length. As in the paper, the range is large enough for the
    test.
    """

    drawn: Int[Tensor, " n"]

    def turned(self, n: int) -> Int[Tensor, " n"]:
        if self.layer == 1:
            span = max(RANGE, n + n // 4)
            source = None if self.training else torch.Generator().manual_seed(n)
            RandomPositions.drawn = torch.rand(span, generator=source).argsort()[:n].sort().values
        return RandomPositions.drawn

    def project(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "3 b h n w"]:
        frequencies, self.frequencies = self.frequencies, None
        parts = super().project(x)
        self.frequencies = frequencies
        return torch.cat(
            [rope.turn(parts[:2], self.turned(x.shape[1]), frequencies, "half"), parts[2:]]
        )


class Polar(Block):
    """Encode the content in the size and the position in the angle of each entry of q and k.

    This is PoPE (Gopalakrishnan et al., 2025). The size is softplus(q), and the angle is position x
    frequency, with one frequency per entry. Keys have an additional learned phase.
    """

    def __init__(self, width: int, heads: int, *rest, **more):
        super().__init__(width, heads, *rest, **more)
        self.phase = nn.Parameter(torch.zeros(heads, 1, width // heads))

    def project(self, x: Float[Tensor, "b n d"]) -> tuple[Tensor, ...]:
        q, k, v = super().project(x)
        w = q.shape[-1]
        angles = torch.arange(x.shape[1])[:, None] * 1e4 ** (-torch.arange(w) / w)
        turned = (
            nn.functional.softplus(part).repeat(1, 1, 1, 2)
            * torch.cat([angle.cos(), angle.sin()], -1)
            for part, angle in ((q, angles), (k, angles + self.phase))
        )
        q, k = turned
        # divided by sqrt(w) later, although there are 2 w entries now
        return math.sqrt(2) * q, k, v


class Memory(Block):
    """Apply a layer with a state of fixed size, written as attention.

    A subclass computes the attention matrix in `attention`.
    """

    def logits(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        # a memory has no logits, so this is only for the outliers
        return self.attention(x) + self.bias(x.shape[1], x)

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        return self.attention(x) @ self.project(x)[2]


class Linear(Memory):
    """Apply linear attention, with weights phi(q) phi(k) divided by their sum and phi = elu + 1.

    The layer is that of Katharopoulos et al. (2020). Its state has (w + 1) w numbers per head.
    """

    def attention(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        q, k, _ = self.project(x)
        scores = ((nn.functional.elu(q) + 1) @ (nn.functional.elu(k) + 1).mT).tril()
        return scores / scores.sum(-1, keepdim=True).clamp(min=1e-6)


class Delta(Memory):
    """Apply `normalizers.delta_rule` as a layer, without the short convolution of Gated DeltaNet.

    This follows Yang et al. (2025). The state has w x w numbers per head.
    """

    def __init__(self, width: int, heads: int, *rest, **more):
        super().__init__(
            width, heads, *rest, **more, hidden=matched(width, 2 * heads * (width + 1))
        )
        self.gates = nn.Linear(width, 2 * heads)
        nn.init.constant_(self.gates.bias[heads:], 3.0)  # keeps 0.95 of the state at first

    def attention(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        q, k, _ = self.project(x)
        q, k = (nn.functional.normalize(part, dim=-1) for part in (q, k))
        rate, kept = self.gates(self.norm1(x)).sigmoid().mT.unflatten(1, (2, self.heads)).unbind(1)
        return normalizers.delta_rule(q, k, rate, kept.clamp(min=1e-3))


def mixed(*parts, layer: int, **more) -> Block:
    """Build a layer with the gated delta rule (odd number) or with full attention (even number).

    The full attention has no position encoding. Kimi Linear combines the two kinds of layers in
    this way.
    """
    return Delta(*parts, layer=layer, **more) if layer % 2 else Block(*parts, layer=layer, **more)


class Recurrent(nn.Module):
    """Predict tokens with two recurrent layers between the embedding and the unembedding.

    This model takes the place of a decoder.
    """

    def __init__(self, vocabulary: int, width: int = 44, kind: type[nn.RNNBase] = nn.GRU):
        super().__init__()
        self.embedding, self.net = (
            nn.Embedding(vocabulary, width),
            kind(width, width, 2, batch_first=True),
        )
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n v"]:
        return self.head(self.net(self.embedding(ids))[0])


class ScalableSoftmax(nn.Module):
    """Apply softmax(s ln(n) logits), where n is the number of visible keys.

    This follows Nakanishi (2025). Each head learns s. Its initial value is 1 / ln(TRAINED), so that
    the function equals softmax at the trained length.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.scale = nn.Parameter(torch.full((heads, 1, 1), 1 / math.log(TRAINED)))

    def forward(self, logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
        hidden = torch.isneginf(logits)
        factor = self.scale * (~hidden).sum(-1, keepdim=True).to(logits).log()
        return (logits.masked_fill(hidden, 0) * factor).masked_fill(hidden, -math.inf).softmax(-1)


class AdaptiveEntmax(nn.Module):
    """Apply `normalizers.adaptive_entmax` with delta 1, where each head learns beta and gamma.

    This follows Vasylenko et al. (2026). beta stays above 0. The initial values are beta 0.1 and
    gamma 1, which is near entmax 1.5.
    """

    def __init__(self, heads: int):
        super().__init__()
        self.raw = nn.Parameter(
            torch.full((heads, 1, 1), math.log(math.expm1(0.1)))
        )  # beta is the softplus of this
        self.gamma = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
        return normalizers.adaptive_entmax(logits, nn.functional.softplus(self.raw), self.gamma)


def sharpened(logits: Float[Tensor, "b h n n"]) -> Float[Tensor, "b h n n"]:
    """Return the attention weights of chapter 3's adaptive temperature, for masked logits."""
    return normalizers.adaptive_temperature(logits.clamp(min=-1e9))


def matched(width: int, more: int) -> int:
    """Return the MLP width for which an entry has about as many parameters as the other entries.

    Args:
        width: the width of the decoder.
        more: how many more weights the attention of each layer has than the attention of other
            entries.
    """
    return 4 * width - round(more / (2 * width + 1))


class Gated(Block):
    """Multiply every entry of each head's output by a learned sigmoid gate.

    The gate is G1 of Qiu et al. (2025).
    """

    def __init__(self, width: int, *rest, **more):
        super().__init__(width, *rest, **more, hidden=matched(width, width * width))
        self.gate = nn.Linear(width, width, bias=False)

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        gates = self.gate(self.norm1(x)).sigmoid()
        return super().mix(x) * gates.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Forgetting(Block):
    """Apply softmax with forget gates between query and key, and without position encoding.

    The layer is FoX (Lin et al., 2025). To the logit of a key we add the sum of ln(gate) over the
    tokens after the key, up to the query. Each token and head has a gate sigmoid(w x + b), which is
    0.95 at the start of training.
    """

    def __init__(self, width: int, heads: int, *rest, **more):
        super().__init__(width, heads, *rest, **more, hidden=matched(width, heads * (width + 1)))
        self.gates = nn.Linear(width, heads)
        nn.init.constant_(self.gates.bias, 3.0)

    def forgotten(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        """Return the bias that the gates add to the logits, minus infinity at later keys."""
        return normalizers.forgetting_bias(self.gates(self.norm1(x)).sigmoid().mT.clamp(min=1e-6))

    def logits(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        return super().logits(x) + self.forgotten(x)

    def mix(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n w"]:
        return self.attention(x) @ self.project(x)[2]


class Differential(Block):
    """Apply `differential.DifferentialAttention` as a layer.

    Version 1 has half the number of heads, and version 2 has the full number.

    Args:
        inner: more arguments of `DifferentialAttention`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        encoding: str,
        window: int | None,
        norm: bool,
        base: float,
        turning: float,
        layer: int,
        version: int = 1,
        inner: dict | None = None,
    ):
        more = 0 if version == 1 else width * (width + heads)
        super().__init__(
            width, heads, "NoPE", window, norm, base, turning, layer, hidden=matched(width, more)
        )
        del self.qkv, self.out
        own = heads // 2 if version == 1 else heads
        self.inner = differential.DifferentialAttention(
            width,
            own,
            layer,
            version,
            base if encoding == "RoPE" else None,
            turning,
            **(inner or {}),
        )

    def logits(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        """Return the logits of both attention matrices, one after the other."""
        q1, k1, q2, k2, _ = self.inner.project(self.norm1(x))
        bias = self.bias(x.shape[1], q1)
        return torch.cat(
            [q @ k.mT / math.sqrt(q.shape[-1]) + bias for q, k in ((q1, k1), (q2, k2))], 1
        )

    def attention(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b h n n"]:
        return self.inner.attention(self.norm1(x))

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        x = x + self.inner(self.norm1(x))
        return x + self.mlp(self.norm2(x))


BASELINE, PLAIN = "RoPE", {"encoding": "NoPE"}
HALF, MIXED, UNWINDOWED = (
    "RoPE, half the heads",
    "local RoPE, global NoPE",
    "RoPE below, NoPE above",
)
RANDOM, SCALED, STICK = "RoPE, random positions", "NoPE, scalable softmax", "NoPE, stick-breaking"
MIXED_SCALED, MIXED_STICK = f"{MIXED} + scalable softmax", f"{MIXED} + stick-breaking"
LINEAR, DELTA, DELTA_FULL = "linear attention", "gated delta rule", "gated delta rule, full above"
POLAR, DROPPED = "PoPE", "RoPE, dropped after training"
SIGMOID = partial(normalizers.sigmoid_weights, bias=0.0)
ENTRIES = {
    BASELINE: Entry(), HALF: Entry({"heads": BUDGET["heads"] // 2}), "p-RoPE": Entry({"turning":
    0.75}), "larger base": Entry({"base": 5e5}), "ALiBi": Entry({"encoding": "ALiBi"}), RANDOM:
    Entry(block=RandomPositions), POLAR: Entry(PLAIN, Polar), DROPPED: Entry(dropped=True), "NoPE":
    Entry(PLAIN), "sliding window": Entry(block=local), UNWINDOWED: Entry(block=partial(layered,
    window=None)), MIXED: Entry(block=layered, reference=UNWINDOWED), "separators":
    Entry(separators=True), "top 8 keys": Entry(weigh=partial(normalizers.top_k, k=LOCAL)),
    "selective attention": Entry(weigh=normalizers.selective), "scalable softmax":
    Entry(weigh=ScalableSoftmax), "adaptive temperature": Entry(at_test=sharpened),
    "sparse (entmax 1.5)": Entry(weigh=normalizers.entmax15), SCALED: Entry(PLAIN,
    weigh=ScalableSoftmax, reference="NoPE"), "NoPE, adaptive entmax": Entry(PLAIN,
    weigh=AdaptiveEntmax, reference="NoPE"), STICK: Entry(PLAIN, weigh=normalizers.stick_breaking,
    reference="NoPE"), MIXED_SCALED: Entry(block=layered, weigh=ScalableSoftmax, reference=MIXED),
    MIXED_STICK: Entry(block=layered, weigh=normalizers.stick_breaking, reference=MIXED),
    "differential": Entry(block=Differential, reference=HALF), "differential, version 2":
    Entry(block=partial(Differential, version=2)), "NoPE, differential": Entry(PLAIN, Differential,
    reference="NoPE", two="half the heads"), "off-by-one softmax":
    Entry(weigh=normalizers.softmax_off_by_one), "gated attention": Entry(block=Gated),
    "NoPE, forgetting": Entry(PLAIN, Forgetting, reference="NoPE"), "NoPE, squared ReLU":
    Entry(PLAIN, weigh=normalizers.squared_relu, reference="NoPE"), "NoPE, sigmoid": Entry(PLAIN,
    weigh=SIGMOID, reference="NoPE"), "NoPE, squared ReLU, no norm": Entry(PLAIN | {"norm": False},
    weigh=normalizers.squared_relu, reference="NoPE", two="no LayerNorm"), "NoPE, sigmoid, no norm":
    Entry(PLAIN | {"norm": False}, weigh=SIGMOID, reference="NoPE", two="no LayerNorm"), LINEAR:
    Entry(PLAIN, Linear, reference="NoPE"), DELTA: Entry(PLAIN, Delta, reference="NoPE"),
    DELTA_FULL: Entry(PLAIN, mixed, reference="NoPE"), "control: sees 2 back": Entry({"window": 2},
    fails=("retrieval", "first", "recall", "counting")), "GRU": Entry(model=Recurrent), "LSTM":
    Entry(model=partial(Recurrent, width=38, kind=nn.LSTM)),
}  # fmt: skip
OUTSIDE = [
    name for name, entry in ENTRIES.items() if entry.model
]  # these are not decoders, so they run outside the ranking
REMEDIES = [name for name, entry in ENTRIES.items() if not entry.control and not entry.model]
CONTROLS = [name for name, entry in ENTRIES.items() if entry.control]
# Trained at the longest length of the test, where all its positions are seen. The mistakes that
# remain do not come from positions.
SEEN = {
    f"{name}, trained to {LENGTHS[-1]}": replace(ENTRIES[name], seen=LENGTHS[-1])
    for name in (BASELINE, "NoPE", MIXED, STICK, SCALED)
}
# the hybrid with other windows in its local layers, where the usual one is LOCAL
WINDOWED = {
    MIXED if n == LOCAL else f"{MIXED}, window {n}": Entry(
        block=partial(layered, window=n), reference=UNWINDOWED
    )
    for n in WINDOWS
}
# what each entry changes in the decoder, for the lesson's table
KINDS = {
    "positions": [
        BASELINE,
        "p-RoPE",
        "larger base",
        "ALiBi",
        RANDOM,
        POLAR,
        DROPPED,
        "NoPE",
    ],
    "heads": [HALF],
    "what a token may see": [
        "sliding window",
        UNWINDOWED,
        MIXED,
        "separators",
        "top 8 keys",
        "selective attention",
    ],
    "from logits to weights": [
        "off-by-one softmax",
        "scalable softmax",
        "adaptive temperature",
        "sparse (entmax 1.5)",
        SCALED,
        "NoPE, adaptive entmax",
        STICK,
        MIXED_SCALED,
        MIXED_STICK,
        "NoPE, forgetting",
    ],
    "a difference of two maps": ["differential", "differential, version 2", "NoPE, differential"],
    "a sum: weights that need not sum to one": [
        "NoPE, squared ReLU",
        "NoPE, sigmoid",
        "NoPE, squared ReLU, no norm",
        "NoPE, sigmoid, no norm",
    ],
    "a gate on each head's output": ["gated attention"],
    "a memory of fixed size": [LINEAR, DELTA, DELTA_FULL],
    "no attention (not ranked)": OUTSIDE,
    "a control that must fail": CONTROLS,
}
# entries without a row in data/race.csv, each with the reason
NOT_RUN: dict[str, str] = {}
# DROPPED is not here because it ends as NoPE, without an encoding
POSITIONS = ["p-RoPE", "larger base", "ALiBi", RANDOM, POLAR]
PHYSICAL = {
    "windows": ["sliding window", MIXED],
    "inserted tokens": ["separators"],
    "sparsity": ["top 8 keys", "selective attention"],
}
MAPS = [
    "top 8 keys",
    "selective attention",
    *KINDS["from logits to weights"],
    *KINDS["a difference of two maps"],
]
MEMORIES = [LINEAR, DELTA, DELTA_FULL]
NAMED = [
    BASELINE,
    "NoPE",
    RANDOM,
    "sliding window",
    UNWINDOWED,
    MIXED,
    STICK,
    SCALED,
    MIXED_SCALED,
    MIXED_STICK,
]
# The entries that each hypothesis of the lesson is about. One entry that opens a task is enough,
# for each of them.
HYPOTHESES = {
    "H1": ("a position encoding alone is enough", POSITIONS),
    "H2": (
        "an intervention in what a token may see is enough",
        [name for names in PHYSICAL.values() for name in names],
    ),
    "H3": (
        "a sharper map is enough",
        [
            "scalable softmax",
            "adaptive temperature",
            "sparse (entmax 1.5)",
            SCALED,
            "NoPE, adaptive entmax",
            MIXED_SCALED,
        ],
    ),
    "H4": (
        "a difference of two maps is enough",
        ["differential", "differential, version 2", "NoPE, differential"],
    ),
    "H5": ("attending to nothing is enough", ["off-by-one softmax", "gated attention"]),
    "H6": ("an order that begins with the nearest key is enough", [STICK, MIXED_STICK]),
    "H7": ("a memory of fixed size is enough", MEMORIES),
}


SWEPT = [*WINDOWED, UNWINDOWED]  # the entries of `race_window`


def entry_of(name: str) -> Entry:
    """Return the entry with this name, including those that are only in further tables.

    Raises:
        ValueError: if there is no entry with this name.

    >>> entry_of("NoPE").settings
    {'encoding': 'NoPE'}
    """
    every = ENTRIES | SEEN | WINDOWED
    return every[require.choice("entry", name, every)]


# Make the data that an entry is trained and tested on ---------------------------------------------


def separated(x: Int[Tensor, "b n"], token: int) -> Int[Tensor, "b m"]:
    """Insert the separator `token` after every `EVERY` tokens, but not at the end.

    >>> separated(torch.arange(1, 7)[None], 0).tolist()
    [[1, 2, 3, 4, 0, 5, 6]]
    """
    n = x.shape[1]
    places = torch.arange(n) + torch.arange(n) // EVERY
    wide = torch.full((len(x), n + (n - 1) // EVERY), token)
    wide[:, places] = x
    return wide


def longest(make: Callable, n: int) -> Callable:
    """Return a function that draws training batches with lengths up to n instead of `TRAINED`."""
    return replace(make, lengths=(make.lengths[0], n)) if n != TRAINED else make


def batch(entry: Entry, task: str, generator: torch.Generator, n: int | None = None) -> Batch:
    """Draw one batch of tokens and targets for an entry.

    Args:
        n: the length of a test batch. If `None`, the batch is for training.
    """
    rows = TESTED[task] if n else BUDGET["rows"]
    if entry.separators and not n:
        rows = round(rows * EVERY / (EVERY + 1))  # so that a step has as many tokens
    make = EVERY_TASK[task](n, rows)
    if not n:
        make = longest(make, entry.seen)
    ids, targets = make(generator)
    if entry.separators:
        ids, targets = separated(ids, len(vocabulary(task)) - 1), separated(targets, UNASKED)
    return ids, targets


def decoder(entry: Entry, task: str, seed: int, size: str = "small") -> Decoder:
    """Build the untrained model of an entry.

    The model is the entry's `model` if it has one, and otherwise a `Decoder`.
    """
    torch.manual_seed(seed)
    if entry.model:
        return entry.model(len(vocabulary(task)))
    sizes = {name: SIZES[size][name] for name in ("width", "heads", "layers")}
    weigh = entry.weigh(sizes["heads"]) if isinstance(entry.weigh, type) else entry.weigh
    block = entry.block if weigh is None else partial(entry.block, attention=weigh)
    settings = entry.settings | (
        {"heads": sizes["heads"] // 2} if "heads" in entry.settings else {}
    )
    return Decoder(len(vocabulary(task)), **sizes | settings, block=block)


def kept(path: str | Path) -> tuple[Decoder, str, dict[str, str]]:
    """Load a decoder that a reader trained and saved on the page "Train it here".

    Returns:
        The model, the name of the task, and the facts that were saved with the model.

    Raises:
        ValueError: if the file does not exist, or it is not an entry of the race.
    """
    path = Path(require.instance("path", path, str | Path, "a path"))
    try:
        with safetensors.safe_open(path, "pt") as file:
            facts = file.metadata() or {}
        task = require.choice("task", facts.get("task"), TASKS)
        model = decoder(entry_of(facts.get("entry", "")), task, 0)
        model.load_state_dict(load_file(path))
    except (OSError, RuntimeError, ValueError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"path must be a file that the page saved, but {path.name} is not: "
            f"{str(error).splitlines()[0]}"
        ) from None
    return model.eval(), task, facts
