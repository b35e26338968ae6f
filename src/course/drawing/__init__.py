"""Drawings that move under the hand, with a kernel and without: `drawing.show("clocks")`.

Each is a plain ES module with the contract of anywidget, `render({ model, el })`, in this folder.
What is shown is HTML that holds the module, what all modules share (`kit.js`, `mathematics.js`),
its data, and a still picture for where scripts do not run. It asks nobody for anything, so it works
on the site, in a deck and in any notebook.

`drawing.show("clocks")` (`from helpers import drawing`) shows a drawing that moves under the hand,
the same with a kernel and without: vectors, not pictures drawn beforehand. In a page written in
Markdown it is the directive `{drawing} clocks`, and `drawings/clocks.html` of the built book holds
it alone, for a frame elsewhere.

A drawing is a plain ES module, `src/course/drawing/<name>.js`, with anywidget's contract `render({
model, el })`; `kit.js` gives it controls, things to drag, a link that carries its state, and lights
what a word names. Such a word is a `<span data-light="part">`, or a word in emphasis (`*chain*`) in
the same section that the drawing's `words` list. What moves is computed in `mathematics.js`, and a
test holds each function there equal to Python's of the same name. After a change run `python
tools/stills.py`, which writes the still pictures for readers without scripts, and what the machine
quotes of real models and of the race. A drawing weighs under 80 kB, and starts in its most telling
state.
"""

import html
import json
import re
import shlex
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from helpers import require

HERE = Path(__file__).parent
SHARED = ("mathematics", "kit")
STOPS = 8  # of the machine's camera
LINK = "Link to what you see, alone on a page"


class Facts(NamedTuple):
    """Hold what is said of a drawing: a title, what it shows in words, how to use it (HTML), and
    the page that explains it.
    """

    title: str
    alt: str
    caption: str
    page: str


DRAWINGS = {
    name: Facts(**facts)
    for name, facts in tomllib.loads((HERE / "drawings.toml").read_text()).items()
}


class Drawing:
    """A drawing, as `show` returns it: it displays as HTML, or as its description where there is no
    HTML.
    """

    def __init__(self, name: str, body: str):
        self.name, self.body = name, body

    def _repr_html_(self) -> str:
        return self.body

    def __repr__(self) -> str:
        return DRAWINGS[self.name].alt


def show(name: str, language: str = "en", **data: Any) -> Drawing:
    """Return a drawing by its name, with data where it takes some.

    Args:
        name: one of `DRAWINGS`.
        language: "en", or one of a table in `words/`.
        **data: what JSON can hold. `state` may hold values to start with, as the drawing's links
            have them. The machine takes `at`, a stop, or 2.3 for the third sentence of the second.

    Raises:
        ValueError: an unknown name, a language without a table, or data that JSON cannot hold.

    >>> "clocks" in show("clocks")._repr_html_()
    True
    """
    facts, state = DRAWINGS[require.choice("name", name, DRAWINGS)], data.pop("state", {})
    if name == "machine" and "at" in data:
        state = scene_of(data.pop("at")) | state
    words = words_of(name, language)
    title, alt, caption, link = (words.get(text, text) for text in (*facts[:3], LINK))
    try:
        parts = {"title": title, "alt": alt, "data": numbers(name) | data}
        parts |= {"state": state, "words": words}
        held = json.dumps(parts, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"data must be what JSON can hold: {error}") from None
    still = HERE / "still" / f"{scene(name, state.get('at', 0), language)}.svg"
    return Drawing(
        name,
        f'<figure class="drawing" data-drawing="{name}" '
        f"data-prevent-swipe><style>{_text('drawing.css')}</style>"
        f'<div class="drawing-here">{still.read_text() if still.exists() else ""}</div>'
        f'<figcaption>{caption} <a class="drawing-link" href="#">{link}</a></figcaption>'
        f'<script type="application/json">{held.replace("</", "<" + chr(92) + "/")}</script>'
        f"<script>{script(name)}</script></figure>",
    )


FILM = tomllib.loads((HERE / "film.toml").read_text())


def film(stop: int) -> list[dict[str, Any]]:
    """Return the states of the machine's film at a stop, one a sentence of its text on the front
    page, each with what those before it have set.

    >>> film(1)[:4:3]
    [{'edges': 'path'}, {'edges': 'all'}]
    """
    return states_of(FILM.get(str(require.integer("stop", stop, 0, STOPS - 1)), ""))


def states_of(text: str) -> list[dict[str, Any]]:
    """Read the states of a film.

    Raises:
        ValueError: a setting without "=".

    >>> states_of("edges=path | token=0.5 quiet=false")
    [{'edges': 'path'}, {'edges': 'path', 'token': 0.5, 'quiet': False}]
    """
    states: list[dict[str, Any]] = []
    for part in text.split("|") if text else []:
        state = dict(states[-1]) if states else {}
        for setting in shlex.split(part):
            key, equals, value = setting.partition("=")
            if not equals:
                raise ValueError(f"film must be of settings such as edges=path, not {setting!r}")
            state[key] = _value(value)
        states.append(state)
    return states


