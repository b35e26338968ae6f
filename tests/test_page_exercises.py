"""An exercise is answered in a page: typed, checked, told what is wrong, kept; without any other host, on a phone too.

The pages are made here from the exercises' own stubs, so that the book need not be built.
"""

import contextlib
import csv
import html
import http.server
import json
import threading
import types

import answering
import firefox
import pytest
from conftest import AXE, ROOT, SCRIPTS, javascript, watched
from playwright.sync_api import expect
from test_page_answers import judged

from book import browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / "frontend/dist/pyodide").exists(),
        reason="Pyodide is not installed: make frontend",
    ),
]
SETUP = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>Exercises</title>"
COLOURS = "--pst-color-border:#888;--pst-color-surface:#f5f5f5;--pst-color-text-base:#222;--pst-color-text-muted:#555;--pst-color-primary:#0a5c8f;--pst-font-family-monospace:monospace"
RIGHT = {
    "1.1": "def walks(graph, u, v, steps):\n    order = list(graph)\n    return torch.linalg.matrix_power(graphs.adjacency(graph), steps)[order.index(u), order.index(v)]\n",
    "2.1": "def mask(n):\n    return torch.ones(n, n).tril()\n",
    "2.2": "def share(mask):\n    return mask.double() / mask.double().sum(1, keepdim=True)\n",
    "3.3": "prediction = 'the sum of the windows'\n\ndef first_zero(windows):\n    return sum(w - 1 for w in windows) + 1\n",
    "4.2": "def mass(zeros, ones, lead):\n    return ones * math.exp(lead) / (zeros + ones * math.exp(lead))\n",
    "5.8": "def ntk_base(width, base, factor):\n    return base * factor ** (width / (width - 2))\n",
    "6.4": "def off_by_one(logits):\n    return torch.nn.functional.pad(logits, (1, 0)).softmax(-1)[..., 1:]\n",
}
WRONG = {
    "1.3": (
        "def least_width(depth, bits):\n    leaves = 2**depth\n    return math.factorial(leaves).bit_length() // bits\n",
        "",
    ),
    "2.1": ("def mask(n):\n    return torch.ones(n, n).tril(-1)\n", "hide each token from itself"),
    "2.5": (
        "def influence(attentions, residual):\n    product = torch.eye(len(attentions[0]), dtype=attentions.dtype)\n"
        "    for a in attentions:\n        product = a @ product\n    return product\n",
        "out the residual",
    ),
    "3.1": (
        "def total_variation(p, q):\n    return (p - q).abs().sum(-1) / 2\n",
        "half of the paper",
    ),
    "6.4": (
        "def off_by_one(logits):\n    return logits.exp() / (1 + logits.exp().sum(-1, keepdim=True))\n",
        "",
    ),
}


