"""The runner of sweeps under real faults: killed processes and workers, a full disk, two commands at once."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from course.runs import sweep

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

SOURCE = Path(__file__).parents[1] / "src"


def square(n, pause=0.0):
    time.sleep(pause)
    return {"square": n * n}


def picky(n):
    if n == 2:
        raise ZeroDivisionError("two is not liked")
    return {"square": n * n}


class Awkward(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def awkward(n):
    raise Awkward(n, n)


def killer(n, folder):
    """Kills its own process, once, in the middle of the table."""
    mark = Path(folder) / "killed"
    if n == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": n * n}


def always_killer(n):
    os.kill(os.getpid(), signal.SIGKILL)


def pid_and_square(n, folder):
    """Leaves its process' number behind, and waits until the first one has been killed."""
    (Path(folder) / f"{n}-{os.getpid()}").touch()
    time.sleep(0.3)
    return {"square": n * n}


def when(n):
    """The process, the start and the end of a run."""
    start = time.time()
    time.sleep(0.1)
    return {"pid": os.getpid(), "start": start, "end": time.time()}


def stripped(path):
    """The rows, without the seconds."""
    return [
        {name: value for name, value in row.items() if name != "seconds"}
        for row in sweep.read(path).rows
    ]


def squares(path):
    return {row["n"]: row["square"] for row in sweep.read(path).rows}


def all_squares(count):
    return {str(n): str(n * n) for n in range(count)}


def one_sentence(caught):
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300


def test_a_table_says_how_it_was_made(tmp_path):
    out = tmp_path / "squares.csv"
    settings = sweep.grid(n=[3, 2], seed=[0, 7])
    table = sweep.run(
        lambda n, seed: {"sum": n + seed}, settings, out, command="python sum.py", notes=["sums"]
    )
    assert table[["n", "seed", "sum"]].values.tolist() == [
        [3, 0, 3],
        [3, 7, 10],
        [2, 0, 2],
        [2, 7, 9],
    ]
    assert (table["seconds"] >= 0).all()
    note, command, source = sweep.read(out).head
    assert (note, command) == ("sums", "command: python sum.py")
    for part in (
        " UTC, ",
        "seed 0 7,",
        f"{os.cpu_count()} CPU cores",
        f"torch {torch.__version__}",
        "Python 3.",
    ):
        assert part in source


def test_what_is_there_is_not_run_again_and_the_head_stays(tmp_path):
    out, seen = tmp_path / "squares.csv", []

    def counted(n):
        seen.append(n)
        return {"square": n * n}

    sweep.run(counted, sweep.grid(n=[1, 2]), out, command="first")
    before = out.read_bytes()
    sweep.run(counted, sweep.grid(n=[1, 2]), out, command="first")
    assert out.read_bytes() == before
    sweep.run(counted, sweep.grid(n=[2, 3, 1]), out, command="second")
    assert seen == [1, 2, 3]
    assert [row["n"] for row in sweep.read(out).rows] == ["2", "3", "1"]
    assert [line for line in sweep.read(out).head if line.startswith("command")] == [
        "command: first",
        "command: second",
    ]
    assert list(tmp_path.iterdir()) == [out]


def test_rows_stand_in_the_order_of_the_settings_however_they_end(tmp_path):
    settings = [{"n": 0, "pause": 1.0}, {"n": 1, "pause": 0.0}, {"n": 2, "pause": 0.0}]
    sweep.run(square, settings, tmp_path / "two.csv", jobs=2)
    sweep.run(square, settings, tmp_path / "one.csv")
    assert stripped(tmp_path / "two.csv") == stripped(tmp_path / "one.csv")
    assert [row["n"] for row in sweep.read(tmp_path / "two.csv").rows] == ["0", "1", "2"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_does_not_stop_the_others_and_is_tried_again(tmp_path, jobs):
    out = tmp_path / "squares.csv"
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="two is not liked") as caught:
            sweep.run(picky, sweep.grid(n=range(4)), out, jobs=jobs)
        assert "the first with {'n': '2'}" in caught.value.__notes__[-1]
        assert "in picky" in caught.value.__notes__[0]
        assert squares(out) == {"0": "0", "1": "1", "3": "9"}


