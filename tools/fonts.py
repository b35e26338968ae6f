"""Prepare the course's typefaces for the pages and for Matplotlib.

They are Source Sans 3, Source Code Pro and Noto Sans SC (SIL Open Font License 1.1). In `python
tools/fonts.py FOLDER`, FOLDER contains three unpacked packages of npm. From
`@fontsource-variable/source-sans-3` and `source-code-pro`, 5.3.0, the pages get files as they are.
From `@fontsource/source-sans-3`, 5.3.1, Matplotlib gets the characters that figures use, in one
file per weight. Without FOLDER, we only cut the characters of Chinese figures from the Noto Sans SC
that `make scripts` has put into `frontend/dist`.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from fontTools import merge, subset
from fontTools.ttLib import TTFont

from book import editions

ROOT = Path(__file__).resolve().parents[1]
PAGES, FIGURES = ROOT / "_static/fonts", ROOT / "src/helpers/fonts"
FILES = (
    "source-sans-3-{}-wght-normal",
    "source-sans-3-{}-wght-italic",
    "source-code-pro-{}-wght-normal",
)
CHINESE = ROOT / "src/course/editions"
USED = [*range(0x20, 0x180), *range(0x370, 0x400), *range(0x2000, 0x2300), 0x2605]


def figures(packed: Path, weight: int) -> None:
    """Merge the Latin and Greek characters of one weight into one TrueType font."""
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for script in ("latin", "latin-ext", "greek"):
            font = TTFont(packed / f"source-sans-3-{script}-{weight}-normal.woff")
            font.flavor = None
            # Matplotlib uses none of these tables for kerning
            for table in ("GSUB", "GPOS", "GDEF"):
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
    """Write the fonts for the pages and for Matplotlib."""
    variable, static = folder / "@fontsource-variable", folder / "@fontsource"
    for name in FILES:
        for script in ("latin", "greek"):
            if (
                packed := variable
                / name[:15].rstrip("-{")
                / "files"
                / f"{name.format(script)}.woff2"
            ).exists():
                shutil.copy(packed, PAGES)
    for weight in (400, 700):
        figures(static / "source-sans-3/files", weight)
    for to in (PAGES, FIGURES):
        shutil.copy(static / "source-sans-3/LICENSE", to / "LICENSE")


def chinese() -> None:
    """Write common Chinese characters as one TrueType font per weight.

    The characters are the 3,755 ones of level 1 of GB 2312, the punctuation, and all other
    characters that the editions use.
    """
    rows = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    used = "".join(pair.decode("gb2312", errors="ignore") for pair in rows)
    used += "".join(path.read_text() for path in ROOT.glob("chapters/**/*.po"))
    used += "".join(map(chr, [*range(0x3000, 0x3020), *range(0xFF00, 0xFF60)]))
    with tempfile.TemporaryDirectory() as folder:
        editions.cut(used, "noto-sans-sc", Path(folder))
        for weight in editions.WEIGHTS:
            shutil.copy(f"{folder}/noto-sans-sc-{weight}.ttf", CHINESE)
    shutil.copy(ROOT / "frontend/dist/fonts/LICENSE-noto-sans-sc", CHINESE)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    chinese()
