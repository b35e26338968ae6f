"""Take pictures of every page and every slide, so that a person can look at them.

They are written to `_build/look`, with a sheet of all slides of a deck. Pages are taken wide and
light, wide and dark, and on a phone. `python tools/look.py lesson` takes only pages and decks with
this text in their name. The README's film of the machine is also made here.
"""

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from book import browser

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "_build/look"
VIEWS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
}
COLUMNS, THUMB = 4, (640, 360)
FILM = ROOT / "_static/machine.webp"
# the control that a reader moves at each stop of the machine
MOVED = (
    None,
    "hears",
    "share kept",
    "ones n",
    "a first token",
    "swap fast",
    "λ",
    "swapped part",
)


def opened(started: Browser, address: str, **view) -> Page:
    """Return a page of the browser that shows an address and has finished loading."""
    page = started.new_context(**view).new_page()
    page.goto(address, wait_until="load")
    page.wait_for_load_state("networkidle")
    page.evaluate("() => window.MathJax?.startup?.promise")
    return page


def look_at_page(started: Browser, site: str, path: Path) -> None:
    """Take pictures of a page, wide and light, wide and dark, and on a phone."""
    name = (
        path.relative_to(ROOT / "_build/html/chapters").with_suffix("").as_posix().replace("/", "-")
    )
    for view, options in VIEWS.items():
        page = opened(
            started, f"{site}/{path.relative_to(ROOT / '_build/html').as_posix()}", **options
        )
        page.screenshot(path=OUT / f"{name}.{view}.png", full_page=True)
        page.context.close()


def still(page: Page) -> Image.Image:
    """Take a picture of the machine and of the text next to it."""
    page.wait_for_timeout(60)
    left = page.locator(".drawing").first.bounding_box()["x"] - 8
    clip = {"x": left, "y": 50, "width": page.viewport_size["width"] - 8 - left, "height": 640}
    return Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")


def stop(page: Page, site: str, number: int) -> Image.Image:
    """Move to one of the machine's stops, and return a picture as a reader sees it on arrival."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto("about:blank")  # this undoes what was moved before
    page.goto(f"{site}/chapters/welcome.html#stop-{number}", wait_until="networkidle")
    page.wait_for_function(
        f"document.querySelector('.drawing-steps [aria-current]')?.textContent === '{number}'"
    )
    page.click(".drawing-fold")
    page.wait_for_timeout(500)  # wait until the page has scrolled there
    return still(page)


def film(page: Page, site: str) -> list[tuple[Image.Image, int]]:
    """Return the pictures of the README's film, each with the number of milliseconds it is shown.

    The film shows each stop with one change.
    """
    shown = []
    for number, moved in enumerate(MOVED):
        shown.append((stop(page, site, number), 3_000))
        if not moved:
            continue
        label = page.locator(".drawing label", has_text=moved).first
        hand = label.locator("input, select")
        if hand.get_attribute("type") == "checkbox":
            for _ in range(2):
                hand.click()
                shown.append((still(page), 1_500))
        elif hand.get_attribute("type") == "range":
            for key in ("Home", *["PageUp"] * 10):
                hand.press(key)
                shown.append((still(page), 300))
        else:
            for option in hand.locator("option").all():
                hand.select_option(option.get_attribute("value") or option.text_content())
                shown.append((still(page), 700))
    return shown


def look_at_deck(started: Browser, site: str, path: Path) -> None:
    """Take pictures of all slides of a deck, and put them on one sheet."""
    page = opened(started, f"{site}/slides/{path.name}", viewport={"width": 1280, "height": 720})
    page.wait_for_function("window.deckReady && Reveal.isReady()")
    slides = []
    while True:
        page.evaluate("while (Reveal.availableFragments().next) Reveal.nextFragment()")
        slides.append(OUT / f"{path.stem}.{len(slides) + 1:02}.png")
        page.wait_for_timeout(300)  # wait until fragments have faded in
        page.screenshot(path=slides[-1])
        if page.evaluate("Reveal.isLastSlide()"):
            break
        page.evaluate("Reveal.next()")
    rows = -(-len(slides) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * THUMB[0], rows * THUMB[1]), "#888888")
    for k, slide in enumerate(slides):
        with Image.open(slide) as picture:
            small = picture.convert("RGB").resize((THUMB[0] - 8, THUMB[1] - 8))
        sheet.paste(small, (k % COLUMNS * THUMB[0] + 4, k // COLUMNS * THUMB[1] + 4))
    sheet.save(OUT / f"{path.stem}.sheet.png")
    page.context.close()


def main(part: str = "") -> None:
    """Take pictures of all pages and decks with `part` in their names."""
    OUT.mkdir(parents=True, exist_ok=True)
    pages = sorted((ROOT / "_build/html/chapters").rglob("*.html"))
    decks = sorted((ROOT / "_build/html/slides").glob("*.html"))
    if not any(part in path.as_posix() for path in pages + decks) and part not in "README":
        raise SystemExit(f"no page or deck has {part!r} in its path")
    with browser.served(ROOT / "_build/html") as site, sync_playwright() as playwright:
        path = browser.find() or browser.install()
        started = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        for look, paths in ((look_at_page, pages), (look_at_deck, decks)):
            for path in paths:
                if part in path.as_posix():
                    print(path.relative_to(ROOT / "_build/html"), flush=True)
                    look(started, site, path)
        if part in "README":
            page = started.new_page()
            pictures, times = zip(*film(page, site), strict=True)
            pictures[0].save(
                FILM, save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=50
            )
        started.close()
    print(f"pictures in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
