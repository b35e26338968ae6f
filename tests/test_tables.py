"""Tables of `data/` that pages show as they are."""

import csv
import importlib.util

import pytest
import tables
from conftest import ROOT


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("benchmarks_live", ROOT / "benchmarks/live.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_times_of_the_live_model_say_where_they_come_from(benchmark):
    lines = (ROOT / benchmark.OUT).read_text().splitlines()
    assert lines[1] == "# " + benchmark.head()[1]
    assert all(word in lines[2] for word in ("load", "cores", "torch", "onnxruntime-web"))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert tuple(rows[0]) == benchmark.COLUMNS
    timed = {row["what"]: row for row in rows if row["PyTorch"]}
    assert list(timed) == [f"{n} tokens, all maps" for n in benchmark.LENGTHS]
    for row in timed.values():
        page, native, times = (
            float(row[name]) for name in ("in the page", "native runtime", "page / native")
        )
        assert (
            (page - 0.005) / (native + 0.005) - 0.05
            <= times
            <= (page + 0.005) / (native - 0.005) + 0.05
        )


def test_the_table_is_written_as_it_is_read(benchmark, tmp_path):
    given = [
        dict(zip(benchmark.COLUMNS, ("a, b", "s", "1.00", "0.50", "0.25", "2.0"), strict=True))
    ]
    path = tmp_path / "t.csv"
    path.write_text(benchmark.written(given, ["What <it> is", "the command", "  when"]))
    made = tables.shown(path)
    assert "<caption>What &lt;it&gt; is</caption>" in made
    assert '<th scope="row">a, b</th><td>s</td><td>1.00</td>' in made
    assert "the command<br>when" in made


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "# head\na,b\n1\n"])
def test_a_table_without_a_head_or_with_a_short_row_is_refused(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match="rows of one length"):
        tables.shown(tmp_path / "t.csv")


def test_about_shows_the_times_of_the_live_model(visit):
    page = visit("chapters/about.html")
    assert page.get_by_text("256 tokens, all maps").count() == 1
