"""Make counting tasks, compute what softmax preserves of a count, and bound a counter's width.

"Barbero et al. (2024)" is "Transformers need glasses!", and "Yehudai et al. (2024)" is "When Can
Transformers Count to n?". Closed forms run in float64.
"""

import math
import re
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import collapse, compute, require, rope
from helpers.transformer import sinusoidal

# Make tasks and prompts, and read answers ---------------------------------------------------------

TASKS = ("sum", "ones", "zeros and ones", "word")
STRATEGIES = ("no CoT", "CoT zero-shot", "CoT few-shot")
WORD = "car"  # the word that the fourth task counts
SHARE = 0.7  # the probability of a one among digits, and of the word among other words
_OTHER_WORDS = ("dog", "tree", "house", "river", "bread", "stone")


class Sample(NamedTuple):
    """Hold one question of a counting task.

    Attributes:
        sequence: the sequence as text.
        count: the number that the task asks for.
    """

    sequence: str
    count: int


def make(task: str, length: int, seed: int) -> Sample:
    """Make a sequence and its right answer for one of the four counting tasks.

    The tasks are those of Barbero et al. (2024), section 3.2. "sum" and "ones" consist of `length`
    ones. In "zeros and ones", each of `length` digits is a one with probability 0.7. In "word",
    each of `length` words is "car" with probability 0.7. The paper gives no sentence for "word", so
    its sentence is ours. With the same length and seed, the answers of "word" and of "zeros and
    ones" are equal.

    >>> make("sum", 3, seed=0)
    Sample(sequence='1 + 1 + 1', count=3)
    >>> make("zeros and ones", 8, seed=0)
    Sample(sequence='10111110', count=6)
    """
    require.choice("task", task, TASKS)
    require.integer("length", length, 1)
    generator = torch.Generator().manual_seed(require.seed(seed))
    if task in ("sum", "ones"):
        return Sample((" + " if task == "sum" else "").join(["1"] * length), length)
    counted = (torch.rand(length, generator=generator) < SHARE).tolist()
    if task == "zeros and ones":
        return Sample("".join("01"[one] for one in counted), sum(counted))
    others = torch.randint(len(_OTHER_WORDS), (length,), generator=generator).tolist()
    words = (
        WORD if one else _OTHER_WORDS[other] for one, other in zip(counted, others, strict=True)
    )
    return Sample(" ".join(words), sum(counted))


# Barbero et al. (2024), appendix C.1, as printed, including quotation marks, full stops and a
# missing mark
_LINE = (
    "Please give the answer on the final line exactly as "
    "’The final answer to your maths question is: xxxx’"
)
_COUNT_ONES = (
    "Please count the number of ones in the following sequence:{sequence}. "
    f"{_LINE}, where ’xxxx is your answer."
)
QUESTIONS = {
    "sum": f"Please perform the following sum: {{sequence}}. {_LINE}, where ’xxxx’ is your "
    f"answer..",
    "ones": _COUNT_ONES,
    "zeros and ones": _COUNT_ONES,
    "word": f"Please count the number of times ‘{WORD}’ appears in the following sentence: "
    f"’{{sequence}}’. "
    f"{_LINE}, where ’xxxx’ is your answer.",
}
STEPS = "Let’s think step by step, showing me your reasoning."
FEW = "Here are a few examples:"
_FINAL = "The final answer to your maths question is:"
# the examples of "sum" are from the paper, and we wrote the others "with similar strategies"
EXAMPLES = {
    "sum": f"""\
Please perform the following sum: 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
We divide the sum into groups of 5.
(1 + 1 + 1 + 1 + 1) + (1 + 1 + 1 + 1 + 1) + 1 + 1
The answer is then 2 * 5 + 2 = 12
{_FINAL} 12
Please perform the following sum: 1 + 1 + 1 + 1 + 1 + 1
We divide the sum into groups of 5.
(1 + 1 + 1 + 1 + 1) + 1
The answer is then 1 * 5 + 1 = 6
{_FINAL} 6""",
    "ones": f"""\
Please count the number of ones in the following sequence:111111111111
We divide the sequence into groups of 5.
(11111) (11111) 11
The answer is then 2 * 5 + 2 = 12
{_FINAL} 12
Please count the number of ones in the following sequence:111111
We divide the sequence into groups of 5.
(11111) 1
The answer is then 1 * 5 + 1 = 6
{_FINAL} 6""",
    "zeros and ones": f"""\
Please count the number of ones in the following sequence:110111101011
We divide the sequence into groups of 5.
(11011) (11010) 11
The answer is then 4 + 3 + 2 = 9
{_FINAL} 9
Please count the number of ones in the following sequence:101111
We divide the sequence into groups of 5.
(10111) 1
The answer is then 4 + 1 = 5
{_FINAL} 5""",
    "word": f"""\
Please count the number of times ‘{WORD}’ appears in the following sentence: ’car dog car car tree car car’
We divide the sentence into groups of 5.
(car dog car car tree) car car
The answer is then 3 + 2 = 5
{_FINAL} 5
Please count the number of times ‘{WORD}’ appears in the following sentence: ’car river car’
We divide the sentence into groups of 5.
car river car
The answer is then 2
{_FINAL} 2""",  # noqa: E501
}


