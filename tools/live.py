"""Add the model that runs in a page to the book.

The model comes in parts of 8 MB with their hashes, with its tokenizer and its runtime.

The parts are made again when their sources change, kept in `_build/live`, and linked into
`_build/html/live` together with the page's own scripts (`frontend/live`), which `terser` shortens.
A page loads none of these files until its reader asks for the model.

The page consists of hand-written modules in `frontend/live`. `change.js` turns settings into inputs
and measures, without touching the page. `worker.js` downloads, checks, stores and runs the model.
`app.js` and `pictures.js` are the page, and `decoder.js` and `small.js` run the course's own
decoders. `offline.js` is a service worker for `live/` only, registered once a reader asks for the
model. It stores the page's files and adds the headers that threads need. The interventions are
those of `helpers.intervention`. `tests/test_export.py` compares the graph with torch, and
`tests/test_try.py` the page with Python. A new control needs a setting in `TRAINED`, its meaning in
`checked`, `tables`, `bias` or `gain`, and a row in `CHANGES` of the tests. A lab links to a state
by `live/index.html#prompt=…&window=8`.

`live/train.html` trains a decoder of the race. `learn.js` is its mathematics, forwards and
backwards, in one arena of `Float64Array`. `race.js` has tasks, rules, seeds and files, `trainer.js`
is the worker, `train.js` the page, and `stops.js` shows what the machine's stops do to a reader's
own decoder. A new part needs its forward and backward pass in `learn.js`, a name in `PARTS` (also
in `ENTRIES` if the race has seeds of it), and a row in `DESIGNS` of `tests/test_train.py`, which
compares loss, gradients and twenty steps with PyTorch to 1e-10. `data/page_trained.csv` holds runs
that were trained in this way, and its head names their command, `benchmarks/train.mjs`.

`configuration.js` and `reading.js` are the page "Read a config.json": mathematics and sentences,
and the drawing.
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

# these imports take seconds, so we wait until something has changed
from course.build import dependencies  # noqa: E402

PART = 8_000_000  # in bytes, the most that an interrupted download loses
OUT, SITE = ROOT / "_build/live", ROOT / "_build/html/live"
DIST, WRITTEN = ROOT / "frontend/dist/live", ROOT / "frontend/live"


def key() -> str:
    """Compute a hash of everything from which the files are made.

    The files are made from the exporter, the model, the runtime and this script.
    """
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
    """Write the parts of the model, and `model.json`, which lists them."""
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
    """Return the tokenizer's files in the form that the page reads.

    The page's library recognises fewer characters as digits, so we spell out the rule that splits
    digits.
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
    """Export the current decoders of the course for the page that runs them."""
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
    """Run the model on the page's first prompt, and return the results.

    The page can draw them before it downloads anything large.
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
    """Return the race's runs for the page that trains a decoder.

    The runs are grouped by task and entry, with one row per seed that has its steps and its
    accuracy for each length.
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
    """Collect the data for the page that reads a configuration.

    The data are defaults by model type, sentences, bases of RoPE, and well-known configurations.
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
    """Return the page's scripts, shortened, keyed by file name.

    The shortened scripts have short names and no comments, but compute the same, step by step.
    """
    texts = {path.name: path.read_text() for path in WRITTEN.glob("*.js")}
    del texts["offline.js"]  # its list is added later
    command = [Path(sys.executable).with_name("node"), "--input-type=module", "-e", SHRINK]
    return json.loads(
        subprocess.check_output(command, input=json.dumps(texts), cwd=WRITTEN.parent, text=True)
    )


def laid() -> None:
    """Link all files into the site, and remove files that are no longer needed there."""
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    for path in (path for folder in (OUT, DIST, WRITTEN) for path in folder.iterdir()):
        target = SITE / path.name
        if path.name in (".key", "ort.wasm.gz") or not path.is_file():
            continue
        # files that are not part of the model are copied, so that a copy of the site can be changed
        try:
            (os.link if path.parent == OUT else shutil.copyfile)(path, target)
        except OSError:
            shutil.copyfile(path, target)
    for name, script in scripts().items():
        (SITE / name).write_text(script)


def kept_offline() -> None:
    """Write into the service worker which files to store.

    The files to store are the page's own files, under a hash of them, and not the parts of the
    model.
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
    """Write the parts of the model if their sources changed, and link all files into the site."""
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
