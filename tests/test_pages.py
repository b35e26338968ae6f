"""What a page defines in the open is what the package computes: its cells are executed and compared on random input."""

import functools
import json
import math

import networkx as nx
import pandas as pd
import pytest
import torch
from conftest import ROOT

from helpers import attention, collapse, graphs

LESSONS = {1: "1-over-squashing", 2: "2-causal-attention", 3: "3-representational-collapse"}


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def defined(chapter: int, *cells: str, page: str = "lesson", **given) -> dict:
    """The names that these cells of a page bind, one after the other, after what is given."""
    notebook = json.loads((ROOT / f"chapters/{LESSONS[chapter]}/{page}.ipynb").read_text())
    sources = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    names = {"functools": functools, "math": math, "nx": nx, "pd": pd, "torch": torch, **given}
    for cell in cells:
        exec(sources[cell], names)
    return names


def test_attention_on_the_page_is_that_of_pytorch():
    page = defined(2, "attend-cell")
    q, k, v = torch.randn(3, 9, 4)
    seen = attention.causal_mask(9)
    out, weights = page["attend"](q, k, v, seen)
    torch.testing.assert_close(
        out, torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    )
    torch.testing.assert_close(page["attend"](0 * q, k, v, seen)[1], attention.uniform(seen))
    assert weights.triu(1).abs().max() == 0


@pytest.mark.parametrize("kept", [0.0, 0.3])
def test_who_is_heard_on_the_page_is_the_influence_of_the_package(kept):
    page = defined(2, "heard-cell")
    A = torch.rand(7, 7, dtype=torch.float64).tril().softmax(-1)
    A = A.tril() / A.tril().sum(1, keepdim=True)
    torch.testing.assert_close(page["heard"](A, 5, kept), attention.influence([A] * 5, kept))
    torch.testing.assert_close(page["flat"](7), attention.uniform(attention.causal_mask(7)))


def test_held_fixed_the_jacobian_is_the_product_of_the_package():
    seen = attention.causal_mask(12)
    page = defined(2, "bound-cell", "bound-frame", seen=seen)
    held, free = (functools.partial(page["jacobian"], held=held) for held in (True, False))
    for sharpness in (0.0, 8.0):
        torch.testing.assert_close(held(sharpness), page["deep"](page["tokens"], sharpness, True)[1])
    torch.testing.assert_close(free(0.0), held(0.0))
    assert (free(8.0) > 2 * held(8.0)).any()


def test_averages_resistance_and_the_message_step_are_those_of_the_package():
    graph = nx.gnm_random_graph(9, 16, seed=3)
    page = defined(1, "step-cell", "resistance-cell")
    torch.testing.assert_close(page["averages"](graph).double(), graphs.adjacency(graph, "row", loops=True))
    torch.testing.assert_close(page["resistance"](graph), graphs.effective_resistance(graph))
    step = defined(1, "fdedd698", averages=page["averages"], tree=nx.balanced_tree(2, 3))["layer"]
    W, x, A = graphs.orthogonal_weights(1, 4), torch.randn(9, 4, dtype=torch.float64), graphs.adjacency(graph, "row")
    torch.testing.assert_close(step(x, A, W[0, 0].T, W[0, 1].T), graphs.propagate(x, A, W))


def test_the_edge_that_the_page_finds_is_that_of_the_package():
    page = defined(1, "step-cell", "resistance-cell", "best-edge")
    graph = graphs.family("grid", 9)
    found = page["with_edges"](graph, [page["best_edge"](graph)])
    assert graphs.total_resistance(found) == pytest.approx(graphs.total_resistance(graphs.rewire(graph, "gtr", 1)))


@pytest.mark.parametrize("name", ["no position", "ALiBi, slope 0.5", "turning by π", "turning by 1"])
def test_what_a_repeated_token_moves_on_the_page_is_that_of_the_package(name):
    page, values = defined(3, "head-cell"), torch.randn(40, dtype=torch.float64)
    change, _ = collapse.repeat_last(page["heads"][name], values)
    assert float(page["moved"](page["heads"][name], values)) == pytest.approx(float(change), rel=1e-5)


def test_the_page_finds_the_collisions_of_the_package():
    page = defined(3, "fd962c7f")
    for kind, dtype in page["types"].items():
        for f in page["functions"].values():
            assert page["first_collision"](f, dtype) == collapse.first_collision(f, kind)


def test_a_window_makes_ones_equal_on_the_page_and_nothing_else():
    page = defined(3, "window-cell", "window-frame")
    assert page["moved"]["ones, window 8"][-1] < 1e-12 < page["moved"]["varied, window 8"][-1]
