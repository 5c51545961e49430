"""The pool: ready sandboxes, each used once; every task has an outcome, whatever happens to its sandbox."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox import Limits, Sandbox, SandboxEndedError, SandboxPool


def square(sandbox: Sandbox, number: int) -> str | None:
    """An episode of two calls."""
    sandbox.execute(f"number = {number}")
    return sandbox.execute("number ** 2").result


def test_no_episode_finds_what_another_left() -> None:
    with SandboxPool(ready=2, max_concurrency=2) as pool:
        for _ in range(4):
            with pool.sandbox() as sandbox:
                assert (
                    sandbox.execute("'left' in globals(), __import__('os').listdir('.')").result
                    == "(False, [])"
                )
                sandbox.execute("left = open('left', 'w')")


def test_used_sandboxes_and_stock_end() -> None:
    with SandboxPool(ready=2) as pool:
        pool.wait_until_ready()
        with pool.sandbox() as sandbox:
            pass
        assert not sandbox.alive
    with pytest.raises(SandboxEndedError, match="closed"), pool.sandbox():
        pass


@pytest.mark.kills
def test_every_task_has_its_outcome_while_sandboxes_are_killed() -> None:
    chance = random.Random(0)

    def unlucky(sandbox: Sandbox, number: int) -> str | None:
        if chance.random() < 0.3:
            os.kill(sandbox.pid, signal.SIGKILL)
        return square(sandbox, number)

    with SandboxPool(ready=2, max_concurrency=4) as pool:
        outcomes = list(pool.run(range(30), unlucky, deadline_seconds=60, attempts=10))
    assert sorted(outcome.task for outcome in outcomes) == list(range(30))
    assert all(outcome.result == str(outcome.task**2) for outcome in outcomes)
    assert max(outcome.attempts for outcome in outcomes) > 1


@pytest.mark.kills
def test_killed_while_it_waits_is_not_handed_out() -> None:
    with SandboxPool(ready=1) as pool:
        pool.wait_until_ready()
        with pool.sandbox() as first:
            pool.wait_until_ready()
            os.kill(pool._stock[0].result().pid, signal.SIGKILL)
            os.waitid(os.P_PID, pool._stock[0].result().pid, os.WEXITED | os.WNOWAIT)
            with pool.sandbox() as second:
                assert second is not first and second.execute("1").result == "1"


def test_failures_are_reported_with_their_task_and_attempts() -> None:
    def failing(sandbox: Sandbox, task: str) -> None:
        if task == "ends":
            sandbox.execute("import os\nos._exit(1)")
            sandbox.execute("1")
        raise ValueError(task)

    with SandboxPool(ready=0, max_concurrency=2) as pool:
        outcomes = {o.task: o for o in pool.run(["ends", "raises"], failing, deadline_seconds=60, attempts=2)}
    assert outcomes["ends"].attempts == 2 and isinstance(outcomes["ends"].error, SandboxEndedError)
    assert outcomes["raises"].attempts == 1 and isinstance(outcomes["raises"].error, ValueError)


def test_one_deadline_holds_for_all_calls_of_an_episode() -> None:
    told: list[str] = []  # empty if the time was over between two calls
    with SandboxPool(ready=0) as pool, pool.sandbox(deadline_seconds=3.0) as sandbox:
        with pytest.raises(SandboxEndedError, match="time for this task"):
            for _ in range(1000):
                error = sandbox.execute("import time\ntime.sleep(0.2)").error
                told += [error] if error else []
        assert not sandbox.alive
    assert all("time for this task is over" in error for error in told) and len(told) <= 1


def test_no_more_are_in_use_than_may_be() -> None:
    used, most, lock = 0, 0, threading.Lock()

    def counting(sandbox: Sandbox, task: int) -> None:
        nonlocal used, most
        with lock:
            used, most = used + 1, max(most, used + 1)
        sandbox.execute("import time\ntime.sleep(0.05)")
        with lock:
            used -= 1

    with SandboxPool(ready=1, max_concurrency=3, wait_seconds=0.1) as pool:
        assert all(outcome.error is None for outcome in pool.run(range(9), counting, deadline_seconds=60))
        assert most <= 3


def test_waiting_for_a_free_one_ends_with_a_reason() -> None:
    with (
        SandboxPool(Limits(), ready=0, max_concurrency=1, wait_seconds=0.1) as pool,
        pool.sandbox(),
        pytest.raises(SandboxEndedError, match="1 are in use"),
        pool.sandbox(),
    ):
        pass


def test_tools_come_with_the_episode() -> None:
    with SandboxPool(ready=1) as pool, pool.sandbox({"answer": lambda: 42}) as sandbox:
        assert sandbox.execute("answer()").result == "42"


@pytest.mark.parametrize("numbers", [{"ready": -1}, {"max_concurrency": 0}])
def test_numbers_that_cannot_be_are_named(numbers: dict[str, int]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(numbers))} is {next(iter(numbers.values()))}"):
        SandboxPool(**numbers)
