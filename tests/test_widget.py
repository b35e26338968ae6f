"""The widget, live and still."""

import asyncio
import base64
import functools
import io
import itertools
import json
import re
import signal
import subprocess
import threading
import time
import warnings

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import NODE, ROOT
from PIL import Image, ImageColor

from helpers import explore, show, style
from helpers.widget import SLIDES

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


@pytest.fixture(autouse=True)
def no_loop(request):
    """A browser leaves an event loop running in this thread; a test without one has none but its own."""
    running = asyncio._get_running_loop()
    if "chromium" not in request.fixturenames:
        asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)


def line(n=1, kind="a", dashed=False):
    figure, ax = plt.subplots()
    ax.plot([0, n], [0, {"a": 1, "b": 2}.get(kind, 3)], "--" if dashed else "-")
    return figure, f"It ends at {n}."


def widget(**changes):
    controls = {"n": [1, 2, 3], "kind": ["a", "b"], "dashed": [False, True]}
    return explore(line, caption="A line", **(controls | changes))


def test_still_draws_every_state_once_and_describes_it():
    drawn = []

    def draw(n, dashed):
        drawn.append((n, dashed))
        return line(n, dashed=dashed)

    page = explore(
        draw, caption="A line", n=[1, 2, 3], dashed=[False, True], labels={"n": "length (m)"}
    ).still()
    assert sorted(drawn) == [(n, d) for n in (1, 2, 3) for d in (False, True)]
    frames = json.loads(
        re.search(r'application/json">(.*?)</script>', page, re.S)[1].replace("<\\/", "</")
    )["frames"]
    assert len(frames) == 6
    assert 'alt="A line. length (m): 2, dashed: on. It ends at 2."' in frames[3][0]
    assert frames[3][1] == "It ends at 2."
    chinese = explore(
        line, caption="一条线。", labels={"n": "长度", "kind": "种类"}, n=[1], kind=["甲"]
    )
    assert 'alt="一条线。长度：1，种类：甲。It ends at 1."' in chinese.still()


def test_still_uses_native_labelled_inputs_and_nothing_from_elsewhere():
    page = widget().still()
    for tag in ('type="range"', "<select", 'type="checkbox"', "<button"):
        assert tag in page
    labelled = re.findall(r"<label><span>(\w+)</span><(?:input|select)[^>]*>.*?</label>", page)
    assert labelled == ["n", "kind", "dashed"]
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert len(page) < 12 * 40_000


def test_two_builds_are_equal_byte_for_byte():
    page = widget().still()
    assert page == widget().still()
    assert " id=" not in page, "two equal widgets on a page would share it"


