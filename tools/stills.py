"""Write the files that the drawings need: `python tools/stills.py`.

They are a still picture of each drawing for browsers without scripts, drawn by the drawing itself,
and the numbers that the machine quotes from real models and from the race.
"""

import json
import math
import subprocess
from pathlib import Path

from barcodes import SHADES

from course import drawing
from course.chapter2 import measures
from course.runs import comparison
from helpers import data

ROOT = Path(__file__).resolve().parents[1]

# the design that keeps what plain RoPE loses, shown at the last stop
SHOWN = "local RoPE, global NoPE"
TASKS = ("retrieval", "last", "counting")
REPORT = "reports/smollm2-135m-instruct.json"
DRAW = """
const { render: { spec } } = await import(process.argv[1]);
const { missing, said, speak, tell } = await import(new URL("kit.js", process.argv[1]));
const { data, words, states } = JSON.parse(await new Response(process.stdin).text());
speak(words);
const drawn = states.map(({ width = 720, ...state }) => {
  const [start, h] = [{ ...spec.start(data), ...state }, spec.height(width)];
  const sayAll = (texts) => texts.filter(Boolean).forEach((text) => said(`${text}`));
  for (const { label, value, title } of spec.items(start, data, width, h))
    sayAll([label, value, title]);
  for (const { key, label, show } of spec.controls(data))
    sayAll([label?.call ? label(start) : label, show?.(start[key], start)]);
  return [h, spec.picture(start, data, width, h), tell(spec.sentence(start, data))];
});
for (const { options } of spec.controls(data))
  (options ?? []).map((option) => [option].flat().at(-1)).filter(Boolean).forEach(said);
Object.keys(spec.words).forEach(said);
spec.notes?.(data).forEach(tell);
process.stdout.write(JSON.stringify([drawn, [...missing]]));
"""


def measured() -> dict:
    """Collect the numbers that the machine quotes.

    The numbers are the race's entries by task, each with the accuracy at 128 tokens and whether it
    is a success, and numbers of a real model to compare with those of the toy model.
    """
    won = comparison.successes(comparison.table())
    race: dict = {}
    for row in won[won.task.isin(TASKS)].itertuples():
        lit = row.success if row.task in comparison.LOOKED else row.kept
        right = (
            None if row.verdict == "not learned" or math.isnan(row.right) else round(row.right, 3)
        )
        race.setdefault(row.entry, {})[row.task] = [right, int(lit)]
    trees = data.table("tree_neighbors_match_measured").query("depth == 4 and not fully_adjacent")
    direct = trees.kind == "attention"
    sections = json.loads((data.folder() / REPORT).read_text())["sections"]
    head = {name: section["headline"] for name, section in sections.items()}
    barcodes, codes = drawing.numbers("barcodes"), {}
    for n in barcodes["lengths"][
        ::2
    ]:  # every third number in eight shades, or a point if one more 1 leaves the bits unchanged
        pair = barcodes["pairs"][f"ones bf16 0 {n}"]
        equal = f"{int(pair['equal'], 16):0{len(pair['n'])}b}"
        shades = [
            (same == "1" and ".") or f"{SHADES.index(c) // 8}"
            for c, same in zip(pair["n"], equal, strict=True)
        ]
        codes[f"{n}"] = ["".join(shades[::3]), equal.count("1"), len(equal)]
    yours = drawing.numbers("yours")
    looks = {"words": yours["text"].split(), "heads": yours["heads"]}
    return {
        "model": "SmolLM2-135M",
        "looks": looks | {"rows": [rows[-1] for rows in yours["maps"]]},
        "codes": codes,
        "layers": measures.LAYERS_READ,
        "kept": measures.mean_share(),
        "sink": round(head["sinks"]["heads with a sink, text (%)"]),
        "misread": head["precision"]["first n that bf16 confuses with another"],
        "counted": head["counting"]["longest string counted right (ones)"],
        "previous": head["heads"]["previous-token heads"],
        "tree": {
            "graph": round(trees[~direct].best_train_accuracy.max(), 3),
            "direct": round(trees[direct].best_train_accuracy.min(), 3),
        },
        "race": {name: runs for name, runs in race.items() if len(runs) == len(TASKS)},
    }


def drawn(name: str, states: list[dict], language: str = "en") -> tuple[list, list[str]]:
    """Return the height, the picture and the sentence of each state, as the drawing makes them.

    We also return the texts that have no translation in the language.
    """
    command = ["node", "--input-type=module", "-e", DRAW, (drawing.HERE / f"{name}.js").as_uri()]
    request = json.dumps(
        {"data": drawing.numbers(name), "words": drawing.words_of(name, language), "states": states}
    )
    done = subprocess.run(
        command, input=request, capture_output=True, text=True, check=True, timeout=60
    )
    pictures, missing = json.loads(done.stdout)
    return pictures, missing + [
        text for text in drawing.DRAWINGS[name][:3] if text not in json.loads(request)["words"]
    ]


def still(name: str, language: str = "en", **state: float) -> str:
    """Return the first state of a drawing, or another state, as SVG with its sentence."""
    [(height, picture, sentence)], _ = drawn(name, [state], language)
    alt = drawing.DRAWINGS[name].alt
    alt = drawing.words_of(name, language).get(alt, alt)
    escaped = (alt.replace("&", "&amp;").replace('"', "&quot;"), sentence.replace("&", "&amp;"))
    return (
        f'<svg role="img" viewBox="0 0 720 {height:g}" aria-label="{escaped[0]}">{picture}</svg>'
        f'<p class="drawing-says">{escaped[1]}</p>\n'
    )


def stills() -> dict[str, str]:
    """Draw all still pictures, keyed by name."""
    languages = {
        name: ["en", *(p.name.split(".")[1] for p in drawing.HERE.glob(f"words/{name}.*"))]
        for name in drawing.DRAWINGS
    }
    pictures = {
        drawing.scene(name, 0, language): still(name, language)
        for name in drawing.DRAWINGS
        for language in languages[name]
        if name != "machine"
    }
    return pictures | {
        drawing.scene("machine", stop, language): still(
            "machine", language, at=stop, part=SHOWN if stop == 7 else "RoPE"
        )
        for stop in range(drawing.STOPS)
        for language in languages["machine"]
    }


if __name__ == "__main__":
    text = json.dumps(measured(), separators=(",", ":"))
    (drawing.HERE / "numbers/machine.json").write_text(text + "\n")
    (drawing.HERE / "still").mkdir(exist_ok=True)
    for name, picture in stills().items():
        (drawing.HERE / "still" / f"{name}.svg").write_text(picture)
