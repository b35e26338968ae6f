"""Write what must be the same everywhere: the repository's address, the notebooks' set-up cell, the list of chapters.

The address stands in pyproject.toml; run `make sync` after changing it. `--check` changes nothing and
fails where something differs.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from pages import ROOT, notebooks

SETUP = """\
import importlib.util, sys  # on Colab, get the course's package; elsewhere do nothing
course = "git+{url}"
if "google.colab" in sys.modules:
    get = f"pip install -qqq --no-deps --force-reinstall {{course}}"  # the newest commit
    get_ipython().system(f"{{get}} && pip install -qqq connection-bottlenecks")
if not importlib.util.find_spec("helpers"):
    raise ImportError(f"the course is not here; with a network: pip install {{course}}")"""
CHAPTERS = re.compile(r"(<!-- chapters: `make sync` writes this -->\n).*?(\n<!-- -->)", re.S)
MENTIONS = ("_config.yml", "README.md", "CITATION.cff", "chapters/about.md", "chapters/welcome.md")


def repository() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]


def cleaned(path: Path) -> str:
    """The notebook with the set-up cell, and without outputs, counts and widget state.

    A notebook whose first code cell is none gets one at the top: what stands there is somebody's work.
    """
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if not code or "google.colab" not in "".join(code[0]["source"]):
        code.insert(0, {"cell_type": "code", "id": "set-up"})
        notebook["cells"].insert(0, code[0])
        notebook["nbformat_minor"] = max(5, notebook["nbformat_minor"])  # the first that knows ids
    code[0]["source"] = SETUP.format(url=repository()).splitlines(keepends=True)
    code[0]["metadata"] = {"slideshow": {"slide_type": "skip"}, "tags": ["remove-cell"]}
    for cell in code:
        cell["outputs"], cell["execution_count"] = [], None
    kept = {k: v for k, v in notebook["metadata"].items() if k in ("lecture", "accelerator")}
    notebook["metadata"] = {
        **kept,
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def addressed(path: Path, old: str) -> str:
    """The file with the address written before, of repository and site, replaced by the one in pyproject.toml."""
    new, text = repository(), path.read_text()
    for name in (str, site, lambda url: url.removeprefix("https://github.com/")):
        text = text.replace(name(old), name(new))
    return CHAPTERS.sub(lambda match: match[1] + contents() + match[2], text)


def site(url: str) -> str:
    """Where GitHub publishes the pages of a repository."""
    owner, name = url.rstrip("/").split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"


def contents() -> str:
    """The chapters that are there, by number and title."""
    found = []
    for path in notebooks():
        if path.stem == "lesson":
            cells = json.loads(path.read_text())["cells"]
            title = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown").splitlines()[0]
            found.append(f"{path.parent.name.split('-')[0]}. {title.removeprefix('# ')}")
    return f"There now: {'; '.join(found)}.{' The other subjects come later.' * (len(found) < 6)}"


def main() -> int:
    old = re.search(r"^\s+url: (\S+)$", (ROOT / "_config.yml").read_text(), re.M)[1]
    wanted = {path: cleaned(path) for path in notebooks()}
    wanted |= {ROOT / name: addressed(ROOT / name, old) for name in MENTIONS}
    stale = [path for path, text in wanted.items() if path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not as `make sync` writes it")
        return bool(stale)
    for path in stale:
        path.write_text(wanted[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
