"""The whole book as one PDF, `_build/html/book.pdf`: every page printed by Chromium, widgets as
they start, with bookmarks.
"""

import io
from pathlib import Path

import yaml
from playwright.sync_api import sync_playwright
from pypdf import PdfWriter

from book import browser

ROOT = Path(__file__).resolve().parents[1]
HIDDEN = '<p class="book-pdf" hidden>'


def pages() -> list[str]:
    """List the pages of the book in its order, as `chapters/welcome`."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    inner = [
        name["file"] for chapter in chapters for name in (chapter, *chapter.get("sections", []))
    ]
    return [toc["root"], *inner]


def main() -> None:
    writer, target = PdfWriter(), ROOT / "_build/html/book.pdf"
    with browser.served(ROOT / "_build/html") as site, sync_playwright() as playwright:
        path = browser.find() or browser.install()
        started = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        for name in pages():
            page = started.new_context(color_scheme="light").new_page()
            page.goto(f"{site}/{name}.html", wait_until="load")
            page.wait_for_load_state("networkidle")
            page.evaluate("() => window.MathJax?.startup?.promise")
            start, title = (
                len(writer.pages),
                page.locator("main h1").first.inner_text().strip("#\n "),
            )
            margin = dict.fromkeys(("top", "bottom", "left", "right"), "16mm")
            writer.append(
                io.BytesIO(page.pdf(format="A4", margin=margin, scale=0.8)), import_outline=False
            )
            writer.add_outline_item(title=title, page_number=start)
            page.context.close()
        started.close()
    writer.add_metadata({"/Title": "Connection Bottlenecks in Attention"})
    part = target.with_suffix(".part")
    with part.open("wb") as file:
        writer.write(file)
    part.replace(target)
    welcome = ROOT / "_build/html/chapters/welcome.html"
    welcome.write_text(welcome.read_text().replace(HIDDEN, HIDDEN.replace(" hidden", "")))
    print(
        f"{target.relative_to(ROOT)}: {len(writer.pages)} pages, "
        f"{target.stat().st_size / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
