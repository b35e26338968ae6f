"""Train it here on a slow computer: seconds until retrieval is learned, and memory, at shares of
one core, at 390 px.

python benchmarks/phone.py --out data/page_slow.csv    the table that the page About shows; needs
Chromium

A browser's own throttle slows no worker. So every process of a browser of its own is stopped and
let go on (SIGSTOP, SIGCONT) as often as all of them together have used more than their share of one
core's time: what a quota of a container does. What they got stands beside it: where it is less than
the share, a busy machine gave less, and the seconds are too many.
"""

import argparse
import csv
import datetime
import io
import os
import platform
import signal
import tempfile
import threading
import time
from pathlib import Path

import psutil
from playwright.sync_api import sync_playwright

from book import browser

ROOT = Path(__file__).resolve().parents[1]

SHARES, SEEDS = {"one quarter": 1 / 4, "one sixth": 1 / 6}, (0, 1, 2)
COLUMNS = (
    "share of a core",
    "seed",
    "steps",
    "learned (s)",
    "got (share)",
    "memory of the tab (MB)",
)
PERIOD, BURST, TICK = 0.02, 0.1, 1 / os.sysconf("SC_CLK_TCK")
WATCH = """() => { window.steps = []; const bar = document.querySelector("progress");
  new MutationObserver(() => steps.push([bar.value, performance.now()]))
    .observe(bar, { attributes: true });
  document.querySelector("[data-do=train]").click(); window.begun = performance.now(); }"""


class Quota:
    """Holds a process and all that come of it to a share of one core, until the block ends."""

    def __init__(self, pid: int, share: float):
        self.root, self.share, self.used, self.seen, self.held = (
            psutil.Process(pid),
            share,
            0.0,
            {},
            False,
        )
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.send(signal.SIGCONT)

    def run(self) -> None:
        credit, before = BURST, time.perf_counter()
        while not self.ended.wait(PERIOD):
            now, spent = time.perf_counter(), self.spent()
            credit, before = min(BURST, credit + self.share * (now - before)) - spent, now
            self.used += spent
            if self.held != (credit < 0):
                self.held = credit < 0
                self.send(signal.SIGSTOP if self.held else signal.SIGCONT)

    def spent(self) -> float:
        """Seconds of processor since the last call."""
        new = 0.0
        for pid in [self.root.pid, *(each.pid for each in self.root.children(recursive=True))]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total = (int(fields[11]) + int(fields[12])) * TICK
            new += total - self.seen.get(pid, 0.0)
            self.seen[pid] = total
        return new

    def send(self, what: signal.Signals) -> None:
        for pid in list(self.seen):
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                self.seen.pop(pid)


def trained(playwright, site: str, name: str, seed: int) -> dict:
    started = playwright.chromium.launch(executable_path=browser.find(), args=browser.FLAGS)
    top = next(
        p
        for p in psutil.Process().children(recursive=True)
        if "--headless" in " ".join(p.cmdline())
    )
    while "--headless" in " ".join(top.parent().cmdline()) and top.parent().pid != os.getpid():
        top = top.parent()
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    page = started.new_context(service_workers="block", **phone).new_page()
    page.set_default_timeout(600_000)
    with Quota(top.pid, SHARES[name]) as quota:
        page.goto(f"{site}/live/train.html#seed={seed}")
        page.wait_for_selector("#train[data-ready]")
        begun, used = time.perf_counter(), quota.used
        page.evaluate(WATCH)
        page.wait_for_selector("#train[data-done]")
        got = (quota.used - used) / (time.perf_counter() - begun)
        steps, clicked, said = page.evaluate(
            "[steps, begun, document.querySelector('.live-status').innerText]"
        )
        assert "Learned in" in said, said
        tabs = [p for p in top.children(recursive=True) if "--type=renderer" in p.cmdline()]
        memory = max(p.memory_info().rss for p in tabs)
    started.close()
    last = next(at for value, at in reversed(steps) if value)
    row = (
        name,
        seed,
        steps[-1][0],
        f"{(last - clicked) / 1000:.1f}",
        f"{got:.2f}",
        round(memory / 1e6),
    )
    return dict(zip(COLUMNS, row, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    load, rows = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        (Path(folder) / "live").symlink_to(ROOT / "frontend/live")
        with browser.served(Path(folder)) as site:
            for name in SHARES:
                for seed in SEEDS:
                    rows.append(trained(playwright, site, name, seed))
                    print(rows[-1], flush=True)
    held = io.StringIO()
    writer = csv.DictWriter(held, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    head = (
        "# Train it here, retrieval with RoPE, in Chromium at 390 x 844: every process of the "
        "browser together is held to a share of one core\n"
        "# python benchmarks/phone.py --out data/page_slow.csv\n"
        f"#   {datetime.date.today()}, {os.cpu_count()} CPU cores ({platform.machine()}), load "
        f"{load:.1f} before\n"
    )
    if asked.out:
        asked.out.write_text(head + held.getvalue())


if __name__ == "__main__":
    main()
