"""Hygiene of the notebooks: portable Markdown only, no outputs, one set-up cell, known references, short cells."""

import json
import re
import statistics
import subprocess
import sys

import pytest
from conftest import ROOT

NOTEBOOKS = sorted(p for p in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
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
        [sys.executable, "tools/sync.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@every
def test_markdown_is_portable(path):
    text = prose(path)
    assert not re.search(r"^:::|\{(doc|ref|cite|numref|eq|math|term|margin)\}|^\[\^|^> \[!", text, re.M), (
        "MyST or GitHub only"
    )
    assert not re.search(r"\\bm\b|\\newcommand|\\def\b|\\label|\\eqref", text), "MathJax or Colab cannot show it"
    assert not re.search(r"<img|<div|<span|<script", text), "raw HTML"
    for image in re.findall(r"!\[([^\]]*)\]\(", text):
        assert image.strip(), "an image without alt text"
    for block in re.findall(r"<details>.*?</details>", text, re.S):
        assert re.match(r"<details><summary>[^<]+</summary>\n\n.*\n\n</details>", block, re.S), "blank lines in details"


@every
def test_every_link_to_a_source_is_in_the_references(path):
    known = re.findall(r"url = \{(\S+)\}", (ROOT / "references.bib").read_text())
    for link in re.findall(r"\]\((https?://arxiv\.org[^)]*|https?://openreview\.net[^)]*)\)", prose(path)):
        assert link in known


@every
def test_local_links_lead_somewhere(path):
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", prose(path)):
        assert (path.parent / link).exists(), link


@every
def test_page_asks_one_question(path):
    texts = [source for source, _ in cells(path, "markdown")]
    assert texts[0].startswith("# ")
    assert "> **Question.**" in texts[0]
    assert sum(len(re.findall(r"^# ", text, re.M)) for text in texts) == 1


@pytest.mark.parametrize(
    "path", [p for p in CHAPTERS if p.stem != "exercises"], ids=lambda p: p.parent.name + "/" + p.stem
)
def test_lecture_has_length_notes_and_an_answer(path):
    assert json.loads(path.read_text())["metadata"]["lecture"]["minutes"] > 0
    kinds = [c["metadata"].get("slideshow", {}).get("slide_type") for _, c in cells(path)]
    slides = kinds.count("slide") + kinds.count("subslide")
    assert kinds.count("notes") >= slides / 2
    assert "> **Answer.**" in "\n".join(source for source, _ in cells(path))


@every
def test_cells_are_short_and_figures_described(path):
    code = [source for source, _ in cells(path, "code")]
    lengths = [len(source.splitlines()) for source in code]
    assert statistics.median(lengths) <= 6
    assert sum(n >= 20 for n in lengths) <= len(lengths) / 10
    drawn = sum(source.count("style.axes(") for source in code)
    described = sum(source.count("show(\n") + source.count("show(ax") for source in code)
    functions = sum(len(re.findall(r"return \w+, f?\"", source)) for source in code)
    assert drawn <= described + functions, "a figure without alt text or a widget without a finding"


def test_long_numbers_in_prose_are_printed_by_cells():
    """A number of four or more decimals in the text can only come from a computation."""
    for path in NOTEBOOKS:
        text = re.sub(r"\$[^$]*\$|\]\([^)]*\)", "", prose(path))
        assert not re.findall(r"(?<![\d.])\d+\.\d{4,}", text), path


def test_no_notebook_names_a_machine():
    for path in NOTEBOOKS:
        assert not re.search(r"/home/|/root/|/Users/|/tmp/", path.read_text())
