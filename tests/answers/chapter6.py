import math

import numpy as np
import torch
from scipy import optimize, stats
from torch import nn
from torch.nn import functional

from answers import empty, several
from course import significance
from course.experiments import protocol
from helpers import attention, differential

ABOVE, STAYS = "more than 1", "it stays the same"


# 6.1


def _difference(x, y, lam):
    return x.softmax(-1) - lam * y.softmax(-1)


def _largest(x, y):
    return (x.softmax(-1) / y.softmax(-1)).min()


def _plain_difference(x, y, lam):
    def softmax(row):
        weights = [math.exp(v) for v in row]
        return [w / sum(weights) for w in weights]

    if x.ndim > 1:
        return [_plain_difference(a, b, lam) for a, b in zip(x, y, strict=True)]
    return [a - lam * b for a, b in zip(softmax(x.tolist()), softmax(y.tolist()), strict=True)]


def _numpy_difference(x, y, lam):
    a, b = (np.exp(v.numpy()) for v in (x, y))
    return a / a.sum(-1, keepdims=True) - lam * b / b.sum(-1, keepdims=True)


# 6.2


def _dropped(first, second, key):
    return [torch.cat([x[:key], x[key + 1 :]]) for x in (first, second)]


def _unit(row):
    return row / row.square().sum().sqrt()


def _shared(first, second, key):
    return _unit(_dropped(first, second, key)[0]) @ _unit(_dropped(first, second, key)[1])


# 6.4


def _off(x):
    top = x.max(-1, keepdim=True).values.clamp(min=0)
    e = (x - top).exp()
    return e / ((-top).exp() + e.sum(-1, keepdim=True))


def _off_by_numpy(x):
    x = x.numpy()
    top = np.maximum(x.max(-1, keepdims=True), 0)
    e = np.exp(x - top)
    return e / (np.exp(-top) + e.sum(-1, keepdims=True))


def _off_unclamped(x):
    top = x.max(-1, keepdim=True).values
    e = (x - top).exp()
    return e / ((-top).exp() + e.sum(-1, keepdim=True))


# 6.5


def _scale(gap, n, weight):
    return (math.log(n - 1) + math.log(weight / (1 - weight))) / (gap * math.log(n))


def _scale_by_search(gap, n, weight):
    def miss(s):
        return 1 / (1 + (n - 1) * n ** (-s * gap)) - weight

    return optimize.brentq(miss, 0, 100, xtol=1e-14)


# 6.6


def _counted(row, answer):
    noise = torch.cat([row[:answer], row[answer + 1 :]])
    total, sizes = row.sum(), row.abs().sum()
    return torch.stack([1 - total, row[answer] / total, noise.sum() / total, row[answer].abs() / sizes, noise.abs().sum() / sizes])  # fmt: skip


def _counted_plainly(row, answer):
    row = row.tolist()
    total, sizes = sum(row), sum(map(abs, row))
    others = [w for k, w in enumerate(row) if k != answer]
    return 1 - total, row[answer] / total, sum(others) / total, abs(row[answer]) / sizes, sum(map(abs, others)) / sizes


def _counted_short(row, answer):
    total, sizes = row.sum(), row.abs().sum()
    signed, sized = row[answer] / total, row[answer].abs() / sizes
    return [1 - total, signed, 1 - signed, sized, 1 - sized]


# 6.7


def _threshold(x, power, rounds=100):
    x = x.double()
    high = x.max(-1, keepdim=True).values
    low = high - 1
    for _ in range(rounds):
        tau = (low + high) / 2
        much = ((x - tau).clamp(min=0) ** power).sum(-1, keepdim=True) >= 1
        low, high = torch.where(much, tau, low), torch.where(much, high, tau)
    return (x - tau).clamp(min=0) ** power


def _entmax(x, alpha):
    return _threshold((alpha - 1) * x, 1 / (alpha - 1))


def _entmax_row_by_row(x, alpha):
    if x.ndim > 1:
        return torch.stack([_entmax_row_by_row(row, alpha) for row in x])
    z = (alpha - 1) * x.double().numpy()

    def miss(tau):
        return (np.maximum(z - tau, 0) ** (1 / (alpha - 1))).sum() - 1

    tau = optimize.brentq(miss, z.max() - 1, z.max(), xtol=1e-15)
    return torch.tensor(np.maximum(z - tau, 0) ** (1 / (alpha - 1)))


def _entmax_known(x, alpha):
    ways = {2.0: attention.sparsemax, 1.5: attention.entmax15}
    return ways[alpha](x.double()) if alpha in ways else _entmax(x, alpha)


# 6.8


