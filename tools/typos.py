"""How many of 100 random typos in the conditions of rules `ruff` names: a rule is Python so that it is read.

    python tools/typos.py [SEED]

A typo leaves a letter out of an identifier, or doubles it: a name, an attribute, an argument of a half's condition.
What it prints last is the share that is named; a rule in a string would have none.
"""

import ast
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def places(path: Path) -> list[tuple[Path, int, str, str]]:
    """The identifiers in the conditions of a file's rules: file, offset, identifier and its kind."""
    text, found = path.read_bytes(), []
    starts = [0, *(k + 1 for k, byte in enumerate(text) if byte == 10)]
    rules = (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call))
    halves = (half.value for each in rules if ast.unparse(each.func) == "rule" for half in each.keywords)
    for half in halves:
        for node in ast.walk(half.elts[1]) if isinstance(half, ast.Tuple) else ():
            if isinstance(node, ast.Name | ast.arg):
                name, kind = getattr(node, "id", None) or node.arg, "name"
                found.append((path, starts[node.lineno - 1] + node.col_offset, name, kind))
            elif isinstance(node, ast.Attribute):
                end = starts[node.end_lineno - 1] + node.end_col_offset
                found.append((path, end - len(node.attr), node.attr, "attribute"))
    return found


def named(path: Path, start: int, name: str, draw: random.Random) -> bool:
    """Whether ruff says something of the file with a typo at that place."""
    at = draw.randrange(len(name))
    typo = name[:at] + name[at + 1 :] if len(name) > 1 and draw.random() < 0.5 else name[: at + 1] + name[at:]
    text = path.read_bytes()
    changed = text[:start] + typo.encode() + text[start + len(name) :]
    command = [Path(sys.executable).with_name("ruff"), "check", "-q", f"--stdin-filename={path}", "-"]
    return subprocess.run(command, input=changed, capture_output=True, cwd=ROOT, check=False).returncode == 1


if __name__ == "__main__":
    draw = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    every = [each for path in sorted(ROOT.glob("src/course/chapter*/claims.py")) for each in places(path)]
    drawn = [(each, named(*each[:3], draw)) for each in draw.sample(every, 100)]
    for kind in ("name", "attribute"):
        here = [caught for (*_, which), caught in drawn if which == kind]
        print(f"{kind}s: {sum(here)} of {len(here)}")
    print(f"named: {sum(caught for _, caught in drawn)} of {len(drawn)}")
