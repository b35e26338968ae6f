"""The tables that come with the course, and what is written by name."""

import os
import stat
import subprocess
import sys

import pytest

from course.build import files
from course.runs import sweep
from helpers import data


def test_every_table_says_where_it_comes_from_and_can_be_read():
    tables = sorted(
        p.relative_to(data.folder()).with_suffix("").as_posix()
        for p in data.folder().rglob("*.csv")
    )
    assert "reported/tree_neighbors_match" in tables
    for name in tables:
        assert (data.folder() / f"{name}.csv").read_text().startswith("# ")
        assert len(data.table(name)) > 0


def test_reported_accuracies_are_read_as_printed():
    table = data.table("reported/tree_neighbors_match").set_index("model")
    assert table.loc["GAT", "5"] == 0.41
    assert table.loc["GIN"].isna().sum() == 2


def test_an_unknown_table_is_named_beside_the_nearest():
    with pytest.raises(
        ValueError,
        match=r"name must be one of \d+ tables, such as reported/rope_models, .*, not .rope_model.",
    ):
        data.table("rope_model")


def test_what_is_no_regular_file_is_refused_and_a_link_stays_a_link(tmp_path):
    """Root, as one is on Colab, would replace /dev/null itself: here a pipe stands for it."""
    pipe, real, link = (tmp_path / name for name in ("pipe", "real.csv", "link.csv"))
    os.mkfifo(pipe)
    link.symlink_to(real)

    def writers(out):
        yield lambda: files.write(out, "a note\n")
        yield lambda: sweep.run(lambda n: {"square": n * n}, [{"n": 2}], out, command="none")

    for write in writers(pipe):
        with pytest.raises(ValueError, match=rf"a regular file, or a (new )?file .*'{pipe}'"):
            write()
    line = [sys.executable, "-m", "course.runs", "gains_by_depth", "--out", str(pipe)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "out must name a regular file" in done.stderr) == (2, True)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    for write in writers(link):
        real.unlink(missing_ok=True)
        write()
        assert link.is_symlink()
        assert real.is_file()
    before = real.read_text()
    with pytest.raises(ValueError, match="out must be a table of"):
        sweep.run(lambda m: {"square": m}, [{"m": 3}], link, command="none")
    assert real.read_text() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.csv", "pipe", "real.csv"]
