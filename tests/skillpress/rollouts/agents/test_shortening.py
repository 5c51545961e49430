"""Long texts in a prompt keep both ends and say how much is left out."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillpress.rollouts.agents.context import shortened


@given(st.text(max_size=300), st.integers(0, 120))
def test_a_text_never_grows_and_what_is_left_of_a_shortened_one_is_its_ends(text: str, longest: int) -> None:
    short = shortened(text, longest)
    if short == text:
        return
    assert len(short) < len(text)
    head, note, tail = re.split(r"\n(\[\.\.\. \d+ characters left out \.\.\.\])\n", short, maxsplit=1)
    assert text.startswith(head) and text.endswith(tail) and len(head) + len(tail) == longest
    assert note == f"[... {len(text) - longest} characters left out ...]"


def test_a_text_within_the_limit_stays_whole() -> None:
    assert shortened("x" * 100, 100) == "x" * 100
    assert shortened("x" * 101, 100) == "x" * 101  # the note would be longer than the text it replaces
