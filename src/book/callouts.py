"""The kinds of boxes: a blockquote is one if its bold first word stands here."""

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
