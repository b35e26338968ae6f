import pandas as pd  # noqa: F401  chapter7.toml makes tables
