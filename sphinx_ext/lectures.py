"""Provide the directive `{lectures}`, and connect the pages of two languages.

The directive lists the decks. A notebook is a lecture if its metadata has `"lecture": {"minutes":
…}`. If the metadata also has `"spoken": true`, the page shows the words of the cues below each
picture. A page of `chapters/zh` is written from the PO file of its English page (`book.editions`),
which also has the translations for directives. The head of each page has a link to the other
language.
"""

import json
import re
import shutil
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx import addnodes
from sphinx.util import logging

from book import assignments, editions, execution
from book.lectures import lectures
from book.plans import plan
from helpers import words

HERE = "chapters/zh/"  # the folder of the Chinese pages
CHINESE = "unicode-range:U+2E80-9FFF,U+F900-FFEF"


class Lectures(Directive):
    """List the decks on a page.

    The talk of an hour comes first, and the Chinese decks are in a separate table.
    """

    def run(self):
        self.state.document.settings.env.note_reread()
        root = Path(self.state.document.settings.env.srcdir)
        found = {"en": [hour(root)]}
        for item in lectures(root):
            name = f"{item['chapter'][:1] or 'The'} {item['path'].stem}"
            found.setdefault(item["language"], []).append(item | {"name": name})
        return [nodes.raw("", "".join(map(table, found.values())), format="html")]


def hour(root: Path) -> dict:
    """Return the table row of the deck that follows the plan for an hour."""
    made = plan(root, "hour")
    slides = sum(len(row["links"]) or 1 + ("film" in row) for row in made["rows"])
    item = {"name": "The hour", "title": "Six drawings, six questions", "deck": "hour.html"}
    return item | {"language": "en", "slides": slides, "minutes": made["minutes"]}


def table(items: list[dict]) -> str:
    """Write the decks of one language as an HTML table."""
    rows = "".join(
        f'<tr><td>{item["name"]}</td><td><a href="../slides/{item["deck"]}" '
        f'lang="{item["language"]}">{item["title"]}</a></td><td>{item["slides"]}</td>'
        f"<td>{item['minutes']} min</td><td><a "
        f'href="../slides/{item["deck"]}?print-pdf">print</a></td></tr>'
        for item in items
    )
    head = "<tr><th>Chapter</th><th>Lecture</th><th>Slides</th><th>Length</th><th>PDF</th></tr>"
    return f'<table class="table"><thead>{head}</thead><tbody>{rows}</tbody></table>'


class Editions(Directive):
    """List the pages that exist in Chinese on a page, and how current each of them is."""

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        head = (
            "<tr><th>Page</th><th>Paragraphs and captions translated</th><th>Follow an earlier "
            "version</th></tr>"
        )
        rows = "".join(
            (
                f'<tr><td><a href="zh/{name}.html" lang="zh-CN">{title}</a></td><td>{done} of '
                f"{every}</td><td>{moved}</td></tr>"
            )
            for name, title, done, every, moved in editions.listed()
        )
        table = f'<table class="table"><thead>{head}</thead><tbody>{rows}</tbody></table>'
        return [nodes.raw("", table, format="html")]


def laid(app, stem: str) -> None:
    """Copy the fonts of an edition to the site."""
    folder = Path(app.outdir) / "fonts"
    folder.mkdir(parents=True, exist_ok=True)
    for weight in editions.WEIGHTS:
        shutil.copy(editions.folder() / f"{stem}-{weight}.woff", folder)


COPY_BUTTON = (
    "复制到剪贴板成功失败！"  # the words of the theme's copy button, which are in its script
)


def everywhere(app):
    """Collect the characters that any page may show.

    The characters are those in the names of Chinese pages and in links to them, because a search
    result can show any of these, and in the tasks of the trainer.
    """
    home = Path(app.srcdir) / "chapters"
    if app.builder.format == "html" and (home / "zh").exists():
        used = (
            "中文首页（）"
            + COPY_BUTTON
            + (Path(app.srcdir) / "frontend/live/race.js").read_text()
            + "".join(path.read_text() for path in (home / "welcome.md", *home.rglob("zh/**/*.md")))
        )
        tables = (
            "".join(path.read_text() for path in sorted(home.rglob("*.zh.po"))) + editions.drawn()
        )
        quoted = "".join(
            (Path(app.srcdir) / name).read_text() for name in ("data/sources.csv", "references.bib")
        )
        for stem, text in (
            ("everywhere", used),
            ("search", tables),
            ("quoted", quoted + editions.drawn()),
        ):
            editions.cut(text, stem, editions.folder())
            laid(app, stem)


