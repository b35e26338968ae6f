"""The course's measures on any decoder: one page and one JSON, by chapter.

python -m helpers.report Qwen/Qwen2.5-0.5B-Instruct --out reports/

Works on what transformers loads as a decoder; what does not apply to a model says why. See the book's page "Reports".
"""

from helpers.report.page import comparison, html
from helpers.report.runner import Files, run
from helpers.report.sections import SECTIONS
from helpers.report.store import SCHEMA, check, committed, read

__all__ = ["SCHEMA", "SECTIONS", "Files", "check", "committed", "comparison", "html", "read", "run"]
