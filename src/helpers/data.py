"""The tables that come with the course, and the folder where downloads are kept."""

import os
from pathlib import Path

import pandas as pd
import pooch


def folder() -> Path:
    """The course's `data` folder: in the source tree, or inside the installed package."""
    here = Path(__file__).resolve()
    installed = here.parent / "_data"
    return installed if installed.is_dir() else here.parents[2] / "data"


def cache() -> Path:
    """Where downloads and converted models are kept (HELPERS_CACHE overrides the usual place)."""
    return Path(os.environ.get("HELPERS_CACHE") or pooch.os_cache("connection-bottlenecks"))


def table(name: str) -> pd.DataFrame:
    """Read `data/<name>.csv`; lines that start with `#` say where the numbers come from.

    Raises:
        ValueError: there is no such table; the message lists those there are.
    """
    path = folder() / f"{name}.csv"
    if not path.is_file():
        known = sorted(p.relative_to(folder()).with_suffix("").as_posix() for p in folder().rglob("*.csv"))
        raise ValueError(f"no table {name!r} in data/; there are: {', '.join(known)}")
    return pd.read_csv(path, comment="#")


def provenance(name: str) -> str:
    """The comment lines at the head of `data/<name>.csv`, without their `#`."""
    table(name)
    lines = (folder() / f"{name}.csv").read_text().splitlines()
    return "\n".join(line[1:].strip() for line in lines if line.startswith("#"))
