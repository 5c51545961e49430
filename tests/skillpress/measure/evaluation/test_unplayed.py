"""An evaluation in which nothing could be read says so, with the reasons and a program's last words."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.measure.evaluation.unplayed import why_no_program_asked, why_nothing_was_played


def episodes(*invalid: str | None, won: bool = False, action: str = "", last: str = "") -> pl.LazyFrame:
    """An episode of one step for each reason."""
    return rollout_frame(
        Trajectory(
            f"t{number}", "g", number, (Step((), (), (), "", action, last, reason, ()),), won, True, False,
            "won" if won else "crashed", 0, 0,
        )
        for number, reason in enumerate(invalid)
    ).lazy()  # fmt: skip


def test_unread_answers_are_counted_by_their_reason() -> None:
    said = why_nothing_was_played(episodes("missing_action", "missing_action", "cut_off"))
    assert said.startswith("none of 3 answers could be read (missing_action 2, cut_off 1)")


def test_programs_that_never_asked_are_told_with_their_last_words() -> None:
    said = why_nothing_was_played(episodes("nothing_asked", last="python3: No such file or directory"))
    assert said.startswith("no program asked the model") and "'crashed'" in said and "No such file" in said


@pytest.mark.parametrize(
    "found",
    [
        episodes("missing_action", None),
        episodes("missing_action", "no such door"),  # an environment's refusal: the answer was read
        episodes("missing_thought", action="go"),  # a lenient parser passed it on
        episodes("nothing_asked", won=True),
    ],
)
def test_an_evaluation_with_one_answer_that_was_read_goes_on(found: pl.LazyFrame) -> None:
    assert why_nothing_was_played(found) == ""


def test_a_start_policy_may_say_nothing_that_can_be_read_but_its_program_must_ask() -> None:
    assert why_no_program_asked(episodes("missing_action")) == ""
    assert why_no_program_asked(episodes("nothing_asked", None)) == ""
    said = why_no_program_asked(episodes("nothing_asked", "nothing_asked", last="no such interpreter"))
    assert said.startswith("no program asked the model (nothing_asked 2)") and "no such interpreter" in said
