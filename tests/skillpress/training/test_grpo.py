"""The parts of a training step that are its own: which tasks, and which rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.params import RewardParameters, SkillParameters
from skillpress.training.distributed import Ranks
from skillpress.training.grpo import tasks_of_step
from skillpress.training.shaping import RewardShaper
from skillpress.trajectory import Step, Task, Trajectory

TASK = Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})
SOLUTION = ("op(-, 80, 28)", "op(+, 52, 2)", "op(*, 54, 1)")
PROJECTED = ("OP_Sub-large-small", "OP_Add-near_target-small", "OP_Mul-near_target-small")
"""The skills of the solution."""


@given(st.integers(1, 20), st.integers(1, 7), st.integers(0, 3))
def test_every_pass_visits_every_task_once_before_any_comes_again(
    count: int, per_step: int, seed: int
) -> None:
    tasks = [Task(str(number), "x", 0, {}) for number in range(count)]
    visited = [
        task.task_id
        for step in range(1, 3 * count + 1)
        for task in tasks_of_step(tasks, per_step, step, seed)
    ]
    for start in range(0, len(visited) - count + 1, count):
        assert len(set(visited[start : start + count])) == count


def trajectory(actions: tuple[str, ...], won: bool) -> Trajectory:
    steps = tuple(
        Step((1,), (2,), (-1.0,), "", action, "", None, 10.0 * (won and action is actions[-1]))
        for action in actions
    )
    return Trajectory("e3", "g", 0, steps, won, won, not won, "won" if won else "timeout", 0, 0)


def shaper(
    shaping: str,
    buffer: int = 256,
    search: str = "greedy",
    closure: str = "none",
    ranks: Ranks = Ranks(),  # noqa: B008
) -> RewardShaper:
    reward = RewardParameters(success=10.0, invalid_penalty=0.01, shaping=shaping, efficiency=10.0)  # type: ignore[arg-type]
    skills = SkillParameters(max_phrase_length=4, buffer=buffer, search=search, closure=closure)  # type: ignore[arg-type]
    return RewardShaper(CountdownProjection(), skills, reward, 30, ranks, seed=0)


def test_round_length_takes_ten_times_the_length_over_t_off_successes_only() -> None:
    played = [trajectory(SOLUTION, True), trajectory(SOLUTION[:1] * 4, False)]
    np.testing.assert_allclose(shaper("round_length")([TASK] * 2, played).returns, [10 - 10 * 3 / 30, 0])


def test_a_phrase_that_all_successes_share_costs_one_segment() -> None:
    played = [trajectory(SOLUTION, True)] * 60 + [trajectory(SOLUTION[:2], False)]
    shaped = shaper("segcost")([TASK] * 61, played)
    assert shaped.dictionary is not None
    np.testing.assert_allclose(shaped.returns, [10 - 10 * 1 / 30] * 60 + [0])
    assert shaped.metrics["dictionary/segments"] == 1


def test_without_a_success_rewards_stay_as_they_are() -> None:
    shaped = shaper("segcost")([TASK], [trajectory(SOLUTION[:2], False)])
    assert shaped.returns.tolist() == [0] and shaped.dictionary is None


def test_the_buffer_lets_one_success_be_judged_by_those_before_it() -> None:
    many, one = [trajectory(SOLUTION, True)] * 60, [trajectory(SOLUTION, True)]
    remembering, forgetful = shaper("segcost"), shaper("segcost", buffer=0)
    for each in (remembering, forgetful):
        each([TASK] * 60, many)
    np.testing.assert_allclose(remembering([TASK], one).returns, [10 - 10 / 30])
    np.testing.assert_allclose(forgetful([TASK], one).returns, [10 - 10 * 3 / 30])


def test_plain_shaping_changes_nothing_but_still_shows_the_dictionary() -> None:
    shaped = shaper("none")([TASK], [trajectory(SOLUTION, True)])
    assert shaped.returns.tolist() == [10] and shaped.metrics["dictionary/segments"] == 3


def test_a_success_that_another_skill_would_make_cheaper_is_counted_and_a_closure_prevents_it() -> None:
    """With the whole solution as the only phrase, its first two skills cost 2 and all three cost 1."""
    played = [trajectory(SOLUTION, True)] * 60 + [trajectory(SOLUTION[:2], True)]
    shaped = shaper("segcost", search="refined")([TASK] * 61, played)
    assert shaped.metrics["skills/exploitable_rate"] == 1 / 61
    np.testing.assert_allclose(shaped.returns[-1], 10 - 10 * 2 / 30)
    closed = shaper("segcost", search="refined", closure="prefixes")([TASK] * 61, played)
    assert closed.metrics["skills/exploitable_rate"] == 0
    np.testing.assert_allclose(closed.returns[-1], 10 - 10 * 1 / 30)


@dataclass(frozen=True)
class OneOf(Ranks):
    """One of several ranks whose successes are known beforehand."""

    everybodys: tuple[Any, ...] = ()

    def gather(self, items: Sequence[Any]) -> list[Any]:
        return list(self.everybodys)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=4, max_size=40), st.sampled_from([2, 4])
)
def test_the_number_of_processes_changes_no_reward(batch: list[tuple[int, bool]], processes: int) -> None:
    batch = batch[: len(batch) // processes * processes] * 6
    played = [trajectory(SOLUTION[:length], won) for length, won in batch]
    together = shaper("segcost")([TASK] * len(played), played).returns
    successes = tuple(PROJECTED[:length] for length, won in batch if won)
    shared = []
    for rank in range(processes):
        mine = [played[index] for index in OneOf(rank, processes).share(len(played))]
        part = shaper("segcost", ranks=OneOf(rank, processes, successes))
        shared.append(part([TASK] * len(mine), mine).returns)
    np.testing.assert_array_equal(np.concatenate(shared), together)


def test_the_dictionary_sees_the_successes_of_all_ranks() -> None:
    others = (PROJECTED[:2],) * 60
    both = shaper("segcost", ranks=OneOf(0, 2, (PROJECTED, *others)))
    # The two first skills of the solution are the other rank's phrase: 2 segments instead of 3.
    np.testing.assert_allclose(both([TASK], [trajectory(SOLUTION, True)]).returns, [10 - 10 * 2 / 30])
    assert len(both.buffer) == 61
