"""Calls of chapter 1's figures and tables, each with its cheapest arguments."""

import networkx as nx

from course.chapter1 import figures, measures
from course.maths import rewiring
from course.training import gnn

TREE = nx.balanced_tree(2, 3)
CALLS = {
    "measures.listed": lambda: [measures.listed(words) for words in ([], ["a"], ["a", "b", "c"])],
    "figures.wired": lambda: figures.wired(TREE, nx.compose(TREE, nx.Graph([(7, 14)])), (7, 14)),
    "figures.field": lambda: figures.field("tree", 3),
    "figures.widths": lambda: figures.widths(gnn.minimum_width),
    "figures.curvature": lambda: figures.curvature("barbell", rewiring.balanced_forman),
    "figures.curvature, as copied": lambda: figures.curvature(
        "barbell", rewiring.balanced_forman_as_copied
    ),
    "figures.same_word": figures.same_word,
    "figures.stars": figures.stars,
    "measures.sentence": lambda: measures.sentence(
        measures.compare(fully_adjacent=True), "the layer"
    ),
    "measures.everywhere_seeds": measures.everywhere_seeds,
    "measures.bits_a_number": measures.bits_a_number,
}
# every graph above is drawn by them
WITHOUT = {"draw", "layout"}
