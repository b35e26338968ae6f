"""The plans of `chapters/plans` for an hour, a day and a term, with the minutes and links that the
decks have.
"""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes

from book.chapters import listed, markdown, minutes
from book.editions import CUE
from book.lectures import deck as deck_name

PARTS = ("lesson", "lab", "exercises")


def part(root: Path, name: str) -> Path:
    """The notebook of a part of a chapter: "3 lesson" is
    chapters/3-representational-collapse/lesson.ipynb.

    Raises:
        ValueError: there is none.
    """
    number, _, kind = name.partition(" ")
    found = sorted(root.glob(f"chapters/{number}-*/{kind}.ipynb")) if kind in PARTS else []
    if len(found) != 1:
        raise ValueError(
            f"a part must be a chapter's number and one of {', '.join(PARTS)}, not {name!r}"
        )
    return found[0]


def slides(path: Path) -> list[dict]:
    """Each slide of a deck: the id of its cell, its heading, its minutes, what listeners get wrong,
    its place in the deck.
    """
    found, across, down = [], -1, 0
    for cell in json.loads(path.read_text())["cells"]:
        kind, text = (
            cell["metadata"].get("slideshow", {}).get("slide_type", "-"),
            "".join(cell["source"]),
        )
        headings = re.findall(r"^#+ (.+)$", text, re.M) if cell["cell_type"] == "markdown" else []
        if kind in ("slide", "subslide"):
            across, down = (across + 1, 0) if kind == "slide" or across < 0 else (across, down + 1)
            found.append(
                {
                    "id": cell["id"],
                    "heading": "",
                    "minutes": 0.0,
                    "wrong": "",
                    "place": f"#/{across}/{down}".removesuffix("/0"),
                }
            )
        if not found or kind == "skip":
            continue
        if headings and not found[-1]["heading"]:
            found[-1]["heading"] = headings[-1]
        if cue := CUE.fullmatch(text.strip()):
            found[-1]["minutes"] += float(cue[1])
            found[-1]["wrong"] = " ".join(re.findall(r"^They get wrong: (.+)$", cue[2], re.M))
    return found


def exercises(path: Path) -> dict[str, tuple[str, int]]:
    """Title and minutes of each exercise, by its number."""
    found = re.findall(r"^## (\d\.\d+) (.+?)$.*?^●+ .*?(\d+) minutes$", markdown(path), re.M | re.S)
    return {number: (title, int(least)) for number, title, least in found}


def row(root: Path, given: dict) -> dict:
    """A row of a plan with its minutes and its links: of whole `decks`, of `slides`, of
    `exercises`, and `minutes` beside them.

    Raises:
        ValueError: a slide, a deck or an exercise that is not there.
    """
    links, least, words = [], given.get("minutes", 0), given.get("do", "")
    for name in given.get("decks", []):
        path = part(root, name)
        least += minutes(path)
        title = next(s["heading"] for s in slides(path))
        links.append((f"{name.capitalize().replace('Lesson', 'lesson')}: {title}", deck(path)))
    for name in given.get("slides", []):
        place, _, cell = name.partition("#")
        path = part(root, place)
        found = next((s for s in slides(path) if s["id"] == cell), None)
        if found is None:
            raise ValueError(f"no slide of {place} has the id {cell!r}")
        least += found["minutes"]
        links.append((f"{place[0]}. {found['heading']}", deck(path) + found["place"]))
    for number in map(str, given.get("exercises", [])):
        path = part(root, f"{number[0]} exercises")
        there = exercises(path)
        if number not in there:
            raise ValueError(f"there is no exercise {number}")
        title, took = there[number]
        least += took
        links.append(
            (f"{number} {title}", f"{path.parent.name}/exercises.html#{nodes.make_id(title)}")
        )
    return (
        given
        | {"minutes": least, "links": links, "do": words}
        | {k: given.get(k, "") for k in ("they", "drop")}
    )


def deck(path: Path) -> str:
    return f"../slides/{deck_name(path)}"


def plan(root: Path, name: str) -> dict:
    """A plan for one sitting, with its rows."""
    given = yaml.safe_load((root / f"chapters/plans/{name}.yml").read_text())
    return given | {"rows": [row(root, each) for each in given["rows"]]}


def weeks(root: Path, name: str) -> list[dict]:
    """A plan for a term: a row a week, with its lecture and its class."""
    given = yaml.safe_load((root / f"chapters/plans/{name}.yml").read_text())["weeks"]
    return [each | {kind: row(root, each[kind]) for kind in ("lecture", "class")} for each in given]


def terms(root: Path) -> dict[int, dict]:
    """The terms that the plan knows, by their number of weeks."""
    return {
        each["weeks"]: each
        for each in yaml.safe_load((root / "chapters/plans/term.yml").read_text())["terms"]
    }


def shorter(root: Path, name: str) -> list[dict]:
    """The slides of a deck that may be left out, the first to go first, each with the minutes that
    are `left` then.

    Raises:
        ValueError: one of them is no slide of the deck, or is its first or its last one.
    """
    found = slides(part(root, name))
    middle, left, rows = (
        {each["id"]: each for each in found[1:-1]},
        sum(each["minutes"] for each in found),
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
    """The parts that are lectures, in the order of the book: "1 lesson", "1 lab", …"""
    kinds = ((lesson, kind) for lesson in listed(root) for kind in ("lesson", "lab"))
    return [
        f"{lesson.parent.name[0]} {kind}"
        for lesson, kind in kinds
        if (lesson.parent / f"{kind}.ipynb").exists()
    ]
