"""Pack the whole site into one zip file, `_build/html/book.zip`.

With it the site can be read offline from a small server. The front page then has a link to the
file.
"""

import fnmatch
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HIDDEN = '<p class="book-zip" hidden>'
LEFT_OUT = (  # files that the site offers and that are larger than all the rest
    "downloads/*",
    "live/model-*",
    "book.zip",
    "book*.pdf",
)
TOP = "connection-bottlenecks"
README = """The book works offline from a small server: in this folder run

    python -m http.server 8000 --bind 127.0.0.1

and open http://127.0.0.1:8000. Opened as files, the pages can be read; \
exercises and search need the server.
The weights of the live language model (100 MB) are not in this archive: *Try it* shows its \
stored run. The small models
of the course, and the page that trains one, work.
"""


def write(site: Path) -> Path:
    """Write the zip archive of a site into the site's folder, and return its path."""
    path = site / "book.zip"
    partial = path.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr(f"{TOP}/README.txt", README)
        for file in sorted(site.glob("**/*")):
            inside = file.relative_to(site)
            left_out = any(fnmatch.fnmatch(inside.as_posix(), pattern) for pattern in LEFT_OUT)
            if file.is_file() and not left_out and file != partial:
                archive.write(file, f"{TOP}/{inside}")
    partial.replace(path)
    return path


def main() -> None:
    """Write the archive of the built site, and show the link to it on the front page."""
    site = ROOT / "_build/html"
    welcome = site / "chapters/welcome.html"
    welcome.write_text(welcome.read_text().replace(HIDDEN, HIDDEN.replace(" hidden", "")))
    path = write(site)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
