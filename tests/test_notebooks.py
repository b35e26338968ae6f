"""Hygiene of the notebooks: portable Markdown only, no outputs, one set-up cell, known references, short cells.

Each rule stands in CONTRIBUTING.md, and each message says it.
"""

import ast
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import ROOT
from pybtex.database import parse_file

from book.pages import notebooks

NOTEBOOKS = notebooks()
NAMES = [p.relative_to(ROOT / "chapters").as_posix() for p in NOTEBOOKS]
CHAPTERS = [p for p in NOTEBOOKS if p.parent.name != "chapters"]
every = pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)


def cells(path, kind=None):
    found = json.loads(path.read_text())["cells"]
    return [("".join(c["source"]), c) for c in found if kind in (None, c["cell_type"])]


def prose(path):
    """The Markdown without code: fenced, inline and math."""
    text = "\n\n".join(source for source, _ in cells(path, "markdown"))
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)


def test_notebooks_and_pages_are_as_sync_writes_them():
    """The set-up cell, the repository's address, and no outputs, counts or widget state."""
    done = subprocess.run(
        [sys.executable, "tools/sync.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `make sync`: {done.stdout}"


@every
def test_markdown_is_portable(path):
    text = prose(path)
    assert not re.search(
        r"^:::|\{(doc|ref|cite|numref|eq|math|term|margin)\}|^\[\^|^> \[!", text, re.M
    ), "plain Markdown only: MyST and GitHub's own marks are shown raw on Colab or in the book"
    assert not re.search(r"\\bm\b|\\newcommand|\\def\b|\\label|\\eqref", text), (
        "formulas use no macros, labels or \\bm: MathJax or Colab cannot show them"
    )
    assert not re.search(r"<img|<div|<span|<script", text), (
        "no raw HTML but <details>: slides and pages treat it differently"
    )
    for image in re.findall(r"!\[([^\]]*)\]\(", text):
        assert image.strip(), "an image needs alt text: ![what is to be seen](file)"
    for block in re.findall(r"<details>.*?</details>", text, re.S):
        assert re.match(r"<details><summary>[^<]+</summary>\n\n.*\n\n</details>", block, re.S), (
            "<details><summary>…</summary> needs a blank line after it and one before </details>"
        )


def test_the_references_can_be_read():
    text = (ROOT / "references.bib").read_text()
    entries = parse_file(ROOT / "references.bib").entries
    assert len(entries) == len(re.findall(r"^@\w+\{", text, re.M)), (
        "an entry is lost: a brace is missing, or a key stands twice"
    )
    urls = [entry.fields["url"] for entry in entries.values() if "url" in entry.fields]
    assert len(set(urls)) == len(urls), "one source, one entry"


@every
def test_every_link_to_a_source_is_in_the_references(path):
    known = re.findall(r"url = \{(\S+)\}", (ROOT / "references.bib").read_text())
    for link in re.findall(
        r"\]\((https?://arxiv\.org[^)]*|https?://openreview\.net[^)]*)\)", prose(path)
    ):
        assert link in known, f"{link} must be the url of an entry of references.bib"


@every
def test_local_links_lead_somewhere(path):
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", prose(path)):
        assert (path.parent / link).exists(), f"the link to {link} leads nowhere"


@every
def test_page_asks_one_question(path):
    texts = [source for source, _ in cells(path, "markdown")]
    assert texts[0].startswith("# "), "the first Markdown cell begins with the page's title, `# …`"
    assert "> **Question.**" in texts[0], (
        "the first Markdown cell asks the page's question: `> **Question.** …`"
    )
    titles = sum(len(re.findall(r"^# ", text, re.M)) for text in texts)
    assert titles == 1, f"a page has one title; here are {titles} lines that begin with `# `"


LECTURES = [p for p in CHAPTERS if p.stem in ("lesson", "sinks", "lab")]
lectures = pytest.mark.parametrize("path", LECTURES, ids=lambda p: f"{p.parent.name}/{p.stem}")
CUE = re.compile(r"<!-- cue: (\d+(?:\.5)?) min\n.+-->", re.S)


def is_cue(cell):
    return "cue" in cell["metadata"].get("tags", [])


@lectures
def test_lecture_has_length_and_an_answer(path):
    minutes = json.loads(path.read_text())["metadata"].get("lecture", {}).get("minutes", 0)
    assert minutes > 0, (
        'every lesson and lab is a lecture: its metadata needs "lecture": {"minutes": …}'
    )
    assert "> **Answer.**" in "\n".join(source for source, _ in cells(path)), (
        "a lecture ends with `> **Answer.** …`"
    )


@lectures
def test_every_slide_has_a_cue_and_the_minutes_add_up(path):
    """A cue is a cell of one HTML comment, which no page shows: what to do, to ask and to say, and its minutes."""
    slides, minutes = [], 0.0
    for source, cell in cells(path):
        if cell["metadata"].get("slideshow", {}).get("slide_type") in ("slide", "subslide"):
            slides.append([source.splitlines()[0], 0])
        if is_cue(cell):
            assert cell["metadata"]["slideshow"]["slide_type"] == "notes", (
                "a cue is a cell of the type `notes`"
            )
            assert "remove-cell" in cell["metadata"]["tags"], (
                "a cue has the tag `remove-cell`: pages leave it out"
            )
            found = CUE.fullmatch(source.strip())
            assert found, (
                f"a cue is one comment that opens with its minutes, `<!-- cue: 2 min`: {source[:60]!r}"
            )
            minutes += float(found[1])
            slides[-1][1] += 1
    assert [title for title, cues in slides if cues != 1] == [], "every slide has one cue"
    assert minutes == json.loads(path.read_text())["metadata"]["lecture"]["minutes"], (
        "the cues' minutes add up to the lecture's"
    )


@lectures
def test_the_page_is_written_to_be_read(path):
    """Prose for a reader: no stage directions, no formulas in words, nothing said twice."""
    text = "\n\n".join(source for source, cell in cells(path, "markdown") if not is_cue(cell))
    stage = re.search(
        r"\b(next|this|previous|last) slide\b|\bslide before\b|\ba few slides ago\b", text, re.I
    )
    assert not stage, f"a page has no slides: {stage[0]}"
    words = re.search(
        r"\b(two|e|ten) to the (minus|power|[a-z]\b)|\bone over (the )?(root|n|k|t)\b|\b[WQKV] (one|two)\b|\bA hat\b",
        text,
    )
    assert not words, f"mathematics is written as mathematics: {words[0]}"
    for before, after in itertools.pairwise(re.split(r"\n\n+", text)):
        assert not (before.endswith(":") and after.startswith("#")), (
            f"what a colon announces follows it: {before[-60:]!r}"
        )
    begun = [part[:60] for part in re.split(r"\n\n+", text) if len(part) > 60]
    assert len(set(begun)) == len(begun), (
        f"a paragraph stands twice: {next(b for b in begun if begun.count(b) > 1)!r}"
    )


@every
def test_headings_skip_no_rank(path):
    text = re.sub(
        r"```.*?```", "", "\n\n".join(source for source, _ in cells(path, "markdown")), flags=re.S
    )
    ranks = [(len(marks), words) for marks, words in re.findall(r"^(#+) (.+)$", text, re.M)]
    for (before, _), (after, words) in itertools.pairwise(ranks):
        assert after <= before + 1, f"the heading {words!r} skips a rank"


@every
def test_figures_are_described(path):
    code = [source for source, _ in cells(path, "code")][1:]  # the first one sets up
    drawn = sum(source.count("style.axes(") for source in code)
    described = sum(source.count("show(\n") + source.count("show(ax") for source in code)
    functions = sum(len(re.findall(r"return \w+, f?\"", source)) for source in code)
    assert drawn <= described + functions, (
        "each style.axes in a cell ends in show(ax, alt=…), or in a drawing function that returns the figure and a "
        'literal sentence, `return ax, f"…"`: else a figure has no alt text'
    )


@lectures
def test_an_open_cell_fits_a_screen(path):
    """Code that teaches is shown, and no cell but a whole model is longer than a screen."""
    hidden = {"hide-input", "hide-cell", "remove-cell"}
    shown = [
        source
        for source, cell in cells(path, "code")
        if not hidden & set(cell["metadata"].get("tags", []))
    ]
    shown = [source for source in shown if not source.startswith(("import ", "from "))]
    long = [
        source
        for source in shown
        if sum(map(bool, source.split("\n"))) > 15 and not source.startswith("class ")
    ]
    assert not long, f"an open cell has at most 15 lines, unless a model stands whole:\n{long}"


@every
def test_code_fits_the_page_and_drawing_is_folded(path):
    for source, cell in cells(path, "code"):
        long = [line for line in source.splitlines() if len(line) > 88]
        assert not long, f"a line of code has at most 88 characters: {long}"
        if re.search(r"^(explore|show|Markdown)\(", source, re.M) and path.stem != "exercises":
            tags = {"hide-input", "slide-code", "remove-cell"} & set(
                cell["metadata"].get("tags", [])
            )
            assert tags, (
                f"what draws or formats is folded: tag `hide-input`, or `slide-code` where it teaches:\n{source}"
            )


def test_long_numbers_in_prose_are_printed_by_cells():
    """A number of four or more decimals in the text can only come from a computation."""
    for path in NOTEBOOKS:
        text = re.sub(r"\$[^$]*\$|\]\([^)]*\)", "", prose(path))
        typed = re.findall(r"(?<![\d.])\d+\.\d{4,}", text)
        assert not typed, (
            f"{path}: a number that a computation gives is printed by a cell, not typed: {typed}"
        )


# years, figures and tables of papers, files, models, powers, and the course's interval are names
NAMED = re.compile(
    r"\b20\d\d\b|(?:Fig\.|Table) \d+|data/\S+|\w+-\d+\w*|\d[\d.]*[BM]\b|10⁻\S+|95% interval"
)
SPELLED = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve".split(),
        range(2, 13),
        strict=True,
    )
)
TYPED = re.compile(rf"(?<![\w.])\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(SPELLED)})\b", re.I)


