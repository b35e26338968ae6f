"""Provide the alternatives to softmax that turn logits into attention weights.

Each function names the paper that it comes from.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers import require


def softmax_off_by_one(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return exp(x_i) / (1 + sum_j exp(x_j)), a softmax whose weights may sum to less than 1.

    With these weights a head can attend to nothing. The function is a softmax with one more logit,
    a 0 that takes weight and contributes nothing (Miller, 2023, and SoftMax1 of Xiao et al., 2024).
    A row sums to nearly 0 if all logits are low, and to 0 if all keys are masked.

    >>> softmax_off_by_one(torch.zeros(4)).tolist()
    [0.20000000298023224, 0.20000000298023224, 0.20000000298023224, 0.20000000298023224]
    """
    _check_logits(logits, all_hidden=True)
    return torch.nn.functional.pad(logits, (1, 0)).softmax(-1)[..., 1:]


def softpick(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return max(exp(x_i) - 1, 0) / sum_j |exp(x_j) - 1|, the softpick of Zuhri et al. (2025).

    Logits up to 0 get no weight. If all logits are 0, all weights are 0 too.

    >>> softpick(torch.tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    >>> softpick(torch.tensor([1.0, -9.0])).sum().item() < 1
    True
    """
    _check_logits(logits)
    top = logits.detach().max(-1, keepdim=True).values.clamp(min=0)
    # exp(x) - 1 over exp(top), in the form that is exact for x near 0, and for large x
    near = torch.expm1(logits.clamp(max=1)) * torch.exp(-top)
    excess = torch.where(logits < 1, near, torch.exp(logits - top) - torch.exp(-top))
    total = excess.abs().masked_fill(torch.isneginf(logits), 0).sum(-1, keepdim=True)
    return excess.relu() / total.masked_fill(total == 0, 1)


def sparsemax(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return sparsemax weights, which are the point of the simplex nearest to the logits.

    The weights are max(x_i - tau, 0), with the tau for which they sum to 1 (Martins & Astudillo,
    2016). Low logits get a weight of exactly 0.

    >>> sparsemax(torch.tensor([2.0, 1.5, -1.0])).tolist()
    [0.75, 0.25, 0.0]
    """
    x, inside = _support(logits, lambda mean, spread, count: mean - 1 / count)
    tau = (x.where(inside, 0).sum(-1, keepdim=True) - 1) / inside.sum(-1, keepdim=True)
    return (x - tau).where(inside, 0).relu()


def entmax15(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return the weights of entmax with alpha = 1.5, which are max(x_i / 2 - tau, 0)^2.

    The number tau is such that the weights sum to 1. They are between the weights of softmax and
    those of sparsemax. We use the exact algorithm of Peters et al. (2019), which sorts once and
    takes the largest support that is consistent.

    >>> [round(w, 4) for w in entmax15(torch.tensor([2.0, 1.0, 0.0, -1.0])).tolist()]
    [0.8307, 0.1693, 0.0, 0.0]
    """
    x, inside = _support(
        logits,
        lambda mean, spread, count: mean - (1 / count - spread).clamp(min=0).sqrt(),
        half=True,
    )
    count = inside.sum(-1, keepdim=True).to(x)
    mean = x.where(inside, 0).sum(-1, keepdim=True) / count
    spread = (x - mean).where(inside, 0).square().sum(-1, keepdim=True) / count
    tau = mean - (1 / count - spread).clamp(min=torch.finfo(x.dtype).tiny).sqrt()
    return (x - tau).where(inside, 0).relu().square()


def scalable_softmax(logits: Float[Tensor, "... n"], scale: float = 1.0) -> Float[Tensor, "... n"]:
    """Return softmax(scale ln(n) x), where n is the number of keys that a query sees.

    The function is scalable softmax (Nakanishi, 2025). In the paper each head learns its own
    `scale`. If the scale times the gap between the largest logit and the others is above 1, the
    largest logit keeps its weight at every length of the context.

    >>> [round(w, 4) for w in scalable_softmax(torch.tensor([1.0, 0.0, 0.0, 0.0])).tolist()]
    [0.5714, 0.1429, 0.1429, 0.1429]
    """
    _check_logits(logits)
    require.number("scale", scale)
    hidden = torch.isneginf(logits)
    factor = scale * (~hidden).sum(-1, keepdim=True).to(logits).log()
    scaled = require.finite("scale or logits", logits.masked_fill(hidden, 0) * factor)
    return scaled.masked_fill(hidden, -math.inf).softmax(-1)


def adaptive_entmax(
    logits: Float[Tensor, "... n"],
    beta: float | Tensor = 1.0,
    gamma: float | Tensor = 1.0,
    delta: float = 1.0,
) -> Float[Tensor, "... n"]:
    """Return entmax15((delta + beta ln(n)^gamma) x), where n is the number of keys a query sees.

    This follows Vasylenko et al. (2026). Their method computes beta and gamma from the token in
    each head. Here beta and gamma are numbers, or tensors that broadcast.

    >>> logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    >>> [round(w, 4) for w in adaptive_entmax(logits, beta=0.0).tolist()]
    [0.8307, 0.1693, 0.0, 0.0]
    >>> [round(w, 4) for w in adaptive_entmax(logits).tolist()]
    [1.0, 0.0, 0.0, 0.0]
    """
    _check_logits(logits)
    for name, value in (("beta", beta), ("gamma", gamma), ("delta", delta)):
        if isinstance(value, Tensor):
            require.tensor(name, value.detach(), "...")
        else:
            require.number(name, value)
        try:
            fits = torch.broadcast_shapes(getattr(value, "shape", ()), logits.shape) == logits.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise ValueError(
                f"{name} must broadcast to the shape of the logits, {tuple(logits.shape)}, "
                f"not {require.brief(value)}"
            )
    hidden = torch.isneginf(logits)
    seen = (~hidden).sum(-1, keepdim=True).to(logits).log()
    factor = (
        delta + beta * torch.where(seen > 0, seen, 1) ** gamma
    )  # ln(1) = 0, and a single key gets all the weight with any factor
    scaled = require.finite("beta, gamma, delta or logits", logits.masked_fill(hidden, 0) * factor)
    return entmax15(scaled.masked_fill(hidden, -math.inf))


def top_k(logits: Float[Tensor, "... n"], k: int = 8) -> Float[Tensor, "... n"]:
    """Return the softmax over the k largest logits, with no weight for the other keys.

    Sparse attention selects keys in this way. All keys whose logits equal the k-th largest one are
    kept.

    >>> [round(w, 4) for w in top_k(torch.tensor([2.0, 1.0, 0.0, -1.0]), 2).tolist()]
    [0.7311, 0.2689, 0.0, 0.0]
    """
    _check_logits(logits)
    require.integer("k", k, 1)
    least = logits.detach().topk(min(k, logits.shape[-1]), -1).values[..., -1:]
    return logits.masked_fill(logits < least, -math.inf).softmax(-1)


def stick_breaking(logits: Float[Tensor, "... n n"]) -> Float[Tensor, "... n n"]:
    """Return the weights of stick-breaking attention (Tan et al., 2025).

    The weight of key j for query i is sigmoid(x_ij) times the product of 1 - sigmoid(x_ik) over the
    keys k between j and i. Imagine a stick of length 1 for each token. The nearest earlier key
    takes the fraction sigmoid(x) of the stick, and each key further back takes its fraction of what
    is left. So the nearest matching key gets the most weight, and no position encoding is needed. A
    token does not attend to itself, so the first row is 0. A row may sum to less than 1.

    >>> stick_breaking(torch.zeros(3, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.25, 0.5, 0.0]]
    """
    earlier = _square_logits(logits)
    earlier = earlier.tril(-1) & ~torch.isneginf(logits)
    x = logits.where(earlier, 0)
    left = torch.nn.functional.logsigmoid(-x).where(earlier, 0)
    after = left.flip(-1).cumsum(-1).flip(-1) - left  # of the keys between j and i
    return (torch.nn.functional.logsigmoid(x) + after).exp().where(earlier, 0)


def selective(logits: Float[Tensor, "... h n n"]) -> Float[Tensor, "... h n n"]:
    """Return the weights of selective attention (Leviathan et al., 2025).

    The weights are softmax(x_ij - sum of relu(s_kj) over k < i), where s are the first head's
    logits. If a token attends to an earlier token in the first head, the earlier token is marked as
    no longer needed, for all later tokens and all heads. A token does not mark itself, and the
    first token is never marked.

    >>> seen = torch.ones(3, 3).tril() > 0
    >>> logits = torch.tensor([[[0.0, 0, 0], [0, 0, 0], [0, 1, 0]]]).masked_fill(~seen, -math.inf)
    >>> selective(logits).equal(logits.softmax(-1))
    True
    """
    _check_logits(logits)
    if logits.ndim < 3:
        raise ValueError(
            f"logits must be a tensor of shape (..., h, n, n), not {require.brief(logits)}"
        )
    later = _square_logits(logits).tril(-1)
    later[:, 0] = False
    marks = (
        logits[..., :1, :, :]
        .where(later, 0)
        .relu()
        .masked_fill(torch.isneginf(logits[..., :1, :, :]), 0)
    )
    before = marks.cumsum(-2) - marks
    return (logits - before).softmax(-1)


def sigmoid_weights(
    logits: Float[Tensor, "... n"], bias: float | None = None
) -> Float[Tensor, "... n"]:
    """Return sigmoid(x_i + bias), where each key is weighted independently of the others.

    The function is sigmoid attention (Ramapuram et al., 2025). By default, bias = -ln(n) for n
    visible keys.

    >>> sigmoid_weights(torch.zeros(3), 0.0).tolist()
    [0.5, 0.5, 0.5]
    """
    _check_logits(logits)
    if bias is not None:
        return (logits + require.number("bias", bias)).sigmoid()
    return (logits - (~torch.isneginf(logits)).sum(-1, keepdim=True).to(logits).log()).sigmoid()


def squared_relu(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return max(x_i, 0)^2, a weight that does not depend on the other keys.

    Masked keys get 0. Wortsman et al. (2023) divide by the number of keys, but we do not.

    >>> squared_relu(torch.tensor([2.0, -1.0, 1.0])).tolist()
    [4.0, 0.0, 1.0]
    """
    _check_logits(logits)
    weights = logits.clamp(min=0).square()
    if require.readable(logits) and bool(torch.isinf(weights).any()):
        raise ValueError(
            f"logits must be small enough that {logits.dtype} can hold their squares, "
            f"not {float(logits.max()):.4g}"
        )
    return weights


def delta_rule(
    q: Float[Tensor, "... n k"],
    k: Float[Tensor, "... n k"],
    rate: Float[Tensor, "... n"],
    gates: Float[Tensor, "... n"],
) -> Float[Tensor, "... n n"]:
    """Return the gated delta rule as a matrix from values to outputs, like an attention matrix.

    The rule keeps a state of k x w numbers, S_t = g_t S_(t-1) (I - b_t k_t k_t^T) + b_t v_t k_t^T
    with S_0 = 0, and reads it by o_t = S_t q_t (Gated DeltaNet, Yang et al., 2025). So the old
    value of the key k_t is removed before v_t is written. Unrolled, this is o = A v with A = D (I +
    L)^-1 diag(b), where D has the gated scores q_t k_i, and L has the gated scores b_t k_t k_i of
    earlier i. Weights may be negative. Keys should have length 1.

    Args:
        rate: b, the fraction of a key's old value that is replaced, in [0, 1].
        gates: g, the fraction of the state that is kept, above 0 and at most 1.

    Raises:
        ValueError: if the shapes do not fit together, a rate is outside [0, 1], a gate is outside
            (0, 1], or the keys are so long that the state overflows.

    >>> q = k = torch.eye(2)[[0, 0, 1]]  # the key of the first token is written again by the second
    >>> delta_rule(q, k, torch.ones(3), torch.ones(3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    require.tensor("q", q, "... n k")
    n, width = q.shape[-2:]
    require.tensor("k", k, "... n k", n=n, k=width)
    for name, value in (("k", k), ("rate", rate), ("gates", gates)):
        if isinstance(value, Tensor) and value.dtype != q.dtype:
            raise ValueError(f"{name} must have the dtype of q, {q.dtype}, not {value.dtype}")
    for name, value in (("rate", rate), ("gates", gates)):
        require.tensor(name, value, "... n", n=n)
        if require.readable(value) and not (
            float(value.min()) >= 0
            and float(value.max()) <= 1
            and (name == "rate" or float(value.min()) > 0)
        ):
            raise ValueError(
                f"{name} must be {'from 0 to 1' if name == 'rate' else 'above 0 and at most 1'}, "
                f"not {float(value.min()):.4g} to {float(value.max()):.4g}"
            )
    total = gates.log().cumsum(-1)
    kept = (total[..., :, None] - total[..., None, :]).tril().exp().tril()
    scores, own = (q @ k.mT * kept).tril(), (rate[..., None] * (k @ k.mT) * kept).tril(-1)
    one = torch.eye(q.shape[-2], dtype=q.dtype, device=q.device)
    written = torch.linalg.solve_triangular(one + own, torch.diag_embed(rate), upper=False)
    mixed = scores @ written + 0.0
    if require.readable(mixed) and not bool(torch.isfinite(mixed).all()):
        raise ValueError(
            f"q and k must keep the state within the range of {q.dtype}. Scale the keys to length 1"
        )
    return mixed


def forgetting_bias(gates: Float[Tensor, "... n"]) -> Float[Tensor, "... n n"]:
    """Return the bias of forgetting attention, which is added to each logit.

    The bias is computed from the gates between key and query. For query j and key i, the bias is
    the sum of ln(gate_l) over i < l <= j, and -inf for i > j (Lin et al., 2025). The model computes
    the gates from the tokens. With equal gates, the bias is that of ALiBi with the slope -ln(gate).

    Args:
        gates: one per token, above 0 and at most 1.

    >>> forgetting_bias(torch.tensor([0.5, 0.5])).exp().tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    require.tensor("gates", gates, "... n")
    if require.readable(gates) and (
        float(gates.detach().min()) <= 0 or float(gates.detach().max()) > 1
    ):
        raise ValueError(
            f"gates must be above 0 and at most 1, not {float(gates.min()):.4g} to "
            f"{float(gates.max()):.4g}"
        )
    # in half precision, the sum of logarithms would reach infinity, and the difference of two
    # infinities is not a number
    total = gates.to(torch.promote_types(gates.dtype, torch.float32)).log().cumsum(-1)
    n = gates.shape[-1]
    hidden = torch.ones(n, n, dtype=torch.bool, device=gates.device).triu(1)
    return (
        (total[..., :, None] - total[..., None, :]).masked_fill(hidden, -math.inf).to(gates.dtype)
    )


def _support(
    logits: Tensor, threshold: Callable[[Tensor, Tensor, Tensor], Tensor], half: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the logits minus their largest one, and a mask of the logits that get weight.

    The support is the largest one that is consistent with its own threshold. A logit that is 1 or
    more below the largest never gets weight. The gradient only goes through the logits of the
    support.
    """
    _check_logits(logits)
    x = logits - logits.detach().max(-1, keepdim=True).values
    x = ((x / 2) if half else x).clamp(min=-1)
    with torch.no_grad():
        ordered = x.sort(-1, descending=True).values
        count = torch.arange(1, x.shape[-1] + 1, device=x.device).to(x)
        mean = ordered.cumsum(-1) / count
        spread = ((ordered.square()).cumsum(-1) / count - mean.square()).clamp(min=0)
        tau = threshold(mean, spread, count)
        size = ((ordered > tau) & (ordered > -1)).sum(-1, keepdim=True).clamp(min=1)
        return x, (x > tau.gather(-1, size - 1)) & (x > -1)


def _square_logits(logits: Tensor) -> Bool[Tensor, "n n"]:
    """Check that the logits are square, and return a matrix of `True` of the same size.

    A row of the logits may mask all keys.
    """
    _check_logits(logits, all_hidden=True)
    if logits.ndim < 2 or logits.shape[-1] != logits.shape[-2]:
        raise ValueError(
            f"logits must be square, (..., n, n) with n at least 1, not of shape "
            f"{tuple(logits.shape)}"
        )
    return torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device)


def _check_logits(logits: Tensor, all_hidden: bool = False) -> None:
    """Raise an error if logits are not real, or if a row has no visible key.

    Masked keys have the logit -inf.

    Args:
        all_hidden: allow rows that mask all keys.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        raise ValueError(
            f"logits must be a tensor of floating-point numbers, not {require.brief(logits)}"
        )
    if logits.ndim == 0 or logits.numel() == 0:
        raise ValueError(
            f"logits must have the shape (..., n) with n at least 1, not {tuple(logits.shape)}"
        )
    hidden = torch.isneginf(logits)
    require.tensor("logits", logits.detach().masked_fill(hidden, 0), "... n")
    if not all_hidden and require.readable(logits) and bool(hidden.all(-1).any()):
        raise ValueError("logits must leave at least one key visible (above -inf) in every row")


def adaptive_temperature(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """Return a softmax with a lower temperature if its entropy H (in nats) is above 0.5.

    The logits are multiplied by max(1, polynomial(H)), with the fitted coefficients of Figure 6 in
    Veličković et al. (2024), "softmax is not enough".

    >>> row = torch.tensor([2.0, 1, 0, 0, 0, 0, 0, 0])
    >>> adaptive_temperature(row)[0].item() > row.softmax(0)[0].item()
    True
    """
    require.tensor("logits", logits, "... n")
    return require.finite("logits", (inverse_temperature(logits) * logits).softmax(-1))


def inverse_temperature(logits: Float[Tensor, "... n"]) -> Float[Tensor, "... 1"]:
    """Return the factor by which `adaptive_temperature` multiplies the logits of each row.

    >>> inverse_temperature(torch.tensor([9.0, 0.0])).item()  # sharp already
    1.0
    """
    require.tensor("logits", logits, "... n")
    entropy = torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True)
    polynomial = torch.zeros_like(entropy)
    for coefficient in (-0.037, 0.481, -2.3, 4.917, -1.791):
        polynomial = polynomial * entropy + coefficient
    return torch.where(entropy > 0.5, polynomial.clamp(min=1.0), 1.0)
