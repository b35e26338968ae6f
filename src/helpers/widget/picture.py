"""What a drawing becomes: an image with alt text, or a short table, as HTML that needs no other file."""

import base64
import html
import io
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

from helpers import words

MOST_ROWS = 15
DPI = 120
STYLE = (Path(__file__).parent / "picture.css").read_text().split("*/\n")[1]


def dark_is_little(map: AxesImage) -> bool:
    """Whether the least value has another colour than the page: turned light for dark, it would become the most."""
    return min(map.cmap(0.0)[:3]) < 0.5


def body(result: Any, alt: str) -> str:
    """A figure (or a part of one) as an image, a DataFrame as a table."""
    if isinstance(result, pd.DataFrame):
        if len(result) > MOST_ROWS:
            raise ValueError(f"draw returned a table of {len(result)} rows; at most {MOST_ROWS} are allowed")
        return result.to_html(border=0)
    return image(result, alt)


def whole(figure: Any) -> Figure:
    """The figure itself, also where a part of it is given."""
    if isinstance(figure, Artist) and not isinstance(figure, Figure):
        figure = figure.figure
    if not isinstance(figure, Figure):
        raise ValueError(f"expected a Matplotlib figure or a DataFrame, not {type(figure).__name__}")
    return figure


def image(figure: Any, alt: str) -> str:
    """The figure as an `<img>` that holds its own bytes: lossless WebP of 128 colours. Closes the figure."""
    figure = whole(figure)
    words.reword(figure)
    kind = "keep" if any(dark_is_little(drawn) for ax in figure.axes for drawn in ax.images) else "dark-light"
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.set_dpi(DPI)
    figure.savefig(drawn, format="rgba", dpi=DPI)
    width, height = FigureCanvasAgg(figure).get_width_height()  # as savefig counts: 16.2999… inches are 1956 pixels
    plt.close(figure)
    picture = Image.frombytes("RGBA", (width, height), drawn.getvalue()).convert("RGB")
    few = picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.convert("RGB").save(packed, format="webp", lossless=True, method=4)
    source = base64.b64encode(packed.getvalue()).decode()
    return (
        f'<img class="{kind}" width="{width}" height="{height}"'
        ' style="max-width:min(100%,54rem);height:auto;background:#fff"'
        f' alt="{html.escape(alt, quote=True)}" src="data:image/webp;base64,{source}">'
    )
