"""The page "Read a config.json" in a real browser: a file dropped, pasted, typed, by mouse and by keyboard, and bad ones."""

import contextlib
import json
import re
import shutil

import live
import pytest
from conftest import AXE, ROOT, SCRIPTS, watched

from book import browser
from course.report import configuration, configured

SIZES = {"phone": (390, 844), "desk": (1280, 900)}
PAGE = """<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8"><title>Read a config.json</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><style>:root{{color-scheme:light dark}}body{{margin:0;font:18px/1.5 sans-serif;background:#fff;color:#1a1a1a}}main{{padding:1rem}}
a{{color:inherit}}@media(prefers-color-scheme:dark){{body{{background:#14181e;color:#e8e8e8}}}}</style></head>
<body><main><h1>Read a config.json</h1>{body}</main></body></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page's own part in both languages, with what `tools/live.py` lays beside it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "frontend/live", site / "live")
    (site / "live/configurations.json").write_text(json.dumps(live.configurations()))
    text = (ROOT / "chapters/config.md").read_text()
    body = re.search(r'<div id="reading">.*?</script>', text, re.DOTALL)[0]
    for language, folder, up in (("en", "chapters", "../"), ("zh-CN", "chapters/zh", "../../")):
        (site / folder).mkdir(parents=True)
        own = body.replace("../live/", f"{up}live/")
        page = PAGE.format(language=language, body=own)
        (site / folder / "config.html").write_text(page)
    with browser.served(site) as found:
        yield found


@pytest.fixture
def opened(chromium, address):
    """Open the page at a size, in a language, with a link."""
    with contextlib.ExitStack() as stack:

        def visit(size: str = "desk", language: str = "en", link: str = "", **options):
            wide, high = SIZES[size]
            context = chromium.new_context(viewport={"width": wide, "height": high}, **options)
            stack.callback(context.close)
            page = watched(context, address)
            folder = "chapters/zh" if language == "zh" else "chapters"
            page.goto(f"{address}/{folder}/config.html{link}")
            page.wait_for_selector("#reading[data-ready]")
            return page

        yield visit


def sane(page) -> None:
    """Nothing failed, nothing was asked of another host, nothing is cut or undefined."""
    assert page.errors == []
    assert page.foreign == []
    assert not re.search(r"NaN|undefined|Infinity|\[object|\{\w+\}", page.inner_text("#reading"))
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def states(page) -> dict[str, list[str]]:
    rows = page.locator(".reading-rows li")
    found: dict[str, list[str]] = {}
    for k in range(rows.count()):
        row = rows.nth(k)
        found.setdefault(row.get_attribute("data-state"), []).append(row.get_attribute("data-key"))
    return found


def drop(page, text: str, name: str = "config.json") -> None:
    page.evaluate(SCRIPTS["dropped_text"], {"text": text, "name": name})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_dropped_file_says_what_python_says(opened, size, language):
    page = opened(size, language)
    entry = configuration.names()["gemma-3-4b"]
    drop(page, json.dumps({"model_type": "gemma3", "text_config": entry["config"]}))
    page.wait_for_selector(".reading-title >> text=config.json")
    facts = configuration.facts(configuration.known("gemma-3-4b") | {"dtype": None}, 100_000)
    wanted = configured.Writer(facts | {"format_said": True}, language).rows()
    said = page.locator(".reading-rows li > p:first-of-type").all_inner_texts()
    assert sorted(said) == sorted(row.text for row in wanted)
    assert page.inner_text(".live-says") == configured.short(wanted, 100_000, language)
    assert page.locator(".reading-clocks svg").count() == 2
    sane(page)


@pytest.mark.parametrize("name", configuration.names())
def test_known_model_is_drawn_at_once(opened, name):
    page = opened("phone", link=f"#known={name}&n=32768")
    assert page.input_value("[data-do=known]") == name
    rows = configured.rows(configuration.known(name), 32_768)
    assert {key for each in states(page).values() for key in each} == {row.key for row in rows}
    assert page.inner_text(".live-says") == configured.short(rows, 32_768)
    sane(page)


def test_length_moves_by_keyboard_and_by_number(opened):
    page = opened(link="#known=mistral-7b-v0.1&n=4096")
    assert "breaks" in states(page)
    assert "length" in states(page)["holds"]
    page.focus("[data-do=slide]")
    page.keyboard.press("End")
    page.wait_for_selector("#reading[data-drawn='1048576']")
    assert {"length", "reach"} <= {*states(page)["breaks"]}
    page.fill("[data-do=n]", "126977")
    page.wait_for_selector("#reading[data-drawn='126977']")
    assert "reach" in states(page)["late"], "32 layers of 4,095 places and itself: 131,041"
    page.fill("[data-do=n]", "131042")
    page.wait_for_selector("#reading[data-drawn='131042']")
    assert "reach" in states(page)["breaks"]
    for bad in ("1", "2000000", "", "3.5"):
        page.fill("[data-do=n]", bad)
        assert "integer from 2 to" in page.inner_text(".live-error")
    sane(page)


@pytest.mark.parametrize("size", SIZES)
def test_whole_page_works_by_keyboard_alone(opened, size):
    """Tab to the list, choose, open the fold, type JSON, and read."""
    page = opened(size)
    page.focus("[data-do=known]")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".reading-title >> text=Mistral")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Tab")
        page.wait_for_function("document.activeElement.dataset.do === 'choose'")
        page.keyboard.press("Enter")
    chooser.value.set_files(
        [{"name": "config.json", "mimeType": "application/json", "buffer": b'{"model_type": "phi3"}'}]
    )  # fmt: skip
    page.wait_for_selector(".reading-title >> text=config.json")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type('{"model_type": "cohere2"}')
    page.wait_for_selector(".reading-title >> text=cohere2")
    assert "design" in states(page)["note"]
    assert page.inner_text(".live-error") == ""
    sane(page)


def test_few_numbers_are_enough(opened):
    page = opened()
    page.click("[data-fold=numbers] summary")
    for name, value in (("num_hidden_layers", 4), ("hidden_size", 256), ("num_attention_heads", 4), ("sliding_window", 64), ("every", 4)):  # fmt: skip
        page.fill(f"[data-typed={name}]", str(value))
    for name in ("num_key_value_heads", "head_dim", "rope_theta"):
        page.fill(f"[data-typed={name}]", "")
    page.fill("[data-do=n]", "5000")
    page.wait_for_selector("#reading[data-drawn='5000']")
    row = page.inner_text("[data-key=reach] p:first-of-type")
    assert "in layer 4 of 4" in row
    made = json.loads(page.input_value("[data-do=text]"))
    assert made["layer_types"] == ["sliding_attention"] * 3 + ["full_attention"]
    page.fill("[data-typed=hidden_size]", "-3")
    assert "hidden_size must be an integer" in page.inner_text(".live-error")
    sane(page)


def bad_texts() -> dict[str, str]:
    from test_configuration import BAD

    return BAD


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", SIZES)
def test_each_bad_file_gets_a_sentence(opened, size, language):
    page = opened(size, language)
    before = page.inner_text(".reading-title")
    for text, word in bad_texts().items():
        drop(page, '{"model_type": "llama"}')
        page.wait_for_function("document.querySelector('.live-error').textContent === ''")
        drop(page, text)
        page.wait_for_function("document.querySelector('.live-error').textContent !== ''")
        said = page.inner_text(".live-error")
        assert said.endswith("。" if language == "zh" else ".")
        if language == "en":
            assert word in said, text[:60]
        assert page.locator(".reading-found.stale").count() == 1, "what was read is marked"
    assert before
    sane(page)


def test_weights_and_markup_do_no_harm(opened):
    page = opened()
    drop(page, "\x00\x00" * 3_000_000, "model.safetensors")
    page.wait_for_function("document.querySelector('.live-error').textContent.includes('weights')")
    drop(page, "{" + " " * 2_100_000 + "}")
    page.wait_for_function("document.querySelector('.live-error').textContent.includes('2000000')")
    evil = "<img src=x onerror=window.broken=1>"
    drop(page, json.dumps({"model_type": evil, "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 1, "layer_types": [evil, evil]}), f"{evil}.json")  # fmt: skip
    page.wait_for_selector(".reading-title >> text=onerror")
    assert page.evaluate("window.broken") is None
    assert page.locator("#reading img").count() == 0
    sane(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_page_is_accessible(opened, scheme, language):
    page = opened("desk", language, color_scheme=scheme, bypass_csp=True)
    for fold in ("paste", "numbers"):
        page.click(f"[data-fold={fold}] summary")
    page.add_script_tag(path=AXE)
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}
    found = page.evaluate(
        "(rules) => axe.run('#reading', rules).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))",
        rules,
    )
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("where", ["chapters/config.html", "chapters/zh/config.html"])
def test_built_page_reads_a_file(chromium, site, where):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, service_workers="block")
    page = watched(context, site)
    page.goto(f"{site}/{where}")
    page.wait_for_selector("#reading[data-ready]")
    drop(page, '{"model_type": "mistral"}')
    page.wait_for_selector(".reading-title >> text=config.json")
    for link in page.locator(".reading-why a").all():
        target = link.evaluate("each => each.href")
        assert page.request.get(target).ok, target
    sane(page)
    context.close()
