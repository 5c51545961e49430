"""Environments in worker processes give the same trajectories as in process, whatever happens to a worker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch  # noqa: F401  the parent holds it, the workers must not

from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import RewardPart, Task, Trajectory
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.rollouts.agents import OutcomeReward, RandomExplorer
from skillpress.rollouts.collection import (
    BrokenEnvironmentError,
    Collector,
    SyncVectorEnv,
    WorkerVectorEnv,
    requests,
)
from skillpress.rollouts.collection.worker_vector import ENGINE_FAILED
from skillpress.rollouts.workers.worker import WorkerLimits
from tests.support.environments.small_games import COUNTDOWN
from tests.support.programs import importing
from tests.support.rollouts import troubled
from tests.support.rollouts.processes import assert_end
from tests.support.rollouts.troubled import STEPS, Boxed, Counting, Nosy, Troubled, answered
from tests.support.rollouts.walking import Walker

LIMITS = WorkerLimits(seconds=60.0, memory=250_000_000)
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
IMPATIENT = WorkerLimits(seconds=5.0, memory=250_000_000)


class Plodder(Walker):
    """Walks and never jumps."""

    def decision(self, request: DecisionRequest) -> Decision:
        return Decision((), (), (), ParsedAction("", "walk"))

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        return (RewardPart("invalid", -0.01 * (info.invalid is not None), "step"),)


def tasks(**spec: object) -> list[Task]:
    """Five tasks, the third of which causes trouble."""
    return [Task(f"t{number}", "troubled", 0, spec if number == 2 else {}) for number in range(5)]


@contextmanager
def workers(limits: WorkerLimits = LIMITS) -> Iterator[WorkerVectorEnv]:
    environments = WorkerVectorEnv(Troubled, 1, limits)
    try:
        yield environments
    finally:
        environments.close()


def play(
    environments: SyncVectorEnv | WorkerVectorEnv, these: Sequence[Task], lockstep: bool = True
) -> list[Trajectory]:
    collector = Collector(environments, Plodder(lockstep), slots=4)
    trajectories = collector.collect(requests(these, 1, 0, "test"))
    steps = sum(len(trajectory.steps) for trajectory in trajectories)
    assert collector.statistics.episodes == len(these)
    assert collector.statistics.environment_steps == collector.statistics.decisions == steps
    return trajectories


UNTROUBLED = play(SyncVectorEnv(Troubled), tasks())


@pytest.mark.parametrize(
    ("trouble", "lockstep"),
    [*((trouble, True) for trouble in ("dies", "hangs", "grows", "raises", "garbage")), ("dies", False)],
)
def test_an_episode_whose_worker_fails_once_is_replayed_and_goes_on(
    trouble: str, lockstep: bool, tmp_path: Path
) -> None:
    once = tmp_path / "once"
    with workers(IMPATIENT if trouble == "hangs" else LIMITS) as environments:
        troubled = tasks(trouble=trouble, action="walk 3", once=str(once))
        assert play(environments, troubled, lockstep) == UNTROUBLED
        assert environments.pool.restarts == 1
        assert not psutil.pid_exists(int(once.read_text()))


@pytest.mark.parametrize(("trouble", "detail"), [("dies", "exit code 9"), ("raises", "KeyError: 'the grue'")])
def test_an_action_that_always_kills_its_worker_ends_its_own_episode_and_no_other(
    trouble: str, detail: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with workers() as environments:
        found = play(environments, tasks(trouble=trouble, action="walk 3"))
    assert re.search(f"t2: its episode ends.*{detail}", capsys.readouterr().err)
    assert environments.pool.restarts == LIMITS.attempts
    failed = found.pop(2)
    assert found == UNTROUBLED[:2] + UNTROUBLED[3:]
    assert (failed.outcome, failed.won, failed.terminated, failed.truncated) == (
        ENGINE_FAILED,
        False,
        True,
        False,
    )
    assert failed.steps[:2] == UNTROUBLED[2].steps[:2]
    assert [step.invalid for step in failed.steps] == [None, None, ENGINE_FAILED]
    assert failed.steps[-1].reward == -0.01


@pytest.mark.parametrize(("trouble", "detail"), [("dies", "exit code 9"), ("raises", "KeyError: 'the grue'")])
def test_a_task_that_cannot_be_started_is_an_error_with_its_name(trouble: str, detail: str) -> None:
    with workers() as environments:
        with pytest.raises(
            BrokenEnvironmentError, match=f"task t2 of troubled cannot be started: .*{detail}"
        ):
            play(environments, tasks(trouble=trouble, action="reset"))
        assert play(environments, tasks()) == UNTROUBLED, "the environments are as good as new afterwards"


def test_a_worker_that_has_grown_past_its_cap_is_replaced_between_steps() -> None:
    with workers() as environments:
        assert play(environments, tasks(trouble="leaks", action="walk 3")) == UNTROUBLED
        assert environments.pool.restarts == 1, (
            "the replay leaks again, but from a first batch that does it is spared"
        )


@pytest.mark.kills
def test_a_worker_killed_from_outside_is_replaced() -> None:
    environments = WorkerVectorEnv(Troubled, 2, LIMITS)
    environments.start(dict(enumerate(tasks())))
    answered(environments, range(5))
    environments.step(dict.fromkeys(range(5), "walk"))
    answered(environments, range(5))
    victim = max(psutil.Process().children(), key=lambda child: child.create_time())
    victim.kill()
    environments.step(dict.fromkeys(range(5), "jump"))
    answers = answered(environments, range(5))
    assert [answers[slot].observation for slot in range(5)] == ["jump 2"] * 5
    assert environments.pool.restarts == 1
    environments.close()


@pytest.mark.kills
@pytest.mark.skipif(not os.access(MEMORY_GROUPS, os.W_OK), reason="memory cgroups are not ours to make here")
def test_a_worker_that_the_kernel_kills_for_lack_of_memory_is_replaced(tmp_path: Path) -> None:
    """The kernel acts before the worker reaches the limit of its pool, as in a container."""
    group, before = MEMORY_GROUPS / f"skillpress-worker-{os.getpid()}", set(psutil.Process().children())
    environments = WorkerVectorEnv(Troubled, 2, WorkerLimits(seconds=60.0, memory=1 << 40))
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(256 << 20))
        once = str(tmp_path / "once")
        environments.start(dict(enumerate(tasks(trouble="grows", action="walk 1", once=once))))
        answered(environments, range(5))
        for worker in set(psutil.Process().children()) - before:
            (group / "cgroup.procs").write_text(str(worker.pid))
        environments.step(dict.fromkeys(range(5), "walk"))
        answers = answered(environments, range(5))
        assert [answers[slot].observation for slot in range(5)] == ["walk 1"] * 5
        assert environments.pool.restarts == 1
    finally:
        for pid in (group / "cgroup.procs").read_text().split():  # a group that has processes stays
            (MEMORY_GROUPS / "cgroup.procs").write_text(pid)
        environments.close()
        group.rmdir()


def test_a_replay_that_comes_out_differently_is_no_continuation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nosy's first observation names its process."""
    task = Task("t", "nosy", 0, {"trouble": "dies", "action": "walk 1", "once": str(tmp_path / "once")})
    environments = WorkerVectorEnv(Nosy, 1, LIMITS)
    environments.start({0: task})
    answered(environments, [0])
    environments.step({0: "walk"})
    assert answered(environments, [0])[0].info.lost == ENGINE_FAILED
    assert "task t replayed differs after 0 actions" in capsys.readouterr().err
    environments.close()


