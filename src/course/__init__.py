"""Hold everything that the book is built from.

This is the chapters, the scorecard that collects their claims, the report on any decoder, and the
experiments.
"""

from collections.abc import Mapping
from typing import Any


def worded(text: str, names: Mapping[str, Any]) -> str:
    """Fill the braces in a text of one of the course's tables, as in an f-string over these names.

    >>> worded("{share:.0%} of {len(parts)} parts", {"share": 0.25, "parts": [1, 2]})
    '25% of 2 parts'
    """
    return eval(f'f"""{text} """', dict(names))[:-1]
