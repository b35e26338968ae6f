"""Turn a figure into an image with alt text, or a DataFrame into a short table, as HTML.

The HTML needs no other file.
"""

import base64
import contextlib
import functools
import html
import io
import itertools
import pickle
import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter
from matplotlib.transforms import Bbox
from PIL import Image

from helpers import compute, words
from helpers.style import _LINE_END, NAMED, TYPES
from helpers.widget import _vector

_MOST_ROWS = 15
_DPI = 120
# The size of figures on slides, in inches, at 110 pixels an inch. They are 1,208 pixels wide, and
# `slides/lecture/lecture.css` takes the height that fits best below a slide's heading and text.
# Numbers are then at least 20 pixels high.
_WIDE, _SLIDES = 11.0, {"roomy": 4.41, "flat": 3.67, "low": 3.04}
_TALL = {"tall": 5.25, "high": 4.83}  # below a heading alone, where a widget has its controls
_MIDDLE = {"middle": 4.03}  # between the controls of a widget and its sentence
_SMALLEST = 13  # in points, the smallest letters of a figure on a slide
# A name at the end of a line gets two lines of so many letters on a slide, if all names of the axes
# then take at most this fraction of the figure's height.
_NAME, _NAMES = (10, 14, 18, 24), 0.6
_HEAVY = 120_000  # if a drawing has more characters, we use an image
_LIGHT = 24_000  # a drawing with its form for phones may have so many characters in any case
# A deck has the drawings of all states of a widget, which should stay below this many characters. A
# widget with more than a few states has only one drawing for each state.
_WIDGET, _FEW = 1_200_000, 30
STYLE = (Path(__file__).parent / "picture.css").read_text().split("*/\n")[1]


def _dark_is_little(map: AxesImage) -> bool:
    """Return whether an image draws its smallest value darker than the page.

    If so, swapping light and dark for a dark page would make the smallest value look like the
    largest.
    """
    return min(map.cmap(0.0)[:3]) < 0.5


def body(result: Any, alt: str) -> str:
    """Return a figure (or a part of one) as an HTML image, or a DataFrame as an HTML table."""
    if isinstance(result, pd.DataFrame):
        if len(result) > _MOST_ROWS:
            raise ValueError(
                f"draw must return a table of at most {_MOST_ROWS} rows, not {len(result)}"
            )
        return result.to_html(border=0)
    return image(result, alt)


def whole(figure: Any) -> Figure:
    """Return the figure to which an object such as a set of axes belongs."""
    if isinstance(figure, Artist) and not isinstance(figure, Figure):
        figure = figure.figure
    if not isinstance(figure, Figure):
        raise ValueError(
            f"expected a Matplotlib figure or a DataFrame, not {type(figure).__name__}"
        )
    return figure


def _level(figure: Figure, near: bool = False) -> None:
    """Move the label of each y axis above the axis.

    Beside the axis, a long label would be cut off. The figure must already be laid out. With
    `near`, the label is close to the axis, which leaves more room for the axes on a slide.
    """
    gap, least, line = (-0.02, 0, 1.05) if near else (0.09, 8, 1.5)
    for ax in figure.axes:
        label, box = ax.yaxis.label, ax.get_window_extent()
        if (
            not label.get_text()
            or label.get_rotation() == 0
            or ax.yaxis.get_label_position() == "right"
        ):
            continue
        left = min([box.x0, *(tick.get_window_extent().x0 for tick in _ticks(ax))])
        label.set(rotation=0, ha="left", va="bottom")
        ax.yaxis.set_label_coords((left - box.x0) / box.width, 1 + gap * figure.dpi / box.height)
        ax._left_title.set_x((left - box.x0) / box.width)
        if not ax.title.get_text() and not ax._left_title.get_text():
            ax._left_title.set(
                text=" ", size=1
            )  # the layout keeps room for a title, but not for a label above the axis
        for title in (ax.title, ax._left_title):
            # we do not break the lines of a title again, because each would get only a few words
            if title.get_text():
                # if the title was not drawn yet, this tells it the renderer
                title.get_window_extent()
                title.set(text=title._get_wrapped_text(), wrap=False)
                ax._set_title_offset_trans(
                    least + line * label.get_size() * (1 + label.get_text().count("\n"))
                )


