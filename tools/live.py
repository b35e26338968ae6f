"""Lay the model that runs in the page beside the book: parts of 8 MB with their hashes, its
tokenizer and its runtime.

They are made anew when what they are made of changes, kept in `_build/live`, and linked into
`_build/html/live` with the page's own scripts (`frontend/live`), which `terser` makes short. A page
whose reader does not ask loads none of it.

The page is hand-written modules in `frontend/live`: `change.js` (settings to inputs, measures; no
page in it), `worker.js` (fetches, checks, keeps, runs), `app.js` and `pictures.js`, `decoder.js`
and `small.js` for the course's own decoders. `offline.js` is a service worker for `live/` alone,
registered once a reader asks for the model: it keeps the page's files and adds the headers that
threads need. Its interventions are those of `helpers.intervention`; `tests/test_export.py` holds
graph and torch equal, `tests/test_try.py` page and Python. A new control is a setting in `TRAINED`,
its meaning in `checked`, `tables`, `bias` or `gain`, and a row in `CHANGES` of the tests. A link to
a state, `live/index.html#prompt=…&window=8`, is what a lab gives its reader.

`live/train.html` trains a decoder of the race: `learn.js` is its mathematics, forwards and
backwards, over one arena of `Float64Array`; `race.js` has tasks, rules, seeds and files,
`trainer.js` is the worker, `train.js` the page, `stops.js` what the machine's stops do to a decoder
of one's own. A new part needs its forward and its backward in `learn.js`, a name in `PARTS` (in
`ENTRIES`, too, if the race has seeds of it), and a row in `DESIGNS` of `tests/test_train.py`, which
holds loss, gradients and twenty steps equal to PyTorch to 1e-10. `data/page_trained.csv` holds runs
that were trained so, and its head their command, `benchmarks/train.mjs`.

`configuration.js` and `reading.js` are the page "Read a config.json": mathematics and sentences,
and what is drawn.
"""

import base64
import csv
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# what takes seconds to import waits until something has changed
from course.build import dependencies  # noqa: E402

PART = 8_000_000  # bytes: what an interrupted load loses at most
OUT, SITE = ROOT / "_build/live", ROOT / "_build/html/live"
DIST, WRITTEN = ROOT / "frontend/dist/live", ROOT / "frontend/live"


def key() -> str:
    """Hash what the files are made of: the exporter, the model, the runtime, this script."""
    pins = [
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.startswith("onnx")
    ]
    lock = json.loads((ROOT / "frontend/package-lock.json").read_text())["packages"][
        "node_modules/onnxruntime-web"
    ]
    exporter = (ROOT / "src/book/export.py").read_text()
    return dependencies.key(
        f"{exporter}\nfrom course import checkpoints\nfrom helpers import intervention, models, "
        f"probe",
        exporter,
        *pins,
        json.dumps(lock),
        Path(__file__).read_text(),
    )


def made() -> None:
    """Write the parts and `model.json`, which names them."""
    from book import export
    from helpers import models

    source, folder = models.blocks(), models.embedded()
    graph = export.language_model(source)
    config = json.loads((folder / "config.json").read_text())
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    files = [
        _written("runtime", "gz", (DIST / "ort.wasm.gz").read_bytes()),
        _written(
            "tokenizer",
            "gz",
            gzip.compress(json.dumps(tokenizer(folder), ensure_ascii=False).encode(), mtime=0),
        ),
    ]
    weights = graph.SerializeToString()
    files += [
        _written("model", "bin", weights[at : at + PART]) for at in range(0, len(weights), PART)
    ]
    facts = {
        "name": models.DEFAULT,
        "shape": {
            "layers": config["num_hidden_layers"],
            "heads": config["num_attention_heads"],
            "groups": config["num_key_value_heads"],
            "size": config["head_dim"],
            "width": config["hidden_size"],
            "vocabulary": config["vocab_size"],
            "base": config["rope_parameters"]["rope_theta"],
        },
        "bytes": sum(file["bytes"] for file in files),
        "files": files,
    }
    (OUT / "small.json").write_text(json.dumps(small()))
    (OUT / "stored.json").write_text(json.dumps(stored(), ensure_ascii=False))
    (OUT / "model.json").write_text(json.dumps(facts, indent=1))


def tokenizer(folder: Path) -> dict:
    """Return the tokenizer's files as the page reads them: its library takes fewer characters for
    digits, so the split is spelled out.
    """
    parts = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in ("tokenizer", "tokenizer_config")
    }
    steps = parts["tokenizer"]["pre_tokenizer"]["pretokenizers"]
    numeric = {
        "type": "Split",
        "pattern": {"Regex": r"\p{N}"},
        "behavior": "Isolated",
        "invert": False,
    }
    parts["tokenizer"]["pre_tokenizer"]["pretokenizers"] = [
        numeric if step["type"] == "Digits" else step for step in steps
    ]
    parts["tokenizer_config"].pop("chat_template", None)
    return {"tokenizer": parts["tokenizer"], "config": parts["tokenizer_config"]}


SMALL = {
    "counting": "counts the y (RoPE)",
    "copying": "copies a digit (RoPE)",
    "copying_nope": "copies a digit (no positions)",
}


def small() -> dict:
    """Export the course's own decoders as they are now, for the page that runs them."""
    from book import export
    from course.training import checkpoints

    decoders = {}
    for name, what in SMALL.items():
        trained = checkpoints.load(name)
        card = trained.card["task"]
        facts = {
            "what": what,
            "task": card["name"],
            "lengths": card["lengths"],
            "vocabulary": trained.card["vocabulary"],
        }
        decoders[name] = facts | export.course_decoder(trained.model)
    return decoders


