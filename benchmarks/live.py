"""The language model in the page: size, seconds to a session, seconds a prompt with all maps; beside the native runtime and torch.

python benchmarks/live.py    three minutes on two idle cores; needs the built book (make book) and Chromium

All run on one thread, one after another, the fastest of three. Seconds are by the clock: a busy machine counts.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import psutil
import torch
from playwright.sync_api import sync_playwright

from helpers import export, intervention, models

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import browser  # noqa: E402

LENGTHS = (16, 64, 128, 256)
TIMES = 3
OUTPUTS = ["logits", "attentions", "states"]
PAGE = """async ({ lengths, times }) => {
  const { engine } = await import("/live/engine.js"), change = await import("/live/change.js");
  const ask = engine(() => {}), start = performance.now();
  const facts = await ask("load"), loaded = (performance.now() - start) / 1000, use = change.checked({}, facts.shape);
  const pass = async (ids, from, keep) => (await ask("forward", { ids, rows: [ids.length - 1], from, keep, want: ["logits", "attentions", "states"],
    ...change.tables(use, facts.shape, from?.p ?? 0, ids.length), bias: change.bias(use, from?.p ?? 0, ids.length), gain: change.gain(use, facts.shape) })).seconds;
  const found = {};
  for (const n of lengths) {
    found[n] = Infinity;
    for (let k = 0; k < times; k += 1) found[n] = Math.min(found[n], await pass(Array.from({ length: n }, (_, i) => 100 + i), null, n === 64 ? "kept" : null));
  }
  let more = Infinity;
  for (let k = 0; k < times; k += 1) more = Math.min(more, await pass([100], { name: "kept", p: 64 }, null));
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
        tabs = [p for p in psutil.Process().children(recursive=True) if "--type=renderer" in p.cmdline()]
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
        inputs |= {"gain": np.ones((30, 9), np.float32), "past": np.zeros((30, 2, 3, 1, 0, 64), np.float32)}
        found[n] = fastest(lambda inputs=inputs: session.run(OUTPUTS, inputs))
    return seconds, found


def main() -> None:
    torch.set_num_threads(1)
    facts = json.loads((ROOT / "_build/html/live/model.json").read_text())
    page, (session, native), model = in_the_page(), natively(), models.load()
    rows = [
        (n, page["found"][str(n)], native[n], fastest(lambda n=n: intervention.read(model, torch.arange(100, 100 + n))))
        for n in LENGTHS
    ]
    print(
        f"loaded {facts['bytes'] / 1e6:.0f} MB in all; from this machine to a session {page['loaded']:.1f} s, of which the session {page['session']:.1f} s (natively {session:.1f} s)"
    )
    print(
        f"{page['threads']} thread; memory of the tab at its end {page['memory'] / 1e6:.0f} MB; a further token after 64 kept ones {page['more']:.2f} s; load of the machine {psutil.getloadavg()[0]:.1f}\n"
    )
    print("| tokens | page, s | native runtime, s | torch fp32, s | page / native |\n|---:|---:|---:|---:|---:|")
    for n, *seconds in rows:
        print(f"| {n} | {' | '.join(f'{x:.2f}' for x in seconds)} | {seconds[0] / seconds[1]:.1f} |")


if __name__ == "__main__":
    main()