def test_the_players_script_does_what_it_says():
    """The tests of player.js, which run in node."""
    done = subprocess.run(
        [NODE, "--test", ROOT / "tests/player.test.mjs"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["player", "live"])
def test_the_scripts_are_what_a_page_may_hold(name):
    """Valid, and nothing that would end the element or attribute that they stand in."""
    script = ROOT / f"src/helpers/widget/{name}.js"
    wrapped = f'"use strict";\n(function () {{\n{script.read_text()}\n}});'
    done = subprocess.run(
        [NODE, "--check", "-"],
        input=wrapped,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "</" not in script.read_text()
    assert not re.findall(r"https?:|fetch|import ", script.read_text())


def test_the_first_frame_is_the_start():
    page = widget(start={"n": 3, "kind": "b", "dashed": True}).still()
    assert "It ends at 3." in page.split("<script", 1)[0]
    assert 'value="2"' in page
    assert "selected>b" in page
    assert "checked" in page


def test_a_table_is_a_frame_too():
    page = explore(
        lambda n: pd.DataFrame({"n": [n], "twice": [2 * n]}), caption="Twice", n=[1, 2]
    ).still()
    assert "<td>4<\\/td>" in page
    with pytest.raises(ValueError, match="rows, not 40"):
        explore(lambda n: pd.DataFrame({"n": range(40)}), caption="Long", n=[1, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: explore(line, caption="x"), "one to three controls, not 0"),
        (
            lambda: explore(lambda a, b, c, d: None, caption="x", a=[1], b=[1], c=[1], d=[1]),
            "not 4",
        ),
        (lambda: widget(n=[]), "n must have at least one value"),
        (lambda: widget(n=range(100)), "400"),
        (lambda: widget(n=5), "n must be a list"),
        (lambda: widget(kind="ab"), "kind must be a list"),
        (lambda: widget(dashed=[True, False]), "on/off"),
        (lambda: widget(start={"n": 9}), "start for n must be one of"),
        (lambda: widget(start={"m": 9}), "labels and start name m"),
        (lambda: widget(labels={"m": "x"}), "labels and start name m"),
        (
            lambda: explore(lambda n: 5, caption="x", n=[1, 2]),
            "expected a Matplotlib figure or a DataFrame, not int",
        ),
        (lambda: explore(lambda n: (line(n)[0], 3), caption="x", n=[1]), "must be a sentence"),
        (lambda: explore(lambda m: line(m), caption="x", n=[1]), r"for each control \(n\)"),
    ],
)
def test_bad_use_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_bundle_depends_on_who_looks(monkeypatch):
    monkeypatch.setenv("HELPERS_STILL", "1")
    bundle = widget()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain", SLIDES}
    assert [drawing.count("roomy") for drawing in bundle[SLIDES]["frames"]] == [1] * 12
    monkeypatch.delenv("HELPERS_STILL")
    view = widget()._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"]


def test_the_view_needs_nothing_that_only_ipywidgets_8_has(monkeypatch):
    """ipywidgets 7.7, which Colab has, knows no `_repr_mimebundle_`."""
    monkeypatch.delenv("HELPERS_STILL", raising=False)
    monkeypatch.delattr(ipywidgets.Widget, "_repr_mimebundle_")
    assert "application/vnd.jupyter.widget-view+json" in widget()._repr_mimebundle_()


def awaited(test):
    """A test that waits for the kernel's loop, as a plain function."""

    @functools.wraps(test)
    def run(*arguments, **options):
        asyncio.run(test(*arguments, **options))

    return run


class Live:
    """A panel by its parts, in the order that a reader meets them."""

    def __init__(self, draw, **controls):
        self.panel = explore(draw, caption="A line", **(controls or {"n": [1, 2, 3]})).live()
        *self.rows, self.status, self.body, self.printed, _ = self.panel.children
        self.slider, self.button = (
            self.rows[0].children if hasattr(self.rows[0], "children") else (self.rows[0], None)
        )

    @property
    def said(self):
        return re.sub("<details>.*</details>|<[^>]+>", "", self.status.value, flags=re.S)


@awaited
async def test_live_redraws_remembers_and_waits():
    drawn = []

    def draw(n):
        drawn.append(n)
        return line(n)

    live = Live(draw)
    first = live.body.value
    for value in (2, 3):  # two quick moves: one frame
        live.slider.value = value
    assert "computing" in live.status.value
    await asyncio.sleep(0.5)
    assert live.said == "It ends at 3."
    assert live.body.value != first
    assert drawn == [1, 3]
    live.slider.value = 1
    await asyncio.sleep(0.3)
    assert drawn == [1, 3]
    assert live.body.value == first


@pytest.mark.parametrize(
    "kind", [RuntimeError, KeyboardInterrupt, SystemExit, asyncio.CancelledError]
)
@awaited
async def test_live_keeps_the_last_picture_when_draw_fails_and_recovers(kind):
    def draw(n):
        if n == 2:
            raise kind("no <two>")
        return line(n)

    live = Live(draw)
    before = live.body.value
    live.slider.value = 2
    await asyncio.sleep(0.3)
    assert 'role="alert"' in live.status.value
    says = "Stopped." if kind is KeyboardInterrupt else f"{kind.__name__}: no &lt;two&gt;"
    assert live.said == f"{says} The picture still shows n: 1."
    assert live.body.value == before
    assert ("Where it happened" in live.status.value) == (kind is not KeyboardInterrupt)
    live.slider.value = 3
    await asyncio.sleep(0.5)
    assert live.said == "It ends at 3."
    assert live.printed.value == ""


def test_the_stop_button_ends_a_draw_that_never_ends():
    """Jupyter's stop button sends SIGINT, which a kernel ignores between two cells, as here."""

    def draw(n):
        while n == 2:
            time.sleep(0.01)
        return line(n)

    async def scene():
        live = Live(draw)
        live.slider.value = 2
        threading.Timer(0.6, signal.raise_signal, [signal.SIGINT]).start()
        await asyncio.sleep(0.8)
        assert live.said == "Stopped. The picture still shows n: 1."
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(scene())
    finally:
        signal.signal(signal.SIGINT, before)


def test_live_shows_what_draw_prints_and_warns():
    def draw(n):
        if n == 2:
            print("<two>")
            print("10 %\r20 %")
            warnings.warn("careful", stacklevel=1)
        return line(n)

    live = Live(draw)
    live.slider.value = 2
    assert live.printed.value.startswith("<pre>&lt;two&gt;\n20 %\n")
    assert "UserWarning: careful" in live.printed.value
    live.slider.value = 3
    assert live.printed.value == ""


@awaited
async def test_live_plays_shows_every_frame_says_stop_meanwhile_and_starts_over(monkeypatch):
    monkeypatch.setattr("helpers.widget._live._PACE", 0.01)
    monkeypatch.setattr("helpers.widget._live._DEBOUNCE", 0.01)
    seen = []
    live = Live(line)
    live.body.observe(lambda change: seen.append(live.slider.value), "value")
    live.button.click()
    assert (live.button.description, live.button.tooltip) == ("■ Stop", "Stop: n")
    for _ in range(2):
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "Play" in live.button.description:
                break
        assert (live.button.description, live.button.tooltip) == ("▶ Play", "Play: n")
        assert live.slider.value == 3
        live.button.click()
    live.slider.value = 2  # a hand on the slider stops it
    assert live.button.description == "▶ Play"
    live.button.click()
    live.button.click()
    await asyncio.sleep(0.3)
    assert live.slider.value == 3
    assert live.button.description == "▶ Play"
    assert seen[:4] == [2, 3, 1, 2]


@awaited
async def test_each_of_two_buttons_says_what_it_plays():
    def draw(n, m):
        return line(n)

    panel = explore(draw, caption="A line", n=[1, 2], m=[1, 2])
    for name in ("n", "m"):
        assert f">▶ Play: {name}</button>" in panel.still()
    assert ">▶ Play</button>" in explore(line, caption="A line", n=[1, 2]).still()
    live = Live(draw, n=[1, 2], m=[1, 2])
    live.button.click()
    assert live.button.description == "■ Stop: n"
    live.button.click()
    assert live.button.description == "▶ Play: n"


@awaited
async def test_play_stops_where_draw_fails(monkeypatch):
    monkeypatch.setattr("helpers.widget._live._PACE", 0.01)

    def draw(n):
        return line(n) if n == 1 else 1 / 0

    live = Live(draw)
    live.button.click()
    await asyncio.sleep(0.5)
    assert live.said.startswith("ZeroDivisionError")
    assert live.button.description == "▶ Play"
    assert live.slider.value == 2


def test_show_needs_alt_text_and_closes_the_figure(tmp_path):
    figure, _ = line()
    before = len(plt.get_fignums())
    page = show(figure, alt='A "line" <b>', caption="Caption").data
    assert 'alt="A &quot;line&quot; &lt;b&gt;"' in page
    assert "<figcaption>Caption</figcaption>" in page
    assert len(plt.get_fignums()) == before - 1
    with pytest.raises(ValueError, match="alt must not be empty"):
        show(figure, alt=" ")


def drawn(shown):
    """The picture inside what `show` gives."""
    return Image.open(
        io.BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", shown.data)[1]))
    ).convert("RGB")


def rgb(colour):
    return np.array(ImageColor.getrgb(colour)) / 255


def test_colours_can_be_read_on_white_and_told_apart_without_hue():
    """WCAG contrast of at least 3:1 for graphics; distinct lightness under a red-green deficiency is left to shape."""
    for colour in [*style.COLOURS.values(), style.ENCODINGS["ALiBi"]]:
        assert contrast(rgb(colour), np.ones(3)) >= 3


def test_encodings_have_five_colours_none_of_them_that_of_what_is_followed_or_fails():
    colours = set(style.ENCODINGS.values())
    assert len(colours) == len(style.ENCODINGS) == 5
    assert style.COLOURS["vermillion"] not in colours


def test_labels_stay_apart():
    ax = style.axes("", "x", "name of y", height=3.0)
    for k in range(4):
        ax.plot([0, 1], [0, 1 + k / 1000], label=f"line {k}")
    style.label(ax)
    ax.set_ylim(0, 0.9)  # settled after the labels, which end above it
    for line in ax.get_lines():
        line.set_ydata([0, 0.9])
    assert "data-faults" not in show(ax, alt="four lines").data, (
        "names apart, and the y axis' name on the picture"
    )
    heights = sorted(text.xyann[1] for text in ax.texts)
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 0.05
    assert heights[-1] == 1


@pytest.mark.parametrize(("form", "faults"), [("-", ["through"]), ("o", [])])
def test_a_line_through_a_legend_is_a_fault_and_dots_beside_it_are_none(form, faults):
    ax = style.axes("", "x", "y", height=3.0)
    ax.plot([0, 0, 1, 1], [0, 1, 1, 0], label="_round")
    ax.plot([0, 1], [0.5, 0.5], form, label="through")
    ax.legend(loc="center")
    shown = show(ax, alt="two ways").data
    assert re.findall(r"(\w+) through the legend", shown) == faults


def test_a_number_type_in_the_line_of_another_is_a_fault():
    drawn = style.lines(
        pd.DataFrame({kind: [k, k] for k, kind in enumerate(style.TYPES)}), "y"
    ).get_lines()
    assert [line.get_linestyle() for line in drawn] == list(dict.fromkeys(style.TYPES.values()))
    drawn[0].set_linestyle("--")
    assert re.findall(r"(\w+) in another", show(drawn[0].axes, alt="types").data) == ["fp32"]


def test_a_name_in_the_colour_of_another_is_a_fault():
    frame = pd.DataFrame({name: [k, k] for k, name in enumerate(["RoPE", "mean", "NoPE"])})
    ax = style.lines(frame, "y", numbers=True)
    assert "data-faults" not in show(ax, alt="by name").data
    ax.get_lines()[0].set_color(style.COLOURS["green"])
    assert re.findall(r"(\w+) in another", show(ax, alt="by place").data) == ["RoPE"]


def test_the_table_of_colours_is_that_of_style():
    said = {"orange": "vermillion"}
    table = (ROOT / "chapters/symbols.md").read_text().split("## Colours")[1]
    for kind, way in zip(style.TYPES, ("solid", "dashed", "dotted", "dash-dot"), strict=True):
        assert re.search(rf"{kind}\b[^,.]* {way}", table), kind
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in re.findall(r"^\|.*\|$", table, re.M)[2:]
    ]
    told = {name.lower(): colour for colour, *names in rows for name in names if name}
    kept = style.NETWORKS | style.NAMED
    del kept["causal"]  # causal attention, where a line's name has to be short
    assert {
        name: style.COLOURS.get(said.get(colour, colour), "#8F6B00")
        for name, colour in told.items()
    } == {name.lower(): colour for name, colour in kept.items()}


