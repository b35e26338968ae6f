"""Name the columns in the cells of tables whose rows a phone shows as cards.

A phone has no room for several columns of sentences. If at least two columns and at least a third
of all columns of a table hold sentences, `course.css` shows each row as a card there, and each cell
begins with the name of its column. This holds for tables of Markdown, of directives and of outputs.
A table that has the class `row-cards` already has cards in any case.
"""

import html
import re

CARDS = "row-cards"
COLUMNS, SENTENCE = 3, 40  # a table has at least so many columns, a sentence more characters
TABLE = re.compile(r"<table\b(?:(?!<table\b).)*?</table>", re.S)
HEAD = re.compile(r"<thead\b.*?</thead>", re.S)
ROW = re.compile(r"<tr\b.*?</tr>", re.S)
CELL = re.compile(r"<t[hd]\b([^>]*)>(.*?)</t[hd]>", re.S)
TAG, TEX = re.compile(r"<[^>]*>"), re.compile(r"\\[()]")


def carded(body: str) -> str:
    r"""Mark the tables of a page whose rows are cards on a phone, and name their cells.

    >>> row = "".join(f"<td>{letter * 41}</td>" for letter in "xy") + "<td>z</td>"
    >>> head = "<thead><tr><th>a</th><th>b</th><th>\\(c\\)</th></tr></thead>"
    >>> page = carded(f"<table>{head}<tr>{row}</tr></table>")
    >>> re.findall("<table.*?>|<td .*?>", page)
    ['<table class="row-cards">', '<td data-name="b">', '<td data-name="c">']
    >>> carded("<table><thead><tr><th>a</th></tr></thead></table>")
    '<table><thead><tr><th>a</th></tr></thead></table>'
    """
    return TABLE.sub(lambda table: _named(table[0]), body)


def _named(table: str) -> str:
    head = HEAD.search(table)
    if not head or len(ROW.findall(head[0])) != 1:
        return table
    names = [_text(cell) for _, cell in CELL.findall(head[0])]
    rows = [CELL.findall(row) for row in ROW.findall(table, head.end())]
    rows = [row for row in rows if "colspan" not in row[0][0]]  # a row of one cell needs no name
    opening, body = table[: head.end()], table[head.end() :]
    if CARDS not in opening and not _holds_sentences(names, rows):
        return table
    return _marked(opening) + ROW.sub(lambda row: _with_names(row[0], names), body)


def _holds_sentences(names: list[str], rows: list[list[tuple[str, str]]]) -> bool:
    if len(names) < COLUMNS or any(len(row) != len(names) for row in rows):
        return False
    long = [[_length(cell) > SENTENCE for _, cell in row] for row in rows]
    sentences = sum(map(any, zip(*long, strict=True)))
    return sentences >= max(2, len(names) / 3)


def _text(cell: str) -> str:
    return TEX.sub("", html.unescape(TAG.sub("", cell))).strip()


def _length(cell: str) -> int:
    """Count the characters of a cell, a Chinese one twice, because it is twice as wide."""
    return sum(1 + (character > "\u2e80") for character in _text(cell))


def _marked(opening: str) -> str:
    """Add the class of cards to the opening of a table."""
    if CARDS in opening:
        return opening
    if 'class="' in opening.split(">", 1)[0]:
        return opening.replace('class="', f'class="{CARDS} ', 1)
    return opening.replace("<table", f'<table class="{CARDS}"', 1)


def _with_names(row: str, names: list[str]) -> str:
    """Name the cells of a row, except its first, which is the title of the card."""
    left = iter([None, *names[1:]])

    def cell(match: re.Match) -> str:
        if "colspan" in match[1] or not (name := next(left)):
            return match[0]
        return match[0].replace(">", f' data-name="{html.escape(name)}">', 1)

    return CELL.sub(cell, row)


def write_cards(app, pagename, templatename, context, doctree):
    """Mark the tables in the text of a page."""
    if "body" in context:
        context["body"] = carded(context["body"])


def setup(app):
    app.connect("html-page-context", write_cards)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
