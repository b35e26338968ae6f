"""Fill in the numbers of the exam questions in `chapters/plans/questions.toml`, and write them.

The head of that file explains the parts of a question. `bank()` returns all questions as the page
of the question bank shows them, and `paper(seed)` returns an examination of 60 minutes with its own
numbers.

    python tools/questions.py         print how many questions there are and can be drawn
    python tools/questions.py 2027    print the paper of a seed and its key
"""

import itertools
import math
import random
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import networkx as nx
import numpy as np
import torch

from book.pages import ROOT

FILE = "chapters/plans/questions.toml"
MINUTES, A_MARK = 60, 2  # the minutes of an examination and of a mark
HOW = """\
Give the marks of each part either in full or not at all, and accept any words with the right
meaning. If a student makes a slip, only the part with the slip loses its marks. Another part
may use the wrong value. If that part is right for the value that the student wrote down, it
still earns its marks. If a sentence of the student contradicts a right part, this part loses
its marks. An answer earns one more mark if it names a control, and says which result of this
control would refute the answer. However, no answer gets more marks than its question has, and
if a question itself asks for controls, there is no additional mark."""
CHAPTERS = range(1, 8)
KINDS = ("compute", "explain", "control")
WORDS = re.compile(
    r"(?<!\\)\b[A-Za-z]{3,} |^[a-z]{3,}$"
)  # names in a drawn text, without those of TeX
NO_WORDS: Mapping[str, str] = MappingProxyType({})


def tex(value: Fraction) -> str:
    r"""Format a fraction in TeX.

    >>> tex(Fraction(1, 54)), tex(Fraction(4, 2))
    ('\\tfrac{1}{54}', '2')
    """
    value = Fraction(value)
    return (
        str(value.numerator)
        if value.denominator == 1
        else rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"
    )


def reduced(a: int, b: int) -> str:
    r"""Format a fraction a/b, followed by its lowest terms if they differ.

    >>> reduced(6, 2), reduced(5, 3)
    ('6/2 = 3', '5/3')
    """
    value = Fraction(a, b)
    return f"{a}/{b}" if value.denominator == b else f"{a}/{b} = {tex(value)}"


def rounded(value: float) -> str:
    """Format a number with three significant digits, without trailing zeros.

    >>> rounded(0.01851), rounded(0.4), rounded(2 / 3 * 100)
    ('0.0185', '0.4', '66.7')
    """
    return np.format_float_positional(float(f"{value:.3g}"), trim="-")


def grouped(value: float) -> str:
    """Format a large number with two significant digits and with TeX's thousands separator.

    >>> grouped(47116.3), grouped(148.4)
    ('47{,}000', '150')
    """
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.0f}".replace(",", "{,}")


def first_equal(p: int, value: Callable[[int], Fraction] = lambda n: Fraction(1, 1 + n)) -> int:
    """Return the first n for which the values at n and n + 1 round to the same float.

    The float has p significant bits.

    >>> first_equal(8), first_equal(8, lambda n: Fraction(n, n + 1))
    (189, 18)
    """

    def scaled(x: Fraction) -> Fraction:
        unit = Fraction(2) ** (math.floor(math.log2(x)) + 1 - p)
        return round(x / unit) * unit  # to the nearest unit, ties to even

    return next(n for n in itertools.count(1) if scaled(value(n)) == scaled(value(n + 1)))


KNOWN = {"math": math, "np": np, "nx": nx, "torch": torch, "Fraction": Fraction}
KNOWN |= {
    "tex": tex,
    "reduced": reduced,
    "rounded": rounded,
    "grouped": grouped,
    "first_equal": first_equal,
}


