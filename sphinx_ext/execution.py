"""Key the execution cache by what a notebook's outputs depend on besides its own cells.

jupyter-cache looks at code cells alone and would serve stale outputs after a change in the helpers.
So its folder is named after a hash of `src/helpers`, `data/` and the pins, and all notebooks are read
again when that hash changes.
"""

import hashlib
import shutil
from pathlib import Path


def key(root: Path) -> str:
    """The hash of the helpers, the data and the pins below `root`."""
    files = [root / "requirements.txt"]
    for folder in ("src/helpers", "data"):
        files += [p for p in (root / folder).rglob("*") if p.is_file() and p.suffix != ".pyc"]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def choose_cache(app, config):
    root = Path(app.srcdir)
    config.execution_key = key(root)
    caches = root / "_build" / ".execution"
    config.nb_execution_cache_path = str(caches / config.execution_key)
    for old in caches.glob("*"):
        if old.name != config.execution_key:
            shutil.rmtree(old)


def outdated(app, env, added, changed, removed):
    before, env.execution_key = getattr(env, "execution_key", None), app.config.execution_key
    if before == env.execution_key:
        return []
    return [name for name in env.found_docs if str(env.doc2path(name)).endswith(".ipynb")]


def setup(app):
    app.add_config_value("execution_key", "", "")
    app.connect("config-inited", choose_cache, priority=100)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
