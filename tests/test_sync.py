"""`make sync` and the set-up cell that it writes: nothing of a contributor's is lost, and failure is one sentence."""

import json
import os
import re
import subprocess
import sys

import pytest
import sync

from book import assignments

URL = "https://github.com/somebody/attn.course"
SETUP = sync.set_up(URL)


def written(path):
    path.write_text(sync.cleaned(path, URL))
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


OLD = 'import sys\nif "google.colab" in sys.modules: ...'


@pytest.mark.parametrize(
    ("cells", "after"),
    [
        ([("markdown", "# New"), ("code", "import torch")], [SETUP, "# New", "import torch"]),
        ([("markdown", "# Old"), ("code", OLD), ("code", "x = 1")], ["# Old", SETUP, "x = 1"]),
        ([("markdown", "# Text")], [SETUP, "# Text"]),
    ],
    ids=["added in front", "replaced where it stands", "also without code"],
)
def test_the_set_up_cell_is_there_once_and_nothing_is_overwritten(tmp_path, cells, after):
    path = tmp_path / "page.ipynb"
    path.write_text(assignments.notebook(cells))
    assert written(path) == after
    assert written(path) == after, "a second time nothing changes"


@pytest.fixture
def cell(tmp_path):
    """Run the set-up cell in a Python of its own that has the standard library and nothing else."""

    def run(colab, installed):
        if installed:
            (tmp_path / "helpers").mkdir()
            (tmp_path / "helpers/__init__.py").write_text("import torch")
        before = "import sys\nclass Shell:\n    def system(self, command): print(command)\nget_ipython = Shell\n"
        pretend = 'sys.modules["google.colab"] = sys\n' if colab else ""
        after = '\nprint([m for m in ("torch", "numpy", "matplotlib", "IPython", "ipywidgets") if m in sys.modules])'
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [sys.executable, "-S", "-c", before + pretend + SETUP + after]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_elsewhere_the_set_up_cell_installs_nothing(cell):
    assert cell(colab=False, installed=True).stdout.strip() == "[]"


def test_on_colab_it_gets_the_newest_commit_and_imports_nothing_that_pip_may_replace(cell):
    first, last = cell(colab=True, installed=True).stdout.strip().splitlines()
    assert "--force-reinstall" in first, "the version stays, so pip would keep an older commit"
    assert "--no-deps" in first, "what Colab has is not replaced"
    assert last == "[]"


