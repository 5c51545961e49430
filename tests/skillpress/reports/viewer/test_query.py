"""Filters, sorting and pages compared with a loop over all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.query import MOST, RANGES, SORTS, TEXTS, QueryError, parse
from skillpress.reports.viewer.records import EpisodeRow

Parameters = list[tuple[str, str]]


def every(catalogue: RolloutCatalogue) -> list[EpisodeRow]:
    return list(catalogue.page(parse([("limit", str(MOST))])).rows)


def holds(row: EpisodeRow, asked: Mapping[str, list[str]]) -> bool:
    """Whether a row fits the filters, one by one."""
    for name, values in asked.items():
        bound, _, column = name.partition("_")
        if name in TEXTS:
            fits = (getattr(row, name) or "") in values
        elif name in ("source", "version", "run"):
            fits = getattr(row, name) in map(int, values)
        elif name == "won":
            fits = row.won == (values == ["1"])
        else:
            found, limit = getattr(row, column), float(values[0])
            fits = found is not None and (found >= limit if bound == "min" else found <= limit)
        if not fits:
            return False
    return True


def ordered(rows: list[EpisodeRow], column: str, descending: bool) -> list[EpisodeRow]:
    """Nulls last, ties in their order, as Python leaves them."""
    known = [row for row in rows if getattr(row, column) is not None]
    none = [row for row in rows if getattr(row, column) is None]
    return sorted(known, key=lambda row: getattr(row, column), reverse=descending) + none


texts = st.sampled_from(TEXTS).flatmap(
    lambda name: st.lists(
        st.sampled_from(["", "start", "trained", "stuck", "won", "2 numbers", "task-003", "not_admissible"]),
        min_size=1, max_size=3,
    ).map(lambda values: (name, values))
)  # fmt: skip
numbers = st.tuples(
    st.sampled_from(["source", "version", "run"]), st.lists(st.sampled_from(["0", "1", "30"]), min_size=1)
)
bounds = st.tuples(
    st.sampled_from([f"{bound}_{name}" for bound in ("min", "max") for name in RANGES]),
    st.floats(-2, 8).map(lambda value: [str(value)]),
)
won = st.tuples(st.just("won"), st.sampled_from([["0"], ["1"]]))
filters = st.lists(texts | numbers | bounds | won, max_size=3).map(dict)


@given(filters)
def test_filters_find_what_a_loop_finds(catalogue: RolloutCatalogue, asked: dict[str, list[str]]) -> None:
    parameters = [(name, value) for name, values in asked.items() for value in values]
    found = catalogue.page(parse([*parameters, ("limit", str(MOST))]))
    expected = [row for row in every(catalogue) if holds(row, asked)]
    assert (found.total, list(found.rows), found.complete) == (len(expected), expected, True)


@given(st.sampled_from(SORTS), st.booleans())
def test_sorting_keeps_equals_in_order_and_puts_none_last(
    catalogue: RolloutCatalogue, column: str, descending: bool
) -> None:
    asked = [("sort", column), ("descending", str(int(descending))), ("limit", str(MOST))]
    assert list(catalogue.page(parse(asked)).rows) == ordered(every(catalogue), column, descending)


@given(st.integers(1, 60), st.sampled_from([None, *SORTS]))
def test_pages_concatenate_to_the_whole(catalogue: RolloutCatalogue, limit: int, column: str | None) -> None:
    sort: Parameters = [("sort", column)] if column else []
    whole = catalogue.page(parse([*sort, ("limit", str(MOST))]))
    pages: list[EpisodeRow] = []
    for offset in range(0, whole.total + limit, limit):
        page = catalogue.page(parse([*sort, ("offset", str(offset)), ("limit", str(limit))]))
        assert page.total == whole.total
        pages += page.rows
    assert tuple(pages) == whole.rows


def test_ids_are_stable_and_name_their_episode(catalogue: RolloutCatalogue) -> None:
    rows = every(catalogue)
    assert len({row.id for row in rows}) == len(rows) == len(catalogue)
    for place, row in enumerate(rows):
        assert catalogue.name(place) == row.id
        told = catalogue.episode(row.id)
        assert {name: getattr(told, name) for name in EpisodeRow.__dataclass_fields__} == vars_of(row)


def vars_of(row: EpisodeRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in EpisodeRow.__dataclass_fields__}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ([("limit", "x")], "limit: 'x' is not a whole number"),
        ([("limit", "0")], "limit: 0 is not from 1 to 500"),
        ([("limit", "501")], "limit: 501 is not from 1 to 500"),
        ([("offset", "-1")], "offset: '-1' is not a whole number"),
        ([("offset", "99999999999999999999")], "offset: '99999999999999999999' is not a whole number"),
        ([("source", "١")], "source: '١' is not a whole number"),
        ([("min_steps", "nan")], "min_steps: 'nan' is not a number"),
        ([("max_reward", "inf")], "max_reward: 'inf' is not a number"),
        ([("min_steps", "1"), ("min_steps", "2")], "min_steps: is given twice"),
        ([("won", "yes")], "won: 'yes' is neither 0 nor 1"),
        ([("sort", "place")], "sort: 'place' is not one of source, task"),
        ([("sort", "reward; drop")], "sort: 'reward; drop' is not one of"),
        ([("min_task", "1")], "min_task: no such parameter"),
        ([("__class__", "1")], "__class__: no such parameter; there are task, group"),
        ([("text", "a" * 1001)], "text: 1,001 characters are more than 1,000"),
        ([("phrase", "first")], "phrase: 'first' is not a whole number"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(parameters: Parameters, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(parameters)
    assert str(refused.value).startswith(said)
