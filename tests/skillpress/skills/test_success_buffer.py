"""The buffer keeps the latest successes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.buffer import SuccessBuffer

batches = st.lists(st.lists(st.integers(0, 99).map(lambda n: (str(n),)), max_size=6), max_size=6)


@given(st.integers(0, 8), batches)
def test_it_holds_the_last_capacity_sequences_pushed(capacity, pushed):
    buffer = SuccessBuffer(capacity)
    for batch in pushed:
        buffer.push(batch)
    everything = [sequence for batch in pushed for sequence in batch]
    assert buffer.sequences == everything[max(0, len(everything) - capacity) :]


def test_of_a_batch_larger_than_the_capacity_the_end_is_remembered():
    buffer = SuccessBuffer(2)
    buffer.push([("A",), ("B",), ("C",)])
    assert buffer.sequences == [("B",), ("C",)]


def test_its_state_restores_it():
    buffer = SuccessBuffer(2)
    buffer.push([("A",), ("B", "C"), ()])
    state = json.loads(json.dumps(buffer.state_dict()))
    restored = SuccessBuffer(2)
    restored.load_state_dict(state)
    restored.push([("D",)])
    assert buffer.sequences == [("B", "C"), ()], "two buffers share nothing"
    assert restored.sequences == [(), ("D",)]


def test_impossible_buffers_are_refused():
    with pytest.raises(ValueError, match="negative"):
        SuccessBuffer(-1)
    with pytest.raises(ValueError, match="do not fit"):
        SuccessBuffer(1).load_state_dict({"sequences": [["A"], ["B"]]})
