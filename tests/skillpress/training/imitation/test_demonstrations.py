"""Demonstrations in worker processes are the same, in the same order, whichever process makes them."""

from __future__ import annotations

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState, Environment
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.oracle import CountdownOracle
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import Oracle, SharedEnvironments
from skillpress.rollouts.agents.state_updates import Window
from skillpress.rollouts.collection import BrokenEnvironmentError
from skillpress.rollouts.workers.worker import WorkerPoolError
from skillpress.training.imitation.demonstrations import DemonstratedStep, demonstrate


class Elsewhere(CountdownParameters):
    hosting = "workers"


KEYS = {
    "name": "countdown", "max_steps": 30, "min_numbers": 3, "max_numbers": 4, "min_target": 10,
    "max_target": 999,
}  # fmt: skip
HERE, ELSEWHERE = CountdownParameters(**KEYS), Elsewhere(**KEYS)
TASKS = [
    Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]}),
    Task("easy", "countdown", 0, {"target": 24, "numbers": [2, 3, 4]}),
    Task("other", "countdown", 0, {"target": 100, "numbers": [5, 20, 7, 7]}),
]


def shown(
    section: CountdownParameters, tasks: list[Task], processes: int, oracle: Oracle | None = None
) -> list[list[DemonstratedStep]]:
    words = section.rendering("compact", 2)
    return list(
        demonstrate(
            tasks, 30, section, words, Window(2), detour_rate=0.4, seed=3, processes=processes, oracle=oracle
        )
    )


def test_order_and_content_do_not_depend_on_the_processes() -> None:
    expected = shown(HERE, TASKS, 1)
    assert len({tuple(step.response for step in steps) for steps in expected}) > 20
    assert [steps[0].state.task for steps in expected] == TASKS * 10
    for processes in (1, 2):
        assert shown(ELSEWHERE, TASKS, processes) == expected


def test_environments_that_share_something_are_demonstrated_side_by_side_in_the_same_order() -> None:
    closed: list[bool] = []

    class Shared:
        seconds = 60.0

        def __call__(self) -> Environment:
            return HERE.make()

        def close(self) -> None:
            closed.append(True)

    class Waiting(CountdownParameters):
        hosting = "threads"

        def make_shared(self, slots: int) -> SharedEnvironments:
            return Shared()

    assert shown(Waiting(**KEYS), TASKS, 1) == shown(HERE, TASKS, 1)
    assert closed == [True]


class Adviser(CountdownOracle):
    """Advises a word that it never plays."""

    def advise(self, state: AgentState) -> str | None:
        return None if state.history else "reset"


def test_of_an_oracle_that_advises_the_advice_is_learned_and_the_state_goes_on_from_what_was_played() -> None:
    plain = shown(HERE, TASKS, 1)
    advised = shown(HERE, TASKS, 1, Adviser(HERE))
    assert [[step.state for step in steps] for steps in advised] == [
        [step.state for step in steps] for steps in plain
    ]
    for steps, played in zip(advised, plain, strict=True):
        assert steps[0] == DemonstratedStep(played[0].state, "reset", played=played[0].response)
        assert steps[1:] == played[1:], "where it knows of nothing, what was played is learned"


def test_a_task_without_a_demonstration_is_named() -> None:
    hopeless = Task("hopeless", "countdown", 0, {"target": 999, "numbers": [1, 1]})
    with pytest.raises(
        BrokenEnvironmentError, match=r"task hopeless of countdown cannot be demonstrated: .*TaskError"
    ):
        shown(ELSEWHERE, [*TASKS, hopeless], 1)


def test_processes_that_cannot_start_are_an_error_that_says_why() -> None:
    with pytest.raises(WorkerPoolError, match="could not start: OSError: the oracle has left"):
        shown(WithoutOracle(**KEYS), TASKS, 1)


class WithoutOracle(Elsewhere):
    def make_oracle(self) -> Oracle:
        raise OSError("the oracle has left")


def test_demonstrations_can_be_left_early() -> None:
    words = HERE.rendering("compact", 2)
    endless = demonstrate(TASKS, 10**6, ELSEWHERE, words, Window(2), detour_rate=0.4, seed=3, processes=1)
    assert next(endless) == shown(HERE, TASKS, 1)[0]
    endless.close()


@pytest.mark.parametrize("section", [HERE, ELSEWHERE], ids=["here", "in workers"])
def test_demonstrations_that_never_win_are_refused_before_they_are_all_made(
    section: CountdownParameters,
) -> None:
    words = section.rendering("compact", 2)
    rest = {"detour_rate": 0.4, "seed": 3, "processes": 1, "oracle": GoesBack()}
    endless = demonstrate(TASKS, 10**6, section, words, Window(2), **rest)
    with pytest.raises(TaskError, match="none of the first 16 wins its task, such as e3"):
        list(endless)
    few = demonstrate(TASKS, 5, section, words, Window(2), **rest)
    with pytest.raises(TaskError, match="none of the first 5 wins its task"):
        list(few)


class GoesBack:
    """An oracle that only goes back and gives no advice."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        return ["rollback"]
