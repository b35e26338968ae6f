"""Measure any decoder with the course's measures, and write a report as one page and one JSON file.

python -m course.report Qwen/Qwen2.5-0.5B-Instruct --out reports/

The report has sections for the chapters of the course. It works on any decoder that transformers
can load. If a measure does not apply to a model, the report says why. See the book's page
"Reports".

A section of the report is a row of `sections.toml` and two functions with the section's name. The
function in `measuring` returns numbers. It uses the measures of the labs and, in the full plan,
their settings. The function in `findings` draws the figure from these numbers, and it selects which
of the row's sentences applies. The page's HTML is a template, `page.jinja`.

Sections with the same weights, plan, floating-point format, seed and versions (`store.marks`) share
one JSON file, to which a later run adds its sections. Each section records the command, the machine
and the date. `tests/test_report.py` compares the numbers with those of the labs and runs every
section on nine kinds of decoder. A model appears in the table of the page *Reports* if its JSON
file is in `data/reports`. The JSON must fit `src/course/report/schema.json`.
"""

from course.report.page import comparison, html
from course.report.runner import Files, run
from course.report.sections import SECTIONS
from course.report.store import SCHEMA, check, committed, read

__all__ = ["SCHEMA", "SECTIONS", "Files", "check", "committed", "comparison", "html", "read", "run"]