def test_a_single_dot_keeps_its_colour():
    """A frame has few colours to be small; the rare ones, such as a marker's, must survive."""
    ax = style.axes("t", "x", "y")
    ax.plot(range(100), range(100), color=style.COLOURS["blue"])
    ax.plot([10], [80], "o", color=style.COLOURS["vermillion"])
    colours = (
        np.array(
            [colour for _, colour in drawn(show(ax, alt="a line and a dot")).getcolors(1 << 16)]
        )
        / 255
    )
    for colour, most in (
        (style.COLOURS["blue"], 8),
        (style.COLOURS["vermillion"], 8),
        ("white", 0),
    ):
        assert 255 * np.abs(colours - rgb(colour)).max(1).min() <= most


def test_a_map_whose_least_is_dark_keeps_its_order_on_a_dark_page():
    """Turned light for dark, `cividis` would show the most as the least; a map that begins at white may be turned."""
    for colours, kind in (("cividis", "keep"), ("Blues", "dark-light")):
        figure = plt.figure(figsize=(1, 1))
        figure.subplots().imshow([[0, 1]], cmap=colours)
        assert f'<img class="{kind}"' in show(figure, alt="two cells").data


def test_a_deck_gets_a_drawing_whose_axes_fill_two_fifths_of_the_slide(chromium, monkeypatch):
    """The axes are what the lines at the left and below them span, at the width that a slide has."""
    monkeypatch.setenv("HELPERS_STILL", "1")
    ax = style.axes("The title is on the page", "n", "share right")
    ax.plot([1, 10, 100], [0.1, 0.2, 0.9], "o-", label="fp32")
    style.label(ax)
    shown = show(ax, alt="A line rises.")
    slides = shown._repr_mimebundle_()[SLIDES]
    assert slides["title"] == "The title is on the page"
    assert "roomy" not in shown.data, "no page has it"
    page = chromium.new_page(viewport={"width": 1184, "height": 700})
    page.set_content(f'<body style="margin:0">{slides["drawings"]}</body>')
    page.add_style_tag(content="svg{width:1184px}")
    drawing = page.locator("svg.roomy")
    assert "The title" not in drawing.text_content()
    lines = drawing.locator("path[style*='square'], path[class]").evaluate_all(
        "all => all.filter((p) => getComputedStyle(p).strokeLinecap === 'square')"
        ".map((p) => p.getBoundingClientRect()).map((b) => [b.left, b.top, b.right, b.bottom])"
    )
    left, top, right, bottom = zip(*lines, strict=True)
    area = (max(right) - min(left)) * (max(bottom) - min(top))
    assert area >= 0.4 * 1280 * 720
    page.close()


