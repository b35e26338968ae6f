import pandas as pd

from course.claims import CORRECTED, FAILS, HOLDS, LITTLE, OPEN, UNFIT

EXPECTED = {
    "width_bound": ({HOLDS}, "exact integers"),
    "width_explains_failures": ({LITTLE}, "no run changes the width"),
    "accuracy_falls_with_depth": ({OPEN}, "the committed table"),
    "figure_3_gcn": ({OPEN}, "the committed table"),
    "figure_3_gin": ({OPEN}, "the committed table"),
    "figure_3_gat": ({OPEN}, "the committed table"),
    "figure_3_ggnn": ({OPEN}, "the committed table"),
    "chains_are_fitted": (
        {UNFIT},
        "the committed tables: labels at random are fitted as fast, so nothing need be passed on",
    ),
    "few_examples_are_fitted": ({UNFIT}, "the committed table: labels at random are fitted as fast"),
    "two_hops_are_faster_where_leaves_are_read": ({HOLDS}, "the committed tables"),
    "two_hops_are_no_easier": ({UNFIT}, "the committed table: labels at random are fitted as fast"),
    "one_bit_a_number": ({CORRECTED}, "the widths of the paper and exact integers; Eq. 5 itself spreads by 2.9"),
    "fully_adjacent_layer_helps": ({LITTLE}, "the committed table ends at r = 4"),
    "attention_picks_the_leaf": ({CORRECTED}, "the committed table has runs that were not fitted"),
    "question_everywhere_helps": ({HOLDS}, "the committed table"),
    "gat_and_ggnn_alleviate": ({OPEN}, "the committed table: budgets of a few hundred epochs"),
    "walks_bound_the_jacobian": ({HOLDS}, "a theorem"),
    "tree_closed_form": ({CORRECTED}, "closed form"),
    "resistance_bounds_the_jacobian": ({HOLDS}, "an inequality"),
    "squashed_at_high_commute_time": (
        {CORRECTED},
        "the committed table: at equal hops not everywhere, little on deep paths",
    ),
    "resistance_beats_hops": ({FAILS}, "the committed table: behind on two graphs in shallow networks"),
    "width_helps": ({UNFIT}, "orthogonal weights take the width out of the bound"),
    "depth_does_not_help": (
        {FAILS},
        "fixed graphs and seeds; the far Jacobian rises, and with a skip connection the own one too",
    ),
    "topology_decides": ({UNFIT}, "orthogonal weights take the width out of the bound"),
    "field_grows_exponentially": ({CORRECTED}, "exact integers"),
    "two_meanings_of_squashing": ({HOLDS}, "powers of two fixed matrices"),
    "copied_code_computes_curvature": ({FAILS}, "exact fractions"),
    "gap_brackets_the_cut": ({HOLDS}, "Cheeger's inequality, a theorem"),
    "sdrf_opens": (
        {FAILS},
        "the committed table: below 1 on tree and cycle at four diameters, on the cycle by two errors",
    ),
    "fosr_opens": ({CORRECTED}, "the committed table: just below 1 on the grid at four diameters"),
    "gtr_opens": ({HOLDS}, "the committed table"),
    "sdrf_beats_random": ({FAILS}, "the committed table: ahead on the grid alone, behind in 11 of 15"),
    "fosr_beats_random": ({CORRECTED}, "the committed table: on all five graphs at one diameter, on none at four"),
    "gtr_beats_random": ({CORRECTED}, "the committed table: on all five graphs up to two diameters, on three at four"),
    "rewiring_lowers_commute_time": ({FAILS}, "closed form: on some graphs most pairs rise"),
}


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
        HOLDS: {"measures.few": _few(100, 100)},
        FAILS: {"measures.few": _few(400, 100)},
        UNFIT: {"measures.few": _few(100, 100, drawn=1)},
    },
    "two_hops_are_no_easier": {
        HOLDS: {"measures.few": _few(100, 100)},
        FAILS: {"measures.few": _few(100, 50)},
        UNFIT: {"measures.few": _few(100, 100, drawn=1)},
    },
    "two_hops_are_faster_where_leaves_are_read": {
        HOLDS: _stars([100, 120], [300, 400]),
        CORRECTED: _stars([100, 350], [300, 400]),
        FAILS: _stars([500], [300]),
        UNFIT: _stars([100], [300], test=0.2),
    },
}
