"""The buffer keeps the latest successes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.buffer import Success, SuccessBuffer

batches = st.lists(
    st.lists(st.integers(0, 99).map(lambda n: Success((str(n),), "t")), max_size=6), max_size=6
)
A, B, C, D = (Success((skill,), f"task-{skill}") for skill in "ABCD")


@given(st.integers(0, 8), batches)
def test_it_holds_the_last_capacity_successes_pushed(capacity, pushed):
    buffer = SuccessBuffer(capacity)
    for batch in pushed:
        buffer.push(batch)
    everything = [success for batch in pushed for success in batch]
    assert buffer.successes == everything[max(0, len(everything) - capacity) :]


def test_of_a_batch_larger_than_the_capacity_the_end_is_remembered():
    buffer = SuccessBuffer(2)
    buffer.push([A, B, C])
    assert buffer.successes == [B, C]


def test_its_state_restores_it():
    buffer = SuccessBuffer(2)
    buffer.push([A, Success(("B", "C"), "x"), Success((), "y")])
    state = json.loads(json.dumps(buffer.state_dict()))
    restored = SuccessBuffer(2)
    restored.load_state_dict(state)
    restored.push([D])
    assert buffer.successes == [Success(("B", "C"), "x"), Success((), "y")], "two buffers share nothing"
    assert restored.successes == [Success((), "y"), D]


def test_impossible_buffers_are_refused():
    with pytest.raises(ValueError, match="negative"):
        SuccessBuffer(-1)
    full = SuccessBuffer(2)
    full.push([A, B])
    with pytest.raises(ValueError, match="2 successes do not fit a buffer of 1"):
        SuccessBuffer(1).load_state_dict(full.state_dict())


def test_a_state_without_tasks_is_refused():
    with pytest.raises(ValueError, match=r"'sequences' and no 'successes': an earlier version .* wrote it"):
        SuccessBuffer(1).load_state_dict({"sequences": [["A"]]})
    with pytest.raises(ValueError, match="'successes' are damaged"):
        SuccessBuffer(1).load_state_dict({"successes": [["A"]]})
