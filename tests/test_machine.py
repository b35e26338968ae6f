"""What the machine of the front page draws equals what its sentence says: a length for each number, at each stop."""

import itertools
import json
import math
import re

import pytest
from conftest import ROOT, javascript
from docutils.core import publish_doctree
from docutils.nodes import paragraph
from machine import filmed
from myst_parser.parsers.docutils_ import Parser
from stills import drawn

from book import editions
from course import drawing

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
TOKENS = (0.1, 0.6, 0.9)


def shown(*states):
    """Each state with its picture and its sentence; one process draws them all."""
    return [
        (state, picture, told)
        for state, (_, picture, told) in zip(states, drawn("machine", [*states])[0], strict=True)
    ]


def number(text):
    return float(text.translate(RAISED).replace(" × 10", "e"))


NUMBER = r"(−?[\d.]+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)"


def bars(picture, colour):
    """Where the bars of a colour begin, their foot, and how far each rises."""
    ways = [
        way
        for way, name in re.findall(r'<path d="([^"]+)" class="([^"]*)"', picture)
        if name == colour
    ]
    found = re.findall(r"M([\d.-]+) ([\d.-]+)v([\d.-]+)h([\d.-]+)v[\d.-]+z", "".join(ways))
    return [(float(x), float(foot), -float(tall)) for x, foot, tall, _ in found]


def test_stop_0_draws_as_many_ones_as_it_says():
    for state, picture, told in shown(*({"at": 0, "n": n} for n in (2, 40, 314))):
        assert picture.count(">1</text>") == state["n"]
        assert f"{state['n']} ones become" in told or "Type your guess" in told


