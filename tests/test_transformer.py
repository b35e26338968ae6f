"""The course's decoder: its encodings, its window, and what it may not see."""

import functools
import itertools
import math

import numpy as np
import pytest
import torch

from helpers import rope
from helpers.transformer import _ENCODINGS as ENCODINGS
from helpers.transformer import Block, Decoder, sinusoidal


def test_the_sinusoid_is_its_formula():
    table = sinusoidal(torch.arange(5), 8)
    assert table[3, 2:4].tolist() == pytest.approx(
        [math.sin(3 / 1e4 ** (2 / 8)), math.cos(3 / 1e4 ** (2 / 8))]
    )
    decoder, ids = Decoder(10, width=8, heads=2, encoding="APE"), torch.tensor([[1, 1, 4, 0, 1]])
    torch.testing.assert_close(decoder.embed(ids)[0], decoder.embedding(ids)[0] + table.float())


def test_the_base_and_the_share_that_turns_are_those_of_the_rotation():
    block = Decoder(10, width=16, heads=2, base=1e2, turning=0.5).blocks[0]
    assert torch.equal(block.frequencies, rope.frequencies(8, 1e2, 0.5))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_later_tokens_change_nothing(encoding):
    torch.manual_seed(0)
    decoder = Decoder(10, encoding=encoding).double()
    ids = torch.randint(0, 10, (2, 20))
    torch.testing.assert_close(decoder(ids)[:, :12], decoder(ids[:, :12]))


@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_added_to_the_logits_is_the_formula(encoding, window):
    """Press et al. (2022), section 3: minus 2^(-8 h / H) times the distance back, h from 1; later tokens are hidden."""
    heads, n = 4, 6
    found = (
        Decoder(10, heads=heads, encoding=encoding, window=window)
        .blocks[0]
        .bias(n, torch.zeros(1).double())
    )
    for h, i, j in itertools.product(range(heads), range(n), range(n)):
        seen = j <= i and (window is None or i - j < window)
        slope = 2 ** (-8 * (h + 1) / heads) if encoding == "ALiBi" else 0.0
        assert found.expand(heads, n, n)[h, i, j] == (-slope * (i - j) if seen else -math.inf)


def test_a_layer_is_attention_with_that_bias_by_hand():
    """One head of one layer, written out in NumPy: the sign of ALiBi counts, near tokens weigh more."""
    torch.manual_seed(0)
    decoder = Decoder(10, width=8, heads=2, layers=1, encoding="ALiBi", norm=False).double()
    ids = torch.randint(0, 10, (1, 7))
    block, x = decoder.blocks[0], decoder.embedding(ids)[0].detach().numpy()
    q, k, v = (x @ block.qkv.weight.detach().numpy().T).reshape(7, 3, 2, 4).transpose(1, 2, 0, 3)
    heads = []
    for h, slope in enumerate((2.0**-4, 2.0**-8)):
        rows = []
        for i in range(7):
            logits = np.array([q[h, i] @ k[h, j] / 2 - slope * (i - j) for j in range(i + 1)])
            weights = np.exp(logits) / np.exp(logits).sum()
            rows.append(weights @ v[h, : i + 1])
        heads.append(np.array(rows))
    x = x + np.concatenate(heads, axis=1) @ block.out.weight.detach().numpy().T
    x = torch.from_numpy(x)
    torch.testing.assert_close(decoder.states(ids)[0], x + block.mlp(x))


def test_weights_are_an_argument_and_softmax_is_what_it_was():
    """A function in place of softmax is used in each layer; with softmax itself nothing changes."""
    ids = torch.randint(0, 10, (2, 9), generator=torch.Generator().manual_seed(0))
    found = {}
    for name, attention in {
        "none": None,
        "softmax": lambda logits: logits.softmax(-1),
        "uniform": lambda logits: (logits * 0).nan_to_num(-math.inf).softmax(-1),
    }.items():
        torch.manual_seed(0)
        decoder = Decoder(
            10, encoding="ALiBi", block=functools.partial(Block, attention=attention)
        ).double()
        found[name] = decoder(ids), decoder.attention(ids)
    for whole, given in zip(found["none"], found["softmax"], strict=True):
        torch.testing.assert_close(whole, given)
    expected = torch.ones(9, 9).double().tril() / torch.arange(1, 10)[:, None]
    torch.testing.assert_close(found["uniform"][1], expected.expand_as(found["uniform"][1]))
    assert (found["uniform"][0] - found["none"][0]).abs().max() > 1e-2


def test_a_module_has_weights_of_its_own_in_every_layer():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, logits):
            return (self.scale * logits).softmax(-1)

    given = Scaled()
    decoder = Decoder(10, layers=2, block=functools.partial(Block, attention=given))
    scales = [block.weigh.scale for block in decoder.blocks]
    assert scales[0] is not scales[1]
    assert given.scale is not scales[0]
    decoder(torch.randint(0, 10, (1, 5))).sum().backward()
    assert all(scale.grad is not None for scale in scales)


def test_layers_are_numbered_from_one_and_the_perceptron_has_its_width():
    decoder = Decoder(10, width=16, heads=2, layers=2, block=functools.partial(Block, hidden=24))
    assert [block.layer for block in decoder.blocks] == [1, 2]
    assert [block.mlp[0].out_features for block in decoder.blocks] == [24, 24]
