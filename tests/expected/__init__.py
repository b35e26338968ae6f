"""For each claim, the verdicts that it may have, and why; where a closed form or a committed table decides, just one.

They stand in `chapterN.toml`, and with a claim `evidence`, made up, for each verdict that its rule can give: the numbers
that its `verdict` on the scorecard names, or an expression for them in Python, among the names of `chapterN.py`, if any; a list
where a verdict is reached in several ways, an empty table where the course's own evidence gives it.
"""

import importlib
import tomllib
from pathlib import Path


def _made_up(row: str | dict | list, names: dict) -> list[dict]:
    if isinstance(row, list):
        return [found for each in row for found in _made_up(each, names)]
    if isinstance(row, str):
        return [eval(row, names)]
    return [
        {place: eval(each, names) if isinstance(each, str) else each for place, each in row.items()}
    ]


EXPECTED, EVIDENCE = {}, {}
for path in sorted(Path(__file__).parent.glob("chapter*.toml")):
    rows = tomllib.loads(path.read_text())
    EXPECTED |= {name: (set(row["may"]), row["why"]) for name, row in rows.items()}
    asked = {name: row["evidence"] for name, row in rows.items() if "evidence" in row}
    names = (
        vars(importlib.import_module(f"expected.{path.stem}"))
        if path.with_suffix(".py").exists()
        else {}
    )
    for name, evidence in asked.items():
        EVIDENCE[name] = {verdict: _made_up(row, names) for verdict, row in evidence.items()}
