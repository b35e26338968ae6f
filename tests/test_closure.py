"""What a piece of code depends on: the modules it reaches, what lies beside them, the tables they read."""

import pytest

from helpers import closure


@pytest.fixture
def package(tmp_path):
    """A package of two chapters over three tools, with three tables."""
    sources = {
        "src/helpers/__init__.py": "from helpers.widget import explore\n",
        "src/helpers/widget/__init__.py": "from pathlib import Path\n",
        "src/helpers/widget/player.js": "play()\n",
        "src/helpers/data.py": "def folder(): ...\ndef table(name): return folder() / name\n",
        "src/helpers/tool.py": "import math\n",
        "src/helpers/maths.py": "from helpers import tool\n",
        "src/helpers/runs.py": "from helpers import data\ndef runs(): return data.table('measured')\n",
        "src/helpers/chapter1/__init__.py": "",
        "src/helpers/chapter1/figures.py": "def draw():\n    from . import claims\n    from ..maths import x\n",
        "src/helpers/chapter1/claims.py": "from helpers import runs\n",
        "src/helpers/chapter2/__init__.py": "",
        "src/helpers/chapter2/figures.py": "from helpers import maths\n",
        "data/measured.csv": "x\n",
        "data/reported/old.csv": "x\n",
        "data/reported/new.csv": "x\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "src/helpers"


def names(code, package):
    return {
        p.relative_to(package.parents[1]).as_posix().removeprefix("src/helpers/") for p in closure.files(code, package)
    }


ALWAYS = {"__init__.py", "widget/__init__.py", "widget/player.js"}
CHAPTER_1 = {
    "chapter1/__init__.py",
    "chapter1/figures.py",
    "chapter1/claims.py",
    "runs.py",
    "data.py",
    "maths.py",
    "tool.py",
}
TABLES = {"data/measured.csv", "data/reported/old.csv", "data/reported/new.csv"}


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("import math, torch", None),
        ("from helpers import explore", set()),
        ("from helpers import tool", {"tool.py"}),
        ("import helpers.maths as m", {"maths.py", "tool.py"}),
        ("import helpers\nhelpers.maths.x()", {"maths.py", "tool.py"}),
        ("from helpers.chapter2 import figures", {"chapter2/__init__.py", "chapter2/figures.py", "maths.py", "tool.py"}),
        ("from helpers.chapter1.figures import draw", CHAPTER_1 | {"data/measured.csv"}),
        ("%matplotlib inline\nfrom helpers import tool", {"tool.py"}),
        ("model.eval()\nfrom helpers import tool", {"tool.py"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_imports_are_followed_from_module_to_module(package, code, reached):
    assert names(code, package) == (set() if reached is None else ALWAYS | reached)


@pytest.mark.parametrize(
    ("code", "tables"),
    [
        ("from helpers import data\ndata.table('measured')", {"data/measured.csv"}),
        ("from helpers import data as d\nd.table('reported/old')", {"data/reported/old.csv"}),
        ("from helpers.data import table as t\nt('reported/old')", {"data/reported/old.csv"}),
        ("import helpers.data\nhelpers.data.table('reported/old')", {"data/reported/old.csv"}),
        ("from helpers import data\ndata.folder() / 'reported'", TABLES - {"data/measured.csv"}),
        ("from helpers import data\ndata.folder() / name", TABLES),
        ("from helpers import data\ndata.table(name)", TABLES),
        ("from helpers import data\n[data.table, 1]", TABLES),
        ("from helpers import data\nopen('../../data/measured.csv')", {"data/measured.csv"}),
        ("from helpers import data\nopen(f'../../data/{name}.csv')", TABLES),
        ("from helpers import data\nother.table(name)", set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_counts_where_it_is_named_and_all_count_where_a_name_is_computed(package, code, tables):
    assert names(code, package) == ALWAYS | {"data.py"} | tables


@pytest.mark.parametrize(
    "code", ["def broken(:", "importlib.import_module(f'helpers.{name}')", "from helpers import *"]
)
def test_everything_counts_where_the_code_cannot_tell(package, code):
    assert {p for p in package.rglob("*.py")} <= set(closure.files(code, package))


def test_the_key_follows_what_is_reached_and_nothing_else(package):
    code = "from helpers.chapter2 import figures"
    before = closure.key(code, package=package)
    for name in ("chapter1/figures.py", "runs.py", "data.py", "new.py"):
        with (package / name).open("a") as file:
            file.write("# changed\n")
        assert closure.key(code, package=package) == before
    for name in ("chapter2/figures.py", "tool.py", "widget/player.js", "__init__.py"):
        with (package / name).open("a") as file:
            file.write("# changed\n")
        now = closure.key(code, package=package)
        assert now != before, name
        before = now
    assert closure.key(code, "3.11", package=package) != before


def test_the_course_own_package_is_read():
    found = {path.name for path in closure.files("from helpers import gnn")}
    assert {"networks.py", "compute.py"} <= found
    assert "collapse.py" not in found
