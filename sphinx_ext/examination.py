"""The questions of `chapters/plans/questions.toml` on pages: `{questions} 3` shows a chapter's, and a lesson asks four.

Each of the four is asked at the end of the section on which its answer rests. `frontend/answers/cards.js` gives them their
buttons and asks them again in later lessons.

`{questions} pool` says how many there are, and how many of them a term may draw.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from book import questions

LESSON = re.compile(r"chapters/(\d)-[\w-]+/lesson")
TITLE = "Before you read on"
LAST = """<aside class="returning-questions"><p><strong>Questions that come back</strong></p>
<p>This lesson asks {count} questions. Mark whether you knew the answers: each question comes back in the next lesson, in the
one after it, and after a week. The dates stay in this browser.</p>
<p><a href="../exam.html#chapter-{chapter}">More questions on this chapter</a></p></aside>"""
COUNTS = {3: "three", 4: "four", 5: "five"}


def inline(text: str) -> str:
    r"""Write a line of Markdown as HTML: formulas, emphasis, code.

    >>> inline("*So* $a_1 < b$ & `x`")
    '<em>So</em> <span class="math notranslate nohighlight">\\(a_1 &lt; b\\)</span> &amp; <code>x</code>'
    """

    def plain(part: str) -> str:
        part = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(part, quote=False))
        part = re.sub(r"\*(.+?)\*", r"<em>\1</em>", part)
        return re.sub(r"`(.+?)`", r"<code>\1</code>", part)

    def formula(part: str) -> str:
        return rf'<span class="math notranslate nohighlight">\({html.escape(part, quote=False)}\)</span>'

    parts = text.split("$")
    return "".join(formula(part) if k % 2 else plain(part) for k, part in enumerate(parts))


def asked(question: dict) -> str:
    """Return a question of a lesson over its folded answer; `data-question` is its id."""
    return (
        f'<aside class="question-here"><p><strong>{TITLE}</strong></p>'
        f'<details class="hint" data-question="{question["id"]}"><summary>{inline(question["ask"])}</summary>'
        f"<p>{inline(question['answer'])}</p></details></aside>"
    )


def section_with(node: nodes.Element, words: str) -> nodes.section | None:
    """Return the innermost section in a node that has these words, or nothing."""
    for each in node.children:
        if isinstance(each, nodes.section) and words in questions.plain(each.astext()):
            return section_with(each, words) or each
    return None


def pool(root: Path) -> str:
    """Say how large the bank is, in a sentence."""
    every, rows = questions.bank(root), questions.drawable(root)
    forms = sum(len([*questions.choices(row)]) for row in rows)
    least = min(len(questions.drawable(root, chapter)) for chapter in range(1, 8))
    return (
        f"The bank has {len(every)} questions. An examination is drawn from the {len(rows)} of them that have numbers or "
        f"names to draw, at least {least} a chapter; together they have {forms} forms. It takes one question of each "
        f"chapter, and then more, at most two a chapter, until the marks are {questions.MINUTES // questions.A_MARK}."
    )


class Questions(Directive):
    required_arguments = 1

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        root, (chosen,) = Path(env.srcdir), self.arguments
        try:
            text = pool(root) if chosen == "pool" else self.chapter(root, int(chosen))
        except ValueError as error:
            raise self.error(str(error)) from error
        holder = nodes.container(classes=["questions"])
        self.state.nested_parse(
            StringList(text.splitlines(), questions.FILE), self.content_offset, holder
        )
        return [nodes.target("", "", ids=[f"chapter-{chosen}"]), *holder.children]

    def chapter(self, root: Path, number: int) -> str:
        rows = questions.bank(root, number)
        marks = sum(row["marks"] for row in rows)
        return "\n".join(
            [f"*{len(rows)} questions, {marks} marks in all.*\n", *map(questions.markdown, rows)]
        )


def ask_in_the_lesson(app, doctree):
    """Ask each question of a lesson at the end of the section with its words, in English as the bank is."""
    found = LESSON.fullmatch(app.env.docname)
    sections = [node for node in doctree.children if isinstance(node, nodes.section)]
    if not found or not sections:
        return
    app.env.note_dependency(str(Path(app.srcdir) / questions.FILE))
    rows = [each for each in questions.bank(Path(app.srcdir), int(found[1])) if each["lesson"]]
    places = [
        section_with(doctree, questions.plain(each.get("near", each["quote"]))) for each in rows
    ]
    for each, place in zip(rows, places, strict=True):
        held = place or sections[0]
        inner = [k for k, node in enumerate(held.children) if isinstance(node, nodes.section)]
        where = inner[0] if place and inner else len(held.children)
        held.insert(where, nodes.raw("", asked(each), format="html"))
    last = LAST.format(count=COUNTS.get(len(rows), len(rows)), chapter=found[1])
    sections[0] += nodes.raw("", last, format="html")


def setup(app):
    app.add_directive("questions", Questions)
    app.connect("doctree-read", ask_in_the_lesson)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