def test_on_a_page_a_figure_is_a_drawing_with_its_text_in_the_dark_and_on_a_phone(
    chromium, monkeypatch
):
    monkeypatch.setenv("HELPERS_STILL", "1")
    ax = style.axes(
        "A title that a phone must break in two, at the least", "n", "share right", log="x"
    )
    ax.plot([1, 10, 100], [0.1, 0.2, 0.9], "o-", label="fp32", mfc="white")
    style.label(ax)
    shown = show(ax, alt="A line rises.").data
    assert "data-faults" not in shown
    page = chromium.new_page(viewport={"width": 358, "height": 700})
    page.set_content(
        f'<html data-theme="dark"><body style="margin:0;color:#eee">{shown}</body></html>'
    )
    assert [drawing.is_visible() for drawing in page.locator("svg.chart").all()] == [False, True]
    texts = page.locator("svg.narrow text:not(:has(tspan))")
    assert "share right" in texts.all_text_contents()
    scale = page.locator("svg.narrow").evaluate("e => e.getScreenCTM().a")
    for text in texts.all():
        size, fill = text.evaluate(
            "e => [parseFloat(getComputedStyle(e).fontSize), getComputedStyle(e).fill]"
        )
        assert size * scale >= 12
        assert (
            contrast(np.array([int(x) for x in re.findall(r"\d+", fill)[:3]]) / 255, np.zeros(3))
            > 7
        )
    page.close()
    figure = plt.figure(figsize=(1, 1))
    figure.subplots().imshow([[0, 1]])
    assert 'data-image="a matrix"' in show(figure, alt="two cells").data


