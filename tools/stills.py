"""Write what the drawings show beside what they compute: the still picture of each, for where scripts do not run, by the
drawing itself; and what the machine quotes of real models and of the race (`python tools/stills.py`)."""

import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
from course.chapter2 import measures  # noqa: E402
from course.experiments import comparison  # noqa: E402
from helpers import data, drawing  # noqa: E402

TASKS = ("retrieval", "last", "first", "counting")
REPORT = "reports/smollm2-135m-instruct.json"
DRAW = """
const { render: { spec } } = await import(process.argv[1]);
const { data, state } = JSON.parse(await new Response(process.stdin).text());
const start = { ...spec.start(data), ...state };
const h = spec.height(720);
process.stdout.write(JSON.stringify([h, spec.picture(start, data, 720, h), spec.sentence(start, data)]));
"""


def measured() -> dict:
    """What the machine shows of others: the race's entries by task, each with the share right at 128 tokens and whether
    that is a success; and numbers of a real model beside the toy's."""
    won = comparison.successes(comparison.table())
    race: dict = {}
    for row in won[won.task.isin(TASKS)].itertuples():
        lit = row.success if row.task in comparison.LOOKED else row.kept
        right = None if row.verdict == "not learned" or math.isnan(row.right) else round(row.right, 3)
        race.setdefault(row.entry, {})[row.task] = [right, int(lit)]
    sections = json.loads((data.folder() / REPORT).read_text())["sections"]
    head = {name: section["headline"] for name, section in sections.items()}
    return {
        "model": "SmolLM2-135M",
        "layers": measures.LAYERS_READ,
        "kept": round(measures.measured_share(), 3),
        "sink": round(head["sinks"]["heads with a sink, text (%)"]),
        "misread": head["precision"]["first n that bf16 takes for another"],
        "counted": head["counting"]["longest row counted right"],
        "previous": head["heads"]["previous-token heads"],
        "race": {name: runs for name, runs in race.items() if len(runs) == len(TASKS)},
    }


def still(name: str, **state: float) -> str:
    """The drawing as it starts, or in another state, as SVG, with its sentence."""
    facts, source = drawing.DRAWINGS[name], (drawing.HERE / f"{name}.js").as_uri()
    command = ["node", "--input-type=module", "-e", DRAW, source]
    held = json.dumps({"data": drawing.numbers(name), "state": state})
    done = subprocess.run(command, input=held, capture_output=True, text=True, check=True, timeout=60)
    height, picture, sentence = json.loads(done.stdout)
    escaped = (facts.alt.replace("&", "&amp;").replace('"', "&quot;"), sentence.replace("&", "&amp;"))
    return (
        f'<svg role="img" viewBox="0 0 720 {height:g}" aria-label="{escaped[0]}">{picture}</svg>'
        f'<p class="drawing-says">{escaped[1]}</p>\n'
    )


def stills() -> dict[str, str]:
    """Every still picture by its name."""
    found = {name: still(name) for name in drawing.DRAWINGS if name != "machine"}
    return found | {drawing.scene("machine", stop): still("machine", at=stop) for stop in range(drawing.STOPS)}


if __name__ == "__main__":
    text = json.dumps(measured(), separators=(",", ":"))
    (drawing.HERE / "numbers/machine.json").write_text(text + "\n")
    (drawing.HERE / "still").mkdir(exist_ok=True)
    for name, picture in stills().items():
        (drawing.HERE / "still" / f"{name}.svg").write_text(picture)
