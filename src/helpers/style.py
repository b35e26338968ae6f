"""Draw figures for a projector, in one style and in colours for colour-blind readers.

Importing this module sets Matplotlib's defaults. Figures are drawn on white, and
`widget/picture.css` adapts their colours to a dark page.
"""

import itertools
import math
import numbers
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from pandas.io.formats.style import Styler

from helpers import require, words

# The colours of Okabe and Ito (2008), the darkest first. Each has a contrast of at least 3:1 to
# white.
COLOURS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#00805C",
    "purple": "#B0518D",
    "black": "#1A1A1A",
    "grey": "#767676",
}

# Networks and metrics have the same colour in all chapters.
NETWORKS = {
    "gcn": COLOURS["blue"],
    "gin": COLOURS["green"],
    "gat": COLOURS["purple"],
    "ggnn": COLOURS["vermillion"],
    "attention": COLOURS["black"],
}
ENCODINGS = {
    "RoPE": COLOURS["blue"],
    "p-RoPE": COLOURS["purple"],
    "NoPE": COLOURS["black"],
    # ochre, because vermillion marks the token that a figure follows, and failures
    "ALiBi": "#8F6B00",
    "APE": COLOURS["green"],
}
# These are the designs that chapters 6 and 7 compare, and the graphs of chapters 1 and 2.
DESIGNS = {
    "local RoPE, global NoPE": COLOURS["green"],
    "local RoPE, global NoPE + scalable softmax": ENCODINGS["ALiBi"],
    "NoPE, scalable softmax": COLOURS["vermillion"],
    "NoPE, stick-breaking": COLOURS["purple"],
}
GRAPHS = {"causal attention": COLOURS["black"], "causal": COLOURS["black"]}
NAMED = ENCODINGS | DESIGNS | GRAPHS
# A floating-point format has the same line style in every colour. The fewer bits its fraction has,
# the more of the line is left out.
TYPES = {"fp32": "-", "bf16": "--", "fp16": ":", "fewer bits": "-."}
_LINE_END = "line's end"  # the id of a name at the end of a line
# the id of parts that show only rounding errors, whose digits differ between processors
ROUNDING = "rounding"


# The readouts that try to recover information from a state, and the possible outcomes of each.
_READERS = (
    "an average",
    "a Jacobian",
    "a nearest-state search",
    "a linear probe",
    "the model itself",
)
_FATES = ("kept", "in part", "lost", "missed", "not missed")

for _file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
    fontManager.addfont(_file)
