"""Waiting for all answers: in the order of arrival, and only until a deadline."""

from __future__ import annotations

import pytest

from skillpress.core.answers import UnansweredError, answers_to


def test_answers_are_taken_as_they_come_until_all_are_there() -> None:
    parts = iter([[(3, "c")], [], [(1, "a"), (2, "b")], [(4, "later")]])
    assert answers_to([1, 2, 3], lambda wait: next(parts), 60.0, "nobody") == {3: "c", 1: "a", 2: "b"}


def test_without_questions_nobody_is_waited_for() -> None:
    assert answers_to([], lambda wait: pytest.fail("asked"), 60.0, "nobody") == {}


def test_a_passed_deadline_says_who_has_not_answered_what() -> None:
    parts = iter([[(3, "c")], []])
    with pytest.raises(UnansweredError, match=r"the oracle did not answer 2 of 3 questions \(\[1, 2\]"):
        answers_to([1, 2, 3], lambda wait: next(parts), 0.0, "the oracle")
