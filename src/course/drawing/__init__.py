"""Show interactive drawings in a notebook, in slides or on a page.

After `from course import drawing`, `drawing.show("clocks")` returns a drawing that you can drag and
change. A drawing works with and without a kernel, because it is HTML that contains all its parts:
its own ES module, the modules that all drawings share (`kit.js`, `mathematics.js`), its data, and a
still picture for readers without scripts. Nothing is loaded from the network. On a Markdown page,
write the directive `{drawing} clocks`. The built book also has `drawings/clocks.html`, a page with
only the drawing, for a frame on another site.

A drawing is a plain ES module, `src/course/drawing/<name>.js`, with a function `render({ model, el
})` as in anywidget. `kit.js` provides controls, things to drag, a link that stores the drawing's
state, and words that highlight a part of the drawing. Such a word is a `<span data-light="part">`,
or an emphasised word (`*chain*`) in the same section that is one of the drawing's `words`.
Everything that moves is computed in `mathematics.js`, and a test compares each function there with
the Python function of the same name.

After a change, run `python tools/stills.py`. It writes the still pictures, and the numbers from
real models and from the race that the drawing "machine" shows. A drawing must be smaller than 80
kB, and its initial state should be the one that explains most.
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
STOPS = 8  # stops of the machine's camera
LINK = "Link to what you see, alone on a page"


class Facts(NamedTuple):
    """Hold the texts that belong to a drawing.

    Attributes:
        title: the title.
        alt: the description, for readers who do not see the drawing.
        caption: how to use the drawing, as HTML.
        page: the page that explains the drawing.
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
    """Hold a drawing, which displays as HTML, or as its description where HTML is not available."""

    def __init__(self, name: str, body: str):
        self.name, self.body = name, body

    def _repr_html_(self) -> str:
        return self.body

    def __repr__(self) -> str:
        return DRAWINGS[self.name].alt


def show(name: str, language: str = "en", **data: Any) -> Drawing:
    """Return the interactive drawing with this name, ready to be displayed.

    Args:
        name: one of `DRAWINGS`.
        language: "en", or a language with a table in `words/`.
        **data: values for the drawing that JSON can represent. `state` sets the initial state, with
            the same keys as in links to the drawing. In the drawing "machine", `at` is a stop of
            the camera or a sentence at a stop (2.3 is the third sentence at stop 2).

    Raises:
        ValueError: if the name is unknown, the language has no table, or JSON cannot represent the
            data.

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
        raise ValueError(
            f"data must hold only values that JSON can represent, but {error}"
        ) from None
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
    """Return the states that the drawing "machine" goes through at one stop of the film.

    The text of the film is on the front page, and there is one state for each of its sentences. A
    state includes the settings of all earlier sentences.

    >>> film(1)[:4:3]
    [{'edges': 'path', 'lit': 'streams'}, {'edges': 'all'}]
    """
    return states_of(FILM.get(str(require.integer("stop", stop, 0, STOPS - 1)), ""))


def states_of(text: str) -> list[dict[str, Any]]:
    """Parse the states of a film that are written in a text.

    The text has one state per sentence, separated by "|". A state keeps the settings of the states
    before it, except for the highlight (`lit`), which lasts for one sentence only.

    Raises:
        ValueError: if a setting has no "=".

    >>> states_of("edges=path | token=0.5 quiet=false")
    [{'edges': 'path'}, {'edges': 'path', 'token': 0.5, 'quiet': False}]
    """
    states: list[dict[str, Any]] = []
    for part in text.split("|") if text else []:
        state = {key: value for key, value in (states or [{}])[-1].items() if key != "lit"}
        for setting in shlex.split(part):
            key, equals, value = setting.partition("=")
            if not equals:
                raise ValueError(
                    f"film must consist of settings such as edges=path, not {setting!r}"
                )
            state[key] = _value(value)
        states.append(state)
    return states


def _value(text: str) -> float | bool | str:
    """Parse a setting as JSON, or return the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def scene_of(at: float) -> dict[str, Any]:
    """Return the state that the drawing "machine" shows at a stop of its camera.

    At each stop, the reader sees a film with a text, and each sentence of the text has its own
    state. A decimal in `at` selects a sentence. For example, 1.4 is the fourth sentence at stop 1.

    Raises:
        ValueError: if there is no such stop or sentence.

    >>> scene_of(2), scene_of(1.4)
    ({'at': 2}, {'at': 1, 'edges': 'all'})
    """
    stop, step = divmod(round(10 * require.number("at", at, 0, STOPS - 0.1)), 10)
    states = film(stop)
    if step > len(states):
        raise ValueError(
            f"at must be the number of a sentence at stop {stop}, at most {stop}.{len(states)}"
        )
    return {"at": stop} | (states[step - 1] if step else {})


