"""Begin an exercise at the end of a chapter with a command.

The command is `make exercise NUMBER=2.11 NAME=loudest TITLE="The loudest token"`. It writes an
exercise that works (return n + 1), with cells, check, table of cases and mistakes, and with answers
and conditions for the tests. All tests pass from the start, and then you change the exercise.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATEMENT = """## {number} {title}

● easy, 5 minutes

Return the integer after $n$. It matters because …"""
STUB = '''def {name}(n):
    """n: integer -> integer.

    {name}(3) is 4
    """
    raise NotImplementedError'''
HINTS = """<details><summary>Hint 1: what to think about</summary>

What comes after 3?

</details>

<details><summary>Hint 2: which function</summary>

None: `+` does it.

</details>

<details><summary>Hint 3: almost the code</summary>

`n + …`

</details>

<details><summary>Solution in words</summary>

Add one.

</details>"""
SOLUTION = """# @title Solution
def solution(n):
    return n + 1


checks.{name}.solution(solution)"""
FOLDED = {
    "tags": ["hide-cell"],
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "mystnb": {"code_prompt_show": "Show the solution", "code_prompt_hide": "Hide the solution"},
}
CHECK = '''@exercise
def {name}(answer: Any) -> Right:
    """Return the integer after n."""
    return compare("{name}", answer, lambda n: n + 1)'''
TABLE = """[{name}]
number = "{number}"
title = "{title}"
call = "{name}(n)"
cases = '''
1
2
10
'''
mistakes = '''
n :: That is n itself.
n - 1 :: That comes before n.
'''

"""
CONDITIONS = """[exercises."{number}"]
'the integer after' = 'That is n itself'

"""
ANSWERS = """["{number}"]
right = '''
lambda n: n + 1
lambda n: n + 1.0
lambda n: sum((n, 1))
lambda n: len(range(n + 1))
'''
wrong = '''
lambda n: n + 3 :: 2 more than the expected result
lambda n: -n - 1 :: wrong sign
'''

"""


def source(cell: dict) -> str:
    """Return the text of a notebook's cell."""
    return "".join(cell["source"])


def read_arguments(number: str, name: str, title: str, root: Path) -> tuple[str, Path]:
    """Return the chapter of a new exercise, and the notebook to which it belongs.

    Raises:
        ValueError: if an exercise cannot have this number, name or title.
    """
    if not re.fullmatch(r"\d+\.\d+", number):
        raise ValueError(f"NUMBER must be a chapter and an exercise, such as 2.11, not {number!r}")
    chapter = number.split(".")[0]
    notebook = next(root.glob(f"chapters/{chapter}-*/exercises.ipynb"), None)
    if notebook is None:
        raise ValueError(
            f"NUMBER must begin with a chapter that has an exercises page, not {number!r}: "
            f"there is no chapters/{chapter}-…/exercises.ipynb"
        )
    free = first_free(chapter, notebook)
    if number != free:
        raise ValueError(
            f"NUMBER must be {free}, the first free number of chapter {chapter}, not {number!r}"
        )
    check = root / f"src/course/chapter{chapter}/checks.py"
    if (
        not name.isidentifier()
        or name != name.lower()
        or re.search(rf"\b{name}\b", check.read_text())
    ):
        raise ValueError(
            f"NAME must be a Python name in small letters that {check.name} does not use yet, not "
            f"{name!r}"
        )
    if not title.strip() or '"' in title:
        raise ValueError(f"TITLE must be a title without quotation marks, not {title!r}")
    return chapter, notebook


def first_free(chapter: str, notebook: Path) -> str:
    """Return the number of the next new exercise of a chapter."""
    taken = re.findall(rf"^## {chapter}\.(\d+) ", "\n".join(map(source, cells(notebook))), re.M)
    return f"{chapter}.{max(map(int, taken)) + 1}"


def cells(notebook: Path) -> list[dict]:
    """Return the cells of a notebook."""
    return json.loads(notebook.read_text())["cells"]


def new_cells(number: str, name: str, title: str) -> list[dict]:
    """Return the cells of a new exercise: statement, stub, check, hints and folded solution."""
    words = {"number": number, "name": name, "title": title}
    code = {"outputs": [], "execution_count": None}
    written = []
    for part, text, metadata in (
        ("statement", STATEMENT.format(**words), None),
        ("stub", STUB.format(**words), {}),
        ("check", f"checks.{name}({name})", {}),
        ("hints", HINTS, None),
        ("solution", SOLUTION.format(**words), FOLDED),
    ):
        cell = {"id": f"{name}-{part}".replace("_", "-"), "metadata": metadata or {}}
        cell["source"] = text.splitlines(keepends=True)
        is_text = metadata is None
        written.append(
            {"cell_type": "markdown", **cell} if is_text else {"cell_type": "code", **cell, **code}
        )
    return written


def begin(number: str, name: str, title: str, root: Path = ROOT) -> list[Path]:
    """Write the cells, the check and the answers of a new exercise, and return the changed files.

    Raises:
        ValueError: if an exercise cannot have this number, name or title.
    """
    chapter, notebook = read_arguments(number, name, title, root)
    words = {"number": number, "name": name, "title": title}
    book = json.loads(notebook.read_text())
    end = next(k for k, cell in enumerate(book["cells"]) if source(cell) == "checks.progress()")
    if book["cells"][end - 1]["cell_type"] == "markdown" and source(
        book["cells"][end - 1]
    ).startswith("## "):
        end -= 1  # the heading above the progress
    book["cells"][end:end] = new_cells(**words)
    notebook.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    changed = [notebook]
    for path, text in (
        (f"src/course/chapter{chapter}/checks.py", CHECK),
        (f"src/course/exercises/chapter{chapter}.toml", TABLE),
        (f"tests/answers/chapter{chapter}.toml", ANSWERS),
        ("tests/answers/conditions.toml", CONDITIONS),
    ):
        file = root / path
        blank = "\n\n\n" if file.suffix == ".py" else "\n\n"
        file.write_text(
            file.read_text().rstrip("\n") + blank + text.format(**words).rstrip("\n") + "\n"
        )
        changed.append(file)
    return changed


def main(arguments: list[str]) -> None:
    if not all(arguments) or len(arguments) != 3:
        raise SystemExit(
            'Give all three: make exercise NUMBER=2.11 NAME=loudest TITLE="The loudest token"'
        )
    try:
        changed = begin(*arguments)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print("Written, and right as it stands: change what it asks in each of")
    for path in changed:
        print(f"  {path.relative_to(ROOT)}")
    print("Then `make sync` and `make check`.")


if __name__ == "__main__":
    main(sys.argv[1:])
