"""Publish the book in forms that a reader's AI assistant can read.

These are `llms.txt`, each page as Markdown, a tutor's file for each chapter, and facts about each
page. The Markdown of a page is next to its HTML (`lesson.md` next to `lesson.html`). It has the
printed output of its cells but no solutions, and the page has a link to it and a button that copies
it. `tutor/chapter3.md` has what a tutor of chapter 3 needs: statements, stubs, hints in order, the
mistakes that the checks name, and last the solutions, with the rule not to reveal them before the
third hint. The head of each page says what the page is about and how to cite it.
"""

import functools
import html
import json
import re
import shutil
import tomllib
from pathlib import Path

import answering
import lectures
from sphinx.util.osutil import relative_uri

from book import editions, execution, questions, repository

ROOT = answering.ROOT
TITLE = "Connection Bottlenecks in Attention"
SUMMARY = (
    "An executable course on how attention loses information: "
    "over-squashing in graphs, causal attention and its sinks, "
    "representational collapse, counting, RoPE frequencies and the Differential Transformer. "
    "Each claim is computed by a "
    "cell of its page, and what does not hold is said."
)
RULES = """You help one learner with these exercises. Follow these rules.

1. Ask first what the learner has tried. Say what is right in it.
2. Give hint 1, then hint 2, then hint 3, in this order, and only one at a time, when the learner \
asks or is stuck.
3. Do not give the solution before the third hint was given and tried. Even then, ask \
whether the learner wants it.
4. If the answer makes one of the named mistakes, say the mistake in the words below. \
Do not mend the code yourself.
5. The check decides, not you: on the site (button *Check*), in JupyterLab or on Colab.
6. An exercise with a prediction asks for the learner's own guess first. Do not give it away.
"""
PICTURE = "machine.webp"  # in the folder `_static`
ALT = "The machine of the front page, which shows what reaches the last token"
LONGEST = 160  # the largest number of characters in a description


def source(path: Path, solutions: bool = False) -> str:
    """Convert a page to Markdown.

    A notebook's text and code are included, without its set-up cell and, by default, without its
    solutions.
    """
    if path.suffix != ".ipynb":
        return path.read_text()
    return of_cells(json.loads(path.read_text())["cells"], solutions)


def of_cells(cells: list[dict], solutions: bool = False) -> str:
    """Convert a notebook's cells to Markdown, and describe the outputs in words."""
    parts = []
    for cell in cells:
        text = "".join(cell["source"]).strip()
        hidden = (
            "remove-cell" in cell["metadata"].get("tags", [])
            or cell["metadata"].get("slideshow", {}).get("slide_type") == "notes"
        )
        if not text or hidden:
            continue
        if cell["cell_type"] == "markdown":
            parts.append(text if solutions else without_solution(text))
        elif solutions or not text.startswith("# @title Solution"):
            parts.append(f"```python\n{text}\n```")
            if not text.startswith("checks."):  # a check prints nothing before it has an answer
                parts += map(in_words, cell.get("outputs", []))
    return "\n\n".join(filter(None, parts)) + "\n"


def in_words(output: dict) -> str:
    """Convert the output of a cell to Markdown.

    The result is the text of the output, or the description and the rows of a picture or table.
    """
    data = output.get("data", {})
    if "text/markdown" in data:
        return "".join(data["text/markdown"])
    plain = "".join(data.get("text/plain", output.get("text", ""))).rstrip()
    if plain and not plain.startswith("<"):
        return f"```text\n{plain}\n```"
    return "\n".join(described("".join(data.get("text/html", ""))))


def described(page: str) -> list[str]:
    """Return the alternative texts, captions and table rows in a piece of HTML.

    The lines are in order, one per line.

    >>> described('<img alt="A line."><table><tr><th>n</th><td>1</td></tr></table>')
    ['*Figure.* A line.', '| n | 1 |']
    """
    lines = []
    for match in re.finditer(
        r'<img[^>]*\balt="([^"]+)"|<(figcaption|caption)[^>]*>(.*?)</\2>|<tr[^>]*>(.*?)</tr>',
        page,
        re.S,
    ):
        alt, _, caption, row = match.groups()
        if alt:
            lines.append(f"*Figure.* {html.unescape(alt)}")
        elif caption:
            lines.append(bare(caption))
        else:
            entries = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
            lines.append(f"| {' | '.join(map(bare, entries))} |")
    return [*dict.fromkeys(lines)]


