"""Arrange the frame of a page around its text for readers who move with the Tab key.

They reach the text first. The theme connects the menu and the contents to the first button of each
kind. Its own header contains a first pair that is never visible, so `templates/layout.html` leaves
that header out. The sidebar comes after the text in the page's source, because otherwise readers
who move with Tab would pass all its links on every page. `course.css` shows it at the left.
"""

import re
from pathlib import Path

HERE = "chapters/zh/"  # the folder of the Chinese pages
OPENING = '<dialog id="pst-primary-sidebar-modal">'
TEXT, END = '<main id="main-content"', "</main>"
HOME = re.compile(r'<ul class="nav bd-sidenav bd-sidenav__home-link">.*?</ul>', re.S)
# the names of what the download button offers, keyed by the suffix that the theme shows, in English
# and in Chinese
OFFERED = {
    ".ipynb": ("Notebook", "笔记本"),
    ".zip": ("Notebooks", "笔记本"),
    ".md": ("Source", "源文件"),
    ".pdf": ("Print", "打印"),
}
SKIP = ("Skip to the list of pages", "跳到页面列表")


def sidebar_last(content: str) -> str:
    """Move the sidebar of a page after the text, and remove its duplicate link.

    The removed link repeats the one at the head of the sidebar.

    Raises:
        ValueError: if the theme writes its pages in another form than we expect.
    """
    if OPENING not in content or TEXT not in content:
        raise ValueError(f"a page must have {OPENING} before {TEXT}: has the theme changed?")
    before, from_sidebar = content.split(OPENING, 1)
    sidebar, text = from_sidebar.split(TEXT, 1)
    text, after = text.rsplit(END, 1)
    return f"{before}{TEXT}{text}{END}{OPENING}{HOME.sub('', sidebar)}{after}"


def framed(app, pagename, templatename, context, doctree):
    """Give the page templates the function that moves the sidebar, and the skip link's text."""
    context["sidebar_last"] = sidebar_last
    context["skip_to_pages"] = SKIP[pagename.startswith(HERE)]


def offer(app, pagename, templatename, context, doctree):
    """Describe in words what the download button offers.

    The button does not offer the Markdown source of a page without code, because it is of no use to
    a reader.
    """
    chinese = pagename.startswith(HERE)
    for group in context.get("header_buttons", []):
        if "buttons" not in group:
            continue
        group["buttons"] = [
            button for button in group["buttons"] if Path(button.get("url", "")).suffix != ".md"
        ]
        for button in group["buttons"]:
            if button["text"] in OFFERED:
                button["text"] = OFFERED[button["text"]][chinese]


def setup(app):
    app.connect("html-page-context", framed)
    app.connect(
        "html-page-context", offer, priority=950
    )  # after the theme's buttons and the Chinese edition's file
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
