"""What the figures and tables of the pages show, written down: `chapterN.txt` holds the lines of each call in `chapterN.py`.

A change of a figure changes lines of the text, so that whoever reads the change sees it. `tests/test_drawn.py` compares.
"""

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter
from pandas.io.formats.style import Styler

from helpers import style

NAMES = {to_hex(value): name for name, value in style.COLOURS.items()} | {"#ffffff": "white", "#000000": "ink"}
WHOLE, SHOWN = 40, 12  # so many points are given one by one; so many of more
SIDES = ("left", "right", "bottom", "top")
ROUNDING = 2e-12  # what is smaller is taken for rounding


def lines(result: object) -> list[str]:
    """What a call gave, in lines of text: a figure with its finding, a table, a sentence, numbers."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Axes | Figure):
        return [*_figure(result[0] if isinstance(result[0], Figure) else result[0].figure), f"finding: {result[1]}"]
    if isinstance(result, Styler):
        return result.to_string(delimiter=" | ").strip().splitlines()
    if isinstance(result, pd.DataFrame | pd.Series):
        table = result.to_frame() if isinstance(result, pd.Series) else result
        table = table if isinstance(table.index, pd.RangeIndex) else table.reset_index()
        return [" | ".join(map(str, table)), *(" | ".join(map(_word, row)) for row in table.itertuples(index=False))]
    if isinstance(result, torch.Tensor | np.ndarray | float | int):
        return [_numbers(result)]
    if isinstance(result, Mapping):
        return [f"{name}: {line}" for name, value in result.items() for line in lines(value)]
    if isinstance(result, str):
        return result.splitlines()
    if isinstance(result, Iterable):
        return [line for value in result for line in lines(value)]
    return [str(result)]


def same(first: str, second: str) -> bool:
    """Whether two lines say the same: equal words, and numbers equal to one in a hundred or to the last digit printed.

    Whole numbers without a per cent sign must be equal up to a hundred.
    """
    words, numbers = zip(*(_parts(line) for line in (first, second)), strict=True)
    if words[0] != words[1]:
        return False
    return all(
        abs(a - b) <= max(0.01 * abs(a), unit_a, unit_b, ROUNDING)
        for (a, unit_a), (b, unit_b) in zip(*numbers, strict=True)
    )


POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|e[-+]?\d+)?%?")


def _parts(line: str) -> tuple[str, list[tuple[float, float]]]:
    """The words of a line, and its numbers with the size of their last digit."""
    found = []
    for text in NUMBER.findall(line):
        plain = text.rstrip("%").rstrip(",").replace(",", "").translate(POWERS).replace(" × 10", "e")
        mantissa, _, power = plain.partition("e")
        digits = len(mantissa.partition(".")[2])
        loose = digits or text.endswith("%") or power
        found.append((float(plain), 1.01 * 10.0 ** (int(power or 0) - digits) if loose else 0.0))
    return NUMBER.sub("#", line), found


def _figure(figure: Figure) -> list[str]:
    title = figure.get_suptitle()
    found = [f"figure: {title}"] if title else []
    for ax in figure.axes:
        titles = [ax.get_title(loc=place) for place in ("left", "center")]
        title, scales = " ".join(filter(None, titles)), f"{ax.get_xscale()} {ax.get_yscale()}"
        found.append(f"axes: {title!r}, x {ax.get_xlabel()!r}, y {ax.get_ylabel()!r}, {scales}")
        found += [f"  {line}" for line in _axes(ax)]
    return found


def _axes(ax: Axes) -> Iterable[str]:
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if isinstance(axis.get_major_formatter(), FixedFormatter):
            yield f"{name} ticks: {' / '.join(axis.get_major_formatter().seq)}".replace("\n", " ")
    drawn: dict[str, list[np.ndarray]] = {}
    for line in ax.get_lines():
        look = f"{line.get_linestyle()} {line.get_marker()}{' open' if _colour(line.get_mfc()) in ('white', 'none') else ''}"
        name = f"line {_label(line)} {_colour(line.get_color())} {look}"
        if line.get_gid() == style.ROUNDING:
            yield f"{name}: rounding"
            continue
        drawn.setdefault(name, []).append(np.stack([np.asarray(each, dtype=float) for each in line.get_data()]))
    for name, points in drawn.items():  # points that look alike stand in one line of text
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
            f"{side} {_numbers(each)}" for side, each in zip(SIDES, zip(*places, strict=True), strict=True)
        )
    for collection in ax.collections:
        yield _collection(collection)
    for image in ax.get_images():
        values = np.asarray(image.get_array())
        yield f"image {image.get_cmap().name} {values.shape}: {_numbers(values.ravel())}"
    for text in ax.texts:
        at = getattr(text, "xy", text.get_position())
        yield f"text {_colour(text.get_color())} {text.get_text()!r} at {_numbers(at)}"
    if legend := ax.get_legend():
        yield f"legend: {' / '.join(text.get_text() for text in legend.get_texts())}".replace("\n", " ")


def _collection(found: Collection) -> str:
    colours = list(dict.fromkeys(_colour(c) for c in (*found.get_facecolor(), *found.get_edgecolor())))[:4]
    offsets, paths = np.asarray(found.get_offsets(), dtype=float), found.get_paths()
    places = offsets if offsets.any() else np.concatenate([path.vertices for path in paths] or [np.zeros((0, 2))])
    return f"{type(found).__name__} {' '.join(colours)}: {_numbers(places[:, 0])}; {_numbers(places[:, 1])}"


def _label(artist: object) -> str:
    label = artist.get_label()
    return "_" if label.startswith("_") else repr(label)


def _colour(colour: object) -> str:
    if isinstance(colour, str) and colour == "none":
        return "none"
    name = to_hex(colour, keep_alpha=False)
    return NAMES.get(name, name)


def _word(value: object) -> str:
    return _numbers(value) if isinstance(value, float) else str(value)


def _numbers(values: object) -> str:
    """Three digits of each number; of many, their count, mean, ends and some between."""
    found = np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values, dtype=float).ravel()
    text = [_three(x) for x in found[:: 1 if len(found) <= WHOLE else math.ceil(len(found) / SHOWN)]]
    if len(found) <= WHOLE:
        return " ".join(text)
    finite = found[np.isfinite(found)]
    summary = " ".join(_three(x) for x in (finite.mean(), finite.min(), finite.max())) if len(finite) else "none finite"
    return f"{' '.join(text)} ({len(found)}: mean, least, most {summary})"


def _three(x: float) -> str:
    """Three digits, of a whole number all; what is nothing but rounding is 0."""
    if not math.isfinite(x):
        return str(x)
    whole = abs(x - round(x)) < ROUNDING and abs(x) < 1000
    return f"{round(x)}" if whole else f"{x:#.3g}"
