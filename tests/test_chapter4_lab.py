"""Chapter 4's lab: answers are read strictly, runs are the same from the same seed, and its verdicts can fail."""

import pandas as pd
import pytest
import torch
from tiny_models import tiny

from helpers import checkpoints, counting, data
from helpers.chapter4 import asked, claims, figures, trained
from helpers.claims import CORRECTED, FAILS, HOLDS, UNABLE

COUNTED, COPIED = data.table("counting_trained"), data.table("copying_trained")


def test_answers_in_a_batch_are_those_of_one_at_a_time():
    """Padding on the left changes nothing, and the beginning of an answer line is part of the answer."""
    model = tiny("llama")
    prompts = ["How many? 1", "How many ones are in 1111111111?", "1 1"]
    together = asked.write(model, prompts, 6, "So:", together=3)
    alone = [asked.write(model, [prompt], 6, "So:")[0] for prompt in prompts]
    assert together == alone
    assert all(text.startswith("So:") for text in together)


def test_a_number_that_is_cut_off_is_no_answer():
    assert counting.parse_answer(asked.BEGUN + " 11") == 11
    assert counting.parse_answer(asked.BEGUN + " 11…") is None
    assert counting.parse_answer(asked.BEGUN + " 11.\n\nThe next…") == 11
    model = tiny("llama")
    assert all(text.endswith("…") for text in asked.write(model, ["1", "2"], 1))


def test_answers_come_with_the_right_count_and_missing_ones_stay_missing():
    row = {"model": "m", "task": "zeros and ones", "strategy": "no CoT", "line": "own", "seed": 0}
    row |= {f"answer_{n}": 7 if n == 10 else None for n in asked.LENGTHS} | {f"cut_{n}": 0 for n in asked.LENGTHS}
    found = asked.long(pd.DataFrame([row])).set_index("length")
    assert found["count"].to_dict() == {n: counting.make("zeros and ones", n, 0).count for n in asked.LENGTHS}
    assert found.answer.notna().sum() == 1
    assert found.error[10] == abs(7 - found["count"][10])
    assert found.error.drop(10).isna().all()


def test_an_answer_copied_from_the_examples_is_noticed():
    rows = [{"task": "sum", "strategy": name, "answer": k} for name in ("CoT few-shot", "no CoT") for k in (12, 6, 7)]
    rows.append({"task": "word", "strategy": "CoT few-shot", "answer": 12})
    assert asked.from_examples(pd.DataFrame(rows)) == (2, 4)


def test_a_string_written_back_is_noticed():
    text = counting.make("zeros and ones", 10, 0).sequence
    rows = [
        {"task": "zeros and ones", "strategy": name, "length": 10, "seed": 0, "answer": answer}
        for name in ("CoT few-shot", "no CoT")
        for answer in (int(text), 20, 7)
    ]
    assert asked.without_examples(pd.DataFrame(rows)) == (1, 1, 3)


def test_naming_one_number_is_right_as_often_as_the_likeliest_count():
    assert trained.likeliest(1) == pytest.approx(1 / 2, abs=0.15)
    assert 1 / 17 < trained.likeliest(32) < 0.15
    task = trained.COUNTING
    drawn, right = trained._questions(task, 32, 128, 0)
    best = max((right == k).double().mean() for k in range(task.most + 1))
    assert trained.likeliest(32) == float(best)
    assert drawn == trained._questions(trained.replace(task, tokens="separated"), 32, 128, 0)[0]


def test_a_row_of_each_table_comes_again_from_its_seed():
    few = trained.count_run("NoPE", 10_000, 0, "characters", 3, 8)
    again = trained.count_run("NoPE", 10_000, 0, "characters", 3, 8)
    keep = [name for name in few if not name.startswith("cpu")]
    assert [few[name] for name in keep] == [again[name] for name in keep]
    assert few["tokens_1"] < few["tokens_4"]
    other = trained.count_run("NoPE", 10_000, 0, "characters", 4, 8)
    assert [few[name] for name in keep] != [other[name] for name in keep]