def in_two_languages(app, name, source):
    """Write the text of a page of `chapters/zh` from its translation.

    A page of a spoken lecture also gets its spoken words.
    """
    words.use(None)
    if name.startswith(HERE):
        table = editions.HOME / f"{name.removeprefix(HERE)}.zh.po"
        source[0] = editions.page(table)
        words.use(editions.words(table))
        laid(app, editions.stem(table))
    elif Path(app.env.doc2path(name)).suffix == ".ipynb":
        notebook = json.loads(source[0])
        if notebook["metadata"].get("lecture", {}).get("spoken"):
            for cell in notebook["cells"]:
                if "cue" in cell["metadata"].get("tags", []):
                    cell["metadata"]["tags"] = []
                    cell["source"] = editions.spoken("".join(cell["source"]))
            source[0] = json.dumps(notebook)


def editions_of(app, names):
    """Return the notebooks of the editions that Sphinx is reading.

    The notebooks are executed together with the other notebooks, several at once.
    """
    tables = [
        editions.HOME / f"{name.removeprefix(HERE)}.zh.po"
        for name in names
        if name.startswith(HERE)
    ]
    return [
        editions.written(table) for table in tables if editions.english(table).suffix == ".ipynb"
    ]


def with_editions(app, config):
    """Add a place for the link to a page's edition to the head of each page."""
    config.html_theme_options["article_header_end"] = [
        "edition.html",
        "article-header-buttons.html",
    ]


def anchored(app, doctree):
    """Give the headings of a Chinese page the ids of the English headings, too.

    A link to `#rope` then leads to this section in the edition, from other pages and from the page
    itself.
    """
    name = app.env.docname
    if not name.startswith(HERE):
        return
    page = editions.english(editions.HOME / f"{name.removeprefix(HERE)}.zh.po")
    parts = editions.cells(page, slides=False).values()
    english = [heading for text in parts for heading in re.findall("^#+ (.+)$", text, re.M)]
    sections = list(doctree.findall(nodes.section))
    if len(english) == len(sections):
        slugs = app.env.metadata[name].setdefault("myst_slugs", {})
        for heading, section in zip(english, sections, strict=True):
            anchor = nodes.make_id(heading)
            if anchor not in doctree.ids:
                section["ids"].append(anchor)
                doctree.ids[anchor] = section
            slugs.setdefault(default_slugify(heading), (None, anchor, heading))
        for link in doctree.findall(addnodes.pending_xref):
            # the link leads to a heading on this page
            if link["reftype"] == "myst" and link["reftarget"] in slugs:
                link["reftargetid"] = slugs[link["reftarget"]][1]
                link["refdomain"], link["reftarget"] = "doc", name


def all_said(app, doctree):
    """Log the sentences that a Chinese page shows in English because they have no translation.

    Such a sentence is not an error, because an edition may be behind its English page.
    """
    for text in words._missing:
        logging.getLogger(__name__).info("%s has no words for %r", app.env.docname, text)
    words.use(None)


def language(app, name, template, context, doctree):
    """Mark a Chinese page with its language, and link each page to its edition.

    The link is in the head of the page. A page without an edition links to the other front page.
    """
    is_chinese = name.startswith(HERE)
    counterpart = (
        name.replace(HERE, "chapters/") if is_chinese else name.replace("chapters/", HERE, 1)
    )
    of_this = name != counterpart and counterpart in app.env.found_docs
    if not of_this:
        counterpart = "chapters/welcome" if is_chinese else "chapters/zh/welcome"
    quotes = re.search("[⺀-￯]", context.get("body") or "")
    if is_chinese or name == "search" or quotes:
        page = f"{name.removeprefix(HERE).replace('/', '-')}.zh"
        stem = page if is_chinese else "quoted"
        if name.endswith("search"):
            stem = "search"
        font = "../" * name.count("/") + f"fonts/{stem}"
        faces = "".join(
            f'@font-face{{font-family:"Edition";font-weight:{weight};'
            f'src:url("{font}-{weight[-3:]}.woff");{CHINESE}}}'
            for weight in ("100 400", "500 700")
        )
        own_font = (
            "body,input,.tooltip,main :is(figcaption,.talk-claim,.talk-foot)"
            "{font-family:var(--pst-font-family-base-system)!important}"
            "article pre{white-space:pre-wrap;text-indent:4ch hanging each-line}"
        )
        context["metatags"] = f"{context.get('metatags', '')}<style>{faces}{own_font}</style>"
    if is_chinese:
        context["language"] = "zh-CN"
    for side in ("prev", "next"):  # the neighbours of a page are in its language
        link = context.get(side)
        if link and is_chinese != (
            (Path("/") / name).parent / link["link"]
        ).resolve().as_posix().startswith(f"/{HERE}"):
            context[side] = None
    if counterpart in app.env.found_docs:
        label = ("en", "English") if is_chinese else ("zh-CN", "中文" if of_this else "中文首页")
        context["edition"] = (app.builder.get_relative_uri(name, counterpart), *label)


