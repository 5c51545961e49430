"""Frames: every message arrives, however its bytes are split; everything else is an error."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.rollouts.sandbox.messages import HEADER, MAX_BYTES, FrameError, FrameReader, encode

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
messages = st.dictionaries(st.text(), values)


@settings(max_examples=30)
@given(sent=st.lists(messages, max_size=5), cuts=st.lists(st.integers(1, 50)))
def test_messages_arrive_whole_and_in_order(sent: list, cuts: list[int]) -> None:
    data, reader, received = b"".join(map(encode, sent)), FrameReader(), []
    for length in [*cuts, len(data)]:
        received += reader.feed(data[:length])
        data = data[length:]
    assert received == sent


@given(data=st.binary(max_size=200))
def test_any_bytes_are_messages_or_a_frame_error(data: bytes) -> None:
    reader = FrameReader()
    with suppress(FrameError):
        assert all(isinstance(message, dict) for message in reader.feed(data))


def test_length_is_judged_before_the_body_is_read() -> None:
    with pytest.raises(FrameError, match="more than the 1048576"):
        list(FrameReader().feed(HEADER.pack(MAX_BYTES + 1)))


@pytest.mark.parametrize("body", ["[" * 200_000, '{"a":' * 200_000, "9" * 5000, "1", '"text"', "\udcff"])
def test_what_is_no_object_is_a_frame_error(body: str) -> None:
    data = body.encode(errors="surrogateescape")
    with pytest.raises(FrameError):
        list(FrameReader().feed(HEADER.pack(len(data)) + data))


def test_half_a_character_in_any_text_becomes_a_question_mark() -> None:
    body = rb'{"call": "keep", "args": [{"a\udc00": "\ud800\ud83d\ude00"}]}'
    (message,) = FrameReader().feed(HEADER.pack(len(body)) + body)
    assert message == {"call": "keep", "args": [{"a?": "?\U0001f600"}]}
