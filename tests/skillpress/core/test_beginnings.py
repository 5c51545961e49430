"""Which sequences begin others, beside a comparison of each with each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.beginnings import Beginnings

tokens = st.lists(st.sampled_from([0, 1, 255, 256, 2**31 - 1]), max_size=5).map(tuple)


@given(st.lists(tokens, max_size=8), st.lists(tokens, max_size=8))
def test_the_sequences_that_begin_another_are_found_the_longest_and_last_first(
    sequences: list[tuple[int, ...]], others: list[tuple[int, ...]]
) -> None:
    found = Beginnings.of(sequences, others)
    for number, other in enumerate(others):
        expected = [row for row, one in enumerate(sequences) if other[: len(one)] == one]
        assert [*found[number]] == sorted(expected, key=lambda row: (-len(sequences[row]), -row))


def test_many_long_histories_are_searched_at_once() -> None:
    """50 calls of up to 100,000 tokens, each of which begins all later ones."""
    history = tuple(range(100_000))
    calls = [history[: 2_000 * number] for number in range(1, 51)]
    found = Beginnings.of(calls, calls)
    assert all([*found[number]] == [*range(number, -1, -1)] for number in range(50))
