"""Episodes in sandboxes: a lost one is replayed in another sandbox, and none is left out."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from skillpress.core.interface import Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Task
from skillpress.environments.sandboxed import EpisodeSandbox, PooledEnvironments, SandboxedEnvironment
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.sandbox import Execution, Limits, Sandbox
from tests.support.rollouts.walking import Walker

TASKS = [Task(f"to-{goal}", "counting", 0, {"goal": goal}) for goal in (2, 3, 4)]
LIMITS = Limits(seconds=20)


class Counting:
    """An episode whose actions are code; it is won when ``count`` inside equals the goal."""

    def __init__(self, task: Task, sandbox: EpisodeSandbox) -> None:
        self._goal, self._sandbox = task.spec["goal"], sandbox
        self._sandbox.prepare = lambda fresh: fresh.use_tools({"note": self._note})
        self.noted: list[int] = []

    def _note(self, number: int) -> None:
        self.noted.append(number)

    def start(self) -> tuple[str, Info]:
        self._sandbox.call(lambda sandbox: sandbox.execute("count = 0"))
        return "count", Info()

    def act(self, action: str) -> tuple[str, bool, bool, Info]:
        done = self._sandbox.call(lambda sandbox: sandbox.execute(action))
        said = f"{self._sandbox.told}{done.result} {done.error or ''} {self.noted}"
        won = done.result == str(self._goal)
        return said, won, False, Info(won=won, action=action)


class Lease:
    """A test's own sandboxes, which it can kill."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.leased: list[Sandbox] = []

    def __call__(self) -> AbstractContextManager[Sandbox]:
        self.leased.append(Sandbox.start(self.limits))
        return self.leased[-1]

    def kill(self) -> None:
        os.kill(self.leased[-1].pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.leased[-1].pid, os.WEXITED | os.WNOWAIT)

    def kill_when(self, chosen: Callable[[], bool]) -> None:
        if chosen():
            self.kill()


COUNT = "count += 1\nnote(count)\ncount"


@pytest.fixture
def lease() -> Iterator[Lease]:
    lease = Lease()
    yield lease
    assert not any(sandbox.alive for sandbox in lease.leased), "all are given back"


@pytest.mark.kills
def test_an_episode_goes_on_after_the_loss_of_its_sandbox_as_if_nothing_had_been(lease: Lease) -> None:
    environment = SandboxedEnvironment(Counting, lease, seconds=60)
    environment.reset(TASKS[1])
    assert environment.step(COUNT)[0] == "1  [1]"
    lease.kill()
    assert environment.step(COUNT)[0] == "2  [1, 2]"
    lease.kill()
    observation, terminated, truncated, info = environment.step(COUNT)
    assert (observation, terminated, truncated, info.won) == ("3  [1, 2, 3]", True, False, True)
    assert len(lease.leased) == 3


def test_a_sandbox_that_is_lost_in_a_call_is_no_other_case(lease: Lease) -> None:
    class Struck(Counting):
        def __init__(self, task: Task, sandbox: EpisodeSandbox) -> None:
            super().__init__(task, sandbox)
            sandbox.prepare = lambda fresh: fresh.use_tools(
                {"note": lambda number: lease.kill_when(lambda: len(lease.leased) == 1)}
            )

    environment = SandboxedEnvironment(Struck, lease, seconds=60)
    environment.reset(TASKS[0])
    assert environment.step(COUNT)[0].startswith("1 ")
    assert environment.step(COUNT)[3].won


def test_a_sandbox_killed_when_its_answer_is_out_was_not_ended_by_the_code_in_it(lease: Lease) -> None:
    class StruckAfterwards(Counting):
        def act(self, action: str) -> tuple[str, bool, bool, Info]:
            answer = super().act(action)
            self._sandbox.call(lambda sandbox: lease.kill_when(lambda: len(lease.leased) == 1))
            return answer

    environment = SandboxedEnvironment(StruckAfterwards, lease, seconds=60)
    environment.reset(TASKS[0])
    assert environment.step(COUNT)[0].startswith("1 ")
    assert environment.step(COUNT)[3].won, "the episode was played again"


@pytest.mark.kills
def test_an_episode_is_lost_with_its_last_sandbox(lease: Lease) -> None:
    environment = SandboxedEnvironment(Counting, lease, seconds=60, attempts=2)
    environment.reset(TASKS[2])
    environment.step(COUNT)
    lease.kill()
    environment.step(COUNT)
    lease.kill()
    assert environment.step(COUNT) == (
        "The sandbox was lost.", True, False, Info(lost="sandbox", action=COUNT)
    )  # fmt: skip
    environment.reset(TASKS[0])
    environment.step(COUNT)
    assert environment.step(COUNT)[3].won, "the next one has all its attempts"


def test_code_that_ends_its_sandbox_is_told_and_goes_on_in_a_fresh_one(lease: Lease) -> None:
    environment = SandboxedEnvironment(Counting, lease, seconds=60)
    environment.reset(TASKS[1])
    environment.step(COUNT)
    assert "its variables, files and processes are lost" in environment.step("import os; os._exit(3)")[0]
    assert "NameError" in environment.step("count")[0]
    assert environment.step("note(7)")[0] == "None  [1, 7]", "it is prepared like the first one"
    environment.close()


def test_the_host_ends_what_grows_in_the_background_and_the_next_call_says_so() -> None:
    lease = Lease(Limits(memory_mb=64))
    environment = SandboxedEnvironment(Counting, lease, seconds=60)
    environment.reset(TASKS[1])
    environment.step(
        "import os, time\nif not os.fork():\n  time.sleep(0.5); x = b'1' * (90 << 20); time.sleep(9)"
    )
    sandbox = lease.leased[0]
    while sandbox.alive:
        threading.Event().wait(0.05)
    assert environment.step("1")[0].startswith("All processes together used more than 64 MB")
    environment.close()


def test_an_episode_has_so_much_time_in_its_sandbox(lease: Lease) -> None:
    environment = SandboxedEnvironment(Counting, lease, seconds=1.0)
    environment.reset(TASKS[1])
    threading.Event().wait(1.2)
    assert environment.step(COUNT)[0].startswith("1 "), "to think costs nothing"
    observation, terminated, _, info = environment.step("import time; time.sleep(9)")
    assert terminated and info.lost == "time" and "time for this task is over" in observation


class Counter(Walker):
    """Counts on in every state."""

    def decision(self, request: DecisionRequest) -> Decision:
        return Decision((1,), (1,), (-0.5,), ParsedAction("", COUNT))


@pytest.mark.kills
def test_every_episode_of_a_collector_ends_while_sandboxes_are_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance, execute = random.Random(0), Sandbox.execute

    def unlucky(sandbox: Sandbox, code: str) -> Execution:
        if chance.random() < 0.2:
            os.kill(sandbox.pid, signal.SIGKILL)
        return execute(sandbox, code)

    monkeypatch.setattr(Sandbox, "execute", unlucky)
    shared = PooledEnvironments(lambda lease: SandboxedEnvironment(Counting, lease, 60.0), LIMITS, 4, 60.0)
    wanted = requests(TASKS, 8, 0, "test")
    before = set(threading.enumerate())  # other tests of this process abandon threads that have not ended yet
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), Counter(), 4) as collector:
        found = collector.collect(wanted)
    assert [trajectory.task_id for trajectory in found] == [request.task.task_id for request in wanted]
    assert {trajectory.outcome for trajectory in found} == {"won", "sandbox"}
    left = set(threading.enumerate()) - before
    assert not [thread.name for thread in left if thread.name.startswith("environment ")]
