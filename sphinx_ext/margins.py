"""Arrange the wide parts, the margin and the foot of a page.

A table with many columns or long cells spans text and margin. A short fold without another fold
next to it becomes a note in the margin, while longer folds, questions and options stay folded. The
code of set-up, guess and figures moves to one fold at the foot, and each figure has a link to its
listing. On a page of a chapter the machine is a strip that shows the reader's position in the
course.
"""

import itertools
import re
from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from course import drawing

COLUMNS, ACROSS = (
    5,
    150,
)  # a table with this many columns, or this many characters in a row, spans the margin, too
WIDE = "wide"  # the class of parts that span the margin
# the theme folds the contents next to this class, and fails without contents
FOLDING = "full_width"
# the largest number of bytes of a note (110 words, or as much in Chinese) and of an option
LONGEST, OPTION = 660, 260
FOLD = re.compile(r"\s*<details><summary>(.*?)</summary>\s*$", re.S)
NUMBER = re.compile(
    r"<td(?=[^>]*>\s*[≥<+−]?\s*(?:\d[\d,.]*(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?|∞|–)\s*</td>)([^>]*>)"
)
TABLE, ROW, CELL = (
    re.compile(form, re.S) for form in (r"<table.*?</table>", r"<tr.*?</tr>", r"<t[hd](?=[ >])")
)
OPENING, TAG = re.compile(r"<table[^>]*>"), re.compile(r"^[^>]*>|<.*?>", re.S)
BESIDE = re.compile(
    "<figcaption(?=>)"
)  # the theme folds the contents where such a part is visible, with this class
HIDDEN = '<details class="admonition hide above-input">'
MACHINE = re.compile(r'<figure class="drawing" data-drawing="machine".*?</figure>', re.S)
SAID = {
    False: (
        "code of this page: set-up, guess, figures",
        "The machine, at stop {} of 7",
        "Listing {}",
        "its code",
    ),
    True: ("代码 准备、猜测与图", "这台机器，第 {} 站，共 7 站", "代码 {}", "代码"),
}


def raw(text: str) -> nodes.raw:
    """Return a node that contains HTML."""
    return nodes.raw("", text, format="html")


def numbered(table: re.Match) -> str:
    """Mark the cells of an HTML table that hold numbers, and the heads of such columns.

    >>> table = "<table><tr><th>n</th><th>a</th></tr><tr><td>x</td><td>1</td></tr></table>"
    >>> for row in numbered(re.match(".*", table)).split("<tr>")[1:]:
    ...     print(row)
    <th>n</th><th data-number>a</th></tr>
    <td>x</td><td data-number>1</td></tr></table>
    """
    text = NUMBER.sub(r"<td data-number\1", table[0])
    body = [CELL.split(row)[1:] for row in ROW.findall(text) if "<td" in row]
    numbers = Counter(
        k for row in body for k, cell in enumerate(row) if cell.startswith(" data-number")
    )

    def head(row: re.Match) -> str:
        if "<td" in row[0] or "colspan" in row[0]:
            return row[0]
        place = itertools.count()
        return CELL.sub(
            lambda cell: cell[0] + " data-number" * (2 * numbers[next(place)] >= len(body)), row[0]
        )

    return ROW.sub(head, text)


def widened(table: re.Match) -> str:
    """Return an HTML table that spans text and margin if its rows need the width.

    >>> row = "".join(f"<td>{k}</td>" for k in range(5))
    >>> widened(re.match(".*", f"<table><tr>{row}</tr></table>"))[:20]
    '<table class="wide">'
    """
    rows = [[TAG.sub("", cell) for cell in CELL.split(row)[1:]] for row in ROW.findall(table[0])]
    if not is_wide(rows):
        return table[0]
    opening = OPENING.match(table[0])[0]
    marked = (
        opening.replace('class="', f'class="{WIDE} ')
        if 'class="' in opening
        else opening.replace("<table", f'<table class="{WIDE}"')
    )
    return marked + table[0][len(opening) :]


def is_wide(rows: list[list[str]]) -> bool:
    """Return whether a table needs more than the width of the text.

    A table needs more if it has many columns, or if its longest cells would be too long side by
    side.
    """
    across = sum(
        max(map(len, column)) for column in itertools.zip_longest(*rows, fillvalue="") if column
    )
    return max(map(len, rows), default=0) >= COLUMNS or across > ACROSS


def told(node: nodes.Node) -> str:
    """Return the HTML of a raw node, or "" for any other node."""
    return node.astext() if isinstance(node, nodes.raw) else ""


