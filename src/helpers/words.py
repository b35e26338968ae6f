"""Show figures and findings in another language, by looking up every text in a table of words.

The table maps English texts to texts of the other language. In an entry, `{}` stands for a number,
which stays the same, so the entry still fits if the number changes. `{a}` stands for any words, and
these words are looked up in the table as well. Without a table every text stays English.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.font_manager import fontManager

from helpers import require

# the second font is for signs that the first does not have, such as ≤
_FACE = ("Source Sans 3", "DejaVu Sans")
_NUMBER = r"[+−-]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?"
_HOLE = re.compile(r"\{(\w*)\}")
_missing: list[str] = []  # texts that were to be translated but have no entry
_faces = [*_FACE]  # the fonts in use, which are the course's own and then those of an edition
_entries: list[tuple[re.Pattern, str]] = []
# patterns of translations with names, for code that writes translated text itself
_frames: list[re.Pattern] = []


def use(table: Mapping[str, str] | None, fonts: Sequence[Path | str] = ()) -> None:
    """Set the table of words with which all later texts and figures are translated.

    If the table is None, no later text is translated.

    Args:
        table: the translation of each English entry.
        fonts: files of fonts that have the characters of the other language.

    Raises:
        ValueError: if an entry is not a text, or if a translation does not have the same
            placeholders (`{}`, `{a}`) as the English text.

    >>> use({"{} tokens": "{} 个 token"})
    >>> translated("1,000 tokens")
    '1,000 个 token'
    >>> use(None)
    """
    require.instance("table", table or {}, Mapping, "a mapping from English to its translation")
    new = []
    for english, translation in (table or {}).items():
        require.text("table", english)
        require.text("table", translation)
        names = sorted(_HOLE.findall(english))
        if names != sorted("" if name.isdigit() else name for name in _HOLE.findall(translation)):
            raise ValueError(
                "table must keep the numbers and the names in braces of each entry, but it "
                f"translates {english!r} as {translation!r}"
            )
        new.append((_pattern(english), translation))
    _entries[:] = new
    named = [
        translation
        for english, translation in (table or {}).items()
        if re.search(r"\{[a-z]\}", translation) and _written(translation) != _written(english)
    ]
    longest_first = sorted(named, key=lambda translation: -len(_written(translation)))
    _frames[:] = map(_pattern, longest_first)
    _missing.clear()
    for path in fonts:
        fontManager.addfont(path)
    faces = {
        font.name for font in fontManager.ttflist if font.fname in {str(path) for path in fonts}
    }
    _faces[:] = [*_FACE, *sorted(faces)]
    plt.rcParams["font.family"] = _faces


def translated(text: str) -> str:
    """Translate a text with the current table of words.

    If there is no table, or if the table has no entry for the text, the text is returned as it is.
    A text without an entry is also recorded in `_missing`. If the text is already translated but
    still contains English words, only these words are translated.

    Args:
        text: an English text.

    >>> translated("as it is")
    'as it is'
    >>> use({"the {a} fails": "{a}失败", "last": "最后一个"})
    >>> translated("the last fails"), translated("last失败")
    ('最后一个失败', '最后一个失败')
    >>> use(None)
    """
    require.text("text", text)
    if not _entries or not re.search(r"[A-Za-z]{2}", re.sub(r"\$[^$]*\$", "", text)):
        return text
    for form, translation in _entries:
        if match := form.fullmatch(text):
            numbers = [
                value
                for name, value in zip(form.groupindex, match.groups(), strict=True)
                if name[0] == "n"
            ]
            words = {
                name[1:]: translated(value)
                for name, value in match.groupdict().items()
                if name[0] == "w"
            }
            order = iter(numbers)
            return _HOLE.sub(
                lambda hole, order=order, numbers=numbers, words=words: (
                    next(order)
                    if not hole[1]
                    else numbers[int(hole[1])]
                    if hole[1].isdigit()
                    else words[hole[1]]
                ),
                translation,
            )
    for frame in _frames:
        if match := frame.fullmatch(text):
            known = len(_missing)
            for name in reversed(frame.groupindex):
                start, end = match.span(name)
                text = text[:start] + translated(text[start:end]) + text[end:]
            del _missing[known:]  # a name that stays as it is, such as RoPE
            return text
    _missing.append(text)
    return text


def _written(text: str) -> str:
    """Return the characters of an entry without placeholders, punctuation and spaces."""
    return re.sub(r"\W|\d", "", _HOLE.sub("", text))


def _pattern(english: str, also: str = "(?!)") -> re.Pattern:
    """Return a regular expression that matches the texts for which an English entry stands.

    `{}` matches a number (or whatever fits `also`), and `{a}` matches as few words as possible.

    >>> _pattern("{} of {a}").fullmatch("3 of all").groupdict()
    {'n0': '3', 'wa': 'all'}
    """
    parts, count = [], 0
    for k, part in enumerate(_HOLE.split(english)):
        if k % 2 == 0:
            parts.append(re.escape(part))
        elif part:
            parts.append(f"(?P<w{part}>.+?)")
        else:
            parts.append(f"(?P<n{count}>{_NUMBER}|{also})")
            count += 1
    return re.compile("".join(parts), re.S)
