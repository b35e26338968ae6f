"""Find the modules of `helpers` and `course` and the tables on which a piece of code depends.

A page is executed again, or a claim measured again, only if its `key` changes. To compute the key,
we read the code and never run it. We follow imports from module to module, and find tables by their
names, which must be written out in the code. If a name is computed, we assume that the code depends
on every file that it could mean. Only the meaning of Python code and TOML counts, so comments,
docstrings and layout do not matter. A TOML table counts if its name occurs in a module that we
reach. The method has one blind spot: it misses a module whose functions the code obtains without an
import.
"""

import ast
import hashlib
import importlib.metadata
import os
import platform
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]  # the folder that contains both packages
PACKAGES = ("helpers", "course")
# code that imports by a computed name may import anything
DYNAMIC = frozenset({"import_module", "__import__", "iter_modules", "walk_packages", "exec"})
# this module runs the page's own code after an edit, and the page itself shows what that code
# imports
REPAIR = "course.exercises.repair"


def tables(source: Path = SOURCE) -> Path:
    """Return the `data` folder that belongs to the packages.

    The folder is beside `src` in the source tree, or inside the installed `helpers`.
    """
    inside = source / "helpers/_data"
    return inside if inside.is_dir() else source.parent / "data"


def pins(root: Path) -> str:
    """Return the pinned versions of all packages, as written in the requirement files."""
    lines = "\n".join(
        (root / name).read_text() for name in ("requirements.txt", "constraints.txt")
    ).splitlines()
    return "\n".join(filter(None, (line.split("#")[0].strip() for line in lines)))


def machine() -> str:
    """Describe those properties of the machine that can affect the last digits of a result.

    They are the versions of Python and of torch (with its build), and the kernels that torch uses
    on this processor.
    """
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.is_file() else [platform.processor()]
    kind = sorted(
        {line for line in lines if re.match(r"vendor_id|cpu family|flags|Features", line)}
    )
    settings = [
        f"{name}={os.environ.get(name)}"
        for name in ("MKL_CBWR", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
    ]
    values = [
        *sys.version_info[:2],
        importlib.metadata.version("torch"),
        platform.machine(),
        *kind,
        *settings,
    ]
    return "\n".join(map(str, values))


def files(code: str, source: Path = SOURCE) -> list[Path]:
    """Return the files on which `code` depends.

    The files are modules, files in the folders of modules, and tables.

    Args:
        code: Python source, such as a module or the cells of a notebook. A text that is not Python
            counts as depending on everything.
        source: the folder that contains the packages.

    >>> "templates.py" in {path.name for path in files("from course.build import templates")}
    True
    """
    modules: set[str] = set()
    existing = frozenset(_every_module(source)), frozenset(_every_table(source))
    names, read = _reads(code, "", source, existing)
    waiting, reached, named = list(names), set(read), set()
    while waiting:
        name = waiting.pop()
        path = _path(name, source)
        if name in modules or path is None:
            continue
        modules.add(name)
        reached.add(path)
        here = name
        if path.name == "__init__.py":
            reached |= set(_beside(path.parent))
        else:
            here = name.rpartition(".")[0]
        names, read = _reads(
            path.read_text(),
            here,
            source,
            existing,
            DYNAMIC - {"exec"} if name == REPAIR else DYNAMIC,
        )
        waiting += names
        named |= {(path.parent, name) for name in _toml(path.read_text())}
        if name != "helpers.data":  # this module reads tables for others, which name them
            reached |= read
    rooms = {name.rpartition(".")[2] for name in modules}
    for path in (path for name in PACKAGES for path in (source / name).rglob("*.toml")):
        own = (
            not re.fullmatch(r"chapter\d+", path.stem) or path.stem in rooms
        )  # the file of a chapter counts only if its chapter is reached
        # a computed name stands for all files in the folder of its module, unless the module names
        # one
        near = (
            name
            for folder, name in named
            if path.parent == folder or "/" in name or "*" not in name
        )
        if own and any(map(path.match, near)):
            reached.add(path)
    return sorted(reached)


def key(code: str, *more: str, source: Path = SOURCE) -> str:
    """Compute a hash of everything on which `code` depends, and of the texts in `more`.

    The code itself counts only if it is in `more`.

    >>> key("from course.build import files") == key("import course.build.files  # the same")
    True
    """
    digest = hashlib.sha256()
    data = tables(source)
    for path in files(code, source):
        home = data if path.is_relative_to(data) else source
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + _content(path) + b"\0")
    for text in more:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()[:16]


