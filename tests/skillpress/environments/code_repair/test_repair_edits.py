"""The edit tool's three commands, and their exact messages if they cannot be carried out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.code_repair.edits import (
    MOST_SHOWN,
    EditError,
    insert_text,
    replace_text,
    shortened,
    view,
)

TEXT = "one\ntwo\ntwo\n"


def test_a_view_has_numbered_lines() -> None:
    assert view("a.py", TEXT, None) == "   1  one\n   2  two\n   3  two"
    assert view("a.py", TEXT, (2, 2)) == "   2  two"
    assert view("a.py", "", None) == ""


@pytest.mark.parametrize("bounds", [(0, 1), (2, 1), (1, 4), (4, 4)])
def test_a_view_of_lines_that_are_not_there_says_which_are(bounds: tuple[int, int]) -> None:
    with pytest.raises(EditError, match=r"is not within a.py: it has 3 lines.*1 <= first <= last <= 3"):
        view("a.py", TEXT, bounds)


def test_a_text_is_replaced_where_it_stands_once() -> None:
    assert replace_text("a.py", TEXT, "one\ntwo", "1") == "1\ntwo\n"


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("three", "old_str was not found in a.py: 'three'; it must match exactly"),
        ("two", r"old_str was found 2 times in a.py \(in lines 2, 3\); give more"),
        ("", "old_str is empty"),
    ],
)
def test_a_replacement_that_is_not_clear_says_why(old: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        replace_text("a.py", TEXT, old, "x")


def test_lines_are_inserted_after_a_line() -> None:
    assert insert_text("a.py", TEXT, 0, "zero") == f"zero\n{TEXT}"
    assert insert_text("a.py", "one", 1, "two\n") == "one\ntwo\n"
    with pytest.raises(EditError, match=r"insert_line 4 is not within a\.py: give 0 to 3"):
        insert_text("a.py", TEXT, 4, "x")


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="ab\n", min_size=1, max_size=3))
def test_a_replacement_changes_the_one_place_or_nothing(text: str, old: str) -> None:
    if text.count(old) == 1:
        before, after = text.split(old)
        assert replace_text("a.py", text, old, "X") == f"{before}X{after}"
    else:
        with pytest.raises(EditError):
            replace_text("a.py", text, old, "X")


def test_what_is_too_long_is_cut_in_the_middle() -> None:
    cut = shortened("a" * MOST_SHOWN + "b" * 10)
    assert cut.startswith("aaa") and cut.endswith("bbb") and "10 characters left out" in cut
    assert shortened("short") == "short"
