import math
import re
import statistics

import numpy as np
import scipy.stats
import torch

from answers import empty, several
from course.chapter4.checks import LINE, rounded
from helpers import counting

TWO, TWICE = "two layers", "about twice as far"


# 4.2


def _mass(zeros, ones, lead):
    return ones * math.exp(lead) / (zeros + ones * math.exp(lead))


def _mass_by_softmax(zeros, ones, lead):
    return torch.cat([torch.zeros(zeros), torch.full((ones,), lead)]).softmax(0)[zeros:].sum()


# 4.3


def _error(counts, guess):
    return statistics.mean(abs(guess - count) for count in counts)


def _baseline(counts):
    guess = statistics.median(counts)
    return guess, _error(counts, guess)


def _baseline_by_torch(counts):
    x = torch.tensor(counts)
    return torch.stack([x.median().float(), (x - x.median()).abs().float().mean()])


def _baseline_by_numpy(counts):
    return np.array([np.median(counts), np.abs(np.array(counts) - np.median(counts)).mean()])


def _baseline_by_search(counts):
    return min(((guess, _error(counts, guess)) for guess in range(max(counts) + 1)), key=lambda pair: pair[1])


# 4.4


def _averages(values, layers):
    for _ in range(layers):
        values = values.cumsum(0) / torch.arange(1, len(values) + 1)
    return values[-1]


def _averages_by_matrix(values, layers):
    n = len(values)
    weights = torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf).softmax(-1)
    return (torch.linalg.matrix_power(weights, layers) @ values.float())[-1]


def _averages_by_hand(values, layers):
    values = values.tolist()
    for _ in range(layers):
        values = [sum(values[: k + 1]) / (k + 1) for k in range(len(values))]
    return values[-1]


def _averages_by_numpy(values, layers):
    values = values.numpy()
    for _ in range(layers):
        values = np.cumsum(values) / np.arange(1, len(values) + 1)
    return values[-1]


# 4.5


def _any_number(text):
    found = re.findall(r"\d+", text)
    return int(found[-1]) if found else None


def _behind(text):
    return [row.partition(LINE)[2] for row in text.splitlines() if LINE in row]


def _parse(text):
    rest = _behind(text)
    words = rest[-1].rpartition("=")[2].split() if rest else []
    numbers = [word.strip("*.,") for word in words if re.search(r"\d", word)]
    if len(numbers) != 1 or not re.fullmatch(r"-?(\d+|\d{1,3}(,\d{3})+)", numbers[0]):
        return None
    return int(numbers[0].replace(",", ""))


def _parse_any_comma(text):
    rest = _behind(text)
    found = re.findall(r"[\d.,]*\d", rest[-1]) if rest else []
    digits = found[0].replace(",", "") if len(found) == 1 else ""
    return int(digits) if digits.isdigit() else None


def _parse_by_words(text):
    rest = _behind(text)
    words = [word.strip("*.,") for word in rest[-1].split("=")[-1].split()] if rest else []
    numbers = [word for word in words if any(sign.isdigit() for sign in word)]
    head, *groups = numbers[0].split(",") if len(numbers) == 1 else ["x"]
    fits = not groups or (len(head) <= 3 and all(len(group) == 3 for group in groups))
    return np.int64(head + "".join(groups)) if fits and re.fullmatch(r"-?\d+", head + "".join(groups)) else None


def _parse_no_commas(text):
    rest = _behind(text)
    found = re.findall(r"[\d.]*\d", rest[-1]) if rest else []
    return int(found[0]) if found and found[0].isdigit() else None


def _parse_stars_refused(text):
    rest = _behind(text)
    digits = rest[-1].strip().replace(",", "") if rest else ""
    return int(digits) if digits.isdigit() else None


def _parse_first_line(text):
    return _parse(text[: text.index(LINE) + len(LINE) + 6]) if LINE in text else None


def _parse_first_of_two(text):
    rest = _behind(text)
    found = re.findall(r"[\d.,]*\d", rest[-1]) if rest else []
    digits = found[0].replace(",", "") if found else ""
    return int(digits) if digits.isdigit() else None


def _parse_cut(text):
    return _parse(re.sub(r"(\d)\.\d+", r"\1", text))


