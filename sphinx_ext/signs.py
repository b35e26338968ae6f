"""Provide signs that the course's typeface lacks as two small fonts of a few kB.

The signs are arrows, marks and mathematical symbols. We ship the Latin and Greek parts of the
pages' typeface, Source Sans 3. A browser takes every other sign from the fonts of its computer,
which may not have it. So we cut the signs that the built site uses out of two fonts that the build
already has: the same typeface (`helpers/fonts`), and DejaVu Sans, which is part of Matplotlib.
"""

import html
import logging
import re
import shutil
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib import get_data_path

ROOT = Path(__file__).resolve().parents[1]
DEJAVU = Path(get_data_path()) / "fonts/ttf"
# the name, the weight, and the font from which we cut it; `course.css` and `lecture.css` name the
# files
FONTS = (
    ("letters", 400, ROOT / "src/helpers/fonts/source-sans-3-400.ttf"),
    ("letters", 700, ROOT / "src/helpers/fonts/source-sans-3-700.ttf"),
    ("signs", 400, DEJAVU / "DejaVuSans.ttf"),
    ("signs", 700, DEJAVU / "DejaVuSans-Bold.ttf"),
)
ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
ALIKE = {
    0x2753: 0x3F
}  # a sign that neither font has, with the sign shown instead: the red question mark of a slide
WRITTEN = ("chapters", "slides", "live", "drawings")  # folders of the site whose files contain text


def used(site: Path) -> set[int]:
    """Collect the signs beyond Latin that any page, deck or script of a built site can show.

    Chinese characters have separate fonts.
    """
    files = [
        path
        for name in WRITTEN
        for kind in ("html", "js", "json")
        for path in (site / name).rglob(f"*.{kind}")
    ]
    files += [*site.glob("*.html"), *(site / "_static").glob("course.*")]
    strings: set[str] = set()
    for path in files:
        text = path.read_text(errors="ignore")
        strings |= set(text) | {chr(int(code, 16)) for code in ESCAPED.findall(text)}
        strings |= {html.unescape(name) for name in set(re.findall(r"&#?\w+;", text))}
    return {ord(sign) for sign in strings if len(sign) == 1 and 0x100 <= ord(sign)}


def cut(font: Path, signs: set[int], to: Path) -> None:
    """Write a WOFF font with the wanted signs of a font."""
    whole = TTFont(font, recalcTimestamp=False)
    options = subset.Options(layout_features=[], hinting=False, notdef_outline=True)
    # this table has the font's date of creation, which the cutter cannot keep
    options.drop_tables += ["FFTM"]
    cutter = subset.Subsetter(options)
    shown = {alike for sign, alike in ALIKE.items() if sign in signs}
    cutter.populate(unicodes={0x20} | shown | signs & set(whole.getBestCmap()))
    cutter.subset(whole)
    for table in whole["cmap"].tables:
        for sign, alike in ALIKE.items():
            if sign in signs and alike in table.cmap:
                table.cmap[sign] = table.cmap[alike]
    whole.flavor = "woff"
    whole.save(to)


def write(app, error):
    """Write the fonts with the signs that the built site uses."""
    if error is None and app.builder.format == "html":
        site = Path(app.outdir)
        (site / "_static/fonts").mkdir(parents=True, exist_ok=True)
        logging.getLogger("fontTools").setLevel(logging.WARNING)
        signs = used(site)
        for name, weight, font in FONTS:
            cut(font, signs, site / f"_static/fonts/{name}-{weight}.woff")
        shutil.copy(DEJAVU / "LICENSE_DEJAVU", site / "_static/fonts")


def setup(app):
    # after the decks and the drawings were written
    app.connect("build-finished", write, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
