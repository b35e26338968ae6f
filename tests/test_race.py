"""The race: one budget for all, the same numbers from the same seed, and a test that can say "no difference"."""

import math
import os
import signal
import subprocess
import sys
import time
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from helpers import sweep, tasks, training
from helpers.chapter6 import claims as claims6
from helpers.chapter6 import figures, race
from helpers.claims import CLAIMS, CORRECTED, FAILS, HOLDS, OPEN

SOURCE = Path(__file__).parents[1] / "src"
TIMES = {"seconds", "step_ms"}
SYNTHETIC = [task for task in race.TASKS if task != "language"]


def without_times(rows):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def draw(entry, task, n=None, seed=0):
    return race.batch(race.ENTRIES[entry], task, torch.Generator().manual_seed(seed), n)


# One protocol, one budget ------------------------------------------------------------------------------


@pytest.mark.parametrize("task", race.TASKS)
def test_parameters_and_tokens_are_matched(task):
    sizes, tokens = {}, {}
    for name, entry in race.ENTRIES.items():
        sizes[name] = sum(p.numel() for p in race.decoder(entry, task, 0).parameters())
        tokens[name] = sum(draw(name, task, seed=seed)[0].numel() for seed in range(20))
    assert max(sizes.values()) < 1.01 * min(sizes.values()), sizes
    assert max(tokens.values()) < 1.1 * min(tokens.values()), tokens


def test_differential_has_half_the_heads_and_twice_the_values():
    first, second = (
        race.decoder(race.ENTRIES[name], "first", 0).blocks[0].inner
        for name in ("differential", "differential, version 2")
    )
    assert (first.heads, second.heads) == (2, 4)
    q1, k1, _, _, v = first.project(torch.zeros(1, 3, 32))
    assert (q1.shape[-1], k1.shape[-1], v.shape[-1]) == (8, 8, 16)


@pytest.mark.parametrize("name", race.ENTRIES)
def test_later_tokens_change_nothing(name):
    entry = race.ENTRIES[name]
    model = race.decoder(entry, "language", 0)
    for block in model.blocks if entry.at_test else ():
        block.weigh = entry.at_test
    ids = torch.randint(1, 40, (2, 20), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model(ids)[:, :12], model(ids[:, :12]), rtol=1e-4, atol=1e-5)
    maps = model.attention(ids)
    assert (maps.triu(1) == 0).all()


def test_local_layers_alternate_with_full_ones():
    blocks = race.decoder(race.ENTRIES["sliding window"], "first", 0).blocks
    assert [block.window for block in blocks] == [race.LOCAL, None]


