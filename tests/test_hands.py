"""What hands do with the built site: every control of the frame, by mouse, finger and key, at the sizes that readers have.

A phone's height is what its browser leaves of the glass. A page is opened once for several questions, because to open it
takes longer than to ask.
"""

import re

import firefox
import pytest
from conftest import ROOT, SCRIPTS, watched
from playwright.sync_api import TimeoutError as Late

pytestmark = pytest.mark.site

PAGES = {
    "front": "chapters/welcome.html",
    "lesson": "chapters/3-representational-collapse/lesson.html",
    "lab": "chapters/4-counting/lab.html",
    "exercises": "chapters/2-causal-attention/exercises.html",
    "scorecard": "chapters/scorecard.html",
    "glossary": "chapters/glossary.html",
    "Chinese": "chapters/zh/5-rope-frequencies/lesson.html",
    "search": "search.html",
}
PHONE, DESK = (390, 664), (1280, 800)
LOW = [(375, 553), PHONE, (844, 340), (640, 450), (1366, 625)]
WITH = [
    *[(name, PHONE, "mouse") for name in PAGES],
    *[(name, DESK, "mouse") for name in PAGES],
    *[("lesson", size, "mouse") for size in LOW if size != PHONE],
    ("lesson", PHONE, "finger"),
    ("lesson", PHONE, "key"),
    ("lesson", DESK, "key"),
    ("Chinese", PHONE, "finger"),
]


@pytest.fixture(scope="module")
def hand(chromium, site):
    """Open a page at a size, for a finger or for a mouse: one context each."""
    pages = {}

    def open_page(path, size=DESK, touch=False):
        if touch not in pages:
            context = chromium.new_context(has_touch=touch, reduced_motion="reduce")
            pages[touch] = watched(context, site)
            context.set_default_timeout(
                20_000
            )  # a press that is covered is a fault, not a slow machine
        page = pages[touch]
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        page.goto("about:blank")
        page.goto(f"{site}/{path}", wait_until="load")
        page.evaluate(SCRIPTS["settled"])
        return page

    yield open_page
    for page in pages.values():
        page.context.close()


def press(page, control, way):
    control.scroll_into_view_if_needed()
    if way == "key":
        control.press("Enter")
    elif way == "finger":
        control.tap()
    else:
        control.click()


def changed(page, before):
    try:
        page.wait_for_function(
            f"before => ({SCRIPTS['frame_state']})() !== before", arg=before, timeout=4_000
        )
    except Late:
        return False
    return True


@pytest.mark.parametrize(("name", "size", "way"), WITH)
def test_every_control_of_the_frame_does_something(hand, name, size, way):
    """A reader on a phone leaves a page by its menu, and no press by key loses the place where one is."""
    page = hand(PAGES[name], size, touch=way == "finger")
    names = page.evaluate(SCRIPTS["frame_controls"])
    assert page.locator(".primary-toggle").is_visible(), "the menu can be opened"
    sidebar = "Boolean(document.querySelector('.pst-sidebar-hidden'))"
    hidden = page.evaluate(sidebar)
    dead, lost = [], []
    for k, label in enumerate(names):
        control = page.locator(f'[data-pressed="{k}"]')
        if not control.is_visible():
            continue  # a fold in a fold that was closed
        before = page.evaluate(SCRIPTS["frame_state"])
        press(page, control, way)
        if not changed(page, before):
            dead.append(label)
        if way == "key" or "copybtn" in label:
            page.wait_for_timeout(50)
            if page.evaluate("document.activeElement === document.body"):
                lost.append(label)
        page.keyboard.press("Escape")
        page.evaluate("document.fullscreenElement && document.exitFullscreen()")
        if page.evaluate(sidebar) != hidden:
            press(page, page.locator(".primary-toggle"), way)
        if way == "key":
            page.wait_for_timeout(50)
            if page.evaluate("document.activeElement === document.body"):
                lost.append(f"{label}, after Escape")
    assert dead == [], "pressed, and nothing changed"
    assert lost == [], "after a press the focus is nowhere"
    assert page.errors == []


