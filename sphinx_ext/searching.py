"""The search: its index without listings and with Chinese, lessons before pages for teachers,
quotations from the text alone.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish


def without_listings(app):
    feed = getattr(app.builder, "index_page", None)
    if app.builder.format != "html" or feed is None:
        return

    def index_page(pagename, doctree, title):
        text = doctree.deepcopy()
        for listing in list(text.findall(nodes.literal_block)):
            listing.parent.remove(listing)
        feed(pagename, text, title)

    app.builder.index_page = index_page


class WithChinese(SearchEnglish):
    """Words, and of Chinese, which has no spaces, the pairs of neighbouring characters: any word is
    found by its own.
    """

    def split(self, input):
        return [
            *super().split(re.sub("[一-鿿]", " ", input)),
            *re.findall(r"(?=([一-鿿]{2}))", input),
        ]


def where_it_is_used(app, name, template, context, doctree):
    """Load the index on the search's page only: the theme loads it on every page, for results that
    come while one types, which are off.
    """
    tools = r'<script src="[^"]*(searchtools|language_data|searchindex)\.js"></script>\s*'
    context["without_search"] = lambda head: re.sub(tools, "", head)


def rank(app, config):
    config.html_search_scorer = str(Path(__file__).with_suffix(".js"))


def setup(app):
    app.add_search_language(WithChinese)
    app.connect("config-inited", rank)
    app.connect("builder-inited", without_listings)
    app.connect("html-page-context", where_it_is_used)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
