"""The example of a report: what it calls refused was not carried out."""

from __future__ import annotations

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import projection_without_keys
from skillpress.pipeline.finished.report import example


def test_an_action_carried_out_in_a_bad_format_is_not_shown_as_refused() -> None:
    said = [("reset", "missing_thought"), ("reset", None), ("rollback", "nothing_to_undo"), ("", "empty")]
    steps = tuple(Step((), (), (), "", action, "", reason, ()) for action, reason in said)
    spec = {"numbers": [1, 2, 3], "target": 6, "solutions": 1}
    shown = example(
        "After training",
        "A puzzle.",
        projection=projection_without_keys("countdown"),
        task=Task("a", "countdown", 0, spec, "test", ""),
        trajectory=Trajectory("a", "g", 0, steps, True, True, False, "won", 0, 0),
        dictionary=None,
    )
    assert [step.invalid for step in shown.steps] == [False, False, True, True]
