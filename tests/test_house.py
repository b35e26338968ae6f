"""The house: two packages, imports run down, chapters do not know each other, and a room keeps its budget of lines."""

import ast
import contextlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, SCRIPTS

SOURCE = ROOT / "src"
MODULES = {p.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__"): p for p in SOURCE.rglob("*.py")}
# the upper floor: the scorecard gathers the chapters' claims, the report their measures, figures and claims for any model
GATHERS = {"course/scorecard", "course/report"}


def room(name: str) -> str:
    """`course/chapter3/claims` stands in `course/chapter3`, `helpers/models/gguf` in `helpers/models`."""
    return "/".join(name.split("/")[:2])


def imports(path: Path) -> set[str]:
    """The modules of the two packages that a file imports, as `course/chapter3/claims`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            while parts and "/".join(parts) not in MODULES:
                parts.pop()
            if parts:
                found.add("/".join(parts))
    return found


ARROWS = {name: imports(path) for name, path in MODULES.items()}


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("helpers")])
def test_helpers_know_nothing_of_the_course(name):
    above = {other for other in ARROWS[name] if other.startswith("course")}
    assert not above, f"{name} imports {above}: a learner imports helpers without the book"


@pytest.mark.parametrize("name", MODULES)
def test_chapters_know_only_what_is_below_them(name):
    chapters = {room(other) for other in ARROWS[name] if re.match(r"course/chapter\d+", other)}
    if room(name) in GATHERS:
        return
    allowed = {room(name)} if room(name).startswith("course/chapter") else set()
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


# lines of Python a room may have; CONTRIBUTING says how it goes on. A number here is lowered, and raised only for a reason
BUDGETS = {
    "helpers": 8_640,
    "course/chapter": 1_570,
    "course/experiments": 3_110,
    "course/report": 1_870,
    "course/scorecard": 1_110,
    "course": 17_975,
    "tests": 14_800,
}


def lines(*folders: Path) -> int:
    return sum(len(path.read_text().splitlines()) for folder in folders for path in folder.rglob("*.py"))


@pytest.mark.parametrize("name", BUDGETS)
def test_a_room_keeps_its_budget_of_lines(name):
    if name == "course/chapter":
        taken = max(lines(chapter) for chapter in SOURCE.glob("course/chapter*"))
    else:
        taken = lines(ROOT / name if name == "tests" else SOURCE / name)
    assert taken <= BUDGETS[name], f"{name} has {taken} lines for {BUDGETS[name]}: what can go, or move to the page?"


def test_every_chapter_has_the_same_rooms_and_is_gathered():
    from course import scorecard

    chapters = sorted(p.name for p in (SOURCE / "course").glob("chapter*") if p.is_dir())
    for chapter in chapters:
        rooms = {p.stem for p in (SOURCE / "course" / chapter).glob("*.py")}
        assert {"figures", "claims", "checks"} <= rooms, f"{chapter} must have figures, claims and checks"
    assert [module.__name__ for module in scorecard.CHAPTERS] == [f"course.{name}.claims" for name in chapters]


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("from helpers import attention, differential, graphs, rope", {"matplotlib", "pandas", "transformers", "scipy.stats"}),
        ("from helpers import models, probe", {"matplotlib", "transformers.modeling_utils"}),
        ("from course.chapter2 import figures", {"transformers.modeling_utils"}),
        ("from course import scorecard", {"transformers.modeling_utils"}),
    ],
)  # fmt: skip
def test_an_import_loads_only_what_it_needs(code, unwanted):
    """Every start on Colab, in a test's process and for a claim pays for it: transformers' models alone take 6 seconds."""
    asked = f"import sys\n{code}\nprint(*sorted({unwanted} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert not done.stdout.split(), f"{code} loads {done.stdout}"


def test_every_script_of_the_tests_is_run_by_one():
    told = "".join(path.read_text() for path in (ROOT / "tests").glob("*.py"))
    assert [name for name in SCRIPTS if f'SCRIPTS["{name}"]' not in told and f'javascript("{name}"' not in told] == []


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_names_what_there_is(path):
    """No test runs them: one called a function of `probe` long after it had gone."""
    tree, modules = ast.parse(path.read_text()), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("helpers", "course"):
            for alias in node.names:
                importlib.import_module(node.module)
                with contextlib.suppress(ImportError):
                    importlib.import_module(f"{node.module}.{alias.name}")
                modules[alias.asname or alias.name] = getattr(sys.modules[node.module], alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            assert hasattr(modules[node.value.id], node.attr), ast.unparse(node)
