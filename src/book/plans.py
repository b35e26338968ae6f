"""Read the plans in `chapters/plans` for an hour, a day and a term.

We add the minutes and the links from the decks.
"""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes

from book.chapters import listed, markdown, minutes
from book.editions import CUE
from book.lectures import deck as deck_name

PARTS = ("lesson", "sinks", "lab", "exercises")


def part(root: Path, name: str) -> Path:
    """Return the path of the notebook for a part of a chapter.

    "3 lesson" is chapters/3-representational-collapse/lesson.ipynb.

    Raises:
        ValueError: if the part does not exist.
    """
    number, _, kind = name.partition(" ")
    paths = sorted(root.glob(f"chapters/{number}-*/{kind}.ipynb")) if kind in PARTS else []
    if len(paths) != 1:
        raise ValueError(
            f"a part must be a chapter's number and one of {', '.join(PARTS)}, not {name!r}"
        )
    return paths[0]


def slides(path: Path) -> list[dict]:
    """Return the slides of a deck.

    Each has the id of its cell, its heading, its minutes, what listeners get wrong, and its
    position in the deck.
    """
    listed_slides, across, down = [], -1, 0
    for cell in json.loads(path.read_text())["cells"]:
        kind, text = (
            cell["metadata"].get("slideshow", {}).get("slide_type", "-"),
            "".join(cell["source"]),
        )
        headings = re.findall(r"^#+ (.+)$", text, re.M) if cell["cell_type"] == "markdown" else []
        if kind in ("slide", "subslide"):
            across, down = (across + 1, 0) if kind == "slide" or across < 0 else (across, down + 1)
            listed_slides.append(
                {
                    "id": cell["id"],
                    "heading": "",
                    "minutes": 0.0,
                    "wrong": "",
                    "place": f"#/{across}/{down}".removesuffix("/0"),
                }
            )
        if not listed_slides or kind == "skip":
            continue
        if headings and not listed_slides[-1]["heading"]:
            listed_slides[-1]["heading"] = headings[-1]
        if cue := CUE.fullmatch(text.strip()):
            listed_slides[-1]["minutes"] += float(cue[1])
            listed_slides[-1]["wrong"] = " ".join(
                re.findall(r"^Common mistake: (.+)$", cue[2], re.M)
            )
    return listed_slides


def exercises(path: Path) -> dict[str, tuple[str, int]]:
    """Return the title and the minutes of each exercise, keyed by its number."""
    headings = re.findall(
        r"^## (\d\.\d+) (.+?)$.*?^●+ .*?(\d+) minutes$", markdown(path), re.M | re.S
    )
    return {number: (title, int(least)) for number, title, least in headings}


def row(root: Path, planned: dict) -> dict:
    """Add minutes and links to a row of a plan.

    The row may name whole `decks`, `slides` and `exercises`, and may have `minutes` in addition.

    Raises:
        ValueError: if a slide, a deck or an exercise does not exist.
    """
    links, least, words = [], planned.get("minutes", 0), planned.get("do", "")
    for name in planned.get("decks", []):
        path = part(root, name)
        least += minutes(path)
        title = next(s["heading"] for s in slides(path))
        links.append((f"{name.capitalize().replace('Lesson', 'lesson')}: {title}", deck(path)))
    for name in planned.get("slides", []):
        place, _, cell = name.partition("#")
        path = part(root, place)
        slide = next((s for s in slides(path) if s["id"] == cell), None)
        if slide is None:
            raise ValueError(f"no slide of {place} has the id {cell!r}")
        least += slide["minutes"]
        links.append((f"{place[0]}. {slide['heading']}", deck(path) + slide["place"]))
    for number in map(str, planned.get("exercises", [])):
        path = part(root, f"{number[0]} exercises")
        known = exercises(path)
        if number not in known:
            raise ValueError(f"there is no exercise {number}")
        title, took = known[number]
        least += took
        links.append(
            (f"{number} {title}", f"{path.parent.name}/exercises.html#{nodes.make_id(title)}")
        )
    return (
        planned
        | {"minutes": least, "links": links, "do": words}
        | {k: planned.get(k, "") for k in ("they", "drop")}
    )


def deck(path: Path) -> str:
    return f"../slides/{deck_name(path)}"


def plan(root: Path, name: str) -> dict:
    """Read a plan for one sitting with its rows."""
    planned = yaml.safe_load((root / f"chapters/plans/{name}.yml").read_text())
    return planned | {"rows": [row(root, entry) for entry in planned["rows"]]}


def weeks(root: Path, name: str) -> list[dict]:
    """Read a plan for a term, which has one row per week with a lecture and a class."""
    planned = yaml.safe_load((root / f"chapters/plans/{name}.yml").read_text())["weeks"]
    return [
        week | {kind: row(root, week[kind]) for kind in ("lecture", "class")} for week in planned
    ]


def terms(root: Path) -> dict[int, dict]:
    """Return the terms of the plan, keyed by their number of weeks."""
    return {
        term["weeks"]: term
        for term in yaml.safe_load((root / "chapters/plans/term.yml").read_text())["terms"]
    }


def shorter(root: Path, name: str) -> list[dict]:
    """Return the slides of a deck that may be left out, in the order in which to leave them out.

    Each has the minutes that are `left` after leaving it out.

    Raises:
        ValueError: if such a slide is not in the deck, or is the first or last slide of the deck.
    """
    all_slides = slides(part(root, name))
    middle, left, rows = (
        {slide["id"]: slide for slide in all_slides[1:-1]},
        sum(slide["minutes"] for slide in all_slides),
        [],
    )
    for cell in map(str, yaml.safe_load((root / "chapters/plans/shorter.yml").read_text())[name]):
        if cell not in middle:
            raise ValueError(
                f"no slide between the first and the last one of {name} has the id {cell!r}"
            )
        left -= middle[cell]["minutes"]
        rows.append(middle[cell] | {"left": left})
    return rows


def decks(root: Path) -> list[str]:
    """Return the names of the parts that are lectures, in the order of the book.

    The first names are "1 lesson" and "1 lab".
    """
    kinds = ((lesson, kind) for lesson in listed(root) for kind in ("lesson", "lab"))
    return [
        f"{lesson.parent.name[0]} {kind}"
        for lesson, kind in kinds
        if (lesson.parent / f"{kind}.ipynb").exists()
    ]