def test_a_decoder_that_counts_perfectly_has_no_errors_and_notices_each_letter(monkeypatch):
    task = trained.COUNTING
    monkeypatch.setattr(trained, "answers", lambda model, task, strings: torch.tensor([s.count("y") for s in strings]))
    assert trained.errors(None, task, 40).eq(0).all()
    assert trained.noticed(None, task, 12, 0) == trained.noticed(None, task, 12, -1) == 1
    monkeypatch.setattr(
        trained, "answers", lambda model, task, strings: torch.tensor([s[1:].count("y") for s in strings])
    )
    assert trained.noticed(None, task, 12, 0) == 0
    assert trained.noticed(None, task, 12, -1) == 1
    monkeypatch.setattr(
        trained, "answers", lambda model, task, strings: torch.tensor([2 * s.count("y") for s in strings])
    )
    assert trained.noticed(None, task, 12, -1) == 0, "it rises, but not by one"


def test_no_number_is_no_answer():
    """A decoder that names a letter has answered -1, which counts as an error of the whole count."""

    class Letters(torch.nn.Module):
        def forward(self, tokens):
            logits = torch.zeros(*tokens.shape, len(trained.COUNTING.vocabulary))
            logits[..., trained.COUNTING.vocabulary.index("x")] = 1
            return logits

    assert trained.answers(Letters(), trained.COUNTING, ["xyy", "x"]).tolist() == [-1, -1]
    drawn = trained.errors(Letters(), trained.COUNTING, 10)
    assert drawn.max() == 10


@pytest.mark.parametrize("name", ["copying", "copying_nope"])
def test_the_margin_is_that_of_the_question_and_the_control_of_digits_all_alike(name):
    model = checkpoints.load(name)
    seen = checkpoints.copying(model, [4, 9], "last", "0")
    zero, one = (model.task.vocabulary.index(digit) for digit in "01")
    for k, n in enumerate((4, 9)):
        for part, string in (("margin", "1" * (n - 1) + "0"), ("control", "1" * n)):
            logits = model.model(model.task.encode([string], ["last"])[0])[0, -1]
            assert float(seen[part][k]) == pytest.approx(float(logits[zero] - logits[one]), abs=1e-4)
        pair = model.task.encode(["1" * (n - 1) + "0", "1" * n], ["last", "last"])[0]
        states = model.model.states(pair)[:, -1]
        assert float(seen["distance"][k]) == pytest.approx(float((states[0] - states[1]).abs().sum()), rel=1e-4)
    assert (seen["margin"] > 0).all()
    assert (seen["control"] < 0).all()
    assert seen["swapped"].abs().max() < 0.2 * (seen["margin"] - seen["control"]).min()


def test_the_picture_states_the_turn_that_the_margins_have():
    model = checkpoints.load("copying")
    _, finding = figures.copying_link(model, "last", "0", "RoPE")
    lengths = range(2, 81)
    at = trained.turn(lengths, checkpoints.copying(model, lengths, "last", "0")["margin"])
    assert at > trained.LONGEST
    assert f"turns at {at} digits" in finding


def test_equal_budgets_are_read_from_the_curve_of_the_decoder_with_commas():
    rows = [trained.PLAIN | {"seed": 0, "tokens": tokens} for tokens in ("characters", "separated")]
    for row, cost in zip(rows, (1, 2), strict=True):
        for q in range(1, 5):
            row |= {f"inside_{q}": q / 4, f"cpu_{q}": 4 * cost * q, f"tokens_{q}": 100 * cost * q}
    found = trained.by_budget(pd.DataFrame(rows))
    assert found["equal steps"] == [{"plain": 1.0, "separated": 1.0}]
    assert found["equal time"] == found["equal tokens"] == [{"plain": 1.0, "separated": 0.5}]