def literals(tree: ast.AST) -> set[float]:
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {float(value) for value in values if type(value) in (int, float)}


FIGURES = [
    ast.parse(path.read_text())
    for path in sorted((ROOT / "src/course").glob("chapter*/figures.py"))
]
DRAWN_BY = {f"{n}.{top.name}": literals(top) for n, tree in enumerate(FIGURES, 1) for top in tree.body if isinstance(top, ast.FunctionDef)}  # fmt: skip


def said_of(node: ast.AST, given: dict[str, ast.AST]) -> Iterator[str]:
    """The typed parts of a text, with those of the names in it that the cell gives once."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in given:
        yield from said_of(given.pop(node.id), given)
    elif not isinstance(node, ast.Subscript):
        parts = [
            part
            for part in ast.iter_child_nodes(node)
            if part is not getattr(node, "format_spec", None)
        ]
        yield from (text for part in parts for text in said_of(part, given))


@every
def test_a_number_that_a_figure_is_told_with_stands_in_its_code(path):
    """Alt texts and captions: a result is put in from its variable; what is typed is a literal of the code up to there,

    or of the function that draws it.
    """
    known, chapter = set(), path.parent.name[0]
    for source, cell in cells(path, "code"):
        tree = ast.parse(re.sub(r"(?m)^[%!]", "#", source))
        known |= literals(tree)
        drawn = [
            f"{n or chapter}.{name}"
            for n, name in re.findall(r"\b(?:figures|ch(\d))\.(\w+)", source)
        ]
        here = known.union(*(DRAWN_BY.get(name, ()) for name in drawn))
        told = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                told += [each.value for each in node.keywords if each.arg in ("alt", "caption")]
                told += node.args[1:] if ast.unparse(node.func) == "talk.figure" else []
            elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                told += node.value.elts[1:]
        for text in told:
            given = {
                ast.unparse(n.targets[0]): n.value
                for n in ast.walk(tree)
                if isinstance(n, ast.Assign)
            }
            for part in said_of(text, given):
                for number in TYPED.findall(NAMED.sub("", part)):
                    value = float(SPELLED.get(number.lower()) or number.replace(",", ""))
                    assert {value, value / 100} & here, (
                        f"{cell['id']}: {number} in {part!r} is nowhere in the code: put it in from what computes it"
                    )


def test_a_percent_sign_stands_at_its_number():
    """CONTRIBUTING, Style: 95%, as Python writes it, on pages, in drawings, in figures and in what claims say."""
    told = [
        *(ROOT / "chapters").rglob("*.md"),
        *NOTEBOOKS,
        *(ROOT / "src/course/drawing").glob("*.js"),
    ]
    told += [
        path
        for kind in ("*.py", "*.toml")
        for path in (ROOT / "src/course").glob(f"*/{kind}")
        if path.parent.name not in ("runs", "exercises")
    ]
    found = [
        f"{path.name}: …{text}"
        for path in told
        for text in re.findall(r".{0,20}[0-9}] %", path.read_text())
    ]
    assert not found, f"a space before the sign: {found}"


def test_no_notebook_names_a_machine():
    for path in NOTEBOOKS:
        named = re.search(r"/home/|/root/|/Users/|/tmp/", path.read_text())
        assert not named, f"{path}: a path of somebody's machine"


def test_lessons_link_terms_to_the_glossary():
    """CONTRIBUTING, Rules for Markdown: a term's first use in a lesson is a plain link to its sentence."""
    text = (ROOT / "chapters/glossary.md").read_text()
    terms = {
        re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-")
        for term in re.findall(r"^## (.+)$", text, re.M)
    }
    for path in (p for p in NOTEBOOKS if p.stem == "lesson"):
        linked = re.findall(
            r"\]\(\.\./glossary\.md#([^)]+)\)",
            "\n".join(source for source, _ in cells(path, "markdown")),
        )
        assert len(linked) >= 4, (
            f"{path}: link the first use of its terms, as in [RoPE](../glossary.md#rope)"
        )
        assert set(linked) <= terms, f"{path}: the glossary has no {set(linked) - terms}"
        assert len(set(linked)) == len(linked), f"{path}: only the first use of a term is a link"