def _parse_to_the_end(text):
    if LINE not in text:
        return None
    found = re.findall(r"[\d,]*\d", text.rpartition(LINE)[2])
    return int(found[-1].replace(",", "")) if found else None


# 4.6


def _letters(text, merges):
    pieces = list(text)
    for pair in merges:
        done, k = [], 0
        while k < len(pieces):
            size = 2 if pieces[k : k + 2] == list(pair) else 1
            done.append("".join(pieces[k : k + size]))
            k += size
        pieces = done
    return [len(piece) for piece in pieces]


def _letters_in_place(text, merges):
    pieces = list(text)
    for pair in merges:
        k = 0
        while k < len(pieces) - 1:
            if (pieces[k], pieces[k + 1]) == tuple(pair):
                pieces[k : k + 2] = ["".join(pair)]
            k += 1
    return [len(piece) for piece in pieces]


def _letters_by_replacing(text, merges):
    """Pieces between blanks: a hit is written without its blank."""
    pieces = " ".join(text)
    for first, second in merges:
        pieces = re.sub(rf"(?<!\S){first} {second}(?!\S)", first + second, pieces)
    return tuple(len(piece) for piece in pieces.split())


# 4.7

Z = 1.959964


def _wilson(successes, trials, z=Z):
    p, n = successes / trials, trials
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def _wilson_by_scipy(successes, trials):
    return np.array(scipy.stats.binomtest(successes, trials).proportion_ci(method="wilson"))


def _wilson_by_roots(successes, trials):
    """The shares q whose distance from k/n is z standard deviations of q."""
    p, w = successes / trials, 1.96**2 / trials
    return sorted(np.roots([1 + w, -(2 * p + w), p * p]).real)


# 4.8


def _reach(bits):
    n = 0
    while round(1 / float(rounded(1 / (1 + n), bits)) - 1) == n:
        n += 1
    return n - 1


def _reach_by_tensor(bits):
    n = torch.arange(20_000, dtype=torch.float64)
    wrong = (1 / rounded(1 / (1 + n), bits) - 1).round() != n
    return wrong.nonzero()[0, 0] - 1


def _reach_by_numpy(bits):
    n = np.arange(20_000)
    mantissa, exponent = np.frexp(1 / (1.0 + n))
    weights = np.ldexp(np.round(mantissa * 2**bits), exponent - bits)
    return np.flatnonzero(np.round(1 / weights) - 1 != n)[0] - 1.0


# 4.9


def _simplex(width):
    corners = torch.eye(width + 1).double() - 1 / (width + 1)
    rows = corners @ torch.linalg.svd(corners)[2][:width].T
    return rows / rows.norm(dim=1, keepdim=True)


def _simplex_by_qr(width):
    """The columns orthogonal to (1, …, 1), in numpy."""
    start = np.eye(width + 1)
    start[:, 0] = 1
    rows = np.linalg.qr(start)[0][:, 1:]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _simplex_by_rows(width):
    """The unit vectors and one more on the diagonal, moved to their centre, as lists of float32."""
    last = (1 - math.sqrt(width + 1)) / width
    rows = torch.cat([torch.eye(width), torch.full((1, width), last)])
    rows = rows - rows.mean(0)
    return (rows / rows.norm(dim=1, keepdim=True)).tolist()


def _simplex_by_waves(width):
    """The least products that the course's own codes have, for one vector more than dimensions."""
    return counting.codes(width + 1, width) if width % 2 == 0 else _simplex(width).float()


def _orthogonal_and_their_mean(width):
    return torch.cat([torch.eye(width), torch.full((1, width), width**-0.5)])


def _orthogonal_and_one_twice(width):
    return torch.cat([torch.eye(width), -torch.eye(width)[:1]])


def _random_codes(width):
    return counting.codes(width + 1, width, "random")


# 4.10

ASK, SEE, BRING = torch.ones(3, 1), torch.tensor([[-60.0], [0], [0]]), torch.tensor([[0.0], [0], [1]])
READ = [torch.eye(3), ASK, SEE, BRING, lambda state: 1 / state - 1]


def _counter(**changed):
    names = ("embedding", "query", "key", "value", "read")
    return lambda: tuple(changed.get(name, part) for name, part in zip(names, READ, strict=True))


