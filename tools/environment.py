"""Make a virtual environment for the book or for Colab's packages.

`.venv` builds and tests the book, and `.venv-colab` has the packages of Colab.

    python tools/environment.py book|colab|lock

`lock` writes `constraints.txt`, the exact version of every distribution that `book` may install. A
distribution that is already listed there keeps its version unless requirements.txt or
pyproject.toml ask for another.

We install with uv, which is several times faster than pip, from the index that pip is set to use.
If uv fails, pip installs the packages. On a computer without an NVIDIA GPU, torch comes as
PyTorch's build for CPUs (0.2 GB instead of 3), if its index can be reached.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
COLAB_PYTHON = "3.13"
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


def says(*command: str | Path) -> str:
    """Return what a command prints, or "" if the command fails."""
    environment = {
        "PYENV_VERSION": COLAB_PYTHON,
        **os.environ,
    }  # pyenv hides versions that are not selected
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def prepared(folder: Path, python: str) -> str:
    """Create the environment from scratch, and return the path of its Python.

    If the environment is complete and has exactly this version of Python, we keep it.
    """
    interpreter = folder / "bin/python"
    version = "import sys; print(sys.version)"
    if not (folder / ".ready").exists() or says(interpreter, "-c", version) != says(
        python, "-c", version
    ):
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    return str(interpreter)


def uv_settings(pip_config: str) -> dict[str, str]:
    """Translate pip's settings to uv's names, because uv does not read pip's settings."""
    settings = {}
    for section in ("global", "install", ":env:"):  # later sections take precedence
        for line in pip_config.splitlines():
            match = re.match(rf"{re.escape(section)}\.([\w-]+)=(.*)", line)
            if match and match[1] in UV_NAMES:
                settings[UV_NAMES[match[1]]] = " ".join(ast.literal_eval(match[2]).split())
    if "UV_FIND_LINKS" in settings:
        settings["UV_FIND_LINKS"] = settings["UV_FIND_LINKS"].replace(" ", ",")
    return {
        **settings,
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": "180",
        "UV_PYTHON_DOWNLOADS": "never",
    }


def reached(url: str) -> bool:
    """Return whether an index of packages can be reached."""
    try:
        with urllib.request.urlopen(f"{url}/torch/", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def install(python: str, backend: str, *packages: str) -> None:
    """Install packages with uv, or with pip if uv fails.

    Raises:
        SystemExit: if neither succeeds. pip's output is printed.
    """
    uv = str(ROOT / ".venv/bin/uv")
    cpu = backend != "" and not shutil.which("nvidia-smi")
    command = [
        uv,
        "pip",
        "install",
        "-q",
        "--python",
        python,
        *(["--torch-backend", backend] if backend else []),
        *packages,
    ]
    environment = {**uv_settings(says(python, "-m", "pip", "config", "list")), **os.environ}
    if os.path.exists(uv):
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        print(f"uv cannot ({done.stderr.strip().splitlines()[-1:]}); pip tries", flush=True)
    extra = ["--extra-index-url", CPU_BUILDS] if cpu else []
    packages = [
        word.replace("--reinstall-package=connection-bottlenecks", "--force-reinstall")
        for word in packages
    ]
    done = subprocess.run(
        [python, "-m", "pip", "install", "-qq", *extra, *packages], cwd=ROOT, check=False
    )
    if done.returncode:
        raise SystemExit(
            "The environment could not be installed. The output of pip above says why."
        )


def book(backend: str) -> None:
    """Build the environment that builds and tests the book."""
    pins = (ROOT / "requirements.txt").read_text()
    python = prepared(ROOT / ".venv", sys.executable)
    says(python, "-m", "pip", "install", "-qq", *re.findall(r"^uv==\S+", pins, re.M))
    locked = ("-c", "constraints.txt")
    install(
        python, backend, *locked, *re.findall(r"^torch==\S+", pins, re.M)
    )  # this must come first, because pip would otherwise choose a CUDA build
    install(python, backend, *locked, "-r", "requirements.txt")
    install(python, "", "--no-deps", "--editable", ".")
    # without this package `jsonschema` is imported ten times faster, because the package compiles
    # grammars for a format that our schemas do not use
    says(python, "-m", "pip", "uninstall", "-qq", "--yes", "rfc3987-syntax")


HEAD = """\
# Every distribution that the book is built and tested with, for Python 3.11 to 3.14, \
but torch and what only its CUDA
# build needs, which torch pins itself. `python tools/environment.py lock` writes this file.
"""
TORCH = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+|uv)==")


def lock() -> None:
    """Compute the versions of all requirements, and write them.

    We do so for all systems and versions of Python at once.

    Raises:
        SystemExit: if the requirements contradict each other, or no index can be reached. uv's
            output is printed.
    """
    environment = {**uv_settings(says(sys.executable, "-m", "pip", "config", "list")), **os.environ}
    command = [
        ROOT / ".venv/bin/uv",
        "pip",
        "compile",
        "-q",
        "requirements.txt",
        "pyproject.toml",
        "--all-extras",
        "--universal",
        "-p",
        "3.11",
        "--no-header",
        "--no-annotate",
        "-o",
        "constraints.txt",
    ]
    if subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
    ).returncode:
        raise SystemExit("The requirements could not be resolved. The output of uv above says why.")
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    (ROOT / "constraints.txt").write_text(
        HEAD + "".join(f"{pin}\n" for pin in pins if not TORCH.match(pin))
    )


def colab(backend: str) -> None:
    """Build an environment like Colab's, with its Python, its torch and its versions.

    If Colab's version of Python is not available, another one is used. The package comes from a
    wheel, and nothing comes from the source tree.
    """
    candidates = [
        f"python{COLAB_PYTHON}",
        says(ROOT / ".venv/bin/uv", "python", "find", COLAB_PYTHON),
        sys.executable,
    ]
    interpreters = [
        says(name, "-c", ("import sys; print(sys.executable)")) for name in candidates if name
    ]
    for name in filter(None, interpreters):
        try:
            python = prepared(ROOT / ".venv-colab", name)
            break
        # this Python lacks the module that makes environments
        except subprocess.CalledProcessError:
            print(f"{name} cannot make an environment", flush=True)
    else:
        raise SystemExit(
            "No Python here can make the environment for the Colab tests. Install another one."
        )
    pins = ("-c", "tests/colab-constraints.txt")
    install(python, "cpu" if backend else "", *pins, "torch")
    install(python, "", *pins, "nbclient", "ipykernel", "notebook", ".")
    install(python, "", "--no-deps", "--reinstall-package=connection-bottlenecks", ".")


if __name__ == "__main__":
    start = time.time()
    if sys.argv[1] == "lock":
        raise SystemExit(lock())
    backend = "auto" if reached(CPU_BUILDS) else ""
    {"book": book, "colab": colab}[sys.argv[1]](backend)
    print(f"set up in {time.time() - start:.0f} s", flush=True)
