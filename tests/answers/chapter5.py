import torch

from helpers import rope


def key(query, distance, theta, *layout):
    return rope.rotate(query[None], torch.tensor([float(distance)]), theta, *layout)[0]


def bisected(theta, n, weight):
    logits = torch.cos(torch.arange(n).double()[:, None] * theta).sum(-1)
    low, high = 0.0, 2.0**20
    for _ in range(100):
        c = (low + high) / 2
        low, high = (low, c) if (c * logits).softmax(0)[0] >= weight else (c, high)
    return high
