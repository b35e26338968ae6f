"""Make a reveal.js deck of every lecture from the stored outputs of the book's build.

A build makes the decks at its end (`lectures`). To make only the decks, run python tools/slides.py
[PART OF A NAME].
"""

import hashlib
import json
import posixpath
import re
import shutil
import sys
from functools import cache, partial
from html import escape
from pathlib import Path

import nbformat
import segno
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbconvert import SlidesExporter
from pygments.formatters import HtmlFormatter
from sphinx.util.parallel import ParallelTasks

from book.callouts import KINDS
from book.chapters import question
from book.editions import CUE, LAGS, WEIGHTS, played, stem
from book.editions import executed as edition
from book.editions import frame as chinese_frame
from book.editions import place as zh
from book.execution import at_once, execute, executed, key
from book.lectures import lectures
from book.pages import ROOT
from book.plans import part, plan
from book.repository import repository, site
from course import (
    drawing,  # importing the scorecard takes seconds, so we wait until a deck has changed
)
from course.build import dependencies
from helpers.widget import SLIDES

LINK = re.compile(r'<use\b[^>]*>|href="(?:([^":#]+)\.(?:ipynb|md))?(#[^"]+)?"')
NARROW = re.compile(r'<svg[^>]* class="chart narrow".*?</svg>', re.S)  # the drawing for phones
PAYLOAD = re.compile(r'<script type="application/json">(.*?)</script>', re.S)
SHOWN = re.compile(r'<div class="explore-frame">(.*?)</div><p class="explore-finding"', re.S)
FRAME = {
    "course": "Connection Bottlenecks in Attention",
    "length": "The talk · {minutes} minutes",
    "place": "The talk",
    "chapter": "Chapter {number} of {chapters} · {name} · {minutes} minutes",
    "lesson": "lesson",
    "sinks": "sinks",
    "lab": "lab",
    "following": "Next: {link}. {question}",
    "end": "This was the last lecture. What held, and what did not, stands on the scorecard.",
    "widget": "Open this widget on the page",
    "next": 'In depth, with everything to move: <a href="../chapters/welcome.html">the '
    "chapters</a>.",
    "row": "The page of this claim",
    "when": "{minutes:g} min · from {start:g} to {end:g} of {total}",
    "speaker": {},  # the words of the speaker's window, in another language than English
    "figure": "Figure",
    "kinds": {},  # the first word of a box, in another language than English
}
# the word with which a part of a cue begins, and its class in the speaker's window; all other text
# says what to do
PARTS = {"Ask": "ask", "Say": "say", "Answer": "say", "Common mistake": "wrong"}
PARTS |= {"问": "ask", "说": "say", "答": "say", "易错": "wrong"}
LABEL = rf"""({"|".join(PARTS)})([^:：.?!"]{{0,20}}(?=: )|(?:（[^（）]+）)?(?=：))(?:: |：)"""
PART = re.compile(rf"{LABEL}(.+)", re.S)
NEXT = re.compile(rf"""\n|(?<=[.?!"]) (?={LABEL})|(?<=[。？！”）])(?={LABEL})""")
# a sentence of a caption that explains a mark of its figure, which nobody could read without it
MARKS = re.compile(
    r"✓|ρ[:：]|\b(?:dashed|dotted|solid|hollow|hatched|shaded|grey|blue|orange|dots?|bar|band|"
    r"(?:triangles|squares|circles|points?|lines?|markers)(?=:))\b|"
    r"[虚实点]线|空心|实心|斜线(?=：)|阴影|[灰蓝橙]色?|三角|方块|圆圈|[点线](?=：)|标记|带",
    re.I,
)
SENTENCE = re.compile(r"(?<=[.。])(?: (?=\S)|(?=[一-鿿]))")
KEY = 100  # the most letters of a key, which is on a slide in a line or two
OPENING = re.compile(r"<blockquote>(\s*<p><strong>(\w+))")


