"""Provide the directive `{sources}`, which lists quotations of the source documents.

Each quotation (data/sources.csv) has the page that answers it. On a Chinese page a Chinese
quotation appears without a translation, and links lead to editions if there are some.
"""

import html
import re
from functools import cache
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import Directive
from machine import language

from book import editions, execution
from helpers import data, words

DOCUMENTS = {"talk": "Talk", "note": "Note", "abstract": "Abstract", "paper": "Paper"}
ANSWERED = {"full": "answered in full", "part": "in part", "not here": "not here"}
LANGUAGE = {"talk": "zh", "note": "zh", "abstract": "en", "paper": "en"}
PLACES = {  # words for a place in a document, in the order in which we replace them
    r"slide (\d+), note": r"第 \1 页，备注",
    r"slide (\d+)": r"第 \1 页",
    r"sentence (\d+)": r"第 \1 句",
    r"section ([\w.]+), U-shape": r"第 \1 节，U 形",
    r"section ([\w.]+)": r"第 \1 节",
    "Figures?": "图",
    "Theorem": "定理",
    "Lemma": "引理",
    "Proposition": "命题",
    "Corollary": "推论",
    "abstract": "摘要",
    "core idea": "核心思想",
    "copying": "复制",
    "counting": "计数",
    "theory": "理论",
    ", ": "，",
}
STYLE = """
.source-chosen{position:absolute;opacity:0}
.source-filters label{display:inline-block;border:1px solid currentColor;border-radius:1em;
padding:.1em .8em;margin:.2em;cursor:pointer}
.source-filters input:checked+label{font-weight:700;text-decoration:underline}
.source-filters input:focus-visible+label{outline:3px solid #d55e00}
.source-row{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:0 1.2em;
border-top:1px solid #8884;padding:.5em 0}
.source-row>*{min-width:0;overflow-wrap:anywhere}
.source-row :is(p,q){margin:0}
.source-row .source-place{grid-column:1/-1;font-size:.85em;opacity:.85}
.source-chip{display:inline-block;padding:0 .5em;border:2px solid var(--tone);border-radius:1em;
font-weight:700;color:inherit}
@media (max-width:700px){.source-row{grid-template-columns:minmax(0,1fr);gap:.3em}}
"""


def signed(text: str) -> str:
    """Convert a text to HTML, with true minus signs in exponents."""
    return html.escape(text).replace("{-", "{−")


def rows() -> pd.DataFrame:
    """Read the table of the sources, with empty strings for empty cells."""
    return data.table("sources").fillna("").astype(str)


def answering(row) -> str:
    """Return the page and the section that answer a quotation.

    A row without a page of its own has the page of its claim.
    """
    from course.evidence.claims import CLAIMS

    return row.where or (CLAIMS[row.claim].shown if row.claim in CLAIMS else "")


@cache
def headings(page: str, lang: str) -> dict[str, str]:
    """Return a page's headings in a language, keyed by the English headings."""
    source = editions.english(editions.HOME / f"{page}.zh.po")
    cells = editions.cells(source, slides=page == "talk")
    table = source.with_suffix(".zh.po")
    edition = editions.texts(table) if lang == "zh" and table.exists() else cells
    in_english, in_edition = (
        [head for name in cells for head in re.findall(r"^#+ (.+)$", text[name], re.M)]
        for text in (cells, edition)
    )
    return dict(zip(in_english, in_edition, strict=True))


def link(where: str, lang: str) -> str:
    """Return the address of a page and section, as seen from chapters/ or chapters/zh/.

    An example of a page and section is `3-representational-collapse/lab#The model`.
    """
    page, _, heading = where.partition("#")
    named = headings(page, lang)
    title = named.get(heading) or next(iter(named.values()))
    number, _, part = page.partition("-")[0], None, page.rpartition("/")[2]
    lead = {"lesson": "Lesson {}", "lab": "Lab {}", "exercises": "Exercises {}"}.get(part)
    before = (
        words.translated(lead.format(number)) + (": " if lang == "en" else "：") if lead else ""
    )
    up = "../" if lang == "zh" and not (editions.HOME / f"{page}.zh.po").exists() else ""
    anchor = f"#{nodes.make_id(heading)}" if heading else ""
    return f'<a href="{up}{page}.html{anchor}">{before}{html.escape(title)}</a>'