class Margins(SphinxPostTransform):
    """Arrange the wide parts, the margin and the foot of each page."""

    default_priority = 198  # before MyST-NB folds the remaining code
    formats = ("html",)

    def run(self, **kwargs):
        self.chinese = self.env.docname.startswith("chapters/zh/")
        self.code_said, self.stop_said, self.listing_said, self.its = SAID[self.chinese]
        sections = list(self.document.findall(nodes.section))
        # a page with one section has no contents that a note could fold, and an examination keeps
        # its answers folded
        folds = len(sections) > 1 and not self.env.docname.endswith("/exam")
        for section in sections if folds else ():
            notes(section, "hint" if self.env.docname.endswith("exercises") else "option")
        if stop := drawing.stop_of(Path(self.env.docname).parent.name):
            self.strip(stop)
        contents = (
            len(list(self.document.findall(nodes.section))) > 1
        )  # otherwise the theme's script finds no contents to fold
        for node in list(self.document.findall(nodes.raw)):
            text = TABLE.sub(widened, TABLE.sub(numbered, told(node)))
            if contents:
                text = text.replace(f'class="{WIDE}', f'class="{WIDE} {FOLDING}')
                text = BESIDE.sub(r'\g<0> class="margin_caption"', text).replace(
                    '"explore-controls"', '"explore-controls margin_caption"'
                )
            if text != told(node):
                node.replace_self(raw(text))
        for table in self.document.findall(nodes.table):
            rows = [
                [cell.astext() for cell in row.findall(nodes.entry)]
                for row in table.findall(nodes.row)
            ]
            if is_wide(rows):
                table["classes"] += [WIDE, FOLDING] if contents else [WIDE]
        cells(self.document)
        self.code()

    def strip(self, stop: int) -> None:
        """Add a small picture of the machine above the text, at the chapter's stop.

        The picture has links to all stops of the machine on the front page.
        """
        language, front = "zh" * self.chinese or "en", f"chapters/{'zh/' * self.chinese}welcome"
        front = self.app.builder.get_relative_uri(self.env.docname, front)
        stops = "".join(
            f'<a href="{front}#stop-{k}"{" aria-current=true" * (k == stop)}>{k}</a>'
            for k in range(1, 8)
        )
        caption = f"<p>{self.stop_said.format(stop)}<span>{stops}</span></p>"
        picture = drawing.picture("machine", stop, language=language)
        whole = f'<div class="machine-strip">{picture}{caption}</div>'
        for node in list(self.document.findall(nodes.raw)):
            if MACHINE.search(text := told(node)):
                node.replace_self(raw(MACHINE.sub(lambda _: whole, text)))

    def code(self) -> None:
        """Move hidden code listings to the foot of the page."""
        foot = nodes.container(classes=["page-code"])
        for cell in [
            cell
            for cell in self.document.findall(nodes.container)
            if cell.get("hide_mode") == "input"
        ]:
            k, listing = len(foot) // 2 + 1, cell[0]
            cell.remove(listing)
            del cell["hide_mode"]
            back = f' <a href="#shown-{k}">↑</a>' if len(cell) else ""
            foot += [raw(f'<p id="code-{k}">{self.listing_said.format(k)}{back}</p>'), listing]
            if len(cell):
                cell.insert(
                    0, raw(f'<a class="to-code" id="shown-{k}" href="#code-{k}">{self.its}</a>')
                )
            else:
                cell.parent.remove(cell)
        if len(foot):
            opening = f'<details class="page-code"><summary>{self.code_said}</summary>'
            self.document[-1] += [raw(opening), foot, raw("</details>")]


def cells(document: nodes.document) -> None:
    """Give the cells of an edition that hide their listing the form of the English page's cells.

    `book.editions` writes HTML around these cells.
    """
    for fold in [node for node in document.findall(nodes.raw) if told(node).startswith(HIDDEN)]:
        page, k = fold.parent, fold.parent.index(fold)
        ends = [told(node).strip() for node in page]
        end = ends.index("</details>", k)
        last = next(
            j
            for j in range(end + 1, len(ends))
            if ends[j] == "</div>" and ends[j - 1] in ("</details>", "</div>")
        )
        listing = nodes.container("", *page[k + 1 : end])
        whole = nodes.container(
            "",
            listing,
            *page[end + 1 : last],
            classes=["cell", "tag_hide-input"],
            hide_mode="input",
        )
        page[k - 1 : last + 1] = [whole]


def notes(section: nodes.section, kind: str) -> None:
    """Move short single folds of a section into the margin.

    Folds that follow each other belong together (options or hints), so they stay in the text.
    """
    folds = []
    for k, child in enumerate(section.children):
        if opening := FOLD.match(told(child)):
            folds.append(
                (
                    k,
                    next(j for j in range(k, len(section)) if "</details>" in told(section[j])),
                    opening[1],
                )
            )
    starts, ends = {fold[0] for fold in folds}, {fold[1] for fold in folds}
    for start, end, title in reversed(folds):
        inside = section[start + 1 : end]
        length = len(" ".join(node.astext() for node in inside).encode())
        if start - 1 in ends or end + 1 in starts:
            if kind == "hint" or length < OPTION:
                section[start] = raw(
                    told(section[start]).replace("<details", f'<details class="{kind}"')
                )
        elif length <= LONGEST and not title.rstrip().endswith(("?", "？")) and not tall(inside):
            heading = nodes.paragraph("", "", nodes.strong("", re.sub("<.*?>", "", title)))
            note = nodes.container("", heading, *inside, classes=["side-note", "margin_caption"])
            beside = [section[start - 1]] if isinstance(section[start - 1], nodes.paragraph) else []
            section[start - len(beside) : end + 1] = [
                nodes.container("", note, *beside, classes=["noted"])
            ]


def tall(inside: list[nodes.Node]) -> bool:
    """Return whether a fold is too long for the narrow margin."""
    wide = (nodes.table, nodes.literal_block, nodes.math_block)
    return any(next(iter(node.findall(kind)), None) is not None for node in inside for kind in wide)


def setup(app):
    app.add_post_transform(Margins)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
