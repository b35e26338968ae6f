"""The race: one criterion for all, the same numbers from the same seed, and verdicts that follow written rules."""

import functools
import html
import itertools
import math
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import defined
from scipy import stats
from tiny_models import tiny

from course import training
from course.chapter6 import measures
from course.chapter7 import figures
from course.evidence import significance
from course.evidence.rules import CORRECTED, FAILS, HOLDS, LITTLE
from course.maths import normalizers
from course.runs import (
    ablations,
    comparison,
    entries,
    evaluation,
    outliers,
    protocol,
    race,
    rates,
    runs,
)
from course.scorecard import CLAIMS
from helpers import data, probe, style, transformer

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

SOURCE = Path(__file__).parents[1] / "src"


def draw(entry, task, n=None, seed=0):
    return entries.batch(entries.ENTRIES[entry], task, torch.Generator().manual_seed(seed), n)


# One protocol, one budget ------------------------------------------------------------------------------


@pytest.mark.parametrize("task", protocol.TASKS)
def test_parameters_and_tokens_are_matched(task):
    sizes, tokens = {}, {}
    for name, entry in entries.ENTRIES.items():
        sizes[name] = sum(p.numel() for p in entries.decoder(entry, task, 0).parameters())
        tokens[name] = sum(draw(name, task, seed=seed)[0].numel() for seed in range(20))
    beside = [
        name for name, entry in entries.ENTRIES.items() if entry.model or "norm" in entry.settings
    ]
    assert max(sizes.values()) < 1.07 * min(sizes.values()), sizes
    matched = [size for name, size in sizes.items() if name not in beside]
    assert max(matched) < 1.01 * min(matched), sizes
    assert max(tokens.values()) < 1.1 * min(tokens.values()), tokens


def test_differential_has_half_the_heads_and_twice_the_values():
    first, second = (
        entries.decoder(entries.ENTRIES[name], "first", 0).blocks[0].inner
        for name in ("differential", "differential, version 2")
    )
    assert (first.heads, second.heads) == (2, 4)
    q1, k1, _, _, v = first.project(torch.zeros(1, 3, 32))
    assert (q1.shape[-1], k1.shape[-1], v.shape[-1]) == (8, 8, 16)


@pytest.mark.parametrize("name", entries.ENTRIES)
def test_later_tokens_change_nothing(name):
    entry = entries.ENTRIES[name]
    model = entries.decoder(entry, "retrieval", 0).eval()
    for block in model.blocks if entry.at_test else ():
        block.weigh = entry.at_test
    ids = torch.randint(1, 40, (2, 20), generator=torch.Generator().manual_seed(1))
    other = torch.cat([ids[:, :12], ids[:, 12:].flip(1)], 1)
    torch.testing.assert_close(model(ids)[:, :12], model(other)[:, :12], rtol=1e-4, atol=1e-5)
    if not entry.model:
        assert (model.attention(ids).triu(1) == 0).all()


def test_random_positions_are_in_order_the_same_in_all_layers_and_new_at_each_step():
    model = entries.decoder(entries.ENTRIES[entries.RANDOM], "retrieval", 0)
    first, second = (block.turned(16).clone() for block in model.blocks)
    assert first.equal(second)
    assert (first.diff() > 0).all()
    assert int(first.max()) < entries.RANGE
    assert not model.blocks[0].turned(16).equal(first)
    model.eval()
    assert model.blocks[0].turned(128).equal(model.blocks[0].turned(128))


@pytest.mark.parametrize(
    ("name", "of_each"),
    [
        ("sliding window", [("RoPE", protocol.LOCAL, 4), ("RoPE", None, 4)]),
        (entries.UNWINDOWED, [("RoPE", None, 4), ("NoPE", None, 4)]),
        (entries.MIXED, [("RoPE", protocol.LOCAL, 4), ("NoPE", None, 4)]),
        (entries.HALF, [("RoPE", None, 2), ("RoPE", None, 2)]),
    ],
)
def test_layers_have_the_encoding_the_window_and_the_heads_of_their_entry(name, of_each):
    blocks = entries.decoder(entries.ENTRIES[name], "first", 0).blocks
    assert [(block.encoding, block.window, block.heads) for block in blocks] == of_each
    assert {2 * len(block.frequencies) for block in blocks if block.encoding == "RoPE"} == {
        32 // of_each[0][2]
    }


def test_the_combination_changes_one_thing_more_and_a_wide_decoder_has_half_of_its_own_heads():
    scaled = entries.decoder(entries.ENTRIES[entries.MIXED_SCALED], "first", 0).blocks
    assert [block.weigh is None for block in scaled] == [True, False]
    wide = entries.decoder(entries.ENTRIES[entries.HALF], "first", 0, "wide").blocks
    assert (wide[0].heads, len(wide)) == (4, 6)


def test_the_delta_rule_is_its_recurrence():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(6, w, generator=generator) for w in (4, 4, 3))
    k, rate, gates = (
        k / k.norm(dim=-1, keepdim=True),
        *torch.rand(2, 6, generator=generator).clamp(min=0.2),
    )
    state, expected = torch.zeros(3, 4), []
    for t in range(6):
        state = gates[t] * state
        state = state + rate[t] * torch.outer(v[t] - state @ k[t], k[t])
        expected.append(state @ q[t])
    torch.testing.assert_close(normalizers.delta_rule(q, k, rate, gates) @ v, torch.stack(expected))