def _head(q1, k1, q2, k2, v, lam, start):
    later = torch.ones(len(q1), len(k1)).triu(1).bool()
    logits = (q @ k.T * q1.shape[-1] ** -0.5 for q, k in ((q1, k1), (q2, k2)))
    first, second = (x.masked_fill(later, -math.inf).softmax(-1) for x in logits)
    x = (first - lam * second) @ v
    return (1 - start) * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def _head_fused(q1, k1, q2, k2, v, lam, start):
    first, second = (
        functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        for q, k in ((q1, k1), (q2, k2))
    )
    return functional.rms_norm(first - lam * second, v.shape[-1:], eps=1e-5) * (1 - start)


def _head_of_the_book(q1, k1, q2, k2, v, lam, start):
    x = differential.attend(q1, k1, q2, k2, v, lam)
    return (1 - start) * functional.rms_norm(x, x.shape[-1:], eps=1e-5)


def _head_in_numpy(*parts):
    return _head(*parts).float().numpy()


# 6.9


def _holm(p):
    found, worst = torch.zeros(len(p), dtype=torch.float64), 0.0
    for rank, place in enumerate(np.argsort(p)):
        worst = max(worst, min(1.0, (len(p) - rank) * p[place]))
        found[place] = worst
    return found


def _singles(scores, baseline):
    return [stats.ttest_rel(row.tolist(), baseline.tolist()).pvalue for row in scores]


def _values(scores, baseline):
    return _holm(np.nan_to_num(_singles(scores, baseline), nan=1.0))


def _values_by_hand(scores, baseline):
    gaps = (scores - baseline).double().numpy()
    n = gaps.shape[1]
    spread = gaps.std(1, ddof=1) / np.sqrt(n)
    t = np.divide(gaps.mean(1), spread, out=np.zeros(len(gaps)), where=spread > 0)
    p = 2 * stats.t.sf(np.abs(t), n - 1)
    order = p.argsort()
    held = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return held[order.argsort()]


def _values_as_list(scores, baseline):
    return [float(p) for p in _values(scores, baseline)]


# 6.10


def softmax(logits):
    return logits.softmax(-1)


def squared(logits):
    """Softmax of doubled logits, half of the weight."""
    return 0.5 * (2 * logits).softmax(-1)


