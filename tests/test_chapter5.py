"""Chapter 5 measures what it says: against the models' own attention, closed forms and constructed heads."""

import pytest
import torch
from tiny_models import tiny

from course.chapter5 import claims, measures
from course.runs import slashes
from helpers import data, probe, rope
from helpers.transformer import Decoder

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

IDS = torch.tensor([0, 5, 9, 200, 31, 7, 7, 7, 64, 9, 5, 12])


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma"])
def test_queries_and_keys_give_the_models_own_attention(kind):
    model = tiny(kind)
    theta = probe.rotary_frequencies(model)
    maps = probe.attention_maps(model, IDS)
    for (q, k), expected in zip(probe.queries_and_keys(model, IDS), maps, strict=True):
        torch.testing.assert_close(
            measures.weights(q, k, theta), expected.float(), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    "kind", ["llama", "gemma3_text"]
)  # one set of frequencies, and one for each kind of layer
def test_heads_agree_with_the_streaming_scores(kind):
    model = tiny(kind, num_hidden_layers=2)
    offsets = range(measures.OFFSETS)
    expected = probe.head_scores(model, IDS, offsets=tuple(offsets)).slash
    torch.testing.assert_close(measures.heads(model, IDS).slashes, expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_rotary_positions_is_refused():
    for refuses in (probe.rotary_frequencies, measures.frequencies):
        with pytest.raises(ValueError, match="rotary"):
            refuses(tiny("gpt2"))
    with (
        pytest.raises(ValueError, match="self_attn"),
        probe.patch_queries_and_keys(tiny("gpt2"), lambda layer, name, x: x),
    ):
        pass


def test_alterations_end_with_their_block_and_change_what_they_say():
    model = tiny("llama")
    before, half = probe.loss(model, IDS), len(probe.rotary_frequencies(model))
    with probe.patch_queries_and_keys(model, lambda layer, name, x: x[..., torch.arange(2 * half)]):
        assert probe.loss(model, IDS) == pytest.approx(before)
    with probe.patch_queries_and_keys(model, measures.silence(range(half), half)):
        q, _ = probe.queries_and_keys(model, IDS)[1]
        assert not q.any()
        uniform = measures.heads(model, IDS).slashes[:, :, 0]
    torch.testing.assert_close(
        uniform, torch.full_like(uniform, sum(1 / n for n in range(1, 13)) / 12)
    )
    assert probe.loss(model, IDS) == pytest.approx(before)


def test_loss_is_the_models_own():
    model = tiny("llama")
    expected = model.model(IDS[None], labels=IDS[None]).loss
    assert probe.loss(model, IDS) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_parts_of_the_logits_come_from_their_pairs_alone():
    """A head made by one quarter of the pairs lives in this quarter, and dies without it."""
    theta, n = rope.frequencies(32, 1e4), 40
    vector = torch.zeros(1, 32, dtype=torch.float64)
    vector[0, :4] = 6.0
    q = vector.expand(1, n, -1)
    k = rope.rotate(vector, torch.tensor([1.0]), theta).expand(1, n, -1)
    score = {
        name: float(measures.weights(q, k, theta, pairs)[0].diagonal(-1).mean())
        for name, pairs in {"all": None, "fastest": range(4), "rest": range(4, 16)}.items()
    }
    assert score["all"] == pytest.approx(score["fastest"])
    assert score["all"] > 0.9
    assert score["rest"] == pytest.approx(sum(1 / i for i in range(2, n + 1)) / (n - 1))


def test_concentration_of_known_matrices():
    one = torch.outer(torch.arange(1.0, 8.0), torch.ones(5))
    assert slashes.concentration(one) == (pytest.approx(1.0), 1)
    equal = torch.cat([torch.ones(1, 4), torch.eye(4)])  # the first row is left out
    assert slashes.concentration(equal) == (pytest.approx(0.25), 4)


def test_pair_norms_leave_the_first_token_out():
    x = torch.zeros(1, 3, 4)
    x[0, 0] = 100
    x[0, 1:, 0], x[0, 1:, 2] = 3, 4
    assert measures.pair_norms(x).tolist() == [[5, 0]]


def test_lead_and_its_error_by_the_closed_form():
    mean, error = measures.lead([0, 500], count=4000)
    exact = 2 * rope.cosine_sum(torch.tensor([0, 500]), 128, 1e4)
    assert ((mean - exact).abs() < 5 * error).all()
    assert (error > 0).all()


def test_copying_asks_for_the_token_at_the_offset_and_hides_half_of_the_vocabulary():
    generator = torch.Generator().manual_seed(0)
    for kind, low, high in (("skewed", 0, 32), ("uniform", 0, 32), ("unseen", 32, 64)):
        ids, targets = slashes.copying(generator, offset=3, kind=kind, batch=50)
        assert ids.min() >= low
        assert ids.max() < high
        assert torch.equal(targets[:, 3:], ids[:, :-3])
        assert (targets[:, :3] == -100).all()
    assert (slashes.copying(generator, offset=1, batch=50)[0] == 0).float().mean() > 0.2


def test_spectra_turn_the_pairs_they_name():
    found = {name: slashes.shallow(name, 0).blocks[0].frequencies for name in slashes.SPECTRA}
    theta = rope.frequencies(32, 1e4)
    assert torch.equal(found["RoPE"], theta)
    assert torch.equal(found["0.25-RoPE"], rope.frequencies(32, 1e4, 0.25))
    assert torch.equal(sum(found[name] for name in ("0.25-RoPE", *slashes.QUARTERS)), theta)
    assert torch.equal(found["slowest quarter"], torch.where(torch.arange(16) < 12, 0.0, theta))
    assert found["NoPE"] is None
    with pytest.raises(ValueError, match="spectrum"):
        slashes.shallow("ALiBi", 0)


def test_a_row_of_the_table_is_repeated_from_its_seed():
    """The committed row of NoPE, seed 0, offset 1, from 20 steps on the way: the untrained score is exact."""
    rows = data.table("slash_emergence")
    for spectrum, shared in (("NoPE", 0), ("NoPE", 1), ("RoPE", 3)):
        row = rows[
            (rows.spectrum == spectrum)
            & (rows.shared == shared)
            & (rows.offset == 1)
            & (rows.seed == 0)
        ].iloc[0]
        decoder = slashes.shallow(spectrum, 0, shared)
        assert slashes.slash(decoder, 1, "skewed") == pytest.approx(row.slash_untrained, abs=2e-5)
    assert len(rows) == (len(slashes.SPECTRA) + 3 + 1 + 2) * 2 * 5


def test_one_layer_without_positions_cannot_see_the_order():
    """The control of the emergence experiment fails by construction, whatever the weights."""
    torch.manual_seed(0)
    decoder = Decoder(64, width=32, heads=2, layers=1, encoding="NoPE").double()
    ids = torch.randint(0, 64, (1, 12))
    other = ids.clone()
    other[0, :11] = ids[0, torch.randperm(11)]
    torch.testing.assert_close(decoder(ids)[0, -1], decoder(other)[0, -1])


def test_maps_of_the_decoder_are_those_that_it_uses():
    torch.manual_seed(0)
    decoder = Decoder(64, width=32, heads=2, layers=2, window=5).double()
    ids = torch.randint(0, 64, (2, 12))
    maps = decoder.attention(ids)
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 2, 2, 12).double())
    assert (maps.tril(-5) == 0).all()
    block, x = decoder.blocks[0], decoder.embed(ids)
    values = block.project(x)[2]
    z = (maps[0] @ values).transpose(1, 2).reshape(2, 12, -1)
    after = x + block.out(z)
    torch.testing.assert_close(block(x), after + block.mlp(block.norm2(after)))