@pytest.mark.parametrize("colab", [True, False])
def test_where_it_cannot_be_installed_one_sentence_says_so(cell, colab):
    done = cell(colab, installed=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: git+{URL} is not installed: a wrong address, or no network?"


def test_a_copy_without_an_address_installs_nothing_and_says_what_to_do():
    done = subprocess.run(
        [sys.executable, "-S", "-c", sync.set_up("")],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "does not know where" in done.stderr
    assert "make sync" in done.stderr
    assert "pip install" not in sync.set_up("")


def test_the_set_up_cell_asks_nobody_and_is_pinned_where_a_commit_is_named():
    assert "GIT_TERMINAL_PROMPT=0" in SETUP, "git would wait for ever for a password"
    assert "-qq" not in SETUP, "pip's errors are shown"
    assert f'"git+{URL}@abc123"' in sync.set_up(URL, "abc123")


@pytest.mark.parametrize("source", [SETUP, sync.set_up("")])
def test_the_set_up_cell_is_short(source):
    assert len(source.splitlines()) <= 7
    assert all(len(line) <= 88 for line in source.splitlines())


@pytest.mark.parametrize(
    "remote",
    [URL, f"{URL}.git", f"{URL}/", "git@github.com:somebody/attn.course.git", "ssh://git@github.com/somebody/attn.course.git",
     "ssh://git@github.com:22/somebody/attn.course", "https://user:token@github.com/somebody/attn.course"],
)  # fmt: skip
def test_an_address_is_read_from_what_git_calls_a_remote(remote):
    assert sync.address(remote) == URL


@pytest.mark.parametrize(
    "remote",
    ["", "/srv/course", "git@gitlab.com:group/sub/course.git", "file:///srv/course", "https://example.org/a/b", "https://github.com/alone", "https://github.com/a/b/c",
     "https://github.com.example.org/a/b", "git@github.com:../x", "https://github.com/a/.."],
)  # fmt: skip
def test_any_other_remote_is_refused_with_a_sentence(remote):
    with pytest.raises(ValueError, match=r"must be on github\.com"):
        sync.address(remote)


def test_a_token_in_a_remote_is_not_printed(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_REPOSITORY", "https://me:pa@ss-secret@gitlab.com/a/b")
    sync.chosen()
    printed = capsys.readouterr().out
    assert "'https://gitlab.com/a/b'" in printed
    assert "secret" not in printed


@pytest.mark.parametrize(
    ("url", "page"),
    [
        (URL, "https://somebody.github.io/attn.course/"),
        ("https://github.com/Somebody/somebody.github.io", "https://somebody.github.io/"),
    ],
)
def test_where_a_site_is_published(url, page):
    assert sync.site(url) == page


def test_every_place_gets_the_address_and_loses_it_again(root):
    for url in (URL, ""):
        for name, texts in sync.blocks(url).items():
            text = sync.filled(root / name, texts)
            if "address" not in texts:
                continue
            assert (URL in text) == (url != "" and name != "README.md"), name
            assert ("somebody.github.io" in text) == (
                url != "" and name in ("README.md", "pyproject.toml")
            ), name
    with pytest.raises(ValueError, match="must have the line"):
        sync.filled(root / "LICENSE", {"address": ""})


def test_launch_buttons_open_the_branch_that_a_fork_has(monkeypatch):
    said = {
        ("symbolic-ref", "--short", "refs/remotes/origin/HEAD"): "origin/master",
        ("branch", "--show-current"): "mine",
    }
    monkeypatch.setattr(sync, "git", lambda *command: said.get(command, ""))
    monkeypatch.delenv("COURSE_BRANCH", raising=False)
    assert sync.opened(check=False) == "master", "the remote's default branch"
    said.pop(("symbolic-ref", "--short", "refs/remotes/origin/HEAD"))
    said["branch", "--show-current"] = "mine"
    assert sync.opened(check=False) == "mine"
    said.clear()
    assert sync.opened(check=False) == "main"
    monkeypatch.setenv("COURSE_BRANCH", "published")
    assert sync.opened(check=False) == "published"
    assert sync.opened(check=True) == "main", "a check reads the one that is written"


def test_no_address_is_invented(root):
    """What nobody owns is never linked or installed from: the only address is the one that is set, and none is."""
    named = subprocess.run(
        ["git", "grep", "-lE", r"github\.(com|io)/connection-bottlenecks|connection-bottlenecks\.github"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert set(named.stdout.split()) <= {"tests/test_sync.py"}


def test_readme_lists_the_chapters_that_are_there(root):
    for title in sync.titles():
        assert title in (root / "README.md").read_text(), (
            "run `make sync`: README lists the chapters that are there"
        )


def test_the_readme_s_times_are_those_of_the_table(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(sync, "ROOT", tmp_path)
    head = "step,what,clock,processor,load,runs,cores,machine,on\n"
    (tmp_path / "benchmarks/times.csv").write_text(
        head + "check,`make check`,80,180,0.1,3,2,Some CPU,2026-01-02\n"
    )
    where = "2 cores of Some CPU, load 0.1 before the run, 2026-01-02, median of 3 runs"
    assert f"| `make check` | 80 s | 3.0 minutes | {where} |" in sync.times()


def test_workflows_run_what_was_tried(root):
    """A tag can be moved to other code; a commit cannot."""
    text = "\n".join(path.read_text() for path in (root / ".github/workflows").glob("*.yml"))
    used = re.findall(r".*uses:.*", text)
    assert used
    for line in used:
        pinned = re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)
        assert pinned, f"{line}: pin the commit, and name the version"
