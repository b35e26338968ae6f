"""Begin a chapter: `make chapter NUMBER=8 NAME=first-token TITLE="The first token"`.

The new chapter is complete from the start. It has a page, a figure, an exercise and a claim in the
same places as in the other chapters (`tools/chapter/` has the templates). All tests pass, and then
you change its content.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMS = Path(__file__).parent / "chapter"
PLACES = {  # the place of each template's file
    "figures.py": "src/course/chapter{0}/figures.py",
    "claims.py": "src/course/chapter{0}/claims.py",
    "checks.py": "src/course/chapter{0}/checks.py",
    "checks.toml": "src/course/exercises/chapter{0}.toml",
    "scorecard.toml": "src/course/scorecard/chapter{0}.toml",
    "expected.toml": "tests/expected/chapter{0}.toml",
    "drawn.py": "tests/drawn/chapter{0}.py",
}


def page(text: str) -> dict:
    """Build a notebook from a template.

    Lines of three dashes separate its cells, and a cell is code if its first line is code.
    """
    cells = []
    for k, part in enumerate(text.rstrip("\n").split("\n---\n")):
        code = re.match(r"(# fold|from |def |n = )", part)
        folded = {"tags": ["hide-input"]} if part.startswith("# fold") else {}
        cell = {"cell_type": "code" if code else "markdown", "id": f"cell-{k}", "metadata": folded}
        cell["source"] = part.strip("\n").removeprefix("# fold\n").splitlines(keepends=True)
        cells.append({**cell, "outputs": [], "execution_count": None} if code else cell)
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def first_free(root: Path = ROOT) -> str:
    """Return the number of the next new chapter."""
    return str(1 + max(int(path.name[7:]) for path in (root / "src/course").glob("chapter*")))


def begin(number: str, name: str, title: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a new chapter, add it to the lists of chapters, and return the new paths.

    Raises:
        ValueError: if a chapter cannot have this number, name or title.
    """
    free = first_free(root)
    if number != free:
        raise ValueError(f"NUMBER must be {free}, the first free number, not {number!r}")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise ValueError(
            f"NAME must be words in small letters joined by hyphens, such as first-token, not "
            f"{name!r}"
        )
    if not title.strip() or '"' in title:
        raise ValueError(f"TITLE must be a title without quotation marks, not {title!r}")
    words = {"NUMBER": number, "SLUG": name, "NAME": name.replace("-", "_"), "TITLE": title}

    def filled(form: str) -> str:
        return re.sub("|".join(words), lambda match: words[match[0]], (FORMS / form).read_text())

    texts = {root / place.format(number): filled(form) for form, place in PLACES.items()}
    texts[root / f"src/course/chapter{number}/__init__.py"] = (
        f'"""Compute and draw for the pages of chapter {number}."""\n'
    )
    draft = json.dumps(page(filled("draft.md")), indent=1, ensure_ascii=False) + "\n"
    texts[root / f"chapters/{number}-{name}/draft.ipynb"] = draft
    toc, card = root / "_toc.yml", root / "src/course/scorecard/__init__.py"
    last = int(number) - 1
    line = f'      - file: chapters/{number}-{name}/draft\n        title: "{number}. {title}"\n'
    texts[toc] = toc.read_text().replace(
        "  - caption: The book\n", f"{line}  - caption: The book\n", 1
    )
    known = f"from course.chapter{last} import claims as chapter{last}\n"
    gathered = card.read_text().replace(known, known + known.replace(str(last), number), 1)
    texts[card] = gathered.replace(f"chapter{last})\n", f"chapter{last}, chapter{number})\n", 1)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted(texts)


def main(arguments: list[str]) -> None:
    if not all(arguments) or len(arguments) != 3:
        raise SystemExit(
            f"Give all three: make chapter NUMBER={first_free()} NAME=first-token "
            'TITLE="The first token"'
        )
    try:
        written = begin(*arguments)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print("Written, and right as it stands:")
    for path in written:
        print(f"  {path.relative_to(ROOT)}")
    print("Now `make sync` and `make check`; chapters/make-a-chapter.md says what to change next.")


if __name__ == "__main__":
    main(sys.argv[1:])
