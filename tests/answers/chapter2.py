import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import torch

from answers import empty, several
from helpers import attention

FOUR, SAME, TWENTY = "about four times as many", "about as many", "more than twenty times as many"


def _fill_in_place(m):
    m[0, 0] = False
    return m.double()


def _rows(m):
    return [[float(x) / float(sum(row)) for x in row] for row in m.tolist()]


def _half(n, width, start=1, wider=0):
    matrix = attention.uniform(attention.window_mask(n, width + wider)).numpy()
    row, layers = matrix[-1], 1
    while row[0] < 0.5:
        row, layers = row @ matrix, layers + 1
    return layers - 1 + start


def _half_strictly(n, width):
    matrix = attention.uniform(attention.window_mask(n, width))
    return next(k for k in range(1, 9999) if torch.linalg.matrix_power(matrix, k)[-1, 0] > 0.5)


def _half_by_powers(n, width):
    matrix = attention.uniform(attention.window_mask(n, width))
    return next(k for k in range(1, 9999) if torch.linalg.matrix_power(matrix, k)[-1, 0] >= 0.5)


def _half_exact(n, width):
    row = [Fraction(0)] * (n - 1) + [Fraction(1)]
    for layers in itertools.count(1):
        new = [Fraction(0)] * n
        for i, share in enumerate(row):
            seen = range(max(0, i - width + 1), i + 1)
            for j in seen:
                new[j] += share / len(seen)
        row = new
        if row[0] >= Fraction(1, 2):
            return layers
    raise AssertionError


def _influence(attentions, residual):
    eye = torch.eye(attentions.shape[-1], dtype=attentions.dtype)
    product = eye
    for a in attentions:
        product = ((1 - residual) * a + residual * eye) @ product
    return product


def _numpy_influence(attentions, residual):
    eye = np.eye(attentions.shape[-1])
    return functools.reduce(lambda p, a: ((1 - residual) * a + residual * eye) @ p, attentions.numpy(), eye)


def _right_to_left(attentions, residual):
    eye = torch.eye(attentions.shape[-1], dtype=torch.float64)
    steps = [(1 - residual) * a.double() + residual * eye for a in attentions.flip(0)]
    return torch.linalg.multi_dot(steps) if len(steps) > 1 else steps[0]


def _paths_by_powers(n, layers):
    row = [1] * n
    for _ in range(layers - 1):
        row = [sum(row[j:]) for j in range(n)]
    return row


def _walk(n, layers):
    matrix = np.array(np.tril(np.ones((n, n), dtype=object)))
    power = matrix
    for _ in range(layers - 1):
        power = power.dot(matrix)
    return np.array([float(x) for x in power[-1]])


def _flat(n):
    return sum(1 / k for k in range(1, n + 1)) / n


def _above(a):
    return (a[:, 0].mean() - _flat(len(a))) / (1 - _flat(len(a)))


def _peak_by_looking(layers, rate):
    weights = [math.lgamma(layers + x + 1) - math.lgamma(x + 1) - rate * x for x in range(4000)]
    return weights.index(max(weights))


def _peak_by_loop(layers, rate):
    x = 0
    while x + 1 <= layers / (math.exp(rate) - 1):
        x += 1
    return x


def _norms(back, q):
    return (q.shape[1] * torch.stack([back(r).square().sum(-1) for r in q]).mean(0)).sqrt()


def _norms_by_loop(back, q):
    total = 0
    for row in q:
        total = total + (back(row) ** 2).sum(1)
    return (total * q.shape[1] / q.shape[0]) ** 0.5


def _numpy_norms(back, q):
    squares = [np.linalg.norm(back(row).numpy(), axis=1) ** 2 for row in q]
    return np.sqrt(q.shape[1] * np.mean(squares, axis=0))


def _dilated(layers):
    n = 2**layers
    gap = torch.arange(n)[:, None] - torch.arange(n)
    return [(gap == 0) | (gap == 2**k) for k in range(layers)]


def _coarse_first(layers):
    return _dilated(layers)[::-1]


def _numpy_masks(layers):
    n = 2**layers
    return [np.eye(n) + np.eye(n, k=-(2**k)) for k in range(layers)]


def _lists(layers):
    return [m.int().tolist() for m in _dilated(layers)]


def _threes(layers):
    n = 2**layers
    gap = torch.arange(n)[:, None] - torch.arange(n)
    return [(gap == 0) | (gap == 3**k) for k in range(layers)]


def _windows(layers):
    return [attention.window_mask(2**layers, 2)] * layers


