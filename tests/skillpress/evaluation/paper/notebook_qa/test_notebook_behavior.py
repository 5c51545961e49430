"""How questions are answered, counted by hand."""

from __future__ import annotations

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.evaluation.paper.notebook_qa import FIGURES
from skillpress.evaluation.statistics.episodes import evaluation_steps


def played(number: int, outcome: str, *cells: str) -> Trajectory:
    steps = tuple(Step((), (), (), "", cell, "", None, ()) for cell in cells)
    return Trajectory(
        f"hotpotqa/{number}", f"test/{number}", 0, steps, outcome == "won", True, False, outcome, 0, 0
    )


def test_answers_are_counted_over_all_episodes_and_what_was_looked_up_over_those_won() -> None:
    steps = evaluation_steps(
        rollout_frame(
            [
                played(1, "won", "search('a')", "search('b')", "read('c')", "submit_final_answer('d')"),
                played(2, "wrong_answer", "search('a')", "submit_final_answer('d')"),
                played(3, "timeout", "1 + 1"),
                played(4, "sandbox", "1 + 1"),
            ]
        )
    )
    found = FIGURES.behavior(steps)
    assert {figure.key: figure.value for figure in found.figures} == {
        "answered": 0.5, "searches": 2.0, "reads": 1.0
    }  # fmt: skip
    assert found.action_mix == {
        "Plan": 0, "Search": 2, "Read": 1, "Compute": 0, "Note": 0, "Answer": 1, "None": 0
    }  # fmt: skip