def test_facts_that_cannot_be_pickled_are_an_error_with_the_tasks_name() -> None:
    environments = WorkerVectorEnv(Boxed, 1, LIMITS)
    with pytest.raises(BrokenEnvironmentError, match=r"task t of boxed cannot be started: .*pickle"):
        environments.start({0: Task("t", "boxed", 0, {})})
        answered(environments, [0])
    environments.close()


def test_workers_begin_at_different_tasks() -> None:
    environments = WorkerVectorEnv(Counting, 2)
    environments.start({slot: Task(f"t{slot // 4}", "troubled", 0, {}) for slot in range(8)})
    begun = {slot: int(answer.observation) for slot, answer in answered(environments, range(8)).items()}
    environments.close()
    assert sorted(range(0, 8, 2), key=begun.__getitem__) == [0, 2, 4, 6]
    assert sorted(range(1, 8, 2), key=begun.__getitem__) == [5, 7, 1, 3]


def test_workers_import_no_torch_are_started_when_needed_and_end_when_closed() -> None:
    before = set(psutil.Process().children())
    environments = WorkerVectorEnv(Nosy, 4)
    assert set(psutil.Process().children()) == before
    environments.start({slot: Task("t", "nosy", 0, {}) for slot in (0, 4, 1)})
    seen = [answer.observation for answer in answered(environments, (0, 4, 1)).values()]
    assert all(observation.endswith(" []") for observation in seen)
    assert len(set(seen)) == 2
    environments.close()
    assert not any(psutil.pid_exists(int(observation.split()[0])) for observation in seen)


