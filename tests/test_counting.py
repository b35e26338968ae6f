"""Counting: the paper's prompts, a strict reading of answers, what softmax keeps of a count, and how wide a counter is."""

import math
import tomllib
from fractions import Fraction

import pytest
import torch
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from course.maths import constructions, counting

LINE = "The final answer to your maths question is: "
CASES = tomllib.loads(
    (ROOT / "tests/cases/counting.toml").read_text()
)  # prompts and answers as they are written


# Tasks and prompts ---------------------------------------------------------------------------------------


@given(st.sampled_from(counting.TASKS), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_count_is_that_of_the_sequence(task, length, seed):
    sequence, count = counting.make(task, length, seed)
    items = {"sum": sequence.split(" + "), "word": sequence.split(" ")}.get(task, list(sequence))
    assert len(items) == length
    assert count == items.count(counting.WORD if task == "word" else "1")
    assert counting.make(task, length, seed) == (sequence, count)
    if task in ("sum", "ones"):
        assert count == length


def test_seven_in_ten_are_ones_and_words_have_the_same_counts():
    counts = [counting.make("zeros and ones", 200, seed).count for seed in range(100)]
    assert abs(sum(counts) / 20_000 - 0.7) < 4 * math.sqrt(0.21 / 20_000)
    assert len(set(counts)) > 10
    assert counts == [counting.make("word", 200, seed).count for seed in range(100)]


def test_no_other_word_holds_the_counted_one():
    sentence = counting.make("word", 500, seed=3)
    assert sentence.sequence.count(counting.WORD) == sentence.count


def test_prompts_are_the_papers():
    """Barbero et al. (2024), appendix C.1, as printed."""
    printed = CASES["prompts"]
    assert counting.prompt("sum", "no CoT", "1 + 1") == printed["sum"]
    assert counting.prompt("word", "no CoT", "a car") == printed["word"]
    for task in ("ones", "zeros and ones"):
        assert counting.prompt(task, "no CoT", "110") == printed["ones"]
    assert counting.prompt("sum", "CoT few-shot", "1 + 1") == printed["few"] + printed["sum"]
    first_sentence = printed["few"].split(" Here")[0]
    assert counting.prompt("sum", "CoT zero-shot", "1 + 1") == f"{first_sentence}\n{printed['sum']}"


@pytest.mark.parametrize("task", counting.TASKS)
def test_the_examples_of_a_prompt_are_right(task):
    """Each example's answer is the count of its sequence, and its final line is one that the parser reads."""
    text, answers = counting.EXAMPLES[task], []
    for block in text.split("Please ")[1:]:
        question, *_, final = block.strip().splitlines()
        sequence = question.partition(":")[2]
        assert (
            counting.parse_answer(block)
            == counting.parse_answer(final)
            == sequence.count(("1", "car")[task == "word"])
        )
        answers.append(counting.parse_answer(final))
    assert len(answers) == 2
    assert counting.parse_answer(text) == answers[-1]


@pytest.mark.parametrize("task", counting.TASKS)
@pytest.mark.parametrize("strategy", counting.STRATEGIES)
def test_a_model_that_repeats_its_prompt_has_not_answered(task, strategy):
    assert (
        counting.parse_answer(counting.prompt(task, strategy, counting.make(task, 30, 1).sequence))
        is None
    )


# Answers -------------------------------------------------------------------------------------------------


WRITTEN = [(rest, int(number)) for number, forms in CASES["written"].items() for rest in forms]


@pytest.mark.parametrize(("rest", "number"), WRITTEN)
def test_numbers_on_the_answer_line(rest, number):
    assert (
        counting.parse_answer(f"Let me count: 11 + 26.\n{LINE}{rest}\nThat was 5 * 7 + 2.")
        == number
    )


@pytest.mark.parametrize("rest", [*CASES["no_number"], "1" * 5000])
def test_what_is_no_single_whole_number_is_never_one(rest):
    assert counting.parse_answer(LINE + rest) is None


@pytest.mark.parametrize("text", [*CASES["no_line"], "1" * 10_000])
def test_without_the_answer_line_there_is_no_answer(text):
    assert counting.parse_answer(text.replace("{line}", LINE)) is None


@pytest.mark.parametrize("text", CASES["dressed"])
def test_the_last_answer_line_counts_in_any_dress(text):
    assert counting.parse_answer(text.replace("{line}", LINE)) == 37


def test_the_last_line_counts_when_it_says_nothing():
    assert counting.parse_answer(f"{LINE}37\n{LINE}xxxx") is None


@given(
    st.integers(-(10**12), 10**12), st.text(max_size=50), st.text(alphabet="ab \n*_:", max_size=30)
)
def test_every_number_is_read_back(number, before, after):
    for written in (f"{number}", f"{number:,}", f"**{number:,}**."):
        assert counting.parse_answer(f"{before}\n{LINE}{written}\n{after}") == number


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(text):
    for each in (text, LINE + text):
        answer = counting.parse_answer(each)
        assert answer is None or isinstance(answer, int)
        assert answer is None or str(abs(answer))[-1:].isdigit()


# Softmax and the count -----------------------------------------------------------------------------------


def distance(a: str, b: str, **setting) -> float:
    return float(
        (counting.last_state(a, **setting) - counting.last_state(b, **setting)).abs().max()
    )


@given(
    st.text(alphabet="01", min_size=1, max_size=8),
    st.integers(2, 6),
    st.integers(1, 3),
    st.integers(0, 50),
)
@settings(max_examples=60)
def test_without_mask_and_positions_only_the_ratio_counts(unit, times, layers, seed):
    """Proposition B.9 of Barbero et al. (2024): `times` copies have the representation of one, to 1e-13 of its size."""
    size = float(counting.last_state(unit, layers=layers, seed=seed).abs().max())
    assert distance(unit, unit * times, layers=layers, seed=seed) <= 1e-13 * max(1.0, size)


def test_a_causal_mask_positions_or_a_first_token_tell_10_from_1100():
    assert distance("10", "1100") <= 1e-13
    for setting in ({"causal": True}, {"encoding": "RoPE"}, {"encoding": "APE"}, {"first": True}):
        assert distance("10", "1100", **setting) > 0.05, setting


def test_equal_tokens_alone_have_one_representation_at_every_length():
    """A mask or relative positions do not help where all values are equal; a first token or absolute positions do."""
    for setting in ({"causal": True}, {"encoding": "RoPE"}, {"causal": True, "encoding": "RoPE"}):
        assert distance("1" * 7, "1" * 8, **setting) <= 1e-13
        assert distance("1" * 7, "1" * 8, first=True, **setting) > 0.01
    assert distance("1" * 7, "1" * 8, encoding="APE") > 0.01


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 1000), st.floats(-5, 5))
def test_the_mass_on_ones_does_not_know_the_scale(zeros, ones, times, lead):
    once = counting.mass_on_ones(zeros, ones, lead)
    assert counting.mass_on_ones(times * zeros, times * ones, lead) == pytest.approx(
        once, abs=1e-13
    )
    row = torch.tensor([0.0] * zeros + [lead] * ones, dtype=torch.float64)
    assert once == pytest.approx(float(row.softmax(0)[zeros:].sum()), abs=1e-13)