def load(root: Path = ROOT) -> dict[str, dict]:
    """Read the questions of the file, keyed by id and in order.

    Each has its id and its number.

    Raises:
        ValueError: if a chapter or a kind does not exist.
    """
    rows, places = tomllib.loads((root / FILE).read_text()), {}
    for name, row in rows.items():
        chapter, kind = row["chapter"], row["kind"]
        if chapter not in range(1, 8):
            raise ValueError(f"chapter of {name} must be from 1 to 7, not {chapter!r}")
        if kind not in KINDS:
            raise ValueError(f"kind of {name} must be one of {', '.join(KINDS)}, not {kind!r}")
        places[chapter] = places.get(chapter, 0) + 1
        row |= {"id": name, "number": f"{chapter}.{places[chapter]}"}
    return rows


def choices(row: dict) -> Iterator[dict]:
    """Yield all possible draws of numbers for a question, the one of the question bank first.

    If nothing is drawn, we yield one empty draw.
    """
    draws = row.get("draw", {})
    for values in itertools.product(*draws.values()):
        drawn = {}
        for name, value in zip(draws, values, strict=True):
            drawn |= value if isinstance(value, dict) else {name: value}
        yield drawn


def spell(value: object) -> str:
    """Format a drawn value for a reader, with a true minus sign before a negative number.

    >>> spell(-8), spell("one-hot")
    ('−8', 'one-hot')
    """
    text = str(value)
    return text.replace("-", "−") if isinstance(value, int | float) else text


def plain(text: str) -> str:
    """Remove Markdown marks, TeX spaces and line breaks from a text.

    The result is used to compare words and formulas.

    >>> plain("*Only* the $\\\\tfrac{1}{n}$") == plain("only the $\\\\frac 1 n$")
    True
    """
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = (
        re.sub(r"\\[,;!:]|\\quad|\\displaystyle", "", text)
        .replace(r"\dfrac", r"\frac")
        .replace(r"\tfrac", r"\frac")
    )
    text = text.translate(str.maketrans("‘’“”", "''\"\""))
    return re.sub(r"[\s$*{}]|\\n", "", text).lower()


def fill(row: dict, drawn: dict, words: Mapping[str, str] = NO_WORDS) -> dict:
    """Return a question with its drawn numbers filled in.

    The result has the question's texts, the numbers in them, and the sum of its marks.

    Args:
        row: a row of the file.
        drawn: the drawn values, by name.
        words: translations of the question, its answer and the inserted texts, keyed by their
            English.

    Raises:
        ValueError: if a text has a name in angle brackets that was neither drawn nor computed.
    """
    numbers = dict(drawn)
    for name, expression in row.get("let", {}).items():
        numbers[name] = eval(expression, KNOWN | numbers)

    def value(name: re.Match) -> str:
        text = numbers.get(name[1], name[0])
        return spell(words.get(text, text))

    def replace(text: str) -> str:
        text, before = words.get(text, text), None
        while before != text:  # a drawn text may itself contain names
            before, text = text, re.sub(r"<(\w+)>", value, text)
        if left := re.search(r"<\w+>", text):
            raise ValueError(
                f"{row['id']}: the text has {left[0]}, but the question neither draws nor "
                "computes it"
            )
        return text

    marks = [(points, replace(what)) for points, what in row["marks"]]
    return row | {
        "ask": replace(row["ask"]),
        "answer": replace(row["answer"]),
        "parts": marks,
        "marks": sum(points for points, _ in marks),
        "numbers": numbers,
        "lesson": row.get("lesson", False),
    }


def bank(
    root: Path = ROOT, chapter: int | None = None, words: Mapping[str, str] = NO_WORDS
) -> list[dict]:
    """Return the questions of one chapter or of all chapters as the question bank shows them.

    `words` translates them.
    """
    rows = load(root).values()
    return [
        fill(row, next(choices(row)), words) for row in rows if chapter in (None, row["chapter"])
    ]


