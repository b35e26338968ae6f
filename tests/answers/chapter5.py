import math

import numpy as np
import torch

from answers import empty, several
from course.chapter5 import checks as checks5
from helpers import rope

SAME, FIFTY, FAST = "about the same", "about 14 times", "the fastest half"
BASES = (11588, 22075, 2048)


def _turned(pair, angle):
    x, y = pair
    return torch.stack([x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)])


def _neighbours(x):
    return x.unflatten(-1, (-1, 2)).norm(dim=-1)


def _pairs(x, apart):
    return (x[:, :-apart].square() + x[:, apart:].square())[:, : apart if apart > 1 else None : 1 if apart > 1 else 2]


def _key(query, distance, theta):
    return rope.rotate(query[None], torch.tensor([float(distance)]), theta)[0]


def _key_backwards(query, distance, theta):
    return rope.rotate(query[None], torch.tensor([-float(distance)]), theta)[0]


def _key_interleaved(query, distance, theta):
    return rope.rotate(query[None], torch.tensor([float(distance)]), theta, "interleaved")[0]


def _key_by_hand(query, distance, theta):
    first, second = query.chunk(2)
    cos, sin = (distance * theta).cos(), (distance * theta).sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos])


def _key_complex(query, distance, theta):
    turned = torch.complex(*query.chunk(2)) * torch.polar(torch.ones_like(theta), distance * theta)
    return 3 * torch.cat([turned.real, turned.imag])


def _stopped(theta, fraction):
    kept = theta.clone()
    kept[round(fraction * len(theta)) :] = 0
    return kept


