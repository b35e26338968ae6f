"""Read the tables and the prose that come with the course."""

import difflib
import functools
import io
from pathlib import Path

import pandas as pd

from helpers import require


def folder() -> Path:
    """Return the course's `data` folder, in the source tree or inside the installed package.

    >>> (folder() / "reported").is_dir()
    True
    """
    module = Path(__file__).resolve()
    installed = module.parent / "_data"
    return installed if installed.is_dir() else module.parents[2] / "data"


def table(name: str) -> pd.DataFrame:
    """Read `data/<name>.csv` as a data frame. The lines of the file that start with `#` say where
    the numbers come from.

    Raises:
        ValueError: if there is no such table. The message names those with similar names.

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
    """Return the course's own prose (`data/prose.txt`), a text on which we measure language models.

    >>> len(prose()) > 3000
    True
    """
    return (folder() / "prose.txt").read_text(encoding="utf-8")
