"""Provide the icons of the pages as a font of a few kB.

The theme's script contains 2,000 icons in 1.5 MB, so `templates/layout.html` leaves it out. We cut
our font out of the theme's own font, so the same classes show the same icons. An icon is then a
letter instead of an SVG.
"""

import base64
import io
import re
from pathlib import Path

from fontTools import subset

SCRIPT = re.compile(
    r"\s*<!--[^>]*custom icons[^>]*-->\s*<script[^>]*fontawesome\.js[^>]*></script>"
)
# the file, the family, the weight, and the classes that select it
FONTS = (
    ("fa-solid-900", "Font Awesome 6 Free", 900, {"fa-solid", "fas"}),
    ("fa-regular-400", "Font Awesome 6 Free", 400, {"fa-regular", "far"}),
    ("fa-brands-400", "Font Awesome 6 Brands", 400, {"fa-brands", "fab"}),
)
# the theme's rules for icons that are only an SVG
RULES = """.search-button-field > i { display: inline-block !important; }
.bd-header-article .btn i { width: 1.3rem; text-align: center; }
.bd-header-article .theme-switch { font-size: 1.3rem; line-height: 1; }
form.bd-search .fa-solid.fa-magnifying-glass { position: static; color: inherit; }
#pst-search-dialog[open] form.bd-search i { font-size: var(--pst-font-size-icon); }
.onthispage .fa-list { padding: 0; }
"""


def letters(css: str) -> dict[str, int]:
    """Return the letter of each icon in the theme's style sheet, keyed by class."""
    rules = re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+) ?"', css)
    return {
        name: int(letter, 16) for names, letter in rules for name in re.findall(r"fa-[\w-]+", names)
    }


def named(css: str) -> set[int]:
    """Return the letters of the icon font that a style sheet writes itself.

    It does so with `content` before or after an element.
    """
    return {ord(sign) for sign in css if 0xE000 <= ord(sign) < 0xF900} | {
        int(letter, 16)
        for letter in re.findall(r'content:"\\(f[0-9a-f]{3})"', re.sub(r"\.fa-[^}]*\}", "", css))
    }


def cut(font: Path, needed: set[int]) -> bytes:
    """Return a WOFF font with only the chosen letters."""
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=True)
    loaded = subset.load_font(font, options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=needed & set(loaded.getBestCmap()))
    cutter.subset(loaded)
    file = io.BytesIO()
    subset.save_font(loaded, file, options)
    return file.getvalue()


def style(site: Path) -> str:
    """Return the style sheet with the icons of all pages of a built site."""
    static = site / "_static"
    css = "".join(path.read_text() for path in sorted((static / "styles").glob("*.css")))
    pages = [
        path
        for path in site.rglob("*.html")
        if not {"slides", "live", "drawings"} & set(path.parts)
    ]
    attributes = (
        attribute
        for page in pages
        for attribute in re.findall(r'class="([^"]*)"', page.read_text())
    )
    classes = {word for attribute in attributes for word in attribute.split()}
    known = letters(css)
    needed = named(css) | {known[word] for word in classes & set(known)}
    rules = [RULES]
    for file, family, weight, chosen_by in FONTS:
        if chosen_by & classes:
            font = cut(static / f"vendor/fontawesome/webfonts/{file}.ttf", needed)
            rules.append(
                f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-display: '
                "block; "
                f"src: url(data:font/woff;base64,{base64.b64encode(font).decode()}) "
                f'format("woff"); }}\n'
            )
    return "".join(rules)


def without(app, pagename, templatename, context, doctree):
    """Give the page templates the function that removes the script with all icons."""
    context["without_all_icons"] = lambda head: SCRIPT.sub("", head)


def write(app, error):
    """Write the style sheet with the icons that the site uses, and remove unused icon scripts."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "_static/icons.css").write_text(style(Path(app.outdir)))
        for unused in ("fontawesome.js", "fontawesome.js.map"):
            (Path(app.outdir) / "_static/scripts" / unused).unlink(missing_ok=True)


def setup(app):
    app.add_css_file("icons.css", priority=900)
    app.connect("html-page-context", without)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
