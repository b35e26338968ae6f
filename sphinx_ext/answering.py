"""Prepare the exercises that readers answer in the page.

We write the files that `frontend/answers` needs, in the folder of each page of exercises and in
`answers/`. A page of exercises gets the scripts, and JSON with the stub and the check of each
exercise and whether a page can judge the answer. Every page gets the rings of progress. At the end
of a build we write `answers/`: the scripts, the course's files for Python in the page, and for each
chapter the cases, results and mistakes, computed with real torch (`course.exercises.written`).
Pyodide itself comes from the npm lock, through `frontend/dist/pyodide`.
"""

import functools
import hashlib
import importlib
import itertools
import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import examination
import networkx

from book import editions, questions

ROOT = Path(__file__).resolve().parents[1]
EXERCISES = re.compile(r"chapters/(?:zh/)?(\d)-[\w-]+/exercises")
LESSON = re.compile(r"chapters/(?:zh/)?(\d)-[\w-]+/lesson")
SETUP_SIGN = "google.colab"  # a word in the cell that installs the course on Colab
FIXED = (
    2020,
    1,
    1,
    0,
    0,
    0,
)  # the date of all files in an archive, so that the same files make the same archive
LARGE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")


# in a page opened as a file, module scripts do not run, so a plain script says how to serve the
# folder
OPENED_AS_A_FILE = [
    f"""<script>if (location.protocol === "file:")
document.querySelector("main article h1")?.insertAdjacentHTML("afterend",
{json.dumps(f'<p class="answer-file">{words}</p>', ensure_ascii=False)});</script>"""
    for words in (
        "Opened as a file, this page cannot check answers. Serve the folder: "
        "run <code>python -m http.server</code> in it "
        "and open http://localhost:8000.",
        (
            "以文件方式打开时，此页无法检查解答。请在该文件夹中运行 "
            "<code>python -m http.server</code>，然后打开 http://localhost:8000。"
        ),
    )
]


def written() -> ModuleType:
    """Import and return the module that writes the exercises' data.

    The module imports torch, so we import it only at the end of a build.
    """
    return importlib.import_module("course.exercises.written")


def code_cells(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    return [
        "".join(cell["source"])
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]


def setup_cell(path: Path) -> str:
    """Return the code at the beginning of a page of exercises that imports what it needs."""
    return next(cell for cell in code_cells(path) if SETUP_SIGN not in cell)


def solutions(path: Path) -> dict[str, tuple]:
    """Return the course's own answers to the compared functions, without the predictions.

    The answers are keyed by the name of the check.
    """
    names: dict = {}
    exec(setup_cell(path), names)
    answers_of = {}
    for cell in code_cells(path):
        if not cell.startswith("# @title Solution"):
            continue
        *body, last = cell.rstrip().splitlines()
        name, arguments = re.match(r"checks\.(\w+)\.solution\((.*)\)", last).groups()
        if not written().comparisons(getattr(names["checks"], name)):
            continue
        scope = dict(names)
        exec("\n".join(body), scope)
        answers = eval(f"({arguments},)", scope)
        answers_of[name] = answers[1:] if getattr(names["checks"], name).guesses else answers
    return answers_of


@functools.cache
def listed(path: Path) -> list[dict]:
    """Return the exercises of a page.

    Each has its number and title, its stub, its check, whether a page can judge it, and the reason
    if it cannot.
    """
    chapter = path.parent.name[0]
    rows = tomllib.loads((ROOT / f"src/course/exercises/chapter{chapter}.toml").read_text())
    absent = tomllib.loads((ROOT / "src/course/exercises/page.toml").read_text())["absent"]
    cells, exercises = code_cells(path), []
    for stub, call in itertools.pairwise(cells):
        name = re.fullmatch(r"checks\.(\w+)\(.*\)", call.strip())
        if name is None or name[1] == "progress":
            continue
        row = rows[name[1]]
        why = absent.get(row["number"], "")
        exercises.append(
            {
                "number": row["number"],
                "title": row["title"],
                "stub": stub,
                "call": call.strip(),
                "runs": not why,
                "why": why,
            }
        )
    return exercises


def notebooks() -> dict[int, Path]:
    """Return the English notebooks of exercises, keyed by chapter."""
    return {
        int(path.parent.name[0]): path for path in sorted(ROOT.glob("chapters/*/exercises.ipynb"))
    }


def archive(path: Path, files: dict[str, str | bytes]) -> None:
    """Write a zip file that is identical whenever its files are identical."""
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, FIXED)
            entry.compress_type = zipfile.ZIP_DEFLATED
            zipped.writestr(entry, text)


def graph_files() -> dict[str, bytes]:
    """Return the Python files of networkx and its licence, without its tests."""
    top = Path(networkx.__file__).parent
    files = {}
    for path in sorted(top.glob("**/*.py")):
        if "tests" not in path.parts and "drawing" not in path.parts:
            files[f"networkx/{path.relative_to(top)}"] = path.read_bytes()
    files["networkx/drawing/__init__.py"] = b""
    for path in sorted(top.parent.glob("networkx-*.dist-info/**/LICENSE*")):
        files["networkx/LICENSE.txt"] = path.read_bytes()
    return files