def in_lessons(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the texts of the questions that lessons ask, keyed by id.

    An edition translates these questions.
    """
    rows = [row for row in load(root).values() if row.get("lesson")]
    put = {row["id"]: fill(row, next(choices(row)))["numbers"].values() for row in rows}
    return {
        row["id"]: [
            row["ask"],
            row["answer"],
            *(text for text in put[row["id"]] if isinstance(text, str) and WORDS.search(text)),
        ]
        for row in rows
    }


def drawable(root: Path = ROOT, chapter: int | None = None) -> list[dict]:
    """Return the rows of the questions that have several forms, from which a term draws one."""
    return [
        row for row in load(root).values() if "draw" in row and chapter in (None, row["chapter"])
    ]


def for_what(question: dict) -> str:
    """Return a line that says what each mark of a question is for: *Marks. 1: the number; 2: …*"""
    return f"*Marks. {'; '.join(f'{points}: {what}' for points, what in question['parts'])}.*"


def markdown(question: dict) -> str:
    """Return a question in Markdown with its answer folded, as the question bank shows it."""
    head = f"**{question['number']}** {question['ask']} *({question['marks']})*"
    answer = f"{question['answer']}\n\n{for_what(question)}"
    return f"{head}\n\n<details><summary>Answer</summary>\n\n{answer}\n\n</details>\n"


def drawn(seed: int, root: Path = ROOT, chapters: Sequence[int] = CHAPTERS) -> list[dict]:
    """Return the examination questions of a term, drawn from a seed.

    There is one question from each chapter, and then more until their marks fill the minutes. With
    all seven chapters there are at most two from each, and with fewer chapters as many as
    necessary. At least three questions require a computation, and at least three do not.

    Raises:
        ValueError: if no choice of questions has exactly this sum of marks.
    """
    r, rows, whole = random.Random(f"{seed} paper"), drawable(root), MINUTES // A_MARK
    rows = [row for row in rows if row["chapter"] in chapters]
    most = max(2, math.ceil(12 / len(chapters)))
    for _ in range(10_000):
        r.shuffle(rows)
        chosen = [next(row for row in rows if row["chapter"] == chapter) for chapter in chapters]
        for row in rows:
            full = sum(other_row["chapter"] == row["chapter"] for other_row in chosen) >= most
            if row not in chosen and not full and total([*chosen, row]) <= whole:
                chosen.append(row)
        computed = sum(row["kind"] == "compute" for row in chosen)
        if total(chosen) == whole and 3 <= computed <= len(chosen) - 3:
            order = [row for row in load(root).values() if row in chosen]
            return [fill(row, r.choice([*choices(row)])) for row in order]
    raise ValueError(f"no choice of questions has {whole} marks in total")


def total(rows: list[dict]) -> int:
    return sum(points for row in rows for points, _ in row["marks"])


def paper(seed: int, root: Path = ROOT, chapters: Sequence[int] = CHAPTERS) -> dict[str, str]:
    """Return the examination of a term and its key as texts, keyed by file name."""
    rows = drawn(seed, root, chapters)
    marks = sum(row["marks"] for row in rows)
    head = (
        f"# Examination\n\n{MINUTES} minutes, {marks} marks. One mark takes {A_MARK} minutes. "
        "You may use one sheet of notes and a calculator.\n"
    )
    text = {"examination.md": head, "key.md": f"# Key, seed {seed}\n\n{HOW}\n"}
    for k, row in enumerate(rows, 1):
        text["examination.md"] += f"\n**{k}** {row['ask']} *({row['marks']})*\n"
        text["key.md"] += (
            f"\n**{k}** {row['answer']} {for_what(row)} *({row['marks']}; {row['id']})*\n"
        )
    return text


def main() -> None:
    if sys.argv[1:]:
        print("\n".join(paper(int(sys.argv[1])).values()))
        return
    for chapter in range(1, 8):
        print(
            f"chapter {chapter}: {len(bank(chapter=chapter))} questions, "
            f"{len(drawable(chapter=chapter))} can be drawn"
        )
    print(
        f"in all: {len(bank())}, and {sum(len([*choices(row)]) for row in drawable())} forms of "
        f"{len(drawable())} can be drawn"
    )


if __name__ == "__main__":
    main()