WRONG = {
    "2.1": [
        (empty, "still empty"),
        (3, "must be a function"),
        (lambda n: torch.ones(n, n).tril(-1), "hide each token from itself"),
        (lambda n: torch.ones(n, n).triu(), "It is transposed"),
        (lambda n: torch.ones(n, n), "Nothing is hidden"),
        (lambda n: torch.eye(n), "Each token sees itself alone"),
        (lambda n: torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf), "added to the logits"),
        (lambda n: torch.ones(n + 1, n + 1).tril(), "wrong shape"),
        (lambda n: None, "returned nothing"),
        (lambda n: 2 * torch.ones(n, n).tril(), "twice what is expected"),
        (lambda n: torch.ones(n, n, dtype=torch.bool).triu(1), "true where a token is hidden"),
    ],
    "2.2": [
        (empty, "still empty"),
        (lambda m: m.double() / len(m), "divided by the number of tokens"),
        (lambda m: m.double() / m.double().sum(0), "columns sum to one"),
        (lambda m: m.double().softmax(-1), "softmax of zeros and ones"),
        (lambda m: m, "That is the mask"),
        (lambda m: m.double() / m.double().sum(), "expected"),
        (lambda m: m.float() / m.sum(1), "keepdim"),
        (_fill_in_place, "changes its argument"),
        (lambda m: m.sum(1), "wrong shape"),
        (lambda m: 0.5 * attention.uniform(m), "half of what is expected"),
    ],
    "2.3": [
        (several(..., empty), "predict first"),
        (several(SAME, empty), "in reach at all"),
        (several(TWENTY, empty), "Compute it"),
        (several("none", empty), "must be one of"),
        (several(FOUR, empty), "still empty"),
        (several(FOUR, lambda n, w: _half(n, w, start=2)), "One layer too many"),
        (several(FOUR, lambda n, w: _half(n, w, start=0)), "One layer too few"),
        (several(FOUR, lambda n, w: _half(n, n)), "full causal mask"),
        (several(FOUR, lambda n, w: _half(n, w, wider=1)), "one too wide"),
        (several(FOUR, lambda n, w: math.ceil((n - 1) / (w - 1))), "first heard at all"),
        (several(FOUR, lambda n, w: n), "expected"),
        (several(FOUR, _half_strictly), "at least half is enough"),
    ],
    "2.4": [
        (..., "predict first"),
        ("as much as the first", "What tells this one"),
        ("about half as much", "Does its state grow"),
        ("", "must be one of"),
        (0, "must be one of"),
        ("none", "must be one of"),
        (None, "must be one of"),
        (0.35, "must be one of"),
    ],
    "2.5": [
        (empty, "still empty"),
        (lambda a, r: _influence(a.flip(0), r), "order is reversed"),
        (lambda a, r: _influence(a, 1 - r), "swapped the shares"),
        (lambda a, r: _influence(a, 0.0), "left the residual out"),
        (lambda a, r: _influence(a, 0.0) * (1 - r) + r * torch.eye(a.shape[-1]), "once, at the end"),
        (lambda a, r: a.mean(0), "added the layers up"),
        (lambda a, r: _influence(a, r).T, "It is transposed"),
        (lambda a, r: _influence(a, 0.5), "rollout of the literature"),
        (
            lambda a, r: functools.reduce(
                lambda p, m: (m + r * torch.eye(len(m))) @ p, a.double(), torch.eye(a.shape[-1]).double()
            ),
            "without taking as much from A",
        ),
        (
            lambda a, r: functools.reduce(lambda p, m: ((1 - r) * m + r * torch.eye(len(m))) * p, a, 1),
            "multiplies entry by entry",
        ),
        (lambda a, r: _influence(a, r)[-1], "wrong shape"),
        (lambda a, r: a[5], "raised IndexError"),
    ],
    "2.6": [
        (empty, "still empty"),
        (lambda n, k: attention.path_count(n, k + 1), "One step too many"),
        (lambda n, k: attention.path_count(n, max(k - 1, 1)), "One step too few"),
        (lambda n, k: [math.comb(n - 2 - j, k - 1) if j < n - 1 else 0 for j in range(n)], "do not let a path stay"),
        (lambda n, k: attention.path_count(n, k)[::-1], "in the wrong order"),
        (lambda n, k: [n ** (k - 1)] * n, "stops in any order"),
        (lambda n, k: [math.comb(n - 1 - j, k - 1) for j in range(n)], "Your stops all differ"),
        (lambda n, k: [math.comb(n - j + k - 1, k - 1) for j in range(n)], "One too many"),
        (lambda n, k: sum(attention.path_count(n, k)), "wrong shape"),
        (lambda n, k: [1] * n, "expected"),
        (lambda n, k: "many", "must return a number or a tensor"),
    ],
    "2.7": [
        (empty, "still empty"),
        (lambda a: a[:, 0].mean(), "plain score"),
        (lambda a: a[:, 0].mean() - _flat(len(a)), "1 is the most"),
        (lambda a: (a[:, 0].mean() - 1 / len(a)) / (1 - 1 / len(a)), "early rows see fewer"),
        (lambda a: (a[0].mean() - _flat(len(a))) / (1 - _flat(len(a))), "took the row"),
        (lambda a: a[:, 0].mean() / _flat(len(a)), "ratio"),
        (lambda a: (a[-1, 0] - 1 / len(a)) / (1 - 1 / len(a)), "last row alone"),
        (lambda a: a[:, 0], "wrong shape"),
        (lambda a: 2 * _above(a), "twice what is expected"),
    ],
    "2.8": [
        (empty, "still empty"),
        (lambda t, m: round(t / math.expm1(m)), "rounded to the nearest"),
        (lambda t, m: math.ceil(t / math.expm1(m)), "rounded up"),
        (lambda t, m: math.floor(t / m), "small rate only"),
        (lambda t, m: t / math.expm1(m), "not rounded"),
        (lambda t, m: 0, "left out the paths"),
        (lambda t, m: math.floor(t / math.exp(m)), "subtract 1 first"),
        (lambda t, m: math.floor((t - 1) / math.expm1(m)), "one layer less"),
        (lambda t, m: t, "expected"),
        (lambda t, m: None, "returned nothing"),
    ],
    "2.9": [
        (empty, "still empty"),
        (lambda f, q: _norms(f, q) / q.shape[1] ** 0.5, "left out the width"),
        (lambda f, q: _norms(f, q) * len(q) ** 0.5, "added the squares up"),
        (lambda f, q: _norms(f, q) ** 2, "square of the norm"),
        (lambda f, q: q.shape[1] ** 0.5 * torch.stack([f(r).norm(dim=-1) for r in q]).mean(0), "averaged the norms"),
        (lambda f, q: q.shape[1] ** 0.5 * sum(f(r) for r in q).norm(dim=-1) / len(q), "averaged before squaring"),
        (lambda f, q: _norms(f, q).square().sum().sqrt(), "summed over all tokens"),
        (lambda f, q: q.shape[1] ** 0.5 * f(q[0]).norm(dim=-1), "first direction alone"),
        (lambda f, q: q.shape[1] ** 0.5 * _norms(f, q), "under the root"),
        (
            lambda f, q: (len(q) * torch.stack([f(r).square().sum(-1) for r in q]).mean(0)).sqrt(),
            "number of directions",
        ),
        (lambda f, q: f(q), "raised RuntimeError"),
    ],
    "2.10": [
        (empty, "still empty"),
        (7, "must be a function"),
        (_windows, "Let the steps grow"),
        (lambda k: [attention.causal_mask(2**k)] * k, "two are allowed"),
        (lambda k: _dilated(k)[:-1], "one for each layer"),
        (lambda k: [m.T for m in _dilated(k)], "Is the mask transposed"),
        (lambda k: [torch.eye(2**k)] * k, "heard at all"),
        (lambda k: [m.double() / 2 for m in _dilated(k)], "holds true and false"),
        (lambda k: [m & ~torch.eye(2**k, dtype=torch.bool) for m in _dilated(k)], "sees nothing"),
        (lambda k: "masks", "must return"),
        (lambda k: [_dilated(k)[0]] * k, "Let the steps grow"),
        (_threes, "heard at all"),
    ],
}

