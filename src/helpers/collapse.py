"""Representational collapse: the lemmas, the counterexamples, the arithmetic and the remedies of chapter 3."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import compute, probe, require, rope
from helpers.models import LanguageModel
from helpers.transformer import sinusoidal

ENCODINGS = ("NoPE", "RoPE", "ALiBi", "APE on q, k", "APE on q, k, v")
VALUES = ("rotation", "random", "constant")


def total_variation(p: Float[Tensor, "... n"], q: Float[Tensor, "... n"]) -> Float[Tensor, "..."]:
    """Sum of |p - q| over the last axis, in float64: the total variation of Barbero et al. (2024), without the usual 1/2.

    Rows may sum to less than one: Theorem B.3 compares the first n entries of a longer row.

    Raises:
        ValueError: shapes differ, or an entry is negative or not finite, or a row sums to more than one.

    >>> total_variation(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])).item()
    2.0
    """
    for name, row in (("p", p), ("q", q)):
        require.tensor(name, row, "... n", "real")
        if (row < 0).any() or (row.double().sum(-1) > 1.01).any():
            raise ValueError(f"{name} must hold probabilities: not negative, rows with a sum of at most 1")
    if p.shape != q.shape:
        raise ValueError(f"p and q must have the same shape, not {tuple(p.shape)} and {tuple(q.shape)}")
    return (p.double() - q.double()).abs().sum(-1)


# Lemma B.2 and Figure 9 ---------------------------------------------------------------------------


def perturbed_total_variation(
    lengths: Sequence[int], seeds: int = 5, disturbed: int = 200, noise: float = 0.1
) -> Float[Tensor, "seeds lengths"]:
    """Figure 9 of Barbero et al. (2024): softmax(x) against softmax(x + noise on the first entries).

    x is uniform on [0, 1], the first `disturbed` entries get uniform noise on [0, `noise`].

    >>> perturbed_total_variation([1000, 2000], seeds=3).shape
    torch.Size([3, 2])
    """
    lengths = require.integers("lengths", lengths, 1)
    require.integer("seeds", seeds, 1)
    require.integer("disturbed", disturbed, 0)
    require.number("noise", noise, 0)
    rows = []
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(max(lengths), generator=generator, dtype=torch.float64)
        shift = torch.zeros_like(x)
        shift[:disturbed] = noise * torch.rand(min(disturbed, len(x)), generator=generator, dtype=torch.float64)
        rows.append([total_variation(x[:n].softmax(0), (x + shift)[:n].softmax(0)) for n in lengths])
    return torch.tensor(rows, dtype=torch.float64)


def perturbation_limit(disturbed: int = 200, noise: float = 0.1) -> float:
    """The limit of n times Figure 9's total variation: 2 k (E[e^noise] - 1), with uniform noise.

    >>> round(perturbation_limit(), 5)
    20.68367
    """
    require.integer("disturbed", disturbed, 0)
    require.number("noise", noise, 0, 700)
    if noise == 0:
        return 0.0
    return 2 * disturbed * (math.expm1(noise) / noise - 1)


# Theorem B.3: what repeating the last token does to one head ----------------------------------------


def repeat_last(
    kernel: Callable[[Tensor], Tensor], values: Float[Tensor, " n"]
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """One head whose logits depend on the distance alone: what one more copy of the last token changes.

    Args:
        kernel: logit as a function of the distance (0, 1, 2, …) between query and key.
        values: one number a token; the last one is repeated.

    Returns:
        |z_n - z*_{n+1}|, and the total variation of the first n attention weights (Theorem B.3's two quantities).

    >>> change, _ = repeat_last(torch.zeros_like, torch.tensor([1.0, 0.0]))  # 1/2 becomes 1/3
    >>> round(change.item(), 6)
    0.166667
    """
    require.function("kernel", kernel)
    values = require.tensor("values", values, "n").double()
    n = len(values)
    distance = torch.arange(n, -1, -1, dtype=torch.float64)
    logits = [require.tensor("what kernel returns", kernel(gap), "n", n=len(gap)) for gap in (distance[1:], distance)]
    before, after = (row.double().softmax(0) for row in logits)
    longer = torch.cat([values, values[-1:]])
    return (before @ values - after @ longer).abs(), total_variation(before, after[:-1])


def rotating_values(kind: str, n: int, frequency: float, seed: int = 0) -> Float[Tensor, " n"]:
    """Values in {-1, 1}: in step with the rotation ("rotation"), by fair coins ("random"), or all equal ("constant").

    >>> rotating_values("rotation", 4, math.pi).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    require.choice("kind", kind, VALUES)
    require.integer("n", n, 1)
    require.number("frequency", frequency)
    seed = require.seed(seed)
    if kind == "rotation":
        signs = torch.cos(require.finite("frequency", frequency * torch.arange(1, n + 1, dtype=torch.float64)))
        return torch.where(signs < 0, -1.0, 1.0).double()
    if kind == "random":
        return torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed)).double() * 2 - 1
    return torch.ones(n, dtype=torch.float64)


