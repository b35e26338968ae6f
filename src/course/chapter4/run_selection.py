"""Which rows of the tables of trained counters and copiers are compared: what claims, figures and
the lab of chapter 4 share.
"""

import pandas as pd

from course.evidence import significance
from course.runs import trained
from helpers import require


def chosen(table: pd.DataFrame, across: str = "longest") -> pd.DataFrame:
    """Return the decoders to compare across a column: width 64, up to 64 letters, but for that
    column.

    "longest" takes every length of training, "width" every width; any other column every width.
    Encodings that were run at one width only are left out where widths are compared.

    Raises:
        ValueError: the table has no such column.
    """
    require.choice("across", across, list(table.columns))
    found = table[table["width" if across == "longest" else "longest"] == 64]
    return (
        found[found.groupby("encoding").width.transform("nunique") > 1]
        if across == "width"
        else found
    )


def turns(table: pd.DataFrame, name: str) -> dict[str, list[int]]:
    """By place, the first lengths with a wrong answer of an encoding's decoders without a window,
    `NEVER` included.

    Pairs of decoder and digit count that are right up to `LONGEST` digits at both places.
    """
    chosen = table[(table.encoding.replace({"0.5-RoPE": "RoPE"}) == name) & (table.window == 0)]
    found = {place: [] for place in trained.PLACES}
    for digit in "01":
        able = chosen[chosen[f"short_first_{digit}"] & chosen[f"short_last_{digit}"]]
        for place in trained.PLACES:
            found[place] += able[f"turn_{place}_{digit}"].tolist()
    return found


def first_against_last(table: pd.DataFrame) -> pd.DataFrame:
    """By position encoding: of how many pairs of decoder and digit the first digit is lost earlier,
    or the last one.

    Pairs count that are right up to `LONGEST` digits at both places; "p" is that of a two-sided
    sign test.
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
    """Return the rows of each copying decoder by its name."""
    names = table.encoding.where(table.window == 0, table.encoding + ", window 8")
    other = (table.base != 10_000) & (table.window == 0)
    names = names.where(~other, table.encoding + table.base.map(", base {:,}".format))
    return {name: table[names == name] for name in COPIERS}


def best_read(table: pd.DataFrame) -> pd.DataFrame:
    """By encoding, how often the best of all linear readers names the count at 20 letters: the mean
    of the seeds.

    Of the trained and of the untrained decoder, with its states as they are and rounded to bf16,
    and of the share of y.
    """
    columns = ["trained", "untrained", "trained_bf16", "untrained_bf16", "ratio"]
    return (
        table.groupby(["encoding", "seed"], sort=False)[columns]
        .max()
        .groupby("encoding", sort=False)
        .mean()
    )


def fates(table: pd.DataFrame, n: int = 20) -> pd.DataFrame:
    """Return what becomes of the count of n letters, by encoding: there, findable, used, each the
    mean of the seeds.

    Three readouts name the count. *there*: the best of all linear readouts, told the counts of 17
    to 32 letters but 20. *findable*: a linear readout that is told no more than the decoder was,
    counts of 1 to 16 letters; its penalty is chosen on other strings of these lengths. *used*: the
    decoder's own head.

    Returns:
        there (at 20 letters only), findable and used of the trained decoder; there_before and
        findable_before of the one
        that it began as.
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
