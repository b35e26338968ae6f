"""Where the repository and its pages are published."""

import tomllib

from book.pages import ROOT


def repository() -> str:
    """The address that pyproject.toml holds; empty where none is set."""
    return (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        .get("urls", {})
        .get("Repository", "")
    )


def site(url: str) -> str:
    """Where GitHub publishes the pages of a repository."""
    owner, name = url.removeprefix("https://github.com/").split("/")
    home = f"{owner.lower()}.github.io"
    return f"https://{home}/" if name.lower() == home else f"https://{home}/{name}/"
