"""A batch is cut into a number of updates, or into updates of a size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.learn.training.minibatches import updates_of_batch


@given(st.integers(1, 9), st.integers(0, 10_000))
def test_without_a_size_the_number_is_the_one_given(minibatches: int, samples: int) -> None:
    assert updates_of_batch(minibatches, 0, samples) == minibatches


@given(st.integers(1, 500), st.integers(1, 10_000))
def test_parts_are_as_few_as_keep_within_the_size(size: int, samples: int) -> None:
    parts = updates_of_batch(4, size, samples)
    assert -(-samples // parts) <= size
    assert parts == 1 or -(-samples // (parts - 1)) > size


@pytest.mark.parametrize(("samples", "parts"), [(0, 1), (256, 1), (257, 2), (128 * 50, 25)])
def test_verl_agents_256_cut_a_whole_batch_of_alfworld_into_25(samples: int, parts: int) -> None:
    assert updates_of_batch(4, 256, samples) == parts