def test_stop_1_draws_a_disc_as_large_as_the_share():
    """The area of a disc is its token's share: a whole state has a disc of 18 pixels."""
    grid = itertools.product((10, 100, 314), ("all", "edge"), TOKENS)
    states = [{"at": 1, "n": n, "edges": edges, "token": token} for n, edges, token in grid]
    for state, picture, told in shown(*states):
        share = number(re.search(rf"makes up {NUMBER}% of the last vector", told)[1]) / 100
        discs = re.findall(
            r'<path d="([^"]*)" class="orange round"[^>]*stroke-width:([\d.]+)', picture
        )
        top = min(float(y) for way, _ in discs for y in re.findall(r"M[\d.]+ ([\d.]+)h", way))
        ends = [(float(x), float(w)) for way, w in discs for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", way) if float(y) == top]  # fmt: skip
        width = max(ends)[1]  # the last state stands at the right
        assert math.isclose((width / 18) ** 2, share, rel_tol=0.08), (state, width, share)


def test_what_the_drops_bring_is_what_the_last_vector_holds():
    grid = itertools.product((1, 2), (10, 314), ("path", "all", "edge"), (0.0, 0.9))
    given = {"quiet": True, "kept": 0, "token": 0.6, "lit": "", "part": "RoPE"}
    states = [
        given | {"at": stop, "n": n, "edges": edges, "sink": sink * (stop == 2)}
        for stop, n, edges, sink in grid
    ]
    brought = javascript("brought", states)
    for state, layers, (_, _, told) in zip(states, brought, shown(*states), strict=True):
        found = re.search(rf"{NUMBER}% (?:of the last vector|from the orange)", told)
        share = sum(share for _, share in layers[1])
        assert 100 * share == pytest.approx(number(found[1]) if found else 0, rel=0.06), state


def test_stop_2_draws_bars_as_tall_as_the_shares():
    kinds = (
        {},
        {"kept": 0.5},
        {"sink": 0.8},
        {"sink": 0.8, "quiet": False},
        {"kept": 0.3, "sink": 0.5},
    )
    places = ({"n": 20, "token": 0.6}, {"n": 314, "token": 0.3}, {"n": 314, "token": 0.9})
    for _, picture, told in shown(
        *({"at": 2} | place | kind for place in places for kind in kinds)
    ):
        first, orange, own = (
            number(x)
            for x in re.findall(
                rf"{NUMBER}% (?:comes )?from (?:the first|the orange|the last token itself)", told
            )
        )
        blue, followed = bars(picture, "fblue"), bars(picture, "forange")
        assert len(followed) == 1
        tall = [blue[0][2], followed[0][2], blue[-1][2]]
        unit = max(zip((first, orange, own), tall, strict=True))
        for share, height in zip((first, orange, own), tall, strict=True):
            assert height == pytest.approx(max(0.8, share / unit[0] * unit[1]), abs=0.35, rel=0.06)


def test_a_sink_that_says_nothing_lets_the_last_vector_keep_itself():
    """And one that hands over its content fills it."""
    shares = {}
    states = [
        {"at": 2, "n": 314, "sink": sink, "quiet": quiet}
        for sink in (0, 0.9)
        for quiet in (True, False)
    ]
    for state, _, told in shown(*states):
        found = re.findall(
            rf"{NUMBER}% (?:comes )?from (?:the first|the orange|the last token itself)", told
        )
        shares[state["quiet"], state["sink"]] = [number(x) for x in found]
    assert shares[True, 0] == shares[False, 0]
    assert shares[True, 0.9][0] < 3 < 60 < shares[False, 0.9][0]
    assert shares[True, 0.9][2] > 15 > 1 > shares[False, 0.9][2]


def test_stop_3_draws_as_many_black_stripes_as_it_says_are_the_same():
    states = [
        {"at": 3, "n": n, "type": kind}
        for n in (3, 60, 188, 314)
        for kind in ("bf16", "fp16", "fp32")
    ]
    for _, picture, told in shown(*states):
        said = {"all 16 numbers differ": 0, "all 16 numbers are the same": 16}
        count = next((k for text, k in said.items() if text in told), None)
        count = (
            int(re.search(r"(\d+) of 16 numbers are the same", told)[1]) if count is None else count
        )
        assert picture.count('data-part="same"') == 2 * count, "in each of two barcodes"


def test_stop_4_turns_the_needle_by_the_weight_of_the_ones():
    for _, picture, told in shown(*({"at": 4, "n": n} for n in (1, 9, 188, 314))):
        weight = 1 - 1 / int(re.search(r"its weight is 1/(\d+)", told)[1])
        x1, y1, x2, y2 = map(float, re.search(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"[^>]*data-part="needle"', picture).groups())  # fmt: skip
        turned = math.atan2(y1 - y2, x1 - x2) % (2 * math.pi)
        assert turned == pytest.approx(math.pi * weight, abs=0.02)


def test_stop_6_draws_the_orange_bar_as_much_lower_as_it_says():
    """Orange is the token's own weight: what its column holds besides stands on it in the colour of the row."""
    grid = itertools.product((30, 314), TOKENS, (0.0, 0.9, 1.0), (True, False))
    states = [
        {"at": 6, "n": n, "token": token, "agree": agree, "both": both}
        for n, token, agree, both in grid
    ]
    for _, picture, told in shown(*states):
        said = number(re.search(rf"{NUMBER}% of the answer's weight", told)[1])
        before, _, after = (tall for _, _, tall in bars(picture, "forange"))
        assert 100 * after / before == pytest.approx(said, abs=3)


def test_stop_7_lights_the_lamps_that_it_names():
    parts = ("RoPE", "ALiBi", "local RoPE, global NoPE", "differential")
    for _, picture, told in shown(*({"at": 7, "part": part} for part in parts)):
        named = {int(k) for k in re.findall(r"\((\d)\)", told.split("It leaves")[0])}
        lamps = re.findall(
            r'<circle [^>]*r="11" class="([^"]*)"[^>]*/><text [^>]*>(\d)</text>', picture
        )
        assert {int(k) for colour, k in lamps if colour == "fgreen"} == named
        assert len(lamps) == 6


def test_a_film_that_names_no_setting_is_refused():
    with pytest.raises(ValueError, match="edges=path, not 'edges'"):
        drawing.states_of("edges=path | edges")


WELCOME = ROOT / "chapters/welcome.md"


def stop_text(stop, language):
    """The paragraph of a stop on the front page, as the page has it."""
    chinese = "".join(editions.texts(WELCOME.with_suffix(".zh.po")).values())
    page = chinese if language == "zh" else WELCOME.read_text()
    text = re.search(rf"^:+\{{stop\}} {stop} .*\n([^`]*?)\n:+$", page, re.M)[1]
    return next(publish_doctree(text, parser=Parser()).findall(paragraph))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("stop", range(1, drawing.STOPS))
def test_each_sentence_of_a_stop_has_its_own_state(stop, language):
    text = stop_text(stop, language)
    filmed(text, stop, language)
    held = re.findall('data-state="([^"]*)"', str(text))
    assert len(held) == len(drawing.film(stop))


def test_a_film_with_fewer_states_than_sentences_is_refused():
    with pytest.raises(ValueError, match=r"stop 4, .*\(zh\) has 6 sentences .* 5 states"):
        filmed(stop_text(1, "zh"), 4, "zh")


@pytest.mark.parametrize("at", [1.1, 2.3, 5.4, 7.9])
def test_a_sentence_of_the_film_is_the_state_that_it_shows(at):
    shown = json.loads(re.search(r'"application/json">(.*?)</script>', drawing.show("machine", at=at).body)[1])  # fmt: skip
    stop, step = divmod(round(10 * at), 10)
    assert shown["state"] == {"at": stop} | drawing.film(stop)[step - 1]


def test_a_sentence_that_the_film_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"at most 1\.6"):
        drawing.show("machine", at=1.7)