def scene(name: str, stop: float, language: str = "en") -> str:
    """Return the file name of a drawing's still picture, without its ending.

    The drawing "machine" has one picture for each stop of its camera and each language.

    >>> scene("clocks", 0), scene("machine", 3), scene("machine", 3, "zh")
    ('clocks', 'machine-3', 'machine-3.zh')
    """
    return f"{name}{f'-{round(stop)}' * (name == 'machine')}{f'.{language}' * (language != 'en')}"


@lru_cache
def words_of(name: str, language: str) -> dict[str, str]:
    """Return the translations of the texts in a drawing, or {} for English.

    They have the form that `helpers.words.use` takes.

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
    """Return a drawing's still picture as HTML.

    Args:
        said: whether to show the words in the picture and the sentence below it, for a page that
            also has the drawing.

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
    """Return a still picture of a chapter's drawing, in which the labels are left out.

    For a chapter without its own drawing, the result is a picture of the drawing "machine".

    Args:
        folder: the folder of the chapter's pages, such as "5-rope-frequencies". "chapters" gives
            the drawing "machine" before its first stop.
        language: "en", or a language with a table in `words/`.

    >>> "<svg" in emblem("5-rope-frequencies")
    True
    """
    # if a folder has two drawings, take the first one
    found = {Path(DRAWINGS[name].page).parent.name: name for name in reversed(DRAWINGS)}
    return picture(found.get(folder, "machine"), stop_of(folder), language=language)


def stop_of(folder: str) -> int:
    """Return the stop of the drawing "machine" for a chapter's folder, or 0 for other pages.

    The stop is the chapter's number.

    >>> stop_of("5-rope-frequencies"), stop_of("chapters")
    (5, 0)
    """
    return int(folder[0]) if folder[:1].isdigit() else 0


def numbers(name: str) -> dict[str, Any]:
    """Return the numbers from a real model that a drawing shows, or {} for a drawing without them.

    The file with the numbers names the script that computed them.

    >>> numbers("clocks")
    {}
    """
    file = HERE / "numbers" / f"{require.choice('name', name, DRAWINGS)}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def module(name: str) -> str:
    """Return the drawing as one ES module, with all imports included.

    Comments and indents, which weigh a sixth of it, are removed.
    anywidget calls such a module `_esm`.

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
    told = re.sub(r"^ *(?://.*|/\*\*(?:(?!\*/)(?:.|\n))*\*/)\n", "", whole, flags=re.M)
    return re.sub(r"^ +", "", told, flags=re.M).strip()


def script(name: str) -> str:
    """Return the drawing as a script without modules, which makes its figures interactive.

    >>> script("clocks").startswith("(() => {")
    True
    """
    body = module(name).removesuffix("export default { render };")
    return f'(() => {{\n{body}\nkit.start("{name}", render);\n}})();'


def page(name: str, **data: Any) -> str:
    """Return an HTML page that contains only the drawing, for embedding in a frame elsewhere.

    The page supports light and dark mode.

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
