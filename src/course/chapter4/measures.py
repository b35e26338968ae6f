"""Measure counting for chapter 4.

The module covers counts in a random Transformer, codes of any width, the tokens of a text, and
answers that others have reported.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import pandas as pd
import scipy.stats
import torch

from course.evidence import significance
from course.maths import counting
from helpers import data, models, probe
from helpers.models import LanguageModel

# Test softmax on the count ------------------------------------------------------------------------


@cache
def first_misread(dtype: str, most: int = 200, seed: int = 0) -> int | None:
    """Find the first n for which the rounded state of n ones is nearest to another count's state.

    A random Transformer with a first token and a causal mask computes the last hidden state in the
    given format. The state is misread if the exact state of n - 1 or n + 1 ones is nearer to it
    than the exact state of n ones. The result is `None` if no n up to `most` is misread.
    """
    setting = {"first": True, "causal": True, "seed": seed}
    exact = {n: counting.last_state("1" * n, **setting) for n in range(1, 4)}
    for n in range(2, most + 1):
        exact[n + 1] = counting.last_state("1" * (n + 1), **setting)
        here = counting.last_state("1" * n, dtype=dtype, **setting).double()
        if min((n - 1, n, n + 1), key=lambda k: float((exact[k] - here).norm())) != n:
            return n
    return None


def counts_to(dtype: str, seeds: int = 4, most: int = 200) -> str:
    """Describe up to which count n random networks can distinguish n from n - 1 and n + 1.

    The networks are ordered from worst to best. A network can distinguish the counts up to the last
    n before `first_misread`, or up to `most`.
    """
    last = sorted((first_misread(dtype, most, seed) or most + 1) - 1 for seed in range(seeds))
    low, high = (f"{most} or more" if n == most else str(n) for n in (last[0], last[-1]))
    return low if low == high else f"{low} to {high}"


# Test the width of codes --------------------------------------------------------------------------


def read_right(
    vocabulary: int, width: int, kind: str, length: int, trials: int = 10, readout: str = "product"
) -> float:
    """Return the fraction of symbols whose count is read correctly from the sum of the codes.

    The sequences are random.

    Args:
        readout: "product", which is the product of the sum with the symbol's code, or "solved",
            which solves for all counts together when the length n is known.
    """
    read, right = {"product": counting.histogram, "solved": counting.solved_histogram}[readout], 0
    for trial in range(trials):
        codes = counting.codes(vocabulary, width, kind, trial)
        tokens = torch.randint(
            vocabulary, (length,), generator=torch.Generator().manual_seed(trial)
        )
        exact = torch.bincount(tokens, minlength=vocabulary)
        right += int((read(tokens, codes) - exact).abs().lt(0.5).sum())
    return right / (trials * vocabulary)


# Look at the tokens of a text ---------------------------------------------------------------------


def pieces(text: str, model: LanguageModel | None = None) -> list[str]:
    """Return the text of each token, as the model's tokenizer splits it."""
    model = model or models.default()
    return [model.tokenizer.decode([token]) for token in probe.encode(model, text).tolist()]


_LETTERS = str.maketrans("10", "yx")


def hidden_letters(length: int = 19, strings: int = 200) -> tuple[float, float]:
    """Return the fraction of letters that share a token with another letter.

    The letters are those of Case II of the talk (y with probability 0.7).

    Returns:
        The fraction without commas, and the fraction with commas, which is Case I.
    """
    plain = [
        counting.make("zeros and ones", length, seed).sequence.translate(_LETTERS)
        for seed in range(strings)
    ]
    return _merged(map(pieces, plain)), _merged(pieces(",".join(text)) for text in plain)


def _merged(cut: Iterable[Sequence[str]]) -> float:
    letters = [piece.count("x") + piece.count("y") for found in cut for piece in found]
    return sum(k for k in letters if k > 1) / sum(letters)


# Read answers that were reported ------------------------------------------------------------------

ASKED = 314
WRITINGS = {"ones": "1111…", "comma_separated": "1,1,1,…", "groups_of_five": "1,1,1,1,1;…"}


def answers() -> pd.DataFrame:
    """Return the answers of chat models to 314 ones, as the talk reports them, one row per answer.

    The columns are the model, the way of writing the ones, and the answer, which is missing if the
    model gave no number.
    """
    table = data.table("reported/counting_314_ones").drop(columns="context")
    return table.melt("model", var_name="writing", value_name="answer")


PLAIN_ACCURACY = 0.16  # per cent, for Case II without separators in one base


def base_intervals(trials: int) -> pd.DataFrame:
    """Return the talk's accuracies by base, with intervals for `trials` strings per base.

    Each interval is the interval that the accuracy would have if it had been measured on `trials`
    strings. Values are in per cent.
    """
    table = data.table("reported/counting_separator_base")
    bounds = [_interval(percent, trials) for percent in table.accuracy_percent]
    return table.assign(low=[low for low, _ in bounds], high=[high for _, high in bounds])


def plain_interval(trials: int) -> tuple[float, float]:
    """Return the interval of the talk's accuracy without separators, for `trials` strings."""
    return _interval(PLAIN_ACCURACY, trials)


def _interval(percent: float, trials: int) -> tuple[float, float]:
    low, high = significance.share_interval(round(percent * trials / 100), trials)
    return 100 * low, 100 * high


def separated(trials: int) -> int:
    """Count the bases whose interval is entirely above the interval without separators."""
    return int((base_intervals(trials).low > plain_interval(trials)[1]).sum())


def base_trend() -> tuple[float, float]:
    """Return Spearman's rank correlation between accuracy and base, and its p value."""
    table = data.table("reported/counting_separator_base")
    return significance.rank_correlation(table.base, table.accuracy_percent)


def best_constant(length: int = 19, share: float = counting.SHARE) -> float:
    """Return the best accuracy of a model that always gives the same number.

    Each of `length` letters counts with probability `share`. A model that counts must be more
    accurate than this.
    """
    return float(scipy.stats.binom.pmf(range(length + 1), length, share).max())


def always(guess: int, lengths: Iterable[int], task: str = "ones") -> list[float]:
    """Return the absolute error of always giving the same number, for each length.

    In the mixed tasks, the error is the difference to the expected count.
    """
    share = 1.0 if task in ("sum", "ones") else counting.SHARE
    return [abs(share * n - guess) for n in lengths]


PAPER_LENGTHS: Sequence[int] = range(10, 201, 10)  # approximately the lengths of Figures 3 and 6