@pytest.mark.kills
@pytest.mark.parametrize(("how", "ends_by"), [(signal.SIGKILL, -9), (signal.SIGINT, -2)])
def test_workers_end_with_their_parent_however_it_ends(
    how: signal.Signals, ends_by: int, tmp_path: Path
) -> None:
    """Ctrl-C reaches the whole process group; kill -9 reaches only the parent."""
    parent = subprocess.Popen(
        [sys.executable, troubled.__file__, str(tmp_path)], start_new_session=True, text=True,
        stderr=subprocess.PIPE, env=importing(),
    )  # fmt: skip
    while not (tmp_path / "pids").exists():
        assert parent.poll() is None
        time.sleep(0.05)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 and all(map(psutil.pid_exists, pids))
    (os.killpg if how == signal.SIGINT else os.kill)(parent.pid, how)
    _, errors = parent.communicate(timeout=60)
    assert parent.returncode == ends_by
    assert errors.count("Traceback") == (1 if how == signal.SIGINT else 0), errors
    assert_end(pids, seconds=30)


@pytest.fixture(scope="module")
def puzzles() -> tuple[CountdownParameters, list[Task]]:
    parameters = COUNTDOWN.model_copy(update={"max_steps": 12})
    specs = [(54, [80, 2, 28, 1]), (24, [2, 3, 4]), (100, [5, 20, 7]), (31, [1, 5, 25, 50])]
    return parameters, [
        Task(f"{target}", "countdown", 0, {"target": target, "numbers": numbers}) for target, numbers in specs
    ]


def explore(
    environments: SyncVectorEnv | WorkerVectorEnv,
    these: Sequence[Task],
    slots: int,
    section: CountdownParameters,
) -> list[Trajectory]:
    explorer = RandomExplorer(section.explorer_actions, OutcomeReward(10.0, 0.01))
    with Collector(environments, explorer, slots) as collector:
        return collector.collect(requests(these, 10, 0, "explore"))


def test_countdown_in_workers_gives_the_same_trajectories_as_in_process(
    puzzles: tuple[CountdownParameters, list[Task]],
) -> None:
    parameters, these = puzzles
    make = parameters.make
    expected = explore(SyncVectorEnv(make), these, 16, parameters)
    assert len({trajectory.actions for trajectory in expected}) > 30
    assert len({len(trajectory.steps) for trajectory in expected}) > 3
    for processes, slots in ((1, 7), (2, 16)):
        assert explore(WorkerVectorEnv(make, processes), these, slots, parameters) == expected


def test_what_was_aborted_is_never_answered_and_its_slot_starts_anew() -> None:
    with workers() as environments:
        environments.start({0: tasks()[0], 1: tasks()[1]})
        answered(environments, [0, 1])
        environments.step({0: "walk", 1: "walk"})
        environments.abort()
        assert environments.completed(0.5) == []
        environments.start({0: tasks()[4]})
        assert answered(environments, [0])[0].observation == "t4 0"


def test_steps_are_counted_once_each() -> None:
    assert [len(trajectory.steps) for trajectory in UNTROUBLED] == [STEPS] * 5


def test_a_task_that_cannot_be_started_loses_no_other_answer() -> None:
    fine = Task("fine", "troubled", 0, {})
    broken = Task("broken", "troubled", 0, {"trouble": "raises", "action": "reset"})
    environments = WorkerVectorEnv(Troubled, 1)
    environments.start({0: fine, 1: broken, 2: fine})
    found: dict[int, str] = {}
    slots: list[int | None] = []
    while len(found) + len(slots) < 3:
        try:
            found |= {slot: answer.observation for slot, answer in environments.completed(60.0)}
        except BrokenEnvironmentError as error:
            slots.append(error.slot)
    assert (found, slots) == ({0: "fine 0", 2: "fine 0"}, [1])
    environments.forget(1)
    environments.step({0: "look"})
    assert answered(environments, [0])[0].observation == "look 1"
    environments.close()