plt.rcParams.update(
    {
        "font.family": words._faces,
        "mathtext.fontset": "custom",
        "mathtext.rm": "Source Sans 3",
        "mathtext.it": "Source Sans 3",
        "mathtext.bf": "Source Sans 3:bold",
        "mathtext.cal": "Source Sans 3",
        "mathtext.sf": "Source Sans 3",
        "figure.figsize": (9.0, 5.0),
        "figure.dpi": 100,
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "font.size": 17,
        "axes.titlesize": 18,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 17,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.grid.which": "major",
        "axes.prop_cycle": plt.cycler(color=list(COLOURS.values())),
        "grid.color": "#E3E3E3",
        "legend.frameon": False,
        "legend.fontsize": 15,
        "lines.linewidth": 2.5,
        "lines.markersize": 8,
        "xtick.labelsize": 15,
        "ytick.labelsize": 15,
        "ytick.alignment": "center",  # by default this label is 4 pixels below its tick on a slide
    }
)


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 2) -> str:
    """Format a number as texts, tables and figures print it.

    The result has the given number of significant digits, a true minus sign, and commas between
    thousands. A float below 0.01, or from a million on, is written with a power of ten.

    Args:
        value: the number. Infinity becomes "∞", and NaN (no value) becomes "–".
        digits: how many significant digits, from 1 to 9.

    >>> number(0.00173), number(-0.5), number(314)
    ('1.7 × 10⁻³', '−0.50', '314')
    >>> number(12_345.6), number(2.5e7), number(float("nan"))
    ('12,346', '2.5 × 10⁷', '–')
    """
    require.integer("digits", digits, 1, 9)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"value must be a number, not {require.brief(value)}")
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}".replace("-", "−")
    value = float(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    power = int(power)
    if -3 < power < 6:
        text = f"{value:,.{max(0, digits - 1 - power)}f}"
    else:
        text = f"{mantissa} × 10{str(power).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def colours_of(names: Iterable[str]) -> list[str]:
    """Return a colour for each name, so that a name has the same colour in all figures.

    A name in `NAMED` has a fixed colour. The other names get, in order, the colours of the style
    that are still unused.

    Args:
        names: the names of the designs, encodings or columns.

    Returns:
        One colour per name, as Matplotlib's hexadecimal code.

    >>> wanted = [COLOURS[name] for name in ("vermillion", "blue", "black")]
    >>> colours_of(["mean", "RoPE", "NoPE"]) == wanted
    True
    """
    try:
        listed = None if isinstance(names, str) else list(names)
    except TypeError:
        listed = None
    if listed is None:
        raise ValueError(f"names must be a list of strings, not {require.brief(names)}")
    names = [require.text("names", name) for name in listed]
    others = [each for each in COLOURS.values() if each not in {NAMED.get(name) for name in names}]
    rest = itertools.cycle(others or COLOURS.values())
    return [NAMED.get(name) or next(rest) for name in names]


def axes(title: str, x: str, y: str, log: str = "", height: float = 5.0) -> Axes:
    """Create a figure and return its axes, with a title that states the finding.

    Args:
        title: the finding in one sentence.
        x, y: the labels of the axes, with units.
        log: the logarithmic axes, "", "x", "y" or "xy".
        height: the height of the figure in inches.

    >>> ax = axes("Distance falls", "n", "L1", log="xy")
    >>> ax.get_xscale(), ax.get_title(loc="left")
    ('log', 'Distance falls')
    """
    for name, text in (("title", title), ("x", x), ("y", y), ("log", log)):
        require.text(name, text)
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log must be '', 'x', 'y' or 'xy', not {log!r}")
    require.number("height", height, 0.1, 100)
    # this is not pyplot's figure, because a notebook should show the figure only on request
    figure = Figure(figsize=(9.0, height))
    ax = figure.subplots()
    ax.set_title(title, wrap=True)
    ax.set(xlabel=x, ylabel=y)
    ax.set_xscale("log" if "x" in log else "linear")
    ax.set_yscale("log" if "y" in log else "linear")
    return ax


def whole_ticks(ax: Axes, x: bool = True, y: bool = False) -> None:
    """Put ticks only at integers. Use this for a linear axis that shows a count.

    Args:
        ax: the axes to change.
        x, y: whether to change the x axis and the y axis.

    >>> ax = axes("Whole numbers", "n", "L1")
    >>> whole_ticks(ax)
    """
    require.instance("ax", ax, Axes, "Matplotlib axes")
    require.flag("x", x)
    require.flag("y", y)
    for axis, chosen in ((ax.xaxis, x), (ax.yaxis, y)):
        if chosen:
            axis.get_major_locator().set_params(integer=True)


def ticks(
    ax: Axes, places: Iterable[float], names: Iterable[str] | None = None, x: bool = True
) -> None:
    """Put ticks at the given values of the x axis or the y axis, without minor ticks.

    Each tick is labelled with its value or with an entry of `names`.

    Args:
        ax: the axes to change.
        places: the values at which to put ticks.
        names: the labels of the ticks. By default they are the values.
        x: True for the x axis, False for the y axis.

    >>> ax = axes("Lengths", "n", "L1", log="x")
    >>> ticks(ax, [1000, 2000])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['1,000', '2,000']
    """
    require.instance("ax", ax, Axes, "Matplotlib axes")
    require.flag("x", x)
    for name, argument in (("places", places), ("names", [] if names is None else names)):
        if (
            isinstance(argument, str)
            or not isinstance(argument, Iterable)
            or getattr(argument, "ndim", 1) == 0
        ):
            raise ValueError(f"{name} must be a list, not {require.brief(argument)}")
    places = list(places)
    for place in places:
        require.number("places", place)
    names = (
        [f"{place:,}" for place in places]
        if names is None
        else [require.text("names", name) for name in names]
    )
    if len(names) != len(places):
        raise ValueError(
            f"names must have one entry for each of the {len(places)} places, not "
            f"{len(names)} entries"
        )
    (ax.xaxis if x else ax.yaxis).set_ticks(places, names)
    ax.minorticks_off()


def label(ax: Axes, lines: list[Line2D] | None = None) -> None:
    """Write each line's label at the line's right end, in the line's colour.

    When the figure is drawn, labels that would overlap are moved apart.

    Args:
        ax: the axes that contain the lines.
        lines: the lines to label. By default these are all lines of the axes whose label does not
            start with an underscore.

    >>> ax = axes("One line", "n", "L1")
    >>> _ = ax.plot([1, 2], [3, 4], label="fp32")
    >>> label(ax)
    >>> ax.texts[0].get_text()
    'fp32'
    """
    require.instance("ax", ax, Axes, "Matplotlib axes")
    if lines is not None and not (
        isinstance(lines, list | tuple) and all(isinstance(x, Line2D) for x in lines)
    ):
        raise ValueError(f"lines must be a list of lines in the axes, not {require.brief(lines)}")
    lines = lines or [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    ax.get_ylim()  # this fixes the limits, on which the label's height depends
    ends = []
    for line in lines:
        points = [(x, y) for x, y in zip(*line.get_data(), strict=True) if math.isfinite(y)]
        if not points:
            raise ValueError(
                f"lines must have at least one point to label, but {line.get_label()!r} has none"
            )
        height = ax.transAxes.inverted().transform(ax.transData.transform(points[-1]))[1]
        ends.append((height, points[-1], line))
    for height, point, line in sorted(ends, key=lambda end: end[0]):
        ax.annotate(
            line.get_label(),
            xy=point,
            xytext=(1.015, height),
            textcoords=ax.transAxes,
            color=line.get_color(),
            size=15,
            va="center",
            annotation_clip=False,
            gid=_LINE_END,
        )


def lines(
    frame: pd.DataFrame,
    y: str,
    log: str = "",
    height: float = 4.2,
    numbers: bool = False,
    colours: Sequence[str] | None = None,
    form: str = "o-",
) -> Axes:
    """Draw each column of a data frame as a line over the index, with its name at its right end.

    The name of the index labels the x axis. A column that is named after a floating-point format in
    `TYPES` is drawn in the line style of that format.

    Args:
        frame: the data, with one row per value of x and one column per line.
        y: the label of the y axis.
        log, height: as in `axes`.
        numbers: whether to write each line's last value next to its name.
        colours: one colour per column. By default `colours_of` chooses a colour for each name.
        form: `"o-"` draws dots joined by a line, `"o"` only dots, and `"-"` only a line.

    >>> frame = pd.DataFrame({"mean": [0.5, 0.1]}, index=pd.Index([1, 2], name="n ones"))
    >>> ax = lines(frame, "change", numbers=True)
    >>> ax.get_xlabel(), ax.texts[0].get_text()
    ('n ones', 'mean 0.10')
    """
    ax = _drawn(frame, y, log, height, colours)
    colours = colours or colours_of(map(str, frame))
    require.flag("numbers", numbers)
    require.choice("form", form, ("o-", "o", "-"))
    for k, (name, column) in enumerate(frame.items()):
        said = f"{name} {number(float(column.dropna().iloc[-1]))}" if numbers else f"{name}"
        ax.plot(
            frame.index,
            column,
            form.replace("-", TYPES.get(name, "-")),
            label=said,
            color=colours[k],
        )
    label(ax)
    return ax


def dots(
    frame: pd.DataFrame,
    x: str,
    log: str = "",
    height: float | None = None,
    numbers: bool = False,
    colours: Sequence[str] | None = None,
) -> Axes:
    """Draw one horizontal row of dots for each row of a data frame, one dot per column.

    The name of each row is written at its left, and each column has its own colour.

    Args:
        frame: the data, with one row of dots per row.
        x: the label of the x axis.
        log: "" or "x".
        height: the height in inches. By default the height depends on the number of rows.
        numbers: whether to write each value next to its dot.
        colours: one colour per column. By default `colours_of` chooses a colour for each name.

    >>> frame = pd.DataFrame({"hops": [0.4, 0.9]}, index=["path", "tree"])
    >>> ax = dots(frame, "rank correlation", numbers=True)
    >>> [text.get_text() for text in ax.texts], [text.get_text() for text in ax.get_yticklabels()]
    (['0.40', '0.90'], ['path', 'tree'])
    """
    require.choice("log", log, ("", "x"))
    rows = len(frame) if isinstance(frame, pd.DataFrame) else 1
    ax = _drawn(frame, "", log, 1.4 + 0.5 * rows if height is None else height, colours, x)
    colours = colours or colours_of(map(str, frame))
    require.flag("numbers", numbers)
    for k, (name, column) in enumerate(frame.items()):
        colour = colours[k]
        ax.plot(column, range(rows), "o", ms=10, label=f"{name}", color=colour)
        for place, value in enumerate(column if numbers else ()):
            ax.annotate(
                number(float(value)),
                (value, place),
                (0, 9),
                textcoords="offset points",
                ha="center",
                size=14,
                color=colour,
            )
    ax.set_yticks(range(rows), [f"{name}" for name in frame.index])
    ax.set_ylim(rows - 0.4, -0.7)
    ax.grid(False, axis="x")
    if frame.shape[1] > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _drawn(
    frame: pd.DataFrame,
    y: str,
    log: str,
    height: float,
    colours: Sequence[str] | None,
    x: str | None = None,
) -> Axes:
    """Check a data frame and its colours, and return empty axes for the data frame."""
    require.instance("frame", frame, pd.DataFrame, "a frame")
    if (
        frame.empty
        or any(kind.kind not in "iuf" for kind in frame.dtypes)
        or frame.isna().all().any()
    ):
        raise ValueError(
            "frame must have at least one row, and each column must hold real numbers, "
            "not only gaps"
        )
    if colours is not None and not (
        isinstance(colours, list | tuple)
        and len(colours) == frame.shape[1]
        and all(map(is_color_like, colours))
    ):
        raise ValueError(
            f"colours must be a list of {frame.shape[1]} colours, one per column, not "
            f"{require.brief(colours)}"
        )
    return axes("", f"{frame.index.name or ''}" if x is None else x, y, log, height)


def readout_table(rows: Sequence[tuple[str, str, float | str, str]], state: str) -> Styler:
    """Return a table of what each readout can recover from one hidden state.

    All chapters use this table to compare readouts, because one readout may recover information
    that another misses.

    Args:
        rows: one tuple per readout with four entries. The first entry is the readout's name ("an
            average", "a Jacobian", "a nearest-state search", "a linear probe" or "the model
            itself"). The second is the question. The third is the measurement, as a number, which
            `number` formats, or as a text with its unit. The fourth is the outcome ("kept", "in
            part", "lost", "missed" or "not missed").
        state: the name of the hidden state, which becomes the table's caption.

    >>> search = ("a nearest-state search", "which n?", "60%", "lost")
    >>> rows = [search, ("a linear probe", "n", 3.3, "in part")]
    >>> readout_table(rows, "1,000 ones in bf16").data.loc["a linear probe"].tolist()
    ['n', '3.3', 'in part']
    """
    require.text("state", state, empty=False)
    if (
        not isinstance(rows, list | tuple)
        or not rows
        or {type(row) for row in rows} != {tuple}
        or {*map(len, rows)} != {4}
    ):
        raise ValueError(
            "rows must be a list of at least one tuple (readout, question, measurement, outcome), "
            f"not {require.brief(rows)}"
        )
    table = {"question": [], "result": [], "verdict": []}
    for reader, question, measured, fate in rows:
        require.choice("reader in rows", reader, _READERS)
        measured = (
            require.text("number in rows", measured, empty=False)
            if isinstance(measured, str)
            else number(measured)
        )
        texts = (
            require.text("asked in rows", question, empty=False),
            measured,
            require.choice("fate in rows", fate, _FATES),
        )
        for column, text in zip(table.values(), texts, strict=True):
            column.append(words.translated(text))
    frame = pd.DataFrame(table, index=[words.translated(row[0]) for row in rows]).rename(
        columns=words.translated
    )
    return frame.rename_axis(words.translated("readout"), axis=1).style.set_caption(
        words.translated(state)
    )
