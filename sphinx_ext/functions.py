"""Provide the directive `{functions} module …`, which lists the public functions of modules.

Each entry has the signature, the docstring and the code. We read the source and do not import it.
So the page needs no torch, and a docstring's shapes and equations appear as they are written.
"""

import ast
import html
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def public(module: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """Return the functions and classes that have a docstring and no leading underscore.

    The result is in the order of the file.
    """
    defined = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node for node in defined if not node.name.startswith("_") and ast.get_docstring(node)]


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Return the signature of a function or a class as text."""
    if isinstance(node, ast.ClassDef):
        constructor = next(
            (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None
        )
        arguments = constructor.args.args[1:] + constructor.args.kwonlyargs if constructor else []
        return f"class {node.name}({', '.join(a.arg for a in arguments)})"
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returned}"


def words(text: str) -> str:
    """Convert a paragraph of a docstring to HTML, with names in code type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split())))


def described(path: Path, name: str) -> list[nodes.Node]:
    """Return a section for a module, with its docstring and an entry for each function."""
    text = path.read_text()
    tree = ast.parse(text)
    title = f"helpers.{name.replace('/', '.')}"
    section = nodes.section(ids=[title.replace(".", "-")])
    section += nodes.title(text=title)
    section += nodes.paragraph(
        text=" ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    )
    for node in public(tree):
        first, _, details = ast.get_docstring(node).partition("\n\n")
        code = highlight(
            ast.get_source_segment(text, node), PythonLexer(), HtmlFormatter(nowrap=True)
        )
        section += nodes.raw(
            "",
            f'<div class="function" id="{title}.{node.name}"><p>'
            f"<code>{html.escape(signature(node))}</code><br>{words(first)}</p>"
            + (f"<pre>{html.escape(details)}</pre>" if details.strip() else "")
            + (
                f'<details><summary>code of {node.name}</summary><div class="highlight"><pre '
                f'tabindex="0">{code}</pre></div></details></div>'
            ),
            format="html",
        )
    return [section]


class Functions(Directive):
    """Show the public functions of modules on a page, with the directive `{functions}`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        env = self.state.document.settings.env
        package = Path(env.srcdir) / "src/helpers"
        sections = []
        for name in self.arguments[0].split():
            path = (
                package / f"{name}.py"
                if (package / f"{name}.py").exists()
                else package / name / "__init__.py"
            )
            env.note_dependency(str(path))
            sections += described(path, name)
        return sections


def setup(app):
    app.add_directive("functions", Functions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
