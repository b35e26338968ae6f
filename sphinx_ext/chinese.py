"""Translate the frame around a Chinese page.

The frame consists of the names of the page's parts, buttons and their tooltips, contents, search,
and marks on links. The translations are in `chapters/zh/frame.po`. The English comes from several
packages, and in part from lists in Python, so we search the finished page for it. We replace a text
or an attribute only if the whole text is one of these phrases. The article has its own table of
words, so in the article we also look only for whole phrases.
"""

import posixpath
import re
from functools import partial

from book import editions
from book.editions import played

NAMES = editions.frame("theme")
SAID = re.compile(
    r'(>\s*|\b(?:title|aria-label|placeholder|data-bs-title|data-tooltip)=")([^<>"]+?)(\s*<|")'
)


def worded(page: str) -> str:
    """Translate the theme's words on a page into Chinese.

    >>> worded('<a title="next page"><p> Search </p></a> Search')
    '<a title="下一页"><p> 搜索 </p></a> Search'
    """

    def named(match: re.Match, least: str) -> str:
        name = " ".join(match[2].split())
        return f"{match[1]}{NAMES.get(name, match[2]) if least in name else match[2]}{match[3]}"

    before, begins, from_article = page.partition("<article ")
    # the stops of the film are articles, too
    article, ends, after = from_article.rpartition("</article>")
    around, within = (partial(SAID.sub, partial(named, least=least)) for least in ("", " "))
    return around(before) + begins + played(within(article)) + ends + around(after)


HERE, SEARCH = "chapters/zh/", "chapters/zh/search"
CHINESE_PART = re.compile(
    r'<p aria-level="2" class="caption" role="heading"><span class="caption-text">中文</span></p>'
)
FIRST_PART = re.compile(r'<p aria-level="2" class="caption" role="heading">')
HOME = re.compile(
    r'(<a class="(?:navbar-brand[^"]*|reference internal)" '
    r'href=")([^"#]*)("[^>]*>)(\s*[^<]*?\s*)(?=<)'
)
TITLE = "注意力中的连接瓶颈"
ENGLISH = '<sup class="to-english" title="英文页面">英</sup>'
LINK = re.compile(r'<a ([^>]*?)href="([^"#:]+\.html)(#[^"]*)?"([^>]*)>((?:(?!</a>).)*)</a>', re.S)
OFFER = """<p id="offer-chinese" lang="zh-CN" hidden>\
这门课有<a href="zh/welcome.html" hreflang="zh-CN">中文版</a>。</p>
<script>if (navigator.language?.toLowerCase().startsWith("zh"))
document.getElementById("offer-chinese").hidden = false;</script>
"""


def of_one_language(page: str, name: str) -> str:
    """Return a page whose table of contents lists only pages in its own language.

    On a Chinese page the book's title in the contents leads to the Chinese front page.
    """
    begins = page.find('<nav class="bd-links')
    ends = page.find("</nav>", begins)
    if begins < 0 or not (chinese := CHINESE_PART.search(page, begins, ends)):
        return page
    nav, after = page[begins:ends], page[ends:]
    cut = chinese.start() - begins
    if name.startswith(HERE):
        first = FIRST_PART.search(nav).start()
        nav = own_home(nav[:first], name) + nav[cut:]
        before = re.sub(
            r'(<p class="title logo__title">)[^<]*', rf"\1{TITLE}", own_home(page[:begins], name)
        )
        return before + nav + after
    last = nav.rindex("</div>")
    return page[:begins] + nav[:cut] + nav[last:] + after


def own_home(text: str, name: str) -> str:
    """Make the links to the English front page in a Chinese page lead to the Chinese front page.

    >>> link = '<a class="reference internal" href="../welcome.html">The book</a>'
    >>> own_home(link, "chapters/zh/try")
    '<a class="reference internal" href="welcome.html">注意力中的连接瓶颈</a>'
    """
    folder = posixpath.dirname(name)

    def led(match: re.Match) -> str:
        if posixpath.normpath(posixpath.join(folder, match[2])) != "chapters/welcome.html":
            return match[0]
        label = TITLE if match[4].strip() else match[4]
        return f"{match[1]}{posixpath.relpath(HERE + 'welcome.html', folder)}{match[3]}{label}"

    return HOME.sub(led, text)


def searched_here(page: str, name: str) -> str:
    """Make the search field of a Chinese page lead to the Chinese search.

    >>> searched_here('<form action="../../../search.html">', "chapters/zh/4-counting/lab")
    '<form action="../search.html">'
    """
    search_address = posixpath.relpath(f"{SEARCH}.html", posixpath.dirname(name))
    return re.sub(r'action="(?:\.\./)*search\.html"|action="#"', f'action="{search_address}"', page)


def marked(article: str, name: str) -> str:
    """Add a mark to each link of a Chinese page that leads to an English page.

    >>> marked('<a href="../about.html">x</a>', "chapters/zh/talk")
    '<a href="../about.html" hreflang="en">x<sup class="to-english" title="英文页面">英</sup></a>'
    >>> marked('<a href="try.html">试</a>', "chapters/zh/talk")
    '<a href="try.html">试</a>'
    """
    folder = posixpath.dirname(name)

    def led(match: re.Match) -> str:
        before, address, place, more, label = match.groups("")
        target = posixpath.normpath(posixpath.join(folder, address))
        english = target.startswith("chapters/") and not target.startswith(HERE)
        english |= target.startswith("slides/") and not target.endswith(".zh.html")
        if not english or "hreflang" in before + more:
            return match[0]
        return f'<a {before}href="{address}{place}"{more} hreflang="en">{label}{ENGLISH}</a>'

    return LINK.sub(led, article)


def with_names(app):
    """Write each page with contents in its language, and Chinese pages with Chinese words.

    Chinese pages also get the Chinese search and the marks on links.
    """
    templates = getattr(app.builder, "templates", None)
    if templates is None:
        return
    render = templates.render

    def rendered(template, context):
        page, name = render(template, context), context.get("pagename", "")
        page = of_one_language(page, name)
        if context.get("language") != "zh-CN":
            return page
        page = re.sub("(&#8212; )[^<]*(?=</title>)", rf"\1{TITLE}", page, count=1)
        before, begins, from_article = worded(searched_here(page, name)).partition("<article ")
        article, ends, after = from_article.rpartition("</article>")
        return before + begins + marked(article, name) + ends + after

    templates.render = rendered


def search_page(app):
    """Add a second search page to the site, for the Chinese pages."""
    return [(SEARCH, {}, "search.html")]


def offer(app, pagename, templatename, context, doctree):
    """Offer the Chinese edition on the front page to readers whose browser is set to Chinese."""
    if pagename == "chapters/welcome" and "chapters/zh/welcome" in app.env.found_docs:
        context["body"] = OFFER + context["body"]


def setup(app):
    app.connect("builder-inited", with_names)
    app.connect("html-collect-pages", search_page)
    app.connect("html-page-context", offer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
