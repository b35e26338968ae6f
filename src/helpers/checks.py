"""The checks behind the exercises: they run the learner's function beside ours and say what is wrong.

A check prints one sentence when all is right, and raises `Wrong` with one that says what is not.
"""

import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

import networkx as nx
import torch

from helpers import collapse, gnn, graphs


class Wrong(AssertionError):
    """What the learner's function does not do yet; displayed without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


def same(name: str, answer: Callable, solution: Callable, cases: list[tuple], tolerance: float = 1e-6) -> None:
    """Compare the learner's function with the solution on each case.

    Raises:
        Wrong: the first case that differs, with its arguments, both results, and what kind of difference it is.
    """
    if not callable(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")
    for case in cases:
        shown = ", ".join(_shown(value) for value in case)
        try:
            got = answer(*(_copy(value) for value in case))
        except NotImplementedError:
            raise Wrong(f"{name} is still empty: write it, then run the check again.") from None
        except Exception as error:
            raise Wrong(f"{name}({shown}) raised {type(error).__name__}: {error}") from None
        _compare(f"{name}({shown})", got, solution(*case), tolerance)
    print(f"Right: {name} agrees with the solution on {len(cases)} cases.")


def _compare(call: str, got: Any, wanted: Any, tolerance: float) -> None:
    if got is None:
        raise Wrong(f"{call} returned nothing. Is there a return statement?")
    try:
        got, wanted = (float(x) if isinstance(x, numbers.Real) else x for x in (got, wanted))
        value, target = (torch.as_tensor(x).detach().double() for x in (got, wanted))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Wrong(f"{call} must return a number or a tensor, not {type(got).__name__}.") from None
    if value.shape != target.shape:
        raise Wrong(f"{call} has shape {tuple(value.shape)}; expected {tuple(target.shape)}.")
    if torch.isnan(value).any():
        raise Wrong(f"{call} contains NaN.")
    gap = float((value - target).abs().max()) if value.numel() else 0.0
    if gap <= tolerance * max(1.0, float(target.abs().max())):
        return
    for factor, reason in ((2.0, "twice"), (0.5, "half")):
        if torch.allclose(value, factor * target, rtol=1e-6):
            raise Wrong(f"{call} is {reason} what is expected: {_shown(value)} instead of {_shown(target)}.")
    if torch.allclose(value, -target, rtol=1e-6):
        raise Wrong(f"{call} has the wrong sign: {_shown(value)} instead of {_shown(target)}.")
    raise Wrong(f"{call} is {_shown(value)}; expected {_shown(target)} (largest difference {gap:.2g}).")


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, nx.Graph) else value


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return (
            f"{float(value):.6g}"
            if value.ndim == 0
            else f"tensor of shape {tuple(value.shape)}"
            if value.numel() > 6
            else str([round(x, 6) for x in value.flatten().tolist()])
        )
    if isinstance(value, nx.Graph):
        return f"graph of {len(value)} nodes, {value.number_of_edges()} edges"
    if callable(value):
        return getattr(value, "__name__", "function")
    return repr(value)


def _number(name: str, answer: Any, accept: Callable[[float], bool], otherwise: str) -> None:
    if isinstance(answer, type(...)):
        raise Wrong(f"{name} is still empty: fill it in, then run the check again.")
    try:
        value = float(answer)
    except (TypeError, ValueError):
        raise Wrong(f"{name} must be a number, not {answer!r}.") from None
    if not accept(value):
        raise Wrong(f"{name} = {value:g} is not right. {otherwise}")
    print(f"Right: {name} = {value:g}.")


def _rows(count: int, n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


# Chapter 1 -----------------------------------------------------------------------------------------------


def walks(answer: Callable) -> None:
    """Exercise 1.1: how many walks of this many steps lead from u to v."""

    def solution(graph, u, v, steps):
        place = list(graph).index
        return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[place(u), place(v)]

    karate = graphs.family("karate")
    cases = [(nx.path_graph(4), 0, 2, 2), (nx.cycle_graph(5), 0, 1, 5), (nx.complete_graph(4), 1, 1, 3)]
    same("walks", answer, solution, [*cases, (nx.path_graph(4), 3, 0, 2), (karate, 0, 33, 4), (karate, 5, 5, 0)])


def heard(answer: Callable) -> None:
    """Exercise 1.2: how many nodes a node has heard from, itself included."""
    tree, grid = graphs.family("tree", 15), graphs.family("grid", 25)
    cases = [(tree, 0, 2), (tree, 7, 3), (grid, 12, 1), (grid, 0, 4), (graphs.family("karate"), 16, 2), (grid, 3, 0)]
    same("heard", answer, lambda *case: graphs.receptive_field(*case)[-1], cases)


def least_width(answer: Callable) -> None:
    """Exercise 1.3: Eq. 5 of Alon & Yahav (2021)."""
    cases = [(depth, bits) for depth in (1, 2, 5, 7, 8, 11) for bits in (32, 16)]
    same("least_width", answer, gnn.minimum_width, cases)


def tree_entry(answer: Callable) -> None:
    """Exercise 1.4: from the root of a binary tree to an inner node at this depth, in (D^-1 A)^depth."""

    def solution(depth):
        return graphs.walk_bound(nx.balanced_tree(2, depth + 1), 0, depth, "row", 0.0)[2**depth - 1]

    same("tree_entry", answer, solution, [(depth,) for depth in (1, 2, 3, 5, 7)], 1e-7)


def resistance(answer: Callable) -> None:
    """Exercise 1.5: effective resistance between two nodes."""
    cases = [(nx.path_graph(5), 0, 4), (nx.cycle_graph(6), 0, 3), (nx.complete_graph(7), 1, 4)]
    cases += [(graphs.family("karate"), 0, 33), (graphs.family("barbell", 10), 0, 9)]
    same("resistance", answer, lambda graph, u, v: graphs.effective_resistance(graph)[u, v], cases)


def sensitivity(answer: Callable) -> None:
    """Exercise 1.6: the spectral norm of the derivative of one node's state by another node's input."""

    def solution(network, features, target, source):
        jacobian = torch.autograd.functional.jacobian(lambda x: network(x)[target], features)
        return torch.linalg.matrix_norm(jacobian[:, source], ord=2)

    def network_on(name, layers):
        matrix, weights = graphs.adjacency(graphs.family(name, 9), "symmetric"), graphs.orthogonal_weights(layers, 4)

        def network(x):
            return graphs.propagate(x, matrix, weights, activation=torch.tanh)

        return network

    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cases = [(network_on("path", 3), x, 0, 2), (network_on("path", 3), x, 0, 5), (network_on("grid", 4), x, 4, 8)]
    same("sensitivity", answer, solution, [*cases, (lambda x: x**2, x, 3, 3)])


def forman(answer: Callable) -> None:
    """Exercise 1.7: balanced Forman curvature of one edge, by the definition."""
    cases = [
        (nx.cycle_graph(3), 0, 1), (nx.cycle_graph(4), 0, 1), (nx.cycle_graph(5), 0, 1), (nx.path_graph(3), 0, 1),
        (nx.complete_graph(4), 0, 1), (nx.complete_bipartite_graph(2, 3), 0, 2), (nx.barbell_graph(5, 0), 4, 5),
        (nx.petersen_graph(), 0, 1), *((nx.karate_club_graph(), *edge) for edge in ((0, 1), (0, 31), (4, 10), (2, 32))),
    ]  # fmt: skip
    _callable("forman", answer)
    copies = 0
    for graph, i, j in cases:
        copied, right = graphs.balanced_forman_as_copied(graph)[i, j], graphs.balanced_forman(graph)[i, j]
        try:
            got = float(_run("forman", answer, graph, i, j))
        except (TypeError, ValueError, RuntimeError):
            break  # `same` says what is wrong with it
        copies += abs(got - copied) < 1e-6 < abs(right - copied)
        if copies == 3:
            raise Wrong(
                f"forman({_shown(graph)}, {i}, {j}) = {got:g} is what the most copied public code gives; the definition "
                f"gives {right:g}. A 4-cycle must have no diagonal, and its nodes are neither i nor j."
            )
    same("forman", answer, lambda graph, i, j: graphs.balanced_forman(graph)[i, j], cases)


def best_edge(answer: Callable) -> None:
    """Exercise 1.8: the new edge that lowers total resistance most; of equally good ones any will do."""
    _callable("best_edge", answer)
    for name in ("path", "tree", "barbell", "grid"):
        graph = graphs.family(name, 12)
        edge = _run("best_edge", answer, graph.copy())
        total = graphs.total_resistance(_with_edges("best_edge", graph, [edge]))
        best = graphs.total_resistance(graphs.rewire(graph, "gtr", 1))
        if total > best * (1 + 1e-9):
            raise Wrong(f"on the {name}, edge {edge} gives a total resistance of {total:.3f}; {best:.3f} is possible.")
    print("Right: on path, tree, barbell and grid no other edge lowers total resistance more.")


def slower(answer: Callable) -> None:
    """Exercise 1.9: a graph and a new edge that raises its largest commute time."""
    _callable("slower", answer)
    result = _run("slower", answer)
    if not (isinstance(result, tuple | list) and len(result) == 2 and isinstance(result[0], nx.Graph)):
        raise Wrong("slower must return a pair: a networkx graph, and an edge (u, v) that it does not have yet.")
    graph, edge = result
    if not 2 <= len(graph) <= 12:
        raise Wrong(f"the graph must be connected and have 2 to 12 nodes; it has {len(graph)}.")
    try:
        before, after = (graphs.commute_time(g).max().item() for g in (graph, _with_edges("slower", graph, [edge])))
    except (ValueError, nx.NetworkXException) as error:
        raise Wrong(f"the graph must be connected, simple and undirected: {error}.") from None
    if after <= before + 1e-9:
        raise Wrong(f"with the edge the largest commute time is {after:.3f}, and it was {before:.3f}: it must go up.")
    print(f"Right: one more edge, and the largest commute time rises from {before:.2f} to {after:.2f}.")


def rewiring(answer: Any) -> None:
    """Exercise 1.10: three edges for the tree of 15 nodes: much less total resistance, and a worse far Jacobian."""
    if isinstance(answer, type(...)):
        raise Wrong("edges is still empty: fill it in, then run the check again.")
    tree = graphs.family("tree", 15)
    if not isinstance(answer, list | tuple | set) or len(answer) != 3:
        raise Wrong("edges must be a list of three pairs of nodes.")
    wired = _with_edges("edges", tree, list(answer))
    resistance = graphs.total_resistance(wired) / graphs.total_resistance(tree)
    before, after = (
        sum(graphs.jacobian_norms(graph, 11, 6, seed=seed)[7].item() for seed in range(5)) for graph in (tree, wired)
    )
    found = (
        f"total resistance is {resistance:.0%} and the Jacobian between 7 and 11 {after / before:.0%} of what it was"
    )
    if resistance > 0.7:
        raise Wrong(f"{found}: the resistance must fall to 70% or less.")
    if after > 0.5 * before:
        raise Wrong(f"{found}: the Jacobian must fall to 50% or less.")
    print(f"Right: {found}.")


def _with_edges(name: str, graph: nx.Graph, edges: list) -> nx.Graph:
    wired = graph.copy()
    for edge in edges:
        if not isinstance(edge, tuple | list) or len(edge) != 2 or edge[0] == edge[1]:
            raise Wrong(f"{name}: an edge is a pair of two different nodes, not {edge!r}.")
        if not set(edge) <= set(graph) or wired.has_edge(*edge):
            raise Wrong(f"{name}: {tuple(edge)} must join two nodes of the graph that have no edge yet.")
        wired.add_edge(*edge)
    return wired


# Chapter 3 -----------------------------------------------------------------------------------------------


def total_variation(answer: Callable) -> None:
    """Exercise 3.1: the paper's total variation, without the factor 1/2."""
    cases = [tuple(_rows(2, n, seed)) for seed, n in enumerate((2, 5, 50))]
    batch = _rows(6, 4, seed=3).view(2, 3, 4)
    same("total_variation", answer, collapse.total_variation, [*cases, (batch[0], batch[1])])


