"""Define the kinds of boxes on pages.

A blockquote becomes a box if its first bold word is in this list.
"""

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
