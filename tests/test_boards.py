"""What derivations for the board and morals of exercises claim, computed."""

import json
import math

import networkx as nx
import numpy as np


def test_first_token_has_half_before_the_line_of_board_one_is_good(root):
    """Chapter 2: what the first of ten thousand tokens does not have yet, and the line (j − 1) 2^−L."""
    n, missing = 10_000, {}
    state = np.ones(n)
    state[0] = 0
    for layers in range(1, 25):
        state = np.cumsum(state) / np.arange(1, n + 1)
        missing[layers] = state[-1], (n - 1) * 2.0**-layers
    assert min(layers for layers, (real, _) in missing.items() if real < 0.5) == 11
    assert min(layers for layers, (_, line) in missing.items() if line < 1) == 14
    assert all(real <= line for real, line in missing.values())
    text = (root / "chapters/teaching-chapters.md").read_text()
    assert "is below 1 from 14 layers on" in text
    assert "the first token already has half of the weight after 11 layers" in text


def test_weight_of_the_token_itself_is_above_the_bound_of_board_two(root):
    """Chapter 5: logits −c/i and c = 3 n²; the bound 1 − e^−3 holds at every length, and the old one does not say so."""
    for n in (10, 100, 1000):
        c = 3 * n * n
        weights = np.exp(c / n - c / np.arange(1, n + 1))
        own = weights[-1] / weights.sum()
        assert own >= 1 - math.exp(-c / n**2) > 0.95
        assert 1 / (1 + (n - 1) * math.exp(-c / (n * (n - 1)))) < own
    assert (
        "$1 - \\mathrm e^{-3} \\approx 0.95$"
        in (root / "chapters/teaching-chapters.md").read_text()
    )


def entry(matrix: np.ndarray, degrees: np.ndarray, k: int, symmetric: bool) -> float:
    """From the root of a binary tree k steps down its first children."""
    scale = degrees[:, None] ** -0.5 * degrees**-0.5 if symmetric else 1 / degrees[:, None]
    power = np.linalg.matrix_power(matrix * scale, k)
    return float(power[0, 2**k - 1])


def test_normalisations_of_a_tree_differ_by_a_constant_and_loops_by_more(root):
    """Exercise 1.4: the ratio of the two normalisations is √1.5 at each depth; that to the entry with self-loops grows."""
    A = nx.to_numpy_array(nx.balanced_tree(2, 7))
    depths = range(1, 6)
    plain, row = ([entry(A, A.sum(1), k, symmetric) for k in depths] for symmetric in (True, False))
    loops = A + np.eye(len(A))
    looped = [entry(loops, loops.sum(1), k, True) for k in depths]
    assert np.allclose(np.divide(row, plain), math.sqrt(1.5))
    assert np.allclose(np.divide(plain[1:], looped[1:]) / np.divide(plain[:-1], looped[:-1]), 4 / 3)
    cells = json.loads((root / "chapters/1-over-squashing/exercises.ipynb").read_text())["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    assert "$\\sqrt{1.5}$, which is the same at every depth" in text
    assert "falls like $4^{-k}$ instead of $3^{-k}$" in text
    assert "off by a factor that grows with depth" not in text