def test_scalable_softmax_is_softmax_at_the_trained_length_and_sharper_beyond():
    weigh = race.ScalableSoftmax(1)
    row = torch.randn(1, 1, 1, 128, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(weigh(row[..., :16]), row[..., :16].softmax(-1))
    torch.testing.assert_close(weigh(row), (row * math.log(128) / math.log(16)).softmax(-1))


def test_gates_scale_what_heads_bring():
    model = race.decoder(race.ENTRIES["gated attention"], "first", 0)
    block, x = model.blocks[0], torch.randn(1, 5, 32)
    plain = race.Block.mix(block, x)
    gates = block.gate(block.norm1(x)).sigmoid()
    torch.testing.assert_close(block.mix(x).transpose(1, 2).flatten(2), plain.transpose(1, 2).flatten(2) * gates)


def test_separators_stand_between_and_targets_stay_with_their_tokens():
    for task in race.TASKS:
        plain, marked = draw("RoPE", task, 16), draw("separators", task, 16)
        token = len(race.vocabulary(task)) - 1
        kept = marked[0] != token
        assert torch.equal(marked[0][kept], plain[0].flatten())
        assert torch.equal(marked[1][kept], plain[1].flatten())
        assert (marked[1][~kept] == training.UNASKED).all()
        assert (marked[0][:, race.EVERY] == token).all()


# What is measured --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RoPE", "separators"])
@pytest.mark.parametrize("task", SYNTHETIC)
def test_answer_and_noise_are_the_tokens_that_hold_them(name, task):
    ids, targets = draw(name, task, 16)
    answer, noise = race.roles(task, ids, targets)
    words = race.vocabulary(task)
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


def test_masses_of_maps_that_are_known():
    """All weight on the answer, then all on noise with a negative sign, then half and half."""
    ids, targets = draw("RoPE", "retrieval", 16)
    answer, noise = (mask.float() for mask in race.roles("retrieval", ids, targets))
    other = noise / noise.sum(-1, keepdim=True).clamp(min=1)

    class Known:
        def attention(self, ids):
            return self.maps[None, :, None].expand(1, -1, 3, -1, -1)

    model = Known()
    for maps, expected in ((answer, (1, 0)), (-other, (0, 1)), (answer - other, (0.5, 0.5))):
        model.maps = maps
        assert race.masses(model, "retrieval", ids, targets) == pytest.approx(expected)


def test_the_best_head_is_found_question_by_question():
    """Of three heads the first has all even questions, the second half of all odd ones, the third nothing."""
    ids, targets = draw("RoPE", "retrieval", 16)
    answer, noise = (mask.float() for mask in race.roles("retrieval", ids, targets))
    even = (torch.arange(ids.shape[1]) % 2 == 0).float()[:, None]
    other = noise / noise.sum(-1, keepdim=True).clamp(min=1)
    heads = [answer * even + other * (1 - even), 0.5 * other - 0.5 * answer * (1 - even), -other]

    class Known:
        def attention(self, ids):
            return torch.stack(heads, 1)[None]

    rows = (targets != training.UNASKED).nonzero()[:, 1] % 2 == 0
    even = float(rows.double().mean())
    best, sharp, one = race.best_heads(Known(), "retrieval", ids, targets)
    assert 0 < even < 1
    assert best == pytest.approx(even + 0.5 * (1 - even))
    assert (sharp, one) == (pytest.approx(even), pytest.approx(max(even, 0.5 * (1 - even))))


@pytest.mark.parametrize("name", ["differential", "differential, version 2"])
def test_the_noises_of_two_maps_are_compared_by_direction_and_by_size(name, monkeypatch):
    model = race.decoder(race.ENTRIES[name], "retrieval", 0)
    ids, targets = draw(name, "retrieval", 16)
    own = type(model.blocks[0].inner)
    lam = lambda self, x: torch.full((len(x), 1, 1), 0.5)  # noqa: E731
    monkeypatch.setattr(own, "lam", lam)
    true, (_, noise) = own.maps, race.roles("retrieval", ids, targets)
    monkeypatch.setattr(own, "maps", lambda self, x: (true(self, x)[0],) * 2)
    found = race.two_noises(model, "retrieval", ids, targets)
    for number in (1, 2):
        expected = {"cosine": 1, "half": 0.25, "left": 0.5, "agree": 1}
        assert {what: found[f"{what}_{number}"] for what in expected} == pytest.approx(expected, abs=1e-5)
    places = noise.double().cumsum(-1) % 2  # every other rival: noises without a common key
    apart = lambda self, x: (places[:, None] * noise[:, None], 2 * (1 - places)[:, None] * noise[:, None])  # noqa: E731
    monkeypatch.setattr(own, "maps", apart)
    found = race.two_noises(model, "retrieval", ids, targets)
    assert (found["cosine_1"], found["agree_1"]) == (0, 0)
    assert found["left_1"] > 1.3


def test_outliers_rank_and_rounding_of_what_is_known():
    assert race.outlier(torch.tensor([1.0, -1.0, 1.0, -8.0, 1.0])) == 8
    rank_two = torch.zeros(1, 8, 5)
    rank_two[0, :4, 0], rank_two[0, 4:, 0] = 1, -1
    rank_two[0, ::2, 1], rank_two[0, 1::2, 1] = 1, -1
    assert race.effective_rank(rank_two) == pytest.approx(2)
    x = torch.linspace(-1, 1, 15)
    torch.testing.assert_close(race.rounded(x), x)  # 15 levels in 4 bits
    assert (race.rounded(torch.tensor([0.1, 100.0])) == torch.tensor([0.0, 100.0])).all()


def test_quantisation_grows_with_an_outlier_and_leaves_the_model_as_it_was():
    model = race.decoder(race.ENTRIES["RoPE"], "first", 0)
    ids, _ = draw("RoPE", "first", 16)
    before, error = model(ids), race.quantisation_error(model, ids)
    torch.testing.assert_close(model(ids), before)
    with torch.no_grad():  # the same function, with one large channel
        for block in model.blocks:
            for norm, linear in ((block.norm1, block.qkv), (block.norm2, block.mlp[0])):
                norm.weight[0] *= 50
                linear.weight[:, 0] /= 50
    torch.testing.assert_close(model(ids), before, rtol=1e-3, atol=1e-4)
    assert race.quantisation_error(model, ids) > 2 * error > 0


def test_the_blind_control_does_not_depend_on_what_it_cannot_see():
    model = race.decoder(race.ENTRIES["control: sees 2 back"], "first", 0).double()
    ids, _ = draw("RoPE", "first", 16)
    other = ids.clone()
    other[:, 1] = 9 - other[:, 1]  # the other digit
    assert torch.equal(model(ids)[:, -1], model(other)[:, -1])


# The table ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_row_and_another_does_not():
    rows = [race.run("differential", "retrieval", seed, 3) for seed in (0, 0, 1)]
    first, again, other = without_times(rows)
    assert first == again != other


def test_a_killed_run_resumes_to_the_same_table(tmp_path):
    arguments = ["--entries", "RoPE", "separators", "--tasks", "first", "language", "--seeds", "2", "--steps", "3"]
    race.main([*arguments, "--out", str(tmp_path / "whole.csv")])
    out = tmp_path / "killed.csv"
    command = [sys.executable, "-m", "helpers.chapter6.race", *arguments, "--out", str(out)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(SOURCE)}, start_new_session=True)
    end = time.monotonic() + 120
    while len(sweep.read(out).rows) < 2:
        assert time.monotonic() < end, "no rows"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(sweep.read(out).rows) < 8
    race.main([*arguments, "--out", str(out)])
    assert without_times(sweep.read(out).rows) == without_times(sweep.read(tmp_path / "whole.csv").rows)