def rotating_counterexample(
    n: int, frequency: float = math.pi, scale: float = 2.0, values: str = "rotation", seed: int = 0
) -> tuple[float, float]:
    """A bounded head without decay, logits scale * cos(frequency * distance), on which Theorem B.3's conclusion fails.

    With frequency pi and values in step, both numbers tend to 2 tanh(scale).

    Returns:
        |z_n - z*_{n+1}| and the total variation.

    >>> change, _ = rotating_counterexample(10_000, scale=2.0)
    >>> round(change, 2), round(2 * math.tanh(2.0), 2)
    (1.93, 1.93)
    """
    require.integer("n", n, 1)
    require.finite("frequency", require.number("frequency", frequency) * n)
    require.number("scale", scale)
    require.choice("values", values, VALUES)
    change, variation = repeat_last(
        lambda distance: scale * torch.cos(frequency * distance), rotating_values(values, n, frequency, seed)
    )
    return float(change), float(variation)


def alibi_change(n: int, slope: float) -> float:
    """|z_n - z*_{n+1}| under ALiBi with equal content, values -1 and +1 on the last token: 2 e^-m (1 - e^-m) for large n.

    >>> round(alibi_change(1000, slope=0.5), 6)
    0.477302
    """
    require.integer("n", n, 1)
    require.finite("slope", require.number("slope", slope) * n)
    values = -torch.ones(n, dtype=torch.float64)
    values[-1] = 1.0
    return float(repeat_last(lambda distance: -slope * distance, values)[0])


def alternating_total_variation(n: int) -> float:
    """Proposition B.4: the total variation of softmax(1 0 1 0 …) and softmax(0 1 0 1 …), 2 (e - 1)/(e + 1) for even n.

    >>> round(alternating_total_variation(10), 6)
    0.924234
    """
    require.integer("n", n, 1)
    x = torch.arange(n, dtype=torch.float64) % 2
    return float(total_variation(x.softmax(0), (1 - x).softmax(0)))


# Figures 8 and 10: one layer with random queries, keys and values -----------------------------------


