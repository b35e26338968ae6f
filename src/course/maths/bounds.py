"""Count paths and bound influence, to say how much information the layers can transmit."""

import math
from collections.abc import Hashable, Sequence

import networkx as nx
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import attention, graphs, require


def receptive_field(graph: nx.Graph, node: Hashable, layers: int) -> list[int]:
    """Count how many nodes are within 0, 1, ..., `layers` hops of a node.

    Through this number of layers, only the inputs of these nodes can influence the node.

    >>> receptive_field(nx.balanced_tree(2, 3), 0, 3)
    [1, 3, 7, 15]
    """
    graphs.check(graph, node=node)
    require.integer("layers", layers, 0)
    lengths = nx.single_source_shortest_path_length(graph, node, cutoff=layers).values()
    return [sum(length <= hops for length in lengths) for hops in range(layers + 1)]


def computation_tree(
    graph: nx.Graph, node: Hashable, layers: int, loops: bool = False
) -> list[int]:
    """Count the walks of 0, 1, ..., `layers` steps that start at a node.

    These counts are the sizes of the levels of the node's computation tree. The counts say how many
    messages one vector must store.

    Args:
        loops: let a node receive its own message too, as with self-loops or a self-weight.

    >>> computation_tree(nx.cycle_graph(5), 0, 4)
    [1, 2, 4, 8, 16]
    """
    graphs.check(graph, node=node)
    require.integer("layers", layers, 0)
    require.flag("loops", loops)
    walks, sizes = {node: 1}, [1]
    for _ in range(layers):
        step: dict[Hashable, int] = {}
        for here, count in walks.items():
            for there in [*graph[here], *([here] if loops else [])]:
                step[there] = step.get(there, 0) + count
        walks = step
        sizes.append(sum(walks.values()))
    return sizes


def path_count(n: int, layers: int) -> list[int]:
    """Count the paths of `layers` steps that lead from each token to the last one.

    In causal attention a step goes to the same or a later token, so there are C(n - 1 - i + layers
    - 1, layers - 1) paths from token i. Early tokens have more paths than late ones.

    >>> path_count(5, 3)
    [15, 10, 6, 3, 1]
    """
    require.integer("n", n, 1)
    require.integer("layers", layers, 1)
    return [math.comb(n - 1 - j + layers - 1, layers - 1) for j in range(n)]


def influence_bound(
    attentions: Sequence[Float[Tensor, "n n"]] | Float[Tensor, "layers n n"],
    norm1: float | Sequence[float] = 1.0,
    norm2: float | Sequence[float] = 1.0,
    norm3: float = 1.0,
    slope: float | Sequence[float] = 1.0,
) -> Float[Tensor, "n n"]:
    """Bound the Jacobian of each token's output with respect to each token's input.

    The attention is held fixed. Entry (j, i) is the bound of Theorem B.5 of Barbero et al. (2024)
    on the Jacobian of output j with respect to input i, in the form that the theorem's proof
    supports. The bound is C times the product over the layers of A / norm1 + I, with C = prod(slope
    / norm2 + 1) / norm3. It holds for z = sum_i A_ji v_i / norm1 + v_j, v' = psi(z / norm2) + z and
    y = v / norm3. The derivative of the softmax is not included, so the true Jacobian may be
    larger.

    Args:
        attentions: one causal, row-stochastic matrix per layer.
        norm1, norm2: beta_1 and beta_2, the divisors of the two norms of a layer, one for all
            layers or one per layer.
        norm3: beta_3, the divisor of the final norm.
        slope: sigma_psi, the Lipschitz constant of the MLP, one for all layers or one per layer.

    Raises:
        ValueError: if there are no layers, a matrix is not row-stochastic or not causal, a norm is
            not above 0, a slope is negative, or the number of norms or slopes differs from the
            number of layers.

    >>> influence_bound([attention.uniform(attention.causal_mask(2))], slope=0.0).tolist()
    [[2.0, 0.0], [0.5, 1.5]]
    """
    # this call raises an error for matrices that are not attention weights
    attention.influence(attentions)
    matrices = torch.stack(list(attentions)).double()
    if (matrices.triu(1) != 0).any():
        raise ValueError("attentions must be causal, so no token may attend to a later token")
    depth, own = (
        len(matrices),
        torch.eye(matrices.shape[-1], dtype=torch.float64, device=matrices.device),
    )
    first, second = _each("norm1", norm1, depth), _each("norm2", norm2, depth)
    steep = _each("slope", slope, depth, positive=False)
    product = own
    for matrix, beta in zip(matrices, first, strict=True):
        product = (matrix / beta + own) @ product
    constant = (
        math.prod(s / beta + 1 for s, beta in zip(steep, second, strict=True))
        / _each("norm3", norm3, 1)[0]
    )
    return require.finite("slope, norm1, norm2 or norm3", constant * product)


def _each(
    name: str, value: float | Sequence[float], count: int, positive: bool = True
) -> list[float]:
    """Return one value for each layer, and repeat a single number for all layers."""
    many = isinstance(value, Sequence) or (isinstance(value, Tensor) and value.ndim == 1)
    values = list(value) if many else [value] * count
    if len(values) != count:
        raise ValueError(
            f"{name} must be one number, or {count} numbers (one per layer), not "
            f"{len(values)} numbers"
        )
    return [require.number(name, v, **({"above": 0} if positive else {"least": 0})) for v in values]