def test_the_second_table_has_a_row_for_every_kind_of_entry(tmp_path):
    entries = ["RoPE", "sliding window", "scalable softmax", "differential", "gated attention"]
    arguments = ["--heads", "--entries", *entries, "--tasks", "retrieval", "--seeds", "1", "--steps", "2"]
    race.main([*arguments, "--out", str(tmp_path / "heads.csv")])
    rows = sweep.read(tmp_path / "heads.csv").rows
    assert [row["entry"] for row in rows] == entries
    assert [row["entry"] for row in rows if row["cosine_1"]] == ["differential"]
    with pytest.raises(ValueError, match="task must be one of"):
        race.run_heads("RoPE", "language", 0, 2)


def test_the_second_table_is_of_the_same_runs():
    """The committed tables agree run by run, and one run made now gives both rows again."""
    keys, scores = ["seed", "entry", "task"], [f"score_{n}" for n in race.LENGTHS]
    rows, heads = race.table().set_index(keys), race.heads_table().set_index(keys)
    assert len(heads) == 5 * 2 * len(race.REMEDIES)
    assert (heads[scores] == rows.loc[heads.index, scores]).all().all()
    key = (0, "RoPE", "retrieval")
    again = race.run_heads("RoPE", "retrieval", 0, race.BUDGET["steps"])
    assert [again[name] for name in scores] == pytest.approx(rows.loc[key, scores].tolist(), abs=0.1)
    assert again["best_128"] == pytest.approx(heads.loc[key, "best_128"], abs=0.1)
    assert (heads.best_128 >= heads.one_128).all()
    both = heads.join(rows.answer_128)
    assert (both.best_128 >= both.answer_128 - 1e-4).all(), "a best head is no worse than the mean"


