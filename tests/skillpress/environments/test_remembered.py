"""A cache is bounded in entries and in bytes, whatever is requested."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.remembered import ENTRY_BYTES, Remembered


def lengths(key: int, value: str) -> int:
    return len(value)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2000))), st.integers(1, 5))
def test_it_never_holds_more_than_it_may(asked: list[tuple[int, int]], entries: int) -> None:
    kept = Remembered[tuple[int, int], str](entries, 4000, lambda key, value: len(value))
    for key in asked:
        assert kept.get(key, lambda size=key[1]: "x" * size) == "x" * key[1]
        sizes = [size for _, size in kept._entries.values()]
        assert sum(sizes) == kept.held_bytes <= 4000 and len(sizes) <= entries


def test_the_longest_unused_is_forgotten_first() -> None:
    kept = Remembered[int, str](100, 3 * (10 + ENTRY_BYTES), lengths)
    computed: list[int] = []

    def value(key: int) -> str:
        computed.append(key)
        return "x" * 10

    for key in (1, 2, 3, 1, 4, 1, 2):
        kept.get(key, lambda key=key: value(key))
    assert computed == [1, 2, 3, 4, 2]


def test_what_is_too_large_alone_pushes_nothing_out() -> None:
    kept = Remembered[int, str](100, 1000, lengths)
    kept.get(1, lambda: "small")
    kept.get(2, lambda: "x" * 2000)
    assert kept.get(1, lambda: "computed again") == "small"


def test_nothing_counts_as_a_value_and_an_error_does_not() -> None:
    kept = Remembered[int, str | None](100, 1000, lambda key, value: 0)
    assert kept.get(1, lambda: None) is None and kept.get(1, lambda: "other") is None
    for _ in range(2):
        try:
            kept.get(2, lambda: str(1 // 0))
        except ZeroDivisionError:
            continue
        raise AssertionError("it is computed each time")
