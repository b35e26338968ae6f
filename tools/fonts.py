"""The course's typeface, Source Sans 3 and Source Code Pro (SIL Open Font License 1.1), as the
pages and Matplotlib load it.

`python tools/fonts.py FOLDER`, where FOLDER holds three unpacked packages of npm:
`@fontsource-variable/source-sans-3` and `source-code-pro`, 5.3.0, of which the pages get files as
they are, and `@fontsource/source-sans-3`, 5.3.1, of which Matplotlib gets the characters that
figures use, in one file a weight.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from fontTools import merge, subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[1]
PAGES, FIGURES = ROOT / "_static/fonts", ROOT / "src/helpers/fonts"
FILES = (
    "source-sans-3-{}-wght-normal",
    "source-sans-3-{}-wght-italic",
    "source-code-pro-{}-wght-normal",
)
USED = [*range(0x20, 0x180), *range(0x370, 0x400), *range(0x2000, 0x2300), 0x2605]


def figures(packed: Path, weight: int) -> None:
    """Latin and Greek of one weight in one TrueType font."""
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for script in ("latin", "latin-ext", "greek"):
            font = TTFont(packed / f"source-sans-3-{script}-{weight}-normal.woff")
            font.flavor = None
            for table in ("GSUB", "GPOS", "GDEF"):  # Matplotlib kerns by none of them
                if table in font:
                    del font[table]
            parts.append(f"{folder}/{script}.ttf")
            font.save(parts[-1])
        whole = merge.Merger().merge(parts)
    cut = subset.Subsetter(subset.Options(name_IDs=["*"]))
    cut.populate(unicodes=USED)
    cut.subset(whole)
    whole.save(FIGURES / f"source-sans-3-{weight}.ttf")


def main(folder: Path) -> None:
    variable, static = folder / "@fontsource-variable", folder / "@fontsource"
    for name in FILES:
        for script in ("latin", "greek"):
            if (
                found := variable
                / name[:15].rstrip("-{")
                / "files"
                / f"{name.format(script)}.woff2"
            ).exists():
                shutil.copy(found, PAGES)
    for weight in (400, 700):
        figures(static / "source-sans-3/files", weight)
    for to in (PAGES, FIGURES):
        shutil.copy(static / "source-sans-3/LICENSE", to / "LICENSE")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
