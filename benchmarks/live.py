"""The language model in the page: size, seconds to a session, seconds a prompt with all maps;
beside the native runtime and torch.

python benchmarks/live.py                              three minutes on two idle cores; needs the
built book and Chromium python benchmarks/live.py --out data/live_times.csv    the table that the
page About shows

All run on one thread, one after another, the fastest of three. Seconds are by the clock: a busy
machine counts.
"""

import argparse
import csv
import datetime
import io
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import psutil
import torch
from playwright.sync_api import sync_playwright

from book import browser, export
from helpers import intervention, models

ROOT = Path(__file__).resolve().parents[1]

LENGTHS = (16, 64, 128, 256)
TIMES = 3
OUT, WEB = "data/live_times.csv", "node_modules/onnxruntime-web"
COLUMNS = ("what", "unit", "in the page", "native runtime", "PyTorch", "page / native")
OUTPUTS = ["logits", "attentions", "states"]
PAGE = """async ({ lengths, times }) => {
  const { engine } = await import("/live/engine.js"), change = await import("/live/change.js");
  const ask = engine(() => {}), start = performance.now();
  const facts = await ask("load"), loaded = (performance.now() - start) / 1000;
  const use = change.checked({}, facts.shape), want = ["logits", "attentions", "states"];
  const pass = async (ids, from, keep) => {
    const before = from?.p ?? 0, rows = [ids.length - 1];
    const answer = await ask("forward", {
      ids, rows, from, keep, want,
      ...change.tables(use, facts.shape, before, ids.length),
      bias: change.bias(use, before, ids.length),
      gain: change.gain(use, facts.shape),
    });
    return answer.seconds;
  };
  const found = {};
  for (const n of lengths) {
    found[n] = Infinity;
    const ids = Array.from({ length: n }, (_, i) => 100 + i), keep = n === 64 ? "kept" : null;
    for (let k = 0; k < times; k += 1) found[n] = Math.min(found[n], await pass(ids, null, keep));
  }
  let more = Infinity;
  for (let k = 0; k < times; k += 1)
    more = Math.min(more, await pass([100], { name: "kept", p: 64 }, null));
  return { loaded, session: facts.seconds, threads: facts.threads, found, more };
}"""


def fastest(call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def in_the_page() -> dict:
    with browser.served(ROOT / "_build/html") as site, sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser.find(), args=browser.FLAGS)
        page = started.new_page()
        page.set_default_timeout(600_000)
        page.goto(f"{site}/live/index.html")
        found = page.evaluate(PAGE, {"lengths": LENGTHS, "times": TIMES})
        tabs = [
            p for p in psutil.Process().children(recursive=True) if "--type=renderer" in p.cmdline()
        ]
        found["memory"] = max(p.memory_info().rss for p in tabs)
        started.close()
    return found


def natively() -> tuple[float, dict[int, float]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = export.language_model(models.blocks()).SerializeToString()
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(graph, options)
    seconds, found = time.perf_counter() - start, {}
    for n in LENGTHS:
        table = np.ones((n, 64), np.float32)
        inputs = {
            "ids": np.arange(100, 100 + n),
            "rows": np.array([n - 1]),
            "cos": table,
            "sin": table,
            "bias": np.zeros((n, n), np.float32),
        }
        inputs |= {
            "gain": np.ones((30, 9), np.float32),
            "past": np.zeros((30, 2, 3, 1, 0, 64), np.float32),
        }
        found[n] = fastest(lambda inputs=inputs: session.run(OUTPUTS, inputs))
    return seconds, found


def measured() -> list[dict]:
    """What is loaded and how long it takes, a row each: in the page, by the native runtime, by
    PyTorch.
    """
    torch.set_num_threads(1)
    facts = json.loads((ROOT / "_build/html/live/model.json").read_text())
    page, (session, native), model = in_the_page(), natively(), models.load()

    def row(what: str, unit: str, *values: float, digits: int = 2) -> dict:
        texts = [f"{x:.{digits}f}" for x in values] + ["", ""]
        times = f"{values[0] / values[1]:.1f}" if len(values) == 3 else ""
        return dict(zip(COLUMNS, (what, unit, *texts[:3], times), strict=True))

    rows = [
        row("loaded in all, once", "MB", facts["bytes"] / 1e6, digits=0),
        row("from this machine to a session", "s", page["loaded"], digits=1),
        row("of which the session", "s", page["session"], session, digits=1),
        row("memory of the tab at its end", "MB", page["memory"] / 1e6, digits=0),
        row("one token after 64 kept ones", "s", page["more"]),
    ]
    for n in LENGTHS:
        eager = fastest(lambda n=n: intervention.read(model, torch.arange(100, 100 + n)))
        rows.append(row(f"{n} tokens, all maps", "s", page["found"][str(n)], native[n], eager))
    return rows


def head() -> list[str]:
    """Where the numbers come from, as the heads of all tables say it."""
    lock = json.loads((ROOT / "frontend/package-lock.json").read_text())["packages"]
    versions = (
        f"Python {platform.python_version()}, torch {torch.__version__}, onnxruntime "
        f"{onnxruntime.__version__}"
    )
    return [
        "The language model in the page, beside the native runtime and PyTorch in float32: the "
        "fastest of three, by the clock",
        f"python benchmarks/live.py --out {OUT}",
        f"  {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {os.cpu_count()} CPU cores "
        f"({platform.machine()}), one thread, "
        f"load {psutil.getloadavg()[0]:.1f} before, Chromium, onnxruntime-web "
        f"{lock[WEB]['version']}, {versions}",
    ]


def written(rows: list[dict], said: list[str]) -> str:
    """The table as a file: its head, then its rows."""
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in said)
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, help=f"write the table here ({OUT} is the one that the book shows)"
    )
    out, said = parser.parse_args().out, head()
    text = written(measured(), said)
    print(text)
    if out:
        out.write_text(text)


if __name__ == "__main__":
    main()