def test_scalable_softmax_is_softmax_at_the_trained_length_and_sharper_beyond():
    weigh = entries.ScalableSoftmax(1)
    row = torch.randn(1, 1, 1, 128, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(weigh(row[..., :16]), row[..., :16].softmax(-1))
    torch.testing.assert_close(weigh(row), (row * math.log(128) / math.log(16)).softmax(-1))


def test_gates_scale_what_heads_bring():
    model = entries.decoder(entries.ENTRIES["gated attention"], "first", 0)
    block, x = model.blocks[0], torch.randn(1, 5, 32)
    plain = entries.Block.mix(block, x)
    gates = block.gate(block.norm1(x)).sigmoid()
    torch.testing.assert_close(
        block.mix(x).transpose(1, 2).flatten(2), plain.transpose(1, 2).flatten(2) * gates
    )


def test_separators_stand_between_and_targets_stay_with_their_tokens():
    for task in protocol.TASKS:
        plain, marked = draw("RoPE", task, 16), draw("separators", task, 16)
        token = len(protocol.vocabulary(task)) - 1
        kept = marked[0] != token
        assert torch.equal(marked[0][kept], plain[0].flatten())
        assert torch.equal(marked[1][kept], plain[1].flatten())
        assert (marked[1][~kept] == training.UNASKED).all()
        assert (marked[0][:, protocol.EVERY] == token).all()


# What is measured --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RoPE", "separators"])
@pytest.mark.parametrize("task", protocol.TASKS)
def test_answer_and_noise_are_the_tokens_that_hold_them(name, task):
    ids, targets = draw(name, task, 16)
    answer, noise = protocol.roles(task, ids, targets)
    words = protocol.vocabulary(task)
    assert not (answer & noise).any()
    for row, column in (targets != training.UNASKED).nonzero().tolist():
        right = words[targets[row, column]]
        held = [words[k] for k in ids[row][answer[row, column]]]
        other = [words[k] for k in ids[row][noise[row, column]]]
        if task == "counting":
            assert (len(held), set(held) - {"y"}, set(other) - {"x"}) == (int(right), set(), set())
        else:
            assert len(held) == 1
            assert held[0][-1] == right
            assert len(other) == 15
        if task == "retrieval":
            assert held[0][0] == words[ids[row, column]][1]


@pytest.fixture
def retrieval():
    """Tokens and targets, and two maps: all weight on the answer, all of it evenly on the noise."""
    ids, targets = draw("RoPE", "retrieval", 16)
    answer, noise = (mask.float() for mask in protocol.roles("retrieval", ids, targets))
    return ids, targets, answer, noise / noise.sum(-1, keepdim=True).clamp(min=1)


def test_masses_of_maps_that_are_known(retrieval):
    """All weight on the answer, then all on noise with a negative sign, then half and half."""
    ids, targets, answer, other = retrieval
    for maps, expected in ((answer, (1, 0)), (-other, (0, 1)), (answer - other, (0.5, 0.5))):
        model = SimpleNamespace(
            attention=lambda ids, maps=maps: maps[None, :, None].expand(1, -1, 3, -1, -1)
        )
        assert evaluation.masses(model, "retrieval", ids, targets) == pytest.approx(expected)


def test_the_best_head_is_found_question_by_question(retrieval):
    """Of three heads the first has all even questions, the second half of all odd ones, the third nothing."""
    ids, targets, answer, other = retrieval
    even = (torch.arange(ids.shape[1]) % 2 == 0).float()[:, None]
    heads = [answer * even + other * (1 - even), 0.5 * other - 0.5 * answer * (1 - even), -other]

    model = SimpleNamespace(attention=lambda ids: torch.stack(heads, 1)[None])
    rows = (targets != training.UNASKED).nonzero()[:, 1] % 2 == 0
    even = float(rows.double().mean())
    best, sharp, one = evaluation.best_heads(model, "retrieval", ids, targets)
    assert 0 < even < 1
    assert best == pytest.approx(even + 0.5 * (1 - even))
    assert (sharp, one) == (pytest.approx(even), pytest.approx(max(even, 0.5 * (1 - even))))


@pytest.mark.parametrize("name", ["differential", "differential, version 2"])
def test_the_noises_of_two_maps_are_compared_by_direction_and_by_size(name, monkeypatch):
    model = entries.decoder(entries.ENTRIES[name], "retrieval", 0)
    ids, targets = draw(name, "retrieval", 16)
    own = type(model.blocks[0].inner)
    lam = lambda self, x: torch.full((len(x), 1, 1), 0.5)  # noqa: E731
    monkeypatch.setattr(own, "lam", lam)
    true, (_, noise) = own.maps, protocol.roles("retrieval", ids, targets)
    monkeypatch.setattr(own, "maps", lambda self, x: (true(self, x)[0],) * 2)
    found = evaluation.two_noises(model, "retrieval", ids, targets)
    for number in (1, 2):
        expected = {"cosine": 1, "needed": 0.25, "left": 0.5, "agree": 1, "gain": 1}
        assert {what: found[f"{what}_{number}"] for what in expected} == pytest.approx(
            expected, abs=1e-5
        )
    monkeypatch.setattr(own, "maps", lambda self, x: (true(self, x)[0], 2 * true(self, x)[0]))
    found = evaluation.two_noises(model, "retrieval", ids, targets)
    assert (found["needed_1"], found["left_1"]) == pytest.approx((0.5, 0), abs=1e-5), (
        "the second is twice as large"
    )
    places = noise.double().cumsum(-1) % 2  # every other rival: noises without a common key

    def apart(self, x):
        return places[:, None] * noise[:, None], 2 * (1 - places)[:, None] * noise[:, None]

    monkeypatch.setattr(own, "maps", apart)
    found = evaluation.two_noises(model, "retrieval", ids, targets)
    assert (found["cosine_1"], found["agree_1"]) == (0, 0)
    assert found["left_1"] > 1.3


def test_outliers_rank_and_rounding_of_what_is_known():
    assert outliers.outlier(torch.tensor([1.0, -1.0, 1.0, -8.0, 1.0])) == 8
    rank_two = torch.zeros(1, 8, 5)
    rank_two[0, :4, 0], rank_two[0, 4:, 0] = 1, -1
    rank_two[0, ::2, 1], rank_two[0, 1::2, 1] = 1, -1
    assert evaluation.effective_rank(rank_two) == pytest.approx(2)
    x = torch.linspace(-1, 1, 15)
    torch.testing.assert_close(outliers.rounded(x, 4), x)  # 15 levels in 4 bits
    assert (outliers.rounded(torch.tensor([0.1, 100.0]), 4) == torch.tensor([0.0, 100.0])).all()


def test_few_bits_round_what_enters_with_or_without_the_first_token():
    layer = torch.nn.Linear(2, 2, bias=False)
    x = torch.tensor([[[100.0, 50.0], [0.7, 0.1], [-0.2, 0.33]]])
    with torch.no_grad():
        layer.weight.copy_(torch.eye(2))
        with outliers.few_bits([layer], 4):
            torch.testing.assert_close(
                layer(x), torch.tensor([[[100.0, 400 / 7], [0.0, 0.0], [0.0, 0.0]]])
            )
        with outliers.few_bits([layer], 4, spare_first=True):
            torch.testing.assert_close(
                layer(x), torch.tensor([[[100.0, 50.0], [0.7, 0.1], [-0.2, 0.3]]])
            )
        torch.testing.assert_close(layer(x), x)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_loss_in_few_bits_goes_to_the_loss_in_many(kind):
    """GPT-2's linear layers are of a class of their own: they are rounded, too."""
    model, ids = tiny(kind), torch.arange(1, 40)
    found = measures.loss_in_few_bits(model, ids, (16, 3))
    assert found["losses"]["16"] == pytest.approx(found["plain"], abs=1e-3)
    assert abs(found["losses"]["3"] - found["plain"]) > 1e-3
    assert found["losses"]["3"] != found["losses"]["3, first token exact"]
    assert probe.loss(model, ids) == found["plain"]
    assert len(found["states"]) == len(found["states_without_first"]) == 4


def test_quantisation_grows_with_an_outlier_and_leaves_the_model_as_it_was():
    model = entries.decoder(entries.ENTRIES["RoPE"], "first", 0)
    ids, _ = draw("RoPE", "first", 16)
    before, error = model(ids), evaluation.quantisation_error(model, ids)
    torch.testing.assert_close(model(ids), before)
    with torch.no_grad():  # the same function, with one large channel
        for block in model.blocks:
            for norm, linear in ((block.norm1, block.qkv), (block.norm2, block.mlp[0])):
                norm.weight[0] *= 50
                linear.weight[:, 0] /= 50
    torch.testing.assert_close(model(ids), before, rtol=1e-3, atol=1e-4)
    assert evaluation.quantisation_error(model, ids) > 2 * error > 0


def test_the_blind_control_does_not_depend_on_what_it_cannot_see():
    model = entries.decoder(entries.ENTRIES["control: sees 2 back"], "first", 0).double()
    ids, _ = draw("RoPE", "first", 16)
    other = ids.clone()
    other[:, 1] = 9 - other[:, 1]  # the other digit
    assert torch.equal(model(ids)[:, -1], model(other)[:, -1])


# The table ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_row_and_another_does_not():
    timeless = {"seconds": 0, "step_ms": 0}
    first, again, other = (
        race.run("differential", "last", [seed], 3)[0] | timeless for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("seed", range(protocol.BUDGET["seeds"]))
def test_no_run_is_tested_or_judged_on_rows_that_it_was_trained_on(seed, monkeypatch):
    """Each draw has a generator of its own: those of training, of the criterion and of the tests are apart."""
    seeds = {"training": [], "criterion": [], "tests": [], "far": []}

    def draws(kind):
        def batch(*given):
            seeds[kind].append(
                next(g for g in given if isinstance(g, torch.Generator)).initial_seed()
            )
            return torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)

        return batch

    model = torch.nn.Sequential(torch.nn.Embedding(2, 2), torch.nn.Linear(2, 2))
    training.fit(model, draws("training"), steps=2, seed=seed)
    monkeypatch.setattr(runs, "batch", draws("criterion"))
    runs.criterion.__wrapped__("last", False)
    monkeypatch.setattr(evaluation, "batch", draws("tests"))
    evaluation.tests_of(entries.ENTRIES["RoPE"], "last", seed)
    monkeypatch.setattr(runs, "batch", draws("far"))
    monkeypatch.setattr(runs, "score", lambda *given: 1.0)
    for tokens in protocol.FAR:
        runs.further(model, entries.ENTRIES["RoPE"], "last", seed, tokens)
    first, second = seeds.pop("training")
    assert second == first + 1
    trained = range(first, first + protocol.BUDGET["steps"])
    kept = [set(found) for found in seeds.values()]
    assert all(kept)
    assert not set().union(*kept) & set(trained)
    assert len(set().union(*kept)) == sum(map(len, kept))


def test_a_run_stops_at_the_criterion_or_at_the_budget(monkeypatch):
    monkeypatch.setattr(runs, "CHECKED", 2)
    asked = []
    monkeypatch.setattr(
        runs, "has_learned", lambda model, entry, task: asked.append(1) or len(asked) == 1
    )
    rows = race.run("RoPE", "first", [0, 1], 4)
    assert [row["steps"] for row in rows] == [2, 4]


def test_unknown_entries_and_tasks_are_named():
    for call in (
        lambda: race.run("sparse dreams", "first", [0], 3),
        lambda: entries.entry_of("sparse dreams"),
    ):
        with pytest.raises(ValueError, match=r"entry must be one of RoPE, .*, not 'sparse dreams'"):
            call()
    for wrong, named in (
        ({"task": "chess"}, "task"),
        ({"size": "huge"}, "size"),
        ({"budget": 0}, "budget"),
    ):
        with pytest.raises(ValueError, match=named):
            race.run(**{"entry": "RoPE", "task": "first", "seed": [0], "budget": 3} | wrong)


def test_the_committed_table_has_what_the_rules_ask_for():
    """All entries of the first table with 15 seeds at its tasks; those that were added with three or more where they ran."""
    rows = comparison.table()
    seeds = rows.groupby(["task", "entry"]).seed.nunique()
    whole = rows[rows.task == "counting"].groupby("entry").seed.nunique()
    first = list(whole.index[whole == protocol.BUDGET["seeds"]])
    assert len(first) == 24
    assert all(
        seeds[task, name] >= 15
        for task in ("retrieval", "last", "first", "counting")
        for name in first
    )
    assert seeds.min() >= 3
    assert set(rows.entry) <= set(entries.ENTRIES)
    plain, sharpened = (
        rows[rows.entry == name].set_index(["seed", "task"]).steps
        for name in ("RoPE", "adaptive temperature")
    )
    both = plain.index.intersection(sharpened.index)
    assert (plain[both] == sharpened[both]).all(), (
        "adaptive temperature is put in after the same training"
    )
    stopped = rows[rows.learned == 1]
    assert (stopped.steps % protocol.CHECKED == 0).all()
    missed = rows[rows.learned == 0]
    twice = (
        missed.entry == "RoPE, dropped after training"
    )  # trained on without it, with steps of its own
    assert (missed.steps[~twice] == missed.budget[~twice]).all()
    assert (missed.steps[twice] >= missed.budget[twice]).all()


def test_a_cell_of_the_table_can_be_repeated():
    """Another machine's rounding moves a few answers; what is claimed of the cell must come again."""
    cell = comparison.table().query("task == 'last' and entry == @entries.RANDOM and seed < 2")
    found = race.run(entries.RANDOM, "last", [0, 1], int(cell.budget.iloc[0]))
    for column, near in (
        ("steps", 100),
        ("score_16", 0.05),
        ("score_128", 0.1),
        ("best_128", 0.15),
    ):
        assert np.mean([row[column] for row in found]) == pytest.approx(
            cell[column].mean(), abs=near
        )


def test_scaled_softmax_keeps_at_512_what_no_positions_lose(monkeypatch):
    monkeypatch.setattr(runs, "FAR", (256,))
    (row,) = race.run(entries.SCALED, "retrieval", [0], 3, what="far")
    assert 0 <= row["score_256"] <= 1
    table = data.table("race_far").query("task == 'retrieval'").groupby("entry").score_512.mean()
    assert table[entries.SCALED] > 0.9 > table["NoPE"]


def test_trained_to_128_is_trained_on_128_and_has_its_criterion_there():
    entry = entries.SEEN["RoPE, trained to 128"]
    drawn = [
        entries.batch(entry, "retrieval", torch.Generator().manual_seed(seed))[0].shape[1]
        for seed in range(40)
    ]
    assert max(drawn) > 100
    assert runs.criterion("retrieval", False, entry.seen)[0].shape[1] == 128 + 4
    table = data.table("race_seen").query("entry == 'RoPE, trained to 128'")
    assert (
        table.score_128.mean()
        > 0.9
        > comparison.table().query("entry == 'RoPE' and task == 'retrieval'").score_128.mean()
    )


def test_a_fixed_budget_is_spent_and_says_when_the_criterion_was_met(monkeypatch):
    asked = []
    monkeypatch.setattr(
        runs, "has_learned", lambda model, entry, task: asked.append(1) or len(asked) > 1
    )
    row = race.run("RoPE", "last", [0], 30, what="fixed")[0]
    assert (row["learned"], row["steps"]) == (1, 20)


def test_the_control_fails_where_it_must_in_the_committed_table():
    """No better than a guess without the answer; and it does what it can see."""
    rows = comparison.table()
    means = rows.groupby(["entry", "task"]).longer.mean()
    for name in entries.CONTROLS:
        for task in entries.ENTRIES[name].fails:
            assert means.get((name, task), 0) < protocol.CHANCE[task] + 0.05
        assert means[name, "last"] > 0.95
    assert means[entries.BASELINE, "retrieval"] > 2 * protocol.CHANCE["retrieval"]


# Verdicts ----------------------------------------------------------------------------------------------


def made(gaps, task="retrieval", seeds=10, noise=0.01, learned=None):
    """A table of one task in which entries lie apart by known gaps."""
    generator, rows = np.random.default_rng(0), []
    common = generator.normal(0, 0.1, seeds)
    for name, gap in {entries.BASELINE: 0.0, **gaps}.items():
        for seed in range(seeds):
            score = 0.5 + common[seed] + gap + generator.normal(0, noise)
            fine = int(seed < (learned or {}).get(name, seeds))
            rows.append(
                {
                    "seed": seed,
                    "entry": name,
                    "task": task,
                    "longer": score,
                    "odds": 5 * score,
                    "learned": fine,
                }
            )
    return pd.DataFrame(rows)


def verdicts(rows, **settings):
    found = comparison.compare(rows, **settings)
    return dict(zip(found.entry, found.verdict, strict=True))


def test_each_verdict_can_be_reached():
    rows = made({"up": 0.2, "down": -0.2, "same": 0.0})
    equal = protocol.EQUAL
    assert verdicts(rows) == {"RoPE": "baseline", "up": "better", "down": "worse", "same": equal}
    assert verdicts(made({"up": -0.2}, noise=0.3))["up"] == "inconclusive", (
        "the gap is within the noise"
    )
    assert verdicts(made({"up": 0.02}, noise=0.001))["up"] == equal, (
        "a gap that is sure and too small to matter"
    )


def test_an_entry_without_mistakes_is_never_equal_where_there_is_room():
    """NoPE is right in 0.974 beyond its trained length: a share cannot be better by 0.05, mistakes can be fewer."""
    ours, theirs = (
        [comparison.ceiling("retrieval")] * 15,
        list(np.random.default_rng(0).normal(3.6, 0.4, 15)),
    )
    gap = [a - b for a, b in zip(ours, theirs, strict=True)]
    assert (
        comparison.verdict(gap, significance.paired(ours, theirs), ours[0] - np.mean(theirs))
        == "better"
    )
    rows = made({"up": 0.0}).assign(odds=comparison.ceiling("retrieval") - 0.01)
    assert verdicts(rows)["up"] == protocol.NO_ROOM
    fallen = rows.assign(
        odds=rows.odds - 3 * (rows.entry == "up") - 0.01 * rows.seed * (rows.entry == "up")
    )
    assert verdicts(fallen)["up"] == "worse", "no room above is room below"


def test_log_odds_have_a_number_where_all_or_none_is_right():
    rows = pd.DataFrame(
        {"task": ["retrieval"] * 3} | {f"score_{n}": [0.0, 0.5, 1.0] for n in protocol.LENGTHS}
    )
    odds = comparison.with_longer(rows).odds
    assert odds.tolist() == pytest.approx(
        [-comparison.ceiling("retrieval"), 0, comparison.ceiling("retrieval")]
    )


def test_a_cell_that_has_not_learned_is_compared_at_no_length():
    rows = made({"up": 0.2, "late": 0.2}, learned={"late": 4})
    found = comparison.compare(rows).set_index("entry")
    assert found.verdict["late"] == "not learned"
    assert found.loc["late", ["mean", "gap", "p"]].isna().all()
    assert (found.learned["late"], found.seeds["late"]) == (4, 10)
    assert verdicts(made({"up": 0.2}, learned={"RoPE": 4})) == {
        "RoPE": "not learned",
        "up": "reference not learned",
    }
    some = comparison.compare(made({"up": 0.2}, learned={"up": 5})).set_index("entry")
    assert some.verdict["up"] == "better"


def test_a_reference_that_was_not_run_opens_nothing(instead):
    """A missing cell is not one that has failed."""
    rows = instead(score_128=lifted(entries.REMEDIES), best_128=lifted(entries.REMEDIES))
    rows = rows[(rows.task != "retrieval") | (rows.entry != entries.UNWINDOWED)]
    won = comparison.successes(rows).set_index(["entry", "task"]).loc[entries.MIXED, "retrieval"]
    assert (won.verdict, won.success, won.opens) == ("reference not run", True, False)


def test_a_run_to_a_plateau_is_judged_at_the_criterion_and_at_the_end(monkeypatch):
    """The first touch is that of the table; a diverged run says nothing, and beyond 128 both are asked where either is right."""
    monkeypatch.setattr(runs, "FAR", (160,))
    monkeypatch.setattr(runs, "LEARNED", 0.3)
    monkeypatch.setattr(runs, "KEPT", 0.0)
    monkeypatch.setitem(
        entries.ENTRIES, "cold", entries.Entry(at_test=lambda logits: (3 * logits).softmax(-1))
    )
    row, other = race.run("cold", "last", [0, 1], 30, what="plateau")
    assert row["learned"] == 1
    assert row["steps"] < 30
    assert 0 <= row["first_160"] <= 1
    assert row["out_6"] == row["score_128"] != other["score_128"]
    with pytest.raises(ValueError, match="multiple of 30"):
        race.run("RoPE", "last", [0], 40, what="plateau")


def test_entries_are_compared_with_their_own_reference():
    rows = made({"NoPE": 0.3, "NoPE, scalable softmax": 0.3})
    assert verdicts(rows)["NoPE, scalable softmax"] == "better"
    assert verdicts(rows, against=None)["NoPE, scalable softmax"] == protocol.EQUAL


def test_pairing_sees_what_the_spread_of_seeds_hides():
    """Seeds spread as wide as the gap; paired it is clear, unpaired it is not."""
    rows = made({"up": 0.1})
    ours, theirs = (rows[rows.entry == name].longer.to_numpy() for name in ("up", "RoPE"))
    assert stats.ttest_ind(ours, theirs).pvalue > 1e-3
    assert significance.paired(ours, theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert significance.paired(ours, theirs) < 1e-6


def test_the_correction_stays_within_a_task():
    """Twice the tasks do not change a verdict's p value; twice the entries of a task do."""
    one = made({"up": 0.04}, noise=0.04)
    two = pd.concat([one, made({"up": 0.04}, noise=0.04, task="last")])
    p = comparison.compare(one).set_index("entry").p["up"]
    assert comparison.compare(two).set_index(["task", "entry"]).p[
        "retrieval", "up"
    ] == pytest.approx(p)
    more = pd.concat([one, *(one[one.entry == "up"].assign(entry=f"up {k}") for k in range(3))])
    assert comparison.compare(more).set_index("entry").p["up"] > 2 * p


def test_compare_names_what_is_not_there():
    with pytest.raises(ValueError, match="against"):
        comparison.compare(made({}), against="nobody")
    with pytest.raises(ValueError, match="column"):
        comparison.compare(made({}), column="score_7")


# The learner's entry -----------------------------------------------------------------------------------


def test_a_copy_of_softmax_tableas_the_baseline_does():
    own = race.enter("mine", lambda logits: logits.softmax(-1), ["first"], steps=4)
    row = race.run("RoPE", "first", [0], 4)[0]
    assert set(own.columns) == {
        "seed",
        "entry",
        "task",
        "budget",
        "size",
        *row,
        "seconds",
        "longer",
        "odds",
    }
    assert own.score_16[0] == pytest.approx(row["score_16"], abs=0.03)


@pytest.mark.parametrize("kind", [transformer.Block, entries.Recurrent])
def test_a_block_or_a_model_of_ones_own_tableby_the_same_rules(kind):
    row = race.enter("mine", kind, ["first"], steps=3).iloc[0]
    assert row.steps <= 3
    assert 0 <= row.score_128 <= 1


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        (lambda logits: logits.exp() / 0.0, "finite"),
        (lambda logits: logits.softmax(-1)[..., :2], "same shape as the logits"),
        (lambda logits: torch.ones_like(logits), "no weight to a hidden token"),
        (lambda logits, more: logits, "must take logits"),
        (3, "weigh must be a function"),
    ],
)
def test_what_is_wrong_with_a_function_is_said_before_training(weigh, message):
    with pytest.raises(ValueError, match=message):
        race.enter("mine", weigh)


