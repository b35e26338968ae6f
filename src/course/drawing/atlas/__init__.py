"""Show the head atlas, in which you choose a head and see where each token attends.

The atlas has every head of a model, for one prompt. It works with and without a kernel.
"""

import base64
import html
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from helpers import attention, require
from helpers.widget import bundle, image
from helpers.words import translated

STYLE, SCRIPT = ((Path(__file__).parent / name).read_text() for name in ("atlas.css", "atlas.js"))
MOST_TOKENS = 40
SORTS = {"sink score": 0, "previous-token score": 1, "diagonal score": 2}


class Reading(NamedTuple):
    """Hold the tokens of a prompt and a model's attention matrices for it.

    Attributes:
        words: the text of each token.
        maps: the attention matrix of every head.
    """

    words: list[str]
    maps: Float[Tensor, "layers heads n n"]


class Atlas:
    """Show all heads of a model on one prompt.

    The reader chooses a head and points at a token (or moves to it with Tab). The atlas then shows
    to which tokens this token attends. With a kernel, the reader can also type another prompt. A
    built page, which has no kernel, contains all attention matrices as one picture, and a short
    script that shows parts of it.

    Args:
        read: a function from a prompt to its `Reading`.
        prompt: the first prompt.
        caption: the text below the widget.

    Raises:
        ValueError: if the prompt or caption is empty, the prompt has fewer than two tokens or more
            than `MOST_TOKENS`, or the attention matrices are not row-stochastic and causal.
    """

    def __init__(self, read: Callable[[str], Reading], prompt: str, caption: str):
        for name, value in (("prompt", prompt), ("caption", caption)):
            require.text(name, value, empty=False)
        self.read, self.caption = read, translated(caption)
        self.look_up(prompt)

    def look_up(self, prompt: str) -> None:
        """Run the model on another prompt and compute the scores of its heads."""
        words, maps = self.read(prompt)
        if not 2 <= len(words) <= MOST_TOKENS:
            raise ValueError(f"prompt must have 2 to {MOST_TOKENS} tokens, not {len(words)}")
        scores = [
            attention.sink_score(maps),
            attention.slash_score(maps, 1),
            attention.slash_score(maps, 0),
        ]
        self.prompt, self.words, self.maps = prompt, words, maps
        self.scores = [score.flatten().tolist() for score in scores]
        layers, heads = (range(1, count + 1) for count in maps.shape[:2])
        self.heads = [
            translated(f"layer {layer}, head {head}") for layer in layers for head in heads
        ]

    def ranked(self, sort: str) -> list[int]:
        """Return the indices of the heads sorted by a score, the highest score first."""
        scores = self.scores[SORTS[sort]]
        return sorted(range(len(scores)), key=lambda k: (-scores[k], k))

    def sheet(self) -> str:
        """Return all attention matrices as one picture, in which each layer has one row.

        The grey value is the square root of the weight, so that small weights are visible, too.
        """
        layers, heads, n, _ = self.maps.shape
        tiles = self.maps.permute(0, 2, 1, 3).reshape(layers * n, heads * n)
        grey = (255 * tiles.double().clamp(0, 1).sqrt()).round().to(torch.uint8)
        packed = io.BytesIO()
        Image.fromarray(grey.numpy()).save(packed, format="png", optimize=True)
        return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode()

    def finding(self, head: int, token: int) -> str:
        """Return a sentence that says to which tokens a token attends most in one head."""
        row = self.maps.flatten(0, 1)[head, token, : token + 1]
        most = row.topk(min(3, len(row)))
        looks = ", ".join(
            f"“{self.words[j]}” ({j + 1}) {w:.2f}"
            for w, j in zip(most.values.tolist(), most.indices.tolist(), strict=True)
        )
        who = f"{self.heads[head]}: “{self.words[token]}” ({token + 1})"
        return f"{who} {translated('looks at')} {looks}."

    def draw(self, head: int, token: int) -> Axes:
        """Draw a head's attention matrix and the arcs of one token.

        The panel with a kernel shows this figure.
        """
        matrix, n = self.maps.flatten(0, 1)[head], len(self.words)
        left, right = Figure(figsize=(9.0, 4.0)).subplots(1, 2, width_ratios=(1, 1.4))
        left.imshow(matrix.sqrt(), cmap="Blues", vmin=0, vmax=1)
        left.axhline(token, color="#D55E00", lw=1)
        left.set(xlabel="token looked at", ylabel="token that looks")
        left.grid(False)
        angle = torch.linspace(0, torch.pi, 40)
        for j in range(token):
            weight = float(matrix[token, j])
            if weight >= 0.03:
                middle, radius = (token + j) / 2, (token - j) / 2
                right.plot(
                    middle + radius * angle.cos(),
                    radius * angle.sin(),
                    color="#D55E00",
                    lw=0.5 + 5 * weight,
                )
        right.set_xticks(
            range(n), [word.strip() or "·" for word in self.words], rotation=90, size=9
        )
        right.set(xlim=(-0.5, n - 0.5), ylim=(-0.3, n / 2), yticks=[])
        right.grid(False)
        return left

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self.still, self.live, self.caption)

    def still(self) -> str:
        """Return the version that works without a kernel, as HTML."""
        head, token = self.ranked("sink score")[0], len(self.words) - 1
        finding = html.escape(self.finding(head, token))
        sorts = [{"scores": [round(s, 3) for s in self.scores[k]]} for k in SORTS.values()]
        data = {
            "words": self.words,
            "heads": self.heads,
            "sorts": sorts,
            "columns": self.maps.shape[1],
        }
        data["verb"] = translated("looks at")
        payload = json.dumps(data | {"sheet": self.sheet()}).replace("</", "<\\/")
        kinds = "".join(f"<option>{translated(name)}</option>" for name in SORTS)
        options = "".join(
            f'<option value="{k}">{self.heads[k]}: {self.scores[0][k]:.2f}</option>'
            for k in self.ranked("sink score")
        )
        tokens = "".join(
            f'<button type="button" '
            f'aria-pressed="{str(k == token).lower()}">{html.escape(word) or "·"}</button>'
            for k, word in enumerate(self.words)
        )
        pictures = "".join(
            f'<canvas class="atlas-{name}" role="img" data-what="{what}" aria-label="{what}. '
            f'{finding}"></canvas>'
            for name, what in (
                ("map", translated("Map of the head")),
                ("arcs", translated("Arcs of the head")),
            )
        )
        return (
            f'<figure class="atlas" data-prevent-swipe><style>{STYLE}</style>'
            f'<div class="atlas-controls"><label>{translated("sorted by")} <select '
            f'autocomplete="off">{kinds}</select></label>'
            f"<label>{translated('head')} <select "
            f'autocomplete="off">{options}</select></label></div>'
            f'<div class="atlas-pictures">{pictures}</div>'
            f'<div class="atlas-tokens" role="group" '
            f'aria-label="{translated("Token that looks")}">{tokens}</div>'
            f'<p class="atlas-finding" aria-live="polite">{finding}</p>'
            f"<figcaption>{html.escape(self.caption)}</figcaption>"
            f'<script type="application/json">{payload}</script><script>{SCRIPT}</script></figure>'
        )

    def live(self) -> ipywidgets.VBox:
        """Return the panel for a kernel, with ipywidgets (7.7 and 8) and a field for the prompt."""
        wide = {"style": {"description_width": "initial"}, "layout": {"width": "32em"}}
        wording = {"value": self.prompt, "placeholder": translated("type, then Enter")}
        prompt = ipywidgets.Text(
            description=translated("prompt"), continuous_update=False, **wording, **wide
        )
        sort = ipywidgets.Dropdown(
            options=[(translated(name), name) for name in SORTS],
            description=translated("sorted by"),
            **wide,
        )
        head = ipywidgets.Dropdown(description=translated("head"), **wide)
        token = ipywidgets.SelectionSlider(options=["-"], description="token", **wide)
        status, body = ipywidgets.HTML(), ipywidgets.HTML()
        filling = [False]

        def show(_: object = None) -> None:
            if filling[0]:
                return
            finding = self.finding(head.value, token.index)
            status.value = f'<div role="status"><b>{html.escape(finding)}</b></div>'
            body.value = image(self.draw(head.value, token.index), f"{self.caption} {finding}")

        def fill(_: object = None) -> None:
            filling[0] = True
            ranked, scores = self.ranked(sort.value), self.scores[SORTS[sort.value]]
            head.options = [(f"{self.heads[k]}: {scores[k]:.2f}", k) for k in ranked]
            head.index = 0
            filling[0] = False
            show()

        def renew(change: dict | None = None) -> None:
            if change:
                status.value = "<em>computing…</em>"
                try:
                    self.look_up(change["new"])
                except ValueError as error:
                    status.value = f'<div role="alert"><b>{html.escape(str(error))}</b></div>'
                    return
            filling[0] = True
            token.options = [(f"{k}: {word}", k) for k, word in enumerate(self.words)]
            token.index = len(self.words) - 1
            fill()

        renew()
        prompt.observe(renew, names="value")
        sort.observe(fill, names="value")
        for box in (head, token):
            box.observe(show, names="index")
        return ipywidgets.VBox(
            [prompt, sort, head, token, status, body, ipywidgets.HTML(html.escape(self.caption))]
        )