def prompt(task: str, strategy: str, sequence: str) -> str:
    """Return the question for a model in the exact words of Barbero et al. (2024), appendix C.1.

    "no CoT" is only the question. With chain of thought, the paper's sentence "Let's think step by
    step, showing me your reasoning." comes before the question. For "CoT few-shot", two examples
    come before it as well. The paper does not say where it puts the sentence and the examples. The
    paper's examples are for the sum, and ours for the other tasks have the same form.

    >>> prompt("ones", "no CoT", "111")[:65]
    'Please count the number of ones in the following sequence:111. Pl'
    """
    require.choice("task", task, TASKS)
    require.choice("strategy", strategy, STRATEGIES)
    question = QUESTIONS[task].format(sequence=require.text("sequence", sequence, empty=False))
    if strategy == "no CoT":
        return question
    return (
        f"{STEPS}\n{question}"
        if strategy == "CoT zero-shot"
        else f"{STEPS} {FEW}\n{EXAMPLES[task]}\n{question}"
    )


_ANSWER_LINE = re.compile(
    r"[\s*_`]+".join(_FINAL.rstrip(":").split()) + r"[\s*_`]*:(.*)", re.IGNORECASE
)
_SEPARATORS = re.compile(r"[\s*_`'\"‘’“”«»$(){}\[\]\\|<>~≈:;!?—–]+")
_NUMBER = re.compile(r"[-−+]?(\d{1,3}(,\d{3})+|\d+)(\.0+)?[.,]?")
_DIGITS = 4300  # the longest number that Python reads


def parse_answer(text: str) -> int | None:
    """Return the number on the answer line of a model's text, or `None`.

    The answer line is "The final answer to your maths question is: …". If there are several such
    lines, the last one counts. If the line has a "=", only the text after the last "=" is read.
    Letter case and Markdown do not matter, and thousands may have commas. The result is `None` if
    there is no such line, or if the line has no integer or more than one.

    >>> line = "The final answer to your maths question is: "
    >>> [parse_answer(line + said) for said in ("1,204", "**37**.", "2 * 5 + 2 = 12")]
    [1204, 37, 12]
    >>> parse_answer(line + "xxxx"), parse_answer("There are 37 ones."), parse_answer(line + "37.5")
    (None, None, None)
    """
    lines = [
        found[1]
        for line in require.text("text", text).splitlines()
        if (found := _last_answer(line))
    ]
    if not lines:
        return None
    rest = lines[-1].replace("{,}", ",").rpartition("=")[2]
    runs = [run for run in _SEPARATORS.split(rest) if any(map(str.isdigit, run))]
    if len(runs) != 1 or len(runs[0]) > _DIGITS or not (number := _NUMBER.fullmatch(runs[0])):
        return None
    return (-1 if runs[0][0] in "-−" else 1) * int(number[1].replace(",", ""))


