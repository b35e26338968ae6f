"""Calls of chapter 1's figures and tables, each with its cheapest arguments."""

import networkx as nx
import pandas as pd

from course.chapter1 import figures, measures
from helpers import gnn, graphs

TREE = nx.balanced_tree(2, 3)
LOG = pd.DataFrame(
    {"epoch": [1, 2, 3], "seconds": [0.1, 0.2, 0.3], "train_accuracy": [0.2, 0.7, 0.6], "test_accuracy": 0.5}
)
SOLVED = LOG.assign(train_accuracy=[0.5, 0.9, 1.0])
FADED = LOG.assign(train_accuracy=[0.3, 0.25, 0.2])
SPEED = {"r": 3, "here": 1e-3, "all nodes": 4e-3, "ratio": 4.0, "largest difference": 1e-7}
BARBELL = measures.examples()["barbell"]
CURVED = {"K4": (nx.complete_graph(4), (0, 1), "4/3"), "bridge": (nx.barbell_graph(5, 0), (4, 5), "-6/5")}

CALLS = {
    "figures.table": lambda: figures.table([measures.message(r) for r in (2, 5)]),
    "figures.table by name": lambda: figures.table({"path": measures.longer_commutes(nx.path_graph(9))}),
    "measures.names": lambda: [measures.names(words) for words in ([], ["a"], ["a", "b", "c"])],
    "figures.places": lambda: list(figures.places("grid", nx.path_graph(6)).values()),
    "figures.wired": lambda: figures.wired(TREE, nx.compose(TREE, nx.Graph([(7, 14)])), (7, 14)),
    "figures.field": lambda: figures.field("tree", 3),
    "figures.widths": lambda: figures.widths(gnn.minimum_width),
    "figures.curvature": lambda: figures.curvature("barbell", graphs.balanced_forman),
    "figures.curvature, as copied": lambda: figures.curvature("grid", graphs.balanced_forman_as_copied),
    "figures.same_word": figures.same_word,
    "figures.example": lambda: figures.example(gnn.TreeNeighborsMatch(2)),
    "figures.sizes": figures.sizes,
    "figures.end_of_run": lambda: figures.end_of_run(LOG),
    "figures.fits": lambda: figures.fits({"gcn": LOG, "gin": SOLVED}, first="network"),
    "figures.fits, control": lambda: figures.fits({3: SOLVED, 4: LOG}, first="r", control={3: FADED}),
    "figures.stars": figures.stars,
    "figures.by_heart": figures.by_heart,
    "measures.read_linearly": lambda: measures.read_linearly(nx.path_graph(4), 1, 300),
    "figures.attention_by_epoch": lambda: figures.attention_by_epoch({3: SOLVED, 4: LOG}, {3: FADED}),
    "figures.whole_grid": figures.whole_grid,
    "figures.grid_numbers": figures.grid_numbers,
    "figures.at_equal_epochs": lambda: figures.at_equal_epochs("the key everywhere", key="everywhere"),
    "figures.at_equal_epochs, layer": lambda: figures.at_equal_epochs("the layer", fully_adjacent=True),
    "measures.better": lambda: [str(measures.better(row)) for row in measures.compare(key="everywhere").itertuples()],
    "measures.sentence": lambda: measures.sentence(measures.compare(fully_adjacent=True), "the layer"),
    "figures.speed_table": lambda: figures.speed_table([SPEED]),
    "figures.freed": figures.freed,
    "figures.one_leaf": figures.one_leaf,
    "measures.everywhere_seeds": measures.everywhere_seeds,
    "figures.attention_seeds": figures.attention_seeds,
    "figures.few_table": figures.few_table,
    "figures.excluded": figures.excluded,
    "figures.lab_answer": figures.lab_answer,
    "measures.far_numbers": lambda: measures.far_numbers(nx.path_graph(6), (0, 5), 5),
    "measures.bits_a_number": measures.bits_a_number,
}
# takes an axes and draws on it: every graph above is drawn by it
WITHOUT = {"draw"}
