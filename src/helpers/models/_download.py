"""Download a file safely.

We check first that the disk has enough space, resume a download after an interruption, and compare
the hash of the file with the expected hash.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import filelock
import requests

from helpers import compute, require


def sha256(path: str | Path) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal.

    Raises:
        ValueError: if `path` is not a path.
        OSError: if the file cannot be read.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     sha256(empty.name)[:8]
    'e3b0c442'
    """
    require.instance("path", path, str | Path, "a path")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(url: str, target: str | Path, expected: str, attempts: int = 3, **settings) -> Path:
    """Download `url` to `target`, and resume a download that was interrupted earlier.

    The bytes that have arrived are kept next to `target`, in a file whose name ends in `.part`.
    This file is renamed to `target` only if its hash is right. If two processes want the same file
    at once, one downloads it and the other waits.

    Args:
        url: an http, https or file address.
        target: the path of the file to write. If the file already exists with the right hash,
            nothing is downloaded.
        expected: the SHA-256 hash of the file, in hexadecimal.
        attempts: how many times we try before a broken connection raises an error.
        settings: further arguments of `requests.get` (`verify`, `proxies`).

    Raises:
        ValueError: if an argument has the wrong type, or attempts is below 1.
        OSError: if the server cannot be reached or refuses the request, if the disk is full, or if
            the file has a wrong hash even after a second, complete download.

    >>> from helpers import data
    >>> source, target = data.folder() / "prose.txt", Path("copy.txt").resolve()
    >>> download(source.as_uri(), target, sha256(source)) == target
    True
    """
    require.text("url", url)
    require.text("expected", expected)
    require.integer("attempts", attempts, 1)
    target = Path(require.instance("target", target, str | Path, "a path"))
    if not target.name:
        raise ValueError(f"target must be the path of a file, not {str(target)!r}")
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(target.with_name(target.name + ".lock")), room(target.parent):
        if target.is_file() and sha256(target) == expected:
            return target
        for _ in range(2):  # if the part is old or damaged, we download once more from the start
            try:
                _stream(url, part, attempts, settings)
            except OSError as error:
                if error.errno in compute.FULL:
                    part.unlink(missing_ok=True)
                raise
            if sha256(part) == expected:
                os.replace(part, target)
                return target
            part.unlink()
    raise OSError(
        f"{target.name} arrived twice with a wrong SHA-256, so a proxy or mirror "
        "probably changes it. Try another connection"
    )


def _stream(url: str, part: Path, attempts: int, settings: dict) -> None:
    if url.startswith("file:"):
        shutil.copyfile(url2pathname(urlsplit(url).path), part)
        return
    for attempt in range(attempts):
        have = part.stat().st_size if part.exists() else 0
        # without "identity" a server may compress, and then offsets would count other bytes
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
        try:
            with requests.get(
                url, headers=headers, stream=True, timeout=60, **settings
            ) as response:
                if (
                    response.status_code == 416
                ):  # nothing comes after what we have, so its hash decides
                    return
                response.raise_for_status()
                resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
                start = have if resumed else 0
                total = start + int(response.headers.get("Content-Length", 0)) or None
                bar = compute.progress(
                    label=part.stem, total=total, initial=start, unit="B", unit_scale=True
                )
                with open(part, "ab" if resumed else "wb") as file, bar:
                    for block in response.iter_content(1 << 18):
                        file.write(block)
                        bar.update(len(block))
                return
        except requests.RequestException as error:
            if attempt == attempts - 1:
                raise ConnectionError(
                    f"{part.stem} did not arrive ({type(error).__name__})"
                ) from error
            time.sleep(attempt + 1)


@contextlib.contextmanager
def room(folder: str | Path, needed: int = 0) -> Iterator[None]:
    """Check that the disk has `needed` free bytes, and raise a readable error if it fills up later.

    Use this as a `with` block around the code that writes into `folder`.

    Raises:
        ValueError: if `needed` is not a number of bytes.
        OSError: if there is too little space at the start, or if the disk becomes full while the
            block writes.

    >>> with room(".", needed=1):
    ...     Path("note.txt").write_text("one line")
    8
    """
    require.instance("folder", folder, str | Path, "a path")
    require.integer("needed", needed, 0)
    advice = f"free some space, or set HELPERS_CACHE to a folder on a larger disk (now {folder})"
    free = shutil.disk_usage(folder).free
    if free < needed:
        short = f"{needed / 1e6:.0f} MB of disk are needed and {free / 1e6:.0f} are free"
        raise OSError(errno.ENOSPC, f"{short}: {advice}")
    try:
        yield
    except OSError as error:
        if error.errno in compute.FULL and advice not in str(error):
            raise OSError(error.errno, f"the disk is full: {advice}") from error
        raise