def mean_change(answer: Callable) -> None:
    """Exercise 3.2: how far a mean moves when its last value is repeated."""
    draws = [torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (1, 2, 7, 100)]
    same("mean_change", answer, lambda v: (v.mean() - v[-1]).abs() / (len(v) + 1), [(v,) for v in draws])


def half_length(answer: Callable) -> None:
    """Exercise 3.3: the length from which a lead of `gap` gives less than half of the attention."""
    same("half_length", answer, collapse.length_for_half, [(0.5,), (2.0,), (5.0,), (10.0,)])


def alternating(answer: Any) -> None:
    """Exercise 3.4: the limit of Proposition B.4 with logits 0 and t, at t = 3."""
    target = 2 * math.tanh(1.5)
    _number(
        "limit", answer, lambda x: abs(x - target) < 5e-5,
        "With logits 0 and t each pair of entries contributes |e^t - 1| twice, over a partition function of 1 + e^t a pair.",
    )  # fmt: skip


def collision(answer: Callable) -> None:
    """Exercise 3.5: the first length at which a number type cannot tell f(n) from f(n + 1)."""

    def harmonic(n):
        return 1 / n

    def shifted(n):
        return 2 + 1 / n

    cases = [(f, kind) for f in (harmonic, shifted) for kind in (torch.bfloat16, torch.float16)]
    same("first_collision", answer, collapse.first_collision, cases)