def test_a_bad_entry_is_named():
    softmax = functools.partial(torch.softmax, dim=-1)
    bad = {
        "name": {"name": "RoPE"},
        "chosen": {"chosen": ["chess"]},
        "seeds": {"seeds": 0},
        "steps": {"steps": 0},
    }
    for named, arguments in bad.items():
        with pytest.raises(ValueError, match=named):
            race.enter(**{"name": "mine", "weigh": softmax} | arguments)
    with pytest.raises(ValueError, match="list of tasks"):
        race.enter("mine", softmax, "first")


def test_all_tasks_have_tests_and_a_training_set():
    assert set(protocol.TESTED) == set(protocol.EVERY_TASK)
    for task in protocol.EVERY_TASK:
        ids, targets = draw("RoPE", task, 64)
        assert len(ids) == protocol.TESTED[task]
        assert (targets != training.UNASKED).any()


# The paper's ablations ---------------------------------------------------------------------------------


def test_the_rows_of_the_ablation_differ_in_one_thing():
    layers = {
        name: entries.decoder(entry, "retrieval", 0).blocks[1]
        for name, entry in ablations.ROWS.items()
    }
    inner = {name: layer.inner for name, layer in layers.items() if "DIFF" in name}
    assert {
        name: (part.normed, part.gain is not None, round(part.start, 2))
        for name, part in inner.items()
    } == {
        "DIFF": (True, False, 0.36),
        "DIFF, head norm with gain": (True, True, 0.36),
        "DIFF, no head norm": (False, False, 0.36),
        "DIFF, λ starts at 0.8": (True, False, 0.8),
        "DIFF, λ starts at 0.5": (True, False, 0.5),
    }
    assert {name: layer.heads for name, layer in layers.items() if "DIFF" not in name} == {
        "Transformer": 4,
        "half the heads": 2,
        "half the heads, head norm": 2,
    }
    sizes = [
        sum(p.numel() for p in entries.decoder(entry, "retrieval", 0).parameters())
        for entry in ablations.ROWS.values()
    ]
    assert max(sizes) < 1.01 * min(sizes)
    heads = layers["half the heads, head norm"].mix(torch.randn(2, 5, 32))
    torch.testing.assert_close(heads.square().mean(-1), torch.ones(2, 2, 5), atol=1e-2, rtol=0)
    assert set(ablations.table().entry) == set(ablations.ROWS)
    assert (ablations.table().groupby("entry").seed.nunique() == protocol.BUDGET["seeds"]).all()


