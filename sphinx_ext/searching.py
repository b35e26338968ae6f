"""Improve the search of the site.

The index leaves out code listings and includes Chinese. Lessons come before pages for teachers, and
quotations come only from the text.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish


def without_listings(app):
    """Leave code listings out of the search index."""
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
    """Split text into words for the index.

    Chinese has no spaces, so we index pairs of neighbouring characters, with which any word can be
    found.
    """

    def split(self, input):
        return [
            *super().split(re.sub("[一-鿿]", " ", input)),
            *re.findall(r"(?=([一-鿿]{2}))", input),
        ]


def where_it_is_used(app, name, template, context, doctree):
    """Load the index only on the search page.

    The theme would load it on every page to show results while the reader types, which we switched
    off.
    """
    tools = r'<script src="[^"]*(searchtools|language_data|searchindex)\.js"></script>\s*'
    context["without_search"] = lambda head: re.sub(tools, "", head)


def rank(app, config):
    """Set the script with which the search ranks its results."""
    config.html_search_scorer = str(Path(__file__).with_suffix(".js"))


def setup(app):
    app.add_search_language(WithChinese)
    app.connect("config-inited", rank)
    app.connect("builder-inited", without_listings)
    app.connect("html-page-context", where_it_is_used)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