def callout(match: re.Match, kinds: dict[str, str]) -> str:
    """Give a blockquote the class of its first bold word, as `sphinx_ext/callouts.py` does.

    `kinds` has the words of other languages.
    """
    kind = kinds.get(match[2], match[2].lower())
    return f'<blockquote class="callout {kind}">{match[1]}' if kind in KINDS else match[0]


def kind(cell: nbformat.NotebookNode) -> str:
    return cell.metadata.get("slideshow", {}).get("slide_type", "-")


def title_slide(notebook: nbformat.NotebookNode, item: dict, chapters: int, frame: dict) -> None:
    """Add the first slide, with the course, the chapter and the length of the lecture.

    The slide also shows the machine at the chapter's stop.
    """
    first = next(cell for cell in notebook.cells if kind(cell) == "slide")
    stop = drawing.stop_of(item["path"].parent.name) or 1  # the first stop shows the whole machine
    picture = drawing.picture("machine", stop, language=item["language"][:2])
    if item["chapter"]:
        name = frame[item["path"].stem]
        what = frame["chapter"].format(
            number=item["chapter"][0], chapters=chapters, name=name, minutes=item["minutes"]
        )
    else:
        what = frame["length"].format(minutes=item["minutes"])
    named = (
        frame["course"].partition("（")[0].lower() in first.source.lower()
    )  # the title of the talk already says this
    course = "" if named else f'<p class="course">{frame["course"]}</p>\n\n'
    first.source = f'{course}{first.source}\n\n<p class="length">{what}</p>\n\n{picture}'


def acts(notebook: nbformat.NotebookNode, language: str) -> None:
    """Add a small picture of the machine to the heading of each act's first slide.

    The picture shows the act's stop. On the talk's last slide it shows the last stop.
    """
    slides = [cell for cell in notebook.cells if kind(cell) == "slide"]
    places = [
        (int(act[1]), cell) for cell in slides if (act := re.match(r"## (\d)\. ", cell.source))
    ]
    for stop, cell in [*places, (drawing.STOPS - 1, slides[-2])]:
        picture = re.sub(
            r"<style>.*?</style>",
            "",
            drawing.picture("machine", stop, language=language),
            flags=re.S,
        )
        cell.source += f"\n\n{picture.replace('figure', 'div').replace('emblem', 'act', 1)}"


def last_slide(
    notebook: nbformat.NotebookNode, item: dict, following: dict | None, frame: dict
) -> None:
    """Add to the last slide what comes next."""
    last = [cell for cell in notebook.cells if kind(cell) not in ("notes", "skip")][-1]
    if not item["chapter"]:
        text = frame["next"]
    elif following is None:
        text = frame["end"]
    else:
        link = f'<a href="{following["deck"]}">{following["title"]}</a>'
        asks = question(item["next"])
        text = frame["following"].format(link=link, question=asks)
    new = nbformat.v4.new_markdown_cell(
        f'<p class="next-lecture">{text}</p>',
        metadata={"slideshow": {"slide_type": "-"}},
        id="next-lecture",
    )
    notebook.cells.insert(notebook.cells.index(last) + 1, new)


def code(address: str, page: str) -> str:
    """Return a QR code for a page on the site of the repository at `address`."""
    return segno.make(site(address) + page).svg_inline(border=1, omitsize=True)


def claim_links(notebook: nbformat.NotebookNode, frame: dict, address: str) -> None:
    """Add QR codes to the slides with claims, if the site has an address.

    A code leads to the page that shows the first claim of the slide.
    """
    from course.scorecard import CLAIMS, slug

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html", "")
            if address and (named := re.search(r'data-claim="(\w+)"', shown)):
                page, _, heading = CLAIMS[named[1]].shown.partition("#")
                page = f"chapters/{page}.html#{slug(heading)}"
                output["data"]["text/html"] = (
                    f'{shown}<a class="code" href="../{page}" '
                    f'aria-label="{frame["row"]}">{code(address, page)}</a>'
                )


