"""What chapter 2 measures and draws, and the head atlas."""

import base64
import io
import json
import re

import networkx as nx
import numpy as np
import pytest
import torch
from conftest import watched
from PIL import Image
from tiny_models import tiny

from course.chapter2 import claims, figures, interventions, measures
from course.drawing.atlas import Atlas, Reading
from course.maths import bounds
from helpers import attention, data, graphs, probe

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


@pytest.fixture(scope="module")
def model():
    return tiny("llama")


# Measures -------------------------------------------------------------------------------------------


def test_connections_are_chapter_1s_graphs_and_row_stochastic():
    found = measures.connections(31)
    for matrix, _ in found.values():
        attention.influence([matrix])
    tree, root = found["tree"]
    assert torch.equal(
        tree > 0, torch.from_numpy(nx.to_numpy_array(graphs.family("tree", 31))) + torch.eye(31) > 0
    )
    assert max(nx.shortest_path_length(graphs.family("tree", 31), root).values()) == 4


def test_compared_graphs_have_their_closed_forms():
    table = measures.compare_connections(16, 0.5)
    assert table.loc["causal attention", "resistance"] == pytest.approx(2 / 31)  # a complete graph
    assert table.loc["previous token", ["hops", "resistance"]].tolist() == pytest.approx([30, 30])
    assert table.loc["tree", ["hops", "resistance"]].tolist() == pytest.approx([4, 4])
    assert table.loc["cycle", "resistance"] == pytest.approx(15 * 16 / 31)
    assert table.loc["previous token", "worst heard"] == 0


def test_the_worst_heard_token_of_causal_attention_is_beside_the_last():
    matrix, read = measures.connections(31)["causal attention"]
    row = attention.influence([matrix] * 16, 0.5)[read]
    assert int(row.argmin()) == 29
    assert measures.compare_connections(16, 0.5).loc[
        "causal attention", "worst heard"
    ] == pytest.approx(float(row[29]))