def chip(name: str, lang: str) -> str:
    """Return a claim's verdict as a link to the claim's row of the scorecard.

    The result is empty if the claim no longer exists.
    """
    from course import scorecard
    from course.evidence.claims import CLAIMS

    if name not in CLAIMS:
        return ""
    verdict, sign, colour, _ = scorecard.badge(name)
    up = "../" if lang == "zh" else ""
    return (
        f'<a class="source-chip" style="--tone:{colour}" href="{up}scorecard.html#{name}">'
        f"{sign} {html.escape(words.translated(verdict))}</a> "
    )


def place(row, lang: str) -> str:
    """Describe where a quotation is in its document, in the language of the page."""
    text = row.place
    if lang == "zh":
        for english, chinese in PLACES.items():
            text = re.sub(english, chinese, text)
    return f"{text} · {words.translated(row.kind)}"


def entry(row, number: int, lang: str) -> str:
    """Return the HTML of one quotation, with our answer and a link to it."""
    quoted = f'<p lang="{LANGUAGE[row.document]}"><q>{signed(row.quotation)}</q></p>'
    if lang == "en" and LANGUAGE[row.document] == "zh" and row.english != row.quotation:
        quoted += f"<p>{signed(row.english)}</p>"
    where, comma = answering(row), ", " if lang == "en" else "，"
    why = row.why_zh if lang == "zh" else row.why
    fate = f"<strong>{words.translated(ANSWERED[row.answered])}</strong>"
    fate += (": " if lang == "en" else "：") + link(where, lang) if where else ""
    return (
        f'<div class="source-row" id="source-{number}" data-document="{row.document}" '
        f'data-answered="{row.answered}">'
        f'<p class="source-place"><a href="#source-{number}">{number}</a> · '
        f"{words.translated(DOCUMENTS[row.document])}{comma}{place(row, lang)}</p>"
        f"<div>{quoted}</div><div><p>{chip(row.claim, lang) if row.claim else ''}{fate}</p>"
        f"{f'<p>{html.escape(why)}</p>' if why else ''}</div></div>"
    )


def choice(kind: str, values: dict[str, str], counts: dict[str, int]) -> str:
    """Return buttons of which one is active, with a style that hides all other rows.

    The buttons need no script.
    """
    buttons, rules = [], []
    for value, name in {"": "all", **values}.items():
        known = f"source-{kind}-{value.replace(' ', '-') or 'all'}"
        count = counts.get(value, 0) if value else sum(counts.values())
        buttons.append(
            f'<input type="radio" class="source-chosen" name="source-{kind}" '
            f'id="{known}"{"" if value else " checked"}>'
            f'<label for="{known}">{html.escape(words.translated(name))} ({count})</label>'
        )
        if value:
            rules.append(
                f".source-page:has(#{known}:checked) "
                f'.source-row:not([data-{kind}="{value}"]){{display:none}}'
            )
    return (
        '<div class="source-filters" '
        f'role="radiogroup">{"".join(buttons)}</div><style>{"".join(rules)}</style>'
    )


class Sources(Directive):
    """Show the quotations of the source documents, with the directive `{sources}`."""

    def run(self):
        env = self.state.document.settings.env
        env.note_dependency(str(Path(env.srcdir) / "data/sources.csv"))
        lang, table = language(self), rows()
        filters = [
            choice("document", DOCUMENTS, table.document.value_counts().to_dict()),
            choice("answered", ANSWERED, table.answered.value_counts().to_dict()),
        ]
        listed = [entry(row, number, lang) for number, row in enumerate(table.itertuples(), 1)]
        page = (
            "<div "
            f'class="source-page"><style>{STYLE}</style>{"".join(filters)}{"".join(listed)}</div>'
        )
        return [nodes.raw("", page, format="html")]


def outdated(app, env, added, changed, removed):
    """Return the pages that must be read again because a verdict may have changed.

    A verdict may have changed if the scorecard was executed again.
    """
    before, env.sources_key = getattr(env, "sources_key", ""), ""
    pages = [name for name in ("chapters/sources", "chapters/zh/sources") if name in env.found_docs]
    if pages:
        env.sources_key = execution.key(editions.HOME / "scorecard.ipynb", editions.ROOT)
    return pages if env.sources_key != before else []


def setup(app):
    app.add_directive("sources", Sources)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
