"""Print each edition of the book as a PDF, `_build/html/book.pdf` and `book.zh.pdf`.

Chromium prints every page of the book, with widgets as they start. The contents come first, with
page numbers. Hints, solutions and the answers of guesses come at the end. The front page shows the
machine as one sheet of stills. Reference pages (`SITE_ALONE`) are only on the site.

`python tools/pdf.py lesson` prints the pages with this in their name into `book-part.pdf`.
"""

import html
import io
import sys
from pathlib import Path
from typing import NamedTuple

import yaml
from playwright.sync_api import Browser, Page, sync_playwright
from pypdf import PdfReader, PdfWriter

from book import browser

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "_build/html"
ZH = "chapters/zh/"
# pages for looking things up, or of use only on a screen
SITE_ALONE = {
    *("about", "config", "data", "evenings", "exam", "functions", "lectures", "make-a-chapter"),
    *("making", "reports", "scorecard", "since", "sources", "syllabus", "talk", "teaching"),
    *("teaching-chapters", "teaching-projects", "try", "voice"),
}
WORDS = {
    "en": ("Connection Bottlenecks in Attention", "Contents", "Hints, answers and solutions"),
    "zh": ("注意力中的连接瓶颈", "目录", "提示、答案与解答"),
}
# the typefaces of the contents: the site's, and for Chinese that of the search
FACES = (
    ("Book", "200 900", "_static/fonts/source-sans-3-latin-wght-normal.woff2"),
    ("Chinese", "100 500", "fonts/search-400.woff"),
    ("Chinese", "501 900", "fonts/search-700.woff"),
)
MARGIN = dict.fromkeys(("top", "bottom", "left", "right"), "16mm")
SCALE = 0.8
# parts that readers should first find themselves go to the end of the book, below the heading of
# their task
APART = """() => {
  const SOLVED = /^(Hint|Solution|Show the|Answer|提示|文字解答|显示|解答|答案)/;
  const main = document.querySelector("article"), end = document.createElement("div");
  const words = fold => fold.querySelector("summary")?.textContent.trim() ?? "";
  const outer = fold => !fold.parentElement.closest("details, .page-code");
  const kinds = ".hint, .option, .guess *, .admonition.hide";
  const later = [...main.querySelectorAll("details")].filter(
    fold => outer(fold) && (fold.matches(kinds) || SOLVED.test(words(fold))));
  let before = null;
  for (const fold of later) {
    const heading = fold.closest("section")?.querySelector("h2, h3, h4");
    if (heading && heading !== before) end.append(heading.cloneNode(true));
    before = heading ?? before;
    const copy = fold.cloneNode(true);
    copy.open = true;
    copy.hidden = false;  // a later hint waits for the one before it
    if (fold.matches(".admonition.hide")) {  // its code needs no button here
      copy.querySelector("summary").remove();
      end.append(...copy.childNodes);
    } else {
      const guess = fold.closest(".guess")?.cloneNode(false);  // it styles what is in it
      guess?.append(copy);
      end.append(guess ?? copy);
    }
    // a choice, and a question, stay where they are
    const choice = fold.matches(".option");
    if (choice || /[?？]$/.test(words(fold))) {
      const asked = document.createElement("p");
      asked.append(...(choice ? ["○ "] : []), ...fold.querySelector("summary").childNodes);
      fold.replaceWith(asked);
    } else fold.remove();
  }
  window.apart = end;
  // the machine: all stops on one sheet
  const sheet = document.createElement("div");
  sheet.className = "all-stills";
  for (const still of main.querySelectorAll(".machine-still")) {
    const place = document.createElement("div");
    place.append(still.closest("section").querySelector("h2").cloneNode(true), ...still.childNodes);
    sheet.append(place);
    still.remove();
  }
  main.querySelector(".machine-page")?.before(sheet);
  const look = document.createElement("style");
  look.textContent = `@page { @bottom-center { content: none; } }
    .drawing-controls, .yours-share { display: none !important; }
    .all-stills { display: grid; grid-template-columns: repeat(3, 1fr); gap: 10px 18px; }
    .all-stills > div { break-inside: avoid; }
    .all-stills h2 { font-size: 1rem; margin: 0; }
    .all-stills .drawing-says { font-size: .72rem; }`;
  document.head.append(look);
  return later.length;
}"""
ALONE = """() => {
  const main = document.querySelector("article"), title = main.querySelector("h1").cloneNode(true);
  main.replaceChildren(title, window.apart);
}"""


class Part(NamedTuple):
    """Hold a printed page with its title, its depth in the contents, and its sheets."""

    title: str
    depth: int
    sheets: PdfReader


def pages(language: str) -> list[tuple[str, int]]:
    """Return the pages of an edition in the book's order, each with its depth in the contents.

    A page is a path such as `chapters/welcome`.
    """
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    found = [(toc["root"], 0)]
    for chapter in (chapter for part in toc["parts"] for chapter in part["chapters"]):
        found += [(chapter["file"], 0)]
        found += [(section["file"], 1) for section in chapter.get("sections", [])]
    return [
        (name, depth)
        for name, depth in found
        if name.startswith(ZH) == (language == "zh") and Path(name).name not in SITE_ALONE
    ]


def sheets(page: Page) -> PdfReader:
    """Print a web page as A4 sheets."""
    return PdfReader(io.BytesIO(page.pdf(format="A4", margin=MARGIN, scale=SCALE)))


