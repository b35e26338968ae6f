"""Keep the Chinese editions of pages up to date, each in a PO file next to its page.

`chapters/talk.zh.po` belongs to `chapters/talk.ipynb`, and `book.units` defines its units. An
edition is a notebook with the same code: its text, and the strings and comments of its code, are in
the other language. A first cell lets the functions of the course draw and speak that language, too
(`course.editions`). The edition is executed, the book shows it as `chapters/zh/talk`, and the
download button of that page offers it.

The English may change first. A paragraph whose English changed keeps its old translation, and a
paragraph without a translation appears in English. Both have a mark on the page, and its foot
counts them. Changed strings of code appear in English.

    python tools/editions.py                       list how much of each page is translated, and
                                                   what remains to be translated
    python tools/editions.py update PAGE [--run]   write or update the PO file of a page, without
                                                   losing a translation
    python tools/editions.py reword PAGE [PHRASE]  keep the old translation of units in which only
                                                   the wording changed: the unit that has the
                                                   phrase in its new English, or without a phrase
                                                   all changed units
"""

import argparse
import hashlib
import io
import itertools
import json
import posixpath
import re
import subprocess
from functools import cache, lru_cache, partial
from pathlib import Path

import nbformat
from fontTools import subset
from fontTools.ttLib import TTFont

from book import execution, questions, units
from book.pages import ROOT, pages
from book.units import SAID, Entry
from course import editions as edition

HOME = ROOT / "chapters"

WEIGHTS = (400, 700)
SOURCE = "frontend/dist/fonts/noto-sans-sc-chinese-simplified-{}-normal.woff"
ASCII = {chr(code) for code in range(32, 127)}
SPEAK = """\
# @title 图和输出的中文：先运行这一格
from course import editions

editions.use("{language}", page="{page}")"""
END = """\
import json
import re

from helpers import words

WORDS = "{words}"
unknown = [text for text in dict.fromkeys(words._missing) if not re.search("[一-鿿]", text)]
print(json.dumps(unknown, ensure_ascii=False))"""


CUE = re.compile(r"<!-- cue: (\d+(?:\.5)?) min\n(.*?)-->", re.S)
SHOWN = re.compile(r'drawing\.show\("(\w+)"')
WAIT = re.compile(r"[(（][^()（）]*[.。][)）]")  # a sentence in brackets is not spoken
LISTING = "````{code-block}"
NAMED = "".join(
    f'<p class="{state} admonition-title">代码</p>' for state in ("collapsed", "expanded")
)
FOLD = (
    '<details class="admonition hide above-input">'
    f'<summary aria-label="显示或隐藏代码">{NAMED}</summary>'
)
BEHIND = '<small class="behind">（本段依据较早的英文版，尚未更新）</small>'
OPEN = '<small class="behind">（本段尚未译出，暂用英文）</small>'
NOT_YET = "（尚未译出，暂用英文）"
LINK = re.compile(r'(\]\(|(?:href|src)=")(?!https?:|#|/|data:)([^)"#]+)')
LAGS = r'<small class="behind">[^<]*</small>'  # the note on a page or a mark in its text


def tables(page: Path) -> list[Path]:
    """Return the paths of the PO files next to a page."""
    return sorted(page.parent.glob(f"{page.stem}.*.po"))


def english(table: Path) -> Path:
    """Return the path of the English page to which a PO file belongs."""
    stem = table.with_name(table.name.split(".")[0])
    return next(path for kind in (".ipynb", ".md") if (path := stem.with_suffix(kind)).exists())


def place(page: Path) -> Path:
    """Return the path of a page's Chinese edition in the book."""
    return HOME / "zh" / page.relative_to(HOME).with_suffix(".md")


def stem(table: Path) -> str:
    """Return the stem of an edition's file names.

    The stem is `talk.zh` for the talk, or `3-representational-collapse-lesson.zh` for a lesson.
    """
    return "-".join(table.relative_to(HOME).with_suffix("").parts)


