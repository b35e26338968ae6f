"""Outputs of notebooks as pages show them: a table has one head row, and an empty cell is no head."""

import re

import pandas as pd
import pytest

from book.execution import one_head

FRAME = pd.DataFrame({"a": [1], "b": [2]}, index=pd.Index([3], name="n"))
SPLIT = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]))


@pytest.mark.parametrize(
    ("frame", "names"),
    [(FRAME, ["n", "a", "b"]), (FRAME.rename_axis(None), ["", "a", "b"])],
    ids=["named index", "index without a name"],
)
def test_a_head_has_one_row_with_the_name_of_the_index(frame, names):
    head = one_head(frame.to_html()).split("</thead>")[0]
    assert re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", head) == names
    assert "<th></th>" not in head
    assert head.count("<tr") == 1


def test_a_head_of_groups_keeps_its_rows():
    assert one_head(SPLIT.to_html()).count("<tr") == SPLIT.to_html().count("<tr")


def test_the_cells_below_the_head_stay():
    table = FRAME.to_html()
    assert one_head(table).split("</thead>")[1] == table.split("</thead>")[1]