def _last_answer(line: str) -> re.Match | None:
    found = None
    while again := _ANSWER_LINE.search(line, 0 if found is None else found.start(1)):
        found = again
    return found


# Compute what softmax keeps of a count ------------------------------------------------------------


def mass_on_ones(zeros: int, ones: int, lead: float = 1.0) -> float:
    """Return the total attention weight of the ones.

    The logit of each one exceeds the logit of each zero by `lead`. The weight depends only on the
    ratio of the two counts, so it does not show how many tokens there are (Barbero et al., 2024,
    proof of Proposition B.9).

    >>> round(mass_on_ones(2, 2), 6), round(mass_on_ones(200, 200), 6), round(mass_on_ones(1, 3), 6)
    (0.731059, 0.731059, 0.890768)
    """
    require.integer("zeros", zeros, 0)
    if require.integer("ones", ones, 0) + zeros == 0:
        raise ValueError("zeros and ones must not both be 0")
    require.number("lead", lead)
    if zeros == 0 or ones == 0:
        return float(zeros == 0)
    odds = lead + math.log(ones) - math.log(zeros)
    return (
        1 / (1 + math.exp(-odds))
        if odds > 0
        else math.exp(max(odds, -745.0)) / (1 + math.exp(odds))
    )


ENCODINGS = ("NoPE", "RoPE", "APE")


def last_state(
    sequence: str,
    *,
    causal: bool = False,
    encoding: str = "NoPE",
    first: bool = False,
    layers: int = 2,
    width: int = 16,
    seed: int = 0,
    dtype: str | torch.dtype = "fp64",
) -> Float[Tensor, " {width}"]:
    """Compute the last hidden state for zeros and ones in a Transformer with random weights.

    Each layer is pre-norm attention with two heads and a two-layer MLP, each with a residual
    connection. By Proposition B.9 of Barbero et al. (2024), without a causal mask, positions and a
    first token, the result depends only on the ratio of zeros to ones, and on the last digit.

    Args:
        causal: let each token see its own and all earlier tokens. Otherwise all tokens see all.
        encoding: "NoPE", "RoPE" (base 10,000) or "APE" (sinusoidal, added to the embedding).
        first: put a special first token (BOS) before the sequence.
        dtype: the floating-point format of all computations.

    Raises:
        ValueError: if the sequence has characters other than 0 and 1, the encoding is unknown,
            there are no layers, or the width is not a multiple of 4.

    >>> once, twice = last_state("10"), last_state("1010")
    >>> bool((once - twice).abs().max() < 1e-13)
    True
    """
    if set(require.text("sequence", sequence, empty=False)) - {"0", "1"}:
        raise ValueError(
            f"sequence must hold only the digits 0 and 1, not {require.brief(sequence)}"
        )
    require.flag("causal", causal)
    require.choice("encoding", encoding, ENCODINGS)
    require.flag("first", first)
    require.integer("layers", layers, 1)
    if require.integer("width", width, 4) % 4:
        raise ValueError(f"width must be a multiple of 4, not {width}")
    kind = compute.dtype(dtype)
    if not kind.is_floating_point:
        raise ValueError(f"dtype must be a floating-point type, not {kind}")
    generator = torch.Generator().manual_seed(require.seed(seed))

    def weights(*shape: int) -> Tensor:
        return (
            torch.randn(*shape, generator=generator, dtype=torch.float64) / math.sqrt(shape[-1])
        ).to(kind)

    ids = torch.tensor([2] * first + [int(sign) for sign in sequence])
    n, heads = len(ids), 2
    positions, theta = torch.arange(n), rope.frequencies(width // heads, 1e4)
    x = weights(3, width)[ids] * math.sqrt(width)
    if encoding == "APE":
        x = x + sinusoidal(positions, width).to(kind)
    hidden = (
        torch.ones(n, n, dtype=torch.bool).triu(1)
        if causal
        else torch.zeros(n, n, dtype=torch.bool)
    )
    for _ in range(layers):
        qkv, out, up, down = (
            weights(3 * width, width),
            weights(width, width),
            weights(4 * width, width),
            weights(width, 4 * width),
        )
        q, k, v = (
            (torch.nn.functional.layer_norm(x, (width,)) @ qkv.T)
            .view(n, 3, heads, -1)
            .permute(1, 2, 0, 3)
        )
        if encoding == "RoPE":
            q, k = (rope.turn(t, positions, theta, "half") for t in (q, k))
        logits = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        x = x + (logits.softmax(-1) @ v).transpose(0, 1).reshape(n, width) @ out.T
        x = (
            x
            + torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (width,)) @ up.T) @ down.T
        )
    return require.finite("layers, or width,", x[-1])


