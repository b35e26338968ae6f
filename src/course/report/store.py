"""Store reports on disk.

A report is written completely or not at all, and it is read only if it fits the schema.
"""

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema

from course.build import files
from helpers import data, models, require

FORMAT = 2  # the format of the JSON, where a new number makes us measure every section again
HASHES = ("configuration_sha256", "weights_sha256")
SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())


def check(report: Any) -> dict:
    """Return the report unchanged if it fits the schema.

    Raises:
        ValueError: if the report does not fit `SCHEMA`. The message says where.
    """
    try:
        jsonschema.validate(report, SCHEMA)
    except jsonschema.ValidationError as error:
        where = "/".join(map(str, error.absolute_path)) or "the whole"
        raise ValueError(
            f"report must fit the schema of course/report/schema.json, but {where}: "
            f"{error.message[:200]}"
        ) from None
    return report


def read(path: str | Path) -> dict:
    """Read the JSON file of a report, and check it.

    Raises:
        ValueError: if the file does not exist or is not a report.
    """
    path = Path(require.instance("path", path, str | Path, "a path"))
    if not path.is_file():
        raise ValueError(f"path must be the JSON of a report, but there is no file {str(path)!r}")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(
            f"path must be the JSON of a report, but {path.name} is not JSON"
        ) from None
    try:
        return check(report)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def committed() -> list[dict]:
    """Read the reports that come with the course (`data/reports`), the embedded default's first."""
    reports = [read(path) for path in sorted((data.folder() / "reports").glob("*.json"))]
    return sorted(reports, key=lambda report: report["model"]["name"] != models.DEFAULT)


COMPARED = "compare"  # the file name of the page of several models, which no model's page may have


def slug(name: str) -> str:
    """Turn a name into a string that can be part of a file name.

    >>> slug("Qwen2.5 7B/Instruct"), slug("中文模型"), slug("Compare")
    ('qwen2.5-7b-instruct', '中文模型', 'compare-model')
    """
    name_ = re.sub(r"[^\w.]+|_+", "-", name.lower()).strip("-.") or "model"
    return f"{name_}-model" if name_ == COMPARED else name_


def marks(report: dict) -> list[tuple[str, str]]:
    """Return everything on which the measurements of a report depend.

    The result has one pair for each of these: the weights as loaded, the plan, the floating-point
    format, the seed and the versions. The first entry of a pair is the value in full, and the
    second is the shorter form that pages show. If all pairs of two reports are equal, they count as
    one report, so the sections of one are added to the other.
    """
    model, settings = report["model"], report["settings"]
    pairs = [("".join(model[key] for key in HASHES), model["weights_sha256"][:6])]
    pairs += [(str(settings[key]), str(settings[key])) for key in ("plan", "dtype", "seed")]
    return pairs + [
        (f"{name} {version}", f"{name} {version}")
        for name, version in sorted(report["versions"].items())
    ]


def apart(report: dict, others: Sequence[dict]) -> list[str]:
    """Return the marks of a report that distinguish it from the others in its folder."""
    return [
        shown
        for mark, shown in marks(report)
        if any((mark, shown) not in marks(rival) for rival in others)
    ]


def beside(folder: Path, model: str) -> dict[Path, dict]:
    """Read the reports in a folder on models with this name, the newest first."""
    reports = {}
    for path in folder.glob(f"{slug(model)}*.json"):
        with contextlib.suppress(ValueError):  # another file that is not a report
            report = read(path)
            if slug(report["model"]["name"]) == slug(model):
                reports[path] = report
    return dict(sorted(reports.items(), key=lambda item: (item[1]["made"], item[0]), reverse=True))


def place(folder: Path, report: dict) -> tuple[Path, dict | None]:
    """Return the path and content of the JSON file to which the report's sections belong.

    The content is None if the file does not exist yet. We never choose the file of another report.

    Raises:
        ValueError: if a file that is not a report is in the way.
    """
    first = files.writable(folder / f"{slug(report['model']['name'])}.json")
    for path, present in beside(folder, report["model"]["name"]).items():
        if not apart(report, [present]):
            return path, present
    if not first.exists():
        return first, None
    path = first.with_name(f"{first.stem}-{slug(' '.join(apart(report, [read(first)])))}.json")
    if path.exists():
        raise ValueError(f"{path.name} is another report. Choose another folder with --out")
    return path, None
