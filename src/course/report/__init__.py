"""The course's measures on any decoder: one page and one JSON, by chapter.

python -m course.report Qwen/Qwen2.5-0.5B-Instruct --out reports/

Works on what transformers loads as a decoder; what does not apply to a model says why. See the
book's page "Reports".

A section of `course.report` is a row of `sections.toml` and two functions of its name: the one in
`measuring` gives numbers, by the labs' own measures and, with the full plan, with their settings;
the one in `findings` makes the figure of these numbers alone, and names the values and the case for
which the row has the words. The page's HTML is a template, `page.jinja`. Sections of the same
weights, plan, number type, seed and versions (`store.marks`) are one JSON, to which a later run
adds; each says which command made it, on what and when. `tests/test_report.py` holds the numbers
against the labs and runs every section on nine makes of decoder. A model joins the table of the
page *Reports* when its JSON lies in `data/reports`; it must fit `src/course/report/schema.json`.
"""

from course.report.page import comparison, html
from course.report.runner import Files, run
from course.report.sections import SECTIONS
from course.report.store import SCHEMA, check, committed, read

__all__ = ["SCHEMA", "SECTIONS", "Files", "check", "committed", "comparison", "html", "read", "run"]