def test_rows_that_the_race_has_as_well_are_the_race_s():
    """Two tables, one harness: the same seeds take the same steps and give the same scores, up to rounding."""
    pairs = {
        "Transformer": entries.BASELINE,
        "half the heads": entries.HALF,
        "DIFF": "differential",
    }
    ours, theirs = ablations.table(), comparison.table()
    for row, entry in pairs.items():
        a = ours[ours.entry == row].set_index("seed")
        b = theirs[(theirs.entry == entry) & (theirs.task == "retrieval")].set_index("seed")
        assert (a.steps == b.steps).mean() > 0.9
        assert a.longer.to_dict() == pytest.approx(b.longer.to_dict(), abs=0.06)


def test_a_row_of_the_ablation_runs_and_an_unknown_one_is_named():
    assert ablations.run("DIFF, no head norm", [0], 3)[0]["steps"] == 3
    with pytest.raises(ValueError, match="row must be one of Transformer"):
        ablations.run("more heads", [0], 3)


def test_claims_on_ablations_can_hold_and_can_fail(monkeypatch):
    rows = ablations.table()
    true, names = ablations.judged, [name for name in ablations.ROWS if name.startswith("DIFF, ")]

    def shifted(gap):
        moved = rows.assign(odds=lambda t: t.odds.where(~t.entry.isin(names), t.entry.map(own)))
        base = rows[rows.entry == "DIFF"].set_index("seed").odds
        moved.loc[moved.entry.isin(names), "odds"] = [
            base[row.seed] + gap + jitter(row)
            for row in moved[moved.entry.isin(names)].itertuples()
        ]
        monkeypatch.setattr(ablations, "judged", lambda: true(moved))

    own = rows.groupby("entry").odds.mean()
    claims = ("small_head_norm_matters", "small_start_of_lambda_hardly_matters")
    for gap, verdicts in {-1.0: [HOLDS, FAILS], 0.0: [FAILS, HOLDS]}.items():
        shifted(gap)
        assert [CLAIMS[name].measure().verdict for name in claims] == verdicts


