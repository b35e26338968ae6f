"""What a page defines in the open is what the package computes: its cells are executed and compared on random input."""

import functools
import types
from fractions import Fraction

import networkx as nx
import pytest
import torch
from conftest import defined
from scipy import stats
from tiny_models import tiny
from transformers import AutoModelForCausalLM

from course.chapter3.measures import ones
from course.chapter5 import claims as slash_claims
from course.chapter5 import measures as slash_maps
from course.chapter6 import measures as difference
from course.maths import constructions, counting, rewiring, rope_scaling
from course.runs import comparison, entries, evaluation, protocol
from course.training import tasks
from helpers import attention, collapse, data, differential, graphs, probe, rope, style
from helpers.transformer import Decoder


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_attention_on_the_page_is_that_of_pytorch():
    page = defined(2, "attend-cell")
    q, k, v = torch.randn(3, 9, 4)
    seen = attention.causal_mask(9)
    out, weights = page["attend"](q, k, v, seen)
    torch.testing.assert_close(
        out,
        torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[
            0
        ],
    )
    torch.testing.assert_close(page["attend"](0 * q, k, v, seen)[1], attention.uniform(seen))
    assert weights.triu(1).abs().max() == 0


@pytest.mark.parametrize("kept", [0.0, 0.3])
def test_who_is_heard_on_the_page_is_the_influence_of_the_package(kept):
    page = defined(2, "heard-cell")
    A = torch.rand(7, 7, dtype=torch.float64).tril().softmax(-1)
    A = A.tril() / A.tril().sum(1, keepdim=True)
    torch.testing.assert_close(page["influence"](A, 5, kept), attention.influence([A] * 5, kept))
    torch.testing.assert_close(page["uniform"](7), attention.uniform(attention.causal_mask(7)))


def test_held_fixed_the_jacobian_is_the_product_of_the_package():
    seen = attention.causal_mask(12)
    page = defined(2, "bound-cell", "bound-frame", mask=seen)
    held, free = (functools.partial(page["jacobian"], held=held) for held in (True, False))
    for sharpness in (0.0, 8.0):
        torch.testing.assert_close(
            held(sharpness), page["deep"](page["tokens"], sharpness, True)[1]
        )
    torch.testing.assert_close(free(0.0), held(0.0))
    assert (free(8.0) > 2 * held(8.0)).any()


def test_averages_resistance_and_the_message_step_are_those_of_the_package():
    graph = nx.gnm_random_graph(9, 16, seed=3)
    page = defined(1, "step-cell", "resistance-cell")
    torch.testing.assert_close(
        page["averages"](graph).double(), graphs.adjacency(graph, "row", loops=True)
    )
    torch.testing.assert_close(page["resistance"](graph), rewiring.effective_resistance(graph))
    step = defined(1, "fdedd698", averages=page["averages"], tree=nx.balanced_tree(2, 3))["layer"]
    W, x, A = (
        graphs.orthogonal_weights(1, 4),
        torch.randn(9, 4, dtype=torch.float64),
        graphs.adjacency(graph, "row"),
    )
    torch.testing.assert_close(step(x, A, W[0, 0].T, W[0, 1].T), graphs.propagate(x, A, W))


def test_a_linear_read_out_finds_what_a_linear_layer_keeps_and_nothing_of_what_never_arrived():
    known, path = defined(1, "whom-read", graphs=graphs)["known"], nx.path_graph(6)
    assert known(path, 1, 5) > 0.3
    assert abs(known(path, 1, 0)) < 0.3


def test_the_edge_that_the_page_finds_is_that_of_the_package():
    page = defined(1, "step-cell", "resistance-cell", "best-edge")
    graph = graphs.family("grid", 9)
    found = page["with_edges"](graph, [page["best_edge"](graph)])
    assert graphs.total_resistance(found) == pytest.approx(
        graphs.total_resistance(rewiring.rewire(graph, "gtr", 1))
    )


@pytest.mark.parametrize(
    "name", ["no position", "ALiBi, slope 0.5", "rotating by π", "rotating by 1"]
)
def test_what_a_repeated_token_moves_on_the_page_is_that_of_the_package(name):
    page, values = defined(3, "head-cell"), torch.randn(40, dtype=torch.float64)
    change, _ = constructions.repeat_last(page["heads"][name], values)
    assert float(page["moved"](page["heads"][name], values)) == pytest.approx(
        float(change), rel=1e-5
    )


def test_the_page_finds_the_collisions_of_the_package():
    page = defined(3, "fd962c7f")
    for kind, dtype in page["types"].items():
        for f in page["functions"].values():
            assert page["first_collision"](f, dtype) == constructions.first_collision(f, kind)


def test_a_window_makes_ones_equal_on_the_page_and_nothing_else():
    page = defined(3, "window-cell", "window-frame")
    assert page["moved"]["ones, window 8"][-1] < 1e-12 < page["moved"]["varied, window 8"][-1]


