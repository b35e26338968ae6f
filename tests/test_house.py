"""The house: imports run down, chapters do not know each other, and nothing below knows a chapter."""

import ast
import re
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "src/helpers"
MODULES = {
    p.relative_to(PACKAGE).with_suffix("").as_posix().removesuffix("/__init__"): p for p in PACKAGE.rglob("*.py")
}
# the upper floor: the scorecard gathers the chapters' claims, the report their measures, figures and claims for any model
GATHERS = {"scorecard", "report"}


def room(name: str) -> str:
    """`chapter3/claims` stands in `chapter3`, `models/gguf` in `models`."""
    return name.split("/")[0]


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, as `chapter3/claims`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "helpers":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "helpers"]
        for name in names:
            parts = name.split(".")[1:]
            while parts and "/".join(parts) not in MODULES:
                parts.pop()
            if parts:
                found.add("/".join(parts))
    return found


ARROWS = {name: imports(path) for name, path in MODULES.items()}


@pytest.mark.parametrize("name", MODULES)
def test_chapters_know_only_what_is_below_them(name):
    chapters = {room(other) for other in ARROWS[name] if re.fullmatch(r"chapter\d+", room(other))}
    if room(name) in GATHERS:
        return
    allowed = {room(name)} if room(name).startswith("chapter") else set()
    assert chapters <= allowed, f"{name} imports {chapters - allowed}: what two chapters need moves down to the tools"


@pytest.mark.parametrize("name", MODULES)
def test_nothing_below_knows_the_upper_floor(name):
    above = {room(other) for other in ARROWS[name]} & GATHERS - {room(name)}
    assert room(name) in GATHERS or not above, f"{name} imports {above}, which stands above the chapters"


def test_imports_make_no_circle():
    rooms = {room(name): set() for name in MODULES}
    for name, others in ARROWS.items():
        rooms[room(name)] |= {room(other) for other in others} - {room(name)}
    left = dict(rooms)
    while left:
        ground = [name for name, others in left.items() if not others & set(left)]
        assert ground, f"these import each other: {sorted(left)}"
        left = {name: others for name, others in left.items() if name not in ground}


def test_every_chapter_has_the_same_rooms_and_is_gathered():
    from helpers import scorecard

    chapters = sorted(p.name for p in PACKAGE.glob("chapter*") if p.is_dir())
    for chapter in chapters:
        rooms = {p.stem for p in (PACKAGE / chapter).glob("*.py")}
        assert {"figures", "claims", "checks"} <= rooms, f"{chapter} must have figures, claims and checks"
    assert [module.__name__ for module in scorecard.CHAPTERS] == [f"helpers.{name}.claims" for name in chapters]