def test_a_cell_of_the_fixed_budget_is_told_by_its_last_two_thirds(monkeypatch):
    """Flat is a plateau; still climbing, at the trained length or beyond, is not; seeds that disagree tell nothing."""
    climbs = {"flat": [0.9] * 6, "late": [0.2, 0.3, 0.5, 0.6, 0.8, 0.9]}
    looks = {name: {f"{at}_{k + 1}": x for at in ("inside", "out") for k, x in enumerate(climb)} for name, climb in climbs.items()}  # fmt: skip
    beyond = looks["flat"] | {
        name: x for name, x in looks["late"].items() if name.startswith("out")
    }
    kinds = {"plateau": [looks["flat"]] * 3, "still rising": [beyond] * 3, "not told": [looks["flat"]] * 2 + [looks["late"]]}  # fmt: skip
    rows = [
        {"task": "last", "entry": kind, "rate": 0.005, "learned": int(seed > 0), "steps": 100 * seed, "first_128": 0.5 if seed else None, "score_128": 0.7} | runs[seed]
        for kind, runs in kinds.items() for seed in range(3)
    ]  # fmt: skip
    monkeypatch.setattr(data, "table", lambda name: pd.DataFrame(rows))
    found = comparison.plateaus().loc["last"]
    assert {kind: found.state[kind] for kind in kinds} == {kind: kind for kind in kinds}
    assert found[["runs", "learned", "steps", "first_128", "score_128"]].iloc[
        0
    ].tolist() == pytest.approx([3, 2, 150, 0.5, 0.7])


# Figures and claims ------------------------------------------------------------------------------------


@pytest.fixture
def instead(monkeypatch):
    """Claims measured on a table that was changed by hand: every remedy learns, and a column is a function of the row."""

    def put(rows=None, **columns):
        rows = comparison.table() if rows is None else rows
        rows = rows.assign(learned=1)
        for name, change in columns.items():
            rows[name] = [change(row) for row in rows.itertuples()]
        if "longer" in columns:
            share = rows.longer.clip(0.001, 0.999)
            rows["odds"] = np.log(share / (1 - share))
        monkeypatch.setattr(comparison, "_further", lambda: data.table("race_far").iloc[:0])
        monkeypatch.setattr(comparison, "table", lambda: rows)
        return rows

    return put


def jitter(row):
    """A little noise that belongs to the seed, so that no test has a variance of zero."""
    return noise(f"{row.entry}{row.task}{row.seed}")


@functools.cache
def noise(name):
    return 0.002 * np.random.default_rng(zlib.crc32(name.encode())).normal()


def lifted(names, high=0.95, low=0.4):
    return lambda row: jitter(row) + (high if row.entry in names else low)


def test_the_pictures_have_every_entry_that_learned_and_the_learners_rows(tmp_path):
    rows = comparison.table()
    mine = rows[(rows.entry == "NoPE") & rows.task.isin(figures.BOTH)].assign(
        entry="mine <1>", learned=1
    )
    mine.to_json(tmp_path / "my-row.json", orient="records")
    own = comparison.own_entries(tmp_path)
    assert comparison.own_entries(tmp_path / "nothing") is None
    able = comparison.able(rows).retrieval
    drawn = {*able.index[able]} - {*entries.CONTROLS} | {"mine <1>"}
    picture, finding = figures.slopes(rows, "retrieval", own)
    assert picture.data.count('class="thread') == len(drawn)
    assert all(f"<title>{html.escape(name)}: " in picture.data for name in drawn)
    assert "mine <1>" in finding
    assert picture.data.count("<span style") == picture.data.count('class="end"'), (
        "a phone names below what ends name"
    )
    assert "<1>" not in picture.data, "a name is text"
    assert figures.board(rows, own).data.count("<tr>") == 1 + len(figures.standing(rows, own))
    assert "No entry has learned" in figures.slopes(rows.assign(learned=0), "retrieval")[0].data


def lesson(*cells, page="lesson", **given):
    """The names that these cells of lesson 7, or of another page of it, bind, after those of the cells before."""
    modules = (comparison, data, entries, figures, protocol, rates, style)
    known = {module.__name__.rpartition(".")[2]: module for module in modules}
    known |= {"rows": comparison.table(), "own": None, "Markdown": str}
    return defined(7, *cells, page=page, **(known | given))


