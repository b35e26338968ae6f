"""Return the addresses at which the repository and its pages are published."""

import tomllib

from book.pages import ROOT


def repository() -> str:
    """Return the address of the repository in pyproject.toml, or "" if none is set."""
    return (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        .get("urls", {})
        .get("Repository", "")
    )


def site(url: str) -> str:
    """Return the address at which GitHub publishes a repository's pages."""
    owner, name = url.removeprefix("https://github.com/").split("/")
    home = f"{owner.lower()}.github.io"
    return f"https://{home}/" if name.lower() == home else f"https://{home}/{name}/"