RIGHT = {
    "2.1": [
        lambda n: torch.ones(n, n, dtype=torch.bool).tril(),
        lambda n: np.tril(np.ones((n, n))),
        lambda n: [[j <= i for j in range(n)] for i in range(n)],
        lambda n: torch.arange(n)[:, None] >= torch.arange(n),
        functools.partial(attention.causal_mask),
    ],
    "2.2": [
        lambda m: m.double() / m.double().sum(1, keepdim=True),
        lambda m: m.float() / m.sum(1)[:, None],
        lambda m: m.numpy() / m.numpy().sum(1, keepdims=True),
        _rows,
        lambda m: torch.zeros(m.shape).masked_fill(~m, -math.inf).softmax(-1),
    ],
    "2.3": [several(FOUR, answer) for answer in (_half, _half_by_powers, _half_exact, lambda n, w: float(_half(n, w)))],
    "2.4": ["hardly any", " ".join(["hardly", "any"]), "hardly any ".strip(), "HARDLY ANY".lower()],
    "2.5": [_influence, _numpy_influence, _right_to_left, attention.influence],
    "2.6": [
        lambda n, k: [math.comb(n - 1 - j + k - 1, k - 1) for j in range(n)],
        _paths_by_powers,
        _walk,
        lambda n, k: torch.linalg.matrix_power(torch.ones(n, n, dtype=torch.float64).tril(), k)[-1],
        attention.path_count,
    ],
    "2.7": [
        lambda a: _above(a),
        lambda a: float(np.mean(a.numpy()[:, 0]) - _flat(len(a))) / (1 - _flat(len(a))),
        lambda a: 1 - (1 - a[:, 0].mean()) / (1 - _flat(len(a))),
        lambda a: (a[:, 0].sum() - len(a) * _flat(len(a))) / (len(a) - len(a) * _flat(len(a))),
    ],
    "2.8": [
        lambda t, m: math.floor(t / math.expm1(m)),
        _peak_by_looking,
        _peak_by_loop,
        lambda t, m: int(np.floor(t / np.expm1(m))),
        lambda t, m: t // math.expm1(m),
    ],
    "2.9": [_norms, _norms_by_loop, _numpy_norms, lambda f, q: _norms(f, q).float()],
    "2.10": [_dilated, _coarse_first, _numpy_masks, _lists, lambda k: torch.stack(_dilated(k))],
}