def _value(text: str) -> float | bool | str:
    """Return a number or a truth value where the text is one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def scene_of(at: float) -> dict[str, Any]:
    """Return the machine's state at a stop, or with a decimal at a sentence of its film.

    Raises:
        ValueError: no such stop or sentence.

    >>> scene_of(2), scene_of(1.4)
    ({'at': 2}, {'at': 1, 'edges': 'all'})
    """
    stop, step = divmod(round(10 * require.number("at", at, 0, STOPS - 0.1)), 10)
    states = film(stop)
    if step > len(states):
        raise ValueError(f"at must be a sentence of stop {stop}, up to {stop}.{len(states)}")
    return {"at": stop} | (states[step - 1] if step else {})


def scene(name: str, stop: float, language: str = "en") -> str:
    """Return the name of a drawing's still picture; of the machine there is one for each stop of
    its camera, in each language.

    >>> scene("clocks", 0), scene("machine", 3), scene("machine", 3, "zh")
    ('clocks', 'machine-3', 'machine-3.zh')
    """
    return f"{name}{f'-{round(stop)}' * (name == 'machine')}{f'.{language}' * (language != 'en')}"


@lru_cache
def words_of(name: str, language: str) -> dict[str, str]:
    """Return the words of a drawing in another language, as `helpers.words` takes it, {} for
    English.

    >>> words_of("machine", "zh")["collapse"]
    '坍缩'
    """
    require.choice(
        "language",
        language,
        ["en", *(path.suffixes[0][1:] for path in HERE.glob(f"words/{name}.*.json"))],
    )
    return {} if language == "en" else json.loads(_text(f"words/{name}.{language}.json"))


def picture(name: str, stop: int = 0, said: bool = False, language: str = "en") -> str:
    """Return a still picture without its words; or, on a page that has the drawing too, with them
    and the sentence below.

    >>> "<svg" in picture("machine", 3)
    True
    """
    require.choice("name", name, DRAWINGS)
    require.integer("stop", stop, 0, STOPS - 1)
    words_of(name, language)
    svg, end, sentence = _text(f"still/{scene(name, stop, language)}.svg").partition("</svg>")
    if said:
        return f'<figure class="drawing">{svg}{end}{sentence}</figure>'
    return (
        f'<figure class="drawing emblem"><style>{_text("drawing.css")}</style>{svg}{end}</figure>'
    )


def emblem(folder: str, language: str = "en") -> str:
    """Return the still picture of a chapter's drawing without its words, as it stands on cards; the
    machine's where it has none.

    Args:
        folder: of the pages, as "5-rope-frequencies"; "chapters" has the machine before its first
            stop.
        language: "en", or one of a table in `words/`.

    >>> "<svg" in emblem("5-rope-frequencies")
    True
    """
    # of two drawings of a folder the first one
    found = {Path(DRAWINGS[name].page).parent.name: name for name in reversed(DRAWINGS)}
    return picture(found.get(folder, "machine"), stop_of(folder), language=language)


def stop_of(folder: str) -> int:
    """Return the machine's stop of a chapter: its number, as its folder has it; 0 for other pages.

    >>> stop_of("5-rope-frequencies"), stop_of("chapters")
    (5, 0)
    """
    return int(folder[0]) if folder[:1].isdigit() else 0


def numbers(name: str) -> dict[str, Any]:
    """Return the part of a drawing that a real model gave, made beforehand by a script that the
    file names; {} where it needs none.

    >>> numbers("clocks")
    {}
    """
    file = HERE / "numbers" / f"{require.choice('name', name, DRAWINGS)}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def module(name: str) -> str:
    """Return the drawing as one ES module, with what it imports written into it, less comments:
    anywidget's `_esm`.

    >>> module("clocks").splitlines()[-1]
    'export default { render };'
    """
    require.choice("name", name, DRAWINGS)
    shared = []
    for part in SHARED:
        names = ", ".join(re.findall(r"^export const (\w+)", _text(f"{part}.js"), flags=re.M))
        body = re.sub(r"^export (?=const )", "", _text(f"{part}.js"), flags=re.M)
        shared.append(f"const {part} = (() => {{\n{body}return {{ {names} }};\n}})();")
    own = re.sub(
        r'^import (\{[^}]*\}) from "\./(\w+)\.js";$',
        r"const \1 = \2;",
        _text(f"{name}.js"),
        flags=re.M,
    )
    whole = "\n".join([*shared, re.sub(r"^export (?=const )", "", own, flags=re.M)])
    return re.sub(r"^ *(?://.*|/\*\*(?:(?!\*/)(?:.|\n))*\*/)\n", "", whole, flags=re.M).strip()


def script(name: str) -> str:
    """Return the drawing as a classic script, which brings the figures of its name to life.

    >>> script("clocks").startswith("(() => {")
    True
    """
    body = module(name).removesuffix("export default { render };")
    return f'(() => {{\n{body}\nkit.start("{name}", render);\n}})();'


def page(name: str, **data: Any) -> str:
    """Return a whole page with nothing but the drawing, to be put into a frame elsewhere, in light
    or dark.

    >>> page("clocks").startswith("<!DOCTYPE html>")
    True
    """
    facts = DRAWINGS[require.choice("name", name, DRAWINGS)]
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta '
        f'charset="utf-8"><title>{html.escape(facts.title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" '
        'href="data:,">'
        "<style>:root{color-scheme:light dark}body{margin:0;background:#fff;color:#1a1a1a;"
        "font:16px/1.45 system-ui,sans-serif}main{max-width:54rem;margin:auto;padding:.8rem "
        "1rem}h1{font-size:1.25rem;"
        "margin:0}a{color:inherit}footer{font-size:.85rem}"
        "@media(prefers-color-scheme:dark){body{background:#14181e;color:#e8e8e8}}</style></head>"
        f"<body><main><h1>{html.escape(facts.title)}</h1>{show(name, **data).body}"
        f'<footer>From <a href="../{facts.page}" target="_top">Connection Bottlenecks in '
        f"Attention</a>. Drawing and text: "
        '<a href="https://creativecommons.org/licenses/by/4.0/" target="_top">CC BY 4.0</a>, '
        "code: MIT.</footer>"
        "</main></body></html>"
    )


@lru_cache
def _text(name: str) -> str:
    return (HERE / name).read_text()