def version(files: dict[str, str]) -> str:
    """Compute a hash of everything on which the data depend.

    The data depend on the source of the course and on the exercises.
    """
    digest = hashlib.sha256()
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    for path in sorted([*(ROOT / "src").glob("**/*.py"), *notebooks().values()]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def chapter_data(number: int, path: Path, of: str, kept: Path) -> str:
    """Return the data of a chapter's exercises as JSON.

    If nothing has changed, they come from an earlier build.
    """
    note = kept / f"chapter{number}-{of}.json"
    if not note.exists():
        kept.mkdir(parents=True, exist_ok=True)
        for old in kept.glob(f"chapter{number}-*.json"):
            old.unlink()
        note.write_text(json.dumps(written().chapter(number, setup_cell(path), solutions(path))))
    return note.read_text()


def write(out: Path, kept: Path) -> None:
    """Write the folder `answers` of the site.

    The folder has everything that a page needs to judge exercises.
    """
    folder = out / "answers"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "frontend/answers", folder)
    files = written().files()
    of = version(files)
    archive(folder / f"python-{of}.zip", files)
    archive(folder / f"networkx-{of}.zip", graph_files())
    for number, path in notebooks().items():
        (folder / f"chapter{number}-{of}.json").write_text(chapter_data(number, path, of, kept))
    for name, words in (("questions", {}), ("questions.zh", editions.of_questions())):
        (folder / f"{name}.json").write_text(json.dumps(returning(words), ensure_ascii=False))
    sizes = {
        f"answers/{path.name.replace(f'-{of}', '')}": path.stat().st_size
        for path in folder.iterdir()
    }
    for name in LARGE:
        path = ROOT / "frontend/dist/pyodide" / name
        if (
            path.exists()
            # otherwise this build has no Python for pages, which say so when they look for it
        ):
            sizes[f"pyodide/{name}"] = path.stat().st_size
    (folder / "sizes.json").write_text(
        json.dumps({"version": of, "pyodide": pyodide_version(), "bytes": sizes})
    )


def returning(words: Mapping[str, str]) -> list[dict]:
    """Return the questions that lessons ask and repeat later.

    The questions are in the language of the page if they are translated.
    """
    return [
        {
            "id": question["id"],
            "chapter": question["chapter"],
            "ask": examination.inline(question["ask"]),
            "answer": examination.inline(question["answer"]),
        }
        for question in questions.bank(ROOT, words=words)
        if question["lesson"]
    ]


def pyodide_version() -> str:
    """Return the version of Pyodide that the npm package file requires."""
    return json.loads((ROOT / "frontend/package.json").read_text())["dependencies"]["pyodide"]


def megabytes(chapter: int) -> str:
    """Return the download size in MB that the button announces.

    The result is the size of the files that the site sends. Compression hardly reduces large files,
    except for the wasm file.
    """
    return "8" if chapter == 1 else "7"


def source(pagename: str) -> str:
    """Return the path of a page's notebook under `_sources`, without its ending.

    >>> source("chapters/4-counting/exercises"), source("chapters/zh/4-counting/exercises")
    ('chapters/4-counting/exercises', '4-counting-exercises.zh')
    """
    name = pagename.removeprefix("chapters/zh/")
    return pagename if name == pagename else f"{name.replace('/', '-')}.zh"


def add_scripts(app, pagename, templatename, context, doctree) -> None:
    """Add the rings of progress to every page.

    Pages of exercises also get the list of exercises with its scripts.
    """
    if app.builder.format != "html" or "body" not in context or not notebooks():
        return
    root = "../" * pagename.count("/")
    counts = json.dumps({number: len(listed(path)) for number, path in notebooks().items()})
    parts = [
        f'<link rel="stylesheet" href="{root}answers/answers.css">',
        (
            f'<script type="module" src="{root}answers/progress.js" data-root="{root or "./"}" '
            f"data-counts='{counts}'></script>"
        ),
        f'<script type="module" src="{root}answers/copy.js"></script>',
    ]
    if page := EXERCISES.fullmatch(pagename):
        number = int(page[1])
        english = notebooks()[number]
        data = {
            "root": root or "./",
            "name": pagename,
            "chapter": number,
            "graphs": number == 1,
            "megabytes": megabytes(number),
            "handout": f"{root}_sources/{source(pagename)}.ipynb",
            "exercises": listed(english),
        }
        text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
        parts += [
            OPENED_AS_A_FILE[bool(re.match("chapters/zh/", pagename))],
            f'<script type="application/json" id="answers-data">{text}</script>',
            f'<script type="module" src="{root}answers/answers.js"></script>',
        ]
    if LESSON.fullmatch(pagename) or pagename in ("chapters/welcome", "chapters/zh/welcome"):
        parts.append(f'<script type="module" src="{root}answers/cards.js"></script>')
    context["body"] += "\n".join(parts)


def finish(app, error) -> None:
    """Write the folder `answers` at the end of a build."""
    if error is None and app.builder.format == "html" and notebooks():
        write(Path(app.outdir), Path(app.outdir).parent / "answers")


def setup(app):
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
