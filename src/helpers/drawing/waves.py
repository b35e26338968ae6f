"""What the drawing `waves` shows of chapter 6's race: every score of every entry, from `data/race.csv`.

`python -m helpers.drawing.waves` writes `numbers/waves.json`; a test holds the two equal.
"""

import json
from pathlib import Path

from helpers import data

LENGTHS = (16, 32, 64, 128)
TASKS = {"retrieval": "retrieval", "first": "first copy", "last": "last copy", "counting": "counting"}
FILE = Path(__file__).parent / "numbers/waves.json"


def scores() -> dict:
    """By task and entry: a row a length, with the score of each seed. Controls are left out, and tasks without a score in [0, 1]."""
    table = data.table("race")
    table = table[~table.entry.str.startswith("control")].sort_values("seed")
    found = {}
    for task in TASKS:
        entries = table[table.task == task].groupby("entry", sort=False)
        found[task] = {name: [rows[f"score_{n}"].round(3).tolist() for n in LENGTHS] for name, rows in entries}
    return {"lengths": list(LENGTHS), "tasks": TASKS, "scores": found}


if __name__ == "__main__":
    FILE.write_text(json.dumps(scores(), separators=(",", ":")) + "\n")