def language(table: Path) -> str:
    """Return the language of a PO file, such as "zh"."""
    return table.stem.rpartition(".")[2]


def page_name(table: Path) -> str:
    """Return the path of a PO file's page in `chapters`, without its ending.

    An example is "3-representational-collapse/lesson".
    """
    return table.relative_to(HOME).with_name(table.name.split(".")[0]).as_posix()


def cells(page: Path, cues: bool = False, slides: bool = True) -> dict[str, str]:
    """Split a page into its text cells or sections.

    The result has the Markdown cells of a notebook keyed by their ids, or the sections of a page
    keyed by their headings. Cues are included if the page shows their words or the caller asks for
    them. Cells that appear only on slides are included unless the caller excludes them.
    """
    if page.suffix == ".ipynb":
        notebook = json.loads(page.read_text())
        cues |= bool(notebook["metadata"].get("lecture", {}).get("spoken"))
        tags = {cell["id"]: cell["metadata"].get("tags", []) for cell in notebook["cells"]}
        left = {
            i
            for i, has in tags.items()
            if (not cues if "cue" in has else not slides and "remove-cell" in has)
        }
        every = [cell for cell in notebook["cells"] if cell["id"] not in left]
        return {
            cell["id"]: "".join(cell["source"]) for cell in every if cell["cell_type"] == "markdown"
        }
    sections = re.split(r"\n\n(?=## )", page.read_text().strip())
    return {re.match(r"#+ (.+)", section)[1]: section for section in sections}


def code(page: Path) -> dict[str, str]:
    """Return the code cells that a page shows, keyed by their ids."""
    every = json.loads(page.read_text())["cells"] if page.suffix == ".ipynb" else []
    every = [
        cell
        for cell in every
        if cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", [])
    ]
    return {cell["id"]: "".join(cell["source"]) for cell in every}


def wanted(page: Path, entries: list[Entry]) -> list[Entry]:
    """Return the units of a page that need a translation.

    The units come from the page's text and code, and from the sentences that its code or its
    directives produced when it was run.
    """
    twice = {
        (e.text, e.context) for e in entries if e.context not in (None, units.SAID, units.CODE)
    }
    collected = {}
    for name, text in cells(page, cues=True).items():
        where = name if page.suffix == ".ipynb" else ""
        for unit in filter(None, (piece.text for piece in units.pieces(text))):
            context = name if (unit, name) in twice else None
            collected.setdefault((unit, context), Entry(unit, "", context, where))
    sources = code(page)
    stays = units.keeps(sources.values())
    for name, source in sources.items():
        for entry in units.of_code(source, name, entries, stays):
            collected.setdefault((entry.text, entry.context), entry)
    for entry in entries:
        if entry.context == SAID and not entry.place:
            collected.setdefault((entry.text, entry.context), entry)
    return list(collected.values())


def current(table: Path) -> list[Entry]:
    """Return the present units of a page, each with its translation if there is one.

    Units that are not yet in the PO file are included.
    """
    page = english(table)
    return list(
        _current(
            page, table, page.stat().st_mtime_ns, table.stat().st_mtime_ns if table.exists() else 0
        )
    )


@lru_cache(maxsize=256)
def _current(page: Path, table: Path, *_: int) -> tuple[Entry, ...]:
    return tuple(units.merged(units.read_all(table), wanted(page, units.read(table))))


def update(page: Path, more: list[str] = ()) -> Path:
    """Write the PO file of a page with its present units and their translations.

    `more` has the sentences that the page produced when it was run. Units that the page no longer
    has are kept at the end of the file.
    """
    table = page.with_suffix(".zh.po")
    entries = units.read_all(table)
    heard = [Entry(units.holes(text), "", SAID) for text in more]
    new = units.merged(
        heard + entries, wanted(page, [e for e in entries if not e.obsolete] + heard)
    )
    left_over = units.left(entries, new)
    for entry in left_over:
        if entry not in entries:
            print(
                f"{table.name}: {entry.text!r} is no longer there; its translation is kept behind "
                f"#~"
            )
    done = all(e.other and not e.fuzzy for e in new if e.place not in optional(page))
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", str(page)]
    commit = (
        subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        if done
        else units.commit(table)
    )
    units.write(table, new + left_over, commit)
    return table


