"""Draw the assignment of a term from its seed, according to `chapters/plans/families.toml`.

No page shows the result. A family is a function with a statement, a stub, a solution, cases and
mistakes, and with a guess that needs a reason. The seed draws the numbers in all of these.
"""

import ast
import functools
import json
import math
import random
import re
import tomllib

import networkx as nx
import numpy as np
import torch

from book.pages import ROOT

TABLE = tomllib.loads((ROOT / "chapters/plans/families.toml").read_text())
KNOWN = {"math": math, "np": np, "nx": nx, "torch": torch}
ASKED = 2  # the number of families in an assignment
# options of a guess, and the number of draws until the wanted option comes true
OPTIONS, TRIES = (1, 2, 3), 2000


def drawn(name: str, r: random.Random) -> dict:
    """Return a family with the numbers that the random generator `r` draws for it."""
    row, values = TABLE["family"][name], {}
    for key, text in row["draw"].items():
        values[key] = eval(text, {"r": r, **values})

    def fill(value: object) -> object:
        if isinstance(value, list):
            return [fill(part) for part in value]
        return (
            re.sub(r"<([a-z]+)>", lambda m: str(values[m[1]]), value)
            if isinstance(value, str)
            else value
        )

    return {key: fill(value) for key, value in row.items() if key != "draw"}


def outcome(row: dict) -> tuple[int, bool]:
    """Return which option of a guess comes true, and whether it does so by a clear margin."""
    function = re.search(r"^def (\w+)", row["stub"], re.M)[1]
    x = eval(row["measure"], KNOWN | {"right": solved(row["solution"], function)})
    return eval(row["true"], KNOWN | {"x": x}), bool(eval(row["clear"], KNOWN | {"x": x}))


@functools.cache
def filled(name: str, seed: int) -> dict:
    """Draw a family from a seed so that the option that the seed selects comes true.

    The option must come true by a clear margin.

    Raises:
        ValueError: if no draw has this outcome by a margin.
    """
    r = random.Random(f"{seed} {name}")
    option = r.choice(OPTIONS)
    for _ in range(TRIES):
        row = drawn(name, r)
        if outcome(row) == (option, True):
            return row | {"option": option}
    raise ValueError(
        f"no draw of {name} makes option {option} the answer by a clear margin. Change its numbers"
    )


def solved(source: str, name: str) -> object:
    """Run a piece of Python code, and return the function with this name that it defines."""
    space = dict(KNOWN)
    exec(source, space)
    return space[name]


def parts(number: str, seed: int) -> dict:
    """Return a family in the form in which `assignments.parts` returns an exercise.

    If a question mark follows the name, return the family's guess instead.
    """
    name, guess = number.rstrip("?"), number.endswith("?")
    row = filled(name, seed)
    function = re.search(r"^def (\w+)", row["stub"], re.M)[1]
    if not guess:
        call = row["stub"].split("\n")[0].removeprefix("def ").rstrip(":")
        exercise = {
            "statement": f"## {name} {row['title']}\n\n{row['statement']}",
            "name": function,
            "call": call,
        }
        return exercise | {key: row[key] for key in ("stub", "solution", "mistakes")}
    guess_code = "def guess_{}(_=None):\n    reason = {}\n    return {}"
    statement = (
        f"## {name} The guess, before you run anything\n\nFirst read the next task, because this "
        f"guess is about it. {row['guess']} The right option gets one point. A good reason gets "
        "one point, whichever option you choose."
    )
    return {
        "statement": statement,
        "name": f"guess_{name}",
        "call": f"guess_{name}(_)",
        "stub": guess_code.format(name, '"..."  # two sentences', "...  # 1, 2 or 3"),
        "solution": guess_code.format(name, '""', row["option"]),
        "mistakes": "",
    }


def asked(seed: int) -> list[dict]:
    """Return the questions of a term's seed, drawn from the families.

    The function is worth three points and the guess one point. A human marker gives one point for
    the reason.
    """
    names = sorted(
        random.Random(seed).sample([*TABLE["family"]], ASKED),
        key=lambda name: TABLE["family"][name]["chapter"],
    )
    return [
        {"exercise": number, "points": points, "cases": cases}
        for name in names
        for number, points, cases in (
            (f"{name}?", 1, ["None"]),
            (name, 3, filled(name, seed)["cases"]),
        )
    ]


NO_REASON = "no reason found"


def reasons(source: str) -> str:
    """Return the reasons that a submission gives for its guesses, for the person who marks them.

    The reasons are in the order of the submission. A reason is the last value of `reason`, in any
    form of a string that we can evaluate without running the code.
    """
    cells = json.loads(source)["cells"]
    by_name = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            by_name |= _guesses("".join(cell["source"]))
    return " | ".join(by_name.values()) or NO_REASON


def _guesses(code: str) -> dict[str, str]:
    """Return the reason in each cell that makes a guess, keyed by the name of the function."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return {}
    guesses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("guess_")
    ]
    return {node.name: _reason(node) for node in guesses}


def _reason(function: ast.FunctionDef) -> str:
    text = ""
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "reason" for target in targets):
            text = _text(node.value) or text
    return " ".join(text.split()) or NO_REASON


def _text(node: ast.AST | None) -> str:
    """Return the value of a string in the code, without running the code.

    The string may have any quotes, be in pieces, be joined by a plus, or have braces, which stay as
    they are.
    """
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.BinOp(left, ast.Add(), right):
            return _text(left) + _text(right)
        case ast.JoinedStr(parts):
            return "".join(_text(part) or f"{{{ast.unparse(part.value)}}}" for part in parts)
        case ast.Call(ast.Attribute(value, _)) | ast.Call(_, [value]):  # "…".strip(), str("…")
            return _text(value)
    return ""
