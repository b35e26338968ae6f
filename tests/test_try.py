"""The page "Try it": its small mathematics and its tokenizer against Python, and a reader's way through it in Chromium."""

import base64
import hashlib
import json
import math
import re
import urllib.parse

import live
import pytest
import torch
from conftest import AXE, ROOT, SCRIPTS, javascript, watched

from book import browser, export
from course.training import checkpoints
from helpers import attention, intervention, models, probe
from helpers.transformer import Decoder

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

LIVE = ROOT / "frontend/live"
SHAPE = {
    "layers": 30,
    "heads": 9,
    "groups": 3,
    "size": 64,
    "width": 576,
    "vocabulary": 49152,
    "base": 1e5,
}
FOX = "<|im_start|>The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy"


# what a reader sets, and the same in Python
CHANGES = {
    "as trained": ({}, lambda model, n: {}),
    "base": ({"base": "1000"}, lambda model, n: {"rope": intervention.turns(model, n, base=1000)}),
    "quarters": (
        {"quarters": "otts", "silent": "9, 11-12"},
        lambda model, n: {"rope": intervention.turns(model, n, silent=[*range(8), 8, 10, 11], still=range(24, 32))},
    ),
    "positions": (
        {"stretch": "1.5", "gap": 10, "after": 4},
        lambda model, n: {"rope": intervention.turns(model, [1.5 * k + 10 * (k >= 4) for k in range(n)])},
    ),
    "window": ({"window": 3}, lambda model, n: {"mask": attention.window_mask(n, 3)}),
    "hidden": ({"first": True, "hide": "3, 5-6"}, lambda model, n: {"mask": unseen(n, 0, 2, 4, 5)}),
    "heads": ({"off": "1.1, 30.*"}, lambda model, n: {"heads": gains(1, (0, 0), *((29, h) for h in range(9)))}),
    "alone": ({"alone": "2.3, 4.*"}, lambda model, n: {"heads": 1 - gains(1, (1, 2), *((3, h) for h in range(9)))}),
    "temperature": ({"temperature": 4}, lambda model, n: {"temperature": 4.0}),
}  # fmt: skip


def unseen(n: int, *tokens: int) -> torch.Tensor:
    mask = attention.causal_mask(n)
    for token in tokens:
        mask[token + 1 :, token] = False
    return mask


def gains(rest: float, *off: tuple[int, int]) -> torch.Tensor:
    found = torch.full((30, 9), float(rest))
    for layer, head in off:
        found[layer, head] = 0
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_of_the_page_is_the_same_intervention_in_python(name, smollm2):
    n, (settings, python) = 9, CHANGES[name]
    found, wanted = (
        javascript("inputs", {"settings": settings, "shape": SHAPE, "n": n}),
        python(smollm2, n),
    )
    turns = (
        wanted.get("rope", intervention.turns(smollm2, n)) / wanted.get("temperature", 1.0) ** 0.5
    )
    for table, part in (("cos", turns.real), ("sin", turns.imag)):
        assert torch.allclose(
            torch.tensor(found[table]).view(n, 64), torch.cat([part] * 2, -1).float(), atol=1e-6
        )
    assert torch.equal(
        torch.tensor(found["seen"]).view(n, n), wanted.get("mask", attention.causal_mask(n))
    )
    assert torch.equal(
        torch.tensor(found["gain"]).view(30, 9), wanted.get("heads", gains(1)).float()
    )


