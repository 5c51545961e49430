"""The runs beside a written skill: uses are framed, a few steps around them stay, the rest is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.reports.skills_page.episodes import ShownStep
from skillpress.reports.skills_page.written import AROUND, uses_in


def steps_of(skills: list[str | None]) -> list[ShownStep]:
    return [
        ShownStep(number, skill, tool="t", action="a", answer="", refused=False)
        for number, skill in enumerate(skills, 1)
    ]


@given(skills=st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40))
def test_every_use_is_one_frame_and_no_step_is_shown_twice_or_lost_uncounted(
    skills: list[str | None],
) -> None:
    frames = list(uses_in(steps_of(skills), ("a", "b")))
    named = "".join(skill for skill in skills if skill is not None)
    framed = [[step.skill for step in frame.steps if step.skill] for frame in frames if frame.learned]
    assert framed == [["a", "b"]] * named.count("ab")
    last = 0
    for frame in frames:
        assert frame.steps[0].number == last + frame.omitted + 1
        last = frame.steps[-1].number
        assert frame.learned or len(frame.steps) <= 2 * AROUND


def test_steps_far_from_a_use_are_counted_and_not_shown() -> None:
    frames = list(uses_in(steps_of([*"cccccabcccc", *"ccab"]), ("a", "b")))
    assert [(frame.learned, frame.omitted, len(frame.steps)) for frame in frames] == [
        (False, 3, 2), (True, 0, 2), (False, 0, 2), (False, 2, 2), (True, 0, 2),
    ]  # fmt: skip