def kernel(answer: Callable) -> None:
    """Exercise 3.6: bounded logits, a function of distance, whose head keeps changing by at least 1."""
    _callable("kernel", answer)
    distance = torch.arange(10_001, dtype=torch.float64)
    logits = _run("kernel", answer, distance)
    if not isinstance(logits, torch.Tensor) or logits.shape != distance.shape:
        raise Wrong("kernel must take a tensor of distances and return logits of the same shape.")
    if not torch.isfinite(logits).all() or logits.abs().max() > 3:
        raise Wrong(f"the logits must stay within [-3, 3]; the largest size is {float(logits.abs().max()):.3g}.")
    if not logits.any():
        raise Wrong("all logits are 0: then the head takes the mean, which collapses.")
    values = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat(2500)
    change = float(collapse.repeat_last(answer, values)[0])
    if change < 1:
        raise Wrong(
            f"with values + + - - ... and 10,000 tokens the output changes by {change:.3g}; it must be at least 1."
        )
    print(f"Right: bounded by {float(logits.abs().max()):.2f}, and one token changes the output by {change:.3f}.")


def window(answer: Callable) -> None:
    """Exercise 3.7: attention of the last token with a sliding window."""

    def solution(logits, width):
        return torch.cat([torch.zeros_like(logits[:-width]), logits[-width:].softmax(0)])

    draws = [torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (5, 9, 4)]
    same("window_attention", answer, solution, [(draws[0], 2), (draws[1], 4), (draws[2], 4), (draws[0], 8)])


