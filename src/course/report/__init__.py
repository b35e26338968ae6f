"""Apply the course's measures to any decoder, and write one page and one JSON, by chapter.

python -m course.report Qwen/Qwen2.5-0.5B-Instruct --out reports/

It works on any decoder that transformers can load. If a measure does not apply to a model, the
report says why. See the book's page "Reports".

A section of the report is a row of `sections.toml` and two functions of its name. The one in
`measuring` returns numbers, with the labs' own measures and, in the full plan, with their settings.
The one in `findings` makes the figure from these numbers and names the values and the case for
which the row has words. The page's HTML is a template, `page.jinja`. Sections with the same
weights, plan, floating-point format, seed and versions (`store.marks`) share one JSON, to which a
later run adds. Each section records the command, the machine and the date. `tests/test_report.py`
compares the numbers with the labs and runs every section on nine kinds of decoder. A model appears
in the table of the page *Reports* if its JSON is in `data/reports`, and the JSON must fit
`src/course/report/schema.json`.
"""

from course.report.page import comparison, html
from course.report.runner import Files, run
from course.report.sections import SECTIONS
from course.report.store import SCHEMA, check, committed, read

__all__ = ["SCHEMA", "SECTIONS", "Files", "check", "committed", "comparison", "html", "read", "run"]
