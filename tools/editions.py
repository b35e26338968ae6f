"""The editions of a lecture in other languages: the same notebook, executed with a table of words that stands beside it.

`chapters/talk.zh.json` belongs to `chapters/talk.ipynb`. Its `cells` give each Markdown cell in the other language, with a
hash of the English that was translated; `words` are the strings that code cells draw and say (`helpers.words`), `same` those
that stay as they are, `frame` what a deck says around its slides. An edition is written to `_build/editions`, with fonts cut
down to the characters that it uses. `python tools/editions.py` lists what is not translated, or no longer.
"""

import hashlib
import json
import sys
from pathlib import Path

import nbformat
from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sphinx_ext"))
import execution  # noqa: E402

WEIGHTS = (400, 700)
SOURCE = "frontend/dist/fonts/noto-sans-sc-chinese-simplified-{}-normal.woff"
ASCII = {chr(code) for code in range(32, 127)}
START = """\
import json
import warnings
from pathlib import Path

from helpers import words

warnings.showwarning = lambda said, *more: words.missing.append(str(said))  # a character that no font has
words.use(json.loads(Path("{stem}.words.json").read_text()), sorted(Path().glob("{stem}-*.ttf")))  # {key}"""
END = "import json\nprint(json.dumps(words.missing, ensure_ascii=False))"


def tables(notebook: Path) -> list[Path]:
    """The tables of words beside a notebook."""
    return sorted(notebook.parent.glob(f"{notebook.stem}.*.json"))


def digest(text: str) -> str:
    """What a table notes of the English that was translated."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def stale(notebook: Path, table: Path) -> list[str]:
    """The Markdown cells whose English is not, or no longer, what was translated; and entries without a cell."""
    given = json.loads(table.read_text())["cells"]
    cells = {
        c["id"]: "".join(c["source"]) for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "markdown"
    }
    changed = [name for name, text in cells.items() if given.get(name, {}).get("english") != digest(text)]
    return changed + [name for name in given if name not in cells]


def words(table: Path) -> dict[str, str]:
    """English to the other language, for all that code cells draw and say."""
    content = json.loads(table.read_text())
    return content["words"] | {text: text for text in content["same"]}


def written(table: Path) -> Path:
    """Write the notebook of an edition, its words and its fonts; where it is."""
    source = table.with_name(table.name.split(".")[0] + ".ipynb")
    content, home, stem = json.loads(table.read_text()), ROOT / "_build/editions", table.stem
    home.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.id in content["cells"]:
            cell.source = content["cells"][cell.id]["text"]
    said = json.dumps(words(table), ensure_ascii=False)
    (home / f"{stem}.words.json").write_text(said)
    used = (
        set(said)
        | {c for cell in notebook.cells for c in cell.source}
        | set(json.dumps(content["frame"], ensure_ascii=False))
    )
    key = digest(said + "".join(sorted(used)))
    cut(used, stem, home, key)
    set_up = next(cell for cell in notebook.cells if cell.cell_type == "code")
    set_up.source = START.format(stem=stem, key=key)
    notebook.cells.append(nbformat.v4.new_code_cell(END, id="missing", metadata={"slideshow": {"slide_type": "skip"}}))
    path = home / f"{stem}.ipynb"
    nbformat.write(notebook, path)
    return path


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


def main() -> int:
    found = 0
    for notebook in sorted((ROOT / "chapters").rglob("*.ipynb")):
        for table in tables(notebook):
            for text in [*stale(notebook, table), *missing(executed(table))]:
                print(f"{table.name}: {text!r} is not translated, or no longer")
                found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
