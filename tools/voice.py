"""Print how our English reads: `python tools/voice.py [PAGE ...]`.

This is only a report, and no test depends on it (see chapters/voice.md). It counts habits that make
a sentence hard to read, and two that make it easy, per 1,000 words, next to the rates of good books
of the field (QuantEcon, Dive into Deep Learning, Distill, nanochat). If you name pages, it also
prints the lines with these habits.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from book.pages import ROOT, pages

# each habit with its pattern and its rate in good books, where more is better for the first two
HABITS = {
    "we, us, our": (r"\b(we|us|our|let's)\b", "5 to 29"),
    "because, however, for example, …": (
        r"\b(because|however|for example|for instance|suppose|instead|therefore|although|in "
        r"contrast)\b",
        "6 to 10",
    ),
    "colons": (r":(?=\s)", "1 to 11"),
    "semicolons": (r";(?=\s)", "0.2 to 0.7"),
    "stands, lies + preposition": (
        r"\b(stands?|stood|lies?|lay)\s+(in|on|at|beside|under|above|below|there|behind)\b",
        "0 to 0.5",
    ),
    "sentence opens with a What clause": (
        r"(?m)(?:^|[.!] )(What|Where|Who) [^?\n]{3,80}[.,;]",
        "0 to 0.2",
    ),
    "beside": (r"\bbeside\b", "0"),
    "alone, for only": (r"\balone\b", "0"),
    "of its own": (r"\bof (its|their|one's) own\b", "0"),
    "is asked, asked at": (r"\b(is|are|was|were) asked\b|\basked (at|of)\b", "0"),
    "hear, heard": (r"\bhear(s|d|ing)?\b", "0"),
    "nobody, nothing, none": (r"\b(nobody|nothing|none|nowhere)\b", "0 to 0.5"),
}
EASY = ("we, us, our", "because, however, for example, …")
CODE = re.compile(r"(?s)```.*?```|\$\$.*?\$\$|<!--.*?-->")
SYMBOLS = re.compile(r"(?m)\$[^$\n]*\$|`[^`\n]*`|https?://\S+|\]\([^)]*\)|^\s*\|.*$")


def read_prose(path: Path) -> str:
    """Return the text of a page without code, formulas, addresses, tables and speaker's cues."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        shown = [
            cell
            for cell in cells
            if cell["cell_type"] == "markdown" and "cue" not in cell["metadata"].get("tags", [])
        ]
        text = "\n\n".join("".join(cell["source"]) for cell in shown)
    return SYMBOLS.sub(" ", CODE.sub(" ", text))


def docstrings(folder: Path) -> Iterator[str]:
    """Yield the docstrings of a folder's Python code, without their examples."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (
                text := ast.get_docstring(node)
            ):
                yield SYMBOLS.sub(" ", re.sub(r">>>.*(\n(?!\s*$).*)*", "", text))


def rates(text: str) -> dict[str, float]:
    """Count each habit per 1,000 words.

    >>> rates("We stop, because we must.")["we, us, our"]
    400.0
    """
    words = max(len(re.findall(r"[A-Za-z']+", text)), 1)
    return {
        name: 1000 * len(re.findall(pattern, text, re.I)) / words
        for name, (pattern, _) in HABITS.items()
    }


def main(named: list[str]) -> None:
    english = [path for path in pages() if "zh" not in path.relative_to(ROOT).parts]
    kinds = {"pages": [read_prose(path) for path in english]}
    kinds["README, CONTRIBUTING"] = [
        read_prose(ROOT / f"{name}.md") for name in ("README", "CONTRIBUTING")
    ]
    kinds["docstrings"] = list(docstrings(ROOT / "src"))
    if named:
        kinds = {name: [read_prose(Path(name))] for name in named}
    columns = {kind: rates("\n\n".join(texts)) for kind, texts in kinds.items()}
    print(
        "per 1,000 words".ljust(36)
        + "".join(kind[-24:].rjust(26) for kind in columns)
        + "   good books"
    )
    for name, (_, theirs) in HABITS.items():
        print(
            name.ljust(36)
            + "".join(f"{column[name]:26.1f}" for column in columns.values())
            + f"   {theirs}"
        )
    for name, texts in kinds.items() if named else ():
        for habit, (pattern, _) in HABITS.items():
            lines = [
                line.strip() for line in texts[0].splitlines() if re.search(pattern, line, re.I)
            ]
            for line in lines if habit not in (*EASY, "colons") else ():
                print(f"{name}: {habit}: {line[:150]}")


if __name__ == "__main__":
    main(sys.argv[1:])
