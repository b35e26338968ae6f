import pandas as pd  # noqa: F401  chapter6.toml makes tables