LIVE = {"live/train.html": ["train", "stop", "on", "stop"], "live/index.html": ["load"]}
LIVE_STATE = "() => document.querySelector('main').innerHTML"


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("path", LIVE)
def test_every_control_of_a_live_page_does_something(hand, path, size):
    """Also those that are not there before training begins or the model is loaded."""
    page = hand(path, size)
    page.wait_for_selector("[data-do]")
    last = [f"[data-do={name}]" for name in LIVE[path]]
    others = page.locator(f"main :is(button, summary):not({', '.join(last)}, :disabled):visible")
    for k in range(others.count()):
        others.nth(k).evaluate("(each, k) => (each.dataset.pressed = k)", k)
    presses = [f"[data-pressed='{k}']" for k in range(others.count())] + last
    assert len(presses) > len(last), "what stands there before anything is loaded or trained"
    dead = []
    for selector in presses:
        control = page.locator(selector)
        if not control.count():
            continue  # a press before it drew its part anew
        control.wait_for(state="visible")
        label, before = control.inner_text(), page.evaluate(LIVE_STATE)
        assert control.bounding_box()["width"] < size[0], label
        press(page, control, "mouse")
        try:
            page.wait_for_function(f"before => ({LIVE_STATE})() !== before", arg=before)
        except Late:
            dead.append(label)
    assert dead == [], "pressed, and nothing changed"
    assert page.errors == []


@pytest.mark.parametrize(
    "path", ["chapters/welcome.html", "chapters/answer.html", "chapters/zh/answer.html"]
)
def test_on_a_phone_each_cell_of_the_answer_says_its_column(hand, path):
    page = hand(path, PHONE)
    names = page.locator(".answer-table td:visible").evaluate_all(
        "cells => cells.map((cell) => getComputedStyle(cell, '::before').content)"
    )
    assert len(names) >= 18
    assert not {"none", "normal", '""'} & set(names)


@pytest.mark.parametrize(
    "path", [*(f"chapters/{name}.html" for name in ("welcome", "try")), PAGES["lesson"], *LIVE]
)
def test_a_finger_finds_each_control_of_a_phone(hand, path):
    """WCAG 2.2 asks for 24 pixels; words of a sentence are exempt, and a label belongs to its box."""
    page = hand(path, PHONE, touch=True)
    page.wait_for_selector(":is([data-do], summary, .drawing-steps)")
    small = page.evaluate(
        """() => [...document.querySelectorAll("main :is(button, select, input, summary)")]
            .filter((each) => each.checkVisibility())
            .map((each) => [each.outerHTML.slice(0, 80),
                (each.closest("label:has([type=checkbox], [type=radio])") ?? each).getBoundingClientRect()])
            .filter(([, box]) => box.width > 0 && Math.min(box.width, box.height) < 26)
            .map(([name]) => name)"""
    )
    assert small == []


def test_a_finger_lights_a_word_s_part_of_a_drawing(hand):
    page = hand("chapters/1-over-squashing/lesson.html", PHONE, touch=True)
    page.locator("figure.drawing").first.scroll_into_view_if_needed()
    page.locator(".drawing-word").first.tap()
    page.wait_for_selector("figure[data-lit]")
    page.locator(".drawing-word").first.tap()
    page.wait_for_selector("figure[data-lit]", state="detached")


def test_the_menu_of_a_phone_leads_to_another_page(hand):
    page = hand(PAGES["lesson"], PHONE, touch=True)
    page.locator(".primary-toggle").tap()
    page.locator("dialog[open] a", has_text="4. Counting").tap()
    page.wait_for_url("**/4-counting/lesson.html")


@pytest.mark.parametrize("size", LOW, ids=lambda size: "x".join(map(str, size)))
def test_each_stop_shows_its_text_and_the_machine_s_sentence_at_once(hand, size):
    page = hand(PAGES["front"], size, touch=size[0] < 700)
    page.locator(".guess input").fill("250")
    page.locator(".guess input").press("Enter")
    question = page.evaluate(SCRIPTS["read_stop"], 0)
    assert question["shown"] == 0, question
    assert question["sentence"], f"the sentence is cut: {question}"
    assert question["field"], "the first stop asks: its field is on the screen"
    for stop in range(1, 8):
        found = page.evaluate(SCRIPTS["read_stop"], stop)
        assert found["shown"] == stop, found
        assert found["lines"] >= min(5, found["of"]), f"stop {stop}: {found}"
        assert found["sentence"], f"stop {stop}: the sentence is cut: {found}"


