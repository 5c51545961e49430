"""Environments in threads: they wait concurrently, and an error names the late one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gymnasium.spaces import Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import (
    BrokenEnvironmentError,
    Collector,
    SyncVectorEnv,
    ThreadVectorEnv,
    requests,
)
from tests.support.rollouts.troubled import answered
from tests.support.rollouts.walking import TASKS, Countdowner, Walker

A, B, C = (Task(name, "gate", 0, {}) for name in "abc")


class Gates:
    """Environments that answer ``wait`` when their gate is opened; ``gates`` holds one gate per task."""

    def __init__(self) -> None:
        self.gates = {task.task_id: threading.Event() for task in (A, B, C)}
        self.together = threading.Barrier(3, timeout=60)

    def __call__(self) -> Gate:
        return Gate(self)


class Gate:
    action_space = observation_space = Text(max_length=16)

    def __init__(self, all_gates: Gates) -> None:
        self.all = all_gates

    def reset(self, task: Task) -> tuple[str, Info]:
        self.task = task
        return task.task_id, Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        match action:
            case "wait":
                self.all.gates[self.task.task_id].wait(60)
            case "meet":
                self.all.together.wait()
            case "break":
                raise ConnectionError("the sandbox is gone")
        return f"{self.task.task_id} {action}", False, False, Info()


@contextmanager
def begun(tasks: dict[int, Task], gates: Gates | None = None, **limits: float) -> Iterator[ThreadVectorEnv]:
    """Environments in which these tasks have begun, by their slots."""
    environments = ThreadVectorEnv(gates or Gates(), **limits)
    environments.start(tasks)
    answered(environments, tasks)
    yield environments
    environments.close()


def test_trajectories_are_those_of_one_process() -> None:
    wanted = requests(TASKS, 3, 0, "test")
    expected = Collector(SyncVectorEnv(Countdowner), Walker(), 4).collect(wanted)
    for lockstep in (True, False):
        with Collector(ThreadVectorEnv(Countdowner), Walker(lockstep), 4) as collector:
            assert collector.collect(wanted) == expected


def test_all_wait_at_the_same_time() -> None:
    """Each step returns when three are in it."""
    with begun({0: A, 1: B, 2: C}) as environments:
        environments.step(dict.fromkeys(range(3), "meet"))
        assert {answer.observation for answer in answered(environments, range(3)).values()} == {
            "a meet", "b meet", "c meet"
        }  # fmt: skip


def test_one_goes_on_while_another_waits() -> None:
    with begun({0: A, 1: B}, gates := Gates()) as environments:
        environments.step({0: "wait", 1: "look"})
        assert answered(environments, [1])[1].observation == "b look"
        assert environments.completed(0.0) == []
        gates.gates["a"].set()
        assert answered(environments, [0])[0].observation == "a wait"


@pytest.mark.parametrize(
    ("action", "seconds", "said"),
    [("wait", 0.5, "the step 'wait' has not"), ("break", 60.0, "the step 'break' failed: Con")],
)
def test_a_step_past_its_deadline_and_an_exception_are_errors_that_name_task_and_slot(
    action: str, seconds: float, said: str
) -> None:
    with begun({0: A, 7: B}, gates := Gates(), seconds=seconds) as environments:
        environments.step({7: action})
        with pytest.raises(BrokenEnvironmentError, match=f"task b of gate in slot 7: {said}"):
            environments.completed(60.0)
        gates.gates["b"].set()


def test_who_is_aborted_is_left_behind_and_its_late_answer_is_dropped() -> None:
    gates = Gates()
    environments = ThreadVectorEnv(gates)
    before = set(threading.enumerate())  # other tests of this process abandon threads that have not ended yet
    environments.start({0: A, 1: B})
    answered(environments, [0, 1])
    environments.step({0: "wait"})
    threads = {thread.name: thread for thread in set(threading.enumerate()) - before}
    environments.abort()
    assert environments.completed(0.0) == []
    environments.start({0: C})
    gates.gates["a"].set()
    threads["environment 0"].join(60)
    assert not threads["environment 0"].is_alive(), "it ends when its call has returned"
    assert answered(environments, [0])[0].observation == "c"
    assert environments.completed(0.0) == []
    environments.step({1: "look"})
    assert answered(environments, [1])[1].observation == "b look", "who was not at work stays"
    environments.close()


def test_what_environments_share_is_ended_with_them() -> None:
    ended: list[str] = []
    with Collector(
        ThreadVectorEnv(Countdowner, close_shared=lambda: ended.append("pool")), Walker(), 2
    ) as collector:
        collector.collect(requests(TASKS, 1, 0, "test"))
        assert not ended
    assert ended == ["pool"]


def test_an_environment_gives_back_what_it_holds_when_its_thread_ends() -> None:
    given_back: list[str] = []

    class Holding(Countdowner):
        def close(self) -> None:
            given_back.append(threading.current_thread().name)

    with Collector(
        ThreadVectorEnv(Holding, close_shared=lambda: given_back.append("pool")), Walker(), 2
    ) as collector:
        collector.collect(requests(TASKS, 1, 0, "test"))
        assert not given_back
    assert sorted(given_back[:2]) == ["environment 0", "environment 1"]
    assert given_back[2:] == ["pool"], "what they share is ended last"


def test_an_error_is_its_slots_alone_and_loses_no_other_answer() -> None:
    environments = ThreadVectorEnv(Gates())
    environments.start({0: A, 1: B, 2: C})
    answered(environments, range(3))
    environments.step({0: "look", 1: "break", 2: "look"})
    found: dict[int, str] = {}
    broken: list[int | None] = []
    while len(found) + len(broken) < 3:
        try:
            found |= {slot: answer.observation for slot, answer in environments.completed(60.0)}
        except BrokenEnvironmentError as error:
            broken.append(error.slot)
    assert (found, broken) == ({0: "a look", 2: "c look"}, [1])
    environments.start({1: B})
    assert answered(environments, [1])[1].observation == "b"
    environments.close()


def test_a_slot_that_is_forgotten_gives_back_what_its_environment_holds() -> None:
    given_back = threading.Event()

    class Holding(Countdowner):
        def close(self) -> None:
            given_back.set()

    environments = ThreadVectorEnv(Holding)
    environments.start({0: TASKS[0]})
    answered(environments, [0])
    environments.forget(0)
    assert given_back.wait(60)
    environments.forget(0)  # there is nothing left to end
    environments.close()
