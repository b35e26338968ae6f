"""Show figures with alt text, and show widgets that also work on a page without a kernel."""

import html
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import ipywidgets
from IPython.display import HTML
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from helpers import compute, words
from helpers.widget import _controls, _drawn, _live, _picture, _still
from helpers.widget._picture import STYLE, image

_MOST_FRAMES = 80  # with about 15 kB per frame, a page stays well below 2 MB
# the type of the output that `show` provides for slides
SLIDES = "application/vnd.connection-bottlenecks.slides+json"
_VIEW = "application/vnd.jupyter.widget-view+json"


def bundle(
    still: Callable[[], str], live: Callable[[], ipywidgets.Widget], text: str
) -> dict[str, Any]:
    """Return an output in the forms that a notebook can display, keyed by MIME type.

    While a page is built, the output has the HTML that `still` returns. In a notebook with a
    kernel, it has the ipywidgets panel that `live` returns. It always has the plain text.

    Args:
        still: a function that returns the widget as HTML.
        live: a function that returns the widget as an ipywidgets widget.
        text: the plain text, for programs that can show neither form.

    >>> bundle(lambda: "<b>1</b>", ipywidgets.VBox, "one")["text/plain"]
    'one'
    """
    if compute.building():
        return {"text/html": still(), "text/plain": text}
    # ipywidgets 7.7, which Colab has, cannot make this bundle itself
    return {
        _VIEW: {"version_major": 2, "version_minor": 0, "model_id": live().model_id},
        "text/plain": text,
    }


class _Frame(NamedTuple):
    """Hold one state of a widget, as a drawing in HTML with a sentence that says what it shows."""

    body: str
    finding: str


def show(figure: Figure | Artist, alt: str, caption: str = "") -> HTML:
    """Show a figure with alt text and an optional caption.

    The alt text is for readers who cannot see the figure. On a built page the output also contains
    a description of the figure in words and numbers (under the key `drawn`). The tests compare it
    with the files in `tests/drawn`, and so notice when a figure changes.

    Args:
        figure: a Matplotlib figure, or a part of one, such as its axes.
        alt: what the figure shows, in a sentence or two.
        caption: the text below the figure, or "" for none.

    Returns:
        The figure as an output that a notebook displays.

    Raises:
        ValueError: if `figure` is not a Matplotlib figure (or a part of one), or `alt` is empty.

    >>> from helpers import style
    >>> show(style.axes("Rises", "n", "x"), alt="A line that rises.").data[:21]
    '<figure class="still"'
    """
    if not alt.strip():
        raise ValueError(
            "alt must not be empty, because readers who cannot see the figure read "
            "this text instead"
        )
    caption = (
        f"<figcaption>{html.escape(words.translated(caption))}</figcaption>" if caption else ""
    )
    figure = _picture.whole(figure)
    description = {"drawn": _drawn.lines(figure)} if compute.building() else None
    alt = words.translated(alt)
    inside = f"<style>{STYLE}</style>{image(figure, alt)}{caption}"
    shown = _Still(
        f'<figure class="still" style="margin:1em 0">{inside}</figure>', metadata=description
    )
    if compute.building():
        shown.on_slides = _picture.for_slides(figure, alt, tall=True)
    return shown


class _Still(HTML):
    """Hold a figure for a page, together with its drawings for slides, which pages do not show."""

    on_slides: dict[str, str] | None = None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {SLIDES: self.on_slides} if self.on_slides else {}