PROMPT = (
    "<|im_start|>The quick brown fox jumps over the lazy dog. "
    "The quick brown fox jumps over the lazy"
)


def stored(prompt: str = PROMPT) -> dict:
    """Run the model on the page's first prompt: what is drawn before anything large is asked
    for.
    """
    import torch

    from helpers import intervention, models, probe

    model = models.load()
    ids = probe.encode(model, prompt)
    reading, n = intervention.read(model, ids), len(ids)
    best, names = reading.logits.softmax(-1).topk(8), model.tokenizer
    rows = (
        (reading.attentions[..., *torch.tril_indices(n, n)] * 65535).round().numpy().astype("<u2")
    )
    return {
        "prompt": prompt,
        "tokens": [names.decode([k]) for k in ids.tolist()],
        "next": [
            [[names.decode([k]), round(p, 5)] for k, p in zip(*row, strict=True)]
            for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ],
        "shape": {"layers": reading.attentions.shape[0], "heads": reading.attentions.shape[1]},
        "maps": base64.b64encode(rows.tobytes()).decode(),
    }


def seeds() -> dict[str, dict[str, list[list[float]]]]:
    """Read the race's runs for the page that trains: by task and entry a row a seed, its steps and
    its shares right by length.
    """
    with (ROOT / "data/race.csv").open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    runs = {}
    for row in rows:
        if row["task"] in ("retrieval", "last", "counting"):
            scores = [round(float(row[f"score_{n}"]), 4) for n in (16, 32, 64, 128)]
            runs.setdefault(row["task"], {}).setdefault(row["entry"], []).append(
                [int(row["steps"]), *scores]
            )
    return runs


def configurations() -> dict[str, dict]:
    """Collect what the page that reads a configuration needs: defaults by model type, sentences,
    bases of RoPE, known configurations.
    """
    report = ROOT / "src/course/report"
    bases: dict[str, list[list[float]]] = {}
    with (ROOT / "data/rope_smallest_bases.csv").open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            pair = [float(row["base"]), int(row["holds_below"])]
            bases.setdefault(row["pairs"], []).append(pair)
    return {
        "families": json.loads((report / "families.json").read_text(encoding="utf-8")),
        "sentences": json.loads((report / "sentences.json").read_text(encoding="utf-8")),
        "bases": bases,
        "known": {
            path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted((ROOT / "data/configurations").glob("*.json"))
        },
    }


def _written(part: str, ending: str, content: bytes) -> dict:
    digest = hashlib.sha256(content).hexdigest()
    name = f"{part}-{digest[:12]}.{ending}"
    (OUT / name).write_bytes(content)
    return {"name": name, "part": part, "bytes": len(content), "sha256": digest}


SHRINK = """import { minify } from "terser";
const given = JSON.parse(await new Response(process.stdin).text());
for (const name in given)
  given[name] = (await minify(given[name], { module: true, compress: false })).code;
console.log(JSON.stringify(given));"""


def scripts() -> dict[str, str]:
    """Return the page's scripts by file name, with short names inside and no comments: what is
    computed stays, step for step.
    """
    texts = {path.name: path.read_text() for path in WRITTEN.glob("*.js")}
    del texts["offline.js"]  # it gets its list yet
    command = [Path(sys.executable).with_name("node"), "--input-type=module", "-e", SHRINK]
    return json.loads(
        subprocess.check_output(command, input=json.dumps(texts), cwd=WRITTEN.parent, text=True)
    )


def laid() -> None:
    """Copy everything into the site as links; remove what is no longer needed there."""
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    for path in (path for folder in (OUT, DIST, WRITTEN) for path in folder.iterdir()):
        target = SITE / path.name
        if path.name in (".key", "ort.wasm.gz") or not path.is_file():
            continue
        try:  # what is no part of the model is copied, so that a copy of the site can be changed
            (os.link if path.parent == OUT else shutil.copyfile)(path, target)
        except OSError:
            shutil.copyfile(path, target)
    for name, script in scripts().items():
        (SITE / name).write_text(script)


def kept_offline() -> None:
    """Tell the service worker what it keeps: the page's own files, under a hash of them; not the
    parts of the model.
    """
    parts = {file["name"] for file in json.loads((SITE / "model.json").read_text())["files"]}
    names = sorted(path.name for path in SITE.iterdir() if path.name not in parts | {"offline.js"})
    digest = hashlib.sha256(b"".join((SITE / name).read_bytes() for name in names)).hexdigest()[:12]
    script = (SITE / "offline.js").read_text()
    (SITE / "offline.js").write_text(
        script.replace(
            'VERSION = "", FILES = []', f'VERSION = "{digest}", FILES = {json.dumps(names)}'
        )
    )


def main() -> None:
    start, current = time.time(), key()
    note = OUT / ".key"
    if not (note.exists() and note.read_text() == current):
        made()
        note.write_text(current)
    (OUT / "seeds.json").write_text(json.dumps(seeds(), separators=(",", ":")))
    (OUT / "configurations.json").write_text(
        json.dumps(configurations(), ensure_ascii=False, separators=(",", ":"))
    )
    laid()
    kept_offline()
    size = sum(path.stat().st_size for path in SITE.iterdir())
    print(f"the model in the page: {size / 1e6:.0f} MB in {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
