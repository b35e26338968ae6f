"""Generate toy tasks for small decoders, such as counting, copying and retrieval.

Calling a task with a random generator gives a batch of tokens and targets for `training.fit`. Most
sequences have one question, and the decoder must give its answer at the last position. Sequences
are padded on the right, and a causal decoder cannot attend to this padding.
"""

import itertools
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course.training import UNASKED
from helpers import data, require

Batch = tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]
PAD, START, ASK, SEPARATOR = "<pad>", "<s>", "=", ","
TOKENS = {"characters": 1, "separated": 1, "chunks of 2": 2, "chunks of 3": 3, "chunks of 4": 4}
PLACES = ("first", "last")


def batch(
    vocabulary: Sequence[str], rows: Sequence[Sequence[str]], answers: Sequence[str]
) -> Batch:
    """Return tokens, padded on the right, and targets that count only at each row's last token.

    >>> tokens, targets = batch(["<pad>", "a", "b"], [["a"], ["b", "a"]], ["b", "a"])
    >>> tokens.tolist(), targets.tolist()
    ([[1, 0], [2, 1]], [[2, -100], [-100, 1]])
    """
    vocabulary, answers, rows = (
        _texts("vocabulary", vocabulary),
        _texts("answers", answers),
        _listed("rows", rows),
    )
    number = {text: place for place, text in enumerate(vocabulary)}
    if len(answers) != len(rows):
        raise ValueError(
            f"answers must hold one answer for each of the {len(rows)} rows, not "
            f"{len(answers)} answers"
        )
    if not all(answer in number for answer in answers):
        raise ValueError(f"answers must be tokens of the vocabulary, not {require.brief(answers)}")
    for row in rows:
        if set(_texts("rows", row)) - set(number):
            raise ValueError(
                f"rows must hold only tokens of the vocabulary, not {require.brief(row)}"
            )
    longest = max(map(len, rows))
    tokens = torch.tensor(
        [[number[text] for text in row] + [0] * (longest - len(row)) for row in rows]
    )
    targets = torch.full_like(tokens, UNASKED)
    targets[range(len(rows)), [len(row) - 1 for row in rows]] = torch.tensor(
        [number[text] for text in answers]
    )
    return tokens, targets


@dataclass(frozen=True)
class Counting:
    """Count the letters y in a string of x and y, so that `<s> x y y =` has the answer 2.

    The answer is one token. The length of a string is drawn evenly from a range. Then the number of
    letters y is drawn evenly from all possible numbers. The letters y are at random positions, and
    strings of only one kind of letter also occur. The vocabulary has a token for each answer up to
    `most`. So you may also test on longer strings, as long as they have at most `most` letters y.

    Args:
        lengths: the least and the largest number of letters.
        tokens: "characters" (one token per letter), "separated" (a comma between letters) or
            "chunks of k" (one token for each string of k letters, where the last chunk may be
            shorter).
        most: the largest answer.
        size: the number of strings in a batch.

    Raises:
        ValueError: if an argument is out of range.

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
        """Return the text of each token, in the order of the token numbers."""
        answers = map(str, range(self.most + 1))
        pieces = [
            "".join(s)
            for k in range(TOKENS[self.tokens])
            for s in itertools.product("xy", repeat=k + 1)
        ]
        return (
            PAD,
            START,
            ASK,
            *answers,
            *pieces,
            *([SEPARATOR] if self.tokens == "separated" else []),
        )

    def split(self, string: str) -> list[str]:
        """Split the question about a string into the texts of its tokens."""
        k, string = TOKENS[self.tokens], _string(string, "xy")
        pieces = [string[i : i + k] for i in range(0, len(string), k)]
        if self.tokens == "separated":
            pieces = [part for piece in pieces for part in (SEPARATOR, piece)][1:]
        return [START, *pieces, ASK]

    def encode(self, strings: Sequence[str]) -> Batch:
        """Encode the questions about these strings and their answers as a batch."""
        strings = _texts("strings", strings)
        rows = [self.split(string) for string in strings]
        if (largest := max(string.count("y") for string in strings)) > self.most:
            raise ValueError(
                f"strings must have at most {self.most} y, because no answer is larger, not "
                f"{largest}"
            )
        return batch(self.vocabulary, rows, [str(string.count("y")) for string in strings])

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Write tokens as text, without the padding."""
        return _text(self.vocabulary, tokens)

    def strings(self, generator: torch.Generator) -> list[str]:
        """Draw the strings of one batch."""
        return [
            _string_of(n, min(n, self.most), "xy", generator)
            for n in _drawn(self.lengths, self.size, generator)
        ]

    def __call__(self, generator: torch.Generator) -> Batch:
        return self.encode(self.strings(generator))


