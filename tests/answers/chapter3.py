import functools
import math
from statistics import NormalDist

import numpy as np
import torch

from answers import several
from course.chapter3 import checks as own
from course.chapter3 import measures
from helpers import collapse

SUM, WIDEST, ORDER = "the sum of the windows", "the widest window", "the order of the windows"


def _default_type(function, dtype):
    n = 1
    while torch.tensor(function(n)) != torch.tensor(function(n + 1)):
        n += 1
    return n


def _collision(function, dtype):
    n = 1
    while torch.tensor(function(n), dtype=dtype) != torch.tensor(function(n + 1), dtype=dtype):
        n += 1
    return n


def _by_lengths(function, dtype):
    values = torch.tensor([function(n) for n in range(1, 5000)], dtype=torch.float64).to(dtype)
    return 1 + int((values[1:] == values[:-1]).nonzero()[0])


def _adaptive(x):
    h = torch.special.entr(x.softmax(-1)).sum(-1, keepdim=True)
    factor = -0.037 * h**4 + 0.481 * h**3 - 2.3 * h**2 + 4.917 * h - 1.791
    return (factor.clamp(min=1) * x).softmax(-1)


def _numpy_adaptive(x):
    x = x.double().numpy()
    p = np.exp(x - x.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    h = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(-1, keepdims=True)
    y = np.maximum(1, np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], h)) * x
    y = np.exp(y - y.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def _numpy_vcr(x):
    x = x.numpy()
    total = 0.0
    for i in range(x.shape[1]):
        c = np.cov(x[:, i].T)
        v = np.diag(c)
        total += np.maximum(0, 1 - np.sqrt(v + 0.001)).sum() + 0.004 * ((c**2).sum() - (v**2).sum())
    return total / (x.shape[1] * x.shape[2])


def _vcr_by_einsum(x):
    y = x - x.mean(0)
    c = torch.einsum("bnk,bnl->nkl", y, y) / (len(x) - 1)
    v = c.diagonal(dim1=1, dim2=2)
    off = (c - torch.diag_embed(v)).square().sum((1, 2))
    return ((1 - (v + 0.001).sqrt()).clamp(min=0).sum(1) + 0.004 * off).mean() / x.shape[2]


WRONG = {
    "3.2": [
        (..., "still empty"),
        ("steep", "must be a number"),
        (None, "must be a number"),
        (0.5, "Is 1/2 your x"),
        (1.0, "in the ratio e"),
        (-math.log(2), "must be positive"),
        (math.nan, "must be finite"),
        (2.0, "parabola"),
        (0.69, "three decimals"),
        (0.7, "three decimals"),
        (10**400, "must be a number"),
    ],
    "3.5": [
        (_default_type, "compare the rounded f|expected"),
        (lambda f, d: f(torch.tensor(3, dtype=d)), "for a whole number n"),
        (collapse.first_collision, "book's own"),
    ],
    "3.7": [
        (3.0, "must be a function"),
        (lambda r: 3.0, "same shape"),
        (lambda r: r[:5], "same shape"),
        (lambda r: 10 * torch.cos(math.pi / 2 * r), r"stay within \[-3, 3\]"),
        (lambda r: 0 * r, "all logits are equal"),
        (lambda r: 0 * r + 3, "all logits are equal"),
        (lambda r: 3 * torch.exp(-r / 10), "a mean there"),
        (lambda r: 3 * torch.cos(math.pi * r), "less than 1"),
        (lambda r: 0.3 * torch.cos(math.pi / 2 * r), "contrast is weak"),
        (lambda r: "cos", "must be numbers in a tensor"),
    ],
    "3.8": [
        (lambda x: _adaptive(x.flatten()).view_as(x), "expected"),
    ],
    "3.10": [
        (100, "must be a function"),
        (lambda n0, b, e: n0, "too few: at 13 tokens"),
        (lambda n0, b, e: 0, "at least n0"),
        (lambda n0, b, e: math.nan, "finite"),
        (lambda n0, b, e: 10**400, "must be a number"),
        (lambda n0, b, e: 10**9, "wasteful"),
        (lambda n0, b, e: 10 * n0 * math.exp(2 * b) / e, "wasteful"),
        (lambda n0, b, e: 50 * n0 * math.exp(2 * b) / e, "wasteful"),
        (lambda n0, b, e: 2 * n0**2 * math.exp(2 * b) / e, "wasteful|too few"),
        (lambda n0, b, e: 2 * n0 * math.exp(b) / e, "too few"),
        (lambda n0, b, e: "many", "must be a number"),
    ],
}

RIGHT = {
    "3.1": [
        lambda p, q: torch.linalg.vector_norm(p - q, ord=1, dim=-1),
        lambda p, q: np.abs(p.numpy() - q.numpy()).sum(-1),
        lambda p, q: torch.maximum(p, q).sum(-1) - torch.minimum(p, q).sum(-1),
        lambda p, q: (p - q).float().abs().sum(-1),
        functools.partial(lambda axis, p, q: (p - q).abs().sum(axis), -1),
    ],
    "3.2": [math.log(2), 0.6931, torch.tensor(2.0).log(), np.log(2)],
    "3.3": [
        several(SUM, lambda ws: sum(ws) - len(ws) + 1),
        several(SUM, lambda ws: 1 + sum(w - 1 for w in ws)),
        several(SUM, lambda ws: torch.tensor(ws).sub(1).sum() + 1),
        several(SUM, lambda ws: int(np.sum(ws)) - len(ws) + 1),
        several(SUM, own._first_zero),
    ],
    "3.4": [
        several("every fifth 1", lambda f, t, k: (f(t + t[-k:])[-1] - f(t)[-1]).abs().sum()),
        several("every fifth 1", lambda f, t, k: torch.cdist(f([*t, *t[-k:]])[-1:], f(t)[-1:], p=1).item()),
        several("every fifth 1", lambda f, t, k: (f(t + t[-k:])[-1] - f(t + t[-k:])[len(t) - 1]).norm(p=1)),
        several("every fifth 1", lambda f, t, k: float(sum(abs(x) for x in f(t + t[-k:])[-1] - f(t)[-1]))),
    ],
    "3.5": [
        _collision,
        _by_lengths,
        lambda f, d: collapse.first_collision(_vectorised(f), d),
        functools.lru_cache(_collision),
    ],
    "3.6": [
        lambda r, h: math.erf(1 / (r * math.sqrt(8 * h))),
        lambda r, h: 2 * NormalDist().cdf(0.5 / (r * math.sqrt(h))) - 1,
        lambda r, h: torch.erf(torch.tensor(0.5 / (r * math.sqrt(2 * h)), dtype=torch.float64)),
        lambda r, h: 2 * measures.right_of_two(r, h) - 1,
        own._stays_nearest,
    ],
    "3.7": [
        lambda r: 3 * torch.cos(math.pi / 2 * r),
        lambda r: torch.where(r % 4 == 0, 3.0, -3.0),
        lambda r: 3 * np.cos(np.pi / 2 * r.numpy()),
        lambda r: [3.0 if x % 4 == 0 else -3.0 for x in r.tolist()],
    ],
    "3.8": [_adaptive, _numpy_adaptive, own._adaptive(), lambda x: _adaptive(x.float())],
    "3.9": [_numpy_vcr, _vcr_by_einsum, own._seq_vcr(), lambda x: float(own._seq_vcr()(x))],
    "3.10": [
        lambda n0, b, e: n0 + math.ceil(2 * n0 * math.exp(2 * b) / e),
        lambda n0, b, e: own._least_length(n0, b, e),
        lambda n0, b, e: 4 * n0 * math.exp(2 * b) / e,
        lambda n0, b, e: torch.tensor(n0 + 2 * n0 * math.exp(2 * b) / e),
        lambda n0, b, e: np.float64(n0 + 2 * n0 * np.exp(2 * b) / e),
    ],
}


def _vectorised(function):
    return lambda n: torch.stack([torch.as_tensor(function(float(x)), dtype=torch.float64) for x in n[:6000]])