def test_an_error_that_cannot_be_sent_between_processes_is_told_in_words(tmp_path):
    with pytest.raises(RuntimeError, match=r"Awkward: (\d) and \1"):
        sweep.run(awkward, sweep.grid(n=[1, 2]), tmp_path / "none.csv", jobs=2)


def test_a_killed_process_is_replaced_and_the_table_becomes_whole(tmp_path):
    out = tmp_path / "squares.csv"
    sweep.run(killer, sweep.grid(n=range(8), folder=[str(tmp_path)]), out, jobs=2)
    assert (tmp_path / "killed").exists()
    assert squares(out) == all_squares(8)


def test_processes_that_are_always_killed_end_it_in_one_sentence(tmp_path):
    with pytest.raises(OSError, match="killed before any run ended") as caught:
        sweep.run(always_killer, sweep.grid(n=range(3)), tmp_path / "none.csv", jobs=2)
    one_sentence(caught)


SCRIPT = """
import sys, time
from course.runs import sweep
def slow(n, seed):
    time.sleep(0.3)
    return {"square": n * n, "long": "x" * 2000}
if __name__ == "__main__":
    sweep.run(slow, sweep.grid(n=range(12), seed=[0]), sys.argv[1], command="slow", jobs=int(sys.argv[2]))
"""


@pytest.mark.parametrize(("jobs", "kills"), [(1, [(2, 0.0), (5, 0.07)]), (2, [(3, 0.1)])])
def test_killed_and_started_again_it_ends_with_the_same_table(tmp_path, jobs, kills):
    """SIGKILL to all its processes, in and between rows; every row that was there stays to the byte."""
    script = tmp_path / "slow.py"
    script.write_text(SCRIPT)
    environment = os.environ | {
        "PYTHONPATH": str(SOURCE),
        "TQDM_DISABLE": "1",
        "OMP_NUM_THREADS": "1",
    }
    out = tmp_path / "killed.csv"

    def start():
        command = [sys.executable, str(script), str(out), str(jobs)]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def rows_after(count):
        end = time.monotonic() + 120
        while len(sweep.read(out).rows) < count:
            assert time.monotonic() < end, "no rows"
            time.sleep(0.01)

    kept = []
    for count, pause in kills:
        process = start()
        rows_after(count)
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lines = out.read_text().splitlines()
        assert set(kept) <= set(lines)
        kept = [
            line for line in lines if not line.endswith("of 12 rows")
        ]  # that one is true for now
        assert count <= len(sweep.read(out).rows) < 12
    assert start().wait() == 0
    assert set(kept) <= set(out.read_text().splitlines())
    assert [row["square"] for row in sweep.read(out).rows] == [str(n * n) for n in range(12)]
    assert len(sweep.read(out).head) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed.csv", "slow.py"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk needs Linux and root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_keeps_the_rows_that_are_there_and_the_next_start_ends_it(small_disk):
    out, settings = small_disk / "squares.csv", sweep.grid(n=range(12))

    def long(n):
        return {"square": n * n, "long": "x" * 2000}

    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(40_000))
    with pytest.raises(OSError, match="the disk is full") as caught:
        sweep.run(long, settings, out, command="long")
    one_sentence(caught)
    assert sorted(path.name for path in small_disk.iterdir()) == ["ballast", "squares.csv"]
    there = squares(out)
    assert 0 < len(there) < 12
    assert there.items() <= all_squares(12).items()
    before = [line for line in out.read_text().splitlines() if not line.endswith("of 12 rows")]
    ballast.unlink()
    sweep.run(long, settings, out, command="long")
    assert squares(out) == all_squares(12)
    assert set(before) <= set(out.read_text().splitlines())