def reword(page: Path, phrases: list[str] = ()) -> list[str]:
    """Keep the translation of units whose English changed in wording but not in meaning.

    We return the new English of these units.

    Args:
        page: the English page.
        phrases: a part of the new English of each unit to keep. Without phrases, we keep the
            translations of all changed units.

    Raises:
        ValueError: if no changed unit has a phrase, or the translation of a unit has other numbers
            or formulas.
    """
    table = update(page)
    entries = units.read_all(table)
    moved = [e for e in entries if e.fuzzy and not e.obsolete]
    for phrase in phrases:
        if not any(phrase in e.text for e in moved):
            raise ValueError(f"phrase = {phrase!r} occurs in no changed unit of {page.name}")
    chosen = [e for e in moved if not phrases or any(phrase in e.text for phrase in phrases)]
    for entry in chosen:
        if differing := units.differing(entry.text, entry.other):
            raise ValueError(
                f"phrase = {entry.text!r} has {differing}, but its translation does not. "
                f"Translate it again"
            )
    units.write(
        table,
        [e._replace(fuzzy=False, previous="") if e in chosen else e for e in entries],
        units.commit(table),
    )
    return [e.text for e in chosen]


def optional(page: Path) -> set[str]:
    """Return the ids of the cells that an edition may leave out, which are the cues of a lesson.

    If an edition has no words for the cues, it has no deck.
    """
    return set(cells(page, cues=True)) - set(cells(page))


def digest(text: str) -> str:
    """Return a hash that identifies a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def stale(page: Path, table: Path) -> list[str]:
    """Return what is left to translate on a page, by its English.

    The result has the units without a translation, and the changed units with their old English.
    """
    free, todo = optional(page), []
    for unit in current(table):
        if unit.fuzzy:
            todo.append(f"{unit.text} [was: {unit.previous}]")
        elif not unit.other and unit.place not in free:
            todo.append(f"{unit.text} [not translated]")
    return todo


def state(table: Path) -> tuple[int, int, int, str]:
    """Return the state of a page's translation.

    The four values are the number of translated units, the number of all units, the number of units
    that have changed since their translation, and the commit of the English page.
    """
    free = optional(english(table))
    every = [e for e in current(table) if e.place not in free]
    done, moved = sum(bool(e.other) and not e.fuzzy for e in every), sum(e.fuzzy for e in every)
    return done, len(every), moved, units.commit(table)


def words(table: Path) -> dict[str, str]:
    """Return the translations of everything that a page's code cells draw and print."""
    return edition.words(language(table), page_name(table))


def of_questions() -> dict[str, str]:
    """Return the translations of the questions that lessons ask and repeat later.

    A question without a translation stays English and says so.
    """
    known = {e.text: e.other for e in units.read(HOME / "zh/questions.po") if e.other}
    every = itertools.chain.from_iterable(questions.in_lessons().values())
    return {text: known.get(text, f"{text}{NOT_YET}") for text in every}


def texts(table: Path, cues: bool = False, marks: bool = False) -> dict[str, str]:
    """Return the cells of a page in the other language.

    A changed paragraph has its old translation, and a paragraph without a translation has its
    English text. With `marks`, both have a mark that says so.
    """
    known = {(e.text, e.context): e for e in current(table) if e.other}

    def other(piece: units.Piece, name: str, speech: bool) -> str:
        entry = known.get((piece.text, name)) or known.get((piece.text, None))
        if not piece.text or (entry and not entry.fuzzy) or speech or not marks:
            return f"{piece.before}{entry.other if entry else piece.text}{piece.after}"
        return marked(piece, entry.other, BEHIND) if entry else marked(piece, piece.text, OPEN)

    return {
        name: "".join(
            other(piece, name, text.startswith("<!-- cue")) for piece in units.pieces(text)
        )
        for name, text in cells(english(table), cues).items()
    }


