"""Calls of chapter 6's figures and tables, each with its cheapest arguments."""

from course.chapter6 import figures, measures
from course.runs import ablations

CALLS = {
    "figures.noise_left": figures.noise_left,
    **{
        f"figures.panel, {content}, {kind}": lambda content=content, kind=kind: figures.panel(
            content, 16, kind
        )
        for content in measures.CONTENTS
        for kind in measures.MAPS
    },
    "ablations.judged": ablations.judged,
}
WITHOUT: set[str] = set()