def explore(
    draw: Callable[..., Any],
    /,
    *,
    caption: str,
    labels: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    **controls: Iterable,
) -> "_Explorer":
    """Show a panel with one to three controls that redraws a figure whenever a control changes.

    With a kernel, each change calls the function `draw`. On a built page every state is drawn once
    in advance, and a short script shows the drawings without a kernel.

    Args:
        draw: a function with one argument per control. It returns a Matplotlib figure (or axes) or
            a short DataFrame, or a pair of one of these and a sentence that states the finding.
        caption: a sentence that says what the widget shows.
        labels: a label for each control, with its unit.
        start: the value at which each control starts. By default a control starts at its first
            value.
        **controls: the values of each control: numbers (a slider), strings or a mapping from label
            to value (a choice), or `[False, True]` (an on/off switch). A control cannot be named
            `draw`, `caption`, `labels` or `start`.

    Raises:
        ValueError: if there are no controls or more than three, if they have more than 80 states
            together, if `labels` or `start` names an unknown control, or if `draw` does not take
            the controls.

    >>> import pandas as pd
    >>> squares = explore(lambda n: pd.DataFrame({"n²": [n * n]}), caption="Squares", n=[1, 2])
    >>> squares.caption
    'Squares'
    """
    if not 1 <= len(controls) <= 3:
        raise ValueError(f"explore takes one to three controls, not {len(controls)}")
    if unknown := {*(labels or ()), *(start or ())} - set(controls):
        raise ValueError(
            f"labels and start name {', '.join(unknown)}, but the controls are "
            f"{', '.join(controls)}"
        )
    try:
        inspect.signature(draw).bind(**controls)
    except TypeError as error:
        raise ValueError(
            f"draw must take one argument for each control ({', '.join(controls)}), but {error}"
        ) from None
    made = {
        name: _controls.control(name, values, labels or {}, start or {})
        for name, values in controls.items()
    }
    count = math.prod(len(c.values) for c in made.values())
    if count > _MOST_FRAMES:
        raise ValueError(
            f"controls may have at most {_MOST_FRAMES} states together, but these have "
            f"{count}. Give fewer values"
        )
    return _Explorer(draw, made, words.translated(caption), count)


class _Explorer:
    """Hold the panel of `explore`.

    With a kernel, the panel consists of ipywidgets. While a page is built, it is a player that
    shows drawings made in advance. `count` is the number of the panel's states.
    """

    def __init__(
        self,
        draw: Callable[..., Any],
        controls: dict[str, _controls.Control],
        caption: str,
        count: int,
    ):
        self.draw, self.controls, self.caption, self.count = draw, controls, caption, count
        self._drawn: dict[tuple[int, ...], _Frame] = {}
        self._on_slides: dict[tuple[int, ...], str] = {}
        self.frame(tuple(c.start for c in controls.values()))

    def frame(self, state: tuple[int, ...]) -> _Frame:
        """Return the drawing of one state, which is given by the index of each control's value.

        Each drawing is made once and then stored.
        """
        if state not in self._drawn:
            values = {
                name: c.values[i] for (name, c), i in zip(self.controls.items(), state, strict=True)
            }
            result = self.draw(**values)
            result, finding = (
                result if isinstance(result, tuple) and len(result) == 2 else (result, "")
            )
            if not isinstance(finding, str):
                raise ValueError(
                    "the second value that draw returns must be a sentence (a string), not "
                    f"{type(finding).__name__}"
                )
            finding = words.translated(finding)
            alt = self._describe(state, finding)
            self._drawn[state] = _Frame(_picture.body(result, alt), finding)
            if compute.building() and isinstance(result, Artist):
                on_slides = _picture.for_slides(result, alt, states=self.count)
                self._on_slides[state] = on_slides["drawings"]
        return self._drawn[state]

    def _describe(self, state: tuple[int, ...], finding: str) -> str:
        colon, comma, stop = "：，。" if "。" in self.caption else (": ", ", ", ". ")
        values = comma.join(
            f"{c.label}{colon}{c.names[i]}"
            for c, i in zip(self.controls.values(), state, strict=True)
        )
        return f"{self.caption.rstrip('.。')}{stop}{values}{stop}{finding}".strip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        made = bundle(self.still, self.live, self.caption)
        if self._on_slides:
            made[SLIDES] = {"frames": [self._on_slides.get(state, "") for state in self._states()]}
        return made

    def _states(self) -> Iterable[tuple[int, ...]]:
        """List all states as tuples of one index per control. The last index varies fastest."""
        return itertools.product(*(range(len(c.values)) for c in self.controls.values()))

    def live(self) -> ipywidgets.VBox:
        """Build the panel with ipywidgets (versions 7.7 and 8)."""
        return _live.Panel(list(self.controls.values()), self.frame, self.caption).box

    def still(self) -> str:
        """Write the player for a page without a kernel.

        The player is HTML with native inputs, one drawing per state, and a script.
        """
        controls, states = list(self.controls.values()), list(self._states())
        first = states.index(tuple(c.start for c in controls))
        return _still.page(controls, [self.frame(state) for state in states], first, self.caption)