def test_unknown_entries_and_tasks_are_named(tmp_path, capsys):
    for call in (lambda: race.run("sparse dreams", "first", 0, 3), lambda: race.entry_of("sparse dreams")):
        with pytest.raises(ValueError, match=r"entry must be one of RoPE, .*, not 'sparse dreams'"):
            call()
    with pytest.raises(ValueError, match="task must be one of"):
        race.run("RoPE", "chess", 0, 3)
    with pytest.raises(SystemExit):
        race.main(["--entries", "sparse dreams", "--out", str(tmp_path / "x.csv")])
    assert "entry must be one of" in capsys.readouterr().err


def test_the_committed_table_is_whole_and_its_rows_can_be_repeated():
    rows = race.table()
    assert set(zip(rows.entry, rows.task, strict=True)) == {(e, t) for e in race.ENTRIES for t in race.TASKS}
    assert (rows.groupby(["entry", "task"]).seed.nunique() >= 5).all()
    plain, sharpened = (
        rows[rows.entry == name].set_index(["seed", "task"]).loss for name in ("RoPE", "adaptive temperature")
    )
    assert (plain == sharpened).all(), "adaptive temperature is put in after the same training"
    assert rows.groupby("task").parameters.agg(lambda p: p.max() / p.min()).max() < 1.01


def test_the_control_fails_where_it_must_in_the_committed_table():
    """No better than a guess without the answer; and it does what it can see."""
    means = race.table().groupby(["entry", "task"]).longer.mean()
    for name in race.CONTROLS:
        for task in race.ENTRIES[name].fails:
            assert means[name, task] < race.CHANCE[task] + 0.05
        assert means[name, "last"] > 0.95
    assert means[race.BASELINE, "retrieval"] > 2 * race.CHANCE["retrieval"]


# Verdicts ----------------------------------------------------------------------------------------------


def made(gaps, task="first", seeds=5, noise=0.01):
    """A table of one task in which entries lie apart by known gaps."""
    generator, rows = np.random.default_rng(0), []
    common = generator.normal(0, 0.2, seeds)
    for name, gap in {race.BASELINE: 0.0, **gaps}.items():
        for seed in range(seeds):
            score = 0.5 + common[seed] + gap + generator.normal(0, noise)
            rows.append({"seed": seed, "entry": name, "task": task, "longer": score})
    return pd.DataFrame(rows)


def verdicts(rows, **settings):
    found = race.compare(rows, **settings)
    return dict(zip(found.entry, found.verdict, strict=True))


def test_the_test_can_say_better_worse_and_no_difference():
    rows = made({"up": 0.1, "down": -0.1, "same": 0.0})
    assert verdicts(rows) == {"RoPE": "baseline", "up": "better", "down": "worse", "same": "no difference"}
    assert verdicts(rows.assign(task="language"))["up"] == "worse", "a higher loss is worse"
    assert verdicts(made({"up": 0.1}, noise=0.1))["up"] == "no difference", "the gap is within the noise"


