"""Write a figure as inline vector graphics (SVG).

The text has the page's typeface, and the colours follow the page's theme. Phones get a second
drawing, which is as narrow as the smallest readable letters allow. Only pages contain these
drawings, and a notebook shows an image instead.
"""

import collections
import colorsys
import hashlib
import html
import io
import itertools
import pickle
import re
import textwrap
import warnings
from collections.abc import Callable

import matplotlib.pyplot as plt
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, NullFormatter

from helpers.style import _LINE_END

# in pixels, the width of a phone's column and the smallest letters there
_PHONE, _LEAST = 330, 12.1
_INK, _GROUND, _GROUNDS = {"000000", "1a1a1a"}, "ffffff", "var(--pst-color-background,#fff)"
_UNSAID = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def _turned(colour: str) -> str:
    """Return the colour that replaces `colour` when the page is dark.

    The new colour has the same hue and as much contrast with the dark page as the given colour has
    with white.

    >>> _turned("#0072b2"), _turned("#e3e3e3")
    ('#64c7ff', '#3a3a3a')
    """
    hue, light, strong = colorsys.rgb_to_hls(*to_rgb(colour))
    return to_hex(colorsys.hls_to_rgb(hue, 0.13 + 0.87 * (1 - light), strong))


def drawn(figure: Figure, alt: str, kind: str) -> str:
    """Return a laid-out figure as an `<svg>` element of the class `kind`.

    The element has no background and no unused ids, and its coordinates are rounded to one decimal.
    """
    grounds = [
        part.patch for part in (figure, *figure.axes) if to_hex(part.get_facecolor()) == "#ffffff"
    ]
    for ground in grounds:
        ground.set_visible(False)
    salt, held = hashlib.sha256(f"{alt} {kind}".encode()).hexdigest(), io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        # `savefig` would draw the figure twice
        FigureCanvasSVG(figure).print_svg(held, metadata=_UNSAID)
    for ground in grounds:
        ground.set_visible(True)
    text = held.getvalue()
    box = re.search(r'viewBox="[^"]*"', text)[0]
    text = text[text.index(">", text.index("<svg")) + 1 :]
    text = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>",
        "",
        text,
        flags=re.S,
    )
    text = re.sub(r"\b([mp][0-9a-f]{5})[0-9a-f]{5}\b", r"\1", text)
    needed = set(re.findall(r"#(\w+)", " ".join(re.findall(r'href="[^"]*"|url\([^)]*\)', text))))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in needed else "", text)
    text = re.sub(r' d="([^"]*)"', lambda path: f' d="{_path(path[1])}"', text)
    text = re.sub(r' [xy]="[^"]*"', lambda place: re.sub(r"-?\d+\.\d+", _short, place[0]), text)
    text = re.sub(r"font-family: [^;\"]*;? ?|xlink:| transform=\"rotate\(-0 [^)]*\)\"", "", text)
    colours = sorted({*re.findall(r"#([0-9a-f]{6})\b(?!\))", text)} - _INK - {_GROUND})
    text = re.sub(f"#({'|'.join(_INK)})", "currentColor", text).replace(f"#{_GROUND}", _GROUNDS)
    text = re.sub(r"#([0-9a-f]{6})\b(?!\))", r"var(--c\1,#\1)", re.sub(r"\s+", " ", text))
    text = re.sub(r"(?<=>) (?=<)|(?<=[MLCQ]) (?=[-\d])|(?<=\d) (?=[MLCQz\"])", "", text)
    while text != (text := re.sub(r"<g>((?:(?!</?g\b).)*)</g>", r"\1", text)):
        pass
    styles = collections.Counter(re.findall(r' style="([^"]*)"', text))
    classes = {
        each: f"s{salt[:5]}{k}" for k, (each, count) in enumerate(styles.items()) if count > 2
    }
    text = re.sub(
        r' style="([^"]*)"',
        lambda x: f' class="{classes[x[1]]}"' if x[1] in classes else x[0],
        text,
    )
    dark = "".join(f"--c{colour}:{_turned('#' + colour)};" for colour in colours)
    return (
        f'<svg class="chart {kind}" {box} role="img" aria-label="{html.escape(alt, quote=True)}">'
        f"<style>{''.join(f'.{name}{{{each}}}' for each, name in classes.items())}"
        f"@media screen{{[data-theme=dark] .chart{{{dark}}}}}</style>{text.strip()}"
    )


def _path(written: str) -> str:
    """Write an SVG path with one decimal per coordinate.

    Points of a polyline that lie on the straight line between their neighbours are left out.
    """
    if re.search(r"[CQz]", written):
        return re.sub(r"-?\d+\.\d+", _short, written)
    parts = []
    for line in written.split("M")[1:]:
        points = [complex(*map(float, point.split())) for point in line.split("L")]
        kept = points[:1]
        for point, following in zip(points[1:], [*points[2:], None], strict=True):
            if following is not None and following != kept[-1]:
                beside = (point - kept[-1]) / (following - kept[-1])
                if 0 <= beside.real <= 1 and abs(beside.imag * (following - kept[-1])) < 0.05:
                    continue
            kept.append(point)
        tenths = [complex(round(10 * point.real), round(10 * point.imag)) for point in kept]
        steps = [tenths[0], *(b - a for a, b in itertools.pairwise(tenths))]
        parts += [
            f"{'l' if k else 'M'}{step.real / 10:g} {step.imag / 10:g}"
            for k, step in enumerate(steps)
        ]
    return "".join(parts)


