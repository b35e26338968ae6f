"""What pages compute and say, in lines of text, as `tests/drawn` has what they draw."""

import html
import json
import re
from collections import Counter

import bs4
import nbformat

COUNT = re.compile(
    r"(?:(?<![\w.)])[-+])?(?<!\d)\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|e[-+]?\d+)?%?"
)


def visible(text: str, drawn: bool = True) -> list[str]:
    """What a reader of some HTML reads, or hears: its text, a line a block, rows of tables, and the words for pictures.

    What stands in pictures counts where `drawn`.
    """
    soup = bs4.BeautifulSoup(text, "html.parser")
    said = []
    for picture in [] if drawn else soup.find_all("svg"):
        picture.clear()
    for script in soup.find_all("script", type="application/json"):
        held = json.loads(script.string or "{}")
        frames = [told for _, told in held.get("frames", ())] if isinstance(held, dict) else []
        said += [f"frame: {html.unescape(told)}" for told in dict.fromkeys(frames)]
    for gone in soup.find_all(["style", "script"]):
        gone.decompose()
    for item in soup.find_all(True):
        for name in ("alt", "aria-label", "title"):
            if item.get(name):
                item.insert(0, f" [{item[name]}] ")
    for text in soup.find_all(string=True):
        text.replace_with(re.sub(r"\s+", " ", text))
    for item in soup.find_all(["td", "th"]):
        item.append(" | ")
    for item in soup.find_all(
        [
            "p",
            "tr",
            "li",
            "div",
            "h2",
            "h3",
            "h4",
            "dt",
            "dd",
            "figcaption",
            "details",
            "section",
            "br",
            "option",
        ]
    ):
        item.append("\n")
    lines = (" ".join(line.split()).strip(" |") for line in soup.get_text().splitlines())
    return [*filter(None, lines), *said]


def outputs(notebook: nbformat.NotebookNode, drawn: bool = True) -> dict[str, list[str]]:
    """What each cell of an executed notebook says: text, Markdown, tables, what stands around pictures."""
    found: dict[str, list[str]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            held = output.get("data", {})
            if "text/html" in held:
                lines = visible("".join(held["text/html"]), drawn)
            else:
                text = held.get("text/markdown") or held.get("text/plain") or output.get("text", "")
                lines = [line.rstrip() for line in "".join(text).splitlines() if line.strip()]
            if "stderr" != output.get("name"):
                found.setdefault(cell.id, []).extend(lines)
    return {name: lines for name, lines in found.items() if lines}


def asserted(lines: list[str]) -> tuple[Counter, set[str]]:
    """The numbers of a cell's output, with their signs, and the names in it; what is said twice in one place counts once.

    >>> asserted(["In RoPE −0.5, then 1,024。", "[In RoPE −0.5, then 1,024]"])
    (Counter({'-0.5': 1, '1024': 1}), {'RoPE'})
    """
    once = {
        part.strip(" |.。")
        for line in lines
        for part in re.split(r"[\[\]]", line.removeprefix("frame: "))
    }
    plain = [re.sub("[⺀-鿿＀-￯“”]|[、。《》「」]", " ", part).replace("−", "-") for part in once]
    numbers = Counter(found.replace(",", "") for part in plain for found in COUNT.findall(part))
    return numbers, {name for part in plain for name in re.findall(r"[A-Z][\w-]*[A-Z\d]", part)}