class Learned(nn.Module):
    """A learned scale for each head times ln of how many keys a row sees."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((protocol.BUDGET["heads"], 1, 1), 0.4))

    def forward(self, logits):
        hidden = torch.isneginf(logits)
        factor = self.scale * (~hidden).sum(-1, keepdim=True).float().log()
        return (logits.masked_fill(hidden, 0) * factor).masked_fill(hidden, -math.inf).softmax(-1)


def _whole_length(logits):
    factor = math.log(logits.shape[-1] + 1)
    hidden = torch.isneginf(logits)
    return (logits.masked_fill(hidden, 0) * factor).masked_fill(hidden, -math.inf).softmax(-1)


def _bad_gradient(logits):
    return torch.where(torch.isneginf(logits), 0.0, (logits - logits.max(-1, keepdim=True).values).exp().sqrt())


def _late_nan(logits):
    return logits.softmax(-1) * (math.nan if 17 <= logits.shape[-1] <= 25 else 1.0)


def _overflow(logits):
    powers = (80 * logits).exp()
    return powers / powers.sum(-1, keepdim=True)


def _entry(weigh, name="mine", prediction="not told apart", seeds=1):
    return several(name, weigh, prediction, seeds)


WRONG = {
    "6.7": [
        (lambda x, alpha: _threshold((alpha - 1) * x, 1 / (alpha - 1), rounds=4), "expected"),
    ],
    "6.8": [
        (several(..., _head), "still empty: choose one of"),
    ],
    "6.10": [
        (_entry(lambda logits: torch.ones_like(logits)), "looks ahead: token 0 gives token 1 a weight of 1"),
        (_entry(lambda logits: logits.nan_to_num(neginf=0).softmax(-1)), "looks ahead: token 0"),
        (_entry(lambda logits: logits.softmax(-2)), "queries"),
        (_entry(_whole_length), "the whole length"),
        (_entry(lambda logits: logits.softmax(-1).sum(-1)), "as many weights"),
        (_entry(lambda logits: (logits - logits).softmax(-1)), "NaN, first in the row of token 0"),
        (_entry(lambda logits: 1 / logits.softmax(-1)), "infinite"),
        (_entry(lambda logits: logits.softmax(-1).tolist()), "must return a tensor, not list"),
        (_entry(lambda logits: logits.softmax(-1).double()), "float32"),
        (_entry(lambda logits: logits.softmax(-1) * torch.rand(())), "leave chance out"),
        (_entry(_bad_gradient), "gradient that is not finite"),
        (_entry(lambda logits: logits.softmax(-1) * (logits.softmax(-1) / logits.softmax(-1).sum((0, 1, 2), keepdim=True)).nan_to_num()), "mixes|looks ahead"),
        (_entry(lambda logits: logits.softmax(-1) / (1 + logits.exp().amax((0, 1, 3), keepdim=True))), "mixes sequences"),
        (_entry(lambda logits: logits.exp_()), "changes its argument"),
        (_entry(lambda logits: logits @ torch.ones(7)), "raised RuntimeError"),
        (_entry(Learned), "is a class"),
        (_entry("softmax"), "must be a function"),
        (_entry(empty), "still empty"),
        (_entry(softmax, name=...), "name is still empty"),
        (_entry(softmax, name="RoPE"), "must be new"),
        (_entry(softmax, prediction="best"), "prediction must be one of"),
        (_entry(softmax, seeds=16), "from 1 to"),
        (_entry(softmax, seeds="many"), "must be a number"),
        (_entry(_late_nan), "training broke off: the loss was nan"),
        (_entry(lambda x: x.softmax(-1)[..., :128]), "yours have the shape"),
        (_entry(_overflow), "NaN|overflow|infinite"),
    ],
}  # fmt: skip

RIGHT = {
    "6.1": [
        several(_difference, _largest),
        several(_plain_difference, lambda x, y: float(_largest(x, y))),
        several(_numpy_difference, lambda x, y: np.min(_numpy_difference(x, y, 0) / _numpy_difference(y, x, 0))),
        several(differential.difference, lambda x, y: (x.log_softmax(-1) - y.log_softmax(-1)).min().exp()),
        several(
            lambda x, y, lam: (
                torch.stack([x, y]).softmax(-1).T.mT[0] - lam * y.softmax(-1)
                if x.ndim == 9
                else torch.sub(x.softmax(-1), y.softmax(-1), alpha=lam)
            ),
            lambda x, y: [a / b for a, b in zip(x.softmax(0), y.softmax(0), strict=True)] and _largest(x, y).float(),
        ),
    ],
    "6.2": [
        several("about a half", _shared),
        several("about a half", lambda a, b, k: functional.cosine_similarity(*_dropped(a, b, k), dim=0)),
        several("about a half", lambda a, b, k: np.corrcoef(*(np.r_[x, -x] for x in _dropped(a, b, k)))[0, 1]),
        several(
            "about a half", lambda a, b, k: sum(x * y for x, y in zip(*map(_unit, _dropped(a, b, k)), strict=True))
        ),
    ],
    "6.3": [
        several(STAYS, lambda c, lam: math.sqrt(1 + lam**2 - 2 * lam * c)),
        several(STAYS, lambda c, lam: np.hypot(1 - lam * c, lam * math.sqrt(1 - c * c))),
        several(STAYS, lambda c, lam: torch.tensor(((1 - lam) ** 2 + 2 * lam * (1 - c)) ** 0.5)),
        several(STAYS, lambda c, lam: abs(1 - lam * complex(c, math.sqrt(1 - c * c)))),
    ],
    "6.4": [
        attention.softmax_off_by_one,
        _off,
        _off_by_numpy,
        _off_unclamped,
        lambda x: functional.pad(x.double(), (0, 1)).softmax(-1)[..., :-1],
        lambda x: (x - torch.logaddexp(x.logsumexp(-1, keepdim=True), torch.zeros(1))).exp(),
    ],
    "6.5": [
        _scale,
        _scale_by_search,
        lambda g, n, w: math.log((n - 1) * w / (1 - w), n) / g,
        lambda g, n, w: np.float64((np.log(n - 1) + np.log(w) - np.log1p(-w)) / g / np.log(n)),
        lambda g, n, w: torch.logit(torch.tensor(w).double()).add(math.log(n - 1)) / (g * math.log(n)),
    ],
    "6.6": [several(ABOVE, f) for f in (_counted, _counted_plainly, _counted_short, lambda *x: _counted(*x).numpy())],
    "6.7": [
        _entmax,
        _entmax_row_by_row,
        _entmax_known,
        lambda x, alpha: _entmax(x, alpha).float(),
        lambda x, alpha: _entmax(x, alpha).tolist(),
    ],
    "6.8": [several(STAYS, f) for f in (_head, _head_fused, _head_of_the_book, _head_in_numpy)],
    "6.9": [
        _values,
        _values_by_hand,
        _values_as_list,
        lambda x, y: significance.holm([significance.paired(row.tolist(), y.tolist()) for row in x]),
        lambda x, y: _holm(
            [stats.ttest_1samp((row - y).tolist(), 0).pvalue if (row != y).any() else 1.0 for row in x]
        ).float(),
    ],
    "6.10": [
        _entry(softmax),
        _entry(squared, prediction="better", seeds=1.0),
        _entry(Learned(), prediction="worse"),
        _entry(lambda logits: logits.relu()),
    ],
}
