"""Show the questions of `chapters/plans/questions.toml` on pages.

The directive `{questions} 3` shows the questions of a chapter. Each lesson asks four of them, each
at the end of the section that has the answer. `frontend/answers/cards.js` gives them their buttons
and asks them again in later lessons. `{questions} pool` says how many questions there are, and how
many of them a term may draw.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from book import editions, questions

LESSON = re.compile(r"chapters/(zh/)?((\d)-[\w-]+)/lesson")
HEADING = re.compile(r"^(#+) .+$", re.M)
TITLE, CHINESE_TITLE = "Before you read on", "往下读之前"
LAST = """<aside class="returning-questions"><p><strong>Questions that come back</strong></p>
<p>This lesson asks {count} questions. Mark whether you knew the answers. Each question comes back \
in the next lesson, in the
lesson after it, and after a week. The dates stay in this browser.</p>
<p><a href="../exam.html#chapter-{chapter}">More questions on this chapter</a></p></aside>"""
CHINESE_LAST = """<aside class="returning-questions"><p><strong>会再来的问题</strong></p>
<p>这一课里有 {count} 个问题。答完请标明会不会：每个问题在下一课、\
再下一课和一周之后都会再问一次。日期只保存在此浏览器里。</p>
<p><a href="../../exam.html#chapter-{chapter}">本章的更多问题</a></p></aside>"""
COUNTS = {3: "three", 4: "four", 5: "five"}


def inline(text: str) -> str:
    r"""Convert a line of Markdown to HTML, with formulas, emphasis and code.

    >>> inline("*So* & `x`")
    '<em>So</em> &amp; <code>x</code>'
    >>> inline("$a_1 < b$")
    '<span class="math notranslate nohighlight">\\(a_1 &lt; b\\)</span>'
    """

    def plain(part: str) -> str:
        part = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(part, quote=False))
        part = re.sub(r"\*(.+?)\*", r"<em>\1</em>", part)
        return re.sub(r"`(.+?)`", r"<code>\1</code>", part)

    def formula(part: str) -> str:
        return (
            r'<span class="math notranslate '
            rf'nohighlight">\({html.escape(part, quote=False)}\)</span>'
        )

    parts = text.split("$")
    return "".join(formula(part) if k % 2 else plain(part) for k, part in enumerate(parts))


def asked(question: dict, title: str = TITLE) -> str:
    """Return the HTML of a lesson's question above its folded answer.

    The attribute `data-question` has the id of the question.
    """
    return (
        f'<aside class="question-here"><p><strong>{title}</strong></p>'
        '<details class="hint" '
        f'data-question="{question["id"]}"><summary>{inline(question["ask"])}</summary>'
        f"<p>{inline(question['answer'])}</p></details></aside>"
    )


def section_with(node: nodes.Element, words: str) -> nodes.section | None:
    """Return the innermost section of a node that contains these words, or None."""
    for child in node.children:
        if isinstance(child, nodes.section) and words in questions.plain(child.astext()):
            return section_with(child, words) or child
    return None


def numbered_section(markdown: str, words: str) -> int | None:
    """Return the number of the innermost section that contains these words, or None.

    Sections are numbered in the order of the headings. A Chinese page uses this number to find the
    section in which its English page asks.

    >>> numbered_section("# A\\n\\nno\\n\\n## B\\n\\nno\\n\\n## C\\n\\n### D\\n\\nyes", "Yes")
    3
    """
    heads = [*HEADING.finditer(markdown)]
    levels = [len(head[1]) for head in heads]
    place = None
    inside = range(len(heads))
    while True:
        for k in (k for k in inside if levels[k] == min(levels[i] for i in inside)):
            after = [i for i in range(k + 1, len(heads)) if levels[i] <= levels[k]]
            end = after[0] if after else len(heads)
            text = markdown[heads[k].start() : heads[end].start() if after else None]
            if words_in(text, words):
                place, inside = k, range(k + 1, end)
                break
        else:
            return place
        if not inside:
            return place


def words_in(text: str, words: str) -> bool:
    """Return whether a text contains these words, ignoring marks and spaces."""
    return questions.plain(words) in questions.plain(text)


def pool(root: Path) -> str:
    """Return a sentence that says how many questions the question bank has."""
    every, rows = questions.bank(root), questions.drawable(root)
    forms = sum(len([*questions.choices(row)]) for row in rows)
    least = min(len(questions.drawable(root, chapter)) for chapter in range(1, 8))
    return (
        f"The bank has {len(every)} questions. An examination uses only the {len(rows)} questions "
        f"that have numbers or names to draw. There are at least {least} of these for each "
        f"chapter, and together they have {forms} forms. An examination has one or two questions "
        f"from each chapter, and {questions.MINUTES // questions.A_MARK} marks."
    )


class Questions(Directive):
    """Show exam questions on a page, with the directive `{questions}`."""

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
    """Insert each question of a lesson at the end of the section that contains its words.

    The question is in the language of the page.
    """
    match = LESSON.fullmatch(app.env.docname)
    sections = [node for node in doctree.children if isinstance(node, nodes.section)]
    if not match or not sections:
        return
    chinese, folder, number = match.groups()
    app.env.note_dependency(str(Path(app.srcdir) / questions.FILE))
    words = editions.of_questions() if chinese else {}
    bank = questions.bank(Path(app.srcdir), int(number), words)
    rows = [row for row in bank if row["lesson"]]
    near = [questions.plain(row.get("near", row["quote"])) for row in rows]
    if chinese:
        app.env.note_dependency(str(editions.HOME / "zh/questions.po"))
        cells = editions.cells(editions.HOME / folder / "lesson.ipynb", slides=False)
        every = list(doctree.findall(nodes.section))
        markdown = "\n\n".join(cells.values())
        numbers = [numbered_section(markdown, text) for text in near]
        places = [every[k] if k is not None and k < len(every) else None for k in numbers]
    else:
        places = [section_with(doctree, text) for text in near]
    for row, place in zip(rows, places, strict=True):
        section = place or sections[0]
        inner = [k for k, node in enumerate(section.children) if isinstance(node, nodes.section)]
        where = inner[0] if place and inner else len(section.children)
        title = CHINESE_TITLE if chinese else TITLE
        section.insert(where, nodes.raw("", asked(row, title), format="html"))
    count = len(rows) if chinese else COUNTS.get(len(rows), len(rows))
    last = (CHINESE_LAST if chinese else LAST).format(count=count, chapter=number)
    sections[0] += nodes.raw("", last, format="html")


def setup(app):
    app.add_directive("questions", Questions)
    app.connect("doctree-read", ask_in_the_lesson)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
