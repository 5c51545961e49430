"""Values sent between two sandboxes."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.code_repair.inside.values import Node, Values

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=10,
)


@given(PLAIN)
def test_a_plain_value_arrives_as_it_was(value: Any) -> None:
    arrived = Values().read(Values().write(value))
    assert arrived == value and repr(arrived) == repr(value)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ({1, 2}, {1, 2}),
        (frozenset("a"), frozenset("a")),
        (1 + 2j, 1 + 2j),
        (float("inf"), float("inf")),
        (range(3), [0, 1, 2]),
        ((x for x in "ab"), ["a", "b"]),
        (deque([1]), [1]),
        (Counter("aa"), {"a": 2}),
        ({1: 2}.items(), [(1, 2)]),
    ],
)
def test_what_can_be_walked_through_arrives_as_a_container(value: Any, arrives: Any) -> None:
    assert Values().read(Values().write(value)) == arrives


def test_what_is_not_plain_equals_nothing() -> None:
    arrived = Values().read(Values().write(object()))
    assert arrived not in ([1], "", None) and arrived != 1
    with pytest.raises(TypeError):
        bool(arrived)


def test_nodes_in_a_circle_keep_who_they_are() -> None:
    here, there = Values(), Values()
    first = Node(1)
    second = Node(2, first)
    first.successor = second
    theirs = there.read(here.write([first]))[0]
    assert theirs.successor.successor is theirs and theirs.successor.value == 2
    theirs.successor.value = 5
    theirs.successor.successor = None
    assert here.read(there.write(theirs.successor)) is second
    assert second.value == 5 and second.successor is None and first.successor is second
