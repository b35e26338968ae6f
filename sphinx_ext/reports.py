"""Show a model's committed report, or the table of all reports, drawn from `data/reports/*.json`.

```{reports} table ``` ```{reports} SmolLM2-135M-Instruct ```
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive


class Reports(Directive):
    """Show reports on a page, with the directive `{reports}`."""

    required_arguments = 1

    def run(self):
        from course.report import committed, page

        env = self.state.document.settings.env
        for path in sorted((Path(env.srcdir) / "data/reports").glob("*.json")):
            env.note_dependency(str(path))
        for path in sorted((Path(env.srcdir) / "src/course/report").glob("*.*")):
            env.note_dependency(str(path))
        reports, name = committed(), self.arguments[0]
        if name == "table":
            return [nodes.raw("", page.inside(page.comparison(reports)), format="html")]
        chosen = [report for report in reports if report["model"]["name"] == name]
        if not chosen:
            raise self.error(f"no report of {name!r} in data/reports")
        return [nodes.raw("", page.inside(page.body(chosen, ".")), format="html")]


def write_claims(app, failed):
    """Write `claims.json` into the site, next to the start page.

    The file has the rows that the scorecard's cell left in its page.
    """
    page = Path(app.outdir) / "chapters/scorecard.html"
    match = (
        re.search(
            r'<script type="application/json" id="claims">(.*?)</script>', page.read_text(), re.S
        )
        if page.is_file()
        else None
    )
    if match and not failed:
        rows = json.loads(match[1])
        (Path(app.outdir) / "claims.json").write_text(
            json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        )


def setup(app):
    app.add_directive("reports", Reports)
    app.connect("build-finished", write_claims)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