def test_on_a_phone_panels_stand_below_one_another_and_names_break(chromium, monkeypatch):
    monkeypatch.setenv("HELPERS_STILL", "1")
    figure = plt.figure(figsize=(11, 4))
    for ax, name in zip(figure.subplots(1, 2, sharey=True), ("first", "second"), strict=True):
        ax.barh(
            ["a name that takes half of a phone's width", "short"],
            [1, 2],
            color=style.COLOURS["blue"],
            label="bar",
        )
        ax.set(title=f"{name}: a title that is too long for a phone's width", xlabel=name)
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    page = chromium.new_page(viewport={"width": 358, "height": 1200})
    page.set_content(show(figure, alt="Two panels.").data)
    boxes = "e => [e.textContent, e.getBoundingClientRect().x, e.getBoundingClientRect().y]"
    found = [
        text.evaluate(boxes)
        for text in page.locator("svg.narrow text:not(:has(tspan)), svg.narrow tspan").all()
    ]
    place = {said.strip(): (x, y) for said, x, y in found}
    assert place["second"][1] > place["first"][1] + 100
    assert abs(place["second"][0] - place["first"][0]) < 30
    assert place["bar"][1] > place["second"][1], "what a legend names stands under all panels"
    assert [said for said, _, _ in found].count("bar") == 1
    assert {"a name that takes", "half of a phone's", "width"} <= set(place)
    page.close()


