"""Which games are taken, and which of their episodes are counted."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.shown_refusals import counted, some
from skillpress.core.trajectory import Step, Task, Trajectory

TASKS = [Task(f"{kind}-{n}", "textworld_cooking", n, {}, "test", kind) for kind, of in
         (("hard", 2), ("simple", 8)) for n in range(of)]  # fmt: skip


def test_games_are_taken_in_the_proportion_of_their_kinds() -> None:
    half = [task.task_id for task in some(TASKS, 5)]
    assert half == ["simple-0", "simple-1", "simple-2", "simple-3", "hard-0"]
    assert sorted(task.task_id for task in some(TASKS, 10)) == sorted(task.task_id for task in TASKS)


def test_an_episode_counts_as_refused_once_however_often_it_was() -> None:
    fine = Step((1,), (2,), (0.0,), "", "look", "", None, ())
    refused = replace(fine, invalid="not_admissible")

    def episode(won: bool, *steps: Step) -> Trajectory:
        return Trajectory("a", "a", 0, steps, won, True, False, "", 0, 0)

    played = [episode(True, refused, refused, fine), episode(False, fine, refused), episode(True, fine)]
    assert counted(played) == {"episodes": 3, "won": 2, "with_a_refused_action": 2, "of_these_won": 1}
