"""Write the player that replaces a widget on a page without a kernel.

The player has native inputs, frames that were drawn in advance, and a short script.
"""

import html
import json
from pathlib import Path

from helpers.widget import _picture
from helpers.widget._controls import Control

STYLE, _SCRIPT = (
    (Path(__file__).parent / name).read_text() for name in ("player.css", "player.js")
)


def page(controls: list[Control], frames: list, first: int, caption: str) -> str:
    """Write the HTML of the player.

    `frames` are pairs (body, finding), ordered so that the last control varies fastest, and `first`
    is the index of the frame that is shown at the start. The HTML contains no id and nothing
    random. So two builds give equal pages, and a page may contain the same widget twice.
    """
    body, finding = frames[first]
    data = {
        "names": [c.names for c in controls],
        "frames": [[body, html.escape(text)] for body, text in frames],
    }
    payload = json.dumps(data).replace("</", "<\\/")
    several = sum(control.kind == "range" for control in controls) > 1
    inputs = "".join(_native(k, control, several) for k, control in enumerate(controls))
    return (
        f'<figure class="explore" data-prevent-swipe><style>{STYLE}{_picture.STYLE}</style>'
        f'<div class="explore-controls" role="group" '
        f'aria-label="{html.escape(caption, quote=True)}">{inputs}</div>'
        f'<div class="explore-frame">{body}</div>'
        f'<p class="explore-finding" aria-live="polite">{html.escape(finding)}</p>'
        f"<figcaption>{html.escape(caption)}</figcaption>"
        f'<script type="application/json">{payload}</script>'
        f"<script>{_SCRIPT}</script></figure>"
    )


def _native(k: int, control: Control, several: bool) -> str:
    """Write a control as HTML. With `several`, its Play button also names the control."""
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
            f'<input type="range" autocomplete="off" min="0" max="{last}" step="1" '
            f'value="{control.start}"'
            f' aria-valuetext="{now}">'
        )
        beside = (
            f'<output aria-live="off">{now}</output>'
            f'<button type="button" data-plays="{k}" data-label="{label}" aria-label="Play: '
            f'{label}"{" data-named" * several}>▶ Play{f": {label}" * several}</button>'
        )
    return f'<div class="explore-control"><label><span>{label}</span>{box}</label>{beside}</div>'