@pytest.mark.parametrize("mine", [None, "mine"])
def test_the_corner_of_the_page_has_who_passes_both(mine):
    rows, said = comparison.table(), {}
    own = None if mine is None else rows[rows.entry == "NoPE"].assign(entry=mine, learned=1)
    found = lesson(
        "c7locks-code", "c7locks-fig", own=own, show=lambda ax, **words: said.update(words)
    )
    both = comparison.all_kept(rows, figures.BOTH)
    assert set(found["both"]) == set(both)
    assert {"RoPE", *both, *filter(None, [mine])} <= {
        text.get_text() for text in found["picture"].axes[0].texts
    }
    assert all(name in said["alt"] for name in both)


def test_the_far_figure_follows_its_table():
    further = lesson("c7far-fig", page="full", explore=lambda draw, **_: None)["further"]
    for task, part in data.table("race_far").groupby("task"):
        _, finding = further(task)
        means = part[part.learned == 1].groupby("entry").score_2048.mean()
        assert all(f"{name} {value:.2f}" in finding for name, value in means.items())


def cells(*rows):
    """Cells as `rates.by_rate` gives them: (entry, rate, runs, learned, price, right at the touch, at the end)."""
    columns = ["entry", "rate", "runs", "learned", "price", "first_128", "score_128"]
    return (
        pd.DataFrame(rows, columns=columns)
        .assign(task="recall", steps=1.0)
        .set_index(["task", "entry", "rate"])
    )


def test_the_best_rate_is_chosen_by_the_trained_length_only():
    found = rates.best(
        cells(
            ("slow", 0.002, 5, 5, 400, 0.5, 0.5), ("slow", 0.005, 5, 4, 300, 0.9, 0.9),
            ("fast", 0.002, 5, 5, 300, 0.9, 0.9), ("fast", 0.005, 5, 5, 200, 0.5, 0.5),
            ("once", 0.005, 5, 5, 200, 0.9, 0.9), ("few", 0.002, 2, 2, 100, 0.9, 0.9), ("few", 0.005, 5, 5, 200, 0.9, 0.9),
        )
    ).droplevel("task")  # fmt: skip
    assert found.rate.to_dict() == {"slow": 0.002, "fast": 0.005}


def test_a_failure_to_learn_is_said_of_all_rates_only():
    some = cells(
        ("a", 0.005, 5, 1, 900, 0.5, 0.5),
        ("b", 0.005, 5, 1, 900, 0.5, 0.5),
        ("b", 0.002, 5, 5, 300, 0.9, 0.9),
    )
    none = cells(*(("c", rate, 5, 0, 1000, 0.5, 0.5) for rate in protocol.RATES))
    assert rates.learns("recall", "a", some) == "not learned at 0.005"
    assert rates.learns("recall", "b", some) == "learns"
    assert rates.learns("recall", "c", none) == "does not learn"


def test_an_order_that_turns_with_the_rate_hangs_on_it():
    def ordered(*gaps):
        pairs = [[(name, rate, 5, 5, 100, 0.5, 0.5 + gap * (name == "a")) for name in "ab"]
                 for rate, gap in zip(protocol.RATES, gaps, strict=False)]  # fmt: skip
        return rates.order("recall", "a", "b", cells(*itertools.chain(*pairs)))

    said = [ordered(0.2, 0.1), ordered(0.2, -0.1), ordered(0.2, 0.01), ordered(0.2)]
    assert said == ["stands at every rate", "depends on the rate", "inconclusive", "not run"]


def test_both_stops_are_told_of_the_runs_that_learned(monkeypatch):
    """Three runs that never learned must not make a cell fall whose runs all rose."""
    looks = {f"{at}_{k}": 0.9 for at in ("inside", "out") for k in range(1, 7)}
    runs = [{"learned": 1, "first_128": 0.94, "score_128": 0.98}] * 5 + [{"learned": 0, "first_128": None, "score_128": 0.6}] * 3  # fmt: skip
    rows = [
        {"task": "recall", "entry": "a", "rate": 0.005, "steps": 500} | looks | run for run in runs
    ]
    monkeypatch.setattr(data, "table", lambda name: pd.DataFrame(rows))
    cell = comparison.plateaus().loc["recall", "a"]
    assert (cell.learned, cell.runs) == (5, 8)
    assert (cell.first_128, cell.score_128) == pytest.approx((0.94, 0.98))
    assert cell.stays == "stays right"


def test_every_entry_stands_in_the_lessons_table_or_in_a_list_with_a_reason():
    kinds = [name for names in entries.KINDS.values() for name in names]
    assert sorted(kinds) == sorted(entries.ENTRIES), "KINDS must name each entry once"
    there, shown = set(comparison.table().entry), figures.entrants(comparison.table())
    assert set(entries.ENTRIES) == there | set(entries.NOT_RUN), "run it, or say in NOT_RUN why not"
    assert not there & set(entries.NOT_RUN), "it has rows in data/race.csv: take it out of NOT_RUN"
    assert all(name in shown for name in entries.ENTRIES)
    assert all(reason in shown for reason in entries.NOT_RUN.values())


