import pandas as pd

from course.claims import CORRECTED, FAILS, HOLDS, UNFIT


def _ranks(ahead: float, inside: float, late: float = 0):
    """`ranks_by_depth` with the same numbers on every graph; `late` is added on the grid at eight diameters."""
    names = ["path", "tree", "cycle", "barbell", "grid", "expander", "karate"]
    index = pd.MultiIndex.from_product([names, (1, 8)], names=["graph", "times"])
    late = pd.Series([late * (place == ("grid", 8)) for place in index], index)
    columns = {"R - hops": ahead + late, "within hops": inside + late, "resistance": 0.9}
    return lambda skip=False: pd.DataFrame(columns | {"s.e. of R - hops": 0.01, "s.e. of within hops": 0.01}, index)


def _gains(ahead: float, other: dict[tuple[str, int], float] | None = None):
    """`gains_by_depth` with the same lead of every method on two graphs; `other` is added on a graph at a depth."""
    index = pd.MultiIndex.from_product([["path", "grid"], (1, 4), ["SDRF", "FoSR", "GTR"]])
    index.names = ["graph", "times", "method"]
    lead = ahead + pd.Series([(other or {}).get((graph, times), 0) for graph, times, _ in index], index)
    return lambda: pd.DataFrame(
        {"gain": 1 + lead, "ahead": lead, "s.e.": 0.1, "random": 1.0, "beats random": lead > 0.2}, index
    )


def _beats():
    return {
        HOLDS: {"measures.gains_by_depth": _gains(1)},
        CORRECTED: {"measures.gains_by_depth": _gains(1, {("grid", 4): -0.9})},
        FAILS: {"measures.gains_by_depth": _gains(-1)},
    }


def _few(tree: int, star: int, all_questions: int | None = None, drawn: float = 3):
    """Steps of trees and stars (with all questions about few orders: so many), where the chain takes 300.

    Labels at random take `drawn` times as many.
    """
    rows = [("chain", 2, r, 300) for r in (3, 4, 5)]
    for kind, hub in (("", star), (", all questions", all_questions or star)):
        rows += [(f"tree{kind}", r, r, tree * (r - 2)) for r in (3, 4, 5)]
        rows += [(f"star{kind}", r, 2, hub * (r - 2)) for r in (3, 4, 5)]
    own = pd.DataFrame(rows, columns=["control", "depth", "distance", "steps"]).assign(examples=76, permuted=False)
    table = pd.concat([own, own.assign(permuted=True, steps=own["steps"] * drawn)], ignore_index=True)
    return lambda: table


def _stars(star: list[int], tree: list[int], test: float = 0.99):
    rows = [("star", n) for n in star] + [("gcn", n) for n in tree]
    table = pd.DataFrame(rows, columns=["kind", "epochs"]).assign(end_test_accuracy=test)
    return {"measures.stars": lambda: table}


EVIDENCE = {
    "resistance_beats_hops": {
        HOLDS: {"measures.ranks_by_depth": _ranks(0.1, 0.1)},
        CORRECTED: {"measures.ranks_by_depth": _ranks(0.1, 0.1, -0.1)},
        FAILS: {"measures.ranks_by_depth": _ranks(-0.1, 0.1)},
    },
    "squashed_at_high_commute_time": {
        HOLDS: {"measures.ranks_by_depth": _ranks(0.1, 0.1)},
        CORRECTED: {"measures.ranks_by_depth": _ranks(0.1, 0.1, -0.1)},
        FAILS: {"measures.ranks_by_depth": _ranks(0.1, -0.1)},
    },
    "fosr_beats_random": _beats(),
    "gtr_beats_random": _beats(),
    "sdrf_beats_random": _beats(),
    "few_examples_are_fitted": {
        HOLDS: {"measures.few_examples": _few(100, 100)},
        FAILS: {"measures.few_examples": _few(400, 100)},
        UNFIT: {"measures.few_examples": _few(100, 100, drawn=1)},
    },
    "two_hops_are_no_easier": {
        HOLDS: {"measures.few_examples": _few(100, 100)},
        FAILS: {"measures.few_examples": _few(100, 50)},
        UNFIT: {"measures.few_examples": _few(100, 100, drawn=1)},
    },
    "two_hops_are_faster_where_leaves_are_read": {
        HOLDS: _stars([100, 120], [300, 400]),
        CORRECTED: _stars([100, 350], [300, 400]),
        FAILS: _stars([500], [300]),
        UNFIT: _stars([100], [300], test=0.2),
    },
}