def test_pairing_sees_what_the_spread_of_seeds_hides():
    """Seeds spread twice as wide as the gap; paired it is clear, unpaired it is not."""
    rows = made({"up": 0.1})
    ours, theirs = (rows[rows.entry == name].longer.to_numpy() for name in ("up", "RoPE"))
    assert race.paired(ours, theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert race.paired(ours, theirs) < 0.001 < 0.1 < stats.ttest_ind(ours, theirs).pvalue
    assert race.paired([0.5, 0.6, 0.7], [0.25, 0.35, 0.45]) == pytest.approx(1 / 4)
    assert race.paired([0.5], [0.25]) == 1


def test_many_comparisons_need_more_evidence():
    alone = verdicts(made({"up": 0.03}, noise=0.01))
    crowd = made({"up": 0.03} | {f"same {k}": 0.0 for k in range(40)}, noise=0.01)
    assert (alone["up"], verdicts(crowd)["up"]) == ("better", "no difference")
    assert race.holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])


def test_compare_names_what_is_not_there():
    with pytest.raises(ValueError, match="against"):
        race.compare(made({}), against="nobody")
    with pytest.raises(ValueError, match="column"):
        race.compare(made({}), column="score_7")


# The learner's entry -----------------------------------------------------------------------------------


def test_a_copy_of_softmax_runs_as_the_baseline_does():
    own = race.enter("mine", lambda logits: logits.softmax(-1), ["first"], steps=4)
    row = race.run("RoPE", "first", 0, 4)
    assert list(own.columns) == ["seed", "entry", "task", "steps", *row, "seconds"]
    assert own.loss[0] == pytest.approx(row["loss"], abs=1e-4)
    assert own.score_16[0] == pytest.approx(row["score_16"], abs=0.03)


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        (lambda logits: logits.exp() / 0.0, "finite"),
        (lambda logits: logits.softmax(-1)[..., :2], "as many weights"),
        (lambda logits: torch.ones_like(logits), "no weight to a token that must not be seen"),
        (lambda logits, more: logits, "must take logits"),
        (3, "weigh must be a function"),
    ],
)
def test_what_is_wrong_with_a_function_is_said_before_training(weigh, message):
    with pytest.raises(ValueError, match=message):
        race.enter("mine", weigh)


def test_a_bad_entry_is_named():
    softmax = partial(torch.softmax, dim=-1)
    bad = {"name": {"name": "RoPE"}, "chosen": {"chosen": ["chess"]}, "seeds": {"seeds": 0}, "steps": {"steps": 0}}
    for named, arguments in bad.items():
        with pytest.raises(ValueError, match=named):
            race.enter(**{"name": "mine", "weigh": softmax} | arguments)
    with pytest.raises(ValueError, match="list of tasks"):
        race.enter("mine", softmax, "first")


def test_all_tasks_have_tests_and_a_training_set():
    assert set(race.TESTED) == set(race.TASKS)
    for task in race.TASKS:
        ids, targets = draw("RoPE", task, 64)
        assert len(ids) == race.TESTED[task]
        assert (targets != training.UNASKED).any()
    assert tasks.Language(part="held out").characters not in tasks.Language().characters


# Figures and claims ------------------------------------------------------------------------------------


def test_the_picture_counts_what_the_test_says_and_draws_the_learners_rows():
    rows = race.table()
    own = rows[(rows.entry == "NoPE") & (rows.task == "retrieval")].drop(columns="longer").assign(entry="mine")
    figure, finding = figures.race_table(rows, own)
    found = race.compare(rows)
    judged = found[found.entry.isin(race.REMEDIES) & (found.verdict != "baseline")]
    races = judged[judged.task != "language"]
    assert f"{(races.verdict == 'better').sum()} better" in figure.get_suptitle()
    assert (judged.verdict == "better").sum() > (races.verdict == "better").sum(), "language is told apart"
    for _, row in judged[judged.verdict != "no difference"].iterrows():
        assert row.entry in finding
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [*race.ENTRIES, "mine"]


def test_language_is_compared_with_letter_frequencies_and_its_wins_are_not_counted():
    assert race.CHANCE["language"] == pytest.approx(2.958, abs=0.001)
    rows = race.table()
    finding = figures.language(rows)
    assert "the decoder that sees 2 back has the lowest loss" in finding
    assert "language" not in figures.answer(rows, race.heads_table()).partition("Can attention")[0]
    assert "control is lowest" in figures.lengths(rows, "language")[0].get_title(loc="left")
    shifted = rows.assign(longer=rows.longer - 5 * (rows.entry == "NoPE"))
    assert "but NoPE has the lowest loss" in figures.language(shifted)