def test_the_measures_of_the_page_are_those_of_the_course():
    torch.manual_seed(0)
    n = 12
    maps = (3 * torch.randn(5, n, n)).masked_fill(~attention.causal_mask(n), -torch.inf).softmax(-1)
    maps[0, -1] = torch.eye(n)[0]  # at the last offset, which too few tokens have, is no slash
    maps[1, 9:] = torch.eye(n)[: n - 9]  # nor at the first of the last quarter of the offsets
    a, b = torch.randn(2, 50)
    found = javascript(
        "measures", {"maps": maps.flatten().tolist(), "n": n, "a": a.tolist(), "b": b.tolist()}
    )
    stochastic = maps.double() / maps.double().sum(-1, keepdim=True)
    for head, score in enumerate(found["scores"]):
        assert score["sink"] == pytest.approx(
            float(attention.sink_score(stochastic[head])), abs=1e-5
        )
        for name, offset in (("diagonal", 0), ("previous", 1), ("slash", score["offset"])):
            assert score[name] == pytest.approx(
                float(attention.slash_score(stochastic[head], offset)), abs=1e-5
            )
        slashes = [float(attention.slash_score(stochastic[head], offset)) for offset in range(2, 9)]
        assert score["slash"] == pytest.approx(max(slashes), abs=1e-5)
    p, q = a.double().softmax(0), b.double().softmax(0)
    assert found["divergence"] == pytest.approx(float((p * (p / q).log()).sum()), abs=1e-6)
    assert found["marks"] == ["sink", ""], "above the threshold of all chapters"
    assert found["same"] == 0
    assert found["likeliest"] == a.topk(4).indices.tolist()
    assert found["softmax"] == pytest.approx(p.tolist(), abs=1e-9)
    assert found["distance"] == pytest.approx(float((a - b).abs().sum()), abs=1e-4)
    assert found["size"] == pytest.approx(float(a.abs().sum()), abs=1e-4)


def test_a_link_holds_everything_and_nonsense_in_it_does_no_harm():
    data = {"prompt": "a & b = c # 100 % +\n😀", "window": 8, "first": True, "quarters": "otts"}
    data |= {"off": "1.2, 3.*", "view": "heads", "base": "1e4"}
    found = javascript("link", data)
    assert found["same"]
    odd = found["odd"]
    assert (odd["window"], odd["token"], odd["first"], odd["stretch"]) == (0, 0, False, 1)
    assert len(odd["prompt"]) <= 4000


@pytest.mark.parametrize(
    "settings",
    [{"base": "0"}, {"base": "1e300"}, {"base": "x"}, {"base": "-5"}, {"window": -1}, {"window": 1.5}, {"silent": "33"}, {"silent": "5-2"},
     {"silent": "a"}, {"hide": "99"}, {"hide": "0"}, {"off": "31.1"}, {"off": "1"}, {"alone": "1.10"}, {"temperature": 0}, {"temperature": "NaN"},
     {"stretch": "Infinity"}, {"every": "-3"}, {"quarters": "tt"}],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused_in_a_sentence(settings):
    found = javascript("refused", {"settings": settings, "shape": SHAPE})
    assert found is not None
    assert found["field"] == next(iter(settings))
    assert found["said"].endswith(".")


@pytest.mark.site
def test_the_tokenizer_of_the_page_is_the_models(smollm2):
    texts = [
        FOX, "", " ", "1234567890", "3.14 + 12\n\n 7", "a\r\n\tb  c   d", "😀👩‍👩‍👧🏽", "שלום עולם", "مرحبا بالعالم", "你好，世界", "नमस्ते दुनिया", "Ünïcödé ﬁ ½x² Ⅷ٣ ﷺ", "don't we'll I'M",
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start", "\x00\x07", "__init__(self, *args):", "1,1,1", "a" * 500, "\u202eabc\u202c", "e\u0301",
    ]  # fmt: skip
    found = javascript("tokens", {"texts": texts, **live.tokenizer(models.embedded())})
    assert found == [probe.encode(smollm2, text).tolist() for text in texts]


def test_a_token_keeps_its_number_when_separators_come_between():
    settings = {"hide": "1, 3", "gap": 9, "after": 3}
    found = javascript(
        "separated", {"ids": [11, 12, 13, 14, 15], "settings": settings, "shape": SHAPE}
    )
    assert found["ids"] == [11, 12, 0, 13, 14, 0, 15]
    assert found["hidden"] == [11, 13]
    assert found["places"] == [0, 1, 2, 3, 13, 14, 15]


def test_the_stored_run_is_of_the_first_prompt():
    assert javascript("preset") == live.PROMPT


@pytest.mark.parametrize("name", ["index.html", "small.html", "train.html"])
def test_the_policy_lets_run_what_the_page_brings_and_nothing_else(name):
    text = (LIVE / name).read_text()
    inline = re.findall(r"<script>(.*?)</script>", text, re.S)
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in inline
    ]
    assert [f"'sha256-{digest}'" for digest in hashes] == re.findall(r"'sha256-[^']+'", text)
    assert "unsafe-inline" not in re.search(r"script-src([^;]*)", text)[1]


