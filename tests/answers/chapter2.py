import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import torch

from answers import several
from helpers import attention

FOUR, SAME, TWENTY = "about four times as many", "about as many", "more than twenty times as many"


def _rows(m):
    return [[float(x) / float(sum(row)) for x in row] for row in m.tolist()]


def _half(n, width):
    matrix = attention.uniform(attention.window_mask(n, width)).numpy()
    row, layers = matrix[-1], 1
    while row[0] < 0.5:
        row, layers = row @ matrix, layers + 1
    return layers


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
    "2.10": [
        (7, "must be a function"),
        (_windows, "Let the steps grow"),
        (lambda k: [attention.causal_mask(2**k)] * k, "two are allowed"),
        (lambda k: _dilated(k)[:-1], "one for each layer"),
        (lambda k: [m.T for m in _dilated(k)], "Is the mask transposed"),
        (lambda k: [torch.eye(2**k)] * k, "heard at all"),
        (lambda k: [m.double() / 2 for m in _dilated(k)], "holds true and false"),
        (lambda k: [m & ~torch.eye(2**k, dtype=torch.bool) for m in _dilated(k)], "sees nothing"),
        (lambda k: "masks", "must be numbers"),
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
    "2.4": [
        several("hardly any", lambda a, p: a[..., p + 1 :, p].mean()),
        several("hardly any", lambda a, p: a[:, :, p + 1 :, p].mean((0, 1)).mean()),
        several("hardly any", lambda a, p: float(a.numpy()[..., p + 1 :, p].mean())),
        several("hardly any", lambda a, p: torch.stack([row[p] for m in a.flatten(0, 1) for row in m[p + 1 :]]).mean()),
    ],
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
