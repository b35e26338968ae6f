"""Compute the numbers of the drawing `waves` from `data/race.csv`.

They are the scores of some entries in chapter 6's race. `python tools/waves.py` writes
`numbers/waves.json`, and a test checks that the file is up to date.
"""

import json
from pathlib import Path

from helpers import data

ROOT = Path(__file__).resolve().parents[1]

LENGTHS = (16, 32, 64, 128)
TASKS = {
    "retrieval": "retrieval",
    "last": "last copy",
    "first": "first copy",
    "counting": "counting",
}
SHOWN = (
    "RoPE",
    "ALiBi",
    "NoPE",
    "NoPE, stick-breaking",
    "sliding window",
    "local RoPE, global NoPE",
    "local RoPE, global NoPE + scalable softmax",
    "separators",
    "top 8 keys",
    "scalable softmax",
    "sparse (entmax 1.5)",
    "differential",
    "differential, version 2",
    "gated attention",
)
# the fraction of an entry's runs that must have learned a task, or else the entry is left out
CELL = 0.8
FILE = ROOT / "src/course/drawing/numbers/waves.json"


def scores() -> dict:
    """Return the scores of the drawing's entries, grouped by task and entry.

    There is one row per length and one score per run that learned. Entries without such a run are
    left out.
    """
    table = data.table("race").sort_values("seed")
    by_task = {}
    for task in TASKS:
        runs_of_task = table[table.task == task]
        fine = [
            name
            for name in SHOWN
            if runs_of_task[runs_of_task.entry == name].learned.mean() >= CELL
        ]
        runs = {
            name: runs_of_task[(runs_of_task.entry == name) & (runs_of_task.learned == 1)]
            for name in fine
        }
        if runs:
            by_task[task] = {
                name: [rows[f"score_{n}"].round(3).tolist() for n in LENGTHS]
                for name, rows in runs.items()
            }
    return {
        "lengths": list(LENGTHS),
        "tasks": {task: TASKS[task] for task in by_task},
        "scores": by_task,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(scores(), separators=(",", ":")) + "\n")
