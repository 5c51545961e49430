"""Holm's correction, against its definition and a worked case."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.study.holm import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def test_a_worked_case() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04, and none below the one before.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


@given(P_VALUES)
def test_step_down_by_its_definition(values: list[float]) -> None:
    places = sorted(range(len(values)), key=lambda place: values[place])
    multiplied = [min(1.0, (len(values) - rank) * values[place]) for rank, place in enumerate(places)]
    wanted = dict(zip(places, accumulate(multiplied, max), strict=True))
    assert holm(values) == [wanted[place] for place in range(len(values))]


@given(P_VALUES)
def test_never_below_the_raw_value(values: list[float]) -> None:
    for raw, corrected in zip(values, holm(values), strict=True):
        assert raw <= corrected <= 1