def typeset(text: str) -> str:
    """Convert Markdown to HTML in one piece, with formulas as MathML.

    The speaker view has no script that could typeset formulas.
    """

    def formula(tex: str, options: dict) -> str:
        return convert(tex, display="block" if options["display_mode"] else "inline")

    parser = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .use(dollarmath_plugin, renderer=formula)
    )
    return re.sub(r"\n\s*\n", "\n", parser.render(text))


def parts(cue: str) -> list[tuple[str, str, str]]:
    """Split a cue into its parts, each with its class, its label and its text.

    A cue that is one speech has no labels.

    >>> parts('Point at a row. Ask: "Who?"')
    [('do', 'Do', 'Point at a row.'), ('ask', 'Ask', '"Who?"')]
    >>> parts("Point at a row.\\nCommon mistake: they sum columns.")
    [('do', 'Do', 'Point at a row.'), ('wrong', 'Mistake', 'they sum columns.')]
    >>> parts("Good morning.")
    [('do', '', 'Good morning.')]
    >>> parts("指着一行。问（举手）：“谁？”")
    [('do', '做', '指着一行。'), ('ask', '问（举手）', '“谁？”')]
    >>> parts("指着一行。\\n易错：问题是：把列加了起来。")
    [('do', '做', '指着一行。'), ('wrong', '易错', '问题是：把列加了起来。')]
    """
    matches = [(PART.match(part), part) for part in NEXT.sub("\n", cue.strip()).split("\n")]
    do = ("做" if re.search("[一-鿿]", cue) else "Do") if any(named for named, _ in matches) else ""
    return [
        (PARTS[m[1]], m[1].split()[-1].capitalize() + m[2], m[3]) if m else ("do", do, part)
        for m, part in matches
    ]


def speaker_notes(notebook: nbformat.NotebookNode, total: float, frame: dict) -> None:
    """Write the content of the speaker view for each slide.

    The content is the minutes, a block for each part of the cue, and in small type the paragraphs
    of the page.
    """
    start = 0.0
    for cell in notebook.cells:
        if kind(cell) != "notes" or cell.cell_type != "markdown":
            continue
        if not (cue := CUE.fullmatch(cell.source.strip())):
            cell.source = f'<div class="page">{typeset(cell.source)}</div>'
            continue
        minutes = float(cue[1])
        when = frame["when"].format(minutes=minutes, start=start, end=start + minutes, total=total)
        blocks = "".join(
            f'<div class="{name}"><b>{label}</b><div>{typeset(text)}</div></div>'
            for name, label, text in parts(cue[2])
        )
        cell.source = (
            f'<div class="cue" data-seconds="{60 * minutes:g}"><p '
            f'class="when">{when}</p>{blocks}</div>'
        )
        start += minutes


def marks(caption: str) -> str:
    """Return the sentences of a caption that explain a mark, as many as fit on a slide.

    >>> marks("64 symbols. Random vectors below 64 (dashed). Solved: least squares.")
    'Random vectors below 64 (dashed).'
    """
    found = ""
    for sentence in SENTENCE.split(caption):
        longer = f"{found}{'' if found.endswith('。') else ' '}{sentence}".strip()
        wide = len(longer) + len(re.findall("[一-鿿]", longer))  # Chinese signs are twice as wide
        if MARKS.search(sentence) and wide <= KEY:
            found = longer
    return found


