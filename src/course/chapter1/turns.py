"""What might have turned the claims of chapter 1, run: other seeds of the networks that were trained."""

import pandas as pd

from course.chapter1 import measures
from course.evidence.rules import Numbers
from course.evidence.turns import turn
from helpers import data

DEPTH = 3  # at which three seeds were trained
KINDS = ("gcn", "ggnn")


@turn(
    "question_everywhere_helps",
    asked="three seeds of two networks at r = 3 with the question everywhere, against the shortest run with the question at the root, which may have ended without a fit",
    survives=(
        "each seed takes fewer epochs than the shortest run without it",
        lambda everywhere, root: all(max(everywhere[kind]) < root[kind] for kind in root),
    ),
    turned=(
        "in one network most seeds need as many epochs",
        lambda everywhere, root: any(
            sum(epochs >= root[kind] for epochs in everywhere[kind]) > len(everywhere[kind]) / 2
            for kind in root
        ),
    ),
    measured="epochs at r = 3: {'; '.join(f'{kind.upper()} {root[kind]:.0f} with the question at the root, everywhere ' + ', '.join(f'{n:.0f}' for n in everywhere[kind]) for kind in root)}",
)
def other_seeds() -> Numbers:
    """By network, the epochs that each seed needs with the question everywhere, and the fewest that any run took without it."""
    table = pd.concat([measures.runs().query("ended != 'a minute'"), data.table("stars")])
    table = table.query("depth == @DEPTH and not fully_adjacent")
    everywhere, root = {}, {}
    for kind in KINDS:
        each = table[table["kind"] == kind]
        everywhere[kind] = each[each["key"] == "everywhere"]["epochs"].tolist()
        root[kind] = float(each[each["key"] == "root"]["epochs"].min())
    return {"everywhere": everywhere, "root": root}
