"""The labs with another model than the embedded one: all that a cell prints and draws is of the model in `NAME`.

A copy of the course without the tables that were made from the embedded model runs each lab, so that a cell that reads
one of them for another model fails.
"""

import json
import re
import shutil

import pytest
from conftest import ROOT
from nbformat import v4
from tiny_models import prose_tokenizer, save, tiny

from book.execution import execute, executed

pytestmark = pytest.mark.slow
OF_THE_EMBEDDED = (
    "sensitivity_smollm2",
    "hiding_smollm2",
    "counting_smollm2",
    "telling_apart",
    "copying_prompts",
    "silenced_pairs",
)
LABS = {path.parent.name[0]: path for path in sorted((ROOT / "chapters").glob("*/lab.ipynb"))}
WITH_NAME = {
    number: path for number, path in LABS.items() if "NAME = models.DEFAULT" in path.read_text()
}
# gpt2 holds queries, keys and values in one matrix, and merges digits; lab 4 asks for none of these. It turns no pairs,
# so that in lab 5 a sentence says so and the embedded model is read
# "llama, no float64": its weights lie on a device that has no float64, as a Mac's (tests/devices.py)
RUNS = {"llama": WITH_NAME, "llama, no float64": WITH_NAME, "gpt2": "235"}
INSTEAD = ("gpt25",)
NO_FLOAT64 = f"""
import sys
sys.path.append({str(ROOT / "tests")!r})
import devices
devices.load_without_float64().__enter__()
sys.path.pop()
"""
# how a figure is written as a picture is seen on the book's own pages; here, that it can be drawn, and what it says
DRAWN = """
import html
from helpers.widget import _picture

def made(figure, alt, drawing):
    figure.draw_without_rendering()
    return f'<img alt="{html.escape(alt, quote=True)}">'

_picture._made = made
"""


@pytest.fixture
def course(tmp_path):
    """The package and its tables, but those of the embedded model."""
    root = tmp_path / "course"
    root.mkdir()
    for name in ("requirements.txt", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "data",
        root / "data",
        ignore=shutil.ignore_patterns(*(f"{n}.csv" for n in OF_THE_EMBEDDED)),
    )
    return root


def page(course, kind, number):
    """A lab with the name of a tiny decoder of a kind, and the folder of that decoder."""
    family = kind.partition(",")[0]
    folder = course / "models" / f"tiny-{family}"
    if not folder.exists():
        save(
            folder,
            tiny(family, tokenizer=prose_tokenizer(kind == "gpt2"), max_position_embeddings=1024),
        )
    path = course / "chapters" / kind / WITH_NAME[number].parent.name / "lab.ipynb"
    book = json.loads(WITH_NAME[number].read_text())
    for cell in book["cells"]:
        cell["source"] = [
            line.replace("NAME = models.DEFAULT", f"NAME = {str(folder)!r}")
            for line in cell["source"]
        ]
    if kind + number in INSTEAD:  # from that sentence on it is the page of the book
        said = next(
            k for k, cell in enumerate(book["cells"]) if "{note}" in "".join(cell["source"])
        )
        del book["cells"][said + 1 :]
    book["cells"].insert(0, v4.new_code_cell(DRAWN + NO_FLOAT64 * ("no float64" in kind)))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(book))
    return path, folder


@pytest.mark.parametrize("kind", RUNS)
def test_a_lab_follows_the_name_of_another_model(course, kind):
    """All of a kind in copies of one process, as the book is executed; a cell that raises is named with its lab."""
    told = {number: page(course, kind, number) for number in RUNS[kind]}
    execute([path for path, _ in told.values()], course)
    for number, (path, folder) in told.items():
        check(executed(path, course), folder, kind + number in INSTEAD)


def check(notebook, folder, instead):
    """Nothing printed is of another model than the one in `folder`, but where a sentence says that one stands in."""
    told = ""
    for cell in notebook.cells:
        for out in cell.get("outputs", []):
            assert out["output_type"] != "stream", (
                f"{cell.id} prints to {out.get('name')}: {out.get('text')}"
            )
            shown = "\n".join(str(value) for value in out["data"].values())
            shown = re.sub(
                r"`[^`]*`|data:image/[^\"]*", "", shown
            )  # a command to be run needs the whole path
            assert folder.parent.name + "/" not in shown, (
                f"{cell.id} shows the whole path of the model"
            )
            assert not re.search(r"\bnan\b|\bNone\b", shown), (
                f"{cell.id} shows a number that is none:\n{shown[:2000]}"
            )
            assert instead or "SmolLM2" not in shown, (
                f"{cell.id} speaks of the embedded model:\n{shown[:2000]}"
            )
            told += shown
    assert folder.name in told
    assert ("what follows is measured in SmolLM2" in told) == instead
    assert instead or "> **Answer.**" in told


def test_the_tables_of_the_embedded_model_are_where_the_test_takes_them_from():
    for name in OF_THE_EMBEDDED:
        assert "SmolLM2" in (ROOT / f"data/{name}.csv").read_text()[:2000]