def projected(notebook: nbformat.NotebookNode, frame: dict) -> None:
    """Add to each figure the drawing for slides.

    The page's drawing remains for slides with less room. The title and the caption of the figure
    move into the speaker's notes. What the caption says about marks is also on the slide (`marks`).
    """
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            slides = data.pop(SLIDES, None)
            if slides and "frames" in slides and kind(cell) != "skip":
                data["text/html"] = staged(data["text/html"], slides["frames"])
                continue
            if not (slides and slides["drawings"]) or kind(cell) == "skip":
                continue
            shown = NARROW.sub("", data["text/html"])
            rest = re.search(r"<figcaption>(.*?)</figcaption>|</figure>", shown, re.S)
            at = rest.start()
            named = marks(rest[1] or "")
            corner = " corner" if "✓" in named else ""  # a table has room at its left
            named = f'<p class="key{corner}">{named}</p>' if named else ""
            data["text/html"] = f"{shown[:at]}{slides['drawings']}{named}{shown[at:]}"
            said = [part.rstrip(".。") for part in (slides["title"], rest[1]) if part]
            if said:
                stop = "。" if re.search("[一-鿿]", said[0]) else ". "
                cells.append(
                    nbformat.v4.new_markdown_cell(
                        f"**{frame['figure']}** {stop.join(said)}{stop.strip()}",
                        metadata={"slideshow": {"slide_type": "notes"}},
                        id=f"{cell.id[:57]}-figure",
                    )
                )
    notebook.cells = cells


def staged(widget: str, drawings: list[str]) -> str:
    """Add to each state of a widget its drawing for slides.

    `widget` is the HTML of `helpers.widget._still`, and `drawings` has a drawing for each state, or
    an empty string. The drawing for phones is left out. A widget with many states has one drawing
    of each for slides, and shows only this one.
    """
    shown, payload = SHOWN.search(widget), PAYLOAD.search(widget)
    data = json.loads(payload[1].replace("<\\/", "</"))
    first = [body for body, _ in data["frames"]].index(shown[1])
    for state, on_slide in zip(data["frames"], drawings, strict=True):
        alone = len(re.findall("<(?:svg|img) ", on_slide)) == 1
        state[0] = on_slide if alone else NARROW.sub("", state[0]) + on_slide
    script = json.dumps(data).replace("</", "<\\/")
    return (
        f"{widget[: shown.start(1)]}{data['frames'][first][0]}"
        f"{widget[shown.end(1) : payload.start(1)]}{script}{widget[payload.end(1) :]}"
    )


def timed(page: str) -> str:
    """Write the seconds of each slide into the deck, from the slide's cue.

    The speaker view shows whether the speaker is on time.
    """
    slides = re.split(r"(?=<section\b)", page)
    seconds = [
        sum(map(float, re.findall(r'class="cue" data-seconds="([^"]+)"', slide)))
        for slide in slides
    ]
    return "".join(
        slide.replace("<section", f'<section data-timing="{s:g}"', 1) if s else slide
        for slide, s in zip(slides, seconds, strict=True)
    )


def page_links(page: str, source: Path, chinese: bool = False) -> str:
    """Make the links of a deck lead to the built pages.

    Links of a Chinese deck lead to Chinese editions if there are any.
    """

    def there(match: re.Match) -> str:
        if match[0].startswith("<use"):  # this is a mark within a drawing
            return match[0]
        name = posixpath.normpath(
            f"{source.parent.relative_to(ROOT).as_posix()}/{match[1] or source.stem}"
        )
        if (
            chinese
            and name.startswith("chapters/")
            and (edition_page := zh(ROOT / f"{name}.md")).exists()
        ):
            name = edition_page.relative_to(ROOT).with_suffix("").as_posix()
        return f'href="../{name}.html{match[2] or ""}"' if match[0] != 'href=""' else ""

    return LINK.sub(
        there, page.replace('href="scorecard.html#', 'href="../chapters/scorecard.html#')
    )