@torch.no_grad()
def assert_decoder_equal(model: Decoder, vocabulary: list[str], letters: str, ask: str):
    written = export.course_decoder(model) | {"vocabulary": vocabulary}
    found = javascript("prefixes", {"model": written, "letters": letters, "ask": ask})
    for n in range(1, len(letters) + 1):
        tokens = torch.tensor([[vocabulary.index(text) for text in ["<s>", *letters[:n], ask]]])
        assert torch.allclose(torch.tensor(found["logits"][n - 1]), model(tokens)[0, -1], atol=1e-4)
        assert torch.allclose(
            torch.tensor(found["states"][n - 1]), model.states(tokens)[0, -1], atol=1e-4
        )


@pytest.mark.parametrize("name", live.SMALL)
def test_a_small_model_of_the_page_is_the_checkpoint(name):
    trained = checkpoints.load(name)
    letters, ask = ("xyyxxyxyyyxxy" * 3, "=") if "count" in name else ("0110111010011" * 3, "last")
    assert_decoder_equal(trained.model, trained.card["vocabulary"], letters, ask)
    assert_decoder_equal(trained.model, trained.card["vocabulary"], letters[:1] * 64, ask)


@pytest.mark.parametrize(
    "options",
    [{"encoding": "ALiBi"}, {"window": 3}, {"norm": False}, {"turning": 0.5, "base": 50.0}],
)
def test_a_decoder_of_any_make_is_the_pages(options):
    torch.manual_seed(0)
    assert_decoder_equal(Decoder(4, 16, 2, 2, **options), ["<s>", "a", "b", "?"], "abbabaaab", "?")


# In the browser ------------------------------------------------------------------------------------------


@pytest.mark.site
def test_the_model_lies_beside_the_book_in_parts_that_any_host_takes():
    folder = ROOT / "_build/html/live"
    facts = json.loads((folder / "model.json").read_text())
    assert (
        facts["bytes"]
        == sum((folder / file["name"]).stat().st_size for file in facts["files"])
        < 115e6
    )
    assert all(file["bytes"] < 25e6 for file in facts["files"])
    assert facts["shape"] == SHAPE


def test_opened_as_a_file_the_page_says_how_to_serve_it(chromium):
    page = chromium.new_page()
    page.goto((ROOT / "_build/html/live/index.html").as_uri())
    assert "http.server" in page.inner_text("main")
    page.close()


def test_a_run_is_drawn_before_anything_large_is_asked_for(visit):
    page = visit("live/index.html")
    page.wait_for_selector("#live[data-stored=next]")
    assert "“·dog” is likeliest: 0.99" in page.inner_text("#live-panel")
    page.locator("[data-token='5']").click()
    assert page.get_attribute("[data-token='5']", "aria-pressed") == "true"
    page.click("#tab-heads")
    page.wait_for_selector("#live[data-stored=heads]")
    counted = re.findall(
        r"\d+(?= (?:sink|diagonal|previous|slash))", page.inner_text("#live-panel")
    )
    assert len(counted) == 4
    assert int(counted[0]) > 50
    assert page.errors == page.foreign == []


