"""Begin an exercise in the place of another: `make exercise NUMBER=2.7 NAME=loudest TITLE="The loudest token"`.

Its cells, its check with its table, and its answers are those of an exercise that works (return n + 1), so that all tests pass from the
start; then change what it asks.
"""

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATEMENT = """## {number} {title}

{level}

Return the whole number after $n$. It matters because …"""
STUB = '''def {name}(n):
    """n: whole number -> whole number.

    {name}(3) is 4
    """
    raise NotImplementedError'''
HINTS = """<details><summary>Hint 1: what to think of</summary>

What comes after 3?

</details>

<details><summary>Hint 2: which function</summary>

None: `+` does it.

</details>

<details><summary>Hint 3: nearly the code</summary>

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
    """The whole number after n."""
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
ANSWERS = """["{number}"]
right = '''
lambda n: n + 1
lambda n: n + 1.0
lambda n: sum((n, 1))
lambda n: len(range(n + 1))
'''
wrong = '''
lambda n: n + 3 :: 2 more than what is expected
lambda n: -n - 1 :: wrong sign
'''

"""


def source(cell: dict) -> str:
    return "".join(cell["source"])


def section(cells: list, number: str) -> slice:
    """The cells of an exercise: statement, stub, check, hints, solution.

    Raises:
        ValueError: the notebook has no such exercise, or it asks for a prediction.
    """
    start = next((k for k, cell in enumerate(cells) if source(cell).startswith(f"## {number} ")), None)
    if start is None:
        raise ValueError(f"NUMBER must be that of an exercise of the chapter, whose place is taken, not {number!r}")
    found = slice(start, start + 5)
    if any("redict" in source(cell) for cell in cells[found]):
        raise ValueError(f"NUMBER must not be {number}: it asks for a prediction, as two of a chapter's ten do")
    return found


def begin(number: str, name: str, title: str, root: Path = ROOT) -> list[Path]:
    """Write the cells, the check and the answers; the files that were changed.

    Raises:
        ValueError: a number, a name or a title that an exercise cannot have.
    """
    chapter = number.split(".")[0]
    notebook = next(root.glob(f"chapters/{chapter}-*/exercises.ipynb"), None)
    if notebook is None:
        raise ValueError(f"NUMBER must be as 2.7, chapter and exercise, not {number!r}")
    check, answers = root / f"src/course/chapter{chapter}/checks.py", root / f"tests/answers/chapter{chapter}.toml"
    table = root / f"src/course/exercises/chapter{chapter}.toml"
    if not name.isidentifier() or name != name.lower() or re.search(rf"\b{name}\b", check.read_text()):
        raise ValueError(f"NAME must be the name of a function that {check.name} does not use yet, not {name!r}")
    if not title.strip() or '"' in title:
        raise ValueError(f"TITLE must be a title without quotation marks, not {title!r}")
    words = {"number": number, "name": name, "title": title}

    book = json.loads(notebook.read_text())
    place = section(book["cells"], number)
    old = book["cells"][place]
    level = re.search(r"^●+ \w+, \d+ minutes$", source(old[0]), re.M)[0]
    parts = (STATEMENT.format(level=level, **words), STUB.format(**words), f"checks.{name}({name})", HINTS)
    book["cells"][place] = [
        {**kept, "metadata": FOLDED if new.startswith("# @title") else {}, "source": new.splitlines(keepends=True)}
        for kept, new in zip(old, (*parts, SOLUTION.format(**words)), strict=True)
    ]
    tables = table.read_text()
    old_table = re.search(rf'^\[(\w+)\]\nnumber = "{number}"\n.*?(?=^\[\w+\]\nnumber|\Z)', tables, re.M | re.S)
    lines = check.read_text().splitlines(keepends=True)
    function = next(
        node
        for node in ast.parse("".join(lines)).body
        if isinstance(node, ast.FunctionDef) and node.name == old_table[1]
    )
    lines[function.decorator_list[0].lineno - 1 : function.end_lineno] = [CHECK.format(**words) + "\n"]
    tried = answers.read_text()
    old_answers = re.search(rf'^\["{number}"\]\n.*?(?=^\["|\Z)', tried, re.M | re.S)

    notebook.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    check.write_text("".join(lines))
    table.write_text(tables.replace(old_table[0], TABLE.format(**words)))
    answers.write_text(tried.replace(old_answers[0], ANSWERS.format(**words)))
    return [notebook, check, table, answers]


def main(arguments: list[str]) -> None:
    if len(arguments) != 3:
        raise SystemExit('make exercise NUMBER=2.7 NAME=loudest TITLE="The loudest token"')
    try:
        changed = begin(*arguments)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print("Written, and right as it stands: change what it asks in each of")
    for path in changed:
        print(f"  {path.relative_to(ROOT)}")
    print(f"and delete what only the old {arguments[0]} used. `make sync`, then tests/test_exercises.py and")
    print("tests/test_notebooks.py say what is missing.")


if __name__ == "__main__":
    main(sys.argv[1:])