def live_links(
    notebook: nbformat.NotebookNode, item: dict, address: str, frame: dict = FRAME
) -> None:
    """Add to the printed deck a link to each widget on its page.

    If the site has an address, the link also gets a QR code.
    """
    from course.scorecard import slug

    heading, page = "", zh(item["path"]) if item.get("words") else item["path"]
    page = page.relative_to(ROOT).with_suffix(".html").as_posix()
    sources = {
        cell.id: cell.source for cell in nbformat.read(item["path"], as_version=4).cells
    }  # anchors are in English
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = [heading, *re.findall(r"^##? (.+)$", sources.get(cell.id, ""), re.M)][-1]
            continue
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html", "")
            if 'class="explore"' in shown and kind(cell) != "skip":
                target = f"{page}#{slug(heading)}"
                scanned = code(address, target) if address else ""
                link = f'<p class="live"><a href="../{target}">{frame["widget"]}</a>{scanned}</p>'
                output["data"]["text/html"] = shown.replace("</figure>", f"{link}</figure>")


def sitting(name: str, address: str) -> nbformat.NotebookNode:
    """Return a notebook with the slides that a plan of `chapters/plans` names, in order.

    A row of the plan without slides becomes a slide with the text that the row shows.
    """
    new, planned, cells = nbformat.v4.new_markdown_cell, plan(ROOT, name), []
    can, single = {}, nbformat.v4.new_notebook()
    for k, row in enumerate(planned["rows"]):
        for place in row.get("slides", []):
            path, first = part(ROOT, place.partition("#")[0]), place.partition("#")[2]
            book = executed(path, ROOT)
            start = next(k for k, cell in enumerate(book.cells) if cell.id == first)
            following = [cell for cell in book.cells[start + 1 :] if kind(cell) != "skip"]
            end = next(
                (k for k, cell in enumerate(following) if kind(cell) in ("slide", "subslide")),
                len(following),
            )
            single.cells = [book.cells[start], *following[:end]]
            single.cells[0].metadata["slideshow"] = {"slide_type": "slide"}
            live_links(single, {"path": path}, address)
            for cell in single.cells:
                cell.id = f"{path.parent.name[0]}-{path.stem}-{cell.id}"[:64]
                # a link of the notebook is relative to the notebook's folder, so we adapt it to the
                # plan's folder
                if cell.cell_type == "markdown":
                    local = rf"](../{path.parent.name}/\g<1>\g<2>)"
                    cell.source = re.sub(r"\]\(#", f"]({path.name}#", cell.source)
                    cell.source = re.sub(
                        r"\]\(([\w./-]+\.(?:ipynb|md))(#[^)]*)?\)", local, cell.source
                    )
            cells += single.cells
            can[place[0]] = row["they"]
        if not row["links"]:
            last = k == len(planned["rows"]) - 1
            minutes = row["minutes"] + last * (
                planned["minutes"] - sum(planned_row["minutes"] for planned_row in planned["rows"])
            )
            scenes = row.get("film", [])
            film_minutes = row["film_minutes"] if scenes else 0
            minutes -= film_minutes
            shown = row["show"] + last * "".join(
                f"\n{number}. You can {they}." for number, they in can.items()
            )
            cue = (
                f"<!-- cue: {minutes:g} "
                f"min\n{row['do']}{last * ' What is left is for questions.'}\n-->"
            )
            cells += [new(shown, metadata={"slideshow": {"slide_type": "slide"}}, id=f"row-{k}")]
            cells += [new(cue, metadata={"slideshow": {"slide_type": "notes"}}, id=f"cue-{k}")]
            cells += filmed(scenes, film_minutes) if scenes else []
    return nbformat.v4.new_notebook(cells=cells)


def filmed(scenes: list[float], minutes: float) -> list[nbformat.NotebookNode]:
    """Return slides with the machine, which the clicker moves from scene to scene.

    `drawing/machine.js` moves it.
    """
    first, *others = map(drawing.scene_of, scenes)
    steps = "".join(
        f'<span class="fragment" data-scene="{escape(json.dumps(scene))}"></span>'
        for scene in others
    )
    shown = drawing.show("machine", state=first).body + steps
    output = nbformat.v4.new_output("display_data", {"text/html": shown})
    slide = {"slideshow": {"slide_type": "slide"}}
    heading = nbformat.v4.new_markdown_cell("## One small decoder", metadata=slide, id="film")
    cell = nbformat.v4.new_code_cell(outputs=[output], id="film-drawing")
    said = "Each press moves the machine on by a state. Read aloud the sentences that you need."
    notes = {"slideshow": {"slide_type": "notes"}}
    cue = f"<!-- cue: {minutes:g} min\n{said}\n-->"
    return [heading, cell, nbformat.v4.new_markdown_cell(cue, metadata=notes, id="film-cue")]


