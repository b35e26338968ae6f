"""Build the panel that a kernel redraws on demand.

The panel works with ipywidgets 7.7, which Colab has, and with ipywidgets 8.
"""

import asyncio
import contextlib
import html
import io
import re
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import ipywidgets as widgets

from helpers.widget import _picture, _still
from helpers.widget._controls import Control

_DEBOUNCE = 0.15  # seconds without a new value before we draw
_PACE = 0.9  # seconds for which Play shows a frame
_SCRIPT = (Path(__file__).parent / "live.js").read_text()
# ipywidgets lets no script in, but a style can tell when it has arrived
_STYLE = (
    f'<style onload="{html.escape(_SCRIPT, quote=True)}">{_still.STYLE}{_picture.STYLE}</style>'
)
_COMPUTING = "<em>computing…</em>"
_PLAY, _STOP = "▶ Play", "■ Stop"


class Panel:
    """Show the controls, the drawing, its status, printed messages and the caption in one panel.

    `frame` is a function that returns the drawing for the given indices of the controls' values,
    and `controls` describes the controls.
    """

    def __init__(
        self,
        controls: list[Control],
        frame: Callable[[tuple[int, ...]], tuple[str, str]],
        caption: str,
    ):
        self.controls, self.frame = controls, frame
        self.inputs = [_input(control) for control in controls]
        self.status, self.body, self.printed = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.status.add_class("explore-state")
        self.body.add_class("explore-frame")
        # drawing stays in the main thread, which the stop button can reach; JupyterLab may report a
        # change in another thread
        self._loop = _loop()
        self._waiting: asyncio.TimerHandle | None = None  # the next scheduled drawing
        self._pause: asyncio.TimerHandle | None = None  # the next scheduled step of Play
        self._playing: tuple[widgets.Button, widgets.SelectionSlider] | None = None
        self._stepping = False
        self._shown: tuple[int, ...] = ()
        for box in self.inputs:
            box.observe(self._changed, names="index" if hasattr(box, "index") else "value")
        self._update()
        self.box = widgets.VBox(
            [
                *map(self._row, self.inputs, controls),
                self.status,
                self.body,
                self.printed,
                widgets.HTML(f"{_STYLE}<small>{html.escape(caption)}</small>"),
            ]
        )
        self.box.add_class("explore")

    def _row(self, box: widgets.Widget, control: Control) -> widgets.Widget:
        if control.kind != "range" or len(control.values) == 1:
            return box
        several = sum(each.kind == "range" for each in self.controls) > 1
        button = widgets.Button(
            description=f"{_PLAY}: {control.label}" if several else _PLAY,
            tooltip=f"Play: {control.label}",
            layout={"width": "auto"},
        )
        button.add_class("explore-play")
        button.on_click(lambda _: self._toggle(button, box))
        return widgets.HBox([box, button], layout={"flex_flow": "row wrap"})

    def _state(self) -> tuple[int, ...]:
        return tuple(box.index if hasattr(box, "index") else int(box.value) for box in self.inputs)

    def _say(self, text: str) -> None:
        self.status.value = f'<div class="explore-finding">{text}</div>'

    def _values(self, state: tuple[int, ...]) -> str:
        return html.escape(
            ", ".join(f"{c.label}: {c.names[i]}" for c, i in zip(self.controls, state, strict=True))
        )

    def _changed(self, _: object) -> None:
        if not self._stepping:
            self._stop()
        self._say(_COMPUTING)
        if self._loop:
            self._loop.call_soon_threadsafe(self._schedule)
        else:
            self._update()

    def _schedule(self) -> None:
        self._say(_COMPUTING)  # once more, because a frame may have finished in the meantime
        if self._waiting:
            self._waiting.cancel()
        self._waiting = self._loop.call_later(_DEBOUNCE, self._update)

    def _update(self) -> None:
        """Draw the current state.

        If drawing fails, the panel reports the error and keeps the last drawing.
        """
        state, heard = self._state(), io.StringIO()
        old = f" The picture still shows {self._values(self._shown)}." if self._shown else ""
        try:
            with _stoppable(), _listening(heard):
                body, finding = self.frame(state)
            self.body.value, self._shown = body, state
            self.body.remove_class("explore-old")
            self._say(html.escape(finding))
        except KeyboardInterrupt:
            self._fail(f"<b>Stopped.</b>{old}")
        except (
            BaseException
            # includes SystemExit and its kind, because the panel must survive whatever `draw` does
        ) as error:
            trace = html.escape("".join(traceback.format_exception(error)))
            details = f"<details><summary>Where it happened</summary><pre>{trace}</pre></details>"
            self._fail(f"<b>{type(error).__name__}: {html.escape(str(error))}</b>{old}{details}")
        printed = re.sub(
            r"[^\n]*\r(?!\n)", "", heard.getvalue()
        )  # a progress bar leaves only its last state
        self.printed.value = f"<pre>{html.escape(printed)}</pre>" if printed else ""
        if self._playing and _at_end(self._playing[1]):
            self._stop()
        elif self._playing:
            self._pause = self._loop.call_later(_PACE, self._step) if self._loop else self._step()

    def _fail(self, text: str) -> None:
        self._stop()
        self.body.add_class("explore-old")
        self._say(f'<span role="alert">{text}</span>')

    def _toggle(self, button: widgets.Button, slider: widgets.SelectionSlider) -> None:
        playing = self._playing
        self._stop()
        if playing and playing[0] is button:
            return
        self._playing = button, slider
        _name(button, _PLAY, _STOP)
        self._step()

    def _step(self) -> None:
        if not self._playing:
            return
        slider = self._playing[1]
        self._stepping = True
        slider.index = 0 if _at_end(slider) else slider.index + 1
        self._stepping = False

    def _stop(self) -> None:
        if self._pause:
            self._pause.cancel()
        if self._playing:
            _name(self._playing[0], _STOP, _PLAY)
        self._playing = None


def _name(button: widgets.Button, before: str, after: str) -> None:
    """Change the text of a button from "▶ Play" to "■ Stop", or the other way round."""
    button.description = button.description.replace(before, after, 1)
    button.tooltip = button.tooltip.replace(before[2:], after[2:], 1)


def _at_end(slider: widgets.SelectionSlider) -> bool:
    return slider.index == len(slider.options) - 1


def _loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop, or None in plain Python.

    Without an event loop a change is drawn at once.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let the notebook's stop button interrupt the block.

    Otherwise a kernel ignores the button while no cell is running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


@contextlib.contextmanager
def _listening(heard: io.StringIO) -> Iterator[None]:
    """Collect printed lines and warnings while the block runs.

    A notebook would not show them while no cell is running.
    """
    with warnings.catch_warnings(record=True) as caught:
        try:
            with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
                yield
        finally:
            heard.writelines(
                f"{warning.category.__name__}: {warning.message}\n" for warning in caught
            )


def _input(control: Control) -> widgets.Widget:
    look = {"description": control.label, "style": {"description_width": "initial"}}
    if control.kind == "switch":
        return widgets.Checkbox(value=bool(control.start), indent=False, **look)
    options = list(zip(control.names, control.values, strict=True))
    kind = widgets.SelectionSlider if control.kind == "range" else widgets.Dropdown
    return kind(
        options=options,
        index=control.start,
        layout=widgets.Layout(width="32em", max_width="100%"),
        **look,
    )