@lru_cache(maxsize=2)  # the encodings are compared on the same vectors
def _gaussian(n: int, width: int, seed: int) -> Float[Tensor, "3 n width"]:
    return torch.randn(3, n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_layer_distance(
    encoding: str,
    lengths: Sequence[int],
    *,
    width: int = 64,
    deviation: float = 1.0,
    residual: bool = False,
    slope: float = 0.5,
    window: int | None = None,
    seed: int = 0,
) -> Float[Tensor, " lengths"]:
    """L1 distance of the last outputs of n tokens and of n + 1, the last one repeated, for one random causal head.

    Barbero et al. (2024), appendices C.3 (Figure 8: `deviation` 1/sqrt(width), APE) and C.4 (Figure 10).
    Queries, keys and values are Gaussian with standard deviation `deviation`; with `residual`, the token's value is
    added and the sum is layer-normalised. Only the last row of the attention matrix is computed: n d operations.

    Args:
        encoding: one of `ENCODINGS`. "APE on q, k" adds the sinusoid after the projections of queries and keys,
            "APE on q, k, v" also to the values (as when it is added to the embedding).
        window: the query sees the last `window` tokens; None sees all.

    >>> near, far = one_layer_distance("NoPE", [64, 5000]).tolist()
    >>> far < near
    True
    """
    require.choice("encoding", encoding, ENCODINGS)
    lengths = require.integers("lengths", lengths, 1)
    require.integer("width", width, 1)
    if width % 2 and encoding not in ("NoPE", "ALiBi"):
        raise ValueError(f"width must be even for {encoding}, not {width}")
    require.number("deviation", deviation, 0)
    require.number("slope", slope)
    require.flag("residual", residual)
    if window is not None:
        require.integer("window", window, 1)
    q, k, v = deviation * _gaussian(max(lengths), width, require.seed(seed))

    def output(tokens: Tensor) -> Tensor:
        n = len(tokens)
        positions = torch.arange(n, dtype=torch.float64)
        query, keys, values = q[tokens[-1:]], k[tokens], v[tokens]
        if encoding == "RoPE":
            theta = rope.frequencies(width, 1e4)
            query, keys = rope.rotate(query, positions[-1:], theta), rope.rotate(keys, positions, theta)
        elif encoding.startswith("APE"):
            absolute = sinusoidal(positions, width)
            query, keys = query + absolute[-1:], keys + absolute
            values = values + absolute if encoding.endswith("v") else values
        logits = (keys @ query[0]) / math.sqrt(width)
        if encoding == "ALiBi":
            logits = logits - slope * positions.flip(0)
        start = 0 if window is None else max(0, n - window)
        z = logits[start:].softmax(0) @ values[start:]
        return torch.nn.functional.layer_norm(z + values[-1], (width,)) if residual else z

    distances = []
    for n in lengths:
        tokens = torch.arange(n)
        distances.append((output(tokens) - output(torch.cat([tokens, tokens[-1:]]))).abs().sum())
    return require.finite("deviation, or slope,", torch.stack(distances))


# Precision ---------------------------------------------------------------------------------------------


def round_to(x: Float[Tensor, "..."], dtype: str | torch.dtype) -> Float[Tensor, "..."]:
    """Round float64 numbers once, to nearest even, to the values a number type can hold (still stored as float64).

    A cast to bfloat16 may round twice, through float32; this does not. Beyond the largest value there is infinity.

    >>> round_to(torch.tensor([257.0, 70_000.0]).double(), "bf16").tolist()
    [256.0, 70144.0]
    >>> round_to(torch.tensor([70_000.0]).double(), "fp16").tolist()
    [inf]
    """
    x = require.tensor("x", x, "...").double()
    kind = torch.finfo(compute.dtype(dtype))
    _, exponent = torch.frexp(x)
    spacing = torch.ldexp(torch.full_like(x, kind.eps), exponent - 1)
    spacing = spacing.clamp(min=kind.smallest_normal * kind.eps)
    rounded = (x / spacing).round() * spacing
    return torch.where(rounded.abs() > kind.max, rounded.sign() * math.inf, rounded)


def first_collision(function: Callable[[Tensor], Tensor], dtype: str | torch.dtype, limit: int = 2**26) -> int:
    """The smallest n >= 1 with function(n) and function(n + 1) equal after rounding to `dtype`.

    Args:
        function: from a float64 tensor of lengths to a tensor of the same shape.
        dtype: "bf16", "fp16", "fp32" or the torch type.

    Raises:
        ValueError: there is none up to `limit`, or the function does not return one number a length.

    >>> first_collision(lambda n: 1 / n, "bf16")
    190
    """
    require.function("function", function)
    require.integer("limit", limit, 1)
    compute.dtype(dtype)
    start, size = 1, 1024
    while start <= limit:
        n = torch.arange(start, min(start + size, limit) + 1, dtype=torch.float64)
        values = function(n)
        if not isinstance(values, Tensor) or values.shape != n.shape:
            raise ValueError("function must take a tensor of lengths and return a tensor of the same shape")
        require.tensor("what function returns", values, "n", "real")
        rounded = round_to(values.double(), dtype)
        equal = (rounded[1:] == rounded[:-1]).nonzero()
        if len(equal):
            return start + int(equal[0])
        start, size = start + size, min(2 * size, 2**20)
    raise ValueError(f"function(n) and function(n + 1) differ in {dtype} for every n up to limit = {limit}")


# Remedies ------------------------------------------------------------------------------------------------


def adaptive_temperature(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Softmax, sharpened where its entropy H (nats) is above 0.5: logits times max(1, polynomial(H)).

    Veličković et al. (2024), "softmax is not enough", Figure 6, with their fitted coefficients.

    >>> row = torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0])
    >>> adaptive_temperature(row)[0].item() > row.softmax(0)[0].item()
    True
    """
    require.tensor("logits", logits, "... n")
    return require.finite("logits", (inverse_temperature(logits) * logits).softmax(-1))


def inverse_temperature(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... 1"]:
    """The factor that `adaptive_temperature` multiplies the logits with.

    >>> inverse_temperature(torch.tensor([9.0, 0.0])).item()  # sharp already
    1.0
    """
    require.tensor("logits", logits, "... n")
    entropy = torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True)
    polynomial = torch.zeros_like(entropy)
    for coefficient in (-0.037, 0.481, -2.3, 4.917, -1.791):
        polynomial = polynomial * entropy + coefficient
    return torch.where(entropy > 0.5, polynomial.clamp(min=1.0), 1.0)


def seq_vcr_loss(
    x: Float[Tensor, "batch n d"],
    variance_weight: float = 1.0,
    covariance_weight: float = 0.004,
    eta: float = 0.001,
) -> Float[Tensor, ""]:
    """The regulariser of Arefin et al. (2025), Seq-VCR: variance up, covariance down, over the batch at each position.

    (1 / (n d)) sum_i sum_k [ variance_weight max(0, 1 - sqrt(C_kk + eta)) + covariance_weight sum_{l != k} C_kl^2 ],
    with C the unbiased covariance over the batch at position i.

    Raises:
        ValueError: x has not three axes, or fewer than two sequences; a weight or eta is negative.

    >>> x = torch.randn(256, 4, 16, generator=torch.Generator().manual_seed(0))
    >>> bool(seq_vcr_loss(0.001 * x) > seq_vcr_loss(x))
    True
    """
    require.tensor("x", x, "batch n d")
    if len(x) < 2:
        raise ValueError(f"x must have shape (batch >= 2, n, d), not {tuple(x.shape)}")
    for name, value in (("variance_weight", variance_weight), ("covariance_weight", covariance_weight), ("eta", eta)):
        require.number(name, value, 0)
    batch, n, d = x.shape
    centred = x - x.mean(0)
    covariance = torch.einsum("bnk,bnl->nkl", centred, centred) / (batch - 1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    off_diagonal = covariance.square().sum() - variance.square().sum()
    spread = (1 - (variance + eta).sqrt()).clamp(min=0).sum()
    return require.finite("x, or a weight,", (variance_weight * spread + covariance_weight * off_diagonal) / (n * d))


# A real model --------------------------------------------------------------------------------------------


def repeated_states(
    model: LanguageModel,
    lengths: Sequence[int],
    *,
    sequence: str = "1",
    head: str | None = None,
    tail: str = "",
    period: int = 1,
) -> tuple[Float[Tensor, "lengths d"], Float[Tensor, "lengths d"]]:
    """The last token's final representations with n tokens, and with the end of the sequence repeated once.

    For each n: head + first n tokens + tail, and head + first n tokens + the last `period` of them again + tail.
    All lengths share one pass over the longest prefix.

    Args:
        model: from `models.load`.
        lengths: numbers of tokens of the sequence.
        sequence: text; a short one is repeated until it is long enough.
        head: text before the sequence; None is the model's first token (see `probe.first_token`), without which
            equal tokens have equal representations at every length.
        tail: text after it.
        period: tokens that are repeated; with a separator after every digit, 2 keeps the phase ("1,1," against "1,1,1,").
    """
    require.instance("model", model, LanguageModel, "what models.load returns")
    lengths = require.integers("lengths", lengths, 1)
    if require.integer("period", period, 1) > min(lengths):
        raise ValueError(f"lengths must be at least the period, {period}, not {min(lengths)}")
    for name, text in (("sequence", sequence), ("head", "" if head is None else head), ("tail", tail)):
        require.text(name, text)
    unit = probe.encode(model, sequence)
    if len(unit) == 0:
        raise ValueError("sequence must not be empty")
    before = probe.first_token(model) if head is None else probe.encode(model, head)
    body = unit.repeat(-(-max(lengths) // len(unit)))[: max(lengths)]
    ids, ending = torch.cat([before, body]), probe.encode(model, tail)
    stops = [len(before) + n for n in lengths]
    continuations = [(n, ending) for n in stops] + [(n, torch.cat([ids[n - period : n], ending])) for n in stops]
    once, twice = probe.after(model, ids, continuations).states.double().cpu().chunk(2)
    return once, twice


def last_token_distance(model: LanguageModel, lengths: Sequence[int], **setting) -> Float[Tensor, " lengths"]:
    """L1 distance of the two representations of `repeated_states`, which takes the same arguments.

    Barbero et al. (2024), Figures 5 and 12.
    """
    once, twice = repeated_states(model, lengths, **setting)
    return (once - twice).abs().sum(-1)


# Copying -------------------------------------------------------------------------------------------------

FORM = "Please answer exactly as 'The answer to your question is: <ANSWER>'"
HINT = " Hint: It's not necessarily a 1, check carefully."
# Barbero et al. (2024), appendix C.1, and the two orders of appendix C.5
PROMPTS = {
    "sequence first": "Consider the following sequence: {sequence}. What is the {place} digit in this sequence?{hint} {form}",
    "type 1": "What is the {place} digit of the following sequence?{hint} {form}. Here is the sequence: {sequence}",
    "type 2": "{form}. What is the {place} digit of the following sequence?{hint} {sequence}",
}
PATTERNS = {"ones": "1", "alternating": "10", "repeated": "1111111110"}
PLACES = ("first", "last")


def copying_prompt(model: LanguageModel, prompt: str, place: str, hint: bool) -> tuple[str, str]:
    """The text before the sequence and the text after it, up to where the model has to write the digit."""
    require.instance("model", model, LanguageModel, "what models.load returns")
    require.choice("prompt", prompt, PROMPTS)
    require.choice("place", place, PLACES)
    require.flag("hint", hint)
    text = PROMPTS[prompt].format(place=place, hint=HINT if hint else "", form=FORM, sequence="<SEQUENCE>")
    if model.tokenizer.chat_template:
        text = model.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
    head, tail = (text.rstrip() + "\nThe answer to your question is: ").split("<SEQUENCE>")
    return head, tail


def _digits(model: LanguageModel, digits: str) -> Int[Tensor, " n"]:
    """Each digit as a token of its own."""
    tokens = {digit: probe.encode(model, digit)[-1] for digit in set(digits)}
    return torch.stack([tokens[digit] for digit in digits])


def copying_margins(
    model: LanguageModel,
    lengths: Sequence[int],
    *,
    pattern: str = "ones",
    prompt: str = "sequence first",
    hint: bool = False,
) -> dict[tuple[str, str], tuple[Float[Tensor, " lengths"], Float[Tensor, " lengths"]]]:
    """Logit of 0 minus logit of 1 as the answer, by the place of a digit and the place that the question names.

    A pair for each of ("first", "first"), ("first", "last"), ("last", "first"), ("last", "last"): the margins with a
    0 at the first of the two places and with a 1 there. Their difference is the effect of that one token. A model
    that copies has a large effect where the two places agree, and none where they do not: the control.

    Args:
        lengths: digits in the sequence, each at least 2; each is one token, also where the tokenizer would merge them.
        pattern: what fills the rest: "ones", "alternating" (10) or "repeated" (a 0 in every ten).
    """
    require.instance("model", model, LanguageModel, "what models.load returns")
    require.choice("pattern", pattern, PATTERNS)
    lengths = require.integers("lengths", lengths, 2)
    filler = (PATTERNS[pattern] * max(lengths))[: max(lengths) - 1]
    reads: dict[tuple[str, str], list] = {}  # what has one beginning is read once
    for asked in PLACES:
        head, tail = copying_prompt(model, prompt, asked, hint)
        start, tail = len(probe.encode(model, head)), probe.encode(model, tail)
        for n, digit in itertools.product(lengths, "01"):
            first, last = reads.setdefault((head, digit + filler), []), reads.setdefault((head, filler[::-1] + "1"), [])
            first.append((("first", asked, digit, n), (start + n, tail)))
            last.append((("last", asked, digit, n), (start + n - 1, torch.cat([_digits(model, digit), tail]))))
    found = {}
    for (head, sequence), questions in reads.items():
        ids = torch.cat([probe.encode(model, head), _digits(model, sequence)])
        logits = probe.after(model, ids, [continuation for _, continuation in questions]).logits
        margins = probe.margin(model, logits, "0", "1").cpu()
        found |= {key: margin for (key, _), margin in zip(questions, margins, strict=True)}
    return {
        (place, asked): tuple(torch.stack([found[place, asked, digit, n] for n in lengths]) for digit in "01")
        for place, asked in itertools.product(PLACES, PLACES)
    }
