"""What several test files share: the repository's root, the real model, a web server and a browser.

`make test` runs them in as many processes as there are cores (pytest-xdist), each on one thread.
"""

import contextlib
import functools
import gc
import inspect
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

# before torch is imported; a process with two threads on a shared core can be many times slower than with one
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import hypothesis
import jaxtyping
import joblib
import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
# functions in JavaScript, for a page's `evaluate` and for `javascript`
SCRIPTS = {path.stem: path.read_text() for path in (ROOT / "tests/scripts").glob("*.js")}
NODE = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
sys.path += [str(ROOT / "tools"), str(ROOT / "sphinx_ext"), str(ROOT / "tests")]

# the types and shapes in signatures of the mathematics are promises: wherever a test calls it, they are checked
MATHEMATICS = (
    *(f"helpers.{name}" for name in ("attention", "collapse", "compute", "data", "differential", "graphs", "models", "probe")),
    *(f"helpers.{name}" for name in ("require", "rope", "transformer")),
    *(f"course.maths.{name}" for name in ("bounds", "constructions", "counting", "normalizers", "rewiring", "rope_scaling")),
    *("course.training", "course.chapter2.interventions"),
)  # fmt: skip
hypothesis.settings.register_profile("course", deadline=None)  # no test waits for the clock
hypothesis.settings.load_profile("course")
jaxtyping.install_import_hook([*MATHEMATICS], "shapes.checked")


def javascript(name: str, data: object = None) -> object:
    """What a function of `tests/scripts` makes of `data` in node; what it imports is named from the repository's root."""
    script = f"""const data = JSON.parse(await new Response(process.stdin).text());
      process.stdout.write(JSON.stringify(await ({SCRIPTS[name]})(data)));"""
    command, pipes = (
        [NODE, "--input-type=module", "-e", script],
        {"capture_output": True, "text": True},
    )
    done = subprocess.run(
        command, input=json.dumps(data), cwd=ROOT, check=False, timeout=120, **pipes
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def in_words(table: dict[str, str]):
    """What is said and drawn inside is in the words of a table."""
    from helpers import words

    words.use(table)
    try:
        yield
    finally:
        words.use(None)


def defined(chapter: int, *cells: str, page: str = "lesson", **given) -> dict:
    """The names that these cells of a page bind, one after the other, after what is given."""
    import networkx
    import pandas
    import torch

    (path,) = (ROOT / "chapters").glob(f"{chapter}-*/{page}.ipynb")
    sources = {
        cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]
    }
    names = {
        "functools": functools,
        "math": math,
        "nx": networkx,
        "pd": pandas,
        "torch": torch,
        **given,
    }
    for cell in cells:
        exec(sources[cell], names)
    return names


@functools.cache
def expects_an_error(function) -> bool:
    return "pytest.raises(" in inspect.getsource(function)


@pytest.fixture(autouse=True)
def promises(request):
    """A test that expects an error gives wrong types and shapes on purpose: there the helpers' own sentences count."""
    wrong = expects_an_error(request.function) or request.path.stem == "test_bad_input"
    jaxtyping.config.update("jaxtyping_disable", wrong)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--redraw", action="store_true", help="write down anew what the figures and tables show"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    """A test that asks for a browser or for the built book is of the site."""
    for item in items:
        if {"chromium", "site"} & {*item.fixturenames}:
            item.add_marker("site")


def pytest_collection_finish() -> None:
    """What was imported stays: it is not looked through for what may go, which took a sixth of the time."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers(config) -> int:
    """What `-n auto` means: a process a core, as long as each has the memory that a language model takes."""
    return max(1, min(joblib.cpu_count(), int(psutil.virtual_memory().total // 2.5e9)))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def smollm2():
    from helpers import models

    return models.load()


@pytest.fixture
def short(monkeypatch):
    """The plan, the only one, by which a report of a tiny decoder takes seconds."""
    from course.report import runner
    from course.report.subject import Plan

    plan = Plan("short", (0,), 4, 1, 48, (6, 12), (5, 10), (3,), ("begun",), 128, 1, 0)
    monkeypatch.setattr(runner, "PLANS", (plan,))
    return plan


@pytest.fixture(scope="session")
def site():
    """The address of the built book, served from this machine."""
    folder = ROOT / "_build/html"
    if not (folder / ".ready").exists():
        pytest.fail("the book is not built: run `make book` first")
    from book import browser

    with browser.served(folder) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    from book import browser

    with sync_playwright() as playwright:
        alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        started = playwright.chromium.launch(
            executable_path=browser.find(), args=[*browser.FLAGS, alone]
        )
        yield started
        started.close()


def watched(context, own):
    """A new page that notes console errors and requests to other hosts than its own, which the browser does not find."""
    context.set_default_timeout(120_000)  # a busy machine is slow, not broken
    page = context.new_page()
    page.errors, page.foreign = [], []
    home = (own, "data:", "blob:")
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(home) else page.foreign.append(asked.url),
    )
    page.on(
        "console",
        lambda message: page.errors.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    return page


@pytest.fixture
def visit(chromium, site):
    """Open a page of the book as somebody who was never there."""
    with contextlib.ExitStack() as stack:

        def open_page(path: str, **options):
            context = chromium.new_context(
                **{"viewport": {"width": 1280, "height": 800}, **options}
            )
            stack.callback(context.close)
            page = watched(context, site)
            page.goto(f"{site}/{path}", wait_until="load")
            return page

        yield open_page
