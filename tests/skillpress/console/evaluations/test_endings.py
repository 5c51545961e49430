"""An evaluation in which nothing could be read says so, with the reasons and a program's last words."""

from __future__ import annotations

import polars as pl
import pytest

from skillpress.console.evaluations.endings import why_nothing_was_played
from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory


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
