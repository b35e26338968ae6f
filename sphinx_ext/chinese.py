"""What the theme says around a Chinese page, in Chinese: names of parts, buttons and their hints.

They come from several packages, some from lists made in Python; so the page that is written is searched for them: a text or
an attribute that is one of these as a whole. The article has its own words, by its table: in it only whole phrases are looked for.
"""

import re
from functools import partial

NAMES = {
    "Skip to main content": "跳到正文",
    "Back to top": "回到顶部",
    "Search this book...": "搜索本书……",
    "Search": "搜索",
    "Index": "索引",
    "Site navigation": "全站导航",
    "Version warning": "版本提示",
    "On this page": "本页内容",
    "Contents": "本页内容",
    "Main": "主导航",
    "Page": "本页",
    "Chapters": "各章（英文）",
    "The book": "全书（英文）",
    "Toggle primary sidebar": "显示或隐藏目录",
    "Toggle secondary sidebar": "显示或隐藏本页内容",
    "Toggle navigation of a section": "展开或收起本节",
    "Download this page": "下载本页",
    "Download source file": "下载源文件",
    "Print to PDF": "打印为 PDF",
    "Launch interactive content": "运行笔记本",
    "Fullscreen mode": "全屏",
    "Color mode": "明暗模式",
    "Light": "浅色",
    "Dark": "深色",
    "System Settings": "跟随系统",
    "Link to this heading": "本标题的链接",
    "Permalink to this heading": "本标题的链接",
    "previous page": "上一页",
    "previous": "上一页",
    "next page": "下一页",
    "next": "下一页",
    "By The authors of the course": "作者：本课程的作者",
    "© Copyright 2026. Text and figures: CC BY 4.0. Code: MIT.": "© 2026。文字与图：CC BY 4.0。代码：MIT。",
    "JavaScript is off: formulas stand as TeX.": "JavaScript 未开启：公式以 TeX 显示。",
    "JavaScript is off: a guess is not kept.": "JavaScript 未开启：猜测不会保留。",
    "JavaScript is off: this stands still, as it starts.": "JavaScript 未开启：图停在起始的样子。",
    "JavaScript is off, which draws the maps here.": "JavaScript 未开启，注意力图画不出来。",
}
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
    return around(before) + begins + within(article) + ends + around(after)


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