def test_two_layers_without_positions_make_a_diagonal_head():
    """The construction as a decoder would do it: matrices for queries, keys and values, on any sequence after BOS."""
    n, scale = 20, 8 * 20**2
    ids = torch.cat(
        [torch.zeros(1), torch.randint(1, 5, (n - 1,), generator=torch.Generator().manual_seed(0))]
    ).long()
    x = torch.nn.functional.one_hot(ids, 6).double()  # entry 5 is free
    brings = torch.zeros(6, 6).double()
    brings[0, 5] = 1
    x = x + measures.causal((x * 0) @ x.mT) @ x @ brings
    query, key = torch.zeros(2, 6, 1).double()
    query[:5], key[5] = -scale, 1
    weights = measures.causal((x @ query) @ (x @ key).mT)
    torch.testing.assert_close(weights, measures.second_layer_without_positions(n, scale))
    assert weights.diagonal().min() > 0.999
    assert float(
        measures.second_layer_without_positions(64, 2 * 64**2).diagonal().min()
    ) == pytest.approx(0.870, abs=5e-4)
    unmarked = measures.second_layer_without_positions(n, scale, marked=False)
    torch.testing.assert_close(unmarked.diagonal(), 1 / torch.arange(1.0, n + 1).double())


def test_silencing_some_heads_leaves_the_others_as_they_were():
    model = tiny("llama")
    half, (layers, heads) = (
        len(probe.rotary_frequencies(model)),
        measures.heads(model, IDS).slashes.shape[:2],
    )
    where = torch.zeros(layers, heads, dtype=torch.bool)
    where[0, 1] = True
    before = probe.queries_and_keys(model, IDS)[0][0]
    with probe.patch_queries_and_keys(model, measures.silence(range(half), half, where)):
        after = probe.queries_and_keys(model, IDS)[0][0]
    assert not after[1].any()
    torch.testing.assert_close(after[0], before[0])