def _short(number: re.Match) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _stacked(figure: Figure) -> None:
    """Arrange panels that are side by side one below another, each with its own tick labels."""
    panels = [ax for ax in figure.axes if ax.get_subplotspec()]
    grid = panels[0].get_subplotspec().get_gridspec() if panels else None
    if grid is None or grid.ncols == 1:
        return
    figure.set_figheight(figure.get_figheight() / grid.nrows * len(panels))
    for ax, place in zip(panels, GridSpec(len(panels), 1, figure=figure), strict=True):
        ax.set_subplotspec(place)
        if ax.axison:
            ax.tick_params(labelleft=True, labelbottom=True)
            ax.set(
                xlabel=ax.get_xlabel() or panels[-1].get_xlabel(),
                ylabel=ax.get_ylabel() or panels[0].get_ylabel(),
            )


def _below(figure: Figure) -> None:
    """Move the legends below the figure, and increase the figure's height accordingly."""
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    named = {
        text.get_text(): mark
        for each in legends
        for text, mark in zip(each.texts, each.legend_handles, strict=True)
    }
    if named:
        columns, size = 1 + (max(map(len, named)) < 15), legends[0].texts[0].get_size()
        figure.set_figheight(figure.get_figheight() + len(named) / columns * 1.6 * size / 72)
        figure.legend(
            [*named.values()], [*named], loc="outside lower left", fontsize=size, ncols=columns
        )
    for legend in legends:
        legend.remove()


def _more_lines(names: list[str]) -> float:
    """Return how many more lines of text the names on an axis need than if each had one line.

    Between the centres of two neighbouring names there must be room for half of the lines of each.
    Since all distances are equal, the pair of neighbours with the most lines determines the result.

    >>> _more_lines(["RoPE", "NoPE"]), _more_lines(["RoPE", "NoPE with\\na window", "NoPE"])
    (0.0, 1.5)
    """
    lines = [1 + name.count("\n") for name in names]
    widest = max(map(sum, itertools.pairwise([*lines, lines[-1]])))
    return (widest / 2 - 1) * len(names)


def _slim(figure: Figure, letters: float) -> None:
    """Make tick labels fit a narrow figure, with fewer labels and with long names on several lines.

    `letters` is the width of a full line of text, as a fraction of the width of the figure.
    """
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter(NullFormatter())
            if isinstance(axis.get_major_locator(), MaxNLocator):
                axis.get_major_locator().set_params(nbins=4)
            said = [text.get_text() for text in axis.get_ticklabels()]
            if any(" " in text and "$" not in text for text in said):
                broken = [
                    textwrap.fill(text, 10 if axis is ax.xaxis else 20, break_long_words=False)
                    for text in said
                ]
                axis.set_ticks(axis.get_ticklocs(), broken, linespacing=1.0)
                more = _more_lines(broken) * (axis is ax.yaxis)
                figure.set_figheight(
                    figure.get_figheight() + more * 1.55 * axis.get_ticklabels()[0].get_size() / 72
                )
        ends = [text for text in ax.texts if text.get_gid() == _LINE_END]
        names = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
        for text in [*names, *ends, *([figure._suptitle] if figure._suptitle else [])]:
            most = (
                letters * 2 * 72 * figure.get_figwidth() / text.get_size()
            )  # a letter is about half as wide as it is high
            text.set(
                text=textwrap.fill(text.get_text(), int(most * (0.4 if text in ends else 1))),
                wrap=False,
            )
            text.set_linespacing(1.0)
            if text in names:
                lines = text.get_text().count("\n")
                figure.set_figheight(figure.get_figheight() + lines * 1.3 * text.get_size() / 72)


def narrow(held: bytes, lay_out: Callable[[Figure], list[str]], alt: str) -> str:
    """Draw a pickled figure again for the narrow screen of a phone.

    The result is None if the marks would not have enough room or texts would overlap.

    Args:
        held: the pickled figure.
        alt: the alt text of the figure.
        lay_out: a function that arranges the labels of a figure and returns what cannot be read.
    """
    for letters in (0.8, 0.65, 0.5):
        figure = pickle.loads(held)
        sizes = [
            text.get_size()
            for text in figure.findobj(Text)
            if text.get_visible() and text.get_text().strip()
        ]
        figure.set_figwidth(
            min(figure.get_figwidth(), _PHONE * min(sizes, default=12) / _LEAST / 72)
        )
        _stacked(figure)
        _below(figure)
        _slim(figure, letters)
        # we test here whether there is enough room, so we ignore the warning about it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            wrong = lay_out(figure)
        panels = [ax.get_window_extent().width for ax in figure.axes if ax.get_subplotspec()]
        room = min(panels, default=0) / figure.bbox.width
        made = "" if wrong or room < 0.3 else drawn(figure, alt, "narrow")
        plt.close(figure)
        if made:
            break
    return made