def first_token_limit(dtype: str | torch.dtype, lead: float = 0.0, limit: int = 2**26) -> int:
    """Find the largest n up to which the first token's rounded weight shows the count.

    A first token whose logit exceeds those of n others by `lead` gets the weight alpha = 1 /
    (1 + n exp(-lead)). We round alpha to the format, and read the count as (1/alpha - 1) exp(lead),
    rounded to the nearest integer. Up to the returned n, this reading is always right.

    >>> first_token_limit("bf16"), first_token_limit("fp16")
    (188, 1463)
    """
    kind = compute.dtype(dtype)
    if not kind.is_floating_point:
        raise ValueError(f"dtype must be a floating-point type, not {kind}")
    scale = math.exp(require.number("lead", lead, -700, 700))
    require.integer("limit", limit, 0)
    start, size = 0, 1024
    while start <= limit:
        n = torch.arange(start, min(start + size, limit + 1), dtype=torch.float64)
        alpha = collapse.round_to(1 / (1 + n / scale), kind)
        wrong = (
            (((1 / alpha - 1) * scale - n).abs() < 0.5).logical_not().nonzero()
        )  # also where alpha became 0
        if len(wrong):
            return start + int(wrong[0]) - 1
        start, size = start + size, min(2 * size, 2**20)
    raise ValueError(
        f"limit = {limit} is too small, because in {kind} every n up to it is read "
        "correctly. Give a larger limit"
    )


# Bound the width of a counter ---------------------------------------------------------------------


def welch_bound(vectors: int, width: int) -> float:
    """Return the smallest possible coherence of `vectors` unit vectors of width `width`.

    At least one pair of the vectors has a product of sqrt((m - d) / (d (m - 1))) or more, where m
    is `vectors` and d is `width`. The bound is 0 if the vectors can be orthogonal (Welch, 1974).
    The same number is a lower bound for the root mean square of all products.

    >>> round(welch_bound(64, 32), 6), welch_bound(32, 64)
    (0.125988, 0.0)
    """
    require.integer("vectors", vectors, 1)
    require.integer("width", width, 1)
    return math.sqrt((vectors - width) / width / (vectors - 1)) if vectors > width else 0.0


CODES = ("tight", "random")


