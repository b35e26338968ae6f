"""What a piece of code depends on: the modules it reaches, what lies beside them, the tables they read."""

import nbformat
import pytest
from conftest import ROOT

from course.build import dependencies


@pytest.fixture
def source(tmp_path):
    """Two packages, of two chapters over three tools, with three tables."""
    sources = {
        "src/helpers/__init__.py": "from helpers.widget import explore\n",
        "src/helpers/widget/__init__.py": "from pathlib import Path\n",
        "src/helpers/widget/player.js": "play()\n",
        "src/helpers/data.py": "def folder(): ...\ndef table(name): return folder() / name\n",
        "src/helpers/tool.py": "import math\n",
        "src/helpers/maths.py": "from helpers import tool\n",
        "src/helpers/runs.py": "from helpers import data\ndef runs(): return data.table('measured')\n",
        "src/course/__init__.py": "",
        "src/course/words.py": "'in `words.toml`'\nread('words.toml')\n",
        "src/course/words.toml": "one = 1\n",
        "src/course/checks.py": "def read(chapter):\n    return f'rows/{chapter.name}.toml'\n",
        "src/course/rows/chapter1.toml": "one = 1\n",
        "src/course/rows/chapter2.toml": "one = 1\n",
        "src/course/chapter1/__init__.py": "",
        "src/course/chapter1/figures.py": "def draw():\n    from . import claims\n    from helpers.maths import x\n",
        "src/course/chapter1/claims.py": "from helpers import runs\n",
        "src/course/chapter2/__init__.py": "",
        "src/course/chapter2/figures.py": "from helpers import maths\n",
        "data/measured.csv": "x\n",
        "data/reported/old.csv": "x\n",
        "data/reported/new.csv": "x\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "src"


def names(code, source):
    paths = (
        path.relative_to(source.parent).as_posix() for path in dependencies.files(code, source)
    )
    return {path.removeprefix("src/helpers/").removeprefix("src/") for path in paths}


ALWAYS = {"__init__.py", "widget/__init__.py", "widget/player.js"}
COURSE = {"course/__init__.py"}
CHAPTER_1 = COURSE | {
    "course/chapter1/__init__.py",
    "course/chapter1/figures.py",
    "course/chapter1/claims.py",
}
CHAPTER_2 = COURSE | {"course/chapter2/__init__.py", "course/chapter2/figures.py"}
TABLES = {"data/measured.csv", "data/reported/old.csv", "data/reported/new.csv"}


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("import math, torch", set()),
        ("from helpers import explore", ALWAYS),
        ("from helpers import tool", ALWAYS | {"tool.py"}),
        ("import helpers.maths as m", ALWAYS | {"maths.py", "tool.py"}),
        ("import helpers\nhelpers.maths.x()", ALWAYS | {"maths.py", "tool.py"}),
        ("from course.chapter2 import figures", ALWAYS | CHAPTER_2 | {"maths.py", "tool.py"}),
        ("from course.chapter1.figures import draw", ALWAYS | CHAPTER_1 | {"runs.py", "data.py", "maths.py", "tool.py", "data/measured.csv"}),
        ("import course.chapter1", COURSE | {"course/chapter1/__init__.py"}),
        ("%matplotlib inline\nfrom helpers import tool", ALWAYS | {"tool.py"}),
        ("model.eval()\nfrom helpers import tool", ALWAYS | {"tool.py"}),
        ("from course import words", COURSE | {"course/words.py", "course/words.toml"}),
        ("from course import checks, chapter2", COURSE | {"course/checks.py", "course/chapter2/__init__.py", "course/rows/chapter2.toml"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_imports_are_followed_from_module_to_module(source, code, reached):
    assert names(code, source) == reached


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
def test_a_table_counts_where_it_is_named_and_all_count_where_a_name_is_computed(
    source, code, tables
):
    assert names(code, source) == ALWAYS | {"data.py"} | tables


@pytest.mark.parametrize(
    "code",
    [
        "def broken(:",
        "importlib.import_module(f'helpers.{name}')",
        "from helpers import *\nfrom course import *",
    ],
)
def test_everything_counts_where_the_code_cannot_tell(source, code):
    assert {p for p in source.rglob("*.py")} <= set(dependencies.files(code, source))


def test_the_key_follows_what_is_reached_and_nothing_else(source, monkeypatch):
    code = "from course.chapter2 import figures\nfrom course import words"

    def changed(name, more):
        (source / name).write_text(
            (source / name).read_text() + more if (source / name).exists() else more
        )
        return dependencies.key(code, source=source)

    before = dependencies.key(code, source=source)
    for name in (
        "course/chapter1/figures.py",
        "helpers/runs.py",
        "helpers/data.py",
        "helpers/new.py",
    ):
        assert changed(name, "changed = 1\n") == before
    for name in (
        "course/chapter2/figures.py",
        "helpers/tool.py",
        "helpers/widget/player.js",
        "course/words.toml",
    ):
        assert changed(name, "# a comment\n") == before or name.endswith("js"), name
        now = changed(name, "changed = 1\n")
        assert now != before, name
        before = now
    assert changed("course/rows/chapter1.toml", "two = 2\n") == before
    assert dependencies.key(code, "3.11", source=source) != before


def test_comments_docstrings_and_layout_mean_nothing_and_all_else_does():
    plain = "def f(x):\n    return x + 1"
    for same in (
        "def f(x):\n    'Add one.'\n    return (x +\n            1)  # so",
        "# one\n\ndef f(x): return x + 1",
    ):
        assert dependencies.meaning(same) == dependencies.meaning(plain)
    for other in (
        plain + ";",
        "def f(x):\n    return x + 2",
        "def f(y):\n    return y + 1",
        "%time\n" + plain,
    ):
        assert dependencies.meaning(other) != dependencies.meaning(plain)
    assert dependencies.meaning("%time # a") != dependencies.meaning("%time # b"), (
        "what is not Python counts as it stands"
    )


def test_another_torch_or_another_processor_is_another_machine(monkeypatch):
    found = [dependencies.machine()]
    for name in ("MKL_CBWR", "ATEN_CPU_CAPABILITY"):
        monkeypatch.setenv(name, "another")
        found.append(dependencies.machine())
    monkeypatch.setattr(dependencies.importlib.metadata, "version", lambda name: f"{name} 99")
    found.append(dependencies.machine())
    monkeypatch.setattr(dependencies.Path, "read_text", lambda path: "vendor_id: another")
    assert len({*found, dependencies.machine()}) == 5


def test_the_course_own_package_is_read():
    found = {path.name for path in dependencies.files("from course.training import gnn")}
    assert {"networks.py", "compute.py"} <= found
    assert "collapse.py" not in found
    reached = {
        path.parent.name for path in dependencies.files("from course.chapter1 import checks")
    }
    assert reached & {"chapter1", "chapter3"} == {"chapter1"}, (
        "what runs an edited answer reaches what the page does"
    )


def test_three_pages_alone_depend_on_half_of_the_tables():
    every, most = dependencies.tables(), set()
    for path in (ROOT / "chapters").rglob("*.ipynb"):
        code = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        reached = dependencies.files("\n".join(cell for cell in code if "google.colab" not in cell))
        if 2 * sum(found.is_relative_to(every) for found in reached) > len([*every.glob("*.csv")]):
            most.add(path.stem)
    assert most == {"answer", "scorecard", "talk"}, "a name that is computed counts as every table"