def marked(piece: units.Piece, text: str, mark: str) -> str:
    """Add a mark to a translated piece.

    The mark comes after the piece's words, in the last cell of a table row, or below a heading.

    >>> marked(units.Piece("- ", "English", "\\n"), "中文", "（旧）")
    '- 中文（旧）\\n'
    >>> marked(units.Piece("", "| English |", "\\n"), "| 中文 |", "（旧）")
    '| 中文（旧） |\\n'
    """
    if re.match(r"(?:`{3}|:{3})", piece.before):  # this is the title of a directive
        return f"{piece.before}{text}{piece.after}"
    if piece.before.startswith("#"):
        return f"{piece.before}{text}\n\n{mark}\n" + piece.after.removeprefix("\n")
    if text.startswith("|"):
        return f"{piece.before}{text.rstrip().removesuffix('|').rstrip()}{mark} |{piece.after}"
    return f"{piece.before}{text}{mark}{piece.after}"


def frame(kind: str) -> dict[str, str]:
    """Return the words around Chinese pages and slides, keyed by their English.

    `kind` selects those of a "deck", its "speaker" window, the "theme", or a "kind" of box.
    """
    return {
        e.text: e.other
        for e in units.read(HOME / "zh/frame.po")
        if e.context == kind and e.other and not e.fuzzy
    }


PLAYED = re.compile(r'(?<=▶ )Play: |(?<=▶ )Play(?=<)|(?<=[▶■]", ")(?:Play|Stop)(?=")|(?<=")Play: ')


def played(page: str) -> str:
    """Translate the buttons of widgets in a page or a deck.

    We translate their initial text and the text after they are pressed.

    >>> player = '<button aria-label="Play: n">▶ Play</button>'
    >>> played('<button>▶ Play: n</button>')
    '<button>▶ 播放：n</button>'
    >>> played(player + '<script>say(button, "■", "Stop")</script>')
    '<button aria-label="播放：n">▶ 播放</button><script>say(button, "■", "停")</script>'
    """
    return PLAYED.sub(lambda match: frame("player")[match[0]], page)


def spoken_too(table: Path) -> bool:
    """Return whether a PO file has translations for at least half of a lecture's cues.

    If so, the edition has a deck.
    """
    page = english(table)
    if page.suffix == ".md" or "lecture" not in json.loads(page.read_text())["metadata"]:
        return False
    spoken = set(cells(page, cues=True)) if optional(page) == set() else optional(page)
    lines = [e for e in current(table) if e.place in spoken]
    return 2 * sum(bool(e.other) for e in lines) >= len(lines) > 0


def folder() -> Path:
    """Return the folder of the editions, after creating it if necessary."""
    (ROOT / "_build/editions").mkdir(parents=True, exist_ok=True)
    return ROOT / "_build/editions"


def notebook(table: Path) -> nbformat.NotebookNode:
    """Build an edition as a notebook, which runs wherever the English notebook runs."""
    translated_notebook = nbformat.read(english(table), as_version=4)
    text, entries, sources = (
        texts(table, cues=True, marks=True),
        current(table),
        code(english(table)),
    )
    stays = units.keeps(sources.values())
    for cell in translated_notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = text[cell.id]
        elif cell.id in sources:
            translated = units.in_code(cell.source, entries, stays)
            cell.source = SHOWN.sub(partial(speaking, table), units.legend(translated, entries))
    source = SPEAK.format(language=language(table), page=page_name(table))
    cell = nbformat.v4.new_code_cell(source, id="words")
    cell.metadata = {
        "tags": ["remove-cell"],
        "slideshow": {"slide_type": "skip"},
        "cellView": "form",  # Colab shows the title instead of the code
    }
    first = next(k for k, cell in enumerate(translated_notebook.cells) if cell.cell_type == "code")
    translated_notebook.cells.insert(first + 1, cell)
    return translated_notebook


