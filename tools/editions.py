"""The editions of a page in other languages, each from a table of words that stands beside the page.

`chapters/talk.zh.json` belongs to `chapters/talk.ipynb`. Its `cells` give each Markdown cell in the other language, with a
hash of the English that was translated; `words` are the strings that code cells draw and say (`helpers.words`), `same` those
that stay as they are, `frame` what a deck says around its slides. Code stays as it is. Of a page in Markdown the `cells` are its sections, by
their headings. An edition is written to `_build/editions`, with fonts cut down to the characters that it uses; the book has
it as `chapters/zh/talk`, and a lesson's as `chapters/zh/3-representational-collapse/lesson`. `python tools/editions.py` lists what is not translated, or no longer; with the name of a table it
notes that all of that table's cells were read against the English as it now is.
"""

import hashlib
import json
import posixpath
import re
import sys
from functools import partial
from pathlib import Path

import nbformat
from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "chapters"
sys.path.insert(0, str(ROOT / "sphinx_ext"))
import execution  # noqa: E402
from pages import pages  # noqa: E402

WEIGHTS = (400, 700)
SOURCE = "frontend/dist/fonts/noto-sans-sc-chinese-simplified-{}-normal.woff"
ASCII = {chr(code) for code in range(32, 127)}
START = """\
import html
import json
import re
import warnings
from pathlib import Path

import pandas as pd
from IPython import get_ipython
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from helpers import words


def worded(text):  # what a function of the course has put into words already stays
    return text if re.search("[一-鿿]", text) else words.translated(text)


def table(shown):
    each = lambda cell: html.escape(worded(html.unescape(cell[1].strip())), quote=False)
    body = shown.to_html(notebook=True) if isinstance(shown, pd.DataFrame) else shown.to_html()
    return re.sub(r"(?<=>)([^<>]+)(?=</(?:th|td|caption)>)", each, body)


forms = get_ipython().display_formatter.formatters
forms["text/markdown"].for_type(Markdown, lambda shown: worded(shown.data))
for kind in (pd.DataFrame, Styler):
    forms["text/html"].for_type(kind, table)
warnings.showwarning = lambda said, *more: words.missing.append(str(said))  # a character that no font has
words.use(json.loads(Path("{stem}.words.json").read_text()), sorted(Path().glob("{stem}-*.ttf")))
made_of = "{key}"  # the words and fonts: others, and the notebook is executed again"""
END = "import json\nprint(json.dumps(words.missing, ensure_ascii=False))"


CUE = re.compile(r"<!-- cue: (\d+(?:\.5)?) min\n(.*?)-->", re.S)
SHOWN = re.compile(r'drawing\.show\("(\w+)"')
WAIT = re.compile(r"[(（][^()（）]*[.。][)）]")  # a sentence in brackets is not said
LISTING = "````{code-block}"
NAMED = "".join(f'<p class="{state} admonition-title">代码</p>' for state in ("collapsed", "expanded"))
FOLD = f'<details class="admonition hide above-input"><summary aria-label="显示或隐藏代码">{NAMED}</summary>'
LINK = re.compile(r'(\]\(|href=")(?!https?:|#|/|data:)([^)"#]+)')


def tables(page: Path) -> list[Path]:
    """The tables of words beside a page."""
    return sorted(page.parent.glob(f"{page.stem}.*.json"))


def english(table: Path) -> Path:
    """The page that a table belongs to."""
    stem = table.with_name(table.name.split(".")[0])
    return next(path for kind in (".ipynb", ".md") if (path := stem.with_suffix(kind)).exists())


def place(page: Path) -> Path:
    """Where the Chinese edition of a page stands in the book."""
    return HOME / "zh" / page.relative_to(HOME).with_suffix(".md")


def stem(table: Path) -> str:
    """What the files of an edition are called: `talk.zh`, and `3-representational-collapse-lesson.zh` of a lesson."""
    return "-".join(table.relative_to(HOME).with_suffix("").parts)