def measured(monkeypatch, claim, **tables):
    plain = data.table
    monkeypatch.setattr(data, "table", lambda name: tables.get(name, None) if name in tables else plain(name))
    return claim().verdict


def test_verdicts_on_counting_follow_the_table(monkeypatch):
    steady, weak, base = COUNTED.copy(), COUNTED.copy(), COUNTED.copy()
    steady[[name for name in steady if name.startswith("error_")]] = 0.0
    assert measured(monkeypatch, claims.counting_error_grows, counting_trained=steady) == FAILS
    weak[["right_4", "right_8"]] = 0.2
    assert measured(monkeypatch, claims.counting_error_grows, counting_trained=weak) == UNABLE
    assert measured(monkeypatch, claims.commas_do_not_help_from_scratch, counting_trained=weak) == UNABLE
    helped = COUNTED.copy()
    commas = helped.tokens == "separated"
    helped.loc[~commas, [f"inside_{q}" for q in range(1, 5)]] = 0.5
    helped.loc[commas, [f"inside_{q}" for q in range(1, 5)]] = 0.9
    assert measured(monkeypatch, claims.commas_do_not_help_from_scratch, counting_trained=helped) == FAILS
    base["right_20"] = base["right_24"] = base.seed * 0.1
    assert measured(monkeypatch, claims.base_in_trained_decoders, counting_trained=base) == HOLDS
    chunks = COUNTED.copy()
    chunks.loc[chunks.tokens.str.startswith("chunks"), "inside_4"] = 0.3
    assert measured(monkeypatch, claims.chunks_in_trained_decoders, counting_trained=chunks) == HOLDS
    chunks.loc[chunks.tokens.str.startswith("chunks"), "inside_4"] = 1.0
    assert measured(monkeypatch, claims.chunks_in_trained_decoders, counting_trained=chunks) == FAILS


def test_verdicts_on_copying_follow_the_table(monkeypatch):
    first_kept, collapsed, no_control, leaky = (COPIED.copy() for _ in range(4))
    first_kept[["turn_first_0", "turn_first_1"]] = trained.NEVER
    assert measured(monkeypatch, claims.last_token_is_lost_first, copying_trained=first_kept) == HOLDS
    first_kept[["turn_first_0", "turn_first_1"]] = 400
    assert measured(monkeypatch, claims.last_token_is_lost_first, copying_trained=first_kept) == CORRECTED
    collapsed[[name for name in collapsed if name.startswith("distance_")]] = 0.001
    assert measured(monkeypatch, claims.copying_fails_at_collapse, copying_trained=collapsed) == HOLDS
    no_control[[name for name in no_control if name.startswith("control_")]] = 20
    assert measured(monkeypatch, claims.last_token_is_lost_first, copying_trained=no_control) == FAILS
    leaky.loc[leaky.window == 8, ["turn_last_0", "turn_last_1"]] = 40
    assert measured(monkeypatch, claims.window_keeps_the_last, copying_trained=leaky) == FAILS


def test_verdicts_on_guesses_follow_the_answers(monkeypatch):
    table = data.table("counting_smollm2")
    names = [f"answer_{n}" for n in asked.LENGTHS]
    table[names] = 100
    assert measured(monkeypatch, claims.guesses_are_round, counting_smollm2=table) == UNABLE
    for n in asked.LENGTHS[:-2]:  # right where there is little to count
        table[f"answer_{n}"] = [counting.make(task, n, 0).count for task in table.task]
    found = measured(monkeypatch, claims.guesses_are_round, counting_smollm2=table)
    assert found in (HOLDS, CORRECTED)


def test_the_committed_tables_say_how_they_were_made():
    for name in ("counting_trained", "copying_trained", "counting_smollm2"):
        head = [line for line in (data.folder() / f"{name}.csv").read_text().splitlines() if line.startswith("#")]
        assert any("command: python -m helpers.chapter4." in line for line in head)
        assert any("seed 0" in line and "torch" in line for line in head)
