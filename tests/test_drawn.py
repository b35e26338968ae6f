"""Every figure and table of the chapters shows what `tests/drawn` has written down.

`python -m pytest tests/test_drawn.py --redraw` writes it anew (`-k chapter4` one chapter); read the difference before
you commit it: it is what readers of the pages will see change.
"""

import importlib
import inspect

import pytest
from drawn import lines, same

CHAPTERS = [importlib.import_module(f"drawn.chapter{k}") for k in range(1, 7)]
CALLS = [(chapter, name) for chapter in CHAPTERS for name in chapter.CALLS]


def blocks(chapter) -> dict[str, list[str]]:
    """What is written down, by call."""
    file = importlib.resources.files("drawn") / f"{chapter.__name__.split('.')[1]}.txt"
    found: dict[str, list[str]] = {}
    for line in file.read_text().splitlines() if file.is_file() else ():
        if line.startswith("# "):
            found[line[2:]] = here = []
        elif line:
            here.append(line)
    return found


@pytest.mark.parametrize(("chapter", "name"), CALLS, ids=[f"{c.__name__.split('.')[1]} {name}" for c, name in CALLS])
def test_what_is_shown_is_what_is_written_down(chapter, name, request, root):
    shown = [line.rstrip() for line in lines(chapter.CALLS[name]()) if line.strip()]
    assert shown, f"{name} gives nothing"
    written = blocks(chapter)
    if request.config.getoption("--redraw"):
        if not (name in written and len(shown) == len(written[name]) and all(map(same, shown, written[name]))):
            written[name] = shown
        text = "\n\n".join("\n".join([f"# {call}", *written[call]]) for call in chapter.CALLS if call in written)
        (root / "tests/drawn" / f"{chapter.__name__.split('.')[1]}.txt").write_text(text + "\n")
        return
    here = f"{name}: if it is meant, `python -m pytest tests/test_drawn.py --redraw` writes it down"
    assert name in written, here
    changed = [f"- {old}\n+ {new}" for old, new in zip(written[name], shown, strict=False) if not same(old, new)]
    assert not changed, "\n".join([here, *changed])
    assert len(shown) == len(written[name]), f"{here}: {len(written[name])} lines, now {len(shown)}"


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
    assert not missing, f"tests/drawn/{chapter.__name__.split('.')[1]}.py must call {', '.join(sorted(missing))}"
    assert chapter.WITHOUT <= public


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__.split(".")[1])
def test_nothing_is_written_down_that_is_not_called(chapter):
    assert list(blocks(chapter)) == list(chapter.CALLS)


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