def test_titles_name_an_entry_only_where_the_test_is_sure():
    rows = race.table()
    title = {task: figures.lengths(rows, task)[0].get_title(loc="left") for task in race.TASKS}
    assert title["retrieval"] == "retrieval: NoPE is ahead of RoPE at 128"
    assert title["first"] == "first copy: 10 of 14 are at 1.00 at 128"
    assert title["counting"] == "counting: at 128 none is told from RoPE as better"
    tied = rows.assign(score_128=rows.score_128.where(rows.task != "retrieval", 0.5))
    assert "14 of 14 are at 0.50" in figures.lengths(tied, "retrieval")[0].get_title(loc="left")
    assert "least" in figures.outliers(rows)[1]
    lifted = rows.assign(quantisation_error=rows.quantisation_error + 1 * (rows.entry == "ALiBi"))
    told = figures.outliers(lifted)[1]
    above, sure = told.partition("than all of RoPE's: ")[2].split("; more by the corrected test: ")
    assert "ALiBi" in above
    assert "ALiBi" in sure


def test_the_hypotheses_are_judged_by_their_own_rules():
    rows, heads = race.table(), race.heads_table()

    def judged(rows, heads):
        lines = figures.hypotheses(rows, heads).splitlines()[2:]
        return {line[2:4]: line.split("|")[-2].strip() for line in lines}

    assert judged(rows, heads) == {"H1": "fails", "H2": "stands", "H3": "fails", "H4": "fails", "H5": "fails"}
    physical = rows.entry.isin(race.PHYSICAL.values())
    other = rows.assign(longer=0.5 + rows.apply(jitter, axis=1) - 0.3 * physical)
    other["longer"] += 0.3 * (other.entry == "gated attention")
    other["score_128"] = other.score_16 - 0.1 * (other.entry != "scalable softmax")
    quiet = heads.assign(left_1=0.5 + heads.apply(jitter, axis=1), left_2=0.5)
    assert judged(other, quiet) == {"H1": "stands", "H2": "fails", "H3": "stands", "H4": "stands", "H5": "stands"}


def test_what_is_told_of_the_last_slide_follows_the_tables():
    rows, heads = race.table(), race.heads_table()
    assert "more than 0.5 in 86%" in figures.told_positions(rows, heads)
    assert "its best head keeps 0.92 on the answer at 128" in figures.told_physical(rows, heads)
    assert "It is only a map with zeros" in figures.told_physical(rows, heads)
    assert "Above 0.5 at both: none" in figures.answer(rows, heads)
    lifted = heads.assign(best_128=heads.best_128.where(heads.entry != "ALiBi", 0.97))
    assert "Above 0.5 at both: ALiBi" in figures.answer(rows, lifted)
    assert "(ALiBi, which names" in figures.told_positions(rows, lifted)
    for task in ("retrieval", "last"):
        figure, finding = figures.masses(rows, heads, task)
        assert "in the best head" in figure.get_suptitle()
        assert "best head of each question" in finding


@pytest.fixture
def instead(monkeypatch):
    """Claims measured on a table that was changed by hand."""

    def put(**columns):
        rows, heads = race.table(), race.heads_table()
        for name, change in columns.items():
            table = heads if name in heads and name not in rows else rows
            table[name] = table.apply(change, axis=1)
        monkeypatch.setattr(race, "table", lambda: rows)
        monkeypatch.setattr(race, "heads_table", lambda: heads)

    return put


def jitter(row):
    """A little noise that belongs to the seed, so that no test has a variance of zero."""
    return 0.002 * np.random.default_rng(zlib.crc32(f"{row.entry}{row.task}{row.seed}".encode())).normal()


