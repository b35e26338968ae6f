"""The live panel as a reader meets it: in JupyterLab, and in the classic Notebook with what Colab has, in Chromium."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from playwright.sync_api import Error

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

CLASSIC, LAB = ROOT / ".venv-colab/bin/python", Path(sys.executable)


@pytest.fixture
def serve(chromium, tmp_path):
    """Start a notebook server and open a notebook of `tests/live` in it; other hosts are blocked."""
    shutil.copytree(ROOT / "tests/live", tmp_path / "pages")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []

    def start(python, *command, path, environment):
        hidden = ("HELPERS_STILL", "PYTHONPATH", "JUPYTER_CONFIG_PATH", "JUPYTER_PATH")
        environment = {k: v for k, v in os.environ.items() if k not in hidden} | environment
        for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
            environment[f"JUPYTER_{name}"] = str(tmp_path / name)
        environment["IPYTHONDIR"] = str(tmp_path / "ipython")
        log = (tmp_path / "log").open("w")
        server = subprocess.Popen(
            [python, *command, "--no-browser", "--allow-root", f"--port={port}"],
            cwd=tmp_path / "pages",
            env=environment | {"PATH": f"{python.parent}:{environment['PATH']}"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 1000})
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        started.append((server, page, log))
        page.route(re.compile(rf"^https?://(?!127\.0\.0\.1:{port}/)"), lambda route: route.abort())
        for _ in range(180):
            try:
                page.goto(f"http://127.0.0.1:{port}/{path}")
                return page
            except Error:
                assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
                time.sleep(0.5)
        pytest.fail((tmp_path / "log").read_text()[-2000:])

    yield start
    for server, page, log in started:
        page.close()
        server.terminate()
        server.wait(timeout=60)
        log.close()


def shows(page, n, kind="a"):
    page.wait_for_selector(
        f'.explore img[alt="A line. length: {n}, kind: {kind}. It ends at {n}, {kind}."]'
    )
    page.wait_for_selector(f'.explore-finding:has-text("It ends at {n}, {kind}.")')


def assert_the_panel_works(page, handle):
    """By keyboard, with names and values told, the printed seen, an error that keeps the picture, Play and Stop."""
    page.wait_for_selector(".explore img", timeout=180_000)
    shows(page, 8)
    slider = page.locator(handle)
    slider.focus()
    page.keyboard.press("ArrowRight")
    shows(page, 16)
    page.wait_for_selector(f'{handle}[aria-label="length"][aria-valuetext="16"][role="slider"]')
    assert page.get_by_label("kind").count() == 1
    page.keyboard.press("ArrowRight")
    shows(page, 32)
    page.wait_for_selector('.explore pre:has-text("printed")')
    page.keyboard.press("x")  # a shortcut that cuts the cell
    height = page.locator(".explore").first.bounding_box()["height"]
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('[role=status] [role=alert]:has-text("RuntimeError: no <64>")')
    assert "length: 32" in page.locator(".explore img").get_attribute("alt")
    assert abs(page.locator(".explore").first.bounding_box()["height"] - height) < 60
    slider.focus()
    page.keyboard.press("Home")
    shows(page, 8)
    play = page.locator(".explore-play")
    play.click()
    page.wait_for_selector('.explore-play:has-text("Stop")')
    shows(page, 16)
    play.click()
    page.wait_for_selector('.explore-play:has-text("Play")')
    page.get_by_label("kind").select_option("b")
    page.wait_for_selector('.explore img[alt$=", b."]')
    slider.focus()
    page.keyboard.press("End")  # never ends
    page.wait_for_selector('.explore-finding:has-text("computing")')
    page.wait_for_timeout(1000)


def runs_all(page):
    """A notebook in JupyterLab, once its kernel is there."""
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=180_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


@pytest.mark.colab
def test_the_panel_works_and_a_drawing_moves_in_the_classic_notebook_with_what_colab_has(serve):
    """Colab's own page cannot be had here; this too speaks to ipywidgets 7.7.1."""
    options = [f"--NotebookApp.{secret}=''" for secret in ("token", "password")]
    page = serve(CLASSIC, "-m", "notebook", *options, path="notebooks/widget.ipynb", environment={})
    page.wait_for_function("window.Jupyter?.notebook?.kernel?.widget_manager", timeout=180_000)
    # for 4 s it asks the kernel for old widgets, and drops new ones that come meanwhile
    for _ in range(60):
        if any("fallback to fetching" in text for text in page.said):
            break
        page.wait_for_timeout(500)
    page.wait_for_timeout(2000)
    page.evaluate("Jupyter.notebook.execute_all_cells()")
    assert_the_panel_works(page, ".ui-slider-handle")
    page.evaluate("Jupyter.notebook.kernel.interrupt()")
    page.wait_for_selector('.explore-finding:has-text("Stopped. The picture still shows")')
    page.goto(page.url.replace("widget", "drawing"))
    page.wait_for_function("window.Jupyter?.notebook?.kernel?.is_connected()", timeout=180_000)
    page.evaluate("Jupyter.notebook.execute_all_cells()")
    assert_the_drawing_moves(page)


def test_the_panel_works_and_a_drawing_moves_in_jupyterlab(serve):
    command, source = (
        ("-m", "jupyterlab", "--IdentityProvider.token="),
        {"PYTHONPATH": str(ROOT / "src")},
    )
    page = serve(LAB, *command, path="lab/tree/widget.ipynb", environment=source)
    runs_all(page)
    assert_the_panel_works(page, ".noUi-handle")
    page.locator('[data-command="notebook:interrupt-kernel"]').click()
    page.wait_for_selector('.explore-finding:has-text("Stopped. The picture still shows")')
    page.goto(page.url.replace("tree/widget", "workspaces/second/tree/drawing"))
    runs_all(page)
    assert_the_drawing_moves(page)


def assert_the_drawing_moves(page):
    """By keyboard, and no key reaches the notebook; nothing is asked of another host."""
    page.wait_for_selector(".drawing-stage .item[role=slider]", timeout=180_000)
    says, slider = (
        page.locator(".drawing-says"),
        page.locator(".drawing-controls input[type=range]").first,
    )
    assert says.inner_text().startswith("24 tokens apart")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('.drawing-says:has-text("25 tokens apart")')
    hand = page.locator(".drawing-stage .item[role=slider]").nth(1)
    hand.focus()
    for key in ("ArrowRight", "x", "d", "d"):  # the letters cut a cell
        page.keyboard.press(key)
    box = hand.bounding_box()
    before = page.locator(".drawing-stage > g").first.inner_html()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 30, box["y"] - 20, steps=3)
    page.mouse.up()
    page.wait_for_function(
        "old => document.querySelector('.drawing-stage > g').innerHTML !== old", arg=before
    )
    assert says.count() == 1
