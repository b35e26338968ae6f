import torch


def flat(matrix):
    """The first token's score of uniform causal attention."""
    return sum(1 / k for k in range(1, len(matrix) + 1)) / len(matrix)


def dilated(layers, base=2):
    """A mask a layer: itself, and the token `base` ** layer places back."""
    gap = torch.arange(2**layers)[:, None] - torch.arange(2**layers)
    return [(gap == 0) | (gap == base**k) for k in range(layers)]