def chinese() -> dict:
    """Return the Chinese translation of the texts around a deck (`FRAME`)."""
    words = chinese_frame("deck")
    kinds = {chinese_word: kind for kind, chinese_word in chinese_frame("kind").items()}
    plain = {name: words[text] for name, text in FRAME.items() if isinstance(text, str)}
    return plain | {"speaker": chinese_frame("speaker"), "kinds": kinds}


def made_of(item: dict, sources: list[Path], *more: object) -> str:
    """Compute a hash of everything from which a deck is made.

    A deck is made from its notebooks with their outputs, the words of its edition, and the files
    around them.

    Args:
        sources: the notebooks whose cells the deck shows.
        more: settings and words that are not in a file.
    """
    files = [*sources, item["path"], item["words"], *item["asks"]]
    read = [path.read_bytes() for path in files if path]
    texts = [
        around(),
        *map(partial(key, root=ROOT), sources),
        json.dumps([item, *more], sort_keys=True, default=str),
    ]
    return hashlib.sha256(b"\0".join([*read, *(text.encode() for text in texts)])).hexdigest()


@cache
def around() -> str:
    """Compute a hash of the files around each deck, which are read only once."""
    folders = ("slides", "src/book", "sphinx_ext", "chapters/plans", "src/course/scorecard")
    files = [
        ROOT / "chapters/zh/frame.po",
        *(path for name in folders for path in (ROOT / name).rglob("*")),
    ]
    read = [
        path.read_bytes()
        for path in sorted(files)
        if "__pycache__" not in path.parts and path.is_file()
    ]
    drawn = dependencies.key("from course import drawing", dependencies.pins(ROOT))
    return hashlib.sha256(b"\0".join([*read, drawn.encode()])).hexdigest()


