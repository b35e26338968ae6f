import functools
import math

import torch
from torch import nn

from course.runs import protocol

softmax = functools.partial(torch.softmax, dim=-1)


class Learned(nn.Module):
    """A learned scale for each head."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(protocol.BUDGET["heads"], 1, 1))

    def forward(self, logits):
        hidden = torch.isneginf(logits)  # minus infinity times a scale has no gradient
        return (
            (logits.masked_fill(hidden, 0) * self.scale.exp())
            .masked_fill(hidden, -math.inf)
            .softmax(-1)
        )


def entry(weigh, name="mine", prediction="inconclusive", seeds=1):
    return name, weigh, prediction, seeds
