"""Write the still picture of each drawing, for where scripts do not run: `src/helpers/drawing/still`, by the drawing itself."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
from helpers import drawing  # noqa: E402

DRAW = """
const { render: { spec } } = await import(process.argv[1]);
const data = JSON.parse(await new Response(process.stdin).text());
const h = spec.height(720);
process.stdout.write(JSON.stringify([h, spec.picture(spec.start(data), data, 720, h), spec.sentence(spec.start(data), data)]));
"""


def still(name: str) -> str:
    """The drawing as it starts, as SVG, with its sentence."""
    facts, source = drawing.DRAWINGS[name], (drawing.HERE / f"{name}.js").as_uri()
    command = ["node", "--input-type=module", "-e", DRAW, source]
    held = json.dumps(drawing.numbers(name))
    done = subprocess.run(command, input=held, capture_output=True, text=True, check=True, timeout=60)
    height, picture, sentence = json.loads(done.stdout)
    escaped = (facts.alt.replace("&", "&amp;").replace('"', "&quot;"), sentence.replace("&", "&amp;"))
    return (
        f'<svg role="img" viewBox="0 0 720 {height:g}" aria-label="{escaped[0]}">{picture}</svg>'
        f'<p class="drawing-says">{escaped[1]}</p>\n'
    )


if __name__ == "__main__":
    (drawing.HERE / "still").mkdir(exist_ok=True)
    for name in drawing.DRAWINGS:
        (drawing.HERE / "still" / f"{name}.svg").write_text(still(name))
