"""The toy tasks: what is asked has the answer that is given, and every string that should come does."""

import collections

import pytest
import torch

from course import training
from course.training import tasks
from course.training.tasks import Copying, Counting, Language, Retrieval


def draw(task, seed=0):
    return task(torch.Generator().manual_seed(seed))


def asked(task, tokens, targets):
    """Each row as the words of its question and its answer."""
    rows = []
    for ids, goals in zip(tokens, targets, strict=True):
        (place,) = (goals != training.UNASKED).nonzero()[0].tolist()
        assert ids[place + 1 :].eq(0).all(), "what follows the question is padding"
        rows.append((task.text(ids).split(), task.vocabulary[goals[place]]))
    return rows


@pytest.mark.parametrize("tokens", tasks.TOKENS)
def test_the_answer_is_the_number_of_y(tokens):
    task = Counting(lengths=(1, 12), tokens=tokens, most=12)
    for (first, *pieces, last), answer in asked(task, *draw(task)):
        assert (first, last) == ("<s>", "=")
        assert int(answer) == "".join(pieces).count("y")


def test_strings_are_the_same_whatever_the_tokens_and_the_vocabulary_states_them():
    strings = {
        name: Counting(tokens=name).strings(torch.Generator().manual_seed(3))
        for name in tasks.TOKENS
    }
    assert all(found == strings["characters"] for found in strings.values())
    assert Counting(tokens="separated").split("xyy") == ["<s>", "x", ",", "y", ",", "y", "="]
    assert Counting(tokens="chunks of 3").split("xyyy") == ["<s>", "xyy", "y", "="]
    assert Counting(tokens="chunks of 2", most=1).vocabulary == (
        "<pad>", "<s>", "=", "0", "1", "x", "y", "xx", "xy", "yx", "yy",
    )  # fmt: skip


def test_lengths_and_counts_are_even_and_one_letter_alone_comes():
    found = collections.Counter()
    for seed in range(100):
        for string in Counting(lengths=(2, 4), most=4).strings(torch.Generator().manual_seed(seed)):
            found[len(string), string.count("y")] += 1
    assert {n for n, _ in found} == {2, 3, 4}
    for n in (2, 3, 4):
        shares = [found[n, count] / (6400 / 3) for count in range(n + 1)]
        assert all(abs(share - 1 / (n + 1)) < 0.04 for share in shares)


def test_longer_strings_hold_no_more_y_than_there_are_answers():
    task = Counting(lengths=(30, 30), most=5)
    counts = {string.count("y") for string in task.strings(torch.Generator().manual_seed(0))}
    assert counts == set(range(6))
    with pytest.raises(ValueError, match="at most 5 y"):
        task.encode(["y" * 6])


def test_copying_asks_for_the_first_or_the_last_digit():
    task, seen = Copying(lengths=(1, 6)), collections.Counter()
    for (start, *digits, place), answer in asked(task, *draw(task)):
        assert start == "<s>"
        assert answer == digits[0 if place == "first" else -1]
        seen[place, answer] += 1
    assert len(seen) == 4, "both places, both answers"
    only = Copying(places=("last",))
    assert {words[-1] for words, _ in asked(only, *draw(only))} == {"last"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Counting().split(""), "strings must consist of the letters"),
        (lambda: Counting().encode("xy"), "strings must be a list"),
        (lambda: Counting().encode(["xyz"]), "strings must consist of the letters"),
        (lambda: Counting().text(torch.tensor([99])), "tokens must be from 0"),
        (lambda: Copying().encode(["01"], []), "places must be a list"),
        (
            lambda: Copying().encode(["01"], ["first", "last"]),
            "places must hold one entry for each",
        ),
        (lambda: Retrieval(asked=8), "asked"),
        (lambda: Retrieval(lengths=(3, 9)), "asked"),
        (lambda: Retrieval(values=11), "values"),
        (lambda: Language(lengths=(1, 700), part="held out"), "lengths"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_retrieval_has_one_answer_that_stands_once():
    task = Retrieval(lengths=(20, 20), size=50)
    tokens, targets = draw(task)
    places = task.answers(tokens)
    assert tokens.shape == (50, 24)
    for row, goals, where in zip(tokens, targets, places, strict=True):
        words = task.text(row).split()
        pairs, questions = words[:20], words[20:]
        assert len(set(questions)) == task.asked
        for question, goal, place in zip(questions, goals[20:], where[20:], strict=True):
            assert [k for k, pair in enumerate(pairs) if pair[0] == question[1]] == [int(place)]
            assert pairs[place][1] == task.vocabulary[goal]
        assert (goals[:20] == training.UNASKED).all()
        assert (where[:20] == -1).all()


def test_retrieval_places_and_values_are_even():
    task = Retrieval(lengths=(16, 16), size=4000, asked=1)
    tokens, targets = draw(task)
    places = task.answers(tokens)[:, -1].bincount(minlength=16) / 4000
    values = targets[:, -1].bincount()[1:] / 4000
    assert (places - 1 / 16).abs().max() < 0.02
    assert (values - 1 / 4).abs().max() < 0.03


def test_retrieval_draws_its_length():
    task = Retrieval(lengths=(4, 6))
    assert {draw(task, seed)[0].shape[1] - task.asked for seed in range(30)} == {4, 5, 6}


def test_language_asks_for_the_next_character_and_holds_a_part_out():
    seen, held = Language(lengths=(30, 30)), Language(lengths=(30, 30), part="held out")
    for task in (seen, held):
        tokens, targets = draw(task)
        assert torch.equal(tokens[:, 1:], targets[:, :-1])
        for row in tokens:
            assert task.text(row) in task.characters
    assert len(seen.characters) == 4 * len(seen.characters + held.characters) // 5
    assert not any(held.text(row) in seen.characters for row in draw(held)[0])


@pytest.mark.parametrize("tokens", tasks.TOKENS)
def test_running_counts_are_those_of_the_string_so_far(tokens):
    task = tasks.RunningCount(lengths=(1, 9), tokens=tokens, most=6, size=8)
    ids, targets = task(torch.Generator().manual_seed(1))
    for row, asked in zip(ids, targets, strict=True):
        words, seen = task.text(row).split(), 0
        for word, answer in zip(words, asked.tolist(), strict=True):
            seen += word.count("y")
            letter = set(word) <= set("xy")
            assert answer == (task.vocabulary.index(str(seen)) if letter and seen <= 6 else -100)
        string = "".join(word for word in words if set(word) <= set("xy"))
        if string.count("y") <= 6:
            encoded, _ = task.encode([string])
            assert encoded[0].tolist() == row.tolist(), "the same tokens as one string alone"


def test_running_counts_are_drawn_evenly_and_weighed_evenly():
    task = tasks.RunningCount(lengths=(1, 6), most=6, size=60_000)
    _, targets = task(torch.Generator().manual_seed(0))
    first = task.vocabulary.index("0")
    last = (targets[:, -1] - first).bincount(minlength=7) / task.size
    assert last.tolist() == pytest.approx([1 / 7] * 7, abs=0.01)
    total = (targets[:, 1:] - first).flatten().bincount(minlength=7) * task.weights[
        first : first + 7
    ]
    assert (total / total.mean()).tolist() == pytest.approx([1] * 7, abs=0.05)