def test_the_theorems_decoder_with_the_identity_for_a_perceptron_reaches_the_bound_of_the_proof():
    """Its Jacobian is 2^L times the product, which autograd finds too."""
    flat = attention.uniform(attention.causal_mask(5))

    def run(v):
        for _ in range(3):
            v = 2 * (flat @ v + v)
        return v[-1]

    jacobian = torch.autograd.functional.jacobian(run, torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(jacobian, bounds.influence_bound([flat] * 3)[-1])
    given = claims.printed_constant_bounds()["numbers"].popitem()[1]
    assert given[1] == pytest.approx(float(jacobian[-1]))


def test_the_printed_sum_is_never_below_the_product():
    """The index too many loosens the bound: it adds terms to those of the product."""
    for seed in range(30):
        logits = torch.randn(
            4, 7, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        maps = logits.masked_fill(~attention.causal_mask(7), -torch.inf).softmax(-1)
        printed, product = (
            measures.printed_path_sum(maps),
            bounds.influence_bound(maps, slope=0)[-1],
        )
        assert (printed >= product - 1e-12).all()


def test_heard_counts_equal_shares():
    assert float(measures.heard(torch.full((8,), 1 / 8))) == pytest.approx(8)
    assert float(measures.heard(torch.eye(3)[0])) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sharpness", [0.0, 4.0, 16.0])
def test_the_bound_holds_with_attention_fixed_and_the_two_jacobians_agree_without_logits(
    sharpness, seed
):
    table = measures.bound_and_truth(sharpness, seed=seed)
    assert (table["attention fixed"] <= table["bound"] * (1 + 1e-9)).all()
    if sharpness == 0:
        np.testing.assert_allclose(table["true"], table["attention fixed"])
    scaled = measures.bound_and_truth(sharpness, seed, scaled=True)
    assert (scaled["attention fixed"] <= scaled["bound"] * (1 + 1e-9)).all()


def test_sequences_are_of_the_length_asked_for(model):
    for kind in measures.TEXTS:
        for first in (True, False):
            tokens = measures.sequence(model, kind, 20, first) if kind != "random" else None
            assert tokens is None or len(tokens) == 20
    assert measures.sequence(model, "repeated", 9, first=False).unique().numel() == 1
    with pytest.raises(ValueError, match="kind must be one of"):
        measures.sequence(model, "poem", 9)
    with pytest.raises(ValueError, match="n must be at most"):
        measures.sequence(model, "natural", 9999)


def test_the_table_of_sinks_counts_each_kind_of_head_above_the_threshold(model, monkeypatch):
    """Made-up scores of four heads: three sinks, two that look at themselves, one that looks at the token before it."""
    high = torch.tensor([[3, 2, 1]]).T > torch.arange(4)
    sink, own, previous = torch.where(high, 0.301, 0.299)[:, None]
    monkeypatch.setattr(
        probe, "head_scores", lambda *_: probe._HeadScores(sink, torch.stack([own, previous], -1))
    )
    row = measures.sink_table(model, 9, (0,)).iloc[0]
    assert row[["sink heads", "diagonal heads", "previous-token heads"]].tolist() == [
        0.75,
        0.5,
        0.25,
    ]


def test_equal_tokens_have_no_sink_in_any_model_with_relative_positions(model):
    """All values are equal, so that every state is, and attention depends on the distance alone."""
    tokens = measures.sequence(model, "repeated", 40, first=False)
    scores = probe.head_scores(model, tokens).sink.double()
    uniform = attention.sink_score(attention.uniform(attention.causal_mask(40)))
    assert float((scores - uniform).abs().max()) < 0.1


def test_stand_ins_are_the_mathematics_of_attention(model):
    tokens = measures.sequence(model, "natural", 12)
    maps = probe.attention_maps(model, tokens).double().mean(1)
    found = measures.influences(model, tokens)
    torch.testing.assert_close(found["rollout"], attention.influence(list(maps), 0.5)[-1])
    # with norms of one Theorem B.5's bound is a multiple of rollout: (A + I) = 2 (A / 2 + I / 2)
    bound = bounds.influence_bound(maps)[-1]
    torch.testing.assert_close(
        bound / found["rollout"], torch.full((12,), 64.0, dtype=torch.float64)
    )
    assert not torch.allclose(found["shuffled heads"], found["rollout"])


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma"])
def test_what_tokens_hand_over_adds_up_to_what_the_block_writes(kind):
    """The sum of what all tokens hand over is the attention block's output."""
    model = tiny(kind)
    tokens = measures.sequence(model, "natural", 12)
    block = model.model.model.layers[1].self_attn
    written, values = [], []
    hooks = [
        block.register_forward_hook(lambda module, arguments, out: written.append(out[0][0])),
        block.v_proj.register_forward_hook(lambda module, arguments, out: values.append(out[0])),
    ]
    maps = probe.attention_maps(model, tokens)[1]
    for hook in hooks:
        hook.remove()
    found = interventions.contributions(model, tokens)
    v = values[-1].view(12, -1, block.head_dim).transpose(0, 1)
    v = v.repeat_interleave(len(maps) // len(v), 0)
    handed = torch.stack(
        [v[h] @ block.o_proj.weight[:, h * 16 : (h + 1) * 16].T for h in range(len(maps))]
    )
    torch.testing.assert_close(found.values[1], handed.norm(dim=-1), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        torch.einsum("hij,hjd->id", maps, handed), written[-1], rtol=1e-3, atol=1e-5
    )
    torch.testing.assert_close(found.shares.sum(-1), torch.ones(3, 12))
    assert float(found.shares.triu(1).abs().max()) == 0


def test_a_hidden_token_changes_the_spread_only_where_it_is_seen(model):
    tokens = measures.sequence(model, "natural", 100)
    plain = measures.hiding(model, tokens)
    alike = measures.hiding(model, tokens, 98, since=100)
    torch.testing.assert_close(plain.spread, alike.spread, rtol=0.05, atol=1e-3)
    assert plain.loss == pytest.approx(alike.loss, abs=0.05)
    with pytest.raises(ValueError, match="token must be"):
        measures.hiding(model, tokens, 101)
    with pytest.raises(ValueError, match="the length of tokens must be"):
        measures.hiding(model, tokens[:20])


def test_the_later_loss_is_that_of_the_tokens_after_the_replaced_one(model):
    tokens = measures.sequence(model, "natural", measures.AFTER + 8)
    logits = model.model(tokens[None]).logits[0].log_softmax(-1)
    own = [
        -float(logits[k - 1, tokens[k]]) for k in range(len(tokens))
    ]  # of the token at place k, from the one before
    assert measures.hiding(model, tokens).loss == pytest.approx(
        sum(own[measures.AFTER + 1 :]) / 7, rel=1e-5
    )


def test_the_heir_is_the_token_with_the_largest_state_beside_the_hidden_one(model):
    tokens = measures.sequence(model, "natural", 100)
    found = measures.hiding(model, tokens, 1)
    assert found.heir != 1
    middle = found.norms[len(found.norms) // 2].clone()
    middle[0] = 0
    assert int(middle.argmax()) + 1 == found.heir


def test_committed_tables_are_whole_and_another_model_is_measured(model, monkeypatch):
    sensitivities, hidden = data.table("sensitivity_smollm2"), data.table("hiding_smollm2")
    norms = sensitivities[[f"token {i}" for i in range(1, measures.TOKENS + 1)]]
    assert bool((norms > 0).all(axis=None))
    networks = sensitivities.groupby("network").text.nunique()
    assert networks[["trained", "seed 0"]].tolist() == [len(measures.NAMES)] * 2
    assert len(hidden) == len(measures.HIDDEN)
    byte = torch.arange(1, 200)
    monkeypatch.setattr(
        measures, "texts", lambda model, n: {name: byte[:n] for name in measures.NAMES}
    )
    monkeypatch.setattr(measures, "HIDDEN", [{"text": "harbour", "token": 1, "since": 1}])
    found = measures.hiding_table(model)
    assert found["loss"].tolist() == [
        round(measures.hiding(model, byte[: measures.LENGTH], 1, 1).loss, 4)
    ]
    table = measures.profiles(model)
    own = measures.sensitivity("prose 2", "trained", measures.FEW, model)
    assert measures.profile_of(table, "prose 2").tolist() == pytest.approx(list(own.values()))


@pytest.mark.slow
def test_the_committed_norms_are_those_of_the_embedded_model(smollm2):
    exact = measures.profile_of(measures.profiles(smollm2))
    found = probe.sensitivity(
        smollm2, measures.texts(smollm2, measures.TOKENS)["harbour"], probes=12
    )
    assert ((found.norms - exact).abs() < 5 * found.errors + 0.02 * exact).all()


# Figures ----------------------------------------------------------------------------------------------


def test_what_a_graph_reaches_is_what_the_sentence_says():
    window = attention.uniform(attention.window_mask(10, 4))
    assert "After 2 layers, 7 of 10 tokens influence the last token" in figures.graph(window, 2)[1]
    assert (
        "After 1 layer, 10 of 10 tokens influence the last token"
        in figures.graph(attention.uniform(attention.causal_mask(10)))[1]
    )
    blocks = torch.block_diag(*[attention.uniform(attention.causal_mask(k)) for k in (4, 4, 2)])
    assert (
        "2 of 10 tokens influence the last token. Token 9 influences it most"
        in figures.graph(blocks, 3)[1]
    )


def test_causal_attention_falls_behind_the_tree_at_one_value_of_the_layers_times_what_each_gives_away():
    given_away = [measures.falls_behind(kept) * (1 - kept) for kept in (0.5, 0.8, 0.9, 0.95)]
    assert max(given_away) - min(given_away) < 0.25
    assert all(3 < each < 4 for each in given_away)


def test_a_fit_of_an_average_reads_the_share_of_equal_values_and_not_of_turned_ones():
    """On layers whose share is known; layer by layer it is read rightly in both cases."""
    for kept in (0.5, 0.8):
        for mixed, low, high in ((False, kept - 1e-9, kept + 1e-9), (True, kept + 0.1, 1)):
            felt, read = measures.of_known_share(kept, mixed)
            assert low <= measures.share_kept(felt, 30)[0] <= high
            assert read.mean() == pytest.approx(kept, abs=0.02)


def test_the_squares_of_random_values_add_and_those_of_equal_values_do_not():
    flat = attention.uniform(attention.causal_mask(48))
    for mixed in (True, False):
        felt = measures.of_known_share(0.75, mixed)[0]
        off = (
            (measures.averaged(flat, [0.75] * 30, squared=mixed)[-1] / (felt / felt.sum()))
            .log()
            .abs()
        )
        assert off.max() < (0.1 if mixed else 1e-9)
    mixed = attention.influence([flat] * 30, 0.75)[-1]
    torch.testing.assert_close(measures.averaged(flat, [0.75] * 30)[-1], mixed)


def test_the_measured_shares_lose_the_late_tokens_to_an_average_and_not_to_the_squares_or_the_jacobian():
    flat = attention.uniform(attention.causal_mask(48))
    for text in measures.NAMES:
        shares = measures.kept_shares(text)
        assert 9 < float((1 - shares).sum()) < 10
        felt = measures.profile_of(data.table("sensitivity_smollm2"), text, "seed 0")
        average, squares = (
            measures.averaged(flat, shares, squared)[-1].min() for squared in (False, True)
        )
        assert 100 * average < squares < felt.min() / felt.sum() < 20 * squares


def test_what_a_layer_leaves_of_a_state_is_read_off_that_layer_alone(model):
    shares = measures.kept_by_layer(model, torch.arange(1, 13), directions=8)
    assert shares.shape == (len(model.model.base_model.layers),)
    assert ((shares > 0) & (shares < 1)).all()


def test_the_brake_with_nothing_changed_or_the_token_hidden_is_the_table_of_hiding(model):
    ids = torch.arange(1, 200)[: measures.LENGTH]
    for change, token in (("nothing", None), ("mass", 1)):
        found = measures.hiding(model, ids, token, measures.LATE)
        loss, spread = measures.brake(model, ids, change)
        assert loss == pytest.approx(found.loss, rel=1e-3)
        assert spread == pytest.approx(float(found.spread[-1]), rel=2e-2)
    other = {
        change: measures.brake(model, ids, change)[0]
        for change in ("nothing", "value", "heads", "heads 0.5")
    }
    assert len({round(x, 6) for x in other.values()}) == 4
    with pytest.raises(ValueError, match="change must be"):
        measures.brake(model, ids, "all")


# The head atlas ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def atlas(model):
    return Atlas(measures.reader(model), "all heads at once", "All heads.")


def payload(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])


def test_the_sheet_holds_every_map(atlas):
    data = payload(atlas.still())
    sheet = np.array(Image.open(io.BytesIO(base64.b64decode(data["sheet"].split(",")[1]))))
    n = len(data["words"])
    assert sheet.shape == (3 * n, data["columns"] * n)
    for layer, head in ((0, 0), (1, 3), (2, 2)):
        tile = sheet[layer * n : (layer + 1) * n, head * n : (head + 1) * n] / 255
        np.testing.assert_allclose(tile**2, atlas.maps[layer, head], atol=0.005)
    assert data["words"][0] == "(first)"


def test_scores_of_the_atlas_are_those_of_attention(atlas):
    data = payload(atlas.still())
    expected = [
        attention.sink_score(atlas.maps),
        attention.slash_score(atlas.maps, 1),
        attention.slash_score(atlas.maps, 0),
    ]
    for found, scores in zip(data["sorts"], expected, strict=True):
        np.testing.assert_allclose(found["scores"], scores.flatten(), atol=5.1e-4)
    ranked = atlas.ranked("previous-token score")
    values = expected[1].flatten()[ranked]
    assert (values[:-1] >= values[1:]).all()


def test_two_builds_of_an_atlas_are_equal_and_small(atlas):
    assert atlas.still() == atlas.still()
    assert len(atlas.still()) < 1_000_000


def test_the_live_atlas_reads_another_prompt_and_names_a_long_one(model):
    atlas = Atlas(measures.reader(model), "short", "All heads.")
    box = atlas.live()
    prompt, sort, head, token, status, body, _ = box.children
    assert len(token.options) == 6
    prompt.value = "another"
    assert len(token.options) == 8
    assert "<img" in body.value
    sort.value = "diagonal score"
    assert head.index == 0
    token.index = 2
    assert "(3) looks at" in status.value
    prompt.value = "x" * 60
    assert "prompt must have 2 to 40 tokens, not 61" in status.value
    assert len(atlas.words) == 8


def test_bad_arguments_of_the_atlas_are_named(model):
    read = measures.reader(model)
    for prompt, caption, words in (
        ("", "c", "prompt must be a string"),
        ("p", "", "caption must be a string"),
        ("p" * 50, "c", "2 to 40"),
    ):
        with pytest.raises(ValueError, match=words):
            Atlas(read, prompt, caption)
    with pytest.raises(ValueError, match="row-stochastic"):
        Atlas(lambda _: Reading(["a", "b"], torch.ones(1, 1, 2, 2)), "p", "c")


def test_the_atlas_by_keyboard_and_pointer(atlas, chromium):
    page = watched(chromium.new_context(), "data:")
    page.set_content(f"<!doctype html><html lang=en><title>atlas</title><body>{atlas.still()}")
    finding = page.locator(".atlas-finding")
    page.locator(".atlas-tokens button").nth(3).focus()
    assert "(4) looks at" in finding.text_content()
    page.keyboard.press("ArrowRight")
    assert "(5) looks at" in finding.text_content()
    page.locator(".atlas-tokens button").nth(7).hover()
    assert "(8) looks at" in finding.text_content()
    page.locator("select").first.select_option("diagonal score")
    best = atlas.heads[atlas.ranked("diagonal score")[0]]
    assert finding.text_content().startswith(best)
    assert (
        page.locator("canvas")
        .first.get_attribute("aria-label")
        .startswith("Map of the head. " + best)
    )
    drawn = page.evaluate(
        "() => document.querySelector('canvas').getContext('2d').getImageData(0, 0, 200, 200).data.some((x) => x > 0)"
    )
    assert drawn
    assert page.errors == page.foreign == []
    page.context.close()
