"""Reports on the disk: written whole or not at all, and read only if they fit the schema."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema

from helpers import data, models, require

FORMAT = 1  # of the JSON; a new number makes every part be measured again
SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())


def check(report: Any) -> dict:
    """The report, if it is one.

    Raises:
        ValueError: it does not fit the schema (`SCHEMA`); the message says where.
    """
    try:
        jsonschema.validate(report, SCHEMA)
    except jsonschema.ValidationError as error:
        where = "/".join(map(str, error.absolute_path)) or "the whole"
        raise ValueError(
            f"report must fit the schema of course/report/schema.json, but {where}: {error.message[:200]}"
        ) from None
    return report


def read(path: str | Path) -> dict:
    """A report's JSON, checked.

    Raises:
        ValueError: there is no such file, or it is no report.
    """
    path = Path(require.instance("path", path, str | Path, "a path"))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ValueError(f"path must be the JSON of a report; there is no file {str(path)!r}") from None
    except ValueError:
        raise ValueError(f"path must be the JSON of a report; {path.name} is no JSON") from None
    try:
        return check(found)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def committed() -> list[dict]:
    """The reports that come with the course (`data/reports`), the embedded default's first."""
    found = [read(path) for path in sorted((data.folder() / "reports").glob("*.json"))]
    return sorted(found, key=lambda each: each["model"]["name"] != models.DEFAULT)


def slug(name: str) -> str:
    """A name as part of a file's name.

    >>> slug("Qwen2.5 7B/Instruct")
    'qwen2.5-7b-instruct'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "model"
