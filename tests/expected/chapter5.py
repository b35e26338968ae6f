import pandas as pd  # noqa: F401  chapter5.toml makes tables