def test_lesson_5_rotates_scores_and_prices_as_the_package():
    generator = torch.Generator().manual_seed(3)
    x, key = torch.randn(2, 5, 128, generator=generator, dtype=torch.float64)
    found = defined(
        5,
        "c5rot001",
        "c5score0",
        "d5t00001",
        "c5price0",
        "c5least0",
        "c5slow00",
        q=x[0],
        one=key[0],
    )
    theta, places = rope.frequencies(128, 1e4), torch.tensor([0, 3, 50, 700, 4095])
    torch.testing.assert_close(found["theta"], theta)
    turned = rope.rotate(x, places, theta)
    torch.testing.assert_close(found["rotate"](x, places[:, None]), turned)
    alone = [turned[k] @ key[0] for k in range(5)]
    same = torch.stack([found["score"](x[k], key[0], places[k : k + 1])[0] for k in range(5)])
    torch.testing.assert_close(same, torch.stack(alone))
    for pairs, n in ((1, 32), (8, 4096), (64, 512)):
        assert found["price"](pairs, n) == pytest.approx(
            rope_scaling.slash_scale(theta[:pairs], n), rel=1e-6
        )
    for base, n, said in ((4_300, 1_024, 0.2), (4_350, 1_024, -0.2)):  # as the text has it
        assert round(found["least_sum"](base, n), 1) == said
        assert (found["least_sum"](base, n) < 0) == (rope.first_negative(128, base, n) is not None)
    for column, method in (("linear", "linear"), ("NTK-aware", "ntk"), ("YaRN", "yarn-paper")):
        scaled = rope_scaling.scaled_frequencies(method, 128, 1e4, 8, 4096)
        torch.testing.assert_close(torch.tensor(found["speed"][column].to_numpy()), scaled / theta)
    maps = found["second_layer"](found["marked"])
    assert maps.sum(-1).tolist() == pytest.approx([1.0] * 64)


def test_lesson_4_counts_as_the_package():
    found = defined(
        4, "c4x00005", "8d3673e8", "df7553ce", "a8118dae", "c4wide00", Fraction=Fraction
    )
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
        for lead in (0, 2, 6):
            assert found["reach"](dtype, lead) == counting.first_token_limit(name, lead)
    change = found["change"]
    assert (change.loc["no mask"] < 1e-12).tolist() == [True, True, False]
    assert (change.loc["causal mask"] < 1e-12).tolist() == [False, True, False]
    assert found["right"](64)[0] == 1 > found["right"](63)[0]
    assert found["right"](63)[1] == 1
    codes = torch.nn.functional.normalize(torch.randn(64, 63), dim=1)
    exact = found["exact"].double()
    torch.testing.assert_close(
        counting.solved_histogram(found["tokens"], codes), exact, atol=1e-6, rtol=0
    )


def test_lab_3_measures_what_one_more_token_moves_trained_and_untrained():
    model = tiny("llama")
    given = {"exact": model, "ids": ones(model, 65), "AutoModelForCausalLM": AutoModelForCausalLM}
    apart = defined(3, "prefix-cell", page="lab", **given)["apart"]
    known = collapse.last_token_distance(model, [1, 4, 16, 63])
    torch.testing.assert_close(
        apart["trained"][[1, 4, 16, 63]].double(), known.double(), rtol=1e-3, atol=1e-4
    )
    assert (
        apart["random weights"][1] < 0.9 * apart["trained"][1]
        or apart["random weights"][1] > 1.1 * apart["trained"][1]
    )


ON_A_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=ON_A_GPU)])
def test_cells_ask_a_model_wherever_it_lies(place):
    torch.set_default_dtype(torch.float32)
    model, states = tiny("llama"), torch.randn(500, 4, device=place)
    model.model.to(place)
    defined(2, "felt-cell", page="lab", model=model, tokens=ones(model, 9), norms=torch.ones(10))
    given = {
        "exact": model,
        "ids": ones(model, 65),
        "states": states,
        "rounded": {"bf16": states.bfloat16()},
    }
    page = defined(
        3,
        "prefix-cell",
        "nearest-cell",
        page="lab",
        AutoModelForCausalLM=AutoModelForCausalLM,
        **given,
    )
    assert page["right"]["bf16"].mean() > 0.9


def test_lab_3_tells_a_file_of_four_bits(smollm2):
    levels = defined(3, "c3levels", page="lab")["levels"]
    assert levels(smollm2.model) <= 16 < levels(tiny("llama").model)


def test_lab_5_reads_maps_and_slashes_as_the_package(monkeypatch):
    q, k = torch.randn(2, 3, 12, 8, generator=torch.Generator().manual_seed(2))
    theta = rope.frequencies(8, 1e4)
    monkeypatch.setattr(probe, "queries_and_keys", lambda model, ids: [(q, k)])
    slashes = torch.zeros(1, 3, 6)
    given = {
        "attention": attention,
        "rope": rope,
        "probe": probe,
        "theta": theta,
        "pairs": 4,
        "layers": 1,
    }
    given |= {"model": None, "ids": None}
    given["untrained"] = lambda model, seed: None  # its queries and keys are the same
    found = defined(
        5, "c5lmaps0", "c5lrank0", page="lab", natural=slash_maps.Heads(slashes=slashes), **given
    )
    torch.testing.assert_close(found["maps"](q, k), slash_maps.weights(q, k, theta))
    torch.testing.assert_close(
        found["maps"](q, k, [1, 3]), slash_maps.weights(q, k, theta, [1, 3]), atol=1e-9, rtol=0
    )
    torch.testing.assert_close(
        found["slash"](found["maps"](q, k), 2), attention.slash_score(found["maps"](q, k), 2)
    )
    assert found["share"](q[0]) == pytest.approx(slash_maps.concentration(q[0])[0])


