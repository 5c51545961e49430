"""Output: short texts stay as they are, long ones keep their ends in memory that does not grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.rollouts.sandbox.output import Captured, cut_in_the_middle


@given(text=st.text(), characters=st.integers(1, 100))
def test_cut_text_keeps_its_ends_and_counts_the_rest(text: str, characters: int) -> None:
    shown, cut = cut_in_the_middle(text, characters)
    if not cut:
        assert shown == text and len(text) <= characters
        return
    head, note, tail = shown.rpartition(f"\n[... {len(text) - characters} characters left out ...]\n")
    assert note and len(head) + len(tail) == characters
    assert text.startswith(head) and text.endswith(tail)


@given(pieces=st.lists(st.binary(max_size=40)), characters=st.integers(2, 20))
def test_stream_shows_as_its_whole_text_would_while_it_is_short(pieces: list[bytes], characters: int) -> None:
    captured, whole = Captured(characters), b"".join(pieces)
    for piece in pieces:
        captured.add(piece)
    shown, cut = captured.shown()
    assert captured.total == len(whole)
    assert cut == (len(whole.decode(errors="replace")) > characters)
    if not cut:
        assert shown == whole.decode(errors="replace")


def test_a_flood_keeps_its_first_and_last_words() -> None:
    captured = Captured(20)
    captured.add(b"the first words ")
    for _ in range(10_000):
        captured.add(b"x" * 1000)
    captured.add(b" the last words")
    shown, cut = captured.shown()
    assert cut and shown.startswith("the first ") and shown.endswith("last words")
    assert "bytes left out" in shown and len(shown) < 100