def test_a_size_that_is_a_hair_below_whole_pixels_does_not_shear_the_picture():
    figure = plt.figure(
        figsize=(2.15 * 6 + 3.4, 1.0)
    )  # 16.2999… inches, for matplotlib 1956 pixels
    figure.add_axes((0, 0, 0.5, 1)).set(facecolor="black", xticks=[], yticks=[])
    picture = drawn(show(figure, alt="left half black")).convert("L")
    assert picture.width == 1956
    assert {picture.getpixel((900, y)) for y in range(5, 115)} == {0}
    assert {picture.getpixel((1050, y)) for y in range(5, 115)} == {255}


def contrast(one, other):
    """WCAG's contrast of two colours, from 1 to 21."""
    linear = [
        [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        for colour in (one, other)
    ]
    dark, light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in linear)
    return (light + 0.05) / (dark + 0.05)


def oklab(colours, blind=False):
    """Lightness and two axes of hue (Ottosson, 2020); `blind` to red and green: deuteranopia by Machado et al. (2009)."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    mixed = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    eye = (
        [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
        if blind
        else np.eye(3)
    )
    colours = np.array(colours)
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.cbrt(np.clip(linear @ np.array(eye).T, 0, 1) @ np.array(cones).T) @ np.array(mixed).T


def apart(colours):
    """The least distance of two of the colours, as they are and to a red-green blind eye."""
    places = [oklab(colours), oklab(colours, blind=True)]
    return np.array(
        [min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) for seen in places]
    )


@pytest.mark.parametrize(
    ("dark", "ground"),
    [
        ("", "#ffffff"),
        ('data-theme="dark"', "#121212"),  # the site
        ('data-jp-theme-light="false"', "#111111"),  # JupyterLab
        ('theme="dark"', "#383838"),  # Colab
    ],
)
def test_one_picture_serves_light_and_dark_pages(chromium, dark, ground):
    """In the dark white becomes the page's own ground; colours keep hue, distance and a contrast of 3:1."""
    figure = plt.figure(figsize=(6, 1))
    for k, colour in enumerate(style.COLOURS.values()):
        figure.add_artist(plt.Rectangle((k / 6, 0), 1 / 6, 0.5, color=colour))
    page = chromium.new_page()
    page.set_content(
        f"<html><body {dark} style='margin:0;background:{ground}'>{show(figure, alt='colours').data}</body></html>"
    )
    picture = Image.open(io.BytesIO(page.locator("img").screenshot())).convert("RGB")
    page.close()

    def at(x, y):
        return np.array(picture.getpixel((int(x * picture.width), int(y * picture.height)))) / 255

    around = at(0.5, 0.2)
    assert np.abs(around - rgb(ground)).max() < 0.02
    seen = [at((k + 0.5) / 6, 0.75) for k in range(6)]
    before = [rgb(colour) for colour in style.COLOURS.values()]
    assert min(contrast(colour, around) for colour in seen) >= 3
    assert (apart(seen) >= 0.95 * apart(before)).all()
    for one, other in list(zip(oklab(before), oklab(seen), strict=True))[
        :4
    ]:  # black and grey have no hue
        turned = np.degrees(np.arctan2(*one[:0:-1]) - np.arctan2(*other[:0:-1]))
        assert abs((turned + 180) % 360 - 180) < 40
