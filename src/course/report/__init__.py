"""The course's measures on any decoder: one page and one JSON, by chapter.

python -m course.report Qwen/Qwen2.5-0.5B-Instruct --out reports/

Works on what transformers loads as a decoder; what does not apply to a model says why. See the book's page "Reports".
"""

from course.report.page import comparison, html
from course.report.runner import Files, run
from course.report.sections import SECTIONS
from course.report.store import SCHEMA, check, committed, read

__all__ = ["SCHEMA", "SECTIONS", "Files", "check", "committed", "comparison", "html", "read", "run"]
