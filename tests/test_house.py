"""The package: two distributions, imports that run down, chapters that do not know each other."""

import ast
import contextlib
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import functions
import pytest
from conftest import ROOT, SCRIPTS

SOURCE = ROOT / "src"
MODULES = {
    p.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__"): p
    for p in SOURCE.rglob("*.py")
}
# the upper floor: the scorecard gathers the chapters' claims, the report their measures, figures and claims for any model,
# and `book` builds pages and decks of all
GATHERS = {"course/scorecard", "course/report", "book"}


def room(name: str) -> str:
    """`course/chapter3/claims` stands in `course/chapter3`, `helpers/models/gguf` in `helpers/models`."""
    if name.startswith("book"):
        return "book"
    return "/".join(name.split("/")[:2])


def imports(path: Path) -> set[str]:
    """The modules of the three packages that a file imports, as `course/chapter3/claims`."""
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
    assert chapters <= allowed, (
        f"{name} imports {chapters - allowed}: what two chapters need moves down to the tools"
    )


@pytest.mark.parametrize("name", MODULES)
def test_nothing_below_knows_the_upper_floor(name):
    above = {room(other) for other in ARROWS[name]} & GATHERS - {room(name)}
    assert room(name) in GATHERS or not above, (
        f"{name} imports {above}, which stands above the chapters"
    )


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("book")])
def test_packages_know_nothing_of_the_build(name):
    assert not {other for other in ARROWS[name] if other.startswith("book")}


def test_extensions_and_scripts_do_not_import_each_other():
    """What both need stands in `book`; neither puts a folder on Python's path to reach the other."""
    folders = {name: sorted((ROOT / name).glob("*.py")) for name in ("tools", "sphinx_ext")}
    for name, other in (("tools", "sphinx_ext"), ("sphinx_ext", "tools")):
        beyond = {path.stem for path in folders[other]} - {path.stem for path in folders[name]}
        for path in folders[name]:
            imported = {
                node.module if isinstance(node, ast.ImportFrom) else alias.name
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in node.names
            }
            assert not imported & beyond, f"{path.name} imports {imported & beyond} from {other}"
            assert f'"{other}"' not in "".join(re.findall(r"sys\.path.*", path.read_text()))


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
    from course import scorecard

    chapters = sorted(p.name for p in (SOURCE / "course").glob("chapter*") if p.is_dir())
    for chapter in chapters:
        rooms = {p.stem for p in (SOURCE / "course" / chapter).glob("*.py")}
        asks = list(ROOT.glob(f"chapters/{chapter[-1]}-*/exercises.ipynb"))
        wanted = {"figures", "claims", *(["checks"] if asks else [])}
        assert wanted <= rooms, f"{chapter} must have {', '.join(sorted(wanted))}"
    assert [module.__name__ for module in scorecard.CHAPTERS] == [
        f"course.{name}.claims" for name in chapters
    ]


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
    assert [
        name
        for name in SCRIPTS
        if not re.search(rf"""(SCRIPTS\[|javascript\(\s*)["']{name}["']""", told)
    ] == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem
)
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
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        ):
            assert hasattr(modules[node.value.id], node.attr), ast.unparse(node)


def names(package: str) -> dict[str, object]:
    """Functions, classes and constants of private modules, too; an underscore keeps a name out, though a neighbour or a tool may use it."""
    found = {}
    for path, file in MODULES.items():
        if path.split("/")[0] != package:
            continue
        made, module = set(), path.replace("/", ".")
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                made.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                made |= {
                    each.id
                    for target in targets
                    for each in ast.walk(target)
                    if isinstance(each, ast.Name)
                }
        there = vars(importlib.import_module(module))
        found |= {
            f"{module}.{name}": there[name] for name in sorted(made) if not name.startswith("_")
        }
    return found


def test_the_page_functions_shows_every_one():
    listed = re.search(r"```{functions} (.+)", (ROOT / "chapters/functions.md").read_text())[
        1
    ].split()
    public = {name for name in MODULES if name.startswith("helpers/") and "/_" not in name}
    assert {f"helpers/{name}" for name in listed} == public
    shown = {
        f"helpers.{name.replace('/', '.')}.{n.name}"
        for name in listed
        for n in functions.public(ast.parse(MODULES[f"helpers/{name}"].read_text()))
    }
    functions_of = {
        name for name, value in names("helpers").items() if callable(value) and "._" not in name
    }
    assert functions_of - shown == set()


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("course")])
def test_the_course_uses_what_helpers_make_public(name):
    modules, private, nodes = set(), set(), [*ast.walk(ast.parse(MODULES[name].read_text()))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("helpers."):
            modules |= {alias.asname or alias.name for alias in node.names}
            private |= {alias.name for alias in node.names if alias.name.startswith("_")}
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        ):
            private |= {ast.unparse(node)} if node.attr.startswith("_") else set()
    assert not private, f"{name} reaches for {private}"


COMES_WITH = {"IPython": "ipywidgets", "PIL": "pillow"}


def test_helpers_are_installed_with_what_they_import_and_nothing_else():
    """`pip install ./src/helpers`: no more than helpers need, in the course's own versions."""
    files = ROOT / "pyproject.toml", SOURCE / "helpers/pyproject.toml"
    course, helpers = (tomllib.loads(path.read_text())["project"] for path in files)
    assert set(helpers["dependencies"]) <= set(course["dependencies"])
    assert [helpers[key] for key in ("version", "requires-python")] == [
        course[key] for key in ("version", "requires-python")
    ]
    asked = {re.match(r"[\w-]+", each)[0].replace("-", "_") for each in helpers["dependencies"]}
    found = set()
    for name, path in MODULES.items():
        if name.startswith("helpers"):
            for node in ast.walk(ast.parse(path.read_text())):
                found |= {a.name for a in node.names} if isinstance(node, ast.Import) else set()
                found |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    tops = {
        COMES_WITH.get(name, name) for name in (each.split(".")[0] for each in found)
    } - sys.stdlib_module_names
    # pandas' styled tables, which `style.readout_table` returns, need jinja2
    assert tops - {"helpers"} | {"jinja2"} == asked


# one call of each module's own, after the course has been made unimportable