def adaptive(answer: Callable) -> None:
    """Exercise 3.8: adaptive temperature."""
    draws = [
        torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0]),
        torch.tensor([9.0, 0, 0]),
        torch.cat([torch.tensor([3.0]), torch.zeros(599)]),
    ]
    batch = torch.randn(3, 12, generator=torch.Generator().manual_seed(0))
    same("adaptive_temperature", answer, collapse.adaptive_temperature, [(x.double(),) for x in (*draws, batch)])


def seq_vcr(answer: Callable) -> None:
    """Exercise 3.9: the Seq-VCR loss."""
    draws = [
        torch.randn(b, n, d, generator=torch.Generator().manual_seed(b), dtype=torch.float64)
        for b, n, d in ((4, 1, 2), (8, 3, 5))
    ]
    same("seq_vcr_loss", answer, collapse.seq_vcr_loss, [(x,) for x in (*draws, 0.1 * draws[1])])


def uniform_bound(answer: Callable) -> None:
    """Exercise 3.10: a length after which Theorem B.3's total variation stays below a bound, from n0, B and delta.

    Any correct bound passes; it is held against heads whose logits agree up to `delta` from distance `n0` on.
    """
    _callable("enough_tokens", answer)
    for n0, bound, epsilon in ((5, 0.5, 0.1), (20, 1.0, 0.05), (1, 6.0, 0.001)):
        call = f"enough_tokens({n0}, {bound}, {epsilon})"
        try:
            n = float(_run("enough_tokens", answer, n0, bound, epsilon))
        except (TypeError, ValueError):
            raise Wrong(f"{call} must return a number.") from None
        if not n0 <= n < math.inf:
            raise Wrong(f"{call} must be a length of at least n0, not {n:g}.")
        near = n0 * math.exp(2 * bound)  # near logits B against -B, all far logits -B
        variation = 2 * (near / (near + n - n0) - n0 / n)
        if n < 2 * n0 or variation > epsilon:
            raise Wrong(
                f"{call} = {n:,.0f} is too few: near logits of +-B can still give a total variation above {epsilon}."
            )
        if n > 100 * near / epsilon:
            raise Wrong(f"{call} = {n:,.0f} is wasteful: stay within 100 n0 e^(2B) / epsilon.")
    print("Right: your length is enough, and not wasteful.")


def _callable(name: str, answer: Any) -> None:
    if not inspect.isfunction(answer):
        raise Wrong(f"{name} must be a function, not {type(answer).__name__}.")


def _run(name: str, answer: Callable, *arguments: Any) -> Any:
    try:
        return answer(*arguments)
    except NotImplementedError:
        raise Wrong(f"{name} is still empty: write it, then run the check again.") from None
    except Exception as error:
        raise Wrong(f"{name} raised {type(error).__name__}: {error}") from None
