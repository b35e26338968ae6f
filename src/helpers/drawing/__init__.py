"""Drawings that move under the hand, with a kernel and without: `drawing.show("clocks")`.

Each is a plain ES module with the contract of anywidget, `render({ model, el })`, in this folder. What is shown is
HTML that holds the module, what all modules share (`kit.js`, `mathematics.js`), its data, and a still picture for
where scripts do not run. It asks nobody for anything, so it works on the site, in a deck and in any notebook.
"""

import html
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from helpers import require

HERE = Path(__file__).parent
SHARED = ("mathematics", "kit")
STOPS = 8  # of the machine's camera
LINK = "Link to what you see, alone on a page"


class Facts(NamedTuple):
    """What is said of a drawing: a title, what it shows in words, how to use it (HTML), and the page that explains it."""

    title: str
    alt: str
    caption: str
    page: str


DRAWINGS = {
    "machine": Facts(
        "One machine",
        "A small decoder: tokens below, a line upward for each, two layers of two heads as arcs, and the last vector on top as "
        "a barcode. A camera has eight stops: the guess, six places where something is lost, and what helps.",
        '<span class="machine-toy">A toy: two layers of two heads, set by hand and not trained, states of 16 numbers, a '
        '<span data-light="tokens">first token and n ones</span>. An arc is as wide as its weight, blue for head 1 and purple '
        'for head 2; <span data-light="followed">orange</span> is one token that can be dragged; a disc is as large as what a '
        'state holds of it.</span> <span class="machine-measured"></span> <a class="machine-into" href="#" hidden></a>',
        "chapters/welcome.html",
    ),
    "squash": Facts(
        "A graph to pull apart",
        "A graph whose nodes can be dragged, joined and cut. One node reads. Colours of the leaves mix on their way to it, "
        "hop by hop; or one node's share; or an electric current from the source to the reader.",
        '<span data-when="colours">Each hop, every node takes the mean of itself and its neighbours. A disc is as large as '
        'what has arrived. The colours are those of the <span data-light="speakers">leaves</span>, where there are at least '
        'three, and else of all nodes but the <span data-light="target">reader</span>, where they mix.</span>'
        '<span data-when="share" hidden>Each hop, every node takes the mean of itself and its neighbours. A disc is as large '
        'as its share of the <span data-light="source">source</span>; the number is the share at the '
        '<span data-light="target">reader</span>.</span>'
        '<span data-when="current" hidden>Every edge is one ohm, and one ampere runs from the '
        '<span data-light="source">source</span> to the <span data-light="target">reader</span>: a wide edge carries much of '
        "it, and a disc is as large as its potential is high.</span> "
        'Drag nodes; click one and then another to place or cut an <span data-light="edges">edge</span>. The button adds the '
        "edge that lowers the total resistance, over all pairs of nodes, most; for this one reader it may be a loss.",
        "chapters/1-over-squashing/lesson.html",
    ),
    "river": Facts(
        "One token's ink, layer by layer",
        "Twelve tokens in a row, and the same row again after each layer. The ink of one token spreads along the arrows of "
        "attention. Bars show what the last token hears of each; beside them a mask to paint.",
        'Choose a token: its <span data-light="ink">ink</span> spreads, layer by layer, to all who look at it. The bars are '
        'what the <span data-light="last">last token</span> holds at the end. Paint the <span data-light="mask">mask</span>, '
        'keep more of each state, or give the <span data-light="first">first token</span> a share of every row: it is then '
        "a sink, a token that all attend to, whatever it says (orange). Attention is equal among what the mask allows.",
        "chapters/2-causal-attention/lesson.html",
    ),
    "barcodes": Facts(
        "Two last states, as barcodes",
        "The last state of a real model after n tokens, and after n + 1, as two barcodes of 576 stripes; stripes that are "
        "equal to the bit are black. Beside them the distance of the two at every length.",
        'The <span data-light="codes">barcodes</span> are 576 numbers each, blue above 0 and orange below, of '
        "SmolLM2-135M-Instruct, measured beforehand: the first token, n tokens, and the last of them once more. Drag n, "
        'change tokens, number type and window. <span data-light="same">Black</span> (in the dark, white) is what is equal '
        'to the bit at this n. Dashed beside the <span data-light="distance">distance</span>: the other kind of tokens.',
        "chapters/3-representational-collapse/lesson.html",
    ),
    "needle": Facts(
        "The needle of softmax and the boxes of floats",
        "A string of copies; a dial whose needle is the weight of all ones together; and a stretch of the number line, cut "
        "into the boxes of a number type, with the weight of the odd token on it, now and with one copy more.",
        'Attention is equal. Drag the string longer: the <span data-light="needle">needle</span>, which is the weight of '
        'all ones together, follows only while there is an <span data-light="odd">odd token</span> to compare with. That '
        "token's weight is 1/n of n tokens. It tells n from one copy more, except where both weights fall into one "
        '<span data-light="box">box</span>: there they are rounded to one number. The sentence names the first such n.',
        "chapters/4-counting/lesson.html",
    ),
    "clocks": Facts(
        "RoPE as eight clocks",
        "Eight clocks, one for each pair of a query and a key. Each hand turns with the distance of two tokens, each "
        "slower than the one before. Their hands added tip to tail reach as far to the right as the score is large; a "
        "curve shows the score at every distance.",
        "A query and a key of 16 numbers are eight pairs, and RoPE turns each pair like a "
        '<span data-light="clocks">clock</span>: the blue hand is the key, the black one the query. Under each clock '
        'stands how many tokens one turn takes. The <span data-light="shadow">orange shadow</span> is what a pair adds '
        'to the score. <span data-light="chain">Tip to tail</span>, the hands make the '
        '<span data-light="score">score</span>. Drag a hand, drag along the '
        '<span data-light="curve">curve</span>, untick a box to leave a pair out.',
        "chapters/5-rope-frequencies/lesson.html",
    ),
    "waves": Facts(
        "Two noises and what is left",
        "An arrow for the noise of the first attention map and one for lambda times that of the second; the line between "
        "their tips is what is left, and shorter than the first inside a circle. Beside them the same as waves. A second "
        "view is a race of remedies over the length, after a bet.",
        '<span data-when="waves">Take λ times the <span data-light="second">second map\'s noise</span> from the '
        '<span data-light="first">first\'s</span>: <span data-light="rest">what is left</span> is the line between the '
        'tips. Drag the orange tip: only inside the <span data-light="circle">circle</span> is there less noise than '
        'before.</span><span data-when="race" hidden>Small decoders, each with one remedy, trained up to length 16 in the '
        "course's race, those that have learned the task. Bet on a remedy, by its name in the "
        '<span data-light="board">list</span>, and let the length grow: its curve is orange, RoPE\'s blue, a dot is one run.</span>',
        "chapters/6-differential-transformer/lesson.html",
    ),
}


