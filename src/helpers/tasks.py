"""Toy tasks for small decoders: each is called with a generator and gives a batch of tokens and targets for `training.fit`.

A row is a question in tokens and one answer: the token that the decoder must name at the row's last place. Rows are
padded on the right, where a causal decoder cannot look.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from helpers import require
from helpers.training import UNASKED

Batch = tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]
PAD, START, ASK, SEPARATOR = "<pad>", "<s>", "=", ","
TOKENS = {"characters": 1, "separated": 1, "chunks of 2": 2, "chunks of 3": 3, "chunks of 4": 4}
PLACES = ("first", "last")


def batch(vocabulary: Sequence[str], rows: Sequence[Sequence[str]], answers: Sequence[str]) -> Batch:
    """Tokens, padded on the right, and targets: each row's answer at its last place, nothing asked elsewhere.

    Raises:
        ValueError: no rows, an empty one, as many answers as there are not rows, or a token that is not in the vocabulary.

    >>> tokens, targets = batch(["<pad>", "a", "b"], [["a"], ["b", "a"]], ["b", "a"])
    >>> tokens.tolist(), targets.tolist()
    ([[1, 0], [2, 1]], [[2, -100], [-100, 1]])
    """
    vocabulary, answers, rows = _texts("vocabulary", vocabulary), _texts("answers", answers), _listed("rows", rows)
    number = {text: place for place, text in enumerate(vocabulary)}
    if len(answers) != len(rows):
        raise ValueError(f"answers must be one for each of the {len(rows)} rows, not {len(answers)}")
    if not all(answer in number for answer in answers):
        raise ValueError(f"answers must be tokens of the vocabulary, not {require.said(answers)}")
    for row in rows:
        if set(_texts("rows", row)) - set(number):
            raise ValueError(f"rows must hold tokens of the vocabulary alone, not {require.said(row)}")
    longest = max(map(len, rows))
    tokens = torch.tensor([[number[text] for text in row] + [0] * (longest - len(row)) for row in rows])
    targets = torch.full_like(tokens, UNASKED)
    targets[range(len(rows)), [len(row) - 1 for row in rows]] = torch.tensor([number[text] for text in answers])
    return tokens, targets


@dataclass(frozen=True)
class Counting:
    """How many of the letters, each x or y, are y: `<s> x y y =` has the answer 2, one token a number.

    Strings have a length drawn evenly from a range, and a number of y drawn evenly from those that are possible, at
    random places: strings of one letter alone are among them. The vocabulary has a token for each answer up to `most`,
    so a longer string may be asked about as long as it has no more y.

    Args:
        lengths: the least and the largest number of letters.
        tokens: "characters" (a token a letter), "separated" (a comma between letters) or "chunks of k" (a token for
            each string of k letters; the last chunk may be shorter).
        most: the largest answer.
        size: strings in a batch.

    Raises:
        ValueError: an argument is out of range.

    >>> task = Counting(lengths=(1, 5), most=5, size=2)
    >>> tokens, targets = task(torch.Generator().manual_seed(0))
    >>> [task.text(row) for row in tokens]
    ['<s> y y y y y =', '<s> x x y x x =']
    >>> task.text(targets[:, -1])
    '5 1'
    >>> Counting(tokens="chunks of 2").split("xyy")
    ['<s>', 'xy', 'y', '=']
    """

    lengths: tuple[int, int] = (1, 40)
    tokens: str = "characters"
    most: int = 40
    size: int = 64

    def __post_init__(self) -> None:
        _check(self.lengths, self.size)
        require.choice("tokens", self.tokens, TOKENS)
        require.integer("most", self.most, 1, 10_000)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token."""
        answers = map(str, range(self.most + 1))
        pieces = ["".join(s) for k in range(TOKENS[self.tokens]) for s in itertools.product("xy", repeat=k + 1)]
        return (PAD, START, ASK, *answers, *pieces, *([SEPARATOR] if self.tokens == "separated" else []))

    def split(self, string: str) -> list[str]:
        """The question about a string, token by token.

        Raises:
            ValueError: string is empty or has other letters than x and y.
        """
        k, string = TOKENS[self.tokens], _string(string, "xy")
        pieces = [string[i : i + k] for i in range(0, len(string), k)]
        if self.tokens == "separated":
            pieces = [part for piece in pieces for part in (SEPARATOR, piece)][1:]
        return [START, *pieces, ASK]

    def encode(self, strings: Sequence[str]) -> Batch:
        """Questions about these strings, and their answers.

        Raises:
            ValueError: a string is empty, has other letters than x and y, or more y than `most`.
        """
        strings = _texts("strings", strings)
        rows = [self.split(string) for string in strings]
        if (largest := max(string.count("y") for string in strings)) > self.most:
            raise ValueError(f"strings must have at most {self.most} y, the largest answer there is, not {largest}")
        return batch(self.vocabulary, rows, [str(string.count("y")) for string in strings])

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Tokens in words, without the padding."""
        return _text(self.vocabulary, tokens)

    def strings(self, generator: torch.Generator) -> list[str]:
        """The strings of a batch."""
        return [_string_of(n, min(n, self.most), "xy", generator) for n in _drawn(self.lengths, self.size, generator)]

    def __call__(self, generator: torch.Generator) -> Batch:
        return self.encode(self.strings(generator))


@dataclass(frozen=True)
class Copying:
    """Which is the first, or the last, digit: `<s> 1 1 0 last` has the answer 0.

    The place that is asked for is the last token: what a decoder holds of the digits before it does not depend on the
    question. Strings are drawn as in `Counting`, from 0 and 1.

    Args:
        lengths: the least and the largest number of digits.
        places: the questions of a batch, drawn evenly: "first", "last" or both.
        size: strings in a batch.

    Raises:
        ValueError: an argument is out of range.

    >>> task = Copying(lengths=(3, 3))
    >>> tokens, targets = task.encode(["110", "011"], ["last", "last"])
    >>> [task.text(row) for row in tokens], task.text(targets[:, -1])
    (['<s> 1 1 0 last', '<s> 0 1 1 last'], '0 1')
    """

    lengths: tuple[int, int] = (1, 40)
    places: tuple[str, ...] = PLACES
    size: int = 64

    vocabulary = (PAD, START, *PLACES, "0", "1")

    def __post_init__(self) -> None:
        _check(self.lengths, self.size)
        for place in _texts("places", self.places):
            require.choice("places", place, PLACES)

    def encode(self, strings: Sequence[str], places: Sequence[str]) -> Batch:
        """The question about each string, and the answer.

        Raises:
            ValueError: a string is empty or has other digits than 0 and 1, or places are not one of "first" and "last"
                for each string.
        """
        strings, places = _texts("strings", strings), _texts("places", places)
        if len(places) != len(strings):
            raise ValueError(f"places must be one for each of the {len(strings)} strings, not {len(places)}")
        asked = [PLACES.index(require.choice("places", place, PLACES)) for place in places]
        rows = [[START, *_string(string, "01"), place] for string, place in zip(strings, places, strict=True)]
        answers = [string[-last] for string, last in zip(strings, asked, strict=True)]
        return batch(self.vocabulary, rows, answers)

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Tokens in words, without the padding."""
        return _text(self.vocabulary, tokens)

    def __call__(self, generator: torch.Generator) -> Batch:
        strings = [_string_of(n, n, "01", generator) for n in _drawn(self.lengths, self.size, generator)]
        asked = torch.randint(len(self.places), (self.size,), generator=generator)
        return self.encode(strings, [self.places[k] for k in asked.tolist()])