def test_scroll_and_arrows_play_a_stop_by_its_sentences(hand):
    page = hand(PAGES["front"])
    page.emulate_media(reduced_motion="no-preference")
    page.reload(wait_until="load")
    page.evaluate(SCRIPTS["settled"])
    page.evaluate("document.getElementById('stop-1').scrollIntoView()")
    steps = "[...document.querySelectorAll('#stop-1 .film-step')]"
    now = f"{steps}.findIndex((each) => each.matches('.now'))"
    page.wait_for_function(f"{now} >= 0")
    first = page.evaluate(now)
    for key, then in (("ArrowRight", first + 1), ("ArrowLeft", first)):
        page.keyboard.press(key)
        page.wait_for_function(f"{now} === {then}")
    page.wait_for_timeout(1000)
    page.evaluate(
        "scrollBy(0, document.getElementById('stop-1').getBoundingClientRect().bottom - 0.75 * innerHeight)"
    )
    page.wait_for_function(f"{now} === {steps}.length - 1")
    page.wait_for_function(
        "document.querySelector('.drawing-says').textContent.includes('One edge')"
    )
    over = page.evaluate(SCRIPTS["overlaps"], "#stop-1 :is(h2, p)")
    page.emulate_media(reduced_motion="reduce")
    assert not over, "no line of a stop lies on another"


def test_on_a_small_phone_the_machine_can_still_be_moved(hand):
    page = hand(PAGES["front"] + "#stop-2", (375, 553), touch=True)
    slider = page.get_by_label("share kept")
    assert not slider.is_visible(), "its controls leave the room to the text"
    page.locator(".drawing-fold").tap()
    said = page.locator(".machine-stays .drawing-says").inner_text()
    slider.press("End")
    page.wait_for_function(
        "said => document.querySelector('.drawing-says').innerText !== said", arg=said
    )
    assert slider.bounding_box()["y"] > 0
    page.locator(".drawing-fold").tap()
    assert not slider.is_visible()


def test_from_the_machine_the_tab_key_goes_to_the_stop_that_is_shown(hand):
    page = hand(PAGES["front"] + "#stop-3")
    page.locator(".drawing-fold").click()
    page.get_by_label("stored as").focus()
    inside = "document.activeElement.closest('.machine-stops > section')?.id"
    for _ in range(5):
        page.keyboard.press("Tab")
        if page.evaluate(inside):
            break
    assert page.evaluate(inside) == "stop-3"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("Boolean(document.activeElement.closest('.machine-stays'))")


@pytest.mark.parametrize("name", ["lesson", "lab", "Chinese"])
def test_few_tabs_lead_to_the_text(hand, name):
    """The list of pages comes behind it, with a link that skips to it, and in one language."""
    page = hand(PAGES[name])
    for tabs in range(1, 16):  # noqa: B007 it is asked below
        page.keyboard.press("Tab")
        if page.evaluate("Boolean(document.activeElement.closest('.bd-article'))"):
            break
    assert tabs < 15
    assert page.locator(".bd-article [tabindex='0']:is(mjx-container)").count() == 0, (
        "a formula is no stop"
    )
    shown = page.locator(".bd-sidebar-primary .bd-sidenav").all_inner_texts()
    chinese = re.compile("[一-鿿]")
    assert all(bool(chinese.search(text)) == (name == "Chinese") for text in shown if text.strip())