class Drawing:
    """What `show` returns: displays as the drawing, where HTML is shown, and else as its description."""

    def __init__(self, name: str, body: str):
        self.name, self.body = name, body

    def _repr_html_(self) -> str:
        return self.body

    def __repr__(self) -> str:
        return DRAWINGS[self.name].alt


def show(name: str, language: str = "en", **data: Any) -> Drawing:
    """A drawing by its name, with data where it takes some.

    Args:
        name: one of `DRAWINGS`.
        language: "en", or one of a table in `words/`.
        **data: what JSON can hold. `state` may hold values to start with, as the drawing's links have them.

    Raises:
        ValueError: an unknown name, a language without a table, or data that JSON cannot hold.

    >>> "clocks" in show("clocks")._repr_html_()
    True
    """
    facts, state = DRAWINGS[require.choice("name", name, DRAWINGS)], data.pop("state", {})
    words = words_of(name, language)
    title, alt, caption, link = (words.get(text, text) for text in (*facts[:3], LINK))
    try:
        held = json.dumps(
            {"title": title, "alt": alt, "data": numbers(name) | data, "state": state, "words": words},
            ensure_ascii=False, separators=(",", ":"), allow_nan=False,
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise ValueError(f"data must be what JSON can hold: {error}") from None
    still = HERE / "still" / f"{scene(name, state.get('at', 0), language)}.svg"
    return Drawing(
        name,
        f'<figure class="drawing" data-drawing="{name}" data-prevent-swipe><style>{_text("drawing.css")}</style>'
        f'<div class="drawing-here">{still.read_text() if still.exists() else ""}</div>'
        f'<figcaption>{caption} <a class="drawing-link" href="#">{link}</a></figcaption>'
        f'<script type="application/json">{held.replace("</", "<" + chr(92) + "/")}</script>'
        f"<script>{script(name)}</script></figure>",
    )


def scene(name: str, stop: float, language: str = "en") -> str:
    """The name of a drawing's still picture; of the machine there is one for each stop of its camera, in each language.

    >>> scene("clocks", 0), scene("machine", 3), scene("machine", 3, "zh")
    ('clocks', 'machine-3', 'machine-3.zh')
    """
    return f"{name}-{round(stop)}{f'.{language}' * (language != 'en')}" if name == "machine" else name


@lru_cache
def words_of(name: str, language: str) -> dict[str, str]:
    """What a drawing says in another language, as `helpers.words` takes it, {} for English.

    >>> words_of("machine", "zh")["collapse"]
    '坍缩'
    """
    require.choice("language", language, ["en", *(path.suffixes[0][1:] for path in HERE.glob(f"words/{name}.*.json"))])
    return {} if language == "en" else json.loads(_text(f"words/{name}.{language}.json"))


def picture(name: str, stop: int = 0, said: bool = False, language: str = "en") -> str:
    """A still picture without its words; or, on a page that has the drawing too, with them and the sentence below.

    >>> "<svg" in picture("machine", 3)
    True
    """
    require.choice("name", name, DRAWINGS)
    require.integer("stop", stop, 0, STOPS - 1)
    words_of(name, language)
    svg, end, sentence = _text(f"still/{scene(name, stop, language)}.svg").partition("</svg>")
    if said:
        return f'<figure class="drawing">{svg}{end}{sentence}</figure>'
    return f'<figure class="drawing emblem"><style>{_text("drawing.css")}</style>{svg}{end}</figure>'


def emblem(folder: str) -> str:
    """The still picture of a chapter's drawing without its words, as it stands on cards; the machine's where it has none.

    Args:
        folder: of the pages, as "5-rope-frequencies"; "chapters" has the machine before its first stop.

    >>> "<svg" in emblem("5-rope-frequencies")
    True
    """
    found = {Path(facts.page).parent.name: name for name, facts in DRAWINGS.items()}
    return picture(found.get(folder, "machine"), stop_of(folder))


def stop_of(folder: str) -> int:
    """The machine's stop of a chapter: its number, as its folder has it; 0 for other pages.

    >>> stop_of("5-rope-frequencies"), stop_of("chapters")
    (5, 0)
    """
    return int(folder[0]) if folder[:1].isdigit() else 0


def numbers(name: str) -> dict[str, Any]:
    """What a drawing shows of a real model, made beforehand by a script that the file names; {} where it needs none.

    >>> numbers("clocks")
    {}
    """
    file = HERE / "numbers" / f"{require.choice('name', name, DRAWINGS)}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def module(name: str) -> str:
    """The drawing as one ES module, with what it imports written into it, less comments: anywidget's `_esm`.

    >>> module("clocks").splitlines()[-1]
    'export default { render };'
    """
    require.choice("name", name, DRAWINGS)
    shared = []
    for part in SHARED:
        names = ", ".join(re.findall(r"^export const (\w+)", _text(f"{part}.js"), flags=re.M))
        body = re.sub(r"^export (?=const )", "", _text(f"{part}.js"), flags=re.M)
        shared.append(f"const {part} = (() => {{\n{body}return {{ {names} }};\n}})();")
    own = re.sub(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', r"const \1 = \2;", _text(f"{name}.js"), flags=re.M)
    whole = "\n".join([*shared, re.sub(r"^export (?=const )", "", own, flags=re.M)])
    return re.sub(r"^ *(?://.*|/\*\*(?:.|\n)*?\*/)\n", "", whole, flags=re.M).strip()


def script(name: str) -> str:
    """The drawing as a classic script, which brings the figures of its name to life.

    >>> script("clocks").startswith("(() => {")
    True
    """
    body = module(name).removesuffix("export default { render };")
    return f'(() => {{\n{body}\nkit.start("{name}", render);\n}})();'


def page(name: str, **data: Any) -> str:
    """A whole page with nothing but the drawing, to be put into a frame elsewhere, in light or dark.

    >>> page("clocks").startswith("<!DOCTYPE html>")
    True
    """
    facts = DRAWINGS[require.choice("name", name, DRAWINGS)]
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(facts.title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        "<style>:root{color-scheme:light dark}body{margin:0;background:#fff;color:#1a1a1a;"
        "font:16px/1.45 system-ui,sans-serif}main{max-width:54rem;margin:auto;padding:.8rem 1rem}h1{font-size:1.25rem;"
        "margin:0}a{color:inherit}footer{font-size:.85rem}"
        "@media(prefers-color-scheme:dark){body{background:#14181e;color:#e8e8e8}}</style></head>"
        f"<body><main><h1>{html.escape(facts.title)}</h1>{show(name, **data).body}"
        f'<footer>From <a href="../{facts.page}" target="_top">Connection Bottlenecks in Attention</a>. Drawing and text: '
        '<a href="https://creativecommons.org/licenses/by/4.0/" target="_top">CC BY 4.0</a>, code: MIT.</footer>'
        "</main></body></html>"
    )


@lru_cache
def _text(name: str) -> str:
    return (HERE / name).read_text()
