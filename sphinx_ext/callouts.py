"""Style a blockquote according to its first bold word.

For example, `> **Theorem 3.2 (Collapse).** …` becomes a theorem box, so the notebooks remain
portable Markdown. `book.slides` does the same for the decks.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from book.callouts import CHINESE, KINDS


class Callouts(SphinxPostTransform):
    """Turn blockquotes with a known first word into boxes."""

    default_priority = 200

    def run(self, **kwargs):
        for quote in self.document.findall(nodes.block_quote):
            strong = next(quote.findall(nodes.strong), None)
            words = strong.astext().split() if strong else []
            kind = words[0].rstrip(".:。").lower() if words else ""
            if (kind := CHINESE.get(kind, kind)) in KINDS:
                quote["classes"] += ["callout", kind]


def setup(app):
    app.add_post_transform(Callouts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
