"""An evaluation in which nothing could be read says so, with the reasons and a program's last words."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.core.errors import UserError
from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.evaluation.statistics.unplayed import refuse_unread, why_nothing_was_played
from skillpress.pipeline.playing import refuse_unasked


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


def test_a_stage_stops_for_a_trained_policy_that_nobody_can_read_unless_that_is_accepted() -> None:
    with pytest.raises(
        UserError, match=r"the trained policy: none of 1 answers could be read \(missing_action 1\)"
    ):
        refuse_unread(episodes("missing_action"), accepted=False)
    refuse_unread(episodes("missing_action"), accepted=True)
    refuse_unread(episodes("missing_action", None), accepted=False)


def test_a_program_must_ask_the_model_whatever_the_policy_answers() -> None:
    refuse_unasked(episodes("missing_action"))
    refuse_unasked(episodes("nothing_asked", None))
    refuse_unasked(episodes())
    with pytest.raises(UserError, match=r"no program asked the model: .* 'crashed'; .*no such interpreter"):
        refuse_unasked(episodes("nothing_asked", "nothing_asked", last="no such interpreter"))
