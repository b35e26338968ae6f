"""Fill in HTML templates, which are kept in the folders of the modules that use them.

Text is escaped unless it is marked as HTML.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2


def template(path: Path, filters: Mapping[str, Callable] = {}, **names: Any) -> jinja2.Template:
    """Load a template from a file.

    Args:
        filters: the filters of the template, by name.
        **names: values that all macros of the template can use.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(path.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    environment.globals |= names
    return environment.get_template(path.name)