def main(only: str = "") -> None:
    out = ROOT / "_build/html/slides"
    out.mkdir(parents=True, exist_ok=True)
    style = (ROOT / "slides/lecture/lecture.css").read_text() + HtmlFormatter().get_style_defs(
        ".highlight"
    )
    script = (ROOT / "slides/lecture/lecture.js").read_text()
    speaker = (ROOT / "slides/lecture/speaker.css").read_text()
    exporter = SlidesExporter(
        template_name="lecture",
        extra_template_basedirs=[str(ROOT / "slides")],
        exclude_anchor_links=True,
    )
    items, address, hour = lectures(ROOT), repository(), ROOT / "chapters/plans/hour.yml"
    items.append(
        {
            "title": "One hour",
            "minutes": plan(ROOT, "hour")["minutes"],
            "path": hour,
            "chapter": "",
            "deck": "hour.html",
            "language": "en",
            "words": None,
        }
    )
    chapters = sorted(p.name for p in (ROOT / "chapters").glob("[1-9]-*"))
    for old in {path.name for path in out.glob("*.html")} - {item["deck"] for item in items}:
        (out / old).unlink()
    following = {}
    for language in {item["language"] for item in items}:
        chapter = [item for item in items if item["chapter"] and item["language"] == language]
        following |= {a["deck"]: b for a, b in zip(chapter, [*chapter[1:], None], strict=True)}
    chosen = [item for item in items if only in item["deck"]]
    parts_of = [
        part(ROOT, place.partition("#")[0])
        for row in plan(ROOT, "hour")["rows"]
        for place in row.get("slides", [])
    ]
    paths = [
        path for item in chosen for path in (parts_of if item["path"] == hour else [item["path"]])
    ]
    execute(list(dict.fromkeys(paths)), ROOT)
    keys = ROOT / "_build/decks.json"
    known = json.loads(keys.read_text()) if keys.exists() else {}
    every = (
        [item["title"] for item in items],
        [page.name for page in (ROOT / "chapters/zh").rglob("*")],
    )

    def make(item: dict) -> str:
        frame = chinese() if item["words"] else FRAME
        sources = parts_of if item["path"] == hour else [item["path"]]
        after = following.get(item["deck"])
        item["next"] = after and (zh(after["path"]) if after["words"] else after["path"])
        item["asks"] = [after["path"], after["words"]] if after else []
        digest = made_of(item, sources, frame, after, every, address, style, script, speaker)
        if (out / item["deck"]).exists() and known.get(item["deck"]) == digest:
            print(f"slides/{item['deck']} is as it was made")
            return digest
        if item["path"] == hour:
            frame = frame | {"length": "One hour · {minutes} minutes", "place": "One hour"}
            notebook = sitting("hour", address)
        else:
            notebook = edition(item["words"]) if item["words"] else executed(item["path"], ROOT)
        for cell in notebook.cells:
            # a page says this, but a slide has no room for it
            cell.source = re.sub(LAGS, "", cell.source)
            if cell.cell_type == "code":
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        title_slide(notebook, item, len(chapters), frame)
        if not item["chapter"]:
            acts(notebook, item["language"][:2])
        projected(notebook, frame)
        speaker_notes(notebook, item["minutes"], frame)
        if item["path"] != hour:  # the widgets of the hour's deck already have links
            live_links(notebook, item, address, frame)
        claim_links(notebook, frame, address)
        last_slide(notebook, item, after, frame)
        if item["chapter"]:
            dots = (
                f"<b>● {k + 1}</b> " if name == item["chapter"] else "○ "
                for k, name in enumerate(chapters)
            )
            place = "".join(dots) + f" {item['title']}"
        else:
            place = f"<b>{frame['place']}</b>"
        settings = {"style": style, "script": script, "title": item["title"], "place": place}
        settings["speaker"] = json.dumps({"words": frame["speaker"], "style": speaker})
        faces = fonts(stem(item["words"]), out) if item["words"] else ""
        page, _ = exporter.from_notebook_node(notebook, settings | {"language": item["language"]})
        if faces:
            page = played(page.replace("</style>", f"{faces}</style>", 1))
        (out / item["deck"]).write_text(
            OPENING.sub(
                partial(callout, kinds=frame["kinds"]),
                timed(page_links(page, item["path"], bool(item["words"]))),
            )
        )
        print(
            f"slides/{item['deck']}: "
            f"{sum(kind(c) in ('slide', 'subslide') for c in notebook.cells)} slides, "
            f"{len(page) / 1e6:.2f} MB"
        )
        return digest

    side = at_once()
    tasks = ParallelTasks(side)
    for k in range(side):
        share = chosen[k::side]
        tasks.add_task(
            lambda share: {item["deck"]: make(item) for item in share},
            share,
            lambda _, hashes: known.update(hashes),
        )
    tasks.join()
    keys.write_text(json.dumps(known))


def fonts(stem: str, out: Path) -> str:
    """Copy an edition's fonts to its deck, and return the style sheet that names them."""
    faces = []
    for weight in WEIGHTS:
        name = f"{stem}-{weight}.woff"
        shutil.copy(ROOT / "_build/editions" / name, out / name)
        faces.append(
            f'@font-face {{ font-family: "Edition"; font-weight: {weight}; font-display: block; '
            f'src: url("{name}") format("woff"); }}'
        )
    shutil.copy(ROOT / "frontend/dist/fonts/LICENSE-noto-sans-sc", out)
    faces.append(
        '.reveal, .reveal .place { font-family: "Edition", "Source Sans 3", "Letters", "Signs", '
        "sans-serif !important; }"
    )
    return "\n".join(faces)


if __name__ == "__main__":
    main(*sys.argv[1:2])
