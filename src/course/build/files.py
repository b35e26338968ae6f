"""Write files completely or not at all, so that an interrupted command leaves no broken file."""

import contextlib
import json
import os
from pathlib import Path

from helpers import compute, require


def writable(path: str | Path) -> Path:
    """Return the path of the file that a write to `path` would change.

    If `path` is a link, the result is the file to which it points, so that replacing this file
    keeps the link.

    Raises:
        ValueError: if the path exists and is not a regular file. Without this check, root could
            replace even a device such as /dev/null with a file.

    >>> writable("note.txt").name
    'note.txt'
    """
    path = _path(path)
    if not path.name or (path.exists() and not path.is_file()):
        raise ValueError(
            f"path must name a regular file, or a file that does not exist yet, not {str(path)!r}"
        )
    return Path(os.path.realpath(path))


def weights(path: str | Path) -> Path:
    """Return `path` if it is a valid place for the weights of a decoder.

    Raises:
        ValueError: if the path does not end in .safetensors, or its folder does not exist.

    >>> weights("mine.safetensors").name
    'mine.safetensors'
    """
    path = _path(path)
    if path.suffix != ".safetensors" or not path.parent.is_dir():
        raise ValueError(
            f"path must end in .safetensors and be in an existing folder, not {str(path)!r}"
        )
    return path


def write(path: str | Path, text: str, kept: str = "rows") -> None:
    """Write a text file completely or not at all.

    Args:
        kept: a noun for what is already saved if the disk becomes full, as in "finished rows are
            kept". The error message uses it.

    Raises:
        ValueError: if the path cannot be written (see `writable`), or `text` or `kept` is not text.
        OSError: if writing fails. The old file stays unchanged.

    >>> write("note.txt", "one line")
    >>> Path("note.txt").read_text()
    'one line'
    """
    path = writable(path)
    require.text("text", text)
    require.text("kept", kept)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if error.errno in compute.FULL:
            advice = f"free some space and run the same command again (finished {kept} are kept)"
            raise OSError(error.errno, f"the disk is full: {advice}", str(path)) from error
        raise


def stored(path: str | Path) -> dict:
    """Read the object in a JSON file, or return an empty dictionary if there is no such object.

    Raises:
        ValueError: if `path` is not a path.

    >>> stored("nowhere.json")
    {}
    """
    path = _path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _path(path: str | Path) -> Path:
    return Path(require.instance("path", path, str | Path, "a path"))