def _counter_by_numpy():
    return [np.eye(3), np.ones((3, 1)), np.array([[-60.0], [0], [0]]), [[0], [0], [1]], lambda x: 1 / float(x[0]) - 1]


def _counter_with_two_entries():
    value = torch.tensor([[0.0, 0], [0, 0], [1, 1.55]])
    return torch.eye(3), ASK.double(), SEE, value, lambda state: (1 / state[0] + 1.55 / state[1]) / 2 - 1


def _counter_of_width_two():
    embedding = torch.tensor([[1.0, 0], [0, 0], [0, 1]])
    query, key, value = torch.zeros(2, 1), torch.tensor([[-60.0], [0]]), torch.tensor([[0.0], [1]])
    return torch.cat([embedding, torch.ones(3, 1)], 1), _row(query, 1), _row(key, 0), _row(value, 0), READ[4]


def _row(weights, entry):
    return torch.cat([weights, torch.tensor([[float(entry)]])])


def _counter_led(lead):
    return _counter(key=torch.tensor([[-60.0], [0], [lead]]), read=lambda x: math.exp(lead) * (1 / x - 1))


WRONG = {
    "4.1": [
        (several("10", "10"), "ones in both strings: 1"),
        (several("10", "1100"), "have 1 and 2 ones; 6 and 9"),
        (several("011", "011011"), "have 2 and 4 ones; 6 and 9"),
        (several("0011", "0101"), "counts must differ"),
        (several("1" * 6, "1" * 9), "ones alone"),
        (several("0" + "1" * 6, "0" + "1" * 9), "two ratios"),
        (several("10" * 6, "01" * 9), "different signs"),
        (several("10", "1 1 0 0"), "zeros and ones and nothing else"),
        (several("", "10"), "nothing else"),
        (several(10, 1100), "must be a string"),
        (several("10" * 101, "10"), "a few are enough"),
        (several("yx", "yyxx"), "nothing else"),
        (several(..., "10"), "first is still empty"),
        (several("10", ...), "second is still empty"),
    ],
    "4.5": [
        (_any_number, "Thousands"),
        (_parse_no_commas, "Thousands"),
        (_parse_stars_refused, "decoration"),
        (_parse_any_comma, "before three digits"),
        (lambda text: _parse(text.replace("=", "plus")), "Behind the last equals sign"),
        (lambda text: _parse(re.sub(r"(\d)th", r"\1", text)), "with letters at it"),
        (lambda text: _parse(text) or None, "0 is an answer"),
        (lambda text: _parse(text) or 0, "repeats the prompt"),
        (lambda text: _parse(text) if _parse(text) is not None else _any_number(text), "Without the line"),
        (_parse_first_line, "last one counts"),
        (_parse_first_of_two, "which would you take"),
        (_parse_cut, "cutting it"),
        (_parse_to_the_end, "below the line"),
        (lambda text: str(_parse(text)), "Return a number or None"),
        (lambda text: int(text), "raised ValueError"),
        (lambda text: None, "line that the prompt asks for"),
        (37, "must be a function"),
    ],
    "4.7": [
        (several(_wilson, 400), "so are 390"),
        (several(_wilson, 395), "multiple of ten"),
    ],
    "4.9": [
        (lambda d: torch.eye(d + 1), "lie in fewer dimensions"),
        (lambda d: _simplex(d).T, "on its side"),
        (lambda d: torch.eye(d), "One more symbol"),
        (lambda d: torch.ones(d), "must have the shape"),
        (lambda d: 2 * _simplex(d), "length 2"),
        (lambda d: _simplex(d).half(), "half precision"),
        (lambda d: torch.cat([torch.eye(d), torch.zeros(1, d)]), "no direction"),
        (lambda d: torch.full((d + 1, d), math.nan), "finite"),
        (_orthogonal_and_their_mean, "one pays for all"),
        (_orthogonal_and_one_twice, "on one line"),
        (_random_codes, "same product"),
        (lambda d: "codes", "must be numbers"),
        (lambda d: None, "returned nothing"),
    ],
    "4.10": [
        (several(_counter(key=torch.zeros(3, 1)), 188), "its length"),
        (several(_counter(read=lambda x: 1 / x), 188), "is the first token counted"),
        (several(_counter(key=SEE / 20), 188), "zeros take weight"),
        (several(_counter(query=torch.tensor([[0.0], [1], [1]])), 188), "every token ask the same"),
        (several(_counter(read=lambda x: x), 188), "solve it for n"),
        (several(_counter(key=torch.tensor([[-7.0], [0], [0]])), 188), "zeros take weight"),
        (several(_counter(key=torch.tensor([[-60.0], [0], [-60]])), 188), "nothing to compare them with"),
        (several(_counter(read=lambda x: int(1 / x - 1 + 1e-9)), 188), "cut to a whole number"),
        (
            several(_counter(value=torch.tensor([[0.0], [1], [0]]), read=lambda x: x / (1 - x)), 30),
            "weight of the ones",
        ),
        (several(_counter(value=torch.tensor([0.0, 0, 1])), 188), "value must be a matrix"),
        (several(_counter(key=torch.tensor([[-math.inf], [0], [0]])), 188), "finite"),
        (several(_counter(embedding=torch.eye(2)), 188), "three, not 2"),
        (several(_counter(key=torch.zeros(2, 1)), 188), "it has 3 rows"),
        (several(_counter(key=torch.zeros(3, 2)), 188), "as many columns"),
        (several(_counter(read=3), 188), "must be a function"),
        (several(_counter(read=lambda x: "many"), 188), "must be a number"),
        (several(_counter_led(6.0), 30), "in bf16 only up to"),
        (several(lambda: READ[:4], 188), "not 4 of them"),
        (several(_counter(), 256), "misreads 189 ones"),
        (several(_counter(), 100), "reads 101 ones right, too"),
        (several(_counter(), ...), "n is still empty"),
        (several(READ, 188), "must be a function"),
        (several(empty, 188), "still empty"),
    ],
}

