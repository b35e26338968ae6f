"""Find or install a Chromium browser, and serve the book to it.

We look for an installed browser, then for Playwright's own, and then for the system's package.
"""

import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

# the first one draws only pages and no windows, which halves the time per page
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
WAIT = ["-o", "DPkg::Lock::Timeout=300"]  # in seconds, while another program installs packages
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--font-render-hinting=none",
]  # fmt: skip


def find() -> str | None:
    """Return the path of an installed browser, or None.

    Raises:
        SystemExit: if the environment variable CHROMIUM is set but is not the path of a browser.
    """
    if named := os.environ.get("CHROMIUM"):
        if path := shutil.which(named):
            return path
        raise SystemExit(f"CHROMIUM must be the path of a browser, but {named} is not one.")
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if os.path.exists(MAC):
        return MAC
    try:
        with sync_playwright() as playwright:
            bundled = playwright.chromium.executable_path
    except Error:
        return None
    return bundled if os.path.exists(bundled) else None


def install() -> str:
    """Install a browser and return its path, trying one way after the other.

    Raises:
        SystemExit: if no way worked. One sentence says what to do.
    """
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get"):
        sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
        ways += [
            [*sudo, "apt-get", "update", "-qq"],
            *([*sudo, "apt-get", *WAIT, "install", "-y", "-qq", name] for name in NAMES[:2]),
        ]
    for way in ways:
        print(f"no Chromium here; trying: {' '.join(way[-3:])}", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(way, check=False, env=environment, timeout=600, stdout=subprocess.DEVNULL)
        if path := find():
            return path
    raise SystemExit("The tests need Chromium or Chrome. Install one, or set CHROMIUM to its path.")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files without writing to a log."""

    def log_message(self, *arguments):
        pass

    def handle(self):
        # a browser that has what it needs closes the connection
        with contextlib.suppress(ConnectionError):
            super().handle()


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine while the block runs, and yield the address."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    print(find() or install())
