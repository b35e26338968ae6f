"""Hold what this book is made of: its chapters, the scorecard that gathers them, the report on any
decoder, the experiments.
"""

from collections.abc import Mapping
from typing import Any


def worded(text: str, names: Mapping[str, Any]) -> str:
    """Return a text of one of the course's tables with what stands in its braces, as in an
    f-string, among these names.

    >>> worded("{share:.0%} of {len(parts)} parts", {"share": 0.25, "parts": [1, 2]})
    '25% of 2 parts'
    """
    return eval(f'f"""{text} """', dict(names))[:-1]
