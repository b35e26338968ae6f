"""Figures with alt text, and widgets that live with a kernel and stand still without one."""

import asyncio
import base64
import html
import inspect
import io
import itertools
import json
import numbers
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from PIL import Image

from helpers import compute

MOST_FRAMES = 80  # at about 15 kB a frame a page stays well under 2 MB
MOST_ROWS = 15
DEBOUNCE = 0.15  # seconds without a new value before a frame is drawn
STYLE, SCRIPT = ((Path(__file__).parent / name).read_text() for name in ("player.css", "player.js"))
VIEW = "application/vnd.jupyter.widget-view+json"


class Frame(NamedTuple):
    """One drawn state: HTML to show, and the sentence that says what is to be seen."""

    body: str
    finding: str


class Control(NamedTuple):
    """One input: the values it may have, how each is written, and the index it starts at."""

    kind: str  # "range", "choice" or "switch"
    label: str
    names: list[str]
    values: list[Any]
    start: int


def show(figure: Figure | Artist, alt: str, caption: str = "") -> HTML:
    """A figure with alt text (what a reader who cannot see it must know) and an optional caption.

    Raises:
        ValueError: `figure` is not a Matplotlib figure (or a part of one), or `alt` is empty.
    """
    if not alt.strip():
        raise ValueError("alt must say what the figure shows, not be empty")
    caption = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return HTML(f'<figure class="still" style="margin:1em 0">{_image(figure, alt)}{caption}</figure>')


def explore(
    draw: Callable[..., Any],
    *,
    caption: str,
    labels: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    **controls: Iterable,
) -> "Explorer":
    """A control panel around `draw`, with one to three controls.

    With a kernel it draws on demand; in a built page every frame is drawn once and a few lines of
    script show them, with no kernel.

    Args:
        draw: takes one value of each control; returns a Matplotlib figure (or axes) or a short
            DataFrame, alone or in a pair with a sentence that states its finding.
        caption: what the widget shows.
        labels: the text of each control's label, with the unit.
        start: the value each control starts at; the first where nothing is said.
        **controls: the values each may have: numbers (a slider), strings or a mapping from label
            to value (a choice), or `[False, True]` (an on/off switch).

    Raises:
        ValueError: no controls or more than three, one without values, more than `MOST_FRAMES`
            states, a start that is not among the values, a `draw` that does not take the controls
            or returns something else.
    """
    labels, start = dict(labels or {}), dict(start or {})
    if not callable(draw):
        raise ValueError(f"draw must be a function, not {draw!r}")
    if not 1 <= len(controls) <= 3:
        raise ValueError(f"explore takes one to three controls, not {len(controls)}")
    for given, name in ((labels, "labels"), (start, "start")):
        if unknown := set(given) - set(controls):
            raise ValueError(f"{name} names {', '.join(sorted(unknown))}, but the controls are {', '.join(controls)}")
    try:
        inspect.signature(draw).bind(**controls)
    except TypeError as error:
        raise ValueError(f"draw must take the controls {', '.join(controls)}: {error}") from None
    made = {name: _control(name, values, labels, start) for name, values in controls.items()}
    count = 1
    for control in made.values():
        count *= len(control.values)
    if count > MOST_FRAMES:
        raise ValueError(f"the controls have {count} states together; at most {MOST_FRAMES} are allowed")
    return Explorer(draw, made, caption)


class Explorer:
    """What `explore` returns: displays as an ipywidgets panel, or as a still player while a page is built."""

    def __init__(self, draw: Callable[..., Any], controls: dict[str, Control], caption: str):
        self.draw, self.controls, self.caption = draw, controls, caption
        self._drawn: dict[tuple[int, ...], Frame] = {}
        self.frame(tuple(control.start for control in controls.values()))

    def frame(self, state: tuple[int, ...]) -> Frame:
        """The frame at these indices of the controls' values, drawn once and then remembered."""
        if state not in self._drawn:
            values = {name: c.values[i] for (name, c), i in zip(self.controls.items(), state, strict=True)}
            result = self.draw(**values)
            result, finding = result if isinstance(result, tuple) else (result, "")
            if not isinstance(finding, str):
                raise ValueError(f"draw's second value must be a sentence, not {type(finding).__name__}")
            self._drawn[state] = Frame(_body(result, self._describe(state, finding)), finding)
        return self._drawn[state]

    def _describe(self, state: tuple[int, ...], finding: str) -> str:
        values = ", ".join(f"{c.label}: {c.names[i]}" for c, i in zip(self.controls.values(), state, strict=True))
        return f"{self.caption.rstrip('.')}. {values}. {finding}".strip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if compute.building():
            return {"text/html": self.still(), "text/plain": self.caption}
        # written out, since ipywidgets 7.7, which Colab has, gives no bundle of its own
        view = {"version_major": 2, "version_minor": 0, "model_id": self.live().model_id}
        return {VIEW: view, "text/plain": self.caption}

    def live(self) -> widgets.Widget:
        """The ipywidgets panel (7.7 and 8)."""
        inputs = [_input(control) for control in self.controls.values()]
        status, body = widgets.HTML(), widgets.HTML()
        waiting: list[asyncio.TimerHandle] = []

        def update() -> None:
            state = tuple(box.index if hasattr(box, "index") else int(box.value) for box in inputs)
            try:
                frame = self.frame(state)
                body.value, status.value = frame.body, html.escape(frame.finding)
            except Exception as error:
                body.value = ""
                status.value = f'<b role="alert">{type(error).__name__}: {html.escape(str(error))}</b>'

        def changed(_: Any) -> None:
            status.value = "<em>computing…</em>"
            while waiting:
                waiting.pop().cancel()
            try:
                waiting.append(asyncio.get_running_loop().call_later(DEBOUNCE, update))
            except RuntimeError:  # no event loop: plain Python
                update()

        for box in inputs:
            box.observe(changed, names="value")
        update()
        caption = widgets.HTML(f"<small>{html.escape(self.caption)}</small>")
        return widgets.VBox([*inputs, body, status, caption])

    def still(self) -> str:
        """The kernel-free player: HTML with native inputs, one frame per state, and its script."""
        controls = list(self.controls.values())
        states = list(itertools.product(*(range(len(c.values)) for c in controls)))
        frames = [self.frame(state) for state in states]
        first = self.frame(tuple(c.start for c in controls))
        inputs = "".join(_native(k, control) for k, control in enumerate(controls))
        payload = json.dumps(
            {
                "names": [c.names for c in controls],
                "frames": [[frame.body, html.escape(frame.finding)] for frame in frames],
            }
        ).replace("</", "<\\/")
        return (
            f'<figure class="explore" data-prevent-swipe>'
            f"<style>{STYLE}</style>"
            f'<div class="explore-controls" role="group" aria-label="{html.escape(self.caption, quote=True)}">'
            f"{inputs}</div>"
            f'<div class="explore-frame">{first.body}</div>'
            f'<p class="explore-finding" aria-live="polite">{html.escape(first.finding)}</p>'
            f"<figcaption>{html.escape(self.caption)}</figcaption>"
            f'<script type="application/json">{payload}</script>'
            f"<script>{SCRIPT}</script></figure>"
        )


