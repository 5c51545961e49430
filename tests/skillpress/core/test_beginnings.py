"""Which sequences begin others, beside a comparison of each with each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.beginnings import Beginnings, Continued, conversations

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


def test_sub_agents_compactions_and_rewritten_answers_are_conversations() -> None:
    """Calls 1 and 2 are a sub-agent's, call 4 follows a compaction, and call 5 asks call 0 again."""
    main, sub = ((1, 2), (3,)), ((7, 8), (9,))
    calls = [
        main,
        sub,
        ((7, 8, 9, 10), (11,)),
        ((1, 2, 5, 6), (4,)),
        ((20, 21), (22,)),
        ((1, 2, 3, 12), (13,)),
    ]
    assert conversations(calls) == [
        None,
        None,
        Continued(1, True),
        Continued(0, False),
        None,
        Continued(0, True),
    ]


def test_of_equal_calls_the_one_whose_answer_comes_back_is_continued() -> None:
    calls = [((1,), (2,)), ((1,), (3,)), ((1,), (4,)), ((1, 3, 5), (6,)), ((1, 9, 5), (6,))]
    assert conversations(calls)[3:] == [Continued(1, True), Continued(2, False)]


def test_calls_in_line_and_calls_apart_are_no_tree() -> None:
    assert conversations([((1,), (2,)), ((1, 2), (3,)), ((1, 2, 3), (4,))]) == []
    assert conversations([((1,), (2,)), ((2,), (3,))]) == conversations([]) == []
    assert conversations([((), ()), ((), ())]) == [], "texts of a forwarded model have no tokens"
