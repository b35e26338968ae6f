"""The search: its index without listings, lessons before pages for teachers, and quotations from the text alone."""

from pathlib import Path

from docutils import nodes


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


def rank(app, config):
    config.html_search_scorer = str(Path(__file__).with_suffix(".js"))


def setup(app):
    app.connect("config-inited", rank)
    app.connect("builder-inited", without_listings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
