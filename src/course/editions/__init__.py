"""Translate what a notebook draws and prints, with the PO file of its page.

    from course import editions
    editions.use("zh", page="3-representational-collapse/lesson")

After these lines, figures, tables, widgets and checks use this language, with fonts that have its
characters. In the source tree, the PO files are beside the pages. The installed package contains
copies.
"""

import ast
import html
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from IPython import get_ipython
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from helpers import require
from helpers import words as speech

SAID = "said"  # the context of text that code prints
LANGUAGES = ("zh",)
HERE = Path(__file__).resolve().parent
FONTS = tuple(HERE / f"noto-sans-sc-{weight}.ttf" for weight in (400, 700))
CHECKED = ("exercises", "build", "yours", "own")  # pages whose answers are checked


class Entry(NamedTuple):
    """Hold one entry of a PO file, which is a text with its translation and its state."""

    text: str
    other: str = ""
    context: str | None = None
    place: str = ""  # the cell from which the entry comes
    fuzzy: bool = False
    previous: str = ""
    obsolete: bool = False  # the page does not contain the entry any more


def folder() -> Path:
    """Return the folder that contains the PO files.

    In the source tree this is the folder of the pages. Otherwise it is a folder of the installed
    package.

    >>> (folder() / "talk.zh.po").is_file()
    True
    """
    installed = HERE / "_pages"
    return installed if installed.is_dir() else HERE.parents[2] / "chapters"


def read_all(path: Path) -> list[Entry]:
    """Read all entries of a PO file, including the obsolete ones after `#~`."""
    return list(_read(path, path.stat().st_mtime_ns)) if path.exists() else []


def read(path: Path) -> list[Entry]:
    """Read those entries of a PO file whose text the page still contains, in their order."""
    return [entry for entry in read_all(path) if not entry.obsolete]


@lru_cache(maxsize=64)
def _read(path: Path, _: int) -> tuple[Entry, ...]:
    entries = []
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        parts, last = {"place": "", "flags": ""}, ""
        obsolete = "#~ msgid" in block
        for line in block.splitlines():
            line = line.removeprefix("#~ ")
            if part := re.fullmatch(r'(#\| )?(?:(msg\w+) )?(".*")', line):
                last = (
                    (part[1] or "") + part[2] if part[2] else last
                )  # a string continues here because no name comes before it
                parts[last] = parts.get(last, "") + ast.literal_eval(part[3])
            elif line[:2] in ("#:", "#,"):
                parts["place" if line[1] == ":" else "flags"] += line[2:].strip()
        if parts.get("msgid"):
            entries.append(
                Entry(
                    text=parts["msgid"],
                    other=parts["msgstr"],
                    context=parts.get("msgctxt"),
                    place=parts["place"],
                    fuzzy="fuzzy" in parts["flags"],
                    previous=parts.get("#| msgid", ""),
                    obsolete=obsolete,
                )
            )
    return tuple(entries)


def patterns(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the translations of printed text, in the form that `helpers.words.use` takes.

    The most specific entries come first.
    """
    said = [e for e in entries if e.context == SAID and e.other and not e.fuzzy]
    return {
        e.text: e.other
        for e in sorted(said, key=lambda e: (len(re.findall(r"\{\w+\}", e.text)), -len(e.text)))
    }


def words(language: str, page: str) -> dict[str, str]:
    """Return the translations of a page, from English to the other language.

    If the page checks answers, the words of all checks are included.

    Args:
        language: "zh".
        page: the path of the page in `chapters`, without its ending.

    Raises:
        ValueError: if there is no edition in this language, or the page has no translation.

    >>> words("zh", "talk")["added loss (nats)"]
    '增加的损失（nat）'
    """
    require.choice("language", language, LANGUAGES)
    table = folder() / f"{require.text('page', page)}.{language}.po"
    if not table.is_file():
        raise ValueError(
            f"page = {page!r} has no translation: expected the file {table}; install the course "
            f"again, or leave this cell out and read the outputs in English"
        )
    shared = read(folder() / language / "checks.po") if table.stem.split(".")[0] in CHECKED else []
    every = sorted(read_all(table), key=lambda entry: not entry.obsolete)
    # if code prints an old text again, its old translation is there
    return patterns([*shared, *every])


def use(language: str, page: str) -> None:
    """Show a notebook's figures, tables, widgets and checks in another language from now on.

    Args:
        language: "zh".
        page: the path of the page in `chapters`, without its ending.

    Raises:
        ValueError: if there is no edition in this language, or the page has no translation.

    >>> use("zh", page="talk")
    >>> speech.translated("distance Δ (tokens)")
    '距离 Δ（token 数）'
    >>> speech.use(None)
    """
    speech.use(words(language, page), FONTS)
    if shell := get_ipython():
        forms = shell.display_formatter.formatters
        forms["text/markdown"].for_type(Markdown, lambda shown: speech.translated(shown.data))
        for kind in (pd.DataFrame, Styler):
            forms["text/html"].for_type(kind, _translate_table)


def _translate_table(table: pd.DataFrame | Styler) -> str:
    """Return a table as HTML with its headings, cells and caption in the other language."""
    body = table.to_html(notebook=True) if isinstance(table, pd.DataFrame) else table.to_html()
    return re.sub(r"(?<=>)([^<>]+)(?=</(?:th|td|caption)>)", _translate_cell, body)


def _translate_cell(cell: re.Match) -> str:
    return html.escape(speech.translated(html.unescape(cell[1].strip())), quote=False)