def cells(page: Path) -> dict[str, str]:
    """What is translated part by part: the Markdown cells of a notebook by their ids, the sections of a page by their headings.

    Cues are, where the page has their words.
    """
    if page.suffix == ".ipynb":
        notebook = json.loads(page.read_text())
        spoken = notebook["metadata"].get("lecture", {}).get("spoken")
        every = [cell for cell in notebook["cells"] if spoken or "cue" not in cell["metadata"].get("tags", [])]
        return {cell["id"]: "".join(cell["source"]) for cell in every if cell["cell_type"] == "markdown"}
    sections = re.split(r"\n\n(?=## )", page.read_text().strip())
    return {re.match(r"#+ (.+)", section)[1]: section for section in sections}


def digest(text: str) -> str:
    """What a table notes of the English that was translated."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def stale(page: Path, table: Path) -> list[str]:
    """The parts whose English is not, or no longer, what was translated; and entries without a part."""
    given, there = json.loads(table.read_text())["cells"], cells(page)
    changed = [name for name, text in there.items() if given.get(name, {}).get("english") != digest(text)]
    return changed + [name for name in given if name not in there]


def words(table: Path) -> dict[str, str]:
    """English to the other language, for all that code cells draw and say."""
    content = json.loads(table.read_text())
    return content.get("words", {}) | {text: text for text in content.get("same", [])}


def folder() -> Path:
    """Where editions are made; there from the first call on."""
    (ROOT / "_build/editions").mkdir(parents=True, exist_ok=True)
    return ROOT / "_build/editions"


def written(table: Path) -> Path:
    """Write the notebook of an edition, its words and its fonts; where it is."""
    source = english(table)
    content, home, name = json.loads(table.read_text()), folder(), stem(table)
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.id in content["cells"]:
            cell.source = content["cells"][cell.id]["text"]
        elif cell.cell_type == "code":
            cell.source = SHOWN.sub(partial(speaking, table), cell.source)
    said = json.dumps(words(table), ensure_ascii=False)
    (home / f"{name}.words.json").write_text(said)
    used = (
        set(said + drawn())
        | {c for cell in notebook.cells for c in cell.source}
        | set(json.dumps(content.get("frame", ""), ensure_ascii=False))
        | set((ROOT / "data/reported/talk_quotations.csv").read_text())  # the talk quotes its source in Chinese
    )
    key = digest(said + "".join(sorted(used)))
    cut(used, name, home, key)
    set_up = next(cell for cell in notebook.cells if cell.cell_type == "code")
    set_up.source = START.replace("{stem}", name).replace("{key}", key)
    notebook.cells.append(nbformat.v4.new_code_cell(END, id="missing", metadata={"slideshow": {"slide_type": "skip"}}))
    path = home / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


def speaking(table: Path, shown: re.Match) -> str:
    """A drawing in the language of a table, where it has words for it."""
    language = table.stem.rpartition(".")[2]
    has = (ROOT / f"src/course/drawing/words/{shown[1]}.{language}.json").exists()
    return f'{shown[0]}, "{language}"' if has else shown[0]


def cut(characters: set[str], stem: str, home: Path, key: str) -> None:
    """The fonts with these characters alone: for figures as TrueType, for the site as WOFF."""
    note = home / f"{stem}.fonts"
    if note.exists() and note.read_text() == key:
        return
    for weight in WEIGHTS:
        font = TTFont(ROOT / SOURCE.format(weight))
        cutter = subset.Subsetter(subset.Options(layout_features=[], hinting=False, notdef_outline=True))
        cutter.populate(text="".join(characters | ASCII))
        cutter.subset(font)
        font.flavor = None
        font.save(home / f"{stem}-{weight}.ttf")
        font.flavor = "woff"
        font.save(home / f"{stem}-{weight}.woff")
    note.write_text(key)


def drawn() -> str:
    """The characters of other languages around a page: in the drawings' scripts and tables, in the frame, in its neighbours' heads."""
    files = [path for kind in ("js", "json", "py") for path in (ROOT / "src/course/drawing").rglob(f"*.{kind}")]
    files += [ROOT / "sphinx_ext/chinese.py", ROOT / "_static/course.js"]
    heads = (next(iter(json.loads(path.read_text())["cells"].values()))["text"] for path in HOME.rglob("*.*.json"))
    return "".join(sorted(set(re.findall(r"[⺀-￯]", "".join([*(path.read_text() for path in files), *heads])))))


def executed(table: Path) -> nbformat.NotebookNode:
    """The edition with its outputs, executed where something it depends on has changed."""
    path = written(table)
    if not execution.kept(path, ROOT).exists():
        print(f"executing {path.relative_to(ROOT / '_build')}", flush=True)
        execution.finished(execution.run(path, ROOT))
    return execution.executed(path, ROOT)


def missing(notebook: nbformat.NotebookNode) -> list[str]:
    """What an executed edition had no words for."""
    return json.loads(notebook.cells[-1].outputs[0]["text"])


def spoken(source: str) -> str:
    """A cue as the page has it: what is said, without the minutes, and waits as stage directions.

    >>> spoken("<!-- cue: 1 min\\nWhy? (Wait.) So.\\n-->")
    'Why? <em>(Wait.)</em> So.'
    """
    found = CUE.fullmatch(source.strip())
    return WAIT.sub(r"<em>\g<0></em>", found[2].strip()) if found else source


def raw(text: str) -> str:
    return f"````{{raw}} html\n{text}\n````"


def ran(cell: nbformat.NotebookNode) -> list[str]:
    """A code cell in Markdown, as the English page has it: its code, folded where it is there, and what it gave."""
    tags = cell.metadata.get("tags", [])
    if "remove-cell" in tags:
        return []
    code = [raw('<div class="cell_input docutils container">'), f"{LISTING} python\n{cell.source}\n````", raw("</div>")]
    kind = "cell"
    if "hide-input" in tags:
        code, kind = [raw(FOLD), *code, raw("</details>")], "cell tag_hide-input"
    given = []
    for output in cell.outputs:
        shown = output.get("data", {})
        if "text/html" in shown:
            given.append(raw(f'<div class="output text_html">{shown["text/html"]}</div>'))
        elif "text/markdown" in shown:
            given.append(shown["text/markdown"])
        elif text := shown.get("text/plain") or output.get("text"):
            given.append(f"{LISTING} none\n{text.strip()}\n````")
    given = [raw('<div class="cell_output docutils container">'), *given, raw("</div>")] if given else []
    return [raw(f'<div class="{kind} docutils container">'), *code, *given, raw("</div>")]


def page(table: Path) -> str:
    """An edition as a page of the book, in Markdown: its text, what its cells show, and what is said over it."""
    source, content = english(table), json.loads(table.read_text())
    if source.suffix == ".md":
        parts = [content["cells"][name]["text"] for name in cells(source)]
        used = "".join([*parts, *words(table).values(), drawn()])
        cut(set(used), stem(table), folder(), digest(used))
    else:
        translated = cells(source)
        parts = [
            part
            for cell in executed(table).cells[:-1]
            for part in ([spoken(cell.source)] * (cell.id in translated) if cell.cell_type == "markdown" else ran(cell))
        ]
    away = posixpath.relpath(".", place(source).parent.relative_to(HOME))  # the way up to `chapters`
    folder_of = posixpath.relpath(source.parent, HOME)

    def there(match: re.Match) -> str:
        """A link to a page: to its edition where there is one."""
        target = re.sub(r"\.(html|ipynb|md)$", "", match[2])
        has = tables((source.parent / f"{target}.md").resolve())
        other = posixpath.normpath(posixpath.join(away, folder_of, match[2]))
        return match[0].replace(".ipynb", ".md") if has else f"{match[1]}{other}"

    return "\n\n".join(part if part.startswith(LISTING) else LINK.sub(there, part) for part in parts) + "\n"


def main() -> int:
    for name in sys.argv[1:]:
        table = ROOT / name
        content, there = json.loads(table.read_text()), cells(english(table))
        for part, text in there.items():
            content["cells"][part]["english"] = digest(text)
        table.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    found = 0
    for source in pages():
        for table in tables(source):
            drawn = missing(executed(table)) if source.suffix == ".ipynb" else []
            for text in [*stale(source, table), *drawn]:
                print(f"{table.name}: {text!r} is not translated, or no longer")
                found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