def test_rivals_grow_with_the_length():
    task = protocol.EVERY_TASK[protocol.RIVALS]
    for n in (16, 128):
        ids, targets = task(n, 8)(torch.Generator().manual_seed(n))
        own = task(None, 1)
        pairs = ids[:, :n] - (1 + own.values + own.keys)
        assert all(len(set(row)) == n for row in (pairs // own.values).tolist()), (
            "no key stands twice"
        )
        said = ids.gather(1, own.answers(ids).clamp(min=0)) - (1 + own.values + own.keys)
        asked = targets != training.UNASKED
        assert torch.equal(1 + said[asked] % own.values, targets[asked])


def test_what_pages_say_of_two_stops_and_of_the_length_of_training():
    """The answer's box, the lesson and the talk: a price that grows, a stop that decides no sentence, five runs of eight."""
    late = comparison.plateaus()
    assert late.stays["retrieval", entries.MIXED] == "stays right"
    assert late.first_2048["retrieval", entries.MIXED] < protocol.KEPT
    assert late.score_2048["retrieval", entries.MIXED_SCALED] == 1
    assert late.score_2048["retrieval", "NoPE"] < protocol.KEPT
    assert (late.learned["counting", "GRU"], late.stays["counting", "GRU"]) == (4, "falls")
    assert late.score_2048["retrieval", "NoPE, scalable softmax"] == 1
    assert (
        late.score_128["retrieval", "RoPE"]
        < 0.65
        < 0.85
        < late.score_128["retrieval", "ALiBi"]
        < protocol.KEPT
    )
    assert (late.score_128["recall", "NoPE"], late.score_128["counting", "NoPE"]) < (0.5, 0.5)
    runs = data.table("race_plateau").query("rate == 0.005").groupby(["task", "entry"])
    named = {
        ("retrieval", entries.MIXED): 2048,
        ("counting", "NoPE, squared ReLU"): 128,
        ("counting", "NoPE"): 128,
    }
    right = [runs.get_group(cell)[f"score_{n}"] >= protocol.KEPT for cell, n in named.items()]
    assert [(each.sum(), len(each)) for each in right] == [(8, 8), (5, 8), (0, 5)]
    prices = data.table("race_price").query("rate == 0.005")
    price = prices.groupby(["entry", "trained"]).steps.mean()
    assert all(
        price[name].is_monotonic_increasing for name in (entries.MIXED, entries.MIXED_SCALED)
    )
    assert price["NoPE, stick-breaking", 32] > 2 * price["NoPE, stick-breaking", 16]
    plain = comparison.table().query("task == 'retrieval' and entry == 'NoPE'")
    assert plain.groupby("steps").score_128.mean().round(2).to_dict() == {100: 0.93, 200: 0.98}
    recall = comparison.successes(comparison.table()).set_index(["task", "entry"]).loc["recall"]
    stick = recall.loc["NoPE, stick-breaking"]
    assert (stick.learned, stick.seeds, round(stick.right, 2)) == (8, 15, 0.95)
    assert (
        late.learned["recall", "NoPE, stick-breaking"],
        late.runs["recall", "NoPE, stick-breaking"],
    ) == (5, 8)
    assert recall.right[["RoPE, random positions", "larger base", "p-RoPE"]].round(2).tolist() == [
        0.62,
        0.40,
        0.26,
    ]
    corner = ["NoPE, stick-breaking", entries.MIXED, entries.MIXED_SCALED]
    assert late.loc["last"].loc[corner, ["first_2048", "score_2048"]].eq(1).all(axis=None)
    assert prices.query("entry == @entries.MIXED and trained == 128").learned.tolist() == [0, 0, 0]
    slower = data.table("race_price").query(
        "rate == 0.002 and entry == @entries.MIXED and trained == 128"
    )
    assert (slower.learned.tolist(), slower.steps.min(), slower.steps.max()) == (
        [1, 1, 1],
        600,
        1700,
    )
    rope = data.table("race_price").query(
        "rate == 0.002 and entry == @entries.BASELINE and trained == 128"
    )
    assert sorted(rope.steps) == [400, 500, 700]
    assert slower.steps.mean() / rope.steps.mean() == pytest.approx(2.25)
    price = rates.price().steps
    assert 3 < price[entries.MIXED, 128] / price[entries.BASELINE, 128] < 4
    cells = rates.by_rate().loc["retrieval"]
    assert (
        cells.score_2048[entries.MIXED, 0.005]
        > protocol.KEPT
        > 0.7
        > cells.score_2048[entries.MIXED, 0.002]
    )
    sharper = cells.loc[entries.MIXED_SCALED]
    assert sharper.score_2048.eq(1).all()
    assert sharper.first_2048.gt(protocol.KEPT).all()
    assert (sharper.index.tolist(), sharper.runs.sum()) == ([0.001, 0.002, 0.005], 11)
    assert rates.best().rate["retrieval", entries.MIXED] == 0.002
    recall = rates.by_rate().loc["recall", "NoPE, stick-breaking", 0.002]
    assert (recall.learned, recall.runs) == (5, 5)
    assert recall.first_128 < protocol.KEPT < 0.98 < recall.score_128
    forgetting = rates.by_rate().loc["recall", "NoPE, forgetting"]
    assert forgetting.learned.tolist() == forgetting.runs.tolist() == [3, 3, 3]
    assert forgetting.score_128[[0.005, 0.002]].round(2).tolist() == [0.99, 0.95]
    assert rates.order("retrieval", entries.MIXED, "RoPE") == "stands at every rate"
    stick = cells.loc["NoPE, stick-breaking"]
    assert stick.score_128.ge(protocol.KEPT).all()
    assert stick.first_128.ge(protocol.KEPT).tolist() == [False, True, True]
    assert stick.score_2048[[0.005, 0.002, 0.001]].round(2).tolist() == [0.67, 0.46, 0.33]
    runs = data.table("race_plateau").query("task == 'retrieval'")
    looks = runs.groupby(["entry", "rate"]).best.mean().round(2)
    assert looks[entries.MIXED].tolist() == [0.63, 0.77, 0.94]
    assert looks["NoPE, stick-breaking"].tolist() == [0.54, 0.52, 0.80]
    ends = [f"{when}_{n}" for when in ("first", "score") for n in (128, 2048)]
    for name in (entries.MIXED, "NoPE, stick-breaking"):
        last = rates.by_rate().loc["last", name]
        assert last.loc[[0.005, 0.002], ends].eq(1).all(axis=None)
    last = rates.by_rate().score_128["last"].loc[["RoPE", "NoPE"]]
    assert last.drop(0.001, level="rate", errors="ignore").round(2).agg(
        ["min", "max"]
    ).tolist() == [
        0.65,
        0.69,
    ]
    assert last.max() < protocol.CHANCE["last"]
    plain = rates.by_rate().xs("NoPE", level="entry").score_128.xs(0.002, level="rate")
    right = ["first", "retrieval"]
    assert plain[right].ge(protocol.KEPT).all()
    assert plain.drop(right).lt(0.7).all()
    assert len(plain) == 5
    first = rates.by_rate().loc["first"]
    assert first.score_128.eq(1).all()
    assert len(first) == 8
    assert first.runs.eq(3).all()
    sharp = cells.loc["NoPE, scalable softmax"]
    assert (sharp.score_2048.eq(1).all(), sharp.runs.sum()) == (True, 11)
    near = (
        data.table("race_plateau")
        .query("task == 'retrieval' and rate == 0.002 and entry == @entries.MIXED")
        .first_128
    )
    without = (near.sum() - near) / (len(near) - 1)
    assert [round(x, 3) for x in (near.mean(), without.min(), without.max())] == [
        0.904,
        0.893,
        0.928,
    ]
    forgets = rates.by_rate().score_128.xs("NoPE, forgetting", level="entry").round(2)
    assert forgets["retrieval"].loc[[0.005, 0.002, 0.001]].tolist() == [0.92, 0.78, 0.71]
    assert forgets["recall"].loc[[0.005, 0.002, 0.001]].tolist() == [0.99, 0.95, 0.92]
    assert forgets["counting"].loc[[0.005, 0.002, 0.001]].tolist() == [0.16, 0.17, 0.15]
    twice = data.table("race_twice").groupby("entry").score_2048.mean()
    assert twice[["NoPE, scalable softmax", entries.MIXED_SCALED]].eq(1).all()
    assert twice[entries.MIXED] > 0.9 > twice[["NoPE", "NoPE, stick-breaking"]].max()
    long = data.table("race_seen").set_index("entry")
    assert long.learned[f"{entries.MIXED}, trained to 128"].sum() == 0
    assert long.steps["RoPE, trained to 128"].agg(["min", "max"]).tolist() == [300, 400]


def test_what_pages_say_of_the_count_at_three_rates():
    """The answer and lesson 7: how many runs with squared ReLU keep the count at 128, by rate."""
    runs = data.table("race_plateau").query("task == 'counting' and entry == 'NoPE, squared ReLU'")
    right = runs.groupby("rate").score_128
    kept = right.agg(lambda scores: (scores >= protocol.KEPT).sum())
    assert kept.to_dict() == {0.001: 0, 0.002: 1, 0.005: 5}
    assert right.size().tolist() == [3, 3, 8]
    assert right.mean().round(2).tolist() == [0.79, 0.82, 0.78]
    softmax = data.table("race_plateau").query("task == 'counting' and entry == 'NoPE'")
    assert softmax.groupby("rate").size().to_dict() == {0.001: 3, 0.002: 3, 0.005: 5}
    assert softmax.score_128.max() < 0.5


def test_what_the_page_says_of_one_changed_weight():
    """The race in full: how far right answers at 32 letters move, without positions and with each encoding."""
    runs = data.table("counting_nudged").set_index(["encoding", "seed", "nudge"]).right_32.unstack()
    moved = (runs[1e-7] - runs[0.0]).abs().groupby("encoding").max()
    assert moved[["NoPE", "ALiBi"]].round(2).tolist() == [0.05, 0.04]
    assert moved[["RoPE", "APE"]].max() < 0.01


def test_the_yardstick_of_the_page_is_the_package_s():
    """The ten lines of lesson 7, run as they stand there, against `comparison.successes`."""
    cells = lesson("c7ten-code")["cells"]
    won = (
        comparison.successes(comparison.table()).query("task == 'last'").set_index("entry").success
    )
    assert cells.success.reindex(won.index).eq(won).all()
    assert won.any()
    assert not won.all()


def test_titles_and_answers_follow_the_table(instead):
    rows = comparison.table()
    assert "**" not in figures.tasks_kept(rows)[1]
    maps = comparison.noises(rows)
    said = (maps.agree > 0.5) & (maps.answer < maps.left) & (maps.high < 1) & (maps.layer == 1)
    assert said.all(), "what the lab's answer says, and where it looks"
    won = instead(longer=lifted(["ALiBi"]), score_128=lifted(["ALiBi"]), best_128=lifted(["ALiBi"]))
    assert "**ALiBi**." in figures.closing_answer(won)
    assert "One design stayed right" in figures.tasks_kept(won)[0].get_suptitle()
    assert [comparison.judge(won)["H1"][task] for task in figures.BOTH] == ["holds: ALiBi"] * 2
    assert [comparison.judge(won)["H2"][task] for task in figures.BOTH] == [
        "does not hold here"
    ] * 2
    blunt = instead(won, best_128=lifted([]))
    assert comparison.judge(blunt)["H1"]["last"] == "does not hold here", (
        "right, but not by attention"
    )
    late = won.assign(learned=(~won.entry.isin(entries.POSITIONS)).astype(int))
    assert comparison.judge(late)["H1"]["retrieval"] == "not decided: none has learned"


def test_a_success_is_absolute_and_an_opening_needs_the_ingredient(instead):
    """What NoPE does alone is right, too, and not what is added to it; with one rule for success nobody loses a tick."""
    both = ["NoPE", "NoPE, differential"]
    rows = instead(longer=lifted(both), score_128=lifted(both), best_128=lifted(both))
    won = comparison.successes(rows).set_index(["entry", "task"])
    assert won.success["NoPE", "retrieval"]
    assert won.success["NoPE, differential", "retrieval"]
    assert won.opens["NoPE", "retrieval"]
    assert not won.opens["NoPE, differential", "retrieval"]
    assert comparison.judge(rows)["H4"]["retrieval"].startswith(
        "right, and so is what it is made of: NoPE, differential"
    )


def test_who_passes_both_is_named_wherever_the_race_is_told():
    """No page says that one design kept both tasks while another did, and the answer names all that do."""
    rows = comparison.table()
    both = comparison.all_kept(rows, figures.BOTH)
    won = comparison.successes(rows)
    fine = (
        won[won.task.isin(figures.BOTH) & won.kept & (won.best > protocol.SHARP)]
        .groupby("entry")
        .size()
    )
    assert set(both) == set(fine.index[fine == 2])
    assert len(both) > 1
    said = figures.closing_answer(rows)
    assert all(f"**{figures._plain(name)}**" in said for name in both)
    told = [*(path for kind in ("ipynb", "md", "yml") for path in (SOURCE.parent / "chapters").rglob(f"*.{kind}")), SOURCE / "course/scorecard/answer.toml"]  # fmt: skip
    for path in told:
        text = path.read_text().lower().replace("more than one row has both", "")
        for phrase in (
            "one design kept",
            "one row has both",
            "the one change that kept",
            'opens both"',
        ):
            assert phrase not in text, path


def test_a_task_whose_attention_was_not_looked_at_is_kept_and_no_success(instead):
    rows = comparison.table()
    last = rows[rows.task == "last"].assign(task="counting", best_128=float("nan"))
    rows = pd.concat([rows[rows.task != "counting"], last])
    rows = instead(rows, longer=lifted(["ALiBi"]), score_128=lifted(["ALiBi"]))
    won = comparison.successes(rows).set_index(["entry", "task"])
    assert (won.kept["ALiBi", "counting"], won.success["ALiBi", "counting"]) == (True, False)
    assert "The count at 128 is kept by: **ALiBi**" in figures.closing_answer(rows)
    assert "counting: ALiBi" in figures.tasks_kept(rows)[1]
    assert set(comparison.judge(rows)["H1"]) == set(protocol.LOOKED)
    assert CLAIMS["race_nothing_keeps_the_count"].measure().verdict == FAILS
    instead(rows, score_128=lifted([]))
    assert CLAIMS["race_nothing_keeps_the_count"].measure().verdict == HOLDS


H4 = entries.HYPOTHESES["H4"][1]
EACH_WAY = [name for names in entries.PHYSICAL.values() for name in names]
SHARES = ("answer_16", "answer_128", "best_16", "best_128")
NOISES = ("noise_16", "noise_128", "outlier_logits", "outlier_states", "quantisation_error")
BETTER = (
    {"longer": lifted(H4)} | {c: lifted(H4) for c in SHARES} | {c: lifted(H4, 0.1) for c in NOISES}
)
WORSE = (
    {"longer": lifted(H4, 0.1)}
    | {c: lifted(H4, 0.1) for c in SHARES}
    | {c: lifted(H4) for c in NOISES}
)


def kept(names, tasks=protocol.TASKS):
    """Columns with which these entries keep these tasks, and no other does."""
    share = lambda row: jitter(row) + (0.95 if row.entry in names and row.task in tasks else 0.4)  # noqa: E731
    return dict.fromkeys(("longer", "score_128", "best_128"), share)


@pytest.mark.parametrize(
    ("columns", "verdicts"),
    [
        (BETTER, {"differential_retrieves": HOLDS, "differential_attends_to_the_answer": HOLDS, "differential_has_smaller_outliers": HOLDS}),
        (WORSE, {"differential_retrieves": FAILS, "differential_attends_to_the_answer": FAILS, "differential_has_smaller_outliers": FAILS}),
        *(({f"gain_{k}": lambda row, f=factor: f + jitter(row) for k in (1, 2)}, {"subtraction_raises_signal_over_noise": verdict})
          for factor, verdict in ((1.5, HOLDS), (0.7, FAILS))),
        *((kept(names), {"physical_help": CORRECTED, "positions_are_not_enough": HOLDS}) for names in entries.PHYSICAL.values()),
        (kept(EACH_WAY), {"physical_help": HOLDS, "positions_are_not_enough": HOLDS}),
        (kept(["ALiBi"]), {"physical_help": FAILS, "local_and_global_opens_both": LITTLE}),
        (kept(["ALiBi"], ["retrieval", "recall"]), {"positions_are_not_enough": CORRECTED}),
        (kept(entries.POSITIONS), {"positions_are_not_enough": FAILS}),
        (kept([entries.MIXED]), {"local_and_global_opens_both": HOLDS}),
        (kept([entries.MIXED], ["last"]), {"local_and_global_opens_both": LITTLE, "physical_help": FAILS}),  # one of two is not most
    ],
)  # fmt: skip
def test_claims_on_the_race_can_hold_and_can_fail(instead, columns, verdicts):
    instead(**columns)
    for name, verdict in verdicts.items():
        assert CLAIMS[f"race_{name}"].measure().verdict == verdict, name


def test_the_claim_on_share_and_accuracy_follows_the_sign_and_tells_no_cause(instead):
    place = {name: k / 40 for k, name in enumerate(entries.ENTRIES)}
    ran = comparison.table().query("task == 'retrieval'").entry.unique()
    count = len(set(ran) & set(entries.REMEDIES))
    for sign in (1, -1):
        instead(
            answer_128=lambda row: place[row.entry] + row.seed / 1e4,
            noise_128=lambda row: -place[row.entry],
            score_128=lambda row, sign=sign: sign * (place[row.entry] + row.seed / 1e4),
        )
        found = CLAIMS["race_share_goes_with_right_answers"].measure()
        assert found.verdict == (CORRECTED if sign > 0 else FAILS)
        assert "in no run, so we cannot name a cause" in found.measured
        assert f"{count} remedies {'−' if sign < 0 else ''}1.0" in found.measured
    with pytest.raises(ValueError, match="share"):
        comparison.rank_correlation(comparison.table(), share="sink")