def meaning(code: str) -> str:
    """Return Python code in a form that ignores comments, docstrings and layout.

    If two programs have equal forms, they do the same. A text that is not Python is returned
    unchanged.

    >>> meaning("x = 1  # one") == meaning("x = (1)") != meaning("x = 2")
    True
    >>> meaning("plot();") == meaning("plot()")  # a notebook hides what the first gives
    False
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
    return ast.dump(tree) + ";" * bool(re.search(r";\s*(#.*)?$", code))


@lru_cache(maxsize=1024)
def _plain(text: str, suffix: str) -> bytes:
    if suffix == ".py":
        return meaning(text).encode()
    return repr(tomllib.loads(text)).encode()


def _content(path: Path) -> bytes:
    return (
        _plain(path.read_text(), path.suffix)
        if path.suffix in (".py", ".toml")
        else path.read_bytes()
    )


@lru_cache(maxsize=1024)
def _toml(code: str) -> set[str]:
    """Return the names of TOML files in the code, with a star for each computed part of a name."""
    names, inner = set(), set()
    for node, parent in _parents("\n".join(code.splitlines())).items():
        if isinstance(node, ast.JoinedStr):
            inner.update(node.values)
            names.add("".join(_text(part) or "*" for part in node.values))
        elif not isinstance(parent, ast.Expr) and node not in inner:
            names.add(_text(node))
    return {
        name if name != ".toml" else "*.toml"
        for name in names
        if re.fullmatch(r"[\w*./-]*\.toml", name)
    }


def _path(name: str, source: Path) -> Path | None:
    """Return the file of the module `name`, or `None` if our packages have no such module."""
    if name.split(".")[0] not in PACKAGES:
        return None
    folder = source.joinpath(*name.split("."))
    return next(
        (path for path in (folder / "__init__.py", folder.with_suffix(".py")) if path.is_file()),
        None,
    )


def _beside(folder: Path) -> Iterator[Path]:
    """Yield the files in `folder` that are not modules, such as scripts and styles."""
    for path in folder.iterdir():
        if path.is_dir():
            if not (path / "__init__.py").exists() and path.name not in (
                "_data",
                "_pages",
                "__pycache__",
            ):
                yield from _beside(path)
        elif path.suffix not in (".py", ".pyc", ".toml"):
            yield path


def _every_module(source: Path) -> set[str]:
    paths = (
        path.relative_to(source).with_suffix("")
        for name in PACKAGES
        for path in (source / name).rglob("*.py")
    )
    return {".".join(path.parts).removesuffix(".__init__") for path in paths}


def _every_table(source: Path) -> set[Path]:
    return {path for path in tables(source).rglob("*") if path.is_file()}


@lru_cache(maxsize=1024)
def _reads(
    code: str, base: str, source: Path, there: tuple, dynamic: frozenset[str] = DYNAMIC
) -> tuple[set[str], set[Path]]:
    """Return the modules that `code` imports, with their packages, and the tables that it reads."""
    plain = "\n".join("" if re.match(r"\s*[%!?]", line) else line for line in code.splitlines())
    try:
        parents = _parents(plain)
    except SyntaxError:
        return _every_module(source), _every_table(source)
    names, aliases = _imports(parents, base, source, dynamic)
    return names, _tables_read(parents, aliases, source)


@lru_cache(maxsize=4)
def _parents(code: str) -> dict[ast.AST, ast.AST]:
    """Return the parent of every node of the code's syntax tree except the root, keyed by node."""
    return {
        child: node for node in ast.walk(ast.parse(code)) for child in ast.iter_child_nodes(node)
    }


def _imports(
    nodes: Iterable[ast.AST], base: str, source: Path, dynamic: frozenset[str]
) -> tuple[set[str], dict[str, str]]:
    """Return the names of the imported modules, and what each local name stands for."""
    named: set[str] = set()
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for item in node.names:
                named.add(item.name)
                aliases[item.asname or item.name.split(".")[0]] = (
                    item.name if item.asname else item.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            around = base.split(".")[: len(base.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*around, *([node.module] if node.module else [])])
            named.add(origin)
            for item in node.names:
                if item.name == "*" and origin.split(".")[0] in PACKAGES:
                    named |= {
                        name for name in _every_module(source) if name.startswith(f"{origin}.")
                    }
                named.add(f"{origin}.{item.name}")
                aliases[item.asname or item.name] = f"{origin}.{item.name}"
        elif isinstance(node, ast.Attribute):
            if isinstance(
                node.value, ast.Name | ast.Attribute
            ):  # `import helpers`, then `helpers.data.table`
                named.add(ast.unparse(node))
        if getattr(node, "id", "") in dynamic or getattr(node, "attr", "") in dynamic - {"exec"}:
            named |= _every_module(source)  # but not after `model.eval()`
    parts = (name.split(".") for name in named if name.split(".")[0] in PACKAGES)
    return {".".join(part[: n + 1]) for part in parts for n in range(len(part))}, aliases


def _tables_read(
    parents: Mapping[ast.AST, ast.AST], aliases: dict[str, str], source: Path
) -> set[Path]:
    """Return the files in the data folder whose names occur in the code.

    If the code computes a name, it may mean any file, so all files are returned.
    """
    home, read = tables(source), set()
    module = "helpers.data"
    # the last part of a name that may be one of the two functions
    short = {"table", "folder"} | {
        name for name, full in aliases.items() if full.startswith(f"{module}.")
    }

    def meant(node: ast.AST) -> str:
        first, _, rest = ast.unparse(node).partition(".")
        return f"{aliases.get(first, first)}.{rest}".rstrip(".")

    def inside(path: Path) -> set[Path]:
        if path.is_file():
            return {path}
        return (
            {p for p in path.rglob("*") if p.is_file()}
            if path.is_dir() and path != home
            else _every_table(source)
        )

    for node in parents:
        last = getattr(node, "id", getattr(node, "attr", ""))
        if last in short and meant(node) == f"{module}.table":
            call = parents.get(node)
            literal = (
                isinstance(call, ast.Call)
                and call.func is node
                and call.args
                and _text(call.args[0])
            )
            read |= inside(home / f"{literal}.csv" if literal else home)
        elif last in short and meant(node) == f"{module}.folder":
            call = parents.get(node)
            step = parents.get(call)
            literal = isinstance(step, ast.BinOp) and step.left is call and _text(step.right)
            read |= inside(home / literal if literal else home)
        elif text := _text(node):
            mention = re.search(r"(?:^|/)data/(\S*)$", text)
            if mention and not isinstance(
                parents.get(node), ast.Expr
            ):  # a bare string is a docstring
                read |= inside(home / mention[1])
    return read


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
