"""Every figure and table of the chapters shows what `tests/drawn` has written down.

`python -m pytest tests/test_drawn.py --redraw` writes it anew (`-k chapter4` one chapter); read the difference before
you commit it: it is what readers of the pages will see change.
"""

import importlib
import inspect

import pytest
from conftest import ROOT
from drawn import blocks, compare, lines, same, write

from book import execution

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

CHAPTERS = [
    importlib.import_module(f"drawn.{path.stem}")
    for path in sorted((ROOT / "tests/drawn").glob("chapter*.py"))
]
CALLS = [(chapter, name) for chapter in CHAPTERS for name in chapter.CALLS]


@pytest.mark.parametrize(
    ("chapter", "name"), CALLS, ids=[f"{c.__name__.split('.')[1]} {name}" for c, name in CALLS]
)
def test_what_is_shown_is_what_is_written_down(chapter, name, request):
    shown = [line.rstrip() for line in lines(chapter.CALLS[name]()) if line.strip()]
    assert shown, f"{name} gives nothing"
    file = chapter.__name__.split(".")[1]
    if request.config.getoption("--redraw"):
        found = blocks(file) | {name: shown}
        write(file, {call: found[call] for call in chapter.CALLS if call in found})
    else:
        compare(
            shown, blocks(file).get(name, shown)
        )  # a new call is held from its first --redraw on


@pytest.mark.site
@pytest.mark.parametrize(
    "page",
    sorted(ROOT.glob("chapters/[1-9]*/*.ipynb")),
    ids=lambda page: f"{page.parent.name}-{page.stem}",
)
def test_what_a_page_draws_is_what_is_written_down(page, request):
    """`show` wrote what it drew into the output of the executed cell: figures that a page draws itself have no other test."""
    shown: dict[str, list[str]] = {}
    for cell in execution.executed(page, ROOT).cells:
        for output in cell.get("outputs", ()):
            drawn = output.get("metadata", {}).get("text/html", {}).get("drawn", ())
            shown.setdefault(cell.id, []).extend(line.rstrip() for line in drawn)
    shown = {name: found for name, found in shown.items() if found}
    file = f"{page.parent.name}-{page.stem}"
    if shown and request.config.getoption("--redraw"):
        write(file, shown)
    written = blocks(file)
    for name in shown.keys() & written.keys():
        compare(shown[name], written[name], part=0.05)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__.split(".")[1])
def test_every_public_function_of_the_figures_is_called(chapter):
    figures = chapter.figures
    public = {
        name
        for name, value in vars(figures).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == figures.__name__ and callable(value)
        and not inspect.isclass(value)
    }  # fmt: skip
    called = {name.removeprefix("figures.").split(",")[0].split(" ")[0] for name in chapter.CALLS}
    missing = public - called - chapter.WITHOUT
    assert not missing, (
        f"tests/drawn/{chapter.__name__.split('.')[1]}.py must call {', '.join(sorted(missing))}"
    )
    assert chapter.WITHOUT <= public


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("score 0.312 at 3", "score 0.313 at 3", True),
        ("score 0.312 at 3", "score 0.322 at 3", False),
        ("score 0.312 at 3", "score 0.312 at 4", False),
        ("54% and 0.5", "55% and 0.6", True),
        ("54% and 0.5", "56% and 0.5", False),
        ("1.7 × 10⁻³", "1.7 × 10⁻⁴", False),
        ("layers 12", "layer 12", False),
        ("−0.50", "0.50", False),
        ("12,345 tokens", "12,400 tokens", True),
        ("orange o: x 1 2", "blue o: x 1 2", False),
    ],
)
def test_lines_are_compared_word_by_word_and_number_by_number(old, new, equal):
    assert same(old, new) is equal
