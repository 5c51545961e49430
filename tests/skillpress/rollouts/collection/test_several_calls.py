"""A response that makes several calls is one step with several skills, from the player to its price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from skillpress.core.interface import Info
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Project, Skills, Task, Trajectory, skill_sequence, step_skills
from skillpress.rollouts.agents.parameters import RewardParameters
from skillpress.rollouts.collection import Collector, SyncVectorEnv
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.parameters import SkillParameters
from skillpress.training.loop.reward_shaping import RewardShaper
from tests.support.rollouts.rote import agent

TASK = Task("t", "workshop", 0, {})
MAX_STEPS = 4
ANSWERS = ("read; edit; test", "hm", "read; edit", "test; done")
"""The episode's responses: ten words, of which nine are calls."""


class Workshop:
    """Carries out the calls of an action one after the other; ``done`` wins."""

    action_space = observation_space = None

    def reset(self, task: Task) -> tuple[str, Info]:
        self.steps = 0
        return "a bench", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        self.steps += 1
        won = action.endswith("done")
        return f"{len(action.split('; '))} answers", won, self.steps == MAX_STEPS, Info(won, action=action)


class CallProjection:
    """φ: each call that the workshop knows is a skill."""

    alphabet: tuple[str, ...] = ("read", "edit", "test", "done")

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        return tuple(
            tuple(call for call in action.split("; ") if call in self.alphabet)
            for action in trajectory.actions
        )


PROJECTION = CallProjection()


def play(
    copies: int, answers: Sequence[str] = ANSWERS, project: Project | None = PROJECTION
) -> list[Trajectory]:
    """The same episode a few times, one after the other."""
    said = [f"<think>so</think><action>{answer}</action>" for answer in answers]
    player, _ = agent(*said * copies)
    wanted = [EpisodeRequest(TASK, "g", index, 0) for index in range(copies)]
    with Collector(SyncVectorEnv(Workshop), player, 1, project=project) as collector:
        return collector.collect(wanted)


def test_each_step_records_the_skills_of_its_calls_in_order() -> None:
    (played,) = play(1)
    assert played.won and len(played.steps) == 4
    assert [step.skills for step in played.steps] == [
        ("read", "edit", "test"), (), ("read", "edit"), ("test", "done"),
    ]  # fmt: skip


def test_a_file_keeps_them_and_needs_no_rules_to_give_them_back(tmp_path: Path) -> None:
    (played,) = play(1)
    write_rollouts(tmp_path / "rollouts.parquet", [played])
    assert read_rollouts(tmp_path / "rollouts.parquet") == [played]

    def never(task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        raise AssertionError("φ was asked for what is recorded")

    assert skill_sequence(never, TASK, played) == ("read", "edit", "test", "read", "edit", "test", "done")


def test_a_phrase_runs_across_steps_and_each_step_pays_for_the_phrases_that_begin_in_it() -> None:
    """The dictionary learns a phrase of three from the episodes; the last episode's cut is
    read edit test | read edit test | done, so the third step begins one phrase and the last one another."""
    shaper = RewardShaper(
        projection=PROJECTION,
        skills=SkillParameters(
            max_phrase_length=3, buffer=0, corpus="algorithm_1", search="greedy", closure="none", library=None
        ),
        reward=RewardParameters(
            success=10.0, invalid_penalty=0.0, invalid_counts="any", invalid_credit="trajectory", measures={},
            shaping="segcost", shaping_credit="step", shaping_weight=4.0,
        ),
        max_steps=MAX_STEPS,
        ranks=Ranks(),
        seed=0,
    )  # fmt: skip
    played = play(6)
    shaped = shaper([TASK] * 6, played)
    assert shaped.dictionary is not None and shaped.charges is not None
    assert ("read", "edit", "test") in shaped.dictionary.learned
    assert shaped.segments.tolist() == [3.0] * 6
    assert shaped.charges.tolist() == [1.0, 0.0, 1.0, 1.0] * 6
    assert shaped.penalty.tolist() == [sum(shaped.charges[:4])] * 6
    assert shaped.metrics["skills/unlabelled_rate"] == pytest.approx(1 / 4)


@pytest.mark.parametrize("given", ["no", (("read",),), ("read", ())])
def test_rules_that_give_no_tuple_for_each_step_are_refused(given: tuple[Skills, ...]) -> None:
    """``"read"`` alone would be four skills of one letter."""
    with pytest.raises(
        ValueError, match=r"φ of task t: got .* for 2 steps; return a tuple of skills for each"
    ):
        play(1, ("hm", "done"), lambda task, trajectory: given)


def test_without_rules_a_player_records_no_skills_and_they_are_asked_for_later() -> None:
    (played,) = play(1, ANSWERS, None)
    assert [step.skills for step in played.steps] == [None] * 4
    assert step_skills(PROJECTION, TASK, played)[2] == ("read", "edit")