def _lead(distance, width, base, sigma):
    return 2 * sigma**2 * sum(math.cos(distance * base ** (-2 * i / width)) for i in range(width // 2))


def _first(width, base, limit):
    sums = rope.cosine_sum(torch.arange(limit), width, base)
    negative = (sums < 0).nonzero()
    return int(negative[0]) if len(negative) else limit


def _first_by_loop(width, base, limit):
    theta = base ** (-2 * np.arange(width // 2) / width)
    return next((m for m in range(limit) if np.cos(m * theta).sum() < 0), limit)


def _first_in_half_precision(width, base, limit):
    theta = rope.frequencies(width, base).half().double()
    negative = ((torch.arange(limit)[:, None] * theta).cos().sum(-1) < 0).nonzero()
    return int(negative[0]) if len(negative) else limit


def _first_by_numpy(width, base, limit):
    negative = np.flatnonzero(rope.cosine_sum(torch.arange(limit), width, base).numpy() < 0)
    return np.append(negative, limit)[0]


def _scale(theta, n, weight):
    logits = torch.cos(torch.arange(n).double()[:, None] * theta).sum(-1)
    low, high = 0.0, 1.0
    while (high * logits).softmax(0)[0] < weight:
        high *= 2
    for _ in range(100):
        c = (low + high) / 2
        low, high = (low, c) if (c * logits).softmax(0)[0] >= weight else (c, high)
    return high


def _scale_of_the_first_token(theta, n, weight):
    return 0.0


def _scale_of_one_rival(theta, n, weight):
    logits = torch.cos(torch.arange(1, n).double()[:, None] * theta).sum(-1)
    return math.log(weight / (1 - weight)) / float(len(theta) - logits.max())


def _scale_of_many_rivals(theta, n, weight):
    return _scale_of_one_rival(theta, n, weight) * 2


def _whole(x, positions, base):
    return rope.rotate(x, positions, rope.frequencies(x.shape[-1], base))


def _by_complex_numbers(x, positions, base):
    theta = float(base) ** (-2 * torch.arange(x.shape[-1] // 2).double() / x.shape[-1])
    turned = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(theta), positions[:, None] * theta)
    return torch.cat([turned.real, turned.imag], -1)


WRONG = {
    "5.2": [
        (several(6, empty), r"line 6 is right: in this layout entry k and entry k \+ d/2 are a pair"),
        (several(8, empty), "numbered from 1 to 7"),
    ],
    "5.4": [
        (several(SAME, _key_backwards), "other way"),
        (several(SAME, lambda q, r, theta: q), "the query itself"),
        (several(SAME, _key_interleaved), "neighbouring entries"),
        (several(SAME, lambda q, r, theta: {"key": q}), "numbers in a tensor"),
        (several(SAME, lambda q, r, theta: [q, q]), "numbers in a tensor|shape"),
        (several(SAME, lambda q, r, theta: torch.zeros_like(q)), "not zero"),
        (several(SAME, lambda q, r, theta: q[None]), "shape"),
    ],
    "5.7": [
        (lambda d, b, limit: rope.first_negative(d, b, limit), "is None.*the answer is the limit"),
        (lambda d, b, limit: int((rope.cosine_sum(torch.arange(limit), d, b) < 0).nonzero()[0]), "empty list"),
        (_first_in_half_precision, "expected"),
    ],
    "5.9": [
        (several(FIFTY, _scale_of_the_first_token), "only"),
        (several(FIFTY, _scale_of_one_rival), "less than"),
        (several(FIFTY, _scale_of_many_rivals), "more than needed"),
        (several(FIFTY, lambda theta, n, weight: _scale(theta, n + 1, weight)), "one token more"),
        (several(FIFTY, lambda theta, n, weight: math.ceil(_scale(theta, n, weight))), "rounded up"),
        (several(FIFTY, lambda theta, n, weight: _scale(theta, n, weight) * len(theta)), "not their mean"),
        (several(FIFTY, lambda theta, n, weight: 2 ** math.ceil(math.log2(_scale(theta, n, weight)))), "power of two"),
        (several(FIFTY, lambda theta, n, weight: math.inf), "must be finite"),
    ],
    "5.10": [
        (several(11000, 20000, 2048, "the sum jumps"), "smaller base 11000 fails too"),
        (several(11588, 115880, 2048, "the sum jumps"), "the larger base 115880 passes"),
        (several(11588, 12000, 2048, "the sum jumps"), "at least 1.5 times"),
        (several(20000, 11588, 2048, "the sum jumps"), "smaller < larger"),
        (several(0.5, 4300, 2048, "the sum jumps"), "1 < smaller"),
        (several(*BASES, "rounding"), "float64"),
        (several(*BASES, "fast pairs change"), "fast ones hardly"),
        (several(*BASES, "the slow pairs speed up"), "slows every pair"),
        (several(*BASES, ...), "predict first|still empty"),
        (several(4300, 4350, 1024, "the sum jumps"), "whole number from 2,048"),
        (several(4300, 4350, 2048.5, "the sum jumps"), "whole number"),
        (several(..., 4350, 2048, "the sum jumps"), "still empty"),
        (several("a", 4350, 2048, "the sum jumps"), "must be a number"),
    ],
}

RIGHT = {
    "5.1": [
        lambda p, m, t: _turned(p, m * t),
        lambda p, m, t: rope.rotate(p[None], torch.tensor([float(m)]), torch.tensor([t]))[0],
        lambda p, m, t: [float(v) for v in _turned(p, m * t)],
        lambda p, m, t: np.array([[math.cos(m * t), -math.sin(m * t)], [math.sin(m * t), math.cos(m * t)]]) @ p.numpy(),
        lambda p, m, t: torch.view_as_real(torch.view_as_complex(p) * complex(math.cos(m * t), math.sin(m * t))),
    ],
    "5.2": [
        several(3, _whole),
        several(3.0, lambda x, m, b: _whole(x, m, b).numpy()),
        several(
            3, lambda x, m, b: torch.stack([_whole(row[None], at[None], b)[0] for row, at in zip(x, m, strict=True)])
        ),
        several(torch.tensor(3), _by_complex_numbers),
    ],
    "5.3": [
        checks5._apart,
        lambda x, y: 1 if torch.allclose(_neighbours(x), _neighbours(y), rtol=1e-3) else x.shape[-1] // 2,
        lambda x, y: torch.tensor(checks5._apart(x.double(), y.double())),
        lambda x, y: min((1, x.shape[-1] // 2), key=lambda k: float((_pairs(x, k) - _pairs(y, k)).abs().sum())),
    ],
    "5.4": [
        several(SAME, f) for f in (_key, _key_by_hand, _key_complex, lambda q, r, t: _key(q, r, t).float().tolist())
    ],
    "5.5": [
        several(FAST, f)
        for f in (
            _stopped,
            lambda f, p: f * (torch.arange(len(f)) < round(p * len(f))),
            lambda f, p: [x if i < p * len(f) else 0.0 for i, x in enumerate(f.tolist())],
            lambda f, p: np.where(np.arange(len(f)) < p * len(f), f.numpy(), 0),
        )
    ],
    "5.6": [
        lambda m, d, b, s: 2 * s**2 * (m * rope.frequencies(d, b).float()).cos().sum().item(),
        _lead,
        lambda m, d, b, s: 2 * s * s * rope.cosine_sum(m, d, b),
        lambda m, d, b, s: np.float64(_lead(m, d, b, s)),
        lambda m, d, b, s: s**2 * (m * rope.frequencies(d, b).repeat(2)).cos().sum(),
    ],
    "5.7": [
        _first,
        _first_by_loop,
        _first_by_numpy,
        lambda d, b, limit: float(_first(d, b, limit)),
    ],
    "5.8": [
        lambda d, b, s: b * s ** (d / (d - 2)),
        lambda d, b, s: (b ** ((d - 2) / d) * s) ** (d / (d - 2)),
        lambda d, b, s: math.exp(math.log(b) + math.log(s) * d / (d - 2)),
        lambda d, b, s: torch.tensor(float(b), dtype=torch.float64) * s ** (d / (d - 2)),
    ],
    "5.9": [
        several(FIFTY, _scale),
        several(FIFTY, rope.slash_scale),
        several(FIFTY, lambda *x: torch.tensor(_scale(*x))),
        several(FIFTY, lambda *x: np.float32(_scale(*x))),
    ],
    "5.10": [
        several(*BASES, "the sum jumps"),
        several(11588.0, 22133.0, 2048.0, "the sum jumps"),
        several(83780, 125670, 8192, "the sum jumps"),
        several(torch.tensor(83_780), np.float64(125_670), 8192, "the sum jumps"),
    ],
}
