"""The arithmetic: exact, non-negative, bounded, and each operation in one form only."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.countdown.rules import (
    OPERATORS,
    Operation,
    canonical,
    carry_out,
    result,
    results,
    successors,
)

pools = st.lists(st.integers(0, 120), min_size=2, max_size=4).map(lambda numbers: tuple(sorted(numbers)))


def exact(operator: str, left: int, right: int) -> Fraction | None:
    """The operation in the rational numbers; None if it has no value."""
    if operator == "/":
        return Fraction(left, right) if right else None
    return Fraction({"+": left + right, "-": left - right, "*": left * right}[operator])


@given(st.sampled_from(OPERATORS), st.integers(0, 200), st.integers(0, 200), st.integers(100, 999))
def test_a_result_is_legal_exactly_when_it_is_a_whole_number_from_0_to_the_largest(
    operator: str, left: int, right: int, largest: int
) -> None:
    value = exact(operator, left, right)
    found = result(Operation(operator, left, right), largest)
    if value is not None and value.denominator == 1 and 0 <= value <= largest:
        assert found == value
    else:
        assert isinstance(found, str)


@given(st.integers(0, 120), st.integers(0, 120), st.integers(100, 999))
def test_all_results_of_two_numbers_are_those_of_the_canonical_operations(
    one: int, other: int, largest: int
) -> None:
    small, large = sorted((one, other))
    for operator, value in zip(OPERATORS, results(small, large), strict=True):
        found = result(canonical(operator, small, large), largest)
        assert found == value if value is not None and value <= largest else isinstance(found, str)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Operation("-", 2, 3), "negative"),
        (Operation("/", 7, 2), "not_exact"),
        (Operation("/", 7, 0), "not_exact"),
        (Operation("*", 100, 10), "too_large"),
        (Operation("+", 500, 500), "too_large"),
    ],
)
def test_what_is_not_legal_says_why(operation: Operation, reason: str) -> None:
    assert result(operation, 999) == reason


@given(pools)
def test_successors_are_every_legal_operation_once_up_to_the_order_of_sums_and_products(
    pool: tuple[int, ...],
) -> None:
    expected = set()
    for i, left in enumerate(pool):
        for right in (*pool[:i], *pool[i + 1 :]):
            for operator in OPERATORS:
                value = exact(operator, left, right)
                ordered = left >= right or operator in "-/"
                if ordered and value is not None and value.denominator == 1 and 0 <= value <= 999:
                    expected.add((operator, left, right))
    found = successors(pool, 999)
    assert len(found) == len(expected)
    # a smaller number divided by a larger one is whole only when it is 0
    assert {tuple(operation) for operation, _ in found} == expected
    for operation, left_pool in found:
        assert carry_out(pool, operation, 999) == left_pool
        assert list(left_pool) == sorted(left_pool)


def test_an_operation_needs_both_of_its_numbers_and_two_of_a_kind_for_a_pair() -> None:
    assert carry_out((5, 7), Operation("+", 5, 5), 999) == "no_such_number"
    assert carry_out((5, 5, 7), Operation("+", 5, 5), 999) == (7, 10)
