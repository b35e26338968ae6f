"""The check of types and shapes that the import hook in conftest.py puts around every function of the helpers."""

from beartype import BeartypeConf, beartype

checked = beartype(
    conf=BeartypeConf(is_pep484_tower=True)
)  # an int is a float, as for every reader
