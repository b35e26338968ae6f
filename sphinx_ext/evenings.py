"""Provide the directive `{evening} five 1`, which shows what to do on an evening of a path.

It shows the computed minutes and the one handout of the evening. The paths are in
`chapters/plans/evenings.yml`. `{evening} engineer 1` is the only evening of two hours.
"""

import html
import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

from book import assignments, reading

PLANS = "chapters/plans/evenings.yml"
STEP = re.compile(r"^### (\d+)\. .+ \((\d+) minutes?\)", re.M)


def plan(root: Path) -> dict[str, list[dict]]:
    """Read the evenings of each path, keyed by the name of the path."""
    return yaml.safe_load((root / PLANS).read_text())


def text(path: Path) -> str:
    """Return the Markdown of a notebook."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def minutes(root: Path, part: dict) -> int:
    """Return how many minutes a part of an evening takes.

    The minutes are stated in the part, follow from its steps or exercises, or are computed from its
    text.
    """
    if "do" in part:
        return part["minutes"]
    if "exercises" in part:
        exercises = [assignments.exercise(root, f"{number}") for number in part["exercises"]]
        return sum(
            int(re.search(r"^●+ .*?(\d+) minutes$", "".join(cells[0]["source"]), re.M)[1])
            for cells in exercises
        )
    path = root / f"chapters/{part['page']}.ipynb"
    workshop = json.loads(path.read_text())["metadata"].get("workshop")
    if "steps" in part:
        return sum(int(m) for number, m in STEP.findall(text(path)) if int(number) in part["steps"])
    return workshop["minutes"] if workshop else reading.minutes(path, part.get("sections", 0))


def total(root: Path, evening: dict) -> int:
    """Return how many minutes an evening takes."""
    return sum(minutes(root, part) for part in evening["parts"])


def named(root: Path, part: dict) -> str:
    """Return a link to a part as HTML, with how much of it belongs to the evening."""
    if "do" in part:
        return f'<a href="{part["link"]}">{html.escape(part["do"])}</a>'
    if "exercises" in part:
        chapter = assignments.folder_of(root, part["exercises"][0])
        numbers = [f"{number}" for number in part["exercises"]]
        listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else numbers[0]
        return f'Exercises <a href="{chapter}/exercises.html">{listed}</a>'
    path = root / f"chapters/{part['page']}.ipynb"
    title = re.search(r"^# (.+)$", text(path), re.M)[1]
    link = f'<a href="{part["page"]}.html">{html.escape(title)}</a>'
    if "steps" in part:
        return f"{link}, steps {part['steps'][0]} to {part['steps'][-1]}"
    if "sections" in part:
        headings = re.findall(r"^## (.+)$", text(path), re.M)
        return f"{link}, up to the end of “{html.escape(headings[part['sections'] - 1])}”"
    return link


class Evening(Directive):
    """Show what to do on one evening of a path, with the directive `{evening}`."""

    required_arguments = 2

    def run(self):
        self.state.document.settings.env.note_reread()
        root = Path(self.state.document.settings.env.srcdir)
        path, number = self.arguments[0], int(self.arguments[1])
        evening = plan(root)[path][number - 1]
        rows = "".join(
            f"<li>{named(root, part)}: {minutes(root, part)} min</li>" for part in evening["parts"]
        )
        summary = (
            f"<p>You learn {html.escape(evening['learn'])}. <strong>{total(root, evening)} "
            "minutes.</strong></p>"
        )
        if path == "five":
            file = f"evening-{number}.ipynb"
            summary += (
                f'<p><a href="../teaching/{file}" download>Download the notebook of this '
                "evening</a> to write in.</p>"
            )
        return [nodes.raw("", f'{summary}<ol class="evening">{rows}</ol>', format="html")]


BEYOND = "The part for the five evenings ends here. You can read the rest later."


def ends(root: Path) -> dict[str, int]:
    """Return how many sections of each page the five evenings need, keyed by page.

    Pages that are in no evening are missing.
    """
    parts = [
        part for evening in plan(root)["five"] for part in evening["parts"] if "sections" in part
    ]
    return {f"chapters/{part['page']}": part["sections"] for part in parts}


def mark(app, doctree, docname):
    """Mark on lessons and labs what the five evenings leave out.

    A thin line shows where they stop in a lesson. A lesson or lab that they skip gets a note below
    its title.
    """
    if not re.fullmatch(r"chapters/\d-[^/]+/(lesson|sinks|lab)", docname):
        return
    whole = next(iter(doctree.findall(nodes.section)), None)
    if whole is None or not (Path(app.srcdir) / PLANS).is_file():  # this book has no such paths
        return
    sections = [child for child in whole.children if isinstance(child, nodes.section)]
    needed = ends(Path(app.srcdir)).get(docname, 0)
    line = nodes.raw("", f'<p class="beyond"><small>{BEYOND}</small></p>', format="html")
    if needed and needed < len(sections):
        whole.insert(whole.index(sections[needed]), line)
    elif not needed:
        whole.insert(
            1,
            nodes.raw(
                "",
                '<p class="beyond"><small>The five evenings do not need this page.</small></p>',
                format="html",
            ),
        )


def setup(app):
    app.add_directive("evening", Evening)
    app.connect("doctree-resolved", mark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
