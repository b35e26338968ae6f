import pandas as pd


def ranks(ahead: float, inside: float, late: float = 0):
    """`ranks_by_depth` with the same numbers on every graph; `late` is added on the grid at eight diameters."""
    names = ["path", "tree", "cycle", "barbell", "grid", "expander", "karate"]
    index = pd.MultiIndex.from_product([names, (1, 8)], names=["graph", "times"])
    late = pd.Series([late * (place == ("grid", 8)) for place in index], index)
    columns = {"R - hops": ahead + late, "within hops": inside + late, "resistance": 0.9}
    return lambda skip=False: pd.DataFrame(columns | {"s.e. of R - hops": 0.01, "s.e. of within hops": 0.01}, index)


def gains(ahead: float, other: dict[tuple[str, int], float] | None = None):
    """`gains_by_depth` with the same lead of every method on two graphs; `other` is added on a graph at a depth."""
    index = pd.MultiIndex.from_product([["path", "grid"], (1, 4), ["SDRF", "FoSR", "GTR"]])
    index.names = ["graph", "times", "method"]
    lead = ahead + pd.Series([(other or {}).get((graph, times), 0) for graph, times, _ in index], index)
    return lambda: pd.DataFrame(
        {"gain": 1 + lead, "ahead": lead, "s.e.": 0.1, "random": 1.0, "beats random": lead > 0.2}, index
    )


def few(tree: int, star: int, all_questions: int | None = None, drawn: float = 3):
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


def stars(star: list[int], tree: list[int], test: float = 0.99):
    rows = [("star", n) for n in star] + [("gcn", n) for n in tree]
    table = pd.DataFrame(rows, columns=["kind", "epochs"]).assign(end_test_accuracy=test)
    return {"measures.stars": lambda: table}
