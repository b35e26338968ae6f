"""What the theme says around a Chinese page, in Chinese: names of parts, buttons and their hints.

They stand in `chapters/zh/frame.po` and come from several packages, some from lists made in Python; so the page that is written is searched for them: a text or
an attribute that is one of these as a whole. The article has its own words, by its table: in it only whole phrases are looked for.
"""

import re
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import editions

NAMES, PLAYER = editions.frame("theme"), editions.frame("player")
PLAYED = re.compile(r'(?<=▶ )Play(?=<)|(?<=[▶■]", ")(?:Play|Stop)(?=")|(?<=")Play: ')
SAID = re.compile(r'(>\s*|\b(?:title|aria-label|placeholder|data-bs-title|data-tooltip)=")([^<>"]+?)(\s*<|")')


def worded(page: str) -> str:
    """A page with the theme's words in Chinese.

    >>> worded('<a title="next page"><p> Search </p></a> Search')
    '<a title="下一页"><p> 搜索 </p></a> Search'
    """

    def named(found: re.Match, least: str) -> str:
        name = " ".join(found[2].split())
        return f"{found[1]}{NAMES.get(name, found[2]) if least in name else found[2]}{found[3]}"

    before, begins, rest = page.partition("<article ")
    article, ends, after = rest.partition("</article>")
    around, within = (partial(SAID.sub, partial(named, least=least)) for least in ("", " "))
    return around(before) + begins + played(within(article)) + ends + around(after)


def played(page: str) -> str:
    """A page or a deck whose widgets say in Chinese what their buttons do: as they start, and when they are pressed.

    >>> played('<button aria-label="Play: n">▶ Play</button><script>say(button, "■", "Stop")</script>')
    '<button aria-label="播放：n">▶ 播放</button><script>say(button, "■", "停")</script>'
    """
    return PLAYED.sub(lambda said: PLAYER[said[0]], page)


def with_names(app):
    """Pages that say that they are Chinese are written with these names."""
    templates = getattr(app.builder, "templates", None)
    if templates is None:
        return
    render = templates.render

    def rendered(template, context):
        page = render(template, context)
        return worded(page) if context.get("language") == "zh-CN" else page

    templates.render = rendered


def setup(app):
    app.connect("builder-inited", with_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
