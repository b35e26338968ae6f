"""Describe a figure as lines of text with its titles, labels, colours and numbers.

A built page contains these lines next to its figures, so that a test can notice when a figure
changes.
"""

import math
from collections.abc import Iterable

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import FixedFormatter

from helpers import style

_NAMES = {to_hex(value): name for name, value in style.COLOURS.items()} | {
    to_hex(style.ENCODINGS["ALiBi"]): "ochre",
    "#ffffff": "white",
    "#000000": "ink",
}
# up to this many points are written one by one, and this many of a larger number
_WHOLE, _SHOWN = 40, 12
_SIDES = ("left", "right", "bottom", "top")
_ROUNDING = 2e-12  # smaller numbers count as rounding errors


def lines(figure: Figure) -> list[str]:
    """Describe each axes of a figure and its content as lines of text.

    The description of an axes (Matplotlib's word for a panel) has its title, scales and labels.
    Parts of the content that look alike share one line.
    """
    title = figure.get_suptitle()
    described = [f"figure: {title}"] if title else []
    for ax in figure.axes:
        titles = [ax.get_title(loc=place) for place in ("left", "center")]
        title, scales = " ".join(filter(None, titles)), f"{ax.get_xscale()} {ax.get_yscale()}"
        described.append(f"axes: {title!r}, x {ax.get_xlabel()!r}, y {ax.get_ylabel()!r}, {scales}")
        described += [f"  {line}" for line in _axes(ax)]
    return described + [_legend(each) for each in figure.legends]


def _axes(ax: Axes) -> Iterable[str]:
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if isinstance(axis.get_major_formatter(), FixedFormatter):
            yield f"{name} ticks: {' / '.join(axis.get_major_formatter().seq)}".replace("\n", " ")
    drawn: dict[str, list[np.ndarray]] = {}
    for line in ax.get_lines():
        is_open = _colour(line.get_mfc()) in ("white", "none")
        look = f"{line.get_linestyle()} {line.get_marker()}{' open' * is_open}"
        name = f"line {_label(line)} {_colour(line.get_color())} {look}"
        if line.get_gid() == style.ROUNDING:
            yield f"{name}: rounding"
            continue
        drawn.setdefault(name, []).append(
            np.stack([np.asarray(each, dtype=float) for each in line.get_data()])
        )
    for name, points in drawn.items():  # points that look alike share one line of text
        x, y = np.concatenate(points, axis=1)
        yield f"{name}: x {_numbers(x)}; y {_numbers(y)}"
    boxes: dict[str, list[tuple[float, ...]]] = {}
    for patch in ax.patches:
        box = patch.get_path().get_extents(patch.get_patch_transform())
        boxes.setdefault(f"{type(patch).__name__} {_colour(patch.get_facecolor())}", []).append(
            (box.x0, box.x1, box.y0, box.y1)
        )
    for name, places in boxes.items():
        yield f"{name}: " + "; ".join(
            f"{side} {_numbers(each)}"
            for side, each in zip(_SIDES, zip(*places, strict=True), strict=True)
        )
    for collection in ax.collections:
        yield _collection(collection)
    for image in ax.get_images():
        values = np.asarray(image.get_array())
        yield f"image {image.get_cmap().name} {values.shape}: {_numbers(values.ravel())}"
    noise = [line.get_label() for line in ax.get_lines() if line.get_gid() == style.ROUNDING]
    for text in ax.texts:
        at = (
            "rounding"
            if text.get_text() in noise
            else _numbers(getattr(text, "xy", text.get_position()))
        )
        yield f"text {_colour(text.get_color())} {text.get_text()!r} at {at}"
    if legend := ax.get_legend():
        yield _legend(legend)


def _legend(legend: Legend) -> str:
    return f"legend: {' / '.join(text.get_text() for text in legend.get_texts())}".replace(
        "\n", " "
    )


def _collection(found: Collection) -> str:
    colours = list(
        dict.fromkeys(_colour(c) for c in (*found.get_facecolor(), *found.get_edgecolor()))
    )[:4]
    offsets, paths = np.asarray(found.get_offsets(), dtype=float), found.get_paths()
    places = (
        offsets
        if offsets.any()
        else np.concatenate([path.vertices for path in paths] or [np.zeros((0, 2))])
    )
    x, y = _numbers(places[:, 0]), _numbers(places[:, 1])
    return f"{type(found).__name__} {' '.join(colours)}: {x}; {y}"


def _label(artist: object) -> str:
    label = artist.get_label()
    return "_" if label.startswith("_") else repr(label)


def _colour(colour: object) -> str:
    if isinstance(colour, str) and colour == "none":
        return "none"
    name = to_hex(colour, keep_alpha=False)
    return _NAMES.get(name, name)


def _numbers(values: object) -> str:
    """Write the given numbers with three digits each.

    If there are many numbers, we write only some of them, at equal distances, and then how many
    there are, their mean, the smallest and the largest.
    """
    numbers = np.asarray(
        values.detach().cpu() if isinstance(values, torch.Tensor) else values, dtype=float
    ).ravel()
    text = [
        _three(x)
        for x in numbers[:: 1 if len(numbers) <= _WHOLE else math.ceil(len(numbers) / _SHOWN)]
    ]
    if len(numbers) <= _WHOLE:
        return " ".join(text)
    finite = numbers[np.isfinite(numbers)]
    summary = (
        " ".join(_three(x) for x in (finite.mean(), finite.min(), finite.max()))
        if len(finite)
        else "none finite"
    )
    return f"{' '.join(text)} ({len(numbers)}: mean, least, most {summary})"


def _three(x: float) -> str:
    """Write a number with three significant digits, or an integer with all its digits.

    A number so small that it is only rounding error is written as 0.
    """
    if not math.isfinite(x):
        return str(x)
    return f"{round(x)}" if abs(x - round(x)) < _ROUNDING and abs(x) < 1000 else f"{x:#.3g}"
