"""Write what must be the same in several files.

These are the repository's address, the notebooks' set-up cell and the list of chapters. The address
is defined in one place, `[project.urls]` in pyproject.toml. `make sync` takes it from
`COURSE_REPOSITORY` or from git's remote `origin`, and writes it there and into all files that need
it. If neither names a repository on GitHub, from which Colab opens notebooks, the address in
pyproject.toml stays. While it is empty there are no launch buttons, and the set-up cell says what
to set. `COURSE_COMMIT` fixes the version that the set-up cell installs. Launch buttons open the
notebooks of `COURSE_BRANCH`, or of the remote's default branch, or of the current branch. `--check`
changes nothing and fails if something differs.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from book.pages import ROOT, notebooks
from book.repository import repository, site

SETUP = """\
import importlib.util, sys  # On Colab, this cell installs the course.
course = "git+{url}"
if "google.colab" in sys.modules:
    get = f"GIT_TERMINAL_PROMPT=0 pip install -q --no-deps --force-reinstall {{course}}"
    get_ipython().system(f"{{get}} && pip install -q connection-bottlenecks")
if not importlib.util.find_spec("helpers"):
    raise ImportError(f"{{course}} is not installed: a wrong address, or no network?")"""
SETUP_WITHOUT = """\
import importlib.util  # On Colab ("google.colab"), this cell installs the course.
if not importlib.util.find_spec("helpers"):
    raise ImportError("the course is not installed, and this copy does not know where "
                      "to get it: run `make sync` in a clone that has a git remote")"""
REMOTE = re.compile(
    r"(?:https://|ssh://)?(?:[\w.-]+(?::[^@/\s]*)?@)?github\.com(?::\d+/|[/:])"
    r"([A-Za-z0-9][\w.-]*)/([\w.-]+?)(?:\.git)?/*"
)
# the marks of a block that we write, which are `#` in every other file
MARKS = {".md": ("<!--", " -->")}


def address(remote: str) -> str:
    """Return the web address of a repository, from an address of git or of a workflow.

    Raises:
        ValueError: if the address is not that of a repository on GitHub.
    """
    match = REMOTE.fullmatch(remote.strip())
    if not match or match[2] in (".", ".."):
        raise ValueError(
            f"the repository must be on github.com, such as https://github.com/owner/name, not "
            f"{without_token(remote)!r}"
        )
    return f"https://github.com/{match[1]}/{match[2]}"


def without_token(remote: str) -> str:
    """Remove the credentials from a remote's address, so that a log may show it.

    >>> without_token("https://me:secret@example.org/a/b")
    'https://example.org/a/b'
    """
    return re.sub(r"(?<=//)[^/]*@", "", remote)


def git(*command: str) -> str:
    """Return what a git command prints, or "" if the command fails."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def opened(check: bool) -> str:
    """Return the branch whose notebooks the launch buttons open.

    With `check` we use the branch in _config.yml.
    """
    if check:
        written = re.search(r"^  branch: (\S+)$", (ROOT / "_config.yml").read_text(), re.M)
        return written[1] if written else "main"
    default = git("symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    return os.environ.get("COURSE_BRANCH") or default or git("branch", "--show-current") or "main"


def chosen() -> str:
    """Return the repository's address to write.

    We take the workflow's address, or git's, or the present one.
    """
    named = os.environ.get("COURSE_REPOSITORY", "")
    if not named:
        named = git("remote", "get-url", "origin")
    try:
        return address(named) if named else repository()
    except ValueError as error:
        print(f"{error}; the address stays {repository() or 'empty'}")
        return repository()


def set_up(url: str, commit: str = "") -> str:
    """Return the source of the first cell of every notebook."""
    return SETUP.format(url=url + (f"@{commit}" if commit else "")) if url else SETUP_WITHOUT


def cleaned(path: Path, url: str, commit: str = "") -> str:
    """Return a notebook with the set-up cell and without outputs, counts and widget state.

    If the first code cell is not a set-up cell, we add one at the top, because the existing cell is
    part of the page.
    """
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if not code or "google.colab" not in "".join(code[0]["source"]):
        code.insert(0, {"cell_type": "code", "id": "set-up"})
        notebook["cells"].insert(0, code[0])
        # the first version of the format with cell ids
        notebook["nbformat_minor"] = max(5, notebook["nbformat_minor"])
    code[0]["source"] = set_up(url, commit).splitlines(keepends=True)
    code[0]["metadata"] = {"slideshow": {"slide_type": "skip"}, "tags": ["remove-cell"]}
    for cell in code:
        cell["outputs"], cell["execution_count"] = [], None
    metadata = {
        k: v for k, v in notebook["metadata"].items() if k in ("lecture", "workshop", "accelerator")
    }
    notebook["metadata"] = {
        **metadata,
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def blocks(url: str, branch: str = "main") -> dict[str, dict[str, str]]:
    """Return the new content of the marked blocks of each file."""
    buttons = f"""\
repository:
  url: {url}
  branch: {branch}
launch_buttons:
  colab_url: https://colab.research.google.com
  notebook_interface: jupyterlab
html:
  use_repository_button: true
  use_issues_button: true
"""
    clone = f"git clone {url} && cd {url.split('/')[-1]}\n" if url else ""
    return {
        "_config.yml": {"address": buttons if url else ""},
        "pyproject.toml": {
            "address": f'Repository = "{url}"\nDocumentation = "{site(url)}"\n' if url else ""
        },
        "CITATION.cff": {"address": f"repository-code: {url}\n" if url else ""},
        "README.md": {
            "address": f"**[Read it]({site(url)})**; nothing needs installing.\n" if url else "",
            "chapters": "The course has these chapters:\n\n" + "\n".join(titles()) + "\n",
        },
        "chapters/making.md": {"times": times()},
        "chapters/about.md": {"address": f"```bash\n{clone}make lab\n```\n"},
    }


def times() -> str:
    """Return the table with the times of each command, as `make times` measured them."""
    rows = list(csv.DictReader((ROOT / "benchmarks/times.csv").open()))
    if not rows:
        return "Not measured since either changed much.\n"
    lines = ["| command | wall-clock time | processor time | measured on |", "|---|---|---|---|"]
    for row in rows:
        clock, cpu = (
            f"{s / 60:.1f} minutes" if (s := float(row[name])) > 90 else f"{s:.0f} s"
            for name in ("clock", "processor")
        )
        where = (
            f"{row['cores']} cores of {row['machine']}, load {row['load']} before the run, "
            f"{row['on']}"
        )
        where += f", median of {row['runs']} runs" * (row["runs"] != "1")
        lines.append(f"| {row['what']} | {clock} | {cpu} | {where} |")
    return "\n".join(lines) + "\n"


def filled(path: Path, texts: dict[str, str]) -> str:
    """Return the text of a file with its marked blocks filled in, from `name: …` to `end`.

    Raises:
        ValueError: if the file does not have a block with one of the names.
    """
    text = path.read_text()
    opening, closing = MARKS.get(path.suffix, ("#", ""))
    for name, new in texts.items():
        block = re.compile(
            rf"({opening} {name}: `make sync` writes this{closing}\n).*?({opening} end{closing}\n)",
            re.S,
        )
        if not block.search(text):
            raise ValueError(
                f"{path.name} must have the line `{opening} {name}: `make sync` writes "
                f"this{closing}`, and `{opening} end{closing}`"
            )
        text = block.sub(lambda match, new=new: match[1] + new + match[2], text)
    return text


def titles() -> list[str]:
    """Return the numbers and titles of the existing chapters, as a list."""
    numbered = []
    for path in notebooks():
        if path.stem == "lesson":
            cells = json.loads(path.read_text())["cells"]
            title = next(
                "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
            ).splitlines()[0]
            numbered.append(f"{path.parent.name.split('-')[0]}. {title.removeprefix('# ')}")
    return numbered


def main() -> int:
    check = "--check" in sys.argv
    url = repository() if check else chosen()
    commit = "" if check else os.environ.get("COURSE_COMMIT", "")
    contents = {path: cleaned(path, url, commit) for path in notebooks()}
    contents |= {
        ROOT / name: filled(ROOT / name, texts)
        for name, texts in blocks(url, opened(check)).items()
    }
    stale = [path for path, text in contents.items() if path.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is not as `make sync` writes it")
        else:
            path.write_text(contents[path])
            print(f"wrote {path.relative_to(ROOT)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