def test_lesson_6_subtracts_two_maps_as_the_package():
    found = defined(
        6, "740934ed", "9cfccac2", "6b414452", "c6grown0", "c6agree0", "c6head00", "a24d2770"
    )
    first, second = torch.randn(2, 7, 33, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(found["softmax"](first), first.softmax(-1))
    torch.testing.assert_close(
        found["difference"](first, second, 0.6), differential.difference(first, second, 0.6)
    )
    for c, lam, ratio in ((0.0, 0.8, 1.0), (0.5, 0.5, 2.0)):
        torch.testing.assert_close(
            found["left"](torch.tensor(c), lam, ratio), difference.noise_left(c, lam, ratio)
        )
    grown = found["grown"]
    assert (
        grown.loc["independent logits", "σ = 1.5"] > 1 > grown.loc["independent logits", "σ = 0.3"]
    )
    noise = found["noise"]
    for name in noise.index[1:]:
        assert noise.loc[name, ["answer", "noise, with signs"]].sum() == pytest.approx(1 - 0.8)


def test_lab_6_measures_two_maps_as_the_race_does():
    torch.set_default_dtype(torch.float32)
    given = {
        "protocol": protocol,
        "tasks": tasks,
        "comparison": comparison,
        "stats": stats,
        "entries": entries,
    }
    two, one = (
        entries.decoder(entries.ENTRIES[name], "retrieval", 0)
        for name in ("differential", entries.HALF)
    )
    page = defined(6, "c6pairs0", "c6noises0", page="lab", Decoder=Decoder, **given)
    rows = page["pairs"](64, 64, rows=32, seed=1)
    wanted = evaluation.two_noises(two, "retrieval", *rows)
    page |= {
        "train": lambda *_: (two, 0),
        "two": two,
        "both": {"one map": one},
        "names": list(entries.ENTRIES),
    }
    page["noises"] = lambda model, n, noises=page["noises"]: noises(model, 64)
    page = defined(6, "c6odds00", "c6cosine0", "c6shares0", "c6gap000", page="lab", **page)
    assert page["agree"] == pytest.approx(wanted["agree_1"], rel=1e-4)
    looked = page["pairs"](64, 64, rows=32, seed=64)
    shares = evaluation.best_heads(one, "retrieval", *looked)[:1] + evaluation.masses(
        one, "retrieval", *looked
    )
    assert page["shares"](one, 64) == pytest.approx(
        shares, rel=0.02
    )  # the layer may be another one
    judged = (
        comparison.compare(page["rows"], against=None)
        .query("task == 'retrieval'")
        .set_index("entry")
    )
    found = page["gaps"].loc["differential\nagainst RoPE, half the heads"]
    assert list(found) == pytest.approx(
        list(judged.loc["differential", ["gap", "gap_low", "gap_high"]]), abs=2e-3
    )


def test_the_film_of_lab_5_names_the_better_head():
    maps = torch.stack([torch.ones(4, 4).tril(), torch.eye(4)])
    given = {
        "SHOWN": {"RoPE": {0: maps / maps.sum(-1, keepdim=True)}},
        "BACK": 0,
        "LENGTH": 4,
        "style": style,
    }
    page = defined(
        5,
        "10fafc63",
        page="lab",
        slash=attention.slash_score,
        explore=lambda *_, **__: None,
        **given,
    )
    _, finding = page["frame"]("RoPE", 0)
    assert "mean weight is 1.000" in finding
    assert "gives about 0.521" in finding


def test_the_part_in_common_on_the_page_orders_the_slashes_as_the_claim_says():
    order = defined(5, "c5lcomm0", page="lab", data=data)["order"]
    assert order == pytest.approx(slash_claims.the_condition_is_needed()["order"])


def test_heads_that_stay_on_random_tokens_are_counted_by_their_distance():
    on_prose, again = torch.zeros(2, 1, 3, 6)
    on_prose[0, :, 1], on_prose[0, 2, 0], again[0, :2, 1] = 0.5, 0.8, 0.4
    heads = [slash_maps.Heads(slashes=x) for x in (on_prose, again)]
    fake = types.SimpleNamespace(heads=lambda *_, **__: heads[0], prose=lambda *_, **__: None)
    given = {"attention": attention, "measures": fake, "model": None}
    page = defined(5, "c5lagain", page="lab", natural=heads[0], chance=heads[1], **given)
    counts = [[page["strong"](page[at], r) for r in (0, 1)] for at in ("score", "there", "text")]
    assert counts == [[1, 2], [0, 2], [1, 2]]
