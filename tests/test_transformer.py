"""The course's decoder against transformers' RoPE and plain formulas."""

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from helpers.transformer import ENCODINGS, Decoder, alibi_slopes, rotate, sinusoidal


def test_rotate_agrees_with_transformers():
    x = torch.randn(1, 2, 12, 16, generator=torch.Generator().manual_seed(0))
    config = LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16, rope_theta=1e4)
    cos, sin = LlamaRotaryEmbedding(config)(x, torch.arange(12)[None])
    expected, _ = apply_rotary_pos_emb(x, x, cos, sin)
    torch.testing.assert_close(rotate(x, torch.arange(12)), expected, rtol=1e-5, atol=1e-5)


def test_rotation_depends_on_relative_position_alone():
    q, k = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    product = [rotate(q, torch.tensor([m + 5.0])) @ rotate(k, torch.tensor([m + 2.0])).T for m in (0, 7, 100)]
    torch.testing.assert_close(product[0], product[1])
    torch.testing.assert_close(product[0], product[2])


def test_sinusoidal_and_slopes_by_their_formulas():
    table = sinusoidal(torch.arange(5), 8)
    assert table[3, 2] == pytest.approx(float(torch.sin(torch.tensor(3 / 1e4 ** (2 / 8), dtype=torch.float64))))
    assert table[3, 3] == pytest.approx(float(torch.cos(torch.tensor(3 / 1e4 ** (2 / 8), dtype=torch.float64))))
    assert alibi_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_later_tokens_change_nothing(encoding):
    torch.manual_seed(0)
    decoder = Decoder(10, encoding=encoding).double()
    ids = torch.randint(0, 10, (2, 20))
    torch.testing.assert_close(decoder(ids)[:, :12], decoder(ids[:, :12]))


def test_window_cuts_the_reach_to_layers_times_window():
    torch.manual_seed(0)
    decoder = Decoder(10, layers=2, window=4).double()
    ids = torch.randint(0, 10, (1, 20))
    other = ids.clone()
    other[0, : 20 - 1 - 2 * 3] = (other[0, : 20 - 1 - 2 * 3] + 1) % 10
    assert torch.equal(decoder(ids)[0, -1], decoder(other)[0, -1])
    other[0, 20 - 1 - 2 * 3] = (ids[0, 20 - 1 - 2 * 3] + 1) % 10
    assert not torch.equal(decoder(ids)[0, -1], decoder(other)[0, -1])


@pytest.mark.parametrize("encoding", ["NoPE", "RoPE", "ALiBi"])
def test_equal_tokens_are_equal_at_every_position(encoding):
    """Zero by construction; a sinusoid added to the embedding breaks it."""
    torch.manual_seed(0)
    ids = torch.zeros(1, 30, dtype=torch.long)
    states = Decoder(3, encoding=encoding).double().states(ids)[0]
    assert (states - states[0]).abs().max() < 1e-12
    absolute = Decoder(3, encoding="APE").double().states(ids)[0]
    assert (absolute - absolute[0]).abs().max() > 0.1


def test_bad_input_is_named():
    for arguments, message in (({"encoding": "x"}, "encoding"), ({"window": 0}, "window"), ({"width": 30}, "width")):
        with pytest.raises(ValueError, match=message):
            Decoder(10, **arguments)
