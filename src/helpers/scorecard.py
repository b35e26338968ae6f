"""The scorecard gathers the claims of all chapters and measures them."""

import pandas as pd

from helpers import compute
from helpers.chapter1 import claims as chapter1
from helpers.chapter3 import claims as chapter3
from helpers.claims import CLAIMS, Claim, Found

CHAPTERS = (chapter1, chapter3)


def claims(chapter: int | None = None) -> list[Claim]:
    """The claims of a chapter, or all.

    Raises:
        ValueError: no claim belongs to the chapter.
    """
    gathered = {module.__name__ for module in CHAPTERS}
    known = [each for each in CLAIMS.values() if each.measure.__module__ in gathered]
    chosen = [each for each in known if chapter in (None, each.chapter)]
    if not chosen:
        raise ValueError(f"chapter must be one of {sorted({each.chapter for each in known})}, not {chapter!r}")
    return chosen


def measure(chapter: int | None = None) -> dict[str, Found]:
    """What each claim of a chapter (or of all) gives, by name."""
    return {each.name: each.measure() for each in compute.progress(claims(chapter), "claims")}


def table(chapter: int | None = None) -> pd.DataFrame:
    """One row a claim, as text: verdict, statement, source, page, reported, measured."""
    found = measure(chapter)
    return pd.DataFrame(
        {
            "chapter": each.chapter,
            "verdict": found[each.name].verdict,
            "claim": each.statement,
            "source": ", ".join(filter(None, (each.source.name, each.where))),
            "reported": each.reported,
            "measured": found[each.name].measured,
        }
        for each in claims(chapter)
    )
