"""What a term asks and no page shows: an assignment, made from the term's seed by `chapters/plans/families.toml`.

A family is statement, stub, solution, cases and mistakes of a function, and a guess with a reason; all are filled with what
the seed draws.
"""

import functools
import json
import math
import random
import re
import tomllib

import networkx as nx
import numpy as np
import torch
from pages import ROOT

TABLE = tomllib.loads((ROOT / "chapters/plans/families.toml").read_text())
KNOWN = {"math": math, "np": np, "nx": nx, "torch": torch}
ASKED = 2  # families of an assignment
OPTIONS, TRIES = (1, 2, 3), 2000  # of a guess; draws until its option comes true


def drawn(name: str, r: random.Random) -> dict:
    """A family with what `r` draws for it."""
    row, values = TABLE["family"][name], {}
    for key, text in row["draw"].items():
        values[key] = eval(text, {"r": r, **values})

    def fill(value: object) -> object:
        if isinstance(value, list):
            return [fill(each) for each in value]
        return re.sub(r"<([a-z]+)>", lambda m: str(values[m[1]]), value) if isinstance(value, str) else value

    return {key: fill(value) for key, value in row.items() if key != "draw"}


def outcome(row: dict) -> tuple[int, bool]:
    """The option of a guess that comes true, and whether it does by a margin."""
    function = re.search(r"^def (\w+)", row["stub"], re.M)[1]
    x = eval(row["measure"], KNOWN | {"right": solved(row["solution"], function)})
    return eval(row["true"], KNOWN | {"x": x}), bool(eval(row["clear"], KNOWN | {"x": x}))


@functools.cache
def filled(name: str, seed: int) -> dict:
    """A family with what this seed draws; its guess has the option that the seed picks, by a clear margin.

    Raises:
        ValueError: no draw has this option by a margin.
    """
    r = random.Random(f"{seed} {name}")
    wanted = r.choice(OPTIONS)
    for _ in range(TRIES):
        row = drawn(name, r)
        if outcome(row) == (wanted, True):
            return row | {"option": wanted}
    raise ValueError(f"option {wanted} of {name} is never clear")


def solved(source: str, name: str) -> object:
    """The function of this name that a piece of Python defines."""
    space = dict(KNOWN)
    exec(source, space)
    return space[name]


def parts(number: str, seed: int) -> dict:
    """A family as `assignments.parts` gives an exercise; with a question mark behind its name, its guess."""
    name, guess = number.rstrip("?"), number.endswith("?")
    row = filled(name, seed)
    function = re.search(r"^def (\w+)", row["stub"], re.M)[1]
    if not guess:
        call = row["stub"].split("\n")[0].removeprefix("def ").rstrip(":")
        found = {"statement": f"## {name} {row['title']}\n\n{row['statement']}", "name": function, "call": call}
        return found | {key: row[key] for key in ("stub", "solution", "mistakes")}
    made = "def guess_{}(_=None):\n    reason = {}\n    return {}"
    statement = f"## {name} The guess, before you run anything\n\n{row['guess']} One point for the option, one for the reason, whichever option you took."
    return {
        "statement": statement,
        "name": f"guess_{name}",
        "call": f"guess_{name}(_)",
        "stub": made.format(name, '"..."  # two sentences', "...  # 1, 2 or 3"),
        "solution": made.format(name, '""', row["option"]),
        "mistakes": "",
    }


def asked(seed: int) -> list[dict]:
    """The families that this seed draws: three points for the function, one for the guess; a reader gives one for the reason."""
    names = sorted(
        random.Random(seed).sample([*TABLE["family"]], ASKED), key=lambda name: TABLE["family"][name]["chapter"]
    )
    return [
        {"exercise": number, "points": points, "cases": cases}
        for name in names
        for number, points, cases in ((f"{name}?", 1, ["None"]), (name, 3, filled(name, seed)["cases"]))
    ]


def reasons(source: str) -> str:
    """The reasons that a submission gives for its guesses, for whoever reads them."""
    cells = json.loads(source)["cells"]
    code = "\n".join("".join(each["source"]) for each in cells if each["cell_type"] == "code")
    return " | ".join(said for _, said in re.findall(r"""reason = (["'])(.*?)\1""", code))