RIGHT = {
    "4.1": [
        several("01" * 6, "01" * 9),
        several("0111" * 3, "0111" * 2),
        several([0] * 4 + [1] * 6, (*[0] * 6, *[1] * 9)),
        several(np.array([0, 1] * 6), torch.tensor([0] * 9 + [1] * 9)),
        several("1" * 6 + "00", list("1" * 9 + "000")),
    ],
    "4.2": [
        _mass,
        _mass_by_softmax,
        counting.mass_on_ones,
        lambda z, n, s: np.float32(1 / (1 + z / n * np.exp(-s))),
        lambda z, n, s: torch.sigmoid(torch.tensor(s + math.log(n / z))),
    ],
    "4.3": [_baseline, _baseline_by_torch, _baseline_by_numpy, _baseline_by_search, lambda x: list(_baseline(x))],
    "4.4": [several(TWO, f) for f in (_averages, _averages_by_matrix, _averages_by_hand, _averages_by_numpy)],
    "4.5": [
        _parse,
        _parse_by_words,
        counting.parse_answer,
        lambda text: None if _parse(text) is None else float(_parse(text)),
        lambda text: None if _parse(text) is None else torch.tensor(_parse(text)),
    ],
    "4.6": [
        _letters,
        _letters_in_place,
        _letters_by_replacing,
        lambda text, merges: torch.tensor(_letters(text, merges)),
        lambda text, merges: np.array(_letters(text, merges), dtype=float),
    ],
    "4.7": [
        several(_wilson, 390),
        several(_wilson_by_scipy, 390.0),
        several(_wilson_by_roots, np.int64(390)),
        several(lambda k, n: torch.tensor(_wilson(k, n, 1.96)), torch.tensor(390)),
    ],
    "4.8": [several(TWICE, f) for f in (_reach, _reach_by_tensor, _reach_by_numpy, lambda b: float(_reach(b)))],
    "4.9": [
        _simplex,
        _simplex_by_qr,
        _simplex_by_rows,
        _simplex_by_waves,
        lambda d: _simplex(d).float() * torch.tensor([[-1.0]] + [[1.0]] * d),
    ],
    "4.10": [
        several(_counter(), 188),
        several(_counter_by_numpy, 188.0),
        several(_counter_of_width_two, torch.tensor(188)),
        several(_counter_with_two_entries, 238),
        several(_counter_led(1.0), 157),
    ],
}