@dataclass(frozen=True)
class RunningCount(Counting):
    """Count the letters y so far, at every letter, so that `<s> x y y` has the answers 0, 1 and 2.

    All strings of a batch have the largest length. The fraction of y in each string is drawn evenly
    from 0 to 1, so after n letters every count from 0 to n is equally likely. Over all positions
    small counts are more frequent, and `weights` makes up for that. With "separated" tokens only
    the letters have an answer, and with "chunks of k" only the ends of the chunks. Counts above
    `most` have no answer.

    Args:
        lengths, tokens, most, size: as for `Counting`.

    >>> task = RunningCount(lengths=(1, 4), most=4, size=1)
    >>> tokens, targets = task(torch.Generator().manual_seed(2))
    >>> task.text(tokens[0]), task.text(targets[0, 1:])
    ('<s> y x y x', '1 1 2 2')
    """

    def split(self, string: str) -> list[str]:
        """Split a string into tokens, the last of which has the full count as its answer."""
        return super().split(string)[:-1]

    @property
    def weights(self) -> Float[Tensor, " v"]:
        """Return one weight per token for the loss, so that every answer counts the same.

        The weight of an answer is one over its frequency.
        """
        first, often = self.vocabulary.index("0"), torch.zeros(self.most + 1)
        for end in _ends(self.lengths[1], TOKENS[self.tokens]):
            often[: end + 1] += 1 / (end + 1)
        weights = torch.zeros(len(self.vocabulary))
        weights[first : first + self.most + 1] = torch.where(often > 0, 1 / often, 0.0)
        return weights

    def rows(self, y: Int[Tensor, "b letters"]) -> Batch:
        """Return the tokens and targets of strings of one length, with an answer at every position.

        In `y`, a 1 marks a letter y and a 0 marks a letter x.
        """
        number = {text: place for place, text in enumerate(self.vocabulary)}
        ends = _ends(y.shape[1], TOKENS[self.tokens])
        pieces = [y[:, start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        ids = torch.stack([_piece(piece) for piece in pieces], 1) + number["x"]
        count = y.cumsum(1)[:, [end - 1 for end in ends]]
        asked = torch.where(count <= self.most, number["0"] + count, UNASKED)
        if self.tokens == "separated":
            ids = torch.stack([torch.full_like(ids, number[SEPARATOR]), ids], 2).flatten(1)[:, 1:]
            asked = torch.stack([torch.full_like(asked, UNASKED), asked], 2).flatten(1)[:, 1:]
        start = torch.full((len(y), 1), number[START])
        return torch.cat([start, ids], 1), torch.cat([torch.full_like(start, UNASKED), asked], 1)

    def __call__(self, generator: torch.Generator) -> Batch:
        share = torch.rand(self.size, 1, generator=generator)
        return self.rows(
            (torch.rand(self.size, self.lengths[1], generator=generator) < share).long()
        )


@dataclass(frozen=True)
class Copying:
    """Copy the first or the last digit, so that `<s> 1 1 0 last` has the answer 0.

    The last token says which position the question is about. So the hidden states of a causal
    decoder at the digits do not depend on the question. Strings are drawn as in `Counting`, but
    consist of 0 and 1.

    Args:
        lengths: the least and the largest number of digits.
        places: the questions of a batch, drawn evenly, "first", "last" or both.
        size: the number of strings in a batch.

    Raises:
        ValueError: if an argument is out of range.

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
        """Encode the question about each string and its answer as a batch."""
        strings, places = _texts("strings", strings), _texts("places", places)
        if len(places) != len(strings):
            raise ValueError(
                f"places must hold one entry for each of the {len(strings)} strings, not "
                f"{len(places)} entries"
            )
        asked = [PLACES.index(require.choice("places", place, PLACES)) for place in places]
        rows = [
            [START, *_string(string, "01"), place]
            for string, place in zip(strings, places, strict=True)
        ]
        answers = [string[-last] for string, last in zip(strings, asked, strict=True)]
        return batch(self.vocabulary, rows, answers)

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Write tokens as text, without the padding."""
        return _text(self.vocabulary, tokens)

    def __call__(self, generator: torch.Generator) -> Batch:
        strings = [
            _string_of(n, n, "01", generator) for n in _drawn(self.lengths, self.size, generator)
        ]
        asked = torch.randint(len(self.places), (self.size,), generator=generator)
        return self.encode(strings, [self.places[k] for k in asked.tolist()])


@dataclass(frozen=True)
class Retrieval:
    """Look up the value of a key among distractors, so that `a1 c0 b1 a0 … ?b` has the answer 1.

    Each pair of key and value is one token. After the pairs, some keys are asked for one after
    another. Each of these keys occurs once among the pairs, at a random position. All other pairs
    have other keys, which may repeat, and their values may be any values. So only the question
    decides which pair is the answer and which pairs are noise.

    Args:
        lengths: the smallest and the largest number of pairs. One number is drawn per batch.
        keys, values: the number of different keys, and of different values.
        asked: the number of questions per sequence. It must be smaller than the number of keys, and
            at most the smallest number of pairs.
        size: the number of sequences in a batch.

    Raises:
        ValueError: if an argument is out of range.

    >>> task = Retrieval(lengths=(4, 4), keys=3, values=2, asked=1, size=1)
    >>> tokens, targets = task(torch.Generator().manual_seed(0))
    >>> task.text(tokens[0]), task.text(targets[0, -1:])
    ('a0 a1 b0 a0 ?b', '0')
    """

    lengths: tuple[int, int] = (8, 16)
    keys: int = 8
    values: int = 4
    asked: int = 4
    size: int = 32

    def __post_init__(self) -> None:
        _check(self.lengths, self.size)
        require.integer("keys", self.keys, 2, 26)
        require.integer("values", self.values, 2, 10)
        if require.integer("asked", self.asked, 1) > min(self.keys - 1, self.lengths[0]):
            raise ValueError(
                f"asked must be below keys = {self.keys} and at most lengths = {self.lengths}, "
                f"not {self.asked}"
            )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the text of each token, in the order of the token numbers."""
        names, values = (
            string.ascii_lowercase[: self.keys],
            [str(value) for value in range(self.values)],
        )
        return (
            PAD,
            *values,
            *(f"?{key}" for key in names),
            *(key + value for key in names for value in values),
        )

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Write tokens as text, without the padding."""
        return _text(self.vocabulary, tokens)

    def answers(self, tokens: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        """Return the position of the pair that answers each question.

        The result is -1 at tokens that are not a question.
        """
        question, pair = 1 + self.values, 1 + self.values + self.keys
        asked = torch.where((tokens >= question) & (tokens < pair), tokens - question, -1)
        key = torch.where(tokens >= pair, (tokens - pair) // self.values, -2)
        same = asked[:, :, None] == key[:, None, :]
        return torch.where(same.any(-1), same.int().argmax(-1), -1)

    def _drawn(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Draw the pairs (keys and values) and the questions (keys and answers' positions)."""
        pairs = _drawn(self.lengths, 1, generator)[0]
        order = torch.rand(self.size, self.keys, generator=generator).argsort(1)
        asked, others = order[:, : self.asked], order[:, self.asked :]
        keys = others.gather(
            1, torch.randint(others.shape[1], (self.size, pairs), generator=generator)
        )
        places = torch.rand(self.size, pairs, generator=generator).argsort(1)[:, : self.asked]
        keys = keys.scatter(1, places, asked)
        return (
            keys,
            torch.randint(self.values, (self.size, pairs), generator=generator),
            asked,
            places,
        )

    def __call__(self, generator: torch.Generator) -> Batch:
        keys, values, asked, places = self._drawn(generator)
        question, pair = 1 + self.values, 1 + self.values + self.keys
        tokens = torch.cat([pair + keys * self.values + values, question + asked], 1)
        return tokens, _at_the_end(tokens, 1 + values.gather(1, places))


@dataclass(frozen=True)
class Rivals(Retrieval):
    """Look up values among pairs with different keys, so `k7=1 k3=0 … ?k3` has the answer 0.

    In `Retrieval`, the distractors come from a few keys at any length. Here every pair has a new
    key, so the number of competing keys grows with the length. This is multi-query associative
    recall (MQAR, Arora et al., 2024). The keys of a sequence are drawn from all keys, so training
    sees every key.

    Args:
        keys: the number of different keys, at least the largest number of pairs.
        lengths, values, asked, size: as for `Retrieval`.

    >>> task = Rivals(lengths=(3, 3), keys=5, asked=1, size=1)
    >>> tokens, targets = task(torch.Generator().manual_seed(0))
    >>> task.text(tokens[0]), task.text(targets[0, -1:])
    ('k1=3 k2=1 k3=2 ?k3', '2')
    """

    keys: int = 128

    def __post_init__(self) -> None:
        _check(self.lengths, self.size)
        require.integer("keys", self.keys, 2, 10_000)
        require.integer("values", self.values, 2, 10)
        if self.lengths[1] > self.keys:
            raise ValueError(
                f"lengths must be at most keys = {self.keys}, because no key occurs twice, "
                f"not {self.lengths}"
            )
        if require.integer("asked", self.asked, 1) > self.lengths[0]:
            raise ValueError(f"asked must be at most lengths = {self.lengths}, not {self.asked}")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the text of each token, in the order of the token numbers."""
        names, values = (
            [f"k{key}" for key in range(self.keys)],
            [str(value) for value in range(self.values)],
        )
        pairs = (f"{key}={value}" for key in names for value in values)
        return (PAD, *values, *(f"?{key}" for key in names), *pairs)

    def _drawn(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        pairs = _drawn(self.lengths, 1, generator)[0]
        keys = torch.rand(self.size, self.keys, generator=generator).argsort(1)[:, :pairs]
        places = torch.rand(self.size, pairs, generator=generator).argsort(1)[:, : self.asked]
        return (
            keys,
            torch.randint(self.values, (self.size, pairs), generator=generator),
            keys.gather(1, places),
            places,
        )


@dataclass(frozen=True)
class Recall(Retrieval):
    """Look up values when key and value are two tokens, so `a 1 c 0 b 1 … ?b` has the answer 1.

    The task is associative recall. The decoder must find the key by its content and then read the
    value at the next position, so it needs both content and position.

    Args:
        lengths, keys, values, asked, size: as for `Retrieval`, where lengths count pairs.

    >>> task = Recall(lengths=(4, 4), keys=3, values=2, asked=1, size=1)
    >>> tokens, targets = task(torch.Generator().manual_seed(0))
    >>> task.text(tokens[0]), task.text(targets[0, -1:])
    ('a 0 a 1 b 0 a 0 ?b', '0')
    """

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the text of each token, in the order of the token numbers."""
        names, values = (
            string.ascii_lowercase[: self.keys],
            [str(value) for value in range(self.values)],
        )
        return (PAD, *values, *(f"?{key}" for key in names), *names)

    def answers(self, tokens: Int[Tensor, "b n"]) -> Int[Tensor, "b n"]:
        """Return the position of the value that answers each question.

        The result is -1 at tokens that are not a question.
        """
        question, first = 1 + self.values, 1 + self.values + self.keys
        asked = torch.where((tokens >= question) & (tokens < first), tokens - question, -1)
        key = torch.where(tokens >= first, tokens - first, -2)
        same = asked[:, :, None] == key[:, None, :]
        value = (tokens >= 1) & (
            tokens < question
        )  # a separator may come between a key and its value
        places = torch.arange(tokens.shape[1], device=tokens.device)
        after = (value[:, None] & (places > same.int().argmax(-1, keepdim=True))).int().argmax(-1)
        return torch.where(same.any(-1), after, -1)

    def __call__(self, generator: torch.Generator) -> Batch:
        keys, values, asked, places = self._drawn(generator)
        question, first = 1 + self.values, 1 + self.values + self.keys
        tokens = torch.cat(
            [torch.stack([first + keys, 1 + values], 2).flatten(1), question + asked], 1
        )
        return tokens, _at_the_end(tokens, 1 + values.gather(1, places))


@dataclass(frozen=True)
class Language:
    """Predict each next character of the course's own prose, in `data/prose.txt`.

    The first four fifths of the text are for training, and the last fifth is held out. The text has
    only 3,228 characters, so a decoder cannot become a language model from it. The task is a
    control, which shows whether a change to the decoder breaks ordinary language.

    Args:
        lengths: the smallest and the largest number of characters. One number is drawn per batch.
        part: "training" or "held out".
        size: the number of pieces in a batch, taken at random positions.

    Raises:
        ValueError: if an argument is out of range, or a length is longer than the part.

    >>> task = Language(lengths=(9, 9), size=1)
    >>> tokens, targets = task(torch.Generator().manual_seed(1))
    >>> bool((tokens[0, 1:] == targets[0, :-1]).all())
    True
    """

    lengths: tuple[int, int] = (16, 16)
    part: str = "training"
    size: int = 32

    def __post_init__(self) -> None:
        _check(self.lengths, self.size)
        require.choice("part", self.part, ("training", "held out"))
        if self.lengths[1] >= len(self.characters):
            raise ValueError(
                f"lengths must be below {len(self.characters)}, the characters of the {self.part} "
                f"part"
            )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the text of each token, in the order of the token numbers."""
        return (PAD, *sorted(set(data.prose())))

    @property
    def characters(self) -> str:
        """Return the text for this part, which is either the training text or the held-out text."""
        text = data.prose()
        cut = 4 * len(text) // 5
        return text[:cut] if self.part == "training" else text[cut:]

    def text(self, tokens: Int[Tensor, " n"]) -> str:
        """Write tokens as text, without the padding."""
        require.tensor("tokens", tokens, "n", "whole")
        if tokens.min() < 0 or tokens.max() >= len(self.vocabulary):
            raise ValueError(
                f"tokens must be from 0 to {len(self.vocabulary) - 1}, the vocabulary of the task"
            )
        return "".join(self.vocabulary[token] for token in tokens.tolist() if token)

    def __call__(self, generator: torch.Generator) -> Batch:
        n = _drawn(self.lengths, 1, generator)[0]
        text = _numbers(self.characters)
        starts = torch.randint(len(text) - n, (self.size,), generator=generator)
        pieces = text[starts[:, None] + torch.arange(n + 1)]
        return pieces[:, :-1], pieces[:, 1:]


@cache
def _numbers(text: str) -> Int[Tensor, " n"]:
    number = {character: place for place, character in enumerate(sorted(set(data.prose())), 1)}
    return torch.tensor([number[character] for character in text])


def _at_the_end(tokens: Int[Tensor, "b n"], answers: Int[Tensor, "b k"]) -> Int[Tensor, "b n"]:
    """Return targets that have the answers at the last tokens, and no target at earlier tokens."""
    targets = torch.full_like(tokens, UNASKED)
    targets[:, tokens.shape[1] - answers.shape[1] :] = answers
    return targets


def _check(lengths: object, size: object) -> None:
    found = require.integers("lengths", lengths, 1, 100_000)
    if len(found) != 2 or found[0] > found[1] or not isinstance(lengths, Sequence):
        raise ValueError(
            "lengths must be a pair of the smallest and the largest length, not "
            f"{require.brief(lengths)}"
        )
    require.integer("size", size, 1, 100_000)


def _listed(name: str, values: object) -> list:
    """Return the values as a list, and raise an error if they are empty or a string."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ValueError(
            f"{name} must be a list with at least one entry, not {require.brief(values)}"
        )
    return list(values)


def _texts(name: str, values: object) -> list[str]:
    if not all(isinstance(value, str) for value in _listed(name, values)):
        raise ValueError(f"{name} must hold only strings, not {require.brief(values)}")
    return list(values)


def _string(string: object, letters: str) -> str:
    if not isinstance(string, str) or not string or set(string) - set(letters):
        raise ValueError(
            f"strings must consist of the letters {' and '.join(letters)}, not "
            f"{require.brief(string)}"
        )
    return string


def _drawn(lengths: tuple[int, int], size: int, generator: torch.Generator) -> list[int]:
    return torch.randint(lengths[0], lengths[1] + 1, (size,), generator=generator).tolist()


def _string_of(n: int, most: int, letters: str, generator: torch.Generator) -> str:
    """Draw a string of n letters of two kinds, 0 to `most` of the second, in random order."""
    count = int(torch.randint(most + 1, (1,), generator=generator))
    chosen = set(torch.randperm(n, generator=generator)[:count].tolist())
    return "".join(letters[place in chosen] for place in range(n))


def _ends(n: int, k: int) -> list[int]:
    """Return the number of letters up to the end of each chunk, for n letters in chunks of k."""
    return [min(start + k, n) for start in range(0, n, k)]


def _piece(y: Int[Tensor, "b k"]) -> Int[Tensor, " b"]:
    """Return the index of a piece in the list of all strings of 1, 2, … letters.

    Strings of one length are in alphabetical order.
    """
    k = y.shape[1]
    return 2**k - 2 + (y * 2 ** torch.arange(k - 1, -1, -1)).sum(1)


def _text(vocabulary: tuple[str, ...], tokens: Int[Tensor, " n"]) -> str:
    require.tensor("tokens", tokens, "n", "whole")
    if tokens.min() < 0 or tokens.max() >= len(vocabulary):
        raise ValueError(
            f"tokens must be from 0 to {len(vocabulary) - 1}, the vocabulary of the task"
        )
    return " ".join(vocabulary[token] for token in tokens.tolist() if vocabulary[token] != PAD)
