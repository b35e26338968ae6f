"""Select the runs of trained counters and copiers that chapter 4 compares.

The chapter's claims, figures and lab use the same runs.
"""

import pandas as pd

from course.evidence import significance
from course.runs import trained
from helpers import require


def chosen(table: pd.DataFrame, across: str = "longest") -> pd.DataFrame:
    """Return the decoders to compare across one column of the table.

    Args:
        across: the column. For "longest", only decoders of width 64 are returned. For any other
            column, only decoders that were trained on up to 64 letters are returned. For "width",
            encodings that were run at only one width are left out as well.

    Raises:
        ValueError: if the table does not have the column `across`.
    """
    require.choice("across", across, list(table.columns))
    found = table[table["width" if across == "longest" else "longest"] == 64]
    return (
        found[found.groupby("encoding").width.transform("nunique") > 1]
        if across == "width"
        else found
    )


def turns(table: pd.DataFrame, name: str) -> dict[str, list[int]]:
    """Return the first lengths at which the decoders with one encoding answer wrongly.

    Only decoders without a window count, and only pairs of decoder and digit that are right up to
    `LONGEST` digits at both positions.

    Returns:
        For each position in the string, a list with one length per pair, or `NEVER` if no answer is
            wrong.
    """
    chosen = table[(table.encoding.replace({"0.5-RoPE": "RoPE"}) == name) & (table.window == 0)]
    found = {place: [] for place in trained.PLACES}
    for digit in "01":
        able = chosen[chosen[f"short_first_{digit}"] & chosen[f"short_last_{digit}"]]
        for place in trained.PLACES:
            found[place] += able[f"turn_{place}_{digit}"].tolist()
    return found


def first_against_last(table: pd.DataFrame) -> pd.DataFrame:
    """Count in how many decoders the first digit is lost before the last one, and the reverse.

    A digit is lost before another one if it is lost at a shorter length. A pair of decoder and
    digit is counted if it is right up to `LONGEST` digits at both positions.

    Returns:
        One row per position encoding. `p` is the p value of a two-sided sign test.
    """
    rows = []
    for name in ("RoPE", "NoPE", "ALiBi", "APE"):
        lost = {
            place: [at or 10 * trained.TURNS[-1] for at in found]
            for place, found in turns(table, name).items()
        }
        first, last = (pd.Series(lost[place], dtype=float) for place in trained.PLACES)
        earlier = int((first < last).sum()), int((last < first).sum())
        middle = [
            float("inf") if x > trained.TURNS[-1] else float(x)
            for x in (first.median(), last.median())
        ]
        rows.append((name, len(first), *earlier, *middle, significance.sign_test(*earlier)))
    columns = [
        "encoding",
        "pairs",
        "first earlier",
        "last earlier",
        "first, median",
        "last, median",
        "p",
    ]
    return pd.DataFrame(rows, columns=columns)


COPIERS = ["RoPE", "0.5-RoPE", "NoPE", "APE", "ALiBi", "RoPE, window 8"]
COPIERS += [f"RoPE, base {base:,}" for base in (10, 100, 1_000_000)]


def copiers(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs of each kind of copying decoder, keyed by the name of the kind."""
    names = table.encoding.where(table.window == 0, table.encoding + ", window 8")
    other = (table.base != 10_000) & (table.window == 0)
    names = names.where(~other, table.encoding + table.base.map(", base {:,}".format))
    return {name: table[names == name] for name in COPIERS}


def best_read(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often the best linear probe recovers the count of 20 letters.

    Returns:
        One row per position encoding, with means over the seeds. The columns are the trained and
            the untrained decoder, with exact states and with states rounded to bf16, and a probe
            that only gets the fraction of y.
    """
    columns = ["trained", "untrained", "trained_bf16", "untrained_bf16", "ratio"]
    return (
        table.groupby(["encoding", "seed"], sort=False)[columns]
        .max()
        .groupby("encoding", sort=False)
        .mean()
    )


def fates(table: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    """Return three accuracies that say whether a count is in the hidden state, findable, and used.

    The accuracies are those of three readouts of the count of n letters, as means over the seeds.
    *there* is the accuracy of the best linear probe, fitted on counts of 17 to 32 letters except
    20. *findable* is that of a linear probe that is fitted on the same lengths as the decoder, 1 to
    16 letters. The penalty of this probe is chosen on other strings of these lengths. *used* is the
    accuracy of the decoder itself.

    Returns:
        One row per position encoding, with `there` (at 20 letters only), `findable` and `used` of
            the trained decoder, and `there_before` and `findable_before` of the same decoder before
            training.
    """
    rows = {}
    for cell, here in table.groupby(["encoding", "seed"], sort=False):
        row = {
            "there": here.trained.max(),
            "there_before": here.untrained.max(),
            "used": here[f"own_{n}"].iloc[0],
        }
        for name, column in (("findable", "trained"), ("findable_before", "untrained")):
            chosen = here.loc[here[f"{column}_within"].idxmax()]
            row[name] = chosen[f"{column}_from_16_{n}"]
        rows[cell] = row
    found = pd.DataFrame(rows).T.groupby(level=0, sort=False).mean()
    return found[["there", "findable", "used", "there_before", "findable_before"]].rename_axis(
        "encoding"
    )
