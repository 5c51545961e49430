"""Environments of the server live where their section says, and fail one by one."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing

import psutil
import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.integrations.serving import EnvironmentHost, host_of
from skillpress.rollouts.collection import (
    BrokenEnvironmentError,
    StepResult,
    ThreadVectorEnv,
    WorkerVectorEnv,
)
from tests.support.integrations.served import SECTION, TASKS, countdown
from tests.support.rollouts.troubled import Troubled

WAIT = 120.0


def said(answer: Future[StepResult]) -> str:
    return answer.result(WAIT).observation


@pytest.mark.parametrize("hosting", ["in_process", "workers", "threads"])
def test_episodes_are_the_same_wherever_their_environments_live(
    hosting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountdownParameters, "hosting", hosting)
    here = countdown()
    expected = [here.reset(TASKS[0])[0], *(here.step(action)[0] for action in ("op(+, 2, 1)", "rollback"))]
    with closing(host_of(SECTION, 3)) as host:
        for slot in (0, 2):
            answers = [host.ask(slot, TASKS[0]).result(WAIT)]
            answers += [host.ask(slot, action).result(WAIT) for action in ("op(+, 2, 1)", "rollback")]
            assert [answer.observation for answer in answers] == expected


@pytest.mark.kills
def test_an_episode_outlives_the_worker_that_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountdownParameters, "hosting", "workers")
    with closing(host_of(SECTION, 1)) as host:
        before = set(psutil.Process().children())
        host.ask(0, TASKS[0]).result(WAIT)
        host.ask(0, "op(+, 2, 1)").result(WAIT)
        workers = [each for each in psutil.Process().children() if each not in before]
        for worker in workers:
            if "resource_tracker" not in " ".join(worker.cmdline()):
                worker.kill()
        assert host.ask(0, "op(+, 3, 3)").result(WAIT).info.won


@pytest.mark.parametrize("kind", [ThreadVectorEnv, WorkerVectorEnv])
def test_a_task_that_cannot_be_started_is_its_slots_error_and_the_slot_can_be_started_anew(kind) -> None:
    fine = Task("fine", "troubled", 0, {})
    broken = Task("broken", "troubled", 0, {"trouble": "raises", "action": "reset"})
    with closing(EnvironmentHost(kind(Troubled))) as host:
        answers = [host.ask(slot, task) for slot, task in enumerate((fine, broken, fine))]
        assert [said(answers[slot]) for slot in (0, 2)] == ["fine 0", "fine 0"]
        with pytest.raises(BrokenEnvironmentError, match=r"task broken of troubled .*the grue"):
            answers[1].result(WAIT)
        assert said(host.ask(1, fine)) == "fine 0"
        assert said(host.ask(0, "look")) == "look 1", "the others go on"


def test_a_slot_that_is_forgotten_gives_back_what_its_environment_holds() -> None:
    given_back: Future[str] = Future()

    class Holding(Troubled):
        def close(self) -> None:
            given_back.set_result("key")

    with closing(EnvironmentHost(ThreadVectorEnv(Holding))) as host:
        host.ask(0, Task("fine", "troubled", 0, {})).result(WAIT)
        host.forget(0)
        assert given_back.result(WAIT) == "key"


def test_who_waits_when_the_host_ends_is_told() -> None:
    host = EnvironmentHost(WorkerVectorEnv(Troubled, 1))
    waiting = host.ask(0, Task("slow", "troubled", 0, {"trouble": "hangs", "action": "reset"}))
    host.close()
    with pytest.raises(BrokenEnvironmentError, match="the server is ending"):
        waiting.result(WAIT)


class Doomed(ThreadVectorEnv):
    """Fails if any environment fails."""

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        raise KeyError("the pool")

    def abort(self) -> None:
        raise KeyError("the pool again")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_in_vain_for_a_host_that_has_broken_down() -> None:
    host = EnvironmentHost(Doomed(Troubled))
    for error in ("the pool", "the pool again"):
        with pytest.raises(BrokenEnvironmentError, match=error):
            host.ask(0, Task("fine", "troubled", 0, {})).result(WAIT)
    host.close()