DESK = [  # number and answer, as ten students type them
    *((number, RIGHT[number]) for number in ("1.1", "2.2", "3.3", "4.2", "5.8", "6.4")),
    *((number, WRONG[number][0]) for number in ("1.3", "2.1", "2.5", "3.1")),
]
PHONE = [("2.1", RIGHT["2.1"]), ("2.2", RIGHT["2.2"]), ("2.5", WRONG["2.5"][0])]
needs_firefox = pytest.mark.skipif(firefox.find() is None, reason="no Firefox on this machine")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A site of six pages of exercises, as a build makes them."""
    out = tmp_path_factory.mktemp("site") / "html"
    answering.write(out, out.parent / "kept")
    (out / "pyodide").symlink_to(ROOT / "frontend/dist/pyodide")
    for path in answering.notebooks().values():
        write_page(out, path, answering.listed(path))
    return out


def write_page(out, path, exercises):
    app = types.SimpleNamespace(builder=types.SimpleNamespace(format="html"))
    name = f"chapters/{path.parent.name}/exercises"
    body = "".join(map(section, exercises))
    context = {
        "body": f"<main><article class=bd-article><h1>Exercises</h1>{body}<div class=cell><pre>checks.progress()</pre></div></article></main>"
    }
    answering.add_scripts(app, name, "page.html", context, None)
    target = out / f"{name}.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f'{SETUP}<body style="{COLOURS}">{context["body"]}</body></html>')


@pytest.fixture(scope="module")
def answered(folder):
    """The address of these pages."""
    with browser.served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def verdicts(folder):
    """What a notebook says, with real PyTorch, on the answers of desk and phone, by number and answer."""
    answers = [*DESK, *PHONE]
    calls = {
        each["number"]: each["call"]
        for path in answering.notebooks().values()
        for each in answering.listed(path)
    }
    tasks = []
    for number, source in answers:
        (data,) = folder.glob(f"answers/chapter{number[0]}-*.json")
        tasks.append({"chapter": str(data), "source": source, "call": calls[number]})
    found = judged("notebook", tasks, folder)
    signs = {"right": "✓ Right:", "wrong": "✗ Not yet:"}
    return {
        answer: f"{signs[each['kind']]} {each['sentence']}".replace("`", "")
        for answer, each in zip(answers, found, strict=True)
    }


def strokes(source):
    """The texts and keys of somebody who types an answer and lets the editor indent."""
    found, there = ["Control+a"], 0
    for k, line in enumerate(source.strip().split("\n")):
        depth = len(line) - len(line.lstrip())
        if k:
            found.append("Enter")
        found += ["Backspace"] * ((there - depth) // 4) + ["Tab"] * ((depth - there) // 4)
        found.append(line.strip())
        there = depth + 4 * line.endswith(":")
    return [each for each in found if each]


def section(each):
    number = each["number"].replace(".", "-")
    folds = "".join(
        f"<details><summary>Hint {k}: a word</summary><p>{k}</p></details>" for k in (1, 2, 3)
    )
    return (
        f"<section id=e{number}><h2>{each['number']} {html.escape(each['title'])}</h2><div class=cell><pre>{html.escape(each['stub'])}</pre></div>"
        f"<div class=cell><pre>{html.escape(each['call'])}</pre></div>{folds}</section>"
    )


@pytest.fixture
def visit_exercises(chromium, answered):
    contexts = []

    def open_page(chapter, context=None, **options):
        if context is None:
            context = chromium.new_context(
                **{"viewport": {"width": 1280, "height": 800}, **options}
            )
            contexts.append(context)
        page = watched(context, answered)
        folder = answering.notebooks()[chapter].parent.name
        page.goto(f"{answered}/chapters/{folder}/exercises.html")
        page.locator(".answer").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def answer(page, number, source):
    """The verdict on what is typed."""
    field = page.locator(f"#answer-{number.replace('.', '-')}")
    box = page.locator(".answer", has=field)
    field.fill(source)
    box.locator("[data-do=check]").click()
    verdict = box.locator(".answer-verdict")
    expect(verdict).not_to_be_empty(timeout=120_000)  # the page may wait a moment before it begins
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-do=check]')].every((each) => !each.disabled)"
    )
    return verdict.inner_text()


@pytest.mark.parametrize("chapter", [1, 2, 3, 4, 5, 6])
def test_answers_get_their_verdicts_without_another_host(visit_exercises, chapter):
    page = visit_exercises(chapter)
    for number, source in RIGHT.items():
        if number.startswith(f"{chapter}."):
            assert answer(page, number, source).startswith("✓ Right:"), number
    for number, (source, words) in WRONG.items():
        if number.startswith(f"{chapter}."):
            said = answer(page, number, source)
            assert said.startswith("✗ Not yet:"), said
            assert words in said
    assert not page.foreign
    assert not page.errors


def visit_and_type(open_page, answers, use):
    """What a page in Chromium says on answers that are typed key by key; `use` is how a hand reaches a field or button."""
    said, page = {}, None
    for number, source in answers:
        if page is None or f"/{number[0]}-" not in page.url:
            page = open_page(int(number[0]))
        field = page.locator(f"#answer-{number.replace('.', '-')}")
        use(field)
        for each in strokes(source):
            page.keyboard.press(each) if each in firefox.KEYS else page.keyboard.type(each)
        assert field.input_value() == source.strip()
        box = page.locator(".answer", has=field)
        use(box.locator("[data-do=check]"))
        page.wait_for_function("() => document.querySelector('[data-do=check]').disabled === false")
        said[number, source] = " ".join(box.locator(".answer-verdict").inner_text().split())
        assert not page.foreign
        assert not page.errors
    return said


def test_ten_typed_answers_get_the_notebooks_verdict(visit_exercises, verdicts):
    said = visit_and_type(visit_exercises, DESK, lambda locator: locator.click())
    assert said == {answer: verdicts[answer] for answer in DESK}


def test_a_phone_types_three_answers_and_gets_the_notebooks_verdict(visit_exercises, verdicts):
    pages = []

    def open_page(chapter):
        size = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
        pages.append(visit_exercises(chapter, **size))
        return pages[-1]

    said = visit_and_type(open_page, PHONE, lambda locator: locator.tap())
    assert said == {answer: verdicts[answer] for answer in PHONE}
    assert pages[0].evaluate("document.documentElement.scrollWidth <= innerWidth")
    size = "e => parseFloat(getComputedStyle(e).fontSize)"
    assert pages[0].locator(".answer-code").first.evaluate(size) >= 16


@pytest.fixture(scope="module")
def window():
    with firefox.started() as window:
        yield window


def open_in_firefox(window, answered, chapter):
    window.go(f"{answered}/chapters/{answering.notebooks()[chapter].parent.name}/exercises.html")
    assert window.wait("return document.querySelector('.answer') !== null")


def typed_in_firefox(window, answered, answers):
    """What a page in Firefox says on answers that are typed key by key."""
    said, shown = {}, None
    for number, source in answers:
        if shown != number[0]:
            shown = number[0]
            open_in_firefox(window, answered, int(shown))
        field = f"#answer-{number.replace('.', '-')}"
        window.type(field, strokes(source))
        assert window.run(f"return document.querySelector('{field}').value") == source.strip()
        window.type(field, ["Control+Enter"])
        box = f"document.querySelector('{field}').closest('.answer')"
        done = f"return {box}.querySelector('.answer-verdict').textContent && !{box}.querySelector('[data-do=check]').disabled"
        assert window.wait(done, 240)
        text = window.run(f"return {box}.querySelector('.answer-verdict').innerText")
        said[number, source] = " ".join(text.split())
        asked = window.run(
            "return performance.getEntriesByType('resource').map((each) => each.name)"
        )
        assert all(each.startswith((answered, "blob:", "data:")) for each in asked)
    return said


@needs_firefox
def test_firefox_ten_typed_answers_get_the_notebooks_verdict(window, answered, verdicts):
    window.size(1280, 800)
    said = typed_in_firefox(window, answered, DESK)
    assert said == {answer: verdicts[answer] for answer in DESK}


@needs_firefox
def test_firefox_three_answers_at_a_phones_size(window, answered, verdicts):
    window.size(390, 664)
    said = typed_in_firefox(window, answered, PHONE)
    assert said == {answer: verdicts[answer] for answer in PHONE}
    assert window.run("return document.documentElement.scrollWidth <= innerWidth")


@needs_firefox
def test_firefox_a_loop_and_a_reload_lose_nothing_typed(window, answered):
    open_in_firefox(window, answered, 2)
    loop = "def share(mask):\n    while True:\n        pass"
    window.type("#answer-2-2", strokes(loop))
    window.type("#answer-2-2", ["Control+Enter"])
    window.send("WebDriver:Refresh")
    assert window.wait("return document.querySelector('#answer-2-2') !== null")
    assert window.run("return document.querySelector('#answer-2-2').value") == loop
    window.type("#answer-2-2", ["Control+Enter"])
    shown = "document.querySelector('#answer-2-2').closest('.answer').querySelector('.answer-verdict').textContent"
    assert window.wait(f"return {shown}.includes('Does it contain a loop that never ends')", 240)
    assert window.run("return document.querySelector('#answer-2-2').value") == loop


def test_nothing_large_is_loaded_before_somebody_types_or_checks(visit_exercises):
    page = visit_exercises(2)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(500)
    assert not [url for url in asked if "pyodide" in url or ".zip" in url]
    page.locator("#answer-2-1").press_sequentially("#")
    page.wait_for_function("() => courseAnswers.python.files")
    assert [url for url in asked if "pyodide.asm.wasm" in url]


@pytest.mark.parametrize(("body", "words"), [
    ("    raise NotImplementedError\n", "press Check again"),
    ("    while True:\n        pass\n", "Does it contain a loop that never ends"),
    ("    return [0] * 10**10\n", "more memory than the browser gives"),
    ("    import js\n    return js.fetch('/')\n", "there is no js"),
    ("    import pyodide_js\n", "there is no pyodide_js"),
    ("    import urllib.request\n    return urllib.request.urlopen('http://127.0.0.1').read()\n", "raised"),
    ("    return open('/course/desk.py').read()[:10] and __import__('numpy').zeros(3)\n", "NumPy, which the page does not have"),
    ("    return torch.foo(n)\n", "no torch.foo"),
    ("    return torch.ones(n).view(3, 3)\n", "raised RuntimeError"),
])  # fmt: skip
def test_what_an_answer_must_not_do_is_said(visit_exercises, body, words):
    page = visit_exercises(2)
    page.evaluate("document.cookie = 'own=1'")
    said = answer(page, "2.1", f"def mask(n):\n{body}")
    assert words in said
    assert answer(page, "2.1", RIGHT["2.1"]).startswith("✓ Right:"), (
        "the next answer is judged as ever"
    )
    assert not page.foreign


def test_a_learners_code_reaches_no_network_page_or_storage_from_javascript(visit_exercises):
    """Even where it gets hold of JavaScript, the policy of its frame and its own origin hold it."""
    page = visit_exercises(2)
    code = (
        "def mask(n):\n    import desk\n    tell = desk.STATE.tell\n    found = []\n    for text in ('return fetch', 'return localStorage', 'return document'):\n"
        "        try:\n            found.append(str(tell.constructor(text)()))\n        except Exception as error:\n            found.append(type(error).__name__)\n"
        "    raise ValueError(' '.join(found))\n"
    )
    said = answer(page, "2.1", code)
    assert "ValueError: JsException JsException JsException" in said
    frame = page.locator("iframe")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    assert "default-src 'none'" in frame.get_attribute("srcdoc")


@contextlib.contextmanager
def listening():
    """A server that lets everybody in, and the paths that it was asked for."""
    asked = []

    class Open(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Open)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/own.js", asked
    finally:
        server.shutdown()
        server.server_close()


def test_the_frame_of_python_lets_no_javascript_out(visit_exercises):
    page = visit_exercises(2)
    assert answer(page, "2.1", RIGHT["2.1"]).startswith("✓")
    with listening() as (address, asked):
        page.evaluate("(address) => fetch(address)", address)
        assert asked == ["/own.js"], "the page itself reaches this server"
        found = page.evaluate(f"({SCRIPTS['escape']})('{address}')")
        assert asked == ["/own.js"]
    assert set(found.values()) == {"refused"}, found


@needs_firefox
def test_firefox_the_frame_of_python_lets_no_javascript_out(window, answered):
    open_in_firefox(window, answered, 2)
    window.type("#answer-2-1", [*strokes(RIGHT["2.1"]), "Control+Enter"])
    assert window.wait("return courseAnswers.python.running", 240)
    with listening() as (address, asked):
        window.run(f"({SCRIPTS['escape']})('{address}').then((found) => (window.found = found))")
        assert window.wait("return window.found", 60)
        assert asked == []
    found = window.run("return window.found")
    assert set(found.values()) == {"refused"}, found


def test_what_an_answer_says_is_text(visit_exercises):
    page = visit_exercises(2)
    said = answer(
        page,
        "2.1",
        "def mask(n):\n    print('<script>document.title = \"changed\"</script><b>x</b>')\n    return '<img src=x onerror=alert(1)>'\n",
    )
    assert "<img src=x onerror=alert(1)>" in said
    assert "<script>" in said
    assert page.title() == "Exercises"
    assert (
        page.locator(".answer-verdict img, .answer-verdict script, .answer-verdict b").count() == 0
    )


def test_a_link_carries_no_code(visit_exercises, answered):
    page = visit_exercises(2)
    page.goto(page.url + "#answer-2-1=def%20mask(n):%20pass?code=x")
    page.reload()
    page.locator(".answer").first.wait_for()
    assert "NotImplementedError" in page.locator("#answer-2-1").input_value()
    assert page.evaluate("courseAnswers.python.loading") is None


def test_the_editor_indents_undoes_and_lets_go(visit_exercises):
    page = visit_exercises(2)
    field = page.locator("#answer-2-1")
    field.fill("")
    field.press_sequentially("def mask(n):\nreturn 1")
    assert field.input_value() == "def mask(n):\n    return 1"
    field.press("Tab")
    assert field.input_value().startswith("def mask(n):\n    return 1 ")
    field.press("Control+z")
    assert field.input_value() == "def mask(n):\n    return 1"
    focused = "() => document.activeElement.id"
    field.press("Shift+Tab")
    assert page.evaluate(focused) != "answer-2-1"
    field.focus()
    field.press("Escape")
    field.press("Tab")
    assert page.evaluate(focused) != "answer-2-1"


def test_hints_come_one_after_the_other(visit_exercises):
    page = visit_exercises(2)
    folds = page.locator("#e2-1 details")
    assert [folds.nth(k).is_visible() for k in range(3)] == [True, False, False]
    folds.nth(0).locator("summary").click()
    folds.nth(1).wait_for()
    assert [folds.nth(k).is_visible() for k in range(3)] == [True, True, False]


def test_what_was_typed_and_solved_outlives_a_reload_an_update_and_a_closed_tab(visit_exercises):
    page = visit_exercises(2)
    assert answer(page, "2.1", RIGHT["2.1"]).startswith("✓")
    page.locator("#answer-2-2").fill("def share(mask):\n    # half")
    page.close()
    again = visit_exercises(2, context=page.context)
    assert again.locator("#answer-2-2").input_value() == "def share(mask):\n    # half"
    assert again.locator("h2[data-answered=right]").count() == 1
    assert again.locator(".answer-counts").inner_text().startswith("1 of 10 right, 1 tried.")
    again.locator("#answer-2-2").fill("def share(mask):\n    while True:\n        pass\n")
    again.locator(".answer", has=again.locator("#answer-2-2")).locator("[data-do=check]").click()
    again.reload()
    again.locator(".answer").first.wait_for()
    assert "while True" in again.locator("#answer-2-2").input_value()


@pytest.mark.parametrize(
    "body",
    [
        "    while True:\n        pass",
        "    held = []\n    while True:\n        held.append(bytearray(10**8))",
        "    return sum(iter(int, 1))",
    ],
)
def test_what_was_typed_outlives_code_that_goes_wrong(visit_exercises, body):
    page = visit_exercises(2)
    page.evaluate(
        """() => {
          const python = courseAnswers.python, check = python.check;
          python.check = (source, call, given) => check.call(python, source, call, { ...given, seconds: 12 });
        }"""
    )
    wrong = f"def mask(n):\n{body}"
    assert answer(page, "2.1", wrong).startswith("✗ Not yet:")
    assert page.locator("#answer-2-1").input_value() == wrong
    page.reload()
    page.locator(".answer").first.wait_for()
    assert page.locator("#answer-2-1").input_value() == wrong


def test_what_was_typed_outlives_an_update_of_the_site(visit_exercises, folder):
    """The files of the old version go away while a page is open, and its exercise gets another stub."""
    page = visit_exercises(2)
    page.locator("#answer-2-2").fill("def share(mask):\n    # half")
    page.wait_for_function("() => courseAnswers.python.files")
    sizes = folder / "answers/sizes.json"
    before = sizes.read_text()
    old = json.loads(before)["version"]
    moved = {
        path: path.with_name(path.name.replace(old, "new"))
        for path in folder.glob(f"answers/*-{old}.*")
    }
    path = answering.notebooks()[2]
    try:
        for one, other in moved.items():
            one.rename(other)
        sizes.write_text(before.replace(old, "new"))
        changed = [
            each | {"stub": each["stub"] + "\n# a new line"} for each in answering.listed(path)
        ]
        write_page(folder, path, changed)
        assert answer(page, "2.1", RIGHT["2.1"]).startswith("✓ Right:"), "with what it had loaded"
        page.reload()
        page.locator(".answer").first.wait_for()
        assert page.locator("#answer-2-2").input_value() == "def share(mask):\n    # half"
        assert page.locator("#answer-2-1").input_value() == RIGHT["2.1"]
        assert answer(page, "2.2", RIGHT["2.2"]).startswith("✓ Right:"), "with the new files"
    finally:
        for one, other in moved.items():
            other.rename(one)
        sizes.write_text(before)
        write_page(folder, path, answering.listed(path))


def test_start_over_can_be_undone_by_a_button(visit_exercises):
    page = visit_exercises(2)
    field = page.locator("#answer-2-1")
    field.fill("def mask(n):\n    return 1")
    page.get_by_role("button", name="Start over").first.click()
    assert "NotImplementedError" in field.input_value()
    page.get_by_role("button", name="Undo").click()
    assert field.input_value() == "def mask(n):\n    return 1"
    page.get_by_role("button", name="Start over").first.click()
    field.press("x")
    assert page.get_by_role("button", name="Undo").count() == 0


def test_a_second_tab_follows_the_first(visit_exercises):
    one = visit_exercises(2)
    other = visit_exercises(2, context=one.context)
    one.locator("#answer-2-1").fill("# from the first tab")
    other.wait_for_function(
        "() => document.querySelector('#answer-2-1').value === '# from the first tab'"
    )
    other.locator("#answer-2-2").fill("# from the second tab")
    one.wait_for_function(
        "() => document.querySelector('#answer-2-2').value === '# from the second tab'"
    )
    assert one.locator("#answer-2-1").input_value() == "# from the first tab"


def test_progress_is_exported_imported_and_deleted(visit_exercises):
    page = visit_exercises(2)
    page.evaluate(
        "courseAnswers.store.change((s) => { s.done['2.1'] = { state: 'right', tries: 2, at: 5 }; s.answers['2.1'] = 'mine'; })"
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    kept = json.loads(download.value.path().read_text())
    assert kept["done"]["2.1"]["state"] == "right"
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete all").click()
    assert page.locator(".answer-counts").inner_text().startswith("0 of 10 right")
    assert page.evaluate("localStorage.getItem('course-progress')") is None
    page.locator("input[type=file]").set_input_files(
        {"name": "p.json", "mimeType": "application/json", "buffer": json.dumps(kept).encode()}
    )
    page.wait_for_function(
        "() => document.querySelector('.answer-counts').textContent.startsWith('1 of 10')"
    )
    assert page.locator("#answer-2-1").input_value() == "mine"
    page.locator("input[type=file]").set_input_files(
        {"name": "p.json", "mimeType": "application/json", "buffer": b"[1]"}
    )
    page.get_by_text("That file could not be read").wait_for()


FILL = """for (let size = 2**22; size; size >>= 1) {
  try { for (;;) localStorage.setItem(`${size} ${Math.random()}`, "x".repeat(size)); } catch { /* full */ }
}"""


@pytest.mark.parametrize(("script", "words"), [
    (FILL, "storage is full"),
    ("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }", "storage is full"),
    ("Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })", "forbids storage"),
])  # fmt: skip
def test_without_storage_the_page_works_and_says_so(visit_exercises, chromium, script, words):
    context = chromium.new_context()
    context.add_init_script(script)
    page = visit_exercises(2, context=context)
    assert answer(page, "2.1", RIGHT["2.1"]).startswith("✓ Right:")
    assert words in page.locator(".answer-kept").inner_text()
    assert page.locator(".answer-counts").inner_text().startswith("1 of 10 right")
    page.locator("#answer-2-2").press_sequentially("#")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.close(run_before_unload=True)
    page.wait_for_event("close")
    assert asked == ["beforeunload"], "the browser asks before it forgets what was typed"
    context.close()


def test_opened_as_a_file_a_page_says_how_to_serve_it(chromium, answered, tmp_path):
    folder = answering.notebooks()[2].parent.name
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{answered}/chapters/{folder}/exercises.html")
    path = tmp_path / "exercises.html"
    path.write_text(page.content())
    page.goto(path.as_uri())
    assert "python -m http.server" in page.locator(".answer-file").inner_text()
    context.close()


def test_an_exercise_that_cannot_be_checked_here_says_why(visit_exercises):
    page = visit_exercises(6)
    said = page.locator("#e6-10 .answer-elsewhere").inner_text()
    assert "It trains a decoder" in said
    assert "Download the notebook" in said


def test_the_page_has_no_finding_of_axe(visit_exercises):
    page = visit_exercises(2)
    answer(page, "2.1", WRONG["2.1"][0])
    page.add_script_tag(path=str(AXE))
    found = page.evaluate(
        "axe.run('.answer, .answer-progress').then((r) => r.violations.map((v) => v.id))"
    )
    assert found == []


def test_a_question_comes_back_after_a_lesson_two_and_a_week():
    found = javascript("cards", None)
    assert found["known"] == {"step": 1, "due": 86_400_000, "seen": 0, "at": 2}
    assert found["missed"]["step"] == 0
    never = {"same lesson", "just marked"}
    assert found["due"] == {name: name not in never for name in found["due"]}


def test_anki_gets_each_question_with_its_id_and_quotation_marks():
    """Anki reads a file as `csv` does: a field that has quotation marks stands in others, and its own are doubled."""
    lines = javascript("cards", None)["anki"].splitlines()
    head = dict(line.removeprefix("#").split(":") for line in lines if line.startswith("#"))
    assert (head["separator"], head["guid column"], head["tags column"]) == ("tab", "1", "4")
    rows = [*csv.reader([line for line in lines if not line.startswith("#")], delimiter="\t")]
    assert rows == [
        ["connection-bottlenecks-a", r"What is \(x\)?", "It is 1.", "connection-bottlenecks::2"],
        ["connection-bottlenecks-b", '"It fades." Refute it.', "No.", "connection-bottlenecks::3"],
    ]