def test_drawings_play_one_step_a_press_for_who_wants_no_motion(hand):
    page = hand("chapters/1-over-squashing/lesson.html")
    figure = page.locator("figure[data-drawing=squash]").first
    hops = figure.get_by_label("hops")
    hops.press("Home")
    figure.locator(".drawing-play button").click()
    page.wait_for_function("box => box.value === '1'", arg=hops.element_handle())
    explore = page.locator("figure.explore", has=page.locator("button[data-plays]")).first
    slider = explore.locator("input[type=range]").first
    slider.press("Home")
    explore.locator("button[data-plays]").first.click()
    assert slider.input_value() == "1"
    page.wait_for_timeout(1_000)
    assert slider.input_value() == "1", "nothing goes on by itself"


def test_without_scripts_no_control_is_dead_and_a_guess_has_its_question(chromium, site):
    page = watched(
        chromium.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844}),
        site,
    )
    page.goto(f"{site}/{PAGES['lesson']}")
    assert not page.locator(".sidebar-toggle:visible, .bd-header-article button:visible").count()
    assert page.locator(".prediction legend, .prediction label").first.is_visible()
    assert not page.locator(".prediction input:visible").count()
    assert page.locator(".bd-sidebar-primary a", has_text="4. Counting").is_visible(), (
        "its pages stand below the text"
    )
    page.goto(f"{site}/search.html")
    assert not page.locator("input:visible").count(), "no field that cannot search"
    page.context.close()


def walked(page, key):
    """The slides that one sees who presses one key to the end."""
    page.keyboard.press("Home")
    page.evaluate("Reveal.slide(0, 0, -1)")
    seen = []
    while True:
        at = page.evaluate("[Reveal.getIndices().h, Reveal.getIndices().v, Reveal.getIndices().f]")
        if seen and seen[-1] == at:
            return seen
        seen.append(at)
        page.keyboard.press(key)


@pytest.mark.parametrize("deck", ["5-rope-frequencies-lab.html", "talk.zh.html"])
def test_the_right_arrow_visits_the_slides_that_a_clicker_does(hand, deck):
    page = hand(f"slides/{deck}")
    page.wait_for_function("window.deckReady && Reveal.isReady()")
    clicker = walked(page, "PageDown")
    assert walked(page, "ArrowRight") == clicker
    assert len({(h, v) for h, v, _ in clicker}) == page.evaluate("Reveal.getTotalSlides()")


def test_every_deck_goes_by_the_right_arrow():
    for path in (ROOT / "_build/html/slides").glob("*.html"):
        assert 'navigationMode: "linear"' in path.read_text(), path.name


@pytest.mark.skipif(firefox.find() is None, reason="no Firefox on this machine")
def test_firefox_opens_the_menu_scrolls_the_machine_and_turns_slides(site):
    with firefox.started() as window:
        window.size(390, 664)
        window.go(f"{site}/{PAGES['lesson']}")
        window.click(".primary-toggle")
        assert window.wait("return document.querySelector('dialog[open] a') !== null")
        window.go(f"{site}/{PAGES['front']}")
        window.click(".drawing-steps button:nth-child(4)")
        assert window.wait(
            "return document.querySelector('.drawing-steps [aria-current]').textContent === '3'"
        )
        window.size(1280, 800)
        window.go(f"{site}/slides/5-rope-frequencies-lab.html")
        assert window.wait("return window.deckReady && Reveal.isReady()")
        slides = window.run("return Reveal.getTotalSlides()")
        for _ in range(200):
            window.key("ArrowRight")
            if window.run("return Reveal.isLastSlide() && !Reveal.availableFragments().next"):
                break
        assert window.run("return Reveal.getSlidePastCount()") == slides - 1


@pytest.mark.parametrize("path", LIVE)
def test_a_page_that_stands_alone_changes_the_colours_for_the_book_too(hand, path):
    page = hand(path)
    grounds = set()
    for _ in range(3):
        press(page, page.locator(".house-colours"), "mouse")
        mode = page.evaluate("localStorage.getItem('mode')")
        assert mode in page.locator(".house-colours").get_attribute("aria-label") or mode == "auto"
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        if mode == "dark":
            dark = page.context.new_page()
            dark.goto(page.url.split("/live/")[0] + "/chapters/data.html")
            assert dark.evaluate("document.documentElement.dataset.theme") == "dark"
            dark.close()
    assert len(grounds) == 2
    assert page.errors == []