def _spread(figure: Figure) -> None:
    """Move the labels at the ends of lines apart if they would overlap.

    These are the labels that `style.label` wrote. The figure must already be laid out.
    """
    for ax in figure.axes:
        box, places, ends = ax.get_window_extent(), [], []
        for text in ax.texts:
            if text.get_gid() == _LINE_END:
                ends.append(
                    (float(np.clip(ax.transData.transform(text.xy)[1], box.y0, box.y1)), text)
                )
        ends.sort(key=lambda end: end[0])
        # more space around a name of several lines, so that one sees which lines belong together
        high = [_ink(text).height + (9 if "\n" in text.get_text() else 3) for _, text in ends]
        for k, (height, _) in enumerate(ends):
            places.append(max(height, places[-1] + (high[k - 1] + high[k]) / 2) if k else height)
        # no label is above the axes, because the title is there
        for k in reversed(range(len(ends))):
            top = box.y1 if k == len(ends) - 1 else places[k + 1] - (high[k] + high[k + 1]) / 2
            places[k] = min(places[k], top)
        for (_, text), place in zip(ends, places, strict=True):
            text.xyann = (text.xyann[0], (place - box.y0) / box.height)


def _ticks(ax: Axes) -> list[Text]:
    """Return the tick labels that are visible at an axis.

    Matplotlib also keeps tick labels beyond the ends of the axis, which it does not draw.
    """
    ticks = []
    for axis, (low, high) in (
        ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))) if ax.axison else ()
    ):
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            ticks += [
                text
                for text in (tick.label1, tick.label2)
                if low <= tick.get_loc() <= high and _seen(text)
            ]
    return ticks


def _seen(text: Text) -> bool:
    return text.get_visible() and bool(text.get_text().strip())


def _ink(text: Text) -> Bbox:
    """Return the bounding box of the letters of a text.

    The box that Matplotlib returns has extra space above and below the letters, or at their sides
    if the text is upright.
    """
    # this fixes the position of a note, without its arrow, which is not text
    text.get_window_extent()
    box = Text.get_window_extent(text)
    air = 0.2 * text.get_size() * text.figure.dpi / 72
    return box.padded(-air, -2) if text.get_rotation() % 180 else box.padded(-2, -air)


def _miscoloured(label: str, colour) -> list[str]:
    """Return a list with one complaint if a name with a fixed colour has another colour here.

    The list is empty if there is nothing to complain about. In the label, a number may follow the
    name.
    """
    name = re.sub(r"\s+[−\d.,×⁻⁰¹²³⁴⁵⁶⁷⁸⁹%]+$", "", label.replace("\n", " "))
    wrong = name in NAMED and not same_color(colour, NAMED[name])
    return [f"{name} in another's colour"] if wrong else []