def bare(page: str) -> str:
    """Return the text of a piece of HTML, without tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())


def made_by_the_build(text: str, name: str) -> str:
    """Fill in the directives of a page in Markdown.

    A directive without words of its own becomes a link to the page, and the directive of the
    question bank becomes the questions.

    >>> made_by_the_build("```{times}\\n```", "about")
    '*This part is made when the book is built: see [the page](about.html).*'
    """

    def replaced(match: re.Match) -> str:
        if match[1] == "questions" and match[2] in map(str, questions.CHAPTERS):
            return "\n\n".join(map(questions.markdown, questions.bank(ROOT, int(match[2]))))
        return f"*This part is made when the book is built: see [the page]({name}.html).*"

    return re.sub(r"^```\{([\w-]+)\} *([^\n]*)\n(?::[^\n]*\n|\n)*```$", replaced, text, flags=re.M)


def markdown(name: str, path: Path, root: Path = ROOT) -> str:
    """Return a page of the built book as Markdown, with the outputs of its cells.

    For a Chinese edition the text is Chinese.
    """
    if name.startswith(lectures.HERE):
        table = editions.HOME / f"{name.removeprefix(lectures.HERE)}.zh.po"
        if editions.english(table).suffix == ".md":
            text = "\n\n".join(editions.texts(table, marks=True).values()) + "\n"
        else:
            text = of_cells(editions.executed(table).cells[:-1])
    elif path.suffix == ".ipynb":
        text = of_cells(execution.executed(path, root).cells)
    else:
        text = path.read_text()
    return made_by_the_build(text, name.rpartition("/")[2])


def without_solution(text: str) -> str:
    """Remove the folded solutions in words from a Markdown text."""
    return re.sub(r"<details><summary>Solution in words.*?</details>", "", text, flags=re.S).strip()


def description(text: str) -> str:
    """Return a short text that says what a page is about.

    The text is the page's question or its first sentence of prose, with a limited number of
    characters.
    """
    question = re.search(r"^> \*\*(?:Question\.|问题。)\*\* (.+)$", text, re.M)
    if not question:
        prose = [line for line in text.splitlines() if re.match(r"[A-Z一-鿿][^|`]{30,}", line)]
        first = prose[0] if prose else TITLE
    else:
        first = question[1]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first)
    plain = " ".join(re.sub(r"[*`$\\]", "", plain).split())
    if len(plain) <= LONGEST:
        return plain
    return plain[: LONGEST - 1].rsplit(" ", 1)[0] + "…"


def tutor(chapter: int, path: Path) -> str:
    """Return the tutor's file of a chapter.

    The file has statements, hints and mistakes, and at the end the solutions.
    """
    cells = json.loads(path.read_text())["cells"]
    rows = tomllib.loads((ROOT / f"src/course/exercises/chapter{chapter}.toml").read_text())
    mistakes = {
        row["number"]: row.get("mistakes", "") + row.get("refused", "")
        for row in rows.values()
        if "number" in row
    }
    head = f"# Tutor's file: exercises of chapter {chapter}\n\n{RULES}"
    names = (
        f"Every answer may use these names:\n\n```python\n{answering.setup_cell(path).strip()}\n```"
    )
    parts, solved, number = [head, names], [], ""
    for cell in cells:
        text = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown" and (heading := re.match(r"## (\d\.\d+) ", text)):
            number = heading[1]
            parts.append(text)
        elif number and cell["cell_type"] == "markdown" and "<summary>Hint 1" in text:
            parts += [*folds(text, "Hint"), named(mistakes.get(number, ""))]
            solved += [f"## {number}\n", *folds(text, "Solution in words")]
        elif number and text.startswith("# @title Solution"):
            solved.append(f"```python\n{text}\n```")
        elif number and cell["cell_type"] == "code" and not text.startswith("checks."):
            parts.append(f"```python\n{text}\n```")
    last = [
        "# Solutions: not before the third hint was tried, and only if the learner wants them",
        *solved,
    ]
    return "\n\n".join(filter(None, [*parts, *last])) + "\n"


def folds(text: str, kind: str) -> list[str]:
    """Return the folded parts of one kind, each as a paragraph that begins with its name."""
    details = re.findall(r"<details><summary>(.*?)</summary>\s*(.*?)\s*</details>", text, re.S)
    return [f"**{name}.** {inside}" for name, inside in details if name.startswith(kind)]


def named(table: str) -> str:
    """Return the mistakes that a table of exercises names, as a list in Markdown."""
    rows = [row.partition(" :: ")[::2] for row in table.splitlines() if " :: " in row]
    if not rows:
        return ""
    return "Named mistakes:\n\n" + "\n".join(
        f"- `{expression.strip()}`: {words.strip()}"
        for expression, words in rows
        if "{" not in words
    )


def llms(app) -> str:
    """Return the text of `llms.txt`, a list of all pages in the order of the book."""
    lines = [f"# {TITLE}", "", f"> {SUMMARY}", "", "## Pages", ""]
    for name in ordered(app.env):
        title = app.env.titles[name].astext()
        lines.append(f"- [{title}]({name}.md): {description(source(Path(app.env.doc2path(name))))}")
    lines += ["", "## For a tutor", ""]
    lines += [
        (
            f"- [Exercises of chapter {number}](tutor/chapter{number}.md): "
            "statements, hints in order, named mistakes, solutions last"
        )
        for number in answering.notebooks()
    ]
    lines += [
        "",
        "## Data",
        "",
        (
            "- [claims.json](claims.json): each claim of the course with its rule, its numbers "
            "and its controls"
        ),
    ]
    return "\n".join(lines) + "\n"


@functools.cache
def released() -> str:
    """Return the date of the release in the form for citations."""
    path = ROOT / "CITATION.cff"
    date = (
        re.search(r'date-released: "(\d+)-(\d+)-(\d+)"', path.read_text())
        if path.exists()
        else None
    )
    return "/".join(date.groups()) if date else ""


def ordered(env) -> list[str]:
    """Return the English pages in the order of the book."""
    names, waiting = [], [env.config.root_doc]
    while waiting:
        name = waiting.pop(0)
        if name not in names and "/zh/" not in name:
            names.append(name)
            waiting = [*env.toctree_includes.get(name, []), *waiting]
    return names


def picture(url: str) -> str:
    """Return the tags of the picture that others show beside a link to a page.

    They need its whole address, so a copy that knows no repository has no such tags.

    >>> picture("https://github.com/somebody/course").split('"')[3]
    'https://somebody.github.io/course/_static/machine.webp'
    >>> picture("")
    ''
    """
    if not url:
        return ""
    address = html.escape(f"{repository.site(url)}_static/{PICTURE}")
    return (
        f'<meta property="og:image" content="{address}">'
        f'<meta property="og:image:alt" content="{ALT}">'
    )


def add_facts(app, pagename, templatename, context, doctree) -> None:
    """Add facts to the head of a page.

    The facts say what the page is about and how to cite it, and include a link to the page's
    Markdown.
    """
    if app.builder.format != "html" or pagename not in app.env.found_docs:
        return
    text = source(Path(app.env.doc2path(pagename)))
    about, title = html.escape(description(text)), html.escape(app.env.titles[pagename].astext())
    whole = html.escape(f"{app.env.titles[pagename].astext()} · {TITLE}")
    tags = {
        "description": about,
        "citation_title": whole,
        "citation_author": f"The authors of {TITLE}",
        "citation_publication_date": released(),
        "citation_language": "zh" if "/zh/" in pagename else "en",
    }
    head = "".join(f'<meta name="{name}" content="{value}">' for name, value in tags.items())
    head += (
        f'<meta property="og:title" content="{title}"><meta property="og:description" '
        f'content="{about}">'
    )
    head += '<meta property="og:type" content="article">' + picture(repository.repository())
    home = relative_uri(pagename, pagename)
    name = pagename.rpartition("/")[2]
    head += f'<link rel="alternate" type="text/markdown" href="{home}{name}.md">'
    if page := answering.EXERCISES.fullmatch(pagename):
        up = "../" * pagename.count("/")
        head += f'<link rel="help" type="text/markdown" href="{up}tutor/chapter{page[1]}.md">'
    context["metatags"] = f"{context.get('metatags', '')}{head}"


def finish(app, error) -> None:
    """Write the files of the site that are not pages, at the end of a build."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for name in app.env.found_docs:
        target = out / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(markdown(name, Path(app.env.doc2path(name)), Path(app.srcdir)))
    (out / "llms.txt").write_text(llms(app))
    shutil.rmtree(out / "tutor", ignore_errors=True)
    (out / "tutor").mkdir()
    for number, path in answering.notebooks().items():
        (out / f"tutor/chapter{number}.md").write_text(tutor(number, path))


def setup(app):
    app.connect("html-page-context", add_facts)
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