def test_claims_on_differential_attention_can_hold_and_can_fail(instead):
    def better(row):
        return jitter(row) + (0.9 if row.entry.startswith("differential") else 0.5)

    def worse(row):
        return jitter(row) + (0.1 if row.entry.startswith("differential") else 0.5)

    heads = {"best_16": better, "best_128": better}
    instead(longer=better, answer_16=better, answer_128=better, noise_16=worse, noise_128=worse, **heads)
    assert claims6.race_differential_retrieves().verdict == HOLDS
    assert claims6.race_differential_attends_to_the_answer().verdict == HOLDS
    instead(best_16=lambda row: 100 * jitter(row), best_128=lambda row: 100 * jitter(row))
    assert claims6.race_differential_attends_to_the_answer().verdict != FAILS, "the best heads are in the claim"
    heads = {"best_16": worse, "best_128": worse}
    instead(longer=worse, answer_16=worse, answer_128=worse, noise_16=better, noise_128=better, **heads)
    assert claims6.race_differential_retrieves().verdict == FAILS
    assert claims6.race_differential_attends_to_the_answer().verdict == FAILS
    instead(outlier_logits=worse, outlier_states=worse, quantisation_error=worse)
    assert claims6.race_differential_has_smaller_outliers().verdict == HOLDS
    instead(outlier_logits=better, outlier_states=better, quantisation_error=better)
    assert claims6.race_differential_has_smaller_outliers().verdict == FAILS


def test_claims_on_positions_and_physical_intervention_can_hold_and_can_fail(instead):
    def physical(row):
        return jitter(row) + (0.9 if row.entry in race.PHYSICAL.values() else 0.3)

    def positions(row):
        return jitter(row) + (0.9 if row.entry in race.POSITIONS else 0.3)

    names = ["race_windows_help", "race_tokens_help", "race_sparsity_help"]
    measures = [CLAIMS[name].measure for name in names]

    def unpredictable(row):
        return 0.5 + 100 * jitter(row)

    instead(longer=physical, best_128=physical)
    assert [measure().verdict for measure in measures] == [HOLDS, HOLDS, CORRECTED], "entmax only stands in"
    assert "was not run" in measures[2]().measured
    assert claims6.race_positions_are_not_enough().verdict == HOLDS
    assert claims6.race_positions_decide().verdict == FAILS
    instead(longer=lambda row: 1 - physical(row))
    assert {measure().verdict for measure in measures} == {FAILS}
    instead(longer=unpredictable)
    assert {measure().verdict for measure in measures} == {OPEN}
    assert claims6.race_differential_retrieves().verdict == OPEN
    instead(longer=positions, best_128=positions)
    assert claims6.race_positions_are_not_enough().verdict == FAILS
    instead(best_128=lambda row: positions(row) if row.task == "last" else physical(row))
    assert claims6.race_positions_are_not_enough().verdict == CORRECTED
    instead(best_128=lambda row: 0.1)
    assert claims6.race_positions_are_not_enough().verdict == CORRECTED, "nor do others give it"
    assert claims6.race_positions_decide().verdict == CORRECTED, "no test was made for the spread"


def test_the_claim_on_share_and_accuracy_stays_open_and_says_what_was_found(instead):
    place = {name: k / 20 for k, name in enumerate(race.ENTRIES)}
    for sign in (1, -1):
        instead(
            answer_128=lambda row: place[row.entry],
            noise_128=lambda row: -place[row.entry],
            score_128=lambda row, sign=sign: sign * place[row.entry],
        )
        found = claims6.race_share_is_not_the_point()
        assert found.verdict == OPEN
        assert f"14 remedies {sign:.2f}" in found.measured
        assert f"share on noise {-sign:.2f}" in found.measured
    with pytest.raises(ValueError, match="share"):
        race.rank_correlation(race.table(), share="sink")
