"""Print how the code of each folder reads: `python tools/sizes.py`.

This is a report without limits, and no test uses it. For each folder it prints lines of code,
tokens per line, lines over 100 characters, assigned names that say nothing, and docstrings that
begin with a verb. For comparison, networkx has 8 tokens per line, QuantEcon.py 9, nanochat 11 and
d2l 11.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src/helpers", "src/course", "src/book", "tools", "sphinx_ext", "benchmarks", "tests")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
FILLERS = frozenset(
    "asked each found given here held kept made now other own rest said seen there told "
    "wanted".split()
)
# first words of a docstring that says at once what a function does
VERBS = frozenset(
    """add adds apply ask assign average build call check choose collect compare compute convert
    copy count cut decide describe divide download draw encode enter estimate evaluate explain
    export fill find fit format gather generate give group hide hold initialise inside install
    iterate keep list load look make mark mask match measure merge mix move name normalise open
    pair parse patch pick place plot prepare print project put raise read record refuse remove
    repeat replace return returns rotate round run sample save say scale score search select set
    show shuffle simulate sort split start stop store sum swap take test time tokenise train
    translate try turn update use wait walk warn weigh wrap write yield attend fetch let
    propagate seed tell""".split()
)


class Counts(NamedTuple):
    """Hold the counts of one file or one folder."""

    lines: int = 0
    tokens: int = 0
    long: int = 0
    names: int = 0
    fillers: int = 0
    docstrings: int = 0
    verbs: int = 0


def count(text: str) -> Counts:
    """Count the code of one Python file. Docstrings and comments do not count as code.

    >>> head = "def double(x):\\n    '''Return twice x.'''"
    >>> count(head + "\\n    found = 2 * x\\n    return found\\n")
    Counts(lines=3, tokens=13, long=0, names=1, fillers=1, docstrings=1, verbs=1)
    """
    tree = ast.parse(text)
    documented = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
    ]
    blocks = {
        node.body[0].value
        for node in documented
        if ast.get_docstring(node, clean=False) is not None
    }
    skipped = {line for block in blocks for line in range(block.lineno, block.end_lineno + 1)}
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in LAYOUT and token.start[0] not in skipped
    ]
    assigned = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    first = [ast.get_docstring(node).split()[0].lower() for node in functions(documented)]
    return Counts(
        lines=len({token.start[0] for token in tokens}),
        tokens=len(tokens),
        long=sum(len(line) > 100 for line in text.splitlines()),
        names=len(assigned),
        fillers=sum(name in FILLERS for name in assigned),
        docstrings=len(first),
        verbs=sum(word.strip(".,:;") in VERBS for word in first),
    )


def functions(nodes: list[ast.AST]) -> Iterator[ast.FunctionDef]:
    """Yield the functions among the nodes that have a docstring."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and (ast.get_docstring(node) or "").strip():
            yield node


def rooms() -> dict[str, Counts]:
    """Return the counts of each folder, and of each folder in `src/course`."""
    totals: dict[str, Counts] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            room = "/".join(parts[:3]) if folder == "src/course" and len(parts) > 3 else folder
            counts = count(path.read_text())
            totals[room] = Counts(*map(sum, zip(totals.get(room, Counts()), counts, strict=True)))
    return totals


def main() -> None:
    """Print one line of counts for each folder."""
    print(
        f"{'room':28} {'lines':>7} {'tokens/line':>12} {'over 100':>9} {'fillers':>8} "
        f"{'verb first':>11}"
    )
    for room, c in rooms().items():
        fillers, verbs = (
            part / max(whole, 1) for part, whole in ((c.fillers, c.names), (c.verbs, c.docstrings))
        )
        print(
            f"{room:28} {c.lines:7,} {c.tokens / max(c.lines, 1):12.1f} {c.long:9,} "
            f"{fillers:8.1%} {verbs:11.0%}"
        )


if __name__ == "__main__":
    main()