def test_two_commands_fill_one_table_at_once(tmp_path):
    out = tmp_path / "squares.csv"
    parts = [sweep.grid(n=part, pause=[0.01]) for part in (range(15), range(15, 30))]
    both = [threading.Thread(target=sweep.run, args=(square, part, out)) for part in parts]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert squares(out) == all_squares(30)


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster on this machine, with two workers in processes of their own."""
    distributed = pytest.importorskip("distributed")
    options = {
        "n_workers": 2,
        "threads_per_worker": 2,
        "processes": True,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


def test_a_cluster_makes_the_same_table(tmp_path, cluster):
    settings = sweep.grid(n=range(6), pause=[0.01])
    sweep.run(square, settings, tmp_path / "here.csv", command="squares")
    sweep.run(
        square, settings, tmp_path / "there.csv", command="squares", dask=cluster.scheduler_address
    )
    assert stripped(tmp_path / "here.csv") == stripped(tmp_path / "there.csv")
    with pytest.raises(ZeroDivisionError, match="two is not liked"):
        sweep.run(
            picky, sweep.grid(n=range(4)), tmp_path / "picky.csv", dask=cluster.scheduler_address
        )
    assert squares(tmp_path / "picky.csv") == {"0": "0", "1": "1", "3": "9"}


def test_a_worker_runs_one_row_at_a_time_whatever_threads_it_has(tmp_path, cluster):
    """Seeds and torch's threads belong to the process."""
    table = sweep.run(
        when, sweep.grid(n=range(8)), tmp_path / "when.csv", dask=cluster.scheduler_address
    )
    for _, rows in table.sort_values("start").groupby("pid"):
        assert (rows["start"].to_numpy()[1:] >= rows["end"].to_numpy()[:-1]).all()