def _control(name: str, values: Iterable, labels: Mapping[str, str], start: Mapping[str, Any]) -> Control:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of values, not {values!r}")
    names, values = (list(values), list(values.values())) if isinstance(values, Mapping) else (None, list(values))
    if not values:
        raise ValueError(f"{name} has no values")
    kind = "choice"
    if all(isinstance(value, bool) for value in values):
        if values != [False, True]:
            raise ValueError(f"an on/off switch is [False, True]; {name} is {values}")
        kind, names = "switch", ["off", "on"]
    elif names is None and all(isinstance(value, numbers.Real) for value in values):
        kind, names = "range", [_number(value) for value in values]
    initial = start.get(name, values[0])
    if initial not in values:
        raise ValueError(f"start for {name} must be one of {values}, not {initial!r}")
    return Control(kind, labels.get(name, name), names or [str(v) for v in values], values, values.index(initial))


def _number(value: numbers.Real) -> str:
    return f"{value:,}" if isinstance(value, numbers.Integral) else f"{float(value):.4g}"


def _body(result: Any, alt: str) -> str:
    if isinstance(result, pd.DataFrame):
        if len(result) > MOST_ROWS:
            raise ValueError(f"draw returned a table of {len(result)} rows; at most {MOST_ROWS} are allowed")
        return result.to_html(border=0)
    return _image(result, alt)


def _image(figure: Any, alt: str) -> str:
    if isinstance(figure, Artist) and not isinstance(figure, Figure):
        figure = figure.figure
    if not isinstance(figure, Figure):
        raise ValueError(f"expected a Matplotlib figure or a DataFrame, not {type(figure).__name__}")
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=120)
    plt.close(figure)
    picture = Image.open(drawn).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    picture.convert("RGB").save(packed, format="webp", lossless=True, method=4)
    source = base64.b64encode(packed.getvalue()).decode()
    width, height = picture.size
    return (
        f'<img class="dark-light" width="{width}" height="{height}" style="max-width:min(100%,54rem);height:auto;background:#fff"'
        f' alt="{html.escape(alt, quote=True)}" src="data:image/webp;base64,{source}">'
    )


def _input(control: Control) -> widgets.Widget:
    look = {"description": control.label, "style": {"description_width": "initial"}}
    if control.kind == "switch":
        return widgets.Checkbox(value=bool(control.start), **look)
    options = list(zip(control.names, control.values, strict=True))
    kind = widgets.SelectionSlider if control.kind == "range" else widgets.Dropdown
    return kind(options=options, index=control.start, layout=widgets.Layout(width="32em"), **look)


def _native(k: int, control: Control) -> str:
    label, last = html.escape(control.label, quote=True), len(control.values) - 1
    beside = ""
    if control.kind == "switch":
        box = f'<input type="checkbox" autocomplete="off"{" checked" if control.start else ""}>'
    elif control.kind == "choice":
        options = "".join(
            f"<option{' selected' if i == control.start else ''}>{html.escape(text)}</option>"
            for i, text in enumerate(control.names)
        )
        box = f'<select autocomplete="off">{options}</select>'
    else:
        now = control.names[control.start]
        box = (
            f'<input type="range" autocomplete="off" min="0" max="{last}" step="1" value="{control.start}"'
            f' aria-valuetext="{now}">'
        )
        beside = (
            f'<output aria-live="off">{now}</output>'
            f'<button type="button" data-plays="{k}" data-label="{label}" aria-label="Play: {label}">▶ Play</button>'
        )
    return f'<div class="explore-control"><label><span>{label}</span>{box}</label>{beside}</div>'
