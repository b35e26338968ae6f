"""The tables that come with the course."""

import pytest

from helpers import data


def test_every_table_says_where_it_comes_from_and_can_be_read():
    tables = sorted(p.relative_to(data.folder()).with_suffix("").as_posix() for p in data.folder().rglob("*.csv"))
    assert "reported/tree_neighbors_match" in tables
    for name in tables:
        assert (data.folder() / f"{name}.csv").read_text().startswith("# ")
        assert len(data.table(name)) > 0


def test_reported_accuracies_are_read_as_printed():
    table = data.table("reported/tree_neighbors_match").set_index("model")
    assert table.loc["GAT", "5"] == 0.41
    assert table.loc["GIN"].isna().sum() == 2


def test_an_unknown_table_is_named_beside_the_nearest():
    with pytest.raises(
        ValueError, match=r"name must be one of \d+ tables, such as reported/rope_models, .*, not .rope_model."
    ):
        data.table("rope_model")
