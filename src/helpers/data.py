"""Read the tables and the sample text that come with the course."""

import difflib
import functools
import io
from pathlib import Path

import pandas as pd

from helpers import require


def folder() -> Path:
    """Return the path of the course's `data` folder.

    The folder is part of the source tree or of the installed package.

    >>> (folder() / "reported").is_dir()
    True
    """
    module = Path(__file__).resolve()
    installed = module.parent / "_data"
    return installed if installed.is_dir() else module.parents[2] / "data"


def table(name: str) -> pd.DataFrame:
    """Read `data/<name>.csv` as a data frame.

    The lines of the file that start with `#` give the source of the numbers and are skipped.

    Args:
        name: the path of the table below `data`, without ".csv", such as
            "reported/tree_neighbors_match".

    Returns:
        The rows and columns of the table.

    Raises:
        ValueError: if there is no table with this name. The message lists tables with similar
            names.

    >>> table("reported/tree_neighbors_match").set_index("model").loc["GAT", "5"].item()
    0.41
    """
    known = sorted(
        path.relative_to(folder()).with_suffix("").as_posix() for path in folder().rglob("*.csv")
    )
    if not (isinstance(name, str) and name in known):
        near = ", ".join(difflib.get_close_matches(str(name), known, 3, cutoff=0))
        raise ValueError(
            f"name must be one of {len(known)} tables, such as {near}, not {require.brief(name)}"
        )
    lines = (folder() / f"{name}.csv").read_text().splitlines(keepends=True)
    return pd.read_csv(io.StringIO("".join(line for line in lines if not line.startswith("#"))))


@functools.cache
def prose() -> str:
    """Return the text in `data/prose.txt`, on which we measure language models.

    The text was written for this course.

    >>> len(prose()) > 3000
    True
    """
    return (folder() / "prose.txt").read_text(encoding="utf-8")
