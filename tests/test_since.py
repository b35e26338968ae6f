"""The predictions of newer papers: what chapters/since.md says of our runs is what their tables hold."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from course.chapter1 import long_range
from course.chapter2 import measures, sinks
from course.chapter3 import copying, distractors
from course.chapter5 import widths
from helpers import data

PAGE = (Path(__file__).parents[1] / "chapters" / "since.md").read_text(encoding="utf-8")


def test_mask_first_sees_others_ends_sink():
    table = data.table("masked_smollm2").set_index(["change", "text"])
    plain, opened = table.loc["nothing"], table.loc["first sees 8"]
    assert plain["first"].min() > 0.45
    assert opened["first"].max() < 0.002
    assert plain["norm_first"].min() > 188
    assert opened["norm_first"].max() < 1.32
    alone, two = table.loc["token 40 sees itself"], table.loc["token 40 sees token 39"]
    assert 0.24 < alone["other"].min()
    assert alone["other"].max() < 0.27
    assert two["other"].median() < 0.011 < two["other"].max()
    assert table.loc["token 40 sees the last 4", "heads_other"].max() == 0


def test_changed_mask_token_sees_itself_only():
    mask = sinks.changed_mask(64, "token 40 sees itself")
    assert mask[40].nonzero().flatten().tolist() == [40]
    assert mask[:40].equal(torch.ones(64, 64, dtype=torch.bool).tril()[:40])
    with pytest.raises(ValueError, match="change"):
        sinks.changed_mask(64, "none")


def test_sink_cheaper_than_diagonal_if_shared():
    table = data.table("pattern_cost")
    one = table[table["shared"] == 1].groupby("pattern")["norm"]
    assert one.max()["sink"] < 1.7
    assert 8.5 < one.min()["diagonal"] < one.max()["diagonal"] < 15
    none = table[(table["shared"] == 0) & (table["pattern"] == "sink")]["norm"]
    assert none.isna().any()
    assert none.min() > 160


def test_softmax_lead_many_distractors_near_log():
    table = data.table("distractor_lead").groupby(["spread", "distractors"]).mean()
    low, high = table.loc[1.0, 100_000], table.loc[8.0, 100_000]
    assert round(low["softmax"], 1) == 12.0
    assert round(low["root"], 1) == 4.8
    assert round(high["softmax"], 1) == 37.9
    assert round(high["root"], 1) == 38.4
    assert (table["largest"] / table["root"]).between(0.95, 1.06).all()
    assert data.table("logit_spread")["median"].between(1.95, 2.1).all()
    found = distractors.lead(10, 1.0, 0)
    assert found["softmax"] > found["largest"]


def test_learned_frequency_falls_slower_than_width():
    table = data.table("width_learned")
    for length, said in ((64, "−0.65"), (128, "−0.83")):
        each = table[table["length"] == length].assign(log=lambda t: np.log(t["used"]))
        means = each.groupby("width")["log"].mean()
        slope = np.polyfit(np.log(means.index), means, 1)[0]
        assert f"{slope:.2f}".replace("-", "−") == said
        assert said in PAGE


def test_best_frequency_stretched_task_scales():
    table = data.table("width_one_pair").set_index(["kernel", "length", "width"])["times_width"]
    stretched = [table["window", 8 * width, width] for width in (8, 16, 32)]
    assert all(abs(each - 0.69) < 0.01 for each in stretched)
    fixed = data.table("width_one_pair").query("kernel == 'window'").groupby("length")["best"]
    assert fixed.max()[64] < 0.09
    assert fixed.min()[64] > 0.045
    assert fixed.max()[256] < 0.0225
    assert fixed.min()[256] > 0.0155


def test_one_pair_losses_uniform_window_is_log():
    theta = torch.tensor([0.1])
    loss = widths.one_pair_losses(theta, widths.wanted(16, 16))
    assert float(loss) == pytest.approx(math.log(16), abs=1e-6)


@pytest.mark.parametrize(("shape", "hops"), [("tree", 2), ("star", 2), ("relay", 3)])
def test_known_from_below_range_is_chance(shape, hops):
    below = long_range.known_from(shape, 4, hops - 1)
    assert below["accuracy"] == below["chance"] == 0.25
    assert long_range.known_from(shape, 4, hops)["accuracy"] == 1


def test_known_from_few_orders_leaks_answer():
    table = data.table("long_range").query("seen == 125 and shape == 'tree' and radius == 2")
    assert table["accuracy"].between(0.155, 0.185).all()


def test_attention_moves_to_the_asked_digit():
    table = data.table("question_moved").query("wording == 'question after'")
    ratio = table.pivot_table(index=["length", "seed"], columns="place", values="first_over_last")
    assert (ratio["first"] > ratio["last"]).all()
    assert ratio["first"].between(1.9, 4.35).all()
    assert ratio["last"].between(1.05, 2.15).all()
    asked = data.table("question_moved").query("place == 'last'")
    moved = asked.pivot_table(index=["length", "seed"], columns="wording", values="first_over_last")
    assert int((moved["question before"] > moved["question after"]).sum()) == 9


def test_asked_digits_are_found_in_the_prompt():
    tokens, places = copying.asked("7193", "first", "question before")
    names = [int(copying.probe.encode(copying.models.default(), digit)[0]) for digit in "7193"]
    assert tokens[places].tolist() == names


def test_causal_attention_recommended_then_overtaken():
    table = measures.compare_connections(6, 0.68)
    assert table["resistance"].idxmin() == table["worst heard"].idxmax() == "causal attention"
    behind = measures.falls_behind(0.68)
    assert f"From {behind} layers on" in PAGE


def test_last_digit_copied_more_often_than_first():
    right = data.table("copied_ends").pivot_table(
        index=["length", "seed"], columns="place", values="right"
    )
    assert (right["last"] > right["first"]).all()
    assert [round(20 * right[place].sum()) for place in ("first", "last")] == [48, 63]