def test_on_a_phone_a_line_says_what_a_preset_changes(visit):
    page = visit("live/index.html", viewport={"width": 390, "height": 844})
    page.select_option("[data-do=preset]", label="5 · The fast quarter of RoPE off")
    assert page.get_attribute(".live-change", "open") is None
    summary = page.inner_text(".live-change summary")
    assert "the fastest quarter of the pairs is off" in summary
    page.select_option("[data-do=preset]", label="A fox, twice")
    assert "as trained" in page.inner_text(".live-change summary")
    assert page.errors == []


@pytest.mark.parametrize("name", ["index", "small", "train"])
def test_a_page_that_stands_alone_leads_back_and_is_dark_as_the_book(visit, name):
    page = visit(f"live/{name}.html")
    back = page.locator(".house a")
    targets = back.evaluate_all("links => links.map((each) => each.href)")
    assert any(target.endswith("chapters/welcome.html") for target in targets)
    assert all(page.request.get(target).ok for target in targets)
    page.evaluate("localStorage.setItem('mode', 'dark')")
    page.reload()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(20, 24, 30)"


def test_typing_goes_on_where_a_browser_limits_the_history(visit):
    """Safari throws from the hundredth change of the address within seconds on."""
    page = visit("live/index.html", bypass_csp=True)
    page.evaluate(SCRIPTS["history"])
    page.fill("[data-set=prompt]", "")
    page.locator("[data-set=prompt]").press_sequentially("ab" * 60)
    page.wait_for_function("decodeURIComponent(location.hash).includes('abab')")
    page.click("#tab-heads")
    page.click("#tab-next")
    assert page.errors == []


def test_a_missing_list_of_files_and_an_old_browser_are_told(visit):
    page = visit("live/index.html", service_workers="block")
    page.context.route(
        "**/model.json", lambda handler: handler.fulfill(status=404, body="<!DOCTYPE html>")
    )
    page.click("[data-do=load]")
    page.wait_for_selector(".live-status.bad")
    assert "model.json, is not beside this page (the site answers 404)" in page.inner_text(
        ".live-status"
    )
    for name in ("index", "small"):
        old = visit("live/index.html")
        script = re.compile(r"/(app|small)\.js$")
        old.context.route(
            script, lambda handler: handler.fulfill(body="}", content_type="text/javascript")
        )
        old.goto(old.url.replace("index", name))
        assert "the browser is too old" in old.inner_text("main")


@pytest.fixture(scope="module")
def loaded(chromium, site):
    """The page with the model loaded, once for the tests below; other hosts are blocked."""
    # a test's waiting evaluates text in the page, which its policy forbids; the tests of loading keep the policy
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, service_workers="block", bypass_csp=True
    )
    page = watched(context, site)
    page.goto(f"{site}/live/index.html")
    page.evaluate("live.addEventListener('computed', ({ detail }) => (window.found = detail))")
    button = page.locator("[data-do=load]")
    page.wait_for_function(
        "document.querySelector('[data-do=load]').textContent.includes('MB, once')"
    )
    button.dblclick()
    page.wait_for_selector("[data-computed]")
    yield page
    assert page.foreign == []
    context.close()


def sent(page, **state) -> str:
    """Follow a link with this state; the status line when all is computed."""
    page.evaluate(
        "live.removeAttribute('data-computed'); live.removeAttribute('data-drawn'); window.found = null"
    )
    page.evaluate("hash => { location.hash = hash }", "#" + urllib.parse.urlencode(state))
    page.wait_for_selector("[data-computed]")
    if "refused" not in page.get_attribute("#live", "data-computed"):
        page.wait_for_selector("[data-drawn]")
    assert not re.search(r"NaN|undefined|\[object", page.inner_text("main"))
    return page.inner_text(".live-status")