def test_heads_are_parted_by_their_scores_and_the_control_is_as_large():
    found = measures.Heads(*(torch.zeros(2, 3) for _ in range(6)))._replace(
        slashes=torch.rand(2, 3, 6) * 0.1
    )
    found.slashes[0, 1, 2] = 0.5
    inside, outside, control = (
        measures.silenced_heads(found, 0.3, where) for where in measures.PLACES
    )
    assert inside.nonzero().tolist() == [[0, 1]]
    assert torch.equal(inside, ~outside)
    assert int(control.sum()) == 1
    assert not (control & inside).any()
    with pytest.raises(ValueError, match="where"):
        measures.silenced_heads(found, 0.3, "elsewhere")


def test_a_shared_vector_moves_all_embeddings_alike():
    plain, shared = slashes.shallow("RoPE", 1), slashes.shallow("RoPE", 1, shared=2.0)
    moved = shared.embedding.weight - plain.embedding.weight
    torch.testing.assert_close(moved, slashes.shared_vector(1, 2.0).expand_as(moved))
    first, second = (slashes.projected(each, 0, "unseen")["queries"] for each in (plain, shared))
    assert slashes.concentration(second)[0] > slashes.concentration(first)[0]


def test_shipped_models_have_the_layers_that_the_lesson_names():
    """Gemma 4 turns a quarter of the pairs in its global layers; SmolLM3 and Llama 4 have layers without positions."""
    from transformers import Gemma4TextConfig, Llama4TextConfig, SmolLM3Config

    full = Gemma4TextConfig().rope_parameters["full_attention"]
    assert (full["rope_type"], full["partial_rotary_factor"], full["rope_theta"]) == (
        "proportional",
        0.25,
        1e6,
    )
    for config in (SmolLM3Config(), Llama4TextConfig()):
        assert config.no_rope_layers[:4] == [1, 1, 1, 0]


def test_a_quarter_of_turning_pairs_cannot_give_a_negative_sum():
    theta = rope.frequencies(64, 1e6, 0.25)
    sums = (torch.arange(200_000)[:, None] * theta).cos().sum(-1)
    assert float(sums.min()) >= 32 - 2 * 8


def test_what_silencing_costs_has_the_same_columns_in_the_table_and_of_a_model():
    model, (setting, *_) = tiny("llama"), measures.silenced_table().to_dict("records")
    found = measures.silenced_in(model, measures.heads(model, IDS), 255, 0.0, "inside")
    assert [*setting] == ["start", "threshold", "where", *found]
    assert set(measures.BAND_NAMES) < set(claims.silenced_quarters()["outside"])
    between = claims.fast_pairs_are_noise_between_the_ends(model)["quarters"]
    assert [*between.index] == ["all other layers", "all but three at each end"]


def test_the_least_bases_pass_the_ones_just_below_do_not_and_a_later_recomputation_agrees():
    reported = data.table("reported/rope_base_bound").set_index("context")
    again = reported["su"].fillna(reported["published"])
    for context, base in measures.smallest_bases().items():
        assert rope.first_negative(128, base, context) is None
        assert rope.first_negative(128, base * (1 - 2e-6), context) is not None
        assert f"{base:.1e}" == f"{again[context]:.1e}"