def test_a_worker_killed_in_mid_run_costs_no_row(tmp_path, cluster):
    out, settings = tmp_path / "squares.csv", sweep.grid(n=range(12), folder=[str(tmp_path)])
    killed = []

    def kill():
        end = time.monotonic() + 60
        while not killed and time.monotonic() < end:
            for mark in tmp_path.glob("*-*"):
                killed.append(int(mark.name.split("-")[1]))
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    sweep.run(pid_and_square, settings, out, dask=cluster.scheduler_address)
    thread.join()
    assert len(killed) == 1
    assert squares(out) == all_squares(12)
    assert len(list(tmp_path.glob("*-*"))) > 12, (
        "no run was started a second time, so none was killed in the middle"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": []}, "settings must hold at least one row"),
        ({"settings": [3]}, "settings must hold at least one row, each a dictionary"),
        ({"settings": [{"n": 1}, {"m": 1}]}, "settings must all have the names"),
        ({"settings": [{"n": 1}, {"n": 1}]}, "settings must differ from each other"),
        (
            {"settings": [{"n": float("nan")}]},
            "n must be one line of text without '#', or a finite number, not nan",
        ),
        (
            {"settings": [{"n": [1]}]},
            r"n must be one line of text without '#', or a finite number, not \[1\]",
        ),
        ({"settings": [{"n": "a\nb"}]}, "n must be one line of text"),
        ({"settings": [{"n": 1, "square": 1}]}, "settings must not have the same names as results"),
        ({"jobs": 0}, "jobs must be an integer from 1 to 1024, not 0"),
        ({"jobs": 1.5}, "jobs must be an integer from 1 to 1024, not 1.5"),
        ({"threads": -1}, "threads must be an integer from 1 to 1024, not -1"),
        (
            {"dask": "tcp://127.0.0.1:1"},
            "dask must be the address of a running scheduler, not 'tcp://127.0.0.1:1'",
        ),
        (
            {"dask": "tcp://127.0.0.1:1", "jobs": 2},
            "dask must be the address of a running scheduler, .* jobs must then be 1",
        ),
        (
            {"dask": "here"},
            "dask must be the address of a running scheduler, for example tcp://host:8786",
        ),
        ({"dask": 3}, "dask must be a string, not 3"),
        ({"out": 3}, "out must be a path, not 3"),
        ({"function": 3}, "function must be a function, not 3"),
        ({"function": lambda n: n}, "function must return a dictionary of results, not 1"),
        (
            {"out": "no such folder/squares.csv"},
            "out must name a regular file, or a new file in an existing folder",
        ),
        ({"out": "."}, "out must name a regular file, or a new file in an existing folder"),
        (
            {"function": lambda n: {"square": float("inf")}},
            "square must be one line of text without '#', or a finite",
        ),
    ],
)
def test_a_bad_argument_is_named_with_what_is_allowed(tmp_path, monkeypatch, change, message):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep, "ANSWERS", 1)
    monkeypatch.chdir(tmp_path)
    good = {
        "function": lambda n, square=0: {"square": n},
        "settings": [{"n": 1}],
        "out": "squares.csv",
    }
    with pytest.raises(ValueError, match=message) as caught:
        sweep.run(**(good | change))
    one_sentence(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_something_else_is_left_alone(tmp_path):
    out = tmp_path / "squares.csv"
    sweep.run(square, sweep.grid(n=[1]), out)
    before = out.read_bytes()
    with pytest.raises(
        ValueError,
        match=r"out must be a table of \['m'\], but the columns of .* are \['n', 'square'",
    ):
        sweep.run(lambda m: {"square": m}, sweep.grid(m=[1]), out)
    with pytest.raises(ValueError, match=r"out must be a table of \['n', 'cube', 'seconds'\]"):
        sweep.run(lambda n: {"cube": n}, sweep.grid(n=[2]), out)
    assert out.read_bytes() == before
    out.write_text("n,square,seconds\n1,1")
    with pytest.raises(ValueError, match=r"row 1 of .* has too many or too few values"):
        sweep.run(square, sweep.grid(n=[1]), out)


def test_text_with_commas_and_quotes_comes_back_as_it_was(tmp_path):
    out = tmp_path / "text.csv"
    words = ['a, "b"', "", "None", " x "]
    sweep.run(lambda text: {"length": len(text)}, sweep.grid(text=words), out)
    assert [
        row["text"] for row in csv.DictReader(line for line in out.open() if line[0] != "#")
    ] == words
    sweep.run(lambda text: pytest.fail("run again"), sweep.grid(text=words), out)


def test_settings_that_are_run_together_give_one_row_each(tmp_path):
    calls = []

    def both(n, seed):
        calls.append((n, seed))
        return [{"sum": n + each} for each in seed]

    table = sweep.run(
        both, sweep.grid(n=[1, 2], seed=[0, 5]), tmp_path / "x.csv", command="none", together="seed"
    )
    assert calls == [(1, [0, 5]), (2, [0, 5])]
    assert table[["n", "seed", "sum"]].values.tolist() == [
        [1, 0, 1],
        [1, 5, 6],
        [2, 0, 2],
        [2, 5, 7],
    ]
    sweep.run(
        both,
        sweep.grid(n=[1, 2], seed=[0, 5, 9]),
        tmp_path / "x.csv",
        command="none",
        together="seed",
    )
    assert calls[2:] == [(1, [9]), (2, [9])], "only what is missing"
    with pytest.raises(ValueError, match="together"):
        sweep.run(
            both, sweep.grid(n=[3], seed=[0]), tmp_path / "x.csv", command="none", together="m"
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("notes of mine\n", "has not been changed"),
        ("a\0b\n", "has not been changed"),
        ("# a head\n", "has not been changed"),
        ("n,m\n1,2\n1,3\n", "rows 1 and 2"),
        ("n,m,seconds\n1,0x1447,0.1\n", "decimal numbers, but m in row 1"),
    ],
)
def test_a_file_that_is_no_such_table_is_left_as_it_is(text, words, tmp_path):
    out = tmp_path / "notes.csv"
    out.write_text(text)
    with pytest.raises(ValueError, match=words):
        sweep.run(lambda n: {"m": n}, [{"n": 2}], out, command="x")
    assert out.read_text() == text