def _faults(figure: Figure) -> list[str]:
    """List what a reader of a laid-out figure could not read or would misread.

    The faults are text beyond the figure's edge or over other text or lines, points beyond the
    axes, and lines in the style or colour of another floating-point format or of another name in
    `style.NAMED`.
    """
    texts = [*figure.texts]  # a title above all panels is one of these texts
    faults = []
    for ax in figure.axes:
        names = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        legend = ax.get_legend().get_texts() if ax.get_legend() else []
        texts += _ticks(ax) + names + legend
        for line in ax.get_lines():
            x, y = (np.asarray(part, dtype=float) for part in line.get_data())
            (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
            hidden = (x >= left) & (x <= right) & ((y < low) | (y > high))
            if line.get_transform() == ax.transData and hidden.any():
                faults.append(f"{line.get_label()}: {y[hidden][0]:g} beyond the axis")
            way = line.get_transform().transform_path(line.get_path()).cleaned(remove_nans=True)
            look = line.get_linestyle()
            dots = look == "None"
            kinds = TYPES.keys() & line.get_label().split()
            faults += [
                f"{kind} in another's line" for kind in kinds if look not in (TYPES[kind], "None")
            ]
            faults += _miscoloured(line.get_label(), line.get_color())
            for box in map(_ink, legend):
                if (
                    box.count_contains(way.vertices)
                    if dots
                    else way.intersects_bbox(box, filled=False)
                ):
                    faults.append(f"{line.get_label()} through the legend")
        for text in ax.texts:
            # the colour of plain black text has no meaning
            if not same_color(text.get_color(), "black"):
                faults += _miscoloured(text.get_text(), text.get_color())
    boxes = [(text, _ink(text)) for text in texts if _seen(text)]
    wide, high = figure.bbox.size
    faults += [
        f"cut off: {text.get_text()}"
        for text, box in boxes
        if min(box.x0, box.y0) < -2 or box.x1 > wide or box.y1 > high
    ]
    numbers = {id(text): text.get_va() for ax in figure.axes for text in _ticks(ax)}
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        corner = numbers.get(id(a)) != numbers.get(id(b)) and {id(a), id(b)} <= set(
            numbers
        )  # the numbers of both axes meet in the corner
        if one.overlaps(other) and not corner:
            faults.append(f"{a.get_text()} over {b.get_text()}")
    return faults


def _laid_out(figure: Figure, near: bool = False) -> list[str]:
    """Arrange the labels of a figure so that they can be read, and list the faults that remain.

    The function `_faults` describes the list.
    """
    if (
        figure.get_layout_engine() and figure.axes
    ):  # labels get their positions before anything is drawn
        figure.get_layout_engine().execute(figure)
        for ax in figure.axes:
            ax.apply_aspect()
    else:
        figure.draw_without_rendering()
    _level(figure, near)
    figure.draw_without_rendering()
    _spread(figure)
    figure.set_layout_engine("none")
    return _faults(figure)


def _reword(figure: Figure) -> None:
    """Translate every text in a figure with the current table of words."""
    if not words._entries:
        return
    for axis in figure.findobj(Axis):
        for formatter in (axis.get_major_formatter(), axis.get_minor_formatter()):
            if isinstance(formatter, FixedFormatter):
                formatter.seq = [words.translated(str(text)) for text in formatter.seq]
            elif isinstance(
                getattr(formatter, "func", None), functools.partial
            ):  # from Axis.set_ticks with labels
                labels = formatter.func.args[0]
                labels.update(
                    {place: words.translated(str(text)) for place, text in labels.items()}
                )
    ticks = {
        tick
        for axis in figure.findobj(Axis)
        for tick in axis.findobj(Text)
        if tick is not axis.label
    }
    for text in figure.findobj(Text):
        if text not in ticks:
            text.set_text(words.translated(text.get_text()))


def image(figure: Any, alt: str) -> str:
    """Return a figure as HTML that needs no other file, and close the figure.

    In a notebook the result is an `<img>` with a lossless WebP image of 128 colours. On a page of
    the book it is an `<svg>`, with a second `<svg>` for phones. If the figure is a matrix, or if
    the `<svg>` would be larger than the image, a page gets an `<img>`, too, and its attribute
    `data-image` gives the reason.

    >>> image(Figure(), "Nothing is drawn.")[:4]
    '<img'
    """
    figure = whole(figure)
    _reword(figure)
    # the font of an edition has only the characters of its page
    face = words._faces == [*words._FACE]
    made = _made(figure, alt, compute.building() and face)
    plt.close(figure)
    return made


def for_slides(figure: Any, alt: str, tall: bool = False, states: int = 1) -> dict[str, str]:
    """Return drawings of a figure for slides, without its title and large enough to fill the slide.

    The title is left out because the heading of the slide and the speaker's notes already say the
    same. Call this after `image`, which translates the words of the figure. `states` is the number
    of states of the widget to which the figure belongs.

    Returns:
        The title that was left out, and the drawings of the kinds in `_SLIDES`, as HTML. A drawing
            is left out if its text could not be read.

    >>> for_slides(Figure(), "Nothing is drawn.")
    {'title': '', 'drawings': ''}
    """
    figure = whole(figure)
    titles = [title for ax in figure.axes for title in (ax.title, ax._left_title)]
    panels = [ax for ax in figure.axes if ax.get_subplotspec()]
    said = [title.get_text() for title in titles] if len(panels) == 1 else []
    said.append(figure.get_suptitle())
    face = words._faces == [*words._FACE]
    kinds = (_TALL if tall else _MIDDLE) | _SLIDES
    if states > _FEW:
        kinds = {"flat": _SLIDES["flat"]}
    most = min(_HEAVY, _WIDGET // (states * len(kinds)))
    drawings = [_projected(figure, alt, kind, high, face, most) for kind, high in kinds.items()]
    return {"title": " ".join(filter(str.strip, said)), "drawings": "".join(drawings)}


def _projected(figure: Figure, alt: str, kind: str, high: float, drawing: bool, most: int) -> str:
    """Return one drawing for `for_slides` as HTML, or an empty string if it cannot be used.

    If vector graphics would have more than `most` characters, the result is an image. A build
    stores the result.
    """
    try:
        held = pickle.dumps(figure)
    # a function on an axis cannot be pickled
    except (AttributeError, TypeError, pickle.PicklingError):
        return ""
    for broken, near in itertools.product((True, False), (True, False)):
        sized = _untitled(pickle.loads(held), high)
        if broken:
            _break_names(sized)
        # we test here whether there is enough room, so we ignore the warning about it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            wrong = not sized.axes or _laid_out(sized, near)
        plt.close(sized)
        if not wrong:
            break
    else:
        return ""
    if drawing and not sized.findobj(AxesImage):
        made = _vector.drawn(sized, alt, f"wide {kind}")
        if len(made) <= most:
            return made
    turned = "keep" if _any_dark_is_little(sized) else "dark-light"
    return _webp(sized, alt, f'class="{turned} {kind}"')


def _untitled(figure: Figure, high: float) -> Figure:
    """Give a figure the width of a slide and the height `high`, and remove its title.

    The labels of the axes are placed close to the axes.
    """
    figure.set_dpi(_DPI)
    figure.set_size_inches(_WIDE, high)
    panels = [ax for ax in figure.axes if ax.get_subplotspec()]
    if len(panels) == 1:
        for title in (panels[0].title, panels[0]._left_title):
            title.set_text("")
    if figure._suptitle:
        figure._suptitle.set_text("")
    if figure.get_layout_engine():
        figure.get_layout_engine().set(h_pad=0, w_pad=0.02)
    for ax in panels:  # a line of text has empty space above and below its letters
        ax.xaxis.labelpad -= 9
        ax.tick_params(axis="x", which="both", pad=1)
    for text in figure.findobj(Text):
        if 1 < text.get_size() < _SMALLEST:  # the empty titles of `_level` have size 1
            text.set_size(_SMALLEST)
    return figure


def _break_names(figure: Figure) -> None:
    """Break long names at the ends of lines into several lines, which leaves the axes more width.

    If axes have too many lines for broken names, their names stay as they are.
    """
    for ax in figure.axes:
        ends = [text for text in ax.texts if text.get_gid() == _LINE_END]
        broken = [_broken(text.get_text()) for text in ends]
        high = sum(1 + name.count("\n") for name in broken) * plt.rcParams["font.size"] / 72
        if high <= _NAMES * figure.get_figheight():
            for text, name in zip(ends, broken, strict=True):
                text.set(text=name, linespacing=0.9)


def _broken(name: str) -> str:
    """Break a name into at most two lines if it can be, but not before a number or within one.

    >>> _broken("random, median 4.4"), _broken("row 5.8 × 10⁻⁷")
    ('random,\\nmedian 4.4', 'row 5.8 × 10⁻⁷')
    """
    bound = re.sub(r" (?=[×−\d])|(?<=×) ", "\u00a0", name)
    for most in _NAME:
        lines = textwrap.wrap(bound, most, break_long_words=False, break_on_hyphens=False)
        if len(lines) <= 2:
            break
    return "\n".join(lines).replace("\u00a0", " ")


def _any_dark_is_little(figure: Figure) -> bool:
    return any(_dark_is_little(drawn) for ax in figure.axes for drawn in ax.images)


def _packed(figure: Figure) -> tuple[str, int, int]:
    """Return a laid-out figure as a WebP image in base64, with its width and height in pixels.

    The image is lossless and has 128 colours.
    """
    canvas, packed = FigureCanvasAgg(figure), io.BytesIO()
    canvas.draw()
    width, height = canvas.get_width_height()
    picture = Image.frombuffer(
        "RGBA", (width, height), canvas.buffer_rgba(), "raw", "RGBA", 0, 1
    ).convert("RGB")
    few = picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.convert("RGB").save(packed, format="webp", lossless=True, method=4)
    return base64.b64encode(packed.getvalue()).decode(), width, height


def _webp(figure: Figure, alt: str, attributes: str) -> str:
    source, width, height = _packed(figure)
    return (
        f'<img {attributes} width="{width}" height="{height}" style="background:#fff"'
        f' alt="{html.escape(alt, quote=True)}" src="data:image/webp;base64,{source}">'
    )


def _made(figure: Figure, alt: str, drawing: bool) -> str:
    """Return the HTML that `image` returns, as vector graphics if `drawing` is true.

    A build stores this result, so the figure must not change afterwards.
    """
    held = b""
    with contextlib.suppress(
        AttributeError, TypeError, pickle.PicklingError
    ):  # a function on an axis cannot be pickled
        held = pickle.dumps(figure) if compute.building() else b""
        figure = pickle.loads(held) if held else figure
    figure.set_dpi(_DPI)
    wrong = _laid_out(figure)
    said = f' data-faults="{html.escape("; ".join(wrong), quote=True)}"' if wrong else ""
    kind = "keep" if _any_dark_is_little(figure) else "dark-light"
    source, width, height = _packed(figure)
    plt.close(figure)
    why = ""
    if drawing:
        why = ' data-image="a matrix"'
        if not figure.findobj(AxesImage):
            made = _vector.drawn(figure, alt, "wide")
            if len(made) <= len(source):
                slim = _vector.narrow(held, _laid_out, alt) if held else ""
                made += slim * (len(made) + len(slim) <= max(_LIGHT, 1.25 * len(source)))
                return f"<svg{said}{made.removeprefix('<svg')}"
            why = ' data-image="lighter so"'
    return (
        f'<img class="{kind}" width="{width}" height="{height}"'
        ' style="max-width:min(100%,54rem);height:auto;background:#fff"'
        f' alt="{html.escape(alt, quote=True)}"{said}{why} src="data:image/webp;base64,{source}">'
    )
