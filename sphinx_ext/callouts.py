"""Style a blockquote by its bold first word: `> **Theorem 3.2 (Collapse).** …` becomes a theorem box.

The notebooks keep to portable Markdown; `tools/slides.py` does the same for the decks.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

KINDS = (
    "theorem", "lemma", "proposition", "corollary", "definition", "claim", "example", "proof",
    "question", "answer", "takeaway", "warning", "assumption", "note", "exercise",
)  # fmt: skip
CHINESE = {
    "问题": "question",
    "答案": "answer",
    "定理": "theorem",
    "引理": "lemma",
    "论断": "claim",
}


class Callouts(SphinxPostTransform):
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