def test_a_lead_beyond_exp_takes_all_or_nothing():
    assert counting.mass_on_ones(5, 5, 1e300) == 1
    assert counting.mass_on_ones(5, 5, -1e300) == pytest.approx(0)


# Number types --------------------------------------------------------------------------------------------


def rounded(x: Fraction, digits: int) -> Fraction:
    """To the nearest number with so many binary digits, ties to even: exact, without floats."""
    exponent = 0
    while x * 2**exponent < 2 ** (digits - 1):
        exponent += 1
    return Fraction(round(x * 2**exponent), 2**exponent)


def read(n: int, digits: int) -> int:
    return round(1 / rounded(Fraction(1, n + 1), digits) - 1)


@pytest.mark.parametrize(("dtype", "digits", "limit"), [("bf16", 8, 188), ("fp16", 11, 1463)])
def test_the_first_token_tells_the_count_up_to_a_limit(dtype, digits, limit):
    assert counting.first_token_limit(dtype) == limit
    assert all(read(n, digits) == n for n in range(limit + 1))
    assert read(limit + 1, digits) != limit + 1
    assert (
        counting.first_token_limit(getattr(torch, {"bf16": "bfloat16", "fp16": "float16"}[dtype]))
        == limit
    )


def test_the_limit_of_fp32():
    assert counting.first_token_limit("fp32") == 11_864_337
    assert [read(11_864_337 + k, 24) - 11_864_337 for k in (0, 1)] == [0, 0]
    assert (
        constructions.first_collision(lambda n: 1 / (1 + n), "fp32") == 11_864_337
    )  # the first two equal weights
    assert (
        counting.first_token_limit("bf16", lead=6)
        < 10
        < counting.first_token_limit("bf16", lead=-2)
    )


# Width ---------------------------------------------------------------------------------------------------


@given(st.integers(2, 40), st.integers(1, 40), st.sampled_from(counting.CODES), st.integers(0, 9))
def test_no_codes_beat_the_welch_bound(vocabulary, width, kind, seed):
    vectors = counting.codes(vocabulary, width, kind, seed)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(vocabulary, dtype=torch.float64))
    off = (vectors @ vectors.T)[~torch.eye(vocabulary, dtype=torch.bool)]
    bound = counting.welch_bound(vocabulary, width)
    assert counting.coherence(vectors) >= bound - 1e-9
    if kind == "tight":
        assert float(off.square().mean().sqrt()) == pytest.approx(bound, abs=1e-9)


@given(st.integers(1, 12), st.integers(0, 20), st.data())
def test_orthonormal_codes_count_exactly(vocabulary, more, data):
    tokens = torch.tensor(
        data.draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=200))
    )
    estimate = counting.histogram(tokens, counting.codes(vocabulary, vocabulary + more))
    torch.testing.assert_close(estimate, torch.bincount(tokens, minlength=vocabulary).double())


def test_narrow_codes_count_up_to_their_length_and_not_beyond():
    """At the stated length the worst sequence is read right, one token more and it is not."""
    for width in (16, 32, 48, 60, 63):
        vectors = counting.codes(64, width)
        products = (vectors @ vectors.T).fill_diagonal_(0)
        most = int(products.abs().argmax())
        other, symbol = divmod(most, 64)
        longest = counting.longest_counted(counting.coherence(vectors))
        for n, right in ((longest, True), (longest + 1, False)):
            estimate = (
                counting.histogram(torch.full((n,), other), vectors) if n else torch.zeros(64)
            )
            assert (abs(float(estimate[symbol])) < 0.5) == right, (width, n)
