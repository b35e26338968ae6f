"""The questions of `chapters/plans/questions.toml` on pages: `{questions} 3` shows a chapter's, and a lesson ends with three.

`{questions} pool` says how many there are, and how many of them a term may draw.
"""

import html
import re
from pathlib import Path

import chapters  # finds tools/
import questions
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

__all__ = ["chapters"]
LESSON = re.compile(r"chapters/(\d)-[\w-]+/lesson")
TITLE = "Three questions to come back to"


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


def three(root: Path, chapter: int) -> str:
    """The questions that a lesson shows, each over its folded answer; `data-question` is a question's id."""
    items = "".join(
        f'<details class="hint" data-question="{each["id"]}"><summary>{inline(each["ask"])}</summary>'
        f"<p>{inline(each['answer'])}</p></details>"
        for each in questions.bank(root, chapter)
        if each["lesson"]
    )
    more = f'<p><a href="../exam.html#chapter-{chapter}">More questions on this chapter</a></p>'
    return f'<aside class="three-questions"><p><strong>{TITLE}</strong></p>{items}{more}</aside>'


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


def at_the_end(app, doctree):
    """A lesson ends with three questions, in English as the bank is."""
    found = LESSON.fullmatch(app.env.docname)
    sections = [node for node in doctree.children if isinstance(node, nodes.section)]
    if found and sections:
        sections[0] += nodes.raw("", three(Path(app.srcdir), int(found[1])), format="html")
        app.env.note_dependency(str(Path(app.srcdir) / questions.FILE))


def setup(app):
    app.add_directive("questions", Questions)
    app.connect("doctree-read", at_the_end)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