def codes(
    vocabulary: int, width: int, kind: str = "tight", seed: int = 0
) -> Float[Tensor, "{vocabulary} {width}"]:
    """Return a unit vector for each symbol of a vocabulary.

    Args:
        kind: "tight" codes are orthogonal if they fit (width >= vocabulary). Otherwise their mean
            squared product is as small as possible. They consist of sines and cosines of distinct
            frequencies. "random" codes are Gaussian directions.
        seed: the seed of the frequencies and signs of "tight" codes, or of the random directions.

    >>> vectors = codes(64, 32)
    >>> off = (vectors @ vectors.T)[~torch.eye(64, dtype=torch.bool)]
    >>> round(off.square().mean().sqrt().item(), 6) == round(welch_bound(64, 32), 6)
    True
    """
    require.integer("vocabulary", vocabulary, 1)
    require.integer("width", width, 1)
    require.choice("kind", kind, CODES)
    generator = torch.Generator().manual_seed(require.seed(seed))
    if kind == "random":
        vectors = torch.randn(vocabulary, width, generator=generator, dtype=torch.float64)
        return vectors / vectors.norm(dim=1, keepdim=True)
    if width >= vocabulary:
        return torch.eye(vocabulary, width, dtype=torch.float64)
    pairs = torch.randperm((vocabulary - 1) // 2, generator=generator)[: width // 2] + 1
    angles = math.tau * torch.arange(vocabulary, dtype=torch.float64)[:, None] * pairs / vocabulary
    waves = torch.cat([angles.cos(), angles.sin()], dim=1) * math.sqrt(2 / width)
    constant = torch.full((vocabulary, width % 2), width**-0.5, dtype=torch.float64)
    signs = (
        torch.randint(2, (vocabulary, 1), generator=generator) * 2 - 1
    )  # without the signs, the sum over all symbols is lost
    return signs * torch.cat([waves, constant], dim=1)


def coherence(vectors: Float[Tensor, "m d"]) -> float:
    """Return the largest absolute cosine between two different rows.

    If the rows are codes of symbols, the coherence says how much the count of one symbol can
    disturb the count of another.

    Raises:
        ValueError: if there are fewer than two rows, or a row of zeros.

    >>> coherence(torch.eye(3))
    0.0
    """
    require.tensor("vectors", vectors, "m d")
    norms = vectors.double().norm(dim=1, keepdim=True)
    if len(vectors) < 2 or not bool((norms > 0).all()):
        raise ValueError("vectors must have at least two rows, and no row may be zero")
    unit = require.finite("vectors", vectors.double() / norms)
    return float((unit @ unit.T).fill_diagonal_(0).abs().max().clamp(max=1))


def histogram(tokens: Int[Tensor, " n"], codes: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
    """Estimate each symbol's count from the sum of the tokens' codes.

    The estimate is the product of the symbol's code with this sum. Uniform attention gives the sum
    divided by n (Yehudai et al., 2024). The estimate is exact if the codes are orthonormal.
    Otherwise the counts of other symbols are added, weighted by the products of their codes with
    the symbol's code.

    >>> histogram(torch.tensor([0, 2, 2]), torch.eye(3)).tolist()
    [1.0, 0.0, 2.0]
    """
    require.tensor("codes", codes, "m d")
    require.tensor("tokens", tokens, "n", "whole")
    if tokens.min() < 0 or tokens.max() >= len(codes):
        raise ValueError(f"tokens must be from 0 to {len(codes) - 1}, the rows of codes")
    counts = torch.bincount(tokens.long(), minlength=len(codes)).to(codes)
    return require.finite("codes", codes @ (counts @ codes))


def solved_histogram(tokens: Int[Tensor, " n"], codes: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
    """Compute all counts together from the sum of the tokens' codes and the length n.

    We solve linear equations for the counts. Because n is known, the counts are on a hyperplane, so
    m - 1 dimensions in general position are enough. For a simplex (unit vectors whose products are
    all -1/d, with d = m - 1), the solution is the affine readout (<sum, code> + n/d) / (1 + 1/d).
    If the equations do not determine the counts, the result is the solution with the smallest norm.

    >>> triangle = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]).double()
    >>> solved_histogram(torch.tensor([0, 2, 2]), triangle).round().abs().tolist()
    [1.0, 0.0, 2.0]
    """
    histogram(tokens, codes)
    rows = torch.cat([codes.double(), torch.ones(len(codes), 1, dtype=torch.float64)], 1)
    counts = torch.bincount(tokens.long(), minlength=len(codes)).double()
    return require.finite("codes", (counts @ rows) @ torch.linalg.pinv(rows))


def longest_counted(coherence: float) -> int | None:
    """Return the largest length for which rounding `histogram` gives the right counts.

    The counts must be right for every sequence of this length. If n - c tokens are another symbol,
    the estimate of a count c is wrong by up to (n - c) times the coherence. This error must stay
    below one half. The result is `None` if there is no limit.

    >>> longest_counted(welch_bound(64, 32)), longest_counted(0)
    (3, None)
    >>> longest_counted(0.125)  # 4 tokens would be off by one half exactly, which rounds either way
    3
    """
    if require.number("coherence", coherence, 0, 1) == 0:
        return None
    return require.integer("coherence", math.ceil(require.finite("coherence", 0.5 / coherence)) - 1)