def download(app, name, template, context, doctree):
    """Make the download button of a Chinese page offer its notebook or its text.

    The notebook runs as the English one does.
    """
    if not name.startswith(HERE) or name not in app.env.found_docs:
        return
    table = editions.HOME / f"{name.removeprefix(HERE)}.zh.po"
    kind = editions.english(table).suffix
    file = Path(app.outdir) / "_sources" / f"{editions.stem(table)}{kind}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        nbformat.writes(editions.notebook(table)) if kind == ".ipynb" else editions.page(table)
    )
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button["label"] == "download-source-button":
                button |= {"url": f"{context['pathto']('_sources', 1)}/{file.name}", "text": kind}


def handout(app, name, template, context, doctree):
    """Make the download button of a page of steps offer the empty copy first.

    The notebook with solutions comes second.
    """
    english = name.replace(HERE, "chapters/", 1)
    handed_out = {f"chapters/{page}": file for file, page in assignments.WORKSHOP.items()}.get(
        english
    )
    if handed_out is None:
        return
    url = f"{context['pathto']('teaching', 1)}/{handed_out}"
    if name.startswith(HERE):
        table = editions.HOME / f"{name.removeprefix(HERE)}.zh.po"
        text = assignments.stripped(
            nbformat.writes(editions.notebook(table)), english.removeprefix("chapters/")
        )
        file = Path(app.outdir) / "_sources" / f"{editions.stem(table)}-handout.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        url = f"{context['pathto']('_sources', 1)}/{file.name}"
    for group in context.get("header_buttons", []):
        for k, button in enumerate(group.get("buttons", [])):
            if button["label"] == "download-source-button":
                solved = {"text": "solved", "tooltip": "Download the notebook with its solutions"}
                empty = {"url": url, "text": "to write in", "label": "download-handout-button"}
                empty |= {"tooltip": "Download the copy to write in, without its solutions"}
                group["buttons"][k : k + 1] = [button | empty, button | solved]
                return


def outdated(app, env, added, changed, removed):
    """Return the pages of `chapters/zh` that must be read again.

    Their English, their PO file, their outputs or the frame have changed, and Sphinx watches none
    of these.
    """
    before, env.edition_keys = getattr(env, "edition_keys", {}), {}
    chinese = sorted(name for name in env.found_docs if name.startswith(HERE))
    tables = [editions.HOME / f"{name.removeprefix(HERE)}.zh.po" for name in chinese]
    texts = {table: table.read_text() + editions.english(table).read_text() for table in tables}
    frame = (
        "".join([*chinese, (editions.HOME / "zh/frame.po").read_text(), editions.drawn()])
        if chinese
        else ""
    )
    for name, table in zip(chinese, tables, strict=True):
        page = editions.english(table)
        code = execution.key(page, editions.ROOT) if page.suffix == ".ipynb" else ""
        env.edition_keys[name] = editions.digest(texts[table] + code + frame)
    return [name for name, key in env.edition_keys.items() if before.get(name) != key]


def decks(app, exception):
    """Make the decks in copies of this process at the end of a build.

    This process has already imported and read most of what the decks need.
    """
    if exception is None and app.builder.format == "html" and lectures(Path(app.srcdir)):
        from book import slides  # this import includes the scorecard, which takes seconds

        words.use(None)
        slides.main()


def setup(app):
    app.add_directive("lectures", Lectures)
    app.add_directive("editions", Editions)
    app.connect("env-get-outdated", outdated)
    app.connect("executing", editions_of)
    app.connect(
        "source-read", in_two_languages, priority=600
    )  # after the outputs were added to the notebook
    app.connect("config-inited", with_editions)
    app.connect("builder-inited", everywhere)
    app.connect("doctree-read", anchored)
    app.connect("doctree-read", all_said)
    app.connect("html-page-context", language)
    app.connect("html-page-context", download, priority=900)  # after the theme has made its buttons
    app.connect("html-page-context", handout, priority=910)
    app.connect("build-finished", decks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