def written(table: Path) -> Path:
    """Write the notebook of an edition and the fonts of its page, and return the notebook's path.

    The notebook has the form in which we execute it.
    """
    book, home, name = notebook(table), folder(), stem(table)
    used = "".join(
        [c for cell in book.cells for c in cell.source]
        + [
            *words(table).values(),
            drawn(),
            note(table),
            (ROOT / "data/sources.csv").read_text(),
        ]  # this text is quoted in Chinese
    )
    cut(used, name, home)
    # with other translations the cell is executed again
    end = END.format(words=digest(repr(words(table))))
    book.cells.append(
        nbformat.v4.new_code_cell(end, id="missing", metadata={"slideshow": {"slide_type": "skip"}})
    )
    path, text = home / f"{name}.ipynb", nbformat.writes(book)
    # an unchanged file keeps its time, which is that of the execution
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def speaking(table: Path, shown: re.Match) -> str:
    """Return the HTML of a drawing in the language of a PO file, if its words are known."""
    lang = language(table)
    has = (ROOT / f"src/course/drawing/words/{shown[1]}.{lang}.json").exists()
    return f'{shown[0]}, "{lang}"' if has else shown[0]


def cut(text: str, stem: str, home: Path) -> None:
    """Write fonts that contain only the characters of a text.

    The fonts are TrueType for figures and WOFF for the site.
    """
    characters, note = set(text), home / f"{stem}.fonts"
    key = digest("".join(sorted(characters)))
    if note.exists() and note.read_text() == key:
        return
    for weight in WEIGHTS:
        plain = home / f"{stem}-{weight}.ttf"
        font = TTFont(
            io.BytesIO(whole(weight)), recalcBBoxes=False, recalcTimestamp=False
        )  # the outlines stay as they are
        cutter = subset.Subsetter(
            subset.Options(layout_features=[], hinting=False, notdef_outline=True)
        )
        cutter.populate(text="".join(characters | ASCII))
        cutter.subset(font)
        font.save(plain)
        packed = TTFont(plain, recalcTimestamp=False)
        packed.flavor = "woff"
        packed.save(plain.with_suffix(".woff"))
    note.write_text(key)


@cache
def whole(weight: int) -> bytes:
    """Load the font with all characters, without the tables for vertical text and ligatures."""
    font, file = TTFont(ROOT / SOURCE.format(weight), recalcTimestamp=False), io.BytesIO()
    font.flavor = None
    for name in {"GSUB", "GPOS", "BASE", "vhea", "vmtx"} & {*font.keys()}:
        del font[name]
    font.save(file)
    return file.getvalue()


@cache
def drawn() -> str:
    """Return all characters of other languages that occur around a page.

    The characters come from the scripts and tables of drawings, from the frame, and from the
    headings of neighbouring pages.
    """
    files = [
        path
        for kind in ("js", "json", "py")
        for path in (ROOT / "src/course/drawing").rglob(f"*.{kind}")
    ]
    files += [
        HOME / "zh/frame.po",
        HOME / "zh/questions.po",
        ROOT / "_static/course.js",
        ROOT / "data/sources.csv",
        Path(__file__),
    ]
    names = ("sourced.py", "chinese.py", "examination.py", "searching.js")
    files += [ROOT / "sphinx_ext" / name for name in names]
    heads = (next(iter(texts(path).values())) for path in HOME.rglob("*.zh.po"))
    return "".join(
        sorted(set(re.findall(r"[⺀-￯]", "".join([*(path.read_text() for path in files), *heads]))))
    )