def _check(lengths: object, size: object) -> None:
    found = require.integers("lengths", lengths, 1, 100_000)
    if len(found) != 2 or found[0] > found[1]:
        raise ValueError(f"lengths must be the least and the largest length, not {require.said(lengths)}")
    require.integer("size", size, 1, 100_000)


def _listed(name: str, values: object) -> list:
    """A list, not empty: a string is none, though it can be iterated over."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ValueError(f"{name} must be a list, one or more, not {require.said(values)}")
    return list(values)


def _texts(name: str, values: object) -> list[str]:
    if not all(isinstance(value, str) for value in _listed(name, values)):
        raise ValueError(f"{name} must hold strings alone, not {require.said(values)}")
    return list(values)


def _string(string: object, letters: str) -> str:
    if not isinstance(string, str) or not string or set(string) - set(letters):
        raise ValueError(f"strings must be of the letters {' and '.join(letters)}, not {require.said(string)}")
    return string


def _drawn(lengths: tuple[int, int], size: int, generator: torch.Generator) -> list[int]:
    return torch.randint(lengths[0], lengths[1] + 1, (size,), generator=generator).tolist()


def _string_of(n: int, most: int, letters: str, generator: torch.Generator) -> str:
    """n letters of two kinds, 0 to `most` of the second kind, at random places."""
    count = int(torch.randint(most + 1, (1,), generator=generator))
    chosen = set(torch.randperm(n, generator=generator)[:count].tolist())
    return "".join(letters[place in chosen] for place in range(n))


def _text(vocabulary: tuple[str, ...], tokens: Int[Tensor, " n"]) -> str:
    require.tensor("tokens", tokens, "n", "whole")
    if tokens.min() < 0 or tokens.max() >= len(vocabulary):
        raise ValueError(f"tokens must be from 0 to {len(vocabulary) - 1}, the vocabulary of the task")
    return " ".join(vocabulary[token] for token in tokens.tolist() if vocabulary[token] != PAD)