@pytest.mark.slow
def test_a_reader_takes_the_fast_quarter_away_and_sees_which_heads_lose_their_slash(
    loaded, smollm2
):
    sent(loaded, prompt=FOX, view="heads")
    loaded.locator(".live-change summary").click()
    loaded.evaluate("live.removeAttribute('data-computed')")
    loaded.select_option('[data-quarter="0"]', "o")
    loaded.wait_for_selector("[data-computed]")
    loaded.wait_for_function("document.querySelectorAll('.live-atlas').length === 2")
    ids = probe.encode(smollm2, FOX)
    n = len(ids)
    plain = intervention.read(smollm2, ids)
    silent = intervention.read(smollm2, ids, rope=intervention.turns(smollm2, n, silent=range(8)))
    for side, wanted in (("trained", plain), ("changed", silent)):
        found = loaded.evaluate(SCRIPTS["outputs"], side)
        assert torch.allclose(
            torch.tensor(found["maps"]).view(30, 9, n, n), wanted.attentions, atol=1e-3
        )
        assert torch.allclose(torch.tensor(found["last"]), wanted.logits[-1], atol=1e-2)
    maps = [
        each.attentions.double() / each.attentions.double().sum(-1, keepdim=True)
        for each in (plain, silent)
    ]
    best = [
        torch.stack([attention.slash_score(m, o) for o in range(min(16, 3 * n // 4))]).amax(0)
        for m in maps
    ]
    slashed = best[0] > 0.3
    lost = int((best[1][slashed] < best[0][slashed] / 2).sum())
    said = loaded.inner_text(".live-says >> nth=0")
    assert f"Of {int(slashed.sum())} heads" in said
    assert f"{lost} keep less than half" in said
    assert lost > 5
    assert loaded.locator("table tbody tr").count() == 8
    loaded.evaluate(AXE.read_text())  # the page's policy lets no script in
    assert loaded.evaluate(SCRIPTS["serious"]) == []
    assert loaded.errors == []


@pytest.mark.slow
def test_two_prompts_their_distance_and_a_margin(loaded, smollm2):
    ones = ["<|im_start|>" + "1" * n for n in (12, 13)]
    sent(loaded, prompt=ones[0], second=ones[1], view="pair", right="1", wrong="0")
    a, b = (intervention.read(smollm2, probe.encode(smollm2, text)) for text in ones)
    apart = float((a.states[-1, -1] - b.states[-1, -1]).abs().sum())
    said = loaded.inner_text(".live-says >> nth=0")
    number = float(re.search(r"are ([\d.]+) apart", said)[1])
    assert math.isclose(number, apart, rel_tol=0.05)
    margin = probe._margin(smollm2, a.logits[-1], "1", "0")
    told = loaded.locator("tbody td").nth(1).inner_text().replace("−", "-")
    assert math.isclose(float(told), float(margin), rel_tol=0.06)
    sent(loaded, prompt=ones[0], second=ones[1], view="pair", right=" two words", wrong="0")
    assert "A margin compares two single tokens" in loaded.inner_text("#live-panel")


@pytest.mark.slow
def test_typed_as_a_person_does_the_first_press_counts(loaded):
    """A field that was typed into says so once more when it is left: that must not take back what was pressed."""

    def typed(text, pause):
        loaded.click("[data-set=prompt]")
        loaded.keyboard.press("ControlOrMeta+A")
        loaded.keyboard.type(text, delay=30)
        loaded.wait_for_timeout(pause)

    def written(words):
        loaded.locator("[data-do=generate]").click(no_wait_after=True)
        loaded.wait_for_function(
            "words => live.querySelector('.live-written')?.textContent.includes(words)", arg=words
        )

    sent(
        loaded, prompt="one two", view="next"
    )  # whatever the test before left open: not each view has the button
    typed("The capital of Italy is", 600)
    loaded.wait_for_function(
        "!live.querySelector('.live-status').textContent.includes('Computing')"
    )
    assert "capital·of" in loaded.inner_text(".live-tokens").replace("\n", "")
    written("Rome")
    loaded.set_viewport_size(
        {"width": 600, "height": 900}
    )  # a phone's keyboard goes away, or it is turned
    loaded.wait_for_timeout(300)
    assert "Rome" in loaded.inner_text(".live-written")
    typed("The capital of France is", 0)  # pressed before it is computed
    written("Paris")
    loaded.click("#tab-heard")
    typed("one two three", 400)
    loaded.click("[data-do=hear]")
    loaded.wait_for_selector("#live-panel .live-says")
    assert loaded.get_attribute("#live-panel :focus", "data-do") == "hear"
    loaded.set_viewport_size({"width": 1280, "height": 900})
    loaded.locator(".live-change").evaluate("each => { each.open = true }")
    for name in ("hide", "window", "off"):
        box = loaded.locator(f"[data-set={name}]")
        box.press("ControlOrMeta+A")
        box.press_sequentially("2.1" if name == "off" else "2")
        loaded.wait_for_timeout(600)
        loaded.wait_for_function(
            "!live.querySelector('.live-status').textContent.includes('Computing')"
        )
        before = loaded.get_attribute("#live", "data-computed")
        loaded.keyboard.press("Enter")
        loaded.keyboard.press("Tab")
        loaded.wait_for_timeout(500)
        assert loaded.get_attribute("#live", "data-computed") == before, name
    sent(loaded, prompt="one two", view="heads")
    loaded.focus(".live-atlas")
    for _ in range(2):
        loaded.keyboard.press("ArrowRight")
        loaded.wait_for_timeout(200)
    assert "layer=3" in loaded.url
    assert loaded.errors == []


def test_a_reader_who_comes_back_finds_what_was_typed(visit):
    page = visit("live/index.html")
    page.click("[data-set=prompt]")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("once more", delay=30)
    page.wait_for_timeout(500)
    page.goto(page.url.replace("index.html", "small.html").partition("#")[0])
    page.go_back()
    assert page.input_value("[data-set=prompt]") == "once more"
    for view in ("constructor", "__proto__"):
        page.evaluate("hash => { location.hash = hash }", f"#prompt=a&view={view}&stretch=")
        page.wait_for_function("live.querySelector('[data-set=prompt]').value === 'a'")
        assert page.get_attribute("#tab-next", "aria-selected") == "true"
        assert page.input_value("[data-set=stretch]") == "1"
    assert page.errors == []


@pytest.mark.slow
def test_it_writes_what_the_model_writes_letters_of_several_tokens_whole(loaded, smollm2):
    text = "中国的首都是"
    sent(loaded, prompt=text, view="next")
    strip = loaded.inner_text(".live-tokens")
    assert "中" in strip
    assert re.search(r"⟨[0-9A-F]{2}⟩", strip)
    loaded.click("[data-do=generate]")
    loaded.wait_for_function("!document.querySelector('[data-do=generate]').disabled")
    assert "\ufffd" not in loaded.inner_text("main")
    ids = probe.encode(smollm2, text)
    settings = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0}
    wanted = smollm2.model.generate(ids[None], attention_mask=torch.ones(1, len(ids)), **settings)[
        0, len(ids) :
    ]
    said = loaded.locator(".live-written").text_content().removeprefix("as trained: … ")
    assert said == smollm2.tokenizer.decode(wanted).rstrip("\ufffd")


@pytest.mark.slow
def test_a_hidden_token_is_the_one_of_that_number_also_between_separators(loaded):
    sent(
        loaded,
        prompt="one two three four five six seven",
        separator=",",
        every=2,
        hide="3",
        view="next",
    )
    assert loaded.inner_text(".live-tokens .hidden") == "·three"
    assert loaded.evaluate("[...window.found.use.hide]") == [4]
    sent(loaded, prompt="one two", window=-1, view="next")
    assert loaded.evaluate("document.querySelector('#live-panel').inert"), (
        "the picture is of another state"
    )
    sent(loaded, prompt="one two", view="next")
    assert not loaded.evaluate("document.querySelector('#live-panel').inert")


@pytest.mark.slow
def test_who_is_heard_is_what_hiding_each_token_changes(loaded, smollm2):
    text = "<|im_start|>Paris, Rome, Paris,"
    sent(loaded, prompt=text, view="heard")
    loaded.click("[data-do=hear]")
    loaded.wait_for_selector("#live-panel .live-says")
    ids = probe.encode(smollm2, text)
    whole = intervention.read(smollm2, ids).logits[-1].double().log_softmax(0)
    found = []
    for k in range(len(ids)):
        hidden = (
            intervention.read(smollm2, ids, mask=unseen(len(ids), k))
            .logits[-1]
            .double()
            .log_softmax(0)
        )
        found.append(float((whole.exp() * (whole - hidden)).sum()))
    top = max(range(len(ids)), key=found.__getitem__)
    said = loaded.inner_text("#live-panel .live-says")
    assert f"Hiding token {top + 1}," in said
    assert math.isclose(float(re.search(r"most: ([\d.]+) nats", said)[1]), found[top], rel_tol=0.06)


@pytest.mark.slow
def test_bad_input_ends_in_a_sentence_or_in_a_picture(loaded):
    refused = {
        "is empty": {"prompt": "", "view": "next"},
        "reads at most": {"prompt": "é1" * 1900, "view": "next"},
        "The base must be a number": {"prompt": "a b", "base": "1e300"},
        "The temperature must be": {"prompt": "a b", "temperature": 0},
        "Tokens of this prompt go from 1 to": {"prompt": "a b", "hide": "99"},
    }
    for words, state in refused.items():
        assert words in sent(loaded, **state), state
    for state in (
        {"prompt": "😀 שלום مرحبا", "view": "heads"},
        {"prompt": "a", "view": "heads", "layer": 99, "head": -4},
        {"prompt": "a b c", "alone": "1.1", "off": "1.1", "view": "next"},
        {"prompt": "a b c d", "hide": "1-4", "window": 1, "view": "heads"},
        {"prompt": "a b c", "view": "nonsense", "token": 77},
    ):
        assert "tokens in" in sent(loaded, **state), state
    loaded.fill('[data-set="prompt"]', "x" * 10_000)
    loaded.wait_for_function(
        "document.querySelector('.live-status').textContent.includes('reads at most')"
    )
    assert loaded.errors == []


@pytest.mark.slow
def test_a_broken_load_goes_on_where_it_was_and_a_wrong_part_is_refused(chromium, site):
    files = [
        file["name"]
        for file in json.loads((ROOT / "_build/html/live/model.json").read_text())["files"]
    ]
    context = chromium.new_context(service_workers="block")
    context.set_default_timeout(120_000)
    page, asked, fault = context.new_page(), [], {"abort": files[3], "damage": files[2]}

    def route(handler):
        name = handler.request.url.rsplit("/", 1)[1]
        asked.append(name)
        if name == fault.get("abort"):
            handler.abort()
        elif name == fault.get("damage"):
            fault.pop("damage")
            handler.fulfill(body=bytes(1000))
        else:
            handler.continue_()

    context.route("**/live/*", route)
    page.goto(f"{site}/live/index.html")
    page.click("[data-do=load]")
    page.wait_for_selector(".live-status.bad")
    assert "Press the button to go on" in page.inner_text(".live-status")
    assert asked.count(files[2]) == 2, "a part with a wrong hash is fetched again"
    fault.clear()
    asked.clear()
    page.click("[data-do=load]")
    page.wait_for_selector("[data-computed]")
    assert not {*files[:3]} & {*asked}, "what had arrived is kept"
    assert {*files[3:]} <= {*asked}
    context.close()


@pytest.mark.slow
def test_a_browser_without_room_says_so_and_works_on(chromium, site):
    context = chromium.new_context()
    context.set_default_timeout(300_000)
    page = context.new_page()
    page.goto(f"{site}/live/index.html")
    limits = context.new_cdp_session(page)
    limits.send("Storage.overrideQuotaForOrigin", {"origin": site, "quotaSize": 2_000_000})
    page.click("[data-do=load]")
    page.wait_for_selector("[data-computed]")
    said = page.inner_text(".live-status")
    assert "no room to keep the model, so the next visit loads it again" in said
    assert " tokens in " in said
    assert page.locator(".live-status.bad").count() == 0
    context.close()


@pytest.mark.slow
def test_the_page_opens_without_a_network_once_its_model_was_loaded_and_then_has_threads(chromium):
    context = chromium.new_context(bypass_csp=True)
    context.set_default_timeout(300_000)
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with browser.served(ROOT / "_build/html") as site:
        page.goto(f"{site}/live/index.html")
        assert not page.evaluate("crossOriginIsolated"), "this host sends no headers"
        registered = "navigator.serviceWorker.getRegistrations().then(all => all.length)"
        assert page.evaluate(registered) == 0, "nothing unasked"
        page.click("[data-do=load]")
        page.wait_for_selector("[data-computed]")
        page.wait_for_function("navigator.serviceWorker.controller")
    page.reload()  # the server is gone
    assert page.evaluate("crossOriginIsolated")
    page.click("[data-do=load]")
    page.wait_for_selector("[data-computed]")
    assert " tokens in " in page.inner_text(".live-status")
    page.goto(f"{site}/live/small.html")
    page.wait_for_selector("#small[data-drawn]")
    assert errors == []
    found = page.evaluate(SCRIPTS["threads"], list(range(100, 164)))
    assert [found[k]["threads"] for k in "12"] == [1, 2]
    gaps = [abs(a - b) for a, b in zip(found["1"]["logits"], found["2"]["logits"], strict=True)]
    assert max(gaps) < 1e-4
    context.close()


@pytest.mark.site
def test_the_service_worker_keeps_every_file_of_the_page_and_no_part_of_the_model():
    folder = ROOT / "_build/html/live"
    script = (folder / "offline.js").read_text()
    kept = json.loads(re.search(r"FILES = (\[.*?\]);", script)[1])
    assert re.search(r'VERSION = "[0-9a-f]{12}"', script)
    assert {"index.html", "small.html", "worker.js", "model.json"} <= set(kept)
    assert not [name for name in kept if re.match(r"(model|runtime|tokenizer)-[0-9a-f]+\.", name)]
    for page in ("index.html", "small.html"):
        for name in re.findall(
            r'(?:src|href)="([^":/]+\.(?:js|css))"', (folder / page).read_text()
        ):
            assert name in kept


def test_small_models_answer_at_once(visit):
    page = visit("live/small.html")
    page.wait_for_selector("#small[data-drawn]")
    for name in live.SMALL:
        page.select_option("[data-small=model]", name)
        counts = name.startswith("count")
        page.fill("[data-small=letters]", "xyy" if counts else "0111")
        before = page.locator("#small circle").first.get_attribute("cx")
        page.locator("[data-small=n]").focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#small circle").first.get_attribute("cx") != before, (
            "the line's dot moves"
        )
        said = page.inner_text(".live-says")
        page.locator("[data-small=n]").fill("4")
        trained = checkpoints.load(name)
        text = "xyyx" if counts else "0111"
        tokens, _ = trained.task.encode([text], *([] if counts else [["last"]]))
        answer = trained.task.vocabulary[int(trained.model(tokens)[0, -1].argmax())]
        assert (
            f"{text}: the model answers {answer}, and the right answer is {2 if counts else 1}."
            in page.inner_text(".live-says")
            != said
        )
    page.fill("[data-small=letters]", "z")
    assert "Type only the letters" in page.inner_text(".live-error")
    page.evaluate(AXE.read_text())
    assert page.evaluate(SCRIPTS["serious"]) == []
    assert page.errors == []
    assert page.foreign == []