def live(text: str) -> str:
    """Return the text of the scripts of `frontend/live` that a page loads.

    The sentences that the scripts fill in are included.
    """
    names = re.findall(r'src="[./]*live/(\w+\.js)"', text)
    files = [ROOT / "frontend/live" / name for name in names]
    if "reading.js" in names:
        files.append(ROOT / "src/course/report/sentences.json")
    return "".join(path.read_text(encoding="utf-8") for path in files)


def headings() -> str:
    """Return the headings of all Chinese pages.

    The page of the sources links to each of them.
    """
    every = (text for path in HOME.rglob("*.zh.po") for text in texts(path).values())
    return "".join(head for text in every for head in re.findall("^#+ .+$", text, re.M))


def executed(table: Path) -> nbformat.NotebookNode:
    """Return the edition with its outputs, and execute it first if a dependency changed."""
    path = written(table)
    if not execution.kept(path, ROOT).exists():
        execution.execute([path], ROOT)
    return execution.executed(path, ROOT)


def missing(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the texts for which an executed edition had no translation."""
    return json.loads(notebook.cells[-1].outputs[0]["text"])


def spoken(source: str) -> str:
    """Convert a cue to the form that the page shows.

    The result has the spoken words without the minutes, and pauses as stage directions.

    >>> spoken("<!-- cue: 1 min\\nWhy? (Wait.) So.\\n-->")
    'Why? <em>(Wait.)</em> So.'
    """
    cue = CUE.fullmatch(source.strip())
    return WAIT.sub(r"<em>\g<0></em>", cue[2].strip()) if cue else source


def raw(text: str) -> str:
    """Return a MyST directive that contains HTML."""
    return f"````{{raw}} html\n{text}\n````"


def ran(cell: nbformat.NotebookNode) -> list[str]:
    """Convert a code cell to Markdown as on the English page.

    The result has the code, which is folded if it is folded there, and the output.
    """
    tags = cell.metadata.get("tags", [])
    if "remove-cell" in tags:
        return []
    code = [
        raw('<div class="cell_input docutils container">'),
        f"{LISTING} python\n{cell.source}\n````",
        raw("</div>"),
    ]
    kind = "cell"
    if "hide-input" in tags:
        code, kind = [raw(FOLD), *code, raw("</details>")], "cell tag_hide-input"
    outputs = []
    for output in cell.outputs:
        shown = output.get("data", {})
        if "text/html" in shown:
            outputs.append(raw(f'<div class="output text_html">{shown["text/html"]}</div>'))
        elif "text/markdown" in shown:
            outputs.append(shown["text/markdown"])
        elif text := shown.get("text/plain") or output.get("text"):
            outputs.append(f"{LISTING} none\n{text.strip()}\n````")
    outputs = (
        [raw('<div class="cell_output docutils container">'), *outputs, raw("</div>")]
        if outputs
        else []
    )
    if "hide-cell" in tags:
        shown = cell.metadata["mystnb"]["code_prompt_show"]
        outputs, kind = [*outputs, raw("</details>")], "cell tag_hide-cell"
        code = [
            raw(
                f'<details class="admonition hide '
                f'solved"><summary>{frame("prompts").get(shown, shown)}</summary>'
            ),
            *code,
        ]
    return [raw(f'<div class="{kind} docutils container">'), *code, *outputs, raw("</div>")]


def note(table: Path) -> str:
    """Return a page's note on how much of the page is translated and how much has changed."""
    done, every, moved, commit = state(table)
    of = f"（英文版提交 {commit}）" if commit else ""
    if done == every:
        return f"中文版：共 {every} 个单元，全部译出，与英文版一致{of}。"
    old = [f"{moved} 个依据较早的英文版"] * bool(moved) + [f"{every - done - moved} 个尚未译出"] * (
        every > done + moved
    )
    return (
        f"中文版：共 {every} 个单元，其中{'，'.join(old)}；"
        f"正文中都已标明，代码和图里的暂用英文{of}。"
    )


def listed() -> list[tuple[str, str, int, int, int]]:
    """Return the pages that have an edition.

    Each has five entries: its name, its Chinese title, and the numbers of translated, all, and
    changed units.
    """
    rows = []
    for name in re.findall(
        r"(?:file|root): chapters/((?!zh/)\S+)", (ROOT / "_toc.yml").read_text()
    ):
        for table in tables(english(HOME / f"{name}.zh.po")):
            title, (done, every, moved, _) = next(iter(texts(table).values())), state(table)
            rows.append((name, title.splitlines()[0].strip("# "), done, every, moved))
    return rows


def page(table: Path) -> str:
    """Return an edition as a page of the book in Markdown.

    The page has the text, the outputs of the cells, and the words spoken over it.
    """
    source = english(table)
    if source.suffix == ".md":
        parts = [*texts(table, marks=True).values()]
        named = headings() if source.stem == "sources" else ""
        used = "".join(
            [*parts, *words(table).values(), drawn(), note(table), named, live("".join(parts))]
        )
        cut(used, stem(table), folder())
    else:
        translated = cells(source, slides=False)
        parts = []
        for cell in executed(table).cells[:-1]:
            if cell.cell_type != "markdown":
                parts += ran(cell)
            elif cell.id in translated:
                parts.append(spoken(cell.source))
    away = posixpath.relpath(
        ".", place(source).parent.relative_to(HOME)
    )  # the path up to `chapters`
    folder_of = posixpath.relpath(source.parent, HOME)

    def there(match: re.Match) -> str:
        """Redirect a link from a page to the page's edition, if there is one."""
        target = re.sub(r"\.(html|ipynb|md)$", "", match[2])
        has = tables((source.parent / f"{target}.md").resolve())
        address = posixpath.normpath(posixpath.join(away, folder_of, match[2]))
        return match[0].replace(".ipynb", ".md") if has else f"{match[1]}{address}"

    parts.append(f'<p class="edition-note"><small>{note(table)}</small></p>')
    return (
        "\n\n".join(part if part.startswith(LISTING) else LINK.sub(there, part) for part in parts)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "command",
        nargs="?",
        choices=("list", "update", "reword"),
        default="list",
        help="list shows what is missing (default), update writes it into the PO files, reword "
        "keeps translations of sentences whose wording changed but not their meaning",
    )
    parser.add_argument(
        "pages",
        nargs="*",
        help="pages such as chapters/talk.ipynb (default: all); for reword, one page and then "
        "parts of sentences",
    )
    parser.add_argument(
        "--run",
        action="store_true",
        help="also execute the edition and add the words that its functions print",
    )
    options = parser.parse_intermixed_args()
    if options.command == "reword":
        for text in reword(Path(options.pages[0]).resolve(), options.pages[1:]):
            print(f"kept: {text}")
        return
    known = [page.resolve() for page in pages()]
    for name in options.pages:
        if Path(name).resolve() not in known:
            raise SystemExit(
                f"page must be one of the course's, such as chapters/talk.ipynb, not {name}"
            )
    chosen = [Path(name).resolve() for name in options.pages] or [
        page for page in pages() if tables(page)
    ]
    if not options.pages:
        for text, translation in of_questions().items():
            if translation.endswith(NOT_YET):
                print(f"chapters/zh/questions.po: {text} [not translated]")
    for source in chosen:
        if options.command == "update":
            update(source)
            if options.run and source.suffix == ".ipynb":
                update(source, missing(executed(source.with_suffix(".zh.po"))))
        for table in tables(source):
            todo = stale(source, table)
            if options.run and source.suffix == ".ipynb":
                todo += [f"{text} [said, and not translated]" for text in missing(executed(table))]
            done, every, moved, _ = state(table)
            print(
                "\n".join(
                    [*todo, f"{table.relative_to(ROOT)}: {done} of {every} units, {moved} moved"]
                )
            )


if __name__ == "__main__":
    main()
