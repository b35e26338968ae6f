"""Files that a command writes whole or not at all."""

import contextlib
import json
import os
from pathlib import Path

from helpers import compute, require


def writable(path: str | Path) -> Path:
    """Return where what is written to a path lies: a link is followed, so that it stays one.

    Raises:
        ValueError: it is there and no regular file: by a rename root would replace even a device
            such as /dev/null.

    >>> writable("note.txt").name
    'note.txt'
    """
    path = _path(path)
    if not path.name or (path.exists() and not path.is_file()):
        raise ValueError(f"path must be that of a regular file, or of none yet, not {str(path)!r}")
    return Path(os.path.realpath(path))


def weights(path: str | Path) -> Path:
    """Return where a decoder's weights are written.

    Raises:
        ValueError: it does not end in .safetensors, or its folder is not there.

    >>> weights("mine.safetensors").name
    'mine.safetensors'
    """
    path = _path(path)
    if path.suffix != ".safetensors" or not path.parent.is_dir():
        raise ValueError(
            f"path must end in .safetensors, in a folder that is there, not {str(path)!r}"
        )
    return path


def write(path: str | Path, text: str, kept: str = "rows") -> None:
    """Write a file whole or not at all.

    Args:
        kept: what a command that is started again does not have to do again, for the sentence about
            a full disk.

    Raises:
        ValueError: path is none that can be written (`writable`), or text and kept are no texts.
        OSError: the disk refuses; what was there before stays as it was.

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
            advice = f"free some and start the same command again, finished {kept} are kept"
            raise OSError(error.errno, f"the disk is full: {advice}", str(path)) from error
        raise


def stored(path: str | Path) -> dict:
    """Return the object in a file of JSON; an empty one where there is no such file, or it holds
    something else.

    Raises:
        ValueError: path is none.

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
