"""Every sign of a page and of a deck is in a font that the site ships: a machine without fonts of its own shows no boxes.

What is asked is what the fonts' files hold, so the answer is the same on every machine. Chromium is asked once more, on the
deck with the most languages, which fonts it took.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT, SCRIPTS, watched
from fontTools.ttLib import TTFont

pytestmark = pytest.mark.site

SITE = ROOT / "_build/html"
OPENED = [
    "chapters/welcome.html", "chapters/answer.html", "chapters/3-representational-collapse/lesson.html",
    "chapters/7-the-race/lesson.html", "chapters/2-causal-attention/exercises.html", "chapters/scorecard.html",
    "chapters/glossary.html", "chapters/talk.html", "chapters/zh/welcome.html", "chapters/zh/talk.html",
    "chapters/zh/5-rope-frequencies/lesson.html", "live/train.html", "live/index.html",
    "slides/talk.html", "slides/talk.zh.html", "slides/hour.html", "slides/7-the-race-lesson.html",
]  # fmt: skip
SYSTEM = {"sans-serif", "monospace", "serif", "system-ui", "ui-monospace", "inherit"}


def ranges(text: str) -> list[range]:
    """The characters of a unicode-range; all where there is none."""
    found = [part.strip()[2:].partition("-") for part in text.split(",") if part.strip()]
    return [range(int(a, 16), int(b or a, 16) + 1) for a, _, b in found] or [range(0x110000)]


@cache
def held(file: str) -> frozenset[int] | None:
    """The characters of a font's file; None for WOFF2, which takes what its range says."""
    path = SITE / file
    return None if path.suffix == ".woff2" else frozenset(TTFont(path).getBestCmap())


def shipped(site: str, faces: list, names: list[str], sign: str) -> bool:
    code = ord(sign)
    for family, file, allowed in faces:
        if family not in names or not file or not file.startswith(site):
            continue
        path = file.removeprefix(f"{site}/").partition("?")[0]
        inside = any(code in each for each in ranges(allowed))
        if inside and ((known := held(path)) is None or code in known):
            return True
    return False


@pytest.mark.parametrize("name", OPENED)
def test_each_sign_is_in_a_font_that_the_site_ships(opened_once, site, name):
    page = opened_once(name)
    found = page.evaluate(SCRIPTS["faces"])
    faces = found["faces"]
    boxes = {}
    for family, signs in found["written"]:
        names = [each.strip(" \"'") for each in family.split(",")]
        private = {sign for sign in signs if 0xE000 <= ord(sign) < 0xF900}  # icons
        missing = {
            sign
            for sign in set(signs) - private
            if not sign.isspace() and not shipped(site, faces, names, sign)
        }
        missing = {sign for sign in missing if ord(sign) not in (0x200B, 0xFE0E, 0xFE0F)}
        if missing:
            boxes[family] = "".join(sorted(missing))
    assert boxes == {}, "signs that the reader's machine has to have"


@pytest.fixture(scope="module")
def opened_once(chromium, site):
    page = watched(chromium.new_context(viewport={"width": 1280, "height": 800}), site)

    def open_page(name):
        page.goto(f"{site}/{name}", wait_until="load")
        page.evaluate(SCRIPTS["settled"])
        return page

    yield open_page
    page.context.close()


def test_chromium_draws_the_talk_with_the_fonts_of_the_site(opened_once):
    page = opened_once("slides/talk.html")
    page.wait_for_function("window.deckReady && Reveal.isReady()")
    page.evaluate(
        "document.querySelectorAll('.slides section').forEach((slide) => { slide.hidden = false; slide.style.display = 'block' })"
    )
    page.evaluate("document.fonts.ready.then(() => 0)")
    session = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        session.send(f"{domain}.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    nodes = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": ".slides :is(h1, h2, p, li, td, th, [lang], text)"})["nodeIds"]  # fmt: skip
    fonts = [
        font
        for node in nodes
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    ]
    assert len(fonts) > 100
    assert {font["familyName"] for font in fonts if not font["isCustomFont"]} == set()


def test_no_list_of_fonts_names_inherit():
    """A browser drops the whole line then."""
    style = re.compile(r"font(?:-family)?:[^;}\"']*(?:\"[^\"]*\"[^;}]*)?")
    for path in [
        *SITE.glob("slides/*.html"),
        *SITE.glob("chapters/**/*.html"),
        *Path(ROOT / "_static").glob("*.css"),
    ]:
        for line in style.findall(path.read_text()):
            assert not re.search(r"\binherit\s*,|,\s*inherit\b", line), (path.name, line)
