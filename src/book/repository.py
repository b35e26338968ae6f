"""Tell where the repository and its pages are published."""

import tomllib

from book.pages import ROOT


def repository() -> str:
    """Return the address in pyproject.toml, or "" if none is set."""
    return (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        .get("urls", {})
        .get("Repository", "")
    )


def site(url: str) -> str:
    """Return the address at which GitHub publishes the pages of a repository."""
    owner, name = url.removeprefix("https://github.com/").split("/")
    home = f"{owner.lower()}.github.io"
    return f"https://{home}/" if name.lower() == home else f"https://{home}/{name}/"
