"""Seeds are functions of a place, and different places have different seeds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.seeds import derive, generator

parts = st.lists(st.integers(-(2**40), 2**40) | st.text(max_size=5), min_size=1, max_size=4)


@given(parts)
def test_a_seed_is_a_63_bit_function_of_its_parts(place: list[int | str]) -> None:
    assert derive(*place) == derive(*place)
    assert 0 <= derive(*place) < 2**63
    assert generator(*place).integers(1000) == generator(*place).integers(1000)


@given(parts, parts)
def test_different_places_have_different_seeds(one: list[int | str], other: list[int | str]) -> None:
    assert (derive(*one) == derive(*other)) == (one == other)


def test_a_number_is_not_its_text_and_order_counts() -> None:
    assert len({derive(0, 1), derive(1, 0), derive(0, "1"), derive("0", 1), derive("01"), derive(1)}) == 6