def printed(started: Browser, address: str, depth: int) -> tuple[Part, Part | None]:
    """Print a page without the parts that come at the end of the book.

    These parts are printed separately if there are any.
    """
    page = started.new_context(color_scheme="light").new_page()
    # a slow page means that the machine is busy, not that the page is broken
    page.set_default_timeout(120_000)
    page.goto(address, wait_until="load")
    page.evaluate("() => Promise.all([document.fonts.ready, window.MathJax?.startup?.promise])")
    title = page.locator("main h1").first.inner_text().strip("#\n ")
    count = page.evaluate(APART)
    body, end = Part(title, depth, sheets(page)), None
    if count:
        page.evaluate(ALONE)
        end = Part(title, 1, sheets(page))
    page.context.close()
    return body, end


def contents(
    started: Browser, site: str, title: str, heading: str, rows: list[tuple[str, int, int]]
) -> bytes:
    """Print the title page and the table of contents.

    There is a row for each (title, depth, page number). We use the site's own typeface, because a
    machine may have no font for Chinese.
    """
    listed = "".join(
        f'<p style="margin:.25em 0 .25em {1.5 * depth}em;display:flex;gap:1em'
        f'{";font-weight:600" * (not depth)}"><span style="flex:1">{html.escape(name)}</span>'
        f"<span>{number}</span></p>"
        for name, depth, number in rows
    )
    faces = "".join(
        f"@font-face{{font-family:{name};font-weight:{weight};src:url({site}/{file})}}"
        for name, weight, file in FACES
    )
    page = started.new_page()
    page.goto(f"{site}/llms.txt")  # a page may load fonts only from its own origin
    page.set_content(
        f'<style>{faces}</style><body style="font:16px/1.35 Book,Chinese,sans-serif">'
        f'<h1 style="font-size:2.4em;margin:4em 0 1em">{html.escape(title)}</h1>'
        f"<h2>{html.escape(heading)}</h2>{listed}</body>"
    )
    page.evaluate("() => document.fonts.ready")
    found = page.pdf(format="A4", margin=MARGIN)
    page.close()
    return found


def numbers(started: Browser, count: int) -> PdfReader:
    """Print empty sheets with their page number at the foot."""
    page = started.new_page()
    page.set_content(
        "<style>@page{size:A4;margin:0}body{margin:0;font:10pt sans-serif}"
        "div{height:297mm;position:relative;overflow:hidden}"
        "div+div{break-before:page}p{position:absolute;bottom:7mm;left:0;right:0;margin:0;"
        "text-align:center}</style>" + "".join(f"<div><p>{k + 1}</p></div>" for k in range(count))
    )
    found = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    page.close()
    return found


def bound(
    started: Browser, site: str, parts: list[Part], ends: list[Part], language: str
) -> PdfWriter:
    """Join the contents, the pages and the end parts into one document, and number the sheets."""
    title, heading, later = WORDS[language]
    whole = [*parts, *ends]
    front = 1
    while True:  # the length of the contents decides the page numbers in them
        start, rows = front, []
        for part in whole:
            if ends and part is ends[0]:
                rows.append((later, 0, start + 1))
            rows.append((part.title, part.depth, start + 1))
            start += len(part.sheets.pages)
        cover = PdfReader(io.BytesIO(contents(started, site, title, heading, rows)))
        if len(cover.pages) == front:
            break
        front = len(cover.pages)
    writer = PdfWriter()
    writer.append(cover, import_outline=False)
    for part in whole:
        writer.append(part.sheets, import_outline=False)
    above = None
    for name, depth, number in rows:
        parent = above if depth else None
        mark = writer.add_outline_item(title=name, page_number=number - 1, parent=parent)
        above = above if depth else mark
    for sheet, number in zip(writer.pages, numbers(started, len(writer.pages)).pages, strict=True):
        sheet.merge_page(number)
    writer.add_metadata({"/Title": title})
    return writer


def make(started: Browser, site: str, language: str, only: str) -> None:
    """Print one edition, and add a link to it on its front page."""
    chosen = [(name, depth) for name, depth in pages(language) if only in name]
    if not chosen:
        return
    both = [printed(started, f"{site}/{name}.html", depth) for name, depth in chosen]
    ends = [end for _, end in both if end]
    writer = bound(started, site, [body for body, _ in both], ends, language)
    writer.compress_identical_objects()
    stem = f"book{'-part' * bool(only)}{'.zh' * (language == 'zh')}"
    target = BUILT / f"{stem}.pdf"
    part = target.with_suffix(".part")
    with part.open("wb") as file:
        writer.write(file)
    part.replace(target)
    if not only:
        welcome = BUILT / f"{pages(language)[0][0]}.html"
        shown = welcome.read_text().replace('class="book-pdf" hidden', 'class="book-pdf"')
        welcome.write_text(shown.replace('book.pdf"', f'{target.name}"'))
    size = target.stat().st_size / 1e6
    print(f"{target.relative_to(ROOT)}: {len(writer.pages)} pages, {size:.1f} MB")


def main(only: str = "") -> None:
    """Print both editions, or only their pages with `only` in the name."""
    with browser.served(BUILT) as site, sync_playwright() as playwright:
        path = browser.find() or browser.install()
        started = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        for language in WORDS:
            make(started, site, language, only)
        started.close()


if __name__ == "__main__":
    main(*sys.argv[1:2])
